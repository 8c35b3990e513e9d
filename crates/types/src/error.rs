//! Errors that pass through several crates before a user reads them.

use std::error::Error as StdError;

use thiserror::Error;

/// An error raised by code outside the project, such as a user's function or iterator.
pub type OutsideError = Box<dyn StdError + Send + Sync>;

/// A pipeline that cannot be built. Found when the plan is written, before any row is read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A name that no column has.
    #[error("unknown column \"{column}\"{}; the columns are: {}", did_you_mean(suggestion), available.join(", "))]
    UnknownColumn {
        /// The name as it was written.
        column: String,
        /// The column that was probably meant.
        suggestion: Option<String>,
        /// Every column.
        available: Vec<String>,
    },
    /// Operands whose types do not match.
    #[error("{expression}: {reason}")]
    TypeMismatch {
        /// The expression, as it prints.
        expression: String,
        /// The types that met, and what to do.
        reason: String,
    },
    /// A window over a stream without event time.
    #[error("{0}")]
    MissingTime(String),
    /// A column of a type that the engine does not support.
    #[error("column \"{column}\" has type {type_name}, which is not supported{hint}")]
    UnsupportedType {
        /// The column.
        column: String,
        /// Its type.
        type_name: String,
        /// What to do about it: empty, or starting with "; ".
        hint: String,
    },
    /// A duration that cannot be read or does not fit the time column.
    #[error("bad duration \"{text}\": {reason}")]
    Duration {
        /// The duration as it was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Any other fault of a plan, described in full.
    #[error("{0}")]
    Invalid(String),
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

impl PlanError {
    /// Creates the error for `column`, with the closest available name.
    pub fn unknown_column<'a>(column: &str, available: impl IntoIterator<Item = &'a str>) -> Self {
        let available: Vec<String> = available.into_iter().map(str::to_owned).collect();
        let suggestion = crate::closest(column, available.iter().map(String::as_str)).map(str::to_owned);
        Self::UnknownColumn { column: column.to_owned(), suggestion, available }
    }

    /// Creates the error for mismatched types in `expression`.
    pub fn mismatch(expression: impl ToString, reason: impl Into<String>) -> Self {
        Self::TypeMismatch { expression: expression.to_string(), reason: reason.into() }
    }
}

/// A memory size that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("bad size \"{text}\": {reason}")]
pub struct SizeError {
    /// The size as it was written.
    pub text: String,
    /// What is wrong with it, and what is allowed.
    pub reason: String,
}

/// A value that cannot be computed, found at run time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ComputeError {
    /// A result outside its type.
    #[error("{type_name} overflow in {expression}: {values}; use a wider type or filter such rows out first")]
    Overflow {
        /// The expression or aggregate.
        expression: String,
        /// The type that was too small.
        type_name: String,
        /// The operands of the first such row.
        values: String,
    },
    /// An integer divided by zero.
    #[error(
        "integer division by zero in {expression}: {values}; filter such rows out first, or divide with / for a float result"
    )]
    DivisionByZero {
        /// The expression.
        expression: String,
        /// The operands of the first such row.
        values: String,
    },
    /// A value larger than a column of a run can hold.
    #[error("{0}")]
    TooLarge(String),
    /// A value that has no form in another type.
    #[error("{0}")]
    Cast(String),
}
