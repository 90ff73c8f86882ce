//! One message: its header, and the delivery of its body to its entities.
//!
//! A message is a chain of entities: the message itself, and within a multipart body the current
//! part, which may be multipart again. Bytes pass down the chain; each level counts them, decodes chunks,
//! decompresses and searches its boundary.

use gannet_base::Time;

use super::coding::Inflate;
use super::coding::Step;
use super::entity::Body;
use super::entity::Chunked;
use super::entity::Delimiter;
use super::entity::Entity;
use super::entity::Kind;
use super::entity::Transfer;
use super::events::HttpEndEntity;
use super::events::HttpMessageDone;
use super::events::MessageStat;
use super::scope::Scope;
use super::syntax::is_blank;
use super::syntax::skip_blanks;
use crate::support::mime::Fault;

/// Default maximum nesting depth of multipart bodies; deeper parts are content of the innermost one.
const MAX_DEPTH: usize = 100;

/// Default maximum length of a folded header line, in bytes; further lines are ignored.
const MAX_FOLDED: usize = 65536;

/// Length of a body without a declared length, which ends with the connection.
const UNTIL_CLOSE: i64 = i32::MAX as i64;

/// How a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is complete.
    Normal,
    /// A part of the stream is missing.
    Gap,
    /// The connection ends.
    Done,
    /// The connection is reset.
    Reset,
    /// Its side sent a FIN, which may end the message.
    Closed,
}

impl Ending {
    /// Whether the message is incomplete.
    pub(super) fn is_interrupted(self) -> bool {
        !matches!(self, Self::Normal | Self::Closed)
    }

    /// Description in Zeek's words.
    fn description(self) -> &'static str {
        match self {
            Self::Normal => "message ends normally",
            Self::Gap => "message interrupted by a content gap",
            Self::Done => "message interrupted when connection done",
            Self::Reset => "message interrupted by RST",
            Self::Closed => "message ends as connection contents are completely delivered",
        }
    }
}

/// A request or a response.
pub(super) struct Message {
    /// The message and its open parts, outermost first; the last may have ended.
    pub(super) entities: Vec<Entity>,
    /// Entities below this index, except for the message itself, only pass lines on that are not a boundary.
    first_active: usize,
    /// A header line that the next line may continue.
    header: Vec<u8>,
    /// Number of folded lines in `header`; 0 if it is not in use.
    header_lines: u32,
    /// The message has ended.
    pub(super) finished: bool,
    /// Length of its body, in bytes.
    pub(super) body_len: u64,
    /// Time of its first line.
    start: Time,
    /// Length of its first line and its header lines, in bytes.
    header_len: u64,
    /// Number of missing bytes of its body.
    gap_len: u64,
}

impl Message {
    /// A new message with a first line of `line` bytes.
    pub(super) fn new(s: &mut Scope<'_, '_>, body: Body, line: usize) -> Self {
        s.begin_entity();
        Self {
            start: s.cx.now,
            header_len: line as u64,
            gap_len: 0,
            entities: vec![Entity::new(body, Transfer::Identity)],
            first_active: 1,
            header: Vec::new(),
            header_lines: 0,
            finished: false,
            body_len: 0,
        }
    }

    /// Reinitializes the message like [`new`](Self::new) for the next one, and keeps its buffers.
    pub(super) fn restart(&mut self, s: &mut Scope<'_, '_>, body: Body, line: usize) {
        s.begin_entity();
        (self.start, self.header_len, self.gap_len) = (s.cx.now, line as u64, 0);
        self.entities.clear();
        self.entities.push(Entity::new(body, Transfer::Identity));
        self.first_active = 1;
        self.header.clear();
        self.header_lines = 0;
        self.finished = false;
        self.body_len = 0;
    }

    /// Processes a line without its line end (`line_end`), or raw bytes.
    pub(super) fn deliver(&mut self, s: &mut Scope<'_, '_>, data: &[u8], line_end: bool) {
        self.deliver_to(s, 0, data, line_end);
    }

    fn deliver_to(&mut self, s: &mut Scope<'_, '_>, level: usize, data: &[u8], line_end: bool) {
        let level = self.target_level(level, data);
        let e = &mut self.entities[level];
        if e.end {
            if e.kind != Kind::Multipart {
                s.illegal(Fault::Trailing);
            }
            return;
        }
        if e.in_header {
            if !line_end {
                s.weird("http_no_crlf_in_header_list", b"");
            }
            if level == 0 {
                self.header_len += data.len() as u64;
            }
            self.header_line(s, level, data);
            return;
        }
        let len = data.len() as i64;
        if e.kind != Kind::Leaf {
            self.body(s, level, data, line_end);
            let e = &mut self.entities[level];
            if level == 0 && e.content_length > 0 {
                e.remaining -= len + if line_end { 2 } else { 0 };
                if e.remaining <= 0 {
                    s.feed.pass_through = 0;
                    self.end_of_data(s, level);
                }
            }
        } else if e.chunked != Chunked::No {
            self.chunk(s, level, data);
        } else if e.content_length >= 0 {
            self.body(s, level, data, false);
            let e = &mut self.entities[level];
            e.remaining -= len;
            if e.remaining <= 0 {
                s.feed.pass_through = 0;
                s.feed.body_remaining = -1;
                self.end_of_data(s, level);
            }
        } else {
            self.body(s, level, data, line_end);
        }
    }

    /// Returns the level that processes a line or bytes delivered at `level`. The levels in between would only search
    /// their boundaries; skipping them keeps lines of deeply nested parts cheap.
    #[inline]
    fn target_level(&self, level: usize, data: &[u8]) -> usize {
        // The message itself counts its missing bytes.
        if level == 0 {
            return level;
        }
        let may_end = data.starts_with(b"--");
        let mut level = if may_end { level } else { level.max(self.first_active) };
        while level + 1 < self.entities.len()
            && let Some(e) = self.entities.get(level)
            && !(e.end || e.in_header || e.compressed || e.kind == Kind::Leaf)
            && !(may_end && e.delimiter(data) != Delimiter::None)
        {
            level += 1;
        }
        level
    }

    /// Processes a line or bytes of a chunked body (RFC 9112 section 7.1).
    fn chunk(&mut self, s: &mut Scope<'_, '_>, level: usize, data: &[u8]) {
        let e = &mut self.entities[level];
        match e.chunked {
            Chunked::Size => {
                e.remaining = super::message::number(data, 16).unwrap_or_else(|| {
                    s.weird("HTTP_bad_chunk_size", data);
                    0
                });
                if e.remaining > 0 {
                    e.chunked = Chunked::Data;
                    s.feed.pass_through = e.remaining;
                } else {
                    e.in_header = true;
                    e.chunked = Chunked::Trailer;
                }
            }
            Chunked::Data => {
                e.remaining -= data.len() as i64;
                if e.remaining <= 0 {
                    s.feed.pass_through = 0;
                    e.chunked = Chunked::DataEnd;
                }
                self.body(s, level, data, false);
            }
            Chunked::DataEnd => e.chunked = Chunked::Size,
            Chunked::No | Chunked::BeforeBody | Chunked::Trailer | Chunked::Done => {}
        }
    }

    fn body(&mut self, s: &mut Scope<'_, '_>, level: usize, data: &[u8], line_end: bool) {
        // A compressed part of a compressed body is not decompressed again, because each level could
        // multiply the size by a thousand.
        let (outer, inner) = self.entities[..=level].split_at(level);
        if !inner[0].compressed || outer.iter().any(|e| e.compressed) {
            self.plain_body(s, level, data, line_end);
            return;
        }
        let current = self.entities[level].inflate.take();
        let mut inflate = current.unwrap_or_else(|| {
            // Zeek has a separate analyzer for decompression, which takes an analyzer ID.
            s.cx.skip_aids(1);
            Box::new(Inflate::new())
        });
        if let Some(mut input) = inflate.begin(data) {
            loop {
                let (n, more) = match inflate.step(&mut input) {
                    Step::More(n) => (n, true),
                    Step::Last(n) => (n, false),
                    Step::Failed => {
                        s.cx.weird("inflate_failed", "", Some("ZIP"));
                        break;
                    }
                };
                if n > 0 {
                    self.plain_body(s, level, &inflate.out()[..n], false);
                }
                if !more {
                    break;
                }
            }
        }
        if let Some(e) = self.entities.get_mut(level).filter(|e| !e.end) {
            e.inflate = Some(inflate);
        }
    }

    fn plain_body(&mut self, s: &mut Scope<'_, '_>, level: usize, data: &[u8], line_end: bool) {
        let e = &mut self.entities[level];
        e.body_len += data.len() as u64 + if line_end { 2 } else { 0 };
        match e.delimiter(data) {
            Delimiter::None => {}
            Delimiter::Next => {
                self.end_child(s, level);
                if !self.entities[level].end {
                    self.begin_child(s, level);
                }
                return;
            }
            Delimiter::Last => {
                self.end_child(s, level);
                self.end_of_data(s, level);
                return;
            }
        }
        if self.entities[level].kind != Kind::Leaf {
            // Text before the first and after the last boundary is ignored.
            if self.entities.len() > level + 1 {
                self.deliver_to(s, level + 1, data, line_end);
            }
            return;
        }
        let in_multipart = self.is_in_multipart(level);
        self.entities[level].content(s, data, line_end, in_multipart);
    }

    /// Whether the entity at a level is a part of a multipart one.
    fn is_in_multipart(&self, level: usize) -> bool {
        level > 0 && self.entities[level - 1].kind == Kind::Multipart
    }

    fn header_line(&mut self, s: &mut Scope<'_, '_>, level: usize, line: &[u8]) {
        match line.first() {
            None | Some(0) => {
                self.finish_header(s, level);
                self.entities[level].in_header = false;
                self.all_headers(s, level);
                if !self.entities[level].end {
                    self.begin_body(s, level);
                }
            }
            Some(&c) if is_blank(c) => {
                if self.header_lines == 0 {
                    s.illegal(Fault::LeadingBlank);
                    self.new_header(s, level, skip_blanks(line));
                } else if self.header.len()
                    >= s.cx.env.limit_setting("MIME::max_header_bytes", MAX_FOLDED)
                {
                    let addl = self.header.len().to_string();
                    super::limit_reached(s.cx, "exceeded_mime_max_header_bytes", &addl);
                } else {
                    self.header.extend_from_slice(line);
                    self.header_lines += 1;
                }
            }
            Some(_) => self.new_header(s, level, line),
        }
    }

    fn new_header(&mut self, s: &mut Scope<'_, '_>, level: usize, line: &[u8]) {
        self.finish_header(s, level);
        if line.is_empty() {
            return;
        }
        if s.feed.peek.is_some_and(|next| !is_blank(next)) {
            // The next line does not continue this one: no need to store it.
            self.entities[level].header(s, level, line, 1);
            return;
        }
        self.header.extend_from_slice(line);
        self.header_lines = 1;
    }

    fn finish_header(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        if self.header_lines > 0 {
            let lines = std::mem::take(&mut self.header_lines);
            self.entities[level].header(s, level, &self.header, lines);
            self.header.clear();
        }
    }

    /// Determines at the end of the header how the body is delimited (RFC 9112 section 6).
    fn all_headers(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        if self.is_in_multipart(level) {
            // A lone CR or LF in a part is content.
            s.feed.crlf_only = true;
        }
        let e = &mut self.entities[level];
        if e.content_length >= 0 {
            s.feed.body_remaining = e.content_length;
        }
        if e.chunked != Chunked::Trailer {
            e.raise_headers(s);
        }
        if e.chunked == Chunked::Trailer {
            e.chunked = Chunked::Done;
            self.end_of_data(s, level);
        } else if e.body == Body::Never {
            self.end_of_data(s, level);
        } else if e.kind != Kind::Leaf {
            if e.chunked != Chunked::No {
                s.weird("HTTP_chunked_transfer_for_multipart_message", b"");
            }
            if level == 0 && e.content_length > 0 {
                e.remaining = e.content_length;
            } else if level == 0 && e.content_length == 0 {
                self.end_of_data(s, level);
            }
        } else if e.chunked != Chunked::No {
            e.chunked = Chunked::Size;
        } else if e.content_length > 0 {
            e.remaining = e.content_length;
            s.feed.pass_through = e.content_length;
            if s.cx.env.setting("skip_http_data", 0) != 0 {
                e.skip();
            }
        } else if e.content_length == 0 {
            self.end_of_data(s, level);
        } else if s.session.connection_close || e.compressed {
            s.feed.pass_through = UNTIL_CLOSE;
        } else if e.body != Body::Always {
            self.end_of_data(s, level);
        }
    }

    fn begin_body(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        let e = &mut self.entities[level];
        e.begin_body();
        if e.kind == Kind::Message {
            self.begin_child(s, level);
        }
    }

    fn begin_child(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        if level >= s.cx.env.limit_setting("MIME::max_depth", MAX_DEPTH) {
            super::limit_reached(s.cx, "exceeded_mime_max_depth", &level.to_string());
            return;
        }
        let Entity { transfer, compressed, .. } = self.entities[level];
        if level > 0 && self.first_active == level && !compressed {
            self.first_active = level + 1;
        }
        self.entities.push(Entity::new(Body::Always, transfer));
        s.begin_entity();
    }

    fn end_child(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        if self.entities.len() > level + 1 {
            self.end_of_data(s, level + 1);
            self.entities.truncate(level + 1);
            self.first_active = self.first_active.min(level.max(1));
        }
    }

    fn end_of_data(&mut self, s: &mut Scope<'_, '_>, level: usize) {
        let has_part = self.entities.len() > level + 1;
        let e = &mut self.entities[level];
        if e.end {
            return;
        }
        e.end = true;
        e.inflate = None;
        e.compressed = false;
        let is_open_multipart = e.kind == Kind::Multipart && has_part;
        if e.in_header {
            self.finish_header(s, level);
            self.entities[level].in_header = false;
            self.all_headers(s, level);
            s.illegal(Fault::NoBody);
        } else {
            if is_open_multipart {
                s.illegal(Fault::NotClosed);
            }
            self.end_child(s, level);
            self.entities[level].end_of_body(s);
        }

        let is_orig = s.from.is_orig();
        s.cx.report(s.exchanges, |c| HttpEndEntity { c, is_orig });
        if level == 0 {
            self.body_len += self.entities[0].body_len;
            self.finish(s, Ending::Normal);
            return;
        }
        if self.is_in_multipart(level) {
            s.feed.crlf_only = false;
        }
        self.entities[level].end_file(s);
    }

    /// Ends the message in any state.
    pub(super) fn finish(&mut self, s: &mut Scope<'_, '_>, ending: Ending) {
        if self.finished {
            return;
        }
        self.finished = true;
        self.end_of_data(s, 0);
        self.entities[0].end_file(s);
        let is_orig = s.from.is_orig();
        s.cx.report(s.exchanges, |c| HttpMessageDone {
            c,
            is_orig,
            stat: MessageStat {
                start: self.start,
                interrupted: ending.is_interrupted(),
                finish_msg: ending.description(),
                body_length: self.body_len,
                content_gap_length: self.gap_len,
                header_length: self.header_len,
            },
        });
    }

    /// Skips the rest of the current entity: it is counted, but not delivered.
    pub(super) fn skip(&mut self) {
        if let Some(level) = self.entities.iter().rposition(|e| !e.end) {
            // The parts after it have ended.
            self.entities.truncate(level + 1);
            self.first_active = self.first_active.min(level.max(1));
            self.entities[level].skip();
        }
    }

    /// Processes a gap of `len` bytes. Returns whether it is within the body, so that parsing can
    /// continue.
    pub(super) fn gap(&mut self, s: &mut Scope<'_, '_>, len: u64) -> bool {
        let level = self.entities.iter().rposition(|e| !e.end).unwrap_or(0);
        let within = level + 1 < self.entities.len();
        let e = &mut self.entities[level];
        // Bytes of parts are not counted in the enclosing entities.
        if e.body_len == 0 && !within {
            return false;
        }
        e.file_gap(s, len);
        let within = i64::try_from(len).ok().filter(|len| *len <= e.remaining);
        let counted = match e.chunked {
            Chunked::No => e.content_length >= 0,
            state => state == Chunked::Data,
        };
        let Some(missing) = within.filter(|_| counted) else { return false };
        e.body_len += len;
        e.remaining -= missing;
        s.feed.pass_through = e.remaining;
        if e.remaining == 0 {
            if e.chunked == Chunked::Data {
                e.chunked = Chunked::DataEnd;
            } else {
                self.end_of_data(s, level);
            }
        }
        // As in Zeek, a gap that ends the message is not counted in its event.
        self.gap_len += len;
        true
    }
}
