//! The questions that every step of a plan answers.
//!
//! A step is one type that implements [`Step`], in one file of [`steps`](crate::steps). Whatever asks about a step asks here:
//! nothing matches over the steps there are.
//!
//! STEP-1. A step is immutable, and knows its inputs only when it is asked: the same step can be put over other inputs.
//! STEP-2. [`Step::bind`] assigns slots and decides everything; [`Step::make`] is pure and may be called once per
//!     instance, with the same bounds each time.
//!
//! - [`node`]: a step over its inputs; [`graph`]: all steps that some outputs need

mod graph;
mod node;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_expr::Expr;
use penstock_types::{PlanError, Tick};

pub use graph::Graph;
pub use node::Node;

use crate::bound::Bound;
use crate::function::Function;
use crate::made::Made;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::stream::StreamStep;
use crate::table::KeyedTable;
use crate::time::EventTime;
use crate::window::WindowKind;

/// What part a step plays when a plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rows come in.
    Source,
    /// It changes runs in place, without state.
    Stage,
    /// It takes runs in and gives others out: an operator with state, or a function.
    Operator,
    /// The rows of its inputs go on as they are.
    Union,
    /// The rows that the operator before it finds late.
    LateRows,
}

/// Which times the rows behind a step have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Those of the rows that come in.
    Kept,
    /// Those of results: the last tick of each of these windows.
    WindowEnds(WindowKind),
    /// Any.
    Any,
}

/// How the rows of a step may be spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// Any row may be anywhere: the step keeps nothing.
    Unpartitioned,
    /// Rows with equal keys are together: the keys of each port, compared one by one. Without a key, all rows are.
    ByKey(Vec<Vec<Expr>>),
}

/// What leaves a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    /// The columns.
    pub schema: SchemaRef,
    /// The event time of the rows, when it is known.
    pub time: Option<EventTime>,
}

/// One step of a plan.
pub trait Step: Any + fmt::Debug + Send + Sync {
    /// Returns the name of the step, which is that of its operator in reports.
    fn name(&self) -> &'static str;

    /// Returns what part it plays.
    fn form(&self) -> Form;

    /// Returns whether another step is of the same kind and does the same.
    fn is_same(&self, other: &dyn Step) -> bool;

    /// Returns what leaves the step when it reads these inputs, or why it cannot.
    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError>;

    /// Describes what it does, in one line or several; durations are in ticks of that unit.
    fn describe(&self, tick: Tick) -> String;

    /// Writes the step as a JSON object. Functions cannot be written: they are added to `functions`, and known by number.
    fn write(&self, functions: &mut Vec<Function>) -> Result<String, PlanError>;

    /// Lists the columns of an input that the step itself reads. All of them pass a step that [`passes`](Self::passes)
    /// them whether it reads them or not.
    fn reads(&self, port: usize, input: &Node) -> Vec<String>;

    /// Returns the name behind the step of a column of its input, if it passes unchanged.
    fn passes(&self, _column: &str) -> Option<String> {
        None
    }

    /// Returns the step that also passes that column of its input, if there is one: it is the first column then.
    fn carrying(self: Arc<Self>, column: &str) -> Option<Arc<dyn Step>>;

    /// Returns whether a row may be rejected by it.
    fn may_fail(&self) -> bool;

    /// Returns whether it computes the same for the same rows, and nothing but that: so it may run again, or not at all.
    fn is_pure(&self) -> bool {
        true
    }

    /// Returns how its rows may be spread.
    fn partitioning(&self) -> Partitioning {
        Partitioning::Unpartitioned
    }

    /// Returns why only one worker may run it, if so.
    fn why_one_worker(&self) -> Option<&'static str> {
        None
    }

    /// Returns why the partial states of several workers cannot be merged, if so.
    fn why_not_merged(&self) -> Option<&'static str> {
        None
    }

    /// Returns what makes the answer another one on several machines, if anything does.
    fn why_one_machine(&self) -> Option<&'static str> {
        None
    }

    /// Returns what goes by the clock, if anything does: a run that pauses cannot keep it.
    fn why_no_pause(&self) -> Option<&'static str> {
        None
    }

    /// Returns which times the rows behind it have.
    fn times(&self) -> Times {
        Times::Any
    }

    /// Returns its windows, and for how many ticks after their end they still take rows in.
    fn windows(&self) -> Option<(WindowKind, i64)> {
        None
    }

    /// Returns after how many nanoseconds without a row its windows close by the clock.
    fn closes_after_ns(&self) -> Option<u64> {
        None
    }

    /// Says how the time column was lost at this step, given what leaves it.
    fn why_time_lost(&self, column: &str, output: &SchemaRef) -> &'static str {
        match output.fields().find(column) {
            Some(_) => "replaced by another of that name: give that one another name",
            None => "dropped: keep it",
        }
    }

    /// Binds the step to the slots of a scope, at one of its ports. A stage moves the scope on to the columns behind it.
    fn bind(&self, scope: &mut Scope, port: usize) -> Result<Bound, PlanError>;

    /// Makes what runs: one instance of it.
    fn make(&self, bounds: &[Bound], resources: &Resources) -> Result<Made, PlanError>;

    /// Returns how its rows come in, if they do here.
    fn as_stream(&self) -> Option<&StreamStep> {
        None
    }

    /// Returns the function that it calls with batches, if it calls one.
    fn function(&self) -> Option<&Function> {
        None
    }

    /// Returns the table in which it looks rows up, if it does.
    fn table(&self) -> Option<&KeyedTable> {
        None
    }

    /// Returns itself, for a caller that knows its type.
    fn as_any(&self) -> &dyn Any;
}

impl dyn Step {
    /// The name of a stream: its own, or that of all streams without one.
    pub fn stream_name(&self) -> Option<&str> {
        self.as_stream().map(StreamStep::data_name)
    }

    /// The keys of each port, if rows with equal ones have to be together.
    pub fn keys(&self) -> Option<Vec<Vec<Expr>>> {
        match self.partitioning() {
            Partitioning::Unpartitioned => None,
            Partitioning::ByKey(keys) => Some(keys),
        }
    }

    /// Whether it keeps rows, so that what leaves it are results and not the rows that came in.
    pub fn is_stateful(&self) -> bool {
        self.partitioning() != Partitioning::Unpartitioned
    }

    /// Whether it corrects results that it has given out.
    pub fn corrects(&self) -> bool {
        self.windows().is_some_and(|(_, lateness)| lateness > 0)
    }
}

/// Answers [`Step::is_same`] and [`Step::as_any`] for a type with `PartialEq`.
macro_rules! comparable {
    () => {
        fn is_same(&self, other: &dyn $crate::step::Step) -> bool {
            other.as_any().downcast_ref::<Self>() == Some(self)
        }

        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    };
}
pub(crate) use comparable;
