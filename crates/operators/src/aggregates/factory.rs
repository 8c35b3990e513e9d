//! Makes the state of aggregates.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use penstock_memory::Physical;
use penstock_types::{PlanError, TypeName};

use super::bytes::ChosenBytes;
use super::cells::Cells;
use super::count::Count;
use super::extreme::Extreme;
use super::first_last::FirstLast;
use super::integer_sum::IntegerTotals;
use super::moments::Deviation;
use super::state::portable;
use super::total::{Exact, Float, TotalResult, Totals};
use super::{Accumulator, AggregateKind, Choice, distinct};

/// Makes fresh accumulators for the windows of one query.
#[derive(Clone, Debug)]
pub struct AccumulatorFactory {
    kind: AggregateKind,
    input: Option<DataType>,
    output: DataType,
    /// The aggregate and the type of its result, as they print, for errors.
    names: Arc<(String, String)>,
}

/// Runs `$body` with `$type` bound to the Rust type of that storage; `$view` for strings and binary.
macro_rules! with_type {
    ($physical:expr, $type:ident => $body:expr, $view:expr) => {
        with_type!(@each $physical, $type => $body, $view,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64, I128 i128)
    };
    (@each $physical:expr, $type:ident => $body:expr, $view:expr, $($kind:ident $native:ty),*) => {
        match $physical {
            $(Physical::$kind => {
                type $type = $native;
                $body
            })*
            Physical::View => $view,
        }
    };
}

impl AccumulatorFactory {
    /// Creates a factory for aggregate `kind` over values of type `input`.
    pub fn new(kind: AggregateKind, input: Option<DataType>, text: String) -> Result<Self, PlanError> {
        let output = kind.output(input.as_ref(), &text)?;
        let names = Arc::new((text, TypeName(&output).to_string()));
        Ok(Self { kind, input, output, names })
    }

    /// Returns the type of the results.
    pub fn output(&self) -> &DataType {
        &self.output
    }

    /// Returns true if accumulators need the time of each row.
    pub fn needs_time(&self) -> bool {
        self.input.is_some() && matches!(self.kind, AggregateKind::First | AggregateKind::Last)
    }

    /// Makes state without any key.
    pub fn make(&self) -> Box<dyn Accumulator> {
        let Some(input) = &self.input else {
            return Cells::boxed(Count);
        };
        match self.kind {
            AggregateKind::Count => Cells::boxed(Count),
            AggregateKind::CountDistinct => distinct::make(input),
            AggregateKind::Sum => {
                let unsigned = self.output == DataType::UInt64;
                total(input, TotalResult::Sum { unsigned, names: Arc::clone(&self.names) })
            }
            AggregateKind::Mean => total(input, TotalResult::Mean { scale: scale(input) }),
            AggregateKind::Var => spread(input, false),
            AggregateKind::Std => spread(input, true),
            AggregateKind::Min => chosen(input, Choice::Smallest),
            AggregateKind::Max => chosen(input, Choice::Largest),
            AggregateKind::First => chosen(input, Choice::First),
            AggregateKind::Last => chosen(input, Choice::Last),
        }
    }

    /// Returns the columns of the state in a snapshot.
    pub(crate) fn state(&self) -> Vec<(&'static str, DataType, bool)> {
        use DataType::{Float64, Int64, UInt64};
        let Some(input) = &self.input else {
            return vec![("count", Int64, false)];
        };
        let whole = !matches!(physical(input), Physical::F32 | Physical::F64 | Physical::I128);
        match self.kind {
            AggregateKind::Count => vec![("count", Int64, false)],
            AggregateKind::CountDistinct => {
                let field = Field::new_list_field(portable(input), true);
                vec![("values", DataType::LargeList(Arc::new(field)), false)]
            }
            AggregateKind::Sum | AggregateKind::Mean if whole => {
                vec![("count", UInt64, false), ("low", Int64, false), ("carry", Int64, false)]
            }
            AggregateKind::Sum | AggregateKind::Mean if physical(input) == Physical::I128 => vec![
                ("count", UInt64, false),
                ("low", UInt64, false),
                ("high", Int64, false),
                ("carry", Int64, false),
            ],
            AggregateKind::Sum | AggregateKind::Mean => {
                vec![("count", UInt64, false), ("total", Float64, false)]
            }
            AggregateKind::Var | AggregateKind::Std => {
                vec![("count", UInt64, false), ("mean", Float64, false), ("squares", Float64, false)]
            }
            AggregateKind::Min | AggregateKind::Max => vec![("value", portable(input), true)],
            AggregateKind::First | AggregateKind::Last => {
                vec![("time", Int64, false), ("value", portable(input), true)]
            }
        }
    }
}

fn physical(input: &DataType) -> Physical {
    Physical::of(input).expect("types are checked when the plan is built")
}

/// Returns the number of digits after the point.
fn scale(input: &DataType) -> i8 {
    if let DataType::Decimal128(_, scale) = input { *scale } else { 0 }
}

fn total(input: &DataType, outcome: TotalResult) -> Box<dyn Accumulator> {
    match physical(input) {
        Physical::I8 => IntegerTotals::<i8>::boxed(outcome),
        Physical::I16 => IntegerTotals::<i16>::boxed(outcome),
        Physical::I32 => IntegerTotals::<i32>::boxed(outcome),
        Physical::I64 => IntegerTotals::<i64>::boxed(outcome),
        Physical::U8 => IntegerTotals::<u8>::boxed(outcome),
        Physical::U16 => IntegerTotals::<u16>::boxed(outcome),
        Physical::U32 => IntegerTotals::<u32>::boxed(outcome),
        Physical::U64 => IntegerTotals::<u64>::boxed(outcome),
        Physical::F32 => Cells::boxed(Totals::<Float, f32> { outcome, of: PhantomData }),
        Physical::F64 => Cells::boxed(Totals::<Float, f64> { outcome, of: PhantomData }),
        Physical::I128 => Cells::boxed(Totals::<Exact, i128> { outcome, of: PhantomData }),
        Physical::View => unreachable!("the plan adds numbers only"),
    }
}

fn spread(input: &DataType, root: bool) -> Box<dyn Accumulator> {
    let scale = scale(input);
    with_type!(physical(input), T => Cells::boxed(Deviation::<T> { scale, root, of: PhantomData }),
        unreachable!("the plan takes the variance of numbers only"))
}

fn chosen(input: &DataType, choice: Choice) -> Box<dyn Accumulator> {
    let data_type = input.clone();
    match choice {
        Choice::Smallest | Choice::Largest => {
            let largest = choice.is_largest();
            with_type!(physical(input), T => Cells::boxed(Extreme::<T> { data_type, largest, of: PhantomData }),
                Cells::boxed(ChosenBytes { data_type, choice }))
        }
        Choice::First | Choice::Last => {
            let last = choice.is_largest();
            with_type!(physical(input), T => Cells::boxed(FirstLast::<T> { data_type, last, of: PhantomData }),
                Cells::boxed(ChosenBytes { data_type, choice }))
        }
    }
}
