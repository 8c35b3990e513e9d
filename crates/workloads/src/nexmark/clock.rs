//! When an event happens, and how long an auction stays open.

use super::stream::{EPOCH, Stream};
use super::{Options, lanes};
use crate::WorkloadError;
use crate::random::Lane;
use crate::times::Times;

/// A span of event time: whole milliseconds, and `rest / rate` of one more.
#[derive(Debug, Clone, Copy)]
struct Span {
    ms: i64,
    rest: u64,
}

/// The options that speak of time, in the form in which the loops need them.
#[derive(Debug)]
pub(super) struct Clock {
    rate: u64,
    first_ms: i64,
    out_of_order_ms: u64,
    /// How times are moved; where they are before that is decided here.
    moved: Times,
    /// How long so many events take, up to the largest distance between two events of a stream. Each is
    /// divided once, here; from event to event, times only add up.
    spans: [Span; EPOCH as usize + 1],
    /// How long it takes until as many auctions have opened as are in flight.
    flight: Span,
    length: Lane,
}

impl Clock {
    /// From options that were checked.
    pub(super) fn new(options: &Options) -> Self {
        let rate = options.rate;
        let flight_events = options.auctions_in_flight * EPOCH / Stream::Auction.per_epoch();
        Self {
            rate,
            first_ms: options.first_event_time_ms,
            out_of_order_ms: options.out_of_order_ms,
            moved: Times::new(options.seed, lanes::TIMES, 0, options.pace()),
            spans: std::array::from_fn(|events| Span::of(events as u64, rate)),
            flight: Span::of(flight_events, rate),
            length: Lane::new(options.seed, lanes::AUCTION_LENGTH),
        }
    }

    /// Refuses an event whose time, or a time up to `ahead_ms` later, could go past the last timestamp.
    /// Backwards there is no limit to reach: the first event is bounded by the options.
    pub(super) fn check(&self, event: u64, ahead_ms: u64) -> Result<(), WorkloadError> {
        let since_first = u128::from(event) * 1_000 / u128::from(self.rate);
        let moved = i128::from(self.first_ms) + i128::from(self.out_of_order_ms) + i128::from(ahead_ms);
        // The quotient is below 2^74.
        if since_first as i128 + moved > i128::from(i64::MAX) {
            return Err(WorkloadError::EventTimeOverflow { event, rate: self.rate });
        }
        Ok(())
    }

    /// The time of each event.
    pub(super) fn date_time(&self, events: &[u64]) -> Vec<i64> {
        let mut times: Vec<i64> = self.walk(events).map(|since| self.first_ms + since.ms).collect();
        self.moved.disorder(events.iter().copied(), &mut times);
        times
    }

    /// How long each auction stays open, in milliseconds: uniform from 1 on, with about the time of a flight
    /// as the mean.
    pub(super) fn open_for(&self, events: &[u64]) -> Vec<i64> {
        let length = self.length;
        let lengths = self.walk(events).zip(events).map(|(since, &event)| {
            let flight_ms = since.and(self.flight, self.rate).ms - since.ms;
            1 + length.below(event, (flight_ms as u64 * 2).max(1)) as i64
        });
        lengths.collect()
    }

    /// The most that [`Self::open_for`] gives.
    pub(super) fn longest_open_ms(&self) -> u64 {
        (self.flight.ms as u64 + 1) * 2
    }

    /// The time from event 0 to each of these events, of which neighbours are at most an epoch apart.
    fn walk<'a>(&'a self, events: &'a [u64]) -> impl Iterator<Item = Span> + 'a {
        let mut since = events.first().map_or(Span { ms: 0, rest: 0 }, |&event| Span::of(event, self.rate));
        let mut last = events.first().copied().unwrap_or(0);
        events.iter().map(move |&event| {
            since = since.and(self.spans[(event - last) as usize], self.rate);
            last = event;
            since
        })
    }
}

impl Span {
    /// The time that `events` events take.
    fn of(events: u64, rate: u64) -> Self {
        let (thousandfold, rate) = (u128::from(events) * 1_000, u128::from(rate));
        // Events were checked: their times fit.
        Self { ms: (thousandfold / rate) as i64, rest: (thousandfold % rate) as u64 }
    }

    /// Both, one after the other.
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
            for (rate, stream) in [rate, small, small * 1_000].into_iter().zip(Stream::ALL) {
                // Keep clear of times that do not fit, which are refused.
                let start = start.min(rate.saturating_mul(1_000_000_000));
                let clock = Clock::new(&Options { rate, first_event_time_ms, ..Options::default() });
                let events = stream.events(start..start + 300);
                for (event, time) in events.iter().zip(clock.date_time(&events)) {
                    let since = i128::from(*event) * 1_000 / i128::from(rate);
                    prop_assert_eq!(i128::from(time), i128::from(first_event_time_ms) + since);
                }
            }
        }

        #[test]
        fn auctions_are_open_for_as_long_as_a_flight_takes(
            rate in prop_oneof![1..2_000_000u64, 1..5_000u64],
            auctions_in_flight in 0..2_000u64,
            start in 0..1u64 << 40,
        ) {
            let clock = Clock::new(&Options { rate, auctions_in_flight, ..Options::default() });
            let events = Stream::Auction.events(start..start + 200);
            let at = |event: u64| u128::from(event) * 1_000 / u128::from(rate);
            for (&event, length) in events.iter().zip(clock.open_for(&events)) {
                let flight = (at(event + auctions_in_flight * 50 / 3) - at(event)) as u64;
                prop_assert!((1..=(flight * 2).max(1)).contains(&(length as u64)), "{length} of {flight}");
                prop_assert!(length as u64 <= clock.longest_open_ms());
            }
        }
    }
}
