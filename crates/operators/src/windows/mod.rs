//! Windowed aggregation: keys, windows on a grid or in sessions, and the state per key and window.
//!
//! - `spec`: the specification of an operator
//! - `grid`: tumbling and sliding windows, in panes; `slider`: sliding windows out of panes
//! - `sessions`: windows between gaps
//! - `keyed`: keys with their accumulators; `output`: result rows; `snapshot`: state in portable form

mod grid;
mod keyed;
mod output;
mod sessions;
mod slider;
mod snapshot;
mod spec;

pub use spec::{WindowPort, WindowSpec};

use std::sync::Arc;

use penstock_progress::Windows;

use crate::contract::Stateful;

/// Creates the operator of that aggregation.
pub fn windowed(spec: WindowSpec) -> Box<dyn Stateful> {
    let windows = spec.windows;
    let shape = Arc::new(spec::ResolvedSpec::new(spec));
    match windows {
        Windows::Aligned(windows) => Box::new(grid::GridWindows::new(shape, windows)),
        Windows::Session { gap } => Box::new(sessions::Sessions::new(shape, gap)),
    }
}
