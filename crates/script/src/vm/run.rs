//! The interpreter loop.

use std::rc::Rc;

use super::calls::window;
use super::step::Flow;
use super::{Callee, Frame, Vm};
use crate::ast::BinaryOp;
use crate::code::Op;
use crate::evaluate::Stop;
use crate::ids::ExprId;
use crate::value::Value;

impl Vm<'_> {
    /// Runs frames until the one at `floor` ends. Returns its result.
    pub(crate) fn interpret(&mut self, floor: usize) -> Result<Value, Stop> {
        if self.m.profile.is_some() {
            self.run_frames::<true>(floor)
        } else {
            self.run_frames::<false>(floor)
        }
    }

    fn run_frames<const PROFILED: bool>(&mut self, floor: usize) -> Result<Value, Stop> {
        let Some(frame) = self.m.frames.last() else { return Ok(Value::Unset) };
        let mut running = Rc::clone(&frame.code);
        let mut base = frame.base;
        let mut pc = frame.pc;
        let mut is_called = false;

        // Each iteration begins or continues a frame.
        'frame: loop {
            let code = &*running;
            let ops = &code.ops[..];
            let mut cells = window(&mut self.m.stack, base);

            macro_rules! reg {
                ($r:expr) => {
                    cells[usize::from($r)]
                };
            }
            macro_rules! regs {
                ($r:expr, $n:expr) => {{
                    let from = usize::from($r);
                    &cells[from..from + usize::from($n)]
                }};
            }
            macro_rules! set {
                ($d:expr, $value:expr) => {{
                    let value = $value;
                    Value::put(&mut cells[usize::from($d)], value);
                }};
            }
            // Evaluates a call that may reallocate the stack, then borrows the registers again.
            macro_rules! reborrow {
                ($call:expr) => {{
                    let result = $call;
                    cells = window(&mut self.m.stack, base);
                    result
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
            macro_rules! slow {
                ($op:expr, $d:expr, $a:expr, $b:expr) => {{
                    let site = sync!();
                    let value = reborrow!(self.binary(site, $op, &$a, &$b)?);
                    set!($d, value)
                }};
            }
            // An operator on two numbers of the same type.
            macro_rules! arith {
                ($d:expr, $a:expr, $b:expr, $kind:ident, $op:expr, |$x:ident, $y:ident| $result:expr) => {{
                    if let (Value::$kind($x), Value::$kind($y)) = (&reg!($a), &reg!($b)) {
                        let result = $result;
                        set!($d, Value::$kind(result));
                    } else {
                        let (a, b) = (reg!($a).clone(), reg!($b).clone());
                        slow!($op, $d, a, b);
                    }
                }};
            }
            macro_rules! arith_k {
                ($d:expr, $a:expr, $k:expr, $kind:ident, $op:expr, |$x:ident, $y:ident| $result:expr) => {{
                    if let Value::$kind($x) = &reg!($a) {
                        let $y = $k.into();
                        let result = $result;
                        set!($d, Value::$kind(result));
                    } else {
                        let a = reg!($a).clone();
                        slow!($op, $d, a, Value::$kind($k.into()));
                    }
                }};
            }
            macro_rules! leave {
                ($result:expr) => {{
                    let result = $result;
                    let Some(frame) = self.m.frames.last() else { return Ok(result) };
                    let dest = frame.dest;
                    if !frame.keep {
                        for slot in cells.iter_mut().take(code.registers) {
                            Value::put(slot, Value::Unset);
                        }
                    }
                    let depth = self.m.frames.len() - 1;
                    self.m.frames.truncate(depth);
                    if depth <= floor {
                        return Ok(result);
                    }
                    let Some(caller) = self.m.frames.last() else { return Ok(result) };
                    base = caller.base;
                    pc = caller.pc;
                    running = Rc::clone(&caller.code);
                    Value::put(&mut window(&mut self.m.stack, base)[usize::from(dest)], result);
                    continue 'frame;
                }};
            }
            // Continues in a new frame for a function at `base + b`, whose first `n` registers are its arguments.
            macro_rules! call {
                ($callee:expr, $b:expr, $n:expr, $d:expr, $func:expr, $value:expr) => {{
                    let callee = $callee;
                    let new_base = base + usize::from($b);
                    self.enter(&callee, new_base)?;
                    let from = new_base + usize::from($n);
                    let end = new_base + callee.registers;
                    if from < end {
                        for slot in &mut self.m.stack[from..end] {
                            Value::put(slot, Value::Unset);
                        }
                    }
                    self.m.frames.push(Frame {
                        code: Rc::clone(&callee),
                        base: new_base,
                        pc: 0,
                        dest: $d,
                        value: $value,
                        func: Some($func),
                        keep: false,
                    });
                    running = callee;
                    base = new_base;
                    pc = 0;
                    is_called = true;
                    continue 'frame;
                }};
            }
            // Runs machine code for the rest of the frame or a part of it, if the code is hot.
            macro_rules! hot {
                () => {{
                    match reborrow!(self.run_hot(&running, base, pc)?) {
                        Some(result) => leave!(result),
                        None => pc = self.m.frames.last().map_or(pc, |frame| frame.pc),
                    }
                }};
            }

            if std::mem::take(&mut is_called) && self.m.jit.is_on() {
                hot!();
            }
            loop {
                if PROFILED {
                    reborrow!(self.profile_step(code, pc));
                }
                let at = pc;
                pc += 1;
                match ops[at] {
                    Op::Move { d, s } => {
                        let value = reg!(s).clone();
                        set!(d, value);
                    }
                    Op::Const { d, k } => {
                        let value = code.consts[k as usize].clone();
                        set!(d, value);
                    }
                    // Fast paths of the most frequent shared instructions, without a call.
                    Op::Field { d, r, i } => {
                        let value = match &reg!(r) {
                            Value::Record(record) => record.get_stored(usize::from(i)),
                            _ => Value::Unset,
                        };
                        if value.is_set() {
                            set!(d, value);
                        } else {
                            reborrow!(self.step_called(code, base, pc, Op::Field { d, r, i })?);
                        }
                    }
                    Op::Path { d, r, i, j } => {
                        let value = match &reg!(r) {
                            Value::Record(record) => {
                                record.get_stored_in(usize::from(i), usize::from(j))
                            }
                            _ => Value::Unset,
                        };
                        if value.is_set() {
                            set!(d, value);
                        } else {
                            reborrow!(self.step_called(code, base, pc, Op::Path { d, r, i, j })?);
                        }
                    }
                    Op::Pass { d, s } if reg!(s).is_set() => {
                        let value = reg!(s).clone();
                        set!(d, value);
                    }
                    Op::SetField { r, i, s } if self.m.whens.is_empty() => {
                        if let Value::Record(record) = &reg!(r) {
                            record.set(usize::from(i), reg!(s).clone());
                        }
                    }
                    Op::Binary { op: op @ (BinaryOp::Equal | BinaryOp::NotEqual), d, a, b }
                        if let Some(same) = same_number(&reg!(a), &reg!(b)) =>
                    {
                        set!(d, Value::Bool(same == (op == BinaryOp::Equal)));
                    }
                    Op::HasField { d, r, i } => {
                        let has = match &reg!(r) {
                            Value::Record(record) => record.has(usize::from(i)),
                            _ => false,
                        };
                        set!(d, Value::Bool(has));
                    }
                    Op::Check { s } if reg!(s).is_set() => (),
                    Op::Global { d, g }
                        if self.m.globals.get(g.0 as usize).is_some_and(Value::is_set) =>
                    {
                        let value = self.m.globals[g.0 as usize].clone();
                        set!(d, value);
                    }
                    Op::Jump { to } => {
                        let back = (to as usize) < pc;
                        if back && self.m.budget.is_some() {
                            sync!();
                            reborrow!(self.check_budget()?);
                        }
                        pc = to as usize;
                        if back && self.m.jit.is_on() {
                            hot!();
                        }
                    }
                    Op::JumpIf { s, to } => {
                        if reg!(s).truth() {
                            pc = to as usize;
                        }
                    }
                    Op::JumpIfNot { s, to } => {
                        if !reg!(s).truth() {
                            pc = to as usize;
                        }
                    }
                    Op::JumpHas { r, i, is_set, to } => {
                        let has = match &reg!(r) {
                            Value::Record(record) => record.has(usize::from(i)),
                            _ => false,
                        };
                        if has == is_set {
                            pc = to as usize;
                        }
                    }
                    Op::JumpSame { a, b, is_same, to }
                        if let Some(same) = same_number(&reg!(a), &reg!(b)) =>
                    {
                        if same == is_same {
                            pc = to as usize;
                        }
                    }
                    Op::JumpC { c, a, b, to } => {
                        if let (Value::Count(x), Value::Count(y)) = (&reg!(a), &reg!(b)) {
                            if c.holds(*x, *y) {
                                pc = to as usize;
                            }
                        } else if c.holds(reg!(a).count(), reg!(b).count()) {
                            pc = to as usize;
                        }
                    }
                    Op::JumpCK { c, a, k, to } => {
                        if c.holds(reg!(a).count(), u64::from(k)) {
                            pc = to as usize;
                        }
                    }
                    Op::JumpI { c, a, b, to } => {
                        if c.holds(reg!(a).int(), reg!(b).int()) {
                            pc = to as usize;
                        }
                    }
                    Op::JumpIK { c, a, k, to } => {
                        if c.holds(reg!(a).int(), i64::from(k)) {
                            pc = to as usize;
                        }
                    }
                    Op::AddC { d, a, b } => {
                        arith!(d, a, b, Count, BinaryOp::Add, |x, y| x.wrapping_add(*y));
                    }
                    Op::MulC { d, a, b } => {
                        arith!(d, a, b, Count, BinaryOp::Multiply, |x, y| x.wrapping_mul(*y));
                    }
                    Op::SubC { d, a, b } => match (&reg!(a), &reg!(b)) {
                        (Value::Count(x), Value::Count(y)) if x >= y => {
                            let result = x - y;
                            set!(d, Value::Count(result));
                        }
                        (a, b) => {
                            let (a, b) = (a.clone(), b.clone());
                            slow!(BinaryOp::Subtract, d, a, b);
                        }
                    },
                    Op::DivC { d, a, b } => match (&reg!(a), &reg!(b)) {
                        (Value::Count(x), Value::Count(y)) if *y != 0 => {
                            let result = x / y;
                            set!(d, Value::Count(result));
                        }
                        (a, b) => {
                            let (a, b) = (a.clone(), b.clone());
                            slow!(BinaryOp::Divide, d, a, b);
                        }
                    },
                    Op::ModC { d, a, b } => match (&reg!(a), &reg!(b)) {
                        (Value::Count(x), Value::Count(y)) if *y != 0 => {
                            let result = x % y;
                            set!(d, Value::Count(result));
                        }
                        (a, b) => {
                            let (a, b) = (a.clone(), b.clone());
                            slow!(BinaryOp::Modulo, d, a, b);
                        }
                    },
                    Op::AddCK { d, a, k } => {
                        arith_k!(d, a, k, Count, BinaryOp::Add, |x, y| x.wrapping_add(y));
                    }
                    Op::SubCK { d, a, k } => match &reg!(a) {
                        Value::Count(x) if *x >= u64::from(k) => {
                            let result = x - u64::from(k);
                            set!(d, Value::Count(result));
                        }
                        a => {
                            let a = a.clone();
                            slow!(BinaryOp::Subtract, d, a, Value::Count(u64::from(k)));
                        }
                    },
                    Op::MulCK { d, a, k } => {
                        arith_k!(d, a, k, Count, BinaryOp::Multiply, |x, y| x.wrapping_mul(y));
                    }
                    Op::DivCK { d, a, k } => {
                        arith_k!(d, a, k, Count, BinaryOp::Divide, |x, y| {
                            let y: u64 = y;
                            x.checked_div(y).unwrap_or(0)
                        });
                    }
                    Op::ModCK { d, a, k } => {
                        arith_k!(d, a, k, Count, BinaryOp::Modulo, |x, y| {
                            let y: u64 = y;
                            x.checked_rem(y).unwrap_or(0)
                        });
                    }
                    Op::AddI { d, a, b } => {
                        arith!(d, a, b, Int, BinaryOp::Add, |x, y| x.wrapping_add(*y));
                    }
                    Op::SubI { d, a, b } => {
                        arith!(d, a, b, Int, BinaryOp::Subtract, |x, y| x.wrapping_sub(*y));
                    }
                    Op::MulI { d, a, b } => {
                        arith!(d, a, b, Int, BinaryOp::Multiply, |x, y| x.wrapping_mul(*y));
                    }
                    Op::AddIK { d, a, k } => {
                        arith_k!(d, a, k, Int, BinaryOp::Add, |x, y| x.wrapping_add(y));
                    }
                    Op::AddD { d, a, b } => {
                        arith!(d, a, b, Double, BinaryOp::Add, |x, y| x + y);
                    }
                    Op::SubD { d, a, b } => {
                        arith!(d, a, b, Double, BinaryOp::Subtract, |x, y| x - y);
                    }
                    Op::MulD { d, a, b } => {
                        arith!(d, a, b, Double, BinaryOp::Multiply, |x, y| x * y);
                    }
                    Op::DivD { d, a, b } => match (&reg!(a), &reg!(b)) {
                        (Value::Double(x), Value::Double(y)) if *y != 0.0 => {
                            let result = x / y;
                            set!(d, Value::Double(result));
                        }
                        (a, b) => {
                            let (a, b) = (a.clone(), b.clone());
                            slow!(BinaryOp::Divide, d, a, b);
                        }
                    },
                    Op::CmpC { c, d, a, b } => {
                        let holds = c.holds(reg!(a).count(), reg!(b).count());
                        set!(d, Value::Bool(holds));
                    }
                    Op::CmpI { c, d, a, b } => {
                        let holds = c.holds(reg!(a).int(), reg!(b).int());
                        set!(d, Value::Bool(holds));
                    }
                    Op::CmpD { c, d, a, b } => {
                        let holds = c.holds(reg!(a).double(), reg!(b).double());
                        set!(d, Value::Bool(holds));
                    }
                    Op::Not { d, a } => {
                        let value = Value::Bool(!reg!(a).truth());
                        set!(d, value);
                    }
                    Op::Call { d, b, n, f } => {
                        if self.m.whens.is_evaluating()
                            && self.m.frames.last().is_some_and(|frame| frame.keep)
                        {
                            let site = sync!();
                            if let Some(value) = reborrow!(self.cached_result(site)) {
                                set!(d, value);
                                continue;
                            }
                        }
                        let target = match self.m.targets.get(f.0 as usize) {
                            Some(Callee::Unknown) | None => None,
                            Some(target) => Some(target.clone()),
                        };
                        let target = match target {
                            Some(target) => target,
                            None => reborrow!(self.callee(f)),
                        };
                        match target {
                            Callee::Script(callee)
                                if callee.body.is_some()
                                    && callee.params.len() != usize::from(n) =>
                            {
                                let site = sync!();
                                let ty = self.p.functions[f].ty;
                                let func = crate::value::FuncValue::new(f, ty);
                                reborrow!(self.check_arguments(&func, usize::from(n), site)?);
                                let args = regs!(b, n).to_vec();
                                let value = reborrow!(self.call_at(f, None, &args, site)?);
                                set!(d, value);
                            }
                            Callee::Script(callee) => {
                                sync!();
                                call!(callee, b, n, d, f, None);
                            }
                            Callee::Native(native) => {
                                let site = sync!();
                                let first = base + usize::from(b);
                                let to = base + usize::from(d);
                                reborrow!(self.call_native_at(
                                    native,
                                    f,
                                    site,
                                    first,
                                    usize::from(n),
                                    to
                                )?);
                            }
                            _ => {
                                let site = sync!();
                                let args = regs!(b, n).to_vec();
                                let value = reborrow!(self.call_at(f, None, &args, site)?);
                                set!(d, value);
                            }
                        }
                    }
                    Op::CallValue { d, b, n, f } => {
                        let site = sync!();
                        let Value::Func(func) = &reg!(f) else {
                            return Err(self.error_at(site, "not a function"));
                        };
                        let func = Rc::clone(func);
                        let called = func.func;
                        self.check_arguments(&func, usize::from(n), site)?;
                        match reborrow!(self.callee(called)) {
                            Callee::Script(callee) => {
                                call!(callee, b, n, d, called, Some(func));
                            }
                            _ => {
                                let args = regs!(b, n).to_vec();
                                let value =
                                    reborrow!(self.call_at(called, Some(&func), &args, site)?);
                                set!(d, value);
                            }
                        }
                    }
                    Op::Return { s } => {
                        let value = std::mem::take(&mut reg!(s));
                        leave!(value);
                    }
                    Op::End => {
                        if code.wants_result {
                            sync!();
                            reborrow!(self.check_result()?);
                        }
                        leave!(Value::Unset);
                    }
                    Op::Break => leave!(Value::Bool(false)),
                    other => match reborrow!(self.step_called(code, base, pc, other)?) {
                        Flow::Next => (),
                        Flow::Jump(to) => pc = to as usize,
                        Flow::Leave(value) => leave!(value),
                    },
                }
            }
        }
    }
}

/// Whether two numbers of the same type are equal; `None` for other values.
#[inline]
fn same_number(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Count(a), Value::Count(b)) => Some(a == b),
        (Value::Enum(_, a), Value::Enum(_, b)) => Some(a == b),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        (Value::Int(a), Value::Int(b)) => Some(a == b),
        _ => None,
    }
}
