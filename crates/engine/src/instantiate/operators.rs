//! Tasks that run stages, and perhaps an operator.

use std::sync::Arc;

use penstock_graph::{EdgeId, OperatorSpec, OperatorUse, StrandId, TaskNumber};
use penstock_memory::Run;
use penstock_plan::Made;
use penstock_tasks::account::{LateRows, Role};
use penstock_tasks::operator::{Inside, Keyed, KeyedCounts, LateWay, MappedTime, Mapper};
use penstock_tasks::outlet::Outlet;
use penstock_tasks::rejects::Sight;
use penstock_tasks::share::ShareGauge;
use penstock_tasks::step::Task;
use penstock_tasks::task::OperatorTask;

use super::assembly::{Assembly, named};
use super::inputs::InputLooks;
use crate::error::StartError;

/// A task, and the gauge of the part of the rows that it takes.
pub(super) type Body = (Box<dyn Task>, Option<Arc<ShareGauge>>);

impl Assembly<'_> {
    /// Makes a task that runs stages, and perhaps an operator.
    pub(super) fn operator_task(
        &mut self,
        task: TaskNumber,
        spec: &OperatorSpec,
    ) -> Result<Body, StartError> {
        if let Some(used) = spec.operator.as_ref().filter(|used| used.merges) {
            return self.merger(task, spec, used);
        }
        let part = self.graph.tasks[task].part.map(|part| (part.number, part.of));
        let gauge = part.map(|(_, parts)| Arc::new(ShareGauge::new(parts)));
        let (mut waits, mut inputs) = (InputLooks::default(), Vec::new());
        for (number, (input, port)) in spec.inputs().enumerate() {
            let taken = part.zip(gauge.as_ref());
            inputs.push((self.input((task, number), input, taken, &mut waits)?, port));
        }
        let mut ports = Vec::new();
        for port in &spec.ports {
            ports.push(self.chain(port.strand, port.stages.clone())?);
        }
        if let Some(pending) = waits.all(gauge.as_ref()) {
            self.bells[task].row.set_pending(pending);
        }
        let keyed = match &spec.operator {
            None => None,
            Some(used) => Some(self.keyed(task, spec, used)?),
        };
        let outlet = self.outlet(spec.writes)?;
        let mut made = OperatorTask::new(inputs, ports, keyed, outlet, self.rejects(task));
        if let Some(part) = self.part {
            made.restore(part);
        }
        Ok((Box::new(made), gauge))
    }

    /// Makes the operator of a task, and the stages that its results pass.
    pub(super) fn keyed(
        &mut self,
        task: TaskNumber,
        spec: &OperatorSpec,
        used: &OperatorUse,
    ) -> Result<Keyed, StartError> {
        let graph = self.graph;
        let operator = &graph.strands.operators[used.operator];
        let ports: Vec<StrandId> = spec.ports.iter().map(|port| port.strand).collect();
        let made = self.inside(task, used.operator)?;
        let counts = KeyedCounts {
            profile: Arc::default(),
            port_rows: ports.iter().map(|_| Arc::default()).collect(),
            late: ports.iter().map(|_| Arc::default()).collect(),
            rejected: Arc::default(),
            closings: Arc::default(),
        };
        self.count(used, &ports, &counts);
        let late = used.late.map(|edge| self.late_way(edge)).transpose()?;
        let results = &graph.strands.strands[operator.results].segment.scope;
        let rows_per_run = self.by.rows_per_run(results.row_bytes());
        let chain = self.chain(operator.results, used.tail.clone())?;
        let state = self.by.coordinator.state_account();
        let late = (late, operator.node.0.step().closes_after_ns());
        let mut keyed = Keyed::new((operator.name(), made), counts, state, chain, rows_per_run, late);
        if let Some(part) = self.part {
            keyed.restore(part, used.operator)?;
        }
        Ok(keyed)
    }

    /// Enters an operator into the account; its parts count together, and its lanes with them.
    fn count(&mut self, used: &OperatorUse, ports: &[StrandId], counts: &KeyedCounts) {
        let graph = self.graph;
        let operator = &graph.strands.operators[used.operator];
        self.account.closings.push(Arc::clone(&counts.closings));
        let at = *self.counted.entry(used.operator).or_insert(self.account.operators.len());
        match self.account.operators.get_mut(at) {
            Some(counted) => counted.profiles.push(Arc::clone(&counts.profile)),
            None => self.account.operators.push(named(operator.name(), Role::Keyed, &counts.profile)),
        }
        let is_raw = |port: StrandId| graph.strands.strands[port].is_raw;
        for ((&port, rows), count) in ports.iter().zip(&counts.port_rows).zip(&counts.late) {
            let late =
                LateRows { count: Arc::clone(count), is_raw: is_raw(port), is_read: used.late.is_some() };
            self.account.count_port(rows, late);
        }
        // Only a function rejects rows itself, and it has one port.
        self.account.count_rejected_outside(is_raw(ports[0]), &counts.rejected);
    }

    /// Makes the way by which late rows leave.
    fn late_way(&mut self, edge: EdgeId) -> Result<LateWay, StartError> {
        let mut outlet: Outlet = self.outlet(edge)?;
        let edge = &self.graph.edges[edge];
        let mut run = Run::new();
        outlet.set_slots(edge.kinds.iter().map(|kind| run.add_slot(kind.physical)).collect());
        Ok(LateWay::new(outlet, edge.slots.clone(), run))
    }

    /// Makes an instance of an operator.
    fn inside(&self, task: TaskNumber, operator: usize) -> Result<Inside, StartError> {
        let called = match self.graph.strands.operators[operator].make(&self.resources)? {
            Made::Function(called) => called,
            Made::Operator(made) => return Ok(Inside::Stateful(made)),
            other => unreachable!("an operator is not {other:?}"),
        };
        let sight = Sight::new(&called.columns.schema, &called.columns.slots);
        let time =
            called.time.map(|time| MappedTime { column: time.column, slot: time.slot, is_end: time.is_end });
        let mapper = Mapper::new(called.function, sight, &called.returns, time, self.waker(task));
        Ok(Inside::Map(Box::new(mapper)))
    }
}
