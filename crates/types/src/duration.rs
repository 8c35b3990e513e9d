//! Durations as users write them.
//!
//! `"250ms"`, `"10s"`, `"1h30m"` name their unit; a bare integer counts ticks of the time column. A span is converted
//! to ticks only when the column is known, so that `"10s"` and `10_000` over milliseconds are the same plan.

use std::str::FromStr;

use crate::{PlanError, Tick};

/// A duration before the unit of the time column is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A number of units of the time column.
    Ticks(i64),
    /// A number of nanoseconds.
    Nanos(i128),
}

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

fn bad(text: &str, reason: impl Into<String>) -> PlanError {
    PlanError::Duration { text: text.to_owned(), reason: reason.into() }
}

impl FromStr for Span {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad(text, "it is empty; write a number and a unit, such as \"10s\""));
        }
        let mut total = 0_i128;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(bad(
                    text,
                    "expected a whole number and a unit (ns, us, ms, s, m, h, d, w), such as \"10s\"",
                ));
            }
            let number: i128 = rest[..digits].parse().map_err(|_| bad(text, "the number is too large"))?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = rest[..letters].trim();
            let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                let reason = if unit.is_empty() {
                    "a unit is missing; write \"10s\", or the integer 10 for units of the time column"
                        .to_owned()
                } else {
                    format!("unknown unit \"{unit}\"; use ns, us, ms, s, m, h, d or w")
                };
                return Err(bad(text, reason));
            };
            rest = &rest[letters..];
            total = number
                .checked_mul(*size)
                .and_then(|nanos| total.checked_add(nanos))
                .ok_or_else(|| bad(text, "the duration is too long"))?;
        }
        Ok(Self::Nanos(total))
    }
}

impl Span {
    /// Converts the span to ticks of a time column, exactly.
    pub fn ticks(self, tick: Tick) -> Result<i64, PlanError> {
        match self {
            Self::Ticks(ticks) => Ok(ticks),
            Self::Nanos(nanos) => {
                let text = || Tick::Nanosecond.describe(nanos);
                let Some(size) = tick.nanos() else {
                    return Err(bad(
                        &text(),
                        "the time column is an integer: give the duration as an integer in its unit",
                    ));
                };
                if nanos % size != 0 {
                    return Err(bad(
                        &text(),
                        format!(
                            "it is not a whole number of units of the time column ({})",
                            tick.describe(1)
                        ),
                    ));
                }
                i64::try_from(nanos / size).map_err(|_| bad(&text(), "it does not fit the time column"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_sums_of_them() {
        assert_eq!("250ms".parse::<Span>().unwrap().ticks(Tick::Millisecond).unwrap(), 250);
        assert_eq!("1h30m".parse::<Span>().unwrap().ticks(Tick::Second).unwrap(), 5_400);
        assert_eq!("2 d".parse::<Span>().unwrap().ticks(Tick::Day).unwrap(), 2);
        assert_eq!(Span::Ticks(7).ticks(Tick::Plain).unwrap(), 7);
    }

    #[test]
    fn refuses_what_it_cannot_mean() {
        for text in ["", "10", "s", "-1s", "10 parsecs", "1.5s", "99999999999999999999999999999999999999999s"]
        {
            assert!(text.parse::<Span>().is_err(), "{text:?} was accepted");
        }
        assert!("250ms".parse::<Span>().unwrap().ticks(Tick::Second).is_err());
        assert!("10s".parse::<Span>().unwrap().ticks(Tick::Plain).is_err());
        assert!("10000000w".parse::<Span>().unwrap().ticks(Tick::Nanosecond).is_err());
    }
}
