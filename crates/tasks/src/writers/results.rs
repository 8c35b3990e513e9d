//! Results that readers take from a bounded queue.

use std::sync::Arc;

use penstock_memory::Parcel;
use penstock_queue::wake::Wake;

use super::SinkWriter;
use crate::account::Latencies;
use crate::clock::Clock;
use crate::error::RunError;
use crate::results::Results;
use crate::waker::Waker;

/// Offers batches to the readers of a queue.
pub struct ResultsWriter(Results);

impl ResultsWriter {
    /// Offers them there.
    pub fn new(results: Results) -> Self {
        Self(results)
    }
}

impl SinkWriter for ResultsWriter {
    fn connect(&mut self, waker: &Arc<dyn Waker>, room: &Arc<dyn Wake>) {
        self.0.connect(waker);
        self.0.connect_writer(Arc::clone(room));
    }

    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        Ok(self.0.offer(parcel))
    }

    fn wants_partial_batches(&self) -> bool {
        self.0.is_empty()
    }

    fn record_latency(&mut self, since_ns: u64, held: u64, latencies: &Arc<Latencies>, _clock: &dyn Clock) {
        self.0.record_latency(since_ns, held, latencies);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coordinator, parcel};
    use super::*;
    use crate::clock::tests::Hand;
    use crate::results::Next;
    use crate::waker::tests::Counting;

    #[test]
    fn a_full_queue_gives_a_batch_back_and_wakes_the_sink_when_it_has_room() {
        let memory = coordinator();
        let clock = Hand::at(100);
        let results = Results::new(memory.result_account(), Arc::clone(&clock) as _);
        let mut writer = ResultsWriter::new(results.clone());
        let (counting, waker) = Counting::pair();
        let (room, room_waker) = Counting::pair();
        let room_waker: Arc<dyn Wake> = room_waker;
        writer.connect(&waker, &room_waker);
        assert!(writer.wants_partial_batches(), "a reader waits, or will at once");
        let mut written = 0;
        while writer.write(parcel(&memory, 1)).unwrap().is_none() {
            written += 1;
            assert!(written < 1_000, "the queue is bounded");
        }
        assert!(written > 0 && !writer.wants_partial_batches());
        assert_eq!((counting.take(), room.take()), (0, 0));
        assert!(matches!(results.take(), Next::Batch(_)));
        assert_eq!((counting.take(), room.take()), (1, 1));
        assert!(writer.write(parcel(&memory, 1)).unwrap().is_none());
    }

    #[test]
    fn a_latency_ends_when_the_batches_before_it_are_read() {
        let memory = coordinator();
        let clock = Hand::at(100);
        let results = Results::new(memory.result_account(), Arc::clone(&clock) as _);
        let mut writer = ResultsWriter::new(results.clone());
        let latencies: Arc<Latencies> = Arc::default();
        assert!(writer.write(parcel(&memory, 1)).unwrap().is_none());
        writer.record_latency(50, 0, &latencies, &*clock);
        assert_eq!(latencies.summary().count, 0, "the batch was not read");
        clock.set(150);
        assert!(matches!(results.take(), Next::Batch(_)));
        assert_eq!((latencies.summary().count, latencies.summary().mean_ns), (1, 100.0));
    }
}
