//! Amounts of memory as users write them.
//!
//! `"64MiB"` and `"2 GiB"` count in powers of 1024, `"500MB"` in powers of 1000, plain digits in bytes.
//! Sizes print in powers of 1024.

use std::fmt;
use std::str::FromStr;

use crate::{SizeError, closest};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Binary units from the smallest, for printing.
const BINARY: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const DECIMAL: [(&str, u64); 4] =
    [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
const ALLOWED: &str = "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB";

/// Digits of a fraction that count: later ones are worth less than a byte of the largest unit.
const FRACTION_DIGITS: usize = 18;

fn bad(text: &str, reason: impl Into<String>) -> SizeError {
    SizeError { text: text.to_owned(), reason: reason.into() }
}

/// Removes underscores between digits; returns `None` for any other underscore.
fn digits(part: &str) -> Option<String> {
    part.split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| part.replace('_', ""))
}

fn unit_bytes(text: &str, unit: &str) -> Result<u64, SizeError> {
    if unit.is_empty() || unit.eq_ignore_ascii_case("B") {
        return Ok(1);
    }
    let mut units = DECIMAL.iter().chain(&BINARY);
    if let Some((_, bytes)) = units.find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
        return Ok(*bytes);
    }
    // Bytes come last: of equally close units, the one with the written letter is suggested.
    let names = DECIMAL.iter().chain(&BINARY).map(|(name, _)| *name).chain(["B"]);
    let meant = closest(unit, names).map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default();
    Err(bad(text, format!("unknown unit \"{unit}\"{meant}; the units are: {ALLOWED}")))
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(bad(text, "it is empty; write a number and a unit, such as \"64MiB\""));
        }
        if trimmed.starts_with('-') {
            return Err(bad(text, "it is negative; write a size above zero, such as \"64MiB\""));
        }
        let number_len =
            trimmed.find(|c: char| !(c.is_ascii_digit() || matches!(c, '_' | '.'))).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(number_len);
        let not_a_number = || {
            bad(text, format!("expected a number and a unit ({ALLOWED}), such as \"64MiB\" or \"1.5GiB\""))
        };
        let (whole, fraction) = match number.split_once('.') {
            None => (digits(number).ok_or_else(not_a_number)?, None),
            Some((whole, fraction)) => {
                (digits(whole).ok_or_else(not_a_number)?, Some(digits(fraction).ok_or_else(not_a_number)?))
            }
        };
        let unit = unit_bytes(text, unit.trim())?;
        if unit == 1 && fraction.is_some() {
            return Err(bad(text, format!("a part of a byte is no size; write a unit ({ALLOWED})")));
        }
        let part = fraction.map_or(0, |mut fraction| {
            fraction.truncate(FRACTION_DIGITS);
            let numerator: u128 = fraction.parse().expect("up to 18 digits fit");
            numerator * u128::from(unit) / 10_u128.pow(fraction.len() as u32)
        });
        let bytes = whole
            .parse::<u64>()
            .ok()
            .and_then(|whole| whole.checked_mul(unit))
            .and_then(|bytes| bytes.checked_add(u64::try_from(part).ok()?))
            .ok_or_else(|| bad(text, "it is too large: a size has at most 64 bits"))?;
        if bytes == 0 {
            return Err(bad(text, "it is less than a byte; write a size above zero, such as \"64MiB\""));
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let hundredths = |unit: u64| (u128::from(self.0) * 100 + u128::from(unit / 2)) / u128::from(unit);
        // 1024 units after rounding are one of the next.
        let (name, unit) = BINARY
            .into_iter()
            .find(|(_, unit)| hundredths(*unit) < 102_400)
            .unwrap_or(BINARY[BINARY.len() - 1]);
        let hundredths = hundredths(unit);
        let number = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        f.pad(&format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<u64, SizeError> {
        text.parse::<ByteSize>().map(|size| size.0)
    }

    #[test]
    fn reads_binary_decimal_and_plain() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("2 GiB", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("500MB", 500_000_000),
            ("8kB", 8_000),
            ("1TB", 1_000_000_000_000),
            ("1TiB", 1 << 40),
            ("4096", 4096),
            ("4_096", 4096),
            ("1_000.2_5 kb", 1_000_250),
            ("512 B", 512),
            (" 7  mib ", 7 << 20),
            ("1.1KiB", 1126),
            ("0.50000000000000000000000000000000000000000000000000001MiB", 1 << 19),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn prints_with_two_decimals_at_most() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1023, "1023 B"),
            (96 << 10, "96 KiB"),
            (1 << 20, "1 MiB"),
            (3 << 19, "1.5 MiB"),
            ((1 << 20) - 1, "1 MiB"),
            ((1 << 20) + (1 << 18), "1.25 MiB"),
            (2 << 30, "2 GiB"),
            (100 << 30, "100 GiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>10}|{:<8}|", ByteSize(96 << 10), ByteSize(1)), "    96 KiB|1 B     |");
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("", "it is empty"),
            ("  ", "it is empty"),
            ("-1MiB", "negative"),
            ("-0.5", "negative"),
            ("0", "above zero"),
            ("0.0 GiB", "above zero"),
            ("0.0001KiB", "less than a byte"),
            ("1.5", "a part of a byte"),
            ("1.5 B", "a part of a byte"),
            ("NaN", "expected a number"),
            ("inf", "expected a number"),
            ("MiB", "expected a number"),
            ("1.2.3MiB", "expected a number"),
            (".5MiB", "expected a number"),
            ("5.MiB", "expected a number"),
            ("_5MiB", "expected a number"),
            ("5_MiB", "expected a number"),
            ("5__0MiB", "expected a number"),
            ("18446744073709551616", "too large"),
            ("16777216TiB", "too large"),
            ("99999999999999999999999999999999999999999999MiB", "too large"),
            ("64M", "unknown unit \"M\" (did you mean \"MB\"?)"),
            ("2GIB s", "unknown unit \"GIB s\" (did you mean \"GiB\"?)"),
            ("3 MiiB", "(did you mean \"MiB\"?)"),
            ("1e9", "unknown unit \"e9\""),
            ("10 parsecs", "the units are: B, KiB"),
            ("10 µB", "unknown unit"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.starts_with(&format!("bad size \"{text}\": ")), "{error}");
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whole_kibibytes_survive_printing(kibibytes in 1_u64..1024) {
            let size = ByteSize(kibibytes << 10);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn printing_rounds_to_a_hundredth(bytes in (0_u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)) {
            prop_assume!(bytes > 0 && bytes < u64::MAX - (1 << 40));
            let printed = ByteSize(bytes).to_string();
            let read: ByteSize = printed.parse().unwrap();
            prop_assert_eq!(read.to_string(), printed);
            // Half a hundredth of a unit is at most half a hundredth of the size, and a byte is cut off.
            prop_assert!(read.0.abs_diff(bytes) <= bytes / 200 + 1, "{} for {}", read.0, bytes);
        }

        #[test]
        fn any_text_is_answered(text in "[-0-9_. kKmMiIbB]{0,12}") {
            let _ = parse(&text);
        }
    }
}
