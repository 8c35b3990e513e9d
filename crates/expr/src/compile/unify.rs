//! The type in which values of different types meet.

use arrow_schema::{DataType, TimeUnit};
use penstock_types::{PlanError, TypeName};

use crate::compile::cast::cast;
use crate::compile::constant::{constant, scale_up};
use crate::compile::{Typed, physical};
use crate::expr::Expr;
use crate::literal::Literal;
use crate::map::Map;
use crate::node::CompiledNode;
use crate::scaled::{Scale, UNSCALED};
use crate::typing::{
    as_decimal, common_float, common_integer, finer, integer, is_binary, is_float, is_string, units_in,
};

/// Converts `side` to a number type that holds it. A decimal keeps its own scale: see [`decimal_scale`].
pub(crate) fn to_number(side: Typed, to: &DataType) -> CompiledNode {
    if side.data_type == *to {
        return side.node;
    }
    match (&side.data_type, to) {
        (DataType::Decimal128(_, scale), DataType::Float64) => {
            CompiledNode::map(Map::DecimalToFloat(*scale), side.node)
        }
        (DataType::Decimal128(..), DataType::Decimal128(..)) => side.node,
        (_, to) => CompiledNode::map(Map::Widen(physical(to)), side.node),
    }
}

/// Returns the factors that bring both sides to the scale at which two decimals (or integers) meet.
pub(crate) fn decimal_scale(left: &DataType, right: &DataType, common: &DataType) -> Scale {
    let DataType::Decimal128(_, scale) = common else { return UNSCALED };
    let factor = |side: &DataType| {
        let (_, own) = as_decimal(side).expect("only integers and decimals meet as decimals");
        // More than 38 digits apart, every value but 0 exceeds every decimal: any huge factor has that effect.
        scale_up(1, i16::from(*scale) - i16::from(own)).unwrap_or(i128::MAX)
    };
    (factor(left), factor(right))
}

/// Returns the type in which two numbers meet.
pub(crate) fn common_number(left: &DataType, right: &DataType) -> Option<DataType> {
    if integer(left).is_some() && integer(right).is_some() {
        return common_integer(left, right);
    }
    let numeric = |data_type: &DataType| as_decimal(data_type).is_some() || is_float(data_type);
    if !numeric(left) || !numeric(right) {
        return None;
    }
    if is_float(left) || is_float(right) {
        return Some(common_float(left, right));
    }
    let ((left_precision, left_scale), (right_precision, right_scale)) =
        (as_decimal(left)?, as_decimal(right)?);
    let scale = left_scale.max(right_scale);
    let whole = (i16::from(left_precision) - i16::from(left_scale))
        .max(i16::from(right_precision) - i16::from(right_scale));
    Some(DataType::Decimal128((whole + i16::from(scale)).clamp(1, 38) as u8, scale))
}

/// Returns the units of two times of the same kind.
pub(crate) fn time_units(left: &DataType, right: &DataType) -> Option<(TimeUnit, TimeUnit)> {
    use DataType::{Duration, Time32, Time64, Timestamp};
    match (left, right) {
        (Timestamp(left, left_zone), Timestamp(right, right_zone))
            if left_zone.is_some() == right_zone.is_some() =>
        {
            Some((*left, *right))
        }
        (Duration(left), Duration(right)) => Some((*left, *right)),
        (Time32(left) | Time64(left), Time32(right) | Time64(right)) => Some((*left, *right)),
        _ => None,
    }
}

/// Returns the factors that bring both sides to the finer of two units.
pub(crate) fn unit_scale(left: TimeUnit, right: TimeUnit) -> Scale {
    let unit = finer(left, right);
    (units_in(left, unit), units_in(right, unit))
}

/// Returns the type in which two columns meet when one value or the other is chosen.
fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    if left == right || (is_string(left) && is_string(right)) || (is_binary(left) && is_binary(right)) {
        return Some(left.clone());
    }
    if let Some(common) = common_number(left, right) {
        return Some(common);
    }
    if let Some((left_unit, right_unit)) = time_units(left, right) {
        let unit = finer(left_unit, right_unit);
        return Some(match left {
            Timestamp(_, zone) => Timestamp(unit, zone.clone()),
            Duration(_) => Duration(unit),
            _ if matches!(unit, TimeUnit::Second | TimeUnit::Millisecond) => Time32(unit),
            _ => Time64(unit),
        });
    }
    matches!((left, right), (Date32, Date64) | (Date64, Date32)).then_some(Date64)
}

/// Converts values of which one is chosen per row to one type. A literal takes the type of the others when its value
/// is of that type, and a null takes any.
pub(crate) fn unify(expr: &Expr, sides: Vec<Typed>) -> Result<(Vec<Typed>, DataType), PlanError> {
    let meet = |common: Option<DataType>, own: &DataType| match common {
        None => Ok(own.clone()),
        Some(common) => common_type(&common, own).ok_or_else(|| {
            let (common, own) = (TypeName(&common), TypeName(own));
            PlanError::mismatch(expr, format!("{common} and {own} have no common type; cast() one of them"))
        }),
    };
    let mut common = None;
    for side in sides.iter().filter(|side| side.literal.is_none() && side.data_type != DataType::Null) {
        common = Some(meet(common, &side.data_type)?);
    }
    for side in &sides {
        let Some(literal) = side.literal.as_ref().filter(|literal| **literal != Literal::Null) else {
            continue;
        };
        if common.as_ref().is_none_or(|common| constant(literal, common).is_none()) {
            common = Some(meet(common, &side.data_type)?);
        }
    }
    let Some(common) = common else { return Ok((sides, DataType::Null)) };
    let brought = sides.into_iter().map(|side| {
        match side.literal.as_ref().and_then(|literal| constant(literal, &common)) {
            Some(node) => Ok(Typed { node, data_type: common.clone(), ..side }),
            None => cast(expr, side, &common),
        }
    });
    Ok((brought.collect::<Result<_, _>>()?, common))
}
