//! State split, merged, written and read.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use penstock_memory::ColumnBuf;
use penstock_progress::law;
use penstock_types::KeyGroups;

use super::{NOTHING, Session, Sessions};
use crate::aggregates::state::{numbers, read};
use crate::contract::{Late, SnapshotError, StateSnapshot};
use crate::keys::MISSING;
use crate::keys::groups::groups;
use crate::pick::Pick;
use crate::windows::keyed::{Accumulators, borrowed, key_columns, load_keys, save_keys};
use crate::windows::snapshot::{SnapshotReader, SnapshotWriter};

const OPERATOR: &str = "sessions";

impl Sessions {
    fn live_slots(&self) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|&slot| self.slots[slot as usize].live).collect()
    }

    /// Returns the key of each slot, one column per key column.
    fn keys_of(&self, slots: &[u32]) -> Vec<ColumnBuf> {
        let ids: Vec<u32> = slots.iter().map(|&slot| self.slots[slot as usize].key).collect();
        let mut columns = key_columns(&self.shape);
        self.keys.write_picked(Pick::List(&ids), &mut columns);
        columns
    }

    /// Adds sessions with these keys, times and states. `wanted` is the slot of each in `states`.
    fn add(
        &mut self,
        keys: &[ColumnBuf],
        times: &[(i64, i64)],
        wanted: &[u32],
        states: &Accumulators,
        room: usize,
    ) {
        let mut ids = Vec::new();
        self.keys.insert(&borrowed(keys), times.len(), &mut ids);
        self.heads.resize(self.keys.len(), NOTHING);
        let mut gone = Vec::new();
        let mut slots: Vec<u32> = ids
            .iter()
            .zip(times)
            .map(|(&key, &(first, last))| self.place(key, first, last, &mut gone))
            .collect();
        self.redirect(&gone, &mut slots);
        let mut to = vec![MISSING; room];
        wanted.iter().zip(slots).for_each(|(&from, slot)| to[from as usize] = slot);
        self.states.merge(states, &to, self.slots.len());
    }

    fn add_slots(&mut self, other: &Self, slots: &[u32]) {
        let times = |slot: &u32| {
            let Session { first, last, .. } = other.slots[*slot as usize];
            (first, last)
        };
        let times: Vec<(i64, i64)> = slots.iter().map(times).collect();
        self.add(&other.keys_of(slots), &times, slots, &other.states, other.slots.len());
    }

    /// Copies the sessions for which `goes` holds into an operator with the same watermark.
    pub(super) fn part(&self, goes: impl Fn(u32) -> bool) -> Self {
        let mut part = Self::new(Arc::clone(&self.shape), self.gap);
        (part.closed, part.watermark, part.late) = (self.closed, self.watermark, self.late);
        part.left = self.left;
        let slots: Vec<u32> = self.live_slots().into_iter().filter(|&slot| goes(slot)).collect();
        part.add_slots(self, &slots);
        part.settle();
        part
    }

    /// Splits off the keys of these groups.
    pub(super) fn take_groups(&mut self, wanted: KeyGroups) -> Self {
        let mut columns = key_columns(&self.shape);
        self.keys.write_picked(Pick::Range(0, self.keys.len()), &mut columns);
        let mut of_keys = Vec::new();
        groups(&borrowed(&columns), &self.shape.spec.key_types, self.keys.len(), &mut of_keys);
        let goes = |slot: u32| wanted.contains(of_keys[self.slots[slot as usize].key as usize]);
        let (mut taken, rest) = (self.part(goes), self.part(|slot| !goes(slot)));
        taken.late = Late::default();
        *self = rest;
        taken
    }

    /// Splits off what the watermark closes, and every session that may have to be combined with a closed one of
    /// another operator: those that began a gap before the watermark, or earlier.
    pub(super) fn take_over(&mut self, watermark: i64) -> Self {
        law!(watermark >= self.watermark, "sessions go back from {} to {watermark}", self.watermark); // CONTRACT-4
        let from = i128::from(watermark) - i128::from(self.gap);
        let goes = |slot: u32| i128::from(self.slots[slot as usize].first) <= from;
        let (mut taken, rest) = (self.part(goes), self.part(|slot| !goes(slot)));
        let new = Self::new(Arc::clone(&self.shape), self.gap);
        (taken.closed, taken.watermark, taken.late) = (new.closed, new.watermark, new.late);
        taken.left = new.left;
        *self = rest;
        self.watermark = self.watermark.max(watermark);
        self.close_until(i128::from(watermark));
        taken
    }

    /// Merges the state of another operator.
    pub(super) fn take_other(&mut self, other: Self) {
        self.late.rows += other.late.rows;
        self.late.by = self.late.by.max(other.late.by);
        self.watermark = self.watermark.max(other.watermark);
        self.add_slots(&other, &other.live_slots());
        self.close_until(other.closed);
    }

    pub(super) fn write_snapshot(&self) -> StateSnapshot {
        let mut writer = SnapshotWriter::new(&self.shape, OPERATOR, &fields());
        writer.note("closed", self.closed);
        writer.note("watermark", self.watermark);
        writer.note_late(self.late);
        // One slot per session, without gaps.
        let dense = self.part(|_| true);
        let slots: Vec<u32> = (0..dense.slots.len() as u32).collect();
        let mut columns: Vec<ArrayRef> = vec![
            numbers::<Int64Type>(dense.slots.iter().map(|session| session.first)),
            numbers::<Int64Type>(dense.slots.iter().map(|session| session.last)),
        ];
        columns.extend(save_keys(&self.shape, &dense.keys_of(&slots)));
        columns.extend(dense.states.save());
        writer.add(columns);
        writer.finish()
    }

    pub(super) fn read_snapshot(&self, snapshot: &StateSnapshot) -> Result<Self, SnapshotError> {
        let reader = SnapshotReader::new(&self.shape, OPERATOR, &fields(), snapshot)?;
        let mut sessions = Self::new(Arc::clone(&self.shape), self.gap);
        sessions.closed = reader.note("closed")?;
        sessions.watermark = reader.note("watermark")?;
        sessions.late = reader.late()?;
        for table in reader.tables() {
            let (firsts, lasts) = (read::<Int64Type>(&table[0]), read::<Int64Type>(&table[1]));
            let times: Vec<(i64, i64)> = firsts.iter().copied().zip(lasts.iter().copied()).collect();
            if let Some((first, last)) = times.iter().find(|(first, last)| first > last) {
                return Err(reader.broken(format!("a session lasts from {first} to {last}")));
            }
            let (keys, states) = table[2..].split_at(self.shape.spec.keys.len());
            let keys = load_keys(&self.shape, keys).map_err(|reason| reader.broken(reason))?;
            let states = Accumulators::load(&self.shape, states).map_err(|reason| reader.broken(reason))?;
            let slots: Vec<u32> = (0..times.len() as u32).collect();
            sessions.add(&keys, &times, &slots, &states, times.len());
        }
        sessions.settle();
        Ok(sessions)
    }
}

/// Returns the columns of the table before keys and state.
fn fields() -> [(&'static str, DataType); 2] {
    [("first", DataType::Int64), ("last", DataType::Int64)]
}
