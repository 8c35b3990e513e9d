//! The unit of a time column.

use arrow_schema::{DataType, TimeUnit};

/// The unit in which a time column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Days (`date32`).
    Day,
    /// Seconds.
    Second,
    /// Milliseconds (also `date64`).
    Millisecond,
    /// Microseconds.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
    /// An integer column: only the user knows the unit.
    Plain,
}

impl Tick {
    /// Returns the tick of a column of this type, or `None` when such a column cannot carry event time.
    pub fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Timestamp(unit, _) => Some(match unit {
                TimeUnit::Second => Self::Second,
                TimeUnit::Millisecond => Self::Millisecond,
                TimeUnit::Microsecond => Self::Microsecond,
                TimeUnit::Nanosecond => Self::Nanosecond,
            }),
            DataType::Date32 => Some(Self::Day),
            DataType::Date64 => Some(Self::Millisecond),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(Self::Plain),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Some(Self::Plain),
            _ => None,
        }
    }

    /// Returns the nanoseconds in one tick; `None` for plain integers.
    pub fn nanos(self) -> Option<i128> {
        match self {
            Self::Day => Some(86_400_000_000_000),
            Self::Second => Some(1_000_000_000),
            Self::Millisecond => Some(1_000_000),
            Self::Microsecond => Some(1_000),
            Self::Nanosecond => Some(1),
            Self::Plain => None,
        }
    }

    /// Formats a count of ticks for people: `10s`, `1.5ms`, `17 units`.
    pub fn describe(self, ticks: i128) -> String {
        let Some(nanos) = self.nanos() else {
            return format!("{ticks} units");
        };
        let total = ticks * nanos;
        const UNITS: [(&str, i128); 7] = [
            ("d", 86_400_000_000_000),
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ];
        if total == 0 {
            return "0s".to_owned();
        }
        let exact = UNITS.iter().find(|(_, size)| total % size == 0).expect("every count is whole in ns");
        // Two-part spans such as 90 s read better as 1m30s than as a large count of the small unit.
        let mut rest = total.unsigned_abs();
        let mut text = if total < 0 { "-".to_owned() } else { String::new() };
        for (name, size) in UNITS {
            let size = size.unsigned_abs();
            if size < exact.1.unsigned_abs() {
                break;
            }
            let count = rest / size;
            if count > 0 {
                text.push_str(&format!("{count}{name}"));
                rest %= size;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_readable() {
        assert_eq!(Tick::Millisecond.describe(10_000), "10s");
        assert_eq!(Tick::Millisecond.describe(90_000), "1m30s");
        assert_eq!(Tick::Microsecond.describe(1_500), "1ms500us");
        assert_eq!(Tick::Second.describe(0), "0s");
        assert_eq!(Tick::Second.describe(-3600), "-1h");
        assert_eq!(Tick::Plain.describe(17), "17 units");
        assert_eq!(Tick::Day.describe(2), "2d");
    }
}
