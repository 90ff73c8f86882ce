//! The lookahead token, spans, and syntax errors.

use super::{NextToken, ParseEnd, Parsed, Parser};
use crate::diagnostics::{Diagnostic, Severity, Subjects};
use crate::lexer::{LexError, Op, Token, Word};
use crate::report::Object;
use crate::source::Span;

impl Parser<'_> {
    /// The next token. Reading it may execute directives and continue in another file.
    pub(super) fn peek(&mut self) -> Parsed<&Token> {
        if self.next_token.is_none() {
            let ahead = self.read()?;
            self.last_lexed = ahead.span;
            self.next_token = Some(ahead);
        }
        Ok(self.next_token.as_ref().map_or(&Token::End, |ahead| &ahead.token))
    }

    /// Consumes the next token.
    pub(super) fn advance(&mut self) -> Parsed<Token> {
        self.peek()?;
        Ok(match self.next_token.take() {
            Some(ahead) => {
                self.previous = ahead.span;
                self.last_token_file = Some(ahead.span.file);
                ahead.token
            }
            None => Token::End,
        })
    }

    /// Consumes the operator `op` if it is next.
    pub(super) fn accept(&mut self, op: Op) -> Parsed<bool> {
        let found = *self.peek()? == Token::Op(op);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Consumes the word if it is next.
    pub(super) fn accept_word(&mut self, word: Word) -> Parsed<bool> {
        let found = *self.peek()? == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Whether the operator is next.
    pub(super) fn is_next(&mut self, op: Op) -> Parsed<bool> {
        Ok(*self.peek()? == Token::Op(op))
    }

    /// Whether the word is next.
    pub(super) fn is_next_word(&mut self, word: Word) -> Parsed<bool> {
        Ok(*self.peek()? == Token::Word(word))
    }

    /// Consumes the operator; an error if it is not next.
    pub(super) fn expect(&mut self, op: Op) -> Parsed<()> {
        if self.accept(op)? { Ok(()) } else { Err(self.expected(op.text())) }
    }

    /// Consumes the word; an error if it is not next.
    pub(super) fn expect_word(&mut self, word: Word) -> Parsed<()> {
        if self.accept_word(word)? { Ok(()) } else { Err(self.expected(word.text())) }
    }

    /// Consumes an identifier and returns its text; an error if none is next.
    pub(super) fn identifier(&mut self) -> Parsed<String> {
        if *self.peek()? != Token::Ident {
            return Err(self.expected("an identifier"));
        }
        self.advance()?;
        Ok(self.text_of(self.previous))
    }

    /// Consumes an identifier that does not begin with `::`.
    pub(super) fn plain_identifier(&mut self) -> Parsed<String> {
        self.peek()?;
        let global = self.next_token.as_ref().is_some_and(|ahead| {
            ahead.token == Token::Ident && self.text_of(ahead.span).starts_with("::")
        });
        if global { Err(self.syntax_error()) } else { self.identifier() }
    }

    /// The source text of a span.
    pub(super) fn text_of(&self, span: Span) -> String {
        let text = self
            .program
            .sources
            .files
            .find(span.file)
            .and_then(|file| file.text.get(span.start as usize..span.end as usize));
        String::from_utf8_lossy(text.unwrap_or(&[])).into_owned()
    }

    /// Sets the span of new nodes.
    pub(super) fn set_node_span(&mut self, span: Span) {
        self.node_span = span;
    }

    /// Sets the span of new nodes: from `from` to the last consumed token.
    pub(super) fn set_node_span_from(&mut self, from: Span) {
        self.node_span = from.to(self.previous);
    }

    /// Reports a syntax error at the next token, where `token` is expected.
    pub(super) fn expected(&mut self, token: &'static str) -> ParseEnd {
        self.expected_token = Some(token);
        self.syntax_error()
    }

    /// Reports a syntax error at the next token.
    pub(super) fn syntax_error(&mut self) -> ParseEnd {
        self.unexpected("syntax error");
        ParseEnd::Syntax
    }

    /// Reports a syntax error at the end of the file.
    pub(super) fn syntax_error_at_end(&mut self) -> ParseEnd {
        let span = self.last_lexed;
        let file = self.program.sources.files.find(span.file).map(|file| file.path.clone());
        let text = format!("syntax error, at end of file {}", file.unwrap_or_default());
        self.report_syntax(Severity::Error, span, &text);
        ParseEnd::Syntax
    }

    /// Reports an error that shows the next token.
    pub(super) fn unexpected(&mut self, message: &str) {
        let ahead = self.next_token.clone();
        let Some(NextToken { token, span }) = ahead else {
            return self.near(message, self.previous);
        };
        if token == Token::End {
            let file = self
                .last_file
                .and_then(|file| self.program.sources.files.find(file))
                .map(|file| file.path.clone());
            let text = file.map_or_else(
                || format!("{message}, at end of file"),
                |file| format!("{message}, at end of file {file}"),
            );
            return self.report_syntax(Severity::Error, Span::NOWHERE, &text);
        }
        self.near(message, span);
    }

    /// Reports an error that shows the token at `span`.
    pub(super) fn near(&mut self, message: &str, span: Span) {
        let mut text = format!("{message}, at or near \"{}\"", self.text_of(span));
        if let Some(file) = self
            .last_token_file
            .filter(|file| *file != span.file && self.next_token.is_some() && span.start == 0)
            && let Some(file) = self.program.sources.files.find(file)
        {
            text = format!("{text} or end of file {}", file.path);
        }
        self.error_here(&text);
    }

    /// Reports an error at the current line.
    pub(super) fn error_here(&mut self, message: &str) {
        self.report_here(Severity::Error, message);
    }

    /// Reports a message at the current line.
    pub(super) fn report_here(&mut self, severity: Severity, message: &str) {
        let line = Span { first: self.last_lexed.last, ..self.last_lexed };
        self.report_syntax(severity, line, message);
    }

    /// Reports a message with the previous and the expected token.
    fn report_syntax(&mut self, severity: Severity, span: Span, message: &str) {
        let location = self.program.sources.location(span);
        let (other, expected) = (self.previous, self.expected_token.take());
        // A closed file left the bracket open.
        let is_over =
            |bracket: &&Span| self.open_files.iter().all(|open| open.file != bracket.file);
        let is_here = |bracket: &&Span| {
            let here = if span.is_somewhere() { span } else { other };
            bracket.file == here.file
        };
        let unclosed = self.brackets.iter().rev().find(is_over);
        let unclosed = unclosed.filter(|bracket| !is_here(bracket)).copied();
        let unclosed = unclosed.unwrap_or(Span::NOWHERE);
        let about = Subjects { other, expected, unclosed, ..Subjects::default() };
        let text = message.as_bytes().to_vec();
        self.program.emit(&Diagnostic { severity, span, location, text, about });
    }

    /// Reports a fatal error at the current line.
    pub(super) fn fatal_here(&mut self, message: &str) -> ParseEnd {
        self.report_here(Severity::Fatal, message);
        ParseEnd::Fatal
    }

    /// Reports an error about an object.
    pub(super) fn error_about(&mut self, message: &str, object: &Object<'_>) {
        if matches!(object, Object::Global(_)) {
            self.program.parser_span = Some(self.previous);
        }
        self.program.report_about(Severity::Error, message, object, None);
    }

    /// Reports an error about two objects.
    pub(super) fn error_about_both(
        &mut self,
        message: &str,
        object: &Object<'_>,
        other: &Object<'_>,
    ) {
        self.program.report_about(Severity::Error, message, object, Some(other));
    }

    /// Reads the next token; executes directives and continues after the end of a file.
    fn read(&mut self) -> Parsed<NextToken> {
        loop {
            if self.open_files.is_empty() && !self.open_next()? {
                let file = self.last_file.unwrap_or(Span::NOWHERE.file);
                return Ok(NextToken { token: Token::End, span: Span { file, ..Span::NOWHERE } });
            }
            let Some(open) = self.open_files.last_mut() else { continue };
            let lexed = open.lexer.next_token();
            let span = Span {
                file: open.file,
                first: lexed.line,
                last: lexed.line,
                start: lexed.start,
                end: lexed.end,
            };
            if lexed.token != Token::End {
                self.last_lexed = span;
            }
            match lexed.error {
                Some(LexError::Error(message)) => {
                    self.error_here(&message);
                    // An invalid character is skipped.
                    if lexed.token == Token::Bad {
                        continue;
                    }
                }
                Some(LexError::Fatal(message)) => return Err(self.fatal_here(&message)),
                None => {}
            }
            match lexed.token {
                Token::End => self.close_file()?,
                Token::Directive(directive) => {
                    if let Some(token) = self.directive(directive, span)? {
                        return Ok(NextToken { token, span });
                    }
                }
                token => {
                    match token {
                        Token::Op(Op::ParenLeft | Op::BracketLeft | Op::BraceLeft) => {
                            self.brackets.push(span);
                        }
                        Token::Op(Op::ParenRight | Op::BracketRight | Op::BraceRight) => {
                            self.brackets.pop();
                        }
                        _ => {}
                    }
                    return Ok(NextToken { token, span });
                }
            }
        }
    }
}
