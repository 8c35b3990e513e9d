//! Plans that branch and come together: unions, several readers, several outputs, diamonds.

use crate::running;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::plan::{Aggregate, Outputs, Plan, WindowSpan, join_kind};
use penstock_engine::{Engine, EngineOptions, FEED_BATCHES, Input, Output, QueryOptions, Sink, feed, push};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use running::every_way;

fn schema() -> Schema {
    let column = |name: &str| Field::new(name, DataType::Int64, false);
    Schema::new(vec![column("t"), column("k"), column("v")])
}

fn stream(name: &str, delay: i64) -> Plan {
    Plan::named_stream(Some(name), &schema(), Some("t"), Span::Ticks(delay)).unwrap()
}

fn rows(rows: &[(i64, i64, i64)]) -> RecordBatch {
    let column = |pick: fn(&(i64, i64, i64)) -> i64| {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(pick))) as ArrayRef
    };
    let columns = vec![column(|row| row.0), column(|row| row.1), column(|row| row.2)];
    RecordBatch::try_new(Arc::new(schema()), columns).unwrap()
}

/// Rows for a stream, by its name.
type Data<'a> = (&'a str, Vec<(i64, i64, i64)>);

/// Runs plans over data for each stream, one batch for each `cut` rows.
fn run(options: EngineOptions, outputs: &Outputs, data: &[Data<'_>], cut: usize) -> Output {
    let engine = Engine::start(options).unwrap();
    let (mut inputs, mut feeds) = (Vec::new(), Vec::new());
    for (name, rows_of) in data {
        let (feed, end) = feed(FEED_BATCHES);
        inputs.push(((*name).to_owned(), Input::feed(end)));
        feeds.push((feed, rows_of.chunks(cut.max(1))));
    }
    let sinks = outputs.plans().iter().map(|_| Sink::collect()).collect();
    let query = engine.submit_all(outputs, inputs, sinks, QueryOptions::default()).unwrap();
    // In turn, so that no stream is far ahead of another.
    let mut open = true;
    while open {
        open = false;
        for (feed, chunks) in &mut feeds {
            if let Some(chunk) = chunks.next() {
                assert!(push(feed, rows(chunk)), "the query ended early: {:?}", query.error());
                open = true;
            }
        }
    }
    drop(feeds);
    assert!(query.wait(std::time::Duration::from_secs(60)), "the query hangs");
    let output = query.take_output();
    output.unwrap_or_else(|| panic!("{:?}", query.error()))
}

fn values(output: &Output, part: usize) -> Vec<Vec<i64>> {
    let mut rows = Vec::new();
    for batch in &output.parts[part].batches {
        for row in 0..batch.num_rows() {
            rows.push(
                batch.columns().iter().map(|column| column.as_primitive::<Int64Type>().value(row)).collect(),
            );
        }
    }
    rows.sort();
    rows
}

fn check_account(output: &Output) {
    let accounted = output.rows_contributed
        + output.rows_filtered
        + output.rows_late
        + output.rows_shed
        + output.rows_rejected;
    assert_eq!(output.rows_in + output.rows_copied, accounted, "{output:?}");
}

fn greater(column: &str, than: i64) -> Expr {
    Expr::column(column).binary(BinaryOp::Greater, Expr::literal(Literal::Int(i128::from(than)))).unwrap()
}

fn count(name: &str) -> Vec<Aggregate> {
    vec![Aggregate { kind: AggregateKind::Count, input: None, name: Some(name.to_owned()) }]
}

fn tumbling(size: i64) -> WindowSpan {
    WindowSpan::Tumbling { size: Span::Ticks(size), offset: Span::Ticks(0) }
}

fn ramp(from: i64, to: i64) -> Vec<(i64, i64, i64)> {
    (from..to).map(|t| (t, t % 3, t * 10)).collect()
}

#[test]
fn a_union_gives_the_rows_of_all() {
    for options in every_way() {
        let plan = Plan::union(&[stream("a", 0), stream("b", 0)]).unwrap();
        let output = run(options, &Outputs::from(&plan), &[("a", ramp(0, 50)), ("b", ramp(20, 90))], 7);
        let mut expected: Vec<Vec<i64>> =
            ramp(0, 50).into_iter().chain(ramp(20, 90)).map(|(t, k, v)| vec![t, k, v]).collect();
        expected.sort();
        assert_eq!(values(&output, 0), expected);
        check_account(&output);
    }
}

#[test]
fn several_outputs_read_the_same_rows() {
    for options in every_way() {
        let shared = stream("a", 0).filter(greater("v", 99)).unwrap();
        let large = shared.filter(greater("v", 500)).unwrap().select(vec![Expr::column("v")]).unwrap();
        let swapped = shared.select(vec![Expr::column("v"), Expr::column("t")]).unwrap();
        let outputs = Outputs::new(vec![
            ("all".to_owned(), shared.clone()),
            ("large".to_owned(), large),
            ("swapped".to_owned(), swapped),
            ("same".to_owned(), shared),
        ])
        .unwrap();
        let output = run(options, &outputs, &[("a", ramp(0, 100))], 9);
        assert_eq!(values(&output, 0).len(), 90);
        assert_eq!(values(&output, 1), (51..100).map(|t| vec![t * 10]).collect::<Vec<_>>());
        assert_eq!(values(&output, 2), (10..100).map(|t| vec![t * 10, t]).collect::<Vec<_>>());
        assert_eq!(values(&output, 3), values(&output, 0));
        check_account(&output);
    }
}

#[test]
fn a_diamond_comes_together_again() {
    for options in every_way() {
        let source = stream("a", 0);
        let low = source.filter(greater("v", 300)).unwrap();
        let high = source.filter(greater("v", 600)).unwrap();
        let plan = Plan::union(&[low, high, source]).unwrap();
        let output = run(options, &Outputs::from(&plan), &[("a", ramp(0, 100))], 11);
        let expected = (0..100).map(|t| 1 + usize::from(t > 30) + usize::from(t > 60)).sum::<usize>();
        assert_eq!(values(&output, 0).len(), expected);
        check_account(&output);
    }
}

#[test]
fn a_join_pairs_what_a_diamond_has_parted() {
    for options in every_way() {
        let source = stream("a", 0);
        let keyed = |plan: &Plan, value: &str| {
            plan.select(vec![Expr::column("t"), Expr::column("k"), Expr::column("v").alias(value).unwrap()])
                .unwrap()
        };
        let left = keyed(&source.filter(greater("v", 100)).unwrap(), "left");
        let right = keyed(&source, "right");
        let on = || vec!["k".to_owned()];
        let plan =
            left.join(&right, tumbling(10), [on(), on()], join_kind("inner").unwrap(), "_right").unwrap();
        let output = run(options, &Outputs::from(&plan), &[("a", ramp(0, 60))], 8);
        let mut expected = Vec::new();
        for (t, k, v) in ramp(0, 60).into_iter().filter(|row| row.2 > 100) {
            for (u, l, w) in ramp(0, 60) {
                if k == l && t / 10 == u / 10 {
                    let start = t / 10 * 10;
                    expected.push(vec![start, start + 10, k, t, v, u, w]);
                }
            }
        }
        expected.sort();
        assert_eq!(values(&output, 0), expected);
        check_account(&output);
    }
}

#[test]
fn a_window_over_a_union_waits_for_both_and_judges_rows_by_their_own_source() {
    for options in every_way() {
        let plan = Plan::union(&[stream("a", 0), stream("b", 0)]).unwrap();
        let plan = plan.window(tumbling(10), vec![], count("n"), Span::Ticks(0), None).unwrap();
        // In "a", 3 comes when the window [0, 10) is over by its own watermark; in "b", 4 does not.
        let a = vec![(1, 0, 0), (25, 0, 0), (3, 0, 0)];
        let b = vec![(2, 0, 0), (4, 0, 0), (27, 0, 0)];
        for cut in [1, 3] {
            let output =
                run(options.clone(), &Outputs::from(&plan), &[("a", a.clone()), ("b", b.clone())], cut);
            assert_eq!(values(&output, 0), [[0, 10, 3], [20, 30, 2]], "{options:?}");
            assert_eq!(output.rows_late, 1);
            check_account(&output);
        }
    }
}

#[test]
fn a_window_over_windows_holds_the_results_of_whole_windows() {
    for options in every_way() {
        let counts = stream("a", 0)
            .window(tumbling(10), vec![Expr::column("k")], count("n"), Span::Ticks(0), None)
            .unwrap();
        let plan = counts.window(tumbling(20), vec![], count("groups"), Span::Ticks(0), None).unwrap();
        let output = run(options, &Outputs::from(&plan), &[("a", ramp(0, 60))], 7);
        assert_eq!(values(&output, 0), [[0, 20, 6], [20, 40, 6], [40, 60, 6]]);
        check_account(&output);
    }
}

#[test]
fn late_rows_leave_by_a_way_of_their_own() {
    for options in every_way() {
        let counts = stream("a", 0).window(tumbling(10), vec![], count("n"), Span::Ticks(0), None).unwrap();
        let late = counts.late().unwrap();
        let outputs = Outputs::new(vec![("result".to_owned(), counts), ("late".to_owned(), late)]).unwrap();
        let data = vec![(1, 1, 1), (15, 2, 2), (3, 3, 3), (16, 4, 4), (25, 5, 5), (12, 6, 6)];
        for cut in [1, 2, 10] {
            let output = run(options.clone(), &outputs, &[("a", data.clone())], cut);
            assert_eq!(values(&output, 0), [[0, 10, 1], [10, 20, 2], [20, 30, 1]]);
            assert_eq!(values(&output, 1), [[3, 3, 3], [12, 6, 6]]);
            check_account(&output);
        }
    }
}

#[test]
fn streams_without_data_and_data_without_streams_are_refused() {
    let engine = Engine::start(EngineOptions::default()).unwrap();
    let plan = Plan::union(&[stream("north", 0), stream("south", 0)]).unwrap();
    let submit = |names: &[&str]| {
        let inputs = names.iter().map(|name| ((*name).to_owned(), Input::feed(feed(1).1))).collect();
        engine
            .submit_all(&Outputs::from(&plan), inputs, vec![Sink::discard()], QueryOptions::default())
            .err()
            .unwrap()
            .to_string()
    };
    assert!(submit(&["north"]).contains("no data for the stream \"south\""));
    let error = submit(&["north", "south", "suoth"]);
    assert!(error.contains("did you mean \"south\"?"), "{error}");
    assert!(engine.submit(&plan, Input::feed(feed(1).1), Sink::discard(), None).is_err());
}

#[test]
fn streams_that_nobody_could_tell_apart_do_not_come_together() {
    let unnamed = || Plan::stream(&schema(), Some("t"), Span::Ticks(0)).unwrap();
    let one = unnamed();
    assert!(Plan::union(&[one.clone(), one.clone()]).is_ok());
    let error = Plan::union(&[one, unnamed()]).unwrap_err().to_string();
    assert!(error.contains("name them"), "{error}");
    let error = Plan::union(&[stream("a", 0), stream("a", 5)]).unwrap_err().to_string();
    assert!(error.contains("two different streams are named \"a\""), "{error}");
    assert!(Plan::union(&[stream("a", 0), stream("a", 0)]).is_ok());
}

#[test]
fn a_plan_that_branches_comes_back_from_json() {
    let plan = Plan::union(&[stream("a", 0), stream("b", 0)]).unwrap().filter(greater("v", 10)).unwrap();
    let text = Outputs::from(&plan).to_json().unwrap();
    assert_eq!(Outputs::from_json(&text).unwrap(), Outputs::from(&plan));
    assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
}

/// A table of one row: the key 1 and a value.
fn table(value: i64) -> RecordBatch {
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("found", Arc::new(Int64Array::from(vec![value])) as ArrayRef),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn a_lookup_table_is_replaced_while_the_query_runs() {
    for options in every_way() {
        let plan = stream("a", 0)
            .named_lookup(&table(10), vec!["k".to_owned()], LookupKind::Inner, Some("shops".to_owned()))
            .unwrap();
        let engine = Engine::start(options).unwrap();
        let (mut feed, end) = feed(FEED_BATCHES);
        let query = engine.submit(&plan, Input::feed(end), Sink::collect(), None).unwrap();
        assert!(push(&mut feed, rows(&[(1, 1, 1)])));
        let started = std::time::Instant::now();
        while query.metrics().rows.contributed < 1 {
            assert!(started.elapsed() < std::time::Duration::from_secs(30), "the row was never looked up");
            std::thread::yield_now();
        }
        query.replace_lookup(Some("shops"), &table(20)).unwrap();
        assert!(push(&mut feed, rows(&[(2, 1, 2)])));
        let error = query.replace_lookup(Some("shop"), &table(30)).unwrap_err().to_string();
        assert!(error.contains("did you mean \"shops\"?"), "{error}");
        let other = rows(&[(1, 1, 1)]);
        let error = query.replace_lookup(None, &other).unwrap_err().to_string();
        assert!(error.contains("they have to be the same"), "{error}");
        drop(feed);
        assert!(query.wait(std::time::Duration::from_secs(30)));
        let output = query.take_output().unwrap();
        assert_eq!(values(&output, 0), [[1, 1, 1, 10], [2, 1, 2, 20]]);
    }
}
