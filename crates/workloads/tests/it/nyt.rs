//! The public promises of the taxi trips: the same rows for any request, the shape of the published data, consistent
//! columns, and checksums that fix the data.

use crate::laws;

use std::collections::{HashMap, HashSet};

use arrow_array::RecordBatch;
use laws::{checksum, close, only_these_differ, quantile, real, share, text, whole};
use penstock_workloads::Generator;
use penstock_workloads::nyt::{
    DRIVERS_PER_TAXI, GRID_SIDE, HOT_CELL, Nyt, NytOptions, START_MS, TAXIS, schema,
};
use proptest::prelude::*;

const ROWS: u64 = 100_000;
const METRES_PER_DEGREE_SOUTH: f64 = 111_194.93;
const METRES_PER_DEGREE_EAST: f64 = 83_312.300_953_308_6;

const PLACES: [&str; 4] = ["pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"];
const TIMES: [&str; 2] = ["pickup_datetime", "dropoff_datetime"];

fn rows_of(options: NytOptions) -> RecordBatch {
    Nyt::new(options).and_then(|nyt| nyt.generate(0..ROWS)).expect("good options and a small range")
}

/// Returns the cell of each place as the query computes it, and `None` for a place outside the grid.
fn cells(batch: &RecordBatch, longitude: &str, latitude: &str) -> Vec<Option<i64>> {
    let nth = |metres: f64| (metres / 250.0 + 0.5).floor() + 1.0;
    let on_grid = 1.0..=f64::from(GRID_SIDE);
    let cell = |(longitude, latitude): (f64, f64)| {
        let row = nth((41.474937 - latitude) * METRES_PER_DEGREE_SOUTH);
        let column = nth((longitude + 74.913583) * METRES_PER_DEGREE_EAST);
        (on_grid.contains(&row) && on_grid.contains(&column))
            .then_some((row as i64 - 1) * 600 + column as i64)
    };
    real(batch, longitude).into_iter().zip(real(batch, latitude)).map(cell).collect()
}

fn any_options() -> impl Strategy<Value = NytOptions> {
    (
        any::<u64>(),
        prop_oneof![1..100u64, 1..10_000_000u64],
        prop_oneof![Just(0), 1..5u64],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
        0.0..=1.0,
        0.0..=1.0,
    )
        .prop_map(|(seed, rate, step_every_s, out_of_order_ms, late_every, vts_share, hot_share)| {
            NytOptions { seed, rate, step_every_s, out_of_order_ms, late_every, vts_share, hot_share }
        })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(
        options in any_options(),
        start in prop_oneof![0..10_000u64, 0..1u64 << 40],
        rows in 0..1_000u64,
        batch_rows in 1..300u64,
        cut in 0.0..=1.0,
    ) {
        laws::any_split_is_the_same(&Nyt::new(options).unwrap(), start, rows, batch_rows, cut);
    }
}

#[test]
fn the_schema_is_the_one_of_the_benchmark() {
    let described = [
        "medallion Utf8",
        "hack_license Utf8",
        "vendor_id Utf8",
        "pickup_datetime Timestamp(ms)",
        "dropoff_datetime Timestamp(ms)",
        "trip_time_in_secs Int64",
        "trip_distance Float64",
        "pickup_longitude Float64",
        "pickup_latitude Float64",
        "dropoff_longitude Float64",
        "dropoff_latitude Float64",
        "payment_type Utf8",
        "fare_amount Float64",
        "surcharge Float64",
        "mta_tax Float64",
        "tip_amount Float64",
        "tolls_amount Float64",
        "total_amount Float64",
    ];
    assert_eq!(laws::described(&schema()), described);
}

#[test]
fn taxis_have_one_vendor_and_a_few_drivers_of_their_own() {
    let batch = rows_of(NytOptions::default());
    let (taxis, drivers) = (text(&batch, "medallion"), text(&batch, "hack_license"));
    let vendors = text(&batch, "vendor_id");
    let mut of_taxi: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut of_driver: HashMap<&str, &str> = HashMap::new();
    let mut vendor_of: HashMap<&str, &str> = HashMap::new();
    for ((taxi, driver), vendor) in taxis.iter().zip(&drivers).zip(&vendors) {
        for name in [taxi, driver] {
            assert!(
                name.len() == 32 && name.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b))
            );
        }
        of_taxi.entry(taxi).or_default().insert(driver);
        assert_eq!(of_driver.entry(driver).or_insert(taxi), taxi);
        assert_eq!(vendor_of.entry(taxi).or_insert(vendor), vendor);
    }
    assert!(of_taxi.len() as u32 <= TAXIS && of_taxi.len() as u32 > TAXIS - 100, "{} taxis", of_taxi.len());
    assert!(of_taxi.values().all(|drivers| drivers.len() as u32 <= DRIVERS_PER_TAXI));
    assert!(of_taxi.values().any(|drivers| drivers.len() as u32 == DRIVERS_PER_TAXI));
    close("VTS", share(&vendors, |&vendor| vendor == "VTS"), 0.5, 0.02);
    assert!(vendors.iter().all(|vendor| ["VTS", "CMT"].contains(vendor)));
}

#[test]
fn the_vendors_share_is_met() {
    for vts_share in [0.0, 0.1, 1.0] {
        let batch = rows_of(NytOptions { vts_share, ..NytOptions::default() });
        close("VTS", share(&text(&batch, "vendor_id"), |&vendor| vendor == "VTS"), vts_share, 0.02);
    }
}

#[test]
fn trips_end_in_order_and_last_as_long_as_they_say() {
    let batch = rows_of(NytOptions::default());
    let (starts, ends) = (whole(&batch, "pickup_datetime"), whole(&batch, "dropoff_datetime"));
    let seconds = whole(&batch, "trip_time_in_secs");
    for row in 0..ROWS as usize {
        assert_eq!(ends[row], START_MS as i64 + row as i64 / 1_000);
        assert_eq!(ends[row] - starts[row], seconds[row] * 1_000);
        assert!(seconds[row] > 0);
    }
    // 2013-01-01T00:00:00Z.
    assert_eq!(START_MS, 43 * 365 * 86_400_000 + 11 * 86_400_000);
}

#[test]
fn distances_and_durations_have_the_shape_of_the_published_ones() {
    let batch = rows_of(NytOptions::default());
    let miles = real(&batch, "trip_distance");
    for (part, expected) in [(0.05, 0.41), (0.25, 0.98), (0.5, 1.8), (0.75, 3.31), (0.95, 7.9), (0.99, 13.8)]
    {
        let found = quantile(&miles, part);
        close(&format!("{part} of the distances"), found, expected, 0.04 * expected);
    }
    assert!(miles.iter().all(|miles| (0.07..42.0).contains(miles)));
    close("longer than a mile", share(&miles, |&miles| miles > 1.0), 0.74, 0.01);

    let seconds: Vec<f64> = whole(&batch, "trip_time_in_secs").into_iter().map(|n| n as f64).collect();
    close("half of the durations", quantile(&seconds, 0.5), 611.0, 20.0);
    let speeds: Vec<f64> =
        miles.iter().zip(&seconds).map(|(miles, seconds)| miles * 3_600.0 / seconds).collect();
    assert!(speeds.iter().all(|speed| (2.0..75.0).contains(speed)));
    let of = |long: bool| -> Vec<f64> {
        speeds
            .iter()
            .zip(&miles)
            .filter(|(_, miles)| (**miles > 8.0) == long)
            .map(|(&speed, _)| speed)
            .collect()
    };
    assert!(quantile(&of(true), 0.5) > 1.5 * quantile(&of(false), 0.5));
}

#[test]
fn most_trips_start_in_a_few_cells_and_some_outside_the_grid() {
    let batch = rows_of(NytOptions::default());
    let starts = cells(&batch, "pickup_longitude", "pickup_latitude");
    let mut trips: HashMap<i64, u64> = HashMap::new();
    for cell in starts.iter().flatten() {
        *trips.entry(*cell).or_default() += 1;
    }
    let mut counts: Vec<u64> = trips.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let first = |n: usize| counts[..n].iter().sum::<u64>() as f64 / ROWS as f64;
    assert!((0.3..0.6).contains(&first(100)), "{} in 100 cells", first(100));
    assert!((0.75..0.95).contains(&first(400)), "{} in 400 cells", first(400));
    assert!(counts.len() > 1_500 && counts.len() < 10_000, "{} cells", counts.len());
    close("outside", share(&starts, Option::is_none), 0.0198, 0.002);
    let unknown = share(&real(&batch, "pickup_latitude"), |&degrees| degrees == 0.0);
    close("unknown", unknown, 0.018, 0.002);
    assert!(unknown < share(&starts, Option::is_none));

    let ends = cells(&batch, "dropoff_longitude", "dropoff_latitude");
    close("ends outside", share(&ends, Option::is_none), 0.0228, 0.003);
}

#[test]
fn the_ends_of_a_trip_lie_as_far_apart_as_its_distance_allows() {
    let batch = rows_of(NytOptions { hot_share: 0.2, ..NytOptions::default() });
    let [west, south, west_end, south_end] = PLACES.map(|name| real(&batch, name));
    let mut along = 0;
    let mut known = 0;
    for (row, miles) in real(&batch, "trip_distance").into_iter().enumerate() {
        for degrees in [west[row], south[row], west_end[row], south_end[row]] {
            assert_eq!((degrees * 1e6).round() / 1e6, degrees);
        }
        assert_eq!(west[row] == 0.0, south[row] == 0.0);
        assert_eq!(west_end[row] == 0.0, south_end[row] == 0.0);
        if west[row] == 0.0 {
            assert_eq!(west_end[row], 0.0, "the end of row {row}");
        }
        if west_end[row] == 0.0 {
            continue;
        }
        let east = (west_end[row] - west[row]) * METRES_PER_DEGREE_EAST;
        let north = (south_end[row] - south[row]) * METRES_PER_DEGREE_SOUTH;
        let straight = east.hypot(north) / 1_609.344;
        assert!(
            (0.999 * miles / 1.55 - 0.001..1.001 * miles / 1.15 + 0.001).contains(&straight),
            "row {row}"
        );
        known += 1;
        along += u32::from((east * 0.4848 + north * 0.8746).abs() > (east * 0.8746 - north * 0.4848).abs());
    }
    // Twice as dense in the directions of the avenues as across: 0.59 of the trips are nearer to them.
    close("along the avenues", f64::from(along) / f64::from(known), 0.586, 0.01);
}

#[test]
fn amounts_add_up() {
    let batch = rows_of(NytOptions::default());
    let cents = |name: &str| -> Vec<i64> {
        let amounts = real(&batch, name);
        let cents: Vec<i64> = amounts.iter().map(|amount| (amount * 100.0).round() as i64).collect();
        assert!(amounts.iter().zip(&cents).all(|(&amount, &cents)| cents as f64 / 100.0 == amount), "{name}");
        cents
    };
    let (fares, surcharges, taxes) = (cents("fare_amount"), cents("surcharge"), cents("mta_tax"));
    let (tips, tolls, totals) = (cents("tip_amount"), cents("tolls_amount"), cents("total_amount"));
    let miles = real(&batch, "trip_distance");
    let seconds = whole(&batch, "trip_time_in_secs");
    let payments = text(&batch, "payment_type");
    for row in 0..ROWS as usize {
        let before_tip = fares[row] + surcharges[row] + taxes[row];
        assert_eq!(totals[row], before_tip + tips[row] + tolls[row], "row {row}");
        let units = 0.6 * (5.0 * miles[row] + seconds[row] as f64 / 60.0);
        assert!((units - ((fares[row] - 250) / 50) as f64 - 0.5).abs() < 0.501, "row {row}");
        let percent = tips[row] as f64 * 100.0 / before_tip as f64;
        let is_card = payments[row] == "CRD";
        assert!(tips[row] == 0 || is_card && (9.8..30.2).contains(&percent), "row {row}: {percent}");
        assert!(tolls[row] == 0 || tolls[row] == 533 && miles[row] >= 8.0, "row {row}");
        assert_eq!(taxes[row], 50);
    }
    for (cents, expected) in [(0, 0.55), (50, 0.33), (100, 0.12)] {
        close("surcharge", share(&surcharges, |&surcharge| surcharge == cents), expected, 0.01);
    }
    for (payment, expected) in [("CRD", 0.54), ("CSH", 0.454), ("NOC", 0.003), ("UNK", 0.002), ("DIS", 0.001)]
    {
        close(payment, share(&payments, |&found| found == payment), expected, 0.1 * expected.sqrt() * 0.1);
    }
    close("tips", share(&tips, |&tip| tip > 0), 0.54 * 0.96, 0.01);
    let long: Vec<i64> =
        tolls.iter().zip(&miles).filter(|(_, miles)| **miles >= 8.0).map(|(&toll, _)| toll).collect();
    close("tolls", share(&long, |&toll| toll > 0), 0.6, 0.03);
}

#[test]
fn the_query_has_something_to_find() {
    let batch = rows_of(NytOptions::default());
    let starts = cells(&batch, "pickup_longitude", "pickup_latitude");
    let ends = cells(&batch, "dropoff_longitude", "dropoff_latitude");
    let (vendors, miles) = (text(&batch, "vendor_id"), real(&batch, "trip_distance"));
    let rows: Vec<usize> = (0..ROWS as usize).collect();
    let kept = |&row: &usize| {
        vendors[row] == "VTS" && miles[row] > 1.0 && starts[row].is_some() && ends[row].is_some()
    };
    close("kept", share(&rows, kept), 0.36, 0.02);
}

#[test]
fn hot_trips_start_in_the_hot_cell() {
    let in_cell = |hot_share| {
        let batch = rows_of(NytOptions { hot_share, ..NytOptions::default() });
        share(&cells(&batch, "pickup_longitude", "pickup_latitude"), |&cell| cell == Some(HOT_CELL))
    };
    assert!(in_cell(0.0) > 0.002 && in_cell(0.0) < 0.02, "{}", in_cell(0.0));
    close("hot", in_cell(0.3), 0.3 + 0.7 * in_cell(0.0), 0.01);
    assert_eq!(in_cell(1.0), 1.0);
}

#[test]
fn times_are_moved_as_asked() {
    let batch = rows_of(NytOptions { out_of_order_ms: 50, late_every: 100, ..NytOptions::default() });
    let moved: Vec<i64> = whole(&batch, "dropoff_datetime")
        .into_iter()
        .zip(0..)
        .map(|(time, row)| time - START_MS as i64 - row / 1_000)
        .collect();
    assert!(moved.iter().all(|moved| (-60_050..=50).contains(moved)));
    assert!(moved.contains(&50) && moved.contains(&-50));
    close("late", share(&moved, |&moved| moved < -50), 0.01, 0.002);
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = rows_of(NytOptions::default());
    only_these_differ(&plain, &rows_of(NytOptions { rate: 12, ..NytOptions::default() }), &TIMES);
    only_these_differ(&plain, &rows_of(NytOptions { out_of_order_ms: 9, ..NytOptions::default() }), &TIMES);
    only_these_differ(&plain, &rows_of(NytOptions { late_every: 9, ..NytOptions::default() }), &TIMES);
    only_these_differ(
        &plain,
        &rows_of(NytOptions { vts_share: 0.6, ..NytOptions::default() }),
        &["vendor_id"],
    );
    only_these_differ(&plain, &rows_of(NytOptions { hot_share: 0.1, ..NytOptions::default() }), &PLACES);
}

#[test]
fn bad_options_and_ranges_are_refused_by_name() {
    let message = |options: NytOptions| Nyt::new(options).unwrap_err().to_string();
    let plain = NytOptions::default;
    assert_eq!(
        message(NytOptions { rate: 0, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 0"
    );
    assert_eq!(
        message(NytOptions { out_of_order_ms: 31_536_000_001, ..plain() }),
        "out_of_order_ms must be between 0 and 31536000000, got 31536000001"
    );
    assert_eq!(
        message(NytOptions { vts_share: 1.5, ..plain() }),
        "vts_share must be a number between 0 and 1, got 1.5"
    );
    assert_eq!(
        message(NytOptions { hot_share: f64::NAN, ..plain() }),
        "hot_share must be a number between 0 and 1, got NaN"
    );
    laws::times_that_do_not_fit_are_refused(&Nyt::new(NytOptions { rate: 1, ..plain() }).unwrap());
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = NytOptions {
        seed: 42,
        rate: 3_000,
        step_every_s: 0,
        out_of_order_ms: 50,
        late_every: 20,
        vts_share: 0.3,
        hot_share: 0.2,
    };
    let sum = |options: NytOptions, start: u64| {
        checksum(&Nyt::new(options).unwrap().generate(start..start + 1_000).unwrap())
    };
    assert_eq!(sum(NytOptions::default(), 0), 0x3788_95E4_1C47_8DF6);
    assert_eq!(sum(NytOptions::default(), 1 << 40), 0x6E9C_3757_E3EB_1F92);
    assert_eq!(sum(everything, 0), 0xF1AD_FD63_4194_CE1E);
}
