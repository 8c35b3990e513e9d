//! Rows that have no result.
//!
//! A kernel computes all rows of a run at once and reports whether one that counts has failed. Only then are rows
//! looked at one by one. In strict evaluation the first of them is the error of the run. In lenient evaluation each of
//! them is rejected, and does not count any more.
//!
//! FAILURE-1. A row counts unless it is null, is not chosen by the enclosing `when`, or was rejected before.

use std::borrow::Cow;

use penstock_types::ComputeError;

/// A row that has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The row, among those present in the run.
    pub row: u32,
    /// The error it would have failed with.
    pub error: ComputeError,
}

/// The rows that count, and how failing rows are reported.
pub(crate) struct Failures<'a> {
    /// The rows chosen by the enclosing `when`; all of them without one.
    chosen: Option<Vec<u8>>,
    lenient: Option<Rejections<'a>>,
}

struct Rejections<'a> {
    rejected: &'a mut Vec<Rejected>,
    /// 1 for every row that was not rejected.
    good: Vec<u8>,
}

impl<'a> Failures<'a> {
    /// Ends the evaluation at the first failure.
    pub(crate) fn strict() -> Self {
        Self { chosen: None, lenient: None }
    }

    /// Adds failures to `rejected`; rows already there do not count.
    pub(crate) fn lenient(rejected: &'a mut Vec<Rejected>, rows: usize) -> Self {
        let mut good = vec![1; rows];
        for earlier in &*rejected {
            good[earlier.row as usize] = 0;
        }
        Self { chosen: None, lenient: Some(Rejections { rejected, good }) }
    }

    /// Returns the rows that count (FAILURE-1) among the valid ones; all of them without a mask.
    pub(crate) fn wanted<'v>(&'v self, valid: Option<&'v [u8]>) -> Option<Cow<'v, [u8]>> {
        let good = self.lenient.as_ref().map(|lenient| lenient.good.as_slice());
        let mut masks = [valid, self.chosen.as_deref(), good].into_iter().flatten();
        let mut wanted = Cow::Borrowed(masks.next()?);
        for mask in masks {
            for (wanted, mask) in wanted.to_mut().iter_mut().zip(mask) {
                *wanted &= mask;
            }
        }
        Some(wanted)
    }

    /// Finds the rows that count and for which `fails` holds.
    pub(crate) fn settle(
        &mut self,
        rows: usize,
        valid: Option<&[u8]>,
        fails: impl Fn(usize) -> bool,
        error: impl Fn(usize) -> ComputeError,
    ) -> Result<(), ComputeError> {
        let wanted = self.wanted(valid).map(Cow::into_owned);
        for row in 0..rows {
            if wanted.as_ref().is_none_or(|mask| mask[row] != 0) && fails(row) {
                let error = error(row);
                let Some(lenient) = &mut self.lenient else { return Err(error) };
                lenient.good[row] = 0;
                lenient.rejected.push(Rejected { row: row as u32, error });
            }
        }
        Ok(())
    }

    /// Takes the rows chosen by the enclosing `when`, to be put back by [`Failures::choose`].
    pub(crate) fn take_chosen(&mut self) -> Option<Vec<u8>> {
        self.chosen.take()
    }

    /// Makes only these rows count from now on.
    pub(crate) fn choose(&mut self, chosen: Option<Vec<u8>>) {
        self.chosen = chosen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(row: usize) -> ComputeError {
        ComputeError::TooLarge(row.to_string())
    }

    #[test]
    fn strict_evaluation_ends_at_the_first_row_that_counts() {
        let mut failures = Failures::strict();
        assert_eq!(failures.settle(3, Some(&[0, 1, 1]), |_| true, error), Err(error(1)));
        failures.choose(Some(vec![1, 0, 1]));
        assert_eq!(failures.settle(3, Some(&[0, 1, 1]), |_| true, error), Err(error(2)));
        assert_eq!(failures.settle(3, Some(&[0, 1, 0]), |_| true, error), Ok(()));
    }

    #[test]
    fn a_row_is_rejected_once() {
        let mut rejected = vec![Rejected { row: 2, error: error(7) }];
        let mut failures = Failures::lenient(&mut rejected, 4);
        assert_eq!(failures.settle(4, None, |row| row > 0, error), Ok(()));
        assert_eq!(failures.settle(4, None, |_| true, |_| error(9)), Ok(()));
        let rows: Vec<_> =
            rejected.iter().map(|rejected| (rejected.row, rejected.error.to_string())).collect();
        assert_eq!(rows, [(2, "7".into()), (1, "1".into()), (3, "3".into()), (0, "9".into())]);
    }
}
