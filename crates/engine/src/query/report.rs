//! What a query tells of itself: its metrics while it runs, and its output.

use std::sync::Arc;

use penstock_tasks::account::Operator;

use super::QueryMetrics;
use super::face::TaskFace;
use super::state::{Kept, State, locked};
use crate::clock::now_ns;
use crate::metrics::TaskMetrics;
use crate::output::{OperatorReport, Output, OutputPart};

impl State {
    /// Returns what it gave.
    pub(super) fn output(&self) -> Output {
        let rows = self.account.rows();
        let part = |kept: &Kept| OutputPart {
            name: kept.name.clone(),
            schema: Arc::clone(&kept.schema),
            batches: kept
                .collected
                .as_ref()
                .map_or_else(Vec::new, |batches| std::mem::take(&mut *locked(batches))),
        };
        Output {
            parts: self.outputs.iter().map(part).collect(),
            rows_in: rows.rows_in,
            rows_copied: rows.copied,
            rows_contributed: rows.contributed,
            rows_filtered: rows.filtered,
            rows_late: rows.late,
            late_results: rows.late_results,
            rows_shed: rows.shed,
            rows_rejected: rows.rejected,
            rejected_results: rows.rejected_results,
            late_by: self.account.late_by(),
            tick: self.account.tick,
            dropped_late: self.account.dropped_late(),
            batches_in: self.account.batches(),
            operators: self.reports(),
            memory: self.coordinator.snapshot(),
            event_latency: self.account.event_latency.summary(),
            output_latency: self.account.output_latency.summary(),
        }
    }

    fn reports(&self) -> Vec<OperatorReport> {
        let report =
            |operator: &Operator| OperatorReport { name: operator.name.clone(), profile: operator.read() };
        self.account.operators.iter().map(report).collect()
    }

    /// Returns its metrics.
    pub(crate) fn metrics(&self) -> QueryMetrics {
        let until = match self.ended_ns.get() {
            0 => now_ns(),
            ended => ended,
        };
        QueryMetrics {
            rows: self.account.rows(),
            batches_in: self.account.batches(),
            late_by: self.account.late_by(),
            tick: self.account.tick,
            seconds: until.saturating_sub(self.started_ns) as f64 / 1e9,
            rows_per_second: f64::from_bits(self.rate.get()),
            event_latency: self.account.event_latency.summary(),
            output_latency: self.account.output_latency.summary(),
            backlog_rows: self.account.backlog_rows(),
            slipped_ns: self.account.slipped_ns(),
            idle_sources: self.account.idle_sources(),
            idles: self.account.idles(),
            clock_closings: self.account.clock_closings(),
            operators: self.reports(),
            tasks: self.tasks(),
        }
    }

    fn tasks(&self) -> Vec<TaskMetrics> {
        let task = |face: &TaskFace| {
            let (row, work) = (&face.bell.row, face.bell.row.work());
            TaskMetrics {
                name: face.name.clone(),
                pending_rows: work.rows,
                signals: work.signals,
                runs: row.did.runs.get(),
                busy_ns: row.did.busy_ns.get(),
                blocked_ns: row.did.blocked_ns.get(),
                time_share: row.time_share(),
                cost_ns: row.cost_ns(),
                selectivity: row.selectivity(),
            }
        };
        self.faces().iter().map(task).collect()
    }
}
