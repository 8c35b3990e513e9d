//! The `k` largest or smallest rows of each key and window, by one column.
//!
//! State is bounded: at most `k` rows per key and window, whatever arrives. A row that ranks after all of them by its
//! ordering column alone is dropped after one comparison of two integers.
//!
//! TOP_K-1. Rows are ranked by the ordering column in the engine's order, then by the columns of the result,
//!     ascending, nulls first: the result does not depend on arrival. Rows that are equal in all of that are
//!     interchangeable.
//! TOP_K-2. A row without an ordering value is not ranked, and is not late for that.
//! TOP_K-3. Each ordering value has a code: an integer that is larger for a row that ranks before. Equal codes decide
//!     nothing where values are wider than 64 bits.
//! TOP_K-4. A window exists only while it has a row.
//!
//! - `state`: a window, its keys and their rows
//! - `codes`: the first criterion for ranking rows
//! - `portable`: state split, merged, written and read

mod codes;
mod portable;
mod state;

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical, Run, SlotId};
use penstock_progress::aligned::WindowNumber;
use penstock_progress::{Aligned, laws};
use penstock_types::{ComputeError, KeyGroups};

use crate::contract::{HeldRows, Late, SnapshotError, StateSnapshot, Stateful};
use crate::pick::Pick;
use crate::rows::placing::{Placed, Placing};
use crate::rows::results::{put_bounds, put_time};
use crate::rows::windows::WindowMap;
use crate::rows::{borrowed, gathered};
use codes::Codes;
use state::{ChosenRows, IncomingRows, TopWindow};

/// The slots of the operator.
#[derive(Clone, Debug)]
pub struct TopKPort {
    /// Event time, 64 bits wide.
    pub time: SlotId,
    /// The watermark just before each row; empty in runs that cannot hold a late row.
    pub watermark: SlotId,
    /// The keys.
    pub keys: Vec<SlotId>,
    /// The ordering column: one of `columns`, or a slot of its own.
    pub by: SlotId,
    /// The columns of the result besides the keys, and their storage.
    pub columns: Vec<(SlotId, Physical)>,
}

/// The specification of a top-k.
#[derive(Clone, Debug)]
pub struct TopKSpec {
    /// The windows.
    pub windows: Aligned,
    /// Number of rows per key and window.
    pub k: usize,
    /// True to keep the largest, false to keep the smallest.
    pub largest: bool,
    /// The slots of the columns.
    pub port: TopKPort,
    /// The storage of the keys.
    pub keys: Vec<Physical>,
    /// The types of the keys.
    pub key_types: Vec<DataType>,
    /// The types of the columns.
    pub column_types: Vec<DataType>,
    /// The storage of a window's bounds in the results: 64 bits, or 32 for days.
    pub bounds: Physical,
    /// True if the results end with a column of event time.
    pub emits_time: bool,
}

impl TopKSpec {
    /// Returns the ordering column among the kept ones: one of the result, or one more after them.
    fn by_column(&self) -> usize {
        let columns = &self.port.columns;
        columns.iter().position(|(slot, _)| *slot == self.port.by).unwrap_or(columns.len())
    }

    /// Returns true if the ordering column is kept for its order alone.
    fn keeps_order(&self) -> bool {
        self.by_column() == self.port.columns.len()
    }

    /// Returns the storage of the kept columns: those of the result, and the order as bytes if there is one more.
    fn kept(&self) -> impl Iterator<Item = Physical> + '_ {
        let columns = self.port.columns.iter().map(|(_, physical)| *physical);
        columns.chain(self.keeps_order().then_some(Physical::View))
    }
}

/// Keeps the first rows of each key and window, by one column.
///
/// The results have the bounds of the window, the keys, the rank from 1 on, the columns, and event time if requested.
pub struct TopK {
    spec: TopKSpec,
    /// The slots that are read: keys, columns, the ordering column.
    reads: Vec<SlotId>,
    placing: Placing,
    windows: WindowMap<TopWindow>,
    late: Late,
    placed: Placed,
    codes: Codes,
    arrivals: IncomingRows,
    chosen: ChosenRows,
}

impl TopK {
    /// Creates an operator without state.
    pub fn new(spec: TopKSpec) -> Self {
        let mut reads = spec.port.keys.clone();
        reads.extend(spec.port.columns.iter().map(|(slot, _)| *slot));
        reads.push(spec.port.by);
        Self {
            reads,
            placing: Placing::new(spec.windows),
            windows: WindowMap::new(),
            late: Late::default(),
            placed: Placed::default(),
            codes: Codes::default(),
            arrivals: IncomingRows::default(),
            chosen: ChosenRows::default(),
            spec,
        }
    }

    /// Consumes rows that go into the same windows: `columns` and `codes` are of all rows, `keys` of those that `rows`
    /// names.
    fn take(
        &mut self,
        numbers: std::ops::RangeInclusive<WindowNumber>,
        keys: &[Column<'_>],
        columns: &[Column<'_>],
        codes: &[u64],
        rows: Option<&[u32]>,
    ) -> Result<(), ComputeError> {
        let Self { spec, windows, arrivals, .. } = self;
        for number in numbers {
            let take = |window: &mut TopWindow| window.take(spec, keys, columns, codes, rows, arrivals);
            windows.update(number, || TopWindow::new(spec), take)?;
        }
        Ok(())
    }

    fn note_left(&mut self) {
        if laws::are_checked() && !self.has_output() {
            self.placing.note_left();
        }
    }

    /// Returns the first window, if it is closed.
    fn closed(&self) -> Option<WindowNumber> {
        self.windows.first().filter(|number| *number < self.placing.closed_below())
    }
}

impl Stateful for TopK {
    fn consume(&mut self, _port: usize, run: &mut Run) -> Result<(), ComputeError> {
        let mut placed = std::mem::take(&mut self.placed);
        self.late.add(self.placing.place(run, self.spec.port.time, self.spec.port.watermark, &mut placed));
        if !placed.spans.is_empty() && self.spec.k > 0 {
            run.ready(&self.reads);
            let columns: Vec<Column<'_>> = self.reads.iter().map(|&slot| run.column(slot)).collect();
            let (keys, columns) = columns.split_at(self.spec.keys.len());
            let (by, columns) = columns.split_last().expect("the ordering column is the last one");
            if by.valid.is_some_and(|mask| mask.contains(&0)) {
                placed.retain(run.len(), |row| by.is_valid(row)); // TOP_K-2
            }
            let mut codes = std::mem::take(&mut self.codes);
            codes.fill(*by, self.spec.largest, self.spec.keeps_order());
            let mut columns = columns.to_vec();
            columns.extend(self.spec.keeps_order().then(|| codes.order(*by)));
            for &span in &placed.spans {
                let rows = placed.rows(span);
                let cut: Option<Vec<ColumnBuf>> =
                    rows.map(|rows| keys.iter().map(|key| gathered(*key, rows)).collect());
                let cut: Option<Vec<Column<'_>>> = cut.as_deref().map(borrowed);
                let keys = cut.as_deref().unwrap_or(keys);
                self.take(span.first..=span.last, keys, &columns, codes.codes(), rows)?;
            }
            self.codes = codes;
        }
        self.placed = placed;
        Ok(())
    }

    fn late_rows(&self, _port: usize, run: &mut Run, rows: &mut Vec<u32>) {
        self.placing.late_rows(run, self.spec.port.time, self.spec.port.watermark, rows);
    }

    fn advance(&mut self, watermark: i64) {
        self.note_left();
        self.placing.advance(watermark);
    }

    fn close_open(&mut self) -> Option<i64> {
        // Windows that are closed already are being emitted.
        let last = self.windows.last().filter(|last| *last >= self.placing.closed_below())?;
        self.note_left();
        Some(self.placing.close_through(last))
    }

    fn finish(&mut self) {
        self.close_open();
    }

    fn has_output(&self) -> bool {
        self.closed().is_some() // TOP_K-4
    }

    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        let Some(number) = self.closed() else {
            out.begin_owned(0);
            return Ok(0);
        };
        self.placing.check_result(number);
        let (spec, chosen) = (&self.spec, &mut self.chosen);
        let done = self.windows.with_first(|_, window| window.choose(spec, room, chosen));
        let window = self.windows.get(number).expect("the first window exists");
        out.begin_owned(chosen.rows.len());
        put_bounds(out, spec.windows, number, spec.bounds);
        let mut keys: Vec<ColumnBuf> = spec.keys.iter().map(|key| out.scratch(*key)).collect();
        keys.iter_mut().for_each(ColumnBuf::clear_mask);
        window.keys().write_picked(Pick::List(&chosen.ids), &mut keys);
        let mut ranks = out.scratch(Physical::I64);
        ranks.refill::<i64>().extend_from_slice(&chosen.ranks);
        let mut slot = 2;
        for column in keys.into_iter().chain([ranks]) {
            out.put(slot, column);
            slot += 1;
        }
        for column in window.columns().iter().take(spec.port.columns.len()) {
            let mut gathered = out.scratch(column.values.physical());
            gathered.gather(*column, &chosen.rows);
            out.put(slot, gathered);
            slot += 1;
        }
        if spec.emits_time {
            put_time(out, slot, spec.windows, number);
        }
        if done == Some(true) {
            self.windows.remove(number);
        }
        Ok(self.chosen.rows.len())
    }

    fn late(&self) -> Late {
        self.late
    }

    fn keys(&self) -> usize {
        self.windows.iter().map(|(_, window)| window.len()).sum()
    }

    fn bytes(&self) -> usize {
        self.windows.bytes()
    }

    fn held(&self) -> HeldRows {
        HeldRows { rows: self.windows.rows(), sessions: 0 }
    }

    fn snapshot(&self) -> StateSnapshot {
        self.write_snapshot()
    }

    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        self.read_snapshot(snapshot)
    }

    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful> {
        Box::new(self.take_groups(groups))
    }

    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful> {
        Box::new(self.take_over(watermark))
    }

    fn merge(&mut self, other: Box<dyn Stateful>) {
        let other: Box<dyn std::any::Any> = other;
        let other = other.downcast::<Self>().expect("operators of one specification are merged");
        self.take_other(*other);
    }
}
