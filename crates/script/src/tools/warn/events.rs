//! Events without a handler, and `schedule` before network time is set.

use std::collections::HashSet;

use super::{Level, Lint};
use crate::ast::{ExprKind, StmtKind};
use crate::ids::GlobalId;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::tools::finding::Finding;

pub(super) fn check(lint: &mut Lint<'_>) {
    let program = lint.program;
    let mut raised: Vec<(GlobalId, Span)> = Vec::new();
    let mut scheduled = Vec::new();
    for body in lint.bodies() {
        let func = program.bodies[body].func;
        let init =
            func.is_some_and(|func| program.name(program.functions[func].name) == "zeek_init");
        super::statements(program, body, &mut |_, stmt| {
            if let StmtKind::Event(call) = &program.stmts[stmt].kind {
                raised.push((call.event, program.stmts[stmt].span));
            }
        });
        super::expressions(program, body, &mut |_, expr| {
            let span = program.exprs[expr].span;
            match &program.exprs[expr].kind {
                ExprKind::Event(call) => raised.push((call.event, span)),
                ExprKind::Schedule(_, call) => {
                    raised.push((call.event, span));
                    if init {
                        scheduled.push(span);
                    }
                }
                _ => {}
            }
        });
    }
    for span in scheduled {
        let message = "`schedule` in `zeek_init` counts from time 0 when a capture is read";
        let hint = "schedule in `network_time_init`, which runs once the time is known";
        lint.warn("schedule-in-init", span, message.to_owned(), hint);
    }
    let mut known = HashSet::new();
    for (event, span) in raised {
        let global = &program.globals[event];
        let GlobalKind::Function(func) = global.kind else { continue };
        let handled = !program.functions[func].bodies.is_empty();
        let own = lint.is_span_checked(global.span) && !global.exported;
        if handled || !(own || lint.level == Level::All) || !known.insert(event) {
            continue;
        }
        let message = format!("nothing handles the event `{}`", program.name(global.name));
        let finding = Finding::warning("unhandled-event", span, message, "");
        lint.push(finding.and(global.span, "declared here"));
    }
}
