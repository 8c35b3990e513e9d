//! Keeps the rows for which a predicate holds. Null counts as not holding.

use penstock_expr::Expression;
use penstock_memory::Run;
use penstock_types::ComputeError;

use crate::Stage;

/// A filter.
pub struct Filter {
    predicate: Expression,
}

impl Filter {
    /// Keeps the rows for which `predicate`, a bool, holds.
    pub fn new(predicate: Expression) -> Self {
        Self { predicate }
    }
}

/// Appends the numbers of the rows whose byte is 1.
fn select_set(mask: &[u8], rows: &mut Vec<u32>) {
    // Branch-free: write every row number, step on only past those that are kept.
    rows.resize(mask.len(), 0);
    let mut kept = 0;
    for (row, &set) in mask.iter().enumerate() {
        rows[kept] = row as u32;
        kept += usize::from(set);
    }
    rows.truncate(kept);
}

impl Stage for Filter {
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError> {
        let holds = self.predicate.evaluate(run)?;
        let mut rows = run.selection();
        let column = holds.as_column();
        match column.valid {
            None => select_set(column.fixed(), &mut rows),
            Some(valid) => {
                let known: Vec<u8> =
                    column.fixed::<u8>().iter().zip(valid).map(|(value, valid)| value & valid).collect();
                select_set(&known, &mut rows);
            }
        }
        run.give_back(holds);
        run.select(rows);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn selects_what_is_set(mask in prop::collection::vec(0_u8..2, 0..200)) {
            let mut rows = Vec::new();
            select_set(&mask, &mut rows);
            let expected: Vec<u32> = (0..mask.len() as u32).filter(|&row| mask[row as usize] == 1).collect();
            prop_assert_eq!(rows, expected);
        }
    }
}
