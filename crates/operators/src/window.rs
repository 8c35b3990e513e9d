//! Tumbling windows with keyed aggregates.
//!
//! Each open window has its own keys and columnar state, so that a window that closes takes
//! everything it held with it. A run mostly lies in one window; one that does not is cut by window.
//!
//! W1. A row that belongs to a window which the row's own watermark had passed is late: it is
//!     counted and changes nothing. Whoever feeds the operator gives that watermark per row
//!     wherever a row could be late.
//! W2. Windows close in order of time. Closed windows are emitted through a cursor; nothing of them
//!     is copied ahead.
//! W3. `window_bytes` is what all windows hold, open or closed: each counts with the bytes that it
//!     had after its last update, and no longer once it is emitted.

use std::collections::{BTreeMap, VecDeque};

use penstock_memory::{Column, ColumnBuf, Physical, Run, SlotId};
use penstock_progress::Tumbling;
use penstock_progress::watermark::min_max;
use penstock_types::ComputeError;

use crate::aggregates::{Accumulator, AccumulatorFactory};
use crate::contract::Late;
use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::pick::Pick;

/// Where a window operator finds its columns.
#[derive(Clone, Debug)]
pub struct WindowColumns {
    /// Event time, 64 bits wide.
    pub time: SlotId,
    /// The watermark just before each row; empty in runs that cannot hold a late row.
    pub watermark: SlotId,
    /// The keys, and how they are stored.
    pub keys: Vec<(SlotId, Physical)>,
    /// The input of each aggregate; `None` counts rows.
    pub inputs: Vec<Option<SlotId>>,
    /// How the bounds of a window are stored in the results: as 64 bits, or as 32 for days.
    pub bounds: Physical,
}

struct Open {
    keys: KeyIndex,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// Its part of `window_bytes` (W3).
    counted_bytes: usize,
}

impl Open {
    /// Heap memory that the window holds.
    fn bytes(&self) -> usize {
        let of_accumulators: usize =
            self.accumulators.iter().map(|state| size_of_val(&**state) + state.bytes()).sum();
        self.keys.bytes() + heap_bytes(&self.accumulators) + of_accumulators
    }
}

struct Closed {
    index: i64,
    window: Open,
    emitted: usize,
}

/// Counts, sums and so on per key and tumbling window.
pub struct WindowAggregate {
    windows: Tumbling,
    columns: WindowColumns,
    factories: Vec<AccumulatorFactory>,
    open: BTreeMap<i64, Open>,
    closed: VecDeque<Closed>,
    window_bytes: usize,
    late: Late,
    read: Vec<SlotId>,
    ids: Vec<u32>,
    indices: Vec<i64>,
}

impl WindowAggregate {
    /// An operator without state.
    pub fn new(windows: Tumbling, columns: WindowColumns, factories: Vec<AccumulatorFactory>) -> Self {
        let mut read: Vec<SlotId> = columns.keys.iter().map(|(slot, _)| *slot).collect();
        read.extend(columns.inputs.iter().flatten());
        Self {
            windows,
            columns,
            factories,
            open: BTreeMap::new(),
            closed: VecDeque::new(),
            window_bytes: 0,
            late: Late::default(),
            read,
            ids: Vec::new(),
            indices: Vec::new(),
        }
    }

    /// The slots it reads in every run: keys and inputs.
    pub fn reads(&self) -> &[SlotId] {
        &self.read
    }

    /// Rows that came too late so far.
    pub fn late(&self) -> Late {
        self.late
    }

    /// Heap memory that the windows hold, open or closed and not yet emitted.
    ///
    /// Takes no longer with more keys or windows. Scratch, which is as long as a run, does not count.
    pub fn bytes(&self) -> usize {
        // The nodes of the map are at least half full.
        self.window_bytes
            + self.open.len() * size_of::<(i64, Open)>() * 2
            + self.closed.capacity() * size_of::<Closed>()
    }

    /// Takes a run in.
    pub fn consume(&mut self, run: &mut Run) {
        if run.holds(self.columns.watermark) {
            self.drop_late_by_row(run);
        } else if let Some(watermark) = run.watermark() {
            self.drop_late(run, watermark);
        }
        if run.is_empty() {
            return;
        }
        run.ready(&self.read);
        match self.common_window(run) {
            Some(index) => {
                let keys: Vec<Column<'_>> =
                    self.columns.keys.iter().map(|(slot, _)| run.column(*slot)).collect();
                let inputs: Vec<Option<Column<'_>>> =
                    self.columns.inputs.iter().map(|slot| slot.map(|slot| run.column(slot))).collect();
                self.update(index, &keys, &inputs, run.len());
            }
            None => self.consume_by_window(run),
        }
    }

    /// The window that all rows of the run lie in, if they do. Times are read only where the range that
    /// the source noted does not tell.
    fn common_window(&self, run: &mut Run) -> Option<i64> {
        let of_range = |(earliest, latest): (i64, i64)| {
            let index = self.windows.index(earliest);
            (index == self.windows.index(latest)).then_some(index)
        };
        run.range_of(self.columns.time).and_then(of_range).or_else(|| {
            run.ready(&[self.columns.time]);
            min_max(run.column(self.columns.time).fixed()).and_then(of_range)
        })
    }

    /// Takes late rows out of the run (W1), each judged by the watermark that stands beside it.
    fn drop_late_by_row(&mut self, run: &mut Run) {
        run.ready(&[self.columns.time, self.columns.watermark]);
        let mut on_time = run.selection();
        let times = run.column(self.columns.time).fixed::<i64>();
        let watermarks = run.column(self.columns.watermark).fixed::<i64>();
        for (row, (&time, &watermark)) in times.iter().zip(watermarks).enumerate() {
            if !self.note_late(time, watermark) {
                on_time.push(row as u32);
            }
        }
        run.select(on_time);
    }

    /// Takes late rows out of the run (W1), all judged by one watermark.
    fn drop_late(&mut self, run: &mut Run, watermark: i64) {
        run.ready(&[self.columns.time]);
        let times = run.column(self.columns.time).fixed::<i64>();
        let Some((earliest, latest)) = min_max(times) else { return };
        if earliest >= watermark {
            run.note_range(self.columns.time, (earliest, latest));
            return;
        }
        let mut on_time = run.selection();
        let times = run.column(self.columns.time).fixed::<i64>();
        for (row, &time) in times.iter().enumerate() {
            if !self.note_late(time, watermark) {
                on_time.push(row as u32);
            }
        }
        run.select(on_time);
    }

    /// Whether a row is late by that watermark; counts it if so.
    fn note_late(&mut self, time: i64, watermark: i64) -> bool {
        let late = time < watermark && self.windows.is_over(self.windows.index(time), watermark);
        if late {
            self.late.rows += 1;
            self.late.by = self.late.by.max(Some(watermark.abs_diff(time)));
        }
        late
    }

    fn consume_by_window(&mut self, run: &Run) {
        let mut indices = std::mem::take(&mut self.indices);
        self.windows.indices(run.column(self.columns.time).fixed(), &mut indices);
        let mut order: Vec<u32> = (0..run.len() as u32).collect();
        order.sort_by_key(|&row| indices[row as usize]); // stable: rows of a window stay in order of arrival
        let gather = |slot: SlotId, rows: &[u32]| {
            let column = run.column(slot);
            let mut gathered = ColumnBuf::new(column.values.physical());
            gathered.gather(column, rows);
            gathered
        };
        for rows in order.chunk_by(|&left, &right| indices[left as usize] == indices[right as usize]) {
            let keys: Vec<ColumnBuf> =
                self.columns.keys.iter().map(|(slot, _)| gather(*slot, rows)).collect();
            let inputs: Vec<Option<ColumnBuf>> =
                self.columns.inputs.iter().map(|slot| slot.map(|slot| gather(slot, rows))).collect();
            let keys: Vec<Column<'_>> = keys.iter().map(ColumnBuf::as_column).collect();
            let inputs: Vec<Option<Column<'_>>> =
                inputs.iter().map(|input| input.as_ref().map(ColumnBuf::as_column)).collect();
            self.update(indices[rows[0] as usize], &keys, &inputs, rows.len());
        }
        self.indices = indices;
    }

    fn update(&mut self, index: i64, keys: &[Column<'_>], inputs: &[Option<Column<'_>>], rows: usize) {
        let window = self.open.entry(index).or_insert_with(|| Open {
            keys: KeyIndex::new(&self.columns.keys.iter().map(|(_, physical)| *physical).collect::<Vec<_>>()),
            accumulators: self.factories.iter().map(AccumulatorFactory::make).collect(),
            counted_bytes: 0,
        });
        window.keys.insert(keys, rows, &mut self.ids);
        for (accumulator, input) in window.accumulators.iter_mut().zip(inputs) {
            accumulator.update(&self.ids, window.keys.len(), *input, None);
        }
        let bytes = window.bytes();
        self.window_bytes = self.window_bytes - window.counted_bytes + bytes;
        window.counted_bytes = bytes;
    }

    /// Closes the windows that end at or before the watermark.
    pub fn advance(&mut self, watermark: i64) {
        while let Some(entry) = self.open.first_entry() {
            if !self.windows.is_over(*entry.key(), watermark) {
                break;
            }
            let (index, window) = entry.remove_entry();
            self.closed.push_back(Closed { index, window, emitted: 0 });
        }
    }

    /// Closes every window: the input is over.
    pub fn finish(&mut self) {
        while let Some((index, window)) = self.open.pop_first() {
            self.closed.push_back(Closed { index, window, emitted: 0 });
        }
    }

    /// Whether a closed window has rows that were not emitted.
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Begins a run in `out` with up to `room` result rows: start, end, keys and aggregates fill the
    /// first slots. The number of rows; 0 when no closed window is left.
    pub fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        let Some(closed) = self.closed.front_mut() else {
            return Ok(0);
        };
        let (from, to) = (closed.emitted, closed.window.keys.len().min(closed.emitted + room));
        let rows = to - from;
        out.begin_owned(rows);
        let (start, end) = self.windows.bounds(closed.index);
        for (slot, bound) in [(0, start), (1, end)] {
            let mut column = out.scratch(self.columns.bounds);
            match self.columns.bounds {
                Physical::I32 => {
                    let bound = bound.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                    column.refill::<i32>().resize(rows, bound);
                }
                _ => column.refill::<i64>().resize(rows, bound),
            }
            out.put(slot, column);
        }
        let mut keys: Vec<ColumnBuf> =
            self.columns.keys.iter().map(|(_, physical)| out.scratch(*physical)).collect();
        keys.iter_mut().for_each(ColumnBuf::clear_mask);
        closed.window.keys.write(from, to, &mut keys);
        let first_aggregate = 2 + keys.len();
        for (number, column) in keys.into_iter().enumerate() {
            out.put(2 + number, column);
        }
        for (number, accumulator) in closed.window.accumulators.iter().enumerate() {
            let output = self.factories[number].output();
            let physical = Physical::of(output).expect("types are checked when the plan is built");
            let mut column = out.scratch(physical);
            accumulator.write(Pick::Range(from, to), &mut column)?;
            out.put(first_aggregate + number, column);
        }
        closed.emitted = to;
        if to == closed.window.keys.len() {
            self.window_bytes -= closed.window.counted_bytes;
            self.closed.pop_front();
            if self.closed.is_empty() {
                // Many windows may have closed at once. The room for them goes with the last.
                self.closed = VecDeque::new();
            }
        }
        Ok(rows)
    }
}
