//! What a user asks for: inputs, sinks, and how a query or a shared source runs.

use crate::options::Strategy;
use crate::plan::{Function, Watermarks};
use crate::query::Query;
use crate::share::{OnLag, SharedSource};
use crate::standing::Part;
use crate::tasks::feed::FeedEnd;
use crate::tasks::readers::replay::Replay;
use crate::tasks::rejects::OnError;
use crate::tasks::writers::function::{Deliver, Doorbell};

/// Where the rows of a query come from.
pub enum Input {
    /// They are pushed: the other end of a [`crate::feed`].
    Feed(FeedEnd),
    /// The results of another query, which the caller reads and pushes up to their end.
    Chained(FeedEnd, Query),
    /// They are in memory, and replayed.
    Replay(Replay),
    /// A source that others read as well, and what happens if the query holds it up.
    Shared(SharedSource, OnLag),
}

/// Where the results of a query go.
pub enum Sink {
    /// Into [`Output::batches`], when the query has ended.
    Collect,
    /// To the readers of [`Query::results`]; without one the query is held up.
    Results,
    /// To the caller's own function, which rings the doorbell when it may take a batch that it gave back.
    Deliver(Box<dyn Deliver>, Doorbell),
    /// Nowhere: they are counted only.
    Discard,
}

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
    pub part: Option<&'a Part>,
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
