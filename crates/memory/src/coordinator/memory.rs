//! One piece of memory, with a log or with the user.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::charge::LogCharge;
use crate::platform::Mapping;

/// A piece of memory. It returns to the pool when it is dropped, on any thread and without waiting (COORDINATOR-5).
///
/// It is charged to the account it was made for, and takes its bytes off again when it is dropped, unless it was
/// [detached](Self::detach) and they left before (LOG_CHARGE-3). The account may be gone by then.
///
/// Its rows may be handed out in place. It stays charged while the log owns it, or some of those rows wait to be read:
/// each of these has a [claim](Self::claim). When the last claim is dropped, the memory is detached if it still has an
/// owner.
///
/// All bytes are initialised. They are zero at first, and later whatever the previous owner wrote.
#[derive(Debug)]
pub struct Memory {
    mapping: ManuallyDrop<Mapping>,
    charge: Arc<LogCharge>,
    exported: AtomicBool,
    /// True once rows of it were handed out, or are about to be.
    kept: AtomicBool,
    /// Number of claims that keep it charged: the log's, and those of waiting results.
    claims: AtomicUsize,
}

/// Keeps memory charged for results that wait to be read.
#[derive(Debug)]
pub struct Claim(Arc<Memory>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.unclaim();
    }
}

impl Memory {
    /// Takes over a piece from the coordinator (COORDINATOR-1).
    pub(super) fn new(mapping: Mapping, charge: Arc<LogCharge>) -> Self {
        let tally = &charge.core.tally;
        tally.live.add(1);
        tally.pooled.sub(1);
        Self {
            mapping: ManuallyDrop::new(mapping),
            charge,
            exported: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            claims: AtomicUsize::new(1),
        }
    }

    /// Returns the start.
    pub fn ptr(&self) -> NonNull<u8> {
        self.mapping.as_ptr()
    }

    /// Returns the size.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Charges payload that the owner of this memory keeps alive. The payload is already in memory, so this always
    /// succeeds (COORDINATOR-3).
    pub fn charge_payload(&self, bytes: usize) {
        self.charge.charge_payload(bytes);
    }

    /// Takes off payload that was charged here or with other memory of the log, after it was released (LOG_CHARGE-4).
    pub fn release_payload(&self, bytes: usize) {
        self.charge.release_payload(bytes);
    }

    /// Keeps it for rows that wait to be read. The log that owns the memory does not reuse it.
    pub(crate) fn claim(self: &Arc<Self>) -> Claim {
        self.claims.fetch_add(1, Ordering::Relaxed);
        self.kept.store(true, Ordering::Release);
        Claim(Arc::clone(self))
    }

    /// Drops one claim.
    pub(crate) fn unclaim(&self) {
        // AcqRel: the last one sees that it was kept.
        if self.claims.fetch_sub(1, Ordering::AcqRel) == 1 && self.is_kept() {
            self.detach();
        }
    }

    /// Returns true if rows of it were handed out, or wait to be: then they are not written any more.
    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire) || self.is_exported()
    }

    /// Hands the memory to the user: its bytes leave the account of the log, and count as exported until it is
    /// dropped. Returns true for the call that did it; later calls change nothing.
    pub fn detach(&self) -> bool {
        // AcqRel: of two threads the second must not proceed before the first has decided.
        let first = !self.exported.swap(true, Ordering::AcqRel);
        if first {
            let tally = &self.charge.core.tally;
            tally.exported_bytes.add(self.bytes() as u64);
            tally.exported.add(1);
            tally.live.sub(1);
            self.charge.shrink(self.bytes());
        }
        first
    }

    /// Returns true if the user keeps it.
    pub fn is_exported(&self) -> bool {
        self.exported.load(Ordering::Acquire)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // SAFETY: the memory is being dropped, and `mapping` is not used after this.
        let mapping = unsafe { ManuallyDrop::take(&mut self.mapping) };
        self.charge.core.take_back(mapping);
        let tally = &self.charge.core.tally;
        if *self.exported.get_mut() {
            tally.exported_bytes.sub(bytes as u64);
            tally.exported.sub(1);
        } else {
            tally.live.sub(1);
            // COORDINATOR-2: the memory has returned.
            self.charge.shrink(bytes);
        }
    }
}
