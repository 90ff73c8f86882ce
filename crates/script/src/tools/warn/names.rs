//! Locals that hide other names.

use super::{Level, Lint};
use crate::ast::{ExprKind, LocalKind};
use crate::ids::BodyId;
use crate::symbols::GlobalKind;
use crate::tools::finding::Finding;

pub(super) fn check(lint: &mut Lint<'_>) {
    for body in lint.bodies() {
        hidden_globals(lint, body);
        hidden_locals(lint, body);
    }
}

/// Locals of a module that have the name of a global outside of modules.
fn hidden_globals(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    for local in program.bodies[body].locals.ids() {
        let entry = &program.bodies[body].locals[local];
        let declared = match entry.kind {
            LocalKind::Variable | LocalKind::Constant => true,
            LocalKind::Param | LocalKind::Loop => lint.level == Level::All,
            LocalKind::Capture => false,
        };
        let name = lint.short(entry.name).to_owned();
        if !declared || name == program.name(entry.name) {
            continue;
        }
        let Some(global) = program.names.find(&name).and_then(|name| program.globals.find(name))
        else {
            continue;
        };
        let other = &program.globals[global];
        let kind = match other.kind {
            GlobalKind::Function(_) => "function",
            GlobalKind::Type => "type",
            GlobalKind::Variable | GlobalKind::Constant | GlobalKind::Option => "global",
            GlobalKind::EnumValue(_) | GlobalKind::Unknown => continue,
        };
        let message = format!("local `{name}` hides the {kind} `{name}`");
        let hint = format!("`::{name}` names the {kind}");
        let finding = Finding::warning("shadowed-name", entry.span, message, &hint);
        lint.push(finding.and(other.span, "hidden"));
    }
}

/// Parameters and locals of lambdas that have the name of a local around.
fn hidden_locals(lint: &mut Lint<'_>, body: BodyId) {
    let program = lint.program;
    let mut found = Vec::new();
    super::expressions(program, body, &mut |frame, expr| {
        let ExprKind::Lambda(lambda) = &program.exprs[expr].kind else { return };
        let Some(inner) = program.functions[lambda.func].bodies.first() else { return };
        for (_, local) in program.bodies[*inner].locals.iter() {
            if local.kind == LocalKind::Capture {
                continue;
            }
            let outer = program.bodies[frame]
                .locals
                .iter()
                .find(|(_, outer)| outer.name == local.name && outer.span.start < local.span.start);
            if let Some((_, outer)) = outer {
                found.push((local.name, local.span, outer.span));
            }
        }
    });
    for (name, span, outer) in found {
        let message = format!("`{}` hides a local of the function around", lint.short(name));
        let finding = Finding::warning("shadowed-name", span, message, "");
        lint.push(finding.and(outer, "hidden"));
    }
}
