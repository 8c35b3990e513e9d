//! The times of events, and how long auctions stay open.

use super::stream::{EPOCH, NexmarkStream};
use super::{NexmarkOptions, lanes};
use crate::random::RandomLane;
use crate::rates::{Rates, STEPS};
use crate::times::RowTimes;
use crate::{Buffers, WorkloadError};

/// A span of event time: whole milliseconds, and `rest / rate` of one more.
#[derive(Debug, Clone, Copy)]
struct EventSpan {
    ms: i64,
    rest: u64,
}

/// The time options, in the form that the loops need.
#[derive(Debug)]
pub(super) struct EventTimes {
    rates: Rates,
    first_ms: i64,
    out_of_order_ms: u64,
    /// The displacement of times; this type computes the ordered times before it.
    moved: RowTimes,
    /// The duration of that many events in each step, up to the largest distance between two events of a stream. Each
    /// is divided once, here; from event to event, times only add up.
    spans: [[EventSpan; EPOCH as usize + 1]; STEPS.len()],
    /// Number of events until as many auctions have opened as are in flight.
    flight_events: u64,
    length: RandomLane,
}

impl EventTimes {
    /// Creates the times from checked options.
    pub(super) fn new(options: &NexmarkOptions) -> Self {
        let pace = options.pace();
        let spans_at = |rate| std::array::from_fn(|events| EventSpan::of(events as u64, rate));
        Self {
            rates: pace.rates,
            first_ms: options.first_event_time_ms,
            out_of_order_ms: options.out_of_order_ms,
            moved: RowTimes::new(options.seed, lanes::TIMES, 0, pace),
            spans: STEPS.map(|step| spans_at(options.rate.saturating_mul(step))),
            flight_events: options.auctions_in_flight * EPOCH / NexmarkStream::Auction.per_epoch(),
            length: RandomLane::new(options.seed, lanes::AUCTION_LENGTH),
        }
    }

    /// Refuses an event whose time, or a time up to `ahead_ms` later, could exceed the last timestamp. There is no
    /// lower limit to check: the options bound the first event.
    pub(super) fn check(&self, event: u64, ahead_ms: u64) -> Result<(), WorkloadError> {
        let since_first = self.rates.since_ms(event.into());
        let moved = i128::from(self.first_ms) + i128::from(self.out_of_order_ms) + i128::from(ahead_ms);
        // The time of event 2^64 at one per second is below 2^74.
        if since_first as i128 + moved > i128::from(i64::MAX) {
            return Err(WorkloadError::EventTimeOverflow { event, rate: self.rates.rate });
        }
        Ok(())
    }

    /// Computes the time of each event.
    pub(super) fn date_time(&self, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let mut times = self.in_order(events, buffers);
        self.moved.disorder(events.iter().copied(), &mut times);
        times
    }

    /// Computes how long each auction stays open, in milliseconds: uniform from 1 on, with about the time of a flight
    /// as the mean.
    pub(super) fn open_for(&self, events: &[u64]) -> Vec<i64> {
        let (length, flight) = (self.length, u128::from(self.flight_events));
        let lengths = events.iter().map(|&event| {
            let now = u128::from(event);
            let flight_ms = (self.rates.since_ms(now + flight) - self.rates.since_ms(now)) as u64;
            1 + length.below(event, (flight_ms * 2).max(1)) as i64
        });
        lengths.collect()
    }

    /// Returns the most that [`Self::open_for`] computes.
    pub(super) fn longest_open_ms(&self) -> u64 {
        // No step is slower than the first.
        (EventSpan::of(self.flight_events, self.rates.rate).ms as u64 + 1) * 2
    }

    /// Computes the ordered time of each event, stretch by stretch of one rate. Neighbouring events are at most an
    /// epoch apart.
    fn in_order(&self, mut events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let mut times = buffers.take(events.len());
        while let Some(&first) = events.first() {
            let stretch = self.rates.stretch(first.into());
            let (inside, behind) =
                events.split_at(events.partition_point(|&event| u128::from(event) < stretch.end_row));
            let spans = &self.spans[stretch.step];
            // Events were checked: their times fit.
            let ms = i128::from(self.first_ms) + stretch.since_ms(first.into()) as i128;
            let mut now = EventSpan { ms: ms as i64, rest: stretch.remainder(first.into()) };
            let mut last = first;
            times.extend(inside.iter().map(|&event| {
                now = now.and(spans[(event - last) as usize], stretch.rate);
                last = event;
                now.ms
            }));
            events = behind;
        }
        times
    }
}

impl EventSpan {
    /// Computes the duration of `events` events.
    fn of(events: u64, rate: u64) -> Self {
        let (thousandfold, rate) = (u128::from(events) * 1_000, u128::from(rate));
        // Events were checked: their times fit.
        Self { ms: (thousandfold / rate) as i64, rest: (thousandfold % rate) as u64 }
    }

    /// Adds two spans.
    #[inline(always)]
    fn and(self, other: Self, rate: u64) -> Self {
        let rest = self.rest + other.rest;
        let carry = rest >= rate;
        Self { ms: self.ms + other.ms + i64::from(carry), rest: rest - if carry { rate } else { 0 } }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn times_are_the_quotient(
            start in 0..u64::MAX / 100,
            rate in 1..i64::MAX as u64,
            small in 1u64..5_000,
            first_event_time_ms in -1_000_000_000..1_000_000_000i64,
        ) {
            for (rate, stream) in [rate, small, small * 1_000].into_iter().zip(NexmarkStream::ALL) {
                // Keep clear of times that do not fit, which are refused.
                let start = start.min(rate.saturating_mul(1_000_000_000));
                let clock = EventTimes::new(&NexmarkOptions { rate, first_event_time_ms, ..NexmarkOptions::default() });
                let events = stream.events(start..start + 300, &mut Buffers::default());
                for (event, time) in events.iter().zip(clock.date_time(&events, &mut Buffers::default())) {
                    let since = i128::from(*event) * 1_000 / i128::from(rate);
                    prop_assert_eq!(i128::from(time), i128::from(first_event_time_ms) + since);
                }
            }
        }

        #[test]
        fn times_go_from_step_to_step(
            start in prop_oneof![0..2_000u64, 0..1_000_000_000_000u64],
            rate in 1..300u64,
            step_every_s in 1..5u64,
        ) {
            let clock = EventTimes::new(&NexmarkOptions { rate, step_every_s, ..NexmarkOptions::default() });
            for stream in NexmarkStream::ALL {
                let events = stream.events(start..start + 700, &mut Buffers::default());
                let times = clock.date_time(&events, &mut Buffers::default());
                prop_assert!(times.is_sorted() && times.len() == 700);
                for (&event, time) in events.iter().zip(times) {
                    prop_assert_eq!(time as u128, clock.rates.since_ms(event.into()), "event {}", event);
                }
            }
        }

        #[test]
        fn auctions_are_open_for_as_long_as_a_flight_takes(
            rate in prop_oneof![1..2_000_000u64, 1..5_000u64],
            auctions_in_flight in 0..2_000u64,
            start in 0..1u64 << 40,
            step_every_s in prop_oneof![Just(0), 1..60u64],
        ) {
            let clock = EventTimes::new(&NexmarkOptions { rate, step_every_s, auctions_in_flight, ..NexmarkOptions::default() });
            let events = NexmarkStream::Auction.events(start..start + 200, &mut Buffers::default());
            let at = |event: u64| clock.rates.since_ms(event.into());
            for (&event, length) in events.iter().zip(clock.open_for(&events)) {
                let flight = (at(event + auctions_in_flight * 50 / 3) - at(event)) as u64;
                prop_assert!((1..=(flight * 2).max(1)).contains(&(length as u64)), "{length} of {flight}");
                prop_assert!(length as u64 <= clock.longest_open_ms());
            }
        }
    }
}
