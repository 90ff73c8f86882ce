//! Files in several responses, with gaps and pauses.

use std::collections::BTreeMap;

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::UidSource;

use super::GET;
use super::run;
use crate::Analyze;
use crate::http::Analyzer;
use crate::testing::Harness;

#[test]
fn responses_to_range_requests_have_the_fuid_of_their_url() {
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nRange: bytes=0-\r\n\r\n").into_bytes()
    };
    let answer = |text: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
    };
    let (rows, h) = run(&[
        (Dir::Orig, &get("/a")),
        (Dir::Resp, &answer("one")),
        (Dir::Orig, &get("/a")),
        (Dir::Resp, &answer("three")),
        (Dir::Orig, &get("/b")),
        (Dir::Resp, &answer("one")),
    ]);
    let fuids: Vec<_> = rows.iter().map(|r| r["resp_fuids"].clone()).collect();
    assert_eq!(fuids[0], fuids[1]);
    assert_ne!(fuids[0], fuids[2]);
    let files = h.rows("files");
    let seen: Vec<_> = files.iter().map(|r| (&r["fuid"], &*r["seen_bytes"])).collect();
    assert_eq!(seen, [(&fuids[0], "3"), (&fuids[0], "5"), (&fuids[2], "3")]);
}

#[test]
fn a_range_that_is_refused_ends_its_file() {
    let get = b"GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes=3-\r\n\r\n";
    let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 3-5/9\r\n\r\nabc";
    let no = b"HTTP/1.1 416 No\r\nContent-Length: 2\r\n\r\nno";
    let (rows, h) = run(&[(Dir::Orig, get), (Dir::Resp, part), (Dir::Orig, get), (Dir::Resp, no)]);
    // Its body is added to the file, which the first row lists.
    assert_ne!(rows[0]["resp_fuids"], "-");
    assert_eq!(rows[1]["resp_fuids"], "-");
    assert_eq!(h.rows("files").len(), 1);
    assert_eq!(h.rows("files")[0]["timedout"], "F");
}

#[test]
fn each_range_requests_a_file_handle() {
    let get = b"GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes=3-\r\n\r\n";
    let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 3-5/9\r\nContent-Length: 3\r\n\r\nabc";
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("get_file_handle");
    let mut a = Analyzer::new(&mut h.cx());
    for _ in 0..2 {
        a.stream(&mut h.cx(), Dir::Orig, get);
        a.stream(&mut h.cx(), Dir::Resp, part);
    }
    let sides: Vec<_> = h.events().iter().map(|e| e.ends_with(r#""is_orig":true"#)).collect();
    assert_eq!(sides, [true, false, true, false]);
}

#[test]
fn a_file_that_continues_after_its_timeout_is_new_again() {
    let mut h = Harness::new(Proto::Tcp, 80);
    h.listen("file_");
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut names: Vec<Vec<String>> = Vec::new();
    for piece in [&b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"[..], b"def", b"ghi"] {
        a.stream(&mut h.cx(), Dir::Resp, piece);
        h.now += Interval::from_secs(200);
        h.env.expire(h.now, h.now);
        names.push(h.events().iter().map(|e| e.split(' ').next().unwrap().to_owned()).collect());
    }
    let begin = ["file_new", "file_over_new_connection"];
    let idle = [begin[0], begin[1], "file_timeout", "file_state_remove"];
    let complete = [begin[0], begin[1], "file_state_remove"];
    let expected = [&idle[..], &idle, &complete];
    assert_eq!(names, expected);
}

#[test]
fn the_end_of_a_message_requests_a_handle_unless_its_file_timed_out() {
    for (length, wait, handles) in [(3, 1, 1), (3, 200, 1), (9, 1, 0), (9, 200, 0)] {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n");
        h.listen("get_file_handle");
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabc");
        a.stream(&mut h.cx(), Dir::Resp, reply.as_bytes());
        let first = h.events().len();
        h.now += Interval::from_secs(wait);
        h.env.expire(h.now, h.now);
        a.finish(&mut h.cx());
        let response = |e: &&String| e.ends_with(r#""is_orig":false"#);
        let last = h.events().iter().filter(response).count();
        assert_eq!(first + last, 1 + handles, "{length} {wait}");
    }
}

#[test]
fn a_response_shorter_than_the_data_so_far_is_another_file() {
    let get = b"GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes=0-\r\n\r\n";
    let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-2/9\r\n\r\nabc";
    let no = b"HTTP/1.1 416 No\r\nContent-Length: 2\r\n\r\nno";
    let (rows, h) = run(&[(Dir::Orig, get), (Dir::Resp, part), (Dir::Orig, get), (Dir::Resp, no)]);
    assert_eq!(rows[0]["resp_fuids"], rows[1]["resp_fuids"]);
    let files = h.rows("files");
    let seen: Vec<_> = files.iter().map(|f| (&*f["seen_bytes"], &*f["total_bytes"])).collect();
    assert_eq!(seen, [("3", "2"), ("2", "-")]);
}

#[test]
fn an_empty_response_to_a_range_request_ends_its_file() {
    let get = b"GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes=3-\r\n\r\n";
    let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-2/9\r\n\r\nabc";
    let seen = |between: &[u8]| {
        let exchange =
            [get, &part[..], get, between, get, part].map(|data| match data.starts_with(b"GET") {
                true => (Dir::Orig, data),
                false => (Dir::Resp, data),
            });
        let files = run(&exchange).1.rows("files");
        files.into_iter().map(|f| (f["timedout"].clone(), f["seen_bytes"].clone())).collect()
    };
    let seen: [Vec<_>; 3] = [
        seen(b"HTTP/1.1 304 Not\r\n\r\n"),
        seen(b"HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n"),
        seen(b"HTTP/1.1 206 Part\r\nContent-Length: 0\r\n\r\n"),
    ];
    let row = |timed_out: &str, bytes: &str| (timed_out.to_owned(), bytes.to_owned());
    assert_eq!(seen[0], [row("F", "3")]);
    assert_eq!(seen[1], [row("F", "3")]);
    assert_eq!(seen[2], []);
}

#[test]
fn a_gap_of_a_range_is_reported_at_its_offset_in_the_body() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    a.stream(&mut h.cx(), Dir::Orig, b"GET /a HTTP/1.1\r\nRange: bytes=20-\r\n\r\n");
    let head = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 20-119/200\r\n\r\n";
    a.stream(&mut h.cx(), Dir::Resp, &[&head[..], &[b'x'; 50]].concat());
    a.gap(&mut h.cx(), Dir::Resp, 10);
    a.stream(&mut h.cx(), Dir::Resp, &[b'x'; 40]);
    a.finish(&mut h.cx());
    let now = h.now;
    h.env.files.finish(&mut h.env.logs, now, |_, _| ());
    let file = &h.rows("files")[0];
    // Missing: bytes 0 to 20, and bytes 60 (10 after the first 50) to 80.
    assert_eq!((&file["seen_bytes"][..], &file["missing_bytes"][..]), ("90", "40"));
}

#[test]
fn a_gap_after_the_last_byte_of_a_file_of_ranges_is_another_file() {
    for range in ["Range: bytes=0-\r\n", ""] {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        let get = format!("GET /a HTTP/1.1\r\n{range}\r\n").into_bytes();
        let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-2/3\r\n\r\nabc";
        a.stream(&mut h.cx(), Dir::Orig, &get);
        a.stream(&mut h.cx(), Dir::Resp, part);
        a.gap(&mut h.cx(), Dir::Resp, 5);
        a.finish(&mut h.cx());
        let now = h.now;
        h.env.files.finish(&mut h.env.logs, now, |_, _| ());
        let of = |f: &BTreeMap<String, String>| {
            ["seen_bytes", "missing_bytes", "total_bytes", "timedout"].map(|c| f[c].clone())
        };
        let files: Vec<_> = h.rows("files").iter().map(of).collect();
        let expected = [["3", "0", "3", "F"], ["0", "5", "-", "T"]];
        assert_eq!(files, expected.map(|row| row.map(str::to_owned)));
    }
}

#[test]
fn a_body_that_continues_after_a_timeout_is_reported_again() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    let head = b"HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=f\r\n\
                 Content-Length: 30\r\n\r\n";
    a.stream(&mut h.cx(), Dir::Orig, GET);
    a.stream(&mut h.cx(), Dir::Resp, &[head, &b"GIF89a-one"[..]].concat());
    let wait = |h: &mut Harness| {
        h.now += Interval::from_secs(300);
        let now = h.now;
        h.env.files.expire(&mut h.env.logs, now, now, |_, _| ());
    };
    wait(&mut h);
    a.stream(&mut h.cx(), Dir::Resp, b"%PDF-1.7--");
    wait(&mut h);
    a.gap(&mut h.cx(), Dir::Resp, 10);
    a.finish(&mut h.cx());
    let row = &h.rows("http")[0];
    let fuid = row["resp_fuids"].split(',').next().unwrap();
    assert_eq!(row["resp_fuids"], [fuid; 3].join(","));
    assert_eq!(row["resp_filenames"], "f,f,f");
    assert_eq!(row["resp_mime_types"], "image/gif,application/pdf");
    let of = |f: &BTreeMap<String, String>| {
        ["fuid", "seen_bytes", "missing_bytes", "total_bytes", "timedout"].map(|c| f[c].clone())
    };
    let files: Vec<_> = h.rows("files").iter().map(of).collect();
    let expected = [["10", "0", "30", "T"], ["10", "0", "-", "T"], ["0", "10", "-", "F"]];
    assert_eq!(files, expected.map(|[a, b, c, d]| [fuid, a, b, c, d].map(str::to_owned)));
}

#[test]
fn a_range_continues_after_a_timeout_although_its_file_was_removed() {
    let mut h = Harness::new(Proto::Tcp, 80);
    let mut a = Analyzer::new(&mut h.cx());
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nRange: bytes=0-\r\n\r\n").into_bytes();
    let part = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-9/99\r\n\r\nabc";
    a.stream(&mut h.cx(), Dir::Orig, &get("/a"));
    a.stream(&mut h.cx(), Dir::Resp, part);
    h.now += Interval::from_secs(300);
    let now = h.now;
    h.env.files.expire(&mut h.env.logs, now, now, |_, _| ());
    // Another file of ranges starts, and the one that timed out is removed.
    h.now += Interval::from_secs(30);
    let mut other = Analyzer::new(&mut h.cx());
    other.stream(&mut h.cx(), Dir::Orig, &get("/b"));
    other.stream(&mut h.cx(), Dir::Resp, part);
    a.stream(&mut h.cx(), Dir::Resp, b"defg");
    a.finish(&mut h.cx());
    let now = h.now;
    h.env.files.finish(&mut h.env.logs, now, |_, _| ());
    let row = &h.rows("http")[0];
    let fuid = row["resp_fuids"].split(',').next().unwrap();
    assert_eq!(row["resp_fuids"], [fuid; 2].join(","));
    let files = h.rows("files");
    let of = |f: &&BTreeMap<String, String>| f["fuid"] == fuid;
    let seen: Vec<_> = files.iter().filter(of).map(|f| f["seen_bytes"].clone()).collect();
    assert_eq!(seen, ["3", "4"]);
}

#[test]
fn connections_with_ranges_of_one_file() {
    let get = b"GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes=3-\r\n\r\n";
    let part = b"HTTP/1.1 206 Part\r\nContent-Disposition: attachment; filename=f\r\n\
                 Content-Range: bytes 0-2/99\r\n\r\nabc";
    // The file fields of the second connection's row, and the lengths of the files.
    let second = |answer: &[u8], port: u16| {
        let mut h = Harness::new(Proto::Tcp, 80);
        for (number, answer) in [(1, &part[..]), (2, answer)] {
            h.conn.uid = UidSource::new(0).connection(number, 0);
            h.conn.id.orig_p = if number == 2 { port } else { 1_000 };
            let mut a = Analyzer::new(&mut h.cx());
            a.stream(&mut h.cx(), Dir::Orig, get);
            a.stream(&mut h.cx(), Dir::Resp, answer);
            a.finish(&mut h.cx());
        }
        let now = h.now;
        h.env.files.finish(&mut h.env.logs, now, |_, _| ());
        let row = &h.rows("http")[1];
        let named = row["resp_fuids"] != "-";
        let files = h.rows("files");
        let seen = files.iter().map(|f| f["seen_bytes"].clone()).collect::<Vec<_>>().join(",");
        (named, row["resp_filenames"].clone(), seen)
    };
    let is = |named, filenames: &str, seen: &str| (named, filenames.to_owned(), seen.to_owned());
    let range = b"HTTP/1.1 206 Part\r\nContent-Range: bytes 3-4/99\r\n\r\nde";
    assert_eq!(second(range, 1_001), is(true, "f", "5,5"));
    // Connections are distinguished by their endpoints.
    assert_eq!(second(range, 1_000), is(false, "-", "5"));
    // Data without offset and size continues the file on any connection.
    let whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(second(whole, 1_001), is(false, "-", "5"));
}

#[test]
fn the_lf_of_a_split_empty_line_starts_a_part_of_declared_length() {
    // Within a part, a lone CR is not a line end any more when the LF arrives.
    let parts = b"--b\r\nContent-Length: 6\r\n\r\nGIF89a\r\n--b--\r\n";
    let head = format!(
        "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n\
         Content-Length: {}\r\n\r\n",
        parts.len()
    );
    let result = |cut: usize| {
        let first = [head.as_bytes(), &parts[..cut]].concat();
        let (rows, h) = run(&[(Dir::Orig, &first), (Dir::Orig, &parts[cut..])]);
        (rows[0]["orig_mime_types"].clone(), h.rows("files")[0]["seen_bytes"].clone())
    };
    let empty = parts.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 2;
    assert_eq!(result(empty), ("image/gif".to_owned(), "6".to_owned()));
    assert_eq!(result(empty + 1), ("-".to_owned(), "6".to_owned()));
}

#[test]
fn a_gap_after_a_complete_request_ends_with_the_connection_unless_another_exchange_began() {
    const POST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (replies, timedout) in [(1, "F"), (2, "T")] {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, POST);
        a.stream(&mut h.cx(), Dir::Resp, REPLY);
        // A second request that was not captured: its reply starts the next exchange.
        a.gap(&mut h.cx(), Dir::Orig, 300);
        if replies == 2 {
            a.stream(&mut h.cx(), Dir::Resp, REPLY);
        }
        a.finish(&mut h.cx());
        let now = h.now;
        h.env.files.finish(&mut h.env.logs, now, |_, _| ());
        let files = h.rows("files");
        let seen = |file: &BTreeMap<String, String>| {
            [file["missing_bytes"].clone(), file["timedout"].clone()]
        };
        let rows: Vec<_> = files.iter().map(seen).collect();
        assert_eq!(rows, [["0", "F"], ["300", timedout]], "{replies}");
    }
}

#[test]
fn a_gap_after_a_complete_body_is_a_file_with_the_same_fuid_until_the_next_exchange() {
    for next in [false, true] {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, GET);
        let reply = b"HTTP/1.0 404 Not\r\nContent-Length: 3\r\n\r\nabc";
        a.stream(&mut h.cx(), Dir::Resp, reply);
        if next {
            a.stream(&mut h.cx(), Dir::Orig, GET);
        }
        // A FIN that was not captured.
        a.gap(&mut h.cx(), Dir::Resp, 1);
        a.finish(&mut h.cx());
        let now = h.now;
        h.env.files.finish(&mut h.env.logs, now, |_, _| ());
        let files = h.rows("files");
        let seen = |file: &BTreeMap<String, String>| {
            [file["seen_bytes"].clone(), file["missing_bytes"].clone()]
        };
        assert_eq!(files.iter().map(seen).collect::<Vec<_>>(), [["3", "0"], ["0", "1"]]);
        assert_eq!(files[0]["fuid"] == files[1]["fuid"], !next);
    }
}
