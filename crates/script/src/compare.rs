//! Comparing types: equality, promotion, and the merged type of several.

use crate::ids::{Name, TypeId};
use crate::program::Program;
use crate::types::{Attr, AttrKind, FuncType, RecordType, TableType, Tag, Type, find_attr};

/// Deeper types are considered the same: only hostile programs contain them.
const MAX_DEPTH: usize = 256;

impl Program {
    /// Whether the two types are the same: by structure; `any` equals every type; enums compare by name.
    #[must_use]
    pub fn same_type(&self, one: TypeId, other: TypeId) -> bool {
        self.same(one, other, &mut Vec::new())
    }

    /// Whether two lists contain the same types in the same order.
    #[must_use]
    pub fn same_types(&self, one: &[TypeId], other: &[TypeId]) -> bool {
        self.same_list(one, other, &mut Vec::new())
    }

    fn same(&self, one: TypeId, other: TypeId, visited: &mut Vec<(TypeId, TypeId)>) -> bool {
        if one == other || visited.len() > MAX_DEPTH || visited.contains(&(one, other)) {
            return true;
        }
        visited.push((one, other));
        let same = match (self.types.get(one), self.types.get(other)) {
            (Type::Any, _) | (_, Type::Any) => true,
            (Type::List(list), _)
                if list.types.len() == 1 && !matches!(self.types.get(other), Type::List(_)) =>
            {
                self.same(list.types[0], other, visited)
            }
            (_, Type::List(list))
                if list.types.len() == 1 && !matches!(self.types.get(one), Type::List(_)) =>
            {
                self.same(one, list.types[0], visited)
            }
            (Type::List(a), Type::List(b)) => self.same_list(&a.types, &b.types, visited),
            (Type::Enum(_), Type::Enum(_)) => self.same_enum(one, other),
            (Type::Opaque(a), Type::Opaque(b)) => a == b,
            (Type::Table(a), Type::Table(b)) => self.same_table(a, b, visited),
            (Type::Vector(a), Type::Vector(b)) | (Type::Type(a), Type::Type(b)) => {
                self.same(*a, *b, visited)
            }
            (Type::Record(a), Type::Record(b)) => self.same_record(a, b, visited),
            (Type::Func(a), Type::Func(b)) => self.same_func(a, b, visited),
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        visited.pop();
        same
    }

    /// Enums are the same if their names are; `AllAnalyzers::Tag` accepts the tags of all analyzers.
    fn same_enum(&self, one: TypeId, other: TypeId) -> bool {
        let (one, other) = (self.types.data(one).name, self.types.data(other).name);
        if one == other {
            return true;
        }
        let text = |name: Option<Name>| name.map_or("", |name| self.name(name));
        let of_analyzer =
            |name: &str| matches!(name, "Analyzer::Tag" | "PacketAnalyzer::Tag" | "Files::Tag");
        let (one, other) = (text(one), text(other));
        (one == "AllAnalyzers::Tag" && of_analyzer(other))
            || (other == "AllAnalyzers::Tag" && of_analyzer(one))
    }

    fn same_list(
        &self,
        one: &[TypeId],
        other: &[TypeId],
        visited: &mut Vec<(TypeId, TypeId)>,
    ) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| self.same(*a, *b, visited))
    }

    fn same_table(
        &self,
        a: &TableType,
        b: &TableType,
        visited: &mut Vec<(TypeId, TypeId)>,
    ) -> bool {
        let values = match (a.value, b.value) {
            (None, None) => true,
            (Some(a), Some(b)) => self.same(a, b, visited),
            _ => false,
        };
        values && self.same_list(&a.index, &b.index, visited)
    }

    fn same_record(
        &self,
        a: &RecordType,
        b: &RecordType,
        visited: &mut Vec<(TypeId, TypeId)>,
    ) -> bool {
        a.fields.len() == b.fields.len()
            && a.fields.iter().zip(&b.fields).all(|(a, b)| {
                a.name == b.name && same_attrs(&a.attrs, &b.attrs) && self.same(a.ty, b.ty, visited)
            })
    }

    fn same_func(&self, a: &FuncType, b: &FuncType, visited: &mut Vec<(TypeId, TypeId)>) -> bool {
        a.flavor == b.flavor
            && self.same(a.result, b.result, visited)
            && self.same_params(a.params, b.params, visited)
    }

    fn same_params(&self, a: TypeId, b: TypeId, visited: &mut Vec<(TypeId, TypeId)>) -> bool {
        let fields = |id| self.types.record(id).map_or(&[][..], |record| &record.fields);
        let (a, b) = (fields(a), fields(b));
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a.ty, b.ty, visited))
    }

    /// Whether the records have the same types, names aside: parameters of functions.
    #[must_use]
    pub fn same_parameters(&self, one: TypeId, other: TypeId) -> bool {
        self.same_params(one, other, &mut Vec::new())
    }

    /// Whether a record of type `from` converts to type `to`: fields that both have must be compatible.
    #[must_use]
    pub fn record_promotable(&self, to: TypeId, from: TypeId) -> bool {
        self.promotable(to, from, 0)
    }

    fn promotable(&self, to: TypeId, from: TypeId, depth: usize) -> bool {
        let (Some(to), Some(from)) = (self.types.record(to), self.types.record(from)) else {
            return false;
        };
        from.fields.iter().all(|field| {
            let Some(offset) = to.offset(field.name) else { return true };
            let target = to.fields[offset].ty;
            self.same_type(target, field.ty)
                || (is_arithmetic(self.types.tag(target))
                    && is_arithmetic(self.types.tag(field.ty)))
                || self.fits_empty_vector(target, field.ty)
                || (depth < MAX_DEPTH && self.promotable(target, field.ty, depth + 1))
        })
    }

    /// Whether numbers of type `from` convert to `to` implicitly: count to int to double.
    #[must_use]
    pub fn arithmetic_promotable(&self, to: TypeId, from: TypeId) -> bool {
        let (to, from) = (self.types.tag(to), self.types.tag(from));
        is_arithmetic(to) && is_arithmetic(from) && max_tag(to, from) == to
    }

    /// Whether `from` is an empty constructor's type that fits `to`.
    #[must_use]
    pub fn fits_unspecified(&self, to: TypeId, from: TypeId) -> bool {
        match from {
            TypeId::UNSPECIFIED_TABLE => {
                self.types.table(to).is_some_and(|table| table.value.is_some())
            }
            TypeId::UNSPECIFIED_SET => self.types.is_set(to),
            TypeId::UNSPECIFIED_VECTOR => self.types.element(to).is_some(),
            _ => false,
        }
    }

    /// Whether `from` is the type of an empty `vector()`, and `to` a vector type. Unlike an empty vector, an
    /// empty `set()` or `table()` in a record does not make that record compatible with another record type.
    #[must_use]
    pub fn fits_empty_vector(&self, to: TypeId, from: TypeId) -> bool {
        from == TypeId::UNSPECIFIED_VECTOR && self.types.element(to).is_some()
    }

    /// The type of a number of the kind `tag`.
    #[must_use]
    pub fn number_type(tag: Tag) -> TypeId {
        match tag {
            Tag::Double => TypeId::DOUBLE,
            Tag::Int => TypeId::INT,
            Tag::Time => TypeId::TIME,
            Tag::Interval => TypeId::INTERVAL,
            _ => TypeId::COUNT,
        }
    }

    /// The element type if `ty` is a vector, otherwise `ty`.
    #[must_use]
    pub fn scalar(&self, ty: TypeId) -> TypeId {
        self.types.element(ty).unwrap_or(ty)
    }

    /// The kind of the elements if `ty` is a vector, otherwise the kind of `ty`.
    #[must_use]
    pub fn scalar_tag(&self, ty: TypeId) -> Tag {
        self.types.tag(self.scalar(ty))
    }
}

/// Whether the kind is a number: count, int or double.
#[must_use]
pub fn is_arithmetic(tag: Tag) -> bool {
    matches!(tag, Tag::Count | Tag::Int | Tag::Double)
}

/// Whether the kind is count or int.
#[must_use]
pub fn is_integral(tag: Tag) -> bool {
    matches!(tag, Tag::Count | Tag::Int)
}

/// The larger of two kinds of numbers: double, int, count.
#[must_use]
pub fn max_tag(one: Tag, other: Tag) -> Tag {
    match (one, other) {
        (Tag::Double, _) | (_, Tag::Double) => Tag::Double,
        (Tag::Int, _) | (_, Tag::Int) => Tag::Int,
        _ => Tag::Count,
    }
}

/// Whether two lists of attributes are the same; attribute expressions compare by identity.
#[must_use]
pub fn same_attrs(one: &[Attr], other: &[Attr]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|attr| find_attr(other, attr.kind).is_some_and(|found| found.expr == attr.expr))
}

/// Whether a field may be missing: it is optional or has a default.
#[must_use]
pub fn may_be_missing(attrs: &[Attr]) -> bool {
    attrs.iter().any(|attr| matches!(attr.kind, AttrKind::Optional | AttrKind::Default))
}
