//! Functions from outside: code that a running query calls with batches.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_types::OutsideError;

/// A function over batches.
pub trait BatchFunction: Send + Sync {
    /// Returns its name.
    fn name(&self) -> &str;
    /// Calls it.
    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError>;
    /// Returns whether every column that it returns has to be declared: an undeclared one is an error, and not dropped.
    fn declares_all(&self) -> bool {
        false
    }
    /// Describes an error, for readers of the rows that the function rejects.
    fn describe(&self, error: &OutsideError) -> String {
        error.to_string()
    }
    /// Adds to an error which row it is about.
    fn blame(&self, error: OutsideError, row: &RecordBatch) -> OutsideError;
    /// Returns itself, for a caller that knows its type.
    fn as_any(&self) -> &dyn Any;
}

/// A function that returns the watermark behind a batch.
pub trait WatermarkFunction: Send + Sync {
    /// Returns its name.
    fn name(&self) -> &str;
    /// Calls it. Returns a time in ticks, or `None` if the watermark stays where it is.
    fn call(&self, batch: &RecordBatch) -> Result<Option<i64>, OutsideError>;
    /// Returns a number that only copies of the same function share.
    fn identity(&self) -> u64;
    /// Returns itself, for a caller that knows its type.
    fn as_any(&self) -> &dyn Any;
}

/// Where watermarks come from, if not from the times of rows.
#[derive(Clone)]
pub enum Watermarks {
    /// From a column: the largest value so far.
    Column(String),
    /// From a column with the watermark before each row, for rows that were judged elsewhere before.
    Before(String),
    /// From a function over each batch.
    Function(Arc<dyn WatermarkFunction>),
}

impl Watermarks {
    /// Returns its replacement in a list of pairs, or itself.
    pub fn replaced<'a>(&'a self, replaced: &'a [(Self, Self)]) -> &'a Self {
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

/// A function in a plan. Two are equal if they are the same object.
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
