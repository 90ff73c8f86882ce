//! Reads every capture of the conformance corpus and compares the packets with those that
//! pcap-parser returns. Without the corpus the test prints a note and passes.
// Clippy allows unwrap in test functions, but not in their helper functions.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::fs;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Compression;
use gannet_capture::Error;
use gannet_capture::Format;
use gannet_capture::Info;
use gannet_capture::Options;
use gannet_capture::Reader;
use gannet_capture::Stream;
use pcap_parser::Block;
use pcap_parser::PcapBlockOwned;
use pcap_parser::PcapNGSlice;
use pcap_parser::pcap;

fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let root = std::env::var_os("GANNET_CONFORMANCE").map_or(root, PathBuf::from);
    if root.join("captures").is_dir() {
        return Some(root);
    }
    eprintln!("SKIPPED: no corpus at {}; GANNET_CONFORMANCE names another place", root.display());
    None
}

fn files(dir: &Path, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

/// Time in ns, wire length and data, as both readers return them.
type Seen = (i64, u32, Vec<u8>);

fn ours(mut reader: Reader) -> (Vec<Seen>, Option<Error>) {
    let mut all = Vec::new();
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                all.extend(batch.iter().map(|p| (p.time.as_nanos(), p.wire_len, p.data.to_vec())));
            }
            Ok(None) => return (all, None),
            Err(e) => return (all, Some(e)),
        }
    }
}

fn theirs_pcap(bytes: &[u8]) -> Vec<Seen> {
    let (mut rest, header) = pcap::parse_pcap_header(bytes).unwrap();
    let unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
    // pcap-parser returns bytes of a record beyond the snap length; libpcap and gannet do not.
    let snaplen = header.snaplen;
    let limit = if (1..1 << 31).contains(&snaplen) { snaplen } else { u32::MAX };
    let mut all = Vec::new();
    loop {
        let frame = match (header.is_bigendian(), header.is_modified_format()) {
            (false, false) => pcap::parse_pcap_frame(rest),
            (true, false) => pcap::parse_pcap_frame_be(rest),
            (false, true) => pcap::parse_pcap_frame_modified(rest),
            (true, true) => panic!("no oracle for big-endian modified captures"),
        };
        let Ok((next, frame)) = frame else { return all };
        // libpcap and gannet treat fractions as signed.
        let fraction = i64::from(frame.ts_usec.cast_signed()) * unit;
        let time = i64::from(frame.ts_sec) * 1_000_000_000 + fraction;
        let kept = frame.caplen.min(limit) as usize;
        let data = frame.data.get(..kept).unwrap().to_vec();
        all.push((time, frame.origlen, data));
        rest = next;
    }
}

fn theirs_pcapng(bytes: &[u8]) -> Vec<Seen> {
    let mut all = Vec::new();
    let mut units: Vec<(u128, i64)> = Vec::new();
    for block in PcapNGSlice::from_slice(bytes).unwrap() {
        match block {
            Ok(PcapBlockOwned::NG(Block::SectionHeader(_))) => units.clear(),
            Ok(PcapBlockOwned::NG(Block::InterfaceDescription(i))) => {
                units.push((u128::from(i.ts_resolution().unwrap()), i.ts_offset()));
            }
            Ok(PcapBlockOwned::NG(Block::EnhancedPacket(p))) => {
                let (per_second, offset) = units[p.if_id as usize];
                let ticks = u128::from(p.ts_high) << 32 | u128::from(p.ts_low);
                let nanos = (ticks * 1_000_000_000 / per_second) as i64 + offset * 1_000_000_000;
                all.push((nanos, p.origlen, p.data[..p.caplen as usize].to_vec()));
            }
            Ok(PcapBlockOwned::NG(Block::SimplePacket(p))) => {
                let kept = p.data.len().min(p.origlen as usize);
                all.push((0, p.origlen, p.data[..kept].to_vec()));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    all
}

#[test]
fn packets_are_those_of_the_oracle() {
    let Some(root) = corpus() else { return };
    let mut all = Vec::new();
    files(&root.join("captures"), &mut all);
    let (mut captures, mut packets, mut partial, mut other) = (0, 0, Vec::new(), Vec::new());
    for path in &all {
        let reader = match Reader::open(path) {
            Ok(reader) => reader,
            Err(e) => {
                other.push(e.to_string());
                continue;
            }
        };
        captures += 1;
        let (format, compression) = (reader.format(), reader.compression());
        let (mapped, error) = ours(reader);
        packets += mapped.len();
        let streamed = Reader::from_read(Box::new(File::open(path).unwrap()), path).unwrap();
        let (streamed, second) = ours(streamed);
        assert!(mapped == streamed, "{}: mapped and streamed differ", path.display());
        assert_eq!(error.as_ref().map(Error::to_string), second.map(|e| e.to_string()));
        let info = Info::open(path).unwrap();
        assert_eq!(info.packets, mapped.len() as u64);
        if compression.is_none() {
            let bytes = fs::read(path).unwrap();
            let theirs = match format {
                Format::Pcap => theirs_pcap(&bytes),
                _ => theirs_pcapng(&bytes),
            };
            let differ = mapped.iter().zip(&theirs).position(|(a, b)| a != b);
            assert_eq!(differ, None, "{}: first packet that differs", path.display());
            assert_eq!(mapped.len(), theirs.len(), "{}: {error:?}", path.display());
        }
        partial.extend(error.map(|e| e.to_string()));
    }
    eprintln!(
        "{captures} captures, {packets} packets, {} partial, {} other",
        partial.len(),
        other.len()
    );
    for line in partial.iter().chain(&other) {
        eprintln!("  {line}");
    }
    assert!(captures > 0);
}

#[test]
fn all_captures_are_one_ordered_stream() {
    let Some(root) = corpus() else { return };
    let mut stream = Stream::open(&[root.join("captures")], Options::default()).unwrap();
    let (mut packets, mut errors) = (0, 0);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in batch {
                    packets += 1;
                    assert_eq!(packet.number, packets);
                }
            }
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    eprintln!("{packets} packets, {errors} errors, {} skipped", stream.skipped().len());
    let total = stream.bytes_total().unwrap();
    assert!(stream.bytes_done() <= total && stream.bytes_done() > total / 2);
}

#[test]
fn hostile_files_end_in_an_error() {
    let Some(root) = corpus() else { return };
    let mut all = Vec::new();
    files(&root.join("hostile"), &mut all);
    for path in &all {
        let error = match Reader::open(path) {
            Ok(reader) => ours(reader).1,
            Err(e) => Some(e),
        };
        eprintln!("{error:?}");
        assert!(error.is_some(), "{}", path.display());
    }
}

#[test]
fn suffixes_and_contents_agree() {
    let Some(root) = corpus() else { return };
    let mut all = Vec::new();
    files(&root.join("captures"), &mut all);
    for path in all.iter().filter(|p| Compression::from_suffix(p).is_some()) {
        let reader = Reader::open(path).unwrap();
        assert_eq!(reader.compression(), Compression::from_suffix(path), "{}", path.display());
    }
}
