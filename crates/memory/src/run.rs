//! A run: rows that pass an operator chain together.
//!
//! Columns live in *slots*, numbered when the plan is compiled. A filter does not move rows. It produces a selection,
//! and a column is gathered only when an operator reads it afterwards:
//!
//! RUN-1. A slot has a *level*: the number of selections in force when it was filled.
//! RUN-2. `selections[level]` maps a column of that level to the rows still present; the present level is
//!     `selections.len()`, whose columns are read directly.
//! RUN-3. `ready` brings a slot to the present level; `column` may be called for such slots only.

use arrow_array::RecordBatch;

use crate::batch::{Batch, BatchError, LoadRows, SourceColumns};
use crate::column::{Column, ColumnBuf, Physical};
use crate::log::{Lease, SelectedColumn};

/// Number of a slot.
pub type SlotId = usize;

#[derive(Clone, Copy, PartialEq)]
enum SlotContent {
    Nothing,
    /// Column of the batch: values borrowed from it, mask (if any) in `buf`.
    Borrowed(usize),
    /// Column of the batch that was not read yet in this run.
    Unread(usize),
    /// Column of the lease that was not read yet in this run.
    Offered(usize),
    /// Column of the lease, and whether any of its rows is null.
    Leased(usize, bool),
    Owned,
}

struct RunSlot {
    held: SlotContent,
    level: usize,
    buf: ColumnBuf,
}

/// The rows of one run, and the scratch that serves all runs of a chain.
#[derive(Default)]
pub struct Run {
    batch: Option<Batch>,
    lease: Option<Lease>,
    start: usize,
    base_len: usize,
    slots: Vec<RunSlot>,
    selections: Vec<Vec<u32>>,
    spare_selections: Vec<Vec<u32>>,
    spare: Vec<ColumnBuf>,
    len: usize,
    range: Option<(SlotId, (i64, i64))>,
    watermark: Option<i64>,
}

impl Run {
    /// Creates a run without slots.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a slot for columns of that storage.
    pub fn add_slot(&mut self, physical: Physical) -> SlotId {
        self.slots.push(RunSlot { held: SlotContent::Nothing, level: 0, buf: ColumnBuf::new(physical) });
        self.slots.len() - 1
    }

    /// Takes a batch. Its columns fill the first slots, in the order of the schema, when runs begin.
    pub fn open(&mut self, columns: &SourceColumns, batch: &RecordBatch) -> Result<(), BatchError> {
        self.batch = Some(columns.open(batch)?);
        Ok(())
    }

    /// Returns the batch that runs are cut from.
    ///
    /// # Panics
    /// Before the first `open`.
    pub fn batch(&self) -> &Batch {
        self.batch.as_ref().expect("runs are cut from a batch that was opened")
    }

    /// Drops the batch and the lease, and with them the memory they borrowed.
    pub fn close(&mut self) {
        self.clear(0);
        self.batch = None;
    }

    /// Begins a run over the rows `start..start + len` of the batch.
    pub fn begin(&mut self, columns: &SourceColumns, start: usize, len: usize) {
        self.clear(len);
        self.start = start;
        for (column, slot) in self.slots.iter_mut().enumerate().take(columns.schema().fields().len()) {
            slot.held =
                if columns.is_read(column) { SlotContent::Unread(column) } else { SlotContent::Nothing };
        }
    }

    /// Begins a run over the rows of a lease; its columns fill these slots, in the order of the log's layout.
    pub fn begin_leased(&mut self, lease: Lease, slots: &[SlotId]) {
        self.clear(lease.rows());
        self.lease = Some(lease);
        for (column, &slot) in slots.iter().enumerate() {
            self.slots[slot].held = SlotContent::Offered(column);
        }
    }

    /// Begins a run of `len` rows whose columns will be put into slots.
    pub fn begin_owned(&mut self, len: usize) {
        self.clear(len);
    }

    fn clear(&mut self, len: usize) {
        self.spare_selections.append(&mut self.selections);
        for slot in &mut self.slots {
            slot.held = SlotContent::Nothing;
            slot.level = 0;
            slot.buf.forget_payloads();
        }
        // Columns that were gathered from are scratch by now, and must keep no payload alive either.
        self.spare.iter_mut().for_each(ColumnBuf::forget_payloads);
        self.lease = None;
        self.base_len = len;
        self.len = len;
        self.range = None;
        self.watermark = None;
    }

    /// Stores the watermark just before every row of this run; set where some rows may lie below it.
    pub fn note_watermark(&mut self, watermark: i64) {
        self.watermark = Some(watermark);
    }

    /// Returns the watermark just before every row, when one was set.
    pub fn watermark(&self) -> Option<i64> {
        self.watermark
    }

    /// Stores a range, both ends included, that holds every value of the slot in this run.
    pub fn note_range(&mut self, slot: SlotId, range: (i64, i64)) {
        self.range = Some((slot, range));
    }

    /// Returns a range that holds every value of the slot, when one was set. Filters do not widen it.
    pub fn range_of(&self, slot: SlotId) -> Option<(i64, i64)> {
        self.range.filter(|(noted, _)| *noted == slot).map(|(_, range)| range)
    }

    /// Returns the number of rows still present.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no row is present.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the slot holds a column in this run.
    pub fn holds(&self, slot: SlotId) -> bool {
        self.slots[slot].held != SlotContent::Nothing
    }

    /// Makes the columns readable: converts them where the batch has another form, and gathers them where filters have
    /// passed since.
    pub fn ready(&mut self, slots: &[SlotId]) {
        for &slot in slots {
            self.ready_one(slot);
        }
    }

    /// Converts a column that cannot be read directly; leaves the others.
    fn settle_one(&mut self, slot: SlotId) {
        let present = self.selections.len();
        let slot = &mut self.slots[slot];
        match slot.held {
            SlotContent::Unread(column) => {
                let batch = self.batch.as_ref().expect("an unread column belongs to an open batch");
                if batch.borrow(column, self.start, self.base_len).is_some() {
                    batch.load_mask(column, self.start, self.base_len, &mut slot.buf);
                    slot.held = SlotContent::Borrowed(column);
                } else {
                    let rows = self.selections.first().map_or(LoadRows::All, |rows| LoadRows::Selected(rows));
                    batch.load(column, self.start, self.base_len, rows, &mut slot.buf);
                    slot.held = SlotContent::Owned;
                    slot.level = present;
                }
            }
            SlotContent::Offered(column) => {
                let lease = self.lease.as_ref().expect("an offered column belongs to a lease");
                slot.held = SlotContent::Leased(column, lease.has_nulls(column));
            }
            SlotContent::Nothing
            | SlotContent::Borrowed(_)
            | SlotContent::Leased(..)
            | SlotContent::Owned => {}
        }
    }

    fn ready_one(&mut self, slot: SlotId) {
        let present = self.selections.len();
        if let SlotContent::Unread(column) = self.slots[slot].held
            && present > 0
        {
            // Loads only the present rows, without the mask of the others.
            let batch = self.batch.as_ref().expect("an unread column belongs to an open batch");
            let slot = &mut self.slots[slot];
            let rows = LoadRows::Selected(&self.selections[0]);
            batch.load(column, self.start, self.base_len, rows, &mut slot.buf);
            (slot.held, slot.level) = (SlotContent::Owned, present);
            return;
        }
        self.settle_one(slot);
        if self.slots[slot].level < present {
            let mut gathered = take_spare(&mut self.spare, self.slots[slot].buf.physical());
            gathered.gather(self.held(slot), &self.selections[self.slots[slot].level]);
            let slot = &mut self.slots[slot];
            self.spare.push(std::mem::replace(&mut slot.buf, gathered));
            slot.held = SlotContent::Owned;
            slot.level = present;
        }
    }

    /// Returns the column in a slot, at the slot's own level.
    fn held(&self, slot: SlotId) -> Column<'_> {
        let slot = &self.slots[slot];
        match slot.held {
            SlotContent::Borrowed(column) => Column {
                values: self
                    .batch()
                    .borrow(column, self.start, self.base_len)
                    .expect("only columns that can be borrowed are"),
                valid: slot.buf.mask(),
            },
            SlotContent::Leased(column, nulls) => {
                let lease = self.lease.as_ref().expect("a leased column belongs to a lease");
                let column = lease.column(column);
                Column { values: column.values, valid: column.valid.filter(|_| nulls) }
            }
            SlotContent::Owned => slot.buf.as_column(),
            SlotContent::Nothing | SlotContent::Unread(_) | SlotContent::Offered(_) => {
                panic!("RUN-3: a slot is made ready before it is read")
            }
        }
    }

    /// Returns the column in a slot that was made ready (RUN-3).
    pub fn column(&self, slot: SlotId) -> Column<'_> {
        debug_assert!(
            self.slots[slot].level == self.selections.len(),
            "RUN-3: a slot is made ready before it is read"
        );
        self.held(slot)
    }

    /// Makes the columns readable through [`Run::piece`]: converts them where the batch has another form, but leaves
    /// the gathering to the caller that copies them.
    pub fn settle(&mut self, slots: &[SlotId]) {
        for &slot in slots {
            self.settle_one(slot);
        }
    }

    /// Returns the column in a settled slot, and which of its rows are present.
    pub fn piece(&self, slot: SlotId) -> SelectedColumn<'_> {
        let rows = self.selections.get(self.slots[slot].level).map(Vec::as_slice);
        SelectedColumn { column: self.held(slot), rows }
    }

    /// Puts a column of as many rows as are present into a slot; keeps the old buffer as scratch.
    pub fn put(&mut self, slot: SlotId, column: ColumnBuf) {
        let slot = &mut self.slots[slot];
        debug_assert_eq!(slot.buf.physical(), column.physical());
        debug_assert_eq!(column.as_column().values.len(), self.len);
        self.spare.push(std::mem::replace(&mut slot.buf, column));
        slot.held = SlotContent::Owned;
        slot.level = self.selections.len();
    }

    /// Returns scratch of that storage, to be filled and passed to [`Run::put`] or [`Run::give_back`].
    pub fn scratch(&mut self, physical: Physical) -> ColumnBuf {
        take_spare(&mut self.spare, physical)
    }

    /// Takes scratch back.
    pub fn give_back(&mut self, column: ColumnBuf) {
        self.spare.push(column);
    }

    /// Takes the scratch of all runs out, for evaluation beside borrowed columns.
    pub fn take_scratch(&mut self) -> Vec<ColumnBuf> {
        std::mem::take(&mut self.spare)
    }

    /// Puts back the scratch that [`Run::take_scratch`] took.
    pub fn return_scratch(&mut self, scratch: Vec<ColumnBuf>) {
        let lately = std::mem::replace(&mut self.spare, scratch);
        self.spare.extend(lately);
    }

    /// Returns an empty selection to be filled with ascending row numbers for [`Run::select`].
    pub fn selection(&mut self) -> Vec<u32> {
        let mut rows = self.spare_selections.pop().unwrap_or_default();
        rows.clear();
        rows
    }

    /// Keeps only the rows that `rows` names, in ascending order.
    pub fn select(&mut self, rows: Vec<u32>) {
        debug_assert!(rows.is_sorted() && rows.last().is_none_or(|&last| (last as usize) < self.len));
        if rows.len() == self.len {
            self.spare_selections.push(rows);
            return;
        }
        for earlier in &mut self.selections {
            // Ascending rows: each is read before its destination is written.
            for (to, &from) in rows.iter().enumerate() {
                earlier[to] = earlier[from as usize];
            }
            earlier.truncate(rows.len());
        }
        self.len = rows.len();
        self.selections.push(rows);
    }
}

/// Takes scratch of that storage from `spare`, or makes it.
pub fn take_spare(spare: &mut Vec<ColumnBuf>, physical: Physical) -> ColumnBuf {
    match spare.iter().position(|column| column.physical() == physical) {
        Some(found) => spare.swap_remove(found),
        None => ColumnBuf::new(physical),
    }
}
