//! Indexes of whole captures: the number of packets of each connection equals that of conn.log, the index is the same
//! for any number of threads, and packets are read as they are in the capture.
// Tests may unwrap and print; Clippy allows that only in functions marked as tests.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_index::Builder;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;
use gannet_index::path_of;

/// A folder that is removed after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("gannet-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn traffic(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        gannet_synth::traffic::mixed(300, 1).write(&mut writer).unwrap();
        writer.finish().unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Analyses a capture with an index and writes logs to a folder; returns `false` if the file is not a capture.
fn index(capture: &Path, out: &Path, threads: usize) -> bool {
    index_every(capture, out, threads, gannet_index::RESTARTS_EVERY)
}

/// Like [`index`], with at least `every` decompressed bytes from one restart point to the next.
fn index_every(capture: &Path, out: &Path, threads: usize, every: u64) -> bool {
    fs::create_dir_all(out).unwrap();
    let builder = Arc::new(Builder::default());
    let logs = gannet_log::Options { dir: Some(out.to_owned()), ..Default::default() };
    let index: Arc<Builder> = builder.clone();
    let options = Options { threads, logs, index: Some(index), ..Options::default() };
    let options = Options { ignore_checksums: true, ..options };
    let stream = Stream::open(&[capture.to_owned()], gannet_capture::Options::default());
    let Ok(mut stream) = stream else { return false };
    stream.set_unpack_threads(threads);
    builder.keep_restarts_every(&mut stream, every);
    let mut engine = Engine::new(options);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                engine.batch(&batch).unwrap();
                builder.batch(&batch);
            }
            Ok(None) => break,
            // Packets before the damage are analysed.
            Err(_) => {}
        }
    }
    engine.finish().unwrap();
    builder.write(capture).unwrap();
    true
}

/// The rows of a log; each maps column names to values.
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

/// Time and bytes of all packets of a capture.
fn all_packets(capture: &Path) -> Vec<(i64, Vec<u8>)> {
    let options = gannet_capture::Options::default();
    let mut stream = Stream::open(&[capture.to_owned()], options).unwrap();
    let mut packets = Vec::new();
    while let Ok(Some(batch)) = stream.next_batch() {
        packets.extend(batch.iter().map(|p| (p.time.as_nanos(), p.data.to_vec())));
    }
    packets
}

fn check(capture: &Path, out: &Path) {
    check_every(capture, out, 1);
}

/// Checks every n-th connection.
fn check_every(capture: &Path, out: &Path, every: usize) {
    let packets = all_packets(capture);
    let mut index = Index::open(capture).unwrap();
    assert_eq!(index.total(), packets.len() as u64);
    let conns = rows(&out.join("conn.log"));
    assert!(conns.len() > 100);
    for row in conns.into_iter().step_by(every) {
        let numbers = index.packets(row["uid"].as_bytes()).unwrap().unwrap();
        let count = |name: &str| row[name].parse::<usize>().unwrap();
        assert_eq!(numbers.len(), count("orig_pkts") + count("resp_pkts"), "{row:?}");
        let mut read = Vec::new();
        Slices::new(capture, &mut index)
            .read(&numbers, |p: &Packet<'_>| {
                read.push(p.number);
                let expected = &packets[p.number as usize - 1];
                assert_eq!((p.time.as_nanos(), p.data), (expected.0, &expected.1[..]));
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(read, numbers);
    }
    assert_eq!(index.packets(b"CnoneOfThat").unwrap(), None);
}

#[test]
fn packets_of_connections_are_found_in_every_format() {
    let s = Scratch::new("index-formats");
    for name in ["a.pcap", "a.pcapng", "a.pcap.zst", "a.pcapng.gz"] {
        let capture = s.traffic(name);
        let out = s.0.join(name.replace('.', "-"));
        assert!(index(&capture, &out, 1));
        check(&capture, &out);
    }
}

/// Compressed captures are read from restart points, in gzip files of one or many members and in zstd files of many
/// frames; a zstd file of one frame is read from its beginning. The packets are the same, and so is the index for any
/// number of threads.
#[test]
fn compressed_captures_are_read_from_restart_points() {
    let s = Scratch::new("index-restart");
    let plain = s.0.join("a.pcap");
    let mut writer = Writer::create(&plain, WriteOptions::default()).unwrap();
    gannet_synth::traffic::mixed(600, 1).write(&mut writer).unwrap();
    writer.finish().unwrap();
    let bytes = fs::read(&plain).unwrap();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
    const EVERY: u64 = 60_000;
    let parts = || bytes.chunks(20_001);
    let files: [(&str, Vec<u8>, bool); 4] = [
        ("one.pcap.gz", gzip(&bytes), true),
        ("many.pcap.gz", parts().flat_map(gzip).collect(), true),
        ("one.pcap.zst", zstd(&bytes), false),
        ("many.pcap.zst", parts().flat_map(zstd).collect(), true),
    ];
    for (name, packed, has_points) in files {
        let capture = s.0.join(name);
        fs::write(&capture, packed).unwrap();
        let mut before = None;
        for threads in [1, 3] {
            let out = s.0.join(name.replace('.', "-"));
            assert!(index_every(&capture, &out, threads, EVERY));
            let index = fs::read(path_of(&capture)).unwrap();
            let same = before.replace(index.clone()).is_none_or(|before| before == index);
            assert!(same, "{name} with {threads} threads");
        }
        check_every(&capture, &s.0.join(name.replace('.', "-")), 9);
        // Damage at the beginning of the file does not affect packets after a restart point.
        let out = s.0.join(name.replace('.', "-"));
        let mut index = Index::open(&capture).unwrap();
        let total = index.total();
        let conns = rows(&out.join("conn.log"));
        let lists = conns.iter().map(|row| index.packets(row["uid"].as_bytes()).unwrap().unwrap());
        let last = lists.filter(|list| list[0] > total / 2).max_by_key(|list| list[0]).unwrap();
        let mut packed = fs::read(&capture).unwrap();
        let at = packed.len() / 20;
        packed[at..at + 64].fill(0xff);
        fs::write(&capture, &packed).unwrap();
        let mut read = Vec::new();
        let result = Slices::new(&capture, &mut index).read(&last, |p: &Packet<'_>| {
            read.push(p.number);
            Ok::<_, Error>(())
        });
        assert_eq!(result.is_ok() && read == last, has_points, "{name}: {result:?}");
    }
}

#[test]
fn any_number_of_threads_makes_the_same_index() {
    let s = Scratch::new("index-threads");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("GANNET_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let mut captures = vec![s.traffic("a.pcap"), root.join("examples/sample.pcap")];
    for name in ["tunnels", "ipv4", "fragment", "icmp", "teredo", "gre", "vxlan", "geneve"] {
        let folder = shared.join("conformance/captures/zeek");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        captures.extend(entries.map(|e| e.path()).filter(|p| {
            p.is_file() && p.file_name().is_some_and(|n| n.to_string_lossy().contains(name))
        }));
    }
    eprintln!("{} captures", captures.len());
    for capture in captures {
        let copy = s.0.join("copy");
        fs::copy(&capture, &copy).unwrap();
        let mut before = None;
        for threads in [1, 3] {
            if !index(&copy, &s.0.join("out"), threads) {
                continue;
            }
            let bytes = fs::read(path_of(&copy)).unwrap();
            let same = before.replace(bytes.clone()).is_none_or(|before| before == bytes);
            assert!(same, "{} with {threads} threads", capture.display());
        }
    }
}

#[test]
fn an_index_that_does_not_fit_is_refused() {
    let s = Scratch::new("index-fit");
    let capture = s.traffic("a.pcap");
    let missing = Index::open(&capture).unwrap_err().to_string();
    assert!(missing.contains("has no index; create it with: gannet index "), "{missing}");
    assert!(index(&capture, &s.0.join("out"), 1));
    Index::open(&capture).unwrap();
    let mut bytes = fs::read(&capture).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&capture, bytes).unwrap();
        Index::open(&capture).unwrap_err().to_string()
    };
    assert!(refused(&bytes[..bytes.len() - 1]).contains("has shrunk"));
    bytes[100] ^= 1;
    assert!(refused(&bytes).contains("has changed"));
    bytes.push(0);
    assert!(refused(&bytes).contains("has grown"));
}

/// An IPv4 packet, in an Ethernet frame unless it is nested.
fn ip(protocol: u8, (src, dst): ([u8; 4], [u8; 4]), fragment: u16, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let flags = fragment.to_be_bytes();
    let head = [0x45, 0, len[0], len[1], 0, 7, flags[0], flags[1], 64, protocol, 0, 0];
    [&head[..], &src, &dst, payload].concat()
}

fn udp(from: u16, to: u16, len: u16) -> Vec<u8> {
    [from, to, 8 + len, 0].iter().flat_map(|v| v.to_be_bytes()).collect()
}

#[test]
fn fragments_tunnels_and_errors_are_found() {
    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];
    let (inner, outer) = (([172, 16, 0, 1], [172, 16, 0, 2]), ([10, 1, 0, 1], [10, 1, 0, 2]));
    let first = ip(17, (A, B), 0, &[&udp(1000, 2000, 4)[..], &[1; 4]].concat());
    let quote = [&[3, 3, 0, 0, 0, 0, 0, 0][..], &first[..28]].concat();
    let packets = [
        first,
        // The first 16 bytes of a datagram of 32 bytes; the rest follows after another packet.
        ip(17, (A, B), 0x2000, &[&udp(1000, 2000, 24)[..], &[2; 8]].concat()),
        ip(17, ([10, 0, 0, 3], B), 0, &[&udp(5, 6, 4)[..], &[3; 4]].concat()),
        ip(17, (A, B), 2, &[4; 16]),
        // A router reports that the first packet was not delivered.
        ip(1, ([10, 0, 9, 9], A), 0, &quote),
        ip(4, outer, 0, &ip(17, inner, 0, &[&udp(7, 8, 4)[..], &[5; 4]].concat())),
    ];
    let s = Scratch::new("index-inner");
    let capture = s.0.join("a.pcap");
    let mut writer = Writer::create(&capture, WriteOptions::default()).unwrap();
    for (n, packet) in packets.iter().enumerate() {
        let data = [&[0; 12][..], &[8, 0], packet].concat();
        let packet = Packet {
            time: gannet_base::Time::from_secs(1_700_000_000 + n as i64),
            wire_len: data.len() as u32,
            link_type: gannet_capture::LinkType::ETHERNET,
            interface: 0,
            format: gannet_capture::Format::Pcap,
            number: n as u64 + 1,
            data: &data,
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
    for threads in [1, 3] {
        let out = s.0.join("out");
        assert!(index(&capture, &out, threads));
        let mut index = Index::open(&capture).unwrap();
        let conns = rows(&out.join("conn.log"));
        let mut packets = |host: &str, column: &str| {
            let row = conns.iter().find(|row| row["id.orig_h"] == host).unwrap();
            index.packets(row[column].as_bytes()).unwrap()
        };
        assert_eq!(packets("10.0.0.1", "uid"), Some(vec![1, 2, 4, 5]));
        assert_eq!(packets("10.0.0.3", "uid"), Some(vec![3]));
        assert_eq!(packets("10.0.9.9", "uid"), Some(vec![5]));
        assert_eq!(packets("172.16.0.1", "uid"), Some(vec![6]));
        assert_eq!(packets("172.16.0.1", "tunnel_parents"), Some(vec![6]));
    }
}
