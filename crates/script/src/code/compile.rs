//! From a body to its code: registers, labels and constants.

use std::rc::Rc;

use super::{Code, Op, RecordPlan, Reg, Target, WhenPlan, checks, operands, sink};
use crate::ast::{Body, LocalKind};
use crate::ids::{BodyId, ExprId, Id as _, LocalId, StmtId, TypeId};
use crate::program::Program;
use crate::types::{AttrKind, Attrs, Flavor, Tag, Type, attr_expr, find_attr};
use crate::value::Value;
use crate::value::table::{ExpireKind, TableAttrs};

/// Targets of `break` and `next`.
pub(super) struct Scope {
    /// Jumps of `break` whose target is not yet known.
    pub breaks: Vec<usize>,
    /// Jumps of `next` and `fallthrough` whose target is not yet known; in a `switch`, that is the next case.
    pub nexts: Vec<usize>,
}

/// Compiles one body.
pub(super) struct Compiler<'p> {
    pub p: &'p Program,
    pub body: Option<&'p Body>,
    pub ops: Vec<Op>,
    pub sites: Vec<ExprId>,
    pub consts: Vec<Value>,
    pub records: Vec<RecordPlan>,
    pub attrs: Vec<Option<Rc<TableAttrs>>>,
    pub whens: Vec<Rc<WhenPlan>>,
    pub next: usize,
    pub max_registers: usize,
    pub site: ExprId,
    pub scopes: Vec<Scope>,
    /// Whether captures are registers: in the code of a `when`.
    pub captures_in_frame: bool,
    pub hook: bool,
    /// Jumps to the end of the current statement, taken if a function returns no value.
    pub skips: Vec<usize>,
    /// Locals that may be assigned an unset value.
    pub unset: Vec<LocalId>,
}

/// Compiles a body.
#[must_use]
pub fn compile_body(program: &Program, id: BodyId) -> Code {
    let body = &program.bodies[id];
    let mut compiler = Compiler::new(program, Some(body));
    compiler.hook = body
        .func
        .and_then(|func| program.functions.find(func))
        .is_some_and(|func| func.flavor == Flavor::Hook);
    // At file level, containers and records do not start empty.
    let inits = if body.func.is_some() { &body.inits[..] } else { &[] };
    for local in inits {
        compiler.init_local(*local);
    }
    compiler.stmt(body.stmt);
    compiler.emit(Op::End);
    compiler.finish(Some(id))
}

/// Compiles an expression outside of any function, as code that returns its value.
#[must_use]
pub fn compile_expr(program: &Program, expr: ExprId) -> Code {
    let mut compiler = Compiler::new(program, None);
    let s = compiler.expr(expr);
    compiler.emit(Op::Return { s });
    compiler.end_without_value();
    compiler.finish(None)
}

/// The runtime attributes of a table.
#[must_use]
pub fn table_attrs(attrs: &Attrs) -> Option<Rc<TableAttrs>> {
    let expire = [
        (ExpireKind::Create, AttrKind::CreateExpire),
        (ExpireKind::Read, AttrKind::ReadExpire),
        (ExpireKind::Write, AttrKind::WriteExpire),
    ]
    .into_iter()
    .find_map(|(kind, attr)| attr_expr(attrs, attr).map(|expr| (kind, expr)));
    let found = TableAttrs {
        default: attr_expr(attrs, AttrKind::Default),
        default_insert: attr_expr(attrs, AttrKind::DefaultInsert),
        expire,
        expire_func: attr_expr(attrs, AttrKind::ExpireFunc),
        on_change: attr_expr(attrs, AttrKind::OnChange),
        ordered: find_attr(attrs, AttrKind::Ordered).is_some(),
    };
    let any = found.default.is_some()
        || found.default_insert.is_some()
        || found.expire.is_some()
        || found.expire_func.is_some()
        || found.on_change.is_some()
        || found.ordered;
    any.then(|| Rc::new(found))
}

impl<'p> Compiler<'p> {
    pub(super) fn new(p: &'p Program, body: Option<&'p Body>) -> Self {
        let locals = body.map_or(0, |body| body.locals.len());
        Self {
            p,
            body,
            ops: Vec::new(),
            sites: Vec::new(),
            consts: Vec::new(),
            records: Vec::new(),
            attrs: Vec::new(),
            whens: Vec::new(),
            next: locals,
            max_registers: locals,
            site: ExprId(u32::MAX),
            scopes: Vec::new(),
            captures_in_frame: false,
            hook: false,
            skips: Vec::new(),
            unset: Vec::new(),
        }
    }

    pub(super) fn finish(mut self, body: Option<BodyId>) -> Code {
        if let Some(body) = self.body
            && !self.captures_in_frame
        {
            let mut parts = checks::PartialCode {
                ops: &mut self.ops,
                sites: &mut self.sites,
                consts: &self.consts,
                records: &self.records,
                whens: &self.whens,
                locals: body.locals.len(),
            };
            sink::delay_records(self.p, body, &mut parts);
            checks::remove(self.p, &mut parts);
        }
        Code {
            body,
            params: self.body.map(|body| body.params.clone()).unwrap_or_default(),
            wants_result: wants_result(self.p, self.body),
            ops: self.ops,
            sites: self.sites,
            consts: self.consts,
            registers: self.max_registers + 1,
            records: self.records,
            attrs: self.attrs,
            whens: self.whens,
            #[cfg(feature = "jit")]
            tier: crate::jit::Tier::default(),
        }
    }

    pub(super) fn emit(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.sites.push(self.site);
        self.ops.len() - 1
    }

    pub(super) fn here(&self) -> Target {
        Target::try_from(self.ops.len()).unwrap_or(Target::MAX)
    }

    /// Sets the target of a jump to the next instruction.
    pub(super) fn patch_jump(&mut self, jump: usize) {
        let here = self.here();
        self.patch_jump_to(jump, here);
    }

    pub(super) fn patch_jumps(&mut self, jumps: Vec<usize>) {
        for jump in jumps {
            self.patch_jump(jump);
        }
    }

    pub(super) fn patch_jump_to(&mut self, jump: usize, target: Target) {
        if let Some(to) = self.ops.get_mut(jump).and_then(operands::target) {
            *to = target;
        }
    }

    /// Ends the body without a value where a value is missing.
    pub(super) fn end_without_value(&mut self) {
        let skips = std::mem::take(&mut self.skips);
        if !skips.is_empty() {
            self.patch_jumps(skips);
            self.emit(Op::End);
        }
    }

    /// Allocates a temporary above all others.
    pub(super) fn temp(&mut self) -> Reg {
        let reg = self.next;
        self.next += 1;
        self.max_registers = self.max_registers.max(self.next);
        // A frame with more registers than instructions can address fails when it is run.
        Reg::try_from(reg).unwrap_or(Reg::MAX - 1)
    }

    pub(super) fn constant(&mut self, value: Value) -> u32 {
        self.consts.push(value);
        u32::try_from(self.consts.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn attr_index(&mut self, attrs: Option<Rc<TableAttrs>>) -> u32 {
        self.attrs.push(attrs);
        u32::try_from(self.attrs.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn tag(&self, expr: ExprId) -> Tag {
        self.p.types.tag(self.p.exprs[expr].ty)
    }

    /// The register of a local, or the index of its capture.
    pub(super) fn slot(&self, local: LocalId) -> Slot {
        let index = Reg::try_from(local.index()).unwrap_or(Reg::MAX - 1);
        let Some(body) = self.body else { return Slot::Reg(index) };
        if !self.captures_in_frame
            && body.locals.find(local).is_some_and(|local| local.kind == LocalKind::Capture)
        {
            let rank = body
                .locals
                .iter()
                .filter(|(id, other)| {
                    id.index() < local.index() && other.kind == LocalKind::Capture
                })
                .count();
            return Slot::Capture(u16::try_from(rank).unwrap_or(u16::MAX));
        }
        Slot::Reg(index)
    }

    /// Whether a local may be unset where it is read.
    pub(super) fn may_be_unset(&self, local: LocalId) -> bool {
        let Some(body) = self.body else { return false };
        let Some(data) = body.locals.find(local) else { return false };
        match data.kind {
            LocalKind::Loop | LocalKind::Capture | LocalKind::Param => true,
            LocalKind::Variable | LocalKind::Constant => {
                self.captures_in_frame
                    || self.unset.contains(&local)
                    || (body.inits.contains(&local) && !self.starts_empty(local))
            }
        }
    }

    fn starts_empty(&self, local: LocalId) -> bool {
        let in_function = self.body.filter(|body| body.func.is_some());
        in_function.and_then(|body| body.locals.find(local)).is_some_and(|data| {
            matches!(self.p.types.get(data.ty), Type::Table(_) | Type::Vector(_) | Type::Record(_))
        })
    }

    pub(super) fn init_local(&mut self, local: LocalId) {
        if let Slot::Reg(d) = self.slot(local)
            && self.starts_empty(local)
        {
            self.emit(Op::InitLocal { d, local });
            let attrs = self.body.and_then(|body| body.locals.find(local));
            if let Some(local) = attrs {
                self.captured_default(&local.attrs, d);
            }
        }
    }

    /// Sets the `&default` of the table in `t` if that captures locals.
    pub(super) fn captured_default(&mut self, attrs: &Attrs, t: Reg) {
        let Some(expr) = attr_expr(attrs, AttrKind::Default)
            .or_else(|| attr_expr(attrs, AttrKind::DefaultInsert))
        else {
            return;
        };
        if let crate::ast::ExprKind::Lambda(lambda) = &self.p.exprs[expr].kind
            && !lambda.captures.is_empty()
        {
            let mark = self.next;
            let s = self.expr(expr);
            self.emit(Op::Default { t, s });
            self.next = mark;
        }
    }

    /// Compiles a part of a `when`.
    pub(super) fn compile_part(&self, frame: BodyId, part: Part) -> Code {
        let body = &self.p.bodies[frame];
        let mut compiler = Compiler::new(self.p, Some(body));
        compiler.captures_in_frame = true;
        match part {
            Part::Condition(expr) => {
                for local in &body.inits {
                    compiler.init_local(*local);
                }
                let s = compiler.expr(expr);
                compiler.emit(Op::Return { s });
                compiler.end_without_value();
            }
            Part::Body(stmt) => {
                compiler.stmt(stmt);
                compiler.emit(Op::End);
            }
        }
        compiler.finish(Some(frame))
    }
}

/// Whether the end of a body without a value may have to be reported: in a function with a result, or if that
/// is not known.
fn wants_result(program: &Program, body: Option<&Body>) -> bool {
    let function = body.and_then(|body| body.func).and_then(|func| program.functions.find(func));
    function.is_none_or(|function| {
        let result = program.types.func(function.ty).map_or(TypeId::VOID, |ty| ty.result);
        function.flavor == Flavor::Function && result != TypeId::VOID && result != TypeId::ANY
    })
}

/// A part of a `when`.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Condition(ExprId),
    Body(StmtId),
}

/// Location of a local.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// In a register.
    Reg(Reg),
    /// Among the captures of the function value.
    Capture(u16),
}
