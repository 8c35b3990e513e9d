//! Functions of operands of known types.

use arrow_schema::DataType;
use penstock_memory::Physical;
use penstock_types::{PlanError, Span, Tick, TypeName};

use crate::calendar::CalendarField;
use crate::compile::cast::CastChain;
use crate::compile::unify::{to_number, unify};
use crate::compile::{Typed, label, physical};
use crate::conversion::Rounding;
use crate::expr::Expr;
use crate::function::ScalarFunction;
use crate::literal::Literal;
use crate::map::Map;
use crate::matching::Match;
use crate::node::CompiledNode;
use crate::typing::{as_decimal, integer, is_float, is_string, per_day};

/// Compiles `function` of `inputs`, as many as it takes.
pub(crate) fn call(expr: &Expr, function: ScalarFunction, inputs: Vec<Typed>) -> Result<Typed, PlanError> {
    if function == ScalarFunction::Coalesce {
        return coalesce(expr, inputs);
    }
    let mut inputs = inputs.into_iter();
    let input = inputs.next().expect("EXPR-1: a call has as many operands as its function takes");
    match function {
        ScalarFunction::Abs
        | ScalarFunction::Floor
        | ScalarFunction::Ceil
        | ScalarFunction::Round
        | ScalarFunction::Sqrt => numeric(expr, function, input),
        ScalarFunction::Length
        | ScalarFunction::ByteLength
        | ScalarFunction::Lower
        | ScalarFunction::Upper
        | ScalarFunction::Contains
        | ScalarFunction::StartsWith
        | ScalarFunction::EndsWith => text(expr, function, input, inputs.next()),
        _ => temporal(expr, function, input, inputs.next()),
    }
}

fn wrong(expr: &Expr, function: ScalarFunction, given: &DataType, wanted: &str) -> PlanError {
    PlanError::mismatch(expr, format!("{}() needs {wanted}, not {}", function.name(), TypeName(given)))
}

fn coalesce(expr: &Expr, inputs: Vec<Typed>) -> Result<Typed, PlanError> {
    let (inputs, data_type) = unify(expr, inputs)?;
    if data_type == DataType::Null {
        return Ok(Typed::null());
    }
    let nullable = inputs.iter().all(|input| input.nullable);
    let inputs = inputs.into_iter().map(|input| input.node).collect();
    let node = CompiledNode::Coalesce { on: physical(&data_type), inputs };
    Ok(Typed { node, data_type, nullable, literal: None })
}

fn numeric(expr: &Expr, function: ScalarFunction, input: Typed) -> Result<Typed, PlanError> {
    let (from, nullable) = (input.data_type.clone(), input.nullable);
    let typed = |node, data_type| Ok(Typed { node, data_type, nullable, literal: None });
    let is_number = is_float(&from) || as_decimal(&from).is_some();
    match function {
        ScalarFunction::Sqrt if is_number => {
            typed(CompiledNode::map(Map::Sqrt, to_number(input, &DataType::Float64)), DataType::Float64)
        }
        ScalarFunction::Abs if is_number || matches!(from, DataType::Duration(_)) => {
            let signed = integer(&from).is_none_or(|(signed, _)| signed);
            let label = label(expr, &from);
            let node =
                if signed { CompiledNode::checked(Map::Abs, input.node, &label, &from) } else { input.node };
            typed(node, from)
        }
        ScalarFunction::Abs => Err(wrong(expr, function, &from, "a number or a duration")),
        _ if !is_number => Err(wrong(expr, function, &from, "a number")),
        _ => {
            let rounding = match function {
                ScalarFunction::Floor => Rounding::Floor,
                ScalarFunction::Ceil => Rounding::Ceil,
                _ => Rounding::Nearest,
            };
            match from {
                DataType::Decimal128(precision, scale) if scale > 0 => {
                    // 9.99 becomes 10.00: one more digit before the point.
                    let to = DataType::Decimal128((precision + 1).min(38), scale);
                    let map = Map::RoundDecimal { rounding, unit: 10_i128.pow(scale.unsigned_abs().into()) };
                    typed(CompiledNode::checked(map, input.node, &label(expr, &to), &from), to)
                }
                DataType::Float32 | DataType::Float64 => {
                    typed(CompiledNode::map(Map::RoundFloat(rounding), input.node), from)
                }
                whole => typed(input.node, whole),
            }
        }
    }
}

fn text(
    expr: &Expr,
    function: ScalarFunction,
    input: Typed,
    pattern: Option<Typed>,
) -> Result<Typed, PlanError> {
    if !is_string(&input.data_type) {
        return Err(wrong(expr, function, &input.data_type, "a string"));
    }
    let (from, mut nullable) = (input.data_type, input.nullable);
    let (map, data_type) = match function {
        ScalarFunction::Length => (Map::Length, DataType::Int64),
        ScalarFunction::ByteLength => (Map::ByteLength, DataType::Int64),
        ScalarFunction::Lower => (Map::Lower, from.clone()),
        ScalarFunction::Upper => (Map::Upper, from.clone()),
        _ => {
            let pattern = pattern.expect("EXPR-1: a call has as many operands as its function takes");
            if !is_string(&pattern.data_type) && pattern.data_type != DataType::Null {
                return Err(wrong(expr, function, &pattern.data_type, "a string to look for"));
            }
            nullable |= pattern.nullable;
            let op = match function {
                ScalarFunction::Contains => Match::Contains,
                ScalarFunction::StartsWith => Match::StartsWith,
                _ => Match::EndsWith,
            };
            let node = CompiledNode::Match { op, left: Box::new(input.node), right: Box::new(pattern.node) };
            return Ok(Typed { node, data_type: DataType::Boolean, nullable, literal: None });
        }
    };
    // Capital letters may take more bytes than small ones, and a column's capacity is limited.
    let node = CompiledNode::checked(map, input.node, &label(expr, &data_type), &from);
    Ok(Typed { node, data_type, nullable, literal: None })
}

fn temporal(
    expr: &Expr,
    function: ScalarFunction,
    input: Typed,
    every: Option<Typed>,
) -> Result<Typed, PlanError> {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    let (from, nullable) = (input.data_type.clone(), input.nullable);
    let typed = |node, data_type| Ok(Typed { node, data_type, nullable, literal: None });
    let (of_day, part) = match function {
        ScalarFunction::Hour => (true, CalendarField::Hour),
        ScalarFunction::Minute => (true, CalendarField::Minute),
        ScalarFunction::Second => (true, CalendarField::Second),
        ScalarFunction::Millisecond => (true, CalendarField::Millisecond),
        ScalarFunction::Year => (false, CalendarField::Year),
        ScalarFunction::Month => (false, CalendarField::Month),
        ScalarFunction::Day => (false, CalendarField::Day),
        ScalarFunction::Weekday => (false, CalendarField::Weekday),
        _ => (false, CalendarField::OrdinalDay),
    };
    let has_day = matches!(from, Timestamp(..) | Date32 | Date64);
    let has_time = matches!(from, Timestamp(..) | Time32(_) | Time64(_));
    if function == ScalarFunction::Truncate && has_day {
        let ticks = step(expr, every, &from)?;
        let on = physical(&from);
        let wide = if on == Physical::I64 {
            input.node
        } else {
            CompiledNode::map(Map::Widen(Physical::I64), input.node)
        };
        let label = label(expr, &from);
        let floored = CompiledNode::checked(Map::Floor(ticks), wide, &label, &from);
        let narrow = Map::Narrow { to: Physical::I32, low: i32::MIN.into(), high: i32::MAX.into() };
        return match on {
            Physical::I64 => typed(floored, from),
            _ => typed(CompiledNode::checked(narrow, floored, &label, &from), from),
        };
    }
    if !(if of_day { has_time } else { has_day }) {
        let wanted = if of_day { "a timestamp or a time" } else { "a timestamp or a date" };
        return Err(wrong(expr, function, &from, wanted));
    }
    if function == ScalarFunction::Date && from == Date32 {
        return typed(input.node, from);
    }
    let to = if function == ScalarFunction::Date { Date32 } else { DataType::Int64 };
    let mut factor = per_day(&from).expect("times count parts of days");
    let mut chain = CastChain { node: input.node, label: label(expr, &to), now: from.clone() };
    if physical(&from) != Physical::I64 {
        chain.node = CompiledNode::map(Map::Widen(Physical::I64), chain.node);
    }
    // Zone offsets are whole seconds, so milliseconds are the same everywhere.
    if let Timestamp(unit, zone) = &from
        && part != CalendarField::Millisecond
    {
        (chain, factor) = chain.local(expr, *unit, zone.as_deref())?;
    }
    let node = match function {
        ScalarFunction::Date => chain.days(factor).node,
        _ if matches!(from, Time32(_) | Time64(_)) => {
            CompiledNode::checked(Map::PartOfDay { part, per_day: factor }, chain.node, &chain.label, &from)
        }
        _ => CompiledNode::map(Map::Part { part, per_day: factor }, chain.node),
    };
    typed(node, to)
}

/// Returns the step of a truncation in units of the column.
fn step(expr: &Expr, every: Option<Typed>, of: &DataType) -> Result<i64, PlanError> {
    let every = every.expect("EXPR-1: a call has as many operands as its function takes");
    let span = match every.literal {
        Some(Literal::String(text)) => text.parse()?,
        Some(Literal::Duration(micros)) => Span::Nanos(i128::from(micros) * 1000),
        Some(Literal::Int(ticks)) => match i64::try_from(ticks) {
            Ok(ticks) => Span::Ticks(ticks),
            Err(_) => return Err(PlanError::mismatch(expr, "the step does not fit the time column")),
        },
        _ => {
            let reason = "truncate() needs a duration that is the same for all rows, such as \"1h\"";
            return Err(PlanError::mismatch(expr, reason));
        }
    };
    let tick = Tick::of(of).expect("times and dates have ticks");
    let ticks = span.ticks(tick)?;
    if ticks <= 0 {
        return Err(PlanError::mismatch(expr, "truncate() needs a duration above zero"));
    }
    if *of == DataType::Date64 && ticks % 86_400_000 != 0 {
        return Err(PlanError::mismatch(expr, "truncate() of a date needs whole days"));
    }
    Ok(ticks)
}
