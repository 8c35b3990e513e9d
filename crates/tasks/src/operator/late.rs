//! Where late rows leave an operator, if they are read.

use penstock_memory::{ColumnBuf, Run, SlotId};
use penstock_operators::Stateful;

use crate::clock::Clock;
use crate::outlet::Outlet;

/// The way out of rows that come too late.
pub struct LateWay {
    pub(super) outlet: Outlet,
    /// The slots of the rows that go there.
    from: Vec<SlotId>,
    /// Copies of the rows on their way, column by column.
    pub(super) run: Run,
    rows: Vec<u32>,
}

impl LateWay {
    /// Lets late rows leave by `outlet`, whose columns are in the slots `from` of what comes in.
    pub fn new(outlet: Outlet, from: Vec<SlotId>, run: Run) -> Self {
        Self { outlet, from, run, rows: Vec::new() }
    }

    /// Copies the late rows of a run, and lets them leave.
    pub(super) fn take(&mut self, operator: &dyn Stateful, port: usize, run: &mut Run, clock: &dyn Clock) {
        self.rows.clear();
        operator.late_rows(port, run, &mut self.rows);
        if self.rows.is_empty() {
            return;
        }
        run.ready(&self.from);
        self.run.begin_owned(self.rows.len());
        for (slot, &from) in self.from.iter().enumerate() {
            let column = run.column(from);
            let mut copied = ColumnBuf::new(column.values.physical());
            copied.gather(column, &self.rows);
            self.run.put(slot, copied);
        }
        self.outlet.begin(&mut self.run);
        self.outlet.write(&self.run, clock);
    }
}
