use gannet_event::Command;

use super::*;
use crate::testing::Harness;

fn weird(h: &mut Harness, at: i64, name: &'static str) {
    h.now = Time::from_secs(at);
    h.env.weirds.check_suppressed(h.now);
    h.cx().weird(name, "", Some("TCP"));
}

#[test]
fn one_row_within_ten_minutes() {
    let mut h = Harness::new(Proto::Tcp, 80);
    for at in [10, 11, 610, 611] {
        weird(&mut h, at, "inappropriate_FIN");
    }
    weird(&mut h, 12, "TCP_christmas");
    let rows = h.rows("weird");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["name"], "inappropriate_FIN");
    assert_eq!(rows[0]["ts"], "10.000000");
    assert_eq!(rows[0]["source"], "TCP");
    assert_eq!(rows[0]["addl"], "-");
    assert_eq!(rows[0]["peer"], "zeek");
    assert_eq!(rows[1]["ts"], "611.000000");
}

#[test]
fn a_check_drops_old_reports() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let env = &mut h.env;
    let at = |seconds: f64| Time::from_nanos((seconds * 1e9) as i64);
    let mut raise_at = |seconds: f64, look: bool| {
        if look {
            env.weirds.check_suppressed(at(seconds));
        }
        env.weirds.net(&mut env.logs, at(seconds), "truncated_ARP", "");
    };
    raise_at(100.5, true);
    // Times are in whole seconds since the first check, so this counts as 100.5.
    raise_at(101.4, false);
    for (seconds, look) in [(700.5, true), (705.0, false), (709.0, false), (710.5, true)] {
        raise_at(seconds, look);
    }
    raise_at(1_310.5, true);
    raise_at(1_311.4, true);
    let times: Vec<_> = h.rows("weird").iter().map(|r| r["ts"].clone()).collect();
    assert_eq!(times, ["100.500000", "710.500000", "1311.400000"]);
}

#[test]
fn details_are_bytes() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.cx().weird_bytes("unknown_HTTP_method", b"\xffGET", None);
    assert_eq!(h.rows("weird")[0]["addl"], "\\xffGET");
}

#[test]
fn some_names_once_an_originator_or_never() {
    let mut h = Harness::new(Proto::Tcp, 80);
    weird(&mut h, 10, "SYN_with_data");
    h.conn.id.resp_p = 81;
    weird(&mut h, 11, "SYN_with_data");
    weird(&mut h, 11, "spontaneous_RST");
    h.conn.id.orig_h = Addr::v4([10, 0, 0, 2]);
    weird(&mut h, 12, "SYN_with_data");
    assert_eq!(h.rows("weird").len(), 2);
}

#[test]
fn a_few_make_notices() {
    let mut h = Harness::new(Proto::Tcp, 80);
    weird(&mut h, 10, "FIN_storm");
    weird(&mut h, 700, "FIN_storm");
    assert_eq!(h.rows("weird").len(), 1);
    assert_eq!(h.rows("weird")[0]["notice"], "T");
    let notices = h.rows("notice");
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0]["note"], "Weird::Activity");
    assert_eq!(notices[0]["msg"], "FIN_storm");
    assert_eq!(notices[0]["proto"], "tcp");
}

#[test]
fn loud_ones_are_sampled() {
    let mut h = Harness::new(Proto::Tcp, 80);
    // The row at 599 suppresses up to 1199; the 26th weird at 599 begins sampling, also up to 1199.
    for _ in 0..26 {
        weird(&mut h, 599, "TCP_christmas");
    }
    weird(&mut h, 1199, "TCP_christmas");
    assert_eq!(h.rows("weird").len(), 1);
    weird(&mut h, 1200, "TCP_christmas");
    assert_eq!(h.rows("weird").len(), 2);
}

#[test]
fn packets_are_sampled_from_the_first_on() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let env = &mut h.env;
    for at in [vec![0; 30], vec![599; 30], vec![601, 602]].concat() {
        env.weirds.check_suppressed(Time::from_secs(at));
        env.weirds.net(&mut env.logs, Time::from_secs(at), "truncated_ARP", "");
    }
    let rows = h.rows("weird");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["ts"], "601.000000");
}

#[test]
fn two_hosts_have_one_window_of_sampling() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let (a, b) = (Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2]));
    let what = |name| PacketWeird { name, addl: "", source: Some("IP"), in_tunnel: false };
    let env = &mut h.env;
    env.weirds.flow(&mut env.logs, Time::from_secs(10), a, b, &what("truncated_header"));
    // Thirty weirds at 500, then thirty at 610, when the window that began at 10 is over: the 26th
    // of these and all later ones are sampled out, until the window that began at 610 is over, too.
    for at in [vec![500; 30], vec![610; 30], vec![1_109, 1_209, 1_210]].concat() {
        env.weirds.check_suppressed(Time::from_secs(at));
        env.weirds.flow(&mut env.logs, Time::from_secs(at), a, b, &what("ipv6_no_next"));
    }
    let rows: Vec<_> =
        h.rows("weird").iter().map(|r| (r["name"].clone(), r["ts"].clone())).collect();
    let reported = |name: &str, at: &str| (name.to_owned(), at.to_owned());
    assert_eq!(
        rows,
        [
            reported("truncated_header", "10.000000"),
            reported("ipv6_no_next", "500.000000"),
            reported("ipv6_no_next", "1210.000000"),
        ]
    );
}

#[test]
fn scripts_say_which_are_left_out() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("conn_weird");
    let left = |h: &mut Harness| {
        (0..6).for_each(|_| weird(h, 10, "inappropriate_FIN"));
        h.events().len()
    };
    assert_eq!(left(&mut h), 6);
    for (name, value) in [("Weird::sampling_threshold", 7), ("Weird::sampling_rate", 2)] {
        h.env.apply_command(h.now, Command::Setting { name, value });
    }
    // The seventh, the ninth and the eleventh.
    assert_eq!(left(&mut h), 3);
    let names = [vec!["inappropriate_FIN".to_owned()], Vec::new()];
    let [exempt, global] = names.clone();
    h.env.apply_command(h.now, Command::WeirdNames { exempt, global });
    assert_eq!(left(&mut h), 6);
    let [global, exempt] = names;
    h.env.apply_command(h.now, Command::WeirdNames { exempt, global });
    assert_eq!(left(&mut h), 6);
    // The seventh, the ninth and the eleventh of all connections.
    assert_eq!(left(&mut h), 3);
}

#[test]
fn hosts_packets_and_files() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let (a, b) = (Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2]));
    let mut what =
        PacketWeird { name: "truncated_IP", addl: "", source: Some("IP"), in_tunnel: true };
    let env = &mut h.env;
    env.weirds.flow(&mut env.logs, h.now, a, b, &what);
    env.weirds.flow(&mut env.logs, h.now, a, b, &what);
    what.in_tunnel = false;
    env.weirds.packet(&mut env.logs, h.now, &what);
    let fuid = gannet_base::UidSource::new(0).file(h.conn.uid, 0);
    let mut odd = FileWeirdSeen {
        fuid,
        name: "odd_file",
        addl: "detail",
        source: None,
        is_sampled_out: true,
    };
    env.weirds.file(&mut env.logs, h.now, &odd);
    odd.is_sampled_out = false;
    env.weirds.file(&mut env.logs, h.now, &odd);
    env.weirds.file(&mut env.logs, h.now, &odd);
    let rows = h.rows("weird");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["name"], "truncated_IP_in_tunnel");
    assert_eq!((&*rows[0]["id.orig_h"], &*rows[0]["id.resp_p"]), ("10.0.0.1", "0"));
    assert_eq!((&*rows[1]["name"], &*rows[1]["id.orig_h"]), ("truncated_IP", "-"));
    assert_eq!(rows[2]["addl"], format!("{fuid}: detail"));
}

#[test]
fn memory_is_bounded() {
    let mut weirds = Weirds::default();
    for n in 0..MAX_ENTRIES as u32 + 1000 {
        let id = ConnId { orig_h: Addr::v4(n.to_be_bytes()), ..NOTHING };
        weirds.seen(Key { name: "x", in_tunnel: false, daily: false, id }).count += 1;
    }
    assert!(weirds.young.len() + weirds.old.len() <= MAX_ENTRIES);
    // The latest one is still in the table.
    let n = MAX_ENTRIES as u32 + 999;
    let id = ConnId { orig_h: Addr::v4(n.to_be_bytes()), ..NOTHING };
    assert_eq!(weirds.seen(Key { name: "x", in_tunnel: false, daily: false, id }).count, 1);
}

/// A message of a million parts with the same weird must not use hundreds of megabytes.
#[test]
fn what_is_weird_again_is_left_once() {
    let logs = gannet_log::Logs::collecting(gannet_log::Options::default());
    let mut logs = Sinks::from(logs);
    let key = |packet| gannet_log::Key { packet, due: Time::MAX, tie: 0 };
    let mut part = Weirds::default();
    for (packet, name, times) in [(1, "a", 30), (1, "b", 1), (1, "a", 2), (2, "a", 2000)] {
        logs.set_key(key(packet));
        for _ in 0..times {
            part.net(&mut logs, Time::from_secs(10), name, "x");
        }
    }
    let left = part.deferred().take();
    assert_eq!(left.iter().map(|l| l.item.times).collect::<Vec<_>>(), [30, 1, 2, 2000]);
    // All of them count: the first 25, and each thousandth after them.
    let mut whole = Harness::new(Proto::Tcp, 80);
    for item in &left {
        whole.env.weirds.decide(&mut whole.env.logs, &item.item);
    }
    let id = |name| Key { name, in_tunnel: false, daily: false, id: NOTHING };
    assert_eq!(whole.env.weirds.seen(id("a")).count, 2032);
    assert_eq!(whole.rows("weird").len(), 2);
}
