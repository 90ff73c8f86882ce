//! Types of message fields in events.

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

/// A hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether the bytes are an identifier of the sender's choice (hardware type 0) instead of an address.
    pub is_text: bool,
}

impl Arg for Hardware<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        if self.is_text {
            self.bytes.pack(to);
        } else {
            mac(self.bytes).as_slice().pack(to);
        }
    }
}

/// Formats a hardware address as hexadecimal text: six bytes, or eight unless the seventh and eighth are zero;
/// empty for any other length below eight.
pub(super) fn mac(bytes: &[u8]) -> Vec<u8> {
    let significant = match bytes {
        [_, _, _, _, _, _] | [_, _, _, _, _, _, 0, 0, ..] => &bytes[..6],
        [_, _, _, _, _, _, _, _, ..] => &bytes[..8],
        _ => return Vec::new(),
    };
    let mut text = Vec::with_capacity(3 * significant.len());
    for (i, b) in significant.iter().enumerate() {
        if i > 0 {
            text.push(b':');
        }
        text.push(b"0123456789abcdef"[usize::from(b >> 4)]);
        text.push(b"0123456789abcdef"[usize::from(b & 15)]);
    }
    text
}

/// Text in a field of fixed size, reported without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpadded<'a>(pub(super) &'a [u8]);

impl Arg for Unpadded<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        unpadded(self.0).pack(to);
    }
}

/// A list of IPv4 addresses, as raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addrs<'a>(pub(super) &'a [u8]);

impl Arg for Addrs<'_> {
    const TYPE: Type = Type::Vector(&Type::Addr);

    fn pack(&self, to: &mut Packer<'_>) {
        let addrs = self.0.as_chunks().0;
        to.list(addrs.len());
        addrs.iter().for_each(|addr| Addr::v4(*addr).pack(to));
    }
}

/// A list of one-byte numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<'a>(pub(super) &'a [u8]);

impl Arg for Numbers<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|number| u64::from(*number).pack(to));
    }
}

/// Removes trailing zeros from a name. As in Zeek, a name of one byte counts as padding.
pub(super) fn unpadded(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|b| *b != 0) {
        None | Some(0) => b"",
        Some(last) => &name[..=last],
    }
}
