//! Counts of distinct values.
//!
//! One table holds the values of all keys, by key and value. The values of a key also form a linked list, so that a
//! key can be emptied or merged into another without touching the others.
//!
//! DISTINCT-1. `nodes[n]` is a value of the key `id`, in the list that starts at `heads[id]`, and in the table; or it
//!     is free and in the list that starts at `free`.
//! DISTINCT-2. When a key is removed and most nodes are free, they are dropped, with their memory.

use std::any::Any;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, LargeListArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::ComputeError;

use super::state::{from_array, portable, to_array};
use super::{Accumulator, each_valid};
use crate::heap_bytes;
use crate::keys::MISSING;
use crate::keys::packed::PackedBits;
use crate::pick::Pick;

const NOTHING: u32 = u32::MAX;

/// Fewer nodes than this are not worth dropping (DISTINCT-2) ...
const FEW: usize = 1024;
/// ... and there may be this many for each used one.
const SLACK: usize = 4;

/// A value as the table stores it.
pub(super) trait DistinctValue: Clone + Eq + Hash + Default + Send + 'static {
    /// The borrowed form, for lookups without an owned value.
    type Borrowed: Eq + Hash + ?Sized;
    fn borrow(&self) -> &Self::Borrowed;
    fn own(borrowed: &Self::Borrowed) -> Self;
    fn heap(&self) -> usize;
    /// Calls `take` for the value of each row that has one.
    fn each(column: Column<'_>, ids: &[u32], take: impl FnMut(usize, &Self::Borrowed));
    /// Writes the values as a column of that storage.
    fn write<'a>(values: impl Iterator<Item = &'a Self>, out: &mut ColumnBuf);
}

fn each_packed(column: Column<'_>, ids: &[u32], mut take: impl FnMut(usize, u128)) {
    penstock_memory::for_each_kind!(Values, column.values,
        values => each_valid(ids, values, column.valid, |id, value| take(id, value.pack())),
        (_views, _payloads) => unreachable!("strings are not packed"));
}

fn write_packed(values: impl Iterator<Item = u128>, out: &mut ColumnBuf) {
    macro_rules! fill {
        ($($kind:ident $type:ty),*) => {
            match out.physical() {
                $(Physical::$kind => out.refill::<$type>().extend(values.map(<$type>::unpack)),)*
                Physical::View => unreachable!("strings are not packed"),
            }
        };
    }
    fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64, I128 i128);
}

macro_rules! packed_value {
    ($($packed:ty),*) => {$(
        impl DistinctValue for $packed {
            type Borrowed = Self;
            fn borrow(&self) -> &Self { self }
            fn own(borrowed: &Self) -> Self { *borrowed }
            fn heap(&self) -> usize { 0 }
            fn each(column: Column<'_>, ids: &[u32], mut take: impl FnMut(usize, &Self)) {
                each_packed(column, ids, |id, bits| take(id, &(bits as Self)));
            }
            fn write<'a>(values: impl Iterator<Item = &'a Self>, out: &mut ColumnBuf) {
                write_packed(values.map(|&value| value.into()), out);
            }
        }
    )*};
}
packed_value!(u64, u128);

impl DistinctValue for Box<[u8]> {
    type Borrowed = [u8];
    fn borrow(&self) -> &[u8] {
        self
    }
    fn own(borrowed: &[u8]) -> Self {
        borrowed.into()
    }
    fn heap(&self) -> usize {
        self.len()
    }
    fn each(column: Column<'_>, ids: &[u32], mut take: impl FnMut(usize, &[u8])) {
        let (views, payloads) = column.views();
        each_valid(ids, views, column.valid, |id, view| with_bytes(view, payloads, |value| take(id, value)));
    }
    fn write<'a>(values: impl Iterator<Item = &'a Self>, out: &mut ColumnBuf) {
        let (views, buffers) = out.refill_views();
        let mut payload = Vec::new();
        for value in values {
            // A payload ends before its offsets outgrow 32 bits.
            if payload.len() + value.len() > u32::MAX as usize {
                buffers.push(Buffer::from_vec(std::mem::take(&mut payload)).into());
            }
            views.push(make_view(value, buffers.len() as u32, payload.len() as u32));
            payload.extend_from_slice(value);
        }
        buffers.push(Buffer::from_vec(payload).into());
    }
}

#[derive(Clone, Default)]
struct ValueNode<V> {
    id: u32,
    next: u32,
    value: V,
}

#[derive(Clone)]
pub(super) struct Distinct<V> {
    data_type: DataType,
    counts: Vec<i64>,
    heads: Vec<u32>,
    nodes: Vec<ValueNode<V>>,
    free: u32,
    table: HashTable<u32>,
    hasher: RandomState,
    /// Heap memory of all values together.
    heap: usize,
}

/// Makes the state for values of that type.
pub(super) fn make(data_type: &DataType) -> Box<dyn Accumulator> {
    fn of<V: DistinctValue>(data_type: &DataType) -> Box<dyn Accumulator> {
        Box::new(Distinct::<V>::new(data_type))
    }
    match Physical::of(data_type).expect("types are checked when the plan is built") {
        Physical::View => of::<Box<[u8]>>(data_type),
        Physical::I128 => of::<u128>(data_type),
        _ => of::<u64>(data_type),
    }
}

impl<V: DistinctValue> Distinct<V> {
    fn new(data_type: &DataType) -> Self {
        Self {
            data_type: data_type.clone(),
            counts: Vec::new(),
            heads: Vec::new(),
            nodes: Vec::new(),
            free: NOTHING,
            table: HashTable::new(),
            hasher: RandomState::default(),
            heap: 0,
        }
    }

    fn insert(&mut self, id: u32, value: &V::Borrowed) {
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash = hasher.hash_one((id, value));
        let same = |&node: &u32| {
            let node = &nodes[node as usize];
            node.id == id && node.value.borrow() == value
        };
        if self.table.find(hash, same).is_some() {
            return;
        }
        let node = ValueNode { id, next: self.heads[id as usize], value: V::own(value) };
        self.heap += node.value.heap();
        let number = self.free;
        let number = if number == NOTHING {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            self.free = self.nodes[number as usize].next;
            self.nodes[number as usize] = node;
            number
        };
        self.heads[id as usize] = number;
        self.counts[id as usize] += 1;
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.table.insert_unique(hash, number, |&node| {
            let node = &nodes[node as usize];
            hasher.hash_one((node.id, node.value.borrow()))
        });
    }

    /// Empties a key, passing its values to `take`.
    fn drain(&mut self, id: u32, mut take: impl FnMut(&mut Self, V)) {
        let mut next = std::mem::replace(&mut self.heads[id as usize], NOTHING);
        self.counts[id as usize] = 0;
        while next != NOTHING {
            let number = next;
            let hash = {
                let node = &self.nodes[number as usize];
                self.hasher.hash_one((node.id, node.value.borrow()))
            };
            if let Ok(entry) = self.table.find_entry(hash, |&node| node == number) {
                entry.remove();
            }
            let free = self.free;
            let node = &mut self.nodes[number as usize];
            next = std::mem::replace(&mut node.next, free);
            let value = std::mem::take(&mut node.value);
            self.heap -= value.heap();
            self.free = number; // DISTINCT-1
            take(self, value);
        }
    }

    /// Drops free nodes once they are the majority (DISTINCT-2).
    fn tidy(&mut self) {
        let keys = self.counts.len();
        // With a pass over every key it would take too long for a few nodes.
        if self.nodes.len() <= FEW.max(keys) || self.nodes.len() / SLACK <= self.table.len() {
            return;
        }
        let mut kept = Self::new(&self.data_type);
        kept.grow(keys);
        for id in 0..keys {
            self.values_of(id).for_each(|value| kept.insert(id as u32, value.borrow()));
        }
        *self = kept;
    }

    fn values_of(&self, id: usize) -> impl Iterator<Item = &V> {
        let start = self.heads.get(id).copied().filter(|&head| head != NOTHING);
        std::iter::successors(start, |&node| {
            Some(self.nodes[node as usize].next).filter(|&next| next != NOTHING)
        })
        .map(|node| &self.nodes[node as usize].value)
    }
}

impl<V: DistinctValue> Accumulator for Distinct<V> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>, _times: Option<&[i64]>) {
        self.grow(keys);
        let column = input.expect("distinct values have an input");
        V::each(column, ids, |id, value| self.insert(id as u32, value));
    }

    fn grow(&mut self, keys: usize) {
        if self.counts.len() < keys {
            self.counts.resize(keys, 0);
            self.heads.resize(keys, NOTHING);
        }
    }

    fn merge(&mut self, other: &dyn Accumulator, ids: &[u32], keys: usize) {
        self.grow(keys);
        let other = (other as &dyn Any).downcast_ref::<Self>().expect("state of one aggregate is merged");
        for (from, &id) in ids.iter().enumerate().filter(|(_, id)| **id != MISSING) {
            other.values_of(from).for_each(|value| self.insert(id, value.borrow()));
        }
    }

    fn absorb(&mut self, from: u32, into: u32) {
        self.drain(from, |state, value| state.insert(into, value.borrow()));
    }

    fn reset(&mut self, id: u32) {
        self.drain(id, |_, _| {});
        self.tidy();
    }

    fn write(&self, pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        pick.extend(out.refill::<i64>(), |id| self.counts[id]);
        Ok(())
    }

    fn save(&self) -> Vec<ArrayRef> {
        let mut column = ColumnBuf::new(Physical::of(&self.data_type).expect("types are checked"));
        V::write((0..self.counts.len()).flat_map(|id| self.values_of(id)), &mut column);
        let values = to_array(&self.data_type, column.as_column());
        let offsets = OffsetBuffer::<i64>::from_lengths(self.counts.iter().map(|&count| count as usize));
        let field = Arc::new(Field::new_list_field(portable(&self.data_type), true));
        vec![Arc::new(LargeListArray::new(field, offsets, values, None))]
    }

    fn load(&mut self, columns: &[ArrayRef]) -> Result<(), String> {
        let lists = columns[0].as_list::<i64>();
        let offsets = lists.offsets();
        let (from, to) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
        let column = from_array(&lists.values().slice(from, to - from), &self.data_type)?;
        self.grow(offsets.len() - 1);
        let mut ids = Vec::with_capacity(to - from);
        for (id, ends) in offsets.windows(2).enumerate() {
            ids.resize(ends[1] as usize - from, id as u32);
        }
        V::each(column.as_column(), &ids, |id, value| self.insert(id as u32, value));
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.counts)
            + heap_bytes(&self.heads)
            + heap_bytes(&self.nodes)
            + self.table.allocation_size()
            + self.heap
    }

    fn boxed_clone(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }
}
