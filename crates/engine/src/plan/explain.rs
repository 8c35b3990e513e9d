//! A plan in words, one step a line.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_schema::Schema;
use penstock_expr::Expr;
use penstock_operators::LookupKind;
use penstock_types::{PlanError, Tick, describe_field};

use super::{Aggregate, Arrival, Graph, Node, Outputs, Plan, Step, Watermarks, WindowKind};
use crate::options::Strategy;
use crate::pipeline::{Spreading, strategies};

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

fn by(keys: &[Expr]) -> String {
    if keys.is_empty() { String::new() } else { format!(", by {}", list(keys)) }
}

/// A duration by the clock, if there is one.
fn by_clock(what: &str, ns: Option<u64>) -> String {
    ns.map_or(String::new(), |ns| format!("{what} {}", Tick::Nanosecond.describe(i128::from(ns))))
}

fn window(window: WindowKind, tick: Tick) -> String {
    let say = |ticks: i64| tick.describe(i128::from(ticks));
    let moved = |offset: i64| if offset == 0 { String::new() } else { format!(", offset {}", say(offset)) };
    match window {
        WindowKind::Tumbling { size, offset } => format!("tumbling {}{}", say(size), moved(offset)),
        WindowKind::Sliding { size, slide, offset } => {
            format!("sliding {} every {}{}", say(size), say(slide), moved(offset))
        }
        WindowKind::Session { gap } => format!("session {}", say(gap)),
    }
}

fn aggregates(list: &[Aggregate]) -> String {
    list.iter().fold(String::new(), |mut text, aggregate| {
        let _ = write!(text, "\n{} = {aggregate}", aggregate.output_name());
        text
    })
}

/// What a step does, in one line or several.
fn describe(node: &Node) -> String {
    // A window goes by the time of what it reads.
    let time = node.inputs().first().map_or(node.time(), |input| input.time());
    let tick = time.map_or(Tick::Plain, |time| time.tick);
    match node.step() {
        Step::Stream(stream) => {
            let name = stream.name.as_ref().map_or(String::new(), |name| format!("{name}\n"));
            let clock = stream.time.as_ref().map_or(String::new(), |time| {
                let arrival = stream.arrival.map_or("", |arrival| match arrival {
                    Arrival::Ingestion => " of arrival",
                    Arrival::Processing => " of processing",
                });
                let marks = stream.watermark.as_ref().map_or(String::new(), |from| match from {
                    Watermarks::Column(name) => format!(", watermarks {name}"),
                    Watermarks::Before(name) => format!(", judged by {name}"),
                    Watermarks::Function(function) => format!(", watermarks {}()", function.name()),
                });
                let delay = tick.describe(i128::from(stream.delay));
                let idle = by_clock(", idle after", stream.idle_after_ns);
                let ahead = stream.max_ahead.map_or(String::new(), |most| {
                    format!(", at most {} ahead", tick.describe(i128::from(most)))
                });
                format!("\ntime{arrival} {time}{marks}, delay {delay}{ahead}{idle}")
            });
            format!("{name}{}{clock}", columns(&stream.schema))
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
        Step::Map(step) => format!("{}\ngives {}", step.function.0.name(), columns(&step.schema)),
        Step::Union => "all rows".to_owned(),
        Step::Window(step) => {
            let lateness = match step.allowed_lateness {
                0 => String::new(),
                ticks => format!(", corrected for {}", tick.describe(i128::from(ticks))),
            };
            let closes = by_clock(", closed after", step.close_after_ns);
            let windows = window(step.window, tick);
            format!("{windows}{}{lateness}{closes}{}", by(&step.by), aggregates(&step.aggregates))
        }
        Step::Late => "rows that came too late".to_owned(),
        Step::CoGroup(step) => format!(
            "{}{}{}{}{}",
            window(step.window, tick),
            by(&step.by[0]),
            if step.by[0] == step.by[1] { String::new() } else { format!(" and {}", list(&step.by[1])) },
            aggregates(&step.aggregates[0]),
            aggregates(&step.aggregates[1])
        ),
        Step::Join(step) => {
            let pair = |(left, right): (&String, &String)| {
                if left == right { left.clone() } else { format!("{left} = {right}") }
            };
            let on: Vec<String> = step.on[0].iter().zip(&step.on[1]).map(pair).collect();
            format!("{}, {}, on {}", step.kind.name(), window(step.window, tick), on.join(", "))
        }
        Step::TopK(step) => {
            let order = if step.largest { "largest" } else { "smallest" };
            format!("{}{}, {} {order} {}", window(step.window, tick), by(&step.by), step.k, step.order)
        }
    }
}

/// All steps. Where they do not simply follow each other, they have numbers, and say whom they read.
fn explain(graph: &Graph, outputs: &[(&str, &Schema)], notes: &[(Arc<Node>, String)]) -> String {
    let before = |number: usize| number.checked_sub(1).into_iter().collect::<Vec<_>>();
    let count = graph.nodes().len();
    let is_line = outputs.len() == 1 && (0..count).all(|number| graph.inputs(number) == before(number));
    let width = if is_line { 0 } else { count.to_string().len() + 1 };
    let mut text = String::new();
    for (number, node) in graph.nodes().iter().enumerate() {
        let mut words = describe(node);
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
    /// The plan in words.
    pub fn explain(&self) -> String {
        explain(&self.graph(), &[("result", self.schema())], &[])
    }
}

impl Outputs {
    /// The plans in words.
    pub fn explain(&self) -> String {
        self.explain_with(&[])
    }

    /// The plans in words, and how each operator with state runs when it may take so many workers.
    pub fn explain_on(&self, workers: usize, strategy: Strategy) -> Result<String, PlanError> {
        let spreading = Spreading { parallelism: workers, strategy };
        Ok(self.explain_with(&strategies(self, spreading)?))
    }

    fn explain_with(&self, notes: &[(Arc<Node>, String)]) -> String {
        let outputs: Vec<(&str, &Schema)> =
            self.schemas().map(|(name, schema)| (name, schema.as_ref())).collect();
        explain(&self.graph(), &outputs, notes)
    }
}
