//! Expressions: a Pratt parser. Higher numbers are higher binding powers.

use super::{ParseEnd, Parsed, Parser};
use crate::ast::{BinaryOp, ExprKind, LocalKind, UnaryOp};
use crate::ids::{ExprId, TypeId};
use crate::lexer::{Op, Token, Word};
use crate::literal::Literal;
use crate::program::Target;
use crate::report::Object;
use crate::source::Span;
use crate::symbols::{GlobalKind, Symbol};
use crate::types::{AttrKind, Attrs, Flavor, Tag, Type};

const ASSIGN: u8 = 20;
const CONDITIONAL: u8 = 30;
const OR: u8 = 40;
const AND: u8 = 50;
const HOOK: u8 = 60;
const COMPARE: u8 = 70;
const IN: u8 = 80;
const BIT_OR: u8 = 90;
const UNARY_STEP: u8 = 150;
const UNARY: u8 = 160;
const POSTFIX: u8 = 170;
const CAST: u8 = 180;

/// Maximum number of chained operators.
const MAX_CHAIN: usize = 4_000;

impl Parser<'_> {
    /// Parses an expression, including assignments.
    pub(super) fn expression(&mut self) -> Parsed<ExprId> {
        let outer = std::mem::take(&mut self.in_size);
        let expr = self.binding(ASSIGN);
        self.in_size = outer;
        expr
    }

    /// Parses comma-separated expressions.
    pub(super) fn expression_list(&mut self) -> Parsed<Vec<ExprId>> {
        let mut list = vec![self.expression()?];
        while self.accept(Op::Comma)? {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    /// Parses expressions up to `end`, which is not consumed; a trailing comma is allowed.
    pub(super) fn expressions_until(&mut self, end: Op) -> Parsed<Vec<ExprId>> {
        let mut list = Vec::new();
        while !self.is_next(end)? {
            let element = if self.accept(Op::Dollar)? {
                self.field_value(self.previous)?
            } else {
                self.expression()?
            };
            list.push(element);
            if !self.accept(Op::Comma)? {
                break;
            }
        }
        Ok(list)
    }

    /// The right side of an assignment or initializer: an expression, or `{ … }`, which is a list.
    pub(super) fn right_side(&mut self) -> Parsed<ExprId> {
        if !self.accept(Op::BraceLeft)? {
            return self.binding(ASSIGN);
        }
        let start = self.previous;
        self.in_initializer += 1;
        let elements = self.deeper(|parser| parser.expressions_until(Op::BraceRight));
        self.in_initializer -= 1;
        let elements = elements?;
        self.expect(Op::BraceRight)?;
        self.set_node_span_from(start);
        // The span of a list over several lines covers the lines on which its last two elements end.
        if let Some(last) = elements.last() {
            let last = self.program.exprs[*last].span.last;
            let before = elements.len().checked_sub(2).map(|at| elements[at]);
            let first = before.map_or(last, |before| self.program.exprs[before].span.last);
            self.set_node_span(Span { first, last, ..self.node_span });
        }
        Ok(self.list_node(elements))
    }

    fn binding(&mut self, min_power: u8) -> Parsed<ExprId> {
        self.deeper(|parser| parser.binding_inner(min_power))
    }

    fn binding_inner(&mut self, min_power: u8) -> Parsed<ExprId> {
        let mut left = self.prefix()?;
        let mut chain = 0;
        loop {
            let left_end = self.previous;
            let Some((power, token)) = self.infix()? else { return Ok(left) };
            if power < min_power {
                return Ok(left);
            }
            chain += 1;
            if chain > MAX_CHAIN {
                self.error_here("memory exhausted");
                return Err(ParseEnd::Syntax);
            }
            self.advance()?;
            left = self.operator(left, left_end, power, &token)?;
            if power == COMPARE {
                let again = self.infix()?.map(|(next, _)| next);
                if again == Some(power) {
                    return Err(self.syntax_error());
                }
            }
        }
    }

    /// The binding power of the next operator, if the next token is one.
    fn infix(&mut self) -> Parsed<Option<(u8, Token)>> {
        let token = self.peek()?.clone();
        let power = match &token {
            Token::Op(op) => match op {
                Op::Assign | Op::AddTo | Op::RemoveFrom => ASSIGN,
                Op::Question => CONDITIONAL,
                Op::Or => OR,
                Op::And => AND,
                Op::Less
                | Op::Greater
                | Op::LessEqual
                | Op::GreaterEqual
                | Op::Equal
                | Op::NotEqual => COMPARE,
                Op::NotIn => IN,
                Op::BitOr if self.closes_size() => return Ok(None),
                Op::BitOr => BIT_OR,
                Op::BitXor => 100,
                Op::BitAnd => 110,
                Op::ShiftLeft | Op::ShiftRight => 120,
                Op::Plus | Op::Minus => 130,
                Op::Times | Op::Divide | Op::Modulo => 140,
                Op::Dollar | Op::HasField | Op::BracketLeft | Op::ParenLeft | Op::CanCast => {
                    POSTFIX
                }
                _ => return Ok(None),
            },
            Token::Word(Word::In) => IN,
            Token::Word(Word::As | Word::Is) => CAST,
            _ => return Ok(None),
        };
        Ok(Some((power, token)))
    }

    /// Whether the `|` ahead ends a `|…|`. It is an operator if the token after it begins an expression and
    /// cannot follow one.
    fn closes_size(&self) -> bool {
        if !self.in_size {
            return false;
        }
        let next = self.open_files.last().map(|open| open.lexer.clone().next_token().token);
        match next {
            Some(Token::Ident | Token::Literal(_) | Token::Op(Op::Not | Op::Complement)) => false,
            Some(Token::Word(word)) => matches!(
                word,
                Word::In | Word::As | Word::Is | Word::Else | Word::Of | Word::Timeout
            ),
            _ => true,
        }
    }

    /// Sets the span of new nodes to that of a construct that begins with `left`, whose last token is
    /// `left_end`.
    fn set_infix_span(&mut self, left: ExprId, left_end: Span) {
        let start = self.program.exprs[left].span.start.min(left_end.start);
        let from = Span { start, ..left_end };
        self.set_node_span_from(from);
    }

    /// Parses the rest of an operator expression after the operator.
    fn operator(
        &mut self,
        left: ExprId,
        left_end: Span,
        power: u8,
        token: &Token,
    ) -> Parsed<ExprId> {
        match token {
            Token::Word(Word::In) => {
                let right = self.binding(IN + 1)?;
                self.set_infix_span(left, left_end);
                Ok(self.in_container(left, right))
            }
            Token::Word(Word::As) => {
                let ty = self.type_()?;
                self.set_infix_span(left, left_end);
                Ok(self.cast(left, ty, false))
            }
            Token::Word(_) => {
                let ty = self.type_()?;
                self.set_infix_span(left, left_end);
                Ok(self.is_type(left, ty))
            }
            Token::Op(op) => self.symbol_operator(left, left_end, power, *op),
            _ => Ok(left),
        }
    }

    fn symbol_operator(
        &mut self,
        left: ExprId,
        left_end: Span,
        power: u8,
        op: Op,
    ) -> Parsed<ExprId> {
        match op {
            Op::Assign | Op::AddTo | Op::RemoveFrom => {
                let right = self.right_side()?;
                self.set_infix_span(left, left_end);
                return Ok(self.assignment(op, left, right));
            }
            Op::Question => {
                let yes = self.binding(CONDITIONAL)?;
                self.expect(Op::Colon)?;
                let no = self.binding(CONDITIONAL)?;
                self.set_infix_span(left, left_end);
                return Ok(self.conditional(left, yes, no));
            }
            Op::Dollar | Op::HasField => {
                let name = self.identifier()?;
                self.set_infix_span(left, left_end);
                let text = name;
                let name = self.program.names.intern(&text);
                let found = self.field(left, name, op == Op::HasField);
                if let ExprKind::Field(base, offset) | ExprKind::HasField(base, offset) =
                    self.program.exprs[found].kind
                {
                    let record = self.ty(base);
                    self.record_use(&text, Target::Field(record, offset));
                }
                return Ok(found);
            }
            Op::CanCast => {
                let ty = self.type_()?;
                self.set_infix_span(left, left_end);
                return Ok(self.cast(left, ty, true));
            }
            Op::BracketLeft => return self.index_or_slice(left, left_end),
            Op::ParenLeft => {
                // Elements of a named container are entries, not assignments.
                let named = matches!(self.program.exprs[left].kind, ExprKind::TypeValue(_));
                let outer = std::mem::replace(&mut self.in_initializer, usize::from(named));
                let args = self.expressions_until(Op::ParenRight);
                self.in_initializer = outer;
                let args = args?;
                self.expect(Op::ParenRight)?;
                self.set_infix_span(left, left_end);
                return Ok(self.call_or_construct(left, args));
            }
            Op::NotIn => {
                let right = self.binding(IN + 1)?;
                self.set_infix_span(left, left_end);
                let inside = self.in_container(left, right);
                return Ok(self.unary(UnaryOp::Not, inside));
            }
            _ => {}
        }
        let right = self.binding(power + 1)?;
        self.set_infix_span(left, left_end);
        let (op, left, right) = match op {
            Op::Or => (BinaryOp::Or, left, right),
            Op::And => (BinaryOp::And, left, right),
            Op::Less => (BinaryOp::Less, left, right),
            Op::LessEqual => (BinaryOp::LessEqual, left, right),
            Op::Greater => (BinaryOp::Less, right, left),
            Op::GreaterEqual => (BinaryOp::LessEqual, right, left),
            Op::Equal => (BinaryOp::Equal, left, right),
            Op::NotEqual => (BinaryOp::NotEqual, left, right),
            Op::BitOr => (BinaryOp::BitOr, left, right),
            Op::BitXor => (BinaryOp::BitXor, left, right),
            Op::BitAnd => (BinaryOp::BitAnd, left, right),
            Op::ShiftLeft => (BinaryOp::ShiftLeft, left, right),
            Op::ShiftRight => (BinaryOp::ShiftRight, left, right),
            Op::Plus => (BinaryOp::Add, left, right),
            Op::Minus => (BinaryOp::Subtract, left, right),
            Op::Times => (BinaryOp::Multiply, left, right),
            Op::Divide => (BinaryOp::Divide, left, right),
            _ => (BinaryOp::Modulo, left, right),
        };
        Ok(self.binary(op, left, right))
    }

    fn assignment(&mut self, op: Op, left: ExprId, right: ExprId) -> ExprId {
        if self.trailing_comma_lists.contains(&left) {
            let message = "incorrect syntax for list expression on left-hand side of assignment: trailing comma not allowed";
            self.error_about(message, &Object::Expr(left));
        }
        match op {
            Op::AddTo => self.add_to(left, right, false),
            Op::RemoveFrom => self.remove_from(left, right, false),
            _ if self.in_initializer > 0 => {
                let error = self.is_error(left) || self.is_error(right);
                self.node(
                    ExprKind::Assign(left, right),
                    if error { TypeId::ERROR } else { TypeId::VOID },
                )
            }
            _ if matches!(self.program.exprs[left].kind, ExprKind::Slice(..)) => {
                // A statement parses it again; in other contexts it is an error.
                let error = self.is_error(left) || self.is_error(right);
                self.node(
                    ExprKind::Assign(left, right),
                    if error { TypeId::ERROR } else { TypeId::VOID },
                )
            }
            _ => self.assign(left, right, &[]),
        }
    }

    fn index_or_slice(&mut self, base: ExprId, left_end: Span) -> Parsed<ExprId> {
        let outer = std::mem::take(&mut self.in_initializer);
        let result = self.index_or_slice_inner(base, left_end);
        self.in_initializer = outer;
        result
    }

    fn index_or_slice_inner(&mut self, base: ExprId, left_end: Span) -> Parsed<ExprId> {
        let mut keys = Vec::new();
        if !self.is_next(Op::Colon)? {
            if self.is_next(Op::BracketRight)? {
                return Err(self.syntax_error());
            }
            keys = self.expression_list()?;
        }
        if keys.len() <= 1 && self.accept(Op::Colon)? {
            let from = match keys.pop() {
                Some(from) => from,
                None => {
                    self.set_node_span(self.previous);
                    self.literal_node(Literal::Count(0), TypeId::COUNT)
                }
            };
            let to = if self.is_next(Op::BracketRight)? {
                self.set_infix_span(base, left_end);
                self.unary(UnaryOp::Size, base)
            } else {
                self.expression()?
            };
            self.expect(Op::BracketRight)?;
            self.set_infix_span(base, left_end);
            return Ok(self.slice(base, from, to));
        }
        self.expect(Op::BracketRight)?;
        self.set_infix_span(base, left_end);
        Ok(self.index(base, keys))
    }

    fn call_or_construct(&mut self, callee: ExprId, args: Vec<ExprId>) -> ExprId {
        let ExprKind::TypeValue(ty) = self.program.exprs[callee].kind else {
            return self.call(callee, args, self.hook_call);
        };
        self.construct_named(ty, args, Attrs::new(), callee)
    }

    /// `T(args)`.
    fn construct_named(
        &mut self,
        ty: TypeId,
        args: Vec<ExprId>,
        attrs: Attrs,
        callee: ExprId,
    ) -> ExprId {
        match self.program.types.tag(ty) {
            Tag::Record => self.named_record(ty, &args),
            Tag::Vector => self.vector_constructor(args, Some(ty)),
            Tag::Table => {
                let list = self.list_node(args.clone());
                self.construct(ty, args, attrs, list).unwrap_or_else(|| self.error_node())
            }
            _ => {
                self.error_about("type constructor not implemented", &Object::Expr(callee));
                self.error_node()
            }
        }
    }

    /// Parses a primary expression or a prefix operator.
    fn prefix(&mut self) -> Parsed<ExprId> {
        let token = self.peek()?.clone();
        match token {
            Token::Literal(literal) => {
                self.advance()?;
                self.set_node_span(self.previous);
                let ty = Self::literal_type(&literal);
                Ok(self.literal_node(literal, ty))
            }
            Token::Ident => {
                let name = self.identifier()?;
                self.set_node_span(self.previous);
                self.name(&name)
            }
            Token::Op(op) => self.prefix_operator(op),
            Token::Word(word) => self.prefix_word(word),
            _ => Err(self.syntax_error()),
        }
    }

    fn literal_type(literal: &Literal) -> TypeId {
        match literal {
            Literal::Bool(_) => TypeId::BOOL,
            Literal::Int(_) => TypeId::INT,
            Literal::Count(_) => TypeId::COUNT,
            Literal::Double(_) => TypeId::DOUBLE,
            Literal::Time(_) => TypeId::TIME,
            Literal::Interval(_) => TypeId::INTERVAL,
            Literal::String(_) => TypeId::STRING,
            Literal::Addr(_) => TypeId::ADDR,
            Literal::Subnet(_) => TypeId::SUBNET,
            Literal::Port(_) => TypeId::PORT,
            Literal::Enum(_) => TypeId::ERROR,
            Literal::Pattern(_) => TypeId::PATTERN,
        }
    }

    fn prefix_operator(&mut self, op: Op) -> Parsed<ExprId> {
        let operators = [
            Op::ParenLeft,
            Op::BracketLeft,
            Op::BitOr,
            Op::Divide,
            Op::Not,
            Op::Complement,
            Op::Minus,
            Op::Plus,
            Op::Increment,
            Op::Decrement,
        ];
        if !operators.contains(&op) {
            return Err(self.syntax_error());
        }
        self.advance()?;
        let start = self.previous;
        match op {
            Op::ParenLeft => {
                let outer = std::mem::take(&mut self.in_initializer);
                let inner = self.expression();
                self.in_initializer = outer;
                let inner = inner?;
                self.expect(Op::ParenRight)?;
                self.program.exprs[inner].paren = true;
                Ok(inner)
            }
            Op::BracketLeft => {
                let outer = std::mem::replace(&mut self.in_initializer, 1);
                let elements = self.deeper(|parser| parser.expressions_until(Op::BracketRight));
                self.in_initializer = outer;
                let elements = elements?;
                let trailing_comma_lists = !elements.is_empty()
                    && self.program.sources.files.find(self.previous.file).is_some_and(|file| {
                        file.text.get(self.previous.start as usize) == Some(&b',')
                            && self.previous.end == self.previous.start + 1
                    });
                self.expect(Op::BracketRight)?;
                self.set_node_span_from(start);
                let record = elements.first().is_none_or(|first| {
                    matches!(self.program.exprs[*first].kind, ExprKind::FieldAssign(..))
                });
                let list = if record {
                    self.record_constructor(&elements)
                } else {
                    self.list_node(elements)
                };
                if trailing_comma_lists {
                    self.trailing_comma_lists.insert(list);
                }
                Ok(list)
            }
            Op::BitOr => {
                let outer = std::mem::replace(&mut self.in_size, true);
                let operand = self.binding(BIT_OR);
                self.in_size = outer;
                let operand = operand?;
                self.expect(Op::BitOr)?;
                self.set_node_span_from(start);
                Ok(self.unary(UnaryOp::Size, operand))
            }
            Op::Divide => self.pattern(start),

            Op::Not => {
                let operand = self.binding(UNARY)?;
                self.set_node_span_from(start);
                Ok(self.unary(UnaryOp::Not, operand))
            }
            Op::Complement => {
                let operand = self.binding(UNARY)?;
                self.set_node_span_from(start);
                Ok(self.unary(UnaryOp::Complement, operand))
            }
            Op::Minus => {
                let operand = self.binding(UNARY)?;
                self.set_node_span_from(start);
                Ok(self.negative(operand))
            }
            Op::Plus => {
                let operand = self.binding(UNARY)?;
                self.set_node_span_from(start);
                Ok(self.unary(UnaryOp::Positive, operand))
            }
            _ => {
                let operand = self.binding(UNARY_STEP)?;
                self.set_node_span_from(start);
                let op = if op == Op::Increment { UnaryOp::Increment } else { UnaryOp::Decrement };
                Ok(self.unary(op, operand))
            }
        }
    }

    /// Parses a pattern whose opening slash is consumed.
    fn pattern(&mut self, start: Span) -> Parsed<ExprId> {
        let Some(open) = self.open_files.last_mut() else { return Err(self.syntax_error()) };
        let from = open.lexer.position();
        let found = open.lexer.pattern();
        let (end, line) = (open.lexer.position(), open.lexer.line());
        let (from, end) = (Self::offset(from), Self::offset(end));
        self.last_lexed = Span { first: line, last: line, start: from, end, ..start };
        match found {
            Ok(Some(source)) => {
                self.previous = self.last_lexed;
                self.set_node_span_from(start);
                if source.text.is_empty() {
                    return Err(self.syntax_error());
                }
                self.check_pattern(&source);
                Ok(self.literal_node(Literal::Pattern(source.into()), TypeId::PATTERN))
            }
            Ok(None) => Err(self.syntax_error()),
            Err(message) => {
                self.set_node_span(self.last_lexed);
                self.error_here(&message);
                let ends = self.open_files.last_mut().is_none_or(|open| open.lexer.rest_is_blank());
                if ends {
                    return Err(self.syntax_error_at_end());
                }
                Err(self.syntax_error())
            }
        }
    }

    /// `$name = value` or `$name(params) = { … }`.
    fn field_value(&mut self, start: Span) -> Parsed<ExprId> {
        let name = self.identifier()?;
        let name = self.program.names.intern(&name);
        let value = if self.is_next(Op::ParenLeft)? || self.is_next(Op::BracketLeft)? {
            self.lambda(start, true)?
        } else {
            self.expect(Op::Assign)?;
            let outer = std::mem::take(&mut self.in_initializer);
            let value = self.binding(ASSIGN);
            self.in_initializer = outer;
            value?
        };
        self.set_node_span_from(start);
        Ok(self.field_assign(name, value))
    }

    fn prefix_word(&mut self, word: Word) -> Parsed<ExprId> {
        if self.begins_type(word) {
            let ty = self.type_()?;
            let of = self.new_type(Type::Type(ty));
            return Ok(self.node(ExprKind::TypeValue(ty), of));
        }
        let words = [
            Word::Copy,
            Word::Hook,
            Word::Add,
            Word::Delete,
            Word::Record,
            Word::Table,
            Word::Set,
            Word::Vector,
            Word::Function,
            Word::Schedule,
            Word::Local,
        ];
        if !words.contains(&word) {
            return Err(self.syntax_error());
        }
        self.advance()?;
        let start = self.previous;
        match word {
            Word::Copy => {
                self.expect(Op::ParenLeft)?;
                let operand = self.expression()?;
                self.expect(Op::ParenRight)?;
                self.set_node_span_from(start);
                Ok(self.unary(UnaryOp::Clone, operand))
            }
            Word::Hook => self.hook(start),
            Word::Add | Word::Delete => {
                let operand = self.binding(ASSIGN)?;
                self.set_node_span_from(start);
                Ok(if word == Word::Add { self.add(operand) } else { self.delete(operand) })
            }
            Word::Function => self.lambda(start, false),
            Word::Schedule => {
                let when = self.expression()?;
                self.expect(Op::BraceLeft)?;
                let event = self.event()?;
                self.expect(Op::BraceRight)?;
                self.set_node_span_from(start);
                self.schedule(when, event)
            }
            Word::Local => {
                let local = self.local_name()?;
                self.expect(Op::Assign)?;
                let value = self.right_side()?;
                self.set_node_span_from(start);
                Ok(self.when_local(local, value))
            }
            _ => self.constructor(word, start),
        }
    }

    /// Whether the next word begins a type used as a value, rather than a constructor.
    fn begins_type(&self, word: Word) -> bool {
        match word {
            Word::Bool
            | Word::Int
            | Word::Count
            | Word::Double
            | Word::Time
            | Word::Interval
            | Word::String
            | Word::Pattern
            | Word::Port
            | Word::Addr
            | Word::Subnet
            | Word::Any => true,
            Word::Table | Word::Set | Word::Vector | Word::Record => {
                let next = self.open_files.last().map(|open| open.lexer.clone().next_token().token);
                next != Some(Token::Op(Op::ParenLeft))
            }
            _ => false,
        }
    }

    fn hook(&mut self, start: Span) -> Parsed<ExprId> {
        let outer = std::mem::replace(&mut self.hook_call, true);
        let call = self.binding(HOOK + 1);
        self.hook_call = outer;
        let call = call?;
        self.set_node_span_from(start);
        match &self.program.exprs[call].kind {
            ExprKind::Call(found) => {
                let callee = found.callee;
                let flavor = self.program.types.func(self.ty(callee)).map(|func| func.flavor);
                if flavor.is_some_and(|flavor| flavor != Flavor::Hook) {
                    self.error_about(
                        "hook keyword should only be used to call hooks",
                        &Object::Expr(call),
                    );
                }
            }
            _ => self.error_about("not a valid hook call expression", &Object::Expr(call)),
        }
        Ok(call)
    }

    /// Parses `$a = …, $b = …`, up to a parenthesis.
    fn field_assignments(&mut self) -> Parsed<Vec<ExprId>> {
        let mut elements = Vec::new();
        while !self.is_next(Op::ParenRight)? {
            if !self.accept(Op::Dollar)? {
                return Err(self.syntax_error());
            }
            elements.push(self.field_value(self.previous)?);
            if !self.accept(Op::Comma)? {
                break;
            }
        }
        Ok(elements)
    }

    /// `table( … )` and so on.
    fn constructor(&mut self, word: Word, start: Span) -> Parsed<ExprId> {
        self.expect(Op::ParenLeft)?;
        self.in_initializer += 1;
        let elements = self.deeper(|parser| {
            if word == Word::Record {
                parser.field_assignments()
            } else {
                parser.expressions_until(Op::ParenRight)
            }
        });
        self.in_initializer -= 1;
        let elements = elements?;
        self.expect(Op::ParenRight)?;
        self.set_node_span_from(start);
        let here = self.node_span;
        let attrs =
            if matches!(word, Word::Table | Word::Set) { self.attributes()? } else { Attrs::new() };
        self.node_span = here;
        Ok(match word {
            Word::Record => self.record_constructor(&elements),
            Word::Vector => self.vector_constructor(elements, None),
            Word::Set => {
                let entries = self.set_entries(&elements, None);
                self.set_constructor(entries, attrs, None).unwrap_or_else(|| self.error_node())
            }
            _ => {
                let entries = self.table_entries(&elements, None);
                let built =
                    entries.and_then(|entries| self.table_constructor(entries, attrs, None));
                built.unwrap_or_else(|| self.error_node())
            }
        })
    }

    /// `add s[k]`.
    fn add(&mut self, operand: ExprId) -> ExprId {
        let ty = if self.is_error(operand) { TypeId::ERROR } else { TypeId::VOID };
        let expr = self.node(ExprKind::Add(operand), ty);
        if ty == TypeId::ERROR {
            return expr;
        }
        let is_set = match self.program.exprs[operand].kind {
            ExprKind::Index(base, _) => self.program.types.is_set(self.ty(base)),
            _ => false,
        };
        if is_set { expr } else { self.fail(expr, "illegal add expression") }
    }

    /// `delete t[k]`, `delete r$f`, `delete t`.
    fn delete(&mut self, operand: ExprId) -> ExprId {
        let ty = if self.is_error(operand) { TypeId::ERROR } else { TypeId::VOID };
        let expr = self.node(ExprKind::Delete(operand), ty);
        if ty == TypeId::ERROR {
            return expr;
        }
        let tag = self.tag(operand);
        let legal = match self.program.exprs[operand].kind {
            ExprKind::Index(base, _) => self.tag(base) == Tag::Table,
            ExprKind::Field(record, offset) => {
                let record = self.program.types.record(self.ty(record));
                let attrs = record
                    .and_then(|record| record.fields.get(offset as usize))
                    .map(|field| field.attrs.clone());
                attrs.is_some_and(|attrs| crate::compare::may_be_missing(&attrs))
                    || matches!(tag, Tag::Table | Tag::Vector)
            }
            _ => matches!(tag, Tag::Table | Tag::Vector),
        };
        if legal { expr } else { self.fail(expr, "illegal delete expression") }
    }

    /// A name as an expression.
    fn name(&mut self, name: &str) -> Parsed<ExprId> {
        if name == "_" || name.ends_with("::_") {
            let expr = self.node(ExprKind::Blank, TypeId::ANY);
            let module = self.module;
            let full = self.full_name(module, name);
            let text = self.program.name(full).as_bytes().to_vec();
            if !self.blank_allowed {
                let span = self.node_span;
                self.error_about("blank identifier used in expression", &Object::Text(&text, span));
                self.set_ty(expr, TypeId::ERROR);
            }
            return Ok(expr);
        }
        match self.lookup(name) {
            None => {
                self.near(&format!("unknown identifier {name}"), self.previous);
                Err(ParseEnd::Syntax)
            }
            Some(Symbol::Local(local)) => {
                let found = self.local(local);
                let (full, mut ty, span) = (found.name, found.ty, found.span);
                if ty == TypeId::VOID {
                    let text = self.program.name(full).to_owned();
                    self.error_about("undeclared variable", &Object::Text(text.as_bytes(), span));
                    let body = self.body();
                    self.program.bodies[body].locals[local].ty = TypeId::ERROR;
                    ty = TypeId::ERROR;
                }
                let expr = self.node(ExprKind::Local(local, full), ty);
                if self.scope().hidden.contains(&local) {
                    let name = self.program.name(full).to_owned();
                    self.error_about(
                        "use of out-of-scope local; move declaration to outer scope",
                        &Object::Text(name.as_bytes(), span),
                    );
                }
                Ok(expr)
            }
            Some(Symbol::Global(global)) => {
                self.warn_deprecated(global);
                self.program.globals[global].uses += 1;
                let entry = &self.program.globals[global];
                let ty = entry.ty;
                match entry.kind {
                    GlobalKind::EnumValue(value) => Ok(self.literal_node(Literal::Enum(value), ty)),
                    GlobalKind::Type => {
                        let of = self.new_type(Type::Type(ty));
                        Ok(self.node(ExprKind::TypeValue(ty), of))
                    }
                    GlobalKind::Unknown if ty == TypeId::VOID => {
                        self.error_about("undeclared variable", &Object::Global(global));
                        self.program.globals[global].ty = TypeId::ERROR;
                        Ok(self.node(ExprKind::Global(global), TypeId::ERROR))
                    }
                    _ => {
                        self.scope().globals.push(global);
                        Ok(self.node(ExprKind::Global(global), ty))
                    }
                }
            }
        }
    }

    /// `local x = value` in the condition of a `when`: declares the local and yields true.
    fn when_local(&mut self, local: crate::ids::LocalId, value: ExprId) -> ExprId {
        let ty = self.infer(value).unwrap_or(TypeId::ERROR);
        let body = self.body();
        let entry = &mut self.program.bodies[body].locals[local];
        entry.ty = ty;
        entry.kind = LocalKind::Variable;
        let name = entry.name;
        let target = self.node(ExprKind::Local(local, name), ty);
        let assign = self.assign(target, value, &[]);
        // In Zeek, such an assignment yields T.
        let result = if self.is_error(assign) { TypeId::ERROR } else { TypeId::BOOL };
        self.set_ty(assign, result);
        assign
    }

    /// Parses `f(args)` of an event statement or of a `schedule`. `None` after an error.
    pub(super) fn event(&mut self) -> Parsed<Option<crate::ast::EventCall>> {
        let name = self.identifier()?;
        let start = self.previous;
        self.expect(Op::ParenLeft)?;
        let args = self.expressions_until(Op::ParenRight)?;
        self.expect(Op::ParenRight)?;
        self.set_node_span_from(start);
        let last = std::mem::replace(&mut self.previous, start);
        let found = self.lookup(&name);
        self.previous = last;
        let global = match found {
            Some(Symbol::Global(global)) => {
                self.warn_deprecated(global);
                self.program.globals[global].uses += 1;
                self.scope().globals.push(global);
                Some(global)
            }
            Some(Symbol::Local(_)) => {
                self.near(
                    &format!("local identifier \"{name}\" cannot be used to reference an event"),
                    self.previous,
                );
                return Err(ParseEnd::Syntax);
            }
            None => None,
        };
        Ok(self.event_call(global, &name, args))
    }

    /// Whether the global has the attribute.
    pub(super) fn global_has(&self, global: crate::ids::GlobalId, kind: AttrKind) -> bool {
        crate::types::find_attr(&self.program.globals[global].attrs, kind).is_some()
    }

    /// Reports an error if a pattern does not compile.
    fn check_pattern(&mut self, source: &crate::literal::PatternSource) {
        let modes = crate::support::pattern::Modes {
            ignore_case: source.case_insensitive,
            single_line: source.single_line,
        };
        for error in crate::support::pattern::Pattern::check(&source.text, modes) {
            self.error_here(&String::from_utf8_lossy(&error));
        }
    }
}
