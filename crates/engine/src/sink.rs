//! Where the results of a query go, as its user says.
//!
//! A new kind of output is a [`SinkWriter`] and a constructor here.

use std::sync::Arc;

use penstock_tasks::results::Results;
use penstock_tasks::writers::SinkWriter;
use penstock_tasks::writers::collect::{CollectWriter, Collected};
use penstock_tasks::writers::discard::DiscardWriter;
use penstock_tasks::writers::function::{Deliver, Doorbell, FunctionWriter};
use penstock_tasks::writers::results::ResultsWriter;

type OpenSink = dyn FnOnce(&dyn Fn() -> Results) -> OpenedSink + Send;

/// Where the results of an output go.
pub struct Sink(Box<OpenSink>);

/// A sink that was opened.
pub(crate) struct OpenedSink {
    pub(crate) writer: Box<dyn SinkWriter>,
    /// The batches of a result that is kept whole.
    pub(crate) collected: Option<Collected>,
    /// The queue that results are read from.
    pub(crate) results: Option<Results>,
}

impl OpenedSink {
    fn of(writer: impl SinkWriter + 'static) -> Self {
        Self { writer: Box::new(writer), collected: None, results: None }
    }
}

impl Sink {
    /// Keeps results for [`Query::take_output`](crate::Query::take_output), when the query has ended.
    pub fn collect() -> Self {
        Self(Box::new(|_| {
            let collected = Collected::default();
            let opened = OpenedSink::of(CollectWriter::new(Arc::clone(&collected)));
            OpenedSink { collected: Some(collected), ..opened }
        }))
    }

    /// Lets readers take them from [`Query::results`](crate::Query::results); unread results block the query.
    pub fn results() -> Self {
        Self(Box::new(|queue| {
            let results = queue();
            let opened = OpenedSink::of(ResultsWriter::new(results.clone()));
            OpenedSink { results: Some(results), ..opened }
        }))
    }

    /// Hands them to code of the caller's, which rings the bell when it may take a batch that it gave back.
    pub fn deliver(deliver: Box<dyn Deliver>, doorbell: Doorbell) -> Self {
        Self::writer(FunctionWriter::new(deliver, doorbell))
    }

    /// Drops them: they are counted only.
    pub fn discard() -> Self {
        Self::writer(DiscardWriter)
    }

    /// Hands them to a writer.
    pub fn writer(writer: impl SinkWriter + 'static) -> Self {
        Self(Box::new(|_| OpenedSink::of(writer)))
    }

    /// Opens it; `queue` makes a queue of results.
    pub(crate) fn open(self, queue: &dyn Fn() -> Results) -> OpenedSink {
        (self.0)(queue)
    }
}
