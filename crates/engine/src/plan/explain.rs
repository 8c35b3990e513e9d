//! A plan in words, one step a line.

use std::fmt::Write as _;

use arrow_schema::Schema;
use penstock_expr::Expr;
use penstock_operators::LookupKind;
use penstock_types::{Tick, describe_field};

use super::{Plan, Step};

fn columns(schema: &Schema) -> String {
    schema.fields().iter().map(|field| describe_field(field)).collect::<Vec<_>>().join(", ")
}

/// `name = expression`, or only the expression when it has its own name.
fn named(expr: &Expr) -> String {
    match expr.kind() {
        penstock_expr::expr::Kind::Alias(inner, name) => format!("{name} = {inner}"),
        _ => expr.to_string(),
    }
}

fn list(exprs: &[Expr]) -> String {
    exprs.iter().map(named).collect::<Vec<_>>().join(", ")
}

impl Plan {
    /// The plan in words.
    pub fn explain(&self) -> String {
        let tick = self.tick().unwrap_or(Tick::Plain);
        let mut text = String::new();
        for step in &self.steps {
            let line = match &**step {
                Step::Stream { schema, time, delay } => {
                    let clock = time
                        .as_ref()
                        .map(|time| format!("\ntime {time}, delay {}", tick.describe(i128::from(*delay))));
                    format!("{}{}", columns(schema), clock.unwrap_or_default())
                }
                Step::Filter(predicate) => predicate.to_string(),
                Step::Select(exprs) | Step::WithColumns(exprs) => list(exprs),
                Step::Lookup(table) => {
                    let kind = if table.kind() == LookupKind::Left { "left" } else { "inner" };
                    let added: Vec<String> = table.added().iter().map(|field| field.name().clone()).collect();
                    format!(
                        "{kind}, on {}, {} row{}, adds {}",
                        table.on().join(", "),
                        table.rows(),
                        if table.rows() == 1 { "" } else { "s" },
                        added.join(", ")
                    )
                }
                Step::Tumbling { size, by, aggregates } => {
                    let keys = if by.is_empty() { String::new() } else { format!(", by {}", list(by)) };
                    let mut line = format!("tumbling {}{keys}", tick.describe(i128::from(*size)));
                    for aggregate in aggregates {
                        let _ = write!(line, "\n{} = {aggregate}", aggregate.output_name());
                    }
                    line
                }
            };
            for (number, part) in line.lines().enumerate() {
                let head = if number == 0 { step.name() } else { "" };
                let _ = writeln!(text, "{head:<14}{part}");
            }
        }
        let _ = write!(text, "{:<14}{}", "result", columns(self.schema()));
        text
    }
}
