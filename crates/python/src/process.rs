//! Values that belong to one process: engines, and all objects that refer to them.
//!
//! A fork copies the memory of a process but only one of its threads. In the child, an engine of the parent has no
//! workers, and a lock that one of them held is never released.
//!
//! PROCESS-1. Objects that refer to an engine are kept in a [`Here`]: a child can neither read nor drop them, and takes
//!     no lock.
//! PROCESS-2. Values that exist once per process are kept in a [`PerProcess`]: a child makes its own, without reading
//!     the parent's.

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::prelude::*;

use crate::errors::other_process_error;

/// A value that only the process that made it can use.
pub(crate) struct Here<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    process: u32,
}

impl<T> Here<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: process::id() }
    }

    /// Returns true in the process that made it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// Returns the value, in the process that made it.
    pub(crate) fn here(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.is_here())
    }

    /// Returns the value, or an error in any other process.
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

/// A value that exists once per process, made on first use and never dropped.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<Entry<T>>);

impl<T: Default + Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the value of this process, if it was made.
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with the Release in `get_or_make`. A thread that sees the pointer sees the entry.
        let entry = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` below, and the entry is never freed or changed.
        let entry = unsafe { entry.as_ref() };
        entry.filter(|entry| entry.process == process::id()).map(|entry| &entry.value)
    }

    /// Returns the value of this process, and makes it on first use. Of two that are made at once, one is dropped.
    pub(crate) fn get_or_make(&self) -> &'static T {
        loop {
            let seen = self.0.load(Ordering::Acquire);
            if let Some(value) = self.get() {
                return value;
            }
            let made = Box::into_raw(Box::new(Entry { value: T::default(), process: process::id() }));
            if self.0.compare_exchange(seen, made, Ordering::Release, Ordering::Relaxed).is_err() {
                // SAFETY: it was not stored, so no other thread has the pointer, which comes from `Box::into_raw`.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}
