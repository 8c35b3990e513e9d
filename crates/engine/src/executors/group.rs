//! The tasks of a query as an executor sees them, and whether they are at work.
//!
//! GROUP-1. A group is *active* from when one of its tasks becomes ready until a roll-up finds that none of them has run
//!     since the last one and all of them rest. Plans and roll-ups walk the tasks of active groups alone.
//! GROUP-2. A group that is active, or about to be, is marked as listed; what is listed is with the planner, or in the pile
//!     that the planner takes. By LISTED-1 no task is ready whose group is not listed for good.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use penstock_queue::listed::Listed;
use penstock_queue::pile::Pile;
use penstock_scheduler::Rollup;
use penstock_scheduler::profile::Reading;

use super::bell::Bell;
use super::cell::TaskCell;
use super::{NewGroup, NewTask, Supervisor};
use penstock_tasks::share::ShareGauge;

/// Groups on their way to the planner.
#[derive(Default)]
pub(super) struct GroupArrivals {
    /// Those that have become active.
    pub(super) active: Pile<Arc<Group>>,
    /// Those that have ended, by their ids.
    pub(super) ended: Pile<u64>,
}

/// Lists a group when one of its tasks becomes ready.
pub(crate) struct Activity {
    listed: Listed,
    group: Weak<Group>,
    arrivals: Arc<GroupArrivals>,
}

impl Activity {
    /// Notes that a task of the group has something to do.
    pub(super) fn note(&self) {
        if self.listed.enlist()
            && let Some(group) = self.group.upgrade()
        {
            // A closed pile gives the group back: the executor has stopped.
            let _ = self.arrivals.active.push(group);
        }
    }
}

/// A task of a group.
pub(crate) struct Member {
    pub(crate) bell: Arc<Bell>,
    /// The tasks of the group that read what it writes.
    pub(crate) readers: Vec<usize>,
    pub(crate) is_source: bool,
    /// Which of the parts of an operator it is, and which part of the rows it takes.
    pub(crate) part: Option<(usize, Arc<ShareGauge>)>,
}

/// What is remembered of a task from roll-up to roll-up.
#[derive(Default)]
struct Past {
    rollup: Rollup,
    runs: u64,
    busy_ns: u64,
    /// Runs that it had made when it was last asked to give memory back.
    trimmed_at: Option<u64>,
}

#[derive(Default)]
struct Pasts {
    tasks: Vec<Past>,
    rows_in: u64,
}

/// The instant of a roll-up.
#[derive(Clone, Copy)]
pub(super) struct Roll {
    pub(super) now_ns: u64,
    /// Time since the last one.
    pub(super) elapsed_ns: u64,
    /// CPU time over busy time of the threads that ran tasks.
    pub(super) cpu_share: f64,
    /// Whether tasks that have gone idle are asked to give memory back.
    pub(super) trims: bool,
}

/// The tasks of one query, upstream ones first.
pub(crate) struct Group {
    pub(super) id: u64,
    pub(super) supervisor: Arc<dyn Supervisor>,
    pub(super) members: Vec<Member>,
    /// The groups that its tasks read, by their ids, each with the task that does.
    pub(super) reads: Vec<(u64, usize)>,
    activity: Arc<Activity>,
    is_gone: AtomicBool,
    /// Only the planner looks here.
    pasts: Mutex<Pasts>,
}

impl Group {
    /// Makes a group that is active, and on its way to the planner.
    pub(super) fn new(
        id: u64,
        supervisor: Arc<dyn Supervisor>,
        members: Vec<Member>,
        reads: Vec<(u64, usize)>,
        arrivals: &Arc<GroupArrivals>,
    ) -> Arc<Self> {
        let tasks = members.iter().map(|_| Past::default()).collect();
        let group = Arc::new_cyclic(|group| Self {
            id,
            supervisor,
            members,
            reads,
            activity: Arc::new(Activity {
                listed: Listed::new(true),
                group: Weak::clone(group),
                arrivals: Arc::clone(arrivals),
            }),
            is_gone: AtomicBool::new(false),
            pasts: Mutex::new(Pasts { tasks, rows_in: 0 }),
        });
        for member in &group.members {
            member.bell.join(&group.activity);
        }
        let _ = arrivals.active.push(Arc::clone(&group));
        group
    }

    /// Notes that its tasks have been installed: some may be ready already.
    pub(super) fn installed(&self) {
        self.activity.note();
    }

    /// Notes that all of its tasks are gone.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Ordering::Release);
        let _ = self.activity.arrivals.ended.push(self.id);
    }

    /// Returns whether all of its tasks are gone.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Rolls the counters of its tasks up. Returns whether any of them has run since the last time, or was woken now.
    pub(super) fn roll(&self, roll: Roll) -> bool {
        let mut pasts = self.pasts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_at_work = false;
        for (member, past) in self.members.iter().zip(&mut pasts.tasks) {
            is_at_work |= past.roll(&member.bell, roll);
        }
        let rows_in = self.supervisor.rows_in();
        let before = std::mem::replace(&mut pasts.rows_in, rows_in);
        self.supervisor.set_rate(rows_in.saturating_sub(before) as f64 * 1e9 / roll.elapsed_ns as f64);
        is_at_work
    }

    /// Takes the mark of an active group away, if its tasks rest and have not run since the last roll-up. Returns whether
    /// they do; if they do not, it is listed.
    pub(super) fn rest(&self) -> bool {
        self.activity.listed.delist();
        let pasts = self.pasts.lock().unwrap_or_else(PoisonError::into_inner);
        // The state before the runs: a run that led to it is counted by then (LISTED-1).
        let rests = |(member, past): (&Member, &Past)| {
            member.bell.is_idle() && member.bell.row.did.runs.get() == past.runs
        };
        let is_at_rest = self.members.iter().zip(&pasts.tasks).all(rests);
        if is_at_rest {
            self.members.iter().for_each(|member| member.bell.row.restore_quantum());
        } else {
            // If another thread was faster, it has put the group into the pile, which does no harm.
            self.activity.listed.enlist();
        }
        is_at_rest
    }
}

impl Past {
    fn roll(&mut self, bell: &Bell, roll: Roll) -> bool {
        let did = &bell.row.did;
        let reading = Reading {
            rows_in: did.rows_in.get(),
            rows_out: did.rows_out.get(),
            runs: did.runs.get(),
            busy_ns: did.busy_ns.get(),
        };
        self.rollup.add(reading, roll.now_ns, roll.cpu_share);
        let time_share = (reading.busy_ns - self.busy_ns) as f64 / roll.elapsed_ns as f64;
        bell.row.roll(self.rollup.cost_ns(), self.rollup.selectivity(), time_share);
        self.busy_ns = reading.busy_ns;
        if reading.runs != self.runs {
            self.runs = reading.runs;
            return true;
        }
        let was_trimmed = self.trimmed_at.is_some_and(|at| reading.runs <= at + 1);
        if !roll.trims || was_trimmed || reading.runs == 0 {
            return false;
        }
        // It has run since it was asked last, apart from giving memory back, and has been idle for a while.
        self.trimmed_at = Some(reading.runs);
        bell.ask_to_trim();
        true
    }
}

/// The groups of an executor, by their ids.
#[derive(Default)]
pub(super) struct Groups(Mutex<HashMap<u64, Arc<Group>>>);

impl Groups {
    fn locked(&self) -> MutexGuard<'_, HashMap<u64, Arc<Group>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a group. Returns it with the cells of its tasks, which do not run yet.
    pub(super) fn add(&self, new: NewGroup, arrivals: &Arc<GroupArrivals>) -> (Arc<Group>, Vec<TaskCell>) {
        let member = |task: &NewTask| Member {
            bell: Arc::clone(&task.bell),
            readers: task.readers.clone(),
            is_source: task.is_source,
            part: task.part.clone(),
        };
        let NewGroup { id, query, tasks, reads } = new;
        let members = tasks.iter().map(member).collect();
        let cells = TaskCell::of(tasks, &query);
        let group = Group::new(id, query, members, reads, arrivals);
        self.locked().insert(id, Arc::clone(&group));
        (group, cells)
    }

    /// Removes a group whose tasks are gone.
    pub(super) fn remove(&self, id: u64) {
        let group = self.locked().remove(&id);
        if let Some(group) = group {
            group.leave();
        }
    }
}
