use proptest::prelude::*;

use super::*;

/// Parses `data` as a record of its length, and returns the result.
fn read(kind: u16, data: &[u8]) -> (String, bool, Vec<String>) {
    let record = Record { kind, class: 1, ttl: 60, len: data.len() as u16 };
    let place = MessageContext { udp: true, hinfo: true, caa: true, ..MessageContext::default() };
    let (mut names, mut notes) = (Vec::new(), Notes::new());
    let mut cursor = Cursor::new(data, 0);
    let (data, more) = parse(&mut cursor, &record, place, &mut names, &mut notes);
    let notes = notes.iter().map(|n| match n {
        MessageNote::Weird(name, addl) if addl.is_empty() => (*name).to_owned(),
        MessageNote::Weird(name, addl) | MessageNote::Limit(name, addl) => format!("{name} {addl}"),
        MessageNote::Violation(reason) => format!("! {reason}"),
    });
    (format!("{data:?}"), more, notes.collect())
}

fn good(kind: u16, data: &[u8], expected: Data<'_>) {
    assert_eq!(read(kind, data), (format!("{expected:?}"), true, vec![]));
}

fn bad(kind: u16, data: &[u8], note: &str) {
    let (_, more, notes) = read(kind, data);
    assert_eq!((more, notes), (false, vec![note.to_owned()]));
}

#[test]
fn addresses() {
    good(rr::A, &[192, 0, 2, 1], Data::A(Addr::v4([192, 0, 2, 1])));
    bad(rr::A, &[192, 0, 2], "DNS_RR_bad_length");
    let v6: Addr = "2001:db8::1".parse().unwrap();
    good(rr::AAAA, &v6.octets(), Data::Aaaa(v6));
    good(rr::A6, &v6.octets(), Data::A6(v6));
    // Too short: missing bytes read as zero.
    good(rr::AAAA, &[0x20, 1, 0xd, 0xb8, 9], Data::Aaaa("2001:db8::".parse().unwrap()));
}

#[test]
fn names() {
    good(rr::NS, b"\x02NS\x01x\x00", Data::Name(b"ns.x"));
    good(rr::MX, b"\x00\x0a\x02mx\x00", Data::Name(b"mx"));
    good(rr::SRV, b"\0\x01\0\x02\x01\xbb\x01s\x00", Data::Name(b"s"));
    let soa = [&b"\x02ns\x00\x05admin\x00"[..], &[0; 20]].concat();
    good(rr::SOA, &soa, Data::Name(b"ns"));
    assert!(!read(rr::SOA, &soa[..30]).1);
    let (_, more, notes) = read(rr::CNAME, b"\x01a\x00zz");
    assert_eq!((more, notes), (true, vec!["DNS_RR_length_mismatch".to_owned()]));
}

#[test]
fn records_that_are_read_for_listeners() {
    assert_eq!(read(rr::HINFO, b"\x01a\x02bc"), (format!("{:?}", Data::Nothing), true, vec![]));
    // Data after the second string is an error.
    let (_, more, notes) = read(rr::HINFO, b"\x01a\x02bcd");
    assert_eq!((more, notes), (false, vec![]));
    bad(rr::HINFO, b"\x05\x01ab", "DNS_TXT_char_str_past_rdlen");
    assert!(read(rr::CAA, b"\0\x02iov").1);
    for tag in [b"\0\x02io".as_slice(), b"\0\x09io", b"\0"] {
        bad(rr::CAA, tag, "DNS_CAA_char_str_past_rdlen");
    }
    let record = Record { kind: rr::CAA, class: 1, ttl: 60, len: 4 };
    let mut cursor = Cursor::new(b"\0\x02io", 0);
    let (names, notes) = (&mut Vec::new(), &mut Notes::new());
    assert_eq!(parse(&mut cursor, &record, MessageContext::default(), names, notes), SKIPPED);
}

#[test]
fn texts() {
    good(rr::TXT, b"\x02ab\x00\x01c", Data::Txt(Strings(b"\x02ab\x00\x01c")));
    assert_eq!(Strings(b"\x02ab\x00\x01c").collect::<Vec<_>>(), [&b"ab"[..], b"", b"c"]);
    let (data, more, notes) = read(rr::SPF, b"\x01a\x05b");
    assert_eq!(data, format!("{:?}", Data::Spf(Strings(b"\x01a"))));
    assert_eq!((more, notes), (false, vec!["DNS_TXT_char_str_past_rdlen".to_owned()]));
}

#[test]
fn naptr() {
    let data = b"\x00\x64\x00\x0a\x01u\x07E2U+sip\x05!^.*!\x03Foo\x00";
    let expected = Data::Naptr {
        order: 100,
        preference: 10,
        flags: b"u",
        service: b"E2U+sip",
        regexp: b"!^.*!",
        replacement: b"Foo",
    };
    good(rr::NAPTR, data, expected);
    bad(rr::NAPTR, &data[..4], "! DNS_NAPTR_too_short");
    let (_, more, notes) = read(rr::NAPTR, &data[..6]);
    assert_eq!(
        (more, &notes[..]),
        (false, &["dns_invalid_name".to_owned(), "! DNS_NAPTR_RR_too_short".to_owned()][..])
    );
}

#[test]
fn dnssec() {
    let mut sig = vec![0, 1, 8, 2];
    sig.extend_from_slice(&[0; 14]);
    sig.extend_from_slice(b"\x07example\x00SIGNATURE");
    good(rr::RRSIG, &sig, Data::Rrsig { covered: 1, signer: b"example" });
    sig[2] = 1;
    assert_eq!(read(rr::RRSIG, &sig).2, ["DNSSEC_RRSIG_NotRecommended_ZoneSignAlgo 1"]);
    good(rr::DNSKEY, &[1, 1, 3, 8, 0xaa], Data::Dnskey { algorithm: 8 });
    let (_, _, notes) = read(rr::DNSKEY, &[0x83, 0x81, 4, 17]);
    let expected = [
        "DNSSEC_DNSKEY_Invalid_Flag 33665",
        "DNSSEC_DNSKEY_Revoked_KSK 33665",
        "DNSSEC_DNSKEY_Invalid_Protocol 4",
        "DNSSEC_DNSKEY_unknown_ZoneSignAlgo 17",
    ];
    assert_eq!(notes, expected);
    good(rr::DS, &[0, 1, 8, 2, 9, 9], Data::Ds { algorithm: 8, digest: 2 });
    assert_eq!(read(rr::DS, &[0, 1, 8, 9]).2, ["DNSSEC_DS_unknown_DigestType 9"]);
    good(rr::NSEC, b"\x01b\x00\x00\x01\x40", Data::Nsec(b"b"));
    assert_eq!(read(rr::NSEC, b"\x01b\x00\x07\x00").2, ["DNSSEC_NSEC_bitmapLen0 7"]);
    good(rr::NSEC3, &[1, 0, 0, 1, 1, 9, 2, 8, 8, 0, 1, 0x40], Data::Nsec3);
    good(rr::NSEC3PARAM, &[1, 0, 0, 1, 1, 9], Data::Nsec3Param);
    good(rr::BIND_SIGNING, &[8, 0, 1, 0, 1], Data::BindSigning);
}

#[test]
fn the_rest() {
    good(rr::SSHFP, &[4, 2, 0xab, 0xcd], Data::Sshfp(&[0xab, 0xcd]));
    let mut loc = [0; 16];
    loc[1..4].copy_from_slice(&[0x12, 0x16, 0x13]);
    good(rr::LOC, &loc, Data::Loc(0x12, 0x16, 0x13));
    bad(rr::LOC, &loc[..15], "dns_invalid_loc_length");
    assert_eq!(
        read(256, b"xyz"),
        ("Unknown(256)".into(), true, vec!["DNS_RR_unknown_type 256".into()])
    );
    good(rr::OPT, &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8], Data::Nothing);
    bad(rr::OPT, &[0, 10, 0, 9, 1], "EDNS_truncated_option");
    assert_eq!(
        read(rr::OPT, &[0, 8, 0, 5, 0, 1, 33, 0, 1]).2,
        ["EDNS_ECS_invalid_addr_v4_prefix 33 bits"]
    );
    assert_eq!(
        read(rr::OPT, &[0, 8, 0, 5, 0, 2, 64, 0, 1]).2,
        ["EDNS_ECS_invalid_addr_v6 need 64 bits, have 8 bits"]
    );
    assert_eq!(read(rr::OPT, &[0, 11, 0, 0]).2, ["EDNS_TCP_Keepalive_In_UDP"]);
}

proptest! {
    #[test]
    fn any_bytes_end(data: Vec<u8>, kind in prop_oneof![0u16..66, 99u16..=99, 249u16..258, 65534u16..], len: u16) {
        let record = Record { kind, class: 1, ttl: 0, len: len.min(data.len() as u16) };
        let (mut names, mut notes) = (Vec::new(), Notes::new());
        let mut cursor = Cursor::new(&data, 0);
        parse(&mut cursor, &record, MessageContext::default(), &mut names, &mut notes);
        prop_assert!(cursor.pos() <= data.len());
    }
}
