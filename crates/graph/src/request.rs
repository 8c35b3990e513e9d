//! What is asked of a graph: everything that a plan leaves open.

use arrow_schema::SchemaRef;

use crate::options::{Chaining, Spreading};

/// The log of a source that other queries read, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLog {
    /// The number of the source.
    pub source: u64,
    /// The columns of its rows.
    pub schema: SchemaRef,
    /// Whether times are in the log once more, as 64 bits.
    pub has_wide_time: bool,
}

/// What a plan leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRequest {
    /// Which operators make up a task.
    pub chaining: Chaining,
    /// How many workers an operator may take, and how.
    pub spreading: Spreading,
    /// Whether rows that an operator rejects are handed out as they were.
    pub keeps_rejected: bool,
    /// The shared source that each stream is read from, if it is one; as many as there are streams, or none.
    pub shared: Vec<Option<SharedLog>>,
}

impl Default for GraphRequest {
    fn default() -> Self {
        Self {
            chaining: Chaining::Auto,
            spreading: Spreading::ALONE,
            keeps_rejected: false,
            shared: Vec::new(),
        }
    }
}
