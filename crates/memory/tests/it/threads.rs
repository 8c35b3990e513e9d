//! One writer and several readers on threads of their own: readers leave and join in the middle, and every sleeper is
//! woken.

use crate::support;

use std::sync::Arc;
use std::thread;

use arrow_buffer::Buffer;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{
    BlockNext, Column, ColumnKind, Layout, Lease, LogOptions, LogReader, LogWriter, Payload, Physical,
    SelectedColumn, Signal, Values,
};
use penstock_queue::gate::Gate;
use support::{HANG, assert_all_returned, coordinator, setting};

const BATCH_ROWS: u64 = 3000;
/// A signal and a watermark precede every row whose number this divides.
const SIGNAL_EVERY: u64 = 10_000;

/// A column of numbers, one with nulls, and perhaps one of strings, all derived from the number of the row.
#[derive(Clone, Copy)]
struct Shape {
    strings: bool,
    block_rows: Option<usize>,
    rows: u64,
}

impl Shape {
    fn layout(self) -> Layout {
        let mut columns = vec![
            ColumnKind { physical: Physical::I64, nullable: false },
            ColumnKind { physical: Physical::U8, nullable: true },
        ];
        if self.strings {
            columns.push(ColumnKind { physical: Physical::View, nullable: false });
        }
        Layout::new(columns)
    }
}

/// Short and long by turns.
fn text(row: u64, into: &mut Vec<u8>) {
    into.clear();
    into.extend(row.to_le_bytes().iter().cycle().take((row % 29) as usize));
}

fn write(shape: Shape, mut writer: LogWriter, room: &Gate, at_half: impl Fn(LogReader), gate: &Arc<Gate>) {
    let (mut bytes, mut row) = (Vec::new(), 0);
    while row < shape.rows {
        let end = (row / SIGNAL_EVERY * SIGNAL_EVERY + SIGNAL_EVERY).min(row + BATCH_ROWS).min(shape.rows);
        if row.is_multiple_of(SIGNAL_EVERY) {
            writer.watermark(row as i64);
            while writer.signal(Signal::Marker { sent_ns: row }).is_err() {
                assert!(room.wait(HANG), "the writer was not woken, which waits to signal at row {row}");
            }
        }
        if row == shape.rows / 2 / SIGNAL_EVERY * SIGNAL_EVERY {
            at_half(writer.join(Arc::clone(gate) as _));
        }
        let numbers: Vec<i64> = (row as i64..end as i64).collect();
        let flags: Vec<u8> = (row..end).map(|row| row as u8).collect();
        let valid: Vec<u8> = (row..end).map(|row| u8::from(!row.is_multiple_of(3))).collect();
        let (mut views, mut payload) = (Vec::new(), Vec::new());
        for row in row..end {
            text(row, &mut bytes);
            views.push(make_view(&bytes, 0, payload.len() as u32));
            payload.extend_from_slice(&bytes);
        }
        let payloads: Vec<Payload> = vec![Buffer::from_vec(payload).into()];
        let mut columns = vec![
            Column { values: Values::I64(&numbers), valid: None },
            Column { values: Values::U8(&flags), valid: Some(&valid) },
        ];
        if shape.strings {
            columns.push(Column { values: Values::View(&views, (&payloads).into()), valid: None });
        }
        let pieces: Vec<_> =
            columns.into_iter().map(|column| SelectedColumn { column, rows: None }).collect();
        let first = row;
        while row < end {
            let some = writer.room().min((end - row) as usize);
            if some == 0 {
                assert!(room.wait(HANG), "the writer was not woken at row {row}");
                continue;
            }
            writer.append(&pieces, (row - first) as usize, some);
            row += some as u64;
        }
    }
}

fn check(shape: Shape, lease: &Lease, first: u64) {
    let numbers = lease.column(0).fixed::<i64>();
    let flags = lease.column(1);
    let mut bytes = Vec::new();
    for (place, row) in (first..first + lease.rows() as u64).enumerate() {
        assert_eq!(numbers[place], row as i64);
        assert_eq!(flags.is_valid(place), !row.is_multiple_of(3), "row {row}");
        assert_eq!(flags.fixed::<u8>()[place], row as u8, "row {row}");
        if shape.strings {
            let (views, payloads) = lease.column(2).views();
            text(row, &mut bytes);
            with_bytes(views[place], payloads, |found| assert_eq!(found, bytes, "row {row}"));
        }
    }
}

/// Reads from row `row` up to row `until`, or to the end.
fn read(shape: Shape, mut reader: LogReader, gate: &Gate, mut row: u64, until: u64) {
    let (mut marked, mut limit) = (None, 1);
    while row < until {
        limit = limit % 700 + 13;
        match reader.peek(limit.min((until - row) as usize)) {
            BlockNext::Rows(lease) => {
                check(shape, &lease, row);
                assert!(
                    marked == Some(row / SIGNAL_EVERY * SIGNAL_EVERY) || marked.is_none(),
                    "row {row} came after the signal at {marked:?}"
                );
                let rows = lease.rows();
                assert!(
                    (row + rows as u64 - 1) / SIGNAL_EVERY == row / SIGNAL_EVERY,
                    "a signal at {row} was overtaken"
                );
                // Alternates: the lease is dropped before the reader advances, or after.
                let before = rows.is_multiple_of(2).then_some(lease);
                reader.advance(rows);
                drop(before);
                row += rows as u64;
            }
            BlockNext::Watermark(value) => {
                assert!(value as u64 == row / SIGNAL_EVERY * SIGNAL_EVERY, "watermark {value} at row {row}");
                assert!(value > reader.watermark());
                reader.pass();
            }
            BlockNext::Signal(signal) => {
                assert_eq!(signal, Signal::Marker { sent_ns: row });
                assert_eq!(reader.watermark(), row as i64, "the watermark comes before the signal");
                marked = Some(row);
                reader.pass();
            }
            BlockNext::Nothing => assert!(gate.wait(HANG), "the reader was not woken at row {row}"),
            BlockNext::Closed => break,
        }
    }
    assert_eq!(row, until, "the writer closed the log too early");
    if until == shape.rows {
        while !matches!(reader.peek(1), BlockNext::Closed) {
            assert!(gate.wait(HANG), "the reader did not learn that the writer is gone");
        }
    }
}

fn run(shape: Shape) {
    let coordinator = coordinator(4 << 20, 2 << 20);
    let options = LogOptions {
        shape: ShapeOptions { block_rows: shape.block_rows, chunk_blocks: None, ..ShapeOptions::default() },
        ..LogOptions::default()
    };
    let [room, one, two, three] = [(); 4].map(|()| Arc::new(Gate::new()));
    let mut writer = LogWriter::new(shape.layout(), &options, &coordinator, Arc::clone(&room) as _).unwrap();
    let (first, second) = (writer.join(Arc::clone(&one) as _), writer.join(Arc::clone(&two) as _));
    let half = shape.rows / 2 / SIGNAL_EVERY * SIGNAL_EVERY;
    let (one, two, three, room) = (&one, &two, &three, &room);
    thread::scope(|scope| {
        let late = |reader| {
            scope.spawn(move || read(shape, reader, three, half, shape.rows));
        };
        scope.spawn(move || write(shape, writer, room, late, three));
        scope.spawn(move || read(shape, first, one, 0, shape.rows));
        scope.spawn(move || read(shape, second, two, 0, shape.rows / 4 + 1));
    });
    assert_all_returned(&coordinator);
}

#[test]
fn numbers_reach_every_reader() {
    for block_rows in [Some(1), Some(7), None] {
        run(Shape { strings: false, block_rows, rows: setting("PENSTOCK_TEST_ROWS", 1_000_000) });
    }
}

#[test]
fn strings_reach_every_reader() {
    for block_rows in [Some(1), Some(7), None] {
        run(Shape { strings: true, block_rows, rows: setting("PENSTOCK_TEST_ROWS", 1_000_000) / 2 });
    }
}
