//! Extensions of the hellos: bytes in, borrowed values out.

use super::message::Malformed;
use super::message::Reader;
use super::message::even;

/// Extension types that say something (IANA "TLS ExtensionType Values").
pub mod ty {
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

/// One extension: its type and what is in it.
///
/// # Errors
/// When it reaches beyond the message.
pub fn next<'a>(r: &mut Reader<'a>) -> Result<(u16, &'a [u8]), Malformed> {
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
    let mut first = None;
    each_alpn_name(data, |name| {
        first.get_or_insert(name);
    })?;
    Ok(first)
}

/// All names of an ALPN extension.
///
/// # Errors
/// When a name reaches beyond the extension.
pub fn alpn_names(data: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut names = Vec::new();
    each_alpn_name(data, |name| names.push(name))?;
    Ok(names)
}

fn each_alpn_name<'a>(data: &'a [u8], mut tell: impl FnMut(&'a [u8])) -> Result<(), Malformed> {
    let mut list = Reader::new(data).vector16("ApplicationLayerProtocolNegotiationExtension")?;
    while !list.is_empty() {
        tell(list.vector8("ProtocolName:name")?.rest());
    }
    Ok(())
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
pub fn check(kind: u16, data: &[u8], client: bool) -> Result<(), Malformed> {
    let mut r = Reader::new(data);
    match kind {
        ty::SUPPORTED_GROUPS => {
            let n = r.u16("EllipticCurves:length")? / 2 * 2;
            r.take(n.into(), "EllipticCurves:elliptic_curve_list")?;
        }
        ty::EC_POINT_FORMATS => {
            r.vector8("EcPointFormats:point_format_list")?;
        }
        ty::SIGNATURE_ALGORITHMS | ty::SIGNATURE_ALGORITHMS_CERT => {
            even(r.vector16("SignatureAlgorithm")?)?;
        }
        ty::SUPPORTED_VERSIONS if client => even(r.vector8("SupportedVersions")?)?,
        ty::PSK_KEY_EXCHANGE_MODES => {
            r.vector8("PSKKeyExchangeModes")?;
        }
        ty::CONNECTION_ID => {
            r.vector8("ConnectionId:cid")?;
        }
        ty::KEY_SHARE | ty::KEY_SHARE_OLD if client => {
            let mut list = r.vector16("ClientHelloKeyShare")?;
            while !list.is_empty() {
                key_share_entry(&mut list)?;
            }
        }
        ty::PRE_SHARED_KEY if client => {
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
        ty::PRE_SHARED_KEY => {
            r.u16("SelectedPreSharedKeyIdentity")?;
        }
        ty::SIGNED_CERTIFICATE_TIMESTAMP => {
            let mut list = r.vector16("SignedCertificateTimestampList")?;
            while !list.is_empty() {
                timestamp(list.vector16("SignedCertificateTimestamp")?)?;
            }
        }
        // Only the outer form says more.
        ty::ENCRYPTED_CLIENT_HELLO if r.u8("EncryptedClientHelloSwitch:tpe")? == 0 => {
            r.take(5, "EncryptedClientHello:config_id")?;
            r.vector16("EncryptedClientHello:enc")?;
            r.vector16("EncryptedClientHello:payload")?;
        }
        _ => {}
    }
    Ok(())
}

/// A signed certificate timestamp (RFC 6962 section 3.2).
fn timestamp(mut r: Reader<'_>) -> Result<(), Malformed> {
    r.take(41, "SignedCertificateTimestamp:timestamp")?;
    r.vector16("SignedCertificateTimestamp:extensions")?;
    r.take(2, "SignatureAndHashAlgorithm")?;
    r.vector16("SignedCertificateTimestamp:digitally_signed_signature").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(
            kind in 0_u16..60,
            data in proptest::collection::vec(proptest::num::u8::ANY, 0..120),
        ) {
            for client in [false, true] {
                if let Err(e) = check(kind, &data, client) {
                    proptest::prop_assert!(e.need > e.have);
                }
            }
            let mut r = Reader::new(&data);
            while let Ok((_, content)) = next(&mut r) {
                proptest::prop_assert!(content.len() + r.rest().len() < data.len());
            }
        }
    }
}
