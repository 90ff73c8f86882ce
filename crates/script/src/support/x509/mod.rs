//! Checks of certificates: their chains, proofs of their publication, names.

mod der;
mod name;
mod ocsp;

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};

use der::{Certificate, Der, TIMESTAMPS, tag};
pub use name::text as name_text;
pub use ocsp::verify_response;

/// The result of a check: numbers and texts as OpenSSL has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// 0 where the certificate is valid.
    pub code: i64,
    /// The same in words.
    pub text: &'static str,
    /// The chain from the certificate to a root, where it is valid.
    pub chain: Vec<Vec<u8>>,
}

impl Verdict {
    fn error(code: i64, text: &'static str) -> Self {
        Self { code, text, chain: Vec::new() }
    }
}

/// Certificates of a chain at the most.
const LONGEST: usize = 100;

/// Whether the first of `certificates` is valid at a time, in seconds since 1970: a chain leads from it over others of
/// them to one of `roots`.
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
    while let Some(last) = chain.last().copied().filter(|_| chain.len() < LONGEST) {
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
    if let Some(error) = wrong_authority(&chain).or_else(|| wrong_signature(&chain, now)) {
        return error;
    }
    Verdict { code: 0, text: "ok", chain: chain.iter().map(|one| one.whole.to_vec()).collect() }
}

/// The root that issued a certificate; where several may have, one that is valid.
fn issuer_among<'a>(roots: &[&'a [u8]], of: &Certificate<'_>, now: i64) -> Option<Certificate<'a>> {
    // Its name is in the root: most are not even parsed.
    let name = memchr::memmem::Finder::new(of.issuer);
    let parsed = roots.iter().filter(|root| name.find(root).is_some());
    let found = parsed.filter_map(|root| Certificate::parse(root));
    let found: Vec<_> = found.filter(|root| of.is_issued_by(root)).collect();
    let is_valid = |root: &&Certificate<'_>| (root.validity.0..=root.validity.1).contains(&now);
    found.iter().find(is_valid).or(found.first()).copied()
}

/// A certificate that signed another one without the right to.
fn wrong_authority(chain: &[Certificate<'_>]) -> Option<Verdict> {
    for (at, one) in chain.iter().enumerate().skip(1) {
        let (may_sign, length) = one.authority();
        if !may_sign {
            return Some(Verdict::error(24, "invalid CA certificate"));
        }
        // The certificate itself, and those that issued themselves, do not count.
        let between = chain.iter().take(at).skip(1).filter(|one| one.subject != one.issuer).count();
        if length.is_some_and(|length| between as u64 > length) {
            return Some(Verdict::error(25, "path length constraint exceeded"));
        }
    }
    None
}

/// A signature that does not fit, or a certificate out of its time, from the root on.
fn wrong_signature(chain: &[Certificate<'_>], now: i64) -> Option<Verdict> {
    for (at, one) in chain.iter().enumerate().rev() {
        if let Some(issuer) = chain.get(at + 1)
            && !fits(one.algorithm, issuer.key, one.signed, one.signature)
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

/// Contents of OIDs of keys.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 0x22];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Whether a signature by an algorithm of this OID fits to the data, with a public key.
fn fits(algorithm: &[u8], key: &[u8], data: &[u8], signed: &[u8]) -> bool {
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
    signature_fits(hash, key, data, signed)
}

/// The same by the number of the hash in TLS (RFC 5246 section 7.4.1.4.1).
fn signature_fits(hash: u64, key: &[u8], data: &[u8], signed: &[u8]) -> bool {
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

/// The parts of a key.
fn key_parts(key: &[u8]) -> Option<KeyParts<'_>> {
    let mut parts = Der(key).of(tag::SEQUENCE)?.inside();
    let mut algorithm = parts.of(tag::SEQUENCE)?.inside();
    let kind = algorithm.of(tag::OID)?.content;
    let curve = algorithm.of(tag::OID).map(|oid| oid.content);
    Some((kind, curve, parts.of(tag::BIT_STRING)?.bits()?))
}

/// A proof that a certificate was published (RFC 6962 section 3.2).
#[derive(Clone, Copy, Debug)]
pub struct Timestamp<'a> {
    /// Milliseconds since 1970.
    pub time: u64,
    /// Number of the hash.
    pub hash: u64,
    /// The log's signature.
    pub signature: &'a [u8],
    /// Hash of the issuer's key, where the proof is about the certificate before it was issued.
    pub issuer_key: &'a [u8],
}

/// Whether a log with this public key signed a proof about a certificate; `None` where the certificate holds none, and
/// should.
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
        without_proofs(certificate)?
    };
    let len = u32::try_from(entry.len()).ok()?.to_be_bytes();
    data.extend_from_slice(len.get(1..)?);
    data.extend(entry);
    data.extend([0, 0]);
    Some(signature_fits(proof.hash, log_key, &data, proof.signature))
}

/// What is signed of a certificate, without its extension of proofs.
fn without_proofs(certificate: &[u8]) -> Option<Vec<u8>> {
    let parsed = Certificate::parse(certificate)?;
    let mut rest = Der(parsed.extensions?);
    let (mut kept, mut found) = (Vec::new(), false);
    while let Some(one) = rest.of(tag::SEQUENCE) {
        if one.inside().of(tag::OID)?.content == TIMESTAMPS {
            found = true;
        } else {
            kept.extend_from_slice(one.whole);
        }
    }
    let mut fields = Der(parsed.signed).of(tag::SEQUENCE)?.inside();
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

/// An element of DER.
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

/// What a certificate says, in text.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Version, the first one being 1.
    pub version: u64,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// Name of the subject.
    pub subject: String,
    /// Name of the issuer.
    pub issuer: String,
    /// Seconds from and to which it is valid.
    pub validity: (i64, i64),
    /// Algorithm of its key, and of the signature.
    pub key_algorithm: String,
    /// Algorithm of the signature.
    pub signature_algorithm: String,
    /// Kind of the key, where it is known, and its bits.
    pub key: Option<(&'static str, u64)>,
    /// Exponent of RSA.
    pub exponent: Option<String>,
    /// Curve of elliptic curves.
    pub curve: Option<&'static str>,
}

/// Names of algorithms, by the contents of their OIDs.
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

/// Reads what a certificate says.
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
        let mut numbers = Der(bits).of(tag::SEQUENCE)?.inside();
        let modulus = numbers.of(tag::INTEGER)?.content;
        let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
        let zeros = modulus.first().map_or(0, |byte| byte.leading_zeros());
        key = Some(("rsa", modulus.len() as u64 * 8 - u64::from(zeros)));
        let number = numbers.of(tag::INTEGER)?.content.iter().take(8);
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

/// Part of a certificate that is hashed.
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
    fn chains_that_do_not_end_at_a_root() {
        let end = b"491231235959Z";
        let own = certificate(b"a", b"a", end, &[]);
        assert_eq!(verify(std::slice::from_ref(&own), &[], 1).code, 18);
        let leaf = certificate(b"a", b"b", end, &[]);
        assert_eq!(verify(std::slice::from_ref(&leaf), &[], 1).code, 20);
        assert_eq!(verify(&[leaf.clone(), own.clone()], &[], 1).code, 19);
        // A root that may not sign.
        assert_eq!(verify(std::slice::from_ref(&leaf), &[&own], 1).code, 24);
        let root = certificate(b"a", b"a", end, &authority());
        assert_eq!(verify(&[leaf], &[&root], 1).code, 7);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], 1).code, 0);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], -1).code, 9);
        assert_eq!(verify(std::slice::from_ref(&own), &[&own], i64::MAX).code, 10);
        assert_eq!(verify(&[vec![1]], &[&own], 1).code, -1);
    }

    #[test]
    fn proofs_are_left_out() {
        let oid = wrap(tag::OID, TIMESTAMPS);
        let proofs = wrap(tag::SEQUENCE, &[oid, wrap(tag::OCTET_STRING, &[1; 200])].concat());
        let both = [authority(), proofs].concat();
        let end = b"491231235959Z";
        let with = certificate(b"a", b"b", end, &both);
        let without = certificate(b"a", b"b", end, &authority());
        let signed = Certificate::parse(&without).map(|one| one.signed.to_vec());
        assert_eq!(without_proofs(&with), signed);
        assert_eq!(without_proofs(&without), None);
    }

    #[test]
    fn lengths_of_elements() {
        assert_eq!(wrap(4, &[0; 0x7f])[..2], [4, 0x7f]);
        assert_eq!(wrap(4, &[0; 0x80])[..3], [4, 0x81, 0x80]);
        assert_eq!(wrap(4, &[0; 0x100])[..4], [4, 0x82, 1, 0]);
    }
}
