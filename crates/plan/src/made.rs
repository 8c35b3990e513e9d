//! What runs: made of a step and its slots, as often as there are instances.

use std::fmt;

use arrow_schema::SchemaRef;
use penstock_memory::SlotId;
use penstock_operators::{Stateful, Stateless};

use crate::function::Function;
use crate::scope::Columns;

/// What a step becomes.
pub enum Made {
    /// A stateless operator of a chain.
    Stage(Box<dyn Stateless>),
    /// An operator with state.
    Operator(Box<dyn Stateful>),
    /// A function from outside, which is called with batches.
    Function(BoundFunction),
    /// Nothing: rows come in, come together or leave another way here.
    Nothing,
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stage(_) => f.write_str("Stage"),
            Self::Operator(_) => f.write_str("Operator"),
            Self::Function(function) => f.debug_tuple("Function").field(function).finish(),
            Self::Nothing => f.write_str("Nothing"),
        }
    }
}

/// A function and the columns that it is called with.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundFunction {
    /// The function.
    pub function: Function,
    /// The columns of the batches that it gets.
    pub columns: Columns,
    /// The columns of the batches that it returns.
    pub returns: SchemaRef,
    /// Event time of the rows that it returns, if they have one.
    pub time: Option<ReturnedTime>,
}

/// Where the event time of a row that a function returns is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedTime {
    /// The column of the returned batch.
    pub column: usize,
    /// The slot that it goes to, if a reader asks for it.
    pub slot: Option<SlotId>,
    /// Whether the column is the end of a window, and the time the last tick before it.
    pub is_end: bool,
}
