//! Tokens to an expression, by recursive descent:
//!
//! ```text
//! chain     = term { (and | or) term }
//! term      = not term | "(" chain ")" | primitive
//! primitive = protocol | [src | dst] (host | net) ADDRESS
//!           | [tcp | udp] [src | dst] (port N | portrange A-B)
//! ```

use std::net::IpAddr;

use gannet_base::Addr;

use crate::Expr;
use crate::Op;
use crate::error::Error;
use crate::error::Problem;
use crate::lexer;
use crate::lexer::Kind;
use crate::lexer::Token;
use crate::primitive::Direction;
use crate::primitive::Network;
use crate::primitive::Primitive;
use crate::primitive::Transport;

/// Parentheses and negations inside of each other. Bounds the recursion here and in matching.
pub(crate) const MAX_NESTING: usize = 100;

pub(crate) fn parse(text: &str) -> Result<Option<Expr>, Error> {
    let mut parser = Parser { text, token: lexer::next(text, 0) };
    if parser.token.kind == Kind::End {
        return Ok(None);
    }
    let expr = parser.chain(0)?;
    if parser.token.kind == Kind::End {
        return Ok(Some(expr));
    }
    Err(parser.unexpected("and, or or the end"))
}

struct Parser<'a> {
    text: &'a str,
    /// The next token, not yet taken.
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Token<'a> {
        let taken = self.token;
        self.token = lexer::next(self.text, taken.at + taken.text.len());
        taken
    }

    fn take_word(&mut self, word: &str) -> bool {
        let there = self.token.kind == Kind::Word && self.token.text == word;
        if there {
            self.take();
        }
        there
    }

    fn chain(&mut self, depth: usize) -> Result<Expr, Error> {
        let first = self.term(depth)?;
        let mut rest = Vec::new();
        loop {
            let op = match self.token.kind {
                Kind::And => Op::And,
                Kind::Or => Op::Or,
                _ => break,
            };
            self.take();
            rest.push((op, self.term(depth)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    fn term(&mut self, depth: usize) -> Result<Expr, Error> {
        if depth > MAX_NESTING {
            return Err(self.error(Problem::Nesting, self.token));
        }
        match self.token.kind {
            Kind::Not => {
                self.take();
                Ok(Expr::Not(Box::new(self.term(depth + 1)?)))
            }
            Kind::Open => {
                self.take();
                let inner = self.chain(depth + 1)?;
                if self.token.kind != Kind::Close {
                    return Err(self.unexpected("and, or or ')'"));
                }
                self.take();
                Ok(inner)
            }
            Kind::Word => self.primitive().map(Expr::Primitive),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn primitive(&mut self) -> Result<Primitive, Error> {
        let first = self.token;
        let transport = match first.text {
            "tcp" => Some(Transport::Tcp),
            "udp" => Some(Transport::Udp),
            "icmp" => return Ok(self.protocol(Primitive::Icmp)),
            "icmp6" => return Ok(self.protocol(Primitive::Icmp6)),
            "ip" => return Ok(self.protocol(Primitive::Ip)),
            "ip6" => return Ok(self.protocol(Primitive::Ip6)),
            "arp" => return Ok(self.protocol(Primitive::Arp)),
            _ => None,
        };
        if let Some(transport) = transport {
            self.take();
            // A protocol by itself, or one that narrows a port down.
            if self.token.kind != Kind::Word {
                return Ok(Primitive::Transport(transport));
            }
        }
        let direction = self.direction();
        if self.take_word("port") {
            let port = self.port()?;
            return Ok(Primitive::Ports { transport, direction, from: port, to: port });
        }
        if self.take_word("portrange") {
            let (from, to) = self.port_range()?;
            return Ok(Primitive::Ports { transport, direction, from, to });
        }
        if transport.is_none() && self.take_word("host") {
            return Ok(Primitive::Net { direction, net: self.host()? });
        }
        if transport.is_none() && self.take_word("net") {
            return Ok(Primitive::Net { direction, net: self.net()? });
        }
        if transport.is_some() {
            return Err(self.unexpected("port or portrange"));
        }
        if direction != Direction::Either {
            return Err(self.unexpected("host, net, port or portrange"));
        }
        Err(self.beyond(first))
    }

    fn protocol(&mut self, primitive: Primitive) -> Primitive {
        self.take();
        primitive
    }

    fn direction(&mut self) -> Direction {
        if self.take_word("src") {
            Direction::Src
        } else if self.take_word("dst") {
            Direction::Dst
        } else {
            Direction::Either
        }
    }

    fn port(&mut self) -> Result<u16, Error> {
        match number(self.token.text) {
            Some(port) => {
                self.take();
                Ok(port)
            }
            None => Err(self.unexpected("a port from 0 to 65535")),
        }
    }

    fn port_range(&mut self) -> Result<(u16, u16), Error> {
        let range = self.token.text.split_once('-');
        match range.and_then(|(a, b)| number(a).zip(number(b))) {
            Some((a, b)) => {
                self.take();
                Ok((a.min(b), a.max(b)))
            }
            None => Err(self.unexpected("two ports from 0 to 65535, like 6000-6008")),
        }
    }

    fn host(&mut self) -> Result<Network, Error> {
        match self.token.text.parse::<IpAddr>() {
            Ok(addr) => {
                self.take();
                Ok(Network::new(of(addr), if addr.is_ipv4() { 32 } else { 128 }))
            }
            Err(_) => Err(self.unexpected("an IPv4 or IPv6 address")),
        }
    }

    fn net(&mut self) -> Result<Network, Error> {
        let parsed = self.token.text.split_once('/').and_then(|(addr, len)| {
            let addr = addr.parse::<IpAddr>().ok()?;
            let len = len.parse::<u8>().ok()?;
            (len <= if addr.is_ipv4() { 32 } else { 128 }).then(|| Network::new(of(addr), len))
        });
        let Some(net) = parsed else {
            return Err(self.unexpected("a network, like 10.0.0.0/8 or 2001:db8::/32"));
        };
        if net.has_host_bits() {
            return Err(self.error(Problem::HostBits { found: self.token.found() }, self.token));
        }
        self.take();
        Ok(net)
    }

    fn unexpected(&self, expected: &'static str) -> Error {
        if self.token.kind == Kind::Strange {
            return self.beyond(self.token);
        }
        self.error(Problem::Expected { expected, found: self.token.found() }, self.token)
    }

    fn beyond(&self, token: Token<'_>) -> Error {
        self.error(Problem::Beyond { found: token.found() }, token)
    }

    fn error(&self, problem: Problem, token: Token<'_>) -> Error {
        Error::new(problem, self.text, token.at, token.text.len())
    }
}

/// Decimal digits only: `parse` alone would take a sign.
fn number(text: &str) -> Option<u16> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn of(addr: IpAddr) -> Addr {
    match addr {
        IpAddr::V4(a) => Addr::v4(a.octets()),
        IpAddr::V6(a) => Addr::v6(a.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (String, usize) {
        let error = parse(text).unwrap_err();
        let message = error.problem().to_string();
        (message.split(" is beyond").next().unwrap_or_default().into(), error.column())
    }

    fn expected(what: &str, found: &str, column: usize) -> (String, usize) {
        (format!("expected {what}, found {found}"), column)
    }

    #[test]
    fn errors_say_what_was_expected_and_where() {
        let range = "two ports from 0 to 65535, like 6000-6008";
        let net = "a network, like 10.0.0.0/8 or 2001:db8::/32";
        assert_eq!(problem("tcp port 65536"), expected("a port from 0 to 65535", "'65536'", 10));
        assert_eq!(problem("port +80"), ("'+'".into(), 6));
        assert_eq!(problem("portrange 80"), expected(range, "'80'", 11));
        assert_eq!(problem("host"), expected("an IPv4 or IPv6 address", "the end", 5));
        assert_eq!(problem("host www"), expected("an IPv4 or IPv6 address", "'www'", 6));
        assert_eq!(problem("net 10.0.0.0"), expected(net, "'10.0.0.0'", 5));
        assert_eq!(problem("net ::/129"), expected(net, "'::/129'", 5));
        assert_eq!(
            problem("net 10.0.0.1/8"),
            ("'10.0.0.1/8' has bits set beyond its prefix length".into(), 5)
        );
        assert_eq!(problem("(tcp"), expected("and, or or ')'", "the end", 5));
        assert_eq!(problem("arp )"), expected("and, or or the end", "')'", 5));
        assert_eq!(problem("tcp host 10.0.0.1"), expected("port or portrange", "'host'", 5));
        assert_eq!(problem("src"), expected("host, net, port or portrange", "the end", 4));
        assert_eq!(problem("and tcp"), expected("an expression", "'and'", 1));
    }

    #[test]
    fn the_rest_of_the_language_is_beyond() {
        assert_eq!(problem("vlan 5"), ("'vlan'".into(), 1));
        assert_eq!(problem("tcp and greater 100"), ("'greater'".into(), 9));
        assert_eq!(problem("[0] = 5"), ("'['".into(), 1));
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |n: usize| format!("{}tcp{}", "(".repeat(n), ")".repeat(n));
        assert!(parse(&nested(MAX_NESTING)).is_ok());
        assert_eq!(parse(&nested(MAX_NESTING + 1)).unwrap_err().problem(), &Problem::Nesting);
        assert_eq!(parse(&"!".repeat(100_000)).unwrap_err().problem(), &Problem::Nesting);
    }
}
