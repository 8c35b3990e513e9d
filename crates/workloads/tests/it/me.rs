//! The public promises of the plant's sensors: the same rows for any request, the shape of the published data, and
//! checksums that fix the data.

use crate::laws;

use arrow_array::RecordBatch;
use laws::{checksum, close, only_these_differ, quantile, share, whole};
use penstock_workloads::Generator;
use penstock_workloads::me::{FIRST_MESSAGE, Me, MeOptions, START_MS, schema};
use proptest::prelude::*;

const ROWS: u64 = 200_000;

fn rows_of(options: MeOptions) -> RecordBatch {
    Me::new(options).and_then(|me| me.generate(0..ROWS)).expect("good options and a small range")
}

fn values(batch: &RecordBatch, name: &str) -> Vec<f64> {
    whole(batch, name).into_iter().map(|value| value as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the correlation of two columns: 1 when they move together, 0 when they are independent.
fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let (left_mean, right_mean) = (mean(left), mean(right));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        left.iter().zip(right).map(|(left, right)| of(left - left_mean, right - right_mean)).sum()
    };
    sum(&|l, r| l * r) / (sum(&|l, _| l * l) * sum(&|_, r| r * r)).sqrt()
}

fn any_options() -> impl Strategy<Value = MeOptions> {
    (
        any::<u64>(),
        prop_oneof![1..100u64, 1..10_000_000u64],
        prop_oneof![Just(0), 1..5u64],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
    )
        .prop_map(|(seed, rate, step_every_s, out_of_order_ms, late_every)| MeOptions {
            seed,
            rate,
            step_every_s,
            out_of_order_ms,
            late_every,
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
        laws::any_split_is_the_same(&Me::new(options).unwrap(), start, rows, batch_rows, cut);
    }
}

#[test]
fn the_schema_is_the_one_that_the_queries_use() {
    let described = [
        "timestamp Timestamp(ms)",
        "message_index Int64",
        "mf01 Int32",
        "mf02 Int32",
        "mf03 Int32",
        "pc13 Int32",
        "pc14 Int32",
        "pc15 Int32",
        "pc25 Int32",
        "pc26 Int32",
        "pc27 Int32",
        "res Int32",
        "bm05 Int32",
        "bm06 Int32",
    ];
    assert_eq!(laws::described(&schema()), described);
}

#[test]
fn messages_are_numbered_and_in_order() {
    let batch = rows_of(MeOptions { rate: 100, ..MeOptions::default() });
    let (times, indices) = (whole(&batch, "timestamp"), whole(&batch, "message_index"));
    for (row, (time, index)) in (0..).zip(times.into_iter().zip(indices)) {
        assert_eq!((time, index), (START_MS as i64 + row * 10, FIRST_MESSAGE + row));
    }
    // 2012-02-22T16:46:00Z: 52 days into the year.
    assert_eq!(START_MS, (42 * 365 + 10 + 52) * 86_400_000 + (16 * 60 + 46) * 60_000);
}

#[test]
fn the_main_phases_have_the_shape_of_the_published_ones() {
    let batch = rows_of(MeOptions::default());
    for (name, level, drift, surge) in [
        ("mf01", 13_050.0, 282.0, 5_000.0),
        ("mf02", 14_370.0, 307.0, 5_500.0),
        ("mf03", 8_090.0, 132.0, 1_250.0),
    ] {
        let values = values(&batch, name);
        close(name, quantile(&values, 0.5), level, 20.0);
        assert!(values.iter().all(|value| (level - drift..level + drift + surge).contains(value)), "{name}");
        // Surges are rare, but present.
        let surging = share(&values, |&value| value > level + drift);
        assert!((0.002..0.02).contains(&surging), "{name}: {surging}");
        assert!(quantile(&values, 0.999) > level + drift + surge / 3.0, "{name}");
        // Drift and surges persist from one message to the next, and fade after some hundreds.
        let after = |messages: usize| correlation(&values[messages..], &values[..values.len() - messages]);
        assert!(after(1) > 0.9 && after(10) > 0.8 && after(1_000).abs() < 0.2, "{name}: {}", after(10));
    }
    let [first, second, third] = ["mf01", "mf02", "mf03"].map(|name| values(&batch, name));
    assert!(correlation(&first, &second) > 0.99);
    close("the third phase with the first", correlation(&first, &third), 0.0, 0.1);
}

#[test]
fn cells_are_noisy_around_their_levels() {
    let batch = rows_of(MeOptions::default());
    for (name, level) in [("pc13", 70.0), ("pc14", 190.0), ("pc15", 152.0)] {
        let values = values(&batch, name);
        close(name, mean(&values), level, 0.1);
        let deviation =
            (values.iter().map(|value| (value - level).powi(2)).sum::<f64>() / ROWS as f64).sqrt();
        close(name, deviation, 4.0, 0.05);
    }
    let [first, second] = ["pc13", "pc14"].map(|name| values(&batch, name));
    close("two cells", correlation(&first, &second), 0.0, 0.02);
}

#[test]
fn unused_sensors_are_silent_and_switches_rarely_on() {
    let batch = rows_of(MeOptions::default());
    for name in ["pc25", "pc26", "pc27", "res"] {
        assert!(whole(&batch, name).iter().all(|&value| value == 0), "{name}");
    }
    for name in ["bm05", "bm06"] {
        let values = whole(&batch, name);
        close(name, share(&values, |&value| value == 1), 1.0 / 64.0, 0.015);
        assert!(values.chunks(256).all(|chunk| chunk.iter().all(|value| *value == chunk[0])), "{name}");
        assert!(values.iter().all(|value| [0, 1].contains(value)) && values.contains(&1), "{name}");
    }
    assert_ne!(whole(&batch, "bm05"), whole(&batch, "bm06"));
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = rows_of(MeOptions::default());
    only_these_differ(&plain, &rows_of(MeOptions { rate: 12, ..MeOptions::default() }), &["timestamp"]);
    only_these_differ(
        &plain,
        &rows_of(MeOptions { out_of_order_ms: 9, ..MeOptions::default() }),
        &["timestamp"],
    );
    only_these_differ(&plain, &rows_of(MeOptions { late_every: 9, ..MeOptions::default() }), &["timestamp"]);
    let sensors = ["mf01", "mf02", "mf03", "pc13", "pc14", "pc15", "bm05", "bm06"];
    only_these_differ(&plain, &rows_of(MeOptions { seed: 8, ..MeOptions::default() }), &sensors);
}

#[test]
fn bad_options_and_ranges_are_refused_by_name() {
    let message = |options: MeOptions| Me::new(options).unwrap_err().to_string();
    let plain = MeOptions::default;
    assert_eq!(
        message(MeOptions { rate: 0, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 0"
    );
    assert_eq!(
        message(MeOptions { out_of_order_ms: 31_536_000_001, ..plain() }),
        "out_of_order_ms must be between 0 and 31536000000, got 31536000001"
    );
    laws::times_that_do_not_fit_are_refused(&Me::new(MeOptions { rate: 1, ..plain() }).unwrap());
    let fast = Me::new(plain()).unwrap();
    assert_eq!(
        fast.generate(u64::MAX - 10..u64::MAX).unwrap_err().to_string(),
        "the last row must be between 0 and 9223372036852219806, got 18446744073709551614"
    );
    let last = (i64::MAX - FIRST_MESSAGE) as u64;
    assert_eq!(whole(&fast.generate(last..last + 1).unwrap(), "message_index"), [i64::MAX]);
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything =
        MeOptions { seed: 42, rate: 3_000, step_every_s: 0, out_of_order_ms: 50, late_every: 20 };
    let sum = |options: MeOptions, start: u64| {
        checksum(&Me::new(options).unwrap().generate(start..start + 1_000).unwrap())
    };
    assert_eq!(sum(MeOptions::default(), 0), 0x296A_770E_A9EA_D366);
    assert_eq!(sum(MeOptions::default(), 1 << 40), 0x111E_8806_A01C_6368);
    assert_eq!(sum(everything, 0), 0x2E1F_2746_020C_2E57);
}
