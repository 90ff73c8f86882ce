//! The binary form of values, over which Zeek computes digests of values other than strings.
//!
//! A value is written as its type and its contents, a type as its number in four bytes and its parts; names end in a NUL. Functions, with
//! their bodies, and other values without a binary form are written as the text that `print` shows.

use super::{List, Record, Table, Value, Vector, describe};
use crate::describe::interval_parts;
use crate::ids::TypeId;
use crate::program::Program;
use crate::types::{Flavor, Type};

/// Maximum depth of values and types. The caller reports that the digest of a deeper value omits the rest.
pub const MAX_DEPTH: usize = 200;

/// The binary form of a value, and whether it omits parts deeper than [`MAX_DEPTH`].
#[must_use]
pub fn binary(program: &Program, value: &Value) -> (Vec<u8>, bool) {
    let mut writer =
        Writer { program, out: Vec::new(), depth: 0, is_cut: false, records: Vec::new() };
    writer.value(value);
    (writer.out, writer.is_cut)
}

struct Writer<'p> {
    program: &'p Program,
    out: Vec<u8>,
    depth: usize,
    is_cut: bool,
    /// Record types being written, to end recursion.
    records: Vec<TypeId>,
}

impl Writer<'_> {
    fn number(&mut self, number: i32) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }

    fn long(&mut self, number: usize) {
        self.out.extend_from_slice(&(number as u64).to_le_bytes());
    }

    fn name(&mut self, name: impl AsRef<[u8]>) {
        self.out.extend_from_slice(name.as_ref());
        self.out.push(0);
    }

    fn value(&mut self, value: &Value) {
        if self.depth > MAX_DEPTH {
            self.is_cut = true;
            return;
        }
        self.depth += 1;
        match value {
            Value::List(list) => self.list(list),
            Value::Type(ty) => {
                self.number(21);
                self.ty(*ty);
            }
            _ => {
                self.ty(value.ty());
                self.contents(value);
            }
        }
        self.depth -= 1;
    }

    fn contents(&mut self, value: &Value) {
        match value {
            Value::Bool(value) => self.long(usize::from(*value)),
            Value::Int(value) => self.out.extend_from_slice(&value.to_le_bytes()),
            Value::Count(value) => self.out.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) | Value::Time(value) => {
                self.out.extend_from_slice(&value.to_le_bytes());
            }
            Value::Interval(value) => self.interval(*value),
            Value::Enum(..)
            | Value::Addr4(_)
            | Value::Addr6(_)
            | Value::Net4(..)
            | Value::Net6(_) => {
                self.name(describe::cat(self.program, value));
            }
            Value::Port(port) => {
                self.number(i32::from(port.number));
                self.name("/");
                let shown = describe::cat(self.program, value);
                let protocol = shown.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                self.out.extend_from_slice(protocol);
            }
            Value::Short(_) | Value::Long(_) => {
                let bytes = value.str_bytes();
                self.number(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                self.out.extend_from_slice(bytes);
            }
            Value::Pattern(pattern) => {
                self.name("/");
                self.name(pattern.text());
                self.name("/");
            }
            Value::Record(record) => self.record(record),
            Value::Table(table) => self.table(table),
            Value::Vector(vector) => self.vector(vector),
            other => self.name(describe::describe(self.program, other, describe::Form::Raw)),
        }
    }

    /// Writes each unit as its amount and its name; a plural `s` is a separate string.
    fn interval(&mut self, value: f64) {
        let begin = self.out.len();
        for (amount, unit) in interval_parts(value) {
            self.out.extend_from_slice(&amount.to_le_bytes());
            self.name(unit);
            if (amount.abs() - 1.0).abs() >= 1e-6 {
                self.name("s");
            }
        }
        if self.out.len() == begin {
            self.name("0 secs");
        }
    }

    fn list(&mut self, list: &List) {
        // The list of a key has no named type: the types of its parts follow.
        self.number(16);
        self.number(0);
        self.long(list.items.len());
        for item in list.items.iter() {
            self.ty(item.ty());
        }
        self.long(list.items.len());
        for item in list.items.iter() {
            self.value(item);
        }
    }

    fn record(&mut self, record: &Record) {
        let program = self.program;
        let types = program.types.record(record.ty()).map_or(&[][..], |ty| &ty.fields);
        self.long(types.len());
        let fields = record.fields();
        for (index, field) in types.iter().enumerate() {
            self.name(program.name(field.name));
            match fields.get(index).filter(|value| value.is_set()) {
                Some(value) => self.value(value),
                None => self.name("<uninitialized>"),
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let entries = table.entries();
        self.number(i32::try_from(entries.len()).unwrap_or(i32::MAX));
        let is_set = self.program.types.is_set(table.ty());
        for (key, value) in &entries {
            let alone = [key.clone()];
            let parts: &[Value] = match key {
                Value::List(list) => &list.items,
                _ => &alone,
            };
            self.number(i32::try_from(parts.len()).unwrap_or(i32::MAX));
            self.number(16);
            self.number(0);
            self.long(parts.len());
            for part in parts {
                self.ty(part.ty());
            }
            self.long(parts.len());
            for part in parts {
                self.value(part);
            }
            if !is_set {
                self.value(value);
            }
        }
    }

    fn vector(&mut self, vector: &Vector) {
        self.name("[");
        for (index, item) in vector.items().iter().enumerate() {
            if index > 0 {
                self.name(", ");
            }
            if item.is_set() {
                self.value(item);
            }
        }
        self.name("]");
    }

    fn ty(&mut self, id: TypeId) {
        if self.depth > MAX_DEPTH {
            self.is_cut = true;
            return;
        }
        self.depth += 1;
        let program = self.program;
        let ty = program.types.get(id);
        self.number(number(ty));
        match ty {
            Type::Enum(_) => {
                let name = program.types.data(id).name.map_or("", |name| program.name(name));
                self.out.extend_from_slice(name.as_bytes());
            }
            Type::Table(table) => {
                for index in &*table.index {
                    self.ty(*index);
                }
                if let Some(value) = table.value.filter(|_| !table.index.is_empty()) {
                    self.ty(value);
                }
            }
            Type::Vector(element) => self.ty(*element),
            Type::Record(_) => {
                self.records.push(id);
                self.fields(id);
                self.records.pop();
            }
            Type::Func(func) => {
                self.number(match func.flavor {
                    Flavor::Function => 0,
                    Flavor::Event => 1,
                    Flavor::Hook => 2,
                });
                let yields = func.flavor != Flavor::Event;
                self.number(i32::from(yields));
                self.fields(func.params);
                if yields {
                    self.ty(func.result);
                }
            }
            Type::File => self.number(7),
            Type::Opaque(name) => self.name(program.name(*name)),
            _ => {}
        }
        self.depth -= 1;
    }

    fn fields(&mut self, record: TypeId) {
        let program = self.program;
        let fields = program.types.record(record).map_or(&[][..], |record| &record.fields);
        self.long(0);
        self.long(fields.len());
        for field in fields {
            self.name(program.name(field.name));
            if self.records.contains(&field.ty) {
                self.name("<recursion>");
            } else {
                self.ty(field.ty);
            }
        }
    }
}

/// The number of a type tag in Zeek.
fn number(ty: &Type) -> i32 {
    match ty {
        Type::Void => 0,
        Type::Bool => 1,
        Type::Int => 2,
        Type::Count => 3,
        Type::Double => 4,
        Type::Time => 5,
        Type::Interval => 6,
        Type::String => 7,
        Type::Pattern => 8,
        Type::Enum(_) => 9,
        Type::Port => 10,
        Type::Addr => 11,
        Type::Subnet => 12,
        Type::Any => 13,
        Type::Table(_) => 14,
        Type::Record(_) => 15,
        Type::List(_) => 16,
        Type::Func(_) => 17,
        Type::File => 18,
        Type::Vector(_) => 19,
        Type::Opaque(_) => 20,
        Type::Type(_) => 21,
        Type::Error => 22,
    }
}
