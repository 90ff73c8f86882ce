//! Parser of signature files.

use std::rc::Rc;

use super::lex::{Lexer, Token};
use super::rules::*;

/// Parses the rules of a file and appends them to `rules`. Errors are reported to `names`, in Zeek's words;
/// after a syntax error the rest of the file is skipped. Returns whether there were no errors.
pub fn parse(
    file: &str,
    text: &[u8],
    native: bool,
    names: &mut dyn Names,
    rules: &mut Vec<Rule>,
) -> bool {
    let lexer = Lexer::new(text);
    let file: Rc<str> = file.into();
    let mut parser = Parser { lexer, peeked: None, file, native, names, valid: true };
    while let Some(rule) = parser.rule() {
        if rules.iter().any(|known| known.id == rule.id) {
            parser.error("rule defined twice");
        } else {
            rules.push(rule);
        }
    }
    parser.valid
}

/// Maximum number of values in a range.
const MAX_RANGE: u32 = 1 << 16;

struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Option<Token>,
    file: Rc<str>,
    native: bool,
    names: &'a mut dyn Names,
    valid: bool,
}

/// A syntax error, which ends a file.
struct Syntax;

type Parsed<T> = Result<T, Syntax>;

impl Parser<'_> {
    fn error(&mut self, text: &str) {
        let (file, line) = (self.file.clone(), self.lexer.line + 1);
        self.error_at(&file, line, text);
    }

    fn error_at(&mut self, file: &str, line: u32, text: &str) {
        self.valid = false;
        self.names.error(&format!("Error in signature ({file}:{line}): {text}"));
    }

    fn error_about(&mut self, text: &str, about: &str) {
        self.error(&format!("{text} ({about})"));
    }

    fn scan(&mut self) -> Token {
        let token = self.lexer.next();
        for (line, byte) in std::mem::take(&mut self.lexer.invalid) {
            let file = self.file.clone();
            let text = format!("unrecognized character in input ({})", char::from(byte));
            self.error_at(&file, line + 1, &text);
        }
        token
    }

    fn next(&mut self) -> Token {
        match self.peeked.take() {
            Some(token) => token,
            None => self.scan(),
        }
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.peeked = Some(token.clone());
        token
    }

    fn takes(&mut self, sign: u8) -> bool {
        let takes = self.peek() == Token::Sign(sign);
        if takes {
            self.peeked = None;
        }
        takes
    }

    fn sign(&mut self, sign: u8) -> Parsed<()> {
        if self.next() == Token::Sign(sign) { Ok(()) } else { Err(Syntax) }
    }

    fn name(&mut self) -> Parsed<String> {
        match self.next() {
            Token::Word(word) if !is_keyword(&word) => Ok(word),
            _ => Err(Syntax),
        }
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        match self.next() {
            Token::Compare(comparison) => Ok(comparison),
            _ => Err(Syntax),
        }
    }

    /// The next rule; `None` at the end and after an error.
    fn rule(&mut self) -> Option<Rule> {
        match self.next() {
            Token::End => return None,
            Token::Word(word) if word == "signature" => {}
            _ => return self.syntax(),
        }
        let Ok(id) = self.name() else { return self.syntax() };
        let mut rule = Rule {
            id: id.into(),
            file: self.file.clone(),
            line: self.lexer.line + 1,
            active: true,
            native: self.native,
            tests: Vec::new(),
            patterns: Vec::new(),
            requires: Vec::new(),
            conditions: Vec::new(),
            actions: Vec::new(),
        };
        if self.sign(b'{').is_err() {
            return self.syntax();
        }
        loop {
            match self.next() {
                Token::Sign(b'}') => return Some(rule),
                Token::Word(word) => {
                    if self.attribute(&word, &mut rule).is_err() {
                        return self.syntax();
                    }
                }
                _ => return self.syntax(),
            }
        }
    }

    fn syntax(&mut self) -> Option<Rule> {
        self.error("syntax error");
        None
    }

    fn attribute(&mut self, word: &str, rule: &mut Rule) -> Parsed<()> {
        if let Some(kind) = kind(word) {
            return self.pattern(kind, rule);
        }
        match word {
            "src-ip" => rule.tests.push(self.addresses(Field::Source)?),
            "dst-ip" => rule.tests.push(self.addresses(Field::Destination)?),
            // Ports of any transport protocol.
            "src-port" => rule.tests.push(self.transport(0)?),
            "dst-port" => rule.tests.push(self.transport(2)?),
            "ip-proto" => rule.tests.extend(self.protocol()?),
            "header" => rule.tests.push(self.header()?),
            "eval" => {
                let name = match self.peeked.take() {
                    Some(_) => return Err(Syntax),
                    None => self.lexer.global().ok_or(Syntax)?,
                };
                match self.names.condition(&name) {
                    Ok(number) => rule.conditions.push(Condition::Eval(number)),
                    Err(errors) => errors.iter().for_each(|text| self.error_about(text, &name)),
                }
            }
            "ip-options" => {
                self.list(|word| matches!(word, "lsrr" | "lsrre" | "rr" | "ssrr").then_some(0))?;
                rule.conditions.push(Condition::IpOptions);
            }
            "tcp-state" => {
                let states = self.list(state)?;
                rule.conditions.push(Condition::Tcp(states));
            }
            "udp-state" => {
                let states = self.list(state)?;
                if states & states::ESTABLISHED != 0 {
                    self.error("'established' is not a valid 'udp-state'");
                }
                rule.conditions.push(Condition::Udp(states));
            }
            "same-ip" => rule.conditions.push(Condition::SameIp),
            "payload-size" => {
                let comparison = self.comparison()?;
                let size = self.integer()?;
                rule.conditions.push(Condition::PayloadSize(PayloadSize { comparison, size }));
            }
            "requires-signature" => rule.requires.push(self.requires(false)?),
            "requires-reverse-signature" => rule.requires.push(self.requires(true)?),
            "active" => match self.next() {
                Token::Word(word) if word == "true" => rule.active = true,
                Token::Word(word) if word == "false" => rule.active = false,
                _ => return Err(Syntax),
            },
            "event" => rule.actions.extend(self.event()?),
            "enable" => {
                let Token::Text(text) = self.next() else { return Err(Syntax) };
                if let Some((analyzer, inner)) = self.analyzers(&text) {
                    rule.actions.push(Action::Enable { analyzer, inner });
                }
            }
            "disable" => {
                let Token::Text(text) = self.next() else { return Err(Syntax) };
                if let Some((analyzer, _)) = self.analyzers(&text) {
                    rule.actions.push(Action::Disable { analyzer });
                }
            }
            "file-mime" => rule.actions.push(self.mime()?),
            _ => return Err(Syntax),
        }
        Ok(())
    }

    fn test(field: Field, comparison: Comparison) -> Test {
        let (values, prefixes) = (Vec::new(), Vec::new());
        Test { field, offset: 0, size: 4, comparison, values, prefixes }
    }

    fn addresses(&mut self, field: Field) -> Parsed<Test> {
        let mut test = Self::test(field, self.comparison()?);
        loop {
            match self.next() {
                Token::Ip(ip, mask) => {
                    let base = crate::value::v4(ip.to_be_bytes());
                    let bits = u8::try_from(96 + mask.count_ones()).unwrap_or(128);
                    test.prefixes.push(Prefix { base, bits });
                }
                Token::Ip6(base, bits) => test.prefixes.push(Prefix { base, bits }),
                Token::Word(name) if !is_keyword(&name) => {
                    for value in self.globals(&name) {
                        match value {
                            Value::Subnet { base, bits } => {
                                test.prefixes.push(Prefix { base, bits });
                            }
                            Value::Number(_) | Value::Other => {
                                self.error("Wrong type of identifier");
                                break;
                            }
                        }
                    }
                }
                _ => return Err(Syntax),
            }
            if !self.takes(b',') {
                return Ok(test);
            }
        }
    }

    fn globals(&mut self, name: &str) -> Vec<Value> {
        match self.names.global(name) {
            Global::Missing => {
                self.error_about("unknown script-level identifier", name);
                Vec::new()
            }
            Global::Values(values) => values,
            Global::Text(_) => vec![Value::Other],
        }
    }

    fn transport(&mut self, offset: u32) -> Parsed<Test> {
        let mut test = Self::test(Field::Transport(Transport::Tcp), self.comparison()?);
        (test.offset, test.size) = (offset, 2);
        test.values = self.values()?;
        Ok(test)
    }

    fn protocol(&mut self) -> Parsed<Option<Test>> {
        let mut test = Self::test(Field::Protocol, self.comparison()?);
        if let Token::Word(word) = self.peek()
            && let Some(field) = field(&word)
        {
            self.peeked = None;
            // A protocol encapsulated in IP has its own headers, so it is not a test.
            let value = match field {
                Field::Transport(Transport::Icmp) => 1,
                Field::Transport(Transport::Tcp) => 6,
                Field::Transport(Transport::Udp) => 17,
                Field::Transport(Transport::Icmp6) => 58,
                _ => return Ok(None),
            };
            test.values.push(Masked { value, mask: u32::MAX });
            return Ok(Some(test));
        }
        test.values = self.values()?;
        Ok(Some(test))
    }

    fn header(&mut self) -> Parsed<Test> {
        let Token::Word(word) = self.next() else { return Err(Syntax) };
        let field = field(&word).ok_or(Syntax)?;
        self.sign(b'[')?;
        let offset = self.integer()?;
        let size = if self.takes(b':') { self.integer()? } else { 1 };
        self.sign(b']')?;
        let mask = if self.takes(b'&') { Some(self.integer()?) } else { None };
        let mut test = Self::test(field, self.comparison()?);
        (test.offset, test.size) = (offset, size);
        if !matches!(size, 1 | 2 | 4) {
            self.error("illegal size of a header test");
        }
        test.values = match mask {
            None => self.values()?,
            Some(mask) => match self.next() {
                Token::Number(value) | Token::Ip(value, _) => vec![Masked { value, mask }],
                _ => return Err(Syntax),
            },
        };
        Ok(test)
    }

    fn values(&mut self) -> Parsed<Vec<Masked>> {
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Number(first) => {
                    let last = match self.takes(b'-') {
                        false => first,
                        true => match self.next() {
                            Token::Number(last) => last,
                            _ => return Err(Syntax),
                        },
                    };
                    if last.saturating_sub(first) > MAX_RANGE {
                        self.error("a range has too many values");
                    } else {
                        let all = (first..=last).map(|value| Masked { value, mask: u32::MAX });
                        values.extend(all);
                    }
                }
                Token::Ip(value, mask) => values.push(Masked { value, mask }),
                Token::Word(name) if !is_keyword(&name) => self.named_values(&name, &mut values),
                _ => return Err(Syntax),
            }
            if !self.takes(b',') {
                return Ok(values);
            }
        }
    }

    fn named_values(&mut self, name: &str, to: &mut Vec<Masked>) {
        for value in self.globals(name) {
            match value {
                Value::Number(value) => to.push(Masked { value, mask: u32::MAX }),
                Value::Subnet { base, bits } => {
                    let [.., a, b, c, d] = base;
                    let is_v4 = base == crate::value::v4([a, b, c, d]) && bits >= 96;
                    if !is_v4 {
                        self.error("IPv6 subnets not supported");
                        continue;
                    }
                    let mask = u32::MAX.checked_shl(u32::from(128 - bits.min(128))).unwrap_or(0);
                    to.push(Masked { value: u32::from_be_bytes([a, b, c, d]) & mask, mask });
                }
                Value::Other => return self.error("Wrong type of identifier"),
            }
        }
    }

    fn integer(&mut self) -> Parsed<u32> {
        match self.next() {
            Token::Number(value) => Ok(value),
            Token::Word(name) if !is_keyword(&name) => Ok(match self.names.global(&name) {
                Global::Missing => {
                    self.error_about("unknown script-level identifier", &name);
                    0
                }
                Global::Values(values) if matches!(values[..], [Value::Number(_)]) => {
                    match values[..] {
                        [Value::Number(value)] => value,
                        _ => 0,
                    }
                }
                _ => {
                    self.error("Identifier must refer to integer");
                    0
                }
            }),
            _ => Err(Syntax),
        }
    }

    /// The string value of a global.
    fn named_text(&mut self, name: &str) -> Vec<u8> {
        match self.names.global(name) {
            Global::Text(text) => text,
            Global::Missing => {
                self.error_about("unknown script-level identifier", name);
                Vec::new()
            }
            Global::Values(_) => {
                self.error("Identifier must refer to string");
                Vec::new()
            }
        }
    }

    fn pattern(&mut self, kind: Kind, rule: &mut Rule) -> Parsed<()> {
        let mut depth = u64::MAX;
        if self.takes(b'[') {
            let offset = if self.peek() == Token::Sign(b':') { 0 } else { self.integer()? };
            if self.takes(b':') {
                if self.peek() != Token::Sign(b']') {
                    depth = u64::from(self.integer()?);
                }
            } else {
                depth = 1;
            }
            self.sign(b']')?;
            if offset > 0 {
                self.names.warning("Offsets are currently ignored for patterns");
            }
        }
        let text = match self.next() {
            Token::Pattern(text) => text,
            Token::Word(name) if !is_keyword(&name) => self.named_text(&name),
            _ => return Err(Syntax),
        };
        let line = self.lexer.line + 1;
        rule.patterns.push(RulePattern { kind, text: text.into(), depth, line });
        Ok(())
    }

    fn list(&mut self, bit: impl Fn(&str) -> Option<u8>) -> Parsed<u8> {
        let mut all = 0;
        loop {
            let Token::Word(word) = self.next() else { return Err(Syntax) };
            all |= bit(&word).ok_or(Syntax)?;
            if !self.takes(b',') {
                return Ok(all);
            }
        }
    }

    fn requires(&mut self, reverse: bool) -> Parsed<Requires> {
        let (negated, id) = match self.next() {
            Token::Sign(b'!') => (true, self.name()?),
            Token::Word(word) if !is_keyword(&word) => (false, word),
            _ => return Err(Syntax),
        };
        Ok(Requires { id: id.into(), reverse, negated })
    }

    fn event(&mut self) -> Parsed<Option<Action>> {
        let name = match self.next() {
            Token::Text(message) => {
                let event = self.names.event(None, true);
                let message = Some(message.into());
                return Ok(event.map(|event| Action::Event { event, message }));
            }
            Token::Word(name) if !is_keyword(&name) => name,
            _ => return Err(Syntax),
        };
        if let Token::Text(message) = self.peek() {
            self.peeked = None;
            let event = self.names.event(Some(&name), true);
            let message = Some(message.into());
            return Ok(event.map(|event| Action::Event { event, message }));
        }
        if !self.names.is_event(&name) {
            self.error_about("identifier is not an event", &name);
            return Ok(None);
        }
        let event = self.names.event(Some(&name), false);
        Ok(event.map(|event| Action::Event { event, message: None }))
    }

    fn analyzers(&mut self, text: &[u8]) -> Option<(Box<str>, Option<Box<str>>)> {
        let text = String::from_utf8_lossy(text);
        let (outer, inner) = match text.split_once(':') {
            Some((outer, inner)) => (outer, Some(inner)),
            None => (&*text, None),
        };
        let outer = self.names.analyzer(outer);
        let inner = inner.map(|inner| self.names.analyzer(inner));
        match inner {
            Some(inner) => Some((outer?, Some(inner?))),
            None => Some((outer?, None)),
        }
    }

    fn mime(&mut self) -> Parsed<Action> {
        let mime = match self.next() {
            Token::Text(text) => text,
            Token::Word(name) if !is_keyword(&name) => self.named_text(&name),
            _ => return Err(Syntax),
        };
        let mut strength = 0;
        if self.takes(b',') {
            let negative = self.takes(b'-');
            let Token::Number(number) = self.next() else { return Err(Syntax) };
            strength = if negative { -i64::from(number) } else { i64::from(number) };
        }
        Ok(Action::Mime { mime: mime.into(), strength })
    }
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "file-magic" => Kind::FileMagic,
        "payload" => Kind::Payload,
        "http-request" | "http" => Kind::HttpRequest,
        "http-request-body" => Kind::HttpRequestBody,
        "http-reply-body" | "http-body" => Kind::HttpReplyBody,
        "http-request-header" => Kind::HttpRequestHeader,
        "http-reply-header" => Kind::HttpReplyHeader,
        "ftp" => Kind::Ftp,
        "finger" => Kind::Finger,
        _ => return None,
    })
}

fn field(word: &str) -> Option<Field> {
    Some(match word {
        "ip" => Field::Ip,
        "ip6" => Field::Ip6,
        "icmp" => Field::Transport(Transport::Icmp),
        "icmp6" => Field::Transport(Transport::Icmp6),
        "tcp" => Field::Transport(Transport::Tcp),
        "udp" => Field::Transport(Transport::Udp),
        _ => return None,
    })
}

fn state(word: &str) -> Option<u8> {
    Some(match word {
        "established" => states::ESTABLISHED,
        "originator" => states::ORIGINATOR,
        "responder" => states::RESPONDER,
        "stateless" => states::STATELESS,
        _ => return None,
    })
}

/// Whether a word is a keyword, which cannot be a name.
fn is_keyword(word: &str) -> bool {
    let others = [
        "active",
        "disable",
        "dst-ip",
        "dst-port",
        "enable",
        "eval",
        "event",
        "false",
        "file-mime",
        "header",
        "ip-options",
        "ip-proto",
        "lsrr",
        "lsrre",
        "payload-size",
        "requires-reverse-signature",
        "requires-signature",
        "rr",
        "same-ip",
        "signature",
        "src-ip",
        "src-port",
        "ssrr",
        "tcp-state",
        "true",
        "udp-state",
    ];
    kind(word).is_some()
        || field(word).is_some()
        || state(word).is_some()
        || others.binary_search(&word).is_ok()
}
