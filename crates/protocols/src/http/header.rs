//! Header fields that control the parsing of a message or appear in its row.

use gannet_event::TableOf;

use super::entity::Chunked;
use super::entity::Entity;
use super::entity::Kind;
use super::entity::Transfer;
use super::events::HttpAllHeaders;
use super::events::HttpContentType;
use super::events::HttpHeader;
use super::field::Field;
use super::field::FieldName;
use super::message::BadRange;
use super::message::Version;
use super::message::content_range;
use super::message::number;
use super::scope::Scope;
use super::syntax::field;
use super::syntax::token;
use crate::support::mime::Fault;
use crate::support::mime::MediaType;
use crate::support::mime::events::HeaderRec;
use crate::support::text::UpperCase;

impl Entity {
    /// Raises the events of a complete header.
    #[inline]
    pub(super) fn raise_headers(&mut self, s: &mut Scope<'_, '_>) {
        if s.cx.wants::<HttpAllHeaders<'_>>() || s.cx.wants::<HttpContentType<'_>>() {
            self.raise_all_headers(s);
        }
    }

    #[cold]
    fn raise_all_headers(&mut self, s: &mut Scope<'_, '_>) {
        let (headers, is_orig) = (self.headers.take().unwrap_or_default(), s.from.is_orig());
        let records = headers.fields.iter().enumerate().map(|(n, (name, value))| {
            (n as u64 + 1, HeaderRec { original_name: name, name: UpperCase(name), value })
        });
        s.cx.raise(|c| HttpAllHeaders { c, is_orig, hlist: TableOf(records.collect()) });
        let (ty, subty) = match &headers.content_type {
            Some((ty, subty)) => (&ty[..], &subty[..]),
            None => (&b"TEXT"[..], &b"PLAIN"[..]),
        };
        s.cx.raise(|c| HttpContentType { c, is_orig, ty, subty });
    }

    /// Processes a complete header line, joined from `lines` lines; `level` 0 is the message itself.
    pub(super) fn header(&mut self, s: &mut Scope<'_, '_>, level: usize, line: &[u8], lines: u32) {
        let Some((name, value)) = field(line) else { return };
        if level == 0 && lines > 1 {
            s.weird("HTTP_obsolete_line_folding", name);
        }
        let field = Field::from_name(name);
        // Events and rows omit an invalid range.
        let mut is_reported = true;
        match field {
            Field::Connection => connection(s, value),
            Field::ContentEncoding => {
                let coding = token(value).map_or(&b""[..], |t| t.0);
                let known = [&b"gzip"[..], b"x-gzip", b"deflate"];
                self.compressed |= known.iter().any(|k| coding.eq_ignore_ascii_case(k));
            }
            Field::ContentLength => self.length(s, value),
            Field::ContentRange if s.session.reply_code == 206 => {
                is_reported = self.range(s, value);
            }
            Field::ContentTransferEncoding => self.content_transfer(s, value),
            Field::ContentType => self.content_type(s, value),
            Field::Expect => self.expect(s, value),
            Field::TransferEncoding => self.transfer_encoding(s, level, value),
            Field::Upgrade if !s.from.is_orig() => {
                s.session.upgrade_to = token(value).map_or(&b""[..], |t| t.0).to_vec();
            }
            _ => {}
        }
        if is_reported {
            let is_orig = s.from.is_orig();
            s.cx.report(s.exchanges, |c| HttpHeader {
                c,
                is_orig,
                original_name: FieldName { name, field },
                name: UpperCase(name),
                value,
            });
        }
        if s.cx.wants::<HttpAllHeaders<'_>>() || s.cx.wants::<HttpContentType<'_>>() {
            self.headers.get_or_insert_default().add(field, name, value);
        }
    }

    fn length(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        if self.chunked != Chunked::No {
            s.weird("HTTP_content_length_and_chunked", b"");
        }
        let Some((text, _)) = token(value) else { return };
        let Some(n) = number(text, 10).filter(|n| *n >= 0) else {
            s.weird("HTTP_bad_content_length", text);
            self.content_length = 0;
            return;
        };
        if n > 0 && text[0] == b'0' {
            s.weird("HTTP_content_length_leading_zeros", text);
        }
        self.content_length = n;
        if self.partial && self.range_len != n {
            s.weird("HTTP_range_not_matching_len", b"");
            // Use the larger length, so that no data is missed.
            self.content_length = n.max(self.range_len);
        }
        if self.content_length == 0 && self.expect_continue {
            s.weird("HTTP_content_length_0_and_expect_100_cont", b"");
        }
    }

    fn expect(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        let expectation = token(value).map_or(&b""[..], |t| t.0);
        if !expectation.eq_ignore_ascii_case(b"100-continue") {
            s.weird("HTTP_expect_not_100_continue", expectation);
        }
        self.expect_continue = true;
        if self.content_length == 0 {
            s.weird("HTTP_content_length_0_and_expect_100_cont", b"");
        }
    }

    /// Parses a content range. Returns whether it is valid.
    fn range(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) -> bool {
        if self.chunked != Chunked::No {
            s.weird("HTTP_content_range_and_chunked", b"");
        }
        let (unit, rest) = token(value).unwrap_or_default();
        if unit != b"bytes" {
            s.weird("HTTP_content_range_unknown_byte_unit", b"");
            return false;
        }
        let mut text = Vec::with_capacity(rest.len());
        text.extend(rest.iter().copied().filter(|c| *c != b' '));
        let range = match content_range(&text) {
            Ok(range) => range,
            Err(BadRange(name, has_detail)) => {
                s.weird(name, if has_detail { &text } else { b"" });
                return false;
            }
        };
        match range.total {
            Ok(Some(total)) => self.total = total,
            Ok(None) => {}
            Err(()) => {
                s.weird("HTTP_content_range_invalid_instance", &text);
                self.total = 0;
            }
        }
        self.partial = true;
        self.offset = range.first as u64;
        self.range_len = range.len;
        if self.content_length > 0 && self.content_length != range.len {
            s.weird("HTTP_range_not_matching_len", b"");
        }
        self.content_length = self.content_length.max(range.len);
        true
    }

    fn transfer_encoding(&mut self, s: &mut Scope<'_, '_>, level: usize, value: &[u8]) {
        if level > 0 {
            s.weird("HTTP_nested_transfer_encoding_header", b"");
            return;
        }
        let version = if s.session.request_ongoing {
            s.session.request_version
        } else {
            s.session.reply_version
        };
        let Some((coding, rest)) = token(value) else { return };
        if !coding.eq_ignore_ascii_case(b"chunked") || version != Version::V1_1 {
            return;
        }
        self.chunked = Chunked::BeforeBody;
        if !rest.is_empty() {
            s.weird("HTTP_chunked_multi", rest);
        }
        if self.content_length >= 0 {
            s.weird("HTTP_content_length_and_chunked", b"");
        }
    }

    fn content_type(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        let Some(media) = MediaType::parse(value) else { return s.illegal(Fault::NoType) };
        self.kind = Kind::Leaf;
        if media.is_message() {
            media.boundary(|fault| s.illegal(fault));
            self.kind = Kind::Message;
        } else if media.is_multipart() {
            let boundary = media.boundary(|fault| s.illegal(fault));
            self.boundary = boundary.or(self.boundary.take());
            if self.boundary.is_some() {
                self.kind = Kind::Multipart;
            } else {
                s.illegal(Fault::NoBoundary);
            }
        }
    }

    fn content_transfer(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        let Some((coding, _)) = token(value) else { return s.illegal(Fault::NoEncoding) };
        if self.transfer == Transfer::Skipped {
            return;
        }
        self.transfer = if coding.eq_ignore_ascii_case(b"base64") {
            Transfer::Base64
        } else if coding.eq_ignore_ascii_case(b"quoted-printable") {
            Transfer::QuotedPrintable
        } else {
            Transfer::Identity
        };
    }
}

/// Processes the `Connection` field: whether the connection persists, ends, or is upgraded.
fn connection(s: &mut Scope<'_, '_>, value: &[u8]) {
    let option = token(value).map_or(&b""[..], |t| t.0);
    if s.from.is_orig() {
        s.session.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    } else if option.eq_ignore_ascii_case(b"close") {
        s.session.connection_close = true;
    } else if option.eq_ignore_ascii_case(b"upgrade") {
        s.session.upgrade = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_their_names() {
        for (name, field) in [
            ("Host", Field::Host),
            ("VIA", Field::Proxy),
            ("X-Forwarded-From", Field::Proxy),
            ("Xroxy-Connection", Field::Proxy),
            ("Client-Ip", Field::Proxy),
            ("Content-Encoding", Field::ContentEncoding),
            ("Proxy-Authorization", Field::Authorization),
            ("Sec-WebSocket-Protocol", Field::WebSocket),
            ("sec-websocket-", Field::WebSocket),
            ("Sec-WebSocket", Field::Other),
            ("Content-Typo", Field::Other),
            ("", Field::Other),
        ] {
            assert_eq!(Field::from_name(name.as_bytes()), field, "{name}");
        }
    }
}
