//! One side of Telnet (RFC 854): lines, with its options taken out.

use super::MAX_LINE;

const IAC: u8 = 255;
const SUBOPTION: u8 = 250;
const SUBOPTION_END: u8 = 240;

/// What comes out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A line, without its end.
    Line(Vec<u8>),
    /// WILL, WON'T, DO or DON'T, and the option.
    Option(u8, u8),
    /// The option and what follows its number.
    Suboption(u8, Vec<u8>),
    /// The suboption that follows did not end as it should.
    BadEnd,
    /// The line that follows is too long: its end is another one.
    LongLine,
    /// A suboption is too long and dropped.
    LongOption,
}

/// How much of a telnet option has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// IAC was seen.
    Begun,
    /// WILL, WON'T, DO or DON'T was seen.
    Command(u8),
    /// Within a suboption: what it holds, and whether the last byte was IAC.
    Suboption(Vec<u8>, bool),
}

/// Cuts one direction of a stream into lines and options.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    line: Vec<u8>,
    last: u8,
    option: Option<Progress>,
    /// The highest bit of each byte is dropped: where the side agreed to send all eight, as in Zeek.
    pub(super) is_binary: bool,
}

impl Terminal {
    /// Whether a line or an option waits for its end.
    pub(super) fn has_partial(&self) -> bool {
        !self.line.is_empty() || self.option.is_some()
    }

    /// Takes a byte and gives what it completes.
    pub(super) fn byte(&mut self, byte: u8, out: &mut Vec<Item>) {
        match self.option.take() {
            Some(Progress::Begun) => self.command(byte),
            Some(Progress::Command(command)) => out.push(Item::Option(command, byte)),
            Some(Progress::Suboption(held, after_iac)) => {
                self.suboption(held, after_iac, byte, out);
            }
            None => self.text(byte, out),
        }
    }

    fn text(&mut self, byte: u8, out: &mut Vec<Item>) {
        if self.line.len() >= MAX_LINE {
            // The current byte is lost, and the last one of the line.
            self.line.pop();
            self.last = 0;
            return out.extend([Item::LongLine, Item::Line(std::mem::take(&mut self.line))]);
        }
        if byte == IAC {
            self.option = Some(Progress::Begun);
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

    /// The byte behind IAC.
    fn command(&mut self, byte: u8) {
        match byte {
            IAC => {
                self.line.push(IAC);
                self.last = IAC;
            }
            SUBOPTION => self.option = Some(Progress::Suboption(Vec::new(), false)),
            251..=254 => self.option = Some(Progress::Command(byte)),
            // A command of two bytes.
            _ => {}
        }
    }

    fn suboption(&mut self, mut held: Vec<u8>, after_iac: bool, byte: u8, out: &mut Vec<Item>) {
        if after_iac && byte != IAC {
            if byte != SUBOPTION_END {
                out.push(Item::BadEnd);
                // The IAC begins another option.
                self.command(byte);
            }
            if !held.is_empty() {
                out.push(Item::Suboption(held.remove(0), held));
            }
            return;
        }
        if held.len() >= MAX_LINE {
            self.line.clear();
            self.last = 0;
            return out.push(Item::LongOption);
        }
        let is_iac = byte == IAC && !after_iac;
        if !is_iac {
            held.push(byte);
        }
        self.option = Some(Progress::Suboption(held, is_iac));
    }
}

/// What one direction of a stream has, up to its end.
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
    fn options_are_taken_out() {
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
        fn any_bytes_are_read(data: Vec<u8>) {
            let _ = items(&data);
        }
    }
}
