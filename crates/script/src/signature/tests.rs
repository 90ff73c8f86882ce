use super::rules::states;
use super::*;

#[derive(Default)]
struct Scripts {
    errors: Vec<String>,
}

impl Names for Scripts {
    fn global(&mut self, name: &str) -> Global {
        match name {
            "seventeen" => Global::Values(vec![Value::Number(17)]),
            "nets" => Global::Values(vec![
                Value::Subnet { base: crate::value::v4([192, 168, 1, 0]), bits: 120 },
                Value::Subnet { base: crate::value::v4([127, 0, 0, 0]), bits: 104 },
            ]),
            "text" => Global::Text(b".*abc".to_vec()),
            _ => Global::Missing,
        }
    }

    fn is_event(&mut self, name: &str) -> bool {
        name == "known"
    }

    fn event(&mut self, name: Option<&str>, _: bool) -> Option<u32> {
        Some(u32::from(name.is_some()))
    }

    fn condition(&mut self, name: &str) -> Result<u32, Vec<&'static str>> {
        match name {
            "yes" => Ok(1),
            "no" => Ok(0),
            _ => Err(vec!["unknown identifier"]),
        }
    }

    fn analyzer(&mut self, name: &str) -> Option<Box<str>> {
        Some(name.to_uppercase().into())
    }

    fn error(&mut self, text: &str) {
        self.errors.push(text.to_owned());
    }

    fn warning(&mut self, text: &str) {
        self.errors.push(format!("warning: {text}"));
    }
}

/// The executed actions.
#[derive(Default)]
struct Done(Vec<String>);

impl Host for Done {
    fn holds(&mut self, _: &Rule, condition: Condition, context: &MatchContext<'_>) -> bool {
        match condition {
            Condition::Eval(number) => number == 1,
            Condition::Tcp(states) | Condition::Udp(states) => {
                (states & states::ORIGINATOR == 0 || context.is_orig)
                    && (states & states::RESPONDER == 0 || !context.is_orig)
            }
            _ => false,
        }
    }

    fn act(&mut self, rule: &Rule, action: &Action, context: &MatchContext<'_>) {
        let what = match action {
            Action::Event { .. } => "event",
            Action::Enable { analyzer, .. } => analyzer,
            _ => "other",
        };
        let data = String::from_utf8_lossy(context.data.unwrap_or_default());
        self.0.push(format!("{} {what} {data}:{}", rule.id, context.end));
    }
}

fn signatures(text: &str) -> Signatures {
    let (mut names, mut rules) = (Scripts::default(), Vec::new());
    assert!(parse("x.sig", text.as_bytes(), false, &mut names, &mut rules), "{:?}", names.errors);
    let all = Signatures::new(rules, Limits::default(), &mut names);
    assert!(names.errors.is_empty(), "{:?}", names.errors);
    all
}

fn errors(text: &str) -> Vec<String> {
    let (mut names, mut rules) = (Scripts::default(), Vec::new());
    parse("x.sig", text.as_bytes(), false, &mut names, &mut rules);
    let _ = Signatures::new(rules, Limits::default(), &mut names);
    names.errors
}

/// An IPv4/UDP packet from 127.0.0.1, port 30000, to port 13000.
fn packet() -> ([u8; 20], [u8; 8]) {
    let mut header = [0; 20];
    (header[0], header[9]) = (0x45, 17);
    header[12..16].copy_from_slice(&[127, 0, 0, 1]);
    header[16..20].copy_from_slice(&[127, 0, 0, 1]);
    let mut payload = [0; 8];
    payload[..2].copy_from_slice(&30_000_u16.to_be_bytes());
    payload[2..4].copy_from_slice(&13_000_u16.to_be_bytes());
    (header, payload)
}

#[test]
fn automata_have_the_names_of_their_rules() {
    let text = "signature a { ip-proto == udp payload /a.*b/ payload /cd/ event \"a\" }\n\
                signature b { ip-proto == udp payload /ef/ event \"b\" }\n\
                signature c { file-magic /gh/ file-mime \"x/y\" }";
    let all = signatures(text);
    let mut found: Vec<_> = all.automata().map(|(kind, names, _)| (kind, names)).collect();
    found.iter_mut().for_each(|(_, names)| names.sort_unstable());
    found.sort_by_key(|(_, names)| names.len());
    assert_eq!(found, [(Kind::FileMagic, vec!["c"]), (Kind::Payload, vec!["a", "b"])]);
}

struct Run<'a> {
    all: &'a Signatures,
    conn: Connection,
    done: Done,
}

impl<'a> Run<'a> {
    fn new(all: &'a Signatures) -> Self {
        Self { all, conn: Connection::default(), done: Done::default() }
    }

    fn begin(&mut self, is_orig: bool) {
        let (header, payload) = packet();
        let headers = Headers { version: 4, header: &header, payload: &payload, protocol: 17 };
        self.all.begin(&mut self.conn, is_orig, Some(&headers), &mut self.done);
    }

    fn feed(&mut self, is_orig: bool, kind: Kind, data: &[u8]) {
        let fresh = kind != Kind::Payload;
        let item = Item { kind, data, begins: fresh, ends: fresh, fresh };
        self.all.feed(&mut self.conn, is_orig, &item, &mut self.done);
    }
}

/// The rules that the first packet of the originator matches.
fn on_first(text: &str) -> Vec<String> {
    let all = signatures(text);
    let mut run = Run::new(&all);
    run.begin(true);
    run.done.0
}

#[test]
fn tests_of_headers() {
    let matches =
        |test: &str| !on_first(&format!("signature a {{ {test} event \"m\" }}")).is_empty();
    assert!(matches("ip-proto == udp"));
    assert!(matches("ip-proto == seventeen"));
    assert!(!matches("ip-proto == tcp"));
    assert!(matches("dst-port == 22,13000") && !matches("dst-port != 22,13000"));
    assert!(matches("dst-port != 22,23") && !matches("dst-port < 13000"));
    assert!(matches("dst-port == 12990-13010"));
    assert!(matches("src-ip == 10.0.0.0/8,[fe80::0]/16,127.0.0.0/8"));
    assert!(!matches("src-ip != 10.0.0.0/8,[fe80::0]/16,127.0.0.0/8"));
    assert!(matches("dst-ip == nets"));
    assert!(matches("header ip[16:4] == 127.0.0.0/24") && !matches("header ip6[0:1] == 0x45"));
    assert!(matches("header udp[2:1] & 0x0f == 0x02") && matches("header udp[3] == 200"));
    // Tests beyond the end of the headers fail.
    assert!(!matches("header ip[19:2] >= 0"));
}

#[test]
fn later_rules_and_nodes_come_first() {
    let text = "signature a { ip-proto == 17 event \"m\" }
        signature b { ip-proto == 17 event \"m\" }
        signature c { dst-port == 13000 event \"m\" }";
    assert_eq!(on_first(text), ["c event :0", "b event :0", "a event :0"]);
}

#[test]
fn patterns_match_streams_in_pieces() {
    let all = signatures(
        "signature whole { payload /.*portable/ event \"m\" }
        signature begin { payload /^por/ event \"m\" }
        signature inside { payload /table/ event \"m\" }
        signature both { payload /port/ payload /.*x/ event \"m\" }
        signature deep { payload [0:3] /port/ event \"m\" }
        signature newline { payload /port.ble\\n.x/ event \"m\" }",
    );
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::Payload, b"porta");
    run.feed(true, Kind::Payload, b"ble\n.x");
    assert_eq!(
        run.done.0,
        [
            "begin event porta:3",
            "whole event ble\n.x:3",
            "both event ble\n.x:6",
            "newline event ble\n.x:6"
        ]
    );
}

#[test]
fn patterns_that_match_the_empty_string_match_only_with_others() {
    let all = signatures(
        "signature any { payload /.*/ event \"m\" }
        signature x { payload /x/ event \"m\" }
        signature uri { http-request /y*/ event \"m\" }",
    );
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::HttpRequest, b"y");
    run.feed(true, Kind::HttpRequest, b"y");
    run.feed(true, Kind::Payload, b"");
    assert!(run.done.0.is_empty(), "{:?}", run.done.0);
    run.feed(true, Kind::Payload, b"xx");
    assert_eq!(run.done.0, ["any event xx:0", "x event xx:1", "uri event xx:0"]);
}

#[test]
fn rules_wait_for_those_they_require() {
    let all = signatures(
        "signature client { payload /hello/ tcp-state originator event \"m\" }
        signature server { payload /welcome/ requires-reverse-signature client enable \"ftp\" }
        signature never { payload /hello/ requires-signature ! other event \"m\" }
        signature other { payload /bye/ event \"m\" }",
    );
    let mut run = Run::new(&all);
    run.begin(true);
    run.begin(false);
    run.feed(false, Kind::Payload, b"welcome");
    assert!(run.done.0.is_empty());
    run.feed(true, Kind::Payload, b"hello");
    assert_eq!(run.done.0, ["client event hello:5", "server FTP welcome:7"]);
    // That another rule does not match is known only at the end.
    run.all.finish(&mut run.conn, &mut run.done);
    assert_eq!(run.done.0[2..], ["never event hello:5"]);
}

#[test]
fn conditions_and_sizes() {
    let all = signatures(
        "signature small { payload-size < 1 event \"m\" }
        signature some { payload-size > 0 event \"m\" }
        signature no { payload /./ eval no event \"m\" }
        signature yes { payload /./ eval yes event \"m\" }
        signature options { ip-options lsrr, rr event \"m\" }",
    );
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::Payload, b"x");
    assert_eq!(run.done.0, ["yes event x:1"]);
    run.all.clear(&mut run.conn, true, &mut run.done);
    assert_eq!(run.done.0[1..], ["some event :0"]);
}

#[test]
fn each_datagram_starts_a_new_match() {
    let all = signatures("signature a { payload /^XX/ event \"m\" }");
    let mut run = Run::new(&all);
    run.begin(true);
    for datagram in [&b"aX"[..], b"Xb", b"XXc"] {
        run.feed(true, Kind::Payload, datagram);
        run.all.clear(&mut run.conn, true, &mut run.done);
    }
    assert_eq!(run.done.0, ["a event XXc:2"]);
}

#[test]
fn items_of_protocols() {
    let all = signatures(
        "signature body { http-request-body /^AB$/ event \"m\" }
        signature uri { http-request /.*secret/ event \"m\" }",
    );
    assert!(all.has(Kind::HttpRequest) && !all.has(Kind::Ftp));
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::HttpRequest, b"/a/secret");
    run.feed(true, Kind::HttpRequestBody, b"ABC");
    run.feed(true, Kind::HttpRequestBody, b"AB");
    assert_eq!(run.done.0, ["uri event /a/secret:9", "body event AB:3"]);
}

#[test]
fn files_have_the_strongest_type() {
    let all = signatures(
        "signature a { file-magic /^PK/ file-mime \"application/zip\", 50 }
        signature b { file-magic /^PK\\x03/ file-mime \"application/x-own\", 80 }
        signature c { file-magic /^PK/ file-mime \"application/also\", -5 }",
    );
    assert!(!all.has_connections());
    let types = all.mime_types(b"PK\x03\x04");
    let names: Vec<_> = types.iter().map(|(n, t)| (*n, String::from_utf8_lossy(t))).collect();
    let expected = [(80, "application/x-own"), (50, "application/zip"), (-5, "application/also")];
    assert_eq!(names, expected.map(|(n, t)| (n, t.into())));
    assert!(all.mime_types(b"GIF").is_empty());
}

#[test]
fn native_rules_match_silently_and_only_where_required() {
    let (mut names, mut rules) = (Scripts::default(), Vec::new());
    let base = b"signature base { payload /x/ enable \"http\" } signature unused { payload /y/ }";
    parse("dpd.sig", base, true, &mut names, &mut rules);
    let own = b"signature own { payload /x/ requires-signature base event \"m\" }";
    parse("own.sig", own, false, &mut names, &mut rules);
    let all = Signatures::new(rules, Limits::default(), &mut names);
    assert!(!all.starts_analyzers());
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::Payload, b"x");
    assert_eq!(run.done.0, ["own event x:1"]);
}

#[test]
fn errors_name_file_and_line() {
    assert_eq!(errors("invalid"), ["Error in signature (x.sig:1): syntax error"]);
    assert_eq!(
        errors("signature a {\n udp-state established\n event \"m\"\n}"),
        ["Error in signature (x.sig:3): 'established' is not a valid 'udp-state'"]
    );
    assert_eq!(
        errors("signature a {\n event cat # comment\n}"),
        ["Error in signature (x.sig:3): identifier is not an event (cat)"]
    );
    assert_eq!(
        errors("signature a {\n eval none\n}"),
        ["Error in signature (x.sig:2): unknown identifier (none)"]
    );
    assert_eq!(
        errors("signature a {\n}\nsignature a {\n}"),
        ["Error in signature (x.sig:4): rule defined twice"]
    );
    assert_eq!(
        errors("signature a {\n requires-signature b\n}"),
        ["Error in signature a (x.sig:1): unknown rule referenced"]
    );
    assert_eq!(
        errors("signature a { payload [4:] /x/ }"),
        ["warning: Offsets are currently ignored for patterns"]
    );
    assert_eq!(
        errors("signature a { dst-port == nothing ip-proto == text }"),
        [
            "Error in signature (x.sig:1): unknown script-level identifier (nothing)",
            "Error in signature (x.sig:1): Wrong type of identifier"
        ]
    );
    assert_eq!(
        errors("signature a { payload /x/ }\nsignature b {\n payload /x/\n payload /(y/\n}"),
        ["Error in signature b (x.sig:4): error compiling pattern /(?s:(y)/"]
    );
}

#[test]
fn native_rules_make_empty_patterns_match() {
    let (mut names, mut rules) = (Scripts::default(), Vec::new());
    let base = b"signature base { payload /x/ enable \"http\" }";
    parse("dpd.sig", base, true, &mut names, &mut rules);
    let own = b"signature any { payload /.*/ event \"m\" }";
    parse("own.sig", own, false, &mut names, &mut rules);
    let all = Signatures::new(rules, Limits::default(), &mut names);
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::Payload, b"x");
    assert_eq!(run.done.0, ["any event x:0"]);
}

#[test]
fn tests_of_native_rules_keep_their_order() {
    let (mut names, mut rules) = (Scripts::default(), Vec::new());
    let base = b"signature base { ip-proto == 17 payload /x/ enable \"http\" }";
    parse("dpd.sig", base, true, &mut names, &mut rules);
    let own = b"signature port { dst-port == 13000 event \"m\" } signature u { ip-proto == 17 event \"m\" }";
    parse("own.sig", own, false, &mut names, &mut rules);
    let all = Signatures::new(rules, Limits::default(), &mut names);
    let mut run = Run::new(&all);
    run.begin(true);
    assert_eq!(run.done.0, ["port event :0", "u event :0"]);
}

#[test]
fn match_ends_count_the_beginning_and_end_of_data() {
    let all = signatures(
        "signature first { payload /a/ event \"m\" }
        signature uri { http-request /ab$/ event \"m\" }
        signature body { http-request-body /a/ event \"m\" }",
    );
    let mut run = Run::new(&all);
    run.begin(true);
    run.feed(true, Kind::Payload, b"a");
    run.feed(true, Kind::HttpRequest, b"ab");
    let item =
        Item { kind: Kind::HttpRequestBody, data: b"a", begins: false, ends: false, fresh: true };
    run.all.feed(&mut run.conn, true, &item, &mut run.done);
    assert_eq!(run.done.0, ["first event a:1", "uri event ab:3", "body event a:0"]);
}
