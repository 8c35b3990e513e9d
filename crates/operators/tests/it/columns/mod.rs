//! Columns of runs, and their plain values.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf, Physical, Values};
use proptest::prelude::*;

/// A value that is not null.
#[derive(Clone, Debug)]
pub enum Value {
    Int(i128),
    Float(f64),
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns the bits that equal keys share: one NaN, one zero.
    fn bits(value: f64) -> u64 {
        if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
    }
}

/// Equality of keys: NaN equals NaN, -0.0 equals 0.0.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left == right,
            (Self::Float(left), Self::Float(right)) => Self::bits(*left) == Self::bits(*right),
            (Self::Bytes(left), Self::Bytes(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Int(value) => value.hash(state),
            Self::Float(value) => Self::bits(*value).hash(state),
            Self::Bytes(value) => value.hash(state),
        }
    }
}

/// A cell of a column: `None` where it is null.
pub type Cell = Option<Value>;

pub fn text(text: &str) -> Cell {
    Some(Value::Bytes(text.as_bytes().to_vec()))
}

/// Makes a column of that storage. Values under a null are nonsense, and differ from row to row.
pub fn stored(physical: Physical, cells: &[Cell]) -> ColumnBuf {
    let mut into = ColumnBuf::new(physical);
    macro_rules! fill {
        ($($kind:ident $type:ty: $variant:ident),*) => {
            match physical {
                $(Physical::$kind => {
                    into.refill::<$type>().extend(cells.iter().enumerate().map(|(row, cell)| match cell {
                        Some(Value::$variant(value)) => *value as $type,
                        Some(other) => panic!("{other:?} in a column of another kind"),
                        None => row as u8 as $type,
                    }));
                })*
                Physical::View => {
                    let (views, buffers) = into.refill_views();
                    let mut payload = Vec::new();
                    for cell in cells {
                        views.push(match cell {
                            Some(Value::Bytes(bytes)) => make_view(bytes, 0, payload.len() as u32),
                            Some(other) => panic!("{other:?} in a column of bytes"),
                            None => u128::MAX,
                        });
                        if let Some(Value::Bytes(bytes)) = cell {
                            payload.extend_from_slice(bytes);
                        }
                    }
                    buffers.push(arrow_buffer::Buffer::from_vec(payload).into());
                }
            }
        };
    }
    fill!(I8 i8: Int, I16 i16: Int, I32 i32: Int, I64 i64: Int, U8 u8: Int, U16 u16: Int, U32 u32: Int,
        U64 u64: Int, I128 i128: Int, F32 f32: Float, F64 f64: Float);
    if cells.contains(&None) {
        into.refill_mask().extend(cells.iter().map(|cell| u8::from(cell.is_some())));
    }
    into
}

/// Returns the values of a column.
pub fn read(column: Column<'_>) -> Vec<Cell> {
    macro_rules! each {
        ($values:expr, $wrap:expr) => {{
            let wrap = $wrap;
            $values
                .iter()
                .enumerate()
                .map(|(row, &value)| column.is_valid(row).then(|| wrap(value)))
                .collect()
        }};
    }
    if let Some(mask) = column.valid {
        assert_eq!(mask.len(), column.values.len(), "a mask is as long as the values");
    }
    match column.values {
        Values::I8(values) => each!(values, |value: i8| Value::Int(value.into())),
        Values::I16(values) => each!(values, |value: i16| Value::Int(value.into())),
        Values::I32(values) => each!(values, |value: i32| Value::Int(value.into())),
        Values::I64(values) => each!(values, |value: i64| Value::Int(value.into())),
        Values::U8(values) => each!(values, |value: u8| Value::Int(value.into())),
        Values::U16(values) => each!(values, |value: u16| Value::Int(value.into())),
        Values::U32(values) => each!(values, |value: u32| Value::Int(value.into())),
        Values::U64(values) => each!(values, |value: u64| Value::Int(value.into())),
        Values::I128(values) => each!(values, Value::Int),
        Values::F32(values) => each!(values, |value: f32| Value::Float(value.into())),
        Values::F64(values) => each!(values, Value::Float),
        Values::View(views, buffers) => {
            each!(views, |view| with_bytes(view, buffers, |bytes| Value::Bytes(bytes.to_vec())))
        }
    }
}

/// Converts columns to rows.
pub fn rows(columns: &[Vec<Cell>]) -> Vec<Vec<Cell>> {
    let count = columns.first().map_or(0, Vec::len);
    (0..count).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

/// Converts rows to columns.
pub fn columns(rows: &[Vec<Cell>], width: usize) -> Vec<Vec<Cell>> {
    (0..width).map(|column| rows.iter().map(|row| row[column].clone()).collect()).collect()
}

/// Returns the smallest and the largest integer of that storage.
pub fn limits(physical: Physical) -> (i128, i128) {
    match physical {
        Physical::I8 => (i8::MIN.into(), i8::MAX.into()),
        Physical::I16 => (i16::MIN.into(), i16::MAX.into()),
        Physical::I32 => (i32::MIN.into(), i32::MAX.into()),
        Physical::I64 => (i64::MIN.into(), i64::MAX.into()),
        Physical::U8 => (0, u8::MAX.into()),
        Physical::U16 => (0, u16::MAX.into()),
        Physical::U32 => (0, u32::MAX.into()),
        Physical::U64 => (0, u64::MAX.into()),
        other => panic!("{other:?} is not an integer of up to 64 bits"),
    }
}

/// Draws a value of that storage out of few, so that keys repeat.
pub fn any_key(physical: Physical) -> BoxedStrategy<Value> {
    match physical {
        Physical::F32 | Physical::F64 => {
            let special = vec![0.0, -0.0, 1.5, -1.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            prop::sample::select(special).prop_map(Value::Float).boxed()
        }
        Physical::I128 => {
            prop_oneof![-3_i128..3, Just(i128::MAX), Just(i128::MIN)].prop_map(Value::Int).boxed()
        }
        Physical::View => {
            // Keys that concatenate alike unless their lengths count, and zeros inside and at the end.
            let known = [
                "",
                "a",
                "ab",
                "b",
                "bc",
                "\0",
                "a\0",
                "\0a",
                "exactly 12 b",
                "more than 12 bytes",
                "more than 12 bytez",
            ];
            prop::sample::select(known.to_vec())
                .prop_map(|text| Value::Bytes(text.as_bytes().to_vec()))
                .boxed()
        }
        integer => {
            let (low, high) = limits(integer);
            prop_oneof![5 => 0_i128..4, 1 => Just(low), 1 => Just(high)].prop_map(Value::Int).boxed()
        }
    }
}
