//! What a query is doing.

/// What a query is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Rows may come.
    Running,
    /// It has ended with an answer.
    Finished,
    /// An error ended it.
    Failed,
    /// It was stopped.
    Stopped,
}

impl Status {
    /// Returns its name, as users see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}
