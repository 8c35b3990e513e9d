//! Functions from outside: code that the engine calls with batches.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::feed::OutsideError;

/// A function over batches.
pub trait BatchFunction: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;
    /// Calls it.
    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError>;
    /// What is known of its error, put into words, for those who get rows that it rejects.
    fn describe(&self, error: &OutsideError) -> String {
        error.to_string()
    }
    /// The error, told which row it is about.
    fn blame(&self, error: OutsideError, row: &RecordBatch) -> OutsideError;
    /// Itself, for whoever knows what it is.
    fn as_any(&self) -> &dyn Any;
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
