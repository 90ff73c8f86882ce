//! Reports of errors and warnings while scripts run.

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

    /// Reports an error at the location of a body; the caller ends the body with the returned [`Stop`].
    pub fn runtime_error(&mut self, body: Option<crate::ids::BodyId>, text: String) -> Stop {
        let span = body.map_or(Span::NOWHERE, |body| self.p.bodies[body].span);
        self.emit(Severity::RuntimeError, span, text.into_bytes());
        Stop::Error
    }

    /// Reports an error at the location of a function; the caller ends the body with the returned [`Stop`].
    pub(crate) fn function_error(&mut self, span: Span, text: String) -> Stop {
        if span == Span::NOWHERE {
            let nowhere = "<no location>".to_owned();
            self.emit_located(Severity::RuntimeError, span, nowhere, text.into_bytes());
        } else {
            self.emit(Severity::RuntimeError, span, text.into_bytes());
        }
        Stop::Error
    }

    /// Reports a message at an expression: `TEXT (expression)`.
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

    /// Reports an error of the running built-in function, at its call and with the text of the call. The body that called it
    /// continues.
    pub fn builtin_error(&mut self, text: impl AsRef<[u8]>) {
        let site = self.call_site();
        self.report_at(Severity::Error, site, text);
    }

    /// Reports a warning of the running built-in function, at its call.
    pub fn builtin_warning(&mut self, text: impl AsRef<[u8]>) {
        let site = self.call_site();
        self.report_at(Severity::Warning, site, text);
    }

    /// Reports an error of the running built-in function that ends the body which called it.
    pub fn builtin_exception(&mut self, text: impl AsRef<[u8]>) -> Stop {
        let site = self.call_site();
        self.error_at(site, text)
    }

    /// The call of the built-in function that is running. For a function `M::__f` called by `M::f` this is the call of `M::f`.
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

    /// Emits a diagnostic and queues the event that reports it to scripts.
    pub fn emit(&mut self, severity: Severity, span: Span, text: Vec<u8>) {
        let location = self.p.sources.location(span);
        self.emit_located(severity, span, location, text);
    }

    /// Like [`emit`](Self::emit), with the text of the location.
    pub fn emit_located(
        &mut self,
        severity: Severity,
        span: Span,
        location: String,
        text: Vec<u8>,
    ) {
        if self.m.suppressed > 0 {
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

    /// Queues `reporter_info`, `reporter_warning` or `reporter_error`. Returns whether the message is also to be printed.
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
        // Until the scripts are initialized, messages are always printed.
        let is_early = !self.m.state.initialized;
        let to_stderr = is_early || !matches!(self.global_named(option), Value::Bool(false));
        if let Some(func) = self.function_named(event)
            && self.is_raised(func)
        {
            // Before the first packet Zeek uses the wall clock.
            let wall = super::events::wall_clock;
            let time = if self.m.now > 0.0 { self.m.now } else { wall() };
            let args = vec![Value::Time(time), Value::string(text), Value::string(location)];
            self.queue_event(func, args);
        }
        to_stderr
    }
}

impl Vm<'_> {
    /// Reports an error at an expression with the value that caused it: `TEXT (expression and value)`.
    pub fn error_with_value(&mut self, site: ExprId, text: &str, value: &Value) {
        let mut line = text.as_bytes().to_vec();
        let mut span = Span::NOWHERE;
        let mut location = String::new();
        if let Some(expr) = self.p.exprs.find(site) {
            span = expr.span;
            location = self.p.sources.location(span);
            // A string from a literal elsewhere has the location of the literal. Numbers are passed as new values.
            let is_string = value.bytes().is_some();
            let origin = if is_string { self.literal_location(site, value) } else { None };
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
        if self.m.suppressed == 0 {
            self.emit_located(Severity::Error, span, location, line);
        }
    }

    /// Reports an error in the conversion of a value: at the call of the running function if there is one, else with the value
    /// alone.
    pub(crate) fn conversion_error(&mut self, text: &str, value: &Value) {
        let [.., caller, frame] = self.m.frames.as_slice() else {
            return self.error_with_value_only(text, value);
        };
        let called = frame.func.is_some() && caller.func.is_some();
        match caller.code.sites.get(caller.pc.saturating_sub(1)).copied().filter(|_| called) {
            Some(site) => self.error_with_value(site, text, value),
            None => self.error_with_value_only(text, value),
        }
    }

    /// Reports an error about a value and the type that the expression `site` names: `TEXT (value and type)`.
    pub(crate) fn error_with_type(&mut self, site: ExprId, text: &str, value: &Value, ty: &str) {
        let form = crate::value::describe::Form::Compact;
        let shown = crate::value::describe::describe(self.p, value, form);
        let mut line = format!("{text} (").into_bytes();
        crate::value::describe::escape_into(&mut line, &shown);
        line.extend_from_slice(format!(" and {ty})").as_bytes());
        let span = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        let named = self.p.sources.location(span);
        // Numbers in vectors are new values, without a location.
        let origin_text = value.bytes().and_then(|_| self.literal_location(site, value));
        let origin_text =
            origin_text.map_or("<no location>".to_owned(), |at| self.p.sources.location(at));
        let location =
            if origin_text == named { named } else { format!("{origin_text} and {named}") };
        self.emit_located(Severity::Error, span, location, line);
    }

    fn error_with_value_only(&mut self, text: &str, value: &Value) {
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
        match self.literal_location(site, value) {
            Some(span) => self.emit(Severity::Error, span, line),
            None => {
                let nowhere = "<no location>".to_owned();
                self.emit_located(Severity::Error, Span::NOWHERE, nowhere, line);
            }
        }
    }

    /// The location of the literal that a string or number comes from: in the expression `site`, else the closest literal before it in
    /// the same file, else the first equal literal in the last-parsed file that has one.
    ///
    /// Returns `None` for a value that the expression computes.
    fn literal_location(&self, site: ExprId, value: &Value) -> Option<Span> {
        let is_match = |expr: &crate::ast::Expr| match &expr.kind {
            ExprKind::Literal(literal) => equals_literal(literal, value),
            _ => false,
        };
        // In Zeek equal small numbers share one value, which has no location.
        let is_shared = matches!(value, Value::Count(..4096) | Value::Int(-255..=256));
        if is_shared || self.is_computed(site) {
            return None;
        }
        let mut own = None;
        if self.p.exprs.find(site).is_some() {
            crate::walk::expressions(self.p, site, &mut |id| {
                let expr = &self.p.exprs[id];
                if is_match(expr) {
                    own = Some(expr.span);
                }
            });
        }
        // Strings of one byte are usually parts of other strings.
        if own.is_some() || value.bytes().is_some_and(|text| text.len() == 1) {
            return own;
        }
        let here = self.p.exprs.find(site).map_or(Span::NOWHERE, |expr| expr.span);
        // The closest literal before in the same file, else the first in the last-parsed file.
        let rank = |span: Span| {
            let before = span.file == here.file && span.start <= here.start;
            (before, if before { u64::from(span.start) } else { 0 }, span.file)
        };
        let mut found: Option<Span> = None;
        for (_, expr) in self.p.exprs.iter() {
            if is_match(expr) && found.is_none_or(|found| rank(expr.span) > rank(found)) {
                found = Some(expr.span);
            }
        }
        found
    }

    /// Whether the operands of an expression are newly computed: results of operators and of built-in functions. For a call, only
    /// string arguments count.
    fn is_computed(&self, site: ExprId) -> bool {
        let is_string = |arg: &ExprId| {
            let tag = self.p.exprs.find(*arg).map(|arg| self.p.types.tag(arg.ty));
            matches!(tag, Some(Tag::String | Tag::Any))
        };
        match self.p.exprs.find(site).map(|expr| &expr.kind) {
            Some(ExprKind::Call(call)) => !call
                .args
                .iter()
                .filter(|arg| is_string(arg))
                .any(|arg| self.passes_existing_value(*arg)),
            Some(ExprKind::Cast(of)) => !self.passes_existing_value(*of),
            _ => false,
        }
    }

    /// Whether a local of the running body is the variable of a `for`, whose values are newly made table keys or parts of strings.
    fn is_loop_variable(&self, local: LocalId) -> bool {
        let body = self.m.frames.last().and_then(|frame| frame.code.body);
        let body = body.and_then(|body| self.p.bodies.find(body));
        let local = body.and_then(|body| body.locals.find(local));
        local.is_some_and(|local| local.kind == LocalKind::Loop)
    }

    /// Whether an expression passes on an existing value, which may come from a literal elsewhere.
    fn passes_existing_value(&self, expr: ExprId) -> bool {
        let Some(expr) = self.p.exprs.find(expr) else { return false };
        match &expr.kind {
            ExprKind::Local(local, _) => !self.is_loop_variable(*local),
            ExprKind::Literal(_) | ExprKind::Global(_) | ExprKind::Field(..) => true,
            ExprKind::Index(base, _) => {
                let base = self.p.exprs.find(*base).map(|base| self.p.types.tag(base.ty));
                base != Some(Tag::String)
            }
            ExprKind::Conditional(_, a, b) => {
                self.passes_existing_value(*a) || self.passes_existing_value(*b)
            }
            ExprKind::Cast(of) | ExprKind::Coerce(_, of) => self.passes_existing_value(*of),
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

    /// Reports an error of the running built-in function with the value that caused it: `TEXT (call and value)`.
    pub fn builtin_error_with(&mut self, text: &str, value: &Value) {
        let site = self.call_site();
        self.error_with_value(site, text, value);
    }

    /// Reports a message without a location in a script.
    pub fn report(&mut self, severity: Severity, text: impl AsRef<[u8]>) {
        // Variables set on the command line are parsed last, so Zeek reports their location.
        let location = if self.p.has_parameters { "<params>, line 1" } else { "" };
        let text = text.as_ref().to_vec();
        if self.m.suppressed == 0 {
            self.emit_located(severity, Span::NOWHERE, location.to_owned(), text);
        }
    }
}

/// Whether a value equals a literal.
fn equals_literal(literal: &Literal, value: &Value) -> bool {
    match (literal, value) {
        (Literal::String(literal), value) => value.bytes().is_some_and(|text| **literal == *text),
        (Literal::Count(literal), Value::Count(number)) => literal == number,
        (Literal::Int(literal), Value::Int(number)) => literal == number,
        (Literal::Double(literal), Value::Double(number)) => literal == number,
        _ => false,
    }
}
