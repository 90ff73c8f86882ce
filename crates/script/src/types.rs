//! Types and attributes.
//!
//! A [`TypeId`] identifies a [`TypeData`]: a structure and possibly a name. As in Zeek, types are compared by
//! structure, with two exceptions. `redef` extends records and enums, so all references to one must use the
//! same [`TypeId`]. `type A: T;` of other types makes a new entry with the same structure and another name.
//!
//! Built-in types have fixed ids: `TypeId::BOOL` and so on.

use crate::ids::{Arena, ExprId, Name, TypeId};
use crate::source::Span;

/// The structure of a type.
#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    /// No value: the result of a function that declares none.
    Void,
    /// `T` and `F`.
    Bool,
    /// Signed, 64 bits.
    Int,
    /// Unsigned, 64 bits.
    Count,
    /// Floating point, 64 bits.
    Double,
    /// An absolute time, as a double.
    Time,
    /// A duration, as a double.
    Interval,
    /// Bytes.
    String,
    /// A pattern.
    Pattern,
    /// A port with its protocol.
    Port,
    /// An IPv4 or IPv6 address.
    Addr,
    /// A network.
    Subnet,
    /// Any value, together with its type.
    Any,
    /// The type of an erroneous expression; silences follow-up errors.
    Error,
    /// An enum.
    Enum(EnumType),
    /// A table, or a set if `value` is `None`.
    Table(TableType),
    /// A vector of this element type; [`TypeId::VOID`] if unspecified (`vector()`).
    Vector(TypeId),
    /// A record.
    Record(RecordType),
    /// A function, event or hook.
    Func(FuncType),
    /// A file that scripts write to. Its elements are strings.
    File,
    /// An opaque type of this name.
    Opaque(Name),
    /// Several types in order: the index of a table, or the type of a list of expressions.
    List(ListType),
    /// The type of a type: `type_name(count)`.
    Type(TypeId),
}

/// The kind of a type, without its parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "as in Type")]
pub enum Tag {
    Void,
    Bool,
    Int,
    Count,
    Double,
    Time,
    Interval,
    String,
    Pattern,
    Port,
    Addr,
    Subnet,
    Any,
    Error,
    Enum,
    Table,
    Vector,
    Record,
    Func,
    File,
    Opaque,
    List,
    Type,
}

impl Tag {
    /// Whether values are numbers, strings, addresses or networks, which have no mutable parts.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        matches!(
            self,
            Self::Bool
                | Self::Int
                | Self::Count
                | Self::Double
                | Self::Time
                | Self::Interval
                | Self::String
                | Self::Port
                | Self::Addr
                | Self::Subnet
                | Self::Enum
        )
    }
}

/// A type with its name and source location.
#[derive(Clone, Debug)]
pub struct TypeData {
    /// Its structure.
    pub ty: Type,
    /// The name that a `type` declaration gave it, with module.
    pub name: Option<Name>,
    /// Where it was written.
    pub span: Span,
    /// Other names of this type (records and enums) or of its copies.
    pub aliases: Vec<Name>,
}

/// An enum: its values in order of declaration.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EnumType {
    /// Names with their modules, and numbers.
    pub values: Vec<EnumValue>,
    /// The number that the next name gets.
    pub next: i64,
    /// Whether numbers are given explicitly; then all values need one.
    pub explicit: bool,
}

/// A value of an enum.
#[derive(Clone, PartialEq, Debug)]
pub struct EnumValue {
    /// Its name with its module.
    pub name: Name,
    /// Its number. Several names may share one; the first is printed.
    pub value: i64,
}

/// A table or set.
#[derive(Clone, PartialEq, Debug)]
pub struct TableType {
    /// Types of the index; empty if unspecified (`table()`, `set()`).
    pub index: Box<[TypeId]>,
    /// Type of the values; `None` for sets.
    pub value: Option<TypeId>,
    /// The [`Type::List`] of `index`, which messages show.
    pub list: TypeId,
}

/// A record.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordType {
    /// Fields; `redef record` appends. The index of a field is its offset in values.
    pub fields: Vec<Field>,
}

/// A field of a record, or a parameter of a function.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeId,
    /// Its attributes.
    pub attrs: Attrs,
    /// Where it was declared.
    pub span: Span,
    /// Whether `redef record` added it.
    pub redefined: bool,
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.ty == other.ty
    }
}

/// Function, event or hook.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flavor {
    /// Called as `f(x)`.
    Function,
    /// Queued by `event f(x)`.
    Event,
    /// Called as `hook f(x)`.
    Hook,
}

/// The type of a function, event or hook.
#[derive(Clone, PartialEq, Debug)]
pub struct FuncType {
    /// Function, event or hook.
    pub flavor: Flavor,
    /// A [`Type::Record`] of the parameters.
    pub params: TypeId,
    /// Type of the result; [`TypeId::VOID`] for none, [`TypeId::BOOL`] for hooks.
    pub result: TypeId,
    /// Declared prototypes, the canonical one first (events and hooks).
    pub prototypes: Vec<Prototype>,
    /// Captures of a lambda, empty otherwise; part of the type's text.
    pub captures: Box<[CaptureName]>,
}

/// A capture in the type of a lambda.
#[derive(Clone, PartialEq, Debug)]
pub struct CaptureName {
    /// The captured variable.
    pub name: Name,
    /// Whether `copy` precedes it.
    pub deep: bool,
}

/// A prototype of an event or hook: a subset of the canonical parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Prototype {
    /// A [`Type::Record`] of its parameters.
    pub params: TypeId,
    /// For each parameter, its index among the canonical ones.
    pub offsets: Vec<usize>,
    /// Text of `&deprecated`, empty if it has none; `None` without the attribute.
    pub deprecated: Option<Box<str>>,
    /// Where it was declared.
    pub span: Span,
}

/// Types in order.
#[derive(Clone, PartialEq, Debug)]
pub struct ListType {
    /// The types.
    pub types: Vec<TypeId>,
    /// The element type if all types are the same: a list of elements rather than an index.
    pub pure: Option<TypeId>,
}

/// Attributes of a declaration, in the order in which they were written.
pub type Attrs = Vec<Attr>;

/// An attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Attr {
    /// Kind of the attribute.
    pub kind: AttrKind,
    /// Its expression, converted to the type that the attribute requires.
    pub expr: Option<ExprId>,
    /// Where it was written.
    pub span: Span,
}

/// Kinds of attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "named as in scripts")]
pub enum AttrKind {
    Optional,
    Default,
    DefaultInsert,
    Redef,
    AddFunc,
    DeleteFunc,
    ExpireFunc,
    ReadExpire,
    WriteExpire,
    CreateExpire,
    RawOutput,
    Priority,
    Group,
    Log,
    ErrorHandler,
    TypeColumn,
    OnChange,
    PublishOnChange,
    BrokerStore,
    BrokerAllowComplexType,
    Backend,
    Deprecated,
    IsAssigned,
    IsUsed,
    Ordered,
    NoZamOpt,
    NoCppOpt,
}

impl AttrKind {
    /// Its name in scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Optional => "&optional",
            Self::Default => "&default",
            Self::DefaultInsert => "&default_insert",
            Self::Redef => "&redef",
            Self::AddFunc => "&add_func",
            Self::DeleteFunc => "&delete_func",
            Self::ExpireFunc => "&expire_func",
            Self::ReadExpire => "&read_expire",
            Self::WriteExpire => "&write_expire",
            Self::CreateExpire => "&create_expire",
            Self::RawOutput => "&raw_output",
            Self::Priority => "&priority",
            Self::Group => "&group",
            Self::Log => "&log",
            Self::ErrorHandler => "&error_handler",
            Self::TypeColumn => "&type_column",
            Self::OnChange => "&on_change",
            Self::PublishOnChange => "&publish_on_change",
            Self::BrokerStore => "&broker_store",
            Self::BrokerAllowComplexType => "&broker_allow_complex_type",
            Self::Backend => "&backend",
            Self::Deprecated => "&deprecated",
            Self::IsAssigned => "&is_assigned",
            Self::IsUsed => "&is_used",
            Self::Ordered => "&ordered",
            Self::NoZamOpt => "&no_ZAM_opt",
            Self::NoCppOpt => "&no_CPP_opt",
        }
    }
}

/// The attribute of `kind` among `attrs`.
#[must_use]
pub fn find_attr(attrs: &[Attr], kind: AttrKind) -> Option<&Attr> {
    attrs.iter().find(|attr| attr.kind == kind)
}

/// The expression of the attribute of `kind` among `attrs`.
#[must_use]
pub fn attr_expr(attrs: &[Attr], kind: AttrKind) -> Option<ExprId> {
    find_attr(attrs, kind).and_then(|attr| attr.expr)
}

/// All types of a program.
#[derive(Clone, Debug)]
pub struct Types {
    arena: Arena<TypeId, TypeData>,
}

macro_rules! builtin_types {
    ($($constant:ident = $index:literal, $variant:expr, $doc:literal;)*) => {
        impl TypeId {
            $(#[doc = $doc] pub const $constant: Self = Self($index);)*
        }

        /// The built-in types in the order of their ids.
        fn builtin() -> Vec<Type> {
            vec![$($variant),*]
        }
    };
}

builtin_types! {
    VOID = 0, Type::Void, "`void`.";
    BOOL = 1, Type::Bool, "`bool`.";
    INT = 2, Type::Int, "`int`.";
    COUNT = 3, Type::Count, "`count`.";
    DOUBLE = 4, Type::Double, "`double`.";
    TIME = 5, Type::Time, "`time`.";
    INTERVAL = 6, Type::Interval, "`interval`.";
    STRING = 7, Type::String, "`string`.";
    PATTERN = 8, Type::Pattern, "`pattern`.";
    PORT = 9, Type::Port, "`port`.";
    ADDR = 10, Type::Addr, "`addr`.";
    SUBNET = 11, Type::Subnet, "`subnet`.";
    ANY = 12, Type::Any, "`any`.";
    ERROR = 13, Type::Error, "The type of an erroneous expression.";
    FILE = 14, Type::File, "`file of string`.";
    EMPTY_LIST = 15, Type::List(ListType { types: Vec::new(), pure: None }), "The list of no types.";
    UNSPECIFIED_TABLE = 16, Type::Table(TableType { index: Box::new([]), value: Some(TypeId(0)), list: TypeId(15) }), "`table()`: fits every table.";
    UNSPECIFIED_SET = 17, Type::Table(TableType { index: Box::new([]), value: None, list: TypeId(15) }), "`set()`: fits every set.";
    UNSPECIFIED_VECTOR = 18, Type::Vector(TypeId(0)), "`vector()`: fits every vector.";
}

impl Default for Types {
    fn default() -> Self {
        let mut arena = Arena::new();
        for ty in builtin() {
            arena.push(TypeData { ty, name: None, span: Span::NOWHERE, aliases: Vec::new() });
        }
        Self { arena }
    }
}

impl Types {
    /// All types with their names.
    #[must_use]
    pub(crate) fn arena(&self) -> &Arena<TypeId, TypeData> {
        &self.arena
    }

    /// Types decoded from a cache.
    #[must_use]
    pub(crate) fn from_arena(arena: Arena<TypeId, TypeData>) -> Self {
        Self { arena }
    }

    /// The structure of `id`, if it exists.
    #[must_use]
    pub fn find(&self, id: TypeId) -> Option<&Type> {
        self.arena.find(id).map(|data| &data.ty)
    }

    /// Adds a type without a name.
    pub fn add(&mut self, ty: Type, span: Span) -> TypeId {
        self.arena.push(TypeData { ty, name: None, span, aliases: Vec::new() })
    }

    /// The structure of `id`.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Type {
        &self.arena[id].ty
    }

    /// The structure of `id`, mutable.
    pub fn get_mut(&mut self, id: TypeId) -> &mut Type {
        &mut self.arena[id].ty
    }

    /// Structure, name and location of `id`.
    #[must_use]
    pub fn data(&self, id: TypeId) -> &TypeData {
        &self.arena[id]
    }

    /// Structure, name and location of `id`, mutable.
    pub fn data_mut(&mut self, id: TypeId) -> &mut TypeData {
        &mut self.arena[id]
    }

    /// Sets the location of an unnamed type to that of another one.
    pub(crate) fn move_to(&mut self, id: TypeId, other: TypeId) {
        let span = self.data(other).span;
        let data = self.data_mut(id);
        if data.name.is_none() && span.is_somewhere() {
            data.span = span;
        }
    }

    /// The number of types.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arena.len()
    }

    /// Always false: the built-in types exist.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arena.is_empty()
    }

    /// The kind of `id`.
    #[must_use]
    pub fn tag(&self, id: TypeId) -> Tag {
        match self.get(id) {
            Type::Void => Tag::Void,
            Type::Bool => Tag::Bool,
            Type::Int => Tag::Int,
            Type::Count => Tag::Count,
            Type::Double => Tag::Double,
            Type::Time => Tag::Time,
            Type::Interval => Tag::Interval,
            Type::String => Tag::String,
            Type::Pattern => Tag::Pattern,
            Type::Port => Tag::Port,
            Type::Addr => Tag::Addr,
            Type::Subnet => Tag::Subnet,
            Type::Any => Tag::Any,
            Type::Error => Tag::Error,
            Type::Enum(_) => Tag::Enum,
            Type::Table(_) => Tag::Table,
            Type::Vector(_) => Tag::Vector,
            Type::Record(_) => Tag::Record,
            Type::Func(_) => Tag::Func,
            Type::File => Tag::File,
            Type::Opaque(_) => Tag::Opaque,
            Type::List(_) => Tag::List,
            Type::Type(_) => Tag::Type,
        }
    }

    /// The table or set type of `id`, if it is one.
    #[must_use]
    pub fn table(&self, id: TypeId) -> Option<&TableType> {
        match self.get(id) {
            Type::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The record type of `id`, if it is one.
    #[must_use]
    pub fn record(&self, id: TypeId) -> Option<&RecordType> {
        match self.get(id) {
            Type::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The function type of `id`, if it is one.
    #[must_use]
    pub fn func(&self, id: TypeId) -> Option<&FuncType> {
        match self.get(id) {
            Type::Func(func) => Some(func),
            _ => None,
        }
    }

    /// The enum type of `id`, if it is one.
    #[must_use]
    pub fn enumeration(&self, id: TypeId) -> Option<&EnumType> {
        match self.get(id) {
            Type::Enum(enumeration) => Some(enumeration),
            _ => None,
        }
    }

    /// The element type of `id`, if it is a vector.
    #[must_use]
    pub fn element(&self, id: TypeId) -> Option<TypeId> {
        match self.get(id) {
            Type::Vector(element) => Some(*element),
            _ => None,
        }
    }

    /// Whether `id` is a set.
    #[must_use]
    pub fn is_set(&self, id: TypeId) -> bool {
        self.table(id).is_some_and(|table| table.value.is_none())
    }

    /// The parameters of the function type `id`: fields of its record.
    #[must_use]
    pub fn params(&self, id: TypeId) -> &[Field] {
        self.func(id).and_then(|func| self.record(func.params)).map_or(&[], |record| &record.fields)
    }
}

impl RecordType {
    /// The offset of the field `name`.
    #[must_use]
    pub fn offset(&self, name: Name) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

impl EnumType {
    /// The number of `name`.
    #[must_use]
    pub fn value(&self, name: Name) -> Option<i64> {
        self.values.iter().find(|value| value.name == name).map(|value| value.value)
    }

    /// The first name with the number `value`.
    #[must_use]
    pub fn name(&self, value: i64) -> Option<Name> {
        self.values.iter().find(|known| known.value == value).map(|known| known.name)
    }
}
