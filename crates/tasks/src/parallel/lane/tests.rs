//! State on its way from a lane: charged and counted once.

use arrow_schema::Schema;
use penstock_memory::Run;
use penstock_memory::coordinator::{Coordinator, CoordinatorOptions};
use penstock_operators::{Late, SnapshotError, StateSnapshot};
use penstock_types::{ComputeError, KeyGroups};

use super::super::way::way;
use super::*;
use crate::clock::tests::Hand;
use crate::context::tests::context;
use crate::waker::tests::Counting;

/// State of so many bytes, of which a watermark closes so many.
struct Heap {
    bytes: usize,
    closes: usize,
}

impl Stateful for Heap {
    fn consume(&mut self, _: usize, _: &mut Run) -> Result<(), ComputeError> {
        unreachable!("no rows come")
    }
    fn late_rows(&self, _: usize, _: &mut Run, _: &mut Vec<u32>) {}
    fn advance(&mut self, _: i64) {}
    fn close_open(&mut self) -> Option<i64> {
        None
    }
    fn finish(&mut self) {}
    fn has_output(&self) -> bool {
        false
    }
    fn emit(&mut self, _: &mut Run, _: usize) -> Result<usize, ComputeError> {
        Ok(0)
    }
    fn late(&self) -> Late {
        Late::default()
    }
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn held(&self) -> HeldRows {
        HeldRows { rows: self.bytes as u64 / 100, sessions: 0 }
    }
    fn snapshot(&self) -> StateSnapshot {
        StateSnapshot { tables: Vec::new() }
    }
    fn restore(&mut self, _: &StateSnapshot) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn extract(&mut self, _: KeyGroups) -> Box<dyn Stateful> {
        Box::new(Self { bytes: std::mem::take(&mut self.bytes), closes: 0 })
    }
    fn split_off(&mut self, _: i64) -> Box<dyn Stateful> {
        self.bytes -= self.closes;
        Box::new(Self { bytes: self.closes, closes: 0 })
    }
    fn merge(&mut self, _: Box<dyn Stateful>) {}
}

/// A lane over that state, and both of its ends. At most so many bytes are on their way from it.
fn lane(operator: Heap, most_load: usize, memory: &Coordinator) -> (WayIn<Item>, Lane, WayOut<Handover>) {
    let [splitter, waker, merger] = std::array::from_fn(|_| Counting::pair().1);
    let (items_in, items) = way(8, &splitter, &waker);
    let (out, parts_out) = way(8, &waker, &merger);
    let parts = LaneParts {
        name: "window",
        items,
        out,
        columns: SourceColumns::new(Arc::new(Schema::empty()), Vec::new()),
        clock: None,
        chain: Chain { run: Run::new(), links: Vec::new(), rejected: Arc::default() },
        operator: Box::new(operator),
        profile: Arc::default(),
        entered: Arc::default(),
        late: Arc::default(),
        state: memory.state_account(),
        load: Load::new(most_load, &waker),
        rejects: None,
    };
    (items_in, Lane::new(parts), parts_out)
}

fn run(lane: &mut Lane) -> Step {
    loop {
        let step = lane.step(&context(&Hand::at(0))).unwrap();
        if step != Step::Worked(0) {
            return step;
        }
    }
}

fn coordinator(budget_bytes: usize) -> Coordinator {
    Coordinator::new(CoordinatorOptions { budget_bytes, ..CoordinatorOptions::default() }).unwrap()
}

/// CHARGE-1: between a lane and the merging task, state is charged as before.
#[test]
fn what_is_on_its_way_is_charged_until_it_is_merged_or_dropped() {
    let memory = coordinator(1 << 20);
    let charged = || memory.snapshot().state_bytes;
    let (mut items, mut lane, mut parts) = lane(Heap { bytes: 1000, closes: 600 }, 1 << 20, &memory);
    items.offer(Item::Watermark { watermark: 10, arrived_ns: 0 }).unwrap();
    assert_eq!(run(&mut lane), Step::Idle);
    assert_eq!(charged(), 1000, "600 bytes are closed and not merged, 400 are open");
    items.offer(Item::End).unwrap();
    assert_eq!(run(&mut lane), Step::Done);
    drop(lane);
    assert_eq!(charged(), 1000, "the lane is gone, and what it has left is not");

    let Some(Handover::State { charged: closed, .. }) = parts.take() else { panic!("a window was closed") };
    let Some(Handover::End { charged: rest, .. }) = parts.take() else { panic!("the lane has ended") };
    assert_eq!((closed.bytes(), rest.bytes()), (600, 400));
    let mut merged = memory.state_account();
    closed.merge_into(&mut merged);
    assert_eq!((merged.bytes(), charged()), (600, 1000), "charged once");
    drop(rest);
    assert_eq!(charged(), 600);
    drop(merged);
    assert_eq!(charged(), 0);
}

/// CHARGE-3: rows are held by the lane, then on their way, then by the merging task.
#[test]
fn rows_on_their_way_count_once() {
    let memory = coordinator(1 << 20);
    let (mut items, mut lane, mut parts) = lane(Heap { bytes: 1000, closes: 300 }, 500, &memory);
    let rows = |lane: &Lane| (lane.numbers(0).held.rows, lane.parts.load.held().rows);
    assert_eq!(rows(&lane), (10, 0));
    for watermark in [10, 20] {
        items.offer(Item::Watermark { watermark, arrived_ns: 0 }).unwrap();
    }
    assert_eq!(run(&mut lane), Step::Blocked);
    assert_eq!(rows(&lane), (7, 3), "one part is on its way, and one waits here for room");
    let Some(Handover::State { charged, .. }) = parts.take() else { panic!("a window was closed") };
    assert_eq!(rows(&lane), (7, 3), "taken, and not merged");
    charged.merge_into(&mut memory.state_account());
    assert_eq!(rows(&lane), (7, 0));
    assert_eq!(run(&mut lane), Step::Idle);
    assert_eq!(rows(&lane), (4, 3));
    drop((lane, parts));
}

#[test]
fn what_is_closed_and_may_not_leave_yet_is_charged_as_well() {
    let memory = coordinator(1 << 20);
    let charged = || memory.snapshot().state_bytes;
    let (mut items, mut lane, mut parts) = lane(Heap { bytes: 1000, closes: 300 }, 500, &memory);
    for watermark in [10, 20] {
        items.offer(Item::Watermark { watermark, arrived_ns: 0 }).unwrap();
    }
    assert_eq!(run(&mut lane), Step::Blocked, "one part of 300 bytes is on its way, and 500 are the most");
    assert_eq!(charged(), 1000);
    drop(parts.take());
    assert_eq!(run(&mut lane), Step::Idle);
    assert_eq!(charged(), 700);
    drop((lane, parts));
    assert_eq!(charged(), 0);
}

#[test]
fn what_is_closed_has_to_fit_the_budget() {
    let memory = coordinator(1000);
    let (mut items, mut lane, _parts) = lane(Heap { bytes: 1200, closes: 600 }, 1 << 20, &memory);
    items.offer(Item::Watermark { watermark: 10, arrived_ns: 0 }).unwrap();
    assert!(
        matches!(lane.step(&context(&Hand::at(0))), Err(RunError::MemoryLimit { operator, .. }) if operator == "window")
    );
}
