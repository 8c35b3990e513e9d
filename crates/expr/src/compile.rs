//! From what a user wrote to what runs: names to slots, types settled, conversions put in.
//!
//! The rules, in short: integers meet in the wider type; a literal takes the type of the column
//! beside it when it fits; an integer with a float is a float; decimals meet at the finer scale,
//! times and durations at the finer unit. Whatever else meets is refused here, by name.

use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_schema::{DataType, Schema, TimeUnit};
use penstock_memory::{ColumnBuf, Physical, SlotId, Values, view::make_view};
use penstock_types::{PlanError, TypeName};

use crate::conversion::{decimal_to_f64, widen};
use crate::expr::{BinaryOp, Expr, Kind, UnaryOp};
use crate::literal::Literal;
use crate::scaled::{Scale, UNSCALED};
use crate::typing::{
    as_decimal, common_float, common_integer, finer, integer, integer_holds, is_binary, is_float, is_string,
    units_in,
};

/// Where the columns of a schema are found while a chain runs.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The schema names are looked up in.
    pub schema: &'a Schema,
    /// The slot of each of its columns.
    pub slots: &'a [SlotId],
}

/// What an error names: the part of the expression, and the type it computes in.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) type_name: String,
}

/// One step of a compiled expression.
#[derive(Debug)]
pub(crate) enum Node {
    Slot(SlotId),
    /// A column of one row that stands for all rows.
    Constant(ColumnBuf),
    Null,
    Arithmetic {
        op: BinaryOp,
        on: Physical,
        left: Box<Node>,
        right: Box<Node>,
        scale: Scale,
        label: Arc<Label>,
    },
    Compare {
        op: BinaryOp,
        on: Physical,
        left: Box<Node>,
        right: Box<Node>,
        scale: Scale,
    },
    Logic {
        op: BinaryOp,
        left: Box<Node>,
        right: Box<Node>,
    },
    Not(Box<Node>),
    IsNull {
        input: Box<Node>,
        wanted: u8,
    },
    Widen {
        to: Physical,
        input: Box<Node>,
    },
    DecimalToFloat {
        scale: i8,
        input: Box<Node>,
    },
}

/// An expression that is ready to run.
#[derive(Debug)]
pub struct Expression {
    pub(crate) root: Node,
    /// The type of what it computes.
    pub data_type: DataType,
    /// Whether it may compute nulls.
    pub nullable: bool,
    slots: Vec<SlotId>,
}

impl Expression {
    /// The slots it reads.
    pub fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    /// The slot it is, when it computes nothing.
    pub fn as_slot(&self) -> Option<SlotId> {
        if let Node::Slot(slot) = self.root { Some(slot) } else { None }
    }

    /// How its values are stored.
    pub fn physical(&self) -> Physical {
        Physical::of(&self.data_type).expect("types are checked when the plan is built")
    }
}

/// Checks `expr` against the columns in scope and makes it ready to run.
pub fn compile(expr: &Expr, scope: Scope<'_>) -> Result<Expression, PlanError> {
    let typed = Compiler { scope }.typed(expr)?;
    if typed.data_type == DataType::Null {
        return Err(PlanError::mismatch(
            expr,
            "a null on its own has no type; compare or combine it with a column, or use is_null()",
        ));
    }
    let mut slots = Vec::new();
    collect_slots(&typed.node, &mut slots);
    Ok(Expression { root: typed.node, data_type: typed.data_type, nullable: typed.nullable, slots })
}

fn collect_slots(node: &Node, slots: &mut Vec<SlotId>) {
    match node {
        Node::Slot(slot) => {
            if !slots.contains(slot) {
                slots.push(*slot);
            }
        }
        Node::Constant(_) | Node::Null => {}
        Node::Arithmetic { left, right, .. }
        | Node::Compare { left, right, .. }
        | Node::Logic { left, right, .. } => {
            collect_slots(left, slots);
            collect_slots(right, slots);
        }
        Node::Not(input)
        | Node::IsNull { input, .. }
        | Node::Widen { input, .. }
        | Node::DecimalToFloat { input, .. } => collect_slots(input, slots),
    }
}

struct Typed {
    node: Node,
    data_type: DataType,
    nullable: bool,
    literal: Option<Literal>,
}

struct Compiler<'a> {
    scope: Scope<'a>,
}

fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).expect("expressions compute supported types only")
}

/// A constant of a fixed-width type.
fn number(value: i128, data_type: &DataType) -> Node {
    let mut column = ColumnBuf::new(physical(data_type));
    widen(Values::I128(&[value]), physical(data_type), &mut column);
    Node::Constant(column)
}

fn float(value: f64, data_type: &DataType) -> Node {
    let mut column = ColumnBuf::new(physical(data_type));
    widen(Values::F64(&[value]), physical(data_type), &mut column);
    Node::Constant(column)
}

fn bytes(value: &[u8]) -> Node {
    let mut column = ColumnBuf::new(Physical::View);
    let (views, buffers) = column.refill_views();
    views.push(make_view(value, 0, 0));
    buffers.push(Buffer::from_vec(value.to_vec()).into());
    Node::Constant(column)
}

fn scale_up(value: i128, digits: i16) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(digits).ok()?).and_then(|factor| value.checked_mul(factor))
}

/// `value` with so many zeros behind it, when that has at most `precision` digits.
fn decimal(value: i128, zeros: i16, precision: u8) -> Option<i128> {
    scale_up(value, zeros).filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(precision)))
}

/// A literal as a constant of exactly that type; `None` when the value is not of that type.
fn constant(literal: &Literal, data_type: &DataType) -> Option<Node> {
    match (literal, data_type) {
        (Literal::Null, _) => Some(Node::Null),
        (Literal::Bool(value), DataType::Boolean) => Some(number(i128::from(*value), data_type)),
        (Literal::Int(value), data_type) if integer_holds(data_type, *value) => {
            Some(number(*value, data_type))
        }
        (Literal::Int(value), DataType::Float32 | DataType::Float64) => Some(float(*value as f64, data_type)),
        (Literal::Int(value), DataType::Decimal128(precision, scale)) => {
            decimal(*value, i16::from(*scale), *precision).map(|value| number(value, data_type))
        }
        (Literal::Float(value), DataType::Float32 | DataType::Float64) => Some(float(*value, data_type)),
        (Literal::Decimal { value, scale }, DataType::Decimal128(precision, wanted)) => {
            decimal(*value, i16::from(*wanted) - i16::from(*scale), *precision)
                .map(|value| number(value, data_type))
        }
        (Literal::Decimal { value, scale }, DataType::Float64) => {
            Some(float(decimal_to_f64(*value, *scale), data_type))
        }
        (Literal::String(text), data_type) if is_string(data_type) => Some(bytes(text.as_bytes())),
        (Literal::Binary(value), data_type) if is_binary(data_type) => Some(bytes(value)),
        (Literal::Timestamp { micros, aware }, DataType::Timestamp(unit, zone))
            if *aware == zone.is_some() =>
        {
            in_unit(*micros, *unit).map(|value| number(value, data_type))
        }
        (Literal::Duration(micros), DataType::Duration(unit)) => {
            in_unit(*micros, *unit).map(|value| number(value, data_type))
        }
        (Literal::Date(days), DataType::Date32) => Some(number(i128::from(*days), data_type)),
        (Literal::Date(days), DataType::Date64) => Some(number(i128::from(*days) * 86_400_000, data_type)),
        _ => None,
    }
}

/// Microseconds in another unit, when that is a whole number that fits.
fn in_unit(micros: i64, unit: TimeUnit) -> Option<i128> {
    let value = match unit {
        TimeUnit::Nanosecond => i128::from(micros) * 1000,
        coarser => {
            let factor = i128::from(units_in(coarser, TimeUnit::Microsecond) as i64);
            if i128::from(micros) % factor != 0 {
                return None;
            }
            i128::from(micros) / factor
        }
    };
    i64::try_from(value).is_ok().then_some(value)
}

impl Compiler<'_> {
    fn typed(&self, expr: &Expr) -> Result<Typed, PlanError> {
        match expr.kind() {
            Kind::Column(name) => {
                let fields = self.scope.schema.fields();
                let Some((index, field)) = fields.find(name) else {
                    return Err(PlanError::unknown_column(
                        name,
                        fields.iter().map(|field| field.name().as_str()),
                    ));
                };
                Ok(Typed {
                    node: Node::Slot(self.scope.slots[index]),
                    data_type: field.data_type().clone(),
                    nullable: field.is_nullable(),
                    literal: None,
                })
            }
            Kind::Literal(literal) => {
                let data_type = literal.data_type();
                if let DataType::Decimal128(precision, scale) = data_type
                    && (precision > 38 || scale.unsigned_abs() > 38)
                {
                    return Err(PlanError::mismatch(expr, "a decimal has at most 38 digits"));
                }
                let node = if *literal == Literal::Null {
                    Node::Null
                } else {
                    constant(literal, &data_type).ok_or_else(|| {
                        PlanError::mismatch(expr, "the value does not fit any type the engine computes with")
                    })?
                };
                let nullable = *literal == Literal::Null;
                Ok(Typed { node, data_type, nullable, literal: Some(literal.clone()) })
            }
            Kind::Alias(input, _) => self.typed(input),
            Kind::Unary(op, input) => self.unary(expr, *op, input),
            Kind::Binary(op, left, right) => {
                let (left, right) = self.meet(self.typed(left)?, self.typed(right)?);
                match op {
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => logic(expr, *op, left, right),
                    BinaryOp::Add
                    | BinaryOp::Subtract
                    | BinaryOp::Multiply
                    | BinaryOp::Divide
                    | BinaryOp::FloorDivide
                    | BinaryOp::Modulo => arithmetic(expr, *op, left, right),
                    _ => comparison(expr, *op, left, right),
                }
            }
        }
    }

    /// A literal takes the type of the other side when its value is of that type.
    fn meet(&self, left: Typed, right: Typed) -> (Typed, Typed) {
        let adapt = |side: Typed, other: &DataType| {
            let Some(literal) = &side.literal else { return side };
            match Physical::of(other).and_then(|_| constant(literal, other)) {
                Some(node) => Typed { node, data_type: other.clone(), ..side },
                None => side,
            }
        };
        let (left_type, right_type) = (left.data_type.clone(), right.data_type.clone());
        if right.literal.is_some() {
            let right = adapt(right, &left_type);
            let left = if left.literal == Some(Literal::Null) { adapt(left, &right.data_type) } else { left };
            return (left, right);
        }
        (adapt(left, &right_type), right)
    }

    fn unary(&self, expr: &Expr, op: UnaryOp, input: &Expr) -> Result<Typed, PlanError> {
        let input = self.typed(input)?;
        let wrong = |wanted: &str| {
            PlanError::mismatch(expr, format!("the operand is {}, but {wanted}", TypeName(&input.data_type)))
        };
        match op {
            UnaryOp::IsNull | UnaryOp::IsNotNull => Ok(Typed {
                node: Node::IsNull { input: Box::new(input.node), wanted: u8::from(op == UnaryOp::IsNull) },
                data_type: DataType::Boolean,
                nullable: false,
                literal: None,
            }),
            UnaryOp::Not if input.data_type == DataType::Boolean => Ok(Typed {
                node: Node::Not(Box::new(input.node)),
                data_type: DataType::Boolean,
                nullable: input.nullable,
                literal: None,
            }),
            UnaryOp::Not => Err(wrong("~ needs a bool; compare first, as in ~(col(\"x\") > 0)")),
            UnaryOp::Negate => {
                let data_type = input.data_type.clone();
                let signed = integer(&data_type).is_some_and(|(signed, _)| signed);
                let float = is_float(&data_type);
                if !(signed || float || matches!(data_type, DataType::Decimal128(..) | DataType::Duration(_)))
                {
                    return Err(wrong("- needs a signed number or a duration"));
                }
                // 0 - x is checked as every subtraction is; floats are multiplied, so that -(0.0) is -0.0.
                let (op, left) = if float {
                    (BinaryOp::Multiply, self::float(-1.0, &data_type))
                } else {
                    (BinaryOp::Subtract, number(0, &data_type))
                };
                let label = label(expr, &data_type);
                Ok(Typed {
                    node: Node::Arithmetic {
                        op,
                        on: physical(&data_type),
                        left: Box::new(left),
                        right: Box::new(input.node),
                        scale: UNSCALED,
                        label,
                    },
                    data_type,
                    nullable: input.nullable,
                    literal: None,
                })
            }
        }
    }
}

fn label(expr: &Expr, data_type: &DataType) -> Arc<Label> {
    Arc::new(Label { text: expr.to_string(), type_name: TypeName(data_type).to_string() })
}

fn mismatch(expr: &Expr, op: BinaryOp, left: &Typed, right: &Typed, hint: &str) -> PlanError {
    let (left, right) = (TypeName(&left.data_type), TypeName(&right.data_type));
    PlanError::mismatch(expr, format!("{left} {} {right} is not defined{hint}", op.symbol()))
}

fn logic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    if left.data_type != DataType::Boolean || right.data_type != DataType::Boolean {
        let hint =
            "; both sides must be bool. Put comparisons in parentheses: (col(\"a\") > 1) & (col(\"b\") < 2)";
        return Err(mismatch(expr, op, &left, &right, hint));
    }
    let nullable = left.nullable || right.nullable;
    let node = Node::Logic { op, left: Box::new(left.node), right: Box::new(right.node) };
    Ok(Typed { node, data_type: DataType::Boolean, nullable, literal: None })
}

/// `side` converted to a number type that holds it. A decimal keeps its own scale: see [`decimal_scale`].
fn to_number(side: Typed, to: &DataType) -> Node {
    if side.data_type == *to {
        return side.node;
    }
    match (&side.data_type, to) {
        (DataType::Decimal128(_, scale), DataType::Float64) => {
            Node::DecimalToFloat { scale: *scale, input: Box::new(side.node) }
        }
        (DataType::Decimal128(..), DataType::Decimal128(..)) => side.node,
        (_, to) => Node::Widen { to: physical(to), input: Box::new(side.node) },
    }
}

/// What brings both sides to the scale at which two decimals (or integers) meet.
fn decimal_scale(left: &DataType, right: &DataType, common: &DataType) -> Scale {
    let DataType::Decimal128(_, scale) = common else { return UNSCALED };
    let factor = |side: &DataType| {
        let (_, own) = as_decimal(side).expect("only integers and decimals meet as decimals");
        // More than 38 digits apart, whatever is not 0 is beyond every decimal: any huge factor says so.
        scale_up(1, i16::from(*scale) - i16::from(own)).unwrap_or(i128::MAX)
    };
    (factor(left), factor(right))
}

/// The type in which two numbers meet.
fn common_number(left: &DataType, right: &DataType) -> Option<DataType> {
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

/// The units of two times of the same kind.
fn time_units(left: &DataType, right: &DataType) -> Option<(TimeUnit, TimeUnit)> {
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

/// What brings both sides to the finer of two units.
fn unit_scale(left: TimeUnit, right: TimeUnit) -> Scale {
    let unit = finer(left, right);
    (units_in(left, unit), units_in(right, unit))
}

fn comparison(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    use DataType::{Boolean, Date32, Date64, Timestamp};
    const DAY_MS: i128 = 86_400_000;
    let nullable = left.nullable || right.nullable;
    let compare = |on: Physical, left: Node, right: Node, scale: Scale| Typed {
        node: Node::Compare { op, on, left: Box::new(left), right: Box::new(right), scale },
        data_type: Boolean,
        nullable,
        literal: None,
    };
    // Times and dates of 32 bits are compared as 64.
    let long = |side: Typed| match physical(&side.data_type) {
        Physical::I64 => side.node,
        _ => Node::Widen { to: Physical::I64, input: Box::new(side.node) },
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
        let wide = |side: Typed| Node::Widen { to: Physical::I128, input: Box::new(side.node) };
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

fn arithmetic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    let nullable = left.nullable || right.nullable;
    let compute = |on: Physical, left: Node, right: Node, scale: Scale, data_type: DataType| Typed {
        node: Node::Arithmetic {
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
        let (left_decimal, right_decimal) =
            as_decimal(&left.data_type).zip(as_decimal(&right.data_type)).expect("both meet as decimals");
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
