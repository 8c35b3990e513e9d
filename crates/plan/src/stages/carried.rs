//! The columns that rows carry across a cut: computed keys, and the watermark before each row.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use penstock_expr::Expr;
use penstock_expr::expr::Kind;
use penstock_types::PlanError;

use crate::function::Watermarks;
use crate::plan::Plan;
use crate::step::Node;
use crate::steps::select::SelectStep;
use crate::stream::StreamStep;
use crate::time::EventTime;

/// The column with the watermark before each row (STAGE-4).
pub(super) const WATERMARK: &str = "__watermark";

/// The columns with keys that are computed, each with a number at the end.
pub(super) const COMPUTED_KEY: &str = "__key_";

/// Returns what the column with a key is called on its way to another stage.
pub(super) fn key_column(number: usize, key: &Expr) -> String {
    key.as_column().map_or_else(|| format!("{COMPUTED_KEY}{number}"), str::to_owned)
}

/// Returns keys as rows are spread by them: their names do not matter.
pub(super) fn values(keys: &[Expr]) -> Vec<&Expr> {
    fn value(key: &Expr) -> &Expr {
        match key.kind() {
            Kind::Alias(inner, _) => value(inner),
            _ => key,
        }
    }
    keys.iter().map(value).collect()
}

/// Returns the keys that are no columns, with the names that they have on their way.
pub(super) fn computed(keys: &[Expr]) -> Vec<Expr> {
    let keys = keys.iter().enumerate().filter(|(_, key)| key.as_column().is_none());
    let named = |(number, key): (usize, &Expr)| {
        key.clone().alias(key_column(number, key)).expect("a key that was checked takes a name")
    };
    keys.map(named).collect()
}

/// Returns the columns of a node, and those of its computed keys.
pub(super) fn with_keys(node: &Arc<Node>, keys: Option<&[Expr]>) -> Result<SchemaRef, PlanError> {
    match keys.map(computed) {
        Some(computed) if !computed.is_empty() => {
            Ok(Arc::clone(Plan::from(Arc::clone(node)).with_columns(computed)?.schema()))
        }
        _ => Ok(Arc::clone(node.schema())),
    }
}

/// Declares a stream of rows that come from another stage.
pub(super) fn declared(
    name: &str,
    schema: &SchemaRef,
    time: Option<&EventTime>,
    judge: Option<String>,
) -> Result<Arc<Node>, PlanError> {
    let stream = StreamStep {
        time: time.map(|time| time.column.clone()),
        is_end: time.is_some_and(|time| time.is_end),
        watermark: judge.map(Watermarks::Before),
        ..StreamStep::named(name, schema)
    };
    Node::new(Arc::new(stream), Vec::new())
}

/// Adds the watermark before each row to the columns of a stream, as the first. It is of the type of the time column, and
/// null as long as there is no watermark.
pub(super) fn with_watermark(stream: &StreamStep, time: &str) -> StreamStep {
    let time = stream.schema.field_with_name(time).expect("the time column was checked with the plan");
    let fields = stream.schema.fields().iter().map(|field| field.as_ref().clone());
    // Steps add columns at the end: so this one stays where it is.
    let watermark = Field::new(WATERMARK, time.data_type().clone(), true);
    stream.over(Schema::new(std::iter::once(watermark).chain(fields).collect::<Vec<_>>()))
}

/// Returns the stream with the columns of the node that it stands for.
pub(super) fn with_columns_of(stream: &Arc<Node>, node: &Node) -> Result<Arc<Node>, PlanError> {
    let columns = node.schema().fields();
    if stream.schema().fields().len() == columns.len() {
        return Ok(Arc::clone(stream));
    }
    let columns = columns.iter().map(|field| Expr::column(field.name().clone())).collect();
    Node::new(Arc::new(SelectStep::new(columns)), vec![Arc::clone(stream)])
}
