//! Runs of a batch that other tasks begin.

/// A run of a batch, and what the source knows of its time.
#[derive(Debug)]
pub struct Piece {
    /// Its first row in the batch.
    pub start: usize,
    /// Its rows.
    pub len: usize,
    /// The rows of the run that are taken, where some are not.
    pub good: Option<Vec<u32>>,
    /// The smallest and the largest time.
    pub range: Option<(i64, i64)>,
    /// The watermark just before all of its rows.
    pub watermark: Option<i64>,
    /// The watermark just before each row, where one may be late.
    pub before: Option<Vec<i64>>,
    /// The time of arrival, where that is event time.
    pub stamp: Option<i64>,
}
