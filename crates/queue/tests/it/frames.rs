//! The promises of frame queues, on one thread and on two.
#![cfg(not(any(loom, shuttle)))]

use std::sync::Arc;
use std::thread;

use penstock_queue::log::Work;
use penstock_queue::ring::frames::{FrameNext, FrameReader, FrameShape, FrameWriter, frames};

const MOST: usize = 3;

/// Frames of two words: a number, and how many values were kept when it was written.
fn open(frame_count: usize) -> (FrameWriter<char, Arc<u64>>, FrameReader<char, Arc<u64>>) {
    frames(FrameShape { frames: frame_count, words: 2, signals: 2, kept: 1 })
}

/// Appends frames that hold their numbers, and keep the same number each.
fn append(writer: &mut FrameWriter<char, Arc<u64>>, first: u64, count: usize) {
    writer.append(count, |some, blank, kept| {
        blank.put(0, some.clone().map(|number| first + number as u64));
        for (frame, number) in some.enumerate() {
            kept.push(Arc::new(first + number as u64))
                .expect("FRAMES-3: room for a frame is room for what it keeps");
            blank.set(frame, 1, kept.position() as u64);
        }
    });
}

/// Consumes `count` of the peeked frames; returns their numbers.
fn consume(reader: &mut FrameReader<char, Arc<u64>>, count: usize) -> Vec<u64> {
    let shown = reader.frames(count);
    let numbers: Vec<u64> = shown.word(0).collect();
    let kept: Vec<u64> = shown.word(1).collect();
    for (number, kept) in numbers.iter().zip(&kept) {
        assert_eq!(reader.see_kept(*kept as usize - 1, |value| **value), Some(*number));
    }
    let until = kept.last().map_or(reader.kept_position(), |kept| *kept as usize);
    reader.advance(count, until);
    assert_eq!(reader.see_kept(until - 1, |value| **value), None, "a consumed frame keeps nothing");
    numbers
}

#[test]
fn frames_are_taken_as_they_lie() {
    let (mut writer, mut reader) = open(4);
    assert_eq!(reader.peek(MOST), FrameNext::Nothing);
    append(&mut writer, 0, 4);
    assert_eq!(writer.room(), 0);
    assert_eq!(reader.peek(MOST), FrameNext::Frames(3));
    assert_eq!(reader.peek(1), FrameNext::Frames(3), "the same until it is consumed");
    assert_eq!(consume(&mut reader, 2), [0, 1]);
    assert_eq!(writer.room(), 2);
    append(&mut writer, 4, 2);
    assert_eq!(reader.peek(MOST), FrameNext::Frames(2), "up to where the memory ends");
    assert_eq!(consume(&mut reader, 2), [2, 3]);
    assert_eq!(reader.peek(MOST), FrameNext::Frames(2));
    assert_eq!(consume(&mut reader, 2), [4, 5]);
    assert_eq!(reader.peek(MOST), FrameNext::Nothing);
}

#[test]
fn signals_stand_where_they_were_put() {
    let (mut writer, mut reader) = open(8);
    writer.signal('a').unwrap();
    append(&mut writer, 0, 2);
    writer.signal('b').unwrap();
    assert_eq!((writer.signal_room(), writer.signal('c')), (0, Err('c')));
    append(&mut writer, 2, 1);
    assert_eq!(reader.gauge().work(), Work { rows: 3, signals: 2 });
    assert_eq!(reader.peek(MOST), FrameNext::Signal('a'));
    assert_eq!(reader.gauge().work(), Work { rows: 3, signals: 2 });
    reader.pass();
    assert_eq!(reader.gauge().work(), Work { rows: 3, signals: 1 });
    assert_eq!(reader.peek(MOST), FrameNext::Frames(2));
    assert_eq!(consume(&mut reader, 2), [0, 1]);
    writer.signal('c').unwrap();
    assert_eq!(reader.peek(MOST), FrameNext::Signal('b'));
    reader.pass();
    assert_eq!(reader.peek(MOST), FrameNext::Frames(1));
    assert_eq!(consume(&mut reader, 1), [2]);
    drop(writer);
    assert_eq!(reader.peek(MOST), FrameNext::Signal('c'));
    reader.pass();
    assert_eq!((reader.peek(MOST), reader.pending()), (FrameNext::Closed, 0));
}

#[test]
fn unconsumed_frames_are_released() {
    let value = Arc::new(7);
    let (mut writer, reader) = frames::<char, _>(FrameShape { frames: 2, words: 1, signals: 1, kept: 2 });
    writer.append(1, |_, _, kept| kept.push(Arc::clone(&value)).unwrap());
    let gauge = reader.gauge();
    drop(reader);
    assert!(writer.is_closed());
    writer.append(1, |_, _, kept| kept.push(Arc::clone(&value)).unwrap());
    drop(writer);
    assert_eq!(Arc::strong_count(&value), 1, "a gauge keeps nothing alive");
    assert_eq!(gauge.work(), Work::default(), "nothing waits for a reader that is gone");
}

#[test]
#[should_panic(expected = "appended frames fit the room")]
fn no_more_frames_than_there_is_room_for() {
    append(&mut open(2).0, 0, 3);
}

#[test]
#[should_panic(expected = "only peeked frames are consumed")]
fn no_more_frames_than_were_shown() {
    let (mut writer, mut reader) = open(2);
    append(&mut writer, 0, 2);
    reader.advance(1, 0);
}

#[test]
fn frames_and_signals_arrive_once_and_in_order() {
    const FRAMES: u64 = 20_000;
    let (mut writer, mut reader) = open(16);
    let writing = thread::spawn(move || {
        let mut next = 0;
        while next < FRAMES {
            let some = writer.room().min((FRAMES - next) as usize).min(1 + next as usize % 7);
            if some == 0 {
                thread::yield_now();
                continue;
            }
            append(&mut writer, next, some);
            next += some as u64;
            // The number in a signal tells which frames came before it.
            if next.is_multiple_of(5) {
                while writer.signal('s').is_err() {
                    thread::yield_now();
                }
            }
        }
    });
    let gauge = reader.gauge();
    let mut seen = 0;
    loop {
        let work = gauge.work();
        assert!(work.rows <= 16 && work.signals <= 2, "{work:?}");
        match reader.peek(MOST) {
            FrameNext::Frames(count) => {
                let numbers = consume(&mut reader, count.min(1 + seen as usize % 3));
                assert_eq!(numbers, (seen..seen + numbers.len() as u64).collect::<Vec<_>>());
                seen += numbers.len() as u64;
            }
            FrameNext::Signal(_) => {
                assert!(seen.is_multiple_of(5), "a signal after frame {seen}");
                reader.pass();
            }
            FrameNext::Nothing => thread::yield_now(),
            FrameNext::Closed => break,
        }
    }
    assert_eq!(seen, FRAMES);
    writing.join().unwrap();
}
