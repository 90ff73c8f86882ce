//! Code of expressions.

use super::compile::{Compiler, Slot, table_attrs};
use super::{Cond, NO_REG, Op, RecordPlan, Reg};
use crate::ast::{AddTo, BinaryOp, Coercion, ExprKind, UnaryOp};
use crate::ids::{ExprId, LocalId};
use crate::literal::Literal;
use crate::symbols::GlobalKind;
use crate::types::Tag;
use crate::value::{FuncValue, Value};

impl Compiler<'_> {
    /// A register with the value of an expression: a new one, or the register of a local.
    pub(super) fn expr(&mut self, id: ExprId) -> Reg {
        if let ExprKind::Local(local, _) = self.p.exprs[id].kind
            && let Slot::Reg(s) = self.slot(local)
        {
            if self.may_be_unset(local) {
                self.site = id;
                self.emit(Op::Check { s });
            }
            return s;
        }
        if let ExprKind::Coerce(Coercion::ToAny, inner) = self.p.exprs[id].kind {
            return self.expr(inner);
        }
        let d = self.temp();
        self.expr_to(id, d);
        d
    }

    /// Evaluates an expression for its side effects.
    pub(super) fn effect(&mut self, id: ExprId) {
        let mark = self.next;
        match &self.p.exprs[id].kind {
            ExprKind::Assign(left, right) => {
                self.assign(id, *left, *right);
            }
            ExprKind::Unary(UnaryOp::Increment, operand) => self.step(id, *operand, 1),
            ExprKind::Unary(UnaryOp::Decrement, operand) => self.step(id, *operand, -1),
            ExprKind::AddTo(..) => self.add_to(id),
            _ => {
                let d = self.temp();
                self.expr_to(id, d);
            }
        }
        self.next = mark;
    }

    /// Whether evaluating an expression may change locals.
    fn changes_locals(&self, id: ExprId) -> bool {
        match &self.p.exprs[id].kind {
            ExprKind::Literal(_)
            | ExprKind::Local(..)
            | ExprKind::Global(_)
            | ExprKind::TypeValue(_) => false,
            ExprKind::Unary(op, a) => {
                matches!(op, UnaryOp::Increment | UnaryOp::Decrement) || self.changes_locals(*a)
            }
            ExprKind::Binary(_, a, b) | ExprKind::In(a, b) | ExprKind::Index(a, b) => {
                self.changes_locals(*a) || self.changes_locals(*b)
            }
            ExprKind::Field(a, _) | ExprKind::HasField(a, _) | ExprKind::Coerce(_, a) => {
                self.changes_locals(*a)
            }
            ExprKind::Call(call) => call.args.iter().any(|arg| self.changes_locals(*arg)),
            ExprKind::List(list) => list.iter().any(|item| self.changes_locals(*item)),
            _ => true,
        }
    }

    /// Registers of two operands, evaluated in order.
    fn operand_pair(&mut self, a: ExprId, b: ExprId) -> (Reg, Reg) {
        let mut ra = self.expr(a);
        if usize::from(ra) < self.body.map_or(0, |body| body.locals.len()) && self.changes_locals(b)
        {
            let d = self.temp();
            self.emit(Op::Move { d, s: ra });
            ra = d;
        }
        let rb = self.expr(b);
        (ra, rb)
    }

    /// Evaluates an expression into `d`. Only the last instruction writes `d`.
    pub(super) fn expr_to(&mut self, id: ExprId, d: Reg) {
        let p = self.p;
        let mark = self.next;
        let expr = &p.exprs[id];
        match &expr.kind {
            ExprKind::Error | ExprKind::Blank | ExprKind::FieldAssign(..) => {
                let text = self.constant(Value::string("value used but not set"));
                self.site = id;
                self.emit(Op::Fail { text });
            }
            ExprKind::Literal(literal) => {
                let value = match Value::literal(literal, expr.ty) {
                    // Each evaluation of a pattern literal yields its own object.
                    Value::Short(text) => Value::Short(text.marked(id.0)),
                    other => other,
                };
                self.load(d, value);
            }
            ExprKind::TypeValue(ty) => self.load(d, Value::Type(*ty)),
            ExprKind::Local(local, _) => match self.slot(*local) {
                Slot::Reg(s) if s != d && self.may_be_unset(*local) => {
                    self.site = id;
                    self.emit(Op::Pass { d, s });
                }
                _ => {
                    self.load_local(*local, d);
                    if self.may_be_unset(*local) {
                        self.site = id;
                        self.emit(Op::Check { s: d });
                    }
                }
            },
            ExprKind::Global(global) => {
                let data = &p.globals[*global];
                match data.kind {
                    GlobalKind::EnumValue(value) => self.load(d, Value::Enum(data.ty, value)),
                    GlobalKind::Type => self.load(d, Value::Type(data.ty)),
                    GlobalKind::Function(func)
                        if p.functions
                            .find(func)
                            .is_some_and(|function| !function.bodies.is_empty()) =>
                    {
                        self.load(d, Value::Func(FuncValue::new(func, data.ty)));
                    }
                    _ => {
                        self.site = id;
                        self.emit(Op::Global { d, g: *global });
                    }
                }
            }
            ExprKind::Unary(op, operand) => self.unary(id, *op, *operand, d),
            ExprKind::Binary(op, a, b) => self.binary(id, *op, *a, *b, d),
            ExprKind::Conditional(condition, a, b) => {
                if self.tag(*condition) == Tag::Vector {
                    let (b3, _) = self.consecutive(&[*condition, *a, *b]);
                    self.site = id;
                    self.emit(Op::Select { d, b: b3 });
                } else {
                    let unless = self.jump_unless(*condition);
                    self.expr_to(*a, d);
                    let end = self.emit(Op::Jump { to: 0 });
                    self.patch_jumps(unless);
                    self.expr_to(*b, d);
                    self.patch_jump(end);
                }
            }
            ExprKind::In(key, container) => {
                if self.tag(*container) == Tag::Table {
                    let (t, k, n) = self.table_and_key(*key, *container);
                    self.site = id;
                    self.emit(Op::InTable { d, t, k, n });
                } else {
                    let key = match &p.exprs[*key].kind {
                        ExprKind::List(parts) => parts.first().copied().unwrap_or(*key),
                        _ => *key,
                    };
                    let (a, b) = self.operand_pair(key, *container);
                    self.site = id;
                    self.emit(Op::In { d, a, b });
                }
            }
            ExprKind::Index(base, index) => match self.tag(*base) {
                Tag::Table => {
                    let parts = self.key_parts(*index, *base);
                    let t = self.expr(*base);
                    let (k, n) = self.consecutive(&parts);
                    self.site = id;
                    self.emit(Op::IndexTable { d, t, k, n: n as u8 });
                }
                Tag::Vector if self.tag(self.single(*index)) != Tag::Vector => {
                    let (v, i) = self.operand_pair(*base, self.single(*index));
                    self.site = id;
                    self.emit(Op::IndexVector { d, v, i });
                }
                _ => {
                    let (b, i) = self.operand_pair(*base, self.single(*index));
                    self.site = id;
                    self.emit(Op::Index { d, b, i });
                }
            },
            ExprKind::Slice(base, from, to) => {
                let b = self.expr(*base);
                let (from, _) = self.consecutive(&[*from, *to]);
                self.site = id;
                self.emit(Op::Slice { d, b, from });
            }
            ExprKind::Field(record, offset) => {
                if let ExprKind::Field(outer, first) = &p.exprs[*record].kind {
                    let r = self.expr(*outer);
                    self.site = id;
                    self.emit(Op::Path { d, r, i: *first as u16, j: *offset as u16 });
                } else {
                    let r = self.expr(*record);
                    self.site = id;
                    self.emit(Op::Field { d, r, i: *offset as u16 });
                }
            }
            ExprKind::HasField(record, offset) => {
                let r = self.expr(*record);
                self.site = id;
                self.emit(Op::HasField { d, r, i: *offset as u16 });
            }
            ExprKind::Record(constructor) => {
                let exprs: Vec<ExprId> = constructor.fields.iter().map(|(_, e)| *e).collect();
                let offsets = constructor.fields.iter().map(|(offset, _)| *offset).collect();
                let b = self.consecutive_fields(&exprs);
                self.records.push(RecordPlan { ty: expr.ty, offsets });
                let plan = (self.records.len() - 1) as u32;
                self.site = id;
                self.emit(Op::NewRecord { d, b, plan });
            }
            ExprKind::Table(constructor) => {
                let a = self.attr_index(table_attrs(&constructor.attrs));
                let t = self.temp();
                self.site = id;
                self.emit(Op::NewTable { d: t, ty: expr.ty, a });
                self.captured_default(&constructor.attrs, t);
                for (key, value) in &constructor.entries {
                    let mark = self.next;
                    let (k, n) = self.consecutive(key);
                    let s = self.expr(*value);
                    self.site = id;
                    self.emit(Op::Entry { t, k, n: n as u8, s });
                    self.next = mark;
                }
                self.emit(Op::Move { d, s: t });
            }
            ExprKind::Set(constructor) => {
                let a = self.attr_index(table_attrs(&constructor.attrs));
                let t = self.temp();
                self.site = id;
                self.emit(Op::NewTable { d: t, ty: expr.ty, a });
                self.captured_default(&constructor.attrs, t);
                for key in &constructor.entries {
                    let mark = self.next;
                    let (k, n) = self.consecutive(key);
                    self.site = id;
                    self.emit(Op::Entry { t, k, n: n as u8, s: NO_REG });
                    self.next = mark;
                }
                self.emit(Op::Move { d, s: t });
            }
            ExprKind::Vector(items) => {
                let (b, n) = self.consecutive(items);
                self.site = id;
                self.emit(Op::NewVector { d, b, n, ty: expr.ty });
            }
            ExprKind::List(items) => {
                if let [one] = items.as_slice() {
                    self.expr_to(*one, d);
                } else {
                    let (b, n) = self.consecutive(items);
                    self.site = id;
                    self.emit(Op::NewList { d, b, n, ty: expr.ty });
                }
            }
            ExprKind::Assign(left, right) => {
                let s = self.assign(id, *left, *right);
                if s != d {
                    self.emit(Op::Move { d, s });
                }
            }
            ExprKind::AddTo(_, left, _) => {
                self.add_to(id);
                self.expr_to(*left, d);
            }
            ExprKind::RemoveFrom(left, right) if self.tag(*left) != Tag::Table => {
                let d = match p.exprs[*left].kind {
                    ExprKind::Local(local, _) => match self.slot(local) {
                        Slot::Reg(slot) => slot,
                        Slot::Capture(_) => d,
                    },
                    _ => d,
                };
                self.binary(id, BinaryOp::Subtract, *left, *right, d);
                self.site = id;
                self.store(*left, d);
            }
            ExprKind::RemoveFrom(left, right) => {
                let (a, b) = self.operand_pair(*left, *right);
                self.site = id;
                self.emit(Op::RemoveFrom { d, a, b });
            }
            ExprKind::Add(operand) => {
                if let ExprKind::Index(base, index) = &p.exprs[*operand].kind {
                    let parts = self.key_parts(*index, *base);
                    let t = self.expr(*base);
                    let (k, n) = self.consecutive(&parts);
                    self.site = *operand;
                    self.emit(Op::AddKey { t, k, n: n as u8 });
                }
            }
            ExprKind::Delete(operand) => match &p.exprs[*operand].kind {
                ExprKind::Index(base, index) if self.tag(*base) == Tag::Table => {
                    let parts = self.key_parts(*index, *base);
                    let t = self.expr(*base);
                    let (k, n) = self.consecutive(&parts);
                    self.site = *operand;
                    self.emit(Op::DeleteKey { t, k, n: n as u8 });
                }
                ExprKind::Field(record, offset) => {
                    let r = self.expr(*record);
                    self.site = *operand;
                    self.emit(Op::DeleteField { r, i: *offset as u16 });
                }
                _ => {
                    let s = self.expr(*operand);
                    self.site = *operand;
                    self.emit(Op::DeleteAll { s });
                }
            },
            ExprKind::Call(call) => {
                let known = match p.exprs[call.callee].kind {
                    ExprKind::Global(global) => match p.globals[global].kind {
                        GlobalKind::Function(func) => Some(func),
                        _ => None,
                    },
                    _ => None,
                };
                match known {
                    Some(f) => {
                        let (b, n) = self.consecutive(&call.args);
                        self.site = id;
                        if self.may_return_no_value(f, 0) {
                            self.or_skip(d, |s| Op::Call { d: s, b, n: n as u8, f });
                        } else {
                            self.emit(Op::Call { d, b, n: n as u8, f });
                        }
                    }
                    None => {
                        let f = self.temp();
                        self.expr_to(call.callee, f);
                        let (b, n) = self.consecutive(&call.args);
                        self.site = id;
                        self.emit(Op::CallValue { d, b, n: n as u8, f });
                    }
                }
            }
            ExprKind::Lambda(lambda) => {
                let b = Reg::try_from(self.next).unwrap_or(Reg::MAX - 1);
                for capture in &lambda.captures {
                    let d = self.temp();
                    self.load_local(capture.outer, d);
                }
                self.site = id;
                self.emit(Op::Lambda { d, b, e: id });
            }
            ExprKind::Event(event) => {
                let (b, n) = self.consecutive(&event.args);
                self.site = id;
                self.emit(Op::Event { g: event.event, b, n: n as u8 });
            }
            ExprKind::Schedule(when, event) => {
                let when = self.expr(*when);
                let (b, n) = self.consecutive(&event.args);
                self.site = id;
                self.emit(Op::Schedule { g: event.event, when, b, n: n as u8 });
            }
            ExprKind::Coerce(kind, operand) => self.coerce(id, *kind, *operand, d),
            ExprKind::Cast(operand) => {
                let s = self.expr(*operand);
                self.site = id;
                self.emit(Op::Cast { d, s });
            }
            ExprKind::Is(operand, ty) => {
                let s = self.expr(*operand);
                self.site = id;
                self.emit(Op::Holds { d, s, ty: *ty });
            }
            ExprKind::CanCast(operand, ty) => {
                let s = self.expr(*operand);
                self.site = id;
                self.emit(Op::CanCast { d, s, ty: *ty });
            }
        }
        self.next = mark;
    }

    pub(super) fn load(&mut self, d: Reg, value: Value) {
        let k = self.constant(value);
        self.emit(Op::Const { d, k });
    }

    /// The only expression of an index list.
    fn single(&self, index: ExprId) -> ExprId {
        match &self.p.exprs[index].kind {
            ExprKind::List(parts) => match parts.as_slice() {
                [one] => *one,
                _ => index,
            },
            _ => index,
        }
    }

    /// Registers with a table and the parts of a key.
    fn table_and_key(&mut self, key: ExprId, table: ExprId) -> (Reg, Reg, u8) {
        let parts = self.key_parts(key, table);
        let (k, n) = self.consecutive(&parts);
        (self.expr(table), k, n as u8)
    }

    /// The expressions of the parts of a table's index.
    fn key_parts(&self, index: ExprId, table: ExprId) -> Vec<ExprId> {
        let types = self.p.types.table(self.p.exprs[table].ty).map_or(0, |table| table.index.len());
        match &self.p.exprs[index].kind {
            ExprKind::List(parts) if parts.len() == types || types == 0 => parts.clone(),
            // A list as the only key: all parts of the index of a table in one value.
            ExprKind::List(parts) if parts.len() == 1 => parts.clone(),
            _ => vec![index],
        }
    }

    fn coerce(&mut self, id: ExprId, kind: Coercion, operand: ExprId, d: Reg) {
        let p = self.p;
        if kind == Coercion::ToAny {
            self.expr_to(operand, d);
            return;
        }
        if kind == Coercion::Arithmetic
            && let ExprKind::Literal(literal) = &p.exprs[operand].kind
        {
            let value = Value::literal(literal, p.exprs[operand].ty);
            if let Some(value) = convert_number(&value, p.types.tag(p.exprs[id].ty)) {
                self.load(d, value);
                return;
            }
        }
        let s = self.expr(operand);
        self.site = id;
        let [from, to] = [operand, id].map(|expr| p.types.tag(p.exprs[expr].ty));
        let may_overflow = from != to && matches!(to, Tag::Int | Tag::Count);
        if self.body.is_some() && kind == Coercion::Arithmetic && may_overflow {
            // A value that overflows is unset.
            self.or_skip(d, |d| Op::Coerce { d, s });
        } else {
            self.emit(Op::Coerce { d, s });
        }
    }

    /// Emits an instruction that may yield no value, which skips the rest of the statement and leaves a local
    /// unchanged.
    fn or_skip(&mut self, d: Reg, op: impl FnOnce(Reg) -> Op) {
        let is_local = self.body.is_some_and(|body| usize::from(d) < body.locals.len());
        let s = if is_local { self.temp() } else { d };
        self.emit(op(s));
        let skip = self.emit(Op::SkipUnset { s, to: 0 });
        self.skips.push(skip);
        if is_local {
            self.emit(Op::Move { d, s });
        }
    }

    fn small_count(&self, id: ExprId) -> Option<u16> {
        match &self.p.exprs[id].kind {
            ExprKind::Literal(Literal::Count(value)) => u16::try_from(*value).ok(),
            _ => None,
        }
    }

    fn small_int(&self, id: ExprId) -> Option<i16> {
        let literal = match &self.p.exprs[id].kind {
            ExprKind::Literal(literal) => literal,
            ExprKind::Coerce(Coercion::Arithmetic, inner) => match &self.p.exprs[*inner].kind {
                ExprKind::Literal(literal) => literal,
                _ => return None,
            },
            _ => return None,
        };
        match literal {
            Literal::Int(value) => i16::try_from(*value).ok(),
            Literal::Count(value) => i16::try_from(*value).ok(),
            _ => None,
        }
    }

    fn unary(&mut self, id: ExprId, op: UnaryOp, operand: ExprId, d: Reg) {
        match op {
            UnaryOp::Increment | UnaryOp::Decrement => {
                self.step(id, operand, if op == UnaryOp::Increment { 1 } else { -1 });
                self.expr_to(operand, d);
            }
            UnaryOp::Not if self.tag(operand) == Tag::Bool => {
                let a = self.expr(operand);
                self.site = id;
                self.emit(Op::Not { d, a });
            }
            _ => {
                let a = self.expr(operand);
                self.site = id;
                self.emit(Op::Unary { op, d, a });
            }
        }
    }

    /// `++x` and `--x`.
    fn step(&mut self, id: ExprId, operand: ExprId, by: i64) {
        let mark = self.next;
        let tag = self.tag(operand);
        if let ExprKind::Local(local, _) = self.p.exprs[operand].kind
            && let Slot::Reg(a) = self.slot(local)
        {
            if self.may_be_unset(local) {
                self.site = operand;
                self.emit(Op::Check { s: a });
            }
            self.site = id;
            self.emit(step_op(tag, a, a, by, id));
        } else {
            let d = self.temp();
            let a = self.expr(operand);
            self.site = id;
            self.emit(step_op(tag, d, a, by, id));
            self.store(operand, d);
        }
        self.next = mark;
    }

    fn binary(&mut self, id: ExprId, op: BinaryOp, a: ExprId, b: ExprId, d: Reg) {
        let (ta, tb) = (self.tag(a), self.tag(b));
        if matches!(op, BinaryOp::And | BinaryOp::Or) && ta == Tag::Bool && tb == Tag::Bool {
            let unless = self.jump_unless(id);
            self.load(d, Value::Bool(true));
            let end = self.emit(Op::Jump { to: 0 });
            self.patch_jumps(unless);
            self.load(d, Value::Bool(false));
            self.patch_jump(end);
            return;
        }
        if ta == Tag::Count
            && tb == Tag::Count
            && let Some(k) = self.small_count(b)
        {
            let fast: Option<fn(Reg, Reg, u16) -> Op> = match op {
                BinaryOp::Add => Some(|d, a, k| Op::AddCK { d, a, k }),
                BinaryOp::Subtract => Some(|d, a, k| Op::SubCK { d, a, k }),
                BinaryOp::Multiply => Some(|d, a, k| Op::MulCK { d, a, k }),
                BinaryOp::Divide if k > 0 => Some(|d, a, k| Op::DivCK { d, a, k }),
                BinaryOp::Modulo if k > 0 => Some(|d, a, k| Op::ModCK { d, a, k }),
                _ => None,
            };
            if let Some(make) = fast {
                let a = self.expr(a);
                self.site = id;
                self.emit(make(d, a, k));
                return;
            }
        }
        let (ra, rb) = self.operand_pair(a, b);
        self.site = id;
        let (a, b) = (ra, rb);
        let op = match (ta, tb, op) {
            (Tag::Count, Tag::Count, BinaryOp::Add) => Op::AddC { d, a, b },
            (Tag::Count, Tag::Count, BinaryOp::Subtract) => Op::SubC { d, a, b },
            (Tag::Count, Tag::Count, BinaryOp::Multiply) => Op::MulC { d, a, b },
            (Tag::Count, Tag::Count, BinaryOp::Divide) => Op::DivC { d, a, b },
            (Tag::Count, Tag::Count, BinaryOp::Modulo) => Op::ModC { d, a, b },
            (Tag::Int, Tag::Int, BinaryOp::Add) => Op::AddI { d, a, b },
            (Tag::Int, Tag::Int, BinaryOp::Subtract) => Op::SubI { d, a, b },
            (Tag::Int, Tag::Int, BinaryOp::Multiply) => Op::MulI { d, a, b },
            (Tag::Double, Tag::Double, BinaryOp::Add) => Op::AddD { d, a, b },
            (Tag::Double, Tag::Double, BinaryOp::Subtract) => Op::SubD { d, a, b },
            (Tag::Double, Tag::Double, BinaryOp::Multiply) => Op::MulD { d, a, b },
            (Tag::Double, Tag::Double, BinaryOp::Divide) => Op::DivD { d, a, b },
            (ta, tb, op) => match (condition(op), ta, tb) {
                (Some(c), Tag::Count, Tag::Count) => Op::CmpC { c, d, a, b },
                (Some(c), Tag::Int, Tag::Int) => Op::CmpI { c, d, a, b },
                (
                    Some(c),
                    Tag::Double | Tag::Time | Tag::Interval,
                    Tag::Double | Tag::Time | Tag::Interval,
                ) => Op::CmpD { c, d, a, b },
                _ => Op::Binary { op, d, a, b },
            },
        };
        self.emit(op);
    }

    /// Emits jumps that are taken if a condition is false; returns them.
    pub(super) fn jump_unless(&mut self, id: ExprId) -> Vec<usize> {
        let mark = self.next;
        let mut jumps = Vec::new();
        match &self.p.exprs[id].kind {
            ExprKind::Unary(UnaryOp::Not, inner) if self.tag(*inner) == Tag::Bool => {
                jumps = self.jump_if(*inner);
            }
            ExprKind::Binary(BinaryOp::And, a, b)
                if self.tag(*a) == Tag::Bool && self.tag(*b) == Tag::Bool =>
            {
                jumps = self.jump_unless(*a);
                jumps.extend(self.jump_unless(*b));
            }
            ExprKind::Binary(BinaryOp::Or, a, b)
                if self.tag(*a) == Tag::Bool && self.tag(*b) == Tag::Bool =>
            {
                let holds = self.jump_if(*a);
                jumps = self.jump_unless(*b);
                self.patch_jumps(holds);
            }
            _ => jumps.push(self.jump_where(id, false)),
        }
        self.next = mark;
        jumps
    }

    fn jump_if(&mut self, id: ExprId) -> Vec<usize> {
        let mark = self.next;
        let mut jumps = Vec::new();
        match &self.p.exprs[id].kind {
            ExprKind::Unary(UnaryOp::Not, inner) if self.tag(*inner) == Tag::Bool => {
                jumps = self.jump_unless(*inner);
            }
            ExprKind::Binary(BinaryOp::Or, a, b)
                if self.tag(*a) == Tag::Bool && self.tag(*b) == Tag::Bool =>
            {
                jumps = self.jump_if(*a);
                jumps.extend(self.jump_if(*b));
            }
            ExprKind::Binary(BinaryOp::And, a, b)
                if self.tag(*a) == Tag::Bool && self.tag(*b) == Tag::Bool =>
            {
                let fails = self.jump_unless(*a);
                jumps = self.jump_if(*b);
                self.patch_jumps(fails);
            }
            _ => jumps.push(self.jump_where(id, true)),
        }
        self.next = mark;
        jumps
    }

    /// A jump that is taken if a simple condition has the result `holds`.
    fn jump_where(&mut self, id: ExprId, holds: bool) -> usize {
        let op = match &self.p.exprs[id].kind {
            ExprKind::Binary(op, a, b) => {
                if let Some(jump) = self.compare_jump(id, *op, *a, *b, holds) {
                    return jump;
                }
                self.jump_by_value(id, holds)
            }
            ExprKind::HasField(record, offset) => {
                let r = self.expr(*record);
                Op::JumpHas { r, i: *offset as u16, is_set: holds, to: 0 }
            }
            ExprKind::In(key, container) if self.tag(*container) == Tag::Table => {
                let (t, k, n) = self.table_and_key(*key, *container);
                Op::JumpIn { t, k, n, is_in: holds, to: 0 }
            }
            _ => self.jump_by_value(id, holds),
        };
        self.site = id;
        self.emit(op)
    }

    /// Like [`Self::jump_where`], by the value of the expression.
    fn jump_by_value(&mut self, id: ExprId, holds: bool) -> Op {
        let s = self.expr(id);
        if holds { Op::JumpIf { s, to: 0 } } else { Op::JumpIfNot { s, to: 0 } }
    }

    fn compare_jump(
        &mut self,
        id: ExprId,
        op: BinaryOp,
        a: ExprId,
        b: ExprId,
        holds: bool,
    ) -> Option<usize> {
        let c = condition(op)?;
        let c = if holds { c } else { c.opposite() };
        match (self.tag(a), self.tag(b)) {
            (ta, tb)
                if ta == tb
                    && INFALLIBLE_EQUALITY.contains(&ta)
                    && matches!(c, Cond::Eq | Cond::Ne) =>
            {
                let (a, b) = self.operand_pair(a, b);
                self.site = id;
                Some(self.emit(Op::JumpSame { a, b, is_same: c == Cond::Eq, to: 0 }))
            }
            (Tag::Count, Tag::Count) => {
                if let Some(k) = self.small_count(b) {
                    let a = self.expr(a);
                    self.site = id;
                    return Some(self.emit(Op::JumpCK { c, a, k, to: 0 }));
                }
                let (a, b) = self.operand_pair(a, b);
                self.site = id;
                Some(self.emit(Op::JumpC { c, a, b, to: 0 }))
            }
            (Tag::Int, Tag::Int) => {
                if let Some(k) = self.small_int(b) {
                    let a = self.expr(a);
                    self.site = id;
                    return Some(self.emit(Op::JumpIK { c, a, k, to: 0 }));
                }
                let (a, b) = self.operand_pair(a, b);
                self.site = id;
                Some(self.emit(Op::JumpI { c, a, b, to: 0 }))
            }
            _ => None,
        }
    }

    /// `left = right`; returns the register of the value.
    fn assign(&mut self, id: ExprId, left: ExprId, right: ExprId) -> Reg {
        let p = self.p;
        if let ExprKind::Local(local, _) = p.exprs[left].kind {
            let attrs = self.declared_attrs(local, right);
            let d = match self.slot(local) {
                Slot::Reg(d) => d,
                Slot::Capture(_) => self.temp(),
            };
            // A list that is stored is one value.
            let first = self.here() as usize;
            self.expr_to(right, d);
            let mut ops = self.ops.iter().skip(first);
            if ops.any(|op| matches!(op, Op::SkipUnset { .. })) && !self.unset.contains(&local) {
                self.unset.push(local);
            }
            self.site = id;
            if let Some(a) = attrs {
                self.emit(Op::Attrs { s: d, a });
                if let Some(data) = self.body.and_then(|body| body.locals.find(local)) {
                    self.captured_default(&data.attrs, d);
                }
            }
            if let Slot::Capture(i) = self.slot(local) {
                self.emit(Op::SetCapture { i, s: d });
            }
            return d;
        }
        let s = self.expr(right);
        self.site = id;
        self.store(left, s);
        s
    }

    /// The attributes of a local's declaration, if its initializer makes a new table.
    fn declared_attrs(&mut self, local: LocalId, right: ExprId) -> Option<u32> {
        let attrs = table_attrs(&self.body?.locals.find(local)?.attrs)?;
        let constructs =
            |id: ExprId| matches!(self.p.exprs[id].kind, ExprKind::Table(_) | ExprKind::Set(_));
        let fresh = constructs(right)
            || matches!(self.p.exprs[right].kind, ExprKind::Coerce(_, inner) if constructs(inner));
        fresh.then(|| self.attr_index(Some(attrs)))
    }

    /// Stores a register's value in the target of an assignment.
    fn store(&mut self, left: ExprId, s: Reg) {
        let p = self.p;
        let mark = self.next;
        match &p.exprs[left].kind {
            ExprKind::Local(local, _) => self.store_local(*local, s),
            ExprKind::Global(global) => {
                self.emit(Op::SetGlobal { g: *global, s });
            }
            ExprKind::Index(base, index) => {
                let outer = self.site;
                if self.tag(*base) == Tag::Table {
                    let parts = self.key_parts(*index, *base);
                    let t = self.expr(*base);
                    let (k, n) = self.consecutive(&parts);
                    self.site = outer;
                    self.emit(Op::SetTable { t, k, n: n as u8, s });
                } else {
                    let (v, i) = self.operand_pair(*base, self.single(*index));
                    self.site = outer;
                    self.emit(Op::SetVector { v, i, s });
                }
            }
            ExprKind::Field(record, offset) => {
                let outer = self.site;
                let r = self.expr(*record);
                self.site = outer;
                self.emit(Op::SetField { r, i: *offset as u16, s });
            }
            ExprKind::List(names) => {
                let d = Reg::try_from(self.next).unwrap_or(Reg::MAX - 1);
                let regs: Vec<Reg> = names.iter().map(|_| self.temp()).collect();
                self.emit(Op::Spread { s, d, n: names.len() as u16 });
                for (name, reg) in names.iter().zip(regs) {
                    self.store(*name, reg);
                }
            }
            ExprKind::Coerce(_, inner) => self.store(*inner, s),
            ExprKind::Blank => (),
            _ => {
                let text = self.constant(Value::string("illegal assignment"));
                self.emit(Op::Fail { text });
            }
        }
        self.next = mark;
    }

    fn add_to(&mut self, id: ExprId) {
        let p = self.p;
        let mark = self.next;
        let ExprKind::AddTo(kind, left, right) = &p.exprs[id].kind else { return };
        match kind {
            AddTo::Concatenate => {
                if let ExprKind::Local(local, _) = p.exprs[*left].kind
                    && let Slot::Reg(d) = self.slot(local)
                {
                    let s = self.expr(*right);
                    self.expr(*left);
                    self.site = id;
                    self.emit(Op::Append { d, s });
                } else {
                    let d = self.temp();
                    let (a, b) = self.operand_pair(*left, *right);
                    self.site = id;
                    self.emit(Op::Binary { op: BinaryOp::Add, d, a, b });
                    self.store(*left, d);
                }
            }
            AddTo::Arithmetic => {
                let d = match p.exprs[*left].kind {
                    ExprKind::Local(local, _) => match self.slot(local) {
                        Slot::Reg(d) => d,
                        Slot::Capture(_) => self.temp(),
                    },
                    _ => self.temp(),
                };
                self.binary(id, BinaryOp::Add, *left, *right, d);
                self.site = id;
                self.store(*left, d);
            }
            AddTo::Pattern => {
                let d = self.temp();
                let (a, b) = self.operand_pair(*left, *right);
                self.site = id;
                self.emit(Op::AddTo { d, a, b });
                self.store(*left, d);
            }
            AddTo::Table | AddTo::Append | AddTo::AppendAll => {
                let d = self.temp();
                let (a, b) = self.operand_pair(*left, *right);
                self.site = id;
                self.emit(Op::AddTo { d, a, b });
            }
        }
        self.next = mark;
    }
}

fn step_op(tag: Tag, d: Reg, a: Reg, by: i64, _: ExprId) -> Op {
    match (tag, by) {
        (Tag::Count, 1) => Op::AddCK { d, a, k: 1 },
        (Tag::Count, _) => Op::SubCK { d, a, k: 1 },
        (Tag::Int, 1) => Op::AddIK { d, a, k: 1 },
        (Tag::Int, _) => Op::AddIK { d, a, k: -1 },
        (_, 1) => Op::Unary { op: UnaryOp::Increment, d, a },
        (_, _) => Op::Unary { op: UnaryOp::Decrement, d, a },
    }
}

/// Types whose equality comparison cannot fail.
const INFALLIBLE_EQUALITY: [Tag; 6] =
    [Tag::Bool, Tag::Enum, Tag::String, Tag::Addr, Tag::Subnet, Tag::Port];

fn condition(op: BinaryOp) -> Option<Cond> {
    Some(match op {
        BinaryOp::Less => Cond::Lt,
        BinaryOp::LessEqual => Cond::Le,
        BinaryOp::Equal => Cond::Eq,
        BinaryOp::NotEqual => Cond::Ne,
        _ => return None,
    })
}

/// A number converted to the kind `tag`; `None` if it is out of range.
#[must_use]
pub fn convert_number(value: &Value, tag: Tag) -> Option<Value> {
    Some(match tag {
        Tag::Count => Value::Count(match value {
            Value::Count(value) => *value,
            Value::Int(value) => u64::try_from(*value).ok()?,
            Value::Double(value) if *value >= 0.0 && *value < 18_446_744_073_709_551_616.0 => {
                *value as u64
            }
            _ => return None,
        }),
        Tag::Int => Value::Int(match value {
            Value::Int(value) => *value,
            Value::Count(value) => i64::try_from(*value).ok()?,
            Value::Double(value)
                if *value >= -9_223_372_036_854_775_808.0
                    && *value < 9_223_372_036_854_775_808.0 =>
            {
                *value as i64
            }
            _ => return None,
        }),
        Tag::Double => Value::Double(value.double()),
        Tag::Time => Value::Time(value.double()),
        Tag::Interval => Value::Interval(value.double()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::checks::tests::code;
    use super::*;

    fn count(text: &str, is_counted: impl Fn(&Op) -> bool) -> usize {
        code(text).iter().filter(|op| is_counted(op)).count()
    }

    #[test]
    fn two_fields_are_one_instruction() {
        let text = "function f(r: R) { print r$r$n; print r$r$r$n; }";
        assert_eq!(count(text, |op| matches!(op, Op::Path { i: 1, j: 0, .. })), 2);
        assert_eq!(count(text, |op| matches!(op, Op::Field { .. })), 1);
    }

    #[test]
    fn conditions_jump_by_themselves() {
        let has = "function f(r: R) { if ( r?$r && ! r?$n ) print 1; }";
        assert_eq!(count(has, |op| matches!(op, Op::JumpHas { is_set: false, i: 1, .. })), 1);
        assert_eq!(count(has, |op| matches!(op, Op::JumpHas { is_set: true, i: 0, .. })), 1);
        let same = "function f(a: addr, s: string) { if ( a == 1.2.3.4 || s != \"x\" ) print 1; }";
        assert_eq!(count(same, |op| matches!(op, Op::JumpSame { is_same: true, .. })), 2);
        let found = "function f(t: set[count]) { if ( 1 in t && 2 !in t ) print 1; }";
        assert_eq!(count(found, |op| matches!(op, Op::JumpIn { is_in: false, .. })), 1);
        assert_eq!(count(found, |op| matches!(op, Op::JumpIn { is_in: true, .. })), 1);
        for text in [has, same, found] {
            assert_eq!(count(text, |op| matches!(op, Op::JumpIf { .. } | Op::JumpIfNot { .. })), 0);
        }
    }

    #[test]
    fn numbers_patterns_and_containers_are_compared_by_their_operators() {
        for text in [
            "function f(a: double, b: double) { if ( a == b ) print 1; }",
            "function f(a: pattern, b: string) { if ( a == b ) print 1; }",
            "function f(a: set[count], b: set[count]) { if ( a == b ) print 1; }",
        ] {
            assert_eq!(count(text, |op| matches!(op, Op::JumpSame { .. })), 0, "{text}");
        }
    }

    #[test]
    fn an_argument_is_checked_where_it_is_passed() {
        let text = "global g: function(s: string); function f(s: string) { g(s); g(s); }";
        assert_eq!(count(text, |op| matches!(op, Op::Pass { .. })), 1);
        assert_eq!(count(text, |op| matches!(op, Op::Move { .. })), 1);
        assert_eq!(count(text, |op| matches!(op, Op::Check { .. })), 0);
    }
}
