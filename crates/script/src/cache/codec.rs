//! Encoding and decoding of values.
//!
//! Numbers are encoded in groups of seven bits, lists with their lengths, variants by their numbers. A reader
//! checks every length and every variant number.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;

use crate::source::Span;

/// The bytes are not a valid encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Damaged;

/// The result of decoding.
pub(crate) type DecodeResult<T> = Result<T, Damaged>;

/// Output buffer of an encoder.
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    /// The last span that was written, the base of the next one's encoding.
    pub(super) previous_span: Span,
}

impl Default for Writer {
    fn default() -> Self {
        Self { bytes: Vec::new(), previous_span: Span::NOWHERE }
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

/// Input of a decoder.
pub(crate) struct Reader<'a> {
    pub(crate) left: &'a [u8],
    /// The last span that was read, the base of the next one's encoding.
    pub(super) previous_span: Span,
    /// The file that ends with `left`, if its digest is valid.
    pub(super) file: Option<&'a Rc<Vec<u8>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes, previous_span: Span::NOWHERE, file: None }
    }

    /// A reader of a file with a valid digest, from offset `start`.
    pub(super) fn of_file(file: &'a Rc<Vec<u8>>, start: usize) -> Self {
        Self { file: Some(file), ..Self::new(file.get(start..).unwrap_or_default()) }
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> DecodeResult<u8> {
        let (byte, left) = self.left.split_first().ok_or(Damaged)?;
        self.left = left;
        Ok(*byte)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> DecodeResult<u64> {
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
    fn long_number(&mut self) -> DecodeResult<u64> {
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

    /// The length of a list whose items have at least one byte each.
    #[inline]
    pub(crate) fn len(&mut self) -> DecodeResult<usize> {
        let len = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        if len > self.left.len() { Err(Damaged) } else { Ok(len) }
    }

    pub(crate) fn block(&mut self) -> DecodeResult<&'a [u8]> {
        let len = self.len()?;
        let (block, left) = self.left.split_at_checked(len).ok_or(Damaged)?;
        self.left = left;
        Ok(block)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> DecodeResult<[u8; N]> {
        let (array, left) = self.left.split_first_chunk::<N>().ok_or(Damaged)?;
        self.left = left;
        Ok(*array)
    }
}

/// A type that can be encoded and decoded.
pub(crate) trait Codec: Sized {
    fn encode(&self, to: &mut Writer);

    /// Decodes a value.
    ///
    /// # Errors
    /// [`Damaged`] if the bytes are not a valid encoding.
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self>;
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Codec for $ty {
            fn encode(&self, to: &mut Writer) {
                #[allow(clippy::cast_lossless, reason = "u64 and usize have no `From` for each other")]
                to.number(*self as u64);
            }

            #[inline]
            fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
                Self::try_from(from.number()?).map_err(|_| Damaged)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

impl Codec for bool {
    fn encode(&self, to: &mut Writer) {
        to.byte(u8::from(*self));
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Codec for i64 {
    fn encode(&self, to: &mut Writer) {
        // Small numbers of either sign have short encodings.
        to.number(((*self << 1) ^ (*self >> 63)).cast_unsigned());
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        let number = from.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Codec for f64 {
    fn encode(&self, to: &mut Writer) {
        to.bytes.extend_from_slice(&self.to_bits().to_le_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(Self::from_bits(u64::from_le_bytes(from.array()?)))
    }
}

impl<const N: usize> Codec for [u8; N] {
    fn encode(&self, to: &mut Writer) {
        to.bytes.extend_from_slice(self);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        from.array()
    }
}

impl Codec for Box<str> {
    fn encode(&self, to: &mut Writer) {
        to.block(self.as_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(std::str::from_utf8(from.block()?).map_err(|_| Damaged)?.into())
    }
}

impl Codec for Rc<[u8]> {
    fn encode(&self, to: &mut Writer) {
        to.block(self);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(from.block()?.into())
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, to: &mut Writer) {
        to.byte(u8::from(self.is_some()));
        if let Some(value) = self {
            value.encode(to);
        }
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok(if bool::decode(from)? { Some(T::decode(from)?) } else { None })
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.encode(to));
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        let len = from.len()?;
        // An invalid length allocates at most a multiple of the remaining bytes.
        let mut items = Self::with_capacity(len.min(from.left.len() / 2 + 8));
        for _ in 0..len {
            items.push(T::decode(from)?);
        }
        Ok(items)
    }
}

impl<T: Codec> Codec for Box<[T]> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.encode(to));
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Vec::decode(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Codec> Codec for Rc<T> {
    fn encode(&self, to: &mut Writer) {
        (**self).encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        T::decode(from).map(Self::new)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, to: &mut Writer) {
        self.0.encode(to);
        self.1.encode(to);
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

impl<K: Codec + Eq + Hash, V: Codec, S: BuildHasher + Default> Codec for HashMap<K, V, S> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.encode(to);
            value.encode(to);
        }
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        let len = from.len()?;
        let mut map = Self::with_capacity_and_hasher(len, S::default());
        for _ in 0..len {
            map.insert(K::decode(from)?, V::decode(from)?);
        }
        Ok(map)
    }
}

impl<T: Codec + Eq + Hash, S: BuildHasher + Default> Codec for HashSet<T, S> {
    fn encode(&self, to: &mut Writer) {
        to.number(self.len() as u64);
        self.iter().for_each(|item| item.encode(to));
    }

    fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
        let len = from.len()?;
        (0..len).map(|_| T::decode(from)).collect()
    }
}

/// Implements [`Codec`] for a struct: its fields in order.
macro_rules! fields {
    ($($ty:ident { $($field:ident),* $(,)? })*) => {$(
        impl Codec for $ty {
            fn encode(&self, to: &mut Writer) {
                $(self.$field.encode(to);)*
            }

            #[inline]
            fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
                Ok(Self { $($field: Codec::decode(from)?),* })
            }
        }
    )*};
}

/// Implements [`Codec`] for an enum: the number of the variant, then its fields.
macro_rules! variants {
    ($($ty:ident { $($number:literal = $variant:ident $(($($part:ident),*))?),* $(,)? })*) => {$(
        impl Codec for $ty {
            fn encode(&self, to: &mut Writer) {
                match self {
                    $(Self::$variant $(($($part),*))? => {
                        to.byte($number);
                        $($($part.encode(to);)*)?
                    })*
                }
            }

            #[inline]
            fn decode(from: &mut Reader<'_>) -> DecodeResult<Self> {
                Ok(match from.byte()? {
                    $($number => Self::$variant $(($({
                        let $part = Codec::decode(from)?;
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

    fn round_trip<T: Codec>(value: &T) -> T {
        let mut writer = Writer::default();
        value.encode(&mut writer);
        let mut reader = Reader::new(&writer.bytes);
        let read = T::decode(&mut reader);
        assert!(reader.left.is_empty());
        read.unwrap_or_else(|_| unreachable!("what was written is read"))
    }

    #[test]
    fn numbers_of_all_sizes_round_trip() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(round_trip(&number), number);
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX, 1 << 40] {
            assert_eq!(round_trip(&number), number);
        }
        assert_eq!(round_trip(&vec![(1_u32, Some(true)), (2, None)]), [(1, Some(true)), (2, None)]);
    }

    #[test]
    fn invalid_lengths_and_variants_are_rejected() {
        assert_eq!(Vec::<u32>::decode(&mut Reader::new(&[200, 1, 1])), Err(Damaged));
        assert_eq!(bool::decode(&mut Reader::new(&[2])), Err(Damaged));
        assert_eq!(u64::decode(&mut Reader::new(&[0xff; 11])), Err(Damaged));
        assert_eq!(u8::decode(&mut Reader::new(&[0x80, 2])), Err(Damaged));
        assert_eq!(Box::<str>::decode(&mut Reader::new(&[1, 0xff])), Err(Damaged));
    }
}
