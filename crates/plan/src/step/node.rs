//! A step over its inputs.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, Tick};

use super::{Form, Step, StepOutput};
use crate::bound::Bound;
use crate::scope::Scope;
use crate::time::EventTime;

/// One step of a plan and everything before it.
#[derive(Debug)]
pub struct Node {
    step: Arc<dyn Step>,
    inputs: Vec<Arc<Node>>,
    output: StepOutput,
}

impl Node {
    /// Puts a step over these inputs, if they fit.
    pub fn new(step: Arc<dyn Step>, inputs: Vec<Arc<Self>>) -> Result<Arc<Self>, PlanError> {
        let output = step.output(&inputs)?;
        Ok(Arc::new(Self { step, inputs, output }))
    }

    /// The step.
    pub fn step(&self) -> &dyn Step {
        &*self.step
    }

    /// The step, to be put over other inputs.
    pub fn shared_step(&self) -> &Arc<dyn Step> {
        &self.step
    }

    /// The nodes that it reads.
    pub fn inputs(&self) -> &[Arc<Self>] {
        &self.inputs
    }

    /// The columns of the rows that leave it.
    pub fn schema(&self) -> &SchemaRef {
        &self.output.schema
    }

    /// The event time of the rows that leave it, when it is known.
    pub fn time(&self) -> Option<&EventTime> {
        self.output.time.as_ref()
    }

    /// The unit in which its durations are: that of the time that it goes by.
    pub fn tick(&self) -> Tick {
        let time = self.inputs.first().map_or(self.time(), |input| input.time());
        time.map_or(Tick::Plain, |time| time.tick)
    }

    /// Binds the step to a scope, at one of its ports. Behind a stage, the scope has the columns that leave it.
    pub fn bind(&self, scope: &mut Scope, port: usize) -> Result<Bound, PlanError> {
        let mut bound = self.step.bind(scope, port)?;
        bound.results.schema = Arc::clone(self.schema());
        bound.results.time = self.time().cloned();
        if self.step.form() == Form::Stage {
            scope.enter(self.schema());
        }
        Ok(bound)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A long plan is a long list: dropped one by one, or the stack would not hold it.
        let mut left = std::mem::take(&mut self.inputs);
        while let Some(node) = left.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                left.append(&mut node.inputs);
            }
        }
    }
}
