//! Any sequence of calls on a log, against a list of what each reader has to see.
#![cfg(not(loom))]

use std::sync::Arc;

use penstock_queue::log::{LogNext, PositionReader, PositionWriter};
use penstock_queue::wake::NoWake;
use proptest::prelude::*;

const CHUNKS: usize = 3;
const SIGNALS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Add(u64),
    Publish(u64),
    Watermark(i64),
    Signal(u8),
    Reclaim,
    Join,
    Leave(usize),
    Consume(usize, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (1..5_u64).prop_map(Step::Add),
        3 => (1..7_u64).prop_map(Step::Publish),
        2 => (0..40_i64).prop_map(Step::Watermark),
        1 => any::<u8>().prop_map(Step::Signal),
        2 => Just(Step::Reclaim),
        1 => Just(Step::Join),
        1 => (0..4_usize).prop_map(Step::Leave),
        8 => (0..4_usize, 1..4_u64).prop_map(|(reader, rows)| Step::Consume(reader, rows)),
    ];
    prop::collection::vec(step, 1..150)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Row(u64),
    Watermark(i64),
    Signal(u8),
}

struct Listener {
    reader: PositionReader<Arc<u64>, u8>,
    due: Vec<Item>,
    seen: Vec<Item>,
}

impl Listener {
    /// Consumes what comes next, up to `most` rows; returns true if there was something.
    fn consume(&mut self, most: u64) -> bool {
        let gauge = self.reader.gauge();
        assert_eq!(gauge.work().rows, self.reader.pending());
        match self.reader.peek() {
            LogNext::Rows { chunk, offset, rows, position } => {
                assert_eq!(**chunk + offset, position);
                assert!(rows > 0);
                let rows = rows.min(most);
                self.seen.extend((position..position + rows).map(Item::Row));
                self.reader.advance(rows);
            }
            LogNext::Watermark(value) => {
                assert!(value > self.reader.watermark());
                self.seen.push(Item::Watermark(value));
                self.reader.pass();
            }
            LogNext::Signal(signal) => {
                self.seen.push(Item::Signal(signal));
                self.reader.pass();
            }
            LogNext::Nothing | LogNext::Closed => {
                assert_eq!((gauge.work().rows, gauge.work().signals), (0, 0));
                return false;
            }
        }
        true
    }

    /// Counts watermarks between the same neighbours as one: how many of them a reader meets depends on when it looks.
    fn check(mut self) {
        while self.consume(u64::MAX) {}
        let last_of_each = |items: &[Item]| -> Vec<Item> {
            let hidden = |pair: &[Item]| matches!(pair, [Item::Watermark(_), Item::Watermark(_)]);
            let kept = (0..items.len()).filter(|&at| !items.get(at..at + 2).is_some_and(hidden));
            kept.map(|at| items[at]).collect()
        };
        assert_eq!(last_of_each(&self.seen), last_of_each(&self.due));
    }
}

proptest! {
    #[test]
    fn every_reader_sees_everything_since_it_joined_in_order(steps in steps()) {
        let mut writer = PositionWriter::<Arc<u64>, u8>::new(CHUNKS, SIGNALS);
        let mut listeners: Vec<Listener> = Vec::new();
        // Ends of the chunks in the directory, oldest first.
        let mut ends: Vec<u64> = Vec::new();
        for step in steps {
            match step {
                Step::Add(rows) if writer.has_entry() => {
                    writer.add(Arc::new(writer.end()), rows);
                    ends.push(writer.end());
                }
                Step::Add(_) => prop_assert_eq!(writer.chunks(), CHUNKS),
                Step::Publish(rows) => {
                    let from = writer.position();
                    let rows = rows.min(writer.end() - from);
                    if rows > 0 && writer.can_publish() {
                        writer.publish(rows);
                        for listener in &mut listeners {
                            listener.due.extend((from..from + rows).map(Item::Row));
                        }
                    }
                }
                Step::Watermark(value) => {
                    if value > writer.watermark_value() {
                        listeners.iter_mut().for_each(|listener| listener.due.push(Item::Watermark(value)));
                    }
                    writer.watermark(value);
                }
                Step::Signal(signal) => match writer.signal(signal) {
                    Ok(()) => listeners.iter_mut().for_each(|listener| listener.due.push(Item::Signal(signal))),
                    Err(back) => {
                        prop_assert_eq!(back, signal);
                        prop_assert!(listeners.iter().any(|listener| listener.reader.gauge().work().signals > 0));
                    }
                },
                Step::Reclaim => {
                    let slowest = listeners.iter().map(|listener| listener.reader.position()).min();
                    let left = slowest.unwrap_or(writer.position());
                    prop_assert_eq!(writer.slowest(), left);
                    let due = ends.first().is_some_and(|&end| end <= left);
                    let chunk = writer.reclaim();
                    prop_assert_eq!(chunk.is_some(), due);
                    if let Some(chunk) = chunk {
                        ends.remove(0);
                        prop_assert_eq!(Arc::strong_count(&chunk), 1);
                    }
                }
                Step::Join => {
                    let reader = writer.join(Arc::new(NoWake));
                    let known = writer.watermark_value();
                    let due = if known > i64::MIN { vec![Item::Watermark(known)] } else { Vec::new() };
                    listeners.push(Listener { reader, due, seen: Vec::new() });
                }
                Step::Leave(which) if which < listeners.len() => drop(listeners.remove(which)),
                Step::Consume(which, rows) if which < listeners.len() => {
                    listeners[which].consume(rows);
                }
                Step::Leave(_) | Step::Consume(..) => {}
            }
            prop_assert_eq!(writer.readers(), listeners.len());
        }
        drop(writer);
        listeners.into_iter().for_each(Listener::check);
    }
}
