//! The link layer: from a captured frame to its network layer.
//!
//! Every encapsulation has one file with a `step` function, which parses its header and returns the
//! kind of its payload. The loop in [`link_with`] calls step after step until it reaches IP, ARP or
//! an unknown protocol. Ethernet that carries IP directly, which is nearly all traffic, does not
//! enter the loop.

mod ethernet;
mod fddi;
mod ieee80211;
mod llc;
mod mpls;
mod nflog;
mod null;
mod pbb;
mod ppp;
mod pppoe;
mod sll;
mod vlan;
mod vntag;

pub use ethernet::PLAIN_LAYERS;
pub use ethernet::plain_ipv4;
pub use ethernet::plain_ipv6;
pub use ieee80211::Subframes;
pub use ieee80211::passes as passes_filter;

use crate::MAX_DEPTH;
use crate::bytes;
use crate::error::Error;
use crate::error::Layer;

/// Link types of captures (the LINKTYPE_ and DLT_ numbers of tcpdump.org). Other types are treated
/// as raw IP.
pub mod link_type {
    /// BSD loopback, address family in the byte order of the capturing host.
    pub const NULL: u16 = 0;
    /// Ethernet.
    pub const ETHERNET: u16 = 1;
    /// PPP, with or without HDLC framing.
    pub const PPP: u16 = 9;
    /// FDDI.
    pub const FDDI: u16 = 10;
    /// PPP in HDLC framing.
    pub const PPP_SERIAL: u16 = 50;
    /// Raw IPv4 or IPv6.
    pub const RAW: u16 = 101;
    /// IEEE 802.11.
    pub const IEEE802_11: u16 = 105;
    /// OpenBSD loopback, address family in network byte order.
    pub const LOOP: u16 = 108;
    /// Linux "cooked" capture.
    pub const LINUX_SLL: u16 = 113;
    /// IEEE 802.11 after a radiotap header.
    pub const IEEE802_11_RADIO: u16 = 127;
    /// Linux netfilter log.
    pub const NFLOG: u16 = 239;
    /// Linux "cooked" capture, second version.
    pub const LINUX_SLL2: u16 = 276;
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;

/// The network layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network<'a> {
    /// A payload announced as IP, of either version.
    Ip(&'a [u8]),
    /// ARP or RARP.
    Arp(&'a [u8]),
    /// A network layer protocol that is not dissected.
    Other {
        /// Its protocol number: an EtherType, PPP protocol, address family or access point; after
        /// SNAP combined with the OUI, truncated to 32 bits.
        ethertype: u32,
        /// Its captured bytes.
        data: &'a [u8],
    },
    /// Several frames in one (IEEE 802.11 A-MSDU): iterate with [`Frame::subframes`].
    Aggregate(&'a [u8]),
    /// No network layer: management, encrypted or link control frames.
    Nothing,
}

/// A dissected link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The captured network layer, cut if the link layer contains a length.
    pub network: Network<'a>,
    /// Bytes from the start of the network layer to the end of the frame on the wire.
    pub wire_len: u32,
    /// Number of layers up to and including the network layer (see [`MAX_DEPTH`]).
    pub depth: u8,
    /// VLAN id of the outermost tag.
    pub vlan: Option<u16>,
    /// VLAN id of the second tag, or of the innermost one if more follow.
    pub inner_vlan: Option<u16>,
    /// Link-layer source.
    pub src_mac: Option<[u8; 6]>,
    /// Link-layer destination.
    pub dst_mac: Option<[u8; 6]>,
}

impl<'a> Frame<'a> {
    /// The subframes of a [`Network::Aggregate`]; empty for any other frame.
    pub fn subframes(&self) -> Subframes<'a> {
        Subframes::new(self)
    }
}

/// The encapsulations that a step can lead to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ethernet,
    Fddi,
    Ieee80211,
    Llc,
    Loop,
    Mpls,
    Nflog,
    Novell,
    Null,
    Pbb,
    Ppp,
    PppSerial,
    Pppoe,
    Radiotap,
    Sll,
    Sll2,
    Snap,
    Vlan,
    VnTag,
}

impl Kind {
    fn layer(self) -> Layer {
        match self {
            Self::Ethernet => Layer::Ethernet,
            Self::Fddi => Layer::Fddi,
            Self::Ieee80211 => Layer::Ieee80211,
            Self::Llc => Layer::Llc,
            Self::Loop => Layer::Loop,
            Self::Mpls => Layer::Mpls,
            Self::Nflog => Layer::Nflog,
            Self::Novell => Layer::Novell,
            Self::Null => Layer::Null,
            Self::Pbb => Layer::Pbb,
            Self::Ppp => Layer::Ppp,
            Self::PppSerial => Layer::PppSerial,
            Self::Pppoe => Layer::Pppoe,
            Self::Radiotap => Layer::Radiotap,
            Self::Sll => Layer::Sll,
            Self::Sll2 => Layer::Sll2,
            Self::Snap => Layer::Snap,
            Self::Vlan => Layer::Vlan,
            Self::VnTag => Layer::VnTag,
        }
    }
}

/// The result of a step.
enum Step<'a> {
    /// Another encapsulation.
    Into(Kind, &'a [u8]),
    /// A network layer, known or not.
    Network(Network<'a>),
    /// The end; no payload follows.
    Stop(Network<'a>),
}

/// IP and ARP by their EtherTypes, which most encapsulations use.
#[inline]
fn network(ethertype: u16, data: &[u8]) -> Step<'_> {
    Step::Network(match ethertype {
        IPV4 | IPV6 => Network::Ip(data),
        ARP | RARP => Network::Arp(data),
        _ => Network::Other { ethertype: u32::from(ethertype), data },
    })
}

/// Dissects the link layer of a frame of the given link type. `wire_len` is the frame's length on
/// the wire, in bytes.
///
/// # Errors
/// The fault that stops the dissection. Faults that do not stop it are dropped: see [`link_with`].
#[inline]
pub fn link(link_type: u16, data: &[u8], wire_len: u32) -> Result<Frame<'_>, Error> {
    link_with(link_type, data, wire_len, 0, &mut |_| {})
}

/// Like [`link`], for a frame that is nested in `depth` layers. Reports the faults that do not stop
/// the dissection to `on_fault`, in packet order.
///
/// # Errors
/// The fault that stops the dissection; [`Error::TooDeep`] for more than [`MAX_DEPTH`] layers.
#[inline]
pub fn link_with<'a>(
    link_type: u16,
    data: &'a [u8],
    wire_len: u32,
    depth: u8,
    on_fault: &mut impl FnMut(Error),
) -> Result<Frame<'a>, Error> {
    if link_type == link_type::ETHERNET
        && depth + 2 <= MAX_DEPTH
        && let Some(frame) = ethernet::direct(data, wire_len, depth)
    {
        return Ok(frame);
    }
    walk(link_type, data, wire_len, depth, on_fault, &mut |_, _| {})
}

/// Calls `layer` with each layer down to the network layer.
pub fn link_layers(link_type: u16, data: &[u8], layer: &mut impl FnMut(Layer)) {
    // The dissection of the frame itself reports the faults.
    let layer = &mut |kind, _: &[u8]| layer(kind);
    let _ = walk(link_type, data, data.len() as u32, 0, &mut |_| {}, layer);
}

/// The session id of the outermost PPPoE header of a frame (RFC 2516, section 4), if the frame has
/// one.
pub fn pppoe_session(link_type: u16, data: &[u8]) -> Option<u16> {
    let mut session = None;
    let layer = &mut |kind, header: &[u8]| {
        if kind == Layer::Pppoe && session.is_none() {
            session = pppoe::session(header);
        }
    };
    // A frame that is truncated after this header has a session id nevertheless.
    let _ = walk(link_type, data, data.len() as u32, 0, &mut |_| {}, layer);
    session
}

fn walk<'a>(
    link_type: u16,
    data: &'a [u8],
    wire_len: u32,
    depth: u8,
    on_fault: &mut impl FnMut(Error),
    layer: &mut impl FnMut(Layer, &'a [u8]),
) -> Result<Frame<'a>, Error> {
    let mut frame = Frame {
        network: Network::Nothing,
        wire_len,
        depth,
        vlan: None,
        inner_vlan: None,
        src_mac: None,
        dst_mac: None,
    };
    let mut last = None;
    let mut step = match first(link_type) {
        Some(kind) => Step::Into(kind, data),
        None => Step::Network(Network::Ip(data)),
    };
    // Every iteration goes one layer deeper, so MAX_DEPTH bounds the loop.
    loop {
        if !matches!(step, Step::Stop(_)) {
            if frame.depth >= MAX_DEPTH {
                return Err(Error::TooDeep(last));
            }
            frame.depth += 1;
        }
        let (kind, inner) = match step {
            Step::Into(kind, inner) => (kind, inner),
            Step::Network(network) | Step::Stop(network) => {
                frame.network = network;
                break;
            }
        };
        last = Some(kind.layer());
        layer(kind.layer(), inner);
        step = match kind {
            Kind::Ethernet => ethernet::step(inner, &mut frame)?,
            Kind::Fddi => fddi::step(inner)?,
            Kind::Ieee80211 => ieee80211::step(inner, &mut frame)?,
            Kind::Llc => llc::step(inner)?,
            Kind::Loop => null::step_loop(inner)?,
            Kind::Mpls => mpls::step(inner)?,
            Kind::Nflog => nflog::step(inner)?,
            Kind::Novell => return Err(llc::novell()),
            Kind::Null => null::step(inner)?,
            Kind::Pbb => pbb::step(inner)?,
            Kind::Ppp => ppp::step(inner)?,
            Kind::PppSerial => ppp::step_serial(inner)?,
            Kind::Pppoe => pppoe::step(inner, on_fault)?,
            Kind::Radiotap => ieee80211::step_radiotap(inner)?,
            Kind::Sll => sll::step(inner, &mut frame)?,
            Kind::Sll2 => sll::step_2(inner, &mut frame)?,
            Kind::Snap => llc::step_snap(inner)?,
            Kind::Vlan => vlan::step(inner, &mut frame, on_fault)?,
            Kind::VnTag => vntag::step(inner)?,
        };
    }
    if let Network::Ip(inner) | Network::Arp(inner) | Network::Aggregate(inner) = frame.network {
        frame.wire_len = wire_len.saturating_sub(offset(data, inner));
    }
    Ok(frame)
}

fn first(link_type: u16) -> Option<Kind> {
    Some(match link_type {
        link_type::NULL => Kind::Null,
        link_type::ETHERNET => Kind::Ethernet,
        link_type::PPP => Kind::Ppp,
        link_type::FDDI => Kind::Fddi,
        link_type::PPP_SERIAL => Kind::PppSerial,
        link_type::IEEE802_11 => Kind::Ieee80211,
        link_type::LOOP => Kind::Loop,
        link_type::LINUX_SLL => Kind::Sll,
        link_type::IEEE802_11_RADIO => Kind::Radiotap,
        link_type::NFLOG => Kind::Nflog,
        link_type::LINUX_SLL2 => Kind::Sll2,
        _ => return None,
    })
}

/// Offset of `part` in `whole`, which contains it.
fn offset(whole: &[u8], part: &[u8]) -> u32 {
    (part.as_ptr().addr().saturating_sub(whole.as_ptr().addr())) as u32
}

fn mac(data: &[u8], at: usize) -> Option<[u8; 6]> {
    bytes::array_at(data, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_link_types_are_bare_ip() {
        let d = [0x45; 20];
        for link_type in [12, 14, 101, 228, 229, 147] {
            let f = link(link_type, &d, 60).unwrap();
            assert_eq!((f.network, f.wire_len, f.depth), (Network::Ip(&d), 60, 1));
        }
    }

    #[test]
    fn layers_of_a_frame() {
        let mut d = vec![0; 12];
        d.extend_from_slice(&[0x81, 0, 0, 1, 0x88, 0xcc, 2, 7]);
        let mut layers = Vec::new();
        link_layers(1, &d, &mut |layer| layers.push(layer));
        assert_eq!(layers, [Layer::Ethernet, Layer::Vlan]);
        let network = link(1, &d, 20).unwrap().network;
        assert_eq!(network, Network::Other { ethertype: 0x88cc, data: &[2, 7] });
    }

    #[test]
    fn the_depth_is_limited() {
        let mut d = vec![0; 12];
        for _ in 0..40 {
            d.extend_from_slice(&[0x81, 0, 0, 1]);
        }
        let mut faults = Vec::new();
        let e = link_with(1, &d, d.len() as u32, 0, &mut |w| faults.push(w)).unwrap_err();
        assert_eq!(e, Error::TooDeep(Some(Layer::Vlan)));
        // Twenty-five layers: one Ethernet header, and tags, two of which are stored.
        assert_eq!(faults, [Error::ThirdVlan; 22]);
        let mut ip = vec![0; 12];
        ip.extend_from_slice(&[8, 0, 0x45, 0, 0, 20]);
        assert!(link_with(1, &ip, 18, 23, &mut |_| {}).is_ok());
        let e = link_with(1, &ip, 18, 24, &mut |_| {}).unwrap_err();
        assert_eq!(e, Error::TooDeep(Some(Layer::Ethernet)));
        let e = link_with(1, &ip, 18, 25, &mut |_| {}).unwrap_err();
        assert_eq!(e, Error::TooDeep(None));
    }
}
