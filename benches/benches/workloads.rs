//! How fast the generators make rows. They feed benchmarks, so they must never be what a benchmark waits for.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use penstock_workloads::Rows;
use penstock_workloads::nexmark::{self, Nexmark, Stream, rows_of};
use penstock_workloads::ysb::{Options, Ysb};

/// Rows of a batch: one that the allocator hands out again and again, and one as large as the default, whose
/// memory comes fresh from the system each time. The first is the cost of the rows, the second is mostly page
/// faults.
const BATCH_ROWS: [u64; 2] = [1_024, 65_536];

fn ysb(c: &mut Criterion) {
    let cases = [
        ("plain", Options::default()),
        ("out_of_order", Options { out_of_order_ms: 50, late_every: 100_000, ..Options::default() }),
        ("zipf", Options { zipf: 1.0, ..Options::default() }),
    ];
    let mut group = c.benchmark_group("ysb_generate");
    for (name, options) in cases {
        let ysb = Ysb::new(options).expect("the options of the bench are within bounds");
        for rows in BATCH_ROWS {
            group.throughput(Throughput::Elements(rows));
            let mut start = 0;
            group.bench_function(BenchmarkId::new(name, rows), |bencher| {
                bencher.iter(|| {
                    start += rows;
                    ysb.generate(start..start + rows)
                });
            });
        }
    }
    group.finish();
}

/// The rows that so many events are, of all three streams, with all columns: rows per second are events per
/// second.
fn nexmark(c: &mut Criterion) {
    use nexmark::Options;
    let cases = [
        ("plain", Options::default()),
        ("out_of_order", Options { out_of_order_ms: 50, late_every: 100_000, ..Options::default() }),
        ("no_extra", Options { person_bytes: 0, auction_bytes: 0, bid_bytes: 0, ..Options::default() }),
    ];
    let mut group = c.benchmark_group("nexmark_generate");
    for (name, options) in cases {
        let nexmark = Nexmark::new(options).expect("the options of the bench are within bounds");
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

criterion_group!(benches, ysb, nexmark);
criterion_main!(benches);
