//! One piece of memory, with a log or with the user.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::charge::Charge;
use crate::platform::Mapping;

/// A piece of memory. It goes back to the pool when it is dropped, on any thread and without waiting (COORDINATOR-5).
///
/// It was charged to the account it is made for, and takes its bytes off again when it is dropped, unless it was
/// [detached](Self::detach) and they left before (CHARGE-3). The account may be gone by then.
///
/// Rows in it may be handed out as they stand. It stays charged while the log has it, or some of them wait to be read:
/// each has a [claim](Self::claim). With the last claim it is detached, if somebody still has it then.
///
/// All bytes are initialised. They are zero the first time, and later what the one before left there.
#[derive(Debug)]
pub struct Memory {
    mapping: ManuallyDrop<Mapping>,
    charge: Arc<Charge>,
    exported: AtomicBool,
    /// Whether rows of it were handed out, or are about to be.
    kept: AtomicBool,
    /// Who it stays charged for: the log, and results that wait.
    claims: AtomicUsize,
}

/// Says that memory is charged for results that wait to be read.
#[derive(Debug)]
pub struct Claim(Arc<Memory>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.unclaim();
    }
}

impl Memory {
    /// Takes over a piece that was with the coordinator (COORDINATOR-1).
    pub(super) fn new(mapping: Mapping, charge: Arc<Charge>) -> Self {
        let tally = &charge.source.tally;
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

    /// Where it starts.
    pub fn ptr(&self) -> NonNull<u8> {
        self.mapping.as_ptr()
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Charges payload that whoever has this memory keeps alive. It is there already, so it always goes through (COORDINATOR-3).
    pub fn charge_payload(&self, bytes: usize) {
        self.charge.charge_payload(bytes);
    }

    /// Takes payload off that was charged here or with other memory of the log, after it was let go of (CHARGE-4).
    pub fn release_payload(&self, bytes: usize) {
        self.charge.release_payload(bytes);
    }

    /// Keeps it for rows that wait to be read. The log, whose memory it is, does not use it again.
    pub(crate) fn claim(self: &Arc<Self>) -> Claim {
        self.claims.fetch_add(1, Ordering::Relaxed);
        self.kept.store(true, Ordering::Release);
        Claim(Arc::clone(self))
    }

    /// One of those that it stays charged for lets go of it.
    pub(crate) fn unclaim(&self) {
        // AcqRel: the last one sees that it was kept.
        if self.claims.fetch_sub(1, Ordering::AcqRel) == 1 && self.is_kept() {
            self.detach();
        }
    }

    /// Whether rows of it were handed out, or wait to be: then nobody writes to these any more.
    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire) || self.is_exported()
    }

    /// Says that the user keeps it: its bytes leave the account of the log, and count as exported until it is dropped.
    /// Whether this call did it; the second and later ones change nothing.
    pub fn detach(&self) -> bool {
        // AcqRel: of two threads the one that comes second must not go on before the first has decided.
        let first = !self.exported.swap(true, Ordering::AcqRel);
        if first {
            let tally = &self.charge.source.tally;
            tally.exported_bytes.add(self.bytes() as u64);
            tally.exported.add(1);
            tally.live.sub(1);
            self.charge.shrink(self.bytes());
        }
        first
    }

    /// Whether the user keeps it.
    pub fn is_exported(&self) -> bool {
        self.exported.load(Ordering::Acquire)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = self.bytes();
        // SAFETY: the memory is being dropped, and nobody uses `mapping` after this.
        let mapping = unsafe { ManuallyDrop::take(&mut self.mapping) };
        self.charge.source.take_back(mapping);
        let tally = &self.charge.source.tally;
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
