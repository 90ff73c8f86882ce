//! Types of rules.

use std::rc::Rc;

/// A signature.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: Box<str>,
    /// The file that contains it.
    pub file: Rc<str>,
    /// The line of its first token.
    pub line: u32,
    /// `active`
    pub active: bool,
    /// Whether the engine implements the detection natively. The rule then matches only for rules that require it,
    /// and its actions are not executed.
    pub native: bool,
    pub(super) tests: Vec<Test>,
    /// Its patterns.
    pub patterns: Vec<RulePattern>,
    pub(super) requires: Vec<Requires>,
    pub(super) conditions: Vec<Condition>,
    /// Its actions, in order.
    pub actions: Vec<Action>,
}

/// A pattern of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePattern {
    /// The data that it is matched against.
    pub kind: Kind,
    /// Its text.
    pub text: Box<[u8]>,
    /// Maximum end of a match, in bytes from the beginning of the data.
    pub depth: u64,
    /// The line in the file of the rule.
    pub line: u32,
}

/// Kinds of data that patterns are matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `file-magic`: the first bytes of files.
    FileMagic,
    /// `payload`: the data of either side.
    Payload,
    /// `http-request`: the target of a request.
    HttpRequest,
    /// `http-request-body`
    HttpRequestBody,
    /// `http-request-header`: a header, with its name.
    HttpRequestHeader,
    /// `http-reply-body`
    HttpReplyBody,
    /// `http-reply-header`
    HttpReplyHeader,
    /// `ftp`: a command and its argument.
    Ftp,
    /// `finger`: a request.
    Finger,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::FileMagic,
        Self::Payload,
        Self::HttpRequest,
        Self::HttpRequestBody,
        Self::HttpRequestHeader,
        Self::HttpReplyBody,
        Self::HttpReplyHeader,
        Self::Ftp,
        Self::Finger,
    ];
}

/// The part of a packet that a header test reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The header of IPv4.
    Ip,
    /// The header of IPv6.
    Ip6,
    /// The transport header. The protocol only distinguishes tests.
    Transport(Transport),
    /// The protocol of the IP payload.
    Protocol,
    /// The source address.
    Source,
    /// The destination address.
    Destination,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Icmp,
    Icmp6,
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    AtMost,
    AtLeast,
    Less,
    Greater,
    Equal,
    Different,
}

impl Comparison {
    /// Whether the comparison holds for any of the values; `Different` must hold for all.
    pub(super) fn holds<T>(
        self,
        values: &[T],
        mut compare: impl FnMut(&T) -> std::cmp::Ordering,
    ) -> bool {
        use std::cmp::Ordering;
        let mut any = |is: fn(Ordering) -> bool| values.iter().any(|value| is(compare(value)));
        match self {
            Self::AtMost => any(Ordering::is_le),
            Self::AtLeast => any(Ordering::is_ge),
            Self::Less => any(Ordering::is_lt),
            Self::Greater => any(Ordering::is_gt),
            Self::Equal => any(Ordering::is_eq),
            Self::Different => !any(Ordering::is_eq),
        }
    }
}

/// A number to compare with, and the mask of compared bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masked {
    pub(super) value: u32,
    pub(super) mask: u32,
}

/// An address prefix; IPv4 as a mapped address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) base: [u8; 16],
    pub(super) bits: u8,
}

/// A test of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) field: Field,
    pub(super) offset: u32,
    /// Size of the compared field, in bytes: 1, 2 or 4.
    pub(super) size: u32,
    pub(super) comparison: Comparison,
    pub(super) values: Vec<Masked>,
    pub(super) prefixes: Vec<Prefix>,
}

/// Another rule that must have matched before.
#[derive(Debug, Clone)]
pub(super) struct Requires {
    pub(super) id: Box<str>,
    /// The other rule must match on the other side.
    pub(super) reverse: bool,
    /// The other rule must not match.
    pub(super) negated: bool,
}

/// Another condition of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// `tcp-state`: bits of [`states`].
    Tcp(u8),
    /// `udp-state`
    Udp(u8),
    /// `same-ip`
    SameIp,
    /// `ip-options`: never holds, as in Zeek.
    IpOptions,
    /// `payload-size`: compares the size of the first data that is not empty.
    PayloadSize(PayloadSize),
    /// `eval`: the number that [`Names::condition`] assigned to the function.
    Eval(u32),
}

/// A comparison with the size of the first data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadSize {
    pub(super) comparison: Comparison,
    pub(super) size: u32,
}

impl PayloadSize {
    pub(super) fn holds(self, size: i64) -> bool {
        let size = u32::try_from(size).unwrap_or(0);
        size > 0 && self.comparison.holds(&[self.size], |other| size.cmp(other))
    }
}

/// Bits of connection states.
pub mod states {
    /// Both sides are established.
    pub const ESTABLISHED: u8 = 1;
    /// The side is the originator.
    pub const ORIGINATOR: u8 = 2;
    /// The side is the responder.
    pub const RESPONDER: u8 = 4;
    /// Any state.
    pub const STATELESS: u8 = 8;
}

/// An action of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Raises an event: the number that [`Names::event`] assigned to it.
    Event {
        /// The event.
        event: u32,
        /// The message.
        message: Option<Box<[u8]>>,
    },
    /// Attaches an analyzer, optionally with a child analyzer.
    Enable {
        /// The analyzer.
        analyzer: Box<str>,
        /// The child analyzer.
        inner: Option<Box<str>>,
    },
    /// Removes an analyzer.
    Disable {
        /// The analyzer.
        analyzer: Box<str>,
    },
    /// Reports a MIME type for a file.
    Mime {
        /// The MIME type.
        mime: Box<[u8]>,
        /// Its strength.
        strength: i64,
    },
}

/// A global of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Global {
    /// No global has this name.
    Missing,
    /// Values: one, or the elements of a set.
    Values(Vec<Value>),
    /// A string.
    Text(Vec<u8>),
}

/// A value to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number, a port, or the number of an enumerator.
    Number(u32),
    /// A subnet; IPv4 as a mapped address.
    Subnet {
        /// Its address.
        base: [u8; 16],
        /// Prefix length, 0 to 128.
        bits: u8,
    },
    /// A value of another type.
    Other,
}

/// Resolves identifiers of scripts and receives errors.
pub trait Names {
    /// The value of a global.
    fn global(&mut self, name: &str) -> Global;
    /// Whether an event has this name.
    fn is_event(&mut self, name: &str) -> bool;
    /// The number of an event that a rule raises, with or without a message. The implementation reports errors.
    fn event(&mut self, name: Option<&str>, message: bool) -> Option<u32>;
    /// The number of a condition function.
    ///
    /// # Errors
    /// Error messages about the function.
    fn condition(&mut self, name: &str) -> Result<u32, Vec<&'static str>>;
    /// The full tag of an analyzer. The implementation reports an error if it does not exist.
    fn analyzer(&mut self, name: &str) -> Option<Box<str>>;
    /// Reports an error.
    fn error(&mut self, text: &str);
    /// Reports a warning.
    fn warning(&mut self, text: &str);
}
