//! Workers, wakers and epochs at one scheduling queue, in every interleaving within loom's bounds.
//!
//! Run with `make loom`. A READY that got lost shows as a task that did not run or as a deadlock, a task that two
//! workers have as a race on its payload. `weakened.txt` says which test fails without which ordering or step.
//!
//! Under loom a word of the bitmaps has two bits. With one level two tasks need one layer, four need two, eight three; a
//! second level adds a layer.
#![cfg(loom)]

mod levels;
mod listed;

use std::sync::Arc as StdArc;
use std::time::Duration;

use loom::alloc::Track;
use loom::thread;
use penstock_queue::gate::Gate;
use penstock_queue::schedule::{Level, Running, ScheduleQueue, TaskId};
use penstock_queue::sync::{Arc, AtomicU32, Ordering, UnsafeCell};

const NEVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unless LOOM_MAX_PREEMPTIONS says otherwise.
    builder.preemption_bound.get_or_insert(2);
    builder.check(model);
}

/// How often it ran; loom notices if it is never dropped.
struct Task {
    runs: u32,
    _owned: Track<()>,
}

impl Task {
    fn new() -> Self {
        Self { runs: 0, _owned: Track::new(()) }
    }
}

type Queue = ScheduleQueue<Task>;

fn queue(capacity: usize, workers: usize, tasks: usize) -> Arc<Queue> {
    queue_with_levels(2, capacity, workers, tasks)
}

/// One in which all that is ready is equally urgent.
fn flat_queue(capacity: usize, workers: usize, tasks: usize) -> Arc<Queue> {
    queue_with_levels(1, capacity, workers, tasks)
}

fn queue_with_levels(levels: usize, capacity: usize, workers: usize, tasks: usize) -> Arc<Queue> {
    let queue = Queue::with_levels(capacity, workers, levels);
    for task in 0..tasks {
        assert_eq!(queue.add(|_| Task::new()), Some(task as TaskId));
    }
    Arc::new(queue)
}

fn start<R: 'static>(queue: &Arc<Queue>, run: impl FnOnce(&Queue) -> R + 'static) -> thread::JoinHandle<R> {
    let queue = Arc::clone(queue);
    thread::spawn(move || run(&queue))
}

fn wake(queue: &Queue, task: TaskId) {
    queue.wake(task, || Level::FIRST);
}

/// Runs a task once.
fn run(mut task: Running<'_, Task>) {
    task.runs += 1;
    task.idle(|_| Level::FIRST);
}

/// Runs what is ready, and says which tasks those were, in that order.
fn drain(queue: &Queue) -> Vec<TaskId> {
    let mut ran = Vec::new();
    while let Some(task) = queue.pop() {
        ran.push(task.id());
        run(task);
    }
    ran
}

/// How often each task has run. Wakes them all: nobody else is at the queue.
fn runs(queue: &Queue, tasks: usize) -> Vec<u32> {
    assert!(drain(queue).is_empty());
    // A task that is ready and was lost stays lost: it is not raised.
    (0..tasks as TaskId).for_each(|task| {
        queue.wake(task, || Level::LAST);
    });
    let mut runs = vec![0; tasks];
    while let Some(task) = queue.pop() {
        runs[task.id() as usize] = task.runs;
        drop(task.retire());
    }
    runs
}

#[test]
fn two_workers_share_two_tasks() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        wake(&queue, 0);
        wake(&queue, 1);
        let other = start(&queue, |queue| queue.pop().map(run).is_some());
        let mine = queue.pop().map(run).is_some();
        assert!(other.join().unwrap() && mine);
        assert_eq!(runs(&queue, 2), [1, 1]);
    });
}

#[test]
fn a_task_goes_from_worker_to_worker() {
    check(|| {
        let queue = queue(1, 0, 1);
        wake(&queue, 0);
        let other = start(&queue, |queue| {
            if let Some(mut task) = queue.pop() {
                task.runs += 1;
                task.ready(Level::LAST, |_| Level::LAST);
            }
        });
        drain(&queue);
        other.join().unwrap();
        drain(&queue);
        assert!((1..=2).contains(&runs(&queue, 1)[0]));
    });
}

#[test]
fn a_task_that_is_asked_for_is_with_one_worker_at_a_time() {
    check(|| {
        let queue = queue(1, 0, 1);
        wake(&queue, 0);
        let other = start(&queue, |queue| {
            if let Some(mut task) = queue.pop_this(0) {
                task.runs += 1;
                task.ready(Level::FIRST, |_| Level::FIRST);
            }
        });
        if let Some(mut task) = queue.pop() {
            task.runs += 1;
            task.ready(Level::LAST, |_| Level::LAST);
        }
        other.join().unwrap();
        drain(&queue);
        assert!((2..=3).contains(&runs(&queue, 1)[0]), "nobody's hand-back is lost");
    });
}

#[test]
fn a_wake_up_while_the_task_goes_idle_counts() {
    check(|| {
        let queue = flat_queue(1, 0, 1);
        wake(&queue, 0);
        let task = queue.pop().expect("the task is ready");
        let waking = start(&queue, |queue| {
            wake(queue, 0);
            drain(queue).len()
        });
        run(task);
        let mine = drain(&queue).len();
        let both = waking.join().unwrap() + mine + drain(&queue).len();
        assert_eq!(both, 1);
        assert_eq!(runs(&queue, 1), [2]);
    });
}

#[test]
fn a_run_sees_what_was_published_before_the_wake_up() {
    check(|| {
        let queue = flat_queue(1, 0, 1);
        let published = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
        let [first, second] = published.clone().map(|published| {
            start(&queue, move |queue| {
                published.store(1, Ordering::Relaxed);
                wake(queue, 0);
            })
        });
        let mut seen = 0;
        let mut look = || {
            while let Some(task) = queue.pop() {
                seen = published.iter().map(|published| published.load(Ordering::Relaxed)).sum();
                run(task);
            }
        };
        look();
        first.join().unwrap();
        second.join().unwrap();
        look();
        assert_eq!(seen, 2, "the last run saw both");
    });
}

/// Both ways to lose a task to an epoch: its waker reads the old rank, or a worker that cleared its bit reads which
/// task has that rank now.
#[test]
fn a_task_that_wakes_while_ranks_change_is_found() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        let waking = start(&queue, |queue| wake(queue, 0));
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::FIRST), (0, Level::FIRST)]));
        let mut ran = drain(&queue);
        waking.join().unwrap();
        publishing.join().unwrap();
        ran.extend(drain(&queue));
        assert_eq!(ran, [0]);
    });
}

#[test]
fn a_task_handed_back_while_ranks_change_is_found() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        wake(&queue, 0);
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::FIRST), (0, Level::FIRST)]));
        let working = start(&queue, |queue| {
            if let Some(mut task) = queue.pop() {
                task.runs += 1;
                task.ready(Level::FIRST, |_| Level::FIRST);
            }
        });
        drain(&queue);
        publishing.join().unwrap();
        working.join().unwrap();
        drain(&queue);
        let runs = runs(&queue, 2);
        assert!((1..=2).contains(&runs[0]) && runs[1] == 0, "{runs:?}");
    });
}

#[test]
fn ready_tasks_survive_two_epochs_in_a_row() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        wake(&queue, 1);
        let publishing = start(&queue, |queue| {
            queue.publish(&[(1, Level::FIRST)]);
            queue.publish(&[(0, Level::FIRST)]);
        });
        let waking = start(&queue, |queue| wake(queue, 0));
        let mut ran = drain(&queue);
        waking.join().unwrap();
        publishing.join().unwrap();
        ran.extend(drain(&queue));
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    });
}

/// Whoever takes a task out of turn clears its bit, which may be another's by then.
#[test]
fn a_task_that_gets_the_rank_of_one_asked_for_is_found() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        wake(&queue, 0);
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::FIRST), (0, Level::FIRST)]));
        let waking = start(&queue, |queue| wake(queue, 1));
        let mut ran = Vec::new();
        if let Some(task) = queue.pop_this(0) {
            ran.push(0);
            run(task);
        }
        publishing.join().unwrap();
        waking.join().unwrap();
        ran.extend(drain(&queue));
        assert_eq!(ran, [0, 1]);
    });
}

/// The last bit of a word is cleared while another one of it is set.
#[test]
fn a_word_that_empties_and_fills_stays_in_sight() {
    check(|| {
        let queue = flat_queue(4, 0, 4);
        wake(&queue, 0);
        let waking = start(&queue, |queue| wake(queue, 1));
        let other = start(&queue, drain);
        let mut ran = drain(&queue);
        waking.join().unwrap();
        ran.extend(other.join().unwrap());
        ran.extend(drain(&queue));
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    });
}

/// The same one level up.
#[test]
fn a_summary_that_empties_and_fills_stays_in_sight() {
    check(|| {
        let queue = flat_queue(8, 0, 4);
        wake(&queue, 0);
        let waking = start(&queue, |queue| wake(queue, 2));
        let mut ran = drain(&queue);
        waking.join().unwrap();
        ran.extend(drain(&queue));
        ran.sort_unstable();
        assert_eq!(ran, [0, 2]);
    });
}

/// Two tasks of one word become ready at once, and the one that finds the other there does not depend on it.
#[test]
fn two_wakers_of_one_word_do_not_wait_for_each_other() {
    check(|| {
        let queue = flat_queue(4, 0, 2);
        let other = start(&queue, |queue| wake(queue, 1));
        wake(&queue, 0);
        assert!(queue.has_ready());
        let mut ran = drain(&queue);
        other.join().unwrap();
        ran.extend(drain(&queue));
        ran.sort_unstable();
        assert_eq!(ran, [0, 1]);
    });
}

/// An epoch that names one task moves another one out of its way.
#[test]
fn a_task_that_wakes_while_it_is_displaced_is_found() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        let waking = start(&queue, |queue| wake(queue, 0));
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::FIRST)]));
        let mut ran = drain(&queue);
        waking.join().unwrap();
        publishing.join().unwrap();
        ran.extend(drain(&queue));
        assert_eq!(ran, [0]);
    });
}

/// Takes a task, sleeping until there is one.
fn take(queue: &Queue, worker: usize) -> Running<'_, Task> {
    loop {
        match queue.pop() {
            Some(task) => break task,
            None => queue.park(worker),
        }
    }
}

#[test]
fn a_parked_worker_is_woken_for_a_task() {
    check(|| {
        let queue = flat_queue(1, 1, 1);
        let waking = start(&queue, |queue| wake(queue, 0));
        run(take(&queue, 0));
        assert_eq!(queue.parked(), 0);
        waking.join().unwrap();
        assert!(drain(&queue).is_empty());
    });
}

#[test]
fn a_parked_worker_is_woken_for_what_an_epoch_finds() {
    check(|| {
        let queue = flat_queue(2, 1, 2);
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::LAST), (0, Level::LAST)]));
        let waking = start(&queue, |queue| wake(queue, 0));
        run(take(&queue, 0));
        publishing.join().unwrap();
        waking.join().unwrap();
        assert!(drain(&queue).is_empty());
    });
}

/// Takes one task. Task 0 waits inside until task 1 has run, so another worker has to come for that one.
fn take_one(queue: &Queue, worker: usize, ran: &Gate) {
    let task = take(queue, worker);
    if task.id() == 0 {
        ran.wait(NEVER);
        run(task);
    } else {
        run(task);
        ran.signal();
    }
}

/// A worker that clears the last bit of a word hides a task that another was woken for, and has to say so.
#[test]
fn a_worker_comes_for_what_was_out_of_sight() {
    check(|| {
        let queue = flat_queue(4, 2, 2);
        let ran = StdArc::new(Gate::new());
        wake(&queue, 0);
        let waking = start(&queue, |queue| wake(queue, 1));
        let other = {
            let ran = StdArc::clone(&ran);
            start(&queue, move |queue| take_one(queue, 1, &ran))
        };
        take_one(&queue, 0, &ran);
        other.join().unwrap();
        waking.join().unwrap();
    });
}

/// Each wake-up finds a worker that is not awake yet.
#[test]
fn two_tasks_find_two_workers() {
    check(|| {
        let queue = flat_queue(2, 2, 2);
        let ran = StdArc::new(Gate::new());
        let workers = [0, 1].map(|worker| {
            let ran = StdArc::clone(&ran);
            start(&queue, move |queue| take_one(queue, worker, &ran))
        });
        wake(&queue, 0);
        wake(&queue, 1);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn every_worker_learns_of_the_end() {
    check(|| {
        let queue = flat_queue(1, 2, 0);
        let reason = Arc::new(Reason(UnsafeCell::new(0)));
        let [first, second] = [0, 1].map(|worker| {
            let reason = Arc::clone(&reason);
            start(&queue, move |queue| {
                while !queue.is_closed() {
                    queue.park(worker);
                }
                // SAFETY: loom fails the model if anyone writes the cell meanwhile.
                reason.0.with(|reason| unsafe { *reason })
            })
        });
        // SAFETY: loom fails the model if anyone else is at the cell.
        reason.0.with_mut(|reason| unsafe { *reason = 1 });
        queue.close();
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (1, 1));
    });
}

/// Why the queue was closed, in a cell whose accesses loom watches.
struct Reason(UnsafeCell<u32>);

// SAFETY: closing hands the cell over to whoever sees it, which is what the model checks.
unsafe impl Sync for Reason {}

/// Whoever wakes a task may know no more of it than its number.
#[test]
fn a_task_is_added_while_its_id_is_woken() {
    check(|| {
        let queue = flat_queue(1, 0, 0);
        let waking = start(&queue, |queue| {
            wake(queue, 0);
            drain(queue)
        });
        let other = start(&queue, drain);
        queue.add(|_| Task::new()).expect("the queue has room");
        let mut ran = waking.join().unwrap();
        ran.extend(other.join().unwrap());
        ran.extend(drain(&queue));
        assert!(ran.len() <= 1);
        assert_eq!(runs(&queue, 1), [ran.len() as u32]);
    });
}

/// While the rank of its row changes, too.
#[test]
fn a_wake_up_while_the_task_is_made_counts() {
    check(|| {
        let queue = flat_queue(2, 0, 2);
        wake(&queue, 0);
        drop(queue.pop().expect("the task is ready").retire());
        let publishing = start(&queue, |queue| queue.publish(&[(1, Level::FIRST)]));
        let mut waking = None;
        queue.add(|task| {
            waking = Some(start(&queue, move |queue| wake(queue, task)));
            Task::new()
        });
        waking.expect("the task was made").join().unwrap();
        publishing.join().unwrap();
        assert_eq!(drain(&queue), [0]);
    });
}

#[test]
fn a_row_goes_from_task_to_task() {
    check(|| {
        let queue = flat_queue(1, 0, 1);
        wake(&queue, 0);
        let late = start(&queue, |queue| {
            wake(queue, 0);
            if let Some(mut task) = queue.pop() {
                task.runs += 1;
                drop(task.retire());
            }
        });
        let adding = start(&queue, |queue| queue.add(|_| Task::new()));
        if let Some(task) = queue.pop() {
            drop(task.retire());
        }
        late.join().unwrap();
        let added = adding.join().unwrap().is_some();
        drain(&queue);
        assert!(queue.live() <= usize::from(added));
    });
}
