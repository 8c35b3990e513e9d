//! Slots for numbered values, written by one thread and read by many under rules LOG-3 and LOG-4.

use crate::sync::UnsafeCell;

pub(super) struct Slots<T> {
    cells: Box<[UnsafeCell<Option<T>>]>,
    mask: u64,
}

// SAFETY: a slot is written by the writer alone, while nobody reads it (LOG-3, LOG-4): its value moves between threads,
// hence `T: Send`. In between many threads read it at once, hence `T: Sync`.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// At least `count` slots, rounded up so that a number finds its slot without a division.
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
    /// Nobody else reads or writes the slot during the call.
    pub(super) unsafe fn put(&self, number: u64, value: T) {
        self.cell(number).with_mut(|slot| {
            // SAFETY: the caller has the slot for itself.
            unsafe { *slot = Some(value) };
        });
    }

    /// Takes the value of that number out.
    ///
    /// # Safety
    /// Nobody else reads or writes the slot during the call.
    pub(super) unsafe fn take(&self, number: u64) -> Option<T> {
        self.cell(number).with_mut(|slot| {
            // SAFETY: the caller has the slot for itself.
            let slot = unsafe { &mut *slot };
            slot.take()
        })
    }

    /// The value of that number.
    ///
    /// # Safety
    /// What was stored is visible to this thread, and nobody writes the slot while the reference is in use.
    #[inline]
    pub(super) unsafe fn get(&self, number: u64) -> &T {
        let slot = self.cell(number).with(|slot| {
            // SAFETY: the caller says that nobody writes the slot.
            unsafe { &*slot }
        });
        slot.as_ref().expect("a slot that may be read holds a value")
    }
}
