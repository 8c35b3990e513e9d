//! Event time along a plan: why a window finds none, and where it tells no two rows of a window apart.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::PlanError;

use super::step::WindowKind;
use super::{Aggregate, EventTime, Node, Plan, Step};

/// The columns that are times by their type.
fn times_of(schema: &Schema) -> Vec<&str> {
    let is_time = |field: &&Arc<Field>| {
        matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
    };
    schema.fields().iter().filter(is_time).map(|field| field.name().as_str()).collect()
}

/// How to use a computed column as event time.
fn declare_computed(column: &str) -> String {
    format!(
        "\"{column}\" is computed here, and event time is read where rows come in: submit the pipeline up to here as a query of its own, and begin another one with ps.stream(query.schema, time=\"{column}\") and source=query"
    )
}

/// The times that the rows of a node can have: those of a grid.
#[derive(Clone, Copy)]
struct Grid {
    step: i64,
    offset: i64,
    /// The operator whose results they are.
    of: &'static str,
}

impl Grid {
    /// The times of the results of windows: one for each of them. Sessions end anywhere.
    fn of_results(window: WindowKind, of: &'static str) -> Option<Self> {
        let (step, end) = match window {
            WindowKind::Tumbling { size, offset } => (size, offset),
            WindowKind::Sliding { size, slide, offset } => (slide, offset.checked_add(size)?),
            WindowKind::Session { .. } => return None,
        };
        Some(Self { step, offset: end.rem_euclid(step), of })
    }

    /// Whether the times are the same.
    fn is_as(self, other: Self) -> bool {
        (self.step, self.offset) == (other.step, other.offset)
    }

    /// Whether each of these windows has one time of the grid at most.
    fn is_once_in(self, window: WindowKind) -> bool {
        match window {
            WindowKind::Tumbling { size, .. } | WindowKind::Sliding { size, .. } => size <= self.step,
            // Rows belong together when they are less than the gap apart.
            WindowKind::Session { gap } => gap <= self.step,
        }
    }
}

impl Plan {
    /// The times of its rows, if they are on a grid: behind a window, a join or a co-group, as long as no function had
    /// the rows since then.
    fn grid(&self) -> Option<Grid> {
        let graph = self.graph();
        let mut grids: Vec<Option<Grid>> = Vec::new();
        for (number, node) in graph.nodes().iter().enumerate() {
            let mut inputs = graph.inputs(number).iter().map(|&input| grids[input]);
            let name = node.step().name();
            let grid = match node.step() {
                Step::Window(step) => Grid::of_results(step.window, name),
                Step::CoGroup(step) => Grid::of_results(step.window, name),
                Step::Join(step) => Grid::of_results(step.window, name),
                Step::TopK(step) => Grid::of_results(step.window, name),
                Step::Filter(_) | Step::Select(_) | Step::WithColumns(_) | Step::Lookup(_) | Step::Union => {
                    let first = inputs.next().flatten();
                    first.filter(|grid| inputs.all(|other| other.is_some_and(|other| other.is_as(*grid))))
                }
                Step::Stream(_) | Step::Map(_) | Step::Late => None,
            };
            grids.push(grid);
        }
        grids[*graph.roots().first()?]
    }

    /// Refuses aggregates that go by the order of rows in time, where all rows of a window have the same time.
    pub(super) fn check_order(&self, window: WindowKind, aggregates: &[Aggregate]) -> Result<(), PlanError> {
        let instead = |aggregate: &Aggregate| match aggregate.kind {
            AggregateKind::First => Some(("min", ", smallest=True")),
            AggregateKind::Last => Some(("max", "")),
            _ => None,
        };
        let Some((aggregate, (kind, smallest))) =
            aggregates.iter().find_map(|aggregate| Some((aggregate, instead(aggregate)?)))
        else {
            return Ok(());
        };
        let Some((grid, time)) = self.grid().filter(|grid| grid.is_once_in(window)).zip(self.root.time())
        else {
            return Ok(());
        };
        let input = aggregate.input.as_ref().map(ToString::to_string).unwrap_or_default();
        Err(PlanError::Invalid(format!(
            "{aggregate} has no meaning here: all rows of such a window have one time, the end of their window in the {} before, and none of them is the {}; write {kind}({input}), or .top_k(1, column{smallest}) for the row that another column puts there; in windows longer than {} there are several times",
            grid.of,
            aggregate.kind.name(),
            time.tick.describe(i128::from(grid.step)),
        )))
    }

    /// Why a window finds no event time.
    pub(super) fn why_no_time(&self) -> String {
        let graph = self.graph();
        let corrects =
            |node: &Arc<Node>| matches!(node.step(), Step::Window(step) if step.allowed_lateness > 0);
        if graph.nodes().iter().any(corrects) {
            return "the results of a window with allowed_lateness have no event time: they could still be corrected after the windows behind had closed".to_owned();
        }
        if graph.nodes().iter().any(|node| matches!(node.step(), Step::Late)) {
            return "late rows have no event time: they lie behind the watermark, wherever they go"
                .to_owned();
        }
        if let Some((node, time)) = self.lost_time() {
            let column = &time.column;
            let how = match node.step() {
                Step::Map(_) => "not given back by the function of map_batches(), or with another type",
                _ if node.schema().fields().find(column).is_some() => {
                    "replaced by another of that name: give that one another name"
                }
                _ => "dropped: keep it",
            };
            return format!("the time column \"{column}\" was {how}, to use a window behind it");
        }
        let streams = graph.nodes().iter().filter(|node| matches!(node.step(), Step::Stream(_)));
        let declared: Vec<&str> = streams.flat_map(|node| times_of(node.schema())).collect();
        let mut hint = "name it: ps.stream(schema, time=\"...\")".to_owned();
        // Event time is read off the data, so `time=` cannot name a column that the plan computes.
        let computed = times_of(self.schema()).into_iter().find(|column| !declared.contains(column));
        match (declared.as_slice(), computed) {
            ([], Some(computed)) => hint = declare_computed(computed),
            ([], None) => {}
            (declared, computed) => {
                hint += &format!(" (it could be: {})", declared.join(", "));
                if let Some(computed) = computed {
                    hint += &format!("; {}", declare_computed(computed));
                }
            }
        }
        format!("a window needs event time, and this stream has no time column; {hint}")
    }

    /// The step behind which rows have no event time any more, and the one that they had.
    fn lost_time(&self) -> Option<(&Arc<Node>, &EventTime)> {
        let mut node = &self.root;
        loop {
            let input = node.inputs().first()?;
            match input.time() {
                Some(time) => return Some((node, time)),
                None => node = input,
            }
        }
    }
}
