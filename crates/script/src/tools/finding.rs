//! Findings: diagnostics with labelled spans, a code and a hint.
//!
//! Zeek repeats an error about a wrong type for each enclosing construct. Only the first becomes a finding;
//! later errors whose span contains it, and later errors about the same unknown name, are omitted.

use std::collections::HashSet;

use crate::ast::ExprKind;
use crate::diagnostics::{Diagnostic, Severity};
use crate::ids::{ExprId, FileId, TypeId};
use crate::program::Program;
use crate::source::Span;
use crate::tools::explain::{self, UNKNOWN_NAME};
use crate::tools::hints;

/// A labelled span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// Label shown under the marked source; empty for a caret without text.
    pub text: String,
}

/// An error or a warning in the form that the tools show.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Its stable code, which configuration refers to.
    pub code: &'static str,
    /// The message, one line.
    pub message: String,
    /// Labelled spans; the first is that of the finding.
    pub labels: Vec<Label>,
    /// How to fix the cause.
    pub hint: Option<String>,
    /// Zeek's line, if Zeek reports it too.
    pub zeek: Option<String>,
}

impl Finding {
    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: String, hint: &str) -> Self {
        let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
        let labels = vec![Label { span, text: String::new() }];
        Self { severity: Severity::Warning, code, message, labels, hint, zeek: None }
    }

    /// Adds a labelled span.
    #[must_use]
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        if span.is_somewhere() {
            self.labels.push(Label { span, text: text.into() });
        }
        self
    }

    /// The span of the finding.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|label| label.span).filter(|span| span.is_somewhere())
    }

    /// The file of the finding.
    #[must_use]
    pub fn file(&self) -> Option<FileId> {
        self.span().map(|span| span.file)
    }
}

/// The findings of `diagnostics`, without follow-up errors.
#[must_use]
pub fn findings(program: &Program, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut unknown = HashSet::new();
    for diagnostic in diagnostics {
        let finding = finding(program, diagnostic);
        if finding.severity.is_error() && follows(&found, &finding) {
            continue;
        }
        if finding.code == UNKNOWN_NAME && !unknown.insert(finding.message.clone()) {
            continue;
        }
        found.push(finding);
    }
    found
}

/// Converts a diagnostic to a finding.
#[must_use]
pub fn finding(program: &Program, diagnostic: &Diagnostic) -> Finding {
    let text = String::from_utf8_lossy(&diagnostic.text).into_owned();
    let message = match diagnostic.about.message {
        0 => text.as_str(),
        length => text.get(..length).unwrap_or(&text),
    };
    let explained = explain::explain(message);
    let mut labels = labels(program, diagnostic);
    let mut message = message.to_owned();
    if let Some(end) = message.find(", at or near").filter(|_| explained.code == UNKNOWN_NAME) {
        message.truncate(end);
    }
    let hint = hints::hint(program, diagnostic, &message).or(explained.hint.map(str::to_owned));
    if message.starts_with("syntax error") {
        message = syntax(program, diagnostic, &mut labels);
    }
    Finding {
        severity: diagnostic.severity,
        code: explained.code,
        message,
        labels,
        hint,
        zeek: Some(String::from_utf8_lossy(&diagnostic.line()).into_owned()),
    }
}

/// Whether the new error follows from an earlier one: its span contains that of the earlier one.
fn follows(found: &[Finding], new: &Finding) -> bool {
    let Some(span) = new.span() else {
        // Errors without a location that summarize earlier ones.
        return new.message.contains("see previous errors") && !found.is_empty();
    };
    found.iter().rev().take(16).any(|old| {
        old.severity.is_error()
            && old.span().is_some_and(|inner| {
                inner.file == span.file && inner.start >= span.start && inner.end <= span.end
            })
    })
}

fn labels(program: &Program, diagnostic: &Diagnostic) -> Vec<Label> {
    let about = &diagnostic.about;
    let mut labels = Vec::new();
    let mut add = |span: Span, text: String| {
        if span.is_somewhere() && !labels.iter().any(|label: &Label| label.span == span) {
            labels.push(Label { span, text });
        }
    };
    match (about.exprs[0], about.exprs[1]) {
        (Some(first), second) => {
            let parts = operands(program, first);
            let span = program.exprs[first].span;
            match (&program.exprs[first].kind, parts.as_slice()) {
                (ExprKind::Assign(..) | ExprKind::AddTo(..), [left, right]) => {
                    let (to, from) = (program.exprs[*left].ty, program.exprs[*right].ty);
                    add(program.exprs[*right].span, mismatch(program, to, from));
                    let (value, target) = (program.exprs[*right].span, program.exprs[*left].span);
                    if target.end <= value.start {
                        add(target, is_of(program, *left));
                    }
                }
                (_, [left, right]) => {
                    add(span, String::new());
                    add(program.exprs[*left].span, is_of(program, *left));
                    add(program.exprs[*right].span, is_of(program, *right));
                }
                _ => {
                    let text = match about.types[1].or(about.types[0]) {
                        Some(ty) => mismatch(program, ty, program.exprs[first].ty),
                        None => is_of(program, first),
                    };
                    add(span, text);
                }
            }
            if let Some(second) = second {
                add(program.exprs[second].span, is_of(program, second));
            }
        }
        (None, Some(second)) => {
            let ty = about.types[0].unwrap_or(TypeId::ERROR);
            add(program.exprs[second].span, mismatch(program, ty, program.exprs[second].ty));
        }
        (None, None) => {
            // About an item that was declared elsewhere: the second span is that of the error, unless the first
            // is a type, which has the span of its definition.
            if about.message > 0 && about.other.is_somewhere() {
                let places = [diagnostic.span, about.other];
                let is_new = diagnostic.text.starts_with(b"\"redef\" used");
                let [declared, error] = match about.types[0] {
                    Some(_) => [places[1], places[0]],
                    None if is_new => [Span::NOWHERE, places[0]],
                    None => places,
                };
                add(error, String::new());
                add(declared, "declared here".to_owned());
            } else {
                add(diagnostic.span, String::new());
            }
        }
    }
    if labels.is_empty() {
        labels.push(Label { span: diagnostic.span, text: String::new() });
    }
    labels
}

pub(super) fn operands(program: &Program, expr: ExprId) -> Vec<ExprId> {
    match program.exprs[expr].kind {
        ExprKind::Binary(_, a, b)
        | ExprKind::In(a, b)
        | ExprKind::Index(a, b)
        | ExprKind::Assign(a, b)
        | ExprKind::AddTo(_, a, b)
        | ExprKind::RemoveFrom(a, b) => vec![a, b],
        _ => Vec::new(),
    }
}

fn is_of(program: &Program, expr: ExprId) -> String {
    match program.exprs[expr].ty {
        TypeId::ERROR | TypeId::VOID => String::new(),
        ty => format!("of type `{}`", type_name(program, ty)),
    }
}

fn mismatch(program: &Program, expected: TypeId, found: TypeId) -> String {
    match (expected, found) {
        (TypeId::ERROR, TypeId::ERROR) => String::new(),
        (TypeId::ERROR, found) => format!("of type `{}`", type_name(program, found)),
        (expected, TypeId::ERROR) => format!("expected `{}`", type_name(program, expected)),
        (expected, found) => {
            format!(
                "expected `{}`, found `{}`",
                type_name(program, expected),
                type_name(program, found)
            )
        }
    }
}

/// The name of a type, or its text.
#[must_use]
pub fn type_name(program: &Program, ty: TypeId) -> String {
    match program.types.data(ty).name {
        Some(name) => program.name(name).to_owned(),
        None => crate::describe::type_text(program, ty),
    }
}

/// The source text of a span.
pub(super) fn source(program: &Program, span: Span) -> Option<String> {
    let file = program.sources.files.find(span.file).filter(|_| span.is_somewhere())?;
    let text = file.text.get(span.start as usize..span.end as usize)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The message of a syntax error: the expected and the found token.
fn syntax(program: &Program, diagnostic: &Diagnostic, labels: &mut Vec<Label>) -> String {
    let found = source(program, diagnostic.span);
    let found = found.map_or_else(|| "end of file".to_owned(), |text| format!("`{text}`"));
    let before = diagnostic.about.other;
    let unclosed = diagnostic.about.unclosed;
    if let Some(bracket) = source(program, unclosed) {
        labels.retain(|label| label.span.is_somewhere());
        if let Some(label) = labels.first_mut() {
            label.text = "where the next file does not fit".to_owned();
        }
        labels.insert(0, Label { span: unclosed, text: "opened here".to_owned() });
        return format!("`{bracket}` is not closed at the end of the file");
    }
    let is_open = source(program, before).is_some_and(|text| text != ";" && text != "}");
    if diagnostic.span.is_somewhere()
        && before.is_somewhere()
        && before.file != diagnostic.span.file
        && is_open
    {
        let behind = Span { start: before.end, end: before.end, first: before.last, ..before };
        labels.retain(|label| label.span.is_somewhere());
        if let Some(label) = labels.first_mut() {
            label.text = "where the next file does not fit".to_owned();
        }
        labels.insert(0, Label { span: behind, text: "behind this".to_owned() });
        return "the file ends within a statement".to_owned();
    }
    match diagnostic.about.expected {
        Some(wanted) => {
            let wanted =
                if wanted.contains(' ') { wanted.to_owned() } else { format!("`{wanted}`") };
            let behind = Span { start: before.end, end: before.end, first: before.last, ..before };
            let elsewhere = before.is_somewhere() && before.last != diagnostic.span.first;
            if elsewhere {
                labels.retain(|label| label.span.is_somewhere());
                labels.insert(0, Label { span: behind, text: format!("expected {wanted}") });
                if let Some(label) = labels.get_mut(1) {
                    label.text = "found this".to_owned();
                }
            } else if let Some(label) = labels.first_mut() {
                label.text = format!("expected {wanted}");
            }
            format!("expected {wanted}, found {found}")
        }
        None => {
            if !diagnostic.span.is_somewhere() && before.is_somewhere() {
                labels.clear();
                labels.push(Label { span: before, text: "behind this".to_owned() });
            }
            format!("unexpected {found}")
        }
    }
}
