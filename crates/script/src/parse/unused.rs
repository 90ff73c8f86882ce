//! Warnings about unreachable code: handlers of events and hooks that no other module sees and nothing raises,
//! and functions that nothing calls.

use super::Parser;
use crate::diagnostics::Severity;
use crate::ids::{GlobalId, Id as _};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::types::{Attr, AttrKind, Flavor};

/// A set of globals.
struct GlobalSet(Vec<bool>);

impl GlobalSet {
    /// Adds a global. Returns whether it is new.
    fn add(&mut self, global: GlobalId) -> bool {
        self.0.get_mut(global.index()).is_some_and(|mark| !std::mem::replace(mark, true))
    }

    fn contains(&self, global: GlobalId) -> bool {
        self.0.get(global.index()).is_some_and(|mark| *mark)
    }
}

/// The path of the signature file `name`.
pub(crate) fn signature_file(name: &str, search_path: &[String]) -> Option<std::path::PathBuf> {
    super::find::signatures(name, "", search_path)
}

impl Parser<'_> {
    /// GlobalSet identifiers in signatures as used.
    pub(super) fn use_signatures(&mut self) {
        let files = self.program.command_signatures.iter().chain(&self.program.signature_files);
        let mut names = Vec::new();
        for file in files.filter(|file| !crate::command::signatures::is_native(file)) {
            // Unreadable files are reported later.
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
        let mut reached = GlobalSet(vec![false; self.program.globals.arena.len()]);
        // Initializers and statements at file level are roots.
        let mut open = self.scopes.first().map_or(Vec::new(), |scope| scope.globals.clone());
        let mut functions = Vec::new();
        for (id, global) in self.program.globals.arena.iter() {
            let GlobalKind::Function(func) = global.kind else { continue };
            functions.push((id, self.program.functions[func].flavor));
            if self.may_run(id, self.program.functions[func].flavor) {
                open.push(id);
            }
        }
        self.reach(open, &mut reached);
        functions
            .sort_by_key(|(id, _)| self.program.name(self.program.globals[*id].name).to_owned());
        for (id, flavor) in &functions {
            let kind = match flavor {
                Flavor::Event => "event",
                Flavor::Hook => "hook",
                Flavor::Function => continue,
            };
            if !reached.contains(*id) {
                let text = format!("handler for non-existing {kind} cannot be invoked");
                self.warn_unused(&text, *id);
            }
        }
        for (id, flavor) in functions {
            let GlobalKind::Function(func) = self.program.globals[id].kind else { continue };
            let has_body = !self.program.functions[func].bodies.is_empty();
            if flavor == Flavor::Function && has_body && !reached.contains(id) {
                self.warn_unused("non-exported function does not have any callers", id);
            }
        }
    }

    fn has_base_scripts(&self) -> bool {
        let mut files = self.program.sources.files.iter();
        files.any(|(_, file)| file.path.ends_with("base/init-bare.zeek"))
    }

    /// Whether the engine may raise an event, or call a hook or a function.
    fn may_run(&self, id: GlobalId, flavor: Flavor) -> bool {
        let global = &self.program.globals[id];
        let name = self.program.name(global.name);
        if self.global_has(id, AttrKind::IsUsed) || self.global_has(id, AttrKind::Deprecated) {
            return true;
        }
        match flavor {
            // Without Zeek's scripts, user scripts declare the events of the engine.
            Flavor::Event if !self.has_base_scripts() => !self.undeclared_events.contains(&id),
            Flavor::Event => {
                let file = self.program.sources.files.find(global.span.file);
                // Spicy's analyzers raise the events whose handlers a file of this name contains.
                let is_raised = file.is_some_and(|file| file.path.ends_with("spicy-events.zeek"));
                global.exported && !self.undeclared_events.contains(&id)
                    || is_raised
                    || crate::components::RAISED_EVENTS.contains(&name)
            }
            Flavor::Hook | Flavor::Function => global.exported || !name.contains("::"),
        }
    }

    fn warn_unused(&mut self, message: &str, global: GlobalId) {
        self.program.report_about(Severity::Warning, message, &Object::Global(global), None);
    }

    /// GlobalSet globals and everything that they refer to.
    fn reach(&self, mut open: Vec<GlobalId>, reached: &mut GlobalSet) {
        while let Some(global) = open.pop() {
            if reached.add(global) {
                self.add_references(global, &mut open);
            }
        }
    }

    fn add_references(&self, global: GlobalId, to: &mut Vec<GlobalId>) {
        let GlobalKind::Function(func) = self.program.globals[global].kind else { return };
        for body in &self.program.functions[func].bodies {
            to.extend(self.references.get(body).into_iter().flatten());
        }
    }
}
