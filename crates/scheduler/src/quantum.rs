//! How long a task runs: rows per run, and rows until it goes back to the scheduler.

/// Bytes of the columns of a run, which stay in the second-level cache.
/// From `cargo bench -p penstock-benches --bench ysb`, rows of 24 bytes: flat from 2,048 rows per run on; 512
/// rows are a quarter slower.
const RUN_BYTES: usize = 128 * 1024;
const FEWEST: usize = 512;
const MOST: usize = 8192;

/// Rows of a run where a policy goes block by block: from here on longer runs are no faster (see `RUN_BYTES`).
pub const BLOCK_ROWS: u64 = 2048;

/// The least a row is taken to cost when time is turned into rows: what vectorised operators do at best. A cost
/// that was measured too low, or as zero, must not send a worker away for many epochs.
const LEAST_COST_NS: f64 = 1.0;

/// Rows of one run when a row has `row_bytes` bytes in the columns that are read.
pub fn rows_per_run(row_bytes: usize) -> usize {
    (RUN_BYTES / row_bytes.max(1)).clamp(FEWEST, MOST)
}

/// How many rows a task may take before it goes back to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantum {
    /// This many.
    Rows(u64),
    /// As many as fit until the next epoch.
    UntilEpoch {
        /// Nanoseconds per row.
        cost_ns: f64,
        /// The number when no time is left.
        least_rows: u64,
    },
}

impl Quantum {
    /// The rows of a run that starts at `now_ns`.
    pub fn rows(self, now_ns: u64, next_epoch_ns: u64) -> u64 {
        match self {
            Self::Rows(rows) => rows,
            Self::UntilEpoch { cost_ns, least_rows } => {
                let left_ns = next_epoch_ns.saturating_sub(now_ns) as f64;
                ((left_ns / cost_ns.max(LEAST_COST_NS)) as u64).max(least_rows)
            }
        }
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
    fn rows_until_the_epoch_are_time_over_cost() {
        let quantum = Quantum::UntilEpoch { cost_ns: 50.0, least_rows: 512 };
        assert_eq!(quantum.rows(0, 1_000_000), 20_000);
        assert_eq!(quantum.rows(990_000, 1_000_000), 512);
        assert_eq!(quantum.rows(2_000_000, 1_000_000), 512);
        assert_eq!(Quantum::Rows(7).rows(2_000_000, 1_000_000), 7);
    }

    #[test]
    fn a_row_that_seems_to_cost_nothing_makes_no_endless_run() {
        for cost_ns in [0.0, -1.0, f64::NAN, 1e-300] {
            let quantum = Quantum::UntilEpoch { cost_ns, least_rows: 512 };
            assert_eq!(quantum.rows(0, 1_000_000), 1_000_000, "{cost_ns}");
        }
        let quantum = Quantum::UntilEpoch { cost_ns: f64::INFINITY, least_rows: 512 };
        assert_eq!(quantum.rows(0, u64::MAX), 512);
    }
}
