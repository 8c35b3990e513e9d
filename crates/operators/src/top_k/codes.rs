//! The first criterion for ranking rows: one integer per row, larger for a row that ranks before (TOP_K-3).

use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf, Physical, Values};

/// A value as an integer of the same order. Wider values may share one with their neighbours.
trait Code: Copy {
    fn code(self) -> u64;
}

const SIGN: u64 = 1 << 63;

macro_rules! code {
    ($($type:ty, $value:ident => $code:expr);*) => {$(
        impl Code for $type {
            #[inline(always)]
            fn code(self) -> u64 {
                let $value = self;
                $code
            }
        }
    )*};
}
code!(u8, value => value.into(); u16, value => value.into(); u32, value => value.into(); u64, value => value;
i8, value => i64::from(value).code(); i16, value => i64::from(value).code(); i32, value => i64::from(value).code();
i64, value => value.cast_unsigned() ^ SIGN;
i128, value => (value.clamp(i64::MIN.into(), i64::MAX.into()) as i64).code();
f32, value => f64::from(value).code();
f64, value => {
    // One NaN, which has the largest bits of all, and one zero.
    let bits = if value.is_nan() { f64::NAN.abs().to_bits() } else { (value + 0.0).to_bits() };
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
});

/// Returns the first eight bytes; a shorter value is padded with zeros.
fn code_of_bytes(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    first[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(first)
}

/// The codes of the rows of a run.
pub(super) struct Codes {
    codes: Vec<u64>,
    /// The bytes that decide between equal codes, where the column is kept for its order alone.
    order: ColumnBuf,
    order_len: usize,
}

impl Default for Codes {
    fn default() -> Self {
        Self { codes: Vec::new(), order: ColumnBuf::new(Physical::View), order_len: 0 }
    }
}

impl Codes {
    /// Computes the codes of a column, and the bytes that decide between equal ones if they are needed.
    pub(super) fn fill(&mut self, by: Column<'_>, largest: bool, order: bool) {
        fill(by, largest, &mut self.codes);
        if !order {
            return;
        }
        match by.values {
            Values::View(..) => {}
            Values::I128(values) => {
                let (views, payloads) = self.order.refill_views();
                let bytes: Vec<u8> =
                    values.iter().flat_map(|value| (value ^ i128::MIN).to_be_bytes()).collect();
                views.extend(bytes.chunks(16).zip(0_u32..).map(|(value, row)| make_view(value, 0, row * 16)));
                payloads.push(arrow_buffer::Buffer::from_vec(bytes).into());
                self.order_len = 0;
            }
            // Codes are sufficient.
            _ if self.order_len >= by.values.len() => {}
            _ => {
                self.order.refill_views().0.resize(by.values.len(), 0);
                self.order_len = by.values.len();
            }
        }
    }

    /// Returns the codes.
    pub(super) fn codes(&self) -> &[u64] {
        &self.codes
    }

    /// Returns the bytes that decide between equal codes of that column.
    pub(super) fn order<'a>(&'a self, by: Column<'a>) -> Column<'a> {
        if by.values.physical() == Physical::View { by } else { self.order.as_column() }
    }
}

/// Fills `codes` with those of a column.
pub(super) fn fill(by: Column<'_>, largest: bool, codes: &mut Vec<u64>) {
    codes.clear();
    penstock_memory::for_each_kind!(Values, by.values,
    values => codes.extend(values.iter().map(|value| value.code())),
    (views, payloads) => codes.extend(views.iter().enumerate().map(|(row, &view)| {
        if by.is_valid(row) { with_bytes(view, payloads, code_of_bytes) } else { 0 }
    })));
    if !largest {
        codes.iter_mut().for_each(|code| *code = !*code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_order_of_the_values() {
        let floats = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        assert!(floats.windows(2).all(|pair| pair[0].code() < pair[1].code()));
        assert_eq!((-0.0_f64).code(), 0.0_f64.code());
        assert_eq!((-f64::NAN).code(), f64::NAN.code());
        assert!([i64::MIN, -1, 0, 1, i64::MAX].windows(2).all(|pair| pair[0].code() < pair[1].code()));
        assert!([i128::MIN, -1, 0, i128::MAX].windows(2).all(|pair| pair[0].code() < pair[1].code()));
        let texts: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"b", b"longer than eight"];
        assert!(texts.windows(2).all(|pair| code_of_bytes(pair[0]) <= code_of_bytes(pair[1])));
    }
}
