//! Rounding of floats, and magnitudes.

use penstock_memory::{ColumnBuf, Values};

use crate::conversion::{Rounding, any_wanted};

/// Rounds floats with operations that every processor has in vector form.
macro_rules! float {
    ($name:ident, $type:ident, $whole:expr) => {
        fn $name(values: &[$type], rounding: Rounding, out: &mut Vec<$type>) {
            /// From here on all floats are whole, so that adding this number drops the fraction of smaller ones.
            const WHOLE: $type = $whole;
            /// Returns the nearest whole number, with the sign of the value where that is zero.
            #[inline(always)]
            fn nearest(value: $type) -> $type {
                ((value.abs() + WHOLE) - WHOLE).copysign(value)
            }
            #[inline(always)]
            fn small(value: $type, rounded: $type) -> $type {
                if value.abs() < WHOLE { rounded } else { value }
            }
            match rounding {
                Rounding::Floor => out.extend(values.iter().map(|&value| {
                    let near = nearest(value);
                    small(value, near - if near > value { 1.0 } else { 0.0 })
                })),
                // Above -1.0 the sum is a zero that has lost its sign.
                Rounding::Ceil => out.extend(values.iter().map(|&value| {
                    let near = nearest(value);
                    small(value, (near + if near < value { 1.0 } else { 0.0 }).copysign(value))
                })),
                Rounding::Truncate => out.extend(values.iter().map(|&value| {
                    let (near, size) = (nearest(value).abs(), value.abs());
                    small(value, (near - if near > size { 1.0 } else { 0.0 }).copysign(value))
                })),
                Rounding::Nearest => out.extend(values.iter().map(|&value| {
                    let (near, size) = (nearest(value).abs(), value.abs());
                    let below = near - if near > size { 1.0 } else { 0.0 };
                    small(value, (below + if size - below >= 0.5 { 1.0 } else { 0.0 }).copysign(value))
                })),
            }
        }
    };
}
float!(round_f32, f32, 8_388_608.0);
float!(round_f64, f64, 4_503_599_627_370_496.0);

/// Rounds floats to whole numbers.
pub(crate) fn round_float(values: Values<'_>, rounding: Rounding, out: &mut ColumnBuf) {
    match values {
        Values::F32(values) => round_f32(values, rounding, out.refill()),
        Values::F64(values) => round_f64(values, rounding, out.refill()),
        _ => unreachable!("the compiler leaves whole numbers as they are"),
    }
}

/// Computes magnitudes. The smallest integer of a type has none.
pub(crate) fn abs(values: Values<'_>, wanted: Option<&[u8]>, out: &mut ColumnBuf) -> bool {
    macro_rules! whole {
        ($type:ident, $values:expr) => {{
            // The smallest integer stays negative, so one sign bit tells whether there is one.
            let mut signs = 0;
            out.refill::<$type>().extend($values.iter().map(|value| {
                let size = value.wrapping_abs();
                signs |= size;
                size
            }));
            signs < 0 && any_wanted($values, wanted, |value| value == $type::MIN)
        }};
    }
    match values {
        Values::I8(values) => whole!(i8, values),
        Values::I16(values) => whole!(i16, values),
        Values::I32(values) => whole!(i32, values),
        Values::I64(values) => whole!(i64, values),
        Values::I128(values) => whole!(i128, values),
        Values::F32(values) => {
            out.refill::<f32>().extend(values.iter().map(|value| value.abs()));
            false
        }
        Values::F64(values) => {
            out.refill::<f64>().extend(values.iter().map(|value| value.abs()));
            false
        }
        _ => unreachable!("the compiler leaves unsigned numbers as they are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: f64) {
        let narrow = value as f32;
        for (rounding, wide, short) in [
            (Rounding::Floor, value.floor(), narrow.floor()),
            (Rounding::Ceil, value.ceil(), narrow.ceil()),
            (Rounding::Truncate, value.trunc(), narrow.trunc()),
            (Rounding::Nearest, value.round(), narrow.round()),
        ] {
            let (mut doubles, mut floats) = (Vec::new(), Vec::new());
            round_f64(&[value], rounding, &mut doubles);
            round_f32(&[narrow], rounding, &mut floats);
            let same = |given: f64, wanted: f64| {
                given.to_bits() == wanted.to_bits() || given.is_nan() && wanted.is_nan()
            };
            assert!(same(doubles[0], wide), "{rounding:?} of {value:?}: {:?}", doubles[0]);
            assert!(same(floats[0].into(), short.into()), "{rounding:?} of {narrow:?}: {:?}", floats[0]);
        }
    }

    #[test]
    fn rounds_at_the_edges() {
        for value in [
            0.0,
            0.25,
            0.5,
            0.499_999_999_999_999_94,
            0.75,
            0.999,
            1.5,
            2.5,
            8_388_607.5,
            8_388_608.5,
            1e15,
            1e300,
        ] {
            check(value);
            check(-value);
        }
        for bits in [4_503_599_627_370_495.5_f64, 4_503_599_627_370_496.0, 4_503_599_627_370_497.0] {
            check(bits);
            check(-bits);
        }
        check(f64::INFINITY);
        check(f64::NEG_INFINITY);
        check(f64::NAN);
    }

    proptest! {
        #[test]
        fn only_the_least_integer_has_no_magnitude(
            values in prop::collection::vec((prop_oneof![4 => any::<i64>(), 1 => Just(i64::MIN)], any::<bool>()), 0..70),
            all in any::<bool>(),
        ) {
            let (numbers, wanted): (Vec<i64>, Vec<bool>) = values.into_iter().unzip();
            let mask: Vec<u8> = wanted.iter().map(|&wanted| u8::from(wanted)).collect();
            let mut out = ColumnBuf::new(penstock_memory::Physical::I64);
            let failed = abs(Values::I64(&numbers), (!all).then_some(&mask), &mut out);
            let counts = |row: usize| all || wanted[row];
            prop_assert_eq!(failed, (0..numbers.len()).any(|row| counts(row) && numbers[row] == i64::MIN));
            let sizes: Vec<i64> = numbers.iter().map(|number| number.wrapping_abs()).collect();
            prop_assert_eq!(out.as_column().fixed::<i64>(), sizes);
        }

        #[test]
        fn rounds_as_the_standard_library_does(value in prop_oneof![any::<f64>(), -1e6..1e6_f64, -2.0..2.0_f64]) {
            check(value);
        }
    }
}
