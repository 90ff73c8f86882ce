//! Parses handshake messages, without state.
//!
//! Everything is parsed with [`Reader`], which never reads beyond its slice; a field that does not
//! fit is reported as [`Malformed`], with the field and the number of missing bytes.

use std::fmt;

use crate::support::BINPAC;

/// A field that exceeds the available bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The structure, or the structure and its field.
    pub field: &'static str,
    /// Number of bytes that the field needs; for a list, of elements.
    pub need: usize,
    /// Number of available bytes.
    pub have: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Worded as in analyzer.log's failure_reason.
        let Self { field, need, have } = self;
        write!(f, "{BINPAC}out_of_bound: {field}: {need} > {have}")
    }
}

/// Reads big-endian fields from the start of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Number of bytes of the structure that were read: errors about a required length count from
    /// its start.
    read: usize,
}

impl<'a> Reader<'a> {
    /// A reader of a structure at the start of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, read: 0 }
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads `n` bytes.
    ///
    /// # Errors
    /// If fewer remain.
    pub fn take(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            let have = self.read + self.rest.len();
            return Err(Malformed { field, need: self.read + n, have });
        };
        self.rest = rest;
        self.read += n;
        Ok(head)
    }

    /// Reads `n` elements of `width` bytes. Errors count elements.
    ///
    /// # Errors
    /// If fewer remain.
    pub fn array(
        &mut self,
        n: usize,
        width: usize,
        field: &'static str,
    ) -> Result<&'a [u8], Malformed> {
        let have = self.rest.len();
        self.take(n * width, field).map_err(|_| Malformed { field, need: n, have })
    }

    /// Reads one octet.
    ///
    /// # Errors
    /// If none remains.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        Ok(self.take(1, field)?[0])
    }

    /// Reads two octets.
    ///
    /// # Errors
    /// If fewer remain.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        let b = self.take(2, field)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    /// Reads three octets.
    ///
    /// # Errors
    /// If fewer remain.
    pub fn u24(&mut self, field: &'static str) -> Result<u32, Malformed> {
        let b = self.take(3, field)?;
        Ok(u32::from_be_bytes([0, b[0], b[1], b[2]]))
    }

    /// Fails unless at least `n` bytes remain.
    pub(super) fn need(&self, n: usize, field: &'static str) -> Result<(), Malformed> {
        self.clone().take(n, field).map(drop)
    }

    /// Reads a vector with a length of two octets, and returns a reader of its contents.
    pub(super) fn vector16(
        &mut self,
        length: &'static str,
        field: &'static str,
    ) -> Result<Reader<'a>, Malformed> {
        let n = self.u16(length)?;
        Ok(Reader::new(self.take(n.into(), field)?))
    }

    /// Reads a vector with a length of one octet, and returns a reader of its contents.
    pub(super) fn vector8(
        &mut self,
        length: &'static str,
        field: &'static str,
    ) -> Result<Reader<'a>, Malformed> {
        let n = self.u8(length)?;
        Ok(Reader::new(self.take(n.into(), field)?))
    }

    /// Reads `n` bytes, and returns a reader that is limited to them.
    pub(super) fn limited_to(&mut self, n: usize, field: &'static str) -> Result<Self, Malformed> {
        let read = self.read;
        Ok(Self { rest: self.take(n, field)?, read })
    }

    /// Parses a nested structure with `read`.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let mut inner = Reader::new(self.rest);
        let read = read(&mut inner)?;
        self.read += inner.read;
        self.rest = inner.rest;
        Ok(read)
    }
}

/// Handshake message types (RFC 8446 section 4 and the registry).
pub mod kind {
    #![allow(missing_docs)] // the registry's names
    pub const HELLO_REQUEST: u8 = 0;
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const HELLO_VERIFY_REQUEST: u8 = 3;
    pub const SESSION_TICKET: u8 = 4;
    pub const END_OF_EARLY_DATA: u8 = 5;
    pub const HELLO_RETRY_REQUEST: u8 = 6;
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const CERTIFICATE: u8 = 11;
    pub const SERVER_KEY_EXCHANGE: u8 = 12;
    pub const CERTIFICATE_REQUEST: u8 = 13;
    pub const SERVER_HELLO_DONE: u8 = 14;
    pub const CERTIFICATE_VERIFY: u8 = 15;
    pub const CLIENT_KEY_EXCHANGE: u8 = 16;
    pub const FINISHED: u8 = 20;
    pub const CERTIFICATE_URL: u8 = 21;
    pub const CERTIFICATE_STATUS: u8 = 22;
    pub const SUPPLEMENTAL_DATA: u8 = 23;
    pub const KEY_UPDATE: u8 = 24;
    pub const MESSAGE_HASH: u8 = 254;
}

/// ClientHello (RFC 5246 section 7.4.1.2, RFC 6347 section 4.2.1).
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    /// Version field of the message (legacy_version).
    pub version: u16,
    /// 32 random bytes, the first four of which may be a timestamp.
    pub random: &'a [u8],
    /// Session to resume; usually empty or 32 bytes.
    pub session_id: &'a [u8],
    /// Cipher suites, two bytes each.
    pub ciphers: &'a [u8],
    /// Compression methods, one byte each.
    pub compressions: &'a [u8],
    /// The extensions, not parsed.
    pub extensions: Reader<'a>,
}

impl<'a> ClientHello<'a> {
    /// The version field of the message.
    ///
    /// # Errors
    /// If the first fields are truncated.
    pub fn version(body: &[u8]) -> Result<u16, Malformed> {
        let head = Reader::new(body).take(6, "ClientHello:gmt_unix_time")?;
        Ok(u16::from_be_bytes([head[0], head[1]]))
    }

    /// Parses the fixed part of a message's body.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn parse(body: &'a [u8], dtls: impl Fn(u16) -> bool) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let version = Self::version(body)?;
        r.take(6, "ClientHello:gmt_unix_time")?;
        r.take(28, "ClientHello:random_bytes")?;
        let n = r.u8("ClientHello:session_len")?;
        let session_id = r.array(n.into(), 1, "ClientHello:session_id")?;
        if dtls(version) {
            r.nested(|r| r.vector8("ClientHelloCookie:cookie_len", "ClientHelloCookie:cookie"))?;
        }
        let n = r.u16("ClientHello:csuit_len")?;
        let ciphers = r.array(usize::from(n / 2), 2, "ClientHello:csuits")?;
        let n = r.u8("ClientHello:cmeth_len")?;
        let compressions = r.array(n.into(), 1, "ClientHello:cmeths")?;
        skip_extensions_length(&mut r, "ClientHello:ext_len__elem")?;
        let random = body.get(2..34).unwrap_or_default();
        Ok(Self { version, random, session_id, ciphers, compressions, extensions: r })
    }
}

/// ServerHello (RFC 5246 section 7.4.1.3; drafts of RFC 8446 had no session id and compression).
#[derive(Clone, Copy, Debug)]
pub struct ServerHello<'a> {
    /// Version field of the message (legacy_version).
    pub version: u16,
    /// 32 random bytes; a constant in a HelloRetryRequest.
    pub random: &'a [u8],
    /// The session that is resumed or started; usually empty or 32 bytes.
    pub session_id: &'a [u8],
    /// The chosen cipher suite.
    pub cipher: u16,
    /// The chosen compression method; 0 if the version has none.
    pub compression: u8,
    /// The extensions, not parsed.
    pub extensions: Reader<'a>,
}

impl<'a> ServerHello<'a> {
    /// The version field of the message.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn version(body: &[u8]) -> Result<u16, Malformed> {
        Reader::new(body).u16("ServerHelloChoice:server_version1")
    }

    /// Parses the fixed part of a message's body.
    ///
    /// # Errors
    /// If it is truncated.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let version = Self::version(body)?;
        let mut r = Reader::new(&body[2..]);
        let short = version == super::names::TLS13 || version >> 8 == 0x7f;
        let (random, session_id, cipher);
        let mut compression = 0;
        if short {
            random = r.take(32, "ServerHello13:random")?;
            session_id = &body[..0];
            cipher = r.u16("ServerHello13:cipher_suite")?;
        } else {
            random = r.take(32, "ServerHello:random_bytes")?;
            let n = r.u8("ServerHello:session_len")?;
            session_id = r.array(n.into(), 1, "ServerHello:session_id")?;
            r.need(3, "ServerHello:compression_method")?;
            cipher = r.u16("ServerHello:cipher_suite")?;
            compression = r.u8("ServerHello:compression_method")?;
        }
        let field = if short { "ServerHello13:ext_len__elem" } else { "ServerHello:ext_len__elem" };
        skip_extensions_length(&mut r, field)?;
        Ok(Self { version, random, session_id, cipher, compression, extensions: r })
    }
}

/// Skips the total length of the extensions: it may be missing, and the end of the message
/// determines their end.
fn skip_extensions_length(r: &mut Reader<'_>, field: &'static str) -> Result<(), Malformed> {
    if !r.is_empty() {
        r.u16(field)?;
    }
    Ok(())
}

/// Checks a list of two-octet numbers, after its length.
pub(super) fn check_numbers(
    list: Reader<'_>,
    length: usize,
    element: &'static str,
) -> Result<(), Malformed> {
    let have = length + list.rest().len();
    match list.rest().len() % 2 {
        0 => Ok(()),
        _ => Err(Malformed { field: element, need: have + 1, have }),
    }
}

/// Checks a list of signature algorithms (RFC 5246 section 7.4.1.4.1).
pub(super) fn signature_algorithms(r: &mut Reader<'_>) -> Result<(), Malformed> {
    let list = r.vector16("SignatureAlgorithm:length", "SignatureAlgorithm")?;
    check_numbers(list, 2, "SignatureAlgorithm:supported_signature_algorithms__elem")
}

/// The certificates of a Certificate message before TLS 1.3 (RFC 5246 section 7.4.2).
///
/// # Errors
/// If the list or a certificate exceeds its container.
pub fn certificates(body: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut r = Reader::new(body);
    let n = r.u24("Certificate:length")? as usize;
    let mut list = Reader::new(r.take(n, "Certificate")?);
    let mut all = Vec::new();
    while !list.is_empty() {
        all.push(list.nested(|r| {
            let n = r.u24("X509Certificate:length")? as usize;
            r.take(n, "X509Certificate:certificate")
        })?);
    }
    Ok(all)
}

/// Type and response of a CertificateStatus message (RFC 6066 section 8).
///
/// # Errors
/// If it is truncated.
pub fn certificate_status(body: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let mut r = Reader::new(body);
    r.need(4, "CertificateStatus:length")?;
    let ty = r.u8("CertificateStatus:status_type")?;
    r.u24("CertificateStatus:length")?;
    Ok((ty, r.rest()))
}

/// The named curve of elliptic-curve parameters, if they contain one (RFC 8422 section 5.4).
///
/// # Errors
/// If the message is truncated.
pub fn ecdh_parameters(
    body: &[u8],
    signature: Option<SignatureForm>,
) -> Result<Option<u16>, Malformed> {
    const NAMED_CURVE: u8 = 3;
    let mut r = Reader::new(body);
    if r.u8("EcdheServerKeyExchange:curve_type")? != NAMED_CURVE {
        return Ok(None);
    }
    let curve = r.nested(|r| {
        const LENGTH: &str = "ServerECDHParamsAndSignature:point_length";
        r.need(3, LENGTH)?;
        let curve = r.u16(LENGTH)?;
        r.vector8(LENGTH, "ServerECDHParamsAndSignature:point")?;
        Ok(curve)
    })?;
    if let Some(form) = signature {
        r.nested(|r| form.check(r))?;
    }
    Ok(Some(curve))
}

/// Checks Diffie-Hellman parameters (RFC 5246 section 7.4.3).
///
/// # Errors
/// If the message is truncated.
pub fn dh_parameters(body: &[u8], signature: Option<SignatureForm>) -> Result<(), Malformed> {
    const SIGNED: [[&str; 2]; 3] = [
        ["DheServerKeyExchange:dh_p_length", "DheServerKeyExchange:dh_p"],
        ["DheServerKeyExchange:dh_g_length", "DheServerKeyExchange:dh_g"],
        ["DheServerKeyExchange:dh_Ys_length", "DheServerKeyExchange:dh_Ys"],
    ];
    const UNSIGNED: [[&str; 2]; 3] = [
        ["DhAnonServerKeyExchange:dh_p_length", "DhAnonServerKeyExchange:dh_p"],
        ["DhAnonServerKeyExchange:dh_g_length", "DhAnonServerKeyExchange:dh_g"],
        ["DhAnonServerKeyExchange:dh_Ys_length", "DhAnonServerKeyExchange:dh_Ys"],
    ];
    let mut r = Reader::new(body);
    for [length, field] in if signature.is_some() { SIGNED } else { UNSIGNED } {
        r.vector16(length, field)?;
    }
    signature.map_or(Ok(()), |form| r.nested(|r| form.check(r)))
}

/// Prime, generator and public value of Diffie-Hellman parameters (RFC 5246 section 7.4.3).
///
/// # Errors
/// If the message is truncated.
pub fn dh_values(body: &[u8]) -> Result<[&[u8]; 3], Malformed> {
    let mut r = Reader::new(body);
    let mut value = |length, field| r.vector16(length, field).map(|v| v.rest());
    Ok([
        value("DheServerKeyExchange:dh_p_length", "DheServerKeyExchange:dh_p")?,
        value("DheServerKeyExchange:dh_g_length", "DheServerKeyExchange:dh_g")?,
        value("DheServerKeyExchange:dh_Ys_length", "DheServerKeyExchange:dh_Ys")?,
    ])
}

/// Checks a CertificateRequest (RFC 5246 section 7.4.4).
///
/// # Errors
/// If the message is truncated.
pub fn check_certificate_request(body: &[u8], form: SignatureForm) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    let n = r.u8("CertificateRequest:certificate_types_len")?;
    r.array(n.into(), 1, "CertificateRequest:certificate_types")?;
    if form == SignatureForm::WithAlgorithm {
        r.nested(signature_algorithms)?;
    }
    let mut authorities = r.vector16(
        "CertificateRequest:certificate_authorities_len",
        "CertificateRequest:certificate_authorities",
    )?;
    while !authorities.is_empty() {
        authorities.nested(|r| {
            r.vector16(
                "CertificateAuthorities:certificate_authority_len",
                "CertificateAuthorities:certificate_authority",
            )
        })?;
    }
    Ok(())
}

/// Whether signatures contain their algorithm, as they do from TLS 1.2 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureForm {
    /// The signature only.
    Bare,
    /// With the hash and signature algorithm, two octets, before the signature.
    WithAlgorithm,
}

impl SignatureForm {
    fn check(self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        if self == Self::WithAlgorithm {
            r.nested(|r| r.take(2, "SignatureAndHashAlgorithm"))?;
        }
        r.vector16(
            "ServerKeyExchangeSignature:signature_length",
            "ServerKeyExchangeSignature:signature",
        )
        .map(drop)
    }
}

/// Lifetime in seconds and ticket of a NewSessionTicket (RFC 5077 section 3.3).
///
/// # Errors
/// If the message is truncated.
pub fn session_ticket(body: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let mut r = Reader::new(body);
    r.need(6, "SessionTicketHandshake:length")?;
    let lifetime = r.take(4, "SessionTicketHandshake:length")?;
    let lifetime = lifetime.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
    let data = r.vector16("SessionTicketHandshake:length", "SessionTicketHandshake:data")?;
    Ok((lifetime, data.rest()))
}

/// Checks a HelloVerifyRequest (RFC 6347 section 4.2.1).
///
/// # Errors
/// If the message is truncated.
pub fn check_hello_verify_request(body: &[u8]) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    r.need(3, "HelloVerifyRequest:cookie_length")?;
    r.u16("HelloVerifyRequest:cookie_length")?;
    r.vector8("HelloVerifyRequest:cookie_length", "HelloVerifyRequest:cookie").map(drop)
}

/// Whether the random bytes of a ServerHello mark it as a HelloRetryRequest (RFC 8446 section
/// 4.1.3).
pub(super) fn is_retry_request(random: &[u8]) -> bool {
    // SHA-256 of "HelloRetryRequest".
    const RETRY: [u8; 32] = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8,
        0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
        0x33, 0x9c,
    ];
    random == RETRY
}

/// A session id padded with zeros; one that is too long counts as empty.
#[inline]
pub(super) fn padded(id: &[u8]) -> [u8; 32] {
    let mut padded_id = [0; 32];
    if let Some(front) = padded_id.get_mut(..id.len()) {
        front.copy_from_slice(id);
    }
    padded_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_hold_what_they_count() {
        let mut r = Reader::new(&[0, 2, 8, 9, 1, 7, 5]);
        assert_eq!(r.vector16("n", "a").map(|v| v.rest()), Ok(&[8, 9][..]));
        assert_eq!(r.vector8("n", "b").map(|v| v.rest()), Ok(&[7][..]));
        // The count starts at the first byte of the outermost structure.
        assert_eq!(r.vector8("n", "c").err(), Some(Malformed { field: "c", need: 12, have: 7 }));
        assert!(r.is_empty());
    }

    #[test]
    fn malformed_reads_as_in_the_log() {
        let body = [&[0, 0x0e, 0xec][..], &[0; 253]].concat();
        assert_eq!(
            certificates(&body).map_err(|e| e.to_string()),
            Err("Binpac exception: binpac exception: out_of_bound: Certificate: 3823 > 256".into())
        );
    }

    #[test]
    fn what_lacks_is_counted_as_in_the_log() {
        fn error_text<T: fmt::Debug>(read: Result<T, Malformed>) -> String {
            crate::support::error_text(read.unwrap_err())
        }
        let mut hello = vec![3, 3];
        hello.extend([7; 32]);
        hello.extend([32, 1, 2]);
        let client = |body: &[u8]| error_text(ClientHello::parse(body, |_| false));
        assert_eq!(client(&hello[..5]), "out_of_bound: ClientHello:gmt_unix_time: 6 > 5");
        assert_eq!(client(&hello[..9]), "out_of_bound: ClientHello:random_bytes: 34 > 9");
        assert_eq!(client(&hello), "out_of_bound: ClientHello:session_id: 32 > 2");
        assert_eq!(
            error_text(ServerHello::parse(&hello[..20])),
            "out_of_bound: ServerHello:random_bytes: 32 > 18"
        );
        assert_eq!(
            error_text(ServerHello::parse(&hello)),
            "out_of_bound: ServerHello:session_id: 32 > 2"
        );
        hello[34] = 1;
        assert_eq!(
            error_text(ServerHello::parse(&hello)),
            "out_of_bound: ServerHello:compression_method: 37 > 35"
        );
        hello.extend([47, 0, 9]);
        assert_eq!(
            error_text(ServerHello::parse(&hello)),
            "out_of_bound: ServerHello:ext_len__elem: 39 > 38"
        );
        assert_eq!(
            error_text(certificates(&[0, 0, 5, 0, 0, 9, 1, 2])),
            "out_of_bound: X509Certificate:certificate: 12 > 5"
        );
        let dh = [0, 1, 1, 0, 1, 2, 0, 1, 3, 0, 4, 1];
        assert_eq!(
            error_text(dh_parameters(&dh[..7], None)),
            "out_of_bound: DhAnonServerKeyExchange:dh_Ys_length: 8 > 7"
        );
        assert_eq!(
            error_text(dh_parameters(&dh, Some(SignatureForm::Bare))),
            "out_of_bound: ServerKeyExchangeSignature:signature: 6 > 3"
        );
    }

    #[test]
    fn chains_in_their_order() {
        let body = [0, 0, 9, 0, 0, 2, 1, 2, 0, 0, 1, 3];
        assert_eq!(certificates(&body), Ok(vec![&[1, 2][..], &[3]]));
        assert_eq!(certificates(&[0, 0, 0]), Ok(vec![]));
        assert!(certificates(&[0, 0, 4, 0, 0, 2, 1]).is_err());
    }

    #[test]
    fn parameters_with_and_without_algorithm() {
        let bare = [3, 0, 24, 1, 9, 0, 1, 7];
        assert_eq!(ecdh_parameters(&bare, Some(SignatureForm::Bare)), Ok(Some(24)));
        assert!(ecdh_parameters(&bare, Some(SignatureForm::WithAlgorithm)).is_err());
        assert_eq!(ecdh_parameters(&[1, 9], None), Ok(None));
        let dh = [0, 1, 1, 0, 1, 2, 0, 1, 3, 0, 0];
        assert_eq!(dh_parameters(&dh, Some(SignatureForm::Bare)), Ok(()));
        assert!(dh_parameters(&dh[..8], None).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
        ) {
            // The fields do not exceed the available bytes.
            if let Ok(hello) = ClientHello::parse(&data, |v| v % 2 == 0) {
                proptest::prop_assert!(hello.session_id.len() < data.len());
            }
            if let Ok(all) = certificates(&data) {
                proptest::prop_assert!(all.concat().len() <= data.len());
            }
        }
    }
}
