//! What a rule of detection is.

use super::sides::Sides;

/// One way in which a connection over TCP may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpRule {
    pub(super) lead: Lead,
    /// Whether the data so far matches.
    pub(super) test: Test,
}

pub(super) type Test = fn(Sides<'_>) -> bool;

/// Bytes that a test accepts.
pub(super) type Class = fn(u8) -> bool;

/// A precondition of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lead {
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
        Self { lead: Lead::Any, test }
    }

    /// A test of connections with a user's and a nick's name, as [`Seen`](super::sides::Seen) finds them.
    pub(crate) const fn log_in(test: Test) -> Self {
        Self { lead: Lead::LogIn, test }
    }

    /// A test of connections with a server's name.
    pub(crate) const fn server(test: Test) -> Self {
        Self { lead: Lead::Server, test }
    }

    /// A test that depends on the first byte of the originator, and that of the responder.
    pub(crate) const fn sides(orig: Class, resp: Class, test: Test) -> Self {
        Self { lead: Lead::Sides(orig, resp), test }
    }

    /// A test that depends on the first byte of the originator.
    pub(crate) const fn orig(class: Class, test: Test) -> Self {
        Self { lead: Lead::Orig(class), test }
    }

    /// A test that depends on the first byte of the responder.
    pub(crate) const fn resp(class: Class, test: Test) -> Self {
        Self { lead: Lead::Resp(class), test }
    }

    /// A test that depends on the first byte of one side or the other.
    pub(crate) const fn either(class: Class, test: Test) -> Self {
        Self { lead: Lead::Either(class), test }
    }

    /// A test that depends on the fifth byte of one side or the other.
    pub(crate) const fn either_fifth(class: Class, test: Test) -> Self {
        Self { lead: Lead::EitherFifth(class), test }
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

/// For a side of which some byte is needed, whichever it is.
pub(crate) fn some(_: u8) -> bool {
    true
}
