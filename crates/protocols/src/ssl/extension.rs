//! Parses extensions of hellos, without state.

use super::message::Malformed;
use super::message::Reader;
use super::message::check_numbers;
use super::message::signature_algorithms;

/// Extension types that are parsed (IANA "TLS ExtensionType Values").
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

/// Reads the next extension: its type and content.
///
/// # Errors
/// If it exceeds the message.
pub fn next<'a>(r: &mut Reader<'a>) -> Result<(u16, &'a [u8]), Malformed> {
    r.nested(|r| {
        r.need(4, "SSLExtension:data_len")?;
        let ty = r.u16("SSLExtension:data_len")?;
        let len = r.u16("SSLExtension:data_len")?;
        Ok((ty, r.take(len.into(), "SSLExtension")?))
    })
}

/// Names of a server_name extension (RFC 6066 section 3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames<'a> {
    /// Host names.
    pub hosts: Vec<&'a [u8]>,
    /// Name types other than host names.
    pub unknown: Vec<u8>,
}

impl<'a> ServerNames<'a> {
    /// Parses an extension's content.
    ///
    /// # Errors
    /// If a name exceeds it.
    pub fn parse(data: &'a [u8]) -> Result<Self, Malformed> {
        let mut list = Reader::new(data).vector16("ServerNameExt:length", "ServerNameExt")?;
        let mut names = Self::default();
        while !list.is_empty() {
            match list.u8("ServerName:name_type")? {
                0 => {
                    let host = list.nested(|r| {
                        r.vector16("ServerNameHostName:length", "ServerNameHostName:host_name")
                    })?;
                    names.hosts.push(host.rest());
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

/// First name of an ALPN extension (RFC 7301 section 3.1); all names must be complete.
///
/// # Errors
/// If a name exceeds the extension.
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
/// If a name exceeds the extension.
pub fn alpn_names(data: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut names = Vec::new();
    each_alpn_name(data, |name| names.push(name))?;
    Ok(names)
}

fn each_alpn_name<'a>(data: &'a [u8], mut visit: impl FnMut(&'a [u8])) -> Result<(), Malformed> {
    let mut list = Reader::new(data).vector16(
        "ApplicationLayerProtocolNegotiationExtension:length",
        "ApplicationLayerProtocolNegotiationExtension",
    )?;
    while !list.is_empty() {
        let name = list.nested(|r| r.vector8("ProtocolName:length", "ProtocolName:name"))?;
        visit(name.rest());
    }
    Ok(())
}

/// The group in a server's key share (RFC 8446 section 4.2.8).
///
/// # Errors
/// If the share is truncated.
pub fn server_key_share(data: &[u8]) -> Result<u16, Malformed> {
    let mut r = Reader::new(data);
    if data.len() == 2 {
        return r.u16("HelloRetryRequestKeyShare");
    }
    key_share_entry(&mut r)
}

/// The groups of a client's key shares (RFC 8446 section 4.2.8).
///
/// # Errors
/// If a share is truncated.
pub fn client_key_shares(data: &[u8]) -> Result<Vec<u16>, Malformed> {
    let mut list =
        Reader::new(data).vector16("ClientHelloKeyShare:length", "ClientHelloKeyShare")?;
    let mut groups = Vec::new();
    while !list.is_empty() {
        groups.push(list.nested(key_share_entry)?);
    }
    Ok(groups)
}

fn key_share_entry(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    const LENGTH: &str = "KeyShareEntry:key_exchange_length";
    r.need(4, LENGTH)?;
    let group = r.u16(LENGTH)?;
    r.vector16(LENGTH, "KeyShareEntry:key_exchange")?;
    Ok(group)
}

/// Checks an extension whose content is not used: the whole message must be valid.
///
/// # Errors
/// If a field exceeds its list.
pub fn check(kind: u16, data: &[u8], client: bool) -> Result<(), Malformed> {
    let mut r = Reader::new(data);
    match kind {
        ty::SUPPORTED_GROUPS => {
            let n = r.u16("EllipticCurves:length")?;
            r.array(usize::from(n / 2), 2, "EllipticCurves:elliptic_curve_list")?;
        }
        ty::EC_POINT_FORMATS => {
            let n = r.u8("EcPointFormats:length")?;
            r.array(n.into(), 1, "EcPointFormats:point_format_list")?;
        }
        ty::SIGNATURE_ALGORITHMS | ty::SIGNATURE_ALGORITHMS_CERT => signature_algorithms(&mut r)?,
        ty::SUPPORTED_VERSIONS if client => {
            let list = r.vector8("SupportedVersions:length", "SupportedVersions")?;
            check_numbers(list, 1, "SupportedVersions:versions__elem")?;
        }
        ty::PSK_KEY_EXCHANGE_MODES => {
            r.vector8("PSKKeyExchangeModes:length", "PSKKeyExchangeModes")?;
        }
        ty::CONNECTION_ID => {
            r.vector8("ConnectionId:length", "ConnectionId:cid")?;
        }
        ty::KEY_SHARE | ty::KEY_SHARE_OLD if client => {
            let mut list = r.vector16("ClientHelloKeyShare:length", "ClientHelloKeyShare")?;
            while !list.is_empty() {
                list.nested(key_share_entry)?;
            }
        }
        ty::PRE_SHARED_KEY if client => offered_psks(&mut r)?,
        ty::PRE_SHARED_KEY => {
            r.u16("SelectedPreSharedKeyIdentity")?;
        }
        ty::SIGNED_CERTIFICATE_TIMESTAMP => {
            let mut list = r.vector16(
                "SignedCertificateTimestampList:length",
                "SignedCertificateTimestampList",
            )?;
            while !list.is_empty() {
                list.nested(timestamp)?;
            }
        }
        // Only the outer form has further fields.
        ty::ENCRYPTED_CLIENT_HELLO if r.u8("EncryptedClientHelloSwitch:tpe")? == 0 => {
            r.nested(|r| {
                r.need(7, "EncryptedClientHello:enc_length")?;
                r.take(5, "EncryptedClientHello:enc_length")?;
                r.vector16("EncryptedClientHello:enc_length", "EncryptedClientHello:enc")?;
                r.vector16("EncryptedClientHello:payload_length", "EncryptedClientHello:payload")
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// Checks the pre-shared keys that a client offers (RFC 8446 section 4.2.11).
fn offered_psks(r: &mut Reader<'_>) -> Result<(), Malformed> {
    let mut identities =
        r.nested(|r| r.vector16("PSKIdentitiesList:length", "PSKIdentitiesList"))?;
    while !identities.is_empty() {
        identities.nested(|r| {
            r.vector16("PSKIdentity:length", "PSKIdentity:identity")?;
            r.take(4, "PSKIdentity:obfuscated_ticket_age")
        })?;
    }
    let mut binders = r.nested(|r| r.vector16("PSKBindersList:length", "PSKBindersList"))?;
    while !binders.is_empty() {
        binders.nested(|r| r.vector8("PSKBinder:length", "PSKBinder:binder"))?;
    }
    Ok(())
}

/// Checks a signed certificate timestamp (RFC 6962 section 3.2), after its length.
fn timestamp(r: &mut Reader<'_>) -> Result<(), Malformed> {
    const SIGNATURE: &str = "SignedCertificateTimestamp:digitally_signed_signature_length";
    const EXTENSIONS: &str = "SignedCertificateTimestamp:extensions_length";
    r.need(3, "SignedCertificateTimestamp:version")?;
    let n = r.u16("SignedCertificateTimestamp:version")?;
    let mut r = r.limited_to(n.into(), "SignedCertificateTimestamp")?;
    r.take(33, "SignedCertificateTimestamp:logid")?;
    r.need(10, EXTENSIONS)?;
    r.take(8, EXTENSIONS)?;
    r.vector16(EXTENSIONS, "SignedCertificateTimestamp:extensions")?;
    r.need(4, SIGNATURE)?;
    r.take(2, SIGNATURE)?;
    r.vector16(SIGNATURE, "SignedCertificateTimestamp:digitally_signed_signature").map(drop)
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
    fn what_lacks_is_counted_from_the_structure_it_lacks_in() {
        let lacks = |kind, data: &[u8], client| {
            check(kind, data, client).err().map(|e| (e.field, e.need, e.have))
        };
        let algorithms = "SignatureAlgorithm:supported_signature_algorithms__elem";
        assert_eq!(lacks(13, &[0, 3, 4, 3, 5], true), Some((algorithms, 6, 5)));
        assert_eq!(
            lacks(10, &[0, 6, 0, 23], true),
            Some(("EllipticCurves:elliptic_curve_list", 3, 2))
        );
        // 45 curves need 90 bytes, and there are 60.
        let curves: Vec<u8> = [0, 90].into_iter().chain([0; 60]).collect();
        assert_eq!(lacks(10, &curves, true), Some(("EllipticCurves:elliptic_curve_list", 45, 60)));
        assert_eq!(lacks(11, &[2, 0], false), Some(("EcPointFormats:point_format_list", 2, 1)));
        let key = "KeyShareEntry:key_exchange";
        assert_eq!(lacks(51, &[0, 6, 0, 29, 0, 4, 1, 2], true), Some((key, 8, 6)));
        let identity = "PSKIdentity:obfuscated_ticket_age";
        assert_eq!(lacks(41, &[0, 5, 0, 1, 9, 0, 0, 0, 0], true), Some((identity, 7, 5)));
        let mut timestamps = vec![0, 48, 0, 46];
        timestamps.extend([0; 46]);
        let signature = "SignedCertificateTimestamp:digitally_signed_signature_length";
        assert_eq!(lacks(18, &timestamps, false), Some((signature, 49, 48)));
        let name = "ServerNameHostName:host_name";
        let e = ServerNames::parse(&[0, 3, 0, 0, 5]).unwrap_err();
        assert_eq!((e.field, e.need, e.have), (name, 7, 2));
        let e = alpn(&[0, 3, 4, b'h', b'2']).unwrap_err();
        assert_eq!((e.field, e.need, e.have), ("ProtocolName:name", 5, 3));
        let e = next(&mut Reader::new(&[0, 1, 0, 2, 7])).unwrap_err();
        assert_eq!((e.field, e.need, e.have), ("SSLExtension", 6, 5));
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
                    // Elements of the curve list have two bytes, all others one.
                    let width = if e.field.starts_with("EllipticCurves:") { 2 } else { 1 };
                    proptest::prop_assert!(e.need * width > e.have);
                }
            }
            let mut r = Reader::new(&data);
            while let Ok((_, content)) = next(&mut r) {
                proptest::prop_assert!(content.len() + r.rest().len() < data.len());
            }
        }
    }
}
