//! Parses replies of a server (section "RESP protocol description").

use super::token::Line;
use super::token::MAX_ELEMENTS;
use super::token::MAX_KEPT;
use super::token::MAX_LENGTH;
use super::token::append;
use super::token::number;

pub use super::token::Malformed;

/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 20;

/// Whether only version 3 of the protocol has this type of value.
fn is_of_version_3(kind: u8) -> bool {
    matches!(kind, b'_' | b'#' | b',' | b'(' | b'!' | b'=' | b'%' | b'~' | b'>')
}

/// A value that a server sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Its type: the first byte.
    pub kind: u8,
    /// The value as text, truncated to its logged length: `[a, b]`, `{k: v}`, `(a, b)`, `null`,
    /// `T`.
    pub text: Vec<u8>,
    /// Whether its type exists only in version 3 of the protocol.
    pub version_3: bool,
    /// Attributes before the value, as text without brackets; truncated likewise.
    pub attributes: Option<Vec<u8>>,
}

impl Value {
    /// Whether it is an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self.kind, b'-' | b'!')
    }

    /// Whether it is a push message, which is not a reply to a command.
    pub fn is_push(&self) -> bool {
        self.kind == b'>'
    }
}

/// The next element expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextElement {
    #[default]
    Kind,
    /// A line, whose meaning depends on the type of the value.
    Line,
    Boolean,
    Content(u64),
    /// The line end after content.
    End,
}

/// An aggregate that is being parsed.
#[derive(Clone, Copy, Debug)]
struct Level {
    kind: u8,
    /// Number of values that are missing; a pair of a map counts as two.
    left: u64,
    count: u64,
}

/// Incremental parser of values.
#[derive(Debug, Default)]
pub struct Values {
    next: NextElement,
    kind: u8,
    line: Line,
    levels: Vec<Level>,
    /// Number of values in aggregates of the current value.
    elements: u64,
    /// Whether attributes were parsed that belong to the next value.
    has_attributes: bool,
    value: Value,
}

impl Values {
    /// Whether a value has begun and is not complete.
    pub fn is_partial(&self) -> bool {
        self.next != NextElement::Kind || self.has_attributes || !self.levels.is_empty()
    }

    /// Parses the next value and removes its bytes from `data`. `None` if it is incomplete: then
    /// all of `data` is consumed, and the next call continues the value.
    ///
    /// # Errors
    /// If the bytes are not a value. Nothing more can be parsed then.
    pub fn next(&mut self, data: &mut &[u8]) -> Result<Option<Value>, Malformed> {
        while let Some(&first) = data.first() {
            let complete = match self.next {
                NextElement::Kind => {
                    *data = &data[1..];
                    self.begin(first)?;
                    false
                }
                NextElement::Boolean => {
                    *data = &data[1..];
                    self.write(if first == b't' { b"T" } else { b"F" });
                    self.next = NextElement::End;
                    false
                }
                NextElement::Content(left) => {
                    let n = usize::try_from(left).map_or(data.len(), |n| n.min(data.len()));
                    self.write(&data[..n]);
                    *data = &data[n..];
                    let left = left - n as u64;
                    self.next =
                        if left > 0 { NextElement::Content(left) } else { NextElement::End };
                    false
                }
                NextElement::Line | NextElement::End => match self.line.take_complete(data) {
                    Some(line) => self.line_ended(line)?,
                    None if self.line.read(data)? => {
                        let mut line = std::mem::take(&mut self.line);
                        let complete = self.line_ended(line.text())?;
                        line.clear();
                        self.line = line;
                        complete
                    }
                    None => return Ok(None),
                },
            };
            if complete {
                self.elements = 0;
                return Ok(Some(std::mem::take(&mut self.value)));
            }
        }
        Ok(None)
    }

    /// Begins a value with its first byte.
    fn begin(&mut self, kind: u8) -> Result<(), Malformed> {
        let has_attributes = std::mem::take(&mut self.has_attributes);
        if self.levels.len() >= MAX_DEPTH {
            return Err("values nested too deeply");
        }
        self.next = match kind {
            b'#' => NextElement::Boolean,
            b'|' if has_attributes => return Err("attributes of attributes"),
            b'+' | b'-' | b':' | b',' | b'(' | b'_' | b'$' | b'!' | b'=' | b'*' | b'>' | b'~'
            | b'%' | b'|' => NextElement::Line,
            _ => return Err("unknown type of value"),
        };
        self.kind = kind;
        if self.levels.is_empty() {
            self.value.kind = kind;
            self.value.version_3 = has_attributes || is_of_version_3(kind);
        }
        // The separator from the previous value was written with the attributes.
        if !has_attributes && let Some(level) = self.levels.last_mut() {
            let (n, pairs) = (level.count, matches!(level.kind, b'%' | b'|'));
            level.count += 1;
            match n {
                0 => {}
                n if pairs && n % 2 == 1 => self.write(b": "),
                _ => self.write(b", "),
            }
        }
        Ok(())
    }

    /// Ends the line after the first byte, or the content. Returns whether the outermost value is
    /// complete.
    fn line_ended(&mut self, line: &[u8]) -> Result<bool, Malformed> {
        if self.next == NextElement::End {
            return Ok(self.end());
        }
        match self.kind {
            b'$' | b'!' | b'=' => match number(line)? {
                ..0 => return Ok(self.end()),
                0 => self.next = NextElement::End,
                n if n.unsigned_abs() <= MAX_LENGTH => {
                    self.next = NextElement::Content(n.unsigned_abs());
                }
                _ => return Err("string is too long"),
            },
            b'*' | b'>' | b'~' | b'%' | b'|' => return self.list(number(line)?),
            b'_' => {
                self.write(b"null");
                return Ok(self.end());
            }
            _ => {
                self.write(line);
                return Ok(self.end());
            }
        }
        Ok(false)
    }

    /// Begins an aggregate of `count` values.
    fn list(&mut self, count: i64) -> Result<bool, Malformed> {
        let count = match (count, self.kind) {
            (-1, b'*' | b'>') => 0,
            (n @ 0.., _) => n.unsigned_abs(),
            _ => return Err("list has a length below zero"),
        };
        if count > MAX_ELEMENTS - self.elements {
            return Err("aggregate with too many elements");
        }
        self.elements += count;
        let pairs = matches!(self.kind, b'%' | b'|');
        let left = if pairs { 2 * count } else { count };
        self.write(brackets(self.kind)[0]);
        self.levels.push(Level { kind: self.kind, left, count: 0 });
        if left > 0 {
            self.next = NextElement::Kind;
            return Ok(false);
        }
        Ok(self.close())
    }

    /// Ends a value. Returns whether the outermost value is complete.
    fn end(&mut self) -> bool {
        self.next = NextElement::Kind;
        match self.levels.last_mut() {
            None => true,
            Some(level) => {
                level.left -= 1;
                level.left == 0 && self.close()
            }
        }
    }

    /// Ends the innermost aggregate, and enclosing ones that are complete with it.
    fn close(&mut self) -> bool {
        self.next = NextElement::Kind;
        while let Some(level) = self.levels.pop() {
            if level.kind == b'|' {
                self.has_attributes = true;
                return false;
            }
            self.write(brackets(level.kind)[1]);
            match self.levels.last_mut() {
                None => return true,
                Some(outer) => {
                    outer.left -= 1;
                    if outer.left > 0 {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Appends to the text of the value, or to its attributes.
    fn write(&mut self, text: &[u8]) {
        if self.levels.first().is_some_and(|level| level.kind == b'|') {
            append(self.value.attributes.get_or_insert_default(), text);
            return;
        }
        if self.value.text.len() < MAX_KEPT && !in_attribute(&self.levels) {
            append(&mut self.value.text, text);
        }
    }
}

/// Whether an attribute is being parsed.
fn in_attribute(levels: &[Level]) -> bool {
    levels.iter().any(|l| l.kind == b'|')
}

fn brackets(kind: u8) -> [&'static [u8]; 2] {
    match kind {
        b'~' => [b"(", b")"],
        b'%' => [b"{", b"}"],
        b'|' => [b"", b""],
        _ => [b"[", b"]"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(chunks: &[&[u8]]) -> Result<Vec<Value>, Malformed> {
        let (mut values, mut out) = (Values::default(), Vec::new());
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(v) = values.next(&mut data)? {
                out.push(v);
            }
        }
        Ok(out)
    }

    fn text(data: &[u8]) -> String {
        let values = all(&[data]).unwrap();
        assert_eq!(values.len(), 1, "{values:?}");
        String::from_utf8(values[0].text.clone()).unwrap()
    }

    #[test]
    fn values_as_text() {
        for (data, is) in [
            (&b"+OK\r\n"[..], "OK"),
            (b"-ERR no\r\n", "ERR no"),
            (b":-5\r\n", "-5"),
            (b"$5\r\na\r\nbc\r\n", "a\r\nbc"),
            (b"$-1\r\n", ""),
            (b"$0\r\n\r\n", ""),
            (b"*-1\r\n", "[]"),
            (b"*0\r\n", "[]"),
            (b"*2\r\n*1\r\n:1\r\n$1\r\na\r\n", "[[1], a]"),
            (b"_\r\n", "null"),
            (b"#t\r\n", "T"),
            (b"#f\r\n", "F"),
            (b",1.5\r\n", "1.5"),
            (b"(123456789012345678901234567890\r\n", "123456789012345678901234567890"),
            (b"!5\r\nERR x\r\n", "ERR x"),
            (b"=7\r\ntxt:abc\r\n", "txt:abc"),
            (b"%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "{a: 1, b: []}"),
            (b"~2\r\n:1\r\n:2\r\n", "(1, 2)"),
            (b">2\r\n+a\r\n+b\r\n", "[a, b]"),
            (b"|1\r\n+k\r\n*1\r\n+v\r\n*2\r\n:1\r\n|0\r\n:2\r\n", "[1, 2]"),
        ] {
            assert_eq!(text(data), is);
        }
    }

    #[test]
    fn what_only_version_3_has() {
        let version_3 = |d: &[u8]| all(&[d]).unwrap()[0].version_3;
        assert!(!version_3(b"*1\r\n:1\r\n"));
        assert!(version_3(b"%0\r\n"));
        assert!(version_3(b"|0\r\n+OK\r\n"));
        assert!(!version_3(b"*1\r\n_\r\n"), "the outermost value counts");
    }

    #[test]
    fn texts_are_cut() {
        let mut data = b"*3\r\n$300\r\n".to_vec();
        data.extend([b'a'; 300]);
        data.extend(b"\r\n:1\r\n:2\r\n+next\r\n");
        let values = all(&[&data]).unwrap();
        assert_eq!(values[0].text, [&b"["[..], &[b'a'; 249]].concat());
        assert_eq!(values[1].text, b"next");
    }

    #[test]
    fn nonsense_is_none() {
        let deep = b"*1\r\n".repeat(MAX_DEPTH + 1);
        let many = b"*10000\r\n".repeat(3);
        for wrong in [
            &b"HTTP"[..],
            b":1\r\nx",
            b"*-2\r\n",
            b"%-1\r\n",
            b"*x\r\n",
            b"$1048577\r\n",
            b"*20001\r\n",
            b"|0\r\n|0\r\n",
            &deep,
            &many,
        ] {
            assert!(all(&[wrong]).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(data: Vec<u8>, at: usize) {
            let good = b"%1\r\n$1\r\na\r\n*2\r\n#t\r\n,1\r\n";
            let data = [&good[..], &data].concat();
            let (a, b) = data.split_at(at % (data.len() + 1));
            prop_assert_eq!(all(&[&data]), all(&[a, b]));
        }
    }
}
