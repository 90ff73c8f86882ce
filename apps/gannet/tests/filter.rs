//! `gannet filter`: packets in, those that match out.
#![allow(clippy::unwrap_used)]

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

#[test]
fn matching_packets_are_written_and_counted() {
    let s = Scratch::new("filter");
    let capture = s.file("sample.pcap", &sample());
    let count = |args: &[&str], from: &std::path::Path| {
        let run = Run::of(gannet().args(["filter", "-c"]).args(args).arg(from));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        run.stdout.trim().parse::<u32>().unwrap()
    };
    let all = count(&[""], &capture);
    let dns = count(&["udp port 53"], &capture);
    assert!(dns > 0 && dns < all);
    assert_eq!(count(&["-v", "udp port 53"], &capture), all - dns);

    for name in ["dns.pcap", "dns.pcapng.zst"] {
        let out = s.path(name);
        let run =
            Run::of(gannet().args(["filter", "udp port 53"]).arg(&capture).arg("-w").arg(&out));
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
        assert_eq!(count(&[""], &out), dns);
        assert_eq!(count(&["not udp port 53"], &out), 0);
    }
}

#[test]
fn an_invalid_filter_is_marked_at_the_error() {
    let s = Scratch::new("wrong");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["filter", "-c", "udp prot 53"]).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert!(run.stderr.contains('^') && !run.stderr.contains("is a file"), "{}", run.stderr);
    // The arguments are swapped.
    let run = Run::of(gannet().args(["filter", "-c"]).arg(&capture).arg("udp"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("the filter is the first argument"), "{}", run.stderr);
    // No filter at all.
    for command in [&["filter"][..], &["filter", "verify"]] {
        let run = Run::of(gannet().args(command).arg(&capture));
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("is where the filter is expected"), "{}", run.stderr);
    }
}

#[test]
fn random_packets_come_from_a_seed() {
    let s = Scratch::new("random");
    let make = |name: &str, args: &[&str]| {
        let out = s.path(name);
        let run = Run::of(gannet().args(["synth", "random"]).args(args).arg(&out));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        out
    };
    let of = |seed: &str| make(&format!("{seed}.pcap"), &["-n", "2000", "--seed", seed]);
    let (one, two) = (of("1"), of("2"));
    let again = make("again.pcap", &["-n", "2000", "--seed", "1"]);
    let read = |path: &std::path::Path| std::fs::read(path).unwrap();
    assert!(read(&one) == read(&again) && read(&one) != read(&two));
    let sized = make("sized.pcap", &["--size", "300K", "--ipv6", "0", "--odd", "0"]);
    assert!((300_000..302_000).contains(&read(&sized).len()));
    let count = |filter: &str, from: &std::path::Path| {
        let run = Run::of(gannet().args(["filter", "-c", filter]).arg(from));
        run.stdout.trim().parse::<u32>().unwrap()
    };
    assert_eq!(count("", &one), 2000);
    assert!((300..700).contains(&count("ip and tcp", &one)));
    assert_eq!(count("ip", &sized), count("", &sized));
}

/// The output of `gannet filter compile`.
fn compiled(args: &[&str]) -> String {
    let run = Run::of(gannet().args(["filter", "compile"]).args(args));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    run.stdout
}

#[test]
fn every_stage_of_a_filter_is_printed() {
    let program = "(000) ldh      [12]\n\
                   (001) jeq      #0x86dd          jt 2\tjf 3\n\
                   (002) ret      #262144\n\
                   (003) ret      #0\n";
    assert_eq!(compiled(&["ip6"]), program);
    assert_eq!(compiled(&["-d", "ip6"]), program);
    assert_eq!(compiled(&["-ddd", "ip6"]), "4\n40 0 0 12\n21 0 1 34525\n6 0 0 262144\n6 0 0 0\n");
    assert!(compiled(&["-dd", "ip6"]).starts_with("{ 0x28, 0, 0, 0x0000000c },\n"));
    assert_eq!(compiled(&["--emit", "bpf-c", "ip6"]), compiled(&["-dd", "ip6"]));
    assert!(compiled(&["--snaplen", "96", "ip6"]).contains("ret      #96\n"));
    assert_eq!(compiled(&["--link-type", "IPV6", "ip6"]), "(000) ret      #262144\n");
    assert_eq!(compiled(&["-y", "dlt_raw", "ip6"]), compiled(&["-y", "12", "ip6"]));
    assert_eq!(compiled(&["--emit", "ast", "ip6"]), "proto ip6 @0..3\n");
    assert_eq!(compiled(&["--emit", "predicates", "ip6"]), "packet[12:2] = 0x86dd\n");
    assert_eq!(compiled(&["--emit", "ir", "ip6"]), "b2: packet[12:2] = 0x86dd ? accept : reject\n");
    assert!(compiled(&["--emit", "passes", "ip6"]).contains("the factored graph: the same\n"));
    assert!(compiled(&["--emit", "dot", "ip6"]).starts_with("digraph filter {\n"));
    assert!(compiled(&["--emit", "svg", "ip6"]).starts_with("<svg xmlns="));
    assert!(compiled(&["--emit", "c", "ip6"]).contains("uint32_t filter("));
    let lines = |args: &[&str]| compiled(args).lines().count();
    assert!(lines(&["-O", "ip and ip"]) > lines(&["ip and ip"]));
    assert!(compiled(&["--explain", "ip6"]).starts_with("On DLT_EN10MB (Ethernet), lets through"));
    let scoped = compiled(&["--dialect", "scoped", "vlan 2 or vlan 3"]);
    assert_ne!(scoped, compiled(&["vlan 2 or vlan 3"]));
    let mask = ["--netmask", "255.255.255.0", "ip broadcast"];
    assert!(compiled(&mask).contains("#0xff"));
}

#[test]
fn filters_come_from_files_and_know_lists_and_services() {
    let s = Scratch::new("filter-files");
    let list = s.file("list.txt", b"# ours\n192.0.2.1\n198.51.100.0/24\n");
    let text = format!("host in @{} # those\nand tcp port http", list.display());
    let file = s.file("filter.txt", text.as_bytes());
    let program = compiled(&["-F", file.to_str().unwrap()]);
    assert!(program.contains("#0xc0000201") && program.contains("#0x50"), "{program}");
    let run = Run::of(gannet().args(["filter", "compile", "host in @/nonexistent"]));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("list '/nonexistent': No such file"), "{}", run.stderr);
    let empty = s.file("empty.txt", b"# nobody\n");
    let text = format!("host in @{}", empty.display());
    let run = Run::of(gannet().args(["filter", "compile", &text]));
    assert!(run.code == 2 && run.stderr.contains("the list is empty"), "{}", run.stderr);
    // Link types by number: as DLT_ values and as in capture files.
    assert_eq!(compiled(&["-y", "101", "ip"]), compiled(&["-y", "RAW", "ip"]));
    assert_eq!(compiled(&["-y", "1", "ip"]), compiled(&["ip"]));
    let run =
        Run::of(gannet().args(["filter", "ip", file.to_str().unwrap(), "-w", "/nonexistent/x"]));
    assert_eq!(run.stderr.matches("No such file").count(), usize::from(run.code == 1));
    let run = Run::of(gannet().args(["filter", "compile", "-y", "none", "ip"]));
    assert!(run.code == 2 && run.stderr.contains("'none' is not a link type"), "{}", run.stderr);
    let run = Run::of(gannet().args(["filter", "compile", "-F", "/nonexistent/filter"]));
    assert_eq!(run.code, 2, "{}", run.stderr);
}

#[test]
fn several_filters_in_one_pass() {
    let s = Scratch::new("several");
    let capture = s.file("sample.pcap", &sample());
    let (dns, rest) = (s.path("dns.pcap"), s.path("rest.pcapng.gz"));
    let run = Run::of(
        gannet()
            .args(["filter", "-c", "-e", "udp port 53", "-w"])
            .arg(&dns)
            .args(["-e", "not udp port 53", "-w"])
            .arg(&rest)
            .arg(&capture),
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let of = |filter: &str, file: &std::path::Path| {
        Run::of(gannet().args(["filter", "-c", filter]).arg(file)).stdout
    };
    assert_eq!(run.stdout, of("", &dns) + &of("", &rest));
    assert_eq!(of("udp port 53", &rest), "0\n");

    let run =
        Run::of(gannet().args(["filter", "-e", "udp", "-e", "tcp", "-w"]).arg(&dns).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("each -e needs its own -w"), "{}", run.stderr);
}

/// Writes a pcapng file with one packet of each link type.
fn write_link_types(path: &std::path::Path, types: &[u16]) {
    let options = gannet_capture::WriteOptions::default();
    let mut writer = gannet_capture::Writer::create(path, options).unwrap();
    for (number, link_type) in (1..).zip(types) {
        let packet = gannet_capture::Packet {
            time: gannet_base::Time::from_secs(1_700_000_000 + number as i64),
            wire_len: 60,
            link_type: gannet_capture::LinkType(*link_type),
            interface: u32::from(*link_type),
            format: gannet_capture::Format::PcapNg,
            number,
            data: &[0; 60],
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_filter_that_does_not_apply_to_the_link_type_is_refused() {
    let s = Scratch::new("unanswered");
    let capture = s.file("sample.pcap", &sample());
    let empty = s.file("empty.pcap", &sample()[..24]);
    let ng = s.path("ethernet.pcapng");
    write_link_types(&ng, &[1, 1, 1]);
    let mixed = s.path("mixed.pcapng");
    write_link_types(&mixed, &[1, 113, 1, 113, 113]);
    let out = s.file("out.pcapng", b"old");
    let raw = s.file("raw.pcap", &{
        let mut bytes = sample()[..24].to_vec();
        bytes[20] = 101;
        bytes
    });
    let refused = |run: Run, why: &str| {
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(s.read("out.pcapng"), "old");
    };
    let live = "not a live capture, 'inbound' not supported on";
    let all = "expression rejects all packets";
    for file in [&capture, &empty, &ng] {
        for (filter, why) in [("inbound", live), ("arp and ip", all)] {
            refused(Run::of(gannet().args(["filter", filter]).arg(file).arg("-w").arg(&out)), why);
            refused(Run::of(gannet().args(["filter", "-c", filter]).arg(file)), why);
            let mut run = gannet();
            run.args(["analyze", "--filter", filter]).arg(file).arg("-o").arg(s.path("logs"));
            refused(Run::of(&mut run), why);
            let mut run = gannet();
            run.args(["replay", "--to", "127.0.0.1:9", "--filter", filter]).arg(file);
            refused(Run::of(&mut run), why);
        }
    }
    let vlan = "'vlan' not supported on";
    refused(Run::of(gannet().args(["filter", "-c", "vlan"]).arg(&raw)), vlan);
    // A pipe is refused at its first packet, not at its end.
    let run = Run::with_input(gannet().args(["filter", "-c", "inbound", "-"]), &sample());
    refused(run, live);

    // With several link types, packets of those that the filter does not apply to are counted.
    let run = Run::of(gannet().args(["filter", "-c", "inbound"]).arg(&mixed).arg("-w").arg(&out));
    assert_eq!((run.code, run.stdout.as_str()), (0, "3\n"), "{}", run.stderr);
    assert!(
        run.stderr.starts_with("warning: the filter does not apply to 2 of 5 packets"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(live) && run.stderr.lines().count() == 1, "{}", run.stderr);
    for threads in ["1", "3"] {
        let mut run = gannet();
        run.args(["analyze", "-t", threads, "--filter", "inbound"])
            .arg(&mixed)
            .arg("-o")
            .arg(s.path("logs"));
        let run = Run::of(&mut run);
        assert!(run.code == 0 && run.stderr.contains("to 2 of 5 packets"), "{}", run.stderr);
    }
    // A filter that applies, but matches no packet, is no error.
    let run = Run::of(gannet().args(["filter", "-c", "port 1"]).arg(&capture));
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "0\n", ""));
}

#[test]
fn the_input_is_not_overwritten_under_any_name() {
    let s = Scratch::new("same-file");
    let capture = s.file("in/s.pcap", &sample());
    let link = |name: &str| s.path(&format!("in/{name}"));
    std::fs::hard_link(&capture, link("hard.pcap")).unwrap();
    std::os::unix::fs::symlink("s.pcap", link("soft.pcap")).unwrap();
    std::fs::hard_link(&capture, link("part-0001.pcap")).unwrap();
    let refused = |run: Run| {
        assert!(run.code != 0 && run.stdout.is_empty(), "{}", run.stderr);
        assert!(run.stderr.contains("is the same file as the input"), "{}", run.stderr);
        assert!(std::fs::read(&capture).unwrap() == sample());
        let names = ["hard.pcap", "part-0001.pcap", "s.pcap", "soft.pcap"];
        assert_eq!(s.list("in"), names, "nothing is left behind");
    };
    for name in ["s.pcap", "hard.pcap", "soft.pcap", "../in/hard.pcap"] {
        refused(Run::of(gannet().args(["filter", "udp", "-w"]).arg(link(name)).arg(&capture)));
        // The same with a folder or standard input as the input.
        refused(Run::of(gannet().args(["filter", "udp", "-w"]).arg(link(name)).arg(s.path("in"))));
        let stdin = std::fs::File::open(&capture).unwrap();
        refused(Run::of(gannet().args(["filter", "udp", "-", "-w"]).arg(link(name)).stdin(stdin)));
    }
    let split = ["filter", "", "--split", "9", "packets", "-w"];
    refused(Run::of(gannet().args(split).arg(link("part.pcap")).arg(&capture)));
    let list = s.file("list.txt", b"a.test A\n");
    for output in ["--svg", "--differences"] {
        let compare = ["--compare", "127.0.0.1:1"];
        let to = ["replay", "--to", "127.0.0.1:1"];
        let run = Run::of(
            gannet().args(to).args(compare).arg("--list").arg(&list).arg(output).arg(&list),
        );
        assert_eq!((run.code, s.read("list.txt").as_str()), (2, "a.test A\n"), "{}", run.stderr);
    }
    std::fs::hard_link(&capture, s.path("conn.log")).unwrap();
    refused(Run::of(gannet().arg("analyze").arg(&capture).arg("-o").arg(s.path(""))));
}

#[test]
fn output_replaces_one_hard_link_only() {
    let s = Scratch::new("replaced");
    let capture = s.file("s.pcap", &sample());
    let other = s.file("old.pcap", b"old");
    std::fs::hard_link(&other, s.path("out.pcap")).unwrap();
    std::fs::hard_link(&other, s.path("conn.log")).unwrap();
    let run =
        Run::of(gannet().args(["filter", ""]).arg(&capture).arg("-w").arg(s.path("out.pcap")));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(std::fs::read(s.path("out.pcap")).unwrap() == sample());
    s.analyze("", &[], &capture);
    assert!(s.read("conn.log").contains("#path\tconn"));
    assert_eq!(std::fs::read(&other).unwrap(), b"old");

    // A failure leaves the old file: pcap cannot hold a second link type.
    let raw = s.path("raw.pcapng");
    let options = gannet_capture::WriteOptions {
        link_type: Some(gannet_capture::LinkType::RAW),
        ..Default::default()
    };
    let mut writer = gannet_capture::Writer::create(&raw, options).unwrap();
    let packet = gannet_capture::Packet {
        time: gannet_base::Time::from_secs(2_000_000_000),
        wire_len: 1,
        link_type: gannet_capture::LinkType::RAW,
        interface: 0,
        format: gannet_capture::Format::Pcap,
        number: 1,
        data: b"E",
    };
    writer.write(&packet).unwrap();
    writer.finish().unwrap();
    let before = s.list("");
    let run = Run::of(gannet().args(["filter", "", "-w"]).arg(&other).arg(&capture).arg(&raw));
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(std::fs::read(&other).unwrap() == b"old");
    assert_eq!(s.list(""), before);
}

#[test]
fn captures_are_split() {
    let s = Scratch::new("split");
    let capture = s.file("sample.pcap", &sample());
    let count = |file: &std::path::Path| -> usize {
        Run::of(gannet().args(["filter", "-c", ""]).arg(file)).stdout.trim().parse().unwrap()
    };
    let all = count(&capture);
    for (n, unit, suffix) in [("7", "packets", "gz"), ("1", "kB", "pcap"), ("1", "s", "pcapng")] {
        let folder = s.path(&format!("by-{unit}"));
        std::fs::create_dir(&folder).unwrap();
        let out = folder.join(format!("part.{suffix}"));
        let run = Run::of(
            gannet().args(["filter", "--split", n, unit, ""]).arg(&capture).arg("-w").arg(&out),
        );
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        let parts = std::fs::read_dir(&folder).unwrap().count();
        assert!(parts > 1, "{unit}");
        assert_eq!(count(&folder), all, "{unit}");
        let first = count(&folder.join(format!("part-0001.{suffix}")));
        match unit {
            "packets" => assert_eq!((first, parts), (7, all.div_ceil(7))),
            _ => assert!(first > 0 && first < all, "{unit}"),
        }
    }
    let run = Run::of(
        gannet().args(["filter", "--split", "1", "ell", ""]).arg(&capture).args(["-w", "x"]),
    );
    assert_eq!(run.code, 2);
}

/// A pcap file with microseconds is written unchanged, as by tcpdump.
#[test]
fn records_are_copied_unchanged() {
    let s = Scratch::new("records");
    let capture = s.file("sample.pcap", &sample());
    let out = s.path("all.pcap");
    let run = Run::of(gannet().args(["filter", ""]).arg(&capture).arg("-w").arg(&out));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(std::fs::read(&out).unwrap() == sample());
}

/// A pcapng block.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = [&kind.to_le_bytes()[..], &len.to_le_bytes(), body].concat();
    block.resize(len as usize - 4, 0);
    [&block[..], &len.to_le_bytes()].concat()
}

/// Blocks and options of a section and of matching packets are copied unchanged; other packets are left out.
#[test]
fn blocks_of_pcapng_are_copied_unchanged() {
    let s = Scratch::new("blocks");
    let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let comment = |text: &str| {
        [
            &[1, 0, text.len() as u8, 0][..],
            text.as_bytes(),
            &[0; 3][..(4 - text.len() % 4) % 4],
            &[0; 4],
        ]
        .concat()
    };
    let section = block(
        0x0a0d_0d0a,
        &[words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]), comment("of all")].concat(),
    );
    let interface =
        block(1, &[words(&[1, 0]), vec![2, 0, 4, 0], b"eth0".to_vec(), vec![0; 4]].concat());
    let frame = |port: u16| {
        let mut f = vec![2; 12];
        f.extend(b"\x08\0\x45\0\0\x1d\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02");
        f.extend(port.to_be_bytes());
        f.extend(b"\0\x35\0\x09\0\0x");
        f
    };
    let packet = |port, n: u32, text: &str| {
        let f = frame(port);
        let padding = vec![0; (4 - f.len() % 4) % 4];
        let head = words(&[0, 0, n, f.len() as u32, f.len() as u32]);
        block(6, &[head, f, padding, comment(text)].concat())
    };
    let names = block(4, b"\x01\0\x06\0\x0a\0\0\x02b\0\0\0\0\0\0\0");
    let secrets = block(10, &[words(&[0x544c_534b, 4]), b"KEY ".to_vec()].concat());
    let simple = block(3, &[words(&[43]), frame(1)].concat());
    let statistics = block(5, &words(&[0, 0, 9]));
    let all = [
        &section,
        &interface,
        &names,
        &packet(1, 1, "kept"),
        &secrets,
        &packet(2, 2, "not"),
        &simple,
        &statistics,
    ];
    let kept: Vec<_> =
        all.iter().enumerate().filter(|(n, _)| *n != 5).map(|(_, b)| (**b).clone()).collect();
    let capture = s.file("all.pcapng", &all.map(|b| b.clone()).concat());
    let out = s.path("some.pcapng");
    let run = Run::of(gannet().args(["filter", "port 1"]).arg(&capture).arg("-w").arg(&out));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(std::fs::read(&out).unwrap() == kept.concat());
    // pcap cannot store them, which is reported.
    let run = Run::of(
        gannet().args(["filter", "port 1"]).arg(&capture).arg("-w").arg(s.path("some.pcap")),
    );
    assert_eq!(run.code, 0);
    assert!(run.stderr.starts_with("note: pcap cannot store"), "{}", run.stderr);
    // Each file of a split capture has the preceding blocks of its section.
    let part = s.path("part.pcapng");
    let run = Run::of(
        gannet()
            .args(["filter", "--split", "1", "packets", "port 1"])
            .arg(&capture)
            .arg("-w")
            .arg(&part),
    );
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let second =
        [&section, &interface, &names, &secrets, &simple, &statistics].map(|b| b.clone()).concat();
    assert!(std::fs::read(s.path("part-0002.pcapng")).unwrap() == second);
}

#[test]
fn all_engines_are_compared_with_the_interpreter() {
    let s = Scratch::new("verify");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["filter", "verify", "tcp port 80 or udp"]).arg(&capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    for engine in ["interp", "jit", "batch", "linux", "libpcap"] {
        assert!(run.stdout.contains(engine), "{}", run.stdout);
    }
    let run = Run::of(gannet().args(["filter", "bench", "--rounds", "2", "udp"]).arg(&capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains("ns/packet"), "{}", run.stdout);
}

#[test]
fn loaded_programs_are_checked_by_the_kernels_rules() {
    let s = Scratch::new("load");
    let capture = s.file("sample.pcap", &sample());
    let program = Run::of(gannet().args(["filter", "compile", "-ddd", "udp port 53"])).stdout;
    let program = s.file("dns.bpf", program.as_bytes());
    let count = |args: &[&std::ffi::OsStr]| {
        Run::of(gannet().args(["filter", "-c"]).args(args).arg(&capture)).stdout
    };
    let loaded = count(&["--load".as_ref(), program.as_os_str()]);
    assert_eq!(loaded, count(&["udp port 53".as_ref()]));
    let run = Run::of(gannet().args(["filter", "verify", "--load"]).arg(&program).arg(&capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));

    let wrong = s.file("wrong.bpf", b"ld M[3]\nret #1\n");
    let run = Run::of(gannet().args(["filter", "-c", "--load"]).arg(&wrong).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("scratch word that was not written"), "{}", run.stderr);
}

#[test]
fn libpcaps_tests_are_answered() {
    let speak = |args: &[&str]| Run::of(gannet().args(["filter", "test-protocol"]).args(args));
    assert_eq!(speak(&["-h"]).code, 0);
    let run = speak(&["-O", "-s", "96", "RAW", "ip"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stdout.starts_with("(000) ") && run.stdout.contains("ret      #96"),
        "{}",
        run.stdout
    );
    let run = speak(&["EN10MB", "tcp prot 80"]);
    assert_eq!(run.code, 65);
    assert!(run.stderr.contains("syntax error"), "{}", run.stderr);
    assert_eq!(speak(&["-r", "/nonexistent/file", "ip"]).code, 66);
}
