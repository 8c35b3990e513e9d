//! Rows per run: as many as stay in cache from one operator of a chain to the next.

/// Bytes of the columns of a run, which stay in the second-level cache.
/// From `cargo bench -p penstock-benches --bench ysb`, rows of 24 bytes: flat from 2,048 rows per run on; 512
/// rows are a quarter slower.
const RUN_BYTES: usize = 128 * 1024;
const FEWEST: usize = 512;
const MOST: usize = 8192;

/// Rows of one run when a row has `row_bytes` bytes in the columns that are read.
pub fn rows_per_run(row_bytes: usize) -> usize {
    (RUN_BYTES / row_bytes.max(1)).clamp(FEWEST, MOST)
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
}
