//! Workers that share a scheduling queue, ranked by a policy.
//!
//! STATE-1. A row of the queue is reserved together with the bell, so that tasks are installed without a chance to fail,
//!     and the queue itself keeps wake-ups until then.

mod way;
mod worker;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_utils::CachePadded;
use penstock_queue::schedule::{Level, Reserved, ScheduleQueue, TaskId};
use penstock_scheduler::Rules;

use super::bell::Bell;
use super::cell::TaskQueue;
use super::epoch::{self, Beaten, ROLL_NS, Shared};
use super::group::Groups;
use super::{Executor, ExecutorMetrics, NewGroup, SetTimer, TaskInputs, TaskWakers, join};
use crate::clock::now_ns;
use crate::error::StartError;
use crate::options::EngineOptions;
use way::QueueWay;
use worker::WorkerStats;

/// The most tasks of an engine.
const MOST_TASKS: usize = 1 << 16;
/// How long the epoch thread sleeps at most.
const LONG_NS: u64 = 3_600_000_000_000;

/// The workers, and the epoch thread. Its threads hold it until it is stopped.
pub(super) struct StateExecutor {
    queue: Arc<TaskQueue>,
    /// What holds for tasks between two plans.
    rules: Arc<Rules>,
    workers: Box<[CachePadded<WorkerStats>]>,
    shared: Shared,
    groups: Groups,
    /// When the next plan is due.
    next_plan_ns: AtomicU64,
    /// The time of a core that the last plan took.
    plan_cpu_ns: AtomicU64,
    engine: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl StateExecutor {
    fn new(options: &EngineOptions, engine: u64) -> Arc<Self> {
        let workers = options.worker_count();
        Arc::new(Self {
            queue: Arc::new(ScheduleQueue::new(MOST_TASKS, workers)),
            rules: Arc::new(Rules::new(options.policy.make())),
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
            shared: Shared::new(options.policy, ROLL_NS, LONG_NS),
            groups: Groups::default(),
            next_plan_ns: AtomicU64::new(0),
            plan_cpu_ns: AtomicU64::new(0),
            engine,
            threads: Mutex::default(),
        })
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// When one of them cannot be started. Then there are none.
    pub(super) fn start(options: &EngineOptions, engine: u64) -> Result<Arc<Self>, StartError> {
        let executor = Self::new(options, engine);
        let numbers = 0..executor.workers.len();
        let workers = numbers.map(|number| worker::start(&executor, number));
        for thread in workers.chain([epoch::start(Arc::clone(&executor))]) {
            match thread {
                Ok(thread) => executor.threads().push(thread),
                Err(error) => {
                    executor.stop();
                    return Err(StartError::Thread(error));
                }
            }
        }
        Ok(executor)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beaten for StateExecutor {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn runs(&self) -> u64 {
        self.workers.iter().map(|worker| worker.runs.get()).sum()
    }

    fn is_awake(&self) -> bool {
        self.queue.parked() < self.workers.len() || self.queue.has_ready()
    }
}

impl SetTimer for StateExecutor {
    fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        self.shared.set_timer(at_ns, bell);
    }
}

impl Executor for StateExecutor {
    fn reserve(&self, tasks: &[TaskInputs]) -> Result<Vec<TaskWakers>, StartError> {
        let reserve = |task: &TaskInputs| {
            let reserved = Reserved::new(&self.queue).ok_or(StartError::TooManyTasks { most: MOST_TASKS })?;
            let way = QueueWay::new(reserved, &self.queue, &self.rules);
            Ok(TaskWakers::alike(Bell::new(task.least_rows, Box::new(way)), task.inputs))
        };
        tasks.iter().map(reserve).collect()
    }

    fn install(self: Arc<Self>, group: NewGroup) -> Result<(), StartError> {
        let (group, cells) = self.groups.add(group, &self.shared.arrivals);
        for cell in cells {
            let way = cell.bell.way::<QueueWay>().expect("the bell of a task is reserved by its executor");
            way.take_reserved().expect("a task is installed once").fill(cell); // STATE-1
        }
        group.installed();
        Ok(())
    }

    fn remove(&self, group: u64) {
        self.groups.remove(group);
    }

    fn publish(&self, ranks: &[(TaskId, Level)]) {
        self.queue.publish(ranks);
    }

    fn parallelism(&self) -> usize {
        self.workers.len()
    }

    fn metrics(&self) -> ExecutorMetrics {
        let now_ns = now_ns();
        let workers = self.workers.iter().map(|worker| worker.metrics(now_ns)).collect();
        ExecutorMetrics { workers, ..self.shared.metrics() }
    }

    fn stop(&self) {
        self.queue.close();
        self.shared.close();
        join(&self.threads);
        self.shared.timers.clear();
    }
}

#[cfg(test)]
mod tests;
