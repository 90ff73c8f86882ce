//! Tokens to the syntax tree, by the rules of libpcap's grammar: `and` and `or` have equal
//! precedence, an identifier after one of them inherits the qualifiers of the previous primitive,
//! and `%` and `^` apply to everything to their right.

mod keys;

use crate::ast::{Arith, Expr, Id, Join, Primitive, Qualifiers, Relation, Value};
use crate::error::{Problem, Span};
use crate::keyword::{self, Word};
use crate::lexer::{self, Kind, Token};

/// Maximum nesting of parentheses, negations and indices.
const MAX_NESTING: usize = 128;

/// Maximum number of consecutive arithmetic operators without parentheses.
const MAX_OPERATORS: usize = 512;

/// The tree of a text; `None` if it is empty.
pub(crate) fn parse(text: &str) -> Result<Option<Expr>, Problem> {
    let tokens = lexer::lex(text)?;
    let mut partner = vec![0; tokens.len()];
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Sign("(") => open.push(i),
            Kind::Sign(")") => {
                if let Some(begin) = open.pop() {
                    partner[begin] = i;
                }
            }
            _ => (),
        }
    }
    let mut parser = Parser { text, tokens, partner, at: 0, depth: 0 };
    if parser.peek() == Kind::End {
        return Ok(None);
    }
    let (expr, _) = parser.expr(None)?;
    if parser.peek() == Kind::End { Ok(Some(expr)) } else { Err(parser.unexpected(JOIN)) }
}

/// The expected token in errors.
const JOIN: &str = "'and', 'or' or the end";
const PRIMITIVE: &str = "a primitive like 'tcp', 'port 80' or 'host 192.0.2.1'";
const NUMBER: &str = "a number";

type InheritedQualifiers = Option<Qualifiers>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// The closing parenthesis of each opening one; 0 if missing.
    partner: Vec<usize>,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Kind<'a> {
        self.ahead(0)
    }

    fn ahead(&self, n: usize) -> Kind<'a> {
        self.tokens.get(self.at + n).map_or(Kind::End, |t| t.kind)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(Span { at: self.text.len(), width: 0 }, |t| t.span)
    }

    fn next(&mut self) -> Kind<'a> {
        let kind = self.peek();
        self.at += 1;
        kind
    }

    fn take(&mut self, kind: Kind<'_>) -> bool {
        let there = self.peek() == kind;
        self.at += usize::from(there);
        there
    }

    fn need(&mut self, sign: &'static str) -> Result<(), Problem> {
        if self.take(Kind::Sign(sign)) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{sign}'")))
        }
    }

    fn number(&mut self) -> Result<u32, Problem> {
        match self.peek() {
            Kind::Number(n) => {
                self.at += 1;
                Ok(n)
            }
            _ => Err(self.unexpected(NUMBER)),
        }
    }

    fn unexpected(&self, expected: &str) -> Problem {
        let span = self.span();
        let hint = match self.peek() {
            // Names may contain hyphens: a subtraction needs blanks.
            Kind::Name(name) if name.starts_with("len-") => Some(name.replacen('-', " - ", 1)),
            Kind::Name(name) => keyword::nearest(name).map(str::to_owned),
            _ => None,
        };
        let message = "can't parse filter expression: syntax error".into();
        Problem { message, span, expected: Some(expected.to_owned()), hint }
    }

    /// Like [`Parser::unexpected`] for a missing identifier: suggests a backslash before a keyword.
    fn no_id(&self, expected: &str) -> Problem {
        let mut problem = self.unexpected(expected);
        if let Kind::Word(_) = self.peek() {
            let Span { at, width } = self.span();
            problem.hint = Some(format!("\\{}", &self.text[at..at + width]));
        }
        problem
    }

    fn nested<T>(
        &mut self,
        go: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.depth >= MAX_NESTING {
            let message = format!("parentheses and negations nest deeper than {MAX_NESTING}");
            return Err(Problem::new(message, self.span()));
        }
        self.depth += 1;
        let result = go(self);
        self.depth -= 1;
        result
    }

    /// The number of opening parentheses and negations ahead, and the closing parenthesis of the
    /// innermost.
    fn inside(&self) -> usize {
        let inner = self.tokens[self.at..].iter();
        inner.take_while(|t| matches!(t.kind, Kind::Sign("(" | "not"))).count()
    }

    /// Whether an identifier follows, possibly negated or in parentheses.
    fn identifier_comes(&self) -> bool {
        let n = self.inside();
        match self.ahead(n) {
            Kind::Name(_) | Kind::V4(_) | Kind::V6(_) | Kind::Mac(_) | Kind::Mac8(_) => true,
            Kind::Number(_) => {
                let mut behind = n + 1;
                while self.ahead(behind) == Kind::Sign(")") {
                    behind += 1;
                }
                !arithmetic(self.ahead(behind))
            }
            _ => false,
        }
    }

    fn join(&mut self) -> Option<Join> {
        if self.take(Kind::Sign("and")) {
            Some(Join::And)
        } else if self.take(Kind::Sign("or")) {
            Some(Join::Or)
        } else {
            None
        }
    }

    fn expr(
        &mut self,
        inherited: InheritedQualifiers,
    ) -> Result<(Expr, InheritedQualifiers), Problem> {
        let (first, mut inherited) = self.term(inherited)?;
        let mut rest = Vec::new();
        while let Some(join) = self.join() {
            let next = if self.identifier_comes() {
                self.id(inherited)?
            } else {
                let (next, q) = self.term(inherited)?;
                inherited = q;
                next
            };
            rest.push((join, next));
        }
        Ok((chain(first, rest), inherited))
    }

    fn term(
        &mut self,
        inherited: InheritedQualifiers,
    ) -> Result<(Expr, InheritedQualifiers), Problem> {
        let begin = self.at;
        match self.peek() {
            Kind::Sign("not") => self.nested(|p| {
                p.at += 1;
                let (inner, q) = p.term(inherited)?;
                Ok((Expr::Not(Box::new(inner)), q))
            }),
            Kind::Sign("(") if !self.arithmetic_comes() => self.nested(|p| {
                p.at += 1;
                let (inner, _) = p.expr(inherited)?;
                p.need(")")?;
                Ok((inner, inherited))
            }),
            Kind::Number(_) | Kind::Sign("-" | "(") | Kind::Word(Word::Key("len")) => {
                Ok((self.relation(begin)?, None))
            }
            Kind::Word(word) => self.primitive(word, begin),
            _ => Err(self.unexpected(PRIMITIVE)),
        }
    }

    /// Whether a parenthesis contains arithmetic: an operator follows its number.
    fn arithmetic_comes(&self) -> bool {
        let close = self.partner[self.at];
        close != 0 && self.tokens.get(close + 1).is_some_and(|t| arithmetic(t.kind))
    }

    fn leaf(&self, primitive: Primitive, begin: usize) -> Expr {
        Expr::Leaf(primitive, self.since(begin))
    }

    fn since(&self, begin: usize) -> Span {
        let last = self.tokens[self.at.max(begin + 1) - 1].span;
        let at = self.tokens[begin].span.at;
        Span { at, width: last.at + last.width - at }
    }

    fn relation(&mut self, begin: usize) -> Result<Expr, Problem> {
        let left = self.arith(0)?;
        let Some(relation) = self.comparison() else {
            return Err(self.unexpected("a comparison like '=', '!=' or '>'"));
        };
        let right = self.arith(0)?;
        Ok(self.leaf(Primitive::Relation(relation, Box::new(left), Box::new(right)), begin))
    }

    fn comparison(&mut self) -> Option<Relation> {
        let relation = match self.peek() {
            Kind::Sign(">") => Relation::Gt,
            Kind::Sign(">=") => Relation::Ge,
            Kind::Sign("=") => Relation::Eq,
            Kind::Sign("<=") => Relation::Le,
            Kind::Sign("<") => Relation::Lt,
            Kind::Sign("!=") => Relation::Ne,
            _ => return None,
        };
        self.at += 1;
        Some(relation)
    }

    fn arith(&mut self, min_precedence: u8) -> Result<Arith, Problem> {
        self.nested(|p| {
            let mut left = p.operand()?;
            let mut operators = 0;
            while let Kind::Sign(sign) = p.peek() {
                let level = match sign {
                    "|" => 1,
                    "&" => 2,
                    "<<" | ">>" => 3,
                    "+" | "-" => 4,
                    "*" | "/" => 5,
                    "%" | "^" => u8::MAX,
                    _ => break,
                };
                if level <= min_precedence {
                    break;
                }
                operators += 1;
                if operators > MAX_OPERATORS {
                    let message = format!("more than {MAX_OPERATORS} operators in a row");
                    return Err(Problem::new(message, p.span()));
                }
                p.at += 1;
                let right = p.arith(if level == u8::MAX { 0 } else { level })?;
                left = Arith::Binary(sign, Box::new(left), Box::new(right));
            }
            Ok(left)
        })
    }

    fn operand(&mut self) -> Result<Arith, Problem> {
        const UNARY: u8 = 6;
        match self.peek() {
            Kind::Number(n) => {
                self.at += 1;
                Ok(Arith::Number(n))
            }
            Kind::Sign("-") => {
                self.at += 1;
                Ok(Arith::Neg(Box::new(self.arith(UNARY)?)))
            }
            Kind::Sign("(") => {
                self.at += 1;
                let inner = self.arith(0)?;
                self.need(")")?;
                Ok(inner)
            }
            Kind::Word(Word::Key("len")) => {
                self.at += 1;
                Ok(Arith::Len)
            }
            Kind::Word(Word::Proto(proto)) => {
                self.at += 1;
                self.need("[")?;
                let offset = self.arith(0)?;
                let size = if self.take(Kind::Sign(":")) { self.number()? } else { 1 };
                self.need("]")?;
                Ok(Arith::Load(proto, Box::new(offset), size))
            }
            _ => Err(self.unexpected("a number, 'len' or bytes of a header like 'tcp[13]'")),
        }
    }

    fn primitive(
        &mut self,
        word: Word,
        begin: usize,
    ) -> Result<(Expr, InheritedQualifiers), Problem> {
        let mut proto = None;
        if let Word::Proto(name) = word {
            if self.ahead(1) == Kind::Sign("[") {
                return Ok((self.relation(begin)?, None));
            }
            self.at += 1;
            proto = Some(name);
        }
        let found = match self.peek() {
            Kind::Word(Word::Dir(dir)) => {
                self.at += 1;
                let dir = Some(self.direction(dir)?);
                let of = match self.peek() {
                    Kind::Word(Word::Type(of @ ("host" | "net" | "port" | "portrange"))) => {
                        self.at += 1;
                        Some(of)
                    }
                    _ => None,
                };
                return self.head(Qualifiers { proto, dir, of });
            }
            Kind::Word(Word::Type(of)) => {
                self.at += 1;
                return self.head(Qualifiers { proto, dir: None, of: Some(of) });
            }
            Kind::Word(Word::Key(key)) => match key {
                "broadcast" | "multicast" | "type" | "subtype" | "dir" => {
                    self.at += 1;
                    self.protocol_key(key, proto)?
                }
                _ if proto.is_some() => Primitive::Proto(proto.unwrap_or_default()),
                _ => {
                    self.at += 1;
                    self.key(key)?
                }
            },
            _ => match proto {
                Some(name) => Primitive::Proto(name),
                None => return Err(self.unexpected(PRIMITIVE)),
            },
        };
        Ok((self.leaf(found, begin), None))
    }

    /// `src or dst` and the like.
    fn direction(&mut self, first: &'static str) -> Result<&'static str, Problem> {
        let other = match first {
            "src" => "dst",
            "dst" => "src",
            _ => return Ok(first),
        };
        let both = match self.peek() {
            Kind::Sign("or") => "src or dst",
            Kind::Sign("and") => "src and dst",
            _ => return Ok(first),
        };
        self.at += 1;
        if self.take(Kind::Word(Word::Dir(other))) {
            Ok(both)
        } else {
            Err(self.unexpected(&format!("'{other}'")))
        }
    }

    fn head(&mut self, qualifiers: Qualifiers) -> Result<(Expr, InheritedQualifiers), Problem> {
        let inherited = Some(qualifiers);
        if self.peek() == Kind::Name("in")
            && matches!(self.ahead(1), Kind::Sign("{") | Kind::File(_))
        {
            return Ok((self.among(qualifiers)?, inherited));
        }
        Ok((self.id(inherited)?, inherited))
    }

    /// `in {A, B, …}` or `in @NAME`.
    fn among(&mut self, qualifiers: Qualifiers) -> Result<Expr, Problem> {
        let begin = self.at;
        self.at += 1;
        let mut items = Vec::new();
        if let Kind::File(name) = self.peek() {
            self.at += 1;
            items.push(Id::File(name.to_owned()));
        } else {
            self.need("{")?;
            loop {
                items.push(self.item(subject(qualifiers.of))?);
                if !self.take(Kind::Sign(",")) {
                    break;
                }
            }
            self.need("}")?;
        }
        Ok(self.leaf(Primitive::Among(qualifiers, items), begin))
    }

    /// An element of a list: an identifier, or a range of two with `-` between.
    fn item(&mut self, what: &str) -> Result<Id, Problem> {
        if let Kind::File(name) = self.peek() {
            self.at += 1;
            return Ok(Id::File(name.to_owned()));
        }
        let begin = self.span();
        let first = self.plain_id(what)?;
        if !self.take(Kind::Sign("-")) {
            return Ok(first);
        }
        self.plain_id(what)?;
        let end = self.tokens[self.at - 1].span;
        Ok(Id::Name(self.text[begin.at..end.at + end.width].to_owned()))
    }

    fn id(&mut self, inherited: InheritedQualifiers) -> Result<Expr, Problem> {
        let begin = self.at;
        let id = match self.peek() {
            Kind::Sign("not") => {
                return self.nested(|p| {
                    p.at += 1;
                    Ok(Expr::Not(Box::new(p.id(inherited)?)))
                });
            }
            Kind::Sign("(") => {
                return self.nested(|p| {
                    p.at += 1;
                    let first = p.id(inherited)?;
                    let mut rest = Vec::new();
                    while let Some(join) = p.join() {
                        rest.push((join, p.id(inherited)?));
                    }
                    p.need(")")?;
                    Ok(chain(first, rest))
                });
            }
            _ => self.plain_id(subject(inherited.and_then(|q| q.of)))?,
        };
        Ok(self.leaf(Primitive::Id(inherited, id), begin))
    }

    /// An identifier without parentheses and negations.
    fn plain_id(&mut self, what: &str) -> Result<Id, Problem> {
        let id = match self.peek() {
            Kind::Name(name) => Id::Name(name.to_owned()),
            Kind::Number(n) => Id::Number(n),
            Kind::Mac(mac) => Id::Mac(mac.to_owned()),
            Kind::Mac8(mac) => Id::Mac8(mac.to_owned()),
            Kind::V4(v4) if self.ahead(1) == Kind::Sign("/") => {
                self.at += 2;
                let length = self.number()?;
                self.at -= 1;
                Id::V4Prefix(v4.to_owned(), length)
            }
            Kind::V4(v4) if self.ahead(1) == Kind::Word(Word::Key("mask")) => {
                self.at += 2;
                let Kind::V4(mask) = self.peek() else {
                    return Err(self.unexpected("a mask like 255.255.255.0"));
                };
                Id::V4Mask(v4.to_owned(), mask.to_owned())
            }
            Kind::V4(v4) => Id::V4(v4.to_owned()),
            Kind::V6(v6) if self.ahead(1) == Kind::Sign("/") => {
                self.at += 2;
                let length = self.number()?;
                self.at -= 1;
                Id::V6Prefix(v6.to_owned(), length)
            }
            Kind::V6(v6) => Id::V6(v6.to_owned()),
            _ => return Err(self.no_id(what)),
        };
        self.at += 1;
        Ok(id)
    }

    fn value(&mut self) -> Result<Value, Problem> {
        let value = match self.peek() {
            Kind::Number(n) => Value::Number(n),
            Kind::Name(name) => Value::Name(name.to_owned()),
            _ => return Err(self.unexpected("a number or a name")),
        };
        self.at += 1;
        Ok(value)
    }

    fn name(&mut self) -> Result<Value, Problem> {
        match self.peek() {
            Kind::Name(_) => self.value(),
            _ => Err(self.unexpected("a name")),
        }
    }
}

fn chain(first: Expr, rest: Vec<(Join, Expr)>) -> Expr {
    if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) }
}

/// The description of identifiers of a kind, in errors.
fn subject(of: Option<&str>) -> &'static str {
    match of {
        None | Some("host") => "an address or the name of a host",
        Some("net") => "a network or its name",
        Some("port") => "a port or the name of a service",
        Some("portrange") => "a range of ports like 8000-8100",
        Some("gateway") => "the name of a host",
        Some(_) => "a protocol's number, or its name behind a backslash",
    }
}

/// Whether the next token makes the number before it arithmetic.
fn arithmetic(kind: Kind<'_>) -> bool {
    matches!(
        kind,
        Kind::Sign(
            "+" | "-"
                | "*"
                | "/"
                | "%"
                | "&"
                | "|"
                | "^"
                | "<<"
                | ">>"
                | ">"
                | ">="
                | "="
                | "<="
                | "<"
                | "!="
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_and_refused() {
        for good in [
            "",
            "tcp port 80 or 443",
            "host 1.2.3.4 and (port 80 or 443)",
            "port (80 or 443)",
            "port not 80",
            "(ip[0] & 1) = 1",
            "((ip[0] & 1) = 1)",
            "vlan (10) and ip",
            "(1) = (1)",
            "not (tcp or udp)",
            "ip[2:2] - ((ip[0]&0xf)<<2) != 0",
            "src or dst net 10",
            "7 % 4 + 1 = 2",
            "vci (5 or 16)",
            "wlan type mgt subtype beacon",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in
            ["TCP", "len-4 > 0", "proto tcp", "src proto 1", "(tcp", "1", "tcp 80", "net 10/8"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"(".repeat(100_000)).is_err());
        assert!(parse(&"not ".repeat(100_000)).is_err());
        assert!(parse(&format!("1 {} = 1", "+ ip[0] ".repeat(100_000))).is_err());
    }
}
