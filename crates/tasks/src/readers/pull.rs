//! Batches that are pulled: a thread of their own reads them into a [`feed`](crate::feed), whose other end is read
//! like any other ([`PushReader`](super::push::PushReader)).
//!
//! PULL-1. A batch that was taken from the input goes into the feed, also if that is cut off meanwhile: the puller says
//!     so before it takes one ([`Puller::promise`]). What is never asked for is not lost.

use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_memory::BatchError;
use penstock_types::OutsideError;
use thiserror::Error;

use crate::feed::{Feed, Pushed};

/// Why a batch was not taken.
#[derive(Debug, Error)]
pub enum RefusedBatch {
    /// The function that gives watermarks has failed.
    #[error("{0}")]
    Failed(OutsideError),
    /// It does not have the columns that the query expects.
    #[error(transparent)]
    Unfit(BatchError),
}

impl RefusedBatch {
    /// Returns the error that the query fails with.
    pub fn into_outside(self) -> OutsideError {
        match self {
            Self::Failed(error) => error,
            Self::Unfit(error) => error.into(),
        }
    }
}

/// Whether more input is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is.
    More,
    /// The query has ended, or takes no more.
    Nothing,
}

/// Why an iterator was not given to its end.
#[derive(Debug)]
pub enum GiveError<E> {
    /// The iterator has failed.
    Input(E),
    /// A batch was not taken.
    Refused(RefusedBatch),
}

impl<E: Into<OutsideError>> GiveError<E> {
    /// Returns the error that the query fails with.
    pub fn into_outside(self) -> OutsideError {
        match self {
            Self::Input(error) => error.into(),
            Self::Refused(refused) => refused.into_outside(),
        }
    }
}

/// Reads input into a feed. Dropping it ends the input.
pub struct Puller(Feed);

impl Puller {
    /// Reads into that feed.
    pub fn new(feed: Feed) -> Self {
        Self(feed)
    }

    /// Notes that this thread reads the input, and must not wait for what comes of it.
    pub fn note_thread(&self) {
        self.0.note_puller();
    }

    /// Returns true if the query takes no more: nothing must be taken from the input.
    pub fn is_cut(&self) -> bool {
        self.0.is_cut()
    }

    /// Returns true if the query has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.is_ended()
    }

    /// Promises a batch that is about to be taken from the input (PULL-1). Returns false if the query takes no more.
    pub fn promise(&self) -> bool {
        self.0.hold()
    }

    /// Takes a promise back that no batch has followed.
    pub fn release(&self) {
        self.0.release();
    }

    /// Gives a batch to the query, however long that takes. While the feed is full, it looks around after each `slice`,
    /// and gives up if `go_on` is false.
    ///
    /// # Errors
    /// A batch that does not fit, or a watermark function that fails.
    pub fn give(
        &mut self,
        batch: RecordBatch,
        slice: Duration,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Demand, RefusedBatch> {
        if !self.promise() {
            return Ok(Demand::Nothing);
        }
        let mut waiting = batch;
        loop {
            match self.0.push(waiting, slice) {
                Pushed::Taken => return Ok(Demand::More),
                Pushed::Ended | Pushed::Cut | Pushed::Itself => return Ok(Demand::Nothing),
                Pushed::Failed(error) => return Err(RefusedBatch::Failed(error)),
                Pushed::Unfit(error) => return Err(RefusedBatch::Unfit(error)),
                Pushed::Full(_) if !go_on() => return Ok(Demand::Nothing),
                Pushed::Full(back) => waiting = back,
            }
        }
    }

    /// Gives all batches of an iterator to the query, as [`Puller::give`].
    ///
    /// # Errors
    /// Those of the iterator, and of [`Puller::give`].
    pub fn give_all<E>(
        &mut self,
        batches: impl Iterator<Item = Result<RecordBatch, E>>,
        slice: Duration,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Demand, GiveError<E>> {
        for batch in batches {
            let batch = batch.map_err(GiveError::Input)?;
            let wanted = if go_on() { self.give(batch, slice, &mut go_on) } else { Ok(Demand::Nothing) };
            if wanted.map_err(GiveError::Refused)? == Demand::Nothing {
                return Ok(Demand::Nothing);
            }
        }
        Ok(Demand::More)
    }

    /// Ends the input with an error: the query fails with it, once it has taken in what came before.
    pub fn fail(self, error: OutsideError) {
        self.0.fail(error);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int64Array;

    use super::*;
    use crate::clock::tests::Hand;
    use crate::context::tests::context;
    use crate::feed::feed;
    use crate::readers::push::PushReader;
    use crate::readers::{Polled, SourceReader};

    fn batch(rows: i64) -> RecordBatch {
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap()
    }

    fn pulling(batches: usize) -> (Puller, PushReader) {
        let (feed, end) = feed(batches, Hand::at(0));
        end.handle().start();
        let mut reader = PushReader::new(end);
        reader.watermark_by(None).unwrap();
        (Puller::new(feed), reader)
    }

    #[test]
    fn batches_come_in_order_and_then_the_error_of_the_input() {
        let (mut puller, mut reader) = pulling(4);
        let failing = [Ok(batch(1)), Ok(batch(2)), Err("the socket is closed")];
        let error = puller.give_all(failing.into_iter(), Duration::ZERO, || true).unwrap_err();
        puller.fail(error.into_outside());
        let context = context(&Hand::at(0));
        for rows in [1, 2] {
            let Ok(Polled::Batch(batch)) = reader.poll(&context) else { panic!("{rows} rows were given") };
            assert_eq!(batch.rows.num_rows(), rows);
        }
        let error = reader.poll(&context).unwrap_err();
        assert_eq!(error.to_string(), "the source failed: the socket is closed");
    }

    #[test]
    fn a_query_that_takes_no_more_gets_what_was_promised_only() {
        let (mut puller, mut reader) = pulling(4);
        assert!(!puller.is_cut() && puller.promise());
        reader.handle().cut();
        let give = |puller: &mut Puller| puller.give(batch(1), Duration::ZERO, || true).unwrap();
        assert_eq!(give(&mut puller), Demand::More, "it was promised");
        assert!(puller.is_cut() && !puller.promise());
        assert_eq!(give(&mut puller), Demand::Nothing);
        let context = context(&Hand::at(0));
        assert!(matches!(reader.poll(&context), Ok(Polled::Batch(_))));
        assert!(matches!(reader.poll(&context), Ok(Polled::Ended)));
    }

    #[test]
    fn a_query_that_has_ended_wants_nothing() {
        let (mut puller, reader) = pulling(4);
        drop(reader);
        assert!(puller.has_ended());
        let batches = (0..3).map(|_| Ok::<_, OutsideError>(batch(1)));
        assert_eq!(puller.give_all(batches, Duration::ZERO, || true).unwrap(), Demand::Nothing);
    }

    #[test]
    fn a_full_feed_is_waited_for_until_the_caller_gives_up() {
        let (mut puller, _reader) = pulling(1);
        let mut looks = 0;
        let mut give = |puller: &mut Puller| {
            puller.give(batch(1), Duration::ZERO, || {
                looks += 1;
                looks < 3
            })
        };
        assert_eq!(give(&mut puller).unwrap(), Demand::More);
        assert_eq!(give(&mut puller).unwrap(), Demand::Nothing);
        assert_eq!(looks, 3);
    }
}
