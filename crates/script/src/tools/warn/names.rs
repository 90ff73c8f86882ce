//! Locals that shadow other names.

use super::{Level, Lint};
use crate::ast::LocalKind;
use crate::ids::BodyId;
use crate::symbols::GlobalKind;
use crate::tools::finding::Finding;

pub(super) fn check(lint: &mut Lint<'_>) {
    for body in lint.bodies() {
        hidden_globals(lint, body);
    }
}

/// Locals of a module that have the name of a global of module GLOBAL.
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
