//! A plan, compiled: tasks over runs, with edges between them.
//!
//! A *task* is what runs without a pause: rows from the source or from an edge pass stateless operators as selections,
//! perhaps a window, and leave by the next edge. The sink behind the last edge makes Arrow of them. One thread runs all
//! tasks of a pipeline in turn, a run at a time, so that a block is read while it is still in the cache.

mod assemble;
mod chain;
mod compile;
mod outlet;
mod sink;
mod source;
mod task;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::Coordinator;
use penstock_queue::gate::Gate;
use penstock_types::Tick;

use crate::error::{RunError, StartError};
use crate::options::RunOptions;
use crate::output::{OperatorReport, Output};
use crate::plan::Plan;
use assemble::Assembler;
pub use sink::Deliver;
use sink::Sink;
use source::Source;
use task::{Input, Step, Task};

/// How long a pipeline without room sleeps at most before it looks at `stop` again.
const NAP: Duration = Duration::from_millis(20);

/// A plan that is ready to run, once.
pub struct Pipeline {
    tasks: Vec<Task>,
    sink: Sink,
    collected: Option<Collected>,
    coordinator: Coordinator,
    gate: Arc<Gate>,
    tick: Option<Tick>,
    schema: SchemaRef,
    /// Set while a step is taken, and left so by one that fails: rows may be missing then.
    failed: bool,
}

/// Keeps every batch, for whoever wants the whole result at the end.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<RecordBatch>>>);

impl Deliver for Collected {
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        None
    }
}

impl Pipeline {
    /// Compiles a plan.
    pub fn new(plan: &Plan) -> Result<Self, StartError> {
        Self::with_options(plan, &RunOptions::default())
    }

    /// Compiles a plan to be run in a certain way, with the whole result at the end.
    pub fn with_options(plan: &Plan, options: &RunOptions) -> Result<Self, StartError> {
        let collected = Collected::default();
        let mut pipeline = Self::delivering(plan, options, Box::new(collected.clone()))?;
        pipeline.collected = Some(collected);
        Ok(pipeline)
    }

    /// Compiles a plan whose results go to `deliver` batch by batch, as they come. One that takes none holds the
    /// pipeline up, and with it whoever pushes.
    pub fn delivering(
        plan: &Plan,
        options: &RunOptions,
        deliver: Box<dyn Deliver>,
    ) -> Result<Self, StartError> {
        let started = Instant::now();
        let coordinator = Coordinator::new(options.coordinator())?;
        let gate = Arc::new(Gate::new());
        let compiled = compile::compile(plan, options, started)?;
        let assembler =
            Assembler { options, coordinator: &coordinator, wake: Arc::clone(&gate) as _, started };
        let (tasks, sink) = assembler.assemble(compiled, plan.schema(), deliver)?;
        let (tick, schema) = (plan.tick(), Arc::clone(plan.schema()));
        Ok(Self { tasks, sink, collected: None, coordinator, gate, tick, schema, failed: false })
    }

    fn source(&mut self) -> &mut Source {
        let Input::Source(source) = &mut self.tasks[0].input else {
            unreachable!("the first task has the source")
        };
        source
    }

    /// Takes a batch in, and does everything that can be done about it. Gives up between two runs once `stop` is set.
    pub fn push(&mut self, batch: &RecordBatch, stop: &AtomicBool) -> Result<(), RunError> {
        if self.failed {
            return Err(RunError::Failed);
        }
        self.failed = true;
        let Task { input: Input::Source(source), head, .. } = &mut self.tasks[0] else {
            unreachable!("the first task has the source")
        };
        source.open(&mut head.run, batch)?;
        loop {
            if self.turn(stop, false)? {
                continue;
            }
            if !self.source().has_rows() {
                break;
            }
            self.make_room()?;
        }
        self.failed = false;
        Ok(())
    }

    /// Call it when no batch is at hand: results that wait for more of their kind are handed out to whoever takes them
    /// as they come, and memory that a burst has left behind is given back.
    pub fn idle(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        if self.failed {
            return Err(RunError::Failed);
        }
        if self.collected.is_none() {
            self.failed = true;
            while self.turn(stop, true)? {}
            self.sink.flush()?;
            self.failed = false;
        }
        self.tasks.iter_mut().for_each(|task| task.outlet.trim());
        Ok(())
    }

    /// Runs every task once, first to last. Whether any of them did something.
    fn turn(&mut self, stop: &AtomicBool, hurry: bool) -> Result<bool, RunError> {
        if stop.load(Ordering::Relaxed) {
            return Err(RunError::Stopped);
        }
        let mut worked = false;
        for task in &mut self.tasks {
            worked |= task.step()? == Step::Worked;
        }
        worked |= self.sink.step(hurry)? == Step::Worked;
        Ok(worked)
    }

    /// There is work, and no task has room for it: waits a little until that may have changed.
    ///
    /// Memory that is under way comes soon. Otherwise only the sink can make room here: from rows that it would rather
    /// have left, to be handed out with others. If not that, somebody outside has to move.
    fn make_room(&mut self) -> Result<(), RunError> {
        let comes = self.tasks.iter().any(|task| task.outlet.is_waiting_for_memory()) && self.gate.wait(NAP);
        if !comes && self.sink.step(true)? != Step::Worked {
            self.gate.wait(NAP);
        }
        Ok(())
    }

    /// Who to wake when a [`Deliver`] that gave a batch back may take it now.
    pub fn wake(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Ends the input: closes every window and hands the results out.
    pub fn finish(mut self, stop: &AtomicBool) -> Result<Output, RunError> {
        if self.failed {
            return Err(RunError::Failed);
        }
        self.source().end();
        while !self.sink.is_done() {
            if !self.turn(stop, true)? {
                self.make_room()?;
            }
        }
        Ok(self.output())
    }

    fn output(mut self) -> Output {
        let to_window = self.tasks.iter().position(|task| task.window.is_some());
        let counted = &self.tasks[..to_window.map_or(self.tasks.len(), |last| last + 1)];
        let rows_filtered = counted.iter().map(|task| task.head.rows_dropped()).sum();
        let late = counted.last().expect("there is a task").late();
        let window = to_window.and_then(|number| self.tasks[number].window.as_ref());
        let rows_reached = window.map_or(self.sink.profile.rows_in, |window| window.profile.rows_in);
        let mut operators: Vec<OperatorReport> = self.tasks.iter().flat_map(Task::reports).collect();
        operators.push(OperatorReport { name: "sink".to_owned(), profile: self.sink.profile.clone() });
        let (rows_in, batches_in) = (self.source().profile.rows_in, self.source().batches());
        let latency = self.sink.latency;
        // What is left then is what the user keeps.
        drop((self.tasks, self.sink));
        let memory = self.coordinator.snapshot();
        let batches = self.collected.take().map_or_else(Vec::new, |collected| {
            std::mem::take(&mut *collected.0.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Output {
            rows_in,
            batches_in,
            schema: self.schema,
            batches,
            rows_contributed: rows_reached - late.rows,
            rows_filtered,
            rows_late: late.rows,
            late_by: late.by,
            tick: self.tick,
            operators,
            memory,
            latency,
        }
    }
}
