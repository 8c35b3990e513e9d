//! Windows of every kind against a reference that keeps all rows: any order of arrival, any watermark per row, any cut
//! into runs, any room for results.

use crate::stream;

use penstock_progress::{Aligned, Windows};
use penstock_types::KeyGroups;
use proptest::prelude::*;
use stream::reference::expect;
use stream::{Event, Harness, Plan, any_events, any_keys, assert_same, progress};

/// An event between two runs.
#[derive(Clone, Debug)]
enum Between {
    Nothing,
    /// The watermark lags its largest possible value by this much.
    Advance(i64),
    /// State is written, and read by a fresh operator.
    Restore,
    /// Some key groups are split off and merged back; in the other direction every second time.
    Extract([u8; 20], bool),
    /// The state that a watermark closes is split off, merged back and then closed.
    SplitOff(i64),
}

fn any_between() -> impl Strategy<Value = Between> {
    prop_oneof![
        2 => Just(Between::Nothing),
        4 => prop_oneof![Just(0_i64), 0_i64..30].prop_map(Between::Advance),
        1 => Just(Between::Restore),
        1 => (any::<[u8; 20]>(), any::<bool>()).prop_map(|(groups, swap)| Between::Extract(groups, swap)),
        1 => (0_i64..30).prop_map(Between::SplitOff),
    ]
}

fn small_time() -> BoxedStrategy<i64> {
    (-40_i64..160).boxed()
}

fn any_time() -> BoxedStrategy<i64> {
    let near = |limit: i64| {
        (0_i64..30).prop_map(move |distance| limit.abs_diff(0).min(i64::MAX as u64) as i64 - distance)
    };
    prop_oneof![
        6 => -60_i64..200,
        1 => any::<i64>(),
        1 => near(i64::MAX),
        1 => (0_i64..30).prop_map(|distance| i64::MIN + distance),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ]
    .boxed()
}

fn any_aligned() -> BoxedStrategy<Windows> {
    let sliding = (1_i64..30, 1_i64..30, -20_i64..20)
        .prop_map(|(size, slide, offset)| Aligned::new(size.max(slide), size.min(slide), offset).unwrap());
    let tumbling = (prop_oneof![1_i64..40, Just(1_000), Just(i64::MAX)], -50_i64..50)
        .prop_map(|(size, offset)| Aligned::tumbling(size, offset).unwrap());
    prop_oneof![3 => sliding, 1 => tumbling].prop_map(Windows::Aligned).boxed()
}

fn any_session() -> BoxedStrategy<Windows> {
    prop_oneof![4 => 1_i64..30, 1 => Just(i64::MAX), 1 => Just(i64::MAX / 2)]
        .prop_map(|gap| Windows::session(gap).unwrap())
        .boxed()
}

/// A plan and its events.
fn any_case(
    windows: BoxedStrategy<Windows>,
    lateness: BoxedStrategy<i64>,
) -> impl Strategy<Value = (Plan, Vec<Event>)> {
    let time = prop_oneof![3 => Just(small_time()), 2 => Just(any_time())];
    (windows, lateness, any_keys(), 1_usize..3, time).prop_flat_map(
        |(windows, allowed_lateness, keys, ports, time)| {
            let plan = Plan { allowed_lateness, ports, ..Plan::new(windows, &keys) };
            (Just(plan), any_events(keys, ports, time))
        },
    )
}

fn run_case(
    plan: &Plan,
    events: &[Event],
    run_rows: usize,
    between: &[Between],
    rooms: &[usize],
    marks_everywhere: bool,
) {
    let (expected, late) = expect(plan, events);
    let mut harness = Harness::new(plan);
    let mut told = i64::MIN;
    for (number, run) in events.chunks(run_rows).enumerate() {
        let room = rooms[number % rooms.len()];
        harness.consume(run, marks_everywhere);
        let reached = progress(events, (number * run_rows + run_rows).min(events.len()));
        match &between[number % between.len()] {
            Between::Nothing => {}
            Between::Advance(behind) => {
                told = told.max(reached.saturating_sub(*behind));
                harness.operator.advance(told);
            }
            Between::Restore => {
                let snapshot = harness.operator.snapshot();
                let mut fresh = plan.operator();
                fresh.restore(&snapshot).unwrap();
                assert_eq!(fresh.late(), harness.operator.late());
                harness.operator = fresh;
            }
            Between::Extract(groups, swap) => {
                let mut wanted = KeyGroups::NONE;
                // Some of the groups, or nearly half of them.
                (0..=255_u8)
                    .filter(|group| groups.iter().any(|one| one / 16 == group / 16))
                    .for_each(|group| wanted.insert(group));
                let mut taken = harness.operator.extract(wanted);
                assert!(!taken.has_output());
                if *swap {
                    std::mem::swap(&mut harness.operator, &mut taken);
                }
                harness.operator.merge(taken);
            }
            Between::SplitOff(behind) => {
                told = told.max(reached.saturating_sub(*behind));
                let part = harness.operator.split_off(told);
                assert!(!harness.operator.has_output() && !part.has_output());
                harness.operator.merge(part);
                harness.operator.advance(told);
            }
        }
        harness.drain(room);
    }
    harness.finish(rooms[0]);
    assert_same(plan, &harness.results, &expected);
    assert_eq!(harness.late.len(), late.len());
    assert_eq!(harness.operator.late().rows, late.len() as u64);
    let by = late.iter().map(|event| event.mark.abs_diff(event.time)).max();
    assert_eq!(harness.operator.late().by, by);
    // Accumulators without keys are all that sessions keep.
    assert!(harness.operator.bytes() <= 8 * 1024, "{} bytes are left", harness.operator.bytes());
    assert_eq!(harness.operator.held(), penstock_operators::HeldRows::default(), "everything has left");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn windows_on_a_grid(
        (plan, events) in any_case(any_aligned(), Just(0_i64).boxed()),
        run_rows in 1_usize..12,
        between in prop::collection::vec(any_between(), 1..12),
        rooms in prop::collection::vec(prop_oneof![1_usize..4, Just(1000)], 1..6),
        marks_everywhere in any::<bool>(),
    ) {
        run_case(&plan, &events, run_rows, &between, &rooms, marks_everywhere);
    }

    #[test]
    fn windows_that_are_corrected(
        (plan, events) in any_case(any_aligned(), prop_oneof![4 => 1_i64..40, 1 => Just(i64::MAX)].boxed()),
        run_rows in 1_usize..12,
        between in prop::collection::vec(any_between(), 1..12),
        rooms in prop::collection::vec(1_usize..4, 1..6),
        marks_everywhere in any::<bool>(),
    ) {
        run_case(&plan, &events, run_rows, &between, &rooms, marks_everywhere);
    }

    #[test]
    fn sessions(
        (plan, events) in any_case(any_session(), Just(0_i64).boxed()),
        run_rows in 1_usize..12,
        between in prop::collection::vec(any_between(), 1..12),
        rooms in prop::collection::vec(prop_oneof![1_usize..4, Just(1000)], 1..6),
        marks_everywhere in any::<bool>(),
    ) {
        run_case(&plan, &events, run_rows, &between, &rooms, marks_everywhere);
    }

    /// Windows are emitted in order of their ends while only event time closes them.
    #[test]
    fn windows_come_in_order(
        (plan, events) in any_case(
            prop_oneof![any_aligned(), any_session()].boxed(), Just(0_i64).boxed()),
        run_rows in 1_usize..12, room in 1_usize..5,
    ) {
        let mut harness = Harness::new(&plan);
        for (number, run) in events.chunks(run_rows).enumerate() {
            harness.consume(run, false);
            harness.operator.advance(progress(&events, (number * run_rows + run_rows).min(events.len())));
            harness.drain(room);
        }
        harness.finish(room);
        prop_assert!(harness.ends[0].is_sorted(), "{:?}", harness.ends[0]);
    }
}
