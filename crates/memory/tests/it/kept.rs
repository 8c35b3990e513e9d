//! Batches that a user keeps for any time: they do not change, and hold no log back.

use crate::support;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use penstock_memory::{BlockNext, Column, Exporter, Lease, Parcel, SelectedColumn, Values};
use support::exports::{BEHIND, BLOCK_ROWS, check, open, pass, read_whole, rows, schema};
use support::{Rows, assert_all_returned, coordinator, eventually, setting};

/// All its chunks are with the user, and the budget has room only for its reservation.
#[test]
fn a_log_that_has_no_chunk_left_starts_again_from_its_reservation() {
    let rows = Rows::new(vec![(DataType::Int8, false)]);
    let coordinator = coordinator(32 << 10, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    assert_eq!(coordinator.snapshot().used_bytes, 32 << 10, "two chunks of two blocks");
    let mut exporter = Exporter::new(schema(&rows));
    let mut next = 0;
    for round in 0..10 {
        loop {
            let room = writer.room() as u64;
            if room == 0 {
                break;
            }
            let numbers: Vec<u64> = (next..next + room).collect();
            writer.append(&rows.source(&numbers, 0, false).pieces(), 0, numbers.len());
            next += room;
        }
        if round == 0 {
            assert_eq!(next, 4 * BLOCK_ROWS as u64, "both chunks are full, and no third can be had");
        }
        read_whole(&mut reader, 0, &mut |lease| exporter.take(lease, &[0]).unwrap());
        assert_eq!(reader.pending(), 0, "round {round}");
        eventually("there is room when everything is read", || (writer.room() > 0, coordinator.snapshot()));
    }
    assert_eq!(check(&rows, 0, &exporter.finish().unwrap()), next);
}

#[test]
fn exported_rows_outlive_everything_else() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::new(schema(&rows));
    pass(&rows, 100_000, (&mut writer, &mut reader), |lease| exporter.take(lease, &every).unwrap());
    assert!(coordinator.snapshot().exported_bytes > 0);
    let batches = exporter.finish().unwrap();
    drop((writer, reader));
    drop(coordinator);
    let elsewhere = std::thread::spawn(move || check(&rows, 0, &batches));
    assert_eq!(elsewhere.join().unwrap(), 100_000);
}

#[test]
fn a_user_who_keeps_everything_stalls_no_log() {
    const BUDGET_BYTES: usize = 4 << 20;
    // 200 MB, unless the environment asks for less.
    let total = setting("PENSTOCK_TEST_ROWS", 1_000_000) as i64 * 25 / 2;
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Int64, false)]);
    let coordinator = coordinator(BUDGET_BYTES, BUDGET_BYTES);
    let (mut writer, mut reader) = open(&rows, 8192, &coordinator);
    let mut exporter = Exporter::new(schema(&rows));
    let mut take = |lease: &Lease| exporter.take(lease, &[0, 1]).unwrap();
    let mut next = 0;
    while next < total {
        let mut some = 0;
        eventually("there is room, since the reader goes on", || {
            some = writer.room();
            if some == 0 {
                read_whole(&mut reader, 0, &mut take);
            }
            (some > 0, coordinator.snapshot())
        });
        let values: Vec<i64> = (next..total.min(next + some as i64)).collect();
        let piece =
            SelectedColumn { column: Column { values: Values::I64(&values), valid: None }, rows: None };
        writer.append(&[piece, piece], 0, values.len());
        next += values.len() as i64;
        read_whole(&mut reader, BEHIND, &mut take);
        let now = coordinator.snapshot();
        assert!(now.used_bytes <= BUDGET_BYTES as u64, "{now:?}");
    }
    while let BlockNext::Rows(lease) = reader.peek(usize::MAX) {
        let count = lease.rows();
        take(&lease);
        drop(lease);
        reader.advance(count);
    }
    let batches = exporter.finish().unwrap();
    let now = coordinator.snapshot();
    assert!(now.exported_bytes > total as u64 * 16 / 4 * 3, "most of it left without a copy: {now:?}");
    let mut next = 0;
    for batch in &batches {
        for column in [0, 1] {
            let values = batch.column(column).as_primitive::<Int64Type>().values();
            assert!(values.iter().copied().eq(next..next + values.len() as i64), "from row {next}");
        }
        next += batch.num_rows() as i64;
    }
    assert_eq!(next, total);
    drop((writer, reader));
    assert!(coordinator.snapshot().exported_bytes >= now.exported_bytes, "the user keeps it all");
    drop(batches);
    assert_eq!(coordinator.snapshot().exported_bytes, 0, "the user has released everything");
    assert_all_returned(&coordinator);
}

/// Waiting results are charged once, however many parts of a chunk wait, and the log proceeds when they were read.
#[test]
fn what_waits_to_be_read_stays_charged() {
    let rows = Rows::new(vec![(DataType::Int64, false), (DataType::Utf8, false)]);
    let coordinator = coordinator(4 << 20, 1 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let account = coordinator.result_account();
    let mut exporter = Exporter::charged(schema(&rows), account.clone());
    let (mut waiting, mut next, mut handed) = (Vec::<Parcel>::new(), 0_u64, Vec::new());
    let copies = |waiting: &[Parcel]| waiting.iter().map(Parcel::bytes).sum::<usize>();
    for round in 0..4 {
        // Until the log has no room although everything was read, or copies have to wait.
        let mut idle = 0;
        while idle < 50 && !account.is_too_much(copies(&waiting), 1) {
            let room = writer.room() as u64;
            let numbers: Vec<u64> = (next..next + room).collect();
            if room > 0 {
                writer.append(&rows.source(&numbers, 0, false).pieces(), 0, numbers.len());
            }
            next += room;
            read_whole(&mut reader, 0, &mut |lease| exporter.take(lease, &[0, 1]).unwrap());
            waiting.extend(exporter.take_parcels());
            idle = if room == 0 { idle + 1 } else { 0 };
            if room == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        let now = coordinator.snapshot();
        let copied = copies(&waiting);
        let values: usize = waiting.iter().map(|parcel| parcel.batch().num_rows() * 8).sum();
        assert!(now.used_bytes as usize >= copied + values / 2, "round {round}: {now:?}");
        assert!(now.exported_bytes < 2 << 20, "round {round}: {now:?}");
        assert!(now.pinned_bytes as usize >= copied, "round {round}: {now:?}");
        handed.extend(waiting.drain(..).map(Parcel::hand_out));
        eventually("there is room when it was read", || (writer.room() > 0, coordinator.snapshot()));
    }
    handed.extend(exporter.finish().unwrap());
    assert_eq!(check(&rows, 0, &handed), next - reader.pending());
    drop((writer, reader));
    assert_eq!(coordinator.snapshot().used_bytes, 0, "handed-out rows are the user's");
    drop(handed);
    assert_all_returned(&coordinator);
}

/// Unread results are released with their holder, and so is their charge.
#[test]
fn what_was_never_read_goes_back() {
    let rows = rows();
    let coordinator = coordinator(64 << 20, 64 << 20);
    let (mut writer, mut reader) = open(&rows, BLOCK_ROWS, &coordinator);
    let every: Vec<usize> = (0..rows.types.len()).collect();
    let mut exporter = Exporter::charged(schema(&rows), coordinator.result_account());
    let mut waiting = Vec::new();
    pass(&rows, 100_000, (&mut writer, &mut reader), |lease| {
        exporter.take(lease, &every).unwrap();
        waiting.extend(exporter.take_parcels());
    });
    assert!(waiting.len() > 4);
    assert_eq!(coordinator.snapshot().exported_bytes, 0);
    drop((writer, reader));
    assert!(coordinator.snapshot().used_bytes > 0);
    drop((waiting, exporter));
    assert_eq!(coordinator.snapshot().used_bytes, 0);
    assert_all_returned(&coordinator);
}
