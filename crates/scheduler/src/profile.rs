//! What an operator took in, gave out and cost.

/// Counters of one operator. Time is told by the caller: nothing here reads a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Rows taken in.
    pub rows_in: u64,
    /// Rows given out.
    pub rows_out: u64,
    /// Runs.
    pub runs: u64,
    /// Nanoseconds spent.
    pub busy_ns: u64,
}

impl Profile {
    /// Adds one run.
    pub fn record(&mut self, rows_in: usize, rows_out: usize, busy_ns: u64) {
        self.rows_in += rows_in as u64;
        self.rows_out += rows_out as u64;
        self.runs += 1;
        self.busy_ns += busy_ns;
    }

    /// Rows out per row in; `None` before the first row.
    pub fn selectivity(&self) -> Option<f64> {
        (self.rows_in > 0).then(|| self.rows_out as f64 / self.rows_in as f64)
    }

    /// Nanoseconds per row in; `None` before the first row.
    pub fn cost_ns(&self) -> Option<f64> {
        (self.rows_in > 0).then(|| self.busy_ns as f64 / self.rows_in as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_and_selectivity_are_per_row_taken_in() {
        let mut profile = Profile::default();
        assert_eq!((profile.selectivity(), profile.cost_ns()), (None, None));
        profile.record(100, 25, 1_000);
        profile.record(100, 75, 3_000);
        assert_eq!((profile.selectivity(), profile.cost_ns()), (Some(0.5), Some(20.0)));
        assert_eq!(profile.runs, 2);
    }
}
