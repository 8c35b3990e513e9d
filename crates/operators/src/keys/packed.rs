//! Fixed-width columns that fit 64 or 128 bits together: they are packed into one number.
//!
//! PACKED-1. A value takes the bits of its width, floats normalised; a null takes zeros, and its bit of `nulls` is
//!     set.

use penstock_memory::{Column, ColumnBuf, Native, Physical};

use super::MISSING;
use super::table::{KeyTable, TableKey};
use crate::heap_bytes;
use crate::pick::Pick;

/// A number that keys are packed into.
pub trait Packing: TableKey + std::ops::BitOrAssign {
    const BYTES: usize;
    fn place(bits: u128, shift: u32) -> Self;
    fn take(self, shift: u32) -> u128;
}

impl Packing for u64 {
    const BYTES: usize = 8;
    #[inline(always)]
    fn place(bits: u128, shift: u32) -> Self {
        (bits as u64) << shift
    }
    #[inline(always)]
    fn take(self, shift: u32) -> u128 {
        u128::from(self >> shift)
    }
}

impl Packing for u128 {
    const BYTES: usize = 16;
    #[inline(always)]
    fn place(bits: u128, shift: u32) -> Self {
        bits << shift
    }
    #[inline(always)]
    fn take(self, shift: u32) -> u128 {
        self >> shift
    }
}

/// A value as bits that equal values share.
pub trait PackedBits: Native {
    fn pack(self) -> u128;
    fn unpack(bits: u128) -> Self;
}

macro_rules! packed_bits {
    ($($type:ty as $unsigned:ty),*) => {$(
        impl PackedBits for $type {
            #[inline(always)]
            fn pack(self) -> u128 { u128::from(self as $unsigned) }
            #[inline(always)]
            fn unpack(bits: u128) -> Self { bits as $unsigned as $type }
        }
    )*};
    (floats $($type:ty),*) => {$(
        impl PackedBits for $type {
            #[inline(always)]
            fn pack(self) -> u128 {
                (if self.is_nan() { <$type>::NAN } else { self + 0.0 }).to_bits().into()
            }
            #[inline(always)]
            fn unpack(bits: u128) -> Self { <$type>::from_bits(bits as _) }
        }
    )*};
}
packed_bits!(
    i8 as u8,
    i16 as u16,
    i32 as u32,
    i64 as u64,
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    i128 as u128
);
packed_bits!(floats f32, f64);

/// Maps rows of fixed-width columns to dense ids.
#[derive(Clone)]
pub struct PackedKeys<K> {
    /// The bit at which each column begins.
    shifts: Vec<u32>,
    keys: Vec<K>,
    /// Null columns of each key; empty while no key has one.
    nulls: Vec<u32>,
    table: KeyTable<K>,
}

/// The rows of one run, packed.
struct Packed<K> {
    keys: Vec<K>,
    /// Empty when no column has a mask.
    nulls: Vec<u32>,
}

impl<K> Packed<K> {
    #[inline(always)]
    fn nulls(&self, row: usize) -> u32 {
        self.nulls.get(row).copied().unwrap_or(0)
    }
}

fn pack_column<T: PackedBits, K: Packing>(
    values: &[T],
    column: &Column<'_>,
    number: usize,
    shift: u32,
    to: &mut Packed<K>,
) {
    match column.valid {
        None => to.keys.iter_mut().zip(values).for_each(|(key, value)| *key |= K::place(value.pack(), shift)),
        Some(mask) => {
            to.nulls.resize(to.keys.len(), 0);
            for (row, (value, &valid)) in values.iter().zip(mask).enumerate() {
                if valid != 0 {
                    to.keys[row] |= K::place(value.pack(), shift);
                } else {
                    to.nulls[row] |= 1 << number;
                }
            }
        }
    }
}

impl<K: Packing> PackedKeys<K> {
    /// Returns true if columns of that storage fit.
    pub fn holds(columns: &[Physical]) -> bool {
        !columns.contains(&Physical::View)
            && columns.iter().map(|column| column.width()).sum::<usize>() <= K::BYTES
    }

    /// Creates an empty index.
    pub fn new(columns: &[Physical]) -> Self {
        let mut next = 0;
        let shifts = columns.iter().map(|column| {
            let shift = next;
            next += column.width() as u32 * 8;
            shift
        });
        Self { shifts: shifts.collect(), keys: Vec::new(), nulls: Vec::new(), table: KeyTable::new() }
    }

    /// Sets the expected number of keys, from the last use.
    pub fn expect(&mut self, keys: usize) {
        self.table.expect(keys);
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the heap memory of the index.
    pub fn bytes(&self) -> usize {
        heap_bytes(&self.shifts) + heap_bytes(&self.keys) + heap_bytes(&self.nulls) + self.table.bytes()
    }

    fn pack(&self, columns: &[Column<'_>], rows: usize) -> Packed<K> {
        let mut packed = Packed { keys: vec![K::default(); rows], nulls: Vec::new() };
        for (number, (column, &shift)) in columns.iter().zip(&self.shifts).enumerate() {
            penstock_memory::for_each_kind!(Values, column.values,
                values => pack_column(values, column, number, shift, &mut packed),
                (_views, _payloads) => unreachable!("strings are not packed"));
        }
        packed
    }

    fn glance(&self, rows: &Packed<K>, ids: &mut Vec<u32>) {
        let table = &self.table;
        match rows.nulls.as_slice() {
            [] => table.glance(rows.keys.iter().map(|&key| (key, 0)), ids),
            nulls => table.glance(rows.keys.iter().copied().zip(nulls.iter().copied()), ids),
        }
    }

    /// Appends the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        let packed = self.pack(columns, rows);
        let start = ids.len();
        self.glance(&packed, ids);
        let (known, mut missing) = (self.keys.len(), 0);
        for (row, id) in ids[start..].iter_mut().enumerate().filter(|(_, id)| **id == MISSING) {
            missing += 1;
            *id = self.insert_one(packed.keys[row], packed.nulls(row));
        }
        self.table.followed_up(missing - (self.keys.len() - known), rows);
    }

    fn insert_one(&mut self, key: K, nulls: u32) -> u32 {
        match self.table.find(key, nulls, |_| true) {
            Ok(id) => id,
            Err(_) if self.table.is_full() => {
                self.table.grow();
                self.insert_one(key, nulls)
            }
            Err(free) => {
                let id = self.keys.len() as u32;
                if nulls != 0 || !self.nulls.is_empty() {
                    self.nulls.resize(self.keys.len(), 0);
                    self.nulls.push(nulls);
                }
                self.keys.push(key);
                self.table.fill(free, key, nulls, id);
                id
            }
        }
    }

    /// Appends the id of each row's key, [`MISSING`] where there is none.
    pub fn find(&self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        let packed = self.pack(columns, rows);
        let start = ids.len();
        self.glance(&packed, ids);
        for (row, id) in ids[start..].iter_mut().enumerate().filter(|(_, id)| **id == MISSING) {
            *id = self.table.find(packed.keys[row], packed.nulls(row), |_| true).unwrap_or(MISSING);
        }
    }

    /// Writes the keys with those ids, one column per key column.
    pub fn write(&self, pick: Pick<'_>, columns: &mut [ColumnBuf]) {
        for (number, (column, &shift)) in columns.iter_mut().zip(&self.shifts).enumerate() {
            macro_rules! fill {
                ($($kind:ident $type:ty),*) => {
                    match column.physical() {
                        $(Physical::$kind => {
                            let value = |id: usize| <$type>::unpack(self.keys[id].take(shift));
                            pick.extend(column.refill::<$type>(), value);
                        })*
                        Physical::View => unreachable!("strings are not packed"),
                    }
                };
            }
            fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64, I128 i128);
            let valid = |id: usize| self.nulls.get(id).is_none_or(|nulls| nulls >> number & 1 == 0);
            if !pick.all(valid) {
                pick.extend(column.refill_mask(), |id| u8::from(valid(id)));
            }
        }
    }
}
