//! Packets of the unencrypted part.
//!
//! Version 2 (RFC 4253 section 6): packet length, padding length, then a payload that begins with
//! the message number. Version 1: length, padding to a multiple of eight bytes, message number,
//! payload, CRC.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::Bytes;

/// Maximum packet length, in bytes; a larger length field counts as this.
pub const MAX_PACKET: u32 = 8 << 20;
/// Maximum string length, in bytes; a larger length field counts as this.
pub const MAX_STRING: u32 = 2 << 20;

/// `SSH_MSG_NEWKEYS` (RFC 4253 section 12): everything after it is encrypted.
pub const NEWKEYS: u8 = 21;

/// A packet is invalid in its state. Zeek's reasons are not reproduced: analyzer.log contains them
/// only for confirmed connections, and confirmation follows the last packet that is parsed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A packet of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Message number.
    pub number: u8,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a packet including its length.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_with_limit(data, MAX_PACKET)
    }

    /// Like [`parse`](Self::parse), with another maximum length.
    pub fn parse_with_limit(data: &'a [u8], max: u32) -> Result<Self, Malformed> {
        Self::read(data, max).ok_or(Malformed)
    }

    fn read(data: &'a [u8], max: u32) -> Option<Self> {
        let mut b = Bytes(data);
        let length = b.u32()?.min(max) as usize;
        let padding = usize::from(b.u8()?);
        let number = b.u8()?;
        let payload = b.take(length.checked_sub(padding + 2)?)?;
        b.take(padding)?;
        Some(Self { number, payload })
    }
}

/// Length of the version 2 packet that `d` begins with, or the number of bytes needed to determine
/// it.
pub fn length2(d: &[u8], max: u32) -> usize {
    announced(d, max).map_or(4, |n| n as usize + 4)
}

/// Length of the version 1 packet that `d` begins with, or the number of bytes needed to determine
/// it.
pub fn length1(d: &[u8], max: u32) -> usize {
    announced(d, max).map_or(4, |n| n as usize + 12 - n as usize % 8)
}

fn announced(d: &[u8], max: u32) -> Option<u32> {
    Bytes(d).u32().map(|n| n.min(max))
}

/// The value of the length field, if it exceeds the limit.
pub fn excess(d: &[u8], max: u32) -> Option<u32> {
    Bytes(d).u32().filter(|n| *n > max)
}

/// Reads a string (RFC 4251 section 5): a length, then as many bytes.
fn string<'a>(b: &mut Bytes<'a>, max: u32) -> Option<&'a [u8]> {
    let n = b.u32()?.min(max);
    b.take(n as usize)
}

/// A comma-separated name list (RFC 4251 section 5), of which the first `max` names are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names<'a> {
    text: &'a [u8],
    max: usize,
}

impl<'a> Names<'a> {
    /// A list of which the first `max` names are used.
    pub fn new(text: &'a [u8], max: usize) -> Self {
        Self { text, max }
    }

    /// The names that are used.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.text.split(|b| *b == b',').take(self.max)
    }

    /// Length of the whole list in bytes, including commas and unused names.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the list has no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Number of names in the list, if it exceeds `max`.
    pub fn excess_len(&self) -> Option<usize> {
        let n = self.text.split(|b| *b == b',').count();
        (n > self.max).then_some(n)
    }

    /// The first name that is also in the server's list: the negotiated algorithm (RFC 4253 section
    /// 7.1).
    pub fn common(&self, server: &Names<'_>) -> Option<&'a [u8]> {
        self.iter().find(|name| server.iter().any(|other| other == *name))
    }
}

impl Arg for Names<'_> {
    const TYPE: Type = Type::Vector(&Type::String);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.iter().count());
        self.iter().for_each(|name| name.pack(to));
    }
}

/// `SSH_MSG_KEXINIT` (RFC 4253 section 7.1): the algorithms that one side supports, in order of
/// preference, separated by commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KexInit<'a> {
    /// Random bytes.
    pub cookie: &'a [u8],
    /// Key exchange algorithms.
    pub kex: &'a [u8],
    /// Server host key algorithms.
    pub host_key: &'a [u8],
    /// Encryption algorithms, from client to server and from server to client.
    pub cipher: [&'a [u8]; 2],
    /// MAC algorithms, by direction.
    pub mac: [&'a [u8]; 2],
    /// Compression algorithms, by direction.
    pub compression: [&'a [u8]; 2],
    /// Languages, by direction.
    pub languages: [&'a [u8]; 2],
}

impl<'a> KexInit<'a> {
    /// Parses the payload after the message number.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_with_limit(payload, MAX_STRING)
    }

    /// Like [`parse`](Self::parse), with another maximum length of the lists.
    pub fn parse_with_limit(payload: &'a [u8], max: u32) -> Result<Self, Malformed> {
        Self::read(payload, max).ok_or(Malformed)
    }

    /// The value of a list's length field, if it exceeds the limit.
    pub fn excess(payload: &[u8], max: u32) -> Option<u32> {
        let mut b = Bytes(payload);
        b.take(16)?;
        for _ in 0..10 {
            let n = b.u32()?;
            if n > max {
                return Some(n);
            }
            b.take(n as usize)?;
        }
        None
    }

    fn read(payload: &'a [u8], max: u32) -> Option<Self> {
        let mut b = Bytes(payload);
        let cookie = b.take(16)?;
        let kex = string(&mut b, max)?;
        let host_key = string(&mut b, max)?;
        let cipher = [string(&mut b, max)?, string(&mut b, max)?];
        let mac = [string(&mut b, max)?, string(&mut b, max)?];
        let compression = [string(&mut b, max)?, string(&mut b, max)?];
        let languages = [string(&mut b, max)?, string(&mut b, max)?];
        b.take(5)?; // first_kex_packet_follows, reserved
        Some(Self { cookie, kex, host_key, cipher, mac, compression, languages })
    }
}

/// Kind of key exchange, which determines how later packets are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kex {
    /// Diffie-Hellman with a fixed group (RFC 4253 section 8).
    Dh,
    /// Diffie-Hellman with a group of the server (RFC 4419).
    DhGex,
    /// Elliptic curves, and hybrids with the same messages (RFC 5656 section 4).
    Ecc,
    /// GSS-API (RFC 4462).
    Gss,
    /// RSA (RFC 4432).
    Rsa,
}

impl Kex {
    /// The kind of an algorithm; `None` if its name is unknown.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        match name {
            b"rsa1024-sha1" | b"rsa2048-sha256" => Some(Self::Rsa),
            b"diffie-hellman-group1-sha1"
            | b"diffie-hellman-group14-sha1"
            | b"diffie-hellman-group14-sha256"
            | b"diffie-hellman-group16-sha512"
            | b"diffie-hellman-group18-sha512" => Some(Self::Dh),
            b"diffie-hellman-group-exchange-sha1" | b"diffie-hellman-group-exchange-sha256" => {
                Some(Self::DhGex)
            }
            b"ecmqv-sha2" => Some(Self::Ecc),
            _ if name.starts_with(b"gss-") => Some(Self::Gss),
            _ if name.starts_with(b"ecdh-sha2-")
                || name.starts_with(b"curve25519-sha256")
                || name.starts_with(b"sntrup761x25519-sha512")
                || name.starts_with(b"mlkem") =>
            {
                Some(Self::Ecc)
            }
            _ => None,
        }
    }

    /// Parses a key exchange packet; returns the server's host key if it contains one.
    pub fn host_key<'a>(
        self,
        packet: &Packet<'a>,
        max: u32,
    ) -> Result<Option<&'a [u8]>, Malformed> {
        self.read(packet, max, &mut None).ok_or(Malformed)
    }

    /// The value of a string's length field in a key exchange packet, if it exceeds the limit.
    pub fn excess(self, packet: &Packet<'_>, max: u32) -> Option<u32> {
        let mut excess = None;
        self.read(packet, max, &mut excess);
        excess
    }

    /// The public key in a packet of an elliptic-curve key exchange, if it contains one.
    pub fn ecc_key<'a>(self, packet: &Packet<'a>, max: u32) -> Option<&'a [u8]> {
        let mut b = Bytes(packet.payload);
        match (self, packet.number) {
            (Self::Ecc, 30) => string(&mut b, max),
            (Self::Ecc, 31) => {
                string(&mut b, max)?;
                string(&mut b, max)
            }
            _ => None,
        }
    }

    /// Prime and generator of a group that the server chose, if the packet contains them.
    pub fn group<'a>(self, packet: &Packet<'a>, max: u32) -> Option<(&'a [u8], &'a [u8])> {
        let mut b = Bytes(packet.payload);
        match (self, packet.number) {
            (Self::DhGex, 31) | (Self::Gss, 41) => {
                Some((string(&mut b, max)?, string(&mut b, max)?))
            }
            _ => None,
        }
    }

    /// Parses a key exchange packet. `None` if it is malformed; `Some(None)` if it has no host key.
    fn read<'a>(
        self,
        packet: &Packet<'a>,
        max: u32,
        excess: &mut Option<u32>,
    ) -> Option<Option<&'a [u8]>> {
        let (number, mut b) = (packet.number, Bytes(packet.payload));
        let mut string = |b: &mut Bytes<'a>| {
            *excess = excess.or_else(|| b.clone().u32().filter(|n| *n > max));
            string(b, max)
        };
        let mut strings = |n: usize| {
            let first = string(&mut b)?;
            for _ in 1..n {
                string(&mut b)?;
            }
            Some(first)
        };
        match (self, number) {
            (Self::Dh, 30) | (Self::DhGex, 32) | (Self::Ecc, 30) => strings(1).map(|_| None),
            (Self::Dh, 31) | (Self::DhGex, 33) | (Self::Ecc, 31) => strings(3).map(Some),
            (Self::DhGex, 30) => b.take(4).map(|_| None),
            (Self::DhGex, 34) | (Self::Gss, 40) => b.take(12).map(|_| None),
            (Self::DhGex, 31) | (Self::Gss, 41) | (Self::Gss, 30) | (Self::Rsa, 30) => {
                strings(2).map(|_| None)
            }
            (Self::Gss, 31) | (Self::Rsa, 31 | 32) => strings(1).map(|_| None),
            (Self::Gss, 32) => {
                strings(2)?;
                if b.u8()? != 0 {
                    string(&mut b)?;
                }
                Some(None)
            }
            (Self::Gss, 33) => strings(1).map(Some),
            (Self::Gss, 34) => {
                b.take(8)?;
                string(&mut b)?;
                string(&mut b).map(|_| None)
            }
            (Self::Dh | Self::DhGex, _) => Some(None),
            (Self::Ecc | Self::Gss | Self::Rsa, _) => None,
        }
    }
}

impl<'a> Packet<'a> {
    /// Major and minor status and message of a GSS-API error.
    pub fn gss_error(&self, max: u32) -> Option<(u32, u32, &'a [u8])> {
        let mut b = Bytes(self.payload);
        Some((b.u32()?, b.u32()?, string(&mut b, max)?))
    }
}

/// A packet of version 1 in the unencrypted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet1<'a> {
    /// `SSH_SMSG_PUBLIC_KEY`: the server's host key.
    PublicKey {
        /// Public exponent, big-endian.
        exponent: &'a [u8],
        /// Modulus, big-endian.
        modulus: &'a [u8],
    },
    /// `SSH_CMSG_SESSION_KEY`: everything after it is encrypted.
    SessionKey,
}

impl<'a> Packet1<'a> {
    /// Parses a packet including its length.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        Self::parse_with_limit(data, MAX_PACKET)
    }

    /// Like [`parse`](Self::parse), with another maximum length.
    pub fn parse_with_limit(data: &'a [u8], max: u32) -> Result<Self, Malformed> {
        Self::read(data, max).ok_or(Malformed)
    }

    fn read(data: &'a [u8], max: u32) -> Option<Self> {
        let mut b = Bytes(data);
        let length = b.u32()?.min(max) as usize;
        b.take(8 - length % 8)?;
        let number = b.u8()?;
        let mut m = Bytes(b.take(length.checked_sub(5)?)?);
        b.take(4)?; // CRC
        match number {
            2 => {
                m.take(12)?; // cookie, size of the server key
                integer(&mut m)?;
                integer(&mut m)?;
                m.take(4)?; // size of the host key
                let exponent = integer(&mut m)?;
                let modulus = integer(&mut m)?;
                m.take(12)?; // flags, ciphers, authentications
                Some(Self::PublicKey { exponent, modulus })
            }
            3 => {
                m.take(9)?; // cipher, cookie
                integer(&mut m)?;
                m.take(4)?; // flags
                Some(Self::SessionKey)
            }
            _ => None,
        }
    }
}

/// Reads an integer of version 1: its size in bits, then its bytes.
fn integer<'a>(b: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let bits = usize::from(b.u16()?);
    b.take(bits.div_ceil(8))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes a packet of version 2.
    pub(in super::super) fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u32 + 2 + 4).to_be_bytes().to_vec();
        out.extend_from_slice(&[4, number]);
        out.extend_from_slice(payload);
        out.extend_from_slice(&[0; 4]);
        out
    }

    /// Encodes the payload of a KEXINIT with these lists and no languages.
    pub(in super::super) fn kexinit(lists: [&str; 8]) -> Vec<u8> {
        let mut out = vec![7; 16];
        for l in lists.into_iter().chain(["", ""]) {
            out.extend_from_slice(&(l.len() as u32).to_be_bytes());
            out.extend_from_slice(l.as_bytes());
        }
        out.extend_from_slice(&[0; 5]);
        out
    }

    #[test]
    fn packets() {
        let p = packet(20, b"abc");
        assert_eq!(length2(&p, MAX_PACKET), p.len());
        assert_eq!(length2(&p[..3], MAX_PACKET), 4);
        assert_eq!(Packet::parse(&p), Ok(Packet { number: 20, payload: b"abc" }));
        // The padding is longer than the packet.
        assert_eq!(Packet::parse(b"\0\0\0\x06\x05\x14abcd"), Err(Malformed));
        // A length beyond the limit counts as the limit.
        assert_eq!((length2(&p, 5), excess(&p, 5)), (9, Some(p.len() as u32 - 4)));
        assert_eq!(Packet::parse_with_limit(&p[..9], 5), Err(Malformed));
        assert_eq!(length2(&[0xff; 4], MAX_PACKET), MAX_PACKET as usize + 4);
        assert_eq!(excess(&[0xff; 4], MAX_PACKET), Some(u32::MAX));
    }

    #[test]
    fn algorithms() {
        let k = kexinit(["a,b", "c", "d", "e", "f", "g", "h", "i"]);
        let k = KexInit::parse(&k).unwrap();
        assert_eq!((k.kex, k.host_key), (&b"a,b"[..], &b"c"[..]));
        assert_eq!((k.cipher, k.compression), ([&b"d"[..], b"e"], [&b"h"[..], b"i"]));
        assert_eq!(KexInit::parse(&[0; 20]), Err(Malformed));
        assert_eq!(KexInit::excess(&[0; 60], MAX_STRING), None);
        assert_eq!(KexInit::excess(&[[0; 20], [1; 20]].concat(), MAX_STRING), Some(0x0101_0101));
    }

    #[test]
    fn host_keys() {
        let reply = b"\0\0\0\x03key\0\0\0\x01q\0\0\0\x01s";
        let p = |number| Packet { number, payload: reply };
        assert_eq!(Kex::Ecc.host_key(&p(31), MAX_STRING), Ok(Some(&b"key"[..])));
        assert_eq!(Kex::DhGex.host_key(&p(33), MAX_STRING), Ok(Some(&b"key"[..])));
        assert_eq!(Kex::DhGex.host_key(&p(31), MAX_STRING), Ok(None));
        assert_eq!(Kex::Dh.host_key(&p(99), MAX_STRING), Ok(None));
        assert_eq!(Kex::Ecc.host_key(&p(99), MAX_STRING), Err(Malformed));
        let long = Packet { number: 31, payload: b"\0\0\0\x01k\xff\0\0\0\0\0\0\x01s" };
        assert_eq!(Kex::Ecc.host_key(&long, MAX_STRING), Err(Malformed));
        assert_eq!(
            (Kex::Ecc.excess(&long, MAX_STRING), Kex::Ecc.excess(&p(31), MAX_STRING)),
            (Some(0xff00_0000), None)
        );
        assert_eq!(Kex::from_name(b"curve25519-sha256@libssh.org"), Some(Kex::Ecc));
        assert_eq!(Kex::from_name(b"curve448-sha512"), None);
    }

    #[test]
    fn version_one() {
        // Length 5 + 12 + 4 integers + 16: exponent 3 with two bits, modulus with nine bits.
        let mut m = vec![0; 12];
        m.extend_from_slice(b"\0\x02\x03\0\x09\x01\x02\0\0\0\x09\0\x02\x05\0\x09\x01\x07");
        m.extend_from_slice(&[0; 12]);
        let length = m.len() + 5;
        let mut p = (length as u32).to_be_bytes().to_vec();
        p.resize(4 + 8 - length % 8, 0);
        p.push(2);
        p.extend_from_slice(&m);
        p.extend_from_slice(&[0; 4]);
        assert_eq!(length1(&p, MAX_PACKET), p.len());
        let key = Packet1::PublicKey { exponent: b"\x05", modulus: b"\x01\x07" };
        assert_eq!(Packet1::parse(&p), Ok(key));
        assert_eq!(Packet1::parse(&p[..p.len() - 1]), Err(Malformed));
    }
}
