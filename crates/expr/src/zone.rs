//! Time zones: how far the clocks of a place are ahead of UTC.

use std::ops::Range;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::reciprocal::Reciprocal;

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// So many seconds ahead of UTC, always.
    Fixed(i64),
    /// A place with rules of its own.
    Named(Tz),
}

/// Times beyond about 200,000 years from now have the offset of that year: the calendar of `chrono` ends there.
const LIMIT_SECONDS: i64 = 200_000 * 31_556_952;
/// Clocks change at most once in so many seconds, so that one look at both ends tells whether they do.
const STRETCH_SECONDS: i64 = 3_600;

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// The zone of that name: `UTC`, `+02:00`, `Europe/Berlin`.
    pub(crate) fn read(name: &str) -> Option<Self> {
        if matches!(name, "UTC" | "Z" | "Etc/UTC" | "GMT") {
            return Some(Self::UTC);
        }
        match fixed(name) {
            Some(seconds) => Some(Self::Fixed(seconds)),
            None => name.parse().ok().map(Self::Named),
        }
    }

    /// Seconds that the clocks are ahead of UTC at that time.
    pub(crate) fn offset(self, seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => {
                let time = DateTime::from_timestamp(seconds.clamp(-LIMIT_SECONDS, LIMIT_SECONDS), 0)
                    .expect("the limit lies within the calendar");
                zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc().into()
            }
        }
    }

    /// The time in UTC at which the clocks show `local`, the first of two; `None` when they skip it.
    pub(crate) fn utc(self, local: i64) -> Option<i64> {
        // Clocks are less than a day from UTC, so that the offset is one of the two.
        let day = 86_400;
        let offsets = [self.offset(local.saturating_sub(day)), self.offset(local.saturating_add(day))];
        let found = offsets.into_iter().filter_map(|offset| local.checked_sub(offset));
        found.filter(|&utc| utc.checked_add(self.offset(utc)) == Some(local)).min()
    }

    /// Adds the offset to each of `times`, so many of which make a second; fails beyond 64 bits.
    pub(crate) fn shift(
        self,
        times: &[i64],
        per_second: i64,
        wanted: Option<&[u8]>,
        out: &mut Vec<i64>,
    ) -> bool {
        if let Self::Fixed(offset) = self {
            let ahead = offset * per_second;
            out.extend(times.iter().map(|time| time.wrapping_add(ahead)));
        } else {
            let mut clock = Clock::new(self);
            let seconds = Reciprocal::new(per_second).expect("a second has units");
            out.extend(times.iter().map(|&time| {
                time.wrapping_add(clock.offset(seconds.floor_divide(time)).wrapping_mul(per_second))
            }));
        }
        // Offsets are less than a day: a sum that has gone round is far away.
        let day = 86_400 * per_second.unsigned_abs();
        let gone_round = |(time, local): (&i64, &i64)| local.abs_diff(*time) > day;
        let mut pairs = times.iter().zip(&*out);
        match wanted {
            None => pairs.any(gone_round),
            Some(mask) => pairs.zip(mask).any(|(pair, &wanted)| wanted != 0 && gone_round(pair)),
        }
    }
}

/// `+02:00`, `-0330`, `+02` or `+00:09:21` in seconds.
fn fixed(name: &str) -> Option<i64> {
    let (sign, rest) = match name.as_bytes().first()? {
        b'+' => (1, &name[1..]),
        b'-' => (-1, &name[1..]),
        _ => return None,
    };
    let number = |range: Range<usize>| {
        let text = rest.get(range)?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?
    };
    let colon = |at: usize| rest.as_bytes().get(at) == Some(&b':');
    let (hours, minutes, seconds) = match rest.len() {
        2 => (number(0..2)?, 0, 0),
        4 => (number(0..2)?, number(2..4)?, 0),
        5 if colon(2) => (number(0..2)?, number(3..5)?, 0),
        8 if colon(2) && colon(5) => (number(0..2)?, number(3..5)?, number(6..8)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
}

/// Remembers the offset of the stretch of time that was asked for last: times come in order, more or less.
struct Clock {
    zone: Zone,
    stretch: i64,
    offset: Option<i64>,
}

impl Clock {
    fn new(zone: Zone) -> Self {
        let mut clock = Self { zone, stretch: 0, offset: None };
        clock.turn(0);
        clock
    }

    fn turn(&mut self, stretch: i64) {
        let start = stretch.saturating_mul(STRETCH_SECONDS);
        let offset = self.zone.offset(start);
        let constant = offset == self.zone.offset(start.saturating_add(STRETCH_SECONDS));
        (self.stretch, self.offset) = (stretch, constant.then_some(offset));
    }

    #[inline]
    fn offset(&mut self, seconds: i64) -> i64 {
        let stretch = seconds.div_euclid(STRETCH_SECONDS);
        if stretch != self.stretch {
            self.turn(stretch);
        }
        self.offset.unwrap_or_else(|| self.zone.offset(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_offsets() {
        for (name, seconds) in [
            ("UTC", 0),
            ("+00:00", 0),
            ("-03:30", -12_600),
            ("+0545", 20_700),
            ("+14", 50_400),
            ("+00:09:21", 561),
        ] {
            assert_eq!(Zone::read(name), Some(Zone::Fixed(seconds)), "{name}");
        }
        assert!(matches!(Zone::read("Europe/Berlin"), Some(Zone::Named(_))));
        for name in ["", "+", "+1", "+24:00", "+02:60", "+é1", "+0é0", "Mars/Olympus", "+02:0", "+ 2:00"] {
            assert_eq!(Zone::read(name), None, "{name}");
        }
    }

    #[test]
    fn clocks_go_forward_and_back() {
        let berlin = Zone::read("Europe/Berlin").unwrap();
        // 2024-03-31 01:00 UTC and 2024-10-27 01:00 UTC.
        let (spring, autumn) = (1_711_846_800, 1_729_990_800);
        let mut out = Vec::new();
        assert!(!berlin.shift(&[spring - 1, spring, autumn - 1, autumn, -1], 1, None, &mut out));
        assert_eq!(out, [spring + 3_599, spring + 7_200, autumn + 7_199, autumn + 3_600, 3_599]);
        // 02:30 is skipped in spring and comes twice in autumn.
        assert_eq!(berlin.utc(spring + 3_600 + 1_800), None);
        assert_eq!(berlin.utc(autumn + 3_600 + 1_800), Some(autumn - 1_800));
        assert_eq!(berlin.utc(7_200), Some(3_600));
    }

    #[test]
    fn the_ends_of_64_bits_are_refused_and_nothing_breaks() {
        let berlin = Zone::read("Europe/Berlin").unwrap();
        assert!(berlin.shift(&[i64::MAX], 1, None, &mut Vec::new()));
        assert!(!berlin.shift(&[i64::MAX], 1, Some(&[0]), &mut Vec::new()));
        assert!(!berlin.shift(&[i64::MIN, 0], 1_000_000_000, None, &mut Vec::new()));
        assert!(Zone::Fixed(-3_600).shift(&[i64::MIN], 1, None, &mut Vec::new()));
        assert_eq!(berlin.utc(i64::MIN), None);
    }
}
