//! The connection sequence ([MS-RDPBCGR] §2.2.1): X.224 in TPKT, then T.124 and T.125 around blocks
//! of settings.
//!
//! [MS-RDPBCGR]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-rdpbcgr

use crate::support::Bytes;
use crate::support::ber;

/// Most channels that are taken for channels.
const MAX_CHANNELS: u32 = 1000;
/// Longest key or certificate.
const MAX_DATA: u32 = 262_144;
/// Length of the TPKT header (RFC 1006).
pub const TPKT_LENGTH: usize = 4;

/// What a client tells of itself (§2.2.1.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCore<'a> {
    /// Width of its desktop in pixels.
    pub width: u16,
    /// Height of its desktop in pixels.
    pub height: u16,
    /// Keyboard layout.
    pub layout: u32,
    /// Its build.
    pub build: u32,
    /// Its name in UTF-16.
    pub name: &'a [u8],
    /// Colour depth in bits.
    pub depth: u16,
    /// Whether 32 bits are wanted.
    pub wants_32_bits: bool,
    /// Its product number in UTF-16.
    pub product: &'a [u8],
}

/// What a message says, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A client asks for a connection, with a cookie that often is the user.
    Connect(&'a [u8]),
    /// A protocol is agreed on.
    Protocol(u32),
    /// The server refuses.
    Failure(u32),
    /// About the client.
    ClientCore(ClientCore<'a>),
    /// Channels that a client wants, of twelve bytes each: a name of eight, and options.
    Channels(&'a [u8]),
    /// The server created a conference, or did not.
    Created(u8),
    /// The server's method and level of encryption.
    Security(u32, u32),
    /// The server's certificate: kind, and whether it is permanent.
    Certificate(u32, bool),
    /// One of its certificates in X.509.
    X509(&'a [u8]),
    /// Everything after this message is encrypted, by this protocol.
    Encrypted(u32),
}

/// Reads a message and shows what it says to `see`. `None`: it is broken from there on.
pub fn parse<'a>(data: &'a [u8], mut see: impl FnMut(Part<'a>)) -> Option<()> {
    let mut b = Bytes(data.get(TPKT_LENGTH..)?);
    let length = usize::from(b.u8()?);
    match b.u8()? {
        0xd0 => confirm(&mut b, length, &mut see),
        0xe0 => connect(&mut b, length, &mut see),
        0xf0 => {
            b.u8()?;
            let [_, kind] = b.array()?;
            match kind {
                0x65 => client(&mut b, &mut see),
                0x66 => server(&mut b, &mut see),
                _ => Some(()),
            }
        }
        _ => Some(()),
    }
}

/// Whether bytes of an X.224 message are left behind its fixed part and `more` of its bytes.
fn has_more(length: usize, more: usize) -> bool {
    5 + more + 2 != length + 1
}

fn connect<'a>(b: &mut Bytes<'a>, length: usize, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    const MARK: &[u8] = b"Cookie: mstshash=";
    b.take(5)?;
    let before = b.0.len();
    let mut cookie: &[u8] = &[];
    if b.0.starts_with(MARK) {
        b.take(MARK.len())?;
        cookie = b.take(memchr::memchr(b'\r', b.0)?)?;
        if b.take(2)? != b"\r\n" {
            return None;
        }
    }
    if has_more(length, before - b.0.len()) {
        b.u16()?;
        if b.u16_le()? != 8 {
            return None;
        }
        b.u32_le()?;
    }
    see(Part::Connect(cookie));
    Some(())
}

fn confirm<'a>(b: &mut Bytes<'a>, length: usize, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    b.take(5)?;
    if !has_more(length, 0) {
        return Some(());
    }
    let [kind, _flags] = b.array()?;
    let size = b.u16_le()?;
    let value = b.u32_le()?;
    match kind {
        2 if size == 8 => {
            if value > 0 {
                see(Part::Encrypted(value));
            }
            see(Part::Protocol(value));
        }
        3 => see(Part::Failure(value)),
        _ => return None,
    }
    Some(())
}

/// A sequence whose content is skipped.
fn skip(b: &mut Bytes<'_>) -> Option<()> {
    ber::value(b).map(|_| ())
}

fn client<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    // Length and the domains' selectors, a flag, and three sets of parameters.
    for _ in 0..7 {
        skip(b)?;
    }
    b.u32()?;
    let key = usize::from(b.u16()?);
    b.take(key + 2)?;
    b.take(8)?;
    if b.take(4)? != b"Duca" {
        return None;
    }
    b.u16()?;
    blocks(b, see)
}

fn server<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    b.take(3)?;
    for _ in 0..3 {
        skip(b)?;
    }
    b.u32()?;
    let key = usize::from(b.u16()?);
    b.take(key + 1)?;
    b.take(5)?;
    let result = b.u8()?;
    b.take(3)?;
    if b.take(4)? != b"McDn" {
        return None;
    }
    b.u16()?;
    see(Part::Created(result));
    blocks(b, see)
}

fn blocks<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    loop {
        let kind = b.u16_le()?;
        let length = usize::from(b.u16_le()?).checked_sub(4)?;
        let mut block = Bytes(b.take(length)?);
        match kind {
            0xc001 => see(Part::ClientCore(client_core(&mut block)?)),
            0xc002 | 0xc004 => drop(block.take(8)?),
            0xc003 => {
                let count = block.u32_le().filter(|n| *n <= MAX_CHANNELS)?;
                see(Part::Channels(block.take(12 * count as usize)?));
            }
            0x0c01 => drop(block.take(if length == 4 { 4 } else { 8 })?),
            0x0c02 => security(&mut block, see)?,
            0x0c03 => drop(block.take(4)?),
            _ => {}
        }
        if b.is_empty() {
            return Some(());
        }
    }
}

fn client_core<'a>(b: &mut Bytes<'a>) -> Option<ClientCore<'a>> {
    b.take(4)?;
    let (width, height) = (b.u16_le()?, b.u16_le()?);
    b.take(4)?;
    let (layout, build) = (b.u32_le()?, b.u32_le()?);
    let name = b.take(32)?;
    b.take(12 + 64 + 2 + 2 + 4)?;
    let depth = b.u16_le()?;
    b.u16_le()?;
    let wants_32_bits = b.u16_le()? & 2 != 0;
    let product = b.take(64)?;
    Some(ClientCore { width, height, layout, build, name, depth, wants_32_bits, product })
}

fn security<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Option<()> {
    let (method, level) = (b.u32_le()?, b.u32_le()?);
    let random = b.u32_le()?;
    if random != 0x20 && (random, method, level) != (0, 0, 0) {
        return None;
    }
    let length = b.u32_le()?;
    b.take(random as usize)?;
    let mut certificate = Bytes(b.take(usize::try_from(length).ok()?)?);
    let c = &mut certificate;
    let version = c.u32_le()?;
    let kind = version & 0x7fff_ffff;
    match kind {
        1 => {
            c.take(10)?;
            let length = usize::from(c.u16_le()?);
            let mut key = Bytes(c.take(length)?);
            key.take(4)?;
            let modulus = key.u32_le().filter(|n| *n <= MAX_DATA)?;
            key.take(8 + modulus as usize)?;
            c.u16_le()?;
            let signature = usize::from(c.u16_le()?);
            c.take(signature)?;
        }
        2 => {
            let count = c.u32_le().filter(|n| *n <= 1000)?;
            for _ in 0..count {
                let length = c.u32_le().filter(|n| *n <= MAX_DATA)?;
                see(Part::X509(c.take(length as usize)?));
            }
        }
        _ => return None,
    }
    see(Part::Certificate(kind, version >> 31 == 0));
    if method > 0 && level > 0 {
        see(Part::Encrypted(0));
    }
    see(Part::Security(method, level));
    Some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn tpkt(x224: &[u8]) -> Vec<u8> {
        let length = (x224.len() + TPKT_LENGTH) as u16;
        [&[3, 0][..], &length.to_be_bytes(), x224].concat()
    }

    /// A client `user` that offers TLS.
    pub(crate) fn connect_request() -> Vec<u8> {
        let rest = b"\0\0\0\0\0Cookie: mstshash=user\r\n\x01\0\x08\0\x03\0\0\0";
        tpkt(&[&[rest.len() as u8 + 1, 0xe0][..], rest].concat())
    }

    /// A server that takes a protocol.
    pub(crate) fn connect_confirm(protocol: u8) -> Vec<u8> {
        tpkt(&[14, 0xd0, 0, 0, 0, 0, 0, 2, 0, 8, 0, protocol, 0, 0, 0])
    }

    fn block(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (content.len() + 4) as u16;
        [&kind.to_le_bytes()[..], &length.to_le_bytes(), content].concat()
    }

    /// A client `me` with a desktop of 1024 × 768 and a channel `rdpdr`.
    pub(crate) fn client_settings() -> Vec<u8> {
        let mut core = vec![4, 0, 8, 0, 0, 4, 0, 3, 1, 0xca, 3, 0xaa, 9, 4, 0, 0, 0x28, 10, 0, 0];
        core.extend_from_slice(b"m\0e\0");
        core.resize(20 + 32 + 12 + 64 + 8, 0);
        core.extend_from_slice(&[16, 0, 7, 0, 1, 0]);
        core.resize(core.len() + 64, 0);
        let channels = [&[1, 0, 0, 0][..], b"rdpdr\0\0\0\0\0\0\0"].concat();
        let mut m = vec![2, 0xf0, 0x80, 0x7f, 0x65];
        m.extend_from_slice(&[2, 1, 9, 4, 1, 1, 4, 1, 1, 1, 1, 0xff]);
        m.extend_from_slice(&[0x30, 0, 0x30, 0, 0x30, 0, 4, 0x82, 1, 0]);
        m.extend_from_slice(&[0, 1, 9, 0, 0]);
        m.extend_from_slice(b"\0\x08\0\x10\0\x01\xc0\0Duca\x81\0");
        m.extend_from_slice(&block(0xc001, &core));
        m.extend_from_slice(&block(0xc003, &channels));
        tpkt(&m)
    }

    /// A server that encrypts by itself, with a key of its own.
    pub(crate) fn server_settings() -> Vec<u8> {
        let mut key = b"RSA1\x08\0\0\0".to_vec();
        key.resize(24, 0);
        let mut security = vec![2, 0, 0, 0, 2, 0, 0, 0, 32, 0, 0, 0, 48, 0, 0, 0];
        security.resize(16 + 32, 7);
        security.extend_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 24, 0]);
        security.extend_from_slice(&key);
        security.extend_from_slice(&[8, 0, 4, 0, 9, 9, 9, 9]);
        let mut m = vec![2, 0xf0, 0x80, 0x7f, 0x66];
        m.extend_from_slice(&[0x82, 1, 0, 10, 1, 0, 2, 1, 0, 0x30, 0, 4, 0x82, 1, 0]);
        m.extend_from_slice(&[0, 1, 9, 0]);
        m.extend_from_slice(b"\x14\x76\x0a\x01\x01\0\x01\xc0\0McDn\x81\0");
        m.extend_from_slice(&block(0x0c02, &security));
        tpkt(&m)
    }

    fn parts(data: &[u8]) -> (Vec<Part<'_>>, bool) {
        let mut all = Vec::new();
        let whole = parse(data, |p| all.push(p)).is_some();
        (all, whole)
    }

    #[test]
    fn a_connection_sequence() {
        assert_eq!(parts(&connect_request()), (vec![Part::Connect(b"user")], true));
        let agreed = (vec![Part::Encrypted(1), Part::Protocol(1)], true);
        assert_eq!(parts(&connect_confirm(1)), agreed);
        let m = client_settings();
        let (got, true) = parts(&m) else { panic!("broken") };
        let [Part::ClientCore(core), Part::Channels(channels)] = got[..] else { panic!("{got:?}") };
        assert_eq!((core.width, core.height, core.layout, core.build), (1024, 768, 1033, 2600));
        assert_eq!((core.depth, core.wants_32_bits), (16, false));
        assert_eq!((&core.name[..4], &channels[..6]), (&b"m\0e\0"[..], &b"rdpdr\0"[..]));
        let last = [
            Part::Created(0),
            Part::Certificate(1, true),
            Part::Encrypted(0),
            Part::Security(2, 2),
        ];
        assert_eq!(parts(&server_settings()), (last.to_vec(), true));
    }

    #[test]
    fn cut_short() {
        for m in [connect_request(), client_settings(), server_settings()] {
            assert!(!parts(&m[..m.len() - 1]).1);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..60), at in 4usize..300) {
            parts(&data);
            for mut m in [client_settings(), server_settings()] {
                for (to, from) in m.iter_mut().skip(at).zip(&data) {
                    *to = *from;
                }
                parts(&m);
            }
        }
    }
}
