//! Blanks between two tokens of a line.

use crate::lexer::{Op, Token, Word};
use crate::tools::tokens::{Kind, Piece};

/// The role of a bracket within a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bracket {
    /// The condition of `if`, `for` and so on.
    Header,
    /// Arguments or parameters.
    Call,
    /// Parentheses around an expression.
    Group,
    /// `[ … ]`.
    Square,
    /// `{ … }`.
    Brace,
}

/// Blanks between two tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spacing {
    /// No blank.
    None,
    /// One blank; more if the source has more, to align columns.
    One,
    /// The blanks of the source.
    Keep,
}

/// The state at a token.
pub(super) struct Context<'a> {
    /// The enclosing bracket.
    pub(super) bracket: Option<Bracket>,
    /// Whether a `?` of a conditional expression is open.
    pub(super) conditional: bool,
    /// Whether the condition of a control statement begins.
    pub(super) header: bool,
    /// For each piece, whether it is a bar that opens or closes a size.
    pub(super) sizes: &'a [Option<bool>],
}

/// The blanks that replace `gap`, the source between two tokens.
pub(super) fn blanks(gap: &[u8], spacing: Spacing, comment: bool) -> Vec<u8> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let written: Vec<u8> = gap.iter().copied().filter(is_blank).collect();
    let one_line = !gap.contains(&b'\n');
    match spacing {
        _ if comment && written.is_empty() => b" ".to_vec(),
        Spacing::None => Vec::new(),
        Spacing::Keep if one_line => written,
        Spacing::One if one_line && (written.len() > 1 || written.contains(&b'\t')) => written,
        Spacing::Keep => Vec::new(),
        Spacing::One => b" ".to_vec(),
    }
}

/// Whether a parenthesis after `before` contains arguments or parameters.
pub(super) fn is_call(pieces: &[Piece], before: Option<usize>) -> bool {
    let Some(piece) = before.map(|before| &pieces[before]) else { return false };
    match &piece.kind {
        Kind::Token(Token::Ident) => true,
        Kind::Token(Token::Op(Op::ParenRight | Op::BracketRight)) => true,
        Kind::Token(Token::Word(word)) => is_callable(*word),
        _ => false,
    }
}

fn is_callable(word: Word) -> bool {
    matches!(
        word,
        Word::Function
            | Word::Event
            | Word::Hook
            | Word::Copy
            | Word::Record
            | Word::Set
            | Word::Table
            | Word::Vector
            | Word::String
            | Word::Count
            | Word::Int
            | Word::Double
            | Word::Addr
            | Word::Subnet
            | Word::Port
            | Word::Time
            | Word::Interval
            | Word::Pattern
    )
}

/// The blanks between the token at `before` and the one at `at`.
pub(super) fn between(
    source: &[u8],
    pieces: &[Piece],
    before: Option<usize>,
    at: usize,
    context: &Context<'_>,
) -> Spacing {
    let Some(left_at) = before else { return Spacing::None };
    let (left, right) = (&pieces[left_at], &pieces[at]);
    let left_op = op(left);
    let right_op = op(right);
    if let Some(spacing) = sizes(context, left_at, at) {
        return spacing;
    }
    // The token on the left decides.
    match left_op {
        Some(Op::Dollar | Op::HasField | Op::Increment | Op::Decrement | Op::Complement) => {
            return Spacing::None;
        }
        Some(Op::Minus | Op::Plus) if is_prefix(pieces, left_at) => return Spacing::None,
        Some(Op::Not) => return Spacing::One,
        Some(Op::ParenLeft) => {
            return match context.bracket {
                _ if right_op == Some(Op::ParenRight) => Spacing::None,
                Some(Bracket::Header) => Spacing::One,
                Some(Bracket::Group) => Spacing::Keep,
                _ => Spacing::None,
            };
        }
        Some(Op::BracketLeft) => {
            return if right_op == Some(Op::BracketRight) {
                Spacing::None
            } else {
                tight(source, left, right)
            };
        }
        Some(Op::BraceLeft) if right_op == Some(Op::BraceRight) => return Spacing::Keep,
        _ => {}
    }
    match right_op {
        Some(Op::Comma | Op::Semicolon) => return Spacing::None,
        Some(Op::Dollar | Op::HasField) => {
            let operand = ends_operand(left, context, left_at);
            return if operand { Spacing::None } else { Spacing::One };
        }
        Some(Op::ParenRight) => {
            return match context.bracket {
                Some(Bracket::Header) => Spacing::One,
                Some(Bracket::Group) => Spacing::Keep,
                _ => Spacing::None,
            };
        }
        Some(Op::BracketRight) => return tight(source, left, right),
        Some(Op::ParenLeft) => {
            if context.header {
                return Spacing::One;
            }
            if left_op == Some(Op::BracketRight) {
                // Captures of a lambda precede its parameters.
                return Spacing::Keep;
            }
            return if is_call(pieces, before) { Spacing::None } else { Spacing::One };
        }
        Some(Op::BracketLeft) => {
            if left_op == Some(Op::Assign) {
                return after_assignment(pieces, left_at);
            }
            let word = left.word();
            if matches!(word, Some(Word::Function | Word::When)) {
                return Spacing::Keep;
            }
            let indexes = ends_operand(left, context, left_at)
                || matches!(word, Some(Word::Table | Word::Set | Word::Vector));
            return if indexes { Spacing::None } else { Spacing::One };
        }
        Some(Op::Colon) => {
            if context.conditional {
                return Spacing::One;
            }
            if context.bracket.is_none() && left.kind == Kind::Token(Token::Ident) {
                // Columns of names and types.
                return Spacing::Keep;
            }
            return if context.bracket == Some(Bracket::Square) {
                Spacing::Keep
            } else {
                Spacing::None
            };
        }
        Some(Op::Assign) => return assignment(pieces, left_at),
        _ => {}
    }
    match left_op {
        Some(Op::Colon) if context.bracket == Some(Bracket::Square) && !context.conditional => {
            Spacing::Keep
        }
        Some(Op::Assign) => after_assignment(pieces, left_at),
        _ => Spacing::One,
    }
}

/// No blank, except for alignment of columns.
fn tight(source: &[u8], left: &Piece, right: &Piece) -> Spacing {
    let gap = source.get(left.end..right.start).unwrap_or(&[]);
    if gap.len() > 1 { Spacing::Keep } else { Spacing::None }
}

/// Blanks around the `=` after the token at `left`: none in `&attr=value` and `$field=value`.
fn assignment(pieces: &[Piece], left: usize) -> Spacing {
    match &pieces[left].kind {
        Kind::Token(Token::Attr(_)) => Spacing::None,
        Kind::Token(Token::Ident) => {
            let before = pieces[..left].iter().rev().find(|piece| piece.kind != Kind::Comment);
            let mut earlier =
                pieces[..left].iter().rev().filter(|piece| piece.kind != Kind::Comment).skip(1);
            let field = before.is_some_and(|piece| piece.is(Op::Dollar))
                && earlier.next().is_some_and(|piece| {
                    matches!(
                        op(piece),
                        Some(Op::ParenLeft | Op::BracketLeft | Op::Comma | Op::BraceLeft)
                    )
                });
            if field { Spacing::Keep } else { Spacing::One }
        }
        _ => Spacing::One,
    }
}

/// Blanks between the `=` at `at` and the value.
fn after_assignment(pieces: &[Piece], at: usize) -> Spacing {
    let before = pieces[..at].iter().rposition(|piece| piece.kind != Kind::Comment);
    before.map_or(Spacing::One, |before| assignment(pieces, before))
}

fn sizes(context: &Context<'_>, left: usize, right: usize) -> Option<Spacing> {
    let bar = |at: usize| context.sizes.get(at).copied().flatten();
    if bar(left) == Some(true) || bar(right) == Some(false) {
        return Some(Spacing::None);
    }
    None
}

/// Whether the `-` or `+` at `at` has no left operand.
fn is_prefix(pieces: &[Piece], at: usize) -> bool {
    let before = pieces[..at].iter().rev().find(|piece| piece.kind != Kind::Comment);
    before.is_none_or(|piece| match &piece.kind {
        Kind::Token(Token::Ident | Token::Literal(_)) | Kind::Pattern | Kind::Directive(_) => false,
        Kind::Token(Token::Op(op)) => !matches!(op, Op::ParenRight | Op::BracketRight | Op::BitOr),
        _ => true,
    })
}

fn ends_operand(piece: &Piece, context: &Context<'_>, at: usize) -> bool {
    match &piece.kind {
        Kind::Token(Token::Ident | Token::Literal(_)) | Kind::Pattern => true,
        Kind::Token(Token::Op(Op::ParenRight | Op::BracketRight)) => true,
        Kind::Token(Token::Op(Op::BitOr)) => {
            context.sizes.get(at).copied().flatten() == Some(false)
        }
        _ => false,
    }
}

fn op(piece: &Piece) -> Option<Op> {
    if let Kind::Token(Token::Op(op)) = piece.kind { Some(op) } else { None }
}
