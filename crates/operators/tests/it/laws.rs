//! The laws of event time, broken on purpose: windows that go back, and results below a watermark that has already
//! left.

#![cfg(debug_assertions)]

use crate::stream;

use arrow_schema::DataType;
use penstock_operators::aggregates::AggregateKind;
use penstock_progress::{Aligned, Windows};
use stream::columns::Value;
use stream::{Event, Harness, Plan, inputs};

const NEVER: i64 = i64::MIN;

fn counting(windows: impl Into<Windows>) -> Harness {
    let aggregates = vec![(AggregateKind::Count, None)];
    Harness::new(&Plan { aggregates, ..Plan::new(windows.into(), &[DataType::Int64]) })
}

fn tumbling() -> Harness {
    counting(Aligned::tumbling(10, 0).unwrap())
}

fn sessions() -> Harness {
    counting(Windows::session(10).unwrap())
}

fn event(time: i64) -> Event {
    Event { port: 0, time, mark: NEVER, key: vec![Some(Value::Int(1))], inputs: vec![None; inputs().len()] }
}

/// The watermark advances to 50 and then to 60; after that a part of the state is merged that should have been waited
/// for.
fn merge_too_late(mut late: Harness, mut merger: Harness) {
    late.consume(&[event(5)], false);
    for watermark in [50, 60] {
        merger.operator.advance(watermark);
        merger.drain(1);
    }
    merger.operator.merge(late.operator);
    merger.drain(1);
}

#[test]
#[should_panic(expected = "windows go back from 20 to 19")]
fn windows_do_not_go_back() {
    let mut harness = tumbling();
    for watermark in [20, 20, 19] {
        harness.operator.advance(watermark);
    }
}

#[test]
#[should_panic(expected = "sessions go back from 20 to 19")]
fn sessions_do_not_go_back() {
    let mut harness = sessions();
    for watermark in [20, 20, 19] {
        harness.operator.advance(watermark);
    }
}

#[test]
#[should_panic(expected = "windows go back from 10 to 9")]
fn windows_do_not_go_back_after_closing_by_the_clock() {
    let mut harness = tumbling();
    harness.consume(&[event(5)], false);
    assert_eq!(harness.operator.close_open(), Some(10));
    harness.drain(1);
    harness.operator.advance(9);
}

#[test]
#[should_panic(expected = "a window of 9 comes after the watermark 50")]
fn a_window_emitted_too_late_is_detected() {
    merge_too_late(tumbling(), tumbling());
}

#[test]
#[should_panic(expected = "a session of Some(14) comes after the watermark 41")]
fn a_session_emitted_too_late_is_detected() {
    merge_too_late(sessions(), sessions());
}
