//! From strands to tasks: which operators run together, and the edges between them.
//!
//! With chaining, a strand that begins at a stream or behind an operator runs in one task with that; one that reads
//! others runs in one task with the operator that it goes to. Without, each operator has a task of its own.
//!
//! An operator whose rows are exchanged has several tasks, its *parts*. All of them read the one edge at the end of the
//! strand before, each the rows of its keys, and whoever reads results reads those of all parts.

use std::collections::HashMap;
use std::ops::Range;

use super::spreading::Spread;
use super::strands::{Begin, Goes, OperatorId, StrandId, Strands};

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EdgeKey {
    /// Behind so many operators of a strand.
    Strand(StrandId, usize),
    /// Where the results of one part of an operator leave: the strand that they begin, and the part.
    Part(StrandId, usize),
    /// Where the late rows of an operator, or of one part of it, leave.
    Late(OperatorId, usize),
}

/// Where the rows of a task come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DraftInput {
    Stream(usize),
    Edge(EdgeKey),
}

/// Rows that come into a task, and the operators of a strand that they pass first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DraftPort {
    pub(super) strand: StrandId,
    pub(super) ops: Range<usize>,
    pub(super) inputs: Vec<DraftInput>,
}

/// A task before it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) ports: Vec<DraftPort>,
    /// An operator with state, and the operators behind it.
    pub(super) operator: Option<(OperatorId, Range<usize>)>,
    /// Which part of how many the operator is, where its rows are exchanged.
    pub(super) part: Option<(usize, usize)>,
    /// The strand that rows leave in, and how many of its operators they have passed by then.
    pub(super) out: (StrandId, usize),
}

impl Draft {
    /// The edge that it writes.
    pub(super) fn out_key(&self) -> EdgeKey {
        let (strand, done) = self.out;
        self.part.map_or(EdgeKey::Strand(strand, done), |(part, _)| EdgeKey::Part(strand, part))
    }

    /// The number of its part; the first where there are no others.
    pub(super) fn part_number(&self) -> usize {
        self.part.map_or(0, |(part, _)| part)
    }
}

/// All tasks but the sinks, in the order in which rows pass them, and the edge that each output reads.
pub(super) struct Drafts {
    pub(super) drafts: Vec<Draft>,
    pub(super) outputs: Vec<EdgeKey>,
}

struct Drafting<'a> {
    strands: &'a Strands,
    chain: bool,
    /// Whether the stream is read from a log that others read, too.
    is_shared: &'a [bool],
    /// How each operator runs, and how many parts it has when its rows are exchanged.
    spreads: &'a [Spread],
    parts: usize,
    drafts: Vec<Draft>,
    ports: HashMap<(OperatorId, usize), DraftPort>,
    /// The edge at the end of each strand that has one.
    ends: HashMap<StrandId, EdgeKey>,
}

impl Drafting<'_> {
    /// The operators of a strand in groups that run together, and those that prepare what the port behind them reads.
    fn groups(&self, strand: StrandId) -> (Vec<Range<usize>>, Range<usize>) {
        let ops = &self.strands.strands[strand].segment.ops;
        let mut groups = Vec::new();
        let mut start = 0;
        for (number, op) in ops.iter().enumerate() {
            if !op.prepares() {
                groups.push(start..number + 1);
                start = number + 1;
            }
        }
        (groups, start..ops.len())
    }

    fn push(&mut self, strand: StrandId, ops: Range<usize>, inputs: Vec<DraftInput>) -> EdgeKey {
        let done = ops.end;
        let ports = vec![DraftPort { strand, ops, inputs }];
        self.drafts.push(Draft { ports, operator: None, part: None, out: (strand, done) });
        EdgeKey::Strand(strand, done)
    }

    /// The task of an operator, or those of its parts: the edges where results leave.
    fn push_operator(
        &mut self,
        operator: OperatorId,
        strand: StrandId,
        tail: Range<usize>,
    ) -> Vec<DraftInput> {
        let count = self.strands.operators[operator].ports.len();
        let port = |port: usize| self.ports.remove(&(operator, port)).expect("S2: its ports came before");
        let ports: Vec<DraftPort> = (0..count).map(port).collect();
        let parts = self.parts_of(operator);
        let mut edges = Vec::new();
        for part in 0..parts {
            let draft = Draft {
                ports: ports.clone(),
                operator: Some((operator, tail.clone())),
                part: self.is_exchanged(operator).then_some((part, parts)),
                out: (strand, tail.end),
            };
            edges.push(DraftInput::Edge(draft.out_key()));
            self.drafts.push(draft);
        }
        edges
    }

    fn is_exchanged(&self, operator: OperatorId) -> bool {
        self.spreads[operator] == Spread::Exchanged
    }

    /// The number of tasks of an operator.
    fn parts_of(&self, operator: OperatorId) -> usize {
        if self.is_exchanged(operator) { self.parts } else { 1 }
    }

    fn add(&mut self, number: StrandId) {
        let strand = &self.strands.strands[number];
        let count = strand.segment.ops.len();
        let port = match strand.goes[..] {
            [Goes::Port(operator, port)] => Some((operator, port)),
            _ => None,
        };
        // Rows go to a function by an edge, where the watermark stands exactly before those that it matters for.
        let is_only_port = port.is_some_and(|(operator, _)| {
            let to = &self.strands.operators[operator];
            to.ports.len() == 1 && !to.calls_function() && !self.is_exchanged(operator)
        });
        let (mut groups, mut tail) = if self.chain { (Vec::new(), 0..count) } else { self.groups(number) };
        // What runs together with the beginning.
        let first = if self.chain { 0..count } else { 0..0 };
        let mut inputs = match &strand.begin {
            Begin::Stream(stream) => {
                let input = DraftInput::Stream(*stream);
                if self.chain && is_only_port || !self.chain && self.is_shared[*stream] {
                    vec![input]
                } else {
                    tail = if self.chain { count..count } else { tail };
                    vec![DraftInput::Edge(self.push(number, first, vec![input]))]
                }
            }
            Begin::Results(operator) if self.is_exchanged(*operator) => {
                let parts = self.push_operator(*operator, number, 0..0);
                if self.chain {
                    tail = count..count;
                    vec![DraftInput::Edge(self.push(number, first, parts))]
                } else {
                    parts
                }
            }
            Begin::Results(operator) => {
                tail = if self.chain { count..count } else { tail };
                self.push_operator(*operator, number, first)
            }
            Begin::Strands(from) => from.iter().map(|from| DraftInput::Edge(self.ends[from])).collect(),
            Begin::Late(operator) => {
                let late = |part| DraftInput::Edge(EdgeKey::Late(*operator, part));
                (0..self.parts_of(*operator)).map(late).collect()
            }
        };
        let is_begun = matches!(inputs[..], [DraftInput::Edge(EdgeKey::Strand(at, _))] if at == number);
        if self.chain
            && !is_begun
            && port.is_none()
            && (count > 0 || !strand.segment.scope.is_as_begun() || inputs.len() > 1)
        {
            groups.push(0..count);
        }
        for group in groups {
            inputs = vec![DraftInput::Edge(self.push(number, group, inputs))];
        }
        let is_at_end = |inputs: &[DraftInput]| matches!(inputs[..], [DraftInput::Edge(EdgeKey::Strand(at, done))] if at == number && done == count);
        match port {
            Some(port) => {
                // All parts of an operator read one edge, where the keys are known.
                if self.is_exchanged(port.0) && !is_at_end(&inputs) {
                    inputs = vec![DraftInput::Edge(self.push(number, tail, inputs))];
                    tail = count..count;
                }
                self.ports.insert(port, DraftPort { strand: number, ops: tail, inputs });
            }
            None => {
                // Without an operator, the rows are read where they are; unless they are several's, or not as they were.
                let end = match inputs[..] {
                    [DraftInput::Edge(key)]
                        if is_at_end(&inputs) || (count == 0 && strand.segment.scope.is_as_begun()) =>
                    {
                        key
                    }
                    _ => self.push(number, count..count, inputs),
                };
                self.ends.insert(number, end);
            }
        }
    }
}

impl Drafts {
    /// Puts operators together.
    pub(super) fn of(
        strands: &Strands,
        outputs: usize,
        chain: bool,
        is_shared: &[bool],
        (spreads, parts): (&[Spread], usize),
    ) -> Self {
        let mut drafting = Drafting {
            strands,
            chain,
            is_shared,
            spreads,
            parts,
            drafts: Vec::new(),
            ports: HashMap::new(),
            ends: HashMap::new(),
        };
        for strand in 0..strands.strands.len() {
            drafting.add(strand);
        }
        let mut keys: Vec<Option<EdgeKey>> = vec![None; outputs];
        for (number, strand) in strands.strands.iter().enumerate() {
            for goes in &strand.goes {
                if let Goes::Output(output) = goes {
                    keys[*output] = Some(drafting.ends[&number]);
                }
            }
        }
        let outputs = keys.into_iter().map(|key| key.expect("every output is some strand's")).collect();
        Self { drafts: drafting.drafts, outputs }
    }
}
