//! Pairs that wait to be emitted.
//!
//! The queue holds only the arrived rows that have matches: the position of each in the chain of them (JOIN-1).

use std::mem::take;

use penstock_progress::aligned::WindowNumber;

use super::state::{JoinWindow, NONE};

/// Entries that there is always room for. Long runs, and merged state, need more for a moment.
const SCRATCH_ROWS: usize = 1 << 16;

/// A row with matches.
#[derive(Clone, Copy)]
struct MatchedRow {
    row: u32,
    /// The next of its matches.
    at: u32,
}

/// Rows of one side and window.
#[derive(Clone, Copy)]
struct SideSegment {
    window: WindowNumber,
    side: usize,
    /// End of its entries; they start where those before it end.
    end: usize,
}

/// The rows that have matches, in order of arrival.
#[derive(Default)]
pub(super) struct Pairs {
    segments: Vec<SideSegment>,
    found: Vec<MatchedRow>,
    /// The next segment and entry.
    next_segment: usize,
    next: usize,
}

/// Rows of a window that are emitted together.
#[derive(Default)]
pub(super) struct ChosenPairs {
    /// The rows of each side, pair by pair.
    pub(super) sides: [Vec<u32>; 2],
    /// The key of both.
    pub(super) ids: Vec<u32>,
    /// The only side present, when the other is null.
    pub(super) alone: Option<usize>,
}

impl ChosenPairs {
    /// Clears the choice.
    pub(super) fn clear(&mut self) {
        self.sides.iter_mut().for_each(Vec::clear);
        self.ids.clear();
        self.alone = None;
    }

    /// Returns the rows of one side; `None` when they are null.
    pub(super) fn rows(&self, side: usize) -> Option<&[u32]> {
        self.alone.is_none_or(|alone| alone == side).then(|| self.sides[side].as_slice())
    }
}

impl Pairs {
    /// Returns true if any pair waits.
    pub(super) fn wait(&self) -> bool {
        self.next < self.found.len()
    }

    /// Returns the heap memory of the queue.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.segments.as_slice()) + size_of_val(self.found.as_slice())
    }

    /// Returns the window of the next pairs.
    pub(super) fn window(&self) -> Option<WindowNumber> {
        self.segments.get(self.next_segment).map(|segment| segment.window)
    }

    /// Begins a segment.
    pub(super) fn begin(&mut self, window: WindowNumber, side: usize) {
        self.segments.push(SideSegment { window, side, end: self.found.len() });
    }

    /// Adds a row with matches to the segment.
    #[inline]
    pub(super) fn push(&mut self, row: u32, at: u32) {
        self.found.push(MatchedRow { row, at });
    }

    /// Ends the segment.
    pub(super) fn end(&mut self) {
        let end = self.found.len();
        let segment = self.segments.last_mut().expect("a segment was begun");
        if segment.end == end {
            self.segments.pop(); // no row has a match
        } else {
            segment.end = end;
        }
    }

    /// Chooses up to `room` pairs, all of one segment.
    pub(super) fn choose(&mut self, window: &JoinWindow, room: usize, chosen: &mut ChosenPairs) {
        chosen.clear();
        let segment = self.segments[self.next_segment];
        let (own, other) = (segment.side, 1 - segment.side);
        let chain = &window.sides[other].next;
        let [left, right] = &mut chosen.sides;
        let (rows, matches) = if own == 0 { (left, right) } else { (right, left) };
        let mut left_over = room;
        for entry in &mut self.found[self.next..segment.end] {
            while left_over > 0 && entry.at != NONE {
                rows.push(entry.row);
                matches.push(entry.at);
                entry.at = chain[entry.at as usize];
                left_over -= 1;
            }
            if entry.at != NONE {
                break;
            }
            self.next += 1;
        }
        let ids = &window.sides[own].ids;
        chosen.ids.extend(rows.iter().map(|&row| ids[row as usize]));
        if self.next == segment.end {
            self.next_segment += 1;
        }
        if self.next == self.found.len() {
            let (mut segments, mut found) = (take(&mut self.segments), take(&mut self.found));
            segments.clear();
            found.clear();
            if found.capacity() <= SCRATCH_ROWS {
                *self = Self { segments, found, next_segment: 0, next: 0 };
            } else {
                *self = Self::default();
            }
        }
    }
}
