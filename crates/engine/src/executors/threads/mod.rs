//! A thread for each task, left to the system: the baseline.
//!
//! THREADS-1. The threads of a query start together: each waits until all of them are there. If one cannot be started, the
//!     others end without a run.

mod latch;
mod way;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use penstock_queue::schedule::{Level, TaskId};

use super::bell::Bell;
use super::cell::{Ran, TaskCell, USUAL_QUANTUM};
use super::epoch::{self, Beaten, Shared};
use super::group::Groups;
use super::meter::CpuMeter;
use super::{Executor, ExecutorMetrics, NewGroup, SetTimer, TaskInputs, TaskWakers, join, spawn};
use crate::clock::now_ns;
use crate::error::StartError;
use crate::options::EngineOptions;
use latch::Latch;
use penstock_tasks::error::RunError;
use way::ThreadWay;

/// How long the thread of a task sleeps at most when it has no timer. It is woken before if there is anything to do.
const LONG: Duration = Duration::from_secs(3600);
/// How long the epoch thread sleeps at most: threads of tasks say that they have begun, but not that they go on.
const LOOK_NS: u64 = 1_000_000_000;

/// The threads of all tasks, and the epoch thread, which rolls up. They hold it until it is stopped.
pub(super) struct ThreadsExecutor {
    shared: Shared,
    groups: Groups,
    engine: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// How many tasks have a thread.
    running: AtomicU64,
}

impl ThreadsExecutor {
    /// Starts the epoch thread.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(options: &EngineOptions, engine: u64) -> Result<Arc<Self>, StartError> {
        let executor = Arc::new(Self {
            shared: Shared::new(options.policy, 0, LOOK_NS),
            groups: Groups::default(),
            engine,
            threads: Mutex::default(),
            running: AtomicU64::new(0),
        });
        let thread = epoch::start(Arc::clone(&executor))?;
        executor.threads().push(thread);
        Ok(executor)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread of a task, which waits at the latch and ends with the task.
    fn start_task(self: &Arc<Self>, cell: TaskCell, latch: &Arc<Latch>) -> std::io::Result<JoinHandle<()>> {
        // The system keeps 15 characters of it.
        let name = format!("ps-{}", cell.name());
        let (executor, latch) = (Arc::clone(self), Arc::clone(latch));
        spawn(name, self.engine, move || {
            if latch.wait() {
                executor.run(cell);
            }
        })
    }

    fn run(&self, mut cell: TaskCell) {
        self.running.fetch_add(1, Ordering::Relaxed);
        let bell = Arc::clone(&cell.bell);
        let way = bell.way::<ThreadWay>().expect("the bell of a task is reserved by its executor");
        let mut meter = CpuMeter::default();
        loop {
            let start_ns = now_ns();
            // Not for ever, so that what it has done can be seen.
            let (end_ns, ran) = cell.run(USUAL_QUANTUM, start_ns, self);
            meter.note(end_ns.saturating_sub(start_ns), end_ns, &self.shared.cpu);
            match ran {
                Ran::Ready => way.note(),
                Ran::Idle => {
                    way.note();
                    let until = cell.timer_ns().map(|at_ns| at_ns.saturating_sub(now_ns()));
                    way.wait(until.map_or(LONG, Duration::from_nanos));
                    self.shared.epoch.nudge();
                }
                Ran::Done => break,
            }
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        cell.retire();
    }
}

impl Beaten for ThreadsExecutor {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn runs(&self) -> u64 {
        0
    }

    fn is_awake(&self) -> bool {
        false
    }
}

impl SetTimer for ThreadsExecutor {
    /// Does nothing: the thread of a task looks at the time itself.
    fn set_timer(&self, _at_ns: u64, _bell: &Arc<Bell>) {}
}

impl Executor for ThreadsExecutor {
    fn reserve(&self, tasks: &[TaskInputs]) -> Result<Vec<TaskWakers>, StartError> {
        let reserve = |task: &TaskInputs| {
            TaskWakers::alike(Bell::new(task.least_rows, Box::<ThreadWay>::default()), task.inputs)
        };
        Ok(tasks.iter().map(reserve).collect())
    }

    fn install(self: Arc<Self>, group: NewGroup) -> Result<(), StartError> {
        let query = Arc::clone(&group.query);
        let (group, cells) = self.groups.add(group, &self.shared.arrivals);
        let latch = Arc::new(Latch::default());
        let mut started = Vec::new();
        for cell in cells {
            match self.start_task(cell, &latch) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    query.fail(RunError::Stopped);
                    latch.open(false); // THREADS-1
                    self.threads().extend(started);
                    return Err(StartError::Thread(error));
                }
            }
        }
        let mut threads = self.threads();
        // Now and then: so that it costs as much as tasks come, however many there are.
        if threads.len() > 2 * self.running.load(Ordering::Relaxed) as usize + 64 {
            threads.retain(|thread| !thread.is_finished());
        }
        threads.extend(started);
        drop(threads);
        latch.open(true);
        group.installed();
        Ok(())
    }

    fn remove(&self, group: u64) {
        self.groups.remove(group);
    }

    /// Does nothing: the system decides.
    fn publish(&self, _ranks: &[(TaskId, Level)]) {}

    fn parallelism(&self) -> usize {
        1
    }

    fn metrics(&self) -> ExecutorMetrics {
        ExecutorMetrics { task_threads: self.running.load(Ordering::Relaxed), ..self.shared.metrics() }
    }

    fn stop(&self) {
        self.shared.close();
        join(&self.threads);
        self.shared.timers.clear();
    }
}

#[cfg(test)]
mod tests;
