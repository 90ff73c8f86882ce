//! Seeds of targets: the traffic of captures, in the input format of each target.
//!
//! A target of a protocol gets the conversations on the ports of that protocol, written as
//! `gannet_fuzz_support::conversation` reads them; a protocol without ports gets those of captures
//! with its name in theirs. The others get frames, packets, whole captures, expressions,
//! certificates, scripts.

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
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::Network;
use gannet_wire::Transport;

use super::folder;
use crate::mutate::Seeds;
use crate::scripts;
use crate::workspace;

/// Maximum number of seeds of a target.
const MAX_SEEDS: usize = 600;

/// A zstd frame of words, whose block describes all of its tables.
const DESCRIBED: &[u8] =
    b"\x28\xb5\x2f\xfd\x64\xcc\x03\x95\x0d\x00\x16\xd8\x30\x0b\xe0\x6d\xf2\xa0\x1c\xb8\xb7\
      \x11\x18\xac\x2c\x2c\x00\x2c\x00\x2d\x00\xbf\x5d\xd0\x9a\x8f\xde\x34\x04\x1e\xc9\x78\
      \x01\x65\xea\x63\x93\xd0\x2d\x41\x14\x5b\x2f\xe5\x3d\x3a\xf0\xd4\xbb\xfa\x79\x2b\xd1\
      \x8e\x51\x90\x39\x65\xf4\x71\xd6\xdb\xa4\x22\x14\x35\x76\x3e\xe9\x9a\x3a\x8e\x61\x0c\
      \x6c\x58\x4a\x93\x7f\x37\x7d\xf9\x54\x53\xef\x5d\xa0\x89\x70\xbc\xf7\x51\xa3\x1d\xa7\
      \x80\xde\x1f\xe0\x9d\xff\x72\x0d\xbb\x61\xc5\xf7\xb1\x01\x4f\x5f\x7a\xb0\x02\x74\x09\
      \xf7\x82\xc9\xa9\x17\xda\xb1\x35\x35\xfd\xbc\x80\x15\x78\x41\xc6\x8d\x41\x23\x9f\x6b\
      \x85\xe0\xb8\x02\xc5\xdf\xa4\x30\xd9\x7c\x38\xd0\x45\x39\x9d\x6c\x09\x22\x84\xf2\x1a\
      \xc1\x70\xe7\x1e\x46\x13\x80\xc9\x7c\xdc\x15\x67\x4b\x47\xbe\x06\xf2\x51\x12\x9b\x08\
      \x09\xe0\x00\x1d\x56\x1a\xad\x61\xe4\x1a\x6f\x8b\xd6\x18\xbe\x92\xea\x23\x3a\x76\xa8\
      \x61\xca\x39\x09\x66\x24\x05\x45\x29\xb4\x19\x20\x42\x62\x10\x74\x7a\x10\x10\x02\x8e\
      \xce\xc6\x01\x1f\x7f\x26\x2e\x3c\x79\x73\xed\xc8\x12\x2a\xfd\x12\xaa\x08\x76\x66\xf9\
      \xce\xbb\xed\x3e\x2d\x80\x88\x2a\x33\x83\x96\xb1\x7c\x4e\x04\x5d\xbb\x13\x31\x6b\x3f\
      \x45\x06\x76\x1c\xa2\x74\x27\xf6\xb1\x62\x2e\xac\x73\x77\x94\x28\x12\x51\xf9\x4e\xa5\
      \xc7\x40\x3f\x19\x5d\xbc\xac\x2f\x97\x6f\x61\x37\x58\x2a\xea\x8d\x0b\x13\x1c\x8a\x85\
      \x0c\x40\x4f\x7b\xe7\x51\xd1\x3d\x46\x3f\xfd\xec\x5e\xbc\x66\x84\xdd\x08\xc7\x5e\xbd\
      \xd1\xd7\x8f\x19\x7c\xce\xb2\x3b\xb6\x5b\x49\xd2\x18\x12\x37\x8b\x6c\xab\x63\xe1\xb2\
      \x32\x19\x54\x6a\xf5\xb0\xa9\x7f\x74\x44\xc3\xb2\xa2\x6d\x0c\xc3\x86\x9b\x62\xb9\x1f\
      \x39\x7b\x24\xf8\xc2\x95\x40\x67\xcb\x7a\x85\x37\x3e\xf0\xfb\xde\x09\x93\x05\x2e\x89\
      \x21\x80\x4b\x8f\xba\x46\x98\xc8\xc5\x1b\x71\x86\xc2\xc2\x4e\x1d\x50\x03\xad\xa8\xa8\
      \xd7\xd8\x43\x47\x98\x1b\x1b\xc4\xef\xe0\x2c\xde\x7a\x63\x02\x53\x55\x75\x63\x86\x7d\
      \x50\x94\x2a\x3c\xf2\xdd\x02";

/// Maximum number of bytes used of a conversation.
const MAX_CONVERSATION: usize = 16 << 10;

/// Maximum size of a capture that is a seed as a whole, in bytes.
const MAX_CAPTURE: u64 = 32 << 10;

/// Maximum size of a script that is a seed, in bytes.
const MAX_SCRIPT: u64 = 6 << 10;

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
    for set in &mut sets {
        // A cache is not text, so its target starts without seeds.
        if set.target.starts_with("script_") && set.target != "script_cache" {
            zeek_scripts()?.into_iter().for_each(|script| set.add(script));
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

/// Scripts in Zeek's language: those of tests, and Zeek's own if the shared folder exists.
fn zeek_scripts() -> anyhow::Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    workspace::gather(&workspace::root().join("crates/script"), &mut files)?;
    if let Some(shared) =
        workspace::shared().map(|shared| shared.join("zeek")).filter(|s| s.is_dir())
    {
        workspace::gather(&shared.join("bench"), &mut files)?;
        workspace::gather(&shared.join("cases"), &mut files)?;
        workspace::gather(&scripts::unpacked(&shared, &workspace::target())?, &mut files)?;
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "zeek"));
    files.retain(|path| fs::metadata(path).is_ok_and(|m| m.len() <= MAX_SCRIPT));
    files.sort();
    // Takes files from every folder.
    let step = files.len() / MAX_SEEDS + 1;
    let read = |path: &PathBuf| fs::read(path).with_context(|| path.display().to_string());
    files.iter().step_by(step).map(read).collect()
}

/// The seeds of one target.
struct Set {
    target: String,
    /// Its protocol, if it has one.
    tag: Option<Tag>,
    seeds: HashSet<Vec<u8>>,
}

impl Set {
    fn new(target: &str) -> anyhow::Result<Self> {
        let path = workspace::root().join("fuzz/fuzz_targets").join(format!("{target}.rs"));
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut set =
            Self { target: target.to_owned(), tag: protocol_tag(&source), seeds: HashSet::new() };
        for line in ["tcp port 80", "ip6 or vlan 7 and not net 10.0.0.0/8", "ip[0] & 0xf > 5"] {
            match target {
                "filter" => set.add([line.as_bytes(), b"\n", &[0; 64]].concat()),
                // The link type before the packet.
                "filter_engines" => set.add([line.as_bytes(), b"\n\x01", &[0; 64]].concat()),
                _ => (),
            }
        }
        if target == "inflate" {
            // Sizes of pieces, then a block: stored, with fixed codes, with dynamic codes.
            set.add(b"\xff\xff\x01\x03\0\xfc\xffabc".to_vec());
            set.add(b"\x03\x01\x4b\x84\x01\0".to_vec());
            set.add(
                b"\x01\x20\x05\xc1\x01\x01\0\0\x08\x83\xb0\xac\x1c\xec\x5f\xc1\x0d\x60\x86\x11\
                \xed\x1a\x57\x5a\x1d\x0b\x6f\xed\x1c\xe9\xb6\x69\x87\x11\xf2"
                    .to_vec(),
            );
        }
        if target == "unzstd" {
            // Sizes of pieces, then a frame: of raw and repeated blocks, of one that is packed twice with tables of one
            // symbol, of one that describes its tables.
            set.add(b"\0\xff\x28\xb5\x2f\xfd\x20\x05\x10\0\0he\x1b\0\0l".to_vec());
            set.add(
                b"\x07\x03\x28\xb5\x2f\xfd\x80\0\x13\0\0\0\x54\0\0\x18abc\x01\x54\x02\x02\x04\x05\
                \x35\0\0\x10xy\x01\xfc\x05"
                    .to_vec(),
            );
            set.add([&b"\0\xff"[..], DESCRIBED].concat());
        }
        Ok(set)
    }

    fn add(&mut self, seed: Vec<u8>) {
        if self.seeds.len() < MAX_SEEDS && !seed.is_empty() {
            self.seeds.insert(seed);
        }
    }

    /// Adds a packet, for targets of packets.
    fn packet(&mut self, packet: &Packet<'_>, ip: Option<&[u8]>) {
        match &*self.target {
            "link" | "decode" => {
                self.add([&packet.link_type.0.to_be_bytes(), packet.data].concat());
            }
            "ip" => self.add(ip.unwrap_or_default().to_vec()),
            _ => {}
        }
    }

    /// Adds a capture and its conversations, if they suit the target.
    fn offer(&mut self, name: &str, path: &Path, flows: &[Flow]) {
        if let Some(tag) = self.tag {
            for flow in flows {
                self.conversation(tag, name, flow);
            }
            return;
        }
        match &*self.target {
            "capture" if fs::metadata(path).is_ok_and(|m| m.len() <= MAX_CAPTURE) => {
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

    /// Adds a conversation, if it may be one of the target's protocol.
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

/// The conversation of two sockets, packet by packet.
struct Flow {
    udp: bool,
    ports: [u16; 2],
    /// Payloads, each with whether the first sender sent it.
    parts: Vec<(bool, Vec<u8>)>,
    len: usize,
}

/// The protocol that a target's source names.
fn protocol_tag(source: &str) -> Option<Tag> {
    let (_, call) = source.split_once("gannet_fuzz_support::protocol!(")?;
    let name = call.trim_start().split(|c: char| !c.is_alphanumeric()).next()?;
    Tag::ALL.iter().copied().find(|t| format!("{t:?}") == name)
}

/// The conversations of a capture, as far as it can be read.
fn read(capture: &Path, sets: &mut [Set]) -> Vec<Flow> {
    let (mut flows, mut known) = (Vec::new(), HashMap::new());
    let Ok(mut reader) = Reader::open(capture) else { return flows };
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in batch.iter() {
            let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len);
            let ip = decoded.as_ref().ok().and_then(|d| match d.frame.network {
                Network::Ip(data) => Some(data),
                _ => None,
            });
            sets.iter_mut().for_each(|s| s.packet(&packet, ip));
            if let Some(datagram) = decoded.as_ref().ok().and_then(Decoded::datagram) {
                add_payload(datagram, &mut flows, &mut known);
            }
        }
    }
    flows
}

type End = (Addr, u16);

/// Adds an IP packet's payload to its conversation.
fn add_payload(
    Datagram { ip, transport }: &Datagram<'_>,
    flows: &mut Vec<Flow>,
    known: &mut HashMap<(bool, End, End), usize>,
) {
    let (Some((from, to)), Some(payload)) = (transport.ports(), transport.payload()) else {
        return;
    };
    let udp = matches!(transport, Transport::Udp(_));
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
    let part = &payload[..payload.len().min(MAX_CONVERSATION - flow.len)];
    if !part.is_empty() {
        flow.len += part.len();
        flow.parts.push((first, part.to_vec()));
    }
}

/// Candidates for certificates: a sequence with a two-byte length that begins with another one.
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
    fn scripts_are_seeds() {
        let scripts = zeek_scripts().unwrap();
        assert!(scripts.iter().any(|script| script.windows(9).any(|w| w == b"zeek_init")));
        let longest = scripts.iter().map(|script| script.len() as u64).max();
        assert!((10..=MAX_SEEDS).contains(&scripts.len()) && longest <= Some(MAX_SCRIPT));
    }

    #[test]
    fn certificates_are_cut_out() {
        let one = [0x30, 0x82, 0, 5, 0x30, 0x82, 0, 1, 9];
        assert_eq!(certificates(&[&[0x16], &one[..], &[7, 0x30, 0x82]].concat()), [one.to_vec()]);
    }
}
