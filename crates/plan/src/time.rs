//! Event time: what it is, and which arrival may stand for it.

use penstock_types::Tick;

/// What a row's event time is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTime {
    /// The column that carries it.
    pub column: String,
    /// The unit of that column.
    pub tick: Tick,
    /// Whether the column is the end of a window, and the time the last tick before it.
    pub is_end: bool,
}

/// Which arrival counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// When a row was handed to the engine.
    Ingestion,
    /// When a row was first processed.
    Processing,
}

impl Arrival {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 2] =
        [("ingestion", Self::Ingestion), ("processing", Self::Processing)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingestion => "ingestion",
            Self::Processing => "processing",
        }
    }
}
