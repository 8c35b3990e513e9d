//! A stream with a model of it: per reader, a queue of what it must find next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use penstock_memory::edge::{EdgeNext, EdgeRows};
use penstock_memory::{
    Coordinator, EdgeReader, EdgeWriter, Lease, LogOptions, MemoryKind, Run, Signal, SlotId,
};
use penstock_queue::wake::Wake;
use proptest::prelude::*;

use super::{Rows, eventually};

/// A step of a stream. Numbers of readers and leases are taken modulo their count.
#[derive(Clone, Debug)]
pub enum Step {
    Write {
        rows: usize,
        stride: usize,
        odd: bool,
    },
    Signal(u8),
    Watermark(i64),
    Join,
    Leave(usize),
    /// Peeks at most `limit` rows and consumes some of them, or the signal that comes next.
    Read {
        reader: usize,
        limit: usize,
        consumed: usize,
        hold: bool,
    },
    Drain(usize),
    /// Drops a lease.
    Release(usize),
    Trim,
    /// Drops every lease and reads everything: then there is room again.
    Settle,
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let write = (1_usize..200, prop::sample::select(vec![0, 0, 2, 3, 16]), any::<bool>());
    let limit = prop_oneof![Just(usize::MAX), 1_usize..40];
    let read = (any::<usize>(), limit, 0_usize..300, any::<bool>());
    prop_oneof![
        12 => write.prop_map(|(rows, stride, odd)| Step::Write { rows, stride, odd }),
        4 => any::<u8>().prop_map(Step::Signal),
        4 => (-5_i64..20).prop_map(Step::Watermark),
        2 => Just(Step::Join),
        1 => any::<usize>().prop_map(Step::Leave),
        12 => read.prop_map(|(reader, limit, consumed, hold)| Step::Read { reader, limit, consumed, hold }),
        3 => any::<usize>().prop_map(Step::Drain),
        3 => any::<usize>().prop_map(Step::Release),
        1 => Just(Step::Trim),
        1 => Just(Step::Settle),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Row(u64),
    Watermark(i64),
    Signal(Signal),
}

/// Counts wake-ups.
#[derive(Default)]
struct Counter(AtomicU64);

impl Counter {
    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Counter {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Seat {
    reader: EdgeReader,
    woken: Arc<Counter>,
    /// The number of wake-ups when it found nothing.
    asleep: Option<u64>,
    expected: VecDeque<Event>,
    watermark: i64,
    /// All events that it has found.
    found: Vec<Event>,
}

/// A lease that outlives the step that took it, and the rows it must still hold.
struct Held {
    lease: Lease,
    rows: Vec<u64>,
}

/// A stream under test.
pub struct Stream {
    kind: MemoryKind,
    /// `None` once the stream is closed.
    writer: Option<EdgeWriter>,
    woken: Arc<Counter>,
    /// The number of the writer's wake-ups when it found no room, with no lease held then or since.
    asleep: Option<u64>,
    rows: Rows,
    seats: Vec<Seat>,
    held: Vec<Held>,
    written: u64,
    watermark: i64,
    run: Run,
    slots: Vec<SlotId>,
}

impl Stream {
    pub fn open(kind: MemoryKind, rows: Rows, options: &LogOptions, coordinator: &Coordinator) -> Self {
        let woken = Arc::new(Counter::default());
        let writer =
            EdgeWriter::new(kind, rows.layout(), options, coordinator, Arc::clone(&woken) as _).unwrap();
        let mut run = Run::new();
        let slots = rows.layout().columns().iter().map(|column| run.add_slot(column.physical)).collect();
        let (seats, held) = (Vec::new(), Vec::new());
        Self {
            kind,
            writer: Some(writer),
            woken,
            asleep: None,
            rows,
            seats,
            held,
            written: 0,
            watermark: i64::MIN,
            run,
            slots,
        }
    }

    pub fn apply(&mut self, step: &Step) {
        match *step {
            Step::Write { rows, stride, odd } => self.write(rows, stride, odd),
            Step::Signal(number) => self.signal(number),
            Step::Watermark(by) => self.watermark(self.watermark.max(0) + by),
            Step::Join => self.join(),
            Step::Leave(reader) if !self.seats.is_empty() => {
                self.seats.swap_remove(reader % self.seats.len());
            }
            Step::Read { reader, limit, consumed, hold } if !self.seats.is_empty() => {
                self.read(reader % self.seats.len(), limit, consumed, hold);
            }
            Step::Drain(reader) if !self.seats.is_empty() => self.drain(reader % self.seats.len()),
            Step::Release(lease) if !self.held.is_empty() => {
                self.asleep = None;
                let held = self.held.swap_remove(lease % self.held.len());
                self.rows.check(&held.rows, |column| held.lease.column(column));
            }
            Step::Trim => self.writer().trim(),
            Step::Settle => self.settle(),
            Step::Leave(_) | Step::Read { .. } | Step::Drain(_) | Step::Release(_) => {}
        }
    }

    fn tell(&mut self, event: Event) {
        for seat in &mut self.seats {
            seat.expected.push_back(event);
        }
    }

    /// Writes as many of the rows as there is room for.
    fn write(&mut self, rows: usize, stride: usize, odd: bool) {
        // A reader woken from now on looks again.
        let woken = self.woken.count();
        let rows = rows.min(self.writer().room());
        if rows == 0 {
            self.asleep = self.held.is_empty().then_some(self.asleep.unwrap_or(woken));
            return;
        }
        self.check_woken();
        let numbers: Vec<u64> = (self.written..self.written + rows as u64).collect();
        let source = self.rows.source(&numbers, stride, odd);
        // In two parts, so that not every append starts at the first row.
        let first = rows / 3;
        self.writer().append(&source.pieces(), 0, first);
        self.writer().append(&source.pieces(), first, rows - first);
        numbers.iter().for_each(|&row| self.tell(Event::Row(row)));
        self.written += rows as u64;
        if let Some(EdgeWriter::Blocks(writer)) = &self.writer {
            assert_eq!(writer.position(), self.written);
        }
    }

    /// Another stream of the same budget took a step: that may make room, and wakes no one here.
    pub fn is_not_alone(&mut self) {
        self.asleep = None;
    }

    /// The writer found no room before: it has been woken since.
    fn check_woken(&mut self) {
        if let Some(asleep) = self.asleep.take() {
            let woken = &self.woken;
            eventually("the writer is woken when there may be room", || (asleep < woken.count(), asleep));
        }
    }

    fn signal(&mut self, number: u8) {
        let at_ns = self.written * 1000 + u64::from(number);
        let signal = match number % 3 {
            0 => Signal::Marker { sent_ns: at_ns },
            1 => Signal::Arrival { at_ns },
            _ => Signal::End,
        };
        match self.writer().signal(signal) {
            Ok(()) => self.tell(Event::Signal(signal)),
            Err(back) => assert_eq!(back, signal),
        }
    }

    fn watermark(&mut self, value: i64) {
        if self.writer().watermark(value) && value > self.watermark {
            self.watermark = value;
            self.tell(Event::Watermark(value));
        }
    }

    fn join(&mut self) {
        let woken = Arc::new(Counter::default());
        let reader = self.writer().join(Arc::clone(&woken) as _).unwrap();
        let known = (self.watermark > i64::MIN).then_some(Event::Watermark(self.watermark));
        let (expected, found) = (known.into_iter().collect(), Vec::new());
        self.seats.push(Seat { reader, woken, asleep: None, expected, watermark: i64::MIN, found });
    }

    /// Lets a reader look once; returns true if it found something.
    fn read(&mut self, number: usize, limit: usize, consumed: usize, hold: bool) -> bool {
        let Self { kind, writer, asleep: waiting_writer, rows, seats, held, run, slots, .. } = self;
        let seat = &mut seats[number];
        let waiting = seat.expected.iter().filter(|event| matches!(event, Event::Row(_))).count() as u64;
        assert_eq!(seat.reader.pending(), waiting);
        let work = seat.reader.gauge().work();
        assert_eq!(work.rows, waiting);
        assert!(work.signals > 0 || waiting == seat.expected.len() as u64, "a gauge reads low");
        if *kind == MemoryKind::Queue {
            assert_eq!(work.rows + work.signals, seat.expected.len() as u64);
        }
        let woken = seat.woken.count();
        let asleep = seat.asleep.take();
        if !seat.expected.is_empty() {
            assert!(asleep.is_none_or(|asleep| asleep < woken), "the reader was not woken");
        }
        match seat.reader.peek(limit) {
            EdgeNext::Rows(found) => {
                let count = found.len();
                assert!(count > 0 && count <= limit, "{count} rows of at most {limit}");
                let numbers: Vec<u64> = seat.expected.iter().map_while(row_of).take(count).collect();
                assert_eq!(numbers.len(), count, "more rows than were written before the next signal");
                let lease = match found {
                    EdgeRows::Lease(lease) => {
                        rows.check(&numbers, |column| lease.column(column));
                        Some(lease)
                    }
                    found @ EdgeRows::Rows(_) => {
                        found.begin(run, slots);
                        run.ready(slots);
                        rows.check(&numbers, |column| run.column(slots[column]));
                        None
                    }
                };
                let consumed = consumed.min(count);
                match lease {
                    Some(lease) if hold => {
                        held.push(Held { lease, rows: numbers });
                        *waiting_writer = None;
                    }
                    lease => drop(lease),
                }
                seat.reader.advance(consumed);
                seat.found.extend(seat.expected.drain(..consumed));
                return true;
            }
            EdgeNext::Watermark(value) => {
                // A watermark may replace older ones at the same position.
                while matches!(seat.expected.front(), Some(Event::Watermark(older)) if *older < value) {
                    seat.expected.pop_front();
                }
                assert_eq!(seat.expected.front(), Some(&Event::Watermark(value)));
                assert!(value > seat.watermark, "{value} after {}", seat.watermark);
                seat.watermark = value;
            }
            EdgeNext::Signal(signal) => assert_eq!(seat.expected.front(), Some(&Event::Signal(signal))),
            EdgeNext::Nothing => {
                assert_eq!(seat.expected.front(), None, "there is something to be read");
                assert!(writer.is_some(), "a reader learns that the writer is gone");
                seat.asleep = Some(woken);
                return false;
            }
            EdgeNext::Closed => {
                assert_eq!(seat.expected.front(), None, "there is something to be read");
                assert!(writer.is_none(), "the writer is still there");
                assert!(asleep.is_none_or(|asleep| asleep < woken), "the reader was not woken");
                return false;
            }
        }
        seat.reader.pass();
        seat.found.extend(seat.expected.pop_front());
        assert_eq!(seat.reader.watermark(), seat.watermark);
        true
    }

    fn drain(&mut self, number: usize) {
        while self.read(number, usize::MAX, usize::MAX, false) {}
    }

    /// BLOCK_LOG-3: once everything is read and nothing is leased, the writer can proceed.
    pub fn settle(&mut self) {
        self.check_held();
        if !self.held.is_empty() {
            self.asleep = None;
            self.held.clear();
        }
        (0..self.seats.len()).for_each(|number| self.drain(number));
        self.check_woken();
        let writer = self.writer();
        eventually("there is room when everything is read", || (writer.room() > 0, ()));
        self.write(1, 0, false);
    }

    /// Checks that leased rows do not change, whatever else happens.
    pub fn check_held(&self) {
        for held in &self.held {
            self.rows.check(&held.rows, |column| held.lease.column(column));
        }
    }

    /// Drops the writer; every reader finds the rest, and then the end. Returns the events that each of them has found
    /// in all.
    pub fn close(&mut self) -> Vec<Vec<Event>> {
        self.writer = None;
        (0..self.seats.len()).for_each(|number| self.drain(number));
        self.check_held();
        self.seats.iter_mut().map(|seat| std::mem::take(&mut seat.found)).collect()
    }

    fn writer(&mut self) -> &mut EdgeWriter {
        self.writer.as_mut().unwrap()
    }
}

fn row_of(event: &Event) -> Option<u64> {
    if let Event::Row(row) = event { Some(*row) } else { None }
}
