//! The formatter: pieces to lines.
//!
//! It sets indentation, blanks between tokens, and the lines of braces and statements. It keeps line breaks
//! inside statements, the alignment of continuation lines and columns, comments, and up to two empty lines. It
//! never changes tokens: the result is tokenized again and compared.

mod layout;
mod spacing;

use crate::tools::tokens::{self, NotTokens, Piece};

/// The reason why a file was not formatted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unformatted {
    /// The line; 0 if no line applies.
    pub line: u32,
    /// The error message.
    pub message: String,
}

impl From<NotTokens> for Unformatted {
    fn from(wrong: NotTokens) -> Self {
        Self { line: wrong.line, message: wrong.message }
    }
}

/// The text of a script in the common style.
///
/// # Errors
/// Text that is not a token, or unbalanced brackets.
pub fn format(source: &[u8]) -> Result<Vec<u8>, Unformatted> {
    // Indentation affects the alignment of later lines: a second pass corrects lines that the first one moved.
    let mut text = once(source)?;
    for _ in 0..MAX_PASSES {
        let next = once(&text)?;
        if next == text {
            break;
        }
        text = next;
    }
    Ok(text)
}

/// Maximum number of passes until the result must be stable.
const MAX_PASSES: usize = 4;

fn once(source: &[u8]) -> Result<Vec<u8>, Unformatted> {
    let pieces = tokens::pieces(source)?;
    let text = layout::format_pieces(source, &pieces)?;
    let again = tokens::pieces(&text)?;
    let same = |a: &Piece, b: &Piece| a.kind == b.kind && a.text(source) == b.text(&text);
    if pieces.len() != again.len() || !pieces.iter().zip(&again).all(|(a, b)| same(a, b)) {
        let first = pieces.iter().zip(&again).find(|(a, b)| !same(a, b));
        let line = first.map_or(0, |(piece, _)| piece.line);
        return Err(Unformatted { line, message: "the tokens would change".to_owned() });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_among_items_stay_where_they_are() {
        // Not a script, but its brackets match. Without the rule for items, every pass moved the last line by
        // one tab.
        let text = once(b"e{\nfor()()\ns}").unwrap();
        assert_eq!(String::from_utf8_lossy(&text), "e {\n\tfor ()()\n\ts }\n");
        assert_eq!(once(&text).as_ref(), Ok(&text));
    }
}
