//! How long a task runs: rows per run, and how long until it goes back to the scheduler.

/// Bytes of the columns of a run, which stay in the second-level cache.
/// From `cargo bench -p penstock-benches --bench ysb`, rows of 24 bytes: flat from 2,048 rows per run on; 512
/// rows are a quarter slower.
const RUN_BYTES: usize = 128 * 1024;
const FEWEST: usize = 512;
const MOST: usize = 8192;

/// Rows of a run where a policy goes block by block: from here on longer runs are no faster (see `RUN_BYTES`).
pub const BLOCK_ROWS: u64 = 2048;

/// How long a task may go on, whatever it costs and however late the next plan is: an epoch, if that is on time.
pub const QUANTUM_NS: u64 = 1_000_000;

/// How long a task may wait with work before it goes in front of those that have not: ten epochs.
/// From `cargo bench -p penstock-benches --bench scheduling -- policies`, six queries at 95 % of what each setting sustained,
/// one round each: with 100 ms and runs of 512 rows a mean latency of 118 ms, not sustained (167 M rows/s); with this 1 ms
/// (157 M rows/s). The rates differ, and no other wait was tried.
pub const STARVED_NS: u64 = 10_000_000;

/// The least a row is taken to cost when time is turned into rows: what vectorised operators do at best. A cost
/// that was measured too low, or as zero, must not make a number without bounds.
const LEAST_COST_NS: f64 = 1.0;

/// Returns the rows of one run when a row has `row_bytes` bytes in the columns that are read.
pub fn rows_per_run(row_bytes: usize) -> usize {
    (RUN_BYTES / row_bytes.max(1)).clamp(FEWEST, MOST)
}

/// How long a task may go on before it goes back to the scheduler: until it has taken so many rows, or so much time has
/// gone by, whichever comes first. A step that has begun is finished.
///
/// The time is by the clock, looked at after each step: a cost that is not known, or not right any more, makes no run
/// longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum {
    /// Rows at most, to the next end of a step.
    pub rows: u64,
    /// Nanoseconds at most, to the next end of a step.
    pub ns: u64,
}

impl Quantum {
    /// Makes a quantum of so many rows.
    pub const fn of_rows(rows: u64) -> Self {
        Self { rows, ns: QUANTUM_NS }
    }

    /// Makes a quantum of as many rows as fit at that cost for each; at least so many.
    pub fn of_cost(cost_ns: f64, least_rows: u64) -> Self {
        let rows = (QUANTUM_NS as f64 / cost_ns.max(LEAST_COST_NS)) as u64;
        Self::of_rows(rows.max(least_rows))
    }

    /// Returns whether a run that has taken so many rows and so much time goes on.
    pub fn lasts(self, rows: u64, elapsed_ns: u64) -> bool {
        rows < self.rows && elapsed_ns < self.ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_rows_make_short_runs() {
        assert_eq!(rows_per_run(0), MOST);
        assert!(rows_per_run(24) > rows_per_run(200));
        assert_eq!(rows_per_run(1 << 20), FEWEST);
    }

    #[test]
    fn rows_are_time_over_cost() {
        assert_eq!(Quantum::of_cost(50.0, 512), Quantum { rows: 20_000, ns: QUANTUM_NS });
        assert_eq!(Quantum::of_cost(1e6, 512).rows, 512);
        assert_eq!(Quantum::of_rows(7).rows, 7);
    }

    #[test]
    fn a_row_that_seems_to_cost_nothing_makes_no_endless_run() {
        for cost_ns in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(Quantum::of_cost(cost_ns, 512).rows, QUANTUM_NS, "{cost_ns}");
        }
        assert_eq!(Quantum::of_cost(f64::INFINITY, 512).rows, 512);
    }

    #[test]
    fn rows_or_time_whichever_comes_first() {
        let quantum = Quantum { rows: 100, ns: 1_000 };
        assert!(quantum.lasts(99, 999));
        assert!(!quantum.lasts(100, 0) && !quantum.lasts(0, 1_000));
    }
}
