//! Queries that end beside others: under load, and as their shared source ends.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_engine::{
    Chaining, EngineOptions, FEED_BATCHES, Input, Mode, OnLag, PolicyKind, Query, Replay, RunOptions,
    ShareOptions, Sink, StartError, Status, feed, push,
};

use crate::engine::{BRIEFLY, EVER, batch, inverse, start, submit, windows};

#[test]
fn a_query_ends_although_another_keeps_all_workers_busy() {
    for (_, policy) in PolicyKind::NAMES {
        for (_, chain) in Chaining::NAMES {
            let run = RunOptions { chain, ..RunOptions::default() };
            let engine = start(EngineOptions { workers: Some(1), policy, run, ..EngineOptions::default() });
            let batches: Arc<[RecordBatch]> = vec![batch((0..5_000).collect())].into();
            let replay = Replay { batches, rows_per_second: None, rounds: None };
            let busy = engine.submit(&windows(), Input::replay(replay), Sink::discard(), None).unwrap();
            let (_idle_feed, idle) = submit(&engine, &windows());
            let (_drained_feed, drained) = submit(&engine, &windows());
            let (mut failing_feed, failing) = submit(&engine, &inverse());
            std::thread::sleep(BRIEFLY * 10);
            idle.stop();
            drained.drain();
            push(&mut failing_feed, batch(vec![1, 0]));
            for (query, status) in
                [(&idle, Status::Stopped), (&drained, Status::Finished), (&failing, Status::Failed)]
            {
                let came = query.wait(EVER);
                let state =
                    || format!("{:#?} {:#?} {:#?}", query.metrics(), busy.metrics(), engine.metrics());
                assert!(came, "{policy:?} {chain:?}: {status:?} never came: {}", state());
                assert_eq!(query.status(), status);
            }
            assert_eq!(busy.status(), Status::Running);
        }
    }
}

/// Takes its time, so that a quantum is over when it has taken a batch.
struct Slow;

impl penstock_engine::Deliver for Slow {
    fn deliver(&mut self, _: RecordBatch) -> Option<RecordBatch> {
        std::thread::sleep(Duration::from_millis(3));
        None
    }

    fn wants_partial_batches(&self) -> bool {
        false
    }
}

#[test]
fn a_query_ends_although_its_last_quantum_was_over_between_two_steps() {
    for (_, policy) in PolicyKind::NAMES {
        let engine = start(EngineOptions { workers: Some(1), policy, ..EngineOptions::default() });
        let batches: Arc<[RecordBatch]> = vec![batch((0..5_000).collect())].into();
        let replay = Replay { batches, rows_per_second: None, rounds: None };
        let busy = engine.submit(&windows(), Input::replay(replay), Sink::discard(), None).unwrap();
        // The sink reads the end of its input and hands out what it has: after that only the step that leaves is left.
        let (mut feed, end) = feed(FEED_BATCHES);
        let sink = Sink::deliver(Box::new(Slow), penstock_engine::Doorbell::default());
        let query = engine.submit(&inverse(), Input::feed(end), sink, None).unwrap();
        assert!(push(&mut feed, batch(vec![1, 2])));
        drop(feed);
        assert!(query.wait(EVER), "{policy:?}: {:#?} {:#?}", query.metrics(), engine.metrics());
        assert_eq!(query.status(), Status::Finished);
        assert_eq!(busy.status(), Status::Running);
    }
}

#[test]
fn who_joins_a_shared_source_at_its_end_is_refused_or_told_of_the_end() {
    let (mut refused, mut joined) = (0, 0);
    for mode in [Mode::State, Mode::Threads] {
        let engine = start(EngineOptions { mode, workers: Some(2), ..EngineOptions::default() });
        for _ in 0..300 {
            let (mut feed, end) = feed(FEED_BATCHES);
            let source = engine.share(&windows(), Input::feed(end), ShareOptions::default()).unwrap();
            assert!(push(&mut feed, batch(vec![1])));
            let first = Input::shared(source.clone(), OnLag::Wait);
            let first = engine.submit(&windows(), first, Sink::discard(), None).unwrap();
            let ends = std::thread::spawn(move || drop(feed));
            // Until it is too late to join.
            let queries: Vec<Query> = std::iter::from_fn(|| {
                let input = Input::shared(source.clone(), OnLag::Wait);
                match engine.submit(&windows(), input, Sink::discard(), None) {
                    Ok(query) => Some(query),
                    Err(StartError::SourceEnded { .. }) => None,
                    Err(error) => panic!("{error}"),
                }
            })
            .collect();
            refused += 1;
            joined += queries.len();
            ends.join().unwrap();
            for query in queries.iter().chain([&first]) {
                assert!(query.wait(EVER), "{mode:?}");
                assert_eq!(query.status(), Status::Finished, "{mode:?}: {:?}", query.error());
            }
        }
    }
    assert!(refused > 0 && joined > 0, "{refused} refused, {joined} joined");
}
