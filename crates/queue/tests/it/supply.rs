//! The promises of the supply, on real threads.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_queue::supply::{Maker, Refused, Supply, SupplyOrder};
use penstock_queue::wake::NoWake;

const LONG: Duration = Duration::from_secs(30);
const BAD: u32 = u32::MAX;

/// Makes strings, reuses returned ones, refuses BAD.
#[derive(Default)]
struct Works {
    made: usize,
    spare: Vec<String>,
    idle: Arc<AtomicUsize>,
}

impl Maker<u32, String> for Works {
    fn make(&mut self, number: u32) -> Option<String> {
        if number == BAD {
            return None;
        }
        let mut item = self.spare.pop().unwrap_or_else(|| {
            self.made += 1;
            String::new()
        });
        item.clear();
        item.push_str(&number.to_string());
        Some(item)
    }

    fn returned(&mut self, item: String) {
        self.spare.push(item);
    }

    fn idle(&mut self) {
        self.idle.fetch_add(1, Ordering::Relaxed);
    }
}

type Strings = Supply<u32, String>;

fn start(supply: &Strings, mut works: Works) -> JoinHandle<Works> {
    let supply = supply.clone();
    thread::spawn(move || {
        supply.serve(&mut works);
        works
    })
}

fn wait(order: &mut SupplyOrder<u32, String>, gate: &Gate) -> Result<String, Refused> {
    loop {
        if let Some(answer) = order.take() {
            return answer;
        }
        assert!(gate.wait(LONG), "an answer is overdue");
    }
}

#[test]
fn many_customers_get_what_they_asked_for() {
    let supply = Strings::new();
    let maker = start(&supply, Works::default());
    let customers: Vec<_> = (0..4)
        .map(|customer| {
            let supply = supply.clone();
            thread::spawn(move || {
                let gate = Arc::new(Gate::new());
                let mut order = supply.order(Arc::clone(&gate) as _);
                for number in 0..2_000 {
                    assert!(order.ask(customer * 10_000 + number));
                    let item = wait(&mut order, &gate).unwrap();
                    assert_eq!(item, (customer * 10_000 + number).to_string());
                    supply.give_back(item);
                }
            })
        })
        .collect();
    for customer in customers {
        customer.join().unwrap();
    }
    supply.close();
    let works = maker.join().unwrap();
    assert_eq!(works.spare.len(), works.made, "every item was returned");
    assert!(works.made <= 8, "returned items are reused: {} made", works.made);
}

#[test]
fn one_order_at_a_time() {
    let supply = Strings::new();
    let mut order = supply.order(Arc::new(NoWake));
    assert!(!order.is_waiting());
    assert_eq!(order.take(), None);
    assert!(order.ask(1));
    assert!(order.is_waiting());
    assert!(!order.ask(2));
    assert_eq!(order.take(), None);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let supply = Strings::new();
    let maker = start(&supply, Works::default());
    let gate = Arc::new(Gate::new());
    let mut order = supply.order(Arc::clone(&gate) as _);
    order.ask(BAD);
    assert_eq!(wait(&mut order, &gate), Err(Refused));
    order.ask(7);
    assert_eq!(wait(&mut order, &gate).as_deref(), Ok("7"));
    supply.close();
    maker.join().unwrap();
}

#[test]
fn a_closed_supply_refuses_at_once() {
    let supply = Strings::new();
    let mut early = supply.order(Arc::new(NoWake));
    early.ask(1);
    supply.close();
    assert_eq!(early.take(), Some(Err(Refused)));
    assert!(early.ask(2));
    assert_eq!(early.take(), Some(Err(Refused)));
    supply.serve(&mut Works::default());
    supply.give_back("dropped".to_owned());
    assert!(supply.take_back().is_empty());
}

#[test]
fn a_customer_that_leaves_returns_the_item() {
    let supply = Strings::new();
    let maker = start(&supply, Works::default());
    let gate = Arc::new(Gate::new());
    let mut order = supply.order(Arc::clone(&gate) as _);
    order.ask(1);
    assert!(gate.wait(LONG));
    drop(order);
    supply.close();
    let works = maker.join().unwrap();
    assert_eq!((works.made, works.spare.len()), (1, 1));
}

#[test]
fn a_nudge_has_the_maker_look_again() {
    let supply = Strings::new();
    let idle = Arc::new(AtomicUsize::new(0));
    let maker = start(&supply, Works { idle: Arc::clone(&idle), ..Works::default() });
    supply.give_back("one".to_owned());
    supply.nudge();
    while idle.load(Ordering::Relaxed) < 2 {
        thread::yield_now();
    }
    assert!(supply.take_back().is_empty());
    supply.close();
    assert_eq!(maker.join().unwrap().spare, ["one"]);
}

struct Broken;

impl Maker<u32, String> for Broken {
    fn make(&mut self, _: u32) -> Option<String> {
        panic!("the maker breaks");
    }

    fn returned(&mut self, _: String) {}
}

#[test]
fn customers_do_not_wait_for_a_maker_that_panicked() {
    let supply = Strings::new();
    let gate = Arc::new(Gate::new());
    let mut orders: Vec<_> = (0..3).map(|_| supply.order(Arc::clone(&gate) as _)).collect();
    for order in &mut orders {
        order.ask(1);
    }
    let maker = {
        let supply = supply.clone();
        thread::spawn(move || supply.serve(&mut Broken))
    };
    assert!(maker.join().is_err());
    for order in &mut orders {
        assert_eq!(order.take(), Some(Err(Refused)));
    }
    assert!(supply.is_closed());
}
