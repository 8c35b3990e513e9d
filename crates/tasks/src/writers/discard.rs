//! Results that go nowhere: they are counted only.

use penstock_memory::Parcel;

use super::SinkWriter;
use crate::error::RunError;

/// Drops what it is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardWriter;

impl SinkWriter for DiscardWriter {
    fn write(&mut self, _parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        Ok(None)
    }

    fn only_counts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coordinator, parcel};
    use super::*;

    #[test]
    fn what_is_discarded_leaves_the_budget() {
        let memory = coordinator();
        assert!(DiscardWriter.only_counts());
        assert!(DiscardWriter.write(parcel(&memory, 3)).unwrap().is_none());
        assert_eq!(memory.snapshot().used_bytes, 0);
    }
}
