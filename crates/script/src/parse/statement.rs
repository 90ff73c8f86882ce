//! Statements.

use super::{Parsed, Parser};
use crate::ast::{ExprKind, For, LocalKind, Stmt, StmtKind, UnaryOp};
use crate::compare::is_integral;
use crate::diagnostics::Severity;
use crate::ids::{ExprId, LocalId, StmtId, TypeId};
use crate::lexer::{Op, Token, Word};
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{Flavor, Tag, Type};

impl Parser<'_> {
    /// Parses statements up to a closing brace, `case`, `default` or the end.
    pub(super) fn statements(&mut self) -> Parsed<Vec<StmtId>> {
        let mut stmts = Vec::new();
        loop {
            match self.peek()? {
                Token::End
                | Token::Op(Op::BraceRight)
                | Token::Word(Word::Case | Word::Default) => return Ok(stmts),
                _ => stmts.push(self.statement()?),
            }
        }
    }

    /// Parses a statement.
    pub(super) fn statement(&mut self) -> Parsed<StmtId> {
        self.deeper(Self::statement_inner)
    }

    pub(super) fn stmt(&mut self, kind: StmtKind) -> StmtId {
        let span = self.node_span;
        self.program.stmts.push(Stmt { kind, span })
    }

    fn statement_inner(&mut self) -> Parsed<StmtId> {
        let token = self.peek()?.clone();
        match token {
            Token::Op(Op::BraceLeft) => self.block_statement(),
            Token::Op(Op::Semicolon) => {
                self.advance()?;
                self.set_node_span(self.previous);
                Ok(self.stmt(StmtKind::Null))
            }
            Token::Word(word) => self.word_statement(word),
            _ => self.expression_statement(),
        }
    }

    /// `{ … }`.
    pub(super) fn block_statement(&mut self) -> Parsed<StmtId> {
        self.expect(Op::BraceLeft)?;
        let start = self.previous;
        self.enter_block();
        let stmts = self.statements();
        self.leave_block();
        let stmts = stmts?;
        self.expect(Op::BraceRight)?;
        self.set_node_span_from(start);
        Ok(self.stmt(StmtKind::List(stmts)))
    }

    fn word_statement(&mut self, word: Word) -> Parsed<StmtId> {
        let simple = match word {
            Word::Break => Some(StmtKind::Break),
            Word::Next => Some(StmtKind::Next),
            Word::Fallthrough => Some(StmtKind::Fallthrough),
            _ => None,
        };
        if let Some(kind) = simple {
            self.advance()?;
            let start = self.previous;
            self.expect(Op::Semicolon)?;
            self.set_node_span_from(start);
            return Ok(self.stmt(kind));
        }
        match word {
            Word::Print => {
                self.advance()?;
                let start = self.previous;
                let values = self.expression_list()?;
                let last = self.previous;
                self.expect(Op::Semicolon)?;
                self.set_node_span(start.to(last));
                let stmt = self.stmt(StmtKind::Print(values.clone()));
                if values.iter().any(|value| self.tag(*value) == Tag::Void) {
                    self.error_about("value of type void illegal", &Object::Stmt(stmt));
                }
                Ok(stmt)
            }
            Word::If => self.if_statement(),
            Word::While => self.while_statement(),
            Word::For => self.for_statement(),
            Word::Switch => self.switch_statement(),
            Word::Return => self.return_statement(),
            Word::When => {
                self.advance()?;
                let start = self.previous;
                self.when(start, false)
            }
            Word::Event => {
                self.advance()?;
                let start = self.previous;
                self.event_statement(start)
            }
            Word::Assert => self.assert_statement(),
            Word::Local => self.local_declaration(LocalKind::Variable),
            Word::Const => self.local_declaration(LocalKind::Constant),
            _ => self.expression_statement(),
        }
    }

    fn expression_statement(&mut self) -> Parsed<StmtId> {
        let expr = self.expression()?;
        let last = self.previous;
        self.expect(Op::Semicolon)?;
        Ok(self.finish_expression(expr, last))
    }

    /// Parses `hook f(x);` at file level after the word `hook`.
    pub(super) fn hook_statement(&mut self, start: Span) -> Parsed<StmtId> {
        let outer = std::mem::replace(&mut self.hook_call, true);
        let call = self.expression();
        self.hook_call = outer;
        let call = call?;
        let last = self.previous;
        self.expect(Op::Semicolon)?;
        self.set_node_span(start.to(last));
        Ok(self.finish_expression(call, last))
    }

    fn finish_expression(&mut self, expr: ExprId, last: Span) -> StmtId {
        let span = self.program.exprs[expr].span;
        self.set_node_span(span.to(last));
        if let ExprKind::Assign(left, right) = self.program.exprs[expr].kind
            && matches!(self.program.exprs[left].kind, ExprKind::Slice(..))
        {
            return self.slice_assignment(left, right);
        }
        let stmt = self.stmt(StmtKind::Expr(expr));
        if !self.is_error(expr) && self.is_pure(expr) {
            self.warn(expr, "expression value ignored");
        }
        stmt
    }

    fn slice_assignment(&mut self, left: ExprId, right: ExprId) -> StmtId {
        let (to, from) = (self.ty(left), self.ty(right));
        let stmt = self.stmt(StmtKind::SliceAssign(left, right));
        if self.is_error(left) || self.is_error(right) {
            return stmt;
        }
        if self.tag(left) == Tag::String {
            self.error_about("cannot assign to string index expression", &Object::Expr(left));
            return stmt;
        }
        if self.tag(left) != Tag::Vector {
            self.error_about(
                "slice assignment to a type that is not a vector",
                &Object::Expr(left),
            );
            return stmt;
        }
        let mut right = right;
        if self.program.fits_unspecified(to, from) {
            right = self.coerce_to_specified(right, to);
        } else if matches!(self.program.exprs[right].kind, ExprKind::List(_)) {
            let elements = self.elements(right);
            right = self.vector_constructor(elements, Some(to));
        } else if !self.program.same_type(to, from) {
            let assign = self.node(ExprKind::Assign(left, right), to);
            self.error_about("type clash in assignment", &Object::Expr(assign));
        }
        self.program.stmts[stmt].kind = StmtKind::SliceAssign(left, right);
        stmt
    }

    /// Whether the expression has no side effects.
    fn is_pure(&self, expr: ExprId) -> bool {
        let mut pure = true;
        crate::walk::expressions(self.program, expr, &mut |id| {
            pure &= !matches!(
                self.program.exprs[id].kind,
                ExprKind::Call(_)
                    | ExprKind::Assign(..)
                    | ExprKind::AddTo(..)
                    | ExprKind::RemoveFrom(..)
                    | ExprKind::Add(_)
                    | ExprKind::Delete(_)
                    | ExprKind::Schedule(..)
                    | ExprKind::Event(_)
                    | ExprKind::Error
                    | ExprKind::Unary(UnaryOp::Increment | UnaryOp::Decrement, _)
            );
        });
        pure
    }

    fn condition(&mut self) -> Parsed<ExprId> {
        self.expect(Op::ParenLeft)?;
        let condition = self.expression()?;
        self.expect(Op::ParenRight)?;
        Ok(condition)
    }

    /// Reports a condition that is not boolean; called after its body is parsed.
    fn check_condition(&mut self, condition: ExprId, message: &str) {
        if !self.is_error(condition) && self.tag(condition) != Tag::Bool {
            self.error_about(message, &Object::Expr(condition));
        }
    }

    /// Parses the body of another statement, which may not consist only of a directive. After the first body of
    /// an `if` (`may_continue`), an `else` may follow.
    fn sub_statement(&mut self, may_continue: bool) -> Parsed<StmtId> {
        let directives = self.directives;
        self.peek()?;
        if self.directives != directives {
            // Where `else` may follow, the error is detected at the token after a condition.
            let ahead = self.next_token.as_ref().filter(|_| may_continue && self.directive_begins);
            let line = ahead.map_or(self.directive_line, |ahead| ahead.span);
            let line = Span { last: line.first, ..line };
            self.program.report(Severity::Error, line, "incorrect use of directive");
            self.set_node_span(line);
            return Ok(self.stmt(StmtKind::Null));
        }
        self.statement()
    }

    fn if_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        let condition = self.condition()?;
        let yes = self.sub_statement(true)?;
        let mut no = None;
        if self.accept_word(Word::Else)? {
            no = Some(self.sub_statement(false)?);
        }
        self.check_condition(condition, "conditional in test must be boolean");
        self.set_node_span_from(start);
        Ok(self.stmt(StmtKind::If(condition, yes, no)))
    }

    fn while_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        let condition = self.condition()?;
        let body = self.sub_statement(false)?;
        self.check_condition(condition, "while conditional must be boolean");
        self.set_node_span_from(start);
        Ok(self.stmt(StmtKind::While(condition, body)))
    }

    fn return_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        if self.is_next_word(Word::When)? {
            self.advance()?;
            return self.when(start, true);
        }
        let mut value = None;
        if !self.is_next(Op::Semicolon)? {
            value = Some(self.expression()?);
        }
        let last = self.previous;
        self.expect(Op::Semicolon)?;
        self.set_node_span(start.to(last));
        Ok(self.make_return(value))
    }

    fn make_return(&mut self, value: Option<ExprId>) -> StmtId {
        let stmt = self.stmt(StmtKind::Return(value));
        let (flavor, result) = (self.scope().flavor, self.scope().result);
        let Some(flavor) = flavor else {
            self.error_about("return statement outside of function/event", &Object::Stmt(stmt));
            return stmt;
        };
        match value {
            None if result == TypeId::VOID || flavor != Flavor::Function => {}
            None => self.error_about("return statement needs expression", &Object::Stmt(stmt)),
            Some(value) if result == TypeId::VOID && self.scope().infers_result => {
                // In a lambda without a result type, the first value determines it.
                let ty = self.ty(value);
                let scope = self.scope();
                scope.infers_result = false;
                scope.result = ty;
            }
            Some(_) if result == TypeId::VOID => {
                self.error_about("return statement cannot have an expression", &Object::Stmt(stmt));
            }
            Some(value) => {
                if flavor == Flavor::Hook && self.ignore_deprecations == 0 {
                    let text = "Remove in v9.1: Returning values from a hook is deprecated. Consider using 'break' to inhibit lower-priority \
                                hooks, otherwise use an empty return if necessary.";
                    self.program.report_about(Severity::Warning, text, &Object::Stmt(stmt), None);
                }
                let is_number = crate::compare::is_arithmetic(self.program.types.tag(result));
                if self.is_error(value) && is_number {
                    self.error_about_both(
                        "arithmetic mixed with non-arithmetic",
                        &Object::Type(result),
                        &Object::Expr(value),
                    );
                }
                if !self.is_error(value)
                    && result != TypeId::ERROR
                    && let Some(promoted) = self.promote(value, result)
                {
                    self.program.stmts[stmt].kind = StmtKind::Return(Some(promoted));
                }
            }
        }
        self.scope().returns_value |= value.is_some();
        stmt
    }

    /// Parses `event f(x);` after the word `event`.
    pub(super) fn event_statement(&mut self, start: Span) -> Parsed<StmtId> {
        let event = self.event()?;
        self.expect(Op::Semicolon)?;
        self.set_node_span_from(start);
        Ok(match event {
            Some(event) => self.stmt(StmtKind::Event(event)),
            None => self.stmt(StmtKind::Null),
        })
    }

    fn assert_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        let condition = self.expression()?;
        let mut message = None;
        if self.accept(Op::Comma)? {
            message = Some(self.expression()?);
        }
        let last = self.previous;
        self.expect(Op::Semicolon)?;
        self.set_node_span(start.to(last));
        if self.tag(condition) != Tag::Bool {
            self.error_about("conditional must be boolean", &Object::Expr(condition));
        }
        if let Some(message) = message
            && self.tag(message) != Tag::String
        {
            self.error_about("message must be string", &Object::Expr(message));
        }
        Ok(self.stmt(StmtKind::Assert(condition, message)))
    }

    /// The variable of a `for`, declared if new; `None` for `_`.
    fn loop_variable(&mut self, name: &str, span: Span) -> Option<LocalId> {
        self.set_node_span(span);
        if name == "_" || name.ends_with("::_") {
            return None;
        }
        match self.lookup(name) {
            Some(Symbol::Global(global)) => {
                let constant = self.program.globals[global].kind == GlobalKind::Constant;
                let message = if constant {
                    "constant used in 'for' loop"
                } else {
                    "global variable used in 'for' loop"
                };
                self.error_about(message, &Object::Global(global));
                let module = self.module;
                let full = self.full_name(module, name);
                let local = self.add_local(full, TypeId::ERROR, LocalKind::Loop);
                Some(local)
            }
            Some(Symbol::Local(local)) => {
                let found = self.local(local).clone();
                if found.kind == LocalKind::Constant {
                    let text = self.program.name(found.name).to_owned();
                    self.error_about(
                        "constant used in 'for' loop",
                        &Object::Text(text.as_bytes(), found.span),
                    );
                    return Some(self.add_local(found.name, TypeId::ERROR, LocalKind::Loop));
                }
                self.scope().hidden.remove(&local);
                Some(local)
            }
            None => {
                let module = self.module;
                let full = self.full_name(module, name);
                Some(self.add_local(full, TypeId::VOID, LocalKind::Loop))
            }
        }
    }

    fn for_statement(&mut self) -> Parsed<StmtId> {
        self.advance()?;
        let start = self.previous;
        self.expect(Op::ParenLeft)?;
        let mut names = Vec::new();

        if self.accept(Op::BracketLeft)? {
            loop {
                let name = self.identifier()?;
                names.push((name, self.previous));
                if !self.accept(Op::Comma)? {
                    break;
                }
            }
            self.expect(Op::BracketRight)?;
        } else {
            let name = self.identifier()?;
            names.push((name, self.previous));
        }
        let mut value_name = None;
        if self.accept(Op::Comma)? {
            let name = self.identifier()?;
            value_name = Some((name, self.previous));
        }
        self.expect_word(Word::In)?;
        let over = self.expression()?;
        self.expect(Op::ParenRight)?;
        let head = start.to(self.previous);
        let vars =
            names.iter().map(|(name, span)| self.loop_variable(name, *span)).collect::<Vec<_>>();
        let value = value_name.as_ref().and_then(|(name, span)| self.loop_variable(name, *span));
        self.set_node_span(head);
        self.check_loop(over, &vars, value, value_name.is_some());
        let body = self.sub_statement(false)?;
        self.set_node_span_from(start);
        let each = For { vars, value, has_value: value_name.is_some(), over, body };
        Ok(self.stmt(StmtKind::For(each.into())))
    }

    /// Sets the types of loop variables from the container type.
    fn check_loop(
        &mut self,
        over: ExprId,
        vars: &[Option<LocalId>],
        value: Option<LocalId>,
        has_value: bool,
    ) {
        let ty = self.ty(over);
        match self.program.types.get(ty).clone() {
            Type::Table(table) => {
                let index = table.index.to_vec();
                let single_blank = vars.len() == 1 && vars[0].is_none();
                if index.len() != vars.len() && !single_blank {
                    return self.error_about("wrong index size", &Object::Expr(over));
                }
                let types = if single_blank { vec![TypeId::ANY] } else { index };
                if has_value && table.value.is_none() {
                    self.loop_types(over, vars, &types, None, TypeId::ERROR);
                    return self.no_values(over);
                }
                self.loop_types(over, vars, &types, value, table.value.unwrap_or(TypeId::ERROR));
            }
            Type::Vector(element) => {
                if vars.len() != 1 {
                    return self.error_about(
                        "iterating over a vector requires only a single index type",
                        &Object::Expr(over),
                    );
                }
                if let Some(local) = vars[0]
                    && self.local(local).ty != TypeId::VOID
                    && is_integral(self.program.types.tag(self.local(local).ty))
                {
                    return self.loop_types(over, &[], &[], value, element);
                }
                if self.has_type(vars[0]) {
                    let message = "vector index in \"for\" loop must be integral";
                    self.error_about(message, &Object::Expr(over));
                    return self.loop_types(over, &[], &[], value, element);
                }
                self.loop_types(over, vars, &[TypeId::COUNT], value, element);
            }
            Type::String => {
                if vars.len() != 1 {
                    return self.error_about(
                        "iterating over a string requires only a single index type",
                        &Object::Expr(over),
                    );
                }
                if let Some(local) = vars[0]
                    && self.has_type(vars[0])
                    && self.program.types.tag(self.local(local).ty) != Tag::String
                {
                    let message = "string index in \"for\" loop must be string";
                    self.error_about(message, &Object::Expr(over));
                } else {
                    self.loop_types(over, vars, &[TypeId::STRING], None, TypeId::STRING);
                }
                if has_value {
                    self.no_values(over);
                }
            }
            _ => {
                let message = "target to iterate over must be a table, set, vector, or string";
                self.error_about(message, &Object::Expr(over));
                if has_value {
                    self.no_values(over);
                }
            }
        }
    }

    /// Reports a loop over keys and values of a container without values.
    fn no_values(&mut self, over: ExprId) {
        let message = "key value for loops only support iteration over tables or vectors";
        self.error_about(message, &Object::Expr(over));
    }

    /// Whether a loop variable was declared before, with a type.
    fn has_type(&self, var: Option<LocalId>) -> bool {
        var.is_some_and(|local| self.local(local).ty != TypeId::VOID)
    }

    fn loop_types(
        &mut self,
        over: ExprId,
        vars: &[Option<LocalId>],
        types: &[TypeId],
        value: Option<LocalId>,
        value_ty: TypeId,
    ) {
        let all = vars.iter().copied().zip(types.iter().copied()).chain([(value, value_ty)]);
        for (local, ty) in all.collect::<Vec<_>>() {
            let Some(local) = local else { continue };
            let known = self.local(local).ty;
            if known == TypeId::VOID {
                let body = self.body();
                self.program.bodies[body].locals[local].ty = ty;
            } else if known != ty
                && self.program.types.tag(known) == Tag::Enum
                && self.program.types.tag(ty) == Tag::Enum
            {
                if !self.program.same_type(known, ty) {
                    self.mixed_enums(known, ty);
                }
            } else if known == TypeId::ERROR || !self.program.same_type(known, ty) {
                self.error_about_both(
                    "type clash in iteration",
                    &Object::Expr(over),
                    &Object::Type(known),
                );
            }
        }
    }
}
