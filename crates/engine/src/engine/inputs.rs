//! The inputs of a query, matched with the streams of its plan.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, closest};

use super::Engine;
use crate::error::StartError;
use crate::input::{Input, Opening};
use crate::instantiate::Origin;
use crate::query::state::Inflow;
use penstock_plan::{Outputs, StreamStep, WatermarkFunction, Watermarks};
use penstock_tasks::shared::Lag;

/// The inputs of a query, about to be put together.
#[derive(Default)]
pub(super) struct OpenedInputs {
    pub(super) origins: Vec<Box<dyn Origin>>,
    pub(super) lagging: Vec<Arc<Lag>>,
    pub(super) feeds: Vec<Inflow>,
}

impl Engine {
    /// Opens the inputs of a query: asks functions about what is there already, and waits for shared sources to let it in.
    pub(super) fn open(
        &self,
        outputs: &Outputs,
        inputs: Vec<(String, Input)>,
        watermarks: &[(Watermarks, Watermarks)],
    ) -> Result<OpenedInputs, StartError> {
        let mut opened = OpenedInputs::default();
        for (stream, schema, input) in in_order(outputs, inputs)? {
            let (engine, marker) = (self.0.core().number, marker(&stream, watermarks));
            let made = input.open(&Opening { engine, stream: &stream, schema: &schema, marker });
            if let Err(StartError::SourceEnded { .. }) = made {
                self.check(None)?; // the source is gone because the engine is
            }
            let made = made?;
            opened.origins.push(made.origin);
            opened.lagging.extend(made.lag);
            opened.feeds.extend(made.feed);
        }
        Ok(opened)
    }
}

/// Returns the function that gives the watermarks of a stream, if there is one.
pub(super) fn marker<'a>(
    stream: &'a StreamStep,
    replaced: &'a [(Watermarks, Watermarks)],
) -> Option<&'a Arc<dyn WatermarkFunction>> {
    match stream.watermark.as_ref()?.replaced(replaced) {
        Watermarks::Function(function) => Some(function),
        _ => None,
    }
}

/// Returns the inputs in the order in which the plan names its streams.
pub(super) fn in_order(
    outputs: &Outputs,
    mut inputs: Vec<(String, Input)>,
) -> Result<Vec<(StreamStep, SchemaRef, Input)>, StartError> {
    let graph = outputs.graph();
    let names: Vec<&str> = graph.nodes().iter().filter_map(|node| node.step().stream_name()).collect();
    let invalid = |text: String| Err(StartError::Plan(PlanError::Invalid(text)));
    if let Some((unknown, _)) = inputs.iter().find(|(given, _)| !names.contains(&given.as_str())) {
        let hint = closest(unknown, names.iter().copied())
            .map_or(String::new(), |name| format!("; did you mean \"{name}\"?"));
        let all = names.join(", ");
        return invalid(format!(
            "there is data for \"{unknown}\", and no such stream in the plan ({all}){hint}"
        ));
    }
    let mut ordered = Vec::new();
    for node in graph.nodes() {
        let Some(stream) = node.step().as_stream() else { continue };
        let name = stream.data_name();
        let Some(place) = inputs.iter().position(|(given, _)| given == name) else {
            return invalid(format!("there is no data for the stream \"{name}\""));
        };
        ordered.push((stream.clone(), Arc::clone(node.schema()), inputs.swap_remove(place).1));
    }
    match inputs.first() {
        None => Ok(ordered),
        Some((twice, _)) => invalid(format!("there is data for \"{twice}\" twice")),
    }
}
