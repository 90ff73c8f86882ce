//! Lambdas and their captures.

use super::scope::{Captured, Scope, ScopeKind};
use super::{Parsed, Parser};
use crate::ast::{Capture, ExprKind, Function, Lambda, Local, LocalKind};
use crate::ids::{ExprId, TypeId};
use crate::lexer::{Op, Word};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{CaptureName, Flavor, Type};

impl Parser<'_> {
    /// Parses a lambda after `function`, or after a field name.
    pub(super) fn lambda(&mut self, start: Span, field: bool) -> Parsed<ExprId> {
        let body = self.new_body(None);
        let mut scope = Scope::new(ScopeKind::Lambda, body);
        scope.flavor = Some(Flavor::Function);
        let explicit = self.is_next(Op::BracketLeft)?;
        if explicit {
            self.advance()?;
            self.captures(&mut scope)?;
        }
        let ty = self.signature(Flavor::Function)?;
        let typed = self.result_written;
        if field {
            self.expect(Op::Assign)?;
        }
        let params = self
            .program
            .types
            .params(ty)
            .iter()
            .enumerate()
            .map(|(at, param)| (param.name, param.ty, at))
            .collect::<Vec<_>>();
        let names = scope
            .captures
            .iter()
            .map(|captured| CaptureName { name: captured.name, deep: captured.capture.deep })
            .collect::<Vec<_>>();
        scope.result = self.program.types.func(ty).map_or(TypeId::VOID, |func| func.result);
        scope.infers_result = !typed && field;
        let declared = scope.captures.len();
        let count = scope.captures.len();
        self.add_lambda_params(&mut scope, &params, count);
        let file_level = self.scopes.len() == 1;
        self.scopes.push(scope);
        let exporting = std::mem::replace(&mut self.exporting, false);
        let stmt = self.function_body();
        self.exporting = exporting;
        let scope = self.scopes.pop();
        let stmt = stmt?;
        self.program.bodies[body].stmt = stmt;
        self.set_node_span_from(start);
        self.program.bodies[body].span = self.node_span;
        if let Type::Func(func) = self.program.types.get_mut(ty) {
            func.captures = names.into();
            if let Some(scope) = scope.as_ref().filter(|_| !typed) {
                func.result = scope.result;
            }
        }
        let name = self.lambda_name(ty, body);
        let name = self.program.names.intern(&name);
        let func = self.program.functions.push(Function {
            name,
            global: None,
            ty,
            flavor: Flavor::Function,
            bodies: vec![body],
        });
        self.program.bodies[body].func = Some(func);
        self.validate(body, Flavor::Function);
        let captures = scope.as_ref().map_or(Vec::new(), |scope| {
            scope.captures.iter().map(|captured| captured.capture).collect()
        });
        // The span of a lambda is that of its body.
        self.set_node_span(self.program.stmts[stmt].span);
        let expr = self.node(ExprKind::Lambda(Lambda { func, captures }.into()), ty);
        if let Some(scope) = scope {
            let _ = file_level;
            self.scope().globals.extend(&scope.globals);
            self.check_captures(&scope, expr, explicit, declared);
        }
        Ok(expr)
    }

    /// Inserts the parameters of a lambda at the beginning of its frame, before the captures.
    fn add_lambda_params(
        &mut self,
        scope: &mut Scope,
        params: &[(crate::ids::Name, TypeId, usize)],
        captures: usize,
    ) {
        let body = scope.body;
        let mut captured = Vec::new();
        if captures > 0 {
            let old = std::mem::take(&mut self.program.bodies[body].locals);
            captured = old.iter().map(|(_, local)| local.clone()).collect();
        }
        let names = std::mem::take(&mut scope.names);
        self.add_params(scope, params);
        let mut moved = Vec::new();
        for local in captured {
            moved.push(self.program.bodies[body].locals.push(local));
        }
        for entry in &mut scope.captures {
            if let Some(new) = moved.get(entry.capture.inner.0 as usize) {
                entry.capture.inner = *new;
            }
        }
        for (name, old) in names {
            if let Some(new) = moved.get(old.0 as usize) {
                scope.names.insert(name, *new);
            }
        }
    }

    /// Parses `a, copy b ]`.
    pub(super) fn captures(&mut self, scope: &mut Scope) -> Parsed<()> {
        while !self.is_next(Op::BracketRight)? {
            let deep = self.accept_word(Word::Copy)?;
            let name = self.identifier()?;
            self.set_node_span(self.previous);
            if self.is_next(Op::Colon)? {
                return Err(self.syntax_error());
            }
            match self.lookup(&name) {
                None => {
                    self.error_here(&format!("no such local identifier: {name}"));
                    let name = self.program.names.intern("<error>");
                    let span = self.previous;
                    let kind = LocalKind::Capture;
                    let local = Local { name, ty: TypeId::ERROR, kind, attrs: Vec::new(), span };
                    let inner = self.program.bodies[scope.body].locals.push(local);
                    let capture = Capture { outer: inner, inner, deep: false };
                    scope.captures.push(Captured { name, capture, used: true });
                }
                Some(Symbol::Global(global)) => {
                    let is_type = self.program.globals[global].kind == GlobalKind::Type;
                    let what = if is_type { "type" } else { "global" };
                    self.error_here(&format!("cannot specify {what} in capture: {name}"));
                }
                Some(Symbol::Local(outer)) => {
                    let local = self.local(outer).clone();
                    let inner = self.program.bodies[scope.body]
                        .locals
                        .push(Local { kind: LocalKind::Capture, ..local.clone() });
                    let name = local.name;
                    scope.names.insert(name, inner);
                    scope.captures.push(Captured {
                        name,
                        capture: Capture { outer, inner, deep },
                        used: false,
                    });
                }
            }
            if !self.accept(Op::Comma)? {
                break;
            }
        }
        self.expect(Op::BracketRight)
    }

    /// Reports locals of the enclosing function that a lambda uses without capturing them, or captures without
    /// using them.
    fn check_captures(&mut self, scope: &Scope, expr: ExprId, explicit: bool, declared: usize) {
        if !scope.missing.is_empty() {
            let names = scope
                .missing
                .iter()
                .map(|name| self.program.name(*name).to_owned())
                .collect::<Vec<_>>();
            if explicit {
                let message =
                    format!("{} is used inside lambda but not captured", names[names.len() - 1]);
                self.error_about(&message, &Object::Expr(expr));
            } else {
                self.error_here(&format!(
                    "lambda uses outer identifiers without [] captures: {}",
                    names.join(", ")
                ));
            }
            self.set_ty(expr, TypeId::ERROR);
            return;
        }
        self.check_capture_list(
            &scope.captures[..declared.min(scope.captures.len())],
            "lambda",
            &Object::Expr(expr),
            Some(expr),
        );
    }

    /// Reports captures that are listed twice or unused.
    pub(super) fn check_capture_list(
        &mut self,
        captures: &[Captured],
        construct: &str,
        object: &Object<'_>,
        expr: Option<ExprId>,
    ) {
        for (position, captured) in captures.iter().enumerate() {
            let name = self.program.name(captured.name).to_owned();
            let again = captures[..position].iter().any(|other| other.name == captured.name);
            let used = captured.used
                || captures.iter().any(|other| other.name == captured.name && other.used);
            let message = if again {
                format!("{name} listed multiple times in capture")
            } else if !used {
                format!("{name} is captured but not used inside {construct}")
            } else {
                continue;
            };
            self.error_about(&message, object);
            if let Some(expr) = expr {
                self.set_ty(expr, TypeId::ERROR);
            }
            return;
        }
    }

    /// The name of a lambda: a hash of its text and captures, with the seeds of the run if there are any.
    fn lambda_name(&self, ty: TypeId, body: crate::ids::BodyId) -> String {
        let ty_text = crate::describe::type_text(self.program, ty);
        let style = crate::describe::Style::LONG;
        let body_text = crate::describe::body(self.program, body, style, 0);
        let mut text = format!("anonymous-function: {ty_text}\n").into_bytes();
        text.extend_from_slice(&body_text);
        for capture in self.program.types.func(ty).map_or(&[][..], |func| &func.captures) {
            text.extend_from_slice(if capture.deep { b"copy " } else { b"" });
            text.extend_from_slice(self.program.name(capture.name).as_bytes());
        }
        let hash = self.engine.seeded_hash(&text).unwrap_or_else(|| {
            text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            })
        });
        format!("lambda_<{hash}>")
    }
}
