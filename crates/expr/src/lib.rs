//! Typed expressions over the columns of a run.
//!
//! An [`Expr`] is what a user wrote: names, literals, operators. [`compile`] checks it against a
//! schema, settles every type and gives an [`Expression`] that computes whole columns with one
//! tight loop per operator, and no dispatch per row.
//!
//! - [`expr`], [`literal`], [`postfix`]: the tree, its literals, its serialised form
//! - [`compile`]: names to slots, types settled, conversions put in
//! - [`evaluate`], [`selection`]: a compiled expression over a run, as a column or as the rows that pass
//! - [`arithmetic`], [`comparison`], [`logic`], [`conversion`]: the kernels

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod comparison;
pub mod compile;
pub mod conversion;
pub mod evaluate;
pub mod expr;
pub mod literal;
pub mod logic;
mod operand;
pub mod postfix;
mod scaled;
pub mod selection;
mod typing;

pub use compile::{Expression, Scope, compile};
pub use expr::{BinaryOp, Expr, MAX_DEPTH, MAX_NODES, UnaryOp};
pub use literal::Literal;
