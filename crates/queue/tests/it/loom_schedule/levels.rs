//! Tasks that are raised and lowered (SCHED-5, SCHED-6).

use super::*;

/// Wakes task 1 for a signal, which is worth running it.
fn signal(queue: &Queue, signals: &AtomicU32) {
    signals.store(1, Ordering::Relaxed);
    queue.wake(1, || level_by(signals));
}

fn level_by(signals: &AtomicU32) -> Level {
    if signals.load(Ordering::Relaxed) > 0 { Level::FIRST } else { Level::LAST }
}

/// Task 1, which a signal has come for, runs before task 0, which ranks first and has none.
fn check_raised(queue: &Queue) {
    queue.wake(0, || Level::LAST);
    assert_eq!(drain(queue), [1, 0]);
}

#[test]
fn a_signal_raises_a_task_that_becomes_ready() {
    check(|| {
        let (queue, signals) = (queue(2, 0, 2), Arc::new(AtomicU32::new(0)));
        let waking = {
            let signals = Arc::clone(&signals);
            start(&queue, move |queue| {
                queue.wake(1, || level_by(&signals));
            })
        };
        signal(&queue, &signals);
        waking.join().unwrap();
        check_raised(&queue);
    });
}

#[test]
fn a_signal_raises_a_task_that_is_handed_back() {
    check(|| {
        let (queue, signals) = (queue(2, 0, 2), Arc::new(AtomicU32::new(0)));
        wake(&queue, 1);
        let working = {
            let signals = Arc::clone(&signals);
            start(&queue, move |queue| {
                let mut task = queue.pop().expect("the task is ready");
                task.runs += 1;
                let level = level_by(&signals);
                task.ready(level, |_| level_by(&signals));
            })
        };
        signal(&queue, &signals);
        working.join().unwrap();
        check_raised(&queue);
    });
}

#[test]
fn a_signal_raises_a_task_that_an_epoch_has_lowered() {
    check(|| {
        let (queue, signals) = (queue(3, 0, 3), Arc::new(AtomicU32::new(0)));
        wake(&queue, 1);
        let publishing = {
            let signals = Arc::clone(&signals);
            start(&queue, move |queue| {
                let level = level_by(&signals);
                queue.publish(&[(0, Level::LAST), (2, Level::LAST), (1, level)]);
                queue.raise(1, || level_by(&signals));
            })
        };
        signal(&queue, &signals);
        publishing.join().unwrap();
        check_raised(&queue);
    });
}

/// A wake-up may set the bit of the level that the task had when the task has been handed back at another one.
#[test]
fn a_lowered_task_does_not_run_at_the_level_it_had() {
    check(|| {
        let queue = queue(2, 0, 2);
        queue.wake(0, || Level::LAST);
        let waking = start(&queue, |queue| wake(queue, 1));
        let lowered = queue.pop_this(1).map(|task| task.ready(Level::LAST, |_| Level::LAST)).is_some();
        waking.join().unwrap();
        assert_eq!(drain(&queue), if lowered { [0, 1] } else { [1, 0] });
    });
}

#[test]
fn a_worker_that_follows_rows_passes_no_task_of_a_more_urgent_level() {
    check(|| {
        let queue = queue(2, 0, 2);
        queue.wake(1, || Level::LAST);
        let woken = Arc::new(AtomicU32::new(0));
        let waking = {
            let woken = Arc::clone(&woken);
            start(&queue, move |queue| {
                wake(queue, 0);
                woken.store(1, Ordering::Release);
            })
        };
        let is_other_ready = woken.load(Ordering::Acquire) > 0;
        let followed = queue.pop_this(1).map(run).is_some();
        assert!(!(is_other_ready && followed));
        waking.join().unwrap();
        assert_eq!(drain(&queue).len(), 2 - usize::from(followed));
    });
}

/// The level of a wake-up may have been asked for before another wake-up, and the run that followed that.
#[test]
fn a_wake_up_after_a_run_raises_the_task_to_what_the_run_has_left() {
    check(|| {
        let (queue, signals) = (queue(2, 0, 2), Arc::new(AtomicU32::new(0)));
        let waking = {
            let signals = Arc::clone(&signals);
            start(&queue, move |queue| {
                queue.wake(1, || level_by(&signals));
            })
        };
        signal(&queue, &signals);
        queue.pop_this(1).map(run);
        waking.join().unwrap();
        queue.wake(0, || Level::LAST);
        let ran = drain(&queue);
        assert!(ran == [0] || ran == [1, 0], "{ran:?}");
    });
}

/// A task is raised while it moves to another rank, where its bit has to be.
#[test]
fn a_signal_raises_a_task_that_an_epoch_moves() {
    check(|| {
        let (queue, signals) = (queue(2, 0, 2), Arc::new(AtomicU32::new(0)));
        queue.publish(&[(1, Level::LAST)]);
        queue.wake(1, || Level::LAST);
        let publishing = start(&queue, |queue| queue.publish(&[(0, Level::LAST)]));
        signal(&queue, &signals);
        publishing.join().unwrap();
        check_raised(&queue);
    });
}

/// Two wake-ups raise one task through three levels.
#[test]
fn a_task_has_the_most_urgent_level_of_its_wake_ups() {
    check(|| {
        let queue = queue_with_levels(3, 2, 0, 2);
        let second = Level::new(1).expect("there are eight levels");
        queue.wake(1, || Level::LAST);
        let [raising, further] =
            [second, Level::FIRST].map(|level| start(&queue, move |queue| queue.wake(1, || level)));
        raising.join().unwrap();
        further.join().unwrap();
        queue.wake(0, || second);
        assert_eq!(drain(&queue), [1, 0]);
        assert!(!queue.has_ready(), "no bit of another level is left");
    });
}

#[test]
fn a_task_that_wakes_while_its_level_changes_is_found() {
    check(|| {
        let queue = queue(1, 0, 1);
        let waking = start(&queue, |queue| wake(queue, 0));
        queue.publish(&[(0, Level::LAST)]);
        let mut ran = drain(&queue);
        waking.join().unwrap();
        ran.extend(drain(&queue));
        assert_eq!(ran, [0]);
    });
}
