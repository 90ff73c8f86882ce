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
fn a_transfer_without_its_first_bytes_has_no_row() {
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
fn each_number_of_a_receiver_is_an_event() {
    let mut h = Harness::new(Proto::Tcp, 2000);
    h.listen("irc_dcc");
    let mut data = Data::new(&mut h.cx());
    data.stream(&mut h.cx(), Dir::Orig, &[0, 0, 0, 12, 0xff, 0, 0, 1]);
    data.stream(&mut h.cx(), Dir::Orig, &[0, 0, 0, 12, 0]);
    let acks = ["12", "4278190081"].map(|n| format!(r#"irc_dcc_send_ack "bytes_received":{n}"#));
    assert_eq!(h.events(), acks);
    assert_eq!(h.rows("weird")[0]["name"], "irc_invalid_dcc_send_ack");
}

#[test]
fn the_end_requests_a_file_handle_for_a_side_without_a_file() {
    let handle = |is_orig: bool| format!(r#"get_file_handle "is_orig":{is_orig}"#);
    let mut h = Harness::new(Proto::Tcp, 2000);
    h.listen("get_file_handle");
    let mut data = Data::new(&mut h.cx());
    data.finish(&mut h.cx());
    assert_eq!(h.events(), [handle(true), handle(false)]);
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
fn other_protocols_are_violations() {
    let (rows, h) = play(&[(Dir::Resp, b"220 hi\r\n12 x\r\n")]);
    assert!(rows.is_empty());
    assert!(h.violated(Tag::Irc) && !h.confirmed(Tag::Irc));
}

proptest! {
    #[test]
    fn rows_do_not_depend_on_chunks(cut in 0usize..60, which in 0usize..SESSION.len()) {
        let mut chunks = SESSION.to_vec();
        let (from, data) = chunks[which];
        let (a, b) = data.split_at(cut.min(data.len()));
        chunks.splice(which..=which, [(from, a), (from, b)]);
        prop_assert_eq!(play(&chunks).0, play(SESSION).0);
    }

    #[test]
    fn any_bytes_are_analyzed(chunks: Vec<(bool, Vec<u8>)>, text in "((:a )?(NICK|USER|JOIN|NJOIN|PRIVMSG|SERVER|PASS)( [:a,#]{0,5}){0,5}\r\n){0,20}") {
        let mut all = vec![(Dir::Orig, text.as_bytes()), (Dir::Resp, text.as_bytes())];
        all.extend(chunks.iter().map(|(o, d)| (if *o { Dir::Orig } else { Dir::Resp }, &d[..])));
        let (rows, h) = play(&all);
        prop_assert!(rows.len() <= 200);
        prop_assert!(h.requests.len() <= 1000);
    }
}

/// The events of lines, without the connection; lines of the server start with `<`.
fn events(lines: &[&str]) -> (Vec<String>, Harness) {
    let mut h = Harness::new(Proto::Tcp, 6667);
    h.listen("irc_");
    let mut analyzer = Analyzer::new(&mut h.cx());
    for line in lines {
        let (from, line) = match line.strip_prefix('<') {
            Some(line) => (Dir::Resp, line),
            None => (Dir::Orig, *line),
        };
        analyzer.stream(&mut h.cx(), from, format!("{line}\r\n").as_bytes());
    }
    (h.events(), h)
}

#[test]
fn replies_have_events() {
    for (line, event) in [
        (
            "251 me :There are 9 users and 2 services on 3 servers",
            r#"irc_network_info false,"users":9,"services":2,"servers":3"#,
        ),
        ("254 me 7 :channels formed", r#"irc_channel_info false,"chans":7"#),
        (
            "255 me :I have 8 clients, 4 clients and 1 servers",
            r#"irc_server_info false,"users":4,"services":0,"servers":1"#,
        ),
        (
            "266 me 8 9 :Current global users: 8",
            r#"irc_global_users false,"prefix":"me ","msg":"Current global users: 8""#,
        ),
        (
            "311 me n ~u h * :Real Name",
            r#"irc_whois_user_line false,"nick":"n","user":"~u","host":"h","real_name":"Real Name""#,
        ),
        ("313 me n :is an IRC operator", r#"irc_whois_operator_line false,"nick":"n""#),
        ("319 me n :#a", r#"irc_whois_channel_line false,"nick":"me","chans":["n",":#a"]"#),
        ("332 me #a :the topic", r##"irc_channel_topic false,"channel":"#a","topic":"the topic""##),
        (
            "352 me #a ~u h s n H :0 Real Name",
            r##"irc_who_line false,"target_nick":"me","channel":"#a","user":"u","host":"h","server":"s","nick":"n","params":"H","hops":0,"real_name":"Real""##,
        ),
        (
            "353 me = #a :@b a a",
            r##"irc_names_info false,"c_type":"=","channel":"#a","users":["b","a"]"##,
        ),
        ("381 me :You are now an operator", r#"irc_oper_response false,"got_oper":true"#),
        ("433 * n :in use", "irc_invalid_nick false"),
        ("372 me :hello", r#"irc_reply false,"prefix":"s","code":372,"params":"me :hello""#),
    ] {
        let (got, _) = events(&[&format!("<:s {line}")]);
        assert_event(&got, event);
    }
}

/// Checks the name of the only event, and its arguments after `is_orig`.
fn assert_event(got: &[String], event: &str) {
    let [got] = got else { panic!("{got:?}") };
    let (name, arguments) = event.split_once(' ').unwrap();
    assert!(got.contains(name), "{got} {event}");
    assert!(got.contains(&format!("\"is_orig\":{arguments}")), "{got}\n{event}");
}

#[test]
fn commands_have_events() {
    for (line, event) in [
        ("OPER u p", r#"irc_oper_message true,"user":"u","password":"p""#),
        (
            ":n KICK #a u :go away",
            r##"irc_kick_message true,"prefix":"n","chans":"#a","users":"u","comment":"go away""##,
        ),
        (
            ":n!u@h PART #b,#a :bye",
            r##"irc_part_message true,"nick":"n","chans":["#b","#a"],"message":"bye""##,
        ),
        ("WHO :#a o", r##"irc_who_message true,"mask":"#a","oper":true"##),
        ("WHOIS s u", r#"irc_whois_message true,"server":"s","users":"u""#),
        ("ERROR :closing link", r#"irc_error_message true,"prefix":"","message":"closing link""#),
        ("INVITE n :#a", r##"irc_invite_message true,"prefix":"","nickname":"n","channel":"#a""##),
        ("MODE n +i", r#"irc_mode_message true,"prefix":"","params":"n +i""#),
        ("SQUIT s :gone", r#"irc_squit_message true,"prefix":"","server":"s","message":"gone""#),
        ("PING x", r#"irc_request true,"prefix":"","command":"PING","arguments":"x""#),
        ("P\0NG x\0y", r#"irc_request true,"prefix":"","command":"P","arguments":"x""#),
        ("<:s\0t NOTI\0CE x", r#"irc_message false,"prefix":"s","command":"NOTI","message":"x""#),
    ] {
        assert_event(&events(&[line]).0, event);
    }
}

#[test]
fn lines_with_invalid_parameters_are_weird() {
    for (line, weird) in [
        ("<:s 266 me", "invalid_irc_global_users_reply"),
        ("<:s 311 me n u h *", "irc_invalid_whois_user_line"),
        ("<:s 313 me n", "irc_invalid_whois_operator_line"),
        ("<:s 319 me", "irc_invalid_whois_channel_line"),
        ("<:s 332 me #a :x", "irc_invalid_topic_reply"),
        ("<:s 352 me #a u h s n H :0", "irc_invalid_who_line"),
        ("<:s 353 me =", "irc_invalid_names_line"),
        ("OPER u", "irc_invalid_oper_message_format"),
        ("KICK #a", "irc_invalid_kick_message_format"),
        ("WHO a b c", "irc_invalid_who_message_format"),
        ("WHOIS", "irc_invalid_whois_message_format"),
        ("INVITE n", "irc_invalid_invite_message_format"),
        ("MODE", "irc_invalid_mode_message_format"),
        ("NOTICE x", "irc_invalid_notice_message_format"),
    ] {
        let (got, h) = events(&[line]);
        assert!(got.is_empty(), "{got:?}");
        let weirds = h.rows("weird");
        assert_eq!(weirds.iter().map(|row| &*row["name"]).collect::<Vec<_>>(), [weird]);
    }
}

#[test]
fn a_lone_cr_is_reported_before_the_next_line() {
    let mut h = Harness::new(Proto::Tcp, 6667);
    h.listen("");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Resp, b":s 001 b :x\r:s 002 b :y\r:s 003 b :z\r\n");
    let events = h.events();
    let names: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap()).collect();
    let places =
        |name| names.iter().enumerate().filter(move |(_, n)| **n == name).map(|(at, _)| at);
    let weirds: Vec<_> = places("conn_weird").collect();
    let replies: Vec<_> = places("irc_reply").collect();
    assert!(weirds.len() == 1 && replies.len() == 3, "{names:?}");
    assert!(replies[0] < weirds[0] && weirds[0] < replies[1], "{names:?}");
}
