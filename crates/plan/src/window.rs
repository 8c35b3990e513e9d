//! Windows: as they were written, in ticks, and the columns that their results have.

use arrow_schema::{DataType, Field, Schema};
use penstock_progress::{Aligned, Windows};
use penstock_types::{PlanError, Span, Tick};

/// Names of the bounds of a window in its results.
pub const WINDOW_BOUNDS: [&str; 2] = ["window_start", "window_end"];
/// Name of the column that says whether a result corrects an earlier one.
pub const CORRECTION: &str = "is_correction";
/// Name of the column with the rank of a row.
pub const RANK: &str = "rank";

/// What to do about two columns of one name behind a window.
pub(crate) const RENAME_KEYS: &str =
    "rename the key or the aggregate with .alias(\"...\"), or as a keyword: agg(name=...)";

/// Windows, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Side by side.
    Tumbling {
        /// How long they are.
        size: i64,
        /// How far they are moved from the epoch.
        offset: i64,
    },
    /// Overlapping.
    Sliding {
        /// How long they are.
        size: i64,
        /// From one to the next.
        slide: i64,
        /// How far they are moved from the epoch.
        offset: i64,
    },
    /// As long as rows follow each other closely.
    Session {
        /// The pause that ends one.
        gap: i64,
    },
}

impl WindowKind {
    /// Returns them as windows on a grid, if they are.
    pub fn aligned(self) -> Option<Aligned> {
        match self {
            Self::Tumbling { size, offset } => Aligned::tumbling(size, offset),
            Self::Sliding { size, slide, offset } => Aligned::new(size, slide, offset),
            Self::Session { .. } => None,
        }
    }

    /// Returns the windows that operators run; `None` for impossible sizes.
    pub fn windows(self) -> Option<Windows> {
        match self {
            Self::Session { gap } => (gap > 0).then_some(Windows::Session { gap }),
            _ => self.aligned().map(Windows::Aligned),
        }
    }
}

/// Windows as they were written, before the unit of time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of `WindowKind`")]
pub enum WindowSpan {
    Tumbling { size: Span, offset: Span },
    Sliding { size: Span, slide: Span, offset: Span },
    Session { gap: Span },
}

fn positive(span: Span, tick: Tick, what: &str) -> Result<i64, PlanError> {
    let ticks = span.ticks(tick)?;
    if ticks > 0 {
        return Ok(ticks);
    }
    Err(PlanError::Duration {
        text: tick.describe(i128::from(ticks)),
        reason: format!("{what} must be positive"),
    })
}

impl WindowSpan {
    pub(crate) fn in_ticks(self, tick: Tick) -> Result<WindowKind, PlanError> {
        const SIZE: &str = "the size of a window";
        Ok(match self {
            Self::Tumbling { size, offset } => {
                WindowKind::Tumbling { size: positive(size, tick, SIZE)?, offset: offset.ticks(tick)? }
            }
            Self::Sliding { size, slide, offset } => {
                let size = positive(size, tick, SIZE)?;
                let slide = positive(slide, tick, "the slide of a window")?;
                if slide > size {
                    return Err(PlanError::Duration {
                        text: tick.describe(i128::from(slide)),
                        reason: format!(
                            "the slide of a window is at most its size ({}), or rows between two windows would be in none",
                            tick.describe(i128::from(size))
                        ),
                    });
                }
                WindowKind::Sliding { size, slide, offset: offset.ticks(tick)? }
            }
            Self::Session { gap } => {
                WindowKind::Session { gap: positive(gap, tick, "the gap of a session")? }
            }
        })
    }
}

/// The columns that say which window a result is of.
pub(crate) fn bounds(data_type: &DataType) -> Vec<Field> {
    let bound_type =
        if matches!(Tick::of(data_type), Some(Tick::Plain)) { &DataType::Int64 } else { data_type };
    WINDOW_BOUNDS.iter().map(|name| Field::new(*name, bound_type.clone(), false)).collect()
}

/// The columns of a stream that are kept in results beside their keys: neither keys nor bounds of windows.
pub(crate) fn kept_columns<'a>(schema: &'a Schema, keys: &[String]) -> Vec<(usize, &'a Field)> {
    let is_kept = |name: &String| !keys.contains(name) && !WINDOW_BOUNDS.contains(&name.as_str());
    let fields = schema.fields().iter().enumerate();
    fields
        .filter(|(_, field)| is_kept(field.name()))
        .map(|(number, field)| (number, field.as_ref()))
        .collect()
}

/// Describes windows in words, for durations in ticks of that unit.
pub(crate) fn describe(window: WindowKind, tick: Tick) -> String {
    let say = |ticks: i64| tick.describe(i128::from(ticks));
    let moved = |offset: i64| if offset == 0 { String::new() } else { format!(", offset {}", say(offset)) };
    match window {
        WindowKind::Tumbling { size, offset } => format!("tumbling {}{}", say(size), moved(offset)),
        WindowKind::Sliding { size, slide, offset } => {
            format!("sliding {} every {}{}", say(size), say(slide), moved(offset))
        }
        WindowKind::Session { gap } => format!("session {}", say(gap)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked_in_the_unit_of_the_time_column() {
        let sliding = |size: &str, slide: &str| WindowSpan::Sliding {
            size: size.parse().unwrap(),
            slide: slide.parse().unwrap(),
            offset: Span::Ticks(0),
        };
        let kind = sliding("10s", "5s").in_ticks(Tick::Millisecond).unwrap();
        assert_eq!(kind, WindowKind::Sliding { size: 10_000, slide: 5_000, offset: 0 });
        assert_eq!(describe(kind, Tick::Millisecond), "sliding 10s every 5s");
        let error = sliding("5s", "10s").in_ticks(Tick::Millisecond).unwrap_err().to_string();
        assert!(error.contains("the slide of a window is at most its size (5s)"), "{error}");
        assert!(WindowSpan::Session { gap: Span::Ticks(0) }.in_ticks(Tick::Plain).is_err());
    }

    #[test]
    fn keys_and_bounds_are_not_kept() {
        let field = |name| Field::new(name, DataType::Int64, true);
        let schema = Schema::new(vec![field("window_end"), field("k"), field("v")]);
        let kept = kept_columns(&schema, &["k".to_owned()]);
        assert_eq!(kept.iter().map(|(column, _)| *column).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn bounds_of_plain_ticks_have_64_bits() {
        assert!(bounds(&DataType::UInt32).iter().all(|field| field.data_type() == &DataType::Int64));
        assert!(bounds(&DataType::Date32).iter().all(|field| field.data_type() == &DataType::Date32));
    }
}
