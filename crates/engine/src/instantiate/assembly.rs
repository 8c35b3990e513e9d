//! What is known of a query while its tasks are made.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use penstock_graph::strands::StageSpec;
use penstock_graph::{OperatorId, StrandId, TaskGraph, TaskKind, TaskNumber};
use penstock_memory::EdgeReader;
use penstock_plan::Resources;
use penstock_scheduler::{Arrivals, Profile};

use super::charges::TableCharges;
use super::lanes::Lanes;
use super::outlets::SinkReader;
use super::{Assembler, Origin, Ways};
use crate::checkpoint::InputPart;
use crate::error::StartError;
use crate::executors::bell::Bell;
use crate::executors::{NewTask, TaskInputs};
use crate::query::tables::LiveTable;
use penstock_tasks::account::{self, Account, Role};
use penstock_tasks::chain::{Chain, Link};
use penstock_tasks::outlet::FlushRequest;
use penstock_tasks::rejects::{OnError, Rejects, Sight};
use penstock_tasks::results::Results;
use penstock_tasks::waker::Waker;
use penstock_tasks::writers::SinkWriter;

/// Everything that is known of a query while its tasks are made.
pub(super) struct Assembly<'a> {
    pub(super) by: &'a Assembler<'a>,
    pub(super) graph: &'a TaskGraph,
    /// The bell of each task, settled before anything is told whom to wake.
    pub(super) bells: Vec<Arc<Bell>>,
    /// The wakers of each input of each task.
    inputs: Vec<Vec<Arc<dyn Waker>>>,
    /// How each output is asked for what it holds.
    pub(super) flushes: Vec<Arc<FlushRequest>>,
    /// Where each stream comes from, until its task is made.
    pub(super) origins: Vec<Option<Box<dyn Origin>>>,
    /// Where each output goes, until its task is made.
    pub(super) writers: Vec<Option<Box<dyn SinkWriter>>>,
    /// Readers of edges that were made, by task and input.
    pub(super) readers: HashMap<(TaskNumber, usize), (EdgeReader, Arc<Arrivals>)>,
    /// The reader of each output.
    pub(super) sink_readers: HashMap<usize, SinkReader>,
    /// The rings of the lanes of each stream that is split.
    pub(super) lanes: HashMap<usize, Lanes>,
    pub(super) account: Account,
    /// Where each operator is in the account: its parts count together.
    pub(super) counted: HashMap<OperatorId, usize>,
    /// What all instances of its operators share.
    pub(super) resources: Resources,
    tables: TableCharges,
    on_error: OnError,
    letters: Option<Results>,
    pub(super) part: Option<&'a InputPart>,
}

pub(super) fn named(name: &str, role: Role, profile: &Arc<Profile>) -> account::Operator {
    account::Operator { name: name.to_owned(), role, profiles: vec![Arc::clone(profile)] }
}

/// A bell as what a task knows of it.
pub(super) fn waker(bell: &Arc<Bell>) -> Arc<dyn Waker> {
    Arc::clone(bell) as _
}

impl<'a> Assembly<'a> {
    /// Settles whom everything wakes.
    pub(super) fn new(
        by: &'a Assembler<'a>,
        graph: &'a TaskGraph,
        origins: Vec<Box<dyn Origin>>,
        writers: Vec<Box<dyn SinkWriter>>,
        ways: Ways<'a>,
    ) -> Result<Self, StartError> {
        let worthwhile = |kind: &TaskKind| match kind {
            TaskKind::Sink(sink) => by.worthwhile_rows(&*writers[sink.output]),
            TaskKind::Operator(_) | TaskKind::Splitter(_) | TaskKind::Lane(_) => 1,
        };
        let task = |kind: &TaskKind| {
            let inputs = if let TaskKind::Operator(operator) = kind { operator.inputs().count() } else { 1 };
            TaskInputs { inputs, least_rows: worthwhile(kind) }
        };
        let mut tasks: Vec<TaskInputs> = graph.tasks.iter().map(|made| task(&made.kind)).collect();
        // The rings of lanes are inputs of the merging task, too.
        for place in graph.edges.iter().flat_map(|edge| &edge.readers) {
            let inputs = &mut tasks[place.task].inputs;
            *inputs = (*inputs).max(place.input + 1);
        }
        let reserved = by.executor.reserve(&tasks)?;
        let (bells, inputs): (Vec<Arc<Bell>>, _) =
            reserved.into_iter().map(|task| (task.bell, task.inputs)).unzip();
        let sinks = &bells[bells.len() - writers.len()..];
        Ok(Self {
            by,
            graph,
            flushes: sinks.iter().map(|bell| Arc::new(FlushRequest::new(Arc::clone(bell) as _))).collect(),
            bells,
            inputs,
            origins: origins.into_iter().map(Some).collect(),
            writers: writers.into_iter().map(Some).collect(),
            readers: HashMap::new(),
            sink_readers: HashMap::new(),
            lanes: HashMap::new(),
            account: Account { tick: graph.tick, ..Account::default() },
            counted: HashMap::new(),
            resources: Resources::new(ways.functions),
            tables: TableCharges::default(),
            on_error: ways.on_error,
            letters: ways.letters.cloned(),
            part: ways.part,
        })
    }

    /// Makes all tasks. Returns them with the account, and the tables that they look rows up in.
    pub(super) fn finish(mut self) -> Result<(Vec<NewTask>, Account, Vec<LiveTable>), StartError> {
        let mut tasks = Vec::new();
        for (number, task) in self.graph.tasks.iter().enumerate() {
            let (body, gauge) = match &task.kind {
                TaskKind::Operator(operator) => self.operator_task(number, operator)?,
                TaskKind::Splitter(splitter) => self.splitter(number, splitter)?,
                TaskKind::Lane(lane) => self.lane(number, lane)?,
                TaskKind::Sink(sink) => (self.sink(number, sink), None),
            };
            tasks.push(NewTask {
                name: task.name.clone(),
                body,
                bell: Arc::clone(&self.bells[number]),
                readers: task.readers.clone(),
                is_source: self.graph.is_source(number),
                part: task.part.map(|part| part.number).zip(gauge),
            });
        }
        Ok((tasks, self.account, self.tables.live))
    }

    /// Returns what wakes a task for what has come to an input.
    pub(super) fn input_waker(&self, task: TaskNumber, input: usize) -> &Arc<dyn Waker> {
        &self.inputs[task][input]
    }

    /// Returns what wakes a task for anything else.
    pub(super) fn waker(&self, task: TaskNumber) -> Arc<dyn Waker> {
        waker(&self.bells[task])
    }

    /// Makes stages of a strand, over a run of its slots.
    pub(super) fn chain(&mut self, strand: StrandId, stages: Range<usize>) -> Result<Chain, StartError> {
        let graph = self.graph;
        let strand = &graph.strands.strands[strand];
        let role = if strand.is_raw { Role::Stage } else { Role::Tail };
        let mut links = Vec::new();
        for stage in &strand.segment.stages[stages] {
            let link = self.link(stage)?;
            self.account.operators.push(named(link.name, role, &link.profile));
            links.push(link);
        }
        let (run, rejected) = (strand.segment.scope.run(), Arc::default());
        self.account.count_rejected(role, &rejected);
        Ok(Chain { run, links, rejected })
    }

    /// Makes an instance of a stage.
    pub(super) fn link(&mut self, stage: &StageSpec) -> Result<Link, StartError> {
        let coordinator = self.by.coordinator;
        let charge = |table| self.tables.charge(stage, table, coordinator, &mut self.resources);
        let table_charge = stage.table().map(charge).transpose()?;
        let made = stage.make(&self.resources)?;
        let sight = stage.sight().map(|columns| Sight::new(&columns.schema, &columns.slots));
        Ok(Link { name: stage.name, stage: made, profile: Arc::default(), sight, table_charge })
    }

    /// Returns how a task deals with rows that its operators reject, if the query does not fail with them.
    pub(super) fn rejects(&self, task: TaskNumber) -> Option<Rejects> {
        if self.on_error == OnError::Fail {
            return None;
        }
        if let Some(letters) = &self.letters {
            letters.connect(&self.waker(task));
        }
        Some(Rejects::new(self.letters.clone()))
    }
}
