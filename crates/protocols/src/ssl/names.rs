//! Names of TLS numbers (IANA registries "TLS Parameters" and "TLS Extensions"), spelled as in
//! ssl.log.

use std::borrow::Cow;

pub use super::ciphers::cipher;

/// SSL 2.0.
pub const SSL2: u16 = 0x0002;
/// SSL 3.0.
pub const SSL3: u16 = 0x0300;
/// TLS 1.0.
pub const TLS10: u16 = 0x0301;
/// TLS 1.1.
pub const TLS11: u16 = 0x0302;
/// TLS 1.2.
pub const TLS12: u16 = 0x0303;
/// TLS 1.3.
pub const TLS13: u16 = 0x0304;
/// DTLS 1.0.
pub const DTLS10: u16 = 0xfeff;
/// DTLS 1.2.
pub const DTLS12: u16 = 0xfefd;
/// DTLS 1.3.
pub const DTLS13: u16 = 0xfefc;

/// Whether a version is a draft of TLS 1.3, by the broad range that logs use.
pub fn is_draft13(version: u16) -> bool {
    version / 0xff == 0x7f
}

/// Name of a protocol version.
pub fn version(v: u16) -> Cow<'static, str> {
    Cow::Borrowed(match v {
        SSL2 => "SSLv2",
        SSL3 => "SSLv3",
        TLS10 => "TLSv10",
        TLS11 => "TLSv11",
        TLS12 => "TLSv12",
        TLS13 => "TLSv13",
        DTLS10 => "DTLSv10",
        DTLS12 => "DTLSv12",
        DTLS13 => "DTLSv13",
        _ if is_draft13(v) => return Cow::Owned(format!("TLSv13-draft{}", v % 0x7f)),
        _ => return unknown(u32::from(v)),
    })
}

/// Name of a named group ("supported groups").
pub fn curve(group: u16) -> Cow<'static, str> {
    named(CURVES, group)
}

/// Name of an alert.
pub fn alert(description: u16) -> Cow<'static, str> {
    named(ALERTS, description)
}

/// Name of a number that is not listed. GREASE values (RFC 8701) have separate names.
pub(super) fn unlisted(n: u32) -> Cow<'static, str> {
    let twice = n & 0xff;
    if n == twice << 8 | twice && n & 0x0f == 0x0a {
        return Cow::Owned(format!("grease_0x{n:04X}"));
    }
    unknown(n)
}

fn unknown(n: u32) -> Cow<'static, str> {
    Cow::Owned(format!("unknown-{n}"))
}

fn named(list: &[(u16, &'static str)], n: u16) -> Cow<'static, str> {
    match list.binary_search_by_key(&n, |e| e.0) {
        Ok(i) => Cow::Borrowed(list[i].1),
        // Alerts have no GREASE values; their numbers are smaller.
        Err(_) => unlisted(u32::from(n)),
    }
}

const ALERTS: &[(u16, &str)] = &[
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (110, "unsupported_extension"),
    (111, "certificate_unobtainable"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (114, "bad_certificate_hash_value"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (117, "general_error"),
    (120, "no_application_protocol"),
    (121, "ech_required"),
];

const CURVES: &[(u16, &str)] = &[
    (1, "sect163k1"),
    (2, "sect163r1"),
    (3, "sect163r2"),
    (4, "sect193r1"),
    (5, "sect193r2"),
    (6, "sect233k1"),
    (7, "sect233r1"),
    (8, "sect239k1"),
    (9, "sect283k1"),
    (10, "sect283r1"),
    (11, "sect409k1"),
    (12, "sect409r1"),
    (13, "sect571k1"),
    (14, "sect571r1"),
    (15, "secp160k1"),
    (16, "secp160r1"),
    (17, "secp160r2"),
    (18, "secp192k1"),
    (19, "secp192r1"),
    (20, "secp224k1"),
    (21, "secp224r1"),
    (22, "secp256k1"),
    (23, "secp256r1"),
    (24, "secp384r1"),
    (25, "secp521r1"),
    (26, "brainpoolP256r1"),
    (27, "brainpoolP384r1"),
    (28, "brainpoolP512r1"),
    (29, "x25519"),
    (30, "x448"),
    (31, "brainpoolP256r1tls13"),
    (32, "brainpoolP384r1tls13"),
    (33, "brainpoolP512r1tls13"),
    (34, "GC256A"),
    (35, "GC256B"),
    (36, "GC256C"),
    (37, "GC256D"),
    (38, "GC512A"),
    (39, "GC512B"),
    (40, "GC512C"),
    (41, "curveSM2"),
    (256, "ffdhe2048"),
    (257, "ffdhe3072"),
    (258, "ffdhe4096"),
    (259, "ffdhe6144"),
    (260, "ffdhe8192"),
    (512, "MLKEM512"),
    (513, "MLKEM768"),
    (514, "MLKEM1024"),
    (4587, "SecP256r1MLKEM768"),
    (4588, "X25519MLKEM768"),
    (4589, "SecP384r1MLKEM1024"),
    (4590, "curveSM2MLKEM768"),
    (16696, "CECPQ2"),
    (25497, "X25519Kyber768Draft00"),
    (25498, "SecP256r1Kyber768Draft00"),
    (65281, "arbitrary_explicit_prime_curves"),
    (65282, "arbitrary_explicit_char2_curves"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(ALERTS.is_sorted_by_key(|e| e.0));
        assert!(CURVES.is_sorted_by_key(|e| e.0));
    }

    #[test]
    fn names_as_in_the_log() {
        assert_eq!(version(0x0303), "TLSv12");
        assert_eq!(version(0x7f17), "TLSv13-draft23");
        assert_eq!(version(0x0305), "unknown-773");
        assert_eq!(curve(29), "x25519");
        assert_eq!(curve(0xff01), "arbitrary_explicit_prime_curves");
        assert_eq!(curve(0x3a3a), "grease_0x3A3A");
        assert_eq!(curve(0x3a4a), "unknown-14922");
        assert_eq!(alert(40), "handshake_failure");
        assert_eq!(alert(200), "unknown-200");
    }
}
