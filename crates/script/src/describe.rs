//! Zeek's text of types, expressions and statements.
//!
//! [`Style::SHORT`] is used in messages: named records by name, on one line, strings without quotes.
//! [`Style::LONG`] is used for printed functions. [`Style::ASSERT`] is used for failed assertions: short, with
//! strings in quotes. The text of a deeply nested AST ends in `…`: recursion stops at [`MAX_DEPTH`].

use crate::ast::{
    AddTo, BinaryOp, Case, Coercion, EventCall, ExprKind, For, Lambda, StmtKind, UnaryOp, When,
};
use crate::compare::is_arithmetic;
use crate::ids::{BodyId, ExprId, LocalId, StmtId, TypeId};
use crate::literal::{Literal, Protocol};
use crate::program::Program;
use crate::types::{Attr, Flavor, Tag, Type};

/// Maximum depth of nested expressions, statements and types.
pub const MAX_DEPTH: usize = 2_000;

/// Options of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Everything on one line, named types by their names.
    pub short: bool,
    /// Strings have quotes.
    pub quotes: bool,
    /// Nested statements are indented by one tab per level.
    pub indent: bool,
    /// Unprintable bytes of strings are escaped.
    pub escapes: bool,
}

impl Style {
    /// Style of messages.
    pub const SHORT: Self = Self { short: true, quotes: false, indent: false, escapes: true };
    /// Style of printed functions.
    pub const LONG: Self = Self { short: false, quotes: false, indent: false, escapes: true };
    /// Style of functions in the results of `cat` and `fmt`, and in logs.
    pub const INDENTED: Self = Self { short: false, quotes: false, indent: true, escapes: false };
    /// Style of statements in coverage files.
    pub const LISTED: Self = Self { escapes: true, ..Self::INDENTED };
    /// Style of failed assertions.
    pub const ASSERT: Self = Self { short: true, quotes: true, indent: false, escapes: true };
}

/// The text of an expression in messages.
#[must_use]
pub fn expr(program: &Program, id: ExprId) -> Vec<u8> {
    expr_in(program, id, Style::SHORT)
}

/// The text of an expression in `style`.
#[must_use]
pub fn expr_in(program: &Program, id: ExprId, style: Style) -> Vec<u8> {
    let mut describe = Describe::new(program, style);
    describe.expr(id);
    describe.text
}

/// The text of a statement in messages.
#[must_use]
pub fn stmt(program: &Program, id: StmtId) -> Vec<u8> {
    let mut describe = Describe::new(program, Style::SHORT);
    describe.stmt(id);
    describe.text
}

/// The text of a statement of `body`, whose locals it uses.
#[must_use]
pub fn stmt_of(program: &Program, id: StmtId, body: BodyId, style: Style) -> Vec<u8> {
    let mut describe = Describe::new(program, style);
    describe.body = Some(body);
    describe.stmt(id);
    describe.text
}

/// The text of a case of a `switch` in messages.
#[must_use]
pub fn case(program: &Program, case: &Case, body: BodyId) -> Vec<u8> {
    let mut describe = Describe::new(program, Style::SHORT);
    describe.body = Some(body);
    describe.case(case);
    describe.text
}

/// The text of a body in printed functions: `{ `, its statements, one per line, and `}`.
#[must_use]
pub fn body(program: &Program, id: BodyId, style: Style, indent: usize) -> Vec<u8> {
    let mut describe = Describe::new(program, style);
    describe.indent = indent;
    describe.body(id);
    describe.text
}

/// The text of a lambda without its body: type and captures.
#[must_use]
pub fn type_text(program: &Program, id: TypeId) -> String {
    type_in(program, id, Style::SHORT)
}

/// The text of a type in `style`.
#[must_use]
pub fn type_in(program: &Program, id: TypeId, style: Style) -> String {
    let mut describe = Describe::new(program, style);
    describe.ty(id);
    String::from_utf8_lossy(&describe.text).into_owned()
}

/// The structure of a type, even if the type has a name.
#[must_use]
pub fn structure(program: &Program, id: TypeId) -> String {
    let mut describe = Describe::new(program, Style::LONG);
    describe.structure(id);
    String::from_utf8_lossy(&describe.text).into_owned()
}

/// The text of attributes.
#[must_use]
pub fn attrs(program: &Program, attrs: &[Attr]) -> Vec<u8> {
    let mut describe = Describe::new(program, Style::SHORT);
    describe.attrs(attrs);
    describe.text
}

/// The kind of a type as messages name it: `table` also for sets.
#[must_use]
pub fn tag_name(ty: &Type) -> &'static str {
    match ty {
        Type::Void => "void",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Count => "count",
        Type::Double => "double",
        Type::Time => "time",
        Type::Interval => "interval",
        Type::String => "string",
        Type::Pattern => "pattern",
        Type::Port => "port",
        Type::Addr => "addr",
        Type::Subnet => "subnet",
        Type::Any => "any",
        Type::Error => "error",
        Type::Enum(_) => "enum",
        Type::Table(_) => "table",
        Type::Vector(_) => "vector",
        Type::Record(_) => "record",
        Type::Func(_) => "func",
        Type::File => "file",
        Type::Opaque(_) => "opaque",
        Type::List(_) => "types",
        Type::Type(_) => "type",
    }
}

/// The text of an operator.
#[must_use]
pub fn binary_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide | BinaryOp::Mask => "/",
        BinaryOp::Modulo => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
        BinaryOp::Less => "<",
        BinaryOp::LessEqual => "<=",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
    }
}

/// The text of a double: six decimals without trailing zeros, at least one decimal; scientific notation for
/// large and small numbers.
#[must_use]
pub fn double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let size = value.abs();
    if value == 0.0 {
        return "0.0".to_owned();
    }
    if !(1e-6..=2_147_483_647.0).contains(&size) {
        return scientific(value);
    }
    let mut text = format!("{value:.6}");
    while text.ends_with('0') {
        text.pop();
    }
    if text.ends_with('.') {
        text.push('0');
    }
    text
}

fn scientific(value: f64) -> String {
    let text = format!("{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The nonzero parts of an interval: the number of units and the unit's name. The last part has a fraction.
pub(crate) fn interval_parts(value: f64) -> impl Iterator<Item = (f64, &'static str)> {
    const UNITS: [(f64, &str); 6] = [
        (86400.0, "day"),
        (3600.0, "hr"),
        (60.0, "min"),
        (1.0, "sec"),
        (1e-3, "msec"),
        (1e-6, "usec"),
    ];
    let mut rest = value;
    UNITS.into_iter().enumerate().filter_map(move |(index, (size, unit))| {
        let last = index + 1 == UNITS.len();
        let amount = if last { rest / size } else { (rest / size).trunc() };
        if amount == 0.0 || (last && amount.abs() < 1e-6) {
            return None;
        }
        rest -= amount * size;
        Some((amount, unit))
    })
}

/// The text of an interval: days, hours and so on; the last unit has a fraction.
#[must_use]
pub fn interval(value: f64) -> String {
    if value == 0.0 {
        return "0 secs".to_owned();
    }
    let mut text = String::new();
    for (amount, unit) in interval_parts(value) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&double(amount));
        text.push(' ');
        text.push_str(unit);
        if amount.abs() != 1.0 {
            text.push('s');
        }
    }
    text
}

/// The text of an address.
#[must_use]
pub fn address(octets: [u8; 16]) -> String {
    let address = std::net::Ipv6Addr::from(octets);
    // The last four bytes are printed in IPv4 notation if only zeros precede them.
    if let [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] = octets
        && (a, b) != (0, 0)
    {
        return format!("::{a}.{b}.{c}.{d}");
    }
    if let [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, a, b, c, d] = octets {
        return format!("::ffff:0:{a}.{b}.{c}.{d}");
    }
    address.to_ipv4_mapped().map_or_else(|| address.to_string(), |four| four.to_string())
}

/// The text of a constant, strings unquoted.
#[must_use]
pub fn literal(program: &Program, value: &Literal, ty: TypeId) -> Vec<u8> {
    match value {
        Literal::Bool(value) => if *value { "T" } else { "F" }.into(),
        Literal::Int(value) => value.to_string().into(),
        Literal::Count(value) => value.to_string().into(),
        Literal::Double(value) | Literal::Time(value) => double(*value).into(),
        Literal::Interval(value) => interval(*value).into(),
        Literal::String(bytes) => bytes.to_vec(),
        Literal::Addr(octets) => address(*octets).into(),
        Literal::Subnet(subnet) => {
            let four = subnet.prefix.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
                && subnet.width >= 96;
            let width = if four { subnet.width - 96 } else { subnet.width };
            format!("{}/{width}", address(subnet.prefix)).into()
        }
        Literal::Port(port) => {
            let protocol = match port.protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Icmp => "icmp",
                Protocol::Unknown => "unknown",
            };
            format!("{}/{protocol}", port.number).into()
        }
        Literal::Enum(value) => {
            let name = program.types.enumeration(ty).and_then(|values| values.name(*value));
            name.map_or("<undefined>", |name| program.name(name)).into()
        }
        Literal::Pattern(source) => {
            let mut text = b"/".to_vec();
            let flags: &[u8] = match (source.case_insensitive, source.single_line) {
                (true, true) => b"(?s:(?i:",
                (true, false) => b"(?i:",
                (false, true) => b"(?s:",
                (false, false) => b"",
            };
            text.extend_from_slice(flags);
            text.extend_from_slice(b"^?(");
            text.extend_from_slice(&source.text);
            text.extend_from_slice(b")$?");
            text.extend(flags.iter().filter(|byte| **byte == b'(').map(|_| b')'));
            text.push(b'/');
            text
        }
    }
}

struct Describe<'a> {
    program: &'a Program,
    style: Style,
    text: Vec<u8>,
    depth: usize,
    indent: usize,
    records: Vec<TypeId>,
    body: Option<BodyId>,
}

impl<'a> Describe<'a> {
    fn new(program: &'a Program, style: Style) -> Self {
        Self {
            program,
            style,
            text: Vec::new(),
            depth: 0,
            indent: 0,
            records: Vec::new(),
            body: None,
        }
    }

    fn add(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn tag(&self, id: ExprId) -> Tag {
        self.program.types.tag(self.program.exprs[id].ty)
    }

    fn line(&mut self) {
        if !self.style.short {
            // An empty line has no indentation.
            while self.style.indent && self.text.last() == Some(&b'\t') {
                self.text.pop();
            }
            self.text.push(b'\n');
            if self.style.indent {
                self.text.extend(std::iter::repeat_n(b'\t', self.indent));
            }
        }
    }

    /// A nested statement, on lines of its own.
    fn nested(&mut self, stmt: StmtId) {
        self.indent += 1;
        self.line();
        self.stmt(stmt);
        self.indent -= 1;
        self.line();
    }

    /// Enters one level deeper, unless [`MAX_DEPTH`] is reached; the caller leaves with [`Self::leave`].
    fn enter(&mut self) -> bool {
        if self.depth == MAX_DEPTH {
            self.add("…");
            return false;
        }
        self.depth += 1;
        true
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn ty(&mut self, id: TypeId) {
        if !self.enter() {
            return;
        }
        let program = self.program;
        match program.types.data(id).name {
            Some(name) => self.add(program.name(name)),
            None => self.structure(id),
        }
        self.leave();
    }

    /// A type without its name.
    fn structure(&mut self, id: TypeId) {
        let program = self.program;
        match program.types.get(id) {
            Type::Enum(_) => self.add("enum"),
            Type::Table(table) => {
                self.add(if table.value.is_none() { "set" } else { "table" });
                if table.index.is_empty() {
                    // The type of an empty constructor.
                    return self.add("()");
                }
                self.add("[");
                self.types(&table.index);
                self.add("]");
                if let Some(value) = table.value {
                    self.add(" of ");
                    self.ty(value);
                }
            }
            Type::Vector(TypeId::VOID) => self.add("vector()"),
            Type::Vector(element) => {
                self.add("vector of ");
                self.ty(*element);
            }
            Type::Record(_) => self.record(id),
            Type::Func(func) => {
                self.add(match func.flavor {
                    Flavor::Function => "function",
                    Flavor::Event => "event",
                    Flavor::Hook => "hook",
                });
                self.add("(");
                self.params(func.params);
                self.add(")");
                if func.flavor != Flavor::Event {
                    self.add(" : ");
                    self.ty(func.result);
                }
                if !func.captures.is_empty() {
                    self.add("[");
                    for (index, capture) in func.captures.iter().enumerate() {
                        if index > 0 {
                            self.add(",  ");
                        }
                        if capture.deep {
                            self.add("copy ");
                        }
                        self.add(program.name(capture.name));
                    }
                    self.add("]");
                }
            }
            Type::File => self.add("file of string"),
            Type::Opaque(name) => {
                self.add("opaque of ");
                self.add(program.name(*name));
            }
            Type::List(list) => {
                self.add("list of ");
                self.types(&list.types);
            }
            Type::Type(inner) => {
                self.add("type ");
                self.ty(*inner);
            }
            other => self.add(tag_name(other)),
        }
    }

    fn types(&mut self, types: &[TypeId]) {
        for (index, ty) in types.iter().enumerate() {
            if index > 0 {
                self.add(",");
            }
            self.ty(*ty);
        }
    }

    fn record(&mut self, id: TypeId) {
        let program = self.program;
        if self.records.contains(&id) {
            return self.add("<recursion>");
        }
        self.records.push(id);
        self.add("record { ");
        if program.types.record(id).is_some_and(|record| record.fields.is_empty()) {
            self.add(" ");
        }
        for field in program.types.record(id).map_or(&[][..], |record| &record.fields) {
            self.add(program.name(field.name));
            self.add(":");
            self.ty(field.ty);
            if !field.attrs.is_empty() {
                self.add(" ");
                self.attrs(&field.attrs);
            }
            self.add("; ");
        }
        self.add("}");
        self.records.pop();
    }

    fn params(&mut self, record: TypeId) {
        let program = self.program;
        let fields = program.types.record(record).map_or(&[][..], |record| &record.fields);
        self.records.push(record);
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.add(program.name(field.name));
            self.add(":");
            self.ty(field.ty);
            if !field.attrs.is_empty() {
                self.add(" ");
                self.attrs(&field.attrs);
            }
        }
        self.records.pop();
    }

    fn attrs(&mut self, attrs: &[Attr]) {
        for (index, attr) in attrs.iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.add(attr.kind.name());
            if let Some(value) = attr.expr {
                self.add("=");
                self.expr(value);
            }
        }
    }

    fn expr(&mut self, id: ExprId) {
        if !self.enter() {
            return;
        }
        let paren = self.program.exprs[id].paren;
        if paren {
            self.add("(");
        }
        self.plain_expr(id);
        if paren {
            self.add(")");
        }
        self.leave();
    }

    fn plain_expr(&mut self, id: ExprId) {
        let program = self.program;
        let expr = &program.exprs[id];
        match &expr.kind {
            ExprKind::Error => self.add("<error>"),
            ExprKind::Blank => self.add("_"),
            ExprKind::Literal(value) => self.literal(value, expr.ty),
            ExprKind::TypeValue(ty) => self.ty(*ty),
            ExprKind::Local(_, name) => self.add(program.name(*name)),
            ExprKind::Global(global) => self.add(program.name(program.globals[*global].name)),
            ExprKind::Unary(op, operand) => self.unary(*op, *operand),
            ExprKind::Binary(op, left, right) => self.infix(*left, binary_text(*op), *right),
            ExprKind::Conditional(condition, yes, no) => {
                self.expr(*condition);
                self.add(" ? ");
                self.expr(*yes);
                self.add(" : ");
                self.expr(*no);
            }
            ExprKind::In(key, container) => self.infix(*key, "in", *container),
            ExprKind::Index(base, index) => {
                self.expr(*base);
                self.add("[");
                self.expr(*index);
                self.add("]");
            }
            ExprKind::Slice(base, from, to) => {
                self.expr(*base);
                self.add("[");
                self.list(&[*from, *to]);
                self.add("]");
            }
            ExprKind::Field(record, offset) => self.field(*record, "$", *offset),
            ExprKind::HasField(record, offset) => self.field(*record, "?$", *offset),
            ExprKind::FieldAssign(name, value) => {
                self.add("$");
                self.add(program.name(*name));
                self.add("=");
                self.expr(*value);
            }
            ExprKind::Record(constructor) => {
                let name = program.types.data(expr.ty).name.filter(|_| constructor.named);
                self.add(name.map_or("[", |name| program.name(name)));
                if name.is_some() {
                    self.add("(");
                }
                let fields = program.types.record(expr.ty).map_or(&[][..], |record| &record.fields);
                for (index, (offset, value)) in constructor.fields.iter().enumerate() {
                    if index > 0 {
                        self.add(", ");
                    }
                    self.add("$");
                    let of_type = fields.get(*offset as usize).map(|field| field.name);
                    let name = of_type.or_else(|| constructor.names.get(index).copied());
                    self.add(name.map_or("", |name| program.name(name)));
                    self.add("=");
                    self.expr(*value);
                }
                self.add(if name.is_some() { ")" } else { "]" });
            }
            ExprKind::Table(constructor) => {
                self.add("table(");
                for (index, (key, value)) in constructor.entries.iter().enumerate() {
                    if index > 0 {
                        self.add(", ");
                    }
                    self.list(key);
                    self.add(" = ");
                    self.expr(*value);
                }
                self.add(")");
                self.attrs(&constructor.attrs);
            }
            ExprKind::Set(constructor) => {
                self.add("set(");
                for (index, key) in constructor.entries.iter().enumerate() {
                    if index > 0 {
                        self.add(", ");
                    }
                    self.list(key);
                }
                self.add(")");
                self.attrs(&constructor.attrs);
            }
            ExprKind::Vector(elements) => {
                self.add("vector(");
                self.list(elements);
                self.add(")");
            }
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Assign(left, right) => {
                self.expr(*left);
                self.add(" = ");
                if matches!(program.exprs[*right].kind, ExprKind::Coerce(Coercion::Vector, _)) {
                    self.add("vector_coerce ");
                }
                self.expr(self.as_given(*right));
            }
            ExprKind::AddTo(AddTo::Arithmetic, left, right) => {
                self.expr(*left);
                self.add(" = ");
                self.infix(*left, "+", *right);
            }
            ExprKind::AddTo(_, left, right) => self.infix(*left, "+=", self.as_given(*right)),
            ExprKind::RemoveFrom(left, right) if is_arithmetic(self.tag(*left)) => {
                self.expr(*left);
                self.add(" = ");
                self.infix(*left, "-", *right);
            }
            ExprKind::RemoveFrom(left, right) => self.infix(*left, "-=", *right),
            ExprKind::Add(operand) => {
                self.add("add ");
                self.expr(*operand);
            }
            ExprKind::Delete(operand) => {
                self.add("delete ");
                self.expr(*operand);
            }
            ExprKind::Call(call) => {
                self.expr(call.callee);
                self.add("(");
                self.list(&call.args);
                self.add(")");
            }
            ExprKind::Lambda(lambda) => self.lambda(lambda, expr.ty),
            ExprKind::Event(event) => self.event(event),
            ExprKind::Schedule(when, event) => {
                self.add("schedule ");
                self.expr(*when);
                self.add(" {");
                self.indent += 1;
                self.line();
                self.event(event);
                self.indent -= 1;
                self.line();
                self.add("}");
            }
            ExprKind::Coerce(Coercion::ToAny, operand) => {
                self.add("to_any_coerce ");
                self.expr(*operand);
            }
            ExprKind::Coerce(
                Coercion::FromAny | Coercion::Function | Coercion::Vector,
                operand,
            ) => {
                self.expr(*operand);
            }
            ExprKind::Coerce(_, operand) => {
                self.add("(coerce ");
                self.expr(*operand);
                self.add(" to ");
                self.ty(expr.ty);
                self.add(")");
            }
            ExprKind::Cast(operand) => {
                self.expr(*operand);
                self.add(" as ");
                self.ty(expr.ty);
            }
            ExprKind::Is(operand, ty) => {
                self.expr(*operand);
                self.add(" is ");
                self.ty(*ty);
            }
            ExprKind::CanCast(operand, ty) => {
                self.expr(*operand);
                self.add(" ?as ");
                self.ty(*ty);
            }
        }
    }

    /// The assigned or appended value without its conversion to `any`, which Zeek does not print.
    fn as_given(&self, value: ExprId) -> ExprId {
        match self.program.exprs[value].kind {
            ExprKind::Coerce(Coercion::ToAny, inner) => inner,
            _ => value,
        }
    }

    fn literal(&mut self, value: &Literal, ty: TypeId) {
        let mut text = literal(self.program, value, ty);
        if self.style.escapes && matches!(value, Literal::String(_)) {
            // A statement stays on one line, whatever a string contains.
            let bytes = std::mem::take(&mut text);
            crate::value::describe::escape_into(&mut text, &bytes);
        }
        if self.style.quotes && matches!(value, Literal::String(_)) {
            self.text.push(b'"');
            self.text.extend_from_slice(&text);
            self.text.push(b'"');
        } else {
            self.text.extend_from_slice(&text);
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: ExprId) {
        self.add(match op {
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
            UnaryOp::Negative => "-",
            UnaryOp::Positive => "+",
            UnaryOp::Increment => "++",
            UnaryOp::Decrement => "--",
            UnaryOp::Size => "sizeof ",
            UnaryOp::Clone => "(*)",
        });
        self.expr(operand);
    }

    fn infix(&mut self, left: ExprId, op: &str, right: ExprId) {
        self.expr(left);
        self.add(" ");
        self.add(op);
        self.add(" ");
        self.expr(right);
    }

    fn field(&mut self, record: ExprId, op: &str, offset: u32) {
        self.expr(record);
        self.add(op);
        let program = self.program;
        let ty = program.exprs[record].ty;
        let field = program.types.record(ty).and_then(|record| record.fields.get(offset as usize));
        self.add(field.map_or("", |field| program.name(field.name)));
    }

    fn list(&mut self, elements: &[ExprId]) {
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.expr(*element);
        }
    }

    fn event(&mut self, event: &EventCall) {
        let program = self.program;
        self.add(program.name(program.globals[event.event].name));
        self.add("(");
        self.list(&event.args);
        self.add(")");
    }

    fn lambda(&mut self, lambda: &Lambda, ty: TypeId) {
        let program = self.program;
        let function = &program.functions[lambda.func];
        self.ty(if ty == TypeId::ERROR { ty } else { function.ty });
        if let Some(body) = function.bodies.first() {
            self.body(*body);
        }
    }

    fn body(&mut self, id: BodyId) {
        let outer = self.body.replace(id);
        let body = &self.program.bodies[id];
        if body.inits.is_empty() {
            self.stmt(body.stmt);
        } else {
            self.with_inits(&body.inits, body.stmt);
        }
        self.body = outer;
    }

    /// A body preceded by the initialization of its locals without an initial value.
    fn with_inits(&mut self, inits: &[LocalId], stmt: StmtId) {
        self.add("{ ");
        self.line();
        self.add("<init> ");
        for (index, local) in inits.iter().enumerate() {
            if index > 0 {
                self.add(", ");
            }
            self.local(Some(*local));
        }
        self.end_statement();
        self.line();
        self.stmt(stmt);
        self.line();
        self.add("}");
    }

    /// A loop variable; `_` for none, qualified by the module like all names.
    fn local(&mut self, id: Option<LocalId>) {
        let program = self.program;
        let body = self.body.map(|body| &program.bodies[body]);
        if let Some(local) = body.zip(id).and_then(|(body, id)| body.locals.find(id)) {
            return self.add(program.name(local.name));
        }
        let module = body.map(|body| program.name(body.module)).filter(|name| *name != "GLOBAL");
        if let Some(module) = module {
            self.add(module);
            self.add("::");
        }
        self.add("_");
    }

    /// The end of a simple statement.
    fn end_statement(&mut self) {
        if !self.style.short {
            self.add(";");
        }
    }

    fn stmt(&mut self, id: StmtId) {
        if !self.enter() {
            return;
        }
        let program = self.program;
        match &program.stmts[id].kind {
            StmtKind::Null => self.end_statement(),
            StmtKind::List(stmts) if stmts.is_empty() => self.end_statement(),
            StmtKind::List(stmts) => {
                self.add("{ ");
                self.line();
                for stmt in stmts {
                    self.stmt(*stmt);
                    self.line();
                }
                self.add("}");
            }
            StmtKind::Expr(value) => {
                self.expr(*value);
                self.end_statement();
            }
            StmtKind::Print(values) => {
                self.add("print ");
                self.list(values);
                self.end_statement();
            }
            StmtKind::If(condition, yes, no) => {
                self.add("if (");
                self.expr(*condition);
                self.add(") ");
                self.nested(*yes);
                if let Some(no) = no {
                    self.add("else");
                    self.nested(*no);
                }
            }
            StmtKind::While(condition, body) => {
                self.add("while (");
                self.expr(*condition);
                self.add(") ");
                self.nested(*body);
            }
            StmtKind::For(each) => self.for_each(each),
            StmtKind::Switch(switch) => {
                self.add("switch ");
                self.expr(switch.value);
                self.add(" {");
                self.indent += 1;
                self.line();
                for case in &switch.cases {
                    self.case(case);
                }
                self.indent -= 1;
                self.line();
                self.add("}");
                self.line();
            }
            StmtKind::Return(value) => {
                self.add("return ");
                if let Some(value) = value {
                    self.add("(");
                    self.expr(*value);
                    self.add(")");
                }
                self.end_statement();
            }
            StmtKind::Break => {
                self.add("break ");
                self.end_statement();
            }
            StmtKind::Next => {
                self.add("next ");
                self.end_statement();
            }
            StmtKind::Fallthrough => {
                self.add("fallthrough ");
                self.end_statement();
            }
            StmtKind::Event(event) => {
                self.add("event ");
                self.event(event);
                self.end_statement();
            }
            StmtKind::When(when) => self.when(when),
            StmtKind::Assert(condition, message) => {
                self.add("assert ");
                let quotes = std::mem::replace(&mut self.style.quotes, true);
                self.expr(*condition);
                if let Some(message) = message {
                    self.add(", ");
                    self.expr(*message);
                }
                self.style.quotes = quotes;
                self.end_statement();
            }
            StmtKind::SliceAssign(left, right) => {
                self.infix(*left, "=", *right);
                self.end_statement();
            }
        }
        self.leave();
    }

    /// Zeek writes the comma between two keys after the second one.
    fn for_each(&mut self, each: &For) {
        self.add("for ([");
        for (index, var) in each.vars.iter().enumerate() {
            self.local(*var);
            if index > 0 {
                self.add(",");
            }
        }
        self.add("]");
        if each.value.is_some() {
            self.add(", ");
            self.local(each.value);
        }
        self.add(" in ");
        self.expr(each.over);
        self.add(") ");
        self.nested(each.body);
    }

    fn case(&mut self, case: &Case) {
        if case.default {
            self.add("default:");
        } else {
            self.add("case ");
            self.list(&case.values);
            for (index, (ty, local)) in case.types.iter().enumerate() {
                self.add(if index > 0 { ", type " } else { "type " });
                self.ty(*ty);
                if local.is_some() {
                    self.add(" as ");
                    self.local(*local);
                }
            }
            self.add(":");
        }
        self.nested(case.body);
    }

    fn when(&mut self, when: &When) {
        self.add("when ");
        if !when.captures.is_empty() {
            self.add("[");
            let program = self.program;
            for (index, capture) in when.captures.iter().enumerate() {
                if index > 0 {
                    self.add(", ");
                }
                if capture.deep {
                    self.add("copy ");
                }
                let local = program.bodies[when.frame].locals.find(capture.inner);
                self.add(local.map_or("", |local| program.name(local.name)));
            }
            self.add("]");
        }
        self.add("(");
        self.expr(when.condition);
        self.add(") ");
        self.nested(when.body);
        if let Some((length, body)) = &when.timeout {
            self.add(" timeout ");
            self.expr(*length);
            self.add(" ");
            self.nested(*body);
        }
    }
}
