//! From a feed to a sink, step by step.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use penstock_memory::Parcel;
use penstock_tasks::context::Phase;
use penstock_tasks::error::RunError;
use penstock_tasks::step::{BlockedOn, Step, Task};
use penstock_tasks::writers::SinkWriter;
use penstock_tasks::writers::collect::{CollectWriter, Collected};

use crate::support::{batch, coordinator, pipeline, values};

#[test]
fn rows_pass_from_the_feed_to_the_sink_and_the_end_follows() {
    let (memory, collected) = (coordinator(), Collected::default());
    let mut pipeline = pipeline(&memory, 2, Box::new(CollectWriter::new(Arc::clone(&collected))));
    assert_eq!(pipeline.run_source().unwrap(), Step::Idle);
    pipeline.push(batch(0..5));
    pipeline.push(batch(5..6));
    assert!(pipeline.source_waker.take(), "a push wakes the source");
    assert_eq!(pipeline.pending.work().rows, 6);
    assert_eq!(pipeline.run_source().unwrap(), Step::Idle);
    assert_eq!(pipeline.pending.work().rows, 0, "what is in the log is done with");
    assert!(pipeline.sink_waker.take());
    assert_eq!(pipeline.run_sink().unwrap(), Step::Idle);
    assert_eq!(values(&collected.lock().unwrap()), [0_i64; 0], "more may come, and leave together");

    pipeline.feed = None;
    assert_eq!(pipeline.pending.work().signals, 1, "the end waits");
    assert_eq!(pipeline.run_source().unwrap(), Step::Done);
    assert_eq!(pipeline.run_sink().unwrap(), Step::Done);
    assert_eq!(values(&collected.lock().unwrap()), [0, 1, 2, 3, 4, 5]);
    let (source, sink) = (pipeline.source.numbers(0), pipeline.sink.numbers(0));
    assert_eq!((source.rows_in, source.rows_out, sink.rows_in), (6, 6, 6));
    assert_eq!((sink.held.rows, sink.is_unfinished, pipeline.sink.output()), (0, false, Some(0)));
}

#[test]
fn a_query_that_is_drained_processes_what_was_pushed() {
    let (memory, collected) = (coordinator(), Collected::default());
    let mut pipeline = pipeline(&memory, 100, Box::new(CollectWriter::new(Arc::clone(&collected))));
    pipeline.push(batch(0..3));
    pipeline.feed.as_ref().unwrap().handle().cut();
    pipeline.context.enter(Phase::Draining);
    assert_eq!(pipeline.run_source().unwrap(), Step::Done);
    assert_eq!(pipeline.run_sink().unwrap(), Step::Done);
    assert_eq!(values(&collected.lock().unwrap()), [0, 1, 2]);
}

/// Takes batches while it is open, and holds the last one back until it is flushed.
#[derive(Clone, Default)]
struct Valve(Arc<Mutex<(bool, Vec<RecordBatch>, u64)>>);

impl SinkWriter for Valve {
    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        let mut valve = self.0.lock().unwrap();
        if !valve.0 {
            return Ok(Some(parcel));
        }
        valve.1.push(parcel.hand_out());
        Ok(None)
    }

    fn flush(&mut self) -> Result<bool, RunError> {
        let mut valve = self.0.lock().unwrap();
        valve.2 += 1;
        Ok(valve.2 > 1)
    }
}

#[test]
fn a_sink_whose_writer_waits_keeps_its_batch_and_is_done_once_that_is_flushed() {
    let (memory, valve) = (coordinator(), Valve::default());
    let mut pipeline = pipeline(&memory, 100, Box::new(valve.clone()));
    pipeline.push(batch(0..4));
    pipeline.feed = None;
    assert_eq!(pipeline.run_source().unwrap(), Step::Done);
    assert_eq!(pipeline.run_sink().unwrap(), Step::Blocked);
    let numbers = pipeline.sink.numbers(0);
    assert_eq!((numbers.is_blocked, numbers.blocked_on, numbers.held.rows), (true, BlockedOn::Room, 4));
    assert!(memory.snapshot().used_bytes > 0, "what waits is charged");
    valve.0.lock().unwrap().0 = true;
    assert_eq!(pipeline.run_sink().unwrap(), Step::Blocked, "the writer holds something back");
    assert_eq!(pipeline.run_sink().unwrap(), Step::Done);
    assert_eq!(values(&valve.0.lock().unwrap().1), [0, 1, 2, 3]);
    assert_eq!(pipeline.sink.numbers(0).held.rows, 0);
}

#[test]
fn a_batch_that_does_not_fit_fails_the_query() {
    let memory = coordinator();
    let mut pipeline = pipeline(&memory, 100, Box::new(Valve::default()));
    let other = RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty()));
    pipeline.push(other);
    let error = pipeline.run_source().unwrap_err();
    assert!(matches!(error, RunError::Batch { number: 0, .. }), "{error}");
}
