//! A plan cut into stages, to run on many machines: within a stage, each of them runs on its own.
//!
//! An operator with state needs all rows of a key in one place. Where rows are not yet partitioned so, the plan is cut before
//! it: what comes before becomes a stage of its own, and its rows are partitioned anew. Stateless operators stay where their
//! rows are. So a plan is cut as rarely as its keys allow.
//!
//! STAGE-1. A stage reads streams of the plan and rows of stages before it, each partitioned in a way that every one of its
//!     operators can work with: it may run on any part of them. Rows that two sides of an operator need by different keys
//!     come in once for each.
//! STAGE-2. The rows that leave all parts of a stage are those of one run over everything.
//! STAGE-3. Rows that cross a cut keep their event time. No row of a stage is late, if rows are put in order of that time.
//! STAGE-4. Where rows are judged by the order in which they came, each carries the watermark just before it, as a column of
//!     its own, up to the first operator with state. There they are put in order of that, and none is judged by another one.
//!
//! - [`cutter`]: which operator runs in which stage; [`carried`]: the columns that rows carry across a cut

mod carried;
mod cutter;

use arrow_schema::{Schema, SchemaRef};
use penstock_expr::Expr;
use penstock_types::PlanError;

use crate::expression::passed;
use crate::outputs::Outputs;
use crate::plan::Plan;
use carried::{COMPUTED_KEY, WATERMARK, computed, with_columns_of};
use cutter::{Cut, StageCutter};

/// How rows are spread over the parts of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Any row may be anywhere.
    Unpartitioned,
    /// Rows with the same values of these columns are together.
    ByKey(Vec<String>),
    /// All of them are together. Operators without a key keep sums and not rows, so a stage like this may also run on
    /// any part of them, if all states are merged then.
    Together,
}

impl Distribution {
    /// How the same rows are spread after a step, where columns may have other names; `None` is the name of one that is
    /// gone.
    fn renamed(&self, name: impl Fn(&str) -> Option<String>) -> Self {
        let Self::ByKey(columns) = self else { return self.clone() };
        let renamed = columns.iter().map(|column| name(column)).collect::<Option<_>>();
        renamed.map_or(Self::Unpartitioned, Self::ByKey)
    }

    /// Whether rows with the same keys are together.
    fn keeps_together(&self, keys: &[Expr]) -> bool {
        match self {
            Self::Unpartitioned => false,
            Self::ByKey(columns) => {
                !columns.is_empty() && columns.iter().all(|column| passed(keys, column).is_some())
            }
            Self::Together => true,
        }
    }
}

/// Where the rows of a stage come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageOrigin {
    /// A stream of the plan.
    Stream(String),
    /// An output of another stage: its number, and the name of the output.
    Stage(usize, String),
}

/// What a stage reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageInput {
    /// The name of the stream that it is in the plan of the stage.
    pub stream: String,
    /// Where its rows come from.
    pub origin: StageOrigin,
    /// How they have to be spread.
    pub spread: Distribution,
    /// The column that they have to be put in order by (STAGE-3), if any.
    pub time: Option<String>,
    /// By how many ticks the watermark follows the largest time.
    pub delay: i64,
    /// The column with the watermark before each row (STAGE-4), which is filled where a stream comes in.
    pub watermark: Option<String>,
    /// Their columns.
    pub schema: SchemaRef,
}

/// A plan that runs on any part of its input.
#[derive(Debug)]
pub struct PlanStage {
    /// What it reads.
    pub inputs: Vec<StageInput>,
    /// What it does: an output for each stage that reads it, and for each output of the plan that it makes.
    pub outputs: Outputs,
}

/// A plan in stages, each after those that it reads.
#[derive(Debug)]
pub struct Stages {
    /// The stages.
    pub stages: Vec<PlanStage>,
    /// The stage and the output that each output of the plan comes from, in order.
    pub results: Vec<(usize, String)>,
}

impl Outputs {
    /// Cuts the plans into stages. Where rows are ordered, which of them are late is judged by the order in which they
    /// came (STAGE-4); otherwise none is.
    ///
    /// # Errors
    /// A plan whose answer depends on where its rows come together: by the clock, or with functions that return
    /// watermarks. A plan whose late rows cannot be told, if rows are ordered.
    pub fn stages(&self, is_ordered: bool) -> Result<Stages, PlanError> {
        let graph = self.graph();
        for node in graph.nodes() {
            if let Some(what) = node.step().why_one_machine() {
                return Err(refused(what, OTHERS));
            }
            check_names(node.schema())?;
        }
        let mut cuts = StageCutter::cut(&graph, is_ordered)?;
        let mut results = Vec::new();
        for ((name, _), &root) in self.plans().iter().zip(graph.roots()) {
            let stage = cuts.add_result(root, name);
            results.push((stage, name.clone()));
        }
        let stages = cuts.drafts.into_iter().map(|cut: Cut| {
            let outputs = cut.outputs.iter().map(|(name, node, keys)| {
                // Readers of a result did not ask for watermarks.
                let is_result = results.iter().any(|(_, result)| result == name);
                let root = &cut.nodes[node];
                let root =
                    if is_result { with_columns_of(root, &graph.nodes()[*node])? } else { root.clone() };
                let plan = Plan::from(root);
                let computed = keys.as_deref().map(computed).unwrap_or_default();
                let plan = if computed.is_empty() { plan } else { plan.with_columns(computed)? };
                Ok((name.clone(), plan))
            });
            let outputs = outputs.collect::<Result<Vec<_>, PlanError>>()?;
            Ok(PlanStage { inputs: cut.inputs, outputs: Self::new(outputs)? })
        });
        Ok(Stages { stages: stages.collect::<Result<_, PlanError>>()?, results })
    }
}

const LATE: &str = "on several machines it cannot be told which of them come late; leave order_by= out";
const OTHERS: &str = "on several machines at a time the answer would be another each time";

fn refused(what: &str, why: &str) -> PlanError {
    PlanError::Invalid(format!("{what}: {why}"))
}

/// Refuses columns whose names are taken by those that rows have only between two stages.
fn check_names(schema: &Schema) -> Result<(), PlanError> {
    let taken = |name: &str| name == WATERMARK || name.starts_with(COMPUTED_KEY);
    match schema.fields().iter().find(|field| taken(field.name())) {
        Some(field) => Err(PlanError::Invalid(format!(
            "column {:?}: on several machines this name is needed for what goes along with the rows; rename it",
            field.name()
        ))),
        None => Ok(()),
    }
}
