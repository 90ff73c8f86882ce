//! Tunnels: what carries packets inside of packets.
//!
//! [`gre`] and [`ip_in_ip`] work on IP payloads, the others on UDP payloads. All answer with an
//! [`Inner`] to walk again, but do not walk it themselves: the caller counts depths
//! ([`crate::MAX_TUNNEL_DEPTH`]) and remembers what encloses what.
//!
//! On the wire, the packet in [`gre`] and [`ip_in_ip`] is as long as captured; those in UDP
//! tunnels are longer by as many bytes as the capture lacks of the whole frame.
//!
//! Whether a packet inside is one of IP is looked at before it is walked, where the tunnel's header
//! says that it is. What is odd about IPv6 extension headers shows then, even if nothing is walked
//! afterwards: the `_with` functions tell of it.
//!
//! UDP tunnels are found by port or by content, so their payloads may be something else. They
//! fail with a [`Refusal`], which tells a wrong guess ([`Refusal::Violation`]) from the tunnel's
//! own oddities.

mod ayiya;
mod geneve;
mod gre;
mod gtpv1;
mod ip_in_ip;
mod teredo;
mod vxlan;

use std::fmt;

pub use ayiya::ayiya;
pub use ayiya::looks_like_ayiya;
pub use geneve::Geneve;
pub use geneve::GeneveOption;
pub use geneve::geneve;
pub use gre::Gre;
pub use gre::gre;
pub use gre::gre_with;
pub use gtpv1::Body;
pub use gtpv1::Element;
pub use gtpv1::Gtpv1;
pub use gtpv1::elements;
pub use gtpv1::gtpv1;
pub use gtpv1::gtpv1_with;
pub use ip_in_ip::ip_in_ip;
pub use ip_in_ip::ip_in_ip_with;
pub use teredo::Authentication;
pub use teredo::Origin;
pub use teredo::Teredo;
pub use teredo::looks_like_teredo;
pub use teredo::teredo;
pub use teredo::teredo_with;
pub use vxlan::Vxlan;
pub use vxlan::vxlan;

use crate::link_type;
use crate::weird::Weird;

/// UDP ports on which these tunnels are expected.
pub mod port {
    /// GTPv1 control.
    pub const GTPV1_C: u16 = 2123;
    /// GTPv1 user data.
    pub const GTPV1_U: u16 = 2152;
    /// Teredo.
    pub const TEREDO: u16 = 3544;
    /// GRE in UDP (RFC 8086).
    pub const GRE: u16 = 4754;
    /// VXLAN.
    pub const VXLAN: u16 = 4789;
    /// AYIYA.
    pub const AYIYA: u16 = 5072;
    /// Geneve.
    pub const GENEVE: u16 = 6081;
}

/// What came out of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner<'a> {
    /// IP of either version: for [`crate::ip`].
    Ip(&'a [u8]),
    /// An Ethernet frame: for [`crate::link`].
    Ethernet(&'a [u8]),
    /// An IEEE 802.11 frame: for [`crate::link`].
    Ieee80211(&'a [u8]),
    /// ARP: for [`crate::arp`].
    Arp(&'a [u8]),
    /// Something that nothing here reads.
    Other {
        /// Its number: an EtherType or an IP protocol.
        protocol: u16,
        /// Its bytes.
        data: &'a [u8],
    },
}

impl<'a> Inner<'a> {
    /// The captured bytes.
    pub fn data(&self) -> &'a [u8] {
        match *self {
            Self::Ip(data)
            | Self::Ethernet(data)
            | Self::Ieee80211(data)
            | Self::Arp(data)
            | Self::Other { data, .. } => data,
        }
    }

    /// The link type for [`crate::link`]; `None` for what it does not read.
    pub fn link_type(&self) -> Option<u16> {
        match self {
            Self::Ip(_) => Some(link_type::RAW),
            Self::Ethernet(_) => Some(link_type::ETHERNET),
            Self::Ieee80211(_) => Some(link_type::IEEE802_11),
            Self::Arp(_) | Self::Other { .. } => None,
        }
    }

    /// By EtherType; that of bridged Ethernet is 0x6558.
    fn by_ethertype(protocol: u16, data: &'a [u8]) -> Self {
        match protocol {
            0x6558 => Self::Ethernet(data),
            0x0800 | 0x86dd => Self::Ip(data),
            0x0806 => Self::Arp(data),
            _ => Self::Other { protocol, data },
        }
    }
}

/// Why a UDP payload gives no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// It is not of this protocol at all: nothing further should be tried on the connection.
    Violation {
        /// What is wrong.
        reason: Reason,
        /// The bytes in question, as far as logs show them.
        data: &'a [u8],
        /// The name of an oddity of the connection that counts only where the protocol was
        /// confirmed before.
        if_confirmed: Option<&'static str>,
    },
    /// It is of this protocol, but odd.
    Weird {
        /// The oddity.
        weird: Weird,
        /// Whether the header held, so that the protocol is confirmed all the same.
        confirmed: bool,
    },
    /// It carries no packet and is none the worse for it.
    Ignored,
}

impl<'a> Refusal<'a> {
    /// Whether the payload ended before a field of it did, or one has no length that is known: nothing
    /// more of it was looked at.
    pub fn is_out_of_bound(&self) -> bool {
        let Self::Violation { reason, .. } = self else { return false };
        matches!(reason, Reason::OutOfBound { .. } | Reason::NoSuchElement)
    }

    #[cold]
    fn violation(reason: &'static str, data: &'a [u8]) -> Self {
        Self::Violation { reason: Reason::Text(reason), data, if_confirmed: None }
    }

    #[cold]
    fn out_of_bound(field: &'static str, need: i64, have: usize) -> Self {
        let reason = Reason::OutOfBound { field, need, have };
        Self::Violation { reason, data: &[], if_confirmed: None }
    }

    #[cold]
    fn no_such_element() -> Self {
        Self::Violation { reason: Reason::NoSuchElement, data: &[], if_confirmed: None }
    }

    #[cold]
    fn empty(name: &'static str, source: &'static str) -> Self {
        Self::Weird { weird: Weird::flow(name, source, None), confirmed: true }
    }
}

/// What is wrong with a payload; its `Display` is analyzer.log's `failure_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Fixed words.
    Text(&'static str),
    /// A field that reaches beyond the end.
    OutOfBound {
        /// Record and field.
        field: &'static str,
        /// Bytes it needs; below nothing where a length is computed and too short.
        need: i64,
        /// Bytes there are.
        have: usize,
    },
    /// An information element of a type that states no length, and has none.
    NoSuchElement,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(t) => f.write_str(t),
            Self::OutOfBound { field, need, have } => write!(
                f,
                "Binpac exception: binpac exception: out_of_bound: {field}: {need} > {have}"
            ),
            Self::NoSuchElement => {
                f.write_str("Binpac exception: binpac exception: invalid index for case: -")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_packets_by_ethertype() {
        assert_eq!(Inner::by_ethertype(0x6558, &[1]).link_type(), Some(1));
        assert_eq!(Inner::by_ethertype(0x86dd, &[1]), Inner::Ip(&[1]));
        assert_eq!(Inner::by_ethertype(0x0806, &[1]).link_type(), None);
        let other = Inner::by_ethertype(0x8847, &[1, 2]);
        assert_eq!((other.link_type(), other.data()), (None, &[1, 2][..]));
    }

    #[test]
    fn reasons_print_as_analyzer_log_does() {
        let Refusal::Violation { reason, .. } = Refusal::out_of_bound("GTPv1_Header:teid", 8, 6)
        else {
            panic!("no violation")
        };
        assert_eq!(
            reason.to_string(),
            "Binpac exception: binpac exception: out_of_bound: GTPv1_Header:teid: 8 > 6"
        );
    }
}
