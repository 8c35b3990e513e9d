//! Graphs of many shapes, in words, and what holds for all of them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod plans;

use penstock_graph::{
    Chaining, EdgeKind, GraphRequest, InputSource, Spreading, Strategy, TaskGraph, TaskKind,
};
use penstock_plan::Outputs;
use plans::{Shape, shapes};

fn graph(shape: &Shape) -> TaskGraph {
    TaskGraph::of(&shape.outputs, &shape.request).unwrap()
}

#[test]
fn shapes_explain_themselves() {
    let shapes = shapes();
    assert!(shapes.len() >= 20);
    for shape in shapes {
        insta::assert_snapshot!(shape.name, graph(&shape).explain());
    }
}

#[test]
fn a_graph_is_a_value() {
    let shapes = shapes();
    for (number, shape) in shapes.iter().enumerate() {
        let one = graph(shape);
        assert_eq!(one, one.clone());
        assert_eq!(one, graph(shape), "{}: the passes are pure", shape.name);
        for other in &shapes[..number] {
            assert_ne!(one, graph(other), "{} and {}", shape.name, other.name);
        }
    }
}

#[test]
fn a_plan_that_was_written_gives_the_same_graph() {
    for shape in shapes() {
        let (text, functions) = shape.outputs.to_parts().unwrap();
        let again = Outputs::from_parts(&text, &functions).unwrap();
        assert_eq!(TaskGraph::of(&again, &shape.request).unwrap(), graph(&shape), "{}", shape.name);
    }
}

/// TASKGRAPH-1 to 3, and that both ends of an edge agree.
#[test]
fn edges_lead_from_writers_to_later_readers() {
    for shape in shapes() {
        let graph = graph(&shape);
        let mut streams = vec![0; graph.strands.streams.len()];
        let mut reads = vec![Vec::new(); graph.edges.len()];
        for (number, task) in graph.tasks.iter().enumerate() {
            match &task.kind {
                TaskKind::Operator(operator) => {
                    for (place, (input, _)) in operator.inputs().enumerate() {
                        match input {
                            InputSource::Stream(stream) => streams[*stream] += 1,
                            InputSource::Edge { edge, fills, .. } => {
                                reads[*edge].push((number, place));
                                let edge = &graph.edges[*edge];
                                assert!(fills.len() == edge.columns.len(), "{}", shape.name);
                                if let EdgeKind::Shared { stream, .. } = edge.kind {
                                    streams[stream] += 1;
                                }
                            }
                        }
                    }
                    assert_eq!(graph.edges[operator.writes].writer, Some(number));
                }
                TaskKind::Splitter(splitter) => streams[splitter.stream] += 1,
                TaskKind::Lane(lane) => reads[lane.reads].push((number, 0)),
                TaskKind::Sink(sink) => reads[sink.reads].push((number, 0)),
            }
        }
        assert!(streams.iter().all(|read| *read == 1), "{}: {streams:?}", shape.name);
        for (edge, reads) in graph.edges.iter().zip(reads) {
            let mut places: Vec<(usize, usize)> =
                edge.readers.iter().map(|reader| (reader.task, reader.input)).collect();
            places.sort_unstable();
            assert_eq!(places, reads, "{}", shape.name);
            assert_eq!(edge.slots.len(), edge.kinds.len(), "{}", shape.name);
            assert!(places.iter().all(|(reader, _)| edge.writer.is_none_or(|writer| writer < *reader)));
        }
    }
}

#[test]
fn operators_have_the_same_numbers_however_they_run() {
    let names = |graph: &TaskGraph| -> Vec<&'static str> {
        graph.strands.operators.iter().map(|operator| operator.name()).collect()
    };
    for shape in shapes() {
        for chaining in [Chaining::Auto, Chaining::Off] {
            for strategy in [Strategy::Merge, Strategy::Exchange] {
                let spreading = Spreading { parallelism: 3, strategy };
                let request = GraphRequest { chaining, spreading, ..shape.request.clone() };
                let other = TaskGraph::of(&shape.outputs, &request).unwrap();
                assert_eq!(names(&other), names(&graph(&shape)));
            }
        }
    }
}
