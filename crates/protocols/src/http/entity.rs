//! An entity: the message itself or a part of a multipart body, and its parser state.

use gannet_base::Uid;
use gannet_files::FileId;

use super::coding::Inflate;
use super::field::Headers;
use crate::support::mime::Base64;

/// Whether a message has a body if its header does not declare one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// It never has a body, regardless of the header.
    Never,
    /// It has a body only if the header declares one.
    IfDeclared,
    /// It has a body, up to the end of the connection without a declared length.
    Always,
}

/// The content of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Multipart,
    Message,
    Leaf,
}

/// State of the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// The body is not chunked.
    No,
    BeforeBody,
    Size,
    Data,
    DataEnd,
    Trailer,
    Done,
}

/// Content transfer encoding. The variants from `Base64` on need an action at the start of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transfer {
    Identity,
    QuotedPrintable,
    Base64,
    /// The content is skipped at the request of a script.
    Skipped,
}

/// A body, or a part of one, as a file.
#[derive(Debug)]
pub(super) struct BodyFile {
    pub(super) id: FileId,
    /// Number of the exchange whose row lists it.
    pub(super) exchange: Option<u64>,
    /// Its type was reported.
    pub(super) type_reported: bool,
    /// Other responses may continue it: it ends only by a timeout or with its last byte.
    pub(super) shared: bool,
}

/// A message, or a part of a multipart body.
pub(super) struct Entity {
    pub(super) in_header: bool,
    pub(super) end: bool,
    pub(super) kind: Kind,
    pub(super) boundary: Option<Vec<u8>>,
    pub(super) transfer: Transfer,
    pub(super) base64: Option<Box<Base64>>,
    pub(super) chunked: Chunked,
    /// Declared length of the body in bytes; negative if missing.
    pub(super) content_length: i64,
    /// Length of the declared range in bytes; negative if missing.
    pub(super) range_len: i64,
    /// Number of remaining bytes of the body, or of the current chunk.
    pub(super) remaining: i64,
    pub(super) body: Body,
    /// Uncompressed length of the body so far in bytes, including gaps. Except for the message itself, bytes that were
    /// delivered to a part may be missing.
    pub(super) body_len: u64,
    /// The body is compressed.
    pub(super) compressed: bool,
    pub(super) inflate: Option<Box<Inflate>>,
    /// The body is a range of a larger file.
    pub(super) partial: bool,
    /// Offset of the next byte in that file.
    pub(super) offset: u64,
    /// Size of that file in bytes; not positive if missing.
    pub(super) total: i64,
    /// The size of the file has not been reported yet.
    pub(super) reports_size: bool,
    pub(super) expect_continue: bool,
    pub(super) file: Option<BodyFile>,
    /// Identifier of its file, which more data after the end of the file reuses.
    pub(super) fuid: Option<Uid>,
    /// Identifier and exchange of its complete file: a gap after it belongs to another file with this identifier.
    pub(super) complete: Option<(Uid, u64)>,
    /// A line end is pending, which is content only if more content follows.
    pub(super) line_end_deferred: bool,
    /// The whole header, if an event of it has a listener.
    pub(super) headers: Option<Box<Headers>>,
}

impl Entity {
    pub(super) fn new(body: Body, transfer: Transfer) -> Self {
        Self {
            in_header: true,
            end: false,
            kind: Kind::Leaf,
            boundary: None,
            transfer,
            base64: None,
            chunked: Chunked::No,
            content_length: -1,
            range_len: -1,
            remaining: 0,
            body,
            body_len: 0,
            compressed: false,
            inflate: None,
            partial: false,
            offset: 0,
            total: -1,
            reports_size: true,
            expect_continue: false,
            file: None,
            fuid: None,
            complete: None,
            line_end_deferred: false,
            headers: None,
        }
    }

    /// Whether a line of the body is a boundary.
    #[inline]
    pub(super) fn delimiter(&self, line: &[u8]) -> Delimiter {
        let boundary = self.boundary.as_ref().filter(|_| self.kind == Kind::Multipart);
        match boundary.and_then(|b| line.strip_prefix(b"--")?.strip_prefix(&b[..])) {
            None => Delimiter::None,
            Some(rest) if rest.starts_with(b"--") => Delimiter::Last,
            Some(_) => Delimiter::Next,
        }
    }

    /// Prepares the decoder at the start of the body.
    pub(super) fn begin_body(&mut self) {
        if self.transfer >= Transfer::Base64 {
            self.begin_coded_body();
        }
    }

    #[cold]
    fn begin_coded_body(&mut self) {
        if self.transfer == Transfer::Base64 {
            self.base64 = Some(Box::default());
        } else {
            self.skip();
        }
    }

    /// Skips the rest of the content, and starts no further parts.
    pub(super) fn skip(&mut self) {
        self.transfer = Transfer::Skipped;
        self.base64 = None;
        if !self.in_header && self.kind != Kind::Leaf {
            (self.kind, self.boundary) = (Kind::Multipart, None);
        }
    }
}

/// Kind of a line within a multipart body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// A line of a part.
    None,
    /// The boundary before another part.
    Next,
    /// The final boundary.
    Last,
}
