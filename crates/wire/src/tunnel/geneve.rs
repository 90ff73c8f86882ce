//! Geneve (RFC 8926): a payload of any EtherType in UDP, with options.

use super::Inner;
use super::Refusal;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Length of the header before the options, and of an option before its data.
const LEN: usize = 8;
const OPTION_LEN: usize = 4;

mod field {
    /// Version (two bits) and length of the options in words (six bits).
    pub(super) const VERSION_LEN: usize = 0;
    pub(super) const PROTOCOL: usize = 2;
    pub(super) const VNI: usize = 4;
}

/// A Geneve packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geneve<'a> {
    /// Virtual network identifier, twenty-four bits.
    pub vni: u32,
    /// EtherType of the payload.
    pub protocol: u16,
    /// The payload.
    pub inner: Inner<'a>,
    /// The encoded options.
    pub raw_options: &'a [u8],
}

/// One option (RFC 8926 §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneveOption<'a> {
    /// Namespace of the type.
    pub class: u16,
    /// Whether endpoints that do not know the option must drop the packet.
    pub critical: bool,
    /// Option type, without the bit of `critical`.
    pub kind: u8,
    /// Option data, a multiple of four bytes.
    pub data: &'a [u8],
}

impl<'a> Geneve<'a> {
    /// The options, up to the first one that does not fit.
    pub fn options(&self) -> impl Iterator<Item = GeneveOption<'a>> {
        let mut rest = self.raw_options;
        std::iter::from_fn(move || {
            let (head, after) = rest.split_first_chunk::<OPTION_LEN>()?;
            let (data, after) = after.split_at_checked(usize::from(head[3] & 0x1f) * 4)?;
            rest = after;
            Some(GeneveOption {
                class: bytes::u16_at(head, 0),
                critical: head[2] & 0x80 != 0,
                kind: head[2] & 0x7f,
                data,
            })
        })
    }
}

/// Parses a UDP payload as Geneve.
///
/// # Errors
/// A violation for truncated headers, [`Error::UnknownVersion`] for any version but 0, and
/// [`Error::EmptyTunnel`] if nothing follows.
pub fn geneve(data: &[u8]) -> Result<Geneve<'_>, Refusal<'_>> {
    let Some((head, rest)) = data.split_first_chunk::<LEN>() else {
        return Err(Refusal::violation("Geneve header truncation", data));
    };
    let version = head[field::VERSION_LEN] >> 6;
    if version != 0 {
        let error = Error::UnknownVersion(Layer::Geneve, version);
        return Err(Refusal::Faulty { error, confirmed: false });
    }
    let options_len = usize::from(head[field::VERSION_LEN] & 0x3f) * 4;
    let Some((options, inner)) = rest.split_at_checked(options_len) else {
        return Err(Refusal::violation("Geneve option header truncation", data));
    };
    if inner.is_empty() {
        return Err(Refusal::empty(Layer::Geneve));
    }
    let protocol = bytes::u16_at(head, field::PROTOCOL);
    let vni = bytes::u24_at(head, field::VNI);
    Ok(Geneve { vni, protocol, inner: Inner::by_ethertype(protocol, inner), raw_options: options })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: [u8; 21] = [
        0x03, 0, 0x65, 0x58, 0, 0, 7,
        0, // Header: three words of options, Ethernet, network 7
        0x01, 0x02, 0x83, 1, 1, 2, 3, 4, // Option with data
        0x01, 0x02, 0x04, 0, // Option without
        9,
    ];

    #[test]
    fn options_and_the_frame() {
        let g = geneve(&PACKET).unwrap();
        assert_eq!((g.vni, g.protocol, g.inner), (7, 0x6558, Inner::Ethernet(&[9])));
        let o: Vec<_> = g.options().collect();
        let first = GeneveOption { class: 0x0102, critical: true, kind: 3, data: &[1, 2, 3, 4] };
        assert_eq!(o[0], first);
        assert_eq!((o[1].critical, o[1].kind, o[1].data, o.len()), (false, 4, &[][..], 2));
        let mut over = PACKET;
        over[11] = 9;
        assert_eq!(geneve(&over).unwrap().options().count(), 0);
    }

    #[test]
    fn invalid_headers() {
        let violation = |d| geneve(d).err();
        let cut = &PACKET[..7];
        assert_eq!(violation(cut), Some(Refusal::violation("Geneve header truncation", cut)));
        let cut = &PACKET[..19];
        assert_eq!(
            violation(cut),
            Some(Refusal::violation("Geneve option header truncation", cut))
        );
        assert!(matches!(geneve(&PACKET[..20]), Err(Refusal::Faulty { confirmed: true, .. })));
        let error = Error::UnknownVersion(Layer::Geneve, 1);
        assert_eq!(violation(&[0x40; 9]), Some(Refusal::Faulty { error, confirmed: false }));
    }
}
