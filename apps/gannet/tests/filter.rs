//! `gannet filter`: packets in, those that match out.

mod support;

use support::Run;
use support::Scratch;
use support::gannet;
use support::sample;

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
fn a_wrong_filter_is_shown_where_it_is_wrong() {
    let s = Scratch::new("wrong");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["filter", "-c", "udp prot 53"]).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert!(run.stderr.contains('^'), "{}", run.stderr);
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

/// What `gannet filter compile` prints.
fn compiled(args: &[&str]) -> String {
    let run = Run::of(gannet().args(["filter", "compile"]).args(args));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    run.stdout
}

#[test]
fn every_stage_of_a_filter_can_be_looked_at() {
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
    let run = Run::of(gannet().args(["filter", "compile", "-y", "none", "ip"]));
    assert!(run.code != 0 && run.stderr.contains("'none' is no link type"), "{}", run.stderr);
}
