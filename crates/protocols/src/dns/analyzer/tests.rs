use proptest::prelude::*;

use gannet_base::Interval;

use super::*;
use crate::Request;
use crate::testing::Harness;

/// A message with the given header fields and the bytes after the header.
fn message(id: u16, flags: u16, counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
    let words = [id, flags].into_iter().chain(counts);
    words.flat_map(u16::to_be_bytes).chain(rest.iter().copied()).collect()
}

const QUESTION: &[u8] = b"\x03WwW\x07example\x00\x00\x01\x00\x01";

fn query(id: u16) -> Vec<u8> {
    message(id, 0x0100, [1, 0, 0, 0], QUESTION)
}

/// A CNAME and an address.
fn reply(id: u16) -> Vec<u8> {
    let mut rest = QUESTION.to_vec();
    rest.extend_from_slice(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01a\xc0\x10");
    rest.extend_from_slice(
        b"\x01a\xc0\x10\x00\x01\x00\x01\x00\x00\x01\x2c\x00\x04\xc0\x00\x02\x07",
    );
    message(id, 0x8580, [1, 2, 0, 1], &rest)
}

struct Test {
    h: Harness,
    a: Analyzer,
}

impl Test {
    fn new(proto: Proto, port: u16) -> Self {
        let mut h = Harness::new(proto, port);
        let a = Analyzer::new(&mut h.cx());
        Self { h, a }
    }

    fn datagram(&mut self, from: Dir, data: &[u8]) {
        self.h.now += Interval::from_millis(250);
        self.a.datagram(&mut self.h.cx(), from, data, data.len() as u32);
    }

    fn finish(&mut self) -> Vec<std::collections::BTreeMap<String, String>> {
        self.a.finish(&mut self.h.cx());
        self.h.rows("dns")
    }
}

#[test]
fn a_query_and_its_reply() {
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Orig, &query(7));
    assert!(t.h.rows("dns").is_empty() && t.h.confirmed(Tag::Dns));
    t.datagram(Dir::Resp, &reply(7));
    let rows = t.h.rows("dns");
    let columns = [
        ("ts", "1.250000"),
        ("trans_id", "7"),
        ("rtt", "0.250000"),
        ("query", "www.example"),
        ("qclass_name", "C_INTERNET"),
        ("qtype_name", "A"),
        ("rcode_name", "NOERROR"),
        ("AA", "T"),
        ("TC", "F"),
        ("RD", "T"),
        ("RA", "T"),
        ("Z", "0"),
        ("answers", "a.example,192.0.2.7"),
        ("TTLs", "60.000000,300.000000"),
        ("rejected", "F"),
        ("opcode_name", "query"),
    ];
    for (column, value) in columns {
        assert_eq!(rows[0][column], value, "{column}");
    }
    assert_eq!(t.finish().len(), 1);
    assert!(t.h.requests.len() == 1, "confirmed once: {:?}", t.h.requests);
}

#[test]
fn replies_find_the_oldest_query_of_their_id() {
    let mut t = Test::new(Proto::Udp, 53);
    for id in [1, 2, 1] {
        t.datagram(Dir::Orig, &query(id));
    }
    for id in [2, 1, 1, 1] {
        t.datagram(Dir::Resp, &reply(id));
    }
    let rtts: Vec<_> = t.finish().iter().map(|r| r["rtt"].clone()).collect();
    assert_eq!(rtts, ["0.500000", "1.000000", "0.750000", "-"]);
}

#[test]
fn a_reply_within_a_microsecond_took_no_time() {
    let mut t = Test::new(Proto::Udp, 53);
    for (id, nanos) in [(1, 999), (2, 1_000)] {
        t.datagram(Dir::Orig, &query(id));
        t.h.now = t.h.now + Interval::from_nanos(nanos) - Interval::from_millis(250);
        t.datagram(Dir::Resp, &reply(id));
    }
    let rtts: Vec<_> = t.finish().iter().map(|r| r["rtt"].clone()).collect();
    assert_eq!(rtts, ["-", "0.000001"]);
}

#[test]
fn a_reply_may_come_first() {
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Resp, &reply(9));
    assert!(t.h.rows("dns").is_empty());
    t.datagram(Dir::Orig, &query(9));
    let rows = t.finish();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["rtt"].as_str(), rows[0]["qtype_name"].as_str()), ("-", "A"));
    assert_eq!(rows[0]["answers"], "a.example,192.0.2.7");
}

#[test]
fn a_reply_from_the_originator_exchanges_the_roles() {
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Orig, &reply(9));
    assert!(matches!(t.h.requests[0], Request::Flip));
    // Not with multicast, where each message has a row of its own.
    let mut t = Test::new(Proto::Udp, 5353);
    t.h.conn.id.resp_h = Addr::v4([224, 0, 0, 251]);
    t.datagram(Dir::Orig, &reply(0));
    t.datagram(Dir::Orig, &query(0));
    assert!(!t.h.requests.iter().any(|r| matches!(r, Request::Flip)));
    assert_eq!(t.h.rows("dns").len(), 2);
}

#[test]
fn an_announcement_by_multicast_counts_as_a_message_of_the_responder() {
    let mut t = Test::new(Proto::Udp, 5353);
    t.h.conn.id.resp_h = Addr::v4([224, 0, 0, 251]);
    t.h.listen("dns_message");
    t.datagram(Dir::Orig, &reply(0));
    t.datagram(Dir::Orig, &reply(0));
    let sides: Vec<bool> =
        t.h.events().iter().map(|e| e.starts_with(r#"dns_message "is_orig":true"#)).collect();
    assert_eq!(sides, [false, true]);
}

#[test]
fn rejections() {
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Orig, &query(1));
    t.datagram(Dir::Resp, &message(1, 0x8105, [1, 0, 0, 0], QUESTION));
    t.datagram(Dir::Orig, &query(2));
    t.datagram(Dir::Resp, &message(2, 0x8105, [0, 0, 0, 0], b""));
    let rows = t.finish();
    assert_eq!((rows[0]["rejected"].as_str(), rows[0]["rcode_name"].as_str()), ("T", "REFUSED"));
    assert_eq!((rows[1]["rejected"].as_str(), rows[1]["rtt"].as_str()), ("T", "-"));
}

#[test]
fn netbios_names_are_decoded() {
    let mut t = Test::new(Proto::Udp, 137);
    let mut rest = b"\x20FHEPFCELEHFCEPFFFACACACACACACABL\x00\x00\x20\x00\x01".to_vec();
    t.datagram(Dir::Orig, &message(1, 0x2910, [1, 0, 0, 0], &rest));
    rest[35] = 0x21;
    t.datagram(Dir::Orig, &message(2, 0x0010, [1, 0, 0, 0], &rest));
    let rows = t.finish();
    assert_eq!(
        (rows[0]["query"].as_str(), rows[0]["qtype_name"].as_str()),
        ("WORKGROUP", "NIMLOC")
    );
    assert_eq!(rows[0]["opcode_name"], "netbios-registration");
    assert_eq!((rows[1]["qtype_name"].as_str(), rows[1]["Z"].as_str()), ("NBSTAT", "1"));
}

#[test]
fn netbios_messages_outside_of_pairs_count_for_the_previous_pair() {
    let mut t = Test::new(Proto::Udp, 137);
    t.datagram(Dir::Orig, &query(1));
    // "Wait for acknowledgement", opcode 7.
    t.datagram(Dir::Resp, &message(1, 0xb800, [0, 0, 0, 0], b""));
    assert_eq!(t.h.rows("dns").len(), 1);
    let rows = t.finish();
    assert_eq!((rows.len(), rows[1]["rcode"].as_str()), (2, "-"));
}

#[test]
fn dynamic_updates() {
    let mut t = Test::new(Proto::Udp, 53);
    let zone = b"\x04zone\x00\x00\x06\x00\x01";
    t.datagram(Dir::Orig, &message(1, 0x2800, [1, 0, 0, 0], zone));
    let mut rest = zone.to_vec();
    // h.zone must not exist; its address is set, its AAAA records and all of g.zone are deleted.
    rest.extend_from_slice(b"\x01h\xc0\x0c\x00\xff\x00\xfe\x00\x00\x00\x00\x00\x00");
    rest.extend_from_slice(b"\xc0\x16\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\x00\x00\x01");
    rest.extend_from_slice(b"\xc0\x16\x00\x1c\x00\xff\x00\x00\x00\x00\x00\x00");
    rest.extend_from_slice(b"\x01g\xc0\x0c\x00\xff\x00\xff\x00\x00\x00\x00\x00\x00");
    t.datagram(Dir::Resp, &message(1, 0xa800, [1, 1, 3, 0], &rest));
    let rows = t.finish();
    assert_eq!(rows.len(), 1);
    let answers =
        "pre: NameNotInUse h.zone,add: A h.zone 10.0.0.1,del: RRSet AAAA,del: RRSet * g.zone";
    assert_eq!(rows[0]["answers"], answers);
    assert_eq!(
        (rows[0]["opcode_name"].as_str(), rows[0]["query"].as_str()),
        ("dynamic-update", "h.zone")
    );
}

#[test]
fn messages_that_are_not_dns() {
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Orig, b"GET / HTTP/1.0\r\n\r\n");
    assert!(!t.h.confirmed(Tag::Dns));
    let mut t = Test::new(Proto::Udp, 53);
    t.datagram(Dir::Orig, &message(1, 0, [26, 0, 0, 0], b""));
    assert!(t.h.violated(Tag::Dns) && !t.h.confirmed(Tag::Dns));
    // The message is logged nevertheless.
    assert_eq!(t.finish().len(), 1);
}

#[test]
fn over_tcp_in_pieces() {
    let mut t = Test::new(Proto::Tcp, 53);
    let framed = |m: Vec<u8>| [&(m.len() as u16).to_be_bytes()[..], &m].concat();
    for byte in framed(query(3)) {
        t.a.stream(&mut t.h.cx(), Dir::Orig, &[byte]);
    }
    let both = [framed(reply(3)), framed(reply(4))].concat();
    t.a.stream(&mut t.h.cx(), Dir::Resp, &both[..both.len() - 1]);
    assert_eq!(t.h.rows("dns").len(), 1);
    // The second reply lacks its last byte: it is parsed up to its end.
    t.a.closed(&mut t.h.cx());
    let rows = t.finish();
    assert_eq!((rows.len(), rows[1]["answers"].as_str()), (2, "a.example"));
    assert_eq!(rows[0]["proto"], "tcp");
}

#[test]
fn incomplete_messages_count_as_sent_by_the_originator() {
    let mut t = Test::new(Proto::Tcp, 53);
    t.h.listen("dns_message");
    let whole = [&[0, 200][..], &reply(4)].concat();
    t.a.stream(&mut t.h.cx(), Dir::Resp, &whole);
    t.a.closed(&mut t.h.cx());
    let events = t.h.events();
    assert_eq!(events.len(), 1);
    assert!(events[0].contains("\"is_orig\":true"), "{}", events[0]);
}

#[test]
fn truncated_records_have_no_event() {
    let event = |kind: u16, data: &[u8]| {
        let mut t = Test::new(Proto::Udp, 53);
        t.h.listen("dns_");
        let mut rest = b"\x01a\0".to_vec();
        rest.extend_from_slice(&kind.to_be_bytes());
        rest.extend_from_slice(b"\0\x01\0\0\0\x3c\0");
        rest.push(data.len() as u8);
        rest.extend_from_slice(data);
        t.datagram(Dir::Resp, &message(7, 0x8180, [0, 1, 0, 0], &rest));
        let events = t.h.events();
        let about = |e: &&String| e.contains("\"ans\":");
        events.iter().find(about).cloned()
    };
    assert_eq!(event(257, b"\0\x05issue"), None);
    assert!(
        event(257, b"\0\x05issue;").unwrap().ends_with(r#""tag":"issue","value":";""#),
        "{:?}",
        event(257, b"\0\x05issue;")
    );
    assert!(event(13, b"\x02pc\x02os").unwrap().ends_with(r#""cpu":"pc","os":"os""#));
    assert!(event(13, b"\x02pc\x09os").unwrap().ends_with(r#""cpu":"pc""#));
    // The key of a parameter with a truncated value is unset.
    let svcb = event(64, b"\0\x01\0\0\x03\0\x09ab").unwrap();
    assert!(svcb.contains(r#""svc_params":[{"raw":"ab"}]"#), "{svcb}");
}

#[test]
fn an_analyzer_is_small() {
    assert!(size_of::<Analyzer>() <= 24, "{}", size_of::<Analyzer>());
}

proptest! {
    #[test]
    fn any_datagrams_are_analyzed(messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 0..8), port in prop_oneof![Just(53u16), Just(137)]) {
        let mut t = Test::new(Proto::Udp, port);
        for (orig, data) in messages {
            t.datagram(if orig { Dir::Orig } else { Dir::Resp }, &data);
        }
        t.finish();
        prop_assert!(t.h.env.dns.scratch.as_ref().is_none_or(|s| s.walk.notes.is_empty()));
    }

    #[test]
    fn damaged_replies_are_analyzed(at in 0usize..72, byte: u8) {
        let mut damaged = reply(1);
        let at = at % damaged.len();
        damaged[at] = byte;
        let mut t = Test::new(Proto::Udp, 53);
        t.datagram(Dir::Orig, &query(1));
        t.datagram(Dir::Resp, &damaged);
        // As in Zeek, a reply that is damaged to an update without a zone removes its query.
        prop_assert!(t.finish().len() <= 2);
    }
}
