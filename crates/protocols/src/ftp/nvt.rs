//! Splits the stream of a Telnet network virtual terminal (RFC 854), as on FTP's control connection, into lines.
//!
//! A line ends at LF, and a CR before it is removed. Telnet options are removed and ignored.

use crate::support::text::is_printable;

/// Maximum length of a line in bytes; a longer line is split into pieces of this length.
pub(super) const MAX_LINE: usize = 16 * 1024 * 1024 - 100;

const IAC: u8 = 255;
const SUBOPTION: u8 = 250;
const SUBOPTION_END: u8 = 240;

/// Splits one direction of a stream into lines.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// The incomplete line so far, without options and NULs.
    partial: Vec<u8>,
    /// The previous byte.
    last: u8,
    /// State of an incomplete Telnet option.
    option: Option<OptionState>,
    nul_dropped: bool,
    /// Weirds since the last call of [`take_weirds`](Self::take_weirds).
    weirds: Vec<LineWeird>,
}

/// Parser state within a Telnet option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionState {
    /// After IAC.
    Iac,
    /// After the code of an option with an argument.
    Argument,
    /// Within a subnegotiation; whether the previous byte was IAC.
    Suboption { iac: bool },
}

/// A weird in a line.
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
    /// Whether an incomplete line is buffered.
    pub(super) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether there are weirds since the last call of [`take_weirds`](Self::take_weirds).
    pub(super) fn has_weirds(&self) -> bool {
        !self.weirds.is_empty()
    }

    /// Takes the weirds since the last call.
    pub(super) fn take_weirds(&mut self) -> Vec<LineWeird> {
        std::mem::take(&mut self.weirds)
    }

    /// Splits `data` into lines and passes each to `handle`, which returns whether to continue. Returns
    /// the rest of the data.
    pub(super) fn push<'d>(
        &mut self,
        data: &'d [u8],
        mut handle: impl FnMut(&mut Vec<LineWeird>, &[u8]) -> bool,
    ) -> &'d [u8] {
        let mut rest = data;
        while !rest.is_empty() {
            if self.partial.is_empty() && self.option.is_none() && self.last != b'\r' {
                // Fast path: nearly all lines are within a chunk and plain text.
                if let Some(at) = memchr::memchr(b'\n', rest) {
                    let line = rest[..at].strip_suffix(b"\r").unwrap_or(&rest[..at]);
                    let plain =
                        is_printable(line) || memchr::memchr3(IAC, 0, b'\r', line).is_none();
                    if plain && line.len() < MAX_LINE {
                        rest = &rest[at + 1..];
                        self.last = b'\n';
                        if !handle(&mut self.weirds, line) {
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
                let continues = handle(&mut self.weirds, &line);
                // Reuse the buffer.
                self.partial = line;
                self.partial.clear();
                if !continues {
                    return rest;
                }
            }
        }
        rest
    }

    /// Processes one byte. Returns whether it ends a line.
    fn byte(&mut self, byte: u8) -> bool {
        if let Some(option) = self.option {
            self.option = self.option_byte(option, byte);
            return false;
        }
        if self.partial.len() >= MAX_LINE {
            // As in Zeek, the current byte and the last one of the piece are lost.
            self.weirds.push(LineWeird::TooLong);
            self.partial.pop();
            self.last = 0;
            return true;
        }
        let after_cr = self.last == b'\r';
        if after_cr && byte != b'\n' && byte != 0 && byte != IAC {
            self.weird_once(LineWeird::LoneCr);
        }
        match byte {
            b'\n' if after_cr => {
                self.last = byte;
                // Remove the CR, which may be missing if the line was split before it.
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
                self.option = Some(OptionState::Iac);
                return false;
            }
            _ => self.partial.push(byte),
        }
        self.last = byte;
        false
    }

    fn option_byte(&mut self, option: OptionState, byte: u8) -> Option<OptionState> {
        match (option, byte) {
            // An escaped IAC.
            (OptionState::Iac, IAC) => {
                self.partial.push(IAC);
                self.last = IAC;
                None
            }
            (OptionState::Iac, SUBOPTION) => Some(OptionState::Suboption { iac: false }),
            (OptionState::Iac, 251..=254) => Some(OptionState::Argument),
            (OptionState::Iac | OptionState::Argument, _) => None,
            (OptionState::Suboption { iac: true }, SUBOPTION_END) => None,
            (OptionState::Suboption { iac: true }, IAC) => {
                Some(OptionState::Suboption { iac: false })
            }
            // The byte that should have ended the subnegotiation starts the next option.
            (OptionState::Suboption { iac: true }, byte) => {
                self.option_byte(OptionState::Iac, byte)
            }
            (OptionState::Suboption { iac: false }, byte) => {
                Some(OptionState::Suboption { iac: byte == IAC })
            }
        }
    }

    fn weird_once(&mut self, weird: LineWeird) {
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
            let rest = terminal.push(chunk, |_, line| {
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
    fn options_are_removed() {
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
        Terminal::default().push(b"a\r\nb\0\nc\n", |weirds, line| {
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
        assert_eq!(t.push(b"a\nrest", |_, _| false), b"rest");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[a\r\n\0]{0,30}", iacs: Vec<u8>, at in 0usize..40) {
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
