//! What a policy sees: ids, counters and costs of every task and query at one instant.
//!
//! The engine fills the same `Snapshot` epoch after epoch. Times are nanoseconds of one clock of the engine.
//!
//! S1. A task stands before those downstream of it: tasks are in the order in which rows pass them. An index that points
//!     back, or nowhere, is refused: costs and ages that are handed on from task to task would be those of another epoch,
//!     or none.

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
    /// Where its input has rows for several tasks, each of which takes its own: which it is of them.
    pub part: Option<PartView>,
    /// Rows that wait for it, those that it has taken but not finished among them.
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

/// One of several tasks that read the same rows, each of which takes its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartView {
    /// Which of [`Snapshot::tasks`] is the first of them.
    pub first: usize,
    /// The part of the rows that it takes, from 0 to 1.
    pub share: f64,
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
    /// Every task, upstream ones first (S1).
    pub tasks: Vec<TaskView>,
    /// Every query.
    pub queries: Vec<QueryView>,
}

impl Snapshot {
    /// The indices of the tasks that read what task `index` writes.
    pub fn downstream(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let readers = &self.tasks[index].downstream;
        debug_assert!(readers.iter().all(|&down| self.is_behind(down, index)), "S1: {index} to {readers:?}");
        readers.iter().copied()
    }

    fn is_behind(&self, down: usize, index: usize) -> bool {
        down > index && down < self.tasks.len()
    }

    /// Makes sure of S1, for whoever has put new tasks in.
    ///
    /// # Panics
    /// When a task comes before one that it reads from, or there is no such task.
    pub fn check_order(&self) {
        for (index, task) in self.tasks.iter().enumerate() {
            for &down in &task.downstream {
                assert!(self.is_behind(down, index), "S1: task {index} is read by {down}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(tasks: &[&[usize]]) -> Snapshot {
        let view = |&downstream: &&[usize]| TaskView { downstream: downstream.into(), ..TaskView::default() };
        Snapshot { tasks: tasks.iter().map(view).collect(), ..Snapshot::default() }
    }

    #[test]
    fn readers_are_behind() {
        let snapshot = snapshot(&[&[1, 2], &[2], &[]]);
        snapshot.check_order();
        let downstream = |index| snapshot.downstream(index).collect::<Vec<_>>();
        assert_eq!((downstream(0), downstream(1), downstream(2)), (vec![1, 2], vec![2], vec![]));
    }

    #[test]
    #[should_panic(expected = "S1: task 1 is read by 0")]
    fn an_edge_that_points_back_is_refused() {
        snapshot(&[&[], &[0]]).check_order();
    }

    #[test]
    #[should_panic(expected = "S1: task 0 is read by 7")]
    fn an_edge_that_points_nowhere_is_refused() {
        snapshot(&[&[7]]).check_order();
    }

    #[test]
    #[should_panic(expected = "S1")]
    #[cfg(debug_assertions)]
    fn nobody_is_told_of_an_edge_that_points_back() {
        assert_eq!(snapshot(&[&[], &[0]]).downstream(1).count(), 0);
    }
}
