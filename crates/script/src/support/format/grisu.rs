//! The digits of floating-point numbers in Zeek's JSON: Grisu2 (Florian Loitsch, "Printing floating-point
//! numbers quickly and accurately with integers", 2010) with 64-bit significands. Parsing the digits returns
//! the number. For about one number in a thousand they are not the shortest such digits. The crate `dtoa`
//! implements the same algorithm but rounds some numbers differently: 1381967756.18987 is 1381967756.1898701
//! here and in Zeek.

use std::sync::LazyLock;

/// A number `f` * 2^`e`.
#[derive(Clone, Copy)]
struct Scaled {
    f: u64,
    e: i32,
}

/// Explicit bits of the significand of a double.
const FRACTION: u32 = 52;
const HIDDEN: u64 = 1 << FRACTION;
/// The smallest power of ten in the table, and the difference between adjacent ones.
const FIRST_POWER: i32 = -348;
const STEP: i32 = 8;
const POWERS: usize = 87;

static TABLE: LazyLock<[Scaled; POWERS]> =
    LazyLock::new(|| std::array::from_fn(|at| power_of_ten(FIRST_POWER + STEP * at as i32)));

const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut at = 1;
    while at < 20 {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// The digits of a positive, finite number, and the position of the decimal point: 0 is before the first digit.
pub(super) fn digits(value: f64) -> (Vec<u8>, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & (HIDDEN - 1), (bits >> FRACTION) as i32 & 0x7ff);
    let exact = if exponent == 0 {
        Scaled { f: fraction, e: 1 - 1_075 }
    } else {
        Scaled { f: fraction | HIDDEN, e: exponent - 1_075 }
    };
    // The midpoints to the adjacent numbers.
    let upper = Scaled { f: (exact.f << 1) + 1, e: exact.e - 1 }.normalize();
    let lower = if exact.f == HIDDEN {
        Scaled { f: (exact.f << 2) - 1, e: exact.e - 2 }
    } else {
        Scaled { f: (exact.f << 1) - 1, e: exact.e - 1 }
    };
    let lower = Scaled { f: lower.f << (lower.e - upper.e), e: upper.e };
    let at = cached(upper.e);
    let power = TABLE[at];
    let middle = exact.normalize().times(power);
    let (upper, lower) = (upper.times(power), lower.times(power));
    let upper = Scaled { f: upper.f - 1, ..upper };
    let delta = upper.f - (lower.f + 1);
    let (digits, exponent) = generate(middle, upper, delta);
    let exponent = exponent - (FIRST_POWER + STEP * at as i32);
    let point = digits.len() as i32 + exponent;
    (digits, point)
}

/// The table index of the power of ten that scales a number with this exponent to the range of [`generate`].
fn cached(e: i32) -> usize {
    let power = f64::from(-61 - e) * std::f64::consts::LOG10_2 + 347.0;
    (power.ceil() as usize >> 3) + 1
}

/// Digits of a number between `upper` - `delta` and `upper`, close to `middle`, and their exponent.
fn generate(middle: Scaled, upper: Scaled, mut delta: u64) -> (Vec<u8>, i32) {
    let shift = -upper.e as u32;
    let one = 1_u64 << shift;
    let distance = upper.f - middle.f;
    let mut whole = upper.f >> shift;
    let mut part = upper.f & (one - 1);
    let mut digits = Vec::with_capacity(17);
    let mut left = TENS.iter().skip(1).take(8).filter(|ten| whole >= **ten).count() + 1;
    while left > 0 {
        let digit = whole / TENS[left - 1];
        whole %= TENS[left - 1];
        if digit > 0 || !digits.is_empty() {
            digits.push(b'0' + digit as u8);
        }
        left -= 1;
        let rest = (whole << shift) + part;
        if rest <= delta {
            round(&mut digits, delta, rest, TENS[left] << shift, distance);
            return (digits, left as i32);
        }
    }
    let mut behind = 0;
    loop {
        part = part.wrapping_mul(10);
        delta = delta.wrapping_mul(10);
        let digit = part >> shift;
        if digit > 0 || !digits.is_empty() {
            digits.push(b'0' + digit as u8);
        }
        part &= one - 1;
        behind += 1;
        if part < delta {
            let ten = TENS.get(behind).copied().unwrap_or(0);
            round(&mut digits, delta, part, one, distance.wrapping_mul(ten));
            return (digits, -(behind as i32));
        }
    }
}

/// Decrements the last digit while that is closer to the number.
fn round(digits: &mut [u8], delta: u64, mut rest: u64, unit: u64, distance: u64) {
    let Some(last) = digits.last_mut() else { return };
    while rest < distance
        && delta - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        *last -= 1;
        rest += unit;
    }
}

impl Scaled {
    fn normalize(self) -> Self {
        let shift = self.f.leading_zeros();
        Scaled { f: self.f << shift, e: self.e - shift as i32 }
    }

    fn times(self, other: Self) -> Self {
        let product = u128::from(self.f) * u128::from(other.f);
        let f = (product >> 64) as u64 + (product as u64 >> 63);
        Scaled { f, e: self.e + other.e + 64 }
    }
}

/// A power of ten, rounded to 64 bits.
fn power_of_ten(power: i32) -> Scaled {
    let ten = Large::power_of_ten(power.unsigned_abs());
    let bits = ten.bits() as i32;
    if power >= 0 {
        let (f, is_half) = ten.top();
        return Scaled { f: f + u64::from(is_half), e: bits - 64 };
    }
    // 2^(bits + 63) / 10^n has 64 bits, and its highest bit is one.
    let mut rest = Large::power_of_two(bits as u32 - 1);
    let mut f = 0_u64;
    for _ in 0..64 {
        rest.double();
        f <<= 1;
        if rest.subtract(&ten) {
            f |= 1;
        }
    }
    rest.double();
    Scaled { f: f + u64::from(rest.subtract(&ten)), e: -(bits + 63) }
}

/// A big integer, least significant word first.
struct Large(Vec<u32>);

impl Large {
    fn power_of_ten(power: u32) -> Self {
        let mut all = Large(vec![1]);
        for _ in 0..power {
            let mut carry = 0;
            for part in &mut all.0 {
                let product = u64::from(*part) * 10 + carry;
                *part = product as u32;
                carry = product >> 32;
            }
            if carry > 0 {
                all.0.push(carry as u32);
            }
        }
        all
    }

    fn power_of_two(power: u32) -> Self {
        let mut all = vec![0; power as usize / 32];
        all.push(1 << (power % 32));
        Large(all)
    }

    fn bits(&self) -> u32 {
        let zeros = self.0.last().map_or(0, |part| part.leading_zeros());
        self.0.len() as u32 * 32 - zeros
    }

    fn bit(&self, at: u32) -> bool {
        self.0.get(at as usize / 32).is_some_and(|part| part >> (at % 32) & 1 == 1)
    }

    /// The 64 highest bits, and the next bit.
    fn top(&self) -> (u64, bool) {
        let bits = self.bits();
        let mut f = 0;
        for at in 0..64 {
            f = f << 1 | u64::from(bits > at && self.bit(bits - 1 - at));
        }
        (f, bits > 64 && self.bit(bits - 65))
    }

    fn double(&mut self) {
        let mut carry = 0;
        for part in &mut self.0 {
            let next = *part >> 31;
            *part = *part << 1 | carry;
            carry = next;
        }
        if carry > 0 {
            self.0.push(carry);
        }
    }

    /// Subtracts a number unless it is larger; returns whether it was subtracted.
    fn subtract(&mut self, other: &Self) -> bool {
        let parts = self.0.len().max(other.0.len());
        let at = |all: &Self, index: usize| all.0.get(index).copied().unwrap_or(0);
        let mut borrow = false;
        let mut less = Vec::with_capacity(parts);
        for index in 0..parts {
            let (part, first) = at(self, index).overflowing_sub(at(other, index));
            let (part, second) = part.overflowing_sub(u32::from(borrow));
            borrow = first || second;
            less.push(part);
        }
        if !borrow {
            self.0 = less;
        }
        !borrow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_have_64_bits() {
        let power = |n| {
            let Scaled { f, e } = power_of_ten(n);
            (f, e)
        };
        assert_eq!(power(-348), (0xfa8f_d5a0_081c_0288, -1_220));
        assert_eq!(power(-4), (0xd1b7_1758_e219_652c, -77));
        assert_eq!(power(4), (0x9c40_0000_0000_0000, -50));
        assert_eq!(power(340), (0xaf87_023b_9bf0_ee6b, 1_066));
    }

    #[test]
    fn digits_give_the_number_back() {
        let mut bits = 0x4192_7d4a_0000_0000_u64;
        for n in 0..200_000_u64 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n | 1);
            let value = f64::from_bits(bits >> 1);
            if !value.is_finite() || value == 0.0 {
                continue;
            }
            let (digits, point) = digits(value);
            let text = format!("0.{}e{point}", String::from_utf8(digits).unwrap());
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
        for value in [f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX, 1.0, 0.1, 1e23] {
            let (digits, point) = digits(value);
            let text = format!("0.{}e{point}", String::from_utf8(digits).unwrap());
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
        }
    }

    #[test]
    fn digits_are_those_of_zeek() {
        let text = |value| String::from_utf8(digits(value).0).unwrap();
        // Not the shortest digits.
        assert_eq!(text(1_381_967_756.189_87), "13819677561898701");
        assert_eq!(text(1_464_385_879.067_644), "14643858790676439");
        assert_eq!(text(1_495_805_043.485_165), "14958050434851651");
        assert_eq!(text(1_495_805_006.484_27), "149580500648427");
    }
}
