//! What waits for a task in its inputs.

use std::sync::Arc;

use penstock_memory::edge::EdgeGauge;
use penstock_queue::log::Work;
use penstock_scheduler::table::Pending;
use penstock_scheduler::views::InputViews;
use penstock_scheduler::{Arrivals, InputView};

use crate::share::ShareGauge;

/// Looks up what waits in several inputs of a task.
pub struct InputsPending(Vec<Box<dyn Pending>>);

impl InputsPending {
    /// Looks at those inputs; at the only one, if there is no other.
    pub fn of(mut inputs: Vec<Box<dyn Pending>>) -> Box<dyn Pending> {
        match inputs.pop() {
            Some(only) if inputs.is_empty() => only,
            last => {
                inputs.extend(last);
                Box::new(Self(inputs))
            }
        }
    }
}

impl Pending for InputsPending {
    fn work(&self) -> Work {
        let sum =
            |sum: Work, work: Work| Work { rows: sum.rows + work.rows, signals: sum.signals + work.signals };
        self.0.iter().map(|input| input.work()).fold(Work::default(), sum)
    }

    fn arrived_ns(&self) -> Option<u64> {
        let waits = self.0.iter().filter(|input| input.work().rows > 0);
        waits.filter_map(|input| input.arrived_ns()).min()
    }

    fn inputs(&self, inputs: &mut InputViews) {
        self.0.iter().for_each(|input| input.inputs(inputs));
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    struct Waits(u64, u64);

    impl Pending for Waits {
        fn work(&self) -> Work {
            Work { rows: self.0, signals: 1 }
        }

        fn arrived_ns(&self) -> Option<u64> {
            Some(self.1)
        }
    }

    #[test]
    fn several_inputs_wait_together_and_the_oldest_rows_count() {
        let all =
            InputsPending::of(vec![Box::new(Waits(3, 70)), Box::new(Waits(0, 10)), Box::new(Waits(2, 50))]);
        assert_eq!((all.work(), all.arrived_ns()), (Work { rows: 5, signals: 3 }, Some(50)));
        let mut views = InputViews::new();
        all.inputs(&mut views);
        assert_eq!(views.iter().map(|view| view.rows).collect::<Vec<_>>(), [3, 0, 2]);
        let one = InputsPending::of(vec![Box::new(Waits(0, 10))]);
        assert_eq!((one.work(), one.arrived_ns()), (Work { rows: 0, signals: 1 }, Some(10)));
        let none = InputsPending::of(Vec::new());
        assert_eq!((none.work(), none.arrived_ns()), (Work::default(), None));
    }
}
