//! Encoding of programs.

use std::rc::Rc;

use super::codec::{Codec, Damaged, DecodeResult, Reader, Writer, fields, variants};
use super::stored;
use crate::ast::{
    AddTo, BinaryOp, Body, Call, Capture, Case, Coercion, EventCall, Expr, ExprKind, For, Function,
    Lambda, Local, LocalKind, RecordConstructor, SetConstructor, Stmt, StmtKind, Switch,
    TableConstructor, UnaryOp, When,
};
use crate::ids::{
    Arena, BodyId, ExprId, FileId, FuncId, GlobalId, Id, LocalId, Name, StmtId, TypeId,
};
use crate::literal::{Literal, PatternSource, Port, Protocol, Subnet};
use crate::names::Names;
use crate::program::Program;
use crate::source::{SourceFile, Sources, Span};
use crate::symbols::{Global, GlobalKind, Globals};
use crate::types::{
    Attr, AttrKind, CaptureName, EnumType, EnumValue, Field, Flavor, FuncType, ListType, Prototype,
    RecordType, TableType, Type, TypeData, Types,
};

macro_rules! ids {
    ($($id:ident),*) => {$(
        impl Codec for $id {
            fn encode(&self, to: &mut Writer) {
                to.number(u64::from(self.0));
            }

            #[inline]
            fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
                u32::decode(from).map(Self)
            }
        }
    )*};
}

ids!(BodyId, ExprId, FuncId, GlobalId, LocalId, Name, StmtId, TypeId);

impl Codec for FileId {
    fn encode(&self, to: &mut Writer) {
        // [`Span::NOWHERE`] has the largest file number.
        to.number(u64::from(self.0.wrapping_add(1)));
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(Self(u32::decode(from)?.wrapping_sub(1)))
    }
}

/// Spans are most of the data. Nearly all are in the file of the previous one and near it: these take seven
/// bytes, which are read at once. Other spans begin with the byte [`FAR`].
impl Codec for Span {
    fn encode(&self, to: &mut Writer) {
        let before = std::mem::replace(&mut to.previous_span, *self);
        if let Some(near) = self.delta_from(&before) {
            to.bytes.extend_from_slice(&near);
            return;
        }
        to.byte(FAR);
        self.file.encode(to);
        for number in [
            self.first,
            self.last.wrapping_sub(self.first),
            self.start,
            self.end.wrapping_sub(self.start),
        ] {
            number.encode(to);
        }
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        let span = match from.left.split_first_chunk() {
            Some((&near, left)) if near[0] != FAR => {
                from.left = left;
                from.previous_span.plus_delta(near)
            }
            _ => decode_far(from)?,
        };
        from.previous_span = span;
        Ok(span)
    }
}

/// The first byte of a span that is far from the previous one.
const FAR: u8 = 0xff;

impl Span {
    /// The difference to the previous span: its number of lines, lines from `before`, bytes from `before`, its
    /// length in bytes. `None` if too large.
    fn delta_from(self, before: &Self) -> Option<[u8; 7]> {
        let lines = u8::try_from(self.last.checked_sub(self.first)?).ok()?;
        let line = i16::try_from(self.first.wrapping_sub(before.first).cast_signed()).ok()?;
        let byte = i16::try_from(self.start.wrapping_sub(before.start).cast_signed()).ok()?;
        let len = u16::try_from(self.end.checked_sub(self.start)?).ok()?;
        let ([a, b], [c, d], [e, f]) = (line.to_le_bytes(), byte.to_le_bytes(), len.to_le_bytes());
        (self.file == before.file && lines != FAR).then_some([lines, a, b, c, d, e, f])
    }

    /// The span with this difference to `self`.
    #[inline]
    fn plus_delta(self, [lines, a, b, c, d, e, f]: [u8; 7]) -> Self {
        let line = i32::from(i16::from_le_bytes([a, b]));
        let byte = i32::from(i16::from_le_bytes([c, d]));
        let first = self.first.wrapping_add_signed(line);
        let start = self.start.wrapping_add_signed(byte);
        let end = start.wrapping_add(u32::from(u16::from_le_bytes([e, f])));
        Self { file: self.file, first, last: first.wrapping_add(u32::from(lines)), start, end }
    }
}

#[cold]
fn decode_far(from: &mut Reader<'_>) -> DecodeResult<Span> {
    if from.byte()? != FAR {
        return Err(Damaged);
    }
    let file = FileId::decode(from)?;
    let (first, lines) = (u32::decode(from)?, u32::decode(from)?);
    let (start, len) = (u32::decode(from)?, u32::decode(from)?);
    let (last, end) = (first.wrapping_add(lines), start.wrapping_add(len));
    Ok(Span { file, first, last, start, end })
}

impl<I: Id, T: Codec> Codec for Arena<I, T> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|(_, item)| item.encode(to));
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Vec::decode(from).map(Self::from_items)
    }
}

fields! {
    Subnet { prefix, width }
    Port { number, protocol }
    PatternSource { text, case_insensitive, single_line }
    Expr { kind, ty, span, paren }
    RecordConstructor { fields, names, named }
    TableConstructor { entries, attrs }
    SetConstructor { entries, attrs }
    Call { callee, args, written, in_when }
    EventCall { event, args, written }
    Lambda { func, captures }
    Capture { outer, inner, deep }
    Stmt { kind, span }
    For { vars, value, has_value, over, body }
    Switch { value, cases }
    Case { values, types, default, body }
    When { frame, captures, condition, body, timeout, returns, globals }
    Function { name, global, ty, flavor, bodies }
    Body { func, locals, params, inits, stmt, priority, groups, module, span, attrs }
    Local { name, ty, kind, attrs, span }
    Attr { kind, expr, span }
    EnumType { values, next, explicit }
    EnumValue { name, value }
    TableType { index, value, list }
    RecordType { fields }
    Field { name, ty, attrs, span, redefined }
    FuncType { flavor, params, result, prototypes, captures }
    CaptureName { name, deep }
    Prototype { params, offsets, deprecated, span }
    ListType { types, pure }
    TypeData { ty, name, span, aliases }
    Global { name, kind, ty, attrs, span, exported, initialized, module, uses }
}

variants! {
    Protocol { 0 = Unknown, 1 = Tcp, 2 = Udp, 3 = Icmp }
    Literal {
        0 = Bool(a), 1 = Int(a), 2 = Count(a), 3 = Double(a), 4 = Time(a), 5 = Interval(a), 6 = String(a), 7 = Addr(a),
        8 = Subnet(a), 9 = Port(a), 10 = Enum(a), 11 = Pattern(a),
    }
    ExprKind {
        0 = Error, 1 = Literal(a), 2 = TypeValue(a), 3 = Blank, 4 = Local(a, b), 5 = Global(a), 6 = Unary(a, b),
        7 = Binary(a, b, c), 8 = Conditional(a, b, c), 9 = In(a, b), 10 = Index(a, b), 11 = Slice(a, b, c),
        12 = Field(a, b), 13 = HasField(a, b), 14 = FieldAssign(a, b), 15 = Record(a), 16 = Table(a), 17 = Set(a),
        18 = Vector(a), 19 = List(a), 20 = Assign(a, b), 21 = AddTo(a, b, c), 22 = RemoveFrom(a, b), 23 = Add(a),
        24 = Delete(a), 25 = Call(a), 26 = Lambda(a), 27 = Event(a), 28 = Schedule(a, b), 29 = Coerce(a, b),
        30 = Cast(a), 31 = Is(a, b), 32 = CanCast(a, b),
    }
    UnaryOp {
        0 = Not, 1 = Complement, 2 = Negative, 3 = Positive, 4 = Increment, 5 = Decrement, 6 = Size, 7 = Clone,
    }
    BinaryOp {
        0 = Add, 1 = Subtract, 2 = Multiply, 3 = Divide, 4 = Mask, 5 = Modulo, 6 = BitAnd, 7 = BitOr, 8 = BitXor,
        9 = ShiftLeft, 10 = ShiftRight, 11 = And, 12 = Or, 13 = Less, 14 = LessEqual, 15 = Equal, 16 = NotEqual,
    }
    AddTo { 0 = Concatenate, 1 = Pattern, 2 = Table, 3 = Append, 4 = AppendAll, 5 = Arithmetic }
    Coercion {
        0 = Arithmetic, 1 = ArithmeticVector, 2 = Record, 3 = Table, 4 = Vector, 5 = Function, 6 = ToAny, 7 = FromAny,
    }
    StmtKind {
        0 = Null, 1 = List(a), 2 = Expr(a), 3 = Print(a), 4 = If(a, b, c), 5 = While(a, b), 6 = For(a), 7 = Switch(a),
        8 = Return(a), 9 = Break, 10 = Next, 11 = Fallthrough, 12 = Event(a), 13 = When(a), 14 = Assert(a, b),
        15 = SliceAssign(a, b),
    }
    LocalKind { 0 = Param, 1 = Variable, 2 = Constant, 3 = Loop, 4 = Capture }
    Flavor { 0 = Function, 1 = Event, 2 = Hook }
    Type {
        0 = Void, 1 = Bool, 2 = Int, 3 = Count, 4 = Double, 5 = Time, 6 = Interval, 7 = String, 8 = Pattern, 9 = Port,
        10 = Addr, 11 = Subnet, 12 = Any, 13 = Error, 14 = Enum(a), 15 = Table(a), 16 = Vector(a), 17 = Record(a),
        18 = Func(a), 19 = File, 20 = Opaque(a), 21 = List(a), 22 = Type(a),
    }
    AttrKind {
        0 = Optional, 1 = Default, 2 = DefaultInsert, 3 = Redef, 4 = AddFunc, 5 = DeleteFunc, 6 = ExpireFunc,
        7 = ReadExpire, 8 = WriteExpire, 9 = CreateExpire, 10 = RawOutput, 11 = Priority, 12 = Group, 13 = Log,
        14 = ErrorHandler, 15 = TypeColumn, 16 = OnChange, 17 = PublishOnChange, 18 = BrokerStore,
        19 = BrokerAllowComplexType, 20 = Backend, 21 = Deprecated, 22 = IsAssigned, 23 = IsUsed, 24 = Ordered,
        25 = NoZamOpt, 26 = NoCppOpt,
    }
    GlobalKind {
        0 = Variable, 1 = Constant, 2 = Option, 3 = Type, 4 = EnumValue(a), 5 = Function(a), 6 = Unknown,
    }
}

impl Codec for SourceFile {
    fn encode(&self, to: &mut Writer) {
        self.path.encode(to);
        self.folder.encode(to);
        self.loaded_from.encode(to);
        self.depth.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(Self {
            path: Codec::decode(from)?,
            folder: Codec::decode(from)?,
            // Only diagnostics with carets need it, and those disable the cache.
            text: Rc::new([]),
            loaded_from: Codec::decode(from)?,
            depth: Codec::decode(from)?,
        })
    }
}

/// Encodes a program, except command-line options and diagnostics.
pub(super) fn encode(program: &Program, to: &mut Writer) {
    program.sources.files.encode(to);
    program.names.texts().encode(to);
    program.types.arena().encode(to);
    stored::encode(&program.exprs, to);
    stored::encode(&program.stmts, to);
    program.globals.arena.encode(to);
    program.globals.by_name().encode(to);
    program.globals.modules.encode(to);
    program.functions.encode(to);
    program.bodies.encode(to);
    program.main.encode(to);
    program.signature_files.encode(to);
    program.prefixes.encode(to);
    program.aliases.encode(to);
    program.parser_span.encode(to);
}

/// Decodes a program into a new one.
pub(super) fn decode(program: &mut Program, from: &mut Reader<'_>) -> DecodeResult<()> {
    program.sources = Sources { files: Codec::decode(from)? };
    program.names = Names::from_texts(Codec::decode(from)?);
    program.types = Types::from_arena(Codec::decode(from)?);
    program.exprs = stored::decode(from)?;
    program.stmts = stored::decode(from)?;
    let (arena, by_name) = (Codec::decode(from)?, Codec::decode(from)?);
    program.globals = Globals::from_parts(arena, by_name, Codec::decode(from)?);
    program.functions = Codec::decode(from)?;
    program.bodies = Codec::decode(from)?;
    program.main = Codec::decode(from)?;
    program.signature_files = Codec::decode(from)?;
    program.prefixes = Codec::decode(from)?;
    program.aliases = Codec::decode(from)?;
    program.parser_span = Codec::decode(from)?;
    if program.types.len() <= TypeId::UNSPECIFIED_VECTOR.0 as usize { Err(Damaged) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_spans_round_trip() {
        let span =
            |file, first, last, start, end| Span { file: FileId(file), first, last, start, end };
        let spans = [
            Span::NOWHERE,
            span(3, 10, 10, 200, 220),
            span(3, 8, 262, 150, 65_685),
            span(3, 8, 263, 150, 65_686),
            span(3, 8, 8, 150, 150),
            span(3, 40_000, 40_001, 32_917, 32_920),
            span(3, 40_000, 39_999, 150, 149),
            span(2, 40_000, 40_000, 150, 151),
            span(2, 32_768, 32_768, 0, u32::MAX),
            Span::NOWHERE,
            Span::NOWHERE,
        ];
        let mut to = Writer::default();
        spans.iter().for_each(|span| span.encode(&mut to));
        let mut from = Reader::new(&to.bytes);
        assert!(spans.iter().all(|span| Span::decode(&mut from) == Ok(*span)));
        assert!(from.left.is_empty());
        // Truncated data is an error, and bytes that are no span are not decoded as one.
        let mut from = Reader::new(&to.bytes[..3]);
        assert_eq!(Span::decode(&mut from), Err(Damaged));
        assert_eq!(Span::decode(&mut Reader::new(&[0, 1, 2, 3, 4, 5])), Err(Damaged));
    }
}
