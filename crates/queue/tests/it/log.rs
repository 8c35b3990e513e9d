//! The promises of a log: its rules one by one, any sequence of calls against a model, real threads.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_queue::log::{LogGauge, LogNext, PositionReader, PositionWriter, Work};
use penstock_queue::wake::{NoWake, Wake};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(1);

type Log = PositionWriter<Arc<u32>, u8>;

fn no_wake() -> Arc<dyn Wake> {
    Arc::new(NoWake)
}

/// Creates a log with chunks of these sizes, named 0, 1, 2 and so on.
fn log(capacity: usize, sizes: &[u64]) -> Log {
    let mut writer = Log::new(capacity, 4);
    for (name, &rows) in (0..).zip(sizes) {
        writer.add(Arc::new(name), rows);
    }
    writer
}

/// Returns what comes next, as (chunk, offset, rows, position); it must be rows.
fn rows(reader: &mut PositionReader<Arc<u32>, u8>) -> (u32, u64, u64, u64) {
    match reader.peek() {
        LogNext::Rows { chunk, offset, rows, position } => (**chunk, offset, rows, position),
        other => panic!("{other:?}"),
    }
}

fn woken(gate: &Gate) -> bool {
    gate.wait(SHORT)
}

#[test]
fn rows_come_in_runs_that_lie_in_one_chunk() {
    let mut writer = log(4, &[3, 2]);
    let mut reader = writer.join(no_wake());
    assert_eq!(reader.peek(), LogNext::Nothing);
    writer.publish(2);
    assert_eq!(rows(&mut reader), (0, 0, 2, 0));
    writer.publish(2);
    assert_eq!(rows(&mut reader), (0, 0, 3, 0), "rows published meanwhile, up to the end of the chunk");
    reader.advance(1);
    assert_eq!(rows(&mut reader), (0, 1, 2, 1), "up to the end of the chunk");
    assert_eq!((reader.position(), reader.pending()), (1, 3));
    reader.advance(2);
    assert_eq!(rows(&mut reader), (1, 0, 1, 3), "up to the published rows");
    reader.advance(1);
    assert_eq!(reader.peek(), LogNext::Nothing);
    writer.publish(1);
    assert_eq!(rows(&mut reader), (1, 1, 1, 4));
}

#[test]
fn the_writer_finds_the_chunks_that_it_fills() {
    let mut writer = log(2, &[3, 2]);
    assert_eq!((writer.position(), writer.end(), writer.chunks(), writer.has_entry()), (0, 5, 2, false));
    assert_eq!(writer.current(), Some((&Arc::new(0), 0)));
    assert_eq!(writer.entry_at(2), Some((&Arc::new(0), 2)));
    assert_eq!(writer.entry_at(3), Some((&Arc::new(1), 0)));
    assert_eq!(writer.entry_at(5), None);
    writer.publish(4);
    assert_eq!(writer.current(), Some((&Arc::new(1), 1)));
    assert_eq!(writer.entry_at(3), None, "published rows are no longer the writer's");
    writer.publish(1);
    assert_eq!(writer.current(), None);
    assert_eq!(writer.reclaim(), Some(Arc::new(0)));
    writer.add(Arc::new(2), 7);
    assert_eq!(writer.current(), Some((&Arc::new(2), 0)));
    assert_eq!(writer.end(), 12);
}

#[test]
fn a_chunk_is_reclaimed_when_everyone_has_left_it() {
    let mut writer = log(2, &[2, 2]);
    let (mut fast, mut slow) = (writer.join(no_wake()), writer.join(no_wake()));
    assert_eq!(writer.reclaim(), None, "nothing was written");
    writer.publish(2);
    assert_eq!(rows(&mut fast), (0, 0, 2, 0));
    fast.advance(2);
    assert_eq!((writer.reclaim(), writer.slowest()), (None, 0));
    assert_eq!(rows(&mut slow), (0, 0, 2, 0));
    slow.advance(1);
    assert_eq!((writer.reclaim(), writer.slowest()), (None, 1));
    assert_eq!(rows(&mut slow), (0, 1, 1, 1));
    slow.advance(1);
    assert_eq!((writer.reclaim(), writer.slowest()), (Some(Arc::new(0)), 2));
    assert_eq!(writer.reclaim(), None, "the next one is not full");
    assert_eq!(writer.chunks(), 1);
}

#[test]
fn a_reclaimed_chunk_has_no_other_owner() {
    let mut writer = log(2, &[1, 1]);
    let mut reader = writer.join(no_wake());
    writer.publish(2);
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
    reader.advance(1);
    assert!(Arc::try_unwrap(writer.reclaim().unwrap()).is_ok());
}

#[test]
fn without_readers_a_chunk_is_reclaimed_once_it_is_full() {
    let mut writer = log(2, &[2, 2]);
    writer.publish(1);
    assert_eq!(writer.reclaim(), None);
    writer.publish(2);
    assert_eq!(writer.reclaim(), Some(Arc::new(0)));
    assert_eq!((writer.reclaim(), writer.slowest(), writer.readers()), (None, 3, 0));
}

#[test]
fn a_reader_that_left_holds_nothing_back() {
    let mut writer = log(2, &[2, 2]);
    let gate = Arc::new(Gate::new());
    writer.set_wake(gate.clone());
    let reader = writer.join(no_wake());
    writer.publish(2);
    writer.signal(1).unwrap();
    assert_eq!((writer.reclaim(), writer.readers()), (None, 1));
    assert!(!woken(&gate));
    drop(reader);
    assert!(woken(&gate));
    assert_eq!((writer.reclaim(), writer.readers()), (Some(Arc::new(0)), 0));
    for signal in 0..9 {
        writer.signal(signal).unwrap();
    }
}

#[test]
fn a_reader_joins_at_the_end_with_the_current_watermark() {
    let mut writer = log(2, &[4, 4]);
    writer.watermark(10);
    writer.publish(3);
    writer.signal(1).unwrap();
    writer.watermark(20);
    let mut reader = writer.join(no_wake());
    assert_eq!((reader.position(), reader.pending(), reader.watermark()), (3, 0, i64::MIN));
    assert_eq!(reader.gauge().work(), Work { rows: 0, signals: 1 });
    writer.publish(2);
    writer.watermark(30);
    assert_eq!(reader.peek(), LogNext::Watermark(20));
    reader.pass();
    assert_eq!(reader.watermark(), 20);
    assert_eq!(rows(&mut reader), (0, 3, 1, 3));
    reader.advance(1);
    assert_eq!(rows(&mut reader), (1, 0, 1, 4));
    reader.advance(1);
    assert_eq!(reader.peek(), LogNext::Watermark(30));
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Nothing);
    assert_eq!(reader.gauge().work(), Work::default());
}

#[test]
fn signals_stand_before_the_row_at_their_position() {
    let mut writer = log(2, &[4, 4]);
    let mut reader = writer.join(no_wake());
    writer.publish(1);
    writer.signal(1).unwrap();
    writer.watermark(5);
    writer.publish(2);
    writer.signal(2).unwrap();
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
    assert_eq!(reader.gauge().work(), Work { rows: 3, signals: 4 }, "the newest watermark counts twice");
    reader.advance(1);
    assert_eq!(reader.peek(), LogNext::Signal(1));
    assert_eq!(reader.peek(), LogNext::Signal(1));
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Watermark(5));
    reader.pass();
    assert_eq!(rows(&mut reader), (0, 1, 2, 1));
    reader.advance(2);
    assert_eq!(reader.peek(), LogNext::Signal(2), "though no row follows it");
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Nothing);
    assert_eq!(reader.gauge().work(), Work::default());
}

#[test]
fn watermarks_at_one_position_take_no_room() {
    let mut writer = Log::new(1, 1);
    let mut reader = writer.join(no_wake());
    for value in 0..100 {
        writer.watermark(value);
    }
    writer.watermark(7);
    assert_eq!(writer.watermark_value(), 99);
    assert_eq!(reader.peek(), LogNext::Watermark(99));
    writer.watermark(100);
    assert_eq!(reader.peek(), LogNext::Watermark(99), "the result stays until it is consumed");
    reader.pass();
    assert_eq!((reader.peek(), writer.can_publish()), (LogNext::Watermark(100), true));
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Nothing);
    assert_eq!(reader.watermark(), 100);
}

#[test]
fn a_watermark_that_was_passed_does_not_come_again() {
    let mut writer = log(1, &[4]);
    let mut reader = writer.join(no_wake());
    writer.watermark(5);
    assert_eq!(reader.peek(), LogNext::Watermark(5));
    reader.pass();
    writer.publish(1);
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
    assert_eq!(reader.gauge().work(), Work { rows: 1, signals: 0 });
}

#[test]
fn a_full_ring_pushes_back() {
    let mut writer = Log::new(1, 2);
    writer.add(Arc::new(0), 4);
    let gate = Arc::new(Gate::new());
    writer.set_wake(gate.clone());
    let mut reader = writer.join(no_wake());
    writer.signal(1).unwrap();
    writer.watermark(5);
    assert_eq!(writer.signal(2), Err(2), "the watermark in front took the last slot");
    assert!(writer.can_publish());
    writer.watermark(6);
    assert!(!writer.can_publish());
    assert!(!woken(&gate));
    assert_eq!(reader.peek(), LogNext::Signal(1));
    reader.pass();
    assert!(woken(&gate));
    assert!(writer.can_publish());
    writer.publish(1);
    for watermark in [5, 6] {
        assert_eq!(reader.peek(), LogNext::Watermark(watermark));
        reader.pass();
    }
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
}

#[test]
#[should_panic(expected = "the ring has room for the watermark")]
fn rows_do_not_overtake_a_watermark() {
    let mut writer = Log::new(1, 1);
    writer.add(Arc::new(0), 4);
    let _reader = writer.join(no_wake());
    writer.signal(1).unwrap();
    writer.watermark(5);
    writer.publish(1);
}

#[test]
#[should_panic(expected = "where there are chunks")]
fn rows_are_published_within_the_directory() {
    log(1, &[4]).publish(5);
}

#[test]
#[should_panic(expected = "free entry")]
fn a_full_directory_takes_no_chunk() {
    log(1, &[4, 4]);
}

#[test]
#[should_panic(expected = "only peeked rows are consumed")]
fn rows_are_consumed_as_far_as_they_were_shown() {
    let mut writer = log(1, &[4]);
    let mut reader = writer.join(no_wake());
    writer.publish(1);
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
    writer.publish(1);
    reader.advance(2);
}

#[test]
#[should_panic(expected = "only a peeked signal is passed")]
fn a_signal_is_passed_once() {
    let mut writer = log(1, &[4]);
    let mut reader = writer.join(no_wake());
    writer.signal(1).unwrap();
    writer.signal(2).unwrap();
    assert_eq!(reader.peek(), LogNext::Signal(1));
    reader.pass();
    reader.pass();
}

#[test]
fn the_end_comes_after_everything_else() {
    let mut writer = log(1, &[4]);
    let gate = Arc::new(Gate::new());
    let mut reader = writer.join(gate.clone());
    writer.publish(1);
    writer.signal(1).unwrap();
    writer.watermark(9);
    assert!(woken(&gate));
    drop(writer);
    assert!(woken(&gate));
    assert_eq!(rows(&mut reader), (0, 0, 1, 0));
    reader.advance(1);
    assert_eq!(reader.peek(), LogNext::Signal(1));
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Watermark(9));
    reader.pass();
    assert_eq!(reader.peek(), LogNext::Closed);
    assert_eq!(reader.peek(), LogNext::Closed);
}

#[test]
fn the_writer_is_woken_when_a_reader_leaves_a_chunk() {
    let mut writer = log(2, &[2, 2]);
    let gate = Arc::new(Gate::new());
    writer.set_wake(gate.clone());
    let mut reader = writer.join(no_wake());
    writer.publish(4);
    assert_eq!(rows(&mut reader), (0, 0, 2, 0));
    reader.advance(1);
    assert!(!woken(&gate));
    assert_eq!(rows(&mut reader), (0, 1, 1, 1));
    reader.advance(1);
    assert!(woken(&gate));
}

#[test]
fn chunks_go_with_the_last_side_and_not_with_a_gauge() {
    let chunk = Arc::new(7);
    let mut writer = Log::new(2, 1);
    writer.add(chunk.clone(), 4);
    let reader = writer.join(no_wake());
    let gauge = reader.gauge();
    writer.publish(3);
    drop(writer);
    assert_eq!(Arc::strong_count(&chunk), 2);
    assert_eq!(gauge.work(), Work { rows: 3, signals: 0 });
    drop(reader);
    assert_eq!(Arc::strong_count(&chunk), 1);
    assert_eq!(gauge.clone().work(), Work::default(), "nothing waits for a reader that is gone");
}

#[test]
fn a_wake_up_that_panics_takes_nothing_with_it() {
    struct Broken;
    impl Wake for Broken {
        fn wake(&self) {
            panic!("broken");
        }
    }
    let mut writer = log(2, &[1, 1]);
    writer.set_wake(Arc::new(Broken));
    let mut reader = writer.join(no_wake());
    writer.signal(1).unwrap();
    writer.publish(2);
    let caught = |act: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(act)).is_err();
    assert_eq!(reader.peek(), LogNext::Signal(1));
    assert!(caught(&mut || reader.pass()));
    assert_eq!(rows(&mut reader), (0, 0, 1, 0), "the signal was passed, once");
    assert!(caught(&mut || reader.advance(1)));
    assert_eq!(rows(&mut reader), (1, 0, 1, 1));
    assert_eq!(writer.reclaim(), Some(Arc::new(0)));
    assert!(caught(&mut || reader.advance(1)));
    // Its drop wakes the writer, and panics, too; its contents are dropped all the same.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(reader))).is_err());
}

#[test]
fn what_moves_between_threads_may() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Log>();
    send::<PositionReader<Arc<u32>, u8>>();
    send::<LogGauge>();
    sync::<LogGauge>();
}

/// One log, reclaimed chunks, two readers to the end and one that leaves, all asleep when there is nothing.
#[test]
fn readers_on_their_threads_see_the_same_stream() {
    const CHUNK_ROWS: u64 = 64;
    const ROWS: u64 = 100_000;
    let mut writer = PositionWriter::<u64, u64>::new(2, 2);
    let room = Arc::new(Gate::new());
    writer.set_wake(room.clone());
    let last_rows = [ROWS, ROWS, ROWS / 2];
    let reading = last_rows.map(|last| {
        let gate = Arc::new(Gate::new());
        let mut reader = writer.join(gate.clone());
        thread::spawn(move || {
            let mut signals = 0;
            while reader.position() < last {
                match reader.peek() {
                    LogNext::Rows { chunk, offset, rows, position } => {
                        assert_eq!(
                            *chunk + offset,
                            position,
                            "the chunk holds the rows that it was added for"
                        );
                        assert!(offset + rows <= CHUNK_ROWS);
                        reader.advance(rows.min(last - position).min(50));
                    }
                    LogNext::Watermark(value) => {
                        assert!(value > reader.watermark());
                        assert!(value as u64 <= reader.position());
                        reader.pass();
                    }
                    LogNext::Signal(signal) => {
                        assert_eq!((signal, signal % 1_000), (reader.position(), 0));
                        signals += 1;
                        reader.pass();
                    }
                    LogNext::Nothing => {
                        gate.wait(LONG);
                    }
                    LogNext::Closed => panic!("closed at {}", reader.position()),
                }
            }
            assert_eq!(signals, last / 1_000);
            assert!(reader.watermark() >= last as i64 - 100);
        })
    });
    while writer.position() < ROWS {
        let position = writer.position();
        if position.is_multiple_of(100) {
            writer.watermark(position as i64);
        }
        if position.is_multiple_of(1_000) {
            while writer.signal(position).is_err() {
                room.wait(LONG);
            }
        }
        while !writer.has_entry() && writer.end() == position && writer.reclaim().is_none() {
            room.wait(LONG);
        }
        if writer.end() == position {
            writer.add(position, CHUNK_ROWS);
        }
        while !writer.can_publish() {
            room.wait(LONG);
        }
        writer.publish((writer.end() - position).min(100 - position % 100).min(17));
    }
    for thread in reading {
        thread.join().unwrap();
    }
    assert_eq!(writer.readers(), 0);
}
