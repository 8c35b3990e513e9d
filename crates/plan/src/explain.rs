//! A plan in words, one step a line.

use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::Schema;

use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::step::{Graph, Node};
use crate::text::columns;

impl Hash for Plan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal plans explain themselves in the same words; large tables are not hashed.
        self.explain().hash(state);
    }
}

/// Explains all steps. Where they do not simply follow each other, they have numbers, and name what they read.
fn explain(graph: &Graph, outputs: &[(&str, &Schema)], notes: &[(Arc<Node>, String)]) -> String {
    let before = |number: usize| number.checked_sub(1).into_iter().collect::<Vec<_>>();
    let count = graph.nodes().len();
    let is_line = outputs.len() == 1 && (0..count).all(|number| graph.inputs(number) == before(number));
    let width = if is_line { 0 } else { count.to_string().len() + 1 };
    let mut text = String::new();
    for (number, node) in graph.nodes().iter().enumerate() {
        let mut words = node.step().describe(node.tick());
        if let Some((_, note)) = notes.iter().find(|(noted, _)| Arc::ptr_eq(noted, node)) {
            let _ = write!(words, "\n{note}");
        }
        let inputs = graph.inputs(number);
        if inputs != before(number) && !inputs.is_empty() {
            let read: Vec<String> = inputs.iter().map(|input| (input + 1).to_string()).collect();
            words = format!("of {}: {words}", read.join(" and "));
        }
        for (line, part) in words.lines().enumerate() {
            let mark = if line == 0 && !is_line { (number + 1).to_string() } else { String::new() };
            let head = if line == 0 { node.step().name() } else { "" };
            let _ = writeln!(text, "{mark:<width$}{head:<14}{part}");
        }
    }
    for ((name, schema), root) in outputs.iter().zip(graph.roots()) {
        let read = if *root + 1 == count { String::new() } else { format!("of {}: ", root + 1) };
        let _ = writeln!(text, "{:<width$}{name:<14}{read}{}", "", columns(schema));
    }
    text.truncate(text.trim_end().len());
    text
}

impl Plan {
    /// Explains the plan.
    pub fn explain(&self) -> String {
        explain(&self.graph(), &[("result", self.schema())], &[])
    }
}

impl Outputs {
    /// Explains the plans.
    pub fn explain(&self) -> String {
        self.explain_with(&[])
    }

    /// Explains the plans, with a note for some of their steps.
    pub fn explain_with(&self, notes: &[(Arc<Node>, String)]) -> String {
        let outputs: Vec<(&str, &Schema)> =
            self.schemas().map(|(name, schema)| (name, schema.as_ref())).collect();
        explain(&self.graph(), &outputs, notes)
    }
}
