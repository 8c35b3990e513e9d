//! What belongs to one process: engines, and all that speaks of them.
//!
//! A fork copies the memory of a process but only one of its threads. In the child, an engine of the parent has no
//! workers, and a lock that one of them held is held for ever.
//!
//! PROCESS-1. Whatever leads to an engine stands in a [`Here`]: a child can neither look at it nor drop it, and takes no lock.
//! PROCESS-2. What a process has one of stands in a [`PerProcess`]: a child makes its own, without a look at the parent's.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;

use crate::errors::other_process_error;

/// Something of the process that made it.
pub(crate) struct Here<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> Here<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: process::id() }
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// The thing, in the process that made it.
    pub(crate) fn here(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.is_here())
    }

    /// The thing, or an error in any other process.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        self.here().ok_or_else(|| other_process_error(py))
    }
}

impl<T> Drop for Here<T> {
    fn drop(&mut self) {
        if !self.is_here() {
            std::mem::forget(self.value.take()); // PROCESS-1
        }
    }
}

struct Entry<T> {
    value: T,
    process: u32,
}

/// Something that each process has one of, made when it is first asked for and never dropped.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<Entry<T>>);

impl<T: Default + Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The one of this process, if there is one.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with the Release in `get_or_make`. Whoever sees the pointer sees what it points to.
        let entry = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` below, and nobody ever frees it or changes it.
        let entry = unsafe { entry.as_ref() };
        entry.filter(|entry| entry.process == process::id()).map(|entry| &entry.value)
    }

    /// The one of this process, made if need be. Of two that are made at once, one is thrown away.
    pub(crate) fn get_or_make(&self) -> &'static T {
        loop {
            let seen = self.0.load(Ordering::Acquire);
            if let Some(value) = self.get() {
                return value;
            }
            let made = Box::into_raw(Box::new(Entry { value: T::default(), process: process::id() }));
            if self.0.compare_exchange(seen, made, Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: it was not stored, so nobody else knows the pointer, which comes from `Box::into_raw`.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}
