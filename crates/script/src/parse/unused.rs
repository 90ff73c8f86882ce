//! Warnings of what nothing can run: handlers of events that nothing declares or raises, and functions that no other module sees and that
//! nothing calls.

use super::Parser;
use crate::diagnostics::Severity;
use crate::ids::{GlobalId, Id as _};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::types::{Attr, AttrKind, Flavor};

/// A set of globals.
struct Marks(Vec<bool>);

impl Marks {
    /// Adds a global. Returns whether it is new.
    fn add(&mut self, global: GlobalId) -> bool {
        self.0.get_mut(global.index()).is_some_and(|mark| !std::mem::replace(mark, true))
    }

    fn contains(&self, global: GlobalId) -> bool {
        self.0.get(global.index()).is_some_and(|mark| *mark)
    }
}

/// The signature file that a name means.
pub(crate) fn signature_file(name: &str, search_path: &[String]) -> Option<std::path::PathBuf> {
    super::find::signatures(name, "", search_path)
}

impl Parser<'_> {
    /// Marks what signatures refer to as used.
    pub(super) fn use_signatures(&mut self) {
        let files = self.program.command_signatures.iter().chain(&self.program.signature_files);
        let mut names = Vec::new();
        for file in files.filter(|file| !crate::command::signatures::is_native(file)) {
            // What cannot be read is reported later.
            let text = std::fs::read(&**file).unwrap_or_default();
            names.extend(crate::signature::references(&text));
        }
        for name in names {
            let global = self.program.names.find(&name).and_then(|n| self.program.globals.find(n));
            if let Some(global) = global {
                let used = Attr { kind: AttrKind::IsUsed, expr: None, span: Span::NOWHERE };
                self.program.globals[global].attrs.push(used);
            }
        }
    }

    /// Emits the warnings.
    pub(super) fn report_unused(&mut self) {
        let mut events = self.undeclared_events.iter().copied().collect::<Vec<_>>();
        events.retain(|event| {
            let name = self.program.name(self.program.globals[*event].name);
            !self.global_has(*event, AttrKind::IsUsed)
                && !self.global_has(*event, AttrKind::Deprecated)
                && !crate::components::RAISED_EVENTS.contains(&name)
        });
        if !events.is_empty() {
            let raised = self.reachable(&[]);
            events.retain(|event| !raised.contains(*event));
        }
        events.sort_by_key(|id| self.program.name(self.program.globals[*id].name).to_owned());
        for event in &events {
            self.warn_unused("handler for non-existing event cannot be invoked", *event);
        }
        let reached = self.reachable(&events);
        let mut unused = Vec::new();
        for (id, global) in self.program.globals.arena.iter() {
            let GlobalKind::Function(func) = global.kind else { continue };
            let function = &self.program.functions[func];
            if function.flavor == Flavor::Function
                && !function.bodies.is_empty()
                && !global.exported
                && self.program.name(global.name).contains("::")
                && !reached.contains(id)
                && !self.global_has(id, AttrKind::IsUsed)
                && !self.global_has(id, AttrKind::Deprecated)
            {
                unused.push(id);
            }
        }
        unused.sort_by_key(|id| self.program.name(self.program.globals[*id].name).to_owned());
        for id in unused {
            self.warn_unused("non-exported function does not have any callers", id);
        }
    }

    fn warn_unused(&mut self, message: &str, global: GlobalId) {
        self.program.report_about(Severity::Warning, message, &Object::Global(global), None);
    }

    /// All globals that something which runs refers to; bodies of `events` do not run.
    fn reachable(&self, events: &[GlobalId]) -> Marks {
        let mut reached = Marks(vec![false; self.program.globals.arena.len()]);
        let mut open = self.scopes.first().map_or(Vec::new(), |scope| scope.globals.clone());
        for (id, global) in self.program.globals.arena.iter() {
            let GlobalKind::Function(func) = global.kind else { continue };
            let function = self.program.functions[func].flavor == Flavor::Function;
            let runs = if function {
                global.exported
                    || !self.program.name(global.name).contains("::")
                    || self.global_has(id, AttrKind::IsUsed)
            } else {
                !events.contains(&id)
            };
            if runs {
                self.add_references(id, &mut open);
            }
        }
        while let Some(global) = open.pop() {
            if reached.add(global) && !events.contains(&global) {
                self.add_references(global, &mut open);
            }
        }
        reached
    }

    fn add_references(&self, global: GlobalId, to: &mut Vec<GlobalId>) {
        let GlobalKind::Function(func) = self.program.globals[global].kind else { return };
        for body in &self.program.functions[func].bodies {
            to.extend(self.references.get(body).into_iter().flatten());
        }
    }
}
