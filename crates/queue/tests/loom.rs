//! Every interleaving of a producer and a consumer, within loom's bounds.
//!
//! Run with `make loom`. A lost wake-up shows as a deadlock, a missing ordering as a race on the
//! slot's cell; `weakened.txt` says which test fails without which ordering or step.
#![cfg(loom)]

use std::time::Duration;

use loom::thread;
use penstock_queue::ring::{Popped, ring};

const NEVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn every_value_arrives_in_order() {
    check(|| {
        let (mut producer, mut consumer) = ring(1);
        let pushing = thread::spawn(move || {
            for number in 0..2_u32 {
                let mut value = number;
                while let Err(back) = producer.try_push(value) {
                    value = back;
                    producer.wait_for_room(NEVER);
                }
            }
        });
        let mut seen = 0;
        loop {
            match consumer.pop() {
                Popped::Value(value) => {
                    assert_eq!(value, seen);
                    seen += 1;
                }
                Popped::Empty => consumer.wait_for_value(NEVER),
                Popped::Closed => break,
            }
        }
        assert_eq!(seen, 2);
        pushing.join().unwrap();
    });
}

#[test]
fn a_blocked_producer_learns_that_the_consumer_left() {
    check(|| {
        let (mut producer, mut consumer) = ring(1);
        producer.try_push(Box::new(1)).unwrap();
        let leaving = thread::spawn(move || {
            let _ = consumer.pop();
        });
        let mut value = Box::new(2);
        while let Err(back) = producer.try_push(value) {
            if producer.is_closed() {
                break;
            }
            value = back;
            producer.wait_for_room(NEVER);
        }
        leaving.join().unwrap();
    });
}

#[test]
fn a_blocked_producer_learns_that_nobody_will_pop() {
    check(|| {
        let (mut producer, consumer) = ring(1);
        producer.try_push(1_u32).unwrap();
        let leaving = thread::spawn(move || drop(consumer));
        while !producer.is_closed() {
            producer.wait_for_room(NEVER);
        }
        assert_eq!(producer.try_push(2), Err(2));
        leaving.join().unwrap();
    });
}

#[test]
fn the_last_value_is_seen_before_the_end() {
    check(|| {
        let (mut producer, mut consumer) = ring(2);
        let pushing = thread::spawn(move || {
            producer.try_push(5_u32).unwrap();
        });
        let mut seen = Vec::new();
        loop {
            match consumer.pop() {
                Popped::Value(value) => seen.push(value),
                Popped::Empty => consumer.wait_for_value(NEVER),
                Popped::Closed => break,
            }
        }
        assert_eq!(seen, [5]);
        pushing.join().unwrap();
    });
}
