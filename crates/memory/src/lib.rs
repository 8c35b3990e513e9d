//! Rows as the engine holds them: runs of columns between Arrow at the borders, blocks between tasks.
//!
//! A [`Run`] is a set of rows handled together. Its columns have one form, whatever form they arrived in: a slice of
//! fixed-width values, an optional byte mask, and 16-byte views for strings and binary. Fixed-width Arrow values and
//! the columns of blocks are borrowed; bitmaps, offset strings and dictionaries are converted into scratch that the
//! next run reuses.
//!
//! Rows:
//! - [`batch`]: an Arrow batch, checked and made readable run by run
//! - [`mod@column`]: the one form of a column; [`view`] and [`payload`]: strings and binary
//! - [`run`]: slots, and the selections that filters produce
//! - [`export`]: columns and blocks back into Arrow batches
//!
//! Memory:
//! - [`layout`], [`shape`], [`chunk`]: columns in blocks, blocks in chunks
//! - [`log`]: rows from one task to others, in blocks; [`signal`]: the signals between rows
//! - [`row_queue`]: the same, row by row, the baseline of the block log; [`edge`]: either of the two
//! - [`coordinator`]: the byte budget, and the supply of chunks; [`platform`]: calls to the operating system

pub mod batch;
pub mod chunk;
pub mod column;
pub mod coordinator;
pub mod edge;
pub mod export;
pub mod layout;
pub mod log;
mod parcel;
pub mod payload;
pub mod platform;
pub mod row_queue;
pub mod run;
pub mod shape;
pub mod signal;
mod undefined;
pub mod view;

pub use batch::{Batch, BatchError, SourceColumns};
pub use column::{Column, ColumnBuf, Native, Physical, Values, ValuesBuf};
pub use coordinator::{Coordinator, MemoryLimit};
pub use edge::{EdgeGauge, EdgeReader, EdgeWriter, MemoryKind};
pub use export::Exporter;
pub use layout::{ColumnKind, Layout};
pub use log::{BlockNext, Lease, LogOptions, LogReader, LogWriter, OpenError, SelectedColumn};
pub use parcel::Parcel;
pub use payload::{Payload, Payloads};
pub use run::{Run, SlotId};
pub use signal::Signal;
