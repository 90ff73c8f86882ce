//! Integers of any size, and their text forms (ITU-T X.690 §8.3).

use std::borrow::Cow;

use super::{DerError, Result};

/// An integer of any size, as its shortest two's complement octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<'a> {
    octets: &'a [u8],
}

impl<'a> Integer<'a> {
    /// An integer with these contents octets.
    ///
    /// # Errors
    ///
    /// If there are none, or the first octet is redundant.
    pub fn new(octets: &'a [u8]) -> Result<Self> {
        let padded = match octets {
            [] => return Err(DerError::BadValue),
            [0x00, next, ..] => next & 0x80 == 0,
            // 0xff before zeros only is the one value with such a start that has no shorter form.
            [0xff, rest @ ..] => {
                rest.first().is_some_and(|next| next & 0x80 != 0)
                    && rest.iter().any(|&octet| octet != 0)
            }
            _ => false,
        };
        if padded { Err(DerError::BadValue) } else { Ok(Self { octets }) }
    }

    /// Whether the value is negative.
    pub fn is_negative(&self) -> bool {
        self.octets.first().is_some_and(|first| first & 0x80 != 0)
    }

    /// Octets of the absolute value, most significant octet first; one zero octet for zero.
    pub fn magnitude(&self) -> Cow<'a, [u8]> {
        if !self.is_negative() {
            let skip = usize::from(self.octets.len() > 1 && self.octets[0] == 0);
            return Cow::Borrowed(&self.octets[skip..]);
        }
        // The absolute value of a negative number in two's complement: the octets inverted, plus one.
        let mut magnitude: Vec<u8> = self.octets.iter().map(|octet| !octet).collect();
        for octet in magnitude.iter_mut().rev() {
            let (sum, carry) = octet.overflowing_add(1);
            *octet = sum;
            if !carry {
                break;
            }
        }
        if magnitude.len() > 1 && magnitude[0] == 0 {
            magnitude.remove(0);
        }
        Cow::Owned(magnitude)
    }

    /// The value, if it fits into 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        if self.octets.len() > 8 {
            return None;
        }
        let start = if self.is_negative() { -1 } else { 0 };
        Some(self.octets.iter().fold(start, |value: i64, &octet| (value << 8) | i64::from(octet)))
    }
}

/// Appends upper-case hexadecimal digits of `octets`.
pub fn push_hex(octets: &[u8], into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    into.reserve(octets.len() * 2);
    for &octet in octets {
        into.push(char::from(DIGITS[usize::from(octet >> 4)]));
        into.push(char::from(DIGITS[usize::from(octet & 15)]));
    }
}

/// Appends upper-case hexadecimal digits in the form of serial numbers: with a backslash and a line
/// end after every 35 octets.
pub fn push_folded_hex(octets: &[u8], into: &mut String) {
    for (n, line) in octets.chunks(35).enumerate() {
        if n != 0 {
            into.push_str("\\\n");
        }
        push_hex(line, into);
    }
}

/// An integer in the form of serial numbers: a minus sign if negative, then folded hexadecimal
/// digits.
pub fn integer_hex(value: Integer<'_>) -> String {
    let mut text = String::new();
    if value.is_negative() {
        text.push('-');
    }
    push_folded_hex(&value.magnitude(), &mut text);
    text
}

/// Maximum number of octets of an unsigned integer that [`decimal`] converts: the cost grows with
/// the square.
pub const MAX_DECIMAL_OCTETS: usize = 2048;

/// An unsigned integer, most significant octet first, in decimal; `None` above
/// [`MAX_DECIMAL_OCTETS`].
pub fn decimal(octets: &[u8]) -> Option<String> {
    use std::fmt::Write as _;
    const LIMB: u64 = 1_000_000_000;
    if octets.len() > MAX_DECIMAL_OCTETS {
        return None;
    }
    let mut limbs: Vec<u64> = vec![0];
    // Four octets at a time, which needs a quarter of the iterations.
    let (head, rest) = octets.split_at(octets.len() % 4);
    for word in std::iter::once(head).chain(rest.chunks_exact(4)) {
        let mut carry = word.iter().fold(0, |word, octet| word << 8 | u64::from(*octet));
        for limb in &mut limbs {
            let value = (*limb << (8 * word.len())) + carry;
            *limb = value % LIMB;
            carry = value / LIMB;
        }
        while carry != 0 {
            limbs.push(carry % LIMB);
            carry /= LIMB;
        }
    }
    let mut text = String::new();
    for (n, limb) in limbs.iter().rev().enumerate() {
        // Writing to a string cannot fail.
        let _ = if n == 0 { write!(text, "{limb}") } else { write!(text, "{limb:09}") };
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_of_both_signs() {
        let hex = |octets: &[u8]| Integer::new(octets).map(integer_hex);
        assert_eq!(hex(&[0x00]).as_deref(), Ok("00"));
        assert_eq!(hex(&[0x00, 0x80]).as_deref(), Ok("80"));
        assert_eq!(hex(&[0xff]).as_deref(), Ok("-01"));
        assert_eq!(hex(&[0xff, 0x00]).as_deref(), Ok("-0100"));
        assert_eq!(hex(&[0x80, 0x00]).as_deref(), Ok("-8000"));
        assert_eq!(hex(&[0x00, 0x7f]), Err(DerError::BadValue));
        assert_eq!(hex(&[0xff, 0x80]), Err(DerError::BadValue));
        assert_eq!(hex(&[]), Err(DerError::BadValue));
    }

    #[test]
    fn long_serials_are_folded() {
        let text = integer_hex(Integer::new(&[0x11; 36]).unwrap());
        assert_eq!(text, format!("{}\\\n11", "11".repeat(35)));
    }

    #[test]
    fn decimal_of_many_octets() {
        assert_eq!(decimal(&[]).as_deref(), Some("0"));
        assert_eq!(decimal(&[1, 0, 1]).as_deref(), Some("65537"));
        assert_eq!(
            decimal(&[0xff; 16]).as_deref(),
            Some("340282366920938463463374607431768211455")
        );
        assert_eq!(decimal(&[0xff; 2049]), None);
    }

    proptest! {
        #[test]
        fn small_integers_come_back(value in any::<i64>()) {
            let octets = value.to_be_bytes();
            let sign = if value < 0 { 0xff } else { 0 };
            let skip = (0..7).take_while(|&n| octets[n] == sign && octets[n + 1] & 0x80 == sign & 0x80).count();
            prop_assert_eq!(Integer::new(&octets[skip..]).unwrap().to_i64(), Some(value));
        }
    }
}
