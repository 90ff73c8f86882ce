//! Exchanges of LDAP (RFC 4511).

use crate::traffic::der::integer;
use crate::traffic::der::tlv;

/// The message id of the `n`-th bind; the following search has the next one.
pub(super) fn bind_id(n: usize) -> u64 {
    2 * n as u64 + 1
}

/// The base of the `n`-th search.
pub(super) fn base(n: usize) -> String {
    format!("cn=n{n},dc=example,dc=com")
}

fn message(id: u64, operation: &[u8]) -> Vec<u8> {
    tlv(0x30, &[&integer(id), operation])
}

fn enumerated(value: u8) -> Vec<u8> {
    tlv(0x0a, &[&[value]])
}

fn text(value: &str) -> Vec<u8> {
    tlv(0x04, &[value.as_bytes()])
}

/// A successful result without further data.
fn success(tag: u8) -> Vec<u8> {
    tlv(tag, &[&enumerated(0), &text(""), &text("")])
}

pub(super) fn bind(n: usize) -> (Vec<u8>, Vec<u8>) {
    let ask = tlv(0x60, &[&integer(3), &text("cn=admin"), &tlv(0x80, &[b"secret"])]);
    (message(bind_id(n), &ask), message(bind_id(n), &success(0x61)))
}

pub(super) fn search(n: usize) -> (Vec<u8>, Vec<u8>) {
    let id = bind_id(n) + 1;
    let ask = tlv(
        0x63,
        &[
            &text(&base(n)),
            &enumerated(2),
            &enumerated(0),
            &integer(0),
            &integer(0),
            &tlv(0x01, &[&[0]]),
            &tlv(0x87, &[b"objectClass"]),
            &tlv(0x30, &[]),
        ],
    );
    let entry = tlv(0x64, &[&text(&base(n)), &tlv(0x30, &[])]);
    (message(id, &ask), [message(id, &entry), message(id, &success(0x65))].concat())
}
