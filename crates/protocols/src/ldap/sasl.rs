//! The format of an LDAP stream after a SASL bind, and of the tokens of the bind.

use super::ber;
use super::ber::Malformed;
use crate::support::Bytes;

/// Object identifier of Kerberos in Microsoft's servers.
const MS_KRB5: &[u8] = b"1.2.840.48018.1.2.2";
/// Object identifier of SPNEGO (RFC 4178).
const SPNEGO: &[u8] = b"1.3.6.1.5.5.2";

/// Size of the length field before a SASL buffer, in bytes (RFC 4422 section 3.7).
pub(super) const BUFFER_HEADER: usize = 4;

/// The format of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// LDAP messages.
    #[default]
    Clear,
    /// Messages or SASL buffers, after a SASL bind: the next bytes decide.
    Undecided,
    /// SASL buffers with Kerberos tokens.
    Kerberos,
    /// SASL buffers with other content, which is not parsed.
    Sealed,
    /// TLS.
    Tls,
}

/// Returns the length of the SASL buffer at the start of the data, or the number of bytes needed to determine it.
pub(super) fn buffer_length(d: &[u8]) -> usize {
    match d.first_chunk() {
        Some(n) => (u32::from_be_bytes(*n) as usize).saturating_add(BUFFER_HEADER),
        None => BUFFER_HEADER,
    }
}

/// Whether a SASL buffer contains a Kerberos wrap token.
pub(super) fn is_wrap_token(buffer: &[u8]) -> bool {
    matches!(buffer.get(BUFFER_HEADER..), Some([5, 4, ..]))
}

/// Returns the messages in the Kerberos wrap token of a SASL buffer (RFC 4121 section 4.2.6.2); empty if
/// they are sealed, or the token is of another type.
///
/// # Errors
///
/// If it is truncated, or has an unsupported rotation.
pub(super) fn unwrap(buffer: &[u8]) -> Result<&[u8], Malformed> {
    const TRUNCATED: Malformed = "truncated token";
    let mut b = Bytes(buffer);
    b.take(BUFFER_HEADER).ok_or(TRUNCATED)?;
    if b.u16().ok_or(TRUNCATED)? != 0x0504 {
        return Ok(&[]);
    }
    let [flags, filler] = b.array().ok_or(TRUNCATED)?;
    let sealed = flags & 2 != 0;
    let extra = usize::from(b.u16().ok_or(TRUNCATED)?);
    let rotated = usize::from(b.u16().ok_or(TRUNCATED)?);
    b.take(8).ok_or(TRUNCATED)?; // sequence number
    if filler != 0xff {
        return Err("token without a filler");
    }
    if sealed {
        return Ok(&[]);
    }
    // A rotated checksum precedes the messages.
    if rotated == extra {
        b.take(extra).ok_or(TRUNCATED)?;
        Ok(b.rest())
    } else if rotated == 0 {
        let end = b.0.len().checked_sub(extra).ok_or(TRUNCATED)?;
        Ok(&b.0[..end])
    } else {
        Err("token is rotated in an unknown way")
    }
}

/// Whether GSS-SPNEGO credentials are an NTLM message without SPNEGO.
///
/// # Errors
/// If they are neither an NTLM message nor a SPNEGO token.
pub(super) fn is_bare_ntlm(credentials: &[u8]) -> Result<bool, Malformed> {
    match credentials.first() {
        _ if credentials.starts_with(b"NTLMSSP") => Ok(true),
        Some(0xa1) => Ok(false),
        Some(0x60) => {
            let mut b = Bytes(ber::value(&mut Bytes(credentials))?.content);
            let mechanism = ber::value(&mut b)?;
            if mechanism.number == 6 && ber::oid(mechanism.content) == SPNEGO {
                Ok(false)
            } else {
                Err("token of something else than SPNEGO")
            }
        }
        _ => Err("not a SPNEGO token"),
    }
}

/// Whether a server's SPNEGO token accepts Kerberos authentication and contains a response token.
///
/// # Errors
/// If it is neither an NTLM message nor a SPNEGO token, or has no mechanism, which Zeek
/// requires.
pub(super) fn accepts_kerberos(token: &[u8]) -> Result<bool, Malformed> {
    if token.starts_with(b"NTLMSSP") {
        return Ok(false);
    }
    if token.first() != Some(&0xa1) {
        return Err("not a SPNEGO token");
    }
    let mut b = Bytes(ber::value(&mut Bytes(token))?.content);
    let mut fields = Bytes(ber::value(&mut b)?.content);
    let (mut accepted, mut kerberos, mut has_response) = (false, None, false);
    while !fields.is_empty() {
        let field = ber::value(&mut fields)?;
        match field.number {
            0 => accepted = field.content == b"\x0a\x01\x00",
            1 => {
                let mechanism = ber::value(&mut Bytes(field.content))?.text()?;
                kerberos = Some(&*mechanism == MS_KRB5);
            }
            2 => has_response = true,
            3 => {}
            _ => return Err("unknown field of SPNEGO"),
        }
    }
    let kerberos = kerberos.ok_or("SPNEGO token without a mechanism")?;
    Ok(accepted && kerberos && has_response)
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::tlv;
    use super::*;

    fn token(flags: u8, extra: u16, rotated: u16, content: &[u8]) -> Vec<u8> {
        let mut t = vec![5, 4, flags, 0xff];
        t.extend(extra.to_be_bytes());
        t.extend(rotated.to_be_bytes());
        t.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        t.extend(content);
        let mut out = (t.len() as u32).to_be_bytes().to_vec();
        out.extend(t);
        out
    }

    #[test]
    fn tokens_that_are_only_signed() {
        assert_eq!(unwrap(&token(1, 4, 4, b"SIGNmessage")), Ok(&b"message"[..]));
        assert_eq!(unwrap(&token(1, 4, 0, b"messageSIGN")), Ok(&b"message"[..]));
        assert_eq!(unwrap(&token(1, 0, 0, b"message")), Ok(&b"message"[..]));
        assert_eq!(unwrap(&token(3, 28, 5, b"sealed")), Ok(&b""[..]));
        assert!(unwrap(&token(1, 4, 2, b"message")).is_err());
        assert!(unwrap(&token(1, 40, 0, b"message")).is_err());
        assert!(unwrap(&token(1, 0, 0, b"")[..10]).is_err());
        assert_eq!(unwrap(b"\0\0\0\x02\x01\x02"), Ok(&b""[..]));
        assert!(is_wrap_token(&token(1, 0, 0, b"")));
        assert!(!is_wrap_token(b"\0\0\0\x02\x01\x02"));
        assert_eq!(buffer_length(b"\0\0\x01\0x"), 260);
        assert_eq!(buffer_length(b"\0\0"), 4);
    }

    #[test]
    fn tokens_of_spnego() {
        let init = |oid: &[u8]| tlv(0x60, &[tlv(6, oid), tlv(0xa0, b"")].concat());
        assert_eq!(is_bare_ntlm(&init(b"\x2b\x06\x01\x05\x05\x02")), Ok(false));
        assert!(is_bare_ntlm(&init(b"\x2b\x06")).is_err());
        assert_eq!(is_bare_ntlm(b"NTLMSSP\0\x01"), Ok(true));
        assert_eq!(is_bare_ntlm(b"\xa1\x00"), Ok(false));
        assert!(is_bare_ntlm(b"").is_err());
        let krb5 = tlv(0xa1, &tlv(6, b"\x2a\x86\x48\x82\xf7\x12\x01\x02\x02"));
        let answer = tlv(0xa2, &tlv(4, b"x"));
        let response = |f: &[Vec<u8>]| tlv(0xa1, &tlv(0x30, &f.concat()));
        let accepted = b"\xa0\x03\x0a\x01\x00".to_vec();
        let all = [accepted.clone(), krb5.clone(), answer.clone()];
        assert_eq!(accepts_kerberos(&response(&all)), Ok(true));
        assert_eq!(accepts_kerberos(&response(&all[..2])), Ok(false));
        assert!(accepts_kerberos(&response(&[accepted, answer])).is_err(), "no mechanism");
        assert!(accepts_kerberos(b"").is_err());
        assert_eq!(accepts_kerberos(b"NTLMSSP"), Ok(false));
        assert!(accepts_kerberos(&response(&[tlv(0xa4, b"")])).is_err());
    }
}
