//! Type inference from initializers.

use super::Parser;
use crate::ast::ExprKind;
use crate::compare::{is_arithmetic, max_tag};
use crate::ids::{ExprId, TypeId};
use crate::program::Program;
use crate::report::Object;
use crate::types::{Attr, AttrKind, Attrs, Field, RecordType, TableType, Tag, Type, find_attr};

/// Maximum depth of types to merge.
const MAX_DEPTH: usize = 100;

impl Parser<'_> {
    /// A table type with values of type `value`, or a set type.
    pub(super) fn table_type(&mut self, index: Vec<TypeId>, value: Option<TypeId>) -> TypeId {
        let list = self.list_of(index.clone());
        self.new_type(Type::Table(TableType { index: index.into(), value, list }))
    }

    /// The index types that fit all `keys`; `None` after an error about `expr`.
    pub(super) fn infer_index(
        &mut self,
        keys: &[Vec<ExprId>],
        expr: ExprId,
    ) -> Option<Vec<TypeId>> {
        let mut index: Option<Vec<TypeId>> = None;
        for key in keys {
            let types = key.iter().map(|part| self.ty(*part)).collect::<Vec<_>>();
            index = Some(match index {
                None => types,
                Some(known) if known.len() == types.len() => {
                    let parts = known.iter().zip(&types).zip(key);
                    let merged = parts
                        .map(|((a, b), part)| {
                            self.merged_span = self.program.exprs[*part].span;
                            self.merge(*a, *b, 0)
                        })
                        .collect::<Option<Vec<_>>>();
                    match merged {
                        Some(merged) => merged,
                        None => {
                            self.no_table_type(expr);
                            return None;
                        }
                    }
                }
                Some(known) => {
                    let [one, other] = [known, types].map(|types| {
                        let list = self.list_of(types);
                        crate::describe::type_text(self.program, list)
                    });
                    let text = format!("{one} and {other}");
                    let span = self.program.exprs[expr].span;
                    let object = Object::Text(text.as_bytes(), span);
                    self.error_about("different number of indices", &object);
                    self.set_ty(expr, TypeId::ERROR);
                    return None;
                }
            });
        }
        let index = index?;
        let table = self.table_type(index.clone(), None);
        if self.check_index_types(&index, table) {
            return Some(index);
        }
        if matches!(self.program.exprs[expr].kind, ExprKind::Set(_)) {
            let message = "values in set(...) constructor do not specify a set";
            self.error_about(message, &Object::Expr(expr));
        }
        None
    }

    /// The type that fits all values; `None` if none does.
    pub(super) fn merge_values(&mut self, values: &[ExprId]) -> Option<TypeId> {
        let mut merged: Option<TypeId> = None;
        for value in values {
            let mut ty = self.ty(*value);
            if matches!(self.program.exprs[*value].kind, ExprKind::List(_)) {
                ty = self.infer(*value)?;
            }
            merged = Some(match merged {
                None => ty,
                Some(known) => {
                    self.merged_span = self.program.exprs[*value].span;
                    self.merge(known, ty, 0)?
                }
            });
        }
        merged
    }

    /// The element type of a vector: numbers are widened, other values must have one type; `None` if they do
    /// not.
    pub(super) fn widest(&mut self, values: &[ExprId]) -> Option<TypeId> {
        let mut widest: Option<TypeId> = None;
        for value in values {
            let mut ty = self.ty(*value);
            if matches!(self.program.exprs[*value].kind, ExprKind::List(_)) {
                ty = self.infer(*value)?;
            }
            widest = Some(match widest {
                None => ty,
                Some(known) => {
                    let [a, b] = [known, ty].map(|ty| self.program.types.tag(ty));
                    let merges = (is_arithmetic(a) && is_arithmetic(b))
                        || (a == Tag::Enum && b == Tag::Enum)
                        || self.program.same_type(known, ty)
                        || self.program.fits_unspecified(known, ty)
                        || self.program.fits_unspecified(ty, known);
                    if !merges {
                        return None;
                    }
                    self.merged_span = self.program.exprs[*value].span;
                    self.merge(known, ty, 0)?
                }
            });
        }
        widest
    }

    /// The type that fits both types.
    pub(super) fn merge(&mut self, one: TypeId, other: TypeId, depth: usize) -> Option<TypeId> {
        if one == other || depth > MAX_DEPTH {
            return Some(one);
        }
        let (a, b) = (self.program.types.tag(one), self.program.types.tag(other));
        if is_arithmetic(a) && is_arithmetic(b) {
            return Some(Program::number_type(max_tag(a, b)));
        }
        if self.program.fits_unspecified(one, other) {
            return Some(one);
        }
        if self.program.fits_unspecified(other, one) {
            return Some(other);
        }
        if a == Tag::Any || b == Tag::Any {
            return Some(TypeId::ANY);
        }
        match (self.program.types.get(one).clone(), self.program.types.get(other).clone()) {
            (Type::Record(a), Type::Record(b)) => {
                if self.program.same_type(one, other) {
                    Some(one)
                } else {
                    self.merge_records(one, &a, other, &b, depth)
                }
            }
            (Type::Table(a), Type::Table(b))
                if a.index.len() == b.index.len() && a.value.is_some() == b.value.is_some() =>
            {
                if self.program.same_type(one, other) {
                    return Some(one);
                }
                let index = a
                    .index
                    .iter()
                    .zip(&b.index)
                    .map(|(a, b)| self.merge(*a, *b, depth + 1))
                    .collect::<Option<Vec<_>>>()?;
                let value = match (a.value, b.value) {
                    (Some(a), Some(b)) => Some(self.merge(a, b, depth + 1)?),
                    _ => None,
                };
                Some(self.table_type(index, value))
            }
            (Type::Vector(a), Type::Vector(b)) => {
                let element = self.merge(a, b, depth + 1)?;
                Some(if element == a { one } else { self.vector_of(element) })
            }
            (Type::List(a), Type::List(b)) if a.types.len() == b.types.len() => {
                let types = a
                    .types
                    .iter()
                    .zip(&b.types)
                    .map(|(a, b)| self.merge(*a, *b, depth + 1))
                    .collect::<Option<Vec<_>>>()?;
                Some(self.list_of(types))
            }
            (Type::Enum(_), Type::Enum(_)) if !self.program.same_type(one, other) => {
                let name = |ty: TypeId| {
                    self.type_data(ty).name.map_or("", |name| self.program.name(name)).to_owned()
                };
                let message =
                    format!("incompatible enum types: '{}' and '{}'", name(one), name(other));
                let (one_text, other_text) = (name(one), name(other));
                let (_, one_span) = self.program.object_location(&Object::Type(one));
                let (_, other_span) = self.program.object_location(&Object::Type(other));
                self.error_about_both(
                    &message,
                    &Object::Text(one_text.as_bytes(), one_span),
                    &Object::Text(other_text.as_bytes(), other_span),
                );
                None
            }
            _ if self.program.same_type(one, other) => Some(one),
            _ => {
                // Zeek reports no location: shared types have none.
                self.program.parser_span = Some(self.merged_span);
                let both = (&Object::Type(one), &Object::Type(other));
                self.error_about_both("incompatible types", both.0, both.1);
                None
            }
        }
    }

    /// Reports that the entries of a table or set have no common type.
    pub(super) fn no_table_type(&mut self, expr: ExprId) {
        if matches!(self.program.exprs[expr].kind, ExprKind::Table(_)) {
            let message =
                "cannot determine type for table; ensure square brackets are around each key";
            self.error_about(message, &Object::Expr(expr));
        }
        self.set_ty(expr, TypeId::ERROR);
    }

    /// A record type with the fields of both; fields of only one are optional.
    fn merge_records(
        &mut self,
        one: TypeId,
        a: &RecordType,
        other: TypeId,
        b: &RecordType,
        depth: usize,
    ) -> Option<TypeId> {
        if self.type_data(one).name.is_some()
            && self.program.record_promotable(one, other)
            && b.fields.iter().all(|f| a.offset(f.name).is_some())
        {
            return Some(one);
        }
        if self.type_data(other).name.is_some()
            && self.program.record_promotable(other, one)
            && a.fields.iter().all(|f| b.offset(f.name).is_some())
        {
            return Some(other);
        }
        let span = self.node_span;
        let optional = Attr { kind: AttrKind::Optional, expr: None, span };
        let with_optional = |attrs: &Attrs| {
            let mut attrs = attrs.clone();
            if find_attr(&attrs, AttrKind::Optional).is_none() {
                attrs.push(optional.clone());
            }
            attrs
        };
        let mut fields: Vec<Field> = Vec::new();
        for field in &a.fields {
            let merged = match b.offset(field.name) {
                Some(offset) => {
                    let ty = self.merge(field.ty, b.fields[offset].ty, depth + 1)?;
                    Field { ty, ..field.clone() }
                }
                None => Field { attrs: with_optional(&field.attrs), ..field.clone() },
            };
            fields.push(merged);
        }
        for field in &b.fields {
            if a.offset(field.name).is_none() {
                fields.push(Field { attrs: with_optional(&field.attrs), ..field.clone() });
            }
        }
        Some(self.new_type(Type::Record(RecordType { fields })))
    }

    /// The type that the initializer `expr` implies; `None` after an error.
    pub(super) fn infer(&mut self, expr: ExprId) -> Option<TypeId> {
        let ty = self.ty(expr);
        if ty == TypeId::ERROR {
            return None;
        }
        if let ExprKind::Assign(left, _) = self.program.exprs[expr].kind
            && !matches!(self.program.exprs[left].kind, ExprKind::List(_))
        {
            let message = "bad initializer, first operand should be a list";
            self.error_about(message, &Object::Expr(expr));
            self.error_about("not a valid initializer", &Object::Expr(expr));
            return None;
        }
        let ExprKind::List(elements) = self.program.exprs[expr].kind.clone() else {
            return Some(ty);
        };
        let Some(first) = elements.first() else {
            self.error_about("empty list in untyped initialization", &Object::Expr(expr));
            return None;
        };
        match self.program.exprs[*first].kind {
            ExprKind::FieldAssign(..) => {
                let record = self.record_constructor(&elements);
                Some(self.ty(record))
            }
            ExprKind::Assign(..) => {
                let entries = self.table_entries(&elements, None)?;
                let built = self.table_constructor(entries, Attrs::new(), None)?;
                Some(self.ty(built)).filter(|ty| *ty != TypeId::ERROR)
            }
            _ => {
                let entries = self.set_entries(&elements, None);
                let keys = entries.clone();
                let index = self.infer_index(&keys, expr)?;
                Some(self.table_type(index, None))
            }
        }
    }
}
