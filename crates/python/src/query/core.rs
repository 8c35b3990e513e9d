//! What Python holds of a query, beside the query itself: sources, functions and destinations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use penstock_engine::query::BlockedBy;
use penstock_engine::{Query as Running, Results, Status};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;

use crate::errors::{asked_of_itself, invalid, waits_for_itself};
use crate::output::Output;
use crate::shared::SharedSource;
use crate::sink::{Callback, Destination};
use crate::slot::Slot;

pub(super) struct QueryCore {
    pub(super) query: Running,
    /// The shared sources that it reads. It keeps them, and with them what they have failed with.
    pub(super) sources: Vec<Py<SharedSource>>,
    /// Where each output goes.
    pub(super) destinations: Vec<Destination>,
    /// The function that takes rows that operators had no answer for.
    pub(super) letters: Option<Arc<Callback>>,
    /// The functions that it calls, and the iterators that it reads.
    pub(super) referred: Vec<Arc<Slot>>,
    pub(super) outputs: PyOnceLock<Vec<Py<Output>>>,
    /// The exception that was made of its error, for as long as somebody has it: whoever asks meanwhile gets the same
    /// one, and with it go the frames that it has passed.
    pub(super) made: Mutex<Option<Py<PyWeakrefReference>>>,
}

impl QueryCore {
    /// The functions that take results.
    pub(super) fn callbacks(&self) -> impl Iterator<Item = &Arc<Callback>> {
        let sinks = self.destinations.iter().filter_map(|destination| match destination {
            Destination::Function(callback) => Some(callback),
            _ => None,
        });
        sinks.chain(&self.letters)
    }

    pub(super) fn status(&self) -> Status {
        let status = self.query.status();
        if self.callbacks().any(|callback| !callback.has_ended()) {
            return Status::Running;
        }
        match status {
            Status::Finished if self.callbacks().any(|callback| callback.has_failed()) => Status::Failed,
            Status::Finished if self.callbacks().any(|callback| callback.gave_up()) => Status::Stopped,
            status => status,
        }
    }

    /// How long it has been running, or ran, if its tasks did for so many seconds: as long as a function that takes its
    /// results.
    pub(super) fn seconds(&self, of_tasks: f64) -> f64 {
        self.callbacks().map(|callback| callback.seconds()).fold(of_tasks, f64::max)
    }

    /// Whether it has ended before `timeout` was over.
    pub(super) fn has_ended(&self, timeout: Duration) -> bool {
        self.query.wait(timeout) && self.callbacks().all(|callback| callback.wait(timeout))
    }

    pub(super) fn results(&self, py: Python<'_>, output: usize) -> PyResult<&Results> {
        let results = match self.destinations.get(output) {
            Some(Destination::Results) => self.query.results_of(output),
            _ => None,
        };
        results.ok_or_else(|| {
            invalid(
                py,
                "the results of this query go to its sink; only those of a query without sink= can be read",
            )
        })
    }

    /// What it waits for, if it does, as people read it.
    pub(super) fn blocked_by(&self) -> Option<String> {
        let sources = self.sources.iter().filter_map(|source| source.get().running());
        let blocked = self.query.blocked_by(sources)?;
        Some(match blocked {
            BlockedBy::Output(output) => {
                let taker = match self.destinations.get(output) {
                    Some(Destination::Function(_)) => "sink",
                    _ => "reader",
                };
                match self.query.outputs().nth(output) {
                    Some((name, _)) if self.destinations.len() > 1 => format!("{taker} of \"{name}\""),
                    _ => taker.to_owned(),
                }
            }
            other => other.to_string(),
        })
    }

    /// Refuses to wait on the thread that is waited for.
    pub(super) fn check_thread(&self, py: Python<'_>) -> PyResult<()> {
        let is_task = self.query.is_run_here();
        if is_task || self.callbacks().any(|callback| callback.is_this_thread()) {
            return Err(waits_for_itself(py, is_task));
        }
        let sources = self.sources.iter().filter_map(|source| source.get().running());
        if self.query.is_asking_here(sources) {
            return Err(asked_of_itself(py));
        }
        Ok(())
    }
}
