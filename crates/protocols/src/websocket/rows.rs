//! websocket.log: one row per upgraded connection.

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;
use sha1::Digest;
use sha1::Sha1;

use super::events::WebsocketUpgrade;
use super::handshake::Handshake;
use crate::Context;
use crate::OnEvent;
use crate::http::events::HttpHeader;
use crate::http::field::WEBSOCKET;

gannet_log::row! {
    /// One row for each WebSocket connection.
    pub struct WebSocketRow<'a> = "websocket" {
        /// Time at which the responder accepted the upgrade.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The request's `Host` header.
        host: Option<&'a [u8]> = "host",
        /// Target of the request.
        uri: Option<&'a [u8]> = "uri",
        /// The request's `User-Agent` header.
        user_agent: Option<&'a [u8]> = "user_agent",
        /// The subprotocol that the responder chose.
        subprotocol: Option<&'a [u8]> = "subprotocol",
        /// Subprotocols that the originator offered.
        client_protocols: Option<&'a Vector<Vec<u8>>> = "client_protocols",
        /// Extensions that the responder chose.
        server_extensions: Option<&'a Vector<Vec<u8>>> = "server_extensions",
        /// Extensions that the originator offered.
        client_extensions: Option<&'a Vector<Vec<u8>>> = "client_extensions",
    }
}

/// The text that a responder appends to the originator's key (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Maximum number of stored elements of a list header: one more than a row contains.
const MAX_ELEMENTS: usize = 101;

impl OnEvent<HttpHeader<'_>> for Handshake {
    /// Handles a header `Sec-WebSocket-NAME`.
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpHeader<'_>) {
        let HttpHeader { is_orig, value, .. } = *event;
        let name = &event.original_name.name[WEBSOCKET.len()..];
        let is = |what: &str| name.eq_ignore_ascii_case(what.as_bytes());
        let (field, twice) = match is_orig {
            true if is("key") => (&mut self.key, "websocket_multiple_key_headers"),
            false if is("protocol") => {
                (&mut self.subprotocol, "websocket_multiple_protocol_headers")
            }
            false if is("accept") => (&mut self.accept, "websocket_multiple_accept_headers"),
            true if is("protocol") => return add_list(&mut self.client_protocols, value),
            true if is("extensions") => return add_list(&mut self.client_extensions, value),
            false if is("extensions") => return add_list(&mut self.server_extensions, value),
            _ => return,
        };
        if field.replace(value.to_vec()).is_some() {
            cx.weird(twice, "", Some("WebSocket"));
        }
    }
}

impl OnEvent<WebsocketUpgrade<'_>> for Handshake {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &WebsocketUpgrade<'_>) {
        if self.key.is_none() {
            cx.weird("websocket_missing_key_header", "", Some("WebSocket"));
        }
        if self.accept.is_none() {
            cx.weird("websocket_missing_accept_header", "", Some("WebSocket"));
        }
        if let (Some(key), Some(accept)) = (&self.key, &self.accept) {
            let expected = expected_accept(key);
            if expected.as_bytes() != &accept[..] {
                let addl = [&b"expected="[..], expected.as_bytes(), b", found=", accept].concat();
                cx.weird_bytes("websocket_wrong_accept_header", &addl, Some("WebSocket"));
            }
        }
        cx.log(&WebSocketRow {
            ts: cx.now,
            uid: cx.conn.uid,
            id: cx.conn.id,
            host: event.host,
            uri: event.uri,
            user_agent: event.user_agent,
            subprotocol: self.subprotocol.as_deref(),
            client_protocols: self.client_protocols.as_ref(),
            server_extensions: self.server_extensions.as_ref(),
            client_extensions: self.client_extensions.as_ref(),
        });
    }
}

/// Adds the elements of a list header, separated by commas and optional spaces.
fn add_list(list: &mut Option<Vector<Vec<u8>>>, value: &[u8]) {
    let list = &mut list.get_or_insert_with(|| Vector(Vec::new())).0;
    let mut parts = value.split(|c| *c == b',').peekable();
    let mut first = true;
    while let Some(mut part) = parts.next() {
        while let (false, Some(rest)) = (first, part.strip_prefix(b" ")) {
            part = rest;
        }
        while let (true, Some(rest)) = (parts.peek().is_some(), part.strip_suffix(b" ")) {
            part = rest;
        }
        first = false;
        if list.len() < MAX_ELEMENTS {
            list.push(part.to_vec());
        }
    }
}

/// The `Sec-WebSocket-Accept` value that corresponds to `key` (RFC 6455 section 4.2.2).
fn expected_accept(key: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    let mut text = String::with_capacity(28);
    for group in hash.chunks(3) {
        let bits = (0..3).fold(0u32, |n, i| n << 8 | u32::from(*group.get(i).unwrap_or(&0)));
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i > group.len() { '=' } else { digit as char });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_own_key() {
        let accept = expected_accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn lists() {
        let mut list = None;
        add_list(&mut list, b" a; x  ,  b,c ");
        add_list(&mut list, b"");
        let wanted = [&b" a; x"[..], b"b", b"c ", b""].map(<[u8]>::to_vec);
        assert_eq!(list, Some(Vector(wanted.to_vec())));
    }
}
