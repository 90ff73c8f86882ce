//! The text of values: what `print`, `cat` and messages show.

use super::{Value, table::parts};
use crate::ast::Function;
use crate::describe as text;
use crate::literal::Protocol;
use crate::program::Program;
use crate::types::Type;

/// Maximum depth of nested values; deeper ones are written as `...`.
const MAX_DEPTH: usize = 1_000;

/// The style of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The style of `print`: no indentation, bytes that are not printable as `\xNN`.
    Print,
    /// The style of `cat` and `%s`: nested lines are indented by a tab per level, bytes are unescaped.
    Cat,
    /// On one line, for messages and call stacks.
    Short,
    /// Like `Short`, without blanks between the entries of tables: for values in error messages and arguments in call stacks.
    Compact,
    /// Like `Print`, with bytes unescaped.
    Raw,
}

/// The text of `value`.
#[must_use]
pub fn describe(program: &Program, value: &Value, form: Form) -> Vec<u8> {
    let mut writer =
        Writer { program, form, out: Vec::new(), indent: 0, line_begins: false, open: Vec::new() };
    writer.value(value);
    writer.out
}

/// The text of `value` as returned by `cat`.
#[must_use]
pub fn cat(program: &Program, value: &Value) -> Vec<u8> {
    describe(program, value, Form::Cat)
}

/// The text of a port.
#[must_use]
pub fn port(port: crate::literal::Port) -> String {
    let protocol = match port.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
        Protocol::Unknown => "unknown",
    };
    format!("{}/{protocol}", port.number)
}

/// The text of a network.
#[must_use]
pub fn subnet(net: crate::literal::Subnet) -> String {
    let four = net.prefix.starts_with(&super::V4_PREFIX) && net.width >= 96;
    let width = if four { net.width - 96 } else { net.width };
    format!("{}/{width}", text::address(net.prefix))
}

/// The name of an enum value; `<undefined>` if it has none.
#[must_use]
pub fn enum_name(program: &Program, ty: crate::ids::TypeId, value: i64) -> String {
    enum_text(program, ty, value).to_owned()
}

/// Like [`enum_name`], borrowed from the program.
#[must_use]
pub(crate) fn enum_text(program: &Program, ty: crate::ids::TypeId, value: i64) -> &str {
    program
        .types
        .enumeration(ty)
        .and_then(|values| values.name(value))
        .map_or("<undefined>", |name| program.name(name))
}

/// Appends bytes, those other than printable ASCII as `\xNN`.
pub fn escape_into(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b' '..=b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}

struct Writer<'p> {
    program: &'p Program,
    form: Form,
    out: Vec<u8>,
    indent: usize,
    /// Whether the next text begins a line, and is indented unless it is a string, a double, a time or an interval.
    line_begins: bool,
    /// Objects being written, to end cycles.
    open: Vec<usize>,
}

impl Writer<'_> {
    fn add(&mut self, text: impl AsRef<[u8]>) {
        self.begin();
        self.out.extend_from_slice(text.as_ref());
    }

    /// Writes the tabs at the beginning of a line.
    fn begin(&mut self) {
        if std::mem::take(&mut self.line_begins) && self.form == Form::Cat {
            self.out.extend(std::iter::repeat_n(b'\t', self.indent));
        }
    }

    fn line(&mut self) {
        if !matches!(self.form, Form::Short | Form::Compact) {
            self.out.push(b'\n');
            self.line_begins = true;
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Unset => self.add("<uninitialized>"),
            Value::Bool(value) => self.add(if *value { "T" } else { "F" }),
            Value::Int(value) => self.add(value.to_string()),
            Value::Count(value) => self.add(value.to_string()),
            // As in Zeek, these are not indented either.
            Value::Double(value) | Value::Time(value) => {
                self.line_begins = false;
                crate::support::format::double(&mut self.out, *value);
            }
            Value::Interval(0.0) => self.add("0 secs"),
            Value::Interval(value) => {
                self.line_begins = false;
                crate::support::format::interval(&mut self.out, *value);
            }
            Value::Enum(ty, value) => {
                let name = enum_name(self.program, *ty, *value);
                self.add(name);
            }
            Value::Port(value) => self.add(port(*value)),
            Value::Addr4(bytes) => self.add(std::net::Ipv4Addr::from(*bytes).to_string()),
            Value::Addr6(bytes) => self.add(text::address(**bytes)),
            Value::Net4(..) | Value::Net6(_) => {
                if let Some(net) = value.as_subnet() {
                    self.add(subnet(net));
                }
            }
            Value::Short(_) | Value::Long(_) => {
                let bytes = value.str_bytes();
                if let Some(last) = bytes.last() {
                    // A string that ends in a newline begins a line, too.
                    self.line_begins = *last == b'\n' && self.form == Form::Cat;
                }
                if self.form == Form::Print {
                    escape_into(&mut self.out, bytes);
                } else {
                    self.out.extend_from_slice(bytes);
                }
            }
            Value::Pattern(pattern) => {
                self.add("/");
                self.add(pattern.text());
                self.add("/");
            }
            Value::List(list) => {
                for (index, item) in list.items.iter().enumerate() {
                    if index > 0 {
                        self.add(", ");
                    }
                    self.value(item);
                }
            }
            Value::Func(func) => {
                if let Some(function) = self.program.functions.find(func.func) {
                    self.function(function);
                }
            }
            Value::File(file) => self.add(format!("file \"{}\" of string", file.name)),
            Value::Opaque(opaque) => {
                if let Some(text) = crate::bif::data_text(opaque) {
                    return self.add(text);
                }
                let ty = match self.program.types.get(opaque.ty) {
                    Type::Opaque(name) => self.program.name(*name).to_owned(),
                    _ => String::new(),
                };
                self.add(format!("<opaque of {}>", crate::bif::opaque_name(&ty)));
            }
            Value::Type(ty) => match self.program.types.data(*ty).name {
                Some(name) => self.add(self.program.name(name)),
                None => self.add(text::type_text(self.program, *ty)),
            },
            Value::Iter(_) => (),
            Value::Record(_) | Value::Table(_) | Value::Vector(_) => self.aggregate(value),
        }
    }

    fn aggregate(&mut self, value: &Value) {
        let address = value.address().unwrap_or(0);
        if self.open.contains(&address) {
            self.add("<cycle>");
            return;
        }
        if self.open.len() > MAX_DEPTH {
            self.add("...");
            return;
        }
        self.open.push(address);
        match value {
            Value::Record(record) => self.record(record),
            Value::Table(table) => self.table(table),
            Value::Vector(vector) => {
                self.add("[");
                for (index, item) in vector.items().iter().enumerate() {
                    if index > 0 {
                        self.add(", ");
                    }
                    if item.is_set() {
                        self.value(item);
                    }
                }
                self.add("]");
            }
            _ => (),
        }
        self.open.pop();
    }

    fn record(&mut self, record: &super::Record) {
        self.add("[");
        let fields = record.fields();
        let program = self.program;
        let types = program.types.record(record.ty()).map_or(&[][..], |ty| &ty.fields);
        for (index, field) in types.iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.add(program.name(field.name));
            self.add("=");
            match fields.get(index) {
                Some(value) => self.value(value),
                None => self.add("<uninitialized>"),
            }
        }
        self.add("]");
    }

    fn table(&mut self, table: &super::Table) {
        self.add("{");
        self.indent += 1;
        self.line();
        let is_set = self.program.types.is_set(table.ty());
        let entries = table.entries();
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.add(",");
                if self.form == Form::Short {
                    self.add(" ");
                }
                self.line();
            }
            let brackets = !is_set || parts(key).len() != 1;
            if brackets {
                self.add("[");
            }
            self.value(key);
            if brackets {
                self.add("]");
            }
            if !is_set {
                self.add(" = ");
                self.value(value);
            }
        }
        self.indent -= 1;
        self.line();
        self.add("}");
    }

    fn function(&mut self, function: &Function) {
        let program = self.program;
        self.add(program.name(function.name));
        self.add(": ");
        // If the declaration names a type, the text has that name.
        let declared = function.global.map(|global| program.globals[global].ty);
        match declared.and_then(|ty| program.types.data(ty).name) {
            Some(name) => self.add(program.name(name)),
            None => self.add(text::type_in(program, function.ty, text::Style::LONG)),
        }
        self.line();
        for body in &function.bodies {
            let style = match self.form {
                Form::Short | Form::Compact => text::Style::SHORT,
                Form::Cat => text::Style::INDENTED,
                Form::Print | Form::Raw => text::Style::LONG,
            };
            self.add(text::body(program, *body, style, self.indent));
        }
    }
}
