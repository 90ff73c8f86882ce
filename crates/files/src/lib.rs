//! File analysis: the types and contents of files.
//!
//! A file is a byte sequence that some protocol carries: the body of an HTTP message, an
//! attachment, a certificate of a TLS handshake. This crate does not know the protocol. [`Files`]
//! tracks each file from its first byte to its last and passes its bytes to parsers, which are pure
//! functions of their input.
//!
//! - [`sniff::mime_type`] detects the media type from the first [`sniff::SNIFF_BYTES`].
//! - [`hash::Hashes`] computes MD5, SHA-1 and SHA-256 incrementally.
//! - [`x509::parse`] parses a complete certificate into a [`x509::Certificate`], which can be
//!   matched against a host name.
//! - [`ocsp::parse_request`] and [`ocsp::parse_response`] parse complete OCSP messages.
//! - [`pe::Parser`] parses the headers of an executable incrementally.
//! - [`zip::Parser`] parses an archive incrementally and returns its entries, decompressed.
//!
//! Certificates and OCSP share [`der`], a parser of BER and DER that borrows from its input, and
//! [`oid`], the names of object identifiers. Every parser accepts arbitrary bytes: it returns an
//! error or a part of the facts, never panics, and stores at most a stated number of bytes.
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
pub use file::reads_contents;
pub use manager::ContentFault;
pub use manager::FORGET_EVERY;
pub use manager::FaultKind;
pub use manager::FileId;
pub use manager::FileOptions;
pub use manager::FileStart;
pub use manager::Files;
pub use manager::era;

/// The schemas of the logs about files.
pub fn schemas() -> Vec<gannet_log::Schema> {
    use gannet_log::Schema;
    vec![
        Schema::of::<files_log::FileRow<'_>>(),
        Schema::of::<rows::OcspRow<'_>>(),
        Schema::of::<rows::PeRow<'_>>(),
    ]
}
