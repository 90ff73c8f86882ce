//! A file as a sequence of pieces: tokens, patterns, comments and directives, separated only by blanks.

use std::rc::Rc;

use crate::lexer::{Directive, LexError, Lexer, Op, Token, Word};

/// The kind of a piece.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A token.
    Token(Token),
    /// A pattern with its slashes and flags.
    Pattern,
    /// A comment up to the end of its line.
    Comment,
    /// A directive with its operand: a name, the rest of the line, a condition in parentheses.
    Directive(Directive),
}

/// A range of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// Its kind.
    pub kind: Kind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// Its line, counted from 1.
    pub line: u32,
}

impl Piece {
    /// Whether the piece is the operator `op`.
    #[must_use]
    pub fn is(&self, op: Op) -> bool {
        self.kind == Kind::Token(Token::Op(op))
    }

    /// The keyword, if the piece is one.
    #[must_use]
    pub fn word(&self) -> Option<Word> {
        if let Kind::Token(Token::Word(word)) = self.kind { Some(word) } else { None }
    }

    /// The bytes of the piece.
    #[must_use]
    pub fn text<'a>(&self, source: &'a [u8]) -> &'a [u8] {
        source.get(self.start..self.end).unwrap_or(&[])
    }
}

/// Text that cannot be split into tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotTokens {
    /// The line.
    pub line: u32,
    /// The error message.
    pub message: String,
}

/// The pieces of a file.
///
/// # Errors
/// The first text that is not a token.
pub fn pieces(source: &[u8]) -> Result<Vec<Piece>, NotTokens> {
    let text: Rc<[u8]> = source.into();
    let mut scan = Scan { source, lexer: Lexer::new(text), pieces: Vec::new(), last: 0 };
    while let Some((kind, start)) = scan.next()? {
        let end = scan.lexer.position();
        let line = scan.lexer.line();
        scan.add(Piece { kind, start, end, line });
    }
    scan.comments(source.len());
    Ok(scan.pieces)
}

struct Scan<'a> {
    source: &'a [u8],
    lexer: Lexer,
    pieces: Vec<Piece>,
    /// Offset after the last piece.
    last: usize,
}

impl Scan<'_> {
    fn next(&mut self) -> Result<Option<(Kind, usize)>, NotTokens> {
        let lexed = self.lexer.next_token();
        if let Some(LexError::Error(message) | LexError::Fatal(message)) = lexed.error {
            return Err(NotTokens { line: lexed.line, message });
        }
        let start = lexed.start as usize;
        // A directive or pattern has no comments inside.
        self.comments(start);
        let kind = match lexed.token {
            Token::End => return Ok(None),
            Token::Op(Op::Divide) if !self.is_after_operand() => {
                return match self.lexer.pattern() {
                    Ok(Some(_)) => Ok(Some((Kind::Pattern, start))),
                    Ok(None) => Err(self.wrong("pattern not terminated")),
                    Err(message) => Err(self.wrong(&message)),
                };
            }
            Token::Directive(directive) => {
                self.directive(directive)?;
                Kind::Directive(directive)
            }
            token => Kind::Token(token),
        };
        Ok(Some((kind, start)))
    }

    /// Scans the operand of a directive.
    fn directive(&mut self, directive: Directive) -> Result<(), NotTokens> {
        match directive {
            Directive::Load | Directive::LoadSigs | Directive::LoadPlugin | Directive::Unload => {
                self.lexer.word();
            }
            Directive::Prefixes | Directive::Deprecated | Directive::Pragma => {
                self.lexer.rest_of_line();
            }
            Directive::If | Directive::IfDef | Directive::IfNotDef => {
                let mut depth = 0_usize;
                loop {
                    let lexed = self.lexer.next_token();
                    match lexed.token {
                        Token::Op(Op::ParenLeft) => depth += 1,
                        Token::Op(Op::ParenRight) if depth <= 1 => break,
                        Token::Op(Op::ParenRight) => depth -= 1,
                        Token::End | Token::Bad => return Err(self.wrong("condition does not end")),
                        _ if depth == 0 => {
                            return Err(self.wrong("condition is not in parentheses"));
                        }
                        _ => {}
                    }
                }
            }
            Directive::Else
            | Directive::EndIf
            | Directive::Dir
            | Directive::FileName
            | Directive::Debug => {}
        }
        Ok(())
    }

    fn wrong(&self, message: &str) -> NotTokens {
        NotTokens { line: self.lexer.line(), message: message.to_owned() }
    }

    /// Whether the last piece ends an operand, so that a `/` divides.
    fn is_after_operand(&self) -> bool {
        let last =
            self.pieces.iter().enumerate().rev().find(|(_, piece)| piece.kind != Kind::Comment);
        let Some((at, piece)) = last else { return false };
        match &piece.kind {
            Kind::Pattern => true,
            Kind::Token(Token::Ident | Token::Literal(_)) => true,
            Kind::Token(Token::Op(Op::ParenRight | Op::BracketRight)) => true,
            // A bar after an operand that is not an operator closes a size.
            Kind::Token(Token::Op(Op::BitOr)) => closes_size(&self.pieces[..=at]),
            Kind::Directive(Directive::Dir | Directive::FileName) => true,
            _ => false,
        }
    }

    fn add(&mut self, piece: Piece) {
        self.last = piece.end;
        self.pieces.push(piece);
    }

    /// Adds the comments up to `end`.
    fn comments(&mut self, end: usize) {
        let Some(gap) = self.source.get(self.last..end) else { return };
        let mut offset = 0;
        while let Some(at) = memchr::memchr(b'#', &gap[offset..]) {
            let start = self.last + offset + at;
            let length =
                memchr::memchr(b'\n', &self.source[start..]).unwrap_or(self.source.len() - start);
            let mut stop = (start + length).min(end.max(start));
            while stop > start && self.source[stop - 1].is_ascii_whitespace() {
                stop -= 1;
            }
            let line = 1 + memchr::memchr_iter(b'\n', &self.source[..start]).count();
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            self.pieces.push(Piece { kind: Kind::Comment, start, end: stop, line });
            offset = start + length - self.last;
            if offset >= gap.len() {
                break;
            }
        }
        self.last = end;
    }
}

/// Whether the bar at the end of `pieces` closes a size: an odd number of bars precede it within its brackets.
fn closes_size(pieces: &[Piece]) -> bool {
    let mut depth = 0_usize;
    let mut bars = Vec::new();
    for (at, piece) in pieces.iter().enumerate().rev() {
        let Kind::Token(Token::Op(op)) = piece.kind else { continue };
        match op {
            Op::ParenRight | Op::BracketRight | Op::BraceRight => depth += 1,
            Op::ParenLeft | Op::BracketLeft | Op::BraceLeft if depth == 0 => break,
            Op::ParenLeft | Op::BracketLeft | Op::BraceLeft => depth -= 1,
            Op::Semicolon if depth == 0 => break,
            Op::BitOr if depth == 0 => bars.push(at),
            _ => {}
        }
    }
    let mut open = false;
    let mut closes = false;
    for at in bars.into_iter().rev() {
        let before = pieces[..at].iter().rev().find(|piece| piece.kind != Kind::Comment);
        // `closes` is whether the previous bar closed a size and so ends an operand.
        let operand = before.is_some_and(|piece| match &piece.kind {
            Kind::Pattern | Kind::Token(Token::Ident | Token::Literal(_)) => true,
            Kind::Token(Token::Op(Op::ParenRight | Op::BracketRight | Op::BraceRight)) => true,
            Kind::Token(Token::Op(Op::BitOr)) => closes,
            _ => false,
        });
        closes = operand && open;
        if closes {
            open = false;
        } else if !operand {
            open = true;
        }
    }
    closes
}

/// For each piece, whether it is a bar that opens (`Some(true)`) or closes (`Some(false)`) a size.
#[must_use]
pub fn sizes(pieces: &[Piece]) -> Vec<Option<bool>> {
    let mut open = vec![false];
    let mut operand = false;
    let mut found = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let mut bar = None;
        match &piece.kind {
            Kind::Comment => {}
            Kind::Token(Token::Op(op)) => {
                match op {
                    Op::ParenLeft | Op::BracketLeft | Op::BraceLeft => open.push(false),
                    Op::ParenRight | Op::BracketRight | Op::BraceRight if open.len() > 1 => {
                        open.pop();
                    }
                    Op::Semicolon => {
                        if let Some(open) = open.last_mut() {
                            *open = false;
                        }
                    }
                    Op::BitOr => {
                        if let Some(open) = open.last_mut() {
                            if operand && *open {
                                *open = false;
                                bar = Some(false);
                            } else if !operand {
                                *open = true;
                                bar = Some(true);
                            }
                        }
                    }
                    _ => {}
                }
                operand = match op {
                    Op::ParenRight | Op::BracketRight => true,
                    Op::BitOr => bar == Some(false),
                    _ => false,
                };
            }
            Kind::Pattern | Kind::Token(Token::Ident | Token::Literal(_)) => operand = true,
            Kind::Directive(Directive::Dir | Directive::FileName) => operand = true,
            Kind::Directive(_) | Kind::Token(_) => operand = false,
        }
        found.push(bar);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let pieces = pieces(text.as_bytes()).unwrap_or_default();
        pieces
            .iter()
            .map(|piece| String::from_utf8_lossy(piece.text(text.as_bytes())).into_owned())
            .collect()
    }

    #[test]
    fn slashes_divide_after_operands() {
        assert_eq!(kinds("a / b; c = /x y/i;"), ["a", "/", "b", ";", "c", "=", "/x y/i", ";"]);
        assert_eq!(kinds("|a| / 2"), ["|", "a", "|", "/", "2"]);
        assert_eq!(kinds("/a/ | /b c/"), ["/a/", "|", "/b c/"]);
    }

    #[test]
    fn comments_and_directives_are_pieces() {
        assert_eq!(
            kinds("# one\n@load a/b # two\n@if ( T && F )\nx # three\n"),
            ["# one", "@load a/b", "# two", "@if ( T && F )", "x", "# three"]
        );
    }
}
