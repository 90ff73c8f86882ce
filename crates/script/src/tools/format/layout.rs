//! Line breaks and indentation: a state machine that tracks statements and brackets through the pieces.

use super::Unformatted;
use super::spacing::{self, Bracket, Spacing};
use crate::lexer::{Directive, Op, Token, Word};
use crate::tools::tokens::{self, Kind, Piece};

/// Maximum number of consecutive empty lines.
const MAX_EMPTY: usize = 2;

/// The content of a bracket, or of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BracketContents {
    /// The file or an `export`: declarations.
    Declarations,
    /// Statements in braces on lines of their own.
    Block {
        /// Whether it is the body of a lambda: the statement continues after it.
        lambda: bool,
    },
    /// The cases of a `switch`.
    Cases,
    /// Fields or elements, one per line.
    Items,
    /// Anything in brackets within a statement: its line breaks are kept.
    Inside(Bracket),
}

/// A control statement (such as `if`) without its body so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Control {
    word: Word,
    level: usize,
}

/// An open bracket.
#[derive(Clone, Debug)]
struct Frame {
    contents: BracketContents,
    /// Indentation level of its content.
    level: usize,
    /// Indentation level of its closing brace.
    close_level: usize,
    controls: Vec<Control>,
    /// Whether a statement, declaration or item begins next.
    at_start: bool,
    /// Whether the last statement was the body of the control statements.
    body_done: bool,
    /// Whether the position is after a label of a `switch`.
    in_case: bool,
    /// First keyword of the statement.
    first_word: Option<Word>,
    /// Whether the condition of a control statement comes next.
    expects_header: bool,
    /// Whether the body of a `function` in an expression comes next.
    expects_lambda_body: bool,
    /// Whether the braces of `schedule` come next.
    expects_schedule_body: bool,
    /// Number of open `?`s.
    conditionals: usize,
    /// Indentation of the statement's first line in the source, and its indentation level in the output.
    source_indent: Vec<u8>,
    statement_level: usize,
}

impl Frame {
    fn new(contents: BracketContents, level: usize, close_level: usize) -> Self {
        Self {
            contents,
            level,
            close_level,
            controls: Vec::new(),
            at_start: true,
            body_done: true,
            in_case: false,
            first_word: None,
            expects_header: false,
            expects_lambda_body: false,
            expects_schedule_body: false,
            conditionals: 0,
            source_indent: Vec::new(),
            statement_level: level,
        }
    }

    fn end_statement(&mut self) {
        self.at_start = true;
        self.body_done = true;
        self.first_word = None;
        self.expects_header = false;
        self.expects_lambda_body = false;
        self.expects_schedule_body = false;
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
    /// Copies of the frames at each open `@if`.
    conditions: Vec<Vec<Frame>>,
    out: Vec<u8>,
}

/// Position of a piece in the output.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PiecePosition {
    /// On a new line at an indentation level.
    Level(usize),
    /// On a new line with this indentation.
    Indented(Vec<u8>),
    /// On the line of the previous piece.
    Same,
}

/// Formats `pieces`.
pub(super) fn format_pieces(source: &[u8], pieces: &[Piece]) -> Result<Vec<u8>, Unformatted> {
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
        let (position, spacing) = match &piece.kind {
            Kind::Comment => (self.comment(at, newline), Spacing::Keep),
            Kind::Directive(Directive::Dir | Directive::FileName) => self.token(at, newline)?,
            Kind::Directive(directive) => {
                self.directive(*directive);
                (PiecePosition::Indented(self.source_indent(at)), Spacing::Keep)
            }
            _ => self.token(at, newline)?,
        };
        self.write(at, &position, spacing);
        Ok(())
    }

    /// Writes a piece.
    fn write(&mut self, at: usize, position: &PiecePosition, spacing: Spacing) {
        let piece = &self.pieces[at];
        let directive_before = at > 0 && is_line_directive(&self.pieces[at - 1]);
        let comment_before = at > 0 && self.pieces[at - 1].kind == Kind::Comment;
        let forced =
            directive_before && (piece.kind != Kind::Comment || self.newlines_before(at) > 0);
        let position = if *position == PiecePosition::Same && (forced || comment_before) {
            PiecePosition::Level(self.frames.last().map_or(0, |frame| frame.statement_level))
        } else {
            position.clone()
        };
        match position {
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

    /// The frame of the current statement, outside the brackets within it.
    fn outer(&self) -> usize {
        self.frames.iter().rposition(|frame| !frame.is_inside()).unwrap_or(0)
    }

    /// The position of a line that continues a statement: its indentation relative to the first line is kept.
    fn continued(&self, at: usize) -> PiecePosition {
        let frame = &self.frames[self.outer()];
        let indent = self.source_indent(at);
        let mut new = vec![b'\t'; frame.statement_level];
        match indent.strip_prefix(&frame.source_indent[..]) {
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
            // Continues a comment that follows code.
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
                    // A comment after an inner block keeps the level that it has in the source.
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

    /// Whether the piece is a comment after code, or continues one.
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

    /// The level of the control statement that `else` or `timeout` belongs to.
    fn control_level(&self, frame: &Frame, word: Option<Word>) -> usize {
        let wanted = if word == Some(Word::Else) { Word::If } else { Word::When };
        let control = frame.controls.iter().rev().find(|control| control.word == wanted);
        control.map_or(frame.level, |control| control.level)
    }

    /// The level of a statement that begins at this point.
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

    /// Positions a token and updates the state.
    fn token(&mut self, at: usize, newline: bool) -> Result<(PiecePosition, Spacing), Unformatted> {
        let piece = &self.pieces[at];
        let before = self.pieces[..at].iter().rposition(|piece| piece.kind != Kind::Comment);
        let context = spacing::Context {
            bracket: self.frames.last().and_then(|frame| match frame.contents {
                BracketContents::Inside(bracket) => Some(bracket),
                _ => None,
            }),
            conditional: self.frames.last().is_some_and(|frame| frame.conditionals > 0),
            header: self.frames.last().is_some_and(|frame| frame.expects_header),
            sizes: &self.sizes,
        };
        let spacing = spacing::between(self.source, self.pieces, before, at, &context);
        if piece.is(Op::BraceLeft) {
            return Ok((self.brace(at, before, newline), spacing));
        }
        if piece.is(Op::ParenLeft) || piece.is(Op::BracketLeft) {
            let position = self.start_or_continue(at, newline);
            let header = self.frames.last().is_some_and(|frame| frame.expects_header)
                && piece.is(Op::ParenLeft);
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
                frame.expects_header = false;
            }
            self.open(BracketContents::Inside(bracket), 0, 0);
            return Ok((position, spacing));
        }
        if piece.is(Op::ParenRight) || piece.is(Op::BracketRight) || piece.is(Op::BraceRight) {
            return self.close(at, newline).map(|position| (position, spacing));
        }
        let position = self.start_or_continue(at, newline);
        self.follow(at);
        Ok((position, spacing))
    }

    fn open(&mut self, contents: BracketContents, level: usize, close_level: usize) {
        self.frames.push(Frame::new(contents, level, close_level));
    }

    /// The position of a token that is not a brace: at the beginning of a statement or within one.
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
            // Statements are not items. In invalid text that contains some, they keep the level of the items.
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
        frame.first_word = word;
        frame.statement_level = level;
        if newline || at == 0 {
            frame.source_indent = indent;
        } else if !items {
            // The statement does not begin a line in the source, so its continuation lines are relative to the
            // line that contains it.
            frame.source_indent = indent;
        }
        match word {
            Some(word @ (Word::If | Word::For | Word::While | Word::When)) => {
                frame.controls.push(Control { word, level });
                frame.expects_header = true;
            }
            Some(word @ (Word::Else | Word::Timeout)) => {
                frame.controls.push(Control { word, level });
                if word == Word::Else {
                    frame.at_start = true;
                    frame.body_done = false;
                    frame.first_word = None;
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

    /// Updates the state for a token within a statement.
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
                    && matches!(frame.first_word, Some(Word::Case | Word::Default)) =>
            {
                frame.end_statement();
                frame.in_case = true;
            }
            Kind::Token(Token::Word(word)) => match word {
                Word::Function if frame.first_word != Some(Word::Function) => {
                    frame.expects_lambda_body = true;
                }
                Word::Event | Word::Hook | Word::Function
                    if frame.first_word == Some(Word::Redef) =>
                {
                    frame.first_word = Some(*word);
                }
                Word::When if frame.first_word == Some(Word::Return) => {
                    let level = frame.statement_level;
                    frame.controls.push(Control { word: Word::When, level });
                    frame.expects_header = true;
                }
                Word::Schedule => frame.expects_schedule_body = true,
                _ => {}
            },
            _ => {}
        }
    }

    /// Positions `{` and opens its content.
    fn brace(&mut self, at: usize, before: Option<usize>, newline: bool) -> PiecePosition {
        let last_word = before.and_then(|before| self.pieces[before].word());
        let one_line = self.closes_on_line(at);
        let ends_line = self.pieces.get(at + 1).is_none_or(|next| next.line > self.pieces[at].line)
            || self.pieces.get(at + 1).is_some_and(|next| next.kind == Kind::Comment);
        let Some(frame) = self.frames.last_mut() else { return PiecePosition::Same };
        if frame.is_inside() {
            let position = if newline { self.continued(at) } else { PiecePosition::Same };
            self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
            return position;
        }
        if frame.at_start {
            // The body of a control statement, or a separate block.
            if frame.body_done {
                frame.controls.clear();
            }
            let level = match frame.controls.last() {
                Some(control) => control.level + 1,
                None => frame.level + usize::from(frame.in_case) + 1,
            };
            frame.statement_level = level;
            self.open(BracketContents::Block { lambda: false }, level, level);
            return PiecePosition::Level(level);
        }
        let level = frame.statement_level;
        if frame.first_word == Some(Word::Timeout) {
            self.open(BracketContents::Block { lambda: false }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        if frame.first_word == Some(Word::Switch) {
            let (own, cases) = if newline { (level + 1, level + 1) } else { (level, level) };
            self.open(BracketContents::Cases, cases, own);
            return if newline { PiecePosition::Level(level + 1) } else { PiecePosition::Same };
        }
        if frame.first_word == Some(Word::Export) && last_word == Some(Word::Export) {
            self.open(BracketContents::Declarations, level + 1, level);
            return PiecePosition::Same;
        }
        let declares = frame.contents == BracketContents::Declarations;
        if declares && matches!(frame.first_word, Some(Word::Function | Word::Event | Word::Hook)) {
            self.open(BracketContents::Block { lambda: false }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        if frame.expects_lambda_body && !frame.expects_schedule_body {
            frame.expects_lambda_body = false;
            if one_line {
                self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
                return if newline { self.continued(at) } else { PiecePosition::Same };
            }
            self.open(BracketContents::Block { lambda: true }, level + 1, level + 1);
            return PiecePosition::Level(level + 1);
        }
        frame.expects_schedule_body = false;
        let position = if newline { self.continued(at) } else { PiecePosition::Same };
        if ends_line && !one_line {
            self.open(BracketContents::Items, level + 1, level);
        } else {
            self.open(BracketContents::Inside(Bracket::Brace), 0, 0);
        }
        position
    }

    /// Whether the brace at `at` closes on the same line.
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

    /// Positions a closing bracket.
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
                    outer.first_word = None;
                }
                if newline { continued } else { PiecePosition::Same }
            }
            BracketContents::Items => {
                if newline {
                    PiecePosition::Level(frame.close_level)
                } else {
                    PiecePosition::Same
                }
            }
            BracketContents::Block { lambda: true } => PiecePosition::Level(frame.close_level),
            BracketContents::Block { lambda: false }
            | BracketContents::Cases
            | BracketContents::Declarations => {
                outer.end_statement();
                PiecePosition::Level(frame.close_level)
            }
        })
    }
}

/// Whether a directive extends to the end of its line.
fn is_line_directive(piece: &Piece) -> bool {
    matches!(piece.kind, Kind::Directive(directive) if !matches!(directive, Directive::Dir | Directive::FileName))
}
