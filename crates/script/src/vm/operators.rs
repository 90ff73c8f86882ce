//! Operators on values of any type.

use std::rc::Rc;

use super::Vm;
use crate::ast::{BinaryOp, UnaryOp};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::{ExprId, TypeId};
use crate::types::{Tag, Type};
use crate::value::equal::{compare, equal, subset};
use crate::value::table::parts;
use crate::value::{Table, Value, Vector};

impl Vm<'_> {
    /// `a op b`.
    pub(crate) fn binary(
        &mut self,
        site: ExprId,
        op: BinaryOp,
        a: &Value,
        b: &Value,
    ) -> Result<Value, Stop> {
        if matches!(a, Value::Vector(_)) || matches!(b, Value::Vector(_)) {
            return self.binary_vectors(site, op, a, b);
        }
        match op {
            BinaryOp::Equal => return Ok(Value::Bool(equals(a, b))),
            BinaryOp::NotEqual => {
                let same = equals(a, b);
                let both_patterns = matches!((a, b), (Value::Pattern(_), Value::Pattern(_)));
                return Ok(Value::Bool(same == both_patterns));
            }
            BinaryOp::Less | BinaryOp::LessEqual => {
                if let (Value::Table(x), Value::Table(y)) = (a, b) {
                    let within = subset(x, y);
                    return Ok(Value::Bool(
                        within && (op == BinaryOp::LessEqual || x.len() < y.len()),
                    ));
                }
                let order = compare(a, b);
                return Ok(Value::Bool(match op {
                    BinaryOp::Less => order.is_some_and(std::cmp::Ordering::is_lt),
                    _ => order.is_some_and(std::cmp::Ordering::is_le),
                }));
            }
            BinaryOp::And => return Ok(Value::Bool(a.truth() && b.truth())),
            BinaryOp::Or => return Ok(Value::Bool(a.truth() || b.truth())),
            _ => (),
        }
        let result = match (a, b) {
            (Value::Count(x), Value::Count(y)) => self.binary_counts(site, op, *x, *y)?,
            (Value::Int(x), Value::Int(y)) => self.binary_ints(site, op, *x, *y)?,
            (Value::Int(x), Value::Count(y)) if op == BinaryOp::ShiftLeft => {
                if *x < 0 {
                    return Err(self.error_at(site, "left shifting a negative number is undefined"));
                }
                Some(Value::Int(x.wrapping_shl(*y as u32)))
            }
            (Value::Int(x), Value::Count(y)) if op == BinaryOp::ShiftRight => {
                Some(Value::Int(x.wrapping_shr(*y as u32)))
            }
            (Value::Addr4(_) | Value::Addr6(_), width)
                if op == BinaryOp::Mask || op == BinaryOp::Divide =>
            {
                Some(self.mask_address(site, a, width.count())?)
            }
            (Value::Short(_) | Value::Long(_), Value::Short(_) | Value::Long(_))
                if op == BinaryOp::Add =>
            {
                let (a, b) = (a.str_bytes(), b.str_bytes());
                self.check_string_at(site, a.len() + b.len())?;
                Some(Value::string_owned([a, b].concat()))
            }
            (Value::Pattern(x), Value::Pattern(y)) => match op {
                BinaryOp::BitAnd => Some(Value::Pattern(Rc::new(x.then(y)))),
                BinaryOp::BitOr => Some(Value::Pattern(Rc::new(x.or(y)))),
                _ => None,
            },
            (Value::Table(x), Value::Table(y)) => self.binary_sets(op, x, y)?,
            _ => self.binary_doubles(site, op, a, b)?,
        };
        match result {
            Some(value) => Ok(value),
            None if !a.is_set() || !b.is_set() => {
                Err(self.error_at(site, "value used but not set"))
            }
            None => Err(self.error_at(site, "operands of wrong types")),
        }
    }

    /// Warns of a `count` difference below zero. The message shows `x -= y` as `x - y`.
    fn count_underflow(&mut self, site: ExprId) {
        let kind = self.p.exprs.find(site).map(|expr| expr.kind.clone());
        let Some(crate::ast::ExprKind::RemoveFrom(left, right)) = kind else {
            self.report_at(Severity::ExpressionWarning, site, "count underflow");
            return;
        };
        let mut text = b"count underflow (".to_vec();
        text.extend(crate::describe::expr(self.p, left));
        text.extend_from_slice(b" - ");
        text.extend(crate::describe::expr(self.p, right));
        text.push(b')');
        let span = self.p.exprs[site].span;
        self.emit(Severity::ExpressionWarning, span, text);
    }

    fn mask_address(&mut self, site: ExprId, addr: &Value, width: u64) -> Result<Value, Stop> {
        let (limit, version, prefix_bits) = match addr {
            Value::Addr4(_) => (32, 4, 96),
            _ => (128, 6, 0),
        };
        // Zeek truncates the width to 32 bits.
        let width = u64::from(width as u32);
        if width > limit {
            return Err(
                self.error_at(site, format!("bad IPv{version} subnet prefix length: {width}"))
            );
        }
        Ok(Value::subnet(addr.addr_bytes().unwrap_or_default(), (width + prefix_bits) as u8))
    }

    fn binary_counts(
        &mut self,
        site: ExprId,
        op: BinaryOp,
        x: u64,
        y: u64,
    ) -> Result<Option<Value>, Stop> {
        Ok(Some(Value::Count(match op {
            BinaryOp::Add => x.wrapping_add(y),
            BinaryOp::Subtract => {
                if y > x {
                    self.count_underflow(site);
                }
                x.wrapping_sub(y)
            }
            BinaryOp::Multiply => x.wrapping_mul(y),
            BinaryOp::Divide => match x.checked_div(y) {
                Some(value) => value,
                None => return Err(self.error_at(site, "division by zero")),
            },
            BinaryOp::Modulo => match x.checked_rem(y) {
                Some(value) => value,
                None => return Err(self.error_at(site, "modulo by zero")),
            },
            BinaryOp::BitAnd => x & y,
            BinaryOp::BitOr => x | y,
            BinaryOp::BitXor => x ^ y,
            // As on the processors that Zeek runs on, the shift count is modulo 64.
            BinaryOp::ShiftLeft => x.wrapping_shl(y as u32),
            BinaryOp::ShiftRight => x.wrapping_shr(y as u32),
            _ => return Ok(None),
        })))
    }

    fn binary_ints(
        &mut self,
        site: ExprId,
        op: BinaryOp,
        x: i64,
        y: i64,
    ) -> Result<Option<Value>, Stop> {
        Ok(Some(Value::Int(match op {
            BinaryOp::Add => x.wrapping_add(y),
            BinaryOp::Subtract => x.wrapping_sub(y),
            BinaryOp::Multiply => x.wrapping_mul(y),
            BinaryOp::Divide if y == 0 => return Err(self.error_at(site, "division by zero")),
            BinaryOp::Divide => x.wrapping_div(y),
            BinaryOp::Modulo if y == 0 => return Err(self.error_at(site, "modulo by zero")),
            BinaryOp::Modulo => x.wrapping_rem(y),
            BinaryOp::ShiftLeft if x < 0 => {
                return Err(self.error_at(site, "left shifting a negative number is undefined"));
            }
            BinaryOp::ShiftLeft => x.wrapping_shl(y as u32),
            BinaryOp::ShiftRight => x.wrapping_shr(y as u32),
            _ => return Ok(None),
        })))
    }

    fn binary_doubles(
        &mut self,
        site: ExprId,
        op: BinaryOp,
        a: &Value,
        b: &Value,
    ) -> Result<Option<Value>, Stop> {
        let number = |value: &Value| {
            matches!(
                value,
                Value::Double(_)
                    | Value::Time(_)
                    | Value::Interval(_)
                    | Value::Int(_)
                    | Value::Count(_)
            )
        };
        if !number(a) || !number(b) {
            return Ok(None);
        }
        let (x, y) = (a.double(), b.double());
        let result = match op {
            BinaryOp::Add => x + y,
            BinaryOp::Subtract => x - y,
            BinaryOp::Multiply => x * y,
            BinaryOp::Divide if y == 0.0 => {
                return Err(self.error_at(site, "division by zero"));
            }
            BinaryOp::Divide => x / y,
            BinaryOp::Modulo if y == 0.0 => {
                return Err(self.error_at(site, "modulo by zero"));
            }
            BinaryOp::Modulo => x % y,
            _ => return Ok(None),
        };
        Ok(Some(match (op, a, b) {
            (BinaryOp::Subtract, Value::Time(_), Value::Time(_)) => Value::Interval(result),
            (BinaryOp::Divide, Value::Interval(_), Value::Interval(_)) => Value::Double(result),
            (_, Value::Time(_), _) | (_, _, Value::Time(_)) => Value::Time(result),
            (_, Value::Interval(_), _) | (_, _, Value::Interval(_)) => Value::Interval(result),
            _ => Value::Double(result),
        }))
    }

    fn binary_sets(
        &mut self,
        op: BinaryOp,
        x: &Rc<Table>,
        y: &Rc<Table>,
    ) -> Result<Option<Value>, Stop> {
        let ty = if self.p.types.table(x.ty()).is_some_and(|t| t.index.is_empty()) {
            y.ty()
        } else {
            x.ty()
        };
        // A union and a difference start as copies of the left set, with its attributes.
        let attrs = if op == BinaryOp::BitAnd { None } else { x.attrs() };
        let Value::Table(result) = self.new_table(ty, attrs) else { return Ok(None) };
        match op {
            BinaryOp::BitAnd => {
                let (small, large) = if x.len() < y.len() { (x, y) } else { (y, x) };
                for key in small.keys() {
                    if large.find(parts(&key)).is_some() {
                        result.insert(key, Value::Unset, 0.0);
                    }
                }
            }
            BinaryOp::BitOr => {
                for (key, value, time) in x.entries_with_times() {
                    result.insert(key, value, time);
                }
                for key in y.keys() {
                    self.insert(&result, parts(&key), Value::Unset)?;
                }
            }
            BinaryOp::Subtract => {
                for (key, value, time) in x.entries_with_times() {
                    result.insert(key, value, time);
                }
                for key in y.keys() {
                    self.remove(&result, parts(&key))?;
                }
            }
            _ => return Ok(None),
        }
        self.watch_expiry(&result);
        Ok(Some(Value::Table(result)))
    }

    fn binary_vectors(
        &mut self,
        site: ExprId,
        op: BinaryOp,
        a: &Value,
        b: &Value,
    ) -> Result<Value, Stop> {
        let scalar_result = self.p.exprs.find(site).map_or(TypeId::VOID, |expr| expr.ty);
        let is_vector = matches!(self.p.types.get(scalar_result), Type::Vector(_));
        if !is_vector {
            // `==` and `!=` of whole vectors.
            return Ok(match op {
                BinaryOp::Equal => Value::Bool(equal(a, b)),
                BinaryOp::NotEqual => Value::Bool(!equal(a, b)),
                _ => return Err(self.error_at(site, "operands of wrong types")),
            });
        }
        let (x, y) = match (a, b) {
            (Value::Vector(x), Value::Vector(y)) => {
                if x.len() != y.len() {
                    let text = match op {
                        BinaryOp::And | BinaryOp::Or => "vector operands have different sizes",
                        _ => "vector operands are of different sizes",
                    };
                    return Err(self.error_at(site, text));
                }
                (x.items().clone(), y.items().clone())
            }
            (Value::Vector(x), scalar) => (x.items().clone(), vec![scalar.clone(); x.len()]),
            (scalar, Value::Vector(y)) => (vec![scalar.clone(); y.len()], y.items().clone()),
            _ => return Ok(Value::Unset),
        };
        let mut items = Vec::with_capacity(x.len());
        for (one, other) in x.iter().zip(&y) {
            if one.is_set() && other.is_set() {
                items.push(if op == BinaryOp::NotEqual {
                    Value::Bool(!equals(one, other))
                } else {
                    self.binary(site, op, one, other)?
                });
            } else {
                items.push(Value::Unset);
            }
        }
        Ok(Value::Vector(Vector::new(scalar_result, items)))
    }

    /// `c ? a : b` element by element.
    pub(crate) fn select(
        &mut self,
        site: ExprId,
        c: &Value,
        a: &Value,
        b: &Value,
    ) -> Result<Value, Stop> {
        let (Value::Vector(c), Value::Vector(a), Value::Vector(b)) = (c, a, b) else {
            return Err(self.error_at(site, "operands of wrong types"));
        };
        if c.len() != a.len() || c.len() != b.len() {
            let text = "vectors in conditional expression have different sizes";
            return Err(self.error_at(site, text));
        }
        let items = c
            .items()
            .iter()
            .enumerate()
            .map(|(index, value)| match value {
                Value::Bool(true) => a.get(index),
                Value::Bool(false) => b.get(index),
                _ => Value::Unset,
            })
            .collect();
        let ty = self.p.exprs.find(site).map_or(a.ty(), |expr| expr.ty);
        Ok(Value::Vector(Vector::new(ty, items)))
    }

    /// `op a`.
    pub(crate) fn unary(&mut self, site: ExprId, op: UnaryOp, a: &Value) -> Result<Value, Stop> {
        if op == UnaryOp::Clone {
            return self.copy(site, a);
        }
        if op == UnaryOp::Size {
            return Ok(self.size(a));
        }
        if let Value::Vector(vector) = a {
            let ty = self.p.exprs.find(site).map_or(vector.ty(), |expr| expr.ty);
            let source = vector.items().clone();
            let mut items = Vec::with_capacity(source.len());
            for item in &source {
                items.push(if item.is_set() { self.unary(site, op, item)? } else { Value::Unset });
            }
            return Ok(Value::Vector(Vector::new(ty, items)));
        }
        let result_tag = self.p.exprs.find(site).map(|expr| self.p.types.tag(expr.ty));
        Ok(match (op, a) {
            (UnaryOp::Not, _) => Value::Bool(!a.truth()),
            (UnaryOp::Complement, Value::Count(x)) => Value::Count(!x),
            (UnaryOp::Complement, Value::Int(x)) => Value::Int(!x),
            (UnaryOp::Negative, Value::Count(x)) => Value::Int((*x as i64).wrapping_neg()),
            (UnaryOp::Negative, Value::Int(x)) => Value::Int(x.wrapping_neg()),
            (UnaryOp::Negative, Value::Double(x)) => Value::Double(-x),
            (UnaryOp::Negative, Value::Interval(x)) => Value::Interval(-x),
            (UnaryOp::Positive, Value::Count(x)) if result_tag == Some(Tag::Int) => {
                Value::Int(*x as i64)
            }
            (UnaryOp::Positive, other) => other.clone(),
            (UnaryOp::Increment, Value::Count(x)) => Value::Count(x.wrapping_add(1)),
            (UnaryOp::Increment, Value::Int(x)) => Value::Int(x.wrapping_add(1)),
            (UnaryOp::Increment, Value::Double(x)) => Value::Double(x + 1.0),
            (UnaryOp::Decrement, Value::Count(x)) => {
                // Zeek compares the result as a signed number.
                if (*x as i64).wrapping_sub(1) < 0 {
                    self.report_at(Severity::ExpressionWarning, site, "count underflow");
                }
                Value::Count(x.wrapping_sub(1))
            }
            (UnaryOp::Decrement, Value::Int(x)) => Value::Int(x.wrapping_sub(1)),
            (UnaryOp::Decrement, Value::Double(x)) => Value::Double(x - 1.0),
            _ => return Err(self.error_at(site, "value used but not set")),
        })
    }

    /// `|a|`.
    pub(crate) fn size(&self, a: &Value) -> Value {
        match a {
            Value::Short(_) | Value::Long(_) => Value::Count(a.str_bytes().len() as u64),
            Value::Table(table) => Value::Count(table.len() as u64),
            Value::Vector(vector) => Value::Count(vector.len() as u64),
            Value::List(list) => Value::Count(list.items.len() as u64),
            Value::Record(record) => Value::Count(
                self.p.types.record(record.ty()).map_or(0, |record| record.fields.len()) as u64,
            ),
            Value::Int(x) => Value::Count(x.unsigned_abs()),
            Value::Enum(_, x) => Value::Count(*x as u64),
            Value::Count(x) => Value::Count(*x),
            Value::Bool(x) => Value::Count(u64::from(*x)),
            Value::Double(x) | Value::Time(x) | Value::Interval(x) => Value::Double(x.abs()),
            Value::Addr4(_) => Value::Count(32),
            Value::Addr6(_) => Value::Count(128),
            Value::Net4(_, width) => Value::Double(2_f64.powi(32 - i32::from(*width))),
            Value::Net6(net) => Value::Double(2_f64.powi(128 - i32::from(net.width))),
            Value::Port(port) => {
                Value::Count(u64::from(port.number) | (port.protocol as u64) << 16)
            }
            Value::Func(func) => Value::Count(self.p.types.params(func.ty).len() as u64),
            Value::File(file) => Value::Double(file.size()),
            _ => Value::Count(0),
        }
    }

    /// `a in b`, if the compiler does not know that `b` is a table.
    pub(crate) fn contains(&mut self, site: ExprId, a: &Value, b: &Value) -> Result<bool, Stop> {
        Ok(match (a, b) {
            (Value::Pattern(pattern), text) => pattern.is_in(text.str_bytes()),
            (Value::Short(_) | Value::Long(_), Value::Short(_) | Value::Long(_)) => {
                // As in Zeek, the substring is a C string and ends at a NUL.
                let part = crate::bif::c_strings(self, std::slice::from_ref(a), &[0]);
                let part = part.first().map_or(&[][..], Value::str_bytes);
                crate::support::text::contains(b.str_bytes(), part)
            }
            (Value::Addr4(_) | Value::Addr6(_), Value::Net4(..) | Value::Net6(_)) => {
                match (a.addr_bytes(), b.as_subnet()) {
                    (Some(addr), Some(net)) => crate::value::mask(addr, net.width) == net.prefix,
                    _ => false,
                }
            }
            (Value::Net4(..) | Value::Net6(_), Value::Net4(..) | Value::Net6(_)) => {
                match (a.as_subnet(), b.as_subnet()) {
                    (Some(inner), Some(net)) => {
                        inner.width >= net.width
                            && crate::value::mask(inner.prefix, net.width) == net.prefix
                    }
                    _ => false,
                }
            }
            (Value::Count(index), Value::Vector(vector)) => vector.get(*index as usize).is_set(),
            (Value::Int(index), Value::Vector(vector)) => {
                usize::try_from(*index).is_ok_and(|index| vector.get(index).is_set())
            }
            (_, Value::Table(_)) => self.in_table(b, std::slice::from_ref(a)),
            _ => return Err(self.error_at(site, "bad operands of in")),
        })
    }
}

/// Whether two values are equal; `None` for a vector and for two patterns.
pub(super) fn equals_scalar(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::Vector(_), _) | (_, Value::Vector(_)) | (Value::Pattern(_), Value::Pattern(_)) => {
            None
        }
        _ => Some(equals(a, b)),
    }
}

pub(super) fn equals(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Pattern(pattern), Value::Short(_) | Value::Long(_)) => {
            pattern.matches(b.str_bytes())
        }
        (Value::Short(_) | Value::Long(_), Value::Pattern(pattern)) => {
            pattern.matches(a.str_bytes())
        }
        _ => equal(a, b),
    }
}
