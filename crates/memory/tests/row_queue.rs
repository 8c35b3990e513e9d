//! A row queue and a block log, seen through an edge, behave alike: only the runs are of another length.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod arbitrary;
mod support;

use std::sync::Arc;

use arrow_schema::DataType;
use penstock_memory::edge::Next;
use penstock_memory::{EdgeWriter, LogOptions, MemoryKind, Signal};
use penstock_queue::wake::Nobody;
use proptest::prelude::*;
use support::model::{Event, Step, Stream, any_step};
use support::{Rows, assert_all_returned, coordinator, kinds};

/// Plenty of room in both kinds, so that the same steps come to the same events.
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
        // A watermark is read before the next one comes: how many of several are shown is for each kind to say.
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
fn a_full_edge_says_so_until_somebody_reads() {
    let rows = Rows::new(vec![(DataType::Int64, true), (DataType::Utf8, true)]);
    for (name, kind) in MemoryKind::NAMES {
        let coordinator = coordinator(1 << 20, 1 << 20);
        let options = LogOptions { signals: 4, directory: 2, ..LogOptions::default() };
        let mut writer =
            EdgeWriter::new(kind, rows.layout(), &options, &coordinator, Arc::new(Nobody)).unwrap();
        let mut reader = writer.join(Arc::new(Nobody)).unwrap();
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
                Next::Rows(rows) => {
                    let count = rows.len();
                    drop(rows);
                    reader.advance(count);
                    found += count as u64;
                }
                Next::Signal(Signal::End) => {
                    reader.pass();
                    ends += 1;
                }
                Next::Nothing => break,
                _ => panic!("{name}: nothing else was written"),
            }
        }
        assert_eq!((found, ends), (written, signals), "{name}");
        support::eventually("there is room again", || (writer.room() > 0, name));
        writer.signal(Signal::End).unwrap();
    }
}
