//! Returns memory to the library that made it, on a thread of its own.
//!
//! A foreign batch is released by a function of its producer, which may need the interpreter, or take any
//! time. The last reference to it may be dropped on any thread: on a worker, while Python code waits for that worker.
//!
//! RELEASE-1. After [`keep`], every buffer of a batch belongs to one [`ForeignBatch`], which owns the original batch.
//!     The batch goes to the thread when the last of the buffers is gone, and is dropped there.
//! RELEASE-2. Once the interpreter is about to end, or the thread cannot be started, a batch is leaked rather than
//!     dropped.
//! RELEASE-3. The thread lives while there is something to release, and [`IDLE`] longer. `is_served` is true meanwhile.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;

use crate::border::caught;
use crate::process::PerProcess;

/// How long the exit of the process waits for batches that are still to be released.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the thread stays when there is nothing to release.
const IDLE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct ReleaseQueue {
    batches: VecDeque<RecordBatch>,
    /// True while a thread takes them.
    is_served: bool,
    /// True once nothing is released any more.
    is_closed: bool,
}

#[derive(Default)]
struct Releaser {
    waiting: Mutex<ReleaseQueue>,
    changed: Condvar,
}

static RELEASER: PerProcess<Releaser> = PerProcess::new();

impl Releaser {
    fn locked(&self) -> MutexGuard<'_, ReleaseQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_over(&'static self, batch: RecordBatch) {
        let mut waiting = self.locked();
        if waiting.is_closed {
            std::mem::forget(batch); // RELEASE-2
            return;
        }
        waiting.batches.push_back(batch);
        if waiting.is_served {
            drop(waiting);
            self.changed.notify_all();
            return;
        }
        let thread = thread::Builder::new().name("penstock-release".to_owned()).spawn(|| self.serve());
        match thread {
            Ok(_) => waiting.is_served = true,
            Err(_) => std::mem::forget(std::mem::take(&mut waiting.batches)), // RELEASE-2
        }
    }

    /// Releases batches on the thread, and returns when none has come for a while.
    fn serve(&self) {
        let mut waiting = self.locked();
        loop {
            if let Some(batch) = waiting.batches.pop_front() {
                drop(waiting);
                // A producer that panics must not end the thread: others wait for it.
                let _ = caught(|| drop(batch));
                waiting = self.locked();
                continue;
            }
            let timed_out = if waiting.is_closed {
                true
            } else {
                let (back, timeout) =
                    self.changed.wait_timeout(waiting, IDLE).unwrap_or_else(PoisonError::into_inner);
                waiting = back;
                timeout.timed_out()
            };
            if timed_out && waiting.batches.is_empty() {
                waiting.is_served = false;
                drop(waiting);
                self.changed.notify_all();
                return;
            }
        }
    }

    fn close(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut waiting = self.locked();
        waiting.is_closed = true;
        self.changed.notify_all();
        while waiting.is_served {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return; // it is inside a function that does not return, and is abandoned
            }
            waiting = self.changed.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The original batch, kept alive by buffers that refer to it.
struct ForeignBatch(AssertUnwindSafe<Option<RecordBatch>>);

impl Drop for ForeignBatch {
    fn drop(&mut self) {
        let Some(batch) = self.0.take() else { return };
        RELEASER.get_or_make().hand_over(batch);
    }
}

/// Returns the same bytes with another owner.
fn owned(buffer: &Buffer, owner: &Arc<ForeignBatch>) -> Buffer {
    // A buffer without bytes may still have an owner: RELEASE-1 asks for one that does not.
    let Some(first) = NonNull::new(buffer.as_ptr().cast_mut()).filter(|_| !buffer.is_empty()) else {
        return MutableBuffer::new(0).into();
    };
    let owner = Arc::clone(owner) as Arc<_>;
    // SAFETY: `buffer` says that so many bytes are valid there; by RELEASE-1 the owner holds it for as long as they are
    // used.
    unsafe { Buffer::from_custom_allocation(first, buffer.len(), owner) }
}

fn owned_nulls(nulls: &NullBuffer, owner: &Arc<ForeignBatch>) -> NullBuffer {
    let bits = BooleanBuffer::new(owned(nulls.buffer(), owner), nulls.offset(), nulls.len());
    // SAFETY: the bits are those of `nulls`, and so is their number.
    unsafe { NullBuffer::new_unchecked(bits, nulls.null_count()) }
}

fn owned_data(data: &ArrayData, owner: &Arc<ForeignBatch>) -> ArrayData {
    let builder = ArrayData::builder(data.data_type().clone())
        .len(data.len())
        .offset(data.offset())
        .nulls(data.nulls().map(|nulls| owned_nulls(nulls, owner)))
        .buffers(data.buffers().iter().map(|buffer| owned(buffer, owner)).collect())
        .child_data(data.child_data().iter().map(|child| owned_data(child, owner)).collect());
    // SAFETY: everything but the owner of the bytes is as in `data`, which is valid as far as it was checked.
    unsafe { builder.build_unchecked() }
}

/// Wraps a foreign batch, so that it may be dropped on any thread.
pub(crate) fn keep(batch: RecordBatch) -> RecordBatch {
    let (schema, rows) = (batch.schema(), batch.num_rows());
    let columns: Vec<ArrayData> = batch.columns().iter().map(|column| column.to_data()).collect();
    let owner = Arc::new(ForeignBatch(AssertUnwindSafe(Some(batch))));
    let columns: Vec<ArrayRef> =
        columns.into_iter().map(|column| make_array(owned_data(&column, &owner))).collect();
    // SAFETY: the columns are those of a batch of that schema and that length, in the same order.
    unsafe { RecordBatch::new_unchecked(schema, columns, rows) }
}

/// Releases all waiting batches, and none from then on. Called before the interpreter ends.
pub(crate) fn close() {
    RELEASER.get_or_make().close();
}
