//! Events of SIP.

use std::borrow::Cow;

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module::SIP;

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
        /// Its name in upper case.
        name: Cow<'a, [u8]> = "name",
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
