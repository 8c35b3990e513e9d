//! What a window keeps per key.
//!
//! State is columnar: one vector per aggregate, indexed by the dense id of the key. A run updates it
//! in one tight loop over ids; nothing is dispatched per row.
//!
//! A1. Nulls are skipped. A key without a value has no sum, minimum, maximum or mean: the result is null.
//! A2. Integer totals are exact: 128 bits while they grow, checked against the result type at the end.

mod bytes;
mod count;
mod extreme;
mod mean;
mod sum;
mod total;

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::{ComputeError, PlanError, TypeName};

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the aggregates")]
pub enum AggregateKind {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

const KINDS: [(AggregateKind, &str); 5] = [
    (AggregateKind::Count, "count"),
    (AggregateKind::Sum, "sum"),
    (AggregateKind::Min, "min"),
    (AggregateKind::Max, "max"),
    (AggregateKind::Mean, "mean"),
];

impl AggregateKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map(|(_, name)| *name)
            .expect("every aggregate is in the table")
    }

    /// The aggregate of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Every name there is.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, name)| *name)
    }

    /// The type of the result over values of type `input`; `None` counts rows.
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
            (Self::Count, _) => Ok(Int64),
            (Self::Min | Self::Max, _) => Ok(input.clone()),
            (Self::Sum, Int8 | Int16 | Int32 | Int64) => Ok(Int64),
            (Self::Sum, UInt8 | UInt16 | UInt32 | UInt64) => Ok(UInt64),
            (Self::Sum, Float32 | Float64) => Ok(Float64),
            (Self::Sum, Decimal128(_, scale)) => Ok(Decimal128(38, *scale)),
            (Self::Sum, Duration(unit)) => Ok(Duration(*unit)),
            (Self::Sum, _) => wrong("a number, a decimal or a duration"),
            (Self::Mean, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64) => Ok(Float64),
            (Self::Mean, Float32 | Float64 | Decimal128(..)) => Ok(Float64),
            (Self::Mean, _) => wrong("a number or a decimal"),
        }
    }
}

/// The state of one aggregate for all keys of a window.
pub trait Accumulator: Send {
    /// Takes in a run: `ids[row]` is the key of row `row`, and every id is below `keys`.
    ///
    /// `input` is there unless rows are counted.
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>);

    /// Writes the results of the keys `from..to`.
    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError>;

    /// Heap memory that the state holds. Asked once per run and window, so it does not look at keys.
    fn bytes(&self) -> usize;
}

/// Makes fresh accumulators for the windows of one query.
#[derive(Clone, Debug)]
pub struct AccumulatorFactory {
    kind: AggregateKind,
    input: Option<DataType>,
    output: DataType,
    /// The aggregate as it prints, for errors.
    text: String,
}

impl AccumulatorFactory {
    /// For aggregate `kind` over values of type `input`.
    pub fn new(kind: AggregateKind, input: Option<DataType>, text: String) -> Result<Self, PlanError> {
        let output = kind.output(input.as_ref(), &text)?;
        Ok(Self { kind, input, output, text })
    }

    /// The type of the results.
    pub fn output(&self) -> &DataType {
        &self.output
    }

    /// State without any key.
    pub fn make(&self) -> Box<dyn Accumulator> {
        let Some(input) = &self.input else {
            return Box::new(count::CountRows::default());
        };
        match self.kind {
            AggregateKind::Count => Box::new(count::CountValues::default()),
            AggregateKind::Sum => sum::make(input, &self.output, &self.text),
            AggregateKind::Mean => mean::make(input),
            AggregateKind::Min | AggregateKind::Max => {
                let largest = self.kind == AggregateKind::Max;
                match Physical::of(input).expect("types are checked when the plan is built") {
                    Physical::View => Box::new(bytes::ExtremeBytes::new(largest)),
                    fixed => extreme::make(fixed, largest),
                }
            }
        }
    }
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
fn mask_unseen(seen: impl Fn(usize) -> bool, from: usize, to: usize, out: &mut ColumnBuf) {
    if (from..to).any(|key| !seen(key)) {
        out.refill_mask().extend((from..to).map(|key| u8::from(seen(key))));
    }
}
