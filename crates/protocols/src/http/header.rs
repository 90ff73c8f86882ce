//! Header fields that steer a message or its row.

use super::body::Chunked;
use super::body::Entity;
use super::body::Kind;
use super::body::Scope;
use super::body::Transfer;
use super::message::BadRange;
use super::message::Version;
use super::message::content_range;
use super::message::number;
use super::syntax::boundary;
use super::syntax::field;
use super::syntax::slash_pair;
use super::syntax::token;

impl Entity {
    /// A complete header line, put together from `lines` lines; `level` 0 is the message itself.
    pub(super) fn header(&mut self, s: &mut Scope<'_, '_>, level: usize, line: &[u8], lines: u32) {
        let Some((name, value)) = field(line) else { return };
        let is = |what: &str| name.eq_ignore_ascii_case(what.as_bytes());
        if level == 0 && lines > 1 {
            s.weird("HTTP_obsolete_line_folding", name);
        }
        match name.len() {
            6 if is("expect") => self.expect(s, value),
            12 if is("content-type") => self.content_type(value),
            13 if is("content-range") && s.facts.reply_code == 206 => self.range(s, value),
            14 if is("content-length") => self.length(s, value),
            16 if is("content-encoding") => {
                let coding = token(value).map_or(&b""[..], |t| t.0);
                let known = [&b"gzip"[..], b"x-gzip", b"deflate"];
                self.compressed |= known.iter().any(|k| coding.eq_ignore_ascii_case(k));
            }
            17 if is("transfer-encoding") => self.transfer_encoding(s, level, value),
            25 if is("content-transfer-encoding") => self.content_transfer(value),
            _ => {}
        }
        connection_header(s, name, value);
        s.exchanges.header(s.cx, s.from, name, value);
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
            // The larger one, so that nothing hides behind the smaller.
            self.content_length = n.max(self.range_len);
        }
        if self.content_length == 0 && self.expect_continue {
            s.weird("HTTP_content_length_0_and_expect_100_cont", b"");
        }
    }

    fn expect(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        let what = token(value).map_or(&b""[..], |t| t.0);
        if !what.eq_ignore_ascii_case(b"100-continue") {
            s.weird("HTTP_expect_not_100_continue", what);
        }
        self.expect_continue = true;
        if self.content_length == 0 {
            s.weird("HTTP_content_length_0_and_expect_100_cont", b"");
        }
    }

    fn range(&mut self, s: &mut Scope<'_, '_>, value: &[u8]) {
        if self.chunked != Chunked::No {
            s.weird("HTTP_content_range_and_chunked", b"");
        }
        let (unit, rest) = token(value).unwrap_or_default();
        if unit != b"bytes" {
            s.weird("HTTP_content_range_unknown_byte_unit", b"");
            return;
        }
        let mut text = Vec::with_capacity(rest.len());
        text.extend(rest.iter().copied().filter(|c| *c != b' '));
        let range = match content_range(&text) {
            Ok(range) => range,
            Err(BadRange(name, told)) => {
                s.weird(name, if told { &text } else { b"" });
                return;
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
    }

    fn transfer_encoding(&mut self, s: &mut Scope<'_, '_>, level: usize, value: &[u8]) {
        if level > 0 {
            s.weird("HTTP_nested_transfer_encoding_header", b"");
            return;
        }
        let version =
            if s.facts.request_ongoing { s.facts.request_version } else { s.facts.reply_version };
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

    fn content_type(&mut self, value: &[u8]) {
        let Some((kind, _, parameters)) = slash_pair(value) else { return };
        self.kind = if kind.eq_ignore_ascii_case(b"multipart") {
            Kind::Multipart
        } else if kind.eq_ignore_ascii_case(b"message") {
            Kind::Message
        } else {
            Kind::Leaf
        };
        if self.kind == Kind::Multipart {
            self.boundary = boundary(parameters).or(self.boundary.take());
            if self.boundary.is_none() {
                self.kind = Kind::Leaf;
            }
        }
    }

    fn content_transfer(&mut self, value: &[u8]) {
        let Some((coding, _)) = token(value) else { return };
        self.transfer = if coding.eq_ignore_ascii_case(b"base64") {
            Transfer::Base64
        } else if coding.eq_ignore_ascii_case(b"quoted-printable") {
            Transfer::QuotedPrintable
        } else {
            Transfer::Identity
        };
    }
}

/// Fields about the connection: whether it persists, ends, or becomes something else.
fn connection_header(s: &mut Scope<'_, '_>, name: &[u8], value: &[u8]) {
    let first = || token(value).map_or(&b""[..], |t| t.0);
    if name.eq_ignore_ascii_case(b"connection") {
        let option = first();
        if s.from.is_orig() {
            s.facts.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        } else if option.eq_ignore_ascii_case(b"close") {
            s.facts.connection_close = true;
        } else if option.eq_ignore_ascii_case(b"upgrade") {
            s.facts.upgrade = true;
        }
    } else if !s.from.is_orig() && name.eq_ignore_ascii_case(b"upgrade") {
        s.facts.upgrade_to = first().to_vec();
    }
}
