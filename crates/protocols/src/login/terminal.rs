//! One side of Telnet (RFC 854): splits the stream into lines and options.

use super::MAX_LINE;

const IAC: u8 = 255;
const SUBOPTION: u8 = 250;
const SUBOPTION_END: u8 = 240;

/// An element of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A line, without its end.
    Line(Vec<u8>),
    /// WILL, WON'T, DO or DON'T, and the option.
    Option(u8, u8),
    /// A suboption: the number of the option, and the data after it.
    Suboption(u8, Vec<u8>),
    /// The next suboption was not terminated correctly.
    BadEnd,
    /// The next line was too long and is split.
    LongLine,
    /// A suboption was too long and is discarded.
    LongOption,
}

/// Parser state within a Telnet option.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OptionState {
    /// After IAC.
    Iac,
    /// After WILL, WON'T, DO or DON'T.
    Command(u8),
    /// Within a suboption: its bytes so far, and whether the previous byte was IAC.
    Suboption(Vec<u8>, bool),
}

/// Splits one direction of a stream into lines and options.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    line: Vec<u8>,
    last: u8,
    option: Option<OptionState>,
    /// Binary transmission is active. As in Zeek, the highest bit of each byte is then cleared.
    pub(super) is_binary: bool,
}

impl Terminal {
    /// Whether a line or an option is incomplete.
    pub(super) fn has_partial(&self) -> bool {
        !self.line.is_empty() || self.option.is_some()
    }

    /// Processes a byte and appends the elements that it completes.
    pub(super) fn byte(&mut self, byte: u8, out: &mut Vec<Item>) {
        match self.option.take() {
            Some(OptionState::Iac) => self.command(byte),
            Some(OptionState::Command(command)) => out.push(Item::Option(command, byte)),
            Some(OptionState::Suboption(data, after_iac)) => {
                self.suboption(data, after_iac, byte, out);
            }
            None => self.text(byte, out),
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<Item>) {
        if self.line.len() >= MAX_LINE {
            // As in Zeek, the current byte and the last one of the line are lost.
            self.line.pop();
            self.last = 0;
            return out.extend([Item::LongLine, Item::Line(std::mem::take(&mut self.line))]);
        }
        if byte == IAC {
            self.option = Some(OptionState::Iac);
            return;
        }
        let byte = if self.is_binary { byte & 0x7f } else { byte };
        let after_cr = std::mem::replace(&mut self.last, byte) == b'\r';
        match byte {
            b'\n' | 0 if after_cr => {}
            b'\r' | b'\n' => out.push(Item::Line(std::mem::take(&mut self.line))),
            _ => self.line.push(byte),
        }
    }

    /// Processes the byte after IAC.
    fn command(&mut self, byte: u8) {
        match byte {
            IAC => {
                self.line.push(IAC);
                self.last = IAC;
            }
            SUBOPTION => self.option = Some(OptionState::Suboption(Vec::new(), false)),
            251..=254 => self.option = Some(OptionState::Command(byte)),
            // A command of two bytes.
            _ => {}
        }
    }

    fn suboption(&mut self, mut data: Vec<u8>, after_iac: bool, byte: u8, out: &mut Vec<Item>) {
        if after_iac && byte != IAC {
            if byte != SUBOPTION_END {
                out.push(Item::BadEnd);
                // The IAC starts another option.
                self.command(byte);
            }
            if !data.is_empty() {
                out.push(Item::Suboption(data.remove(0), data));
            }
            return;
        }
        if data.len() >= MAX_LINE {
            self.line.clear();
            self.last = 0;
            return out.push(Item::LongOption);
        }
        let is_iac = byte == IAC && !after_iac;
        if !is_iac {
            data.push(byte);
        }
        self.option = Some(OptionState::Suboption(data, is_iac));
    }
}

/// Returns all elements of one direction of a stream.
pub fn items(data: &[u8]) -> Vec<Item> {
    let (mut terminal, mut out) = (Terminal::default(), Vec::new());
    data.iter().for_each(|byte| terminal.byte(*byte, &mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &[u8]) -> Item {
        Item::Line(text.to_vec())
    }

    #[test]
    fn lines_end_in_each_way() {
        let all = [line(b"a"), line(b"b"), line(b"c"), line(b""), line(b"d\0")];
        assert_eq!(items(b"a\r\nb\rc\n\nd\0\r\0e"), all);
    }

    #[test]
    fn options_are_removed() {
        let all =
            [Item::Option(251, 24), Item::Suboption(24, b"\0xterm\xff".to_vec()), line(b"ab\xff")];
        assert_eq!(
            items(b"a\xff\xfb\x18b\xff\xfa\x18\0xterm\xff\xff\xff\xf0\xff\xf1\xff\xff\r\n"),
            all
        );
        assert_eq!(items(b"\xff\xfa\xff\xf0"), []);
    }

    #[test]
    fn an_option_may_end_a_suboption() {
        let all = [Item::BadEnd, Item::Suboption(24, b"\x01".to_vec()), Item::Option(253, 1)];
        assert_eq!(items(b"\xff\xfa\x18\x01\xff\xfd\x01"), all);
    }

    #[test]
    fn long_lines_and_options_end() {
        let long = vec![b'x'; MAX_LINE + 1];
        let out = items(&long);
        assert_eq!(out[0], Item::LongLine);
        assert!(matches!(&out[1], Item::Line(line) if line.len() == MAX_LINE - 1));
        let option = [b"\xff\xfa", &long[..], b"\r\n"].concat();
        assert_eq!(items(&option), [Item::LongOption, line(b"")]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(data: Vec<u8>) {
            let _ = items(&data);
        }
    }
}
