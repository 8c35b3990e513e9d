//! Rows of a log as Arrow batches: whole blocks without a copy, and nothing that a user keeps holds the engine back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod arbitrary;
mod support;

use std::sync::Arc;

use arbitrary::read;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_memory::batch::Rows as Which;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    Column, ColumnBuf, Coordinator, Exporter, Lease, LogOptions, LogReader, LogWriter, Physical, Piece,
    SourceColumns, Taken, Values,
};
use penstock_queue::wake::Nobody;
use support::{Rows, assert_all_returned, coordinator, eventually, setting};

const BLOCK_ROWS: usize = 4096;

fn rows() -> Rows {
    Rows::new(vec![
        (DataType::Int64, false),
        (DataType::Float64, true),
        (DataType::Boolean, true),
        (DataType::Utf8, true),
        (DataType::BinaryView, false),
        (DataType::Decimal128(38, 4), true),
        (DataType::Int8, false),
    ])
}

fn schema(rows: &Rows) -> SchemaRef {
    let field = |(number, (data_type, nullable)): (usize, &(DataType, bool))| {
        Field::new(format!("column {number}"), data_type.clone(), *nullable)
    };
    Arc::new(Schema::new(rows.types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

fn open(rows: &Rows, block_rows: usize, coordinator: &Coordinator) -> (LogWriter, LogReader) {
    let shape = ShapeOptions { block_rows: Some(block_rows), chunk_blocks: Some(2) };
    let options = LogOptions { shape, ..LogOptions::default() };
    let mut writer = LogWriter::new(rows.layout(), &options, coordinator, Arc::new(Nobody)).unwrap();
    let reader = writer.join(Arc::new(Nobody));
    (writer, reader)
}

/// Rows by which the reader is behind before it takes what is whole.
const BEHIND: u64 = 10 * BLOCK_ROWS as u64;

/// Writes rows `0..to` as there is room, handing `take` whole blocks once the reader is behind, and the rest at the end.
fn pass(
    rows: &Rows,
    to: u64,
    (writer, reader): (&mut LogWriter, &mut LogReader),
    mut take: impl FnMut(&Lease),
) {
    let mut next = 0;
    while next < to {
        let mut some = 0;
        eventually("there is room, since the reader goes on", || {
            some = writer.room();
            if some == 0 {
                read_whole(reader, 0, &mut take);
            }
            (some > 0, next)
        });
        let end = to.min(next + some as u64);
        let numbers: Vec<u64> = (next..end).collect();
        writer.append(&rows.source(&numbers, 0, false).pieces(), 0, numbers.len());
        next = end;
        read_whole(reader, BEHIND, &mut take);
    }
    while let Taken::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
}

/// Takes blocks to which nothing will be added, when more than `behind` rows wait.
fn read_whole(reader: &mut LogReader, behind: u64, take: &mut impl FnMut(&Lease)) {
    if reader.pending() <= behind {
        return;
    }
    while let Taken::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        if !lease.is_whole_block() && reader.pending() == count as u64 {
            break;
        }
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
}

/// Fails unless the batches hold rows `first..`, one after the other.
fn check(rows: &Rows, first: u64, batches: &[RecordBatch]) -> u64 {
    let mut next = first;
    for batch in batches {
        let source = SourceColumns::new(batch.schema(), vec![true; rows.types.len()]);
        let opened = source.open(batch).unwrap();
        let numbers: Vec<u64> = (next..next + batch.num_rows() as u64).collect();
        for (column, (data_type, _)) in rows.types.iter().enumerate() {
            let mut loaded = ColumnBuf::new(Physical::of(data_type).unwrap());
            opened.load(column, 0, batch.num_rows(), Which::All, &mut loaded);
            assert!(
                read(loaded.as_column()) == rows.cells(column, &numbers),
                "column {column} from row {next}"
            );
            assert_eq!(batch.column(column).data_type(), data_type);
        }
        next += batch.num_rows() as u64;
    }
    next
}

#[test]
fn whole_blocks_leave_without_a_copy_and_parts_by_copy() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::new(schema(&rows));
    let mut batches = Vec::new();
    let (mut whole, mut copied) = (0, 0);
    pass(&rows, 200_000, (&mut writer, &mut reader), |lease| {
        let before = coordinator.snapshot();
        let at = lease.column(0).fixed::<i64>().as_ptr();
        exporter.take(lease, &every).unwrap();
        let exported = exporter.take_finished();
        if lease.is_whole_block() && lease.rows() >= BLOCK_ROWS {
            whole += 1;
            let batch = exported.last().expect("a whole block is a batch of its own");
            assert_eq!(batch.num_rows(), lease.rows());
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().values().as_ptr(), at);
            let floats = batch.column(1).as_primitive::<Float64Type>().values().as_ptr();
            assert_eq!(floats, lease.column(1).fixed::<f64>().as_ptr());
            assert!(coordinator.snapshot().exported_bytes > 0);
        } else {
            copied += 1;
            assert_eq!(
                coordinator.snapshot().exported_bytes,
                before.exported_bytes,
                "a copy is the user's own"
            );
        }
        batches.extend(exported);
    });
    batches.extend(exporter.finish().unwrap());
    assert!(whole > 4 && copied > 0, "{whole} whole blocks, {copied} parts");
    assert_eq!(check(&rows, 0, &batches), 200_000);

    let now = coordinator.snapshot();
    assert!(now.exported_bytes > 0 && now.chunks_exported > 0, "{now:?}");
    drop((writer, reader));
    assert_eq!(check(&rows, 0, &batches), 200_000);
    drop(batches);
    assert_all_returned(&coordinator);
}

#[test]
fn shorter_blocks_are_gathered_by_copy() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS - 1, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::new(schema(&rows));
    pass(&rows, 20_000, (&mut writer, &mut reader), |lease| exporter.take(lease, &every).unwrap());
    assert_eq!(coordinator.snapshot().exported_bytes, 0);
    let batches = exporter.finish().unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [20_000]);
    assert_eq!(check(&rows, 0, &batches), 20_000);
}

#[test]
fn columns_leave_in_the_order_that_is_asked_for() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Int8, true), (DataType::Float64, true)]);
    let turned = Rows::new(vec![(DataType::Float64, true), (DataType::Int64, false)]);
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let mut exporter = Exporter::new(schema(&turned));
    let mut expected: Vec<[arbitrary::Cells; 2]> = Vec::new();
    pass(&rows, 20_000, (&mut writer, &mut reader), |lease| {
        expected.push([read(lease.column(2)), read(lease.column(0))]);
        exporter.take(lease, &[2, 0]).unwrap();
    });
    let batches = exporter.finish().unwrap();
    for column in 0..2 {
        let found = batches.iter().flat_map(|batch| {
            let source = SourceColumns::new(batch.schema(), vec![true; 2]);
            let mut loaded = ColumnBuf::new(Physical::of(&turned.types[column].0).unwrap());
            source.open(batch).unwrap().load(column, 0, batch.num_rows(), Which::All, &mut loaded);
            read(loaded.as_column())
        });
        assert!(found.eq(expected.iter().flat_map(|lease| lease[column].clone())), "column {column}");
    }
}

#[test]
fn exported_rows_outlive_everything_else() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::new(schema(&rows));
    pass(&rows, 150_000, (&mut writer, &mut reader), |lease| exporter.take(lease, &every).unwrap());
    assert!(coordinator.snapshot().exported_bytes > 0);
    let batches = exporter.finish().unwrap();
    drop((writer, reader));
    drop(coordinator);
    let elsewhere = std::thread::spawn(move || check(&self::rows(), 0, &batches));
    assert_eq!(elsewhere.join().unwrap(), 150_000);
}

#[test]
fn a_user_who_keeps_everything_stalls_nobody() {
    const BUDGET_BYTES: usize = 4 << 20;
    // 200 MB, unless a run has reasons to do less.
    let total = setting("PENSTOCK_TEST_ROWS", 1_000_000) as i64 * 25 / 2;
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Int64, false)]);
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = open(&rows, 8192, &coordinator);
    let mut exporter = Exporter::new(schema(&rows));
    let mut take = |lease: &Lease| exporter.take(lease, &[0, 1]).unwrap();
    let mut next = 0;
    while next < total {
        let mut some = 0;
        eventually("there is room, since the reader goes on", || {
            some = writer.room();
            if some == 0 {
                read_whole(&mut reader, 0, &mut take);
            }
            (some > 0, coordinator.snapshot())
        });
        let values: Vec<i64> = (next..total.min(next + some as i64)).collect();
        let piece = Piece { column: Column { values: Values::I64(&values), valid: None }, rows: None };
        writer.append(&[piece, piece], 0, values.len());
        next += values.len() as i64;
        read_whole(&mut reader, BEHIND, &mut take);
        let now = coordinator.snapshot();
        assert!(now.used_bytes <= BUDGET_BYTES as u64, "{now:?}");
    }
    while let Taken::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
    let batches = exporter.finish().unwrap();
    let now = coordinator.snapshot();
    assert!(now.exported_bytes > total as u64 * 16 / 4 * 3, "most of it left without a copy: {now:?}");
    let mut next = 0;
    for batch in &batches {
        for column in [0, 1] {
            let values = batch.column(column).as_primitive::<Int64Type>().values();
            assert!(values.iter().copied().eq(next..next + values.len() as i64), "from row {next}");
        }
        next += batch.num_rows() as i64;
    }
    assert_eq!(next, total);
    drop((writer, reader));
    assert!(coordinator.snapshot().exported_bytes >= now.exported_bytes, "the user keeps it all");
    drop(batches);
    assert_eq!(coordinator.snapshot().exported_bytes, 0, "the user has let go of everything");
    assert_all_returned(&coordinator);
}
