//! Types of assignments.

use super::Parser;
use crate::ast::{AddTo, Coercion, ExprKind, LocalKind};
use crate::compare::{is_arithmetic, max_tag};
use crate::describe::tag_name;
use crate::ids::{ExprId, TypeId};
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::types::{Attr, Tag};

impl Parser<'_> {
    /// Whether the expression is assignable; reports an error if not.
    pub(super) fn check_lvalue(&mut self, expr: ExprId) -> bool {
        let message = match &self.program.exprs[expr].kind {
            ExprKind::Global(global) => match self.program.globals[*global].kind {
                GlobalKind::Constant => "const is not a modifiable lvalue",
                GlobalKind::Function(func) if !self.program.functions[func].bodies.is_empty() => {
                    "const is not a modifiable lvalue"
                }
                GlobalKind::Option => "option is not a modifiable lvalue",
                GlobalKind::Type => "Type name is not an lvalue",
                _ => return true,
            },
            ExprKind::Local(local, _) => match self.local(*local).kind {
                LocalKind::Constant => "const is not a modifiable lvalue",
                _ => return true,
            },
            ExprKind::Index(base, _) if self.tag(*base) == Tag::String => {
                "cannot assign to string index expression"
            }
            ExprKind::Index(..) if self.tag(expr) == Tag::Void => "illegal assignment target",
            ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::Slice(..) | ExprKind::Blank => {
                return true;
            }
            ExprKind::List(elements) => {
                let names = elements.iter().all(|element| {
                    matches!(
                        self.program.exprs[*element].kind,
                        ExprKind::Local(..) | ExprKind::Global(_) | ExprKind::Blank
                    )
                });
                if names {
                    return true;
                }
                "can only assign to list of identifiers"
            }
            ExprKind::Error => return false,
            ExprKind::TypeValue(_) => "Type name is not an lvalue",
            _ => "can't be assigned to",
        };
        self.fail(expr, message);
        false
    }

    /// `left = right`. `attrs` are those of the variable, which apply to the constructor on the right side.
    pub(super) fn assign(&mut self, left: ExprId, right: ExprId, attrs: &[Attr]) -> ExprId {
        let valid = self.check_lvalue(left);
        self.initialize(left, right, attrs, valid)
    }

    /// `left = right` as the initializer of `left`, which may be a constant.
    pub(super) fn initialize(
        &mut self,
        left: ExprId,
        right: ExprId,
        attrs: &[Attr],
        valid: bool,
    ) -> ExprId {
        let ty = self.ty(left);
        let expr = self.node(ExprKind::Assign(left, right), ty);
        if !valid || self.is_error(left) || self.is_error(right) {
            self.set_ty(expr, TypeId::ERROR);
            return expr;
        }
        if self.tag(right) == Tag::Void {
            return self.fail(expr, "can't assign void value");
        }
        if let Some(right) = self.assignable(expr, left, right, attrs) {
            self.program.exprs[expr].kind = ExprKind::Assign(left, right);
        } else {
            self.set_ty(expr, TypeId::ERROR);
        }
        expr
    }

    /// Whether a failed constructor has an incompatible type: unions of sets, and tables with invalid keys,
    /// have no type.
    fn is_clash(&self, built: ExprId) -> bool {
        match &self.program.exprs[built].kind {
            ExprKind::Table(table) => {
                !table.entries.iter().flat_map(|(key, _)| key).any(|part| self.is_error(*part))
            }
            ExprKind::Set(_) | ExprKind::Vector(_) => true,
            _ => false,
        }
    }

    /// `right` converted to the type of `left`.
    fn assignable(
        &mut self,
        expr: ExprId,
        left: ExprId,
        right: ExprId,
        attrs: &[Attr],
    ) -> Option<ExprId> {
        let (to, from) = (self.ty(left), self.ty(right));
        let (a, b) = (self.program.types.tag(to), self.program.types.tag(from));
        if a == Tag::List && b == Tag::Any {
            return Some(right);
        }
        if a == Tag::List && matches!(self.program.exprs[right].kind, ExprKind::List(_)) {
            self.fail(expr, "invalid constructor list on RHS of assignment");
            return None;
        }
        if (a == Tag::Enum) != (b == Tag::Enum) {
            self.fail(expr, "can't convert to/from enumerated type");
            return None;
        }
        if a == Tag::Enum && b == Tag::Enum && !self.program.same_type(to, from) {
            self.mixed_enums(to, from);
            return Some(right);
        }
        if matches!(self.program.exprs[right].kind, ExprKind::List(_))
            && !matches!(a, Tag::Table | Tag::Vector | Tag::Any | Tag::Record | Tag::List)
        {
            self.error_about(
                "invalid constructor list on RHS of assignment",
                &crate::report::Object::Expr(expr),
            );
        }
        if is_arithmetic(a) {
            return self.assignable_number(expr, right, a, b);
        }
        if matches!(a, Tag::Time | Tag::Interval) && is_arithmetic(b) && self.is_zero(right) {
            return Some(self.coerce_to_number(right, a));
        }
        if self.program.fits_unspecified(to, from) {
            return self.default_fits(right, to).then(|| self.coerce_to_specified(right, to));
        }
        if matches!(self.program.exprs[right].kind, ExprKind::List(_))
            && matches!(a, Tag::Table | Tag::Vector)
        {
            let elements = self.elements(right);
            let built = self.construct(to, elements, attrs.to_vec(), right)?;
            if self.is_error(built) {
                self.program.exprs[expr].kind = ExprKind::Assign(left, built);
                if self.is_clash(built) {
                    self.fail(expr, "type clash in assignment");
                }
                return None;
            }
            return Some(built);
        }
        if a == Tag::Record && b == Tag::Record {
            if self.program.same_type(to, from) {
                return Some(right);
            }
            let coerced = self.coerce_to_record(right, to);
            return (!self.is_error(coerced)).then_some(coerced);
        }
        if !self.program.same_type(to, from) {
            if let Some(rebuilt) = self.rebuild(right, to) {
                let errors = self.program.diagnostics.errors;
                let built = rebuilt(self);
                if self.program.diagnostics.errors > errors {
                    self.fail(expr, "type clash in assignment");
                    return None;
                }
                return built;
            }
            self.fail(expr, "type clash in assignment");
            return None;
        }
        if a == Tag::Any || b == Tag::Any {
            if a == b {
                return Some(right);
            }
            let span = self.program.exprs[right].span;
            let coercion = if a == Tag::Any { Coercion::ToAny } else { Coercion::FromAny };
            return Some(self.node_at(ExprKind::Coerce(coercion, right), to, span));
        }
        Some(right)
    }

    /// A closure that rebuilds the constructor `right` with the type `to`, if `right` is a constructor of that
    /// kind.
    #[expect(clippy::type_complexity, reason = "used once, above")]
    fn rebuild(
        &self,
        right: ExprId,
        to: TypeId,
    ) -> Option<Box<dyn FnOnce(&mut Self) -> Option<ExprId>>> {
        let tag = self.program.types.tag(to);
        match self.program.exprs[right].kind.clone() {
            ExprKind::Set(constructor) if self.program.types.is_set(to) => {
                Some(Box::new(move |parser: &mut Self| {
                    parser.set_constructor(constructor.entries, constructor.attrs, Some(to))
                }))
            }
            ExprKind::Table(constructor)
                if tag == Tag::Table && self.table_promotable(to, self.ty(right)) =>
            {
                Some(Box::new(move |parser: &mut Self| {
                    parser.table_constructor(constructor.entries, constructor.attrs, Some(to))
                }))
            }
            _ => None,
        }
    }

    fn assignable_number(
        &mut self,
        expr: ExprId,
        right: ExprId,
        to: Tag,
        from: Tag,
    ) -> Option<ExprId> {
        if !is_arithmetic(from) {
            let (left_ty, right_ty) = match self.program.exprs[expr].kind {
                ExprKind::Assign(left, right) => (self.ty(left), self.ty(right)),
                _ => (TypeId::ERROR, TypeId::ERROR),
            };
            let name = |ty: TypeId| tag_name(self.program.types.get(ty));
            let message = format!(
                "assignment of non-arithmetic value to arithmetic ({}/{})",
                name(left_ty),
                name(right_ty)
            );
            self.fail(expr, &message);
            return None;
        }
        if to != Tag::Double && from == Tag::Double {
            self.warn(expr, "dangerous assignment of double to integral");
        } else if to == Tag::Count && from == Tag::Int {
            self.warn(expr, "dangerous assignment of integer to count");
        }
        Some(self.coerce_to_number(right, to))
    }

    /// `left += right`.
    pub(super) fn add_to(&mut self, left: ExprId, right: ExprId, initializing: bool) -> ExprId {
        let ty = self.ty(left);
        let expr = self.node(ExprKind::AddTo(AddTo::Table, left, right), ty);
        let vector = matches!(self.tag(left), Tag::Vector | Tag::Table);
        if self.is_error(left)
            || self.is_error(right)
            || !(vector || initializing || self.check_lvalue(left))
        {
            self.set_ty(expr, TypeId::ERROR);
            return expr;
        }
        let (a, b) = (self.tag(left), self.tag(right));
        let (how, right) = match (a, b) {
            _ if is_arithmetic(a) && is_arithmetic(b) => {
                return self.update_number(expr, left, right, true);
            }
            (Tag::String, Tag::String) => (AddTo::Concatenate, right),
            (Tag::Interval, Tag::Interval) => (AddTo::Arithmetic, right),
            (Tag::Pattern, Tag::Pattern) => (AddTo::Pattern, right),
            (Tag::Pattern, _) => {
                return self.fail(expr, "pattern += op requires op to be a pattern");
            }
            (Tag::Table, _) => {
                let errors = self.program.diagnostics.errors;
                match self.elements_of(left, right, initializing) {
                    Some(right) => (AddTo::Table, right),
                    None if self.program.diagnostics.errors > errors => {
                        self.set_ty(expr, TypeId::ERROR);
                        return expr;
                    }
                    None => return self.fail(expr, "RHS type mismatch for table/set +="),
                }
            }
            (Tag::Vector, _) => match self.append(expr, left, right) {
                Some(found) => found,
                None => return expr,
            },
            (a, _) if is_arithmetic(a) && !initializing => {
                return self.no_number(expr, left, right, b" + ");
            }
            _ => return self.fail(expr, "requires two arithmetic or two string operands"),
        };
        self.program.exprs[expr].kind = ExprKind::AddTo(how, left, right);
        expr
    }

    /// `left -= right`.
    pub(super) fn remove_from(
        &mut self,
        left: ExprId,
        right: ExprId,
        initializing: bool,
    ) -> ExprId {
        let ty = self.ty(left);
        let expr = self.node(ExprKind::RemoveFrom(left, right), ty);
        let table = self.tag(left) == Tag::Table;
        if self.is_error(left)
            || self.is_error(right)
            || !(table || initializing || self.check_lvalue(left))
        {
            self.set_ty(expr, TypeId::ERROR);
            return expr;
        }
        let (a, b) = (self.tag(left), self.tag(right));
        let right = match (a, b) {
            _ if is_arithmetic(a) && is_arithmetic(b) => {
                return self.update_number(expr, left, right, false);
            }
            (Tag::Interval, Tag::Interval) => right,
            (Tag::Table, Tag::Table) if !initializing && self.yields_differ(left, right) => {
                return self.fail(expr, "RHS type mismatch for table/set -=");
            }
            (Tag::Table, _) => {
                let errors = self.program.diagnostics.errors;
                match self.elements_of(left, right, initializing) {
                    Some(right) => right,
                    None if self.program.diagnostics.errors > errors => {
                        self.set_ty(expr, TypeId::ERROR);
                        return expr;
                    }
                    None => return self.fail(expr, "RHS type mismatch for table/set -="),
                }
            }
            (Tag::Vector, Tag::List) => {
                return self
                    .fail(expr, "constructor list not allowed for -= operations on vectors");
            }
            (a, _) if is_arithmetic(a) && !initializing => {
                return self.no_number(expr, left, right, b" - ");
            }
            _ => return self.fail(expr, "requires two arithmetic operands"),
        };
        self.program.exprs[expr].kind = ExprKind::RemoveFrom(left, right);
        expr
    }

    /// Whether one operand is a set and the other a table.
    fn yields_differ(&self, left: ExprId, right: ExprId) -> bool {
        let [left, right] =
            [left, right].map(|expr| self.program.types.table(self.ty(expr)).map(|t| t.value));
        left.zip(right).is_some_and(|(left, right)| left.is_some() != right.is_some())
    }

    /// Reports that `right` cannot change the number `left`, with Zeek's message for the operator that `+=` or
    /// `-=` abbreviates.
    fn no_number(&mut self, expr: ExprId, left: ExprId, right: ExprId, op: &[u8]) -> ExprId {
        let message = if self.tag(right) == Tag::Vector {
            "cannot mix vector and scalar operands"
        } else {
            "requires arithmetic operands"
        };
        let [mut text, right] = [left, right].map(|part| crate::describe::expr(self.program, part));
        text.extend_from_slice(op);
        text.extend(right);
        let object = crate::report::Object::Text(&text, self.node_span);
        self.error_about(message, &object);
        self.set_ty(expr, TypeId::ERROR);
        expr
    }

    /// `+=` and `-=` on numbers: the result has the type of `left`.
    fn update_number(&mut self, expr: ExprId, left: ExprId, right: ExprId, add: bool) -> ExprId {
        let (a, b) = (self.tag(left), self.tag(right));
        let ty = self.ty(left);
        let tag = max_tag(a, b);
        if tag == a {
            let right = self.coerce_to_number(right, a);
            self.program.exprs[expr].kind = if add {
                ExprKind::AddTo(AddTo::Arithmetic, left, right)
            } else {
                ExprKind::RemoveFrom(left, right)
            };
            return expr;
        }
        let (wide, right) = (self.coerce_to_number(left, tag), self.coerce_to_number(right, tag));
        let op = if add { crate::ast::BinaryOp::Add } else { crate::ast::BinaryOp::Subtract };
        let sum = self.node(ExprKind::Binary(op, wide, right), Program::number_type(tag));
        let narrow = self.node(ExprKind::Coerce(Coercion::Arithmetic, sum), ty);
        self.program.exprs[expr].kind = ExprKind::Assign(left, narrow);
        expr
    }

    /// The right side of `+=` or `-=` on the table or set `left`; `None` if it does not fit.
    fn elements_of(&mut self, left: ExprId, right: ExprId, initializing: bool) -> Option<ExprId> {
        let ty = self.ty(left);
        let from = self.ty(right);
        if matches!(self.program.exprs[right].kind, ExprKind::List(_)) {
            let elements = self.elements(right);
            let errors = self.program.diagnostics.errors;
            let built = self.construct(ty, elements, Vec::new(), right)?;
            let right = self.program.diagnostics.errors == errors;
            if !right && initializing && self.program.types.is_set(ty) {
                let assign = self.node(ExprKind::Assign(left, built), ty);
                self.fail(assign, "type clash in assignment");
            }
            return right.then_some(built);
        }
        if self.program.fits_unspecified(ty, from) {
            return Some(self.coerce_to_specified(right, ty));
        }
        if self.program.same_type(ty, from) {
            return Some(right);
        }
        // A set of keys may be removed from a table.
        let keys = self.program.types.table(ty).zip(self.program.types.table(from));
        if keys.is_some_and(|(table, set)| {
            set.value.is_none() && self.program.same_types(&table.index, &set.index)
        }) {
            return Some(right);
        }
        if let Some(rebuilt) = self.rebuild(right, ty) {
            let errors = self.program.diagnostics.errors;
            let built = rebuilt(self);
            return built.filter(|_| self.program.diagnostics.errors == errors);
        }
        None
    }

    /// The effect of `+=` on a vector.
    fn append(&mut self, expr: ExprId, left: ExprId, right: ExprId) -> Option<(AddTo, ExprId)> {
        let (to, from) = (self.ty(left), self.ty(right));
        let element = self.program.scalar(to);
        let (a, b) = (self.program.types.tag(element), self.program.types.tag(from));
        if matches!(self.program.exprs[right].kind, ExprKind::List(_)) {
            let elements = self.elements(right);
            let built = self.vector_constructor(elements, Some(to));
            return (!self.is_error(built)).then_some((AddTo::AppendAll, built));
        }
        if b == Tag::Vector && a == Tag::Vector && self.program.fits_unspecified(element, from) {
            let right = self.coerce_to_specified(right, element);
            return Some((AddTo::Append, right));
        }
        if b == Tag::Vector && self.program.fits_unspecified(to, from) {
            let right = self.coerce_to_specified(right, to);
            return Some((AddTo::AppendAll, right));
        }
        let of_any = self.program.types.element(from) == Some(TypeId::ANY);
        if b == Tag::Vector && (a == Tag::Any || of_any || self.program.same_type(to, from)) {
            return Some((AddTo::AppendAll, right));
        }
        if is_arithmetic(a) {
            if !is_arithmetic(b) {
                self.fail(expr, "appending non-arithmetic to arithmetic vector");
                return None;
            }
            let right = self.coerce_to_number(right, a);
            return Some((AddTo::Append, right));
        }
        if a == Tag::Any {
            let right = self.promote(right, TypeId::ANY)?;
            return Some((AddTo::Append, right));
        }
        if a != b && b != Tag::Any {
            let name = |ty: TypeId| tag_name(self.program.types.get(ty));
            let message =
                format!("incompatible vector append: {} and {}", name(element), name(from));
            self.fail(expr, &message);
            return None;
        }
        match a {
            Tag::Record if !self.program.same_type(element, from) => {
                let right = self.coerce_to_record(right, element);
                if self.is_error(right) {
                    self.set_ty(expr, TypeId::ERROR);
                    return None;
                }
                Some((AddTo::Append, right))
            }
            _ if self.program.fits_unspecified(element, from) => {
                let right = self.coerce_to_specified(right, element);
                Some((AddTo::Append, right))
            }
            _ if b == Tag::Any => {
                let span = self.program.exprs[right].span;
                Some((
                    AddTo::Append,
                    self.node_at(ExprKind::Coerce(Coercion::FromAny, right), element, span),
                ))
            }
            _ => Some((AddTo::Append, right)),
        }
    }

    /// Whether keys and values of a table of type `from` can be converted to those of `to`.
    fn table_promotable(&self, to: TypeId, from: TypeId) -> bool {
        let (Some(to), Some(from)) = (self.program.types.table(to), self.program.types.table(from))
        else {
            return false;
        };
        let fits = |to: TypeId, from: TypeId| {
            self.program.same_type(to, from)
                || self.program.arithmetic_promotable(to, from)
                || self.program.fits_unspecified(to, from)
                || self.program.record_promotable(to, from)
        };
        let values = match (to.value, from.value) {
            (Some(to), Some(from)) => fits(to, from),
            _ => false,
        };
        values
            && to.index.len() == from.index.len()
            && to.index.iter().zip(&from.index).all(|(to, from)| fits(*to, *from))
    }
}
