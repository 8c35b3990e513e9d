//! Kernels for texts.
//!
//! Short texts stand in their views, where their bytes are counted and changed without being looked for elsewhere.
//! Letters beyond ASCII follow the Unicode tables of Rust, as `str.lower` and `str.upper` of Python follow theirs.

use memchr::memmem;
use penstock_memory::view::{INLINE_BYTES, view_len, with_bytes};
use penstock_memory::{Column, ColumnBuf, Payloads};

use crate::operand::Operand;
use crate::text::Texts;

/// Whether a text holds another, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Contains,
    StartsWith,
    EndsWith,
}

/// A byte in each place of a view where a short text has its bytes.
const fn in_text(byte: u8) -> u128 {
    u128::from_le_bytes([0, 0, 0, 0, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte])
}

/// Characters of UTF-8: all bytes but those that continue one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().map(|&byte| usize::from(byte & 0xC0 != 0x80)).sum()
}

/// How many characters, or bytes, each text has. Views under a null are not followed (C2).
pub(crate) fn lengths(column: Column<'_>, of_bytes: bool, out: &mut Vec<i64>) {
    let (views, payloads) = column.views();
    if of_bytes {
        out.extend(views.iter().map(|&view| view_len(view) as i64));
        return;
    }
    out.extend(views.iter().enumerate().map(|(row, &view)| {
        let len = view_len(view);
        if len <= INLINE_BYTES {
            // Bytes that continue a character have the upper bit set and the next one clear.
            let continued = view & !(view << 1) & in_text(0x80);
            len as i64 - i64::from(continued.count_ones())
        } else if column.is_valid(row) {
            with_bytes(view, payloads, characters) as i64
        } else {
            0
        }
    }));
}

/// The view of a short ASCII text with its letters from `first` on, 26 of them, in the other case.
#[inline]
fn swap_case(view: u128, first: u8) -> u128 {
    // Each byte is below 128, so that sums stay within theirs: the upper bit says what the byte is not below.
    let from_first = view & in_text(0x7F);
    let at_least = from_first + in_text(0x80 - first);
    let beyond = from_first + in_text(0x80 - first - 26);
    view ^ ((at_least & !beyond & in_text(0x80)) >> 2)
}

/// Texts in small letters, or in capitals. Whether one that counts has become too long.
pub(crate) fn change_case(column: Column<'_>, upper: bool, out: &mut ColumnBuf) -> bool {
    let (views, payloads) = column.views();
    let mut texts = Texts::new(out);
    let mut failed = false;
    let first = if upper { b'a' } else { b'A' };
    let mut ascii = Vec::new();
    for (row, &view) in views.iter().enumerate() {
        if !column.is_valid(row) {
            texts.push_view(0);
        } else if view_len(view) <= INLINE_BYTES && view & in_text(0x80) == 0 {
            texts.push_view(swap_case(view, first));
        } else {
            failed |= with_bytes(view, payloads, |bytes| {
                if bytes.is_ascii() {
                    ascii.clear();
                    ascii.extend_from_slice(bytes);
                    if upper {
                        ascii.make_ascii_uppercase()
                    } else {
                        ascii.make_ascii_lowercase()
                    }
                    return texts.push(&ascii);
                }
                let text = String::from_utf8_lossy(bytes);
                let changed = if upper { text.to_uppercase() } else { text.to_lowercase() };
                texts.push(changed.as_bytes())
            });
        }
    }
    texts.finish();
    failed
}

/// 1 where a text holds the other. `valid` says where both are there.
pub(crate) fn matches(
    op: Match,
    (texts, payloads): (Operand<'_, u128>, Payloads<'_>),
    (patterns, pattern_payloads): (Operand<'_, u128>, Payloads<'_>),
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut Vec<u8>,
) {
    // A view under a null points nowhere (C2), so it is not followed.
    let is_valid = |row: usize| valid.is_none_or(|mask| mask[row] != 0);
    let Operand::Same(pattern) = patterns else {
        out.extend((0..rows).map(|row| {
            u8::from(
                is_valid(row)
                    && with_bytes(patterns.at(row), pattern_payloads, |pattern| {
                        with_bytes(texts.at(row), payloads, |text| match op {
                            Match::Contains => memmem::find(text, pattern).is_some(),
                            Match::StartsWith => text.starts_with(pattern),
                            Match::EndsWith => text.ends_with(pattern),
                        })
                    }),
            )
        }));
        return;
    };
    let mut each = |len: usize, holds: &dyn Fn(&[u8]) -> bool| {
        out.extend((0..rows).map(|row| {
            let view = texts.at(row);
            u8::from(is_valid(row) && view_len(view) >= len && with_bytes(view, payloads, holds))
        }));
    };
    with_bytes(pattern, pattern_payloads, |pattern| match op {
        Match::Contains => {
            let finder = memmem::Finder::new(pattern);
            each(pattern.len(), &|text| finder.find(text).is_some());
        }
        Match::StartsWith => each(pattern.len(), &|text| text.starts_with(pattern)),
        Match::EndsWith => each(pattern.len(), &|text| text.ends_with(pattern)),
    });
}

/// Whether bytes that count are no text.
pub(crate) fn any_not_text(column: Column<'_>, wanted: Option<&[u8]>) -> bool {
    let (views, payloads) = column.views();
    views.iter().enumerate().any(|(row, &view)| {
        wanted.is_none_or(|mask| mask[row] != 0)
            && with_bytes(view, payloads, |bytes| std::str::from_utf8(bytes).is_err())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::Physical;
    use proptest::prelude::*;

    fn column(texts: &[String]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Physical::View);
        let mut into = Texts::new(&mut column);
        for text in texts {
            into.push(text.as_bytes());
        }
        into.finish();
        column
    }

    fn read(column: &ColumnBuf) -> Vec<String> {
        let (views, payloads) = column.as_column().views();
        let text =
            |&view: &u128| with_bytes(view, payloads, |bytes| String::from_utf8(bytes.to_vec()).unwrap());
        views.iter().map(text).collect()
    }

    proptest! {
        #[test]
        fn texts_behave_as_rust_has_it(
            texts in prop::collection::vec(prop_oneof!["[ -~]{0,20}", "[a-zA-Zéßİς\u{1F600}@\\[`{]{0,8}", ".{0,20}"], 1..20),
            pattern in "[a-cé]{0,3}",
        ) {
            let column = column(&texts);
            let mut lengths_out = Vec::new();
            lengths(column.as_column(), false, &mut lengths_out);
            let counted: Vec<i64> = texts.iter().map(|text| text.chars().count() as i64).collect();
            prop_assert_eq!(lengths_out, counted);
            for upper in [false, true] {
                let mut out = ColumnBuf::new(Physical::View);
                prop_assert!(!change_case(column.as_column(), upper, &mut out));
                let changed = |text: &String| if upper { text.to_uppercase() } else { text.to_lowercase() };
                prop_assert_eq!(read(&out), texts.iter().map(changed).collect::<Vec<_>>());
            }
            let patterns = self::column(&vec![pattern.clone(); texts.len()]);
            let (views, payloads) = column.as_column().views();
            let (pattern_views, pattern_payloads) = patterns.as_column().views();
            for (op, holds) in [
                (Match::Contains, texts.iter().map(|text| u8::from(text.contains(&pattern))).collect::<Vec<_>>()),
                (Match::StartsWith, texts.iter().map(|text| u8::from(text.starts_with(&pattern))).collect()),
                (Match::EndsWith, texts.iter().map(|text| u8::from(text.ends_with(&pattern))).collect()),
            ] {
                for patterns in [Operand::Rows(pattern_views), Operand::Same(pattern_views[0])] {
                    let mut out = Vec::new();
                    let both = ((Operand::Rows(views), payloads), (patterns, pattern_payloads));
                    matches(op, both.0, both.1, None, texts.len(), &mut out);
                    prop_assert_eq!(&out, &holds);
                }
            }
        }
    }
}
