//! Several plans that run as one query: what they share is computed once.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, Tick};

use crate::function::{Function, Watermarks};
use crate::plan::Plan;
use crate::step::{Graph, Step};

/// What the only output is called.
pub const RESULT: &str = "result";

/// Plans by name, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    plans: Vec<(String, Plan)>,
}

impl Outputs {
    /// Returns the columns that batches of a stream must have, by its name.
    pub fn stream_schema(&self, name: &str) -> Option<SchemaRef> {
        let graph = self.graph();
        let mut streams = graph.nodes().iter().filter_map(|node| node.step().as_stream());
        streams.find(|stream| stream.data_name() == name).map(|stream| Arc::clone(&stream.schema))
    }

    /// Puts plans together, each under its name.
    pub fn new(plans: Vec<(String, Plan)>) -> Result<Self, PlanError> {
        if plans.is_empty() {
            return Err(PlanError::Invalid("there is nothing to run: name at least one stream".to_owned()));
        }
        for (number, (name, _)) in plans.iter().enumerate() {
            if plans[..number].iter().any(|(other, _)| other == name) {
                return Err(PlanError::Invalid(format!("two outputs are named \"{name}\"")));
            }
        }
        let outputs = Self { plans };
        Graph::of(outputs.plans.iter().map(|(_, plan)| plan.root()))?;
        Ok(outputs)
    }

    /// The plans and their names.
    pub fn plans(&self) -> &[(String, Plan)] {
        &self.plans
    }

    /// Collects all steps; the roots are the outputs.
    pub fn graph(&self) -> Graph {
        Graph::of(self.plans.iter().map(|(_, plan)| plan.root()))
            .expect("streams were checked when they came together")
    }

    /// Lists the functions over batches that the plans call.
    pub fn functions(&self) -> Vec<Function> {
        let graph = self.graph();
        graph.nodes().iter().filter_map(|node| node.step().function().cloned()).collect()
    }

    /// Visits the steps that no other plan has.
    pub fn visit_own(&self, visit: &mut dyn FnMut(&dyn Step)) {
        self.plans.iter().for_each(|(_, plan)| plan.visit_own(visit));
    }

    /// Lists the functions that return watermarks of the streams.
    pub fn watermark_functions(&self) -> Vec<Watermarks> {
        let graph = self.graph();
        let streams = graph.nodes().iter().filter_map(|node| node.step().as_stream());
        let functions = streams.filter_map(|stream| stream.watermark.clone());
        functions.filter(|watermarks| matches!(watermarks, Watermarks::Function(_))).collect()
    }

    /// Lists the columns of each output.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &SchemaRef)> {
        self.plans.iter().map(|(name, plan)| (name.as_str(), plan.schema()))
    }

    /// Returns the unit of event time of the first stream that has one.
    pub fn tick(&self) -> Option<Tick> {
        self.graph().nodes().iter().find_map(|node| node.time().map(|time| time.tick))
    }
}

impl From<&Plan> for Outputs {
    fn from(plan: &Plan) -> Self {
        Self { plans: vec![(RESULT.to_owned(), plan.clone())] }
    }
}
