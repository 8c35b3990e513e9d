//! The tasks by which results leave.

use std::sync::Arc;

use penstock_graph::{SinkSpec, TaskNumber};
use penstock_memory::Exporter;
use penstock_scheduler::Profile;
use penstock_tasks::account::Role;
use penstock_tasks::pending::EdgesPending;
use penstock_tasks::sink::{Sink, SinkParts};
use penstock_tasks::step::Task;

use super::assembly::{Assembly, named};
use super::outlets::SinkReader;

impl Assembly<'_> {
    /// Makes the task of an output.
    pub(super) fn sink(&mut self, task: TaskNumber, spec: &SinkSpec) -> Box<dyn Task> {
        let output = spec.output;
        let SinkReader { reader, waits, stored, room } =
            self.sink_readers.remove(&output).expect("TASKGRAPH-1: the task that writes it came before");
        let waker = self.waker(task);
        waker.set_pending(Box::new(EdgesPending::new(vec![waits], None)));
        let (_, schema) = &self.graph.outputs[output];
        let profile: Arc<Profile> = Arc::default();
        self.account.operators.push(named("sink", Role::Sink, &profile));
        let parts = SinkParts {
            output,
            reader,
            stored,
            exporter: Exporter::charged(Arc::clone(schema), self.by.coordinator.result_account()),
            columns: schema.fields().len(),
            writer: self.writers[output].take().expect("an output leaves by one task"),
            room,
            flush: Arc::clone(&self.flushes[output]),
            profile,
        };
        Box::new(Sink::new(parts, &waker))
    }
}
