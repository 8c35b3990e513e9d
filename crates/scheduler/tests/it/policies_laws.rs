//! Laws that every plan keeps, whatever the counters say.

// The models do without proptest.
#![cfg(not(any(loom, shuttle)))]

use penstock_scheduler::{
    Decision, Order, PartView, PolicyKind, Quantum, QueryView, Snapshot, TaskView, is_worth_running,
};
use proptest::prelude::*;
use smallvec::SmallVec;

/// Numbers of rows and times: usual ones and the extremes.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        1 => Just(1),
        4 => 0..10_000_u64,
        2 => 0..2_000_000_000_u64,
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

/// Costs and selectivities: any float but NaN.
fn measured() -> impl Strategy<Value = Option<f64>> {
    use prop::num::f64::{INFINITE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    let any = (POSITIVE | NORMAL | SUBNORMAL | ZERO | INFINITE).prop_map(Some);
    prop_oneof![Just(None), Just(Some(0.0)), (0.0..1000.0).prop_map(Some), any]
}

fn any_task() -> impl Strategy<Value = TaskView> {
    let flags = any::<(bool, bool, bool)>();
    let downstream = prop::collection::vec(0..15_usize, 0..4);
    let part =
        prop::option::of((0..12_usize, 0.0..=1.0).prop_map(|(first, share)| PartView { first, share }));
    let counts = (count(), count(), count(), count());
    ((0..7_usize, part), downstream, flags, counts, measured(), measured()).prop_map(
        |((query, part), downstream, (is_source, is_blocked, is_running), counts, cost_ns, selectivity)| {
            TaskView {
                query,
                part,
                downstream: SmallVec::from_vec(downstream),
                is_source,
                is_blocked,
                is_running,
                pending_rows: counts.0,
                signals: counts.1,
                last_run_ns: counts.2,
                arrived_ns: counts.3,
                cost_ns,
                selectivity,
                ..TaskView::default()
            }
        },
    )
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let query = (0..6_u64, count(), count()).prop_map(|(id, latency_sum_ns, latency_count)| QueryView {
        id,
        latency_sum_ns,
        latency_count,
        ..QueryView::default()
    });
    let tasks = prop::collection::vec(any_task(), 0..12);
    (count(), tasks, prop::collection::vec(query, 0..6)).prop_map(|(now_ns, mut tasks, queries)| {
        let count = tasks.len();
        for (index, task) in tasks.iter_mut().enumerate() {
            // Rows go on: whoever reads a task comes behind it.
            task.downstream.retain(|down| *down > index && *down < count);
            if let Some(part) = &mut task.part {
                part.first %= index + 1;
            }
        }
        let snapshot = Snapshot { now_ns, tasks, queries };
        snapshot.check_order();
        snapshot
    })
}

/// Snapshots that follow each other: time goes on, markers come, and one task set stays.
fn any_history() -> impl Strategy<Value = Vec<Snapshot>> {
    let later = prop::collection::vec((0..2_000_000_000_u64, 0..30_u64, 0..1_000_000_000_u64), 0..16);
    let usual = (any_snapshot(), 0..1_000_000_000_u64, later).prop_map(|(first, now_ns, later)| {
        let mut snapshot = Snapshot { now_ns, ..first };
        let mut history = vec![snapshot.clone()];
        for (elapsed_ns, markers, latency_ns) in later {
            snapshot.now_ns += elapsed_ns;
            for (index, query) in snapshot.queries.iter_mut().enumerate() {
                query.latency_count = query.latency_count.saturating_add(markers);
                let more_ns = markers.wrapping_mul(latency_ns >> index);
                query.latency_sum_ns = query.latency_sum_ns.saturating_add(more_ns);
            }
            history.push(snapshot.clone());
        }
        history
    });
    prop_oneof![usual, prop::collection::vec(any_snapshot(), 1..10)]
}

fn any_kind() -> impl Strategy<Value = PolicyKind> {
    prop::sample::select(PolicyKind::NAMES.map(|(_, kind)| kind).to_vec())
}

/// The plans of a policy for each snapshot in turn.
fn plans(kind: PolicyKind, history: &[Snapshot]) -> Vec<Vec<Decision>> {
    let mut policy = kind.make();
    let plan = |snapshot| {
        let mut decisions = Vec::new();
        policy.plan(snapshot, &mut decisions);
        decisions
    };
    history.iter().map(plan).collect()
}

/// Checks one decision by POLICY-1 to POLICY-3.
fn check(task: &TaskView, decision: &Decision) -> Result<(), TestCaseError> {
    prop_assert!(decision.priority.is_finite() && decision.priority >= 0.0, "{decision:?}");
    prop_assert!(decision.threshold_rows > 0, "{decision:?}");
    prop_assert!(decision.quantum.lasts(0, 0) && decision.quantum.ns <= 1_000_000, "{decision:?}");
    let is_worth = is_worth_running(task.pending_rows, task.signals, decision.threshold_rows);
    prop_assert_eq!(decision.is_eligible, is_worth && !task.is_blocked, "{:?} {:?}", task, decision);
    prop_assert!(!decision.is_eligible || task.pending_rows > 0 || task.signals > 0, "{task:?}");
    prop_assert!(decision.is_eligible || task.is_blocked || task.signals == 0, "{task:?} {decision:?}");
    Ok(())
}

proptest! {
    #[test]
    fn every_plan_keeps_the_laws(kind in any_kind(), history in any_history()) {
        for (snapshot, decisions) in history.iter().zip(plans(kind, &history)) {
            prop_assert_eq!(decisions.len(), snapshot.tasks.len());
            for (task, decision) in snapshot.tasks.iter().zip(&decisions) {
                check(task, decision)?;
            }
        }
    }

    #[test]
    fn the_same_past_gives_the_same_plan(kind in any_kind(), history in any_history()) {
        let plans = plans(kind, &history);
        let (mut again, mut decisions) = (kind.make(), Vec::new());
        // What is in the buffer before a plan has no say in it.
        for (snapshot, plan) in history.iter().zip(&plans) {
            again.plan(snapshot, &mut decisions);
            prop_assert_eq!(&decisions, plan);
        }
    }

    #[test]
    fn latency_moves_priorities_by_a_tenth_and_thresholds_within_bounds(history in any_history()) {
        let fresh = history.last().map(std::slice::from_ref).unwrap_or_default();
        let (now, fresh) = (plans(PolicyKind::default(), &history), plans(PolicyKind::default(), fresh));
        for (now, fresh) in now.last().into_iter().flatten().zip(fresh.last().into_iter().flatten()) {
            let weight = now.priority / fresh.priority;
            prop_assert!((0.9 - 1e-9..=1.1 + 1e-9).contains(&weight), "{weight}");
            prop_assert!(now.threshold_rows == 1 || (128..=8192).contains(&now.threshold_rows), "{now:?}");
        }
    }

    #[test]
    fn what_is_downstream_goes_first(
        tasks in prop::collection::vec((1.0..10_000.0, 0.0..20.0, prop::collection::vec(1..5_usize, 0..3)), 1..20),
    ) {
        let view = |(index, (cost_ns, selectivity, ahead)): (usize, (f64, f64, Vec<usize>))| TaskView {
            cost_ns: Some(cost_ns),
            selectivity: Some(selectivity),
            pending_rows: 10_000,
            downstream: ahead.into_iter().map(|ahead| index + ahead).collect(),
            ..TaskView::default()
        };
        let count = tasks.len();
        let mut tasks: Vec<TaskView> = tasks.into_iter().enumerate().map(view).collect();
        tasks.iter_mut().for_each(|task| task.downstream.retain(|down| *down < count));
        let snapshot = Snapshot { tasks, queries: vec![QueryView::default()], ..Snapshot::default() };
        for decisions in plans(PolicyKind::default(), std::slice::from_ref(&snapshot)) {
            for (index, decision) in decisions.iter().enumerate() {
                for down in snapshot.downstream(index) {
                    prop_assert!(decision.priority < decisions[down].priority, "{index} {down}");
                }
            }
        }
    }

    #[test]
    fn an_order_is_a_permutation_by_falling_priority(priorities in prop::collection::vec(prop::num::f64::ANY, 0..200)) {
        let decision = |&priority: &f64| Decision {
            priority,
            threshold_rows: 1,
            is_eligible: true,
            quantum: Quantum::of_rows(1),
        };
        let decisions: Vec<Decision> = priorities.iter().map(decision).collect();
        let mut order = Order::default();
        let ranked = order.rank(&decisions).to_vec();
        let mut sorted = ranked.clone();
        sorted.sort_unstable();
        prop_assert!(sorted.into_iter().eq(0..priorities.len()));
        for pair in ranked.windows(2) {
            let (first, second) = (priorities[pair[0]], priorities[pair[1]]);
            let is_tie = first == second || (first.is_nan() && second.is_nan());
            let is_ordered = first > second || (second.is_nan() && !first.is_nan());
            prop_assert!(is_ordered || (is_tie && pair[0] < pair[1]), "{first} {second}");
        }
        prop_assert_eq!(order.rank(&decisions), ranked);
    }

    #[test]
    fn rows_of_a_quantum_keep_their_floor(cost_ns in measured(), least_rows in count()) {
        let quantum = Quantum::of_cost(cost_ns.unwrap_or(-1.0), least_rows);
        prop_assert!(quantum.rows >= least_rows && quantum.rows <= least_rows.max(quantum.ns));
    }
}
