//! Records, vectors, lists, functions, files and opaque values.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use super::table::{Table, TableAttrs};
use super::{Value, cycles};
use crate::ids::{FuncId, TypeId};
use crate::literal::PatternSource;
use crate::support::pattern::{Modes, Pattern};
use crate::vm::files::Failures;

/// The initial values of the fields of a record type: values that all records share, and containers and records that are
/// created at the first access.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// Number of fields.
    len: usize,
    /// Shared initial values, up to the last field that has one.
    shared: Vec<Value>,
    /// Fields whose values are created at the first access, at most [`MAX_LAZY`].
    lazy: Vec<(u32, LazyDefault)>,
    /// For each field up to the last of these, its index in `lazy` plus one; 0 for others.
    lazy_slots: Vec<u8>,
}

/// An empty container, or a record of initial values, that is created at the first access.
#[derive(Clone, Debug)]
pub(crate) enum LazyDefault {
    /// A table or set, and whether its keys have one part.
    Table(TypeId, bool, Option<Rc<TableAttrs>>),
    /// A vector.
    Vector(TypeId),
    /// A record.
    Record(TypeId, Rc<Defaults>),
}

/// Maximum number of lazy fields of a record: one bit of [`Record::pending`] each.
const MAX_LAZY: usize = 32;

impl LazyDefault {
    fn create(&self) -> Value {
        match self {
            Self::Table(ty, single, attrs) => Value::Table(Table::new(*ty, *single, attrs.clone())),
            Self::Vector(ty) => Value::Vector(Vector::new(*ty, Vec::new())),
            Self::Record(ty, defaults) => {
                Value::Record(Record::with_defaults(*ty, Vec::new(), defaults))
            }
        }
    }
}

impl Defaults {
    /// Defaults of a record of `len` fields without initial values.
    pub(crate) fn new(len: usize) -> Self {
        Self { len, ..Self::default() }
    }

    /// Sets the shared initial value of a field.
    pub(crate) fn set_initial(&mut self, index: usize, value: Value) {
        grow(&mut self.shared, index, &Self::default());
        if let Some(shared) = self.shared.get_mut(index) {
            *shared = value;
        }
    }

    /// Adds a lazy field. Returns false if there are too many: the value is to be created with the record.
    pub(crate) fn add_lazy(&mut self, index: u32, lazy: LazyDefault) -> bool {
        let fits = self.lazy.len() < MAX_LAZY;
        if fits {
            self.lazy.push((index, lazy));
            let index = index as usize;
            if self.lazy_slots.len() <= index {
                self.lazy_slots.resize(index + 1, 0);
            }
            if let Some(slot) = self.lazy_slots.get_mut(index) {
                *slot = self.lazy.len() as u8;
            }
        }
        fits
    }

    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The shared initial values of the first `count` fields.
    pub(crate) fn cells(&self, count: usize) -> Vec<Value> {
        let mut cells = Vec::with_capacity(count);
        Value::append(&mut cells, self.shared.get(..count).unwrap_or(&self.shared));
        let missing = count - cells.len();
        Value::append_unset(&mut cells, missing);
        cells
    }

    /// The bit of a lazy field, and how its value is created.
    #[inline]
    fn bit(&self, index: usize) -> Option<(u32, &LazyDefault)> {
        let slot = usize::from(*self.lazy_slots.get(index)?).checked_sub(1)?;
        Some((1 << slot, &self.lazy.get(slot)?.1))
    }
}

/// A record: its type and the values of its fields.
pub struct Record {
    ty: Cell<TypeId>,
    /// Lazy fields whose values do not exist yet, a bit for each of [`Defaults::lazy`].
    pending: Cell<u32>,
    /// The values of fields without a cell.
    defaults: Option<Rc<Defaults>>,
    /// The cells of fields. Those of the last fields may be missing while these have their initial values: scripts add dozens of
    /// fields to connection records, and few of them change.
    fields: RefCell<Vec<Value>>,
}

impl Record {
    /// A record with these fields.
    #[must_use]
    pub fn new(ty: TypeId, fields: Vec<Value>) -> Rc<Self> {
        Self::with_parts(ty, fields, None, 0)
    }

    /// A record with these cells for its first fields. Lazy fields that they leave unset are pending.
    #[must_use]
    pub(crate) fn with_defaults(
        ty: TypeId,
        fields: Vec<Value>,
        defaults: &Rc<Defaults>,
    ) -> Rc<Self> {
        let mut pending = 0;
        for (bit, (index, _)) in defaults.lazy.iter().enumerate() {
            if !fields.get(*index as usize).is_some_and(Value::is_set) {
                pending |= 1 << bit;
            }
        }
        Self::with_parts(ty, fields, Some(Rc::clone(defaults)), pending)
    }

    /// A record of the same type without cells, which [`set_stored`](Self::set_stored) adds.
    pub(crate) fn empty_like(&self) -> Rc<Self> {
        Self::with_parts(self.ty(), Vec::new(), self.defaults.clone(), self.pending.get())
    }

    fn with_parts(
        ty: TypeId,
        fields: Vec<Value>,
        defaults: Option<Rc<Defaults>>,
        pending: u32,
    ) -> Rc<Self> {
        let (ty, pending, fields) = (Cell::new(ty), Cell::new(pending), RefCell::new(fields));
        let record = Rc::new(Self { ty, pending, defaults, fields });
        cycles::record(&record);
        record
    }

    /// Adds the missing cells. While all fields are borrowed all cells exist, so nested borrows add none.
    fn complete(&self) {
        let Some(defaults) = &self.defaults else { return };
        if self.fields.borrow().len() < defaults.len {
            grow(&mut self.fields.borrow_mut(), defaults.len - 1, defaults);
        }
        if self.pending.get() > 0 {
            for (index, _) in &defaults.lazy {
                self.create_lazy(*index as usize);
            }
        }
    }

    /// Creates and returns the value of a pending field; unset for others.
    #[cold]
    fn create_lazy(&self, index: usize) -> Value {
        let Some(defaults) = &self.defaults else { return Value::Unset };
        let pending = self.pending.get();
        match defaults.bit(index).filter(|(bit, _)| pending & bit > 0) {
            Some((_, lazy)) => {
                let value = lazy.create();
                self.set(index, value.clone());
                value
            }
            None => Value::Unset,
        }
    }

    /// The value of a field without a value in a cell.
    fn default(&self, index: usize, has_cell: bool) -> Value {
        let created = if self.pending.get() > 0 { self.create_lazy(index) } else { Value::Unset };
        match &self.defaults {
            Some(defaults) if !has_cell && !created.is_set() => {
                defaults.shared.get(index).cloned().unwrap_or_default()
            }
            _ => created,
        }
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> TypeId {
        self.ty.get()
    }

    /// The value of a field; unset if the field does not exist.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Value {
        let fields = self.fields.borrow();
        match fields.get(index) {
            Some(value) if value.is_set() => value.clone(),
            cell => {
                let has_cell = cell.is_some();
                drop(fields);
                self.default(index, has_cell)
            }
        }
    }

    /// Passes the value of a field to `see`, unset if the field does not exist. `see` must not change this record.
    #[inline]
    pub(crate) fn show<R>(&self, index: usize, see: impl FnOnce(&Value) -> R) -> R {
        let fields = self.fields.borrow();
        match fields.get(index) {
            Some(value) if value.is_set() => see(value),
            cell => {
                let has_cell = cell.is_some();
                drop(fields);
                see(&self.default(index, has_cell))
            }
        }
    }

    /// The value in the cell of a field; unset if there is none.
    #[inline(always)]
    pub(crate) fn get_stored(&self, index: usize) -> Value {
        match self.fields.borrow().get(index) {
            Some(value) => value.clone(),
            None => Value::Unset,
        }
    }

    /// The value in the cell of a field of the record in a field; unset if there is none.
    #[inline]
    pub(crate) fn get_stored_in(&self, index: usize, inner: usize) -> Value {
        match self.fields.borrow().get(index) {
            Some(Value::Record(record)) => record.get_stored(inner),
            _ => Value::Unset,
        }
    }

    /// Whether a field is set.
    #[inline]
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        match self.fields.borrow().get(index) {
            Some(value) if value.is_set() => true,
            cell => self.has_default(index, cell.is_some()),
        }
    }

    fn has_default(&self, index: usize, has_cell: bool) -> bool {
        let Some(defaults) = &self.defaults else { return false };
        let pending = self.pending.get();
        pending > 0 && defaults.bit(index).is_some_and(|(bit, _)| pending & bit > 0)
            || !has_cell && defaults.shared.get(index).is_some_and(Value::is_set)
    }

    /// Clears the bit of a pending field, which is being set.
    #[inline]
    fn clear_pending(&self, index: usize) {
        let pending = self.pending.get();
        if pending > 0
            && let Some((bit, _)) = self.defaults.as_ref().and_then(|all| all.bit(index))
        {
            self.pending.set(pending & !bit);
        }
    }

    /// Changes a field.
    #[inline]
    pub fn set(&self, index: usize, value: Value) {
        self.clear_pending(index);
        let mut fields = self.fields.borrow_mut();
        if index >= fields.len() {
            self.grow(&mut fields, index);
        }
        if let Some(field) = fields.get_mut(index) {
            let old = std::mem::replace(field, value);
            drop(fields);
            if old.owns_memory() {
                drop(old);
            } else {
                std::mem::forget(old);
            }
        }
    }

    #[cold]
    fn grow(&self, fields: &mut Vec<Value>, index: usize) {
        match &self.defaults {
            Some(defaults) => grow(fields, index, defaults),
            None => grow(fields, index, &Defaults::default()),
        }
    }

    /// Changes several fields with one borrow. This must not drop a value that could access this record.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Fields<'_>)) {
        let mut fields = self.fields.borrow_mut();
        change(&mut Fields { record: self, fields: &mut fields });
    }

    /// All fields.
    #[must_use]
    pub fn fields(&self) -> Ref<'_, Vec<Value>> {
        self.complete();
        self.fields.borrow()
    }

    /// All fields, mutably. While they are borrowed, no value may be dropped that could access this record.
    #[must_use]
    pub fn fields_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.complete();
        self.fields.borrow_mut()
    }

    /// The existing cells.
    pub(crate) fn stored(&self) -> Ref<'_, Vec<Value>> {
        self.fields.borrow()
    }

    /// Sets the cells of a record that [`empty_like`](Self::empty_like) created.
    pub(crate) fn set_stored(&self, cells: Vec<Value>) {
        self.fields.replace(cells);
    }

    /// Takes all fields.
    pub(super) fn take(&self) -> Vec<Value> {
        self.fields.take()
    }
}

/// Adds cells for the fields up to `index`, and grows the capacity by half of their number or more: records are often filled
/// field by field. It does not double, since many records live as long as their connections.
fn grow(fields: &mut Vec<Value>, index: usize, defaults: &Defaults) {
    let len = fields.len();
    if index >= len {
        let capacity = (index + 1).max(len + len / 2).next_multiple_of(4);
        fields.reserve_exact(capacity - len);
        if let Some(values) =
            defaults.shared.get(len..=index).or_else(|| defaults.shared.get(len..))
        {
            Value::append(fields, values);
        }
        let missing = index + 1 - fields.len();
        Value::append_unset(fields, missing);
    }
}

/// The fields of a record in [`Record::change`].
pub(crate) struct Fields<'a> {
    record: &'a Record,
    fields: &'a mut Vec<Value>,
}

impl Fields<'_> {
    /// The cell of a field, if there is one.
    #[inline]
    pub(crate) fn get(&self, index: Option<usize>) -> Option<&Value> {
        self.fields.get(index?)
    }

    /// Sets a field, if `index` is given and the value is set.
    #[inline]
    pub(crate) fn set(&mut self, index: Option<usize>, value: Value) {
        let Some(index) = index else { return };
        if !value.is_set() {
            return;
        }
        self.record.clear_pending(index);
        if index >= self.fields.len() {
            self.record.grow(self.fields, index);
        }
        if let Some(field) = self.fields.get_mut(index) {
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

    /// Sets the type of a vector of an unspecified type.
    pub fn set_ty(&self, ty: TypeId) {
        self.ty.set(ty);
    }

    /// The number of elements, holes included.
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

    /// All elements, mutably.
    #[must_use]
    pub fn items_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.items.borrow_mut()
    }

    /// Takes all elements.
    pub(super) fn take(&self) -> Vec<Value> {
        self.items.take()
    }
}

/// A list of values, such as the parts of a key.
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
    /// The destination; `None` if the file is closed.
    pub sink: RefCell<Option<FileSink>>,
    /// Whether it has `&raw_output`.
    pub raw: Cell<bool>,
    /// Whether each write is flushed at once.
    pub unbuffered: Cell<bool>,
    /// Network time at which it was opened.
    pub opened: f64,
    /// The list to which write errors are added.
    pub(crate) failures: Failures,
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
            failures: Failures::default(),
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
    /// A copy; `None` if the type cannot be copied.
    fn duplicate(&self) -> Option<Box<dyn OpaqueData>>;
    /// As [`Any`].
    fn as_any(&self) -> &dyn Any;
    /// As mutable [`Any`].
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
        // The box can implement `OpaqueData`, too: dereference to the content.
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
    /// The index of the next element, or its index in `order`.
    pub next: Cell<usize>,
    /// The indexes in the order of the iteration, if they are not sorted.
    pub order: Option<Vec<u32>>,
}

impl Iter {
    /// Begins an iteration over `over`; the indexes of a table stay valid until it is dropped.
    #[must_use]
    pub fn new(over: Value) -> Rc<Self> {
        let mut order = None;
        if let Value::Table(table) = &over {
            order = table.begin_iteration();
        }
        Rc::new(Self { over, next: Cell::new(0), order })
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        if let Value::Table(table) = &self.over {
            table.end_iteration();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of five fields: a constant, a table, nothing, a vector, and nothing.
    fn defaults() -> Rc<Defaults> {
        let mut defaults = Defaults::new(5);
        defaults.set_initial(0, Value::Count(7));
        assert!(defaults.add_lazy(1, LazyDefault::Table(TypeId(70), true, None)));
        assert!(defaults.add_lazy(3, LazyDefault::Vector(TypeId(71))));
        Rc::new(defaults)
    }

    #[test]
    fn initial_values_take_no_cell_until_they_change() {
        let record = Record::with_defaults(TypeId(72), Vec::new(), &defaults());
        assert_eq!(record.get(0).count(), 7);
        let set: Vec<bool> = (0..6).map(|index| record.has(index)).collect();
        assert_eq!(set, [true, true, false, true, false, false]);
        assert!(record.stored().is_empty());
        let table = record.get(1);
        assert!(table.table().is_some_and(|table| {
            record.get(1).table().is_some_and(|again| Rc::ptr_eq(table, again))
        }));
        assert_eq!(record.stored().len(), 2);
        record.set(4, Value::Count(9));
        assert_eq!((record.get(0).count(), record.get(4).count(), record.has(2)), (7, 9, false));
        assert!(matches!(
            record.fields()[..],
            [Value::Count(7), Value::Table(_), Value::Unset, Value::Vector(_), Value::Count(9)]
        ));
    }

    #[test]
    fn a_field_that_is_set_or_unset_is_not_created() {
        let record =
            Record::with_defaults(TypeId(72), vec![Value::Count(1), Value::Unset], &defaults());
        record.set(1, Value::Count(2));
        record.change(|fields| fields.set(Some(3), Value::Count(3)));
        assert_eq!([0, 1, 3].map(|index| record.get(index).count()), [1, 2, 3]);
        let other = Record::with_defaults(TypeId(72), Vec::new(), &defaults());
        other.set(1, Value::Unset);
        assert!(!other.has(1) && !other.get(1).is_set() && other.has(3));
        assert_eq!(other.fields().len(), 5);
        assert!(!other.has(1));
    }

    #[test]
    fn lazy_fields_beyond_the_limit_are_refused() {
        let mut defaults = Defaults::new(40);
        let fits: Vec<bool> = (0..40)
            .map(|index| defaults.add_lazy(index, LazyDefault::Vector(TypeId(71))))
            .collect();
        assert_eq!(fits.iter().filter(|fits| **fits).count(), 32);
        assert!(fits[31] && !fits[32]);
        let record = Record::with_defaults(TypeId(72), Vec::new(), &Rc::new(defaults));
        assert!(record.has(0) && record.has(31) && !record.has(32));
        record.set(31, Value::Count(1));
        assert_eq!(record.fields().iter().filter(|field| field.is_set()).count(), 32);
    }
}
