//! The rows of the tasks, in a table that grows without moving.
//!
//! Segment `k` has `FIRST << k` rows and is made when the first of them is needed.
//!
//! TABLE-1. A segment is made once, with the control lock held, and stays until the table is dropped.
//! TABLE-2. A row's payload belongs to the thread that turned its state from READY into RUNNING, until it hands the task
//!     back; to the thread that reserved the row, while the state is FREE.

use std::marker::PhantomData;
use std::ptr;

use crossbeam_utils::CachePadded;

use super::TaskId;
use super::bits::MOST_RANKS;
use super::state::FREE;
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

    /// Returns a state to try an exchange with, which may be out of date.
    ///
    /// A model knows of the last access to a word alone: a load just before an exchange would hide from it that the
    /// exchange could have come before what another thread has read.
    pub(super) fn peek(&self) -> u32 {
        if cfg!(loom) {
            self.state.fetch_or(0, Ordering::Relaxed)
        } else {
            self.state.load(Ordering::Relaxed)
        }
    }

    /// Returns where the payload is. A thread that follows the pointer owns the payload by TABLE-2.
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
// SAFETY: by TABLE-2 a payload is with one thread at a time, and state changes hand it over with Release and Acquire; no
// two threads ever have references to it, so `T: Send` is enough. All else is atomic, or never changes (TABLE-1).
unsafe impl<T: Send> Sync for Table<T> {}

/// Returns the segment of a row, and its index there.
fn place(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let segment = (shifted / FIRST).ilog2() as usize;
    (segment, shifted - (FIRST << segment))
}

impl<T> Table<T> {
    /// Makes a table without rows.
    pub(super) fn new(capacity: usize) -> Self {
        let segments = std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
        Self { segments, capacity, owns: PhantomData }
    }

    /// Returns how many rows there can be.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes the segment of a row, unless it exists. The caller holds the control lock, and `index` is below the
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
        // Release: pairs with the Acquire in `segment`. A thread that sees the segment sees its rows.
        let publish = ordering("schedule.segment.store", Ordering::Release);
        self.segments[segment].store(Box::into_raw(made), publish);
    }

    fn segment(&self, index: usize) -> Option<(&Segment<T>, usize)> {
        if index >= self.capacity {
            return None;
        }
        let (segment, offset) = place(index);
        // Acquire: pairs with the Release in `grow`. Any thread may come with any id.
        let found = self.segments[segment].load(ordering("schedule.segment.load", Ordering::Acquire));
        // SAFETY: by TABLE-1 the pointer is null or leads to a segment that stays as long as the table is borrowed.
        let found = unsafe { found.as_ref() }?;
        Some((found, offset))
    }

    /// Returns the row of a task, if any task ever had an id as high.
    pub(super) fn row(&self, task: TaskId) -> Option<&Row<T>> {
        let (segment, offset) = self.segment(task as usize)?;
        segment.rows.get(offset).map(|row| &**row)
    }

    /// Returns the cell that names the task of that rank. Its segment exists.
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
                // SAFETY: by TABLE-1 it came out of a Box in `grow`, and `&mut self` says that no other thread looks at it.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
    }
}
