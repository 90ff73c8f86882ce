//! Tokens ([RFC 4178] §4.2, [RFC 2743] §3.1).
//!
//! [RFC 2743]: https://www.rfc-editor.org/rfc/rfc2743
//! [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178

use crate::support::Bytes;
use crate::support::RecordBounds;
use crate::support::RecordFault;
use crate::support::ber;
use crate::support::ber::Head;
use crate::support::ber::Result;

/// Tag of a token that opens a negotiation.
const INITIAL: u8 = 0x60;

/// The parts of a token, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// State of the login: 0 accepted, 1 not yet over, 2 rejected.
    State(u64),
    /// An NTLM message.
    Ntlm(&'a [u8]),
    /// A Kerberos message.
    Kerberos(&'a [u8]),
    /// A number of more than eight bytes, which counts as 0: how many it has.
    Long(usize),
}

/// Takes a token apart and shows each part to `see`, up to where it is broken.
pub fn parse<'a>(data: &'a [u8], mut see: impl FnMut(Part<'a>)) -> Result<()> {
    let see = &mut see;
    let mut b = Bytes(data);
    let tag = head(&mut b, see)?.tag;
    if matches!(data, [4, 4, ..] | [5, 4, ..]) {
        // A checksum or an encrypted message of Kerberos (RFC 4121 §4.2.6).
        return Ok(());
    }
    let is_initial = tag == INITIAL;
    if is_initial {
        value(&mut b, see)?;
        head(&mut b, see)?;
    }
    // What Zeek calls an argument, and its value.
    let (argument, choice) = match is_initial {
        true => ("GSSAPI_NEG_TOKEN_INIT_Arg", "GSSAPI_NEG_TOKEN_INIT_Arg_Data"),
        false => ("GSSAPI_NEG_TOKEN_RESP_Arg", "GSSAPI_NEG_TOKEN_RESP_Arg"),
    };
    head(&mut b, see)?;
    while !b.is_empty() {
        let within = RecordBounds::new(argument, &b);
        let arg = head(&mut b, see)?;
        let index = arg.index();
        let mut arg = Bytes(within.part(&mut b, "args", arg.length)?);
        match index {
            0 if !is_initial => {
                let state = value(&mut arg, see)?;
                if state.len() > 8 {
                    see(Part::Long(state.len()));
                }
                see(Part::State(ber::unsigned(state)));
            }
            2 => {
                let within = RecordBounds::new("GSSAPI_NEG_TOKEN_MECH_TOKEN", &arg);
                let length = head(&mut arg, see)?.length;
                if let Some(part) = mechanism(within.part(&mut arg, "token", length)?, see)? {
                    see(part);
                }
            }
            0 | 1 | 3 => drop(value(&mut arg, see)?),
            index => return Err(RecordFault::Case { record: choice, index: index.into() }),
        }
    }
    Ok(())
}

/// Tag and length of a value.
fn head<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Result<Head> {
    if let Some(bytes) = ber::long_length(b.0) {
        see(Part::Long(bytes));
    }
    ber::head(b)
}

/// The content of a value.
fn value<'a>(b: &mut Bytes<'a>, see: &mut impl FnMut(Part<'a>)) -> Result<&'a [u8]> {
    if let Some(bytes) = ber::long_length(b.0) {
        see(Part::Long(bytes));
    }
    ber::value(b).map(|(_, content)| content)
}

/// The message of a mechanism: by its first byte.
fn mechanism<'a>(token: &'a [u8], see: &mut impl FnMut(Part<'a>)) -> Result<Option<Part<'a>>> {
    Ok(match token {
        [0x4e, ..] => token.starts_with(b"NTLMSSP").then_some(Part::Ntlm(token)),
        [INITIAL, ..] => {
            let mut b = Bytes(token);
            let within = RecordBounds::new("KRB_OID_BLOB", &b);
            head(&mut b, see)?;
            value(&mut b, see)?;
            within.part(&mut b, "token_id", 2)?;
            Some(Part::Kerberos(b.rest()))
        }
        [0x6e | 0x6f, ..] => Some(Part::Kerberos(token)),
        _ => None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, 0x82];
        out.extend_from_slice(&(content.len() as u16).to_be_bytes());
        out.extend_from_slice(content);
        out
    }

    /// A first token around a mechanism's message.
    pub(crate) fn initial(message: &[u8]) -> Vec<u8> {
        let token = tlv(0xa2, &tlv(4, message));
        let list = tlv(0xa0, &tlv(0x30, &tlv(6, b"\x2b\x06\x01")));
        let init = tlv(0xa0, &tlv(0x30, &[list, token].concat()));
        tlv(0x60, &[tlv(6, b"\x2b\x06\x01\x05\x05\x02"), init].concat())
    }

    /// A later token with a state and a message.
    pub(crate) fn response(state: u8, message: &[u8]) -> Vec<u8> {
        let state = tlv(0xa0, &[10, 1, state]);
        tlv(0xa1, &tlv(0x30, &[state, tlv(0xa2, &tlv(4, message))].concat()))
    }

    fn parts(data: &[u8]) -> (Vec<Part<'_>>, bool) {
        let mut parts = Vec::new();
        let whole = parse(data, |p| parts.push(p)).is_ok();
        (parts, whole)
    }

    #[test]
    fn messages_of_mechanisms() {
        let token = initial(b"NTLMSSP\0...");
        assert_eq!(parts(&token), (vec![Part::Ntlm(b"NTLMSSP\0...")], true));
        let token = response(1, b"NTLMSSP\0...");
        assert_eq!(parts(&token), (vec![Part::State(1), Part::Ntlm(b"NTLMSSP\0...")], true));
        let token = initial(&tlv(0x60, &[&tlv(6, b"oid")[..], b"\x01\0\x6e\x01x"].concat()));
        assert_eq!(parts(&token), (vec![Part::Kerberos(b"\x6e\x01x")], true));
        let token = response(0, b"\x6f\x00");
        assert_eq!(parts(&token), (vec![Part::State(0), Part::Kerberos(b"\x6f\x00")], true));
        assert_eq!(parts(b"\x04\x04\x05\xff\xff"), (vec![], true));
    }

    #[test]
    fn what_came_before_the_break_counts() {
        let token = [response(2, b"x"), vec![0xa9, 0]].concat();
        assert_eq!(parts(&token), (vec![Part::State(2)], false));
        assert_eq!(parts(b"\x60"), (vec![], false));
        let said = |d: &[u8]| crate::support::error_text(parse(d, |_| {}).unwrap_err());
        let token = [response(2, b"x"), vec![0xa9, 0]].concat();
        assert_eq!(said(&token), "invalid index for case: GSSAPI_NEG_TOKEN_RESP_Arg: 9");
        let token = b"\xa1\x09\x30\x07\xa2\x09\x04\x03abc";
        assert_eq!(said(token), "out_of_bound: GSSAPI_NEG_TOKEN_RESP_Arg:args: 11 > 7");
        let token = b"\xa1\x09\x30\x07\xa2\x05\x04\x04abc";
        assert_eq!(said(token), "out_of_bound: GSSAPI_NEG_TOKEN_MECH_TOKEN:token: 6 > 5");
    }

    #[test]
    fn numbers_of_more_than_eight_bytes() {
        // A signature of NTLM, in which the bytes of a length happen to be ten.
        let signature = b"\x01\0\0\0\xa1\x8a0123456789";
        assert_eq!(parts(signature), (vec![Part::Long(10)], false));
        let token = [&b"\xa1\x10\x30\x0e\xa0\x0c\x0a\x0a"[..], &[9; 10]].concat();
        assert_eq!(parts(&token), (vec![Part::Long(10), Part::State(0)], true));
        // Nine bytes that are not all there.
        assert_eq!(parts(b"\x01\0\0\0\xa1\x8912345678"), (vec![], false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..80), at in 0usize..80) {
            parts(&data);
            let mut token = response(1, b"NTLMSSP");
            token.splice(at.min(token.len()).., data.iter().copied());
            parts(&token);
        }
    }
}
