//! From a graph to what runs: logs, rings, wakers and tasks.
//!
//! The graph says everything that can be known before: this only makes it, task by task in the order in which rows pass them,
//! so that the reader of an edge finds it made. Nothing here decides how a plan is run.
//!
//! - `assembly`: what is known of a query while its tasks are made; `operators`, `lanes`, `sinks`: the kinds of tasks
//! - `inputs`, `outlets`: both ends of an edge; `origin`, `opening`: where a stream comes from, and how it is read
//! - `charges`: the tables of a query, and what they are charged
//! - `shared`: the task of a source that several queries read

mod assembly;
mod charges;
mod inputs;
mod lanes;
mod opening;
mod operators;
mod origin;
mod outlets;
mod shared;
mod sinks;

use std::sync::Arc;

use penstock_graph::{GraphRequest, Spreading, TaskGraph};
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{Coordinator, EdgeWriter, Layout, LogOptions, MemoryKind, OpenError};
use penstock_plan::{Function, Outputs};
use penstock_queue::wake::Wake;
use penstock_scheduler::rows_per_run;

use crate::checkpoint::InputPart;
use crate::error::StartError;
use crate::executors::{Executor, NewTask, TaskInputs, TaskWakers};
use crate::options::RunOptions;
use crate::query::tables::LiveTable;
use assembly::Assembly;
pub(crate) use origin::{Origin, OwnOrigin, SharedOrigin};
use penstock_tasks::account::Account;
use penstock_tasks::rejects::OnError;
use penstock_tasks::results::Results;
use penstock_tasks::writers::SinkWriter;
pub(crate) use shared::SharedStream;

/// The tasks of a query, in the order in which rows pass them, and its account.
pub(crate) struct Assembled {
    pub(crate) tasks: Vec<NewTask>,
    pub(crate) account: Account,
    /// The shared sources that are read, by their number, and the task that reads each.
    pub(crate) reads: Vec<(u64, usize)>,
    /// The tables that rows are looked up in.
    pub(crate) tables: Vec<LiveTable>,
    /// The graph in words. The graph itself would keep functions and tables of the plan alive.
    pub(crate) physical: String,
}

/// How a query is to run.
pub(crate) struct Ways<'a> {
    pub(crate) on_error: OnError,
    /// Where rejected rows go, if they are read.
    pub(crate) letters: Option<&'a Results>,
    /// Workers that one operator may take, and how.
    pub(crate) spreading: Spreading,
    /// The part of the input that it runs over, if that is not all.
    pub(crate) part: Option<&'a InputPart>,
    /// Functions of the plan, each with the one that is called in its place.
    pub(crate) functions: &'a [(Function, Function)],
}

/// Makes tasks.
pub(crate) struct Assembler<'a> {
    pub(crate) options: &'a RunOptions,
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) executor: &'a dyn Executor,
}

impl Assembler<'_> {
    /// Makes the tasks of a query. Streams and outputs are in the order of the plan.
    pub(crate) fn query(
        &self,
        outputs: &Outputs,
        origins: Vec<Box<dyn Origin>>,
        writers: Vec<Box<dyn SinkWriter>>,
        ways: Ways<'_>,
    ) -> Result<Assembled, StartError> {
        let request = GraphRequest {
            chaining: self.options.chain,
            spreading: ways.spreading,
            keeps_rejected: ways.letters.is_some(),
            shared: origins.iter().map(|origin| origin.shared()).collect(),
        };
        let graph = TaskGraph::of(outputs, &request)?;
        for (stream, origin) in graph.strands.streams.iter().zip(&origins) {
            origin.check(stream.step())?;
        }
        let assembly = Assembly::new(self, &graph, origins, writers, ways)?;
        let (tasks, account, tables) = assembly.finish()?;
        Ok(Assembled { tasks, account, reads: graph.shared_reads(), tables, physical: graph.explain() })
    }

    /// Opens the writing end of a log.
    fn writer(&self, layout: Layout, is_result: bool, wake: Arc<dyn Wake>) -> Result<EdgeWriter, OpenError> {
        let chosen = self.options.shape;
        // Results are not read back through a cache: long blocks make long batches, handed out as they are.
        let shape = if is_result && chosen == ShapeOptions::default() {
            ShapeOptions::for_export(&layout)
        } else {
            chosen
        };
        let options = LogOptions { shape, ..LogOptions::default() };
        EdgeWriter::new(self.options.memory, layout, &options, self.coordinator, wake)
    }

    fn rows_per_run(&self, row_bytes: usize) -> usize {
        self.options.rows_per_run.unwrap_or_else(|| rows_per_run(row_bytes)).max(1)
    }

    /// Returns how many rows are worth a wake-up of a sink.
    fn worthwhile_rows(&self, writer: &dyn SinkWriter) -> u64 {
        match self.options.memory {
            MemoryKind::Blocks => writer.worthwhile_rows(),
            MemoryKind::Queue => 1,
        }
    }

    /// Reserves the wakers of a single task with one input.
    fn wakers(&self) -> Result<TaskWakers, StartError> {
        let reserved = self.executor.reserve(&[TaskInputs { inputs: 1, least_rows: 1 }])?;
        Ok(reserved.into_iter().next().expect("the wakers of one task were asked for"))
    }
}
