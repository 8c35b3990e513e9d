//! Event time along a plan: where a step finds it, why it does not, and where it tells no two rows of a window apart.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{PlanError, TypeName};

use crate::aggregate::Aggregate;
use crate::step::{Form, Graph, Node, Times};
use crate::time::EventTime;
use crate::window::{WINDOW_BOUNDS, WindowKind};

/// Returns the event time that windows over a node go by, or why there is none.
pub(crate) fn event_time(node: &Arc<Node>) -> Result<&EventTime, PlanError> {
    node.time().ok_or_else(|| PlanError::MissingTime(why_no_time(node)))
}

/// Returns the type of the time column of a node.
pub(crate) fn time_type<'a>(node: &'a Node, time: &EventTime) -> &'a DataType {
    node.schema().field_with_name(&time.column).expect("the time column is in the schema").data_type()
}

/// Returns the event time behind windows over a stream: the last tick of each window.
pub(crate) fn time_behind(time: &EventTime) -> Option<EventTime> {
    Some(EventTime { column: WINDOW_BOUNDS[1].to_owned(), tick: time.tick, is_end: true })
}

/// Checks what two streams have in common for an operator: event time and keys. Returns the time of the first.
pub(crate) fn check_pair<'a>(
    inputs: &'a [Arc<Node>],
    what: &str,
    keys: [&[Field]; 2],
) -> Result<&'a EventTime, PlanError> {
    let [first, second] = inputs else { unreachable!("a {what} reads two streams") };
    Graph::of([first, second])?;
    let (time, others) = (event_time(first)?, event_time(second)?);
    if time_type(first, time) != time_type(second, others) {
        return Err(PlanError::mismatch(
            what,
            format!(
                "the two streams have times of different types: {} and {}; cast one of them",
                TypeName(time_type(first, time)),
                TypeName(time_type(second, others))
            ),
        ));
    }
    if keys[0].len() != keys[1].len() {
        return Err(PlanError::Invalid(format!(
            "a {what} compares keys one by one, and there are {} on the left and {} on the right",
            keys[0].len(),
            keys[1].len()
        )));
    }
    for (left, right) in keys[0].iter().zip(keys[1]) {
        if left.data_type() != right.data_type() {
            return Err(PlanError::mismatch(
                format!("key \"{}\"", left.name()),
                format!(
                    "it is {} on the left and {} on the right; cast one of them",
                    TypeName(left.data_type()),
                    TypeName(right.data_type())
                ),
            ));
        }
    }
    Ok(time)
}

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

/// Collects what some node needs; its streams were checked when the node was made.
fn graph_of(node: &Arc<Node>) -> Graph {
    Graph::of([node]).expect("streams were checked when they came together")
}

/// Returns the times of the rows of a node, if they are on a grid: behind an operator with windows, as long as no function
/// had the rows since then.
fn grid_of(node: &Arc<Node>) -> Option<Grid> {
    let graph = graph_of(node);
    let mut grids: Vec<Option<Grid>> = Vec::new();
    for (number, node) in graph.nodes().iter().enumerate() {
        let mut inputs = graph.inputs(number).iter().map(|&input| grids[input]);
        let grid = match node.step().times() {
            Times::WindowEnds(window) => Grid::of_results(window, node.step().name()),
            Times::Kept => {
                let first = inputs.next().flatten();
                first.filter(|grid| inputs.all(|other| other.is_some_and(|other| other.is_as(*grid))))
            }
            Times::Any => None,
        };
        grids.push(grid);
    }
    grids[*graph.roots().first()?]
}

/// Refuses aggregates that go by the order of rows in time, where all rows of a window have the same time.
pub(crate) fn check_order(
    node: &Arc<Node>,
    window: WindowKind,
    aggregates: &[Aggregate],
) -> Result<(), PlanError> {
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
    let Some((grid, time)) = grid_of(node).filter(|grid| grid.is_once_in(window)).zip(node.time()) else {
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

/// Says why windows over a node find no event time.
fn why_no_time(node: &Arc<Node>) -> String {
    let graph = graph_of(node);
    if graph.nodes().iter().any(|node| node.step().corrects()) {
        return "the results of a window with allowed_lateness have no event time: they could still be corrected after the windows behind had closed".to_owned();
    }
    if graph.nodes().iter().any(|node| node.step().form() == Form::LateRows) {
        return "late rows have no event time: they lie behind the watermark, wherever they go".to_owned();
    }
    if let Some((node, time)) = lost_time(node) {
        let column = &time.column;
        let how = node.step().why_time_lost(column, node.schema());
        return format!("the time column \"{column}\" was {how}, to use a window behind it");
    }
    let streams = graph.nodes().iter().filter(|node| node.step().form() == Form::Source);
    let declared: Vec<&str> = streams.flat_map(|node| times_of(node.schema())).collect();
    let mut hint = "name it: ps.stream(schema, time=\"...\")".to_owned();
    // Event time is read off the data, so `time=` cannot name a column that the plan computes.
    let computed = times_of(node.schema()).into_iter().find(|column| !declared.contains(column));
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

/// Returns the step behind which rows have no event time any more, and the one that they had.
fn lost_time(root: &Arc<Node>) -> Option<(&Arc<Node>, &EventTime)> {
    let mut node = root;
    loop {
        let input = node.inputs().first()?;
        match input.time() {
            Some(time) => return Some((node, time)),
            None => node = input,
        }
    }
}
