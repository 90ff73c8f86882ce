//! What rules are.

use std::rc::Rc;

/// A signature.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: Box<str>,
    /// The file that it is in.
    pub file: Rc<str>,
    /// The line on which it begins.
    pub line: u32,
    /// `active`
    pub active: bool,
    /// Whether the engine detects the same by itself: the rule matches only for others that require it, and does
    /// nothing.
    pub native: bool,
    pub(super) tests: Vec<Test>,
    /// Its patterns.
    pub patterns: Vec<RulePattern>,
    pub(super) requires: Vec<Requires>,
    pub(super) conditions: Vec<Condition>,
    /// What it does, in order.
    pub actions: Vec<Action>,
}

/// A pattern of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePattern {
    /// What it is matched against.
    pub kind: Kind,
    /// Its text.
    pub text: Box<[u8]>,
    /// The last byte that a match may end with, counted from one.
    pub depth: u64,
    /// The line in the file of the rule.
    pub line: u32,
}

/// What patterns are matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `file-magic`: the first bytes of files.
    FileMagic,
    /// `payload`: the data of each side.
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

/// What a test of a header looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The header of IPv4.
    Ip,
    /// The header of IPv6.
    Ip6,
    /// What follows the IP headers; the protocol only distinguishes tests.
    Transport(Transport),
    /// The protocol behind the IP headers.
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
    /// Whether it holds for one of the values; a difference must hold for all.
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

/// A number to compare with, and the bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masked {
    pub(super) value: u32,
    pub(super) mask: u32,
}

/// Addresses that begin alike; those of IPv4 as mapped ones.
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
    /// 1, 2 or 4.
    pub(super) size: u32,
    pub(super) comparison: Comparison,
    pub(super) values: Vec<Masked>,
    pub(super) prefixes: Vec<Prefix>,
}

/// Another rule that has to match before.
#[derive(Debug, Clone)]
pub(super) struct Requires {
    pub(super) id: Box<str>,
    /// On the other side.
    pub(super) reverse: bool,
    /// It must not.
    pub(super) negated: bool,
}

/// What else has to hold.
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
    /// `payload-size`: how the first data that is not empty compares.
    PayloadSize(PayloadSize),
    /// `eval`: a condition by the number that [`Names::condition`] gave it.
    Eval(u32),
}

/// How the size of the first data compares.
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

/// Bits of states of connections.
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

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Raises an event, by the number that [`Names::event`] gave it.
    Event {
        /// The event.
        event: u32,
        /// The message.
        message: Option<Box<[u8]>>,
    },
    /// Starts an analyzer, perhaps inside of another.
    Enable {
        /// The analyzer.
        analyzer: Box<str>,
        /// The one inside.
        inner: Option<Box<str>>,
    },
    /// Removes one.
    Disable {
        /// The analyzer.
        analyzer: Box<str>,
    },
    /// The type of a file.
    Mime {
        /// The type.
        mime: Box<[u8]>,
        /// How strongly.
        strength: i64,
    },
}

/// A global of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Global {
    /// None has this name.
    Missing,
    /// Values: one, or the elements of a set.
    Values(Vec<Value>),
    /// A string.
    Text(Vec<u8>),
}

/// A value to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number, a port, an enumerator.
    Number(u32),
    /// A subnet, of IPv4 as a mapped one.
    Subnet {
        /// Its address.
        base: [u8; 16],
        /// The length of its prefix, of 128 bits.
        bits: u8,
    },
    /// Anything else.
    Other,
}

/// Identifiers of scripts, and where errors go.
pub trait Names {
    /// The value of a global.
    fn global(&mut self, name: &str) -> Global;
    /// Whether an event has this name.
    fn is_event(&mut self, name: &str) -> bool;
    /// The number of an event that a rule raises, with a message or without; reports its own errors.
    fn event(&mut self, name: Option<&str>, message: bool) -> Option<u32>;
    /// The number of a condition.
    ///
    /// # Errors
    /// What is wrong with it.
    fn condition(&mut self, name: &str) -> Result<u32, Vec<&'static str>>;
    /// The full tag of an analyzer; reports where there is none.
    fn analyzer(&mut self, name: &str) -> Option<Box<str>>;
    /// An error.
    fn error(&mut self, text: &str);
    /// A warning.
    fn warning(&mut self, text: &str);
}
