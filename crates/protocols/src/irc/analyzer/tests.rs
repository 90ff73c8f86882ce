use std::collections::BTreeMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use proptest::prelude::*;

use super::*;
use crate::irc::Data;
use crate::testing::Harness;

type Row = BTreeMap<String, String>;

fn feed(h: &mut Harness, analyzer: &mut Analyzer, chunks: &[(Dir, &[u8])]) {
    for (from, data) in chunks {
        analyzer.stream(&mut h.cx(), *from, data);
    }
}

fn play(chunks: &[(Dir, &[u8])]) -> (Vec<Row>, Harness) {
    let mut h = Harness::new(Proto::Tcp, 6667);
    let mut analyzer = Analyzer::new(&mut h.cx());
    feed(&mut h, &mut analyzer, chunks);
    analyzer.end(&mut h.cx(), Dir::Orig);
    analyzer.end(&mut h.cx(), Dir::Resp);
    analyzer.finish(&mut h.cx());
    (h.rows("irc"), h)
}

fn check(row: &Row, expected: &[(&str, &str)]) {
    for (column, value) in expected {
        assert_eq!(row.get(*column).map(String::as_str), Some(*value), "{column}");
    }
}

const SESSION: &[(Dir, &[u8])] = &[
    (Dir::Orig, b"PASS x\r\nUSER joe host srv :Joe Doe\r\nNICK :joe\r\n"),
    (Dir::Resp, b":srv 001 joe :hi\r\n:joe NICK joe2\r\n"),
    (Dir::Orig, b"JOIN #a,#b key\r\nPRIVMSG #a :hello\r\n"),
    (Dir::Resp, b":joe!x@y JOIN :#a\r\n"),
];

#[test]
fn names_and_channels_make_rows() {
    let (rows, h) = play(SESSION);
    assert_eq!(rows.len(), 4);
    check(
        &rows[0],
        &[("command", "USER"), ("value", "joe"), ("addl", "host srv JoeDoe "), ("nick", "-")],
    );
    check(&rows[1], &[("command", "NICK"), ("value", "joe"), ("user", "joe"), ("nick", "-")]);
    check(
        &rows[2],
        &[
            ("command", "JOIN"),
            ("value", "#a"),
            ("addl", " with channel key: 'key'"),
            ("nick", "joe"),
        ],
    );
    check(&rows[3], &[("command", "JOIN"), ("value", "#b"), ("addl", "(empty)")]);
    assert!(h.confirmed(Tag::Irc));
}

#[test]
fn a_transfer_without_its_beginning_makes_none() {
    let mut h = Harness::new(Proto::Tcp, 6667);
    let mut analyzer = Analyzer::new(&mut h.cx());
    let offer = b"PRIVMSG you :\x01DCC SEND a.txt 3221225985 2000 12\x01\r\n";
    feed(&mut h, &mut analyzer, &[(Dir::Orig, offer)]);
    let to = ConnId { resp_h: Addr::v4([192, 0, 2, 1]), resp_p: 2000, ..h.conn.id };
    (h.conn.uid, h.conn.id) = (h.env.uids.connection(2, 0), to);
    let mut data = Data::new(&mut h.cx());
    data.gap(&mut h.cx(), Dir::Resp, 6);
    data.stream(&mut h.cx(), Dir::Resp, b"world\n");
    data.finish(&mut h.cx());
    assert!(h.rows("irc").is_empty());
    check(&h.rows("files")[0], &[("filename", "a.txt"), ("missing_bytes", "6")]);
}

#[test]
fn a_transfer_makes_a_row() {
    let mut h = Harness::new(Proto::Tcp, 6667);
    let mut analyzer = Analyzer::new(&mut h.cx());
    let offer = b"PRIVMSG you :\x01DCC SEND a.txt 3221225985 2000 12\x01\r\n";
    feed(&mut h, &mut analyzer, &[(Dir::Orig, offer)]);
    analyzer.finish(&mut h.cx());
    let to = ConnId { resp_h: Addr::v4([192, 0, 2, 1]), resp_p: 2000, ..h.conn.id };
    (h.conn.uid, h.conn.id) = (h.env.uids.connection(2, 0), to);
    let found = h.env.expected_for(&to, Proto::Tcp, false, h.now);
    assert_eq!(found.map(|e| e.tag), Some(Tag::IrcData));
    let mut data = Data::new(&mut h.cx());
    data.stream(&mut h.cx(), Dir::Resp, b"hello world\n");
    data.stream(&mut h.cx(), Dir::Orig, &[0, 0, 0, 12]);
    data.finish(&mut h.cx());
    assert!(h.confirmed(Tag::IrcData));
    let (rows, files) = (h.rows("irc"), h.rows("files"));
    assert_eq!(rows.len(), 1);
    check(
        &rows[0],
        &[
            ("command", "DCC"),
            ("dcc_file_name", "a.txt"),
            ("dcc_file_size", "12"),
            ("dcc_mime_type", "text/plain"),
            ("fuid", &files[0]["fuid"]),
        ],
    );
    check(&files[0], &[("source", "IRC_DATA"), ("filename", "a.txt")]);
}

#[test]
fn tls_takes_over() {
    let (_, h) = play(&[
        (Dir::Orig, b"STARTTLS\r\n"),
        (Dir::Resp, b":srv 670 x :go\r\n"),
        (Dir::Orig, b"\x16\x03\x01"),
    ]);
    assert!(matches!(h.starts[..], [(Tag::Ssl, _)]));
    assert!(h.confirmed(Tag::Irc));
}

#[test]
fn no_irc_at_all() {
    let (rows, h) = play(&[(Dir::Resp, b"220 hi\r\n12 x\r\n")]);
    assert!(rows.is_empty());
    assert!(h.violated(Tag::Irc) && !h.confirmed(Tag::Irc));
}

proptest! {
    #[test]
    fn cuts_do_not_matter(cut in 0usize..60, which in 0usize..SESSION.len()) {
        let mut chunks = SESSION.to_vec();
        let (from, data) = chunks[which];
        let (a, b) = data.split_at(cut.min(data.len()));
        chunks.splice(which..=which, [(from, a), (from, b)]);
        prop_assert_eq!(play(&chunks).0, play(SESSION).0);
    }

    #[test]
    fn any_bytes_do(chunks: Vec<(bool, Vec<u8>)>, text in "((:a )?(NICK|USER|JOIN|NJOIN|PRIVMSG|SERVER|PASS)( [:a,#]{0,5}){0,5}\r\n){0,20}") {
        let mut all = vec![(Dir::Orig, text.as_bytes()), (Dir::Resp, text.as_bytes())];
        all.extend(chunks.iter().map(|(o, d)| (if *o { Dir::Orig } else { Dir::Resp }, &d[..])));
        let (rows, h) = play(&all);
        prop_assert!(rows.len() <= 200);
        prop_assert!(h.requests.len() <= 1000);
    }
}
