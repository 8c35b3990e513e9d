//! Typed expressions over the columns of a run.
//!
//! An [`Expr`] is what a user wrote: names, literals, operators. [`compile`] checks it against a schema, settles every
//! type and returns an [`Expression`] that computes whole columns with one tight loop per operator, and no dispatch
//! per row.
//!
//! - [`expr`], [`function`], [`literal`], [`postfix`]: the tree, its functions and literals, its serialised form
//! - [`compile`]: names resolved to slots, types settled, conversions inserted
//! - [`evaluate`], [`selection`]: evaluation over a run, to a column or to the rows that pass
//! - [`failure`]: rows that have no result
//! - [`arithmetic`], [`comparison`], [`logic`], [`conversion`] and the private modules beside them: the kernels

#![forbid(unsafe_code)]

pub mod arithmetic;
mod bits;
mod blend;
mod calendar;
mod cast_type;
mod choice;
pub mod comparison;
pub mod compile;
pub mod conversion;
mod display;
pub mod evaluate;
pub mod expr;
pub mod failure;
mod format;
pub mod function;
mod instructions;
mod intermediate;
mod label;
pub mod literal;
pub mod logic;
mod map;
mod matching;
mod node;
mod operand;
mod parse;
pub mod postfix;
mod reciprocal;
mod rounding;
mod scaled;
pub mod selection;
mod strings;
mod text;
mod typing;
mod zone;

pub use cast_type::read_type;
pub use compile::{ExprScope, Expression, compile};
pub use expr::{BinaryOp, Expr, MAX_DEPTH, MAX_NODES, UnaryOp};
pub use failure::Rejected;
pub use function::ScalarFunction;
pub use literal::Literal;
