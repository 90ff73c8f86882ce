//! Tables and sets: lookups with defaults, and changes with their effects: `&on_change`, expiry, `when`.

use std::rc::Rc;

use super::Vm;
use crate::ast::ExprKind;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{ExprId, TypeId};
use crate::types::{Tag, Type};
use crate::value::table::{ExpireKind, TableAttrs, make_key, parts};
use crate::value::{List, Table, Value, Vector};

impl Vm<'_> {
    /// An empty table or set.
    pub fn new_table(&mut self, ty: TypeId, attrs: Option<Rc<TableAttrs>>) -> Value {
        let table = Table::new(ty, self.is_single(ty), attrs);
        self.watch_expiry(&table);
        Value::Table(table)
    }

    /// Whether keys of a table type have one part.
    pub(super) fn is_single(&self, ty: TypeId) -> bool {
        self.p.types.table(ty).is_none_or(|table| table.index.len() == 1)
    }

    /// The items of a list or vector that is the only part of a key, if the table's keys have several parts.
    fn spread(table: &Table, key: &[Value]) -> Option<Vec<Value>> {
        match key {
            [Value::List(list)] if !table.is_single() => Some(list.items.clone()),
            [Value::Vector(vector)] if !table.is_single() => Some(vector.items().clone()),
            _ => None,
        }
    }

    /// `t[key]`.
    pub(crate) fn index_table(
        &mut self,
        site: ExprId,
        value: &Value,
        key: &[Value],
    ) -> Result<Value, Stop> {
        let Value::Table(table) = value else {
            return Err(self.error_at(site, "value used but not set"));
        };
        let spread = Self::spread(table, key);
        let key = spread.as_deref().unwrap_or(key);
        if let [Value::Short(_) | Value::Long(_)] = key
            && self.index_tag(table) == Some(Tag::Pattern)
        {
            let text = key.first().map(Value::str_bytes).unwrap_or(&[]);
            let items = table
                .indexes_matching(text)
                .into_iter()
                .map(|entry_index| table.value_at(entry_index));
            let items = items.collect();
            let ty = self.p.exprs.find(site).map_or(TypeId::UNSPECIFIED_VECTOR, |expr| expr.ty);
            return Ok(Value::Vector(Vector::new(ty, items)));
        }
        if let Some(entry_index) = self.find_entry(table, key) {
            self.touch(table, entry_index);
            let found = table.value_at(entry_index);
            self.record_read(&found);
            return Ok(found);
        }
        match self.table_default(table, key)? {
            Some(value) => {
                self.record_read(&value);
                Ok(value)
            }
            None => Err(self.error_at(site, "no such index")),
        }
    }

    fn index_tag(&self, table: &Table) -> Option<Tag> {
        let ty = self.p.types.table(table.ty())?;
        match *ty.index {
            [one] => Some(self.p.types.tag(one)),
            _ => None,
        }
    }

    /// The entry of a key; for an address or network in a table indexed by networks, that of the longest network that contains it.
    pub(crate) fn find_entry(&self, table: &Table, key: &[Value]) -> Option<usize> {
        match key {
            [one @ (Value::Addr4(_) | Value::Addr6(_) | Value::Net4(..) | Value::Net6(_))]
                if self.index_tag(table) == Some(Tag::Subnet) =>
            {
                table.find_longest(one)
            }
            _ => table.find(key),
        }
    }

    /// The value of a key, without defaults.
    pub fn lookup(&self, table: &Table, key: &[Value]) -> Option<Value> {
        self.find_entry(table, key).map(|entry_index| table.value_at(entry_index))
    }

    fn touch(&self, table: &Table, entry_index: usize) {
        if let Some(attrs) = table.attrs()
            && let Some((ExpireKind::Read, _)) = attrs.expire
        {
            table.touch(entry_index, self.m.now);
        }
    }

    /// The value of `&default` or `&default_insert` for a key that is not in the table.
    pub(crate) fn table_default(
        &mut self,
        table: &Rc<Table>,
        key: &[Value],
    ) -> Result<Option<Value>, Stop> {
        let Some(attrs) = table.attrs() else { return Ok(None) };
        let Some(expr) = attrs.default.or(attrs.default_insert) else { return Ok(None) };
        let cached = table.default_cache.borrow().clone();
        let default = match cached {
            Some(value) => value,
            None => {
                let value = self.eval(expr)?;
                *table.default_cache.borrow_mut() = Some(value.clone());
                value
            }
        };
        let yields_function = self
            .p
            .types
            .table(table.ty())
            .and_then(|table| table.value)
            .is_some_and(|ty| matches!(self.p.types.get(ty), Type::Func(_)));
        let value = match &default {
            Value::Func(func) if !yields_function => {
                let args = key.to_vec();
                match self.call(func, &args) {
                    Ok(value) if value.is_set() => value,
                    Ok(_) | Err(Stop::Error) => return Ok(None),
                    Err(stop) => return Err(stop),
                }
            }
            other => self.copy(expr, other)?,
        };
        if attrs.default_insert.is_some() {
            let ty = table.ty();
            let owned_key = self.own_key(key, ty)?;
            table.insert(owned_key, value.clone(), self.m.now);
            self.changed(table, Change::New, key, &value)?;
        }
        Ok(Some(value))
    }

    /// A key in stored form, with copies of aggregates.
    fn own_key(&mut self, key: &[Value], ty: TypeId) -> Result<Value, Stop> {
        let aggregates = key.iter().any(|part| {
            matches!(part, Value::Record(_) | Value::Table(_) | Value::Vector(_) | Value::List(_))
        });
        let list = self.p.types.table(ty).map_or(TypeId::EMPTY_LIST, |table| table.list);
        if !aggregates {
            return Ok(make_key(key, list));
        }
        let mut copies = Vec::with_capacity(key.len());
        for part in key {
            copies.push(self.copy(ExprId(u32::MAX), part)?);
        }
        Ok(make_key(&copies, list))
    }

    /// `t[key] = value`, `add t[key]`.
    pub(crate) fn assign_table(
        &mut self,
        site: ExprId,
        target: &Value,
        key: &[Value],
        value: Value,
    ) -> Result<(), Stop> {
        let Value::Table(table) = target else {
            if let Value::Vector(_) = target
                && let [index] = key
            {
                return self.assign_index(site, target, index, value);
            }
            return Err(self.error_at(site, "value used but not set"));
        };
        let spread = Self::spread(table, key);
        let key = spread.as_deref().unwrap_or(key);
        let invalidates = table.is_iterated() && table.find(key).is_none();
        self.insert(table, key, value)?;
        if invalidates {
            self.warn_of_invalidation(site);
        }
        Ok(())
    }

    /// Warns that an entry of a table was added or removed in a loop over it.
    fn warn_of_invalidation(&mut self, site: ExprId) {
        // The warning for an assignment names its target.
        let site = match self.p.exprs.find(site).map(|expr| &expr.kind) {
            Some(ExprKind::Assign(target, _)) => *target,
            _ => site,
        };
        let text = "possible loop/iterator invalidation";
        self.report_at(Severity::ExpressionWarning, site, text);
    }

    /// Adds or changes an entry, and applies the effects of the change.
    ///
    /// # Errors
    /// Returns [`Stop`] if `&on_change` stopped the program.
    pub fn insert(&mut self, table: &Rc<Table>, key: &[Value], value: Value) -> Result<(), Stop> {
        let attrs = table.attrs();
        let expires_by_creation =
            attrs.as_ref().is_some_and(|a| matches!(a.expire, Some((ExpireKind::Create, _))));
        let has_on_change = attrs.as_ref().is_some_and(|a| a.on_change.is_some());
        if expires_by_creation || has_on_change {
            if let Some(entry_index) = table.find(key) {
                let old = table.value_at(entry_index);
                table.set_at(entry_index, value.clone());
                if !expires_by_creation {
                    table.touch(entry_index, self.m.now);
                }
                if has_on_change {
                    self.changed(table, Change::Changed, key, &old)?;
                }
                self.object_changed_rc(table);
                return Ok(());
            }
        } else if let Some(entry_index) = table.find(key) {
            table.set_at(entry_index, value);
            table.touch(entry_index, self.m.now);
            self.object_changed_rc(table);
            return Ok(());
        }
        let owned_key = self.own_key(key, table.ty())?;
        table.insert(owned_key, value.clone(), self.m.now);
        if has_on_change {
            self.changed(table, Change::New, key, &value)?;
        }
        self.object_changed_rc(table);
        Ok(())
    }

    /// Adds an entry of a constructor.
    pub(crate) fn construct_entry(
        &mut self,
        _: ExprId,
        target: &Value,
        key: &[Value],
        value: Value,
    ) -> Result<(), Stop> {
        let Value::Table(table) = target else { return Ok(()) };
        let spread = Self::spread(table, key);
        let key = spread.as_deref().unwrap_or(key);
        let owned_key = self.own_key(key, table.ty())?;
        table.insert(owned_key, value, self.m.now);
        Ok(())
    }

    /// `key in t`.
    pub(crate) fn in_table(&mut self, value: &Value, key: &[Value]) -> bool {
        let Value::Table(table) = value else { return false };
        let spread = Self::spread(table, key);
        let key = spread.as_deref().unwrap_or(key);
        if let [text @ (Value::Short(_) | Value::Long(_))] = key
            && self.index_tag(table) == Some(Tag::Pattern)
        {
            return !table.indexes_matching(text.str_bytes()).is_empty();
        }
        match self.find_entry(table, key) {
            Some(entry_index) => {
                self.touch(table, entry_index);
                true
            }
            None => false,
        }
    }

    /// `delete t[key]`.
    pub(crate) fn delete_key(
        &mut self,
        site: ExprId,
        target: &Value,
        key: &[Value],
    ) -> Result<(), Stop> {
        let Value::Table(table) = target else { return Ok(()) };
        let spread = Self::spread(table, key);
        let key = spread.as_deref().unwrap_or(key);
        if self.remove(table, key)?.is_some() {
            if table.is_iterated() {
                self.warn_of_invalidation(site);
            }
        } else if self.p.types.is_set(table.ty()) {
            // `&on_change` is called even if the set did not have the element.
            self.changed(table, Change::Removed, key, &Value::Unset)?;
        }
        Ok(())
    }

    /// Removes an entry, and applies the effects of the change.
    ///
    /// # Errors
    /// Returns [`Stop`] if `&on_change` stopped the program.
    pub fn remove(&mut self, table: &Rc<Table>, key: &[Value]) -> Result<Option<Value>, Stop> {
        let old = table.remove(key);
        if let Some(old) = &old {
            self.changed(table, Change::Removed, key, old)?;
            self.object_changed_rc(table);
        }
        Ok(old)
    }

    /// `delete t`, `delete v`.
    pub(crate) fn delete_all(&mut self, target: &Value) -> Result<(), Stop> {
        match target {
            Value::Table(table) => {
                table.clear();
                self.object_changed_rc(table);
            }
            Value::Vector(vector) => {
                let old = std::mem::take(&mut *vector.items_mut());
                drop(old);
                self.object_changed(target);
            }
            _ => (),
        }
        Ok(())
    }

    /// `a += b` on tables, vectors and patterns.
    pub(crate) fn add_to(&mut self, site: ExprId, a: &Value, b: &Value) -> Result<Value, Stop> {
        match (a, b) {
            (Value::Table(table), Value::Table(other)) => {
                for (key, value) in other.entries() {
                    self.insert(table, parts(&key), value)?;
                }
            }
            (Value::Pattern(x), Value::Pattern(y)) => {
                return Ok(Value::Pattern(Rc::new(x.plus(y))));
            }
            (Value::Vector(vector), other) => {
                let all = matches!(
                    self.p.exprs.find(site).map(|expr| &expr.kind),
                    Some(ExprKind::AddTo(crate::ast::AddTo::AppendAll, ..))
                );
                // The element type of the vector can differ from its static type if that is `any`.
                let element = self.p.types.element(vector.ty());
                let expected = element.filter(|ty| *ty != TypeId::ANY && *ty != TypeId::VOID);
                let fits = |vm: &Self, item: &Value| {
                    expected.is_none_or(|ty| {
                        !item.is_set() || vm.p.types.tag(item.ty()) == vm.p.types.tag(ty)
                    })
                };
                match other {
                    Value::Vector(more) if all => {
                        let more = more.items().clone();
                        if !more.iter().all(|item| fits(self, item)) {
                            let text = "incompatible vector element assignment";
                            self.error_with_value(site, text, other);
                            return Ok(a.clone());
                        }
                        vector.items_mut().extend(more);
                    }
                    one if fits(self, one) => vector.items_mut().push(one.clone()),
                    _ => return Err(self.error_at(site, "type-checking failed in vector append")),
                }
                if !self.m.whens.is_empty() {
                    self.object_changed(a);
                }
            }
            (Value::Unset, _) | (_, Value::Unset) => {
                return Err(self.error_at(site, "value used but not set"));
            }
            _ => return self.binary(site, crate::ast::BinaryOp::Add, a, b),
        }
        Ok(a.clone())
    }

    /// `a -= b` on tables and sets.
    pub(crate) fn remove_from(
        &mut self,
        site: ExprId,
        a: &Value,
        b: &Value,
    ) -> Result<Value, Stop> {
        match (a, b) {
            (Value::Table(table), Value::Table(other)) => {
                for key in other.keys() {
                    self.remove(table, parts(&key))?;
                }
                Ok(a.clone())
            }
            _ => Err(self.error_at(site, "value used but not set")),
        }
    }

    /// Calls `&on_change`.
    pub(crate) fn changed(
        &mut self,
        table: &Rc<Table>,
        change: Change,
        key: &[Value],
        value: &Value,
    ) -> Result<(), Stop> {
        let Some(expr) = table.attrs().and_then(|attrs| attrs.on_change) else { return Ok(()) };
        if table.in_change.replace(true) {
            return Ok(());
        }
        let result = self.call_on_change(table, expr, change, key, value);
        table.in_change.set(false);
        match result {
            Ok(_) | Err(Stop::Error) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    fn call_on_change(
        &mut self,
        table: &Rc<Table>,
        expr: ExprId,
        change: Change,
        key: &[Value],
        value: &Value,
    ) -> Result<Value, Stop> {
        let Value::Func(func) = self.eval(expr)? else { return Ok(Value::Unset) };
        let kind = self.enum_named(match change {
            Change::New => "TABLE_ELEMENT_NEW",
            Change::Changed => "TABLE_ELEMENT_CHANGED",
            Change::Removed => "TABLE_ELEMENT_REMOVED",
            Change::Expired => "TABLE_ELEMENT_EXPIRED",
        });
        let mut args = vec![Value::Table(Rc::clone(table)), kind];
        args.extend(key.iter().cloned());
        if !self.p.types.is_set(table.ty()) {
            args.push(value.clone());
        }
        let params = self.p.types.params(func.ty).len();
        args.truncate(params.max(2));
        self.call(&func, &args)
    }

    /// A list of the parts of a key.
    #[must_use]
    pub fn key_list(&self, table: &Table, key: &[Value]) -> Value {
        let ty = self.p.types.table(table.ty()).map_or(TypeId::EMPTY_LIST, |table| table.list);
        Value::List(Rc::new(List { ty, items: key.to_vec() }))
    }
}

/// The kind of change of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    New,
    Changed,
    Removed,
    Expired,
}
