//! Events of MIME entities of mail (SMTP, POP3).

use gannet_event::Connection;
use gannet_event::TableOf;

use crate::support::text::UpperCase;

gannet_event::record! {
    /// A header field.
    #[derive(Clone, Copy, Debug)]
    pub struct HeaderRec<'a> = "mime_header_rec" {
        /// Its name as it was sent.
        original_name: &'a [u8] = "original_name",
        /// Its name in upper case.
        name: UpperCase<'a> = "name",
        /// Its value.
        value: &'a [u8] = "value",
    }
}

gannet_event::events! {
    crate::events::module::MIME;

    /// A mail begins, or a part of one.
    pub struct MimeBeginEntity = "mime_begin_entity" {
        /// The connection.
        c: Connection = "c",
    }

    /// A mail ended, or a part of one.
    pub struct MimeEndEntity = "mime_end_entity" {
        /// The connection.
        c: Connection = "c",
    }

    /// A header field of a mail or of a part of one.
    pub struct MimeOneHeader<'a> = "mime_one_header" {
        /// The connection.
        c: Connection = "c",
        /// The field.
        h: HeaderRec<'a> = "h",
    }

    /// All header fields of a mail or of a part of one.
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
        /// Its length in bytes.
        length: u64 = "length",
        /// The content, decoded.
        data: &'a [u8] = "data",
    }

    /// A piece of an entity's content, as soon as it is decoded: a line, or a part of a long one.
    pub struct MimeSegmentData<'a> = "mime_segment_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its length in bytes.
        length: u64 = "length",
        /// The piece.
        data: &'a [u8] = "data",
    }

    /// The content of all entities of a mail that ended.
    pub struct MimeAllData<'a> = "mime_all_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Its length in bytes.
        length: u64 = "length",
        /// The content, decoded.
        data: &'a [u8] = "data",
    }

    /// The format of a mail is wrong.
    pub struct MimeEvent<'a> = "mime_event", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The kind of the fault.
        event_type: &'a str = "event_type",
        /// The fault.
        detail: &'a str = "detail",
    }

    /// Checksum of a mail's content.
    pub struct MimeContentHash<'a> = "mime_content_hash", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the content of all entities, decoded.
        content_len: u64 = "content_len",
        /// Its MD5 in sixteen bytes.
        hash_value: &'a [u8] = "hash_value",
    }

    /// Checksum of a mail's content.
    pub struct MimeContentHashSha256<'a> = "mime_content_hash_sha256", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Length of the content of all entities, decoded.
        content_len: u64 = "content_len",
        /// Its SHA-256 in 32 bytes.
        hash_value: &'a [u8] = "hash_value",
    }
}
