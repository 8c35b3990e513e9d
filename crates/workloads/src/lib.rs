//! The benchmark workloads: data that can be generated again, row for row.
//!
//! A workload is an endless data set. Its rows are numbered from 0, and a caller asks for a range of row ids: nothing
//! is read from disk and no generator carries state from one row to the next.
//!
//! WORKLOAD-1. A row is a pure function of the seed, the options and its row id. The rows do not depend on how a range
//!     is cut into batches, or on which process makes them.
//! WORKLOAD-2. An option changes only the columns that its description names: the others keep their values, row by
//!     row.
//! WORKLOAD-3. The data set of a seed never changes between releases. The tests hold checksums of it.
//! WORKLOAD-4. Options and ranges are checked before the first row is made; making rows cannot fail.
//!
//! - [`cm`]: the events of a computing cluster, after a published trace.
//! - [`ipq`]: ad revenue and logs of many sources, with variable volumes, and the jobs of mixed tenants.
//! - [`lrb`]: Linear Road, the position reports of cars on expressways; it ends after some hours.
//! - [`me`]: the sensors of a manufacturing plant, after published data.
//! - [`nexmark`]: NEXMark, the persons, auctions and bids of an auction house.
//! - [`nyt`]: the taxi trips of New York, a model of the published data.
//! - [`sg`]: the meters of a smart grid, after published data.
//! - [`ysb`]: the Yahoo! streaming benchmark, with numbers or with text for ids.
#![forbid(unsafe_code)]

mod bounds;
mod buffers;
pub mod cm;
mod error;
pub mod ipq;
pub mod lrb;
pub mod me;
pub mod nexmark;
pub mod nyt;
mod random;
mod rates;
mod rows;
pub mod sg;
mod shapes;
mod texts;
mod times;
pub mod ysb;
mod zipf;

pub use buffers::Buffers;
pub use error::WorkloadError;
pub use rates::{MAX_STEP_EVERY_S, STEPS};
pub use rows::{Batches, Generator, MAX_BATCH_ROWS, row_range};
