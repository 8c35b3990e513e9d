//! What goes from a splitter to its lanes.

use arrow_array::RecordBatch;
use penstock_memory::Signal;
use penstock_queue::log::Work;

use super::way::Carried;
use crate::source::Piece;

/// Rows that are handed out together: enough to make the hand-over cheap, few enough to keep all lanes busy.
pub const PORTION_ROWS: usize = 1 << 16;

/// Rows of one batch that go to one lane.
#[derive(Debug)]
pub struct Portion {
    /// The batch.
    pub batch: RecordBatch,
    /// What is added to the times.
    pub offset: i64,
    /// Its runs.
    pub pieces: Vec<Piece>,
    /// Its rows.
    pub rows: usize,
    /// When the first of them arrived.
    pub arrived_ns: u64,
}

/// What a lane gets.
#[derive(Debug)]
pub enum Item {
    /// Rows.
    Portion(Portion),
    /// The watermark of the source.
    Watermark {
        /// The watermark.
        watermark: i64,
        /// When the rows arrived that it was read off.
        arrived_ns: u64,
    },
    /// Any other signal.
    Signal(Signal),
    /// The end of the input.
    End,
}

impl Carried for Item {
    fn work(&self) -> Work {
        match self {
            Self::Portion(portion) => Work { rows: portion.rows as u64, signals: 0 },
            _ => Work { rows: 0, signals: 1 },
        }
    }

    fn arrived_ns(&self) -> u64 {
        match self {
            Self::Portion(portion) => portion.arrived_ns,
            _ => 0,
        }
    }
}
