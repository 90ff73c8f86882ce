//! Text to tokens.

/// A word, an operator or a parenthesis; the end is a token, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    And,
    Or,
    Not,
    Open,
    Close,
    /// A character of the language's arithmetic, or of no language.
    Strange,
    End,
}

/// A token, and where it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl Token<'_> {
    /// For messages.
    pub(crate) fn found(&self) -> String {
        if self.kind == Kind::End { "the end".into() } else { format!("'{}'", self.text) }
    }
}

/// The token that starts at or after `from`.
pub(crate) fn next(text: &str, from: usize) -> Token<'_> {
    let rest = text.get(from..).unwrap_or("");
    let start = rest.trim_start();
    let at = from + rest.len() - start.len();
    let token = |kind, len: usize| Token { kind, text: start.get(..len).unwrap_or(""), at };
    let Some(first) = start.chars().next() else { return token(Kind::End, 0) };
    match first {
        '(' => token(Kind::Open, 1),
        ')' => token(Kind::Close, 1),
        '!' if !start.starts_with("!=") => token(Kind::Not, 1),
        '&' if start.starts_with("&&") => token(Kind::And, 2),
        '|' if start.starts_with("||") => token(Kind::Or, 2),
        c if is_word(c) => {
            let len = start.find(|c| !is_word(c)).unwrap_or(start.len());
            let kind = match start.get(..len) {
                Some("and") => Kind::And,
                Some("or") => Kind::Or,
                Some("not") => Kind::Not,
                _ => Kind::Word,
            };
            token(kind, len)
        }
        c => token(Kind::Strange, c.len_utf8()),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_operators() {
        let text = " not(tcp&&10.0.0.0/8)||!x or and ü";
        let mut at = 0;
        let mut seen = Vec::new();
        loop {
            let t = next(text, at);
            at = t.at + t.text.len();
            seen.push((t.kind, t.text));
            if t.kind == Kind::End {
                break;
            }
        }
        let expected = [
            (Kind::Not, "not"),
            (Kind::Open, "("),
            (Kind::Word, "tcp"),
            (Kind::And, "&&"),
            (Kind::Word, "10.0.0.0/8"),
            (Kind::Close, ")"),
            (Kind::Or, "||"),
            (Kind::Not, "!"),
            (Kind::Word, "x"),
            (Kind::Or, "or"),
            (Kind::And, "and"),
            (Kind::Strange, "ü"),
            (Kind::End, ""),
        ];
        assert_eq!(seen, expected);
    }
}
