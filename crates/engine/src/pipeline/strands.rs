//! From a plan to strands: what rows pass one after the other, without coming together or apart.
//!
//! S1. A strand begins at a stream, at an operator with state, or where several strands are read, and ends where its rows
//!     go into such an operator, are read by several, or leave.
//! S2. Strands are numbered so that whoever reads one has a larger number.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_memory::SlotId;
use penstock_plan::{Bound, ClockSlots, Form, Graph, Made, Node, Outputs, Resources, StreamStep, WindowKind};
use penstock_progress::Windows;
use penstock_types::PlanError;

use super::segment::Segment;
use super::spreading::Spread;

pub(super) type StrandId = usize;
pub(super) type OperatorId = usize;

/// Where the rows of a strand come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// From outside.
    Stream(usize),
    /// From other strands, as they are.
    Strands(Vec<StrandId>),
    /// Results of an operator.
    Results(OperatorId),
    /// The rows that an operator found late.
    Late(OperatorId),
}

/// Where the rows of a strand go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    /// Into an operator, by that port.
    Port(OperatorId, usize),
    /// To another strand.
    Strand(StrandId),
    /// Out, as that output.
    Output(usize),
}

/// Rows on their way.
#[derive(Clone, Debug)]
pub(super) struct Strand {
    pub(super) begin: Begin,
    pub(super) segment: Segment,
    pub(super) goes: Vec<Goes>,
    /// Whether all of its rows came in from outside as they are, changed and filtered at most.
    pub(super) is_raw: bool,
    /// Slots that are read at its beginning, once that is known.
    live: Vec<SlotId>,
}

/// A column that the reader of a strand needs: one of those in scope, or the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Column(usize),
    Time,
}

/// The windows that a clock on the wall closes, and for how long after the last row it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) windows: Vec<Windows>,
    pub(super) linger_us: i64,
}

/// A stream, and how its batches are read.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) node: Arc<Node>,
    pub(super) strand: StrandId,
    /// Which columns of a batch are read.
    pub(super) reads: Vec<bool>,
    /// Where event time goes, if the stream has one.
    pub(super) clock: Option<ClockSlots>,
    /// What the clock closes, where the time of arrival is event time.
    pub(super) ticks: Option<Ticks>,
}

impl Stream {
    pub(super) fn step(&self) -> &StreamStep {
        self.node.step().as_stream().expect("it was made of a stream")
    }
}

/// An operator that takes runs in and gives others out.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    pub(super) node: Arc<Node>,
    pub(super) ports: Vec<Bound>,
    pub(super) results: StrandId,
    pub(super) late: Option<StrandId>,
}

impl Operator {
    /// Whether it calls a function with the rows, which are judged as they were before.
    pub(super) fn calls_function(&self) -> bool {
        self.node.step().function().is_some()
    }
}

/// A plan, as far as it does not matter how it is run.
#[derive(Clone, Debug)]
pub(super) struct Strands {
    pub(super) strands: Vec<Strand>,
    pub(super) streams: Vec<Stream>,
    pub(super) operators: Vec<Operator>,
}

impl Strand {
    /// What this strand reads of those that it begins with.
    pub(super) fn needs(&self) -> BTreeSet<Need> {
        let columns = self.begin_columns();
        let need = |&slot: &SlotId| {
            if slot < columns {
                return Need::Column(slot);
            }
            debug_assert_eq!(
                Some(slot),
                self.segment.scope.clock().map(|clock| clock.time),
                "SCOPE-2: only the time is left"
            );
            Need::Time
        };
        self.live.iter().map(need).collect()
    }

    /// Number of columns at its beginning: they fill the first slots.
    fn begin_columns(&self) -> usize {
        self.segment.scope.begin_columns()
    }

    /// The slot at its beginning that a need is about.
    pub(super) fn slot_at_begin(&self, need: Need) -> SlotId {
        match need {
            Need::Column(column) => column,
            Need::Time => self.clock().time,
        }
    }

    /// The slot at its end that a need of its reader is about.
    pub(super) fn slot_at_end(&self, need: Need) -> SlotId {
        match need {
            Need::Column(column) => self.segment.scope.slots()[column],
            Need::Time => self.clock().time,
        }
    }

    fn clock(&self) -> ClockSlots {
        self.segment.scope.clock().expect("time is read only where it is known")
    }
}

/// The strand that holds the rows of each node, while it is still growing.
struct Builder<'a> {
    graph: &'a Graph,
    /// Whether operators keep all columns that they see, to hand out rows that they reject.
    keeps_sight: bool,
    /// How often each node is read, as an output or by others.
    uses: Vec<usize>,
    /// The strand that ends at each node.
    at: Vec<StrandId>,
    built: Strands,
}

impl Builder<'_> {
    fn begin(&mut self, begin: Begin, schema: &SchemaRef, node: &Node, is_raw: bool) -> StrandId {
        let segment = Segment::new(schema, node.time(), self.keeps_sight);
        self.built.strands.push(Strand { begin, segment, goes: Vec::new(), is_raw, live: Vec::new() });
        self.built.strands.len() - 1
    }

    /// A strand that can grow behind that node: the one that ends there, unless others read it too.
    fn behind(&mut self, input: usize) -> StrandId {
        let strand = self.at[input];
        if self.uses[input] == 1 {
            return strand;
        }
        let node = Arc::clone(&self.graph.nodes()[input]);
        self.read(&[input], &node)
    }

    /// A strand that reads the rows of these nodes, with the columns and the time of `node`.
    fn read(&mut self, inputs: &[usize], node: &Node) -> StrandId {
        let from: Vec<StrandId> = inputs.iter().map(|&input| self.at[input]).collect();
        let is_raw = from.iter().all(|&strand| self.built.strands[strand].is_raw);
        let strand = self.begin(Begin::Strands(from.clone()), node.schema(), node, is_raw);
        for from in from {
            self.built.strands[from].goes.push(Goes::Strand(strand));
        }
        strand
    }

    fn add(&mut self, number: usize) -> Result<(), PlanError> {
        let node = Arc::clone(&self.graph.nodes()[number]);
        let inputs = self.graph.inputs(number);
        let strand = match node.step().form() {
            Form::Source => self.stream(&node),
            Form::Stage => {
                let strand = self.behind(inputs[0]);
                self.built.strands[strand].segment.bind(&node, 0)?;
                strand
            }
            Form::Union => self.read(inputs, &node),
            Form::LateRows => {
                let before = &self.graph.nodes()[inputs[0]];
                let is_it = |operator: &Operator| Arc::ptr_eq(&operator.node, before);
                let operator = self.built.operators.iter().position(is_it).expect("it is behind an operator");
                match self.built.operators[operator].late {
                    Some(strand) => strand,
                    None => {
                        let strand = self.begin(Begin::Late(operator), node.schema(), &node, false);
                        self.built.operators[operator].late = Some(strand);
                        strand
                    }
                }
            }
            Form::Operator => {
                let operator = self.built.operators.len();
                let mut ports = Vec::new();
                for (port, &input) in inputs.iter().enumerate() {
                    let strand = self.behind(input);
                    let strand = &mut self.built.strands[strand];
                    ports.push(strand.segment.bind(&node, port)?);
                    strand.goes.push(Goes::Port(operator, port));
                }
                let results = self.begin(Begin::Results(operator), node.schema(), &node, false);
                self.built.operators.push(Operator { node: Arc::clone(&node), ports, results, late: None });
                results
            }
        };
        self.at.push(strand);
        Ok(())
    }

    fn stream(&mut self, node: &Arc<Node>) -> StrandId {
        let number = self.built.streams.len();
        let strand = self.begin(Begin::Stream(number), node.schema(), node, true);
        let clock = self.built.strands[strand].segment.scope.clock();
        let stream = Stream { node: Arc::clone(node), strand, reads: Vec::new(), clock, ticks: None };
        self.built.streams.push(stream);
        strand
    }
}

impl Strands {
    /// Cuts plans into strands.
    pub(super) fn of(outputs: &Outputs, keeps_sight: bool) -> Result<Self, PlanError> {
        let graph = outputs.graph();
        let mut uses: Vec<usize> = vec![0; graph.nodes().len()];
        for (number, node) in graph.nodes().iter().enumerate() {
            // Late rows leave by a way of their own.
            let reads = if node.step().form() == Form::LateRows { &[][..] } else { graph.inputs(number) };
            reads.iter().for_each(|&input| uses[input] += 1);
        }
        graph.roots().iter().for_each(|&root| uses[root] += 1);
        let built = Self { strands: Vec::new(), streams: Vec::new(), operators: Vec::new() };
        let mut builder = Builder { graph: &graph, keeps_sight, uses, at: Vec::new(), built };
        for number in 0..graph.nodes().len() {
            builder.add(number)?;
        }
        for (output, &root) in graph.roots().iter().enumerate() {
            let strand = builder.at[root];
            builder.built.strands[strand].goes.push(Goes::Output(output));
        }
        let mut built = builder.built;
        built.settle();
        built.set_ticks();
        Ok(built)
    }

    /// Where the time of arrival is event time, it goes on by itself, until the longest window has closed.
    fn set_ticks(&mut self) {
        let (mut windows, mut longest) = (Vec::new(), 0);
        for (window, lateness) in self.operators.iter().filter_map(|operator| operator.node.step().windows())
        {
            let whole = match window {
                WindowKind::Tumbling { size, .. } | WindowKind::Sliding { size, .. } => size,
                WindowKind::Session { gap } => gap.saturating_mul(2),
            };
            longest = longest.max(whole.saturating_add(lateness));
            windows.extend(window.windows());
        }
        // Windows over windows close one after the other.
        let linger_us = i64::saturating_mul(longest, 1 + self.operators.len() as i64);
        for stream in &mut self.streams {
            if stream.clock.is_some() && stream.step().arrival.is_some() && longest > 0 {
                stream.ticks = Some(Ticks { windows: windows.clone(), linger_us });
            }
        }
    }

    /// Settles what is read where: by each strand, of each batch, and whether the times of results are.
    fn settle(&mut self) {
        self.find_live();
        self.prune();
        for operator in 0..self.operators.len() {
            let time = self.result_time(self.operators[operator].results);
            for port in &mut self.operators[operator].ports {
                port.results.time_slot = time;
            }
        }
    }

    /// Settles what each strand has to carry, from the ends backwards (S2).
    fn find_live(&mut self) {
        for strand in (0..self.strands.len()).rev() {
            let mut reads: Vec<SlotId> = Vec::new();
            for goes in &self.strands[strand].goes {
                match *goes {
                    Goes::Output(_) => reads.extend_from_slice(self.strands[strand].segment.scope.slots()),
                    Goes::Strand(reader) => {
                        let needs = self.strands[reader].needs();
                        reads.extend(needs.into_iter().map(|need| self.strands[strand].slot_at_end(need)));
                    }
                    Goes::Port(operator, port) => {
                        let operator = &self.operators[operator];
                        reads.extend(operator.ports[port].reads());
                        // What a function gives back is judged by the watermark of the rows that it was given, and
                        // only times tell where that has to be exact.
                        let is_judged = self.result_time(operator.results).is_some();
                        if is_judged && operator.calls_function() {
                            let clock = self.strands[strand].segment.scope.clock();
                            reads.extend(clock.map(|clock| clock.time));
                        }
                        if let Some(late) = operator.late {
                            let needs = self.strands[late].needs();
                            reads
                                .extend(needs.into_iter().map(|need| self.strands[strand].slot_at_end(need)));
                        }
                    }
                }
            }
            let strand = &mut self.strands[strand];
            strand.segment.end_reads = reads;
            strand.live = strand.segment.live(|done| done == 0).swap_remove(0);
        }
    }

    /// A column of a source that nobody reads is never converted.
    fn prune(&mut self) {
        for stream in &mut self.streams {
            let mut reads = vec![false; stream.step().schema.fields().len()];
            for slot in self.strands[stream.strand].live.iter().copied().chain(stream.step().clock_columns())
            {
                if let Some(column) = reads.get_mut(slot) {
                    *column = true;
                }
            }
            stream.reads = reads;
        }
    }

    /// Lets the strands before operators whose rows are exchanged write key groups down.
    pub(super) fn exchange(&mut self, spreads: &[Spread]) {
        for strand in &mut self.strands {
            if let [Goes::Port(operator, port)] = strand.goes[..]
                && spreads[operator] == Spread::Exchanged
            {
                let bound = &mut self.operators[operator].ports[port];
                let groups = bound.prepare_groups(&mut strand.segment.scope);
                strand.segment.prepare(groups);
            }
        }
        if spreads.contains(&Spread::Exchanged) {
            self.settle();
        }
    }

    /// Makes an instance of an operator.
    pub(super) fn make(&self, operator: OperatorId, resources: &Resources) -> Result<Made, PlanError> {
        let operator = &self.operators[operator];
        operator.node.step().make(&operator.ports, resources)
    }

    /// The slot of the time of results, if somebody behind goes by it.
    pub(super) fn result_time(&self, results: StrandId) -> Option<SlotId> {
        let results = &self.strands[results];
        results.segment.scope.clock().map(|clock| clock.time).filter(|slot| results.live.contains(slot))
    }
}
