//! The `switch` statement.

use super::{Parsed, Parser};
use crate::ast::{Case, ExprKind, LocalKind, StmtKind, Switch, UnaryOp};
use crate::evaluate::Constant;
use crate::ids::{ExprId, StmtId, TypeId};
use crate::lexer::{Op, Word};
use crate::literal::Literal;
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::Tag;

/// Labels of the preceding cases of a `switch`.
#[derive(Default)]
struct Labels {
    values: Vec<Literal>,
    types: Vec<TypeId>,
}

impl Parser<'_> {
    pub(super) fn switch_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        let value = self.expression()?;
        self.expect(Op::BraceLeft)?;
        let mut cases = Vec::new();
        let mut spans = Vec::new();
        while !self.is_next(Op::BraceRight)? {
            let (case, case_spans) = self.case()?;
            cases.push(case);
            spans.push(case_spans);
        }
        self.expect(Op::BraceRight)?;
        self.set_node_span_from(start);
        let by_value = cases.iter().any(|case: &Case| !case.values.is_empty());
        let by_type = cases.iter().any(|case| !case.types.is_empty());
        self.check_cases(value, &mut cases, &spans)?;
        let stmt = self.stmt(StmtKind::Switch(Switch { value, cases }.into()));
        if by_value && by_type {
            let text = crate::describe::stmt(self.program, stmt);
            let message = "cannot mix cases with expressions and types";
            self.error_about(message, &Object::Text(&text, start));
        }
        Ok(stmt)
    }

    /// Parses a case; its labels are checked when the switch is complete. Returns the case with the spans of
    /// its labels and of itself.
    fn case(&mut self) -> Parsed<(Case, [Span; 2])> {
        let mut case =
            Case { values: Vec::new(), types: Vec::new(), default: false, body: self.null };
        if self.accept_word(Word::Default)? {
            case.default = true;
        } else {
            self.expect_word(Word::Case)?;
        }
        let label = self.previous;
        let mut labels = label;
        if !case.default {
            if self.is_next_word(Word::Type)? {
                self.case_types(&mut case)?;
            } else {
                case.values = self.expression_list()?;
                if let Some(first) = case.values.first() {
                    labels = self.program.exprs[*first].span;
                }
            }
        }
        self.expect(Op::Colon)?;
        let start = self.previous;
        let stmts = self.statements()?;
        let ends = stmts.last().copied().is_some_and(|last| self.ends_case(last));
        self.set_node_span(
            stmts.first().map_or(start, |first| self.program.stmts[*first].span).to(self.previous),
        );
        let stmts_before = stmts.iter().rev().nth(1).map(|stmt| self.program.stmts[*stmt].span);
        case.body = self.stmt(StmtKind::List(stmts));
        // The span of a case is that of its last two statements, or of its label and its only statement.
        let whole = match stmts_before {
            Some(before) => Span { first: before.last, ..before }.to(self.previous),
            None => label.to(self.previous),
        };
        if !ends {
            let message = "case block must end in break/fallthrough/return statement";
            let text = crate::describe::case(self.program, &case, self.body());
            self.error_about(message, &Object::Text(&text, whole));
        }
        Ok((case, [labels, whole]))
    }

    /// Checks the labels of a switch, case by case.
    fn check_cases(
        &mut self,
        value: ExprId,
        cases: &mut [Case],
        spans: &[[Span; 2]],
    ) -> Parsed<()> {
        let mut seen = Labels::default();
        let mut default: Option<(Vec<u8>, Span)> = None;
        for (case, [labels, whole]) in cases.iter_mut().zip(spans) {
            if !case.values.is_empty() {
                self.check_case_values(value, case, *labels, &mut seen.values)?;
            }
            self.check_case_types(value, case, *whole, &mut seen.types);
            if case.default {
                let text = crate::describe::case(self.program, case, self.body());
                if let Some((first, span)) = &default {
                    let (first, span) = (first.clone(), *span);
                    self.error_about_both(
                        "multiple default labels",
                        &Object::Text(&text, *whole),
                        &Object::Text(&first, span),
                    );
                } else {
                    default = Some((text, *whole));
                }
            }
        }
        Ok(())
    }

    /// Whether the statement ends a case: `break`, `fallthrough`, `return`, or a block that ends in one of
    /// them.
    fn ends_case(&self, stmt: StmtId) -> bool {
        let mut stmt = stmt;
        loop {
            match &self.program.stmts[stmt].kind {
                StmtKind::Break | StmtKind::Fallthrough | StmtKind::Return(_) => return true,
                StmtKind::List(stmts) => match stmts.last() {
                    Some(last) => stmt = *last,
                    None => return false,
                },
                _ => return false,
            }
        }
    }

    /// Reports type labels that the value cannot have, or that are duplicates.
    fn check_case_types(&mut self, value: ExprId, case: &Case, span: Span, seen: &mut Vec<TypeId>) {
        let from = self.ty(value);
        for (ty, _) in &case.types {
            if self.is_error(value) || *ty == TypeId::ERROR {
                continue;
            }
            let mut message = None;
            if self.tag(value) != Tag::Any && !self.program.same_type(from, *ty) {
                message = Some("cannot cast switch expression to case type");
            } else if seen.iter().any(|known| self.program.same_type(*known, *ty)) {
                message = Some("duplicate case label");
            }
            if let Some(message) = message {
                let text = crate::describe::case(self.program, case, self.body());
                self.error_about(message, &Object::Text(&text, span));
            }
            seen.push(*ty);
        }
    }

    fn case_types(&mut self, case: &mut Case) -> Parsed<()> {
        loop {
            self.expect_word(Word::Type)?;
            let ty = self.type_()?;
            let mut local = None;
            if self.accept_word(Word::As)? {
                let name = self.identifier()?;
                self.set_node_span(self.previous);
                let module = self.module;
                let full = self.full_name(module, &name);
                local = Some(match self.lookup(&name) {
                    Some(Symbol::Local(known)) => {
                        let body = self.body();
                        self.program.bodies[body].locals[known].ty = ty;
                        self.scope().hidden.remove(&known);
                        known
                    }
                    Some(Symbol::Global(global)) => {
                        self.error_about("already a global identifier", &Object::Global(global));
                        self.add_local(full, ty, LocalKind::Variable)
                    }
                    None => {
                        let added = self.add_local(full, ty, LocalKind::Variable);
                        // The local is visible after the block, too.
                        if let Some(block) = self.scope().blocks.last_mut() {
                            block.retain(|local| *local != added);
                        }
                        let body = self.body();
                        self.program.bodies[body].inits.push(added);
                        added
                    }
                });
            }
            case.types.push((ty, local));
            if !self.accept(Op::Comma)? {
                return Ok(());
            }
        }
    }

    /// Whether a label is a constant in the source: a literal, optionally with a sign, or the name of a
    /// constant.
    fn is_constant_label(&self, label: ExprId) -> bool {
        match &self.program.exprs[label].kind {
            ExprKind::Literal(_) => true,
            ExprKind::Unary(UnaryOp::Negative | UnaryOp::Positive, of) => {
                matches!(self.program.exprs[*of].kind, ExprKind::Literal(_))
            }
            ExprKind::Global(global) => matches!(
                self.program.globals[*global].kind,
                GlobalKind::Constant | GlobalKind::EnumValue(_)
            ),
            _ => false,
        }
    }

    /// Checks that the labels of a case are distinct constants of the type of the value.
    fn check_case_values(
        &mut self,
        value: ExprId,
        case: &mut Case,
        span: Span,
        seen: &mut Vec<Literal>,
    ) -> Parsed<()> {
        let labels = std::mem::take(&mut case.values);
        if !self.tag(value).is_atomic() {
            let message = "switch expression must be of an atomic type when cases are expressions";
            self.error_about(message, &Object::Expr(value));
        }
        let ty = self.ty(value);
        if !labels.iter().all(|label| self.program.same_type(self.ty(*label), ty)) {
            let texts = labels.iter().map(|label| crate::describe::expr(self.program, *label));
            let text = texts.collect::<Vec<_>>().join(&b", "[..]);
            let message = "case expression type differs from switch type";
            let both = (&Object::Text(&text, span), &Object::Expr(value));
            self.error_about_both(message, both.0, both.1);
            return Ok(());
        }
        for label in labels {
            let constant = if self.is_constant_label(label) { self.evaluate(label)? } else { None };
            match constant {
                Some(Constant::Literal(literal)) => {
                    if seen.contains(&literal) {
                        self.error_about("duplicate case label", &Object::Expr(label));
                    } else {
                        seen.push(literal);
                    }
                }
                Some(_) => {}
                None => {
                    self.error_about("case label expression isn't constant", &Object::Expr(label));
                }
            }
            case.values.push(label);
        }
        Ok(())
    }
}
