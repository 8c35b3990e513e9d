//! What a policy sees of a task and of each of its inputs.

use smallvec::SmallVec;

/// One input of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputView {
    /// Rows that wait at it, those that the task has taken but not finished among them.
    pub rows: u64,
    /// Signals that wait at it.
    pub signals: u64,
    /// When the oldest of its rows arrived at the engine, or earlier; `None` while no rows wait, or nothing is known.
    pub arrived_ns: Option<u64>,
    /// The watermark of the rows that were read, in ticks of event time; `None` before the first, and where the input does
    /// not report it.
    pub watermark: Option<i64>,
    /// Rows that were read since the beginning of the stream; 0 where the input does not report it.
    pub read_position: u64,
    /// Rows that were written since the beginning of the stream; 0 where the input does not report it.
    pub written_position: u64,
}

/// The inputs of a task.
pub type InputViews = SmallVec<[InputView; 2]>;

/// One task, as counted at the instant of the snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskView {
    /// Its id in the scheduling queue.
    pub task: u32,
    /// Which of [`Snapshot::queries`](super::Snapshot::queries) it belongs to.
    pub query: usize,
    /// Which of [`Snapshot::tasks`](super::Snapshot::tasks) read what it writes.
    pub downstream: SmallVec<[usize; 2]>,
    /// Whether its input comes from outside the engine.
    pub is_source: bool,
    /// Where its input has rows for several tasks, each of which takes its own: which it is of them.
    pub part: Option<PartView>,
    /// Its inputs, in their order.
    pub inputs: InputViews,
    /// Rows that wait at all of its inputs.
    pub pending_rows: u64,
    /// What else waits for it: signals, timers that are due, unfinished output.
    pub signals: u64,
    /// Rows that were worth a run by the last plan; 0 before the first one.
    pub threshold_rows: u64,
    /// Whether its output has no room: a run would do nothing.
    pub is_blocked: bool,
    /// Whether a worker has it now.
    pub is_running: bool,
    /// Nanoseconds per row in, rolled up; `None` until known.
    pub cost_ns: Option<f64>,
    /// Rows out per row in, rolled up; `None` until known. What a sink hands over counts as out.
    pub selectivity: Option<f64>,
    /// Nanoseconds that a row takes from here to the last output along the dearest path, this task included; `None` until
    /// known, and where no policy asks for it.
    pub critical_path_ns: Option<f64>,
    /// When its last run ended.
    pub last_run_ns: u64,
    /// When the oldest of its pending input arrived at the engine. Means nothing when nothing is pending.
    pub arrived_ns: u64,
}

impl TaskView {
    /// Returns whether rows or signals wait for it.
    pub fn has_work(&self) -> bool {
        self.pending_rows > 0 || self.signals > 0
    }

    /// Returns how long the task has had work and no run. Rows count from their arrival at the engine: what has aged
    /// upstream need not age again.
    pub fn waited_ns(&self, now_ns: u64) -> u64 {
        if self.is_blocked || self.is_running || !self.has_work() {
            return 0;
        }
        let arrived_ns = if self.pending_rows > 0 { self.arrived_ns } else { 0 };
        now_ns.saturating_sub(self.last_run_ns.max(arrived_ns))
    }
}

/// One of several tasks that read the same rows, each of which takes its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartView {
    /// Which of [`Snapshot::tasks`](super::Snapshot::tasks) is the first of them.
    pub first: usize,
    /// The part of the rows that it takes, from 0 to 1.
    pub share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_waits_from_its_last_run_or_the_arrival_of_its_rows() {
        let task = TaskView { pending_rows: 1, arrived_ns: 70, last_run_ns: 40, ..TaskView::default() };
        assert_eq!(task.waited_ns(100), 30);
        assert_eq!(TaskView { last_run_ns: 90, ..task.clone() }.waited_ns(100), 10);
        assert_eq!(TaskView { pending_rows: 0, signals: 1, ..task.clone() }.waited_ns(100), 60);
        for waits_not in [
            TaskView { pending_rows: 0, ..task.clone() },
            TaskView { is_blocked: true, ..task.clone() },
            TaskView { is_running: true, ..task },
        ] {
            assert_eq!(waits_not.waited_ns(100), 0, "{waits_not:?}");
        }
    }
}
