//! How fast the generators make rows. They feed benchmarks, so they must never be what a benchmark waits for:
//! at least 20 million rows of YSB and 2 million events of NEXMark per second and core.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use penstock_workloads::nexmark::{self, Nexmark, Stream, rows_of};
use penstock_workloads::{Rows, cm, ipq, lrb, me, nyt, sg, ysb};

/// Rows of a batch: one that the allocator hands out again and again, and one as large as the default, whose
/// memory comes fresh from the system each time. The first is the cost of the rows, the second is mostly page
/// faults.
const BATCH_ROWS: [u64; 2] = [1_024, 65_536];

const GOOD_OPTIONS: &str = "the options of the bench are within bounds";

/// Batch after batch of a table, from its start to row `end` and then from the start again.
fn table(c: &mut Criterion, group: &str, name: &str, rows: &dyn Rows, end: u64) {
    let mut group = c.benchmark_group(group);
    for batch_rows in BATCH_ROWS {
        group.throughput(Throughput::Elements(batch_rows));
        let mut start = 0;
        group.bench_function(BenchmarkId::new(name, batch_rows), |bencher| {
            bencher.iter(|| {
                start = if start + 2 * batch_rows > end { 0 } else { start + batch_rows };
                rows.generate(start..start + batch_rows)
            });
        });
    }
    group.finish();
}

fn ysb(c: &mut Criterion) {
    let usual = ysb::Options::default;
    let cases = [
        ("plain", usual()),
        ("out_of_order", ysb::Options { out_of_order_ms: 50, late_every: 100_000, ..usual() }),
        ("zipf", ysb::Options { zipf: 1.0, ..usual() }),
        ("steps", ysb::Options { step_every_s: 1, ..usual() }),
    ];
    for (name, options) in cases {
        let numbers = ysb::Ysb::new(options.clone()).expect(GOOD_OPTIONS);
        table(c, "ysb_generate", name, &numbers, u64::MAX);
        let strings = ysb::YsbStrings::new(options).expect(GOOD_OPTIONS);
        table(c, "ysb_strings_generate", name, &strings, u64::MAX);
    }
}

/// The rows that so many events are, of all three streams, with all columns: rows per second are events per
/// second.
fn nexmark(c: &mut Criterion) {
    use nexmark::Options;
    let cases = [
        ("plain", Options::default()),
        ("out_of_order", Options { out_of_order_ms: 50, late_every: 100_000, ..Options::default() }),
        ("steps", Options { step_every_s: 1, ..Options::default() }),
        ("no_extra", Options { person_bytes: 0, auction_bytes: 0, bid_bytes: 0, ..Options::default() }),
    ];
    let mut group = c.benchmark_group("nexmark_generate");
    for (name, options) in cases {
        let nexmark = Nexmark::new(options).expect(GOOD_OPTIONS);
        let (persons, auctions, bids) = (nexmark.persons(), nexmark.auctions(), nexmark.bids());
        for events in BATCH_ROWS {
            group.throughput(Throughput::Elements(events));
            let mut start = 0;
            group.bench_function(BenchmarkId::new(name, events), |bencher| {
                bencher.iter(|| {
                    start += events;
                    let rows = |stream| rows_of(stream, start)..rows_of(stream, start + events);
                    (
                        persons.generate(rows(Stream::Person)),
                        auctions.generate(rows(Stream::Auction)),
                        bids.generate(rows(Stream::Bid)),
                    )
                });
            });
        }
    }
    group.finish();
}

/// All other tables, as they are when nothing is said. LRB ends, and begins again.
fn others(c: &mut Criterion) {
    let variable = ipq::Options { is_variable: true, ..ipq::Options::default() };
    let lrb = lrb::Lrb::new(lrb::Options::default()).expect(GOOD_OPTIONS);
    let lrb_rows = lrb.rows();
    let ipq = ipq::Ipq::new(variable).expect(GOOD_OPTIONS);
    let tables: [(&str, Arc<dyn Rows>, u64); 7] = [
        ("lrb", Arc::new(lrb), lrb_rows),
        ("nyt", Arc::new(nyt::Nyt::new(nyt::Options::default()).expect(GOOD_OPTIONS)), u64::MAX),
        ("cm", Arc::new(cm::Cm::new(cm::Options::default()).expect(GOOD_OPTIONS)), u64::MAX),
        ("sg", Arc::new(sg::Sg::new(sg::Options::default()).expect(GOOD_OPTIONS)), u64::MAX),
        ("me", Arc::new(me::Me::new(me::Options::default()).expect(GOOD_OPTIONS)), u64::MAX),
        ("ipq_revenue", Arc::new(ipq.revenue(0).expect(GOOD_OPTIONS)), u64::MAX),
        ("ipq_logs", Arc::new(ipq.logs(0).expect(GOOD_OPTIONS)), u64::MAX),
    ];
    for (name, rows, end) in tables {
        table(c, "workloads_generate", name, &rows, end);
    }
}

criterion_group!(benches, ysb, nexmark, others);
criterion_main!(benches);
