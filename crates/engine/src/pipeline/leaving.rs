//! The tasks by which results leave.

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_memory::{Exporter, SlotId};
use penstock_progress::NEVER;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Profile;

use super::Body;
use super::assemble::{Assembly, Destination, Installed, named};
use super::edges::{EdgesPending, SinkReader};
use super::sink::{Sink, Taker};
use crate::engine::bell::Bell;
use crate::plan::Outputs;
use crate::query::account::Role;

impl Assembly<'_> {
    /// The task of an output.
    pub(super) fn sink(
        &mut self,
        output: usize,
        outputs: &Outputs,
        destination: Destination,
        bell: Arc<Bell>,
    ) -> Installed {
        let SinkReader { reader, waits, stored, room } =
            self.sink_readers.remove(&output).expect("whoever writes it came before");
        bell.row.set_pending(Box::new(EdgesPending { edges: vec![waits], share: None }));
        let (name, plan) = &outputs.plans()[output];
        let mut run = penstock_memory::Run::new();
        let slots: Vec<SlotId> = stored.into_iter().map(|physical| run.add_slot(physical)).collect();
        let profile: Arc<Profile> = Arc::default();
        self.account.operators.push(named("sink", Role::Sink, &profile));
        let sink = Sink {
            gauge: reader.gauge(),
            reader,
            run,
            // Its columns come first, in order, and the time that others ask for behind them.
            columns: (0..plan.schema().fields().len()).collect(),
            slots,
            exporter: Exporter::charged(Arc::clone(plan.schema()), self.by.coordinator.result_account()),
            taker: taker(destination, &bell, &room),
            room,
            output,
            press: Arc::clone(&self.presses[output]),
            waiting: VecDeque::new(),
            delivered: 0,
            profile,
            ended: false,
            watermark: NEVER,
            part: self.part.map(|part| (part.clone(), output)),
        };
        let name = if outputs.plans().len() == 1 { "sink".to_owned() } else { format!("sink {name}") };
        let body = Body::Sink(Box::new(sink));
        Installed { name, body, bell, readers: Vec::new(), is_source: false, part: None }
    }
}

fn taker(destination: Destination, bell: &Arc<Bell>, room: &Arc<Wanted>) -> Taker {
    match destination {
        Destination::Collected(batches) => Taker::Collected(batches),
        Destination::Results(results) => {
            results.hang(bell);
            results.hang_writer(Arc::clone(room) as _);
            Taker::Results(results)
        }
        Destination::Deliver(deliver, doorbell) => {
            doorbell.hang(bell);
            Taker::Deliver(deliver)
        }
        Destination::Nobody => Taker::Nobody,
    }
}
