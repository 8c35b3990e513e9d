//! When the rows that wait for a task arrived at the engine: the writer of the rows notes it, any thread asks.
//!
//! A row has a position, its number among all that were written. A *mark* says when the rows from a position on arrived,
//! up to the next mark.
//!
//! ARRIVALS-1. The time given for a row is that of its arrival, or an earlier one; never a later one. Rows that arrive
//!     within [`GRAIN_NS`] have one mark. When there are too many marks, two of the older ones become one: the longer rows
//!     wait, the coarser is what is known of them.
//! ARRIVALS-2. A question does not wait: while a mark is written, there is no answer.

use std::sync::{Mutex, PoisonError, TryLockError};

use smallvec::SmallVec;

use crate::profile::Counter;

/// Arrivals that are not told apart.
const GRAIN_NS: u64 = 1_000_000;

/// Marks at most: over an hour, each covers a third of the time since then.
const MOST_MARKS: usize = 48;

/// When rows arrived, by their position. One thread at a time writes.
#[derive(Debug, Default)]
pub struct Arrivals {
    written: Counter,
    /// The time of the last mark, and one more; 0 without one. The writer looks here first.
    newest: Counter,
    marks: Mutex<Marks>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    from: u64,
    at_ns: u64,
}

#[derive(Debug, Default)]
struct Marks(SmallVec<[Mark; MOST_MARKS]>);

impl Arrivals {
    /// Notes that rows written from now on arrived at `at_ns`. Comes before they are written.
    pub fn note(&self, at_ns: u64) {
        let newest = self.newest.get();
        if newest > 0 && (newest - 1..newest - 1 + GRAIN_NS).contains(&at_ns) {
            return;
        }
        self.newest.set(at_ns + 1);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push(Mark { from: self.written.get(), at_ns });
    }

    /// Notes that so many rows were written.
    pub fn wrote(&self, rows: u64) {
        self.written.add(rows);
    }

    /// Returns when the oldest of the rows arrived that are `pending`, the last ones that were written; `None` where that
    /// cannot be told now.
    pub fn oldest_ns(&self, pending: impl FnOnce() -> u64) -> Option<u64> {
        self.look(pending, |marks| marks.iter().map(|mark| mark.at_ns).min())
    }

    /// Returns when the first of the rows arrived that are `pending`.
    pub fn next_ns(&self, pending: impl FnOnce() -> u64) -> Option<u64> {
        self.look(pending, |marks| marks.first().map(|mark| mark.at_ns))
    }

    /// Looks at the marks of pending rows.
    fn look(&self, pending: impl FnOnce() -> u64, look: impl FnOnce(&[Mark]) -> Option<u64>) -> Option<u64> {
        let marks = match self.marks.try_lock() {
            Ok(marks) => marks,
            Err(TryLockError::Poisoned(marks)) => marks.into_inner(),
            Err(TryLockError::WouldBlock) => return None, // ARRIVALS-2
        };
        // What was written first: rows that come meanwhile make the position too small, which ARRIVALS-1 allows.
        let written = self.written.get();
        look(marks.since(written.saturating_sub(pending())))
    }
}

impl Marks {
    fn push(&mut self, mark: Mark) {
        match self.0.last_mut() {
            // There are no rows after the last one yet.
            Some(last) if last.from == mark.from => last.at_ns = mark.at_ns,
            _ => self.0.push(mark),
        }
        if self.0.len() == MOST_MARKS {
            self.thin_out();
        }
    }

    /// Merges two marks: those whose common span is shortest compared with how long ago it was.
    fn thin_out(&mut self) {
        let newest_ns = self.0.iter().map(|mark| mark.at_ns).max().unwrap_or(0);
        let coarseness = |first: usize| {
            let next_ns = self.0.get(first + 2).map_or(newest_ns, |mark| mark.at_ns);
            let spans_ns = next_ns.abs_diff(self.0[first].at_ns);
            spans_ns as f64 / (newest_ns - self.0[first + 1].at_ns + GRAIN_NS) as f64
        };
        let pairs = 0..self.0.len() - 1;
        let first = pairs.min_by(|&left, &right| coarseness(left).total_cmp(&coarseness(right)));
        if let Some(first) = first {
            let second = self.0.remove(first + 1);
            let first = &mut self.0[first];
            first.at_ns = first.at_ns.min(second.at_ns);
        }
    }

    /// Returns the marks of the row at that position and of those after it.
    fn since(&self, position: u64) -> &[Mark] {
        let after = self.0.partition_point(|mark| mark.from <= position);
        &self.0[after.saturating_sub(1)..]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wrote(arrivals: &Arrivals, at_ns: u64, rows: u64) {
        arrivals.note(at_ns);
        arrivals.wrote(rows);
    }

    #[test]
    fn the_oldest_row_that_waits_counts_and_not_the_last_one_that_came() {
        let arrivals = Arrivals::default();
        assert_eq!(arrivals.oldest_ns(|| 3), None);
        wrote(&arrivals, 0, 10);
        wrote(&arrivals, 20 * MS, 10);
        wrote(&arrivals, 50 * MS, 5);
        let oldest = |pending| arrivals.oldest_ns(|| pending);
        assert_eq!([25, 16, 15, 6, 5, 1].map(oldest), [0, 0, 20 * MS, 20 * MS, 50 * MS, 50 * MS].map(Some));
        assert_eq!(oldest(1000), Some(0), "more than were written are all of them");
    }

    #[test]
    fn rows_of_several_sources_need_not_be_in_order() {
        let arrivals = Arrivals::default();
        for at_ns in [30 * MS, 5 * MS, 31 * MS, 7 * MS] {
            wrote(&arrivals, at_ns, 10);
        }
        assert_eq!(arrivals.oldest_ns(|| 40), Some(5 * MS));
        assert_eq!(arrivals.oldest_ns(|| 20), Some(7 * MS));
        assert_eq!(arrivals.next_ns(|| 20), Some(31 * MS));
    }

    #[test]
    fn rows_that_were_not_taken_leave_no_mark() {
        let arrivals = Arrivals::default();
        wrote(&arrivals, 0, 4);
        arrivals.note(3 * MS);
        wrote(&arrivals, 9 * MS, 4);
        assert_eq!(arrivals.oldest_ns(|| 4), Some(9 * MS));
    }

    #[test]
    fn what_is_said_is_never_too_late_and_coarser_the_longer_rows_wait() {
        let arrivals = Arrivals::default();
        let every_ns = MS / 4;
        for row in 0..10_000 {
            wrote(&arrivals, row * every_ns, 1);
            for pending in [1, 2, 7, 100, 1000].into_iter().filter(|&pending| pending <= row + 1) {
                let arrived_ns = (row + 1 - pending) * every_ns;
                let said_ns = arrivals.oldest_ns(|| pending).expect("no other thread looks");
                assert!(said_ns <= arrived_ns, "{row} {pending}");
                let waited_ns = row * every_ns - arrived_ns;
                assert!(arrived_ns - said_ns <= GRAIN_NS + waited_ns, "{row} {pending}: {said_ns}");
            }
        }
    }
}
