//! One of several workers on the same operator: stateless operators, and a part of the state.

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::{MemoryLimit, Physical, SourceColumns};
use penstock_operators::{HeldRows, Stateful};
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;

use super::item::{Item, Portion};
use super::part::Part;
use super::way::{Carried, WayIn, WayOut};
use crate::tasks::account::LateCount;
use crate::tasks::chain::Chain;
use crate::tasks::charge::{Charged, Load};
use crate::tasks::clock::{Clock, elapsed_ns};
use crate::tasks::context::Context;
use crate::tasks::error::RunError;
use crate::tasks::event_time::times::place_time;
use crate::tasks::event_time::{LaneClock, TimeFrom};
use crate::tasks::rejects::Rejects;
use crate::tasks::step::{BlockedOn, Numbers, Step, Task};

/// What a lane is made of.
pub struct LaneParts {
    /// The name of the operator.
    pub name: &'static str,
    /// What the splitter hands to it.
    pub items: WayOut<Item>,
    /// What it hands to the merging task.
    pub out: WayIn<Part>,
    /// The columns of batches.
    pub columns: SourceColumns,
    /// Where event time goes.
    pub clock: Option<LaneClock>,
    /// The stateless operators.
    pub chain: Chain,
    /// The operator.
    pub operator: Box<dyn Stateful>,
    /// What it did.
    pub profile: Arc<Profile>,
    /// Rows that came to the operator.
    pub entered: Arc<Counter>,
    /// Those of them that were late.
    pub late: Arc<LateCount>,
    /// The charge of its state.
    pub state: StateAccount,
    /// The state that is on its way from it.
    pub load: Arc<Load>,
    /// Where rejected rows go, unless the query fails.
    pub rejects: Option<Rejects>,
}

/// A lane.
pub struct Lane {
    parts: LaneParts,
    /// The portion at hand, and the next of its pieces.
    at_hand: Option<(Portion, usize)>,
    due: VecDeque<Part>,
    ended: bool,
    batches: u64,
    rows: u64,
    /// What it has handed out, by the keys in it.
    rows_out: u64,
    arrived_ns: u64,
    is_blocked: bool,
}

impl Lane {
    /// A lane made of those parts.
    pub fn new(parts: LaneParts) -> Self {
        Self {
            parts,
            at_hand: None,
            due: VecDeque::new(),
            ended: false,
            batches: 0,
            rows: 0,
            rows_out: 0,
            arrived_ns: 0,
            is_blocked: false,
        }
    }

    /// Passes the next piece of the portion to the operator.
    fn process(&mut self, clock: &dyn Clock) -> Result<Step, RunError> {
        let Some((portion, next)) = &mut self.at_hand else { return Ok(Step::Idle) };
        let parts = &mut self.parts;
        let (run, piece) = (&mut parts.chain.run, &mut portion.pieces[*next]);
        run.begin(&parts.columns, piece.start, piece.len);
        if let Some(good) = piece.good.take() {
            run.select(good);
        }
        if let Some(event_time) = parts.clock {
            match event_time.from {
                TimeFrom::Columns { time, .. } | TimeFrom::Marked { time } => {
                    place_time(run, time, event_time.slot, (portion.offset, event_time.from.is_end()));
                }
                TimeFrom::Wall(_) => {
                    let mut times = run.scratch(Physical::I64);
                    times.refill::<i64>().resize(piece.len, piece.stamp.unwrap_or_default());
                    run.put(event_time.slot, times);
                }
            }
            if let Some(range) = piece.range {
                run.note_range(event_time.slot, range);
            }
            if let Some(mut before) = piece.before.take() {
                let mut marks = run.scratch(Physical::I64);
                std::mem::swap(marks.refill(), &mut before);
                run.put(event_time.watermark_slot, marks);
            }
            if let Some(watermark) = piece.watermark {
                run.note_watermark(watermark);
            }
        }
        let rows = piece.len;
        *next += 1;
        let is_last = *next == portion.pieces.len();
        parts.chain.process(clock, parts.rejects.as_mut())?;
        let left = parts.chain.run.len();
        if left > 0 {
            let started_ns = clock.system_ns();
            let before = parts.operator.late().rows;
            let consumed = parts.operator.consume(0, &mut parts.chain.run);
            consumed.map_err(|error| RunError::Compute { operator: parts.name.to_owned(), error })?;
            parts.profile.record(left, 0, elapsed_ns(clock, started_ns));
            parts.entered.add(left as u64);
            parts.late.note(before, parts.operator.late());
        }
        self.rows += rows as u64;
        self.parts.items.done(rows as u64);
        if is_last {
            self.parts.chain.run.close();
            self.at_hand = None;
        }
        self.charge()?;
        Ok(Step::Worked(rows))
    }

    fn charge(&mut self) -> Result<(), RunError> {
        let bytes = self.parts.operator.bytes();
        self.parts.state.set(bytes).map_err(|limit| self.exceeded(bytes, limit))
    }

    fn exceeded(&self, bytes: usize, limit: MemoryLimit) -> RunError {
        RunError::MemoryLimit { operator: self.parts.name.to_owned(), bytes, limit }
    }

    /// Charges a part of so many bytes that was split off; the rest stays with the lane.
    fn split_charge(&mut self, bytes: usize, held: HeldRows) -> Result<Charged, RunError> {
        let mut account = self.parts.state.split(bytes);
        self.charge()?;
        account.set(bytes).map_err(|limit| self.exceeded(bytes, limit))?;
        Ok(Charged::new(account, held))
    }

    /// Hands out what is due. Returns true if all of it has left.
    fn hand_out(&mut self) -> bool {
        if let Some(rejects) = &mut self.parts.rejects
            && !rejects.hand_out()
        {
            return false;
        }
        while let Some(mut part) = self.due.pop_front() {
            // What has left once and came back counts already.
            if let Part::State { charged, .. } | Part::End { charged, .. } = &mut part
                && !charged.is_sent()
            {
                if !self.parts.load.has_room(charged.bytes()) {
                    self.due.push_front(part);
                    return false;
                }
                charged.send(&self.parts.load);
            }
            let rows = part.work().rows;
            if let Err(back) = self.parts.out.offer(part) {
                self.due.push_front(back);
                return false;
            }
            self.rows_out += rows;
        }
        true
    }
}

impl Task for Lane {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        self.is_blocked = !self.hand_out();
        if self.is_blocked {
            return Ok(Step::Blocked);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        if self.at_hand.is_some() {
            return self.process(context.clock());
        }
        let Some(item) = self.parts.items.take() else { return Ok(Step::Idle) };
        match item {
            Item::Portion(portion) => {
                let opened = self.parts.chain.run.open(&self.parts.columns, &portion.batch);
                opened.map_err(|error| RunError::Batch { number: self.batches, error })?;
                self.batches += 1;
                self.at_hand = Some((portion, 0));
                return self.process(context.clock());
            }
            Item::Watermark { watermark, arrived_ns } => {
                self.arrived_ns = arrived_ns;
                let state = self.parts.operator.split_off(watermark);
                let charged = self.split_charge(state.bytes(), state.held())?;
                self.due.push_back(Part::State { state, watermark, arrived_ns, charged });
            }
            Item::Signal(signal) => self.due.push_back(Part::Signal(signal)),
            Item::End => {
                let rest = self.parts.operator.extract(penstock_types::KeyGroups::ALL);
                let charged = self.split_charge(rest.bytes(), rest.held())?;
                self.due.push_back(Part::End { state: rest, arrived_ns: self.arrived_ns, charged });
                self.ended = true;
            }
        }
        Ok(Step::Worked(0))
    }

    fn numbers(&self, _now_ns: u64) -> Numbers {
        let rejects = self.parts.rejects.as_ref();
        let due = self.due.iter().filter_map(Part::charged);
        Numbers {
            rows_in: self.rows,
            rows_out: self.rows_out,
            blocked_ns: 0,
            is_blocked: self.is_blocked,
            blocked_on: match rejects {
                Some(rejects) if rejects.is_blocked() => BlockedOn::Letters,
                _ => BlockedOn::Room,
            },
            is_unfinished: !self.due.is_empty() || rejects.is_some_and(Rejects::is_waiting),
            held: due.fold(self.parts.operator.held(), |sum, charged| sum + charged.unsent()),
        }
    }

    fn load(&self) -> Option<Arc<Load>> {
        Some(Arc::clone(&self.parts.load))
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;
    use penstock_memory::Run;
    use penstock_memory::coordinator::{Coordinator, CoordinatorOptions};
    use penstock_operators::{Late, SnapshotError, StateSnapshot};
    use penstock_types::{ComputeError, KeyGroups};

    use super::super::way::way;
    use super::*;
    use crate::tasks::clock::tests::Hand;
    use crate::tasks::context::tests::context;
    use crate::tasks::waker::tests::Counting;

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
    fn lane(operator: Heap, most_load: usize, memory: &Coordinator) -> (WayIn<Item>, Lane, WayOut<Part>) {
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

        let Some(Part::State { charged: closed, .. }) = parts.take() else { panic!("a window was closed") };
        let Some(Part::End { charged: rest, .. }) = parts.take() else { panic!("the lane has ended") };
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
        let Some(Part::State { charged, .. }) = parts.take() else { panic!("a window was closed") };
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
        assert_eq!(
            run(&mut lane),
            Step::Blocked,
            "one part of 300 bytes is on its way, and 500 are the most"
        );
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
}
