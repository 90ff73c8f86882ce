//! The subset of DER (X.690) that certificates and SNMP need.

use crate::Rng;

/// A value of `parts` with its tag and length.
pub(super) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|p| p.len()).sum();
    let mut b = vec![tag];
    match len {
        0..=127 => b.push(len as u8),
        128..=255 => b.extend_from_slice(&[0x81, len as u8]),
        _ => {
            b.push(0x82);
            b.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    parts.iter().for_each(|p| b.extend_from_slice(p));
    b
}

/// A non-negative integer in the minimum number of bytes.
pub(super) fn integer(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let skip = bytes.iter().take(7).take_while(|b| **b == 0).count();
    let lead: &[u8] = if bytes[skip] & 0x80 != 0 { &[0] } else { &[] };
    tlv(0x02, &[lead, &bytes[skip..]])
}

/// sha256WithRSAEncryption.
const SHA256_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
/// rsaEncryption.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

/// A certificate (RFC 5280) of a host, with a random key and signature.
pub(super) fn certificate(rng: &mut Rng, host: &str, issuer: &str) -> Vec<u8> {
    let oid = |id: &[u8]| tlv(0x06, &[id]);
    let null = [5, 0];
    let name = |common: &str| {
        let attribute = |kind: u8, tag: u8, text: &str| {
            let pair = tlv(0x30, &[&oid(&[0x55, 4, kind]), &tlv(tag, &[text.as_bytes()])]);
            tlv(0x31, &[&pair])
        };
        let country = attribute(6, 0x13, "XX");
        let organisation = attribute(10, 0x0c, "Synthetic Ltd");
        tlv(0x30, &[&country, &organisation, &attribute(3, 0x0c, common)])
    };
    let mut modulus = rng.bytes(257);
    // Positive, and of 2,048 bits.
    modulus[0] = 0;
    modulus[1] |= 0x80;
    let key = tlv(0x30, &[&tlv(0x02, &[&modulus]), &integer(65_537)]);
    let public = tlv(0x30, &[&tlv(0x30, &[&oid(RSA), &null]), &tlv(0x03, &[&[0], &key])]);
    let extension = |id: &[u8], value: &[u8]| tlv(0x30, &[&oid(id), &tlv(0x04, &[value])]);
    let names =
        tlv(0x30, &[&tlv(0x82, &[host.as_bytes()]), &tlv(0x82, &[b"www.", host.as_bytes()])]);
    let extensions = tlv(
        0x30,
        &[
            &extension(&[0x55, 0x1d, 17], &names),
            &extension(&[0x55, 0x1d, 19], &tlv(0x30, &[])),
            &extension(&[0x55, 0x1d, 15], &[3, 2, 5, 0xa0]),
        ],
    );
    let algorithm = tlv(0x30, &[&oid(SHA256_RSA), &null]);
    let valid = tlv(0x30, &[&tlv(0x17, &[b"230101000000Z"]), &tlv(0x17, &[b"251231235959Z"])]);
    let body = tlv(
        0x30,
        &[
            &tlv(0xa0, &[&integer(2)]),
            &integer(rng.next_u64() >> 1),
            &algorithm,
            &name(issuer),
            &valid,
            &name(host),
            &public,
            &tlv(0xa3, &[&extensions]),
        ],
    );
    tlv(0x30, &[&body, &algorithm, &tlv(0x03, &[&[0], &rng.bytes(256)])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers() {
        assert_eq!(integer(0), [2, 1, 0]);
        assert_eq!(integer(128), [2, 2, 0, 128]);
        assert_eq!(integer(65_537), [2, 3, 1, 0, 1]);
        assert_eq!(tlv(4, &[&[7; 200]])[..4], [4, 0x81, 200, 7]);
        assert_eq!(tlv(4, &[&[7; 300]])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn a_certificate_is_as_long_as_it_says() {
        let cert = certificate(&mut Rng::new(1), "host.example", "Synthetic CA");
        assert_eq!(cert[..2], [0x30, 0x82]);
        let len = usize::from(u16::from_be_bytes([cert[2], cert[3]]));
        assert_eq!(cert.len(), 4 + len);
    }
}
