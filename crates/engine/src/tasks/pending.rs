//! What waits for a task in the edges that it reads.

use std::sync::Arc;

use penstock_memory::edge::EdgeGauge;
use penstock_queue::log::Work;
use penstock_scheduler::table::Pending;
use penstock_scheduler::views::InputViews;
use penstock_scheduler::{Arrivals, InputView};

use crate::tasks::share::ShareGauge;

/// An edge, and when its rows arrived.
pub type EdgeLook = (EdgeGauge, Arc<Arrivals>);

/// Looks up what waits in the edges that a task reads.
pub struct EdgesPending {
    edges: Vec<EdgeLook>,
    /// The part of the rows that is the task's own, where others take the rest.
    share: Option<Arc<ShareGauge>>,
}

impl EdgesPending {
    /// Looks at those edges; of their rows, `share` are the task's own.
    pub fn new(edges: Vec<EdgeLook>, share: Option<Arc<ShareGauge>>) -> Self {
        Self { edges, share }
    }
}

impl Pending for EdgesPending {
    fn work(&self) -> Work {
        let sum = |sum: Work, (gauge, _): &EdgeLook| {
            let work = gauge.work();
            Work { rows: sum.rows + work.rows, signals: sum.signals + work.signals }
        };
        let Work { rows, signals } = self.edges.iter().fold(Work::default(), sum);
        Work { rows: self.share.as_ref().map_or(rows, |share| share.of(rows)), signals }
    }

    fn arrived_ns(&self) -> Option<u64> {
        let waits = self.edges.iter().filter(|(gauge, _)| gauge.work().rows > 0);
        waits.filter_map(|(gauge, arrivals)| arrivals.oldest_ns(|| gauge.work().rows)).min()
    }

    fn inputs(&self, inputs: &mut InputViews) {
        let own = |rows: u64| self.share.as_ref().map_or(rows, |share| share.of(rows));
        let mut before = 0;
        for (gauge, arrivals) in &self.edges {
            let Work { rows, signals } = gauge.work();
            let arrived_ns = if rows > 0 { arrivals.oldest_ns(|| gauge.work().rows) } else { None };
            // So that all of them together have as many as `work` says.
            let own_rows = own(before + rows) - own(before);
            before += rows;
            inputs.push(InputView { rows: own_rows, signals, arrived_ns, ..InputView::default() });
        }
    }
}
