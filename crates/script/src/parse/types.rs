//! Parsing of types.

use super::attributes::AttributeTarget;
use super::{Parsed, Parser};
use crate::diagnostics::Severity;
use crate::ids::{Name, TypeId};
use crate::lexer::{Op, Token, Word};
use crate::literal::Literal;
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{
    AttrKind, Attrs, EnumType, EnumValue, Field, Flavor, FuncType, Prototype, RecordType, Tag,
    Type, find_attr,
};

impl Parser<'_> {
    /// Parses a type.
    pub(super) fn type_(&mut self) -> Parsed<TypeId> {
        self.deeper(Self::type_inner)
    }

    fn type_inner(&mut self) -> Parsed<TypeId> {
        let token = self.peek()?.clone();
        let Token::Word(word) = token else {
            if token != Token::Ident {
                return Err(self.syntax_error());
            }
            let name = self.identifier()?;
            self.set_node_span(self.previous);
            return Ok(self.named_type(&name));
        };
        let simple = match word {
            Word::Bool => TypeId::BOOL,
            Word::Int => TypeId::INT,
            Word::Count => TypeId::COUNT,
            Word::Double => TypeId::DOUBLE,
            Word::Time => TypeId::TIME,
            Word::Interval => TypeId::INTERVAL,
            Word::String => TypeId::STRING,
            Word::Pattern => TypeId::PATTERN,
            Word::Port => TypeId::PORT,
            Word::Addr => TypeId::ADDR,
            Word::Subnet => TypeId::SUBNET,
            Word::Any => TypeId::ANY,
            Word::Table
            | Word::Set
            | Word::Record
            | Word::Enum
            | Word::Vector
            | Word::Function
            | Word::Event
            | Word::Hook => {
                self.advance()?;
                let start = self.previous;
                return self.compound(word, start);
            }
            Word::File => {
                self.advance()?;
                self.set_node_span(self.previous);
                if self.accept_word(Word::Of)? {
                    self.type_()?;
                }
                return Ok(TypeId::FILE);
            }
            Word::Opaque => {
                self.advance()?;
                let start = self.previous;
                self.expect_word(Word::Of)?;
                let name = self.identifier()?;
                self.set_node_span_from(start);
                let name = self.program.names.intern(&name);
                return Ok(self.new_type(Type::Opaque(name)));
            }
            _ => return Err(self.syntax_error()),
        };
        self.advance()?;
        self.set_node_span(self.previous);
        Ok(simple)
    }

    fn named_type(&mut self, name: &str) -> TypeId {
        match self.lookup(name) {
            Some(Symbol::Global(global))
                if self.program.globals[global].kind == GlobalKind::Type =>
            {
                self.warn_deprecated(global);
                self.program.globals[global].uses += 1;
                self.program.globals[global].ty
            }
            Some(Symbol::Global(global)) => {
                self.error_about("not a Zeek type", &Object::Global(global));
                TypeId::ERROR
            }
            Some(Symbol::Local(local)) => {
                let local = self.local(local);
                let (name, span) = (local.name, local.span);
                let text = self.program.name(name).to_owned();
                self.error_about("not a Zeek type", &Object::Text(text.as_bytes(), span));
                TypeId::ERROR
            }
            None => {
                self.error_here(&format!("identifier not defined: {name}"));
                TypeId::ERROR
            }
        }
    }

    fn compound(&mut self, word: Word, start: Span) -> Parsed<TypeId> {
        match word {
            Word::Table => {
                let index = self.index_types()?;
                self.expect_word(Word::Of)?;
                let value = self.type_()?;
                self.set_node_span_from(start);
                let ty = self.table_type(index.clone(), Some(value));
                Ok(if self.check_index_types(&index, ty) { ty } else { TypeId::ERROR })
            }
            Word::Set => {
                let index = self.index_types()?;
                self.set_node_span_from(start);
                let ty = self.table_type(index.clone(), None);
                Ok(if self.check_index_types(&index, ty) { ty } else { TypeId::ERROR })
            }
            Word::Vector => {
                self.expect_word(Word::Of)?;
                let element = self.type_()?;
                self.set_node_span_from(start);
                Ok(if element == TypeId::ERROR { element } else { self.vector_of(element) })
            }
            Word::Record => {
                self.expect(Op::BraceLeft)?;
                let fields = self.fields()?;
                let last = self.previous;
                self.expect(Op::BraceRight)?;
                self.set_node_span(start.to(last));
                Ok(self.new_type(Type::Record(RecordType { fields })))
            }
            Word::Enum => {
                self.expect(Op::BraceLeft)?;
                self.set_node_span(self.previous);
                let ty = self.new_type(Type::Enum(EnumType::default()));
                self.enum_values(ty, false)?;
                self.expect(Op::BraceRight)?;
                self.set_node_span_from(start);
                let here = self.node_span;
                self.program.types.data_mut(ty).span = here;
                Ok(ty)
            }
            Word::Function => self.signature(Flavor::Function),
            Word::Event => self.signature(Flavor::Event),
            _ => self.signature(Flavor::Hook),
        }
    }

    fn index_types(&mut self) -> Parsed<Vec<TypeId>> {
        self.expect(Op::BracketLeft)?;
        let mut index = Vec::new();
        loop {
            let ty = self.type_()?;
            index.push(ty);
            if !self.accept(Op::Comma)? {
                break;
            }
        }
        self.expect(Op::BracketRight)?;
        Ok(index)
    }

    /// Whether the types are valid for the index of `table`; reports an error if not.
    pub(super) fn check_index_types(&mut self, index: &[TypeId], table: TypeId) -> bool {
        for ty in index {
            if *ty == TypeId::ERROR {
                return false;
            }
            if let Some(part) = self.unsupported_in_index(*ty, 0) {
                self.error_about_both(
                    &format!("index type containing '{part}' is not supported"),
                    &Object::Type(table),
                    &Object::Type(*ty),
                );
                return false;
            }
        }
        true
    }

    /// The kind of a component type that cannot be hashed: `any`, `file`, `opaque` or `type`.
    fn unsupported_in_index(&self, ty: TypeId, depth: usize) -> Option<&'static str> {
        if depth > 100 {
            return None;
        }
        let inner = |part: TypeId| self.unsupported_in_index(part, depth + 1);
        match self.program.types.get(ty) {
            Type::Any => Some("any"),
            Type::File => Some("file"),
            Type::Opaque(_) => Some("opaque"),
            Type::Vector(TypeId::VOID) => Some("any"),
            Type::Vector(element) => inner(*element),
            Type::Table(table) => {
                table.index.iter().chain(table.value.as_ref()).find_map(|part| inner(*part))
            }
            Type::Record(record) => record.fields.iter().find_map(|field| inner(field.ty)),
            _ => None,
        }
    }

    /// Parses the fields of a record, up to the brace.
    pub(super) fn fields(&mut self) -> Parsed<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        let mut duplicates = Vec::new();
        while !self.is_next(Op::BraceRight)? {
            let name = self.plain_identifier()?;
            let start = self.previous;
            self.expect(Op::Colon)?;
            let ty = self.type_()?;
            let attrs = self.attributes()?;
            self.set_node_span_from(start);
            self.expect(Op::Semicolon)?;
            let attrs = self.check_attrs(attrs, ty, AttributeTarget::Field);
            let symbol = self.program.names.intern(&name);
            let span = self.node_span;
            if fields.iter().any(|field| field.name == symbol) {
                duplicates.push(name);
            }
            fields.push(Field { name: symbol, ty, attrs, span, redefined: false });
        }
        if !duplicates.is_empty() {
            let brace = self.next_token.as_ref().map_or(self.previous, |ahead| ahead.span);
            self.set_node_span(brace);
        }
        for name in duplicates {
            self.error_here(&format!("duplicate field '{name}' found in record definition"));
        }
        Ok(fields)
    }

    /// Parses the parameters and the result of a function, event or hook.
    pub(super) fn signature(&mut self, flavor: Flavor) -> Parsed<TypeId> {
        self.expect(Op::ParenLeft)?;
        let start = self.previous;
        let params = self.params()?;
        self.expect(Op::ParenRight)?;
        let mut result = if flavor == Flavor::Hook { TypeId::BOOL } else { TypeId::VOID };
        // The span is that of the last parsed item.
        let mut span = params.last().map_or(start.to(self.previous), |param| param.span);
        self.result_written = false;
        let mut written = false;
        self.event_result = false;
        if flavor != Flavor::Hook && self.accept(Op::Colon)? {
            let given = self.type_()?;
            span = self.previous;
            match flavor {
                Flavor::Function | Flavor::Hook => (written, result) = (true, given),
                Flavor::Event => self.event_result = given != TypeId::VOID,
            }
        }
        self.result_written = written;
        self.set_node_span(span);
        Ok(self.func_type(flavor, params, result))
    }

    /// The type of a function. For events and hooks, its parameters are the canonical prototype.
    pub(super) fn func_type(
        &mut self,
        flavor: Flavor,
        params: Vec<Field>,
        result: TypeId,
    ) -> TypeId {
        let offsets = (0..params.len()).collect();
        let required = params
            .iter()
            .skip_while(|param| find_attr(&param.attrs, AttrKind::Default).is_none())
            .filter(|param| find_attr(&param.attrs, AttrKind::Default).is_none())
            .map(|param| param.name)
            .collect::<Vec<_>>();
        let params = self.new_type(Type::Record(RecordType { fields: params }));
        for name in required {
            let name = self.program.name(name);
            let text = format!("required parameter '{name}' must precede default parameters");
            self.error_about(&text, &Object::Type(params));
        }
        let span = self.node_span;
        let prototypes = if flavor == Flavor::Function {
            Vec::new()
        } else {
            vec![Prototype { params, offsets, deprecated: None, span }]
        };
        self.new_type(Type::Func(FuncType {
            flavor,
            params,
            result,
            prototypes,
            captures: Box::new([]),
        }))
    }

    /// Parses parameters, up to the parenthesis.
    pub(super) fn params(&mut self) -> Parsed<Vec<Field>> {
        let mut params: Vec<Field> = Vec::new();
        while !self.is_next(Op::ParenRight)? {
            let name = self.plain_identifier()?;
            let start = self.previous;
            self.expect(Op::Colon)?;
            let ty = self.type_()?;
            let attrs = self.attributes()?;
            self.set_node_span_from(start);
            // As written in the source: `&default` makes a field optional, too.
            if find_attr(&attrs, AttrKind::Optional).is_some() {
                let message = "&optional is only valid for record fields";
                self.error_about(message, &Object::Attrs(&attrs, self.node_span));
            }
            let attrs = self.check_attrs(attrs, ty, AttributeTarget::Field);
            let symbol = self.program.names.intern(&name);
            let span = self.node_span;
            if params.iter().any(|param| param.name == symbol) {
                self.error_here(&format!("duplicate field '{name}' found in record definition"));
            }
            params.push(Field { name: symbol, ty, attrs, span, redefined: false });
            if !self.accept(Op::Comma)? && !self.accept(Op::Semicolon)? {
                break;
            }
            if self.is_next(Op::ParenRight)? {
                return Err(self.syntax_error());
            }
        }
        Ok(params)
    }

    /// Parses the names of an enum, up to the brace. With `redef`, they are added to an existing enum.
    pub(super) fn enum_values(&mut self, ty: TypeId, redef: bool) -> Parsed<()> {
        let mut explicit: Option<bool> = None;
        if redef && let Some(known) = self.program.types.enumeration(ty) {
            explicit = (!known.values.is_empty() && known.explicit).then_some(true);
        }
        loop {
            let name = self.identifier()?;
            let span = self.previous;
            self.set_node_span(span);
            let is_explicit = self.accept(Op::Assign)?;
            let value = if is_explicit { self.enum_number()? } else { None };
            // An inconsistent name does not affect the checks of the names after it.
            let fits = explicit.is_none_or(|explicit| explicit == is_explicit);
            if fits {
                explicit = Some(is_explicit);
            } else {
                self.error_here(
                    "cannot mix explicit enumerator assignment and implicit auto-increment",
                );
            }
            let attrs = self.attributes()?;
            self.set_node_span(span);
            self.add_enum_value(ty, &name, value, attrs);
            if !self.accept(Op::Comma)? || self.is_next(Op::BraceRight)? {
                break;
            }
        }
        if let Type::Enum(values) = self.program.types.get_mut(ty) {
            values.explicit = explicit.unwrap_or(values.explicit);
        }
        Ok(())
    }

    fn enum_number(&mut self) -> Parsed<Option<i64>> {
        let negative = self.accept(Op::Minus)?;
        let token = self.advance()?;
        let Token::Literal(literal) = token else {
            if token == Token::Ident {
                return Err(self.constant_syntax_error());
            }
            return Err(self.constant_syntax_error());
        };
        Ok(match literal {
            Literal::Count(_) if negative => {
                self.error_here("enumerator is not a count constant");
                None
            }
            Literal::Count(value) => match i64::try_from(value) {
                Ok(value) => Some(value),
                Err(_) => {
                    self.error_here("enumerator value cannot be negative");
                    None
                }
            },
            _ => {
                self.error_here("enumerator is not a count constant");
                None
            }
        })
    }

    fn constant_syntax_error(&mut self) -> super::ParseEnd {
        let span = self.previous;
        self.near("syntax error", span);
        super::ParseEnd::Syntax
    }

    fn add_enum_value(&mut self, ty: TypeId, name: &str, value: Option<i64>, attrs: Attrs) {
        let module = self.module;
        let full = self.full_name(module, name);
        let next = self.program.types.enumeration(ty).map_or(0, |values| values.next);
        let number = value.unwrap_or(next);
        if let Some(global) = self.program.globals.find(full) {
            let known = self.program.globals[global].clone();
            // A name may be declared twice if both declarations agree.
            let names = (self.type_data(known.ty).name, self.type_data(ty).name.or(self.type_name));
            let same = (known.ty == ty || names.0 == names.1)
                && known.kind == GlobalKind::EnumValue(number);
            if same
                && known.ty != ty
                && let Type::Enum(values) = self.program.types.get_mut(ty)
            {
                values.values.push(EnumValue { name: full, value: number });
                values.next = number.saturating_add(1);
            }
            if !same {
                let shown = self.program.name(full).to_owned();
                let type_name = self.enum_name(ty);
                let message =
                    format!("conflicting definition of enum value '{shown}' in type '{type_name}'");
                let here = self.node_span;
                let (first, second) = (
                    self.program.sources.location(here),
                    self.program.sources.location(known.span),
                );
                let location =
                    if second.is_empty() { first } else { format!("{first} and {second}") };
                self.program.emit(&crate::diagnostics::Diagnostic {
                    severity: Severity::Error,
                    span: here,
                    location,
                    text: message.into_bytes(),
                    about: crate::diagnostics::Subjects { other: known.span, ..Default::default() },
                });
            }
            return;
        }
        let taken = self
            .program
            .types
            .enumeration(ty)
            .is_some_and(|known| known.values.iter().any(|known| known.value == number));
        if taken {
            self.error_here("enumerator value in enumerated type definition already exists");
            return;
        }
        let exporting = self.exporting;
        let global = self.add_global(name, module, GlobalKind::EnumValue(number));
        let entry = &mut self.program.globals[global];
        entry.ty = ty;
        entry.attrs = attrs;
        entry.exported = exporting || find_attr(&entry.attrs, AttrKind::Redef).is_some();
        if let Type::Enum(values) = self.program.types.get_mut(ty) {
            values.values.push(EnumValue { name: full, value: number });
            values.next =
                number.saturating_add(1).max(if value.is_some() { values.next } else { 0 });
        }
    }

    fn enum_name(&self, ty: TypeId) -> String {
        let name = self.type_data(ty).name.or(self.type_name);
        name.map_or(String::new(), |name| self.program.name(name).to_owned())
    }

    /// Names the type `ty` `name`: an unnamed record or enum gets the name, other types are copied.
    pub(super) fn name_type(&mut self, ty: TypeId, name: Name) -> TypeId {
        let data = self.program.types.data(ty);
        let new = if matches!(data.ty, Type::Record(_) | Type::Enum(_)) && data.name.is_none() {
            ty
        } else {
            let copy = data.clone();
            if let Some(original) = copy.name {
                self.program.aliases.push((name, original));
            }
            let new = self.program.types.add(copy.ty, self.node_span);
            if matches!(self.program.types.tag(ty), Tag::Record | Tag::Enum) {
                self.program.types.data_mut(new).aliases.push(name);
                let original = self.type_data(ty).name;
                if let Some(original) = original {
                    self.aliases.entry(original).or_default().push(new);
                }
            }
            new
        };
        self.program.types.data_mut(new).name = Some(name);
        new
    }
}
