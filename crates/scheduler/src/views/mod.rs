//! What a policy sees: ids, counters and costs of tasks and queries at one instant.
//!
//! The engine refreshes the same views epoch after epoch. Times are nanoseconds of one clock of the engine. A field that
//! nothing fills yet is empty, which its type says: a policy must do without it.
//!
//! VIEWS-1. A task comes before those downstream of it: tasks are in the order in which rows pass them. An index that
//!     points back, or nowhere, is refused: costs and ages that are handed on from task to task would be those of another
//!     epoch, or none.

mod query;
mod task;

pub use query::{QueryView, SweepView};
pub use task::{InputView, InputViews, PartView, TaskView};

/// The tasks and queries that a plan is made for, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The instant.
    pub now_ns: u64,
    /// Tasks, upstream ones first (VIEWS-1): all those of each query that has tasks at work.
    pub tasks: Vec<TaskView>,
    /// The queries that have tasks here.
    pub queries: Vec<QueryView>,
}

impl Snapshot {
    /// Returns the indices of the tasks that read what task `index` writes.
    pub fn downstream(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let readers = &self.tasks[index].downstream;
        debug_assert!(
            readers.iter().all(|&down| self.is_after(down, index)),
            "VIEWS-1: {index} to {readers:?}"
        );
        readers.iter().copied()
    }

    fn is_after(&self, down: usize, index: usize) -> bool {
        down > index && down < self.tasks.len()
    }

    /// Checks VIEWS-1, for a caller that has put new tasks in.
    ///
    /// # Panics
    /// When a task comes before one that it reads from, or there is no such task.
    pub fn check_order(&self) {
        for (index, task) in self.tasks.iter().enumerate() {
            for &down in &task.downstream {
                assert!(self.is_after(down, index), "VIEWS-1: task {index} is read by {down}");
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
    fn readers_come_after_what_they_read() {
        let snapshot = snapshot(&[&[1, 2], &[2], &[]]);
        snapshot.check_order();
        let downstream = |index| snapshot.downstream(index).collect::<Vec<_>>();
        assert_eq!((downstream(0), downstream(1), downstream(2)), (vec![1, 2], vec![2], vec![]));
    }

    #[test]
    #[should_panic(expected = "VIEWS-1: task 1 is read by 0")]
    fn an_edge_that_points_back_is_refused() {
        snapshot(&[&[], &[0]]).check_order();
    }

    #[test]
    #[should_panic(expected = "VIEWS-1: task 0 is read by 7")]
    fn an_edge_that_points_nowhere_is_refused() {
        snapshot(&[&[7]]).check_order();
    }

    #[test]
    #[should_panic(expected = "VIEWS-1")]
    #[cfg(debug_assertions)]
    fn no_policy_is_shown_an_edge_that_points_back() {
        assert_eq!(snapshot(&[&[], &[0]]).downstream(1).count(), 0);
    }
}
