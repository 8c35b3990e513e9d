//! Searches texts for other texts.
//!
//! A view holds the first bytes of a text, and short texts as a whole. So all rows are first answered from their views
//! alone, without a branch that depends on a text; only longer texts that their view does not decide are then
//! followed.

use memchr::memmem;
use penstock_memory::Payloads;
use penstock_memory::view::{INLINE_BYTES, view_len, with_bytes};

use crate::bits::select_where;
use crate::operand::{Operand, ask_each};

/// The position in a text where another one is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Contains,
    StartsWith,
    EndsWith,
}

impl Match {
    #[inline]
    fn holds(self, text: &[u8], pattern: &[u8]) -> bool {
        match self {
            Self::Contains => memmem::find(text, pattern).is_some(),
            Self::StartsWith => text.starts_with(pattern),
            Self::EndsWith => text.ends_with(pattern),
        }
    }
}

/// Bits of a view before the bytes of the text.
const LEN_BITS: usize = 32;
/// Bytes of every text that its view holds.
const PREFIX_BYTES: usize = 4;

/// Returns a mask of the first `bytes` bytes of a number.
fn first_bytes(bytes: usize) -> u128 {
    (1 << (bytes * 8)) - 1
}

/// Returns the first bytes of a pattern, as many as fit a view, as a number.
fn as_number(pattern: &[u8]) -> u128 {
    pattern.iter().take(INLINE_BYTES).rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Views of texts, their payloads, and which of them are valid. Others are not followed (COLUMN-2).
#[derive(Clone, Copy)]
struct TextViews<'a> {
    views: &'a [u128],
    payloads: Payloads<'a>,
    valid: Option<&'a [u8]>,
}

impl TextViews<'_> {
    fn is_valid(&self, row: usize) -> bool {
        self.valid.is_none_or(|mask| mask[row] != 0)
    }

    /// Recomputes the answers for these rows from the bytes of their texts.
    fn follow(&self, rows: &[u32], out: &mut [u8], holds: impl Fn(&[u8]) -> bool) {
        for &row in rows {
            let row = row as usize;
            out[row] = u8::from(self.is_valid(row) && with_bytes(self.views[row], self.payloads, &holds));
        }
    }

    fn start_with(&self, pattern: &[u8], out: &mut Vec<u8>) {
        let len = pattern.len();
        let shown = first_bytes(len.min(PREFIX_BYTES)) << LEN_BITS;
        let wanted = as_number(pattern) << LEN_BITS;
        let begins = |view: u128| (view ^ wanted) as u64 & shown as u64 == 0;
        if len <= PREFIX_BYTES {
            ask_each(self.views, out, |view| begins(view) & (view_len(view) >= len));
            return;
        }
        let shown = first_bytes(len.min(INLINE_BYTES)) << LEN_BITS;
        ask_each(self.views, out, |view| {
            let is_short = view_len(view) <= INLINE_BYTES;
            is_short & ((view ^ wanted) & shown == 0) & (view_len(view) >= len)
        });
        let mut rows = Vec::new();
        let least = len.max(INLINE_BYTES + 1);
        select_where(self.views, &mut rows, |view| begins(view) & (view_len(view) >= least));
        self.follow(&rows, out, |text| text.starts_with(pattern));
    }

    fn end_with(&self, pattern: &[u8], out: &mut Vec<u8>) {
        let len = pattern.len();
        if len == 0 {
            out.resize(self.views.len(), 1);
            return;
        }
        let (shown, wanted) = (first_bytes(len.min(INLINE_BYTES)), as_number(pattern));
        ask_each(self.views, out, |view| {
            let text_len = view_len(view);
            // For texts that are short themselves and not shorter than the pattern.
            let before = text_len.wrapping_sub(len);
            let end = view >> LEN_BITS >> (before % 16 * 8);
            (text_len <= INLINE_BYTES) & (before <= INLINE_BYTES) & (end & shown == wanted)
        });
        let mut rows = Vec::new();
        let least = len.max(INLINE_BYTES + 1);
        select_where(self.views, &mut rows, |view| view_len(view) >= least);
        self.follow(&rows, out, |text| text.ends_with(pattern));
    }

    fn contain(&self, pattern: &[u8], out: &mut Vec<u8>) {
        let finder = memmem::Finder::new(pattern);
        out.extend(self.views.iter().enumerate().map(|(row, &view)| {
            u8::from(
                self.is_valid(row)
                    && view_len(view) >= pattern.len()
                    && with_bytes(view, self.payloads, |text| finder.find(text).is_some()),
            )
        }));
    }
}

/// Writes 1 where a text matches the other. `valid` tells where both are present; the answers for other rows are
/// unspecified.
pub(crate) fn matches(
    op: Match,
    (texts, payloads): (Operand<'_, u128>, Payloads<'_>),
    (patterns, pattern_payloads): (Operand<'_, u128>, Payloads<'_>),
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut Vec<u8>,
) {
    if let (Operand::Rows(views), Operand::Same(pattern)) = (texts, patterns) {
        let texts = TextViews { views, payloads, valid };
        with_bytes(pattern, pattern_payloads, |pattern| match op {
            Match::Contains => texts.contain(pattern, out),
            Match::StartsWith => texts.start_with(pattern, out),
            Match::EndsWith => texts.end_with(pattern, out),
        });
        return;
    }
    out.extend((0..rows).map(|row| {
        // A view under a null points nowhere (COLUMN-2) and is not followed.
        let is_valid = valid.is_none_or(|mask| mask[row] != 0);
        u8::from(
            is_valid
                && with_bytes(patterns.at(row), pattern_payloads, |pattern| {
                    with_bytes(texts.at(row), payloads, |text| op.holds(text, pattern))
                }),
        )
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::view::make_view;
    use penstock_memory::{ColumnBuf, Physical};
    use proptest::prelude::*;

    fn column(texts: &[String]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Physical::View);
        let mut into = crate::text::TextWriter::new(&mut column);
        for text in texts {
            into.push(text.as_bytes());
        }
        into.finish();
        column
    }

    /// Texts of few letters, short and long, and patterns likely to be found in them.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[ab]{0,14}", "[a\u{0}]{0,5}", "[abé€\u{1F600}]{0,6}", "a{0,40}", "[ab]{10,14}b{0,20}"]
    }

    fn cases() -> impl Strategy<Value = (Vec<(String, bool)>, String)> {
        let len = prop_oneof![Just(0_usize), Just(1), Just(63), Just(64), Just(65), 0..140_usize];
        let texts = len.prop_flat_map(|len| prop::collection::vec((text(), prop::bool::weighted(0.8)), len));
        (texts, text(), any::<prop::sample::Index>(), 0..4_u8).prop_map(|(texts, other, index, from)| {
            let pattern = match texts.get(index.index(texts.len().max(1))) {
                Some((text, _)) if from > 0 => {
                    let half = text.chars().count() / 2;
                    match from {
                        1 => text.chars().take(half).collect(),
                        2 => text.chars().skip(half).collect(),
                        _ => text.clone(),
                    }
                }
                _ => other,
            };
            (texts, pattern)
        })
    }

    proptest! {
        #[test]
        fn texts_hold_what_rust_finds((rows, pattern) in cases(), skipped in 0_usize..70) {
            let texts: Vec<String> = rows.iter().map(|(text, _)| text.clone()).collect();
            let valid: Vec<u8> = rows.iter().map(|(_, valid)| u8::from(*valid)).collect();
            let column = column(&texts);
            let (views, payloads) = column.as_column().views();
            // A value under a null is no view at all (COLUMN-2).
            let broken: Vec<u128> = views
                .iter()
                .zip(&valid)
                .map(|(&view, &valid)| if valid == 1 { view } else { make_view(&[b'a'; 13], 77, 99) })
                .collect();
            let skipped = skipped.min(texts.len());
            let patterns = self::column(&vec![pattern.clone(); texts.len() + 1]);
            let (pattern_views, pattern_payloads) = patterns.as_column().views();
            for (op, holds) in [
                (Match::Contains, (|text, pattern| text.contains(pattern)) as fn(&str, &str) -> bool),
                (Match::StartsWith, |text, pattern| text.starts_with(pattern)),
                (Match::EndsWith, |text, pattern| text.ends_with(pattern)),
            ] {
                for patterns in [Operand::Rows(&pattern_views[1 + skipped..]), Operand::Same(pattern_views[0])] {
                    for (views, mask) in [(views, None), (&broken, Some(&valid[skipped..]))] {
                        let mut out = Vec::new();
                        let texts_in = (Operand::Rows(&views[skipped..]), payloads);
                        matches(op, texts_in, (patterns, pattern_payloads), mask, texts.len() - skipped, &mut out);
                        prop_assert_eq!(out.len(), texts.len() - skipped);
                        for (row, (&given, text)) in out.iter().zip(&texts[skipped..]).enumerate() {
                            if mask.is_none_or(|mask| mask[row] == 1) {
                                prop_assert_eq!(given, u8::from(holds(text, &pattern)), "{:?} {:?} {:?}", op, text, pattern);
                            }
                            prop_assert!(given <= 1, "COLUMN-3");
                        }
                    }
                }
            }
        }
    }
}
