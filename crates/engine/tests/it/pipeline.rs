//! Plans at work: answers that do not depend on how rows were cut into batches and runs, and an
//! account of every row.

use crate::running;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, StringViewArray,
    TimestampMillisecondArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use penstock_engine::{
    Aggregate, Chaining, EngineOptions, Mode, Output, Plan, PolicyKind, RunError, RunOptions,
};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_memory::MemoryKind;
use penstock_memory::platform::Platform;
use penstock_memory::shape::ShapeOptions;
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{ComputeError, Span};
use proptest::prelude::*;
use running::{run_as, run_with};

fn col(name: &str) -> Expr {
    Expr::column(name)
}

fn lit(value: i128) -> Expr {
    Expr::literal(Literal::Int(value))
}

fn binary(left: Expr, op: &str, right: Expr) -> Expr {
    left.binary(BinaryOp::from_symbol(op).unwrap(), right).unwrap()
}

fn aggregate(kind: AggregateKind, input: Option<&str>) -> Aggregate {
    Aggregate { kind, input: input.map(col), name: None }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("t", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("k", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
        Field::new("x", DataType::Int64, true),
    ]))
}

/// A row of the stream.
#[derive(Clone, Debug)]
struct Row {
    t: i64,
    k: Option<i64>,
    s: Option<&'static str>,
    x: Option<i64>,
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let time =
        prop_oneof![Just((0_i64..200).boxed()), Just((-50_i64..50).boxed()), Just((0_i64..2_000).boxed())];
    time.prop_flat_map(|time| {
        let row = (
            time,
            prop::option::weighted(0.9, 0_i64..8),
            prop::option::weighted(0.8, prop::sample::select(vec!["", "a", "b", "a string behind its view"])),
            prop::option::weighted(0.8, -5_i64..20),
        );
        prop::collection::vec(row.prop_map(|(t, k, s, x)| Row { t, k, s, x }), 0..120)
    })
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.t))),
        Arc::new(rows.iter().map(|row| row.k).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.s).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.x).collect::<Int64Array>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// The same rows in another order of columns and with strings in another encoding.
fn dressed_up(batch: &RecordBatch) -> RecordBatch {
    let strings: StringViewArray = batch.column(2).as_string::<i32>().iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("extra", Arc::new(Int32Array::from(vec![0; batch.num_rows()]))),
        ("x", Arc::clone(batch.column(3))),
        ("s", Arc::new(strings)),
        ("k", Arc::clone(batch.column(1))),
        ("t", Arc::clone(batch.column(0))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn run(plan: &Plan, batches: &[RecordBatch]) -> Result<Output, RunError> {
    run_with(plan, &RunOptions::default(), batches)
}

/// Ways to run a plan, none of which may change the answer.
fn any_options() -> impl Strategy<Value = EngineOptions> {
    let memory = prop::sample::select(vec![MemoryKind::Blocks, MemoryKind::Queue]);
    let chain = prop::sample::select(vec![Chaining::Auto, Chaining::Off]);
    let platform = prop::sample::select(vec![None, Some(Platform::Portable)]);
    let block_rows = prop::sample::select(vec![None, Some(1), Some(2), Some(7), Some(64)]);
    let chunk_blocks = prop::sample::select(vec![None, Some(1), Some(3)]);
    let rows_per_run = prop::sample::select(vec![None, Some(1), Some(2), Some(5), Some(40)]);
    let run = (memory, chain, platform, block_rows, chunk_blocks, rows_per_run).prop_map(
        |(memory, chain, platform, block_rows, chunk_blocks, rows_per_run)| RunOptions {
            memory,
            chain,
            platform,
            shape: ShapeOptions { block_rows, chunk_blocks, ..ShapeOptions::default() },
            rows_per_run,
            budget_bytes: Some(4 << 20),
            ..RunOptions::default()
        },
    );
    let workers = prop::sample::select(vec![Some(1), Some(2), Some(3)]);
    let policy = prop::sample::select(PolicyKind::NAMES.map(|(_, policy)| policy).to_vec());
    let mode = prop::sample::select(vec![Mode::State, Mode::State, Mode::Threads]);
    (workers, policy, mode, run).prop_map(|(workers, policy, mode, run)| EngineOptions {
        workers,
        policy,
        mode,
        run,
        ..EngineOptions::default()
    })
}

/// A result as text, a line per row; the column names on top.
fn lines(output: &Output) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in output.batches() {
        assert_eq!(batch.schema(), output.first().schema);
        let columns: Vec<ArrayRef> =
            batch.columns().iter().map(|column| cast(column, &DataType::Utf8).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| match column.is_valid(row) {
                true => format!("{:?}", column.as_string::<i32>().value(row)),
                false => "null".to_owned(),
            };
            lines.push(columns.iter().map(cell).collect::<Vec<_>>().join(" | "));
        }
    }
    lines
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn check_account(output: &Output) {
    assert_eq!(output.rows_in, output.rows_contributed + output.rows_filtered + output.rows_late);
    assert_eq!(output.rows_late > 0, output.late_by.is_some());
    let reports = &output.operators;
    assert_eq!(reports[0].name, "stream");
    assert_eq!(reports[0].profile.rows_in, output.rows_in);
    assert_eq!(reports.last().unwrap().name, "sink");
    assert_eq!(reports.last().unwrap().profile.rows_out as usize, output.rows_out());
    for pair in reports.windows(2) {
        assert_eq!(pair[0].profile.rows_out, pair[1].profile.rows_in, "{} to {}", pair[0].name, pair[1].name);
    }
}

fn names() -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(Int64Array::from(vec![Some(0), Some(2), None, Some(5)])) as ArrayRef, true),
        (
            "name",
            Arc::new(StringArray::from(vec![Some("zero"), None, Some("nobody"), Some("five")])) as ArrayRef,
            true,
        ),
    ])
    .unwrap()
}

fn stream(delay: i64) -> Plan {
    Plan::stream(&schema(), Some("t"), Span::Ticks(delay)).unwrap()
}

/// Plans of every shape.
fn plans(delay: i64, size: i64) -> Vec<Plan> {
    let aggregates = || {
        vec![
            aggregate(AggregateKind::Count, None),
            aggregate(AggregateKind::Sum, Some("x")),
            aggregate(AggregateKind::Min, Some("s")),
            aggregate(AggregateKind::Mean, Some("x")),
        ]
    };
    let window = |plan: Plan, by: Vec<Expr>| plan.tumbling(Span::Ticks(size), by, aggregates()).unwrap();
    let stream = || stream(delay);
    let positive = || stream().filter(binary(col("x"), ">", lit(0))).unwrap();
    let on = || vec!["k".to_owned()];
    vec![
        stream(),
        positive(),
        stream()
            .select(vec![col("s"), binary(col("x"), "*", lit(3)), col("k").alias("key").unwrap()])
            .unwrap(),
        positive().lookup(&names(), on(), LookupKind::Inner).unwrap(),
        stream()
            .lookup(&names(), on(), LookupKind::Left)
            .unwrap()
            .filter(binary(col("k"), "!=", lit(5)))
            .unwrap(),
        window(stream(), vec![]),
        window(positive(), vec![col("k")]),
        window(stream().lookup(&names(), on(), LookupKind::Left).unwrap(), vec![col("name"), col("s")]),
        window(
            positive().lookup(&names(), on(), LookupKind::Inner).unwrap(),
            vec![binary(col("x"), "%", lit(3))],
        ),
        window(
            stream().with_columns(vec![binary(col("x"), "+", lit(1)).alias("x").unwrap()]).unwrap(),
            vec![col("s")],
        )
        .filter(binary(col("count"), ">", lit(1)))
        .unwrap(),
        window(
            stream().select(vec![col("t").alias("time").unwrap(), col("x"), col("s")]).unwrap(),
            vec![col("s")],
        )
        .select(vec![col("x_sum"), col("window_end")])
        .unwrap(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_do_not_change_the_answer(
        rows in any_rows(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        delay in prop_oneof![Just(0_i64), 0_i64..100, Just(i64::MAX)],
        size in prop_oneof![Just(1_i64), 2_i64..60],
        options in any_options(),
    ) {
        let whole = batch(&rows);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(rows.len() + 1)).collect();
        cuts.extend([0, rows.len()]);
        cuts.sort_unstable();
        // Some pieces are empty; every other one looks different and holds the same.
        let pieces: Vec<RecordBatch> = cuts.windows(2).enumerate().map(|(n, cut)| {
            let piece = whole.slice(cut[0], cut[1] - cut[0]);
            if n % 2 == 0 { piece } else { dressed_up(&piece) }
        }).collect();
        for plan in plans(delay, size) {
            let one = run(&plan, std::slice::from_ref(&whole)).unwrap();
            let many = run_as(&plan, &options, &pieces).unwrap();
            let has_window = plan.explain().contains("window        ");
            let order = |lines: Vec<String>| if has_window { sorted(lines) } else { lines };
            prop_assert_eq!(order(lines(&one)), order(lines(&many)), "{}", plan.explain());
            for output in [&one, &many] {
                check_account(output);
                prop_assert_eq!(output.rows_in, rows.len() as u64);
            }
            prop_assert_eq!(many.batches_in, pieces.len() as u64);
            prop_assert_eq!((one.rows_contributed, one.rows_filtered, one.rows_late, one.late_by),
                (many.rows_contributed, many.rows_filtered, many.rows_late, many.late_by), "{}", plan.explain());
        }
    }

    /// Lateness is the source's: rows that a filter drops have moved the watermark all the same.
    #[test]
    fn windows_count_what_a_map_counts(rows in any_rows(), delay in 0_i64..80, size in 1_i64..60, options in any_options()) {
        let (mut largest, mut late, mut filtered, mut late_by) = (None::<i64>, 0, 0, None);
        let mut expected: BTreeMap<(i64, Option<i64>), (i64, Option<i64>)> = BTreeMap::new();
        for row in &rows {
            let mark = largest.map(|largest| largest.saturating_sub(delay));
            largest = largest.max(Some(row.t));
            if row.x.is_none_or(|x| x <= 0) {
                filtered += 1;
            } else if let Some(mark) = mark.filter(|mark| row.t.div_euclid(size) < mark.div_euclid(size)) {
                late += 1;
                late_by = late_by.max(Some(mark.abs_diff(row.t)));
            } else {
                let (count, sum) = expected.entry((row.t.div_euclid(size) * size, row.k)).or_default();
                *count += 1;
                *sum = Some(sum.unwrap_or(0) + row.x.unwrap_or(0));
            }
        }
        let plan = stream(delay).filter(binary(col("x"), ">", lit(0))).unwrap();
        let counted = vec![aggregate(AggregateKind::Count, None), aggregate(AggregateKind::Sum, Some("x")), aggregate(AggregateKind::Mean, Some("x"))];
        let plan = plan.tumbling(Span::Ticks(size), vec![col("k")], counted).unwrap();
        let output = run_as(&plan, &options, &[batch(&rows)]).unwrap();
        check_account(&output);
        prop_assert_eq!((output.rows_filtered, output.rows_late, output.late_by), (filtered, late, late_by));
        let mut given = BTreeMap::new();
        for batch in output.batches() {
            let time = |column: usize| batch.column(column).as_primitive::<TimestampMillisecondType>().values();
            let ints = |column: usize| batch.column(column).as_primitive::<Int64Type>();
            let means = batch.column(5).as_primitive::<Float64Type>();
            for row in 0..batch.num_rows() {
                prop_assert_eq!(time(1)[row] - time(0)[row], size);
                let key = ints(2).is_valid(row).then(|| ints(2).value(row));
                let sum = ints(4).is_valid(row).then(|| ints(4).value(row));
                let count = ints(3).value(row);
                prop_assert_eq!(means.value(row), sum.unwrap() as f64 / count as f64);
                prop_assert_eq!(given.insert((time(0)[row], key), (count, sum)), None, "a key stands in a window once");
            }
        }
        prop_assert_eq!(given, expected);
    }
}

#[test]
fn no_rows_give_no_rows() {
    for plan in plans(0, 10) {
        for batches in [vec![], vec![batch(&[])], vec![batch(&[]), dressed_up(&batch(&[]))]] {
            let output = run(&plan, &batches).unwrap();
            assert_eq!((output.rows_in, output.rows_out(), output.batches_in), (0, 0, batches.len() as u64));
            assert_eq!(&output.first().schema, plan.schema());
            check_account(&output);
        }
    }
}

#[test]
fn an_empty_table_matches_nobody() {
    let rows = [Row { t: 0, k: Some(0), s: None, x: None }];
    for table in [names().slice(0, 0), names().slice(2, 1)] {
        for (kind, expected) in [(LookupKind::Inner, 0), (LookupKind::Left, 1)] {
            let plan = stream(0).lookup(&table, vec!["k".to_owned()], kind).unwrap();
            let output = run(&plan, &[batch(&rows)]).unwrap();
            assert_eq!(output.rows_out(), expected);
            check_account(&output);
        }
    }
}

#[test]
fn a_left_lookup_may_give_nulls_where_the_table_has_none() {
    let table = RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(Int64Array::from(vec![0])) as ArrayRef, false),
        ("price", Arc::new(Int64Array::from(vec![7])) as ArrayRef, false),
    ]);
    let plan = stream(0).lookup(&table.unwrap(), vec!["k".to_owned()], LookupKind::Left).unwrap();
    assert!(plan.schema().field_with_name("price").unwrap().is_nullable());
    let rows = [0, 1].map(|k| Row { t: 0, k: Some(k), s: None, x: None });
    let output = run(&plan.select(vec![col("price")]).unwrap(), &[batch(&rows)]).unwrap();
    assert_eq!(lines(&output), ["\"7\"", "null"]);
}

#[test]
fn a_stream_without_columns_counts_its_rows() {
    let empty = Arc::new(Schema::empty());
    let plan = Plan::stream(&empty, None, Span::Ticks(0)).unwrap();
    let options = RecordBatchOptions::new().with_row_count(Some(10_000));
    let batch = RecordBatch::try_new_with_options(empty, vec![], &options).unwrap();
    let output = run(&plan, &[batch.clone(), batch]).unwrap();
    assert_eq!((output.rows_in, output.rows_out()), (20_000, 20_000));
}

#[test]
fn late_rows_are_counted_and_said_how_late() {
    let row = |t| Row { t, k: None, s: None, x: Some(1) };
    let plan = stream(1_000)
        .tumbling(Span::Ticks(1_000), vec![], vec![aggregate(AggregateKind::Count, None)])
        .unwrap();
    // At 61,500 the watermark is 60,500. The window up to 60,000 is over, the one from there on is not.
    let rows: Vec<Row> = [61_500, 59_999, 60_000, 500, 61_000].map(row).to_vec();
    let output = run(&plan, &[batch(&rows)]).unwrap();
    assert_eq!((output.rows_contributed, output.rows_late, output.late_by), (3, 2, Some(60_000)));
    assert_eq!(output.late_by_text().as_deref(), Some("1m"));
    check_account(&output);
}

#[test]
fn bounds_have_the_type_of_the_time_column() {
    let zoned = DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()));
    for (time, bounds) in [
        (DataType::Int8, DataType::Int64),
        (DataType::Int16, DataType::Int64),
        (DataType::Int32, DataType::Int64),
        (DataType::Int64, DataType::Int64),
        (DataType::UInt8, DataType::Int64),
        (DataType::UInt16, DataType::Int64),
        (DataType::UInt32, DataType::Int64),
        (DataType::Date32, DataType::Date32),
        (DataType::Date64, DataType::Date64),
        (DataType::Timestamp(TimeUnit::Second, None), DataType::Timestamp(TimeUnit::Second, None)),
        (zoned.clone(), zoned),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("t", time.clone(), true)]));
        let times: ArrayRef = Arc::new(Int32Array::from(vec![3, 25, 27, 4, 29]));
        let times = match &time {
            DataType::Date64 | DataType::Timestamp(..) => {
                cast(&cast(&times, &DataType::Int64).unwrap(), &time)
            }
            _ => cast(&times, &time),
        };
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![times.unwrap()]).unwrap();
        let plan = Plan::stream(&schema, Some("t"), Span::Ticks(5)).unwrap();
        let plan =
            plan.tumbling(Span::Ticks(10), vec![], vec![aggregate(AggregateKind::Count, None)]).unwrap();
        let output = run(&plan, &[batch]).unwrap();
        assert_eq!(output.rows_late, 1, "{time:?}");
        let mut windows = Vec::new();
        for batch in output.batches() {
            for column in [0, 1] {
                assert_eq!(batch.column(column).data_type(), &bounds, "{time:?}");
            }
            let narrow = |column: usize| match batch.column(column).data_type() {
                DataType::Date32 => {
                    cast(&cast(batch.column(column), &DataType::Int32).unwrap(), &DataType::Int64).unwrap()
                }
                _ => cast(batch.column(column), &DataType::Int64).unwrap(),
            };
            let (starts, ends, counts) = (narrow(0), narrow(1), narrow(2));
            let value = |array: &ArrayRef, row: usize| array.as_primitive::<Int64Type>().value(row);
            windows.extend(
                (0..batch.num_rows())
                    .map(|row| (value(&starts, row), value(&ends, row), value(&counts, row))),
            );
        }
        windows.sort_unstable();
        assert_eq!(windows, [(0, 10, 1), (20, 30, 3)], "{time:?}");
    }
}

#[test]
fn a_null_in_the_time_column_is_named_by_its_row_in_the_whole_input() {
    let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Int64, true)]));
    let plan = Plan::stream(&schema, Some("t"), Span::Ticks(0)).unwrap();
    let batch = |times: Vec<Option<i64>>| {
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(times))]).unwrap()
    };
    let whole = batch((0..20_000).map(Some).collect());
    let holed = batch((0..20_000).map(|row| (row != 12_345).then_some(row)).collect());
    match run(&plan, &[whole, holed]) {
        Err(RunError::NullTime { column, row }) => assert_eq!((column.as_str(), row), ("t", 32_345)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_that_does_not_fit_is_named_by_its_number() {
    let good = batch(&[]);
    let bad = good.project(&[0, 1, 2]).unwrap();
    match run(&stream(0), &[good.clone(), good, bad]) {
        Err(RunError::Batch { number, error }) => assert_eq!((number, error.column.as_str()), (2, "x")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_that_cannot_be_computed_is_named_with_its_operator() {
    let row = |x| Row { t: 0, k: Some(1), s: None, x: Some(x) };
    let rows = batch(&[row(1), row(0), row(i64::MAX)]);
    let inverse = || binary(lit(7), "//", col("x"));
    let fails = |plan: Plan| match run(&plan, std::slice::from_ref(&rows)) {
        Err(RunError::Compute { operator, error }) => (operator, error),
        other => panic!("{other:?}"),
    };
    let (operator, error) = fails(stream(0).filter(binary(inverse(), ">", lit(0))).unwrap());
    assert_eq!(operator, "filter");
    assert!(matches!(error, ComputeError::DivisionByZero { .. }), "{error}");
    let (operator, error) = fails(stream(0).with_columns(vec![binary(col("x"), "+", lit(1))]).unwrap());
    assert_eq!(operator, "with_columns");
    assert!(matches!(error, ComputeError::Overflow { .. }), "{error}");
    let sums =
        stream(0).tumbling(Span::Ticks(5), vec![], vec![aggregate(AggregateKind::Sum, Some("x"))]).unwrap();
    let (operator, error) = fails(sums);
    assert_eq!(operator, "window");
    assert!(error.to_string().contains("9223372036854775808"), "{error}");
    // A filter in front takes the row out before it can fail.
    let guarded = stream(0)
        .filter(binary(col("x"), "!=", lit(0)))
        .and_then(|plan| plan.select(vec![inverse()]))
        .unwrap();
    assert_eq!(run(&guarded, &[rows]).unwrap().rows_out(), 2);
}
