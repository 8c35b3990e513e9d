//! What a policy sees of a query.

use smallvec::SmallVec;

/// One query, with what its latency markers have shown since it was submitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryView {
    /// The same for as long as the query lives, and no other query's.
    pub id: u64,
    /// Sum of the latencies of its markers.
    pub latency_sum_ns: u64,
    /// How many markers came out.
    pub latency_count: u64,
    /// The latency that its user wants at most; `None` if none was given.
    pub target_ns: Option<u64>,
    /// Its part of the workers beside other queries; `None` if none was given.
    pub share: Option<f64>,
    /// Bytes of its streams and its state that are charged to the budget; 0 where no policy asks for it.
    pub bytes: u64,
    /// Its window operators, one view for each of their inputs. Empty where no policy asks for it.
    pub sweeps: SmallVec<[SweepView; 1]>,
}

/// Sweeping watermarks (SWM) that one input of a window operator waits for: those that close a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepView {
    /// Which of [`Snapshot::tasks`](super::Snapshot::tasks) the operator belongs to.
    pub task: usize,
    /// Which of the inputs of that task it is.
    pub input: usize,
    /// When the next window closes, in ticks of event time; `None` while none is open.
    pub next_close: Option<i64>,
    /// When the watermark that closes it is expected; `None` while nothing is known.
    pub predicted_ns: Option<u64>,
    /// When the last of them arrived, the oldest first.
    pub arrivals_ns: SmallVec<[u64; 4]>,
}
