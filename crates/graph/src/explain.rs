//! Graphs in words.

use std::fmt::Write as _;
use std::ops::Range;

use penstock_memory::ColumnKind;
use penstock_plan::{Node, Outputs};
use penstock_types::PlanError;

use std::sync::Arc;

use crate::graph::{Edge, EdgeId, EdgeKind, InputSource, Port, TaskGraph, TaskKind, TaskNumber};
use crate::options::{Chaining, Spreading, Strategy};
use crate::request::GraphRequest;
use crate::spread::{self, describe};
use crate::strands::{StrandId, Strands};

/// Explains plans, and how each operator runs when it may take so many workers.
pub fn explain(outputs: &Outputs, workers: usize, strategy: Strategy) -> Result<String, PlanError> {
    let spreading = Spreading { parallelism: workers, strategy };
    let strands = Strands::of(outputs, false)?;
    let spreads = spread::spread(&strands, spreading, true, &vec![false; strands.streams.len()]);
    let notes: Vec<(Arc<Node>, String)> = strands
        .operators
        .iter()
        .zip(spreads)
        .map(|(operator, spread)| (Arc::clone(&operator.node.0), describe(operator, spread, spreading)))
        .collect();
    Ok(outputs.explain_with(&notes))
}

/// Explains the tasks that plans become, when no stream is shared.
pub fn explain_physical(
    outputs: &Outputs,
    chaining: Chaining,
    workers: usize,
    strategy: Strategy,
) -> Result<String, PlanError> {
    let spreading = Spreading { parallelism: workers, strategy };
    Ok(TaskGraph::of(outputs, &GraphRequest { chaining, spreading, ..GraphRequest::default() })?.explain())
}

/// How a column is stored, in short.
fn stored(kind: ColumnKind) -> String {
    let name = format!("{:?}", kind.physical).to_lowercase();
    if kind.nullable { format!("{name}?") } else { name }
}

/// A line of the text: what it is about, and what there is to say.
fn line(text: &mut String, head: &str, words: &str) {
    let _ = writeln!(text, "   {head:<10}{words}");
}

impl TaskGraph {
    /// Explains the tasks, in the order in which rows pass them: what they read, run and write.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let _ = writeln!(text, "{number:<3}{}", task.name);
            match &task.kind {
                TaskKind::Operator(operator) => {
                    for port in &operator.ports {
                        self.explain_port(&mut text, port);
                    }
                    if let Some(used) = &operator.operator {
                        self.explain_operator(&mut text, used.operator, used.merges);
                        let results = self.strands.operators[used.operator].results;
                        self.explain_stages(&mut text, results, &used.tail);
                        if let Some(late) = used.late {
                            line(&mut text, "late", &self.written(late));
                        }
                    }
                    line(&mut text, "writes", &self.written(operator.writes));
                }
                TaskKind::Splitter(splitter) => {
                    line(&mut text, "reads", &self.stream(splitter.stream));
                    let edges: Vec<String> = splitter.writes.iter().map(|edge| self.written(*edge)).collect();
                    line(&mut text, "writes", &edges.join("; "));
                }
                TaskKind::Lane(lane) => {
                    line(&mut text, "reads", &self.edge(lane.reads));
                    self.explain_stages(&mut text, lane.strand, &lane.stages);
                    line(
                        &mut text,
                        "operator",
                        &format!("{}, its part", self.strands.operators[lane.operator].name()),
                    );
                    line(&mut text, "writes", &self.written(lane.writes));
                }
                TaskKind::Sink(sink) => line(&mut text, "reads", &self.edge(sink.reads)),
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn explain_port(&self, text: &mut String, port: &Port) {
        for input in &port.inputs {
            let words = match input {
                InputSource::Stream(stream) => self.stream(*stream),
                InputSource::Edge { edge, group: None, .. } => self.edge(*edge),
                InputSource::Edge { edge, .. } => format!("{}, the rows of its key groups", self.edge(*edge)),
            };
            line(text, "reads", &words);
        }
        self.explain_stages(text, port.strand, &port.stages);
    }

    fn explain_stages(&self, text: &mut String, strand: StrandId, stages: &Range<usize>) {
        if !stages.is_empty() {
            let stages = &self.strands.strands[strand].segment.stages[stages.clone()];
            line(text, "stages", &stages.iter().map(|stage| stage.name).collect::<Vec<_>>().join(", "));
        }
    }

    fn explain_operator(&self, text: &mut String, number: usize, merges: bool) {
        let operator = &self.strands.operators[number];
        let how = describe(operator, self.spreads[number], self.spreading);
        let merges = if merges { ", merging" } else { "" };
        line(text, "operator", &format!("{} #{number}{merges}, {how}", operator.name()));
    }

    /// The columns that are read of a stream.
    fn stream(&self, stream: usize) -> String {
        let stream = &self.strands.streams[stream];
        let fields = stream.step().schema.fields().iter().zip(&stream.reads);
        let columns: Vec<&str> =
            fields.filter(|(_, read)| **read).map(|(field, _)| field.name().as_str()).collect();
        let columns = if columns.is_empty() { "no column".to_owned() } else { columns.join(", ") };
        format!("stream \"{}\": {columns}", stream.step().data_name())
    }

    fn edge(&self, number: EdgeId) -> String {
        let edge = &self.edges[number];
        match edge.kind {
            EdgeKind::Shared { .. } => format!("shared log {number}: {}", edge.columns.join(", ")),
            EdgeKind::Log | EdgeKind::LateLog => format!("log {number}"),
            EdgeKind::Portions | EdgeKind::States => format!("ring {number}"),
        }
    }

    fn written(&self, number: EdgeId) -> String {
        let edge = &self.edges[number];
        let columns = match edge.kind {
            EdgeKind::Portions => "portions".to_owned(),
            EdgeKind::States => "states".to_owned(),
            EdgeKind::Log | EdgeKind::LateLog | EdgeKind::Shared { .. } => columns(edge),
        };
        format!("{}: {columns} -> {}", self.edge(number), readers(edge))
    }
}

fn columns(edge: &Edge) -> String {
    let columns: Vec<String> = edge
        .columns
        .iter()
        .zip(&edge.kinds)
        .map(|(name, kind)| format!("{name} {}", stored(*kind)))
        .collect();
    if columns.is_empty() { "no column".to_owned() } else { columns.join(", ") }
}

fn readers(edge: &Edge) -> String {
    let mut tasks: Vec<TaskNumber> = edge.readers.iter().map(|reader| reader.task).collect();
    tasks.dedup();
    let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    if tasks.is_empty() { "none".to_owned() } else { tasks.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{counted, events, joined, outputs, positive};

    #[test]
    fn a_plan_says_how_each_operator_would_run() {
        let plan = joined(&counted(&events("a")), &counted(&events("b")));
        let text = explain(&outputs(&plan), 2, Strategy::Auto).unwrap();
        assert_eq!(text.matches("on 2 workers, merged").count(), 2);
        assert!(text.contains("on 2 workers, exchanged by key: it reads two streams"), "{text}");
        let text = explain(&outputs(&plan), 1, Strategy::Auto).unwrap();
        assert_eq!(text.matches("on one worker: there is no other").count(), 3);
    }

    #[test]
    fn tasks_are_listed_with_what_they_read_run_and_write() {
        let plan = counted(&positive(&events("a"), "v"));
        let text = explain_physical(&outputs(&plan), Chaining::Off, 1, Strategy::Auto).unwrap();
        let words = [
            "0  stream",
            "   reads     stream \"a\": t, k, v",
            "   writes    log 0: t i64, k i64, v i64 -> 1",
            "1  filter",
            "   reads     log 0",
            "   stages    filter",
            "   writes    log 1: t i64, k i64 -> 2",
            "2  window",
            "   reads     log 1",
            "   operator  window #0, on one worker: there is no other",
            "   writes    log 2: window_start i64, window_end i64, k i64, count i64 -> 3",
            "3  sink",
            "   reads     log 2",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), words);
    }
}
