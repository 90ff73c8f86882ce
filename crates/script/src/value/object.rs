//! Records, vectors, lists, functions, files and opaque values.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use super::{Value, cycles};
use crate::ids::{FuncId, TypeId};
use crate::literal::PatternSource;
use crate::support::pattern::{Modes, Pattern};

/// A record: its type and one cell per field.
pub struct Record {
    ty: Cell<TypeId>,
    /// How many fields it has. Cells of the last ones may be missing while they are unset: scripts add dozens of fields to records of connections, of
    /// which few are set.
    len: u32,
    fields: RefCell<Vec<Value>>,
}

impl Record {
    /// A record with these fields.
    #[must_use]
    pub fn new(ty: TypeId, fields: Vec<Value>) -> Rc<Self> {
        let len = fields.len();
        Self::with_len(ty, fields, len)
    }

    /// A record with these first fields of `len`; the others are unset.
    #[must_use]
    pub fn with_len(ty: TypeId, fields: Vec<Value>, len: usize) -> Rc<Self> {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let record = Rc::new(Self { ty: Cell::new(ty), len, fields: RefCell::new(fields) });
        cycles::record(&record);
        record
    }

    /// Adds the cells of unset fields. While a borrow of all fields exists all cells exist, so that nested borrows add none.
    fn complete(&self) {
        let len = self.len as usize;
        if self.fields.borrow().len() < len {
            let mut fields = self.fields.borrow_mut();
            let missing = len.saturating_sub(fields.len());
            fields.reserve_exact(missing);
            fields.resize(len, Value::Unset);
        }
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> TypeId {
        self.ty.get()
    }

    /// A field; unset where it does not exist.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Value {
        match self.fields.borrow().get(index) {
            Some(value) => value.clone(),
            None => Value::Unset,
        }
    }

    /// Whether a field is set.
    #[inline]
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.fields.borrow().get(index).is_some_and(Value::is_set)
    }

    /// Changes a field.
    pub fn set(&self, index: usize, value: Value) {
        let mut fields = self.fields.borrow_mut();
        grow(&mut fields, index);
        let old = fields.get_mut(index).map(|field| std::mem::replace(field, value));
        drop(fields);
        drop(old);
    }

    /// Changes several fields in one go. No value may be dropped by that which could reach this record.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Fields<'_>)) {
        let mut fields = self.fields.borrow_mut();
        change(&mut Fields { fields: &mut fields });
    }

    /// All fields.
    #[must_use]
    pub fn fields(&self) -> Ref<'_, Vec<Value>> {
        self.complete();
        self.fields.borrow()
    }

    /// All fields, to change them. No value may be dropped meanwhile that could reach this record.
    #[must_use]
    pub fn fields_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.complete();
        self.fields.borrow_mut()
    }

    /// The cells that exist.
    pub(super) fn stored(&self) -> Ref<'_, Vec<Value>> {
        self.fields.borrow()
    }

    /// Takes all fields.
    pub(super) fn take(&self) -> Vec<Value> {
        self.fields.take()
    }
}

/// Makes cells for the fields up to `index`, and for no more: many records live as long as their connections.
#[inline]
fn grow(fields: &mut Vec<Value>, index: usize) {
    if index >= fields.len() {
        fields.reserve_exact(index + 1 - fields.len());
        fields.resize(index + 1, Value::Unset);
    }
}

/// Fields of a record that are changed.
pub(crate) struct Fields<'a> {
    fields: &'a mut Vec<Value>,
}

impl Fields<'_> {
    /// The field at a place, if there is a cell for it.
    #[inline]
    pub(crate) fn get(&self, place: Option<usize>) -> Option<&Value> {
        self.fields.get(place?)
    }

    /// Changes the field at a place, if there is one and the value is set.
    #[inline]
    pub(crate) fn set(&mut self, place: Option<usize>, value: Value) {
        let Some(place) = place else { return };
        if !value.is_set() {
            return;
        }
        grow(self.fields, place);
        if let Some(field) = self.fields.get_mut(place) {
            Value::put(field, value);
        }
    }
}

/// A vector. Holes are unset values.
pub struct Vector {
    ty: Cell<TypeId>,
    items: RefCell<Vec<Value>>,
}

impl Vector {
    /// A vector with these elements; `ty` is the type of the vector.
    #[must_use]
    pub fn new(ty: TypeId, items: Vec<Value>) -> Rc<Self> {
        let vector = Rc::new(Self { ty: Cell::new(ty), items: RefCell::new(items) });
        cycles::vector(&vector);
        vector
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> TypeId {
        self.ty.get()
    }

    /// Gives a vector of an unspecified type its type.
    pub fn set_ty(&self, ty: TypeId) {
        self.ty.set(ty);
    }

    /// The number of elements, holes among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    /// An element.
    #[must_use]
    pub fn get(&self, index: usize) -> Value {
        match self.items.borrow().get(index) {
            Some(value) => value.clone(),
            None => Value::Unset,
        }
    }

    /// All elements.
    #[must_use]
    pub fn items(&self) -> Ref<'_, Vec<Value>> {
        self.items.borrow()
    }

    /// All elements, to change them.
    #[must_use]
    pub fn items_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.items.borrow_mut()
    }

    /// Takes all elements.
    pub(super) fn take(&self) -> Vec<Value> {
        self.items.take()
    }
}

/// Several values in order.
pub struct List {
    /// Its type, a [`crate::types::Type::List`].
    pub ty: TypeId,
    /// The values.
    pub items: Vec<Value>,
}

/// A function with its captures.
pub struct FuncValue {
    /// The function.
    pub func: FuncId,
    /// Its type.
    pub ty: TypeId,
    /// Captured variables, in the order of the lambda's captures.
    pub captures: RefCell<Vec<Value>>,
}

impl FuncValue {
    /// A function without captures.
    #[must_use]
    pub fn new(func: FuncId, ty: TypeId) -> Rc<Self> {
        Rc::new(Self { func, ty, captures: RefCell::new(Vec::new()) })
    }

    /// A function with captures.
    #[must_use]
    pub fn with_captures(func: FuncId, ty: TypeId, captures: Vec<Value>) -> Rc<Self> {
        let func = Rc::new(Self { func, ty, captures: RefCell::new(captures) });
        if !func.captures.borrow().is_empty() {
            cycles::func(&func);
        }
        func
    }
}

/// A file that scripts write to.
pub struct FileValue {
    /// Its name.
    pub name: String,
    /// Where it is open.
    pub sink: RefCell<Option<FileSink>>,
    /// Whether it has `&raw_output`.
    pub raw: Cell<bool>,
    /// Whether each write goes to the system at once.
    pub unbuffered: Cell<bool>,
    /// When it was opened, in network time.
    pub opened: f64,
}

impl FileValue {
    /// A file that is not open.
    #[must_use]
    pub fn closed(name: impl Into<String>, opened: f64) -> Rc<Self> {
        Rc::new(Self {
            name: name.into(),
            sink: RefCell::new(None),
            raw: Cell::new(false),
            unbuffered: Cell::new(false),
            opened,
        })
    }
}

/// The destination of a file.
pub enum FileSink {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file.
    File(std::io::BufWriter<std::fs::File>),
}

/// A value of an opaque type.
pub struct OpaqueValue {
    /// Its type.
    pub ty: TypeId,
    /// Its data, for the built-in functions of its type.
    pub data: RefCell<Box<dyn OpaqueData>>,
}

/// The data of an opaque value.
pub trait OpaqueData: Any {
    /// A copy, where the kind has copies.
    fn duplicate(&self) -> Option<Box<dyn OpaqueData>>;
    /// As [`Any`].
    fn as_any(&self) -> &dyn Any;
    /// As [`Any`], to change it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Clone> OpaqueData for T {
    fn duplicate(&self) -> Option<Box<dyn OpaqueData>> {
        Some(Box::new(self.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl OpaqueValue {
    /// A value of the opaque type `ty`.
    #[must_use]
    pub fn new<T: OpaqueData>(ty: TypeId, data: T) -> Rc<Self> {
        Rc::new(Self { ty, data: RefCell::new(Box::new(data)) })
    }

    /// Its data, if it is a `T`.
    pub fn with<T: Any, R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut data = self.data.borrow_mut();
        // The box itself is an `OpaqueData` where its content is not `Clone`: deref to the content.
        (**data).as_any_mut().downcast_mut::<T>().map(f)
    }
}

/// The pattern of a literal.
#[must_use]
pub fn pattern_of(source: &PatternSource) -> Pattern {
    Pattern::checked(
        &source.text,
        Modes { ignore_case: source.case_insensitive, single_line: source.single_line },
    )
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("ty", &self.ty()).finish_non_exhaustive()
    }
}

/// The state of a loop.
pub struct Iter {
    /// The value to iterate over.
    pub over: Value,
    /// The place of the next element.
    pub next: Cell<usize>,
    /// Places in the order of the walk, where that is not the order of places.
    pub order: Option<Vec<u32>>,
}

impl Iter {
    /// A walk over `over`; a table keeps its places until it ends.
    #[must_use]
    pub fn new(over: Value) -> Rc<Self> {
        let mut order = None;
        if let Value::Table(table) = &over {
            order = table.walk_begins();
        }
        Rc::new(Self { over, next: Cell::new(0), order })
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        if let Value::Table(table) = &self.over {
            table.walk_ends();
        }
    }
}
