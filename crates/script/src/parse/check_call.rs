//! Types of calls, indices, fields, casts.

use super::{Parsed, Parser};
use crate::ast::{Call, EventCall, ExprKind};
use crate::compare::{is_arithmetic, is_integral};
use crate::describe::tag_name;
use crate::ids::{ExprId, GlobalId, Name, TypeId};
use crate::literal::Literal;
use crate::report::Object;
use crate::symbols::GlobalKind;
use crate::types::{AttrKind, Flavor, Tag, Type, attr_expr};

/// The message for an index of a value whose type cannot be indexed in this way.
fn not_indexed(name: &str) -> String {
    format!("expression with type '{name}' is not a type that can be indexed")
}

impl Parser<'_> {
    /// `callee(args)`, or `hook callee(args)`.
    pub(super) fn call(&mut self, callee: ExprId, args: Vec<ExprId>, hook: bool) -> ExprId {
        let written = Self::offset(args.len());
        let in_when = self.in_when_condition;
        let kind = ExprKind::Call(Call { callee, args: args.clone(), written, in_when });
        let expr = self.node(kind, TypeId::ERROR);
        if self.is_error(callee) {
            return expr;
        }
        let Some(func) = self.program.types.func(self.ty(callee)).cloned() else {
            self.error_about("not a function", &Object::Expr(callee));
            return expr;
        };
        if func.flavor == Flavor::Hook && !hook {
            self.error_about(
                "hook cannot be called directly, use hook operator",
                &Object::Expr(callee),
            );
            return expr;
        }
        let list = self.list_node(args.clone());
        let mut args = args;
        if !self.arguments(func.params, &mut args, list) {
            // Arguments before the invalid one have been converted.
            if let ExprKind::Call(call) = &mut self.program.exprs[expr].kind {
                call.args = args;
            }
            return self.fail(expr, "argument type mismatch in function call");
        }
        if func.flavor == Flavor::Event {
            return self.fail(expr, "event called in expression, use event statement instead");
        }
        self.set_ty(expr, func.result);
        if self.is_format(callee) && !self.check_format(expr, &args) {
            self.set_ty(expr, TypeId::ERROR);
        }
        self.program.exprs[expr].kind = ExprKind::Call(Call { callee, args, written, in_when });
        expr
    }

    /// Converts arguments to the parameter types and adds defaults; returns false after an error.
    fn arguments(&mut self, params: TypeId, args: &mut Vec<ExprId>, list: ExprId) -> bool {
        let fields =
            self.program.types.record(params).map_or(Vec::new(), |record| record.fields.clone());
        if let [only] = &fields[..]
            && self.program.types.tag(only.ty) == Tag::Any
        {
            // A single parameter of type `any` accepts any number of arguments without conversion.
            return true;
        }
        let given = args.len();
        if given < fields.len() {
            for field in &fields[given..] {
                let Some(default) = attr_expr(&field.attrs, AttrKind::Default) else {
                    self.error_about_both(
                        "parameter mismatch",
                        &Object::Type(params),
                        &Object::Expr(list),
                    );
                    args.truncate(given);
                    return false;
                };
                args.push(default);
            }
        }
        let types = fields.iter().map(|field| field.ty).collect::<Vec<_>>();
        self.promote_list(args, &types, list)
    }

    fn is_format(&self, callee: ExprId) -> bool {
        match &self.program.exprs[callee].kind {
            ExprKind::Global(global) => {
                self.program.name(self.program.globals[*global].name) == "fmt"
            }
            _ => false,
        }
    }

    /// Checks the number of arguments of `fmt` if its format is constant.
    fn check_format(&mut self, call: ExprId, args: &[ExprId]) -> bool {
        let Some(first) = args.first() else { return true };
        let mut format = *first;
        while let ExprKind::Coerce(_, operand) = self.program.exprs[format].kind {
            format = operand;
        }
        if self.tag(format) != Tag::String {
            self.error_about(
                "first argument to util::fmt() needs to be a format string",
                &Object::Expr(call),
            );
            return false;
        }
        let ExprKind::Literal(Literal::String(text)) = &self.program.exprs[format].kind else {
            return true;
        };
        let mut expected = 1;
        let mut bytes = text.iter();
        let mut bare = false;
        while let Some(byte) = bytes.next() {
            if *byte == b'%' {
                match bytes.next() {
                    None => bare = true,
                    Some(b'%') => {}
                    Some(_) => expected += 1,
                }
            }
        }
        if bare {
            self.error_about("format string ends with bare '%'", &Object::Expr(call));
            return false;
        }
        if args.len() != expected {
            self.error_about(
                "mismatch between format string to util::fmt() and number of arguments passed",
                &Object::Expr(call),
            );
            return false;
        }
        true
    }

    /// `event f(args)` in a statement, or in a `schedule`. `None` after an error.
    pub(super) fn event_call(
        &mut self,
        global: Option<GlobalId>,
        name: &str,
        args: Vec<ExprId>,
    ) -> Option<EventCall> {
        let written = Self::offset(args.len());
        let list = self.list_node(args.clone());
        let span = self.node_span;
        let shown = global.map_or(name.to_owned(), |global| {
            self.program.name(self.program.globals[global].name).to_owned()
        });
        let mut text = format!("{shown}(").into_bytes();
        text.extend_from_slice(&crate::describe::expr(self.program, list));
        text.push(b')');
        let func = global.and_then(|global| {
            let global = &self.program.globals[global];
            let function = matches!(global.kind, GlobalKind::Function(_));
            self.program
                .types
                .func(global.ty)
                .filter(|func| function && func.flavor == Flavor::Event)
                .cloned()
        });
        let (Some(global), Some(func)) = (global, func) else {
            let is_function = global.is_some_and(|global| {
                let global = &self.program.globals[global];
                matches!(global.kind, GlobalKind::Function(_))
                    || self.program.types.func(global.ty).is_some()
            });
            let message = if is_function { "function invoked as an event" } else { "not an event" };
            self.error_about(message, &Object::Text(&text, span));
            return None;
        };
        let mut args = args;
        if !self.arguments(func.params, &mut args, list) {
            self.error_about(
                "argument type mismatch in event invocation",
                &Object::Text(&text, span),
            );
            return None;
        }
        Some(EventCall { event: global, args, written })
    }

    /// Checks an index `list` of `container` and converts its elements. Returns the type of the result, `void`
    /// for sets; `None` if the index does not match.
    pub(super) fn match_index(&mut self, container: ExprId, list: ExprId) -> Option<TypeId> {
        let ty = self.ty(container);
        let mut elements = self.elements(list);
        match self.program.types.get(ty).clone() {
            Type::Table(table) => {
                let value = table.value.unwrap_or(TypeId::VOID);
                if table.index.is_empty() {
                    return Some(value);
                }
                if let ([index], [key]) = (&*table.index, &elements[..]) {
                    let (index, key) = (self.program.types.tag(*index), self.tag(*key));
                    if index == Tag::Subnet && key == Tag::Addr {
                        return Some(value);
                    }
                    if index == Tag::Pattern && key == Tag::String {
                        return Some(if table.value.is_some() {
                            self.vector_of(value)
                        } else {
                            TypeId::VOID
                        });
                    }
                }
                if !self.promote_index(&mut elements, &table.index, table.list, list) {
                    return None;
                }
                self.program.exprs[list].kind = ExprKind::List(elements);
                Some(value)
            }
            Type::Vector(element) => {
                let [key] = &elements[..] else { return None };
                let key_ty = self.ty(*key);
                let tag = self.program.scalar_tag(key_ty);
                let vector = self.program.types.tag(key_ty) == Tag::Vector;
                if !(is_integral(tag) || tag == Tag::Bool) {
                    return None;
                }
                Some(if vector { ty } else { element })
            }
            Type::String => {
                if elements.len() != 1 || !self.promote_all(&mut elements, TypeId::INT) {
                    return None;
                }
                self.program.exprs[list].kind = ExprKind::List(elements);
                Some(TypeId::STRING)
            }
            _ => None,
        }
    }

    /// `base[keys]`.
    pub(super) fn index(&mut self, base: ExprId, keys: Vec<ExprId>) -> ExprId {
        let list = self.list_node(keys);
        let expr = self.node(ExprKind::Index(base, list), TypeId::ERROR);
        if self.is_error(base) {
            return expr;
        }
        if self.tag(base) == Tag::String && self.elements(list).len() != 1 {
            return self.fail(expr, "invalid string index expression");
        }
        match self.match_index(base, list) {
            Some(ty) => self.set_ty(expr, ty),
            None => {
                let name = tag_name(self.program.types.get(self.ty(base)));
                return self.fail(expr, &not_indexed(name));
            }
        }
        expr
    }

    /// `base[from:to]`.
    pub(super) fn slice(&mut self, base: ExprId, from: ExprId, to: ExprId) -> ExprId {
        let ty = self.ty(base);
        if !is_integral(self.tag(from)) || !is_integral(self.tag(to)) {
            self.error_here("slice notation must have integral values as indexes");
        }
        let expr = self.node(ExprKind::Slice(base, from, to), ty);
        let tag = self.program.types.tag(ty);
        match tag {
            Tag::Error | Tag::Vector => {}
            Tag::String => {
                let mut ends = [from, to];
                let fits = self.promote_all(&mut ends, TypeId::INT);
                self.program.exprs[expr].kind = ExprKind::Slice(base, ends[0], ends[1]);
                if !fits {
                    return self.fail(expr, &not_indexed(tag_name(&Type::String)));
                }
            }
            _ => {
                return self.fail(
                    expr,
                    "slice notation indexing only supported for strings and vectors currently",
                );
            }
        }
        expr
    }

    /// `record$name` or `record?$name`.
    pub(super) fn field(&mut self, base: ExprId, name: Name, test: bool) -> ExprId {
        let make = |offset| {
            if test { ExprKind::HasField(base, offset) } else { ExprKind::Field(base, offset) }
        };
        if self.is_error(base) {
            return self.node(make(u32::MAX), TypeId::ERROR);
        }
        let found = self.program.types.record(self.ty(base)).cloned();
        let offset = found.as_ref().and_then(|record| record.offset(name));
        let Some((record, offset)) = found.clone().zip(offset) else {
            let message = if found.is_some() { "no such field in record" } else { "not a record" };
            let mut text = crate::describe::expr(self.program, base);
            text.extend_from_slice(if test { b"?$" } else { b"$" });
            text.extend_from_slice(self.program.name(name).as_bytes());
            let span = self.node_span;
            self.error_about(message, &Object::Text(&text, span));
            return self.node(make(u32::MAX), TypeId::ERROR);
        };
        let ty = if test { TypeId::BOOL } else { record.fields[offset].ty };
        let expr = self.node(make(Self::offset(offset)), ty);
        let base_ty = self.ty(base);
        self.warn_deprecated_field(base_ty, name, expr);
        expr
    }

    /// `expr as ty`, `expr ?as ty`.
    pub(super) fn cast(&mut self, operand: ExprId, ty: TypeId, test: bool) -> ExprId {
        let to_time = matches!(self.program.types.tag(ty), Tag::Time | Tag::Interval);
        let operand = if to_time && is_integral(self.tag(operand)) {
            self.coerce_to_number(operand, Tag::Double)
        } else {
            operand
        };
        let (kind, result) = if test {
            (ExprKind::CanCast(operand, ty), TypeId::BOOL)
        } else {
            (ExprKind::Cast(operand), ty)
        };
        let expr = self.node(kind, result);
        if self.is_error(operand) || ty == TypeId::ERROR {
            self.set_ty(expr, TypeId::ERROR);
            return expr;
        }
        let from = self.ty(operand);
        if !test && !self.can_cast(from, ty) {
            let text = crate::describe::expr(self.program, expr);
            let span = self.node_span;
            self.error_about("cast not supported", &Object::Text(&text, span));
            self.set_ty(expr, TypeId::ERROR);
        }
        expr
    }

    /// `expr is ty`.
    pub(super) fn is_type(&mut self, operand: ExprId, ty: TypeId) -> ExprId {
        let expr = self.node(ExprKind::Is(operand, ty), TypeId::BOOL);
        if self.is_error(operand) || ty == TypeId::ERROR {
            self.set_ty(expr, TypeId::ERROR);
        }
        expr
    }

    fn can_cast(&self, from: TypeId, to: TypeId) -> bool {
        let (a, b) = (self.program.types.tag(from), self.program.types.tag(to));
        if a == Tag::Any || self.program.same_type(from, to) {
            return true;
        }
        let name = self.type_data(from).name.map(|name| self.program.name(name));
        if name == Some("Broker::Data") {
            return true;
        }
        match (self.program.types.get(from), self.program.types.get(to)) {
            (Type::Table(set), Type::Vector(element))
            | (Type::Vector(element), Type::Table(set)) => {
                return set.value.is_none()
                    && set.index.len() == 1
                    && self.program.same_type(set.index[0], *element);
            }
            // The element type of `vector()` is not yet known: it is a vector of `any`.
            (Type::Vector(element), Type::Vector(_)) if *element == TypeId::VOID => return true,
            (Type::Opaque(name), _) if self.program.name(*name) == "Broker::Data" => return true,
            _ => {}
        }
        match (a, b) {
            (
                Tag::String,
                Tag::Double | Tag::Int | Tag::Count | Tag::Addr | Tag::Subnet | Tag::Port,
            ) => true,
            (Tag::Int | Tag::Count | Tag::Double, _) if is_arithmetic(b) => true,
            (Tag::Double | Tag::Count | Tag::Int, Tag::Time | Tag::Interval)
            | (Tag::Time | Tag::Interval, Tag::Double) => true,
            (Tag::Enum, Tag::Count | Tag::Int) => true,
            (Tag::Addr, Tag::Subnet) | (Tag::Subnet, Tag::Addr | Tag::Count) => true,
            (Tag::Addr, Tag::Vector) => true,
            (Tag::Port, Tag::Count) | (Tag::Count, Tag::Addr) => true,
            _ => false,
        }
    }

    /// `schedule when { event }`.
    pub(super) fn schedule(&mut self, when: ExprId, event: Option<EventCall>) -> Parsed<ExprId> {
        let Some(event) = event else { return Ok(self.error_node()) };
        let expr = self.node(ExprKind::Schedule(when, event), TypeId::INT);
        if self.is_error(when) {
            self.set_ty(expr, TypeId::ERROR);
        } else if !matches!(self.tag(when), Tag::Time | Tag::Interval) {
            self.fail(expr, "schedule expression requires a time or time interval");
        }
        Ok(expr)
    }
}
