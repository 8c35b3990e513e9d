//! Where the rows of a query come from, as its user says.
//!
//! A new kind of input is a [`SourceReader`] and a constructor here.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::clock;
use crate::error::StartError;
use crate::instantiate::{Origin, OwnOrigin, SharedOrigin};
use crate::query::Query;
use crate::query::state::Inflow;
use crate::share::{OnLag, SharedSource};
use penstock_plan::{StreamStep, WatermarkFunction};
use penstock_tasks::feed::FeedEnd;
use penstock_tasks::readers::SourceReader;
use penstock_tasks::readers::push::PushReader;
use penstock_tasks::readers::replay::{Replay, ReplayReader};
use penstock_tasks::shared::Lag;

/// Where the rows of a stream come from.
pub struct Input(Box<dyn OpenInput>);

impl Input {
    /// Rows that are pushed: the other end of a [`feed`](crate::feed()).
    pub fn feed(end: FeedEnd) -> Self {
        Self(Box::new(PushedInput { end, upstream: None }))
    }

    /// The results of another query: they are read and pushed, up to their end.
    pub fn chained(end: FeedEnd, query: Query) -> Self {
        Self(Box::new(PushedInput { end, upstream: Some(query) }))
    }

    /// Rows in memory, which are replayed.
    pub fn replay(replay: Replay) -> Self {
        Self::reader(ReplayReader::new(replay, clock::system()))
    }

    /// A source that others read as well, and what happens if the query holds it up.
    pub fn shared(source: SharedSource, on_lag: OnLag) -> Self {
        Self(Box::new(SharedInput { source, on_lag }))
    }

    /// Rows of a reader.
    pub fn reader(reader: impl SourceReader + 'static) -> Self {
        Self(Box::new(OwnReader(Box::new(reader))))
    }

    /// Returns true if other queries read it as well.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Opens it for a stream.
    pub(crate) fn open(self, opening: &Opening<'_>) -> Result<Opened, StartError> {
        self.0.open(opening)
    }
}

/// The stream that an input is opened for.
pub(crate) struct Opening<'a> {
    /// The number of the engine.
    pub(crate) engine: u64,
    pub(crate) stream: &'a StreamStep,
    /// The columns that the query sees.
    pub(crate) schema: &'a SchemaRef,
    /// The function that gives watermarks, if one does.
    pub(crate) marker: Option<&'a Arc<dyn WatermarkFunction>>,
}

/// An input that was opened.
pub(crate) struct Opened {
    pub(crate) origin: Box<dyn Origin>,
    /// The feed that it reads.
    pub(crate) feed: Option<Inflow>,
    /// How a shared source asks the query for something.
    pub(crate) lag: Option<Arc<Lag>>,
}

impl Opened {
    fn own(mut reader: Box<dyn SourceReader>, opening: &Opening<'_>) -> Result<Self, StartError> {
        let marked = reader.watermark_by(opening.marker);
        marked.map_err(|error| StartError::Outside { what: "watermark function", error })?;
        Ok(Self { origin: Box::new(OwnOrigin(reader)), feed: None, lag: None })
    }
}

/// An input before it is opened.
trait OpenInput: Send {
    fn is_shared(&self) -> bool {
        false
    }

    /// Opens it: asks functions about what is there already, or waits for a shared source to let the query in.
    fn open(self: Box<Self>, opening: &Opening<'_>) -> Result<Opened, StartError>;
}

struct OwnReader(Box<dyn SourceReader>);

impl OpenInput for OwnReader {
    fn open(self: Box<Self>, opening: &Opening<'_>) -> Result<Opened, StartError> {
        Opened::own(self.0, opening)
    }
}

struct PushedInput {
    end: FeedEnd,
    upstream: Option<Query>,
}

impl OpenInput for PushedInput {
    fn open(self: Box<Self>, opening: &Opening<'_>) -> Result<Opened, StartError> {
        let ours = self.upstream.as_ref().filter(|query| query.state.engine == opening.engine);
        let feed = Inflow { feed: self.end.handle(), upstream: ours.map(|query| query.state.id) };
        let opened = Opened::own(Box::new(PushReader::new(self.end)), opening)?;
        Ok(Opened { feed: Some(feed), ..opened })
    }
}

struct SharedInput {
    source: SharedSource,
    on_lag: OnLag,
}

impl OpenInput for SharedInput {
    fn is_shared(&self) -> bool {
        true
    }

    fn open(self: Box<Self>, opening: &Opening<'_>) -> Result<Opened, StartError> {
        let source = &self.source;
        source.stream.check(opening.stream, opening.schema)?;
        let (reader, lag) = source.join(self.on_lag)?;
        let stream = Arc::clone(&source.stream);
        let origin = SharedOrigin { reader, stream, lag: Arc::clone(&lag), id: source.state.id };
        Ok(Opened { origin: Box::new(origin), feed: None, lag: Some(lag) })
    }
}
