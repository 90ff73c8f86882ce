//! Ports, protocols over IP and chains of their headers.

use super::link::{IP, IP6, SAP_ISO};
use super::{At, Lower, Result, at_most, invalid};
use crate::bpf::{self, Insn};
use crate::dlt::{C_HDLC, FRELAY, HDLC};
use crate::ir::{Cond, and, not, or};

/// The number of a protocol over IP.
pub(super) fn number(proto: &str) -> u32 {
    match proto {
        "icmp" => 1,
        "igmp" => 2,
        "tcp" => 6,
        "igrp" => 9,
        "udp" => 17,
        "esp" => 50,
        "ah" => 51,
        "icmp6" => 58,
        "pim" => 103,
        "vrrp" | "carp" => 112,
        _ => 132,
    }
}

impl Lower<'_> {
    /// Ports from `low` to `high`, over one protocol or any.
    pub(super) fn ports(
        &mut self,
        range: (u32, u32),
        over: Option<u32>,
        dir: Option<&str>,
        of: &str,
    ) -> Result<Cond> {
        let (low, high) = (range.0.min(range.1), range.0.max(range.1));
        let mut both = Cond::False;
        for (version, at, proto_at) in [(IP6, At::Transport6, 6), (IP, At::Transport4, 9)] {
            let mut check = self.carries(version)?;
            let mut protocols = Cond::False;
            for n in over.map_or_else(|| vec![6, 17, 132], |n| vec![n]) {
                protocols = or(protocols, self.eq(At::Payload, proto_at, 1, n)?);
            }
            check = and(check, protocols);
            if version == IP {
                check = and(check, not(self.set(At::Payload, 6, 2, 0x1fff)?));
            }
            let mut side = |offset| -> Result<Cond> {
                if low == high {
                    return self.eq(at, offset, 2, low);
                }
                let above = self.test(bpf::JGE, at, offset, 2, low)?;
                Ok(and(above, self.le(at, offset, 2, high)?))
            };
            let ports = match dir {
                Some("src") => side(0)?,
                Some("dst") => side(2)?,
                Some("src and dst") => and(side(0)?, side(2)?),
                None | Some("src or dst") => or(side(0)?, side(2)?),
                Some(dir) => return Err(invalid(dir, of)),
            };
            both = or(both, and(check, ports));
        }
        Ok(both)
    }

    /// The protocols that a port's qualifier allows.
    pub(super) fn port_protocol(&self, proto: Option<&str>, of: &str) -> Result<Option<u32>> {
        match proto {
            None => Ok(None),
            Some(p @ ("tcp" | "udp" | "sctp")) => Ok(Some(number(p))),
            Some(other) => Err(invalid(other, of)),
        }
    }

    pub(super) fn protocol(&mut self, v: u32, proto: Option<&str>) -> Result<Cond> {
        match proto {
            None => {
                let ip = self.protocol(v, Some("ip"))?;
                Ok(or(ip, self.protocol(v, Some("ip6"))?))
            }
            Some("link") => self.carries(v),
            Some("ip") => {
                at_most("protocol number", v, 0xff)?;
                let ip = self.carries(IP)?;
                Ok(and(ip, self.eq(At::Payload, 9, 1, v)?))
            }
            Some("ip6") => {
                at_most("protocol number", v, 0xff)?;
                let ip6 = self.carries(IP6)?;
                let direct = self.eq(At::Payload, 6, 1, v)?;
                let fragment = self.eq(At::Payload, 6, 1, 44)?;
                let behind = self.eq(At::Payload, 40, 1, v)?;
                Ok(and(ip6, or(direct, and(fragment, behind))))
            }
            Some("iso") => {
                at_most("ISO protocol", v, 0xff)?;
                match self.state.link {
                    FRELAY => self.nlpid(v),
                    C_HDLC | HDLC => {
                        let iso = self.carries(SAP_ISO << 8 | SAP_ISO)?;
                        Ok(and(iso, self.eq(At::PayloadNoSnap, 1, 1, v)?))
                    }
                    _ => {
                        let iso = self.carries(SAP_ISO)?;
                        Ok(and(iso, self.eq(At::PayloadNoSnap, 0, 1, v)?))
                    }
                }
            }
            Some("isis") => {
                at_most("IS-IS PDU type", v, 0x1f)?;
                let isis = self.protocol(0x83, Some("iso"))?;
                let offset = if matches!(self.state.link, C_HDLC | HDLC) { 5 } else { 4 };
                Ok(and(isis, self.masked(At::PayloadNoSnap, offset, 1, v, 0x1f)?))
            }
            Some(other) => Err(invalid(other, "proto")),
        }
    }

    pub(super) fn abbreviation(&mut self, proto: &str) -> Result<Cond> {
        let pdus: &[u32] = match proto {
            "sctp" | "tcp" | "udp" | "ah" | "esp" | "pim" => {
                return self.protocol(number(proto), None);
            }
            "icmp" | "igmp" | "igrp" | "vrrp" | "carp" => {
                return self.protocol(number(proto), Some("ip"));
            }
            "icmp6" => return self.protocol(number(proto), Some("ip6")),
            "esis" => return self.protocol(0x82, Some("iso")),
            "isis" => return self.protocol(0x83, Some("iso")),
            "clnp" => return self.protocol(0x81, Some("iso")),
            "l1" => &[26, 24, 18, 15, 17],
            "l2" => &[27, 25, 20, 16, 17],
            "iih" => &[17, 15, 16],
            "lsp" => &[18, 20],
            "snp" => &[27, 26, 24, 25],
            "csnp" => &[24, 25],
            "psnp" => &[26, 27],
            _ => match crate::names::link_protocol(proto) {
                Some(number) => return self.carries(number),
                None => return Err(format!("'{proto}' cannot be used as an abbreviation")),
            },
        };
        let mut any = Cond::False;
        for pdu in pdus {
            any = or(any, self.protocol(*pdu, Some("isis"))?);
        }
        Ok(any)
    }

    /// A protocol anywhere in the chain of headers: the only loop in generated code.
    pub(super) fn protocol_chain(&mut self, v: u32, proto: Option<&str>) -> Result<Cond> {
        self.is_optimized = false;
        let v6 = match proto {
            None => {
                let ip = self.protocol_chain(v, Some("ip"))?;
                return Ok(or(ip, self.protocol_chain(v, Some("ip6"))?));
            }
            Some("ip") => false,
            Some("ip6") => true,
            Some(other) => return Err(invalid(other, "protochain")),
        };
        at_most("protocol number", v, 0xff)?;
        if self.state.payload.variable {
            return Err("'protochain' not supported with variable length headers".into());
        }
        let network = self.state.payload.constant.wrapping_add(self.state.network);
        let carries = self.carries(if v6 { IP6 } else { IP })?;
        let word = u32::from(self.variable()?);
        let jump = |op, k, jt, jf| Insn { code: bpf::JMP | op, jt, jf, k };
        let byte = bpf::LD | bpf::B;
        let mut code = vec![Insn::new(byte | bpf::ABS, network + if v6 { 6 } else { 9 })];
        code.push(match v6 {
            true => Insn::new(bpf::LDX | bpf::IMM, 40),
            false => Insn::new(bpf::LDX | bpf::MSH | bpf::B, network),
        });
        // Repeated for each header: A is its number, X its offset.
        let again = code.len();
        let advance = |code: &mut Vec<Insn>, plus: u32, times: u32, inner: u32| {
            code.push(Insn::new(byte | bpf::IND, network));
            code.push(Insn::new(bpf::ST, word));
            code.push(Insn::new(byte | bpf::IND, network + inner));
            code.push(Insn::new(bpf::ALU | bpf::ADD, plus));
            code.push(Insn::new(bpf::ALU | bpf::MUL, times));
            if times == 8 {
                code.push(Insn::new(bpf::ALU | bpf::ADD | bpf::X, 0));
            }
            code.push(Insn::new(bpf::MISC | bpf::TAX, 0));
            code.push(Insn::new(bpf::LD | bpf::MEM, word));
            let back = (again as i64 - code.len() as i64 - 1) as i32;
            code.push(Insn::new(bpf::JMP | bpf::JA, back.cast_unsigned()));
        };
        // The headers with lengths, then the authentication header, take nine and eight instructions.
        let options: u8 = if v6 { 13 } else { 0 };
        code.push(jump(bpf::JEQ, v, options + 10, 0));
        code.push(jump(bpf::JEQ, 59, options + 9, 0));
        if v6 {
            for (i, header) in [0, 60, 43].into_iter().enumerate() {
                code.push(jump(bpf::JEQ, header, 3 - i as u8, 0));
            }
            code.push(jump(bpf::JEQ, 44, 0, 9));
            advance(&mut code, 1, 8, 1);
        }
        // As in libpcap, X is the length alone here, without the header's offset.
        code.push(jump(bpf::JEQ, 51, 0, 8));
        advance(&mut code, 2, 4, 1);
        Ok(and(carries, Cond::Code(code, v)))
    }
}
