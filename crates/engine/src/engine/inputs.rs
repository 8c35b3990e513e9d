//! The inputs of a query, matched with the streams of its plan.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, closest};

use super::Input;
use crate::clock;
use crate::error::StartError;
use crate::plan::{Outputs, StreamStep, WatermarkFunction, Watermarks};
use crate::tasks::feed::FeedEnd;
use crate::tasks::readers::SourceReader;
use crate::tasks::readers::push::PushReader;
use crate::tasks::readers::replay::{Replay, ReplayReader};

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

/// Makes a reader of a stream, with the function that gives its watermarks.
fn marked(
    mut reader: impl SourceReader + 'static,
    marker: Option<&Arc<dyn WatermarkFunction>>,
) -> Result<Box<dyn SourceReader>, StartError> {
    reader.watermark_by(marker).map_err(|error| StartError::Outside { what: "watermark function", error })?;
    Ok(Box::new(reader))
}

/// Makes a reader of a feed.
pub(super) fn push_reader(
    end: FeedEnd,
    marker: Option<&Arc<dyn WatermarkFunction>>,
) -> Result<Box<dyn SourceReader>, StartError> {
    marked(PushReader::new(end), marker)
}

/// Makes a reader of a replay.
pub(super) fn replay_reader(
    replay: Replay,
    marker: Option<&Arc<dyn WatermarkFunction>>,
) -> Result<Box<dyn SourceReader>, StartError> {
    marked(ReplayReader::new(replay, clock::system()), marker)
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
