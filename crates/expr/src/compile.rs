//! From what a user wrote to what runs: names to slots, types settled, conversions put in.
//!
//! The rules, in short: integers meet in the wider type; a literal takes the type of the column
//! beside it when it fits; an integer with a float is a float; decimals meet at the finer scale,
//! times and durations at the finer unit. Whatever else meets is refused here, by name.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, TimeUnit};
use penstock_memory::{ColumnBuf, Physical, SlotId, Values, view::make_view};
use penstock_types::{PlanError, TypeName};

use crate::conversion::{decimal_to_f64, widen};
use crate::expr::{BinaryOp, Expr, Kind, UnaryOp};
use crate::literal::Literal;
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
        label: Arc<Label>,
    },
    Compare {
        op: BinaryOp,
        on: Physical,
        left: Box<Node>,
        right: Box<Node>,
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
    buffers.push(value.to_vec().into());
    Node::Constant(column)
}

fn scale_up(value: i128, digits: i16) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(digits).ok()?).and_then(|factor| value.checked_mul(factor))
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
        (Literal::Int(value), DataType::Decimal128(_, scale)) => {
            scale_up(*value, i16::from(*scale)).map(|value| number(value, data_type))
        }
        (Literal::Float(value), DataType::Float32 | DataType::Float64) => Some(float(*value, data_type)),
        (Literal::Decimal { value, scale }, DataType::Decimal128(_, wanted)) => {
            scale_up(*value, i16::from(*wanted) - i16::from(*scale)).map(|value| number(value, data_type))
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

/// `side` converted to a number type that holds it.
fn to_number(side: Typed, to: &DataType, expr: &Expr) -> Node {
    if side.data_type == *to {
        return side.node;
    }
    match (&side.data_type, to) {
        (DataType::Decimal128(_, scale), DataType::Float64) => {
            Node::DecimalToFloat { scale: *scale, input: Box::new(side.node) }
        }
        (from, DataType::Decimal128(_, scale)) => {
            let (_, from_scale) = as_decimal(from).expect("only integers and decimals become decimals");
            let input = match from {
                DataType::Decimal128(..) => side.node,
                _ => Node::Widen { to: Physical::I128, input: Box::new(side.node) },
            };
            let digits = i16::from(*scale) - i16::from(from_scale);
            multiplied(
                input,
                Physical::I128,
                scale_up(1, digits).expect("scales differ by at most 38"),
                to,
                expr,
            )
        }
        (_, to) => Node::Widen { to: physical(to), input: Box::new(side.node) },
    }
}

/// `input * factor`, checked.
fn multiplied(input: Node, on: Physical, factor: i128, data_type: &DataType, expr: &Expr) -> Node {
    if factor == 1 {
        return input;
    }
    let right = Box::new(number(factor, data_type));
    Node::Arithmetic {
        op: BinaryOp::Multiply,
        on,
        left: Box::new(input),
        right,
        label: label(expr, data_type),
    }
}

/// `side`, counted in a finer unit.
fn to_unit(side: Typed, from: TimeUnit, to: TimeUnit, expr: &Expr) -> Node {
    multiplied(side.node, Physical::I64, units_in(from, to), &DataType::Duration(to), expr)
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

fn comparison(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    use DataType::{Boolean, Date32, Date64, Duration, Time32, Time64, Timestamp};
    let nullable = left.nullable || right.nullable;
    let compare = |on: Physical, left: Node, right: Node| Typed {
        node: Node::Compare { op, on, left: Box::new(left), right: Box::new(right) },
        data_type: Boolean,
        nullable,
        literal: None,
    };
    let both = |test: fn(&DataType) -> bool| test(&left.data_type) && test(&right.data_type);
    if both(is_string) || both(is_binary) {
        return Ok(compare(Physical::View, left.node, right.node));
    }
    if integer(&left.data_type).is_some()
        && integer(&right.data_type).is_some()
        && common_integer(&left.data_type, &right.data_type).is_none()
    {
        // uint64 with a signed type: 128 bits hold both.
        let wide = |side: Typed| Node::Widen { to: Physical::I128, input: Box::new(side.node) };
        return Ok(compare(Physical::I128, wide(left), wide(right)));
    }
    if let Some(common) = common_number(&left.data_type, &right.data_type) {
        return Ok(compare(
            physical(&common),
            to_number(left, &common, expr),
            to_number(right, &common, expr),
        ));
    }
    let units = match (&left.data_type, &right.data_type) {
        (Timestamp(left, left_zone), Timestamp(right, right_zone))
            if left_zone.is_some() == right_zone.is_some() =>
        {
            Some((*left, *right))
        }
        (Duration(left), Duration(right)) => Some((*left, *right)),
        (Time32(left) | Time64(left), Time32(right) | Time64(right)) => Some((*left, *right)),
        _ => None,
    };
    if let Some((left_unit, right_unit)) = units {
        let unit = finer(left_unit, right_unit);
        let long = |side: Typed| match side.data_type {
            Time32(_) => {
                Typed { node: Node::Widen { to: Physical::I64, input: Box::new(side.node) }, ..side }
            }
            _ => side,
        };
        let (left, right) =
            (to_unit(long(left), left_unit, unit, expr), to_unit(long(right), right_unit, unit, expr));
        return Ok(compare(Physical::I64, left, right));
    }
    match (&left.data_type, &right.data_type) {
        (left_type, right_type) if left_type == right_type && Physical::of(left_type).is_some() => {
            Ok(compare(physical(left_type), left.node, right.node))
        }
        (Date32, Date64) | (Date64, Date32) => {
            let milliseconds = |side: Typed| match side.data_type {
                Date32 => {
                    let long = Node::Widen { to: Physical::I64, input: Box::new(side.node) };
                    multiplied(long, Physical::I64, 86_400_000, &Date64, expr)
                }
                _ => side.node,
            };
            Ok(compare(Physical::I64, milliseconds(left), milliseconds(right)))
        }
        (Timestamp(..), Timestamp(..)) => {
            let hint = "; one side has a time zone and the other has none";
            Err(mismatch(expr, op, &left, &right, hint))
        }
        _ => Err(mismatch(expr, op, &left, &right, "; compare values of the same kind")),
    }
}

fn arithmetic(expr: &Expr, op: BinaryOp, left: Typed, right: Typed) -> Result<Typed, PlanError> {
    let nullable = left.nullable || right.nullable;
    let compute = |on: Physical, left: Node, right: Node, data_type: DataType| Typed {
        node: Node::Arithmetic {
            op,
            on,
            left: Box::new(left),
            right: Box::new(right),
            label: label(expr, &data_type),
        },
        data_type,
        nullable,
        literal: None,
    };
    if let Some(common) = common_number(&left.data_type, &right.data_type) {
        if op == BinaryOp::Divide {
            let double = DataType::Float64;
            let (left, right) = (to_number(left, &double, expr), to_number(right, &double, expr));
            return Ok(compute(Physical::F64, left, right, double));
        }
        let DataType::Decimal128(_, scale) = common else {
            let (left, right) = (to_number(left, &common, expr), to_number(right, &common, expr));
            return Ok(compute(physical(&common), left, right, common));
        };
        let (left_decimal, right_decimal) =
            as_decimal(&left.data_type).zip(as_decimal(&right.data_type)).expect("checked");
        match op {
            BinaryOp::Multiply => {
                let scale = i16::from(left_decimal.1) + i16::from(right_decimal.1);
                if scale.abs() > 38 {
                    let hint = "; the result would need more than 38 digits after the point";
                    return Err(mismatch(expr, op, &left, &right, hint));
                }
                let precision = (left_decimal.0 + right_decimal.0 + 1).min(38);
                let own = |side: Typed, scale| to_number(side, &DataType::Decimal128(38, scale), expr);
                let (left, right) = (own(left, left_decimal.1), own(right, right_decimal.1));
                return Ok(compute(
                    Physical::I128,
                    left,
                    right,
                    DataType::Decimal128(precision, scale as i8),
                ));
            }
            BinaryOp::Add | BinaryOp::Subtract => {
                let DataType::Decimal128(precision, _) = common else { unreachable!("common is a decimal") };
                let data_type = DataType::Decimal128((precision + 1).min(38), scale);
                let (left, right) = (to_number(left, &common, expr), to_number(right, &common, expr));
                return Ok(compute(Physical::I128, left, right, data_type));
            }
            _ => return Err(mismatch(expr, op, &left, &right, "; decimals have +, -, * and /")),
        }
    }
    if integer(&left.data_type).is_some() && integer(&right.data_type).is_some() {
        if op == BinaryOp::Divide {
            let double = DataType::Float64;
            let (left, right) = (to_number(left, &double, expr), to_number(right, &double, expr));
            return Ok(compute(Physical::F64, left, right, double));
        }
        return Err(mismatch(expr, op, &left, &right, "; no integer type holds both"));
    }
    use DataType::{Duration, Timestamp};
    let (unit, data_type) = match (op, &left.data_type, &right.data_type) {
        (BinaryOp::Subtract, Timestamp(left, left_zone), Timestamp(right, right_zone))
            if left_zone.is_some() == right_zone.is_some() =>
        {
            let unit = finer(*left, *right);
            (unit, Duration(unit))
        }
        (BinaryOp::Add | BinaryOp::Subtract, Timestamp(left, zone), Duration(right)) => {
            let unit = finer(*left, *right);
            (unit, Timestamp(unit, zone.clone()))
        }
        (BinaryOp::Add, Duration(left), Timestamp(right, zone)) => {
            let unit = finer(*left, *right);
            (unit, Timestamp(unit, zone.clone()))
        }
        (BinaryOp::Add | BinaryOp::Subtract, Duration(left), Duration(right)) => {
            let unit = finer(*left, *right);
            (unit, Duration(unit))
        }
        _ => return Err(mismatch(expr, op, &left, &right, "")),
    };
    let own_unit = |data_type: &DataType| match data_type {
        Timestamp(unit, _) | Duration(unit) => *unit,
        _ => unreachable!("both sides are times"),
    };
    let (left_unit, right_unit) = (own_unit(&left.data_type), own_unit(&right.data_type));
    let (left, right) = (to_unit(left, left_unit, unit, expr), to_unit(right, right_unit, unit, expr));
    Ok(compute(Physical::I64, left, right, data_type))
}
