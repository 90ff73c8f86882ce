//! Checks whether a point is on its curve: `y² = x³ + ax + b`, modulo a prime.

/// Number of 64-bit words of the widest prime.
const WORDS: usize = 9;

/// A number below the prime, lowest word first.
type Number = [u64; WORDS];

/// A curve over a prime field.
struct Curve {
    name: &'static str,
    /// Whether `a` is -3; 0 otherwise.
    minus_three: bool,
    /// Lowest word first, like all numbers in this module.
    prime: &'static [u64],
    b: &'static [u64],
}

/// The common curves (SEC 2).
#[rustfmt::skip]
const CURVES: [Curve; 4] = [
    Curve {
        name: "prime256v1",
        minus_three: true,
        prime: &[0xffffffffffffffff, 0x00000000ffffffff, 0x0000000000000000, 0xffffffff00000001],
        b: &[0x3bce3c3e27d2604b, 0x651d06b0cc53b0f6, 0xb3ebbd55769886bc, 0x5ac635d8aa3a93e7],
    },
    Curve {
        name: "secp256k1",
        minus_three: false,
        prime: &[0xfffffffefffffc2f, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff],
        b: &[0x0000000000000007, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000],
    },
    Curve {
        name: "secp384r1",
        minus_three: true,
        prime: &[0x00000000ffffffff, 0xffffffff00000000, 0xfffffffffffffffe, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff],
        b: &[0x2a85c8edd3ec2aef, 0xc656398d8a2ed19d, 0x0314088f5013875a, 0x181d9c6efe814112, 0x988e056be3f82d19, 0xb3312fa7e23ee7e4],
    },
    Curve {
        name: "secp521r1",
        minus_three: true,
        prime: &[0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff, 0x00000000000001ff],
        b: &[0xef451fd46b503f00, 0x3573df883d2c34f1, 0x1652c0bd3bb1bf07, 0x56193951ec7e937b, 0xb8b489918ef109e1, 0xa2da725b99b315f3, 0x929a21a0b68540ee, 0x953eb9618e1c9a1f, 0x0000000000000051],
    },
];

/// Whether a point is off the named curve, which makes its key invalid. Points of other curves are
/// not checked.
pub(super) fn is_off(name: &str, point: &[u8]) -> bool {
    let Some(curve) = CURVES.iter().find(|c| c.name == name) else { return false };
    match point.split_first() {
        Some((0x02 | 0x03, x)) => curve.number(x).is_none_or(|x| !curve.has_at(&x)),
        Some((form @ (0x04 | 0x06 | 0x07), both)) => {
            let (x, y) = both.split_at(both.len() / 2);
            let (Some(x), Some(y)) = (curve.number(x), curve.number(y)) else { return true };
            // Two forms contain the parity of y as well.
            *form != 0x04 && u64::from(form & 1) != y[0] & 1 || !curve.has(&x, &y)
        }
        _ => false,
    }
}

impl Curve {
    /// A coordinate; `None` if it is not below the prime.
    fn number(&self, octets: &[u8]) -> Option<Number> {
        let mut number = [0; WORDS];
        for (word, octets) in number.iter_mut().zip(octets.rchunks(8)) {
            *word = octets.iter().fold(0, |w, o| w << 8 | u64::from(*o));
        }
        (!self.is_reached(&number, 0)).then_some(number)
    }

    /// Compares both sides of the equation, divided by `R²`, which is the form that
    /// [`multiply`](Self::multiply) returns.
    fn has(&self, x: &Number, y: &Number) -> bool {
        self.multiply(&self.multiply(y, y), &number(&[1])) == self.right(x)
    }

    /// `x³ + ax + b`, divided by `R²`.
    fn right(&self, x: &Number) -> Number {
        let one = number(&[1]);
        let twice = |n: &Number| self.multiply(&self.multiply(n, &one), &one);
        let cube = self.multiply(&self.multiply(x, x), x);
        let right = self.add(&cube, &twice(&number(self.b)));
        if self.minus_three {
            let less = twice(&self.add(x, &self.add(x, x)));
            self.add(&right, &self.negative(&less))
        } else {
            right
        }
    }

    /// Whether a y exists for an x: the right side is a square. Multiplication by a power of two
    /// that is itself a square does not affect this.
    fn has_at(&self, x: &Number) -> bool {
        let right = self.right(x);
        // In Montgomery form, 1 is `R`.
        let one = (0..64 * self.prime.len()).fold(number(&[1]), |n, _| self.add(&n, &n));
        // Euler's criterion: raises to the power of half the prime, rounded down.
        let bits = (1..64 * self.prime.len()).rev();
        let power = bits.fold(one, |n, bit| {
            let square = self.multiply(&n, &n);
            if self.prime[bit / 64] >> (bit % 64) & 1 == 0 {
                return square;
            }
            self.multiply(&square, &right)
        });
        power == one || right == number(&[])
    }

    /// The additive inverse of a number.
    fn negative(&self, n: &Number) -> Number {
        let mut out = [0; WORDS];
        let mut borrow = false;
        for ((to, prime), n) in out.iter_mut().zip(self.prime).zip(n) {
            let (less, first) = prime.overflowing_sub(*n);
            let (less, second) = less.overflowing_sub(u64::from(borrow));
            (*to, borrow) = (less, first || second);
        }
        self.reduce(out, 0)
    }

    /// Whether a number, with the carry of its highest word, is not below the prime.
    fn is_reached(&self, number: &Number, carry: u64) -> bool {
        let above = number.iter().skip(self.prime.len()).any(|w| *w != 0);
        let words = number.iter().take(self.prime.len()).rev();
        carry != 0 || above || words.cmp(self.prime.iter().rev()).is_ge()
    }

    /// Reduces a number below twice the prime.
    fn reduce(&self, mut number: Number, carry: u64) -> Number {
        if self.is_reached(&number, carry) {
            let mut borrow = false;
            for (word, prime) in number.iter_mut().zip(self.prime) {
                let (less, first) = word.overflowing_sub(*prime);
                let (less, second) = less.overflowing_sub(u64::from(borrow));
                (*word, borrow) = (less, first || second);
            }
        }
        number
    }

    fn add(&self, a: &Number, b: &Number) -> Number {
        let mut sum = [0; WORDS];
        let mut carry = 0;
        for ((to, a), b) in sum.iter_mut().zip(a).zip(b).take(self.prime.len()) {
            let wide = u128::from(*a) + u128::from(*b) + carry;
            (*to, carry) = (wide as u64, wide >> 64);
        }
        self.reduce(sum, carry as u64)
    }

    /// The Montgomery product `ab / R`, where `R` is the smallest number with more words than the
    /// prime.
    fn multiply(&self, a: &Number, b: &Number) -> Number {
        let inverse = self.inverse();
        let mut product = [0; WORDS];
        let mut top = 0;
        for b in b.iter().take(self.prime.len()) {
            let mut carry = 0;
            for (to, a) in product.iter_mut().zip(a).take(self.prime.len()) {
                let wide = u128::from(*to) + u128::from(*a) * u128::from(*b) + carry;
                (*to, carry) = (wide as u64, wide >> 64);
            }
            let above = u128::from(top) + carry;
            // Adding a multiple of the prime makes the lowest word zero, which is then dropped.
            let factor = u128::from(product[0].wrapping_mul(inverse));
            let mut carry = 0;
            for (to, prime) in product.iter_mut().zip(self.prime) {
                let wide = u128::from(*to) + factor * u128::from(*prime) + carry;
                (*to, carry) = (wide as u64, wide >> 64);
            }
            product[..self.prime.len()].rotate_left(1);
            let above = above + carry;
            product[self.prime.len() - 1] = above as u64;
            top = (above >> 64) as u64;
        }
        self.reduce(product, top)
    }

    /// The factor that turns the lowest word of the prime into -1, modulo 2⁶⁴.
    fn inverse(&self) -> u64 {
        let prime = self.prime.first().copied().unwrap_or(1);
        // Each step doubles the number of correct bits; the first three are correct initially.
        let step = |n: u64, _| n.wrapping_mul(2u64.wrapping_sub(prime.wrapping_mul(n)));
        (0..5).fold(prime, step).wrapping_neg()
    }
}

/// A number with these lowest words.
fn number(words: &[u64]) -> Number {
    let mut number = [0; WORDS];
    number.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point of each curve: the generator of its group.
    const POINTS: [(&str, &[u8]); 4] = [
        (
            "prime256v1",
            b"\x04\x6b\x17\xd1\xf2\xe1\x2c\x42\x47\xf8\xbc\xe6\xe5\x63\xa4\x40\xf2\x77\x03\x7d\
            \x81\x2d\xeb\x33\xa0\xf4\xa1\x39\x45\xd8\x98\xc2\x96\x4f\xe3\x42\xe2\xfe\x1a\x7f\
            \x9b\x8e\xe7\xeb\x4a\x7c\x0f\x9e\x16\x2b\xce\x33\x57\x6b\x31\x5e\xce\xcb\xb6\x40\
            \x68\x37\xbf\x51\xf5",
        ),
        (
            "secp256k1",
            b"\x04\x79\xbe\x66\x7e\xf9\xdc\xbb\xac\x55\xa0\x62\x95\xce\x87\x0b\x07\x02\x9b\xfc\
            \xdb\x2d\xce\x28\xd9\x59\xf2\x81\x5b\x16\xf8\x17\x98\x48\x3a\xda\x77\x26\xa3\xc4\
            \x65\x5d\xa4\xfb\xfc\x0e\x11\x08\xa8\xfd\x17\xb4\x48\xa6\x85\x54\x19\x9c\x47\xd0\
            \x8f\xfb\x10\xd4\xb8",
        ),
        (
            "secp384r1",
            b"\x04\xaa\x87\xca\x22\xbe\x8b\x05\x37\x8e\xb1\xc7\x1e\xf3\x20\xad\x74\x6e\x1d\x3b\
            \x62\x8b\xa7\x9b\x98\x59\xf7\x41\xe0\x82\x54\x2a\x38\x55\x02\xf2\x5d\xbf\x55\x29\
            \x6c\x3a\x54\x5e\x38\x72\x76\x0a\xb7\x36\x17\xde\x4a\x96\x26\x2c\x6f\x5d\x9e\x98\
            \xbf\x92\x92\xdc\x29\xf8\xf4\x1d\xbd\x28\x9a\x14\x7c\xe9\xda\x31\x13\xb5\xf0\xb8\
            \xc0\x0a\x60\xb1\xce\x1d\x7e\x81\x9d\x7a\x43\x1d\x7c\x90\xea\x0e\x5f",
        ),
        (
            "secp521r1",
            b"\x04\x00\xc6\x85\x8e\x06\xb7\x04\x04\xe9\xcd\x9e\x3e\xcb\x66\x23\x95\xb4\x42\x9c\
            \x64\x81\x39\x05\x3f\xb5\x21\xf8\x28\xaf\x60\x6b\x4d\x3d\xba\xa1\x4b\x5e\x77\xef\
            \xe7\x59\x28\xfe\x1d\xc1\x27\xa2\xff\xa8\xde\x33\x48\xb3\xc1\x85\x6a\x42\x9b\xf9\
            \x7e\x7e\x31\xc2\xe5\xbd\x66\x01\x18\x39\x29\x6a\x78\x9a\x3b\xc0\x04\x5c\x8a\x5f\
            \xb4\x2c\x7d\x1b\xd9\x98\xf5\x44\x49\x57\x9b\x44\x68\x17\xaf\xbd\x17\x27\x3e\x66\
            \x2c\x97\xee\x72\x99\x5e\xf4\x26\x40\xc5\x50\xb9\x01\x3f\xad\x07\x61\x35\x3c\x70\
            \x86\xa2\x72\xc2\x40\x88\xbe\x94\x76\x9f\xd1\x66\x50",
        ),
    ];

    #[test]
    fn points_on_and_off() {
        for (name, point) in POINTS {
            assert!(!is_off(name, point), "{name}");
            for at in 1..point.len() {
                let mut other = point.to_vec();
                other[at] ^= 1;
                assert!(is_off(name, &other), "{name} {at}");
            }
            let other = [&[0x04], &vec![0xff; point.len() - 1][..]].concat();
            assert!(is_off(name, &other) && !is_off("secp224r1", &other));
        }
    }

    #[test]
    fn compressed_points() {
        for (name, point) in POINTS {
            let size = point.len() / 2;
            let mut short = point[..=size].to_vec();
            short[0] = 2;
            assert!(!is_off(name, &short), "{name}");
            // About half of all numbers have a y.
            let off = (0..64u8).filter(|n| {
                short[size] = *n;
                is_off(name, &short)
            });
            assert!((16..48).contains(&off.count()), "{name}");
            short[1..].fill(0xff);
            assert!(is_off(name, &short) && !is_off("secp224r1", &short));
        }
    }

    #[test]
    fn hybrid_points_contain_the_parity_of_y() {
        for (name, point) in POINTS {
            let odd = point.last().unwrap() & 1;
            let mut both = point.to_vec();
            both[0] = 6 | odd;
            assert!(!is_off(name, &both), "{name}");
            both[0] ^= 1;
            assert!(is_off(name, &both), "{name}");
        }
    }
}
