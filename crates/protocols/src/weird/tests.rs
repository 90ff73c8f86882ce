use super::*;
use crate::testing::Harness;

fn weird(h: &mut Harness, at: i64, name: &'static str) {
    h.now = Time::from_secs(at);
    h.cx().weird(name, "", Some("TCP"));
}

#[test]
fn one_row_within_ten_minutes() {
    let mut h = Harness::new(Proto::Tcp, 80);
    for at in [10, 11, 609, 610] {
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
    assert_eq!(rows[1]["ts"], "610.000000");
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
    // The row at 0 suppresses to 600; the 26th at 599 begins sampling, to 1199.
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
    for at in [vec![0; 30], vec![599; 30], vec![600, 601]].concat() {
        env.weirds.net(&mut env.logs, Time::from_secs(at), "truncated_ARP", "");
    }
    let rows = h.rows("weird");
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["ts"], "600.000000");
}

#[test]
fn hosts_packets_and_files() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let (a, b) = (Addr::v4([10, 0, 0, 1]), Addr::v4([10, 0, 0, 2]));
    let mut what = Oddity { name: "truncated_IP", addl: "", source: Some("IP"), in_tunnel: true };
    let env = &mut h.env;
    env.weirds.flow(&mut env.logs, h.now, a, b, &what);
    env.weirds.flow(&mut env.logs, h.now, a, b, &what);
    what.in_tunnel = false;
    env.weirds.packet(&mut env.logs, h.now, &what);
    let fuid = gannet_base::UidSource::new(0).file(h.conn.uid, 0);
    env.weirds.file(&mut env.logs, h.now, fuid, "odd_file", "detail", None);
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
    for n in 0..REMEMBERED as u32 + 1000 {
        let id = ConnId { orig_h: Addr::v4(n.to_be_bytes()), ..NOTHING };
        weirds.seen(Key { name: "x", in_tunnel: false, daily: false, id }).count += 1;
    }
    assert!(weirds.young.len() + weirds.old.len() <= REMEMBERED);
    // The latest is still known.
    let n = REMEMBERED as u32 + 999;
    let id = ConnId { orig_h: Addr::v4(n.to_be_bytes()), ..NOTHING };
    assert_eq!(weirds.seen(Key { name: "x", in_tunnel: false, daily: false, id }).count, 1);
}
