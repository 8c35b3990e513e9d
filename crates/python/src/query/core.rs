//! The Python objects that belong to a query: its sources, functions and destinations.

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
    /// The shared sources that it reads. It keeps them alive, and with them their errors.
    pub(super) sources: Vec<Py<SharedSource>>,
    /// Where each output goes.
    pub(super) destinations: Vec<Destination>,
    /// The function that receives rows that operators have rejected.
    pub(super) letters: Option<Arc<Callback>>,
    /// The functions that it calls, and the iterators that it reads.
    pub(super) referred: Vec<Arc<Slot>>,
    pub(super) outputs: PyOnceLock<Vec<Py<Output>>>,
    /// The exception that was made of its error, as long as a reference to it exists: it is returned again meanwhile,
    /// and the frames that it has passed are freed with it.
    pub(super) made: Mutex<Option<Py<PyWeakrefReference>>>,
}

impl QueryCore {
    /// Returns the functions that take results.
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

    /// Returns how long it has been running, or ran, given the seconds of its tasks: as long as a function that takes
    /// its results.
    pub(super) fn seconds(&self, of_tasks: f64) -> f64 {
        self.callbacks().map(|callback| callback.seconds()).fold(of_tasks, f64::max)
    }

    /// Waits up to `timeout`; returns true if it has ended.
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

    /// Describes what it waits for, if anything.
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

    /// Raises an error on a thread that the wait would depend on.
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
