//! Errors and warnings while scripts run.

use super::Vm;
use crate::ast::ExprKind;
use crate::ast::LocalKind;
use crate::describe;
use crate::diagnostics::{Diagnostic, Severity, Subjects, Traffic};
use crate::evaluate::Stop;
use crate::ids::ExprId;
use crate::ids::LocalId;
use crate::literal::Literal;
use crate::source::Span;
use crate::symbols::GlobalKind;
use crate::types::Tag;
use crate::value::Value;

impl Vm<'_> {
    /// Reports an error at an expression that ends the body it is in: `TEXT (expression)`.
    pub fn error_at(&mut self, site: ExprId, text: impl AsRef<[u8]>) -> Stop {
        let mut line = text.as_ref().to_vec();
        let mut span = Span::NOWHERE;
        if let Some(expr) = self.p.exprs.find(site) {
            span = expr.span;
            line.extend_from_slice(b" (");
            line.extend_from_slice(&describe::expr(self.p, site));
            line.push(b')');
        }
        self.emit(Severity::ExpressionError, span, line);
        Stop::Error
    }

    /// Reports an error at an expression without its text.
    pub fn plain_error_at(&mut self, site: ExprId, text: impl AsRef<[u8]>) -> Stop {
        let span = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        self.emit(Severity::ExpressionError, span, text.as_ref().to_vec());
        Stop::Error
    }

    /// Reports an error of a body as a whole, which ends what runs.
    pub fn runtime_error(&mut self, body: Option<crate::ids::BodyId>, text: String) -> Stop {
        let span = body.map_or(Span::NOWHERE, |body| self.p.bodies[body].span);
        self.emit(Severity::RuntimeError, span, text.into_bytes());
        Stop::Error
    }

    /// Reports an error of a function as a whole, at the place that it has, which ends what runs.
    pub(crate) fn function_error(&mut self, span: Span, text: String) -> Stop {
        if span == Span::NOWHERE {
            let nowhere = "<no location>".to_owned();
            self.emit_located(Severity::RuntimeError, span, nowhere, text.into_bytes());
        } else {
            self.emit(Severity::RuntimeError, span, text.into_bytes());
        }
        Stop::Error
    }

    /// Reports something at an expression: `TEXT (expression)`.
    pub fn report_at(&mut self, severity: Severity, site: ExprId, text: impl AsRef<[u8]>) {
        let mut line = text.as_ref().to_vec();
        let mut span = Span::NOWHERE;
        if let Some(expr) = self.p.exprs.find(site) {
            span = expr.span;
            line.extend_from_slice(b" (");
            line.extend_from_slice(&describe::expr(self.p, site));
            line.push(b')');
        }
        self.emit(severity, span, line);
    }

    /// Reports an error that ends nothing, from a built-in function: where that was called, with the text of the call.
    pub fn builtin_error(&mut self, text: impl AsRef<[u8]>) {
        let site = self.call_site();
        self.report_at(Severity::Error, site, text);
    }

    /// Reports a warning from a built-in function.
    pub fn builtin_warning(&mut self, text: impl AsRef<[u8]>) {
        let site = self.call_site();
        self.report_at(Severity::Warning, site, text);
    }

    /// Reports an error from a built-in function that ends the body which called it.
    pub fn builtin_exception(&mut self, text: impl AsRef<[u8]>) -> Stop {
        let site = self.call_site();
        self.error_at(site, text)
    }

    /// The call of the built-in function that is running. A function `M::__f` blames the call of the function `M::f` around it.
    #[must_use]
    pub fn call_site(&self) -> ExprId {
        let Some((site, func)) = self.m.native.last() else { return ExprId(u32::MAX) };
        let name = self.p.functions.find(*func).map_or("", |func| self.p.name(func.name));
        if name.contains("::__")
            && let [.., caller, frame] = self.m.frames.as_slice()
            && frame
                .func
                .and_then(|func| self.p.functions.find(func))
                .is_some_and(|func| self.p.name(func.name) == name.replacen("::__", "::", 1))
        {
            return caller.code.sites.get(caller.pc.saturating_sub(1)).copied().unwrap_or(*site);
        }
        *site
    }

    /// Emits a diagnostic, and the event that reports it to scripts.
    pub fn emit(&mut self, severity: Severity, span: Span, text: Vec<u8>) {
        let location = self.p.sources.location(span);
        self.emit_located(severity, span, location, text);
    }

    /// Emits a diagnostic with a location in words.
    pub fn emit_located(
        &mut self,
        severity: Severity,
        span: Span,
        location: String,
        text: Vec<u8>,
    ) {
        if self.m.swallow > 0 {
            return;
        }
        let to_stderr = self.report_event(severity, &location, &text);
        if to_stderr {
            self.m.out.flush();
            let about = Subjects { traffic: self.traffic(), ..Subjects::default() };
            self.p.emit(&Diagnostic { severity, span, location, text, about });
        }
    }

    /// The packet and the connection that the current event is about.
    fn traffic(&self) -> Option<Traffic> {
        let packet = self.m.state.traffic.number;
        let uid = match self.m.subject_uid.map(|uid| uid.text()) {
            Some((text, len)) => {
                String::from_utf8_lossy(text.get(..len).unwrap_or_default()).into_owned()
            }
            None => crate::bif::log::field(self, &self.m.subject, "uid").text(),
        };
        (packet > 0).then_some(Traffic { packet, uid })
    }

    /// Queues `reporter_error` and its like; returns whether the message is also to be printed.
    fn report_event(&mut self, severity: Severity, location: &str, text: &[u8]) -> bool {
        let (event, option) = match severity {
            Severity::Info => ("reporter_info", "Reporter::info_to_stderr"),
            Severity::Warning | Severity::InternalWarning | Severity::ExpressionWarning => {
                ("reporter_warning", "Reporter::warnings_to_stderr")
            }
            Severity::Fatal | Severity::InternalError => return true,
            _ => ("reporter_error", "Reporter::errors_to_stderr"),
        };
        if !self.m.running || self.m.reporting {
            return true;
        }
        // Until scripts began, messages are always printed.
        let is_early = !self.m.state.initialized;
        let to_stderr = is_early || !matches!(self.global_named(option), Value::Bool(false));
        if let Some(func) = self.function_named(event)
            && self.is_raised(func)
        {
            // Before the first packet, as Zeek does it.
            let wall = super::events::wall_clock;
            let time = if self.m.now > 0.0 { self.m.now } else { wall() };
            let args = vec![Value::Time(time), Value::string(text), Value::string(location)];
            self.queue_event(func, args);
        }
        to_stderr
    }
}

impl Vm<'_> {
    /// Reports an error at an expression with a value that is to blame: `TEXT (expression and value)`.
    pub fn error_with_value(&mut self, site: ExprId, text: &str, value: &Value) {
        let mut line = text.as_bytes().to_vec();
        let mut span = Span::NOWHERE;
        let mut location = String::new();
        if let Some(expr) = self.p.exprs.find(site) {
            span = expr.span;
            location = self.p.sources.location(span);
            // A string that comes from a literal elsewhere has the place of that. Numbers are passed as new values.
            let is_string = value.bytes().is_some();
            let origin = if is_string { self.literal_place(site, value) } else { None };
            let origin = origin.map(|origin| self.p.sources.location(origin));
            if let Some(origin) = origin.filter(|origin| *origin != location) {
                location = format!("{location} and {origin}");
            }
            line.extend_from_slice(b" (");
            line.extend_from_slice(&describe::expr(self.p, site));
            line.extend_from_slice(b" and ");
            let form = crate::value::describe::Form::Compact;
            let shown = crate::value::describe::describe(self.p, value, form);
            crate::value::describe::escape_into(&mut line, &shown);
            line.push(b')');
        }
        if self.m.swallow == 0 {
            self.emit_located(Severity::Error, span, location, line);
        }
    }

    /// Reports an error about a value that is converted: about the call of the function that runs, where it was called,
    /// else about the value alone.
    pub(crate) fn conversion_error(&mut self, text: &str, value: &Value) {
        let [.., caller, frame] = self.m.frames.as_slice() else {
            return self.error_of_value(text, value);
        };
        let called = frame.func.is_some() && caller.func.is_some();
        match caller.code.sites.get(caller.pc.saturating_sub(1)).copied().filter(|_| called) {
            Some(site) => self.error_with_value(site, text, value),
            None => self.error_of_value(text, value),
        }
    }

    /// Reports an error about a value with a type that the expression `site` names: `TEXT (value and type)`.
    pub(crate) fn error_of_index(&mut self, site: ExprId, text: &str, value: &Value, ty: &str) {
        let form = crate::value::describe::Form::Compact;
        let shown = crate::value::describe::describe(self.p, value, form);
        let mut line = format!("{text} (").into_bytes();
        crate::value::describe::escape_into(&mut line, &shown);
        line.extend_from_slice(format!(" and {ty})").as_bytes());
        let span = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        let named = self.p.sources.location(span);
        // Numbers in vectors are new values.
        let place = value.bytes().and_then(|_| self.literal_place(site, value));
        let place = place.map_or("<no location>".to_owned(), |at| self.p.sources.location(at));
        let location = if place == named { named } else { format!("{place} and {named}") };
        self.emit_located(Severity::Error, span, location, line);
    }

    fn error_of_value(&mut self, text: &str, value: &Value) {
        let form = crate::value::describe::Form::Compact;
        let shown = crate::value::describe::describe(self.p, value, form);
        let mut line = format!("{text} (").into_bytes();
        crate::value::describe::escape_into(&mut line, &shown);
        line.push(b')');
        let site = self
            .m
            .frames
            .last()
            .and_then(|frame| frame.code.sites.get(frame.pc.saturating_sub(1)).copied());
        let site = site.unwrap_or(ExprId(u32::MAX));
        match self.literal_place(site, value) {
            Some(span) => self.emit(Severity::Error, span, line),
            None => {
                let nowhere = "<no location>".to_owned();
                self.emit_located(Severity::Error, Span::NOWHERE, nowhere, line);
            }
        }
    }

    /// Where a string or a number was written: as part of the expression `site`, else closest before it, else the first such literal in
    /// the file that was read last of those that have it.
    ///
    /// What the expression computes has no place.
    fn literal_place(&self, site: ExprId, value: &Value) -> Option<Span> {
        let is_it = |expr: &crate::ast::Expr| match &expr.kind {
            ExprKind::Literal(literal) => is_written(literal, value),
            _ => false,
        };
        // Equal small numbers are one value, which has no place.
        let is_shared = matches!(value, Value::Count(..4096) | Value::Int(-255..=256));
        if is_shared || self.is_computed(site) {
            return None;
        }
        let mut own = None;
        if self.p.exprs.find(site).is_some() {
            crate::walk::expressions(self.p, site, &mut |id| {
                let expr = &self.p.exprs[id];
                if is_it(expr) {
                    own = Some(expr.span);
                }
            });
        }
        // Strings of one byte mostly are parts of others.
        if own.is_some() || value.bytes().is_some_and(|text| text.len() == 1) {
            return own;
        }
        let here = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        // The closest one before, in the same file, else the first in the file that was read last.
        let rank = |span: Span| {
            let before = span.file == here.file && span.start <= here.start;
            (before, if before { u64::from(span.start) } else { 0 }, span.file)
        };
        let mut found: Option<Span> = None;
        for (_, expr) in self.p.exprs.iter() {
            if is_it(expr) && found.is_none_or(|found| rank(expr.span) > rank(found)) {
                found = Some(expr.span);
            }
        }
        found
    }

    /// Whether the values that an expression is given are new ones: results of operators and of built-in functions. Of calls, its
    /// strings alone.
    fn is_computed(&self, site: ExprId) -> bool {
        let is_string = |arg: &ExprId| {
            let tag = self.p.exprs.find(*arg).map(|arg| self.p.types.tag(arg.ty));
            matches!(tag, Some(Tag::String | Tag::Any))
        };
        match self.p.exprs.find(site).map(|expr| &expr.kind) {
            Some(ExprKind::Call(call)) => {
                !call.args.iter().filter(|arg| is_string(arg)).any(|arg| self.is_kept(*arg))
            }
            Some(ExprKind::Cast(of)) => !self.is_kept(*of),
            _ => false,
        }
    }

    /// Whether a local of the body that runs is a variable of a `for`: keys of tables and parts of strings are made for it.
    fn is_loop_variable(&self, local: LocalId) -> bool {
        let body = self.m.frames.last().and_then(|frame| frame.code.body);
        let body = body.and_then(|body| self.p.bodies.find(body));
        let local = body.and_then(|body| body.locals.find(local));
        local.is_some_and(|local| local.kind == LocalKind::Loop)
    }

    /// Whether an expression gives a value that may have been written elsewhere, as it is.
    fn is_kept(&self, expr: ExprId) -> bool {
        let Some(expr) = self.p.exprs.find(expr) else { return false };
        match &expr.kind {
            ExprKind::Local(local, _) => !self.is_loop_variable(*local),
            ExprKind::Literal(_) | ExprKind::Global(_) | ExprKind::Field(..) => true,
            ExprKind::Index(base, _) => {
                let base = self.p.exprs.find(*base).map(|base| self.p.types.tag(base.ty));
                base != Some(Tag::String)
            }
            ExprKind::Conditional(_, a, b) => self.is_kept(*a) || self.is_kept(*b),
            ExprKind::Cast(of) | ExprKind::Coerce(_, of) => self.is_kept(*of),
            ExprKind::Call(call) => match self.p.exprs.find(call.callee).map(|c| &c.kind) {
                Some(ExprKind::Global(global)) => match self.p.globals[*global].kind {
                    GlobalKind::Function(func) => !self.p.functions[func].bodies.is_empty(),
                    _ => true,
                },
                _ => true,
            },
            _ => false,
        }
    }

    /// Reports an error of a built-in function with a value that is to blame: `TEXT (call and value)`.
    pub fn builtin_error_with(&mut self, text: &str, value: &Value) {
        let site = self.call_site();
        self.error_with_value(site, text, value);
    }

    /// Reports something without a place.
    pub fn report(&mut self, severity: Severity, text: impl AsRef<[u8]>) {
        // Where the command line sets variables, that is what was read last.
        let location = if self.p.has_parameters { "<params>, line 1" } else { "" };
        let text = text.as_ref().to_vec();
        if self.m.swallow == 0 {
            self.emit_located(severity, Span::NOWHERE, location.to_owned(), text);
        }
    }
}

/// Whether a value is that of a literal.
fn is_written(literal: &Literal, value: &Value) -> bool {
    match (literal, value) {
        (Literal::String(literal), value) => value.bytes().is_some_and(|text| **literal == *text),
        (Literal::Count(literal), Value::Count(number)) => literal == number,
        (Literal::Int(literal), Value::Int(number)) => literal == number,
        (Literal::Double(literal), Value::Double(number)) => literal == number,
        _ => false,
    }
}
