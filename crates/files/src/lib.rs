//! File analysis: what a file is, and what is in it.
//!
//! A file is bytes that some protocol carried: the body of an HTTP message, an attachment, a
//! certificate of a TLS handshake. Nothing here knows the protocol. [`Files`] follows each file
//! from its first byte to its last and hands its bytes to the readers, which are pure: each takes
//! bytes and answers.
//!
//! - [`sniff::mime_type`] detects the media type from the first [`sniff::SNIFF_BYTES`].
//! - [`hash::Hashes`] takes a file piece by piece and ends in MD5, SHA-1 and SHA-256.
//! - [`x509::parse`] takes a whole certificate and gives a [`x509::Certificate`]; it also answers
//!   whether the certificate speaks for a host.
//! - [`ocsp::parse_request`] and [`ocsp::parse_response`] take whole OCSP messages.
//! - [`pe::Parser`] takes an executable piece by piece, as far as its headers go.
//! - [`zip::Parser`] takes an archive piece by piece and gives its entries, decompressed.
//!
//! Certificates and OCSP share [`der`], a reader of BER and DER that borrows from its input, and
//! [`oid`], the names of object identifiers. Every reader takes any bytes: it gives an error or a
//! part of the facts, never panics, and keeps no more than a stated number of bytes.
//!
//! ```
//! assert_eq!(gannet_files::sniff::mime_type(b"%PDF-1.7\n"), Some("application/pdf"));
//! let empty = gannet_files::hash::sha256_hex(b"");
//! assert!(empty.starts_with("e3b0c442"));
//! ```

mod analyzers;
pub mod der;
pub mod events;
mod extract;
mod file;
mod files_log;
pub mod hash;
mod manager;
pub mod ocsp;
mod ocsp_raise;
pub mod oid;
pub mod pe;
mod pe_raise;
mod rows;
pub mod sniff;
pub mod x509;
pub mod x509_raise;
pub mod zip;

pub use extract::Contents;
pub use extract::Extract;
pub use extract::Extractable;
pub use extract::Extracted;
pub use manager::ContentFault;
pub use manager::FORGET_EVERY;
pub use manager::FaultKind;
pub use manager::FileId;
pub use manager::FileOptions;
pub use manager::FileStart;
pub use manager::Files;
pub use manager::era;

/// The logs that files make.
pub fn schemas() -> Vec<gannet_log::Schema> {
    use gannet_log::Schema;
    vec![
        Schema::of::<files_log::FileRow<'_>>(),
        Schema::of::<rows::OcspRow<'_>>(),
        Schema::of::<rows::PeRow<'_>>(),
    ]
}
