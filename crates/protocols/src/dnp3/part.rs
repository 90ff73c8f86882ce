//! The parts of a message.

/// A part of a message, in the order in which Zeek reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart<'a> {
    /// An object header.
    Header {
        /// Group and variation.
        kind: u16,
        /// The qualifier.
        qualifier: u8,
        /// Number of objects.
        number: u32,
        /// The first field of the range, or the count.
        low: u32,
        /// The second field of the range.
        high: u32,
    },
    /// The prefix of an object.
    Prefix(u32),
    /// An object that is more than a single number.
    Object {
        /// Group and variation.
        kind: u16,
        /// Bytes of the object.
        body: &'a [u8],
    },
    /// Data in an unknown format.
    Rest(&'a [u8]),
    /// The end of an object of a response, with the value of a one-byte object and otherwise 255.
    End(u8),
    /// The message has more empty objects than are reported.
    TooManyEmpty,
}

/// Passes a part to `visit`, if present.
#[inline]
pub(super) fn report<F: FnMut(MessagePart<'_>)>(visit: &mut Option<F>, part: MessagePart<'_>) {
    if let Some(visit) = visit {
        visit(part);
    }
}
