//! Encodes rows as packed rows.

use std::fmt::Display;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use super::GROUP;
use super::Kind;
use super::MAX_INLINE;
use super::OTHER;
use super::PREFIX;
use super::SECONDS;
use super::UNSET;
use super::VALUE;
use super::WORD;
use super::inline_len;
use super::inline_slot;
use super::len_and_offset;
use super::marks_at;
use super::offset_slot;
use super::rest_at;
use super::slot_at;
use super::v4_slot;
use crate::row::Cut;
use crate::row::Limits;
use crate::text::LineBuffer;
use crate::text::Sink;
use crate::text::append;
use crate::value::Encoder;
use crate::value::Port;
use crate::value::Value;

/// Encodes a row as packed values.
///
/// A value may be written in several pieces, and an address or number as its text: the packed row has one value of the
/// column's type.
pub struct PackedEncoder<'a> {
    /// The row; bytes are appended to its rest.
    out: LineBuffer<'a>,
    /// Offset of the rest.
    rest: u32,
    /// Offset of the slot of the current column.
    slot: u32,
    /// Offset of the marks of the current group.
    marks_at: u32,
    marks: u64,
    /// Shift of the current column's mark in the marks.
    bit: u32,
    limits: Limits,
    cut: Cut,
    /// Kind of the current column, or of its elements.
    kind: Kind,
    /// Whether values are elements of a list.
    is_element: bool,
    /// Offset of the text of the current value; 0 before its first piece.
    text: u32,
}

impl<'a> PackedEncoder<'a> {
    /// Writes a row of at most `columns` columns to `buffer`; call [`finish`](Self::finish) after the last one.
    #[inline(always)]
    pub fn new(buffer: &'a mut [u8], limits: Limits, columns: usize) -> Self {
        let mut out = LineBuffer::new(buffer);
        let rest = PREFIX + rest_at(columns);
        out.skip(rest);
        Self {
            out,
            rest: rest as u32,
            slot: (PREFIX + slot_at(0)) as u32,
            marks_at: (PREFIX + marks_at(0)) as u32,
            marks: 0,
            bit: 0,
            limits,
            cut: Cut::default(),
            kind: Kind::Text,
            is_element: false,
            text: 0,
        }
    }

    /// Ends the row; returns its length and which parts were truncated to their limits. Returns `None` if `buffer` was
    /// too small: write the row again to a larger one.
    #[inline(always)]
    pub fn finish(mut self) -> Option<(usize, Cut)> {
        self.out.replace(self.marks_at, self.marks.to_le_bytes());
        let len = self.out.written()?;
        let head = (len - PREFIX) as u64 | u64::from(self.rest - PREFIX as u32) << 32;
        self.out.replace_first(head.to_le_bytes());
        Some((len, self.cut))
    }

    /// Writes a value of eight bytes.
    #[inline(always)]
    fn word(&mut self, mark: u8, v: u64) {
        if self.is_element {
            self.out.put(marked(mark, v.to_le_bytes()), 9);
        } else {
            self.out.replace(self.slot, v.to_le_bytes());
            self.mark(mark);
        }
    }

    /// Sets the mark of the current column.
    #[inline(always)]
    fn mark(&mut self, mark: u8) {
        self.marks |= u64::from(mark) << self.bit;
    }

    /// Advances to the next column.
    #[inline(always)]
    fn advance(&mut self) {
        self.slot += WORD as u32;
        self.bit += 2;
    }

    /// Begins the next group of columns.
    #[cold]
    #[inline(never)]
    fn next_group(&mut self) {
        self.out.replace(self.marks_at, self.marks.to_le_bytes());
        self.marks_at = self.slot;
        self.slot += WORD as u32;
        (self.marks, self.bit) = (0, 0);
    }

    /// Writes a piece of text.
    #[inline(always)]
    fn piece(&mut self, mark: u8, v: &[u8]) {
        let start = self.text;
        if start > 0 {
            return self.append_piece(mark, v);
        }
        if self.is_element {
            self.text = self.out.position();
            self.out.with(|buffer, at| element_text(buffer, at, mark, v));
        } else {
            self.text = self.slot;
            self.mark(mark);
            let (slot, rest) = (self.slot, self.rest);
            self.out.with(|buffer, at| text(buffer, at, (slot, rest), v));
        }
    }

    /// Appends a further piece of text. The whole text may need escaping if one of its pieces does.
    #[cold]
    #[inline(never)]
    fn append_piece(&mut self, mark: u8, v: &[u8]) {
        let (start, rest) = (self.text, self.rest);
        if self.is_element {
            return self.out.with(|buffer, at| append_element_text(buffer, at, (start, mark), v));
        }
        if mark == VALUE {
            self.marks &= !(3 << self.bit);
            self.mark(VALUE);
        }
        self.out.with(|buffer, at| append_text(buffer, at, (start, rest), v));
    }

    /// Converts a value of another type to the type of the column.
    #[cold]
    #[inline(never)]
    fn convert(&mut self, v: &dyn Display) {
        let shown = v.to_string();
        let number = || shown.parse::<f64>().unwrap_or_default();
        match self.kind {
            Kind::Text => self.piece(OTHER, shown.as_bytes()),
            Kind::Double => self.word(VALUE, number().to_bits()),
            Kind::Time | Kind::Interval => self.word(SECONDS, number().to_bits()),
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, number() as u64),
            Kind::Bool | Kind::Addr if self.is_element => self.out.put([UNSET], 1),
            Kind::Bool | Kind::Addr => {}
        }
    }
}

/// Joins a mark and a value of eight bytes, for one store of a fixed size.
#[inline(always)]
fn marked(mark: u8, v: [u8; 8]) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = v;
    [mark, a, b, c, d, e, f, g, h]
}

/// Writes a text to its slot or to the rest.
#[inline(never)]
fn text(buffer: &mut [u8], at: u32, (slot, rest): (u32, u32), v: &[u8]) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let word = inline_slot(v).unwrap_or_else(|| {
        append(&mut out, v);
        offset_slot(v.len(), at.wrapping_sub(rest) as usize)
    });
    out.replace(slot, word.to_le_bytes());
    out.into_position()
}

/// Writes the uid of a connection or a file to the rest: it hardly ever fits into its slot.
#[inline(never)]
fn uid(buffer: &mut [u8], at: u32, (slot, rest): (u32, u32), v: &Uid) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let (text, len) = v.text();
    out.put(text, len);
    out.replace(slot, offset_slot(len, at.wrapping_sub(rest) as usize).to_le_bytes());
    out.into_position()
}

/// Appends to the text of a slot.
fn append_text(buffer: &mut [u8], at: u32, (slot, rest): (u32, u32), v: &[u8]) -> u32 {
    let known = buffer.get(slot as usize..).and_then(<[u8]>::first_chunk);
    let word = known.map_or(0, |known| u64::from_le_bytes(*known));
    let Some(len) = inline_len(word) else {
        // The text is the last one in the rest.
        let (len, offset) = len_and_offset(word);
        let mut out = LineBuffer::at(buffer, at);
        append(&mut out, v);
        out.replace(slot, offset_slot(len + v.len(), offset).to_le_bytes());
        return out.into_position();
    };
    let mut whole = word.to_le_bytes()[..len.min(MAX_INLINE)].to_vec();
    whole.extend_from_slice(v);
    text(buffer, at, (slot, rest), &whole)
}

#[inline(never)]
fn element_text(buffer: &mut [u8], at: u32, mark: u8, v: &[u8]) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    out.put(marked(mark, (v.len() as u64).to_le_bytes()), 5);
    append(&mut out, v);
    out.into_position()
}

/// Appends to the text of the element at `start`: updates its length, and marks it as needing escapes if the piece
/// does.
fn append_element_text(buffer: &mut [u8], at: u32, (start, mark): (u32, u8), v: &[u8]) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    append(&mut out, v);
    let end = out.into_position();
    let head = buffer.get_mut(start as usize..).and_then(<[u8]>::first_chunk_mut::<5>);
    if let Some([first, len @ ..]) = head {
        *first = if mark == VALUE { VALUE } else { *first };
        *len = end.saturating_sub(start + 5).to_le_bytes();
    }
    end
}

/// Writes an address to its slot or to the rest.
#[inline(always)]
fn addr(out: &mut LineBuffer<'_>, (slot, rest): (u32, u32), v: Addr) {
    let word = v.as_v4().map_or_else(
        || {
            let offset = out.position().wrapping_sub(rest);
            out.put(v.octets(), 16);
            u64::from(offset & u32::MAX >> 1)
        },
        v4_slot,
    );
    out.replace(slot, word.to_le_bytes());
}

/// Writes the four columns of a connection id.
#[inline(never)]
fn conn_id(buffer: &mut [u8], at: u32, (slot, rest): (u32, u32), v: &ConnId) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    for (slot, host, port) in
        [(slot, v.orig_h, v.orig_p), (slot + 2 * WORD as u32, v.resp_h, v.resp_p)]
    {
        addr(&mut out, (slot, rest), host);
        out.replace(slot + WORD as u32, u64::from(port).to_le_bytes());
    }
    out.into_position()
}

impl Encoder for PackedEncoder<'_> {
    #[inline(always)]
    fn field<V: Value>(&mut self, _name: &'static str, value: &V) {
        if self.bit == 2 * GROUP as u32 {
            self.next_group();
        }
        if value.is_unset() {
            self.out.replace(self.slot, [0; WORD]);
        } else {
            self.kind = const { Kind::of(V::TYPE) };
            self.text = 0;
            self.is_element = false;
            value.put(self);
        }
        self.advance();
    }

    #[inline(always)]
    fn bool(&mut self, v: bool) {
        match self.kind {
            Kind::Bool if self.is_element => self.out.put([VALUE, u8::from(v)], 2),
            Kind::Bool => self.word(VALUE, u64::from(v)),
            _ => self.convert(&v),
        }
    }

    #[inline(always)]
    fn count(&mut self, v: u64) {
        match self.kind {
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, v),
            _ => self.convert(&v),
        }
    }

    #[inline(always)]
    fn int(&mut self, v: i64) {
        match self.kind {
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, v as u64),
            _ => self.convert(&v),
        }
    }

    #[inline(always)]
    fn double(&mut self, v: f64) {
        match self.kind {
            Kind::Double => self.word(VALUE, v.to_bits()),
            _ => self.convert(&v),
        }
    }

    #[inline(always)]
    fn time(&mut self, v: Time) {
        match self.kind {
            Kind::Time => self.word(VALUE, v.as_nanos() as u64),
            _ => self.convert(&v.as_secs_f64()),
        }
    }

    #[cold]
    fn far_time(&mut self, seconds: f64) {
        match self.kind {
            Kind::Time => self.word(OTHER, seconds.to_bits()),
            _ => self.convert(&seconds),
        }
    }

    #[inline(always)]
    fn interval(&mut self, v: Interval) {
        match self.kind {
            Kind::Interval => self.word(VALUE, v.as_nanos() as u64),
            _ => self.convert(&v.as_secs_f64()),
        }
    }

    #[inline(always)]
    fn addr(&mut self, v: Addr) {
        match self.kind {
            Kind::Addr if self.is_element => {
                self.out.put([VALUE], 1);
                self.out.put(v.octets(), 16);
            }
            Kind::Addr => {
                self.mark(VALUE);
                addr(&mut self.out, (self.slot, self.rest), v);
            }
            _ => self.convert(&v),
        }
    }

    #[inline(always)]
    fn conn_id(&mut self, v: &ConnId) {
        const BITS: u32 = 4 * 2;
        if self.bit + BITS > 2 * GROUP as u32 {
            // The four columns are in two groups.
            self.field("id.orig_h", &v.orig_h);
            self.field("id.orig_p", &Port(v.orig_p));
            self.field("id.resp_h", &v.resp_h);
            return self.field("id.resp_p", &Port(v.resp_p));
        }
        let (slot, rest) = (self.slot, self.rest);
        self.out.with(|buffer, at| conn_id(buffer, at, (slot, rest), v));
        self.marks |= 0b_01_01_01_01 << self.bit;
        (0..4).for_each(|_| self.advance());
    }

    #[inline(always)]
    fn string(&mut self, v: &[u8]) {
        let n = v.len().min(self.limits.string);
        self.cut.strings |= n < v.len();
        match self.kind {
            Kind::Text => self.piece(VALUE, &v[..n]),
            _ => self.convert(&v.escape_ascii()),
        }
    }

    #[inline(always)]
    fn plain(&mut self, v: &[u8]) {
        match self.kind {
            Kind::Text => self.piece(OTHER, v),
            _ => self.convert(&v.escape_ascii()),
        }
    }

    #[inline(always)]
    fn uid(&mut self, v: &Uid) {
        if self.kind == Kind::Text && !self.is_element && self.text == 0 {
            self.text = self.slot;
            self.mark(OTHER);
            let (slot, rest) = (self.slot, self.rest);
            self.out.with(|buffer, at| uid(buffer, at, (slot, rest), v));
        } else {
            let (text, len) = v.text();
            self.plain(text.get(..len).unwrap_or_default());
        }
    }

    #[inline(always)]
    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>) {
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        self.kind = const { Kind::of(V::TYPE) };
        let offset = self.out.position().wrapping_sub(self.rest);
        self.out.replace(self.slot, offset_slot(n, offset as usize).to_le_bytes());
        self.mark(VALUE);
        self.is_element = true;
        for element in v.take(n) {
            self.text = 0;
            if element.is_unset() { self.out.put([UNSET], 1) } else { element.put(self) }
        }
    }
}
