//! The sides of a session, and the types of its records.

use gannet_base::Dir;

/// Record types (RFC 8446 section 5.1, RFC 6520).
pub(super) mod content {
    pub(in crate::ssl) const CHANGE_CIPHER_SPEC: u16 = 20;
    pub(in crate::ssl) const ALERT: u16 = 21;
    pub(in crate::ssl) const HANDSHAKE: u16 = 22;
    pub(in crate::ssl) const APPLICATION_DATA: u16 = 23;
    pub(in crate::ssl) const HEARTBEAT: u16 = 24;
}

/// Which side speaks, once roles are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

impl Role {
    /// Of the sender `from`, whose connection may run the wrong way round.
    pub(super) fn of(from: Dir, flipped: bool) -> Self {
        if (from == Dir::Orig) != flipped { Self::Client } else { Self::Server }
    }
}
