//! Splits the bytes of one direction into lines, or passes them through.

use memchr::memchr;
use memchr::memchr2;
use memchr::memmem;

/// Maximum length of a line in bytes; a longer line is split.
pub(super) const MAX_LINE: usize = (16 << 20) - 100;

/// A line: borrowed if it is within one chunk, and otherwise joined from several chunks.
pub(super) enum Text<'d> {
    /// Part of the current chunk.
    Borrowed(&'d [u8]),
    /// Joined from several chunks; [`Feed::recycle`] takes the buffer back.
    Joined(Vec<u8>),
}

/// Weirds of line ends, which the caller reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineWeirds {
    /// A line ended with CR alone.
    pub(super) lone_cr: bool,
    /// A line was longer than [`MAX_LINE`].
    pub(super) too_long: bool,
}

/// Splitter of the bytes of one direction.
///
/// HTTP switches between lines and counted bytes, and in parts of a multipart body
/// CR LF is the only line end, so that a lone CR or LF remains content.
#[derive(Debug)]
pub(super) struct Feed {
    partial: Vec<u8>,
    /// The last line ended with CR: if LF follows, it belongs to the line end.
    after_cr: bool,
    /// Only CR LF ends a line.
    pub(super) crlf_only: bool,
    /// The rest of the stream is ignored.
    pub(super) skip: bool,
    /// Chunks are passed on without splitting.
    pub(super) unsplit: bool,
    /// Number of bytes to pass through before the next line.
    pub(super) pass_through: i64,
    /// Remaining bytes of the current body according to its header; negative if not declared. Used to detect a
    /// last line without a line end.
    pub(super) body_remaining: i64,
    /// The byte after the current line, if known.
    pub(super) peek: Option<u8>,
    /// `peek` is set only if the next line is complete, as the order of events requires.
    pub(super) whole_lines: bool,
    /// Weirds since the caller last reported them.
    pub(super) weirds: LineWeirds,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            partial: Vec::new(),
            after_cr: false,
            crlf_only: false,
            skip: false,
            unsplit: false,
            pass_through: 0,
            body_remaining: -1,
            peek: None,
            whole_lines: false,
            weirds: LineWeirds::default(),
        }
    }
}

impl Feed {
    /// Whether an incomplete line is buffered.
    pub(super) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Takes the incomplete line.
    pub(super) fn take_partial(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Skips the LF of a CR LF that is split between two chunks. Must be called first for each chunk.
    pub(super) fn skip_lf(&mut self, data: &mut &[u8]) {
        if self.after_cr
            && let Some((&first, rest)) = data.split_first()
        {
            self.after_cr = false;
            if first == b'\n' && self.crlf_only && self.pass_through > 0 {
                // CR does not end a line any more: the LF is content.
            } else if first == b'\n' {
                *data = rest;
            } else if first != b'\r' && !self.crlf_only && self.pass_through == 0 {
                self.weirds.lone_cr = true;
            }
        }
    }

    /// Removes the next line from `data` and returns it. `None` if `data` has no further line end: the rest is
    /// buffered, and `data` becomes empty.
    pub(super) fn next<'d>(&mut self, data: &mut &'d [u8]) -> Option<Text<'d>> {
        let bytes = *data;
        let capacity = MAX_LINE.saturating_sub(self.partial.len());
        let found =
            if self.crlf_only { self.find_crlf(bytes) } else { memchr2(b'\r', b'\n', bytes) };
        let Some(at) = found.filter(|at| *at <= capacity) else {
            if bytes.len() > capacity {
                self.weirds.too_long = true;
                *data = &bytes[capacity..];
                self.partial.extend_from_slice(&bytes[..capacity]);
                self.peek = None;
                return Some(Text::Joined(std::mem::take(&mut self.partial)));
            }
            self.partial.extend_from_slice(bytes);
            *data = &[];
            return None;
        };
        let (end, next) = if self.crlf_only {
            // `at` is the LF; its CR may be the last buffered byte.
            match at.checked_sub(1) {
                Some(cr) => (cr, at + 1),
                None => {
                    self.partial.pop();
                    (0, 1)
                }
            }
        } else if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
            (at, at + 2)
        } else {
            self.after_cr = bytes[at] == b'\r';
            (at, at + 1)
        };
        *data = &bytes[next..];
        let is_known = !self.after_cr && (!self.whole_lines || self.has_end(data));
        self.peek = data.first().copied().filter(|_| is_known);
        if self.partial.is_empty() {
            return Some(Text::Borrowed(&bytes[..end]));
        }
        self.partial.extend_from_slice(&bytes[..end]);
        Some(Text::Joined(std::mem::take(&mut self.partial)))
    }

    /// Discards the incomplete line if lines are not needed any more, but remembers that it exists.
    pub(super) fn discard_partial(&mut self) {
        self.partial.truncate(1);
        self.partial.shrink_to_fit();
    }

    /// Takes the buffer of a line back for reuse.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        // The buffer of a long line is not kept for the rest of the connection.
        if self.partial.is_empty() && buffer.capacity() <= 1 << 10 {
            buffer.clear();
            self.partial = buffer;
        }
    }

    fn has_end(&self, data: &[u8]) -> bool {
        match self.crlf_only {
            true => memmem::find(data, b"\r\n").is_some(),
            false => memchr2(b'\r', b'\n', data).is_some(),
        }
    }

    fn find_crlf(&self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(n) = memchr(b'\n', &bytes[from..]) {
            let at = from + n;
            let before = if at == 0 { self.partial.last() } else { bytes.get(at - 1) };
            if before == Some(&b'\r') {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(feed: &mut Feed, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for chunk in chunks {
            let mut data = *chunk;
            while !data.is_empty() {
                feed.skip_lf(&mut data);
                match feed.next(&mut data) {
                    Some(Text::Borrowed(t)) => out.push(t.to_vec()),
                    Some(Text::Joined(t)) => {
                        out.push(t.clone());
                        feed.recycle(t);
                    }
                    None => {}
                }
            }
        }
        out
    }

    #[test]
    fn any_line_end() {
        let mut feed = Feed::default();
        assert_eq!(
            all(&mut feed, &[b"a\nb\r\nc\r", b"\nd\re", b"\n"]),
            [b"a", b"b", b"c", b"d", b"e"]
        );
        assert!(feed.weirds.lone_cr);
    }

    #[test]
    fn a_cr_split_from_its_lf_is_not_weird() {
        let mut feed = Feed::default();
        assert_eq!(all(&mut feed, &[b"a\r", b"\nb\r\n"]), [b"a", b"b"]);
        assert_eq!(feed.weirds, LineWeirds::default());
    }

    #[test]
    fn only_crlf() {
        let mut feed = Feed { crlf_only: true, ..Feed::default() };
        assert_eq!(all(&mut feed, &[b"a\nb\rc\r", b"\nd\r\n"]), [&b"a\nb\rc"[..], b"d"]);
    }

    #[test]
    fn the_next_byte_is_known_within_a_chunk() {
        let mut feed = Feed::default();
        let mut data: &[u8] = b"a\r\n b\r\n";
        feed.next(&mut data);
        assert_eq!(feed.peek, Some(b' '));
        feed.next(&mut data);
        assert_eq!(feed.peek, None);
    }

    #[test]
    fn the_next_byte_is_known_with_a_complete_line() {
        for (rest, known) in [(&b" b"[..], None), (b" b\r", Some(b' ')), (b"\r\n", Some(b'\r'))] {
            let mut feed = Feed { whole_lines: true, ..Feed::default() };
            let text = [b"a\r\n", rest].concat();
            feed.next(&mut &text[..]);
            assert_eq!(feed.peek, known);
        }
        let mut feed = Feed { whole_lines: true, crlf_only: true, ..Feed::default() };
        feed.next(&mut &b"a\r\nb\r"[..]);
        assert_eq!(feed.peek, None);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[ab\r\n]{0,40}", at in 0usize..40, crlf_only: bool) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let feed = || Feed { crlf_only, ..Feed::default() };
            prop_assert_eq!(all(&mut feed(), &[bytes]), all(&mut feed(), &[&bytes[..at], &bytes[at..]]));
        }
    }
}
