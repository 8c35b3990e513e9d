//! A column of texts under construction.

use arrow_buffer::Buffer;
use penstock_memory::view::{INLINE_BYTES, make_view};
use penstock_memory::{ColumnBuf, Payload};

/// Bytes after which a new payload begins: offsets have 32 bits.
const PAYLOAD_BYTES: usize = 1 << 30;
/// Longest text: Arrow counts its bytes with 31 bits.
const MAX_BYTES: usize = i32::MAX as usize;

/// Writes texts one after the other.
pub(crate) struct TextWriter<'a> {
    views: &'a mut Vec<u128>,
    payloads: &'a mut Vec<Payload>,
    bytes: Vec<u8>,
    most_payload_bytes: usize,
}

impl<'a> TextWriter<'a> {
    /// Starts to refill `out`.
    pub(crate) fn new(out: &'a mut ColumnBuf) -> Self {
        let (views, payloads) = out.refill_views();
        Self { views, payloads, bytes: Vec::new(), most_payload_bytes: PAYLOAD_BYTES }
    }

    /// Adds a text; adds an empty one and returns true when it is too long for a column.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> bool {
        if text.len() <= INLINE_BYTES {
            self.views.push(make_view(text, 0, 0));
            return false;
        }
        if text.len() > MAX_BYTES {
            self.views.push(0);
            return true;
        }
        if self.bytes.len() > self.most_payload_bytes {
            self.seal();
        }
        self.views.push(make_view(text, self.payloads.len() as u32, self.bytes.len() as u32));
        self.bytes.extend_from_slice(text);
        false
    }

    /// Adds a text that fits in its view.
    #[inline]
    pub(crate) fn push_view(&mut self, view: u128) {
        self.views.push(view);
    }

    fn seal(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.payloads.push(Buffer::from_vec(bytes).into());
    }

    /// Completes the column.
    pub(crate) fn finish(mut self) {
        if !self.bytes.is_empty() {
            self.seal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::Physical;
    use penstock_memory::view::with_bytes;

    #[test]
    fn texts_go_on_in_a_new_payload() {
        let mut column = ColumnBuf::new(Physical::View);
        let mut texts = TextWriter::new(&mut column);
        texts.most_payload_bytes = 20;
        let written: Vec<String> = (0..9).map(|number| format!("{}", 10_u64.pow(2 * number))).collect();
        for text in &written {
            assert!(!texts.push(text.as_bytes()));
        }
        texts.finish();
        let (views, payloads) = column.as_column().views();
        assert!(payloads.iter().count() > 1);
        for (view, text) in views.iter().zip(&written) {
            with_bytes(*view, payloads, |bytes| assert_eq!(bytes, text.as_bytes()));
        }
    }
}
