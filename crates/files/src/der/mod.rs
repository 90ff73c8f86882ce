//! A parser of BER and DER that is as lenient as OpenSSL, whose results Zeek's logs show.
//!
//! Certificates in traffic are not always DER: some have indefinite lengths, lengths with leading
//! zeros, or constructed strings. [`Reader`] parses such bytes one [`Element`] at a time and
//! borrows everything from its input; only a constructed string is copied ([`Element::octets`]).
//! Recursion is at most [`MAX_STRING_NEST`] deep, and every length is compared with the number of
//! remaining bytes before it is used (ITU-T X.690 §8.1).

mod integer;

pub use integer::{Integer, MAX_DECIMAL_OCTETS, decimal, integer_hex, push_folded_hex, push_hex};

use std::borrow::Cow;

/// Maximum nesting depth of constructed strings.
pub const MAX_STRING_NEST: u8 = 5;

/// Universal tag numbers that certificates and OCSP messages use (ITU-T X.680 §8.6).
pub mod tag {
    /// BOOLEAN.
    pub const BOOLEAN: u32 = 1;
    /// INTEGER.
    pub const INTEGER: u32 = 2;
    /// BIT STRING.
    pub const BIT_STRING: u32 = 3;
    /// OCTET STRING.
    pub const OCTET_STRING: u32 = 4;
    /// NULL.
    pub const NULL: u32 = 5;
    /// OBJECT IDENTIFIER.
    pub const OID: u32 = 6;
    /// ENUMERATED.
    pub const ENUMERATED: u32 = 10;
    /// UTF8String.
    pub const UTF8_STRING: u32 = 12;
    /// SEQUENCE.
    pub const SEQUENCE: u32 = 16;
    /// SET.
    pub const SET: u32 = 17;
    /// NumericString.
    pub const NUMERIC_STRING: u32 = 18;
    /// PrintableString.
    pub const PRINTABLE_STRING: u32 = 19;
    /// TeletexString.
    pub const T61_STRING: u32 = 20;
    /// IA5String.
    pub const IA5_STRING: u32 = 22;
    /// UTCTime.
    pub const UTC_TIME: u32 = 23;
    /// GeneralizedTime.
    pub const GENERALIZED_TIME: u32 = 24;
    /// VisibleString.
    pub const VISIBLE_STRING: u32 = 26;
    /// UniversalString.
    pub const UNIVERSAL_STRING: u32 = 28;
    /// BMPString.
    pub const BMP_STRING: u32 = 30;
}

/// Reasons why bytes cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DerError {
    /// The input ends within a header or before the end of an element.
    Truncated,
    /// A tag or length that is too large, or an indefinite length of a primitive element.
    BadHeader,
    /// A tag other than the one expected at this position.
    UnexpectedTag,
    /// Contents that the type does not allow.
    BadValue,
    /// Data after the last member of a structure.
    TrailingData,
}

impl std::fmt::Display for DerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the element is cut off",
            Self::BadHeader => "the tag or length is malformed",
            Self::UnexpectedTag => "another tag was expected",
            Self::BadValue => "the contents do not fit the type",
            Self::TrailingData => "bytes follow the last member",
        })
    }
}

impl std::error::Error for DerError {}

/// Shorthand for results of this module.
pub type Result<T> = std::result::Result<T, DerError>;

/// Class of a tag (ITU-T X.690 §8.1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Types of X.680 itself.
    Universal,
    /// Types of one application.
    Application,
    /// Context-specific: members of a structure, such as `[0]`.
    Context,
    /// Types of one enterprise.
    Private,
}

/// One tag, length and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Class of the tag.
    pub class: Class,
    /// Number of the tag.
    pub tag: u32,
    /// Whether the contents consist of elements.
    pub constructed: bool,
    /// The contents, without the end-of-contents octets of an indefinite length.
    pub content: &'a [u8],
    /// Header and contents, including the end-of-contents octets of an indefinite length.
    pub raw: &'a [u8],
    /// Whether the length is indefinite.
    pub indefinite: bool,
}

/// Header of an element, before its contents.
struct Header {
    class: Class,
    tag: u32,
    constructed: bool,
    /// Length of the header in octets.
    size: usize,
    /// Length of the contents in octets; `None` if it is indefinite.
    length: Option<usize>,
}

/// Parses the header at the start of `data` and checks that a definite length fits; `marked` means
/// that end-of-contents octets follow `data`.
fn header(data: &[u8], marked: bool) -> Result<Header> {
    let first = *data.first().ok_or(DerError::Truncated)?;
    let class = match first >> 6 {
        0 => Class::Universal,
        1 => Class::Application,
        2 => Class::Context,
        _ => Class::Private,
    };
    let constructed = first & 0x20 != 0;
    let mut at = 1;
    let mut tag = u32::from(first & 0x1f);
    if tag == 0x1f {
        tag = 0;
        loop {
            let octet = *data.get(at).ok_or(DerError::Truncated)?;
            at += 1;
            tag = (tag << 7) | u32::from(octet & 0x7f);
            if octet & 0x80 == 0 {
                break;
            }
            if tag > 0x7fff_ffff >> 7 {
                return Err(DerError::BadHeader);
            }
        }
    }
    let first = *data.get(at).ok_or(DerError::Truncated)?;
    at += 1;
    let length = if first == 0x80 {
        if !constructed {
            return Err(DerError::BadHeader);
        }
        None
    } else if first & 0x80 == 0 {
        Some(usize::from(first))
    } else {
        let end = at + usize::from(first & 0x7f);
        let octets = data.get(at..end).ok_or(DerError::Truncated)?;
        // A long length must be followed by data, which may be end-of-contents octets.
        if end == data.len() && !marked {
            return Err(DerError::Truncated);
        }
        at += octets.len();
        let mut length = 0usize;
        for &octet in octets {
            if length >> (usize::BITS - 9) != 0 {
                return Err(DerError::BadHeader);
            }
            length = (length << 8) | usize::from(octet);
        }
        Some(length)
    };
    if length.is_some_and(|length| length > data.len() - at) {
        return Err(DerError::Truncated);
    }
    Ok(Header { class, tag, constructed, size: at, length })
}

/// Length of the contents of an indefinite-length element, which `data` begins with: up to its
/// end-of-contents octets.
fn indefinite_length(data: &[u8]) -> Result<usize> {
    let mut at = 0;
    let mut open = 1usize;
    loop {
        let rest = data.get(at..).ok_or(DerError::Truncated)?;
        if rest.starts_with(&[0, 0]) {
            open -= 1;
            if open == 0 {
                return Ok(at);
            }
            at += 2;
            continue;
        }
        let header = header(rest, true)?;
        at += header.size;
        match header.length {
            Some(length) => at += length,
            None => open += 1,
        }
    }
}

/// Parses the elements of its input in sequence.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Whether end-of-contents octets follow the input.
    marked: bool,
}

impl<'a> Reader<'a> {
    /// A reader that starts at the beginning of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, marked: false }
    }

    /// Whether all octets were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Parses the next element.
    ///
    /// # Errors
    /// If the header is malformed, or if the input ends before the element does.
    pub fn element(&mut self) -> Result<Element<'a>> {
        let data = self.rest;
        let header = header(data, self.marked)?;
        let body = &data[header.size..];
        let (content, end) = match header.length {
            Some(length) => (&body[..length], header.size + length),
            None => {
                let length = indefinite_length(body)?;
                (&body[..length], header.size + length + 2)
            }
        };
        // End-of-contents octets outside of an indefinite length.
        if header.tag == 0 && header.class == Class::Universal {
            return Err(DerError::BadHeader);
        }
        self.rest = &data[end..];
        Ok(Element {
            class: header.class,
            tag: header.tag,
            constructed: header.constructed,
            content,
            raw: &data[..end],
            indefinite: header.length.is_none(),
        })
    }

    /// Parses the next element, which must have the universal tag `tag`.
    ///
    /// # Errors
    /// Those of [`Reader::element`], and if the tag is a different one.
    pub fn universal(&mut self, tag: u32) -> Result<Element<'a>> {
        let element = self.element()?;
        if element.class == Class::Universal && element.tag == tag {
            Ok(element)
        } else {
            Err(DerError::UnexpectedTag)
        }
    }

    /// Parses the next element if it has this class and tag; otherwise consumes nothing.
    ///
    /// # Errors
    /// Those of [`Reader::element`].
    pub fn optional(&mut self, class: Class, tag: u32) -> Result<Option<Element<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut ahead = *self;
        let element = ahead.element()?;
        if element.class == class && element.tag == tag {
            *self = ahead;
            Ok(Some(element))
        } else {
            Ok(None)
        }
    }

    /// A reader of the members of the next element, which must be a SEQUENCE.
    ///
    /// # Errors
    /// Those of [`Reader::universal`], and if it is not constructed.
    pub fn sequence(&mut self) -> Result<Reader<'a>> {
        self.universal(tag::SEQUENCE)?.members()
    }

    /// Checks that no data remains.
    ///
    /// # Errors
    /// [`DerError::TrailingData`].
    pub fn finish(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(DerError::TrailingData) }
    }
}

impl<'a> Element<'a> {
    /// A reader of the members of a constructed element.
    ///
    /// # Errors
    /// If the element is primitive.
    pub fn members(&self) -> Result<Reader<'a>> {
        if self.constructed { Ok(self.items()) } else { Err(DerError::BadValue) }
    }

    /// A reader of the members of a SEQUENCE OF or SET OF, which need not be constructed.
    pub fn items(&self) -> Reader<'a> {
        Reader { rest: self.content, marked: self.indefinite }
    }

    /// The single element inside an explicit tag.
    ///
    /// # Errors
    /// If it has no member, or more than one.
    pub fn explicit(&self) -> Result<Element<'a>> {
        let mut inner = self.members()?;
        let element = inner.element()?;
        inner.finish()?;
        Ok(element)
    }

    /// Contents of a type that must be primitive.
    ///
    /// # Errors
    /// If the element is constructed.
    pub fn primitive(&self) -> Result<&'a [u8]> {
        if self.constructed { Err(DerError::BadValue) } else { Ok(self.content) }
    }

    /// Contents of a string type; segments of a constructed one are joined.
    ///
    /// # Errors
    /// If segments are nested deeper than [`MAX_STRING_NEST`], or are malformed.
    pub fn octets(&self) -> Result<Cow<'a, [u8]>> {
        if !self.constructed {
            return Ok(Cow::Borrowed(self.content));
        }
        let mut joined = Vec::new();
        join(self, 0, &mut joined)?;
        Ok(Cow::Owned(joined))
    }

    /// Octets and number of unused bits of a BIT STRING; unused bits are set to zero.
    ///
    /// # Errors
    /// If it is empty, or has more than seven unused bits.
    pub fn bits(&self) -> Result<(Cow<'a, [u8]>, u8)> {
        let octets = self.octets()?;
        let unused = *octets.first().ok_or(DerError::BadValue)?;
        if unused > 7 {
            return Err(DerError::BadValue);
        }
        if let (Cow::Borrowed(octets), 0) = (&octets, unused) {
            return Ok((Cow::Borrowed(&octets[1..]), 0));
        }
        let mut value = octets[1..].to_vec();
        if let Some(last) = value.last_mut() {
            *last &= 0xff << unused;
        }
        Ok((Cow::Owned(value), unused))
    }

    /// Contents of an OBJECT IDENTIFIER: complete arcs without padding.
    ///
    /// # Errors
    /// [`DerError::BadValue`].
    pub fn oid(&self) -> Result<&'a [u8]> {
        let octets = self.primitive()?;
        let ends = octets.last().is_some_and(|&last| last & 0x80 == 0);
        let padded = octets.first() == Some(&0x80)
            || octets.windows(2).any(|pair| pair[0] & 0x80 == 0 && pair[1] == 0x80);
        if ends && !padded { Ok(octets) } else { Err(DerError::BadValue) }
    }

    /// Value of a BOOLEAN: any octet except zero is true.
    ///
    /// # Errors
    /// If the contents are not one octet.
    pub fn boolean(&self) -> Result<bool> {
        match self.primitive()? {
            [value] => Ok(*value != 0),
            _ => Err(DerError::BadValue),
        }
    }

    /// Value of an INTEGER or ENUMERATED.
    ///
    /// # Errors
    /// If it is empty, or not in the shortest form.
    pub fn integer(&self) -> Result<Integer<'a>> {
        Integer::new(self.primitive()?)
    }
}

/// Appends the segments of a constructed string.
fn join(element: &Element<'_>, depth: u8, into: &mut Vec<u8>) -> Result<()> {
    if depth > MAX_STRING_NEST {
        return Err(DerError::BadValue);
    }
    let mut pieces = element.items();
    while !pieces.is_empty() {
        let piece = pieces.element()?;
        if piece.constructed {
            join(&piece, depth + 1, into)?;
        } else {
            into.extend_from_slice(piece.content);
        }
    }
    Ok(())
}

/// Appends tag and definite length of a primitive universal element.
pub fn push_header(tag: u8, length: usize, into: &mut Vec<u8>) {
    into.push(tag);
    if length < 0x80 {
        into.push(length.to_le_bytes()[0]);
        return;
    }
    let octets = length.to_be_bytes();
    let skip = octets.iter().take_while(|&&octet| octet == 0).count();
    into.push(0x80 | (octets.len() - skip).to_le_bytes()[0]);
    into.extend_from_slice(&octets[skip..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_definite_and_indefinite_lengths() {
        let mut reader = Reader::new(&[
            0x30, 0x80, 0x02, 0x01, 0x05, 0x30, 0x80, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00,
        ]);
        let mut members = reader.sequence().unwrap();
        assert_eq!(members.universal(tag::INTEGER).unwrap().integer().unwrap().to_i64(), Some(5));
        assert!(members.sequence().unwrap().is_empty());
        assert!(members.is_empty());
        assert_eq!(reader.element().unwrap().tag, tag::NULL);
        assert!(reader.finish().is_ok());
    }

    #[test]
    fn rejects_what_does_not_fit() {
        assert_eq!(Reader::new(&[0x30, 0x03, 0x02, 0x01]).element(), Err(DerError::Truncated));
        assert_eq!(Reader::new(&[0x04, 0x80, 0x00, 0x00]).element(), Err(DerError::BadHeader));
        assert_eq!(
            Reader::new(&[0x04, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]).element(),
            Err(DerError::BadHeader)
        );
        assert_eq!(Reader::new(&[0x30, 0x80, 0x02, 0x01]).element(), Err(DerError::Truncated));
        assert_eq!(Reader::new(&[0x05, 0x81, 0x00]).element(), Err(DerError::Truncated));
    }

    #[test]
    fn long_lengths_may_be_padded() {
        let element = Reader::new(&[0x04, 0x83, 0x00, 0x00, 0x01, 0xaa]).element().unwrap();
        assert_eq!(element.content, [0xaa]);
    }

    #[test]
    fn joins_strings_in_pieces() {
        let element =
            Reader::new(&[0x24, 0x80, 0x04, 0x01, b'a', 0x24, 0x03, 0x04, 0x01, b'b', 0x00, 0x00])
                .element()
                .unwrap();
        assert_eq!(&*element.octets().unwrap(), b"ab");
        // Nested segments: up to the maximum depth, and one level deeper.
        let nested = |depth: u8| {
            let mut bytes = vec![0x04, 0x01, b'c'];
            for _ in 0..depth {
                bytes.splice(..0, [0x24, bytes.len() as u8]);
            }
            bytes
        };
        let octets = |depth| {
            let bytes = nested(depth);
            Reader::new(&bytes).element().unwrap().octets().map(Cow::into_owned)
        };
        assert_eq!(octets(1 + MAX_STRING_NEST).unwrap(), b"c");
        assert_eq!(octets(2 + MAX_STRING_NEST), Err(DerError::BadValue));
    }

    proptest! {
        #[test]
        fn never_panics(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(&data);
            while let Ok(element) = reader.element() {
                let _ = (element.octets(), element.bits(), element.oid(), element.integer(), element.explicit());
            }
        }
    }
}
