//! A window join as NEXMark's eighth query has it: people and what they sell, by the number of the seller, in windows
//! of ten seconds. One person in four rows, and one result for each auction.
//!
//! `cargo bench -p penstock-benches --bench kernels -- join`: rows that the operator alone takes in per second, results taken out.
//! - `ints`: a 64-bit key and a 64-bit column on each side; `texts`: with a name of 7 to 20 bytes on the left as well
//! - `left`: the same with what nobody sells; `sliding`: in windows that overlap fivefold

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use criterion::{Criterion, Throughput, criterion_group};
use penstock_memory::{Physical, Run, SourceColumns};
use penstock_operators::{JoinKind, JoinPort, JoinSpec, Stateful, WindowJoin};
use penstock_progress::Aligned;

const RUN_ROWS: usize = 4_096;
const WINDOW: i64 = 10_000;
const WINDOWS: i64 = 3;
const PEOPLE_PER_WINDOW: usize = 100_000;
const AUCTIONS_PER_PERSON: usize = 3;

/// One side of the join: its batches, and the run they are read with.
struct Side {
    columns: SourceColumns,
    batches: Vec<RecordBatch>,
    run: Run,
}

/// A number that looks like any other.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

impl Side {
    /// Columns: time, key, number, and a name if there are names. `key` gives the key of a row of a window.
    fn new(per_window: usize, names: bool, key: impl Fn(u64, u64) -> u64) -> Self {
        let mut fields = vec!["time", "key", "number"]
            .into_iter()
            .map(|name| Field::new(name, DataType::Int64, false))
            .collect::<Vec<_>>();
        fields.extend(names.then(|| Field::new("name", DataType::Utf8View, false)));
        let schema = Arc::new(Schema::new(fields));
        let rows: Vec<(u64, u64)> = (0..WINDOWS as u64)
            .flat_map(|window| (0..per_window as u64).map(move |row| (window, row)))
            .collect();
        let batches = rows.chunks(RUN_ROWS).map(|rows| {
            let ints = |value: &dyn Fn(u64, u64) -> i64| -> ArrayRef {
                Arc::new(rows.iter().map(|&(window, row)| value(window, row)).collect::<Int64Array>())
            };
            let time =
                |window: u64, row: u64| window as i64 * WINDOW + (row as i64 * WINDOW) / per_window as i64;
            let mut columns =
                vec![ints(&time), ints(&|window, row| key(window, row) as i64), ints(&|_, row| row as i64)];
            if names {
                let name = |&(_, row): &(u64, u64)| format!("seller {}", mixed(row) >> (8 + row % 48));
                columns.push(Arc::new(StringViewArray::from_iter_values(rows.iter().map(name))));
            }
            RecordBatch::try_new(Arc::clone(&schema), columns).expect("the columns fit the schema")
        });
        let batches = batches.collect();
        let mut run = Run::new();
        let columns = SourceColumns::new(Arc::clone(&schema), vec![true; schema.fields().len()]);
        schema.fields().iter().for_each(|field| {
            run.add_slot(Physical::of(field.data_type()).expect("the engine runs such columns"));
        });
        run.add_slot(Physical::I64); // the watermark
        Self { columns, batches, run }
    }

    fn types(&self) -> Vec<DataType> {
        self.columns.schema().fields().iter().skip(2).map(|field| field.data_type().clone()).collect()
    }

    fn port(&self) -> JoinPort {
        let kinds = self.types();
        let kinds = kinds.iter().filter_map(Physical::of).enumerate();
        let columns: Vec<_> = kinds.map(|(number, physical)| (2 + number, physical)).collect();
        JoinPort { time: 0, watermark: 2 + columns.len(), keys: vec![1], columns }
    }

    fn feed(&mut self, join: &mut WindowJoin, port: usize, batch: usize) {
        let Some(batch) = self.batches.get(batch) else { return };
        self.run.open(&self.columns, batch).expect("the batch fits the schema");
        self.run.begin(&self.columns, 0, batch.num_rows());
        join.consume(port, &mut self.run).expect("the rows fit a window");
    }
}

/// Rows of both sides in turns, as they would arrive; results taken out as they come.
fn join(sides: &mut [Side; 2], spec: &JoinSpec, out: &mut Run) -> usize {
    let mut join = WindowJoin::new(spec.clone());
    let mut results = 0;
    for turn in 0..sides[0].batches.len() {
        for (port, batch) in [(0, turn)]
            .into_iter()
            .chain((0..AUCTIONS_PER_PERSON).map(|more| (1, turn * AUCTIONS_PER_PERSON + more)))
        {
            sides[port].feed(&mut join, port, batch);
            while join.has_output() {
                results += join.emit(out, RUN_ROWS).expect("there is nothing to compute");
            }
        }
        let time = (turn * RUN_ROWS) as i64 * WINDOW / PEOPLE_PER_WINDOW as i64;
        join.advance(time - 1_000);
        while join.has_output() {
            results += join.emit(out, RUN_ROWS).expect("there is nothing to compute");
        }
    }
    results
}

fn joins(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("join");
    let tumbling = Aligned::tumbling(WINDOW, 0).expect("a window has a size");
    let sliding = Aligned::new(WINDOW, WINDOW / 5, 0).expect("a window has a size");
    for (name, names, kind, windows) in [
        ("ints", false, JoinKind::Inner, tumbling),
        ("texts", true, JoinKind::Inner, tumbling),
        ("left", true, JoinKind::Left, tumbling),
        ("sliding", false, JoinKind::Inner, sliding),
    ] {
        let people = PEOPLE_PER_WINDOW as u64;
        let mut sides = [
            Side::new(PEOPLE_PER_WINDOW, names, |window, row| mixed(window * people + row) >> 16),
            Side::new(PEOPLE_PER_WINDOW * AUCTIONS_PER_PERSON, false, |window, row| {
                mixed(window * people + mixed(row) % (row / AUCTIONS_PER_PERSON as u64 + 1)) >> 16
            }),
        ];
        let spec = JoinSpec {
            windows,
            kind,
            ports: [sides[0].port(), sides[1].port()],
            keys: vec![Physical::I64],
            key_types: vec![DataType::Int64],
            column_types: [sides[0].types(), sides[1].types()],
            bounds: Physical::I64,
            emits_time: false,
        };
        let mut out = Run::new();
        let columns = spec.ports.iter().flat_map(|port| port.columns.iter().map(|(_, physical)| *physical));
        for physical in [Physical::I64; 3].into_iter().chain(columns) {
            out.add_slot(physical);
        }
        let rows: usize = sides.iter().flat_map(|side| &side.batches).map(RecordBatch::num_rows).sum();
        group.throughput(Throughput::Elements(rows as u64));
        group.sample_size(10);
        group.bench_function(name, |bencher| bencher.iter(|| join(&mut sides, &spec, &mut out)));
    }
    group.finish();
}

criterion_group!(benches, joins);
