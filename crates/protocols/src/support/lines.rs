//! Extracts lines from a byte stream that is split at arbitrary positions.

use memchr::memchr2;

use crate::Context;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes, without CR or LF.
    pub text: &'a [u8],
    /// Whether the line exceeded the limit and was truncated to it.
    pub cut: bool,
    /// Whether an earlier line ended with a CR without LF.
    pub after_lone_cr: bool,
}

impl Line<'_> {
    /// Raises the weirds of the line; call it before the line is parsed. The weird of a lone CR is
    /// raised once per connection: `reported` says whether it was.
    pub(crate) fn report(&self, cx: &mut Context<'_>, reported: &mut bool) {
        report_lone_cr(cx, self.after_lone_cr, reported);
        if self.cut {
            cx.weird("contentline_size_exceeded", "", SOURCE);
        }
    }
}

/// Source of weirds.
const SOURCE: Option<&str> = Some("CONTENTLINE");

fn report_lone_cr(cx: &mut Context<'_>, is_present: bool, reported: &mut bool) {
    if is_present && !std::mem::replace(reported, true) {
        cx.weird("line_terminated_with_single_CR", "", SOURCE);
    }
}

/// Splits one direction of a stream into lines that end with LF, CR LF or (by default) CR.
///
/// A line within one chunk is borrowed; only a line that spans several chunks is copied.
///
/// ```
/// use gannet_protocols::support::Lines;
/// let mut lines = Lines::new(1024);
/// let mut data: &[u8] = b"one\r\ntwo\nthr";
/// assert_eq!(lines.next(&mut data).map(|l| l.text), Some(&b"one"[..]));
/// assert_eq!(lines.next(&mut data).map(|l| l.text), Some(&b"two"[..]));
/// assert_eq!(lines.next(&mut data), None);
/// let mut data: &[u8] = b"ee\r\n";
/// assert_eq!(lines.next(&mut data).map(|l| l.text), Some(&b"three"[..]));
/// ```
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    /// The partial line was returned: clear it before the next one.
    is_returned: bool,
    /// Whether the last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    cr_ends: bool,
    /// Whether some line ended with a CR without LF.
    lone_cr: bool,
    limit: usize,
    /// Number of bytes that are dropped after a truncated line.
    dropped: usize,
}

impl Lines {
    /// Creates a buffer for lines of at most `limit` bytes; longer lines are returned in pieces
    /// marked [`cut`](Line::cut).
    pub fn new(limit: usize) -> Self {
        Self {
            partial: Vec::new(),
            is_returned: false,
            after_cr: false,
            cr_ends: true,
            lone_cr: false,
            limit: limit.max(1),
            dropped: 0,
        }
    }

    /// Sets whether a lone CR ends a line. Default: it does.
    pub fn set_cr_ends(&mut self, yes: bool) {
        self.cr_ends = yes;
    }

    /// Sets the number of bytes beyond the limit that must be available before a line is truncated;
    /// those bytes are dropped, including line ends. Default: 0.
    pub fn set_loss(&mut self, bytes: usize) {
        self.dropped = bytes;
    }

    /// Raises the weird of a lone CR after the last line; call it when all lines of the data were
    /// parsed.
    pub(crate) fn report(&self, cx: &mut Context<'_>, reported: &mut bool) {
        report_lone_cr(cx, self.lone_cr, reported);
    }

    /// Whether an incomplete line is stored.
    pub fn has_partial(&self) -> bool {
        !self.is_returned && !self.partial.is_empty()
    }

    /// Drops the beginning of a line, after a gap.
    pub fn reset(&mut self) {
        self.partial.clear();
        self.is_returned = false;
        self.after_cr = false;
    }

    /// Takes the stored incomplete line: the last line of a stream that ended without a line end.
    pub fn take_partial(&mut self) -> Vec<u8> {
        if self.is_returned {
            self.partial.clear();
            self.is_returned = false;
        }
        std::mem::take(&mut self.partial)
    }

    /// Skips the LF of a split CR LF; call it before data that is not lines is read. A missing LF
    /// is not reported as a lone CR.
    pub fn skip_lf(&mut self, data: &mut &[u8]) {
        if self.after_cr
            && let Some((first, rest)) = data.split_first()
        {
            if *first == b'\n' {
                *data = rest;
            }
            self.after_cr = false;
        }
    }

    /// Returns the next line and removes it from `data`. `None` if `data` contains no further line
    /// end: the rest is stored, and `data` is empty.
    pub fn next<'s, 'd: 's>(&'s mut self, data: &mut &'d [u8]) -> Option<Line<'s>> {
        if self.is_returned {
            self.partial.clear();
            self.is_returned = false;
        }
        if self.after_cr {
            self.lone_cr |= data.first().is_some_and(|b| !matches!(b, b'\r' | b'\n'));
            self.skip_lf(data);
        }
        let mut from = 0;
        loop {
            let bytes: &'d [u8] = data;
            let available = self.limit - self.partial.len().min(self.limit);
            let found = memchr2(b'\r', b'\n', &bytes[from..]).map(|n| from + n);
            let end = found.unwrap_or(bytes.len());
            let have = self.partial.len();
            if have + end > self.limit && have + bytes.len() >= self.limit + self.dropped {
                // Too long: return the part within the limit.
                let after = self.limit + self.dropped - have;
                if self.dropped > 0 {
                    self.after_cr = bytes[after - 1] == b'\r';
                }
                *data = &bytes[after..];
                self.partial.truncate(self.limit);
                return Some(self.take_line(&bytes[..available], true));
            }
            let Some(at) = found else {
                self.partial.extend_from_slice(bytes);
                *data = &[];
                return None;
            };
            if bytes[at] == b'\n' {
                *data = &bytes[at + 1..];
                let mut line = &bytes[..at];
                if !self.cr_ends && line.is_empty() && self.partial.last() == Some(&b'\r') {
                    self.partial.pop();
                } else if !self.cr_ends && line.last() == Some(&b'\r') {
                    line = &line[..line.len() - 1];
                }
                return Some(self.take_line(line, false));
            }
            if bytes.get(at + 1) == Some(&b'\n') {
                *data = &bytes[at + 2..];
                return Some(self.take_line(&bytes[..at], false));
            }
            if self.cr_ends {
                *data = &bytes[at + 1..];
                self.after_cr = true;
                return Some(self.take_line(&bytes[..at], false));
            }
            from = at + 1;
        }
    }

    fn take_line<'s>(&'s mut self, tail: &'s [u8], cut: bool) -> Line<'s> {
        if self.partial.is_empty() {
            return Line { text: tail, cut, after_lone_cr: self.lone_cr };
        }
        self.partial.extend_from_slice(tail);
        self.is_returned = true;
        Line { text: &self.partial, cut, after_lone_cr: self.lone_cr }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(lines: &mut Lines, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(line) = lines.next(&mut data) {
                out.push(line.text.to_vec());
            }
        }
        out
    }

    #[test]
    fn every_line_end() {
        let got = all(&mut Lines::new(100), &[b"a\rb\nc\r\nd\r", b"\ne\r", b"f\n"]);
        assert_eq!(got, [b"a", b"b", b"c", b"d", b"e", b"f"]);
    }

    #[test]
    fn lone_cr_may_be_text() {
        let mut lines = Lines::new(100);
        lines.set_cr_ends(false);
        assert_eq!(all(&mut lines, &[b"a\rb\r\nc\r", b"\nd\n"]), [&b"a\rb"[..], b"c", b"d"]);
    }

    #[test]
    fn lone_cr_is_noticed() {
        let mut lines = Lines::new(100);
        all(&mut lines, &[b"a\r\nb\r", b"\nc\r"]);
        assert!(!lines.lone_cr);
        all(&mut lines, &[b"d\n"]);
        assert!(lines.lone_cr);
    }

    #[test]
    fn lone_cr_before_plain_bytes_is_not_noticed() {
        let mut lines = Lines::new(100);
        let mut data: &[u8] = b"BDAT 3\rabcd\r\n";
        assert_eq!(lines.next(&mut data).map(|l| l.text), Some(&b"BDAT 3"[..]));
        lines.skip_lf(&mut data);
        data = &data[3..];
        assert_eq!(lines.next(&mut data).map(|l| l.text), Some(&b"d"[..]));
        assert!(!lines.lone_cr);
    }

    #[test]
    fn long_lines_come_in_pieces() {
        let mut lines = Lines::new(4);
        let mut data: &[u8] = b"abcdefghij\n";
        assert_eq!(
            lines.next(&mut data),
            Some(Line { text: b"abcd", cut: true, after_lone_cr: false })
        );
        assert_eq!(
            lines.next(&mut data),
            Some(Line { text: b"efgh", cut: true, after_lone_cr: false })
        );
        assert_eq!(
            lines.next(&mut data),
            Some(Line { text: b"ij", cut: false, after_lone_cr: false })
        );
    }

    #[test]
    fn what_is_cut_may_take_more_with_it() {
        let mut lines = Lines::new(4);
        lines.set_loss(2);
        assert_eq!(all(&mut lines, &[b"abcde"]), [b""; 0]);
        assert_eq!(
            all(&mut lines, &[b"\nfg\nhijklmn\r", b"\no\n"]),
            [&b"abcd"[..], b"fg", b"hijk", b"n", b"o"]
        );
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(text in "[ab\r\n]{0,40}", at in 0usize..40) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            for (limit, dropped) in [(100, 0), (4, 0), (4, 2)] {
                let read = |chunks: &[&[u8]]| {
                    let mut lines = Lines::new(limit);
                    lines.set_loss(dropped);
                    all(&mut lines, chunks)
                };
                prop_assert_eq!(read(&[bytes]), read(&[&bytes[..at], &bytes[at..]]));
            }
        }
    }
}
