//! Keywords: direction, pflog, ATM, SS7 and others.

use super::arith::operation;
use super::state::Offset;
use super::wlan::among;
use super::{At, Lower, Result, at_most};
use crate::ast::{Relation, Value};
use crate::bpf::{self, KERNEL};
use crate::dlt::*;
use crate::ir::{Cond, and, not, or};

impl Lower<'_> {
    pub(super) fn tagged(&mut self, key: &'static str, number: Option<u32>) -> Result<Cond> {
        let n = number.unwrap_or(0);
        match key {
            "vlan" => self.vlan(number),
            "mpls" => self.mpls(number),
            "pppoes" => self.pppoes(number),
            "geneve" => self.over_udp(true, number),
            "vxlan" => self.over_udp(false, number),
            "ifindex" if self.state.link == LINUX_SLL2 => self.eq(At::LinkHeader, 4, 4, n),
            "ifindex" => {
                self.needs_kernel(key)?;
                self.eq(At::Packet, KERNEL + 8, 4, n)
            }
            _ => {
                self.needs_pflog(key)?;
                self.eq(At::LinkHeader, if key == "rnr" { 36 } else { 40 }, 4, n)
            }
        }
    }

    fn needs_kernel(&self, key: &str) -> Result<()> {
        if self.options.kernel {
            return Ok(());
        }
        let link = described(self.state.link);
        Err(format!("not a live capture, '{key}' not supported on {link}"))
    }

    fn needs_pflog(&self, key: &str) -> Result<()> {
        if self.state.link == PFLOG {
            return Ok(());
        }
        Err(format!("'{key}' supported only on PFLOG linktype"))
    }

    pub(super) fn pflog(&mut self, key: &'static str, value: &Value) -> Result<Cond> {
        const REASONS: &[(&str, u32)] = &[
            ("match", 0),
            ("bad-offset", 1),
            ("fragment", 2),
            ("short", 3),
            ("normalize", 4),
            ("memory", 5),
            ("bad-timestamp", 6),
            ("congestion", 7),
            ("ip-option", 8),
            ("proto-cksum", 9),
            ("state-mismatch", 10),
            ("state-insert", 11),
            ("state-limit", 12),
            ("src-limit", 13),
            ("synproxy", 14),
        ];
        const ACTIONS: &[(&str, u32)] = &[
            ("pass", 0),
            ("accept", 0),
            ("drop", 1),
            ("block", 1),
            ("scrub", 2),
            ("noscrub", 3),
            ("nat", 4),
            ("nonat", 5),
            ("binat", 6),
            ("nobinat", 7),
            ("rdr", 8),
            ("nordr", 9),
            ("synproxy-drop", 10),
        ];
        let named = |table, what| match value {
            Value::Number(n) => Ok(*n),
            Value::Name(name) => {
                among(table, name).ok_or_else(|| format!("unknown PF {what} \"{name}\""))
            }
        };
        match (key, value) {
            ("reason", _) => {
                let n = named(REASONS, "reason")?;
                self.needs_pflog(key)?;
                self.eq(At::LinkHeader, 3, 1, n)
            }
            ("action", _) => {
                let n = named(ACTIONS, "action")?;
                self.needs_pflog(key)?;
                self.eq(At::LinkHeader, 2, 1, n)
            }
            (_, Value::Name(name)) => {
                let (key, what, offset) = match key {
                    "rset" => ("ruleset", "ruleset names", 20),
                    _ => ("ifname", "ifname interface names", 4),
                };
                self.needs_pflog(key)?;
                if name.len() > 15 {
                    return Err(format!("{what} can only be 15 characters"));
                }
                self.bytes(At::LinkHeader, offset, name.as_bytes())
            }
            _ => Err("syntax error in filter expression".into()),
        }
    }

    pub(super) fn key(&mut self, key: &'static str) -> Result<Cond> {
        match key {
            "inbound" | "outbound" => self.direction(key),
            "pppoed" => self.carries(0x8863),
            "fisu" | "lssu" | "msu" | "hfisu" | "hlssu" | "hmsu" => self.signal_unit(key),
            _ => self.atm(key),
        }
    }

    fn direction(&mut self, key: &str) -> Result<Cond> {
        let out = key == "outbound";
        let at = At::LinkHeader;
        let sent = match self.state.link {
            SLIP | PPP_PPPD => return self.eq(at, 0, 1, u32::from(out)),
            IPNET => return self.eq(at, 2, 2, if out { 1 } else { 2 }),
            PFLOG => return self.eq(at, 60, 1, if out { 2 } else { 1 }),
            link if super::link::juniper(link) => return self.masked(at, 3, 1, u32::from(!out), 1),
            DSA_TAG_BRCM => return self.masked(at, 12, 1, if out { 0x20 } else { 0 }, 0xe0),
            DSA_TAG_DSA if out => return self.masked(at, 12, 1, 0x40, 0xc0),
            DSA_TAG_DSA => return self.masked(at, 12, 1, 0, 0x40),
            LINUX_SLL => self.eq(at, 0, 2, 4)?,
            LINUX_SLL2 => self.eq(at, 10, 1, 4)?,
            _ => {
                self.needs_kernel(key)?;
                self.eq(At::Packet, KERNEL + 4, 2, 4)?
            }
        };
        Ok(if out { sent } else { not(sent) })
    }

    pub(super) fn broadcast(&mut self, proto: Option<&str>) -> Result<Cond> {
        match proto {
            None | Some("link") => match self.state.link {
                ARCNET | ARCNET_LINUX => self.mac8(0, Some("dst"), "broadcast"),
                BACNET_MS_TP => self.mac8(0xff, Some("dst"), "broadcast"),
                _ => self.mac48(&[0xff; 6], Some("dst"), "broadcast"),
            },
            Some("ip") => {
                // libpcap's PCAP_NETMASK_UNKNOWN is the mask of all ones.
                let Some(netmask) = self.options.netmask.filter(|mask| *mask != u32::MAX) else {
                    return Err("netmask not known, so 'ip broadcast' not supported".into());
                };
                let ip = self.carries(super::link::IP)?;
                let zeros = self.masked(At::Payload, 16, 4, 0, !netmask)?;
                let ones = self.masked(At::Payload, 16, 4, !netmask, !netmask)?;
                Ok(and(ip, or(zeros, ones)))
            }
            Some(other) => Err(super::invalid(other, "broadcast")),
        }
    }

    fn needs_atm(&self, key: &str) -> Result<()> {
        if self.state.link == SUNATM {
            return Ok(());
        }
        Err(format!("'{key}' supported only on SUNATM"))
    }

    fn atm(&mut self, key: &str) -> Result<Cond> {
        self.needs_atm(key)?;
        let circuits: &[u32] = match key {
            "lane" => {
                let lane = self.masked(At::LinkHeader, 0, 1, 1, 0x0f)?;
                self.outer.get_or_insert((self.state.header, self.state.payload));
                let fixed = |constant| Offset { constant, ..Offset::default() };
                self.state.push(EN10MB, fixed(6));
                self.state.kind = fixed(18);
                self.state.payload = fixed(20);
                self.state.network = 0;
                self.state.network_no_snap = 3;
                return Ok(lane);
            }
            "metac" | "metaconnect" => &[1],
            "bcc" => &[2],
            "oamf4sc" => &[3],
            "oamf4ec" => &[4],
            "sc" | "connectmsg" => &[5],
            "ilmic" => &[16],
            _ => &[3, 4],
        };
        let path = self.eq(At::LinkHeader, 1, 1, 0)?;
        let mut any = Cond::False;
        for circuit in circuits {
            any = or(any, self.eq(At::LinkHeader, 2, 2, *circuit)?);
        }
        let messages: &[u32] = match key {
            "connectmsg" => &[0x05, 0x02, 0x07, 0x0f, 0x4d, 0x5a],
            "metaconnect" => &[0x05, 0x02, 0x07, 0x4d, 0x5a],
            _ => return Ok(and(path, any)),
        };
        let mut message = Cond::False;
        for kind in messages {
            message = or(message, self.eq(At::LinkHeader, 9, 1, *kind)?);
        }
        Ok(and(and(path, any), message))
    }

    /// Offset of the length indicator of MTP2; its other fields follow.
    fn ss7(&self, key: &str) -> Result<u32> {
        match self.state.link {
            MTP2 => Ok(2),
            MTP2_WITH_PHDR => Ok(6),
            ERF => Ok(22),
            _ => Err(format!("'{key}' supported only on SS7")),
        }
    }

    fn signal_unit(&mut self, key: &str) -> Result<Cond> {
        let li = self.ss7(key)?;
        let (offset, size, mask, two) =
            if key.starts_with('h') { (li + 2, 2, 0xff80, 0x100) } else { (li, 1, 0x3f, 2) };
        match key.trim_start_matches('h') {
            "fisu" => self.masked(At::Packet, offset, size, 0, mask),
            "lssu" => {
                let some = self.masked_op(bpf::JGT, At::Packet, offset, size, 0, mask)?;
                let more = self.masked_op(bpf::JGT, At::Packet, offset, size, two, mask)?;
                Ok(and(some, not(more)))
            }
            _ => self.masked_op(bpf::JGT, At::Packet, offset, size, two, mask),
        }
    }

    pub(super) fn field(&mut self, key: &str, relation: Relation, values: &[u32]) -> Result<Cond> {
        let (op, negated) = operation(relation);
        let mut any = Cond::False;
        for v in values {
            let (at, offset, size, mask, k) = match key {
                "vpi" | "vci" => {
                    self.needs_atm(key)?;
                    let (offset, size, most) =
                        if key == "vpi" { (1, 1, 0xff) } else { (2, 2, 0xffff) };
                    at_most(&key.to_uppercase(), *v, most)?;
                    (At::LinkHeader, offset, size, u32::MAX, *v)
                }
                _ => {
                    let li = self.ss7(key)? + if key.starts_with('h') { 3 } else { 0 };
                    let (offset, size, most, mask, k) = match key.trim_start_matches('h') {
                        "sio" => (1, 1, 0xff, u32::MAX, *v),
                        "opc" => (2, 4, 0x3fff, 0x00c0_ff0f, (v << 14).swap_bytes()),
                        "dpc" => (2, 2, 0x3fff, 0xff3f, u32::from((*v as u16).swap_bytes())),
                        _ => (5, 1, 0x0f, 0xf0, v << 4),
                    };
                    at_most(key, *v, most)?;
                    (At::Packet, li + offset, size, mask, k)
                }
            };
            let test = self.masked_op(op, at, offset, size, k, mask)?;
            any = or(any, if negated { not(test) } else { test });
        }
        Ok(any)
    }
}
