//! Functions from outside: code that the engine calls with batches.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_types::OutsideError;

/// A function over batches.
pub trait BatchFunction: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;
    /// Calls it.
    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError>;
    /// Whether all columns that it gives back have to be declared: one that is not is a mistake, and not left out.
    fn declares_all(&self) -> bool {
        false
    }
    /// What is known of its error, put into words, for those who get rows that it rejects.
    fn describe(&self, error: &OutsideError) -> String {
        error.to_string()
    }
    /// The error, told which row it is about.
    fn blame(&self, error: OutsideError, row: &RecordBatch) -> OutsideError;
    /// Itself, for whoever knows what it is.
    fn as_any(&self) -> &dyn Any;
}

/// A function that says how far event time has come behind a batch.
pub trait WatermarkFunction: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;
    /// Calls it: a time in ticks, or nothing new.
    fn call(&self, batch: &RecordBatch) -> Result<Option<i64>, OutsideError>;
    /// A number that only copies of the same function share.
    fn identity(&self) -> u64;
    /// Itself, for whoever knows what it is.
    fn as_any(&self) -> &dyn Any;
}

/// Where watermarks come from, if not from the times.
#[derive(Clone)]
pub enum Watermarks {
    /// From a column: the largest value so far.
    Column(String),
    /// From a column that says how far event time had come before the row, for rows that stood elsewhere before.
    Before(String),
    /// From a function over each batch.
    Function(Arc<dyn WatermarkFunction>),
}

impl Watermarks {
    /// Returns what is in its place in a list of pairs, or itself.
    pub(crate) fn replaced<'a>(&'a self, replaced: &'a [(Self, Self)]) -> &'a Self {
        replaced.iter().find(|(written, _)| written == self).map_or(self, |(_, called)| called)
    }
}

impl PartialEq for Watermarks {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(one), Self::Column(another)) | (Self::Before(one), Self::Before(another)) => {
                one == another
            }
            (Self::Function(one), Self::Function(another)) => one.identity() == another.identity(),
            _ => false,
        }
    }
}

impl fmt::Debug for Watermarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(name) => write!(f, "Column({name})"),
            Self::Before(name) => write!(f, "Before({name})"),
            Self::Function(function) => write!(f, "Function({})", function.name()),
        }
    }
}

/// A function in a plan. Two are the same if they are one.
#[derive(Clone)]
pub struct Function(pub Arc<dyn BatchFunction>);

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.0.name())
    }
}
