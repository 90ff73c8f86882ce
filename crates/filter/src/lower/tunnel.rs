//! Encapsulation: the rest of the expression refers to the inner headers.

use super::link::{IP, IP6};
use super::state::Offset;
use super::{At, Lower, Result, at_most};
use crate::bpf;
use crate::dlt::*;
use crate::ir::{Cond, Node, and, not, or};

impl Lower<'_> {
    pub(super) fn bottom_of_stack(&mut self) -> Result<Cond> {
        self.set(At::PreviousMpls, 2, 1, 1)
    }

    pub(super) fn vlan(&mut self, id: Option<u32>) -> Result<Cond> {
        if self.state.labels > 0 {
            return Err("no VLAN match after MPLS".into());
        }
        if !matches!(
            self.state.link,
            EN10MB
                | NETANALYZER
                | NETANALYZER_TRANSPARENT
                | DSA_TAG_BRCM
                | DSA_TAG_DSA
                | IEEE802_11
                | PRISM_HEADER
                | IEEE802_11_RADIO_AVS
                | IEEE802_11_RADIO
        ) {
            return Err(self.unsupported("vlan"));
        }
        let mut any = Cond::False;
        for kind in [0x8100, 0x88a8, 0x9100] {
            any = or(any, self.carries(kind)?);
        }
        if let Some(id) = id {
            at_most("VLAN tag", id, 0xfff)?;
        }
        if self.options.kernel && self.state.link == EN10MB && !self.tagged {
            return self.stripped_vlan(any, id);
        }
        if let Some(id) = id {
            any = and(any, self.masked(At::Payload, 0, 2, id, 0xfff)?);
        }
        self.state.payload.constant = self.state.payload.constant.wrapping_add(4);
        self.state.kind.constant = self.state.kind.constant.wrapping_add(4);
        Ok(any)
    }

    /// The Linux kernel strips the outermost tag from the frame and reports it as metadata: then
    /// nothing is shifted.
    fn stripped_vlan(&mut self, in_frame: Cond, id: Option<u32>) -> Result<Cond> {
        const TAG: u32 = bpf::KERNEL + 44;
        const TAG_PRESENT: u32 = bpf::KERNEL + 48;
        let inside = match id {
            Some(id) => Some((
                self.masked(At::Packet, TAG, 2, id, 0xfff)?,
                self.masked(At::Payload, 0, 2, id, 0xfff)?,
            )),
            None => None,
        };
        let used = self.tag_words;
        let (payload, kind) = match used {
            Some(words) => words,
            None => (self.variable()?, self.variable()?),
        };
        self.tag_words = Some((payload, kind));
        self.tagged = true;
        self.state.payload.variable = true;
        self.state.payload.word = Some(payload);
        self.state.kind.variable = true;
        self.state.kind.word = Some(kind);
        let four = self.values.constant(4);
        let mut here = Cond::True;
        for word in [payload, kind] {
            let var = self.values.add(Node::Var(word));
            let sum = self.values.binary(bpf::ADD, var, four);
            here = and(here, Cond::Set(word, sum));
        }
        let stripped = self.eq(At::Packet, TAG_PRESENT, 1, 1)?;
        let mut any = or(stripped.clone(), and(here, in_frame));
        if used.is_some() {
            // An earlier alternative may have set them.
            let zero = self.values.constant(0);
            let clear = and(Cond::Set(payload, zero), Cond::Set(kind, zero));
            any = and(clear, any);
        }
        Ok(match inside {
            None => any,
            Some((told, read)) => {
                and(any, or(and(stripped.clone(), told), and(not(stripped), read)))
            }
        })
    }

    pub(super) fn mpls(&mut self, label: Option<u32>) -> Result<Cond> {
        let mut here = if self.state.labels > 0 {
            not(self.bottom_of_stack()?)
        } else {
            match self.state.link {
                C_HDLC
                | HDLC
                | EN10MB
                | NETANALYZER
                | NETANALYZER_TRANSPARENT
                | DSA_TAG_BRCM
                | DSA_TAG_DSA => self.carries(0x8847)?,
                PPP => self.carries(0x281)?,
                _ => return Err(self.unsupported("mpls")),
            }
        };
        if let Some(label) = label {
            at_most("MPLS label", label, 0xf_ffff)?;
            here = and(here, self.masked(At::Payload, 0, 4, label << 12, 0xffff_f000)?);
        }
        self.state.network = self.state.network.wrapping_add(4);
        self.state.network_no_snap = self.state.network_no_snap.wrapping_add(4);
        self.state.labels += 1;
        Ok(here)
    }

    pub(super) fn pppoes(&mut self, session: Option<u32>) -> Result<Cond> {
        let mut here = self.carries(0x8864)?;
        if let Some(session) = session {
            at_most("PPPoE session number", session, 0xffff)?;
            here = and(here, self.eq(At::Payload, 2, 2, session)?);
        }
        self.payload_base()?;
        self.outer.get_or_insert((self.state.header, self.state.payload));
        let payload = self.state.payload;
        let constant = payload.constant.wrapping_add(self.state.network).wrapping_add(6);
        let header = Offset { constant, ..payload };
        self.state.push(PPP, header);
        self.state.kind = header;
        self.state.payload.constant = constant.wrapping_add(2);
        self.state.network = 0;
        self.state.network_no_snap = 0;
        Ok(here)
    }

    /// `geneve` and `vxlan`: Ethernet over UDP, at an offset computed for each packet.
    pub(super) fn over_udp(&mut self, geneve: bool, id: Option<u32>) -> Result<Cond> {
        let (port, flags, mask) = if geneve { (6081, 0, 0xc0) } else { (4789, 8, u32::MAX) };
        self.is_optimized &= !geneve;
        let transport = self.variable()?;
        let mut either = Cond::False;
        for (version, at) in [(IP, At::Transport4), (IP6, At::Transport6)] {
            let carries = self.carries(version)?;
            let v4 = version == IP;
            let mut here = and(carries, self.eq(At::Payload, if v4 { 9 } else { 6 }, 1, 17)?);
            if v4 {
                here = and(here, not(self.set(At::Payload, 6, 2, 0x1fff)?));
            }
            here = and(here, self.eq(at, 2, 2, port)?);
            here = and(here, self.masked(at, 8, 1, flags, mask)?);
            if let Some(id) = id {
                at_most(if geneve { "Geneve VNI" } else { "VXLAN VNI" }, id, 0xff_ffff)?;
                here = and(here, self.masked(at, 12, 4, id << 8, 0xffff_ff00)?);
            }
            let begin = if v4 {
                self.header_length()?
            } else {
                let header = self.values.constant(40);
                match self.payload_base()? {
                    Some(base) => self.values.binary(bpf::ADD, base, header),
                    None => header,
                }
            };
            either = or(either, and(here, Cond::Set(transport, begin)));
        }
        self.outer.get_or_insert((self.state.header, self.state.payload));
        let network = self.state.payload.constant.wrapping_add(self.state.network);
        let inner = network.wrapping_add(8);
        let [header, kind, payload] = [self.variable()?, self.variable()?, self.variable()?];
        let var = self.values.add(Node::Var(transport));
        let start = |l: &mut Self, to: u8, from, plus: u32| {
            let plus = l.values.constant(plus);
            let sum = l.values.binary(bpf::ADD, from, plus);
            Cond::Set(to, sum)
        };
        let offsets = if geneve {
            let options = self.values.add(Node::Load(1, Some(var), inner));
            let (mask, four) = (self.values.constant(0x3f), self.values.constant(4));
            let options = self.values.binary(bpf::AND, options, mask);
            let options = self.values.binary(bpf::MUL, options, four);
            let begin = self.values.binary(bpf::ADD, options, var);
            let header_is = start(self, header, begin, inner.wrapping_add(8));
            let proto = self.values.add(Node::Load(2, Some(var), inner.wrapping_add(2)));
            let ethernet = self.compare(bpf::JEQ, proto, 0x6558);
            let header_var = self.values.add(Node::Var(header));
            let kind_in = start(self, kind, header_var, 12);
            let payload_in = start(self, payload, header_var, 14);
            let kind_out = start(self, kind, var, inner.wrapping_add(2));
            let plain = and(kind_out, Cond::Set(payload, header_var));
            and(header_is, or(and(ethernet, and(kind_in, payload_in)), plain))
        } else {
            let header_is = start(self, header, var, inner.wrapping_add(8));
            let kind_is = start(self, kind, var, inner.wrapping_add(20));
            and(and(header_is, kind_is), start(self, payload, var, inner.wrapping_add(22)))
        };
        let at = |word| Offset { constant: 0, variable: true, word: Some(word) };
        self.state.push(EN10MB, at(header));
        self.state.kind = at(kind);
        self.state.payload = at(payload);
        self.state.network = 0;
        self.state.inside_tunnel = true;
        Ok(and(either, offsets))
    }
}
