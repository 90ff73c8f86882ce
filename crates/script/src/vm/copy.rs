//! Deep copies.

use std::collections::HashMap;
use std::rc::Rc;

use super::Vm;
use crate::evaluate::Stop;
use crate::ids::ExprId;
use crate::support::pattern::Pattern;
use crate::value::{FuncValue, List, OpaqueValue, Table, Value, Vector};

/// Maximum depth of nested values in a copy.
const MAX_DEPTH: usize = 4_000;

impl Vm<'_> {
    /// A deep copy of a value. An object that is referenced twice is copied once.
    ///
    /// # Errors
    /// Returns [`Stop`] if a part of the value cannot be copied.
    pub fn copy(&mut self, site: ExprId, value: &Value) -> Result<Value, Stop> {
        self.try_copy(value).ok_or_else(|| self.error_at(site, "value cannot be copied"))
    }

    /// Like [`copy`](Self::copy), but returns `None` if a part of the value cannot be copied.
    pub(crate) fn try_copy(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::Short(text) => return Some(Value::Short(text.copied())),
            Value::Long(_) => return Some(Value::string(value.str_bytes())),
            Value::Pattern(pattern) => {
                return Some(Value::Pattern(Rc::new(Pattern::from_texts(
                    pattern.text(),
                    pattern.anywhere_text(),
                ))));
            }
            _ => (),
        }
        let mut copier = Copier { done: HashMap::new(), depth: 0 };
        let copy = copier.copy(value)?;
        for copied in copier.done.values() {
            if let Value::Table(table) = copied {
                self.watch_expiry(table);
            }
        }
        Some(copy)
    }
}

struct Copier {
    done: HashMap<usize, Value>,
    depth: usize,
}

impl Copier {
    fn copy(&mut self, value: &Value) -> Option<Value> {
        let Some(address) = value.address() else { return Some(value.clone()) };
        if let Some(copy) = self.done.get(&address) {
            return Some(copy.clone());
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let copy = match value {
            Value::Record(record) => {
                let copy = record.empty_like();
                self.done.insert(address, Value::Record(Rc::clone(&copy)));
                let fields = record.stored().clone();
                let mut copies = Vec::with_capacity(fields.len());
                for field in &fields {
                    copies.push(self.copy(field)?);
                }
                copy.set_stored(copies);
                Value::Record(copy)
            }
            Value::Vector(vector) => {
                let copy = Vector::new(vector.ty(), Vec::new());
                self.done.insert(address, Value::Vector(Rc::clone(&copy)));
                let items = vector.items().clone();
                let mut copies = Vec::with_capacity(items.len());
                for item in &items {
                    copies.push(self.copy(item)?);
                }
                *copy.items_mut() = copies;
                Value::Vector(copy)
            }
            Value::Table(table) => {
                let copy = Table::new(table.ty(), table.is_single(), table.attrs());
                self.done.insert(address, Value::Table(Rc::clone(&copy)));
                // The captures of a default function are copied.
                let default = table.default_cache.borrow().clone();
                if let Some(default @ Value::Func(_)) = default {
                    let default = self.copy(&default)?;
                    *copy.default_cache.borrow_mut() = Some(default);
                }
                for (key, value, time) in table.entries_with_times() {
                    let key = self.copy(&key)?;
                    let value = self.copy(&value)?;
                    copy.insert(key, value, time);
                }
                Value::Table(copy)
            }
            Value::List(list) => {
                let mut items = Vec::with_capacity(list.items.len());
                for item in &list.items {
                    items.push(self.copy(item)?);
                }
                Value::List(Rc::new(List { ty: list.ty, items }))
            }
            Value::Func(func) => {
                if func.captures.borrow().is_empty() {
                    value.clone()
                } else {
                    let captures = func.captures.borrow().clone();
                    let copy = FuncValue::new(func.func, func.ty);
                    self.done.insert(address, Value::Func(Rc::clone(&copy)));
                    let mut copies = Vec::with_capacity(captures.len());
                    for capture in &captures {
                        copies.push(self.copy(capture)?);
                    }
                    *copy.captures.borrow_mut() = copies;
                    Value::Func(copy)
                }
            }
            Value::Opaque(opaque) => {
                let data = (**opaque.data.borrow()).duplicate()?;
                Value::Opaque(Rc::new(OpaqueValue {
                    ty: opaque.ty,
                    data: std::cell::RefCell::new(data),
                }))
            }
            other => other.clone(),
        };
        self.done.insert(address, copy.clone());
        self.depth -= 1;
        Some(copy)
    }
}
