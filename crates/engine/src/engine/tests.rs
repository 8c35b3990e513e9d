//! Tests of an engine from inside.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;

use super::*;
use crate::instantiate::{Origin, OwnOrigin};
use crate::options::Strategy;
use penstock_plan::Aggregate;
use penstock_tasks::readers::replay::{Replay, ReplayReader};
use penstock_tasks::writers::discard::DiscardWriter;

fn replay() -> Replay {
    let times = Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("t", Arc::clone(&times)), ("k", times)]).unwrap();
    Replay { batches: Arc::from([batch]), rows_per_second: None, rounds: None }
}

/// Counts of rows by key.
fn counts() -> Plan {
    let schema = Schema::new(["t", "k"].map(|name| Field::new(name, DataType::Int64, false)).to_vec());
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let stream = Plan::stream(&schema, Some("t"), Span::Ticks(0)).unwrap();
    stream.tumbling(Span::Ticks(1000), vec![Expr::column("k")], vec![count]).unwrap()
}

fn started(workers: usize) -> Engine {
    Engine::start(EngineOptions { workers: Some(workers), ..EngineOptions::default() }).unwrap()
}

#[test]
fn a_row_reaches_one_of_the_lanes() {
    let lanes = 3;
    let engine = started(lanes);
    let ways = Ways {
        on_error: OnError::Fail,
        letters: None,
        spreading: Spreading { parallelism: lanes, strategy: Strategy::Auto },
        part: None,
        functions: &[],
    };
    let reader = ReplayReader::new(replay(), clock::system());
    let origins: Vec<Box<dyn Origin>> = vec![Box::new(OwnOrigin(Box::new(reader)))];
    let plan = counts();
    let made = engine.assembler().query(&Outputs::from(&plan), origins, vec![Box::new(DiscardWriter)], ways);
    let tasks = made.unwrap().tasks;
    let splitters: Vec<_> = tasks.iter().filter(|task| task.readers.len() == lanes).collect();
    assert_eq!(splitters.len(), 1);
    let parts: Vec<_> = splitters[0].readers.iter().map(|&lane| (lane, tasks[lane].part.as_ref())).collect();
    let parts: Vec<_> = parts.iter().map(|(lane, part)| (lane, part.expect("a lane is a part"))).collect();
    assert!(parts.iter().all(|(lane, (number, _))| *lane - number == splitters[0].readers[0]));
    let taken: f64 = parts.iter().map(|(_, (_, share))| share.fraction()).sum();
    assert!((taken - 1.0).abs() < 1e-9, "a row is paid for once: {taken}");
}

#[test]
fn a_name_is_free_again_once_its_query_has_ended() {
    let engine = started(1);
    let submit = || engine.submit(&counts(), Input::replay(replay()), Sink::discard(), Some("counts"));
    let query = submit().unwrap();
    assert!(matches!(submit(), Err(StartError::NameTaken { name }) if name == "counts"));
    assert_eq!((engine.queries().len(), engine.metrics().queries), (1, 1));
    assert_eq!(engine.metrics().tasks, query.metrics().tasks.len());
    query.stop();
    assert!(query.wait(Duration::from_secs(30)));
    assert_eq!((engine.queries().len(), engine.metrics().tasks), (0, 0));
    submit().unwrap();
}
