//! Rows that an operator has no answer for: they fail the query, are skipped, or leave as dead letters. Each is counted.

use crate::running;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::plan::{Aggregate, Outputs, Plan};
use penstock_engine::results::Next;
use penstock_engine::{
    Engine, EngineOptions, FEED_BATCHES, Input, LETTER_COLUMNS, OnError, Output, Query, QueryOptions, Sink,
    feed, push,
};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use running::every_way;

const EVER: Duration = Duration::from_secs(30);

fn col(name: &str) -> Expr {
    Expr::column(name)
}

fn binary(left: Expr, op: BinaryOp, right: Expr) -> Expr {
    left.binary(op, right).unwrap()
}

fn number(value: i128) -> Expr {
    Expr::literal(Literal::Int(value))
}

/// Divides by a column, keeps what is large enough by another that may fail as well, and counts.
fn plan() -> Plan {
    let schema = Schema::new(vec![
        Field::new("t", DataType::Int64, false),
        Field::new("x", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]);
    let stream = Plan::stream(&schema, Some("t"), Span::Ticks(0)).unwrap();
    let inverse = binary(number(100), BinaryOp::FloorDivide, col("x")).alias("inverse").unwrap();
    let large =
        binary(binary(number(7), BinaryOp::Modulo, col("inverse")), BinaryOp::GreaterEqual, number(0));
    stream.with_columns(vec![inverse]).unwrap().filter(large).unwrap()
}

fn rows(from: i64, to: i64) -> RecordBatch {
    // x counts from 0 to 4, and is null for the next; inverse is 0 for 101 and beyond.
    let times: Vec<i64> = (from..to).collect();
    let x: Vec<Option<i64>> =
        times.iter().map(|t| [Some(0), Some(1), Some(200), Some(3), None][(t % 5) as usize]).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("t", Arc::new(Int64Array::from(times.clone()))),
        ("x", Arc::new(Int64Array::from(x))),
        (
            "name",
            Arc::new(StringArray::from_iter_values(times.iter().map(|t| format!("row number {t} of many")))),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, name != "t")))
        .unwrap()
}

fn submit(options: EngineOptions, plan: &Plan, on_error: OnError) -> (Engine, Query) {
    let engine = Engine::start(options).unwrap();
    let (mut feed, end) = feed(FEED_BATCHES);
    let options = QueryOptions { on_error, ..QueryOptions::default() };
    let inputs = vec![("stream".to_owned(), Input::feed(end))];
    let query = engine.submit_all(&Outputs::from(plan), inputs, vec![Sink::collect()], options).unwrap();
    std::thread::spawn(move || {
        for start in (0..1000).step_by(100) {
            if !push(&mut feed, rows(start, start + 100)) {
                return;
            }
        }
    });
    (engine, query)
}

fn check(output: &Output, rejected: u64) {
    assert_eq!((output.rows_in, output.rows_rejected), (1000, rejected));
    assert_eq!(
        output.rows_in + output.rows_copied,
        output.rows_contributed + output.rows_filtered + output.rows_late + output.rows_shed + rejected
    );
}

#[test]
fn skipped_rows_are_counted_and_the_others_go_on() {
    for options in every_way() {
        let (_engine, query) = submit(options, &plan(), OnError::Skip);
        assert!(query.wait(EVER));
        let output = query.take_output().unwrap();
        // One in five divides by zero, one has no remainder; null is an answer, but not one that the filter keeps.
        check(&output, 400);
        assert_eq!((output.rows_out(), output.rows_filtered), (400, 200));
    }
}

#[test]
fn without_being_told_the_query_fails() {
    let (_engine, query) = submit(EngineOptions::default(), &plan(), OnError::Fail);
    assert!(query.wait(EVER));
    let error = query.error().unwrap().to_string();
    assert!(error.contains("with_columns") && error.contains("zero"), "{error}");
}

#[test]
fn dead_letters_hold_the_whole_row_its_operator_and_the_reason() {
    for options in every_way() {
        let (_engine, query) = submit(options, &plan(), OnError::Letters);
        let letters = query.letters().unwrap().clone();
        let (mut times, mut by_filter) = (Vec::new(), 0);
        loop {
            assert!(letters.wait(EVER), "the query hangs");
            let batch = match letters.take() {
                Next::Batch(batch) => batch,
                Next::Nothing => continue,
                Next::Ended => break,
            };
            let text = |name: &str, row: usize| {
                batch.column_by_name(name).unwrap().as_string::<i32>().value(row).to_owned()
            };
            for row in 0..batch.num_rows() {
                let time = batch.column_by_name("t").unwrap().as_primitive::<Int64Type>().value(row);
                let name = batch.column_by_name("name").unwrap();
                let name = arrow_cast::cast(name, &DataType::Utf8).unwrap();
                assert_eq!(name.as_string::<i32>().value(row), format!("row number {time} of many"));
                let operator = text(LETTER_COLUMNS[0], row);
                assert_eq!(operator, if time % 5 == 0 { "with_columns" } else { "filter" });
                assert!(text(LETTER_COLUMNS[1], row).contains("zero"));
                by_filter += usize::from(operator == "filter");
                assert_eq!(batch.column_by_name("inverse").is_some(), operator == "filter");
                times.push(time);
            }
        }
        assert!(query.wait(EVER));
        times.sort_unstable();
        let expected: Vec<i64> = (0..1000).filter(|t| matches!(t % 5, 0 | 2)).collect();
        assert_eq!((times, by_filter), (expected, 200));
        check(&query.take_output().unwrap(), 400);
    }
}

#[test]
fn letters_that_nobody_reads_hold_the_query_up_and_do_not_pile_up() {
    let (_engine, query) = submit(EngineOptions::default(), &plan(), OnError::Letters);
    assert!(!query.wait(Duration::from_millis(200)), "the letters went nowhere");
    query.stop();
    assert!(query.wait(EVER));
}

#[test]
fn a_window_counts_the_rows_that_are_left() {
    for options in every_way() {
        let sum = Aggregate {
            kind: AggregateKind::Sum,
            input: Some(binary(number(6), BinaryOp::FloorDivide, col("x"))),
            name: None,
        };
        let schema_of = plan();
        let plan = schema_of.declaration().unwrap().tumbling(Span::Ticks(1000), vec![], vec![sum]).unwrap();
        let (_engine, query) = submit(options, &plan, OnError::Skip);
        assert!(query.wait(EVER));
        let output = query.take_output().unwrap();
        check(&output, 200);
        let total = output.batches()[0].column(2).as_primitive::<Int64Type>().value(0);
        assert_eq!(total, 200 * (6 + 2));
    }
}
