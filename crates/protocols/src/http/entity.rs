//! An entity: the message itself or a part of a multipart one, and how far it is read.

use gannet_base::Uid;
use gannet_files::FileId;

use super::coding::Inflate;
use super::field::Headers;
use crate::support::mime::Base64;

/// Whether a message has a body when its header does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// It has none whatever the header says.
    Never,
    /// It has one only if the header says so.
    IfTold,
    /// It has one, until the connection ends if need be.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Multipart,
    Message,
    Leaf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    No,
    BeforeBody,
    Size,
    Data,
    DataEnd,
    Trailer,
    Over,
}

/// How content is transferred. Those from base64 on need something when a body begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Transfer {
    Identity,
    QuotedPrintable,
    Base64,
    /// A script skips the content.
    Skipped,
}

/// A body, or a part of one, as a file.
#[derive(Debug)]
pub(super) struct BodyFile {
    pub(super) id: FileId,
    /// The exchange whose row names it.
    pub(super) exchange: Option<u64>,
    /// Its type is set.
    pub(super) typed: bool,
    /// Other responses may bring more of it: only time, or its last byte, ends it.
    pub(super) shared: bool,
}

/// A message, or a part of a multipart one.
pub(super) struct Entity {
    pub(super) in_header: bool,
    pub(super) end: bool,
    pub(super) kind: Kind,
    pub(super) boundary: Option<Vec<u8>>,
    pub(super) transfer: Transfer,
    pub(super) base64: Option<Box<Base64>>,
    pub(super) chunked: Chunked,
    /// Stated length of the body; negative if not stated.
    pub(super) content_length: i64,
    /// Length of the stated range; negative if not stated.
    pub(super) range_len: i64,
    /// Remaining bytes of the body, or of the current chunk.
    pub(super) lacks: i64,
    pub(super) body: Body,
    /// Bytes of body so far, uncompressed, gaps counted; but for the message itself, without those that
    /// only passed on their way to a part.
    pub(super) body_len: u64,
    /// The body is compressed.
    pub(super) compressed: bool,
    pub(super) inflate: Option<Box<Inflate>>,
    /// This is a range of a larger file.
    pub(super) partial: bool,
    /// Where in that file the next byte belongs.
    pub(super) offset: u64,
    /// Size of that file; not positive if not stated.
    pub(super) total: i64,
    /// The file's size must still be set.
    pub(super) reports_size: bool,
    pub(super) expect_continue: bool,
    pub(super) file: Option<BodyFile>,
    /// Name of its file, which stays when more comes after the file's end.
    pub(super) fuid: Option<Uid>,
    /// The name and exchange of its complete file: a gap behind that belongs to another file of this name.
    pub(super) complete: Option<(Uid, u64)>,
    /// A line end that is content only if more content follows.
    pub(super) line_end_waits: bool,
    /// The header, where a listener wants all of it.
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
            lacks: 0,
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
            line_end_waits: false,
            headers: None,
        }
    }

    /// The kind of a line within it.
    #[inline]
    pub(super) fn delimiter(&self, line: &[u8]) -> Delimiter {
        let boundary = self.boundary.as_ref().filter(|_| self.kind == Kind::Multipart);
        match boundary.and_then(|b| line.strip_prefix(b"--")?.strip_prefix(&b[..])) {
            None => Delimiter::None,
            Some(rest) if rest.starts_with(b"--") => Delimiter::Last,
            Some(_) => Delimiter::Next,
        }
    }

    /// The body begins.
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

    /// Its content is skipped from now on, and no part of it begins.
    pub(super) fn skip(&mut self) {
        self.transfer = Transfer::Skipped;
        self.base64 = None;
        if !self.in_header && self.kind != Kind::Leaf {
            (self.kind, self.boundary) = (Kind::Multipart, None);
        }
    }
}

/// The kind of a line within a multipart body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    None,
    Next,
    Last,
}
