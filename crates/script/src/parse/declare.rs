//! Declarations: modules, globals, types, redefs.

use super::attributes::AttributeTarget;
use super::{ParseEnd, Parsed, Parser};
use crate::ast::{Coercion, ExprKind, Function, LocalKind};
use crate::diagnostics::Severity;
use crate::evaluate::Init;
use crate::ids::{ExprId, GlobalId, LocalId, TypeId};
use crate::lexer::{Op, Token, Word};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{Attr, AttrKind, Attrs, Flavor, Prototype, Tag, Type, attr_expr, find_attr};

/// Kinds of variable declarations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Declare {
    Variable,
    Constant,
    Option,
    Redef,
}

impl Parser<'_> {
    /// Parses a declaration or a statement at file level.
    pub(super) fn declaration(&mut self) -> Parsed<()> {
        let token = self.peek()?.clone();
        let Token::Word(word) = token else { return self.file_statement() };
        if self.in_statements && !self.exporting {
            return self.late_declaration(word);
        }
        match word {
            Word::Module => {
                self.advance()?;
                let name = self.identifier()?;
                self.expect(Op::Semicolon)?;
                self.module = self.program.names.intern(&name);
                self.program.globals.modules.insert(self.module);
                Ok(())
            }
            Word::Export => {
                self.advance()?;
                self.expect(Op::BraceLeft)?;
                let outer = std::mem::replace(&mut self.exporting, true);
                while !self.is_next(Op::BraceRight)? {
                    if *self.peek()? == Token::End {
                        return Err(self.syntax_error());
                    }
                    self.declaration()?;
                }
                self.exporting = outer;
                self.expect(Op::BraceRight)
            }
            Word::Global => self.variable(Declare::Variable),
            Word::Const => self.variable(Declare::Constant),
            Word::Option => self.variable(Declare::Option),
            Word::Redef => self.redef(),
            Word::Type => self.type_declaration(),
            // Until the first statement of another kind, these words introduce a handler.
            Word::Function | Word::Event | Word::Hook => self.handler(word, false),
            _ => self.file_statement(),
        }
    }

    /// Parses the input after the first statement at file level, where the grammar allows only statements.
    fn late_declaration(&mut self, word: Word) -> Parsed<()> {
        match word {
            Word::Module
            | Word::Export
            | Word::Global
            | Word::Option
            | Word::Redef
            | Word::Type => Err(self.syntax_error()),
            Word::Event | Word::Hook => {
                self.advance()?;
                let start = self.previous;
                let stmt = match word {
                    Word::Event => self.event_statement(start)?,
                    _ => self.hook_statement(start)?,
                };
                self.main.push(stmt);
                Ok(())
            }
            _ => self.file_statement(),
        }
    }

    fn file_statement(&mut self) -> Parsed<()> {
        if self.exporting {
            return Err(self.syntax_error());
        }
        self.in_statements = true;
        // References in such a statement alone do not count as uses.
        let before = self.scope().globals.len();
        let stmt = self.statement()?;
        self.scope().globals.truncate(before);
        self.main.push(stmt);
        Ok(())
    }

    fn declared_name(&mut self) -> Parsed<(String, Span)> {
        let name = self.identifier()?;
        let span = self.previous;
        self.set_node_span(span);
        if self.exporting && name.starts_with("::") {
            self.error_here(&format!("cannot use :: prefix in export section: {name}"));
            return Err(ParseEnd::Syntax);
        }
        if name.starts_with("GLOBAL::") {
            self.error_here(&super::scope::global_prefix(&name));
        }
        Ok((name, span))
    }

    /// Parses a variable after `global`, `const`, `option` or `redef`.
    fn variable(&mut self, declare: Declare) -> Parsed<()> {
        if declare != Declare::Redef {
            self.advance()?;
        }
        let (name, span) = self.declared_name()?;
        let global = if declare == Declare::Redef {
            match self.lookup_in(&name, false, true) {
                Some(Symbol::Global(global)) => global,
                _ => self.declared_global(&name),
            }
        } else {
            self.declared_global(&name)
        };
        if declare == Declare::Redef {
            self.warn_deprecated(global);
        }
        let blank = name == "_";
        if blank && declare == Declare::Option {
            self.error_about("blank identifier used as option", &Object::Global(global));
        }
        let mut key = None;
        if declare == Declare::Redef && self.is_next(Op::BracketLeft)? {
            self.advance()?;
            let keys = self.expression_list()?;
            self.expect(Op::BracketRight)?;
            self.set_node_span_from(span);
            key = Some(self.list_node(keys));
        }
        let ty = if self.accept(Op::Colon)? { Some(self.type_()?) } else { None };
        let (init, value) = self.initializer(ty)?;
        let attrs = self.attributes()?;
        let end = self.previous;
        if *self.peek()? != Token::Op(Op::Semicolon) {
            return Err(self.syntax_error());
        }
        self.set_node_span(span.to(end));
        let value = match (key, value) {
            (Some(key), Some(value)) => {
                let entry = self.node(ExprKind::Assign(key, value), TypeId::VOID);
                Some(self.list_node(vec![entry]))
            }
            (_, value) => value,
        };
        let init = if key.is_some() { Init::Extra } else { init };
        self.declare(global, declare, ty, init, value, attrs)?;
        self.expect(Op::Semicolon)
    }

    /// Parses `= value`, `+= value`, `-= value` or nothing.
    fn initializer(&mut self, ty: Option<TypeId>) -> Parsed<(Init, Option<ExprId>)> {
        let init = match self.peek()? {
            Token::Op(Op::Assign) => Init::Full,
            Token::Op(Op::AddTo) => Init::Extra,
            Token::Op(Op::RemoveFrom) => Init::Remove,
            Token::Op(Op::Semicolon) | Token::Attr(_) | Token::End => {
                return Ok((Init::Empty, None));
            }
            _ => {
                // The grammar allows a value without `=`, which is a separate error.
                let value = if self.is_next(Op::BracketLeft)? {
                    self.advance()?;
                    let elements = self.expression_list()?;
                    self.expect(Op::BracketRight)?;
                    self.list_node(elements)
                } else {
                    self.right_side()?
                };
                return Ok((Init::Empty, Some(value)));
            }
        };
        self.advance()?;
        let _ = ty;
        // The grammar allows an empty initializer.
        if matches!(self.peek()?, Token::Op(Op::Semicolon) | Token::Attr(_)) {
            return Ok((init, None));
        }
        let value = self.right_side()?;
        Ok((init, Some(value)))
    }

    /// Sets the type, attributes and value of a global.
    fn declare(
        &mut self,
        global: GlobalId,
        declare: Declare,
        ty: Option<TypeId>,
        init: Init,
        value: Option<ExprId>,
        attrs: Attrs,
    ) -> Parsed<()> {
        let known = self.program.globals[global].clone();
        let is_new = known.kind == GlobalKind::Unknown && known.ty == TypeId::VOID;
        if init == Init::Empty
            && let Some(value) = value
        {
            self.error_about(
                "Initialization not preceded by =/+=/-= is not allowed.",
                &Object::Expr(value),
            );
            if is_new {
                self.program.globals[global].ty = ty.unwrap_or(TypeId::ERROR);
                self.program.globals[global].kind = GlobalKind::Variable;
            }
            return Ok(());
        }
        let value_error = value.is_some_and(|value| self.is_error(value));
        if declare == Declare::Redef {
            if is_new {
                self.error_about(
                    "\"redef\" used but not previously defined",
                    &Object::Global(global),
                );
                self.program.globals[global].ty = TypeId::ERROR;
                return Ok(());
            }
            let attrs_only = value.is_none() && !attrs.is_empty();
            if !self.global_has(global, AttrKind::Redef)
                && !attrs_only
                && known.kind != GlobalKind::Option
            {
                let object = value.map(Object::Expr);
                self.report_pinpoint(
                    "cannot redefine a variable not marked with &redef",
                    &Object::Global(global),
                    object.as_ref(),
                );
                return Ok(());
            }
            if value.is_none() && attrs.is_empty() {
                self.error_about(
                    "Initialization not preceded by =/+=/-= is not allowed.",
                    &Object::Global(global),
                );
                return Ok(());
            }
        } else if !is_new {
            let function = matches!(self.program.types.get(known.ty), Type::Func(_));
            let twice = value.is_some() && known.initialized;
            let redefinable = self.global_has(global, AttrKind::Redef);
            if redefinable || (value.is_none() && !attrs.is_empty() && !function) {
                let object = value.map(Object::Expr).or(ty.map(Object::Type));
                self.program.report_objects(
                    Severity::Warning,
                    "redefinition requires \"redef\"",
                    &Object::Global(global),
                    object.as_ref(),
                    true,
                );
                // A value of the same type is accepted nevertheless.
                let given = ty.or_else(|| value.and_then(|value| self.infer(value)));
                let fits = given.filter(|_| value.is_some());
                let same = fits.map(|given| self.program.same_type(given, known.ty));
                let message = match same {
                    Some(true) => None,
                    Some(false) => Some("redefinition changes type"),
                    None => Some("already defined"),
                };
                if let Some(message) = message {
                    let object = value.map(Object::Expr);
                    self.report_pinpoint(message, &Object::Global(global), object.as_ref());
                    return Ok(());
                }
                let declare = Declare::Redef;
                return self.declare(global, declare, Some(known.ty), init, value, attrs);
            }
            if function && !twice {
                let ty = ty.or_else(|| value.and_then(|value| self.infer(value)));
                if let Some(ty) = ty {
                    self.add_prototype(global, ty, &attrs, value);
                }
            } else {
                let object = value.map(Object::Expr);
                self.report_pinpoint("already defined", &Object::Global(global), object.as_ref());
            }
            return Ok(());
        }
        let mut ty = ty;
        if declare == Declare::Redef {
            if let Some(given) = ty
                && !self.program.same_type(given, known.ty)
            {
                let object = value.map(Object::Expr);
                let message = "redefinition changes type";
                self.report_pinpoint(message, &Object::Global(global), object.as_ref());
                return Ok(());
            }
            ty = Some(known.ty);
        }
        let ty = match ty {
            Some(ty) => ty,
            None => {
                let Some(value) = value else {
                    self.error_about("no type given", &Object::Global(global));
                    self.program.globals[global].ty = TypeId::ERROR;
                    return Ok(());
                };
                let inferred = if value_error { None } else { self.infer(value) };
                match inferred {
                    Some(
                        ty @ (TypeId::UNSPECIFIED_TABLE
                        | TypeId::UNSPECIFIED_SET
                        | TypeId::UNSPECIFIED_VECTOR),
                    ) => {
                        self.error_about(
                            "empty constructor in untyped initialization",
                            &Object::Expr(value),
                        );
                        self.program.globals[global].ty = ty;
                        TypeId::ERROR
                    }
                    Some(TypeId::VOID) => {
                        self.error_about("illegal assignment target", &Object::Global(global));
                        TypeId::ERROR
                    }
                    Some(ty) => ty,
                    None => TypeId::ERROR,
                }
            }
        };
        if declare != Declare::Redef {
            self.program.globals[global].ty = ty;
            self.program.globals[global].span = self.node_span;
            self.program.globals[global].kind = match declare {
                Declare::Constant => GlobalKind::Constant,
                Declare::Option => GlobalKind::Option,
                _ => self.function_kind(global, ty, value),
            };
        }
        if ty == TypeId::ERROR {
            return Ok(());
        }
        let known_attrs = self.program.globals[global].attrs.clone();
        let mut attrs = self.add_attrs(
            known_attrs,
            attrs,
            ty,
            AttributeTarget::Global,
            declare == Declare::Redef,
        );
        if declare == Declare::Option && find_attr(&attrs, AttrKind::Redef).is_none() {
            attrs.push(Attr { kind: AttrKind::Redef, expr: None, span: self.node_span });
        }
        if let Some(value) = value
            && let ExprKind::Table(crate::ast::TableConstructor { attrs: more, .. })
            | ExprKind::Set(crate::ast::SetConstructor { attrs: more, .. }) =
                &self.program.exprs[value].kind
        {
            let more = more
                .iter()
                .filter(|attr| find_attr(&attrs, attr.kind).is_none())
                .cloned()
                .collect::<Vec<_>>();
            // `&optional` is implied by a default there and has no meaning.
            let (implied, more): (Attrs, Attrs) =
                more.into_iter().partition(|attr| attr.kind == AttrKind::Optional);
            attrs = self.add_attrs(attrs, more, ty, AttributeTarget::Global, false);
            attrs.extend(implied);
        }
        self.program.globals[global].attrs = attrs;
        let redefinable = self.global_has(global, AttrKind::Redef);
        if declare == Declare::Constant && value.is_none() && !redefinable {
            self.error_about("const variable must be initialized", &Object::Global(global));
        }
        let container = matches!(self.program.types.tag(ty), Tag::Table | Tag::Vector);
        if declare == Declare::Option && value.is_none() && !container {
            self.error_about("option variable must be initialized", &Object::Global(global));
        }
        if value_error {
            return Ok(());
        }
        if declare == Declare::Redef && value.is_none() {
            self.engine.attributes_changed(self.program, global);
            return Ok(());
        }
        self.initialize_global(global, init, value)
    }

    /// The kind of the global that a declaration of type `ty` creates. A declared function may be defined
    /// later.
    fn function_kind(&mut self, global: GlobalId, ty: TypeId, value: Option<ExprId>) -> GlobalKind {
        let Some(func) = self.program.types.func(ty) else { return GlobalKind::Variable };
        if value.is_some() {
            return GlobalKind::Variable;
        }
        let flavor = func.flavor;
        let name = self.program.globals[global].name;

        let func = self.program.functions.push(Function {
            name,
            global: Some(global),
            ty,
            flavor,
            bodies: Vec::new(),
        });
        GlobalKind::Function(func)
    }

    /// Checks the types of an initializer and evaluates it.
    fn initialize_global(
        &mut self,
        global: GlobalId,
        init: Init,
        value: Option<ExprId>,
    ) -> Parsed<()> {
        let entry = self.program.globals[global].clone();
        if matches!(entry.kind, GlobalKind::Function(_)) && value.is_none() {
            return Ok(());
        }
        let Some(value) = value else {
            return self.evaluate_global(global, Init::Empty, None);
        };
        let value_node = &self.program.exprs[value];
        if matches!(value_node.kind, ExprKind::List(_)) {
            self.set_node_span(value_node.span);
        }
        let target = self.node(ExprKind::Global(global), entry.ty);
        let adds = init == Init::Extra && find_attr(&entry.attrs, AttrKind::AddFunc).is_some();
        let removes =
            init == Init::Remove && find_attr(&entry.attrs, AttrKind::DeleteFunc).is_some();
        let init_given = init;
        let assignment = match init {
            _ if adds || removes => self.initialize(target, value, &entry.attrs, true),
            Init::Extra => self.add_to(target, value, true),
            Init::Remove => self.remove_from(target, value, true),
            Init::Full | Init::Empty => self.initialize(target, value, &entry.attrs, true),
        };
        if self.is_error(assignment) {
            return Ok(());
        }
        let aggregate =
            matches!(self.program.types.tag(entry.ty), Tag::Table | Tag::Vector | Tag::Record);
        if matches!(init, Init::Extra | Init::Remove) && !entry.initialized && !aggregate {
            let op = if init == Init::Extra { "+=" } else { "-=" };
            self.error_about(
                &format!("{op} initializer applied to ID without value"),
                &Object::Global(global),
            );
            return Ok(());
        }
        let value = match self.program.exprs[assignment].kind {
            ExprKind::Assign(_, value)
            | ExprKind::AddTo(_, _, value)
            | ExprKind::RemoveFrom(_, value) => value,
            _ => value,
        };
        self.evaluate_global(global, init_given, Some(value))
    }

    fn evaluate_global(
        &mut self,
        global: GlobalId,
        init: Init,
        value: Option<ExprId>,
    ) -> Parsed<()> {
        match self.engine.initialize(self.program, global, init, value) {
            Ok(()) => {
                if value.is_some() {
                    self.program.globals[global].initialized = true;
                }
                Ok(())
            }
            Err(stop) => match Option::<ParseEnd>::from(stop) {
                Some(halt) => Err(halt),
                // A constant that does not fit was reported during its conversion.
                None if value.is_some_and(|value| self.is_converted_literal(value)) => Ok(()),
                None => {
                    let name = self.program.name(self.program.globals[global].name).to_owned();
                    let object = Object::Text(name.as_bytes(), self.node_span);
                    self.error_about("initialization failed", &object);
                    Ok(())
                }
            },
        }
    }

    fn is_converted_literal(&self, value: ExprId) -> bool {
        match self.program.exprs[value].kind {
            ExprKind::Coerce(Coercion::Arithmetic, inner) => {
                matches!(self.program.exprs[inner].kind, ExprKind::Literal(_))
            }
            _ => false,
        }
    }

    /// Reports an error about two objects with only the text of the first.
    pub(super) fn report_pinpoint(
        &mut self,
        message: &str,
        object: &Object<'_>,
        other: Option<&Object<'_>>,
    ) {
        self.program.report_objects(Severity::Error, message, object, other, true);
    }

    /// Adds another prototype of a declared event or hook.
    fn add_prototype(
        &mut self,
        global: GlobalId,
        ty: TypeId,
        attrs: &[Attr],
        value: Option<ExprId>,
    ) {
        self.undeclared_events.remove(&global);
        let canonical = self.program.globals[global].ty;
        let (Some(known), Some(new)) =
            (self.program.types.func(canonical).cloned(), self.program.types.func(ty).cloned())
        else {
            self.error_about_both(
                "type incompatible with previous definition",
                &Object::Type(ty),
                &Object::Global(global),
            );
            return;
        };
        if known.flavor != new.flavor {
            return self.error_about_both(
                "incompatible function flavor",
                &Object::Type(ty),
                &Object::Type(canonical),
            );
        }
        if known.flavor == Flavor::Function {
            return self.error_about_both(
                "redeclaration of function",
                &Object::Type(ty),
                &Object::Type(canonical),
            );
        }
        if let Some(value) = value {
            let message =
                "initialization not allowed during event/hook alternate prototype declaration";
            return self.error_about(message, &Object::Expr(value));
        }
        let fields =
            |id| self.program.types.record(id).map_or(Vec::new(), |record| record.fields.clone());
        let (canonical_fields, new_fields) = (fields(known.params), fields(new.params));
        let exists = known.prototypes.iter().any(|prototype| {
            let fields = fields(prototype.params);
            fields.len() == new_fields.len()
                && fields
                    .iter()
                    .zip(&new_fields)
                    .all(|(a, b)| a.name == b.name && self.program.same_type(a.ty, b.ty))
        });
        // Scripts for Spicy declare events that Zeek without Spicy has, too (Finger, Syslog).
        if exists && self.program.has_spicy {
            return;
        }
        if exists {
            let other = Object::Type(canonical);
            return self.report_pinpoint(
                "alternate function prototype already exists",
                &Object::Type(ty),
                Some(&other),
            );
        }
        let mut offsets = Vec::new();
        for field in &new_fields {
            let name = self.program.name(field.name).to_owned();
            if !field.attrs.is_empty() {
                let message = format!(
                    "alternate function prototype arguments may not have attributes: arg '{name}'"
                );
                return self.error_about_both(
                    &message,
                    &Object::Type(ty),
                    &Object::Type(canonical),
                );
            }
            match canonical_fields.iter().position(|known| known.name == field.name) {
                Some(offset) => offsets.push(offset),
                None => {
                    let message = format!(
                        "alternate function prototype arg '{name}' not found in canonical prototype"
                    );
                    return self.error_about_both(
                        &message,
                        &Object::Type(ty),
                        &Object::Type(canonical),
                    );
                }
            }
        }
        let deprecated = find_attr(attrs, AttrKind::Deprecated)
            .map(|attr| self.literal_text(attr.expr).unwrap_or_default());
        let prototype = Prototype { params: new.params, offsets, deprecated, span: self.node_span };
        if let Type::Func(func) = self.program.types.get_mut(canonical) {
            func.prototypes.push(prototype);
        }
    }

    fn redef(&mut self) -> Parsed<()> {
        self.advance()?;
        if self.is_next_word(Word::Enum)? {
            self.advance()?;
            return self.redef_enum();
        }
        if self.is_next_word(Word::Record)? {
            self.advance()?;
            return self.redef_record();
        }
        for word in [Word::Event, Word::Hook] {
            if self.is_next_word(word)? {
                return self.handler(word, true);
            }
        }
        if *self.peek()? == Token::Ident {
            let span = self.next_token.as_ref().map_or(self.previous, |ahead| ahead.span);
            let name = self.text_of(span);
            if let Some(Symbol::Global(global)) = self.lookup_in(&name, false, false)
                && self.program.globals[global].kind == GlobalKind::Type
            {
                let ty = self.program.globals[global].ty;
                let (kind, missing) = match self.program.types.get(ty) {
                    Type::Enum(_) => ("enum", true),
                    Type::Record(_) => ("record", true),
                    other => (crate::describe::tag_name(other), false),
                };
                self.advance()?;
                let message = if missing {
                    format!("redef of {kind} type {name} is missing {kind} keyword")
                } else {
                    format!("can not redef {kind} type {name}")
                };
                self.near(&message, span);
                return Err(ParseEnd::Syntax);
            }
        }
        self.variable(Declare::Redef)
    }

    /// Parses the type name of a `redef`; `kind` is the required kind of the type.
    fn redef_target(&mut self, kind: Tag, word: &str) -> Parsed<TypeId> {
        let name = self.identifier()?;
        self.set_node_span(self.previous);
        let found = match self.lookup_in(&name, false, true) {
            Some(Symbol::Global(global))
                if self.program.globals[global].kind == GlobalKind::Type =>
            {
                Some(self.program.globals[global].ty)
            }
            Some(Symbol::Global(global)) => {
                let ty = self.program.globals[global].ty;
                Some(ty)
            }
            _ => None,
        };
        let Some(ty) = found else {
            if kind == Tag::Record && !self.is_next(Op::Dollar)? {
                let object = Object::Text(name.as_bytes(), self.node_span);
                self.error_about("unknown identifier", &object);
                return Ok(TypeId::ERROR);
            }
            return Err(self.fatal_here(&format!("unknown {word} identifier \"{name}\"")));
        };
        let tag = self.program.types.tag(ty);
        if tag != kind && kind == Tag::Record && !self.is_next(Op::Dollar)? {
            let object = Object::Text(name.as_bytes(), self.node_span);
            self.error_about("failed to redef record: no types found in alias map", &object);
            return Ok(TypeId::ERROR);
        }
        if tag != kind {
            let found = crate::describe::tag_name(self.program.types.get(ty));
            return Err(self.fatal_here(&format!(
                "identifier \"{name}\" has type \"{found}\", expected \"{word}\""
            )));
        }
        Ok(ty)
    }

    fn redef_enum(&mut self) -> Parsed<()> {
        let ty = self.redef_target(Tag::Enum, "enum")?;
        let start = self.previous;
        self.expect(Op::AddTo)?;
        self.expect(Op::BraceLeft)?;
        let before = self.program.types.enumeration(ty).map_or(0, |values| values.values.len());
        self.enum_values(ty, true)?;
        self.expect(Op::BraceRight)?;
        self.set_node_span_from(start);
        self.expect(Op::Semicolon)?;
        // Aliases of the type have the same values.
        if let Some(name) = self.type_data(ty).name
            && let Some(aliases) = self.aliases.get(&name).cloned()
            && let Some(values) = self.program.types.enumeration(ty).cloned()
        {
            for alias in aliases {
                if let Type::Enum(known) = self.program.types.get_mut(alias) {
                    known.values.extend(values.values[before..].iter().cloned());
                    known.next = values.next;
                }
            }
        }
        Ok(())
    }

    fn redef_record(&mut self) -> Parsed<()> {
        let ty = self.redef_target(Tag::Record, "record")?;
        let start = self.previous;
        if self.accept(Op::Dollar)? {
            return self.redef_field(ty);
        }
        self.expect(Op::AddTo)?;
        self.expect(Op::BraceLeft)?;
        let mut fields = self.fields()?;
        self.expect(Op::BraceRight)?;
        let attrs = self.attributes()?;
        self.set_node_span_from(start);
        self.expect(Op::Semicolon)?;
        if find_attr(&attrs, AttrKind::Log).is_some() {
            let span = self.node_span;
            for field in &mut fields {
                if find_attr(&field.attrs, AttrKind::Log).is_none() {
                    field.attrs.push(Attr { kind: AttrKind::Log, expr: None, span });
                }
            }
        }
        if ty == TypeId::ERROR {
            return Ok(());
        }
        let known = self.type_data(ty).name.and_then(|name| self.program.globals.find(name));
        let from = self.program.types.record(ty).map_or(0, |record| record.fields.len());
        for mut field in fields {
            let name = self.program.name(field.name).to_owned();
            if !crate::compare::may_be_missing(&field.attrs) {
                let message = "extension field must be &optional or have &default";
                let (text, span) = known.map_or((String::new(), field.span), |known| {
                    let known = &self.program.globals[known];
                    (self.program.name(known.name).to_owned(), known.span)
                });
                let place = Span { last: span.first, ..span };
                self.error_about(message, &Object::Text(text.as_bytes(), place));
                continue;
            }
            if self
                .program
                .types
                .record(ty)
                .is_some_and(|record| record.offset(field.name).is_some())
            {
                let text = format!("duplicate field '{name}' found in record definition");
                self.error_here(&text);
                continue;
            }
            field.redefined = true;
            if let Type::Record(record) = self.program.types.get_mut(ty) {
                record.fields.push(field.clone());
            }
            let aliases = self
                .type_data(ty)
                .name
                .and_then(|name| self.aliases.get(&name).cloned())
                .unwrap_or_default();
            for alias in aliases {
                if let Type::Record(record) = self.program.types.get_mut(alias) {
                    record.fields.push(field.clone());
                }
            }
        }
        self.engine.record_extended(self.program, ty, from);
        Ok(())
    }

    /// `redef record R$f += { &log };`
    fn redef_field(&mut self, ty: TypeId) -> Parsed<()> {
        let field = self.identifier()?;
        let add = match self.advance()? {
            Token::Op(Op::AddTo) => true,
            Token::Op(Op::RemoveFrom) => false,
            _ => {
                self.near("syntax error", self.previous);
                return Err(ParseEnd::Syntax);
            }
        };
        self.expect(Op::BraceLeft)?;
        let attrs = self.attributes()?;
        self.expect(Op::BraceRight)?;
        self.expect(Op::Semicolon)?;
        if attrs.iter().any(|attr| attr.kind != AttrKind::Log) {
            return Err(self.fatal_here("Can only redef \"&log\" attributes of record fields"));
        }
        let name = self.program.names.intern(&field);
        let Some(offset) = self.program.types.record(ty).and_then(|record| record.offset(name))
        else {
            let record =
                self.type_data(ty).name.map_or("", |name| self.program.name(name)).to_owned();
            return Err(self.fatal_here(&format!("field \"{field}\" not in record \"{record}\"")));
        };
        if let Type::Record(record) = self.program.types.get_mut(ty) {
            let known = &mut record.fields[offset].attrs;
            known.retain(|attr| attr.kind != AttrKind::Log);
            if add {
                known.extend(attrs);
            }
        }
        Ok(())
    }

    fn type_declaration(&mut self) -> Parsed<()> {
        self.advance()?;
        let (name, span) = self.declared_name()?;
        let global = self.declared_global(&name);
        let full = self.program.globals[global].name;
        self.expect(Op::Colon)?;
        let is_alias = *self.peek()? == Token::Ident;
        let outer = self.type_name.replace(full);
        let ty = self.type_();
        self.type_name = outer;
        let ty = ty?;
        let attrs = self.attributes()?;
        self.expect(Op::Semicolon)?;
        self.set_node_span(span.to(self.previous));
        if is_alias && ty == TypeId::ERROR {
            self.error_here("Error trying to create alias to nonexistent type");
        }
        self.define_type(global, &name, ty, &attrs);
        Ok(())
    }

    fn define_type(&mut self, global: GlobalId, name: &str, ty: TypeId, attrs: &Attrs) {
        let known = self.program.globals[global].clone();
        if known.kind == GlobalKind::Type {
            // A record may be declared empty before its definition.
            if self.empty_records.remove(&known.ty)
                && let Type::Record(record) = self.program.types.get(ty).clone()
            {
                let span = self.node_span;
                let data = self.program.types.data_mut(known.ty);
                data.ty = Type::Record(record);
                data.span = span;
                return self.log_all(known.ty, attrs);
            }
            // An enum may be declared twice; differing names are reported.
            let twice = self.program.types.tag(known.ty) == Tag::Enum
                && self.program.types.tag(ty) == Tag::Enum;
            if twice {
                return;
            }
            let at = self
                .program
                .sources
                .files
                .find(known.span.file)
                .map_or(String::new(), |file| format!("{}:{}", file.path, known.span.first));
            self.error_here(&format!("Type {name} has already been declared at {at}"));
            return;
        }
        if known.kind != GlobalKind::Unknown {
            self.error_here(&format!(
                "Identifier {name} has already been declared and is not a type"
            ));
            return;
        }
        let ty = if ty == TypeId::ERROR { ty } else { self.name_type(ty, known.name) };
        let entry = &mut self.program.globals[global];
        entry.kind = GlobalKind::Type;
        entry.ty = ty;
        entry.attrs.clone_from(attrs);
        entry.span = self.node_span;
        if self.program.types.record(ty).is_some_and(|record| record.fields.is_empty()) {
            self.empty_records.insert(ty);
        }
        self.log_all(ty, attrs);
        if find_attr(attrs, AttrKind::Log).is_some() && self.program.types.tag(ty) != Tag::Record {
            self.error_here("&log attribute can only be applied to records");
        }
    }

    /// Applies `&log` after a record to all of its fields.
    fn log_all(&mut self, ty: TypeId, attrs: &[Attr]) {
        let Some(log) = find_attr(attrs, AttrKind::Log).cloned() else { return };
        if let Type::Record(record) = self.program.types.get_mut(ty) {
            for field in &mut record.fields {
                if find_attr(&field.attrs, AttrKind::Log).is_none() {
                    field.attrs.push(log.clone());
                }
            }
        }
    }

    /// Parses the name of a local declaration and declares the local.
    pub(super) fn local_name(&mut self) -> Parsed<LocalId> {
        let name = self.plain_identifier()?;
        self.set_node_span(self.previous);
        let blank = name == "_";
        let found = if blank { None } else { self.lookup(&name) };
        Ok(match found {
            Some(Symbol::Global(global)) => {
                if !blank {
                    self.error_about("already a global identifier", &Object::Global(global));
                }
                let module = self.module;
                let full = self.full_name(module, &name);
                self.add_local(full, TypeId::VOID, LocalKind::Variable)
            }
            Some(Symbol::Local(local)) => local,
            None => {
                let module = self.module;
                let full = self.full_name(module, &name);
                self.add_local(full, TypeId::VOID, LocalKind::Variable)
            }
        })
    }

    /// Parses `local x …;` or `const x …;` in a body and returns its statement.
    pub(super) fn local_declaration(&mut self, kind: LocalKind) -> Parsed<crate::ids::StmtId> {
        self.advance()?;
        let errors = self.program.diagnostics.errors;
        let local = self.local_name()?;
        let is_global = self.program.diagnostics.errors > errors;
        let span = self.previous;
        let known = self.local(local).clone();
        let ty = if self.accept(Op::Colon)? { Some(self.type_()?) } else { None };
        let (init, value) = self.initializer(ty)?;
        let attrs = self.attributes()?;
        self.set_node_span(span.to(self.previous));
        if let Some(list) = value
            && matches!(self.program.exprs[list].kind, ExprKind::List(_))
        {
            self.program.exprs[list].span = self.node_span;
        }
        self.expect(Op::Semicolon)?;
        let body = self.body();
        let statement = |parser: &mut Self, kind| {
            let span = parser.node_span;
            Ok(parser.program.stmts.push(crate::ast::Stmt { kind, span }))
        };
        let local_text = self.program.name(known.name).to_owned();
        if is_global {
            let object = value.map(Object::Expr);
            let name = Object::Text(local_text.as_bytes(), known.span);
            self.report_pinpoint("already defined", &name, object.as_ref());
        }
        if known.ty != TypeId::VOID {
            if let (None, Some(ty)) = (value, ty)
                && self.program.types.func(ty).is_some()
                && self.program.types.func(known.ty).is_some()
            {
                self.error_about_both(
                    "redeclaration of function",
                    &Object::Type(ty),
                    &Object::Type(known.ty),
                );
                return statement(self, crate::ast::StmtKind::Null);
            }
            let object = value.map(Object::Expr);
            self.report_pinpoint(
                "already defined",
                &Object::Text(local_text.as_bytes(), known.span),
                object.as_ref(),
            );
            return statement(self, crate::ast::StmtKind::Null);
        }
        if init == Init::Extra || init == Init::Remove {
            self.error_about(
                "can't use += / -= for initializations of local variables",
                &Object::Text(local_text.as_bytes(), span),
            );
        }
        let ty = match (ty, value) {
            (Some(ty), _) => ty,
            (None, Some(value)) if self.is_error(value) => TypeId::ERROR,
            (None, Some(value)) => match self.infer(value) {
                Some(
                    TypeId::UNSPECIFIED_TABLE
                    | TypeId::UNSPECIFIED_SET
                    | TypeId::UNSPECIFIED_VECTOR,
                ) => {
                    self.error_about(
                        "empty constructor in untyped initialization",
                        &Object::Expr(value),
                    );
                    TypeId::ERROR
                }
                Some(TypeId::VOID) => {
                    self.error_about(
                        "illegal assignment target",
                        &Object::Text(local_text.as_bytes(), span),
                    );
                    TypeId::ERROR
                }
                Some(ty) => ty,
                None => TypeId::ERROR,
            },
            (None, None) => {
                self.error_about("no type given", &Object::Text(local_text.as_bytes(), span));
                TypeId::ERROR
            }
        };
        let attrs = if ty == TypeId::ERROR {
            Attrs::new()
        } else {
            self.check_attrs(attrs, ty, AttributeTarget::Local)
        };
        if kind == LocalKind::Constant
            && let Some(block) = self.scope().blocks.last_mut()
        {
            // The local is visible after the block, too.
            block.retain(|known| *known != local);
        }
        let entry = &mut self.program.bodies[body].locals[local];
        entry.ty = ty;
        entry.kind = kind;
        entry.attrs.clone_from(&attrs);
        let name = entry.name;
        if kind == LocalKind::Constant && value.is_none() {
            self.error_about(
                "const variable must be initialized",
                &Object::Text(local_text.as_bytes(), span),
            );
        }
        let Some(value) = value else {
            self.program.bodies[body].inits.push(local);
            return statement(self, crate::ast::StmtKind::Null);
        };
        let target = self.node(ExprKind::Local(local, name), ty);
        let assignment = self.initialize(target, value, &attrs, true);
        statement(self, crate::ast::StmtKind::Expr(assignment))
    }

    /// The text of `&deprecated`, if it is among the attributes.
    pub(super) fn deprecated_text(&self, attrs: &[Attr]) -> Option<Box<str>> {
        find_attr(attrs, AttrKind::Deprecated)?;
        Some(self.literal_text(attr_expr(attrs, AttrKind::Deprecated)).unwrap_or_default())
    }
}
