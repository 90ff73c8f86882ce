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
    /// Negotiation state (`negState`): 0 accepted, 1 incomplete, 2 rejected.
    State(u64),
    /// An NTLM message.
    Ntlm(&'a [u8]),
    /// A Kerberos message.
    Kerberos(&'a [u8]),
    /// A number of more than eight bytes, which is parsed as 0: its length in bytes.
    LongNumber(usize),
}

/// Parses a token and passes each part to `visit`, up to the first malformed part.
pub fn parse<'a>(data: &'a [u8], mut visit: impl FnMut(Part<'a>)) -> Result<()> {
    let visit = &mut visit;
    let mut b = Bytes(data);
    let tag = head(&mut b, visit)?.tag;
    if matches!(data, [4, 4, ..] | [5, 4, ..]) {
        // A checksum or an encrypted message of Kerberos (RFC 4121 §4.2.6).
        return Ok(());
    }
    let is_initial = tag == INITIAL;
    if is_initial {
        value(&mut b, visit)?;
        head(&mut b, visit)?;
    }
    // The names of Zeek's records for an argument and its value.
    let (argument, choice) = match is_initial {
        true => ("GSSAPI_NEG_TOKEN_INIT_Arg", "GSSAPI_NEG_TOKEN_INIT_Arg_Data"),
        false => ("GSSAPI_NEG_TOKEN_RESP_Arg", "GSSAPI_NEG_TOKEN_RESP_Arg"),
    };
    head(&mut b, visit)?;
    while !b.is_empty() {
        let within = RecordBounds::new(argument, &b);
        let arg = head(&mut b, visit)?;
        let index = arg.index();
        let mut arg = Bytes(within.part(&mut b, "args", arg.length)?);
        match index {
            0 if !is_initial => {
                let state = value(&mut arg, visit)?;
                if state.len() > 8 {
                    visit(Part::LongNumber(state.len()));
                }
                visit(Part::State(ber::unsigned(state)));
            }
            2 => {
                let within = RecordBounds::new("GSSAPI_NEG_TOKEN_MECH_TOKEN", &arg);
                let length = head(&mut arg, visit)?.length;
                if let Some(part) = mechanism(within.part(&mut arg, "token", length)?, visit)? {
                    visit(part);
                }
            }
            0 | 1 | 3 => drop(value(&mut arg, visit)?),
            index => return Err(RecordFault::Case { record: choice, index: index.into() }),
        }
    }
    Ok(())
}

/// Parses the tag and the length of a value.
fn head<'a>(b: &mut Bytes<'a>, visit: &mut impl FnMut(Part<'a>)) -> Result<Head> {
    if let Some(bytes) = ber::long_length(b.0) {
        visit(Part::LongNumber(bytes));
    }
    ber::head(b)
}

/// Parses a value and returns its content.
fn value<'a>(b: &mut Bytes<'a>, visit: &mut impl FnMut(Part<'a>)) -> Result<&'a [u8]> {
    if let Some(bytes) = ber::long_length(b.0) {
        visit(Part::LongNumber(bytes));
    }
    ber::value(b).map(|(_, content)| content)
}

/// Returns the message of a mechanism, whose protocol its first byte determines.
fn mechanism<'a>(token: &'a [u8], visit: &mut impl FnMut(Part<'a>)) -> Result<Option<Part<'a>>> {
    Ok(match token {
        [0x4e, ..] => token.starts_with(b"NTLMSSP").then_some(Part::Ntlm(token)),
        [INITIAL, ..] => {
            let mut b = Bytes(token);
            let within = RecordBounds::new("KRB_OID_BLOB", &b);
            head(&mut b, visit)?;
            value(&mut b, visit)?;
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

    /// An initial token with the message of a mechanism.
    pub(crate) fn initial(message: &[u8]) -> Vec<u8> {
        let token = tlv(0xa2, &tlv(4, message));
        let list = tlv(0xa0, &tlv(0x30, &tlv(6, b"\x2b\x06\x01")));
        let init = tlv(0xa0, &tlv(0x30, &[list, token].concat()));
        tlv(0x60, &[tlv(6, b"\x2b\x06\x01\x05\x05\x02"), init].concat())
    }

    /// A response token with a state and a message.
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
    fn parts_before_an_error_are_reported() {
        let token = [response(2, b"x"), vec![0xa9, 0]].concat();
        assert_eq!(parts(&token), (vec![Part::State(2)], false));
        assert_eq!(parts(b"\x60"), (vec![], false));
        let error = |d: &[u8]| crate::support::error_text(parse(d, |_| {}).unwrap_err());
        let token = [response(2, b"x"), vec![0xa9, 0]].concat();
        assert_eq!(error(&token), "invalid index for case: GSSAPI_NEG_TOKEN_RESP_Arg: 9");
        let token = b"\xa1\x09\x30\x07\xa2\x09\x04\x03abc";
        assert_eq!(error(token), "out_of_bound: GSSAPI_NEG_TOKEN_RESP_Arg:args: 11 > 7");
        let token = b"\xa1\x09\x30\x07\xa2\x05\x04\x04abc";
        assert_eq!(error(token), "out_of_bound: GSSAPI_NEG_TOKEN_MECH_TOKEN:token: 6 > 5");
    }

    #[test]
    fn numbers_of_more_than_eight_bytes() {
        // An NTLM signature whose bytes parse as a length of ten bytes.
        let signature = b"\x01\0\0\0\xa1\x8a0123456789";
        assert_eq!(parts(signature), (vec![Part::LongNumber(10)], false));
        let token = [&b"\xa1\x10\x30\x0e\xa0\x0c\x0a\x0a"[..], &[9; 10]].concat();
        assert_eq!(parts(&token), (vec![Part::LongNumber(10), Part::State(0)], true));
        // An incomplete length of nine bytes.
        assert_eq!(parts(b"\x01\0\0\0\xa1\x8912345678"), (vec![], false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(data in prop::collection::vec(any::<u8>(), 0..80), at in 0usize..80) {
            parts(&data);
            let mut token = response(1, b"NTLMSSP");
            token.splice(at.min(token.len()).., data.iter().copied());
            parts(&token);
        }
    }
}
