//! From a plan to its graph: the passes, one after the other.

use arrow_schema::SchemaRef;
use penstock_plan::Outputs;
use penstock_types::PlanError;

use crate::chain::chain;
use crate::graph::TaskGraph;
use crate::judging::judge;
use crate::layout::lay_out;
use crate::options::Chaining;
use crate::order::{Pieces, order};
use crate::request::GraphRequest;
use crate::spread::{Spread, spread};
use crate::strands::Strands;

impl TaskGraph {
    /// Makes the graph of some plans.
    pub fn of(outputs: &Outputs, request: &GraphRequest) -> Result<Self, PlanError> {
        let GraphRequest { chaining, spreading, keeps_rejected, ref shared } = *request;
        let mut strands = Strands::of(outputs, keeps_rejected)?;
        let mut shared = shared.clone();
        shared.resize(strands.streams.len(), None);
        let is_shared: Vec<bool> = shared.iter().map(Option::is_some).collect();
        let spreads = spread(&strands, spreading, chaining == Chaining::Auto, &is_shared);
        strands.exchange(|operator| spreads[operator] == Spread::Exchanged);
        let names = outputs.schemas().map(|(name, schema)| (name.to_owned(), SchemaRef::clone(schema)));
        let names: Vec<(String, SchemaRef)> = names.collect();
        let drafts = chain(&strands, names.len(), chaining, &is_shared, (&spreads, spreading));
        let layout = lay_out(&mut strands, &drafts, &shared);
        let judged = judge(&strands, &drafts, &layout);
        let sources = shared.iter().map(|shared| shared.as_ref().map(|shared| shared.source)).collect();
        let pieces = Pieces { strands: &strands, spreads: &spreads, drafts, layout, judged, shared };
        let (tasks, edges) = order(pieces, spreading, &names);
        let tick = outputs.tick();
        Ok(Self {
            strands,
            spreads,
            spreading,
            chaining,
            shared: sources,
            outputs: names,
            tick,
            tasks,
            edges,
        })
    }
}
