//! The one form of a column of a run.
//!
//! COLUMN-1. A mask, where there is one, is as long as the values: 1 for a value, 0 for null.
//! COLUMN-2. Values under a null are unspecified but initialised: kernels may read them, results may not
//!     depend on them.
//! COLUMN-3. A bool is a byte that is 0 or 1.

use arrow_schema::DataType;

use crate::payload::{Payload, Payloads};

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of their Rust types")]
pub enum Physical {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    I128,
    /// 16-byte views of strings or binary.
    View,
}

impl Physical {
    /// Returns the storage of a column of this Arrow type; `None` when the engine does not support such columns.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean | DataType::UInt8 => Self::U8,
            DataType::Int8 => Self::I8,
            DataType::Int16 => Self::I16,
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Self::I32,
            DataType::Int64
            | DataType::Timestamp(..)
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Duration(_) => Self::I64,
            DataType::UInt16 => Self::U16,
            DataType::UInt32 => Self::U32,
            DataType::UInt64 => Self::U64,
            DataType::Float32 => Self::F32,
            DataType::Float64 => Self::F64,
            DataType::Decimal128(..) => Self::I128,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::View,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::View,
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
                return Self::of(values);
            }
            _ => return None,
        })
    }

    /// Returns the bytes per value.
    pub fn width(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            Self::I128 | Self::View => 16,
        }
    }
}

/// Values of one column, borrowed.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the variants are the names of their Rust types")]
pub enum Values<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    I128(&'a [i128]),
    /// Views, and the payloads that the long ones point into.
    View(&'a [u128], Payloads<'a>),
}

/// Values of one column, owned, to be filled again and again.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants are the names of their Rust types")]
pub enum ValuesBuf {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I128(Vec<i128>),
    /// Views, and the payloads that the long ones point into.
    View(Vec<u128>, Vec<Payload>),
}

/// A Rust type that a fixed-width column is stored as.
pub trait Native: Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The storage of this type.
    const PHYSICAL: Physical;
    /// Returns the slice inside `values`, when it is of this type.
    fn slice(values: Values<'_>) -> Option<&[Self]>;
    /// Returns the vector inside `values`, when it is of this type.
    fn vec(values: &mut ValuesBuf) -> Option<&mut Vec<Self>>;
}

macro_rules! native {
    ($($kind:ident $type:ty),*) => {$(
        impl Native for $type {
            const PHYSICAL: Physical = Physical::$kind;
            fn slice(values: Values<'_>) -> Option<&[Self]> {
                if let Values::$kind(slice) = values { Some(slice) } else { None }
            }
            fn vec(values: &mut ValuesBuf) -> Option<&mut Vec<Self>> {
                if let ValuesBuf::$kind(vec) = values { Some(vec) } else { None }
            }
        }
    )*};
}
native!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64, I128 i128);

/// Runs one expression for the fixed-width type that `$values` holds, another for views.
///
/// Works on [`Values`], on references to [`ValuesBuf`] and on everything with the same variants.
#[macro_export]
macro_rules! for_each_kind {
    ($kind:ident, $values:expr, $slice:ident => $fixed:expr, ($views:ident, $buffers:ident) => $view:expr) => {
        match $values {
            $crate::$kind::I8($slice) => $fixed,
            $crate::$kind::I16($slice) => $fixed,
            $crate::$kind::I32($slice) => $fixed,
            $crate::$kind::I64($slice) => $fixed,
            $crate::$kind::U8($slice) => $fixed,
            $crate::$kind::U16($slice) => $fixed,
            $crate::$kind::U32($slice) => $fixed,
            $crate::$kind::U64($slice) => $fixed,
            $crate::$kind::F32($slice) => $fixed,
            $crate::$kind::F64($slice) => $fixed,
            $crate::$kind::I128($slice) => $fixed,
            $crate::$kind::View($views, $buffers) => $view,
        }
    };
}

impl Values<'_> {
    /// Returns the storage of the values.
    pub fn physical(&self) -> Physical {
        match self {
            Self::I8(_) => Physical::I8,
            Self::I16(_) => Physical::I16,
            Self::I32(_) => Physical::I32,
            Self::I64(_) => Physical::I64,
            Self::U8(_) => Physical::U8,
            Self::U16(_) => Physical::U16,
            Self::U32(_) => Physical::U32,
            Self::U64(_) => Physical::U64,
            Self::F32(_) => Physical::F32,
            Self::F64(_) => Physical::F64,
            Self::I128(_) => Physical::I128,
            Self::View(..) => Physical::View,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        for_each_kind!(Values, self, slice => slice.len(), (views, _buffers) => views.len())
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesBuf {
    /// Creates an empty vector of that storage.
    pub fn new(physical: Physical) -> Self {
        match physical {
            Physical::I8 => Self::I8(Vec::new()),
            Physical::I16 => Self::I16(Vec::new()),
            Physical::I32 => Self::I32(Vec::new()),
            Physical::I64 => Self::I64(Vec::new()),
            Physical::U8 => Self::U8(Vec::new()),
            Physical::U16 => Self::U16(Vec::new()),
            Physical::U32 => Self::U32(Vec::new()),
            Physical::U64 => Self::U64(Vec::new()),
            Physical::F32 => Self::F32(Vec::new()),
            Physical::F64 => Self::F64(Vec::new()),
            Physical::I128 => Self::I128(Vec::new()),
            Physical::View => Self::View(Vec::new(), Vec::new()),
        }
    }

    /// Borrows the values.
    pub fn as_values(&self) -> Values<'_> {
        match self {
            Self::I8(vec) => Values::I8(vec),
            Self::I16(vec) => Values::I16(vec),
            Self::I32(vec) => Values::I32(vec),
            Self::I64(vec) => Values::I64(vec),
            Self::U8(vec) => Values::U8(vec),
            Self::U16(vec) => Values::U16(vec),
            Self::U32(vec) => Values::U32(vec),
            Self::U64(vec) => Values::U64(vec),
            Self::F32(vec) => Values::F32(vec),
            Self::F64(vec) => Values::F64(vec),
            Self::I128(vec) => Values::I128(vec),
            Self::View(views, payloads) => Values::View(views, Payloads::List(payloads)),
        }
    }
}

/// One column of a run, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// The values; unspecified where the mask says null.
    pub values: Values<'a>,
    /// The mask, when the column may hold nulls.
    pub valid: Option<&'a [u8]>,
}

impl<'a> Column<'a> {
    /// Returns the values as a slice of `T`.
    ///
    /// # Panics
    /// When the column has another storage: types are settled when a plan is compiled.
    pub fn fixed<T: Native>(&self) -> &'a [T] {
        T::slice(self.values).expect("a compiled plan reads columns by their own storage type")
    }

    /// Returns the views and their payloads.
    ///
    /// # Panics
    /// When the column is not a string or binary column.
    pub fn views(&self) -> (&'a [u128], Payloads<'a>) {
        match self.values {
            Values::View(views, payloads) => (views, payloads),
            _ => panic!("a compiled plan reads only string and binary columns as views"),
        }
    }

    /// Returns true if row `row` holds a value.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.is_none_or(|mask| mask[row] != 0)
    }
}

/// One column of a run, owned, filled again for each run.
#[derive(Clone, Debug)]
pub struct ColumnBuf {
    values: ValuesBuf,
    mask: Vec<u8>,
    masked: bool,
}

impl ColumnBuf {
    /// Creates an empty column of that storage.
    pub fn new(physical: Physical) -> Self {
        Self { values: ValuesBuf::new(physical), mask: Vec::new(), masked: false }
    }

    /// Borrows the column.
    pub fn as_column(&self) -> Column<'_> {
        Column { values: self.values.as_values(), valid: self.mask() }
    }

    /// Returns the mask, when there is one.
    pub fn mask(&self) -> Option<&[u8]> {
        self.masked.then_some(self.mask.as_slice())
    }

    /// Returns the emptied vector of values, without a mask: to be filled with as many rows as the run has.
    ///
    /// # Panics
    /// When the column has another storage.
    pub fn refill<T: Native>(&mut self) -> &mut Vec<T> {
        self.masked = false;
        let values =
            T::vec(&mut self.values).expect("scratch is taken by the storage type it is filled with");
        values.clear();
        values
    }

    /// Like [`ColumnBuf::refill`], for strings and binary.
    ///
    /// # Panics
    /// When the column is not stored as views.
    pub fn refill_views(&mut self) -> (&mut Vec<u128>, &mut Vec<Payload>) {
        self.masked = false;
        let ValuesBuf::View(views, payloads) = &mut self.values else {
            panic!("scratch is taken by the storage type it is filled with");
        };
        views.clear();
        payloads.clear();
        (views, payloads)
    }

    /// Returns the emptied mask and enables it: to be filled with one byte per row.
    pub fn refill_mask(&mut self) -> &mut Vec<u8> {
        self.masked = true;
        self.mask.clear();
        &mut self.mask
    }

    /// Disables the mask.
    pub fn clear_mask(&mut self) {
        self.masked = false;
    }

    /// Disables the mask when no row is null.
    pub fn clear_mask_if_full(&mut self) {
        self.masked &= self.mask.contains(&0);
    }

    /// Makes the rows null for which `is_null` holds; the others keep their values.
    pub fn mask_out(&mut self, is_null: impl Fn(usize) -> bool) {
        if !self.masked {
            self.mask.clear();
            self.mask.resize(self.values.as_values().len(), 1);
            self.masked = true;
        }
        for (row, valid) in self.mask.iter_mut().enumerate() {
            *valid &= u8::from(!is_null(row));
        }
    }

    /// Makes all of `rows` rows null.
    pub fn fill_null(&mut self, rows: usize) {
        for_each_kind!(ValuesBuf, &mut self.values, vec => { vec.clear(); vec.resize(rows, Default::default()) },
            (views, payloads) => { views.clear(); views.resize(rows, 0); payloads.clear() });
        self.refill_mask().resize(rows, 0);
    }

    /// Gathers the rows named by `rows` from `column`, in that order.
    pub fn gather(&mut self, column: Column<'_>, rows: &[u32]) {
        macro_rules! take {
            ($($kind:ident),*) => {
                match (column.values, &mut self.values) {
                    $((Values::$kind(from), ValuesBuf::$kind(to)) => {
                        to.clear();
                        to.extend(rows.iter().map(|&row| from[row as usize]));
                    })*
                    (Values::View(from, from_payloads), ValuesBuf::View(to, to_payloads)) => {
                        to.clear();
                        to.extend(rows.iter().map(|&row| from[row as usize]));
                        to_payloads.clear();
                        to_payloads.extend(from_payloads.iter().cloned());
                    }
                    _ => panic!("scratch is taken by the storage type it is filled with"),
                }
            };
        }
        take!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128);
        match column.valid {
            Some(mask) => self.refill_mask().extend(rows.iter().map(|&row| mask[row as usize])),
            None => self.masked = false,
        }
    }

    /// Drops the payloads that the views point into: the values are not read again before they are refilled.
    pub fn forget_payloads(&mut self) {
        if let ValuesBuf::View(views, payloads) = &mut self.values {
            views.clear();
            payloads.clear();
        }
    }

    /// Returns the storage of the values.
    pub fn physical(&self) -> Physical {
        self.values.as_values().physical()
    }
}
