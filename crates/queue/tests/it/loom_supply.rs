//! Customers against the maker of a supply, in every interleaving within loom's bounds.
//!
//! Run with `make loom`. A missing ordering shows as a race on a cell, a lost wake-up as a deadlock, a lost item as a
//! leak or a wrong count. `weakened.txt` names the test that fails without each ordering or step.
#![cfg(loom)]

use std::sync::Arc as StdArc;
use std::time::Duration;

use loom::alloc::Track;
use loom::thread::{self, JoinHandle};
use penstock_queue::gate::Gate;
use penstock_queue::pile::Pile;
use penstock_queue::supply::{Maker, Refused, Supply, SupplyOrder};
use penstock_queue::sync::{Arc, UnsafeCell};
use penstock_queue::wake::NoWake;

const NEVER: Duration = Duration::MAX;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unless LOOM_MAX_PREEMPTIONS sets another bound.
    builder.preemption_bound.get_or_insert(2);
    builder.check(model);
}

/// An item with a cell whose accesses loom watches; loom reports it if it is never dropped.
struct Item {
    cell: UnsafeCell<u32>,
    _owned: Track<()>,
}

// SAFETY: the supply hands an item from one owner to the next, which the models check.
unsafe impl Sync for Item {}

impl Item {
    fn new(number: u32) -> Self {
        Self { cell: UnsafeCell::new(number), _owned: Track::new(()) }
    }

    fn set(&self, number: u32) {
        // SAFETY: loom fails the model if another thread accesses the cell.
        self.cell.with_mut(|cell| unsafe { *cell = number });
    }

    fn get(&self) -> u32 {
        // SAFETY: loom fails the model if another thread writes the cell meanwhile.
        self.cell.with(|cell| unsafe { *cell })
    }
}

/// Makes an item with the number asked for, and counts.
#[derive(Default)]
struct Works {
    made: usize,
    returned: usize,
}

impl Maker<u32, Item> for Works {
    fn make(&mut self, number: u32) -> Option<Item> {
        self.made += 1;
        let item = Item::new(0);
        item.set(number);
        Some(item)
    }

    fn returned(&mut self, item: Item) {
        item.set(0);
        self.returned += 1;
    }
}

type Things = Supply<u32, Item>;

fn start(supply: &Things) -> JoinHandle<Works> {
    let supply = supply.clone();
    thread::spawn(move || {
        let mut works = Works::default();
        supply.serve(&mut works);
        works
    })
}

fn wait(order: &mut SupplyOrder<u32, Item>, gate: &Gate) -> Result<Item, Refused> {
    loop {
        if let Some(answer) = order.take() {
            return answer;
        }
        gate.wait(NEVER);
    }
}

#[test]
fn an_item_goes_to_the_customer_and_back() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let gate = StdArc::new(Gate::new());
        let mut order = supply.order(StdArc::clone(&gate) as _);
        for number in 1..=2 {
            assert!(order.ask(number));
            let item = wait(&mut order, &gate).unwrap();
            assert_eq!(item.get(), number);
            item.set(9);
            supply.give_back(item);
        }
        supply.close();
        let works = maker.join().unwrap();
        assert_eq!((works.made, works.returned), (2, 2));
    });
}

#[test]
fn an_item_for_a_customer_that_left_is_returned() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let mut order = supply.order(StdArc::new(NoWake));
        order.ask(1);
        drop(order);
        supply.close();
        let works = maker.join().unwrap();
        assert_eq!(works.made, works.returned);
    });
}

#[test]
fn an_item_filled_in_for_a_leaving_customer_is_returned() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let gate = StdArc::new(Gate::new());
        let mut order = supply.order(StdArc::clone(&gate) as _);
        order.ask(1);
        gate.wait(NEVER);
        drop(order);
        supply.close();
        let works = maker.join().unwrap();
        assert_eq!((works.made, works.returned), (1, 1));
    });
}

#[test]
fn two_customers_get_what_each_asked_for() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let other = {
            let supply = supply.clone();
            thread::spawn(move || customer(&supply, 2))
        };
        customer(&supply, 1);
        other.join().unwrap();
        supply.close();
        let works = maker.join().unwrap();
        assert_eq!((works.made, works.returned), (2, 0));
    });
}

fn customer(supply: &Things, number: u32) {
    let gate = StdArc::new(Gate::new());
    let mut order = supply.order(StdArc::clone(&gate) as _);
    order.ask(number);
    let item = wait(&mut order, &gate).expect("the supply is open");
    assert_eq!(item.get(), number);
}

#[test]
fn a_customer_gets_an_answer_although_the_supply_closes() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let closing = {
            let supply = supply.clone();
            thread::spawn(move || supply.close())
        };
        let gate = StdArc::new(Gate::new());
        let mut order = supply.order(StdArc::clone(&gate) as _);
        assert!(order.ask(1));
        let mine = wait(&mut order, &gate).is_ok();
        // After the end too.
        assert!(order.ask(2));
        assert_eq!(wait(&mut order, &gate).map(|item| item.get()).unwrap_or(2), 2);
        closing.join().unwrap();
        let works = maker.join().unwrap();
        assert!(works.made >= usize::from(mine));
        assert_eq!(works.returned, 0);
    });
}

#[test]
fn an_item_returned_while_the_supply_closes_is_not_lost() {
    check(|| {
        let supply = Things::new();
        let maker = start(&supply);
        let giving = {
            let supply = supply.clone();
            thread::spawn(move || {
                let item = Item::new(0);
                item.set(1);
                supply.give_back(item);
            })
        };
        supply.close();
        giving.join().unwrap();
        assert!(maker.join().unwrap().returned <= 1);
    });
}

#[test]
fn many_push_and_one_takes_it_all() {
    check(|| {
        let pile = Arc::new(Pile::new());
        let other = {
            let pile = Arc::clone(&pile);
            thread::spawn(move || push(&pile, 1))
        };
        push(&pile, 2);
        let mut sum: u32 = pile.take_all().iter().map(Item::get).sum();
        other.join().unwrap();
        sum += pile.close().iter().map(Item::get).sum::<u32>();
        assert_eq!(sum, 3);
    });
}

#[test]
fn a_closing_pile_takes_a_value_or_gives_it_back() {
    check(|| {
        let pile = Arc::new(Pile::new());
        let other = {
            let pile = Arc::clone(&pile);
            thread::spawn(move || push(&pile, 1))
        };
        let taken = pile.close().iter().map(Item::get).sum::<u32>();
        let refused = other.join().unwrap();
        assert_eq!(taken + u32::from(refused), 1);
    });
}

/// Pushes an item; returns true if the pile was closed.
fn push(pile: &Pile<Item>, number: u32) -> bool {
    let item = Item::new(0);
    item.set(number);
    pile.push(item).is_err()
}
