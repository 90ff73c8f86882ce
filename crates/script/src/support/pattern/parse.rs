//! The syntax of patterns.
//!
//! The syntax is that of flex, with its peculiarities: a class is identified by its text and keeps the meaning
//! of its first occurrence; a flag ends with the innermost group of its kind; `""` quotes, even inside `(?i:`;
//! a byte beyond ASCII must be escaped outside of classes and quotes.

use std::collections::HashMap;

use super::nfa::{BEGIN, END, Fragment, Nfa, SymbolSet, TooLarge};

/// Parses patterns into one nondeterministic automaton.
#[derive(Debug, Default)]
pub(super) struct Parser {
    pub(super) nfa: Nfa,
    /// Classes by their text from `[` to `]`.
    classes: HashMap<Vec<u8>, SymbolSet>,
    ignore_case: bool,
    single_line: bool,
    pub(super) errors: Vec<Vec<u8>>,
    /// Whether the pattern is invalid; a bad escape alone does not make it so.
    failed: bool,
}

/// A fatal error, which ended parsing.
#[derive(Debug)]
pub(super) struct Fatal;

/// Maximum nesting depth of groups.
const MAX_DEPTH: usize = 5_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    Whole,
    Plain,
    IgnoreCase,
    SingleLine,
}

/// An open group.
struct OpenGroup {
    kind: Group,
    /// Alternatives before the current one.
    before: Option<Fragment>,
    /// The current alternative without its last part.
    series: Option<Fragment>,
    /// The last part of the current alternative, which `*` and other operators apply to.
    last: Option<Fragment>,
}

impl OpenGroup {
    fn new(kind: Group) -> Self {
        OpenGroup { kind, before: None, series: None, last: None }
    }
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Text<'_> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// A character of a pattern: a literal byte, or the value of an escape.
#[derive(Clone, Copy)]
enum Char {
    Raw(u8),
    Escape(u16),
}

impl Char {
    fn symbol(self) -> u16 {
        match self {
            Char::Raw(byte) => u16::from(byte),
            Char::Escape(symbol) => symbol,
        }
    }
}

impl Parser {
    /// Parses `text`; all errors are added to `errors`.
    pub(super) fn parse(&mut self, text: &[u8]) -> Result<Fragment, Fatal> {
        self.failed = false;
        let fragment = self.whole(&mut Text { bytes: text, at: 0 })?;
        if self.failed { Err(Fatal) } else { Ok(fragment) }
    }

    fn error(&mut self, text: &Text<'_>, message: &str) {
        let mut line = message.as_bytes().to_vec();
        line.extend_from_slice(b" (compiling pattern /");
        line.extend_from_slice(text.bytes);
        line.extend_from_slice(b"/)");
        self.errors.push(line);
        self.failed = true;
    }

    fn sized<T>(&mut self, text: &Text<'_>, made: Result<T, TooLarge>) -> Result<T, Fatal> {
        made.map_err(|TooLarge| {
            self.error(text, "pattern too large");
            Fatal
        })
    }

    fn whole(&mut self, text: &mut Text<'_>) -> Result<Fragment, Fatal> {
        let mut groups = vec![OpenGroup::new(Group::Whole)];
        loop {
            let Some(open) = groups.last_mut() else { return Err(Fatal) };
            let byte = match text.peek() {
                None | Some(b'\n') => {
                    return match groups.pop() {
                        Some(open) if open.kind == Group::Whole => self.alternative(text, &open),
                        _ => Err(Fatal),
                    };
                }
                Some(byte) => byte,
            };
            match byte {
                b'(' => {
                    let kind = match text.rest() {
                        [_, b'?', b'i' | b'I', b':', ..] => Group::IgnoreCase,
                        [_, b'?', b's' | b'S', b':', ..] => Group::SingleLine,
                        _ => Group::Plain,
                    };
                    self.ignore_case |= kind == Group::IgnoreCase;
                    self.single_line |= kind == Group::SingleLine;
                    text.at += if kind == Group::Plain { 1 } else { 4 };
                    if groups.len() >= MAX_DEPTH {
                        return Err(Fatal);
                    }
                    groups.push(OpenGroup::new(kind));
                    continue;
                }
                b')' => {
                    text.at += 1;
                    let open = match groups.pop() {
                        Some(open) if open.kind != Group::Whole => open,
                        _ => return Err(Fatal),
                    };
                    let fragment = self.alternative(text, &open)?;
                    match open.kind {
                        Group::IgnoreCase => self.ignore_case = false,
                        Group::SingleLine => self.single_line = false,
                        Group::Plain | Group::Whole => {}
                    }
                    if let Some(outer) = groups.last_mut() {
                        self.append(outer, fragment);
                    }
                    continue;
                }
                b'|' => {
                    text.at += 1;
                    let alternative = self.alternative(text, open)?;
                    *open = OpenGroup { before: Some(alternative), ..OpenGroup::new(open.kind) };
                    continue;
                }
                b'*' | b'+' | b'?' => {
                    text.at += 1;
                    let last = open.last.ok_or(Fatal)?;
                    let made = match byte {
                        b'*' => self.nfa.closure(last),
                        b'+' => self.nfa.repeat(last),
                        _ => self.nfa.optional(last),
                    };
                    open.last = Some(self.sized(text, made)?);
                    continue;
                }
                b'{' if matches!(text.rest(), [_, b'0'..=b'9', ..]) => {
                    text.at += 1;
                    // The count is parsed before the check whether an operand precedes it.
                    let (low, high) = self.bounds(text)?;
                    let last = open.last.ok_or(Fatal)?;
                    open.last = Some(self.counted(text, last, low, high)?);
                    continue;
                }
                b'{' => {
                    let named = name_in_braces(text.rest()).ok_or(Fatal)?;
                    text.at += named;
                    self.error(text, "undefined definition");
                    continue;
                }
                b'}' => return Err(Fatal),
                _ => {}
            }
            let fragment = self.single(text, byte)?;
            if let Some(open) = groups.last_mut() {
                self.append(open, fragment);
            }
        }
    }

    fn append(&mut self, open: &mut OpenGroup, fragment: Fragment) {
        let last = open.last.replace(fragment);
        open.series = match (open.series, last) {
            (Some(series), Some(last)) => Some(self.nfa.concatenate(series, last)),
            (series, last) => series.or(last),
        };
    }

    /// The alternative that ends here, joined with those before it. Only the first may be empty.
    fn alternative(&mut self, text: &Text<'_>, open: &OpenGroup) -> Result<Fragment, Fatal> {
        let series = match (open.series, open.last) {
            (Some(series), Some(last)) => self.nfa.concatenate(series, last),
            (None, Some(last)) => last,
            _ if open.before.is_some() => return Err(Fatal),
            _ => {
                let made = self.nfa.empty();
                self.sized(text, made)?
            }
        };
        match open.before {
            None => Ok(series),
            Some(before) => {
                let made = self.nfa.alternate(before, series);
                self.sized(text, made)
            }
        }
    }

    /// Parses one character, class, quoted string or end of string.
    fn single(&mut self, text: &mut Text<'_>, byte: u8) -> Result<Fragment, Fatal> {
        let made = match byte {
            b'^' => {
                text.at += 1;
                self.nfa.symbol(BEGIN)
            }
            b'$' => {
                text.at += 1;
                self.nfa.symbol(END)
            }
            b'.' => {
                text.at += 1;
                let mut any = SymbolSet::default();
                if !self.single_line {
                    any.insert(u16::from(b'\n'));
                }
                any.negate();
                self.nfa.set(any)
            }
            b'"' => {
                text.at += 1;
                return self.quoted(text);
            }
            b'[' if class_len(text.rest()).is_some() => {
                let set = self.class(text)?;
                self.nfa.set(set)
            }
            b'a'..=b'z' | b'A'..=b'Z' if self.ignore_case => {
                text.at += 1;
                let set = *self.classes.entry(vec![b'[', byte]).or_insert_with(|| {
                    let mut set = SymbolSet::default();
                    set.insert(u16::from(byte.to_ascii_lowercase()));
                    set.insert(u16::from(byte.to_ascii_uppercase()));
                    set
                });
                self.nfa.set(set)
            }
            _ => {
                let char = self.char(text);
                match char {
                    // flex treats bytes as signed.
                    Char::Raw(0x80..) => return Err(self.bad_symbol(text, i32::from(byte as i8))),
                    Char::Escape(symbol @ 0x8000..) => {
                        return Err(self.bad_symbol(text, i32::from(symbol as i16)));
                    }
                    // flex's number of the empty transition.
                    Char::Escape(259) => self.nfa.empty(),
                    Char::Escape(symbol @ 258..) => {
                        return Err(self.bad_symbol(text, i32::from(symbol)));
                    }
                    char => self.nfa.symbol(char.symbol()),
                }
            }
        };
        self.sized(text, made)
    }

    fn bad_symbol(&mut self, text: &Text<'_>, symbol: i32) -> Fatal {
        self.error(text, &format!("bad symbol {symbol}"));
        Fatal
    }

    /// Parses a character, which may be an escape.
    fn char(&mut self, text: &mut Text<'_>) -> Char {
        let (char, len) = match text.rest() {
            [b'\\', next, rest @ ..] if *next != b'\n' => match next {
                b'0'..=b'7' => {
                    let digits = 1 + rest.iter().take_while(|b| matches!(b, b'0'..=b'7')).count();
                    let octal = text.rest().iter().skip(1).take(digits.min(3));
                    let value =
                        octal.fold(0_u16, |value, digit| value << 3 | u16::from(digit - b'0'));
                    // Further digits belong to the escape and have no effect.
                    (Char::Escape(value), 1 + digits)
                }
                b'x' => match hex_pair(rest) {
                    Some(value) => (Char::Escape(u16::from(value)), 4),
                    None => {
                        // The digits are not consumed.
                        self.errors.push(b"bad hexadecimal escape: ".to_vec());
                        (Char::Escape(0), 2)
                    }
                },
                b'X' if hex_pair(rest).is_some() => (Char::Escape(u16::from(b'X')), 4),
                b'b' => (Char::Escape(0x08), 2),
                b'f' => (Char::Escape(0x0c), 2),
                b'n' => (Char::Escape(u16::from(b'\n')), 2),
                b'r' => (Char::Escape(u16::from(b'\r')), 2),
                b't' => (Char::Escape(u16::from(b'\t')), 2),
                b'a' => (Char::Escape(0x07), 2),
                b'v' => (Char::Escape(0x0b), 2),
                0x80.. => (Char::Escape(i16::from(*next as i8) as u16), 2),
                _ => (Char::Escape(u16::from(*next)), 2),
            },
            [byte, ..] => (Char::Raw(*byte), 1),
            [] => (Char::Raw(0), 0),
        };
        text.at += len;
        char
    }

    fn quoted(&mut self, text: &mut Text<'_>) -> Result<Fragment, Fatal> {
        let made = self.nfa.empty();
        let mut whole = self.sized(text, made)?;
        loop {
            match text.peek() {
                None => {
                    self.error(text, "missing quote");
                    return Ok(whole);
                }
                Some(b'"') => {
                    text.at += 1;
                    return Ok(whole);
                }
                Some(b'\n') => {
                    text.at += 1;
                    self.error(text, "bad character");
                }
                Some(_) => {
                    let symbol = byte_symbol(self.char(text));
                    let made = self.nfa.symbol(symbol);
                    let next = self.sized(text, made)?;
                    whole = self.nfa.concatenate(whole, next);
                }
            }
        }
    }

    /// Parses the bounds between braces, which begin with a digit.
    fn bounds(&mut self, text: &mut Text<'_>) -> Result<(u32, Option<Option<u32>>), Fatal> {
        let low = number(text);
        match self.brace(text)? {
            b'}' => Ok((low, None)),
            _ => {
                if matches!(text.peek(), Some(b'0'..=b'9')) {
                    let high = number(text);
                    if self.brace(text)? == b',' {
                        return Err(Fatal);
                    }
                    return Ok((low, Some(Some(high))));
                }
                if self.brace(text)? == b',' {
                    return Err(Fatal);
                }
                Ok((low, Some(None)))
            }
        }
    }

    /// Parses a comma or the closing brace; any other character is reported and treated as the brace.
    fn brace(&mut self, text: &mut Text<'_>) -> Result<u8, Fatal> {
        loop {
            let byte = text.peek().ok_or(Fatal)?;
            text.at += 1;
            match byte {
                b',' | b'}' => return Ok(byte),
                b'\n' => self.error(text, "bad character"),
                _ => {
                    self.error(text, "bad character inside {}'s");
                    return Ok(b'}');
                }
            }
        }
    }

    fn counted(
        &mut self,
        text: &Text<'_>,
        fragment: Fragment,
        low: u32,
        high: Option<Option<u32>>,
    ) -> Result<Fragment, Fatal> {
        let made = match high {
            // The fragment stays in the arena, unreachable.
            None | Some(Some(0)) if low == 0 => {
                self.nfa.empty().map(|nothing| Fragment::with_prefix(fragment, nothing))
            }
            None => self.nfa.counted(fragment, low, Some(low)),
            Some(None) if low == 0 => self.nfa.closure(fragment),
            Some(None) => self.nfa.counted(fragment, low, None),
            Some(Some(high)) if low > high => {
                self.error(text, "bad iteration values");
                Ok(fragment)
            }
            Some(Some(high)) => {
                let counted = self.nfa.counted(fragment, low.max(1), Some(high));
                match counted {
                    Ok(counted) if low == 0 => self.nfa.optional(counted),
                    counted => counted,
                }
            }
        };
        self.sized(text, made)
    }

    /// Parses a class in brackets.
    fn class(&mut self, text: &mut Text<'_>) -> Result<SymbolSet, Fatal> {
        let len = class_len(text.rest()).unwrap_or(1);
        let key = text.rest()[..len].to_vec();
        if let Some(set) = self.classes.get(&key) {
            let set = *set;
            text.at += len;
            if text.peek() != Some(b']') {
                self.error(text, "bad character class");
            }
            text.at += 1;
            return Ok(set);
        }
        text.at += 1;
        let mut negated = false;
        if text.peek() == Some(b'^') && !matches!(text.rest(), [_] | [_, b'\n', ..]) {
            text.at += 1;
            negated = true;
        }
        let mut set = SymbolSet::default();
        let mut first = true;
        loop {
            match text.peek() {
                None => {
                    self.error(text, "unterminated character class");
                    break;
                }
                Some(b']') if !first => {
                    text.at += 1;
                    break;
                }
                Some(b'\n') => {
                    text.at += 1;
                    self.error(text, "bad character");
                    continue;
                }
                Some(b'-') if !first && is_dash(text) => return Err(Fatal),
                Some(b'[') if named_len(text.rest()).is_some() => self.named(text, &mut set),
                Some(_) => {
                    let low = byte_symbol(self.char(text));
                    if is_dash(text) {
                        text.at += 1;
                        if text.peek() == Some(b'-') && is_dash(text)
                            || named_len(text.rest()).is_some()
                            || text.peek().is_none()
                        {
                            return Err(Fatal);
                        }
                        let high = byte_symbol(self.char(text));
                        self.range(text, &mut set, low, high);
                    } else {
                        self.insert(&mut set, low);
                    }
                }
            }
            first = false;
        }
        if negated {
            set.negate();
        }
        self.classes.insert(key, set);
        Ok(set)
    }

    fn insert(&mut self, set: &mut SymbolSet, symbol: u16) {
        set.insert(symbol);
        if let Some(byte) = letter(symbol).filter(|_| self.ignore_case) {
            set.insert(u16::from(byte.to_ascii_lowercase()));
            set.insert(u16::from(byte.to_ascii_uppercase()));
        }
    }

    fn range(&mut self, text: &Text<'_>, set: &mut SymbolSet, low: u16, high: u16) {
        if low > high {
            return self.error(text, "negative range in character class");
        }
        let letters = (letter(low), letter(high));
        if !self.ignore_case || letters == (None, None) {
            for symbol in low..=high {
                set.insert(symbol);
            }
            return;
        }
        match letters {
            (Some(low), Some(high)) if low.is_ascii_uppercase() == high.is_ascii_uppercase() => {
                for byte in low..=high {
                    set.insert(u16::from(byte.to_ascii_lowercase()));
                    set.insert(u16::from(byte.to_ascii_uppercase()));
                }
            }
            _ => self.error(text, "ambiguous case-insensitive character class"),
        }
    }

    /// Parses `[:alpha:]` and similar names.
    fn named(&mut self, text: &mut Text<'_>, set: &mut SymbolSet) {
        let len = named_len(text.rest()).unwrap_or(0);
        let name =
            text.rest().get(2..len.saturating_sub(2)).unwrap_or_default().to_ascii_lowercase();
        text.at += len;
        let is: fn(u8) -> bool = match name.as_slice() {
            b"alnum" => |b| b.is_ascii_alphanumeric(),
            b"alpha" => |b| b.is_ascii_alphabetic(),
            b"blank" => |b| b == b' ' || b == b'\t',
            b"cntrl" => |b| b.is_ascii_control(),
            b"digit" => |b| b.is_ascii_digit(),
            b"graph" => |b| b.is_ascii_graphic(),
            b"print" => |b| b == b' ' || b.is_ascii_graphic(),
            b"punct" => |b| b.is_ascii_punctuation(),
            b"space" => |b| matches!(b, b' ' | 0x09..=0x0d),
            b"xdigit" => |b| b.is_ascii_hexdigit(),
            b"lower" | b"upper" if self.ignore_case => |b| b.is_ascii_alphabetic(),
            b"lower" => |b| b.is_ascii_lowercase(),
            b"upper" => |b| b.is_ascii_uppercase(),
            _ => {
                self.error(text, "bad character class expression");
                |b| b.is_ascii_alphanumeric()
            }
        };
        for byte in 0..=127 {
            if is(byte) {
                set.insert(u16::from(byte));
            }
        }
    }
}

/// Whether the next `-` forms a range.
fn is_dash(text: &Text<'_>) -> bool {
    matches!(text.rest(), [b'-', next, ..] if !matches!(next, b']' | b'\n'))
}

/// The symbol of a character in a class or in quotes, where bytes beyond ASCII are literal.
fn byte_symbol(char: Char) -> u16 {
    match char {
        Char::Escape(symbol @ 0x8000..) => symbol & 0xff,
        char => char.symbol(),
    }
}

fn letter(symbol: u16) -> Option<u8> {
    u8::try_from(symbol).ok().filter(u8::is_ascii_alphabetic)
}

fn number(text: &mut Text<'_>) -> u32 {
    let mut value = 0_u32;
    while let Some(digit @ b'0'..=b'9') = text.peek() {
        value = value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
        text.at += 1;
    }
    value
}

fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    match bytes {
        [a, b, ..] => Some((digit(a)? << 4 | digit(b)?) as u8),
        _ => None,
    }
}

/// The length of `{name}`.
fn name_in_braces(bytes: &[u8]) -> Option<usize> {
    let inner = bytes.get(1..)?;
    let len =
        inner.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let first = inner.first()?;
    let named = first.is_ascii_alphabetic() || *first == b'_';
    (named && inner.get(len) == Some(&b'}')).then_some(len + 2)
}

/// The length of `[:name:]`.
fn named_len(bytes: &[u8]) -> Option<usize> {
    let inner = bytes.strip_prefix(b"[:")?;
    let len = inner.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    (len > 0 && inner.get(len..)?.starts_with(b":]")).then_some(len + 4)
}

/// The length of a class from `[` to its closing `]`; `None` if it is empty.
fn class_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let rest = bytes.get(at..)?;
        at += match rest {
            _ if named_len(rest).is_some() => named_len(rest)?,
            [b'\\', next, ..] if *next != b'\n' => 2,
            [] | [b'\\' | b'\n', ..] => break,
            [b']', ..] if at > 1 => break,
            _ => 1,
        };
    }
    (at > 1).then_some(at)
}
