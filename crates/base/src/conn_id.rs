use crate::Addr;

/// The endpoints of a connection: the columns `id.orig_h`, `id.orig_p`, `id.resp_h` and
/// `id.resp_p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId {
    /// Originator's address.
    pub orig_h: Addr,
    /// Responder's address.
    pub resp_h: Addr,
    /// Originator's port; for ICMP, the type.
    pub orig_p: u16,
    /// Responder's port; for ICMP, the type of the reply, or the code.
    pub resp_p: u16,
}

impl ConnId {
    /// The same connection with the roles exchanged.
    pub fn flipped(self) -> Self {
        Self { orig_h: self.resp_h, resp_h: self.orig_h, orig_p: self.resp_p, resp_p: self.orig_p }
    }
}

/// The side of a connection that sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dir {
    /// The originator, usually the client.
    Orig,
    /// The responder, usually the server.
    Resp,
}

impl Dir {
    /// The other side.
    #[inline]
    pub fn other(self) -> Self {
        match self {
            Self::Orig => Self::Resp,
            Self::Resp => Self::Orig,
        }
    }

    /// Whether this is the originator.
    #[inline]
    pub fn is_orig(self) -> bool {
        self == Self::Orig
    }

    /// 0 for the originator, 1 for the responder: an index into arrays of both sides.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}
