//! Loads the signatures of a program.

use std::rc::Rc;

use crate::bridge::signatures::{Loaded, is_number};
use crate::describe;
use crate::diagnostics::Severity;
use crate::ids::{FuncId, GlobalId, TypeId};
use crate::report::Object;
use crate::signature::{Global, Limits, Names, Signatures, Value as Item, parse};
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::types::{Flavor, Tag, Type};
use crate::value::Value;
use crate::vm::Vm;

/// Folder and suffix of signature files whose detection the engine implements natively.
const NATIVE_FILES: [(&str, &str); 2] =
    [("base/protocols/", "/dpd.sig"), ("base/frameworks/files/magic/", ".sig")];

/// Whether the engine implements the signatures of a file natively.
pub(crate) fn is_native(file: &str) -> bool {
    NATIVE_FILES.iter().any(|(folder, end)| file.contains(folder) && file.ends_with(end))
}

/// Like [`is_native`], for a program: if scripts handle `protocol_late_match`, which the engine does not detect, signatures
/// find all protocols.
pub(crate) fn is_native_for(vm: &Vm<'_>, file: &str) -> bool {
    let late = vm.function_named("protocol_late_match");
    let handles_late_match = late.is_some_and(|func| !vm.p.functions[func].bodies.is_empty());
    is_native(file) && !(handles_late_match && file.ends_with("/dpd.sig"))
}

/// Loads all signature files. Native ones alone are not loaded; other files may refer to them.
///
/// # Errors
/// Returns an error after reporting it.
pub(super) fn load(vm: &mut Vm<'_>, search_path: &[String], level: usize) -> Result<(), ()> {
    let mut files: Vec<Box<str>> = vm.p.command_signatures.clone();
    let variable = vm.global_named("signature_files").text();
    for name in variable.split_whitespace() {
        match crate::parse::signature_file(name, search_path) {
            Some(path) => files.push(path.to_string_lossy().into()),
            None => {
                let text = format!("failed to find file associated with @load-sigs {name}");
                vm.p.report(Severity::Error, Span::NOWHERE, text);
            }
        }
    }
    files.extend(vm.p.signature_files.iter().cloned());
    if files.iter().all(|file| is_native_for(vm, file)) {
        return if vm.p.diagnostics.errors > 0 { Err(()) } else { Ok(()) };
    }
    let mut names =
        ScriptNames { vm, events: Vec::new(), conditions: Vec::new(), warned: Vec::new() };
    let mut rules = Vec::new();
    let mut is_valid = true;
    for file in &files {
        match std::fs::read(&**file) {
            Ok(text) => {
                let is_native = is_native_for(names.vm, file);
                is_valid &= parse(file, &text, is_native, &mut names, &mut rules);
            }
            Err(_) => {
                names.error(&format!("Can't open signature file {file}"));
                return Err(());
            }
        }
    }
    if !is_valid {
        return Err(());
    }
    let group = usize::try_from(names.vm.global_named("sig_max_group_size").count()).unwrap_or(0);
    let signatures = Signatures::new(rules, Limits { group, level }, &mut names);
    let ScriptNames { vm, events, conditions, .. } = names;
    if vm.p.diagnostics.errors > 0 {
        return Err(());
    }
    vm.m.state.signatures = Some(Rc::new(Loaded { signatures, events, conditions }));
    Ok(())
}

/// Resolves the names of a program that signatures refer to.
struct ScriptNames<'a, 'b> {
    vm: &'a mut Vm<'b>,
    events: Vec<(FuncId, bool)>,
    conditions: Vec<GlobalId>,
    /// Types of functions for which a warning was reported.
    warned: Vec<TypeId>,
}

impl ScriptNames<'_, '_> {
    /// Whether a function takes these arguments. Warns if it does not.
    fn takes(&mut self, ty: TypeId, args: &[TypeId]) -> bool {
        let own: Vec<TypeId> = self.vm.p.types.params(ty).iter().map(|field| field.ty).collect();
        if self.warned.contains(&ty) {
            return false;
        }
        let mut texts = Vec::new();
        if own.len() == args.len() {
            for (at, (own, arg)) in own.iter().zip(args).enumerate() {
                if !self.vm.p.same_type(*own, *arg) {
                    let name = |ty| describe::tag_name(self.vm.p.types.get(ty));
                    let (arg, own) = (name(*arg), name(*own));
                    texts.push(format!(
                        "Type mismatch in function argument #{at}. Expected {arg}, got {own}."
                    ));
                }
            }
        } else {
            let (own, args) = (own.len(), args.len());
            texts.push(format!(
                "Wrong number of arguments for function. Expected {args}, got {own}."
            ));
        }
        for text in &texts {
            self.vm.p.report_about(Severity::Warning, text, &Object::Type(ty), None);
        }
        if !texts.is_empty() {
            self.warned.push(ty);
        }
        texts.is_empty()
    }

    /// The types `signature_state`, `string`, and `count` for the end of a match.
    fn parameters(&self) -> Option<[TypeId; 3]> {
        Some([self.vm.type_named("signature_state")?, TypeId::STRING, TypeId::COUNT])
    }

    /// Whether an event takes the end of a match as its last parameter; `None` if the parameters are not those of a signature event.
    fn takes_end(&mut self, ty: TypeId, message: bool) -> Option<bool> {
        let [state, text, end] = self.parameters()?;
        let count = self.vm.p.types.params(ty).len();
        if message {
            let takes_end = match count {
                3 => self.takes(ty, &[state, text, text]).then_some(false),
                4 => self.takes(ty, &[state, text, text, end]).then_some(true),
                _ => None,
            };
            // The parameters of an event with a message must also have the names of those of `signature_match`.
            let names = ["state", "msg", "data", "end_of_match"];
            let mut params = self.vm.p.types.params(ty).iter().zip(names);
            return takes_end
                .filter(|_| params.all(|(own, name)| self.vm.p.name(own.name) == name));
        }
        match count {
            2 => self.takes(ty, &[state, text]).then_some(false),
            _ => self.takes(ty, &[state, text, end]).then_some(true),
        }
    }
}

fn item(value: &Value) -> Item {
    match value {
        Value::Port(port) => Item::Number(u32::from(port.number)),
        Value::Bool(value) => Item::Number(u32::from(*value)),
        Value::Count(number) => Item::Number(*number as u32),
        Value::Int(number) | Value::Enum(_, number) => Item::Number(*number as u32),
        other => match other.as_subnet() {
            Some(net) => Item::Subnet { base: net.prefix, bits: net.width },
            None => Item::Other,
        },
    }
}

impl Names for ScriptNames<'_, '_> {
    fn global(&mut self, name: &str) -> Global {
        let Some(global) = self.vm.find_global(name) else { return Global::Missing };
        let value = self.vm.global(global);
        let value = if value.is_set() { value } else { self.vm.enum_named(name) };
        let tag = self.vm.p.types.tag(self.vm.p.globals[global].ty);
        match &value {
            Value::Table(table) => {
                let first = |key: Value| crate::value::table::parts(&key).first().map(item);
                Global::Values(table.keys().into_iter().filter_map(first).collect())
            }
            _ if tag == Tag::String => Global::Text(value.str_bytes().to_vec()),
            _ if is_number(tag) || tag == Tag::Subnet => Global::Values(vec![item(&value)]),
            _ => Global::Values(vec![Item::Other]),
        }
    }

    fn is_event(&mut self, name: &str) -> bool {
        let func = self.vm.function_named(name);
        func.is_some_and(|func| self.vm.p.functions[func].flavor == Flavor::Event)
    }

    fn event(&mut self, name: Option<&str>, message: bool) -> Option<u32> {
        let full = name.unwrap_or("signature_match");
        let func = self.vm.function_named(full).filter(|_| self.is_event(full));
        let Some(func) = func else {
            if name.is_some() {
                self.error(&format!("unknown event '{full}' specified in rule"));
            }
            return None;
        };
        let ty = self.vm.p.functions[func].ty;
        let Some(takes_end) = self.takes_end(ty, message) else {
            let mut text = format!("wrong event parameters for '{full}'");
            if let (true, Type::Func(func_type)) = (message, self.vm.p.types.get(ty)) {
                let params = describe::type_text(self.vm.p, func_type.params);
                text.push_str(&format!(" ({params})"));
            }
            self.error(&text);
            return None;
        };
        self.events.push((func, takes_end));
        u32::try_from(self.events.len() - 1).ok()
    }

    fn condition(&mut self, name: &str) -> Result<u32, Vec<&'static str>> {
        let Some(global) = self.vm.find_global(name) else {
            return Err(vec!["unknown identifier"]);
        };
        let mut errors = Vec::new();
        if let (GlobalKind::Function(_), Some(func)) = (
            self.vm.p.globals[global].kind.clone(),
            self.vm.p.types.func(self.vm.p.globals[global].ty),
        ) {
            if self.vm.p.types.tag(func.result) != Tag::Bool {
                errors.push("eval function type must yield a 'bool'");
            }
            let ty = self.vm.p.globals[global].ty;
            if let Some([state, text, _]) = self.parameters()
                && !self.takes(ty, &[state, text])
            {
                errors.push(
                    "eval function parameters must be a 'signature_state' and a 'string' type",
                );
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.conditions.push(global);
        Ok(u32::try_from(self.conditions.len() - 1).unwrap_or(u32::MAX))
    }

    fn analyzer(&mut self, name: &str) -> Option<Box<str>> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let tag: String = name.chars().map(plain).collect();
        let full = format!("Analyzer::ANALYZER_{tag}");
        if self.vm.enum_named(&full).is_set() {
            return Some(full.into());
        }
        self.warning(&format!("unknown analyzer '{name}' specified in rule"));
        None
    }

    fn error(&mut self, text: &str) {
        self.vm.p.report(Severity::Error, Span::NOWHERE, text);
    }

    fn warning(&mut self, text: &str) {
        self.vm.p.report(Severity::Warning, Span::NOWHERE, text);
    }
}
