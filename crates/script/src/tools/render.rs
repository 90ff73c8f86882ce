//! Findings as text: the message, source lines with carets, a hint.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::io::Write as _;
use std::rc::Rc;

use crate::diagnostics::{Diagnostic, Diagnostics, Severity, Traffic};
use crate::program::Program;
use crate::source::{Sources, Span};
use crate::tools::finding::{Finding, Label};

/// Maximum length of a displayed source line, in characters.
const MAX_LINE_WIDTH: usize = 160;

/// A position in a file: line and column, both counted from 1; columns count characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// The begin and end positions of a span.
#[must_use]
pub fn positions(sources: &Sources, span: Span) -> Option<(Position, Position)> {
    let text = &sources.files.find(span.file)?.text;
    Some((position(text, span.start as usize), position(text, span.end as usize)))
}

/// The position of an offset in a text.
#[must_use]
pub fn position(text: &[u8], offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Position { line: number(line), column: number(column) }
}

/// The text of a finding, followed by an empty line if it shows a source line.
#[must_use]
pub fn render(sources: &Sources, finding: &Finding) -> String {
    let mut text = String::new();
    let severity = match finding.severity {
        Severity::Info => "note",
        other => other.prefix(),
    };
    let _ = writeln!(text, "{severity}[{}]: {}", finding.code, finding.message);
    let mut labels: Vec<(&Label, Position, Position)> = finding
        .labels
        .iter()
        .filter(|label| label.span.is_somewhere())
        .filter_map(|label| positions(sources, label.span).map(|(from, to)| (label, from, to)))
        .collect();
    let width = labels.iter().map(|(_, from, _)| from.line.to_string().len()).max().unwrap_or(1);
    let primary = labels.first().map(|(label, ..)| label.span);
    if let Some((label, from, _)) = labels.first()
        && let Some(file) = sources.files.find(label.span.file)
    {
        let _ = writeln!(text, "{:width$}--> {}:{}:{}", "", file.path, from.line, from.column);
        let _ = writeln!(text, "{:width$} |", "");
    }
    labels.sort_by_key(|(label, from, _)| {
        (Some(label.span.file) != primary.map(|span| span.file), from.line, from.column)
    });
    let mut shown: Option<(Span, u32)> = None;
    for (label, from, to) in &labels {
        let span = label.span;
        let Some(file) = sources.files.find(span.file) else { continue };
        if shown.is_none_or(|(last, line)| last.file != span.file || line != from.line) {
            match shown {
                Some((last, _)) if last.file != span.file => {
                    let _ = writeln!(
                        text,
                        "{:width$}::: {}:{}:{}",
                        "", file.path, from.line, from.column
                    );
                }
                Some((_, line)) if line + 1 < from.line => {
                    let _ = writeln!(text, "{:width$}...", "");
                }
                _ => {}
            }
            let _ = writeln!(text, "{:>width$} | {}", from.line, line_text(&file.text, from.line));
            shown = Some((span, from.line));
        }
        let line = line_text(&file.text, from.line);
        let from_column = from.column as usize - 1;
        let end = if to.line > from.line { line.chars().count() } else { to.column as usize - 1 };
        let length = end.saturating_sub(from_column).max(1);
        if from_column > MAX_LINE_WIDTH {
            continue;
        }
        // Tabs are kept, so that the caret is aligned with its character.
        let blanks: String = line
            .chars()
            .chain(std::iter::repeat(' '))
            .take(from_column)
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = if Some(span) == primary { "^" } else { "-" };
        let marks = mark.repeat(length.min(MAX_LINE_WIDTH - from_column + 1));
        let _ = writeln!(text, "{:width$} | {blanks}{marks} {}", "", label.text);
        while text.ends_with(" \n") {
            text.truncate(text.len() - 2);
            text.push('\n');
        }
    }
    if let Some(hint) = &finding.hint {
        let _ = writeln!(text, "{:width$} = hint: {hint}", "");
    }
    // Without source lines, no empty line follows.
    if primary.is_some() {
        text.push('\n');
    }
    text
}

/// The line with this number, with control characters other than tabs replaced.
fn line_text(text: &[u8], number: u32) -> String {
    let line = text.split(|byte| *byte == b'\n').nth(number as usize - 1).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line)
        .chars()
        .take(MAX_LINE_WIDTH)
        .map(|letter| if letter.is_control() && letter != '\t' { '\u{fffd}' } else { letter })
        .collect()
}

/// Writes diagnostics in their rich form to standard error: those of the parser when parsing is done, later
/// ones immediately.
///
/// An error of a running script is written once per location, with the connection and the packet; the number of
/// its repetitions is written at the end.
#[derive(Clone, Default)]
pub struct RichRenderer {
    waiting: Rc<RefCell<Option<Vec<Diagnostic>>>>,
    sites: Rc<RefCell<Sites>>,
}

/// Number of repetitions of run-time errors, by location, offset in the file and severity.
type Sites = BTreeMap<(String, u32, &'static str), u64>;

impl RichRenderer {
    /// The receiver of diagnostics.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let waiting = Rc::clone(&self.waiting);
        *waiting.borrow_mut() = Some(Vec::new());
        let sites = Rc::clone(&self.sites);
        Diagnostics::new(Box::new(move |diagnostic, sources| {
            if let Some(waiting) = &mut *waiting.borrow_mut() {
                waiting.push(diagnostic.clone());
                return;
            }
            if !diagnostic.span.is_somewhere() {
                // Without a source line, Zeek's line is sufficient.
                return write(&format!("{}\n", String::from_utf8_lossy(&diagnostic.line())));
            }
            let (start, severity) = (diagnostic.span.start, diagnostic.severity.prefix());
            match sites.borrow_mut().entry((diagnostic.location.clone(), start, severity)) {
                Entry::Occupied(mut site) => {
                    *site.get_mut() += 1;
                    return;
                }
                Entry::Vacant(site) => drop(site.insert(0)),
            }
            let text = diagnostic.about.traffic.as_ref().map_or_else(String::new, about_traffic);
            let label = Label { span: diagnostic.span, text };
            let finding = Finding {
                severity: diagnostic.severity,
                code: "run",
                message: String::from_utf8_lossy(&diagnostic.text).into_owned(),
                labels: vec![label],
                hint: None,
                zeek: None,
            };
            write(&render(sources, &finding));
        }))
    }

    /// Writes the number of repeated errors at the end of the run.
    pub fn ended(&self) {
        for ((location, _, severity), again) in self.sites.borrow().iter() {
            if *again > 0 {
                let times = if *again == 1 { "once" } else { &format!("{again} times") };
                write(&format!("{severity} in {location}: {times} more\n"));
            }
        }
    }

    /// Writes the diagnostics of the parser when parsing is done.
    pub fn parsed(&self, program: &Program) {
        let waiting = self.waiting.borrow_mut().take().unwrap_or_default();
        for finding in super::finding::findings(program, &waiting) {
            write(&render(&program.sources, &finding));
        }
    }
}

fn about_traffic(traffic: &Traffic) -> String {
    match traffic.uid.as_str() {
        "" => format!("at packet {}", traffic.packet),
        uid => format!("connection {uid}, packet {}", traffic.packet),
    }
}

fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
