//! Strings and binary as 16-byte views, laid out as Arrow's view types are.
//!
//! Bytes 0..4 hold the length. The view itself holds up to 12 bytes; for a longer value it holds the first four bytes,
//! then the index of a buffer and the offset in it.
//!
//! VIEW-1. A view is read only with the payloads it was made for.

use arrow_buffer::Buffer;

use crate::payload::Payloads;

/// Length of the longest value that fits in the view itself.
pub const INLINE_BYTES: usize = 12;

/// Returns the length of the value in bytes.
#[inline]
pub fn view_len(view: u128) -> usize {
    view as u32 as usize
}

/// Makes a view of `bytes`, which start at `offset` of buffer `buffer`.
#[inline]
pub fn make_view(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
    let len = bytes.len();
    let mut raw = [0_u8; 16];
    raw[..4].copy_from_slice(&(len as u32).to_le_bytes());
    if len <= INLINE_BYTES {
        raw[4..4 + len].copy_from_slice(bytes);
    } else {
        raw[4..8].copy_from_slice(&bytes[..4]);
        raw[8..12].copy_from_slice(&buffer.to_le_bytes());
        raw[12..].copy_from_slice(&offset.to_le_bytes());
    }
    u128::from_le_bytes(raw)
}

/// Makes a view of `bytes[from..to]`, which start at `offset` of buffer `buffer`. Faster than [`make_view`] where
/// other bytes follow the value, since it may read them as well.
#[inline]
pub fn make_view_within(bytes: &[u8], (from, to): (usize, usize), buffer: u32, offset: u32) -> u128 {
    let len = to - from;
    match bytes.get(from..).and_then(<[u8]>::first_chunk::<16>) {
        None => make_view(&bytes[from..to], buffer, offset),
        Some(_) if len > INLINE_BYTES => make_view(&bytes[from..to], buffer, offset),
        Some(window) => {
            let text = u128::from_le_bytes(*window) & !(u128::MAX << (8 * len));
            text << 32 | len as u128
        }
    }
}

/// The upper bit of each byte of an inline value: set where the byte is not ASCII.
const NOT_ASCII: u128 = 0x8080_8080_8080_8080_8080_8080_u128 << 32;

/// Returns true if every view is sound for these buffers and every value is ASCII. A quick check of the usual case:
/// views that fail it may still be sound.
pub fn are_ascii(views: &[u128], buffers: &[Buffer]) -> bool {
    views.iter().all(|&view| {
        let len = view_len(view);
        if len <= INLINE_BYTES {
            return view & NOT_ASCII == 0 && (view >> 32) >> (8 * len) == 0;
        }
        let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        let value = buffers.get(buffer).and_then(|buffer| buffer.get(offset..offset + len));
        value.is_some_and(|value| value[..4] == ((view >> 32) as u32).to_le_bytes() && value.is_ascii())
    })
}

/// Calls `read` with the bytes of a value.
#[inline]
pub fn with_bytes<R>(view: u128, payloads: Payloads<'_>, read: impl FnOnce(&[u8]) -> R) -> R {
    let len = view_len(view);
    let raw = view.to_le_bytes();
    if len <= INLINE_BYTES {
        read(&raw[4..4 + len])
    } else {
        let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
        read(payloads.get(buffer).bytes(offset, len))
    }
}

/// Compares two values bytewise.
#[inline]
pub fn compare(
    left: u128,
    left_payloads: Payloads<'_>,
    right: u128,
    right_payloads: Payloads<'_>,
) -> std::cmp::Ordering {
    // The first four bytes decide most comparisons; short values are padded with zeros, and a zero pad never decides
    // wrongly because equal prefixes lead to the full comparison.
    let prefix = |view: u128| ((view >> 32) as u32).swap_bytes();
    let by_prefix = prefix(left).cmp(&prefix(right));
    if by_prefix != std::cmp::Ordering::Equal {
        return by_prefix;
    }
    with_bytes(left, left_payloads, |left| with_bytes(right, right_payloads, |right| left.cmp(right)))
}

/// Returns true if two values are the same bytes.
#[inline]
pub fn equal(left: u128, left_payloads: Payloads<'_>, right: u128, right_payloads: Payloads<'_>) -> bool {
    // The low half of each view holds length and prefix.
    if left as u64 != right as u64 {
        return false;
    }
    if view_len(left) <= INLINE_BYTES {
        return left == right;
    }
    with_bytes(left, left_payloads, |left| with_bytes(right, right_payloads, |right| left == right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use arrow_array::StringViewArray;
    use proptest::prelude::*;

    fn place(bytes: &[u8]) -> (u128, Vec<Payload>) {
        let mut payload = b"pad".to_vec();
        payload.extend_from_slice(bytes);
        (
            make_view(bytes, 1, 3),
            vec![Buffer::from_vec(Vec::<u8>::new()).into(), Buffer::from_vec(payload).into()],
        )
    }

    proptest! {
        #[test]
        fn views_behave_as_their_bytes(
            left in prop::collection::vec(0_u8..3, 0..20),
            right in prop::collection::vec(0_u8..3, 0..20),
        ) {
            let (a, a_buffers) = place(&left);
            let (b, b_buffers) = place(&right);
            let (a_buffers, b_buffers) = (Payloads::from(&a_buffers), Payloads::from(&b_buffers));
            prop_assert_eq!(with_bytes(a, a_buffers, <[u8]>::to_vec), left.clone());
            prop_assert_eq!(compare(a, a_buffers, b, b_buffers), left.cmp(&right));
            prop_assert_eq!(equal(a, a_buffers, b, b_buffers), left == right);
        }

        #[test]
        fn a_view_is_the_same_whatever_follows_its_value(
            bytes in prop::collection::vec(any::<u8>(), 0..60), from in 0_usize..60, len in 0_usize..40,
        ) {
            let from = from.min(bytes.len());
            let to = (from + len).min(bytes.len());
            prop_assert_eq!(make_view_within(&bytes, (from, to), 7, 9), make_view(&bytes[from..to], 7, 9));
        }

        /// Accepted views are what Arrow takes for valid ASCII text; any single bit may be wrong.
        #[test]
        fn what_is_ascii_is_valid(
            texts in prop::collection::vec("[ -~]{0,20}|[é✓]{0,6}", 1..6),
            flips in prop::collection::vec((0_usize..6, 0_u32..128), 0..2),
            short_by in 0_usize..3,
        ) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| text.bytes()).collect();
            let mut offset = 0;
            let mut views: Vec<u128> = texts.iter().map(|text| {
                let view = make_view(text.as_bytes(), 0, offset);
                offset += text.len() as u32;
                view
            }).collect();
            for (view, bit) in &flips {
                let view = view % views.len();
                views[view] ^= 1 << bit;
            }
            let buffers = vec![Buffer::from_vec(bytes[..bytes.len().saturating_sub(short_by)].to_vec())];
            let is_ascii = are_ascii(&views, &buffers);
            let array = StringViewArray::try_new(views.into(), buffers, None);
            prop_assert_eq!(is_ascii, array.is_ok_and(|array| array.iter().flatten().all(str::is_ascii)));
        }
    }
}
