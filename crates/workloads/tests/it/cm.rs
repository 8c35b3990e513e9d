//! The public promises of the cluster events: the same rows for any request, the shape of the published trace,
//! constant jobs, and checksums that fix the data.

use crate::laws;

use std::collections::{HashMap, HashSet};

use arrow_array::RecordBatch;
use laws::{checksum, close, only_these_differ, quantile, real, share, tally, whole};
use penstock_workloads::Generator;
use penstock_workloads::cm::{Cm, CmOptions, FAIL, MACHINES, MAX_JOBS, schema};
use proptest::prelude::*;

const ROWS: u64 = 200_000;
const OF_JOB: [&str; 8] = ["job", "user", "category", "priority", "cpu", "ram", "disk", "constraints"];

fn rows_of(options: CmOptions) -> RecordBatch {
    Cm::new(options).and_then(|cm| cm.generate(0..ROWS)).expect("good options and a small range")
}

fn any_options() -> impl Strategy<Value = CmOptions> {
    (
        any::<u64>(),
        prop_oneof![1..100u64, 1..10_000_000u64],
        prop_oneof![Just(0), 1..5u64],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
        1..1_000u16,
        prop_oneof![Just(0.0), 0.1..3.0],
        0.0..=1.0,
    )
        .prop_map(|(seed, rate, step_every_s, out_of_order_ms, late_every, jobs, zipf, fail_share)| {
            CmOptions { seed, rate, step_every_s, out_of_order_ms, late_every, jobs, zipf, fail_share }
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
        laws::any_split_is_the_same(&Cm::new(options).unwrap(), start, rows, batch_rows, cut);
    }
}

#[test]
fn the_schema_is_the_one_of_the_trace() {
    let described = [
        "timestamp Timestamp(ms)",
        "job Int64",
        "task Int64",
        "machine Int64",
        "event_type Int32",
        "user Int32",
        "category Int32",
        "priority Int32",
        "cpu Float32",
        "ram Float32",
        "disk Float32",
        "constraints Int32",
    ];
    assert_eq!(laws::described(&schema()), described);
}

#[test]
fn a_job_keeps_what_it_asks_for() {
    let batch = rows_of(CmOptions::default());
    let jobs = whole(&batch, "job");
    for name in ["user", "category", "priority", "constraints"] {
        let mut of: HashMap<i64, i64> = HashMap::new();
        for (&job, value) in jobs.iter().zip(whole(&batch, name)) {
            assert_eq!(*of.entry(job).or_insert(value), value, "{name} of job {job}");
        }
    }
    for name in ["cpu", "ram", "disk"] {
        let mut of: HashMap<i64, f64> = HashMap::new();
        for (&job, value) in jobs.iter().zip(real(&batch, name)) {
            assert_eq!(*of.entry(job).or_insert(value), value, "{name} of job {job}");
            assert!((0.0..=0.5).contains(&value), "{name} {value}");
        }
        let of: Vec<f64> = of.into_values().collect();
        assert_eq!(of.len(), 240);
        match name {
            "disk" => assert!(share(&of, |&disk| disk == 0.0) > 0.85),
            _ => close(name, quantile(&of, 0.5), 0.025, 0.006),
        }
    }
}

#[test]
fn a_few_jobs_have_most_events() {
    let batch = rows_of(CmOptions::default());
    let mut of_job: HashMap<i64, u64> = HashMap::new();
    let mut tasks: HashMap<i64, HashSet<i64>> = HashMap::new();
    for (job, task) in whole(&batch, "job").into_iter().zip(whole(&batch, "task")) {
        assert!((0..=4_000).contains(&task));
        *of_job.entry(job).or_default() += 1;
        tasks.entry(job).or_default().insert(task);
    }
    let mut counts: Vec<(u64, i64)> = of_job.iter().map(|(&job, &n)| (n, job)).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let harmonic: f64 = (1..=240).map(|n| f64::from(n).powf(-1.3)).sum();
    close("the first job", counts[0].0 as f64 / ROWS as f64, 1.0 / harmonic, 0.01);
    let first_four = counts[..4].iter().map(|(n, _)| n).sum::<u64>() as f64 / ROWS as f64;
    assert!((0.5..0.65).contains(&first_four), "{first_four}");
    assert_eq!(tasks[&counts[0].1].len(), 4_001);
    assert!(tasks[&counts[239].1].len() < 20);

    let uniform = rows_of(CmOptions { jobs: 10, zipf: 0.0, ..CmOptions::default() });
    let jobs = whole(&uniform, "job");
    let distinct: HashSet<i64> = jobs.iter().copied().collect();
    assert_eq!(distinct.len(), 10);
    for job in distinct {
        close("one of ten jobs", share(&jobs, |&found| found == job), 0.1, 0.005);
    }
}

#[test]
fn events_come_as_often_as_in_the_trace() {
    let batch = rows_of(CmOptions::default());
    let events = whole(&batch, "event_type");
    let shares: Vec<f64> = tally(events, 6).into_iter().map(|n| n as f64 / ROWS as f64).collect();
    for (event, expected) in [0.326, 0.324, 0.012, 0.005, 0.273, 0.06].into_iter().enumerate() {
        close(&format!("event {event}"), shares[event], expected, 0.004_f64.min(expected / 5.0));
    }
}

#[test]
fn events_have_a_machine_where_one_is_involved() {
    let batch = rows_of(CmOptions::default());
    let (events, machines) = (whole(&batch, "event_type"), whole(&batch, "machine"));
    let of = |event: i64| -> Vec<i64> {
        events
            .iter()
            .zip(&machines)
            .filter(|(found, _)| **found == event)
            .map(|(_, &machine)| machine)
            .collect()
    };
    assert!(of(0).iter().all(|&machine| machine == -1));
    for event in 1..=4 {
        assert!(of(event).iter().all(|&machine| machine > 0), "event {event}");
    }
    close("killed without a machine", share(&of(5), |&machine| machine == -1), 0.716, 0.02);
    let distinct: HashSet<i64> = machines.into_iter().filter(|&machine| machine != -1).collect();
    assert!(distinct.len() <= MACHINES as usize && distinct.len() > MACHINES as usize - 100);
}

#[test]
fn the_queries_have_something_to_find() {
    // CM1 groups by category, CM2 keeps failures and groups by job.
    for seed in 0..20 {
        let batch = rows_of(CmOptions { seed, ..CmOptions::default() });
        let categories = whole(&batch, "category");
        for category in 0..4 {
            assert!(
                share(&categories, |&found| found == category) > 0.02,
                "category {category} of seed {seed}"
            );
        }
        assert!(share(&categories, |&category| category == 0) > 0.5);
        let failing: HashSet<i64> = whole(&batch, "job")
            .into_iter()
            .zip(whole(&batch, "event_type"))
            .filter(|(_, event)| *event == i64::from(FAIL))
            .map(|(job, _)| job)
            .collect();
        assert!(failing.len() > 50, "{} jobs of seed {seed} fail", failing.len());
        assert!(real(&batch, "cpu").iter().all(|&cpu| cpu > 0.0));
    }
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = rows_of(CmOptions::default());
    only_these_differ(&plain, &rows_of(CmOptions { rate: 12, ..CmOptions::default() }), &["timestamp"]);
    only_these_differ(
        &plain,
        &rows_of(CmOptions { out_of_order_ms: 9, ..CmOptions::default() }),
        &["timestamp"],
    );
    only_these_differ(&plain, &rows_of(CmOptions { late_every: 9, ..CmOptions::default() }), &["timestamp"]);
    let failing = rows_of(CmOptions { fail_share: 0.5, ..CmOptions::default() });
    only_these_differ(&plain, &failing, &["event_type", "machine"]);
    close("failing", share(&whole(&failing, "event_type"), |&event| event == 3), 0.5, 0.01);
    let of_job: Vec<&str> = OF_JOB.into_iter().chain(["task"]).collect();
    only_these_differ(&plain, &rows_of(CmOptions { zipf: 0.5, ..CmOptions::default() }), &of_job);
}

#[test]
fn bad_options_and_ranges_are_refused_by_name() {
    let message = |options: CmOptions| Cm::new(options).unwrap_err().to_string();
    let plain = CmOptions::default;
    assert_eq!(
        message(CmOptions { rate: 0, ..plain() }),
        "rate must be between 1 and 9223372036854775807, got 0"
    );
    assert_eq!(message(CmOptions { jobs: 0, ..plain() }), "jobs must be between 1 and 50000, got 0");
    assert_eq!(
        message(CmOptions { jobs: MAX_JOBS + 1, ..plain() }),
        "jobs must be between 1 and 50000, got 50001"
    );
    assert_eq!(
        message(CmOptions { zipf: -1.0, ..plain() }),
        "zipf must be a finite exponent of at least 0 (0 is uniform), got -1"
    );
    assert_eq!(
        message(CmOptions { fail_share: 1.5, ..plain() }),
        "fail_share must be a number between 0 and 1, got 1.5"
    );
    laws::times_that_do_not_fit_are_refused(&Cm::new(CmOptions { rate: 1, ..plain() }).unwrap());
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = CmOptions {
        seed: 42,
        rate: 3_000,
        step_every_s: 0,
        out_of_order_ms: 50,
        late_every: 20,
        jobs: 3_000,
        zipf: 0.7,
        fail_share: 0.1,
    };
    let sum = |options: CmOptions, start: u64| {
        checksum(&Cm::new(options).unwrap().generate(start..start + 1_000).unwrap())
    };
    assert_eq!(sum(CmOptions::default(), 0), 0xFB10_D87A_89DB_D220);
    assert_eq!(sum(CmOptions::default(), 1 << 40), 0xB23B_15C9_3D61_0502);
    assert_eq!(sum(everything, 0), 0x97C3_1EC6_C442_9999);
}
