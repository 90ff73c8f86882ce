use std::fmt;

/// The reason why an expression is invalid, with its position.
///
/// Its `Display` shows the reason in a line, the expression with a mark under the position, and, if
/// known, the expected tokens and the keyword probably meant:
///
/// ```text
/// can't parse filter expression: syntax error
///   tcp prot 80
///       ^^^^
/// expected 'and', 'or' or the end
/// did you mean 'proto'?
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n{}", Mark(self))]
pub struct Error {
    message: String,
    expression: String,
    /// Position in characters, and length in characters.
    at: usize,
    width: usize,
    expected: Option<String>,
    hint: Option<String>,
}

/// A span of an expression: byte offset and length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: usize,
    pub(crate) width: usize,
}

/// An error before its position is resolved to characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) span: Span,
    /// The expected token, as in "expected a number".
    pub(crate) expected: Option<String>,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, span: Span) -> Self {
        Self { message: message.into(), span, expected: None, hint: None }
    }
}

impl Error {
    pub(crate) fn new(problem: Problem, expression: &str) -> Self {
        let chars = |upto: usize| expression.char_indices().take_while(|(i, _)| *i < upto).count();
        let at = chars(problem.span.at);
        let width = chars(problem.span.at.saturating_add(problem.span.width)) - at;
        let Problem { message, expected, hint, .. } = problem;
        Self { message, expression: expression.to_owned(), at, width, expected, hint }
    }

    /// The reason, in a line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The column of the error in characters, from one.
    pub fn column(&self) -> usize {
        self.at + 1
    }

    /// The expected token, like "a number".
    pub fn expected(&self) -> Option<&str> {
        self.expected.as_deref()
    }

    /// A suggestion: usually the nearest keyword.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The expression and the mark under it.
struct Mark<'a>(&'a Error);

impl fmt::Display for Mark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { expression, at, width, expected, hint, .. } = self.0;
        // Control characters would shift the mark.
        let shown = expression.chars().map(|c| if c.is_control() { ' ' } else { c });
        writeln!(f, "  {}", shown.collect::<String>())?;
        write!(f, "  {}{}", " ".repeat(*at), "^".repeat((*width).max(1)))?;
        if let Some(expected) = expected {
            write!(f, "\nexpected {expected}")?;
        }
        match hint {
            Some(word) => write!(f, "\ndid you mean '{word}'?"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    fn rendered(expression: &str) -> String {
        Filter::parse(expression).unwrap_err().to_string()
    }

    #[test]
    fn the_position_is_marked() {
        assert_eq!(
            rendered("tcp prot 80"),
            "can't parse filter expression: syntax error\n  tcp prot 80\n      ^^^^\n\
             expected 'and', 'or' or the end\ndid you mean 'port'?"
        );
        assert_eq!(
            rendered("tcp and"),
            "can't parse filter expression: syntax error\n  tcp and\n         ^\n\
             expected a primitive like 'tcp', 'port 80' or 'host 192.0.2.1'"
        );
        assert_eq!(rendered("ü").lines().last(), Some("  ^"));
        let last = |text| rendered(text).lines().skip(3).collect::<Vec<_>>().join("; ");
        for (text, told) in [
            ("port and", "expected a port or the name of a service"),
            ("host (1.2.3.4", "expected ')'"),
            (
                "proto tcp",
                "expected a protocol's number, or its name behind a backslash; \
                           did you mean '\\tcp'?",
            ),
            (
                "len-4 > 0",
                "expected a primitive like 'tcp', 'port 80' or 'host 192.0.2.1'; \
                           did you mean 'len - 4'?",
            ),
            ("tcp[13] & 2", "expected a comparison like '=', '!=' or '>'"),
            ("src or net 10", "expected 'dst'"),
            ("less tcp", "expected a number"),
        ] {
            assert_eq!(last(text), told, "{text}");
        }
        assert_eq!(rendered("tcp\tport\t/").lines().nth(1), Some("  tcp port /"));
    }
}
