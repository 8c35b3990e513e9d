//! A plan, compiled: chains of operators over runs.
//!
//! A *chain* is what runs without a pause: a source or the cursor of a window at its head, stateless
//! operators that pass selections, and a window or the sink at its end. A window's results head the
//! next chain.

mod chain;
mod compile;
mod source;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow_array::RecordBatch;
use penstock_types::{PlanError, Tick};

use crate::error::RunError;
use crate::output::{OperatorReport, Output};
use crate::plan::Plan;
use chain::{Chain, End, elapsed_ns};
use source::Source;

/// A plan that is ready to run, once.
pub struct Pipeline {
    source: Source,
    chains: Vec<Chain>,
    tick: Option<Tick>,
    schema: arrow_schema::SchemaRef,
}

impl Pipeline {
    /// Compiles a plan.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        compile::compile(plan, None)
    }

    /// Compiles a plan with so many rows per run, for measurements and tests; at least one.
    pub fn with_rows_per_run(plan: &Plan, rows: usize) -> Result<Self, PlanError> {
        compile::compile(plan, Some(rows.max(1)))
    }

    /// Takes a batch in, run by run. Gives up between two runs once `stop` is set.
    pub fn push(&mut self, batch: &RecordBatch, stop: &AtomicBool) -> Result<(), RunError> {
        let (first, later) = self.chains.split_first_mut().expect("a pipeline has a chain");
        let mut runs = self.source.open(&mut first.run, batch)?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped);
            }
            let started = Instant::now();
            if !self.source.next_run(&mut first.run, &mut runs)? {
                break;
            }
            let rows = first.run.len();
            self.source.profile.record(rows, rows, elapsed_ns(started));
            first.process()?;
            drain(first, later, Some(self.source.watermark()))?;
        }
        first.run.close();
        Ok(())
    }

    /// Ends the input: closes every window and hands the results out.
    pub fn finish(mut self) -> Result<Output, RunError> {
        let mut rest = self.chains.as_mut_slice();
        while let Some((first, later)) = rest.split_first_mut() {
            drain(first, later, None)?;
            rest = later;
        }
        let first = self.chains.first().expect("a pipeline has a chain");
        let (rows_filtered, rows_reached) = first.row_counts();
        let late = first.late();
        let mut operators =
            vec![OperatorReport { name: "stream".to_owned(), profile: self.source.profile.clone() }];
        for chain in &self.chains {
            operators.extend(chain.reports());
        }
        let last = self.chains.pop().expect("a pipeline has a chain");
        let End::Sink(sink) = last.end else { unreachable!("the last chain ends in the sink") };
        Ok(Output {
            schema: self.schema,
            batches: sink.exporter.finish()?,
            rows_in: self.source.profile.rows_in,
            rows_contributed: rows_reached - late.rows,
            rows_filtered,
            rows_late: late.rows,
            late_by: late.by,
            tick: self.tick,
            batches_in: self.source.batches(),
            operators,
        })
    }
}

/// Lets the window at the end of `first` close what the watermark allows (everything without one),
/// and runs its results through the chains behind it.
fn drain(first: &mut Chain, later: &mut [Chain], watermark: Option<i64>) -> Result<(), RunError> {
    let End::Window(window) = &mut first.end else {
        return Ok(());
    };
    match watermark {
        Some(watermark) => window.operator.advance(watermark),
        None => window.operator.finish(),
    }
    let (next, beyond) = later.split_first_mut().expect("a window's results head a chain");
    loop {
        let started = Instant::now();
        let rows = window
            .operator
            .emit(&mut next.run, next.room)
            .map_err(|error| RunError::Compute { operator: "window".to_owned(), error })?;
        if rows == 0 {
            return Ok(());
        }
        window.profile.rows_out += rows as u64;
        window.profile.busy_ns += elapsed_ns(started);
        next.process()?;
        drain(next, beyond, watermark)?;
    }
}
