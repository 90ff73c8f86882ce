//! Whole connections through the analyzer.

mod files;

use std::collections::BTreeMap;
use std::io::Write;

use gannet_base::Dir;
use gannet_base::Proto;
use proptest::prelude::*;

use super::Analyzer;
use crate::Analyze;
use crate::ScriptRequest;
use crate::Tag;
use crate::testing::Harness;

type Rows = Vec<BTreeMap<String, String>>;

/// Analyzes what both sides send, in order, up to the end of the connection.
fn run(chunks: &[(Dir, &[u8])]) -> (Rows, Harness) {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    for (from, data) in chunks {
        a.stream(&mut h.cx(), *from, data);
    }
    a.end(&mut h.cx(), Dir::Orig);
    a.end(&mut h.cx(), Dir::Resp);
    a.finish(&mut h.cx());
    (h.rows("http"), h)
}

fn exchange(request: &[u8], response: &[u8]) -> Rows {
    run(&[(Dir::Orig, request), (Dir::Resp, response)]).0
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

#[test]
fn all_headers_and_the_type_of_a_body_are_events() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("http_");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, b"POST / HTTP/1.1\r\nHost: a\r\ncontent-type: Text/Html; x=1\r\nContent-Length: 2\r\n\r\nab");
    let events = h.events();
    let of = |name: &str| -> Vec<_> {
        let its = |e: &&String| e.split(' ').next() == Some(name);
        events.iter().filter(its).cloned().collect()
    };
    assert_eq!(of("http_header").len(), 3);
    let all = of("http_all_headers");
    assert_eq!(all.len(), 1);
    assert!(
        all[0].contains(r#""1":{"original_name":"Host","name":"HOST","value":"a"}"#)
            && all[0].contains(r#""2":{"original_name":"content-type","name":"CONTENT-TYPE""#)
            && all[0].contains(r#""3":{"original_name":"Content-Length""#),
        "{all:?}"
    );
    let ty = r#"http_content_type "is_orig":true,"ty":"TEXT","subty":"HTML""#;
    assert_eq!(of("http_content_type"), [ty]);
    assert_eq!(
        of("http_entity_data"),
        [r#"http_entity_data "is_orig":true,"length":2,"data":"ab""#]
    );
}

#[test]
fn a_header_is_an_event_once_the_next_line_is_complete() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("http_header");
    let mut a = Analyzer::new(&mut h.cx());
    let parts = [&b"GET / HTTP/1.1\r\nHost: a\r\nAccept"[..], b": b\r\n", b"\r\n"];
    let counts = parts.map(|part| {
        a.stream(&mut h.cx(), Dir::Orig, part);
        h.events().len()
    });
    assert_eq!(counts, [0, 1, 1]);
}

#[test]
fn a_range_that_is_not_valid_is_no_event() {
    for (range, expected) in
        [("bytes 0-4/9", 1), ("bytes 4-0/9", 0), ("bytes=0-4/9", 0), ("bytes x", 0)]
    {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.listen("http_");
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, GET);
        let reply = format!("HTTP/1.1 206 OK\r\nContent-Range: {range}\r\n\r\n12345");
        a.stream(&mut h.cx(), Dir::Resp, reply.as_bytes());
        let events = h.events();
        let of = |name: &str| {
            let its = |e: &&String| e.starts_with(name) && e.contains("Content-Range");
            events.iter().filter(its).count()
        };
        assert_eq!((of("http_header "), of("http_all_headers ")), (expected, 1), "{range}");
    }
}

/// Lengths of the `http_entity_data` events of the responder, `http_end_entity` events, and rows of files.
fn skipped(parts: &[&[u8]], skip_after: usize) -> (Vec<String>, usize, Rows, Rows) {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("http_");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, GET);
    a.stream(&mut h.cx(), Dir::Orig, GET);
    for (number, part) in parts.iter().enumerate() {
        a.stream(&mut h.cx(), Dir::Resp, part);
        if number == skip_after {
            let request = ScriptRequest::SkipEntity { from: Dir::Resp };
            assert!(a.handle_request(&mut h.cx(), request));
        }
    }
    a.finish(&mut h.cx());
    let events = h.events();
    let data = |e: &String| {
        Some(e.strip_prefix("http_entity_data ")?.split("\"data\":").nth(1)?.to_owned())
    };
    let ends = events.iter().filter(|e| e.starts_with("http_end_entity")).count();
    (events.iter().filter_map(data).collect(), ends, h.rows("http"), h.rows("files"))
}

#[test]
fn a_skipped_entity_is_counted_and_not_delivered() {
    let parts: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"defghi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy",
    ];
    let (data, ends, rows, files) = skipped(&parts, 0);
    // The next message is delivered again.
    assert_eq!(data, ["\"abc\"", "\"xy\""]);
    assert_eq!(ends, 4);
    assert_eq!(rows[0]["response_body_len"], "9");
    let seen: Vec<_> = files.iter().map(|f| (&*f["seen_bytes"], &*f["total_bytes"])).collect();
    assert_eq!(seen, [("3", "9"), ("2", "2")]);
    let (data, ..) = skipped(&parts, 2);
    assert_eq!(data, ["\"abc\"", "\"defghi\"", "\"xy\""]);
}

#[test]
fn bodies_of_a_known_length_are_skipped_if_a_script_option_is_set() {
    let bodies = |value: u64| {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.listen("http_entity_data");
        h.env
            .apply_command(h.now, gannet_event::Command::Setting { name: "skip_http_data", value });
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, GET);
        a.stream(&mut h.cx(), Dir::Orig, GET);
        for message in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..],
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n",
        ] {
            a.stream(&mut h.cx(), Dir::Resp, message);
        }
        a.finish(&mut h.cx());
        let lengths: Vec<_> =
            h.rows("http").iter().map(|row| row["response_body_len"].clone()).collect();
        (h.events().len(), lengths, h.rows("files").len())
    };
    let lengths = || vec!["3".to_owned(), "2".to_owned()];
    assert_eq!(bodies(0), (2, lengths(), 2));
    assert_eq!(bodies(1), (1, lengths(), 1));
}

#[test]
fn a_line_is_one_event_with_its_end() {
    let parts: [&[u8]; 3] =
        [b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n\r\none\r\n", b"two\r\n", b"\r\n"];
    let (data, ..) = skipped(&parts, 9);
    assert_eq!(data, [r#""one\r\n""#, r#""two\r\n""#, r#""\r\n""#]);
}

#[test]
fn an_entity_is_skipped_within_its_header() {
    for header in [
        "Content-Transfer-Encoding: base64\r\nContent-Length: 4\r\n\r\nYWJj",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "Content-Type: multipart/mixed; boundary=b\r\nContent-Length: 19\r\n\r\n--b\r\n\r\nabc\r\n--b--\r\n",
        "Content-Type: message/rfc822\r\nContent-Length: 11\r\n\r\nA: b\r\n\r\nc\r\n",
    ] {
        let next: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy";
        let parts = [b"HTTP/1.1 200 OK\r\n", header.as_bytes(), next];
        let (data, ends, _, files) = skipped(&parts, 0);
        assert_eq!(data, ["\"xy\""], "{header}");
        assert_eq!((ends, files.len()), (4, 1), "{header}");
    }
}

#[test]
fn a_part_or_all_parts_of_a_multipart_body_are_skipped() {
    let parts: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=b\r\nContent-Length: 31\r\n\r\n",
        b"--b\r\n\r\nabc\r\n--b\r\n",
        b"\r\ndef\r\n--b--\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy",
    ];
    let (data, ..) = skipped(&parts, 0);
    assert_eq!(data, ["\"xy\""]);
    // The second part.
    let (data, ..) = skipped(&parts, 1);
    assert_eq!(data, ["\"abc\"", "\"xy\""]);
}

#[test]
fn a_request_and_its_response() {
    let (rows, h) = run(&[
        (
            Dir::Orig,
            b"POST /%41?b HTTP/1.1\r\nHost: a.example:81\r\nUser-Agent: x\r\nReferer: r\r\n\
              Origin: o\r\nVia: v\r\nAuthorization: Basic dTpw\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (Dir::Resp, b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nabcd"),
    ]);
    assert_eq!(rows.len(), 1);
    let expected = [
        ("trans_depth", "1"),
        ("method", "POST"),
        ("host", "a.example:81"),
        ("uri", "/A?b"),
        ("referrer", "r"),
        ("version", "1.0"),
        ("user_agent", "x"),
        ("origin", "o"),
        ("request_body_len", "3"),
        ("response_body_len", "4"),
        ("status_code", "200"),
        ("status_msg", "OK"),
        ("info_code", "-"),
        ("tags", "(empty)"),
        ("username", "u"),
        ("password", "-"),
        ("proxied", "VIA -> v"),
    ];
    for (column, value) in expected {
        assert_eq!(rows[0][column], value, "{column}");
    }
    assert!(h.confirmed(Tag::Http));
    assert!(!h.violated(Tag::Http));
}

#[test]
fn chunks_are_joined() {
    let rows = exchange(
        GET,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          4;x=y\r\nabcd\r\n0a\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
    );
    assert_eq!(rows[0]["response_body_len"], "14");
}

#[test]
fn compressed_bodies_count_uncompressed() {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    e.write_all(&[b'a'; 10_000]).unwrap();
    let z = e.finish().unwrap();
    let mut response =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", z.len())
            .into_bytes();
    response.extend(z);
    assert_eq!(exchange(GET, &response)[0]["response_body_len"], "10000");
}

#[test]
fn head_and_304_have_no_body() {
    let rows = exchange(
        b"HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
          HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    );
    let lens: Vec<_> = rows.iter().map(|r| &r["response_body_len"][..]).collect();
    assert_eq!(lens, ["0", "0", "1"]);
    assert_eq!(rows[2]["uri"], "/c");
}

#[test]
fn informational_responses_come_before_the_final_one() {
    let rows = exchange(
        b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["info_code"][..], &rows[0]["info_msg"][..]), ("100", "Continue"));
    assert_eq!(rows[0]["status_code"], "201");
}

#[test]
fn a_body_without_length_is_lines_until_the_end() {
    let rows = exchange(GET, b"HTTP/1.1 200 OK\r\n\r\na\nbc\r\nlast");
    // Each line end counts as two bytes.
    assert_eq!(rows[0]["response_body_len"], "13");
    let rows = exchange(GET, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na\nbc");
    assert_eq!(rows[0]["response_body_len"], "4");
}

#[test]
fn unanswered_requests_are_written_at_the_end() {
    let (rows, _) = run(&[(Dir::Orig, GET), (Dir::Orig, GET)]);
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[1]["trans_depth"][..], &rows[1]["status_code"][..]), ("2", "-"));
}

#[test]
fn too_much_pipelining_writes_pending_exchanges() {
    let requests = GET.repeat(150);
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, &requests);
    assert_eq!(h.rows("http").len(), 100);
    a.finish(&mut h.cx());
    assert_eq!(h.rows("http").len(), 150);
}

#[test]
fn http_0_9() {
    let (rows, h) =
        run(&[(Dir::Orig, b"GET /\r\n"), (Dir::Resp, b"<html>\r\n"), (Dir::Resp, b"x")]);
    assert_eq!(rows[0]["version"], "0.9");
    assert_eq!(rows[0]["response_body_len"], "9");
    assert_eq!(rows[0]["status_msg"], "<empty>");
    assert!(h.confirmed(Tag::Http));
}

#[test]
fn an_incomplete_line_before_the_request_is_part_of_its_body() {
    let (rows, _) = run(&[(Dir::Orig, b"GET /"), (Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\nAAA")]);
    assert_eq!((&*rows[1]["version"], &*rows[1]["response_body_len"]), ("0.9", "3"));
    assert_eq!(rows[1]["status_msg"], "<empty>");
}

#[test]
fn any_protocol_may_follow_connect() {
    let (rows, h) = run(&[
        (Dir::Orig, b"CONNECT a:80 HTTP/1.1\r\n\r\n"),
        (Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\n"),
        (Dir::Orig, b"GET /within HTTP/1.1\r\n\r\n"),
        (Dir::Resp, b"HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx"),
    ]);
    assert_eq!(h.rows("tunnel")[0]["tunnel_type"], "Tunnel::HTTP");
    // Both analyzers count exchanges together. The response to CONNECT ends with the connection,
    // after the nested exchanges.
    let depths: Vec<_> = rows.iter().map(|r| (&r["uri"][..], &r["trans_depth"][..])).collect();
    assert_eq!(depths, [("/within", "2"), ("-", "3"), ("a:80", "1")]);
    assert!(h.starts.is_empty());
    assert!(!h.violated(Tag::Http));
}

#[test]
fn inner_analyzers_get_no_gaps() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, b"CONNECT a:80 HTTP/1.1\r\n\r\n");
    a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\n");
    a.stream(&mut h.cx(), Dir::Orig, b"GET /within HTTP/1.1\r\nHo");
    a.gap(&mut h.cx(), Dir::Orig, 100);
    a.stream(&mut h.cx(), Dir::Orig, b"st: b\r\n\r\n");
    a.finish(&mut h.cx());
    let rows = h.rows("http");
    let within = rows.iter().find(|r| r["uri"] == "/within").unwrap();
    assert_eq!(within["host"], "b");
}

#[test]
fn inner_analyzers_get_no_end_of_a_side() {
    let (rows, _) = run(&[
        (Dir::Orig, b"CONNECT a:80 HTTP/1.1\r\n\r\n"),
        (Dir::Resp, b"HTTP/1.1 200 ok\r\n\r\n"),
        (Dir::Orig, b"GET /within HTTP/1.0\r\n\r\n"),
        (Dir::Resp, b"HTTP/1.0 200 OK\r\n\r\none\r\ntwo"),
    ]);
    // The end of the side ends the response to CONNECT, and the nested exchange has its row.
    let reported: Vec<_> =
        rows.iter().map(|r| (&r["uri"][..], &r["response_body_len"][..])).collect();
    assert_eq!(reported, [("/within", "0"), ("-", "5"), ("a:80", "0")]);
}

#[test]
fn an_upgrade_to_websocket() {
    let get = b"GET /ws HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n\r\n";
    let upgrade = b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
                    Sec-WebSocket-Protocol: p\r\n\r\n";
    let (rows, h) = run(&[(Dir::Orig, get), (Dir::Resp, upgrade), (Dir::Resp, b"\x81\x00")]);
    assert_eq!((rows.len(), &rows[0]["status_code"][..]), (1, "101"));
    let row = &h.rows("websocket")[0];
    assert_eq!((&row["host"][..], &row["uri"][..], &row["subprotocol"][..]), ("a", "/ws", "p"));
    assert!(h.confirmed(Tag::WebSocket));
    assert!(!h.violated(Tag::Http));
}

#[test]
fn other_protocols_are_violations() {
    let (rows, h) = run(&[(Dir::Orig, b"EHLO x\r\n"), (Dir::Resp, b"220 y\r\n")]);
    // "EHLO x" could be HTTP/0.9, whose response may be anything.
    assert_eq!(rows[0]["method"], "EHLO");
    assert!(!h.violated(Tag::Http));
    let (rows, h) = run(&[(Dir::Orig, b"\x16\x03\x01\r\n")]);
    assert!(rows.is_empty());
    assert!(h.violated(Tag::Http));
}

#[test]
fn data_after_the_declared_length_is_another_file_with_the_same_fuid() {
    let (rows, h) = run(&[
        (Dir::Orig, GET),
        (Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (Dir::Resp, b"5\r\nabcde\r\n2\r\nfg\r\n0\r\n\r\n"),
    ]);
    assert_eq!(rows[0]["response_body_len"], "7");
    let files = h.rows("files");
    let reported: Vec<_> =
        files.iter().map(|f| (&f["seen_bytes"][..], &f["total_bytes"][..])).collect();
    assert_eq!(reported, [("5", "3"), ("2", "-")]);
    assert_eq!(files[0]["fuid"], files[1]["fuid"]);
    let fuid = &files[0]["fuid"];
    assert_eq!(rows[0]["resp_fuids"], format!("{fuid},{fuid}"));
}

#[test]
fn parts_of_a_multipart_body() {
    let body = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"one.txt\"\r\n\r\n\
                 1\n\r\n--b\r\nContent-Type: text/plain; name=two\r\n\r\n2\r\n--b--\r\n";
    let request = [
        &b"POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"[..],
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        body,
    ]
    .concat();
    let rows = exchange(&request, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["orig_filenames"], "one.txt,two");
    assert_eq!(rows[0]["request_body_len"], body.len().to_string());
}

#[test]
fn parts_within_parts() {
    let body = b"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
                 --c\r\nContent-Type: message/rfc822\r\n\r\n\
                 Content-Disposition: attachment; filename=in\r\n\r\none\r\n--two\r\n--c\r\n\r\n\
                 three\r\n--b\r\nContent-Disposition: attachment; filename=out\r\n\r\nfour\r\n--b--\r\n";
    let request = [
        &b"POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"[..],
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        body,
    ]
    .concat();
    for at in 0..=request.len() {
        let (rows, h) = run(&[(Dir::Orig, &request[..at]), (Dir::Orig, &request[at..])]);
        assert_eq!(rows[0]["orig_filenames"], "in,out");
        assert_eq!(rows[0]["request_body_len"], body.len().to_string());
        let files: Vec<_> = h
            .rows("files")
            .iter()
            .map(|f| (f["filename"].clone(), f["seen_bytes"].clone()))
            .collect();
        let expected = [("in", "12"), ("-", "5"), ("out", "4")];
        assert_eq!(files, expected.map(|(name, seen)| (name.into(), seen.into())));
    }
}

#[test]
fn a_gap_after_the_last_part_is_a_file_of_the_enclosing_entity() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    let request = b"POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n\
                    Content-Length: 500\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
                    Content-Length: 2\r\n\r\nab";
    a.stream(&mut h.cx(), Dir::Orig, request);
    a.gap(&mut h.cx(), Dir::Orig, 7);
    a.finish(&mut h.cx());
    let files = h.rows("files");
    let seen: Vec<_> =
        files.iter().map(|f| (&f["seen_bytes"][..], &f["missing_bytes"][..])).collect();
    assert_eq!(seen, [("2", "0"), ("0", "7")]);
}

#[test]
fn a_gap_within_a_body_counts() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, GET);
    a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab");
    a.gap(&mut h.cx(), Dir::Resp, 7);
    a.stream(&mut h.cx(), Dir::Resp, b"jHTTP/1.1 ");
    assert_eq!(h.rows("http")[0]["response_body_len"], "10");
    a.gap(&mut h.cx(), Dir::Resp, 7);
    a.finish(&mut h.cx());
    assert_eq!(h.rows("http").len(), 1);
}

#[test]
fn a_gap_that_ends_a_message_is_not_counted_in_its_event() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("http_message_done");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, GET);
    a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab");
    a.gap(&mut h.cx(), Dir::Resp, 3);
    a.gap(&mut h.cx(), Dir::Resp, 5);
    let events = h.events();
    let counts = r#""body_length":10,"content_gap_length":3"#;
    assert!(events.last().unwrap().contains(counts), "{events:?}");
}

#[test]
fn a_gap_after_a_message_needs_no_new_handle() {
    // A file of known size that is complete has no handle that more data could use.
    for (length, handles) in [(2, 1), (3, 0)] {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, GET);
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nab");
        a.stream(&mut h.cx(), Dir::Resp, reply.as_bytes());
        if length == 3 {
            a.gap(&mut h.cx(), Dir::Resp, 1);
        }
        h.listen("get_file_handle");
        a.gap(&mut h.cx(), Dir::Resp, 7);
        assert_eq!(h.events().len(), handles, "{length}");
    }
}

/// Building blocks of a connection.
const PIECES: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\n",
    b"GET /\r\n",
    b"HEAD / HTTP/1.0\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 206 Partial\r\n",
    b"HTTP/1.1 100 Continue\r\n",
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: ",
    b"websocket\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Content-Range: bytes 3-7/9\r\nContent-Type: a/b;name=c\r\n",
    b"Range: bytes=1-\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Transfer-Encoding: base64\r\n",
    b"Content-Transfer-Encoding: quoted-printable\r\n",
    b"Content-Type: multipart/x; boundary=b\r\n",
    b"Content-Type: message/rfc822\r\n",
    b"Connection: close\r\n",
    b"--b\r\n",
    b"--b--\r\n",
    b"\r\n",
    b"\r",
    b"\n",
    b" ",
    b"5\r\n",
    b"0\r\n",
    b"abcde",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
    b"\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0",
    b"\x81\x05abcde",
];

#[test]
fn streams_within_streams_have_a_limit() {
    let level: [(Dir, &[u8]); 2] =
        [(Dir::Orig, b"CONNECT a:1 HTTP/1.1\r\n\r\n"), (Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\n")];
    let (rows, h) = run(&level.repeat(20));
    let connects = rows.iter().filter(|r| r["method"] == "CONNECT").count();
    assert_eq!(connects, 9);
    assert_eq!(h.env.nesting, 0);
}

fn weirds(chunks: &[(Dir, &[u8])]) -> Vec<String> {
    let (_, h) = run(chunks);
    h.rows("weird").into_iter().map(|mut r| r.remove("name").unwrap_or_default()).collect()
}

#[test]
fn weirds_are_reported() {
    let cases: &[(&[u8], &[&str])] = &[
        (b"ODD / HTTP/1.1\r\n\r\n", &["unknown_HTTP_method"]),
        (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", &["HTTP_obsolete_line_folding"]),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", &["HTTP_bad_content_length"]),
        (b"GET / HTTP/1.1\r\nContent-Length: 01\r\n\r\nx", &["HTTP_content_length_leading_zeros"]),
        (
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
              z\r\n\r\n",
            &["HTTP_content_length_and_chunked", "HTTP_bad_chunk_size"],
        ),
        (b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", &["unexpected_multiple_HTTP_requests"]),
        (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n", &["HTTP_version_mismatch"]),
        (b"GET / HTTP/1.1\r\n\r\n\r\n", &["bad_HTTP_request", "empty_http_request"]),
        (b"GET / HTTP/1.1\rA: b\r\n\r\n", &["line_terminated_with_single_CR"]),
        (b"POST /\r\n", &["invalid_http_09_request_method"]),
    ];
    for (request, names) in cases {
        assert_eq!(weirds(&[(Dir::Orig, request)]), *names, "{}", request.escape_ascii());
    }
}

#[test]
fn weird_line_ends_are_reported_once() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.0 200 OK\r\n\r\na\rb\n");
    for _ in 0..3 {
        // Repeated weirds of a connection are suppressed for ten minutes only.
        h.now += gannet_base::Interval::from_secs(700);
        h.env.weirds.check_suppressed(h.now);
        a.stream(&mut h.cx(), Dir::Resp, b"a\rb\n");
    }
    a.stream(&mut h.cx(), Dir::Orig, b"a\rb\n");
    let is = |name: &str| h.rows("weird").iter().filter(|w| w["name"] == name).count();
    assert_eq!(is("line_terminated_with_single_CR"), 1);
}

#[test]
fn line_ends_after_a_gap_are_not_weird() {
    for hole in [false, true] {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.conn.set_partial(true);
        let mut a = Analyzer::new(&mut h.cx());
        if hole {
            a.gap(&mut h.cx(), Dir::Orig, 9);
        }
        a.stream(&mut h.cx(), Dir::Orig, b"one\rtwo\r\n");
        assert_eq!(h.rows("weird").is_empty(), hole);
    }
}

#[test]
fn errors_are_events() {
    let faults = |chunks: &[(Dir, &[u8])]| -> Vec<String> {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.listen("http_event");
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        let parts = |event: &String| {
            let words: Vec<_> = event.split('"').collect();
            format!("{}: {}", words[3], words[7])
        };
        h.events().iter().map(parts).collect()
    };
    let crud = "crud after HTTP version is ignored: / HTTP/1.1 x";
    assert_eq!(faults(&[(Dir::Orig, b"GET / HTTP/1.1 x\r\n\r\n")]), [crud]);
    let bad = "bad_HTTP_version: x.y";
    assert_eq!(faults(&[(Dir::Orig, b"GET / HTTP/x.y\r\n\r\n")]), [bad]);
    assert_eq!(faults(&[(Dir::Orig, b"GET / HTTP/1\r\n\r\n")]), ["bad_HTTP_version: / HTTP/1"]);
    let trailing = "crud_trailing_HTTP_request: more";
    assert_eq!(faults(&[(Dir::Orig, b"GET / HTTP/1.0\r\n\r\nmore\r\n")]), [trailing]);
    for (line, expected) in [
        ("HTTP/1.1 200 OK", &[][..]),
        ("HTTP/1.1 200 ", &[]),
        ("HTTP/1.1 200", &["HTTP_reply_reason_phrase_missing: HTTP/1.1 200"]),
        ("HTTP/1.1 20", &["HTTP_reply_code_missing: HTTP/1.1 20"]),
        ("HTTP/1.1", &["HTTP_reply_code_missing: HTTP/1.1"]),
        ("HTTP/x 200 OK", &["bad_HTTP_version: x 200 OK"]),
        ("ICY 200 OK", &["bad_HTTP_reply: ICY 200 OK"]),
    ] {
        let line = [line.as_bytes(), b"\r\n"].concat();
        assert_eq!(faults(&[(Dir::Orig, GET), (Dir::Resp, &line)]), expected);
    }
    for (header, fault) in [
        (" first: x", "first header line starts with linear whitespace"),
        ("Content-Type: x", "media type/subtype not found in content type"),
        (
            "Content-Type: multipart/mixed; a=b",
            "boundary delimiter is not specified for a multipart",
        ),
        ("Content-Type: multipart/mixed; x; boundary=b", "= not found in parameter"),
        ("Content-Type: message/rfc822; x=", "value not found in parameter specification"),
        ("Content-Transfer-Encoding: ", "encoding type not found in content encoding"),
    ] {
        let lines = ["HTTP/1.1 200 OK\r\n", header, "\r\nContent-Length: 9\r\n\r\n"].concat();
        let found = faults(&[(Dir::Orig, GET), (Dir::Resp, lines.as_bytes())]);
        let expected = format!("illegal format: {fault}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{header}: {found:?}");
    }
    let coded =
        b"HTTP/1.1 200 OK\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=zz\x01=41\r\n";
    assert_eq!(
        faults(&[(Dir::Orig, GET), (Dir::Resp, coded)]),
        [
            "illegal encoding: = is not followed by two hexadecimal digits in quoted-printable encoding",
            "illegal encoding: control characters in quoted-printable encoding: 1",
        ]
    );
}

#[test]
fn nothing_is_read_after_a_file_that_follows_a_violation() {
    let ok = b"HTTP/1.1 200 OK\r\n\r\none\r\ntwo\r\nthree\r\n";
    let request = [GET, b"nonsense\r\n"].concat();
    // The handlers of the violation run when the file starts.
    let (rows, h) = run(&[(Dir::Orig, &request), (Dir::Resp, ok)]);
    assert_eq!(rows[0]["response_body_len"], "5");
    assert_eq!(h.rows("files")[0]["seen_bytes"], "5");
    let (rows, _) = run(&[(Dir::Orig, GET), (Dir::Resp, ok)]);
    assert_eq!(rows[0]["response_body_len"], "17");
    // Violations do not count after this amount of data.
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, &request);
    h.conn.set_payload(Dir::Orig, 20_000);
    a.stream(&mut h.cx(), Dir::Resp, ok);
    a.finish(&mut h.cx());
    assert_eq!(h.rows("http")[0]["response_body_len"], "17");
}

#[test]
fn a_removed_analyzer_requests_a_file_handle_once() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("");
    let mut a = Analyzer::new(&mut h.cx());
    a.suspend(&mut h.cx());
    let asked = |h: &mut Harness| {
        let all = h.events();
        all.iter().filter(|event| event.starts_with("get_file_handle ")).count()
    };
    assert_eq!(asked(&mut h), 1);
    a.finish(&mut h.cx());
    assert_eq!(asked(&mut h), 0);
}

#[test]
fn decompression_takes_an_analyzer_id() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, GET);
    let number = |h: &mut Harness, tag| h.cx().aid(tag).map(|id| id.0);
    let before = number(&mut h, Tag::Ssh);
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n";
    a.stream(&mut h.cx(), Dir::Resp, head);
    a.stream(&mut h.cx(), Dir::Resp, b"\xff\xff");
    a.stream(&mut h.cx(), Dir::Resp, b"\xff\xff");
    assert_eq!(number(&mut h, Tag::Ssl), before.map(|id| id + 2));
}

#[test]
fn corrupt_compression_is_reported() {
    let response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\
                     \xff\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(weirds(&[(Dir::Orig, GET), (Dir::Resp, response)]), ["inflate_failed"]);
}

#[test]
fn a_weird_shows_what_was_sent_byte_for_byte() {
    let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\xff\xfeg\0h\r\n";
    let (_, h) = run(&[(Dir::Orig, GET), (Dir::Resp, response)]);
    let rows = h.rows("weird");
    assert_eq!(rows[0]["name"], "HTTP_bad_chunk_size");
    assert_eq!(rows[0]["addl"], "\\xff\\xfeg");
}

#[test]
fn an_invalid_character_of_base64_is_reported_when_it_arrives() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    let head = b"POST / HTTP/1.1\r\nContent-Transfer-Encoding: base64\r\nContent-Length: 9\r\n\r\n";
    a.stream(&mut h.cx(), Dir::Orig, head);
    a.stream(&mut h.cx(), Dir::Orig, b"YW*");
    assert_eq!(h.rows("weird")[0]["addl"], "character 42 ignored by Base64 decoding");
    a.stream(&mut h.cx(), Dir::Orig, b"Jj=YWI");
    a.finish(&mut h.cx());
    assert_eq!(h.rows("weird").len(), 1);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(chunks: Vec<(bool, Vec<u8>)>) {
        let chunks: Vec<_> = chunks
            .iter()
            .map(|(orig, data)| (if *orig { Dir::Orig } else { Dir::Resp }, &data[..]))
            .collect();
        run(&chunks);
    }

    #[test]
    fn no_pieces_of_messages_make_it_panic(
        pieces in proptest::collection::vec((any::<bool>(), 0..PIECES.len() + 3), 0..30),
    ) {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        for (orig, n) in pieces {
            let from = if orig { Dir::Orig } else { Dir::Resp };
            match n.checked_sub(PIECES.len()) {
                None => a.stream(&mut h.cx(), from, PIECES[n]),
                Some(0) => a.gap(&mut h.cx(), from, 5),
                Some(1) => a.end(&mut h.cx(), from),
                Some(_) => a.reset(&mut h.cx()),
            }
        }
        a.finish(&mut h.cx());
        // Each exchange has exactly one row.
        let mut depths: Vec<_> = h.rows("http").iter().map(|r| r["trans_depth"].clone()).collect();
        let rows = depths.len();
        depths.sort_unstable();
        depths.dedup();
        prop_assert_eq!(depths.len(), rows);
    }

    #[test]
    fn rows_do_not_depend_on_chunks(at in 0usize..200) {
        let response: &[u8] =
            b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\nTransfer-Encoding: chunked\r\n\r\n\
              4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc";
        let (a, b) = response.split_at(at.min(response.len()));
        let whole = run(&[(Dir::Orig, GET), (Dir::Orig, GET), (Dir::Resp, response)]).0;
        let cut = run(&[(Dir::Orig, GET), (Dir::Orig, GET), (Dir::Resp, a), (Dir::Resp, b)]).0;
        prop_assert_eq!(whole, cut);
    }
}
