use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::hash::Hash;
use std::hash::Hasher;

use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

/// The uid of a connection (`C…`), a file (`F…`) or a tunnel without a connection: a letter and
/// 96 bits in base 62, as Zeek prints them.
///
/// It has 13 bytes, because each live connection stores one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(Rust, packed)]
pub struct Uid {
    kind: u8,
    high: u32,
    low: u64,
}

/// Maximum length of the text of a [`Uid`]: one letter, six digits for 32 bits, eleven for 64.
pub const UID_TEXT_MAX: usize = 18;

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Every number below 62² as two digits, the less significant first.
static PAIRS: [[u8; 2]; 62 * 62] = {
    let mut all = [[0; 2]; 62 * 62];
    let mut i = 0;
    while i < all.len() {
        all[i] = [DIGITS[i % 62], DIGITS[i / 62]];
        i += 1;
    }
    all
};

/// A 64-bit number is divided by this, so that both parts can be converted in parallel.
const SPLIT: u64 = 62_u64.pow(6);

impl Uid {
    /// The text and its length, at most [`UID_TEXT_MAX`].
    // Most rows have a uid; inlining avoids a copy of the text through memory.
    #[inline(always)]
    pub fn text(self) -> ([u8; 24], usize) {
        let mut out = [0; 24];
        out[0] = self.kind;
        let first = six_digits(u64::from(self.high));
        out[1..9].copy_from_slice(&first.to_le_bytes());
        let n = 1 + significant(first);
        let (low, high) = (six_digits(self.low % SPLIT), six_digits(self.low / SPLIT));
        out[n..n + 8].copy_from_slice(&low.to_le_bytes());
        if self.low < SPLIT {
            return (out, n + significant(low));
        }
        out[n + 6..n + 14].copy_from_slice(&high.to_le_bytes());
        (out, n + 6 + significant(high))
    }
}

/// Six digits of a number below 62^6 as text, the least significant in the lowest byte.
#[inline]
fn six_digits(v: u64) -> u64 {
    let pair = |v: u64| u64::from(u16::from_le_bytes(PAIRS[(v % 3_844) as usize]));
    pair(v) | pair(v / 3_844) << 16 | pair(v / (3_844 * 3_844)) << 32
}

/// The number of digits without leading zeros; at least one.
#[inline]
fn significant(digits: u64) -> usize {
    let rest = digits ^ 0x3030_3030_3030;
    (8 - rest.leading_zeros() as usize / 8).max(1)
}

impl Uid {
    /// 64 of its bits; they define an order that does not depend on time.
    pub fn bits(self) -> u64 {
        self.low
    }
}

/// A uid is a keyed hash already, so its bits are used as the hash.
impl Hash for Uid {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low);
    }
}

/// A hash map by uid, which uses the bits of a uid as its hash.
pub type UidMap<V> = HashMap<Uid, V, BuildHasherDefault<UidHasher>>;

/// The hasher of [`UidMap`].
#[derive(Clone, Copy, Debug, Default)]
pub struct UidHasher(u64);

impl Hasher for UidHasher {
    #[inline]
    fn write_u64(&mut self, bits: u64) {
        self.0 ^= bits;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, n) = self.text();
        f.write_str(std::str::from_utf8(&text[..n]).unwrap_or_default())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Creates [`Uid`]s with a keyed hash of the named object. They are the same on every run and for every
/// number of threads; a sender who does not know the seed can neither predict them nor cause collisions.
#[derive(Clone, Copy, Debug)]
pub struct UidSource {
    seed: u64,
}

impl UidSource {
    /// A source with the seed of the run, an option that is 0 by default.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The uid of the connection that packet number `packet` started; `ordinal` counts the connections that the packet
    /// starts, which are several in tunnels.
    pub fn connection(&self, packet: u64, ordinal: u32) -> Uid {
        let mut h = SipHasher24::new_with_keys(self.seed, 0x0043);
        h.write_u64(packet);
        h.write_u32(ordinal);
        Self::finish(b'C', &h)
    }

    /// The uid of the `ordinal`th file that the connection or transfer `owner` carries.
    pub fn file(&self, owner: Uid, ordinal: u64) -> Uid {
        let mut h = SipHasher24::new_with_keys(self.seed, 0x0046);
        h.write_u8(owner.kind);
        h.write_u32(owner.high);
        h.write_u64(owner.low);
        h.write_u64(ordinal);
        Self::finish(b'F', &h)
    }

    /// The uid of a file that is identified by its name, such as a path on a server, and not by the
    /// connection: the same for each transfer of that file.
    pub fn named_file(&self, name: &[u8]) -> Uid {
        let mut h = SipHasher24::new_with_keys(self.seed, 0x4e46);
        h.write(name);
        Self::finish(b'F', &h)
    }

    fn finish(kind: u8, h: &SipHasher24) -> Uid {
        let h = h.finish128();
        Uid { kind, high: (h.h1 >> 32) as u32, low: h.h2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_zeeks_base_62() {
        // Least significant digit first, no padding.
        let u = Uid { kind: b'C', high: 62, low: 61 };
        assert_eq!(u.to_string(), "C01Z");
        assert_eq!(Uid { kind: b'F', high: 0, low: 0 }.to_string(), "F00");
        let longest = Uid { kind: b'C', high: u32::MAX, low: u64::MAX };
        assert_eq!(longest.to_string().len(), UID_TEXT_MAX);
    }

    #[test]
    fn text_has_the_digits_of_both_numbers() {
        let mut words = vec![0, u64::MAX];
        for power in 1..11 {
            words.extend([62_u64.pow(power) - 1, 62_u64.pow(power), 62_u64.pow(power) + 1]);
        }
        for low in words {
            for high in [0, 61, 62, u32::MAX] {
                let digits = |mut v: u64| {
                    let mut text = String::new();
                    while v > 0 || text.is_empty() {
                        text.push(char::from(DIGITS[(v % 62) as usize]));
                        v /= 62;
                    }
                    text
                };
                let text = format!("C{}{}", digits(u64::from(high)), digits(low));
                assert_eq!(Uid { kind: b'C', high, low }.to_string(), text);
            }
        }
    }

    #[test]
    fn uids_depend_on_seed_and_object() {
        let s = UidSource::new(0);
        let a = s.connection(1, 0);
        assert_eq!(a, UidSource::new(0).connection(1, 0));
        assert_ne!(a, s.connection(1, 1));
        assert_ne!(a, s.connection(2, 0));
        assert_ne!(a, UidSource::new(1).connection(1, 0));
        assert_ne!(s.file(a, 0), s.file(a, 1));
        assert_eq!(s.named_file(b"a"), s.named_file(b"a"));
        assert_ne!(s.named_file(b"a"), s.named_file(b"b"));
        assert_ne!(s.named_file(b"a"), UidSource::new(1).named_file(b"a"));
    }
}
