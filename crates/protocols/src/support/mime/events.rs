//! Events of MIME entities of mail (SMTP, POP3).

use gannet_event::Connection;
use gannet_event::TableOf;

use crate::support::text::UpperCase;

gannet_event::record! {
    /// A header field.
    #[derive(Clone, Copy, Debug)]
    pub struct HeaderRec<'a> = "mime_header_rec" {
        /// The field's name as sent.
        original_name: &'a [u8] = "original_name",
        /// The field's name in upper case.
        name: UpperCase<'a> = "name",
        /// The field's value.
        value: &'a [u8] = "value",
    }
}

gannet_event::events! {
    crate::events::module::MIME;

    /// A mail or a part of it begins.
    pub struct MimeBeginEntity = "mime_begin_entity" {
        /// The connection.
        c: Connection = "c",
    }

    /// A mail or a part of it ended.
    pub struct MimeEndEntity = "mime_end_entity" {
        /// The connection.
        c: Connection = "c",
    }

    /// A header field of a mail or a part of it.
    pub struct MimeOneHeader<'a> = "mime_one_header" {
        /// The connection.
        c: Connection = "c",
        /// The field.
        h: HeaderRec<'a> = "h",
    }

    /// All header fields of a mail or a part of it.
    pub struct MimeAllHeaders<'a> = "mime_all_headers", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The fields by their number, from 1.
        hlist: TableOf<u64, HeaderRec<'a>> = "hlist",
    }

    /// All content of an entity that ended.
    pub struct MimeEntityData<'a> = "mime_entity_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the content, in bytes.
        length: u64 = "length",
        /// The content, decoded.
        data: &'a [u8] = "data",
    }

    /// A piece of an entity's content, raised when it is decoded: a line, or a part of a long line.
    pub struct MimeSegmentData<'a> = "mime_segment_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the piece, in bytes.
        length: u64 = "length",
        /// The piece.
        data: &'a [u8] = "data",
    }

    /// The content of all entities of a mail that ended.
    pub struct MimeAllData<'a> = "mime_all_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the content, in bytes.
        length: u64 = "length",
        /// The content, decoded.
        data: &'a [u8] = "data",
    }

    /// The format of a mail is invalid.
    pub struct MimeEvent<'a> = "mime_event", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Kind of the fault.
        event_type: &'a str = "event_type",
        /// Description of the fault.
        detail: &'a str = "detail",
    }

    /// MD5 checksum of a mail's content.
    pub struct MimeContentHash<'a> = "mime_content_hash", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the decoded content of all entities, in bytes.
        content_len: u64 = "content_len",
        /// MD5, 16 bytes.
        hash_value: &'a [u8] = "hash_value",
    }

    /// SHA-256 checksum of a mail's content.
    pub struct MimeContentHashSha256<'a> = "mime_content_hash_sha256", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the decoded content of all entities, in bytes.
        content_len: u64 = "content_len",
        /// SHA-256, 32 bytes.
        hash_value: &'a [u8] = "hash_value",
    }
}
