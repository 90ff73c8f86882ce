//! Beginnings of protocols over UDP: each datagram by itself, from either side.

use memchr::memchr_iter;

use super::tcp::krb_reply;
use super::tcp::krb_request;
use super::tcp::ldap;
use super::tcp::ldap_client;

type Test = fn(&[u8]) -> bool;

/// The beginnings in the order in which they are tried.
pub(super) const RULES: &[(crate::Tag, Test)] = &[
    (crate::Tag::Dhcp, dhcp),
    (crate::Tag::Dnp3Udp, |d| d.starts_with(b"\x05\x64")),
    (crate::Tag::Krb, krb_request),
    (crate::Tag::Krb, krb_reply),
    (crate::Tag::Quic, quic),
    (crate::Tag::RdpEudp, rdpeudp),
    (crate::Tag::Sip, sip_request),
    (crate::Tag::Sip, sip_reply),
    (crate::Tag::Dtls, dtls_client),
];

/// Beginnings that count only where the other side sent a certain datagram before.
pub(super) const ANSWERS: &[(crate::Tag, Test, Test)] = &[(crate::Tag::LdapUdp, ldap, ldap_client)];

/// The cookie behind the fixed part of a BOOTP message.
fn dhcp(d: &[u8]) -> bool {
    d.get(236..240) == Some(b"\x63\x82\x53\x63")
}

/// A long header of version 1, or an Initial packet of version 2.
fn quic(d: &[u8]) -> bool {
    matches!(d, [0xc0..=0xcf, 0, 0, 0, 1, ..] | [0xd0..=0xdf, 0x6b, 0x33, 0x43, 0xcf, ..])
}

/// A SYN of RDP over UDP, padded to the greatest size that is probed.
fn rdpeudp(d: &[u8]) -> bool {
    (1132..=1232).contains(&d.len()) && d.starts_with(&[0xff; 4]) && d[7] == 1
}

/// ` SIP/n.n` at the end of any line.
fn sip_request(d: &[u8]) -> bool {
    memchr_iter(b'\n', d).any(|n| {
        n >= 9
            && matches!(&d[n - 9..n], [b' ', b'S', b'I', b'P', b'/', a, b'.', b, b'\r']
                if a.is_ascii_digit() && b.is_ascii_digit())
    })
}

/// `SIP/n.n` and a status, or alone on its line.
fn sip_reply(d: &[u8]) -> bool {
    let d = d.strip_prefix(b" ").unwrap_or(d);
    match d {
        [b'S', b'I', b'P', b'/', a, b'.', b, rest @ ..]
            if a.is_ascii_digit() && b.is_ascii_digit() =>
        {
            rest.starts_with(b"\r\n")
                || matches!(rest, [b' ', x, y, z, b' ', ..]
                    if x.is_ascii_digit() && y.is_ascii_digit() && z.is_ascii_digit())
        }
        _ => false,
    }
}

/// The first record of a connection, with a ClientHello of DTLS 1.0 or 1.2.
fn dtls_client(d: &[u8]) -> bool {
    d.len() > 26
        && matches!(d, [0x16, 0xfe, 0xff | 0xfd, 0, 0, 0, 0, 0, 0, 0, _, _, _, 1, ..])
        && d[25] == 0xfe
        && matches!(d[26], 0xff | 0xfd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;

    fn found(d: &[u8]) -> Vec<Tag> {
        RULES.iter().filter(|(_, t)| t(d)).map(|(tag, _)| *tag).collect()
    }

    #[test]
    fn by_datagram() {
        let mut dhcp = vec![0; 236];
        dhcp.extend_from_slice(b"\x63\x82\x53\x63");
        assert_eq!(found(&dhcp), [Tag::Dhcp]);
        let mut syn = vec![0xff; 1232];
        syn[7] = 1;
        assert_eq!(found(&syn), [Tag::RdpEudp]);
        assert_eq!(found(&syn[..1131]), []);
        assert_eq!(found(b"INVITE sip:a@b SIP/2.0\r\n"), [Tag::Sip]);
        assert_eq!(found(b" SIP/2.0\r\n"), [Tag::Sip, Tag::Sip]);
        assert_eq!(found(b"SIP/2.0 200 OK\r\n"), [Tag::Sip]);
        assert_eq!(found(b"SIP/2.0 OK\r\n"), []);
        let mut hello = b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x40\x01".to_vec();
        hello.extend_from_slice(&[9; 11]);
        assert_eq!(found(&hello), []);
        hello.extend_from_slice(b"\xfe\xfd");
        assert_eq!(found(&hello), [Tag::Dtls]);
        assert_eq!(found(b"\x05\x64\x05"), [Tag::Dnp3Udp]);
        assert_eq!(found(b"\xc3\0\0\0\x01\x08"), [Tag::Quic]);
        assert_eq!(found(b"\xd3\x6b\x33\x43\xcf\x08"), [Tag::Quic]);
        assert_eq!(found(b"\xe3\0\0\0\x01\x08"), []);
        assert_eq!(
            found(b"\x6a\x81\x8d\x30\x81\x8a\xa1\x03\x02\x01\x05\xa2\x03\x02\x01\x0a"),
            [Tag::Krb]
        );
    }
}
