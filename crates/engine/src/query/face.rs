//! The tasks of a query, as others see them, and what is lost if they are stopped.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use penstock_operators::HeldRows;
use penstock_queue::log::Work;

use super::state::{State, locked};
use crate::executors::NewTask;
use crate::executors::bell::Bell;
use penstock_tasks::charge::Load;
use penstock_tasks::results::Results;

/// What is lost if a query is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Rows that wait to be processed, or for the end of the query.
    pub rows: u64,
    /// Those of them that are in windows which have not been given out.
    pub in_windows: u64,
    /// Sessions that have not been given out.
    pub sessions: u64,
}

/// A task of a query, as others see it.
pub(crate) struct TaskFace {
    pub(crate) name: String,
    pub(crate) bell: Arc<Bell>,
    /// The tasks that read what it writes.
    pub(crate) readers: Vec<usize>,
    /// The output that leaves by it, if it is a sink.
    pub(crate) output: Option<usize>,
    /// The state that it has handed to the merging task, if it is a lane.
    pub(crate) load: Option<Arc<Load>>,
    /// Whether it merges the state of lanes.
    pub(crate) merges: bool,
}

impl TaskFace {
    /// Returns what others see of the task.
    pub(crate) fn of(task: &NewTask) -> Self {
        Self {
            name: task.name.clone(),
            bell: Arc::clone(&task.bell),
            readers: task.readers.clone(),
            output: task.body.output(),
            load: task.body.load(),
            merges: task.body.merges(),
        }
    }

    /// Returns what is lost if it is dropped now. What waits for a merging task counts where it comes from (CHARGE-3).
    fn waiting(&self) -> Waiting {
        let row = &self.bell.row;
        let on_its_way = self.load.as_ref().map_or_else(HeldRows::default, |load| load.held());
        let held =
            HeldRows { rows: row.did.held_rows.get(), sessions: row.did.held_sessions.get() } + on_its_way;
        let pending = if self.merges { 0 } else { row.work().rows };
        let in_windows = if self.output.is_some() { 0 } else { held.rows };
        Waiting { rows: pending + held.rows, in_windows, sessions: held.sessions }
    }
}

impl State {
    /// Returns what is lost if it is stopped now, but for results that wait to be read. Exact while none of its tasks runs.
    pub(crate) fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for lost in self.faces().iter().map(TaskFace::waiting) {
            waiting.rows += lost.rows;
            waiting.in_windows += lost.in_windows;
            waiting.sessions += lost.sessions;
        }
        let collected = self.outputs.iter().filter_map(|output| output.collected.as_ref());
        let rows = |batches: &Arc<Mutex<Vec<RecordBatch>>>| -> usize {
            locked(batches).iter().map(RecordBatch::num_rows).sum()
        };
        waiting.rows += collected.map(rows).sum::<usize>() as u64;
        waiting.rows += self.letters.as_ref().map_or(0, Results::rows);
        waiting
    }

    /// Returns how often its tasks have run; `None` while one of them does.
    pub(crate) fn runs(&self) -> Option<u64> {
        let runs =
            |face: &TaskFace| (face.bell.row.did.running.get() == 0).then(|| face.bell.row.did.runs.get());
        self.faces().iter().map(runs).sum()
    }

    /// Returns how often its tasks have run, if no result comes before its only open input gives more: no task has work or
    /// waits for a time, and no batch is on its way. `None` otherwise.
    pub(crate) fn runs_at_rest(&self) -> Option<u64> {
        let runs = self.runs()?;
        // A replay has work, or a timer, until it ends.
        let feeds = self.feeds.iter().filter(|inflow| !inflow.feed.has_ended()).count();
        let shared: HashSet<u64> = self.reads.iter().map(|(id, _)| *id).collect();
        let rests = |face: &TaskFace| {
            let row = &face.bell.row;
            row.work() == Work::default() && row.did.timed.get() == 0
        };
        let is_at_rest = feeds + shared.len() == 1
            // A batch that a function is asked about goes in once that has returned.
            && self.feeds.iter().all(|inflow| !inflow.feed.is_held() || inflow.feed.is_asking_here())
            && self.outputs.iter().filter_map(|output| output.results.as_ref()).all(Results::is_empty)
            && self.faces().iter().all(rests);
        is_at_rest.then_some(runs)
    }
}
