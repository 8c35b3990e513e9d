//! Laws of event time, which can be checked at run time.
//!
//! A watermark never falls; where several inputs meet, it is the smallest of the active ones; and it never passes a
//! row that is still to come. Each law is checked where it could be broken: always with debug assertions, otherwise if
//! `PENSTOCK_CHECKS=1` is in the environment of the process. A broken law is a panic, which fails the query and names
//! the place.

use std::sync::atomic::{AtomicU8, Ordering};

/// The environment variable that enables the checks.
pub const VARIABLE: &str = "PENSTOCK_CHECKS";

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

/// The setting of the environment, once it was read.
static WANTED: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns true if laws are checked. The environment is read once; after that, this is one load.
#[inline]
pub fn are_checked() -> bool {
    if cfg!(debug_assertions) {
        return true;
    }
    // Relaxed: the word covers nothing else, and every thread that reads the environment finds the same there.
    match WANTED.load(Ordering::Relaxed) {
        UNKNOWN => ask(),
        wanted => wanted == ON,
    }
}

#[cold]
fn ask() -> bool {
    let wanted = std::env::var_os(VARIABLE).is_some_and(|value| is_on(&value.to_string_lossy()));
    WANTED.store(if wanted { ON } else { OFF }, Ordering::Relaxed);
    wanted
}

/// Returns true if that value of the variable enables checks. Any value but the ones that disable them does.
fn is_on(value: &str) -> bool {
    !matches!(value.trim(), "" | "0" | "off")
}

/// Panics with the message unless the condition holds, where laws are checked. Otherwise the condition is not
/// evaluated.
#[macro_export]
macro_rules! law {
    ($holds:expr, $($words:tt)+) => {
        if $crate::laws::are_checked() {
            assert!($holds, "a law of event time is broken: {}", format_args!($($words)+));
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_variable_says() {
        assert!(["1", "on", " on ", "yes"].into_iter().all(is_on));
        assert!(!["", " ", "0", "off", "off "].into_iter().any(is_on));
    }

    #[test]
    fn they_are_checked_in_tests() {
        assert!(are_checked() || !cfg!(debug_assertions));
        assert_eq!(ask(), std::env::var(VARIABLE).is_ok_and(|value| is_on(&value)));
    }

    #[test]
    fn a_law_that_holds_is_silent() {
        law!(1 < 2, "one is less than {}", 2);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "a law of event time is broken: 3 is less than 2"))]
    fn a_broken_law_panics() {
        let three = 3;
        law!(three < 2, "{three} is less than 2");
    }
}
