//! How fast the generators make rows. They feed benchmarks, so they must never be what a benchmark waits for:
//! at least 20 million rows of YSB and 2 million events of NEXMark per second and core.

use std::sync::Arc;

use arrow_array::RecordBatch;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use penstock_workloads::nexmark::{self, Nexmark, NexmarkStream, rows_of};
use penstock_workloads::{Batches, Generator, cm, ipq, lrb, me, nyt, sg, ysb};

/// Rows of a batch: one that stays in the cache, and the default. Each batch is dropped before the next is made,
/// as a pipeline that keeps up would do.
const BATCH_ROWS: [u64; 2] = [1_024, 65_536];

/// Turns of persons, auctions and bids in a round: about as many events as the rows above.
const NEXMARK_EPOCHS: [u64; 2] = [20, 1_310];

/// As many rows as no bench comes to the end of.
const ENDLESS_ROWS: u64 = 1 << 50;

const GOOD_OPTIONS: &str = "the options of the bench are within bounds";

/// The batches of a table up to row `end`, and then from the start again.
struct Endless {
    rows: Arc<dyn Generator>,
    end: u64,
    batch_rows: u64,
    batches: Batches<Arc<dyn Generator>>,
}

impl Endless {
    fn new(rows: &Arc<dyn Generator>, end: u64, batch_rows: u64) -> Self {
        let end = end - end % batch_rows;
        let batches = rows.batches(0..end, batch_rows).expect("rows that there are");
        Self { rows: Arc::clone(rows), end, batch_rows, batches }
    }

    fn next(&mut self) -> RecordBatch {
        if let Some(batch) = self.batches.next() {
            return batch;
        }
        *self = Self::new(&self.rows, self.end, self.batch_rows);
        self.batches.next().expect("a batch or more")
    }
}

/// Batch after batch of a table.
fn table(c: &mut Criterion, group: &str, name: &str, rows: &Arc<dyn Generator>, end: u64) {
    let mut group = c.benchmark_group(group);
    for batch_rows in BATCH_ROWS {
        group.throughput(Throughput::Elements(batch_rows));
        let mut batches = Endless::new(rows, end, batch_rows);
        group.bench_function(BenchmarkId::new(name, batch_rows), |bencher| bencher.iter(|| batches.next()));
    }
    group.finish();
}

fn ysb(c: &mut Criterion) {
    let usual = ysb::YsbOptions::default;
    let cases = [
        ("plain", usual()),
        ("out_of_order", ysb::YsbOptions { out_of_order_ms: 50, late_every: 100_000, ..usual() }),
        ("zipf", ysb::YsbOptions { zipf: 1.0, ..usual() }),
        ("steps", ysb::YsbOptions { step_every_s: 1, ..usual() }),
    ];
    for (name, options) in cases {
        let numbers: Arc<dyn Generator> = Arc::new(ysb::Ysb::new(options.clone()).expect(GOOD_OPTIONS));
        table(c, "ysb_generate", name, &numbers, ENDLESS_ROWS);
        let strings: Arc<dyn Generator> = Arc::new(ysb::YsbStrings::new(options).expect(GOOD_OPTIONS));
        table(c, "ysb_strings_generate", name, &strings, ENDLESS_ROWS);
    }
}

/// The rows that so many events are, of all three streams, with all columns: rows per second are events per
/// second.
fn nexmark(c: &mut Criterion) {
    use nexmark::NexmarkOptions;
    let cases = [
        ("plain", NexmarkOptions::default()),
        (
            "out_of_order",
            NexmarkOptions { out_of_order_ms: 50, late_every: 100_000, ..NexmarkOptions::default() },
        ),
        ("steps", NexmarkOptions { step_every_s: 1, ..NexmarkOptions::default() }),
        (
            "no_extra",
            NexmarkOptions { person_bytes: 0, auction_bytes: 0, bid_bytes: 0, ..NexmarkOptions::default() },
        ),
    ];
    let mut group = c.benchmark_group("nexmark_generate");
    for (name, options) in cases {
        let nexmark = Nexmark::new(options).expect(GOOD_OPTIONS);
        let streams: [(NexmarkStream, Arc<dyn Generator>); 3] = [
            (NexmarkStream::Person, Arc::new(nexmark.persons())),
            (NexmarkStream::Auction, Arc::new(nexmark.auctions())),
            (NexmarkStream::Bid, Arc::new(nexmark.bids())),
        ];
        for epochs in NEXMARK_EPOCHS {
            let events = epochs * 50;
            group.throughput(Throughput::Elements(events));
            let mut batches = streams.each_ref().map(|(stream, rows)| {
                Endless::new(rows, rows_of(*stream, ENDLESS_ROWS), rows_of(*stream, events))
            });
            group.bench_function(BenchmarkId::new(name, events), |bencher| {
                bencher.iter(|| batches.each_mut().map(Endless::next));
            });
        }
    }
    group.finish();
}

/// All other tables, as they are when nothing is said. LRB ends, and begins again.
fn others(c: &mut Criterion) {
    let variable = ipq::IpqOptions { is_variable: true, ..ipq::IpqOptions::default() };
    let lrb = lrb::Lrb::new(lrb::LrbOptions::default()).expect(GOOD_OPTIONS);
    let lrb_rows = lrb.rows();
    let ipq = ipq::Ipq::new(variable).expect(GOOD_OPTIONS);
    let tables: [(&str, Arc<dyn Generator>, u64); 7] = [
        ("lrb", Arc::new(lrb), lrb_rows),
        ("nyt", Arc::new(nyt::Nyt::new(nyt::NytOptions::default()).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
        ("cm", Arc::new(cm::Cm::new(cm::CmOptions::default()).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
        ("sg", Arc::new(sg::Sg::new(sg::SgOptions::default()).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
        ("me", Arc::new(me::Me::new(me::MeOptions::default()).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
        ("ipq_revenue", Arc::new(ipq.revenue(0).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
        ("ipq_logs", Arc::new(ipq.logs(0).expect(GOOD_OPTIONS)), ENDLESS_ROWS),
    ];
    for (name, rows, end) in tables {
        table(c, "workloads_generate", name, &rows, end);
    }
}

criterion_group!(benches, ysb, nexmark, others);
