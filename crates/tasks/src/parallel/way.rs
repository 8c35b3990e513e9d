//! A bounded queue between two tasks, with the wakers of both.

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_queue::ring::{Consumer, Popped, Producer, ring};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::Pending;
use penstock_scheduler::views::{InputView, InputViews};

use crate::waker::Waker;

/// What goes from one task to another.
pub trait Carried: Send {
    /// Returns the work that it is for the task that takes it: rows, or a signal.
    fn work(&self) -> Work;

    /// Returns when the first of its rows arrived at the engine.
    fn arrived_ns(&self) -> u64;
}

/// Counts what has gone in and come out. Either end writes its own half.
#[derive(Default)]
struct Gauge {
    signals_in: Counter,
    rows_in: Counter,
    signals_out: Counter,
    /// Rows that the task is done with.
    rows_out: Counter,
    arrivals: Arrivals,
}

impl Gauge {
    fn work(&self) -> Work {
        // What came out first: what goes in meanwhile makes it read high, never low.
        let (rows, signals) = (self.rows_out.get(), self.signals_out.get());
        Work {
            rows: self.rows_in.get().saturating_sub(rows),
            signals: self.signals_in.get().saturating_sub(signals),
        }
    }
}

/// Looks up what waits in some of these queues.
pub struct WayPending(Vec<Arc<Gauge>>);

impl WayPending {
    /// Looks at what waits in all of these.
    pub fn of<T: Carried>(ways: &[&WayOut<T>]) -> Self {
        Self(ways.iter().map(|way| Arc::clone(&way.gauge)).collect())
    }
}

impl Pending for WayPending {
    fn work(&self) -> Work {
        let sum = |sum: Work, gauge: &Arc<Gauge>| {
            let work = gauge.work();
            Work { rows: sum.rows + work.rows, signals: sum.signals + work.signals }
        };
        self.0.iter().fold(Work::default(), sum)
    }

    fn arrived_ns(&self) -> Option<u64> {
        let waits = self.0.iter().filter(|gauge| gauge.work().rows > 0);
        waits.filter_map(|gauge| gauge.arrivals.oldest_ns(|| gauge.work().rows)).min()
    }

    fn inputs(&self, inputs: &mut InputViews) {
        for gauge in &self.0 {
            let Work { rows, signals } = gauge.work();
            let arrived_ns = if rows > 0 { gauge.arrivals.oldest_ns(|| gauge.work().rows) } else { None };
            let (read_position, written_position) = (gauge.rows_out.get(), gauge.rows_in.get());
            inputs.push(InputView {
                rows,
                signals,
                arrived_ns,
                read_position,
                written_position,
                ..InputView::default()
            });
        }
    }
}

/// Where items go in.
pub struct WayIn<T> {
    producer: Producer<T>,
    gauge: Arc<Gauge>,
    reader: Arc<dyn Waker>,
    room: Arc<Wanted>,
}

/// Where they come out.
pub struct WayOut<T> {
    consumer: Consumer<T>,
    gauge: Arc<Gauge>,
    room: Arc<Wanted>,
}

/// Makes a queue of so many items, from the task with the waker `writer` to that with the waker `reader`.
pub fn way<T: Carried>(
    items: usize,
    writer: &Arc<dyn Waker>,
    reader: &Arc<dyn Waker>,
) -> (WayIn<T>, WayOut<T>) {
    let (producer, consumer) = ring(items);
    let gauge: Arc<Gauge> = Arc::default();
    let room = Arc::new(Wanted::new(Arc::clone(writer) as _));
    let into =
        WayIn { producer, gauge: Arc::clone(&gauge), reader: Arc::clone(reader), room: Arc::clone(&room) };
    (into, WayOut { consumer, gauge, room })
}

impl<T: Carried> WayIn<T> {
    /// Returns the rows that were put in and are not done with.
    pub fn waiting_rows(&self) -> u64 {
        self.gauge.work().rows
    }

    /// Puts an item in; gives it back when there is no room, and wakes the writer once there is.
    ///
    /// # Errors
    /// The item, when there is no room for it.
    pub fn offer(&mut self, item: T) -> Result<(), T> {
        let (Work { rows, signals }, gauge) = (item.work(), &self.gauge);
        if rows > 0 {
            gauge.arrivals.note(item.arrived_ns());
        }
        gauge.signals_in.add(signals);
        gauge.rows_in.add(rows);
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
                gauge.signals_in.set(gauge.signals_in.get() - signals);
                gauge.rows_in.set(gauge.rows_in.get() - rows);
                Err(back)
            }
            _ => {
                gauge.arrivals.wrote(rows);
                self.reader.ring();
                Ok(())
            }
        }
    }
}

impl<T: Carried> WayOut<T> {
    /// Takes the next item, if there is one. Its rows are pending until the task is done with them.
    pub fn take(&mut self) -> Option<T> {
        let Popped::Value(item) = self.consumer.pop() else { return None };
        self.gauge.signals_out.add(item.work().signals);
        self.room.wake();
        Some(item)
    }

    /// Notes that the task is done with so many rows.
    pub fn done(&self, rows: u64) {
        self.gauge.rows_out.add(rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waker::tests::Counting;

    /// Rows that arrived at some time.
    struct Rows(u64, u64);

    impl Carried for Rows {
        fn work(&self) -> Work {
            Work { rows: self.0, signals: 0 }
        }

        fn arrived_ns(&self) -> u64 {
            self.1
        }
    }

    #[test]
    fn each_queue_is_an_input_of_the_task_that_it_leads_to() {
        let (_, waker) = Counting::pair();
        let (mut first, out) = way(4, &waker, &waker);
        let (mut second, other) = way(4, &waker, &waker);
        assert!(first.offer(Rows(5, 70)).is_ok() && first.offer(Rows(3, 90)).is_ok());
        assert!(second.offer(Rows(2, 40)).is_ok());
        let mut out: WayOut<Rows> = out;
        out.take();
        out.done(5);
        let pending = WayPending::of(&[&out, &other]);
        let mut views = InputViews::new();
        pending.inputs(&mut views);
        let rows: Vec<u64> = views.iter().map(|view| view.rows).collect();
        let positions: Vec<_> =
            views.iter().map(|view| (view.read_position, view.written_position)).collect();
        assert_eq!((rows, positions), (vec![3, 2], vec![(5, 8), (0, 2)]));
        let oldest = views.iter().filter_map(|view| view.arrived_ns).min();
        assert_eq!((pending.work().rows, pending.arrived_ns()), (5, oldest));
    }
}
