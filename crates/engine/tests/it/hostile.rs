//! JSON from anywhere gives a plan that can run or an error: no panic, and no more memory than the
//! text accounts for.

use crate::running;
use crate::tables;

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::plan::Outputs;
use penstock_engine::{Aggregate, Plan, RunOptions};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{PlanError, Span};
use proptest::prelude::*;
use running::run_with;
use serde_json::{Value, json};
use tables::table_of_every_type;

/// A plan with every kind of step and a table of a few columns.
fn plan() -> Plan {
    let schema = Schema::new(vec![
        Field::new("t", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("k", DataType::Int64, true),
    ]);
    let table = RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef, false),
        ("text", Arc::new(StringArray::from(vec![Some("one"), None, Some("three")])) as ArrayRef, true),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef, true),
    ]);
    let stream = Plan::stream(&schema, Some("t"), Span::Ticks(5)).unwrap();
    let positive = Expr::column("k").binary(BinaryOp::Greater, Expr::literal(Literal::Int(0))).unwrap();
    let counts =
        vec![Aggregate { kind: AggregateKind::Count, input: Some(Expr::column("text")), name: None }];
    stream
        .filter(positive)
        .and_then(|plan| {
            plan.with_columns(vec![Expr::literal(Literal::Float(f64::NAN)).alias("nan").unwrap()])
        })
        .and_then(|plan| plan.lookup(&table.unwrap(), vec!["k".to_owned()], LookupKind::Left))
        .and_then(|plan| plan.select(vec![Expr::column("t"), Expr::column("text"), Expr::column("flag")]))
        .and_then(|plan| plan.tumbling(Span::Ticks(10), vec![Expr::column("flag")], counts))
        .unwrap()
}

/// The number of the lookup step.
const LOOKUP: usize = 3;

fn document() -> Value {
    serde_json::from_str(&plan().to_json().unwrap()).unwrap()
}

/// The JSON with one place changed.
fn changed(pointer: &str, value: Value) -> String {
    let mut document = document();
    *document.pointer_mut(pointer).unwrap_or_else(|| panic!("there is no {pointer}")) = value;
    document.to_string()
}

/// The JSON with the table changed.
fn with_table(change: impl FnOnce(&mut Value)) -> String {
    let mut document = document();
    change(&mut document["steps"][LOOKUP]["table"]);
    document.to_string()
}

fn base64(bytes: &[u8]) -> Value {
    Value::String(STANDARD.encode(bytes))
}

fn offsets(values: &[i32]) -> Value {
    base64(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
}

fn refused(text: &str) -> PlanError {
    Plan::from_json(text).err().unwrap_or_else(|| panic!("this was accepted: {text}"))
}

#[test]
fn the_text_that_is_changed_below_is_good() {
    assert_eq!(Plan::from_json(&document().to_string()).unwrap(), plan());
}

#[test]
fn versions_and_shapes_that_are_not_ours_are_refused() {
    for version in [json!(0), json!(3), json!(-1), json!("1"), json!(null), json!(1.5), json!(u64::MAX)] {
        refused(&changed("/penstock_plan", version));
    }
    for text in [
        "",
        "null",
        "[]",
        "{}",
        "1",
        "\"plan\"",
        r#"{"penstock_plan":1}"#,
        r#"{"penstock_plan":1,"steps":[]}"#,
    ] {
        refused(text);
    }
    refused(&changed("/steps/0", json!({"step": "filter", "predicate": [{"column": "k"}]})));
    refused(&changed("/steps/1", document()["steps"][0].clone()));
    refused(&changed("/steps/1/step", json!("explode")));
    refused(&changed("/steps/1/step", json!(null)));
}

#[test]
fn steps_read_what_stands_before_them_and_every_step_is_read() {
    let stream = document()["steps"][0].clone();
    let with = |inputs: Value, outputs: Value| {
        let union = json!({"step": "union"});
        json!({"penstock_plan": 2, "steps": [stream, union], "inputs": inputs, "outputs": outputs})
            .to_string()
    };
    assert!(Plan::from_json(&with(json!([[], [0, 0]]), json!(null))).is_ok());
    for inputs in [
        json!([[], [1]]),
        json!([[], [2]]),
        json!([[1], [0]]),
        json!([[], []]),
        json!([[], [-1]]),
        json!([[]]),
        json!([[], [0], []]),
        json!([[], [u64::MAX]]),
        json!([[0], [0]]),
        json!({}),
    ] {
        refused(&with(inputs, json!(null)));
    }
    let outputs = |outputs: Value| Outputs::from_json(&with(json!([[], [0]]), outputs));
    assert!(outputs(json!([["a", 1], ["b", 0]])).is_ok());
    for wrong in [json!(null), json!([]), json!([["a", 2]]), json!([["a", 1], ["a", 0]]), json!([["a", 0]])] {
        assert!(outputs(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn plans_of_the_first_version_are_read() {
    let mut old = document();
    old["penstock_plan"] = json!(1);
    let window = old["steps"][5].clone();
    old["steps"][5] = json!({
        "step": "tumbling",
        "size": window["window"]["size"],
        "by": window["by"],
        "aggregates": window["aggregates"],
    });
    assert_eq!(Plan::from_json(&old.to_string()).unwrap(), plan());
}

#[test]
fn fields_that_nobody_knows_are_refused_at_every_level() {
    let places = [
        "",
        "/steps/0",
        "/steps/0/schema/0",
        "/steps/1",
        "/steps/3",
        "/steps/3/table",
        "/steps/3/table/columns/0",
        "/steps/5",
        "/steps/5/aggregates/0",
    ];
    let mut accepted = Vec::new();
    for place in places {
        let mut document = document();
        let object = document.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.insert("surprise".to_owned(), json!(1));
        if Plan::from_json(&document.to_string()).is_ok() {
            accepted.push(place);
        }
    }
    assert!(accepted.is_empty(), "accepted at {accepted:?}");
}

#[test]
fn every_field_is_needed() {
    fn objects(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(
                    fields
                        .iter()
                        .filter(|(_, value)| !value.is_null())
                        .map(|(name, _)| format!("{at}/{name}")),
                );
                fields.iter().for_each(|(name, value)| objects(value, format!("{at}/{name}"), found));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| objects(item, format!("{at}/{n}"), found));
            }
            _ => {}
        }
    }
    let mut places = Vec::new();
    objects(&document(), String::new(), &mut places);
    assert!(places.len() > 40, "only {} fields were found", places.len());
    // Without these the plan means something else, or the same.
    let optional = ["/time", "/input", "/name", "/nulls"];
    for place in places {
        let (parent, name) = place.rsplit_once('/').unwrap();
        if parent.contains("/schema/") || !optional.contains(&format!("/{name}").as_str()) {
            let mut document = document();
            document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
            refused(&document.to_string());
        }
    }
}

#[test]
fn types_that_cannot_run_are_refused() {
    for name in [
        "",
        "int",
        "list<int8>",
        "null",
        "float16",
        "decimal256(10, 2)",
        "decimal128(0, 0)",
        "decimal128(39, 0)",
        "decimal128(10, 99)",
        "decimal128(10, 11)",
        "timestamp[m]",
        "time32[ns]",
        "fixed_size_binary[4]",
    ] {
        refused(&changed("/steps/0/schema/1/type", json!(name)));
        refused(&with_table(|table| table["columns"][2]["type"] = json!(name)));
    }
    let nested = format!("{}int8{}", "dictionary<values=".repeat(10_000), ", indices=int8>".repeat(10_000));
    refused(&changed("/steps/0/schema/1/type", json!(nested)));
    refused(&with_table(|table| {
        table["columns"][1]["type"] = json!("dictionary<values=string, indices=int32>")
    }));
}

#[test]
fn tables_that_lie_about_their_size_are_refused() {
    for rows in [json!(2), json!(4), json!(64), json!(-1), json!(1.5), json!("3"), json!(null)] {
        refused(&with_table(|table| table["rows"] = rows));
    }
    refused(&with_table(|table| table["columns"] = json!([])));
    refused(&with_table(|table| table["columns"] = json!(null)));
    refused(&with_table(|table| table["columns"][0]["buffers"] = json!([])));
    refused(&with_table(|table| table["columns"][0]["buffers"] = json!(["", ""])));
    refused(&with_table(|table| table["columns"][0]["buffers"][0] = json!("")));
    refused(&with_table(|table| table["columns"][0]["buffers"][0] = base64(&[0; 23])));
    refused(&with_table(|table| table["columns"][1]["buffers"][0] = offsets(&[0, 3, 3])));
    refused(&with_table(|table| table["columns"][1]["buffers"][0] = json!("")));
    refused(&with_table(|table| table["columns"][2]["buffers"][0] = json!("")));
    refused(&with_table(|table| table["columns"][1]["nulls"] = json!("")));
    refused(&with_table(|table| table["columns"][1]["type"] = json!("large_string")));
    refused(&with_table(|table| table["columns"][1]["type"] = json!("string_view")));
    refused(&with_table(|table| table["columns"][1]["type"] = json!("int64")));
}

#[test]
fn tables_with_broken_bytes_are_refused() {
    for text in ["A", "AAA", "====", "AAAA====", "!!!!", "AQAAAAAAAAACAAAAAAAAAAMAAAAAAAA", "\u{1F600}"] {
        refused(&with_table(|table| table["columns"][0]["buffers"][0] = json!(text)));
        refused(&with_table(|table| table["columns"][1]["nulls"] = json!(text)));
    }
    for wrong in
        [[0, 3, 3, 9], [0, 3, 2, 8], [-1, 3, 3, 8], [0, 3, 3, i32::MAX], [5, 3, 3, 8], [i32::MIN, 0, 0, 0]]
    {
        refused(&with_table(|table| table["columns"][1]["buffers"][0] = offsets(&wrong)));
    }
    refused(&with_table(|table| table["columns"][1]["buffers"][1] = base64(&[0xFF; 8])));
    // A character cut in two by an offset.
    refused(&with_table(|table| {
        table["columns"][1]["buffers"] = json!([offsets(&[0, 1, 2, 8]), base64("\u{e9}eeeeee".as_bytes())]);
    }));
}

#[test]
fn tables_that_break_their_own_promises_are_refused() {
    refused(&with_table(|table| table["columns"][0]["nulls"] = base64(&[0b101])));
    refused(&with_table(|table| table["columns"][1]["nullable"] = json!(false)));
    refused(&with_table(|table| table["columns"][2]["name"] = json!("text")));
    let one: Vec<u8> = [1_i64, 2, 1].iter().flat_map(|key| key.to_le_bytes()).collect();
    let twice = refused(&with_table(|table| table["columns"][0]["buffers"][0] = base64(&one)));
    assert!(twice.to_string().contains("same key in rows 0 and 2"), "{twice}");
    refused(&changed("/steps/3/on", json!([])));
    refused(&changed("/steps/3/on", json!(["text"])));
    refused(&changed("/steps/3/how", json!("outer")));
}

#[test]
fn expressions_and_windows_that_cannot_run_are_refused() {
    for predicate in [
        json!([]),
        json!([{"column": "k"}]),
        json!([{"column": "nobody"}]),
        json!([{"column": "k"}, {"column": "k"}]),
        json!([{"column": "k"}, {"binary": ">"}]),
        json!([{"binary": ">"}]),
        json!([{"column": "k"}, {"column": "k"}, {"binary": "<>"}]),
        json!([{"column": "k"}, {"literal": {"int": "170141183460469231731687303715884105727"}}, {"binary": ">"}]),
        json!([{"column": "k"}, {"literal": {"decimal": {"value": "1", "scale": -128}}}, {"binary": "*"}]),
        json!({"column": "k"}),
    ] {
        refused(&changed("/steps/1/predicate", predicate));
    }
    let mut deep = vec![json!({"column": "k"})];
    (0..300).for_each(|_| deep.push(json!({"unary": "-"})));
    refused(&changed("/steps/1/predicate", Value::Array(deep)));
    for size in [json!(0), json!(-1), json!(i64::MIN), json!(u64::MAX), json!("10s"), json!(1.5)] {
        refused(&changed("/steps/5/window/size", size));
    }
    for delay in [json!(-1), json!(i64::MIN), json!(u64::MAX), json!("2s")] {
        refused(&changed("/steps/0/delay", delay));
    }
    refused(&changed("/steps/0/time", json!("nobody")));
    refused(&changed("/steps/0/time", json!(null)));
    refused(&changed("/steps/5/window/kind", json!("hopping")));
    refused(&changed("/steps/5/aggregates/0/kind", json!("median")));
    refused(&changed("/steps/5/aggregates/0/kind", json!("sum")));
    assert!(Plan::from_json(&changed("/steps/5/window/size", json!(i64::MAX))).is_ok());
    assert!(Plan::from_json(&changed("/steps/0/delay", json!(i64::MAX))).is_ok());
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        refused(&nested);
        refused(&format!("{{\"penstock_plan\":1,\"steps\":{nested}}}"));
        let document = document().to_string();
        refused(&document.replacen("\"predicate\":[", &format!("\"predicate\":[{nested},"), 1));
    }
}

/// Largest size that this process had in memory or had asked for, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_claim_of_many_rows_takes_no_memory() {
    let before = peak_kib();
    let whole = table_of_every_type(3);
    let schema = Schema::new(vec![Field::new("key", DataType::Int64, true)]);
    let stream = Plan::stream(&schema, None, Span::Ticks(0)).unwrap();
    let text = stream.lookup(&whole, vec!["key".to_owned()], LookupKind::Inner).unwrap().to_json().unwrap();
    let claims =
        [1 << 33, 1 << 40, u64::from(u32::MAX), i64::MAX as u64, u64::MAX - 7, u64::MAX / 8, u64::MAX];
    for rows in claims {
        refused(&text.replace("\"rows\":3", &format!("\"rows\":{rows}")));
        // Each column first, with nothing before it that would be refused.
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let columns = document["steps"][1]["table"]["columns"].as_array().unwrap().clone();
        assert!(columns.len() > 30);
        for column in columns {
            document["steps"][1]["table"] = json!({"rows": rows, "columns": [column]});
            refused(&document.to_string());
        }
    }
    let grown = peak_kib() - before;
    assert!(grown < 1 << 20, "{grown} KiB more were asked for");
}

#[test]
fn every_beginning_of_a_plan_is_refused() {
    let text = document().to_string();
    for (end, _) in text.char_indices() {
        refused(&text[..end]);
    }
}

/// Everything below a plan, so that one place may be replaced.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| pointers(item, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_stands_anywhere_a_plan_runs_or_is_refused(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut text = document();
        for (place, by) in places {
            let mut all = Vec::new();
            pointers(&text, "", &mut all);
            let other = text.pointer(&all[by.index(all.len())]).unwrap().clone();
            let odd = [json!(null), json!(-1), json!(u64::MAX), json!(""), json!([]), json!({}), json!("k"), json!(true), other];
            *text.pointer_mut(&all[place.index(all.len())]).unwrap() = by.get(&odd).clone();
        }
        if let Ok(plan) = Plan::from_json(&text.to_string()) {
            prop_assert!(run_with(&plan, &RunOptions::default(), &[]).is_ok(), "PLAN-1: a plan that exists can run: {}", text);
            prop_assert_eq!(&Plan::from_json(&plan.to_json().unwrap()).unwrap(), &plan);
        }
    }

    #[test]
    fn whatever_bytes_change_a_plan_runs_or_is_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select("0123456789AZaz+/=\"[]{},:-.eE\\".chars().collect::<Vec<_>>())), 1..4),
    ) {
        let mut text: Vec<char> = document().to_string().chars().collect();
        for (place, char) in changes {
            let place = place.index(text.len());
            text[place] = char;
        }
        let text: String = text.into_iter().collect();
        if let Ok(plan) = Plan::from_json(&text) {
            prop_assert!(run_with(&plan, &RunOptions::default(), &[]).is_ok(), "PLAN-1: a plan that exists can run: {}", text);
        }
    }
}
