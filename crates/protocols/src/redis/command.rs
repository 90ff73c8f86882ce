//! Parses commands of a client (sections "Sending commands to a Redis server" and "Inline
//! commands").

use super::token::Line;
use super::token::MAX_ELEMENTS;
use super::token::MAX_KEPT;
use super::token::MAX_LENGTH;
use super::token::append;
use super::token::number;

pub use super::token::Malformed;

/// Number of words of a command that are kept: later ones are not logged.
const MAX_WORDS: usize = 4;

/// A command: its first words, and their total number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The first words, or all of them for events, each truncated to its logged length. At least
    /// one.
    pub words: Vec<Vec<u8>>,
    /// Total number of words.
    pub count: u64,
}

impl Command {
    fn push(&mut self, word: &[u8], keep_all: bool) {
        if keep_all || self.words.len() < MAX_WORDS {
            self.words.push(word[..word.len().min(MAX_KEPT)].to_vec());
        }
        self.count += 1;
    }

    /// The command's name, as sent.
    pub fn name(&self) -> &[u8] {
        self.words.first().map_or(&[], |w| w)
    }

    /// The command's name in lower case.
    pub fn lower(&self) -> Name {
        Name::new(self.name())
    }

    /// The key that the command accesses.
    pub fn key(&self) -> Option<&[u8]> {
        self.words.get(key_at(self.lower().as_bytes())?).map(Vec::as_slice)
    }

    /// The value that the command writes to the key.
    pub fn value(&self) -> Option<&[u8]> {
        let has_value = matches!(
            self.lower().as_bytes(),
            b"append"
                | b"decrby"
                | b"expire"
                | b"expireat"
                | b"getbit"
                | b"getset"
                | b"hdel"
                | b"hget"
                | b"incrby"
                | b"move"
                | b"mset"
                | b"rename"
                | b"set"
        );
        self.words.get(2).filter(|_| has_value).map(Vec::as_slice)
    }
}

/// A command's name in lower case; empty if it is longer than that of any known command.
#[derive(Clone, Copy, Debug, Default)]
pub struct Name {
    bytes: [u8; 16],
    len: usize,
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let mut lower = Self::default();
        if let Some(bytes) = lower.bytes.get_mut(..name.len()) {
            bytes.copy_from_slice(name);
            bytes.make_ascii_lowercase();
            lower.len = name.len();
        }
        lower
    }

    /// The name as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Index of the word of a command that is the key.
pub(super) fn key_at(name: &[u8]) -> Option<usize> {
    match name {
        b"append" | b"bitcount" | b"bitfield" | b"bitfield_ro" | b"bitpos" | b"blpop"
        | b"brpop" | b"copy" | b"decr" | b"decrby" | b"del" | b"dump" | b"exists" | b"expire"
        | b"expireat" | b"expiretime" | b"get" | b"getbit" | b"getdel" | b"getex" | b"getrange"
        | b"getset" | b"hdel" | b"hget" | b"hset" | b"incr" | b"incrby" | b"keys" | b"mget"
        | b"move" | b"mset" | b"persist" | b"rename" | b"set" | b"strlen" | b"ttl" | b"type" => {
            Some(1)
        }
        // The destination key; the operation precedes it.
        b"bitop" => Some(2),
        // The first of several keys, after a timeout and their number.
        b"blmpop" => Some(3),
        _ => None,
    }
}

/// The next element expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextElement {
    #[default]
    Command,
    Inline,
    Count,
    Kind,
    Length,
    Content(u64),
    End,
}

/// Incremental parser of commands.
#[derive(Debug, Default)]
pub struct Commands {
    /// Whether to keep all words, not only those of rows.
    pub keep_all: bool,
    next: NextElement,
    line: Line,
    /// Number of words that are missing.
    left: u64,
    word: Vec<u8>,
    command: Command,
}

impl Commands {
    /// Whether a command has begun and is not complete.
    pub fn is_partial(&self) -> bool {
        self.next != NextElement::Command
    }

    /// Parses the next command and removes its bytes from `data`. `None` if it is incomplete: then
    /// all of `data` is consumed, and the next call continues the command.
    ///
    /// # Errors
    /// If the bytes are not a command. Nothing more can be parsed then.
    pub fn next(&mut self, data: &mut &[u8]) -> Result<Option<Command>, Malformed> {
        while let Some(&first) = data.first() {
            match self.next {
                NextElement::Command if first == b'*' => {
                    *data = &data[1..];
                    self.next = NextElement::Count;
                }
                NextElement::Command => self.next = NextElement::Inline,
                NextElement::Kind if first == b'$' => {
                    *data = &data[1..];
                    self.next = NextElement::Length;
                }
                NextElement::Kind => return Err("element of a command is not a string"),
                NextElement::Content(left) => {
                    let n = usize::try_from(left).map_or(data.len(), |n| n.min(data.len()));
                    append(&mut self.word, &data[..n]);
                    *data = &data[n..];
                    let left = left - n as u64;
                    self.next =
                        if left > 0 { NextElement::Content(left) } else { NextElement::End };
                }
                NextElement::Inline
                | NextElement::Count
                | NextElement::Length
                | NextElement::End => {
                    let complete = self.line.read(data)?;
                    if self.next == NextElement::Inline && self.line.is_truncated() {
                        return Err("inline command is too long");
                    }
                    if complete && self.line_ended()? {
                        return Ok(Some(std::mem::take(&mut self.command)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Ends a line. Returns whether the command is complete.
    fn line_ended(&mut self) -> Result<bool, Malformed> {
        match self.next {
            NextElement::Inline => {
                let Self { line, command, keep_all, .. } = self;
                split(line.text(), |word| command.push(word, *keep_all));
                self.next = NextElement::Command;
                if self.command.words.is_empty() {
                    return Err("command without a name");
                }
            }
            NextElement::Count => {
                self.left = match number(self.line.text())? {
                    n @ 1.. if n.unsigned_abs() <= MAX_ELEMENTS => n.unsigned_abs(),
                    1.. => return Err("command with too many elements"),
                    _ => return Err("command without a name"),
                };
                self.next = NextElement::Kind;
            }
            NextElement::Length => {
                self.word.clear();
                self.next = match number(self.line.text())? {
                    0 => NextElement::End,
                    n @ 1.. if n.unsigned_abs() <= MAX_LENGTH => {
                        NextElement::Content(n.unsigned_abs())
                    }
                    1.. => return Err("element of a command is too long"),
                    _ => return Err("word of a command is missing"),
                };
            }
            NextElement::End => {
                self.command.push(&self.word, self.keep_all);
                self.left -= 1;
                self.next = if self.left > 0 { NextElement::Kind } else { NextElement::Command };
            }
            NextElement::Command | NextElement::Kind | NextElement::Content(_) => {}
        }
        self.line.clear();
        Ok(self.next == NextElement::Command)
    }
}

/// Splits a line into words at spaces. Quoted words may contain spaces; the quotes are kept.
fn split(line: &[u8], mut word: impl FnMut(&[u8])) {
    let is_blank = |b: u8| matches!(b, 0 | b'\t' | b'\n' | b'\r' | b' ');
    let mut at = 0;
    loop {
        at += line[at..].iter().take_while(|b| is_blank(**b)).count();
        if at == line.len() {
            return;
        }
        let start = at;
        let mut quote = None;
        while let Some(&b) = line.get(at) {
            match quote {
                Some(q) if b == b'\\' && line.get(at + 1) == Some(&q) => at += 1,
                Some(q) if b == q => quote = None,
                Some(_) => {}
                None if matches!(b, b'"' | b'\'') => quote = Some(b),
                None if is_blank(b) => break,
                None => {}
            }
            at += 1;
        }
        word(&line[start..at]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::MAX_LINE;
    use super::*;
    use proptest::prelude::*;

    fn all(chunks: &[&[u8]]) -> Result<Vec<Command>, Malformed> {
        let (mut commands, mut out) = (Commands::default(), Vec::new());
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(c) = commands.next(&mut data)? {
                out.push(c);
            }
        }
        Ok(out)
    }

    fn parse_one(data: &[u8]) -> Command {
        all(&[data]).unwrap().remove(0)
    }

    #[test]
    fn lists_and_lines() {
        let c = parse_one(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n");
        assert_eq!(
            (c.name(), c.key(), c.value()),
            (&b"SET"[..], Some(&b"k"[..]), Some(&b"a\r\nb"[..]))
        );
        let c = parse_one(b"set  k\t\"a \\\" b\" 'x y'\r\n");
        assert_eq!((c.key(), c.value(), c.count), (Some(&b"k"[..]), Some(&b"\"a \\\" b\""[..]), 4));
        let c = parse_one(b"*1\r\n$4\r\nPING\r\n");
        assert_eq!((c.name(), c.key()), (&b"PING"[..], None));
        assert_eq!(parse_one(b"*2\r\n$3\r\nget\r\n$0\r\n\r\n").key(), Some(&b""[..]));
        assert_eq!(parse_one(b"bitop and d a b\r\n").key(), Some(&b"d"[..]));
        assert_eq!(parse_one(b"blmpop 1 2 a b\r\n").key(), Some(&b"a"[..]));
        let c =
            parse_one(b"*6\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n");
        assert_eq!((c.words.len(), c.count), (MAX_WORDS, 6));
    }

    #[test]
    fn long_words_are_cut() {
        let mut data = format!("*2\r\n$3\r\nGET\r\n${}\r\n", 100_000).into_bytes();
        data.extend([b'k'; 100_000]);
        data.extend(b"\r\n");
        assert_eq!(parse_one(&data).key(), Some(&[b'k'; MAX_KEPT][..]));
    }

    #[test]
    fn nonsense_is_none() {
        for wrong in [
            &b"\r\n"[..],
            b"*0\r\n",
            b"*-1\r\n",
            b"*x\r\n",
            b"*20001\r\n",
            b"*99999999999999999999\r\n",
            b"*1\r\n:3\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$1048577\r\n",
            &[b'a'; MAX_LINE + 10],
        ] {
            assert!(all(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(data: Vec<u8>, at: usize) {
            let words = b"*2\r\n$3\r\nget\r\n$2\r\n\r\n\r\nping now\r\n";
            let data = [&words[..], &data].concat();
            let (a, b) = data.split_at(at % (data.len() + 1));
            prop_assert_eq!(all(&[&data]), all(&[a, b]));
        }
    }
}
