//! A bounded queue between two tasks, with the bells of both.

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_queue::ring::{Consumer, Popped, Producer, ring};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::Pending;

use crate::engine::bell::Bell;

/// What has gone in and come out. Either end writes its own half.
#[derive(Default)]
struct Gauge {
    items_in: Counter,
    rows_in: Counter,
    items_out: Counter,
    rows_out: Counter,
}

impl Gauge {
    fn work(&self) -> Work {
        // What came out first: what goes in meanwhile makes it read high, never low.
        let (rows, items) = (self.rows_out.get(), self.items_out.get());
        Work {
            rows: self.rows_in.get().saturating_sub(rows),
            signals: self.items_in.get().saturating_sub(items),
        }
    }
}

/// Tells what waits in some of these.
pub(crate) struct WayPending(Vec<Arc<dyn Fn() -> Work + Send + Sync>>);

impl WayPending {
    /// What waits in all of these.
    pub(crate) fn of<T: Send + 'static>(ways: &[&WayOut<T>]) -> Self {
        let gauge = |way: &&WayOut<T>| {
            let gauge = Arc::clone(&way.gauge);
            Arc::new(move || gauge.work()) as Arc<dyn Fn() -> Work + Send + Sync>
        };
        Self(ways.iter().map(gauge).collect())
    }
}

impl Pending for WayPending {
    fn work(&self) -> Work {
        let sum =
            |sum: Work, work: Work| Work { rows: sum.rows + work.rows, signals: sum.signals + work.signals };
        self.0.iter().map(|look| look()).fold(Work { rows: 0, signals: 0 }, sum)
    }
}

/// Where items go in.
pub(crate) struct WayIn<T> {
    producer: Producer<T>,
    gauge: Arc<Gauge>,
    reader: Arc<Bell>,
    room: Arc<Wanted>,
}

/// Where they come out.
pub(crate) struct WayOut<T> {
    consumer: Consumer<T>,
    gauge: Arc<Gauge>,
    room: Arc<Wanted>,
}

/// A queue of so many items, from the task with the bell `writer` to that with the bell `reader`.
pub(crate) fn way<T: Send>(items: usize, writer: &Arc<Bell>, reader: &Arc<Bell>) -> (WayIn<T>, WayOut<T>) {
    let (producer, consumer) = ring(items);
    let gauge: Arc<Gauge> = Arc::default();
    let room = Arc::new(Wanted::new(Arc::clone(writer) as _));
    let into =
        WayIn { producer, gauge: Arc::clone(&gauge), reader: Arc::clone(reader), room: Arc::clone(&room) };
    (into, WayOut { consumer, gauge, room })
}

impl<T: Send> WayIn<T> {
    /// Rows that were put in and not taken out.
    pub(crate) fn waiting_rows(&self) -> u64 {
        self.gauge.work().rows
    }

    /// Puts an item in that stands for so many rows; gives it back when there is no room, and rings once there is.
    pub(crate) fn offer(&mut self, item: T, rows: u64) -> Result<(), T> {
        self.gauge.items_in.add(1);
        self.gauge.rows_in.add(rows);
        let mut waiting = Some(item);
        let producer = &mut self.producer;
        let given = self.room.look(|| match producer.try_push(waiting.take()?) {
            Ok(()) => Some(()),
            Err(back) => {
                waiting = Some(back);
                None
            }
        });
        match (given, waiting) {
            (None, Some(back)) => {
                self.gauge.items_in.set(self.gauge.items_in.get() - 1);
                self.gauge.rows_in.set(self.gauge.rows_in.get() - rows);
                Err(back)
            }
            _ => {
                self.reader.ring();
                Ok(())
            }
        }
    }
}

impl<T: Send> WayOut<T> {
    /// The next item, if there is one; `rows` says how many rows it stands for.
    pub(crate) fn take(&mut self, rows: impl FnOnce(&T) -> u64) -> Option<T> {
        let Popped::Value(item) = self.consumer.pop() else { return None };
        self.gauge.items_out.add(1);
        self.gauge.rows_out.add(rows(&item));
        self.room.wake();
        Some(item)
    }
}
