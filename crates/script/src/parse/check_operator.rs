//! Types of operators.

use super::Parser;
use crate::ast::{BinaryOp, Coercion, ExprKind, UnaryOp};
use crate::compare::{is_arithmetic, is_integral, max_tag};
use crate::ids::{ExprId, TypeId};
use crate::literal::Literal;
use crate::program::Program;
use crate::types::{Tag, Type};

impl Parser<'_> {
    /// An operator with two operands.
    pub(super) fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> ExprId {
        let expr = self.node(ExprKind::Binary(op, left, right), TypeId::ERROR);
        if self.is_error(left) || self.is_error(right) {
            return expr;
        }
        let (left_ty, right_ty) = (self.ty(left), self.ty(right));
        let (a, b) = (self.program.scalar_tag(left_ty), self.program.scalar_tag(right_ty));
        let on_vectors = matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Divide
                | BinaryOp::Mask
                | BinaryOp::Modulo
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Less
                | BinaryOp::LessEqual
        );
        if on_vectors && self.mixes_vector_and_scalar(expr) {
            return expr;
        }
        match op {
            BinaryOp::Add => self.check_add(expr, a, b),
            BinaryOp::Subtract => self.check_subtract(expr, a, b),
            BinaryOp::Multiply => self.check_multiply(expr, a, b),
            BinaryOp::Divide | BinaryOp::Mask => self.check_divide(expr, a, b),
            BinaryOp::Modulo => {
                if is_integral(a) && is_integral(b) {
                    self.promote_operands(expr, max_tag(a, b));
                } else {
                    self.fail(expr, "requires integral operands");
                }
            }
            BinaryOp::And | BinaryOp::Or => {
                if a == Tag::Bool && b == Tag::Bool {
                    self.set_result(expr, TypeId::BOOL);
                } else {
                    self.fail(expr, "requires boolean operands");
                }
            }
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                self.check_bits(expr, op, a, b);
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => self.check_shift(expr, a, b),
            BinaryOp::Equal | BinaryOp::NotEqual => self.check_equal(expr),
            BinaryOp::Less | BinaryOp::LessEqual => self.check_less(expr, a, b),
        }
        expr
    }

    /// Whether exactly one operand is a vector; reports the error.
    fn mixes_vector_and_scalar(&mut self, expr: ExprId) -> bool {
        let (left, right) = self.operands(expr);
        let mixed = (self.tag(left) == Tag::Vector) != (self.tag(right) == Tag::Vector);
        if mixed {
            self.fail(expr, "cannot mix vector and scalar operands");
        }
        mixed
    }

    fn operands(&self, expr: ExprId) -> (ExprId, ExprId) {
        match self.program.exprs[expr].kind {
            ExprKind::Binary(_, left, right) => (left, right),
            _ => (expr, expr),
        }
    }

    fn set_operands(&mut self, expr: ExprId, left: ExprId, right: ExprId) {
        if let ExprKind::Binary(_, old_left, old_right) = &mut self.program.exprs[expr].kind {
            *old_left = left;
            *old_right = right;
        }
    }

    fn set_op(&mut self, expr: ExprId, new: BinaryOp) {
        if let ExprKind::Binary(op, ..) = &mut self.program.exprs[expr].kind {
            *op = new;
        }
    }

    /// Sets the result type to `ty`, or to a vector of it if an operand is a vector.
    fn set_result(&mut self, expr: ExprId, ty: TypeId) {
        let (left, right) = self.operands(expr);
        let result = if self.tag(left) == Tag::Vector || self.tag(right) == Tag::Vector {
            self.vector_of(ty)
        } else {
            ty
        };
        self.set_ty(expr, result);
    }

    fn convert_operands(&mut self, expr: ExprId, tag: Tag) {
        let (left, right) = self.operands(expr);
        let (left, right) = (self.coerce_to_number(left, tag), self.coerce_to_number(right, tag));
        self.set_operands(expr, left, right);
    }

    fn promote_operands(&mut self, expr: ExprId, tag: Tag) {
        self.convert_operands(expr, tag);
        self.set_result(expr, Program::number_type(tag));
    }

    fn check_add(&mut self, expr: ExprId, a: Tag, b: Tag) {
        match (a, b) {
            (Tag::Time | Tag::Interval, Tag::Interval) => {
                self.set_result(expr, Program::number_type(a));
            }
            (Tag::Interval, Tag::Time) => self.set_result(expr, TypeId::TIME),
            (Tag::String, Tag::String) => self.set_result(expr, TypeId::STRING),
            _ if is_arithmetic(a) && is_arithmetic(b) => self.promote_operands(expr, max_tag(a, b)),
            _ => {
                self.fail(expr, "requires arithmetic operands");
            }
        }
    }

    fn check_subtract(&mut self, expr: ExprId, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        match (a, b) {
            (Tag::Time | Tag::Interval, Tag::Interval) => {
                self.set_result(expr, Program::number_type(a));
            }
            (Tag::Time, Tag::Time) => self.set_result(expr, TypeId::INTERVAL),
            _ if self.is_set(left) && self.is_set(right) => self.check_sets(expr),
            _ if is_arithmetic(a) && is_arithmetic(b) => self.promote_operands(expr, max_tag(a, b)),
            _ => {
                self.fail(expr, "requires arithmetic operands");
            }
        }
    }

    fn is_set(&self, expr: ExprId) -> bool {
        self.program.types.is_set(self.ty(expr))
    }

    fn check_sets(&mut self, expr: ExprId) {
        let (left, right) = self.operands(expr);
        let (a, b) = (self.ty(left), self.ty(right));
        if self.program.same_type(a, b) {
            self.set_ty(expr, if a == TypeId::UNSPECIFIED_SET { b } else { a });
        } else {
            self.fail(expr, "incompatible \"set\" operands");
        }
    }

    fn check_multiply(&mut self, expr: ExprId, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        let constant = |expr: ExprId| matches!(self.program.exprs[expr].kind, ExprKind::Literal(_));
        let (mut a, mut b) = (a, b);
        if self.rank(right) > self.rank(left)
            || self.tag(right) == Tag::Interval
            || (constant(right) && !constant(left))
        {
            self.set_operands(expr, right, left);
            std::mem::swap(&mut a, &mut b);
        }
        if self.mixes_vector_and_scalar(expr) {
            return;
        }
        let (left, right) = self.operands(expr);
        if a == Tag::Interval || b == Tag::Interval {
            if is_arithmetic(b) {
                let right = self.coerce_to_number(right, Tag::Double);
                self.set_operands(expr, left, right);
                self.set_result(expr, TypeId::INTERVAL);
            } else if is_arithmetic(a) {
                let left = self.coerce_to_number(left, Tag::Double);
                self.set_operands(expr, left, right);
                self.set_result(expr, TypeId::INTERVAL);
            } else {
                self.fail(expr, "multiplication with interval requires arithmetic operand");
            }
        } else if is_arithmetic(a) && is_arithmetic(b) {
            self.promote_operands(expr, max_tag(a, b));
        } else {
            self.fail(expr, "requires arithmetic operands");
        }
    }

    fn check_divide(&mut self, expr: ExprId, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        match (a, b) {
            (Tag::Addr, _) if !matches!(b, Tag::Count | Tag::Int) => {
                self.fail(expr, "requires address LHS and count/int RHS");
            }
            (Tag::Interval, Tag::Interval) => self.set_result(expr, TypeId::DOUBLE),
            (Tag::Interval, _) if is_arithmetic(b) => {
                let right = self.coerce_to_number(right, Tag::Double);
                self.set_operands(expr, left, right);
                self.set_result(expr, TypeId::INTERVAL);
            }
            (_, Tag::Interval) if is_arithmetic(a) => {
                let left = self.coerce_to_number(left, Tag::Double);
                self.set_operands(expr, left, right);
                self.set_result(expr, TypeId::INTERVAL);
            }
            (Tag::Interval, _) | (_, Tag::Interval) => {
                self.fail(expr, "division of interval requires arithmetic operand");
            }
            (Tag::Addr, Tag::Count | Tag::Int) => {
                self.set_op(expr, BinaryOp::Mask);
                self.set_result(expr, TypeId::SUBNET);
            }
            _ if is_arithmetic(a) && is_arithmetic(b) => self.promote_operands(expr, max_tag(a, b)),
            _ => {
                self.fail(expr, "requires arithmetic operands");
            }
        }
    }

    fn check_bits(&mut self, expr: ExprId, op: BinaryOp, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        if a == Tag::Count && b == Tag::Count {
            self.set_result(expr, TypeId::COUNT);
        } else if a == Tag::Pattern {
            if b != Tag::Pattern {
                self.fail(expr, "cannot mix pattern and non-pattern operands");
            } else if op == BinaryOp::BitXor {
                self.fail(expr, "'^' operator does not apply to patterns");
            } else {
                self.set_result(expr, TypeId::PATTERN);
            }
        } else if self.is_set(left) && self.is_set(right) {
            if op == BinaryOp::BitXor {
                self.fail(expr, "'^' operator does not apply to sets");
            } else {
                self.check_sets(expr);
            }
        } else {
            self.fail(expr, "requires \"count\" or compatible \"set\" operands");
        }
    }

    fn check_shift(&mut self, expr: ExprId, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        if (self.tag(left) == Tag::Vector) != (self.tag(right) == Tag::Vector) {
            self.fail(expr, "cannot mix vectors and scalars for shift operations");
        }
        if is_integral(a) && b == Tag::Count {
            if a == Tag::Int {
                let right = self.coerce_to_number(right, Tag::Int);
                self.set_operands(expr, left, right);
            }
            self.set_result(expr, Program::number_type(a));
        } else if is_integral(a) && is_integral(b) {
            self.fail(expr, "requires \"count\" right operand");
        } else {
            self.fail(expr, "requires integral operands");
        }
    }

    fn check_equal(&mut self, expr: ExprId) {
        let (mut left, mut right) = self.operands(expr);
        if self.tag(right) == Tag::Pattern
            || (self.tag(left) != Tag::Pattern && self.rank(right) > self.rank(left))
        {
            std::mem::swap(&mut left, &mut right);
            self.set_operands(expr, left, right);
        }
        if self.mixes_vector_and_scalar(expr) {
            return;
        }
        let (left_ty, right_ty) = (self.ty(left), self.ty(right));
        let (a, b) = (self.program.scalar_tag(left_ty), self.program.scalar_tag(right_ty));
        let sets = self.is_set(left) && self.is_set(right);
        self.set_result(expr, TypeId::BOOL);
        if is_arithmetic(a) && is_arithmetic(b) {
            self.convert_operands(expr, max_tag(a, b));
        } else if (is_arithmetic(a) || is_arithmetic(b))
            && ((a == Tag::Time && self.is_zero(right)) || (b == Tag::Time && self.is_zero(left)))
        {
            self.convert_operands(expr, Tag::Time);
        } else if (is_arithmetic(a) || is_arithmetic(b))
            && ((a == Tag::Interval && self.is_zero(right))
                || (b == Tag::Interval && self.is_zero(left)))
        {
            self.convert_operands(expr, Tag::Interval);
        } else if a == b {
            match a {
                Tag::Bool
                | Tag::Time
                | Tag::Interval
                | Tag::String
                | Tag::Port
                | Tag::Addr
                | Tag::Subnet
                | Tag::Pattern
                | Tag::Func
                | Tag::Error => {}
                Tag::Enum => {
                    let (left, right) =
                        (self.program.scalar(left_ty), self.program.scalar(right_ty));
                    if !self.program.same_type(left, right) {
                        self.mixed_enums(left, right);
                    }
                }
                Tag::Table if sets => {
                    if !self.program.same_type(left_ty, right_ty) {
                        self.fail(expr, "incompatible sets in comparison");
                    }
                }
                _ => {
                    self.fail(expr, "illegal comparison");
                }
            }
        } else if a == Tag::Pattern && b == Tag::String {
            if self.tag(left) == Tag::Vector || self.tag(right) == Tag::Vector {
                self.fail(expr, "cannot compare string vectors with pattern vectors");
            }
        } else if (a, b) == (Tag::String, Tag::Pattern) && self.tag(right) == Tag::Vector {
            self.fail(expr, "cannot compare string vectors with pattern vectors");
        } else {
            self.fail(expr, "type clash in comparison");
        }
    }

    fn check_less(&mut self, expr: ExprId, a: Tag, b: Tag) {
        let (left, right) = self.operands(expr);
        self.set_result(expr, TypeId::BOOL);
        if is_arithmetic(a) && is_arithmetic(b) {
            self.convert_operands(expr, max_tag(a, b));
        } else if (is_arithmetic(a) || is_arithmetic(b))
            && ((a == Tag::Time && self.is_zero(right)) || (b == Tag::Time && self.is_zero(left)))
        {
            self.convert_operands(expr, Tag::Time);
        } else if (is_arithmetic(a) || is_arithmetic(b))
            && ((a == Tag::Interval && self.is_zero(right))
                || (b == Tag::Interval && self.is_zero(left)))
        {
            self.convert_operands(expr, Tag::Interval);
        } else if self.is_set(left) && self.is_set(right) {
            let (left, right) = (self.ty(left), self.ty(right));
            if !self.program.same_type(left, right) {
                self.fail(expr, "incompatible sets in comparison");
            }
        } else if a != b {
            self.fail(expr, "operands must be of the same type");
        } else if !matches!(a, Tag::Time | Tag::Interval | Tag::Port | Tag::Addr | Tag::String) {
            self.fail(expr, "illegal comparison");
        }
    }

    /// Zeek's number of the expression's kind, by which Zeek orders the operands of `==`.
    fn rank(&self, expr: ExprId) -> u32 {
        match &self.program.exprs[expr].kind {
            ExprKind::Global(_) | ExprKind::Local(..) | ExprKind::Blank | ExprKind::Error => 0,
            ExprKind::Literal(_) | ExprKind::TypeValue(_) => 1,
            ExprKind::Unary(op, _) => match op {
                UnaryOp::Clone => 2,
                UnaryOp::Increment => 3,
                UnaryOp::Decrement => 4,
                UnaryOp::Not => 5,
                UnaryOp::Complement => 6,
                UnaryOp::Positive => 7,
                UnaryOp::Negative => 8,
                UnaryOp::Size => 60,
            },
            ExprKind::Add(_) => 9,
            ExprKind::Delete(_) => 10,
            ExprKind::Binary(op, ..) => match op {
                BinaryOp::Add => 11,
                BinaryOp::Subtract => 12,
                BinaryOp::Multiply => 15,
                BinaryOp::Divide => 16,
                BinaryOp::Mask => 17,
                BinaryOp::Modulo => 18,
                BinaryOp::BitAnd => 19,
                BinaryOp::BitOr => 20,
                BinaryOp::BitXor => 21,
                BinaryOp::ShiftLeft => 22,
                BinaryOp::ShiftRight => 23,
                BinaryOp::And => 24,
                BinaryOp::Or => 25,
                BinaryOp::Less => 26,
                BinaryOp::LessEqual => 27,
                BinaryOp::Equal => 28,
                BinaryOp::NotEqual => 29,
            },
            ExprKind::AddTo(..) => 13,
            ExprKind::RemoveFrom(..) => 14,
            ExprKind::Conditional(..) => 32,
            ExprKind::Assign(..) => 34,
            ExprKind::Index(..) | ExprKind::Slice(..) => 35,
            ExprKind::Field(..) => 36,
            ExprKind::HasField(..) => 37,
            ExprKind::Record(_) => 38,
            ExprKind::Table(_) => 39,
            ExprKind::Set(_) => 40,
            ExprKind::Vector(_) => 41,
            ExprKind::FieldAssign(..) => 42,
            ExprKind::In(..) => 43,
            ExprKind::List(_) => 44,
            ExprKind::Call(_) => 45,
            ExprKind::Lambda(_) => 46,
            ExprKind::Event(_) => 47,
            ExprKind::Schedule(..) => 48,
            ExprKind::Coerce(Coercion::Arithmetic | Coercion::ArithmeticVector, _) => 49,
            ExprKind::Coerce(Coercion::Record, _) => 50,
            ExprKind::Coerce(Coercion::Table, _) => 51,
            ExprKind::Coerce(Coercion::Vector, _) => 52,
            ExprKind::Coerce(_, operand) => self.rank(*operand),
            ExprKind::Cast(_) => 61,
            ExprKind::Is(..) | ExprKind::CanCast(..) => 62,
        }
    }

    /// An operator with one operand.
    pub(super) fn unary(&mut self, op: UnaryOp, operand: ExprId) -> ExprId {
        let expr = self.node(ExprKind::Unary(op, operand), TypeId::ERROR);
        if self.is_error(operand) {
            return expr;
        }
        let ty = self.ty(operand);
        let tag = self.program.scalar_tag(ty);
        let vector = self.program.types.tag(ty) == Tag::Vector;
        let result = match op {
            UnaryOp::Not if !vector && (is_integral(tag) || tag == Tag::Bool) => TypeId::BOOL,
            UnaryOp::Not => return self.fail(expr, "requires an integral or boolean operand"),
            UnaryOp::Complement if !vector && tag == Tag::Count => TypeId::COUNT,
            UnaryOp::Complement => return self.fail(expr, "requires \"count\" operand"),
            UnaryOp::Positive | UnaryOp::Negative if is_integral(tag) => TypeId::INT,
            UnaryOp::Positive | UnaryOp::Negative if matches!(tag, Tag::Double | Tag::Interval) => {
                Program::number_type(tag)
            }
            UnaryOp::Positive | UnaryOp::Negative => {
                return self.fail(expr, "requires an integral or double operand");
            }
            UnaryOp::Increment | UnaryOp::Decrement => {
                if !self.check_lvalue(operand) {
                    return expr;
                }
                if vector || !is_integral(tag) {
                    return self.fail(expr, "requires an integral operand");
                }
                self.set_ty(expr, ty);
                return expr;
            }
            UnaryOp::Size => {
                let size = match self.program.types.get(ty) {
                    Type::Void => return self.fail(expr, "cannot take size of void"),
                    Type::Any => TypeId::ANY,
                    Type::File | Type::Subnet | Type::Double | Type::Time | Type::Interval => {
                        TypeId::DOUBLE
                    }
                    _ => TypeId::COUNT,
                };
                self.set_ty(expr, size);
                return expr;
            }
            UnaryOp::Clone => {
                self.set_ty(expr, ty);
                return expr;
            }
        };
        let result = if vector { self.vector_of(result) } else { result };
        self.set_ty(expr, result);
        expr
    }

    /// `a ? b : c`.
    pub(super) fn conditional(&mut self, condition: ExprId, yes: ExprId, no: ExprId) -> ExprId {
        let expr = self.node(ExprKind::Conditional(condition, yes, no), TypeId::ERROR);
        if self.is_error(condition) || self.is_error(yes) || self.is_error(no) {
            return expr;
        }
        let condition_ty = self.ty(condition);
        if self.program.scalar_tag(condition_ty) != Tag::Bool {
            return self.fail(expr, "requires boolean conditional");
        }
        let (yes_ty, no_ty) = (self.ty(yes), self.ty(no));
        if self.tag(condition) == Tag::Vector
            && (self.tag(yes) != Tag::Vector || self.tag(no) != Tag::Vector)
        {
            return self.fail(expr, "vector conditional requires vector alternatives");
        }
        let (a, b) = (self.program.scalar_tag(yes_ty), self.program.scalar_tag(no_ty));
        if self.tag(condition) == Tag::Vector && !(is_arithmetic(a) && is_arithmetic(b)) {
            let message = if a == b {
                "vector conditional type clash between alternatives"
            } else {
                "operands must be of the same type"
            };
            return self.fail(expr, message);
        }
        let (mut new_yes, mut new_no) = (yes, no);
        let ty = if is_arithmetic(a)
            && is_arithmetic(b)
            && (self.tag(yes) == Tag::Vector) == (self.tag(no) == Tag::Vector)
        {
            let tag = max_tag(a, b);
            (new_yes, new_no) = (self.coerce_to_number(yes, tag), self.coerce_to_number(no, tag));
            self.ty(new_yes)
        } else if self.program.fits_unspecified(yes_ty, no_ty) {
            new_no = self.coerce_to_specified(no, yes_ty);
            yes_ty
        } else if self.program.fits_unspecified(no_ty, yes_ty) {
            new_yes = self.coerce_to_specified(yes, no_ty);
            no_ty
        } else if self.program.same_type(yes_ty, no_ty) {
            if self.tag(yes) == Tag::Any && self.tag(no) != Tag::Any {
                new_no = self.promote(no, TypeId::ANY).unwrap_or(no);
            } else if self.tag(no) == Tag::Any && self.tag(yes) != Tag::Any {
                new_yes = self.promote(yes, TypeId::ANY).unwrap_or(yes);
            }
            self.ty(new_yes)
        } else {
            return self.fail(expr, "operands must be of the same type");
        };
        self.program.exprs[expr].kind = ExprKind::Conditional(condition, new_yes, new_no);
        self.set_ty(expr, ty);
        expr
    }

    /// `key in container`.
    pub(super) fn in_container(&mut self, key: ExprId, container: ExprId) -> ExprId {
        let expr = self.node(ExprKind::In(key, container), TypeId::ERROR);
        if self.is_error(key) || self.is_error(container) {
            return expr;
        }
        let (key_ty, container_ty) = (self.ty(key), self.ty(container));
        match (self.program.types.tag(key_ty), self.program.types.tag(container_ty)) {
            (Tag::Pattern, Tag::String) | (Tag::String, Tag::String) | (Tag::Addr, Tag::Subnet) => {
                self.set_ty(expr, TypeId::BOOL);
                return expr;
            }
            (Tag::Pattern, Tag::Table) => {}
            (Tag::Pattern, _) => {
                self.error_about_both(
                    "pattern requires string or set/table index",
                    &crate::report::Object::Type(container_ty),
                    &crate::report::Object::Expr(key),
                );
                return expr;
            }
            _ => {}
        }
        let list = if matches!(self.program.exprs[key].kind, ExprKind::List(_)) {
            key
        } else {
            self.list_node(vec![key])
        };
        if self.match_index(container, list).is_none() {
            return self.fail(expr, "not an index type");
        }
        let elements = self.elements(list);
        let key = if elements.len() == 1 { elements[0] } else { list };
        self.program.exprs[expr].kind = ExprKind::In(key, container);
        self.set_ty(expr, TypeId::BOOL);
        expr
    }

    /// The negation of an operand, folded if that is a literal.
    pub(super) fn negative(&mut self, operand: ExprId) -> ExprId {
        let number = match &self.program.exprs[operand].kind {
            ExprKind::Literal(Literal::Count(number)) => Some(*number),
            _ => None,
        };
        if let Some(number) = number {
            return match 0_i64.checked_sub_unsigned(number) {
                Some(value) => self.literal_node(Literal::Int(value), TypeId::INT),
                None => {
                    let paren = self.program.exprs[operand].paren;
                    let text = if paren { format!("-({number})") } else { format!("-{number}") };
                    let span = self.node_span;
                    self.error_about(
                        "literal is outside range of 'int' values",
                        &crate::report::Object::Text(text.as_bytes(), span),
                    );
                    self.error_node()
                }
            };
        }
        let folded = match &self.program.exprs[operand].kind {
            ExprKind::Literal(Literal::Int(value)) => {
                Some((Literal::Int(value.wrapping_neg()), TypeId::INT))
            }
            ExprKind::Literal(Literal::Double(value)) => {
                Some((Literal::Double(-value), TypeId::DOUBLE))
            }
            ExprKind::Literal(Literal::Interval(value)) => {
                Some((Literal::Interval(-value), TypeId::INTERVAL))
            }
            _ => None,
        };
        match folded {
            Some((literal, ty)) => self.literal_node(literal, ty),
            None => self.unary(UnaryOp::Negative, operand),
        }
    }
}
