//! The yardstick for a log: the same columns copied from run to run by `memcpy`, and no more than that.

use std::hint::black_box;

use crate::log::{Source, sum};

/// Values of a cache line.
const LINE_VALUES: usize = 64 / size_of::<i64>();

/// Memory that runs are copied to, one behind the other and then from the front again.
pub struct Copying {
    to: Vec<i64>,
    /// The part of `to` that begins on a cache line, as the columns of a log do.
    start: usize,
    next: usize,
    run_rows: usize,
}

impl Copying {
    /// Room for `bytes`, and for one run of a source at least, filled in runs of at most `run_rows`.
    pub fn new(source: &Source, bytes: usize, run_rows: usize) -> Self {
        let run_rows = run_rows.clamp(1, source.rows());
        let values = (bytes / size_of::<i64>()).max(run_rows * source.columns().len());
        // Not zeros: those would all be the one page that the system has for them.
        let to = vec![1; values + LINE_VALUES];
        let start = to.as_ptr().align_offset(64).min(LINE_VALUES);
        Self { to, start, next: 0, run_rows }
    }

    /// Bytes that it goes through.
    pub fn bytes(&self) -> usize {
        (self.to.len() - LINE_VALUES) * size_of::<i64>()
    }

    /// Copies `rows` rows of the source, run by run.
    pub fn copy(&mut self, source: &Source, rows: u64) {
        self.each_run(source, rows, |_| {});
    }

    /// Copies `rows` rows, and adds up each run where it was copied to.
    pub fn copy_and_read(&mut self, source: &Source, rows: u64) -> i64 {
        let mut all = 0_i64;
        self.each_run(source, rows, |run| all = all.wrapping_add(sum(run)));
        all
    }

    fn each_run(&mut self, source: &Source, rows: u64, mut then: impl FnMut(&[i64])) {
        let end = self.to.len() - LINE_VALUES;
        let mut left = rows;
        while left > 0 {
            let run = self.run_rows.min(usize::try_from(left).unwrap_or(usize::MAX));
            let values = run * source.columns().len();
            if self.next + values > end {
                self.next = 0;
            }
            let from = self.start + self.next;
            let room = &mut self.to[from..from + values];
            for (to, column) in room.chunks_exact_mut(run).zip(source.columns()) {
                to.copy_from_slice(&column[..run]);
            }
            then(black_box(room));
            self.next += values;
            left -= run as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_copied_is_the_source() {
        let source = Source::new(8, 100);
        let mut copying = Copying::new(&source, 20_000, 64);
        let expected = 15 * source.sum(64) + source.sum(40);
        assert_eq!(copying.copy_and_read(&source, 1_000), expected);
        copying.copy(&source, 64);
        assert_eq!(copying.bytes(), 20_000);
    }

    #[test]
    fn there_is_room_for_a_run() {
        let source = Source::new(2, 100);
        let mut copying = Copying::new(&source, 1, 1_000);
        assert_eq!(copying.bytes(), 1_600);
        assert_eq!(copying.copy_and_read(&source, 100), source.sum(100));
    }
}
