//! What holds for every executor: tasks run when they are woken, queries come whole and go whole.
//!
//! The stubs here are also for the tests of each executor.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use penstock_operators::HeldRows;
use penstock_queue::log::Work;
use penstock_scheduler::table::Pending;

use super::*;
use crate::clock::now_ns;
use penstock_tasks::clock::Until;
use penstock_tasks::context::Phase;
use penstock_tasks::step::{BlockedOn, Numbers, Step};
use penstock_tasks::waker::Waker;

/// Longer than anything here takes: a test that waits so long has failed.
pub(super) const EVER: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(super) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < EVER, "still waiting: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Rows that wait for a stub task, what it has done, and what it is to do.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) rows: AtomicU64,
    pub(super) done: AtomicU64,
    /// It is never idle, though no rows wait.
    pub(super) is_busy: AtomicBool,
    pub(super) ends: AtomicBool,
    panics: AtomicBool,
    /// It asks to be woken so much later, once.
    naps_ns: AtomicU64,
}

struct Waits(Arc<Desk>);

impl Pending for Waits {
    fn work(&self) -> Work {
        Work { rows: self.0.rows.load(Ordering::Relaxed), signals: 0 }
    }

    fn arrived_ns(&self) -> Option<u64> {
        None
    }
}

struct Stub(Arc<Desk>);

impl Task for Stub {
    fn step(&mut self, _context: &Context) -> Result<Step, RunError> {
        let desk = &self.0;
        assert!(!desk.panics.load(Ordering::Relaxed), "on purpose");
        if desk.ends.load(Ordering::Acquire) {
            return Ok(Step::Done);
        }
        let nap_ns = desk.naps_ns.swap(0, Ordering::Relaxed);
        if nap_ns > 0 {
            return Ok(Step::Until(Until::system(now_ns() + nap_ns)));
        }
        let rows = desk.rows.swap(0, Ordering::Acquire);
        desk.done.fetch_add(rows.max(1), Ordering::Release);
        let is_idle = rows == 0 && !desk.is_busy.load(Ordering::Relaxed);
        Ok(if is_idle { Step::Idle } else { Step::Worked(rows.max(1) as usize) })
    }

    fn numbers(&self, _now_ns: u64) -> Numbers {
        Numbers {
            rows_in: self.0.done.load(Ordering::Relaxed),
            rows_out: 0,
            blocked_ns: 0,
            is_blocked: false,
            blocked_on: BlockedOn::Room,
            is_unfinished: self.0.is_busy.load(Ordering::Relaxed),
            held: HeldRows::default(),
        }
    }
}

/// A query that notes what its executor tells it.
pub(super) struct StubQuery {
    id: u64,
    /// The queries that its first task reads.
    reads: Vec<u64>,
    context: Context,
    clock: Timepiece,
    pub(super) desks: Vec<Arc<Desk>>,
    bells: OnceLock<Vec<Arc<Bell>>>,
    pub(super) left: AtomicUsize,
    pub(super) errors: Mutex<Vec<String>>,
    executor: Weak<dyn Executor>,
}

impl Supervisor for StubQuery {
    fn context(&self) -> &Context {
        &self.context
    }

    fn clock(&self) -> &Timepiece {
        &self.clock
    }

    fn is_stopping(&self) -> bool {
        self.context.phase() == Phase::Stopping
    }

    fn fail(&self, error: RunError) {
        self.errors.lock().unwrap().push(error.to_string());
        self.context.enter(Phase::Stopping);
        self.bells.get().into_iter().flatten().for_each(|bell| bell.request_run());
    }

    fn task_gone(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(executor) = self.executor.upgrade()
        {
            executor.remove(self.id);
        }
    }

    fn latency_totals(&self) -> (u64, u64) {
        (0, 0)
    }

    fn rows_in(&self) -> u64 {
        self.desks.iter().map(|desk| desk.done.load(Ordering::Relaxed)).sum()
    }

    fn set_rate(&self, _rows_per_second: f64) {}
}

impl StubQuery {
    /// Makes a query of stub tasks, each of which reads what the one before it writes.
    pub(super) fn new(executor: &Arc<dyn Executor>, id: u64, desks: Vec<Arc<Desk>>) -> Arc<Self> {
        Self::reading(executor, id, desks, Vec::new())
    }

    /// Makes a query whose first task also reads those queries.
    pub(super) fn reading(
        executor: &Arc<dyn Executor>,
        id: u64,
        desks: Vec<Arc<Desk>>,
        reads: Vec<u64>,
    ) -> Arc<Self> {
        let context = Context::new(Arc::new(Timepiece::System), Arc::default(), None, Arc::default());
        Arc::new(Self {
            id,
            reads,
            context,
            clock: Timepiece::System,
            left: AtomicUsize::new(desks.len()),
            desks,
            bells: OnceLock::new(),
            errors: Mutex::default(),
            executor: Arc::downgrade(executor),
        })
    }

    /// Reserves the bells of its tasks.
    pub(super) fn reserve(&self) -> &[Arc<Bell>] {
        let executor = self.executor.upgrade().unwrap();
        let tasks = vec![TaskInputs { inputs: 2, least_rows: 1 }; self.desks.len()];
        let reserved = executor.reserve(&tasks).unwrap();
        assert!(reserved.iter().all(|task| task.inputs.len() == 2), "a waker for each input");
        let reserved: Vec<Arc<Bell>> = reserved.into_iter().map(|task| task.bell).collect();
        for (bell, desk) in reserved.iter().zip(&self.desks) {
            bell.set_pending(Box::new(Waits(Arc::clone(desk))));
        }
        self.bells.get_or_init(|| reserved)
    }

    /// Returns its tasks, whose bells are reserved.
    pub(super) fn group(self: &Arc<Self>) -> NewGroup {
        let bells = self.bells.get().unwrap();
        let task = |(number, bell): (usize, &Arc<Bell>)| NewTask {
            name: format!("stub {number}"),
            body: Box::new(Stub(Arc::clone(&self.desks[number]))),
            bell: Arc::clone(bell),
            readers: (number + 1..bells.len()).take(1).collect(),
            is_source: number == 0,
            part: None,
        };
        let tasks = bells.iter().enumerate().map(task).collect();
        NewGroup {
            id: self.id,
            query: Arc::clone(self) as _,
            tasks,
            reads: self.reads.iter().map(|id| (*id, 0)).collect(),
        }
    }

    /// Installs a query of so many tasks.
    pub(super) fn install(executor: &Arc<dyn Executor>, id: u64, tasks: usize) -> Arc<Self> {
        let query = Self::new(executor, id, (0..tasks).map(|_| Arc::default()).collect());
        query.reserve();
        Arc::clone(executor).install(query.group()).unwrap();
        query
    }

    pub(super) fn bell(&self, task: usize) -> &Arc<Bell> {
        &self.bells.get().unwrap()[task]
    }

    /// Gives a task rows, and wakes it.
    pub(super) fn give(&self, task: usize, rows: u64) {
        self.desks[task].rows.fetch_add(rows, Ordering::Release);
        self.bell(task).ring();
    }

    /// Ends all tasks, and waits until they have.
    pub(super) fn end(&self) {
        for (desk, bell) in self.desks.iter().zip(self.bells.get().into_iter().flatten()) {
            desk.ends.store(true, Ordering::Release);
            bell.request_run();
        }
        await_that("the end of a query", || self.left.load(Ordering::Acquire) == 0);
    }

    /// Returns the places of its tasks in the queue.
    pub(super) fn places(&self) -> Vec<Option<TaskId>> {
        self.bells.get().into_iter().flatten().map(|bell| bell.place()).collect()
    }

    pub(super) fn done(&self, task: usize) -> u64 {
        self.desks[task].done.load(Ordering::Acquire)
    }
}

/// Calls `test` with an executor of each mode, and stops it.
fn each(test: impl Fn(&Arc<dyn Executor>)) {
    for (_, mode) in Mode::NAMES {
        let options = EngineOptions { mode, workers: Some(2), ..EngineOptions::default() };
        let executor = start(&options, u64::MAX).unwrap();
        test(&executor);
        executor.stop();
    }
}

#[test]
fn a_task_runs_when_it_is_woken() {
    each(|executor| {
        let query = StubQuery::install(executor, 1, 2);
        for rows in 1..20 {
            let before = query.done(1);
            query.give(1, rows);
            await_that("a run for the rows", || query.done(1) >= before + rows);
        }
        query.end();
        assert_eq!(query.errors.lock().unwrap()[..], [""; 0]);
    });
}

#[test]
fn a_wake_up_before_the_task_is_installed_is_kept() {
    each(|executor| {
        let query = StubQuery::new(executor, 1, vec![Arc::default()]);
        query.reserve();
        query.give(0, 7);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(query.done(0), 0);
        Arc::clone(executor).install(query.group()).unwrap();
        await_that("the rows from before", || query.done(0) >= 7);
        query.end();
    });
}

#[test]
fn a_timer_wakes_the_task_that_has_set_it() {
    each(|executor| {
        let query = StubQuery::install(executor, 1, 1);
        // A thread of its own runs it once in any case.
        query.give(0, 1);
        await_that("the first run", || query.done(0) > 0);
        thread::sleep(Duration::from_millis(10));
        query.desks[0].naps_ns.store(20_000_000, Ordering::Relaxed);
        let began = Instant::now();
        query.give(0, 1000);
        await_that("the end of a nap", || query.done(0) >= 1000);
        assert!(began.elapsed() >= Duration::from_millis(20));
        query.end();
    });
}

#[test]
fn a_task_that_panics_fails_its_query_and_no_other() {
    each(|executor| {
        let (query, other) = (StubQuery::install(executor, 1, 2), StubQuery::install(executor, 2, 1));
        query.desks[0].panics.store(true, Ordering::Relaxed);
        query.bell(0).ring();
        await_that("both tasks to go", || query.left.load(Ordering::Acquire) == 0);
        let errors = query.errors.lock().unwrap().clone();
        assert!(errors.len() == 1 && errors[0].contains("stub 0"), "{errors:?}");
        other.give(0, 3);
        await_that("the other one to run", || other.done(0) >= 3);
        other.end();
    });
}

#[test]
fn tasks_know_whose_thread_they_are_on() {
    each(|executor| {
        assert!(!is_run_here(u64::MAX));
        assert!(executor.parallelism() >= 1);
        let query = StubQuery::install(executor, 1, 1);
        query.give(0, 1);
        await_that("a run", || query.done(0) > 0);
        query.end();
        assert_eq!(executor.metrics().task_threads, 0);
    });
}
