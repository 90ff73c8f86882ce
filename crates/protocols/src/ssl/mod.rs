//! SSL 2.0 and 3.0, TLS 1.0 to 1.3, DTLS 1.0 to 1.3: versions, ciphers, server names and
//! certificates of sessions.
//!
//! Specifications: SSL 2.0 (draft-hickman-netscape-ssl-00), SSL 3.0 (RFC 6101), TLS (RFC 2246,
//! 4346, 5246, 8446), extensions (RFC 6066, 7301, 5077), DTLS (RFC 4347, 6347, 9147).
//!
//! Stream bytes go to [`Analyzer`], which splits them into records; datagrams go to [`Dtls`], which
//! also reassembles fragmented handshake messages. Both share `record` (records before and after
//! the switch to encryption) and `handshake` (messages that span records, and their contents).
//! [`message`] and [`extension`] parse single messages without state. A `Session` (`rows`) receives
//! the reported events and becomes the row of ssl.log; certificates, parsed once
//! ([`Certificates`]), have separate rows (`certificates::rows`).
//!
//! No more can be learned of a session when both sides have sent an encrypted record: then the row
//! is written, and the analyzer requests its removal. The rows of other sessions are written when
//! the analyzer is removed, or when a violation occurs.

mod analyzer;
mod certificates;
mod ciphers;
mod decryption;
mod detect;
mod dtls;
pub mod events;
pub mod extension;
pub mod fingerprint;
mod handshake;
pub mod message;
pub mod names;
mod raise;
mod record;
mod role;
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod seen;

pub use analyzer::Analyzer;
pub use certificates::Certificates;
pub use certificates::Item as CertificateItem;
pub use certificates::X509Row;
pub use dtls::Dtls;
pub use rows::SslRow;

/// Parses a certificate that was seen in a protocol other than TLS, and logs it if it is new.
/// `None` if it cannot be parsed.
pub(crate) use seen::report_certificate;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Log;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::udp(&[443]),
            names_files: true,
            udp_rules: detect::UDP,
            ..Entry::new(Tag::Dtls, "DTLS", "dtls")
        },
        Entry {
            ports: Ports::tcp(&[443, 465, 563, 585, 614, 636, 989, 990, 992, 993, 995, 5223]),
            names_files: true,
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::Ssl, "SSL", "ssl")
        },
    ],
    events: &[events::EVENTS],
    logs: &[Log::of::<SslRow<'_>>(), Log::of::<X509Row<'_>>()],
};
