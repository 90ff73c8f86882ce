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

/// Side of a session, when the roles are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

impl Role {
    /// The role of the sender `from`, whose connection may have the wrong direction.
    pub(super) fn of_sender(from: Dir, is_flipped: bool) -> Self {
        if (from == Dir::Orig) != is_flipped { Self::Client } else { Self::Server }
    }
}
