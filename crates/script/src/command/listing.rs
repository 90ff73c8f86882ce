//! Output of the options that print lists and run no scripts: identifiers (`-I`) and analyzers (`-N`, `-NN`).

use std::fmt::Write as _;
use std::io::Write as _;

use crate::describe;
use crate::program::Program;
use crate::types::Type;
use crate::value::describe::{Form, describe as describe_value};
use crate::vm::Vm;

/// Enums of analyzers, readers and writers, with the word that the list shows for each.
const COMPONENTS: &[(&str, &str)] = &[
    ("Analyzer::Tag", "Analyzer"),
    ("PacketAnalyzer::Tag", "Packet Analyzer"),
    ("Files::Tag", "File Analyzer"),
    ("Input::Reader", "Reader"),
    ("Log::Writer", "Writer"),
];

/// An identifier as `-I` prints it; `None` if the name does not exist.
pub(super) fn identifier(vm: &mut Vm<'_>, name: &str) -> Option<Vec<u8>> {
    let id = vm.find_global(name)?;
    let value = vm.global(id);
    let global = &vm.p.globals[id];
    let mut text = format!("{name} : {}", describe::type_text(vm.p, global.ty)).into_bytes();
    if value.is_set() {
        text.extend_from_slice(b" = ");
        text.extend_from_slice(&describe_value(vm.p, &value, Form::Print));
    }
    if !global.attrs.is_empty() {
        text.push(b' ');
        text.extend_from_slice(&describe::attrs(vm.p, &global.attrs));
    }
    text.push(b'\n');
    Some(text)
}

/// The text of `-N`, or with `all` that of `-NN`, which lists all analyzers, readers and writers.
pub(super) fn components(program: &Program, all: bool) -> String {
    let mut text = "gannet - analyzers, readers and writers (built-in)\n".to_owned();
    if !all {
        return text;
    }
    for (name, kind) in COMPONENTS {
        let global = program.names.find(name).and_then(|name| program.globals.find(name));
        let Some(global) = global else { continue };
        let Type::Enum(ty) = program.types.get(program.globals[global].ty) else { continue };
        for value in &ty.values {
            let full = program.name(value.name);
            let short = full.rsplit("::").next().unwrap_or(full);
            let name = short.split_once('_').map_or(short, |(_, name)| name);
            let _ = writeln!(text, "    [{kind}] {name} ({short})");
        }
    }
    text
}

/// Writes to standard output and ignores errors, such as a closed pipe.
pub(super) fn print(text: &[u8]) {
    let _ = std::io::stdout().write_all(text);
}
