//! The transport of a connection: a byte stream, or QUIC.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use crate::byte_stream::ByteStream;
#[cfg(feature = "quic")]
use crate::quic;

/// The transport of a connection.
pub(crate) enum TransportLink {
    /// A stream of bytes, with or without TLS.
    ByteStream(ByteStream),
    /// Streams in datagrams.
    #[cfg(feature = "quic")]
    Quic(Box<quic::Session>),
}

impl TransportLink {
    /// Continues the handshake; returns whether queries can be sent.
    pub(crate) fn prepare(&mut self) -> io::Result<bool> {
        match self {
            Self::ByteStream(line) => line.prepare(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.prepare(),
        }
    }

    /// Whether it waits for room to write.
    pub(crate) fn wants_room(&self) -> bool {
        match self {
            Self::ByteStream(line) => line.wants_room(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.wants_room(),
        }
    }

    /// Whether it resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Self::ByteStream(line) => line.is_resumed(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.is_resumed(),
        }
    }

    /// Whether both sides agreed on HTTP/2.
    pub(crate) fn is_h2(&self) -> bool {
        match self {
            Self::ByteStream(line) => line.is_h2(),
            #[cfg(feature = "quic")]
            Self::Quic(_) => false,
        }
    }

    /// Whether the other side has all that it will ever get: of a line, only its kernel can tell.
    pub(crate) fn is_delivered(&mut self) -> bool {
        match self {
            Self::ByteStream(_) => true,
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.is_delivered(),
        }
    }

    /// Ends the sending side; returns whether the other side may still send.
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Self::ByteStream(line) => {
                line.end();
                true
            }
            #[cfg(feature = "quic")]
            Self::Quic(session) => {
                session.end();
                false
            }
        }
    }
}

impl AsFd for TransportLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::ByteStream(line) => line.as_fd(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.as_fd(),
        }
    }
}
