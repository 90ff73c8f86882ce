//! Events of files.

/// Number of the module that declares events of files.
pub const MODULE: u16 = 0;
/// Number of the module that declares events of certificates.
pub const X509_MODULE: u16 = 1;

use gannet_event::Connection;
use gannet_event::FileRef;

gannet_event::record! {
    /// A type that the first bytes of a file match.
    #[derive(Clone, Copy, Debug)]
    pub struct MimeMatch = "mime_match" {
        /// How strongly.
        strength: i64 = "strength",
        /// The type.
        mime: &'static str = "mime",
    }
}

gannet_event::record! {
    /// What is known of a file from its content.
    #[derive(Clone, Debug)]
    pub struct Metadata = "fa_metadata" {
        /// The strongest type.
        mime_type: Option<&'static str> = "mime_type",
        /// All types, strongest first.
        mime_types: Option<Vec<MimeMatch>> = "mime_types",
        /// Whether the type comes from content and not from a declaration.
        inferred: Option<bool> = "inferred",
    }
}

gannet_event::events! {
    MODULE;

    /// A file began.
    pub struct FileNew = "file_new" {
        /// The file.
        f: FileRef = "f",
    }

    /// A file is carried by a connection that did not carry it before.
    pub struct FileOverNewConnection = "file_over_new_connection" {
        /// The file.
        f: FileRef = "f",
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
    }

    /// The type of a file is known.
    pub struct FileSniff = "file_sniff" {
        /// The file.
        f: FileRef = "f",
        /// What its content shows.
        meta: Metadata = "meta",
    }

    /// A part of a file was not captured.
    pub struct FileGap = "file_gap" {
        /// The file.
        f: FileRef = "f",
        /// Position of the first missing byte.
        offset: u64 = "offset",
        /// Number of missing bytes.
        len: u64 = "len",
    }

    /// Nothing of a file came for a while.
    pub struct FileTimeout = "file_timeout" {
        /// The file.
        f: FileRef = "f",
    }

    /// A file ended.
    pub struct FileStateRemove = "file_state_remove" {
        /// The file.
        f: FileRef = "f",
    }

    /// The hash of a whole file.
    pub struct FileHash<'a> = "file_hash" {
        /// The file.
        f: FileRef = "f",
        /// The hash function.
        kind: &'a str = "kind",
        /// The hash in hexadecimal digits.
        hash: &'a str = "hash",
    }
}
