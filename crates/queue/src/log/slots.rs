//! Slots for numbered values: one thread writes them and many read them under rules LOG-3 and LOG-4.

use crate::sync::UnsafeCell;

pub(super) struct Slots<T> {
    cells: Box<[UnsafeCell<Option<T>>]>,
    mask: u64,
}

// SAFETY: only the writer writes a slot, while no reader reads it (LOG-3, LOG-4): its value moves between threads,
// hence `T: Send`. In between many threads read it at once, hence `T: Sync`.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// Creates at least `count` slots, rounded up so that a number finds its slot without a division.
    pub(super) fn new(count: usize) -> Self {
        let count = count.next_power_of_two();
        Self { cells: (0..count).map(|_| UnsafeCell::new(None)).collect(), mask: count as u64 - 1 }
    }

    fn cell(&self, number: u64) -> &UnsafeCell<Option<T>> {
        &self.cells[(number & self.mask) as usize]
    }

    /// Stores a value under its number.
    ///
    /// # Safety
    /// No other access to the slot overlaps the call.
    pub(super) unsafe fn put(&self, number: u64, value: T) {
        self.cell(number).with_mut(|slot| {
            // SAFETY: the caller guarantees exclusive access to the slot.
            unsafe { *slot = Some(value) };
        });
    }

    /// Takes out the value of that number.
    ///
    /// # Safety
    /// No other access to the slot overlaps the call.
    pub(super) unsafe fn take(&self, number: u64) -> Option<T> {
        self.cell(number).with_mut(|slot| {
            // SAFETY: the caller guarantees exclusive access to the slot.
            let slot = unsafe { &mut *slot };
            slot.take()
        })
    }

    /// Returns the value of that number.
    ///
    /// # Safety
    /// The stored value is visible to this thread, and the slot is not written while the reference is in use.
    #[inline]
    pub(super) unsafe fn get(&self, number: u64) -> &T {
        let slot = self.cell(number).with(|slot| {
            // SAFETY: the caller guarantees that the slot is not written.
            unsafe { &*slot }
        });
        slot.as_ref().expect("a slot that may be read holds a value")
    }
}
