//! A plan as JSON.
//!
//! Reading a plan goes through the same builders as writing one does, so that text from anywhere gives a plan that can run
//! (PLAN-1) or an error, never something in between.

use penstock_types::PlanError;
use serde::Deserialize;
use serde_json::Value;

use crate::function::Function;
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::step::Graph;
use crate::steps;
use crate::text::{StepReader, bad};

/// Version of the format that is written.
const VERSION: u32 = 2;
/// The first version: streams without names, one step behind the other, tumbling windows only.
const FIRST_VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    penstock_plan: u32,
    steps: Vec<Value>,
    /// The steps that each step reads, by number; each reads the one before it when this is missing.
    #[serde(default)]
    inputs: Option<Vec<Vec<usize>>>,
    /// The outputs by name, and the step that each is; the last step is the only one when this is missing.
    #[serde(default)]
    outputs: Option<Vec<(String, usize)>>,
}

/// The text, and the functions that it names by number.
type Written = (String, Vec<Function>);

fn document(graph: &Graph, outputs: Option<Vec<(String, usize)>>) -> Result<Written, PlanError> {
    let count = graph.nodes().len();
    let mut functions = Vec::new();
    let steps = graph.nodes().iter().map(|node| node.step().write(&mut functions));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    let before = |number: usize| number.checked_sub(1).into_iter().collect::<Vec<_>>();
    let is_line = (0..count).all(|number| graph.inputs(number) == before(number));
    let inputs: Option<Vec<&[usize]>> =
        (!is_line).then(|| (0..count).map(|number| graph.inputs(number)).collect());
    let mut text = format!("{{\"penstock_plan\":{VERSION},\"steps\":[{}]", steps.join(","));
    if let Some(inputs) = inputs {
        text += &format!(",\"inputs\":{}", serde_json::to_string(&inputs).map_err(bad)?);
    }
    if let Some(outputs) = outputs {
        text += &format!(",\"outputs\":{}", serde_json::to_string(&outputs).map_err(bad)?);
    }
    text.push('}');
    Ok((text, functions))
}

/// Returns the text alone, if it says everything.
fn alone((text, functions): Written) -> Result<String, PlanError> {
    match functions.first() {
        None => Ok(text),
        Some(function) => Err(PlanError::Invalid(format!(
            "the plan calls the function {}, which cannot be written as JSON; pickle the plan instead",
            function.0.name()
        ))),
    }
}

/// Every step of a document, and its outputs.
type Built = (Vec<Plan>, Option<Vec<(String, usize)>>);

fn build(text: &str, functions: &[Function]) -> Result<Built, PlanError> {
    let document: Document = serde_json::from_str(text).map_err(bad)?;
    if !(FIRST_VERSION..=VERSION).contains(&document.penstock_plan) {
        let found = document.penstock_plan;
        return Err(bad(format!("it has version {found}, and this engine reads versions up to {VERSION}")));
    }
    let count = document.steps.len();
    let inputs = document
        .inputs
        .unwrap_or_else(|| (0..count).map(|number| number.checked_sub(1).into_iter().collect()).collect());
    if inputs.len() != count {
        return Err(bad(format!("it has {count} steps, and inputs for {}", inputs.len())));
    }
    let mut plans: Vec<Plan> = Vec::new();
    let mut is_read = vec![false; count];
    for (step, inputs) in document.steps.into_iter().zip(inputs) {
        let mut read_plans = Vec::new();
        for input in inputs {
            let Some(plan) = plans.get(input) else {
                return Err(bad("a step reads one that does not stand before it"));
            };
            is_read[input] = true;
            read_plans.push(plan.clone());
        }
        plans.push(steps::read(step, &StepReader { inputs: &read_plans, functions })?);
    }
    if let Some(outputs) = &document.outputs {
        for (name, number) in outputs {
            match is_read.get_mut(*number) {
                Some(is_read) => *is_read = true,
                None => return Err(bad(format!("the output \"{name}\" is a step that it does not have"))),
            }
        }
    } else if let Some(last) = is_read.last_mut() {
        *last = true;
    }
    match is_read.iter().position(|is_read| !is_read) {
        Some(number) => Err(bad(format!("nobody reads step {number}"))),
        None if plans.is_empty() => Err(bad("it has no steps")),
        None => Ok((plans, document.outputs)),
    }
}

impl Plan {
    /// Writes the plan as JSON.
    pub fn to_json(&self) -> Result<String, PlanError> {
        alone(self.to_parts()?)
    }

    /// Writes the plan as JSON, and returns the functions that it calls.
    pub fn to_parts(&self) -> Result<(String, Vec<Function>), PlanError> {
        document(&self.graph(), None)
    }

    /// Reads a plan that was written as JSON.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        Self::from_parts(text, &[])
    }

    /// Reads a plan that was written as JSON, with the functions that it calls.
    pub fn from_parts(text: &str, functions: &[Function]) -> Result<Self, PlanError> {
        match build(text, functions)? {
            (mut plans, None) => Ok(plans.pop().expect("a document without steps is refused")),
            (_, Some(_)) => Err(bad("it has several outputs")),
        }
    }
}

impl Outputs {
    /// Writes the plans as JSON.
    pub fn to_json(&self) -> Result<String, PlanError> {
        alone(self.to_parts()?)
    }

    /// Writes the plans as JSON, and returns the functions that they call.
    pub fn to_parts(&self) -> Result<(String, Vec<Function>), PlanError> {
        let graph = self.graph();
        let names = self.plans().iter().map(|(name, _)| name.clone());
        let outputs = names.zip(graph.roots().iter().copied()).collect();
        document(&graph, Some(outputs))
    }

    /// Reads plans that were written as JSON.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        Self::from_parts(text, &[])
    }

    /// Reads plans that were written as JSON, with the functions that they call.
    pub fn from_parts(text: &str, functions: &[Function]) -> Result<Self, PlanError> {
        let (plans, outputs) = build(text, functions)?;
        let Some(outputs) = outputs else { return Err(bad("it is one plan, without names of outputs")) };
        Self::new(outputs.into_iter().map(|(name, number)| (name, plans[number].clone())).collect())
    }
}
