//! Public keys of certificates: kind, size, exponent, curve (RFC 3279, RFC 5480, RFC 8410).

use super::Algorithm;
use crate::der::{Class, DerError, Element, Integer, Reader, Result, decimal, tag};
use crate::oid;

/// What a certificate's log row says of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKey {
    /// `rsa`, `dsa`, `ecdsa`, or the name of a rarer kind: `ED25519`.
    pub kind: &'static str,
    /// Size in bits; `None` where it is zero or unknown.
    pub bits: Option<u64>,
    /// Public exponent of an RSA key, in decimal.
    pub exponent: Option<String>,
    /// Short name of the curve of an elliptic-curve key.
    pub curve: Option<&'static str>,
}

/// An elliptic curve: short name, bits of the group's order, octets of a coordinate.
type Curve = (&'static str, u64, usize);

/// The curves that have names (SEC 2, X9.62, RFC 5639, WAP-261, GB/T 32918).
#[rustfmt::skip]
const CURVES: &[Curve] = &[
    ("secp112r1", 112, 14), ("secp112r2", 110, 14), ("secp128r1", 128, 16),
    ("secp128r2", 126, 16), ("secp160k1", 161, 20), ("secp160r1", 161, 20),
    ("secp160r2", 161, 20), ("secp192k1", 192, 24), ("secp224k1", 225, 28),
    ("secp224r1", 224, 28), ("secp256k1", 256, 32), ("secp384r1", 384, 48),
    ("secp521r1", 521, 66), ("prime192v1", 192, 24), ("prime192v2", 192, 24),
    ("prime192v3", 192, 24), ("prime239v1", 239, 30), ("prime239v2", 239, 30),
    ("prime239v3", 239, 30), ("prime256v1", 256, 32), ("sect113r1", 113, 15),
    ("sect113r2", 113, 15), ("sect131r1", 131, 17), ("sect131r2", 131, 17),
    ("sect163k1", 163, 21), ("sect163r1", 162, 21), ("sect163r2", 163, 21),
    ("sect193r1", 193, 25), ("sect193r2", 193, 25), ("sect233k1", 232, 30),
    ("sect233r1", 233, 30), ("sect239k1", 238, 30), ("sect283k1", 281, 36),
    ("sect283r1", 282, 36), ("sect409k1", 407, 52), ("sect409r1", 409, 52),
    ("sect571k1", 570, 72), ("sect571r1", 570, 72), ("c2pnb163v1", 163, 21),
    ("c2pnb163v2", 162, 21), ("c2pnb163v3", 162, 21), ("c2pnb176v1", 161, 22),
    ("c2tnb191v1", 191, 24), ("c2tnb191v2", 190, 24), ("c2tnb191v3", 189, 24),
    ("c2pnb208w1", 193, 26), ("c2tnb239v1", 238, 30), ("c2tnb239v2", 237, 30),
    ("c2tnb239v3", 236, 30), ("c2pnb272w1", 257, 34), ("c2pnb304w1", 289, 38),
    ("c2tnb359v1", 353, 45), ("c2pnb368w1", 353, 46), ("c2tnb431r1", 418, 54),
    ("wap-wsg-idm-ecid-wtls1", 112, 15), ("wap-wsg-idm-ecid-wtls3", 163, 21), ("wap-wsg-idm-ecid-wtls4", 113, 15),
    ("wap-wsg-idm-ecid-wtls5", 163, 21), ("wap-wsg-idm-ecid-wtls6", 112, 14), ("wap-wsg-idm-ecid-wtls7", 161, 20),
    ("wap-wsg-idm-ecid-wtls8", 113, 14), ("wap-wsg-idm-ecid-wtls9", 161, 20), ("wap-wsg-idm-ecid-wtls10", 232, 30),
    ("wap-wsg-idm-ecid-wtls11", 233, 30), ("wap-wsg-idm-ecid-wtls12", 224, 28), ("brainpoolP160r1", 160, 20),
    ("brainpoolP160t1", 160, 20), ("brainpoolP192r1", 192, 24), ("brainpoolP192t1", 192, 24),
    ("brainpoolP224r1", 224, 28), ("brainpoolP224t1", 224, 28), ("brainpoolP256r1", 256, 32),
    ("brainpoolP256t1", 256, 32), ("brainpoolP320r1", 320, 40), ("brainpoolP320t1", 320, 40),
    ("brainpoolP384r1", 384, 48), ("brainpoolP384t1", 384, 48), ("brainpoolP512r1", 512, 64),
    ("brainpoolP512t1", 512, 64), ("SM2", 256, 32),
];

/// A SubjectPublicKeyInfo, checked for shape (RFC 5280 section 4.1.2.7).
#[derive(Debug)]
pub(crate) struct KeyInfo<'a> {
    /// The algorithm and its parameters.
    pub(crate) algorithm: Algorithm<'a>,
    /// The bit string's octets.
    key: std::borrow::Cow<'a, [u8]>,
}

impl<'a> KeyInfo<'a> {
    /// Reads the next element as one.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut info = reader.sequence()?;
        let algorithm = Algorithm::read(&mut info)?;
        let (key, _) = info.universal(tag::BIT_STRING)?.bits()?;
        info.finish()?;
        Ok(Self { algorithm, key })
    }

    /// The key, where it is of a known kind and well-formed.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        match oid::names(self.algorithm.identifier)?.long {
            // Certificates of RDP servers give the signature's algorithm for the key's.
            "rsaEncryption" | "md5WithRSAEncryption" => rsa(&self.key).ok(),
            "rsassaPss" => {
                let key = rsa(&self.key).ok()?;
                Some(PublicKey { kind: "RSA-PSS", exponent: None, ..key })
            }
            "id-ecPublicKey" => self.elliptic(),
            "dsaEncryption" => self.dsa().ok(),
            "dhKeyAgreement" => self.diffie_hellman("DH"),
            "X9.42 DH" => self.diffie_hellman("DHX"),
            "ED25519" => self.raw("ED25519", 256, 32),
            "ED448" => self.raw("ED448", 456, 57),
            "X25519" => self.raw("X25519", 253, 32),
            "X448" => self.raw("X448", 448, 56),
            _ => None,
        }
    }

    /// A key that is a string of octets, with no parameters.
    fn raw(&self, kind: &'static str, bits: u64, octets: usize) -> Option<PublicKey> {
        let fits = self.algorithm.parameters.is_none() && self.key.len() == octets;
        fits.then(|| PublicKey { kind, bits: Some(bits), ..PublicKey::default() })
    }

    /// A point on a named curve.
    fn elliptic(&self) -> Option<PublicKey> {
        let parameters =
            self.algorithm.parameters.filter(|parameters| parameters.class == Class::Universal)?;
        let name = match parameters.tag {
            tag::OID => oid::names(parameters.oid().ok()?)?.short,
            tag::SEQUENCE => curve_of(&parameters).ok()??,
            _ => return None,
        };
        let &(curve, bits, coordinate) = CURVES.iter().find(|curve| curve.0 == name)?;
        let size = match self.key.first()? {
            0x04 | 0x06 | 0x07 => 1 + 2 * coordinate,
            0x02 | 0x03 => 1 + coordinate,
            _ => return None,
        };
        if self.key.len() != size {
            return None;
        }
        let (kind, curve) = if curve == "SM2" { ("SM2", None) } else { ("ecdsa", Some(curve)) };
        Some(PublicKey { kind, bits: Some(bits), exponent: None, curve })
    }

    /// A DSA key; the size is that of the prime modulus, where it stands here.
    fn dsa(&self) -> Result<PublicKey> {
        integer(&mut Reader::new(&self.key))?;
        let bits = match self.algorithm.parameters {
            Some(parameters)
                if parameters.class == Class::Universal && parameters.tag == tag::SEQUENCE =>
            {
                let mut members = parameters.members()?;
                let prime = bits(integer(&mut members)?);
                integer(&mut members)?;
                integer(&mut members)?;
                members.finish()?;
                prime
            }
            Some(parameters)
                if parameters.class != Class::Universal || parameters.tag != tag::NULL =>
            {
                return Err(DerError::UnexpectedTag);
            }
            _ => None,
        };
        Ok(PublicKey { kind: "dsa", bits, ..PublicKey::default() })
    }

    /// A Diffie-Hellman key; the size is that of the prime modulus.
    fn diffie_hellman(&self, kind: &'static str) -> Option<PublicKey> {
        integer(&mut Reader::new(&self.key)).ok()?;
        let mut members = self.algorithm.parameters?.members().ok()?;
        let bits = bits(integer(&mut members).ok()?);
        integer(&mut members).ok()?;
        Some(PublicKey { kind, bits, ..PublicKey::default() })
    }
}

/// The name of a curve that is given by its numbers, where it is one of the usual (RFC 3279
/// section 2.3.5). The order of the group tells the curve.
fn curve_of(parameters: &Element<'_>) -> Result<Option<&'static str>> {
    let mut members = parameters.members()?;
    integer(&mut members)?;
    members.sequence()?;
    members.sequence()?;
    members.universal(tag::OCTET_STRING)?;
    let order = integer(&mut members)?;
    let order = order.strip_prefix(&[0]).unwrap_or(order);
    Ok(ORDERS.iter().find(|(_, known)| *known == order).map(|(name, _)| *name))
}

/// Orders of the groups of the usual curves (SEC 2).
const ORDERS: [(&str, &[u8]); 4] = [
    (
        "prime256v1",
        b"\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\
        \xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51",
    ),
    (
        "secp256k1",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\
        \xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41",
    ),
    (
        "secp384r1",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
        \xff\xff\xff\xff\xff\xff\xff\xff\xc7\x63\x4d\x81\xf4\x37\x2d\xdf\
        \x58\x1a\x0d\xb2\x48\xb0\xa7\x7a\xec\xec\x19\x6a\xcc\xc5\x29\x73",
    ),
    (
        "secp521r1",
        b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
        \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfa\x51\
        \x86\x87\x83\xbf\x2f\x96\x6b\x7f\xcc\x01\x48\xf7\x09\xa5\xd0\x3b\xb5\xc9\
        \xb8\x89\x9c\x47\xae\xbb\x6f\xb7\x1e\x91\x38\x64\x09",
    ),
];

/// Reads an RSAPublicKey (RFC 8017 appendix A.1.1). Both numbers are taken without a sign.
fn rsa(key: &[u8]) -> Result<PublicKey> {
    let mut members = Reader::new(key).sequence()?;
    let modulus = members.universal(tag::INTEGER)?.primitive()?;
    let exponent = members.universal(tag::INTEGER)?.primitive()?;
    members.finish()?;
    Ok(PublicKey { kind: "rsa", bits: bits(modulus), exponent: decimal(exponent), curve: None })
}

/// Octets of the next INTEGER.
fn integer<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let octets = reader.universal(tag::INTEGER)?.primitive()?;
    Integer::new(octets).map(|_| octets)
}

/// Bits of an unsigned number; `None` for zero.
fn bits(octets: &[u8]) -> Option<u64> {
    let skip = octets.iter().position(|&octet| octet != 0)?;
    let whole = u64::try_from(octets.len() - skip - 1).ok()?;
    Some(whole * 8 + u64::from(8 - octets[skip].leading_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_bits() {
        assert_eq!(bits(&[]), None);
        assert_eq!(bits(&[0, 0]), None);
        assert_eq!(bits(&[0, 1]), Some(1));
        assert_eq!(bits(&[0, 0x80, 0]), Some(16));
    }

    #[test]
    fn rsa_keys() {
        let key = rsa(&[0x30, 0x08, 0x02, 0x02, 0x00, 0xc1, 0x02, 0x02, 0x01, 0x01]).unwrap();
        assert_eq!(
            key,
            PublicKey { kind: "rsa", bits: Some(8), exponent: Some("257".into()), curve: None }
        );
        assert!(rsa(&[0x30, 0x03, 0x02, 0x01, 0x05]).is_err());
    }

    #[test]
    fn curves_have_registered_names() {
        let registry = include_str!("../oids.txt");
        for (name, _, _) in CURVES {
            assert!(registry.contains(&format!("\t{name}\t")), "{name}");
        }
    }
}
