//! A row queue and a block log, seen through an edge, behave alike: only the lengths of runs differ.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use arrow_buffer::Buffer;
use arrow_schema::DataType;
use penstock_memory::edge::{EdgeGauge, EdgeNext};
use penstock_memory::view::make_view;
use penstock_memory::{
    Column, Coordinator, EdgeReader, EdgeWriter, LogOptions, MemoryKind, Payload, Run, SelectedColumn,
    Signal, SlotId, Values,
};
use penstock_queue::gate::Gate;
use penstock_queue::log::Work;
use penstock_queue::wake::{NoWake, Wake};
use proptest::prelude::*;
use support::model::{Event, Step, Stream, any_step};
use support::{HANG, Rows, assert_all_returned, coordinator, kinds};

/// Plenty of room in both kinds, so that the same steps lead to the same events.
const BUDGET_BYTES: usize = 64 << 20;

fn run(kind: MemoryKind, rows: &Rows, steps: &[Step]) -> Vec<Vec<Event>> {
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let mut stream = Stream::open(kind, rows.clone(), &LogOptions::default(), &coordinator);
    stream.apply(&Step::Join);
    steps.iter().for_each(|step| stream.apply(step));
    let found = stream.close();
    drop(stream);
    assert_all_returned(&coordinator);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_time: 120_000, ..ProptestConfig::default() })]

    #[test]
    fn each_kind_hands_on_what_was_written(
        types in prop::collection::vec((prop::sample::select(kinds()), any::<bool>()), 0..5),
        steps in prop::collection::vec(any_step(), 1..60),
    ) {
        let rows = Rows::new(types);
        for (_, kind) in MemoryKind::NAMES {
            run(kind, &rows, &steps);
        }
    }

    #[test]
    fn both_kinds_show_the_same_rows_and_signals(
        types in prop::collection::vec((prop::sample::select(kinds()), any::<bool>()), 0..5),
        writes in prop::collection::vec((1_usize..20, 0_u8..9, -5_i64..20), 1..20),
    ) {
        // A watermark is read before the next one comes: each kind may coalesce several in its own way.
        let steps: Vec<Step> = writes
            .iter()
            .flat_map(|&(rows, signal, by)| {
                let write = Step::Write { rows, stride: 0, odd: false };
                [Step::Watermark(by), write, Step::Signal(signal), Step::Drain(0)]
            })
            .collect();
        let rows = Rows::new(types);
        prop_assert_eq!(run(MemoryKind::Blocks, &rows, &steps), run(MemoryKind::Queue, &rows, &steps));
    }
}

#[test]
fn a_full_edge_refuses_until_a_reader_advances() {
    let rows = Rows::new(vec![(DataType::Int64, true), (DataType::Utf8, true)]);
    for (name, kind) in MemoryKind::NAMES {
        let coordinator = coordinator(1 << 20, 1 << 20);
        let options = LogOptions { signals: 4, directory: 2, ..LogOptions::default() };
        let mut writer =
            EdgeWriter::new(kind, rows.layout(), &options, &coordinator, Arc::new(NoWake)).unwrap();
        let mut reader = writer.join(Arc::new(NoWake)).unwrap();
        let mut written = 0;
        loop {
            let room = writer.room();
            if room == 0 {
                break;
            }
            let numbers: Vec<u64> = (written..written + room as u64).collect();
            writer.append(&rows.source(&numbers, 0, false).pieces(), 0, room);
            written += room as u64;
            assert!(written < 1 << 20, "{name}: room never ends");
        }
        let mut signals = 0;
        while writer.signal(Signal::End).is_ok() {
            signals += 1;
            assert!(signals <= options.signals, "{name}: signals never end");
        }
        let (mut found, mut ends) = (0, 0);
        loop {
            match reader.peek(usize::MAX) {
                EdgeNext::Rows(rows) => {
                    let count = rows.len();
                    drop(rows);
                    reader.advance(count);
                    found += count as u64;
                }
                EdgeNext::Signal(Signal::End) => {
                    reader.pass();
                    ends += 1;
                }
                EdgeNext::Nothing => break,
                _ => panic!("{name}: nothing else was written"),
            }
        }
        assert_eq!((found, ends), (written, signals), "{name}");
        support::eventually("there is room again", || (writer.room() > 0, name));
        writer.signal(Signal::End).unwrap();
    }
}

fn open(kind: MemoryKind, rows: &Rows, coordinator: &Coordinator) -> EdgeWriter {
    EdgeWriter::new(kind, rows.layout(), &LogOptions::default(), coordinator, Arc::new(NoWake)).unwrap()
}

fn write(writer: &mut EdgeWriter, rows: &Rows, numbers: std::ops::Range<u64>) {
    let numbers: Vec<u64> = numbers.collect();
    let source = rows.source(&numbers, 0, false);
    let mut done = 0;
    while done < numbers.len() {
        support::eventually("there is room", || (writer.room() > 0, ()));
        let some = writer.room().min(numbers.len() - done);
        writer.append(&source.pieces(), done, some);
        done += some;
    }
}

/// Returns the number of rows that come next.
fn shown(reader: &mut EdgeReader) -> usize {
    let EdgeNext::Rows(rows) = reader.peek(usize::MAX) else { panic!("rows come next") };
    rows.len()
}

fn run_for(rows: &Rows) -> (Run, Vec<SlotId>) {
    let mut run = Run::new();
    let slots = rows.layout().columns().iter().map(|column| run.add_slot(column.physical)).collect();
    (run, slots)
}

fn one_of_each() -> Rows {
    Rows::new(vec![(DataType::Int64, false), (DataType::Utf8, true), (DataType::Decimal128(38, 4), true)])
}

#[test]
fn rows_may_be_consumed_without_being_read() {
    let rows = one_of_each();
    for (name, kind) in MemoryKind::NAMES {
        let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
        let mut writer = open(kind, &rows, &coordinator);
        let mut reader = writer.join(Arc::new(NoWake)).unwrap();
        let (mut run, slots) = run_for(&rows);
        let mut next = 0;
        // Often enough to wrap around the queue.
        for round in 0..400_u64 {
            write(&mut writer, &rows, round * 20..round * 20 + 20);
            let EdgeNext::Rows(mut found) = reader.peek(usize::MAX) else { panic!("{name}: rows come next") };
            found.truncate(7);
            let count = found.len();
            assert!(count <= 7);
            drop(found);
            reader.advance(count);
            next += count as u64;
            while next < round * 20 + 20 {
                let EdgeNext::Rows(found) = reader.peek(usize::MAX) else { panic!("{name}: rows come next") };
                let count = found.len();
                found.begin(&mut run, &slots);
                run.ready(&slots);
                let numbers: Vec<u64> = (next..next + count as u64).collect();
                rows.check(&numbers, |column| run.column(slots[column]));
                run.close();
                reader.advance(count);
                next += count as u64;
            }
            assert!(matches!(reader.peek(usize::MAX), EdgeNext::Nothing), "{name}");
        }
    }
}

#[test]
fn rows_that_wait_together_are_one_run() {
    let rows = one_of_each();
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let mut writer = open(MemoryKind::Queue, &rows, &coordinator);
    let mut reader = writer.join(Arc::new(NoWake)).unwrap();
    write(&mut writer, &rows, 0..2);
    write(&mut writer, &rows, 2..6);
    assert!(writer.watermark(5));
    write(&mut writer, &rows, 6..9);
    writer.signal(Signal::End).unwrap();
    assert_eq!(shown(&mut reader), 6);
    write(&mut writer, &rows, 9..10);
    assert_eq!(shown(&mut reader), 6, "the same until it is consumed");
    reader.advance(0);
    reader.advance(5);
    assert_eq!(shown(&mut reader), 1);
    reader.advance(1);
    assert!(matches!(reader.peek(usize::MAX), EdgeNext::Watermark(5)));
    reader.pass();
    assert_eq!((reader.watermark(), shown(&mut reader)), (5, 3));
    reader.advance(3);
    assert!(matches!(reader.peek(usize::MAX), EdgeNext::Signal(Signal::End)));
    reader.pass();
    assert_eq!((reader.pending(), shown(&mut reader)), (1, 1));
    reader.advance(1);
    write(&mut writer, &rows, 34..834);
    let mut left = 800;
    while left > 0 {
        let count = shown(&mut reader);
        assert!(count > 1, "rows that wait are taken together");
        reader.advance(count);
        left -= count;
    }
}

#[test]
fn a_gauge_counts_rows_and_signals_apart() {
    let rows = one_of_each();
    for (name, kind) in MemoryKind::NAMES {
        let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
        let mut writer = open(kind, &rows, &coordinator);
        let mut reader = writer.join(Arc::new(NoWake)).unwrap();
        let gauge: EdgeGauge = reader.gauge();
        let elsewhere = gauge.clone();
        let work = || thread::scope(|scope| scope.spawn(|| elsewhere.work()).join().unwrap());
        assert_eq!(work(), Work::default(), "{name}");
        write(&mut writer, &rows, 0..10);
        writer.signal(Signal::End).unwrap();
        write(&mut writer, &rows, 10..15);
        assert_eq!(work(), Work { rows: 15, signals: 1 }, "{name}");
        // Peeking consumes nothing.
        shown(&mut reader);
        reader.advance(4);
        shown(&mut reader);
        assert_eq!(work(), Work { rows: 11, signals: 1 }, "{name}");
        reader.advance(6);
        assert!(matches!(reader.peek(usize::MAX), EdgeNext::Signal(Signal::End)), "{name}");
        assert_eq!(work(), Work { rows: 5, signals: 1 }, "{name}");
        reader.pass();
        assert_eq!(work(), Work { rows: 5, signals: 0 }, "{name}");
        assert!(writer.watermark(3), "{name}");
        assert!(work().signals > 0, "{name}: a watermark is work");
        drop((reader, writer));
        assert_all_returned(&coordinator);
        assert_eq!(gauge.work(), Work::default(), "{name}: nothing waits for a reader that is gone");
    }
}

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_queue_wakes_once_for_many_rows() {
    let rows = one_of_each();
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let [for_room, for_rows] = [(); 2].map(|()| Arc::new(Count::default()));
    let woken = |count: &Count| count.0.swap(0, Ordering::Relaxed);
    let options = LogOptions::default();
    let mut writer =
        EdgeWriter::new(MemoryKind::Queue, rows.layout(), &options, &coordinator, Arc::clone(&for_room) as _)
            .unwrap();
    let mut readers = [(); 2].map(|()| writer.join(Arc::clone(&for_rows) as _).unwrap());
    write(&mut writer, &rows, 0..100);
    assert_eq!((woken(&for_rows), woken(&for_room)), (2, 0), "each reader once");
    assert_eq!(shown(&mut readers[0]), 8);
    readers[0].advance(8);
    assert_eq!((woken(&for_rows), woken(&for_room)), (0, 1));
    let [first, second] = readers;
    drop(first);
    assert_eq!(woken(&for_room), 1, "a reader that leaves may make room");
    drop(writer);
    assert_eq!(woken(&for_rows), 2, "a waiting reader learns that no row will come");
    drop(second);
}

#[test]
fn a_payload_is_let_go_of_with_its_row() {
    let rows = Rows::new(vec![(DataType::Utf8, false)]);
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let mut writer = open(MemoryKind::Queue, &rows, &coordinator);
    let mut reader = writer.join(Arc::new(NoWake)).unwrap();
    let (mut run, slots) = run_for(&rows);
    let text = b"longer than a view has room for".to_vec();
    let buffer = Buffer::from_vec(text.clone());
    let payloads = vec![Payload::from(buffer.clone())];
    let (long, short) = (make_view(&text, 0, 0), make_view(b"short", 0, 0));
    let views = [long, short, long, long];
    let piece = SelectedColumn {
        column: Column { values: Values::View(&views, (&payloads).into()), valid: None },
        rows: None,
    };
    let alone = buffer.strong_count();
    for round in 0..2_000 {
        writer.append(&[piece], 0, 4);
        assert_eq!(buffer.strong_count(), alone + 3, "round {round}");
        let EdgeNext::Rows(found) = reader.peek(usize::MAX) else { panic!("rows come next") };
        let count = found.len();
        found.begin(&mut run, &slots);
        assert!(buffer.strong_count() > alone + 3);
        run.close();
        if count == 4 {
            reader.advance(2);
            assert_eq!(buffer.strong_count(), alone + 2, "round {round}");
            assert_eq!(shown(&mut reader), 2);
            reader.advance(1);
            assert_eq!(buffer.strong_count(), alone + 1, "round {round}");
            shown(&mut reader);
            reader.advance(1);
        } else {
            reader.advance(count);
            while let EdgeNext::Rows(found) = reader.peek(usize::MAX) {
                let count = found.len();
                reader.advance(count);
            }
        }
        assert_eq!(buffer.strong_count(), alone, "round {round}");
    }
    writer.append(&[piece], 0, 4);
    drop((reader, writer));
    assert_eq!(buffer.strong_count(), alone, "unread rows keep nothing alive");
}

#[test]
fn rows_of_a_queue_go_from_thread_to_thread() {
    const ROWS: u64 = 5_000;
    let rows = &one_of_each();
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let [room, filled] = [(); 2].map(|()| Arc::new(Gate::new()));
    let options = LogOptions::default();
    let mut writer =
        EdgeWriter::new(MemoryKind::Queue, rows.layout(), &options, &coordinator, Arc::clone(&room) as _)
            .unwrap();
    let mut reader = writer.join(Arc::clone(&filled) as _).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut written = 0;
            while written < ROWS {
                let some = (writer.room() as u64).min(1 + written % 300).min(ROWS - written);
                if some == 0 {
                    assert!(room.wait(HANG), "the writer is woken");
                    continue;
                }
                write(&mut writer, rows, written..written + some);
                written += some;
                while !writer.watermark(written as i64) {
                    assert!(room.wait(HANG), "the writer is woken");
                }
            }
        });
        let (mut run, slots) = run_for(rows);
        let mut read = 0;
        loop {
            match reader.peek(usize::MAX) {
                EdgeNext::Rows(found) => {
                    let count = found.len();
                    found.begin(&mut run, &slots);
                    run.ready(&slots);
                    let numbers: Vec<u64> = (read..read + count as u64).collect();
                    rows.check(&numbers, |column| run.column(slots[column]));
                    reader.advance(count);
                    read += count as u64;
                }
                EdgeNext::Watermark(watermark) => {
                    assert_eq!(watermark, read as i64, "a watermark follows its rows");
                    reader.pass();
                }
                EdgeNext::Signal(_) => panic!("no signal was sent"),
                EdgeNext::Nothing => assert!(filled.wait(HANG), "the reader is woken"),
                EdgeNext::Closed => break,
            }
        }
        assert_eq!(read, ROWS);
    });
}

#[test]
fn a_null_needs_a_nullable_column() {
    let rows = Rows::new(vec![(DataType::Int64, false)]);
    for (name, kind) in MemoryKind::NAMES {
        let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
        let mut writer = open(kind, &rows, &coordinator);
        let _reader = writer.join(Arc::new(NoWake)).unwrap();
        assert!(writer.room() > 0);
        let column = Column { values: Values::I64(&[1, 2]), valid: Some(&[1, 0]) };
        let piece = SelectedColumn { column, rows: None };
        let written =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.append(&[piece], 0, 2)));
        assert!(written.is_err(), "{name}");
    }
}
