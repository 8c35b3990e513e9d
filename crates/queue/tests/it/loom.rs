//! Every interleaving of a producer and a consumer, of single values and of frames, within loom's bounds.
//!
//! Run with `make loom`. A lost wake-up shows as a deadlock, a missing ordering as a race on the slot's cell;
//! `weakened.txt` names the test that fails without each ordering or step.
#![cfg(loom)]

use std::sync::Arc as StdArc;
use std::time::Duration;

use loom::thread;
use penstock_queue::gate::Gate;
use penstock_queue::log::Work;
use penstock_queue::ring::frames::{FrameNext, FrameReader, FrameShape, FrameWriter, frames};
use penstock_queue::ring::{Popped, ring};
use penstock_queue::run_request::RunRequest;
use penstock_queue::sync::{Arc, AtomicU32, Ordering};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;

const NEVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn every_value_arrives_in_order() {
    check(|| {
        let (mut producer, mut consumer) = ring(1);
        let pushing = thread::spawn(move || {
            for number in 0..2_u32 {
                let mut value = number;
                while let Err(back) = producer.try_push(value) {
                    value = back;
                    producer.wait_for_room(NEVER);
                }
            }
        });
        let mut seen = 0;
        loop {
            match consumer.pop() {
                Popped::Value(value) => {
                    assert_eq!(value, seen);
                    seen += 1;
                }
                Popped::Empty => consumer.wait_for_value(NEVER),
                Popped::Closed => break,
            }
        }
        assert_eq!(seen, 2);
        pushing.join().unwrap();
    });
}

#[test]
fn a_blocked_producer_learns_that_the_consumer_left() {
    check(|| {
        let (mut producer, mut consumer) = ring(1);
        producer.try_push(Box::new(1)).unwrap();
        let leaving = thread::spawn(move || {
            let _ = consumer.pop();
        });
        let mut value = Box::new(2);
        while let Err(back) = producer.try_push(value) {
            if producer.is_closed() {
                break;
            }
            value = back;
            producer.wait_for_room(NEVER);
        }
        leaving.join().unwrap();
    });
}

#[test]
fn a_blocked_producer_learns_that_no_consumer_will_pop() {
    check(|| {
        let (mut producer, consumer) = ring(1);
        producer.try_push(1_u32).unwrap();
        let leaving = thread::spawn(move || drop(consumer));
        while !producer.is_closed() {
            producer.wait_for_room(NEVER);
        }
        assert_eq!(producer.try_push(2), Err(2));
        leaving.join().unwrap();
    });
}

#[test]
fn the_last_value_is_seen_before_the_end() {
    check(|| {
        let (mut producer, mut consumer) = ring(2);
        let pushing = thread::spawn(move || {
            producer.try_push(5_u32).unwrap();
        });
        let mut seen = Vec::new();
        loop {
            match consumer.pop() {
                Popped::Value(value) => seen.push(value),
                Popped::Empty => consumer.wait_for_value(NEVER),
                Popped::Closed => break,
            }
        }
        assert_eq!(seen, [5]);
        pushing.join().unwrap();
    });
}

#[test]
fn a_batch_arrives_whole() {
    check(|| {
        let (mut producer, mut consumer) = ring(2);
        let pushing = thread::spawn(move || {
            for first in [0_u32, 2] {
                while producer.room() < 2 {
                    producer.wait_for_room(NEVER);
                }
                let mut batch = producer.batch();
                batch.push(first).unwrap();
                batch.push(first + 1).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 4 {
            let taken = consumer.take(usize::MAX);
            assert!(taken.size_hint().0 % 2 == 0, "a part of a batch");
            let before = seen;
            for value in taken {
                assert_eq!(value, seen);
                seen += 1;
            }
            if seen == before {
                consumer.wait_for_value(NEVER);
            }
        }
        pushing.join().unwrap();
    });
}

/// One word with the number of the frame, and a kept value of that number per frame.
type Frames = (FrameWriter<u8, u64>, FrameReader<u8, u64>);

fn open(frame_count: usize) -> Frames {
    frames(FrameShape { frames: frame_count, words: 1, signals: 1, kept: 1 })
}

fn append(writer: &mut FrameWriter<u8, u64>, first: u64, count: usize) {
    writer.append(count, |some, blank, kept| {
        blank.put(0, some.clone().map(|number| first + number as u64));
        some.for_each(|number| kept.push(first + number as u64).unwrap());
    });
}

#[derive(Debug, PartialEq, Eq)]
enum Item {
    Frames(std::ops::Range<u64>),
    Signal(u8),
}

/// Consumes what comes next; `Err(true)` means that the writer is gone.
fn take(reader: &mut FrameReader<u8, u64>) -> Result<Item, bool> {
    match reader.peek(2) {
        FrameNext::Frames(count) => {
            let first = reader.kept_position() as u64;
            for (number, word) in (first..).zip(reader.frames(count).word(0)) {
                assert_eq!(word, number, "a frame that is not there");
                assert_eq!(
                    reader.see_kept(number as usize, |value| *value),
                    Some(number),
                    "it keeps nothing"
                );
            }
            let end = first + count as u64;
            reader.advance(count, end as usize);
            Ok(Item::Frames(first..end))
        }
        FrameNext::Signal(signal) => {
            reader.pass();
            Ok(Item::Signal(signal))
        }
        FrameNext::Nothing => Err(false),
        FrameNext::Closed => Err(true),
    }
}

#[test]
fn frames_arrive_with_what_they_keep() {
    check(|| {
        let (mut writer, mut reader) = open(2);
        let (rows, room) = (StdArc::new(Gate::new()), StdArc::new(Gate::new()));
        let writing = thread::spawn({
            let (rows, room) = (StdArc::clone(&rows), StdArc::clone(&room));
            move || {
                append(&mut writer, 0, 2);
                rows.signal();
                while writer.room() == 0 {
                    room.wait(NEVER);
                }
                append(&mut writer, 2, 1);
                rows.signal();
            }
        });
        let mut seen = 0;
        while seen < 3 {
            match take(&mut reader) {
                Ok(item) => {
                    let end = if seen < 2 { 2 } else { 3 };
                    assert_eq!(item, Item::Frames(seen..end));
                    seen = end;
                    room.signal();
                }
                Err(_) => drop(rows.wait(NEVER)),
            }
        }
        writing.join().unwrap();
    });
}

#[test]
fn a_signal_between_frames_is_never_overtaken() {
    check(|| {
        let (mut writer, mut reader) = open(2);
        let writing = thread::spawn(move || {
            append(&mut writer, 0, 1);
            writer.signal(7).unwrap();
            append(&mut writer, 1, 1);
        });
        let mut items = Vec::new();
        loop {
            match take(&mut reader) {
                Ok(item) => items.push(item),
                Err(true) => break,
                Err(false) => thread::yield_now(),
            }
        }
        assert_eq!(items, [Item::Frames(0..1), Item::Signal(7), Item::Frames(1..2)]);
        writing.join().unwrap();
    });
}

#[test]
fn frames_and_signals_are_seen_before_the_end() {
    check(|| {
        let (mut writer, mut reader) = open(1);
        let writing = thread::spawn(move || {
            append(&mut writer, 0, 1);
            writer.signal(7).unwrap();
        });
        let mut items = 0;
        loop {
            match take(&mut reader) {
                Ok(_) => items += 1,
                Err(true) => break,
                Err(false) => thread::yield_now(),
            }
        }
        assert_eq!(items, 2);
        writing.join().unwrap();
    });
}

#[test]
fn a_gauge_of_frames_never_reads_less_than_nothing() {
    check(|| {
        let (mut writer, mut reader) = open(1);
        let gauge = reader.gauge();
        let reading = thread::spawn(move || {
            let _ = take(&mut reader);
            let _ = take(&mut reader);
            // Not dropped yet: a signal for a reader that left is returned.
            reader
        });
        let looking = thread::spawn(move || {
            let Work { rows, signals } = gauge.work();
            assert!(rows <= 1 && signals <= 1, "{rows} rows, {signals} signals");
        });
        append(&mut writer, 0, 1);
        writer.signal(7).unwrap();
        reading.join().unwrap();
        looking.join().unwrap();
    });
}

#[test]
fn a_side_that_asked_learns_what_was_made() {
    check(|| {
        let gate = StdArc::new(Gate::new());
        let wanted = Arc::new(Wanted::new(StdArc::clone(&gate) as _));
        let made = Arc::new(AtomicU32::new(0));
        let maker = {
            let (wanted, made) = (Arc::clone(&wanted), Arc::clone(&made));
            thread::spawn(move || {
                for number in 1..=2 {
                    // Relaxed: the word of `Wanted` hands it over.
                    made.store(number, Ordering::Relaxed);
                    wanted.wake();
                }
            })
        };
        for number in 1..=2 {
            let look = || (made.load(Ordering::Relaxed) >= number).then_some(());
            while wanted.look(look).is_none() {
                gate.wait(NEVER);
            }
        }
        maker.join().unwrap();
    });
}

#[test]
fn a_requested_run_sees_what_it_was_requested_for() {
    check(|| {
        let request = Arc::new(RunRequest::default());
        let changed: Vec<Arc<AtomicU32>> = (0..2).map(|_| Arc::new(AtomicU32::new(0))).collect();
        let requesters: Vec<_> = changed
            .iter()
            .map(|changed| {
                let (request, changed) = (Arc::clone(&request), Arc::clone(changed));
                thread::spawn(move || {
                    // Relaxed: the word of `RunRequest` hands it over.
                    changed.store(1, Ordering::Relaxed);
                    request.request_run();
                })
            })
            .collect();
        request.clear_request();
        let seen = changed.iter().all(|changed| changed.load(Ordering::Relaxed) == 1);
        requesters.into_iter().for_each(|requester| requester.join().unwrap());
        assert!(
            seen || request.is_waiting(),
            "a request was cleared, and the run did not see what it was for"
        );
    });
}
