//! The expected content of windows, by the rules: row by row, window by window, from a list of all rows.

use std::cmp::Ordering;

use arrow_schema::DataType;
use penstock_operators::aggregates::AggregateKind::{
    self, Count, CountDistinct, First, Last, Max, Mean, Min, Std, Sum, Var,
};
use penstock_progress::Windows;

use super::columns::{Cell, Value};
use super::{Event, Plan, Results, Row, add, inputs};

/// The engine's order: NaN after every number, -0.0 equal to 0.0.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => {
            left.partial_cmp(right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
        }
        _ => panic!("{left:?} and {right:?} are of different kinds"),
    }
}

fn aggregate(kind: AggregateKind, column: Option<usize>, events: &[&Event]) -> Cell {
    let Some(column) = column else { return Some(Value::Int(events.len() as i128)) };
    let data_type = &inputs()[column];
    let mut timed: Vec<(i64, &Value)> = events
        .iter()
        .filter_map(|event| event.inputs[column].as_ref().map(|value| (event.time, value)))
        .collect();
    let float = |value: &Value| match (value, data_type) {
        (Value::Int(value), DataType::Decimal128(_, scale)) => *value as f64 / 10_f64.powi(i32::from(*scale)),
        (Value::Int(value), _) => *value as f64,
        (Value::Float(value), _) => *value,
        (Value::Bytes(_), _) => panic!("not a number"),
    };
    let values: Vec<&Value> = timed.iter().map(|(_, value)| *value).collect();
    let count = values.len();
    let total: f64 =
        values.iter().filter(|_| !matches!(data_type, DataType::Utf8)).map(|value| float(value)).sum();
    match kind {
        Count => return Some(Value::Int(count as i128)),
        CountDistinct => {
            let different: std::collections::HashSet<&Value> = values.into_iter().collect();
            return Some(Value::Int(different.len() as i128));
        }
        _ if count == 0 => return None,
        Var | Std if count < 2 => return None,
        _ => {}
    }
    timed.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| order(left.1, right.1)));
    let mut sorted = values.clone();
    sorted.sort_by(|left, right| order(left, right));
    Some(match kind {
        Min => sorted[0].clone(),
        Max => sorted[count - 1].clone(),
        First => timed[0].1.clone(),
        Last => timed[count - 1].1.clone(),
        Mean => Value::Float(total / count as f64),
        Sum if matches!(data_type, DataType::Float64) => Value::Float(total),
        Sum => {
            let int = |value: &&Value| if let Value::Int(value) = value { *value } else { 0 };
            Value::Int(values.iter().map(int).sum())
        }
        Var | Std => {
            let mean = total / count as f64;
            let squares: f64 = values.iter().map(|value| (float(value) - mean).powi(2)).sum();
            let variance = squares / (count - 1) as f64;
            Value::Float(if kind == Var { variance } else { variance.sqrt() })
        }
        Count | CountDistinct => unreachable!("given above"),
    })
}

fn values(plan: &Plan, events: &[&Event]) -> Row {
    let of = |(number, (kind, column)): (usize, &(AggregateKind, Option<usize>))| {
        let own: Vec<&Event> =
            events.iter().copied().filter(|event| event.port == plan.port_of(number)).collect();
        aggregate(*kind, *column, &own)
    };
    plan.aggregates.iter().enumerate().map(of).collect()
}

fn clamp(time: i128) -> i64 {
    time.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Returns events by key, in order of first appearance.
fn by_key<'a>(events: &[&'a Event]) -> Vec<(Row, Vec<&'a Event>)> {
    let mut keys: Vec<(Row, Vec<&Event>)> = Vec::new();
    for event in events {
        match keys.iter_mut().find(|(key, _)| *key == event.key) {
            Some((_, events)) => events.push(event),
            None => keys.push((event.key.clone(), vec![event])),
        }
    }
    keys
}

/// Returns the expected results of these events, and the late ones.
pub fn expect(plan: &Plan, events: &[Event]) -> (Results, Vec<Event>) {
    match plan.windows {
        Windows::Aligned(_) => aligned(plan, events),
        Windows::Session { gap } => sessions(plan, gap, events),
    }
}

fn aligned(plan: &Plan, events: &[Event]) -> (Results, Vec<Event>) {
    let Windows::Aligned(windows) = plan.windows else { panic!("windows on a grid") };
    let (size, slide) = (i128::from(windows.size()), i128::from(windows.slide()));
    let offset = i128::from(windows.offset());
    let mut late = Vec::new();
    // Start of the window; on-time rows and correcting rows.
    let mut held: std::collections::BTreeMap<i128, (Vec<&Event>, Vec<&Event>)> = Default::default();
    for event in events {
        let (time, mark) = (i128::from(event.time), i128::from(event.mark));
        let mut counts = false;
        let mut start = offset + (time - offset).div_euclid(slide) * slide;
        while start + size > time {
            let end = start + size;
            if end > mark {
                held.entry(start).or_default().0.push(event);
                counts = true;
            } else if end + i128::from(plan.allowed_lateness) > mark {
                held.entry(start).or_default().1.push(event);
                counts = true;
            }
            start -= slide;
        }
        if !counts {
            late.push(event.clone());
        }
    }
    let mut results = Results::new();
    for (start, (on_time, corrections)) in held {
        let (from, to, time) = (clamp(start), clamp(start + size), clamp(start + size - 1));
        for (key, events) in by_key(&on_time) {
            add(&mut results, (from, to, key, false), values(plan, &events), time);
        }
        let all: Vec<&Event> = on_time.iter().chain(&corrections).copied().collect();
        for (key, _) in by_key(&corrections) {
            let events: Vec<&Event> = all.iter().copied().filter(|event| event.key == key).collect();
            add(&mut results, (from, to, key, true), values(plan, &events), time);
        }
    }
    (results, late)
}

fn sessions(plan: &Plan, gap: i64, events: &[Event]) -> (Results, Vec<Event>) {
    let is_late = |event: &&Event| i128::from(event.time) + i128::from(gap) <= i128::from(event.mark);
    let late = events.iter().filter(is_late).cloned().collect();
    let on_time: Vec<&Event> = events.iter().filter(|event| !is_late(event)).collect();
    let mut results = Results::new();
    for (key, mut events) in by_key(&on_time) {
        events.sort_by_key(|event| event.time);
        let near =
            |left: &&Event, right: &&Event| i128::from(right.time) - i128::from(left.time) < i128::from(gap);
        for session in events.chunk_by(near) {
            let end = i128::from(session[session.len() - 1].time) + i128::from(gap);
            let place = (session[0].time, clamp(end), key.clone(), false);
            add(&mut results, place, values(plan, session), clamp(end - 1));
        }
    }
    (results, late)
}
