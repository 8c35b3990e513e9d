//! Plans that run to their end, without anybody beside them: for tests and benches.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;

use super::{Engine, Input, Sink};
use crate::clock;
use crate::error::{RunError, StartError};
use crate::options::EngineOptions;
use crate::output::Output;
use penstock_plan::Plan;
use penstock_tasks::feed::{FEED_BATCHES, Feed, Pushed};

/// How long anybody waits before looking again.
const GLANCE: Duration = Duration::from_millis(20);

impl Engine {
    /// Runs a plan over batches, to its end, on an engine of its own.
    pub fn run(plan: &Plan, options: EngineOptions, batches: &[RecordBatch]) -> Result<Output, RunFailure> {
        let engine = Self::start(options)?;
        let (mut feed, end) = penstock_tasks::feed::feed(FEED_BATCHES, clock::system());
        let query = engine.submit(plan, Input::feed(end), Sink::collect(), None)?;
        for batch in batches {
            if !push(&mut feed, batch.clone()) {
                break;
            }
        }
        drop(feed);
        while !query.wait(GLANCE) {}
        match query.take_output() {
            Some(output) => Ok(output),
            None => Err(RunFailure::Run(query.error().expect("a query ends with an answer or an error"))),
        }
    }
}

/// Pushes a batch, however long that takes. Whether the query has taken it.
pub fn push(feed: &mut Feed, batch: RecordBatch) -> bool {
    let mut waiting = batch;
    loop {
        match feed.push(waiting, GLANCE) {
            Pushed::Taken => return true,
            Pushed::Full(back) => waiting = back,
            Pushed::Ended | Pushed::Cut | Pushed::Itself | Pushed::Failed(_) | Pushed::Unfit(_) => {
                return false;
            }
        }
    }
}

/// Why [`Engine::run`] gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunFailure {
    /// It could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It failed.
    #[error(transparent)]
    Run(Arc<RunError>),
}
