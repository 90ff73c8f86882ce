//! Events of HTTP.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::TableOf;

use super::field::FieldName;
use crate::support::mime::events::HeaderRec;
use crate::support::text::UpperCase;

gannet_event::record! {
    /// How a message ended.
    #[derive(Clone, Copy, Debug)]
    pub struct MessageStat = "http_message_stat" {
        /// When the request or status line was seen.
        start: Time = "start",
        /// Whether the message ended before its own end.
        interrupted: bool = "interrupted",
        /// How it ended, in words.
        finish_msg: &'static str = "finish_msg",
        /// Bytes of the body, uncompressed.
        body_length: u64 = "body_length",
        /// Bytes of the body that were not captured.
        content_gap_length: u64 = "content_gap_length",
        /// Bytes of the header.
        header_length: u64 = "header_length",
    }
}

gannet_event::record! {
    /// What an HTTP connection carried.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Stats = "http_stats_rec" {
        /// Request lines.
        num_requests: u64 = "num_requests",
        /// Status lines.
        num_replies: u64 = "num_replies",
        /// The version of the last request; 0 without one.
        request_version: f64 = "request_version",
        /// The version of the last response; 0 without one.
        reply_version: f64 = "reply_version",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Http);

    /// A connection that an analyzer of HTTP followed is over.
    pub struct HttpStats = "http_stats", opt_in {
        /// The connection.
        c: Connection = "c",
        /// What it carried.
        stats: Stats = "stats",
    }

    /// A message is not as it should be.
    pub struct HttpEvent<'a> = "http_event", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The kind of the fault.
        event_type: &'a str = "event_type",
        /// The fault.
        detail: &'a [u8] = "detail",
    }

    /// A client sent a request line.
    pub struct HttpRequest<'a> = "http_request" {
        /// The connection.
        c: Connection = "c",
        /// The method as it was sent.
        method: &'a [u8] = "method",
        /// The target as it was sent.
        original_uri: &'a [u8] = "original_URI",
        /// The target with its `%` escapes decoded.
        unescaped_uri: &'a [u8] = "unescaped_URI",
        /// The version: `1.1`.
        version: [u8; 3] = "version",
    }

    /// A server sent a status line.
    pub struct HttpReply<'a> = "http_reply" {
        /// The connection.
        c: Connection = "c",
        /// The version: `1.1`.
        version: [u8; 3] = "version",
        /// The status code.
        code: u16 = "code",
        /// The reason phrase.
        reason: &'a [u8] = "reason",
    }

    /// A header field of a message or of a part of its body.
    pub struct HttpHeader<'a> = "http_header" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The field's name as it was sent.
        original_name: FieldName<'a> = "original_name",
        /// The field's name in upper case.
        name: UpperCase<'a> = "name",
        /// Its value.
        value: &'a [u8] = "value",
    }

    /// The header of a message, or of a part of its body, is complete.
    pub struct HttpAllHeaders<'a> = "http_all_headers", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The fields by their number, from 1.
        hlist: TableOf<u64, HeaderRec<'a>> = "hlist",
    }

    /// The type of a body, or of a part of it, is known.
    pub struct HttpContentType<'a> = "http_content_type", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
        /// The type in upper case; `TEXT` where the header has none.
        ty: &'a [u8] = "ty",
        /// The subtype in upper case; `PLAIN` where the header has none.
        subty: &'a [u8] = "subty",
    }

    /// A message begins, or a part of a multipart body.
    pub struct HttpBeginEntity = "http_begin_entity" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
    }

    /// A message ended, or a part of a multipart body.
    pub struct HttpEndEntity = "http_end_entity" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// Content of a body, after its transfer coding and compression are undone.
    pub struct HttpEntityData<'a> = "http_entity_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its length in bytes.
        length: u64 = "length",
        /// The content.
        data: &'a [u8] = "data",
    }

    /// A message ended.
    pub struct HttpMessageDone = "http_message_done" {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Result.
        stat: MessageStat = "stat",
    }

    /// A connection is upgraded to another protocol.
    pub struct HttpConnectionUpgrade<'a> = "http_connection_upgrade", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The protocol, as the response names it.
        protocol: &'a [u8] = "protocol",
    }

    /// A body, or a part of one, begins as a file, or continues one.
    pub struct HttpFile<'a> = "gannet::http_file", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
        /// Number of the exchange within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// The file's name in the logs, if it is analyzed.
        fuid: Option<Uid> = "fuid",
        /// Its own name, if stated.
        filename: Option<&'a [u8]> = "filename",
    }

    /// The type of such a file is known.
    pub struct HttpFileType = "gannet::http_file_type", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
        /// Number of the exchange within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// The type.
        mime_type: &'static str = "mime_type",
    }

    /// A request has its response, or nothing more of them is awaited.
    pub struct HttpExchange<'a> = "gannet::http_exchange", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Number of the exchange within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// The request's `Host` header.
        host: Option<&'a [u8]> = "host",
        /// The request's target with its `%` escapes decoded.
        uri: Option<&'a [u8]> = "uri",
        /// The request's `User-Agent` header.
        user_agent: Option<&'a [u8]> = "user_agent",
    }
}
