//! Rates that change in steps, in every table that has a rate: as many rows in each second as its step says, the same
//! rows for any request, and nothing changed but their times.

use crate::laws;

use std::sync::Arc;

use arrow_array::RecordBatch;
use laws::{any_split_is_the_same, only_these_differ, rows, tally, whole};
use penstock_workloads::nexmark::{Nexmark, NexmarkStream};
use penstock_workloads::{Generator, MAX_STEP_EVERY_S, STEPS, WorkloadError, cm, me, nexmark, nyt, sg, ysb};
use proptest::prelude::*;

/// A table, the column of its times, the time of its first row, and all columns that depend on time.
struct Table {
    rows: Arc<dyn Generator>,
    time: &'static str,
    start_ms: u64,
    times: &'static [&'static str],
}

/// Creates the tables whose rows are numbered on their own.
fn tables(rate: u64, step_every_s: u64) -> Result<Vec<Table>, WorkloadError> {
    macro_rules! of {
        ($module:ident::$name:ident, $options:ident) => {
            Arc::new($module::$name::new($module::$options { rate, step_every_s, ..Default::default() })?)
        };
    }
    let table = |rows: Arc<dyn Generator>, start_ms| Table {
        rows,
        time: "timestamp",
        start_ms,
        times: &["timestamp"],
    };
    let ysb =
        |rows: Arc<dyn Generator>| Table { rows, time: "event_time", start_ms: 0, times: &["event_time"] };
    let trips = &["pickup_datetime", "dropoff_datetime"];
    Ok(vec![
        ysb(of!(ysb::Ysb, YsbOptions)),
        ysb(of!(ysb::YsbStrings, YsbOptions)),
        Table {
            rows: of!(nyt::Nyt, NytOptions),
            time: "dropoff_datetime",
            start_ms: nyt::START_MS,
            times: trips,
        },
        table(of!(cm::Cm, CmOptions), 0),
        table(of!(sg::Sg, SgOptions), sg::START_MS),
        table(of!(me::Me, MeOptions), me::START_MS),
    ])
}

fn nexmark(rate: u64, step_every_s: u64) -> Nexmark {
    let options = nexmark::NexmarkOptions { rate, step_every_s, ..Default::default() };
    Nexmark::new(options).expect("options within bounds")
}

/// Counts the rows in each second from the start on.
fn per_second(batch: &RecordBatch, time: &str, start_ms: u64, seconds: usize) -> Vec<u64> {
    tally(whole(batch, time).into_iter().map(|time| (time - start_ms as i64) / 1_000), seconds)
}

/// Returns the expected rows of each second: two rounds, and the first step of a third.
fn expected(rate: u64, step_every_s: u64) -> Vec<u64> {
    (0..9 * step_every_s).map(|second| rate * STEPS[(second / step_every_s % 4) as usize]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_second_has_as_many_rows_as_its_step_says(rate in 1..40u64, step_every_s in 1..4u64) {
        let expected = expected(rate, step_every_s);
        let all = expected.iter().sum();
        for table in tables(rate, step_every_s).unwrap() {
            let batch = rows(&table.rows, 0..all);
            prop_assert_eq!(&per_second(&batch, table.time, table.start_ms, expected.len()), &expected);
            prop_assert!(whole(&batch, table.time).is_sorted());
        }
        // The three streams have the events of a second together.
        let streams = nexmark(rate, step_every_s);
        let mut together = vec![0; expected.len()];
        for stream in NexmarkStream::ALL {
            let own = 0..nexmark::rows_of(stream, all);
            let batch = match stream {
                NexmarkStream::Person => rows(&streams.persons(), own),
                NexmarkStream::Auction => rows(&streams.auctions(), own),
                NexmarkStream::Bid => rows(&streams.bids(), own),
            };
            let counts = per_second(&batch, "date_time", 0, expected.len());
            together.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        prop_assert_eq!(together, expected);
    }

    #[test]
    fn any_split_gives_the_same_rows(
        rate in 1..100u64,
        step_every_s in 1..4u64,
        start in prop_oneof![0..5_000u64, 0..1_000_000_000_000u64],
        count in 0..1_000u64,
        batch_rows in 1..300u64,
        cut in 0.0..=1.0,
    ) {
        for table in tables(rate, step_every_s).unwrap() {
            any_split_is_the_same(&table.rows, start, count, batch_rows, cut);
        }
        let nexmark = nexmark(rate, step_every_s);
        any_split_is_the_same(&nexmark.persons(), start, count, batch_rows, cut);
        any_split_is_the_same(&nexmark.auctions(), start, count, batch_rows, cut);
        any_split_is_the_same(&nexmark.bids(), start, count, batch_rows, cut);
    }
}

#[test]
fn steps_change_times_alone() {
    let (steady, stepped) = (tables(100, 0).unwrap(), tables(100, 1).unwrap());
    for (one, other) in steady.iter().zip(&stepped) {
        only_these_differ(&rows(&one.rows, 0..5_000), &rows(&other.rows, 0..5_000), one.times);
        // The first step is at the rate itself.
        assert_eq!(rows(&one.rows, 0..100), rows(&other.rows, 0..100));
    }
}

#[test]
fn steps_are_bounded() {
    let message = |rate, step_every_s| tables(rate, step_every_s).err().map(|error| error.to_string());
    assert_eq!(message(1, MAX_STEP_EVERY_S), None);
    assert_eq!(
        message(1, MAX_STEP_EVERY_S + 1).as_deref(),
        Some("step_every_s must be between 0 and 31536000, got 31536001")
    );
    assert_eq!(message(i64::MAX as u64, 0), None);
    assert_eq!(
        message(i64::MAX as u64, 1).as_deref(),
        Some("rate must be between 1 and 768614336404564650, got 9223372036854775807")
    );
}

#[test]
fn the_far_end_can_be_reached_where_times_fit() {
    for table in tables(1_000_000, 60).unwrap() {
        let far = 1_000_000_000_000..1_000_000_000_010;
        // A round of 240 s has 1260 million rows; 793 of them, then 820 million rows of the next: in its last step.
        let times = whole(&rows(&table.rows, far), table.time);
        let into_step = (820_000_000 - 9 * 60_000_000) / 12_000;
        assert_eq!(times[0], (table.start_ms + 793 * 240_000 + 180_000 + into_step) as i64);
    }
    for table in tables(1, MAX_STEP_EVERY_S).unwrap() {
        let overflow = WorkloadError::TimeOverflow { row: u64::MAX - 1, rate: 1 };
        assert_eq!(table.rows.generate(u64::MAX - 10..u64::MAX).err(), Some(overflow));
    }
}
