//! Types of constructors: records, tables, sets, vectors.

use super::Parser;
use crate::ast::{BinaryOp, ExprKind, RecordConstructor, SetConstructor, TableConstructor};
use crate::evaluate::Constant;
use crate::ids::{ExprId, Name, TypeId};
use crate::literal::Literal;
use crate::program::Target;
use crate::report::Object;
use crate::types::{Attrs, Field, RecordType, Tag, Type};

/// The expressions of a key, and a value.
pub(super) type Entry = (Vec<ExprId>, ExprId);

const UNBRACKETED: &str =
    "cannot determine type for table; ensure square brackets are around each key";

impl Parser<'_> {
    /// A record constructor without a type name: `[$a=1]` or `record($a=1)`.
    pub(super) fn record_constructor(&mut self, elements: &[ExprId]) -> ExprId {
        let mut fields = Vec::new();
        let mut types = Vec::new();
        let mut error = false;
        let span = self.node_span;
        for element in elements {
            let ExprKind::FieldAssign(name, value) = self.program.exprs[*element].kind else {
                error = true;
                continue;
            };
            error |= self.is_error(*element);
            if types.iter().any(|field: &Field| field.name == name) {
                let shown = self.program.name(name).to_owned();
                self.error_here(&format!("duplicate field '{shown}' found in record definition"));
                error = true;
            }
            fields.push((Self::offset(types.len()), value));
            types.push(Field {
                name,
                ty: self.ty(value),
                attrs: Attrs::new(),
                span,
                redefined: false,
            });
        }
        let names = types.iter().map(|field| field.name).collect();
        let ty = self.new_type(Type::Record(RecordType { fields: types }));
        let record = RecordConstructor { fields, names, named: false };
        let expr = self.node(ExprKind::Record(record), ty);
        if self.program.uses.is_some() {
            self.constructors.insert(expr, elements.to_vec());
        }
        if error {
            let bad = elements.iter().copied().find(|element| {
                !matches!(self.program.exprs[*element].kind, ExprKind::FieldAssign(..))
            });
            if let Some(bad) = bad {
                self.error_about_both(
                    "bad type in record constructor",
                    &Object::Expr(expr),
                    &Object::Expr(bad),
                );
            }
            self.set_ty(expr, TypeId::ERROR);
        }
        expr
    }

    /// `R($a=1)`.
    pub(super) fn named_record(&mut self, ty: TypeId, elements: &[ExprId]) -> ExprId {
        let Some(record) = self.program.types.record(ty).cloned() else { return self.error_node() };
        let mut fields: Vec<(u32, ExprId)> = Vec::new();
        let mut named = Vec::new();
        let empty = RecordConstructor { fields: Vec::new(), names: Vec::new(), named: true };
        let expr = self.node(ExprKind::Record(empty), ty);
        let mut error = false;
        for element in elements {
            let ExprKind::FieldAssign(name, value) = self.program.exprs[*element].kind else {
                let text = self.constructor_text(ty, elements, error);
                let span = self.node_span;
                self.error_about_both(
                    "bad type in record constructor",
                    &Object::Text(&text, span),
                    &Object::Expr(*element),
                );
                error = true;
                continue;
            };
            let Some(offset) = record.offset(name) else {
                let text = self.constructor_text(ty, elements, error);
                let span = self.node_span;
                self.error_about_both(
                    "no such field in record",
                    &Object::Text(&text, span),
                    &Object::Expr(*element),
                );
                error = true;
                continue;
            };
            match self.promote(value, record.fields[offset].ty) {
                Some(value) => {
                    self.record_field(*element, Target::Field(ty, Self::offset(offset)));
                    named.push(name);
                    fields.push((Self::offset(offset), value));
                }
                None => error = true,
            }
        }
        let names = named.clone();
        self.program.exprs[expr].kind =
            ExprKind::Record(RecordConstructor { fields: fields.clone(), names, named: true });
        for name in named {
            self.warn_deprecated_field(ty, name, expr);
        }
        if !error {
            for (offset, field) in record.fields.iter().enumerate() {
                let given = fields.iter().any(|(given, _)| *given as usize == offset);
                if !given && !self.may_be_missing(field) {
                    let message =
                        format!("mandatory field \"{}\" missing", self.program.name(field.name));
                    // After the first error the message omits the name.
                    let mut text = crate::describe::expr(self.program, expr);
                    if let (true, Some(at)) = (error, text.iter().position(|byte| *byte == b'(')) {
                        text.pop();
                        text.push(b']');
                        text.splice(..=at, *b"[");
                    }
                    let span = self.program.exprs[expr].span;
                    self.error_about(&message, &Object::Text(&text, span));
                    error = true;
                }
            }
        }
        if error {
            self.set_ty(expr, TypeId::ERROR);
            // Later messages show the record without its type name.
            let (mut fields, mut names) = (Vec::new(), Vec::new());
            for element in elements {
                if let ExprKind::FieldAssign(name, value) = self.program.exprs[*element].kind {
                    fields.push((Self::offset(names.len()), value));
                    names.push(name);
                }
            }
            let record = RecordConstructor { fields, names, named: false };
            self.program.exprs[expr].kind = ExprKind::Record(record);
        }
        expr
    }

    /// The text of a constructor; after its first error without the type name.
    fn constructor_text(&self, ty: TypeId, elements: &[ExprId], failed: bool) -> Vec<u8> {
        let name = self.type_data(ty).name.map_or("", |name| self.program.name(name));
        let mut text = if failed { b"[".to_vec() } else { format!("{name}(").into_bytes() };
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(&crate::describe::expr(self.program, *element));
        }
        text.push(if failed { b']' } else { b')' });
        text
    }

    /// `$name = value`.
    pub(super) fn field_assign(&mut self, name: Name, value: ExprId) -> ExprId {
        let ty = self.ty(value);
        self.node(ExprKind::FieldAssign(name, value), ty)
    }

    /// Builds a container of type `ty` from the elements of a `{ … }`; `None` after an error.
    pub(super) fn construct(
        &mut self,
        ty: TypeId,
        elements: Vec<ExprId>,
        attrs: Attrs,
        list: ExprId,
    ) -> Option<ExprId> {
        let span = self.program.exprs[list].span;
        let outer = std::mem::replace(&mut self.node_span, span);
        let whole = elements.first().copied().filter(|first| {
            let from = self.ty(*first);
            self.program.types.table(from).is_some_and(|table| !table.index.is_empty())
                && self.program.same_type(ty, from)
                && (self.program.types.is_set(ty) || elements.len() == 1)
        });
        let built = match self.program.types.tag(ty) {
            // Elements that are sets of this type are merged.
            Tag::Table if let Some(first) = whole => Some(
                elements[1..]
                    .iter()
                    .fold(first, |union, element| self.binary(BinaryOp::BitOr, union, *element)),
            ),
            Tag::Vector => Some(self.vector_constructor(elements, Some(ty))),
            Tag::Table if self.program.types.is_set(ty) => {
                let entries = self.set_entries(&elements, Some(ty));
                self.set_constructor(entries, attrs, Some(ty))
            }
            _ => {
                let entries = self.table_entries(&elements, Some(ty));
                entries.and_then(|entries| self.table_constructor(entries, attrs, Some(ty)))
            }
        };
        self.node_span = outer;
        built
    }

    /// The keys of a set constructor. Combinations of lists are expanded if `ty` has several index types or the
    /// elements do.
    pub(super) fn set_entries(
        &mut self,
        elements: &[ExprId],
        ty: Option<TypeId>,
    ) -> Vec<Vec<ExprId>> {
        let width = ty.and_then(|ty| self.program.types.table(ty)).map(|table| table.index.len());
        let mut entries = Vec::new();
        for element in elements {
            if let ExprKind::Assign(..) = self.program.exprs[*element].kind {
                let message = "table constructor used in a non-table context";
                self.error_about(message, &Object::Expr(*element));
            }
            let parts = self.elements(*element);
            let list = matches!(self.program.exprs[*element].kind, ExprKind::List(_));
            match width {
                Some(1) | None if !list => entries.extend(self.expand(&parts, ty)),
                _ if list => entries.extend(self.expand(&parts, ty)),
                _ => entries.push(parts),
            }
        }
        entries
    }

    /// Keys and values of a table constructor; `None` if an element is not `key = value`.
    pub(super) fn table_entries(
        &mut self,
        elements: &[ExprId],
        ty: Option<TypeId>,
    ) -> Option<Vec<Entry>> {
        let mut entries = Vec::new();
        for element in elements {
            let (key, value) = match &self.program.exprs[*element].kind {
                ExprKind::Assign(key, value) => (*key, *value),
                _ if ty.is_some() => {
                    let object = Object::Expr(*element);
                    self.error_about("illegal table constructor element", &object);
                    return None;
                }
                _ => {
                    let message = "table constructor element lacks '=' structure";
                    self.error_about(message, &Object::Expr(*element));
                    let list = self.list_node(elements.to_vec());
                    self.table_text_error(UNBRACKETED, list);
                    return None;
                }
            };
            if !matches!(self.program.exprs[key].kind, ExprKind::List(_)) {
                let list = self.list_node(elements.to_vec());
                self.table_text_error(UNBRACKETED, list);
                return None;
            }
            let parts = self.elements(key);
            for parts in self.expand(&parts, ty) {
                entries.push((parts, value));
            }
        }
        Some(entries)
    }

    fn table_text_error(&mut self, message: &str, list: ExprId) {
        let mut text = b"table(".to_vec();
        text.extend_from_slice(&crate::describe::expr(self.program, list));
        text.push(b')');
        let span = self.node_span;
        self.error_about(message, &Object::Text(&text, span));
    }

    /// All combinations of the parts of a key: a part that is a list, or a constant set where the index has the
    /// set's element type, stands for all its elements.
    fn expand(&mut self, parts: &[ExprId], ty: Option<TypeId>) -> Vec<Vec<ExprId>> {
        let index =
            ty.and_then(|ty| self.program.types.table(ty)).map(|table| table.index.to_vec());
        let mut product: Vec<Vec<ExprId>> = vec![Vec::new()];
        for (position, part) in parts.iter().enumerate() {
            let expected = index.as_ref().and_then(|index| index.get(position)).copied();
            let choices = self.choices(*part, expected);
            let mut next = Vec::with_capacity(product.len() * choices.len());
            for prefix in &product {
                for choice in &choices {
                    let mut key = prefix.clone();
                    key.push(*choice);
                    next.push(key);
                }
            }
            product = next;
        }
        product
    }

    /// The alternatives for a part of a key.
    fn choices(&mut self, part: ExprId, expected: Option<TypeId>) -> Vec<ExprId> {
        if let ExprKind::List(elements) = &self.program.exprs[part].kind {
            let elements = elements.clone();
            return elements.iter().flat_map(|element| self.choices(*element, expected)).collect();
        }
        let ty = self.ty(part);
        let is_set = self.program.types.is_set(ty);
        if !is_set || expected.is_none_or(|expected| self.program.same_type(expected, ty)) {
            return vec![part];
        }
        let mut locals = false;
        crate::walk::expressions(self.program, part, &mut |id| {
            locals |= matches!(self.program.exprs[id].kind, ExprKind::Local(..));
        });
        if locals {
            self.fail(
                part,
                "cannot expand constructor elements using a value that depends on local variables",
            );
            return vec![part];
        }
        let Ok(Some(Constant::Set(keys))) = self.evaluate(part) else { return vec![part] };
        let element = self
            .program
            .types
            .table(ty)
            .and_then(|table| table.index.first().copied())
            .unwrap_or(TypeId::ERROR);
        let span = self.program.exprs[part].span;
        keys.into_iter()
            .filter_map(|key| key.into_iter().next())
            .map(|literal: Literal| self.node_at(ExprKind::Literal(literal), element, span))
            .collect()
    }

    /// `set(…)` with expanded keys.
    pub(super) fn set_constructor(
        &mut self,
        entries: Vec<Vec<ExprId>>,
        attrs: Attrs,
        ty: Option<TypeId>,
    ) -> Option<ExprId> {
        // Messages show the set without its attributes.
        let set = SetConstructor { entries, attrs: Attrs::new() };
        let expr = self.node(ExprKind::Set(set), TypeId::ERROR);
        let ExprKind::Set(SetConstructor { mut entries, .. }) =
            self.program.exprs[expr].kind.clone()
        else {
            return None;
        };
        let ty = match ty {
            Some(ty) if !self.program.types.is_set(ty) => {
                self.error_about_both(
                    "bad set constructor type",
                    &Object::Expr(expr),
                    &Object::Type(ty),
                );
                return Some(expr);
            }
            Some(ty) => ty,
            None if entries.is_empty() => TypeId::UNSPECIFIED_SET,
            None => match self.infer_index(&entries, expr) {
                Some(index) => self.table_type(index, None),
                None => return Some(expr),
            },
        };
        self.set_ty(expr, ty);
        let index = self.program.types.table(ty).map_or(Vec::new(), |table| table.index.to_vec());
        let mut right = true;
        if index.len() > 1 && entries.iter().flatten().any(|part| self.is_error(*part)) {
            // The error was reported.
            right = false;
        } else if index.len() == 1 {
            for key in &mut entries {
                let fits = if key.len() == 1 {
                    self.promote_all(key, index[0])
                } else {
                    let list = self.list_node(key.clone());
                    self.promote_all(&mut [list], index[0])
                };
                if !fits {
                    self.error_about("inconsistent type in set constructor", &Object::Expr(expr));
                    right = false;
                    break;
                }
            }
        } else if index.len() > 1 {
            for key in &mut entries {
                if let [alone] = key.as_slice()
                    && !matches!(self.program.exprs[*alone].kind, ExprKind::List(_))
                {
                    self.error_about("not a list of indices", &Object::Expr(*alone));
                    right = false;
                    continue;
                }
                let list = self.list_node(key.clone());
                if key.len() != index.len() || !self.promote_list(key, &index, list) {
                    self.error_about("inconsistent types in set constructor", &Object::Expr(expr));
                    right = false;
                }
            }
        }
        if !right {
            self.set_ty(expr, TypeId::ERROR);
        } else {
            let attrs = self.check_attrs(attrs, ty, super::attributes::AttributeTarget::Value);
            self.program.exprs[expr].kind = ExprKind::Set(SetConstructor { entries, attrs });
        }
        Some(expr)
    }

    /// `table(…)` with expanded keys.
    pub(super) fn table_constructor(
        &mut self,
        entries: Vec<Entry>,
        attrs: Attrs,
        ty: Option<TypeId>,
    ) -> Option<ExprId> {
        let table = TableConstructor { entries, attrs: Attrs::new() };
        let expr = self.node(ExprKind::Table(table), TypeId::ERROR);
        let ExprKind::Table(TableConstructor { mut entries, .. }) =
            self.program.exprs[expr].kind.clone()
        else {
            return None;
        };
        let is_wrong = |(key, value): &(Vec<ExprId>, ExprId)| {
            self.is_error(*value) || key.iter().any(|part| self.is_error(*part))
        };
        if entries.iter().any(is_wrong) {
            return Some(expr);
        }
        let ty = match ty {
            Some(ty) if self.program.types.table(ty).is_none_or(|table| table.value.is_none()) => {
                self.error_about_both(
                    "bad table constructor type",
                    &Object::Expr(expr),
                    &Object::Type(ty),
                );
                return Some(expr);
            }
            Some(ty) => ty,
            None if entries.is_empty() => TypeId::UNSPECIFIED_TABLE,
            None => {
                let keys = entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                let values = entries.iter().map(|(_, value)| *value).collect::<Vec<_>>();
                let Some(index) = self.infer_index(&keys, expr) else { return Some(expr) };
                let Some(value) = self.merge_values(&values) else {
                    self.no_table_type(expr);
                    return Some(expr);
                };
                self.table_type(index, Some(value))
            }
        };
        self.set_ty(expr, ty);
        let (index, value_ty) = match self.program.types.table(ty) {
            Some(table) => (table.index.to_vec(), table.value.unwrap_or(TypeId::VOID)),
            None => (Vec::new(), TypeId::VOID),
        };
        let (mut right, mut fits) = (true, true);
        for (key, value) in &mut entries {
            if !right {
                break;
            }
            if key.len() == index.len() {
                for (part, ty) in key.iter_mut().zip(&index) {
                    match self.promote(*part, *ty) {
                        Some(promoted) => *part = promoted,
                        None => right = false,
                    }
                }
            } else if ty != TypeId::UNSPECIFIED_TABLE {
                // Other errors take precedence.
                fits = false;
                continue;
            }
            if right {
                match self.value_of(*value, value_ty) {
                    Some(promoted) => *value = promoted,
                    None => right = false,
                }
            }
            if !right {
                self.error_about("inconsistent types in table constructor", &Object::Expr(expr));
            }
        }
        if right && !fits {
            right = false;
            self.error_about("inconsistent types in table constructor", &Object::Expr(expr));
        }
        if right {
            let attrs = self.check_attrs(attrs, ty, super::attributes::AttributeTarget::Value);
            self.program.exprs[expr].kind = ExprKind::Table(TableConstructor { entries, attrs });
        } else {
            self.set_ty(expr, TypeId::ERROR);
        }
        Some(expr)
    }

    /// A value converted to type `ty`, also from a `{ … }`.
    fn value_of(&mut self, value: ExprId, ty: TypeId) -> Option<ExprId> {
        let list = matches!(self.program.exprs[value].kind, ExprKind::List(_));
        if list && matches!(self.program.types.tag(ty), Tag::Table | Tag::Vector) {
            let elements = self.elements(value);
            return self
                .construct(ty, elements, Attrs::new(), value)
                .filter(|built| !self.is_error(*built));
        }
        self.promote(value, ty)
    }

    /// `vector(…)`.
    pub(super) fn vector_constructor(
        &mut self,
        mut elements: Vec<ExprId>,
        ty: Option<TypeId>,
    ) -> ExprId {
        let expr = self.node(ExprKind::Vector(elements.clone()), TypeId::ERROR);
        let ty = match ty {
            Some(ty) if self.program.types.tag(ty) != Tag::Vector => {
                self.error_about_both(
                    "bad vector constructor type",
                    &Object::Expr(expr),
                    &Object::Type(ty),
                );
                return expr;
            }
            Some(ty) => ty,
            None if elements.is_empty() => TypeId::UNSPECIFIED_VECTOR,
            None => match self.widest(&elements) {
                Some(element) => self.vector_of(element),
                None => {
                    self.error_here("inconsistent types in list");
                    return expr;
                }
            },
        };
        self.set_ty(expr, ty);
        let element = self.program.scalar(ty);
        let mut right = true;
        for value in &mut elements {
            match self.value_of(*value, element) {
                Some(promoted) => *value = promoted,
                None => {
                    self.error_about_both(
                        "type mismatch",
                        &Object::Expr(*value),
                        &Object::Type(element),
                    );
                    self.error_about(
                        "inconsistent types in vector constructor",
                        &Object::Expr(expr),
                    );
                    right = false;
                    break;
                }
            }
        }
        self.program.exprs[expr].kind = ExprKind::Vector(elements);
        if !right {
            self.set_ty(expr, TypeId::ERROR);
        }
        expr
    }
}
