//! The typed, resolved AST.
//!
//! Every node carries its type. Names are resolved to globals and locals, fields to offsets. Each implicit
//! conversion of Zeek is a node of its own ([`ExprKind::Coerce`]). Nodes keep the properties that Zeek's text
//! of them shows (parentheses in the source, canonical operand order), because messages and printed functions
//! contain that text.

use std::rc::Rc;

use crate::ids::{Arena, BodyId, ExprId, FuncId, GlobalId, LocalId, Name, StmtId, TypeId};
use crate::literal::Literal;
use crate::source::Span;
use crate::types::{Attrs, Flavor};

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Kind of the expression.
    pub kind: ExprKind,
    /// Its type. [`TypeId::ERROR`] after an error, which was reported.
    pub ty: TypeId,
    /// Where it was written.
    pub span: Span,
    /// Whether parentheses were written around it.
    pub paren: bool,
}

impl Default for Expr {
    fn default() -> Self {
        Self { kind: ExprKind::Error, ty: TypeId::ERROR, span: Span::NOWHERE, paren: false }
    }
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// After an error.
    Error,
    /// A constant.
    Literal(Literal),
    /// A type as a value; the expression's type is [`crate::types::Type::Type`].
    TypeValue(TypeId),
    /// `_`, on the left side only.
    Blank,
    /// A local of the body that contains the expression: variable, parameter or capture; with its name.
    Local(LocalId, Name),
    /// A global variable, constant, option or function.
    Global(GlobalId),
    /// An operator with one operand.
    Unary(UnaryOp, ExprId),
    /// An operator with two operands of the types that the operator needs: numbers have the same type, times
    /// and intervals are mixed as [`BinaryOp`] lists. Where the result is a vector, the operator applies to
    /// vector operands element by element.
    Binary(BinaryOp, ExprId, ExprId),
    /// `a ? b : c`; element by element where `a` is a vector.
    Conditional(ExprId, ExprId, ExprId),
    /// `k in t`, with one key expression per index type of a table; for other containers a list of one. `!in`
    /// is a [`UnaryOp::Not`] around it.
    In(ExprId, ExprId),
    /// `t[k1, k2]` on tables, `v[i]` on vectors, `s[i]` on strings, `a[..]` on an `any` that holds a list. The
    /// operands are the base and the index, an [`ExprKind::List`] for tables.
    Index(ExprId, ExprId),
    /// `v[a:b]`, `s[a:b]`: base, from, to. Omitted bounds are 0 or `|base|`.
    Slice(ExprId, ExprId, ExprId),
    /// `r$f`: record and offset.
    Field(ExprId, u32),
    /// `r?$f`: record and offset.
    HasField(ExprId, u32),
    /// `$f = e` that is not part of a record constructor.
    FieldAssign(Name, ExprId),
    /// `[$a=1, $b=2]`, `record($a=1)` or `R($a=1)`. Without a type name, the type is an anonymous record of
    /// exactly these fields.
    Record(RecordConstructor),
    /// `table([k]=v, …)`, also written `{ … }`. A key that is a list of alternatives is expanded into all
    /// combinations.
    Table(TableConstructor),
    /// `set(k, …)`, also written `{ … }`.
    Set(SetConstructor),
    /// `vector(e, …)`.
    Vector(Vec<ExprId>),
    /// `a, b`: the index of a table, arguments, or a `{ … }` whose type is not yet known.
    List(Vec<ExprId>),
    /// `left = right`. `left` is a local, a global, [`ExprKind::Index`], [`ExprKind::Field`], or an
    /// [`ExprKind::List`] of names that the elements of `right` are assigned to; `right` is then an `any` that
    /// holds a list.
    Assign(ExprId, ExprId),
    /// `left += right` on strings, patterns, sets, tables and vectors, to which an element or another vector is
    /// appended ([`AddTo`]).
    AddTo(AddTo, ExprId, ExprId),
    /// `left -= right` on sets, tables, numbers, times and intervals.
    RemoveFrom(ExprId, ExprId),
    /// `add s[k]`; the operand is an [`ExprKind::Index`].
    Add(ExprId),
    /// `delete t[k]`, `delete r$f`, `delete t`.
    Delete(ExprId),
    /// A call of a function, or of a hook by `hook f(x)`. It has one argument for each parameter, defaults
    /// included, except where the parameters are `va_args: any`.
    Call(Call),
    /// `function [captures] (params) { … }`.
    Lambda(Rc<Lambda>),
    /// `event f(x)` as an expression of type void: queued when it is evaluated.
    Event(EventCall),
    /// `schedule when { f(x) }`; the first operand is a time or an interval.
    Schedule(ExprId, EventCall),
    /// A conversion to the expression's type.
    Coerce(Coercion, ExprId),
    /// `e as T` to the expression's type.
    Cast(ExprId),
    /// `e is T`.
    Is(ExprId, TypeId),
    /// `e ?as T`.
    CanCast(ExprId, TypeId),
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// `!`.
    Not,
    /// `~`.
    Complement,
    /// `-`.
    Negative,
    /// Unary `+`.
    Positive,
    /// `++x`.
    Increment,
    /// `--x`.
    Decrement,
    /// `|x|`.
    Size,
    /// `copy(x)`.
    Clone,
}

/// Operators with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    /// `+`: numbers, interval + interval, time + interval (and the reverse), strings.
    Add,
    /// `-`: numbers, intervals, time - interval, time - time, sets.
    Subtract,
    /// `*`: numbers, interval * number (and the reverse).
    Multiply,
    /// `/`: numbers, interval / number, interval / interval.
    Divide,
    /// `addr / count`: the subnet of that width.
    Mask,
    /// `%`.
    Modulo,
    /// `&`: counts, sets, patterns (concatenation).
    BitAnd,
    /// `|`: counts, sets, patterns (alternation).
    BitOr,
    /// `^`.
    BitXor,
    /// `<<`.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `<`. `a > b` is `b < a`.
    Less,
    /// `<=`. `a >= b` is `b <= a`.
    LessEqual,
    /// `==`; a pattern is on the left.
    Equal,
    /// `!=`.
    NotEqual,
}

/// The effect of `+=`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddTo {
    /// `left = left + right`: strings.
    Concatenate,
    /// Pattern alternation.
    Pattern,
    /// Elements of the right table or set.
    Table,
    /// One element at the end of a vector.
    Append,
    /// All elements of another vector.
    AppendAll,
    /// Numbers, times and intervals where Zeek prints `+=`: `left = left + right`.
    Arithmetic,
}

/// Conversions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Coercion {
    /// Between count, int and double, and from the literal 0 to time or interval.
    Arithmetic,
    /// A vector of numbers to a vector of other numbers.
    ArithmeticVector,
    /// A record to another record type: fields are copied by name into a new record.
    Record,
    /// An empty `table()` or `set()` to the type that the context requires.
    Table,
    /// An empty `vector()`, or a vector whose elements are coerced.
    Vector,
    /// A function whose type differs in names and attributes only.
    Function,
    /// Any value to `any`. Invisible in Zeek's text.
    ToAny,
    /// `any` to a type, checked at run time. Invisible in Zeek's text.
    FromAny,
}

/// A record constructor.
#[derive(Clone, Debug)]
pub struct RecordConstructor {
    /// Offsets in the expression's type, with values, in source order.
    pub fields: Vec<(u32, ExprId)>,
    /// The names of these fields.
    pub names: Vec<Name>,
    /// Whether a type was named: `R($a=1)`. Its other fields then take their defaults.
    pub named: bool,
}

/// A table constructor.
#[derive(Clone, Debug)]
pub struct TableConstructor {
    /// Keys, one expression per index type, and values.
    pub entries: Vec<(Vec<ExprId>, ExprId)>,
    /// Attributes of the table.
    pub attrs: Attrs,
}

/// A set constructor.
#[derive(Clone, Debug)]
pub struct SetConstructor {
    /// Keys, one expression per index type.
    pub entries: Vec<Vec<ExprId>>,
    /// Attributes of the set.
    pub attrs: Attrs,
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The called function: an expression of function type, usually a global.
    pub callee: ExprId,
    /// Arguments.
    pub args: Vec<ExprId>,
    /// Number of arguments in the source; the others are defaults.
    pub written: u32,
    /// Whether it is in the condition of a `when`: only there asynchronous functions may delay.
    pub in_when: bool,
}

/// An event with its arguments.
#[derive(Clone, Debug)]
pub struct EventCall {
    /// The event; its kind is [`crate::symbols::GlobalKind::Function`].
    pub event: GlobalId,
    /// Arguments, one for each parameter of the canonical prototype.
    pub args: Vec<ExprId>,
    /// Number of arguments in the source; the others are defaults.
    pub written: u32,
}

/// A lambda expression.
#[derive(Clone, Debug)]
pub struct Lambda {
    /// The function, with one body.
    pub func: FuncId,
    /// The captured variables.
    pub captures: Vec<Capture>,
}

/// A captured variable.
#[derive(Clone, Copy, Debug)]
pub struct Capture {
    /// The local of the enclosing body.
    pub outer: LocalId,
    /// The local of the lambda's body. It keeps its value between calls of the same function value.
    pub inner: LocalId,
    /// Whether `copy` precedes it.
    pub deep: bool,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Kind of the statement.
    pub kind: StmtKind,
    /// Where it was written.
    pub span: Span,
}

impl Default for Stmt {
    fn default() -> Self {
        Self { kind: StmtKind::Null, span: Span::NOWHERE }
    }
}

/// Kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// The empty statement, also for `local x: T;` (see [`Body::inits`]).
    Null,
    /// `{ … }`.
    List(Vec<StmtId>),
    /// An expression, its value ignored. `local x = e;` is an [`ExprKind::Assign`].
    Expr(ExprId),
    /// `print …`.
    Print(Vec<ExprId>),
    /// `if` with its condition, its body and the body of `else`.
    If(ExprId, StmtId, Option<StmtId>),
    /// `while`.
    While(ExprId, StmtId),
    /// `for`.
    For(Rc<For>),
    /// `switch`.
    Switch(Rc<Switch>),
    /// `return`.
    Return(Option<ExprId>),
    /// `break`.
    Break,
    /// `next`.
    Next,
    /// `fallthrough`.
    Fallthrough,
    /// `event f(x);`.
    Event(EventCall),
    /// `when`.
    When(Rc<When>),
    /// `assert e, message;`.
    Assert(ExprId, Option<ExprId>),
    /// `v[a:b] = w`: the [`ExprKind::Slice`] and the value.
    SliceAssign(ExprId, ExprId),
}

/// A `for`.
#[derive(Clone, Debug)]
pub struct For {
    /// Loop variables, `None` for `_`: one for vectors and strings; for tables one per index type, or a single
    /// `None`.
    pub vars: Vec<Option<LocalId>>,
    /// The variable that receives the value.
    pub value: Option<LocalId>,
    /// Whether the source has a value variable, including `_`.
    pub has_value: bool,
    /// The container to iterate over.
    pub over: ExprId,
    /// The body.
    pub body: StmtId,
}

/// A `switch`.
#[derive(Clone, Debug)]
pub struct Switch {
    /// The value to compare.
    pub value: ExprId,
    /// The cases in order; control falls through where a body ends in `fallthrough`.
    pub cases: Vec<Case>,
}

/// A case of a `switch`.
#[derive(Clone, Debug)]
pub struct Case {
    /// Labels: constants, coerced to the type of the value.
    pub values: Vec<ExprId>,
    /// Labels that are types, with the variable that receives the value (`type T as x`).
    pub types: Vec<(TypeId, Option<LocalId>)>,
    /// Whether `default` is one of its labels.
    pub default: bool,
    /// The body: a [`StmtKind::List`].
    pub body: StmtId,
}

/// A `when`. Condition, body and timeout body are one hidden closure with a frame of its own.
#[derive(Clone, Debug)]
pub struct When {
    /// Owner of the hidden closure's frame: [`Body::stmt`] is the body of the `when`.
    pub frame: BodyId,
    /// Captures of the closure.
    pub captures: Vec<Capture>,
    /// The condition, in the closure's frame.
    pub condition: ExprId,
    /// The body, in the closure's frame.
    pub body: StmtId,
    /// The length of the timeout, in the frame of the enclosing function, and its body, in the
    /// closure's frame.
    pub timeout: Option<(ExprId, StmtId)>,
    /// Whether it is `return when`.
    pub returns: bool,
    /// Globals that the condition names.
    pub globals: Vec<GlobalId>,
}

/// A function, event, hook or lambda.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its full name; `lambda_…` for lambdas.
    pub name: Name,
    /// The global; `None` for lambdas.
    pub global: Option<GlobalId>,
    /// Its type.
    pub ty: TypeId,
    /// Function, event or hook.
    pub flavor: Flavor,
    /// Bodies in the order in which they run: by descending priority, then in load order. A function has one
    /// body; a function that is built in or only declared has none.
    pub bodies: Vec<BodyId>,
}

/// A body with its frame.
#[derive(Clone, Debug)]
pub struct Body {
    /// The function that it belongs to; `None` for statements at file level and for initializers.
    pub func: Option<FuncId>,
    /// Locals, parameters first. A [`LocalId`] is the slot.
    pub locals: Arena<LocalId, Local>,
    /// For each parameter of the body, in slot order, the position of its argument among the canonical parameters.
    pub params: Vec<u32>,
    /// Locals declared without an initializer: on entry, those of container and record types get empty values.
    pub inits: Vec<LocalId>,
    /// The statement.
    pub stmt: StmtId,
    /// `&priority`.
    pub priority: i64,
    /// Names in `&group`, without the implicit group of the module.
    pub groups: Vec<Box<str>>,
    /// The module in which it was written.
    pub module: Name,
    /// Header and body.
    pub span: Span,
    /// Other attributes.
    pub attrs: Attrs,
}

/// A local variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeId,
    /// Parameter, variable, constant, loop variable or capture.
    pub kind: LocalKind,
    /// Attributes. Those of a table apply to its initial value.
    pub attrs: Attrs,
    /// Where it was declared.
    pub span: Span,
}

/// Kinds of locals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalKind {
    /// A parameter.
    Param,
    /// `local`.
    Variable,
    /// `const`.
    Constant,
    /// A variable of a `for`.
    Loop,
    /// A capture of a lambda or `when`.
    Capture,
}
