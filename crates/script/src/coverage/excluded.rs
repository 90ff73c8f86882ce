//! Statements that `# @no-test` excludes.

use super::text;
use crate::ast::StmtKind;
use crate::ids::StmtId;
use crate::program::Program;
use crate::source::Span;

/// The comment that excludes a statement or a block.
const EXCLUDE_MARKER: &[u8] = b"@no-test";

/// Blocks that are excluded.
#[derive(Default)]
pub(super) struct ExcludedBlocks(Vec<Span>);

impl ExcludedBlocks {
    /// Adds a statement if it is a block that is excluded.
    pub(super) fn add_block(&mut self, program: &Program, stmt: StmtId) {
        let statement = &program.stmts[stmt];
        let span = statement.span;
        if !matches!(statement.kind, StmtKind::List(_)) || !span.is_somewhere() {
            return;
        }
        let text = text(program, span.file).get(span.start as usize..).unwrap_or_default();
        if text.strip_prefix(b"{").is_some_and(is_marked) {
            self.0.push(span);
        }
    }

    /// Whether a statement is excluded.
    pub(super) fn has(&self, program: &Program, stmt: StmtId) -> bool {
        let statement = &program.stmts[stmt];
        let span = statement.span;
        let holds = |block: &Span| {
            block.file == span.file && block.start <= span.start && span.end <= block.end
        };
        if self.0.iter().any(holds) {
            return true;
        }
        if matches!(
            statement.kind,
            StmtKind::If(..)
                | StmtKind::While(..)
                | StmtKind::For(_)
                | StmtKind::Switch(_)
                | StmtKind::When(_)
        ) {
            return false;
        }
        let text = text(program, span.file).get(span.end as usize..).unwrap_or_default();
        text.trim_ascii_start().strip_prefix(b";").is_some_and(is_marked)
    }
}

/// Whether the marker precedes the next token.
fn is_marked(mut text: &[u8]) -> bool {
    loop {
        text = text.trim_ascii_start();
        let Some(comment) = text.strip_prefix(b"#") else { return false };
        let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
        let (line, rest) = comment.split_at(end);
        if line.trim_ascii_start().starts_with(EXCLUDE_MARKER) {
            return true;
        }
        text = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_a_comment_before_the_next_token() {
        for text in ["#@no-test", " # @no-test why\n x", "\n\t# a\n  #\t@no-test"] {
            assert!(is_marked(text.as_bytes()), "{text}");
        }
        for text in ["", "x # @no-test", "# no-test", "# a @no-test", "@no-test"] {
            assert!(!is_marked(text.as_bytes()), "{text}");
        }
    }
}
