use std::collections::BTreeMap;

use gannet_base::Proto;
use proptest::prelude::*;

use super::*;
use crate::testing::Harness;

type Row = BTreeMap<String, String>;

fn harness() -> Harness {
    Harness::new(Proto::Tcp, 25)
}

/// Analyzes a session; each chunk is sent by one side.
fn analyze(chunks: &[(Dir, &[u8])]) -> (Vec<Row>, Harness) {
    let mut h = harness();
    let mut analyzer = Analyzer::new(&mut h.cx());
    for (from, data) in chunks {
        analyzer.stream(&mut h.cx(), *from, data);
    }
    analyzer.end(&mut h.cx(), Dir::Orig);
    analyzer.end(&mut h.cx(), Dir::Resp);
    analyzer.finish(&mut h.cx());
    (h.rows("smtp"), h)
}

const MAIL: &[(Dir, &[u8])] = &[
    (Dir::Resp, b"220 mx ready\r\n"),
    (Dir::Orig, b"EHLO there\r\n"),
    (Dir::Resp, b"250-mx\r\n250 PIPELINING\r\n"),
    (Dir::Orig, b"MAIL FROM:<a@b> SIZE=1\r\nRCPT TO:<c@d>\r\nrcpt to:<e@f>\r\nDATA\r\n"),
    (Dir::Resp, b"250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n"),
    (Dir::Orig, b"Received: from x (y [9.8.7.6])\r\n\tby z\r\nReceived: from w\r\n"),
    (Dir::Orig, b"From: A <a@b>\r\nTo: \"C, D\" <c@d>, e@f\r\nCc: g@h\r\nSubject: hi\r\n"),
    (Dir::Orig, b"Message-Id: <1@b>\r\nX-Originating-IP: [1.2.3.4]\r\nX-Mailer: m 1\r\n"),
    (Dir::Orig, b"\r\n..dot\r\nQUIT\r\n.\r\n"),
    (Dir::Resp, b"250 queued\r\n"),
    (Dir::Orig, b"QUIT\r\n"),
    (Dir::Resp, b"221 bye\r\n"),
];

#[test]
fn a_mail_in_chunks_takes_a_number() {
    let next_number = |command: &str| {
        let mut h = Harness::new(Proto::Tcp, 25);
        h.listen("");
        let mut a = Analyzer::new(&mut h.cx());
        let begin = "EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";
        a.stream(&mut h.cx(), Dir::Orig, [begin, command].concat().as_bytes());
        h.cx().aid(Tag::Ssh).map(|id| id.0)
    };
    let none = next_number("NOOP\r\n");
    assert_eq!(next_number("BDAT 2\r\nabBDAT 2\r\ncd"), none.map(|number| number + 1));
}

#[test]
fn a_mail_makes_a_row() {
    let (rows, h) = analyze(MAIL);
    assert_eq!(rows.len(), 1);
    for (column, value) in [
        ("trans_depth", "1"),
        ("helo", "there"),
        ("mailfrom", "a@b"),
        ("rcptto", "c@d,e@f"),
        ("from", "A <a@b>"),
        ("to", "\"C\\x2c D\" <c@d>,e@f"),
        ("cc", "g@h"),
        ("subject", "hi"),
        ("msg_id", "<1@b>"),
        ("x_originating_ip", "1.2.3.4"),
        ("first_received", "from w"),
        ("second_received", "from x (y [9.8.7.6])\\x09by z"),
        ("last_reply", "250 queued"),
        ("path", "192.0.2.1,10.0.0.1,9.8.7.6"),
        ("user_agent", "m 1"),
        ("tls", "F"),
        ("date", "-"),
    ] {
        assert_eq!(rows[0].get(column).map(String::as_str), Some(value), "{column}");
    }
    assert!(h.confirmed(Tag::Smtp));
}

#[test]
fn lines_of_a_skipped_mail_are_not_reported() {
    let mut h = harness();
    h.listen("smtp_data");
    let mut a = Analyzer::new(&mut h.cx());
    let mail: &[u8] = b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nSubject: x\r\n\r\none\r\n";
    a.stream(&mut h.cx(), Dir::Orig, mail);
    assert_eq!(h.events().len(), 3);
    assert!(a.handle_request(&mut h.cx(), ScriptRequest::SkipMail));
    a.stream(&mut h.cx(), Dir::Orig, b"two\r\n.\r\n");
    assert_eq!(h.events().len(), 0);
    // Up to the next mail.
    a.stream(&mut h.cx(), Dir::Orig, mail);
    assert_eq!(h.events().len(), 3);
    a.finish(&mut h.cx());
    // Its file is complete, as in Zeek.
    assert_eq!(h.rows("files")[0]["seen_bytes"], "10");
}

#[test]
fn refused_data_is_no_mail() {
    let (rows, _) = analyze(&[
        (Dir::Orig, b"MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n"),
        (Dir::Resp, b"220 x\r\n250 ok\r\n550 no\r\n503 no\r\n"),
        (Dir::Orig, b"MAIL FROM:<e@f>\r\n"),
    ]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["last_reply"], "503 no");
    assert_eq!(rows[1]["mailfrom"], "e@f");
    assert_eq!(rows[1]["trans_depth"], "1");
}

#[test]
fn chunks_are_mail() {
    let (rows, h) = analyze(&[
        (Dir::Orig, b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 12\r\nSubject: a\r\n"),
        (Dir::Resp, b"220 x\r\n250 ok\r\n250 ok\r\n250 ok\r\n250 12\r\n"),
        (Dir::Orig, b"BDAT 8 LAST\r\n\r\nQUIT\r\nQUIT\r\n"),
        (Dir::Resp, b"250 done\r\n221 bye\r\n"),
    ]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["subject"], "a");
    assert_eq!(rows[0]["last_reply"], "250 done");
    assert!(!h.violated(Tag::Smtp));
}

#[test]
fn a_hole_in_tls_ends_it_for_smtp() {
    let mut h = harness();
    let mut analyzer = Analyzer::new(&mut h.cx());
    analyzer.stream(&mut h.cx(), Dir::Resp, b"220 mx\r\n");
    analyzer.stream(&mut h.cx(), Dir::Orig, b"STARTTLS\r\n");
    analyzer.stream(&mut h.cx(), Dir::Resp, b"220 go\r\n");
    analyzer.stream(&mut h.cx(), Dir::Resp, b"\x17\x03\x03\0\x01x");
    assert!(!h.violated(Tag::Smtp));
    analyzer.gap(&mut h.cx(), Dir::Orig, 1);
    analyzer.stream(&mut h.cx(), Dir::Orig, b"\x17\x03\x03\0\x01x");
    assert!(!h.violated(Tag::Smtp));
    analyzer.stream(&mut h.cx(), Dir::Resp, b"\x17\x03\x03\0\x01x");
    assert!(h.violated(Tag::Smtp));
    analyzer.finish(&mut h.cx());
    assert_eq!(h.rows("smtp")[0]["tls"], "T");
}

#[test]
fn tls_takes_over() {
    let (rows, h) = analyze(&[
        (Dir::Resp, b"220 x\r\n"),
        (Dir::Orig, b"EHLO x\r\nSTARTTLS\r\n"),
        (Dir::Resp, b"250 STARTTLS\r\n220 go\r\n"),
        (Dir::Orig, b"\x16\x03\x01"),
    ]);
    assert_eq!(rows[0]["tls"], "T");
    assert_eq!(rows[0]["last_reply"], "220 go");
    let [(Tag::Ssl, replay)] = &h.starts[..] else { panic!("{:?}", h.starts) };
    assert!(!replay.is_inner);
}

#[test]
fn no_smtp_at_all() {
    let (rows, h) = analyze(&[(Dir::Resp, b"+OK POP3\r\n")]);
    assert!(rows.is_empty());
    assert!(h.violated(Tag::Smtp));
    assert!(!h.confirmed(Tag::Smtp));
}

#[test]
fn a_gap_is_recovered_from() {
    let mut h = harness();
    let mut analyzer = Analyzer::new(&mut h.cx());
    analyzer.stream(&mut h.cx(), Dir::Orig, b"MAIL FROM:<a@b>\r\n");
    analyzer.gap(&mut h.cx(), Dir::Orig, 100);
    analyzer.stream(&mut h.cx(), Dir::Orig, b"lost\r\n");
    analyzer.stream(&mut h.cx(), Dir::Resp, b"354 go\r\n");
    analyzer.stream(&mut h.cx(), Dir::Orig, b"Subject: x\r\n\r\n.\r\n");
    analyzer.stream(&mut h.cx(), Dir::Resp, b"250 ok\r\n");
    analyzer.finish(&mut h.cx());
    let rows = h.rows("smtp");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["subject"], "x");
    assert_eq!(rows[0]["last_reply"], "250 ok");
}

#[test]
fn endless_nonsense_is_left_alone() {
    let mut h = harness();
    let mut analyzer = Analyzer::new(&mut h.cx());
    for _ in 0..30 {
        analyzer.stream(&mut h.cx(), Dir::Orig, b"RCPT TO:<a@b>\r\n");
    }
    assert_eq!(analyzer.reading, Reading::Off);
    analyzer.finish(&mut h.cx());
    assert_eq!(h.rows("smtp").len(), 1);
}

proptest! {
    #[test]
    fn cuts_do_not_matter(cut in 0usize..80, seventh in 0usize..MAIL.len()) {
        let mut chunks = MAIL.to_vec();
        let (from, data) = chunks[seventh];
        let (a, b) = data.split_at(cut.min(data.len()));
        chunks.splice(seventh..=seventh, [(from, a), (from, b)]);
        prop_assert_eq!(analyze(&chunks).0, analyze(MAIL).0);
    }

    #[test]
    fn any_bytes_do(chunks: Vec<(bool, Vec<u8>)>, words in "((MAIL FROM:a@b|RCPT TO:c|DATA|BDAT 3( LAST)?|QUIT|STARTTLS|TURN|X: y|\\.|)\r\n){0,20}") {
        let mut all = vec![(Dir::Orig, words.as_bytes())];
        all.extend(chunks.iter().map(|(o, d)| (if *o { Dir::Orig } else { Dir::Resp }, &d[..])));
        all.push((Dir::Orig, words.as_bytes()));
        let (rows, _) = analyze(&all);
        prop_assert!(rows.len() <= 50);
    }
}

#[test]
fn long_lists_of_addresses_are_not_searched() {
    let (begin, end) = (&MAIL[..5], &MAIL[8..]);
    let mut list = [b"To: "[..].to_vec(), b"a@b,\r\n ".repeat(2000)].concat();
    list.extend(b"a@b\r\nCc: c@d\r\n");
    let turns: Vec<_> = begin.iter().copied().chain([(Dir::Orig, &list[..])]).collect();
    let (rows, h) = analyze(&[&turns, end].concat());
    assert_eq!((&*rows[0]["to"], &*rows[0]["cc"]), ("(empty)", "c@d"));
    let weirds = h.rows("weird");
    assert_eq!(weirds[0]["name"], "max_find_all_string_length_exceeded");
    assert!(weirds[0]["addl"].contains("line 61: length 10003 exceeded 10000"));
    assert_eq!(weirds[0]["uid"], "-");
}

#[test]
fn a_file_that_was_given_up_is_reported_again() {
    let mut h = Harness::new(Proto::Tcp, 25);
    let mut a = Analyzer::new(&mut h.cx());
    for (from, text) in &MAIL[..5] {
        a.stream(&mut h.cx(), *from, text);
    }
    a.stream(&mut h.cx(), Dir::Orig, b"Subject: hi\r\n\r\none\r\n");
    h.now = gannet_base::Time::from_secs(200);
    h.env.files.expire(&mut h.env.logs, h.now, h.now, |_, _| {});
    a.stream(&mut h.cx(), Dir::Orig, b"two\r\nthree\r\n.\r\n");
    a.finish(&mut h.cx());
    let (rows, files) = (h.rows("smtp"), h.rows("files"));
    assert_eq!(files.len(), 2);
    assert_eq!((&*files[0]["timedout"], &*files[1]["seen_bytes"]), ("T", "12"));
    let fuid = &files[0]["fuid"];
    assert_eq!(rows[0]["fuids"], format!("{fuid},{fuid}"));
}

#[test]
fn nonsense_is_read_to_the_end_of_the_data_at_hand() {
    let rcpts = |from: u8, to: u8| -> Vec<u8> {
        (from..to).flat_map(|n| format!("RCPT TO:<{n}@x>\r\n").into_bytes()).collect()
    };
    let (all, more) = (rcpts(0, 30), rcpts(30, 40));
    let (rows, h) = analyze(&[(Dir::Orig, b"HELO x\r\n"), (Dir::Orig, &all), (Dir::Orig, &more)]);
    assert_eq!(rows[0]["rcptto"].split(',').count(), 30);
    let weirds = h.rows("weird");
    let name = "smtp_excessive_invalid_mail_transactions";
    let limit: Vec<_> = weirds.iter().filter(|r| r["name"] == name).collect();
    assert_eq!((limit.len(), &*limit[0]["addl"]), (1, "26 > 25"));
}

#[test]
fn a_mail_is_a_file_where_scripts_ask_for_it() {
    let files = |on: u64| {
        let mut h = harness();
        let name = "SMTP::enable_rfc822_msg_file_analysis";
        h.env.apply_command(h.now, gannet_event::Command::Setting { name, value: on });
        let mut analyzer = Analyzer::new(&mut h.cx());
        for (from, data) in MAIL {
            analyzer.stream(&mut h.cx(), *from, data);
        }
        analyzer.finish(&mut h.cx());
        h.rows("files")
    };
    assert_eq!(files(0).len(), 1);
    let rows = files(1);
    assert_eq!(rows.len(), 2);
    let whole = rows.iter().find(|row| row["mime_type"] == "message/rfc822").unwrap();
    // From the first header field to the last line, without the dot that ends the mail.
    let text = MAIL[5..8].iter().map(|(_, part)| part.len()).sum::<usize>()
        + b"\r\n.dot\r\nQUIT\r\n".len();
    assert_eq!(whole["seen_bytes"], text.to_string());
}

#[test]
fn a_nul_is_reported_in_a_line_without_end() {
    let (_, h) = analyze(&[(Dir::Orig, b"HELO x\r\nNOO\0P")]);
    let weirds: Vec<_> = h.rows("weird").iter().map(|row| row["name"].clone()).collect();
    assert_eq!(weirds, ["NUL_in_line"]);
}

#[test]
fn a_line_is_an_event_before_it_is_part_of_a_file() {
    let mut h = harness();
    h.listen("");
    let mut analyzer = Analyzer::new(&mut h.cx());
    for (from, data) in MAIL {
        analyzer.stream(&mut h.cx(), *from, data);
    }
    analyzer.finish(&mut h.cx());
    let events = h.events();
    let names = events.iter().filter_map(|event| event.split(' ').next());
    let names: Vec<_> =
        names.filter(|name| ["mime_segment_data", "file_new"].contains(name)).collect();
    assert_eq!(names[..2], ["mime_segment_data", "file_new"]);
    // The file is the same as without a listener for lines.
    let rows = h.rows("files");
    assert_eq!(rows[0]["seen_bytes"], analyze(MAIL).1.rows("files")[0]["seen_bytes"]);
}

/// The `smtp_unexpected` events of a session, without the connection.
fn unexpected(chunks: &[(Dir, &[u8])]) -> Vec<String> {
    let mut h = harness();
    h.listen("smtp_unexpected");
    let mut analyzer = Analyzer::new(&mut h.cx());
    for (from, data) in chunks {
        match data {
            [] => analyzer.gap(&mut h.cx(), *from, 7),
            data => analyzer.stream(&mut h.cx(), *from, data),
        }
    }
    analyzer.finish(&mut h.cx());
    let short = |event: String| event[event.find("\"is_orig\"").unwrap()..].to_owned();
    h.events().into_iter().map(short).collect()
}

#[test]
fn what_is_unexpected() {
    assert!(unexpected(MAIL).is_empty());
    let got = unexpected(&[
        (Dir::Resp, b"221 x\r\n"),
        (Dir::Orig, b"MAIL FROM:<a@b>\r\nDATA\r\n.\r\nQUIT\r\nhello there\r\nNOOP\r\n"),
        (Dir::Resp, b"299 x\r\n354 go\r\n250-ok\r\n221 bye\r\n"),
        (Dir::Resp, b"hm\r\n"),
        (Dir::Resp, b""),
    ]);
    let expected = [
        (true, "unexpected reply", "221 state = 1, last command = CONN_ESTABLISHMENT"),
        (true, "unexpected command", "MAIL reply = 0 state = 1"),
        (true, "unexpected command", "DATA reply = 0 state = 4"),
        (true, "unknown command", "hello"),
        (true, "unexpected command", "NOOP reply = 0 state = 10"),
        (true, "unexpected reply", "299 state = 10, last command = MAIL"),
        (false, "reply code does not match the continuing reply", "221 bye"),
        (false, "reply code out of range", "hm"),
        (false, "content gap", "seq = 0, len = 7"),
    ];
    for (got, (is_orig, msg, detail)) in got.iter().zip(expected) {
        let want = format!(r#""is_orig":{is_orig},"msg":"{msg}","detail":"{detail}""#);
        assert!(got.starts_with(&want), "{got}\n{want}");
    }
    assert_eq!(got.len(), expected.len());
}

#[test]
fn states_follow_commands_and_replies() {
    let details = |client: &[u8], server: &[u8]| {
        let all =
            unexpected(&[(Dir::Orig, client), (Dir::Resp, server), (Dir::Orig, b"RCPT x\r\n")]);
        let last = all.last().unwrap();
        last[last.rfind("state = ").unwrap()..].trim_end_matches(['"', '}']).to_owned()
    };
    for (client, server, state) in [
        (&b"HELO x\r\n"[..], &b"220 x\r\n250 x\r\n"[..], "state = 3"),
        (b"HELO x\r\n", b"220 x\r\n501 x\r\n", "state = 1"),
        (b"NOOP\r\n", b"554 x\r\n", "state = 2"),
        (b"HELO x\r\nAUTH x\r\n", b"220 x\r\n250 x\r\n235 ok\r\n", "state = 1"),
        (b"HELO x\r\nTURN\r\nTURN\r\n", b"220 x\r\n250 x\r\n502 x\r\n502 x\r\n", "state = 3"),
        (b"MAIL FROM:x\r\n", b"220 x\r\n550 x\r\n", "state = 3"),
        (b"RCPT TO:x\r\nDATA\r\n", b"220 x\r\n250 x\r\n421 x\r\n", "state = 10"),
        (b"RCPT TO:x\r\nDATA\r\n.\r\n", b"220 x\r\n", "state = 7"),
        (b"QUIT\r\n", b"220 x\r\n", "state = 10"),
    ] {
        assert_eq!(details(client, server), state, "{}", client.escape_ascii());
    }
}

#[test]
fn lines_behind_tls_are_chunks() {
    let got = unexpected(&[
        (Dir::Orig, b"HELO x\r\nSTARTTLS\r\n"),
        (Dir::Resp, b"220 x\r\n250 x\r\n220 go\r\n"),
        (Dir::Orig, b""),
        (Dir::Orig, b"a\nb\r\r"),
    ]);
    let texts = [
        r#""msg":"content gap","detail":"seq = 0, len = 7""#,
        r#""msg":"more than one <CR> at the end of line","detail":"a\nb\r\r""#,
        r#""msg":"Bare <CR> or <LF> appears in the middle of line","detail":"a\nb""#,
    ];
    assert_eq!(got.len(), texts.len());
    for (got, text) in got.iter().zip(texts) {
        assert!(got.contains(text), "{got}");
    }
}
