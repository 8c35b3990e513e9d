//! Logs of all sizes: rows per block, blocks per chunk and bytes per row against each other.
//!
//! A log takes full chunks only when its reader has fallen behind, so each one falls behind before it is measured.
//! Each round goes through all sizes, so that a slow moment of the machine does not fall on one of them alone.

use std::fmt::Write;
use std::time::Instant;

use penstock_memory::coordinator::CoordinatorOptions;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{Coordinator, MemoryKind};

use crate::log::{Link, Source};

/// Rows per block.
pub const BLOCK_ROWS: [usize; 8] = [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192];
/// Blocks per chunk.
pub const CHUNK_BLOCKS: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// Bytes per row.
pub const ROW_BYTES: [usize; 3] = [16, 64, 256];

/// Rounds: an odd number, so that the median is a run that happened.
const ROUNDS: usize = 5;
/// Bytes that pass a log each time.
const PASSED_BYTES: usize = 256 << 20;
/// Full chunks that a reader is behind before its log is measured.
const BEHIND_CHUNKS: usize = 3;
/// Room for [`BEHIND_CHUNKS`] of the largest, and for the smaller ones that a log has gone through on its way there.
const LOG_CAP_BYTES: usize = 2 << 30;

/// One size of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// 2 when writer and reader have a thread each, 1 when they take turns.
    pub threads: usize,
    /// Bytes per row.
    pub row_bytes: usize,
    /// Rows per block.
    pub block_rows: usize,
    /// Blocks per chunk.
    pub chunk_blocks: usize,
}

impl Size {
    /// All sizes.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for threads in [1, 2] {
            for row_bytes in ROW_BYTES {
                for block_rows in BLOCK_ROWS {
                    for chunk_blocks in CHUNK_BLOCKS {
                        all.push(Self { threads, row_bytes, block_rows, chunk_blocks });
                    }
                }
            }
        }
        all
    }

    /// Rows per second through a log of that size, when so many bytes pass it.
    fn measure(self, coordinator: &Coordinator, passed_bytes: usize) -> f64 {
        let columns = self.row_bytes / size_of::<i64>();
        let source = Source::new(columns, self.block_rows);
        let shape = ShapeOptions {
            block_rows: Some(self.block_rows),
            chunk_blocks: Some(self.chunk_blocks),
            ..ShapeOptions::default()
        };
        let mut link = Link::open(MemoryKind::Blocks, columns, shape, coordinator)
            .expect("the budget has room for a log");
        link.fall_behind(&source, (BEHIND_CHUNKS * self.chunk_blocks * self.block_rows) as u64);
        let rows = (passed_bytes / self.row_bytes) as u64;
        let mut pass = |rows| match self.threads {
            1 => link.pass_in_turns(&source, rows),
            _ => link.pass_between_threads(&source, rows),
        };
        pass(rows / 8);
        let begin = Instant::now();
        pass(rows);
        rows as f64 / begin.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Sizes, and the rows per second of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    speeds: Vec<(Size, f64)>,
}

impl Sweep {
    /// Measures all sizes. `progress` is told how many measurements are done and how many there are.
    pub fn run(progress: impl FnMut(usize, usize)) -> Self {
        Self::over(&Size::all(), ROUNDS, PASSED_BYTES, progress)
    }

    fn over(
        sizes: &[Size],
        rounds: usize,
        passed_bytes: usize,
        mut progress: impl FnMut(usize, usize),
    ) -> Self {
        let options = CoordinatorOptions { log_cap_bytes: LOG_CAP_BYTES, ..CoordinatorOptions::default() };
        let coordinator = Coordinator::new(options).expect("a thread can be started");
        let mut speeds = vec![Vec::with_capacity(rounds); sizes.len()];
        for round in 0..rounds {
            for (number, size) in sizes.iter().enumerate() {
                speeds[number].push(size.measure(&coordinator, passed_bytes));
                progress(round * sizes.len() + number + 1, rounds * sizes.len());
            }
        }
        let median = |speeds: &mut Vec<f64>| {
            speeds.sort_by(f64::total_cmp);
            speeds[speeds.len() / 2]
        };
        Self { speeds: sizes.iter().copied().zip(speeds.iter_mut().map(median)).collect() }
    }

    /// A line per size, under a line of names.
    pub fn to_csv(&self) -> String {
        let mut csv =
            String::from("threads,row_bytes,block_rows,chunk_blocks,rows_per_second,bytes_per_second\n");
        for (size, speed) in &self.speeds {
            let Size { threads, row_bytes, block_rows, chunk_blocks } = size;
            let bytes = speed * *row_bytes as f64;
            writeln!(csv, "{threads},{row_bytes},{block_rows},{chunk_blocks},{speed:.0},{bytes:.0}")
                .expect("a string takes whatever is written");
        }
        csv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_there_once() {
        let all = Size::all();
        assert_eq!(all.len(), 2 * ROW_BYTES.len() * BLOCK_ROWS.len() * CHUNK_BLOCKS.len());
        assert!(all.iter().enumerate().all(|(number, size)| !all[..number].contains(size)));
    }

    #[test]
    fn a_line_per_size() {
        let sizes: Vec<Size> =
            Size::all().into_iter().filter(|size| size.block_rows == 64 && size.chunk_blocks == 2).collect();
        let mut told = Vec::new();
        let sweep = Sweep::over(&sizes, 1, 64 << 10, |done, all| told.push((done, all)));
        assert_eq!(told.last(), Some(&(sizes.len(), sizes.len())));
        let csv = sweep.to_csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + sizes.len());
        assert!(lines[1].starts_with("1,16,64,2,"));
        assert!(lines.iter().all(|line| line.split(',').count() == 6));
    }
}
