//! dnsjit's scripts, unmodified: its ten tests, where its source lies beside the project or where
//! `DNSJIT_SOURCE` points; and what its modules do here with packets that it stumbles over.

#![allow(clippy::unwrap_used)]
#![cfg(feature = "lua")]

mod support;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use gannet_base::Time;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use support::Run;
use support::gannet;

const TESTS: [&str; 10] = [
    "test1",
    "test2",
    "test3",
    "test4",
    "test6",
    "test-ipsplit",
    "test-trie",
    "test-base64url",
    "test-padding",
    "test-sll2",
];

#[test]
fn dnsjits_own_tests_pass() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/dnsjit");
    let source = std::env::var_os("DNSJIT_SOURCE").map_or_else(|| beside.into(), PathBuf::from);
    let tests = source.join("src/test");
    if !tests.join("test1.sh").is_file() {
        eprintln!("skipped: no source of dnsjit in {} (set DNSJIT_SOURCE)", source.display());
        return;
    }
    let folder = std::env::temp_dir().join(format!("gannet-dnsjit-{}", std::process::id()));
    let run = folder.join("test");
    fs::create_dir_all(&run).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gannet"), folder.join("dnsjit")).unwrap();
    for entry in fs::read_dir(&tests).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if [".pcap", ".lz4", ".zst", ".xz", ".gz"].iter().any(|s| name.ends_with(s)) {
            fs::copy(&path, run.join(format!("{name}-dist"))).unwrap();
        }
    }
    let mut failed = Vec::new();
    for test in TESTS {
        let mut shell = Command::new("sh");
        shell.arg("-e").arg(tests.join(format!("{test}.sh"))).current_dir(&run);
        let result = Run::of(shell.env("srcdir", fs::canonicalize(&tests).unwrap()));
        if result.code != 0 {
            failed.push(format!("{test}: {}{}", result.stdout, result.stderr));
        }
    }
    fs::remove_dir_all(folder).unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A capture of these frames, a second and a half and some nanoseconds apart.
struct Frames(PathBuf);

impl Frames {
    fn new(name: &str, frames: &[&[u8]]) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}.pcap", std::process::id()));
        let options = WriteOptions { precision: Some(Precision::Nanos), ..WriteOptions::default() };
        let mut writer = Writer::create(&path, options).unwrap();
        for (index, data) in frames.iter().enumerate() {
            writer
                .write(&Packet {
                    time: Time::from_nanos(1_000_123_456_789 + 20_000_000 * index as i64),
                    wire_len: data.len() as u32,
                    link_type: LinkType::ETHERNET,
                    interface: 0,
                    number: index as u64 + 1,
                    data,
                })
                .unwrap();
        }
        writer.finish().unwrap();
        Self(path)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap_or_default();
    }
}

/// What a script prints that finds `layer`, `object` and `produce` over these frames at hand.
fn over(name: &str, frames: &[&[u8]], text: &str) -> String {
    let capture = Frames::new(name, frames);
    let begin = "local object = require('dnsjit.core.objects')\n\
                 local input = require('dnsjit.input.mmpcap').new()\n\
                 local layer = require('dnsjit.filter.layer').new()\n\
                 assert(input:open(arg[2]) == 0)\nlayer:producer(input)\n\
                 local produce, ctx = layer:produce()\n";
    let mut command = gannet();
    command.arg("run").arg("-").arg(&capture.0);
    let run = Run::with_input(&mut command, format!("{begin}{text}").as_bytes());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

fn ethernet(rest: &[&[u8]]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &rest.concat()].concat()
}

fn udp4(payload: &[u8]) -> Vec<u8> {
    let len = 28 + payload.len() as u8;
    let ip = [0x45, 0, 0, len, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[4, 0, 0, 53, 0, len - 20, 0, 0], payload].concat()
}

const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04a\xc8.b\0\0\x01\0\x01";

#[test]
fn nanoseconds_are_nanoseconds() {
    let frame = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local p = produce(ctx):cast_to(object.PCAP)\n\
                print(tonumber(p.ts.sec), tonumber(p.ts.nsec), input:packets())";
    assert_eq!(over("nanos", &[&frame], text), "1000\t123456789\t1\n");
}

#[test]
fn vlans_in_vlans_are_read_and_ids_have_twelve_bits() {
    let tags = [0x88, 0xa8, 0x2a, 0xbc, 0x81, 0, 0x00, 0x07, 8, 0];
    let frame = ethernet(&[&tags, &udp4(QUERY)]);
    let text = "local o = produce(ctx)\nprint(o:type())\n\
                local inner = o:cast_to(object.IEEE802)\nprint(inner.vid)\n\
                print(inner:prev():cast().vid, inner:prev():cast().pcp)";
    assert_eq!(over("qinq", &[&frame], text), "payload\n7\n2748\t1\n");
}

#[test]
fn an_odd_packet_does_not_end_the_stream() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let many_tags = ethernet(&[&[0x81, 0, 0, 1].repeat(9), &[8, 0]]);
    let short = [1, 2, 3];
    let text = "local n = 0\nwhile produce(ctx) ~= nil do n = n + 1 end print(n)";
    let mut fragments = vec![0x60, 0, 0, 0, 0, 16, 44, 64];
    fragments.extend_from_slice(&[0; 32]);
    fragments.extend_from_slice(&[44, 0, 0, 1, 0, 0, 0, 1, 17, 0, 0, 1, 0, 0, 0, 1]);
    let fragments = ethernet(&[&[0x86, 0xdd], &fragments]);
    let frames = [&good[..], &many_tags, &short, &fragments, &[], &good];
    assert_eq!(over("odd", &frames, text), "6\n");
}

#[test]
fn an_empty_payload_is_no_header_and_no_end() {
    let empty = ethernet(&[&[8, 0], &udp4(&[])]);
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local dns = require('dnsjit.core.object.dns').new()\nwhile true do\n\
                local o = produce(ctx) if o == nil then break end\n\
                dns:reset() dns.obj_prev = o print(dns:parse_header(), dns.have_id, dns.id) end";
    assert_eq!(over("empty", &[&empty, &good], text), "-2\t0\t0\n0\t1\t4660\n");
}

#[test]
fn escapes_are_decimal() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let text = "local Dns = require('dnsjit.core.object.dns')\nlocal dns = Dns.new(produce(ctx))\n\
                local label = require('dnsjit.core.object.dns.label')\n\
                local labels, q = label.new(16), require('dnsjit.core.object.dns.q').new()\n\
                assert(dns:parse_header() == 0 and dns:parse_q(q, labels, 16) == 0)\n\
                print((label.torfc1035(dns, labels, 16)), Dns.type_tostring(65))\n\
                print((label.tooffstr(dns, labels, 16)):byte(1, 4))";
    assert_eq!(over("rfc1035", &[&good], text), "a\\200\\.b.\tHTTPS\n60\t49\t50\t62\n");
}

#[test]
fn timing_adds_nothing_up_and_counts_fractions() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let frames = vec![&good[..]; 6];
    // 5 gaps of 20 ms, at half: 50 ms.
    let text = "local timing = require('dnsjit.filter.timing').new()\ntiming:multiply(0.5)\n\
                timing:producer(layer)\nlocal p, c = timing:produce()\n\
                local clock = require('dnsjit.lib.clock')\nlocal s, n = clock:monotonic()\n\
                while p(c) ~= nil do end\nlocal t, m = clock:monotonic()\n\
                local took = tonumber(t - s) + tonumber(m - n) / 1e9\n\
                print(took >= 0.05 and took < 0.5, took >= 0.05 or took)";
    assert_eq!(over("timing", &frames, text), "true\ttrue\n");
}

#[test]
fn a_full_channel_says_so_and_loses_nothing() {
    let text = "local channel = require('dnsjit.core.channel').new(4)\n\
                local o = produce(ctx):uncast()\n\
                for i = 1, 4 do channel:put(o) end\n\
                print(channel:full(), pcall(channel.put, channel, o))\n\
                local n = 0 while channel:get() ~= nil do n = n + 1 end print(n)";
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let told = over("channel", &[&good], text);
    assert!(told.starts_with("true\tfalse\t") && told.ends_with("\n4\n"), "{told}");
}

#[test]
fn what_scripts_write_is_what_they_read() {
    let good = ethernet(&[&[8, 0], &udp4(QUERY)]);
    let out = std::env::temp_dir().join(format!("gannet-dnsjit-out-{}.pcap", std::process::id()));
    let text = format!(
        "local out = require('dnsjit.output.pcap').new()\n\
         assert(out:open('{}', input:linktype(), input:snaplen()) == 0)\n\
         local recv, rctx = out:receive()\nrecv(rctx, produce(ctx)) out:close()\n\
         print(out:have_errors())",
        out.display()
    );
    assert_eq!(over("write", &[&good], &text), "false\n");
    let mut reader = gannet_capture::Reader::open(&out).unwrap();
    let batch = reader.next_batch().unwrap().unwrap();
    let packet = batch.get(0).unwrap();
    assert_eq!((packet.data, packet.time), (&good[..], Time::from_nanos(1_000_123_456_789)));
    fs::remove_file(Path::new(&out)).unwrap();
}
