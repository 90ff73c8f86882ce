//! Warnings that Zeek does not have. Each has a code; a comment `# gannet: allow(CODE)` on the line of the
//! finding or above silences it.
//!
//! | code | module | by default |
//! |---|---|---|
//! | `unused-local`, `unreachable-code` | `flow` | yes |
//! | `shadowed-name` | `names` | yes |
//! | `unhandled-event`, `schedule-in-init` | `events` | yes |
//! | `default-changed`, `attribute-lost`, `unbounded-table` | `tables` | yes |
//! | `unordered-output` | `tables` | no |
//! | `optional-field` | `optional` | no |

mod events;
mod flow;
mod names;
mod optional;
mod tables;

use std::collections::{HashMap, HashSet};

use crate::ast::StmtKind;
use crate::ids::{BodyId, ExprId, FileId, GlobalId, StmtId};
use crate::program::Program;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::tools::finding::Finding;
use crate::walk;

/// The set of warnings to emit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Level {
    /// No warnings.
    None,
    /// Those with few false positives.
    #[default]
    Default,
    /// All warnings.
    All,
}

/// The warnings about the files that `is_checked` accepts, sorted by position.
#[must_use]
pub fn warnings(
    program: &Program,
    level: Level,
    is_checked: &dyn Fn(FileId) -> bool,
) -> Vec<Finding> {
    let mut lint = Lint { program, level, is_checked, frames: HashSet::new(), found: Vec::new() };
    for (_, stmt) in program.stmts.iter() {
        if let StmtKind::When(when) = &stmt.kind {
            lint.frames.insert(when.frame);
        }
    }
    flow::check(&mut lint);
    names::check(&mut lint);
    events::check(&mut lint);
    tables::check(&mut lint);
    if level == Level::All {
        optional::check(&mut lint);
    }
    let mut found = lint.found;
    let mut allowed = HashMap::new();
    found.retain(|finding| !is_allowed(program, &mut allowed, finding));
    found.sort_by_key(|finding| finding.span().map(|span| (span.file, span.start)));
    found.dedup();
    found
}

/// State of the lint passes.
struct Lint<'a> {
    program: &'a Program,
    level: Level,
    is_checked: &'a dyn Fn(FileId) -> bool,
    /// Frames of `when`s, which are parts of other bodies.
    frames: HashSet<BodyId>,
    found: Vec<Finding>,
}

impl Lint<'_> {
    fn is_span_checked(&self, span: Span) -> bool {
        span.is_somewhere() && (self.is_checked)(span.file)
    }

    fn warn(&mut self, code: &'static str, span: Span, message: String, hint: &str) {
        self.push(Finding::warning(code, span, message, hint));
    }

    fn push(&mut self, finding: Finding) {
        if finding.span().is_some_and(|span| self.is_span_checked(span)) {
            self.found.push(finding);
        }
    }

    /// Bodies of functions, handlers, hooks and lambdas in checked files, and the statements at file level.
    fn bodies(&self) -> Vec<BodyId> {
        self.program
            .bodies
            .iter()
            .filter(|(id, body)| {
                !self.frames.contains(id)
                    && (Some(*id) == self.program.main
                        || self.is_span_checked(self.program.stmts[body.stmt].span))
            })
            .map(|(id, _)| id)
            .collect()
    }

    /// The name of a local or global without its module.
    fn short(&self, name: crate::ids::Name) -> &str {
        self.program.name(name).rsplit("::").next().unwrap_or_default()
    }

    /// The variable that an expression refers to, without surrounding conversions.
    fn global(&self, expr: ExprId) -> Option<GlobalId> {
        match &self.program.exprs[expr].kind {
            crate::ast::ExprKind::Global(global)
                if matches!(
                    self.program.globals[*global].kind,
                    GlobalKind::Variable | GlobalKind::Option | GlobalKind::Constant
                ) =>
            {
                Some(*global)
            }
            crate::ast::ExprKind::Coerce(_, inner) => self.global(*inner),
            _ => None,
        }
    }
}

/// Calls `visit` for each statement of a body with its frame: that of the body or of a `when`.
fn statements(program: &Program, body: BodyId, visit: &mut dyn FnMut(BodyId, StmtId)) {
    let mut open = vec![(body, program.bodies[body].stmt)];
    while let Some((frame, stmt)) = open.pop() {
        visit(frame, stmt);
        let frame = match &program.stmts[stmt].kind {
            StmtKind::When(when) => when.frame,
            _ => frame,
        };
        let mut inside = Vec::new();
        walk::substatements(program, stmt, &mut inside);
        open.extend(inside.into_iter().rev().map(|stmt| (frame, stmt)));
    }
}

/// Calls `visit` for each expression of a body, except bodies of lambdas, with the frame of its evaluation.
fn expressions(program: &Program, body: BodyId, visit: &mut dyn FnMut(BodyId, ExprId)) {
    statements(program, body, &mut |frame, stmt| {
        let mut tops = Vec::new();
        walk::stmt_expressions(program, stmt, &mut tops);
        let inner = match &program.stmts[stmt].kind {
            StmtKind::When(when) => Some((when.frame, when.condition)),
            _ => None,
        };
        for top in tops {
            let frame =
                inner.filter(|(_, condition)| *condition == top).map_or(frame, |(frame, _)| frame);
            walk::expressions(program, top, &mut |expr| visit(frame, expr));
        }
    });
}

/// Line numbers of a file, counted from 1, with the codes that a comment on that line allows.
type Allowed = Vec<(u32, String)>;

/// Whether a comment on the finding's first line, or on the line above, allows it. Each file is searched once.
fn is_allowed(program: &Program, known: &mut HashMap<FileId, Allowed>, finding: &Finding) -> bool {
    let Some(span) = finding.span() else { return false };
    let Some(file) = program.sources.files.find(span.file) else { return false };
    let allowed = known.entry(span.file).or_insert_with(|| allowed_in(&file.text));
    allowed.iter().any(|(line, codes)| {
        (*line == span.first || line + 1 == span.first)
            && codes.split(',').any(|code| code.trim() == finding.code)
    })
}

fn allowed_in(text: &[u8]) -> Allowed {
    const BEGIN: &str = "gannet: allow(";
    if memchr::memmem::find(text, BEGIN.as_bytes()).is_none() {
        return Vec::new();
    }
    let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
    let codes = lines.filter_map(|(number, line)| {
        let line = String::from_utf8_lossy(line);
        let (codes, _) = line.split_once(BEGIN)?.1.split_once(')')?;
        Some((number, codes.to_owned()))
    });
    codes.collect()
}
