//! Certificate checks: chains, signed certificate timestamps, names.

mod der;
mod name;
mod ocsp;

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use der::{Certificate, Der, SCT_LIST, tag};
pub use name::text as name_text;
pub use ocsp::verify_response;

/// The result of a check, with the codes and texts of OpenSSL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// 0 if the certificate is valid.
    pub code: i64,
    /// The text for the code.
    pub text: &'static str,
    /// The chain from the certificate to a root, if it is valid.
    pub chain: Vec<Vec<u8>>,
}

impl Verdict {
    fn error(code: i64, text: &'static str) -> Self {
        Self { code, text, chain: Vec::new() }
    }
}

/// Maximum number of certificates in a chain.
const MAX_CHAIN: usize = 100;

/// Verifies the first of `certificates` at time `now`, in seconds since 1970: a chain must lead from it, over
/// others of them, to one of `roots`.
#[must_use]
pub fn verify(certificates: &[Vec<u8>], roots: &[&[u8]], now: i64) -> Verdict {
    let parsed: Vec<Certificate<'_>> =
        certificates.iter().filter_map(|der| Certificate::parse(der)).collect();
    let Some(first) =
        parsed.first().filter(|first| Some(first.whole) == certificates.first().map(|c| &**c))
    else {
        return Verdict::error(-1, "No certificate in opaque");
    };
    let mut chain = vec![*first];
    let mut trusted = 0;
    while let Some(last) = chain.last().copied().filter(|_| chain.len() < MAX_CHAIN) {
        if last.is_issued_by(&last) {
            if trusted == 0 && roots.contains(&last.whole) {
                trusted = 1;
            }
            break;
        }
        if let Some(root) = issuer_among(roots, &last, now) {
            trusted += 1;
            chain.push(root);
            continue;
        }
        let is_new = |one: &&Certificate<'_>| chain.iter().all(|other| other.whole != one.whole);
        match parsed.iter().filter(is_new).find(|one| last.is_issued_by(one)) {
            Some(issuer) if trusted == 0 => chain.push(*issuer),
            _ => break,
        }
    }
    let is_complete = chain.last().is_some_and(|last| last.is_issued_by(last));
    if trusted == 0 || !is_complete {
        return match (is_complete, chain.len()) {
            (true, 1) => Verdict::error(18, "self signed certificate"),
            (true, _) => Verdict::error(19, "self-signed certificate in certificate chain"),
            _ if trusted > 0 => Verdict::error(2, "unable to get issuer certificate"),
            _ => Verdict::error(20, "unable to get local issuer certificate"),
        };
    }
    if let Some(error) = check_authority(&chain).or_else(|| check_signatures(&chain, now)) {
        return error;
    }
    Verdict { code: 0, text: "ok", chain: chain.iter().map(|one| one.whole.to_vec()).collect() }
}

/// The root that issued a certificate; of several candidates, one that is currently valid.
fn issuer_among<'a>(roots: &[&'a [u8]], of: &Certificate<'_>, now: i64) -> Option<Certificate<'a>> {
    // The root contains the issuer's name, so most roots need not be parsed.
    let name = memchr::memmem::Finder::new(of.issuer);
    let parsed = roots.iter().filter(|root| name.find(root).is_some());
    let found = parsed.filter_map(|root| Certificate::parse(root));
    let found: Vec<_> = found.filter(|root| of.is_issued_by(root)).collect();
    let is_valid = |root: &&Certificate<'_>| (root.validity.0..=root.validity.1).contains(&now);
    found.iter().find(is_valid).or(found.first()).copied()
}

/// The error if a certificate of the chain is not a CA or exceeds a path length constraint.
fn check_authority(chain: &[Certificate<'_>]) -> Option<Verdict> {
    for (at, one) in chain.iter().enumerate().skip(1) {
        let (may_sign, length) = one.authority();
        if !may_sign {
            return Some(Verdict::error(24, "invalid CA certificate"));
        }
        // The certificate itself and self-issued certificates do not count.
        let between = chain.iter().take(at).skip(1).filter(|one| one.subject != one.issuer).count();
        if length.is_some_and(|length| between as u64 > length) {
            return Some(Verdict::error(25, "path length constraint exceeded"));
        }
    }
    None
}

/// The error if a signature is invalid or a certificate is outside its validity period, checked from the root.
fn check_signatures(chain: &[Certificate<'_>], now: i64) -> Option<Verdict> {
    for (at, one) in chain.iter().enumerate().rev() {
        if let Some(issuer) = chain.get(at + 1)
            && !is_signature_valid(one.algorithm, issuer.key, one.signed, one.signature)
        {
            return Some(Verdict::error(7, "certificate signature failure"));
        }
        if now < one.validity.0 {
            return Some(Verdict::error(9, "certificate is not yet valid"));
        }
        if now > one.validity.1 {
            return Some(Verdict::error(10, "certificate has expired"));
        }
    }
    None
}

/// OIDs of key algorithms and curves.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 0x22];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Whether `signed` is a valid signature of `data` by a key, with the signature algorithm of this OID.
fn is_signature_valid(algorithm: &[u8], key: &[u8], data: &[u8], signed: &[u8]) -> bool {
    let hash = match algorithm {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => 2,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2] => 4,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => 5,
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13] => 6,
        ED25519 => 0,
        _ => return false,
    };
    is_tls_signature_valid(hash, key, data, signed)
}

/// Like [`is_signature_valid`], with the number of the hash algorithm in TLS (RFC 5246 section 7.4.1.4.1).
fn is_tls_signature_valid(hash: u64, key: &[u8], data: &[u8], signed: &[u8]) -> bool {
    let Some((algorithm, curve, bits)) = key_parts(key) else { return false };
    let by: &'static dyn VerificationAlgorithm = match (algorithm, curve, hash) {
        (RSA, _, 2) => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        (RSA, _, 4) => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        (RSA, _, 5) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (RSA, _, 6) => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        (_, Some(P256), 4) => &signature::ECDSA_P256_SHA256_ASN1,
        (_, Some(P256), 5) => &signature::ECDSA_P256_SHA384_ASN1,
        (_, Some(P384), 4) => &signature::ECDSA_P384_SHA256_ASN1,
        (_, Some(P384), 5) => &signature::ECDSA_P384_SHA384_ASN1,
        (ED25519, ..) => &signature::ED25519,
        _ => return false,
    };
    UnparsedPublicKey::new(by, bits).verify(data, signed).is_ok()
}

/// Algorithm of a key, its curve, and its bits.
type KeyParts<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// Splits a `subjectPublicKeyInfo`.
fn key_parts(key: &[u8]) -> Option<KeyParts<'_>> {
    let mut parts = Der(key).expect_tag(tag::SEQUENCE)?.inside();
    let mut algorithm = parts.expect_tag(tag::SEQUENCE)?.inside();
    let kind = algorithm.expect_tag(tag::OID)?.content;
    let curve = algorithm.expect_tag(tag::OID).map(|oid| oid.content);
    Some((kind, curve, parts.expect_tag(tag::BIT_STRING)?.bits()?))
}

/// A signed certificate timestamp (RFC 6962 section 3.2).
#[derive(Clone, Copy, Debug)]
pub struct Timestamp<'a> {
    /// Milliseconds since 1970.
    pub time: u64,
    /// Number of the hash algorithm in TLS.
    pub hash: u64,
    /// The log's signature.
    pub signature: &'a [u8],
    /// Hash of the issuer's key if the timestamp is for a precertificate; empty otherwise.
    pub issuer_key: &'a [u8],
}

/// Whether a log with this public key signed a timestamp for a certificate; `None` if the extension with
/// timestamps is missing from a certificate that needs it.
#[must_use]
pub fn verify_timestamp(certificate: &[u8], log_key: &[u8], proof: &Timestamp<'_>) -> Option<bool> {
    let mut data = vec![0, 0];
    data.extend(proof.time.to_be_bytes());
    let entry = if proof.issuer_key.is_empty() {
        data.extend([0, 0]);
        certificate.to_vec()
    } else {
        data.extend([0, 1]);
        data.extend_from_slice(proof.issuer_key);
        without_timestamps(certificate)?
    };
    let len = u32::try_from(entry.len()).ok()?.to_be_bytes();
    data.extend_from_slice(len.get(1..)?);
    data.extend(entry);
    data.extend([0, 0]);
    Some(is_tls_signature_valid(proof.hash, log_key, &data, proof.signature))
}

/// The signed part of a certificate without the extension of timestamps.
fn without_timestamps(certificate: &[u8]) -> Option<Vec<u8>> {
    let parsed = Certificate::parse(certificate)?;
    let mut rest = Der(parsed.extensions?);
    let (mut kept, mut found) = (Vec::new(), false);
    while let Some(one) = rest.expect_tag(tag::SEQUENCE) {
        if one.inside().expect_tag(tag::OID)?.content == SCT_LIST {
            found = true;
        } else {
            kept.extend_from_slice(one.whole);
        }
    }
    let mut fields = Der(parsed.signed).expect_tag(tag::SEQUENCE)?.inside();
    let mut all = Vec::new();
    while let Some(field) = fields.element() {
        if field.tag == tag::CONTEXT_3 {
            all.extend(wrap(tag::CONTEXT_3, &wrap(tag::SEQUENCE, &kept)));
        } else {
            all.extend_from_slice(field.whole);
        }
    }
    found.then(|| wrap(tag::SEQUENCE, &all))
}

/// Encodes a DER element.
fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let mut all = vec![tag];
    match u8::try_from(len) {
        Ok(len) if len < 0x80 => all.push(len),
        _ => {
            let bytes = (len as u32).to_be_bytes();
            let bytes = &bytes[bytes.iter().position(|b| *b != 0).unwrap_or(3)..];
            all.push(0x80 | bytes.len() as u8);
            all.extend_from_slice(bytes);
        }
    }
    all.extend_from_slice(content);
    all
}

/// Fields of a certificate, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Version, counted from 1.
    pub version: u64,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of the issuer.
    pub issuer: String,
    /// Start and end of the validity period, in seconds since 1970.
    pub validity: (i64, i64),
    /// Algorithm of the key.
    pub key_algorithm: String,
    /// Algorithm of the signature.
    pub signature_algorithm: String,
    /// Type and length in bits of the key, if known.
    pub key: Option<(&'static str, u64)>,
    /// Exponent of an RSA key.
    pub exponent: Option<String>,
    /// Curve of an elliptic-curve key.
    pub curve: Option<&'static str>,
}

/// Names of algorithms by OID.
const ALGORITHMS: &[(&[u8], &str)] = &[
    (RSA, "rsaEncryption"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1], "id-ecPublicKey"),
    (ED25519, "ED25519"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 2], "md2WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], "md5WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], "sha1WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10], "rsassaPss"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], "sha256WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], "sha384WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], "sha512WithRSAEncryption"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], "ecdsa-with-SHA1"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], "ecdsa-with-SHA256"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], "ecdsa-with-SHA384"),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], "ecdsa-with-SHA512"),
];

/// Parses the fields of a certificate.
#[must_use]
pub fn facts(certificate: &[u8]) -> Option<Facts> {
    let parsed = Certificate::parse(certificate)?;
    let algorithm = |oid: &[u8]| {
        let known = ALGORITHMS.iter().find(|(known, _)| *known == oid);
        known.map_or_else(|| name::dotted(oid), |(_, name)| (*name).to_owned())
    };
    let (kind, curve, bits) = key_parts(parsed.key)?;
    let (mut key, mut exponent, mut curve_name) = (None, None, None);
    if kind == RSA {
        let mut numbers = Der(bits).expect_tag(tag::SEQUENCE)?.inside();
        let modulus = numbers.expect_tag(tag::INTEGER)?.content;
        let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
        let zeros = modulus.first().map_or(0, |byte| byte.leading_zeros());
        key = Some(("rsa", modulus.len() as u64 * 8 - u64::from(zeros)));
        let number = numbers.expect_tag(tag::INTEGER)?.content.iter().take(8);
        exponent = Some(number.fold(0_u64, |n, b| n << 8 | u64::from(*b)).to_string());
    } else if let Some(curve) = curve {
        let known = match curve {
            P256 => Some(("prime256v1", 256)),
            P384 => Some(("secp384r1", 384)),
            [0x2b, 0x81, 4, 0, 0x23] => Some(("secp521r1", 521)),
            _ => None,
        };
        key = known.map(|(_, bits)| ("ecdsa", bits));
        curve_name = known.map(|(name, _)| name);
    }
    let serial = parsed.serial.strip_prefix(&[0]).filter(|rest| !rest.is_empty());
    Some(Facts {
        version: u64::from(parsed.version) + 1,
        serial: serial.unwrap_or(parsed.serial).iter().map(|b| format!("{b:02X}")).collect(),
        subject: name_text(parsed.subject)?,
        issuer: name_text(parsed.issuer)?,
        validity: parsed.validity,
        key_algorithm: algorithm(kind),
        signature_algorithm: algorithm(parsed.algorithm),
        key,
        exponent,
        curve: curve_name,
    })
}

/// The part of a certificate to hash.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The name of its subject.
    Subject,
    /// The name of its issuer.
    Issuer,
    /// Its key with the algorithm.
    Key,
}

/// The bytes of a part of a certificate.
#[must_use]
pub fn part(certificate: &[u8], which: Part) -> Option<&[u8]> {
    let parsed = Certificate::parse(certificate)?;
    Some(match which {
        Part::Subject => parsed.subject,
        Part::Issuer => parsed.issuer,
        Part::Key => parsed.key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with this issuer and subject, without a valid signature.
    fn certificate(issuer: &[u8], subject: &[u8], to: &[u8], extensions: &[u8]) -> Vec<u8> {
        let name = |text: &[u8]| wrap(tag::SEQUENCE, &wrap(0x0c, text));
        let algorithm = wrap(tag::SEQUENCE, &wrap(tag::OID, &[0x2b, 0x65, 0x70]));
        let validity = [wrap(tag::UTC_TIME, b"700101000000Z"), wrap(tag::UTC_TIME, to)].concat();
        let key = [algorithm.clone(), wrap(tag::BIT_STRING, &[0; 33])].concat();
        let signed = [
            wrap(tag::CONTEXT_0, &wrap(tag::INTEGER, &[2])),
            wrap(tag::INTEGER, &[1]),
            algorithm.clone(),
            name(issuer),
            wrap(tag::SEQUENCE, &validity),
            name(subject),
            wrap(tag::SEQUENCE, &key),
            wrap(tag::CONTEXT_3, &wrap(tag::SEQUENCE, extensions)),
        ];
        let signed = wrap(tag::SEQUENCE, &signed.concat());
        wrap(tag::SEQUENCE, &[signed, algorithm, wrap(tag::BIT_STRING, &[0; 65])].concat())
    }

    fn authority() -> Vec<u8> {
        let constraints = wrap(tag::SEQUENCE, &wrap(tag::BOOLEAN, &[0xff]));
        let oid = wrap(tag::OID, &[0x55, 0x1d, 0x13]);
        wrap(tag::SEQUENCE, &[oid, wrap(tag::OCTET_STRING, &constraints)].concat())
    }

    #[test]
    fn incomplete_chains_are_invalid() {
        let end = b"491231235959Z";
        let own = certificate(b"a", b"a", end, &[]);
        assert_eq!(verify(std::slice::from_ref(&own), &[], 1).code, 18);
        let leaf = certificate(b"a", b"b", end, &[]);
        assert_eq!(verify(std::slice::from_ref(&leaf), &[], 1).code, 20);
        assert_eq!(verify(&[leaf.clone(), own.clone()], &[], 1).code, 19);
        // A root that is not a CA.
        assert_eq!(verify(std::slice::from_ref(&leaf), &[&own], 1).code, 24);
        let root = certificate(b"a", b"a", end, &authority());
        assert_eq!(verify(&[leaf], &[&root], 1).code, 7);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], 1).code, 0);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], -1).code, 9);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], i64::MAX).code, 10);
        assert_eq!(verify(&[vec![1]], &[&own], 1).code, -1);
    }

    #[test]
    fn timestamps_are_removed() {
        let oid = wrap(tag::OID, SCT_LIST);
        let proofs = wrap(tag::SEQUENCE, &[oid, wrap(tag::OCTET_STRING, &[1; 200])].concat());
        let both = [authority(), proofs].concat();
        let end = b"491231235959Z";
        let with = certificate(b"a", b"b", end, &both);
        let without = certificate(b"a", b"b", end, &authority());
        let signed = Certificate::parse(&without).map(|one| one.signed.to_vec());
        assert_eq!(without_timestamps(&with), signed);
        assert_eq!(without_timestamps(&without), None);
    }

    #[test]
    fn lengths_of_elements() {
        assert_eq!(wrap(4, &[0; 0x7f])[..2], [4, 0x7f]);
        assert_eq!(wrap(4, &[0; 0x80])[..3], [4, 0x81, 0x80]);
        assert_eq!(wrap(4, &[0; 0x100])[..4], [4, 0x82, 1, 0]);
    }
}
