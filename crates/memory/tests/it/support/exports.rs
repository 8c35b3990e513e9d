//! Rows that pass a log and leave as Arrow batches.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_memory::batch::LoadRows;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    BlockNext, ColumnBuf, Coordinator, Lease, LogOptions, LogReader, LogWriter, Physical, SourceColumns,
};
use penstock_queue::wake::NoWake;

use super::{Rows, eventually};
use crate::arbitrary::read;

pub const BLOCK_ROWS: usize = 4096;

pub fn rows() -> Rows {
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

pub fn schema(rows: &Rows) -> SchemaRef {
    let field = |(number, (data_type, nullable)): (usize, &(DataType, bool))| {
        Field::new(format!("column {number}"), data_type.clone(), *nullable)
    };
    Arc::new(Schema::new(rows.types.iter().enumerate().map(field).collect::<Vec<_>>()))
}

pub fn open(rows: &Rows, block_rows: usize, coordinator: &Coordinator) -> (LogWriter, LogReader) {
    let shape =
        ShapeOptions { block_rows: Some(block_rows), chunk_blocks: Some(2), ..ShapeOptions::default() };
    let options = LogOptions { shape, ..LogOptions::default() };
    let mut writer = LogWriter::new(rows.layout(), &options, coordinator, Arc::new(NoWake)).unwrap();
    let reader = writer.join(Arc::new(NoWake));
    (writer, reader)
}

/// The reader lags this many rows before it takes whole blocks.
pub const BEHIND: u64 = 10 * BLOCK_ROWS as u64;

/// Writes rows `0..to` as there is room, handing `take` whole blocks once the reader lags, and the rest at the end.
pub fn pass(
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
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
}

/// Takes complete blocks, when more than `behind` rows wait.
pub fn read_whole(reader: &mut LogReader, behind: u64, take: &mut impl FnMut(&Lease)) {
    if reader.pending() <= behind {
        return;
    }
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        if !lease.ends_block() && reader.pending() == count as u64 {
            break;
        }
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
}

/// Fails unless the batches hold rows `first..`, one after the other.
pub fn check(rows: &Rows, first: u64, batches: &[RecordBatch]) -> u64 {
    let mut next = first;
    for batch in batches {
        let source = SourceColumns::new(batch.schema(), vec![true; rows.types.len()]);
        let opened = source.open(batch).unwrap();
        let numbers: Vec<u64> = (next..next + batch.num_rows() as u64).collect();
        for (column, (data_type, _)) in rows.types.iter().enumerate() {
            let mut loaded = ColumnBuf::new(Physical::of(data_type).unwrap());
            opened.load(column, 0, batch.num_rows(), LoadRows::All, &mut loaded);
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
