//! The inputs of a query, matched with the streams of its plan.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, closest};

use super::{Engine, Input};
use crate::clock;
use crate::error::StartError;
use crate::pipeline::Origin;
use crate::plan::{Outputs, StreamStep, WatermarkFunction, Watermarks};
use crate::query::Query;
use crate::query::state::Inflow;
use crate::tasks::feed::FeedEnd;
use crate::tasks::readers::SourceReader;
use crate::tasks::readers::push::PushReader;
use crate::tasks::readers::replay::{Replay, ReplayReader};
use crate::tasks::shared::Lag;

/// The inputs of a query, about to be put together.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) origins: Vec<Origin>,
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
    ) -> Result<Opened, StartError> {
        let mut opened = Opened::default();
        for (stream, schema, input) in in_order(outputs, inputs)? {
            let marker = || marker(&stream, watermarks);
            opened.origins.push(match input {
                Input::Feed(end) => {
                    opened.feeds.push(Inflow::outside(&end));
                    Origin::Own(push_reader(end, marker())?)
                }
                Input::Chained(end, query) => {
                    opened.feeds.push(self.inflow(&end, &query));
                    Origin::Own(push_reader(end, marker())?)
                }
                Input::Replay(replay) => Origin::Own(replay_reader(replay, marker())?),
                Input::Shared(source, on_lag) => {
                    source.stream.check(&stream, &schema)?;
                    let joined = source.join(on_lag);
                    if let Err(StartError::SourceEnded { .. }) = joined {
                        self.check(None)?; // the source is gone because the engine is
                    }
                    let (reader, lag) = joined?;
                    opened.lagging.push(Arc::clone(&lag));
                    Origin::Shared { reader, stream: Arc::clone(&source.stream), lag, id: source.state.id }
                }
            });
        }
        Ok(opened)
    }

    /// What is known of a feed that gets the results of `query`: of this engine, or of another one.
    pub(super) fn inflow(&self, end: &FeedEnd, query: &Query) -> Inflow {
        let is_ours = query.state.engine == self.0.core().number;
        Inflow { feed: end.handle(), upstream: is_ours.then_some(query.state.id) }
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
