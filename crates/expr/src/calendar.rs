//! Days and the Gregorian calendar, by integer arithmetic.
//!
//! Years are counted from March, so that the leap day is the last of its year; 719,468 days lie between 0000-03-01
//! and the epoch, and 146,097 in every 400 years. All divisions floor, so that times before 1970 need no care.

/// A day in the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// Converts a day since the epoch to its date.
#[inline]
pub(crate) fn civil(days: i64) -> Civil {
    // Days lie within 64 bits divided by the 86,400 seconds of a day, or within 32 bits: nothing overflows.
    let since_march = days.wrapping_add(719_468);
    let (era, day_of_era) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097) as u32);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era.wrapping_mul(400) + i64::from(year_of_era) + i64::from(month <= 2);
    Civil { year, month: month.into(), day: day.into() }
}

/// Converts a date to days since the epoch; returns `None` for a date that does not exist.
pub(crate) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year_from_march = year - i64::from(month <= 2);
    let (era, year_of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    // 31 April comes back as 1 May.
    (civil(days) == Civil { year, month, day }).then_some(days)
}

/// A component of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the names of the components")]
pub(crate) enum CalendarField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Weekday,
    OrdinalDay,
}

/// Computes a component of each of `times`, which count `per_day` units a day.
pub(crate) fn parts(part: CalendarField, per_day: i64, times: &[i64], out: &mut Vec<i64>) {
    // Division by a constant compiles to a multiplication.
    match per_day {
        1 => parts_of::<1>(part, times, out),
        86_400 => parts_of::<86_400>(part, times, out),
        86_400_000 => parts_of::<86_400_000>(part, times, out),
        86_400_000_000 => parts_of::<86_400_000_000>(part, times, out),
        _ => parts_of::<86_400_000_000_000>(part, times, out),
    }
}

fn parts_of<const PER_DAY: i64>(part: CalendarField, times: &[i64], out: &mut Vec<i64>) {
    let per_second = const { if PER_DAY >= 86_400 { PER_DAY / 86_400 } else { 1 } };
    let per_milli = const { if PER_DAY >= 86_400_000 { PER_DAY / 86_400_000 } else { 1 } };
    let day = |time: &i64| time.div_euclid(PER_DAY);
    let rest = |time: &i64| time.rem_euclid(PER_DAY);
    match part {
        CalendarField::Year => out.extend(times.iter().map(|time| civil(day(time)).year)),
        CalendarField::Month => out.extend(times.iter().map(|time| civil(day(time)).month)),
        CalendarField::Day => out.extend(times.iter().map(|time| civil(day(time)).day)),
        CalendarField::Hour => out.extend(times.iter().map(|time| rest(time) / (3_600 * per_second))),
        CalendarField::Minute => out.extend(times.iter().map(|time| rest(time) / (60 * per_second) % 60)),
        CalendarField::Second => out.extend(times.iter().map(|time| rest(time) / per_second % 60)),
        CalendarField::Millisecond if PER_DAY < 86_400_000 => out.resize(times.len(), 0),
        CalendarField::Millisecond => out.extend(times.iter().map(|time| rest(time) / per_milli % 1_000)),
        // The epoch is a Thursday, the fourth day of its week.
        CalendarField::Weekday => out.extend(times.iter().map(|time| (day(time).rem_euclid(7) + 3) % 7 + 1)),
        CalendarField::OrdinalDay => out.extend(times.iter().map(|time| ordinal(day(time)))),
    }
}

/// Returns the number of a day within its year, from 1.
#[inline]
fn ordinal(day: i64) -> i64 {
    let Civil { year, month, day } = civil(day);
    let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let before = (153 * ((month + 9) % 12) + 2) / 5 + 59 + leap;
    // January and February are the last months of the year before, counted from March.
    day + if month <= 2 { before - 365 - leap } else { before }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn length(year: i64) -> i64 {
        365 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
    }

    #[test]
    fn counts_days_one_by_one() {
        let mut expected = (1599, 12, 31, 365);
        let lengths = |year: i64| [31, length(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let start = days(1600, 1, 1).unwrap();
        assert_eq!(start, -135_140);
        for day in start..days(2401, 1, 1).unwrap() {
            let (year, month, date, of_year) = expected;
            expected = if date < lengths(year)[month as usize - 1] {
                (year, month, date + 1, of_year + 1)
            } else if month < 12 {
                (year, month + 1, 1, of_year + 1)
            } else {
                (year + 1, 1, 1, 1)
            };
            let Civil { year, month, day: date } = civil(day);
            assert_eq!((year, month, date, ordinal(day)), expected, "{day}");
            assert_eq!(days(year, month, date), Some(day));
        }
    }

    #[test]
    fn days_that_are_not_in_the_calendar() {
        for (year, month, day) in
            [(2023, 2, 29), (1900, 2, 29), (2024, 4, 31), (2024, 13, 1), (2024, 0, 1), (2024, 1, 0)]
        {
            assert_eq!(days(year, month, day), None);
        }
        assert!(days(2024, 2, 29).is_some() && days(2000, 2, 29).is_some());
    }

    fn part(part: CalendarField, per_day: i64, time: i64) -> i64 {
        let mut out = Vec::new();
        parts(part, per_day, &[time], &mut out);
        out[0]
    }

    #[test]
    fn weeks_begin_on_monday() {
        assert_eq!(part(CalendarField::Weekday, 1, 0), 4);
        assert_eq!(part(CalendarField::Weekday, 1, -1), 3);
        assert_eq!(part(CalendarField::Weekday, 1, 3), 7);
        assert_eq!(part(CalendarField::Weekday, 1, 4), 1);
    }

    proptest! {
        #[test]
        fn parts_add_up(time: i64, unit in 1_usize..5) {
            let per_day = [1, 86_400, 86_400_000, 86_400_000_000, 86_400_000_000_000][unit];
            let fields = [
                CalendarField::Year,
                CalendarField::Month,
                CalendarField::Day,
                CalendarField::Hour,
                CalendarField::Minute,
                CalendarField::Second,
                CalendarField::Millisecond,
            ];
            let [year, month, day, hour, minute, second, milli] = fields.map(|asked| part(asked, per_day, time));
            let seconds = i128::from(days(year, month, day).unwrap()) * 86_400 + i128::from(hour * 3_600 + minute * 60 + second);
            let nanos = i128::from(time) * i128::from(86_400_000_000_000 / per_day);
            prop_assert_eq!(seconds * 1000 + i128::from(milli), nanos.div_euclid(1_000_000));
        }
    }
}
