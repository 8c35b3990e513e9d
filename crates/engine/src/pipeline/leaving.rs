//! The tasks by which results leave.

use std::sync::Arc;

use penstock_memory::Exporter;
use penstock_scheduler::Profile;

use super::assemble::{Assembly, Installed, named};
use super::edges::SinkReader;
use crate::executors::bell::Bell;
use crate::plan::Outputs;
use penstock_tasks::account::Role;
use penstock_tasks::pending::EdgesPending;
use penstock_tasks::sink::{Sink, SinkParts};
use penstock_tasks::waker::Waker;
use penstock_tasks::writers::SinkWriter;

impl Assembly<'_> {
    /// Makes the task of an output.
    pub(super) fn sink(
        &mut self,
        output: usize,
        outputs: &Outputs,
        writer: Box<dyn SinkWriter>,
        bell: Arc<Bell>,
    ) -> Installed {
        let SinkReader { reader, waits, stored, room } =
            self.sink_readers.remove(&output).expect("the task that writes it came before");
        let waker: Arc<dyn Waker> = Arc::clone(&bell) as _;
        waker.set_pending(Box::new(EdgesPending::new(vec![waits], None)));
        let (name, plan) = &outputs.plans()[output];
        let profile: Arc<Profile> = Arc::default();
        self.account.operators.push(named("sink", Role::Sink, &profile));
        let parts = SinkParts {
            output,
            reader,
            stored,
            exporter: Exporter::charged(Arc::clone(plan.schema()), self.by.coordinator.result_account()),
            columns: plan.schema().fields().len(),
            writer,
            room,
            flush: Arc::clone(&self.flushes[output]),
            profile,
        };
        let name = if outputs.plans().len() == 1 { "sink".to_owned() } else { format!("sink {name}") };
        let body = Box::new(Sink::new(parts, &waker));
        Installed { name, body, bell, readers: Vec::new(), is_source: false, part: None }
    }
}
