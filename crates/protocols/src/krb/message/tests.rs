use super::*;
use proptest::prelude::*;

pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag, 0x82];
    out.extend_from_slice(&(content.len() as u16).to_be_bytes());
    out.extend_from_slice(&content);
    out
}

fn int(index: u8, n: u8) -> Vec<u8> {
    tlv(0xa0 + index, &[&[2, 1, n]])
}

fn name(parts: &[&[u8]]) -> Vec<u8> {
    let parts: Vec<_> = parts.iter().map(|p| tlv(0x1b, &[p])).collect();
    let list = tlv(0x30, &parts.iter().map(|p| &p[..]).collect::<Vec<_>>());
    tlv(0x30, &[&int(0, 1), &tlv(0xa1, &[&list])])
}

fn sealed(cipher: u8) -> Vec<u8> {
    tlv(0x30, &[&int(0, cipher), &int(1, 2), &tlv(0xa2, &[&tlv(4, &[b"secret"])])])
}

/// An AS-REQ for `des/krbtgt/X` until 2037.
pub(crate) fn as_req() -> Vec<u8> {
    as_req_with(&[])
}

/// An AS-REQ with pre-authentication data.
pub(crate) fn as_req_with(padata: &[u8]) -> Vec<u8> {
    as_req_of(padata, &[])
}

/// An AS-REQ with an address of the client's host, of the family IPv4.
pub(crate) fn as_req_from(address: &[u8]) -> Vec<u8> {
    let address = tlv(0x30, &[&int(0, 2), &tlv(0xa1, &[&tlv(4, &[address])])]);
    as_req_of(&[], &tlv(0xa9, &[&tlv(0x30, &[&address])]))
}

fn as_req_of(padata: &[u8], addresses: &[u8]) -> Vec<u8> {
    let body = tlv(
        0x30,
        &[
            &tlv(0xa0, &[&[3, 5, 0, 0x40, 0x80, 0, 0]]),
            &tlv(0xa1, &[&name(&[b"des"])]),
            &tlv(0xa2, &[&tlv(0x1b, &[b"X"])]),
            &tlv(0xa3, &[&name(&[b"krbtgt", b"X"])]),
            &tlv(0xa5, &[&tlv(0x18, &[b"20370913024805Z"])]),
            &tlv(0xa8, &[&tlv(0x30, &[&[2, 1, 23]])]),
            addresses,
        ],
    );
    tlv(0x6a, &[&tlv(0x30, &[&int(1, 5), &int(2, 10), padata, &tlv(0xa4, &[&body])])])
}

/// Pre-authentication data with a certificate (RFC 4556): field 3 of a request, field 2 of a reply.
pub(crate) fn pkinit_data(is_reply: bool, certificate: &[u8]) -> Vec<u8> {
    let algorithms = tlv(0x31, &[]);
    let content = tlv(0x30, &[&tlv(6, &[b"id-pkinit-authData"])]);
    let certificates = tlv(0xa0, &[certificate]);
    let signed = tlv(0x30, &[&[2, 1, 3], &algorithms, &content, &certificates]);
    let signed = tlv(0x30, &[&tlv(6, &[b"id-signedData"]), &tlv(0xa0, &[&signed])]);
    // The signed data is in a sequence of a request, and in a choice of a reply.
    let inner = tlv(0x80, &[&signed]);
    let outer = if is_reply { tlv(0xa0, &[&tlv(0x30, &[&inner])]) } else { tlv(0x30, &[&inner]) };
    let kind = if is_reply { 17 } else { 16 };
    let entry = tlv(0x30, &[&int(1, kind), &tlv(0xa2, &[&tlv(4, &[&outer])])]);
    tlv(if is_reply { 0xa2 } else { 0xa3 }, &[&tlv(0x30, &[&entry])])
}

/// An AS-REP with a ticket for `cifs/h`.
pub(crate) fn as_rep() -> Vec<u8> {
    as_rep_with(&[])
}

/// An AS-REP with pre-authentication data.
pub(crate) fn as_rep_with(padata: &[u8]) -> Vec<u8> {
    let ticket = tlv(
        0x61,
        &[&tlv(
            0x30,
            &[
                &int(0, 5),
                &tlv(0xa1, &[&tlv(0x1b, &[b"X"])]),
                &tlv(0xa2, &[&name(&[b"cifs", b"h"])]),
                &tlv(0xa3, &[&sealed(18)]),
            ],
        )],
    );
    let fields = [
        int(0, 5),
        int(1, 11),
        padata.to_vec(),
        tlv(0xa3, &[&tlv(0x1b, &[b"X"])]),
        tlv(0xa4, &[&name(&[b"des"])]),
        tlv(0xa5, &[&ticket]),
        tlv(0xa6, &[&sealed(23)]),
    ];
    tlv(0x6b, &[&tlv(0x30, &fields.iter().map(|f| &f[..]).collect::<Vec<_>>())])
}

/// A KRB-ERROR with a code and an optional text.
pub(crate) fn krb_error(code: u8, text: &[u8]) -> Vec<u8> {
    let text = if text.is_empty() { Vec::new() } else { tlv(0xab, &[&tlv(0x1b, &[text])]) };
    let fields = [int(0, 5), int(1, 30), int(6, code), tlv(0xaa, &[&name(&[b"cifs", b"h"])])];
    let fields = [fields.concat(), text].concat();
    tlv(0x7e, &[&tlv(0x30, &[&fields])])
}

fn read(data: &[u8]) -> Option<Message<'_>> {
    parse(data, &mut ParsedFacts::default()).ok()
}

/// The parse error of a malformed message.
fn parse_error(data: &[u8]) -> String {
    crate::support::error_text(parse(data, &mut ParsedFacts::default()).unwrap_err())
}

#[test]
fn parse_errors() {
    let request = as_req();
    // The content of the last argument is three bytes shorter than its length.
    let truncated = parse_error(&request[..request.len() - 3]);
    assert_eq!(truncated, "out_of_bound: KRB_REQ_Arg:data: 11 > 8");
    let reply = as_rep();
    let truncated = parse_error(&reply[..reply.len() - 1]);
    assert_eq!(truncated, "out_of_bound: KRB_Encrypted_Data_in_Seq:data: 36 > 35");
    assert_eq!(parse_error(&reply[..40]), "out_of_bound: KRB_KDC_REP:client_name: 57 > 36");
    assert_eq!(parse_error(b"\x64\0"), "invalid index for case: KRB_PDU: 4");
    assert_eq!(parse_error(b"\x7e\0\x30\0"), "out_of_bound: ASN1EncodingMeta:len: 2 > 0");
    let safe = b"\x74\0\x30\0\xa0\0\xa1\0\x02\0\xa3\0\xa0\x02\x04\0";
    assert_eq!(parse_error(safe), "out_of_bound: ASN1EncodingMeta:len: 2 > 0");
    let invalid = tlv(0x7e, &[&tlv(0x30, &[&tlv(0xad, &[])])]);
    assert_eq!(parse_error(&invalid), "invalid index for case: KRB_ERROR_Arg_Data: 13");
}

#[test]
fn requests_replies_and_errors() {
    let data = as_req();
    let Some(Message::Request(r)) = read(&data) else { panic!("no request") };
    assert_eq!((r.kind, r.options.map(|o| o & 0x4080_0000)), (10, Some(0x4080_0000)));
    assert_eq!(r.client.map(|c| c.text()), Some(b"des".to_vec()));
    assert_eq!(r.service.map(|c| c.text()), Some(b"krbtgt/X".to_vec()));
    assert_eq!((r.realm, r.from, r.till), (Some(&b"X"[..]), None, Some(2_136_422_885)));
    let data = as_rep();
    let Some(Message::Reply(r)) = read(&data) else { panic!("no reply") };
    assert_eq!((r.kind, r.realm, r.client.text()), (11, &b"X"[..], b"des".to_vec()));
    assert_eq!((r.ticket.service.text(), r.ticket.cipher), (b"cifs/h".to_vec(), 18));
    let data = krb_error(6, b"no such client");
    let Some(Message::Error(e)) = read(&data) else { panic!("no error") };
    assert_eq!((e.code, e.text), (6, Some(&b"no such client"[..])));
    assert!(e.client.is_none() && e.service.is_some());
}

#[test]
fn truncated_replies_are_invalid() {
    let data = as_rep();
    for n in 0..data.len() {
        assert_eq!(read(&data[..n]), None);
    }
    assert_eq!(read(b"\x64\x82\x00\x00"), None);
}

#[test]
fn times_carry_over() {
    assert_eq!(seconds(b"19700101000000Z"), 0);
    assert_eq!(seconds(b"20000229235960Z"), 951_868_800);
    assert_eq!(seconds(b"20001301000000Z"), seconds(b"20010101000000Z"));
    assert_eq!(seconds(b"19691231235959Z"), -1);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed(data in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..400) {
        let _ = parse(&data, &mut ParsedFacts::default());
        let mut message = as_rep();
        for (to, from) in message.iter_mut().skip(at).zip(&data) {
            *to = *from;
        }
        let _ = parse(&message, &mut ParsedFacts::default());
    }
}
