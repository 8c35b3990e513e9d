//! The refusal of memory that does not fit the budget.

use penstock_types::ByteSize;
use thiserror::Error;

/// A request for memory that does not fit the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "out of memory budget: {} more needed, {} of {} in use; raise budget=..., or run fewer or smaller queries at a time",
    ByteSize(*needed_bytes as u64), ByteSize(*used_bytes as u64), ByteSize(*budget_bytes as u64)
)]
pub struct MemoryLimit {
    /// Bytes requested, on top of those in use.
    pub needed_bytes: usize,
    /// Bytes in use at the request, without payload where that does not count.
    pub used_bytes: usize,
    /// The budget.
    pub budget_bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_much_of_what_and_what_to_do() {
        let error = MemoryLimit { needed_bytes: 96 << 10, used_bytes: 992 << 10, budget_bytes: 3 << 19 };
        assert_eq!(
            error.to_string(),
            "out of memory budget: 96 KiB more needed, 992 KiB of 1.5 MiB in use; \
             raise budget=..., or run fewer or smaller queries at a time"
        );
    }
}
