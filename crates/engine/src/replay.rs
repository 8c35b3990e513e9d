//! Prepared batches, replayed at a fixed rate.
//!
//! Rows become due one by one, at the rate that was asked for, whether the engine keeps up or not: a row that waits
//! because the engine was busy has still arrived when it was due, and its latency says so. Buffers are borrowed and
//! cannot be rewritten, so each round carries one offset, which is added to the times of its rows as runs are cut.
//!
//! R1. At most [`MOST_BACKLOG_NS`] worth of rows are due and not taken. An engine that falls further behind slows the
//!     source down; by how much is counted as slip.

use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_scheduler::profile::Counter;
use penstock_types::OutsideError;

use crate::plan::WatermarkFunction;

/// How far the engine may fall behind before the source slows down.
const MOST_BACKLOG_NS: u64 = 1_000_000_000;
/// Rows of so much time become available together.
const SLICE_NS: u64 = 500_000;

/// Batches to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The batches of one round.
    pub batches: Arc<[RecordBatch]>,
    /// Rows per second; as fast as the engine takes them without it.
    pub rows_per_second: Option<f64>,
    /// How often they are replayed; for ever without it.
    pub rounds: Option<u64>,
}

/// A replay at work.
pub(crate) struct Replaying {
    replay: Replay,
    next: usize,
    round: u64,
    /// What one round adds to the times of the next.
    pub(crate) round_ticks: i64,
    /// How far event time has come behind each batch, if a function says that.
    marks: Vec<Option<i64>>,
    /// Rows of one round.
    round_rows: u64,
}

impl Replaying {
    pub(crate) fn new(replay: Replay) -> Self {
        let round_rows = replay.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Self { replay, next: 0, round: 0, round_ticks: 0, marks: Vec::new(), round_rows }
    }

    /// That function says how far event time has come behind each batch.
    pub(crate) fn mark(&mut self, function: &Arc<dyn WatermarkFunction>) -> Result<(), OutsideError> {
        self.marks =
            self.replay.batches.iter().map(|batch| function.call(batch)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// How far event time has come behind the batch that was given out last, without its offset.
    pub(crate) fn last_mark(&self) -> Option<i64> {
        self.marks.get(self.next.checked_sub(1)?).copied().flatten()
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.replay.batches
    }

    /// Whether times will ever have to be moved.
    pub(crate) fn repeats(&self) -> bool {
        self.replay.rounds != Some(0) && self.replay.rounds != Some(1)
    }

    pub(crate) fn pacer(&self) -> Option<Pacer> {
        self.replay.rows_per_second.map(Pacer::new)
    }

    /// Rows of the batches that follow, in this round and the next.
    pub(crate) fn rows_ahead(&self) -> u64 {
        let rows = |batches: &[RecordBatch]| batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        let goes_on = self.replay.rounds.is_none_or(|rounds| self.round + 1 < rounds);
        let is_over = self.replay.rounds.is_some_and(|rounds| self.round >= rounds);
        let next_round = if goes_on { self.round_rows } else { 0 };
        if is_over { 0 } else { rows(&self.replay.batches[self.next..]) + next_round }
    }

    /// Whether the batch that was given out last was the last of all.
    pub(crate) fn is_last(&self) -> bool {
        self.next == self.replay.batches.len()
            && self.replay.rounds.is_some_and(|rounds| self.round + 1 >= rounds)
    }

    /// The next batch and the offset of its times; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<(RecordBatch, i64)> {
        if self.next == self.replay.batches.len() {
            self.next = 0;
            self.round += 1;
        }
        if self.replay.batches.is_empty() || self.replay.rounds.is_some_and(|rounds| self.round >= rounds) {
            return None;
        }
        let batch = self.replay.batches[self.next].clone();
        self.next += 1;
        let round = i64::try_from(self.round).unwrap_or(i64::MAX);
        Some((batch, self.round_ticks.saturating_mul(round)))
    }
}

/// Which rows are due, for others than the source, which writes.
#[derive(Debug)]
pub(crate) struct Due {
    ns_per_row: f64,
    /// When the first row was due; 0 before the replay has begun.
    start_ns: Counter,
    /// Rows that are done with.
    done: Counter,
}

impl Due {
    /// Rows that are due and not done with. At most [`MOST_BACKLOG_NS`] worth of them, beside those that were taken (R1).
    pub(crate) fn rows(&self, now_ns: u64) -> u64 {
        let start_ns = self.start_ns.get();
        if start_ns == 0 {
            return 0;
        }
        let due = (now_ns.saturating_sub(start_ns) as f64 / self.ns_per_row) as u64;
        due.saturating_sub(self.done.get())
    }

    /// When the oldest row that is not done with was due.
    pub(crate) fn next_ns(&self) -> u64 {
        self.start_ns.get() + (self.done.get() as f64 * self.ns_per_row) as u64
    }

    /// So many more are done with.
    pub(crate) fn done(&self, rows: u64) {
        self.done.add(rows);
    }
}

/// Says when rows are due.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    ns_per_row: f64,
    start_ns: Option<u64>,
    /// Rows taken so far, and since the start was moved.
    taken: u64,
    slipped_ns: u64,
    shown: Arc<Due>,
}

impl Pacer {
    fn new(rows_per_second: f64) -> Self {
        let ns_per_row = 1e9 / rows_per_second;
        let shown = Arc::new(Due { ns_per_row, start_ns: Counter::default(), done: Counter::default() });
        Self { ns_per_row, start_ns: None, taken: 0, slipped_ns: 0, shown }
    }

    /// The same for others.
    pub(crate) fn shown(&self) -> &Arc<Due> {
        &self.shown
    }

    /// Rows that are due and not taken.
    pub(crate) fn due(&mut self, now_ns: u64) -> u64 {
        let start = *self.start_ns.get_or_insert(now_ns);
        let behind = now_ns.saturating_sub(self.due_ns(0));
        if behind > MOST_BACKLOG_NS {
            // R1: the schedule gives way.
            let slip = behind - MOST_BACKLOG_NS;
            self.slipped_ns += slip;
            self.start_ns = Some(start + slip);
        }
        self.shown.start_ns.set(self.start_ns.unwrap_or(now_ns).max(1));
        let elapsed = now_ns.saturating_sub(self.start_ns.unwrap_or(now_ns));
        ((elapsed as f64 / self.ns_per_row) as u64).saturating_sub(self.taken)
    }

    /// When the row behind so many more is due.
    pub(crate) fn due_ns(&self, rows: u64) -> u64 {
        self.start_ns.unwrap_or(0) + ((self.taken + rows) as f64 * self.ns_per_row) as u64
    }

    /// Rows that are worth a run.
    pub(crate) fn slice_rows(&self) -> u64 {
        ((SLICE_NS as f64 / self.ns_per_row) as u64).max(1)
    }

    pub(crate) fn take(&mut self, rows: u64) {
        self.taken += rows;
    }

    /// How much time the schedule has given way.
    pub(crate) fn slipped_ns(&self) -> u64 {
        self.slipped_ns
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn rows_are_due_at_their_rate() {
        let mut pacer = Pacer::new(1_000_000.0);
        assert_eq!(pacer.due(5_000), 0);
        assert_eq!(pacer.due(5_000 + 1_500_000), 1_500);
        pacer.take(1_000);
        assert_eq!(pacer.due(5_000 + 1_500_000), 500);
        assert_eq!(pacer.due_ns(500), 5_000 + 1_500_000);
        assert_eq!(pacer.slice_rows(), 500);
    }

    #[test]
    fn others_see_which_rows_are_due_until_they_are_done_with() {
        let mut pacer = Pacer::new(1_000_000.0);
        let due = Arc::clone(pacer.shown());
        assert_eq!(due.rows(5_000_000), 0, "it has not begun");
        assert_eq!(pacer.due(5_000), 0);
        assert_eq!((due.rows(2_005_000), due.next_ns()), (2_000, 5_000));
        pacer.take(1_500);
        assert_eq!(due.rows(2_005_000), 2_000, "what was taken is not done with");
        due.done(1_500);
        assert_eq!((due.rows(2_005_000), due.next_ns()), (500, 1_505_000));
    }

    #[test]
    fn the_rows_ahead_are_those_of_this_round_and_the_next() {
        let batch = |rows: i64| {
            let column = Int64Array::from_iter_values(0..rows);
            RecordBatch::try_from_iter([("x", Arc::new(column) as _)]).expect("one column")
        };
        let batches: Arc<[RecordBatch]> = Arc::from([batch(3), batch(5)]);
        let ahead = |rounds| {
            let replay = Replay { batches: Arc::clone(&batches), rows_per_second: None, rounds };
            let mut replaying = Replaying::new(replay);
            let mut seen = vec![(replaying.rows_ahead(), false)];
            for _ in 0..5 {
                if replaying.next().is_none() {
                    break;
                }
                seen.push((replaying.rows_ahead(), replaying.is_last()));
            }
            seen
        };
        assert_eq!(ahead(Some(1)), [(8, false), (5, false), (0, true)]);
        assert_eq!(ahead(Some(2)), [(16, false), (13, false), (8, false), (5, false), (0, true)]);
        assert_eq!(ahead(None), [16, 13, 8, 13, 8, 13].map(|rows| (rows, false)));
        assert_eq!(ahead(Some(0)), [(0, false)]);
    }

    #[test]
    fn a_slow_engine_slows_the_source_down() {
        let mut pacer = Pacer::new(1_000.0);
        assert_eq!(pacer.due(0), 0);
        assert_eq!(pacer.due(3_000_000_000), 1_000);
        assert_eq!(pacer.slipped_ns(), 2_000_000_000);
        pacer.take(1_000);
        assert_eq!(pacer.due(3_000_000_000), 0);
    }
}
