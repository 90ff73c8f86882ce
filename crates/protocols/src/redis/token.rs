//! Incremental parsing of lines and numbers.

/// Maximum length of a line or string, in bytes.
pub(super) const MAX_LENGTH: u64 = 1 << 20;

/// Maximum number of values in nested aggregates.
pub(super) const MAX_ELEMENTS: u64 = 20_000;

/// Maximum number of stored bytes of a text: its logged length.
pub(super) const MAX_KEPT: usize = 250;

/// Maximum number of stored bytes of a line: a command on a line is no longer.
pub(super) const MAX_LINE: usize = 1024;

/// Reason why bytes are not Redis.
pub type Malformed = &'static str;

/// A line that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Line {
    stored: Vec<u8>,
    /// Number of bytes so far, including those that were not stored.
    len: u64,
    /// Whether the last byte was a CR.
    cr: bool,
}

impl Line {
    /// Fast path for nearly all lines: if nothing of the line was read before and `data` contains
    /// all of it, removes it from `data` and returns it. Otherwise nothing changes.
    #[inline]
    pub(super) fn take_complete<'d>(&self, data: &mut &'d [u8]) -> Option<&'d [u8]> {
        if self.len > 0 {
            return None;
        }
        let (line, end) = data.split_at_checked(find_cr(data)?)?;
        *data = end.strip_prefix(b"\r\n")?;
        Some(line)
    }

    /// Consumes more of the line. Returns true if the line is complete and available by
    /// [`text`](Self::text).
    ///
    /// # Errors
    /// If it is longer than the maximum.
    pub(super) fn read(&mut self, data: &mut &[u8]) -> Result<bool, Malformed> {
        while let Some(&first) = data.first() {
            if self.cr && first == b'\n' {
                *data = &data[1..];
                self.cr = false;
                self.len -= 1;
                self.stored.truncate(usize::try_from(self.len).unwrap_or(usize::MAX));
                return Ok(true);
            }
            let n = memchr::memchr(b'\r', data).map_or(data.len(), |i| i + 1);
            let (part, rest) = data.split_at(n);
            let available = MAX_LINE.saturating_sub(self.stored.len());
            self.stored.extend_from_slice(&part[..n.min(available)]);
            self.len += n as u64;
            self.cr = part.last() == Some(&b'\r');
            *data = rest;
            if self.len > MAX_LENGTH {
                return Err("line is too long");
            }
        }
        Ok(false)
    }

    /// The line, or the stored beginning of a long one.
    pub(super) fn text(&self) -> &[u8] {
        &self.stored
    }

    /// Whether the line is longer than its stored part.
    pub(super) fn is_truncated(&self) -> bool {
        self.len > self.stored.len() as u64
    }

    /// Resets to an empty line.
    pub(super) fn clear(&mut self) {
        self.stored.clear();
        self.len = 0;
        self.cr = false;
    }
}

/// Offset of the first CR within the maximum stored length. Most lines are very short.
#[inline]
fn find_cr(data: &[u8]) -> Option<usize> {
    const NEAR: usize = 4;
    let data = &data[..data.len().min(MAX_LINE + 1)];
    let near = data.iter().take(NEAR).position(|b| *b == b'\r');
    near.or_else(|| Some(NEAR + memchr::memchr(b'\r', data.get(NEAR..)?)?))
}

/// Parses a line as a number.
///
/// # Errors
/// If it is not a number.
pub(super) fn number(line: &[u8]) -> Result<i64, Malformed> {
    let digit = |b: &u8| b.is_ascii_digit().then(|| i64::from(b - b'0'));
    let small = || line.iter().try_fold(0, |n, b| Some(10 * n + digit(b)?));
    // Up to this many digits cannot overflow.
    if let 1..=18 = line.len()
        && let Some(n) = small()
    {
        return Ok(n);
    }
    let text = std::str::from_utf8(line).ok();
    text.and_then(|t| t.parse().ok()).ok_or("number is none")
}

/// Appends to a text, up to its logged length.
#[inline]
pub(super) fn append(text: &mut Vec<u8>, part: &[u8]) {
    let available = MAX_KEPT.saturating_sub(text.len());
    text.extend_from_slice(&part[..part.len().min(available)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_both() {
        let mut line = Line::default();
        let mut data: &[u8] = b"a\rb\nc\r";
        assert_eq!(line.read(&mut data), Ok(false));
        let mut data: &[u8] = b"\nrest";
        assert_eq!(line.read(&mut data), Ok(true));
        assert_eq!((line.text(), data), (&b"a\rb\nc"[..], &b"rest"[..]));
        line.clear();
        let mut data: &[u8] = b"-12\r\n";
        assert_eq!(line.read(&mut data), Ok(true));
        assert_eq!(number(line.text()), Ok(-12));
    }

    #[test]
    fn whole_lines_are_as_those_in_pieces() {
        let long = [&b"1".repeat(MAX_LINE)[..], b"\r\n+"].concat();
        let longer = [b"1", &long[..]].concat();
        for (text, is_complete) in [
            (&b"\r\n+"[..], true),
            (b"5\r\n+", true),
            (b"12345\r\n+", true),
            (b"5\r", false),
            (b"5", false),
            (b"5\r6\r\n+", false),
            (&long, true),
            (&longer, false),
        ] {
            let mut data = text;
            let line = Line::default().take_complete(&mut data);
            assert_eq!(line.is_some(), is_complete);
            let (mut pieces, mut rest) = (Line::default(), text);
            if let Some(line) = line {
                assert_eq!(pieces.read(&mut rest), Ok(true));
                assert_eq!((line, data), (pieces.text(), rest));
                assert!(!pieces.is_truncated());
            } else {
                assert_eq!(data, text);
                pieces.read(&mut &text[..1]).unwrap();
                assert_eq!(pieces.take_complete(&mut &text[1..]), None);
            }
        }
    }

    #[test]
    fn numbers() {
        for text in
            ["", "-", "+7", "-7", "7", "x", "1x", "999999999999999999", "9223372036854775807"]
        {
            assert_eq!(number(text.as_bytes()).ok(), text.parse().ok(), "{text}");
        }
        assert!(number(b"9223372036854775808").is_err());
        assert!(number(b"\xff").is_err());
    }

    #[test]
    fn long_lines_are_cut_and_have_an_end() {
        let mut line = Line::default();
        let mut data: &[u8] = &[b'a'; 2 * MAX_LINE];
        assert_eq!(line.read(&mut data), Ok(false));
        assert_eq!(line.read(&mut &b"\r\n"[..]), Ok(true));
        assert!(line.is_truncated());
        assert_eq!(line.text(), [b'a'; MAX_LINE]);
        assert!(number(line.text()).is_err());
        line.clear();
        let long = vec![b'a'; MAX_LENGTH as usize + 1];
        assert!(line.read(&mut &long[..]).is_err());
    }
}
