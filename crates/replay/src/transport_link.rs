//! The transport of a connection: a byte stream, or QUIC.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use crate::byte_stream::ByteStream;
#[cfg(feature = "quic")]
use crate::quic;

/// The transport of a connection.
pub(crate) enum TransportLink {
    /// A byte stream, with or without TLS.
    ByteStream(ByteStream),
    /// A QUIC connection.
    #[cfg(feature = "quic")]
    Quic(Box<quic::Session>),
}

impl TransportLink {
    /// Continues the handshake; returns whether queries can be sent.
    pub(crate) fn prepare(&mut self) -> io::Result<bool> {
        match self {
            Self::ByteStream(stream) => stream.prepare(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.prepare(),
        }
    }

    /// Whether it waits for its socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::ByteStream(stream) => stream.wants_write(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.wants_write(),
        }
    }

    /// Whether it resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Self::ByteStream(stream) => stream.is_resumed(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.is_resumed(),
        }
    }

    /// Whether both sides agreed on HTTP/2.
    pub(crate) fn is_h2(&self) -> bool {
        match self {
            Self::ByteStream(stream) => stream.is_h2(),
            #[cfg(feature = "quic")]
            Self::Quic(_) => false,
        }
    }

    /// Whether the server has received everything that was sent; always true for byte streams,
    /// whose delivery the kernel handles.
    pub(crate) fn is_delivered(&mut self) -> bool {
        match self {
            Self::ByteStream(_) => true,
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.is_delivered(),
        }
    }

    /// Closes the sending side; returns whether the server may still send.
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Self::ByteStream(stream) => {
                stream.end();
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
            Self::ByteStream(stream) => stream.as_fd(),
            #[cfg(feature = "quic")]
            Self::Quic(session) => session.as_fd(),
        }
    }
}
