//! Header offsets, which depend on the link type and the preceding part of the expression.

use super::{At, Lower, Result};
use crate::bpf;
use crate::dlt::*;
use crate::ir::{Cond, Node, ValueId, and, not, or};

/// A missing offset.
pub(super) const NONE: u32 = u32::MAX;

/// An offset: a constant, and if it is variable a scratch word for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset {
    pub(super) constant: u32,
    pub(super) variable: bool,
    pub(super) word: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) outermost: u16,
    pub(super) previous: u16,
    pub(super) link: u16,
    pub(super) previous_header: Offset,
    pub(super) header: Offset,
    pub(super) kind: Offset,
    pub(super) payload: Offset,
    pub(super) network: u32,
    pub(super) network_no_snap: u32,
    pub(super) labels: u32,
    pub(super) inside_tunnel: bool,
}

impl State {
    pub(super) fn new(link: u16) -> Result<Self> {
        // Offsets of the type, of the payload, and of the network layer in the payload, with and
        // without SNAP.
        let (kind, payload, network, no_snap) = match link {
            ARCNET => (2, 6, 0, 0),
            ARCNET_LINUX => (4, 8, 0, 0),
            EN10MB => (12, 14, 0, 3),
            SLIP => (NONE, 16, 0, 0),
            SLIP_BSDOS => (NONE, 24, 0, 0),
            NULL | LOOP => (0, 4, 0, 0),
            ENC => (0, 12, 0, 0),
            PPP | PPP_PPPD | C_HDLC | HDLC | PPP_SERIAL => (2, 4, 0, 0),
            PPP_ETHER => (6, 8, 0, 0),
            PPP_BSDOS => (5, 24, 0, 0),
            FDDI => (13, 13, 8, 3),
            IEEE802 => (14, 14, 8, 3),
            PRISM_HEADER | IEEE802_11_RADIO_AVS | IEEE802_11_RADIO | IEEE802_11 | PPI => {
                (24, 0, 8, 3)
            }
            ATM_RFC1483 | ATM_CLIP => (0, 0, 8, 3),
            SUNATM => (4, 4, 8, 3),
            RAW | IPV4 | IPV6 | LTALK | FRELAY => (NONE, 0, 0, 0),
            MFR => (NONE, 0, 4, 0),
            LINUX_SLL => (14, 16, 0, 0),
            LINUX_SLL2 => (0, 20, 0, 0),
            IP_OVER_FC => (16, 16, 8, 3),
            APPLE_IP_OVER_IEEE1394 => (16, 18, 0, 0),
            SYMANTEC_FIREWALL => (6, 44, 0, 0),
            PFLOG => (0, 0, 0, 0),
            JUNIPER_MFR | JUNIPER_MLFR | JUNIPER_MLPPP | JUNIPER_PPP | JUNIPER_CHDLC
            | JUNIPER_FRELAY => (4, 4, 0, NONE),
            JUNIPER_ATM1 => (4, 4, 0, 10),
            JUNIPER_ATM2 => (8, 8, 0, 10),
            JUNIPER_PPPOE | JUNIPER_ETHER => (16, 14, 18, 21),
            JUNIPER_PPPOE_ATM => (4, 6, 0, NONE),
            JUNIPER_GGSN => (6, 12, 0, NONE),
            JUNIPER_ES => (6, NONE, NONE, NONE),
            JUNIPER_MONITOR => (12, 12, 0, NONE),
            JUNIPER_SERVICES => (12, NONE, NONE, NONE),
            JUNIPER_VP | JUNIPER_ST => (18, NONE, NONE, NONE),
            JUNIPER_ISM | JUNIPER_VS | JUNIPER_SRX_E2E | JUNIPER_FIBRECHANNEL
            | JUNIPER_ATM_CEMIC => (8, NONE, NONE, NONE),
            PFSYNC => (NONE, 4, 0, 0),
            IPNET => (1, 24, 0, NONE),
            NETANALYZER => (16, 18, 0, 3),
            NETANALYZER_TRANSPARENT => (24, 26, 0, 3),
            DSA_TAG_BRCM | DSA_TAG_DSA => (16, 18, 0, 3),
            EN3MB | AX25 | PRONET | CHAOS | REDBACK_SMARTEDGE => (NONE, NONE, NONE, NONE),
            C_HDLC..=HIGHEST => (NONE, NONE, NONE, NONE),
            other => return Err(format!("unknown data link type {other}")),
        };
        let fixed = |constant| Offset { constant, ..Offset::default() };
        let header = Offset {
            constant: match link {
                NETANALYZER => 4,
                NETANALYZER_TRANSPARENT => 12,
                _ => 0,
            },
            variable: matches!(link, PRISM_HEADER | IEEE802_11_RADIO_AVS | IEEE802_11_RADIO | PPI),
            word: None,
        };
        Ok(Self {
            outermost: link,
            previous: link,
            link,
            previous_header: header,
            header,
            kind: fixed(kind),
            payload: Offset { variable: is_wlan(link) || link == PFLOG, ..fixed(payload) },
            network,
            network_no_snap: no_snap,
            labels: 0,
            inside_tunnel: false,
        })
    }

    /// Enters a link layer inside the payload.
    pub(super) fn push(&mut self, link: u16, header: Offset) {
        self.previous = self.link;
        self.previous_header = self.header;
        self.link = link;
        self.header = header;
    }
}

pub(super) fn is_wlan(link: u16) -> bool {
    matches!(link, PRISM_HEADER | IEEE802_11_RADIO_AVS | IEEE802_11_RADIO | IEEE802_11 | PPI)
}

impl Lower<'_> {
    /// The variable part of the payload's offset.
    pub(super) fn payload_base(&mut self) -> Result<Option<ValueId>> {
        if !self.state.payload.variable {
            return Ok(None);
        }
        let word = match self.state.payload.word {
            Some(word) => word,
            None => self.variable()?,
        };
        self.state.payload.word = Some(word);
        Ok(Some(self.values.add(Node::Var(word))))
    }

    pub(super) fn header_base(&mut self) -> Result<Option<ValueId>> {
        if !self.state.header.variable {
            return Ok(None);
        }
        let word = match self.state.header.word {
            Some(word) => word,
            None => self.variable()?,
        };
        self.state.header.word = Some(word);
        Ok(Some(self.values.add(Node::Var(word))))
    }

    fn kind_base(&mut self) -> Option<ValueId> {
        let word = self.state.kind.word.filter(|_| self.state.kind.variable)?;
        Some(self.values.add(Node::Var(word)))
    }

    /// The base and the constant of offsets relative to a header.
    pub(super) fn base(&mut self, at: At) -> Result<(Option<ValueId>, u32)> {
        let payload = self.state.payload.constant;
        let network = payload.wrapping_add(self.state.network);
        Ok(match at {
            At::Packet => (None, 0),
            At::LinkHeader => (self.header_base()?, self.state.header.constant),
            At::PreviousLinkHeader => {
                let offset = self.state.previous_header;
                let base = offset.word.filter(|_| offset.variable);
                (base.map(|w| self.values.add(Node::Var(w))), offset.constant)
            }
            At::Llc => (self.payload_base()?, payload),
            At::PreviousMpls => (self.payload_base()?, network.wrapping_sub(4)),
            At::Payload => (self.payload_base()?, network),
            At::PayloadNoSnap => {
                (self.payload_base()?, payload.wrapping_add(self.state.network_no_snap))
            }
            At::LinkType => (self.kind_base(), self.state.kind.constant),
            At::Transport4 => (Some(self.header_length()?), network),
            At::Transport6 => (self.payload_base()?, network.wrapping_add(40)),
        })
    }

    /// The length of the IPv4 header, plus the variable bytes before it.
    pub(super) fn header_length(&mut self) -> Result<ValueId> {
        let network = self.state.payload.constant.wrapping_add(self.state.network);
        Ok(match self.payload_base()? {
            None => self.values.add(Node::HeaderLen(network)),
            Some(base) => {
                let byte = self.values.add(Node::Load(1, Some(base), network));
                let (mask, two) = (self.values.constant(15), self.values.constant(2));
                let words = self.values.binary(bpf::AND, byte, mask);
                let length = self.values.binary(bpf::LSH, words, two);
                self.values.binary(bpf::ADD, length, base)
            }
        })
    }

    pub(super) fn load(&mut self, at: At, offset: u32, size: u8) -> Result<ValueId> {
        let (base, constant) = self.base(at)?;
        Ok(self.values.add(Node::Load(size, base, constant.wrapping_add(offset))))
    }

    fn bit(&mut self, base: Option<ValueId>, offset: u32, size: u8, bits: u32) -> Cond {
        let value = self.values.add(Node::Load(size, base, offset));
        self.compare(bpf::JSET, value, bits)
    }

    /// Sets the variables that offsets of the outermost headers use, if any.
    pub(super) fn prologue(&mut self) -> Result<Vec<Cond>> {
        let outermost = State::new(self.state.outermost)?;
        // Inside a tunnel, the outer variables are those from before it.
        let (header, payload) = self.outer.unwrap_or((self.state.header, self.state.payload));
        let mut steps = Vec::new();
        let header_word = match (outermost.header.variable, header.word, payload.word) {
            (true, Some(word), _) => Some(word),
            (true, None, Some(_)) => Some(self.variable()?),
            _ => None,
        };
        let mut base = None;
        if let Some(word) = header_word {
            self.header_prologue(word, &mut steps);
            base = Some(self.values.add(Node::Var(word)));
        }
        if let Some((payload, kind)) = self.tag_words {
            let zero = self.values.constant(0);
            return Ok(vec![Cond::Set(payload, zero), Cond::Set(kind, zero)]);
        }
        let Some(word) = payload.word else {
            return Ok(steps);
        };
        if self.state.outermost == PFLOG {
            let length = self.values.add(Node::Load(1, None, 0));
            let (three, mask) = (self.values.constant(3), self.values.constant(!3));
            let up = self.values.binary(bpf::ADD, length, three);
            let padded = self.values.binary(bpf::AND, up, mask);
            steps.push(Cond::Set(word, padded));
        } else if is_wlan(self.state.outermost) {
            self.is_optimized = false;
            self.wlan_prologue(word, base, &mut steps);
        }
        Ok(steps)
    }

    fn header_prologue(&mut self, word: u8, steps: &mut Vec<Cond>) {
        match self.state.outermost {
            PRISM_HEADER => {
                self.is_optimized = false;
                let cookie = self.values.add(Node::Load(4, None, 0));
                let mask = self.values.constant(0xffff_f000);
                let cookie = self.values.binary(bpf::AND, cookie, mask);
                let is_avs = self.compare(bpf::JEQ, cookie, 0x8021_1000);
                let length = self.values.add(Node::Load(4, None, 4));
                let fixed = self.values.constant(144);
                let avs = and(is_avs, Cond::Set(word, length));
                steps.push(or(avs, Cond::Set(word, fixed)));
            }
            IEEE802_11_RADIO_AVS => {
                let length = self.values.add(Node::Load(4, None, 4));
                steps.push(Cond::Set(word, length));
            }
            _ => {
                let (high, low) = (
                    self.values.add(Node::Load(1, None, 3)),
                    self.values.add(Node::Load(1, None, 2)),
                );
                let eight = self.values.constant(8);
                let high = self.values.binary(bpf::LSH, high, eight);
                let length = self.values.binary(bpf::OR, low, high);
                steps.push(Cond::Set(word, length));
            }
        }
    }

    /// The header of data frames has two more bytes with QoS, and is padded if the radiotap flag
    /// says so.
    fn wlan_prologue(&mut self, word: u8, base: Option<ValueId>, steps: &mut Vec<Cond>) {
        let start = base.unwrap_or_else(|| self.values.constant(0));
        let (plain, two) = (self.values.constant(24), self.values.constant(2));
        let length = self.values.binary(bpf::ADD, start, plain);
        steps.push(Cond::Set(word, length));
        let data = self.bit(base, 0, 1, 0x08);
        let control = self.bit(base, 0, 1, 0x04);
        let qos = self.bit(base, 0, 1, 0x80);
        let var = self.values.add(Node::Var(word));
        let longer = self.values.binary(bpf::ADD, var, two);
        let mut inside = or(not(qos), Cond::Set(word, longer));
        if self.state.outermost == IEEE802_11_RADIO {
            let flags = self.bit(None, 4, 4, 0x0200_0000);
            let extended = self.bit(None, 4, 4, 0x0000_0080);
            let tsft = self.bit(None, 4, 4, 0x0100_0000);
            let pad_late = self.bit(None, 16, 1, 0x20);
            let pad_early = self.bit(None, 8, 1, 0x20);
            let padding = or(and(tsft.clone(), pad_late), and(not(tsft), pad_early));
            let (three, mask) = (self.values.constant(3), self.values.constant(!3));
            let up = self.values.binary(bpf::ADD, var, three);
            let padded = self.values.binary(bpf::AND, up, mask);
            let all = [flags, not(extended), padding, Cond::Set(word, padded)];
            inside = and(inside, all.into_iter().fold(Cond::True, and));
        }
        steps.push(and(and(data, not(control)), inside));
    }
}
