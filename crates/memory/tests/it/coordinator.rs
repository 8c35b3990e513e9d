//! The coordinator's public promises: which log gets memory, and from where.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use penstock_memory::coordinator::{
    ChunkOrder, Coordinator, CoordinatorOptions, Counters, Inline, LogAccount, Memory, MemoryLimit, Refused,
    chunk_bytes,
};
use penstock_memory::platform::Platform;
use penstock_queue::gate::Gate;
use penstock_queue::wake::{NoWake, Wake};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Two chunks, as a log starts with.
const START: usize = 16 * KIB;
const LONG: Duration = Duration::from_secs(30);

fn coordinator(budget_bytes: usize) -> Coordinator {
    Coordinator::new(CoordinatorOptions { budget_bytes, ..CoordinatorOptions::default() })
        .expect("a thread can be started")
}

/// Charges and allocates, as a log does at its start.
fn allocate(account: &LogAccount, bytes: usize) -> Memory {
    assert!(account.try_grow(bytes));
    account.allocate(bytes, Inline::Start).expect("the machine has memory")
}

fn wait(order: &mut ChunkOrder, gate: &Gate) -> Result<Memory, Refused> {
    loop {
        if let Some(answer) = order.take() {
            return answer;
        }
        assert!(gate.wait(LONG), "an answer is overdue");
    }
}

/// Waits for what the allocator thread does by itself.
fn until(coordinator: &Coordinator, settled: impl Fn(&Counters) -> bool) {
    let start = Instant::now();
    while !settled(&coordinator.snapshot()) {
        assert!(start.elapsed() < LONG, "{:?}", coordinator.snapshot());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Writes to every page, and reads it back.
fn use_all(memory: &Memory) {
    for offset in (0..memory.bytes()).step_by(4096) {
        // SAFETY: below the size of the memory.
        let byte = unsafe { memory.ptr().add(offset) };
        // SAFETY: only this test uses the memory.
        unsafe { byte.write(offset as u8 ^ 0x5A) };
        // SAFETY: as above.
        assert_eq!(unsafe { byte.read() }, offset as u8 ^ 0x5A);
    }
}

#[test]
fn five_thousand_logs_fit_a_small_budget() {
    let coordinator = coordinator(256 * MIB);
    let logs: Vec<(LogAccount, [Memory; 2])> = (0..5_000)
        .map(|_| {
            let account = coordinator.reserve(2 * START).unwrap();
            let chunks = [allocate(&account, START), allocate(&account, START)];
            (account, chunks)
        })
        .collect();
    let counters = coordinator.snapshot();
    assert_eq!(counters.used_bytes, 5_000 * 2 * START as u64);
    assert_eq!((counters.chunks_live, counters.inline_allocations), (10_000, 0));
    for (account, chunks) in logs {
        drop(chunks);
        drop(account);
    }
    assert_eq!(coordinator.snapshot().used_bytes, 0);
    // The pool keeps a part of the budget and no more.
    until(&coordinator, |counters| counters.chunks_pooled <= (256 * MIB / 8 / START) as u64);
    assert!(coordinator.snapshot().chunks_pooled > 0);
}

#[test]
fn a_log_that_does_not_fit_is_refused_with_numbers() {
    let coordinator = coordinator(100 * KIB);
    let _first = coordinator.reserve(96 * KIB).unwrap();
    let refusal = MemoryLimit { needed_bytes: 32 * KIB, used_bytes: 96 * KIB, budget_bytes: 100 * KIB };
    assert_eq!(coordinator.reserve(32 * KIB).unwrap_err(), refusal);
    assert!(refusal.to_string().contains("32 KiB more needed, 96 KiB of 100 KiB in use; raise budget=..."));
}

#[test]
fn growth_of_others_cannot_take_a_reservation() {
    let coordinator = coordinator(128 * KIB);
    let quiet = coordinator.reserve(32 * KIB).unwrap();
    let greedy = coordinator.reserve(32 * KIB).unwrap();
    assert!(greedy.try_grow(64 * KIB));
    assert!(greedy.try_grow(16 * KIB));
    assert!(!greedy.try_grow(4 * KIB), "the logs' part of the budget is used up");
    assert!(quiet.try_grow(16 * KIB) && quiet.try_grow(16 * KIB));
    assert!(!quiet.try_grow(4 * KIB));
    assert_eq!(coordinator.snapshot().used_bytes, 112 * KIB as u64);
    greedy.shrink(16 * KIB);
    assert!(quiet.try_grow(16 * KIB));
}

#[test]
fn logs_that_grow_leave_room_for_state_and_for_logs_that_start() {
    let coordinator = coordinator(128 * KIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    assert!(log.try_grow(64 * KIB));
    assert!(!log.try_grow(64 * KIB));
    assert!(log.try_grow(48 * KIB), "seven eighths");
    assert!(!log.try_grow(4 * KIB));
    let mut state = coordinator.state_account();
    state.set(8 * KIB).unwrap();
    let started = coordinator.reserve(8 * KIB).unwrap();
    assert_eq!(coordinator.snapshot().used_bytes, 128 * KIB as u64);
    drop(started);
    state.set(16 * KIB).unwrap();
    assert!(state.set(16 * KIB + 1).is_err());
}

#[test]
fn payload_does_not_stand_in_the_way_of_state() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let memory = allocate(&log, 16 * KIB);
    memory.charge_payload(5 * MIB);
    assert!(log.over_budget());
    assert!(coordinator.reserve(4 * KIB).is_err());
    let mut state = coordinator.state_account();
    state.set(MIB - 32 * KIB).unwrap();
    let refusal = state.set(MIB - 32 * KIB + 1).unwrap_err();
    assert_eq!(refusal, MemoryLimit { needed_bytes: 1, used_bytes: MIB, budget_bytes: MIB });
    memory.release_payload(5 * MIB);
    assert_eq!(coordinator.snapshot().peak_used_bytes, 6 * MIB as u64);
}

#[test]
fn a_log_stays_below_its_cap() {
    let options =
        CoordinatorOptions { budget_bytes: MIB, log_cap_bytes: 64 * KIB, ..CoordinatorOptions::default() };
    let coordinator = Coordinator::new(options).unwrap();
    let log = coordinator.reserve(32 * KIB).unwrap();
    assert!(log.try_grow(64 * KIB));
    assert!(!log.try_grow(4 * KIB));
    log.shrink(64 * KIB);
    let memory = allocate(&log, 4 * KIB);
    memory.charge_payload(60 * KIB);
    assert!(!log.over_cap());
    memory.charge_payload(1);
    assert!(log.over_cap());
    assert!(log.try_grow(28 * KIB), "the reservation is available whatever the payload");
    assert!(!log.try_grow(4 * KIB));
    assert_eq!(log.charged_bytes(), 32 * KIB + 60 * KIB + 1);
    memory.release_payload(60 * KIB + 1);
    assert!(!log.over_cap() && !log.has_payload());
    assert_eq!(coordinator.snapshot().pinned_bytes, 0);
    log.shrink(28 * KIB);
}

#[test]
fn only_payload_holds_a_writer_back() {
    let options = CoordinatorOptions { budget_bytes: MIB, log_cap_bytes: 0, ..CoordinatorOptions::default() };
    let coordinator = Coordinator::new(options).unwrap();
    let log = coordinator.reserve(32 * KIB).unwrap();
    let memory = allocate(&log, 16 * KIB);
    assert!(!log.has_payload() && !log.over_cap() && !log.over_budget());
    memory.charge_payload(1);
    assert!(log.has_payload() && log.over_cap() && !log.over_budget());
    memory.release_payload(1);
}

#[test]
fn memory_comes_back_from_the_pool() {
    let coordinator = coordinator(64 * MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let memory = allocate(&log, 16 * KIB);
    use_all(&memory);
    let place = memory.ptr();
    drop(memory);
    assert_eq!(log.held_bytes(), 0);
    // By order: an allocation in this thread might miss it, at the instant when the allocator thread carries it over.
    let gate = Arc::new(Gate::new());
    let mut order = log.order(Arc::clone(&gate) as _);
    assert!(log.try_grow(16 * KIB));
    order.ask(16 * KIB);
    assert_eq!(wait(&mut order, &gate).unwrap().ptr(), place);
    assert_eq!((coordinator.snapshot().chunks_pooled, log.held_bytes()), (1, 0));
}

#[test]
fn the_allocator_thread_makes_what_is_ordered() {
    let coordinator = coordinator(64 * MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let gate = Arc::new(Gate::new());
    let mut order = log.order(Arc::clone(&gate) as _);
    for bytes in [16 * KIB, 5 * MIB, 16 * KIB] {
        assert!(log.try_grow(chunk_bytes(bytes)));
        assert!(order.ask(bytes));
        let memory = wait(&mut order, &gate).unwrap();
        assert_eq!(memory.bytes(), chunk_bytes(bytes));
        use_all(&memory);
    }
    assert_eq!(log.held_bytes(), 0);
    assert!(log.try_grow(16 * KIB));
    log.allocate(16 * KIB, Inline::HotPath).unwrap();
    let counters = coordinator.snapshot();
    assert_eq!((counters.chunks_requested, counters.background_allocations), (3, 3));
    assert_eq!((counters.inline_allocations, counters.chunks_live), (1, 0));
}

#[test]
fn an_order_that_is_given_up_loses_nothing() {
    let coordinator = coordinator(64 * MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    for _ in 0..50 {
        let mut order = log.order(Arc::new(NoWake));
        assert!(log.try_grow(16 * KIB));
        order.ask(16 * KIB);
        drop(order);
        log.shrink(16 * KIB);
    }
    let gate = Arc::new(Gate::new());
    let mut order = log.order(Arc::clone(&gate) as _);
    assert!(log.try_grow(16 * KIB));
    order.ask(16 * KIB);
    let memory = wait(&mut order, &gate).unwrap();
    drop(order);
    drop(memory);
    let counters = coordinator.snapshot();
    assert_eq!((counters.chunks_live, log.held_bytes()), (0, 0));
    assert!(counters.chunks_pooled >= 1 && counters.chunks_pooled <= counters.background_allocations);
}

#[test]
fn what_the_system_does_not_have_is_refused() {
    let platforms = [Platform::native(), Platform::Portable];
    for platform in platforms {
        let coordinator =
            Coordinator::new(CoordinatorOptions { platform, ..CoordinatorOptions::default() }).unwrap();
        let log = coordinator.reserve(32 * KIB).unwrap();
        let gate = Arc::new(Gate::new());
        let mut order = log.order(Arc::clone(&gate) as _);
        order.ask(1 << 60);
        assert_eq!(wait(&mut order, &gate).unwrap_err(), Refused);
        assert!(log.allocate(1 << 60, Inline::Start).is_err());
        assert!(log.try_grow(16 * KIB));
        order.ask(16 * KIB);
        use_all(&wait(&mut order, &gate).unwrap());
    }
}

#[test]
fn the_pool_makes_room_for_what_is_in_use() {
    let coordinator = coordinator(8 * MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let chunks: Vec<_> = (0..8).map(|_| allocate(&log, 128 * KIB)).collect();
    drop(chunks);
    assert_eq!(coordinator.snapshot().chunks_pooled, 8);
    let _large = [allocate(&log, 4 * MIB), allocate(&log, 2 * MIB), allocate(&log, MIB)];
    let mut state = coordinator.state_account();
    state.set(MIB).unwrap();
    assert_eq!(coordinator.snapshot().used_bytes, 8 * MIB as u64);
    // The allocator thread looks now, and not within a second.
    drop(coordinator.reserve(0).unwrap());
    until(&coordinator, |counters| (counters.chunks_pooled, counters.trims) == (0, 8));
}

#[test]
fn exported_memory_leaves_the_budget_once() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let memory = allocate(&log, 512 * KIB);
    assert_eq!(coordinator.snapshot().used_bytes, 512 * KIB as u64);
    assert!(memory.detach());
    assert!(!memory.detach());
    assert!(memory.is_exported());
    let counters = coordinator.snapshot();
    assert_eq!((counters.used_bytes, counters.exported_bytes), (32 * KIB as u64, 512 * KIB as u64));
    assert_eq!((counters.chunks_live, counters.chunks_exported), (0, 1));
    assert!(log.try_grow(512 * KIB), "a user who keeps results does not stall the log");
    drop(memory);
    let counters = coordinator.snapshot();
    assert_eq!((counters.exported_bytes, counters.chunks_exported), (0, 0));
    assert_eq!(log.held_bytes(), 512 * KIB);
}

#[test]
fn exported_memory_outlives_everything() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let (kept, late) = (allocate(&log, 16 * KIB), allocate(&log, 16 * KIB));
    kept.detach();
    drop(log);
    drop(coordinator);
    use_all(&kept);
    late.detach();
    use_all(&late);
    thread::spawn(move || drop(kept)).join().unwrap();
}

/// Holds the last handle, and drops it when woken.
struct LastHandle {
    handle: Mutex<Option<Coordinator>>,
    alone: Barrier,
    woken: Gate,
}

impl Wake for LastHandle {
    fn wake(&self) {
        let handle = self.handle.lock().expect("no holder of the lock panics").take();
        if let Some(last) = handle {
            self.alone.wait();
            drop(last);
            self.woken.signal();
        }
    }
}

#[test]
fn the_last_handle_may_go_on_the_allocator_thread() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let last = LastHandle {
        handle: Mutex::new(Some(coordinator.clone())),
        alone: Barrier::new(2),
        woken: Gate::new(),
    };
    let last = Arc::new(last);
    let mut order = log.order(Arc::clone(&last) as _);
    assert!(log.try_grow(16 * KIB));
    order.ask(16 * KIB);
    drop(log);
    drop(coordinator);
    last.alone.wait();
    assert!(last.woken.wait(LONG));
    use_all(&order.take().unwrap().unwrap());
    assert!(order.ask(16 * KIB));
    assert_eq!(order.take().unwrap().unwrap_err(), Refused);
}

#[test]
fn a_log_keeps_the_allocator_thread() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    drop(coordinator);
    let gate = Arc::new(Gate::new());
    let mut order = log.order(Arc::clone(&gate) as _);
    assert!(log.try_grow(16 * KIB));
    order.ask(16 * KIB);
    use_all(&wait(&mut order, &gate).unwrap());
}

#[test]
fn memory_that_outlives_its_account_stays_charged() {
    let coordinator = coordinator(MIB);
    let used = || coordinator.snapshot().used_bytes;
    let log = coordinator.reserve(32 * KIB).unwrap();
    let (read, exported, pinning) =
        (allocate(&log, 4 * KIB), allocate(&log, 4 * KIB), allocate(&log, 8 * KIB));
    pinning.charge_payload(1000);
    assert_eq!(used(), 32 * KIB as u64 + 1000);
    drop(log);
    let counters = coordinator.snapshot();
    assert_eq!((counters.used_bytes, counters.pinned_bytes), (16 * KIB as u64 + 1000, 1000));
    assert_eq!(counters.chunks_live, 3);
    thread::spawn(move || drop(read)).join().unwrap();
    assert_eq!(used(), 12 * KIB as u64 + 1000);
    exported.detach();
    assert_eq!(used(), 8 * KIB as u64 + 1000);
    drop(exported);
    pinning.release_payload(1000);
    assert_eq!(used(), 8 * KIB as u64);
    drop(pinning);
    assert_eq!((used(), coordinator.snapshot().chunks_live), (0, 0));
}

#[test]
fn a_log_may_go_while_others_drop_its_memory() {
    let coordinator = coordinator(MIB);
    for round in 0..200 {
        // Below the reservation, at it, and beyond.
        let log = coordinator.reserve((round % 3) * 16 * KIB).unwrap();
        let start = Arc::new(Barrier::new(3));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let chunks: Vec<_> = (0..4).map(|_| allocate(&log, 4 * KIB)).collect();
                let start = Arc::clone(&start);
                thread::spawn(move || {
                    start.wait();
                    chunks.into_iter().enumerate().for_each(|(number, memory)| {
                        memory.charge_payload(10);
                        if number % 2 == 0 {
                            memory.detach();
                        }
                        memory.release_payload(10);
                    });
                })
            })
            .collect();
        start.wait();
        drop(log);
        for thread in threads {
            thread.join().unwrap();
        }
        let counters = coordinator.snapshot();
        assert_eq!((counters.used_bytes, counters.pinned_bytes, counters.exported_bytes), (0, 0, 0));
    }
}

#[test]
fn state_is_charged_and_refused_as_a_whole() {
    let coordinator = coordinator(MIB);
    let mut state = coordinator.state_account();
    let mut other = coordinator.state_account();
    state.set(700 * KIB).unwrap();
    other.set(300 * KIB).unwrap();
    let refusal = other.set(400 * KIB).unwrap_err();
    assert_eq!((refusal.needed_bytes, refusal.used_bytes), (100 * KIB, 1000 * KIB));
    assert_eq!(other.bytes(), 300 * KIB);
    state.set(600 * KIB).unwrap();
    other.set(400 * KIB).unwrap();
    let counters = coordinator.snapshot();
    assert_eq!((counters.state_bytes, counters.used_bytes), (1000 * KIB as u64, 1000 * KIB as u64));
    drop(state);
    drop(other);
    let counters = coordinator.snapshot();
    assert_eq!((counters.state_bytes, counters.used_bytes), (0, 0));
    assert_eq!(counters.peak_used_bytes, 1000 * KIB as u64);
}

#[test]
fn what_a_log_reports_is_counted_until_it_is_gone() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    log.count_spare(3);
    log.count_spare(-1);
    log.count_recycle();
    log.add_backpressure_ns(70);
    let counters = coordinator.snapshot();
    assert_eq!((counters.chunks_spare, counters.recycles, counters.backpressure_ns), (2, 1, 70));
    drop(log);
    let counters = coordinator.snapshot();
    assert_eq!((counters.chunks_spare, counters.used_bytes), (0, 0));
}

#[test]
fn charges_of_many_threads_add_up() {
    let coordinator = coordinator(4 * MIB);
    let log = Arc::new(coordinator.reserve(32 * KIB).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for _ in 0..2_000 {
                    if log.try_grow(16 * KIB) {
                        log.shrink(16 * KIB);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(log.held_bytes(), 0);
    assert_eq!(coordinator.snapshot().used_bytes, 32 * KIB as u64);
}

/// Runs `check` in a forked child; returns true if it finished with `true`.
#[cfg(target_os = "linux")]
fn in_a_forked_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls only the code under test, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = if check() { 42 } else { 1 };
        // SAFETY: ends the child at once: nothing of the test harness runs twice.
        unsafe { libc::_exit(code) };
    }
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: waits for the child above, with a place for its status.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > LONG {
            // SAFETY: the child above, which has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_drops_what_it_inherited_and_ends() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let mut inherited = Some((allocate(&log, 16 * KIB), allocate(&log, 16 * KIB), log, coordinator));
    let ended = in_a_forked_child(|| {
        let Some((memory, exported, log, coordinator)) = inherited.take() else { return false };
        use_all(&memory);
        exported.detach();
        drop((memory, exported));
        let right = coordinator.snapshot().used_bytes == 32 * KIB as u64;
        drop(log);
        drop(coordinator);
        right
    });
    assert!(ended);
    let (memory, exported, ..) = inherited.expect("the child took its own");
    use_all(&memory);
    use_all(&exported);
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_child_allocates_and_orders_nothing() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let mut order = log.order(Arc::new(NoWake));
    assert!(in_a_forked_child(|| {
        let refused = !order.ask(16 * KIB) && !order.is_waiting() && order.take().is_none();
        use_all(&allocate(&log, 16 * KIB));
        refused && coordinator.snapshot().chunks_requested == 0
    }));
    assert!(order.ask(16 * KIB), "the parent is not affected");
}

/// Keeps the allocator thread busy until the test releases it.
#[cfg(target_os = "linux")]
struct Busy([Barrier; 2]);

#[cfg(target_os = "linux")]
impl Wake for Busy {
    fn wake(&self) {
        for barrier in &self.0 {
            barrier.wait();
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_order_that_is_under_way_is_refused_in_a_forked_child() {
    let coordinator = coordinator(MIB);
    let log = coordinator.reserve(32 * KIB).unwrap();
    let busy = Arc::new(Busy([Barrier::new(2), Barrier::new(2)]));
    let gate = Arc::new(Gate::new());
    let (mut first, mut second) = (log.order(Arc::clone(&busy) as _), log.order(Arc::clone(&gate) as _));
    assert!(log.try_grow(16 * KIB) && log.try_grow(16 * KIB));
    assert!(first.ask(16 * KIB));
    busy.0[0].wait();
    assert!(second.ask(16 * KIB));
    let refused = in_a_forked_child(|| {
        matches!(second.take(), Some(Err(Refused))) && !second.is_waiting() && !second.ask(16 * KIB)
    });
    busy.0[1].wait();
    assert!(refused);
    use_all(&wait(&mut second, &gate).expect("the parent's order is answered"));
    assert!(first.take().is_some());
}
