//! Events of SIP.

use std::borrow::Cow;

use gannet_event::Connection;
use gannet_event::TableOf;

use crate::support::text::UpperCase;

gannet_event::record! {
    /// A header field, in the record fields that Zeek's analyzer fills, whose names differ from
    /// their contents.
    #[derive(Clone, Debug)]
    pub struct SipField = "mime_header_rec" {
        /// The field's name in upper case.
        original_name: Cow<'static, [u8]> = "original_name",
        /// The field's value.
        name: Cow<'static, [u8]> = "name",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Sip);

    /// The header of a message is complete.
    pub struct SipAllHeaders = "sip_all_headers", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it belongs to a request.
        is_orig: bool = "is_orig",
        /// The fields by their number, from 1.
        hlist: TableOf<u64, SipField> = "hlist",
    }

    /// A request line.
    pub struct SipRequest<'a> = "sip_request" {
        /// The connection.
        c: Connection = "c",
        /// The method.
        method: &'a [u8] = "method",
        /// Subject of the request, unchanged.
        original_uri: &'a [u8] = "original_URI",
        /// The version: `2.0`.
        version: &'a [u8] = "version",
    }

    /// A status line.
    pub struct SipReply<'a> = "sip_reply" {
        /// The connection.
        c: Connection = "c",
        /// The version: `2.0`.
        version: &'a [u8] = "version",
        /// The status code.
        code: u16 = "code",
        /// The reason phrase.
        reason: &'a [u8] = "reason",
    }

    /// A header field.
    pub struct SipHeader<'a> = "sip_header" {
        /// The connection.
        c: Connection = "c",
        /// Whether it belongs to a request.
        is_orig: bool = "is_orig",
        /// The field's name in upper case.
        name: UpperCase<'a> = "name",
        /// Its value.
        value: &'a [u8] = "value",
    }

    /// A message begins.
    pub struct SipBeginEntity = "sip_begin_entity", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it is a request.
        is_orig: bool = "is_orig",
    }

    /// A message ended.
    pub struct SipEndEntity = "sip_end_entity" {
        /// The connection.
        c: Connection = "c",
        /// Whether it was a request.
        is_orig: bool = "is_orig",
    }
}
