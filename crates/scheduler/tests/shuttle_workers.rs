//! Workers on queries with counters for streams, in random interleavings.
//!
//! Run with `scripts/shuttle.sh`. The queries are random: chains, fan-outs, diamonds and what lies between. An edge
//! between two tasks has room for few rows, so tasks wait for rows and for room; epochs rank the tasks anew, and a
//! second query comes while the first one runs, and gets the rows of tasks that have ended. A wake-up that is lost
//! shows as a deadlock.
//!
//! Schedules by `PENSTOCK_SHUTTLE_SCHEDULES` (10,000).
#![cfg(shuttle)]

use std::sync::OnceLock;
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_queue::schedule::{LEVELS, Level, ScheduleQueue, TaskId};
use penstock_queue::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Ordering};
use penstock_scheduler::worker::{Handed, Host, work};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

const NEVER: Duration = Duration::MAX;
/// More than both queries have tasks, and enough for all levels of the bitmaps.
const CAPACITY: usize = 20;

type Queue = ScheduleQueue<Task>;

/// Who is to be woken at one end of an edge.
enum End {
    Task(TaskId),
    /// A thread outside.
    Thread(Box<Gate>),
}

/// A stream: what was written and what was read of it, and room for a few rows in between.
struct Edge {
    room: u64,
    written: AtomicU64,
    read: AtomicU64,
    closed: AtomicBool,
    writer: OnceLock<End>,
    reader: OnceLock<End>,
}

impl Edge {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            room: thread_rng().gen_range(1..3),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            writer: OnceLock::new(),
            reader: OnceLock::new(),
        })
    }

    fn pending(&self) -> u64 {
        self.written.load(Ordering::Acquire) - self.read.load(Ordering::Relaxed)
    }

    fn room(&self) -> u64 {
        self.room - (self.written.load(Ordering::Relaxed) - self.read.load(Ordering::Acquire))
    }

    fn wake(queue: &Queue, end: &OnceLock<End>) {
        match end.get().expect("both ends are known before the first row") {
            End::Task(task) => {
                queue.wake(*task, random_level);
            }
            End::Thread(gate) => gate.signal(),
        }
    }

    fn write(&self, queue: &Queue, rows: u64) {
        self.written.fetch_add(rows, Ordering::Release);
        Self::wake(queue, &self.reader);
    }

    fn read(&self, queue: &Queue, rows: u64) {
        self.read.fetch_add(rows, Ordering::Release);
        Self::wake(queue, &self.writer);
    }

    fn close(&self, queue: &Queue) {
        self.closed.store(true, Ordering::Release);
        Self::wake(queue, &self.reader);
    }
}

/// Passes each row of each input on to all outputs.
struct Task {
    inputs: Vec<Arc<Edge>>,
    outputs: Vec<Arc<Edge>>,
    rows: u64,
    expected: u64,
    running: AtomicBool,
}

fn random_level() -> Level {
    // The first level often: nothing raises a task of that one.
    let number = if thread_rng().gen_bool(0.4) { 0 } else { thread_rng().gen_range(0..LEVELS as u8) };
    Level::new(number).expect("a number of a level")
}

struct Shared {
    queue: Queue,
    /// Tasks that have not ended, and queries that are not fed to the end.
    left: AtomicUsize,
}

impl Shared {
    fn leave(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.queue.close();
        }
    }
}

struct Worker<'a>(&'a Shared);

impl Host<Task> for Worker<'_> {
    fn run(&mut self, _: TaskId, task: &mut Task) -> Handed {
        let queue = &self.0.queue;
        assert!(!task.running.swap(true, Ordering::AcqRel), "two run one task");
        let mut left = thread_rng().gen_range(1..4);
        let mut handed = Handed::Idle;
        let mut ended = true;
        for input in &task.inputs {
            // Before the rows: what is pending afterwards is all that there will ever be.
            let closed = input.closed.load(Ordering::Acquire);
            let room = task.outputs.iter().map(|output| output.room()).min().unwrap_or(u64::MAX);
            let pending = input.pending();
            let rows = pending.min(room).min(left);
            if rows > 0 {
                input.read(queue, rows);
                task.outputs.iter().for_each(|output| output.write(queue, rows));
                task.rows += rows;
                left -= rows;
            }
            ended &= closed && rows == pending;
            if rows < pending && rows < room {
                // It could go on: its time is over.
                handed = Handed::Ready(random_level());
            }
        }
        if ended {
            task.outputs.iter().for_each(|output| output.close(queue));
            handed = Handed::Done;
        }
        task.running.store(false, Ordering::Release);
        handed
    }

    fn level(&self, _: &Task) -> Level {
        random_level()
    }

    fn retired(&mut self, task: Task) {
        assert_eq!(task.rows, task.expected);
        self.0.leave();
    }
}

/// A query of a random shape: for each task those behind it, by number.
fn random_shape() -> Vec<Vec<usize>> {
    match thread_rng().gen_range(0..4) {
        0 => vec![vec![1], vec![2], vec![]],
        1 => vec![vec![1, 2], vec![], vec![]],
        2 => vec![vec![1, 2], vec![3], vec![3], vec![]],
        _ => {
            let tasks = thread_rng().gen_range(1..6);
            // Each but the first has one in front of it, and maybe more.
            let mut behind = vec![Vec::new(); tasks];
            for task in 1..tasks {
                let front = thread_rng().gen_range(0..task);
                for (other, behind) in behind.iter_mut().enumerate().take(task) {
                    if other == front || thread_rng().gen_bool(0.2) {
                        behind.push(task);
                    }
                }
            }
            behind
        }
    }
}

/// Makes a query, feeds it with rows and closes its input.
fn submit(shared: &Shared) {
    let queue = &shared.queue;
    let shape = random_shape();
    let rows = thread_rng().gen_range(1..6);
    let feed = Edge::new();
    let mut inputs: Vec<Vec<Arc<Edge>>> = vec![Vec::new(); shape.len()];
    let mut outputs = inputs.clone();
    let mut expected = vec![0; shape.len()];
    inputs[0].push(Arc::clone(&feed));
    expected[0] = rows;
    for (task, behind) in shape.iter().enumerate() {
        for &reader in behind {
            let edge = Edge::new();
            outputs[task].push(Arc::clone(&edge));
            inputs[reader].push(edge);
            expected[reader] += expected[task];
        }
    }
    for ((inputs, outputs), expected) in inputs.into_iter().zip(outputs).zip(expected) {
        let make = |task| {
            inputs.iter().for_each(|edge| assert!(edge.reader.set(End::Task(task)).is_ok()));
            outputs.iter().for_each(|edge| assert!(edge.writer.set(End::Task(task)).is_ok()));
            Task { inputs, outputs, rows: 0, expected, running: AtomicBool::new(false) }
        };
        shared.left.fetch_add(1, Ordering::AcqRel);
        queue.add(make).expect("the queue has room for both queries");
    }
    assert!(feed.writer.set(End::Thread(Box::new(Gate::new()))).is_ok());
    let mut left = rows;
    while left > 0 {
        let now = feed.room().min(left);
        if now > 0 {
            feed.write(queue, now);
            left -= now;
        } else if let Some(End::Thread(gate)) = feed.writer.get() {
            gate.wait(NEVER);
        }
    }
    feed.close(queue);
    shared.leave();
}

fn random_epoch(queue: &Queue) {
    let mut order: Vec<_> = (0..CAPACITY as TaskId).map(|task| (task, random_level())).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, thread_rng().gen_range(0..=last));
    }
    order.truncate(thread_rng().gen_range(0..=CAPACITY));
    queue.publish(&order);
}

fn queries() {
    // Few of everything, too: where little goes on, nothing makes up for a wake-up that is lost.
    let workers = thread_rng().gen_range(1..4);
    let queries = thread_rng().gen_range(1..3);
    let epochs = thread_rng().gen_range(0..4);
    let shared = Arc::new(Shared { queue: Queue::new(CAPACITY, workers), left: AtomicUsize::new(queries) });
    let mut threads = Vec::new();
    let mut start = |run: Box<dyn FnOnce(&Shared) + Send>| {
        let shared = Arc::clone(&shared);
        threads.push(thread::spawn(move || run(&shared)));
    };
    for worker in 0..workers {
        start(Box::new(move |shared| work(&shared.queue, worker, &mut Worker(shared))));
    }
    start(Box::new(move |shared| (0..epochs).for_each(|_| random_epoch(&shared.queue))));
    for _ in 1..queries {
        start(Box::new(submit));
    }
    submit(&shared);
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    assert_eq!((shared.queue.live(), shared.queue.parked()), (0, 0));
}

/// A task that answers: each call waits for its answer, so each needs its own wake-up.
struct Desk {
    calls: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
    caller: Arc<Gate>,
}

struct Clerk;

impl Host<Desk> for Clerk {
    fn run(&mut self, _: TaskId, desk: &mut Desk) -> Handed {
        desk.answered.store(desk.calls.load(Ordering::Acquire), Ordering::Release);
        desk.caller.signal();
        Handed::Idle
    }

    fn level(&self, _: &Desk) -> Level {
        random_level()
    }

    fn retired(&mut self, _: Desk) {}
}

type Desks = ScheduleQueue<Desk>;

fn call(queue: &Desks, calls: u64) {
    let (posted, answered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let caller = Arc::new(Gate::new());
    let desk =
        Desk { calls: Arc::clone(&posted), answered: Arc::clone(&answered), caller: Arc::clone(&caller) };
    let task = queue.add(|_| desk).expect("the queue has room for every caller");
    for call in 1..=calls {
        posted.store(call, Ordering::Release);
        queue.wake(task, random_level);
        while answered.load(Ordering::Acquire) < call {
            caller.wait(NEVER);
        }
    }
}

fn calls() {
    let workers = thread_rng().gen_range(1..3);
    let queue = Arc::new(Desks::new(CAPACITY, workers));
    let start = |run: Box<dyn FnOnce(&Desks) + Send>| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || run(&queue))
    };
    let working: Vec<_> =
        (0..workers).map(|worker| start(Box::new(move |queue| work(queue, worker, &mut Clerk)))).collect();
    let calling = start(Box::new(|queue| call(queue, 4)));
    let publishing = start(Box::new(|queue| queue.publish(&[(1, Level::FIRST), (0, Level::LAST)])));
    call(&queue, 4);
    calling.join().expect("no thread panics");
    publishing.join().expect("no thread panics");
    queue.close();
    for worker in working {
        worker.join().expect("no thread panics");
    }
}

fn check(scheduler: impl Scheduler + 'static, model: fn()) {
    let mut config = Config::new();
    // That orderings count as the strongest is known: they are loom's business.
    config.silence_warnings = true;
    config.stack_size = 256 << 10;
    Runner::new(scheduler, config).run(model);
}

fn schedules() -> usize {
    let asked = std::env::var("PENSTOCK_SHUTTLE_SCHEDULES").ok();
    asked.map_or(10_000, |schedules| schedules.parse().expect("a number of schedules"))
}

#[test]
fn every_row_arrives_and_every_worker_ends() {
    check(RandomScheduler::new(schedules()), queries);
}

/// The same with few switches at unlikely places, rather than many anywhere.
#[test]
fn every_row_arrives_with_few_switches() {
    check(PctScheduler::new(3, schedules() / 2), queries);
}

#[test]
fn every_call_is_answered() {
    check(RandomScheduler::new(schedules()), calls);
}
