//! The writer of a log against its readers, in every interleaving within loom's bounds.
//!
//! Run with `make loom`. A missing ordering shows as a race on a cell (of a slot, or of a row in a chunk), a lost
//! wake-up as a deadlock, and a signal in the wrong place as a wrong order. `weakened.txt` names the test that fails
//! without each ordering or step.
#![cfg(loom)]

use std::sync::Arc as StdArc;
use std::time::Duration;

use loom::thread;
use penstock_queue::gate::Gate;
use penstock_queue::log::{LogNext, PositionReader, PositionWriter, Work};
use penstock_queue::sync::UnsafeCell;
use penstock_queue::wake::NoWake;

const NEVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unless LOOM_MAX_PREEMPTIONS sets another bound.
    builder.preemption_bound.get_or_insert(2);
    builder.check(model);
}

/// A chunk with room for one row, in a cell whose accesses loom watches.
struct Chunk(UnsafeCell<u64>);

// SAFETY: the log's protocol keeps the writer of the row and its readers apart, which is what the models check.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new() -> Self {
        Self(UnsafeCell::new(u64::MAX))
    }

    fn set(&self, row: u64) {
        // SAFETY: loom fails the model if another thread accesses the cell.
        self.0.with_mut(|cell| unsafe { *cell = row });
    }

    fn get(&self) -> u64 {
        // SAFETY: loom fails the model if another thread writes the cell meanwhile.
        self.0.with(|cell| unsafe { *cell })
    }
}

type Log = PositionWriter<Chunk, u8>;

/// Writes a row that holds its position.
fn write_row(writer: &mut Log) {
    let position = writer.position();
    let (chunk, _) = writer.current().expect("a chunk was added for the row");
    chunk.set(position);
    writer.publish(1);
}

#[derive(Debug, PartialEq, Eq)]
enum Item {
    Row(u64),
    Watermark(i64),
    Signal(u8),
}

use Item::{Row, Signal, Watermark};

/// Consumes what comes next; `Err(true)` means that the log is closed.
fn take(reader: &mut PositionReader<Chunk, u8>) -> Result<Item, bool> {
    let item = match reader.peek() {
        LogNext::Rows { chunk, offset, rows, position } => {
            assert_eq!((chunk.get(), offset, rows), (position, 0, 1));
            Row(position)
        }
        LogNext::Watermark(value) => Watermark(value),
        LogNext::Signal(signal) => Signal(signal),
        LogNext::Nothing => return Err(false),
        LogNext::Closed => return Err(true),
    };
    match item {
        Row(_) => reader.advance(1),
        Watermark(_) | Signal(_) => reader.pass(),
    }
    Ok(item)
}

/// Sleeps until the next item comes; returns `None` when the log is closed.
fn await_item(reader: &mut PositionReader<Chunk, u8>, gate: &Gate) -> Option<Item> {
    loop {
        match take(reader) {
            Ok(item) => return Some(item),
            Err(true) => return None,
            Err(false) => gate.wait(NEVER),
        };
    }
}

/// Returns up to `count` items that are there without waiting.
fn take_some(reader: &mut PositionReader<Chunk, u8>, count: usize) -> Vec<Item> {
    (0..count).map_while(|_| take(reader).ok()).collect()
}

#[test]
fn a_chunk_comes_back_after_both_readers_left_it() {
    check(|| {
        let mut writer = Log::new(2, 1);
        writer.add(Chunk::new(), 1);
        let readers = [writer.join(StdArc::new(NoWake)), writer.join(StdArc::new(NoWake))];
        let reading = readers.map(|mut reader| {
            thread::spawn(move || {
                let items = take_some(&mut reader, 2);
                assert!([Row(0), Row(1)].starts_with(&items));
            })
        });
        write_row(&mut writer);
        if let Some(chunk) = writer.reclaim() {
            writer.add(chunk, 1);
            write_row(&mut writer);
        }
        for thread in reading {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_writer_without_chunks_waits_for_the_reader() {
    check(|| {
        let mut writer = Log::new(2, 1);
        let (room, rows) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        writer.set_wake(room.clone());
        writer.add(Chunk::new(), 1);
        writer.add(Chunk::new(), 1);
        let mut reader = writer.join(rows.clone());
        let reading = thread::spawn(move || {
            // It leaves the first chunk, perhaps with the second still before it.
            assert_eq!(await_item(&mut reader, &rows), Some(Row(0)));
            reader
        });
        write_row(&mut writer);
        write_row(&mut writer);
        while writer.reclaim().is_none() {
            room.wait(NEVER);
        }
        // Both sides are alive until the end: no wake-up comes from a side that leaves.
        drop(reading.join().unwrap());
    });
}

#[test]
fn a_writer_learns_that_its_reader_has_caught_up() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let (room, rows) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        writer.set_wake(room.clone());
        writer.add(Chunk::new(), 2);
        let mut reader = writer.join(rows.clone());
        let reading = thread::spawn(move || {
            assert_eq!(await_item(&mut reader, &rows), Some(Row(0)));
            reader
        });
        write_row(&mut writer);
        while writer.slowest() < writer.position() {
            room.wait(NEVER);
        }
        drop(reading.join().unwrap());
    });
}

#[test]
fn a_reader_that_left_gives_its_chunk_back() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let room = StdArc::new(Gate::new());
        writer.set_wake(room.clone());
        writer.add(Chunk::new(), 1);
        let mut reader = writer.join(StdArc::new(NoWake));
        let leaving = thread::spawn(move || {
            // Peeked, not consumed.
            if let LogNext::Rows { chunk, .. } = reader.peek() {
                assert_eq!(chunk.get(), 0);
            }
        });
        write_row(&mut writer);
        let chunk = loop {
            match writer.reclaim() {
                Some(chunk) => break chunk,
                None => room.wait(NEVER),
            };
        };
        assert_eq!(writer.readers(), 0);
        writer.add(chunk, 1);
        write_row(&mut writer);
        leaving.join().unwrap();
    });
}

#[test]
fn readers_join_and_leave_while_the_writer_runs() {
    check(|| {
        let mut writer = Log::new(2, 1);
        writer.add(Chunk::new(), 1);
        let mut early = writer.join(StdArc::new(NoWake));
        let leaving = thread::spawn(move || {
            assert!([Row(0), Watermark(5)].starts_with(&take_some(&mut early, 2)));
        });
        write_row(&mut writer);
        writer.watermark(5);
        let mut late = writer.join(StdArc::new(NoWake));
        let joining = thread::spawn(move || {
            assert_eq!(late.position(), 1);
            let items = take_some(&mut late, 2);
            assert!(items == [Watermark(5)] || items == [Watermark(5), Row(1)], "{items:?}");
        });
        let chunk = writer.reclaim().unwrap_or_else(Chunk::new);
        writer.add(chunk, 1);
        write_row(&mut writer);
        leaving.join().unwrap();
        joining.join().unwrap();
    });
}

#[test]
fn a_signal_is_never_overtaken() {
    check(|| {
        let mut writer = Log::new(2, 4);
        writer.add(Chunk::new(), 1);
        writer.add(Chunk::new(), 1);
        let mut reader = writer.join(StdArc::new(NoWake));
        let reading = thread::spawn(move || {
            let items = take_some(&mut reader, 5);
            assert!([Watermark(1), Row(0), Signal(7), Watermark(2), Row(1)].starts_with(&items), "{items:?}");
        });
        writer.watermark(1);
        write_row(&mut writer);
        writer.signal(7).unwrap();
        writer.watermark(2);
        write_row(&mut writer);
        reading.join().unwrap();
    });
}

#[test]
fn a_watermark_never_comes_early() {
    check(|| {
        let mut writer = Log::new(2, 4);
        writer.add(Chunk::new(), 1);
        let mut reader = writer.join(StdArc::new(NoWake));
        let reading = thread::spawn(move || {
            let items = take_some(&mut reader, 4);
            assert!([Row(0), Signal(7), Watermark(2)].starts_with(&items), "{items:?}");
        });
        write_row(&mut writer);
        writer.signal(7).unwrap();
        writer.watermark(2);
        reading.join().unwrap();
    });
}

#[test]
fn whatever_is_published_wakes_the_reader() {
    check(|| {
        let mut writer = Log::new(1, 1);
        writer.add(Chunk::new(), 1);
        let gate = StdArc::new(Gate::new());
        let mut reader = writer.join(gate.clone());
        let reading = thread::spawn(move || {
            for expected in [Row(0), Signal(7), Watermark(2)] {
                assert_eq!(await_item(&mut reader, &gate), Some(expected));
            }
        });
        write_row(&mut writer);
        writer.signal(7).unwrap();
        writer.watermark(2);
        // The writer is alive until the reader has them all: the wake-up does not come from the end.
        reading.join().unwrap();
    });
}

#[test]
fn a_row_alone_wakes_the_reader() {
    check(|| {
        let mut writer = Log::new(1, 1);
        writer.add(Chunk::new(), 1);
        let gate = StdArc::new(Gate::new());
        let mut reader = writer.join(gate.clone());
        let reading = thread::spawn(move || assert_eq!(await_item(&mut reader, &gate), Some(Row(0))));
        write_row(&mut writer);
        reading.join().unwrap();
    });
}

#[test]
fn a_signal_alone_wakes_the_reader() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let gate = StdArc::new(Gate::new());
        let mut reader = writer.join(gate.clone());
        let reading = thread::spawn(move || assert_eq!(await_item(&mut reader, &gate), Some(Signal(7))));
        writer.signal(7).unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn a_full_ring_makes_the_writer_wait() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let (room, items) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        writer.set_wake(room.clone());
        let mut reader = writer.join(items.clone());
        let reading = thread::spawn(move || {
            assert_eq!(await_item(&mut reader, &items), Some(Signal(1)));
            assert_eq!(await_item(&mut reader, &items), Some(Signal(2)));
            reader
        });
        writer.signal(1).unwrap();
        while writer.signal(2).is_err() {
            room.wait(NEVER);
        }
        drop(reading.join().unwrap());
    });
}

#[test]
fn a_watermark_passed_early_leaves_the_ring() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let (room, items) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        writer.set_wake(room.clone());
        let mut reader = writer.join(items.clone());
        let reading = thread::spawn(move || {
            assert_eq!(await_item(&mut reader, &items), Some(Watermark(1)));
            assert_eq!(await_item(&mut reader, &items), Some(Signal(2)));
            reader
        });
        writer.watermark(1);
        // The watermark takes the only slot, whether the reader has passed it or not.
        while writer.signal(2).is_err() {
            room.wait(NEVER);
        }
        drop(reading.join().unwrap());
    });
}

#[test]
fn rows_wait_for_the_watermark_in_front_of_them() {
    check(|| {
        let mut writer = Log::new(2, 1);
        writer.add(Chunk::new(), 1);
        writer.add(Chunk::new(), 1);
        let (room, items) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        writer.set_wake(room.clone());
        let mut reader = writer.join(items.clone());
        let reading = thread::spawn(move || {
            for expected in [Watermark(1), Row(0), Watermark(2), Row(1)] {
                assert_eq!(await_item(&mut reader, &items), Some(expected));
            }
            reader
        });
        for watermark in [1, 2] {
            writer.watermark(watermark);
            while !writer.can_publish() {
                room.wait(NEVER);
            }
            write_row(&mut writer);
        }
        drop(reading.join().unwrap());
    });
}

#[test]
fn the_writer_waits_for_the_slower_of_two_readers() {
    check(|| {
        let mut writer = Log::new(1, 1);
        let room = StdArc::new(Gate::new());
        writer.set_wake(room.clone());
        writer.add(Chunk::new(), 1);
        let readers = [writer.join(StdArc::new(NoWake)), writer.join(StdArc::new(NoWake))];
        // A reader that leaves may have consumed the row or not: the chunk is reclaimed in either case.
        let reading = readers.map(|mut reader| {
            thread::spawn(move || {
                assert!([Row(0), Row(1)].starts_with(&take_some(&mut reader, 2)));
            })
        });
        write_row(&mut writer);
        let chunk = loop {
            match writer.reclaim() {
                Some(chunk) => break chunk,
                None => room.wait(NEVER),
            };
        };
        writer.add(chunk, 1);
        write_row(&mut writer);
        for thread in reading {
            thread.join().unwrap();
        }
    });
}

#[test]
fn everything_is_seen_before_the_end() {
    check(|| {
        let mut writer = Log::new(1, 1);
        writer.add(Chunk::new(), 1);
        let gate = StdArc::new(Gate::new());
        let mut reader = writer.join(gate.clone());
        let writing = thread::spawn(move || {
            write_row(&mut writer);
            writer.watermark(3);
        });
        let items: Vec<_> = std::iter::from_fn(|| await_item(&mut reader, &gate)).collect();
        assert_eq!(items, [Row(0), Watermark(3)]);
        writing.join().unwrap();
    });
}

#[test]
fn both_sides_may_end_at_once() {
    check(|| {
        let mut writer = Log::new(1, 1);
        writer.add(Chunk::new(), 1);
        let reader = writer.join(StdArc::new(NoWake));
        let gauge = reader.gauge();
        let leaving = thread::spawn(move || drop(reader));
        write_row(&mut writer);
        drop(writer);
        leaving.join().unwrap();
        assert_eq!(gauge.work(), Work::default());
    });
}

#[test]
fn a_gauge_never_reads_less_than_nothing() {
    check(|| {
        let mut writer = Log::new(1, 1);
        writer.add(Chunk::new(), 1);
        let mut reader = writer.join(StdArc::new(NoWake));
        let gauge = reader.gauge();
        let reading = thread::spawn(move || take_some(&mut reader, 2));
        let looking = thread::spawn(move || {
            let Work { rows, signals } = gauge.work();
            assert!(rows <= 1 && signals <= 1, "{rows} rows, {signals} signals");
        });
        write_row(&mut writer);
        writer.signal(7).unwrap();
        reading.join().unwrap();
        looking.join().unwrap();
    });
}
