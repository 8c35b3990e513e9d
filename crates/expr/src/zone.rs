//! Time zones: offsets of local times from UTC.

use std::ops::Range;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::calendar::{Civil, civil, days};

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// A fixed number of seconds ahead of UTC.
    Fixed(i64),
    /// A region with rules of its own.
    Named(Tz),
}

/// Times more than about 200,000 years ago have the offset of that year: the calendar of `chrono` begins there.
const FIRST_SECONDS: i64 = -200_000 * 31_556_952;
/// The tables of zones know every transition before that year. Their rules apply for ever after.
const END_YEAR: i64 = 2100;
/// The years whose rules hold from then on. By then, all tabulated exceptions are over (those of Morocco and Gaza
/// follow the moon until 2087), and in these twelve years both 1 January and 1 March fall on every day of the week.
const LAST_YEARS: Range<i64> = END_YEAR - 12..END_YEAR;
/// Clocks change at most once in this many seconds, so the offsets at both ends tell whether they do.
const STRETCH_SECONDS: i64 = 3_600;

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// Returns the zone of that name: `UTC`, `+02:00`, `Europe/Berlin`.
    pub(crate) fn read(name: &str) -> Option<Self> {
        if matches!(name, "UTC" | "Z" | "Etc/UTC" | "GMT") {
            return Some(Self::UTC);
        }
        match fixed(name) {
            Some(seconds) => Some(Self::Fixed(seconds)),
            None => name.parse().ok().map(Self::Named),
        }
    }

    /// Returns the seconds that local time is ahead of UTC at that time.
    pub(crate) fn offset(self, seconds: i64) -> i64 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => {
                let time = DateTime::from_timestamp(within_tables(seconds).max(FIRST_SECONDS), 0)
                    .expect("the limits lie within the calendar");
                zone.offset_from_utc_datetime(&time.naive_utc()).fix().local_minus_utc().into()
            }
        }
    }

    /// Returns the time in UTC of the local time `local`, the first of two; `None` when the clocks skip it.
    pub(crate) fn utc(self, local: i64) -> Option<i64> {
        // Local time is less than a day from UTC, so the offset is one of the two.
        let day = 86_400;
        let offsets = [self.offset(local.saturating_sub(day)), self.offset(local.saturating_add(day))];
        let found = offsets.into_iter().filter_map(|offset| local.checked_sub(offset));
        found.filter(|&utc| utc.checked_add(self.offset(utc)) == Some(local)).min()
    }

    /// Adds the offset to each of `seconds`; fails beyond 64 bits.
    pub(crate) fn shift(self, seconds: &[i64], wanted: Option<&[u8]>, out: &mut Vec<i64>) -> bool {
        if let Self::Fixed(offset) = self {
            out.extend(seconds.iter().map(|time| time.wrapping_add(offset)));
        } else {
            let mut clock = OffsetCache::new(self);
            out.extend(seconds.iter().map(|&time| time.wrapping_add(clock.offset(time))));
        }
        // Offsets are less than a day: a sum that wrapped around is far away.
        let gone_round = |(time, local): (&i64, &i64)| local.abs_diff(*time) > 86_400;
        let mut pairs = seconds.iter().zip(&*out);
        match wanted {
            None => pairs.any(gone_round),
            Some(mask) => pairs.zip(mask).any(|(pair, &wanted)| wanted != 0 && gone_round(pair)),
        }
    }
}

/// Returns a time within the tables at which every zone has the same offset as at `seconds`.
///
/// Rules name a day of the week in a month. From March on, two years with the same 1 March have the same days, and in
/// January and February two years with the same 1 January, except for the leap day, on which no clock changes.
fn within_tables(seconds: i64) -> i64 {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Civil { year, month, day: of_month } = civil(day);
    if year < END_YEAR {
        return seconds;
    }
    let first_month = if month < 3 { 1 } else { 3 };
    let weekday = |year| days(year, first_month, 1).map(|first| first.rem_euclid(7));
    let alike = LAST_YEARS.rev().find(|&alike| weekday(alike) == weekday(year));
    let found =
        alike.and_then(|year| days(year, month, of_month).or_else(|| days(year, month, of_month - 1)));
    found.expect("twelve years begin on every day of the week") * 86_400 + second
}

/// Parses `+02:00`, `-0330`, `+02` or `+00:09:21` into seconds.
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

/// Caches the offset of the last stretch of time: times are mostly in order.
struct OffsetCache {
    zone: Zone,
    stretch: i64,
    offset: Option<i64>,
}

impl OffsetCache {
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
        assert!(!berlin.shift(&[spring - 1, spring, autumn - 1, autumn, -1], None, &mut out));
        assert_eq!(out, [spring + 3_599, spring + 7_200, autumn + 7_199, autumn + 3_600, 3_599]);
        // 02:30 is skipped in spring and comes twice in autumn.
        assert_eq!(berlin.utc(spring + 3_600 + 1_800), None);
        assert_eq!(berlin.utc(autumn + 3_600 + 1_800), Some(autumn - 1_800));
        assert_eq!(berlin.utc(7_200), Some(3_600));
    }

    #[test]
    fn rules_continue_after_the_tables() {
        let at = |year, month, day, hour: i64| days(year, month, day).unwrap() * 86_400 + hour * 3_600;
        let berlin = Zone::read("Europe/Berlin").unwrap();
        // The last Sundays of March and October, at 01:00 UTC.
        for (year, spring, autumn) in [(2099, 29, 25), (2100, 28, 31), (2101, 27, 30), (2400, 26, 29)] {
            let offsets = [(3, spring), (10, autumn)].map(|(month, day)| {
                [berlin.offset(at(year, month, day, 1) - 1), berlin.offset(at(year, month, day, 1))]
            });
            assert_eq!(offsets, [[3_600, 7_200], [7_200, 3_600]], "{year}");
        }
        let sydney = Zone::read("Australia/Sydney").unwrap();
        assert_eq!(sydney.offset(at(2150, 1, 1, 0)), 39_600);
        assert_eq!(sydney.offset(at(2150, 7, 1, 0)), 36_000);
        assert_eq!(sydney.offset(at(2104, 2, 29, 12)), 39_600);
    }

    #[test]
    fn assumptions_of_the_rules_after_the_tables() {
        for first_month in [1, 3] {
            let mut weekdays: Vec<i64> =
                LAST_YEARS.map(|year| days(year, first_month, 1).unwrap().rem_euclid(7)).collect();
            weekdays.sort_unstable();
            weekdays.dedup();
            assert_eq!(weekdays.len(), 7);
        }
        for zone in chrono_tz::TZ_VARIANTS {
            let zone = Zone::Named(zone);
            for year in LAST_YEARS {
                let (start, end) = (days(year, 1, 1).unwrap(), days(year, 3, 1).unwrap());
                let mut offsets: Vec<i64> = (start..=end).map(|day| zone.offset(day * 86_400)).collect();
                offsets.dedup();
                assert_eq!(offsets.len(), 1, "{zone:?} changes its clocks before March of {year}");
            }
        }
    }

    #[test]
    fn the_ends_of_64_bits_are_refused_and_nothing_breaks() {
        let berlin = Zone::read("Europe/Berlin").unwrap();
        assert!(berlin.shift(&[i64::MAX], None, &mut Vec::new()));
        assert!(!berlin.shift(&[i64::MAX], Some(&[0]), &mut Vec::new()));
        assert!(Zone::Fixed(-3_600).shift(&[i64::MIN], None, &mut Vec::new()));
        assert_eq!(berlin.utc(i64::MIN), None);
    }
}
