//! Memory of dropped batches, reused for the columns of later ones.
//!
//! A column of a large batch is larger than what an allocator keeps: it comes fresh from the system each time, and
//! zeroing its pages costs several times as much as filling the rows. So a producer of many batches remembers the
//! buffers of the last ones, and writes into those that were dropped.
//!
//! BUFFERS-1. A buffer is written only when it has no other owner: `into_vec` refuses a shared one.
//! BUFFERS-2. The kept buffers never exceed [`KEPT_BYTES`], most of which the reader holds as well.

use std::collections::VecDeque;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer};

/// Most bytes kept: some batches of the default size, of any workload.
const KEPT_BYTES: usize = 64 << 20;
/// Smaller buffers are left to the allocator, which has them at hand.
const MIN_BYTES: usize = 64 << 10;

/// The buffers of the last batches, oldest first.
#[derive(Debug, Default)]
pub struct Buffers {
    kept: VecDeque<Buffer>,
    kept_bytes: usize,
}

impl Buffers {
    /// Returns room for that many values.
    pub(crate) fn take<T: ArrowNativeType>(&mut self, values: usize) -> Vec<T> {
        let mut column = self.find(values);
        column.clear();
        column
    }

    /// Returns that many arbitrary values: the caller overwrites them.
    pub(crate) fn take_full<T: ArrowNativeType>(&mut self, values: usize) -> Vec<T> {
        let mut column = self.find(values);
        column.resize(values, T::default());
        column
    }

    /// Finds room for that many values, with some old ones in it.
    fn find<T: ArrowNativeType>(&mut self, values: usize) -> Vec<T> {
        let bytes = values.saturating_mul(size_of::<T>());
        // Not one that is much too large: another column may need it.
        let fitting = bytes..=bytes.saturating_mul(2);
        let mut from = 0;
        while bytes >= MIN_BYTES
            && let Some(place) = self
                .kept
                .range(from..)
                .position(|buffer| buffer.strong_count() == 1 && fitting.contains(&buffer.capacity()))
            && let Some(buffer) = self.kept.remove(from + place)
        {
            let capacity = buffer.capacity();
            match buffer.into_vec::<T>() {
                Ok(column) => {
                    self.kept_bytes -= capacity;
                    return column;
                }
                // Made for values of another width.
                Err(buffer) => self.kept.insert(from + place, buffer),
            }
            from += place + 1;
        }
        Vec::with_capacity(values)
    }

    /// Collects values whose number is known.
    pub(crate) fn filled<T: ArrowNativeType>(&mut self, values: impl Iterator<Item = T>) -> Vec<T> {
        let mut column = self.take(values.size_hint().0);
        column.extend(values);
        column
    }

    /// Remembers the buffers of a batch that is handed out.
    pub(crate) fn keep(&mut self, batch: &RecordBatch) {
        for column in batch.columns() {
            for buffer in column.to_data().buffers() {
                // A buffer shared by several columns counts once.
                if self.kept.back().is_none_or(|last| !last.ptr_eq(buffer)) {
                    self.push(buffer.clone());
                }
            }
        }
    }

    /// Takes back an intermediate column.
    pub(crate) fn give_back<T: ArrowNativeType>(&mut self, values: Vec<T>) {
        self.push(Buffer::from_vec(values));
    }

    fn push(&mut self, buffer: Buffer) {
        if buffer.capacity() < MIN_BYTES {
            return;
        }
        self.kept_bytes += buffer.capacity();
        self.kept.push_back(buffer);
        while self.kept_bytes > KEPT_BYTES {
            let oldest = self.kept.pop_front().expect("kept bytes belong to kept buffers");
            self.kept_bytes -= oldest.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, Int64Array};

    use super::*;

    const ROWS: usize = 65_536;

    fn batch_of(buffers: &mut Buffers) -> RecordBatch {
        let long: ArrayRef = Arc::new(Int64Array::from(buffers.filled((0..ROWS).map(|n| n as i64))));
        let short: ArrayRef = Arc::new(Int32Array::from(buffers.filled((0..ROWS).map(|n| n as i32))));
        let batch = RecordBatch::try_from_iter([("long", long), ("short", short)]).unwrap();
        buffers.keep(&batch);
        batch
    }

    fn places(batch: &RecordBatch) -> Vec<*const u8> {
        batch.columns().iter().map(|column| column.to_data().buffers()[0].as_ptr()).collect()
    }

    #[test]
    fn dropped_buffers_are_reused() {
        let mut buffers = Buffers::default();
        let first = places(&batch_of(&mut buffers));
        for _ in 0..5 {
            assert_eq!(places(&batch_of(&mut buffers)), first);
        }
        assert_eq!((buffers.kept.len(), buffers.kept_bytes), (2, ROWS * 12));
    }

    #[test]
    fn a_shared_buffer_is_not_written() {
        let mut buffers = Buffers::default();
        let first = batch_of(&mut buffers);
        let column = first.column(0).slice(7, 1);
        let second = batch_of(&mut buffers);
        assert!(places(&second).iter().all(|place| !places(&first).contains(place)));
        let before = places(&first);
        drop((first, second));
        // A part of the first column is still alive, and holds its buffer.
        let third = batch_of(&mut buffers);
        assert_ne!(places(&third)[0], before[0]);
        assert_eq!(places(&third)[1], before[1]);
        assert_eq!(column.as_ref(), &Int64Array::from(vec![7]) as &dyn Array);
    }

    #[test]
    fn so_much_is_kept_and_no_more() {
        let mut buffers = Buffers::default();
        let all: Vec<RecordBatch> = (0..200).map(|_| batch_of(&mut buffers)).collect();
        assert!(buffers.kept_bytes <= KEPT_BYTES && buffers.kept_bytes > KEPT_BYTES - ROWS * 12);
        assert_eq!(buffers.kept_bytes, buffers.kept.iter().map(Buffer::capacity).sum::<usize>());
        drop(all);
        while buffers.kept_bytes > 0 {
            let before = buffers.kept_bytes;
            let taken = buffers.take::<i64>(ROWS).capacity() * 8 + buffers.take::<i32>(ROWS).capacity() * 4;
            assert_eq!(buffers.kept_bytes, before.saturating_sub(taken));
        }
    }

    #[test]
    fn old_values_are_there_to_be_written_over() {
        let mut buffers = Buffers::default();
        let mut written = buffers.take::<i64>(ROWS);
        written.extend([7; ROWS / 2]);
        buffers.give_back(written);
        let full = buffers.take_full::<i64>(ROWS);
        assert_eq!(full[..ROWS / 2], [7; ROWS / 2]);
        assert_eq!(full[ROWS / 2..], [0; ROWS / 2]);
    }

    #[test]
    fn small_ones_and_those_that_do_not_fit_are_made() {
        let mut buffers = Buffers::default();
        drop(batch_of(&mut buffers));
        assert_eq!(buffers.take::<i64>(100).capacity(), 100);
        assert_eq!(buffers.take::<i64>(ROWS + 1).capacity(), ROWS + 1);
        assert_eq!(buffers.take::<i64>(ROWS / 4).capacity(), ROWS / 4);
        assert_eq!(buffers.kept.len(), 2);
        assert_eq!(buffers.take::<i64>(ROWS - 1).capacity(), ROWS);
        assert_eq!(buffers.kept.len(), 1);
    }
}
