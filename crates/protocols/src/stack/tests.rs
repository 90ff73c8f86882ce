use std::collections::BTreeMap;

use super::*;
use crate::Expected;
use crate::ssl::samples::client_hello;
use crate::ssl::samples::message;
use crate::ssl::samples::record;
use crate::ssl::samples::server_hello;
use crate::testing::Harness;

#[test]
fn protocols_found_at_once_start_in_the_order_of_their_rules() {
    let mut h = Harness::new(Proto::Tcp, 9);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    let mut say = |from, data: &[u8]| {
        tcp::Consumer::data(&mut session, &mut h.conn, from, data);
    };
    say(Dir::Orig, b"USER a\r\nHELO b\r\n");
    say(Dir::Resp, b"220 c\r\n230 d\r\n");
    let tags: Vec<_> = stack.entries.iter().map(|e| e.analyzer.tag()).collect();
    assert_eq!(tags, [Tag::Detector, Tag::Ftp, Tag::Smtp]);
}

#[test]
fn what_returns_after_a_violation_knows_what_it_knew() {
    let mut h = Harness::new(Proto::Udp, 5060);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    let mut say = |from, data: &[u8]| {
        session.datagram(&mut h.conn, from, data, data.len() as u32);
        session.settle(&mut h.conn);
    };
    say(Dir::Orig, b"INVITE sip:b SIP/2.0\r\nTo: b\r\nwhat\r\n\r\n");
    say(Dir::Orig, b"not looked at\r\n\r\n");
    say(Dir::Resp, b"SIP/2.0 200 OK\r\nFrom: c\r\n\r\n");
    session.finish(&mut h.conn);
    let rows = h.rows("sip");
    assert_eq!(rows.len(), 1);
    let columns = ["method", "request_to", "status_code", "response_from"];
    assert_eq!(columns.map(|c| &*rows[0][c]), ["INVITE", "b", "200", "c"]);
}

#[test]
fn what_stands_inside_of_another_is_not_told_of_gaps() {
    for (is_inner, expected) in [(false, false), (true, true)] {
        let mut h = Harness::new(Proto::Tcp, 9);
        let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
        stack.prepare(&mut h.env, &mut h.conn, h.now);
        let mut session =
            Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
        session.start(&mut h.conn, Tag::Ssl, Some(&Replay { pieces: Vec::new(), is_inner }));
        let hellos = [
            (Dir::Orig, message(1, &client_hello(0x0303, b"", &[]))),
            (Dir::Resp, message(2, &server_hello(0x0303, b"", 0xc02f, &[]))),
        ];
        tcp::Consumer::gap(&mut session, &mut h.conn, Dir::Orig, 5);
        for (from, hello) in hellos {
            let hello = record(22, &hello);
            tcp::Consumer::data(&mut session, &mut h.conn, from, &hello);
        }
        session.settle(&mut h.conn);
        assert_eq!(h.conn.services.contains(Tag::Ssl as u8), expected);
    }
}

/// The rows that a TCP connection to a port has when it is over, of what was sent in segments.
fn rows_of(port: u16, path: &str, segments: &[(Dir, &[u8])]) -> Vec<BTreeMap<String, String>> {
    let mut h = Harness::new(Proto::Tcp, port);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    for (from, data) in segments {
        tcp::Consumer::data(&mut session, &mut h.conn, *from, data);
        session.settle(&mut h.conn);
    }
    session.finish(&mut h.conn);
    h.rows(path)
}

#[test]
fn a_violation_does_not_end_what_is_known_of_a_ftp_session() {
    let rows = rows_of(
        21,
        "ftp",
        &[
            (Dir::Resp, b"220 server\r\nwhose greeting goes on\r\n"),
            (Dir::Orig, b"USER me\r\n"),
            // Its analyzer is back, and is taken off once more.
            (Dir::Resp, b"331 password?\r\n"),
            (Dir::Orig, b"RETR a\r\n"),
        ],
    );
    let columns = ["user", "command", "arg", "reply_code"];
    let told: Vec<_> = rows.iter().map(|r| columns.map(|c| &*r[c])).collect();
    assert_eq!(told, [["me", "USER", "me", "331"]]);
}

#[test]
fn a_violation_does_not_end_what_is_known_of_an_ssh_session() {
    let rows = rows_of(
        22,
        "ssh",
        &[
            (Dir::Orig, b"SSH-2.0-a\r\n"),
            // Algorithms before the other side's version cannot be read.
            (Dir::Orig, b"\0\0\0\x0c\x0a\x14"),
            (Dir::Resp, b"SSH-2.0-b\r\n"),
        ],
    );
    let told: Vec<_> =
        rows.iter().map(|r| ["version", "client", "server"].map(|c| &*r[c])).collect();
    assert_eq!(told, [["2", "SSH-2.0-a", "SSH-2.0-b"]]);
}

#[test]
fn a_violation_does_not_end_what_is_known_of_an_irc_session() {
    let rows = rows_of(
        6667,
        "irc",
        &[
            (Dir::Orig, b"NICK a\r\n"),
            (Dir::Resp, b":b 1xx\r\n"),
            (Dir::Orig, b"USER c d e :f\r\n"),
            (Dir::Resp, b":b 001 a :g\r\n"),
            (Dir::Orig, b"JOIN #h\r\n"),
        ],
    );
    let told: Vec<_> = rows.iter().map(|r| ["nick", "user", "command"].map(|c| &*r[c])).collect();
    // All is read again when the analyzer is back.
    let again = [["a", "-", "NICK"], ["a", "-", "USER"]];
    assert_eq!(told, [["-", "-", "NICK"], again[0], again[1]]);
}

#[test]
fn who_was_announced_is_known_once_the_roles_are_exchanged() {
    let mut h = Harness::new(Proto::Tcp, 9);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    let (id, uid) = (h.conn.id, h.conn.uid);
    let to = (id.orig_h, id.orig_p);
    let what = Expected { tag: Tag::FtpData, parent: uid, expires: Time::from_secs(9) };
    h.env.expect(&h.conn, Some(id.resp_h), to, what, h.now);
    assert_eq!(h.env.ftp.announce((to.0, to.1, false), uid, h.now), Ok(()));
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    assert!(!h.conn.services.contains(Tag::FtpData as u8));
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    h.conn.flip();
    tcp::Consumer::flipped(&mut session, &mut h.conn);
    tcp::Consumer::data(&mut session, &mut h.conn, Dir::Orig, b"a file");
    session.settle(&mut h.conn);
    session.finish(&mut h.conn);
    assert!(h.conn.services.contains(Tag::FtpData as u8));
    h.env.finish(h.now);
    assert_eq!(h.rows("files")[0]["source"], "FTP_DATA");
}

#[test]
fn an_idle_release_is_no_start_and_keeps_what_was_counted() {
    let query = b"\x30\x25\x02\x01\x05\x63\x20\x04\x00\x0a\x01\x00\x0a\x01\x00\x02\x01\x00\x02\x01\
                  \x00\x01\x01\x00\x87\x0b\x6f\x62\x6a\x65\x63\x74\x43\x6c\x61\x73\x73\x30\x00";
    let done = b"\x30\x0c\x02\x01\x05\x65\x07\x0a\x01\x00\x04\x00\x04\x00";
    let mut h = Harness::new(Proto::Udp, 389);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut released = 0;
    for _ in 0..100 {
        for (from, data) in [(Dir::Orig, &query[..]), (Dir::Resp, &done[..])] {
            let mut session =
                Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
            session.datagram(&mut h.conn, from, data, data.len() as u32);
            session.settle(&mut h.conn);
            session.rest(&h.conn);
        }
        released += usize::from(stack.entries.is_empty());
        if let Waiting::Idle(its) = &mut stack.waiting {
            its.violations += 1;
        }
    }
    assert_eq!((released, stack.started), (100, 1));
    assert!(matches!(stack.waiting, Waiting::Idle(Released { violations: 100, .. })));
    assert_eq!(h.rows("ldap_search").len(), 100);
}
