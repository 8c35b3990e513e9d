//! Plans in words and as JSON, and what is refused where it is written.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use penstock_expr::{BinaryOp, Expr, Literal, UnaryOp};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_plan::{Aggregate, Plan, WindowSpan};
use penstock_types::{PlanError, Span};

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

#[test]
fn a_plan_explains_itself() {
    let plans = plans();
    insta::assert_snapshot!(plans[7].explain(), @r##"
    stream        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: decimal128(10, 2)
                  time event_time, delay 2s
    filter        col("event_type") == "view"
    lookup        inner, on ad_id, 3 rows, adds campaign
    window        tumbling 10s, by col("campaign"), hundred = col("ad_id") // 100
                  count = count()
                  price_sum = sum(col("price"))
                  doubled = mean(col("price") * 2)
                  event_type_max = max(col("event_type"))
    filter        col("count") > 1
    result        window_start: timestamp[ms] not null, window_end: timestamp[ms] not null, campaign: string, hundred: int64 not null, count: int64 not null, price_sum: decimal128(38, 2), doubled: float64, event_type_max: string
    "##);
    insta::assert_snapshot!(plans[3].explain(), @r##"
    stream        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: decimal128(10, 2)
                  time event_time, delay 2s
    with_columns  double = col("ad_id") * 2, free = col("price").is_null(), price = 7
    result        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: int64 not null, double: int64 not null, free: bool not null
    "##);
    insta::assert_snapshot!(plans[2].explain(), @r##"
    stream        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: decimal128(10, 2)
                  time event_time, delay 2s
    select        t = col("event_time"), col("price"), col("ad_id") % 10
    result        t: timestamp[ms] not null, price: decimal128(10, 2), col("ad_id") % 10: int64 not null
    "##);
    insta::assert_snapshot!(plans[5].explain(), @r##"
    stream        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: decimal128(10, 2)
                  time event_time, delay 2s
    lookup        left, on ad_id, 3 rows, adds campaign
    result        event_time: timestamp[ms] not null, event_type: string, ad_id: int64 not null, price: decimal128(10, 2), campaign: string
    "##);
    insta::assert_snapshot!(plans[8].explain(), @r##"
    stream        x: float64
    result        x: float64
    "##);
}

#[test]
fn a_window_over_integers_explains_itself_in_units() {
    let schema = Schema::new(vec![Field::new("tick", DataType::UInt32, false)]);
    let plan = Plan::stream(&schema, Some("tick"), Span::Ticks(5)).unwrap();
    let plan =
        plan.tumbling(Span::Ticks(100), vec![], vec![aggregate(AggregateKind::Count, None, None)]).unwrap();
    insta::assert_snapshot!(plan.explain(), @r##"
    stream        tick: uint32 not null
                  time tick, delay 5 units
    window        tumbling 100 units
                  count = count()
    result        window_start: int64 not null, window_end: int64 not null, count: int64 not null
    "##);
}

#[test]
fn the_json_of_a_plan_is_stable() {
    insta::assert_snapshot!(plans()[5].to_json().unwrap(), @r##"{"penstock_plan":2,"steps":[{"step":"stream","schema":[{"name":"event_time","type":"timestamp[ms]","nullable":false},{"name":"event_type","type":"string","nullable":true},{"name":"ad_id","type":"int64","nullable":false},{"name":"price","type":"decimal128(10, 2)","nullable":true}],"time":"event_time","delay":2000},{"step":"lookup","table":{"rows":3,"columns":[{"name":"ad_id","type":"int64","nullable":false,"nulls":null,"buffers":["AQAAAAAAAAACAAAAAAAAAAMAAAAAAAAA"]},{"name":"campaign","type":"string","nullable":true,"nulls":"BQ==","buffers":["AAAAAAEAAAABAAAAAgAAAA==","YWI="]}]},"on":["ad_id"],"how":"left"}]}"##);
    insta::assert_snapshot!(plans()[2].to_json().unwrap(), @r##"{"penstock_plan":2,"steps":[{"step":"stream","schema":[{"name":"event_time","type":"timestamp[ms]","nullable":false},{"name":"event_type","type":"string","nullable":true},{"name":"ad_id","type":"int64","nullable":false},{"name":"price","type":"decimal128(10, 2)","nullable":true}],"time":"event_time","delay":2000},{"step":"select","columns":[[{"column":"event_time"},{"alias":"t"}],[{"column":"price"}],[{"column":"ad_id"},{"literal":{"int":"10"}},{"binary":"%"}]]}]}"##);
}

#[test]
fn plans_that_make_no_sense_are_refused_where_they_are_written() {
    let stream = events();
    let count = || vec![aggregate(AggregateKind::Count, None, None)];
    let ten = || "10s".parse().unwrap();
    let errors: Vec<(&str, PlanError)> = vec![
        ("needs a bool", stream.filter(col("ad_id")).unwrap_err()),
        ("did you mean \"ad_id\"", stream.filter(binary(col("adid"), "==", lit(1))).unwrap_err()),
        ("at least one column", stream.select(vec![]).unwrap_err()),
        ("two columns are named \"ad_id\"", stream.select(vec![col("ad_id"), col("ad_id")]).unwrap_err()),
        ("is the time column", stream.with_columns(vec![lit(1).alias("event_time").unwrap()]).unwrap_err()),
        ("at least one key", stream.lookup(&campaigns(), vec![], LookupKind::Inner).unwrap_err()),
        (
            "named twice",
            stream.lookup(&campaigns(), vec!["ad_id".into(), "ad_id".into()], LookupKind::Inner).unwrap_err(),
        ),
        ("unknown column", stream.lookup(&campaigns(), vec!["price".into()], LookupKind::Inner).unwrap_err()),
        ("at least one aggregate", stream.tumbling(ten(), vec![], vec![]).unwrap_err()),
        ("must be positive", stream.tumbling(Span::Ticks(0), vec![], count()).unwrap_err()),
        ("whole number", stream.tumbling("1us".parse().unwrap(), vec![], count()).unwrap_err()),
        (
            "time column \"event_time\" was dropped: keep it",
            stream.select(vec![col("price")]).unwrap().tumbling(ten(), vec![], count()).unwrap_err(),
        ),
        (
            "could still be corrected",
            stream
                .window(
                    WindowSpan::Tumbling { size: ten(), offset: Span::Ticks(0) },
                    vec![],
                    count(),
                    ten(),
                    None,
                )
                .unwrap()
                .tumbling(ten(), vec![], count())
                .unwrap_err(),
        ),
        (
            "two columns are named \"count\"",
            stream.tumbling(ten(), vec![lit(1).alias("count").unwrap()], count()).unwrap_err(),
        ),
    ];
    for (words, error) in errors {
        assert!(error.to_string().contains(words), "{words:?} is not in: {error}");
    }
    let once = stream.lookup(&campaigns(), vec!["ad_id".to_owned()], LookupKind::Inner).unwrap();
    let twice = once.lookup(&campaigns(), vec!["ad_id".to_owned()], LookupKind::Inner).unwrap_err();
    assert!(twice.to_string().contains("\"campaign\", and so has the stream"), "{twice}");
}
