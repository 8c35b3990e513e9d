//! Windowed aggregation, without the engine around it: rows per second of one operator.
//!
//! Tumbling windows over few, many and very many keys; and sliding windows against tumbling ones over the same rows, at
//! a million rows per second of event time.

#![allow(clippy::unwrap_used, reason = "a bench that fails may panic")]

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use criterion::{Criterion, Throughput, criterion_group};
use penstock_memory::{Physical, Run, SourceColumns};
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_operators::{WindowPort, WindowSpec, windowed};
use penstock_progress::Aligned;

const RUN_ROWS: usize = 16 * 1024;
/// Rows per second of event time, whose ticks are microseconds.
const ROWS_PER_SECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000;

fn schema() -> SchemaRef {
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    Arc::new(Schema::new(vec![
        field("time", DataType::Int64),
        field("key", DataType::Int64),
        field("price", DataType::Int64),
        field("share", DataType::Float64),
    ]))
}

/// Numbers without a pattern.
fn mix(number: i64) -> i64 {
    let mut bits = (number as u64).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^= bits >> 27;
    (bits.wrapping_mul(0x94D0_49BB_1331_11EB) >> 1) as i64
}

/// Rows with keys out of `keys`; spread keys lie far from each other.
fn rows(count: i64, keys: i64, spread: bool) -> RecordBatch {
    let key = |row: i64| {
        let key = mix(row) % keys;
        if spread { mix(key + 77) } else { key }
    };
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(Int64Array::from_iter_values((0..count).map(|row| row * SECOND / ROWS_PER_SECOND))),
            Arc::new(Int64Array::from_iter_values((0..count).map(key))),
            Arc::new(Int64Array::from_iter_values((0..count).map(|row| mix(row + 5) % 1_000))),
            Arc::new(Float64Array::from_iter_values((0..count).map(|row| mix(row + 9) as f64 / 1e18))),
        ],
    )
    .unwrap()
}

/// Feeds all rows, closing windows once per second of event time; the number of result rows.
fn aggregate(windows: Aligned, batch: &RecordBatch) -> usize {
    let factory = |kind: AggregateKind, data_type: Option<DataType>| {
        AccumulatorFactory::new(kind, data_type, String::new()).unwrap()
    };
    let spec = WindowSpec {
        windows: windows.into(),
        allowed_lateness: 0,
        ports: vec![WindowPort {
            time: 0,
            watermark: 4,
            keys: vec![1],
            inputs: vec![(0, None), (1, Some(2)), (2, Some(3))],
        }],
        keys: vec![Physical::I64],
        key_types: vec![DataType::Int64],
        factories: vec![
            factory(AggregateKind::Count, None),
            factory(AggregateKind::Sum, Some(DataType::Int64)),
            factory(AggregateKind::Mean, Some(DataType::Float64)),
        ],
        bounds: Physical::I64,
        emits_time: false,
    };
    let mut operator = windowed(spec);
    let columns = SourceColumns::new(schema(), vec![true; 4]);
    let (mut run, mut out) = (Run::new(), Run::new());
    for physical in [Physical::I64, Physical::I64, Physical::I64, Physical::F64, Physical::I64] {
        run.add_slot(physical);
    }
    for physical in [Physical::I64, Physical::I64, Physical::I64, Physical::I64, Physical::I64, Physical::F64]
    {
        out.add_slot(physical);
    }
    run.open(&columns, batch).unwrap();
    let times: &Int64Array = arrow_array::cast::AsArray::as_primitive(batch.column(0).as_ref());
    let (mut given, mut second) = (0, 0);
    let mut drain = |operator: &mut Box<dyn penstock_operators::Stateful>| {
        while operator.has_output() {
            given += operator.emit(&mut out, RUN_ROWS).unwrap();
        }
    };
    for from in (0..batch.num_rows()).step_by(RUN_ROWS) {
        let to = batch.num_rows().min(from + RUN_ROWS);
        run.begin(&columns, from, to - from);
        run.note_range(0, (times.value(from), times.value(to - 1)));
        operator.consume(0, &mut run).unwrap();
        if times.value(to - 1) / SECOND > second {
            second = times.value(to - 1) / SECOND;
            operator.advance(second * SECOND);
            drain(&mut operator);
        }
    }
    operator.finish();
    drain(&mut operator);
    given
}

fn tumbling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tumbling");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    const ROWS: i64 = 4_000_000;
    group.throughput(Throughput::Elements(ROWS as u64));
    let windows = Aligned::tumbling(60 * SECOND, 0).unwrap();
    for (name, keys, spread) in [
        ("100", 100, false),
        ("10k", 10_000, false),
        ("10k_spread", 10_000, true),
        ("1m", 1_000_000, false),
        ("1m_spread", 1_000_000, true),
    ] {
        let batch = rows(ROWS, keys, spread);
        group.bench_function(name, |bencher| bencher.iter(|| aggregate(windows, &batch)));
    }
    group.finish();
}

fn sliding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sliding");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    const ROWS: i64 = 20_000_000;
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, keys) in [("100", 100), ("10k", 10_000)] {
        let batch = rows(ROWS, keys, false);
        for (kind, windows) in [
            ("tumbling_60", Aligned::tumbling(60 * SECOND, 0).unwrap()),
            ("sliding_60_1", Aligned::new(60 * SECOND, SECOND, 0).unwrap()),
        ] {
            let function = |bencher: &mut criterion::Bencher<'_>| bencher.iter(|| aggregate(windows, &batch));
            group.bench_function(format!("{kind}/{name}"), function);
        }
    }
    group.finish();
}

criterion_group!(benches, tumbling, sliding);
