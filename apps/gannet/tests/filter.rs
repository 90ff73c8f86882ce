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
