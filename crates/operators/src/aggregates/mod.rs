//! The state that a window keeps per key.
//!
//! State is columnar: one vector per aggregate, indexed by the dense id of the key. A run updates it in one tight loop
//! over ids; nothing is dispatched per row.
//!
//! AGGREGATE-1. Nulls are skipped. A key without a value has no sum, minimum, maximum or mean: the result is null.
//!     Counts of such a key are 0.
//! AGGREGATE-2. Integer totals are exact: 128 bits while they grow, checked against the result type at the end.
//! AGGREGATE-3. The states of two parts of the rows of a key, merged, equal the state of all of them; for floats up to
//!     rounding.

mod bytes;
mod cells;
mod count;
mod distinct;
mod extreme;
mod factory;
mod first_last;
mod integer_sum;
mod moments;
pub(crate) mod state;
mod total;

use std::any::Any;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::{ComputeError, PlanError, TypeName};

pub use factory::AccumulatorFactory;

use crate::pick::Pick;

/// The kind of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the aggregates")]
pub enum AggregateKind {
    Count,
    Sum,
    Min,
    Max,
    Mean,
    CountDistinct,
    Var,
    Std,
    First,
    Last,
}

const KINDS: [(AggregateKind, &str); 10] = [
    (AggregateKind::Count, "count"),
    (AggregateKind::Sum, "sum"),
    (AggregateKind::Min, "min"),
    (AggregateKind::Max, "max"),
    (AggregateKind::Mean, "mean"),
    (AggregateKind::CountDistinct, "count_distinct"),
    (AggregateKind::Var, "var"),
    (AggregateKind::Std, "std"),
    (AggregateKind::First, "first"),
    (AggregateKind::Last, "last"),
];

impl AggregateKind {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map(|(_, name)| *name)
            .expect("every aggregate is in the table")
    }

    /// Returns the aggregate of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Returns all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, name)| *name)
    }

    /// Returns the type of the result over values of type `input`; `None` counts rows.
    ///
    /// `text` is the aggregate as it prints, for the error.
    pub fn output(self, input: Option<&DataType>, text: &str) -> Result<DataType, PlanError> {
        use DataType::{
            Decimal128, Duration, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
        };
        let Some(input) = input else {
            return Ok(Int64);
        };
        let wrong = |wanted: &str| {
            Err(PlanError::mismatch(
                text,
                format!("{} of {} is not defined; it needs {wanted}", self.name(), TypeName(input)),
            ))
        };
        match (self, input) {
            (Self::Count | Self::CountDistinct, _) => Ok(Int64),
            (Self::Min | Self::Max | Self::First | Self::Last, _) => Ok(input.clone()),
            (Self::Sum, Int8 | Int16 | Int32 | Int64) => Ok(Int64),
            (Self::Sum, UInt8 | UInt16 | UInt32 | UInt64) => Ok(UInt64),
            (Self::Sum, Float32 | Float64) => Ok(Float64),
            (Self::Sum, Decimal128(_, scale)) => Ok(Decimal128(38, *scale)),
            (Self::Sum, Duration(unit)) => Ok(Duration(*unit)),
            (Self::Sum, _) => wrong("a number, a decimal or a duration"),
            (
                Self::Mean | Self::Var | Self::Std,
                Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64
                | Decimal128(..),
            ) => Ok(Float64),
            (Self::Mean | Self::Var | Self::Std, _) => wrong("a number or a decimal"),
        }
    }
}

/// Which of the values of a key is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Smallest,
    Largest,
    First,
    Last,
}

impl Choice {
    fn is_timed(self) -> bool {
        matches!(self, Self::First | Self::Last)
    }

    fn is_largest(self) -> bool {
        matches!(self, Self::Largest | Self::Last)
    }
}

/// The state of one aggregate for all keys of a window.
pub trait Accumulator: Any + Send {
    /// Takes a run: `ids[row]` is the key of row `row`, and every id is below `keys`.
    ///
    /// `input` is given unless rows are counted, `times` where the factory asks for them.
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>, times: Option<&[i64]>);

    /// Makes room for `keys` keys; new ones have no row yet.
    fn grow(&mut self, keys: usize);

    /// Merges the state of another accumulator of the same factory: its key `n` is the key `ids[n]` here, and is left
    /// out where that is [`MISSING`](crate::keys::MISSING). Every other id is below `keys`.
    fn merge(&mut self, other: &dyn Accumulator, ids: &[u32], keys: usize);

    /// Merges the state of one key into that of another, and empties it.
    fn absorb(&mut self, from: u32, into: u32);

    /// Empties a key.
    fn reset(&mut self, id: u32);

    /// Writes the results of some keys, for which there is room.
    fn write(&self, pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError>;

    /// Returns the state of all keys, as columns of the types that the factory names.
    fn save(&self) -> Vec<ArrayRef>;

    /// Replaces its state by columns of those types, one row per key.
    fn load(&mut self, columns: &[ArrayRef]) -> Result<(), String>;

    /// Returns the heap memory of the state. Called once per run and window, so it does not look at keys.
    fn bytes(&self) -> usize;

    /// Clones the state.
    fn boxed_clone(&self) -> Box<dyn Accumulator>;
}

/// Calls `take` for every row that has a value.
#[inline]
fn each_valid<T: Copy>(ids: &[u32], values: &[T], valid: Option<&[u8]>, mut take: impl FnMut(usize, T)) {
    match valid {
        None => ids.iter().zip(values).for_each(|(&id, &value)| take(id as usize, value)),
        Some(mask) => {
            for ((&id, &value), &valid) in ids.iter().zip(values).zip(mask) {
                if valid != 0 {
                    take(id as usize, value);
                }
            }
        }
    }
}

/// Makes the results null for which no value was seen.
fn mask_unseen(seen: impl Fn(usize) -> bool, pick: Pick<'_>, out: &mut ColumnBuf) {
    if !pick.all(&seen) {
        pick.extend(out.refill_mask(), |key| u8::from(seen(key)));
    }
}
