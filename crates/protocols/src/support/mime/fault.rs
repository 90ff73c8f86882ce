//! Faults of messages.

use std::borrow::Cow;

/// A fault in the format of a message, or in the encoding of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An entity ends after its header.
    NoBody,
    /// A multipart entity ends without its closing delimiter.
    NotClosed,
    /// A header begins with a continuation line.
    LeadingBlank,
    /// A Content-Type without type or subtype.
    NoType,
    /// A multipart entity has no boundary.
    NoBoundary,
    /// The boundary is invalid.
    BadBoundary,
    /// A Content-Transfer-Encoding without encoding.
    NoEncoding,
    /// A parameter without name.
    NoAttribute,
    /// A parameter without `=`.
    NoEquals,
    /// A parameter without value.
    NoValue,
    /// There is data after the end of an entity.
    Trailing,
    /// `=` without two hexadecimal digits in quoted-printable content (RFC 2045 section 6.7).
    NoDigits,
    /// A control character or a byte above 126 in quoted-printable content.
    Control(u8),
}

impl Fault {
    /// Kind of the fault, as events name it.
    pub fn event_type(self) -> &'static str {
        match self {
            Self::NoDigits | Self::Control(_) => "illegal encoding",
            _ => "illegal format",
        }
    }

    /// Description of the fault, as events contain it.
    pub fn detail(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::NoBody => "entity body missing",
            Self::NotClosed => "multipart closing boundary delimiter missing",
            Self::LeadingBlank => "first header line starts with linear whitespace",
            Self::NoType => "media type/subtype not found in content type",
            Self::NoBoundary => {
                "boundary delimiter is not specified for a multipart entity -- content is treated as type application/octet-stream"
            }
            Self::BadBoundary => "Could not parse multipart boundary",
            Self::NoEncoding => "encoding type not found in content encoding",
            Self::NoAttribute => "attribute name not found in parameter specification",
            Self::NoEquals => "= not found in parameter specification",
            Self::NoValue => "value not found in parameter specification",
            Self::Trailing => "data trailing the end of entity",
            Self::NoDigits => {
                "= is not followed by two hexadecimal digits in quoted-printable encoding"
            }
            Self::Control(byte) => {
                let text = format!("control characters in quoted-printable encoding: {byte}");
                return Cow::Owned(text);
            }
        })
    }
}
