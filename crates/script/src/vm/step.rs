//! Instructions whose implementation the interpreter and the JIT compiler share: all except moves, arithmetic, jumps and calls.

use std::rc::Rc;

use super::Vm;
use crate::ast::{BinaryOp, ExprKind, UnaryOp};
use crate::code::{Code, NO_REG, Op, Reg, Target};
use crate::evaluate::Stop;
use crate::ids::{ExprId, TypeId};
use crate::value::object::Iter;
use crate::value::{List, Value, Vector};

/// How a frame continues after an instruction.
pub(crate) enum Flow {
    /// With the next instruction.
    Next,
    /// With the instruction at this target.
    Jump(Target),
    /// The frame ends with this result.
    Leave(Value),
}

impl Vm<'_> {
    /// Like [`step`](Self::step), but never inlined, which leaves more processor registers to the interpreter loop.
    #[inline(never)]
    pub(super) fn step_called(
        &mut self,
        code: &Code,
        base: usize,
        pc: usize,
        op: Op,
    ) -> Result<Flow, Stop> {
        self.step(code, base, pc, op)
    }

    /// Runs one instruction of the frame whose registers begin at `base`; `pc` is the index of the next instruction.
    #[inline(always)]
    pub(crate) fn step(
        &mut self,
        code: &Code,
        base: usize,
        pc: usize,
        op: Op,
    ) -> Result<Flow, Stop> {
        macro_rules! reg {
            ($r:expr) => {
                self.m.stack[base + usize::from($r)]
            };
        }
        macro_rules! regs {
            ($r:expr, $n:expr) => {{
                let from = base + usize::from($r);
                &self.m.stack[from..from + usize::from($n)]
            }};
        }
        macro_rules! set {
            ($d:expr, $value:expr) => {{
                let value = $value;
                Value::put(&mut self.m.stack[base + usize::from($d)], value);
            }};
        }
        // Stores the position of the frame before an operation that may report or call. Returns the current expression.
        macro_rules! sync {
            () => {{
                if let Some(frame) = self.m.frames.last_mut() {
                    frame.pc = pc;
                }
                code.sites.get(pc - 1).copied().unwrap_or(ExprId(u32::MAX))
            }};
        }
        match op {
            Op::Global { d, g } => match self.m.globals.get(g.0 as usize) {
                Some(value) if value.is_set() => {
                    Value::put(&mut self.m.stack[base + usize::from(d)], value.clone());
                }
                _ => {
                    let site = sync!();
                    let value = self.unset_global(site, g)?;
                    set!(d, value);
                }
            },
            Op::SetGlobal { g, s } => {
                let value = reg!(s).clone();
                if self.m.whens.is_empty() {
                    self.set_global(g, value);
                } else {
                    self.set_global(g, value);
                    self.global_changed(g);
                }
            }
            Op::Capture { d, i } => {
                let value = self
                    .m
                    .frames
                    .last()
                    .and_then(|frame| frame.value.as_ref())
                    .and_then(|value| value.captures.borrow().get(usize::from(i)).cloned())
                    .unwrap_or_default();
                set!(d, value);
            }
            Op::SetCapture { i, s } => {
                let value = reg!(s).clone();
                if let Some(func) =
                    self.m.frames.last().and_then(|frame| frame.value.as_ref()).cloned()
                {
                    let old = func
                        .captures
                        .borrow_mut()
                        .get_mut(usize::from(i))
                        .map(|slot| std::mem::replace(slot, value));
                    drop(old);
                }
            }
            Op::Check { s } if !reg!(s).is_set() => {
                let site = sync!();
                return Err(self.error_at(site, "value used but not set"));
            }
            Op::Pass { d, s } => {
                let value = reg!(s).clone();
                if !value.is_set() {
                    let site = sync!();
                    return Err(self.error_at(site, "value used but not set"));
                }
                set!(d, value);
            }
            Op::InitLocal { d, local } => {
                sync!();
                if let Some(body) = code.body {
                    let value = self.empty_local(body, local)?;
                    set!(d, value);
                }
            }
            Op::Attrs { s, a } => {
                if let (Value::Table(table), Some(attrs)) = (&reg!(s), code.attrs.get(a as usize)) {
                    let table = Rc::clone(table);
                    table.set_attrs(attrs.clone());
                    self.watch_expiry(&table);
                }
            }
            Op::Default { t, s } => {
                if let Value::Table(table) = &reg!(t) {
                    *table.default_cache.borrow_mut() = Some(reg!(s).clone());
                }
            }
            Op::Binary { op, d, a, b } => {
                if let (BinaryOp::Equal | BinaryOp::NotEqual, a, b) = (op, &reg!(a), &reg!(b))
                    && let Some(same) = super::operators::equals_scalar(a, b)
                {
                    set!(d, Value::Bool(same == (op == BinaryOp::Equal)));
                    return Ok(Flow::Next);
                }
                let (a, b) = (reg!(a).clone(), reg!(b).clone());
                let site = sync!();
                let value = self.binary(site, op, &a, &b)?;
                set!(d, value);
            }
            Op::Unary { op, d, a } => {
                if op == UnaryOp::Size {
                    let size = match &reg!(a) {
                        text @ (Value::Short(_) | Value::Long(_)) => Some(text.str_bytes().len()),
                        Value::Vector(vector) => Some(vector.len()),
                        Value::Table(table) => Some(table.len()),
                        _ => None,
                    };
                    if let Some(size) = size {
                        set!(d, Value::Count(size as u64));
                        return Ok(Flow::Next);
                    }
                }
                let site = sync!();
                let a = reg!(a).clone();
                let value = self.unary(site, op, &a)?;
                set!(d, value);
            }
            Op::Select { d, b } => {
                let site = sync!();
                let [c, x, y] = [reg!(b).clone(), reg!(b + 1).clone(), reg!(b + 2).clone()];
                let value = self.select(site, &c, &x, &y)?;
                set!(d, value);
            }
            Op::Append { d, s } => {
                let added = reg!(s).clone();
                let len = reg!(d).str_bytes().len() + added.str_bytes().len();
                if len > self.m.max_string {
                    let site = sync!();
                    self.check_string_at(site, len)?;
                }
                let slot = &mut reg!(d);
                match slot {
                    Value::Long(text) => {
                        Rc::make_mut(text).push(added.str_bytes());
                    }
                    other => {
                        let text = [other.str_bytes(), added.str_bytes()].concat();
                        *other = Value::string_owned(text);
                    }
                }
            }
            Op::Field { d, r, i } => {
                let value = match &reg!(r) {
                    Value::Record(record) => record.get(usize::from(i)),
                    _ => Value::Unset,
                };
                if value.is_set() {
                    set!(d, value);
                } else {
                    let site = sync!();
                    let record = reg!(r).clone();
                    let value = self.missing_field(site, &record, usize::from(i))?;
                    set!(d, value);
                }
            }
            Op::Path { d, r, i, j } => {
                let site = sync!();
                let outer = match self.p.exprs.find(site).map(|expr| &expr.kind) {
                    Some(ExprKind::Field(outer, _)) => *outer,
                    _ => site,
                };
                let record = reg!(r).clone();
                let inner = self.field_of(outer, &record, usize::from(i))?;
                let value = self.field_of(site, &inner, usize::from(j))?;
                set!(d, value);
            }
            Op::SetField { r, i, s } => {
                let value = reg!(s).clone();
                if let Value::Record(record) = &reg!(r) {
                    let record = Rc::clone(record);
                    record.set(usize::from(i), value);
                    if !self.m.whens.is_empty() {
                        self.object_changed(&Value::Record(record));
                    }
                }
            }
            Op::HasField { d, r, i } => {
                let has = match &reg!(r) {
                    Value::Record(record) => record.has(usize::from(i)),
                    _ => false,
                };
                set!(d, Value::Bool(has));
            }
            Op::JumpHas { r, i, is_set, to } => {
                let has = match &reg!(r) {
                    Value::Record(record) => record.has(usize::from(i)),
                    _ => false,
                };
                if has == is_set {
                    return Ok(Flow::Jump(to));
                }
            }
            Op::JumpSame { a, b, is_same, to }
                if super::operators::equals(&reg!(a), &reg!(b)) == is_same =>
            {
                return Ok(Flow::Jump(to));
            }
            Op::DeleteField { r, i } => {
                sync!();
                if let Value::Record(record) = &reg!(r) {
                    let record = Rc::clone(record);
                    self.reset_field(&record, usize::from(i))?;
                    if !self.m.whens.is_empty() {
                        self.object_changed(&Value::Record(record));
                    }
                }
            }
            Op::IndexTable { d, t, k, n } => {
                let found = match &reg!(t) {
                    Value::Table(table) if self.m.whens.is_empty() && table.is_lookup_pure() => {
                        match regs!(k, n) {
                            [key @ (Value::Addr4(_) | Value::Addr6(_))] if table.has_networks() => {
                                table.get_longest(key)
                            }
                            [Value::Net4(..) | Value::Net6(_)] => Value::Unset,
                            key => table.get_or_unset(key),
                        }
                    }
                    _ => Value::Unset,
                };
                if found.is_set() {
                    set!(d, found);
                } else {
                    let site = sync!();
                    let table = reg!(t).clone();
                    let key = regs!(k, n).to_vec();
                    let value = self.index_table(site, &table, &key)?;
                    set!(d, value);
                }
            }
            Op::SetTable { t, k, n, s } => {
                if let Value::Table(table) = &reg!(t)
                    && self.m.whens.is_empty()
                    && table.is_update_pure()
                    && is_plain_key(regs!(k, n))
                {
                    let list =
                        self.p.types.table(table.ty()).map_or(TypeId::EMPTY_LIST, |t| t.list);
                    let old = table.put(regs!(k, n), reg!(s).clone(), self.m.now, list);
                    drop(old);
                    return Ok(Flow::Next);
                }
                let site = sync!();
                let table = reg!(t).clone();
                let key = regs!(k, n).to_vec();
                let value = reg!(s).clone();
                self.assign_table(site, &table, &key, value)?;
            }
            Op::IndexVector { d, v, i } => {
                let index = match &reg!(i) {
                    Value::Int(index) => usize::try_from(*index).unwrap_or(usize::MAX),
                    other => other.count() as usize,
                };
                let value = match &reg!(v) {
                    Value::Vector(vector) => vector.get(index),
                    _ => Value::Unset,
                };
                if value.is_set() {
                    set!(d, value);
                } else {
                    let site = sync!();
                    let (b, i) = (reg!(v).clone(), reg!(i).clone());
                    let value = self.index(site, &b, &i)?;
                    set!(d, value);
                }
            }
            Op::SetVector { v, i, s } => {
                let site = sync!();
                let (b, i, value) = (reg!(v).clone(), reg!(i).clone(), reg!(s).clone());
                self.assign_index(site, &b, &i, value)?;
            }
            Op::Index { d, b, i } => {
                let site = sync!();
                let (b, i) = (reg!(b).clone(), reg!(i).clone());
                let value = self.index(site, &b, &i)?;
                set!(d, value);
            }
            Op::Slice { d, b, from } => {
                let site = sync!();
                let (b, x, y) = (reg!(b).clone(), reg!(from).clone(), reg!(from + 1).clone());
                let value = self.slice(site, &b, &x, &y)?;
                set!(d, value);
            }
            Op::SetSlice { v, from, s } => {
                let site = sync!();
                let (b, x, y) = (reg!(v).clone(), reg!(from).clone(), reg!(from + 1).clone());
                let value = reg!(s).clone();
                self.assign_slice(site, &b, &x, &y, &value)?;
            }
            Op::InTable { d, t, k, n } => {
                sync!();
                let found = self.table_contains(base, t, k, n);
                set!(d, Value::Bool(found));
            }
            Op::JumpIn { t, k, n, is_in, to } => {
                sync!();
                if self.table_contains(base, t, k, n) == is_in {
                    return Ok(Flow::Jump(to));
                }
            }
            Op::In { d, a, b } => {
                let site = sync!();
                if let (Value::Pattern(pattern), text @ (Value::Short(_) | Value::Long(_))) =
                    (&reg!(a), &reg!(b))
                {
                    let found = pattern.is_in(text.str_bytes());
                    set!(d, Value::Bool(found));
                    return Ok(Flow::Next);
                }
                if let (
                    part @ (Value::Short(_) | Value::Long(_)),
                    text @ (Value::Short(_) | Value::Long(_)),
                ) = (&reg!(a), &reg!(b))
                    && !part.str_bytes().contains(&0)
                {
                    let found = crate::support::text::contains(text.str_bytes(), part.str_bytes());
                    set!(d, Value::Bool(found));
                    return Ok(Flow::Next);
                }
                let (a, b) = (reg!(a).clone(), reg!(b).clone());
                let found = self.contains(site, &a, &b)?;
                set!(d, Value::Bool(found));
            }
            Op::AddTo { d, a, b } => {
                let site = sync!();
                let (a, b) = (reg!(a).clone(), reg!(b).clone());
                let value = self.add_to(site, &a, &b)?;
                set!(d, value);
            }
            Op::RemoveFrom { d, a, b } => {
                let site = sync!();
                let (a, b) = (reg!(a).clone(), reg!(b).clone());
                let value = self.remove_from(site, &a, &b)?;
                set!(d, value);
            }
            Op::AddKey { t, k, n } => {
                let site = sync!();
                let table = reg!(t).clone();
                let key = regs!(k, n).to_vec();
                self.assign_table(site, &table, &key, Value::Unset)?;
            }
            Op::DeleteKey { t, k, n } => {
                if let Value::Table(table) = &reg!(t)
                    && self.m.whens.is_empty()
                    && table.is_update_pure()
                    && is_plain_key(regs!(k, n))
                {
                    let old = table.remove(regs!(k, n));
                    drop(old);
                    return Ok(Flow::Next);
                }
                let site = sync!();
                let table = reg!(t).clone();
                let key = regs!(k, n).to_vec();
                self.delete_key(site, &table, &key)?;
            }
            Op::DeleteAll { s } => {
                sync!();
                let value = reg!(s).clone();
                self.delete_all(&value)?;
            }
            Op::NewRecord { d, b, plan } => {
                sync!();
                if let Some(plan) = code.records.get(plan as usize) {
                    let given = regs!(b, plan.offsets.len() as u16).to_vec();
                    let value = self.new_record(plan.ty, &plan.offsets, given)?;
                    set!(d, value);
                }
            }
            Op::NewTable { d, ty, a } => {
                let attrs = code.attrs.get(a as usize).cloned().flatten();
                let value = self.new_table(ty, attrs);
                set!(d, value);
            }
            Op::Entry { t, k, n, s } => {
                let site = sync!();
                let table = reg!(t).clone();
                let key = regs!(k, n).to_vec();
                let value = if s == NO_REG { Value::Unset } else { reg!(s).clone() };
                self.construct_entry(site, &table, &key, value)?;
            }
            Op::NewVector { d, b, n, ty } => {
                let items = regs!(b, n).to_vec();
                set!(d, Value::Vector(Vector::new(ty, items)));
            }
            Op::NewList { d, b, n, ty } => {
                let items = regs!(b, n).to_vec();
                set!(d, Value::List(Rc::new(List { ty, items })));
            }
            Op::Spread { s, d, n } => {
                let items = match &reg!(s) {
                    Value::List(list) => list.items.clone(),
                    Value::Vector(vector) => vector.items().clone(),
                    other => vec![other.clone()],
                };
                if items.len() != usize::from(n) {
                    let site = sync!();
                    return Err(self.error_at(site, "mismatch in list lengths"));
                }
                for (offset, item) in items.into_iter().enumerate() {
                    set!(d as usize as u16 + offset as u16, item);
                }
            }
            Op::Lambda { d, b, e } => {
                let site = sync!();
                let value = self.make_lambda(site, e, base + usize::from(b))?;
                set!(d, value);
            }
            Op::Begin { stmt } => self.count_statement(stmt),
            Op::Event { g, b, n } => {
                sync!();
                let args = regs!(b, n).to_vec();
                self.post_event(g, args);
            }
            Op::Schedule { g, when, b, n } => {
                sync!();
                let when = reg!(when).clone();
                let args = regs!(b, n).to_vec();
                self.schedule(&when, g, args);
            }
            Op::Coerce { d, s } => {
                let site = sync!();
                let value = reg!(s).clone();
                let value = match self.coerce(site, &value) {
                    // The following instruction skips the use of the missing value.
                    Err(Stop::Error)
                        if std::mem::take(&mut self.m.overflowed)
                            && matches!(code.ops.get(pc), Some(Op::SkipUnset { s, .. }) if *s == d) =>
                    {
                        Value::Unset
                    }
                    value => value?,
                };
                set!(d, value);
            }
            Op::Cast { d, s } => {
                let site = sync!();
                let value = reg!(s).clone();
                let value = self.cast(site, &value)?;
                set!(d, value);
            }
            Op::Is { d, s, ty } => {
                let value = reg!(s).clone();
                let is = self.is_type(&value, ty);
                set!(d, Value::Bool(is));
            }
            Op::Holds { d, s, ty } => {
                let value = reg!(s).clone();
                let holds =
                    self.is_type(&value, ty) || crate::bif::cast_data(self, &value, ty).is_some();
                set!(d, Value::Bool(holds));
            }
            Op::CanCast { d, s, ty } => {
                let value = reg!(s).clone();
                let can = self.can_cast(&value, ty);
                set!(d, Value::Bool(can));
            }
            Op::Print { b, n } => {
                sync!();
                let values = regs!(b, n).to_vec();
                self.print(&values)?;
            }
            Op::Walk { d, s } => {
                let over = reg!(s).clone();
                set!(d, Value::Iter(Iter::new(over)));
            }
            Op::NextEntry { w, k, n, v, to } => {
                let next = match &reg!(w) {
                    Value::Iter(walk) => next_entry(walk),
                    _ => None,
                };
                match next {
                    None => return Ok(Flow::Jump(to)),
                    Some((key, value)) => {
                        if n == 1 {
                            set!(k, key);
                        } else if n > 1
                            && let Value::List(list) = &key
                        {
                            for (offset, part) in list.items.iter().take(usize::from(n)).enumerate()
                            {
                                set!(k + offset as u16, part.clone());
                            }
                        }
                        if v != NO_REG {
                            set!(v, value);
                        }
                    }
                }
            }
            Op::NextItem { w, k, v, to } => {
                let next = match &reg!(w) {
                    Value::Iter(walk) => next_item(walk),
                    _ => None,
                };
                match next {
                    None => return Ok(Flow::Jump(to)),
                    Some((key, value)) => {
                        if k != NO_REG {
                            set!(k, key);
                        }
                        if v != NO_REG {
                            set!(v, value);
                        }
                    }
                }
            }
            Op::When { plan, b, timeout } => {
                sync!();
                if let Some(plan) = code.whens.get(plan as usize).cloned() {
                    let captures = regs!(b, plan.when.captures.len() as u16).to_vec();
                    let wait = if timeout == NO_REG { None } else { Some(reg!(timeout).double()) };
                    let result = self.begin_when(&plan, captures, wait)?;
                    if plan.when.returns {
                        return Ok(Flow::Leave(result.unwrap_or_default()));
                    }
                }
            }
            Op::SkipUnset { s, to } if !reg!(s).is_set() => return Ok(Flow::Jump(to)),
            Op::AssertSkip { c, to } if reg!(c).truth() && !self.watches_assertions() => {
                return Ok(Flow::Jump(to));
            }
            Op::Assert { c, m, stmt } => {
                let site = sync!();
                let holds = reg!(c).truth();
                let message = if m == NO_REG { Value::Unset } else { reg!(m).clone() };
                self.assertion(site, stmt, holds, &message)?;
            }
            Op::Fail { text } => {
                let site = sync!();
                let text = code.consts[text as usize].clone();
                return Err(self.error_at(site, text.str_bytes()));
            }
            // The interpreter and the JIT compiler implement moves, arithmetic, jumps and calls themselves.
            _ => (),
        }
        Ok(Flow::Next)
    }
}

impl Vm<'_> {
    /// Whether the key whose parts are in `n` registers from `k` on is in the table in register `t`.
    #[inline(always)]
    fn table_contains(&mut self, base: usize, t: Reg, k: Reg, n: u8) -> bool {
        let from = base + usize::from(k);
        let key = &self.m.stack[from..from + usize::from(n)];
        let table = &self.m.stack[base + usize::from(t)];
        if let Value::Table(table) = table
            && self.m.whens.is_empty()
            && table.is_lookup_pure()
        {
            if let [address @ (Value::Addr4(_) | Value::Addr6(_))] = key
                && table.has_networks()
            {
                return table.find_longest(address).is_some();
            }
            if table.find(key).is_some() {
                return true;
            }
            let needs_general_lookup = matches!(
                key,
                [Value::Addr4(_)
                    | Value::Addr6(_)
                    | Value::Net4(..)
                    | Value::Net6(_)
                    | Value::Short(_)
                    | Value::Long(_)
                    | Value::List(_)]
            );
            if !needs_general_lookup {
                return false;
            }
        }
        let (table, key) = (table.clone(), key.to_vec());
        self.in_table(&table, &key)
    }
}

/// Whether a key can be stored without copies: all parts are atomic.
fn is_plain_key(key: &[Value]) -> bool {
    !key.iter().any(|part| {
        matches!(
            part,
            Value::Unset | Value::Record(_) | Value::Table(_) | Value::Vector(_) | Value::List(_)
        )
    })
}

fn next_entry(walk: &Iter) -> Option<(Value, Value)> {
    let Value::Table(table) = &walk.over else { return None };
    match &walk.order {
        None => {
            let (next, key, value) = table.next_from(walk.next.get())?;
            walk.next.set(next);
            Some((key, value))
        }
        Some(order) => loop {
            let index = *order.get(walk.next.get())?;
            walk.next.set(walk.next.get() + 1);
            if let Some((key, value, _)) = table.entry_at(index as usize) {
                return Some((key, value));
            }
        },
    }
}

fn next_item(walk: &Iter) -> Option<(Value, Value)> {
    match &walk.over {
        Value::Vector(vector) => loop {
            let index = walk.next.get();
            if index >= vector.len() {
                return None;
            }
            walk.next.set(index + 1);
            let value = vector.get(index);
            if value.is_set() {
                return Some((Value::Count(index as u64), value));
            }
        },
        text => {
            let index = walk.next.get();
            let byte = *text.bytes()?.get(index)?;
            walk.next.set(index + 1);
            Some((Value::string([byte]), Value::Unset))
        }
    }
}
