//! Laws of the budget, for any sequence of calls of logs and operators.

use penstock_memory::coordinator::{
    Coordinator, CoordinatorOptions, Inline, LogAccount, Memory, StateAccount,
};
use proptest::prelude::*;

const KIB: usize = 1 << 10;
const BUDGET: usize = 512 * KIB;
/// The bytes that logs may grow to.
const FOR_LOGS: usize = BUDGET / 8 * 7;
const LOG_CAP: usize = 256 * KIB;

#[derive(Clone, Debug)]
enum Step {
    Open(usize),
    CloseLog(usize),
    Grow(usize, u32),
    Shrink(usize),
    Abandon(usize, u32),
    Export(usize),
    DropKept,
    DropLate,
    ExportLate,
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
        1 => (log.clone(), 0..6_u32).prop_map(|(log, doubled)| Step::Abandon(log, doubled)),
        1 => log.clone().prop_map(Step::Export),
        1 => Just(Step::DropKept),
        1 => Just(Step::DropLate),
        1 => Just(Step::ExportLate),
        2 => (log.clone(), 0..64 * KIB).prop_map(|(log, bytes)| Step::Pin(log, bytes)),
        2 => log.prop_map(Step::Unpin),
        2 => (0..2_usize, 0..256 * KIB).prop_map(|(state, bytes)| Step::State(state, bytes)),
    ]
}

/// Memory, and the payload that it keeps alive.
struct Chunk {
    pinned: usize,
    memory: Memory,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.memory.release_payload(self.pinned);
    }
}

fn held(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.memory.bytes()).sum()
}

fn pinned(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.pinned).sum()
}

/// The model of a log.
struct Log {
    chunks: Vec<Chunk>,
    reserved: usize,
    account: LogAccount,
}

impl Log {
    fn held(&self) -> usize {
        held(&self.chunks)
    }

    fn payload(&self) -> usize {
        pinned(&self.chunks)
    }

    fn charge(&self) -> usize {
        self.held().max(self.reserved) + self.payload()
    }
}

/// The outcome of a charge.
enum Outcome {
    Memory,
    Nothing,
}

struct World {
    logs: Vec<Log>,
    /// Chunks of logs that are gone, held by readers.
    late: Vec<Chunk>,
    /// Chunks that the user keeps.
    exported: Vec<Chunk>,
    states: Vec<StateAccount>,
    coordinator: Coordinator,
}

impl World {
    fn new() -> Self {
        let options = CoordinatorOptions {
            budget_bytes: BUDGET,
            log_cap_bytes: LOG_CAP,
            ..CoordinatorOptions::default()
        };
        let coordinator = Coordinator::new(options).expect("a thread can be started");
        let states = (0..2).map(|_| coordinator.state_account()).collect();
        Self { logs: Vec::new(), late: Vec::new(), exported: Vec::new(), states, coordinator }
    }

    fn payload(&self) -> usize {
        self.logs.iter().map(Log::payload).sum::<usize>() + pinned(&self.late)
    }

    fn used(&self) -> usize {
        self.logs.iter().map(Log::charge).sum::<usize>()
            + held(&self.late)
            + pinned(&self.late)
            + self.states.iter().map(StateAccount::bytes).sum::<usize>()
    }

    fn export(&mut self, mut chunk: Chunk) {
        chunk.memory.release_payload(std::mem::take(&mut chunk.pinned));
        chunk.memory.detach();
        self.exported.push(chunk);
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let used = self.used();
        match step {
            Step::Open(reserved) if self.logs.len() < 4 => match self.coordinator.reserve(reserved) {
                Ok(account) => {
                    prop_assert!(reserved == 0 || used + reserved <= BUDGET);
                    self.logs.push(Log { chunks: Vec::new(), reserved, account });
                }
                Err(refusal) => {
                    prop_assert!(used + reserved > BUDGET);
                    prop_assert_eq!((refusal.needed_bytes, refusal.used_bytes), (reserved, used));
                }
            },
            Step::CloseLog(log) if log < self.logs.len() => {
                let Log { chunks, account, .. } = self.logs.swap_remove(log);
                self.late.extend(chunks);
                drop(account);
            }
            Step::Grow(log, doubled) if log < self.logs.len() => {
                self.grow(log, (4 * KIB) << doubled, used, Outcome::Memory)?;
            }
            Step::Abandon(log, doubled) if log < self.logs.len() => {
                self.grow(log, (4 * KIB) << doubled, used, Outcome::Nothing)?;
            }
            Step::Shrink(log) if log < self.logs.len() => drop(self.logs[log].chunks.pop()),
            Step::Export(log) if log < self.logs.len() => {
                if let Some(chunk) = self.logs[log].chunks.pop() {
                    self.export(chunk);
                }
            }
            Step::ExportLate => {
                if let Some(chunk) = self.late.pop() {
                    self.export(chunk);
                }
            }
            Step::DropLate => drop(self.late.pop()),
            Step::DropKept => drop(self.exported.pop()),
            Step::Pin(log, bytes) if log < self.logs.len() => {
                if let Some(chunk) = self.logs[log].chunks.last_mut() {
                    chunk.memory.charge_payload(bytes);
                    chunk.pinned += bytes;
                }
            }
            Step::Unpin(log) if log < self.logs.len() => {
                if let Some(chunk) = self.logs[log].chunks.first_mut() {
                    chunk.memory.release_payload(std::mem::take(&mut chunk.pinned));
                }
            }
            Step::State(state, bytes) => {
                let owned = used - self.payload();
                let before = self.states[state].bytes();
                let answer = self.states[state].set(bytes);
                prop_assert_eq!(answer.is_ok(), bytes <= before || owned - before + bytes <= BUDGET);
                prop_assert_eq!(self.states[state].bytes(), if answer.is_ok() { bytes } else { before });
                if let Err(refusal) = answer {
                    prop_assert_eq!((refusal.needed_bytes, refusal.used_bytes), (bytes - before, owned));
                }
            }
            // A log that does not exist.
            _ => {}
        }
        Ok(())
    }

    /// Charges a log, with an outcome.
    fn grow(&mut self, log: usize, bytes: usize, used: usize, outcome: Outcome) -> Result<(), TestCaseError> {
        let log = &mut self.logs[log];
        let grown = log.held() + bytes;
        let more = grown.max(log.reserved) - log.held().max(log.reserved);
        let fits = grown <= log.reserved || (grown + log.payload() <= LOG_CAP && used + more <= FOR_LOGS);
        prop_assert_eq!(log.account.try_grow(bytes), fits);
        match outcome {
            _ if !fits => {}
            Outcome::Nothing => log.account.shrink(bytes),
            Outcome::Memory => {
                let memory = log.account.allocate(bytes, Inline::Start).expect("the machine has memory");
                log.chunks.push(Chunk { pinned: 0, memory });
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let counters = self.coordinator.snapshot();
        let state: usize = self.states.iter().map(StateAccount::bytes).sum();
        let live = self.logs.iter().map(|log| log.chunks.len()).sum::<usize>() + self.late.len();
        prop_assert_eq!(counters.used_bytes, self.used() as u64);
        prop_assert_eq!(counters.pinned_bytes, self.payload() as u64);
        prop_assert_eq!(counters.state_bytes, state as u64);
        prop_assert!(self.used() - self.payload() <= BUDGET, "only payload goes beyond the budget");
        prop_assert_eq!(counters.chunks_live, live as u64);
        prop_assert_eq!(counters.chunks_exported, self.exported.len() as u64);
        prop_assert_eq!(counters.exported_bytes, held(&self.exported) as u64);
        for log in &self.logs {
            let (held, payload) = (log.held(), log.payload());
            prop_assert_eq!((log.account.held_bytes(), log.account.charged_bytes()), (held, log.charge()));
            prop_assert_eq!(log.account.has_payload(), payload > 0);
            prop_assert_eq!(log.account.over_cap(), payload > 0 && held + payload > LOG_CAP);
            prop_assert_eq!(log.account.over_budget(), payload > 0 && self.used() > BUDGET);
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
        world.states.clear();
        while !world.logs.is_empty() {
            world.take(Step::CloseLog(0))?;
        }
        world.check()?;
        world.late.clear();
        prop_assert_eq!(world.coordinator.snapshot().used_bytes, 0);
        prop_assert_eq!(world.coordinator.snapshot().chunks_live, 0);
    }
}
