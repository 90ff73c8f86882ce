//! The output of each compiler stage for a script, as text: tokens, AST, types, code.

use std::fmt::Write as _;

use crate::ast::{ExprKind, StmtKind};
use crate::code::Code;
use crate::describe;
use crate::ids::{BodyId, ExprId, FuncId, GlobalId, StmtId, TypeId};
use crate::program::Program;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::tools::finding::type_name;
use crate::tools::session::Session;
use crate::tools::tokens::{self, Kind};
use crate::types::Flavor;
use crate::walk;

/// The tokens, comments and directives of a file, one per line: line, kind, text.
#[must_use]
pub fn tokens(source: &[u8]) -> String {
    let mut text = String::new();
    match tokens::pieces(source) {
        Ok(pieces) => {
            for piece in pieces {
                let kind = match &piece.kind {
                    Kind::Comment => "comment".to_owned(),
                    Kind::Pattern => "pattern".to_owned(),
                    Kind::Directive(directive) => format!("directive {directive:?}"),
                    Kind::Token(token) => format!("{token:?}"),
                };
                let shown = String::from_utf8_lossy(piece.text(source)).into_owned();
                let _ = writeln!(text, "{:>4} {kind}  {shown}", piece.line);
            }
        }
        Err(wrong) => {
            let _ = writeln!(text, "line {}: {}", wrong.line, wrong.message);
        }
    }
    text
}

/// The functions, handlers and hooks of the named files as trees of statements, with their expressions in
/// Zeek's text.
#[must_use]
pub fn ast(session: &Session) -> String {
    let program = &session.program;
    let mut text = String::new();
    for body in bodies(session) {
        let _ = writeln!(text, "{}", header(program, body));
        stmt(program, program.bodies[body].stmt, 1, &mut text);
    }
    text
}

/// The globals of the named files with their types, and each expression of their bodies with its location, type
/// and text.
#[must_use]
pub fn types(session: &Session) -> String {
    let program = &session.program;
    let mut text = String::new();
    for (_, global) in program.globals.arena.iter() {
        if !is_named(session, global.span) {
            continue;
        }
        let kind = match global.kind {
            GlobalKind::Variable => "global",
            GlobalKind::Constant => "const",
            GlobalKind::Option => "option",
            GlobalKind::Type => "type",
            GlobalKind::EnumValue(_) => "enum value",
            GlobalKind::Function(_) => "function",
            GlobalKind::Unknown => "unknown",
        };
        let shown = match global.kind {
            GlobalKind::Type => describe::structure(program, global.ty),
            _ => type_name(program, global.ty),
        };
        let _ = writeln!(text, "{kind} {}: {shown}", program.name(global.name));
    }
    for body in bodies(session) {
        let _ = writeln!(text, "{}", header(program, body));
        for (_, local) in program.bodies[body].locals.iter() {
            let name = program.name(local.name);
            let _ = writeln!(text, "  {:?} {name}: {}", local.kind, type_name(program, local.ty));
        }
        let mut open = vec![program.bodies[body].stmt];
        while let Some(next) = open.pop() {
            let mut tops = Vec::new();
            walk::stmt_expressions(program, next, &mut tops);
            for top in tops {
                walk::expressions(program, top, &mut |expr| typed(program, expr, &mut text));
            }
            let mut inside = Vec::new();
            walk::substatements(program, next, &mut inside);
            open.extend(inside.into_iter().rev());
        }
    }
    text
}

/// The instructions of the bodies of the named files, each with its expression.
#[must_use]
pub fn code(session: &mut Session) -> String {
    let mut text = String::new();
    for body in bodies(session) {
        let _ = writeln!(text, "{}", header(&session.program, body));
        let code = session.machine.with(&mut session.program).code(body);
        instructions(&session.program, &code, &mut text);
    }
    text
}

fn instructions(program: &Program, code: &Code, text: &mut String) {
    let _ = writeln!(text, "  {} registers", code.registers);
    for (at, value) in code.consts.iter().enumerate() {
        let _ = writeln!(text, "  const {at} = {value:?}");
    }
    for (at, op) in code.ops.iter().enumerate() {
        let site = code.sites.get(at).filter(|site| program.exprs.find(**site).is_some());
        let site = site.map_or(String::new(), |site| {
            format!(
                "  # {}",
                String::from_utf8_lossy(&describe::expr(program, *site)).replace('\n', " ")
            )
        });
        let op = named(program, &format!("{op:?}"));
        let _ = writeln!(text, "  {at:>4}  {op}{site}");
    }
}

/// The text of an instruction with names instead of ids.
fn named(program: &Program, op: &str) -> String {
    let mut text = String::with_capacity(op.len());
    let mut rest = op;
    while let Some(at) = rest.find("Id(") {
        let start =
            rest[..at].rfind(|letter: char| !letter.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        let kind = &rest[start..at];
        let Some(end) = rest[at..].find(')').map(|end| at + end) else { break };
        let index = rest[at + 3..end].parse().ok();
        let name = index.and_then(|index: u32| match kind {
            "Type" => (index < u32::try_from(program.types.len()).unwrap_or(0))
                .then(|| type_name(program, TypeId(index))),
            "Func" => {
                let function = program.functions.find(FuncId(index))?;
                Some(program.name(function.name).to_owned())
            }
            "Global" => {
                let global = program.globals.arena.find(GlobalId(index))?;
                Some(program.name(global.name).to_owned())
            }
            _ => None,
        });
        match name {
            Some(name) => {
                text.push_str(&rest[..start]);
                text.push_str(&name);
            }
            None => text.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    text + rest
}

fn typed(program: &Program, expr: ExprId, text: &mut String) {
    let entry = &program.exprs[expr];
    let conversion = match entry.kind {
        ExprKind::Coerce(how, _) => format!(" ({how:?})"),
        _ => String::new(),
    };
    let shown = String::from_utf8_lossy(&describe::expr(program, expr)).replace('\n', " ");
    let ty = type_name(program, entry.ty);
    let _ = writeln!(text, "  line {}: {ty}{conversion}  {shown}", entry.span.first);
}

fn stmt(program: &Program, id: StmtId, depth: usize, text: &mut String) {
    if depth > 1_000 {
        return;
    }
    let kind = match &program.stmts[id].kind {
        StmtKind::Null => "Null",
        StmtKind::List(_) => "List",
        StmtKind::Expr(_) => "Expr",
        StmtKind::Print(_) => "Print",
        StmtKind::If(..) => "If",
        StmtKind::While(..) => "While",
        StmtKind::For(_) => "For",
        StmtKind::Switch(_) => "Switch",
        StmtKind::Return(_) => "Return",
        StmtKind::Break => "Break",
        StmtKind::Next => "Next",
        StmtKind::Fallthrough => "Fallthrough",
        StmtKind::Event(_) => "Event",
        StmtKind::When(_) => "When",
        StmtKind::Assert(..) => "Assert",
        StmtKind::SliceAssign(..) => "SliceAssign",
    };
    let mut tops = Vec::new();
    walk::stmt_expressions(program, id, &mut tops);
    let shown: Vec<String> = tops
        .iter()
        .map(|top| String::from_utf8_lossy(&describe::expr(program, *top)).replace('\n', " "))
        .collect();
    let line = program.stmts[id].span.first;
    let _ = writeln!(text, "{:width$}{kind} {} @{line}", "", shown.join(" | "), width = depth * 2);
    let mut inside = Vec::new();
    walk::substatements(program, id, &mut inside);
    for inner in inside {
        stmt(program, inner, depth + 1, text);
    }
}

/// The bodies of the named files.
fn bodies(session: &Session) -> Vec<BodyId> {
    let program = &session.program;
    let written = |body: &BodyId| {
        let span = program.stmts[program.bodies[*body].stmt].span;
        let main = Some(*body) == program.main;
        is_named(session, span) || (main && has_statements(program, *body))
    };
    program.bodies.ids().filter(written).collect()
}

fn has_statements(program: &Program, body: BodyId) -> bool {
    matches!(&program.stmts[program.bodies[body].stmt].kind, StmtKind::List(stmts) if !stmts.is_empty())
}

fn is_named(session: &Session, span: Span) -> bool {
    let file = session.program.sources.files.find(span.file);
    file.is_some_and(|file| session.named.iter().any(|name| *name == *file.path))
}

fn header(program: &Program, id: BodyId) -> String {
    let body = &program.bodies[id];
    let Some(func) = body.func else { return "statements".to_owned() };
    let function = &program.functions[func];
    let flavor = match function.flavor {
        Flavor::Function => "function",
        Flavor::Event => "event",
        Flavor::Hook => "hook",
    };
    let priority = match body.priority {
        0 => String::new(),
        priority => format!(" &priority={priority}"),
    };
    format!("{flavor} {}{priority}", program.name(function.name))
}
