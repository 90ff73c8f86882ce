//! Public keys of certificates: kind, size, exponent, curve (RFC 3279, RFC 5480, RFC 8410).

use sha2::{Digest, Sha256};

use super::Algorithm;
use super::curve;
use crate::der::{Class, DerError, Element, Integer, Reader, Result, decimal, tag};
use crate::oid;

/// The facts about a public key in x509.log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKey {
    /// `rsa`, `dsa`, `ecdsa`, or the name of another kind such as `ED25519`.
    pub kind: &'static str,
    /// Size in bits; `None` if it is zero or unknown.
    pub bits: Option<u64>,
    /// Public exponent of an RSA key, in decimal.
    pub exponent: Option<String>,
    /// Short name of the curve of an elliptic-curve key.
    pub curve: Option<&'static str>,
}

/// An elliptic curve: short name, bits of the group's order, octets of a coordinate, the first
/// octets of the SHA-256 of its order and first coefficient, which identify explicit parameters,
/// and the first octets of its generator. Some curves have two names: the first one is used.
type Curve = (&'static str, u64, usize, u64, u64);

/// The named curves (SEC 2, X9.62, RFC 5639, WAP-261, GB/T 32918).
#[rustfmt::skip]
const CURVES: &[Curve] = &[
    ("secp112r1", 112, 14, 0x0a0e42495f5c533b, 0x09487239995a5ee7), ("secp112r2", 110, 14, 0xea0e272043331520, 0x4ba30ab5e892b4e1),
    ("secp128r1", 128, 16, 0x35786f6d568bd315, 0x161ff7528b899b2d), ("secp128r2", 126, 16, 0x98d3c13bd73df94c, 0x7b6aa5d85e572983),
    ("secp160k1", 161, 20, 0xea1cde9d38502f31, 0x3b4c382ce37aa192), ("secp160r1", 161, 20, 0x29dbe8b5099b3dd4, 0x4a96b5688ef57328),
    ("secp160r2", 161, 20, 0x08007f6e42a2ecb8, 0x52dcb034293a117e), ("secp192k1", 192, 24, 0x73ae0e37c8c38228, 0xdb4ff10ec057e9ae),
    ("secp224k1", 225, 28, 0xd7f663750740b9c7, 0xa1455b334df099df), ("secp224r1", 224, 28, 0x983477712cf15e6c, 0xb70e0cbd6bb4bf7f),
    ("secp256k1", 256, 32, 0x3717939056ee94b1, 0x79be667ef9dcbbac), ("secp384r1", 384, 48, 0x017c64ae6e17f4de, 0xaa87ca22be8b0537),
    ("secp521r1", 521, 66, 0x8236c890236341cc, 0x00c6858e06b70404), ("prime192v1", 192, 24, 0x5b25b779bc7c0368, 0x188da80eb03090f6),
    ("prime192v2", 192, 24, 0x677123820387bf45, 0xeea2bae7e1497842), ("prime192v3", 192, 24, 0x0df2e6184d44f1ca, 0x7d29778100c65a1d),
    ("prime239v1", 239, 30, 0x0cfdeee498d2d784, 0x0ffa963cdca8816c), ("prime239v2", 239, 30, 0x42628beb7e958b8d, 0x38af09d987277051),
    ("prime239v3", 239, 30, 0xfda3370a3d26b369, 0x6768ae8e18bb92cf), ("prime256v1", 256, 32, 0xd07c8292fbf50b06, 0x6b17d1f2e12c4247),
    ("sect113r1", 113, 15, 0x63cbc8c5a0b2b9bd, 0x009d73616f35f4ab), ("sect113r2", 113, 15, 0x31ac60c473b38ac5, 0x01a57a6a7b26ca5e),
    ("sect131r1", 131, 17, 0x158c1dc4d13cb3df, 0x0081baf91fdf9833), ("sect131r2", 131, 17, 0xafac318b86d6c508, 0x0356dcd8f2f95031),
    ("sect163k1", 163, 21, 0x35152c9f33abcc82, 0x02fe13c0537bbc11), ("sect163r1", 162, 21, 0xfb4269c2040d253d, 0x0369979697ab4389),
    ("sect163r2", 163, 21, 0x59f11cc025b38c95, 0x03f0eba16286a2d5), ("sect193r1", 193, 25, 0xf6764ff7fb182203, 0x01f481bc5f0ff84a),
    ("sect193r2", 193, 25, 0xd5d8825ed6883b96, 0x00d9b67d192e0367), ("sect233k1", 232, 30, 0xe36ec3d5f47f040c, 0x017232ba853a7e73),
    ("sect233r1", 233, 30, 0xeb2986a7caf6ceec, 0x00fac9dfcbac8313), ("sect239k1", 238, 30, 0x15ed128b353b88f2, 0x29a0b6a887a983e9),
    ("sect283k1", 281, 36, 0x53f4a406432f5603, 0x0503213f78ca4488), ("sect283r1", 282, 36, 0x8b9b9a0c4eef21f8, 0x05f939258db7dd90),
    ("sect409k1", 407, 52, 0x7cd68ad39ac6083b, 0x0060f05f658f49c1), ("sect409r1", 409, 52, 0x1934c6ea0e347bb7, 0x015d4860d088ddb3),
    ("sect571k1", 570, 72, 0x765a9d0563c3645c, 0x026eb7a859923fbc), ("sect571r1", 570, 72, 0x0c9e6f5531fbbbd3, 0x0303001d34b85629),
    ("c2pnb163v1", 163, 21, 0xa92466600fd6f1aa, 0x07af69989546103d), ("c2pnb163v2", 162, 21, 0xbc26e88112f62618, 0x0024266e4eb5106d),
    ("c2pnb163v3", 162, 21, 0xe0399f63101d1bff, 0x02f9f87b7c574d0b), ("c2pnb176v1", 161, 22, 0x83136ba573d234fb, 0x8d16c2866798b600),
    ("c2tnb191v1", 191, 24, 0x21cc36378bde63e9, 0x36b3daf8a23206f9), ("c2tnb191v2", 190, 24, 0x3ffe7279bca56bab, 0x3809b2b7cc1b28cc),
    ("c2tnb191v3", 189, 24, 0x2091666518638a71, 0x375d4ce24fde4344), ("c2pnb208w1", 193, 26, 0xc3fecac5dc4b7f3c, 0x89fdfbe4abe193df),
    ("c2tnb239v1", 238, 30, 0xbdddabe9bca3bf45, 0x57927098fa932e7c), ("c2tnb239v2", 237, 30, 0x48cb4191d285938b, 0x28f9d04e900069c8),
    ("c2tnb239v3", 236, 30, 0x0722902c73c01f55, 0x70f6e9d04d289c4e), ("c2pnb272w1", 257, 34, 0x1b54e481d38c7fd2, 0x6108babb2ceebcf7),
    ("c2pnb304w1", 289, 38, 0x040297fe0e059e8c, 0x197b07845e9be2d9), ("c2tnb359v1", 353, 45, 0xf104dfb9e53f9a11, 0x3c258ef3047767e7),
    ("c2pnb368w1", 353, 46, 0x19201327a71643cf, 0x1085e2755381dccc), ("c2tnb431r1", 418, 54, 0x6ce3da266074cc08, 0x120fc05d3c67a99d),
    ("wap-wsg-idm-ecid-wtls1", 112, 15, 0x4de29ce02134be39, 0x01667979a40ba497), ("wap-wsg-idm-ecid-wtls3", 163, 21, 0x35152c9f33abcc82, 0x02fe13c0537bbc11),
    ("wap-wsg-idm-ecid-wtls4", 113, 15, 0x63cbc8c5a0b2b9bd, 0x009d73616f35f4ab), ("wap-wsg-idm-ecid-wtls5", 163, 21, 0xa92466600fd6f1aa, 0x07af69989546103d),
    ("wap-wsg-idm-ecid-wtls6", 112, 14, 0x0a0e42495f5c533b, 0x09487239995a5ee7), ("wap-wsg-idm-ecid-wtls7", 161, 20, 0x08007f6e42a2ecb8, 0x52dcb034293a117e),
    ("wap-wsg-idm-ecid-wtls8", 113, 14, 0xc5ab24a182034563, 0x0000000000000000), ("wap-wsg-idm-ecid-wtls9", 161, 20, 0xe6721b7b985098b6, 0x0000000000000000),
    ("wap-wsg-idm-ecid-wtls10", 232, 30, 0xe36ec3d5f47f040c, 0x017232ba853a7e73), ("wap-wsg-idm-ecid-wtls11", 233, 30, 0xeb2986a7caf6ceec, 0x00fac9dfcbac8313),
    ("wap-wsg-idm-ecid-wtls12", 224, 28, 0x983477712cf15e6c, 0xb70e0cbd6bb4bf7f), ("brainpoolP160r1", 160, 20, 0x27e26938484d87d4, 0xbed5af16ea3f6a4f),
    ("brainpoolP160t1", 160, 20, 0xbeeaf50b9fa809d8, 0xb199b13b9b34efc1), ("brainpoolP192r1", 192, 24, 0x3edaea784011e6bc, 0xc0a0647eaab6a487),
    ("brainpoolP192t1", 192, 24, 0x4f6bb3e52dc2bcea, 0x3ae9e58c82f63c30), ("brainpoolP224r1", 224, 28, 0xeeee2903b69260a1, 0x0d9029ad2c7e5cf4),
    ("brainpoolP224t1", 224, 28, 0x32fd46140ad95df6, 0x6ab1e344ce25ff38), ("brainpoolP256r1", 256, 32, 0x5967a9e2d353cfb6, 0x8bd2aeb9cb7e57cb),
    ("brainpoolP256t1", 256, 32, 0xd4695771e47650a5, 0xa3e8eb3cc1cfe7b7), ("brainpoolP320r1", 320, 40, 0x7ce155c276abea7d, 0x43bd7e9afb53d8b8),
    ("brainpoolP320t1", 320, 40, 0x300f465802a159b9, 0x925be9fb01afc6fb), ("brainpoolP384r1", 384, 48, 0xf648205ac5bd4cf3, 0x1d1c64f068cf45ff),
    ("brainpoolP384t1", 384, 48, 0x2aa2de31bd846bc0, 0x18de98b02db9a306), ("brainpoolP512r1", 512, 64, 0xe8c6cd087e8c6169, 0x81aee4bdd82ed964),
    ("brainpoolP512t1", 512, 64, 0x57e6531503ae1d7e, 0x640ece5c12788717), ("SM2", 256, 32, 0x6042256cfb8f25b4, 0x32c4ae2c1f198119),
];

/// A SubjectPublicKeyInfo whose structure was checked (RFC 5280 section 4.1.2.7).
#[derive(Debug)]
pub(crate) struct KeyInfo<'a> {
    /// The algorithm and its parameters.
    pub(crate) algorithm: Algorithm<'a>,
    /// The octets of the bit string.
    key: std::borrow::Cow<'a, [u8]>,
}

impl<'a> KeyInfo<'a> {
    /// Parses the next element.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut info = reader.sequence()?;
        let algorithm = Algorithm::read(&mut info)?;
        let (key, _) = info.universal(tag::BIT_STRING)?.bits()?;
        info.finish()?;
        Ok(Self { algorithm, key })
    }

    /// The key, if it is of a known kind and well-formed.
    pub(crate) fn key(&self) -> Option<PublicKey> {
        match oid::names(self.algorithm.identifier)?.long {
            // Certificates of RDP servers state the signature algorithm as the key algorithm.
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

    /// A key that is an octet string without parameters.
    fn raw(&self, kind: &'static str, bits: u64, octets: usize) -> Option<PublicKey> {
        let fits = self.algorithm.parameters.is_none() && self.key.len() == octets;
        fits.then(|| PublicKey { kind, bits: Some(bits), ..PublicKey::default() })
    }

    /// A point on a named curve.
    fn elliptic(&self) -> Option<PublicKey> {
        let parameters =
            self.algorithm.parameters.filter(|parameters| parameters.class == Class::Universal)?;
        let (name, is_named) = match parameters.tag {
            tag::OID => (oid::names(parameters.oid().ok()?)?.short, true),
            tag::SEQUENCE => curve_of(&parameters).ok()??,
            _ => return None,
        };
        let &(name, bits, coordinate, ..) = CURVES.iter().find(|curve| curve.0 == name)?;
        let size = match self.key.first()? {
            0x04 | 0x06 | 0x07 => 1 + 2 * coordinate,
            0x02 | 0x03 => 1 + coordinate,
            _ => return None,
        };
        if self.key.len() != size || curve::is_off(name, &self.key) {
            return None;
        }
        let (kind, curve) = match name {
            "SM2" if is_named => ("SM2", None),
            name => ("ecdsa", is_named.then_some(name)),
        };
        Some(PublicKey { kind, bits: Some(bits), exponent: None, curve })
    }

    /// A DSA key; its size is that of the prime modulus, if that is included.
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

    /// A Diffie-Hellman key; its size is that of the prime modulus.
    fn diffie_hellman(&self, kind: &'static str) -> Option<PublicKey> {
        integer(&mut Reader::new(&self.key)).ok()?;
        let mut members = self.algorithm.parameters?.members().ok()?;
        let bits = bits(integer(&mut members).ok()?);
        integer(&mut members).ok()?;
        Some(PublicKey { kind, bits, ..PublicKey::default() })
    }
}

/// The name of a curve that is given by explicit parameters (RFC 3279 section 2.3.5), if it has
/// one, and whether its generator is that of the named curve: an attacker who chooses the generator
/// knows a private key for any public key (CVE-2020-0601).
fn curve_of(parameters: &Element<'_>) -> Result<Option<(&'static str, bool)>> {
    let mut members = parameters.members()?;
    integer(&mut members)?;
    members.sequence()?;
    let first = members.sequence()?.universal(tag::OCTET_STRING)?;
    let generator = members.universal(tag::OCTET_STRING)?.octets()?;
    let order = integer(&mut members)?;
    let digest =
        Sha256::new().chain_update(unpadded(order)).chain_update(unpadded(&first.octets()?));
    let digest = digest.finalize().first_chunk().map(|d| u64::from_be_bytes(*d));
    let Some(curve) = CURVES.iter().find(|curve| Some(curve.3) == digest) else { return Ok(None) };
    let point = generator.get(1..).unwrap_or_default();
    let is_named = point.first_chunk().is_some_and(|x| u64::from_be_bytes(*x) == curve.4);
    Ok((is_named || !curve::is_off(curve.0, &generator)).then_some((curve.0, is_named)))
}

/// A number without leading zeros.
fn unpadded(octets: &[u8]) -> &[u8] {
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    &octets[zeros..]
}

/// Parses an RSAPublicKey (RFC 8017 appendix A.1.1). Both numbers are treated as unsigned.
fn rsa(key: &[u8]) -> Result<PublicKey> {
    let mut members = Reader::new(key).sequence()?;
    let modulus = members.universal(tag::INTEGER)?.primitive()?;
    let exponent = members.universal(tag::INTEGER)?.primitive()?;
    members.finish()?;
    Ok(PublicKey { kind: "rsa", bits: bits(modulus), exponent: decimal(exponent), curve: None })
}

/// Contents octets of the next INTEGER.
fn integer<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let octets = reader.universal(tag::INTEGER)?.primitive()?;
    Integer::new(octets).map(|_| octets)
}

/// Number of bits of an unsigned number; `None` for zero.
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
    fn curves_are_named_by_their_numbers() {
        let mut der = b"\x30\x81\xba\x30\x81\x97\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x30\x81\x8b\x02\x01\x01\x30\
            \x1a\x06\x07\x2a\x86\x48\xce\x3d\x01\x01\x02\x0f\x00\xdb\x7c\x2a\xbf\x62\xe3\x5e\x66\x80\
            \x76\xbe\xad\x20\x8b\x30\x37\x04\x0e\xdb\x7c\x2a\xbf\x62\xe3\x5e\x66\x80\x76\xbe\xad\x20\
            \x88\x04\x0e\x65\x9e\xf8\xba\x04\x39\x16\xee\xde\x89\x11\x70\x2b\x22\x03\x15\x00\x00\xf5\
            \x0b\x02\x8e\x4d\x69\x6e\x67\x68\x75\x61\x51\x75\x29\x04\x72\x78\x3f\xb1\x04\x1d\x04\x09\
            \x48\x72\x39\x99\x5a\x5e\xe7\x6b\x55\xf9\xc2\xf0\x98\xa8\x9c\xe5\xaf\x87\x24\xc0\xa2\x3e\
            \x0e\x0f\xf7\x75\x00\x02\x0f\x00\xdb\x7c\x2a\xbf\x62\xe3\x5e\x76\x28\xdf\xac\x65\x61\xc5\
            \x02\x01\x01\x03\x1e\x00\x04\xc2\x36\x89\x5c\x94\x57\xca\xa3\xcf\xbe\x25\xb2\xb3\x39\x54\
            \x90\x83\xfa\xe1\xda\x81\xf0\x1f\x85\x48\xe4\xbc\xb1".to_vec();
        let key = |der: &[u8]| KeyInfo::read(&mut Reader::new(der)).unwrap().key();
        let known = key(&der).unwrap();
        assert_eq!((known.kind, known.bits, known.curve), ("ecdsa", Some(112), Some("secp112r1")));
        // Another generator: the public key itself.
        let generator = der.windows(3).position(|w| w == [0x04, 0x1d, 0x04]).unwrap() + 2;
        let mut own = der.clone();
        own.copy_within(der.len() - 29.., generator);
        let own = key(&own).unwrap();
        assert_eq!((own.kind, own.bits, own.curve), ("ecdsa", Some(112), None));
        // Another first coefficient.
        let a = der.windows(2).position(|w| w == [0x04, 0x0e]).unwrap() + 2;
        der[a + 13] ^= 1;
        assert_eq!(key(&der), None);
    }

    #[test]
    fn curves_have_registered_names() {
        let registry = include_str!("../oids.txt");
        for (name, ..) in CURVES {
            assert!(registry.contains(&format!("\t{name}\t")), "{name}");
        }
    }
}
