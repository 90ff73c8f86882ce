//! MIME entities (RFC 2045, RFC 2046, RFC 5322) out of lines.
//!
//! A message is a tree of entities: each has header fields and a body, and the body of a
//! `multipart` or `message` entity holds further entities. [`Mime`] receives the lines of one
//! message and reports to a [`Sink`], in order: begin of an entity, its header fields, its decoded
//! body, its end. Only the open entities are stored, as a stack.
//!
//! Encoded words in field values are passed on unchanged. Nesting deeper than [`MAX_DEPTH`] is
//! ignored, and a folded field is truncated at [`MAX_HEADER`] bytes.

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

/// Entities nested in one another; the outermost has depth 0.
pub const MAX_DEPTH: usize = 100;

/// A folded header field takes no further line when it holds this many bytes.
pub const MAX_HEADER: usize = 65536;

/// Receives the contents of a message. `depth` counts the entities around the current one.
pub trait Sink {
    /// An entity begins.
    fn begin(&mut self, depth: usize);
    /// A header field of the entity that began last.
    fn header(&mut self, depth: usize, field: Field<'_>);
    /// The header of the entity that began last ends.
    fn headers_end(&mut self, _depth: usize) {}
    /// More of its body, decoded.
    fn data(&mut self, depth: usize, data: &[u8]);
    /// A fault of the innermost open entity.
    fn illegal(&mut self, _fault: Fault) {}
    /// A line of a body ends: [`data`](Self::data) passed on what it holds.
    fn line_end(&mut self) {}
    /// The innermost open entity ends.
    fn end(&mut self, depth: usize);
    /// A limit was reached, with the number that reached it.
    fn limit(&mut self, name: &'static str, at: usize);
    /// The base64 of a body is damaged.
    fn bad_base64(&mut self, complaint: &str);
    /// How much is read of a message.
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

/// How much is read of a message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Entities nested in one another.
    pub depth: usize,
    /// Bytes of a folded header field, before its last line.
    pub header: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: MAX_DEPTH, header: MAX_HEADER }
    }
}

impl Limits {
    /// The limits that scripts have.
    pub(crate) fn of(env: &Env) -> Self {
        Self {
            depth: env.most("MIME::max_depth", MAX_DEPTH),
            header: env.most("MIME::max_header_bytes", MAX_HEADER),
        }
    }
}

/// One message.
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
    /// Text and everything else: a body without entities.
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
    /// Its end was reported: the closing delimiter was seen.
    ended: bool,
    /// The current field, folded lines joined.
    field: Option<Vec<u8>>,
    boundary: Option<Vec<u8>>,
    /// The CR LF of the last line waits for the next one: before a boundary it is not content.
    pending_line_end: bool,
    base64: Option<Base64>,
}

enum Delimiter {
    None,
    Next,
    Closing,
}

impl Mime {
    /// A message begins.
    pub fn new(sink: &mut impl Sink) -> Self {
        sink.begin(0);
        Self { open: vec![Entity::new(Encoding::Identity)], scratch: Vec::new() }
    }

    /// The next line, without its end. `line_end` says whether CR LF followed it.
    pub fn line(&mut self, line: &[u8], line_end: bool, sink: &mut impl Sink) {
        let delimiter = line.starts_with(b"--");
        // Lines that are no boundary are for the innermost entity: those around it are past their
        // headers.
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
            // Without an inner entity, text around the delimiters is ignored.
            depth += 1;
        }
    }

    /// The message ends, complete or not.
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

    /// Ends the entities inside the one at `depth`, innermost first.
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
/// break hides it. What is invalid is copied unchanged, and passed to `fault`.
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
