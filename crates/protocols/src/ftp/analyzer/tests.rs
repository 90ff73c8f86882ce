use std::collections::BTreeMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use proptest::prelude::*;

use super::*;
use crate::Announced;
use crate::ftp::Data;
use crate::testing::Harness;

type Row = BTreeMap<String, String>;

fn push(h: &mut Harness, analyzer: &mut Analyzer, chunks: &[(Dir, &[u8])]) {
    for (from, data) in chunks {
        analyzer.stream(&mut h.cx(), *from, data);
    }
}

fn play(chunks: &[(Dir, &[u8])]) -> (Vec<Row>, Harness) {
    let mut h = Harness::new(Proto::Tcp, 21);
    let mut analyzer = Analyzer::new(&mut h.cx());
    push(&mut h, &mut analyzer, chunks);
    analyzer.end(&mut h.cx(), Dir::Orig);
    analyzer.end(&mut h.cx(), Dir::Resp);
    analyzer.finish(&mut h.cx());
    (h.rows("ftp"), h)
}

fn check(row: &Row, expected: &[(&str, &str)]) {
    for (column, value) in expected {
        assert_eq!(row.get(*column).map(String::as_str), Some(*value), "{column}");
    }
}

const TRANSFER: &[(Dir, &[u8])] = &[
    (Dir::Resp, b"220-Welcome\r\n  to this\r\n220 server\r\n"),
    (Dir::Orig, b"USER anonymous\r\n"),
    (Dir::Resp, b"331 password?\r\n"),
    (Dir::Orig, b"PASS me@here\r\n"),
    (Dir::Resp, b"230 in\r\n"),
    (Dir::Orig, b"PWD\r\n"),
    (Dir::Resp, b"257 \"/home/x\" is current\r\n"),
    (Dir::Orig, b"CWD ../y\r\n"),
    (Dir::Resp, b"250 ok\r\n"),
    (Dir::Orig, b"PASV\r\n"),
    (Dir::Resp, b"227 Entering (192,0,2,1,4,31)\r\n"),
    (Dir::Orig, b"RETR a.txt\r\n"),
    (Dir::Resp, b"150 Opening for a.txt (5 bytes)\r\n"),
    (Dir::Resp, b"226 done\r\n"),
    (Dir::Orig, b"QUIT\r\n"),
    (Dir::Resp, b"221 bye\r\n"),
];

#[test]
fn an_exchange_of_tokens_takes_three_analyzer_ids() {
    let next_number = |reply: &[u8]| {
        let mut h = Harness::new(Proto::Tcp, 21);
        h.listen("");
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"AUTH GSSAPI\r\n");
        a.stream(&mut h.cx(), Dir::Resp, reply);
        h.cx().aid(Tag::Ssh).map(|id| id.0)
    };
    assert_eq!(next_number(b"334 go\r\n"), next_number(b"502 no\r\n").map(|number| number + 3));
}

#[test]
fn commands_for_files_make_rows() {
    let (rows, h) = play(TRANSFER);
    assert_eq!(rows.len(), 2);
    check(
        &rows[0],
        &[
            ("user", "anonymous"),
            ("password", "me@here"),
            ("command", "PASV"),
            ("arg", "-"),
            ("reply_code", "227"),
            ("data_channel.passive", "T"),
            ("data_channel.orig_h", "10.0.0.1"),
            ("data_channel.resp_h", "192.0.2.1"),
            ("data_channel.resp_p", "1055"),
        ],
    );
    check(
        &rows[1],
        &[
            ("command", "RETR"),
            ("arg", "ftp://192.0.2.1/home/y/a.txt"),
            ("file_size", "5"),
            ("reply_code", "226"),
            ("reply_msg", "done"),
            ("data_channel.passive", "-"),
        ],
    );
    assert!(h.confirmed(Tag::Ftp));
    assert_eq!(h.env.expected.len(), 1);
}

#[test]
fn a_data_connection_names_the_file() {
    let mut h = Harness::new(Proto::Tcp, 21);
    let mut control = Analyzer::new(&mut h.cx());
    push(&mut h, &mut control, &TRANSFER[..13]);
    let id = h.conn.id;
    let to = ConnId { orig_p: 2000, resp_p: 1055, ..id };
    let (uid, other) = (h.conn.uid, h.env.uids.connection(2, 0));
    (h.conn.uid, h.conn.id) = (other, to);
    assert!(h.env.expected_for(&to, Proto::Tcp, false, h.now).is_some());
    let mut data = Data::new(&mut h.cx());
    data.stream(&mut h.cx(), Dir::Resp, b"hello world\n");
    data.finish(&mut h.cx());
    assert!(h.confirmed(Tag::FtpData));
    (h.conn.uid, h.conn.id) = (uid, id);
    push(&mut h, &mut control, &TRANSFER[13..]);
    control.finish(&mut h.cx());
    let (rows, files) = (h.rows("ftp"), h.rows("files"));
    assert_eq!(rows.len(), 2);
    check(&rows[1], &[("mime_type", "text/plain"), ("fuid", &files[0]["fuid"])]);
    check(&files[0], &[("source", "FTP_DATA"), ("seen_bytes", "12"), ("is_orig", "F")]);
}

#[test]
fn passwords_of_users_are_hidden() {
    let (rows, _) = play(&[
        (Dir::Orig, b"USER joe\r\nPASS secret\r\nDELE /etc/x\r\n"),
        (Dir::Resp, b"220 x\r\n331 pass\r\n230 in\r\n250 gone\r\n"),
    ]);
    assert_eq!(rows.len(), 1);
    check(&rows[0], &[("user", "joe"), ("password", "<hidden>"), ("arg", "ftp://192.0.2.1/etc/x")]);
}

#[test]
fn a_session_makes_at_least_one_row() {
    let (rows, _) = play(&[(Dir::Resp, b"220 hi\r\n")]);
    check(&rows[0], &[("command", "<init>"), ("reply_code", "220"), ("user", "<unknown>")]);
}

#[test]
fn eprt_names_the_client() {
    let (rows, h) = play(&[(Dir::Orig, b"EPRT |1|10.0.0.1|2000|\r\n"), (Dir::Resp, b"200 ok\r\n")]);
    check(
        &rows[0],
        &[
            ("command", "EPRT"),
            ("data_channel.passive", "F"),
            ("data_channel.orig_h", "192.0.2.1"),
            ("data_channel.resp_h", "10.0.0.1"),
        ],
    );
    let (orig, resp) = (Some(h.conn.id.resp_h), Addr::v4([10, 0, 0, 1]));
    let key = Announced { orig, resp, port: 2000, proto: Proto::Tcp, global: false };
    assert!(h.env.expected.contains_key(&key));
}

#[test]
fn tls_takes_over() {
    let (_, h) = play(&[
        (Dir::Resp, b"220 x\r\n"),
        (Dir::Orig, b"AUTH TLS\r\n"),
        (Dir::Resp, b"234 go\r\n"),
        (Dir::Orig, b"\x16\x03\x01"),
    ]);
    assert!(matches!(h.starts[..], [(Tag::Ssl, _)]));
}

#[test]
fn a_request_that_never_ends_is_weird() {
    for fin in [false, true] {
        let mut h = Harness::new(Proto::Tcp, 21);
        let mut analyzer = Analyzer::new(&mut h.cx());
        analyzer.stream(&mut h.cx(), Dir::Orig, b"USER a\r\nPAS");
        if fin {
            h.conn.note_once(Dir::Orig, gannet_flow::tcp::FIN_NOTED, b'F');
        }
        analyzer.finish(&mut h.cx());
        let names: Vec<_> = h.rows("weird").iter().map(|r| r["name"].clone()).collect();
        assert_eq!(names.contains(&"partial_ftp_request".to_owned()), fin);
    }
}

#[test]
fn other_protocols_are_violations() {
    let (rows, h) = play(&[(Dir::Resp, b"SSH-2.0-x\r\n")]);
    assert!(rows.is_empty());
    assert!(h.violated(Tag::Ftp));
}

proptest! {
    #[test]
    fn rows_do_not_depend_on_chunks(cut in 0usize..40, which in 0usize..TRANSFER.len()) {
        let mut chunks = TRANSFER.to_vec();
        let (from, data) = chunks[which];
        let (a, b) = data.split_at(cut.min(data.len()));
        chunks.splice(which..=which, [(from, a), (from, b)]);
        prop_assert_eq!(play(&chunks).0, play(TRANSFER).0);
    }

    #[test]
    fn any_bytes_are_analyzed(chunks: Vec<(bool, Vec<u8>)>, words in "((PORT 1,2,3,4,5,6|RETR x|PASV|AUTH GSSAPI|ADAT FgMB|AUTH TLS|CWD \\.\\.)\r\n){0,30}", replies in "((227 \\(1,2,3,4,5,6\\)|334 ADAT=FgM|250 x|150 4|257 /)\r\n){0,30}") {
        let mut all = vec![(Dir::Orig, words.as_bytes()), (Dir::Resp, replies.as_bytes())];
        all.extend(chunks.iter().map(|(o, d)| (if *o { Dir::Orig } else { Dir::Resp }, &d[..])));
        all.push((Dir::Orig, words.as_bytes()));
        let (rows, _) = play(&all);
        prop_assert!(rows.len() <= 70);
    }
}

#[test]
fn telnet_options_of_a_control_connection_are_reported() {
    let mut h = Harness::new(Proto::Tcp, 21);
    h.listen("authentication_");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Resp, b"\xff\xfa\x25\x02\x02\xff\xf0");
    a.stream(&mut h.cx(), Dir::Orig, b"\xff\xfa\x25\x03ann\xff\xf0");
    a.stream(&mut h.cx(), Dir::Resp, b"\xff\xfa\x25\x02\x01\xff\xf0");
    assert_eq!(h.events(), ["authentication_accepted ", "authentication_rejected "]);
    h.listen("bad_option");
    a.stream(&mut h.cx(), Dir::Resp, b"\xff\xfa\x25\x09\xff\xfb\x01");
    assert_eq!(h.events(), ["bad_option_termination ", "bad_option "]);
}
