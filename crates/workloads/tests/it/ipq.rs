//! The public promises of the IPQ sources: the same rows for any request, volumes that match the rows, the mix of
//! jobs, and checksums that fix the data.

use crate::laws;

use arrow_array::RecordBatch;
use laws::{checksum, close, only_these_differ, quantile, share, tally, whole};
use penstock_workloads::Generator;
use penstock_workloads::ipq::{
    Ipq, IpqOptions, MAX_SOURCES, OTHER_KEYS, PERIOD_S, TenantQuery, Tenants, Urgency, logs_schema,
    revenue_schema,
};
use proptest::prelude::*;

const ROWS: u64 = 200_000;

fn variable() -> IpqOptions {
    IpqOptions { is_variable: true, ..IpqOptions::default() }
}

fn revenue(options: IpqOptions, source: u16) -> RecordBatch {
    let revenue = Ipq::new(options).and_then(|ipq| ipq.revenue(source)).expect("good options and a source");
    laws::rows(&revenue, 0..ROWS)
}

fn any_options() -> impl Strategy<Value = IpqOptions> {
    (
        any::<u64>(),
        1..100u16,
        prop_oneof![1..10u64, 1..1_000_000u64],
        any::<bool>(),
        prop_oneof![Just(1), 1..1_000u64],
        1..1_000u16,
        prop_oneof![Just(0.0), 0.1..3.0],
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
    )
        .prop_map(|(seed, sources, rate, is_variable, skew, keys, zipf, out_of_order_ms, late_every)| {
            IpqOptions { seed, sources, rate, is_variable, skew, keys, zipf, out_of_order_ms, late_every }
        })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(
        options in any_options(),
        source in 0..100u16,
        start in prop_oneof![0..10_000u64, 0..1u64 << 40],
        rows in 0..1_000u64,
        batch_rows in 1..300u64,
        cut in 0.0..=1.0,
    ) {
        let source = source % options.sources;
        let ipq = Ipq::new(options).unwrap();
        laws::any_split_is_the_same(&ipq.revenue(source).unwrap(), start, rows, batch_rows, cut);
        laws::any_split_is_the_same(&ipq.logs(source).unwrap(), start, rows, batch_rows, cut);
    }

    #[test]
    fn the_rows_of_a_second_are_as_many_as_its_volume(
        mut options in any_options(),
        source in 0..100u16,
        second in prop_oneof![0..2_000u64, 0..1u64 << 40],
    ) {
        (options.out_of_order_ms, options.late_every, options.rate) = (0, 0, options.rate.min(5_000));
        let source = source % options.sources;
        let ipq = Ipq::new(options).unwrap();
        let first = ipq.rows_before(source, second).unwrap();
        let volume = ipq.volume(source, second).unwrap();
        prop_assert_eq!(ipq.rows_before(source, second + 1).unwrap(), first + volume);
        // One row before and one after, if they exist.
        let rows = first.saturating_sub(1)..(first + volume).min(first + 100_000) + 1;
        let batch = ipq.revenue(source).unwrap().generate(rows.clone()).unwrap();
        for (row, time) in rows.zip(whole(&batch, "timestamp")) {
            let expected = (first..first + volume).contains(&row);
            prop_assert_eq!(time.div_euclid(1_000) == second as i64, expected, "row {} at {}", row, time);
        }
    }

    #[test]
    fn times_are_in_order_before_they_are_moved(mut options in any_options(), start in 0..1u64 << 40) {
        (options.out_of_order_ms, options.late_every) = (0, 0);
        let ipq = Ipq::new(options).unwrap();
        let batch = ipq.logs(0).unwrap().generate(start..start + 2_000).unwrap();
        prop_assert!(whole(&batch, "timestamp").is_sorted());
    }
}

#[test]
fn the_schemas_are_those_of_the_queries() {
    let described = ["timestamp Timestamp(ms)", "key Int64", "other_key Int64", "revenue Int64"];
    assert_eq!(laws::described(&revenue_schema()), described);
    let described = ["timestamp Timestamp(ms)", "key Int64", "value Int64"];
    assert_eq!(laws::described(&logs_schema()), described);
}

#[test]
fn plain_sources_send_the_same_each_second() {
    let ipq = Ipq::new(IpqOptions::default()).unwrap();
    for (source, second) in [(0, 0), (7, 1_000_000), (3, 77)] {
        assert_eq!(ipq.volume(source, second).unwrap(), 1_000);
        assert_eq!(ipq.rows_before(source, second).unwrap(), second * 1_000);
    }
    let times = whole(&revenue(IpqOptions::default(), 5), "timestamp");
    assert!(times.into_iter().zip(0..).all(|(time, row)| time == row));
    assert_eq!(ipq.rows_before(0, u64::MAX).unwrap(), u64::MAX);
}

#[test]
fn volumes_follow_paretos_law() {
    let ipq = Ipq::new(IpqOptions { rate: 10_000, ..variable() }).unwrap();
    let mut volumes = Vec::new();
    for source in 0..8 {
        for period in 0..40 {
            let of_period: Vec<f64> = (0..PERIOD_S)
                .map(|second| ipq.volume(source, period * PERIOD_S + second).unwrap() as f64)
                .collect();
            assert_eq!(of_period.iter().sum::<f64>(), (10_000 * PERIOD_S) as f64);
            volumes.extend(of_period);
        }
    }
    // Pareto's law of shape 1.5 has a mean of three times the minimum. One second in `x^1.5` has more than x times the
    // minimum.
    let least = quantile(&volumes, 0.5) / 2f64.powf(1.0 / 1.5);
    close("the least", least, 10_000.0 / 3.0, 500.0);
    for above in [2.0, 5.0, 20.0, 50.0] {
        let expected = f64::powf(above, -1.5);
        close(&format!("{above} times"), share(&volumes, |&n| n > above * least), expected, 0.25 * expected);
    }
    let (first, second) = (ipq.volume(0, 5).unwrap(), ipq.volume(1, 5).unwrap());
    assert_ne!(first, second, "two sources in the same second");
    assert_eq!(ipq.rows_before(0, u64::MAX).unwrap(), u64::MAX);
    assert!(ipq.volume(0, u64::MAX).unwrap() > 0);
}

#[test]
fn skew_sets_the_first_source_apart_from_the_last() {
    for (sources, rate) in [(2, 1_000), (8, 10_000), (100, 50_000)] {
        let ipq = Ipq::new(IpqOptions { sources, rate, skew: 200, ..IpqOptions::default() }).unwrap();
        let rates: Vec<u64> = (0..sources).map(|source| ipq.volume(source, 0).unwrap()).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b));
        close("skew", rates[0] as f64 / *rates.last().unwrap() as f64, 200.0, 25.0);
        let total = rates.iter().sum::<u64>() as f64;
        close("rows of all sources", total / (f64::from(sources) * rate as f64), 1.0, 0.001);
    }
    let alone = Ipq::new(IpqOptions { sources: 1, skew: 200, ..IpqOptions::default() }).unwrap();
    assert_eq!(alone.volume(0, 0).unwrap(), 1_000);
    let even = Ipq::new(IpqOptions { sources: 7, rate: 999, ..IpqOptions::default() }).unwrap();
    assert!((0..7).all(|source| even.volume(source, 3).unwrap() == 999));
    // However little is left for it, a source sends something.
    let poor =
        Ipq::new(IpqOptions { sources: 100, rate: 1, skew: 1_000_000, ..IpqOptions::default() }).unwrap();
    assert_eq!(poor.volume(99, 0).unwrap(), 1);
}

#[test]
fn columns_have_their_distributions() {
    let batch = revenue(IpqOptions::default(), 0);
    for (name, n) in [("key", 1_000), ("other_key", OTHER_KEYS as usize)] {
        let expected = ROWS as f64 / n as f64;
        for count in tally(whole(&batch, name), n) {
            close(name, count as f64, expected, 6.0 * expected.sqrt());
        }
    }
    let cents: Vec<f64> = whole(&batch, "revenue").into_iter().map(|cents| cents as f64).collect();
    close("median revenue", quantile(&cents, 0.5), 40.0, 1.0);
    close("upper sixth of the revenue", quantile(&cents, 0.8413), 113.0, 5.0);
    assert!(cents.iter().all(|cents| (1.0..1_500.0).contains(cents)));

    let logs = Ipq::new(IpqOptions::default()).unwrap().logs(0).unwrap().generate(0..ROWS).unwrap();
    for (name, n) in [("key", 1_000), ("value", 1_000)] {
        assert!(tally(whole(&logs, name), n).iter().all(|count| (110..300).contains(count)), "{name}");
    }
    assert_ne!(whole(&logs, "key"), whole(&batch, "key"));

    let skewed = revenue(IpqOptions { zipf: 1.0, ..IpqOptions::default() }, 0);
    close("key 0", share(&whole(&skewed, "key"), |&key| key == 0), 0.1336, 0.005);
}

#[test]
fn the_join_has_something_to_find() {
    // Within a second, most keys of the logs are also among the revenue.
    let ipq = Ipq::new(variable()).unwrap();
    let (revenue, logs) = (ipq.revenue(2).unwrap(), ipq.logs(2).unwrap());
    let rows = 0..ipq.volume(2, 0).unwrap().max(300);
    let keys = whole(&revenue.generate(rows.clone()).unwrap(), "key");
    let found = share(&whole(&logs.generate(rows).unwrap(), "key"), |key| keys.contains(key));
    assert!(found > 0.2, "{found}");
}

#[test]
fn sources_and_seeds_are_unrelated() {
    let batch = revenue(variable(), 0);
    let columns = ["timestamp", "key", "other_key", "revenue"];
    only_these_differ(&batch, &revenue(variable(), 1), &columns);
    only_these_differ(&batch, &revenue(IpqOptions { seed: 8, ..variable() }, 0), &columns);
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = revenue(IpqOptions::default(), 1);
    let others = [
        IpqOptions { rate: 12, ..IpqOptions::default() },
        IpqOptions { skew: 200, ..IpqOptions::default() },
        IpqOptions { sources: 9, skew: 200, ..IpqOptions::default() },
        IpqOptions { out_of_order_ms: 9, ..IpqOptions::default() },
        IpqOptions { late_every: 9, ..IpqOptions::default() },
        variable(),
    ];
    for other in others {
        only_these_differ(&plain, &revenue(other, 1), &["timestamp"]);
    }
    only_these_differ(&plain, &revenue(IpqOptions { keys: 50, ..IpqOptions::default() }, 1), &["key"]);
    only_these_differ(&plain, &revenue(IpqOptions { zipf: 1.0, ..IpqOptions::default() }, 1), &["key"]);
    only_these_differ(&plain, &revenue(IpqOptions { sources: 9, ..IpqOptions::default() }, 1), &[]);
}

#[test]
fn times_are_moved_as_asked() {
    let plain = whole(&revenue(variable(), 0), "timestamp");
    let moved =
        whole(&revenue(IpqOptions { out_of_order_ms: 50, late_every: 100, ..variable() }, 0), "timestamp");
    let by: Vec<i64> = plain.iter().zip(&moved).map(|(plain, moved)| moved - plain).collect();
    assert!(by.iter().all(|by| (-60_050..=50).contains(by)) && by.contains(&50) && by.contains(&-50));
    close("late", share(&by, |&by| by < -50), 0.01, 0.002);
}

#[test]
fn tenants_are_the_ones_of_the_benchmark() {
    let jobs = Tenants { bulk: 20, bulk_skew: 200, ..Tenants::default() }.jobs().unwrap();
    assert_eq!(jobs.len(), 24);
    let (urgent, bulk) = jobs.split_at(4);
    for job in urgent {
        assert_eq!((job.urgency, job.window_ms, job.target_ms), (Urgency::LatencySensitive, 1_000, 800));
        let ipq = Ipq::new(job.sources.clone()).unwrap();
        assert_eq!((ipq.volume(0, 5).unwrap(), job.message_rows), (1_000, 1_000));
    }
    for job in bulk {
        assert_eq!((job.urgency, job.window_ms), (Urgency::Bulk, 10_000));
        assert!(job.target_ms > 100 * job.window_ms && job.sources.is_variable && job.sources.skew == 200);
        assert!(job.sources.rate > 1_000);
    }
    let queries: Vec<TenantQuery> = urgent.iter().map(|job| job.query).collect();
    assert_eq!(queries, [TenantQuery::Ipq1, TenantQuery::Ipq2, TenantQuery::Ipq3, TenantQuery::Ipq4]);
    let mut seeds: Vec<u64> = jobs.iter().map(|job| job.sources.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 24);
    // More bulk jobs change nothing about the earlier ones.
    assert_eq!(jobs[..10], Tenants { bulk: 6, bulk_skew: 200, ..Tenants::default() }.jobs().unwrap());
    assert!(Tenants { latency_sensitive: 0, bulk: 0, ..Tenants::default() }.jobs().unwrap().is_empty());
}

#[test]
fn bad_options_and_ranges_are_refused_by_name() {
    let message = |options: IpqOptions| Ipq::new(options).unwrap_err().to_string();
    let plain = IpqOptions::default;
    assert_eq!(message(IpqOptions { rate: 0, ..plain() }), "rate must be between 1 and 1000000000, got 0");
    assert_eq!(message(IpqOptions { sources: 0, ..plain() }), "sources must be between 1 and 10000, got 0");
    assert_eq!(message(IpqOptions { skew: 0, ..plain() }), "skew must be between 1 and 1000000, got 0");
    assert_eq!(message(IpqOptions { keys: 0, ..plain() }), "keys must be between 1 and 65535, got 0");
    assert_eq!(
        message(IpqOptions { zipf: -1.0, ..plain() }),
        "zipf must be a finite exponent of at least 0 (0 is uniform), got -1"
    );
    assert_eq!(
        message(IpqOptions { out_of_order_ms: 31_536_000_001, ..plain() }),
        "out_of_order_ms must be between 0 and 31536000000, got 31536000001"
    );
    let ipq = Ipq::new(plain()).unwrap();
    let refused = "source must be between 0 and 7, got 8";
    assert_eq!(ipq.revenue(8).unwrap_err().to_string(), refused);
    assert_eq!(ipq.logs(8).unwrap_err().to_string(), refused);
    assert_eq!(ipq.volume(8, 0).unwrap_err().to_string(), refused);
    assert_eq!(ipq.rows_before(8, 0).unwrap_err().to_string(), refused);
    let tenants = |tenants: Tenants| tenants.jobs().unwrap_err().to_string();
    let mix = Tenants::default;
    assert_eq!(tenants(Tenants { bulk: 1_001, ..mix() }), "bulk must be between 0 and 1000, got 1001");
    assert_eq!(
        tenants(Tenants { latency_sensitive: 1_001, ..mix() }),
        "latency_sensitive must be between 0 and 1000, got 1001"
    );
    assert_eq!(tenants(Tenants { sources: 0, ..mix() }), "sources must be between 1 and 10000, got 0");
    assert_eq!(
        tenants(Tenants { bulk_rate: 0, ..mix() }),
        "bulk_rate must be between 1 and 1000000000, got 0"
    );
    assert_eq!(tenants(Tenants { bulk_skew: 0, ..mix() }), "bulk_skew must be between 1 and 1000000, got 0");

    for is_variable in [false, true] {
        let slow = Ipq::new(IpqOptions { rate: 1, is_variable, ..plain() }).unwrap();
        laws::times_that_do_not_fit_are_refused(&slow.revenue(0).unwrap());
        laws::times_that_do_not_fit_are_refused(&slow.logs(0).unwrap());
    }
}

#[test]
fn the_far_end_of_the_data_set_can_be_reached() {
    let options = IpqOptions {
        sources: MAX_SOURCES,
        rate: 1_000_000_000,
        skew: 1_000_000,
        is_variable: true,
        out_of_order_ms: 50,
        late_every: 2,
        ..IpqOptions::default()
    };
    let ipq = Ipq::new(options).unwrap();
    for source in [0, MAX_SOURCES - 1] {
        let rows = u64::MAX - 10..u64::MAX;
        assert_eq!(ipq.revenue(source).unwrap().generate(rows).unwrap().num_rows(), 10);
    }
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = IpqOptions {
        seed: 42,
        sources: 20,
        rate: 3_000,
        is_variable: true,
        skew: 200,
        keys: 300,
        zipf: 0.7,
        out_of_order_ms: 50,
        late_every: 20,
    };
    let sums = |options: IpqOptions, source: u16, start: u64| {
        let ipq = Ipq::new(options).unwrap();
        let rows = start..start + 1_000;
        let revenue = ipq.revenue(source).unwrap().generate(rows.clone()).unwrap();
        [checksum(&revenue), checksum(&ipq.logs(source).unwrap().generate(rows).unwrap())]
    };
    assert_eq!(sums(IpqOptions::default(), 0, 0), [0xF597_BCC5_A7EF_8BF9, 0xF51C_E0C5_5247_8856]);
    assert_eq!(sums(variable(), 3, 1 << 40), [0x3542_10AA_B8C6_8077, 0x5165_0E1C_39EA_C77A]);
    assert_eq!(sums(everything.clone(), 0, 0), [0x6A42_C431_D55D_CA3A, 0xEE0A_F37F_6D40_F6C5]);
    let ipq = Ipq::new(everything).unwrap();
    let volumes: Vec<u64> = (0..6).map(|second| ipq.volume(1, second).unwrap()).collect();
    assert_eq!(volumes, [3731, 2720, 19270, 1167, 1833, 1057]);
}
