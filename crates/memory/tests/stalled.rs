//! Readers that stall for a while: writers are held back, memory stays within the budget, and then every row arrives.
//!
//! A binary of its own, so that its resident size is that of this one test.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "it/arbitrary/mod.rs"]
mod arbitrary;
#[path = "it/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow_buffer::Buffer;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{
    BlockNext, Column, ColumnKind, Layout, LogOptions, LogReader, LogWriter, Payload, Physical,
    SelectedColumn, Values,
};
use penstock_queue::gate::Gate;
use support::{HANG, assert_all_returned, coordinator, is_resident_size_our_own, resident_bytes, setting};

const BUDGET_BYTES: usize = 64 << 20;
const SLACK_BYTES: u64 = 64 << 20;
/// Rows of a source batch, and bytes of a long value.
const BATCH_ROWS: usize = 200;
const TEXT_BYTES: usize = 4000;

/// The columns of a stream besides a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Numbers,
    /// Strings, all written: their buffers are shared.
    Shared,
    /// Strings of which a filter passes few: they are copied.
    Copied,
}

impl Kind {
    fn layout(self) -> Layout {
        let physical = if self == Self::Numbers { Physical::F64 } else { Physical::View };
        Layout::new(vec![
            ColumnKind { physical: Physical::I64, nullable: false },
            ColumnKind { physical, nullable: true },
        ])
    }

    /// Returns the rows of a batch that are written.
    fn kept(self) -> Vec<u32> {
        (0..BATCH_ROWS as u32).step_by(if self == Self::Copied { 10 } else { 1 }).collect()
    }
}

fn text(row: i64, into: &mut Vec<u8>) {
    (0..TEXT_BYTES / 8).for_each(|_| into.extend_from_slice(&row.to_le_bytes()));
}

/// Writes batches as fast as there is room, until told to stop; returns the number of rows.
fn write(kind: Kind, mut writer: LogWriter, room: &Gate, stop: &AtomicBool, written: &AtomicU64) {
    let kept = kind.kept();
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let numbers: Vec<i64> =
            (0..BATCH_ROWS as i64).map(|place| next + place / (BATCH_ROWS / kept.len()) as i64).collect();
        let floats: Vec<f64> = numbers.iter().map(|&row| row as f64).collect();
        let valid: Vec<u8> = numbers.iter().map(|row| u8::from(row % 3 > 0)).collect();
        let (mut views, mut payload) = (Vec::new(), Vec::new());
        if kind != Kind::Numbers {
            payload.reserve_exact(BATCH_ROWS * TEXT_BYTES);
            for &row in &numbers {
                let from = payload.len();
                text(row, &mut payload);
                views.push(make_view(&payload[from..], 0, from as u32));
            }
        }
        let payloads: Vec<Payload> = vec![Buffer::from_vec(payload).into()];
        let number = Column { values: Values::I64(&numbers), valid: None };
        let other = match kind {
            Kind::Numbers => Values::F64(&floats),
            Kind::Shared | Kind::Copied => Values::View(&views, (&payloads).into()),
        };
        let pieces = [number, Column { values: other, valid: Some(&valid) }]
            .map(|column| SelectedColumn { column, rows: Some(&kept) });
        let mut done = 0;
        while done < kept.len() && !stop.load(Ordering::Relaxed) {
            let some = writer.room().min(kept.len() - done);
            if some == 0 {
                room.wait(Duration::from_millis(100));
                continue;
            }
            writer.append(&pieces, done, some);
            done += some;
            written.fetch_add(some as u64, Ordering::Relaxed);
        }
        next += done as i64;
    }
}

/// Reads everything up to the end; returns the number of rows.
fn read(kind: Kind, mut reader: LogReader, gate: &Gate) -> u64 {
    let mut next = 0;
    let mut expected = Vec::new();
    loop {
        match reader.peek(usize::MAX) {
            BlockNext::Rows(lease) => {
                let other = lease.column(1);
                for (place, &row) in lease.column(0).fixed::<i64>().iter().enumerate() {
                    assert_eq!(row, next, "{kind:?}");
                    assert_eq!(other.is_valid(place), row % 3 > 0, "{kind:?}, row {row}");
                    next += 1;
                    if row % 3 == 0 {
                        continue;
                    }
                    if kind == Kind::Numbers {
                        assert_eq!(other.fixed::<f64>()[place], row as f64);
                    } else {
                        let (views, payloads) = other.views();
                        expected.clear();
                        text(row, &mut expected);
                        with_bytes(views[place], payloads, |found| assert_eq!(found, expected, "row {row}"));
                    }
                }
                let rows = lease.rows();
                drop(lease);
                reader.advance(rows);
            }
            BlockNext::Nothing => {
                assert!(gate.wait(HANG), "{kind:?}: the reader was not woken at row {next}")
            }
            BlockNext::Closed => return next as u64,
            BlockNext::Watermark(_) | BlockNext::Signal(_) => panic!("only rows were written"),
        }
    }
}

#[test]
fn memory_is_bounded_while_readers_stall_and_then_every_row_arrives() {
    let stall = Duration::from_secs(setting("PENSTOCK_STALL_SECONDS", 15));
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    // Several that pin payload: all logs share the budget.
    let kinds = [[Kind::Numbers; 2], [Kind::Shared; 2], [Kind::Shared; 2], [Kind::Copied; 2]].concat();
    let [stop, resume] = [(); 2].map(|()| AtomicBool::new(false));
    let written: Vec<AtomicU64> = kinds.iter().map(|_| AtomicU64::new(0)).collect();
    let start = resident_bytes();
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for (&kind, written) in kinds.iter().zip(&written) {
            let [room, rows] = [(); 2].map(|()| Arc::new(Gate::new()));
            let options = LogOptions::default();
            let mut writer =
                LogWriter::new(kind.layout(), &options, &coordinator, Arc::clone(&room) as _).unwrap();
            let reader = writer.join(Arc::clone(&rows) as _);
            let stop = &stop;
            scope.spawn(move || write(kind, writer, &room, stop, written));
            let resume = &resume;
            readers.push(scope.spawn(move || {
                while !resume.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                }
                read(kind, reader, &rows)
            }));
        }
        let mut peak = 0;
        // Watches the resident size for that long, or until nothing is left to wait for.
        let mut watch = |time: Duration, done: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while begin.elapsed() < time && !done() {
                peak = peak.max(resident_bytes());
                thread::sleep(Duration::from_millis(5));
            }
        };
        let now = || written.iter().map(|rows| rows.load(Ordering::Relaxed)).collect::<Vec<u64>>();
        watch(stall, &|| false);
        let before = now();
        resume.store(true, Ordering::Relaxed);
        watch(HANG, &|| before.iter().zip(now()).all(|(before, now)| *before < now));
        let after = now();
        stop.store(true, Ordering::Relaxed);
        let read: Vec<u64> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert_eq!(read, now(), "every row arrives once");
        for (kind, (before, after)) in kinds.iter().zip(before.iter().zip(&after)) {
            assert!(*before > 0 && after > before, "{kind:?}: the writer proceeds when its reader does");
        }
        let now = coordinator.snapshot();
        println!("{} MiB more than at the start at most, {now:?}", (peak - start) >> 20);
        assert!(
            !is_resident_size_our_own() || peak <= start + BUDGET_BYTES as u64 + SLACK_BYTES,
            "{} MiB more than at the start: {now:?}",
            (peak - start) >> 20
        );
        assert!(now.peak_used_bytes > BUDGET_BYTES as u64 / 2, "the writers reached the limit: {now:?}");
    });
    assert_all_returned(&coordinator);
}
