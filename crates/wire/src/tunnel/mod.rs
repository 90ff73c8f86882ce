//! Tunnels: protocols that carry packets in packets.
//!
//! [`gre`] and [`ip_in_ip`] parse IP payloads, the others UDP payloads. All return an [`Inner`] and
//! do not dissect it: the caller does, counts the depth ([`crate::MAX_TUNNEL_DEPTH`]) and records
//! the encapsulation.
//!
//! The wire length of the inner packet of [`gre`] and [`ip_in_ip`] is its captured length; for UDP
//! tunnels it also includes the bytes of the frame that were not captured.
//!
//! If the tunnel's header announces IP, the inner packet is checked before it is dissected. This
//! check finds the faults of IPv6 extension headers, even if no dissection follows; the `_with`
//! functions report them.
//!
//! UDP tunnels are detected by port or content, so a payload may be another protocol. The functions
//! then fail with a [`Refusal`], which distinguishes a wrong guess ([`Refusal::Violation`]) from
//! the tunnel's own faults.

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
pub use gtpv1::Optional;
pub use gtpv1::elements;
pub use gtpv1::gtpv1;
pub use gtpv1::gtpv1_message;
pub use gtpv1::gtpv1_with;
pub use ip_in_ip::ip_in_ip;
pub use ip_in_ip::ip_in_ip_with;
pub use teredo::Authentication;
pub use teredo::Origin;
pub use teredo::Teredo;
pub use teredo::looks_like_teredo;
pub use teredo::may_be_teredo;
pub use teredo::teredo;
pub use teredo::teredo_with;
pub use vxlan::Vxlan;
pub use vxlan::vxlan;

use crate::error::Error;
use crate::error::Layer;
use crate::link_type;

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

/// The payload of a tunnel.
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
    /// A protocol that is not dissected.
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

    /// The link type for [`crate::link`]; `None` for payloads that it does not dissect.
    pub fn link_type(&self) -> Option<u16> {
        match self {
            Self::Ip(_) => Some(link_type::RAW),
            Self::Ethernet(_) => Some(link_type::ETHERNET),
            Self::Ieee80211(_) => Some(link_type::IEEE802_11),
            Self::Arp(_) | Self::Other { .. } => None,
        }
    }

    /// Selects the variant by EtherType; 0x6558 is bridged Ethernet.
    fn by_ethertype(protocol: u16, data: &'a [u8]) -> Self {
        match protocol {
            0x6558 => Self::Ethernet(data),
            0x0800 | 0x86dd => Self::Ip(data),
            0x0806 => Self::Arp(data),
            _ => Self::Other { protocol, data },
        }
    }
}

/// Why a UDP payload contains no inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// The payload is not this protocol: the caller should not try this tunnel on the connection
    /// again.
    Violation {
        /// What is wrong.
        reason: Reason,
        /// The bytes that logs show for the violation.
        data: &'a [u8],
        /// A fault of the connection, which is only reported if the protocol was confirmed before.
        if_confirmed: Option<Error>,
    },
    /// The payload is this protocol, but invalid.
    Faulty {
        /// The fault.
        error: Error,
        /// Whether the header was valid, so that the protocol counts as confirmed.
        confirmed: bool,
    },
    /// A valid message that carries no packet.
    Ignored,
}

impl<'a> Refusal<'a> {
    /// Whether the payload ends within a field, or the length of a field is unknown: then the rest
    /// was not parsed.
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
    fn empty(tunnel: Layer) -> Self {
        Self::Faulty { error: Error::EmptyTunnel(tunnel), confirmed: true }
    }
}

/// The reason of a violation; its `Display` is the column `failure_reason` of analyzer.log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A fixed text.
    Text(&'static str),
    /// A field exceeds the data.
    OutOfBound {
        /// Record and field.
        field: &'static str,
        /// Number of bytes it needs; negative if a computed length is too short.
        need: i64,
        /// Number of bytes available.
        have: usize,
    },
    /// An information element of an unknown type without a length field.
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
