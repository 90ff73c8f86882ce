//! Indexes of whole captures: the packets of each connection are as many as conn.log counts, the same for any number of
//! threads, and come out as they lie in the capture.
// Tests may unwrap and print; the lints know that only of functions that are tests themselves.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
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

/// A folder that goes away with the test.
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

/// Analyses a capture with an index, into a folder. `false` if it is no capture.
fn index(capture: &Path, out: &Path, threads: usize) -> bool {
    fs::create_dir_all(out).unwrap();
    let builder = Arc::new(Builder::default());
    let logs = gannet_log::Options { dir: Some(out.to_owned()), ..Default::default() };
    let index: Arc<Builder> = builder.clone();
    let options = Options { threads, logs, index: Some(index), ..Options::default() };
    let options = Options { ignore_checksums: true, ..options };
    let stream = Stream::open(&[capture.to_owned()], gannet_capture::Options::default());
    let Ok(mut stream) = stream else { return false };
    let mut engine = Engine::new(options);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                engine.batch(&batch).unwrap();
                builder.batch(&batch, batch.position());
            }
            Ok(None) => break,
            // Everything before the damage counts.
            Err(_) => {}
        }
    }
    engine.finish().unwrap();
    builder.write(capture).unwrap();
    true
}

/// Each row of a log as its columns by name.
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

/// All packets of a capture as time and bytes.
fn all(capture: &Path) -> Vec<(i64, Vec<u8>)> {
    let options = gannet_capture::Options::default();
    let mut stream = Stream::open(&[capture.to_owned()], options).unwrap();
    let mut packets = Vec::new();
    while let Ok(Some(batch)) = stream.next_batch() {
        packets.extend(batch.iter().map(|p| (p.time.as_nanos(), p.data.to_vec())));
    }
    packets
}

fn check(capture: &Path, out: &Path) {
    let packets = all(capture);
    let mut index = Index::open(capture).unwrap();
    assert_eq!(index.total(), packets.len() as u64);
    let conns = rows(&out.join("conn.log"));
    assert!(conns.len() > 100);
    for row in conns {
        let numbers = index.packets(row["uid"].as_bytes()).unwrap().unwrap();
        let count = |name: &str| row[name].parse::<usize>().unwrap();
        assert_eq!(numbers.len(), count("orig_pkts") + count("resp_pkts"), "{row:?}");
        let mut read = Vec::new();
        Slices::new(capture, &mut index)
            .read(&numbers, |p: &Packet<'_>| {
                read.push(p.number);
                let was = &packets[p.number as usize - 1];
                assert_eq!((p.time.as_nanos(), p.data), (was.0, &was.1[..]));
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
    assert!(missing.contains("has no index: gannet index "), "{missing}");
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
