//! Lines and indentation: a machine that follows statements and brackets through the pieces.

use super::Unformatted;
use super::spacing::{self, Bracket, Spacing};
use crate::lexer::{Directive, Op, Token, Word};
use crate::tools::tokens::{self, Kind, Piece};

/// The largest number of empty lines in a row.
const MAX_EMPTY: usize = 2;

/// What a bracket, or the file, holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BracketContents {
    /// The file or an `export`: declarations.
    Declarations,
    /// Statements in braces on lines of their own.
    Block {
        /// Whether it is the body of a lambda: the statement goes on behind it.
        lambda: bool,
    },
    /// The cases of a `switch`.
    Cases,
    /// Fields or elements, one a line.
    Items,
    /// Anything in brackets within a statement: its line breaks stay.
    Inside(Bracket),
}

/// A statement that waits for its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Control {
    word: Word,
    level: usize,
}

/// An open bracket.
#[derive(Clone, Debug)]
struct Frame {
    contents: BracketContents,
    /// Level of what it holds.
    level: usize,
    /// Level of its closing brace.
    close: usize,
    controls: Vec<Control>,
    /// Whether a statement, declaration or item begins next.
    at_start: bool,
    /// Whether the statement that ended last was the body of the controls.
    body_done: bool,
    /// Behind a label of a `switch`.
    in_case: bool,
    /// The word that begins the statement.
    first: Option<Word>,
    /// The condition of a control comes next.
    header: bool,
    /// A `function` in an expression waits for its body.
    lambda: bool,
    /// `schedule` waits for its braces.
    schedule: bool,
    /// Open `?`s.
    conditionals: usize,
    /// The indentation of the statement's first line: in the source, and its level.
    base: Vec<u8>,
    statement: usize,
}

impl Frame {
    fn new(contents: BracketContents, level: usize, close: usize) -> Self {
        Self {
            contents,
            level,
            close,
            controls: Vec::new(),
            at_start: true,
            body_done: true,
            in_case: false,
            first: None,
            header: false,
            lambda: false,
            schedule: false,
            conditionals: 0,
            base: Vec::new(),
            statement: level,
        }
    }

    fn end_statement(&mut self) {
        self.at_start = true;
        self.body_done = true;
        self.first = None;
        self.header = false;
        self.lambda = false;
        self.schedule = false;
        self.conditionals = 0;
    }

    fn is_inside(&self) -> bool {
        matches!(self.contents, BracketContents::Inside(_))
    }
}

struct Layout<'a> {
    source: &'a [u8],
    pieces: &'a [Piece],
    sizes: Vec<Option<bool>>,
    frames: Vec<Frame>,
    /// Frames at each open `@if`.
    conditions: Vec<Vec<Frame>>,
    out: Vec<u8>,
}

/// Where a piece goes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PiecePosition {
    /// On a new line at a level.
    Level(usize),
    /// On a new line with this indentation.
    Indented(Vec<u8>),
    /// On the line of the piece before.
    Same,
}

/// The text of `pieces` laid out.
pub(super) fn lay_out(source: &[u8], pieces: &[Piece]) -> Result<Vec<u8>, Unformatted> {
    let mut layout = Layout {
        source,
        pieces,
        sizes: tokens::sizes(pieces),
        frames: vec![Frame::new(BracketContents::Declarations, 0, 0)],
        conditions: Vec::new(),
        out: Vec::with_capacity(source.len() + source.len() / 16),
    };
    for at in 0..pieces.len() {
        layout.piece(at)?;
    }
    if layout.frames.len() != 1 {
        let line = pieces.last().map_or(0, |piece| piece.line);
        return Err(Unformatted { line, message: "a bracket is not closed".to_owned() });
    }
    if !layout.out.is_empty() {
        layout.out.push(b'\n');
    }
    Ok(layout.out)
}

impl Layout<'_> {
    fn piece(&mut self, at: usize) -> Result<(), Unformatted> {
        let piece = &self.pieces[at];
        let newline = self.newlines_before(at) > 0;
        let (place, spacing) = match &piece.kind {
            Kind::Comment => (self.comment(at, newline), Spacing::Keep),
            Kind::Directive(Directive::Dir | Directive::FileName) => self.token(at, newline)?,
            Kind::Directive(directive) => {
                self.directive(*directive);
                (PiecePosition::Indented(self.source_indent(at)), Spacing::Keep)
            }
            _ => self.token(at, newline)?,
        };
        self.write(at, &place, spacing);
        Ok(())
    }

    /// Writes a piece.
    fn write(&mut self, at: usize, place: &PiecePosition, spacing: Spacing) {
        let piece = &self.pieces[at];
        let directive_before = at > 0 && is_line_directive(&self.pieces[at - 1]);
        let comment_before = at > 0 && self.pieces[at - 1].kind == Kind::Comment;
        let forced =
            directive_before && (piece.kind != Kind::Comment || self.newlines_before(at) > 0);
        let place = if *place == PiecePosition::Same && (forced || comment_before) {
            PiecePosition::Level(self.frames.last().map_or(0, |frame| frame.statement))
        } else {
            place.clone()
        };
        match place {
            PiecePosition::Same => {
                if at > 0 {
                    let gap = &self.source[self.pieces[at - 1].end..piece.start];
                    self.out.extend_from_slice(&spacing::blanks(
                        gap,
                        spacing,
                        piece.kind == Kind::Comment,
                    ));
                }
            }
            PiecePosition::Level(level) => {
                self.break_line(at);
                self.out.extend(std::iter::repeat_n(b'\t', level));
            }
            PiecePosition::Indented(indent) => {
                self.break_line(at);
                self.out.extend_from_slice(&indent);
            }
        }
        let text = piece.text(self.source);
        let text = if is_line_directive(piece) { text.trim_ascii_end() } else { text };
        self.out.extend_from_slice(text);
    }

    fn break_line(&mut self, at: usize) {
        if at == 0 {
            return;
        }
        let empty = self.newlines_before(at).saturating_sub(1).min(MAX_EMPTY);
        self.out.extend(std::iter::repeat_n(b'\n', empty + 1));
    }

    fn newlines_before(&self, at: usize) -> usize {
        let from = if at == 0 { 0 } else { self.pieces[at - 1].end };
        let gap = self.source.get(from..self.pieces[at].start).unwrap_or(&[]);
        memchr::memchr_iter(b'\n', gap).count()
    }

    /// The blanks before a piece at the beginning of its line.
    fn source_indent(&self, at: usize) -> Vec<u8> {
        let start = self.pieces[at].start;
        let line = memchr::memrchr(b'\n', &self.source[..start]).map_or(0, |newline| newline + 1);
        let blanks =
            self.source[line..start].iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        blanks.copied().collect()
    }

    /// The frame of the statement that is being laid out, behind brackets inside of it.
    fn outer(&self) -> usize {
        self.frames.iter().rposition(|frame| !frame.is_inside()).unwrap_or(0)
    }

    /// The place of a line that continues a statement: as far behind its first line as it was.
    fn continued(&self, at: usize) -> PiecePosition {
        let frame = &self.frames[self.outer()];
        let indent = self.source_indent(at);
        let mut new = vec![b'\t'; frame.statement];
        match indent.strip_prefix(&frame.base[..]) {
            Some(rest) if !rest.is_empty() || self.pieces[at].kind != Kind::Comment => {
                new.extend_from_slice(rest);
            }
            _ => new.push(b'\t'),
        }
        PiecePosition::Indented(new)
    }

    fn next_token(&self, at: usize) -> Option<&Piece> {
        self.pieces[at..]
            .iter()
            .find(|piece| piece.kind != Kind::Comment && !is_line_directive(piece))
    }

    fn comment(&mut self, at: usize, newline: bool) -> PiecePosition {
        if !newline && at > 0 {
            return PiecePosition::Same;
        }
        if at > 0 && (self.pieces[at].text(self.source).starts_with(b"##<") || self.trails(at - 1))
        {
            // It goes on with a comment behind code.
            let own = self.source_indent(at);
            let least = self.frames.last().map_or(0, |frame| frame.level);
            if own.len() > least {
                return PiecePosition::Indented(own);
            }
        }
        let frame = self.frames.last();
        let Some(frame) = frame.filter(|frame| !frame.is_inside() && frame.at_start) else {
            return self.continued(at);
        };
        let level = match self.next_token(at) {
            Some(next) => match next.word() {
                Some(Word::Else | Word::Timeout)
                    if frame.body_done && !frame.controls.is_empty() =>
                {
                    // A comment behind an inner block stays with the level that it was written for.
                    let depth =
                        self.source_indent(at).iter().filter(|byte| **byte == b'\t').count();
                    let least = self.control_level(frame, next.word());
                    depth.clamp(least, least + 1)
                }
                Some(Word::Case | Word::Default) if frame.contents == BracketContents::Cases => {
                    frame.level
                }
                _ if next.is(Op::BraceLeft) && !frame.body_done => self.level(frame),
                _ => self.level(frame),
            },
            None => self.level(frame),
        };
        PiecePosition::Level(level)
    }

    /// Whether the piece is a comment behind code, or goes on with one.
    fn trails(&self, at: usize) -> bool {
        let mut at = at;
        while self.pieces[at].kind == Kind::Comment {
            if at == 0 {
                return false;
            }
            match self.newlines_before(at) {
                0 => return true,
                1 => at -= 1,
                _ => return false,
            }
        }
        false
    }

    /// The level of the control that `else` or `timeout` belongs to.
    fn control_level(&self, frame: &Frame, word: Option<Word>) -> usize {
        let wanted = if word == Some(Word::Else) { Word::If } else { Word::When };
        let control = frame.controls.iter().rev().find(|control| control.word == wanted);
        control.map_or(frame.level, |control| control.level)
    }

    /// The level of a statement that begins now.
    fn level(&self, frame: &Frame) -> usize {
        let base = frame.level + usize::from(frame.in_case);
        match frame.controls.last() {
            Some(control) if !frame.body_done => control.level + 1,
            _ => base,
        }
    }

    fn directive(&mut self, directive: Directive) {
        match directive {
            Directive::If | Directive::IfDef | Directive::IfNotDef => {
                self.conditions.push(self.frames.clone());
            }
            Directive::Else => {
                if let Some(frames) = self.conditions.last() {
                    self.frames.clone_from(frames);
                }
            }
            Directive::EndIf => {
                self.conditions.pop();
            }
            _ => {}
        }
    }

    /// Places a token and follows what it does.
    fn token(&mut self, at: usize, newline: bool) -> Result<(PiecePosition, Spacing), Unformatted> {
        let piece = &self.pieces[at];
        let before = self.pieces[..at].iter().rposition(|piece| piece.kind != Kind::Comment);
        let context = spacing::Context {
            bracket: self.frames.last().and_then(|frame| match frame.contents {
                BracketContents::Inside(bracket) => Some(bracket),
                _ => None,
            }),
            conditional: self.frames.last().is_some_and(|frame| frame.conditionals > 0),
            header: self.frames.last().is_some_and(|frame| frame.header),
            sizes: &self.sizes,
        };
        let spacing = spacing::between(self.source, self.pieces, before, at, &context);
        if piece.is(Op::BraceLeft) {
            return Ok((self.brace(at, before, newline), spacing));
        }
        if piece.is(Op::ParenLeft) || piece.is(Op::BracketLeft) {
            let place = self.start_or_continue(at, newline);
            let header =
                self.frames.last().is_some_and(|frame| frame.header) && piece.is(Op::ParenLeft);
            let bracket = if header {
                Bracket::Header
            } else if piece.is(Op::BracketLeft) {
                Bracket::Square
            } else if spacing::is_call(self.pieces, before) {
                Bracket::Call
            } else {
                Bracket::Group
            };
            if header && let Some(frame) = self.frames.last_mut() {
                frame.header = false;
            }
            self.open(BracketContents::Inside(bracket), 0, 0);
            return Ok((place, spacing));
        }
        if piece.is(Op::ParenRight) || piece.is(Op::BracketRight) || piece.is(Op::BraceRight) {
            return self.close(at, newline).map(|place| (place, spacing));
        }
        let place = self.start_or_continue(at, newline);
        self.follow(at);
        Ok((place, spacing))
    }

    fn open(&mut self, contents: BracketContents, level: usize, close: usize) {
        self.frames.push(Frame::new(contents, level, close));
    }

    /// The place of a token that is no brace: the beginning of a statement, or within one.
    fn start_or_continue(&mut self, at: usize, newline: bool) -> PiecePosition {
        let piece = &self.pieces[at];
        let indent = self.source_indent(at);
        let Some(frame) = self.frames.last() else { return PiecePosition::Same };
        if frame.is_inside() || !frame.at_start {
            let joins = at > 0 && self.pieces[at - 1].word() == Some(Word::Else);
            return if newline && !joins { self.continued(at) } else { PiecePosition::Same };
        }
        let word = piece.word();
        let level = match word {
            Some(word @ (Word::Else | Word::Timeout))
                if frame.body_done && !frame.controls.is_empty() =>
            {
                self.control_level(frame, Some(word))
            }
            Some(Word::Case | Word::Default) if frame.contents == BracketContents::Cases => {
                frame.level
            }
            _ => self.level(frame),
        };
        let after_else = frame.controls.last().is_some_and(|control| control.word == Word::Else);
        let else_if = word == Some(Word::If)
            && after_else
            && !frame.body_done
            && at > 0
            && self.pieces[at - 1].word() == Some(Word::Else);
        let items = frame.contents == BracketContents::Items;
        let level = match (items, else_if) {
            // Statements are not items: in broken text that has some, they keep the level of the items.
            (true, _) => frame.level,
            (false, true) => level.saturating_sub(1),
            (false, false) => level,
        };
        let Some(frame) = self.frames.last_mut() else { return PiecePosition::Same };
        match word {
            Some(Word::Else) => {
                while frame.controls.pop().is_some_and(|control| control.word != Word::If) {}
            }
            Some(Word::Timeout) => {
                while frame.controls.pop().is_some_and(|control| control.word != Word::When) {}
            }
            _ if frame.body_done => frame.controls.clear(),
            _ if else_if => {
                frame.controls.pop();
            }
            _ => {}
        }
        frame.at_start = false;
        frame.first = word;
        frame.statement = level;
        if newline || at == 0 {
            frame.base = indent;
        } else if !items {
            // The source has no line of its own for it: what continues it counts from the line that it is in.
            frame.base = indent;
        }
        match word {
            Some(word @ (Word::If | Word::For | Word::While | Word::When)) => {
                frame.controls.push(Control { word, level });
                frame.header = true;
            }
            Some(word @ (Word::Else | Word::Timeout)) => {
                frame.controls.push(Control { word, level });
                if word == Word::Else {
                    frame.at_start = true;
                    frame.body_done = false;
                    frame.first = None;
                }
            }
            _ => {}
        }
        if else_if || (items && !newline) {
            PiecePosition::Same
        } else {
            PiecePosition::Level(level)
        }
    }

    /// Follows a token within a statement.
    fn follow(&mut self, at: usize) {
        let piece = &self.pieces[at];
        let Some(frame) = self.frames.last_mut() else { return };
        match &piece.kind {
            Kind::Token(Token::Op(Op::Semicolon)) if !frame.is_inside() => frame.end_statement(),
            Kind::Token(Token::Op(Op::Comma)) if frame.contents == BracketContents::Items => {
                frame.end_statement();
            }
            Kind::Token(Token::Op(Op::Question)) => frame.conditionals += 1,
            Kind::Token(Token::Op(Op::Colon)) if frame.conditionals > 0 => frame.conditionals -= 1,
            Kind::Token(Token::Op(Op::Colon))
                if frame.contents == BracketContents::Cases
                    && matches!(frame.first, Some(Word::Case | Word::Default)) =>
            {
                frame.end_statement();
                frame.in_case = true;
            }
            Kind::Token(Token::Word(word)) => match word {
                Word::Function if frame.first != Some(Word::Function) => frame.lambda = true,
                Word::Event | Word::Hook | Word::Function if frame.first == Some(Word::Redef) => {
                    frame.first = Some(*word);
                }
                Word::When if frame.first == Some(Word::Return) => {
                    let level = frame.statement;
                    frame.controls.push(Control { word: Word::When, level });
                    frame.header = true;
                }
                Word::Schedule => frame.schedule = true,
                _ => {}
            },
            _ => {}
        }
    }

    /// Places `{` and opens what it holds.
    fn brace(&mut self, at: usize, before: Option<usize>, newline: bool) -> PiecePosition {
        let last_word = before.and_then(|before| self.pieces[before].word());
        let one_line = self.closes_on_line(at);
        let ends_line = self.pieces.get(at + 1).is_none_or(|next| next.line > self.pieces[at].line)
            || self.pieces.get(at + 1).is_some_and(|next| next.kind == Kind::Comment);
        let Some(frame) = self.frames.last_mut() else { return PiecePosition::Same };
        if frame.is_inside() {
            let place = if newline { self.continued(at) } else { PiecePosition::Same };
            self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
            return place;
        }
        if frame.at_start {
            // The body of a control, or a block of its own.
            if frame.body_done {
                frame.controls.clear();
            }
            let level = match frame.controls.last() {
                Some(control) => control.level + 1,
                None => frame.level + usize::from(frame.in_case) + 1,
            };
            frame.statement = level;
            self.open(BracketContents::Block { lambda: false }, level, level);
            return PiecePosition::Level(level);
        }
        let level = frame.statement;
        if frame.first == Some(Word::Timeout) {
            self.open(BracketContents::Block { lambda: false }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        if frame.first == Some(Word::Switch) {
            let (own, cases) = if newline { (level + 1, level + 1) } else { (level, level) };
            self.open(BracketContents::Cases, cases, own);
            return if newline { PiecePosition::Level(level + 1) } else { PiecePosition::Same };
        }
        if frame.first == Some(Word::Export) && last_word == Some(Word::Export) {
            self.open(BracketContents::Declarations, level + 1, level);
            return PiecePosition::Same;
        }
        let declares = frame.contents == BracketContents::Declarations;
        if declares && matches!(frame.first, Some(Word::Function | Word::Event | Word::Hook)) {
            self.open(BracketContents::Block { lambda: false }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        if frame.lambda && !frame.schedule {
            frame.lambda = false;
            if one_line {
                self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
                return if newline { self.continued(at) } else { PiecePosition::Same };
            }
            self.open(BracketContents::Block { lambda: true }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        frame.schedule = false;
        let place = if newline { self.continued(at) } else { PiecePosition::Same };
        if ends_line && !one_line {
            self.open(BracketContents::Items, level + 1, level);
        } else {
            self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
        }
        place
    }

    /// Whether the brace at `at` closes in its line.
    fn closes_on_line(&self, at: usize) -> bool {
        let line = self.pieces[at].line;
        let mut depth = 0_usize;
        for piece in &self.pieces[at..] {
            if piece.line != line {
                return false;
            }
            if piece.is(Op::BraceLeft) {
                depth += 1;
            } else if piece.is(Op::BraceRight) {
                depth -= 1;
                if depth == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Places a closing bracket.
    fn close(&mut self, at: usize, newline: bool) -> Result<PiecePosition, Unformatted> {
        let piece = &self.pieces[at];
        let wrong = || Unformatted {
            line: piece.line,
            message: "a bracket is closed that is not open".to_owned(),
        };
        if self.frames.len() < 2 {
            return Err(wrong());
        }
        let continued = self.continued(at);
        let frame = self.frames.pop().ok_or_else(wrong)?;
        let fits = match frame.contents {
            BracketContents::Inside(Bracket::Brace) => piece.is(Op::BraceRight),
            BracketContents::Inside(Bracket::Square) => piece.is(Op::BracketRight),
            BracketContents::Inside(_) => piece.is(Op::ParenRight),
            _ => piece.is(Op::BraceRight),
        };
        if !fits {
            return Err(wrong());
        }
        let Some(outer) = self.frames.last_mut() else { return Err(wrong()) };
        Ok(match frame.contents {
            BracketContents::Inside(bracket) => {
                if bracket == Bracket::Header {
                    outer.at_start = true;
                    outer.body_done = false;
                    outer.first = None;
                }
                if newline { continued } else { PiecePosition::Same }
            }
            BracketContents::Items => {
                if newline {
                    PiecePosition::Level(frame.close)
                } else {
                    PiecePosition::Same
                }
            }
            BracketContents::Block { lambda: true } => PiecePosition::Level(frame.close),
            BracketContents::Block { lambda: false }
            | BracketContents::Cases
            | BracketContents::Declarations => {
                outer.end_statement();
                PiecePosition::Level(frame.close)
            }
        })
    }
}

/// Whether a directive ends its line.
fn is_line_directive(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Directive(directive) if !matches!(directive, Directive::Dir | Directive::FileName))
}
