//! What a rule of detection is.

use super::sides::Sides;

/// One way in which a connection over TCP may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpRule {
    pub(super) precondition: Precondition,
    /// Whether the data so far matches.
    pub(super) test: Test,
}

pub(super) type Test = fn(Sides<'_>) -> bool;

/// Bytes that a test accepts, a bit each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class([u64; 4]);

impl Class {
    /// Any byte: for a side of which some byte is needed, whichever it is.
    pub(crate) const ANY: Self = Self([u64::MAX; 4]);
    /// Blank, tab and line ends: white space in the C locale.
    pub(crate) const SPACE: Self = Self::of(b" \t\n\x0b\x0c\r");
    /// ASCII's upper-case letters.
    pub(crate) const UPPER: Self = Self::range(b'A', b'Z');
    /// ASCII's letters and digits.
    pub(crate) const ALPHANUMERIC: Self =
        Self::UPPER.or(Self::range(b'a', b'z')).or(Self::range(b'0', b'9'));
    /// ASCII's printable characters that are neither letters nor digits, nor the blank.
    pub(crate) const PUNCTUATION: Self = Self::range(b'!', b'/')
        .or(Self::range(b':', b'@'))
        .or(Self::range(b'[', b'`'))
        .or(Self::range(b'{', b'~'));

    /// Some bytes.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        let (mut set, mut i) = ([0; 4], 0);
        while i < bytes.len() {
            set[(bytes[i] >> 6) as usize] |= 1 << (bytes[i] & 63);
            i += 1;
        }
        Self(set)
    }

    /// The bytes from one to another.
    pub(crate) const fn range(first: u8, last: u8) -> Self {
        let (mut set, mut byte) = ([0; 4], first);
        while byte <= last {
            set[(byte >> 6) as usize] |= 1 << (byte & 63);
            byte += 1;
        }
        Self(set)
    }

    /// The bytes of both.
    pub(crate) const fn or(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a | e, b | f, c | g, d | h])
    }

    pub(super) const fn has(self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 != 0
    }
}

/// A precondition of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Precondition {
    /// It is worth trying always.
    Any,
    /// A user's and a nick's name.
    LogIn,
    /// A server's name.
    Server,
    /// The first byte of the originator, and that of the responder.
    Sides(Class, Class),
    /// The first byte of the originator.
    Orig(Class),
    /// The first byte of the responder.
    Resp(Class),
    /// The first byte of one side or the other.
    Either(Class),
    /// The fifth byte of one side or the other.
    EitherFifth(Class),
}

impl TcpRule {
    /// A test that is worth trying always.
    pub(crate) const fn any(test: Test) -> Self {
        Self { precondition: Precondition::Any, test }
    }

    /// A test of connections with a user's and a nick's name, as [`Seen`](super::sides::Seen) finds them.
    pub(crate) const fn log_in(test: Test) -> Self {
        Self { precondition: Precondition::LogIn, test }
    }

    /// A test of connections with a server's name.
    pub(crate) const fn server(test: Test) -> Self {
        Self { precondition: Precondition::Server, test }
    }

    /// A test that depends on the first byte of the originator, and that of the responder.
    pub(crate) const fn sides(orig: Class, resp: Class, test: Test) -> Self {
        Self { precondition: Precondition::Sides(orig, resp), test }
    }

    /// A test that depends on the first byte of the originator.
    pub(crate) const fn orig(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Orig(class), test }
    }

    /// A test that depends on the first byte of the responder.
    pub(crate) const fn resp(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Resp(class), test }
    }

    /// A test that depends on the first byte of one side or the other.
    pub(crate) const fn either(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Either(class), test }
    }

    /// A test that depends on the fifth byte of one side or the other.
    pub(crate) const fn either_fifth(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::EitherFifth(class), test }
    }
}

/// One way in which a datagram may begin, from either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpRule {
    /// Whether a datagram matches.
    pub(super) test: fn(&[u8]) -> bool,
    /// What a datagram of the other side has to match before.
    pub(super) asked: Option<fn(&[u8]) -> bool>,
}

impl UdpRule {
    /// A test of any datagram.
    pub(crate) const fn any(test: fn(&[u8]) -> bool) -> Self {
        Self { test, asked: None }
    }

    /// A test that counts only where the other side sent a certain datagram before.
    pub(crate) const fn answer(test: fn(&[u8]) -> bool, asked: fn(&[u8]) -> bool) -> Self {
        Self { test, asked: Some(asked) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::text::is_space;

    #[test]
    fn classes_are_those_of_the_standard_library() {
        for byte in 0..=u8::MAX {
            assert_eq!(Class::SPACE.has(byte), is_space(byte));
            assert_eq!(Class::UPPER.has(byte), byte.is_ascii_uppercase());
            assert_eq!(Class::ALPHANUMERIC.has(byte), byte.is_ascii_alphanumeric());
            assert_eq!(Class::PUNCTUATION.has(byte), byte.is_ascii_punctuation());
            assert!(Class::ANY.has(byte));
        }
    }
}
