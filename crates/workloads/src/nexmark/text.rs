//! Columns of strings, filled in place: all bytes go into one buffer, and each row ends at an offset.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use super::lanes;
use crate::Buffers;
use crate::random::RandomLane;

/// A column of ASCII strings under construction. Batches are bounded so that its bytes never outgrow the offsets.
#[derive(Debug)]
pub(super) struct AsciiColumn {
    values: Vec<u8>,
    offsets: Vec<i32>,
}

impl AsciiColumn {
    /// Creates a column for that many rows of about that many bytes each.
    pub(super) fn new(rows: usize, bytes_per_row: usize, buffers: &mut Buffers) -> Self {
        let mut offsets = buffers.take(rows + 1);
        offsets.push(0);
        Self { values: buffers.take(rows * bytes_per_row), offsets }
    }

    /// Appends these bytes to the row.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.values.extend_from_slice(bytes);
    }

    /// Appends `length` random letters to the row.
    #[inline]
    pub(super) fn push_letters(&mut self, letters: RandomLane, length: u64) {
        let end = self.values.len() + length as usize;
        for word in 0..length.div_ceil(8) {
            self.values.extend_from_slice(&eight_letters(letters.bits(word)));
        }
        self.values.truncate(end);
    }

    /// Appends `length` random letters to the row, about every thirteenth of them a blank, except the first and the
    /// last.
    pub(super) fn push_words(&mut self, letters: RandomLane, blanks: RandomLane, length: u64) {
        let start = self.values.len();
        self.push_letters(letters, length);
        let inner = self.values[start..].iter_mut().enumerate().skip(1).take((length as usize).max(2) - 2);
        for (place, byte) in inner {
            if blanks.below(place as u64, 13) == 0 {
                *byte = b' ';
            }
        }
    }

    /// Appends the last four digits of a number to the row.
    pub(super) fn push_four_digits(&mut self, number: u64) {
        for place in [1_000, 100, 10, 1] {
            self.values.push(b'0' + (number / place % 10) as u8);
        }
    }

    /// Ends the row.
    #[inline]
    pub(super) fn end_row(&mut self) {
        self.offsets.push(self.values.len() as i32);
    }

    /// Returns the text of a finished row.
    #[inline]
    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Returns the number of bytes of a row.
    pub(super) fn row_bytes(&self, row: usize) -> u64 {
        (self.offsets[row + 1] - self.offsets[row]) as u64
    }

    pub(super) fn finish(self) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let array = StringArray::try_new(offsets, Buffer::from_vec(self.values), None);
        Arc::new(array.expect("rows of ASCII, one after the other")) as Arc<dyn Array>
    }
}

/// Returns a lane for the many numbers that one event needs for one column.
#[inline(always)]
pub(super) fn sequence(lane: RandomLane, event: u64) -> RandomLane {
    RandomLane::new(lane.bits(event), 0)
}

/// Computes the column `extra`: random letters that pad rows with `used(row)` bytes to `target` bytes on average, give
/// or take a fifth of the padding. Empty for rows that have more.
pub(super) fn extra(
    seed: u64,
    events: &[u64],
    target: u64,
    used: impl Fn(usize) -> u64,
    buffers: &mut Buffers,
) -> ArrayRef {
    let (lengths, letters) =
        (RandomLane::new(seed, lanes::EXTRA_LENGTH), RandomLane::new(seed, lanes::EXTRA));
    let lengths = events.iter().enumerate().map(|(row, &event)| {
        let missing = target.saturating_sub(used(row));
        let slack = (missing + 2) / 5;
        missing - slack + lengths.below(event, slack * 2)
    });
    let lengths = buffers.filled(lengths);
    let mut text = AsciiColumn::new(events.len(), 0, buffers);
    // One word more than needed, since letters come eight at a time.
    text.values = buffers.take(lengths.iter().sum::<u64>() as usize + 8);
    for (&event, &length) in events.iter().zip(&lengths) {
        text.push_letters(sequence(letters, event), length);
        text.end_row();
    }
    buffers.give_back(lengths);
    text.finish()
}

/// Returns the most bytes that [`extra`] adds to a row.
pub(super) fn longest_extra(target: u64) -> u64 {
    target + target.div_ceil(5)
}

/// Makes eight letters from 64 random bits: each byte b becomes letter `b * 26 / 256`. Four bytes are computed at a
/// time, with eight bits to spare for each.
#[inline(always)]
fn eight_letters(bits: u64) -> [u8; 8] {
    const LOW: u64 = 0x00FF_00FF_00FF_00FF;
    let even = ((bits & LOW) * 26) >> 8 & LOW;
    let odd = ((bits >> 8 & LOW) * 26) & !LOW;
    ((even | odd) + u64::from_le_bytes([b'a'; 8])).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn letters_are_those_of_the_bytes(bits: u64) {
            let expected = bits.to_le_bytes().map(|byte| b'a' + (u32::from(byte) * 26 / 256) as u8);
            prop_assert_eq!(eight_letters(bits), expected);
        }

        #[test]
        fn rows_have_the_length_asked_for(lengths in prop::collection::vec(0..40u64, 0..50)) {
            let mut text = AsciiColumn::new(lengths.len(), 0, &mut Buffers::default());
            for (row, &length) in (0u64..).zip(&lengths) {
                text.push_letters(RandomLane::new(row, 0), length);
                text.end_row();
            }
            for (row, &length) in lengths.iter().enumerate() {
                prop_assert_eq!((text.row_bytes(row), text.row(row).len() as u64), (length, length));
            }
            let array = text.finish();
            for (row, length) in lengths.into_iter().enumerate() {
                let value = array.as_string::<i32>().value(row);
                prop_assert_eq!(value.len() as u64, length);
                prop_assert!(value.bytes().all(|byte| byte.is_ascii_lowercase()));
            }
        }
    }

    #[test]
    fn every_letter_comes_about_as_often() {
        let mut counts = [0u32; 26];
        for row in 0..10_000 {
            for letter in eight_letters(RandomLane::new(1, 2).bits(row)) {
                counts[usize::from(letter - b'a')] += 1;
            }
        }
        assert!(counts.iter().all(|count| (2_550..3_450).contains(count)), "{counts:?}");
    }

    #[test]
    fn words_begin_and_end_with_letters() {
        let mut text = AsciiColumn::new(0, 0, &mut Buffers::default());
        let mut blanks = 0;
        for row in 0..2_000usize {
            text.push_words(RandomLane::new(row as u64, 0), RandomLane::new(row as u64, 1), row as u64 % 100);
            text.end_row();
            let words = text.row(row);
            assert_eq!(words.len(), row % 100);
            assert!(words.first() != Some(&b' ') && words.last() != Some(&b' '));
            blanks += words.iter().filter(|&&byte| byte == b' ').count();
        }
        // 98 bytes in a thirteenth of which there is a blank, in every hundredth text, and so on down.
        assert!((6_900..7_800).contains(&blanks), "{blanks}");
    }
}
