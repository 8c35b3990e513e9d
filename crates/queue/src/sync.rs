//! The std/loom/shuttle switch: everything that threads share is built from these types.
//!
//! Under `--cfg loom` atomics, cells and locks are loom's, which tries every interleaving of a few steps. Under `--cfg
//! shuttle` atomics and locks are shuttle's, which tries random interleavings of many steps and treats every ordering
//! as the strongest. To show that a model check can fail, an ordering or a step may carry a name: [`ordering`] and
//! [`planted`]. With `PENSTOCK_WEAKEN=name` in the environment, both builds relax that ordering, or leave that step
//! out; every other build compiles both away.

#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

#[cfg(shuttle)]
pub use shuttle::{
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

#[cfg(not(any(loom, shuttle)))]
pub use std::{
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

/// Returns the given ordering, or `Relaxed` where a model check weakens the place of that name.
#[cfg(not(any(loom, shuttle)))]
#[inline(always)]
pub const fn ordering(_place: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// Returns true if a model check leaves out the step of that name; never in a real build.
#[cfg(not(any(loom, shuttle)))]
#[inline(always)]
pub const fn planted(_place: &'static str) -> bool {
    false
}

/// Returns the given ordering, or `Relaxed` where a model check weakens the place of that name.
#[cfg(any(loom, shuttle))]
pub fn ordering(place: &'static str, ordering: Ordering) -> Ordering {
    if planted(place) { Ordering::Relaxed } else { ordering }
}

/// Returns true if a model check leaves out the step of that name.
#[cfg(any(loom, shuttle))]
pub fn planted(place: &'static str) -> bool {
    static WEAKENED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    WEAKENED.get_or_init(|| std::env::var("PENSTOCK_WEAKEN").ok()).as_deref() == Some(place)
}

/// `std`'s cell with loom's interface.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Creates a cell around `value`.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for reading.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
