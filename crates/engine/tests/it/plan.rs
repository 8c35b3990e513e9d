//! Plans as JSON: every plan reads back, and runs.

use crate::running;
use crate::tables;

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use penstock_engine::{Aggregate, Plan, RunOptions};
use penstock_expr::{BinaryOp, Expr, Literal, UnaryOp};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use tables::{every_type, table_of_every_type};

fn col(name: &str) -> Expr {
    Expr::column(name)
}

fn lit(value: i128) -> Expr {
    Expr::literal(Literal::Int(value))
}

fn text(value: &str) -> Expr {
    Expr::literal(Literal::String(value.to_owned()))
}

fn binary(left: Expr, op: &str, right: Expr) -> Expr {
    left.binary(BinaryOp::from_symbol(op).unwrap(), right).unwrap()
}

fn aggregate(kind: AggregateKind, input: Option<Expr>, name: Option<&str>) -> Aggregate {
    Aggregate { kind, input, name: name.map(str::to_owned) }
}

fn events() -> Plan {
    let schema = Schema::new(vec![
        Field::new("event_time", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("event_type", DataType::Utf8, true),
        Field::new("ad_id", DataType::Int64, false),
        Field::new("price", DataType::Decimal128(10, 2), true),
    ]);
    Plan::stream(&schema, Some("event_time"), "2s".parse().unwrap()).unwrap()
}

fn campaigns() -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("ad_id", Arc::new(Int64Array::from(vec![1, 2, 3])) as _, false),
        ("campaign", Arc::new(StringArray::from(vec![Some("a"), None, Some("b")])) as _, true),
    ])
    .unwrap()
}

/// One plan per kind of step, and one with all of them.
fn plans() -> Vec<Plan> {
    let stream = events();
    let filtered = stream.filter(binary(col("event_type"), "==", text("view"))).unwrap();
    let selected = stream.select(vec![
        col("event_time").alias("t").unwrap(),
        col("price"),
        binary(col("ad_id"), "%", lit(10)),
    ]);
    let widened = stream
        .with_columns(vec![
            binary(col("ad_id"), "*", lit(2)).alias("double").unwrap(),
            col("price").unary(UnaryOp::IsNull).unwrap().alias("free").unwrap(),
            lit(7).alias("price").unwrap(),
        ])
        .unwrap();
    let inner = filtered.lookup(&campaigns(), vec!["ad_id".to_owned()], LookupKind::Inner).unwrap();
    let left = stream.lookup(&campaigns(), vec!["ad_id".to_owned()], LookupKind::Left).unwrap();
    let windowed = inner
        .tumbling(
            "10s".parse().unwrap(),
            vec![col("campaign"), binary(col("ad_id"), "//", lit(100)).alias("hundred").unwrap()],
            vec![
                aggregate(AggregateKind::Count, None, None),
                aggregate(AggregateKind::Sum, Some(col("price")), None),
                aggregate(AggregateKind::Mean, Some(binary(col("price"), "*", lit(2))), Some("doubled")),
                aggregate(AggregateKind::Max, Some(col("event_type")), None),
            ],
        )
        .unwrap();
    let behind = windowed.filter(binary(col("count"), ">", lit(1))).unwrap();
    let untimed =
        Plan::stream(&Schema::new(vec![Field::new("x", DataType::Float64, true)]), None, Span::Ticks(0));
    vec![stream, filtered, selected.unwrap(), widened, inner, left, windowed, behind, untimed.unwrap()]
}

fn check_round_trip(plan: &Plan) {
    let json = plan.to_json().unwrap();
    let again = Plan::from_json(&json).unwrap_or_else(|error| panic!("{error}\n{}\n{json}", plan.explain()));
    assert_eq!(&again, plan, "{}", plan.explain());
    assert_eq!(again.explain(), plan.explain());
    assert_eq!(again.schema(), plan.schema());
    assert_eq!(again.time(), plan.time());
    assert_eq!(again.to_json().unwrap(), json);
    assert!(
        running::run_with(&again, &RunOptions::default(), &[]).is_ok(),
        "PLAN-1: a plan that exists can run"
    );
}

#[test]
fn every_step_reads_back() {
    let plans = plans();
    plans.iter().for_each(check_round_trip);
    for (number, plan) in plans.iter().enumerate() {
        for other in &plans[..number] {
            assert_ne!(plan, other, "different steps are different plans");
        }
    }
}

#[test]
fn streams_of_every_type_read_back() {
    let fields: Vec<Field> = every_type()
        .into_iter()
        .enumerate()
        .map(|(n, data_type)| Field::new(format!("column \"{n}\" \u{1F6B0}"), data_type, n % 2 == 0))
        .collect();
    check_round_trip(&Plan::stream(&Schema::new(fields), None, Span::Ticks(0)).unwrap());
}

#[test]
fn literals_read_back_inside_a_plan() {
    let schema =
        Schema::new(vec![Field::new("f", DataType::Float64, true), Field::new("u", DataType::UInt64, true)]);
    let plan = Plan::stream(&schema, None, Span::Ticks(0)).unwrap();
    for value in [f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 2.0, 0.1 + 0.2] {
        let float = Expr::literal(Literal::Float(value));
        check_round_trip(&plan.filter(binary(col("f"), "<", float)).unwrap());
    }
    for value in [i64::MIN.into(), u64::MAX.into(), 0_i128] {
        check_round_trip(&plan.filter(binary(col("u"), ">", lit(value))).unwrap());
    }
    let odd = "quotes \" and \\ and \n and \0 and \u{1F600}";
    check_round_trip(&plan.with_columns(vec![text(odd).alias(odd).unwrap()]).unwrap());
}

#[test]
fn lookup_tables_of_every_type_read_back() {
    for rows in [0, 1, 2, 9, 300] {
        for (before, after) in [(0, 0), (13, 5)] {
            let table = table_of_every_type(before + rows + after).slice(before, rows);
            let schema = Schema::new(vec![Field::new("key", DataType::Int64, true)]);
            let stream = Plan::stream(&schema, None, Span::Ticks(0)).unwrap();
            for kind in [LookupKind::Inner, LookupKind::Left] {
                let plan = stream.lookup(&table, vec!["key".to_owned()], kind).unwrap();
                assert_eq!(plan.schema().fields().len(), table.num_columns());
                check_round_trip(&plan);
            }
        }
    }
}

#[test]
fn keys_of_every_type_read_back() {
    let table = table_of_every_type(6);
    let mut accepted = 0;
    for field in table.schema().fields() {
        let schema = Schema::new(vec![Field::new(field.name(), field.data_type().clone(), true)]);
        let stream = Plan::stream(&schema, None, Span::Ticks(0)).unwrap();
        match stream.lookup(&table, vec![field.name().clone()], LookupKind::Left) {
            Ok(plan) => {
                check_round_trip(&plan);
                accepted += 1;
            }
            // Six rows of bools hold one of them twice.
            Err(error) => assert!(error.to_string().contains("same key"), "{error}"),
        }
    }
    assert!(accepted > 20, "only {accepted} types of keys were accepted");
}
