//! The rows that came too late for the window before.

use std::sync::Arc;

use penstock_types::{PlanError, Tick};
use serde_json::Value;

use super::single;
use crate::bound::Bound;
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, comparable};
use crate::text::{NoFields, StepReader, fields, written};

/// The late rows of an operator, with the columns that it reads.
#[derive(Clone, Debug, PartialEq)]
pub struct LateStep;

impl Plan {
    /// The rows that came too late for the window at the end of the plan.
    pub fn late(&self) -> Result<Self, PlanError> {
        let mut node = self.root();
        while !node.step().is_stateful() {
            match (node.step().form(), node.inputs()) {
                (Form::Stage, [input]) => node = input,
                _ => {
                    return Err(PlanError::Invalid(
                        "split_late() belongs behind a window: only there a row can be late".to_owned(),
                    ));
                }
            }
        }
        Self::of(LateStep, vec![Arc::clone(node)])
    }
}

impl Step for LateStep {
    comparable!();

    fn name(&self) -> &'static str {
        "late"
    }

    fn form(&self) -> Form {
        Form::LateRows
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let operator = single(inputs);
        let [input] = operator.inputs() else {
            return Err(PlanError::Invalid(format!(
                "split_late() belongs behind a window of one stream; a {} has two, whose rows differ",
                operator.step().name()
            )));
        };
        Ok(StepOutput { schema: Arc::clone(input.schema()), time: None })
    }

    fn describe(&self, _tick: Tick) -> String {
        "rows that came too late".to_owned()
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        written(self.name(), NoFields {})
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        Vec::new()
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        false
    }

    fn why_one_machine(&self) -> Option<&'static str> {
        Some("late rows are an output")
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        Ok(Bound::of(scope))
    }

    fn make(&self, _bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Nothing)
    }
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    fields::<NoFields>(text)?;
    let [plan] = from.inputs()?;
    plan.late()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{counted, events};

    #[test]
    fn late_rows_have_the_columns_of_the_input_and_no_time() {
        let late = counted(&events("a")).late().unwrap();
        assert_eq!((late.schema(), late.time()), (events("a").schema(), None));
        assert_eq!(late.root().step().describe(Tick::Plain), "rows that came too late");
        assert_eq!(Plan::from_json(&late.to_json().unwrap()).unwrap(), late);
        let (mut scope, step) = (Scope::new(late.schema(), None), late.root().step());
        let bound = step.bind(&mut scope, 0).unwrap();
        assert!(matches!(step.make(&[bound], &Resources::default()), Ok(Made::Nothing)));
    }

    #[test]
    fn only_behind_a_window_rows_are_late() {
        let error = events("a").late().unwrap_err().to_string();
        assert!(error.contains("split_late() belongs behind a window: only there"), "{error}");
        let windows = counted(&counted(&events("a")).late().unwrap().declaration().unwrap());
        assert!(windows.late().is_ok());
    }
}
