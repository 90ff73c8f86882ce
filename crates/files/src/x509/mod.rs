//! X.509 certificates: their facts in the form of the logs (RFC 5280).
//!
//! [`parse`] parses a certificate and returns a [`Certificate`]: names in one line (RFC 2253),
//! algorithms by their registered names, numbers in the base of each column. It accepts and rejects
//! the same certificates as OpenSSL 3, which Zeek uses; tolerated faults are in
//! [`Certificate::weirds`]. [`Certificate::matches_host`] returns whether a certificate is valid
//! for a host.

mod algorithm;
mod constraints;
mod curve;
mod extensions;
mod general_names;
mod host;
mod key;
mod name;
pub mod text;
mod time;

pub use key::PublicKey;

pub(crate) use algorithm::{Algorithm, encode_bits};
pub(crate) use extensions::{Extensions, check_general_name};
pub(crate) use name::Name;
pub(crate) use time::unix_seconds;

use crate::der::{Class, DerError, Element, Integer, Reader, integer_hex, push_header, tag};
use crate::{hash, oid};
use key::KeyInfo;

/// A fault in a certificate or OCSP message that could still be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weird {
    /// A UTCTime whose length no form of it has.
    UtcLength,
    /// A UTCTime that is not in UTC.
    UtcFormat,
    /// A GeneralizedTime whose length no form of it has.
    GeneralizedLength,
    /// A time that is neither UTCTime nor GeneralizedTime.
    TimeType,
    /// A time with a single digit of seconds.
    TimeSeconds,
    /// A truncated offset from UTC.
    TimeOffsetShort,
    /// An offset from UTC without a sign.
    TimeOffsetType,
    /// Basic constraints that do not parse.
    BasicConstraints,
    /// Alternative names that do not parse.
    AlternativeNames,
    /// An alternative address that is neither IPv4 nor IPv6, with its length in octets.
    AddressLength(usize),
}

impl Weird {
    /// Its name in weird.log.
    pub fn name(self) -> &'static str {
        match self {
            Self::UtcLength => "x509_utc_length",
            Self::UtcFormat => "x509_utc_format",
            Self::GeneralizedLength => "x509_gen_time_length",
            Self::TimeType => "x509_invalid_time_type",
            Self::TimeSeconds => "x509_time_add_char",
            Self::TimeOffsetShort => "x509_time_offset_underflow",
            Self::TimeOffsetType => "x509_time_offset_type",
            Self::BasicConstraints => "x509_invalid_basic_constraint",
            Self::AlternativeNames => "x509_san_parse_error",
            Self::AddressLength(_) => "x509_san_ip_length",
        }
    }

    /// The short name of the extension with the fault; `None` for faults of times.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::BasicConstraints => Some("basicConstraints"),
            Self::AlternativeNames | Self::AddressLength(_) => Some("subjectAltName"),
            _ => None,
        }
    }

    /// The column `addl` of weird.log; usually empty.
    pub fn addition(self) -> String {
        match self {
            Self::AddressLength(length) => length.to_string(),
            _ => String::new(),
        }
    }
}

/// Name in weird.log of a certificate that [`parse`] rejects.
pub const PARSE_ERROR_WEIRD: &str = "x509_cert_parse_error";

/// Maximum length of a serial number's text in bytes.
const MAX_SERIAL: usize = 2048;

/// The facts of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// SHA-256 of the encoded certificate, in lower-case hexadecimal.
    pub fingerprint: String,
    /// Version, counted from one.
    pub version: u64,
    /// Serial number in upper-case hexadecimal.
    pub serial: String,
    /// Subject in one line.
    pub subject: String,
    /// Issuer in one line.
    pub issuer: String,
    /// Start of validity, in seconds since 1970; may exceed the range of 64-bit nanoseconds.
    pub not_before: i64,
    /// End of validity, in seconds since 1970; may exceed the range of 64-bit nanoseconds.
    pub not_after: i64,
    /// Algorithm of the key, such as `rsaEncryption`.
    pub key_algorithm: String,
    /// Algorithm of the signature, such as `sha256WithRSAEncryption`; empty if it is not
    /// registered.
    pub signature_algorithm: String,
    /// The key, if it could be parsed.
    pub key: Option<PublicKey>,
    /// Alternative names of the subject, from the last such extension that parses.
    pub alternative_names: Option<AlternativeNames>,
    /// Basic constraints, from the last such extension that parses.
    pub basic_constraints: Option<BasicConstraints>,
    /// Whether subject and issuer are equal.
    pub is_self_signed: bool,
    /// Weirds, in the order of their detection.
    pub weirds: Vec<Weird>,
    /// The names with which hosts are compared.
    names: host::Names,
}

impl Certificate {
    /// The most specific common name of the subject.
    pub fn common_name(&self) -> Option<std::borrow::Cow<'_, [u8]>> {
        self.names.common.as_deref().map(Into::into)
    }
}

/// Alternative names of a subject (RFC 5280 section 4.2.1.6), by kind, in certificate order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlternativeNames {
    /// Host names, unchanged.
    pub dns: Vec<Vec<u8>>,
    /// URIs, unchanged.
    pub uri: Vec<Vec<u8>>,
    /// Mail addresses, unchanged.
    pub email: Vec<Vec<u8>>,
    /// Addresses; `Some` even if all were left out because of an invalid length.
    pub ip: Option<Vec<std::net::IpAddr>>,
    /// Whether there are names of other kinds.
    pub other: bool,
}

/// Basic constraints (RFC 5280 section 4.2.1.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicConstraints {
    /// Whether the subject may issue certificates.
    pub ca: bool,
    /// Maximum number of intermediate certificates below this one.
    pub path_len: Option<u64>,
}

/// Parses the certificate at the start of `data`; ignores the data after it.
///
/// # Errors
/// If the bytes do not have the structure of a certificate.
pub fn parse(data: &[u8]) -> Result<Certificate, DerError> {
    Parts::read(data)?.facts()
}

/// Re-encodes the certificate at the start of `data` as DER. The signed part is copied unchanged.
///
/// # Errors
/// Those of [`parse`].
pub fn encoded(data: &[u8]) -> Result<Vec<u8>, DerError> {
    let parts = Parts::read(data)?;
    let [head, tail] = around_signed(&parts)?;
    Ok([&head, parts.to_be_signed.raw, &tail].concat())
}

/// Checks whether `data` begins with a certificate that [`parse`] accepts: without computing texts
/// and hash, which take most of the time.
///
/// # Errors
/// Those of [`parse`].
pub(crate) fn check(data: &[u8]) -> Result<(), DerError> {
    Parts::read(data).map(drop)
}

/// A parsed certificate, completely checked: converting its facts to text cannot fail because of
/// its structure.
struct Parts<'a> {
    to_be_signed: Element<'a>,
    signature_algorithm: Algorithm<'a>,
    signature: Element<'a>,
    /// As encoded: one less than the version number.
    version: i64,
    serial: Integer<'a>,
    issuer: Name<'a>,
    validity: [Element<'a>; 2],
    subject: Name<'a>,
    key: KeyInfo<'a>,
    extensions: Extensions<'a>,
}

impl<'a> Parts<'a> {
    fn read(data: &'a [u8]) -> Result<Self, DerError> {
        let whole = Reader::new(data).universal(tag::SEQUENCE)?;
        let mut outer = whole.members()?;
        let to_be_signed = outer.universal(tag::SEQUENCE)?;
        let mut body = to_be_signed.members()?;
        let signature_algorithm = Algorithm::read(&mut outer)?;
        let signature = outer.universal(tag::BIT_STRING)?;
        signature.bits()?;
        outer.finish()?;

        let version = match body.optional(Class::Context, 0)? {
            // A version that does not fit into a machine word counts as minus one.
            Some(version) => {
                universal(version.explicit()?, tag::INTEGER)?.integer()?.to_i64().unwrap_or(-1)
            }
            None => 0,
        };
        let serial = body.universal(tag::INTEGER)?.integer()?;
        Algorithm::read(&mut body)?;
        let issuer = Name::read(&mut body)?;
        let mut times = body.sequence()?;
        let validity = [time_element(&mut times)?, time_element(&mut times)?];
        times.finish()?;
        let subject = Name::read(&mut body)?;
        let key = KeyInfo::read(&mut body)?;
        for unique_id in [1, 2] {
            if let Some(id) = body.optional(Class::Context, unique_id)? {
                id.bits()?;
            }
        }
        let extensions = match body.optional(Class::Context, 3)? {
            Some(list) => Extensions::read(list.explicit()?)?,
            None => Extensions::default(),
        };
        body.finish()?;
        Ok(Self {
            to_be_signed,
            signature_algorithm,
            signature,
            version,
            serial,
            issuer,
            validity,
            subject,
            key,
            extensions,
        })
    }

    fn facts(&self) -> Result<Certificate, DerError> {
        let mut serial = integer_hex(self.serial);
        serial.truncate(MAX_SERIAL);
        let mut weirds = Vec::new();
        let mut seconds = [0; 2];
        for (time, seconds) in self.validity.iter().zip(&mut seconds) {
            match time.octets().map(|octets| unix_seconds(time, &octets)) {
                Ok(Ok(value)) => *seconds = value,
                Ok(Err(weird)) => weirds.push(weird),
                Err(_) => weirds.push(Weird::TimeType),
            }
        }
        let facts = self.extensions.facts(&mut weirds);
        let (subject_line, issuer_line) = (self.subject.line(), self.issuer.line());
        Ok(Certificate {
            fingerprint: fingerprint(self)?,
            version: (self.version.wrapping_add(1)).cast_unsigned(),
            serial,
            is_self_signed: subject_line == issuer_line,
            subject: subject_line,
            issuer: issuer_line,
            not_before: seconds[0],
            not_after: seconds[1],
            key_algorithm: oid::algorithm_name(self.key.algorithm.identifier),
            signature_algorithm: oid::names(self.signature_algorithm.identifier)
                .map_or_else(String::new, |names| names.long.to_owned()),
            key: self.key.key(),
            alternative_names: facts.alternative_names,
            basic_constraints: facts.basic_constraints,
            weirds,
            names: host::Names {
                alternative: facts.host_names,
                common: self.subject.common_name(),
            },
        })
    }
}

/// SHA-256 of the certificate, re-encoded as [DER](encoded).
fn fingerprint(parts: &Parts<'_>) -> Result<String, DerError> {
    let [head, tail] = around_signed(parts)?;
    let mut hashes =
        hash::Hashes::new(hash::HashSelection { sha256: true, ..hash::HashSelection::default() });
    for part in [&head, parts.to_be_signed.raw, &tail] {
        hashes.update(part);
    }
    Ok(hashes.finish().sha256.unwrap_or_default())
}

/// Re-encodes the parts before and after the signed part.
fn around_signed(parts: &Parts<'_>) -> Result<[Vec<u8>; 2], DerError> {
    let mut tail = Vec::new();
    parts.signature_algorithm.encode(&mut tail)?;
    encode_bits(&parts.signature, &mut tail)?;
    let mut head = Vec::new();
    push_header(0x30, parts.to_be_signed.raw.len() + tail.len(), &mut head);
    Ok([head, tail])
}

/// Checks that an element has a universal tag.
pub(crate) fn universal(element: Element<'_>, tag: u32) -> Result<Element<'_>, DerError> {
    if element.class == Class::Universal && element.tag == tag {
        Ok(element)
    } else {
        Err(DerError::UnexpectedTag)
    }
}

/// Parses a UTCTime or GeneralizedTime.
fn time_element<'a>(reader: &mut Reader<'a>) -> Result<Element<'a>, DerError> {
    let element = reader.element()?;
    let is_time = element.class == Class::Universal
        && matches!(element.tag, tag::UTC_TIME | tag::GENERALIZED_TIME);
    element.octets()?;
    if is_time { Ok(element) } else { Err(DerError::UnexpectedTag) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A remote desktop certificate: two attributes in each RDN, as BMPStrings.
    const DESKTOP: &[&str] = &[
        "3082015b30820109a003020102020859eb28cb02b1a0d4300906052b0e03021d0500302c312a30110603",
        "5504031e0a00530045005200560052301506035504071e0e005400550052004e0042004b004c301e170d",
        "3135303231313134313530365a170d3135303531323030303030305a302c312a301106035504031e0a00",
        "530045005200560052301506035504071e0e005400550052004e0042004b004c305c300d06092a864886",
        "f70d0101010500034b003048024100d31474f69f983d557757f6680d765c1965f19f8b7d31a605a2aa3b",
        "47e14ba9d01a3fce1780402e77838f7bb5e47be12c18eefcc3e277ffd9d6936ad6ce9809fd0203010001",
        "a3133011300f0603551d13040830060101ff020100300906052b0e03021d05000341008a9264745d17d5",
        "003e74c9039a10e0c1f3ae56d8ef0f5523cda88209f56bdad26a18caa9b2a1d12a7aee6b57858a3a07aa",
        "fb116c5fb9feff7592abaa02feac9c",
    ];

    /// A certificate with a compressed point on a binary curve.
    const BINARY_CURVE: &[&str] = &[
        "308201403081fea00302010202147018a3b0f91680f0abca099ffed25cb68f77011f300a06082a8648ce",
        "3d040302300e310c300a06035504030c0362696e301e170d3236313132313039333530385a170d323631",
        "3230313039333530385a300e310c300a06035504030c0362696e3040301006072a8648ce3d020106052b",
        "81040002032c000402fdc606d75c9f8ecc8c35a0f4080b069812390e7607fe50d3019d8c93056c6af2b5",
        "b8e240a34b7fce63a3533051301d0603551d0e04160414021cdffe636a2dd0df20d5cdf374e0313806e5",
        "08301f0603551d23041830168014021cdffe636a2dd0df20d5cdf374e0313806e508300f0603551d1301",
        "01ff040530030101ff300a06082a8648ce3d040302033100302e021503c09463a6d0e2afd06eba67b53a",
        "430f9e9e87915e021501408f03ac9bddeffb74a9b02ef5e4976841fb1b1a",
    ];

    fn octets(lines: &[&str]) -> Vec<u8> {
        let digits = lines.concat();
        let pairs = digits.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn facts_of_a_desktop() {
        let certificate = parse(&octets(DESKTOP)).unwrap();
        assert_eq!(
            certificate.fingerprint,
            "e3859c4a77098a7b84589e0cb1171662d15699fc84c19d3421f7d52dc0dc59c9"
        );
        assert_eq!(certificate.version, 3);
        assert_eq!(certificate.serial, "59EB28CB02B1A0D4");
        assert_eq!(certificate.subject, "L=TURNBKL+CN=SERVR");
        assert_eq!(certificate.issuer, "L=TURNBKL+CN=SERVR");
        assert_eq!((certificate.not_before, certificate.not_after), (1_423_664_106, 1_431_388_800));
        assert_eq!(certificate.key_algorithm, "rsaEncryption");
        assert_eq!(certificate.signature_algorithm, "sha1WithRSA");
        let key = certificate.key.clone().unwrap();
        assert_eq!(
            (key.kind, key.bits, key.exponent.as_deref()),
            ("rsa", Some(512), Some("65537"))
        );
        assert_eq!(
            certificate.basic_constraints,
            Some(BasicConstraints { ca: true, path_len: Some(0) })
        );
        assert!(certificate.is_self_signed && certificate.alternative_names.is_none());
        assert!(certificate.weirds.is_empty());
    }

    #[test]
    fn facts_of_a_binary_curve() {
        let certificate = parse(&octets(BINARY_CURVE)).unwrap();
        assert_eq!(certificate.key_algorithm, "id-ecPublicKey");
        assert_eq!(certificate.signature_algorithm, "ecdsa-with-SHA256");
        let key = certificate.key.unwrap();
        assert_eq!((key.kind, key.bits, key.curve), ("ecdsa", Some(162), Some("sect163r1")));
    }

    #[test]
    fn data_after_the_certificate_is_ignored() {
        let mut data = octets(DESKTOP);
        let alone = parse(&data).unwrap();
        data.extend(b"more");
        assert_eq!(parse(&data), Ok(alone));
        data.truncate(300);
        assert_eq!(parse(&data), Err(DerError::Truncated));
    }

    #[test]
    fn indefinite_lengths_have_the_fingerprint_of_der() {
        let der = octets(DESKTOP);
        let mut ber = vec![0x30, 0x80];
        ber.extend(&der[4..]);
        ber.extend([0, 0]);
        assert_eq!(parse(&ber), parse(&der));
        // Data after a certificate is not part of it.
        assert_eq!(encoded(&ber), Ok(der.clone()));
        assert_eq!(encoded(&[&der[..], b"more"].concat()), Ok(der));
    }

    #[test]
    fn padded_serials_are_rejected() {
        let mut data = octets(DESKTOP);
        // The serial number's first octets.
        data[15..17].copy_from_slice(&[0, 1]);
        assert_eq!(parse(&data), Err(DerError::BadValue));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&data);
        }

        #[test]
        fn mutations_never_panic(edits in proptest::collection::vec((0usize..351, any::<u8>()), 1..4), cut in 0usize..400) {
            let mut data = octets(DESKTOP);
            for (at, byte) in edits {
                data[at] = byte;
            }
            let parsed = parse(&data);
            prop_assert_eq!(check(&data), parsed.as_ref().map(drop).map_err(|e| *e));
            if let Ok(certificate) = parsed {
                prop_assert!(certificate.subject.is_ascii() && certificate.issuer.is_ascii());
                let _ = certificate.matches_host(b"a.b.c");
            }
            data.truncate(cut);
            let _ = parse(&data);
        }
    }
}
