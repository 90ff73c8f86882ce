//! What a message consists of.

/// A part of a message, in the order in which Zeek reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart<'a> {
    /// A header of objects.
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
    /// An object of more than one number.
    Object {
        /// Group and variation.
        kind: u16,
        /// Its bytes.
        body: &'a [u8],
    },
    /// Data whose form is not known.
    Rest(&'a [u8]),
    /// An object of a response ends: the value of one that is a byte.
    End(u8),
    /// More objects without any bytes than are reported.
    TooMany,
}

/// Reports a part to who asked for it.
#[inline]
pub(super) fn report<F: FnMut(MessagePart<'_>)>(found: &mut Option<F>, part: MessagePart<'_>) {
    if let Some(found) = found {
        found(part);
    }
}
