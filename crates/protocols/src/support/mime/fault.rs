//! Faults of messages.

use std::borrow::Cow;

/// A fault of a message: its format is wrong, or the encoding of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An entity ends with its header.
    NoBody,
    /// An entity of several parts ends with one of them.
    NotClosed,
    /// A header begins with a line that continues another.
    LeadingBlank,
    /// A Content-Type without type or subtype.
    NoType,
    /// An entity of several parts has no boundary.
    NoBoundary,
    /// A boundary that cannot be read.
    BadBoundary,
    /// A Content-Transfer-Encoding without encoding.
    NoEncoding,
    /// A parameter without name.
    NoAttribute,
    /// A parameter without `=`.
    NoEquals,
    /// A parameter without value.
    NoValue,
    /// Data behind the end of an entity.
    Trailing,
    /// `=` without two digits behind it, in quoted-printable content (RFC 2045 section 6.7).
    NoDigits,
    /// A control character or a byte above 126 in such content.
    Control(u8),
}

impl Fault {
    /// The kind of the fault, as events name it.
    pub fn event_type(self) -> &'static str {
        match self {
            Self::NoDigits | Self::Control(_) => "illegal encoding",
            _ => "illegal format",
        }
    }

    /// The fault, as events name it.
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
