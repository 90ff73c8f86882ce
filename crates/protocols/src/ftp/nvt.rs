//! Splits the stream of a Telnet network virtual terminal (RFC 854), as on FTP's control connection, into lines.
//!
//! A line ends at LF, and a CR before it is removed. Telnet options are removed and reported.

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
    /// Bytes of an incomplete suboption.
    suboption: Vec<u8>,
    nul_dropped: bool,
    lone_cr_noted: bool,
    /// Notes since the last call of [`take_notes`](Self::take_notes).
    notes: Vec<Note>,
    /// Whether binary transmission is active. As in Zeek, the highest bit of each byte is then cleared.
    pub(super) is_binary: bool,
}

/// Parser state within a Telnet option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionState {
    /// After IAC.
    Iac,
    /// After WILL, WON'T, DO or DON'T.
    Argument(u8),
    /// Within a subnegotiation; whether the previous byte was IAC.
    Suboption { iac: bool },
}

/// What a stream contains besides lines: Telnet options and weirds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The first CR that is not followed by LF or NUL.
    LoneCr,
    /// The first NUL.
    Nul,
    /// A line longer than the limit.
    TooLong,
    /// WILL, WON'T, DO or DON'T, and the option.
    Option(u8, u8),
    /// A suboption: the number of the option, and the data after it.
    Suboption(u8, Vec<u8>),
    /// The next suboption was not terminated correctly.
    BadEnd,
    /// A suboption longer than the limit, which is discarded.
    LongOption,
}

impl Terminal {
    /// Whether an incomplete line is buffered.
    pub(super) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Whether there are notes since the last call of [`take_notes`](Self::take_notes).
    pub(super) fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Takes the notes since the last call.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Splits `data` into lines and passes each to `handle`, which returns whether to continue. Returns
    /// the rest of the data.
    pub(super) fn push<'d>(
        &mut self,
        data: &'d [u8],
        mut handle: impl FnMut(&mut Vec<Note>, &[u8]) -> bool,
    ) -> &'d [u8] {
        let mut rest = data;
        while !rest.is_empty() {
            let is_text = self.option.is_none() && !self.is_binary;
            if self.partial.is_empty() && is_text && self.last != b'\r' {
                // Fast path: nearly all lines are within a chunk and plain text.
                if let Some(at) = memchr::memchr(b'\n', rest) {
                    let line = rest[..at].strip_suffix(b"\r").unwrap_or(&rest[..at]);
                    let plain =
                        is_printable(line) || memchr::memchr3(IAC, 0, b'\r', line).is_none();
                    if plain && line.len() < MAX_LINE {
                        rest = &rest[at + 1..];
                        self.last = b'\n';
                        if !handle(&mut self.notes, line) {
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
                let continues = handle(&mut self.notes, &line);
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
            self.notes.push(Note::TooLong);
            self.partial.pop();
            self.last = 0;
            return true;
        }
        let byte = if self.is_binary && byte != IAC { byte & 0x7f } else { byte };
        let after_cr = self.last == b'\r';
        let is_lone_cr = after_cr && byte != b'\n' && byte != 0 && byte != IAC;
        if is_lone_cr && !std::mem::replace(&mut self.lone_cr_noted, true) {
            self.notes.push(Note::LoneCr);
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
                self.notes.push(Note::Nul);
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
            (OptionState::Iac, SUBOPTION) => {
                self.suboption.clear();
                Some(OptionState::Suboption { iac: false })
            }
            (OptionState::Iac, 251..=254) => Some(OptionState::Argument(byte)),
            (OptionState::Iac, _) => None,
            (OptionState::Argument(command), option) => {
                self.notes.push(Note::Option(command, option));
                None
            }
            (OptionState::Suboption { iac: true }, IAC) => self.suboption_byte(IAC),
            (OptionState::Suboption { iac: true }, byte) => {
                if byte != SUBOPTION_END {
                    self.notes.push(Note::BadEnd);
                }
                if let Some((option, data)) = self.suboption.split_first() {
                    self.notes.push(Note::Suboption(*option, data.to_vec()));
                }
                self.suboption = Vec::new();
                // The byte that should have ended the subnegotiation starts the next option.
                if byte == SUBOPTION_END { None } else { self.option_byte(OptionState::Iac, byte) }
            }
            (OptionState::Suboption { iac: false }, IAC) => {
                Some(OptionState::Suboption { iac: true })
            }
            (OptionState::Suboption { iac: false }, byte) => self.suboption_byte(byte),
        }
    }

    fn suboption_byte(&mut self, byte: u8) -> Option<OptionState> {
        if self.suboption.len() >= MAX_LINE {
            self.suboption = Vec::new();
            self.partial.clear();
            self.last = 0;
            self.notes.push(Note::LongOption);
            return None;
        }
        self.suboption.push(byte);
        Some(OptionState::Suboption { iac: false })
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
        assert!(t.take_notes().is_empty());
        assert_eq!(lines(&mut t, &[b"a\rb\r\n"]), [b"a\rb"]);
        assert_eq!(t.take_notes(), [Note::LoneCr]);
    }

    #[test]
    fn options_are_removed() {
        let mut t = Terminal::default();
        let text = b"\xff\xfd\x06A\xff\xf4\xff\xf2B\xff\xffC\xff\xfa\x01x\ny\xff\xf0D\r\n";
        assert_eq!(lines(&mut t, &[text]), [b"AB\xffCD"]);
        let options = [Note::Option(253, 6), Note::Suboption(1, b"x\ny".to_vec())];
        assert_eq!(t.take_notes(), options);
        assert_eq!(lines(&mut t, &[b"\xff\xfa\x18\x01\xff", b"\xff\xff\xfd\x01a\n"]), [b"a"]);
        let suboption = Note::Suboption(24, b"\x01\xff".to_vec());
        assert_eq!(t.take_notes(), [Note::BadEnd, suboption, Note::Option(253, 1)]);
        t.is_binary = true;
        assert_eq!(lines(&mut t, &[b"\xe1\xff\xfb\x00\n"]), [b"a"]);
        assert_eq!(t.take_notes(), [Note::Option(251, 0)]);
    }

    #[test]
    fn a_suboption_that_is_too_long_is_discarded() {
        let mut t = Terminal::default();
        let long = [&b"a\xff\xfa"[..], &vec![1; MAX_LINE + 1], b"b\n"].concat();
        assert_eq!(lines(&mut t, &[&long]), [b"b"]);
        assert_eq!(t.take_notes(), [Note::LongOption]);
        assert_eq!(t.suboption.capacity(), 0);
    }

    #[test]
    fn the_first_nul_is_dropped() {
        let mut t = Terminal::default();
        assert_eq!(lines(&mut t, &[b"a\0b\0\r\0c\n"]), [b"ab\0\rc"]);
        assert_eq!(t.take_notes(), [Note::Nul]);
    }

    #[test]
    fn notes_come_before_their_line() {
        let mut lines = Vec::new();
        Terminal::default().push(b"a\r\nb\0\nc\n", |notes, line| {
            lines.push((std::mem::take(notes), line.to_vec()));
            true
        });
        let line = |text: &[u8]| text.to_vec();
        let nul = vec![Note::Nul];
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
