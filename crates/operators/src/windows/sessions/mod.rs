//! Windows between gaps: per key, rows less than a gap apart belong together.
//!
//! Each live session has a slot, and the accumulators are indexed by slot. The sessions of a key form a linked list,
//! the latest first, which nearly every row extends.
//!
//! SESSION-1. The sessions of a key are at least a gap apart, and its list is in descending order of time. A row that
//!     bridges two of them merges them.
//! SESSION-2. A row is late when a session of that row alone would be over: `time + gap` is at or below its watermark.
//!     A session is emitted when no on-time row can reach it: the watermark is at least `last + 2 * gap - 1`.
//! SESSION-3. The queue holds an entry for each live session, under a time at or below its last. An entry is valid only
//!     if its slot is live and `queued` there equals that time.
//! SESSION-4. Slots and keys without a session are dropped, with their memory, once they outnumber the others by far.

mod emission;
mod portable;

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use penstock_memory::Run;
use penstock_progress::watermark::{NEVER, min_max};
use penstock_progress::{law, laws};
use penstock_types::{ComputeError, KeyGroups};

use super::grid::each_below;
use super::keyed::Accumulators;
use super::spec::ResolvedSpec;
use crate::contract::{HeldRows, Late, SnapshotError, StateSnapshot, Stateful};
use crate::heap_bytes;
use crate::keys::KeyIndex;

const NOTHING: u32 = u32::MAX;

/// A session, or a free slot.
#[derive(Clone, Copy)]
struct Session {
    /// The times of its first and its last row.
    first: i64,
    last: i64,
    key: u32,
    /// The next older session of the key.
    older: u32,
    /// The time of its entry in the queue (SESSION-3).
    queued: i64,
    live: bool,
}

/// Aggregation in sessions.
pub(super) struct Sessions {
    shape: Arc<ResolvedSpec>,
    gap: i64,
    keys: KeyIndex,
    /// The latest session of each key.
    heads: Vec<u32>,
    slots: Vec<Session>,
    free: Vec<u32>,
    /// Number of keys that have a session.
    live_keys: usize,
    states: Accumulators,
    queue: BinaryHeap<Reverse<(i64, u32)>>,
    /// The watermark up to which sessions are closed; beyond all times at the end.
    closed: i128,
    watermark: i64,
    /// A lower bound of the watermark after the operator (CONTRACT-4). Only kept where laws are checked.
    left: i64,
    late: Late,
    ids: Vec<u32>,
}

impl Sessions {
    pub(super) fn new(shape: Arc<ResolvedSpec>, gap: i64) -> Self {
        debug_assert!(gap > 0);
        Self {
            gap,
            keys: KeyIndex::new(&shape.spec.keys),
            heads: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            live_keys: 0,
            states: Accumulators::new(&shape),
            queue: BinaryHeap::new(),
            closed: i128::from(NEVER),
            watermark: NEVER,
            left: NEVER,
            late: Late::default(),
            ids: Vec::new(),
            shape,
        }
    }

    /// Returns true if two times, the second not before the first, are less than a gap apart.
    #[inline]
    fn near(&self, earlier: i64, later: i64) -> bool {
        // A distance beyond 64 bits is larger than every gap.
        later.saturating_sub(earlier) < self.gap
    }

    /// Stores the watermark after the operator, before it advances.
    fn note_left(&mut self) {
        if laws::are_checked() && !self.has_output() {
            self.left = self.output_watermark(self.watermark);
        }
    }

    fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns true if a row is late (SESSION-2).
    fn is_late(&self, time: i64, mark: i64) -> bool {
        i128::from(time) + i128::from(self.gap) <= i128::from(mark).max(self.closed)
    }

    /// Makes times and watermarks readable; returns true if any row may be late.
    fn may_be_late(&self, port: usize, run: &mut Run) -> bool {
        let columns = &self.shape.spec.ports[port];
        run.ready(&[columns.time]);
        if run.holds(columns.watermark) {
            run.ready(&[columns.watermark]);
            return true;
        }
        let earliest = min_max(run.column(columns.time).fixed()).map(|(earliest, _)| earliest);
        earliest.is_some_and(|earliest| self.is_late(earliest, run.watermark().unwrap_or(NEVER)))
    }

    fn each_late(&self, port: usize, run: &Run, mut take: impl FnMut(usize, i64, i64)) {
        let columns = &self.shape.spec.ports[port];
        let marks = run.holds(columns.watermark).then(|| run.column(columns.watermark));
        let mark = run.watermark().unwrap_or(NEVER);
        each_below(run.column(columns.time).fixed(), marks, mark, self.closed, |row, time, mark| {
            if self.is_late(time, mark) {
                take(row, time, mark);
            }
        });
    }

    fn drop_late(&mut self, port: usize, run: &mut Run) {
        if !self.may_be_late(port, run) {
            return;
        }
        let (mut late, mut out) = (self.late, Vec::new());
        self.each_late(port, run, |row, time, mark| {
            out.push(row as u32);
            late.rows += 1;
            late.by = late.by.max(Some(mark.max(self.watermark).abs_diff(time)));
        });
        self.late = late;
        if !out.is_empty() {
            let mut rest = run.selection();
            let mut out = out.into_iter().peekable();
            rest.extend((0..run.len() as u32).filter(|row| out.next_if_eq(row).is_none()));
            run.select(rest);
        }
    }

    /// Allocates a slot for a new session of the key, not in its list yet.
    fn open(&mut self, key: u32, first: i64, last: i64, older: u32) -> u32 {
        let session = Session { first, last, key, older, queued: last, live: true };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = session;
                slot
            }
            None => {
                self.slots.push(session);
                self.slots.len() as u32 - 1
            }
        };
        self.queue.push(Reverse((last, slot)));
        slot
    }

    /// Finds the session of the key that covers `first` to `last`, or extends or opens one (SESSION-1). Adds merged
    /// sessions to `gone`, with the slot they were merged into.
    fn place(&mut self, key: u32, first: i64, last: i64, gone: &mut Vec<(u32, u32)>) -> u32 {
        let (mut newer, mut slot) = (NOTHING, self.heads[key as usize]);
        while slot != NOTHING && !self.near(last, self.slots[slot as usize].first) {
            (newer, slot) = (slot, self.slots[slot as usize].older);
        }
        if slot == NOTHING || !self.near(self.slots[slot as usize].last, first) {
            let new = self.open(key, first, last, slot);
            if newer == NOTHING {
                self.live_keys += usize::from(self.heads[key as usize] == NOTHING);
                self.heads[key as usize] = new;
            } else {
                self.slots[newer as usize].older = new;
            }
            return new;
        }
        let mut session = self.slots[slot as usize];
        (session.first, session.last) = (session.first.min(first), session.last.max(last));
        while session.older != NOTHING && self.near(self.slots[session.older as usize].last, session.first) {
            let other = session.older;
            self.states.grow(self.slots.len());
            self.states.absorb(other, slot);
            let absorbed = &mut self.slots[other as usize];
            absorbed.live = false;
            session.first = session.first.min(absorbed.first);
            session.older = absorbed.older;
            gone.push((other, slot));
        }
        self.slots[slot as usize] = session;
        slot
    }

    /// Fills `slots` with the session of each row, given the ids of keys.
    fn place_rows(&mut self, keys: &[u32], times: &[i64], slots: &mut Vec<u32>) {
        self.heads.resize(self.keys.len(), NOTHING);
        let mut gone = Vec::new();
        slots.clear();
        for (&key, &time) in keys.iter().zip(times) {
            let head = self.heads[key as usize];
            // Usually the row belongs to the latest session of its key, and is not before its first row.
            if let Some(session) = self.slots.get_mut(head as usize)
                && time >= session.first
                && time.saturating_sub(session.last) < self.gap
            {
                session.last = session.last.max(time);
                slots.push(head);
            } else {
                slots.push(self.place(key, time, time, &mut gone));
            }
        }
        self.redirect(&gone, slots);
    }

    /// Redirects rows of merged sessions to the session they were merged into; frees the merged slots.
    fn redirect(&mut self, gone: &[(u32, u32)], slots: &mut [u32]) {
        if gone.is_empty() {
            return;
        }
        let mut to: Vec<u32> = (0..self.slots.len() as u32).collect();
        // Later ones first: the target of a merge may itself have been merged after that.
        for &(from, into) in gone.iter().rev() {
            to[from as usize] = to[into as usize];
        }
        slots.iter_mut().for_each(|slot| *slot = to[*slot as usize]);
        self.free.extend(gone.iter().map(|(from, _)| from));
    }
}

impl Stateful for Sessions {
    fn consume(&mut self, port: usize, run: &mut Run) -> Result<(), ComputeError> {
        debug_assert!(!self.has_output(), "CONTRACT-1: output is taken before rows are consumed");
        if run.is_empty() {
            return Ok(());
        }
        self.drop_late(port, run);
        if run.is_empty() {
            return Ok(());
        }
        let shape = Arc::clone(&self.shape);
        let time = shape.spec.ports[port].time;
        run.ready(&shape.reads[port]);
        run.ready(&[time]);
        let rows = shape.rows(port, run);
        let (mut ids, mut slots) = (std::mem::take(&mut self.ids), Vec::new());
        self.keys.insert(&rows.keys, rows.len, &mut ids);
        self.place_rows(&ids, run.column(time).fixed(), &mut slots);
        self.states.update(&shape, &slots, self.slots.len(), &rows);
        self.ids = ids;
        Ok(())
    }

    fn late_rows(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>) {
        rows.clear();
        if !run.is_empty() && self.may_be_late(port, run) {
            self.each_late(port, run, |row, _, _| rows.push(row as u32));
        }
    }

    fn advance(&mut self, watermark: i64) {
        law!(watermark >= self.watermark, "sessions go back from {} to {watermark}", self.watermark); // CONTRACT-4
        self.note_left();
        self.watermark = self.watermark.max(watermark);
        self.close_until(i128::from(watermark));
    }

    fn close_open(&mut self) -> Option<i64> {
        let last = self.slots.iter().filter(|session| session.live).map(|session| session.last).max()?;
        self.note_left();
        self.close_until(self.over_at(last));
        let watermark = self.over_at(last).min(i128::from(i64::MAX)) as i64;
        self.watermark = self.watermark.max(watermark);
        Some(self.watermark)
    }

    fn finish(&mut self) {
        self.close_until(i128::MAX);
    }

    fn has_output(&self) -> bool {
        self.queue.peek().is_some_and(|Reverse((last, _))| self.over_at(*last) <= self.closed)
    }

    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        self.emit_some(out, room)
    }

    fn output_watermark(&self, watermark: i64) -> i64 {
        match watermark {
            NEVER => NEVER,
            watermark => {
                let behind = i128::from(watermark) - i128::from(self.gap) + 1;
                behind.max(i128::from(i64::MIN)) as i64
            }
        }
    }

    fn late(&self) -> Late {
        self.late
    }

    fn bytes(&self) -> usize {
        self.keys.bytes()
            + heap_bytes(&self.heads)
            + heap_bytes(&self.slots)
            + heap_bytes(&self.free)
            + self.queue.capacity() * size_of::<Reverse<(i64, u32)>>()
            + self.states.bytes()
    }

    fn held(&self) -> HeldRows {
        HeldRows { rows: 0, sessions: self.live() as u64 }
    }

    fn snapshot(&self) -> StateSnapshot {
        self.write_snapshot()
    }

    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        *self = self.read_snapshot(snapshot)?;
        Ok(())
    }

    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful> {
        Box::new(self.take_groups(groups))
    }

    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful> {
        Box::new(self.take_over(watermark))
    }

    fn merge(&mut self, other: Box<dyn Stateful>) {
        let other: Box<dyn Any> = other;
        self.take_other(*other.downcast::<Self>().expect("operators of one specification are merged"));
    }
}
