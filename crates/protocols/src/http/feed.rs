//! One direction's bytes, split into lines or passed through.

use memchr::memchr;
use memchr::memchr2;
use memchr::memmem;

/// Longest line that is kept waiting for its end, in bytes.
pub(super) const MAX_LINE: usize = (16 << 20) - 100;

/// A line: within one chunk it is borrowed, over several it was put together.
pub(super) enum Text<'d> {
    /// Part of the current chunk.
    Borrowed(&'d [u8]),
    /// Put together; give the buffer back with [`Feed::recycle`].
    Joined(Vec<u8>),
}

/// Weirds of line ends, to be reported by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PacketWeird {
    /// A line ended with CR alone.
    pub(super) lone_cr: bool,
    /// A line was longer than [`MAX_LINE`].
    pub(super) too_long: bool,
}

/// How the bytes of one direction are to be cut.
///
/// HTTP switches between lines and counted bytes as it goes, and parts of a multipart body know
/// CR LF as the only line end, so that lone CR and LF stay content.
#[derive(Debug)]
pub(super) struct Feed {
    partial: Vec<u8>,
    /// The last line ended with CR: a LF that follows belongs to it.
    after_cr: bool,
    /// Only CR LF ends a line.
    pub(super) crlf_only: bool,
    /// Nothing further is wanted.
    pub(super) skip: bool,
    /// There is no cutting any more: chunks come as they are.
    pub(super) raw: bool,
    /// Bytes to hand through plain before lines begin again.
    pub(super) plain: i64,
    /// Remaining bytes of the current body, by its header; negative if not stated. Identifies a
    /// last line without an end.
    pub(super) delivery: i64,
    /// The byte after the current line, if it is known.
    pub(super) peek: Option<u8>,
    /// It is known only if the next line has arrived as a whole, as events show it.
    pub(super) whole_lines: bool,
    /// Weirds since the last call.
    pub(super) odd: PacketWeird,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            partial: Vec::new(),
            after_cr: false,
            crlf_only: false,
            skip: false,
            raw: false,
            plain: 0,
            delivery: -1,
            peek: None,
            whole_lines: false,
            odd: PacketWeird::default(),
        }
    }
}

impl Feed {
    /// Whether the beginning of a line waits for its end.
    pub(super) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Takes the incomplete line.
    pub(super) fn take_partial(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Skips the LF of a CR LF that was cut in two. Call before anything else with a chunk.
    pub(super) fn skip_lf(&mut self, data: &mut &[u8]) {
        if self.after_cr
            && let Some((&first, rest)) = data.split_first()
        {
            self.after_cr = false;
            if first == b'\n' && self.crlf_only && self.plain > 0 {
                // Since then CR ends no line any more: this is content.
            } else if first == b'\n' {
                *data = rest;
            } else if first != b'\r' && !self.crlf_only && self.plain == 0 {
                self.odd.lone_cr = true;
            }
        }
    }

    /// The next line; removes it from `data`. `None` if `data` has no further line end: the rest is
    /// stored, and `data` is empty.
    pub(super) fn next<'d>(&mut self, data: &mut &'d [u8]) -> Option<Text<'d>> {
        let bytes = *data;
        let room = MAX_LINE.saturating_sub(self.partial.len());
        let found =
            if self.crlf_only { self.find_crlf(bytes) } else { memchr2(b'\r', b'\n', bytes) };
        let Some(at) = found.filter(|at| *at <= room) else {
            if bytes.len() > room {
                self.odd.too_long = true;
                *data = &bytes[room..];
                self.partial.extend_from_slice(&bytes[..room]);
                self.peek = None;
                return Some(Text::Joined(std::mem::take(&mut self.partial)));
            }
            self.partial.extend_from_slice(bytes);
            *data = &[];
            return None;
        };
        let (end, next) = if self.crlf_only {
            // `at` is the LF; its CR may be the last byte that was kept.
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

    /// The lines of this side are not needed any more: drops the incomplete line, except the fact
    /// that it exists.
    pub(super) fn forget(&mut self) {
        self.partial.truncate(1);
        self.partial.shrink_to_fit();
    }

    /// Takes a line's buffer back, to be used again.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        // Does not keep the memory of one long line for the rest of the connection.
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
        assert!(feed.odd.lone_cr);
    }

    #[test]
    fn a_cr_that_was_cut_from_its_lf_is_not_odd() {
        let mut feed = Feed::default();
        assert_eq!(all(&mut feed, &[b"a\r", b"\nb\r\n"]), [b"a", b"b"]);
        assert_eq!(feed.odd, PacketWeird::default());
    }

    #[test]
    fn only_crlf() {
        let mut feed = Feed { crlf_only: true, ..Feed::default() };
        assert_eq!(all(&mut feed, &[b"a\nb\rc\r", b"\nd\r\n"]), [&b"a\nb\rc"[..], b"d"]);
    }

    #[test]
    fn what_follows_is_known_within_a_chunk() {
        let mut feed = Feed::default();
        let mut data: &[u8] = b"a\r\n b\r\n";
        feed.next(&mut data);
        assert_eq!(feed.peek, Some(b' '));
        feed.next(&mut data);
        assert_eq!(feed.peek, None);
    }

    #[test]
    fn what_follows_is_known_with_its_end() {
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
        fn cuts_do_not_matter(text in "[ab\r\n]{0,40}", at in 0usize..40, crlf_only: bool) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let feed = || Feed { crlf_only, ..Feed::default() };
            prop_assert_eq!(all(&mut feed(), &[bytes]), all(&mut feed(), &[&bytes[..at], &bytes[at..]]));
        }
    }
}
