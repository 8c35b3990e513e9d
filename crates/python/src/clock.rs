//! Clocks that tests move.

use std::time::Duration;

use penstock_border::guarded;
use penstock_engine::clock::ManualClock as Inner;
use pyo3::prelude::*;

/// A clock that moves only when it is told to.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct ManualClock {
    pub(crate) inner: Inner,
}

#[guarded]
#[pymethods]
impl ManualClock {
    #[new]
    fn new(wall_us: i64) -> Self {
        Self { inner: Inner::new(wall_us) }
    }

    /// Advances the time by so many microseconds.
    fn advance(&self, py: Python<'_>, us: u64) {
        py.detach(|| self.inner.advance(Duration::from_micros(us)));
    }

    /// Sets the wall-clock time.
    fn set_wall(&self, wall_us: i64) {
        self.inner.set_wall(wall_us);
    }
}
