//! Kernels for texts.
//!
//! Views hold short texts, whose bytes are counted and changed there. Letters beyond ASCII follow the Unicode tables
//! of Rust, as `str.lower` and `str.upper` of Python follow theirs.

use penstock_memory::view::{INLINE_BYTES, view_len, with_bytes};
use penstock_memory::{Column, ColumnBuf};

use crate::bits::select_where;
use crate::text::TextWriter;

/// Repeats a byte at each position where a view holds a byte of a short text.
const fn in_text(byte: u8) -> u128 {
    u128::from_le_bytes([0, 0, 0, 0, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte, byte])
}

/// A one in each byte of a word.
const ONES: u64 = u64::from_le_bytes([1; 8]);
/// Bytes of a long text that are counted together: as many as a byte can count.
const PIECE: usize = 128;

/// Counts the bytes of `word` that continue a character: those with the upper bit set and the next one clear.
#[inline(always)]
fn continued(word: u64) -> u64 {
    (word & !(word << 1)) >> 7 & ONES
}

/// Returns the sum of the bytes of a word, if it is below 256.
#[inline(always)]
fn sum_of_bytes(word: u64) -> u64 {
    word.wrapping_mul(ONES) >> 56
}

/// Counts the characters of a UTF-8 text outside its view: all bytes but those that continue one.
#[inline]
fn characters(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        return bytes.len();
    }
    let (pieces, end) = bytes.as_chunks::<PIECE>();
    let mut more = 0;
    for piece in pieces {
        more += usize::from(piece.iter().map(|&byte| u8::from(byte & 0xC0 == 0x80)).sum::<u8>());
    }
    let (words, rest) = end.as_chunks::<8>();
    let sums = words.iter().fold(0, |sums, &word| sums + continued(u64::from_le_bytes(word)));
    // The last word again, without the bytes already counted.
    let last = match (bytes.last_chunk(), rest.len()) {
        (Some(&last), 1..) => continued(u64::from_le_bytes(last) >> (64 - 8 * rest.len())),
        _ => 0,
    };
    bytes.len() - more - sum_of_bytes(sums + last) as usize
}

/// Counts the characters, or bytes, of each text. Views under a null are not followed (COLUMN-2).
pub(crate) fn lengths(column: Column<'_>, of_bytes: bool, out: &mut Vec<i64>) {
    let (views, payloads) = column.views();
    if of_bytes {
        out.extend(views.iter().map(|&view| view_len(view) as i64));
        return;
    }
    // All of them as if they were short, without a branch, and then those that are not.
    out.extend(views.iter().map(|&view| {
        let bits = view & in_text(0xFF);
        let continued = continued(bits as u64) + continued((bits >> 64) as u64);
        view_len(view) as i64 - sum_of_bytes(continued) as i64
    }));
    let mut long = Vec::new();
    select_where(views, &mut long, |view| view_len(view) > INLINE_BYTES);
    for row in long {
        let row = row as usize;
        out[row] = if column.is_valid(row) { with_bytes(views[row], payloads, characters) as i64 } else { 0 };
    }
}

/// Swaps the case of the view of a short ASCII text: its letters from `first` on, 26 of them.
#[inline]
fn swap_case(view: u128, first: u8) -> u128 {
    // Each byte is below 128, so sums do not carry: the upper bit tells whether the byte is at least the bound.
    let from_first = view & in_text(0x7F);
    let at_least = from_first + in_text(0x80 - first);
    let beyond = from_first + in_text(0x80 - first - 26);
    view ^ ((at_least & !beyond & in_text(0x80)) >> 2)
}

/// Converts texts to small letters, or to capitals; returns true if one that counts has become too long.
pub(crate) fn change_case(column: Column<'_>, upper: bool, out: &mut ColumnBuf) -> bool {
    let (views, payloads) = column.views();
    let mut texts = TextWriter::new(out);
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

/// Returns true if bytes that count are not text.
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
        let mut into = TextWriter::new(&mut column);
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

    #[test]
    fn texts_under_a_null_are_not_followed() {
        let mut column = column(&["é".repeat(9), "é".repeat(9)]);
        column.mask_out(|row| row == 0);
        let views = column.as_column().views().0.to_vec();
        let (into, payloads) = column.refill_views();
        into.extend([views[0] | 77 << 64, views[0]]);
        payloads.push(arrow_buffer::Buffer::from_vec("é".repeat(9).into_bytes()).into());
        column.refill_mask().extend([0, 1]);
        let mut out = Vec::new();
        lengths(column.as_column(), false, &mut out);
        assert_eq!(out[1], 9);
    }

    proptest! {
        #[test]
        fn characters_are_counted(texts in prop::collection::vec("[aé€\u{1F600}]{0,4}", 0..100), skipped in 0_usize..30) {
            let text = texts.concat();
            let begin = text.char_indices().map(|(at, _)| at).nth(skipped).unwrap_or(text.len());
            let text = &text[begin..];
            if text.len() >= 8 {
                prop_assert_eq!(characters(text.as_bytes()), text.chars().count());
            }
            let column = column(&[text.to_owned()]);
            let mut out = Vec::new();
            lengths(column.as_column(), false, &mut out);
            prop_assert_eq!(out, [text.chars().count() as i64]);
        }

        #[test]
        fn texts_behave_as_rust_has_it(
            texts in prop::collection::vec(prop_oneof!["[ -~]{0,20}", "[a-zA-Zéßİς\u{1F600}@\\[`{]{0,8}", ".{0,20}"], 1..20),
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
        }
    }
}
