use proptest::prelude::*;

use super::*;

/// A sink that records all calls.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Recorder {
    fn note(&mut self, depth: usize, what: &str, text: &[u8]) {
        let same = format!("{depth} {what} ");
        let text = text.escape_ascii().to_string();
        match self.0.last_mut() {
            // Consecutive pieces of data are joined.
            Some(last) if what == "data" && last.starts_with(&same) => last.push_str(&text),
            _ => self.0.push(same + &text),
        }
    }
}

impl Sink for Recorder {
    fn begin(&mut self, depth: usize) {
        self.note(depth, "begin", b"");
    }
    fn header(&mut self, depth: usize, field: Field<'_>) {
        self.note(depth, "header", &[field.name, b"|", field.value].concat());
    }
    fn data(&mut self, depth: usize, data: &[u8]) {
        self.note(depth, "data", data);
    }
    fn end(&mut self, depth: usize) {
        self.note(depth, "end", b"");
    }
    fn limit(&mut self, name: &'static str, at: usize) {
        self.note(at, "limit", name.as_bytes());
    }
    fn bad_base64(&mut self, complaint: &str) {
        self.note(0, "base64", complaint.as_bytes());
    }
}

fn read(text: &[u8]) -> Vec<String> {
    let mut notes = Recorder::default();
    let mut mime = Mime::new(&mut notes);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    for line in text.split(|&b| b == b'\n') {
        mime.line(line, true, &mut notes);
    }
    mime.finish(&mut notes);
    notes.0
}

#[test]
fn one_entity() {
    let got = read(b"Subject: a\n\tb\nTo: x\n\nhello\n\nworld\n");
    assert_eq!(
        got,
        [
            "0 begin ",
            "0 header Subject|a\\tb",
            "0 header To|x",
            "0 data hello\\r\\n\\r\\nworld\\r\\n",
            "0 end ",
        ]
    );
}

#[test]
fn parts_of_a_multipart() {
    let got = read(
        b"Content-Type: multipart/mixed; boundary=b\n\npreamble\n--b\nContent-Type: text/plain\n\
          \none\ntwo\n--b\nContent-Transfer-Encoding: base64\n\naGVs\nbG8=\n--b--\nepilogue\n",
    );
    assert_eq!(
        got,
        [
            "0 begin ",
            "0 header Content-Type|multipart/mixed; boundary=b",
            "1 begin ",
            "1 header Content-Type|text/plain",
            "1 data one\\r\\ntwo",
            "1 end ",
            "1 begin ",
            "1 header Content-Transfer-Encoding|base64",
            "1 data hello",
            "1 end ",
            "0 end ",
        ]
    );
}

#[test]
fn messages_and_multiparts_nest() {
    let got = read(
        b"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\n\n\
          Content-Type: multipart/mixed; boundary=i\n\n--i\n\nbody\n--o\n\nlast\n",
    );
    let shape: Vec<_> = got.iter().filter(|l| !l.contains("header")).collect();
    assert_eq!(
        shape,
        [
            "0 begin ",
            "1 begin ",
            "2 begin ",
            "3 begin ",
            "3 data body",
            "3 end ",
            "2 end ",
            "1 end ",
            "1 begin ",
            "1 data last",
            "1 end ",
            "0 end ",
        ]
    );
}

#[test]
fn a_body_that_never_comes() {
    assert_eq!(read(b"Subject: x\n"), ["0 begin ", "0 header Subject|x", "0 end "]);
}

#[test]
fn quoted_printable_lines() {
    let decode = |line: &[u8]| {
        let mut out = Vec::new();
        decode_quoted_printable(line, &mut out, |_| ());
        out
    };
    assert_eq!(decode(b"caf=C3=A9 \t"), b"caf\xc3\xa9\r\n");
    assert_eq!(decode(b"soft="), b"soft");
    assert_eq!(decode(b"soft=  "), b"soft");
    assert_eq!(decode(b"=zz=4"), b"=zz=4\r\n");
    let mut faults = Vec::new();
    decode_quoted_printable(b"a\t=zz \x01=41\xe9=", &mut Vec::new(), |fault| faults.push(fault));
    assert_eq!(faults, [Fault::NoDigits, Fault::Control(1), Fault::Control(0xe9)]);
    assert_eq!(faults[2].detail(), "control characters in quoted-printable encoding: 233");
    assert_eq!(faults[2].event_type(), "illegal encoding");
}

#[test]
fn nesting_is_limited() {
    let mut text = Vec::new();
    for _ in 0..150 {
        text.extend_from_slice(b"Content-Type: message/rfc822\n\n");
    }
    let got = read(&text);
    assert_eq!(got.iter().filter(|l| l.contains("begin")).count(), MAX_DEPTH + 1);
    assert!(got.iter().any(|l| l == "100 limit exceeded_mime_max_depth"));
}

#[test]
fn a_field_is_limited() {
    let mut notes = Recorder::default();
    let mut mime = Mime::new(&mut notes);
    mime.line(b"X: y", true, &mut notes);
    for _ in 0..70 {
        mime.line(&[b' '; 1000], true, &mut notes);
    }
    mime.finish(&mut notes);
    assert!(notes.0.iter().any(|l| l == "66004 limit exceeded_mime_max_header_bytes"));
}

proptest! {
    #[test]
    fn entities_are_balanced(text in "(Content-Type: (multipart/a; boundary=b|message/a)\n|--b(--)?\n|x\n|\n){0,40}") {
        let mut open = Vec::new();
        for line in read(text.as_bytes()) {
            let (depth, what) = line.split_once(' ').unwrap_or_default();
            match what {
                "begin " => { prop_assert_eq!(depth, open.len().to_string()); open.push(()); }
                "end " => { open.pop(); prop_assert_eq!(depth, open.len().to_string()); }
                _ => {}
            }
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn any_lines_do(text: Vec<u8>) {
        prop_assert!(read(&text).len() >= 2);
    }
}
