//! A log hands every row and every signal to every reader, in order, whatever happens meanwhile; and it gives back all
//! that it took.

use crate::support;

use std::sync::Arc;

use arrow_schema::DataType;
use penstock_memory::shape::{ShapeOptions, Shapes};
use penstock_memory::{BlockNext, Coordinator, LogOptions, LogWriter, MemoryKind};
use penstock_queue::wake::NoWake;
use proptest::prelude::*;
use support::model::{Step, Stream, any_step};
use support::{Rows, assert_all_returned, coordinator, eventually, kinds};

fn any_rows() -> impl Strategy<Value = Rows> {
    prop::collection::vec((prop::sample::select(kinds()), any::<bool>()), 0..6).prop_map(Rows::new)
}

fn any_options() -> impl Strategy<Value = LogOptions> {
    let block_rows = prop::sample::select(vec![Some(1), Some(7), Some(64), None]);
    let chunk_blocks = prop::sample::select(vec![Some(1), Some(2), Some(5), None]);
    let capacities = prop::sample::select(vec![(1, 1), (2, 1), (2, 2), (3, 5), (64, 256)]);
    (block_rows, chunk_blocks, capacities).prop_map(|(block_rows, chunk_blocks, (directory, signals))| {
        LogOptions {
            shape: ShapeOptions { block_rows, chunk_blocks, ..ShapeOptions::default() },
            directory,
            signals,
        }
    })
}

/// Returns the bytes that the log reserves: two chunks of the first size.
fn reservation(rows: &Rows, options: &LogOptions, coordinator: &Coordinator) -> usize {
    let l2_cache_bytes = coordinator.options().platform.l2_cache_bytes();
    2 * Shapes::new(rows.layout(), options.shape, l2_cache_bytes).start_bytes()
}

/// Asserts that only payload takes the bytes in use beyond the budget (COORDINATOR-3).
fn assert_within_budget(coordinator: &Coordinator) {
    let now = coordinator.snapshot();
    assert!(now.used_bytes <= now.budget_bytes + now.pinned_bytes, "{now:?}");
    assert!(now.used_bytes >= now.pinned_bytes, "{now:?}");
}

/// Two logs of one budget, since only growth may compete for it.
fn run(logs: &[(Rows, LogOptions)], steps: &[(usize, Step)], spare_bytes: usize, log_cap_bytes: usize) {
    let probe = coordinator(0, 0);
    let reserved: usize = logs.iter().map(|(rows, options)| reservation(rows, options, &probe)).sum();
    let coordinator = coordinator(reserved + spare_bytes, log_cap_bytes);
    let open = |(rows, options): &(Rows, LogOptions)| {
        Stream::open(MemoryKind::Blocks, rows.clone(), options, &coordinator)
    };
    let mut streams: Vec<Stream> = logs.iter().map(open).collect();
    for stream in &mut streams {
        stream.apply(&Step::Join);
    }
    for (log, step) in steps {
        let log = log % streams.len();
        streams[log].apply(step);
        for (other, stream) in streams.iter_mut().enumerate() {
            if other != log {
                stream.is_not_alone();
            }
        }
        assert_within_budget(&coordinator);
        streams.iter().for_each(Stream::check_held);
    }
    for stream in &mut streams {
        if logs.len() > 1 {
            stream.is_not_alone();
        }
        stream.settle();
        stream.apply(&Step::Write { rows: 50, stride: 3, odd: true });
        stream.close();
        assert_within_budget(&coordinator);
    }
    drop(streams);
    assert_all_returned(&coordinator);
}

/// Grows even when its reader keeps up, so that it never runs out of spares.
#[test]
fn a_log_that_is_used_goes_to_full_blocks() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Float64, true)]);
    let coordinator = coordinator(64 << 20, 64 << 20);
    let shape = ShapeOptions { block_rows: Some(4096), chunk_blocks: None, ..ShapeOptions::default() };
    let options = LogOptions { shape, ..LogOptions::default() };
    let mut writer = LogWriter::new(rows.layout(), &options, &coordinator, Arc::new(NoWake)).unwrap();
    let mut reader = writer.join(Arc::new(NoWake));
    let numbers: Vec<u64> = (0..4096).collect();
    let source = rows.source(&numbers, 0, false);
    let mut longest = 0;
    for _ in 0..200 {
        eventually("there is room", || (writer.room() > 0, ()));
        let room = writer.room();
        writer.append(&source.pieces(), 0, room);
        while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
            longest = longest.max(lease.rows());
            let count = lease.rows();
            drop(lease);
            reader.advance(count);
        }
        // The allocator thread may run.
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(longest, 4096, "{:?}", coordinator.snapshot());
}

#[test]
fn a_trimmed_log_keeps_nothing_of_a_burst() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Utf8, true)]);
    let coordinator = coordinator(64 << 20, 64 << 20);
    let options = LogOptions::default();
    let mut writer = LogWriter::new(rows.layout(), &options, &coordinator, Arc::new(NoWake)).unwrap();
    let mut reader = writer.join(Arc::new(NoWake));
    let reserved = coordinator.snapshot().used_bytes;
    let numbers: Vec<u64> = (0..20_000).collect();
    let source = rows.source(&numbers, 0, false);
    for _ in 0..50 {
        eventually("there is room", || (writer.room() > 0, ()));
        let room = writer.room();
        writer.append(&source.pieces(), 0, room);
    }
    let burst = coordinator.snapshot();
    assert!(burst.used_bytes > 4 * reserved, "{burst:?}");
    writer.trim();
    assert!(coordinator.snapshot().used_bytes >= burst.used_bytes, "no unread memory is given back");
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        drop(lease);
        reader.advance(count);
    }
    // An open order arrives first. The chunk being written stays, and one more.
    eventually("the burst is given back", || {
        writer.trim();
        let now = coordinator.snapshot();
        (now.chunks_live <= 2 && now.used_bytes < burst.used_bytes / 2, now)
    });
}

/// COORDINATOR-2: rows not read yet are in use, though the writer is gone.
#[test]
fn what_is_unread_stays_counted_when_the_writer_is_gone() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Utf8, false)]);
    let coordinator = coordinator(64 << 20, 64 << 20);
    let options = LogOptions::default();
    let mut writer = LogWriter::new(rows.layout(), &options, &coordinator, Arc::new(NoWake)).unwrap();
    let mut reader = writer.join(Arc::new(NoWake));
    let numbers: Vec<u64> = (0..1000).collect();
    let source = rows.source(&numbers, 0, false);
    let mut written = 0;
    while written < 1000 {
        let mut room = 0;
        eventually("there is room", || {
            room = writer.room();
            (room > 0, written)
        });
        let some = room.min(1000 - written);
        writer.append(&source.pieces(), written, some);
        written += some;
    }
    let before = coordinator.snapshot();
    drop(writer);
    let after = coordinator.snapshot();
    assert!(after.chunks_live > 0 && before.pinned_bytes > 0);
    assert_eq!(after.pinned_bytes, before.pinned_bytes, "the rows still point into their payloads");
    assert!(after.used_bytes >= after.pinned_bytes + 4096 * after.chunks_live, "{after:?}");
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        drop(lease);
        reader.advance(count);
    }
    drop(reader);
    assert_all_returned(&coordinator);
}

proptest! {
    // A hang takes its time to be detected, and so does each smaller case that hangs.
    #![proptest_config(ProptestConfig { max_shrink_time: 120_000, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_signals_arrive_as_they_were_written(
        logs in prop::collection::vec((any_rows(), any_options()), 1..3),
        steps in prop::collection::vec((any::<usize>(), any_step()), 1..120),
        spare_bytes in prop::sample::select(vec![0, 4 << 10, 64 << 10, 1 << 20, 16 << 20]),
        log_cap_bytes in prop::sample::select(vec![0, 32 << 10, 256 << 10, 64 << 20]),
    ) {
        run(&logs, &steps, spare_bytes, log_cap_bytes);
    }
}
