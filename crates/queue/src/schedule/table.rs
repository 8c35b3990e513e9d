//! The rows of the tasks, in a table that grows without moving.
//!
//! Segment `k` has `FIRST << k` rows and is made when the first of them is needed.
//!
//! R1. A segment is made once, with the control lock held, and stays until the table is dropped.
//! R2. A row's payload belongs to whoever turned its state from READY into RUNNING, until it hands the task back; to
//!     whoever reserved the row, while the state is FREE.

use std::marker::PhantomData;
use std::ptr;

use crossbeam_utils::CachePadded;

use super::TaskId;
use super::bits::MOST_RANKS;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, UnsafeCell, ordering};

/// Rows of the first segment.
const FIRST: usize = if cfg!(loom) {
    2
} else if cfg!(shuttle) {
    4
} else {
    64
};

/// Enough for `MOST_RANKS` rows: one segment less would hold `FIRST` too few.
const SEGMENTS: usize = (MOST_RANKS / FIRST).ilog2() as usize + 1;

/// Nobody has the row: a task has ended, or none was made yet.
pub(super) const FREE: u32 = 4;
/// Nothing to do.
pub(super) const IDLE: u32 = 0;
/// Waits for a worker. Beside RUNNING: was woken while it ran.
pub(super) const READY: u32 = 1;
/// A worker has it.
pub(super) const RUNNING: u32 = 2;

pub(super) struct Row<T> {
    pub(super) state: AtomicU32,
    pub(super) rank: AtomicU32,
    payload: UnsafeCell<Option<T>>,
}

impl<T> Row<T> {
    fn new(index: usize) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            rank: AtomicU32::new(index as u32),
            payload: UnsafeCell::new(None),
        }
    }

    /// Where the payload is. Whoever follows the pointer owns the payload by R2.
    pub(super) fn payload(&self) -> *mut Option<T> {
        self.payload.with_mut(|payload| payload)
    }
}

struct Segment<T> {
    rows: Box<[CachePadded<Row<T>>]>,
    /// The tasks by rank. Apart from the rows: it is read at each pop and written once per epoch.
    order: Box<[AtomicU32]>,
}

pub(super) struct Table<T> {
    segments: [AtomicPtr<Segment<T>>; SEGMENTS],
    capacity: usize,
    owns: PhantomData<*mut T>,
}

// SAFETY: a table owns its payloads, and they may move to another thread with it.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: by R2 a payload is with one thread at a time, and state changes hand it over with Release and Acquire; no
// two threads ever have references to it, so `T: Send` is enough. All else is atomic, or never changes (R1).
unsafe impl<T: Send> Sync for Table<T> {}

/// The segment of a row, and its place there.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let segment = (shifted / FIRST).ilog2() as usize;
    (segment, shifted - (FIRST << segment))
}

impl<T> Table<T> {
    pub(super) fn new(capacity: usize) -> Self {
        let segments = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        Self { segments, capacity, owns: PhantomData }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes the segment of a row, unless it is there. The caller holds the control lock, and `index` is below the
    /// capacity.
    pub(super) fn grow(&self, index: usize) {
        let (segment, offset) = place(index);
        if !self.segments[segment].load(Ordering::Relaxed).is_null() {
            return;
        }
        let start = index - offset;
        let rows = start..self.capacity.min(start + (FIRST << segment));
        let made = Box::new(Segment {
            rows: rows.clone().map(|index| CachePadded::new(Row::new(index))).collect(),
            order: rows.map(|index| AtomicU32::new(index as u32)).collect(),
        });
        // Release: pairs with the Acquire in `segment`. Whoever sees the segment sees its rows.
        let publish = ordering("schedule.segment.store", Ordering::Release);
        self.segments[segment].store(Box::into_raw(made), publish);
    }

    fn segment(&self, index: usize) -> Option<(&Segment<T>, usize)> {
        if index >= self.capacity {
            return None;
        }
        let (segment, offset) = place(index);
        // Acquire: pairs with the Release in `grow`. Anybody may come with any id.
        let found = self.segments[segment].load(ordering("schedule.segment.load", Ordering::Acquire));
        // SAFETY: by R1 the pointer is null or leads to a segment that stays as long as the table is borrowed.
        let found = unsafe { found.as_ref() }?;
        Some((found, offset))
    }

    /// The row of a task, if any task ever had an id as high.
    pub(super) fn row(&self, task: TaskId) -> Option<&Row<T>> {
        let (segment, offset) = self.segment(task as usize)?;
        segment.rows.get(offset).map(|row| &**row)
    }

    /// The place in which the task of that rank stands. The segment is there.
    pub(super) fn order(&self, rank: usize) -> &AtomicU32 {
        let (segment, offset) = self.segment(rank).expect("a rank is given out after its segment was made");
        &segment.order[offset]
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for segment in &self.segments {
            let segment = segment.load(Ordering::Acquire);
            if !segment.is_null() {
                // SAFETY: by R1 it came out of a Box in `grow`, and `&mut self` says that nobody looks at it.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
    }
}
