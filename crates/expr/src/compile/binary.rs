//! Operators on two operands of known types.

use arrow_schema::DataType;
use penstock_memory::Physical;
use penstock_types::{PlanError, TypeName};

use crate::compile::unify::{common_number, decimal_scale, time_units, to_number, unit_scale};
use crate::compile::{Typed, label, physical};
use crate::expr::{BinaryOp, Expr};
use crate::map::Map;
use crate::node::CompiledNode;
use crate::scaled::{Scale, UNSCALED};
use crate::typing::{as_decimal, common_integer, finer, integer, is_binary, is_string};

fn mismatch(expr: &Expr, op: BinaryOp, left: &Typed, right: &Typed, hint: &str) -> PlanError {
    let (left, right) = (TypeName(&left.data_type), TypeName(&right.data_type));
    PlanError::mismatch(expr, format!("{left} {} {right} is not defined{hint}", op.symbol()))
}

pub(crate) fn logic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    if left.data_type != DataType::Boolean || right.data_type != DataType::Boolean {
        let hint =
            "; both sides must be bool. Put comparisons in parentheses: (col(\"a\") > 1) & (col(\"b\") < 2)";
        return Err(mismatch(expr, op, &left, &right, hint));
    }
    let nullable = left.nullable || right.nullable;
    let node = CompiledNode::Logic { op, left: Box::new(left.node), right: Box::new(right.node) };
    Ok(Typed { node, data_type: DataType::Boolean, nullable, literal: None })
}

pub(crate) fn comparison(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    use DataType::{Boolean, Date32, Date64, Timestamp};
    const DAY_MS: i128 = 86_400_000;
    let nullable = left.nullable || right.nullable;
    let compare = |on: Physical, left: CompiledNode, right: CompiledNode, scale: Scale| Typed {
        node: CompiledNode::Compare { op, on, left: Box::new(left), right: Box::new(right), scale },
        data_type: Boolean,
        nullable,
        literal: None,
    };
    // Times and dates of 32 bits are compared as 64.
    let long = |side: Typed| match physical(&side.data_type) {
        Physical::I64 => side.node,
        _ => CompiledNode::map(Map::Widen(Physical::I64), side.node),
    };
    let both = |test: fn(&DataType) -> bool| test(&left.data_type) && test(&right.data_type);
    if both(is_string) || both(is_binary) {
        return Ok(compare(Physical::View, left.node, right.node, UNSCALED));
    }
    if integer(&left.data_type).is_some()
        && integer(&right.data_type).is_some()
        && common_integer(&left.data_type, &right.data_type).is_none()
    {
        // uint64 with a signed type: 128 bits hold both.
        let wide = |side: Typed| CompiledNode::map(Map::Widen(Physical::I128), side.node);
        return Ok(compare(Physical::I128, wide(left), wide(right), UNSCALED));
    }
    if let Some(common) = common_number(&left.data_type, &right.data_type) {
        let scale = decimal_scale(&left.data_type, &right.data_type, &common);
        return Ok(compare(physical(&common), to_number(left, &common), to_number(right, &common), scale));
    }
    if let Some((left_unit, right_unit)) = time_units(&left.data_type, &right.data_type) {
        return Ok(compare(Physical::I64, long(left), long(right), unit_scale(left_unit, right_unit)));
    }
    match (&left.data_type, &right.data_type) {
        (left_type, right_type) if left_type == right_type && Physical::of(left_type).is_some() => {
            Ok(compare(physical(left_type), left.node, right.node, UNSCALED))
        }
        (Date32, Date64) => Ok(compare(Physical::I64, long(left), long(right), (DAY_MS, 1))),
        (Date64, Date32) => Ok(compare(Physical::I64, long(left), long(right), (1, DAY_MS))),
        (Timestamp(..), Timestamp(..)) => {
            let hint = "; one side has a time zone and the other has none";
            Err(mismatch(expr, op, &left, &right, hint))
        }
        _ => Err(mismatch(expr, op, &left, &right, "; compare values of the same kind")),
    }
}

pub(crate) fn arithmetic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    let nullable = left.nullable || right.nullable;
    let compute =
        |on: Physical, left: CompiledNode, right: CompiledNode, scale: Scale, data_type: DataType| Typed {
            node: CompiledNode::Arithmetic {
                op,
                on,
                left: Box::new(left),
                right: Box::new(right),
                scale,
                label: label(expr, &data_type),
            },
            data_type,
            nullable,
            literal: None,
        };
    let common = common_number(&left.data_type, &right.data_type);
    let integers = integer(&left.data_type).is_some() && integer(&right.data_type).is_some();
    if op == BinaryOp::Divide && (common.is_some() || integers) {
        let double = DataType::Float64;
        let (left, right) = (to_number(left, &double), to_number(right, &double));
        return Ok(compute(Physical::F64, left, right, UNSCALED, double));
    }
    if let Some(common) = common {
        let DataType::Decimal128(precision, scale) = common else {
            let (left, right) = (to_number(left, &common), to_number(right, &common));
            return Ok(compute(physical(&common), left, right, UNSCALED, common));
        };
        let factors = decimal_scale(&left.data_type, &right.data_type, &common);
        let (left_decimal, right_decimal) = as_decimal(&left.data_type)
            .zip(as_decimal(&right.data_type))
            .expect("both were converted to decimals");
        let (data_type, factors) = match op {
            BinaryOp::Multiply => {
                let scale = i16::from(left_decimal.1) + i16::from(right_decimal.1);
                if scale.abs() > 38 {
                    let hint = "; the result would need more than 38 digits after the point";
                    return Err(mismatch(expr, op, &left, &right, hint));
                }
                let precision = (left_decimal.0 + right_decimal.0 + 1).min(38);
                (DataType::Decimal128(precision, scale as i8), UNSCALED)
            }
            BinaryOp::Add | BinaryOp::Subtract => {
                (DataType::Decimal128((precision + 1).min(38), scale), factors)
            }
            _ => return Err(mismatch(expr, op, &left, &right, "; decimals have +, -, * and /")),
        };
        let (left, right) = (to_number(left, &common), to_number(right, &common));
        return Ok(compute(Physical::I128, left, right, factors, data_type));
    }
    if integers {
        return Err(mismatch(expr, op, &left, &right, "; no integer type holds both"));
    }
    use DataType::{Duration, Timestamp};
    let (units, zone) = match (op, &left.data_type, &right.data_type) {
        (BinaryOp::Subtract, Timestamp(..), Timestamp(..))
        | (BinaryOp::Add | BinaryOp::Subtract, Duration(_), Duration(_)) => {
            (time_units(&left.data_type, &right.data_type), None)
        }
        (BinaryOp::Add | BinaryOp::Subtract, Timestamp(left, zone), Duration(right)) => {
            (Some((*left, *right)), Some(zone.clone()))
        }
        (BinaryOp::Add, Duration(left), Timestamp(right, zone)) => {
            (Some((*left, *right)), Some(zone.clone()))
        }
        _ => (None, None),
    };
    let Some((left_unit, right_unit)) = units else {
        return Err(mismatch(expr, op, &left, &right, ""));
    };
    let unit = finer(left_unit, right_unit);
    // A time moved by a duration is a time; a distance between times is a duration.
    let data_type = zone.map_or(Duration(unit), |zone| Timestamp(unit, zone));
    Ok(compute(Physical::I64, left.node, right.node, unit_scale(left_unit, right_unit), data_type))
}
