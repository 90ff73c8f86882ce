use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::Hasher128;
use siphasher::sip128::SipHasher24;

/// The name of a connection (`C…`), a file (`F…`) or a tunnel without a connection: a letter and
/// 96 bits in base 62, as Zeek prints them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid {
    kind: u8,
    high: u32,
    low: u64,
}

/// Longest text of a [`Uid`]: one letter, six digits for 32 bits, eleven for 64.
pub const UID_TEXT_MAX: usize = 18;

const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

impl Uid {
    /// Writes the text into `out` and returns its length.
    pub fn write(self, out: &mut [u8; UID_TEXT_MAX]) -> usize {
        let mut n = 0;
        out[n] = self.kind;
        n += 1;
        for mut word in [u64::from(self.high), self.low] {
            loop {
                out[n] = DIGITS[(word % 62) as usize];
                n += 1;
                word /= 62;
                if word == 0 {
                    break;
                }
            }
        }
        n
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; UID_TEXT_MAX];
        let n = self.write(&mut text);
        f.write_str(std::str::from_utf8(&text[..n]).unwrap_or_default())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Makes [`Uid`]s: a keyed function of what is named, so that they are the same on every run and
/// for every number of threads, and nobody without the seed can predict or collide them.
#[derive(Clone, Copy, Debug)]
pub struct UidSource {
    seed: u64,
}

impl UidSource {
    /// With the seed of the run (an option; 0 by default).
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The uid of the connection that packet number `packet` started; `ordinal` counts within
    /// the packet (tunnels start several).
    pub fn connection(&self, packet: u64, ordinal: u32) -> Uid {
        let mut h = SipHasher24::new_with_keys(self.seed, 0x0043);
        h.write_u64(packet);
        h.write_u32(ordinal);
        Self::finish(b'C', &h)
    }

    /// The uid of the file that the connection or transfer `owner` carries as its `ordinal`th.
    pub fn file(&self, owner: Uid, ordinal: u64) -> Uid {
        let mut h = SipHasher24::new_with_keys(self.seed, 0x0046);
        h.write_u8(owner.kind);
        h.write_u32(owner.high);
        h.write_u64(owner.low);
        h.write_u64(ordinal);
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
    fn names_depend_on_seed_and_place() {
        let s = UidSource::new(0);
        let a = s.connection(1, 0);
        assert_eq!(a, UidSource::new(0).connection(1, 0));
        assert_ne!(a, s.connection(1, 1));
        assert_ne!(a, s.connection(2, 0));
        assert_ne!(a, UidSource::new(1).connection(1, 0));
        assert_ne!(s.file(a, 0), s.file(a, 1));
    }
}
