//! Statements that are more than register operations: `print`, `assert`, lambdas, ends of functions.

use std::rc::Rc;

use super::Vm;
use crate::ast::{ExprKind, StmtKind};
use crate::describe;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{ExprId, FuncId, Id as _, StmtId, TypeId};
use crate::source::Span;
use crate::types::{Field, Flavor};
use crate::value::describe::{Form, describe as describe_value};
use crate::value::{FuncValue, Record, Value, Vector};

impl Vm<'_> {
    /// `print values;`.
    pub(crate) fn print(&mut self, values: &[Value]) -> Result<(), Stop> {
        let (file, rest) = match values {
            [Value::File(file), rest @ ..] => (Some(Rc::clone(file)), rest),
            all => (None, all),
        };
        if self.print_to_log(file.is_some(), values)? {
            return Ok(());
        }
        let values = rest;
        if let Some(file) = file {
            if !file.is_open() {
                return Ok(());
            }
            let raw = file.raw.get();
            let mut line = Vec::new();
            let form = if raw { Form::Raw } else { Form::Print };
            for (index, value) in values.iter().enumerate() {
                if index > 0 && !raw {
                    line.extend_from_slice(b", ");
                }
                line.extend(describe_value(self.p, value, form));
            }
            if !raw {
                line.push(b'\n');
            }
            self.m.out.write_file(&file, &line);
            return Ok(());
        }
        let mut line = Vec::new();
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                line.extend_from_slice(b", ");
            }
            line.extend(describe_value(self.p, value, Form::Print));
        }
        line.push(b'\n');
        self.m.out.write(&line);
        Ok(())
    }

    /// Writes printed values to the log stream if `Log::print_to_log` says so. Returns whether it did.
    fn print_to_log(&mut self, to_file: bool, values: &[Value]) -> Result<bool, Stop> {
        let Value::Enum(_, mode) = self.global_named("Log::print_to_log") else {
            return Ok(false);
        };
        let all = self.enum_named("Log::REDIRECT_ALL");
        let stdout = self.enum_named("Log::REDIRECT_STDOUT");
        let is = |value: &Value| matches!(value, Value::Enum(_, other) if *other == mode);
        if !is(&all) && (to_file || !is(&stdout)) {
            return Ok(false);
        }
        let texts: Vec<Value> = values
            .iter()
            .map(|value| Value::string_owned(describe_value(self.p, value, Form::Cat)))
            .collect();
        crate::bif::log::write_print(self, texts)
    }

    /// Warns if a function that must return a value ends without one.
    pub(crate) fn check_result(&mut self) -> Result<(), Stop> {
        let Some(frame) = self.m.frames.last() else { return Ok(()) };
        let (Some(func), false) = (frame.func, frame.keep) else { return Ok(()) };
        let Some(function) = self.p.functions.find(func) else { return Ok(()) };
        if function.flavor != Flavor::Function {
            return Ok(());
        }
        let result = self.p.types.func(function.ty).map_or(TypeId::VOID, |ty| ty.result);
        if result == TypeId::VOID || result == TypeId::ANY || self.m.delayed {
            return Ok(());
        }
        let name = self.p.name(function.name).to_owned();
        let span = frame.code.body.map_or(Span::NOWHERE, |body| self.p.bodies[body].span);
        let text = format!("non-void function returning without a value: {name}").into_bytes();
        // Zeek reports no location.
        self.emit_located(Severity::Warning, span, String::new(), text);
        Ok(())
    }

    /// A function value of a lambda expression; captured values are in registers from `base` on.
    pub(crate) fn make_lambda(
        &mut self,
        site: ExprId,
        expr: ExprId,
        base: usize,
    ) -> Result<Value, Stop> {
        let ExprKind::Lambda(lambda) = &self.p.exprs[expr].kind else { return Ok(Value::Unset) };
        let lambda = Rc::clone(lambda);
        let mut captured = Vec::with_capacity(lambda.captures.len());
        for (offset, capture) in lambda.captures.iter().enumerate() {
            let value = self.m.stack.get(base + offset).cloned().unwrap_or_default();
            let value = if capture.deep { self.copy(site, &value)? } else { value };
            captured.push((capture.inner, value));
        }
        // Instructions address captures in the order of their slots.
        captured.sort_by_key(|(inner, _)| *inner);
        let ty = self.p.functions[lambda.func].ty;
        let captured = captured.into_iter().map(|(_, value)| value).collect();
        Ok(Value::Func(FuncValue::with_captures(lambda.func, ty, captured)))
    }

    /// Whether the hook `assertion_result`, which runs for every assertion, has a body.
    pub(crate) fn watches_assertions(&self) -> bool {
        self.function_named("assertion_result").is_some_and(|func| self.has_bodies(func))
    }

    /// `assert`.
    pub(crate) fn assertion(
        &mut self,
        site: ExprId,
        stmt: StmtId,
        holds: bool,
        message: &Value,
    ) -> Result<(), Stop> {
        let StmtKind::Assert(condition, _) = self.p.stmts[stmt].kind else { return Ok(()) };
        let text = describe::expr_in(self.p, condition, describe::Style::ASSERT);
        let mut message_text = message.str_bytes().to_vec();
        let span = self.p.stmts[stmt].span;
        let mut report = true;
        for (hook, applies) in [("assertion_result", true), ("assertion_failure", !holds)] {
            let Some(func) = self.function_named(hook) else { continue };
            if !applies || !self.has_bodies(func) {
                continue;
            }
            let backtrace = self.backtrace("assert", span);
            let mut args = Vec::new();
            if hook == "assertion_result" {
                args.push(Value::Bool(holds));
            }
            args.push(Value::string(&text));
            args.push(Value::string(&message_text));
            args.push(backtrace);
            if !self.call_func(func, &args)?.truth() {
                report = false;
            }
        }
        let _ = site;
        if holds {
            return Ok(());
        }
        if report {
            if crate::bif::has_nul(self, &message_text) {
                message_text = crate::bif::WITH_NUL.into();
            }
            let mut line = b"assertion failure: ".to_vec();
            line.extend_from_slice(&text);
            if !message_text.is_empty() {
                line.extend_from_slice(b" (");
                line.extend_from_slice(&message_text);
                line.push(b')');
            }
            self.emit(Severity::Error, span, line);
        }
        Err(Stop::Error)
    }

    /// The calls in progress, innermost first, as a vector of `BacktraceElement`s: each function with the location
    /// of its call. The first is `top`, called at `at`.
    pub(crate) fn backtrace(&mut self, top: &str, at: Span) -> Value {
        let vector_ty = self.type_named("Backtrace").unwrap_or(TypeId::UNSPECIFIED_VECTOR);
        let Some(element) = self.type_named("BacktraceElement") else {
            return Value::Vector(Vector::new(vector_ty, Vec::new()));
        };
        let params_ty = self.type_named("call_argument_vector");
        let element_of = |vm: &Self, name: &str, args: Vec<Value>, at: Option<Span>| {
            let file = at.and_then(|span| {
                vm.p.sources.files.find(span.file).map(|file| (file.path.clone(), span.first))
            });
            let args = params_ty.map_or(Value::Unset, |ty| Value::Vector(Vector::new(ty, args)));
            let mut fields = vec![Value::string(name), args];
            match file {
                Some((path, line)) => {
                    fields.extend([Value::string(&*path), Value::Count(u64::from(line))]);
                }
                None => fields.extend([Value::Unset, Value::Unset]),
            }
            Value::Record(Record::new(element, fields))
        };
        let mut items = vec![element_of(self, top, Vec::new(), Some(at))];
        for index in (0..self.m.frames.len()).rev() {
            let Some(frame) = self.m.frames.get(index) else { break };
            let Some(function) = frame.func.and_then(|func| self.p.functions.find(func)) else {
                continue;
            };
            let args = self.frame_arguments(frame);
            let caller = index.checked_sub(1).and_then(|index| self.m.frames.get(index));
            let at = caller.and_then(|frame| {
                let site = frame.code.sites.get(frame.pc.saturating_sub(1))?;
                self.p.exprs.find(*site).map(|expr| expr.span)
            });
            items.push(element_of(self, self.p.name(function.name), args, at));
        }
        Value::Vector(Vector::new(vector_ty, items))
    }

    /// The calls in progress as text, innermost first: `| #0 f(1) at x.zeek:3 | #1 g() |`.
    pub(crate) fn call_stack(&self) -> String {
        let mut text = String::new();
        let mut level = 0;
        for index in (0..self.m.frames.len()).rev() {
            let Some(frame) = self.m.frames.get(index) else { break };
            let Some(function) = frame.func.and_then(|func| self.p.functions.find(func)) else {
                continue;
            };
            let count = frame.code.body.map_or(0, |body| self.p.bodies[body].params.len());
            let shown = self.m.stack.get(frame.base..frame.base + count).unwrap_or(&[]);
            let args: Vec<String> = shown
                .iter()
                .map(|value| {
                    let form = Form::Compact;
                    let text = crate::value::describe::describe(self.p, value, form);
                    String::from_utf8_lossy(&text).into_owned()
                })
                .collect();
            text.push_str(if level == 0 { "| " } else { " | " });
            let name = self.p.name(function.name);
            text.push_str(&format!("#{level} {name}({})", args.join(", ")));
            let caller = index.checked_sub(1).and_then(|index| self.m.frames.get(index));
            let site = caller.and_then(|frame| frame.code.sites.get(frame.pc.saturating_sub(1)));
            if let Some(expr) = site.and_then(|site| self.p.exprs.find(*site))
                && let Some(file) = self.p.sources.files.find(expr.span.file)
            {
                text.push_str(&format!(" at {}:{}", file.path, expr.span.first));
            }
            level += 1;
        }
        if level > 0 {
            text.push_str(" |");
        }
        text
    }

    /// The arguments of a call in progress, as `call_argument`s.
    fn frame_arguments(&self, frame: &super::Frame) -> Vec<Value> {
        let ty = frame.func.and_then(|func| self.p.functions.find(func)).map(|func| func.ty);
        let params = ty.map_or(&[][..], |ty| self.p.types.params(ty));
        let offsets = frame.code.body.map_or(&[][..], |body| &self.p.bodies[body].params[..]);
        let passed = offsets.iter().enumerate().filter_map(|(slot, offset)| {
            let value = self.m.stack.get(frame.base + slot).cloned().unwrap_or_default();
            Some((params.get(*offset as usize)?, value))
        });
        self.described(passed)
    }

    /// The arguments of an event as a `call_argument_vector`.
    pub(super) fn call_arguments(&self, func: FuncId, args: &[Value]) -> Value {
        let ty = self.type_named("call_argument_vector").unwrap_or(TypeId::UNSPECIFIED_VECTOR);
        let params = self.p.types.params(self.p.functions[func].ty);
        let items = self.described(params.iter().zip(args.iter().cloned()));
        Value::Vector(Vector::new(ty, items))
    }

    /// Counts a statement for coverage.
    pub(super) fn count_statement(&mut self, stmt: StmtId) {
        let index = stmt.index();
        if self.m.runs.len() <= index {
            self.m.runs.resize(self.p.stmts.len().max(index + 1), 0);
        }
        if let Some(runs) = self.m.runs.get_mut(index) {
            *runs += 1;
        }
    }

    /// Parameters with their values as `call_argument`s.
    fn described<'a>(&self, passed: impl Iterator<Item = (&'a Field, Value)>) -> Vec<Value> {
        let Some(ty) = self.type_named("call_argument") else { return Vec::new() };
        passed
            .map(|(param, value)| {
                let name = Value::string(self.p.name(param.name));
                let type_name = Value::string(describe::type_text(self.p, param.ty));
                Value::Record(Record::new(ty, vec![name, type_name, Value::Unset, value]))
            })
            .collect()
    }
}
