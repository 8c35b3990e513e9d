//! Edges of windows of every kind, closing by the clock, jumps of time, and memory.

use crate::stream;

use arrow_schema::DataType;
use penstock_memory::{Physical, Run};
use penstock_operators::aggregates::AggregateKind;
use penstock_operators::{WindowSpec, windowed};
use penstock_progress::{Aligned, Windows};
use stream::columns::Value;
use stream::{Event, Harness, Plan, inputs};

const NEVER: i64 = i64::MIN;

fn event(time: i64, mark: i64, key: i64) -> Event {
    let mut values = vec![None; inputs().len()];
    values[0] = Some(Value::Int(1));
    Event { port: 0, time, mark, key: vec![Some(Value::Int(key.into()))], inputs: values }
}

fn counting(windows: impl Into<Windows>) -> Plan {
    let aggregates = vec![(AggregateKind::Count, None)];
    Plan { aggregates, ..Plan::new(windows.into(), &[DataType::Int64]) }
}

/// Returns (start, end, count, whether it corrects), in order.
fn results(harness: &Harness) -> Vec<(i64, i64, i128, bool)> {
    let mut rows: Vec<_> = harness
        .results
        .values()
        .map(|((start, end, _, corrects), values, _)| {
            let Some(Value::Int(count)) = values[0] else { panic!("a count") };
            (*start, *end, count, *corrects)
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn counts(plan: &Plan, events: &[(i64, i64)]) -> Vec<(i64, i64, i128, bool)> {
    let mut harness = Harness::new(plan);
    for &(time, mark) in events {
        harness.consume(&[event(time, mark, 1)], true);
    }
    harness.finish(10);
    results(&harness)
}

#[test]
fn tumbling_edges() {
    let plan = counting(Aligned::tumbling(10, 0).unwrap());
    let firsts = |rows: &[(i64, i64, i128)]| -> Vec<(i64, i64, i128, bool)> {
        rows.iter().map(|&(start, end, count)| (start, end, count, false)).collect()
    };
    for (times, expected) in [
        (vec![0, 9], vec![(0, 10, 2)]),
        (vec![9, 10], vec![(0, 10, 1), (10, 20, 1)]),
        (vec![-1, 0], vec![(-10, 0, 1), (0, 10, 1)]),
        (vec![-10, -11], vec![(-20, -10, 1), (-10, 0, 1)]),
        (vec![i64::MAX], vec![(i64::MAX - 7, i64::MAX, 1)]),
        (vec![i64::MIN], vec![(i64::MIN, i64::MIN + 8, 1)]),
    ] {
        let events: Vec<(i64, i64)> = times.iter().map(|&time| (time, NEVER)).collect();
        assert_eq!(counts(&plan, &events), firsts(&expected), "{times:?}");
    }
    let moved = counting(Aligned::tumbling(10, 3).unwrap());
    assert_eq!(counts(&moved, &[(2, NEVER), (3, NEVER)]), firsts(&[(-7, 3, 1), (3, 13, 1)]));
    // On time while the watermark is below the end, late from there on.
    assert_eq!(counts(&plan, &[(3, 9)]), firsts(&[(0, 10, 1)]));
    assert_eq!(counts(&plan, &[(3, 10)]), firsts(&[]));
    assert_eq!(counts(&plan, &[(10, 10)]), firsts(&[(10, 20, 1)]));
}

#[test]
fn sliding_edges() {
    let plan = counting(Aligned::new(30, 10, 0).unwrap());
    let firsts = |rows: &[(i64, i64, i128)]| -> Vec<(i64, i64, i128, bool)> {
        rows.iter().map(|&(start, end, count)| (start, end, count, false)).collect()
    };
    assert_eq!(counts(&plan, &[(10, NEVER)]), firsts(&[(-10, 20, 1), (0, 30, 1), (10, 40, 1)]));
    // Late for the first of its windows, for two, for all.
    assert_eq!(counts(&plan, &[(10, 20)]), firsts(&[(0, 30, 1), (10, 40, 1)]));
    assert_eq!(counts(&plan, &[(10, 39)]), firsts(&[(10, 40, 1)]));
    assert_eq!(counts(&plan, &[(10, 40)]), firsts(&[]));
    let odd = counting(Aligned::new(7, 3, 1).unwrap());
    assert_eq!(counts(&odd, &[(4, NEVER)]), firsts(&[(-2, 5, 1), (1, 8, 1), (4, 11, 1)]));
    assert_eq!(counts(&odd, &[(3, NEVER)]), firsts(&[(-2, 5, 1), (1, 8, 1)]));
}

#[test]
fn session_edges() {
    let plan = counting(Windows::session(10).unwrap());
    let firsts = |rows: &[(i64, i64, i128)]| -> Vec<(i64, i64, i128, bool)> {
        rows.iter().map(|&(start, end, count)| (start, end, count, false)).collect()
    };
    let all = |times: &[i64]| counts(&plan, &times.iter().map(|&time| (time, NEVER)).collect::<Vec<_>>());
    assert_eq!(all(&[0, 9]), firsts(&[(0, 19, 2)]));
    assert_eq!(all(&[0, 10]), firsts(&[(0, 10, 1), (10, 20, 1)]));
    // A row that bridges two sessions, and one that is near neither end.
    assert_eq!(all(&[0, 18, 9]), firsts(&[(0, 28, 3)]));
    assert_eq!(all(&[30, 0, 15]), firsts(&[(0, 10, 1), (15, 25, 1), (30, 40, 1)]));
    assert_eq!(all(&[30, 0, 15, 22, 8]), firsts(&[(0, 40, 5)]));
    assert_eq!(all(&[i64::MIN, i64::MAX]), firsts(&[(i64::MIN, i64::MIN + 10, 1), (i64::MAX, i64::MAX, 1)]));
    assert_eq!(all(&[i64::MAX - 3, i64::MAX]), firsts(&[(i64::MAX - 3, i64::MAX, 2)]));
    // In one run: rows of a session that is merged into another, which is then merged into a third.
    let mut harness = Harness::new(&plan);
    harness.consume(&[0, 18, 36, 9, 27].map(|time| event(time, NEVER, 1)), false);
    harness.finish(1);
    assert_eq!(results(&harness), firsts(&[(0, 46, 5)]));
    assert_eq!(counts(&plan, &[(5, 14)]), firsts(&[(5, 15, 1)]));
    assert_eq!(counts(&plan, &[(5, 15)]), firsts(&[]));
}

#[test]
fn a_session_is_over_when_nothing_on_time_can_reach_it() {
    let plan = counting(Windows::session(10).unwrap());
    let mut harness = Harness::new(&plan);
    harness.consume(&[event(5, NEVER, 1)], true);
    harness.operator.advance(23);
    assert!(!harness.operator.has_output(), "a row at 14 is on time, and belongs to it");
    harness.consume(&[event(14, 23, 1)], true);
    harness.operator.advance(32);
    assert!(!harness.operator.has_output());
    harness.operator.advance(33);
    harness.drain(1);
    assert_eq!(results(&harness), [(5, 24, 2, false)]);
    assert_eq!(harness.operator.output_watermark(33), 24);
    assert_eq!(harness.operator.output_watermark(NEVER), NEVER);
    assert_eq!(harness.operator.output_watermark(NEVER + 3), i64::MIN);
}

#[test]
fn corrections_follow_first_results() {
    let plan = Plan { allowed_lateness: 5, ..counting(Aligned::tumbling(10, 0).unwrap()) };
    let mut harness = Harness::new(&plan);
    harness.consume(&[event(1, NEVER, 1), event(2, NEVER, 2)], true);
    harness.operator.advance(10);
    harness.drain(10);
    assert_eq!(results(&harness), [(0, 10, 1, false), (0, 10, 1, false)]);
    // Key 1 gets another row, key 3 its first, and one row is too late for everything.
    harness.consume(&[event(3, 10, 1), event(4, 14, 3), event(5, 15, 2)], true);
    assert_eq!(harness.operator.late().rows, 1);
    harness.operator.advance(14);
    assert!(!harness.operator.has_output());
    harness.operator.advance(15);
    harness.drain(1);
    let corrected: Vec<_> = results(&harness).into_iter().filter(|row| row.3).collect();
    assert_eq!(corrected, [(0, 10, 1, true), (0, 10, 2, true)]);
    assert_eq!(harness.operator.bytes(), 0);
    // At the end of the input, every first result precedes every correction.
    harness.consume(&[event(21, 15, 1), event(35, 15, 1), event(22, 30, 1), event(36, 40, 1)], true);
    harness.operator.finish();
    let firsts = harness.ends[0].len();
    harness.drain(1);
    assert_eq!(
        (&harness.ends[0][firsts..], &harness.ends[1][2..]),
        ([30, 40].as_slice(), [30, 40].as_slice())
    );
}

#[test]
fn the_clock_closes_what_is_open() {
    for (windows, closed) in [
        (Aligned::tumbling(10, 0).unwrap().into(), 20),
        (Aligned::new(20, 10, 0).unwrap().into(), 30),
        (Windows::session(10).unwrap(), 12 + 19),
    ] {
        let plan = counting(windows);
        let mut harness = Harness::new(&plan);
        assert_eq!(harness.operator.close_open(), None);
        harness.consume(&[event(3, NEVER, 1), event(12, NEVER, 1)], true);
        assert_eq!(harness.operator.close_open(), Some(closed), "{windows:?}");
        harness.drain(1);
        assert_eq!(harness.operator.close_open(), None);
        let before = harness.results.len();
        // By its own watermark the row would be on time.
        harness.consume(&[event(12, NEVER, 1)], false);
        assert_eq!(harness.operator.late().rows, 1, "{windows:?}");
        harness.consume(&[event(closed, NEVER, 1)], false);
        harness.finish(10);
        assert!(harness.results.len() > before);
    }
}

#[test]
fn the_clock_closes_windows_that_event_time_cannot() {
    for windows in [Aligned::tumbling(10, 0).unwrap().into(), Windows::session(10).unwrap()] {
        let mut harness = Harness::new(&counting(windows));
        harness.consume(&[event(i64::MAX, NEVER, 1)], false);
        harness.operator.advance(i64::MAX);
        assert!(!harness.operator.has_output());
        assert_eq!(harness.operator.close_open(), Some(i64::MAX));
        harness.drain(1);
        harness.consume(&[event(i64::MAX, NEVER, 1)], false);
        assert_eq!((harness.results.len(), harness.operator.late().rows), (1, 1));
    }
}

#[test]
fn time_may_jump() {
    let plan = counting(Aligned::new(60, 1, 0).unwrap());
    let mut harness = Harness::new(&plan);
    let mut now = -1_i64 << 60;
    for _ in 0..50 {
        harness.consume(&[event(now, now, 1)], false);
        now += 1_000_000_000_000_000;
        harness.operator.advance(now);
        harness.drain(1000);
    }
    assert_eq!(harness.results.len(), 50 * 60);
    assert_eq!(harness.operator.bytes(), 0);
}

#[test]
fn windows_without_aggregates_give_their_keys() {
    let plan = Plan { aggregates: vec![], ..counting(Aligned::new(20, 10, 0).unwrap()) };
    let mut harness = Harness::new(&plan);
    harness.consume(&[event(15, NEVER, 1), event(16, NEVER, 2), event(17, NEVER, 1)], false);
    harness.finish(1);
    assert_eq!(harness.results.len(), 4);
}

#[test]
fn days_beyond_32_bits_are_given_as_the_last_day() {
    let plan = counting(Aligned::tumbling(10, 0).unwrap());
    let mut operator = windowed(WindowSpec { bounds: Physical::I32, emits_time: false, ..plan.spec() });
    let days = [i32::MIN, 3, i32::MAX].map(|day| event(day.into(), NEVER, 1));
    operator.consume(0, &mut plan.run(&days, false)).unwrap();
    operator.finish();
    let mut out = Run::new();
    for kind in [Physical::I32, Physical::I32, Physical::I64, Physical::I64] {
        out.add_slot(kind);
    }
    let mut bounds = Vec::new();
    while operator.has_output() {
        assert_eq!(operator.emit(&mut out, 5).unwrap(), 1);
        bounds.push([0, 1].map(|slot| out.column(slot).fixed::<i32>()[0]));
    }
    assert_eq!(bounds, [[i32::MIN, i32::MIN + 8], [0, 10], [i32::MAX - 7, i32::MAX]]);
}

/// Keys that occur once, in great numbers; their state is dropped with them.
#[test]
fn memory_goes_with_the_keys() {
    let rows: i64 = if cfg!(debug_assertions) { 40_000 } else { 1_000_000 };
    for windows in [
        Aligned::tumbling(1_000, 0).unwrap().into(),
        Aligned::new(4_000, 1_000, 0).unwrap().into(),
        Windows::session(1_000).unwrap(),
    ] {
        let kinds =
            [AggregateKind::Count, AggregateKind::Sum, AggregateKind::CountDistinct, AggregateKind::Last];
        let aggregates = kinds.map(|kind| (kind, Some(0))).to_vec();
        let plan = Plan { aggregates, ..counting(windows) };
        let mut harness = Harness::new(&plan);
        let mut most = 0;
        for from in (0..rows).step_by(1_000) {
            let events: Vec<Event> = (from..from + 1_000)
                .map(|row| event(row, from, row.wrapping_mul(0x1E37_79B9_7F4A_7C15)))
                .collect();
            harness.consume(&events, false);
            most = most.max(harness.operator.bytes());
            harness.operator.advance(from + 1_000);
            while harness.operator.has_output() {
                harness.emit_any().unwrap();
            }
        }
        assert!(most < 4 << 20, "{windows:?}: {most} bytes");
        harness.operator.advance(i64::MAX);
        while harness.operator.has_output() {
            harness.emit_any().unwrap();
        }
        assert!(harness.operator.bytes() < 2048, "{windows:?}: {} bytes", harness.operator.bytes());
    }
}

/// A key that arrives while many others are present does not keep their state.
#[test]
fn one_pane_does_not_keep_the_keys_of_others() {
    for (keys, aligned) in
        [(3_000, Aligned::new(40, 10, 0)), (3_000, Aligned::tumbling(10, 0)), (300, Aligned::new(40, 10, 0))]
    {
        let plan = counting(aligned.unwrap());
        let mut harness = Harness::new(&plan);
        for pane in 0..4 {
            let events: Vec<Event> = (0..keys)
                .map(|key| event(pane * 10, NEVER, (pane * keys + key).wrapping_mul(0x1E37_79B9_7F4A_7C15)))
                .collect();
            harness.consume(&events, false);
        }
        let most = harness.operator.bytes();
        harness.consume(&[event(1_000, NEVER, 1)], false);
        harness.operator.advance(1_000);
        harness.drain(1_000);
        let left = harness.operator.bytes();
        assert!(left < 24 * 1024 && left * 4 < most, "{left} bytes are left of {most}");
        harness.consume(&[event(1_005, 1_000, 1), event(1_012, 1_000, 2)], false);
        harness.results.clear();
        harness.finish(1_000);
        let windows = if aligned == Aligned::tumbling(10, 0) { 2 } else { 4 + 4 };
        assert_eq!(harness.results.len(), windows);
    }
}

/// Emitted sessions hold no memory because of one that stays.
#[test]
fn emitted_sessions_release_their_state() {
    let gap = 100;
    let aggregates = vec![(AggregateKind::Count, None), (AggregateKind::CountDistinct, Some(0))];
    let plan = Plan { aggregates, ..counting(Windows::session(gap).unwrap()) };
    let row = |time: i64, key: i64, value: i64| {
        let mut row = event(time, NEVER, key);
        row.inputs[0] = Some(Value::Int(value.into()));
        row
    };
    let many_keys = |number: i64| (number, 1);
    let many_values = |number: i64| (1, number);
    for of_row in [many_keys, many_values] {
        let mut left = Vec::new();
        for rows in [20_000, 80_000] {
            let mut harness = Harness::new(&plan);
            let events: Vec<Event> = (0..rows)
                .map(|number| {
                    let (key, value) = of_row(number);
                    row(0, key, value)
                })
                .chain([row(gap, -1, 1)])
                .collect();
            harness.consume(&events, false);
            let most = harness.operator.bytes();
            harness.operator.advance(2 * gap - 1);
            while harness.operator.has_output() {
                harness.emit_any().unwrap();
            }
            assert!(most > 16 * rows as usize, "{most} bytes for {rows} rows");
            left.push(harness.operator.bytes());
            harness.finish(1);
            assert_eq!(results(&harness), [(gap, 2 * gap, 1, false)]);
        }
        assert!(left[1] <= left[0] && left[0] < 32 << 10, "{left:?} bytes are left");
    }
}

/// A total may exceed 64 bits in one pane and come back in another; only the total of the window counts.
#[test]
fn totals_are_exact_across_panes() {
    let max = i128::from(i64::MAX);
    let sliding = Windows::from(Aligned::new(20, 10, 0).unwrap());
    let summing =
        |windows: Windows| Plan { aggregates: vec![(AggregateKind::Sum, Some(0))], ..counting(windows) };
    let valued = |time: i64, value: i128| {
        // Too late for the window that ends at 10.
        let mut event = event(time, 10, 1);
        event.inputs[0] = Some(Value::Int(value));
        event
    };
    for (windows, restored) in [(sliding, false), (sliding, true), (Windows::session(9).unwrap(), false)] {
        let plan = summing(windows);
        let mut harness = Harness::new(&plan);
        harness.consume(&[valued(5, max), valued(6, max), valued(7, -6)], false);
        // Two sessions that the last row merges.
        harness.consume(&[valued(17, -max), valued(12, 0)], false);
        if restored {
            let snapshot = harness.operator.snapshot();
            harness.operator = plan.operator();
            harness.operator.restore(&snapshot).unwrap();
        }
        harness.finish(3);
        let mut sums: Vec<_> =
            harness.results.values().map(|((start, ..), sum, _)| (*start, sum[0].clone())).collect();
        sums.sort_by_key(|(start, _)| *start);
        let int = |value: i128| Some(Value::Int(value));
        let expected = match windows {
            Windows::Session { .. } => vec![(5, int(max - 6))],
            Windows::Aligned(_) => vec![(0, int(max - 6)), (10, int(-max))],
        };
        assert_eq!(sums, expected, "{windows:?}");
    }
    let mut harness = Harness::new(&summing(sliding));
    harness.consume(&[valued(5, max), valued(15, 1)], false);
    harness.operator.finish();
    let error = harness.emit_any().unwrap_err().to_string();
    assert!(error.contains("the total is 9223372036854775808"), "{error}");
}
