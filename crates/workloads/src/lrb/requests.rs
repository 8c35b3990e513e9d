//! The requests that drivers send with their reports: account balance, daily expenditure and travel time. The query
//! ignores them: they are there for its filter to drop.

use super::SEGMENTS;
use crate::random::RandomLane;

/// The row types of requests, and the shares of the first two in ten requests.
const ACCOUNT_BALANCE: i32 = 2;
const DAILY_EXPENDITURE: i32 = 3;
const TRAVEL_TIME: i32 = 4;
const BALANCES_OF_TEN: u64 = 5;
const EXPENDITURES_OF_TEN: u64 = 1;

/// Accounts go back ten weeks, without the present day.
const DAYS: u64 = 69;
const WEEKDAYS: u64 = 7;
const MINUTES_OF_DAY: u64 = 1_440;

/// A request, without the fields it shares with its report. -1 for fields that its type does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// The row's `type`.
    pub(super) kind: i32,
    /// True if it asks about the car's expressway.
    pub(super) of_expressway: bool,
    /// `sinit`, `send`, `dow`, `tod` and `day`.
    pub(super) about: [i32; 5],
}

/// Decides which reports are followed by requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPlan {
    every: u64,
    turn: RandomLane,
    about: RandomLane,
}

impl RequestPlan {
    /// Creates the plan; `None` when no report has a request.
    pub(super) fn new(every: u64, lane: impl Fn(u64) -> RandomLane) -> Option<Self> {
        (every > 0).then(|| Self { every, turn: lane(13), about: lane(14) })
    }

    /// Returns the reports of a car that have a request: the first of them, counted from 0, and the interval to the
    /// next.
    pub(super) fn turns(&self, car: u32) -> (u64, u64) {
        (self.turn.below(u64::from(car), self.every), self.every)
    }

    /// Returns the request that follows a report of a car, if any.
    pub(super) fn with(&self, car: u32, report: u32) -> Option<Request> {
        let (first, every) = self.turns(car);
        let further = u64::from(report).checked_sub(first)?;
        // A day has fewer than 20 bits of seconds.
        (further % every == 0).then(|| self.request(u64::from(car) << 20 | u64::from(report)))
    }

    fn request(&self, row: u64) -> Request {
        let draws = RandomLane::new(self.about.bits(row), 0);
        let from_1 = |draw: u64, most: u64| 1 + draws.below(draw, most) as i32;
        let kind = draws.below(0, 10);
        if kind < BALANCES_OF_TEN {
            return Request { kind: ACCOUNT_BALANCE, of_expressway: false, about: [-1; 5] };
        }
        if kind < BALANCES_OF_TEN + EXPENDITURES_OF_TEN {
            let about = [-1, -1, -1, -1, from_1(1, DAYS)];
            return Request { kind: DAILY_EXPENDITURE, of_expressway: true, about };
        }
        let segment = |draw: u64| draws.below(draw, SEGMENTS) as i32;
        let about = [segment(2), segment(3), from_1(4, WEEKDAYS), from_1(5, MINUTES_OF_DAY), -1];
        Request { kind: TRAVEL_TIME, of_expressway: true, about }
    }
}
