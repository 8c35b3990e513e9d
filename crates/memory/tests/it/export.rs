//! Rows of a log as Arrow batches: many rows of a block without a copy, few by copy, and all of them unchanged.

use crate::arbitrary;
use crate::support;

use std::sync::Arc;

use arbitrary::read;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_schema::DataType;
use penstock_memory::batch::LoadRows;
use penstock_memory::export::compacted;
use penstock_memory::{BlockNext, ColumnBuf, Exporter, Parcel, Physical, SourceColumns};
use support::exports::{BLOCK_ROWS, check, open, pass, rows, schema};
use support::{Rows, assert_all_returned, coordinator};

#[test]
fn many_rows_leave_without_a_copy_and_few_by_copy() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::new(schema(&rows));
    let mut batches = Vec::new();
    let (mut whole, mut copied) = (0, 0);
    pass(&rows, 120_000, (&mut writer, &mut reader), |lease| {
        let before = coordinator.snapshot();
        let at = lease.column(0).fixed::<i64>().as_ptr();
        exporter.take(lease, &every).unwrap();
        let exported = exporter.take_finished();
        if lease.rows() >= BLOCK_ROWS {
            whole += 1;
            let batch = exported.last().expect("many rows are a batch of their own");
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
    assert_eq!(check(&rows, 0, &batches), 120_000);

    let now = coordinator.snapshot();
    assert!(now.exported_bytes > 0 && now.chunks_exported > 0, "{now:?}");
    drop((writer, reader));
    assert_eq!(check(&rows, 0, &batches), 120_000);
    drop(batches);
    assert_all_returned(&coordinator);
}

/// A part of a block that is still being written: rows after it are not the user's, and do not change it.
#[test]
fn a_long_part_of_a_block_leaves_as_exactly_its_rows() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Int64, true)]);
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, 4 * BLOCK_ROWS, &coordinator);
    let mut longest = 0;
    pass(&rows, 100_000, (&mut writer, &mut reader), |lease| longest = longest.max(lease.rows()));
    assert_eq!(longest, 4 * BLOCK_ROWS, "there are blocks of that size by now");
    let mut exporter = Exporter::new(schema(&rows));
    let mut next = 100_000;
    let mut batches = Vec::new();
    while batches.len() < 20 {
        let some = 5000.min(writer.room() as u64);
        let numbers: Vec<u64> = (next..next + some).collect();
        writer.append(&rows.source(&numbers, 0, false).pieces(), 0, numbers.len());
        next += some;
        while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
            exporter.take(&lease, &[0, 1]).unwrap();
            let count = lease.rows();
            drop(lease);
            reader.advance(count);
        }
        batches.extend(exporter.take_finished());
    }
    batches.extend(exporter.finish().unwrap());
    for batch in &batches {
        for column in batch.columns() {
            let values = column.as_primitive::<Int64Type>().values();
            assert_eq!(values.len(), batch.num_rows());
            assert_eq!(values.inner().len(), batch.num_rows() * 8, "no byte more than the rows");
        }
    }
    assert_eq!(check(&rows, 100_000, &batches), next);
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
            source.open(batch).unwrap().load(column, 0, batch.num_rows(), LoadRows::All, &mut loaded);
            read(loaded.as_column())
        });
        assert!(found.eq(expected.iter().flat_map(|lease| lease[column].clone())), "column {column}");
    }
}

#[test]
fn a_row_that_is_copied_out_of_a_batch_keeps_nothing_of_it() {
    let texts = (0..1000).map(|row| (row != 999).then(|| format!("a text that is long enough {row}")));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let batch = RecordBatch::try_from_iter([
        ("n", numbers),
        ("flag", Arc::new(BooleanArray::from_iter((0..1000).map(|row| Some(row % 2 == 0)))) as ArrayRef),
        ("text", Arc::new(texts.clone().collect::<StringArray>()) as ArrayRef),
        ("view", Arc::new(texts.clone().collect::<StringViewArray>()) as ArrayRef),
        ("short", Arc::new(StringViewArray::from_iter_values((0..1000).map(|_| "x"))) as ArrayRef),
    ])
    .unwrap();
    let coordinator = coordinator(64 << 20, 64 << 20);
    for row in [0, 500, 999] {
        let slice = batch.slice(row, 1);
        let copied = compacted(&slice).unwrap();
        assert_eq!(copied, slice);
        let bytes: usize = copied.columns().iter().map(|column| column.get_buffer_memory_size()).sum();
        assert!(bytes < 1000, "{bytes} bytes for row {row}");
        let text_bytes = if row == 999 { 0 } else { copied.column(3).as_string_view().value(0).len() };
        let parcel = Parcel::copied(copied, &coordinator.result_account());
        assert!(parcel.bytes() >= 8 + 1 + 2 * text_bytes + 16 + 16, "{} for row {row}", parcel.bytes());
    }
}
