//! Tests of the protocol that the link layer carries.

use super::{At, Lower, Result, at_most};
use crate::bpf;
use crate::dlt::*;
use crate::ir::{Cond, Node, and, not, or};

pub(super) const IP: u32 = 0x800;
pub(super) const ARP: u32 = 0x806;
pub(super) const RARP: u32 = 0x8035;
pub(super) const IP6: u32 = 0x86dd;
const ATALK: u32 = 0x809b;
const AARP: u32 = 0x80f3;
const SAP_IP: u32 = 0x06;
pub(super) const SAP_ISO: u32 = 0xfe;
const SAP_IPX: u32 = 0xe0;
const SAP_NETBEUI: u32 = 0xf0;
/// The highest value of a type field that is a length.
const MTU: u32 = 1500;

impl Lower<'_> {
    pub(super) fn carries(&mut self, proto: u32) -> Result<Cond> {
        if self.state.labels > 0 {
            let version = match proto {
                IP => 0x40,
                IP6 => 0x60,
                _ => return Err("unsupported protocol over mpls".into()),
            };
            let bottom = self.bottom_of_stack()?;
            return Ok(and(bottom, self.masked(At::Payload, 0, 1, version, 0xf0)?));
        }
        match self.state.link {
            EN10MB | NETANALYZER | NETANALYZER_TRANSPARENT | DSA_TAG_BRCM | DSA_TAG_DSA => {
                let before = if self.state.inside_tunnel {
                    Cond::True
                } else {
                    self.previous_header_check()?
                };
                Ok(and(before, self.ether(proto)?))
            }
            C_HDLC | HDLC => {
                at_most("HDLC protocol", proto, 0xffff)?;
                self.eq(At::LinkType, 0, 2, if proto == SAP_ISO { 0xfefe } else { proto })
            }
            IEEE802_11 | PRISM_HEADER | IEEE802_11_RADIO_AVS | IEEE802_11_RADIO | PPI => {
                let data = self.masked(At::LinkHeader, 0, 1, 0x08, 0x0c)?;
                Ok(and(data, self.llc_carries(proto)?))
            }
            FDDI | IEEE802 | ATM_RFC1483 | ATM_CLIP | IP_OVER_FC => self.llc_carries(proto),
            SUNATM => {
                let llc = self.masked(At::LinkHeader, 0, 1, 2, 0x0f)?;
                Ok(and(llc, self.llc_carries(proto)?))
            }
            LINUX_SLL => self.cooked(proto),
            SLIP | SLIP_BSDOS | RAW => match proto {
                IP => self.masked(At::LinkHeader, 0, 1, 0x40, 0xf0),
                IP6 => self.masked(At::LinkHeader, 0, 1, 0x60, 0xf0),
                _ => Ok(Cond::False),
            },
            IPV4 => Ok(if proto == IP { Cond::True } else { Cond::False }),
            IPV6 => Ok(if proto == IP6 { Cond::True } else { Cond::False }),
            LTALK => Ok(if proto == ATALK { Cond::True } else { Cond::False }),
            PPP_BSDOS if proto == IP => {
                let mut any = Cond::False;
                // Uncompressed IP, and the two forms of Van Jacobson compression.
                for kind in [0x21, 0x2d, 0x2f] {
                    any = or(any, self.eq(At::LinkType, 0, 2, kind)?);
                }
                Ok(any)
            }
            PPP | PPP_PPPD | PPP_SERIAL | PPP_ETHER | PPP_BSDOS => {
                let kind = ppp(proto)?;
                self.eq(At::LinkType, 0, 2, kind)
            }
            NULL | LOOP | ENC => self.loopback(proto),
            PFLOG => self.family(proto, 1, 1, false),
            ARCNET | ARCNET_LINUX => {
                let kind = match proto {
                    IP => 212,
                    ARP => 213,
                    RARP => 214,
                    ATALK => 221,
                    IP6 => 196,
                    _ => return Ok(Cond::False),
                };
                self.eq(At::LinkType, 0, 1, kind)
            }
            FRELAY => match proto {
                IP => self.nlpid(0xcc),
                IP6 => self.nlpid(0x8e),
                SAP_ISO => {
                    let mut any = Cond::False;
                    for id in [0x81, 0x82, 0x83] {
                        any = or(any, self.nlpid(id)?);
                    }
                    Ok(any)
                }
                _ => Ok(Cond::False),
            },
            link if juniper(link) => self.masked(At::LinkHeader, 0, 4, 0x4d47_4300, 0xffff_ff00),
            IPNET => match proto {
                IP => self.eq(At::LinkType, 0, 1, 2),
                IP6 => self.eq(At::LinkType, 0, 1, 26),
                _ => Ok(Cond::False),
            },
            link if link != MFR && self.state.kind.constant != super::state::NONE => {
                let _ = link;
                at_most("EtherType", proto, 0xffff)?;
                self.eq(At::LinkType, 0, 2, proto)
            }
            link => {
                Err(format!("link-layer type filtering not implemented for {}", described(link)))
            }
        }
    }

    /// The condition that an encapsulated header exists.
    pub(super) fn previous_header_check(&mut self) -> Result<Cond> {
        if self.state.inside_tunnel {
            let header = self.header_base()?;
            let payload = self.payload_base()?;
            return Ok(match header.zip(payload) {
                Some((h, p)) => not(self.compare_values(bpf::JEQ, h, p)),
                None => Cond::True,
            });
        }
        if self.state.previous == SUNATM {
            return self.eq(At::PreviousLinkHeader, 4, 2, 0xff00).map(not);
        }
        Ok(Cond::True)
    }

    fn ether(&mut self, proto: u32) -> Result<Cond> {
        match proto {
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let length = self.le(At::LinkType, 0, 2, MTU)?;
                Ok(and(length, self.eq(At::Llc, 0, 2, proto << 8 | proto)?))
            }
            SAP_IPX => {
                let kind = self.eq(At::LinkType, 0, 2, 0x8137)?;
                let length = self.le(At::LinkType, 0, 2, MTU)?;
                let snap = self.snap(0, 0x8137)?;
                let sap = self.eq(At::Llc, 0, 1, SAP_IPX)?;
                let raw = self.eq(At::Llc, 0, 2, 0xffff)?;
                Ok(or(kind, and(length, or(or(snap, sap), raw))))
            }
            ATALK | AARP => {
                let kind = self.eq(At::LinkType, 0, 2, proto)?;
                let length = self.le(At::LinkType, 0, 2, MTU)?;
                let org = if proto == ATALK { 0x08_0007 } else { 0 };
                Ok(or(kind, and(length, self.snap(org, proto)?)))
            }
            0..=MTU => {
                at_most("LLC DSAP", proto, 0xff)?;
                let length = self.le(At::LinkType, 0, 2, MTU)?;
                Ok(and(length, self.eq(At::LinkType, 2, 1, proto)?))
            }
            _ => {
                at_most("EtherType", proto, 0xffff)?;
                self.eq(At::LinkType, 0, 2, proto)
            }
        }
    }

    /// Linux cooked capture has its own numbers for LLC and for raw 802.3.
    fn cooked(&mut self, proto: u32) -> Result<Cond> {
        const RAW_8023: u32 = 1;
        const LLC: u32 = 4;
        match proto {
            SAP_ISO | SAP_IP | SAP_NETBEUI => {
                let llc = self.eq(At::LinkType, 0, 2, LLC)?;
                Ok(and(llc, self.eq(At::Llc, 0, 2, proto << 8 | proto)?))
            }
            SAP_IPX => {
                let kind = self.eq(At::LinkType, 0, 2, 0x8137)?;
                let raw = self.eq(At::LinkType, 0, 2, RAW_8023)?;
                let llc = self.eq(At::LinkType, 0, 2, LLC)?;
                let sap = self.eq(At::Llc, 0, 1, SAP_IPX)?;
                let snap = self.snap(0, 0x8137)?;
                Ok(or(or(kind, raw), and(llc, or(sap, snap))))
            }
            ATALK | AARP => {
                let kind = self.eq(At::LinkType, 0, 2, proto)?;
                let llc = self.eq(At::LinkType, 0, 2, LLC)?;
                let org = if proto == ATALK { 0x08_0007 } else { 0 };
                Ok(or(kind, and(llc, self.snap(org, proto)?)))
            }
            0..=MTU => {
                at_most("LLC DSAP", proto, 0xff)?;
                let llc = self.eq(At::LinkType, 0, 2, LLC)?;
                let offset = self.state.payload.constant;
                Ok(and(llc, self.eq(At::LinkHeader, offset, 1, proto)?))
            }
            _ => {
                at_most("EtherType", proto, 0xffff)?;
                self.eq(At::LinkType, 0, 2, proto)
            }
        }
    }

    fn llc_carries(&mut self, proto: u32) -> Result<Cond> {
        match proto {
            SAP_IP | SAP_ISO | SAP_NETBEUI => self.eq(At::Llc, 0, 2, proto << 8 | proto),
            SAP_IPX => self.eq(At::Llc, 0, 1, SAP_IPX),
            ATALK => self.snap(0x08_0007, ATALK),
            0..=MTU => {
                at_most("LLC DSAP", proto, 0xff)?;
                self.eq(At::Llc, 0, 1, proto)
            }
            _ => {
                at_most("EtherType", proto, 0xffff)?;
                self.eq(At::Llc, 6, 2, proto)
            }
        }
    }

    fn snap(&mut self, org: u32, kind: u32) -> Result<Cond> {
        let ([_, a, b, c], [_, _, d, e]) = (org.to_be_bytes(), kind.to_be_bytes());
        self.bytes(At::Llc, 0, &[0xaa, 0xaa, 3, a, b, c, d, e])
    }

    pub(super) fn nlpid(&mut self, id: u32) -> Result<Cond> {
        self.eq(At::LinkHeader, 2, 2, 0x300 | id)
    }

    /// Address families of the various systems. The system that wrote a capture file is unknown.
    fn family(&mut self, proto: u32, offset: u32, size: u8, swapped: bool) -> Result<Cond> {
        let numbers: &[u32] = match (proto, self.options.offline) {
            (IP, _) => &[2],
            (IP6, true) => &[30, 24, 28],
            (IP6, false) => &[10],
            _ => return Ok(Cond::False),
        };
        let mut any = Cond::False;
        for n in numbers {
            let n = if swapped { n.swap_bytes() } else { *n };
            any = or(any, self.eq(At::LinkHeader, offset, size, n)?);
        }
        Ok(any)
    }

    fn loopback(&mut self, proto: u32) -> Result<Cond> {
        match (self.options.offline, self.state.link) {
            (true, NULL | ENC) => {
                let first = self.family(proto, 0, 4, false)?;
                Ok(or(first, self.family(proto, 0, 4, true)?))
            }
            (false, NULL | ENC) => self.family(proto, 0, 4, true),
            _ => self.family(proto, 0, 4, false),
        }
    }

    pub(super) fn length(&mut self, op: u16, n: u32) -> Cond {
        let len = self.values.add(Node::Len);
        self.compare(op, len, n)
    }
}

pub(super) fn juniper(link: u16) -> bool {
    matches!(
        link,
        JUNIPER_MFR
            | JUNIPER_MLFR
            | JUNIPER_MLPPP
            | JUNIPER_ATM1
            | JUNIPER_ATM2
            | JUNIPER_PPPOE
            | JUNIPER_PPPOE_ATM
            | JUNIPER_GGSN
            | JUNIPER_ES
            | JUNIPER_MONITOR
            | JUNIPER_SERVICES
            | JUNIPER_ETHER
            | JUNIPER_PPP
            | JUNIPER_FRELAY
            | JUNIPER_CHDLC
            | JUNIPER_VP
            | JUNIPER_ST
            | JUNIPER_ISM
            | JUNIPER_VS
            | JUNIPER_SRX_E2E
            | JUNIPER_FIBRECHANNEL
            | JUNIPER_ATM_CEMIC
    )
}

/// The PPP number of a protocol (RFC 1661).
fn ppp(proto: u32) -> Result<u32> {
    Ok(match proto {
        IP => 0x21,
        IP6 => 0x57,
        0x6003 => 0x27,
        ATALK => 0x29,
        0x600 => 0x25,
        SAP_ISO => 0x23,
        0x42 => 0x31,
        SAP_IPX => 0x2b,
        other => {
            at_most("PPP protocol", other, 0xffff)?;
            other
        }
    })
}
