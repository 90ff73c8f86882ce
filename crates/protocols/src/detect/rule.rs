//! Types of the detection rules.

use super::sides::Sides;

/// A detection rule for TCP connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpRule {
    pub(super) precondition: Precondition,
    /// Whether the data so far matches.
    pub(super) test: Test,
}

pub(super) type Test = fn(Sides<'_>) -> bool;

/// A set of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class([u64; 4]);

impl Class {
    /// All bytes: the side must have sent data.
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

    /// The set of the given bytes.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        let (mut set, mut i) = ([0; 4], 0);
        while i < bytes.len() {
            set[(bytes[i] >> 6) as usize] |= 1 << (bytes[i] & 63);
            i += 1;
        }
        Self(set)
    }

    /// The bytes from `first` to `last`, inclusive.
    pub(crate) const fn range(first: u8, last: u8) -> Self {
        let (mut set, mut byte) = ([0; 4], first);
        while byte <= last {
            set[(byte >> 6) as usize] |= 1 << (byte & 63);
            byte += 1;
        }
        Self(set)
    }

    /// The union of both sets.
    pub(crate) const fn or(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a | e, b | f, c | g, d | h])
    }

    pub(super) const fn contains(self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 != 0
    }
}

/// A cheap condition without which a rule cannot match.
#[derive(Clone, Copy, Debug)]
pub(super) enum Precondition {
    /// No precondition.
    Any,
    /// The originator sent the IRC commands USER and NICK.
    LogIn,
    /// The originator sent the IRC command SERVER.
    Server,
    /// Classes of the first byte of the originator and of the responder.
    Sides(Class, Class),
    /// Class of the first byte of the originator.
    Orig(Class),
    /// Class of the first byte of the responder.
    Resp(Class),
    /// Class of the first byte of at least one side.
    Either(Class),
    /// Class of the fifth byte of at least one side.
    EitherFifth(Class),
}

impl TcpRule {
    /// A test without a precondition.
    pub(crate) const fn any(test: Test) -> Self {
        Self { precondition: Precondition::Any, test }
    }

    /// A test of connections with the IRC commands USER and NICK, as [`Seen`](super::sides::Seen) finds them.
    pub(crate) const fn log_in(test: Test) -> Self {
        Self { precondition: Precondition::LogIn, test }
    }

    /// A test of connections with the IRC command SERVER.
    pub(crate) const fn server(test: Test) -> Self {
        Self { precondition: Precondition::Server, test }
    }

    /// A test that requires a first byte of the originator and one of the responder.
    pub(crate) const fn sides(orig: Class, resp: Class, test: Test) -> Self {
        Self { precondition: Precondition::Sides(orig, resp), test }
    }

    /// A test that requires a first byte of the originator.
    pub(crate) const fn orig(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Orig(class), test }
    }

    /// A test that requires a first byte of the responder.
    pub(crate) const fn resp(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Resp(class), test }
    }

    /// A test that requires a first byte of at least one side.
    pub(crate) const fn either(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::Either(class), test }
    }

    /// A test that requires a fifth byte of at least one side.
    pub(crate) const fn either_fifth(class: Class, test: Test) -> Self {
        Self { precondition: Precondition::EitherFifth(class), test }
    }
}

/// A detection rule for UDP datagrams of either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpRule {
    /// Whether a datagram matches.
    pub(super) test: fn(&[u8]) -> bool,
    /// Test that an earlier datagram of the other side must have passed.
    pub(super) request: Option<fn(&[u8]) -> bool>,
}

impl UdpRule {
    /// A test of any datagram.
    pub(crate) const fn any(test: fn(&[u8]) -> bool) -> Self {
        Self { test, request: None }
    }

    /// A test that counts only if the other side sent a datagram before that `request` accepts.
    pub(crate) const fn response(test: fn(&[u8]) -> bool, request: fn(&[u8]) -> bool) -> Self {
        Self { test, request: Some(request) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::text::is_space;

    #[test]
    fn classes_are_those_of_the_standard_library() {
        for byte in 0..=u8::MAX {
            assert_eq!(Class::SPACE.contains(byte), is_space(byte));
            assert_eq!(Class::UPPER.contains(byte), byte.is_ascii_uppercase());
            assert_eq!(Class::ALPHANUMERIC.contains(byte), byte.is_ascii_alphanumeric());
            assert_eq!(Class::PUNCTUATION.contains(byte), byte.is_ascii_punctuation());
            assert!(Class::ANY.contains(byte));
        }
    }
}
