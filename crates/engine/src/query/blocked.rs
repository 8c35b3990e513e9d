//! What holds a query up: for people, so that a query that makes no progress tells why.

use std::fmt;

use super::face::TaskFace;
use super::state::State;
use penstock_tasks::step::BlockedOn;

/// What a query, or a shared source, waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockedBy {
    /// The reader of the results of that output, by its number.
    Output(usize),
    /// The function that takes dead letters.
    Letters,
    /// Memory of the budget.
    Memory,
    /// An operator that is slower than those before it.
    Operator(String),
    /// Another query, which reads the same shared source.
    Query(String),
}

impl fmt::Display for BlockedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(_) => f.write_str("reader"),
            Self::Letters => f.write_str("on_error function"),
            Self::Memory => f.write_str("memory"),
            Self::Operator(name) => f.write_str(name),
            Self::Query(name) => write!(f, "query \"{name}\""),
        }
    }
}

impl State {
    /// What its tasks wait for: of those that have no room, the one that is furthest downstream says so.
    pub(crate) fn blocked_by(&self) -> Option<BlockedBy> {
        if self.has_ended() {
            return None;
        }
        let faces = self.faces();
        let is_blocked = |face: &TaskFace| face.bell.row.did.blocked.get() > 0;
        let blocked = faces.iter().rfind(|face| {
            is_blocked(face) && !face.readers.iter().any(|&reader| is_blocked(&faces[reader]))
        })?;
        Some(match BlockedOn::of(blocked.bell.row.did.blocked_on.get()) {
            BlockedOn::Letters => BlockedBy::Letters,
            BlockedOn::Memory => BlockedBy::Memory,
            BlockedOn::Room => match blocked.output {
                Some(output) => BlockedBy::Output(output),
                None => {
                    let waiting = |face: &&TaskFace| face.bell.row.work().rows;
                    let slowest = blocked.readers.iter().map(|&reader| &faces[reader]).max_by_key(waiting);
                    BlockedBy::Operator(slowest.unwrap_or(blocked).name.clone())
                }
            },
        })
    }
}
