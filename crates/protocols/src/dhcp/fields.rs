//! Fields of messages as events carry them.

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

/// A hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether they are a text of the sender's.
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

/// A hardware address as text: six bytes, or eight where the seventh and eighth say something;
/// empty where there are fewer.
pub(super) fn mac(bytes: &[u8]) -> Vec<u8> {
    let shown = match bytes {
        [_, _, _, _, _, _] | [_, _, _, _, _, _, 0, 0, ..] => &bytes[..6],
        [_, _, _, _, _, _, _, _, ..] => &bytes[..8],
        _ => return Vec::new(),
    };
    let mut text = Vec::with_capacity(3 * shown.len());
    for (i, b) in shown.iter().enumerate() {
        if i > 0 {
            text.push(b':');
        }
        text.push(b"0123456789abcdef"[usize::from(b >> 4)]);
        text.push(b"0123456789abcdef"[usize::from(b & 15)]);
    }
    text
}

/// A text in a field of fixed size, without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpadded<'a>(pub(super) &'a [u8]);

impl Arg for Unpadded<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        unpadded(self.0).pack(to);
    }
}

/// Addresses of IPv4.
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

/// Numbers of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<'a>(pub(super) &'a [u8]);

impl Arg for Numbers<'_> {
    const TYPE: Type = Type::Vector(&Type::Count);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|number| u64::from(*number).pack(to));
    }
}

/// A name without trailing zeros. One byte alone counts as padding too, as in Zeek.
pub(super) fn unpadded(name: &[u8]) -> &[u8] {
    match name.iter().rposition(|b| *b != 0) {
        None | Some(0) => b"",
        Some(last) => &name[..=last],
    }
}
