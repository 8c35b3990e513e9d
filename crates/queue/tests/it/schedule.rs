//! The scheduling queue on ordinary threads. `loom_schedule.rs` tries all interleavings.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use penstock_queue::schedule::{LEVELS, Level, MOST_TASKS, MOST_WORKERS, Reserved, ScheduleQueue, TaskId};

const NOW: Level = Level::FIRST;
const SPARE: Level = Level::LAST;

fn queue_of(tasks: usize) -> ScheduleQueue<usize> {
    let queue = ScheduleQueue::new(tasks, 2);
    for task in 0..tasks {
        assert_eq!(queue.add(|id| id as usize), Some(task as TaskId));
    }
    queue
}

fn wake_all(queue: &ScheduleQueue<usize>, level: Level) {
    (0..queue.live()).for_each(|task| {
        queue.wake(task as TaskId, || level);
    });
}

/// Runs what is ready once, and says in which order.
fn drain<T>(queue: &ScheduleQueue<T>) -> Vec<TaskId> {
    std::iter::from_fn(|| queue.pop())
        .map(|task| {
            let id = task.id();
            task.idle(|_| unreachable!("nobody wakes it meanwhile"));
            id
        })
        .collect()
}

#[test]
fn a_new_task_is_idle_and_ranks_last() {
    let queue = queue_of(3);
    assert!(queue.pop().is_none() && !queue.has_ready());
    assert_eq!(queue.live(), 3);
    wake_all(&queue, NOW);
    assert!(queue.has_ready());
    assert_eq!(drain(&queue), [0, 1, 2]);
    assert!(!queue.has_ready());
}

#[test]
fn waking_twice_is_waking_once() {
    let queue = queue_of(1);
    assert!(queue.wake(0, || NOW));
    assert!(!queue.wake(0, || SPARE), "it was ready");
    assert_eq!(drain(&queue), [0]);
}

#[test]
fn tasks_run_in_the_order_published() {
    let queue = queue_of(4);
    queue.publish(&[(2, NOW), (0, NOW), (3, NOW), (1, NOW)]);
    wake_all(&queue, NOW);
    assert_eq!(drain(&queue), [2, 0, 3, 1]);
    // The same when they are ready already.
    wake_all(&queue, NOW);
    queue.publish(&[(1, NOW), (3, NOW), (2, NOW), (0, NOW)]);
    assert_eq!(drain(&queue), [1, 3, 2, 0]);
}

#[test]
fn spare_tasks_run_when_no_other_is_ready() {
    let queue = queue_of(4);
    queue.wake(0, || SPARE);
    queue.wake(1, || NOW);
    queue.wake(2, || SPARE);
    queue.wake(3, || NOW);
    assert_eq!(drain(&queue), [1, 3, 0, 2]);
    wake_all(&queue, NOW);
    queue.publish(&[(3, SPARE), (2, NOW), (1, SPARE), (0, NOW)]);
    assert_eq!(drain(&queue), [2, 0, 3, 1]);
}

#[test]
fn a_task_handed_back_as_spare_lets_others_pass() {
    let queue = queue_of(2);
    wake_all(&queue, NOW);
    queue.pop().unwrap().ready(SPARE, |_| SPARE);
    assert_eq!(drain(&queue), [1, 0]);
}

#[test]
fn a_ready_task_can_be_asked_for() {
    let queue = queue_of(3);
    assert!(queue.pop_this(2).is_none(), "it is idle");
    wake_all(&queue, SPARE);
    let task = queue.pop_this(2).expect("it is ready");
    assert_eq!(task.id(), 2);
    assert!(queue.pop_this(2).is_none(), "somebody has it");
    task.idle(|_| unreachable!("nobody wakes it meanwhile"));
    assert_eq!(drain(&queue), [0, 1], "it has left nothing behind");
    assert!(!queue.has_ready() && queue.pop_this(TaskId::MAX).is_none());
}

#[test]
fn a_task_that_was_asked_for_has_the_level_that_it_is_handed_back_at() {
    let queue = queue_of(2);
    wake_all(&queue, NOW);
    queue.pop_this(0).expect("it is ready").ready(SPARE, |_| SPARE);
    assert_eq!(drain(&queue), [1, 0], "no bit of the other level was left");
    queue.wake(0, || NOW);
    queue.pop_this(0).expect("it is ready").idle(|_| NOW);
    assert!(!queue.has_ready());
}

#[test]
fn a_wake_up_raises_a_task_that_is_ready() {
    let queue = queue_of(3);
    wake_all(&queue, SPARE);
    queue.wake(1, || SPARE);
    queue.wake(2, || NOW);
    assert_eq!(drain(&queue), [2, 0, 1]);
    assert!(!queue.has_ready(), "nor is a bit of its old level left");
    // And lowers none.
    wake_all(&queue, NOW);
    queue.wake(0, || SPARE);
    assert_eq!(drain(&queue), [0, 1, 2]);
}

#[test]
fn a_task_is_raised_behind_an_epoch_that_did_not_know() {
    let queue = queue_of(3);
    wake_all(&queue, NOW);
    queue.publish(&[(0, SPARE), (1, SPARE), (2, SPARE)]);
    queue.raise(0, || SPARE);
    queue.raise(1, || NOW);
    assert_eq!(drain(&queue), [1, 0, 2]);
    queue.raise(0, || unreachable!("it is idle"));
    queue.raise(TaskId::MAX, || unreachable!("no such task"));
    assert!(!queue.has_ready());
}

#[test]
fn a_task_woken_as_it_is_handed_back_is_asked_for_its_level_again() {
    let queue = queue_of(2);
    wake_all(&queue, NOW);
    let first = queue.pop().unwrap();
    queue.wake(0, || unreachable!("it runs"));
    let mut asked = 0;
    first.ready(SPARE, |_| {
        asked += 1;
        // Woken once more while it answers: it is asked again.
        queue.wake(0, || unreachable!("it runs"));
        if asked == 2 { NOW } else { SPARE }
    });
    assert_eq!((asked, drain(&queue)), (2, vec![0, 1]));
}

#[test]
fn those_that_an_epoch_leaves_out_come_behind() {
    let queue = queue_of(5);
    wake_all(&queue, SPARE);
    queue.publish(&[(3, SPARE), (77, NOW), (3, NOW), (u32::MAX, NOW), (1, SPARE)]);
    // Each of the two has changed places with the task that had its rank.
    assert_eq!(drain(&queue), [3, 1, 2, 0, 4]);
}

#[test]
fn those_that_an_epoch_leaves_out_keep_their_level() {
    let queue = queue_of(4);
    wake_all(&queue, SPARE);
    queue.wake(2, || NOW);
    queue.publish(&[(3, SPARE), (0, SPARE)]);
    assert_eq!(drain(&queue), [2, 3, 0, 1]);
    assert!(!queue.has_ready());
}

#[test]
fn the_more_urgent_level_runs_first() {
    let queue = queue_of(LEVELS);
    for (task, level) in Level::all().enumerate() {
        queue.wake((LEVELS - 1 - task) as TaskId, || level);
    }
    assert!(drain(&queue).into_iter().eq((0..LEVELS as TaskId).rev()));
    wake_all(&queue, SPARE);
    let mut levels: Vec<_> = (0..LEVELS as TaskId).zip(Level::all()).collect();
    levels.reverse();
    queue.publish(&levels);
    assert!(drain(&queue).into_iter().eq(0..LEVELS as TaskId));
}

#[test]
fn a_worker_that_follows_rows_passes_no_more_urgent_task() {
    let queue = queue_of(3);
    let [second, third] = [1, 2].map(|number| Level::new(number).expect("a level"));
    queue.wake(0, || second);
    queue.wake(1, || second);
    queue.wake(2, || third);
    assert!(queue.pop_this(2).is_none(), "two tasks are more urgent");
    let task = queue.pop_this(1).expect("rank counts for nothing within a level");
    queue.wake(1, || unreachable!("it runs"));
    task.ready(third, |_| third);
    assert!(queue.pop_this(1).is_none());
    assert_eq!(drain(&queue), [0, 1, 2]);
}

#[test]
fn a_task_that_is_ready_or_runs_is_not_idle() {
    let queue = queue_of(1);
    assert!(queue.is_idle(0) && queue.is_idle(TaskId::MAX));
    queue.wake(0, || SPARE);
    assert!(!queue.is_idle(0));
    let task = queue.pop().unwrap();
    assert!(!queue.is_idle(0));
    queue.wake(0, || unreachable!("it runs"));
    task.idle(|_| NOW);
    assert!(!queue.is_idle(0), "it was woken");
    let task = queue.pop().unwrap();
    task.idle(|_| unreachable!("it was not woken"));
    assert!(queue.is_idle(0));
    queue.wake(0, || NOW);
    queue.pop().unwrap().retire();
    assert!(queue.is_idle(0));
}

#[test]
fn a_reserved_row_keeps_wake_ups_until_its_task_is_there() {
    let queue = Arc::new(ScheduleQueue::new(2, 1));
    let [first, second] =
        [Reserved::new(&queue), Reserved::new(&queue)].map(|row| row.expect("there is room"));
    assert!(Reserved::new(&queue).is_none() && queue.live() == 0);
    let (woken, asleep) = (first.id(), second.id());
    assert!(!queue.wake(woken, || unreachable!("the task is not there")));
    first.fill("woken");
    second.fill("asleep");
    assert_eq!((queue.live(), drain(&queue)), (2, vec![woken]));
    queue.wake(asleep, || SPARE);
    assert_eq!(queue.pop().map(|task| *task), Some("asleep"));
}

#[test]
fn a_reserved_row_that_is_not_filled_is_free_again() {
    let queue = Arc::new(ScheduleQueue::new(1, 1));
    let reserved = Reserved::new(&queue).expect("there is room");
    queue.wake(reserved.id(), || NOW);
    drop(reserved);
    assert_eq!(queue.add(|_| ()), Some(0));
    assert!(queue.pop().is_none(), "the wake-up was for another one");
}

#[test]
fn a_task_woken_while_it_runs_is_ready_again() {
    let queue = queue_of(1);
    queue.wake(0, || NOW);
    let mut task = queue.pop().unwrap();
    queue.wake(0, || unreachable!("it runs"));
    assert!(queue.pop().is_none());
    *task = 7;
    task.idle(|payload| {
        assert_eq!(*payload, 7);
        SPARE
    });
    assert_eq!(drain(&queue), [0]);
}

#[test]
fn a_row_is_used_again() {
    let queue = queue_of(2);
    queue.wake(0, || NOW);
    assert_eq!(queue.pop().unwrap().retire(), 0);
    assert_eq!(queue.live(), 1);
    // A wake-up that comes late, and an epoch that does not know yet.
    queue.wake(0, || unreachable!("nobody is there"));
    queue.publish(&[(0, NOW), (1, NOW)]);
    assert!(queue.pop().is_none());
    assert_eq!(queue.add(|_| 9), Some(0));
    assert_eq!(queue.add(|_| 10), None);
    assert!(queue.pop().is_none());
    wake_all(&queue, NOW);
    // Behind the other one, since an epoch came in between.
    let payloads: Vec<_> = (0..2).map(|_| queue.pop().unwrap().retire()).collect();
    assert_eq!(payloads, [1, 9]);
    assert_eq!(queue.live(), 0);
}

#[test]
fn a_task_may_be_made_with_the_queue_at_hand() {
    let queue = &ScheduleQueue::new(3, 0);
    let inner = Cell::new(None);
    let outer = queue.add(|id| {
        inner.set(queue.add(|id| id as usize));
        queue.publish(&[(id, NOW)]);
        queue.wake(id, || unreachable!("it is not there yet"));
        id as usize
    });
    assert_eq!((outer, inner.get()), (Some(0), Some(1)));
    assert_eq!(drain(queue), [0], "a wake-up during `make` counts");
}

#[test]
fn nothing_is_lost_by_a_panic() {
    let queue = queue_of(2);
    let caught = |f: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(f)).is_err();
    assert!(caught(&mut || {
        queue.wake(0, || panic!("on purpose"));
    }));
    assert!(caught(&mut || {
        let _task = queue.pop().unwrap();
        panic!("on purpose");
    }));
    queue.pop().unwrap().ready(NOW, |_| NOW);
    assert!(caught(&mut || {
        let task = queue.pop().unwrap();
        queue.wake(task.id(), || NOW);
        task.idle(|_| panic!("on purpose"));
    }));
    assert_eq!(drain(&queue), [0]);
    queue.wake(1, || NOW);
    queue.pop().unwrap().retire();
    assert!(caught(&mut || {
        queue.add(|_| panic!("on purpose"));
    }));
    assert_eq!(queue.live(), 1);
    assert_eq!(queue.add(|_| 1), Some(1));
}

#[test]
fn payloads_are_dropped_with_the_queue() {
    let payload = Arc::new(());
    let queue = ScheduleQueue::new(300, 0);
    for _ in 0..300 {
        queue.add(|_| Arc::clone(&payload));
    }
    queue.wake(5, || NOW);
    drop(queue.pop().unwrap().retire());
    assert_eq!(Arc::strong_count(&payload), 300);
    drop(queue);
    assert_eq!(Arc::strong_count(&payload), 1);
}

#[test]
fn ten_thousand_tasks() {
    const TASKS: u32 = 10_000;
    let queue = ScheduleQueue::new(MOST_TASKS, 1);
    for _ in 0..TASKS {
        queue.add(|id| id as usize);
    }
    let order = |epoch: u32| (0..TASKS).map(move |rank| (rank * 7 + epoch) % TASKS);
    wake_all(&queue, NOW);
    for epoch in 0..4 {
        queue.publish(&order(epoch).map(|task| (task, NOW)).collect::<Vec<_>>());
        let ran: Vec<_> = order(epoch).take(100).map(|task| (task, queue.pop().unwrap())).collect();
        for (task, running) in ran {
            assert_eq!(running.id(), task);
            running.ready(NOW, |_| NOW);
        }
    }
    assert!(drain(&queue).into_iter().eq(order(3)));
}

#[test]
fn a_queue_takes_as_many_as_it_says() {
    let queue = ScheduleQueue::new(MOST_TASKS, MOST_WORKERS);
    let added = std::iter::from_fn(|| queue.add(|_| ())).count();
    assert_eq!(added, MOST_TASKS);
    let last = MOST_TASKS as TaskId - 1;
    queue.wake(last, || NOW);
    queue.wake(last + 1, || unreachable!("no such task"));
    assert_eq!(drain(&queue), [last]);
}

#[test]
#[should_panic(expected = "not 262145")]
fn more_tasks_than_there_is_room_for_are_refused() {
    ScheduleQueue::<()>::new(MOST_TASKS + 1, 1);
}

#[test]
#[should_panic(expected = "not 65")]
fn more_workers_than_a_word_has_bits_are_refused() {
    ScheduleQueue::<()>::new(1, MOST_WORKERS + 1);
}

#[test]
fn nobody_parks_after_the_end() {
    let queue = queue_of(1);
    queue.close();
    assert!(queue.is_closed());
    (0..3).for_each(|_| queue.park(1));
    assert_eq!(queue.parked(), 0);
}

#[test]
fn nobody_parks_while_a_task_is_ready() {
    let queue = queue_of(1);
    queue.wake(0, || SPARE);
    (0..3).for_each(|_| queue.park(1));
}

#[test]
fn a_queue_is_shared_between_threads_with_tasks_that_are_not() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let queue = ScheduleQueue::new(1, 0);
    is_shared(&queue);
    queue.add(|_| Cell::new(0));
    queue.wake(0, || NOW);
    thread::scope(|scope| scope.spawn(|| queue.pop().unwrap().set(1)).join()).unwrap();
    assert_eq!(queue.pop().unwrap().retire().get(), 1);
}

/// What others see of a task: what was posted for it, what it has seen of that, and whether somebody runs it.
struct Post {
    posted: AtomicU64,
    seen: AtomicU64,
    running: AtomicBool,
    runs: AtomicU64,
}

/// A little randomness without a dependency, the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound
    }

    fn level(&mut self) -> Level {
        if self.below(3) == 0 { SPARE } else { NOW }
    }
}

/// Until a condition holds; far longer than it takes, so as to tell a hang.
fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "still waiting: {what}");
        thread::yield_now();
    }
}

#[test]
fn every_wake_up_leads_to_a_run() {
    const TASKS: usize = 100;
    const WORKERS: usize = 3;
    const WAKERS: usize = 2;
    let wakes = if std::env::var_os("PENSTOCK_SANITIZER").is_some() { 20_000 } else { 500_000 };
    let posts: Vec<Arc<Post>> = (0..TASKS)
        .map(|_| {
            let (posted, seen, runs) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
            Arc::new(Post { posted, seen, running: AtomicBool::new(false), runs })
        })
        .collect();
    // Room for tasks that come and go besides.
    let queue = ScheduleQueue::new(TASKS + 20, WORKERS);
    for post in &posts {
        queue.add(|_| (Some(Arc::clone(post)), 0_u64));
    }
    let guests = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (queue, posts, guests, stop) = (&queue, &posts, &guests, &stop);
        let worker = |worker: usize| {
            move || {
                let mut numbers = Numbers(worker as u64 + 1);
                while !queue.is_closed() {
                    let Some(mut task) = queue.pop() else {
                        queue.park(worker);
                        continue;
                    };
                    let (post, runs) = &mut *task;
                    *runs += 1;
                    let Some(post) = post else {
                        task.retire();
                        guests.fetch_sub(1, Ordering::Relaxed);
                        continue;
                    };
                    assert!(!post.running.swap(true, Ordering::Relaxed), "two run one task");
                    post.seen.store(post.posted.load(Ordering::Relaxed), Ordering::Relaxed);
                    post.runs.store(*runs, Ordering::Relaxed);
                    post.running.store(false, Ordering::Relaxed);
                    if numbers.below(8) == 0 {
                        task.ready(numbers.level(), |_| NOW)
                    } else {
                        task.idle(|_| NOW)
                    }
                }
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|number| scope.spawn(worker(number))).collect();
        // An epoch thread, which also brings guests: tasks that end with their first run.
        let epochs = scope.spawn(move || {
            let mut numbers = Numbers(99);
            while !stop.load(Ordering::Relaxed) {
                let mut order: Vec<_> =
                    (0..TASKS as TaskId + 5).map(|task| (task, numbers.level())).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, numbers.below(last + 1));
                }
                order.truncate(numbers.below(order.len()));
                queue.publish(&order);
                guests.fetch_add(1, Ordering::Relaxed);
                match queue.add(|_| (None, 0)) {
                    Some(guest) => {
                        queue.wake(guest, || numbers.level());
                    }
                    None => drop(guests.fetch_sub(1, Ordering::Relaxed)),
                }
                thread::yield_now();
            }
        });
        let wakers: Vec<_> = (0..WAKERS)
            .map(|waker| {
                scope.spawn(move || {
                    let mut numbers = Numbers(waker as u64 + 7);
                    for wake in 0..wakes {
                        // NOW and then the workers run out of tasks, and park.
                        if wake % 100 == 0 {
                            thread::yield_now();
                        }
                        let task = numbers.below(TASKS);
                        posts[task].posted.fetch_add(1, Ordering::Relaxed);
                        queue.wake(task as TaskId, || numbers.level());
                    }
                })
            })
            .collect();
        for waker in wakers {
            waker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        epochs.join().unwrap();
        let seen =
            |post: &Arc<Post>| post.seen.load(Ordering::Relaxed) == post.posted.load(Ordering::Relaxed);
        await_that("a run for each task since its last wake-up", || posts.iter().all(seen));
        await_that("every guest to leave", || guests.load(Ordering::Relaxed) == 0);
        await_that("every worker to park", || queue.parked() == WORKERS);
        queue.close();
        // Each by name: what the end of a scope waits for, ThreadSanitizer does not see.
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    assert_eq!(queue.live(), TASKS);
    assert!(posts.iter().all(|post| post.runs.load(Ordering::Relaxed) > 0));
}
