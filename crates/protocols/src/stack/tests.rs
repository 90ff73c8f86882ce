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
    let tags: Vec<_> = stack.entries.iter().map(|e| e.tag).collect();
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
        session.datagram(&mut h.conn, from, (data, data.len() as u32), data.len() as u32 + 28);
        session.apply_requests(&mut h.conn);
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
fn what_scripts_disable_after_a_violation_is_found_again() {
    let mut h = Harness::new(Proto::Tcp, 443);
    h.env.activation = crate::activation::Activation::scripted();
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    session.start(&mut h.conn, Tag::Ssl, None);
    // An SSL 2 hello with an unassigned version.
    let hello = b"\x80\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    tcp::Consumer::data(&mut session, &mut h.conn, Dir::Orig, hello);
    session.apply_requests(&mut h.conn);
    let is_on = |session: &Session<'_>| {
        session.stack.entries.iter().any(|e| e.tag == Tag::Ssl && !e.is_suspended)
    };
    assert!(is_on(&session), "scripts decide");
    session.remove(&mut h.conn, Tag::Ssl, true);
    assert!(!is_on(&session));
    session.start(&mut h.conn, Tag::Ssl, None);
    assert!(is_on(&session));
}

#[test]
fn inner_analyzers_are_not_notified_of_gaps() {
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
        tcp::Consumer::gap(&mut session, &mut h.conn, Dir::Orig, 1, 5);
        for (from, hello) in hellos {
            let hello = record(22, &hello);
            tcp::Consumer::data(&mut session, &mut h.conn, from, &hello);
        }
        session.apply_requests(&mut h.conn);
        assert_eq!(h.conn.services.contains(Tag::Ssl as u8), expected);
    }
}

/// The rows of a TCP connection to a port after these segments.
fn rows_of(port: u16, path: &str, segments: &[(Dir, &[u8])]) -> Vec<BTreeMap<String, String>> {
    let mut h = Harness::new(Proto::Tcp, port);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    let mut sent = [0; 2];
    for (from, data) in segments {
        sent[from.index()] += data.len() as u64;
        h.conn.set_payload(*from, sent[from.index()]);
        tcp::Consumer::data(&mut session, &mut h.conn, *from, data);
        session.apply_requests(&mut h.conn);
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
            // The analyzer is enabled again, and then removed again.
            (Dir::Resp, b"331 password?\r\n"),
            (Dir::Orig, b"RETR a\r\n"),
        ],
    );
    let columns = ["user", "command", "arg", "reply_code"];
    let reported: Vec<_> = rows.iter().map(|r| columns.map(|c| &*r[c])).collect();
    assert_eq!(reported, [["me", "USER", "me", "331"]]);
}

#[test]
fn a_violation_does_not_end_what_is_known_of_an_ssh_session() {
    let rows = rows_of(
        22,
        "ssh",
        &[
            (Dir::Orig, b"SSH-2.0-a\r\n"),
            // Algorithms before the other side's version cannot be parsed.
            (Dir::Orig, b"\0\0\0\x0c\x0a\x14"),
            (Dir::Resp, b"SSH-2.0-b\r\n"),
        ],
    );
    let reported: Vec<_> =
        rows.iter().map(|r| ["version", "client", "server"].map(|c| &*r[c])).collect();
    assert_eq!(reported, [["2", "SSH-2.0-a", "SSH-2.0-b"]]);
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
    let reported: Vec<_> =
        rows.iter().map(|r| ["nick", "user", "command"].map(|c| &*r[c])).collect();
    // Everything is parsed again when the analyzer is enabled again.
    let again = [["a", "-", "NICK"], ["a", "-", "USER"]];
    assert_eq!(reported, [["-", "-", "NICK"], again[0], again[1]]);
}

/// Columns of rows, as one text per row.
fn columns(rows: &[BTreeMap<String, String>], names: &[&str]) -> Vec<String> {
    rows.iter().map(|r| names.iter().map(|c| &*r[*c]).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_is_no_request_line_does_not_part_a_http_request_from_its_response() {
    let mut segments = vec![
        (Dir::Orig, &b"POST /a HTTP/1.1\r\nHost: h\r\n\r\nuser=foo\r\n"[..]),
        // The analyzer is enabled again, parses everything again, and is removed again.
        (Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ];
    let names = ["trans_depth", "method", "uri", "status_code", "response_body_len"];
    let rows = rows_of(80, "http", &segments);
    assert_eq!(columns(&rows, &names), ["1 POST /a 200 2", "2 POST /a - 0"]);
    // At this length of a connection, no analyzer is removed any more.
    let long = [&b"HTTP/1.1 200 OK\r\nContent-Length: 12000\r\n\r\n"[..], &[b'x'; 12_000]].concat();
    segments[1].1 = &long;
    segments.push((Dir::Resp, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
    let rows = rows_of(80, "http", &segments);
    assert_eq!(columns(&rows, &names), ["1 POST /a 200 12000", "2 POST /a 400 0"]);
}

#[test]
fn a_violation_ends_the_body_that_a_http_server_sends() {
    let rows = rows_of(
        80,
        "http",
        &[
            (Dir::Orig, b"GET /a HTTP/1.1\r\n\r\n"),
            (Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcd"),
            (Dir::Orig, b"(what)\r\n"),
            (Dir::Resp, b"efghi"),
        ],
    );
    let names = ["trans_depth", "uri", "status_code", "response_body_len"];
    assert_eq!(columns(&rows, &names), ["1 /a 200 4"]);
}

#[test]
fn a_removed_analyzer_ends_its_messages_with_more_data_or_with_the_stream() {
    let response = b"HTTP/1.1 200 OK\r\n\r\nabcd\r\n";
    for (ends_stream, expected) in [
        (false, "message interrupted when connection done"),
        (true, "message ends as connection contents are completely delivered"),
    ] {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.listen("http_message_done");
        let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
        stack.prepare(&mut h.env, &mut h.conn, h.now);
        let mut done = Vec::new();
        let requests = [(Dir::Orig, &b"GET / HTTP/1.1\r\n\r\n"[..]), (Dir::Resp, response)];
        for (from, data) in requests.into_iter().chain([(Dir::Orig, &b"(what)\r\n"[..])]) {
            let mut session =
                Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
            tcp::Consumer::data(&mut session, &mut h.conn, from, data);
            session.apply_requests(&mut h.conn);
            done = h.events();
        }
        // The violation has removed the analyzer, and the response continues.
        assert!(done.is_empty(), "{done:?}");
        let mut session =
            Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
        if ends_stream {
            tcp::Consumer::end(&mut session, &mut h.conn, Dir::Resp);
        } else {
            session.before_data(&mut h.conn);
        }
        session.finish(&mut h.conn);
        let events = h.events();
        assert!(events.len() == 1 && events[0].contains(expected), "{events:?}");
        assert_eq!(h.rows("http")[0]["response_body_len"], "6");
    }
}

#[test]
fn mails_are_counted_on_after_a_violation() {
    let rows = rows_of(
        25,
        "smtp",
        &[
            (Dir::Resp, b"220 a\r\n"),
            (Dir::Orig, b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n"),
            (Dir::Resp, b"250 x\r\n250 y\r\n354 z\r\n250 done\r\nwhat?\r\n"),
            // Everything is parsed again.
            (Dir::Orig, b"EHLO me\r\n"),
        ],
    );
    let names = ["trans_depth", "mailfrom", "last_reply"];
    assert_eq!(columns(&rows, &names), ["1 a@b 250 done", "2 a@b 250 done"]);
}

#[test]
fn a_violation_does_not_make_two_rows_of_a_tls_session() {
    let hello = record(22, &message(1, &client_hello(0x0303, b"", &[])));
    let odd = [&hello[..], b"\x16\x09\x09\0\x01"].concat();
    let answer = record(22, &message(2, &server_hello(0x0303, b"", 0xc02f, &[])));
    let rows = rows_of(443, "ssl", &[(Dir::Orig, &odd), (Dir::Resp, &answer)]);
    assert_eq!(columns(&rows, &["ssl_history", "established"]), ["C F"]);
}

#[test]
fn what_was_read_to_its_end_is_not_read_again() {
    let mut h = Harness::new(Proto::Tcp, 443);
    let (mut stack, mut scratch) = (Stack::default(), Scratch::default());
    stack.prepare(&mut h.env, &mut h.conn, h.now);
    let mut session =
        Session { now: h.now, env: &mut h.env, stack: &mut stack, scratch: &mut scratch };
    let hello = record(22, &message(1, &client_hello(0x0303, b"", &[])));
    let answer = record(22, &message(2, &server_hello(0x0303, b"", 0xc02f, &[])));
    // After a gap the start of a record is unknown, even if the data resembles one.
    tcp::Consumer::data(&mut session, &mut h.conn, Dir::Orig, &hello);
    session.apply_requests(&mut h.conn);
    tcp::Consumer::gap(&mut session, &mut h.conn, Dir::Resp, 1, 1_180_489_186);
    session.apply_requests(&mut h.conn);
    tcp::Consumer::data(&mut session, &mut h.conn, Dir::Resp, &answer);
    session.apply_requests(&mut h.conn);
    session.finish(&mut h.conn);
    assert_eq!(columns(&h.rows("ssl"), &["ssl_history", "version"]), ["C -"]);
}

#[test]
fn a_violation_does_not_make_two_rows_of_an_rdp_session() {
    let rows = rows_of(
        3389,
        "rdp",
        &[
            (
                Dir::Orig,
                b"\x03\0\0\x1f\x1a\xe0\0\0\0\0\0Cookie: mstshash=m\r\n\x03\0\0\x07\x06\xd0\0",
            ),
            (Dir::Resp, b"\x03\0\0\x0b\x06\xd0\0\0\0\0\0"),
        ],
    );
    assert_eq!(columns(&rows, &["cookie"]), ["m"]);
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
    session.apply_requests(&mut h.conn);
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
            session.datagram(&mut h.conn, from, (data, data.len() as u32), data.len() as u32 + 28);
            session.apply_requests(&mut h.conn);
            session.release_idle(&h.conn);
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
