//! Settings: ASN.1 that is stepped over (T.125, T.124), then blocks with type and length
//! (MS-RDPBCGR section 2.2.1.3 and 2.2.1.4). Numbers in blocks are little-endian.

use crate::support::Bytes;
use crate::support::ber;

/// Most channels and certificates.
const MAX_COUNT: u32 = 1000;
/// Longest certificate.
const MAX_CERTIFICATE: u32 = 256 << 10;

/// What a client tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientCore<'a> {
    /// Width of the desktop in pixels.
    pub width: u16,
    /// Height of the desktop in pixels.
    pub height: u16,
    /// Layout of the keyboard: a language identifier.
    pub keyboard: u32,
    /// The client's build.
    pub build: u32,
    /// Its name, UTF-16.
    pub name: &'a [u8],
    /// Name of its input method, UTF-16.
    pub input_method: &'a [u8],
    /// Bits a pixel.
    pub depth: u16,
    /// Whether it wants 32 bits a pixel.
    pub wants_32: bool,
    /// Its product identifier, UTF-16.
    pub product: &'a [u8],
}

/// How RDP itself will encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSecurity<'a> {
    /// Method.
    pub method: u32,
    /// Level.
    pub level: u32,
    /// Kind of certificate: 1 is proprietary, 2 X.509.
    pub cert_type: u32,
    /// Whether the certificate is there to stay.
    pub cert_permanent: bool,
    /// X.509 certificates.
    pub certs: Vec<&'a [u8]>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// What the client is.
    ClientCore(ClientCore<'a>),
    /// Channels that the client wants.
    ClientNetwork(Vec<&'a [u8]>),
    /// How the server encrypts.
    ServerSecurity(ServerSecurity<'a>),
    /// Anything else.
    Other,
}

/// The client's blocks; `None` if what stands before them cannot be read.
pub fn client(data: &[u8]) -> Option<Blocks<'_>> {
    let mut b = Bytes(data);
    // Length of the request, selectors, flag.
    for _ in 0..4 {
        ber::value(&mut b)?;
    }
    // Target, minimum and maximum parameters.
    for _ in 0..3 {
        ber::value(&mut b)?;
    }
    b.u32()?;
    let key = usize::from(b.u16()?);
    b.take(key)?;
    b.take(2 + 8)?;
    (b.take(4)? == b"Duca").then_some(())?;
    b.u16()?;
    Some(Blocks(b))
}

/// The server's answer and its blocks; `None` if what stands before them cannot be read.
pub fn server(data: &[u8]) -> Option<(u8, Blocks<'_>)> {
    let mut b = Bytes(data);
    b.take(3)?;
    for _ in 0..3 {
        ber::value(&mut b)?;
    }
    b.u32()?;
    let key = usize::from(b.u16()?);
    b.take(key)?;
    b.take(1 + 1 + 2 + 1 + 1)?;
    let result = b.u8()?;
    b.take(3)?;
    (b.take(4)? == b"McDn").then_some(())?;
    b.u16()?;
    Some((result, Blocks(b)))
}

/// Blocks in order.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a>(Bytes<'a>);

impl<'a> Iterator for Blocks<'a> {
    /// `None` in place of a block that cannot be read; nothing follows it.
    type Item = Option<Block<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let block = self.block();
        if block.is_none() {
            self.0 = Bytes(&[]);
        }
        Some(block)
    }
}

impl<'a> Blocks<'a> {
    fn block(&mut self) -> Option<Block<'a>> {
        let kind = self.0.u16_le()?;
        let length = usize::from(self.0.u16_le()?);
        let mut b = Bytes(self.0.take(length.checked_sub(4)?)?);
        Some(match kind {
            0xc001 => Block::ClientCore(client_core(&mut b)?),
            0xc002 | 0xc004 => {
                b.take(8)?;
                Block::Other
            }
            0xc003 => Block::ClientNetwork(channels(&mut b)?),
            0x0c01 => {
                b.take(if length == 8 { 4 } else { 8 })?;
                Block::Other
            }
            0x0c02 => Block::ServerSecurity(security(&mut b)?),
            0x0c03 => {
                b.take(4)?;
                Block::Other
            }
            _ => Block::Other,
        })
    }
}

fn client_core<'a>(b: &mut Bytes<'a>) -> Option<ClientCore<'a>> {
    b.take(4)?; // version
    let width = b.u16_le()?;
    let height = b.u16_le()?;
    b.take(4)?;
    let keyboard = b.u32_le()?;
    let build = b.u32_le()?;
    let name = b.take(32)?;
    b.take(12)?; // keyboard
    let input_method = b.take(64)?;
    b.take(2 + 2 + 4)?;
    let depth = b.u16_le()?;
    b.take(2)?;
    let flags = b.u16_le()?;
    let product = b.take(64)?;
    let wants_32 = flags & 2 != 0;
    Some(ClientCore {
        width,
        height,
        keyboard,
        build,
        name,
        input_method,
        depth,
        wants_32,
        product,
    })
}

fn channels<'a>(b: &mut Bytes<'a>) -> Option<Vec<&'a [u8]>> {
    let count = b.u32_le().filter(|n| *n <= MAX_COUNT)?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(b.take(8)?);
        b.take(4)?;
    }
    Some(names)
}

fn security<'a>(b: &mut Bytes<'a>) -> Option<ServerSecurity<'a>> {
    let method = b.u32_le()?;
    let level = b.u32_le()?;
    let random = b.u32_le()?;
    let none = level == 0 && method == 0 && random == 0;
    (none || random == 0x20).then_some(())?;
    let length = b.u32_le()?;
    b.take(random as usize)?;
    let mut b = Bytes(b.take(usize::try_from(length).ok()?)?);
    let version = b.u32_le()?;
    let cert_type = version & 0x7fff_ffff;
    let mut certs = Vec::new();
    match cert_type {
        1 => {
            b.take(8 + 2)?;
            let n = usize::from(b.u16_le()?);
            let mut key = Bytes(b.take(n)?);
            key.take(4)?;
            let n = key.u32_le().filter(|n| *n <= MAX_CERTIFICATE)?;
            key.take(8)?;
            key.take(n as usize)?;
            b.take(2)?;
            let n = usize::from(b.u16_le()?);
            b.take(n)?;
        }
        2 => {
            let count = b.u32_le().filter(|n| *n <= MAX_COUNT)?;
            for _ in 0..count {
                let n = b.u32_le().filter(|n| *n <= MAX_CERTIFICATE)?;
                certs.push(b.take(n as usize)?);
            }
        }
        _ => return None,
    }
    let cert_permanent = version & 0x8000_0000 == 0;
    Some(ServerSecurity { method, level, cert_type, cert_permanent, certs })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn block(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = kind.to_le_bytes().to_vec();
        out.extend_from_slice(&(body.len() as u16 + 4).to_le_bytes());
        out.extend_from_slice(body);
        out
    }

    fn utf16(text: &str, len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        out.resize(len, 0);
        out
    }

    /// A client's settings behind their tag.
    pub(in super::super) fn client_settings() -> Vec<u8> {
        let mut core = b"\x04\0\x08\0\x00\x05\x00\x04\0\0\0\0\x09\x04\0\0\x28\x0a\0\0".to_vec();
        core.extend(utf16("HOST", 32));
        core.extend_from_slice(&[0; 76 + 8]);
        core.extend_from_slice(b"\x10\0\0\0\0\0");
        core.extend(utf16("1234", 64));
        let mut out = b"\x82\x01\x94\x04\x01\x01\x04\x01\x01\x01\x01\xff".to_vec();
        out.extend_from_slice(b"\x30\x01a\x30\x01b\x30\x01c\x04\x82\x01\x33");
        out.extend_from_slice(b"\0\x01k\0\0\0\0\0\0\0\0\0\0Duca\0\0");
        out.extend(block(0xc001, &core));
        out.extend(block(0xc003, b"\x02\0\0\0rdpdr\0\0\0\0\0\0\0rdpsnd\0\0\0\0\0\0"));
        out
    }

    /// A server's settings behind their tag, with a proprietary certificate.
    pub(in super::super) fn server_settings() -> Vec<u8> {
        let mut security = b"\x02\0\0\0\x02\0\0\0\x20\0\0\0\x24\0\0\0".to_vec();
        security.extend_from_slice(&[7; 32]);
        security.extend_from_slice(b"\x01\0\0\0\x01\0\0\0\x01\0\0\0\x06\0\x10\0RSA1\0\0\0\0");
        security.extend_from_slice(&[0; 8]);
        security.extend_from_slice(b"\x08\0\0\0");
        let mut out = b"\x82\x01\x45\x0a\x01\0\x02\x01\0\x30\x01a\x04\x82\x01\x1f".to_vec();
        out.extend_from_slice(b"\0\x01k\0\0\0\0\x01\x01\0\0\0\0McDn\0\0");
        out.extend(block(0x0c01, b"\x04\0\x08\0"));
        out.extend(block(0x0c02, &security));
        out
    }

    #[test]
    fn of_the_client() {
        let data = client_settings();
        let all: Vec<_> = client(&data).unwrap().collect();
        let Some(Block::ClientCore(core)) = &all[0] else { panic!("no core") };
        assert_eq!((core.width, core.height, core.depth), (1280, 1024, 16));
        assert_eq!((core.keyboard, core.build), (1033, 2600));
        assert_eq!(all[1], Some(Block::ClientNetwork(vec![b"rdpdr\0\0\0", b"rdpsnd\0\0"])));
        let cut: Vec<_> = client(&data[..data.len() - 1]).unwrap().collect();
        assert_eq!(cut.last(), Some(&None));
    }

    #[test]
    fn of_the_server() {
        let data = server_settings();
        let (result, blocks) = server(&data).unwrap();
        assert_eq!(result, 0);
        let all: Vec<_> = blocks.collect();
        let Some(Block::ServerSecurity(s)) = &all[1] else { panic!("no security") };
        assert_eq!((s.method, s.level, s.cert_type, s.cert_permanent), (2, 2, 1, true));
    }
}
