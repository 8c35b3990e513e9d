//! What the plan itself leaves open. Nothing here changes an answer.

use penstock_types::KEY_GROUPS;

/// Which operators make up a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chaining {
    /// As many as can run without a pause between them.
    #[default]
    Auto,
    /// One each, with an edge between any two.
    Off,
}

impl Chaining {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 2] = [("auto", Self::Auto), ("off", Self::Off)];
}

/// How an operator with state is spread over several workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Merged where that is possible, else exchanged.
    #[default]
    Auto,
    /// Each worker aggregates the rows that it gets, and their states are merged. Where that is not possible, one worker
    /// does it all.
    Merge,
    /// Each worker gets the rows of its own keys. Without a key, one worker does it all.
    Exchange,
}

impl Strategy {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("auto", Self::Auto), ("merge", Self::Merge), ("exchange", Self::Exchange)];
}

/// How many workers an operator may take, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spreading {
    /// Workers that one operator may take.
    pub parallelism: usize,
    /// How it takes them.
    pub strategy: Strategy,
}

impl Spreading {
    /// Everything on one worker.
    pub const ALONE: Self = Self { parallelism: 1, strategy: Strategy::Auto };

    /// The number of parts that the keys of an operator are spread over.
    pub fn parts(self) -> usize {
        self.parallelism.clamp(1, KEY_GROUPS)
    }
}
