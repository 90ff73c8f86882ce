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

/// What a new record of a type has: values that all of them begin with, and containers and records that it gets once a
/// script looks at them.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    /// How many fields there are.
    len: usize,
    /// The first values of fields, up to the last that has one.
    first: Vec<Value>,
    /// Fields that get their values later, [`MOST_LATER`] at most.
    later: Vec<(u32, Later)>,
    /// By field, up to the last of these: its place among them and one, 0 for others.
    places: Vec<u8>,
}

/// An empty container, or a record of first values, that is made when it is read.
#[derive(Clone, Debug)]
pub(crate) enum Later {
    /// A table or set, and whether its keys have one part.
    Table(TypeId, bool, Option<Rc<TableAttrs>>),
    /// A vector.
    Vector(TypeId),
    /// A record.
    Record(TypeId, Rc<Defaults>),
}

/// As many fields of a record can get their values later: one bit each.
const MOST_LATER: usize = 32;

impl Later {
    fn make(&self) -> Value {
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
    /// Those of a record of `len` fields.
    pub(crate) fn new(len: usize) -> Self {
        Self { len, ..Self::default() }
    }

    /// A field begins with this value.
    pub(crate) fn begin(&mut self, index: usize, value: Value) {
        grow(&mut self.first, index, &Self::default());
        if let Some(first) = self.first.get_mut(index) {
            *first = value;
        }
    }

    /// A field gets this value when it is read. False where too many do: it is to be made with the record.
    pub(crate) fn make_later(&mut self, index: u32, later: Later) -> bool {
        let fits = self.later.len() < MOST_LATER;
        if fits {
            self.later.push((index, later));
            let index = index as usize;
            if self.places.len() <= index {
                self.places.resize(index + 1, 0);
            }
            if let Some(place) = self.places.get_mut(index) {
                *place = self.later.len() as u8;
            }
        }
        fits
    }

    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first values of this many fields.
    pub(crate) fn cells(&self, count: usize) -> Vec<Value> {
        let mut cells = Vec::with_capacity(count);
        Value::append(&mut cells, self.first.get(..count).unwrap_or(&self.first));
        let missing = count - cells.len();
        Value::append_unset(&mut cells, missing);
        cells
    }

    /// The bit of a field that gets its value later.
    #[inline]
    fn bit(&self, index: usize) -> Option<(u32, &Later)> {
        let place = usize::from(*self.places.get(index)?).checked_sub(1)?;
        Some((1 << place, &self.later.get(place)?.1))
    }
}

/// A record: its type and one cell per field.
pub struct Record {
    ty: Cell<TypeId>,
    /// Fields whose values are to be made once they are read, a bit for each of [`Defaults::later`].
    unmade: Cell<u32>,
    /// What fields without a cell have.
    defaults: Option<Rc<Defaults>>,
    /// Cells of the last fields may be missing while these have their first values: scripts add dozens of fields to records of
    /// connections, of which few change.
    fields: RefCell<Vec<Value>>,
}

impl Record {
    /// A record with these fields.
    #[must_use]
    pub fn new(ty: TypeId, fields: Vec<Value>) -> Rc<Self> {
        Self::made(ty, fields, None, 0)
    }

    /// A record with these cells for its first fields; what they leave unset is made later if it can be.
    #[must_use]
    pub(crate) fn with_defaults(
        ty: TypeId,
        fields: Vec<Value>,
        defaults: &Rc<Defaults>,
    ) -> Rc<Self> {
        let mut unmade = 0;
        for (place, (index, _)) in defaults.later.iter().enumerate() {
            if !fields.get(*index as usize).is_some_and(Value::is_set) {
                unmade |= 1 << place;
            }
        }
        Self::made(ty, fields, Some(Rc::clone(defaults)), unmade)
    }

    /// A record of the same type without any cell: [`put_stored`](Self::put_stored) gives it those of its model.
    pub(crate) fn like(&self) -> Rc<Self> {
        Self::made(self.ty(), Vec::new(), self.defaults.clone(), self.unmade.get())
    }

    fn made(
        ty: TypeId,
        fields: Vec<Value>,
        defaults: Option<Rc<Defaults>>,
        unmade: u32,
    ) -> Rc<Self> {
        let (ty, unmade, fields) = (Cell::new(ty), Cell::new(unmade), RefCell::new(fields));
        let record = Rc::new(Self { ty, unmade, defaults, fields });
        cycles::record(&record);
        record
    }

    /// Adds the cells that are missing. While a borrow of all fields exists all cells exist, so that nested borrows add none.
    fn complete(&self) {
        let Some(defaults) = &self.defaults else { return };
        if self.fields.borrow().len() < defaults.len {
            grow(&mut self.fields.borrow_mut(), defaults.len - 1, defaults);
        }
        if self.unmade.get() > 0 {
            for (index, _) in &defaults.later {
                self.make(*index as usize);
            }
        }
    }

    /// Makes the value of a field, if that is to be made.
    #[cold]
    fn make(&self, index: usize) -> Value {
        let Some(defaults) = &self.defaults else { return Value::Unset };
        let unmade = self.unmade.get();
        match defaults.bit(index).filter(|(bit, _)| unmade & bit > 0) {
            Some((_, later)) => {
                let value = later.make();
                self.set(index, value.clone());
                value
            }
            None => Value::Unset,
        }
    }

    /// A field that has no value in a cell.
    fn default(&self, index: usize, has_cell: bool) -> Value {
        let made = if self.unmade.get() > 0 { self.make(index) } else { Value::Unset };
        match &self.defaults {
            Some(defaults) if !has_cell && !made.is_set() => {
                defaults.first.get(index).cloned().unwrap_or_default()
            }
            _ => made,
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

    /// Shows a field; unset where it does not exist. What looks at it may not change this record.
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

    /// A field whose value is in a cell; unset for others.
    #[inline(always)]
    pub(crate) fn get_stored(&self, index: usize) -> Value {
        match self.fields.borrow().get(index) {
            Some(value) => value.clone(),
            None => Value::Unset,
        }
    }

    /// The stored value of a field of the record in a field; unset where there is none.
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
        let unmade = self.unmade.get();
        unmade > 0 && defaults.bit(index).is_some_and(|(bit, _)| unmade & bit > 0)
            || !has_cell && defaults.first.get(index).is_some_and(Value::is_set)
    }

    /// The first value of a field need not be made: the field gets another one.
    #[inline]
    fn given(&self, index: usize) {
        let unmade = self.unmade.get();
        if unmade > 0
            && let Some((bit, _)) = self.defaults.as_ref().and_then(|all| all.bit(index))
        {
            self.unmade.set(unmade & !bit);
        }
    }

    /// Changes a field.
    #[inline]
    pub fn set(&self, index: usize, value: Value) {
        self.given(index);
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

    /// Changes several fields in one go. No value may be dropped by that which could reach this record.
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

    /// All fields, to change them. No value may be dropped meanwhile that could reach this record.
    #[must_use]
    pub fn fields_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.complete();
        self.fields.borrow_mut()
    }

    /// The cells that exist.
    pub(crate) fn stored(&self) -> Ref<'_, Vec<Value>> {
        self.fields.borrow()
    }

    /// Gives a record that is [like](Self::like) another copies of the cells of that one.
    pub(crate) fn put_stored(&self, cells: Vec<Value>) {
        self.fields.replace(cells);
    }

    /// Takes all fields.
    pub(super) fn take(&self) -> Vec<Value> {
        self.fields.take()
    }
}

/// Makes cells for the fields up to `index`, with room for half as many as there were: many records live as long as their
/// connections, and those that are filled field by field should not move for each four.
fn grow(fields: &mut Vec<Value>, index: usize, defaults: &Defaults) {
    let len = fields.len();
    if index >= len {
        let room = (index + 1).max(len + len / 2).next_multiple_of(4);
        fields.reserve_exact(room - len);
        if let Some(first) = defaults.first.get(len..=index).or_else(|| defaults.first.get(len..)) {
            Value::append(fields, first);
        }
        let missing = index + 1 - fields.len();
        Value::append_unset(fields, missing);
    }
}

/// Fields of a record that are changed.
pub(crate) struct Fields<'a> {
    record: &'a Record,
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
        self.record.given(place);
        if place >= self.fields.len() {
            self.record.grow(self.fields, place);
        }
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
    /// Where it reports that it could not be written.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of five fields: a constant, a table, nothing, a vector, and nothing.
    fn defaults() -> Rc<Defaults> {
        let mut defaults = Defaults::new(5);
        defaults.begin(0, Value::Count(7));
        assert!(defaults.make_later(1, Later::Table(TypeId(70), true, None)));
        assert!(defaults.make_later(3, Later::Vector(TypeId(71))));
        Rc::new(defaults)
    }

    #[test]
    fn first_values_take_no_cell_until_they_change() {
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
    fn a_field_that_is_given_or_taken_away_is_not_made() {
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
    fn more_fields_than_bits_are_made_at_once() {
        let mut defaults = Defaults::new(40);
        let fits: Vec<bool> =
            (0..40).map(|index| defaults.make_later(index, Later::Vector(TypeId(71)))).collect();
        assert_eq!(fits.iter().filter(|fits| **fits).count(), 32);
        assert!(fits[31] && !fits[32]);
        let record = Record::with_defaults(TypeId(72), Vec::new(), &Rc::new(defaults));
        assert!(record.has(0) && record.has(31) && !record.has(32));
        record.set(31, Value::Count(1));
        assert_eq!(record.fields().iter().filter(|field| field.is_set()).count(), 32);
    }
}
