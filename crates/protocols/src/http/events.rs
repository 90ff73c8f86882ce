//! Events of HTTP.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Connection;
use gannet_event::TableOf;

use super::field::FieldName;
use crate::support::mime::events::HeaderRec;
use crate::support::text::UpperCase;

gannet_event::record! {
    /// Statistics of a message.
    #[derive(Clone, Copy, Debug)]
    pub struct MessageStat = "http_message_stat" {
        /// Time of the request or status line.
        start: Time = "start",
        /// Whether the message is incomplete.
        interrupted: bool = "interrupted",
        /// Description of how the message ended.
        finish_msg: &'static str = "finish_msg",
        /// Length of the uncompressed body, in bytes.
        body_length: u64 = "body_length",
        /// Number of bytes of the body that were not captured.
        content_gap_length: u64 = "content_gap_length",
        /// Length of the header, in bytes.
        header_length: u64 = "header_length",
    }
}

gannet_event::record! {
    /// Statistics of an HTTP connection.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Stats = "http_stats_rec" {
        /// Number of request lines.
        num_requests: u64 = "num_requests",
        /// Number of status lines.
        num_replies: u64 = "num_replies",
        /// Version of the last request; 0 without a request.
        request_version: f64 = "request_version",
        /// Version of the last response; 0 without a response.
        reply_version: f64 = "reply_version",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Http);

    /// A connection with an HTTP analyzer ends.
    pub struct HttpStats = "http_stats", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Statistics of the connection.
        stats: Stats = "stats",
    }

    /// A message violates the protocol.
    pub struct HttpEvent<'a> = "http_event", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Type of the error.
        event_type: &'a str = "event_type",
        /// Detail of the error.
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
        /// Value of the field.
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
        /// The type in upper case; `TEXT` if the header has none.
        ty: &'a [u8] = "ty",
        /// The subtype in upper case; `PLAIN` if the header has none.
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

    /// Content of a body, after transfer and content codings were decoded.
    pub struct HttpEntityData<'a> = "http_entity_data", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Length of the content, in bytes.
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
        /// Statistics of the message.
        stat: MessageStat = "stat",
    }

    /// A connection is upgraded to another protocol.
    pub struct HttpConnectionUpgrade<'a> = "http_connection_upgrade", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The protocol, as the response names it.
        protocol: &'a [u8] = "protocol",
    }

    /// A body, or a part of one, starts or continues a file.
    pub struct HttpFile<'a> = "gannet::http_file", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
        /// Number of the exchange within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// Identifier of the file in the logs, if it is analyzed.
        fuid: Option<Uid> = "fuid",
        /// Name of the file, if the header has one.
        filename: Option<&'a [u8]> = "filename",
    }

    /// The MIME type of such a file is known.
    pub struct HttpFileType = "gannet::http_file_type", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
        /// Number of the exchange within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// The MIME type.
        mime_type: &'static str = "mime_type",
    }

    /// An exchange is complete: the response has ended, or is not expected any more.
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
