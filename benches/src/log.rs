//! Rows of 64-bit integers through what stands between two tasks: a block log or a row queue.
//!
//! The rows of a [`Source`] are written again and again, from the first one on: an operator too finds the run that
//! it hands on in its cache. How many went in and what they add up to is known without adding, so a [`Link`] can
//! check what came out and time little else.

use std::hint::spin_loop;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use penstock_memory::edge::{EdgeNext, EdgeRows};
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    Column, ColumnBuf, ColumnKind, Coordinator, EdgeReader, EdgeWriter, Layout, LogOptions, MemoryKind,
    OpenError, Physical, SelectedColumn, Values,
};
use penstock_queue::gate::Gate;

/// Looks in vain before a side goes to sleep.
const SPINS: u32 = 200;
/// Nobody sleeps for long without a wake-up: one that takes this long was lost.
const LOST: Duration = Duration::from_secs(10);

/// Rows to be written.
pub struct Source {
    columns: Vec<Vec<i64>>,
    /// What all values of the first so many rows add up to.
    sums: Vec<i64>,
}

impl Source {
    /// So many rows of so many columns.
    pub fn new(columns: usize, rows: usize) -> Self {
        let value = |column: usize, row: usize| ((row * 31 + column * 7) % 1_000) as i64;
        let columns: Vec<Vec<i64>> =
            (0..columns).map(|column| (0..rows).map(|row| value(column, row)).collect()).collect();
        let mut sums = vec![0];
        for row in 0..rows {
            sums.push(sums[row] + columns.iter().map(|values| values[row]).sum::<i64>());
        }
        Self { columns, sums }
    }

    /// The columns.
    pub fn columns(&self) -> &[Vec<i64>] {
        &self.columns
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.sums.len() - 1
    }

    /// What all values of the first `rows` rows add up to.
    pub fn sum(&self, rows: usize) -> i64 {
        self.sums[rows]
    }

    /// The columns, to be written whole.
    pub fn pieces(&self) -> Vec<SelectedColumn<'_>> {
        let column = |values| Column { values: Values::I64(values), valid: None };
        self.columns.iter().map(|values| SelectedColumn { column: column(values), rows: None }).collect()
    }
}

/// What went through: how many rows in how many runs, and what their values add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Rows.
    pub rows: u64,
    /// Runs that they were read in.
    pub runs: u64,
    /// The sum of the columns that were read.
    pub sum: i64,
}

impl Passed {
    fn add(&mut self, rows: usize, sum: i64) {
        self.rows += rows as u64;
        self.runs += 1;
        self.sum = self.sum.wrapping_add(sum);
    }
}

/// What all values add up to.
pub fn sum(values: &[i64]) -> i64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

/// Looks again a few times before it sleeps, and anew after each success.
struct Patience<'a> {
    gate: &'a Gate,
    looks: u32,
}

impl<'a> Patience<'a> {
    fn new(gate: &'a Gate) -> Self {
        Self { gate, looks: 0 }
    }

    fn found(&mut self) {
        self.looks = 0;
    }

    fn wait(&mut self) {
        self.looks += 1;
        if self.looks <= SPINS {
            spin_loop();
        } else {
            assert!(self.gate.wait(LOST), "a side that waits is woken");
        }
    }
}

struct Writing {
    writer: EdgeWriter,
    room: Arc<Gate>,
}

impl Writing {
    /// Writes a run of at most `most` rows; the number, which is 0 when there is no room.
    fn run(&mut self, pieces: &[SelectedColumn<'_>], source: &Source, most: u64) -> usize {
        let rows = self.writer.room().min(source.rows()).min(usize::try_from(most).unwrap_or(usize::MAX));
        if rows > 0 {
            self.writer.append(pieces, 0, rows);
        }
        rows
    }

    fn write(&mut self, source: &Source, rows: u64) -> Passed {
        let room = Arc::clone(&self.room);
        let (pieces, mut patience) = (source.pieces(), Patience::new(&room));
        let mut passed = Passed::default();
        while passed.rows < rows {
            match self.run(&pieces, source, rows - passed.rows) {
                0 => patience.wait(),
                run => {
                    patience.found();
                    passed.add(run, source.sum(run));
                }
            }
        }
        passed
    }
}

struct Reading {
    reader: EdgeReader,
    rows: Arc<Gate>,
    /// How many columns of a block are read: the first ones. Of a row, all are.
    columns: usize,
    row: Vec<ColumnBuf>,
}

impl Reading {
    /// Reads what there is, run by run, into `passed`. Whether there was anything.
    fn drain(&mut self, passed: &mut Passed) -> bool {
        let before = passed.rows;
        while let EdgeNext::Rows(rows) = self.reader.peek(usize::MAX) {
            let count = rows.len();
            let sum = match rows {
                EdgeRows::Lease(lease) => (0..self.columns)
                    .fold(0_i64, |all, column| all.wrapping_add(sum(lease.column(column).fixed()))),
                EdgeRows::Rows(rows) => {
                    self.row.iter_mut().enumerate().fold(0_i64, |all, (column, scratch)| {
                        rows.fill(column, scratch);
                        all.wrapping_add(sum(scratch.as_column().fixed()))
                    })
                }
            };
            self.reader.advance(count);
            passed.add(count, sum);
        }
        passed.rows > before
    }

    fn read(&mut self, rows: u64) -> Passed {
        let gate = Arc::clone(&self.rows);
        let mut patience = Patience::new(&gate);
        let mut passed = Passed::default();
        while passed.rows < rows {
            if self.drain(&mut passed) { patience.found() } else { patience.wait() }
        }
        passed
    }
}

/// A writer and a reader, empty between two calls.
pub struct Link {
    writing: Writing,
    reading: Reading,
}

impl Link {
    /// A link of that kind for rows of so many columns, all of which are read.
    pub fn open(
        kind: MemoryKind,
        columns: usize,
        shape: ShapeOptions,
        coordinator: &Coordinator,
    ) -> Result<Self, OpenError> {
        let layout = Layout::new(vec![ColumnKind { physical: Physical::I64, nullable: false }; columns]);
        let options = LogOptions { shape, ..LogOptions::default() };
        let (room, rows) = (Arc::new(Gate::new()), Arc::new(Gate::new()));
        let mut writer = EdgeWriter::new(kind, layout, &options, coordinator, Arc::clone(&room) as _)?;
        let reader = writer.join(Arc::clone(&rows) as _)?;
        let row = vec![ColumnBuf::new(Physical::I64); columns];
        Ok(Self { writing: Writing { writer, room }, reading: Reading { reader, rows, columns, row } })
    }

    /// Only so many columns of each block are read.
    #[must_use]
    pub fn reading_columns(mut self, columns: usize) -> Self {
        self.reading.columns = columns.min(self.reading.columns);
        self
    }

    /// Sends rows from this thread to another one.
    ///
    /// # Panics
    /// When something else comes out than went in.
    pub fn pass_between_threads(&mut self, source: &Source, rows: u64) -> Passed {
        let Self { writing, reading } = self;
        let (written, read) = thread::scope(|scope| {
            let read = scope.spawn(|| reading.read(rows));
            (writing.write(source, rows), read.join().expect("the reader does not panic"))
        });
        self.checked(source, written, read)
    }

    /// Writes and reads in turns, run by run.
    ///
    /// # Panics
    /// When something else comes out than went in.
    pub fn pass_in_turns(&mut self, source: &Source, rows: u64) -> Passed {
        let room = Arc::clone(&self.writing.room);
        let (pieces, mut patience) = (source.pieces(), Patience::new(&room));
        let (mut written, mut read) = (Passed::default(), Passed::default());
        while written.rows < rows {
            match self.writing.run(&pieces, source, rows - written.rows) {
                0 => patience.wait(),
                run => {
                    patience.found();
                    written.add(run, source.sum(run));
                    self.reading.drain(&mut read);
                }
            }
        }
        self.checked(source, written, read)
    }

    /// Writes up to so many rows before anything is read, so that a log grows to what a reader far behind makes of
    /// it, and then reads them. The rows: fewer when there is no room.
    pub fn fall_behind(&mut self, source: &Source, most: u64) -> u64 {
        let (pieces, mut written) = (source.pieces(), Passed::default());
        while written.rows < most {
            let mut run = self.writing.run(&pieces, source, most - written.rows);
            // Memory that was ordered may be on its way: without news for a while, there is none.
            while run == 0 && self.writing.room.wait(Duration::from_millis(50)) {
                run = self.writing.run(&pieces, source, most - written.rows);
            }
            if run == 0 {
                break;
            }
            written.add(run, source.sum(run));
        }
        let mut read = Passed::default();
        self.reading.drain(&mut read);
        self.checked(source, written, read).rows
    }

    fn checked(&self, source: &Source, written: Passed, read: Passed) -> Passed {
        assert_eq!(written.rows, read.rows, "every row that went in comes out");
        if self.reading.columns == source.columns().len() {
            assert_eq!(written.sum, read.sum, "rows come out as they went in");
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use penstock_memory::coordinator::CoordinatorOptions;

    use super::*;

    const SHAPES: [ShapeOptions; 3] = [
        ShapeOptions { block_rows: None, chunk_blocks: None, full_chunks: false },
        ShapeOptions { block_rows: Some(64), chunk_blocks: Some(2), full_chunks: false },
        ShapeOptions { block_rows: Some(7), chunk_blocks: Some(1), full_chunks: false },
    ];

    fn coordinator() -> Coordinator {
        let options = CoordinatorOptions {
            budget_bytes: 8 << 20,
            log_cap_bytes: 1 << 20,
            ..CoordinatorOptions::default()
        };
        Coordinator::new(options).unwrap()
    }

    /// Calls `pass` for every kind and shape, some widths and some sources.
    fn for_each_link(pass: impl Fn(&mut Link, &Source)) {
        for (_, kind) in MemoryKind::NAMES {
            for shape in SHAPES {
                for columns in [1, 8] {
                    let mut link = Link::open(kind, columns, shape, &coordinator()).unwrap();
                    for source_rows in [1, 100, 3_000] {
                        pass(&mut link, &Source::new(columns, source_rows));
                    }
                }
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_rows() {
        let source = Source::new(3, 50);
        assert_eq!((source.rows(), source.sum(0)), (50, 0));
        let first: i64 = source.columns().iter().map(|values| values[0] + values[1]).sum();
        assert_eq!(source.sum(2), first);
    }

    #[test]
    fn every_row_comes_out_on_another_thread() {
        for_each_link(|link, source| assert_eq!(link.pass_between_threads(source, 20_000).rows, 20_000));
    }

    #[test]
    fn every_row_comes_out_in_turns() {
        for_each_link(|link, source| assert_eq!(link.pass_in_turns(source, 20_000).rows, 20_000));
    }

    #[test]
    fn every_row_comes_out_of_a_link_that_fell_behind() {
        for_each_link(|link, source| assert_eq!(link.fall_behind(source, 400), 400));
    }

    #[test]
    fn a_link_falls_behind_no_further_than_its_cap() {
        let source = Source::new(8, 1_000);
        let mut link = Link::open(MemoryKind::Blocks, 8, ShapeOptions::default(), &coordinator()).unwrap();
        let rows = link.fall_behind(&source, 1 << 20);
        assert!(rows > 1_000 && rows * 64 <= 1 << 20, "{rows} rows");
        assert_eq!(link.pass_in_turns(&source, 5_000).rows, 5_000);
    }

    #[test]
    fn the_first_columns_can_be_read_alone() {
        let source = Source::new(8, 1_000);
        let link = Link::open(MemoryKind::Blocks, 8, ShapeOptions::default(), &coordinator()).unwrap();
        let passed = link.reading_columns(1).pass_in_turns(&source, 1_000);
        let first = passed.sum;
        assert_eq!(passed.rows, 1_000);
        assert!(first > 0 && first < source.sum(1_000));
    }
}
