//! The hash of key groups: fixed for good, so that state, files and other engines agree on it.
//!
//! It is specified here so that it can be implemented elsewhere. All arithmetic is on unsigned 64-bit words and wraps
//! around.
//!
//! **Finalizer** (of SplitMix64): `mix(x) = { x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27;
//! x *= 0x94D049BB133111EB; x ^= x >> 31 }`.
//!
//! **Value**: each value has a normal form, and values of one normal form have one hash, whatever their column type.
//! `word(tag, x) = mix(x + tag)`, where a tag is the product of 0x9E3779B97F4A7C15 and a small number:
//!
//! | kind | number | normal form | hash |
//! |---|---|---|---|
//! | null | 1 | | `word(tag, 0)` |
//! | integer below 2^63 | 0 | the value as two's complement | `word(0, x)`, thus `mix(x)` |
//! | integer from 2^63 on | 2 | the value | `word(tag, x)` |
//! | boolean | 3 | 0 or 1 | `word(tag, x)` |
//! | float | 4 | the bits of the 64-bit float; -0.0 as 0.0, every NaN as 0x7FF8000000000000 | `word(tag, x)` |
//! | timestamp, date | 5 | nanoseconds since the epoch | `wide(tag, x)` |
//! | duration | 6 | nanoseconds | `wide(tag, x)` |
//! | time of day | 7 | nanoseconds since midnight | `wide(tag, x)` |
//! | decimal | 8 | value and digits after the point, without trailing zeros; zero has no digits | `wide(tag + digits, x)` |
//! | string | 9 | its UTF-8 bytes | `bytes(tag, x)` |
//! | binary | 10 | its bytes | `bytes(tag, x)` |
//!
//! `wide(tag, x) = mix(word(tag, low) ^ high)` for the two 64-bit halves of the 128-bit two's complement. The digits of
//! a decimal may be negative; they are added as two's complement. A date counts as its midnight. The zone of a
//! timestamp does not count.
//!
//! `bytes(tag, x)`: `h = word(tag, length)`; then for each 8 bytes, little endian, the last ones padded with zeros: `h
//! = mix(h ^ w)`. An empty value is `word(tag, 0)`.
//!
//! **Key**: columns in order, `h = 0` at first, and `h = h * 0x9E3779B97F4A7C15 + hash` for each. So a key of one
//! column has the hash of its value, and a key of no column has the hash 0.
//!
//! **Group**: the upper 8 bits of the hash.

use crate::KeyGroup;

/// A hash.
pub type Hash = u64;

/// The hash of a key without columns.
pub const START: Hash = 0;

/// The hash of null.
pub const NULL: Hash = word(tag(1), 0);

const fn tag(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

const fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

const fn word(tag: u64, x: u64) -> Hash {
    mix(x.wrapping_add(tag))
}

#[inline]
fn wide(tag: u64, x: i128) -> Hash {
    mix(word(tag, x as u64) ^ (x >> 64) as u64)
}

fn bytes(tag: u64, value: &[u8]) -> Hash {
    let mut hash = word(tag, value.len() as u64);
    let (words, rest) = value.as_chunks::<8>();
    for chunk in words {
        hash = mix(hash ^ u64::from_le_bytes(*chunk));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(last));
    }
    hash
}

/// Hashes an integer of any width below 2^63.
#[inline(always)]
pub fn integer(value: i64) -> Hash {
    mix(value.cast_unsigned())
}

/// Hashes an unsigned integer: below 2^63 like the same signed one.
#[inline(always)]
pub fn unsigned(value: u64) -> Hash {
    word(if value >> 63 == 0 { 0 } else { tag(2) }, value)
}

/// Hashes a bool.
#[inline]
pub fn boolean(value: bool) -> Hash {
    word(tag(3), value.into())
}

/// Hashes a float; one of 32 bits is widened.
#[inline]
pub fn float(value: f64) -> Hash {
    // Adding 0.0 makes -0.0 positive.
    word(tag(4), if value.is_nan() { 0x7FF8_0000_0000_0000 } else { (value + 0.0).to_bits() })
}

/// Hashes a point in time, in nanoseconds since the epoch.
#[inline]
pub fn timestamp(nanoseconds: i128) -> Hash {
    wide(tag(5), nanoseconds)
}

/// Hashes a duration in nanoseconds.
#[inline]
pub fn duration(nanoseconds: i128) -> Hash {
    wide(tag(6), nanoseconds)
}

/// Hashes a time of day in nanoseconds.
#[inline]
pub fn time(nanoseconds: i128) -> Hash {
    wide(tag(7), nanoseconds)
}

/// Hashes the decimal `value / 10^scale`.
pub fn decimal(mut value: i128, scale: i8) -> Hash {
    let mut digits = i64::from(scale);
    if value == 0 {
        digits = 0;
    }
    while value != 0 && value % 10 == 0 {
        value /= 10;
        digits -= 1;
    }
    wide(tag(8).wrapping_add(digits.cast_unsigned()), value)
}

/// Hashes a string.
pub fn text(value: &[u8]) -> Hash {
    bytes(tag(9), value)
}

/// Hashes a binary value.
pub fn binary(value: &[u8]) -> Hash {
    bytes(tag(10), value)
}

/// Combines the hash of a key's columns so far with that of the next.
#[inline(always)]
pub fn combine(so_far: Hash, next: Hash) -> Hash {
    so_far.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(next)
}

/// Returns the group of a key.
#[inline(always)]
pub fn group(hash: Hash) -> KeyGroup {
    (hash >> 56) as KeyGroup
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never to be changed: state in files depends on these hashes.
    #[test]
    fn vectors() {
        let two = combine(combine(START, integer(7)), text(b"seven"));
        let known: [(&str, Hash, Hash); 22] = [
            ("NULL", NULL, 0xE220_A839_7B1D_CDAF),
            ("integer(0)", integer(0), 0x0000_0000_0000_0000),
            ("integer(1)", integer(1), 0x5692_161D_100B_05E5),
            ("integer(-1)", integer(-1), 0xB4D0_55FC_F2CB_BD7B),
            ("integer(1_000_000_007)", integer(1_000_000_007), 0xE853_B7F5_CEBF_4630),
            ("integer(i64::MIN)", integer(i64::MIN), 0x25C2_6EA5_79CE_A98A),
            ("unsigned(u64::MAX)", unsigned(u64::MAX), 0xE99F_F867_DBF6_82C9),
            ("boolean(false)", boolean(false), 0x06C4_5D18_8009_454F),
            ("boolean(true)", boolean(true), 0xF893_A2EE_FB32_555E),
            ("float(0.0)", float(0.0), 0xF88B_B8A8_724C_81EC),
            ("float(-1.5)", float(-1.5), 0xE03E_A941_075C_D2E3),
            ("float(f64::NAN)", float(f64::NAN), 0xE683_2BC2_95E4_EB84),
            (
                "timestamp(1_700_000_000_000_000_000)",
                timestamp(1_700_000_000_000_000_000),
                0x6F45_4FEA_854A_E5C3,
            ),
            ("timestamp(-(1 << 70))", timestamp(-(1 << 70)), 0xCFB4_0FAA_C483_F01F),
            ("duration(1)", duration(1), 0xDB09_AF55_6D2A_B023),
            ("time(86_399_999_999_999)", time(86_399_999_999_999), 0x3D08_BE46_30E6_97D0),
            ("decimal(12_300, 4)", decimal(12_300, 4), 0x5D8F_E79F_2B12_B553),
            ("decimal(-5, -2)", decimal(-5, -2), 0xCCAF_CE8F_3306_99DB),
            ("text(b\"\")", text(b""), 0x3EE5_7890_41C9_8AC3),
            ("text(b\"penstock and more\")", text(b"penstock and more"), 0xD4D8_1258_E00F_BD15),
            ("binary(b\"..\")", binary(b"\xFF\x00"), 0x407E_F571_5308_5689),
            ("two", two, 0x0FCA_AA66_01D1_A2AD),
        ];
        for (what, hash, expected) in known {
            assert_eq!(hash, expected, "{what}: 0x{hash:016X}");
        }
        assert_eq!(group(0xAB00_0000_0000_0000), 0xAB);
    }

    #[test]
    fn equal_values_have_equal_hashes() {
        assert_eq!(integer(5), unsigned(5));
        assert_ne!(integer(-1), unsigned(u64::MAX));
        assert_eq!(float(-0.0), float(0.0));
        assert_eq!(float(f64::NAN), float(-f64::NAN));
        assert_eq!(float(f64::from(0.5_f32)), float(0.5));
        assert_eq!(decimal(1_250, 3), decimal(125, 2));
        assert_eq!(decimal(0, 5), decimal(0, -3));
        assert_eq!(decimal(7, -2), decimal(700, 0));
        assert_ne!(text(b"a"), binary(b"a"));
        assert_ne!(text(b"a"), text(b"a\0"));
        assert_ne!(timestamp(1), duration(1));
        assert_eq!(combine(START, NULL), NULL);
    }

    /// Consecutive keys spread evenly enough that no group has twice its share.
    #[test]
    fn groups_are_even() {
        let mut counts = [0; 256];
        (0..256_000).for_each(|key| counts[usize::from(group(integer(key)))] += 1);
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
