//! Register code: the result of compilation, which the interpreter runs.
//!
//! A body is compiled to one [`Code`]: instructions on the numbered registers of a frame. Locals come first,
//! beginning with parameters, then temporaries. Arguments of a call are evaluated into consecutive registers
//! where the frame of the callee begins, so nothing is copied. Operations on counts, ints and doubles have
//! specialized instructions; the others dispatch on the values.

mod checks;
pub mod compile;
mod expr;
mod no_value;
pub(crate) mod operands;
mod sink;
mod stmt;

pub use expr::convert_number;

use std::rc::Rc;

use crate::ast::{BinaryOp, UnaryOp, When};
use crate::ids::{BodyId, ExprId, FuncId, GlobalId, LocalId, StmtId, TypeId};
use crate::value::Value;
use crate::value::table::TableAttrs;

/// A register: its offset in the frame.
pub type Reg = u16;

/// An offset in the code.
pub type Target = u32;

/// Comparisons in conditional jumps on numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "named as in assemblers")]
pub enum Cond {
    Lt,
    Le,
    Eq,
    Ne,
    Ge,
    Gt,
}

impl Cond {
    /// The negated comparison.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Ge => Self::Lt,
            Self::Gt => Self::Le,
        }
    }

    /// Whether the comparison holds for `a` and `b`.
    #[inline]
    #[must_use]
    pub fn holds<T: PartialOrd + Copy>(self, a: T, b: T) -> bool {
        match self {
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Ge => a >= b,
            Self::Gt => a > b,
        }
    }
}

/// An instruction. `d` is the register of the result; the expression of the instruction provides types and
/// texts for messages.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the operands are named alike everywhere")]
pub enum Op {
    /// `d = s`.
    Move {
        d: Reg,
        s: Reg,
    },
    /// `d = s`; an error where `s` is unset.
    Pass {
        d: Reg,
        s: Reg,
    },
    /// `d` = a constant.
    Const {
        d: Reg,
        k: u32,
    },
    /// `d` = a global; an error where it is unset.
    Global {
        d: Reg,
        g: GlobalId,
    },
    /// A global = `s`.
    SetGlobal {
        g: GlobalId,
        s: Reg,
    },
    /// `d` = a captured variable.
    Capture {
        d: Reg,
        i: u16,
    },
    /// A captured variable = `s`.
    SetCapture {
        i: u16,
        s: Reg,
    },
    /// An error where `s` is unset.
    Check {
        s: Reg,
    },
    /// A local of an aggregate type gets its empty value.
    InitLocal {
        d: Reg,
        local: LocalId,
    },
    /// Gives a table the attributes that were declared for its variable.
    Attrs {
        s: Reg,
        a: u32,
    },
    /// Sets the `&default` of table `t`, which captures locals, to `s`.
    Default {
        t: Reg,
        s: Reg,
    },
    Jump {
        to: Target,
    },
    JumpIf {
        s: Reg,
        to: Target,
    },
    JumpIfNot {
        s: Reg,
        to: Target,
    },
    /// Jumps if `r?$f` equals `is_set`.
    JumpHas {
        r: Reg,
        i: u16,
        is_set: bool,
        to: Target,
    },
    /// Jumps if `a == b` equals `is_same`, for values that are not numbers.
    JumpSame {
        a: Reg,
        b: Reg,
        is_same: bool,
        to: Target,
    },
    /// Jumps if `key in t` equals `is_in`: the parts of the key are in `n` registers from `k`.
    JumpIn {
        t: Reg,
        k: Reg,
        n: u8,
        is_in: bool,
        to: Target,
    },
    /// Skips the rest of the statement if a function returned no value, or if a number does not fit its type.
    SkipUnset {
        s: Reg,
        to: Target,
    },
    /// Jumps if the comparison of two counts holds.
    JumpC {
        c: Cond,
        a: Reg,
        b: Reg,
        to: Target,
    },
    /// Like [`Self::JumpC`], with a constant as the second operand.
    JumpCK {
        c: Cond,
        a: Reg,
        k: u16,
        to: Target,
    },
    /// Jumps if the comparison of two ints holds.
    JumpI {
        c: Cond,
        a: Reg,
        b: Reg,
        to: Target,
    },
    /// Like [`Self::JumpI`], with a constant as the second operand.
    JumpIK {
        c: Cond,
        a: Reg,
        k: i16,
        to: Target,
    },
    AddC {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubC {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulC {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    DivC {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    ModC {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddCK {
        d: Reg,
        a: Reg,
        k: u16,
    },
    SubCK {
        d: Reg,
        a: Reg,
        k: u16,
    },
    MulCK {
        d: Reg,
        a: Reg,
        k: u16,
    },
    DivCK {
        d: Reg,
        a: Reg,
        k: u16,
    },
    ModCK {
        d: Reg,
        a: Reg,
        k: u16,
    },
    AddI {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubI {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulI {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddIK {
        d: Reg,
        a: Reg,
        k: i16,
    },
    AddD {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    SubD {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulD {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    DivD {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// A comparison of two counts, as a value.
    CmpC {
        c: Cond,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// A comparison of two ints, as a value.
    CmpI {
        c: Cond,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// A comparison of two doubles, times or intervals, as a value.
    CmpD {
        c: Cond,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// An operator on values of any type.
    Binary {
        op: BinaryOp,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// An operator on a value of any type.
    Unary {
        op: UnaryOp,
        d: Reg,
        a: Reg,
    },
    /// `c ? a : b` on vectors: condition and operands are in three registers from `b`.
    Select {
        d: Reg,
        b: Reg,
    },
    /// `d = d + s` on strings, in place if the string is not shared.
    Append {
        d: Reg,
        s: Reg,
    },
    Not {
        d: Reg,
        a: Reg,
    },
    /// `d = r$f` with `&default`s applied; an error if the field is unset.
    Field {
        d: Reg,
        r: Reg,
        i: u16,
    },
    /// `d = r$f$g`: two [`Field`](Self::Field)s.
    Path {
        d: Reg,
        r: Reg,
        i: u16,
        j: u16,
    },
    /// `r$f = s`.
    SetField {
        r: Reg,
        i: u16,
        s: Reg,
    },
    HasField {
        d: Reg,
        r: Reg,
        i: u16,
    },
    DeleteField {
        r: Reg,
        i: u16,
    },
    /// `t[keys]` of a table: the keys are in `n` registers from `k`.
    IndexTable {
        d: Reg,
        t: Reg,
        k: Reg,
        n: u8,
    },
    SetTable {
        t: Reg,
        k: Reg,
        n: u8,
        s: Reg,
    },
    /// `v[i]`.
    IndexVector {
        d: Reg,
        v: Reg,
        i: Reg,
    },
    SetVector {
        v: Reg,
        i: Reg,
        s: Reg,
    },
    /// `b[i]` of strings, vectors by vectors, and `any`.
    Index {
        d: Reg,
        b: Reg,
        i: Reg,
    },
    Slice {
        d: Reg,
        b: Reg,
        from: Reg,
    },
    SetSlice {
        v: Reg,
        from: Reg,
        s: Reg,
    },
    InTable {
        d: Reg,
        t: Reg,
        k: Reg,
        n: u8,
    },
    /// `a in b` for any other container.
    In {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddTo {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    RemoveFrom {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    AddKey {
        t: Reg,
        k: Reg,
        n: u8,
    },
    DeleteKey {
        t: Reg,
        k: Reg,
        n: u8,
    },
    DeleteAll {
        s: Reg,
    },
    /// A record with the values of registers from `b`; the plan has their fields.
    NewRecord {
        d: Reg,
        b: Reg,
        plan: u32,
    },
    NewTable {
        d: Reg,
        ty: TypeId,
        a: u32,
    },
    /// Adds an entry to a table under construction; `s` is [`NO_REG`] in sets.
    Entry {
        t: Reg,
        k: Reg,
        n: u8,
        s: Reg,
    },
    NewVector {
        d: Reg,
        b: Reg,
        n: u16,
        ty: TypeId,
    },
    NewList {
        d: Reg,
        b: Reg,
        n: u16,
        ty: TypeId,
    },
    /// Assigns the elements of a list to `n` registers from `d`.
    Spread {
        s: Reg,
        d: Reg,
        n: u16,
    },
    Call {
        d: Reg,
        b: Reg,
        n: u8,
        f: FuncId,
    },
    CallValue {
        d: Reg,
        b: Reg,
        n: u8,
        f: Reg,
    },
    Lambda {
        d: Reg,
        b: Reg,
        e: ExprId,
    },
    /// Beginning of a statement; emitted only with coverage.
    Begin {
        stmt: StmtId,
    },
    Event {
        g: GlobalId,
        b: Reg,
        n: u8,
    },
    Schedule {
        g: GlobalId,
        when: Reg,
        b: Reg,
        n: u8,
    },
    Coerce {
        d: Reg,
        s: Reg,
    },
    Cast {
        d: Reg,
        s: Reg,
    },
    Is {
        d: Reg,
        s: Reg,
        ty: TypeId,
    },
    /// `e is T`. Broker data is of each type that it can be cast to.
    Holds {
        d: Reg,
        s: Reg,
        ty: TypeId,
    },
    CanCast {
        d: Reg,
        s: Reg,
        ty: TypeId,
    },
    Print {
        b: Reg,
        n: u16,
    },
    Return {
        s: Reg,
    },
    /// The end of a body, or `return` without a value.
    End,
    /// `break` of a hook.
    Break,
    /// Begins an iteration over `s`.
    Walk {
        d: Reg,
        s: Reg,
    },
    /// The next entry of a table: the `n` parts of its key go to registers from `k`, its value to `v` unless
    /// that is [`NO_REG`].
    NextEntry {
        w: Reg,
        k: Reg,
        n: u8,
        v: Reg,
        to: Target,
    },
    /// The next element of a vector or string.
    NextItem {
        w: Reg,
        k: Reg,
        v: Reg,
        to: Target,
    },
    When {
        plan: u32,
        b: Reg,
        timeout: Reg,
    },
    /// Jumps to `to` if the assertion holds and no hook observes successful assertions.
    AssertSkip {
        c: Reg,
        to: Target,
    },
    Assert {
        c: Reg,
        m: Reg,
        stmt: StmtId,
    },
    /// An error that the compiler found and that is reported when execution reaches it.
    Fail {
        text: u32,
    },
}

/// No register.
pub const NO_REG: Reg = Reg::MAX;

/// The fields of a record constructor.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    /// Its type.
    pub ty: TypeId,
    /// The fields that it sets.
    pub offsets: Vec<u32>,
}

/// The parts of a `when` statement.
#[derive(Debug)]
pub struct WhenPlan {
    /// The statement.
    pub when: Rc<When>,
    /// Its statement.
    pub stmt: StmtId,
    /// The condition.
    pub condition: Rc<Code>,
    /// The body.
    pub body: Rc<Code>,
    /// The code to run after the timeout.
    pub timeout: Option<Rc<Code>>,
    /// Number of registers that the three parts share.
    pub locals: usize,
}

/// A compiled body.
#[derive(Debug)]
pub struct Code {
    /// The body that was compiled; `None` for an expression.
    pub body: Option<BodyId>,
    /// For each parameter of the body, the index of the corresponding parameter of the function or event.
    pub params: Vec<u32>,
    /// Whether its end without a value may have to be reported.
    pub wants_result: bool,
    /// The instructions.
    pub ops: Vec<Op>,
    /// For each instruction, the expression that it is part of.
    pub sites: Vec<ExprId>,
    /// Constants.
    pub consts: Vec<Value>,
    /// Number of registers.
    pub registers: usize,
    /// Record constructors.
    pub records: Vec<RecordPlan>,
    /// Attributes of tables.
    pub attrs: Vec<Option<Rc<TableAttrs>>>,
    /// `when`s.
    pub whens: Vec<Rc<WhenPlan>>,
    /// Its execution counter and its machine code.
    #[cfg(feature = "jit")]
    pub(crate) tier: crate::jit::Tier,
}
