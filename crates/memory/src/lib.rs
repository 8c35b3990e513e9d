//! Rows as the engine holds them: runs of columns between Arrow at the borders.
//!
//! A [`Run`] is a bundle of rows handled together. Its columns have one form whatever Arrow form
//! they came in: a slice of fixed-width values, an optional byte mask, and 16-byte views for
//! strings and binary. Fixed-width Arrow values are borrowed; bitmaps, offset strings and
//! dictionaries are turned into scratch that is used again for the next run.
//!
//! - [`batch`]: an Arrow batch, checked and made readable run by run
//! - [`column`]: the one form of a column
//! - [`view`]: strings and binary as 16-byte views
//! - [`run`]: slots, and the selections that filters leave behind
//! - [`export`]: columns of runs back into Arrow batches

#![forbid(unsafe_code)]

pub mod batch;
pub mod column;
pub mod export;
pub mod run;
pub mod view;

pub use batch::{Batch, BatchError, SourceColumns};
pub use column::{Column, ColumnBuf, Native, Physical, Values, ValuesBuf};
pub use export::Exporter;
pub use run::{Run, SlotId};
