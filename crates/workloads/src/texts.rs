//! Columns of text, written straight into the buffers of the array, without a string per row.

use arrow_array::StringArray;
use arrow_buffer::{Buffer, OffsetBuffer};

use crate::Buffers;

/// A column of text under construction.
pub(crate) struct TextColumn {
    /// Longer than the texts: the bytes from `end` on are unspecified.
    bytes: Vec<u8>,
    end: usize,
    offsets: Vec<i32>,
}

impl TextColumn {
    /// Creates a column for that many rows, each at most `width` long. Together they must stay below 2 GiB: a batch of
    /// any workload does, with texts up to 127 bytes.
    pub(crate) fn with_room(rows: usize, width: usize, buffers: &mut Buffers) -> Self {
        let mut offsets = buffers.take(rows + 1);
        offsets.push(0);
        // One text more than fits: see `append`.
        Self { bytes: buffers.take_full((rows + 1) * width), end: 0, offsets }
    }

    /// Adds a row: the first `length` bytes of `text`, which are ASCII.
    #[inline(always)]
    pub(crate) fn push<const WIDTH: usize>(&mut self, text: &[u8; WIDTH], length: usize) {
        self.append(text, length);
        self.offsets.push(self.end as i32);
    }

    /// Like `push`, but the row continues. The whole of `text` is copied, since its size is a compile-time constant;
    /// the next call overwrites the excess.
    #[inline(always)]
    pub(crate) fn append<const WIDTH: usize>(&mut self, text: &[u8; WIDTH], length: usize) {
        self.bytes[self.end..self.end + WIDTH].copy_from_slice(text);
        self.end += length;
    }

    pub(crate) fn finish(mut self) -> StringArray {
        self.bytes.truncate(self.end);
        let offsets = OffsetBuffer::new(self.offsets.into());
        StringArray::try_new(offsets, Buffer::from_vec(self.bytes), None)
            .expect("ASCII texts, and offsets between them")
    }
}

/// The words that a column chooses from, each in a field of `WIDTH` bytes.
#[derive(Debug)]
pub(crate) struct Words<const WIDTH: usize> {
    fields: Vec<([u8; WIDTH], usize)>,
}

impl<const WIDTH: usize> Words<WIDTH> {
    /// Creates the list; the words are ASCII and at most `WIDTH` long.
    pub(crate) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let field = |word: &str| {
            let mut field = [b' '; WIDTH];
            field[..word.len()].copy_from_slice(word.as_bytes());
            (field, word.len())
        };
        Self { fields: words.into_iter().map(field).collect() }
    }

    /// Returns the column of the words with these numbers.
    pub(crate) fn column(
        &self,
        numbers: impl ExactSizeIterator<Item = usize>,
        buffers: &mut Buffers,
    ) -> StringArray {
        let mut texts = TextColumn::with_room(numbers.len(), WIDTH, buffers);
        for number in numbers {
            let (field, length) = &self.fields[number];
            texts.push(field, *length);
        }
        texts.finish()
    }
}

/// The case of hexadecimal digits above 9.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hex {
    Upper,
    Lower,
}

impl Hex {
    /// Returns the 32 digits of a 128-bit number.
    #[inline(always)]
    pub(crate) fn digits(self, high: u64, low: u64) -> [u8; 32] {
        let beyond_nine = match self {
            Self::Upper => b'A' - b'0' - 10,
            Self::Lower => b'a' - b'0' - 10,
        };
        let digit = |four_bits: u8| b'0' + four_bits + u8::from(four_bits > 9) * beyond_nine;
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = digit(byte >> 4);
            pair[1] = digit(byte & 15);
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hex_is_what_the_library_writes(high: u64, low: u64) {
            let (upper, lower) = (format!("{high:016X}{low:016X}"), format!("{high:016x}{low:016x}"));
            prop_assert_eq!(&Hex::Upper.digits(high, low)[..], upper.as_bytes());
            prop_assert_eq!(&Hex::Lower.digits(high, low)[..], lower.as_bytes());
        }
    }

    #[test]
    fn words_come_back_as_they_are() {
        let words = Words::<8>::new(["", "a", "modal", "purchase"]);
        let column = words.column([3usize, 0, 1, 1, 2].into_iter(), &mut Buffers::default());
        let read: Vec<&str> = column.iter().flatten().collect();
        assert_eq!(read, ["purchase", "", "a", "a", "modal"]);
        assert_eq!(words.column([].into_iter(), &mut Buffers::default()).len(), 0);
    }
}
