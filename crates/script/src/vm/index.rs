//! Elements and slices of strings and vectors.

use super::Vm;
use crate::ast::ExprKind;
use crate::describe;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{ExprId, TypeId};
use crate::source::Span;
use crate::types::{AttrKind, Tag, attr_expr};
use crate::value::{Value, Vector};

impl Vm<'_> {
    /// `b[i]`, if the compiler does not know that `b` is a table.
    pub(crate) fn index(&mut self, site: ExprId, b: &Value, i: &Value) -> Result<Value, Stop> {
        match b {
            Value::Vector(vector) => {
                if let Value::Vector(selection) = i {
                    let element = self.p.types.element(selection.ty());
                    let chooses = element.is_some_and(|ty| self.p.types.tag(ty) == Tag::Bool);
                    if chooses && selection.len() != vector.len() {
                        let text = "size mismatch, boolean index and vector";
                        return Err(self.error_at(site, text));
                    }
                    return Ok(select(vector, selection));
                }
                let index = position(i, vector.len());
                let value = index.map(|index| vector.get(index)).unwrap_or_default();
                if value.is_set() {
                    self.record_read(&value);
                    return Ok(value);
                }
                Err(self.error_at(site, "no such index"))
            }
            Value::Short(_) | Value::Long(_) => {
                let text = b.str_bytes();
                let index = position(i, text.len());
                let byte = index.and_then(|index| text.get(index..=index)).unwrap_or(&[]);
                Ok(Value::string(byte))
            }
            Value::List(list) => {
                let index = position(i, list.items.len());
                match index.and_then(|index| list.items.get(index)) {
                    Some(value) => Ok(value.clone()),
                    None => Err(self.error_at(site, "no such index")),
                }
            }
            Value::Table(_) => {
                let key = crate::value::table::parts(i).to_vec();
                self.index_table(site, b, &key)
            }
            _ => Err(self.error_at(site, "value used but not set")),
        }
    }

    /// `b[from:to]`.
    pub(crate) fn slice(
        &mut self,
        site: ExprId,
        b: &Value,
        from: &Value,
        to: &Value,
    ) -> Result<Value, Stop> {
        match b {
            Value::Vector(vector) => {
                let (from, to) = clamp(from, to, vector.len());
                let items = vector.items().get(from..to).unwrap_or(&[]).to_vec();
                Ok(Value::Vector(Vector::new(vector.ty(), items)))
            }
            Value::Short(_) | Value::Long(_) => {
                let text = b.str_bytes();
                let (from, to) = clamp(from, to, text.len());
                Ok(Value::string(text.get(from..to).unwrap_or(&[])))
            }
            _ => Err(self.error_at(site, "value used but not set")),
        }
    }

    /// `b[i] = value` of vectors.
    pub(crate) fn assign_index(
        &mut self,
        site: ExprId,
        b: &Value,
        i: &Value,
        value: Value,
    ) -> Result<(), Stop> {
        match b {
            Value::Vector(vector) => {
                self.check_element(site, vector, &value)?;
                let len = vector.len();
                let index = match i {
                    Value::Int(index) if *index < 0 => match position(i, len) {
                        Some(index) => index,
                        None => return Err(self.error_at(site, "vector index assignment failed")),
                    },
                    other => other.count() as usize,
                };
                // An index that would need too much memory is an error of the script.
                if index >= len && index - len > 1 << 28 {
                    return Err(self.error_at(site, "vector index assignment failed"));
                }
                let old = {
                    let mut items = vector.items_mut();
                    if index >= items.len() {
                        items.resize(index + 1, Value::Unset);
                    }
                    items.get_mut(index).map(|slot| std::mem::replace(slot, value))
                };
                drop(old);
                if !self.m.whens.is_empty() {
                    self.object_changed(b);
                }
                Ok(())
            }
            Value::Table(_) => {
                let key = crate::value::table::parts(i).to_vec();
                self.assign_table(site, b, &key, value)
            }
            _ => Err(self.error_at(site, "value used but not set")),
        }
    }

    /// Reports an error if a value does not fit a vector whose element type is narrower than its static type.
    fn check_element(&mut self, site: ExprId, vector: &Vector, value: &Value) -> Result<(), Stop> {
        let Some(element) = self.p.types.element(vector.ty()) else { return Ok(()) };
        let target = match self.p.exprs.find(site).map(|expr| &expr.kind) {
            Some(ExprKind::Assign(target, _)) => *target,
            _ => site,
        };
        let is_any = self.p.exprs.find(target).is_some_and(|expr| expr.ty == TypeId::ANY);
        let (expected, given) = (self.p.types.tag(element), self.p.types.tag(value.ty()));
        if !is_any
            || matches!(expected, Tag::Any | Tag::Void)
            || expected == given
            || !value.is_set()
        {
            return Ok(());
        }
        let name = match (given, self.p.types.data(value.ty()).name) {
            (Tag::Record, Some(name)) => self.p.name(name).to_owned(),
            (Tag::Record, None) => String::new(),
            _ => describe::tag_name(self.p.types.get(value.ty())).to_owned(),
        };
        let mut text = format!("vector index assignment failed for invalid type '{name}', value: ");
        let shown = crate::value::describe::Form::Short;
        let shown = crate::value::describe::describe(self.p, value, shown);
        text.push_str(&String::from_utf8_lossy(&shown));
        text.push_str(", expression: ");
        text.push_str(&String::from_utf8_lossy(&describe::expr(self.p, target)));
        text.push_str(", call stack: ");
        text.push_str(&self.call_stack());
        let span = self.p.exprs.find(target).map_or(Span::NOWHERE, |expr| expr.span);
        self.emit(Severity::RuntimeError, span, text.into_bytes());
        Err(Stop::Error)
    }

    /// `v[from:to] = value`.
    pub(crate) fn assign_slice(
        &mut self,
        site: ExprId,
        v: &Value,
        from: &Value,
        to: &Value,
        value: &Value,
    ) -> Result<(), Stop> {
        let (Value::Vector(vector), Value::Vector(with)) = (v, value) else {
            return Err(self.error_at(site, "value used but not set"));
        };
        let (from, to) = clamp(from, to, vector.len());
        let with = with.items().clone();
        let removed: Vec<Value> = vector.items_mut().splice(from..to, with).collect();
        drop(removed);
        Ok(())
    }

    /// `r$f`.
    pub(crate) fn field_of(
        &mut self,
        site: ExprId,
        record: &Value,
        index: usize,
    ) -> Result<Value, Stop> {
        let value = record.record().map_or(Value::Unset, |record| record.get(index));
        if value.is_set() { Ok(value) } else { self.missing_field(site, record, index) }
    }

    /// `r$f` if the field is unset: the default of the field, or an error.
    pub(crate) fn missing_field(
        &mut self,
        site: ExprId,
        record: &Value,
        index: usize,
    ) -> Result<Value, Stop> {
        let Value::Record(record) = record else {
            // A field of a local is read without a check of the local: an unset local is reported here.
            let at = match self.p.exprs.find(site).map(|expr| &expr.kind) {
                Some(ExprKind::Field(of, _))
                    if matches!(self.p.exprs[*of].kind, ExprKind::Local(..)) =>
                {
                    *of
                }
                _ => site,
            };
            return Err(self.error_at(at, "value used but not set"));
        };
        let default = self
            .p
            .types
            .record(record.ty())
            .and_then(|ty| ty.fields.get(index))
            .and_then(|field| attr_expr(&field.attrs, AttrKind::Default));
        match default {
            Some(expr) => self.eval(expr),
            None => Err(self.error_at(site, "field value missing")),
        }
    }
}

/// The position of an index; negative indexes count from the end.
fn position(index: &Value, len: usize) -> Option<usize> {
    let index = match index {
        Value::Int(index) => *index,
        // Zeek interprets a count above 2^63 - 1 as a negative number.
        other => other.count() as i64,
    };
    let at = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < len)
}

/// The bounds of a slice, clamped to the length.
fn clamp(from: &Value, to: &Value, len: usize) -> (usize, usize) {
    let bound = |value: &Value| {
        let index = match value {
            Value::Int(index) => *index,
            other => other.count() as i64,
        };
        let len = len as i64;
        let at = if index < 0 { index.saturating_add(len) } else { index };
        at.clamp(0, len) as usize
    };
    let (from, to) = (bound(from), bound(to));
    (from, to.max(from))
}

/// `v[w]`: the elements at the indexes in `w`, or those where a vector of `bool` is true.
fn select(vector: &Vector, selection: &Vector) -> Value {
    let mut items = Vec::new();
    for (index, choice) in selection.items().iter().enumerate() {
        match choice {
            Value::Bool(true) => {
                items.push(Value::Unset);
                items.push(vector.get(index));
            }
            Value::Bool(false) => (),
            Value::Unset => items.push(Value::Unset),
            other => {
                let at = position(other, vector.len());
                items.push(at.map(|at| vector.get(at)).unwrap_or_default());
            }
        }
    }
    Value::Vector(Vector::new(vector.ty(), items))
}
