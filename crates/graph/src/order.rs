//! From drafts to numbered tasks: lanes, splitters and sinks take their places, in the order in which rows pass them.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_schema::SchemaRef;
use penstock_memory::SlotId;

use crate::chain::{Draft, DraftInput, DraftPort, Drafts, EdgeKey};
use crate::graph::{
    Edge, EdgeId, EdgeKind, ExitRole, InputPlace, InputSource, LaneSpec, OperatorSpec, OperatorUse, Part,
    Port, SinkSpec, SplitterSpec, TaskKind, TaskNode, TaskNumber,
};
use crate::judging::EdgeJudging;
use crate::layout::{EdgeLayout, EdgeUser, strand_of};
use crate::options::Spreading;
use crate::request::SharedLog;
use crate::spread::Spread;
use crate::strands::{OperatorId, StrandId, Strands};

/// What the passes before have made.
pub struct Pieces<'a> {
    /// The strands.
    pub strands: &'a Strands,
    /// How each operator runs.
    pub spreads: &'a [Spread],
    /// Which stages and operators run together.
    pub drafts: Drafts,
    /// What edges carry.
    pub layout: EdgeLayout,
    /// How their readers judge rows.
    pub judged: BTreeMap<EdgeKey, EdgeJudging>,
    /// The shared source of each stream.
    pub shared: Vec<Option<SharedLog>>,
}

/// Numbers the tasks of a query, and the edges between them.
///
/// # Panics
/// When a task comes before one whose rows it reads: those who plan hand costs and ages on from task to task.
pub fn order(
    pieces: Pieces<'_>,
    spreading: Spreading,
    outputs: &[(String, SchemaRef)],
) -> (Vec<TaskNode>, Vec<Edge>) {
    let lanes = spreading.parallelism;
    let is_merged = |draft: &Draft| {
        draft.operator.as_ref().is_some_and(|(operator, _)| pieces.spreads[*operator] == Spread::Merged)
    };
    // The task of each draft, once the splitter and the lanes of those that merge have taken their places before it.
    let mut next = 0;
    let mut places = Vec::new();
    for draft in &pieces.drafts.drafts {
        next += if is_merged(draft) { 1 + lanes } else { 0 };
        places.push(next);
        next += 1;
    }
    let mut ordering = Ordering {
        pieces: &pieces,
        places,
        first_sink: next,
        tasks: Vec::new(),
        edges: Vec::new(),
        keys: BTreeMap::new(),
    };
    for (number, draft) in pieces.drafts.drafts.iter().enumerate() {
        if is_merged(draft) {
            ordering.merged(number, draft, lanes);
        } else {
            ordering.draft(number, draft);
        }
    }
    for (output, (name, _)) in outputs.iter().enumerate() {
        let reads = ordering.keys[&pieces.drafts.outputs[output]];
        let name = if outputs.len() == 1 { "sink".to_owned() } else { format!("sink {name}") };
        let kind = TaskKind::Sink(SinkSpec { output, reads });
        ordering.tasks.push(TaskNode { name, kind, readers: Vec::new(), part: None });
    }
    ordering.link();
    (ordering.tasks, ordering.edges)
}

struct Ordering<'a> {
    pieces: &'a Pieces<'a>,
    /// The task of each draft.
    places: Vec<TaskNumber>,
    /// The task of the first output.
    first_sink: TaskNumber,
    tasks: Vec<TaskNode>,
    edges: Vec<Edge>,
    /// The edges that drafts write.
    keys: BTreeMap<EdgeKey, EdgeId>,
}

impl Ordering<'_> {
    /// Notes at each task which others read what it writes.
    fn link(&mut self) {
        for edge in &self.edges {
            let Some(writer) = edge.writer else { continue };
            for reader in &edge.readers {
                assert!(
                    reader.task > writer,
                    "TASKGRAPH-1: {} reads a later task",
                    self.tasks[reader.task].name
                );
                self.tasks[writer].readers.push(reader.task);
            }
        }
        for task in &mut self.tasks {
            task.readers.sort_unstable();
            task.readers.dedup();
        }
    }

    /// Adds the task of a draft.
    fn draft(&mut self, number: usize, draft: &Draft) {
        let task = self.places[number];
        let mut input = 0;
        let ports = draft.ports.iter().enumerate().map(|(port, of)| {
            let group = draft
                .part
                .and(draft.operator.as_ref())
                .and_then(|(operator, _)| self.pieces.strands.operators[*operator].ports[port].group);
            let inputs = of.inputs.iter().map(|from| {
                let place = InputPlace { task, input };
                input += 1;
                self.input(number, *from, place, group)
            });
            let inputs = inputs.collect();
            Port { strand: of.strand, stages: of.stages.clone(), inputs }
        });
        let ports: Vec<Port> = ports.collect();
        let operator = draft.operator.as_ref().map(|(operator, tail)| OperatorUse {
            operator: *operator,
            tail: tail.clone(),
            late: self.late(*operator, draft, task),
            merges: false,
        });
        let writes = self.log(draft.out_key(), task);
        let part = draft.part.map(|(number, of)| Part { number, of });
        let kind = TaskKind::Operator(OperatorSpec { ports, operator, writes });
        self.tasks.push(TaskNode { name: self.name(draft), kind, readers: Vec::new(), part });
    }

    /// Adds a splitter, lanes, and the task that merges their states.
    fn merged(&mut self, number: usize, draft: &Draft, lanes: usize) {
        let merger = self.places[number];
        let splitter = merger - 1 - lanes;
        let (operator, tail) = draft.operator.clone().expect("lanes have an operator");
        let DraftPort { strand, stages, inputs } = &draft.ports[0];
        let [DraftInput::Stream(stream)] = inputs[..] else { unreachable!("lanes read a source") };
        let portions: Vec<EdgeId> =
            (0..lanes).map(|lane| self.ring(EdgeKind::Portions, splitter, splitter + 1 + lane, 0)).collect();
        let states: Vec<EdgeId> =
            (0..lanes).map(|lane| self.ring(EdgeKind::States, splitter + 1 + lane, merger, lane)).collect();
        let name = self.name(draft);
        let kind = TaskKind::Splitter(SplitterSpec { stream, strand: *strand, writes: portions.clone() });
        self.tasks.push(TaskNode { name: "stream".to_owned(), kind, readers: Vec::new(), part: None });
        for lane in 0..lanes {
            let kind = TaskKind::Lane(LaneSpec {
                stream,
                strand: *strand,
                stages: stages.clone(),
                operator,
                reads: portions[lane],
                writes: states[lane],
            });
            let (name, part) =
                (format!("{name} {}/{lanes}", lane + 1), Some(Part { number: lane, of: lanes }));
            self.tasks.push(TaskNode { name, kind, readers: Vec::new(), part });
        }
        let input = |&edge: &EdgeId| InputSource::Edge { edge, fills: Vec::new(), group: None };
        let port = Port { strand: *strand, stages: 0..0, inputs: states.iter().map(input).collect() };
        let used = OperatorUse { operator, tail, late: self.late(operator, draft, merger), merges: true };
        let writes = self.log(draft.out_key(), merger);
        let kind = TaskKind::Operator(OperatorSpec { ports: vec![port], operator: Some(used), writes });
        self.tasks.push(TaskNode { name, kind, readers: Vec::new(), part: None });
    }

    /// One input of a draft; the edge that it reads was written before.
    fn input(
        &mut self,
        draft: usize,
        from: DraftInput,
        place: InputPlace,
        group: Option<SlotId>,
    ) -> InputSource {
        match from {
            DraftInput::Stream(stream) => match &self.pieces.shared[stream] {
                None => InputSource::Stream(stream),
                Some(shared) => {
                    let fills = self.pieces.layout.shared[stream].clone().expect("it was laid out");
                    let edge = self.shared(stream, shared, place, fills.len());
                    InputSource::Edge { edge, fills, group }
                }
            },
            DraftInput::Edge(key) => {
                let user = EdgeUser::Draft { draft, input: place.input };
                let users = &self.pieces.layout.edges[&key].users;
                let fills =
                    users.iter().find(|(known, _)| *known == user).expect("it was laid out").1.clone();
                InputSource::Edge { edge: self.keys[&key], fills, group }
            }
        }
    }

    fn shared(&mut self, stream: usize, shared: &SharedLog, place: InputPlace, columns: usize) -> EdgeId {
        let mut names: Vec<String> =
            shared.schema.fields().iter().map(|field| field.name().clone()).collect();
        names.resize(columns, "time".to_owned());
        self.edges.push(Edge {
            kind: EdgeKind::Shared { source: shared.source, stream },
            writer: None,
            readers: vec![place],
            slots: Vec::new(),
            columns: names,
            kinds: Vec::new(),
            judging: EdgeJudging::AsItStands,
            exit: None,
        });
        self.edges.len() - 1
    }

    fn ring(&mut self, kind: EdgeKind, writer: TaskNumber, reader: TaskNumber, input: usize) -> EdgeId {
        self.edges.push(Edge {
            kind,
            writer: Some(writer),
            readers: vec![InputPlace { task: reader, input }],
            slots: Vec::new(),
            columns: Vec::new(),
            kinds: Vec::new(),
            judging: EdgeJudging::AsItStands,
            exit: None,
        });
        self.edges.len() - 1
    }

    fn late(&mut self, operator: OperatorId, draft: &Draft, task: TaskNumber) -> Option<EdgeId> {
        self.pieces.strands.operators[operator].late?;
        Some(self.log(EdgeKey::Late(operator, draft.part_number()), task))
    }

    /// Adds the log that begins at `key`.
    fn log(&mut self, key: EdgeKey, writer: TaskNumber) -> EdgeId {
        let strands = self.pieces.strands;
        let laid_out = self.pieces.layout.edges.get(&key).cloned().unwrap_or_default();
        let strand = &strands.strands[strand_of(strands, key)];
        let place = |user: &EdgeUser| match *user {
            EdgeUser::Draft { draft, input } => InputPlace { task: self.places[draft], input },
            EdgeUser::Output(output) => InputPlace { task: self.first_sink + output, input: 0 },
        };
        let kind = if matches!(key, EdgeKey::Late(..)) { EdgeKind::LateLog } else { EdgeKind::Log };
        self.edges.push(Edge {
            kind,
            writer: Some(writer),
            readers: laid_out.users.iter().map(|(user, _)| place(user)).collect(),
            columns: column_names(strands, key, &laid_out.slots),
            kinds: strand.segment.scope.kinds_of(&laid_out.slots),
            judging: self.pieces.judged.get(&key).copied().unwrap_or_default(),
            exit: self.exit(key, strand.is_raw, &laid_out.users),
            slots: laid_out.slots,
        });
        self.keys.insert(key, self.edges.len() - 1);
        self.edges.len() - 1
    }

    /// How the rows of a log count: only those that were filtered at most, and not computed.
    fn exit(&self, key: EdgeKey, is_raw: bool, users: &[(EdgeUser, Vec<SlotId>)]) -> Option<ExitRole> {
        if !is_raw || !matches!(key, EdgeKey::Strand(..)) {
            return None;
        }
        let drafts = &self.pieces.drafts.drafts;
        // Parts of one operator take a row once.
        let takes = |user: EdgeUser| match user {
            EdgeUser::Draft { draft, .. } => drafts[draft].part_number() == 0,
            EdgeUser::Output(_) => true,
        };
        let contributes = |user: EdgeUser| match user {
            EdgeUser::Draft { draft, input } => {
                !self.pieces.strands.strands[drafts[draft].port_of(input).strand].is_raw
            }
            EdgeUser::Output(_) => true,
        };
        let count = |test: &dyn Fn(EdgeUser) -> bool| users.iter().filter(|(user, _)| test(*user)).count();
        let copies = (count(&takes) as u64).saturating_sub(1);
        Some(ExitRole { copies, contributes: count(&contributes) as u64 })
    }

    /// What people call a task: by the last of its operators.
    fn name(&self, draft: &Draft) -> String {
        let strands = self.pieces.strands;
        let last = |strand: StrandId, stages: &Range<usize>| {
            strands.strands[strand].segment.stages[stages.clone()].last().map(|stage| stage.name)
        };
        let port = &draft.ports[0];
        let name = match &draft.operator {
            Some((operator, tail)) => last(draft.out.0, tail).unwrap_or(strands.operators[*operator].name()),
            None => last(port.strand, &port.stages).unwrap_or(match port.inputs[..] {
                [DraftInput::Stream(_)] => "stream",
                [_] => "pass",
                _ => "union",
            }),
        };
        match draft.part {
            Some((part, parts)) => format!("{name} {}/{parts}", part + 1),
            None => name.to_owned(),
        }
    }
}

/// Names the columns of an edge.
fn column_names(strands: &Strands, key: EdgeKey, slots: &[SlotId]) -> Vec<String> {
    let segment = &strands.strands[strand_of(strands, key)].segment;
    let done = match key {
        EdgeKey::Strand(_, done) => done,
        EdgeKey::Part(..) => 0,
        EdgeKey::Late(..) => segment.stages.len(),
    };
    let columns = segment.columns_after(done);
    let name = |&slot: &SlotId| {
        if let Some(column) = columns.slots.iter().position(|known| *known == slot) {
            return columns.schema.field(column).name().clone();
        }
        let time = segment.scope.clock().filter(|clock| clock.time == slot).map(|_| "time".to_owned());
        let filled = || segment.stages.iter().find_map(|stage| stage.name_of(slot));
        time.or_else(filled).unwrap_or_else(|| format!("slot {slot}"))
    };
    slots.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use crate::graph::{EdgeKind, ExitRole, TaskGraph, TaskKind};
    use crate::options::{Spreading, Strategy};
    use crate::request::GraphRequest;
    use crate::samples::{counted, events, outputs, positive};

    fn graph(workers: usize, strategy: Strategy) -> TaskGraph {
        let spreading = Spreading { parallelism: workers, strategy };
        let plan = counted(&positive(&events("a"), "v"));
        TaskGraph::of(&outputs(&plan), &GraphRequest { spreading, ..GraphRequest::default() }).unwrap()
    }

    #[test]
    fn a_splitter_and_lanes_come_before_the_task_that_merges() {
        let graph = graph(2, Strategy::Merge);
        let names: Vec<&str> = graph.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["stream", "window 1/2", "window 2/2", "window", "sink"]);
        let readers: Vec<&[usize]> = graph.tasks.iter().map(|task| &task.readers[..]).collect();
        assert_eq!(readers, [&[1, 2][..], &[3], &[3], &[4], &[]]);
        assert!(graph.is_source(0) && !graph.is_source(3));
        assert!(matches!(graph.tasks[2].kind, TaskKind::Lane(_)));
    }

    #[test]
    fn parts_take_a_row_once() {
        let graph = graph(3, Strategy::Exchange);
        let exits: Vec<ExitRole> = graph.edges.iter().filter_map(|edge| edge.exit).collect();
        assert_eq!(
            exits,
            [ExitRole { copies: 0, contributes: 0 }],
            "windows count what they take in themselves"
        );
        let columns = &graph.edges[0].columns;
        assert_eq!(
            (graph.edges[0].kind, &columns[..]),
            (EdgeKind::Log, &["t".into(), "k".into(), "key group".into()][..])
        );
    }
}
