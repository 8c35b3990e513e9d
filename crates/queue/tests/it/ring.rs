//! The promises of the ring, on real threads.
#![cfg(not(any(loom, shuttle)))]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use penstock_queue::ring::{Popped, ring};

const LONG: Duration = Duration::from_secs(10);

#[test]
fn values_arrive_once_and_in_order() {
    let (mut producer, mut consumer) = ring(3);
    let pushing = thread::spawn(move || {
        for number in 0..10_000_u64 {
            let mut value = number;
            while let Err(back) = producer.try_push(value) {
                value = back;
                producer.wait_for_room(LONG);
            }
        }
    });
    let mut expected = 0;
    loop {
        match consumer.pop() {
            Popped::Value(value) => {
                assert_eq!(value, expected);
                expected += 1;
            }
            Popped::Empty => consumer.wait_for_value(LONG),
            Popped::Closed => break,
        }
    }
    assert_eq!(expected, 10_000);
    pushing.join().unwrap();
}

#[test]
fn a_full_ring_gives_the_value_back() {
    let (mut producer, mut consumer) = ring(2);
    assert_eq!(producer.try_push(1), Ok(()));
    assert_eq!(producer.try_push(2), Ok(()));
    assert_eq!(producer.try_push(3), Err(3));
    assert_eq!(consumer.pop(), Popped::Value(1));
    assert_eq!(producer.try_push(3), Ok(()));
}

#[test]
fn what_was_pushed_outlives_the_producer() {
    let (mut producer, mut consumer) = ring(2);
    producer.try_push(7).unwrap();
    drop(producer);
    assert_eq!(consumer.pop(), Popped::Value(7));
    assert_eq!(consumer.pop(), Popped::<i32>::Closed);
}

#[test]
fn a_producer_learns_that_the_consumer_is_gone() {
    let (mut producer, consumer) = ring(1);
    producer.try_push(1).unwrap();
    let leaving = thread::spawn(move || drop(consumer));
    producer.wait_for_room(LONG);
    leaving.join().unwrap();
    assert!(producer.is_closed());
    assert_eq!(producer.try_push(2), Err(2));
}

#[test]
fn unpopped_values_are_dropped() {
    let value = Arc::new(());
    let (mut producer, consumer) = ring(4);
    producer.try_push(Arc::clone(&value)).unwrap();
    producer.try_push(Arc::clone(&value)).unwrap();
    drop(producer);
    drop(consumer);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_batch_is_seen_when_it_is_whole() {
    let (mut producer, mut consumer) = ring(3);
    let mut batch = producer.batch();
    assert_eq!(batch.position(), 0);
    for number in 0..3 {
        assert_eq!(batch.push(number), Ok(()));
        assert!(consumer.is_empty());
    }
    assert_eq!(batch.push(3), Err(3));
    drop(batch);
    assert_eq!(consumer.see(2, |value| *value), Some(2));
    assert_eq!(consumer.take(2).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((consumer.position(), producer.room()), (2, 2));
    assert_eq!((consumer.see(1, |value| *value), consumer.see(3, |value| *value)), (None, None));
}

#[test]
fn what_is_not_asked_for_stays() {
    let (mut producer, mut consumer) = ring(4);
    (0..4).for_each(|number| producer.try_push(number).unwrap());
    let mut taken = consumer.take(usize::MAX);
    assert_eq!((taken.next(), taken.size_hint()), (Some(0), (3, Some(3))));
    drop(taken);
    assert_eq!(producer.room(), 1);
    assert_eq!(consumer.pop(), Popped::Value(1));
}

#[test]
fn values_are_dropped_once_whatever_is_forgotten() {
    let value = Arc::new(());
    let (mut producer, mut consumer) = ring(4);
    let mut batch = producer.batch();
    batch.push(Arc::clone(&value)).unwrap();
    batch.push(Arc::clone(&value)).unwrap();
    drop(batch);
    let mut taken = consumer.take(2);
    drop(taken.next());
    std::mem::forget(taken);
    assert_eq!((Arc::strong_count(&value), consumer.len()), (2, 1));
    drop((producer, consumer));
    assert_eq!(Arc::strong_count(&value), 1);
}
