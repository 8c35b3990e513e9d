//! The parameter of policies that go block by block: how many rows a task may take in one run.

use super::parameters::{Parameter, ParameterError, Value, find};
use crate::quantum::BLOCK_ROWS;

/// Rows of one run.
#[derive(Debug)]
pub(super) struct BlockRows(u64);

impl Default for BlockRows {
    fn default() -> Self {
        Self(BLOCK_ROWS)
    }
}

impl BlockRows {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.0
    }

    /// Returns it as a parameter.
    pub(super) fn parameter(&self) -> Parameter {
        let about = "Rows that a task may take in one run.";
        Parameter { name: "block_rows", about, value: Value::Rows(self.0) }
    }

    /// Sets it, for a policy that has no other parameter.
    pub(super) fn set(
        &mut self,
        policy: &'static str,
        name: &str,
        value: Value,
    ) -> Result<(), ParameterError> {
        let parameter = find(policy, &[self.parameter()], name, value)?;
        match parameter.value {
            Value::Rows(rows) if rows > 0 => self.0 = rows,
            given => {
                let (name, range) = (parameter.name, "one row or more");
                return Err(ParameterError::OutOfRange { policy, name, range, given });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_row_at_least() {
        let mut block = BlockRows::default();
        assert_eq!(block.rows(), BLOCK_ROWS);
        block.set("some", "block_rows", Value::Rows(7)).expect("seven rows are a block");
        let error = block.set("some", "block_rows", Value::Rows(0)).expect_err("no rows are none");
        assert_eq!(
            error.to_string(),
            "parameter \"block_rows\" of policy \"some\" is one row or more, not 0"
        );
        assert_eq!(block.rows(), 7);
    }
}
