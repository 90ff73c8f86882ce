//! Errors and warnings, in Zeek's form: `PREFIX in LOCATION: TEXT`.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::ids::{ExprId, TypeId};
use crate::source::{Sources, Span};

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Printed without a prefix.
    Info,
    /// `warning`.
    Warning,
    /// `error`: the program is not run.
    Error,
    /// `fatal error`: the process ends.
    Fatal,
    /// `internal error`: the process aborts.
    InternalError,
    /// `internal warning`.
    InternalWarning,
    /// `expression error`: an event or hook body ends.
    ExpressionError,
    /// `expression warning`.
    ExpressionWarning,
    /// `runtime error`.
    RuntimeError,
    /// `analyzer error`.
    AnalyzerError,
}

impl Severity {
    /// Zeek's prefix.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Info => "",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Fatal => "fatal error",
            Self::InternalError => "internal error",
            Self::InternalWarning => "internal warning",
            Self::ExpressionError => "expression error",
            Self::ExpressionWarning => "expression warning",
            Self::RuntimeError => "runtime error",
            Self::AnalyzerError => "analyzer error",
        }
    }

    /// Whether the process ends with status 1 after it, or does not start to run.
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(
            self,
            Self::Info | Self::Warning | Self::InternalWarning | Self::ExpressionWarning
        )
    }
}

/// A diagnostic before it is printed.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Location, shown with a caret.
    pub span: Span,
    /// Zeek's text of the location: `FILE, line N`, two of them joined by ` and `, or a type's name; empty for
    /// none.
    pub location: String,
    /// Zeek's message, which may contain arbitrary bytes of strings.
    pub text: Vec<u8>,
    /// The subjects of the diagnostic, for its rich form.
    pub about: Subjects,
}

/// The subjects of a diagnostic, which its rich form labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subjects {
    /// Expressions that the message names.
    pub exprs: [Option<ExprId>; 2],
    /// Types that the message names.
    pub types: [Option<TypeId>; 2],
    /// The location of the second subject; for a syntax error, the previous token.
    pub other: Span,
    /// Length in bytes of the message without the texts of its subjects; 0 if it has none.
    pub message: usize,
    /// The missing token of a syntax error.
    pub expected: Option<&'static str>,
    /// For a syntax error in another file: the unclosed bracket of an earlier file.
    pub unclosed: Span,
    /// The traffic that raised the event whose handler failed.
    pub traffic: Option<Traffic>,
}

/// The packet and connection that raised an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Number of the packet, counted from 1.
    pub packet: u64,
    /// Uid of the connection; empty if the event has none.
    pub uid: String,
}

impl Default for Subjects {
    fn default() -> Self {
        Self {
            exprs: [None; 2],
            types: [None; 2],
            other: Span::NOWHERE,
            message: 0,
            expected: None,
            unclosed: Span::NOWHERE,
            traffic: None,
        }
    }
}

impl Diagnostic {
    /// Zeek's line, without timestamp and line end.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(self.text.len() + self.location.len() + 16);
        let prefix = self.severity.prefix();
        line.extend_from_slice(prefix.as_bytes());
        if !self.location.is_empty() {
            if !prefix.is_empty() {
                line.extend_from_slice(b" in ");
            }
            line.extend_from_slice(self.location.as_bytes());
        }
        if !line.is_empty() {
            line.extend_from_slice(b": ");
        }
        line.extend_from_slice(&self.text);
        line
    }
}

/// Receiver of diagnostics.
pub type Sink = Box<dyn FnMut(&Diagnostic, &Sources)>;

/// Emits diagnostics to a [`Sink`] and counts them.
pub struct Diagnostics {
    sink: Sink,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
    /// Whether anything was emitted, including messages of scripts.
    pub emitted: bool,
    /// Network time as set by packets; 0 before the first.
    pub now: Rc<Cell<f64>>,
}

impl Diagnostics {
    /// Diagnostics that are passed to `sink`.
    #[must_use]
    pub fn new(sink: Sink) -> Self {
        Self { sink, errors: 0, warnings: 0, emitted: false, now: Rc::default() }
    }

    /// Like [`Diagnostics::new`], with network time shared in `now`.
    #[must_use]
    pub fn timed(sink: Sink, now: Rc<Cell<f64>>) -> Self {
        Self { now, ..Self::new(sink) }
    }

    /// Counts and emits a diagnostic.
    pub fn emit(&mut self, diagnostic: &Diagnostic, sources: &Sources) {
        self.emitted = true;
        if diagnostic.severity.is_error() {
            self.errors += 1;
        } else {
            self.warnings += usize::from(diagnostic.severity != Severity::Info);
        }
        (self.sink)(diagnostic, sources);
    }
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self::new(Box::new(|_, _| ()))
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics")
            .field("errors", &self.errors)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
