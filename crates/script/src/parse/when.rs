//! `when`: condition, body and timeout body form one hidden closure.

use super::scope::{Scope, ScopeKind};
use super::{Parsed, Parser};
use crate::ast::{Capture, ExprKind, Stmt, StmtKind, When};
use crate::ids::{StmtId, TypeId};
use crate::lexer::{Op, Word};
use crate::report::Object;
use crate::source::Span;
use crate::types::Tag;

impl Parser<'_> {
    /// Parses a `when` after the word.
    pub(super) fn when(&mut self, start: Span, returns: bool) -> Parsed<StmtId> {
        let frame = self.new_body(None);
        let mut scope = Scope::new(ScopeKind::When, frame);
        let outer = self.scope();
        (scope.flavor, scope.result) = (outer.flavor, outer.result);
        if returns {
            // Values that are returned later are not checked.
            scope.result = TypeId::ANY;
        }
        if self.accept(Op::BracketLeft)? {
            self.captures(&mut scope)?;
        }
        let declared = scope.captures.len();
        self.scopes.push(scope);
        let parts = self.when_parts(returns);
        let scope = self.scopes.pop();
        let (condition, body) = parts?;
        let mut timeout = None;
        let end = self.previous;
        if self.accept_word(Word::Timeout)? {
            let length = self.expression()?;
            if let Some(scope) = &scope {
                self.scopes.push(scope.clone());
            }
            let parsed = self.block_statement();
            let inner = self.scopes.pop();
            let stmt = parsed?;
            timeout = Some((length, stmt));
            let when =
                self.finish_when(end, inner, declared, frame, condition, body, timeout, returns);
            if !self.is_error(length) && !matches!(self.tag(length), Tag::Time | Tag::Interval) {
                let message = "when timeout requires a time or time interval";
                self.error_about(message, &Object::Expr(length));
            }
            return Ok(when);
        }
        Ok(self.finish_when(start, scope, declared, frame, condition, body, timeout, returns))
    }

    fn when_parts(&mut self, returns: bool) -> Parsed<(crate::ids::ExprId, StmtId)> {
        self.expect(Op::ParenLeft)?;
        let outer = std::mem::replace(&mut self.in_when_condition, true);
        let condition = self.expression();
        self.in_when_condition = outer;
        let condition = condition?;
        self.expect(Op::ParenRight)?;
        let _ = returns;
        let body = self.statement()?;
        Ok((condition, body))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn finish_when(
        &mut self,
        start: Span,
        scope: Option<Scope>,
        declared: usize,
        frame: crate::ids::BodyId,
        condition: crate::ids::ExprId,
        body: StmtId,
        timeout: Option<(crate::ids::ExprId, StmtId)>,
        returns: bool,
    ) -> StmtId {
        self.set_node_span_from(start);
        let span = self.node_span;
        self.program.bodies[frame].stmt = body;
        self.program.bodies[frame].span = span;
        let captures = scope.as_ref().map_or(Vec::new(), |scope| scope.captures.clone());
        let globals = scope.as_ref().map_or(Vec::new(), |scope| scope.globals.clone());
        self.scope().globals.extend(&globals);
        let mut shown = captures[..declared.min(captures.len())]
            .iter()
            .map(|captured| captured.capture)
            .collect::<Vec<_>>();
        // Zeek counts the variable that the condition declares as a capture.
        if let ExprKind::Assign(target, _) = self.program.exprs[condition].kind
            && let ExprKind::Local(inner, _) = self.program.exprs[target].kind
        {
            shown.push(Capture { outer: inner, inner, deep: false });
        }
        let when = When { frame, captures: shown, condition, body, timeout, returns, globals };
        let stmt =
            self.program.stmts.push(Stmt { kind: StmtKind::When(when.clone().into()), span });
        if let Some(scope) = scope {
            match scope.missing.last() {
                Some(name) => {
                    let message = format!(
                        "{} is used inside \"when\" statement but not captured",
                        self.program.name(*name)
                    );
                    self.error_about(&message, &Object::Stmt(stmt));
                }
                None => {
                    let explicit = &captures[..declared.min(captures.len())];
                    self.check_capture_list(
                        explicit,
                        "\"when\" statement",
                        &Object::Stmt(stmt),
                        None,
                    );
                }
            }
        }
        if !self.is_error(condition) && self.tag(condition) != Tag::Bool {
            self.error_about("conditional in test must be boolean", &Object::Expr(condition));
        }
        let all = captures.iter().map(|captured| captured.capture).collect();
        self.program.stmts[stmt].kind = StmtKind::When(When { captures: all, ..when }.into());
        stmt
    }
}
