//! The public promises of the LRB data set: the same rows for any request, options that change only their own columns,
//! and checksums that fix the data.

use crate::expressways;
use crate::laws;

use std::collections::{BTreeMap, BTreeSet};

use expressways::{BUSY, LAST_FOOT, Row, busy, by_car, names, rows_of};
use laws::{any_split_is_the_same, checksum, described, whole};
use penstock_workloads::lrb::{Lrb, LrbOptions, MAX_OUT_OF_ORDER_S, SEGMENT_FT, schema};
use penstock_workloads::{Generator, MAX_BATCH_ROWS, WorkloadError};
use proptest::prelude::*;

fn any_options() -> impl Strategy<Value = LrbOptions> {
    (
        (any::<u64>(), 1..4u64, 1..25u64, 1..40u64, 1..=60u64),
        prop_oneof![Just(0), 60..900u64],
        prop_oneof![Just(0), 1..30u64],
        prop_oneof![Just(0), 1..10u64],
        prop_oneof![Just(0), 1..50u64],
    )
        .prop_map(
            |(
                (seed, expressways, minutes, cars_per_second, report_every),
                accident_every,
                queries_every,
                out_of_order_s,
                late_every,
            )| LrbOptions {
                seed,
                expressways,
                minutes,
                cars_per_second,
                report_every,
                accident_every,
                queries_every,
                out_of_order_s,
                late_every,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_same_rows(
        options in any_options(),
        start in 0.0..=1.0,
        rows in 0..3_000u64,
        batch_rows in 1..700u64,
        cut in 0.0..=1.0,
    ) {
        let lrb = Lrb::new(options).unwrap();
        let start = (lrb.rows() as f64 * start) as u64;
        let end = (start + rows).min(lrb.rows());
        any_split_is_the_same(&lrb, start, end - start, batch_rows, cut);
    }
}

#[test]
fn the_schema_is_the_one_of_the_benchmark() {
    let described = described(&schema());
    let numbers = [
        "type", "vid", "speed", "xway", "lane", "dir", "seg", "pos", "qid", "sinit", "send", "dow", "tod",
        "day",
    ];
    let numbers = numbers.map(|name| format!("{name} Int32"));
    assert_eq!(described[0], "time Int64");
    assert_eq!(described[1..], numbers);
    assert_eq!(BUSY.0.generate(0..10).unwrap().schema(), schema());
    assert_eq!(BUSY.0.schema(), schema());
}

#[test]
fn rows_are_in_order_and_within_their_bounds() {
    let rows = &BUSY.1;
    assert!(rows.len() > 400_000, "{} rows", rows.len());
    assert!(rows.windows(2).all(|two| (two[0].time, two[0].vid) < (two[1].time, two[1].vid)));
    for row in rows {
        let at_home = row.kind == 0 && row.xway == 0 && (0..2).contains(&row.dir);
        assert!(at_home && (0..2_400).contains(&row.time) && (0..=70).contains(&row.speed), "{row:?}");
        assert!((0..=LAST_FOOT).contains(&row.pos) && row.seg == row.pos / i64::from(SEGMENT_FT), "{row:?}");
    }
    let batch = BUSY.0.generate(0..1_000).unwrap();
    for name in ["qid", "sinit", "send", "dow", "tod", "day"] {
        assert!(whole(&batch, name).iter().all(|&value| value == -1), "{name}");
    }
}

#[test]
fn the_default_is_three_hours_with_the_published_load() {
    let lrb = Lrb::new(LrbOptions::default()).unwrap();
    assert!((5_000_000..9_000_000).contains(&lrb.rows()), "{} rows", lrb.rows());
    let batch = lrb.generate(lrb.rows() - 60_000..lrb.rows()).unwrap();
    let times = whole(&batch, "time");
    let of_last_half_minute = times.iter().filter(|&&time| time >= 10_770).count();
    assert!((35_000..50_000).contains(&of_last_half_minute), "{of_last_half_minute} cars");
    assert_eq!(times.last(), Some(&10_799));

    // A slot of ten minutes has at most one accident, and near the start there are too few cars for one.
    let accidents = lrb.accidents();
    assert!((30..=36).contains(&accidents.len()), "{} accidents", accidents.len());
    for direction in [0, 1] {
        let starts: Vec<i64> = accidents
            .iter()
            .filter(|accident| accident.direction == direction)
            .map(|accident| (accident.first - 1) / 600)
            .collect();
        assert!(starts.windows(2).all(|two| two[0] < two[1]), "{starts:?}");
        for accident in accidents.iter().filter(|accident| accident.direction == direction) {
            let long = (600..=1_200).contains(&(accident.last - accident.first + 1));
            assert!(long || accident.last == 10_799, "{accident:?}");
        }
    }
}

#[test]
fn an_option_leaves_the_rest_alone() {
    let options = || LrbOptions { minutes: 20, cars_per_second: 60, ..LrbOptions::default() };
    let rows = |options: LrbOptions| rows_of(&Lrb::new(options).unwrap());
    let plain = rows(options());

    // Fewer minutes are the beginning, whatever accident is in progress.
    for minutes in [1, 7, 12, 13, 19] {
        let beginning = rows(LrbOptions { minutes, ..options() });
        assert!(beginning.iter().all(|row| row.time < minutes as i64 * 60));
        assert_eq!(plain[..beginning.len()], beginning);
        assert!(plain[beginning.len()].time >= minutes as i64 * 60);
    }
    // More expressways leave the earlier ones unchanged.
    let more = rows(LrbOptions { expressways: 3, ..options() });
    let of_first: Vec<Row> = more.iter().filter(|row| row.xway == 0).copied().collect();
    assert_eq!(plain, of_first);
    for xway in 1..3 {
        assert!(more.iter().filter(|row| row.xway == xway).count() > plain.len() * 9 / 10);
    }
    let vids: BTreeMap<i64, BTreeSet<(i64, i64)>> = by_car(&more)
        .into_iter()
        .map(|(vid, rows)| (vid, rows.iter().map(|row| (row.xway, row.dir)).collect()))
        .collect();
    assert!(vids.values().all(|roads| roads.len() == 1));
    // Reports at other times describe the same journeys. Only the exit of a car depends on them.
    let often = rows(LrbOptions { report_every: 10, ..options() });
    let at: BTreeMap<(i64, i64), Row> = often.iter().map(|row| ((row.vid, row.time), *row)).collect();
    for row in plain.iter().filter(|row| row.lane != 4) {
        assert_eq!(at[&(row.vid, row.time)], *row);
    }
    // Disorder changes times alone.
    let disorder = rows(LrbOptions { out_of_order_s: 2, late_every: 50, ..options() });
    assert!(disorder.iter().zip(&plain).all(|(moved, row)| Row { time: row.time, ..*moved } == *row));
    // Requests are rows between the reports.
    let requests = rows(LrbOptions { queries_every: 10, ..options() });
    let reports: Vec<Row> = requests.iter().filter(|row| row.kind == 0).copied().collect();
    assert_eq!(reports, plain);
    assert_ne!(rows(LrbOptions { seed: 8, ..options() })[..1_000], plain[..1_000]);
}

#[test]
fn disorder_is_as_far_and_as_frequent_as_asked() {
    let rows = &BUSY.1;
    let moved = |options: LrbOptions| -> Vec<i64> {
        let all = rows_of(&Lrb::new(options).unwrap());
        all.iter().zip(rows).map(|(moved, row)| moved.time - row.time).collect()
    };
    let jitter = moved(LrbOptions { out_of_order_s: 2, ..busy() });
    for distance in -2..=2 {
        let share = jitter.iter().filter(|&&moved| moved == distance).count() as f64 / rows.len() as f64;
        assert!((share - 0.2).abs() < 0.01, "{share} of the rows are moved by {distance}");
    }
    assert!(jitter.iter().all(|moved| (-2..=2).contains(moved)));
    let late = moved(LrbOptions { late_every: 100, ..busy() });
    let share = late.iter().filter(|&&moved| moved < 0).count() as f64 / rows.len() as f64;
    assert!((share - 0.01).abs() < 0.001, "{share} of the rows are late");
    assert!(late.iter().all(|moved| (-60..=0).contains(moved)) && late.contains(&-60) && late.contains(&-1));
}

#[test]
fn requests_come_with_reports_and_say_what_they_are_about() {
    let lrb = Lrb::new(LrbOptions { queries_every: 20, ..busy() }).unwrap();
    let rows = rows_of(&lrb);
    let reports = rows.iter().filter(|row| row.kind == 0).count();
    let requests: Vec<(usize, &Row)> = rows.iter().enumerate().filter(|(_, row)| row.kind != 0).collect();
    let share = requests.len() as f64 / reports as f64;
    assert!((share - 0.05).abs() < 0.005, "{share}");
    for &(nth, row) in &requests {
        assert_eq!((rows[nth - 1].time, rows[nth - 1].vid), (row.time, row.vid));
        assert!([row.speed, row.lane, row.dir, row.seg, row.pos].iter().all(|&value| value == -1));
    }
    let share = |kind: i64| {
        requests.iter().filter(|(_, row)| row.kind == kind).count() as f64 / requests.len() as f64
    };
    let (balances, expenditures, travel_times) = (share(2), share(3), share(4));
    assert!((balances - 0.5).abs() < 0.03 && (expenditures - 0.1).abs() < 0.03, "{balances}, {expenditures}");
    assert!((balances + expenditures + travel_times - 1.0).abs() < 1e-9);

    let batch = lrb.generate(0..100_000).unwrap();
    let columns: BTreeMap<String, Vec<i64>> =
        names().into_iter().map(|name| (name.clone(), whole(&batch, &name))).collect();
    for (row, &kind) in columns["type"].iter().enumerate() {
        let has = |name: &str, kinds: &[i64], range: std::ops::RangeInclusive<i64>| {
            let value = columns[name][row];
            assert!(
                if kinds.contains(&kind) { range.contains(&value) } else { value == -1 },
                "{kind} {name}"
            );
        };
        has("qid", &[2, 3, 4], row as i64..=row as i64);
        has("xway", &[0, 3, 4], 0..=0);
        has("day", &[3], 1..=69);
        has("sinit", &[4], 0..=99);
        has("send", &[4], 0..=99);
        has("dow", &[4], 1..=7);
        has("tod", &[4], 1..=1_440);
    }
}

#[test]
fn bad_options_are_refused_by_name() {
    let message = |options: LrbOptions| Lrb::new(options).unwrap_err().to_string();
    let plain = LrbOptions::default;
    for (options, expected) in [
        (LrbOptions { expressways: 0, ..plain() }, "expressways must be between 1 and 128, got 0"),
        (LrbOptions { expressways: 129, ..plain() }, "expressways must be between 1 and 128, got 129"),
        (LrbOptions { minutes: 0, ..plain() }, "minutes must be between 1 and 1440, got 0"),
        (
            LrbOptions { minutes: u64::MAX, ..plain() },
            "minutes must be between 1 and 1440, got 18446744073709551615",
        ),
        (LrbOptions { cars_per_second: 0, ..plain() }, "cars_per_second must be between 1 and 1000, got 0"),
        (
            LrbOptions { cars_per_second: 1_001, ..plain() },
            "cars_per_second must be between 1 and 1000, got 1001",
        ),
        (LrbOptions { report_every: 0, ..plain() }, "report_every must be between 1 and 60, got 0"),
        (LrbOptions { report_every: 61, ..plain() }, "report_every must be between 1 and 60, got 61"),
        (LrbOptions { accident_every: 59, ..plain() }, "accident_every must be between 60 and 86400, got 59"),
        (
            LrbOptions { accident_every: 86_401, ..plain() },
            "accident_every must be between 60 and 86400, got 86401",
        ),
        (
            LrbOptions { out_of_order_s: MAX_OUT_OF_ORDER_S + 1, ..plain() },
            "out_of_order_s must be between 0 and 31536000, got 31536001",
        ),
        (
            LrbOptions { expressways: 128, minutes: 1_440, cars_per_second: 1_000, ..plain() },
            "cars (by expressways, minutes and cars_per_second) must be between 0 and 16777216, \
             got 10368000000",
        ),
    ] {
        assert_eq!(message(options), expected);
    }
}

#[test]
fn rows_past_the_end_are_refused_and_empty_ranges_are_empty() {
    let lrb = Lrb::new(LrbOptions { minutes: 10, ..LrbOptions::default() }).unwrap();
    let rows = lrb.rows();
    let past = WorkloadError::PastTheEnd { row: rows + 4, rows };
    assert_eq!(past.to_string(), format!("there is no row {}: the data set has {rows} rows", rows + 4));
    assert_eq!(lrb.generate(rows - 5..rows + 5).unwrap_err(), past);
    assert_eq!(lrb.batches(0..rows + 5, 10).unwrap_err(), past);
    assert_eq!(lrb.generate(rows - 5..rows).unwrap().num_rows(), 5);
    for empty in [0..0, rows..rows, u64::MAX..u64::MAX, std::ops::Range { start: 9, end: 3 }] {
        assert_eq!(lrb.generate(empty.clone()).unwrap().num_rows(), 0);
        assert_eq!(lrb.batches(empty, 10).unwrap().count(), 0);
    }
    assert!(lrb.batches(0..10, MAX_BATCH_ROWS + 1).is_err());
    let nobody = Lrb::new(LrbOptions { minutes: 1, cars_per_second: 1, ..LrbOptions::default() }).unwrap();
    assert!(nobody.rows() < 3 && nobody.generate(0..nobody.rows()).is_ok());
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = LrbOptions {
        seed: 42,
        expressways: 2,
        minutes: 60,
        cars_per_second: 50,
        report_every: 20,
        accident_every: 300,
        queries_every: 50,
        out_of_order_s: 3,
        late_every: 20,
    };
    let sum = |options: LrbOptions| {
        let lrb = Lrb::new(options).unwrap();
        let accidents = lrb.accidents();
        let end = lrb.generate(lrb.rows() - 20_000..lrb.rows()).unwrap();
        (lrb.rows(), accidents.len(), checksum(&lrb.generate(0..20_000).unwrap()), checksum(&end))
    };
    assert_eq!(sum(LrbOptions::default()), (6_363_088, 35, 0xCAFF_8F99_115D_A44A, 0xD971_D74B_3E88_F91F));
    assert_eq!(sum(everything), (2_986_046, 37, 0x918F_D4D1_E628_8AEF, 0xE0E5_5446_E1B4_4F81));
    let lrb = Lrb::new(LrbOptions::default()).unwrap();
    let row = |row: u64| -> Vec<i64> {
        let batch = lrb.generate(row..row + 1).unwrap();
        names().iter().map(|name| whole(&batch, name)[0]).collect()
    };
    assert_eq!(row(0), [35, 0, 0, 41, 0, 0, 0, 77, 406_656, -1, -1, -1, -1, -1, -1]);
    let later = [9_760, 0, 8_432_170, 27, 0, 2, 1, 92, 487_484, -1, -1, -1, -1, -1, -1];
    assert_eq!(row(5_000_000), later);
}
