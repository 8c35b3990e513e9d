//! A pipeline on a worker thread.
//!
//! Whoever has batches pushes them into a bounded queue; the worker pops them. Neither side ever
//! waits for the other without a time limit of the caller's choosing, so that a caller can look at
//! signals (Ctrl-C) in between.
//!
//! J1. The worker ends when the feed is dropped, when the pipeline fails, or when `stop` is called.
//!     A dropped job stops its worker and waits for it: no thread outlives its job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_queue::gate::Gate;
use penstock_queue::ring::{Consumer, Popped, Producer, ring};

use crate::error::RunError;
use crate::output::Output;
use crate::pipeline::Pipeline;

/// Batches that may wait for the worker.
const FEED_BATCHES: usize = 4;
/// Stack of the worker: an expression is evaluated by recursion, and a debug build takes large steps.
const STACK_BYTES: usize = 8 << 20;
/// How long the worker sleeps at most before it looks at `stop` again, in case nobody wakes it.
const NAP: Duration = Duration::from_millis(20);

/// Where batches go in. Dropping it ends the input.
pub struct Feed {
    producer: Producer<RecordBatch>,
}

/// What became of a batch that was pushed.
pub enum Pushed {
    /// The worker has it.
    Taken,
    /// The queue is still full after the time allowed: here it is again.
    Full(RecordBatch),
    /// The worker has ended; its result says why.
    Ended,
}

impl Feed {
    /// Hands a batch over, waiting for room as long as `timeout`.
    pub fn push(&mut self, batch: RecordBatch, timeout: Duration) -> Pushed {
        match self.producer.try_push(batch) {
            Ok(()) => Pushed::Taken,
            Err(batch) => {
                self.producer.wait_for_room(timeout);
                match self.producer.try_push(batch) {
                    Ok(()) => Pushed::Taken,
                    Err(_) if self.producer.is_closed() => Pushed::Ended,
                    Err(batch) => Pushed::Full(batch),
                }
            }
        }
    }
}

struct Shared {
    stop: AtomicBool,
    /// Set once the worker has its result; whoever waits looks here, and sleeps at the gate.
    ended: AtomicBool,
    end: Gate,
}

/// A pipeline at work.
pub struct Job {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<Result<Output, RunError>>>,
}

fn work(
    mut pipeline: Pipeline,
    mut batches: Consumer<RecordBatch>,
    stop: &AtomicBool,
) -> Result<Output, RunError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        match batches.pop() {
            Popped::Value(batch) => pipeline.push(&batch, stop)?,
            Popped::Empty => {
                pipeline.idle(stop)?;
                batches.wait_for_value(NAP);
            }
            Popped::Closed => return pipeline.finish(stop),
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

impl Job {
    /// Starts a worker on `pipeline`.
    pub fn start(pipeline: Pipeline) -> std::io::Result<(Feed, Self)> {
        let (producer, consumer) = ring(FEED_BATCHES);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            end: Gate::new(),
        });
        let theirs = Arc::clone(&shared);
        let worker = thread::Builder::new()
            .name("penstock-worker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| work(pipeline, consumer, &theirs.stop)))
                    .unwrap_or_else(|panic| Err(RunError::Panicked(panic_text(&*panic))));
                theirs.ended.store(true, Ordering::Release);
                theirs.end.signal();
                result
            })?;
        Ok((Feed { producer }, Self { shared, worker: Some(worker) }))
    }

    /// Waits until the worker has ended, or `timeout` is over. Whether it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        let ended = || self.shared.ended.load(Ordering::Acquire);
        if !ended() {
            self.shared.end.wait(timeout);
        }
        ended()
    }

    /// Asks the worker to end soon, without a result.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the worker and takes its result.
    ///
    /// # Panics
    /// Never: the worker catches its own panics, and it is joined once.
    pub fn join(mut self) -> Result<Output, RunError> {
        let worker = self.worker.take().expect("a job is joined once");
        worker.join().unwrap_or_else(|panic| Err(RunError::Panicked(panic_text(&*panic))))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.stop();
            // Its result went with whoever dropped the job.
            let _ = worker.join();
        }
    }
}
