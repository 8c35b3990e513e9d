//! The batches of a replay, round by round.

use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_types::OutsideError;

use super::Replay;
use crate::readers::{Position, SeekError};
use penstock_plan::WatermarkFunction;

/// A replay in progress.
pub struct Rounds {
    replay: Replay,
    next: usize,
    /// Rows of the next batch that are left out, since the reader has moved into it.
    skipped: usize,
    round: u64,
    /// Rows before the next batch, those left out of it among them.
    position: u64,
    /// What one round adds to the times of the next.
    round_ticks: i64,
    /// The watermark after each batch, if a function gives it.
    marks: Vec<Option<i64>>,
    /// Rows of one round.
    round_rows: u64,
}

impl Rounds {
    /// Begins with the first batch.
    pub fn new(replay: Replay) -> Self {
        let round_rows = replay.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Self {
            replay,
            next: 0,
            skipped: 0,
            round: 0,
            position: 0,
            round_ticks: 0,
            marks: Vec::new(),
            round_rows,
        }
    }

    /// Has the function say the watermark after each batch.
    pub fn mark(&mut self, function: &Arc<dyn WatermarkFunction>) -> Result<(), OutsideError> {
        self.marks =
            self.replay.batches.iter().map(|batch| function.call(batch)).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Moves the times of each round on by so many ticks.
    pub fn set_round_ticks(&mut self, ticks: i64) {
        self.round_ticks = ticks;
    }

    /// Returns the watermark after the batch that was given out last, without its offset.
    pub fn last_mark(&self) -> Option<i64> {
        self.marks.get(self.next.checked_sub(1)?).copied().flatten()
    }

    /// Returns the batches of one round.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.replay.batches
    }

    /// Returns true if times will ever have to be moved.
    pub fn repeats(&self) -> bool {
        self.replay.rounds != Some(0) && self.replay.rounds != Some(1)
    }

    /// Returns the rows of the batches that follow, in this round and the next.
    pub fn rows_ahead(&self) -> u64 {
        let rows = |batches: &[RecordBatch]| batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        let goes_on = self.replay.rounds.is_none_or(|rounds| self.round + 1 < rounds);
        let is_over = self.replay.rounds.is_some_and(|rounds| self.round >= rounds);
        let next_round = if goes_on { self.round_rows } else { 0 };
        let this_round = || rows(&self.replay.batches[self.next..]) - self.skipped as u64;
        if is_over { 0 } else { this_round() + next_round }
    }

    /// Returns true if the batch that was given out last was the last of all.
    pub fn is_last(&self) -> bool {
        self.next == self.replay.batches.len()
            && self.replay.rounds.is_some_and(|rounds| self.round + 1 >= rounds)
    }

    /// Returns the position after the batch that was given out last.
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Returns the next batch and the offset of its times; `None` at the end.
    pub fn next(&mut self) -> Option<(RecordBatch, i64)> {
        if self.next == self.replay.batches.len() {
            self.next = 0;
            self.round += 1;
        }
        if self.replay.batches.is_empty() || self.replay.rounds.is_some_and(|rounds| self.round >= rounds) {
            return None;
        }
        let mut batch = self.replay.batches[self.next].clone();
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            batch = batch.slice(skipped, batch.num_rows() - skipped);
        }
        self.next += 1;
        self.position += batch.num_rows() as u64;
        let round = i64::try_from(self.round).unwrap_or(i64::MAX);
        Some((batch, self.round_ticks.saturating_mul(round)))
    }

    /// Moves to a position: the next batch begins there.
    ///
    /// # Errors
    /// A position after the end.
    pub fn seek(&mut self, position: Position) -> Result<(), SeekError> {
        let rows = match (self.round_rows, self.replay.rounds) {
            (0, _) => Some(0),
            (round_rows, rounds) => rounds.map(|rounds| rounds.saturating_mul(round_rows)),
        };
        if let Some(rows) = rows.filter(|&rows| position.0 > rows) {
            return Err(SeekError::BehindEnd { position, rows });
        }
        self.position = position.0;
        self.round = position.0.checked_div(self.round_rows).unwrap_or(0);
        self.skipped = usize::try_from(position.0.checked_rem(self.round_rows).unwrap_or(0))
            .expect("a round fits into memory");
        self.next = 0;
        while let Some(batch) = self.replay.batches.get(self.next)
            && self.skipped >= batch.num_rows()
            && self.skipped > 0
        {
            self.skipped -= batch.num_rows();
            self.next += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        let column = Int64Array::from_iter_values(0..rows);
        RecordBatch::try_from_iter([("x", Arc::new(column) as _)]).expect("one column")
    }

    fn replay(rounds: Option<u64>) -> Rounds {
        let batches: Arc<[RecordBatch]> = Arc::from([batch(3), batch(5)]);
        Rounds::new(Replay { batches, rows_per_second: None, rounds })
    }

    #[test]
    fn the_rows_ahead_are_those_of_this_round_and_the_next() {
        let ahead = |rounds| {
            let mut replaying = replay(rounds);
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
    fn a_replay_goes_to_any_row_of_any_round() {
        let mut rounds = replay(Some(2));
        rounds.set_round_ticks(100);
        let mut next = |position: u64| {
            rounds.seek(Position(position)).unwrap();
            let ahead = rounds.rows_ahead();
            let found = rounds.next().map(|(batch, offset)| {
                let first = batch.column(0).as_primitive::<Int64Type>().values().first().copied();
                (batch.num_rows(), first, offset)
            });
            (found, ahead, rounds.position().0)
        };
        assert_eq!(next(0), (Some((3, Some(0), 0)), 16, 3));
        assert_eq!(next(2), (Some((1, Some(2), 0)), 14, 3));
        assert_eq!(next(3), (Some((5, Some(0), 0)), 13, 8));
        assert_eq!(next(8), (Some((3, Some(0), 100)), 8, 11));
        assert_eq!(next(15), (Some((1, Some(4), 100)), 1, 16));
        assert_eq!(next(16), (None, 0, 16));
        let behind = SeekError::BehindEnd { position: Position(17), rows: 16 };
        assert_eq!(rounds.seek(Position(17)), Err(behind));
        assert_eq!(replay(None).seek(Position(1_000_001)), Ok(()), "it never ends");
        let nothing = Replay { batches: Arc::from([]), rows_per_second: None, rounds: None };
        assert!(Rounds::new(nothing).seek(Position(1)).is_err());
    }
}
