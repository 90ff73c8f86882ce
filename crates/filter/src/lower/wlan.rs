//! 802.11 and LLC.

use super::state::is_wlan;
use super::{At, Lower, Result};
use crate::ast::Value;
use crate::dlt::*;
use crate::ir::{Cond, and, not, or};

const MANAGEMENT: &[(&str, u32)] = &[
    ("assoc-req", 0x00),
    ("assocreq", 0x00),
    ("assoc-resp", 0x10),
    ("assocresp", 0x10),
    ("reassoc-req", 0x20),
    ("reassocreq", 0x20),
    ("reassoc-resp", 0x30),
    ("reassocresp", 0x30),
    ("probe-req", 0x40),
    ("probereq", 0x40),
    ("probe-resp", 0x50),
    ("proberesp", 0x50),
    ("beacon", 0x80),
    ("atim", 0x90),
    ("disassoc", 0xa0),
    ("disassociation", 0xa0),
    ("auth", 0xb0),
    ("authentication", 0xb0),
    ("deauth", 0xc0),
    ("deauthentication", 0xc0),
];
const CONTROL: &[(&str, u32)] = &[
    ("bar", 0x80),
    ("ba", 0x90),
    ("ps-poll", 0xa0),
    ("rts", 0xb0),
    ("cts", 0xc0),
    ("ack", 0xd0),
    ("cf-end", 0xe0),
    ("cf-end-ack", 0xf0),
];
const DATA: &[(&str, u32)] = &[
    ("data", 0x00),
    ("data-cf-ack", 0x10),
    ("data-cf-poll", 0x20),
    ("data-cf-ack-poll", 0x30),
    ("null", 0x40),
    ("cf-ack", 0x50),
    ("cf-poll", 0x60),
    ("cf-ack-poll", 0x70),
    ("qos-data", 0x80),
    ("qos-data-cf-ack", 0x90),
    ("qos-data-cf-poll", 0xa0),
    ("qos-data-cf-ack-poll", 0xb0),
    ("qos", 0xc0),
    ("qos-cf-poll", 0xe0),
    ("qos-cf-ack-poll", 0xf0),
];
const TYPES: &[(&str, u32)] =
    &[("mgt", 0), ("management", 0), ("ctl", 4), ("control", 4), ("data", 8)];
const SUBTYPES: &[(u32, &[(&str, u32)])] = &[(0, MANAGEMENT), (4, CONTROL), (8, DATA)];

pub(super) fn among(table: &[(&str, u32)], name: &str) -> Option<u32> {
    table.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| *v)
}

impl Lower<'_> {
    pub(super) fn wlan_type(&mut self, of: Option<&Value>, sub: Option<&Value>) -> Result<Cond> {
        let kind = match of {
            Some(Value::Number(n)) if n & !0x0c != 0 => {
                return Err(format!("invalid 802.11 type value 0x{n:02x}"));
            }
            Some(Value::Number(n)) => Some(*n),
            Some(Value::Name(name)) => match among(TYPES, name) {
                Some(n) => Some(n),
                None => return Err(format!("unknown 802.11 type name \"{name}\"")),
            },
            None => None,
        };
        let (value, mask) = match (kind, sub) {
            (Some(kind), None) => (kind, 0x0c),
            (_, Some(Value::Number(n))) if n & !0xf0 != 0 => {
                return Err(format!("invalid 802.11 subtype value 0x{n:02x}"));
            }
            (kind, Some(Value::Number(n))) => (kind.unwrap_or(0) | n, 0xfc),
            (Some(kind), Some(Value::Name(name))) => {
                let table = SUBTYPES.iter().find(|(of, _)| *of == kind);
                let Some((_, table)) = table else {
                    return Err("unknown 802.11 type".into());
                };
                match among(table, name) {
                    Some(n) => (kind | n, 0xfc),
                    None => return Err(format!("unknown 802.11 subtype name \"{name}\"")),
                }
            }
            (None, Some(Value::Name(name))) => {
                let found = SUBTYPES.iter().find_map(|(of, t)| among(t, name).map(|n| n | of));
                match found {
                    Some(n) => (n, 0xfc),
                    None => return Err("unknown 802.11 type name".into()),
                }
            }
            (None, None) => (0, 0),
        };
        if !is_wlan(self.state.link) {
            return Err(self.unsupported("type/subtype"));
        }
        self.masked(At::LinkHeader, 0, 1, value, mask)
    }

    pub(super) fn wlan_dir(&mut self, value: &Value) -> Result<Cond> {
        let dir = match value {
            Value::Number(n) if n & !3 != 0 => {
                return Err(format!("invalid 802.11 direction value 0x{n:x}"));
            }
            Value::Number(n) => *n,
            Value::Name(name) => {
                among(&[("nods", 0), ("tods", 1), ("fromds", 2), ("dstods", 3)], name)
                    .ok_or("unknown 802.11 direction")?
            }
        };
        if !is_wlan(self.state.link) {
            return Err(self.unsupported("dir"));
        }
        self.masked(At::LinkHeader, 1, 1, dir, 3)
    }

    /// The offsets of addresses depend on type and direction.
    pub(super) fn wlan_host(&mut self, mac: &[u8; 6], dir: Option<&str>) -> Result<Cond> {
        let at = At::LinkHeader;
        match dir {
            Some("src") => {
                let second = self.bytes(at, 10, mac)?;
                let third = self.bytes(at, 16, mac)?;
                let fourth = self.bytes(at, 24, mac)?;
                let from = self.set(at, 1, 1, 2)?;
                let to = self.set(at, 1, 1, 1)?;
                let relayed = or(and(not(to.clone()), third), and(to, fourth));
                let data = or(and(not(from.clone()), second.clone()), and(from, relayed));
                self.by_frame(second, data)
            }
            Some("dst") => {
                let (first, third) = (self.bytes(at, 4, mac)?, self.bytes(at, 16, mac)?);
                self.for_destination(first, third)
            }
            Some("src and dst") => {
                let source = self.wlan_host(mac, Some("src"))?;
                Ok(and(source, self.wlan_host(mac, Some("dst"))?))
            }
            None | Some("src or dst") => {
                let source = self.wlan_host(mac, Some("src"))?;
                Ok(or(source, self.wlan_host(mac, Some("dst"))?))
            }
            Some("addr1") => self.bytes(at, 4, mac),
            Some("addr2") => {
                let has = self.has_second_address()?;
                Ok(and(has, self.bytes(at, 10, mac)?))
            }
            Some("addr3") => {
                let has = not(self.masked(at, 0, 1, 4, 0x0c)?);
                Ok(and(has, self.bytes(at, 16, mac)?))
            }
            Some("addr4") => {
                let has = self.masked(at, 1, 1, 3, 3)?;
                Ok(and(has, self.bytes(at, 24, mac)?))
            }
            Some("ra") => {
                let data = self.set(at, 0, 1, 8)?;
                Ok(and(data, self.bytes(at, 4, mac)?))
            }
            _ => {
                let data = self.set(at, 0, 1, 8)?;
                let has = self.has_second_address()?;
                Ok(and(and(data, has), self.bytes(at, 10, mac)?))
            }
        }
    }

    /// Control frames except CTS and ACK, and all other frames.
    fn has_second_address(&mut self) -> Result<Cond> {
        let at = At::LinkHeader;
        let other = not(self.masked(at, 0, 1, 4, 0x0c)?);
        let no_cts = not(self.masked(at, 0, 1, 0xc0, 0xf0)?);
        let no_ack = not(self.masked(at, 0, 1, 0xd0, 0xf0)?);
        Ok(or(other, and(no_cts, no_ack)))
    }

    /// The condition for frames other than control frames: one for management, one for data.
    fn by_frame(&mut self, management: Cond, data: Cond) -> Result<Cond> {
        let control = self.set(At::LinkHeader, 0, 1, 4)?;
        let is_data = self.set(At::LinkHeader, 0, 1, 8)?;
        let either = or(and(not(is_data.clone()), management), and(is_data, data));
        Ok(and(not(control), either))
    }

    /// The condition on the destination: in the first address, or in the third for data on its way
    /// to the distribution system.
    fn for_destination(&mut self, first: Cond, third: Cond) -> Result<Cond> {
        let to = self.set(At::LinkHeader, 1, 1, 1)?;
        let data = or(and(not(to.clone()), first.clone()), and(to, third));
        self.by_frame(first, data)
    }

    pub(super) fn multicast(&mut self, proto: Option<&str>) -> Result<Cond> {
        match proto {
            None | Some("link") => match self.state.link {
                ARCNET | ARCNET_LINUX => self.mac8(0, Some("dst"), "multicast"),
                EN10MB | NETANALYZER | NETANALYZER_TRANSPARENT | DSA_TAG_BRCM | DSA_TAG_DSA => {
                    let before = self.previous_header_check()?;
                    Ok(and(before, self.set(At::LinkHeader, 0, 1, 1)?))
                }
                FDDI => self.set(At::LinkHeader, 1, 1, 1),
                IEEE802 | IP_OVER_FC => self.set(At::LinkHeader, 2, 1, 1),
                link if is_wlan(link) => {
                    let first = self.set(At::LinkHeader, 4, 1, 1)?;
                    let third = self.set(At::LinkHeader, 16, 1, 1)?;
                    self.for_destination(first, third)
                }
                _ => Err(self.unsupported("multicast")),
            },
            Some("ip") => {
                let ip = self.carries(super::link::IP)?;
                Ok(and(ip, self.masked(At::Payload, 16, 1, 0xe0, 0xf0)?))
            }
            Some("ip6") => {
                let ip6 = self.carries(super::link::IP6)?;
                Ok(and(ip6, self.eq(At::Payload, 24, 1, 255)?))
            }
            Some(other) => Err(super::invalid(other, "multicast")),
        }
    }

    pub(super) fn llc_kind(&mut self, kind: Option<&str>) -> Result<Cond> {
        const UNNUMBERED: &[(&str, u32)] = &[
            ("ui", 0x03),
            ("ua", 0x63),
            ("disc", 0x43),
            ("dm", 0x0f),
            ("sabme", 0x6f),
            ("test", 0xe3),
            ("xid", 0xaf),
            ("frmr", 0x87),
        ];
        const SUPERVISORY: &[(&str, u32)] = &[("rr", 1), ("rnr", 5), ("rej", 9)];
        let test = match kind {
            None => None,
            Some(name) => Some(match name.to_ascii_lowercase().as_str() {
                "i" => (0, 1),
                "s" => (1, 3),
                "u" => (3, 3),
                _ => match (among(SUPERVISORY, name), among(UNNUMBERED, name)) {
                    (Some(n), _) => (n, 0x0f),
                    (_, Some(n)) => (n, 0xef),
                    _ => return Err(format!("unknown LLC type name \"{name}\"")),
                },
            }),
        };
        let llc = match self.state.link {
            EN10MB | DSA_TAG_BRCM | DSA_TAG_DSA => {
                let length = self.le(At::LinkType, 0, 2, 1500)?;
                and(length, not(self.eq(At::Llc, 0, 2, 0xffff)?))
            }
            SUNATM => self.masked(At::LinkHeader, 0, 1, 2, 0x0f)?,
            IEEE802 | FDDI | ATM_RFC1483 => Cond::True,
            link if is_wlan(link) => self.masked(At::LinkHeader, 0, 1, 8, 0x0c)?,
            _ => return Err(self.unsupported("llc")),
        };
        match test {
            None => Ok(llc),
            Some((value, mask)) => Ok(and(llc, self.masked(At::Llc, 2, 1, value, mask)?)),
        }
    }
}
