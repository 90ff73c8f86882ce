//! Queries of editors about a program: the meaning of a name, its declaration and documentation, completions,
//! the outline of a file.
//!
//! They need a session that recorded names ([`crate::program::Program::uses`]). After a syntax error, they
//! cover the source before it.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::ast::LocalKind;
use crate::describe;
use crate::ids::{BodyId, FileId, GlobalId, Name, TypeId};
use crate::program::{Program, Target};
use crate::source::Span;
use crate::symbols::{Global, GlobalKind};
use crate::tools::finding::type_name;
use crate::tools::words::{ATTRIBUTES, DIRECTIVES, WORDS};
use crate::types::{Field, Flavor, Type};

/// Maximum number of completions.
const MAX_COMPLETIONS: usize = 200;

/// The kind of an item, which selects an icon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemKind {
    /// A function or hook.
    Function,
    /// An event.
    Event,
    /// A variable.
    Variable,
    /// A constant or option.
    Constant,
    /// A record, enum or other named type.
    Type,
    /// A value of an enum.
    EnumValue,
    /// A field.
    Field,
    /// A module.
    Module,
    /// A keyword, attribute or directive.
    Word,
}

/// A completion or an entry of an outline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// The text to insert.
    pub name: String,
    /// Its kind.
    pub kind: ItemKind,
    /// Its type.
    pub detail: String,
    /// Where it is declared.
    pub span: Span,
}

/// The file with this path, compared with `same`.
pub fn file(program: &Program, same: impl Fn(&str) -> bool) -> Option<FileId> {
    program.sources.files.iter().find(|(_, file)| same(&file.path)).map(|(id, _)| id)
}

/// The name at an offset of a file, and its meaning.
#[must_use]
pub fn target(program: &Program, file: FileId, offset: usize) -> Option<(Span, Target)> {
    let uses = program.uses.as_ref()?;
    uses.iter()
        .filter(|found| {
            let span = found.span;
            span.file == file && span.start as usize <= offset && offset <= span.end as usize
        })
        .min_by_key(|found| found.span.end - found.span.start)
        .map(|found| (found.span, found.target))
}

/// All uses of the target, sorted by position.
#[must_use]
pub fn references(program: &Program, target: Target) -> Vec<Span> {
    let uses = program.uses.as_deref().unwrap_or_default();
    let mut spans: Vec<Span> =
        uses.iter().filter(|found| found.target == target).map(|found| found.span).collect();
    spans.sort_by_key(|span| (span.file, span.start));
    spans.dedup();
    spans
}

/// A name and all its occurrences. Each span covers the name without its module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrences {
    /// The name without its module.
    pub name: String,
    /// Where it is declared.
    pub declared: Span,
    /// The occurrences, in order.
    pub spans: Vec<Span>,
}

/// All occurrences that a rename must change; `None` if the target has no declaration.
#[must_use]
pub fn occurrences(program: &Program, target: Target) -> Option<Occurrences> {
    let (name, declared) = declaration(program, target)?;
    let name = last(program.name(name)).to_owned();
    let uses = program.uses.as_deref().unwrap_or_default();
    // A capture is a separate local with the same declaration, as are fields of types that others extend.
    let is_same = |other: Target| {
        other == target
            || !matches!(target, Target::Global(_))
                && std::mem::discriminant(&other) == std::mem::discriminant(&target)
                && declaration(program, other).is_some_and(|(_, span)| span == declared)
    };
    let mut spans: Vec<Span> =
        uses.iter().filter(|found| is_same(found.target)).map(|found| found.span).collect();
    spans.push(declared);
    let mut spans: Vec<Span> =
        spans.into_iter().filter_map(|span| name_span(program, span, &name)).collect();
    spans.sort_by_key(|span| (span.file, span.start));
    spans.dedup_by_key(|span| (span.file, span.start));
    Some(Occurrences { name, declared, spans })
}

/// The full name of a target and the span of its declaration.
#[must_use]
pub fn declaration(program: &Program, target: Target) -> Option<(Name, Span)> {
    let (name, span) = match target {
        Target::Global(global) => {
            program.globals.arena.find(global).map(|entry| (entry.name, entry.span))
        }
        Target::Local(body, local) => {
            program.bodies.find(body)?.locals.find(local).map(|entry| (entry.name, entry.span))
        }
        Target::Field(record, offset) => {
            field(program, record, offset).map(|field| (field.name, field.span))
        }
    }?;
    span.is_somewhere().then_some((name, span))
}

/// The span of `name` within `span`.
fn name_span(program: &Program, span: Span, name: &str) -> Option<Span> {
    let file = program.sources.files.find(span.file)?;
    let text = file.text.get(span.start as usize..span.end as usize)?;
    let is_part = |at: Option<usize>| {
        at.and_then(|at| text.get(at))
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let is_whole = |at: &usize| !is_part(at.checked_sub(1)) && !is_part(Some(at + name.len()));
    let at = memchr::memmem::find_iter(text, name).find(is_whole)?;
    let start = span.start + u32::try_from(at).ok()?;
    Some(Span { start, end: start + u32::try_from(name.len()).ok()?, ..span })
}

/// Whether a name can be declared.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_first)
        && name.bytes().all(|byte| is_first(byte) || byte.is_ascii_digit())
        && !WORDS.contains(&name)
}

/// The span of the definition of a target.
#[must_use]
pub fn definition(program: &Program, target: Target) -> Option<Span> {
    let span = match target {
        Target::Global(global) => {
            let entry = program.globals.arena.find(global)?;
            // A function is defined at its body; an event or hook at its declaration.
            match entry.kind {
                GlobalKind::Function(func) => {
                    let function = &program.functions[func];
                    let body = function.bodies.first().map(|body| program.bodies[*body].span);
                    body.filter(|span| function.flavor == Flavor::Function && span.is_somewhere())
                        .unwrap_or(entry.span)
                }
                _ => entry.span,
            }
        }
        Target::Local(body, local) => program.bodies.find(body)?.locals.find(local)?.span,
        Target::Field(record, offset) => field(program, record, offset)?.span,
    };
    span.is_somewhere().then_some(span)
}

/// Declaration and documentation of a target.
#[must_use]
pub fn hover(program: &Program, target: Target) -> Option<(String, String)> {
    let (text, span) = match target {
        Target::Global(global) => {
            let entry = program.globals.arena.find(global)?;
            (signature(program, entry), entry.span)
        }
        Target::Local(body, local) => {
            let entry = program.bodies.find(body)?.locals.find(local)?;
            let kind = match entry.kind {
                LocalKind::Param => "param",
                LocalKind::Constant => "const",
                LocalKind::Variable | LocalKind::Loop | LocalKind::Capture => "local",
            };
            (
                format!(
                    "{kind} {}: {}",
                    last(program.name(entry.name)),
                    type_name(program, entry.ty)
                ),
                entry.span,
            )
        }
        Target::Field(record, offset) => {
            let field = field(program, record, offset)?;
            let of = type_name(program, record);
            (format!("{of}${}", field_text(program, field)), field.span)
        }
    };
    Some((text, documentation(program, span)))
}

fn field(program: &Program, record: TypeId, offset: u32) -> Option<&Field> {
    program.types.record(record)?.fields.get(offset as usize)
}

fn field_text(program: &Program, field: &Field) -> String {
    let mut text = format!("{}: {}", program.name(field.name), type_name(program, field.ty));
    for attr in &field.attrs {
        let shown = describe::attrs(program, std::slice::from_ref(attr));
        let _ = write!(text, " {}", String::from_utf8_lossy(&shown));
    }
    text
}

/// The declaration of a global.
fn signature(program: &Program, global: &Global) -> String {
    let name = program.name(global.name);
    match &global.kind {
        GlobalKind::Function(_) => callable(program, name, global.ty),
        GlobalKind::Type => match program.types.get(global.ty) {
            Type::Record(record) => {
                let mut text = format!("type {name}: record {{\n");
                for field in &record.fields {
                    let _ = writeln!(text, "\t{};", field_text(program, field));
                }
                text + "}"
            }
            Type::Enum(values) => {
                let names: Vec<&str> =
                    values.values.iter().map(|value| program.name(value.name)).collect();
                format!("type {name}: enum {{ {} }}", names.join(", "))
            }
            _ => format!("type {name}: {}", describe::type_text(program, global.ty)),
        },
        GlobalKind::EnumValue(number) => {
            format!("{name} = {number} ({})", type_name(program, global.ty))
        }
        kind => {
            let word = match kind {
                GlobalKind::Constant => "const",
                GlobalKind::Option => "option",
                _ => "global",
            };
            let mut text = format!("{word} {name}: {}", type_name(program, global.ty));
            for attr in &global.attrs {
                let shown = describe::attrs(program, std::slice::from_ref(attr));
                let _ = write!(text, " {}", String::from_utf8_lossy(&shown));
            }
            text
        }
    }
}

fn callable(program: &Program, name: &str, ty: TypeId) -> String {
    let Some(func) = program.types.func(ty) else { return name.to_owned() };
    let flavor = match func.flavor {
        Flavor::Function => "function",
        Flavor::Event => "event",
        Flavor::Hook => "hook",
    };
    let params: Vec<String> =
        program.types.params(ty).iter().map(|param| field_text(program, param)).collect();
    let result = match func.result {
        _ if func.flavor != Flavor::Function => String::new(),
        TypeId::VOID => String::new(),
        result => format!(": {}", type_name(program, result)),
    };
    format!("{flavor} {name}({}){result}", params.join(", "))
}

/// The `##` comments above a declaration, or `##<` after it.
#[must_use]
pub fn documentation(program: &Program, span: Span) -> String {
    let Some(file) = program.sources.files.find(span.file).filter(|_| span.is_somewhere()) else {
        return String::new();
    };
    let lines = crate::comments::of_declaration(&file.text, span.start as usize);
    String::from_utf8_lossy(&lines).into_owned()
}

/// The declarations and definitions of a file, in order.
#[must_use]
pub fn outline(program: &Program, file: FileId) -> Vec<Item> {
    let mut items: Vec<Item> = program
        .globals
        .arena
        .iter()
        .filter(|(_, global)| global.span.file == file && global.span.is_somewhere())
        .map(|(_, global)| item(program, global, program.name(global.name).to_owned()))
        .collect();
    for (_, body) in program.bodies.iter() {
        let Some(func) = body.func.filter(|_| body.span.file == file) else { continue };
        let function = &program.functions[func];
        let Some(global) = function.global else { continue };
        let mut item =
            item(program, &program.globals[global], program.name(function.name).to_owned());
        item.span = body.span;
        items.push(item);
    }
    // A function's declaration and definition share one entry.
    items.sort_by_key(|item| (item.span.start, item.span.end));
    items.dedup_by(|a, b| a.name == b.name && a.span.start == b.span.start);
    items
}

fn item(program: &Program, global: &Global, name: String) -> Item {
    let kind = match &global.kind {
        GlobalKind::Function(func) => match program.functions[*func].flavor {
            Flavor::Event => ItemKind::Event,
            Flavor::Function | Flavor::Hook => ItemKind::Function,
        },
        GlobalKind::Variable | GlobalKind::Unknown => ItemKind::Variable,
        GlobalKind::Constant | GlobalKind::Option => ItemKind::Constant,
        GlobalKind::Type => ItemKind::Type,
        GlobalKind::EnumValue(_) => ItemKind::EnumValue,
    };
    let detail = match kind {
        ItemKind::Function | ItemKind::Event => callable(program, &name, global.ty),
        _ => type_name(program, global.ty),
    };
    Item { name, kind, detail, span: global.span }
}

/// Completions at the end of `source[..offset]`, whose last word is the prefix of the name.
#[must_use]
pub fn complete(
    program: &Program,
    file: Option<FileId>,
    source: &[u8],
    offset: usize,
) -> Vec<Item> {
    let before = source.get(..offset).unwrap_or(source);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let length = before.iter().rev().take_while(|byte| is_part(byte)).count();
    let (ahead, part) = before.split_at(before.len() - length);
    let part = String::from_utf8_lossy(part).into_owned();
    let words = |words: &[&str]| {
        words
            .iter()
            .filter(|word| word.starts_with(part.as_str()))
            .map(|word| Item {
                name: (*word).to_owned(),
                kind: ItemKind::Word,
                detail: String::new(),
                span: Span::NOWHERE,
            })
            .collect::<Vec<_>>()
    };
    match ahead.last() {
        Some(b'$') => {
            let base = ahead.strip_suffix(b"$").unwrap_or(ahead);
            let base = base.strip_suffix(b"?").unwrap_or(base);
            let Some(record) = chain_type(program, file, base, offset) else { return Vec::new() };
            let fields = program.types.record(record).map_or(&[][..], |record| &record.fields);
            return fields
                .iter()
                .map(|field| (program.name(field.name), field))
                .filter(|(name, _)| starts_with(name, &part))
                .map(|(name, field)| Item {
                    name: name.to_owned(),
                    kind: ItemKind::Field,
                    detail: type_name(program, field.ty),
                    span: field.span,
                })
                .take(MAX_COMPLETIONS)
                .collect();
        }
        Some(b'&') => return words(ATTRIBUTES),
        Some(b'@') => return words(DIRECTIVES),
        _ => {}
    }
    let mut items = Vec::new();
    if !part.contains(':') {
        items = locals(program, file, offset, &part);
        items.extend(words(WORDS));
    }
    items.extend(globals(program, file, source, offset, &part));
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.name.clone()));
    items.truncate(MAX_COMPLETIONS);
    items
}

fn starts_with(name: &str, part: &str) -> bool {
    name.len() >= part.len() && name.as_bytes()[..part.len()].eq_ignore_ascii_case(part.as_bytes())
}

/// Globals whose name begins with `part`; names of the current module are matched without the module.
fn globals(
    program: &Program,
    file: Option<FileId>,
    source: &[u8],
    offset: usize,
    part: &str,
) -> Vec<Item> {
    let module = module_at(source, offset).map(|module| module + "::");
    let mut items = Vec::new();
    let mut modules = HashSet::new();
    for (_, global) in program.globals.arena.iter() {
        let full = program.name(global.name);
        let own = module.as_deref().and_then(|module| full.strip_prefix(module));
        let here = file.is_some_and(|file| global.span.file == file);
        if let Some(short) = own.filter(|short| starts_with(short, part)) {
            items.push(item(program, global, short.to_owned()));
        } else if starts_with(full, part) && (global.exported || here || !full.contains("::")) {
            match full.rsplit_once("::") {
                Some((module, _)) if module.len() > part.len() && !part.contains("::") => {
                    modules.insert(module.to_owned());
                }
                _ => items.push(item(program, global, full.to_owned())),
            }
        }
    }
    let module_item = |name: String| Item {
        name: format!("{name}::"),
        kind: ItemKind::Module,
        detail: "module".to_owned(),
        span: Span::NOWHERE,
    };
    items.extend(modules.into_iter().map(module_item));
    items.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    items
}

/// The module in effect at `offset`.
fn module_at(source: &[u8], offset: usize) -> Option<String> {
    let before = String::from_utf8_lossy(source.get(..offset).unwrap_or(source)).into_owned();
    let name = before.lines().rev().find_map(|line| {
        line.trim().strip_prefix("module ")?.split(';').next().map(str::to_owned)
    })?;
    let name = name.trim().to_owned();
    (name != "GLOBAL").then_some(name)
}

/// The last body that begins before `offset`.
fn body_at(program: &Program, file: FileId, offset: usize) -> Option<BodyId> {
    let declared = |id: BodyId| {
        let spans = program.bodies[id].locals.iter().map(|(_, local)| local.span);
        spans
            .filter(|span| span.file == file && (span.start as usize) < offset)
            .map(|span| span.start)
            .max()
    };
    let ended = |id: BodyId| {
        let span = program.bodies[id].span;
        span.is_somewhere() && (span.end as usize) < offset
    };
    program
        .bodies
        .ids()
        .filter(|id| Some(*id) != program.main && !ended(*id))
        .filter_map(|id| declared(id).map(|start| (start, id)))
        .max()
        .map(|(_, id)| id)
}

fn locals(program: &Program, file: Option<FileId>, offset: usize, part: &str) -> Vec<Item> {
    let Some(body) = file.and_then(|file| body_at(program, file, offset)) else {
        return Vec::new();
    };
    program.bodies[body]
        .locals
        .iter()
        .map(|(_, local)| (last(program.name(local.name)), local))
        .filter(|(name, _)| starts_with(name, part))
        .map(|(name, local)| Item {
            name: name.to_owned(),
            kind: ItemKind::Variable,
            detail: type_name(program, local.ty),
            span: local.span,
        })
        .collect()
}

/// The type of the expression at the end of `text`: a name followed by fields, indices and calls.
fn chain_type(
    program: &Program,
    file: Option<FileId>,
    text: &[u8],
    offset: usize,
) -> Option<TypeId> {
    let text = text.trim_ascii_end();
    let end = *text.last()?;
    if matches!(end, b']' | b')') {
        let open = opening(text)?;
        let base = chain_type(program, file, &text[..open], offset)?;
        return match (end, program.types.get(base)) {
            (b']', Type::Table(table)) => table.value,
            (b']', Type::Vector(element)) => Some(*element),
            (b')', Type::Func(func)) => Some(func.result),
            (b')', Type::Type(ty)) => Some(*ty),
            // A constructor of a named record.
            (b')', _) => Some(base),
            _ => None,
        };
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let length = text.iter().rev().take_while(|byte| is_part(byte)).count();
    let (ahead, name) = text.split_at(text.len() - length);
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    if let Some(base) = ahead.strip_suffix(b"$") {
        let record = chain_type(program, file, base, offset)?;
        let name = program.names.find(name)?;
        return program
            .types
            .record(record)?
            .fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.ty);
    }
    let local = file.and_then(|file| body_at(program, file, offset)).and_then(|body| {
        let locals = &program.bodies[body].locals;
        locals
            .iter()
            .rev()
            .find(|(_, local)| last(program.name(local.name)) == name)
            .map(|(_, local)| local.ty)
    });
    if local.is_some() {
        return local;
    }
    let find = |name: &str| program.names.find(name).and_then(|name| program.globals.find(name));
    let global: Option<GlobalId> = find(name).or_else(|| {
        let file = program.sources.files.find(file?)?;
        find(&format!("{}::{name}", module_at(&file.text, offset)?))
    });
    global.map(|global| program.globals[global].ty)
}

/// The offset of the bracket that matches the one at the end of `text`.
fn opening(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b']' | b')' => depth += 1,
            b'[' | b'(' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b';' | b'\n' => return None,
            _ => {}
        }
    }
    None
}

fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
