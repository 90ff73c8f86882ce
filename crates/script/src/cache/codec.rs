//! How values become bytes and come back.
//!
//! Numbers are written in groups of seven bits, lists with their lengths, variants by their numbers. A reader trusts nothing: every
//! length and every number of a variant is checked.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;

use crate::source::Span;

/// The bytes are not what a writer wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged;

/// The result of reading.
pub(crate) type Read<T> = Result<T, Damaged>;

/// Bytes that are being written.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    /// The place that was written last: most are near the one before.
    pub(super) near: Span,
}

impl Default for Writer {
    fn default() -> Self {
        Self { bytes: Vec::new(), near: Span::NOWHERE }
    }
}

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    pub(crate) fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Bytes that are being read.
pub(crate) struct Reader<'a> {
    pub(crate) left: &'a [u8],
    /// The place that was read last.
    pub(super) near: Span,
    /// The file that ends with `left`, if its digest is right.
    pub(super) file: Option<&'a Rc<Vec<u8>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, near: Span::NOWHERE, file: None }
    }

    /// A reader of a file with a digest that is right, from `start` on.
    pub(super) fn of_file(file: &'a Rc<Vec<u8>>, start: usize) -> Self {
        Self { file: Some(file), ..Self::new(file.get(start..).unwrap_or_default()) }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Read<u8> {
        let (byte, left) = self.left.split_first().ok_or(Damaged)?;
        self.left = left;
        Ok(*byte)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Read<u64> {
        match *self.left {
            [byte @ ..0x80, ref left @ ..] => {
                self.left = left;
                Ok(u64::from(byte))
            }
            [first, second @ ..0x80, ref left @ ..] => {
                self.left = left;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => self.long_number(),
        }
    }

    #[inline(never)]
    fn long_number(&mut self) -> Read<u64> {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).ok_or(Damaged)?;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// The length of a list, whose items have a byte at least.
    #[inline]
    pub(crate) fn len(&mut self) -> Read<usize> {
        let len = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        if len > self.left.len() { Err(Damaged) } else { Ok(len) }
    }

    pub(crate) fn block(&mut self) -> Read<&'a [u8]> {
        let len = self.len()?;
        let (block, left) = self.left.split_at_checked(len).ok_or(Damaged)?;
        self.left = left;
        Ok(block)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (array, left) = self.left.split_first_chunk::<N>().ok_or(Damaged)?;
        self.left = left;
        Ok(*array)
    }
}

/// What can be written and read.
pub(crate) trait Codec: Sized {
    fn put(&self, to: &mut Writer);

    /// Reads one.
    ///
    /// # Errors
    /// [`Damaged`] where the bytes are none.
    fn take(from: &mut Reader<'_>) -> Read<Self>;
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Codec for $ty {
            fn put(&self, to: &mut Writer) {
                #[allow(clippy::cast_lossless, reason = "u64 and usize have no `From` for each other")]
                to.number(*self as u64);
            }

            #[inline]
            fn take(from: &mut Reader<'_>) -> Read<Self> {
                Self::try_from(from.number()?).map_err(|_| Damaged)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

impl Codec for bool {
    fn put(&self, to: &mut Writer) {
        to.byte(u8::from(*self));
    }

    #[inline]
    fn take(from: &mut Reader<'_>) -> Read<Self> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Codec for i64 {
    fn put(&self, to: &mut Writer) {
        // Small numbers of either sign are short.
        to.number(((*self << 1) ^ (*self >> 63)).cast_unsigned());
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        let number = from.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Codec for f64 {
    fn put(&self, to: &mut Writer) {
        to.bytes.extend_from_slice(&self.to_bits().to_le_bytes());
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Ok(Self::from_bits(u64::from_le_bytes(from.array()?)))
    }
}

impl<const N: usize> Codec for [u8; N] {
    fn put(&self, to: &mut Writer) {
        to.bytes.extend_from_slice(self);
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        from.array()
    }
}

impl Codec for Box<str> {
    fn put(&self, to: &mut Writer) {
        to.block(self.as_bytes());
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Ok(std::str::from_utf8(from.block()?).map_err(|_| Damaged)?.into())
    }
}

impl Codec for Rc<[u8]> {
    fn put(&self, to: &mut Writer) {
        to.block(self);
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Ok(from.block()?.into())
    }
}

impl<T: Codec> Codec for Option<T> {
    fn put(&self, to: &mut Writer) {
        to.byte(u8::from(self.is_some()));
        if let Some(value) = self {
            value.put(to);
        }
    }

    #[inline]
    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Ok(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn put(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.put(to));
    }

    #[inline]
    fn take(from: &mut Reader<'_>) -> Read<Self> {
        let len = from.len()?;
        // A wrong length allocates no more than a multiple of the bytes that follow.
        let mut items = Self::with_capacity(len.min(from.left.len() / 2 + 8));
        for _ in 0..len {
            items.push(T::take(from)?);
        }
        Ok(items)
    }
}

impl<T: Codec> Codec for Box<[T]> {
    fn put(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Vec::take(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Codec> Codec for Rc<T> {
    fn put(&self, to: &mut Writer) {
        (**self).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        T::take(from).map(Self::new)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn put(&self, to: &mut Writer) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<K: Codec + Eq + Hash, V: Codec, S: BuildHasher + Default> Codec for HashMap<K, V, S> {
    fn put(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.put(to);
            value.put(to);
        }
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        let len = from.len()?;
        let mut map = Self::with_capacity_and_hasher(len, S::default());
        for _ in 0..len {
            map.insert(K::take(from)?, V::take(from)?);
        }
        Ok(map)
    }
}

impl<T: Codec + Eq + Hash, S: BuildHasher + Default> Codec for HashSet<T, S> {
    fn put(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut Reader<'_>) -> Read<Self> {
        let len = from.len()?;
        (0..len).map(|_| T::take(from)).collect()
    }
}

/// Declares how a struct is written: its fields in order.
macro_rules! fields {
    ($($ty:ident { $($field:ident),* $(,)? })*) => {$(
        impl Codec for $ty {
            fn put(&self, to: &mut Writer) {
                $(self.$field.put(to);)*
            }

            #[inline]
            fn take(from: &mut Reader<'_>) -> Read<Self> {
                Ok(Self { $($field: Codec::take(from)?),* })
            }
        }
    )*};
}

/// Declares how an enum is written: a number for each variant, and what is in it.
macro_rules! variants {
    ($($ty:ident { $($number:literal = $variant:ident $(($($part:ident),*))?),* $(,)? })*) => {$(
        impl Codec for $ty {
            fn put(&self, to: &mut Writer) {
                match self {
                    $(Self::$variant $(($($part),*))? => {
                        to.byte($number);
                        $($($part.put(to);)*)?
                    })*
                }
            }

            #[inline]
            fn take(from: &mut Reader<'_>) -> Read<Self> {
                Ok(match from.byte()? {
                    $($number => Self::$variant $(($({
                        let $part = Codec::take(from)?;
                        $part
                    }),*))?,)*
                    _ => return Err(Damaged),
                })
            }
        }
    )*};
}

pub(crate) use {fields, variants};

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: Codec>(value: &T) -> T {
        let mut writer = Writer::default();
        value.put(&mut writer);
        let mut reader = Reader::new(&writer.bytes);
        let read = T::take(&mut reader);
        assert!(reader.left.is_empty());
        read.unwrap_or_else(|_| unreachable!("what was written is read"))
    }

    #[test]
    fn numbers_of_all_sizes_come_back() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(again(&number), number);
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX, 1 << 40] {
            assert_eq!(again(&number), number);
        }
        assert_eq!(again(&vec![(1_u32, Some(true)), (2, None)]), [(1, Some(true)), (2, None)]);
    }

    #[test]
    fn lengths_and_variants_that_cannot_be_are_refused() {
        assert_eq!(Vec::<u32>::take(&mut Reader::new(&[200, 1, 1])), Err(Damaged));
        assert_eq!(bool::take(&mut Reader::new(&[2])), Err(Damaged));
        assert_eq!(u64::take(&mut Reader::new(&[0xff; 11])), Err(Damaged));
        assert_eq!(u8::take(&mut Reader::new(&[0x80, 2])), Err(Damaged));
        assert_eq!(Box::<str>::take(&mut Reader::new(&[1, 0xff])), Err(Damaged));
    }
}
