//! Parses MIME entities (RFC 2045, RFC 2046, RFC 5322) from lines.
//!
//! A message is a tree of entities: each has header fields and a body, and the body of a
//! `multipart` or `message` entity contains further entities. [`Mime`] receives the lines of one
//! message and calls a [`Sink`] in order: start of an entity, its header fields, its decoded body,
//! its end. Only the open entities are stored, as a stack.
//!
//! Encoded words in field values are passed on unchanged. Nesting beyond [`MAX_DEPTH`] is ignored,
//! and a folded field is truncated at [`MAX_HEADER`] bytes.

pub(crate) mod base64;
pub mod events;
mod fault;
mod header;
mod report;

pub use base64::Base64;
pub use fault::Fault;
pub use header::Field;
pub use header::MediaType;
pub use header::token;
pub use report::Report;

use memchr::memchr;

use crate::Env;
use crate::support::text::hex;

/// Maximum nesting depth of entities; the outermost has depth 0.
pub const MAX_DEPTH: usize = 100;

/// Length in bytes at which a folded header field accepts no further line.
pub const MAX_HEADER: usize = 65536;

/// Receives the contents of a message. `depth` is the number of entities that enclose the current
/// one.
pub trait Sink {
    /// An entity begins.
    fn begin(&mut self, depth: usize);
    /// A header field of the last entity.
    fn header(&mut self, depth: usize, field: Field<'_>);
    /// The header of the last entity ends.
    fn headers_end(&mut self, _depth: usize) {}
    /// More of the last entity's body, decoded.
    fn data(&mut self, depth: usize, data: &[u8]);
    /// A fault of the innermost open entity.
    fn illegal(&mut self, _fault: Fault) {}
    /// A line of a body ends: its content was passed to [`data`](Self::data).
    fn line_end(&mut self) {}
    /// The innermost open entity ends.
    fn end(&mut self, depth: usize);
    /// A limit was reached by the number `at`.
    fn limit(&mut self, name: &'static str, at: usize);
    /// The base64 of a body is invalid.
    fn bad_base64(&mut self, complaint: &str);
    /// Limits of the parser.
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

/// Limits of the parser.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum nesting depth of entities.
    pub depth: usize,
    /// Maximum length of a folded header field before its last line, in bytes.
    pub header: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: MAX_DEPTH, header: MAX_HEADER }
    }
}

impl Limits {
    /// The limits that scripts set, or the defaults.
    pub(crate) fn from_settings(env: &Env) -> Self {
        Self {
            depth: env.limit_setting("MIME::max_depth", MAX_DEPTH),
            header: env.limit_setting("MIME::max_header_bytes", MAX_HEADER),
        }
    }
}

/// Parser of one message.
#[derive(Debug)]
pub struct Mime {
    /// The open entities, outermost first. Empty before the message begins and after its end.
    open: Vec<Entity>,
    /// Decoded bytes of the current line.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Multipart,
    Message,
    /// Any other type: a body without entities.
    Leaf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    QuotedPrintable,
    Base64,
}

#[derive(Debug)]
struct Entity {
    kind: Kind,
    encoding: Encoding,
    in_header: bool,
    /// Whether the closing delimiter was seen and the end reported.
    ended: bool,
    /// The current field, with folded lines joined.
    field: Option<Vec<u8>>,
    boundary: Option<Vec<u8>>,
    /// Whether the CR LF of the last line is withheld until the next line: before a boundary it is
    /// not content.
    pending_line_end: bool,
    base64: Option<Base64>,
}

enum Delimiter {
    None,
    Next,
    Closing,
}

impl Mime {
    /// Begins a message.
    pub fn new(sink: &mut impl Sink) -> Self {
        sink.begin(0);
        Self { open: vec![Entity::new(Encoding::Identity)], scratch: Vec::new() }
    }

    /// Parses the next line, without its end. `line_end` says whether CR LF followed it.
    pub fn line(&mut self, line: &[u8], line_end: bool, sink: &mut impl Sink) {
        let delimiter = line.starts_with(b"--");
        // Lines other than boundaries belong to the innermost entity: the headers of enclosing
        // entities are complete.
        let mut depth = if delimiter { 0 } else { self.open.len().saturating_sub(1) };
        while depth < self.open.len() {
            let entity = &mut self.open[depth];
            if entity.in_header {
                self.header_line(depth, line, sink);
                return;
            }
            if entity.kind == Kind::Leaf {
                self.body_line(depth, line, line_end, sink);
                return;
            }
            if delimiter && entity.kind == Kind::Multipart {
                match entity.delimiter(line) {
                    Delimiter::None => {}
                    Delimiter::Next => {
                        self.close_above(depth, sink);
                        if !self.open[depth].ended {
                            self.begin_child(depth, sink);
                        }
                        return;
                    }
                    Delimiter::Closing => {
                        self.close_above(depth, sink);
                        self.end_entity(depth, sink);
                        return;
                    }
                }
            }
            // Without an open nested entity, text around the delimiters is ignored.
            depth += 1;
        }
    }

    /// Ends the message, complete or not.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        if let [first, _, ..] = &self.open[..]
            && first.kind == Kind::Multipart
            && !first.ended
        {
            sink.illegal(Fault::NotClosed);
        }
        if !self.open.is_empty() {
            self.close_above(0, sink);
            self.end_entity(0, sink);
            self.open.clear();
        }
    }

    fn header_line(&mut self, depth: usize, line: &[u8], sink: &mut impl Sink) {
        let entity = &mut self.open[depth];
        match line.first() {
            None | Some(0) => {
                entity.finish_field(depth, sink);
                entity.in_header = false;
                sink.headers_end(depth);
                if entity.encoding == Encoding::Base64 {
                    entity.base64 = Some(Base64::default());
                }
                if entity.kind == Kind::Message {
                    self.begin_child(depth, sink);
                }
            }
            Some(b' ' | b'\t') => match &mut entity.field {
                Some(field) if field.len() >= sink.limits().header => {
                    sink.limit("exceeded_mime_max_header_bytes", field.len());
                }
                Some(field) => field.extend_from_slice(line),
                None => {
                    sink.illegal(Fault::LeadingBlank);
                    let text = crate::support::text::skip_blanks(line);
                    if !text.is_empty() {
                        entity.field = Some(text.to_vec());
                    }
                }
            },
            Some(_) => {
                entity.finish_field(depth, sink);
                entity.field = Some(line.to_vec());
            }
        }
    }

    fn body_line(&mut self, depth: usize, line: &[u8], line_end: bool, sink: &mut impl Sink) {
        let in_multipart = depth > 0 && self.open[depth - 1].kind == Kind::Multipart;
        let entity = &mut self.open[depth];
        match entity.encoding {
            Encoding::Identity => {
                if std::mem::take(&mut entity.pending_line_end) {
                    sink.data(depth, b"\r\n");
                }
                if !line.is_empty() {
                    sink.data(depth, line);
                }
                if line_end && in_multipart {
                    entity.pending_line_end = true;
                } else if line_end {
                    sink.data(depth, b"\r\n");
                }
            }
            Encoding::QuotedPrintable => {
                self.scratch.clear();
                decode_quoted_printable(line, &mut self.scratch, |fault| sink.illegal(fault));
                if !self.scratch.is_empty() {
                    sink.data(depth, &self.scratch);
                }
            }
            Encoding::Base64 => {
                self.scratch.clear();
                if let Some(decoder) = &mut entity.base64
                    && let Some(complaint) = decoder.decode(line, &mut self.scratch)
                {
                    sink.bad_base64(&complaint);
                }
                if !self.scratch.is_empty() {
                    sink.data(depth, &self.scratch);
                }
            }
        }
        sink.line_end();
    }

    fn begin_child(&mut self, depth: usize, sink: &mut impl Sink) {
        if depth >= sink.limits().depth {
            sink.limit("exceeded_mime_max_depth", depth);
            return;
        }
        let encoding = self.open[depth].encoding;
        sink.begin(depth + 1);
        self.open.push(Entity::new(encoding));
    }

    /// Ends the entities nested in the one at `depth`, innermost first.
    fn close_above(&mut self, depth: usize, sink: &mut impl Sink) {
        let around =
            self.open.get(depth + 1..self.open.len().saturating_sub(1)).unwrap_or_default();
        for _ in around.iter().filter(|entity| entity.kind == Kind::Multipart && !entity.ended) {
            sink.illegal(Fault::NotClosed);
        }
        while self.open.len() > depth + 1 {
            self.end_entity(self.open.len() - 1, sink);
            self.open.pop();
        }
    }

    fn end_entity(&mut self, depth: usize, sink: &mut impl Sink) {
        let entity = &mut self.open[depth];
        if std::mem::replace(&mut entity.ended, true) {
            return;
        }
        if entity.in_header {
            entity.finish_field(depth, sink);
            entity.in_header = false;
            sink.headers_end(depth);
            sink.illegal(Fault::NoBody);
        } else if let Some(mut decoder) = entity.base64.take() {
            self.scratch.clear();
            for complaint in decoder.finish(&mut self.scratch) {
                sink.bad_base64(&complaint);
            }
            if !self.scratch.is_empty() {
                sink.data(depth, &self.scratch);
            }
        }
        sink.end(depth);
    }
}

impl Entity {
    fn new(encoding: Encoding) -> Self {
        Self {
            kind: Kind::Leaf,
            encoding,
            in_header: true,
            ended: false,
            field: None,
            boundary: None,
            pending_line_end: false,
            base64: None,
        }
    }

    fn finish_field(&mut self, depth: usize, sink: &mut impl Sink) {
        let Some(line) = self.field.take() else { return };
        let Some(field) = Field::parse(&line) else { return };
        if field.is("content-type") {
            self.content_type(field.value, sink);
        } else if field.is("content-transfer-encoding") {
            let Some((name, _)) = token(field.value) else {
                sink.illegal(Fault::NoEncoding);
                return sink.header(depth, field);
            };
            self.encoding = if name.eq_ignore_ascii_case(b"base64") {
                Encoding::Base64
            } else if name.eq_ignore_ascii_case(b"quoted-printable") {
                Encoding::QuotedPrintable
            } else {
                Encoding::Identity
            };
        }
        sink.header(depth, field);
    }

    fn content_type(&mut self, value: &[u8], sink: &mut impl Sink) {
        let Some(media) = MediaType::parse(value) else { return sink.illegal(Fault::NoType) };
        self.kind = if media.is_multipart() {
            if let Some(boundary) = media.boundary(|fault| sink.illegal(fault)) {
                self.boundary = Some(boundary);
            }
            if self.boundary.is_some() {
                Kind::Multipart
            } else {
                sink.illegal(Fault::NoBoundary);
                Kind::Leaf
            }
        } else if media.is_message() {
            media.boundary(|fault| sink.illegal(fault));
            Kind::Message
        } else {
            Kind::Leaf
        };
    }

    fn delimiter(&self, line: &[u8]) -> Delimiter {
        let Some(boundary) = &self.boundary else { return Delimiter::None };
        match line.strip_prefix(b"--").and_then(|l| l.strip_prefix(&boundary[..])) {
            None => Delimiter::None,
            Some(rest) if rest.starts_with(b"--") => Delimiter::Closing,
            Some(_) => Delimiter::Next,
        }
    }
}

/// Appends a decoded line of quoted-printable (RFC 2045 §6.7), including its end unless a soft line
/// break removes it. Invalid sequences are copied unchanged and reported to `fault`.
pub fn decode_quoted_printable(line: &[u8], out: &mut Vec<u8>, mut fault: impl FnMut(Fault)) {
    let tail = line.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let text = &line[..line.len() - tail];
    out.reserve(text.len() + 2);
    let mut rest = text;
    let copy = |text: &[u8], out: &mut Vec<u8>, fault: &mut dyn FnMut(Fault)| {
        for byte in text.iter().filter(|b| !matches!(b, b'\t' | b' '..=b'~')) {
            fault(Fault::Control(*byte));
        }
        out.extend_from_slice(text);
    };
    while let Some(at) = memchr(b'=', rest) {
        copy(&rest[..at], out, &mut fault);
        rest = &rest[at + 1..];
        match rest {
            [] => return,
            [high, low, after @ ..] if let (Some(high), Some(low)) = (hex(*high), hex(*low)) => {
                out.push(high << 4 | low);
                rest = after;
            }
            _ => {
                fault(Fault::NoDigits);
                out.push(b'=');
            }
        }
    }
    copy(rest, out, &mut fault);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
