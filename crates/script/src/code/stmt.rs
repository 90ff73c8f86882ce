//! Code of statements.

use std::rc::Rc;

use super::compile::{Compiler, Part, Scope, Slot};
use super::{NO_REG, Op, Reg, WhenPlan};
use crate::ast::{ExprKind, For, StmtKind, Switch, When};
use crate::ids::{ExprId, LocalId, StmtId};
use crate::types::Tag;
use crate::value::Value;

impl Compiler<'_> {
    pub(super) fn stmt(&mut self, id: StmtId) {
        let p = self.p;
        let mark = self.next;
        let outer = std::mem::take(&mut self.skips);
        if p.conditionals.is_some() {
            self.emit(Op::Begin { stmt: id });
        }
        match &p.stmts[id].kind {
            StmtKind::Null => (),
            StmtKind::List(list) => {
                for stmt in list {
                    self.stmt(*stmt);
                }
            }
            StmtKind::Expr(expr) => self.effect(*expr),
            StmtKind::Print(exprs) => {
                let (b, n) = self.consecutive(exprs);
                // A function without a result has no value to print.
                let calls = (b..)
                    .zip(exprs)
                    .filter(|(_, expr)| matches!(self.p.exprs[**expr].kind, ExprKind::Call(_)));
                let calls: Vec<_> = calls.map(|(s, _)| s).collect();
                let skips: Vec<_> =
                    calls.into_iter().map(|s| self.emit(Op::SkipUnset { s, to: 0 })).collect();
                self.emit(Op::Print { b, n });
                for skip in skips {
                    self.patch_jump(skip);
                }
            }
            StmtKind::If(condition, then, otherwise) => {
                let unless = self.jump_unless(*condition);
                self.next = mark;
                self.stmt(*then);
                if let Some(otherwise) = otherwise {
                    let end = self.emit(Op::Jump { to: 0 });
                    self.patch_jumps(unless);
                    self.stmt(*otherwise);
                    self.patch_jump(end);
                } else {
                    self.patch_jumps(unless);
                }
            }
            StmtKind::While(condition, body) => {
                let top = self.here();
                let unless = self.jump_unless(*condition);
                self.next = mark;
                self.scopes.push(Scope { breaks: Vec::new(), nexts: Vec::new() });
                self.stmt(*body);
                let scope = self.scopes.pop();
                if let Some(scope) = scope {
                    for next in scope.nexts {
                        self.patch_jump_to(next, top);
                    }
                    self.emit(Op::Jump { to: top });
                    self.patch_jumps(scope.breaks);
                }
                self.patch_jumps(unless);
            }
            StmtKind::For(walk) => self.for_loop(walk),
            StmtKind::Switch(switch) => self.switch(switch),
            StmtKind::Return(Some(expr)) => {
                let s = self.expr(*expr);
                self.site = *expr;
                self.emit(Op::Return { s });
                self.end_without_value();
            }
            StmtKind::Return(None) => {
                self.emit(Op::End);
            }
            StmtKind::Break => {
                if self.scopes.is_empty() {
                    self.emit(if self.hook { Op::Break } else { Op::End });
                } else {
                    let jump = self.emit(Op::Jump { to: 0 });
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.breaks.push(jump);
                    }
                }
            }
            StmtKind::Next | StmtKind::Fallthrough => {
                if self.scopes.is_empty() {
                    // Outside of a `switch`, `fallthrough` ends the body.
                    self.emit(Op::End);
                } else {
                    let jump = self.emit(Op::Jump { to: 0 });
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.nexts.push(jump);
                    }
                }
            }
            StmtKind::Event(event) => {
                let (b, n) = self.consecutive(&event.args);
                self.emit(Op::Event { g: event.event, b, n: n as u8 });
            }
            StmtKind::When(when) => self.when(id, when),
            StmtKind::Assert(condition, message) => {
                let c = self.temp();
                self.expr_to(*condition, c);
                let skip = self.emit(Op::AssertSkip { c, to: 0 });
                let m = match message {
                    Some(message) => self.expr(*message),
                    None => NO_REG,
                };
                self.site = *condition;
                self.emit(Op::Assert { c, m, stmt: id });
                self.patch_jump(skip);
            }
            StmtKind::SliceAssign(slice, value) => {
                let s = self.expr(*value);
                if let ExprKind::Slice(base, from, to) = &p.exprs[*slice].kind {
                    let v = self.expr(*base);
                    let (from, _) = self.consecutive(&[*from, *to]);
                    self.site = *slice;
                    self.emit(Op::SetSlice { v, from, s });
                }
            }
        }
        let skips = std::mem::replace(&mut self.skips, outer);
        self.patch_jumps(skips);
        self.next = mark;
    }

    /// Evaluates expressions into consecutive new registers.
    pub(super) fn consecutive(&mut self, exprs: &[ExprId]) -> (Reg, u16) {
        let first = self.each_consecutive(exprs, Self::expr_to);
        if exprs.is_empty() {
            // The frame of a callee must begin in an allocated register.
            self.max_registers = self.max_registers.max(self.next + 1);
        }
        (first, u16::try_from(exprs.len()).unwrap_or(u16::MAX))
    }

    /// Like [`Self::consecutive`], for the fields of a record: a value that overflows leaves its field unset.
    pub(super) fn consecutive_fields(&mut self, exprs: &[ExprId]) -> Reg {
        self.each_consecutive(exprs, |compiler, expr, reg| {
            let outer = std::mem::take(&mut compiler.skips);
            compiler.expr_to(expr, reg);
            let skips = std::mem::replace(&mut compiler.skips, outer);
            if !skips.is_empty() {
                let end = compiler.emit(Op::Jump { to: 0 });
                compiler.patch_jumps(skips);
                compiler.load(reg, Value::Unset);
                compiler.patch_jump(end);
            }
        })
    }

    /// Compiles expressions with `compile`, each into the register after the previous one; returns the first
    /// register.
    fn each_consecutive(
        &mut self,
        exprs: &[ExprId],
        mut compile: impl FnMut(&mut Self, ExprId, Reg),
    ) -> Reg {
        let first = Reg::try_from(self.next).unwrap_or(Reg::MAX - 1);
        let regs: Vec<Reg> = exprs.iter().map(|_| self.temp()).collect();
        for (expr, reg) in exprs.iter().zip(regs) {
            let mark = self.next;
            compile(self, *expr, reg);
            self.next = mark;
        }
        first
    }

    /// Copies a register into a local.
    pub(super) fn store_local(&mut self, local: LocalId, s: Reg) {
        match self.slot(local) {
            Slot::Reg(d) if d == s => (),
            Slot::Reg(d) => {
                self.emit(Op::Move { d, s });
            }
            Slot::Capture(i) => {
                self.emit(Op::SetCapture { i, s });
            }
        }
    }

    fn target_register(&self, local: Option<LocalId>) -> Option<Reg> {
        match self.slot(local?) {
            Slot::Reg(reg) => Some(reg),
            Slot::Capture(_) => None,
        }
    }

    fn for_loop(&mut self, walk: &For) {
        let over = self.expr(walk.over);
        let w = self.temp();
        self.site = walk.over;
        self.emit(Op::Walk { d: w, s: over });
        let top = self.here();
        let mut stores = Vec::new();
        let v = match (walk.value, self.target_register(walk.value)) {
            (_, Some(reg)) => reg,
            (Some(local), None) => {
                let reg = self.temp();
                stores.push((local, reg));
                reg
            }
            (None, None) => NO_REG,
        };
        let is_table = self.tag(walk.over) == Tag::Table;
        let next = if is_table {
            let parts = self.p.types.table(self.p.exprs[walk.over].ty).map_or(1, |t| t.index.len());
            let skip_keys = walk.vars.iter().all(Option::is_none);
            let direct = match walk.vars.as_slice() {
                [one] => self.target_register(*one),
                _ => None,
            };
            let (k, n) = if skip_keys {
                (NO_REG, 0)
            } else if let (Some(reg), true) = (direct, parts == 1 || walk.vars.len() == 1) {
                (reg, 1)
            } else {
                let regs: Vec<Reg> = walk.vars.iter().map(|_| self.temp()).collect();
                for (var, reg) in walk.vars.iter().zip(&regs) {
                    if let Some(local) = var {
                        stores.push((*local, *reg));
                    }
                }
                (regs.first().copied().unwrap_or(NO_REG), walk.vars.len() as u8)
            };
            self.emit(Op::NextEntry { w, k, n, v, to: 0 })
        } else {
            let var = walk.vars.first().copied().flatten();
            let k = match (var, self.target_register(var)) {
                (_, Some(reg)) => reg,
                (Some(local), None) => {
                    let reg = self.temp();
                    stores.push((local, reg));
                    reg
                }
                (None, None) => NO_REG,
            };
            self.emit(Op::NextItem { w, k, v, to: 0 })
        };
        for (local, reg) in stores {
            self.store_local(local, reg);
        }
        self.scopes.push(Scope { breaks: Vec::new(), nexts: Vec::new() });
        self.stmt(walk.body);
        if let Some(scope) = self.scopes.pop() {
            for jump in scope.nexts {
                self.patch_jump_to(jump, top);
            }
            self.emit(Op::Jump { to: top });
            self.patch_jump(next);
            self.patch_jumps(scope.breaks);
        }
        // A `break` also leads to the end of the iteration.
        let k = self.constant(Value::Unset);
        self.emit(Op::Const { d: w, k });
    }

    fn switch(&mut self, switch: &Switch) {
        let value = self.temp();
        self.expr_to(switch.value, value);
        let mut entries = Vec::new();
        let mut default = None;
        for (index, case) in switch.cases.iter().enumerate() {
            for label in &case.values {
                let mark = self.next;
                let b = self.expr(*label);
                let d = self.temp();
                self.site = *label;
                self.emit(Op::Binary { op: crate::ast::BinaryOp::Equal, d, a: value, b });
                entries.push((self.emit(Op::JumpIf { s: d, to: 0 }), index, None));
                self.next = mark;
            }
            for (ty, local) in &case.types {
                let mark = self.next;
                let d = self.temp();
                self.site = switch.value;
                self.emit(Op::Is { d, s: value, ty: *ty });
                entries.push((self.emit(Op::JumpIf { s: d, to: 0 }), index, *local));
                self.next = mark;
            }
            if case.default {
                default = Some(index);
            }
        }
        let otherwise = self.emit(Op::Jump { to: 0 });
        self.scopes.push(Scope { breaks: Vec::new(), nexts: Vec::new() });
        let mut default_at = None;
        let mut fall = None;
        for (index, case) in switch.cases.iter().enumerate() {
            // Labels that bind a variable first store it.
            let mut inner = Vec::new();
            for (jump, of, local) in &entries {
                if *of == index
                    && let Some(local) = local
                {
                    self.patch_jump(*jump);
                    self.store_local(*local, value);
                    inner.push(self.emit(Op::Jump { to: 0 }));
                }
            }
            if let Some(jump) = fall.take() {
                self.patch_jump(jump);
            }
            self.patch_jumps(inner);
            for (jump, of, local) in &entries {
                if *of == index && local.is_none() {
                    self.patch_jump(*jump);
                }
            }
            if default == Some(index) {
                default_at = Some(self.here());
            }
            let nexts = self.scopes.last_mut().map(|scope| std::mem::take(&mut scope.nexts));
            self.patch_jumps(nexts.unwrap_or_default());
            self.stmt(case.body);
            fall = Some(self.emit(Op::Jump { to: 0 }));
        }
        if let Some(jump) = fall {
            self.patch_jump(jump);
        }
        if let Some(scope) = self.scopes.pop() {
            self.patch_jumps(scope.breaks);
            self.patch_jumps(scope.nexts);
        }
        match default_at {
            Some(at) => self.patch_jump_to(otherwise, at),
            None => self.patch_jump(otherwise),
        }
    }

    fn when(&mut self, stmt: StmtId, when: &Rc<When>) {
        let condition = Rc::new(self.compile_part(when.frame, Part::Condition(when.condition)));
        let body = Rc::new(self.compile_part(when.frame, Part::Body(when.body)));
        let timeout = when
            .timeout
            .as_ref()
            .map(|(_, stmt)| Rc::new(self.compile_part(when.frame, Part::Body(*stmt))));
        let locals = self.p.bodies[when.frame].locals.len();
        let wait = match &when.timeout {
            Some((expr, _)) => {
                let reg = self.temp();
                self.expr_to(*expr, reg);
                reg
            }
            None => NO_REG,
        };
        let first = Reg::try_from(self.next).unwrap_or(Reg::MAX - 1);
        for capture in &when.captures {
            let d = self.temp();
            self.load_local(capture.outer, d);
        }
        self.whens.push(Rc::new(WhenPlan {
            when: Rc::clone(when),
            stmt,
            condition,
            body,
            timeout,
            locals,
        }));
        let plan = u32::try_from(self.whens.len() - 1).unwrap_or(u32::MAX);
        self.site = when.condition;
        self.emit(Op::When { plan, b: first, timeout: wait });
        if when.returns {
            self.emit(Op::End);
        }
    }

    /// Copies the value of a local, which may be unset, into a register.
    pub(super) fn load_local(&mut self, local: LocalId, d: Reg) {
        match self.slot(local) {
            Slot::Reg(s) if s == d => (),
            Slot::Reg(s) => {
                self.emit(Op::Move { d, s });
            }
            Slot::Capture(i) => {
                self.emit(Op::Capture { d, i });
            }
        }
    }
}
