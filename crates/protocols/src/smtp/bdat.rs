//! Mail in BDAT chunks (RFC 3030): extracts lines, which may cross chunk boundaries.

/// Maximum length of a line of chunked mail, in bytes; a longer line is passed on in pieces of this
/// length.
pub(super) const MAX_LINE: usize = 4096;

/// The chunks of one mail.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Maximum length of a line, in bytes; a longer line is passed on in pieces of this length.
    max_line: usize,
    /// Number of remaining bytes of the current chunk.
    remaining: u64,
    /// Whether the current chunk is the last one.
    last: bool,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
}

/// Receives the lines of chunked mail.
pub(super) trait LineSink {
    /// Receives a line; `line_end` says whether CR LF ended it.
    fn line(&mut self, line: &[u8], line_end: bool);
    /// Reports a weird, by Zeek's name.
    fn weird(&mut self, name: &'static str, addl: &str);
}

impl Chunks {
    /// Creates the chunks of a mail whose lines are passed on in pieces of at most `max_line`
    /// bytes.
    pub(super) fn new(max_line: usize) -> Self {
        Self { max_line, remaining: 0, last: false, partial: Vec::new() }
    }

    /// Begins a chunk of `size` bytes.
    pub(super) fn next_chunk(&mut self, size: u64, last: bool) {
        self.remaining = size;
        self.last = last;
    }

    /// Number of remaining bytes of the current chunk.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Whether the last chunk was seen completely.
    pub(super) fn complete(&self) -> bool {
        self.last && self.remaining == 0
    }

    /// Delivers the next bytes of the current chunk, at most the remaining ones.
    pub(super) fn data(&mut self, data: &[u8], sink: &mut impl LineSink) {
        if self.partial.last() == Some(&b'\r') && data.first() != Some(&b'\n') {
            sink.weird("smtp_bdat_line_cr_only", "");
            sink.line(&self.partial, false);
            self.partial.clear();
        }
        let taken = data.len() as u64;
        if self.partial.is_empty() {
            let rest = split(data, 0, self.max_line, sink);
            self.partial.extend_from_slice(&data[rest..]);
        } else {
            // The stored beginning contains no line end, except possibly a CR as its last byte.
            let from = self.partial.len() - 1;
            self.partial.extend_from_slice(data);
            let rest = split(&self.partial, from, self.max_line, sink);
            self.partial.drain(..rest);
        }
        self.remaining = self.remaining.saturating_sub(taken);
        if self.complete() && !self.partial.is_empty() {
            sink.line(&self.partial, false);
            self.partial.clear();
        }
    }

    /// Ends the mail, with or without its last chunk.
    pub(super) fn finish(&mut self, sink: &mut impl LineSink) {
        if !self.partial.is_empty() {
            sink.weird("smtp_bdat_undelivered_at_done", "");
            sink.line(&self.partial, false);
            self.partial.clear();
        }
    }
}

/// Passes on the lines of a buffer whose first `seen` bytes contain no line end. Returns the offset
/// of the last, incomplete line.
fn split(buffer: &[u8], seen: usize, max_line: usize, sink: &mut impl LineSink) -> usize {
    let mut start = 0;
    let mut i = seen;
    while let Some(&b) = buffer.get(i) {
        if b == b'\r' && buffer.get(i + 1) == Some(&b'\n') {
            sink.line(&buffer[start..i], true);
            start = i + 2;
            i += 1;
        } else if b == b'\n' {
            sink.weird("smtp_bdat_line_lf_only", "");
            sink.line(&buffer[start..=i], false);
            start = i + 1;
        } else if i - start >= max_line {
            sink.weird("smtp_bdat_line_too_long", &buffer.len().to_string());
            sink.line(&buffer[start..i], false);
            start = i;
        }
        i += 1;
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Received {
        lines: Vec<(Vec<u8>, bool)>,
        weirds: Vec<&'static str>,
    }

    impl LineSink for Received {
        fn line(&mut self, line: &[u8], line_end: bool) {
            self.lines.push((line.to_vec(), line_end));
        }
        fn weird(&mut self, name: &'static str, _addl: &str) {
            self.weirds.push(name);
        }
    }

    fn read(chunks: &[&[u8]]) -> Received {
        let mut got = Received::default();
        let mut mail = Chunks::new(MAX_LINE);
        mail.next_chunk(chunks.iter().map(|c| c.len() as u64).sum(), true);
        for chunk in chunks {
            mail.data(chunk, &mut got);
        }
        mail.finish(&mut got);
        got
    }

    #[test]
    fn line_ends() {
        let got = read(&[b"one\r", b"\ntwo\nth\r", b"ree\r\nrest"]);
        let line = |text: &str, line_end| (text.as_bytes().to_vec(), line_end);
        assert_eq!(
            got.lines,
            [
                line("one", true),
                line("two\n", false),
                line("th\r", false),
                line("ree", true),
                line("rest", false)
            ]
        );
        assert_eq!(got.weirds, ["smtp_bdat_line_lf_only", "smtp_bdat_line_cr_only"]);
    }

    #[test]
    fn long_lines_come_in_pieces() {
        let got = read(&[&[b'x'; MAX_LINE + 10]]);
        assert_eq!(got.lines.iter().map(|l| l.0.len()).collect::<Vec<_>>(), [MAX_LINE, 10]);
        assert_eq!(got.weirds, ["smtp_bdat_line_too_long"]);
    }

    proptest! {
        #[test]
        fn every_byte_comes_out(text in "[ab\r\n]{0,60}", at in 0usize..60) {
            let bytes = text.as_bytes();
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            let mut back = Vec::new();
            for (line, line_end) in read(&[a, b]).lines {
                back.extend(line);
                if line_end {
                    back.extend(b"\r\n");
                }
            }
            prop_assert_eq!(back, bytes);
        }
    }
}
