//! What a policy sees: ids, counters and costs of every task and query at one instant.
//!
//! The engine fills the same `Snapshot` epoch after epoch. Times are nanoseconds of one clock of the engine.
//!
//! S1. Within a query a task stands before those downstream of it. An index that points back, or nowhere, is as if
//!     it were not there.

use smallvec::SmallVec;

/// One task, as counted at the instant of the snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskView {
    /// Its id in the scheduling queue.
    pub task: u32,
    /// Which of [`Snapshot::queries`] it belongs to.
    pub query: usize,
    /// Which of [`Snapshot::tasks`] read what it writes.
    pub downstream: SmallVec<[usize; 2]>,
    /// Whether its input comes from outside the engine.
    pub is_source: bool,
    /// Rows that wait for it.
    pub pending_rows: u64,
    /// What else waits for it: signals, timers that are due, unfinished output.
    pub signals: u64,
    /// Whether its output has no room: a run would do nothing.
    pub is_blocked: bool,
    /// Whether a worker has it now.
    pub is_running: bool,
    /// Nanoseconds per row in, rolled up; `None` until known.
    pub cost_ns: Option<f64>,
    /// Rows out per row in, rolled up; `None` until known. What a sink hands over counts as out.
    pub selectivity: Option<f64>,
    /// When its last run ended.
    pub last_run_ns: u64,
    /// When the oldest of its pending input arrived at the engine. Means nothing when nothing is pending.
    pub arrived_ns: u64,
}

impl TaskView {
    /// Whether rows or signals wait for it.
    pub fn has_work(&self) -> bool {
        self.pending_rows > 0 || self.signals > 0
    }
}

/// One query, with what its latency markers have told since it was submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryView {
    /// The same for as long as the query lives, and no other query's.
    pub id: u64,
    /// Sum of the latencies of its markers.
    pub latency_sum_ns: u64,
    /// How many markers came out.
    pub latency_count: u64,
}

/// All tasks and queries at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The instant.
    pub now_ns: u64,
    /// When the next snapshot is due.
    pub next_epoch_ns: u64,
    /// Every task, upstream ones first (S1).
    pub tasks: Vec<TaskView>,
    /// Every query.
    pub queries: Vec<QueryView>,
}

impl Snapshot {
    /// The tasks that read what task `index` writes, with their indices; those that S1 rules out are left out.
    pub fn downstream(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let count = self.tasks.len();
        self.tasks[index].downstream.iter().copied().filter(move |&down| down > index && down < count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downstream_is_behind_or_not_there() {
        let tasks = [vec![1, 2, 3, usize::MAX], vec![0, 1, 2], vec![]];
        let view =
            |downstream| TaskView { downstream: SmallVec::from_vec(downstream), ..TaskView::default() };
        let snapshot = Snapshot { tasks: tasks.into_iter().map(view).collect(), ..Snapshot::default() };
        let downstream = |index| snapshot.downstream(index).collect::<Vec<_>>();
        assert_eq!((downstream(0), downstream(1), downstream(2)), (vec![1, 2], vec![2], vec![]));
    }
}
