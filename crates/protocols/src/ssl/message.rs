//! Handshake messages and extensions: bytes in, borrowed values out, no state.
//!
//! Everything is read with [`Reader`], which never looks beyond its slice; what does not fit is a
//! [`Malformed`] that says which field lacked how much.

use std::fmt;

/// A field that reaches beyond the bytes that hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The structure, or the structure and its field.
    pub field: &'static str,
    /// Bytes it takes.
    pub need: usize,
    /// Bytes there are.
    pub have: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The wording of analyzer.log's failure_reason.
        let Self { field, need, have } = self;
        write!(f, "Binpac exception: binpac exception: out_of_bound: {field}: {need} > {have}")
    }
}

/// Reads big-endian fields from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Of all of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let Some((head, rest)) = self.rest.split_at_checked(n) else {
            return Err(Malformed { field, need: n, have: self.rest.len() });
        };
        self.rest = rest;
        Ok(head)
    }

    /// One octet.
    ///
    /// # Errors
    /// When none is left.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Malformed> {
        Ok(self.take(1, field)?[0])
    }

    /// Two octets.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Malformed> {
        let b = self.take(2, field)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    /// Three octets.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u24(&mut self, field: &'static str) -> Result<u32, Malformed> {
        let b = self.take(3, field)?;
        Ok(u32::from_be_bytes([0, b[0], b[1], b[2]]))
    }

    /// Fails unless `n` bytes are left.
    fn need(&self, n: usize, field: &'static str) -> Result<(), Malformed> {
        self.clone().take(n, field).map(drop)
    }

    /// A length of two octets and what it counts, as a reader of its own.
    fn vector16(&mut self, field: &'static str) -> Result<Reader<'a>, Malformed> {
        let n = usize::from(Reader::u16(&mut self.clone(), field)?);
        let whole = self.take(n + 2, field)?;
        Ok(Reader::new(&whole[2..]))
    }

    /// A length of one octet and what it counts, as a reader of its own.
    fn vector8(&mut self, field: &'static str) -> Result<Reader<'a>, Malformed> {
        let n = usize::from(Reader::u8(&mut self.clone(), field)?);
        let whole = self.take(n + 1, field)?;
        Ok(Reader::new(&whole[1..]))
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

/// Extension types that say something (IANA "TLS ExtensionType Values").
pub mod extension {
    #![allow(missing_docs)] // the registry's names
    pub const SERVER_NAME: u16 = 0;
    pub const SUPPORTED_GROUPS: u16 = 10;
    pub const EC_POINT_FORMATS: u16 = 11;
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    pub const ALPN: u16 = 16;
    pub const SIGNED_CERTIFICATE_TIMESTAMP: u16 = 18;
    pub const SESSION_TICKET: u16 = 35;
    pub const KEY_SHARE_OLD: u16 = 40;
    pub const PRE_SHARED_KEY: u16 = 41;
    pub const SUPPORTED_VERSIONS: u16 = 43;
    pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub const SIGNATURE_ALGORITHMS_CERT: u16 = 50;
    pub const KEY_SHARE: u16 = 51;
    pub const CONNECTION_ID: u16 = 54;
    pub const ENCRYPTED_CLIENT_HELLO: u16 = 65037;
}

/// ClientHello (RFC 5246 section 7.4.1.2, RFC 6347 section 4.2.1).
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    /// The version in the message itself.
    pub version: u16,
    /// Session to resume; mostly none or 32 bytes.
    pub session_id: &'a [u8],
    /// The extensions, unread.
    pub extensions: Reader<'a>,
}

impl<'a> ClientHello<'a> {
    /// Reads the fixed part of a message's body.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn parse(body: &'a [u8], dtls: impl Fn(u16) -> bool) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        r.need(35, "ClientHello:session_len")?;
        let version = r.u16("ClientHello:client_version")?;
        r.take(32, "ClientHello:random_bytes")?;
        let session_id = r.vector8("ClientHello:session_id")?.rest();
        if dtls(version) {
            r.vector8("ClientHelloCookie:cookie")?;
        }
        let suites = r.u16("ClientHello:csuit_len")? / 2 * 2;
        r.take(usize::from(suites), "ClientHello:csuits")?;
        r.vector8("ClientHello:cmeths")?;
        skip_extensions_length(&mut r)?;
        Ok(Self { version, session_id, extensions: r })
    }
}

/// ServerHello (RFC 5246 section 7.4.1.3; drafts of RFC 8446 had no session and compression).
#[derive(Clone, Copy, Debug)]
pub struct ServerHello<'a> {
    /// The version in the message itself.
    pub version: u16,
    /// 32 random bytes; fixed in a HelloRetryRequest.
    pub random: &'a [u8],
    /// The session that is resumed or begun; mostly none or 32 bytes.
    pub session_id: &'a [u8],
    /// The chosen cipher suite.
    pub cipher: u16,
    /// The extensions, unread.
    pub extensions: Reader<'a>,
}

impl<'a> ServerHello<'a> {
    /// Reads the fixed part of a message's body.
    ///
    /// # Errors
    /// When it is cut short.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let version = r.u16("ServerHelloChoice:server_version1")?;
        let short = version == super::names::TLS13 || version >> 8 == 0x7f;
        let (random, session_id, cipher);
        if short {
            random = r.take(32, "ServerHello13:random")?;
            session_id = &body[..0];
            cipher = r.u16("ServerHello13:cipher_suite")?;
        } else {
            r.need(33, "ServerHello:session_len")?;
            random = r.take(32, "ServerHello:random_bytes")?;
            session_id = r.vector8("ServerHello:session_id")?.rest();
            cipher = r.u16("ServerHello:cipher_suite")?;
            r.u8("ServerHello:compression_method")?;
        }
        skip_extensions_length(&mut r)?;
        Ok(Self { version, random, session_id, cipher, extensions: r })
    }

    /// Whether it is a HelloRetryRequest in disguise (RFC 8446 section 4.1.3).
    pub fn is_retry_request(&self) -> bool {
        // SHA-256 of "HelloRetryRequest".
        const RETRY: [u8; 32] = [
            0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65,
            0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2,
            0xc8, 0xa8, 0x33, 0x9c,
        ];
        self.random == RETRY
    }
}

/// The length of all extensions together: it may be missing, and the message's end counts.
fn skip_extensions_length(r: &mut Reader<'_>) -> Result<(), Malformed> {
    if !r.is_empty() {
        r.u16("uint16")?;
    }
    Ok(())
}

/// One extension: its type and what is in it.
///
/// # Errors
/// When it reaches beyond the message.
pub fn next_extension<'a>(r: &mut Reader<'a>) -> Result<(u16, &'a [u8]), Malformed> {
    let mut head = *r;
    head.need(4, "SSLExtension:data_len")?;
    let ty = head.u16("SSLExtension:type")?;
    let len = usize::from(head.u16("SSLExtension:data_len")?);
    let whole = r.take(len + 4, "SSLExtension")?;
    Ok((ty, &whole[4..]))
}

/// Names of a server_name extension (RFC 6066 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames<'a> {
    /// Host names.
    pub hosts: Vec<&'a [u8]>,
    /// Name types that are no host names.
    pub unknown: Vec<u8>,
}

impl<'a> ServerNames<'a> {
    /// Reads an extension's content.
    ///
    /// # Errors
    /// When a name reaches beyond it.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut list = Reader::new(data).vector16("ServerNameExt")?;
        let mut names = Self::default();
        while !list.is_empty() {
            match list.u8("ServerName:name_type")? {
                0 => {
                    let n = list.u16("ServerNameHostName:length")?;
                    names.hosts.push(list.take(n.into(), "ServerNameHostName:host_name")?);
                }
                other => {
                    names.unknown.push(other);
                    break;
                }
            }
        }
        Ok(names)
    }
}

/// First name of an ALPN extension (RFC 7301 section 3.1); all of them must be whole.
///
/// # Errors
/// When a name reaches beyond the extension.
pub fn alpn(data: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let mut list = Reader::new(data).vector16("ApplicationLayerProtocolNegotiationExtension")?;
    let mut first = None;
    while !list.is_empty() {
        let name = list.vector8("ProtocolName:name")?.rest();
        first = first.or(Some(name));
    }
    Ok(first)
}

/// The group that a server's key share names (RFC 8446 section 4.2.8).
///
/// # Errors
/// When the share is cut short.
pub fn server_key_share(data: &[u8]) -> Result<u16, Malformed> {
    let mut r = Reader::new(data);
    if data.len() == 2 {
        return r.u16("HelloRetryRequestKeyShare");
    }
    key_share_entry(&mut r)
}

fn key_share_entry(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    r.need(4, "KeyShareEntry:key_exchange_length")?;
    let group = r.u16("KeyShareEntry:namedgroup")?;
    let n = r.u16("KeyShareEntry:key_exchange_length")?;
    r.take(n.into(), "KeyShareEntry:key_exchange")?;
    Ok(group)
}

/// Makes sure that an extension without consequences holds together, as a whole message must.
///
/// # Errors
/// When a field reaches beyond its list.
pub fn check_extension(ty: u16, data: &[u8], client: bool) -> Result<(), Malformed> {
    let mut r = Reader::new(data);
    match ty {
        extension::SUPPORTED_GROUPS => {
            let n = r.u16("EllipticCurves:length")? / 2 * 2;
            r.take(n.into(), "EllipticCurves:elliptic_curve_list")?;
        }
        extension::EC_POINT_FORMATS => {
            r.vector8("EcPointFormats:point_format_list")?;
        }
        extension::SIGNATURE_ALGORITHMS | extension::SIGNATURE_ALGORITHMS_CERT => {
            even(r.vector16("SignatureAlgorithm")?)?;
        }
        extension::SUPPORTED_VERSIONS if client => even(r.vector8("SupportedVersions")?)?,
        extension::PSK_KEY_EXCHANGE_MODES => {
            r.vector8("PSKKeyExchangeModes")?;
        }
        extension::CONNECTION_ID => {
            r.vector8("ConnectionId:cid")?;
        }
        extension::KEY_SHARE | extension::KEY_SHARE_OLD if client => {
            let mut list = r.vector16("ClientHelloKeyShare")?;
            while !list.is_empty() {
                key_share_entry(&mut list)?;
            }
        }
        extension::PRE_SHARED_KEY if client => {
            let mut identities = r.vector16("PSKIdentitiesList")?;
            while !identities.is_empty() {
                let n = identities.u16("PSKIdentity:length")?;
                identities.take(n.into(), "PSKIdentity:identity")?;
                identities.take(4, "PSKIdentity:obfuscated_ticket_age")?;
            }
            let mut binders = r.vector16("PSKBindersList")?;
            while !binders.is_empty() {
                binders.vector8("PSKBinder:binder")?;
            }
        }
        extension::PRE_SHARED_KEY => {
            r.u16("SelectedPreSharedKeyIdentity")?;
        }
        extension::SIGNED_CERTIFICATE_TIMESTAMP => {
            let mut list = r.vector16("SignedCertificateTimestampList")?;
            while !list.is_empty() {
                timestamp(list.vector16("SignedCertificateTimestamp")?)?;
            }
        }
        // Only the outer form says more.
        extension::ENCRYPTED_CLIENT_HELLO if r.u8("EncryptedClientHelloSwitch:tpe")? == 0 => {
            r.take(5, "EncryptedClientHello:config_id")?;
            r.vector16("EncryptedClientHello:enc")?;
            r.vector16("EncryptedClientHello:payload")?;
        }
        _ => {}
    }
    Ok(())
}

/// A list of numbers of two octets.
fn even(list: Reader<'_>) -> Result<(), Malformed> {
    match list.rest().len() % 2 {
        0 => Ok(()),
        _ => Err(Malformed { field: "uint16", need: 2, have: 1 }),
    }
}

/// A signed certificate timestamp (RFC 6962 section 3.2).
fn timestamp(mut r: Reader<'_>) -> Result<(), Malformed> {
    r.take(41, "SignedCertificateTimestamp:timestamp")?;
    r.vector16("SignedCertificateTimestamp:extensions")?;
    r.take(2, "SignatureAndHashAlgorithm")?;
    r.vector16("SignedCertificateTimestamp:digitally_signed_signature").map(drop)
}

/// The certificates of a Certificate message before TLS 1.3 (RFC 5246 section 7.4.2).
///
/// # Errors
/// When the list or a certificate reaches beyond what holds it.
pub fn certificates(body: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let n = Reader::new(body).u24("Certificate:length")? as usize;
    let mut list = Reader::new(body);
    let mut list = Reader::new(&list.take(n + 3, "Certificate")?[3..]);
    let mut all = Vec::new();
    while !list.is_empty() {
        let n = list.u24("X509Certificate:length")? as usize;
        all.push(list.take(n, "X509Certificate:certificate")?);
    }
    Ok(all)
}

/// Type and response of a CertificateStatus message (RFC 6066 section 8).
///
/// # Errors
/// When it is cut short.
pub fn certificate_status(body: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let mut r = Reader::new(body);
    r.need(4, "CertificateStatus:length")?;
    let ty = r.u8("CertificateStatus:status_type")?;
    r.u24("CertificateStatus:length")?;
    Ok((ty, r.rest()))
}

/// The named curve of elliptic-curve parameters, if they name one (RFC 8422 section 5.4).
///
/// # Errors
/// When the message is cut short.
pub fn ecdh_parameters(
    body: &[u8],
    signature: Option<SignatureForm>,
) -> Result<Option<u16>, Malformed> {
    const NAMED_CURVE: u8 = 3;
    let mut r = Reader::new(body);
    if r.u8("EcdheServerKeyExchange:curve_type")? != NAMED_CURVE {
        return Ok(None);
    }
    r.need(3, "ServerECDHParamsAndSignature:point_length")?;
    let curve = r.u16("ServerECDHParamsAndSignature:curve")?;
    r.vector8("ServerECDHParamsAndSignature:point")?;
    if let Some(form) = signature {
        form.check(&mut r)?;
    }
    Ok(Some(curve))
}

/// Makes sure that Diffie-Hellman parameters hold together (RFC 5246 section 7.4.3).
///
/// # Errors
/// When the message is cut short.
pub fn dh_parameters(body: &[u8], signature: Option<SignatureForm>) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    for field in ["dh_p", "dh_g", "dh_Ys"] {
        r.vector16(field)?;
    }
    signature.map_or(Ok(()), |form| form.check(&mut r))
}

/// Makes sure that a CertificateRequest holds together (RFC 5246 section 7.4.4).
///
/// # Errors
/// When the message is cut short.
pub fn check_certificate_request(body: &[u8], form: SignatureForm) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    r.vector8("CertificateRequest:certificate_types")?;
    if form == SignatureForm::WithAlgorithm {
        even(r.vector16("SignatureAlgorithm")?)?;
    }
    let mut authorities = r.vector16("CertificateRequest:certificate_authorities")?;
    while !authorities.is_empty() {
        authorities.vector16("CertificateAuthorities:certificate_authority")?;
    }
    Ok(())
}

/// Whether signatures say their algorithm, as they do from TLS 1.2 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureForm {
    /// The signature alone.
    Bare,
    /// With two octets for hash and signature algorithm before it.
    WithAlgorithm,
}

impl SignatureForm {
    fn check(self, r: &mut Reader<'_>) -> Result<(), Malformed> {
        if self == Self::WithAlgorithm {
            r.take(2, "SignatureAndHashAlgorithm")?;
        }
        r.vector16("ServerKeyExchangeSignature:signature").map(drop)
    }
}

/// Makes sure that a NewSessionTicket holds together (RFC 5077 section 3.3).
///
/// # Errors
/// When the message is cut short.
pub fn check_session_ticket(body: &[u8]) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    r.need(6, "SessionTicketHandshake:length")?;
    r.take(4, "SessionTicketHandshake:ticket_lifetime_hint")?;
    r.vector16("SessionTicketHandshake:data").map(drop)
}

/// Makes sure that a HelloVerifyRequest holds together (RFC 6347 section 4.2.1).
///
/// # Errors
/// When the message is cut short.
pub fn check_hello_verify_request(body: &[u8]) -> Result<(), Malformed> {
    let mut r = Reader::new(body);
    r.need(3, "HelloVerifyRequest:cookie_length")?;
    r.u16("HelloVerifyRequest:version")?;
    r.vector8("HelloVerifyRequest:cookie").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_hold_what_they_count() {
        let mut r = Reader::new(&[0, 2, 8, 9, 1, 7, 5]);
        assert_eq!(r.vector16("a").map(|v| v.rest()), Ok(&[8, 9][..]));
        assert_eq!(r.vector8("b").map(|v| v.rest()), Ok(&[7][..]));
        assert_eq!(r.vector8("c").err(), Some(Malformed { field: "c", need: 6, have: 1 }));
        assert_eq!(r.u8("d"), Ok(5));
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
    fn chains_in_their_order() {
        let body = [0, 0, 9, 0, 0, 2, 1, 2, 0, 0, 1, 3];
        assert_eq!(certificates(&body), Ok(vec![&[1, 2][..], &[3]]));
        assert_eq!(certificates(&[0, 0, 0]), Ok(vec![]));
        assert!(certificates(&[0, 0, 4, 0, 0, 2, 1]).is_err());
    }

    #[test]
    fn names_asked_for() {
        let data = [0, 9, 0, 0, 1, b'a', 0, 0, 2, b'b', b'c'];
        let names = ServerNames::parse(&data);
        assert_eq!(names.map(|n| n.hosts), Ok(vec![&b"a"[..], b"bc"]));
        let odd = ServerNames::parse(&[0, 2, 7, 1]).map(|n| n.unknown);
        assert_eq!(odd, Ok(vec![7]));
        assert!(ServerNames::parse(&[0, 3, 0, 0, 5]).is_err());
    }

    #[test]
    fn shares_of_servers() {
        assert_eq!(server_key_share(&[0, 29]), Ok(29));
        assert_eq!(server_key_share(&[0, 23, 0, 1, 9]), Ok(23));
        assert!(server_key_share(&[0, 23, 0, 2, 9]).is_err());
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
            ty in 0_u16..60,
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
        ) {
            // What is read is never more than what is there.
            if let Ok(hello) = ClientHello::parse(&data, |v| v % 2 == 0) {
                proptest::prop_assert!(hello.session_id.len() < data.len());
            }
            if let Ok(all) = certificates(&data) {
                proptest::prop_assert!(all.concat().len() <= data.len());
            }
            let whole = check_extension(ty, &data, true).is_ok();
            proptest::prop_assert!(whole || !data.is_empty() || ty != 0);
        }
    }
}
