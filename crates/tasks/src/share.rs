//! The rows that one part of an operator takes, where several parts read one log and each owns some key groups.
//!
//! The key group is one byte a row, written beside it by the task before. Each part reads that column whole, and the other
//! columns only for its own rows: they are gathered by the worker that needs them, not by the one that writes.
//!
//! SHARE-1. A row has one owner, and watermarks and signals reach all parts. So a part knows everything about its keys, and
//!     its results are final.

use std::sync::Arc;

use penstock_memory::{Run, SlotId};
use penstock_scheduler::profile::Counter;
use penstock_types::{KEY_GROUPS, KeyGroup};

/// Returns the part that owns a key group, out of so many.
fn owner(group: KeyGroup, parts: usize) -> usize {
    usize::from(group) * parts / KEY_GROUPS
}

/// The share of the rows of its input that a part of an operator has taken lately. It alone writes.
#[derive(Debug)]
pub struct ShareGauge {
    parts: usize,
    seen: Counter,
    taken: Counter,
}

impl ShareGauge {
    /// Rows that say how large it is before any have come: then all parts have alike.
    const SUPPOSED_ROWS: f64 = 1024.0;
    /// Rows after which what was seen weighs half.
    const MOST_SEEN: u64 = 1 << 20;

    /// The share of one of so many parts.
    pub fn new(parts: usize) -> Self {
        Self { parts, seen: Counter::default(), taken: Counter::default() }
    }

    fn note(&self, seen: usize, taken: usize) {
        self.seen.add(seen as u64);
        self.taken.add(taken as u64);
        if self.seen.get() > Self::MOST_SEEN {
            self.seen.set(self.seen.get() / 2);
            self.taken.set(self.taken.get() / 2);
        }
    }

    /// Returns the share, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        let taken = self.taken.get() as f64 + Self::SUPPOSED_ROWS / self.parts as f64;
        (taken / (self.seen.get() as f64 + Self::SUPPOSED_ROWS)).min(1.0)
    }

    /// Returns how many of so many rows of the input are its own. Of any there may be one.
    pub fn of(&self, rows: u64) -> u64 {
        (rows as f64 * self.fraction()).ceil() as u64
    }
}

/// The rows that one part of an operator takes.
pub struct Share {
    /// The slot of the key group of each row.
    slot: SlotId,
    owns: [bool; KEY_GROUPS],
    gauge: Arc<ShareGauge>,
}

impl Share {
    /// The share of part `part` of `parts`.
    pub fn new(slot: SlotId, (part, parts): (usize, usize), gauge: &Arc<ShareGauge>) -> Self {
        let mut owns = [false; KEY_GROUPS];
        for group in 0..=KeyGroup::MAX {
            owns[usize::from(group)] = owner(group, parts) == part;
        }
        Self { slot, owns, gauge: Arc::clone(gauge) }
    }

    /// Selects the rows of a run that are its own.
    pub fn take(&self, run: &mut Run) {
        run.ready(&[self.slot]);
        let mut rows = run.selection();
        let groups = run.column(self.slot).fixed::<KeyGroup>();
        rows.resize(groups.len(), 0);
        let mut taken = 0;
        for (row, &group) in groups.iter().enumerate() {
            rows[taken] = row as u32;
            taken += usize::from(self.owns[usize::from(group)]);
        }
        rows.truncate(taken);
        self.gauge.note(groups.len(), taken);
        run.select(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_what_it_was_seen_to_take() {
        let gauge = ShareGauge::new(4);
        assert_eq!((gauge.fraction(), gauge.of(1000), gauge.of(1), gauge.of(0)), (0.25, 250, 1, 0));
        (0..100).for_each(|_| gauge.note(4096, 3072));
        assert!((0.74..0.76).contains(&gauge.fraction()), "{}", gauge.fraction());
        (0..2000).for_each(|_| gauge.note(4096, 0));
        assert!(gauge.fraction() < 0.01, "what is long ago does not count: {}", gauge.fraction());
        (0..2000).for_each(|_| gauge.note(4096, 4096));
        assert!((0.99..=1.0).contains(&gauge.fraction()), "{}", gauge.fraction());
    }

    #[test]
    fn every_group_has_one_owner_and_every_part_some_groups() {
        for parts in 1..=KEY_GROUPS {
            let mut owned = vec![0; parts];
            (0..=KeyGroup::MAX).for_each(|group| owned[owner(group, parts)] += 1);
            let (least, most) = (KEY_GROUPS / parts, KEY_GROUPS.div_ceil(parts));
            assert!(owned.iter().all(|count| (least..=most).contains(count)), "{parts}: {owned:?}");
        }
    }
}
