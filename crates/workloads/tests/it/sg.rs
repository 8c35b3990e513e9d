//! The public promises of the smart grid's readings: the same rows for any request, the shape of the published data,
//! constant plugs, and checksums that fix the data.

use crate::laws;

use std::collections::{HashMap, HashSet};

use arrow_array::RecordBatch;
use laws::{checksum, close, only_these_differ, quantile, real, share, whole};
use penstock_workloads::Generator;
use penstock_workloads::sg::{LOAD, MAX_HOUSES, START_MS, Sg, SgOptions, WORK, schema};
use proptest::prelude::*;

const ROWS: u64 = 200_000;

type Plug = (i64, i64, i64);

fn rows_of(options: SgOptions) -> RecordBatch {
    Sg::new(options).and_then(|sg| sg.generate(0..ROWS)).expect("good options and a small range")
}

/// Returns house, household and plug of each row.
fn plugs(batch: &RecordBatch) -> Vec<Plug> {
    let (houses, households) = (whole(batch, "house"), whole(batch, "household"));
    let plugs = whole(batch, "plug");
    (0..plugs.len()).map(|row| (houses[row], households[row], plugs[row])).collect()
}

/// Returns the values of each plug that have this property.
fn values(batch: &RecordBatch, property: i32) -> HashMap<Plug, Vec<f64>> {
    let mut values: HashMap<Plug, Vec<f64>> = HashMap::new();
    let properties = whole(batch, "property");
    for ((plug, value), found) in plugs(batch).into_iter().zip(real(batch, "value")).zip(properties) {
        if found == i64::from(property) {
            values.entry(plug).or_default().push(value);
        }
    }
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn any_options() -> impl Strategy<Value = SgOptions> {
    (
        any::<u64>(),
        prop_oneof![1..100u64, 1..10_000_000u64],
        prop_oneof![Just(0), 1..5u64],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
        1..30u16,
        prop_oneof![Just(0.0), 0.1..3.0],
    )
        .prop_map(|(seed, rate, step_every_s, out_of_order_ms, late_every, houses, zipf)| SgOptions {
            seed,
            rate,
            step_every_s,
            out_of_order_ms,
            late_every,
            houses,
            zipf,
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
        laws::any_split_is_the_same(&Sg::new(options).unwrap(), start, rows, batch_rows, cut);
    }
}

#[test]
fn the_schema_is_the_one_of_the_published_data() {
    let described = [
        "timestamp Timestamp(ms)",
        "value Float32",
        "property Int32",
        "plug Int32",
        "household Int32",
        "house Int32",
    ];
    assert_eq!(laws::described(&schema()), described);
    // 2013-08-31T22:00:00Z: 242 days into the year.
    assert_eq!(START_MS, (43 * 365 + 11 + 242) * 86_400_000 + 22 * 3_600_000);
}

#[test]
fn houses_have_households_and_those_have_plugs() {
    let sg = Sg::new(SgOptions { houses: 40, ..SgOptions::default() }).unwrap();
    let batch = sg.generate(0..2 * sg.plugs() as u64).unwrap();
    let distinct: HashSet<Plug> = plugs(&batch).into_iter().collect();
    assert_eq!(distinct.len(), sg.plugs());
    let mut households: HashMap<i64, i64> = HashMap::new();
    let mut plugs_of: HashMap<(i64, i64), i64> = HashMap::new();
    for &(house, household, plug) in &distinct {
        assert!((0..40).contains(&house) && (0..14).contains(&household) && (0..14).contains(&plug));
        // Numbers have no gaps: below a number n all others occur.
        assert!(plug == 0 || distinct.contains(&(house, household, plug - 1)));
        assert!(household == 0 || distinct.contains(&(house, household - 1, 0)));
        let most = households.entry(house).or_default();
        *most = household.max(*most);
        let most = plugs_of.entry((house, household)).or_default();
        *most = plug.max(*most);
    }
    assert_eq!(households.len(), 40);
    let average =
        |numbers: Vec<i64>| numbers.iter().map(|n| n + 1).sum::<i64>() as f64 / numbers.len() as f64;
    close("households of a house", average(households.into_values().collect()), 7.5, 2.0);
    close("plugs of a household", average(plugs_of.into_values().collect()), 7.5, 0.8);
}

#[test]
fn plugs_report_work_and_load_in_turn() {
    let sg = Sg::new(SgOptions::default()).unwrap();
    let batch = sg.generate(0..ROWS).unwrap();
    let plugs = plugs(&batch);
    let properties = whole(&batch, "property");
    for row in 0..ROWS as usize {
        assert_eq!(properties[row], if row % 2 == 0 { WORK.into() } else { LOAD.into() });
        assert_eq!(plugs[row], plugs[row / 2 * 2]);
        if let Some(before) = row.checked_sub(2 * sg.plugs()) {
            assert_eq!(plugs[row], plugs[before]);
        }
    }
}

#[test]
fn loads_have_the_shape_of_the_published_ones() {
    let batch = rows_of(SgOptions { houses: 100, ..SgOptions::default() });
    let loads: Vec<f64> = values(&batch, LOAD).into_values().flatten().collect();
    close("without a load", share(&loads, |&load| load == 0.0), 0.64, 0.03);
    for (part, least, most) in
        [(0.75, 8.0, 20.0), (0.9, 40.0, 80.0), (0.95, 80.0, 200.0), (0.99, 250.0, 500.0)]
    {
        let found = quantile(&loads, part);
        assert!((least..most).contains(&found), "{part} of the loads: {found}");
    }
    assert!(loads.iter().all(|load| (0.0..4_000.0).contains(load)));
}

#[test]
fn a_plug_takes_about_the_same_all_the_time() {
    let batch = rows_of(SgOptions { houses: 3, ..SgOptions::default() });
    for (plug, loads) in values(&batch, LOAD) {
        let mean = mean(&loads);
        let deviation =
            (loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / loads.len() as f64).sqrt();
        // At a few watts the noise is cut off at 0.
        if mean > 10.0 || mean == 0.0 {
            close(&format!("noise of {plug:?}, {mean} W"), deviation, 0.45 * mean.sqrt(), 0.12 * mean.sqrt());
        }
    }
}

#[test]
fn work_never_falls_and_grows_with_the_load() {
    let sg = Sg::new(SgOptions { houses: 3, ..SgOptions::default() }).unwrap();
    let batch = sg.generate(0..ROWS).unwrap();
    let loads = values(&batch, LOAD);
    let mut grown = 0;
    for (plug, work) in values(&batch, WORK) {
        assert!(work.is_sorted(), "{plug:?}");
        let hours = (work.len() - 1) as f64 * 2.0 / 3_600.0;
        let expected = mean(&loads[&plug]) * hours / 1_000.0;
        close(
            &format!("work of {plug:?}"),
            work[work.len() - 1] - work[0],
            expected,
            0.002 + 0.03 * expected,
        );
        grown += usize::from(work[work.len() - 1] > work[0]);
    }
    assert!(grown > sg.plugs() / 5);
}

#[test]
fn the_queries_have_something_to_find() {
    // SG3 asks which plugs are above the mean of all rows.
    for seed in 0..20 {
        let batch = rows_of(SgOptions { seed, ..SgOptions::default() });
        let overall = mean(&real(&batch, "value"));
        let mut of_plug: HashMap<Plug, Vec<f64>> = values(&batch, WORK);
        for (plug, loads) in values(&batch, LOAD) {
            of_plug.entry(plug).or_default().extend(loads);
        }
        let means: Vec<f64> = of_plug.values().map(|values| mean(values)).collect();
        assert!(means.len() > 100, "{} plugs", means.len());
        let above = share(&means, |&mean| mean > overall);
        assert!((0.03..0.5).contains(&above), "{above} of the plugs of seed {seed} are above {overall}");
    }
}

#[test]
fn zipf_puts_the_first_plugs_in_front() {
    let batch = rows_of(SgOptions { zipf: 1.0, ..SgOptions::default() });
    let plugs = plugs(&batch);
    assert!((0..ROWS as usize).all(|row| plugs[row] == plugs[row / 2 * 2]));
    let first = share(&plugs, |&plug| plug == (0, 0, 0));
    let among = Sg::new(SgOptions::default()).unwrap().plugs();
    let harmonic: f64 = (1..=among).map(|n| 1.0 / n as f64).sum();
    close("the first plug", first, 1.0 / harmonic, 0.01);
    assert!(values(&batch, WORK).values().all(|work| work.is_sorted()));
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = rows_of(SgOptions::default());
    only_these_differ(&plain, &rows_of(SgOptions { rate: 12, ..SgOptions::default() }), &["timestamp"]);
    only_these_differ(
        &plain,
        &rows_of(SgOptions { out_of_order_ms: 9, ..SgOptions::default() }),
        &["timestamp"],
    );
    only_these_differ(&plain, &rows_of(SgOptions { late_every: 9, ..SgOptions::default() }), &["timestamp"]);
    let of_plug = ["value", "plug", "household", "house"];
    only_these_differ(&plain, &rows_of(SgOptions { zipf: 0.5, ..SgOptions::default() }), &of_plug);
    // More houses do not change the earlier ones: the first sweep starts the same.
    let more = rows_of(SgOptions { houses: 20, ..SgOptions::default() });
    let before = 2 * Sg::new(SgOptions::default()).unwrap().plugs();
    assert_eq!(plain.slice(0, before), more.slice(0, before));
    assert_ne!(plugs(&plain)[before], plugs(&more)[before]);
}

#[test]
fn bad_options_and_ranges_are_refused_by_name() {
    let message = |options: SgOptions| Sg::new(options).unwrap_err().to_string();
    let plain = SgOptions::default;
    assert_eq!(
        message(SgOptions { rate: 0, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 0"
    );
    assert_eq!(message(SgOptions { houses: 0, ..plain() }), "houses must be between 1 and 300, got 0");
    assert_eq!(
        message(SgOptions { houses: MAX_HOUSES + 1, ..plain() }),
        "houses must be between 1 and 300, got 301"
    );
    assert_eq!(
        message(SgOptions { zipf: f64::NAN, ..plain() }),
        "zipf must be a finite exponent of at least 0 (0 is uniform), got NaN"
    );
    laws::times_that_do_not_fit_are_refused(&Sg::new(SgOptions { rate: 1, ..plain() }).unwrap());
    assert!(
        Sg::new(SgOptions { houses: MAX_HOUSES, zipf: 1.0, ..plain() }).unwrap().generate(0..100).is_ok()
    );
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = SgOptions {
        seed: 42,
        rate: 3_000,
        step_every_s: 0,
        out_of_order_ms: 50,
        late_every: 20,
        houses: 40,
        zipf: 0.7,
    };
    let sum = |options: SgOptions, start: u64| {
        checksum(&Sg::new(options).unwrap().generate(start..start + 1_000).unwrap())
    };
    assert_eq!(sum(SgOptions::default(), 0), 0xD9CE_F33D_7AF1_1B3F);
    assert_eq!(sum(SgOptions::default(), 1 << 40), 0x669D_BC23_D7BE_148A);
    assert_eq!(sum(everything, 0), 0x50A1_AEAE_79B3_B7F6);
}
