//! What a scheduling decision costs: the scheduling queue beside a heap under a lock, in one run.
//!
//! - `cycles`: workers that take the best task and hand it back, as ready (`ready`), or as idle with a wake-up
//!   from elsewhere right afterwards (`wake`). The tasks do nothing.
//! - `calls`: from the wake-up of a task to its run by a worker that was asleep, and back.
//! - `publish`: what an epoch costs, with half of the tasks ready and a third of them spare, while nobody works and
//!   while one worker does.
//!
//! Cycles by `PENSTOCK_BENCH_CYCLES` (500,000 in each run), rounds by `PENSTOCK_BENCH_ROUNDS`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use penstock_benches::report::{Comparison, DEFAULT_ROUNDS};
use penstock_benches::settings::number;
use penstock_queue::gate::Gate;
use penstock_queue::schedule::{Level, ScheduleQueue, TaskId};

const TASKS: [usize; 4] = [10, 100, 1_000, 10_000];
const WORKERS: [usize; 3] = [1, 2, 4];
/// As many as an engine allows for, so that the bitmaps have all their levels.
const CAPACITY: usize = 1 << 18;

/// A queue with all its tasks ready.
fn queue(tasks: usize, workers: usize) -> ScheduleQueue<u64> {
    let queue = ScheduleQueue::new(CAPACITY, workers);
    for _ in 0..tasks {
        let task = queue.add(|_| 0).expect("the queue has room");
        queue.wake(task, || Level::FIRST);
    }
    queue
}

/// The yardstick: the same order from a heap that everybody locks. It knows neither states nor wake-ups.
fn heap(tasks: usize) -> Mutex<BinaryHeap<Reverse<u32>>> {
    Mutex::new((0..tasks as u32).map(Reverse).collect())
}

/// Has each of `workers` threads do its share of `cycles`.
fn share(workers: usize, cycles: u64, cycle: impl Fn() + Sync) {
    let each = cycles / workers as u64;
    thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| (0..each).for_each(|_| cycle()));
        }
        (0..each).for_each(|_| cycle());
    });
}

fn print_cycles(cycles: u64, rounds: usize) {
    println!("\nCycles: take the best task, hand it back; {cycles} cycles, {rounds} rounds");
    println!(
        "{:>6}  {:>7}  {:>12}  {:>12}  {:>12}  {:>14}",
        "tasks", "workers", "ready", "wake", "heap", "ready : heap"
    );
    for tasks in TASKS {
        for workers in WORKERS {
            let (queue, heap) = (&queue(tasks, workers), &heap(tasks));
            let take = || loop {
                // Another worker may have the last bit between its fingers.
                if let Some(mut task) = queue.pop() {
                    *task += 1;
                    break task;
                }
            };
            let report = Comparison::new(cycles)
                .rounds(rounds)
                .contender("heap", || {
                    share(workers, cycles, || {
                        let best = heap.lock().expect("nobody panics").pop();
                        heap.lock().expect("nobody panics").extend(best);
                    });
                })
                .contender("ready", || {
                    share(workers, cycles, || take().ready(Level::FIRST, |_| Level::FIRST))
                })
                .contender("wake", || {
                    share(workers, cycles, || {
                        let task = take();
                        let id = task.id();
                        task.idle(|_| Level::FIRST);
                        queue.wake(id, || Level::FIRST);
                    });
                })
                .run();
            // Of one worker: with twice as many, each cycle may take twice as long.
            let ns = |line: usize| format!("{:.0} ns", 1e9 / report.lines[line].median * workers as f64);
            let ratio = report.lines[1].ratio;
            println!("{tasks:>6}  {workers:>7}  {:>12}  {:>12}  {:>12}  {ratio:>14.1}", ns(1), ns(2), ns(0));
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn print_calls(rounds: usize) {
    const CALLS: u64 = 2_000;
    let queue = &ScheduleQueue::new(CAPACITY, 1);
    let answered = &Arc::new((AtomicU64::new(0), Gate::new()));
    let task = queue.add(|_| Arc::clone(answered)).expect("the queue has room");
    let times = thread::scope(|scope| {
        scope.spawn(move || {
            while !queue.is_closed() {
                match queue.pop() {
                    Some(task) => {
                        task.0.fetch_add(1, Ordering::Relaxed);
                        task.1.signal();
                        task.idle(|_| Level::FIRST);
                    }
                    None => queue.park(0),
                }
            }
        });
        let times = (0..CALLS * rounds as u64).map(|_| {
            while queue.parked() == 0 {
                thread::yield_now();
            }
            let begin = Instant::now();
            queue.wake(task, || Level::FIRST);
            answered.1.wait(Duration::MAX);
            begin.elapsed()
        });
        let times = times.collect();
        queue.close();
        times
    });
    println!(
        "\nCalls: {:.1} µs from a wake-up to the run by a worker that slept, and back",
        median(times).as_secs_f64() * 1e6
    );
}

/// The tasks in a new order each time, a third of them spare.
fn order(tasks: usize, epoch: usize) -> Vec<(TaskId, Level)> {
    let level = |task: usize| if task.is_multiple_of(3) { Level::LAST } else { Level::FIRST };
    // The step has no divisor in common with any of the sizes, so this is a permutation.
    (0..tasks).map(|rank| (rank * 7 + epoch) % tasks).map(|task| (task as TaskId, level(task))).collect()
}

fn print_publish(rounds: usize) {
    const EPOCHS: usize = 20;
    println!("\nPublish: half of the tasks ready, a third of them spare");
    println!("{:>6}  {:>12}  {:>12}  {:>20}", "tasks", "alone", "for each", "while a worker works");
    for tasks in TASKS {
        let queue = &queue(tasks, 1);
        for _ in 0..tasks / 2 {
            queue.pop().expect("all are ready").idle(|_| Level::FIRST);
        }
        let publish = |epoch: usize| {
            let order = order(tasks, epoch);
            let begin = Instant::now();
            queue.publish(&order);
            begin.elapsed()
        };
        let alone = median((0..EPOCHS * rounds).map(publish).collect());
        let stop = &AtomicBool::new(false);
        let beside = thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    queue.pop().into_iter().for_each(|task| task.ready(Level::FIRST, |_| Level::FIRST));
                }
            });
            let times = (0..EPOCHS * rounds).map(publish).collect();
            stop.store(true, Ordering::Relaxed);
            median(times)
        });
        let us = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
        let each = format!("{:.1} ns", alone.as_secs_f64() * 1e9 / tasks as f64);
        println!("{tasks:>6}  {:>12}  {each:>12}  {:>20}", us(alone), us(beside));
    }
}

/// Prints the parts that are wanted.
pub fn print(wanted: impl Fn(&str) -> bool) {
    let cycles = number("PENSTOCK_BENCH_CYCLES", 500_000);
    let rounds = number("PENSTOCK_BENCH_ROUNDS", DEFAULT_ROUNDS as u64) as usize;
    if wanted("cycles") {
        print_cycles(cycles, rounds);
    }
    if wanted("calls") {
        print_calls(rounds);
    }
    if wanted("publish") {
        print_publish(rounds);
    }
}
