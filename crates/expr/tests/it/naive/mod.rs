//! A naive evaluator: one row at a time, with the rules of the language implemented a second time.
//!
//! Whole numbers, decimals, times and bools are `i128`, so that nothing here can overflow before it is compared with
//! the limits of its type.

use std::cmp::Ordering;

use arrow_schema::DataType::{
    Binary, Boolean, Date32, Date64, Decimal128, Duration, Float32, Float64, Int8, Int16, Int32, Int64,
    Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
};
use arrow_schema::{DataType, TimeUnit};
use penstock_expr::expr::Kind;
use penstock_expr::{BinaryOp, Expr, Literal, UnaryOp};

/// A value that is not null.
#[derive(Clone, Debug)]
pub enum Value {
    Int(i128),
    Float(f64),
    Bytes(Vec<u8>),
}

impl PartialEq for Value {
    /// Equality to the bit, except that any NaN equals any other.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Float(left), Self::Float(right)) => {
                left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
            }
            (Self::Bytes(left), Self::Bytes(right)) => left == right,
            _ => false,
        }
    }
}

/// A column of the model.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub data_type: DataType,
    pub rows: Vec<Option<Value>>,
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Overflow,
    DivisionByZero,
}

/// The result of an expression: a type and, unless some row fails, a value per row.
pub struct Answer {
    pub data_type: DataType,
    pub rows: Result<Vec<Option<Value>>, Failure>,
}

/// Operands whose types do not match.
#[derive(Debug)]
pub struct Mismatch;

struct Side {
    answer: Answer,
    literal: Option<Literal>,
}

fn bits(data_type: &DataType) -> Option<(bool, u32)> {
    Some(match data_type {
        Int8 => (true, 8),
        Int16 => (true, 16),
        Int32 => (true, 32),
        Int64 => (true, 64),
        UInt8 => (false, 8),
        UInt16 => (false, 16),
        UInt32 => (false, 32),
        UInt64 => (false, 64),
        _ => return None,
    })
}

fn is_int(data_type: &DataType) -> bool {
    bits(data_type).is_some()
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, Float32 | Float64)
}

fn is_number(data_type: &DataType) -> bool {
    is_int(data_type) || is_float(data_type) || matches!(data_type, Decimal128(..))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, Utf8 | Utf8View)
}

/// Returns true if a whole number is a value of the type, as it is stored.
pub fn holds(data_type: &DataType, value: i128) -> bool {
    match (data_type, bits(data_type)) {
        (_, Some((true, bits))) => (-(1 << (bits - 1))..1 << (bits - 1)).contains(&value),
        (_, Some((false, bits))) => (0..1 << bits).contains(&value),
        (Decimal128(..), _) => value.unsigned_abs() < 10_u128.pow(38),
        (Date32, _) => i32::try_from(value).is_ok(),
        _ => i64::try_from(value).is_ok(),
    }
}

fn scale_of(data_type: &DataType) -> i8 {
    if let Decimal128(_, scale) = data_type { *scale } else { 0 }
}

fn unit_ns(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

fn float_of(value: &Value, data_type: &DataType) -> f64 {
    match value {
        Value::Float(value) => *value,
        Value::Int(value) => match data_type {
            Decimal128(_, scale) => format!("{value}e{}", -i32::from(*scale)).parse().unwrap(),
            UInt64 => *value as u64 as f64,
            _ => *value as i64 as f64,
        },
        Value::Bytes(_) => unreachable!("bytes are not numbers"),
    }
}

/// Converts a literal to a value of exactly that type, if it is one.
fn as_type(literal: &Literal, data_type: &DataType) -> Option<Option<Value>> {
    let in_unit = |micros: i64, unit: TimeUnit| {
        let nanos = i128::from(micros) * 1000;
        (nanos % unit_ns(unit) == 0 && holds(&Int64, nanos / unit_ns(unit))).then(|| nanos / unit_ns(unit))
    };
    // As many digits after the point as the type has, and no more digits than it holds.
    let rescaled = |value: i128, scale: i8| {
        let Decimal128(precision, wanted) = data_type else { unreachable!() };
        let value = value.checked_mul(10_i128.checked_pow(u32::try_from(wanted - scale).ok()?)?)?;
        (value.unsigned_abs() < 10_u128.pow((*precision).into())).then_some(value)
    };
    let value = match (literal, data_type) {
        (Literal::Null, _) => return Some(None),
        (Literal::Bool(value), Boolean) => Value::Int((*value).into()),
        (Literal::Int(value), _) if is_int(data_type) => {
            Value::Int(Some(*value).filter(|value| holds(data_type, *value))?)
        }
        (Literal::Int(value), Decimal128(..)) => Value::Int(rescaled(*value, 0)?),
        (Literal::Int(value), Float64) => Value::Float(*value as f64),
        (Literal::Int(value), Float32) => Value::Float((*value as f32).into()),
        (Literal::Float(value), Float64) => Value::Float(*value),
        (Literal::Float(value), Float32) => Value::Float((*value as f32).into()),
        (Literal::Decimal { value, scale }, Decimal128(..)) => Value::Int(rescaled(*value, *scale)?),
        (Literal::Decimal { value, scale }, Float64) => {
            Value::Float(float_of(&Value::Int(*value), &Decimal128(38, *scale)))
        }
        (Literal::String(text), _) if is_text(data_type) => Value::Bytes(text.clone().into_bytes()),
        (Literal::Binary(bytes), Binary) => Value::Bytes(bytes.clone()),
        (Literal::Timestamp { micros, aware }, Timestamp(unit, zone)) if *aware == zone.is_some() => {
            Value::Int(in_unit(*micros, *unit)?)
        }
        (Literal::Duration(micros), Duration(unit)) => Value::Int(in_unit(*micros, *unit)?),
        (Literal::Date(days), Date32) => Value::Int((*days).into()),
        (Literal::Date(days), Date64) => Value::Int(i128::from(*days) * 86_400_000),
        _ => return None,
    };
    Some(Some(value))
}

/// Converts a literal to the type of the other side, if it is a value of it.
fn meet(side: Side, other: &Side, rows: usize) -> Side {
    let Some(value) = side.literal.as_ref().and_then(|literal| as_type(literal, &other.answer.data_type))
    else {
        return side;
    };
    Side {
        answer: Answer { data_type: other.answer.data_type.clone(), rows: Ok(vec![value; rows]) },
        literal: side.literal,
    }
}

fn common_int(left: &DataType, right: &DataType) -> Option<DataType> {
    let (one, other) = (bits(left)?, bits(right)?);
    let (signed, wide) = match (one.0, other.0) {
        (true, false) => (true, one.1.max(other.1 * 2)),
        (false, true) => (true, other.1.max(one.1 * 2)),
        (signed, _) => (signed, one.1.max(other.1)),
    };
    Some(match (signed, wide) {
        (true, 8) => Int8,
        (true, 16) => Int16,
        (true, 32) => Int32,
        (true, 64) => Int64,
        (false, 8) => UInt8,
        (false, 16) => UInt16,
        (false, 32) => UInt32,
        (false, 64) => UInt64,
        _ => return None,
    })
}

fn common_float(left: &DataType, right: &DataType) -> DataType {
    let narrow =
        |data_type: &DataType| *data_type == Float32 || bits(data_type).is_some_and(|(_, bits)| bits <= 16);
    if narrow(left) && narrow(right) { Float32 } else { Float64 }
}

/// The engine's order of floats.
fn float_order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn holds_as(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Equal => order.is_eq(),
        BinaryOp::NotEqual => order.is_ne(),
        BinaryOp::Less => order.is_lt(),
        BinaryOp::LessEqual => order.is_le(),
        BinaryOp::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Compares `left / 10^left_scale` with `right / 10^right_scale` digit by digit: no power is too large.
fn decimal_order(left: i128, left_scale: i8, right: i128, right_scale: i8) -> Ordering {
    if left.signum() != right.signum() || left == 0 {
        return left.signum().cmp(&right.signum());
    }
    let digits = |value: i128, scale: i8, other: i8| {
        let zeros = usize::try_from(i32::from(other) - i32::from(scale)).unwrap_or(0);
        format!("{}{}", value.unsigned_abs(), "0".repeat(zeros))
    };
    let (one, other) = (digits(left, left_scale, right_scale), digits(right, right_scale, left_scale));
    let order = one.len().cmp(&other.len()).then_with(|| one.cmp(&other));
    if left < 0 { order.reverse() } else { order }
}

type RowOrder = Box<dyn Fn(&Value, &Value) -> Ordering>;

/// Returns the comparison of two values of these types; `None` when the types do not compare.
fn comparer(left: &DataType, right: &DataType) -> Option<RowOrder> {
    let exact = |value: &Value| if let Value::Int(value) = value { *value } else { unreachable!() };
    let (one, other) = (left.clone(), right.clone());
    let times = |left: i128, right: i128| -> Option<RowOrder> {
        Some(Box::new(move |a, b| (exact(a) * left).cmp(&(exact(b) * right))))
    };
    match (left, right) {
        _ if is_number(left) && is_number(right) => Some(if is_float(left) || is_float(right) {
            let narrow = common_float(left, right) == Float32;
            Box::new(move |a, b| {
                let (a, b) = (float_of(a, &one), float_of(b, &other));
                if narrow { float_order((a as f32).into(), (b as f32).into()) } else { float_order(a, b) }
            })
        } else {
            Box::new(move |a, b| decimal_order(exact(a), scale_of(&one), exact(b), scale_of(&other)))
        }),
        (Utf8 | Utf8View, Utf8 | Utf8View) | (Binary, Binary) => Some(Box::new(|a, b| match (a, b) {
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => unreachable!(),
        })),
        (Boolean, Boolean) | (Date32, Date32) | (Date64, Date64) => times(1, 1),
        (Date32, Date64) => times(86_400_000, 1),
        (Date64, Date32) => times(1, 86_400_000),
        (Timestamp(left, one), Timestamp(right, other)) if one.is_some() == other.is_some() => {
            times(unit_ns(*left), unit_ns(*right))
        }
        (Duration(left), Duration(right)) => times(unit_ns(*left), unit_ns(*right)),
        _ => None,
    }
}

/// Computes Python's `divmod` of floats, with IEEE's result for a zero divisor.
macro_rules! float_divmod {
    ($name:ident, $type:ty) => {
        fn $name(left: $type, right: $type) -> ($type, $type) {
            if right == 0.0 {
                return (<$type>::NAN, <$type>::NAN);
            }
            let mut rest = left % right;
            let mut quotient = (left - rest) / right;
            if rest == 0.0 {
                rest = (0.0 as $type).copysign(right);
            } else if (right < 0.0) != (rest < 0.0) {
                rest += right;
                quotient -= 1.0;
            }
            if quotient == 0.0 {
                return ((0.0 as $type).copysign(left / right), rest);
            }
            let floor = quotient.floor();
            (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
        }
    };
}
float_divmod!(divmod64, f64);
float_divmod!(divmod32, f32);

fn float_op(op: BinaryOp, left: f64, right: f64, narrow: bool) -> f64 {
    if narrow && op != BinaryOp::Divide {
        let (left, right) = (left as f32, right as f32);
        return f64::from(match op {
            BinaryOp::Add => left + right,
            BinaryOp::Subtract => left - right,
            BinaryOp::Multiply => left * right,
            BinaryOp::FloorDivide => divmod32(left, right).0,
            _ => divmod32(left, right).1,
        });
    }
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Subtract => left - right,
        BinaryOp::Multiply => left * right,
        BinaryOp::Divide => left / right,
        BinaryOp::FloorDivide => divmod64(left, right).0,
        _ => divmod64(left, right).1,
    }
}

fn int_op(op: BinaryOp, left: i128, right: i128) -> Result<i128, Failure> {
    let floor = |left: i128, right: i128| {
        left.div_euclid(right) - i128::from(right < 0 && left.rem_euclid(right) != 0)
    };
    match op {
        BinaryOp::Add => left.checked_add(right).ok_or(Failure::Overflow),
        BinaryOp::Subtract => left.checked_sub(right).ok_or(Failure::Overflow),
        BinaryOp::Multiply => left.checked_mul(right).ok_or(Failure::Overflow),
        _ if right == 0 => Err(Failure::DivisionByZero),
        BinaryOp::FloorDivide => Ok(floor(left, right)),
        _ => Ok(left - floor(left, right) * right),
    }
}

type RowOp = Box<dyn Fn(&Value, &Value) -> Result<Value, Failure>>;

/// Returns the type and the operation of arithmetic between these types.
fn arithmetic(op: BinaryOp, left: &DataType, right: &DataType) -> Option<(DataType, RowOp)> {
    let exact = |value: &Value| if let Value::Int(value) = value { *value } else { unreachable!() };
    let (one, other) = (left.clone(), right.clone());
    if is_number(left) && is_number(right) {
        if op == BinaryOp::Divide || is_float(left) || is_float(right) {
            let out = if op == BinaryOp::Divide { Float64 } else { common_float(left, right) };
            let narrow = out == Float32;
            let compute: RowOp = Box::new(move |a, b| {
                Ok(Value::Float(float_op(op, float_of(a, &one), float_of(b, &other), narrow)))
            });
            return Some((out, compute));
        }
        let (out, left_factor, right_factor) = if is_int(left) && is_int(right) {
            (common_int(left, right)?, 1, 1)
        } else {
            let (left, right) = (scale_of(left), scale_of(right));
            let finer = left.max(right);
            match op {
                BinaryOp::Multiply => (Decimal128(38, left + right), 1, 1),
                BinaryOp::Add | BinaryOp::Subtract => (
                    Decimal128(38, finer),
                    10_i128.pow((finer - left).try_into().unwrap()),
                    10_i128.pow((finer - right).try_into().unwrap()),
                ),
                _ => return None,
            }
        };
        let result = out.clone();
        let compute: RowOp = Box::new(move |a, b| {
            let value = int_op(op, exact(a) * left_factor, exact(b) * right_factor)?;
            if holds(&out, value) { Ok(Value::Int(value)) } else { Err(Failure::Overflow) }
        });
        return Some((result, compute));
    }
    let finer = |one: TimeUnit, other: TimeUnit| if unit_ns(one) < unit_ns(other) { one } else { other };
    let (unit, out) = match (op, left, right) {
        (BinaryOp::Subtract, Timestamp(a, zone), Timestamp(b, other))
            if zone.is_some() == other.is_some() =>
        {
            (finer(*a, *b), Duration(finer(*a, *b)))
        }
        (BinaryOp::Add | BinaryOp::Subtract, Timestamp(a, zone), Duration(b))
        | (BinaryOp::Add, Duration(b), Timestamp(a, zone)) => {
            (finer(*a, *b), Timestamp(finer(*a, *b), zone.clone()))
        }
        (BinaryOp::Add | BinaryOp::Subtract, Duration(a), Duration(b)) => {
            (finer(*a, *b), Duration(finer(*a, *b)))
        }
        _ => return None,
    };
    let factor = |data_type: &DataType| match data_type {
        Timestamp(own, _) | Duration(own) => unit_ns(*own) / unit_ns(unit),
        _ => unreachable!(),
    };
    let (left_factor, right_factor) = (factor(left), factor(right));
    let compute: RowOp = Box::new(move |a, b| {
        let (a, b) = (exact(a) * left_factor, exact(b) * right_factor);
        if !holds(&Int64, a) || !holds(&Int64, b) {
            return Err(Failure::Overflow);
        }
        let value = int_op(op, a, b)?;
        if holds(&Int64, value) { Ok(Value::Int(value)) } else { Err(Failure::Overflow) }
    });
    Some((out, compute))
}

fn kleene(op: BinaryOp, left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (op, left, right) {
        (BinaryOp::And, Some(false), _) | (BinaryOp::And, _, Some(false)) => Some(false),
        (BinaryOp::Or, Some(true), _) | (BinaryOp::Or, _, Some(true)) => Some(true),
        (BinaryOp::And, Some(left), Some(right)) => Some(left && right),
        (BinaryOp::Or, Some(left), Some(right)) => Some(left || right),
        (_, Some(left), Some(right)) => Some(left != right),
        _ => None,
    }
}

fn truth(value: &Option<Value>) -> Option<bool> {
    value.as_ref().map(|value| *value == Value::Int(1))
}

/// Combines each pair of rows in which both are present.
fn zip(
    left: Side,
    right: Side,
    mut each: impl FnMut(&Value, &Value) -> Result<Value, Failure>,
) -> Result<Vec<Option<Value>>, Failure> {
    let (left, right) = (left.answer.rows?, right.answer.rows?);
    let pairs = left.iter().zip(&right);
    pairs.map(|pair| if let (Some(a), Some(b)) = pair { each(a, b).map(Some) } else { Ok(None) }).collect()
}

fn binary(op: BinaryOp, left: Side, right: Side) -> Result<Answer, Mismatch> {
    let (one, other) = (&left.answer.data_type, &right.answer.data_type);
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            if *one != Boolean || *other != Boolean {
                return Err(Mismatch);
            }
            let rows = left.answer.rows.and_then(|left| {
                let right = right.answer.rows?;
                let pairs = left.iter().zip(&right);
                let known = pairs.map(|(a, b)| kleene(op, truth(a), truth(b)));
                Ok(known.map(|value| value.map(|value| Value::Int(value.into()))).collect())
            });
            Ok(Answer { data_type: Boolean, rows })
        }
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::FloorDivide
        | BinaryOp::Modulo => {
            let (data_type, compute) = arithmetic(op, one, other).ok_or(Mismatch)?;
            Ok(Answer { data_type, rows: zip(left, right, compute) })
        }
        _ => {
            let compare = comparer(one, other).ok_or(Mismatch)?;
            let rows = zip(left, right, |a, b| Ok(Value::Int(holds_as(op, compare(a, b)).into())));
            Ok(Answer { data_type: Boolean, rows })
        }
    }
}

fn unary(op: UnaryOp, input: Answer) -> Result<Answer, Mismatch> {
    let Answer { data_type, rows } = input;
    let signed = bits(&data_type).is_some_and(|(signed, _)| signed);
    let map = |rows: Vec<Option<Value>>, each: &dyn Fn(Value) -> Result<Value, Failure>| {
        rows.into_iter().map(|value| value.map(each).transpose()).collect()
    };
    let flag = |value: bool| Some(Value::Int(value.into()));
    Ok(match op {
        UnaryOp::IsNull | UnaryOp::IsNotNull => {
            let wanted = op == UnaryOp::IsNull;
            let rows = rows.map(|rows| rows.iter().map(|value| flag(value.is_none() == wanted)).collect());
            Answer { data_type: Boolean, rows }
        }
        UnaryOp::Not if data_type == Boolean => {
            let rows = rows
                .map(|rows| rows.iter().map(|value| truth(value).and_then(|value| flag(!value))).collect());
            Answer { data_type, rows }
        }
        UnaryOp::Negate
            if signed || matches!(data_type, Float32 | Float64 | Decimal128(..) | Duration(_)) =>
        {
            let negate = |value: Value| match value {
                Value::Float(value) => Ok(Value::Float(-value)),
                Value::Int(value) if holds(&data_type, -value) => Ok(Value::Int(-value)),
                _ => Err(Failure::Overflow),
            };
            let rows = rows.and_then(|rows| map(rows, &negate));
            Answer { data_type: data_type.clone(), rows }
        }
        _ => return Err(Mismatch),
    })
}

fn side(expr: &Expr, columns: &[Named]) -> Result<Side, Mismatch> {
    let count = columns[0].rows.len();
    Ok(match expr.kind() {
        Kind::Alias(input, _) => side(input, columns)?,
        Kind::Column(name) => {
            let column = columns.iter().find(|column| column.name == *name).unwrap();
            Side {
                answer: Answer { data_type: column.data_type.clone(), rows: Ok(column.rows.clone()) },
                literal: None,
            }
        }
        Kind::Literal(literal) => {
            let data_type = literal.data_type();
            let value = as_type(literal, &data_type).ok_or(Mismatch)?;
            Side {
                answer: Answer { data_type, rows: Ok(vec![value; count]) },
                literal: Some(literal.clone()),
            }
        }
        Kind::Unary(op, input) => Side { answer: unary(*op, side(input, columns)?.answer)?, literal: None },
        Kind::Binary(op, left, right) => {
            let (left, right) = (side(left, columns)?, side(right, columns)?);
            let right = meet(right, &left, count);
            // Between two literals the right one converts, unless the left one is null.
            let left = match (&left.literal, &right.literal) {
                (Some(literal), Some(_)) if *literal != Literal::Null => left,
                _ => meet(left, &right, count),
            };
            Side { answer: binary(*op, left, right)?, literal: None }
        }
        Kind::Cast(..) | Kind::When(..) | Kind::Call(..) => unreachable!("the model knows operators only"),
    })
}

/// Evaluates the expression over these columns.
pub fn evaluate(expr: &Expr, columns: &[Named]) -> Result<Answer, Mismatch> {
    side(expr, columns).map(|side| side.answer)
}
