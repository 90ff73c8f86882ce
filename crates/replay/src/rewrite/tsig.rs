//! Signatures of queries with a shared secret: TSIG (RFC 8945).

use std::str::FromStr;
use std::time::Duration;

use ring::hmac;

use crate::message;
use crate::text;

const TSIG: u16 = 250;
const ANY: u16 = 255;
/// Seconds by which the clocks of client and server may differ (§10).
const FUDGE: u16 = 300;
/// Algorithms by name (§6).
const ALGORITHMS: [(&str, hmac::Algorithm); 4] = [
    ("hmac-sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
    ("hmac-sha256", hmac::HMAC_SHA256),
    ("hmac-sha384", hmac::HMAC_SHA384),
    ("hmac-sha512", hmac::HMAC_SHA512),
];

/// A key that signs queries.
#[derive(Clone)]
pub struct Tsig {
    /// Names of the key and the algorithm in wire format.
    name: Vec<u8>,
    algorithm: Vec<u8>,
    key: hmac::Key,
}

/// The error for a text that is not a key. Messages do not contain the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TsigError {
    /// It does not have the form NAME:ALGORITHM:SECRET.
    #[error("expected NAME:ALGORITHM:SECRET")]
    Parts,
    /// The name is not a domain name.
    #[error("'{0}' is not a domain name")]
    Name(String),
    /// The algorithm is unknown.
    #[error(
        "'{0}' is not a supported algorithm; use hmac-sha1, hmac-sha256, hmac-sha384 or hmac-sha512"
    )]
    Algorithm(String),
    /// The secret is empty or not base64.
    #[error("the secret is not base64 (RFC 4648)")]
    Secret,
}

impl std::fmt::Debug for Tsig {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tsig").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FromStr for Tsig {
    type Err = TsigError;

    fn from_str(text: &str) -> Result<Self, TsigError> {
        let mut parts = text.trim().splitn(3, ':');
        let (Some(name), Some(algorithm), Some(secret)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(TsigError::Parts);
        };
        let wire = |text: &str| {
            let mut out = Vec::new();
            text::push_name(&text.to_ascii_lowercase(), &mut out)?;
            Some(out)
        };
        let by_name = |(known, _): &&(&str, _)| known.eq_ignore_ascii_case(algorithm);
        let Some((known, digest)) = ALGORITHMS.iter().find(by_name) else {
            return Err(TsigError::Algorithm(algorithm.to_owned()));
        };
        let secret = base64(secret).filter(|s| !s.is_empty()).ok_or(TsigError::Secret)?;
        Ok(Self {
            name: wire(name).ok_or_else(|| TsigError::Name(name.to_owned()))?,
            algorithm: wire(known).unwrap_or_default(),
            key: hmac::Key::new(*digest, &secret),
        })
    }
}

impl Tsig {
    /// Appends the signature of a message as of `now`, since the epoch (§4.3). The caller must
    /// increment the record count. The message may be sent with another id, since the original id
    /// is part of the signature (§5.3).
    pub(super) fn sign(&self, message: &mut Vec<u8>, now: Duration) {
        let time = now.as_secs().to_be_bytes();
        let time = &time[2..];
        let mut signed = hmac::Context::with_key(&self.key);
        signed.update(message);
        signed.update(&self.name);
        signed.update(&ANY.to_be_bytes());
        signed.update(&0_u32.to_be_bytes());
        signed.update(&self.algorithm);
        signed.update(time);
        signed.update(&FUDGE.to_be_bytes());
        // Error, and Other Len.
        signed.update(&[0; 4]);
        let mac = signed.sign();
        let mac = mac.as_ref();
        let id = message::id(message);
        message.extend_from_slice(&self.name);
        for word in [TSIG, ANY, 0, 0] {
            message.extend_from_slice(&word.to_be_bytes());
        }
        // The sum is small: a name, and a MAC of at most 64 bytes.
        let len = (self.algorithm.len() + 10 + mac.len() + 6) as u16;
        message.extend_from_slice(&len.to_be_bytes());
        message.extend_from_slice(&self.algorithm);
        message.extend_from_slice(time);
        message.extend_from_slice(&FUDGE.to_be_bytes());
        message.extend_from_slice(&(mac.len() as u16).to_be_bytes());
        message.extend_from_slice(mac);
        message.extend_from_slice(&id.to_be_bytes());
        message.extend_from_slice(&[0; 4]);
    }
}

/// The bytes of a text in base64 (RFC 4648 §4), with padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let digits = bytes.strip_suffix(b"==").or(bytes.strip_suffix(b"=")).unwrap_or(bytes);
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::new();
    let (mut value, mut bits) = (0_u32, 0);
    for digit in digits {
        let number = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        value = value << 6 | u32::from(number);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((value >> bits) as u8);
            value &= (1 << bits) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_signed() {
        // Generated with dnspython: `www.example.test A`, id 0x1234, key `key.test`, at
        // 1,700,000,000.
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x04test\0\0\x01\0\x01";
        let cases = [
            ("hmac-sha1", "707246df8cbd0d8b95732cbfd9c2ca2fb2e9cc09"),
            ("hmac-sha256", "260aeeb7df1adedc2df25d6fb7648a7346b0adc9ce7b44c95a5a2efc6226f012"),
            (
                "hmac-sha384",
                "5116ad4306df149f6678ac793b239498aa718cbf4ff3495e6ea9d746433e2812\
                 4447c5dc6762c74f6e262d6c690317e5",
            ),
            (
                "hmac-sha512",
                "f1118bf653c3a2f9a3fe9be79dcdd176d86f88ba60eccfc98e0b697a4889e481\
                 bd11b71f50ec73c4c6fcf802d002f406ca8d1c9e331e4fa613d0f370075c784b",
            ),
        ];
        for (algorithm, mac) in cases {
            let tsig: Tsig = format!("Key.test:{algorithm}:c2VjcmV0LWtleQ==").parse().unwrap();
            let mut message = query.to_vec();
            tsig.sign(&mut message, Duration::from_secs(1_700_000_000));
            let record = &message[query.len()..];
            let mut expected = b"\x03key\x04test\0\0\xfa\0\xff\0\0\0\0".to_vec();
            let name = [&[algorithm.len() as u8], algorithm.as_bytes(), b"\0"].concat();
            let mac: Vec<_> = (0..mac.len() / 2)
                .map(|n| u8::from_str_radix(&mac[n * 2..n * 2 + 2], 16).unwrap())
                .collect();
            expected.extend_from_slice(&((name.len() + 16 + mac.len()) as u16).to_be_bytes());
            expected.extend(name);
            expected.extend_from_slice(b"\0\0\x65\x53\xf1\0\x01\x2c\0");
            expected.push(mac.len() as u8);
            expected.extend(mac);
            expected.extend_from_slice(b"\x12\x34\0\0\0\0");
            assert_eq!(record, expected, "{algorithm}");
        }
    }

    #[test]
    fn errors_do_not_contain_the_secret() {
        let fault = |text: &str| text.parse::<Tsig>().map(|_| ()).unwrap_err();
        assert_eq!(fault("k:c2VjcmV0"), TsigError::Parts);
        assert_eq!(fault("a..b:hmac-sha256:c2VjcmV0"), TsigError::Name("a..b".into()));
        assert_eq!(fault("k:hmac-md5:c2VjcmV0"), TsigError::Algorithm("hmac-md5".into()));
        for secret in ["", "c2V", "c2Vj*mV0", "c2VjcmV0=", "====", "c===", "c2=j"] {
            assert_eq!(fault(&format!("k:hmac-sha256:{secret}")), TsigError::Secret, "{secret}");
        }
        let key: Tsig = "k:HMAC-SHA256:c2VjcmV0".parse().unwrap();
        assert!(!format!("{key:?}").contains("c2VjcmV0"));
        assert_eq!(base64("c2VjcmV0").unwrap(), b"secret");
        assert_eq!(base64("c2VjcmU=").unwrap(), b"secre");
        assert_eq!(base64("+/8=").unwrap(), [0xfb, 0xff]);
    }
}
