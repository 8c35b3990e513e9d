//! The public promises of the YSB data set: the same rows for any request, the documented distributions, and checksums
//! that fix the data.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use penstock_workloads::ysb::{
    ADS, CAMPAIGNS, MAX_OUT_OF_ORDER_MS, VIEW, Ysb, YsbOptions, campaign_of_ads, campaigns, schema,
};
use penstock_workloads::{Generator, MAX_BATCH_ROWS, WorkloadError, row_range};
use proptest::prelude::*;

const ROWS: u64 = 200_000;

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a [i64] {
    let array = batch.column_by_name(name).expect("a column of the schema");
    match array.as_primitive_opt::<Int64Type>() {
        Some(numbers) => numbers.values(),
        None => array.as_primitive::<TimestampMillisecondType>().values(),
    }
}

fn rows_of(options: YsbOptions) -> RecordBatch {
    Ysb::new(options).and_then(|ysb| ysb.generate(0..ROWS)).expect("good options and a small range")
}

/// Counts each of `0..n`.
fn tally(values: &[i64], n: usize) -> Vec<u64> {
    let mut counts = vec![0; n];
    for &value in values {
        counts[value as usize] += 1;
    }
    counts
}

/// Computes Fowler-Noll-Vo over the values, column by column.
fn checksum(batch: &RecordBatch) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325u64;
    for field in batch.schema().fields() {
        for value in column(batch, field.name()) {
            for byte in value.to_le_bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
    }
    sum
}

fn any_options() -> impl Strategy<Value = YsbOptions> {
    (
        any::<u64>(),
        prop_oneof![1..100u64, 1..10_000_000u64],
        prop_oneof![Just(0), 1..5u64],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
        prop_oneof![Just(0.0), 0.1..3.0],
        0.0..=1.0,
        prop_oneof![Just(0), 1..1_000u64],
    )
        .prop_map(
            |(seed, rate, step_every_s, out_of_order_ms, late_every, zipf, view_share, switch_every_s)| {
                YsbOptions {
                    seed,
                    rate,
                    step_every_s,
                    out_of_order_ms,
                    late_every,
                    zipf,
                    view_share,
                    switch_every_s,
                }
            },
        )
}

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(
        options in any_options(),
        start in prop_oneof![0..10_000u64, 0..1u64 << 40],
        rows in 0..2_000u64,
        batch_rows in 1..700u64,
        cut in 0.0..=1.0,
    ) {
        let ysb = Ysb::new(options).unwrap();
        let whole = ysb.generate(start..start + rows).unwrap();
        prop_assert_eq!(whole.num_rows() as u64, rows);

        let middle = start + (rows as f64 * cut) as u64;
        let left = ysb.generate(start..middle).unwrap();
        let right = ysb.generate(middle..start + rows).unwrap();
        prop_assert_eq!(whole.slice(0, left.num_rows()), left.clone());
        prop_assert_eq!(whole.slice(left.num_rows(), right.num_rows()), right);

        let batches = ysb.batches(start..start + rows, batch_rows).unwrap();
        let announced = batches.size_hint();
        let mut offset = 0;
        let mut count = 0;
        for batch in batches {
            prop_assert!(batch.num_rows() as u64 <= batch_rows && batch.num_rows() > 0);
            prop_assert_eq!(whole.slice(offset, batch.num_rows()), batch.clone());
            offset += batch.num_rows();
            count += 1;
        }
        prop_assert_eq!(offset as u64, rows);
        prop_assert_eq!(announced, (count, Some(count)));
    }

    #[test]
    fn times_stay_within_the_disorder_asked_for(options in any_options(), start in 0..1u64 << 40) {
        let options = YsbOptions { step_every_s: 0, ..options };
        let (reach, late) = (options.out_of_order_ms as i64, options.late_every > 0);
        let rate = options.rate;
        let batch = Ysb::new(options).unwrap().generate(start..start + 500).unwrap();
        for (row, &time) in (start..).zip(column(&batch, "event_time")) {
            let nominal = (row * 1_000 / rate) as i64;
            let earliest = nominal - reach - if late { 60_000 } else { 0 };
            prop_assert!((earliest..=nominal + reach).contains(&time), "row {row}: {time}");
        }
    }

    #[test]
    fn campaigns_have_ten_ads_each(seed: u64) {
        let table = campaign_of_ads(seed);
        prop_assert_eq!(table.len(), usize::from(ADS));
        prop_assert!(tally(&table, CAMPAIGNS.into()).iter().all(|&ads| ads == 10));
    }
}

#[test]
fn the_schema_is_the_one_of_the_benchmark() {
    let described: Vec<String> =
        schema().fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(
        described,
        [
            "event_time Timestamp(ms)",
            "user_id Int64",
            "page_id Int64",
            "ad_id Int64",
            "ad_type Int64",
            "event_type Int64",
            "ip Int64"
        ]
    );
    assert!(schema().fields().iter().all(|field| !field.is_nullable()));
    assert_eq!(rows_of(YsbOptions::default()).schema(), schema());
}

#[test]
fn plain_data_is_in_order_and_uniform() {
    let batch = rows_of(YsbOptions::default());
    let times = column(&batch, "event_time");
    assert!(times.iter().zip(0..).all(|(&time, row)| time == row / 1_000));
    for (name, n) in [("user_id", 100), ("page_id", 100), ("ad_id", 1_000), ("ad_type", 5), ("event_type", 3)]
    {
        let expected = ROWS as f64 / n as f64;
        // Six standard deviations of a binomial count.
        let slack = 6.0 * (expected * (1.0 - 1.0 / n as f64)).sqrt();
        for (value, count) in tally(column(&batch, name), n).into_iter().enumerate() {
            assert!((count as f64 - expected).abs() < slack, "{name} {value}: {count}, expected {expected}");
        }
    }
    let ips = column(&batch, "ip");
    assert!(ips.iter().all(|ip| (0..1 << 32).contains(ip)));
    assert!(ips.iter().any(|&ip| ip > 0xF000_0000) && ips.iter().any(|&ip| ip < 0x1000_0000));
}

#[test]
fn columns_are_independent() {
    let batch = rows_of(YsbOptions::default());
    let (ads, events) = (column(&batch, "ad_id"), column(&batch, "event_type"));
    let pairs: Vec<i64> = ads.iter().zip(events).map(|(ad, event)| ad / 100 * 3 + event).collect();
    for count in tally(&pairs, 30) {
        assert!((6_100..7_250).contains(&count), "{count} rows in one of 30 cells, expected 6667");
    }
}

#[test]
fn view_share_is_met_and_the_rest_shared_evenly() {
    for view_share in [0.0, 0.1, 2.0 / 3.0, 1.0] {
        let batch = rows_of(YsbOptions { view_share, ..YsbOptions::default() });
        let counts = tally(column(&batch, "event_type"), 3);
        let share = |n: u64| n as f64 / ROWS as f64;
        assert!((share(counts[VIEW as usize]) - view_share).abs() < 0.01, "{view_share}: {counts:?}");
        for other in &counts[1..] {
            assert!((share(*other) - (1.0 - view_share) / 2.0).abs() < 0.01, "{view_share}: {counts:?}");
        }
    }
    let only_views = rows_of(YsbOptions { view_share: 1.0, ..YsbOptions::default() });
    assert!(column(&only_views, "event_type").iter().all(|&event| event == VIEW));
}

#[test]
fn every_second_period_has_twice_the_views() {
    let plain = rows_of(YsbOptions { rate: 10_000, ..YsbOptions::default() });
    let switched = rows_of(YsbOptions { rate: 10_000, switch_every_s: 4, ..YsbOptions::default() });
    let types = column(&switched, "event_type");
    for (period, rows) in types.chunks(40_000).enumerate() {
        let counts = tally(rows, 3);
        let expected = if period % 2 == 0 { 1.0 / 3.0 } else { 2.0 / 3.0 };
        let share = |n: u64| n as f64 / rows.len() as f64;
        assert!((share(counts[0]) - expected).abs() < 0.015, "period {period}: {counts:?}");
        assert!((share(counts[1]) - (1.0 - expected) / 2.0).abs() < 0.015, "period {period}: {counts:?}");
        let same = rows == &column(&plain, "event_type")[period * 40_000..][..rows.len()];
        assert_eq!(same, period % 2 == 0, "period {period}");
    }

    let capped =
        rows_of(YsbOptions { rate: 100_000, switch_every_s: 1, view_share: 0.7, ..YsbOptions::default() });
    assert!(column(&capped, "event_type")[100_000..].iter().all(|&event| event == VIEW));
    // There are not enough rows to reach such a late second period.
    for switch_every_s in [1 << 58, u64::MAX] {
        let never = YsbOptions { switch_every_s, ..YsbOptions::default() };
        assert_eq!(rows_of(never.clone()), rows_of(YsbOptions::default()));
        assert_eq!(Ysb::new(never).unwrap().generate(u64::MAX - 5..u64::MAX).unwrap().num_rows(), 5);
    }
}

#[test]
fn the_switch_goes_by_the_times_in_order() {
    let options = YsbOptions { rate: 10_000, switch_every_s: 4, ..YsbOptions::default() };
    let moved = rows_of(YsbOptions { out_of_order_ms: 50, late_every: 7, ..options.clone() });
    assert_eq!(column(&moved, "event_type"), column(&rows_of(options), "event_type"));
}

#[test]
fn the_switch_goes_by_seconds_whatever_the_rate() {
    // Steps of two seconds with 1000, 2000, 6000 and 12,000 rows in each second, and the second period from
    // the fifth second on, which is in the middle of the third step.
    let options = YsbOptions { rate: 1_000, step_every_s: 2, switch_every_s: 5, ..YsbOptions::default() };
    let batch = rows_of(options);
    let (times, types) = (column(&batch, "event_time"), column(&batch, "event_type"));
    let usual = rows_of(YsbOptions::default());
    let usual = column(&usual, "event_type");
    let first_switched = types.iter().zip(usual).position(|(one, other)| one != other).unwrap();
    assert_eq!(times.iter().position(|&time| time >= 5_000), Some(2_000 + 4_000 + 6_000));
    assert!((12_000..12_050).contains(&first_switched), "{first_switched}");
    for second in 0..15 {
        let rows: Vec<usize> = (0..times.len()).filter(|&row| times[row] / 1_000 == second).collect();
        let views = rows.iter().filter(|&&row| types[row] == VIEW).count() as f64 / rows.len() as f64;
        let expected = if second / 5 % 2 == 0 { 1.0 / 3.0 } else { 2.0 / 3.0 };
        assert!((views - expected).abs() < 0.07, "second {second}: {views} of {} rows", rows.len());
    }
}

#[test]
fn zipf_puts_the_first_ads_in_front() {
    let batch = rows_of(YsbOptions { zipf: 1.0, ..YsbOptions::default() });
    let counts = tally(column(&batch, "ad_id"), ADS.into());
    // The thousandth harmonic number is 7.485: ad 0 has a share of 13.4 %, ad 9 a tenth of that.
    let share = |ad: usize| counts[ad] as f64 / ROWS as f64;
    assert!((share(0) - 0.1336).abs() < 0.005, "{}", share(0));
    assert!((share(9) - 0.01336).abs() < 0.002, "{}", share(9));
    assert!(counts[500..].iter().sum::<u64>() > 0);
}

#[test]
fn jitter_reaches_both_ends_and_nothing_beyond() {
    let batch = rows_of(YsbOptions { out_of_order_ms: 50, ..YsbOptions::default() });
    let moved: Vec<i64> =
        column(&batch, "event_time").iter().zip(0..).map(|(&time, row)| time - row / 1_000 + 50).collect();
    let expected = ROWS as f64 / 101.0;
    for count in tally(&moved, 101) {
        assert!((count as f64 - expected).abs() < 6.0 * expected.sqrt(), "{count}, expected {expected}");
    }
}

#[test]
fn late_rows_come_about_as_often_as_asked() {
    let batch = rows_of(YsbOptions { late_every: 100, ..YsbOptions::default() });
    let behind: Vec<i64> = column(&batch, "event_time")
        .iter()
        .zip(0..)
        .map(|(&time, row)| row / 1_000 - time)
        .filter(|&behind| behind != 0)
        .collect();
    assert!((1_740..2_260).contains(&behind.len()), "{} late rows, expected 2000", behind.len());
    assert!(behind.iter().all(|behind| (1..=60_000).contains(behind)));
    assert!(behind.iter().any(|&behind| behind < 1_000) && behind.iter().any(|&behind| behind > 59_000));

    let all = rows_of(YsbOptions { late_every: 1, ..YsbOptions::default() });
    assert!(column(&all, "event_time").iter().zip(0..).all(|(&time, row)| time < row / 1_000));
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = rows_of(YsbOptions::default());
    let other = rows_of(YsbOptions { rate: 12, out_of_order_ms: 50, late_every: 7, ..YsbOptions::default() });
    let zipf = rows_of(YsbOptions { zipf: 1.2, view_share: 0.5, ..YsbOptions::default() });
    for name in ["user_id", "page_id", "ad_id", "ad_type", "event_type", "ip"] {
        assert_eq!(column(&plain, name), column(&other, name), "{name}");
    }
    for name in ["event_time", "user_id", "page_id", "ad_type", "ip"] {
        assert_eq!(column(&plain, name), column(&zipf, name), "{name}");
    }
    let slow = YsbOptions { rate: 12, ..YsbOptions::default() };
    let switched = rows_of(YsbOptions { switch_every_s: 60, ..slow.clone() });
    for name in ["event_time", "user_id", "page_id", "ad_id", "ad_type", "ip"] {
        assert_eq!(column(&rows_of(slow.clone()), name), column(&switched, name), "{name}");
    }
}

#[test]
fn seeds_give_other_data_and_other_campaigns() {
    let (one, two) =
        (rows_of(YsbOptions::default()), rows_of(YsbOptions { seed: 8, ..YsbOptions::default() }));
    assert_ne!(column(&one, "ad_id"), column(&two, "ad_id"));
    assert_ne!(campaign_of_ads(7), campaign_of_ads(8));
}

#[test]
fn the_campaign_table_lists_every_ad_once() {
    let table = campaigns(7);
    assert_eq!(column(&table, "ad_id"), (0..1_000).collect::<Vec<i64>>());
    assert_eq!(column(&table, "campaign_id"), campaign_of_ads(7));
    assert!(table.schema().fields().iter().all(|field| !field.is_nullable()));
}

#[test]
fn bad_options_are_refused_by_name() {
    let message = |options: YsbOptions| Ysb::new(options).unwrap_err().to_string();
    let plain = YsbOptions::default;
    assert_eq!(
        message(YsbOptions { rate: 0, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 0"
    );
    assert_eq!(
        message(YsbOptions { rate: 1 << 63, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 9223372036854775808"
    );
    assert_eq!(
        message(YsbOptions { out_of_order_ms: MAX_OUT_OF_ORDER_MS + 1, ..plain() }),
        "out_of_order_ms must be between 0 and 31536000000, got 31536000001"
    );
    for zipf in [-0.1, f64::NAN, f64::INFINITY] {
        let expected = format!("zipf must be a finite exponent of at least 0 (0 is uniform), got {zipf}");
        assert_eq!(message(YsbOptions { zipf, ..plain() }), expected);
    }
    for view_share in [-0.1, 1.1, f64::NAN] {
        let expected = format!("view_share must be a number between 0 and 1, got {view_share}");
        assert_eq!(message(YsbOptions { view_share, ..plain() }), expected);
    }
}

#[test]
fn bad_ranges_are_refused_before_any_row_is_made() {
    let ysb = Ysb::new(YsbOptions::default()).unwrap();
    let batch_rows = |n| ysb.batches(0..10, n).unwrap_err().to_string();
    assert_eq!(batch_rows(0), "batch_rows must be between 1 and 16777216, got 0");
    assert_eq!(batch_rows(MAX_BATCH_ROWS + 1), "batch_rows must be between 1 and 16777216, got 16777217");
    assert_eq!(
        ysb.generate(0..u64::MAX).unwrap_err().to_string(),
        "rows of one batch must be between 0 and 16777216, got 18446744073709551615"
    );
    assert_eq!(
        row_range(u64::MAX, 2).unwrap_err().to_string(),
        "2 rows from row 18446744073709551615 on go past the last row id, 18446744073709551615"
    );
    let slow = Ysb::new(YsbOptions { rate: 1, ..YsbOptions::default() }).unwrap();
    let overflow = WorkloadError::TimeOverflow { row: u64::MAX - 1, rate: 1 };
    assert_eq!(slow.generate(u64::MAX - 10..u64::MAX).unwrap_err(), overflow);
    assert_eq!(slow.batches(u64::MAX - 10..u64::MAX, 5).unwrap_err(), overflow);
    assert_eq!(
        overflow.to_string(),
        "row 18446744073709551614 has no event time: at 1 rows per second it does not fit 64 bits of \
         milliseconds"
    );
}

#[test]
fn the_far_end_of_the_data_set_can_be_reached() {
    let options = YsbOptions { out_of_order_ms: MAX_OUT_OF_ORDER_MS, late_every: 2, ..YsbOptions::default() };
    let ysb = Ysb::new(options).unwrap();
    let batch = ysb.generate(u64::MAX - 10..u64::MAX).unwrap();
    assert_eq!(batch.num_rows(), 10);
    let lengths: Vec<usize> =
        ysb.batches(u64::MAX - 10..u64::MAX, 4).unwrap().map(|batch| batch.num_rows()).collect();
    assert_eq!(lengths, [4, 4, 2]);

    // The last row whose time fits at one row per millisecond, and the first whose time does not.
    let last = i64::MAX as u64;
    let exact = Ysb::new(YsbOptions { rate: 1_000, ..YsbOptions::default() }).unwrap();
    assert_eq!(column(&exact.generate(last..last + 1).unwrap(), "event_time"), [i64::MAX]);
    assert!(exact.generate(last..last + 2).is_err());
}

#[test]
fn empty_ranges_give_empty_data() {
    let ysb = Ysb::new(YsbOptions { rate: 1, ..YsbOptions::default() }).unwrap();
    for rows in [row_range(5, 0).unwrap(), row_range(u64::MAX, 0).unwrap()] {
        assert_eq!(ysb.generate(rows.clone()).unwrap().num_rows(), 0);
        assert_eq!(ysb.batches(rows, 10).unwrap().count(), 0);
    }
    let backwards = std::ops::Range { start: 9, end: 3 };
    assert_eq!(ysb.generate(backwards.clone()).unwrap().num_rows(), 0);
    assert_eq!(ysb.batches(backwards, 10).unwrap().size_hint(), (0, Some(0)));
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = YsbOptions {
        seed: 42,
        rate: 3_000,
        step_every_s: 0,
        out_of_order_ms: 50,
        late_every: 20,
        zipf: 1.0,
        view_share: 0.5,
        switch_every_s: 0,
    };
    let sum = |options: YsbOptions, start: u64| {
        checksum(&Ysb::new(options).unwrap().generate(start..start + 1_000).unwrap())
    };
    assert_eq!(sum(YsbOptions::default(), 0), 0xA14F_0159_AF2B_F69B);
    assert_eq!(sum(YsbOptions::default(), 1 << 40), 0x5D9E_68F9_92E0_2457);
    assert_eq!(sum(everything.clone(), 0), 0x43E2_BD41_CCDF_6746);
    let switched = YsbOptions { view_share: 0.3, switch_every_s: 7, ..everything };
    assert_eq!(sum(switched, 20_500), 0xB175_B343_56BB_6447);
    assert_eq!(checksum(&campaigns(7)), 0x89DB_62E2_A683_4D55);
    assert_eq!(campaign_of_ads(7)[..8], [96, 12, 23, 66, 19, 72, 71, 78]);

    let batch = rows_of(YsbOptions::default());
    let row = |row: usize| -> Vec<i64> {
        schema().fields().iter().map(|field| column(&batch, field.name())[row]).collect()
    };
    assert_eq!(row(0), [0, 58, 94, 787, 0, 2, 1_208_710_690]);
    assert_eq!(row(123_456), [123, 4, 55, 601, 3, 1, 1_388_090_564]);
}
