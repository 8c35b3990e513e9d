//! Event time as it is had: from columns, from the clock, from sources that fall silent.

use crate::running;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::clock::{ManualClock, Timepiece};
use penstock_engine::plan::{
    Aggregate, Arrival, Outputs, Plan, StreamOptions, WatermarkFunction, Watermarks, WindowSpan,
};
use penstock_engine::results::Next;
use penstock_engine::{
    Engine, EngineOptions, FEED_BATCHES, Feed, Input, OutsideError, Pushed, Query, QueryOptions, Sink, feed,
    push,
};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use running::every_way;

/// Longer than anything here takes: a test that waits so long has failed.
const EVER: Duration = Duration::from_secs(30);
/// Long enough for anything that could happen to have happened.
const BRIEFLY: Duration = Duration::from_millis(30);

fn schema() -> Schema {
    Schema::new(vec![Field::new("t", DataType::Int64, false), Field::new("w", DataType::Int64, true)])
}

fn rows(rows: &[(i64, Option<i64>)]) -> RecordBatch {
    let times = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))) as ArrayRef;
    let marks = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1))) as ArrayRef;
    RecordBatch::try_new(Arc::new(schema()), vec![times, marks]).unwrap()
}

fn times(times: &[i64]) -> RecordBatch {
    rows(&times.iter().map(|&time| (time, None)).collect::<Vec<_>>())
}

fn count() -> Vec<Aggregate> {
    vec![Aggregate { kind: AggregateKind::Count, input: None, name: None }]
}

fn tumbling(size: Span) -> WindowSpan {
    WindowSpan::Tumbling { size, offset: Span::Ticks(0) }
}

fn counted(plan: &Plan, close_after: Option<&str>) -> Plan {
    let close_after = close_after.map(|text| text.parse().unwrap());
    plan.window(tumbling(Span::Ticks(10)), vec![], count(), Span::Ticks(0), close_after).unwrap()
}

fn stream(options: StreamOptions<'_>) -> Plan {
    Plan::declare(&schema(), StreamOptions { time: Some("t"), ..options }).unwrap()
}

/// A query under a clock that stands still, and the feeds of its streams.
struct Trial {
    clock: ManualClock,
    query: Query,
    feeds: Vec<Feed>,
    _engine: Engine,
}

impl Trial {
    fn start(options: EngineOptions, plan: &Plan) -> Self {
        let clock = ManualClock::new(1_700_000_000_000_000);
        let engine =
            Engine::start(EngineOptions { clock: Timepiece::Manual(clock.clone()), ..options }).unwrap();
        let (mut inputs, mut feeds) = (Vec::new(), Vec::new());
        for name in plan.streams() {
            let (feed, end) = feed(FEED_BATCHES);
            inputs.push((name, Input::feed(end)));
            feeds.push(feed);
        }
        let query = engine
            .submit_all(&Outputs::from(plan), inputs, vec![Sink::results()], QueryOptions::default())
            .unwrap();
        Self { clock, query, feeds, _engine: engine }
    }

    fn push(&mut self, stream: usize, batch: RecordBatch) {
        assert!(push(&mut self.feeds[stream], batch));
    }

    /// Waits until the query has taken in so many rows, and its operators have them.
    fn settle(&self, rows: u64) {
        let started = Instant::now();
        let is_settled = || {
            let seen = self.query.metrics().rows;
            let done = seen.contributed + seen.filtered + seen.late + seen.shed + seen.rejected;
            seen.rows_in >= rows && done >= seen.rows_in + seen.copied
        };
        while !is_settled() {
            assert!(started.elapsed() < EVER, "the rows were never taken in");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(BRIEFLY);
    }

    /// The next windows: start and count.
    fn windows(&self) -> Vec<(i64, i64)> {
        let results = self.query.results().unwrap();
        assert!(results.wait(EVER), "no window has closed");
        let Next::Batch(batch) = results.take() else {
            panic!("the query has ended: {:?}", self.query.error())
        };
        let count = batch.column(2).as_primitive::<Int64Type>();
        let start = |row: usize| match batch.column(0).data_type() {
            DataType::Int64 => batch.column(0).as_primitive::<Int64Type>().value(row),
            _ => batch.column(0).as_primitive::<TimestampMicrosecondType>().value(row),
        };
        (0..batch.num_rows()).map(|row| (start(row), count.value(row))).collect()
    }

    fn nothing(&self) {
        assert!(!self.query.results().unwrap().wait(BRIEFLY), "a window has closed");
    }
}

#[test]
fn watermarks_come_from_a_column() {
    let column = Watermarks::Column("w".to_owned());
    let options = || StreamOptions { watermark: Some(&column), ..StreamOptions::default() };
    for way in every_way() {
        let mut trial = Trial::start(way, &counted(&stream(options()), None));
        // The times run ahead, the watermark does not: nothing closes, and nothing is late.
        trial.push(0, rows(&[(5, None), (50, None), (3, Some(2)), (7, None)]));
        trial.settle(4);
        trial.nothing();
        // 4 comes before the mark in its own row counts, 6 behind it does not.
        trial.push(0, rows(&[(4, Some(10)), (6, Some(1))]));
        assert_eq!(trial.windows(), [(0, 4)]);
        trial.settle(6);
        assert_eq!(trial.query.metrics().rows.late, 1);
    }
}

#[test]
fn a_silent_source_does_not_hold_the_others_up() {
    let idle = || StreamOptions { idle_after: Some("5s".parse().unwrap()), ..StreamOptions::default() };
    for way in every_way() {
        let left = stream(StreamOptions { name: Some("left"), ..idle() });
        let right = stream(StreamOptions { name: Some("right"), ..idle() });
        let mut trial = Trial::start(way, &counted(&Plan::union(&[left, right]).unwrap(), None));
        trial.push(0, times(&[1, 25]));
        trial.push(1, times(&[2]));
        trial.settle(3);
        trial.nothing();
        trial.clock.advance(Duration::from_secs(4));
        trial.push(0, times(&[26]));
        trial.settle(4);
        trial.nothing();
        // One second more, and the second stream has been silent for five.
        trial.clock.advance(Duration::from_secs(1));
        assert_eq!(trial.windows(), [(0, 2)]);
        assert_eq!((trial.query.metrics().idle_sources, trial.query.metrics().idles), (1, 1));
        // It speaks again: what it says of closed windows is late, and it is waited for.
        trial.push(1, times(&[3, 21]));
        trial.settle(6);
        trial.push(0, times(&[45]));
        trial.settle(7);
        trial.nothing();
        assert_eq!((trial.query.metrics().rows.late, trial.query.metrics().idle_sources), (1, 0));
        trial.push(1, times(&[47]));
        assert_eq!(trial.windows(), [(20, 3)]);
    }
}

#[test]
fn windows_close_by_the_clock_when_no_row_comes() {
    for way in every_way() {
        let mut trial = Trial::start(way, &counted(&stream(StreamOptions::default()), Some("5s")));
        trial.push(0, times(&[1, 2]));
        trial.settle(2);
        trial.clock.advance(Duration::from_secs(4));
        trial.push(0, times(&[3]));
        trial.settle(3);
        trial.clock.advance(Duration::from_secs(4));
        trial.nothing();
        trial.clock.advance(Duration::from_secs(1));
        assert_eq!(trial.windows(), [(0, 3)]);
        assert_eq!(trial.query.metrics().clock_closings, 1);
        // What comes for the window that was closed is late; the others go on.
        trial.push(0, times(&[4, 12]));
        trial.settle(5);
        assert_eq!(trial.query.metrics().rows.late, 1);
        trial.clock.advance(Duration::from_secs(60));
        assert_eq!(trial.windows(), [(10, 1)]);
        // Nothing is open: nothing happens.
        trial.clock.advance(Duration::from_secs(60));
        trial.nothing();
        assert_eq!(trial.query.metrics().clock_closings, 2);
    }
}

#[test]
fn the_time_of_arrival_goes_on_by_itself_and_never_back() {
    for arrival in [Arrival::Ingestion, Arrival::Processing] {
        for way in every_way() {
            let options =
                StreamOptions { time: Some("at"), arrival: Some(arrival), ..StreamOptions::default() };
            let plan = Plan::declare(&schema(), options).unwrap();
            let window = tumbling("10s".parse().unwrap());
            let plan = plan.window(window, vec![], count(), Span::Ticks(0), None).unwrap();
            let mut trial = Trial::start(way, &plan);
            let start = 1_700_000_000_000_000;
            trial.push(0, times(&[99, -5]));
            trial.settle(2);
            trial.clock.advance(Duration::from_secs(9));
            trial.push(0, times(&[7]));
            trial.settle(3);
            trial.nothing();
            // Without another row, the window closes when its time has come.
            trial.clock.advance(Duration::from_secs(1));
            assert_eq!(trial.windows(), [(start, 3)]);
            trial.push(0, times(&[8]));
            trial.settle(4);
            // Somebody sets the clock back by an hour: rows are not late for that, nor is event time.
            trial.clock.set_wall(start - 3_600_000_000);
            trial.push(0, times(&[8]));
            trial.settle(5);
            trial.clock.advance(Duration::from_secs(60));
            trial.nothing();
            // And forwards by two.
            trial.clock.set_wall(start + 3_600_000_000);
            trial.clock.advance(Duration::from_secs(1));
            assert_eq!(trial.windows(), [(start + 10_000_000, 2)]);
            assert_eq!(trial.query.metrics().rows.late, 0);
        }
    }
}

#[test]
fn a_pause_of_the_process_makes_nothing_idle_that_has_rows() {
    let idle = || StreamOptions { idle_after: Some("5s".parse().unwrap()), ..StreamOptions::default() };
    let mut trial = Trial::start(EngineOptions::default(), &counted(&stream(idle()), Some("5s")));
    trial.push(0, times(&[1]));
    trial.settle(1);
    // A minute goes by, and rows are there when it is over.
    trial.push(0, times(&[2]));
    trial.settle(2);
    trial.clock.advance(Duration::from_secs(60));
    assert_eq!(trial.windows(), [(0, 2)]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |options: StreamOptions<'_>| Plan::declare(&schema(), options).unwrap_err().to_string();
    let timed = || StreamOptions { time: Some("t"), ..StreamOptions::default() };
    let column = |name: &str| Watermarks::Column(name.to_owned());
    let text = refused(StreamOptions { watermark: Some(&column("v")), ..timed() });
    assert!(text.contains("v"), "{text}");
    let text = refused(StreamOptions { watermark: Some(&column("w")), ..StreamOptions::default() });
    assert!(text.contains("add time="), "{text}");
    let text = refused(StreamOptions { idle_after: Some(Span::Ticks(5)), ..timed() });
    assert!(text.contains("with a unit"), "{text}");
    let text = refused(StreamOptions { idle_after: Some(Span::Nanos(0)), ..timed() });
    assert!(text.contains("must be positive"), "{text}");
    let text = refused(StreamOptions { idle_after: Some(Span::Nanos(1)), ..StreamOptions::default() });
    assert!(text.contains("time="), "{text}");
    let text = refused(StreamOptions { arrival: Some(Arrival::Ingestion), ..timed() });
    assert!(text.contains("in the data already"), "{text}");
}

#[test]
fn plans_that_go_by_the_clock_come_back_from_json() {
    let column = Watermarks::Column("w".to_owned());
    let options = StreamOptions {
        watermark: Some(&column),
        idle_after: Some("5s".parse().unwrap()),
        name: Some("a"),
        ..StreamOptions::default()
    };
    let plan = counted(&stream(options), Some("1m"));
    assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    let options =
        StreamOptions { time: Some("at"), arrival: Some(Arrival::Processing), ..StreamOptions::default() };
    let plan = Plan::declare(&schema(), options).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    assert!(plan.explain().contains("time of processing at"), "{}", plan.explain());
}

/// Panics on a batch without rows.
struct Fragile;

impl WatermarkFunction for Fragile {
    fn call(&self, batch: &RecordBatch) -> Result<Option<i64>, OutsideError> {
        assert!(batch.num_rows() > 0, "there are no rows");
        Ok(Some(0))
    }

    fn identity(&self) -> u64 {
        0
    }

    fn name(&self) -> &str {
        "fragile"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn a_watermark_function_that_panicked_is_not_taken_for_one_that_is_still_called() {
    let engine = Engine::start(EngineOptions { workers: Some(1), ..EngineOptions::default() }).unwrap();
    let fragile = Watermarks::Function(Arc::new(Fragile));
    let plan = stream(StreamOptions { watermark: Some(&fragile), ..Default::default() });
    let (mut feed, end) = feed(FEED_BATCHES);
    let query = engine.submit(&plan, Input::feed(end), Sink::collect(), None).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| feed.push(times(&[]), EVER))).is_err());
    assert!(!feed.handle().is_asking_here());
    assert!(matches!(feed.push(times(&[1]), EVER), Pushed::Taken));
    drop(feed);
    assert!(query.wait(EVER));
    assert_eq!(query.take_output().unwrap().rows_in, 1);
}
