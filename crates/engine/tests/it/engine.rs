//! Engines: queries that come and go, every way in which one ends, and what its feed says then.

use crate::running;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::results::Next;
use penstock_engine::{
    Aggregate, Chaining, Engine, EngineOptions, FEED_BATCHES, Feed, Input, Mode, OnLag, Plan, Pushed, Query,
    Replay, RunError, RunOptions, ShareOptions, Sink, StartError, Status, feed, push,
};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_memory::MemoryKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use running::every_way;

/// Longer than anything here takes: a test that waits so long has failed.
pub(crate) const EVER: Duration = Duration::from_secs(30);
pub(crate) const BRIEFLY: Duration = Duration::from_millis(20);

pub(crate) fn inverse() -> Plan {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let inverse = Expr::literal(Literal::Int(10)).binary(BinaryOp::FloorDivide, Expr::column("x")).unwrap();
    Plan::stream(&schema, None, Span::Ticks(0))
        .unwrap()
        .with_columns(vec![inverse.alias("inverse").unwrap()])
        .unwrap()
}

/// Counts per ten ticks of "x".
pub(crate) fn windows() -> Plan {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, false)]);
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let stream = Plan::stream(&schema, Some("x"), Span::Ticks(0)).unwrap();
    stream.tumbling(Span::Ticks(10), vec![], vec![count]).unwrap()
}

/// Every way to run a query.
pub(crate) fn start(options: EngineOptions) -> Engine {
    Engine::start(options).unwrap()
}

pub(crate) fn submit(engine: &Engine, plan: &Plan) -> (Feed, Query) {
    let (feed, end) = feed(FEED_BATCHES);
    (feed, engine.submit(plan, Input::feed(end), Sink::collect(), None).unwrap())
}

pub(crate) fn batch(values: Vec<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(values)) as ArrayRef)]).unwrap()
}

/// Pushes until the feed says that the query has ended.
fn push_until_ended(feed: &mut Feed, batch: &RecordBatch) {
    let started = Instant::now();
    while !matches!(feed.push(batch.clone(), BRIEFLY), Pushed::Ended) {
        assert!(started.elapsed() < EVER, "the feed never said that the query had ended");
    }
}

#[test]
fn dropping_the_feed_finishes_the_query_in_every_way() {
    for options in every_way() {
        let engine = start(options.clone());
        let (mut feed, query) = submit(&engine, &inverse());
        for _ in 0..20 {
            assert!(push(&mut feed, batch(vec![1, 2, 3])));
        }
        assert!(!query.wait(Duration::ZERO), "the input is not over yet");
        assert_eq!(query.status(), Status::Running);
        drop(feed);
        assert!(query.wait(EVER), "{options:?}");
        assert!(query.wait(EVER), "a query that has ended stays so");
        let output = query.take_output().unwrap();
        assert_eq!((output.rows_in, output.rows_out(), output.batches_in), (60, 60, 20), "{options:?}");
        assert_eq!(query.status(), Status::Finished);
        assert!(engine.queries().is_empty());
    }
}

#[test]
fn a_query_without_input_gives_an_empty_answer_in_every_way() {
    for options in every_way() {
        let engine = start(options);
        let (feed, query) = submit(&engine, &windows());
        drop(feed);
        assert!(query.wait(EVER));
        let output = query.take_output().unwrap();
        assert_eq!((output.rows_in, output.rows_out(), output.batches_in), (0, 0, 0));
    }
}

#[test]
fn a_stream_that_goes_quiet_delivers_what_its_watermark_closes_in_every_way() {
    for options in every_way() {
        let engine = start(options.clone());
        let (mut feed, end) = feed(FEED_BATCHES);
        let query = engine.submit(&windows(), Input::feed(end), Sink::results(), None).unwrap();
        assert!(push(&mut feed, batch(vec![1, 2, 15])));
        let results = query.results().unwrap();
        assert!(results.wait(EVER), "{options:?}: the window that 15 closes never came");
        match results.take() {
            Next::Batch(batch) => assert_eq!(batch.num_rows(), 1),
            other => panic!("{options:?}: {other:?}"),
        }
        // And again, after a while in which nothing happened.
        std::thread::sleep(BRIEFLY * 6);
        assert!(push(&mut feed, batch(vec![25])));
        assert!(results.wait(EVER), "{options:?}: the window that 25 closes never came");
        assert!(matches!(results.take(), Next::Batch(_)));
        drop(feed);
        assert!(query.wait(EVER));
        assert!(matches!(results.take(), Next::Batch(_)));
        assert!(matches!(results.take(), Next::Ended));
    }
}

#[test]
fn stop_ends_a_query_that_waits_for_input() {
    for options in every_way() {
        let engine = start(options);
        let (mut feed, query) = submit(&engine, &inverse());
        assert!(push(&mut feed, batch(vec![1])));
        query.stop();
        assert!(query.wait(EVER), "the query did not hear of the stop");
        push_until_ended(&mut feed, &batch(vec![1]));
        assert_eq!(query.status(), Status::Stopped);
        assert!(matches!(*query.error().unwrap(), RunError::Stopped));
        assert!(query.take_output().is_none());
    }
}

#[test]
fn stop_ends_a_query_in_the_middle_of_a_batch() {
    let engine = start(EngineOptions::default());
    let (mut feed, query) = submit(&engine, &inverse());
    let large = batch(vec![3; 400_000]);
    while matches!(feed.push(large.clone(), Duration::ZERO), Pushed::Taken) {}
    query.stop();
    assert!(query.wait(EVER));
    push_until_ended(&mut feed, &large);
    assert_eq!(query.status(), Status::Stopped);
}

#[test]
fn drain_processes_what_was_pushed_and_closes_windows() {
    for options in every_way() {
        let engine = start(options);
        let (mut feed, query) = submit(&engine, &windows());
        for number in 0..4 {
            assert!(push(&mut feed, batch(vec![number * 10])));
        }
        query.drain();
        assert!(query.wait(EVER));
        let output = query.take_output().unwrap();
        assert_eq!((output.rows_in, output.rows_out()), (4, 4));
        assert!(matches!(feed.push(batch(vec![1]), EVER), Pushed::Ended));
    }
}

#[test]
fn a_full_feed_gives_the_batch_back() {
    let engine = start(EngineOptions::default());
    let (mut feed, end) = feed(FEED_BATCHES);
    let large = batch(vec![3; 400_000]);
    // Nobody takes them yet.
    for _ in 0..FEED_BATCHES {
        assert!(matches!(feed.push(large.clone(), Duration::ZERO), Pushed::Taken));
    }
    match feed.push(large.clone(), BRIEFLY) {
        Pushed::Full(back) => assert_eq!(back, large),
        other => panic!("{other:?}"),
    }
    let query = engine.submit(&inverse(), Input::feed(end), Sink::discard(), None).unwrap();
    assert!(push(&mut feed, large));
    drop(feed);
    assert!(query.wait(EVER));
    assert_eq!(query.take_output().unwrap().batches_in, FEED_BATCHES as u64 + 1);
}

#[test]
fn an_error_fails_its_query_and_no_other_in_every_way() {
    for options in every_way() {
        let engine = start(options.clone());
        let (mut good_feed, good) = submit(&engine, &inverse());
        let (mut feed, query) = submit(&engine, &inverse());
        assert!(push(&mut feed, batch(vec![1, 2])));
        assert!(push(&mut good_feed, batch(vec![1, 2])));
        push(&mut feed, batch(vec![1, 0]));
        push_until_ended(&mut feed, &batch(vec![1]));
        assert!(query.wait(EVER));
        match &*query.error().unwrap() {
            RunError::Compute { operator, .. } => assert_eq!(operator, "with_columns"),
            other => panic!("{options:?}: {other:?}"),
        }
        assert_eq!(query.status(), Status::Failed);
        assert!(push(&mut good_feed, batch(vec![3])));
        drop(good_feed);
        assert!(good.wait(EVER));
        assert_eq!(good.take_output().unwrap().rows_out(), 3);
    }
}

#[test]
fn a_batch_that_does_not_fit_is_named() {
    let engine = start(EngineOptions::default());
    let (mut feed, query) = submit(&engine, &inverse());
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let wrong = RecordBatch::try_from_iter([("x", strings)]).unwrap();
    assert!(push(&mut feed, batch(vec![1])));
    push_until_ended(&mut feed, &wrong);
    assert!(query.wait(EVER));
    match &*query.error().unwrap() {
        RunError::Batch { number, error } => assert_eq!((*number, error.column.as_str()), (1, "x")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_feed_that_fails_fails_its_query_behind_the_rows_before() {
    let engine = start(EngineOptions::default());
    let (mut feed, query) = submit(&engine, &inverse());
    assert!(push(&mut feed, batch(vec![1])));
    feed.fail("the disk is gone".into());
    assert!(query.wait(EVER));
    assert_eq!(query.error().unwrap().to_string(), "the source failed: the disk is gone");
    assert_eq!(query.metrics().rows.rows_in, 1);
}

/// Panics at its second batch.
struct Panicking(usize);

impl penstock_engine::Deliver for Panicking {
    fn deliver(&mut self, _: RecordBatch) -> Option<RecordBatch> {
        self.0 += 1;
        assert!(self.0 < 2, "a sink that panics");
        None
    }
}

#[test]
fn a_panic_fails_its_query_and_no_other() {
    for (_, mode) in Mode::NAMES {
        let engine = start(EngineOptions { mode, ..EngineOptions::default() });
        let (mut good_feed, good) = submit(&engine, &inverse());
        let (mut feed, end) = feed(FEED_BATCHES);
        let sink = Sink::deliver(Box::new(Panicking(0)), penstock_engine::Doorbell::default());
        let query = engine.submit(&inverse(), Input::feed(end), sink, None).unwrap();
        while push(&mut feed, batch(vec![1])) {}
        assert!(query.wait(EVER));
        let error = query.error().unwrap();
        assert!(
            matches!(&*error, RunError::Panicked { operator, text } if operator == "sink" && text.contains("a sink that panics")),
            "{error}"
        );
        assert!(push(&mut good_feed, batch(vec![1])));
        drop(good_feed);
        assert!(good.wait(EVER));
        assert_eq!(good.status(), Status::Finished);
    }
}

#[test]
fn stopping_the_engine_ends_everything() {
    for options in every_way() {
        let engine = start(options);
        let mut queries: Vec<_> = (0..5).map(|_| submit(&engine, &windows())).collect();
        for (feed, _) in &mut queries {
            assert!(push(feed, batch(vec![1, 15])));
        }
        assert_eq!(engine.queries().len(), 5);
        engine.stop();
        engine.stop();
        for (feed, query) in &mut queries {
            assert_eq!(query.status(), Status::Stopped);
            assert!(matches!(feed.push(batch(vec![1]), EVER), Pushed::Ended));
        }
        let (_feed, end) = feed(1);
        let refused = engine.submit(&windows(), Input::feed(end), Sink::discard(), None);
        assert!(matches!(refused.err(), Some(StartError::EngineStopped)));
    }
}

#[test]
fn an_engine_that_is_dropped_ends_its_queries() {
    let engine = start(EngineOptions::default());
    let (mut feed, query) = submit(&engine, &inverse());
    assert!(push(&mut feed, batch(vec![5; 1_000])));
    drop(engine);
    assert_eq!(query.status(), Status::Stopped);
    assert!(matches!(feed.push(batch(vec![5]), EVER), Pushed::Ended));
}

#[test]
fn a_query_that_ended_lets_go_of_its_batches() {
    for options in every_way() {
        let values = Int64Array::from(vec![5; 1_000]);
        let held: ArrayRef = Arc::new(values.clone());
        let engine = start(options);
        let (mut feed, query) = submit(&engine, &inverse());
        for _ in 0..3 {
            assert!(push(&mut feed, RecordBatch::try_from_iter([("x", Arc::clone(&held))]).unwrap()));
        }
        drop((feed, held));
        assert!(query.wait(EVER));
        assert_eq!(query.take_output().unwrap().rows_out(), 3_000);
        assert_eq!(values.values().inner().strong_count(), 1, "results own their memory");
    }
}

#[test]
fn names_are_unique_among_those_that_run() {
    let engine = start(EngineOptions::default());
    let (feed_, end) = feed(1);
    let query = engine.submit(&windows(), Input::feed(end), Sink::discard(), Some("mine")).unwrap();
    assert_eq!(query.name(), "mine");
    let (_other, end) = feed(1);
    let taken = engine.submit(&windows(), Input::feed(end), Sink::discard(), Some("mine"));
    assert!(matches!(taken.err(), Some(StartError::NameTaken { name }) if name == "mine"));
    drop(feed_);
    assert!(query.wait(EVER));
    let (_third, end) = feed(1);
    assert!(engine.submit(&windows(), Input::feed(end), Sink::discard(), Some("mine")).is_ok());
}

#[test]
fn unread_results_hold_the_query_up_and_lose_nothing() {
    for options in every_way() {
        let engine = start(options.clone());
        let (mut feed, end) = feed(FEED_BATCHES);
        let query = engine.submit(&inverse(), Input::feed(end), Sink::results(), None).unwrap();
        let feeding = std::thread::spawn(move || {
            (0..200).for_each(|_| assert!(push(&mut feed, batch(vec![2; 20_000]))));
        });
        let results = query.results().unwrap();
        std::thread::sleep(BRIEFLY);
        let mut rows = 0;
        loop {
            assert!(results.wait(EVER), "{options:?}: {rows} rows so far");
            match results.take() {
                Next::Batch(batch) => rows += batch.num_rows(),
                Next::Nothing => {}
                Next::Ended => break,
            }
        }
        feeding.join().unwrap();
        assert_eq!(rows, 4_000_000, "{options:?}");
        assert_eq!(query.status(), Status::Finished);
        if options.run.memory == MemoryKind::Queue {
            break; // the row queue takes its time; one way of it will do
        }
    }
}

#[test]
fn a_replay_moves_its_times_on_from_round_to_round() {
    for options in every_way() {
        let engine = start(options.clone());
        let batches: Arc<[RecordBatch]> = vec![batch((0..100).collect()), batch((100..200).collect())].into();
        for rows_per_second in [None, Some(20_000.0)] {
            let replay = Replay { batches: Arc::clone(&batches), rows_per_second, rounds: Some(5) };
            let query = engine.submit(&windows(), Input::replay(replay), Sink::collect(), None).unwrap();
            assert!(query.wait(EVER));
            let output = query.take_output().unwrap();
            assert_eq!((output.rows_in, output.rows_late), (1_000, 0), "{options:?}");
            assert_eq!(output.rows_out(), 100, "windows of ten rows each: {options:?}");
        }
    }
}

#[test]
fn queries_that_share_a_source_all_see_every_row() {
    for options in every_way() {
        let engine = start(options.clone());
        let (mut feed, end) = feed(FEED_BATCHES);
        let source = engine
            .share(&windows(), Input::feed(end), ShareOptions { held: true, ..ShareOptions::default() })
            .unwrap();
        let shared = || Input::shared(source.clone(), OnLag::Wait);
        let queries: Vec<Query> = [windows(), windows(), source.stream().clone()]
            .iter()
            .map(|plan| engine.submit(plan, shared(), Sink::collect(), None).unwrap())
            .collect();
        source.begin();
        let feeding = std::thread::spawn(move || {
            for number in 0..50 {
                assert!(push(&mut feed, batch((number * 1_000..(number + 1) * 1_000).collect())));
            }
        });
        feeding.join().unwrap();
        assert!(source.wait(EVER), "{options:?}");
        for (query, rows_out) in queries.iter().zip([5_000, 5_000, 50_000]) {
            assert!(query.wait(EVER), "{options:?}");
            let output = query.take_output().unwrap();
            assert_eq!(
                (output.rows_in, output.rows_late, output.rows_out()),
                (50_000, 0, rows_out),
                "{options:?}"
            );
        }
        let late = engine.submit(&windows(), shared(), Sink::collect(), None);
        assert!(matches!(late.err(), Some(StartError::SourceEnded { .. })));
    }
}

#[test]
fn a_query_that_lags_fails_or_sheds_and_the_others_go_on() {
    for (_, mode) in Mode::NAMES {
        for on_lag in [OnLag::Fail, OnLag::Shed] {
            let run = RunOptions { stream_bytes: Some(256 << 10), ..RunOptions::default() };
            let engine = start(EngineOptions { mode, workers: Some(2), run, ..EngineOptions::default() });
            let (mut feed, end) = feed(FEED_BATCHES);
            let source = engine
                .share(&windows(), Input::feed(end), ShareOptions { held: true, ..ShareOptions::default() })
                .unwrap();
            let plan = source.stream().clone();
            let fast = engine
                .submit(&plan, Input::shared(source.clone(), OnLag::Wait), Sink::discard(), None)
                .unwrap();
            // Nobody reads its results.
            let slow =
                engine.submit(&plan, Input::shared(source.clone(), on_lag), Sink::results(), None).unwrap();
            source.begin();
            for number in 0..300 {
                assert!(push(&mut feed, batch((number * 10_000..(number + 1) * 10_000).collect())));
            }
            drop(feed);
            assert!(fast.wait(EVER));
            assert_eq!(fast.take_output().unwrap().rows_in, 3_000_000);
            if on_lag == OnLag::Fail {
                assert!(slow.wait(EVER));
                assert!(matches!(*slow.error().unwrap(), RunError::Lagged { .. }), "{:?}", slow.error());
            } else {
                let mut rows = 0;
                loop {
                    assert!(slow.results().unwrap().wait(EVER));
                    match slow.results().unwrap().take() {
                        Next::Batch(batch) => rows += batch.num_rows() as u64,
                        Next::Nothing => {}
                        Next::Ended => break,
                    }
                }
                assert!(slow.wait(EVER));
                let output = slow.take_output().unwrap();
                assert!(output.rows_shed > 0);
                assert_eq!(output.rows_in, 3_000_000);
                assert_eq!(rows + output.rows_shed, 3_000_000);
                assert_eq!(output.rows_contributed, rows);
            }
        }
    }
}

#[test]
fn a_plan_that_does_not_fit_a_shared_source_is_refused() {
    let engine = start(EngineOptions::default());
    let (_feed, end) = feed(1);
    let source = engine
        .share(&windows(), Input::feed(end), ShareOptions { name: Some("ticks"), ..ShareOptions::default() })
        .unwrap();
    let refused = |plan: &Plan| {
        let input = Input::shared(source.clone(), OnLag::Wait);
        engine.submit(plan, input, Sink::discard(), None).err().unwrap().to_string()
    };
    let declare = |name: &str, data_type: DataType, time: Option<&str>, delay: i64| {
        let schema = Schema::new(vec![Field::new(name, data_type, false)]);
        Plan::stream(&schema, time, Span::Ticks(delay)).unwrap()
    };
    assert!(refused(&declare("y", DataType::Int64, None, 0)).contains("unknown column \"y\""));
    assert!(refused(&declare("x", DataType::Utf8, None, 0)).contains("the shared source int64"));
    assert!(
        refused(&declare("x", DataType::Int64, Some("x"), 5)).contains("lateness is decided by the source")
    );
}

#[test]
fn idle_queries_are_idle() {
    let engine = start(EngineOptions::default());
    let queries: Vec<_> = (0..200).map(|_| submit(&engine, &windows())).collect();
    // Long enough for everything that follows a submission to have settled.
    std::thread::sleep(Duration::from_millis(400));
    let before = engine.metrics();
    std::thread::sleep(Duration::from_millis(500));
    let after = engine.metrics();
    let runs = |metrics: &penstock_engine::EngineMetrics| metrics.workers.iter().map(|w| w.runs).sum::<u64>();
    assert_eq!(runs(&before), runs(&after), "nobody runs a task that has nothing to do");
    assert_eq!(before.epochs, after.epochs, "nobody plans for tasks that have nothing to do");
    assert_eq!(queries.len(), engine.queries().len());
}

#[test]
fn replays_keep_to_their_rates_side_by_side() {
    for (_, mode) in Mode::NAMES {
        let run = RunOptions { chain: Chaining::Off, ..RunOptions::default() };
        let engine = start(EngineOptions { mode, workers: Some(2), run, ..EngineOptions::default() });
        let batches: Arc<[RecordBatch]> = vec![batch((0..10_000).collect())].into();
        let submit = |_| {
            let rows_per_second = Some(200_000.0);
            let replay = Replay { batches: Arc::clone(&batches), rows_per_second, rounds: Some(40) };
            engine.submit(&windows(), Input::replay(replay), Sink::discard(), None).unwrap()
        };
        let queries: Vec<Query> = (0..6).map(submit).collect();
        for query in &queries {
            assert!(query.wait(EVER), "{mode:?}: {:#?}\n{:#?}", query.metrics(), engine.metrics());
            assert_eq!(query.take_output().unwrap().rows_in, 400_000);
        }
    }
}
