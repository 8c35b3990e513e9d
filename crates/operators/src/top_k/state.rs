//! One window: its keys, and the best rows of each.
//!
//! RANKED-1. `best[id]` names the rows of a key. While there are fewer than `k` they are in any order; then they are a
//!     heap, with the last-ranked row at the root; once the window is emitted they are in order of rank.
//! RANKED-2. `bars[id]` is the code that a row must reach to be kept: 0 while there is room, then that of the last
//!     row.

use std::cmp::Ordering;

use penstock_memory::Column;
use penstock_types::ComputeError;

use super::TopKSpec;
use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::rows::StoredRows;
use crate::rows::order::compare_cells;
use crate::rows::windows::WindowState;

/// A kept row, with its code, so that heap operations rarely look at the row itself.
#[derive(Clone, Copy)]
pub(super) struct RankedRow {
    code: u64,
    pub(super) row: u32,
}

/// Scratch for arriving rows.
#[derive(Default)]
pub(super) struct IncomingRows {
    ids: Vec<u32>,
    /// Rows whose code does not rule them out, by their position among the arriving ones.
    candidates: Vec<u32>,
    /// Rows that find room.
    fresh: Vec<u32>,
}

/// Rows of a window that are emitted together.
#[derive(Default)]
pub(super) struct ChosenRows {
    pub(super) rows: Vec<u32>,
    pub(super) ids: Vec<u32>,
    pub(super) ranks: Vec<i64>,
}

/// A window and its best rows.
pub(super) struct TopWindow {
    keys: KeyIndex,
    bars: Vec<u64>,
    best: Vec<Vec<RankedRow>>,
    /// Heap memory of the lists in `best`.
    best_bytes: usize,
    rows: StoredRows,
    /// Rows that were consumed, whether they are kept or not.
    taken: u64,
    /// The key that is being emitted, and the number of its emitted rows, once the window is closed.
    leaving: (usize, usize),
}

impl TopWindow {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Creates a window without rows.
    pub(super) fn new(spec: &TopKSpec) -> Self {
        Self {
            keys: KeyIndex::new(&spec.keys),
            bars: Vec::new(),
            best: Vec::new(),
            best_bytes: 0,
            rows: StoredRows::new(spec.kept()),
            taken: 0,
            leaving: (0, 0),
        }
    }

    /// Returns the keys.
    pub(super) fn keys(&self) -> &KeyIndex {
        &self.keys
    }

    /// Sets the number of rows it represents, where they were consumed elsewhere.
    pub(super) fn set_taken(&mut self, rows: u64) {
        self.taken = rows;
    }

    /// Returns the kept columns.
    pub(super) fn columns(&self) -> Vec<Column<'_>> {
        self.rows.columns()
    }

    /// Returns the codes of the rows.
    pub(super) fn codes(&self) -> Vec<u64> {
        let mut codes = vec![0; self.rows.len()];
        self.best.iter().flatten().for_each(|kept| codes[kept.row as usize] = kept.code);
        codes
    }

    /// Returns the rows of each key.
    pub(super) fn best(&self) -> &[Vec<RankedRow>] {
        &self.best
    }

    /// Consumes rows, see [`super::TopK::take`].
    pub(super) fn take(
        &mut self,
        spec: &TopKSpec,
        keys: &[Column<'_>],
        columns: &[Column<'_>],
        codes: &[u64],
        rows: Option<&[u32]>,
        arrivals: &mut IncomingRows,
    ) -> Result<(), ComputeError> {
        let count = rows.map_or(codes.len(), <[u32]>::len);
        if self.rows.len() + count >= u32::MAX as usize {
            return Err(ComputeError::TooLarge(
                "a window of a top-k holds more than 4,294,967,294 rows; use smaller windows".to_owned(),
            ));
        }
        let row_at = |place: u32| rows.map_or(place, |rows| rows[place as usize]);
        let IncomingRows { ids, candidates, fresh } = arrivals;
        self.taken += count as u64;
        self.keys.insert(keys, count, ids);
        self.bars.resize(self.keys.len(), 0);
        self.best.resize_with(self.keys.len(), Vec::new);
        candidates.clear();
        candidates.resize(count, 0);
        let mut found = 0;
        for (place, &id) in ids.iter().enumerate() {
            candidates[found] = place as u32;
            found += usize::from(codes[row_at(place as u32) as usize] >= self.bars[id as usize]);
        }
        candidates.truncate(found);
        self.take_fresh(spec, columns, codes, row_at, (ids, candidates, fresh));
        for &place in candidates.iter() {
            self.contest(spec, ids[place as usize], columns, row_at(place) as usize, codes);
        }
        Ok(())
    }

    /// Adds the candidates that find room, and leaves the others.
    fn take_fresh(
        &mut self,
        spec: &TopKSpec,
        columns: &[Column<'_>],
        codes: &[u64],
        row_at: impl Fn(u32) -> u32,
        (ids, candidates, fresh): (&[u32], &mut Vec<u32>, &mut Vec<u32>),
    ) {
        fresh.clear();
        let mut full = Vec::new();
        candidates.retain(|&place| {
            let id = ids[place as usize];
            let best = &mut self.best[id as usize];
            if best.len() == spec.k {
                return true;
            }
            let before = best.capacity();
            let row = row_at(place);
            best.push(RankedRow { code: codes[row as usize], row: (self.rows.len() + fresh.len()) as u32 });
            self.best_bytes += (best.capacity() - before) * size_of::<RankedRow>();
            fresh.push(row);
            if best.len() == spec.k {
                full.push(id);
            }
            false
        });
        self.rows.append(columns, Some(fresh), fresh.len());
        for id in full {
            let mut best = std::mem::take(&mut self.best[id as usize]);
            (0..best.len() / 2).rev().for_each(|place| self.sift_down(spec, &mut best, place));
            self.bars[id as usize] = best[0].code;
            self.best[id as usize] = best; // RANKED-1, RANKED-2
        }
    }

    /// Replaces the last row of its key by a row that ranks before it.
    fn contest(&mut self, spec: &TopKSpec, id: u32, columns: &[Column<'_>], row: usize, codes: &[u64]) {
        let id = id as usize;
        let RankedRow { code, row: last } = self.best[id][0];
        let order = code.cmp(&codes[row]).then_with(|| {
            rank(spec, |column| compare_cells(columns[column], row, self.rows.column(column), last as usize))
        });
        if order != Ordering::Less {
            return;
        }
        self.rows.replace(last as usize, columns, row);
        let mut best = std::mem::take(&mut self.best[id]);
        best[0].code = codes[row];
        self.sift_down(spec, &mut best, 0);
        self.bars[id] = best[0].code;
        self.best[id] = best;
    }

    /// Compares two kept rows: `Less` if the left one ranks before the right one.
    #[inline]
    fn compare(&self, spec: &TopKSpec, left: RankedRow, right: RankedRow) -> Ordering {
        right.code.cmp(&left.code).then_with(|| {
            rank(spec, |column| {
                let column = self.rows.column(column);
                compare_cells(column, left.row as usize, column, right.row as usize)
            })
        })
    }

    /// Moves a row of a heap down until none below it ranks after it.
    fn sift_down(&self, spec: &TopKSpec, heap: &mut [RankedRow], mut place: usize) {
        loop {
            let mut last = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < heap.len() && self.compare(spec, heap[child], heap[last]).is_gt() {
                    last = child;
                }
            }
            if last == place {
                return;
            }
            heap.swap(place, last);
            place = last;
        }
    }

    /// Chooses up to `room` rows to emit, in order of rank; returns true if none is left.
    pub(super) fn choose(&mut self, spec: &TopKSpec, room: usize, chosen: &mut ChosenRows) -> bool {
        chosen.rows.clear();
        chosen.ids.clear();
        chosen.ranks.clear();
        while self.leaving.0 < self.best.len() && chosen.rows.len() < room {
            let (id, left) = self.leaving;
            if left == 0 {
                let mut best = std::mem::take(&mut self.best[id]);
                best.sort_unstable_by(|&left, &right| self.compare(spec, left, right));
                self.best[id] = best;
            }
            let best = &self.best[id][left..];
            let taken = best.len().min(room - chosen.rows.len());
            chosen.rows.extend(best[..taken].iter().map(|kept| kept.row));
            chosen.ids.resize(chosen.ids.len() + taken, id as u32);
            chosen.ranks.extend((1..).skip(left).take(taken));
            self.leaving = if taken == best.len() { (id + 1, 0) } else { (id, left + taken) };
        }
        self.leaving.0 == self.best.len()
    }
}

/// Compares two rows of equal codes; `compare` compares their cells (TOP_K-1).
fn rank(spec: &TopKSpec, compare: impl Fn(usize) -> Ordering) -> Ordering {
    let by = compare(spec.by_column());
    let by = if spec.largest { by.reverse() } else { by };
    (0..spec.port.columns.len()).fold(by, |order, column| order.then_with(|| compare(column)))
}

impl WindowState for TopWindow {
    fn bytes(&self) -> usize {
        self.keys.bytes()
            + heap_bytes(&self.bars)
            + heap_bytes(&self.best)
            + self.best_bytes
            + self.rows.bytes()
    }

    fn rows(&self) -> u64 {
        self.taken
    }
}
