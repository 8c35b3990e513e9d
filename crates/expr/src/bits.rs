//! Converts answers to the numbers of the rows they select.
//!
//! An answer is a byte that is 0 or 1. The bytes of eight rows form one number: one multiplication extracts eight
//! bits, for which a table lists the positions of those that are set, and another one counts them. So no branch
//! depends on the answer for one row. A stride in which all answers are 0 is skipped.

use crate::instructions::ASKED;

/// Rows that are skipped together if none of them is selected.
const STRIDE: usize = 64;
/// Rows whose numbers are written together.
const OCTET: usize = 8;
/// Rows whose answers are computed before the first of them is numbered. From a sweep of 64, 256 and 1024 over
/// integers read from memory rather than from the cache: 256 takes a fifth less time in a loop by itself, which is a
/// few per cent of a filter in the engine, and makes no difference in the cache.
const BLOCK: usize = 256;

/// The set bits of a byte, from the lowest on. The entries after them are unspecified.
static PLACES: [[u32; OCTET]; 256] = places();

const fn places() -> [[u32; OCTET]; 256] {
    let mut table = [[0; OCTET]; 256];
    let mut byte = 0;
    while byte < table.len() {
        let (mut count, mut bit) = (0, 0);
        while bit < OCTET {
            if byte >> bit & 1 == 1 {
                table[byte][count] = bit as u32;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// Row numbers, being appended to others.
struct RowNumbers<'a> {
    rows: &'a mut Vec<u32>,
    /// Length of the valid part of `rows`; the rest is room.
    count: usize,
    /// The first row of the next stride.
    start: usize,
    /// Number of rows in the column.
    len: usize,
}

impl<'a> RowNumbers<'a> {
    /// Appends numbers of rows below `len`.
    fn new(rows: &'a mut Vec<u32>, len: usize) -> Self {
        let count = rows.len();
        Self { rows, count, start: 0, len }
    }

    /// Returns room for the numbers of a stride, and for one more octet: octets are written whole.
    #[inline(always)]
    fn room(&mut self) -> &mut [u32; STRIDE + OCTET] {
        if self.rows.len() < self.count + STRIDE + OCTET {
            let rest = (self.len - self.start).next_multiple_of(STRIDE);
            self.rows.resize(self.count + rest + OCTET, 0);
        }
        self.rows[self.count..].first_chunk_mut().expect("there is room for a stride and an octet")
    }

    /// Appends the rows selected by the next stride of answers.
    #[inline(always)]
    fn push(&mut self, answers: &[u8; STRIDE]) {
        let (octets, _) = answers.as_chunks::<OCTET>();
        if octets.iter().fold(0, |any, &octet| any | u64::from_le_bytes(octet)) != 0 {
            let mut first = self.start as u32;
            let room = self.room();
            let mut count = 0;
            for &octet in octets {
                let octet = u64::from_le_bytes(octet);
                // One multiplication moves each byte to a bit of its own within the upper eight, without carries; the
                // other adds all of them there.
                let bits = octet.wrapping_mul(0x0102_0408_1020_4080) >> 56;
                let ones = octet.wrapping_mul(0x0101_0101_0101_0101) >> 56;
                let to: &mut [u32; OCTET] =
                    room[count..].first_chunk_mut().expect("a stride has no more rows than that");
                *to = PLACES[bits as usize].map(|place| first + place);
                count += ones as usize;
                first += OCTET as u32;
            }
            self.count += count;
        }
        self.start += STRIDE;
    }

    fn finish(self) {
        self.rows.truncate(self.count);
    }
}

/// Appends the numbers of the rows for which `holds` is true.
#[inline]
pub(crate) fn select_where<T: Copy>(values: &[T], rows: &mut Vec<u32>, holds: impl Fn(T) -> bool) {
    let mut numbers = RowNumbers::new(rows, values.len());
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    for block in blocks {
        let mut answers = [0; BLOCK];
        let parts = answers.as_chunks_mut::<ASKED>().0.iter_mut().zip(block.as_chunks::<ASKED>().0);
        for (answers, values) in parts {
            *answers = std::array::from_fn(|row| u8::from(holds(values[row])));
        }
        answers.as_chunks().0.iter().for_each(|stride| numbers.push(stride));
    }
    for rest in rest.chunks(STRIDE) {
        let mut answers = [0; STRIDE];
        answers.iter_mut().zip(rest).for_each(|(answer, &value)| *answer = u8::from(holds(value)));
        numbers.push(&answers);
    }
    numbers.finish();
}

/// Appends the numbers of the rows whose bytes, which are 0 or 1, are 1.
pub(crate) fn select_ones(bytes: &[u8], rows: &mut Vec<u32>) {
    let mut numbers = RowNumbers::new(rows, bytes.len());
    let (strides, rest) = bytes.as_chunks::<STRIDE>();
    strides.iter().for_each(|stride| numbers.push(stride));
    if !rest.is_empty() {
        let mut last = [0; STRIDE];
        last[..rest.len()].copy_from_slice(rest);
        numbers.push(&last);
    }
    numbers.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Answers of every length around whole strides, seldom, often or always 1.
    fn any_answers() -> impl Strategy<Value = Vec<bool>> {
        let len = prop_oneof![
            Just(0_usize),
            Just(1),
            Just(63),
            Just(64),
            Just(65),
            Just(128),
            Just(256),
            Just(257),
            0..600_usize
        ];
        (len, prop_oneof![Just(0.0), Just(1.0), Just(0.02), Just(0.98), 0.0..1.0])
            .prop_flat_map(|(len, share)| prop::collection::vec(prop::bool::weighted(share), len))
    }

    fn numbers(answers: impl Iterator<Item = bool>) -> impl Iterator<Item = u32> {
        (0..).zip(answers).filter_map(|(row, answer)| answer.then_some(row))
    }

    proptest! {
        #[test]
        fn the_rows_that_hold_are_selected(answers in any_answers(), before in prop::collection::vec(7_u32..9, 0..3), skipped in 0_usize..70) {
            // Earlier rows stay, and a slice of a longer column is numbered from its own first row.
            let skipped = skipped.min(answers.len());
            let expected: Vec<u32> =
                before.iter().copied().chain(numbers(answers[skipped..].iter().copied())).collect();
            // A value past the end must not be taken for one that holds.
            let wide: Vec<i64> = answers.iter().map(|&answer| if answer { 0 } else { -5 }).collect();
            let mut rows = before.clone();
            select_where(&wide[skipped..], &mut rows, |value| value >= 0);
            prop_assert_eq!(&rows, &expected);
            let narrow: Vec<i16> = answers.iter().map(|&answer| if answer { 0 } else { -5 }).collect();
            let mut rows = before.clone();
            select_where(&narrow[skipped..], &mut rows, |value| value >= 0);
            prop_assert_eq!(&rows, &expected);
            let views: Vec<u128> = answers.iter().map(|&answer| u128::from(!answer) << 100).collect();
            let mut rows = before.clone();
            select_where(&views[skipped..], &mut rows, |value| value == 0);
            prop_assert_eq!(&rows, &expected);
        }

        #[test]
        fn bytes_that_are_one_are_selected(answers in any_answers(), skipped in 0_usize..70) {
            let bytes: Vec<u8> = answers.iter().map(|&answer| u8::from(answer)).collect();
            let skipped = skipped.min(bytes.len());
            let mut rows = Vec::new();
            select_ones(&bytes[skipped..], &mut rows);
            prop_assert_eq!(rows, numbers(answers[skipped..].iter().copied()).collect::<Vec<_>>());
        }
    }
}
