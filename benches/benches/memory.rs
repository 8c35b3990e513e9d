//! Rows between two tasks: the block log beside a channel, a row queue and `memcpy`, in one run.
//!
//! `cargo bench -p penstock-benches --bench memory`, with the parts that are wanted behind `--`: `threads`, `turns`,
//! `steady`, `work`; all of them by default. `caps` and `sweep` run only when they are named.
//!
//! - `threads`: from one thread to another. A log is to pass 10 times the rows of a channel, and 60 % of those that
//!   one thread copies without handing them to anybody.
//! - `turns`: the same on one thread, writer and reader in turns.
//! - `steady`: a log that has been in use takes no memory and causes no page faults, however many rows pass. Ends
//!   the process with an error when it does.
//! - `work`: what a scheduler pays for looking at a thousand logs. At most 5 µs for all.
//!
//! - `caps`: how far a writer may run ahead of its reader, from thread to thread.
//! - `sweep`: rows per block, blocks per chunk and bytes per row against each other, in at most 3 minutes. Goes to the
//!   file that `PENSTOCK_BENCH_SWEEP` names (`target/memory-sweep.csv`); `scripts/plot_sweep.py` draws it.
//!
//! Rows by `PENSTOCK_BENCH_ROWS` (10 million; `steady` goes on to five times as many), rounds by `PENSTOCK_BENCH_ROUNDS`.

use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs, thread};

use criterion::Criterion;
use crossbeam_channel::{Receiver, Sender, bounded};
use penstock_benches::copying::Copying;
use penstock_benches::log::{Link, Source};
use penstock_benches::report::{Comparison, DEFAULT_ROUNDS, Report};
use penstock_benches::settings::{number, path};
use penstock_benches::sweep::Sweep;
use penstock_memory::coordinator::CoordinatorOptions;
use penstock_memory::shape::{ShapeOptions, Shapes};
use penstock_memory::{
    ColumnKind, Coordinator, Layout, LogOptions, LogReader, LogWriter, MemoryKind, Physical,
};
use penstock_queue::log::LogGauge;
use penstock_queue::wake::NoWake;
use penstock_types::ByteSize;

/// Columns of a row of 64 bytes.
const COLUMNS: usize = 8;
const CHANNEL_ROWS: usize = 1_024;
/// More than the caches of any machine that this runs on.
const BEYOND_CACHES_BYTES: usize = 512 << 20;
const LOGS: usize = 1_000;
const CAPS_MIB: [usize; 6] = [1, 2, 4, 8, 16, 64];

type Row = [i64; COLUMNS];

fn layout() -> Layout {
    Layout::new(vec![ColumnKind { physical: Physical::I64, nullable: false }; COLUMNS])
}

fn coordinator() -> Coordinator {
    Coordinator::new(CoordinatorOptions::default()).expect("a thread can be started")
}

/// A run as long as a block of the log, which is what an operator hands on when nothing holds it up.
fn source(coordinator: &Coordinator) -> Source {
    let l2_cache_bytes = coordinator.options().platform.l2_cache_bytes();
    Source::new(COLUMNS, Shapes::new(layout(), ShapeOptions::default(), l2_cache_bytes).block_rows())
}

fn link(kind: MemoryKind, coordinator: &Coordinator) -> Link {
    Link::open(kind, COLUMNS, ShapeOptions::default(), coordinator).expect("the budget has room for a log")
}

/// Whole rows through a channel. The sender has them ready: it does not gather them from columns.
struct Channel {
    rows: Vec<Row>,
    sender: Sender<Row>,
    receiver: Receiver<Row>,
}

impl Channel {
    fn new(source: &Source) -> Self {
        let row = |row: usize| std::array::from_fn(|column| source.columns()[column][row]);
        let (sender, receiver) = bounded(CHANNEL_ROWS);
        Self { rows: (0..source.rows()).map(row).collect(), sender, receiver }
    }

    fn pass_between_threads(&self, rows: u64) -> i64 {
        thread::scope(|scope| {
            let read = scope.spawn(|| {
                let receive = |_| self.receiver.recv().expect("the sender is alive").iter().sum::<i64>();
                (0..rows).map(receive).sum::<i64>()
            });
            for row in self.rows.iter().cycle().take(rows as usize) {
                self.sender.send(*row).expect("the receiver is alive");
            }
            read.join().expect("the receiver does not panic")
        })
    }

    fn pass_in_turns(&self, rows: u64) -> i64 {
        let (mut left, mut sum) = (rows as usize, 0);
        while left > 0 {
            let run = left.min(self.rows.len()).min(CHANNEL_ROWS);
            for row in &self.rows[..run] {
                self.sender.try_send(*row).expect("the channel has room for a run");
            }
            sum += self.receiver.try_iter().flatten().sum::<i64>();
            left -= run;
        }
        sum
    }
}

/// The log first, so that the ratio of each other one is its speed over that of the log.
fn compare(rows: u64, rounds: usize, threads: bool) -> Report {
    let coordinator = coordinator();
    let source = &source(&coordinator);
    let pass = |link: &mut Link| {
        if threads { link.pass_between_threads(source, rows) } else { link.pass_in_turns(source, rows) }
    };
    let mut log = link(MemoryKind::Blocks, &coordinator);
    let passed = pass(&mut log);
    // What is copied is as long as the runs of the log, and goes through as much memory.
    let run_rows = passed.rows.div_ceil(passed.runs.max(1)) as usize;
    let log_bytes = coordinator.snapshot().used_bytes as usize;
    let mut one_column = link(MemoryKind::Blocks, &coordinator).reading_columns(1);
    let mut queue = link(MemoryKind::Queue, &coordinator);
    let channel = Channel::new(source);
    let copying = |bytes| Copying::new(source, bytes, run_rows);
    let [mut within, mut reading, mut beyond] = [log_bytes, log_bytes, BEYOND_CACHES_BYTES].map(copying);
    let size = |bytes: usize| ByteSize(bytes as u64);
    println!("the log holds {} and its runs are {run_rows} rows long", size(log_bytes));
    Comparison::new(rows)
        .rounds(rounds)
        .contender("log", || pass(&mut log))
        .contender("log, one column read", || pass(&mut one_column))
        .contender("row queue", || pass(&mut queue))
        .contender("crossbeam channel", || {
            if threads { channel.pass_between_threads(rows) } else { channel.pass_in_turns(rows) }
        })
        .contender(format!("memcpy, {}", size(within.bytes())), || within.copy(source, rows))
        .contender(format!("memcpy and read, {}", size(reading.bytes())), || {
            reading.copy_and_read(source, rows)
        })
        .contender(format!("memcpy, {}", size(beyond.bytes())), || beyond.copy(source, rows))
        .run()
}

fn print_comparison(title: &str, rows: u64, rounds: usize, threads: bool) {
    println!("\n{title}: {rows} rows of 64 bytes, all columns read, {rounds} rounds");
    let report = compare(rows, rounds, threads);
    print!("{report}");
    // By the contender's number in `compare`; the median of inverse ratios is the inverse of their median.
    let times = |line: usize| 1.0 / report.lines[line].ratio;
    println!(
        "the log is {:.1} x crossbeam, {:.1} x the row queue, {:.0} % of memcpy ({:.0} % beyond the caches)",
        times(3),
        times(2),
        times(4) * 100.0,
        times(6) * 100.0
    );
}

/// The same log with different caps. Its writer is the faster side, so it runs as far ahead as it may.
fn compare_caps(rows: u64, rounds: usize) -> Report {
    let open = |mib: usize| {
        let options = CoordinatorOptions { log_cap_bytes: mib << 20, ..CoordinatorOptions::default() };
        let coordinator = Coordinator::new(options).expect("a thread can be started");
        (mib, link(MemoryKind::Blocks, &coordinator))
    };
    let source = &source(&coordinator());
    let mut links: Vec<(usize, Link)> = CAPS_MIB.into_iter().map(open).collect();
    let mut comparison = Comparison::new(rows).rounds(rounds);
    for (mib, link) in &mut links {
        comparison =
            comparison.contender(format!("{mib} MiB"), move || link.pass_between_threads(source, rows));
    }
    comparison.run()
}

/// Minor page faults of this process so far; `None` where the system does not say.
fn page_faults() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold anything; `minflt` is the eighth field behind it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

/// Passes few rows and then many through a log in use. Whether that took no memory.
fn is_steady(rows: u64, threads: bool) -> bool {
    let coordinator = coordinator();
    let source = source(&coordinator);
    let mut log = link(MemoryKind::Blocks, &coordinator);
    // As far as a log can grow: from here on it has all the memory that it will ever have.
    for _ in 0..2 {
        log.fall_behind(&source, u64::MAX);
    }
    let mut pass = |rows: u64| {
        let (before, faults) = (coordinator.snapshot(), page_faults());
        if threads {
            log.pass_between_threads(&source, rows)
        } else {
            log.pass_in_turns(&source, rows)
        };
        let (after, faults_after) = (coordinator.snapshot(), page_faults());
        let inline = after.inline_allocations - before.inline_allocations;
        let background = after.background_allocations - before.background_allocations;
        let faults = faults.zip(faults_after).map(|(before, after)| after - before);
        let recycles = after.recycles - before.recycles;
        let faults_text = faults.map_or("unknown".to_owned(), |faults| faults.to_string());
        println!("{rows:>11}  {inline:>6}  {background:>10}  {recycles:>8}  {faults_text:>11}");
        (inline, faults.unwrap_or(0))
    };
    println!(
        "{:>11}  {:>6}  {:>10}  {:>8}  {:>11}",
        "rows", "inline", "background", "recycles", "page faults"
    );
    let few = pass(rows);
    let many = pass(5 * rows);
    // A thread of its own costs the reader some faults each time, for its stack and the like; a log that took fresh
    // memory would cost one for each page of rows.
    let allowed = few.1 + rows / 10_000;
    few.0 == 0 && many.0 == 0 && many.1 <= allowed
}

fn print_steady(rows: u64) -> bool {
    let mut steady = true;
    for (threads, title) in [(true, "two threads"), (false, "one thread, in turns")] {
        println!("\nSteady state, {title}: memory that a log in use takes");
        let this = is_steady(rows, threads);
        println!("{}", if this { "steady" } else { "NOT STEADY: a log in use takes no memory" });
        steady &= this;
    }
    steady
}

/// A thousand logs with a reader and some rows each, and what tells how many.
fn logs(coordinator: &Coordinator) -> (Vec<LogWriter>, Vec<LogReader>, Vec<LogGauge>) {
    let open = || LogWriter::new(layout(), &LogOptions::default(), coordinator, Arc::new(NoWake));
    let mut writers: Vec<LogWriter> =
        (0..LOGS).map(|_| open().expect("the budget has room for a log")).collect();
    let readers: Vec<LogReader> = writers.iter_mut().map(|writer| writer.join(Arc::new(NoWake))).collect();
    let source = Source::new(COLUMNS, 100);
    for (number, writer) in writers.iter_mut().enumerate() {
        let rows = (number % source.rows()).min(writer.room());
        writer.append(&source.pieces(), 0, rows);
        writer.watermark(number as i64);
    }
    let gauges = readers.iter().map(LogReader::gauge).collect();
    (writers, readers, gauges)
}

fn measure_work() {
    let coordinator = coordinator();
    let (_writers, _readers, gauges) = logs(&coordinator);
    let all = |gauges: &[LogGauge]| {
        gauges
            .iter()
            .map(LogGauge::work)
            .fold((0, 0), |(rows, signals), work| (rows + work.rows, signals + work.signals))
    };
    assert!(all(&gauges).0 > 0, "there is work to be seen");
    println!();
    let mut criterion = Criterion::default();
    criterion.bench_function(&format!("work/{LOGS}_logs"), |bencher| bencher.iter(|| all(&gauges)));
    criterion.final_summary();
}

fn run_sweep() -> std::io::Result<()> {
    let file = path("PENSTOCK_BENCH_SWEEP", "target/memory-sweep.csv");
    let sweep = Sweep::run(|done, all| {
        if done % 32 == 0 {
            println!("{done} of {all}");
        }
    });
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&file, sweep.to_csv())?;
    println!("{}", file.display());
    Ok(())
}

fn main() -> ExitCode {
    let rows = number("PENSTOCK_BENCH_ROWS", 10_000_000);
    let rounds = number("PENSTOCK_BENCH_ROUNDS", DEFAULT_ROUNDS as u64) as usize;
    let named: Vec<String> = env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if wanted("threads") {
        print_comparison("From thread to thread", rows, rounds, true);
    }
    if wanted("turns") {
        print_comparison("In turns on one thread", rows, rounds, false);
    }
    if wanted("work") {
        measure_work();
    }
    if named.iter().any(|name| name == "caps") {
        println!("\nCaps of a log, from thread to thread: {rows} rows of 64 bytes, {rounds} rounds");
        print!("{}", compare_caps(rows, rounds));
    }
    if named.iter().any(|name| name == "sweep")
        && let Err(error) = run_sweep()
    {
        eprintln!("the sweep cannot be written: {error}");
        return ExitCode::FAILURE;
    }
    if wanted("steady") && !print_steady(rows) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
