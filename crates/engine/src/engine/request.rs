//! What a user asks for: how a query or a shared source runs.

use crate::checkpoint::InputPart;
use crate::options::Strategy;
use penstock_plan::{Function, Watermarks};
use penstock_tasks::rejects::OnError;

/// How a query runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions<'a> {
    /// What it is called.
    pub name: Option<&'a str>,
    /// What becomes of rows that an operator rejects.
    pub on_error: OnError,
    /// Workers that one operator may take; by default all there are.
    pub parallelism: Option<usize>,
    /// How such an operator is spread over them.
    pub strategy: Strategy,
    /// The part of the input that it runs over, on one worker, if that is not all.
    pub part: Option<&'a InputPart>,
    /// Functions of the plan, each with the one that the query calls in its place.
    pub functions: &'a [(Function, Function)],
    /// The same of functions that give watermarks.
    pub watermarks: &'a [(Watermarks, Watermarks)],
}

/// How a shared source runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShareOptions<'a> {
    /// What it is called.
    pub name: Option<&'a str>,
    /// Whether it waits to be told to begin, and not for its first reader.
    pub held: bool,
    /// What becomes of rows that it cannot take.
    pub on_error: OnError,
    /// Functions of the stream that give watermarks, each with the one that is called in its place.
    pub watermarks: &'a [(Watermarks, Watermarks)],
}
