//! X.509 certificates: the facts of them that logs state, in the words that logs use (RFC 5280).
//!
//! [`parse`] takes one certificate and gives a [`Certificate`]: names in one line (RFC 2253),
//! algorithms by their registered names, numbers in the base each column has. It accepts and
//! refuses what OpenSSL 3 accepts and refuses, since that is the reader behind the logs that
//! gannet's must equal; what is odd but acceptable is told in [`Certificate::weirds`].
//! [`Certificate::matching_name`] answers whether a certificate speaks for a host.

mod algorithm;
mod extensions;
mod host;
mod key;
mod name;
mod time;

pub use key::PublicKey;

pub(crate) use algorithm::{Algorithm, encode_bits};
pub(crate) use extensions::{Extensions, check_general_name};
pub(crate) use name::Name;
pub(crate) use time::unix_seconds;

use crate::der::{Class, DerError, Element, Reader, integer_hex, push_header, tag};
use crate::{hash, oid};
use key::KeyInfo;

/// Something odd in a certificate or OCSP message that still could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weird {
    /// A UTCTime shorter or longer than any form of it.
    UtcLength,
    /// A UTCTime that is not in UTC.
    UtcFormat,
    /// A GeneralizedTime shorter or longer than any form of it.
    GeneralizedLength,
    /// A time of another type.
    TimeType,
    /// A time with one digit of seconds.
    TimeSeconds,
    /// An offset from UTC that is cut off.
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
    /// Its name in the weird log.
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

    /// Its addition in the weird log; empty for most.
    pub fn addition(self) -> String {
        match self {
            Self::AddressLength(length) => length.to_string(),
            _ => String::new(),
        }
    }
}

/// Name in the weird log of a certificate that [`parse`] refuses.
pub const PARSE_ERROR_WEIRD: &str = "x509_cert_parse_error";

/// Most bytes of a serial number's text.
const MAX_SERIAL: usize = 2048;

/// The facts of one certificate.
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
    /// Start of validity, in seconds since 1970; may lie beyond what nanoseconds in 64 bits hold.
    pub not_before: i64,
    /// End of validity, in seconds since 1970; may lie beyond what nanoseconds in 64 bits hold.
    pub not_after: i64,
    /// Algorithm of the key: `rsaEncryption`.
    pub key_algorithm: String,
    /// Algorithm of the signature: `sha256WithRSAEncryption`; empty where it is not registered.
    pub signature_algorithm: String,
    /// The key, where it could be read.
    pub key: Option<PublicKey>,
    /// Alternative names of the subject, of the last extension that has them.
    pub alternative_names: Option<AlternativeNames>,
    /// Basic constraints, of the last extension that has them.
    pub basic_constraints: Option<BasicConstraints>,
    /// Whether subject and issuer are the same.
    pub is_self_signed: bool,
    /// What was odd, in the order in which it was found.
    pub weirds: Vec<Weird>,
    /// What host names are held against.
    names: host::Names,
}

/// Alternative names of a subject (RFC 5280 section 4.2.1.6), by kind, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlternativeNames {
    /// Host names, as they stand.
    pub dns: Vec<Vec<u8>>,
    /// URIs, as they stand.
    pub uri: Vec<Vec<u8>>,
    /// Mail addresses, as they stand.
    pub email: Vec<Vec<u8>>,
    /// Addresses.
    pub ip: Vec<std::net::IpAddr>,
}

/// Basic constraints (RFC 5280 section 4.2.1.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicConstraints {
    /// Whether the subject may issue certificates.
    pub ca: bool,
    /// How many issuers may follow below.
    pub path_len: Option<u64>,
}

/// Reads the certificate that `data` begins with; what follows it is not looked at.
///
/// # Errors
/// Where the bytes are not the structure of a certificate.
pub fn parse(data: &[u8]) -> Result<Certificate, DerError> {
    let whole = Reader::new(data).universal(tag::SEQUENCE)?;
    let mut outer = whole.members()?;
    let to_be_signed = outer.universal(tag::SEQUENCE)?;
    let mut body = to_be_signed.members()?;
    let signature_algorithm = Algorithm::read(&mut outer)?;
    let signature = outer.universal(tag::BIT_STRING)?;
    signature.bits()?;
    outer.finish()?;

    let version = match body.optional(Class::Context, 0)? {
        // A version that no machine word holds counts as minus one.
        Some(version) => {
            universal(version.explicit()?, tag::INTEGER)?.integer()?.to_i64().unwrap_or(-1)
        }
        None => 0,
    };
    let mut serial = integer_hex(body.universal(tag::INTEGER)?.integer()?);
    serial.truncate(MAX_SERIAL);
    Algorithm::read(&mut body)?;
    let issuer = Name::read(&mut body)?;
    let mut validity = body.sequence()?;
    let times = [time_element(&mut validity)?, time_element(&mut validity)?];
    validity.finish()?;
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

    let mut weirds = Vec::new();
    let mut seconds = [0; 2];
    for (time, seconds) in times.iter().zip(&mut seconds) {
        match time.octets().map(|octets| unix_seconds(time, &octets)) {
            Ok(Ok(value)) => *seconds = value,
            Ok(Err(weird)) => weirds.push(weird),
            Err(_) => weirds.push(Weird::TimeType),
        }
    }
    let facts = extensions.facts(&mut weirds);
    let (subject_line, issuer_line) = (subject.line(), issuer.line());
    Ok(Certificate {
        fingerprint: fingerprint(&to_be_signed, &signature_algorithm, &signature)?,
        version: (version.wrapping_add(1)).cast_unsigned(),
        serial,
        is_self_signed: subject_line == issuer_line,
        subject: subject_line,
        issuer: issuer_line,
        not_before: seconds[0],
        not_after: seconds[1],
        key_algorithm: oid::algorithm_name(key.algorithm.identifier),
        signature_algorithm: oid::names(signature_algorithm.identifier)
            .map_or_else(String::new, |names| names.long.to_owned()),
        key: key.key(),
        alternative_names: facts.alternative_names,
        basic_constraints: facts.basic_constraints,
        weirds,
        names: host::Names { alternative: facts.host_names, common: subject.common_name() },
    })
}

/// SHA-256 of the certificate as DER has it: what is signed stays as it came, the rest is encoded
/// anew.
fn fingerprint(
    to_be_signed: &Element<'_>,
    algorithm: &Algorithm<'_>,
    signature: &Element<'_>,
) -> Result<String, DerError> {
    let mut tail = Vec::new();
    algorithm.encode(&mut tail)?;
    encode_bits(signature, &mut tail)?;
    let mut head = Vec::new();
    push_header(0x30, to_be_signed.raw.len() + tail.len(), &mut head);
    let mut hashes = hash::Hashes::new(hash::Wanted { sha256: true, ..hash::Wanted::default() });
    for part in [&head, to_be_signed.raw, &tail] {
        hashes.update(part);
    }
    Ok(hashes.finish().sha256.unwrap_or_default())
}

/// Makes sure that an element has a universal tag.
pub(crate) fn universal(element: Element<'_>, tag: u32) -> Result<Element<'_>, DerError> {
    if element.class == Class::Universal && element.tag == tag {
        Ok(element)
    } else {
        Err(DerError::UnexpectedTag)
    }
}

/// Reads a UTCTime or GeneralizedTime.
fn time_element<'a>(reader: &mut Reader<'a>) -> Result<Element<'a>, DerError> {
    let element = reader.element()?;
    let is_time = element.class == Class::Universal
        && matches!(element.tag, tag::UTC_TIME | tag::GENERALIZED_TIME);
    element.octets()?;
    if is_time { Ok(element) } else { Err(DerError::UnexpectedTag) }
}
