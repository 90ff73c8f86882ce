//! Indexes against an oracle: for each TCP and UDP connection of the conformance corpus, which is next to the project (or
//! where `GANNET_SHARED` says), the packets in the index are those that a look at every packet finds. The oracle knows no
//! connections: it compares addresses and ports, those of fragments and of packets that ICMP errors quote too. It does
//! not look into tunnels other than IP in IP, so connections in others are left out, as are ends that had several
//! connections. Without the corpus this says so.
// Tests may unwrap and print; the lints know that only of functions that are tests themselves.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_index::Builder;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::protocol;

/// Captures beyond this size are left out.
const MOST: u64 = 300 << 10;

/// Protocol, and both ends, the lower one first.
type Ends = (u8, (Addr, u16), (Addr, u16));

fn ends(protocol: u8, src: (Addr, u16), dst: (Addr, u16)) -> Ends {
    (protocol, src.min(dst), src.max(dst))
}

/// What packets say, each for itself.
#[derive(Default)]
struct Oracle {
    by_ends: HashMap<Ends, BTreeSet<u64>>,
    quoted: HashMap<Ends, BTreeSet<u64>>,
    /// Fragments by what they have in common: number, offset, length, whether more follow, ends if it has them.
    fragments: HashMap<(Addr, Addr, u8, u32), Vec<Piece>>,
}

struct Piece {
    number: u64,
    from: u32,
    len: u32,
    more: bool,
    ends: Option<Ends>,
}

impl Oracle {
    fn see(&mut self, packet: &Packet<'_>) {
        let frame = gannet_wire::link(packet.link_type.0, packet.data, packet.wire_len);
        if let Ok(frame) = frame
            && let Network::Ip(bytes) = frame.network
        {
            self.ip(packet.number, bytes, frame.wire_len);
        }
    }

    fn ip(&mut self, number: u64, bytes: &[u8], wire_len: u32) {
        let Ok(ip) = gannet_wire::ip(bytes, wire_len, false) else { return };
        if let Some(fragment) = &ip.fragment {
            let key = (ip.src, ip.dst, ip.protocol, fragment.id);
            let ends = (fragment.offset == 0).then(|| ports(&ip)).flatten();
            let (from, len, more) = (fragment.offset, ip.payload_len, fragment.more);
            let piece = Piece { number, from, len, more, ends };
            self.fragments.entry(key).or_default().push(piece);
            return;
        }
        match ip.protocol {
            protocol::TCP | protocol::UDP => {
                let header = if ip.protocol == protocol::TCP { 20 } else { 8 };
                if let Some(ends) = ports(&ip).filter(|_| ip.payload.len() >= header) {
                    self.by_ends.entry(ends).or_default().insert(number);
                }
            }
            protocol::ICMP | protocol::ICMP6 => {
                let Some(icmp) = gannet_wire::icmp(&ip).ok().filter(|icmp| icmp.is_error()) else {
                    return;
                };
                if let Some(ends) = quoted(icmp.payload) {
                    self.quoted.entry(ends).or_default().insert(number);
                }
            }
            protocol::IPV4 | protocol::IPV6 => self.ip(number, ip.payload, ip.payload_len),
            _ => {}
        }
    }

    /// Ends of datagrams whose fragments cannot be assigned without a doubt: some overlap or are missing.
    fn doubtful(&self) -> BTreeSet<Ends> {
        let doubtful = self.fragments.values().filter(|pieces| !is_whole(pieces));
        doubtful.flat_map(|pieces| pieces.iter().filter_map(|piece| piece.ends)).collect()
    }

    /// The packets of a connection whose ends no other has.
    fn packets(&self, ends: &Ends) -> Vec<u64> {
        let mut all = self.by_ends.get(ends).cloned().unwrap_or_default();
        for pieces in self.fragments.values().filter(|pieces| is_whole(pieces)) {
            if pieces.iter().any(|piece| piece.ends == Some(*ends)) {
                all.extend(pieces.iter().map(|piece| piece.number));
            }
        }
        let first = all.first().copied().unwrap_or(u64::MAX);
        let quoted = self.quoted.get(ends).into_iter().flatten();
        all.extend(quoted.filter(|number| **number > first).copied().collect::<Vec<_>>());
        all.into_iter().collect()
    }
}

fn is_whole(pieces: &[Piece]) -> bool {
    let mut sorted: Vec<_> = pieces.iter().collect();
    sorted.sort_by_key(|piece| piece.from);
    let mut end = 0;
    let follows = sorted.iter().all(|piece| {
        let follows = piece.from == end;
        end = piece.from + piece.len;
        follows
    });
    follows && sorted.iter().filter(|piece| !piece.more).count() == 1
}

fn ports(ip: &Ip<'_>) -> Option<Ends> {
    let [a, b, c, d] = *ip.payload.first_chunk()?;
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(ends(ip.protocol, (ip.src, from), (ip.dst, to)))
}

/// The ends of a quoted packet, which is cut and may have other lengths than it says.
fn quoted(bytes: &[u8]) -> Option<Ends> {
    let v4 = |at: usize| Some(Addr::v4(*bytes.get(at..)?.first_chunk()?));
    let v6 = |at: usize| Some(Addr::v6(*bytes.get(at..)?.first_chunk()?));
    let (protocol, src, dst, at) = match bytes.first()? >> 4 {
        4 if u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x1fff != 0 => return None,
        4 => (*bytes.get(9)?, v4(12)?, v4(16)?, usize::from(bytes[0] & 15) * 4),
        6 => (*bytes.get(6)?, v6(8)?, v6(24)?, 40),
        _ => return None,
    };
    let [a, b, c, d] = *bytes.get(at..)?.first_chunk()?;
    let has_ports = matches!(protocol, protocol::TCP | protocol::UDP);
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    has_ports.then(|| ends(protocol, (src, from), (dst, to)))
}

/// Analyses a capture with an index. `None` if it is no capture, or damaged.
fn index(capture: &Path, out: &Path) -> Option<Oracle> {
    fs::create_dir_all(out).unwrap();
    let builder = Arc::new(Builder::default());
    let logs = gannet_log::Options { dir: Some(out.to_owned()), ..Default::default() };
    let index: Arc<Builder> = builder.clone();
    let options = Options { threads: 1, logs, index: Some(index), ..Options::default() };
    let mut engine = Engine::new(Options { ignore_checksums: true, ..options });
    let paths = [capture.to_owned()];
    let mut stream = Stream::open(&paths, gannet_capture::Options::default()).ok()?;
    builder.keep_restarts(&mut stream);
    let mut oracle = Oracle::default();
    while let Some(batch) = stream.next_batch().ok()? {
        engine.batch(&batch).unwrap();
        builder.batch(&batch);
        batch.iter().for_each(|packet| oracle.see(&packet));
    }
    engine.finish().unwrap();
    builder.write(capture).unwrap();
    Some(oracle)
}

/// Each row of conn.log as its columns by name.
fn rows(log: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut names = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines() {
        if let Some(fields) = line.strip_prefix("#fields\t") {
            names = fields.split('\t').map(str::to_owned).collect();
        } else if !line.starts_with('#') {
            let values = line.split('\t').map(str::to_owned);
            rows.push(names.iter().cloned().zip(values).collect());
        }
    }
    rows
}

fn ends_of(row: &BTreeMap<String, String>) -> Option<Ends> {
    let end = |host: &str, port: &str| Some((row[host].parse().ok()?, row[port].parse().ok()?));
    let protocol = match &*row["proto"] {
        "tcp" => protocol::TCP,
        "udp" => protocol::UDP,
        _ => return None,
    };
    Some(ends(protocol, end("id.orig_h", "id.orig_p")?, end("id.resp_h", "id.resp_p")?))
}

#[test]
fn slices_are_what_a_look_at_every_packet_finds() {
    let all = gannet_synth::corpus::captures(&["conformance/captures"]);
    let own = std::env::temp_dir().join(format!("gannet-index-oracle-{}", std::process::id()));
    fs::create_dir_all(&own).unwrap();
    let (mut checked, mut left_out, mut wrong) = (0, 0, Vec::new());
    for capture in all.iter().filter(|capture| fs::metadata(capture).unwrap().len() < MOST) {
        let (copy, out) = (own.join("copy"), own.join("out"));
        fs::copy(capture, &copy).unwrap();
        let _ = fs::remove_dir_all(&out);
        let Some(oracle) = index(&copy, &out) else { continue };
        let mut index = Index::open(&copy).unwrap();
        let rows = rows(&out.join("conn.log"));
        let doubtful = oracle.doubtful();
        let mut known = HashMap::new();
        rows.iter().filter_map(ends_of).for_each(|ends| *known.entry(ends).or_insert(0) += 1);
        for row in &rows {
            let Some(ends) = ends_of(row) else { continue };
            let expected = oracle.packets(&ends);
            let is_tunnelled = row["tunnel_parents"] != "-";
            if known[&ends] > 1 || doubtful.contains(&ends) || is_tunnelled && expected.is_empty() {
                left_out += 1;
                continue;
            }
            let found = index.packets(row["uid"].as_bytes()).unwrap().unwrap();
            let mut read = Vec::new();
            Slices::new(&copy, &mut index)
                .read(&found, |p: &Packet<'_>| {
                    read.push(p.number);
                    Ok::<_, Error>(())
                })
                .unwrap();
            checked += 1;
            if found != expected || read != expected {
                wrong.push(format!(
                    "{} {}: {ends:?}\n  index {found:?}\n  read {read:?}\n  oracle {expected:?}",
                    capture.display(),
                    row["uid"]
                ));
            }
        }
    }
    fs::remove_dir_all(own).unwrap();
    eprintln!("{checked} connections are right or not, {left_out} were left out");
    assert!(wrong.is_empty(), "{} of {checked}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all.len() == 1 || checked > 4_000, "{checked} connections");
}
