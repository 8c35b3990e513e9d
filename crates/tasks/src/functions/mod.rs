//! Functions of the user's: the token that lets a task call into the interpreter.
//!
//! - `token`: one task of an engine at a time

mod token;

pub use token::{FunctionToken, Token, Turn};
