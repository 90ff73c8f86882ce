//! Node construction and conversions: numbers to larger types, records to other record types, empty
//! constructors to the type of the context.

use super::{ParseEnd, Parsed, Parser};
use crate::ast::{Coercion, Expr, ExprKind};
use crate::compare::{is_arithmetic, max_tag, may_be_missing, same_attrs};
use crate::diagnostics::Severity;
use crate::evaluate::Constant;
use crate::ids::{ExprId, TypeId};
use crate::literal::Literal;
use crate::program::{Program, Target};
use crate::report::Object;
use crate::source::Span;
use crate::types::{ListType, Tag, Type, TypeData};

impl Parser<'_> {
    /// Adds an expression at the current position.
    pub(super) fn node(&mut self, kind: ExprKind, ty: TypeId) -> ExprId {
        let span = self.node_span;
        self.program.exprs.push(Expr { kind, ty, span, paren: false })
    }

    /// Adds an expression with a span.
    pub(super) fn node_at(&mut self, kind: ExprKind, ty: TypeId, span: Span) -> ExprId {
        self.program.exprs.push(Expr { kind, ty, span, paren: false })
    }

    /// A constant.
    pub(super) fn literal_node(&mut self, literal: Literal, ty: TypeId) -> ExprId {
        self.node(ExprKind::Literal(literal), ty)
    }

    /// The placeholder for an erroneous expression.
    pub(super) fn error_node(&mut self) -> ExprId {
        self.node(ExprKind::Error, TypeId::ERROR)
    }

    /// The type of an expression.
    pub(super) fn ty(&self, expr: ExprId) -> TypeId {
        self.program.exprs[expr].ty
    }

    /// The kind of the type of an expression.
    pub(super) fn tag(&self, expr: ExprId) -> Tag {
        self.program.types.tag(self.ty(expr))
    }

    /// Sets the type of an expression.
    pub(super) fn set_ty(&mut self, expr: ExprId, ty: TypeId) {
        self.program.exprs[expr].ty = ty;
    }

    /// Whether an error was reported about the expression.
    pub(super) fn is_error(&self, expr: ExprId) -> bool {
        self.ty(expr) == TypeId::ERROR
    }

    /// Reports an error about an expression and marks the expression as erroneous.
    pub(super) fn fail(&mut self, expr: ExprId, message: &str) -> ExprId {
        self.error_about(message, &Object::Expr(expr));
        self.set_ty(expr, TypeId::ERROR);
        expr
    }

    /// Warns about an expression.
    pub(super) fn warn(&mut self, expr: ExprId, message: &str) {
        self.program.report_about(Severity::Warning, message, &Object::Expr(expr), None);
    }

    /// Adds a type at the current position.
    pub(super) fn new_type(&mut self, ty: Type) -> TypeId {
        let span = self.node_span;
        self.program.types.add(ty, span)
    }

    /// A vector of `element`.
    pub(super) fn vector_of(&mut self, element: TypeId) -> TypeId {
        self.new_type(Type::Vector(element))
    }

    /// The list of `types`.
    pub(super) fn list_of(&mut self, types: Vec<TypeId>) -> TypeId {
        let pure = None;
        self.new_type(Type::List(ListType { types, pure }))
    }

    /// Name, span and structure of a type.
    pub(super) fn type_data(&self, ty: TypeId) -> &TypeData {
        self.program.types.data(ty)
    }

    /// Evaluates an expression outside of functions; `None` after an error, already reported.
    pub(super) fn evaluate(&mut self, expr: ExprId) -> Parsed<Option<Constant>> {
        if self.is_error(expr) {
            return Ok(None);
        }
        match self.engine.evaluate(self.program, expr) {
            Ok(constant) => Ok(Some(constant)),
            Err(stop) => Option::<ParseEnd>::from(stop).map_or(Ok(None), Err),
        }
    }

    /// Converts `expr` to a number of the kind `tag`, element by element for vectors.
    pub(super) fn coerce_to_number(&mut self, expr: ExprId, tag: Tag) -> ExprId {
        let ty = self.ty(expr);
        if self.program.scalar_tag(ty) == tag {
            return expr;
        }
        let number = Program::number_type(tag);
        let span = self.program.exprs[expr].span;
        if self.program.types.tag(ty) == Tag::Vector {
            let vector = self.vector_of(number);
            return self.node_at(ExprKind::Coerce(Coercion::ArithmeticVector, expr), vector, span);
        }
        self.node_at(ExprKind::Coerce(Coercion::Arithmetic, expr), number, span)
    }

    /// Converts `expr` to type `ty` if that is lossless. `None` after an error that names both types.
    pub(super) fn promote(&mut self, expr: ExprId, ty: TypeId) -> Option<ExprId> {
        let from = self.ty(expr);
        let (to_tag, from_tag) = (self.program.types.tag(ty), self.program.types.tag(from));
        // An expression without a type was reported earlier.
        if from == ty || ty == TypeId::ERROR {
            return Some(expr);
        }
        if to_tag == Tag::Any {
            return Some(self.coerce_quietly(Coercion::ToAny, expr, ty));
        }
        if from_tag == Tag::Any {
            return Some(self.coerce_quietly(Coercion::FromAny, expr, ty));
        }
        if is_arithmetic(to_tag) || is_arithmetic(from_tag) {
            if !(is_arithmetic(to_tag) && is_arithmetic(from_tag)) {
                self.error_about_both(
                    "arithmetic mixed with non-arithmetic",
                    &Object::Type(ty),
                    &Object::Expr(expr),
                );
                return None;
            }
            if to_tag == from_tag {
                return Some(expr);
            }
            if max_tag(to_tag, from_tag) != to_tag {
                self.error_about_both(
                    "over-promotion of arithmetic value",
                    &Object::Type(ty),
                    &Object::Expr(expr),
                );
                return None;
            }
            return Some(self.coerce_to_number(expr, to_tag));
        }
        if to_tag == Tag::Record && from_tag == Tag::Record {
            if self.program.same_type(ty, from) {
                return Some(if self.same_field_attrs(ty, from) {
                    expr
                } else {
                    self.coerce_to_record(expr, ty)
                });
            }
            if self.program.record_promotable(ty, from) {
                return Some(self.coerce_to_record(expr, ty));
            }
            self.error_about_both(
                "incompatible record types",
                &Object::Type(ty),
                &Object::Expr(expr),
            );
            return None;
        }
        if self.program.fits_unspecified(ty, from) {
            return self.default_fits(expr, ty).then(|| self.coerce_to_specified(expr, ty));
        }
        // `["text"]` is not a string.
        let is_list = matches!(self.program.exprs[expr].kind, ExprKind::List(_));
        if is_list && to_tag.is_atomic() || !self.program.same_type(ty, from) {
            if to_tag == Tag::Enum && from_tag == Tag::Enum {
                self.mixed_enums(ty, from);
                return Some(expr);
            }
            if from_tag != Tag::Error {
                self.error_about_both("type clash", &Object::Type(ty), &Object::Expr(expr));
            }
            return None;
        }
        Some(expr)
    }

    /// Warns if two different enums are mixed.
    pub(super) fn mixed_enums(&mut self, to: TypeId, from: TypeId) {
        let name = |ty: TypeId| {
            self.type_data(ty).name.map_or("", |name| self.program.name(name)).to_owned()
        };
        let text = format!(
            "Remove in v9.1. Mixing incompatible enum types {} and {} will become an error.",
            name(to),
            name(from)
        );
        self.report_here(Severity::Warning, &text);
    }

    fn same_field_attrs(&self, one: TypeId, other: TypeId) -> bool {
        match (self.program.types.record(one), self.program.types.record(other)) {
            (Some(one), Some(other)) => {
                one.fields.iter().zip(&other.fields).all(|(a, b)| same_attrs(&a.attrs, &b.attrs))
            }
            _ => true,
        }
    }

    /// A conversion that Zeek's text does not show.
    fn coerce_quietly(&mut self, coercion: Coercion, expr: ExprId, ty: TypeId) -> ExprId {
        let span = self.program.exprs[expr].span;
        self.node_at(ExprKind::Coerce(coercion, expr), ty, span)
    }

    /// Converts an empty constructor to type `ty`.
    pub(super) fn coerce_to_specified(&mut self, expr: ExprId, ty: TypeId) -> ExprId {
        let coercion = if self.program.types.tag(ty) == Tag::Vector {
            Coercion::Vector
        } else {
            Coercion::Table
        };
        let span = self.program.exprs[expr].span;
        self.node_at(ExprKind::Coerce(coercion, expr), ty, span)
    }

    /// Converts a record to type `ty` and reports fields that do not fit or are missing.
    pub(super) fn coerce_to_record(&mut self, expr: ExprId, ty: TypeId) -> ExprId {
        let span = self.program.exprs[expr].span;
        let coerced = self.node_at(ExprKind::Coerce(Coercion::Record, expr), ty, span);
        if self.is_error(expr) || ty == TypeId::ERROR {
            self.set_ty(coerced, TypeId::ERROR);
            return coerced;
        }
        if self.program.types.tag(ty) != Tag::Record {
            return self.fail(coerced, "coercion to non-record");
        }
        let Some(from) = self.program.types.record(self.ty(expr)).cloned() else {
            return self.fail(coerced, "coercion of non-record to record");
        };
        let Some(to) = self.program.types.record(ty).cloned() else { return coerced };
        for element in self.constructors.get(&expr).cloned().unwrap_or_default() {
            if let ExprKind::FieldAssign(name, _) = self.program.exprs[element].kind
                && let Some(offset) = to.offset(name)
            {
                self.record_field(element, Target::Field(ty, Self::offset(offset)));
            }
        }
        for field in &from.fields {
            let Some(offset) = to.offset(field.name) else {
                let message = format!(
                    "orphaned field \"{}\" in record coercion",
                    self.program.name(field.name)
                );
                self.program.expected_type = Some(ty);
                return self.fail(coerced, &message);
            };
            let target = to.fields[offset].ty;
            let fits = target == TypeId::ERROR
                || self.program.same_type(target, field.ty)
                || self.program.arithmetic_promotable(target, field.ty)
                || self.program.fits_empty_vector(target, field.ty)
                || self.program.record_promotable(target, field.ty)
                || field.ty == TypeId::ERROR;
            if !fits {
                let message = format!("type clash for field \"{}\"", self.program.name(field.name));
                self.error_about_both(&message, &Object::Expr(coerced), &Object::Type(field.ty));
                self.set_ty(coerced, TypeId::ERROR);
                return coerced;
            }
        }
        for field in &to.fields {
            if from.offset(field.name).is_some() {
                self.warn_deprecated_field(ty, field.name, coerced);
            } else if !self.may_be_missing(field) {
                let message =
                    format!("non-optional field \"{}\" missing", self.program.name(field.name));
                return self.fail(coerced, &message);
            }
        }
        coerced
    }

    /// Converts each of `exprs` to the corresponding type; false after an error. `list` is the node
    /// in error messages.
    pub(super) fn promote_list(
        &mut self,
        exprs: &mut [ExprId],
        types: &[TypeId],
        list: ExprId,
    ) -> bool {
        if types.len() == 1 && self.program.types.tag(types[0]) == Tag::Any {
            for expr in exprs.iter_mut() {
                if let Some(promoted) = self.promote(*expr, TypeId::ANY) {
                    *expr = promoted;
                }
            }
            return true;
        }
        if exprs.len() != types.len() {
            let list_type = self.list_of(types.to_vec());
            return self.promote_index(exprs, types, list_type, list);
        }
        self.promote_index(exprs, types, TypeId::EMPTY_LIST, list)
    }

    /// Like [`Self::promote_list`]; `list_type` is the list of the types.
    pub(super) fn promote_index(
        &mut self,
        exprs: &mut [ExprId],
        types: &[TypeId],
        list_type: TypeId,
        list: ExprId,
    ) -> bool {
        if exprs.len() != types.len() {
            // Zeek reports such a list at the line of its first element.
            if let Some(first) = exprs.first() {
                let last = self.program.exprs[*first].span.last;
                self.program.exprs[list].span.last = last;
            }
            self.error_about_both(
                "indexing mismatch",
                &Object::Type(list_type),
                &Object::Expr(list),
            );
            return false;
        }
        for (expr, ty) in exprs.iter_mut().zip(types) {
            let Some(promoted) = self.promote(*expr, *ty) else {
                self.error_about_both("type mismatch", &Object::Expr(*expr), &Object::Type(*ty));
                return false;
            };
            *expr = promoted;
        }
        true
    }

    /// Converts each of `exprs` to `ty`; false after an error.
    pub(super) fn promote_all(&mut self, exprs: &mut [ExprId], ty: TypeId) -> bool {
        for expr in exprs.iter_mut() {
            let Some(promoted) = self.promote(*expr, ty) else {
                self.error_about_both("type mismatch", &Object::Expr(*expr), &Object::Type(ty));
                return false;
            };
            *expr = promoted;
        }
        true
    }

    /// Whether the expression is a constant zero.
    pub(super) fn is_zero(&self, expr: ExprId) -> bool {
        match &self.program.exprs[expr].kind {
            ExprKind::Literal(Literal::Count(0) | Literal::Int(0)) => true,
            ExprKind::Literal(Literal::Double(value)) => *value == 0.0,
            _ => false,
        }
    }

    /// The elements of a list expression, or the expression itself.
    pub(super) fn elements(&self, expr: ExprId) -> Vec<ExprId> {
        match &self.program.exprs[expr].kind {
            ExprKind::List(elements) => elements.clone(),
            _ => vec![expr],
        }
    }

    /// A list expression. Its type is the list of its elements' types, even if one of them is erroneous.
    pub(super) fn list_node(&mut self, elements: Vec<ExprId>) -> ExprId {
        let types = elements.iter().map(|element| self.ty(*element)).collect::<Vec<_>>();
        let ty = self.list_of(types);
        self.node(ExprKind::List(elements), ty)
    }

    /// Warns if the field is deprecated. `expr` is the access.
    pub(super) fn warn_deprecated_field(
        &mut self,
        ty: TypeId,
        name: crate::ids::Name,
        expr: ExprId,
    ) {
        let Some(record) = self.program.types.record(ty) else { return };
        let Some(field) = record.offset(name).map(|offset| &record.fields[offset]) else { return };
        let Some(text) = self.deprecated_text(&field.attrs) else { return };
        if self.ignore_deprecations > 0 {
            return;
        }
        let owner = self.type_data(ty).name.map_or("", |name| self.program.name(name));
        let test = matches!(self.program.exprs[expr].kind, ExprKind::HasField(..));
        let op = if test { "?$" } else { "$" };
        let mut message = format!("deprecated ({owner}{op}{})", self.program.name(name));
        if !text.is_empty() {
            message = format!("{message}: {text}");
        }
        self.program.report_about(Severity::Warning, &message, &Object::Expr(expr), None);
    }

    /// Converts a field offset to `u32`.
    pub(super) fn offset(value: usize) -> u32 {
        u32::try_from(value).unwrap_or(u32::MAX)
    }

    /// Whether a record can be constructed without the field: containers and records get empty values.
    pub(super) fn may_be_missing(&self, field: &crate::types::Field) -> bool {
        may_be_missing(&field.attrs)
            || matches!(self.program.types.tag(field.ty), Tag::Table | Tag::Vector | Tag::Record)
    }
}
