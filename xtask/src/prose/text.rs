//! The prose of a file: comments of Rust sources, paragraphs of Markdown pages.
//!
//! Code is excluded: fenced blocks, spans in backticks, quoted words and the targets of links.

/// A line of prose and its number, from 1.
pub(super) type Line = (usize, String);

/// Consecutive lines of prose, joined by spaces, so that an expression may cross a line end.
#[derive(Debug, PartialEq)]
pub(super) struct Paragraph {
    pub(super) text: String,
    /// Offset in the text at which a line begins, and its number.
    starts: Vec<(usize, usize)>,
}

impl Paragraph {
    /// The number of the line that contains this offset.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.iter().rev().find(|(start, _)| *start <= at).map_or(0, |&(_, line)| line)
    }
}

/// Joins consecutive lines; an empty line ends a paragraph.
pub(super) fn paragraphs(lines: &[Line]) -> Vec<Paragraph> {
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    let mut last = 0;
    for (number, line) in lines {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        match paragraphs.last_mut() {
            Some(paragraph) if last + 1 == *number => {
                paragraph.text.push(' ');
                paragraph.starts.push((paragraph.text.len(), *number));
                paragraph.text.push_str(line);
            }
            _ => paragraphs.push(Paragraph { text: line.to_owned(), starts: vec![(0, *number)] }),
        }
        last = *number;
    }
    for paragraph in &mut paragraphs {
        paragraph.text = without_code(&paragraph.text);
    }
    paragraphs
}

/// The prose of a Markdown page.
pub(super) fn page(source: &str) -> Vec<Line> {
    let lines = source.lines().enumerate().map(|(i, line)| (i + 1, line.to_owned()));
    without_fences(lines.collect())
}

/// The prose in the comments of a Rust source.
pub(super) fn comments(source: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut scan = Scan { rest: source, line: 1 };
    while let Some(next) = scan.rest.chars().next() {
        match next {
            '/' if scan.rest.starts_with("//") => {
                let text = scan.take_to("\n");
                let text = text.trim_start_matches('/');
                lines.push((scan.line, text.strip_prefix('!').unwrap_or(text).to_owned()));
            }
            '/' if scan.rest.starts_with("/*") => scan.block_comment(&mut lines),
            '"' => scan.string(),
            '\'' => scan.quote(),
            c if c.is_alphanumeric() || c == '_' => scan.word(),
            _ => scan.skip(next.len_utf8()),
        }
    }
    without_fences(lines)
}

/// A position in a Rust source.
struct Scan<'a> {
    rest: &'a str,
    /// The current line number.
    line: usize,
}

impl<'a> Scan<'a> {
    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    /// Takes the text before `end`, or all of it.
    fn take_to(&mut self, end: &str) -> &'a str {
        let text = &self.rest[..self.rest.find(end).unwrap_or(self.rest.len())];
        self.skip(text.len());
        text
    }

    /// A comment between `/*` and `*/`, which may contain others.
    fn block_comment(&mut self, lines: &mut Vec<Line>) {
        let (mut depth, mut at, first) = (0, 0, self.line);
        while at < self.rest.len() {
            let rest = &self.rest[at..];
            let step = rest.chars().next().map_or(1, char::len_utf8);
            if rest.starts_with("/*") {
                depth += 1;
                at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            } else {
                at += step;
            }
        }
        let text = &self.rest[..at.min(self.rest.len())];
        for (i, line) in text.lines().enumerate() {
            let line = line.trim().trim_start_matches('/').trim_end_matches('/');
            lines.push((first + i, line.trim_matches('*').to_owned()));
        }
        self.skip(text.len());
    }

    /// A string whose escapes begin with `\`.
    fn string(&mut self) {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        self.skip(end.map_or(self.rest.len(), |(at, _)| at + 1));
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let mut chars = self.rest.chars().skip(1);
        match (chars.next(), chars.next()) {
            (Some('\\'), _) => {
                // The escaped character may itself be a quote.
                let end = self.rest.get(3..).and_then(|r| r.find('\'')).map_or(3, |at| at + 4);
                self.skip(end);
            }
            (Some(c), Some('\'')) => self.skip(c.len_utf8() + 2),
            _ => self.skip(1),
        }
    }

    /// An identifier or number, or the prefix of a raw string with that string.
    fn word(&mut self) {
        let end = |c: char| !c.is_alphanumeric() && c != '_';
        let word = &self.rest[..self.rest.find(end).unwrap_or(self.rest.len())];
        self.skip(word.len());
        if !matches!(word, "r" | "br" | "cr") {
            return;
        }
        let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
        if self.rest[hashes..].starts_with('"') {
            self.skip(hashes + 1);
            let end = format!("\"{}", "#".repeat(hashes));
            self.take_to(&end);
            self.skip(end.len());
        }
    }
}

/// Drops lines between fences, and the fences.
fn without_fences(lines: Vec<Line>) -> Vec<Line> {
    let (mut inside, mut last) = (false, 0);
    let prose = lines.into_iter().filter(|(number, line)| {
        // An unclosed fence ends with its comment; the lines of a page are consecutive.
        inside &= last + 1 == *number;
        last = *number;
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    prose.collect()
}

/// Replaces quoted text and link targets by the same number of bytes that belong to no word.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '"', ']']) {
        let (before, quoted) = rest.split_at(at);
        out.push_str(before);
        let end = match quoted.as_bytes() {
            [b']', b'(', ..] => quoted.find(')').map(|e| e + 1),
            [b']', ..] => None,
            [mark, ..] => quoted[1..].find(char::from(*mark)).map(|e| e + 2),
            [] => None,
        };
        let length = end.unwrap_or(1);
        out.extend(std::iter::repeat_n('.', length));
        rest = &quoted[length..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Vec<(usize, String)> {
        comments(source).into_iter().map(|(line, text)| (line, text.trim().to_owned())).collect()
    }

    #[test]
    fn comments_are_found_after_any_literal() {
        for literal in [
            "'\"'",
            "'\\''",
            "'\\\\'",
            "\"\\\"\"",
            "\"\\\\\"",
            "r\"\\\"",
            "br##\"\"# \"##",
            "b'\"'",
            "'\\u{22}'",
        ] {
            let source = format!("let x = {literal}; // here\n");
            assert_eq!(read(&source), [(1, "here".to_owned())], "{literal}");
        }
    }

    #[test]
    fn lines_are_counted_through_strings_and_blocks() {
        let source = "let x = \"a\n// no\nb\";\n/* one /* two\nthree */ four\n*/ // five\n";
        let expected = [(4, "one /* two"), (5, "three */ four"), (6, ""), (6, "five")];
        assert_eq!(read(source), expected.map(|(l, t)| (l, t.to_owned())));
    }

    #[test]
    fn a_fence_ends_with_its_comment() {
        let source = "/// ```\n/// code\nfn f() {}\n/// prose\n";
        assert_eq!(read(source), [(4, "prose".to_owned())]);
    }

    #[test]
    fn quoted_text_keeps_the_offsets() {
        assert_eq!(without_code("a `b` \"c\" [d](e) f"), "a ... ... [d.... f");
        assert_eq!(without_code("a ` b"), "a . b");
        assert_eq!(without_code("[a] ä `ü`"), "[a. ä ....");
    }

    #[test]
    fn an_offset_has_a_line() {
        let paragraphs = paragraphs(&[(3, "ab ".into()), (4, " cd".into()), (6, "ef".into())]);
        let texts: Vec<_> = paragraphs.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(texts, ["ab cd", "ef"]);
        assert_eq!([0, 2, 3, 4].map(|at| paragraphs[0].line(at)), [3, 3, 4, 4]);
        assert_eq!(paragraphs[1].line(1), 6);
    }
}
