//! What targets start from: the traffic of captures, in the form that each target takes.
//!
//! A target of a protocol gets the conversations on the ports of that protocol, written as
//! `gannet_fuzz::conversation` reads them; of one without ports, those of captures that bear its
//! name. The others get frames, packets, whole captures, expressions, certificates.

use std::collections::HashMap;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_protocols::Tag;
use gannet_wire::Network;

use super::folder;
use crate::mutate::Seeds;
use crate::workspace;

/// Seeds that a target gets at the most.
const MOST: usize = 600;

/// Bytes of a conversation that are used.
const LONGEST: usize = 16 << 10;

/// Bytes of a capture that is a seed as a whole.
const WHOLE: u64 = 32 << 10;

/// Writes the seeds of targets; returns the folder that holds one folder for each.
pub(super) fn write(targets: &[String]) -> anyhow::Result<PathBuf> {
    let all = folder().join("seeds");
    let mut sets = Vec::new();
    for target in targets {
        sets.push(Set::new(target)?);
    }
    for capture in Seeds::gather()?.files() {
        let name = capture.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let flows = read(capture, &mut sets);
        for set in &mut sets {
            set.offer(&name, capture, &flows);
        }
    }
    for set in &sets {
        let folder = all.join(&set.target);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (n, seed) in set.seeds.iter().enumerate() {
            fs::write(folder.join(format!("{n:04}")), seed)?;
        }
    }
    Ok(all)
}

/// The seeds of one target.
struct Set {
    target: String,
    /// What it speaks, if it is one of a protocol.
    tag: Option<Tag>,
    seeds: HashSet<Vec<u8>>,
}

impl Set {
    fn new(target: &str) -> anyhow::Result<Self> {
        let path = workspace::root().join("fuzz/fuzz_targets").join(format!("{target}.rs"));
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut set =
            Self { target: target.to_owned(), tag: spoken(&source), seeds: HashSet::new() };
        for line in ["tcp port 80", "ip6 or vlan 7 and not net 10.0.0.0/8", "ip[0] & 0xf > 5"] {
            match target {
                "filter" => set.add([line.as_bytes(), b"\n", &[0; 64]].concat()),
                // The link type in front of the packet.
                "filter_engines" => set.add([line.as_bytes(), b"\n\x01", &[0; 64]].concat()),
                _ => (),
            }
        }
        if target == "inflate" {
            // Sizes of pieces, then a block: stored, of fixed codes, of codes it describes.
            set.add(b"\xff\xff\x01\x03\0\xfc\xffabc".to_vec());
            set.add(b"\x03\x01\x4b\x84\x01\0".to_vec());
            set.add(
                b"\x01\x20\x05\xc1\x01\x01\0\0\x08\x83\xb0\xac\x1c\xec\x5f\xc1\x0d\x60\x86\x11\
                \xed\x1a\x57\x5a\x1d\x0b\x6f\xed\x1c\xe9\xb6\x69\x87\x11\xf2"
                    .to_vec(),
            );
        }
        Ok(set)
    }

    fn add(&mut self, seed: Vec<u8>) {
        if self.seeds.len() < MOST && !seed.is_empty() {
            self.seeds.insert(seed);
        }
    }

    /// A packet, for targets of packets.
    fn packet(&mut self, packet: &Packet<'_>, ip: Option<&[u8]>) {
        match &*self.target {
            "link" => self.add([&packet.link_type.0.to_be_bytes(), packet.data].concat()),
            "ip" => self.add(ip.unwrap_or_default().to_vec()),
            _ => {}
        }
    }

    /// A capture of this name and what is said in it.
    fn offer(&mut self, name: &str, path: &Path, flows: &[Flow]) {
        if let Some(tag) = self.tag {
            for flow in flows {
                self.conversation(tag, name, flow);
            }
            return;
        }
        match &*self.target {
            "capture" if fs::metadata(path).is_ok_and(|m| m.len() <= WHOLE) => {
                self.add(fs::read(path).unwrap_or_default());
            }
            "sniff" => {
                for (_, part) in flows.iter().flat_map(|f| &f.parts) {
                    self.add(part.clone());
                }
            }
            "x509" => {
                let parts = flows.iter().flat_map(|f| &f.parts);
                parts.flat_map(|(_, part)| certificates(part)).for_each(|c| self.add(c));
            }
            "gssapi" | "ntlm" => {
                let begins = if self.target == "ntlm" { is_ntlm } else { is_gssapi };
                for (_, part) in flows.iter().flat_map(|f| &f.parts) {
                    let mut starts = (0..part.len()).filter(|at| begins(&part[*at..]));
                    starts.next().into_iter().for_each(|at| self.add(part[at..].to_vec()));
                }
            }
            _ => {}
        }
    }

    /// A conversation, if it may be one of the target's protocol.
    fn conversation(&mut self, tag: Tag, name: &str, flow: &Flow) {
        let (tcp, udp) = (tag.tcp_ports(), tag.udp_ports());
        let ports = if flow.udp { udp } else { tcp };
        let by_port = flow.ports.iter().any(|p| ports.contains(p));
        let by_name = tcp.is_empty()
            && udp.is_empty()
            && (name.contains(&self.target) || tag == Tag::Detector);
        if !by_port && !by_name {
            return;
        }
        let mut seed = Vec::new();
        if !tcp.is_empty() && !udp.is_empty() {
            seed.push(if flow.udp { 0x80 } else { 0 });
        }
        for (to_server, part) in &flow.parts {
            let head = (part.len() as u16) << 1 | u16::from(!to_server);
            seed.extend_from_slice(&head.to_le_bytes());
            seed.extend_from_slice(part);
        }
        self.add(seed);
    }
}

/// What two sockets say to each other, packet by packet.
struct Flow {
    udp: bool,
    ports: [u16; 2],
    /// Whether it is from the one who spoke first, and what.
    parts: Vec<(bool, Vec<u8>)>,
    len: usize,
}

/// The protocol that a target's source names.
fn spoken(source: &str) -> Option<Tag> {
    let (_, call) = source.split_once("gannet_fuzz::protocol!(")?;
    let name = call.trim_start().split(|c: char| !c.is_alphanumeric()).next()?;
    Tag::ALL.iter().copied().find(|t| format!("{t:?}") == name)
}

/// The conversations of a capture, as far as it can be read.
fn read(capture: &Path, sets: &mut [Set]) -> Vec<Flow> {
    let (mut flows, mut known) = (Vec::new(), HashMap::new());
    let Ok(mut reader) = Reader::open(capture) else { return flows };
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in batch.iter() {
            let frame = gannet_wire::link(packet.link_type.0, packet.data, packet.wire_len).ok();
            let ip = frame.and_then(|f| match f.network {
                Network::Ip(data) => Some((data, f.wire_len)),
                _ => None,
            });
            sets.iter_mut().for_each(|s| s.packet(&packet, ip.map(|(data, _)| data)));
            if let Some((data, wire_len)) = ip {
                said(data, wire_len, &mut flows, &mut known);
            }
        }
    }
    flows
}

type End = (Addr, u16);

/// What an IP packet says is added to its conversation.
fn said(
    data: &[u8],
    wire_len: u32,
    flows: &mut Vec<Flow>,
    known: &mut HashMap<(bool, End, End), usize>,
) {
    let Ok(ip) = gannet_wire::ip(data, wire_len, false) else { return };
    let (udp, from, to, payload) = match (gannet_wire::tcp(&ip), gannet_wire::udp(&ip)) {
        (Ok(t), _) if ip.protocol == gannet_wire::protocol::TCP => {
            (false, t.src_port, t.dst_port, t.payload)
        }
        (_, Ok(u)) if ip.protocol == gannet_wire::protocol::UDP => {
            (true, u.src_port, u.dst_port, u.payload)
        }
        _ => return,
    };
    if payload.is_empty() {
        return;
    }
    let (from, to) = ((ip.src, from), (ip.dst, to));
    let (index, first) = match (known.get(&(udp, from, to)), known.get(&(udp, to, from))) {
        (Some(i), _) => (*i, true),
        (None, Some(i)) => (*i, false),
        (None, None) => {
            known.insert((udp, from, to), flows.len());
            flows.push(Flow { udp, ports: [from.1, to.1], parts: Vec::new(), len: 0 });
            (flows.len() - 1, true)
        }
    };
    let flow = &mut flows[index];
    let part = &payload[..payload.len().min(LONGEST - flow.len)];
    if !part.is_empty() {
        flow.len += part.len();
        flow.parts.push((first, part.to_vec()));
    }
}

/// What looks like a certificate: a sequence of two-byte length that begins with another.
fn certificates(data: &[u8]) -> Vec<Vec<u8>> {
    let start = |at: &usize| matches!(data[*at..], [0x30, 0x82, _, _, 0x30, 0x82, ..]);
    let starts = (0..data.len()).filter(start);
    let whole = |at: usize| {
        data.get(at..at + 4 + usize::from(data[at + 2]) * 256 + usize::from(data[at + 3]))
    };
    starts.filter_map(|at| Some(whole(at)?.to_vec())).collect()
}

fn is_ntlm(data: &[u8]) -> bool {
    data.starts_with(b"NTLMSSP\0")
}

/// A token of negotiation (RFC 4178), or a mechanism's own.
fn is_gssapi(data: &[u8]) -> bool {
    matches!(data, [0x60, _, 0x06, ..] | [0x60, 0x81, _, 0x06, ..] | [0x60, 0x82, _, _, 0x06, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_gets_its_own_conversations() {
        let mut set = Set::new("http").unwrap();
        assert_eq!(set.tag, Some(Tag::Http));
        let sample = workspace::root().join("examples/sample.pcap");
        let flows = read(&sample, &mut []);
        set.offer("sample.pcap", &sample, &flows);
        let get = |seed: &Vec<u8>| seed[0] & 1 == 0 && seed[2..].starts_with(b"GET ");
        assert!(set.seeds.iter().any(get), "{:?}", set.seeds.iter().next());
    }

    #[test]
    fn certificates_are_cut_out() {
        let one = [0x30, 0x82, 0, 5, 0x30, 0x82, 0, 1, 9];
        assert_eq!(certificates(&[&[0x16], &one[..], &[7, 0x30, 0x82]].concat()), [one.to_vec()]);
    }
}
