//! Fingerprints of hellos: short texts that identify a TLS library by what it offers or chooses.
//!
//! JA3 and JA3S (Salesforce, BSD license) are the MD5 of the numbers in a hello; JA4 (FoxIO, BSD
//! license for the TLS client fingerprint, unlike others of its family) consists of a readable part
//! and two hashes over sorted lists. All omit the random values with which clients test the
//! tolerance of servers (GREASE, RFC 8701).

use md5::Digest;
use md5::Md5;
use sha2::Sha256;

use super::extension;
use super::extension::ty;
use super::message::Malformed;
use super::message::Reader;
use super::message::ServerHello;
use super::names;

/// Transport of a hello: the first letter of a JA4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TLS over TCP.
    Tcp,
    /// QUIC.
    Quic,
    /// DTLS.
    Dtls,
}

/// Fields of a client's hello that its fingerprints use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    version: u16,
    ciphers: Vec<u16>,
    extensions: Vec<u16>,
    groups: Vec<u16>,
    points: Vec<u8>,
    signatures: Vec<u16>,
    /// Highest version in supported_versions.
    highest: Option<u16>,
    alpn: Option<Vec<u8>>,
}

fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// All 16-bit numbers of a list except GREASE values.
fn words(list: &[u8]) -> Vec<u16> {
    let words = list.chunks_exact(2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    words.filter(|w| !is_grease(*w)).collect()
}

impl Client {
    /// Parses a hello's body.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn parse(body: &[u8], dtls: bool) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let version = r.u16("ClientHello:client_version")?;
        r.take(32, "ClientHello:random_bytes")?;
        r.vector8("ClientHello:session_len", "ClientHello:session_id")?;
        if dtls {
            r.vector8("ClientHelloCookie:cookie_len", "ClientHelloCookie:cookie")?;
        }
        let ciphers = words(r.vector16("ClientHello:csuit_len", "ClientHello:csuits")?.rest());
        r.vector8("ClientHello:cmeth_len", "ClientHello:cmeths")?;
        let mut client = Self { version, ciphers, ..Self::default() };
        if r.is_empty() {
            return Ok(client);
        }
        let mut extensions = r.vector16("ClientHello:ext_len__elem", "ClientHello:extensions")?;
        while !extensions.is_empty() {
            let (ty, data) = extension::next(&mut extensions)?;
            if !is_grease(ty) {
                client.extensions.push(ty);
                client.extension(ty, data);
            }
        }
        Ok(client)
    }

    fn extension(&mut self, ty: u16, data: &[u8]) {
        let list16 =
            || Reader::new(data).vector16("length", "list").map(|r| r.rest()).unwrap_or_default();
        let list8 =
            || Reader::new(data).vector8("length", "list").map(|r| r.rest()).unwrap_or_default();
        match ty {
            ty::SUPPORTED_GROUPS => self.groups = words(list16()),
            ty::EC_POINT_FORMATS => self.points = list8().to_vec(),
            ty::SIGNATURE_ALGORITHMS => self.signatures = words(list16()),
            // Version numbers of DTLS decrease.
            ty::SUPPORTED_VERSIONS => {
                self.highest = words(list8())
                    .into_iter()
                    .max_by_key(|v| if v >> 8 == 0xfe { 0xffff - v } else { *v });
            }
            ty::ALPN => {
                let first =
                    Reader::new(list16()).vector8("length", "name").map(|r| r.rest().to_vec());
                self.alpn = first.ok();
            }
            _ => {}
        }
    }

    /// The JA3, in hexadecimal.
    pub fn ja3(&self) -> String {
        let points: Vec<_> = self.points.iter().map(|p| u16::from(*p)).collect();
        let lists = [&self.ciphers, &self.extensions, &self.groups, &points];
        md5_of(self.version, &lists.map(|l| join_with_dashes(l)).join(","))
    }

    /// The JA4.
    pub fn ja4(&self, carrier: Carrier) -> String {
        let carrier = match carrier {
            Carrier::Tcp => 't',
            Carrier::Quic => 'q',
            Carrier::Dtls => 'd',
        };
        let version = match self.highest.unwrap_or(self.version) {
            names::TLS13 => "13",
            0x0303 => "12",
            0x0302 => "11",
            0x0301 => "10",
            0x0300 => "s3",
            0x0002 => "s2",
            0xfeff => "d1",
            0xfefd => "d2",
            0xfefc => "d3",
            _ => "00",
        };
        let sni = if self.extensions.contains(&ty::SERVER_NAME) { 'd' } else { 'i' };
        let (ciphers, extensions) = (self.ciphers.len().min(99), self.extensions.len().min(99));
        let alpn = first_and_last(self.alpn.as_deref().unwrap_or_default());
        let mut shown = self.extensions.clone();
        shown.retain(|e| !matches!(*e, ty::SERVER_NAME | ty::ALPN));
        let mut tail = sorted(&shown);
        if !self.signatures.is_empty() {
            tail.push('_');
            tail.push_str(&hex(&self.signatures));
        }
        let offered = digest(&sorted(&self.ciphers), self.ciphers.is_empty());
        let extended = digest(&tail, shown.is_empty());
        format!("{carrier}{version}{sni}{ciphers:02}{extensions:02}{alpn}_{offered}_{extended}")
    }
}

/// The JA3S of a server's hello, in hexadecimal.
pub fn ja3s(hello: &ServerHello<'_>) -> String {
    let (mut rest, mut extensions) = (hello.extensions, Vec::new());
    while let Ok((ty, _)) = extension::next(&mut rest) {
        extensions.push(ty);
    }
    md5_of(hello.version, &format!("{},{}", hello.cipher, join_with_dashes(&extensions)))
}

fn md5_of(version: u16, rest: &str) -> String {
    let sum = Md5::digest(format!("{version},{rest}"));
    sum.iter().map(|b| format!("{b:02x}")).collect()
}

fn join_with_dashes(list: &[u16]) -> String {
    list.iter().map(u16::to_string).collect::<Vec<_>>().join("-")
}

fn hex(list: &[u16]) -> String {
    list.iter().map(|v| format!("{v:04x}")).collect::<Vec<_>>().join(",")
}

fn sorted(list: &[u16]) -> String {
    let mut list = list.to_vec();
    list.sort_unstable();
    hex(&list)
}

/// The first twelve digits of a hash; zeros if there is nothing to hash.
fn digest(text: &str, nothing: bool) -> String {
    if nothing {
        return "0".repeat(12);
    }
    Sha256::digest(text).iter().take(6).map(|b| format!("{b:02x}")).collect()
}

/// First and last character of a protocol's name, or of its hexadecimal digits if it is not
/// alphanumeric.
fn first_and_last(name: &[u8]) -> String {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return "00".into() };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(*first), char::from(*last)].iter().collect();
    }
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or('0');
    [digit(first >> 4), digit(last & 15)].iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ja3() {
        let client = Client {
            version: 769,
            ciphers: vec![47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4],
            extensions: vec![0, 10, 11],
            groups: vec![23, 24, 25],
            points: vec![0],
            ..Client::default()
        };
        assert_eq!(client.ja3(), "ada70206e40642a3e4461f35503241d5");
        let bare = Client {
            version: 769,
            ciphers: vec![4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99],
            ..Client::default()
        };
        assert_eq!(bare.ja3(), "de350869b8c85de67a350c8d186f11e6");
    }

    #[test]
    fn published_ja4() {
        let client = Client {
            version: 0x0303,
            highest: Some(0x0304),
            ciphers: vec![
                0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
                0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
            ],
            extensions: vec![
                0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023,
                0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015,
            ],
            signatures: vec![0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601],
            alpn: Some(b"h2".to_vec()),
            ..Client::default()
        };
        assert_eq!(client.ja4(Carrier::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        let none = Client { version: 0x0301, ..Client::default() };
        assert_eq!(none.ja4(Carrier::Dtls), "d10i000000_000000000000_000000000000");
        // A hello with only a server_name has no extensions to hash.
        let named = Client { version: 0x0301, extensions: vec![0], ..Client::default() };
        assert_eq!(named.ja4(Carrier::Tcp), "t10d000100_000000000000_000000000000");
    }

    #[test]
    fn a_hello_from_its_bytes() {
        let mut body = vec![3, 3];
        body.extend([0; 32]);
        body.extend([0, 0, 4, 0x0a, 0x0a, 0x13, 0x01, 1, 0]);
        let extensions = [
            &[0x1a, 0x1a, 0, 0][..],
            &[0, 10, 0, 6, 0, 4, 0x2a, 0x2a, 0, 29],
            &[0, 11, 0, 2, 1, 0],
            &[0, 16, 0, 5, 0, 3, 2, b'h', b'2'],
            &[0, 43, 0, 5, 4, 0x7a, 0x7a, 3, 4],
        ]
        .concat();
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let client = Client::parse(&body, false).unwrap();
        let expected = Client {
            version: 0x0303,
            ciphers: vec![0x1301],
            extensions: vec![10, 11, 16, 43],
            groups: vec![29],
            points: vec![0],
            highest: Some(0x0304),
            alpn: Some(b"h2".to_vec()),
            ..Client::default()
        };
        assert_eq!(client, expected);
        assert!(Client::parse(&body[..40], false).is_err());
    }

    #[test]
    fn a_servers_choice() {
        let mut body = vec![3, 1];
        body.extend([0; 32]);
        body.extend([0, 0, 47, 0]);
        let types = [0xff01_u16, 0, 11, 35, 5, 16];
        let extensions: Vec<u8> =
            types.iter().flat_map(|t| [(t >> 8) as u8, *t as u8, 0, 0]).collect();
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let hello = ServerHello::parse(&body).unwrap();
        assert_eq!(ja3s(&hello), "836ce314215654b5b1f85f97c73e506f");
    }

    #[test]
    fn names_that_are_no_words() {
        assert_eq!(first_and_last(b"http/1.1"), "h1");
        assert_eq!(first_and_last(b"\xab\xcd"), "ad");
        assert_eq!(first_and_last(b""), "00");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(body: Vec<u8>, dtls: bool) {
            if let Ok(client) = Client::parse(&body, dtls) {
                client.ja3();
                client.ja4(Carrier::Tcp);
            }
        }
    }
}
