//! Laws of the budget, whatever logs and operators do.

use penstock_memory::coordinator::{Account, Coordinator, Inline, Memory, Options, StateAccount};
use proptest::prelude::*;

const KIB: usize = 1 << 10;
const BUDGET: usize = 512 * KIB;
const LOG_CAP: usize = 256 * KIB;

#[derive(Clone, Debug)]
enum Step {
    Open(usize),
    CloseLog(usize),
    Grow(usize, u32),
    Shrink(usize),
    Export(usize),
    DropExported,
    Pin(usize, usize),
    Unpin(usize),
    State(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let log = 0..4_usize;
    prop_oneof![
        1 => (0..3_usize).prop_map(|chunks| Step::Open(chunks * 16 * KIB)),
        1 => log.clone().prop_map(Step::CloseLog),
        6 => (log.clone(), 0..6_u32).prop_map(|(log, doubled)| Step::Grow(log, doubled)),
        3 => log.clone().prop_map(Step::Shrink),
        1 => log.clone().prop_map(Step::Export),
        1 => Just(Step::DropExported),
        2 => (log.clone(), 0..64 * KIB).prop_map(|(log, bytes)| Step::Pin(log, bytes)),
        2 => log.prop_map(Step::Unpin),
        2 => (0..2_usize, 0..256 * KIB).prop_map(|(state, bytes)| Step::State(state, bytes)),
    ]
}

/// A log as the laws see it.
struct Log {
    chunks: Vec<Memory>,
    pinned: Vec<usize>,
    reserved: usize,
    account: Account,
}

impl Log {
    fn held(&self) -> usize {
        self.chunks.iter().map(Memory::bytes).sum()
    }

    fn payload(&self) -> usize {
        self.pinned.iter().sum()
    }

    fn charge(&self) -> usize {
        self.held().max(self.reserved) + self.payload()
    }
}

struct World {
    logs: Vec<Log>,
    exported: Vec<Memory>,
    states: Vec<StateAccount>,
    coordinator: Coordinator,
}

impl World {
    fn new() -> Self {
        let options = Options { budget_bytes: BUDGET, log_cap_bytes: LOG_CAP, ..Options::default() };
        let coordinator = Coordinator::new(options).expect("a thread can be started");
        let states = (0..2).map(|_| coordinator.state_account()).collect();
        Self { logs: Vec::new(), exported: Vec::new(), states, coordinator }
    }

    fn used(&self) -> usize {
        self.logs.iter().map(Log::charge).sum::<usize>()
            + self.states.iter().map(StateAccount::bytes).sum::<usize>()
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let used = self.used();
        match step {
            Step::Open(reserved) if self.logs.len() < 4 => match self.coordinator.reserve(reserved) {
                Ok(account) => {
                    self.logs.push(Log { chunks: Vec::new(), pinned: Vec::new(), reserved, account });
                }
                Err(refusal) => {
                    prop_assert!(used + reserved > BUDGET);
                    prop_assert_eq!((refusal.needed_bytes, refusal.used_bytes), (reserved, used));
                }
            },
            Step::CloseLog(log) if log < self.logs.len() => drop(self.logs.swap_remove(log)),
            Step::Grow(log, doubled) if log < self.logs.len() => {
                self.grow(log, (4 * KIB) << doubled, used)?
            }
            Step::Shrink(log) if log < self.logs.len() => {
                if let Some(memory) = self.logs[log].chunks.pop() {
                    let bytes = memory.bytes();
                    drop(memory);
                    self.logs[log].account.shrink(bytes);
                }
            }
            Step::Export(log) if log < self.logs.len() => {
                if let Some(memory) = self.logs[log].chunks.pop() {
                    memory.detach();
                    self.exported.push(memory);
                }
            }
            Step::DropExported => drop(self.exported.pop()),
            Step::Pin(log, bytes) if log < self.logs.len() => {
                self.logs[log].account.charge_payload(bytes);
                self.logs[log].pinned.push(bytes);
            }
            Step::Unpin(log) if log < self.logs.len() => {
                if let Some(bytes) = self.logs[log].pinned.pop() {
                    self.logs[log].account.release_payload(bytes);
                }
            }
            Step::State(state, bytes) => {
                let before = self.states[state].bytes();
                let fits = self.states[state].set(bytes).is_ok();
                prop_assert_eq!(fits, bytes <= before || used - before + bytes <= BUDGET);
                prop_assert_eq!(self.states[state].bytes(), if fits { bytes } else { before });
            }
            // A log that is not there.
            _ => {}
        }
        Ok(())
    }

    fn grow(&mut self, log: usize, bytes: usize, used: usize) -> Result<(), TestCaseError> {
        let log = &mut self.logs[log];
        let grown = log.held() + bytes;
        let more = grown.max(log.reserved) - log.held().max(log.reserved);
        let fits = grown <= log.reserved || (grown + log.payload() <= LOG_CAP && used + more <= BUDGET);
        prop_assert_eq!(log.account.try_grow(bytes), fits);
        if fits {
            log.chunks.push(log.account.allocate(bytes, Inline::Start).expect("the machine has memory"));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let counters = self.coordinator.snapshot();
        let payload: usize = self.logs.iter().map(Log::payload).sum();
        let state: usize = self.states.iter().map(StateAccount::bytes).sum();
        let live: usize = self.logs.iter().map(|log| log.chunks.len()).sum();
        prop_assert_eq!(counters.used_bytes, self.used() as u64);
        prop_assert_eq!(counters.pinned_bytes, payload as u64);
        prop_assert_eq!(counters.state_bytes, state as u64);
        prop_assert!(self.used() - payload <= BUDGET, "only payload goes beyond the budget");
        prop_assert_eq!(counters.chunks_live, live as u64);
        prop_assert_eq!(counters.chunks_exported, self.exported.len() as u64);
        let exported: usize = self.exported.iter().map(Memory::bytes).sum();
        prop_assert_eq!(counters.exported_bytes, exported as u64);
        for log in &self.logs {
            prop_assert_eq!(log.account.charged_bytes(), log.charge());
            prop_assert_eq!(log.account.over_cap(), log.held() + log.payload() > LOG_CAP);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn used_is_the_sum_of_all_charges(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.take(step)?;
            world.check()?;
        }
        world.logs.clear();
        world.states.clear();
        prop_assert_eq!(world.coordinator.snapshot().used_bytes, 0);
        prop_assert_eq!(world.coordinator.snapshot().chunks_live, 0);
    }
}
