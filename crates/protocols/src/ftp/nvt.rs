//! Lines out of a Telnet network virtual terminal (RFC 854), which FTP's control connection is.
//!
//! A line ends at LF, with the CR before it. Telnet's options are taken out; none of them matters
//! to FTP.

use crate::support::text::is_printable;

/// A longer line is passed on in pieces of this length.
pub(super) const MAX_LINE: usize = 16 * 1024 * 1024 - 100;

const IAC: u8 = 255;
const SUBOPTION: u8 = 250;
const SUBOPTION_END: u8 = 240;

/// Cuts one direction of a stream into lines.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// The beginning of a line, its options and NULs taken out.
    partial: Vec<u8>,
    last: u8,
    option: Option<Progress>,
    nul_dropped: bool,
    /// Weirds since they were last taken.
    weirds: Vec<LineWeird>,
}

/// How much of a telnet option has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// IAC was seen.
    Begun,
    /// The code of an option with an argument was seen.
    Argument,
    /// Within a suboption; whether its last byte was IAC.
    Suboption { iac: bool },
}

/// A weird of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineWeird {
    /// A CR that is not followed by LF or NUL.
    LoneCr,
    /// The first NUL.
    Nul,
    /// A line longer than the limit.
    TooLong,
}

impl Terminal {
    /// Whether the beginning of a line is waiting for its end.
    pub(super) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether there are weirds since the last call of [`take_weirds`](Self::take_weirds).
    pub(super) fn has_weirds(&self) -> bool {
        !self.weirds.is_empty()
    }

    /// The weirds since the last call.
    pub(super) fn take_weirds(&mut self) -> Vec<LineWeird> {
        std::mem::take(&mut self.weirds)
    }

    /// Splits `data` and passes every line to `give`, which returns whether to continue; returns
    /// the unread data.
    pub(super) fn feed<'d>(
        &mut self,
        data: &'d [u8],
        mut give: impl FnMut(&mut Vec<LineWeird>, &[u8]) -> bool,
    ) -> &'d [u8] {
        let mut rest = data;
        while !rest.is_empty() {
            if self.partial.is_empty() && self.option.is_none() && self.last != b'\r' {
                // Nearly always a line is within a chunk and only text.
                if let Some(at) = memchr::memchr(b'\n', rest) {
                    let line = rest[..at].strip_suffix(b"\r").unwrap_or(&rest[..at]);
                    let plain =
                        is_printable(line) || memchr::memchr3(IAC, 0, b'\r', line).is_none();
                    if plain && line.len() < MAX_LINE {
                        rest = &rest[at + 1..];
                        self.last = b'\n';
                        if !give(&mut self.weirds, line) {
                            return rest;
                        }
                        continue;
                    }
                }
            }
            let (&byte, after) = rest.split_first().unwrap_or((&0, &[]));
            rest = after;
            if self.byte(byte) {
                let line = std::mem::take(&mut self.partial);
                let go_on = give(&mut self.weirds, &line);
                // Its memory is used again.
                self.partial = line;
                self.partial.clear();
                if !go_on {
                    return rest;
                }
            }
        }
        rest
    }

    /// Takes one byte; whether it ends a line.
    fn byte(&mut self, byte: u8) -> bool {
        if let Some(option) = self.option {
            self.option = self.option_byte(option, byte);
            return false;
        }
        if self.partial.len() >= MAX_LINE {
            // The current byte is lost, and the last one of the piece.
            self.weirds.push(LineWeird::TooLong);
            self.partial.pop();
            self.last = 0;
            return true;
        }
        let after_cr = self.last == b'\r';
        if after_cr && byte != b'\n' && byte != 0 && byte != IAC {
            self.odd_once(LineWeird::LoneCr);
        }
        match byte {
            b'\n' if after_cr => {
                self.last = byte;
                // Without the CR, which may have been cut off with a piece of the line.
                return self.partial.pop().is_some();
            }
            b'\n' => {
                self.last = byte;
                return true;
            }
            0 if after_cr => {}
            0 if !self.nul_dropped => {
                self.nul_dropped = true;
                self.weirds.push(LineWeird::Nul);
            }
            IAC => {
                self.option = Some(Progress::Begun);
                return false;
            }
            _ => self.partial.push(byte),
        }
        self.last = byte;
        false
    }

    fn option_byte(&mut self, option: Progress, byte: u8) -> Option<Progress> {
        match (option, byte) {
            // An escaped IAC.
            (Progress::Begun, IAC) => {
                self.partial.push(IAC);
                self.last = IAC;
                None
            }
            (Progress::Begun, SUBOPTION) => Some(Progress::Suboption { iac: false }),
            (Progress::Begun, 251..=254) => Some(Progress::Argument),
            (Progress::Begun | Progress::Argument, _) => None,
            (Progress::Suboption { iac: true }, SUBOPTION_END) => None,
            (Progress::Suboption { iac: true }, IAC) => Some(Progress::Suboption { iac: false }),
            // What should have been the end begins the next option.
            (Progress::Suboption { iac: true }, byte) => self.option_byte(Progress::Begun, byte),
            (Progress::Suboption { iac: false }, byte) => {
                Some(Progress::Suboption { iac: byte == IAC })
            }
        }
    }

    fn odd_once(&mut self, weird: LineWeird) {
        if !self.weirds.contains(&weird) {
            self.weirds.push(weird);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(terminal: &mut Terminal, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for chunk in chunks {
            let rest = terminal.feed(chunk, |_, line| {
                out.push(line.to_vec());
                true
            });
            assert!(rest.is_empty());
        }
        out
    }

    #[test]
    fn line_ends() {
        let mut t = Terminal::default();
        assert_eq!(lines(&mut t, &[b"a\r\nb\nc\r", b"\n\n"]), [&b"a"[..], b"b", b"c", b""]);
        assert!(t.take_weirds().is_empty());
        assert_eq!(lines(&mut t, &[b"a\rb\r\n"]), [b"a\rb"]);
        assert_eq!(t.take_weirds(), [LineWeird::LoneCr]);
    }

    #[test]
    fn options_are_taken_out() {
        let mut t = Terminal::default();
        let text = b"\xff\xfd\x06A\xff\xf4\xff\xf2B\xff\xffC\xff\xfa\x01x\ny\xff\xf0D\r\n";
        assert_eq!(lines(&mut t, &[text]), [b"AB\xffCD"]);
    }

    #[test]
    fn the_first_nul_is_dropped() {
        let mut t = Terminal::default();
        assert_eq!(lines(&mut t, &[b"a\0b\0\r\0c\n"]), [b"ab\0\rc"]);
        assert_eq!(t.take_weirds(), [LineWeird::Nul]);
    }

    #[test]
    fn weirds_come_before_their_line() {
        let mut lines = Vec::new();
        Terminal::default().feed(b"a\r\nb\0\nc\n", |weirds, line| {
            lines.push((std::mem::take(weirds), line.to_vec()));
            true
        });
        let line = |text: &[u8]| text.to_vec();
        let nul = vec![LineWeird::Nul];
        assert_eq!(lines, [(vec![], line(b"a")), (nul, line(b"b")), (vec![], line(b"c"))]);
    }

    #[test]
    fn a_line_may_be_the_last() {
        let mut t = Terminal::default();
        assert_eq!(t.feed(b"a\nrest", |_, _| false), b"rest");
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(text in "[a\r\n\0]{0,30}", iacs: Vec<u8>, at in 0usize..40) {
            let mut bytes = text.into_bytes();
            for i in iacs {
                bytes.insert(usize::from(i) % (bytes.len() + 1), [IAC, SUBOPTION, SUBOPTION_END, 253, i][usize::from(i) % 5]);
            }
            let (a, b) = bytes.split_at(at.min(bytes.len()));
            let whole = lines(&mut Terminal::default(), &[&bytes]);
            prop_assert_eq!(lines(&mut Terminal::default(), &[a, b]), whole);
        }
    }
}
