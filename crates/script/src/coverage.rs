//! Coverage of scripts (`ZEEK_PROFILER_FILE`): how often each statement, body and condition of a file ran, in Zeek's format.
//!
//! A line has the count, the location and the text of a statement, separated by tabs. Counts of an existing
//! file are added to those of the run. If the file name ends in `XXXXXX`, each run writes a file with another
//! suffix instead.
//!
//! With coverage enabled, the compiler emits a counting instruction before each statement. `# @no-test` after a
//! statement excludes it; after the `{` of a block it excludes all statements of the block.

mod excluded;
mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::ast::{ExprKind, StmtKind};
use crate::describe::{self, Style};
use crate::ids::{BodyId, ExprId, FileId, Id as _, StmtId};
use crate::program::Program;
use crate::source::Span;
use crate::types::Flavor;
use excluded::ExcludedBlocks;

/// An `@if` or similar directive that decides whether text is parsed.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// Source span.
    pub span: Span,
    /// Its text, in Zeek's form.
    pub text: String,
    /// Whether the text after it was parsed.
    pub holds: bool,
}

/// Execution counts by location and text.
type Counts = BTreeMap<(Vec<u8>, Vec<u8>), u64>;

/// The coverage file and its counts.
pub(crate) struct Coverage {
    path: PathBuf,
    counts: Counts,
}

impl Coverage {
    /// Creates the coverage that `ZEEK_PROFILER_FILE` requests, with the counts of that file if it exists.
    /// Malformed lines are passed to `warn`.
    pub(crate) fn from_environment(warn: &mut dyn FnMut(&[u8])) -> Option<Self> {
        let path = PathBuf::from(std::env::var_os("ZEEK_PROFILER_FILE")?);
        let text = std::fs::read(&path).unwrap_or_default();
        let mut counts = Counts::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match file::parse(line) {
                Some((count, location, text)) => {
                    counts.entry((location.to_vec(), text.to_vec())).or_insert(count);
                }
                None => warn(line),
            }
        }
        Some(Self { path, counts })
    }

    /// Adds the counts of a run, by statement, and writes the file.
    ///
    /// # Errors
    /// A one-line error message if the file cannot be written.
    pub(crate) fn write(mut self, program: &Program, runs: &[u64]) -> Result<(), String> {
        self.add_bodies(program, runs);
        for conditional in program.conditionals.iter().flatten() {
            let runs = u64::from(conditional.holds);
            self.add(program, conditional.span, conditional.text.as_bytes(), runs);
        }
        file::write(&self.path, &self.counts)
    }

    fn add_bodies(&mut self, program: &Program, runs: &[u64]) {
        let ran = |stmt: StmtId| runs.get(stmt.index()).copied().unwrap_or_default();
        let mut excluded = ExcludedBlocks::default();
        for (id, body) in program.bodies.iter() {
            let function = body.func.and_then(|func| program.functions.find(func));
            if function.is_none() && program.main != Some(id) {
                continue;
            }
            let statements = statements(program, id);
            for (stmt, _) in &statements {
                excluded.add_block(program, *stmt);
            }
            for (stmt, body) in statements {
                let span = location(program, stmt, body);
                if has_line(program, stmt) && !excluded.has(program, stmt) {
                    let text = describe::stmt_of(program, stmt, body, Style::LISTED);
                    self.add(program, span, &text, ran(stmt));
                }
            }
            if let Some(function) = function.filter(|function| function.global.is_some()) {
                let kind = match function.flavor {
                    Flavor::Function => "function",
                    Flavor::Event => "event",
                    Flavor::Hook => "hook",
                };
                let text = format!("{kind} {} BODY", program.name(function.name));
                self.add(program, body_location(program, id), text.as_bytes(), ran(body.stmt));
            }
        }
    }

    fn add(&mut self, program: &Program, span: Span, text: &[u8], runs: u64) {
        if !span.is_somewhere() {
            return;
        }
        let text = text.iter().map(|byte| if matches!(byte, b'\n' | b'\t') { b' ' } else { *byte });
        let key = (program.sources.location(span).into_bytes(), text.collect());
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(runs);
    }
}

/// All statements of a body, each with the body whose locals it uses.
fn statements(program: &Program, body: BodyId) -> Vec<(StmtId, BodyId)> {
    let mut all = Vec::new();
    let mut open = vec![(program.bodies[body].stmt, body)];
    let mut inner = Vec::new();
    while let Some((stmt, body)) = open.pop() {
        all.push((stmt, body));
        let within = match &program.stmts[stmt].kind {
            StmtKind::When(when) => when.frame,
            _ => body,
        };
        crate::walk::substatements(program, stmt, &mut inner);
        open.extend(inner.drain(..).map(|stmt| (stmt, within)));
    }
    all
}

/// Whether a statement gets a line: blocks and assertions do not.
fn has_line(program: &Program, stmt: StmtId) -> bool {
    !matches!(program.stmts[stmt].kind, StmtKind::List(_) | StmtKind::Assert(..))
}

/// The location of a statement: that of its expression, if it has one. An assignment is at its left side,
/// unless it declares that variable.
fn location(program: &Program, stmt: StmtId, body: BodyId) -> Span {
    let statement = &program.stmts[stmt];
    let of = |expr: ExprId| {
        let span = program.exprs[expr].span;
        if span.is_somewhere() { span } else { statement.span }
    };
    match &statement.kind {
        StmtKind::Expr(expr) => match program.exprs[*expr].kind {
            ExprKind::Assign(to, _) if !is_declared(program, to, body) => of(to),
            _ => of(*expr),
        },
        StmtKind::If(expr, ..) | StmtKind::Return(Some(expr)) | StmtKind::SliceAssign(expr, _) => {
            of(*expr)
        }
        StmtKind::For(each) => of(each.over),
        StmtKind::Switch(switch) => of(switch.value),
        StmtKind::While(_, body) => program.stmts[*body].span,
        _ => statement.span,
    }
}

/// Whether an expression is a local at its declaration.
fn is_declared(program: &Program, expr: ExprId, body: BodyId) -> bool {
    let expr = &program.exprs[expr];
    let ExprKind::Local(local, _) = expr.kind else { return false };
    program.bodies[body].locals.find(local).is_some_and(|local| local.span == expr.span)
}

/// The line on which the header of a body ends: that of the last token before `{`.
fn header_line(program: &Program, header: Span, block: Span) -> u32 {
    let text = text(program, header.file);
    let header_text = text.get(header.start as usize..block.start as usize).unwrap_or_default();
    let lines = header_text.split(|byte| *byte == b'\n');
    let is_code = |line: &[u8]| !matches!(line.trim_ascii_start().first(), None | Some(b'#'));
    let last = lines.enumerate().filter(|(_, line)| is_code(line)).last();
    header.first + last.map_or(0, |(number, _)| u32::try_from(number).unwrap_or_default())
}

/// The location of a body: from the end of its header to its last statement.
fn body_location(program: &Program, id: BodyId) -> Span {
    let body = &program.bodies[id];
    let last = match &program.stmts[body.stmt].kind {
        StmtKind::List(stmts) => stmts.last().map(|stmt| program.stmts[*stmt].span),
        _ => None,
    };
    let line = header_line(program, body.span, program.stmts[body.stmt].span);
    let header = Span { first: line, last: line, ..body.span };
    last.map_or(header, |last| Span { last: last.last, end: last.end, ..header })
}

/// The text of a file.
fn text(program: &Program, file: FileId) -> &[u8] {
    program.sources.files.find(file).map_or(&[], |file| &file.text)
}
