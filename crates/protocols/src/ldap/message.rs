//! Messages (RFC 4511 section 4).

use std::borrow::Cow;

use super::ber::Malformed;
use super::ber::SEQUENCE;
use super::ber::TRUNCATED;
use super::ber::Text;
use super::ber::Value;
use super::ber::ascii;
use super::ber::head;
use super::ber::value;
use super::filter;
use crate::support::Bytes;

/// Object identifier of the extended request StartTLS (RFC 4511 section 4.14.1).
pub const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";

/// Tag of a referral to other servers in a result.
const REFERRAL: u8 = 0xa3;

/// Tag numbers of operations.
pub mod operation {
    #![allow(missing_docs)] // the RFC's names
    pub const BIND_REQUEST: u8 = 0;
    pub const BIND_RESPONSE: u8 = 1;
    pub const UNBIND_REQUEST: u8 = 2;
    pub const SEARCH_REQUEST: u8 = 3;
    pub const SEARCH_RESULT_ENTRY: u8 = 4;
    pub const SEARCH_RESULT_DONE: u8 = 5;
    pub const MODIFY_REQUEST: u8 = 6;
    pub const MODIFY_RESPONSE: u8 = 7;
    pub const ADD_REQUEST: u8 = 8;
    pub const ADD_RESPONSE: u8 = 9;
    pub const DELETE_REQUEST: u8 = 10;
    pub const DELETE_RESPONSE: u8 = 11;
    pub const MODIFY_DN_REQUEST: u8 = 12;
    pub const MODIFY_DN_RESPONSE: u8 = 13;
    pub const COMPARE_REQUEST: u8 = 14;
    pub const COMPARE_RESPONSE: u8 = 15;
    pub const ABANDON_REQUEST: u8 = 16;
    pub const SEARCH_RESULT_REFERENCE: u8 = 19;
    pub const EXTENDED_REQUEST: u8 = 23;
    pub const EXTENDED_RESPONSE: u8 = 24;
    pub const INTERMEDIATE_RESPONSE: u8 = 25;
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Identifier that a response has in common with its request.
    pub id: i64,
    /// Number of the operation, one of [`operation`].
    pub code: u8,
    /// Content of the operation.
    pub body: Body<'a>,
}

/// The content of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A bind request.
    Bind {
        /// Version of LDAP.
        version: i64,
        /// Name of the user.
        name: Text<'a>,
        /// Authentication method.
        auth: Auth<'a>,
    },
    /// A bind response, with the server's SASL credentials.
    BindResponse(Outcome<'a>, Vec<&'a [u8]>),
    /// A search.
    Search {
        /// Base object of the search.
        base: Text<'a>,
        /// Scope: 0 the base object, 1 one level, 2 the whole subtree.
        scope: u8,
        /// Alias handling: 0 never, 1 in searching, 2 in finding the base, 3 always.
        deref: u8,
        /// The search filter, as text.
        filter: Vec<u8>,
    },
    /// An object to modify, and its changes as text: `add(type=value),...`.
    Modify(Text<'a>, Vec<u8>),
    /// The object to delete, or the message to abandon.
    Object(Text<'a>),
    /// An extended request, with its name.
    Extended(Text<'a>),
    /// The result of any other request.
    Outcome(Outcome<'a>),
    /// An operation without logged content.
    Nothing,
}

/// LDAPResult (RFC 4511 section 4.1.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// Result code.
    pub code: u8,
    /// Diagnostic message of the server.
    pub diagnostic: Text<'a>,
}

/// Authentication method of a bind request, with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth<'a> {
    /// A password, which may be empty.
    Simple(&'a [u8]),
    /// A SASL mechanism.
    Sasl {
        /// Name of the mechanism.
        mechanism: Text<'a>,
        /// The client's credentials.
        credentials: Option<&'a [u8]>,
    },
    /// The first NTLM message of Sicily authentication (MS-ADTS section 5.1.1.1.3).
    SicilyNegotiate(&'a [u8]),
    /// The last NTLM message of Sicily authentication.
    SicilyResponse(&'a [u8]),
    /// Another method, by its number.
    Other(u8),
}

/// Parses a message from the first byte of its sequence. The end of a `truncated` message is missing, so that only its
/// first parts are parsed.
///
/// # Errors
/// If it is not a message, or its operation is malformed.
pub fn parse(data: &[u8], truncated: bool) -> Result<Message<'_>, Malformed> {
    let mut b = Bytes(data);
    if data.first().is_none_or(|tag| tag & 0xdf != SEQUENCE) {
        return Err("not an LDAP message");
    }
    let (_, len) = head(&mut b)?;
    if !truncated {
        b = Bytes(b.take(usize::try_from(len).map_err(|_| TRUNCATED)?).ok_or(TRUNCATED)?);
    }
    let id = value(&mut b)?;
    if id.class != 0 || id.number != 2 {
        return Err("message without id");
    }
    let id = id.integer()?;
    let (tag, len) = head(&mut b)?;
    if tag >> 6 != 1 {
        return Err("message without operation");
    }
    let len = usize::try_from(len).map_err(|_| TRUNCATED)?;
    let content = match b.take(len) {
        Some(content) => content,
        None if truncated => b.rest(),
        None => return Err(TRUNCATED),
    };
    let code = tag & 0x1f;
    let mut rest = Bytes(content);
    let body = body(code, &mut rest, truncated)?;
    if !truncated && !rest.is_empty() {
        return Err("extra bytes in an operation");
    }
    Ok(Message { id, code, body })
}

/// Parses an operation from its whole content.
fn body<'a>(code: u8, b: &mut Bytes<'a>, truncated: bool) -> Result<Body<'a>, Malformed> {
    Ok(match code {
        operation::BIND_REQUEST => bind(b)?,
        operation::BIND_RESPONSE => {
            let outcome = outcome(b, truncated)?;
            let mut credentials = Vec::new();
            while !b.is_empty() {
                match value(b)? {
                    v if v.class == 2 && v.number == 7 => credentials.push(v.content),
                    _ => return Err("expected SASL credentials"),
                }
            }
            Body::BindResponse(outcome, credentials)
        }
        operation::SEARCH_REQUEST => search(b, truncated)?,
        operation::SEARCH_RESULT_ENTRY => {
            value(b)?.text()?;
            if !truncated {
                value(b)?.check(0)?;
            }
            Body::Nothing
        }
        operation::MODIFY_REQUEST => {
            let object = value(b)?.text()?;
            Body::Modify(object, if truncated { Vec::new() } else { changes(b)? })
        }
        // The content is the value itself (RFC 4511 sections 4.8 and 4.11).
        operation::DELETE_REQUEST => Body::Object(ascii(b.rest())),
        operation::ABANDON_REQUEST => {
            let id = Value { class: 0, number: 2, content: b.rest() }.integer()?;
            Body::Object(Cow::Owned(id.to_string().into_bytes()))
        }
        operation::EXTENDED_REQUEST => {
            let name = value(b)?;
            if name.class != 2 {
                return Err("extended request without a name");
            }
            if !truncated && !b.is_empty() && value(b)?.class != 2 {
                return Err("extended request with an unknown field");
            }
            Body::Extended(ascii(name.content))
        }
        operation::SEARCH_RESULT_DONE
        | operation::MODIFY_RESPONSE
        | operation::ADD_RESPONSE
        | operation::DELETE_RESPONSE
        | operation::MODIFY_DN_RESPONSE
        | operation::COMPARE_RESPONSE => Body::Outcome(outcome(b, truncated)?),
        operation::EXTENDED_RESPONSE => {
            let outcome = outcome(b, truncated)?;
            // A name and a value.
            for _ in 0..2 {
                if !truncated && !b.is_empty() {
                    let field = value(b)?;
                    if field.class != 2 || !matches!(field.number, 10 | 11) {
                        return Err("extended response with an unknown field");
                    }
                }
            }
            Body::Outcome(outcome)
        }
        operation::UNBIND_REQUEST => Body::Nothing,
        operation::ADD_REQUEST
        | operation::MODIFY_DN_REQUEST
        | operation::COMPARE_REQUEST
        | operation::SEARCH_RESULT_REFERENCE
        | operation::INTERMEDIATE_RESPONSE => {
            b.rest();
            Body::Nothing
        }
        _ => return Err("unknown operation"),
    })
}

fn outcome<'a>(b: &mut Bytes<'a>, truncated: bool) -> Result<Outcome<'a>, Malformed> {
    let code = value(b)?.small()?;
    value(b)?.text()?; // matched DN
    let diagnostic = value(b)?.text()?;
    if !truncated && b.0.first() == Some(&REFERRAL) {
        value(b)?;
    }
    Ok(Outcome { code, diagnostic })
}

fn bind<'a>(b: &mut Bytes<'a>) -> Result<Body<'a>, Malformed> {
    let version = value(b)?.integer()?;
    let name = value(b)?.text()?;
    let method = value(b)?;
    if method.class == 0 {
        return Err("bind request without an authentication method");
    }
    let auth = match method.number {
        0 => Auth::Simple(method.content),
        3 if method.content.is_empty() => Auth::Sasl { mechanism: ascii(b""), credentials: None },
        3 => {
            let mut b = Bytes(method.content);
            let mechanism = value(&mut b)?.text()?;
            let credentials = match b.is_empty() {
                true => None,
                false => match value(&mut b)? {
                    v if v.number == 4 => Some(v.content),
                    _ => return Err("login with credentials of an unknown kind"),
                },
            };
            Auth::Sasl { mechanism, credentials }
        }
        10 | 11 if !method.content.is_empty() && !method.content.starts_with(b"NTLMSSP") => {
            return Err("bind request without an NTLM token");
        }
        10 => Auth::SicilyNegotiate(method.content),
        11 => Auth::SicilyResponse(method.content),
        other => Auth::Other(other),
    };
    Ok(Body::Bind { version, name, auth })
}

fn search<'a>(b: &mut Bytes<'a>, truncated: bool) -> Result<Body<'a>, Malformed> {
    let base = value(b)?.text()?;
    let scope = value(b)?.small()?;
    let deref = value(b)?.small()?;
    value(b)?.integer()?; // size limit
    value(b)?.integer()?; // time limit
    if value(b)?.universal(1)?.len() != 1 {
        return Err("flag of an odd length"); // types only
    }
    let mut text = Vec::new();
    if !truncated {
        filter::write(b, &mut text)?;
        value(b)?.check(0)?; // attributes
    }
    Ok(Body::Search { base, scope, deref, filter: text })
}

/// Formats the changes of a modification as text.
fn changes(b: &mut Bytes<'_>) -> Result<Vec<u8>, Malformed> {
    let mut list = Bytes(value(b)?.universal(SEQUENCE)?);
    let mut out = Vec::new();
    while !list.is_empty() {
        let mut change = Bytes(value(&mut list)?.universal(SEQUENCE)?);
        let operation: &[u8] = match value(&mut change)?.integer()? {
            0 => b"add",
            1 => b"delete",
            2 => b"replace",
            _ => return Err("unknown change"),
        };
        let mut attribute = Bytes(value(&mut change)?.universal(SEQUENCE)?);
        if !change.is_empty() {
            return Err("extra bytes in a modification");
        }
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(operation);
        out.push(b'(');
        out.extend_from_slice(&value(&mut attribute)?.text()?);
        if !attribute.is_empty() {
            let mut values = Bytes(value(&mut attribute)?.universal(17)?);
            if !values.is_empty() {
                out.push(b'=');
            }
            // As in Zeek's log, several values are concatenated without a separator.
            while !values.is_empty() {
                out.extend_from_slice(&value(&mut values)?.text()?);
            }
        }
        out.push(b')');
    }
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::ber::MAX_DEPTH;
    use super::super::ber::length;
    use super::super::ber::oid;
    use super::*;
    use proptest::prelude::*;

    /// A value of less than 64 KiB.
    pub(in crate::ldap) fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag, 0x82];
        out.extend_from_slice(&(content.len() as u16).to_be_bytes());
        out.extend_from_slice(content);
        out
    }

    /// A message with an operation.
    pub(in crate::ldap) fn message(id: u8, code: u8, content: &[u8]) -> Vec<u8> {
        tlv(0x30, &[tlv(2, &[id]), tlv(0x60 | code, content)].concat())
    }

    /// The content of a result.
    pub(in crate::ldap) fn result(code: u8, words: &[u8]) -> Vec<u8> {
        [tlv(10, &[code]), tlv(4, b""), tlv(4, words)].concat()
    }

    /// The content of a search.
    pub(in crate::ldap) fn search_for(base: &[u8], scope: u8, filter: &[u8]) -> Vec<u8> {
        let limits = b"\x0a\x01\x00\x02\x01\x00\x02\x01\x00\x01\x01\x00";
        [&tlv(4, base), &[10, 1, scope][..], &limits[..], filter, &tlv(0x30, b"")].concat()
    }

    fn read(data: &[u8]) -> Result<Body<'_>, Malformed> {
        parse(data, false).map(|m| m.body)
    }

    #[test]
    fn logins() {
        let login =
            |auth: &[u8]| message(1, 0, &[&[2, 1, 3], &tlv(4, b"cn=me")[..], auth].concat());
        let how = |data: &[u8]| match parse(data, false) {
            Ok(Message { id: 1, code: 0, body: Body::Bind { version: 3, name, auth } }) => {
                assert_eq!(&*name, b"cn=me");
                Ok(format!("{auth:?}"))
            }
            other => Err(format!("{other:?}")),
        };
        let named = |a: Auth<'_>| Ok(format!("{a:?}"));
        assert_eq!(how(&login(&tlv(0x80, b"secret"))), named(Auth::Simple(b"secret")));
        let sasl = [tlv(4, b"GSSAPI"), tlv(4, b"token")].concat();
        let expected =
            Auth::Sasl { mechanism: Cow::Borrowed(b"GSSAPI"), credentials: Some(b"token") };
        assert_eq!(how(&login(&tlv(0xa3, &sasl))), named(expected));
        let none = Auth::Sasl { mechanism: Cow::Borrowed(b"GSSAPI"), credentials: None };
        assert_eq!(how(&login(&tlv(0xa3, &tlv(4, b"GSSAPI")))), named(none));
        assert!(how(&login(&tlv(0xa3, &[tlv(4, b"GSSAPI"), tlv(2, b"7")].concat()))).is_err());
        let ntlm = Auth::SicilyNegotiate(b"NTLMSSP\0");
        assert_eq!(how(&login(&tlv(0x8a, b"NTLMSSP\0"))), named(ntlm));
        let empty = Auth::Sasl { mechanism: Cow::Borrowed(b""), credentials: None };
        assert_eq!(how(&login(&tlv(0xa3, b""))), named(empty));
        assert!(how(&login(&tlv(0x8b, b"other"))).is_err());
        assert!(how(&login(&tlv(4, b"secret"))).is_err());
    }

    #[test]
    fn outcomes() {
        let m = message(7, 5, &result(32, b"gone"));
        let expected = Outcome { code: 32, diagnostic: Cow::Borrowed(&b"gone"[..]) };
        assert_eq!(read(&m), Ok(Body::Outcome(expected.clone())));
        // A referral may follow in the operation, and controls after the operation.
        let controls = [&tlv(2, &[7])[..], &tlv(0x65, &result(32, b"gone")), &tlv(0xa0, b"x")];
        assert_eq!(read(&tlv(0x30, &controls.concat())), Ok(Body::Outcome(expected.clone())));
        let more = |tag| [result(32, b"gone"), tlv(tag, b"x")].concat();
        assert_eq!(read(&message(7, 5, &more(0xa3))), Ok(Body::Outcome(expected.clone())));
        assert!(read(&message(7, 5, &more(0xa4))).is_err());
        assert!(read(&message(7, 1, &more(0xa3))).is_ok());
        assert!(read(&message(7, 1, &more(0xa4))).is_err(), "where credentials may be");
        let bind = [result(32, b"gone"), tlv(0x87, b"token")].concat();
        assert_eq!(read(&message(7, 1, &bind)), Ok(Body::BindResponse(expected, vec![b"token"])));
        assert!(read(&message(7, 5, &tlv(10, b"\x01\x00"))).is_err());
        assert!(read(&message(7, 5, &result(0, b"")[..8])).is_err());
    }

    #[test]
    fn message_identifiers() {
        assert!(parse(b"\x30\x04\x02\x00\x42\x00", false).is_err(), "no number");
        assert!(parse(b"\x30\x80\x02\x01\x05\x42\x00", false).is_err(), "no length");
        let id = |d: &[u8]| parse(d, false).map(|m| m.id);
        assert_eq!(id(b"\x30\x05\x02\x01\x05\x42\x00"), Ok(5));
        assert_eq!(id(b"\x30\x06\x02\x02\x01\x00\x42\x00"), Ok(256));
        assert_eq!(id(b"\x30\x05\x02\x01\xff\x42\x00"), Ok(-1));
        assert!(id(b"\x30\x05\x04\x01\x05\x42\x00").is_err());
        assert!(id(b"\x30\x05\x02\x01\x05\x82\x00").is_err());
        assert!(id(b"\x30\x05\x02\x01\x05\x51\x00").is_err(), "unknown operation");
        assert!(id(b"\x31\x05\x02\x01\x05\x42\x00").is_err());
        assert_eq!(length(b"\x30\x05\x02"), 7);
        assert_eq!(length(b"\x30\x82\x01\x00"), 260);
        assert_eq!(length(b"\x30\x82\x01"), 4);
        assert_eq!(length(b"\x30"), 2);
        assert_eq!(length(b"\x30\x88\xff\xff\xff\xff\xff\xff\xff\xff"), usize::MAX);
    }

    #[test]
    fn objects_and_changes() {
        assert_eq!(
            read(&message(1, 10, b"cn=\xfc,dc=x")),
            Ok(Body::Object(Cow::Borrowed(b"cn=?,dc=x")))
        );
        assert_eq!(read(&message(1, 16, b"\x01\x02")), Ok(Body::Object(Cow::Borrowed(b"258"))));
        let attribute = |name: &[u8], values: &[Vec<u8>]| {
            tlv(0x30, &[tlv(4, name), tlv(0x31, &values.concat())].concat())
        };
        let change = |op: u8, attribute: Vec<u8>| tlv(0x30, &[vec![10, 1, op], attribute].concat());
        let all = [
            change(2, attribute(b"mail", &[tlv(4, b"a"), tlv(4, b"b")])),
            change(1, attribute(b"cn", &[])),
        ];
        let modify = [tlv(4, b"dc=x"), tlv(0x30, &all.concat())].concat();
        let expected = Body::Modify(Cow::Borrowed(b"dc=x"), b"replace(mail=ab),delete(cn)".into());
        assert_eq!(read(&message(1, 6, &modify)), Ok(expected));
        let three =
            tlv(0x30, &tlv(0x30, &[vec![10, 1, 1], attribute(b"cn", &[]), vec![5, 0]].concat()));
        assert!(read(&message(1, 6, &[tlv(4, b"dc=x"), three].concat())).is_err());
    }

    #[test]
    fn extensions() {
        let request =
            |name: &[u8], more: &[u8]| read(&message(1, 23, &[name, more].concat())).is_ok();
        let name = tlv(0x80, b"1.3.6.1.4.1.1466.20037");
        assert_eq!(
            read(&message(1, 23, &name)),
            Ok(Body::Extended(Cow::Borrowed(b"1.3.6.1.4.1.1466.20037")))
        );
        assert!(request(&name, &tlv(0x81, b"x")));
        assert!(!request(&name, &tlv(4, b"x")));
        let response =
            |more: &[u8]| read(&message(1, 24, &[&result(0, b""), more].concat())).is_ok();
        assert!(response(&[tlv(0x8a, b"1.2"), tlv(0x8b, b"x")].concat()));
        assert!(!response(&[tlv(0x8a, b"1.2"), tlv(0x8b, b"x"), tlv(0x8b, b"x")].concat()));
        assert!(response(&[tlv(0xa3, b"x"), tlv(0x8a, b"1.2")].concat()), "a referral");
        assert!(!response(&tlv(0xa4, b"x")));
    }

    #[test]
    fn searches() {
        let m = message(2, 3, &search_for(b"dc=x", 2, &tlv(0x87, b"cn")));
        let expected = Body::Search {
            base: Cow::Borrowed(b"dc=x"),
            scope: 2,
            deref: 0,
            filter: b"(cn=*)".to_vec(),
        };
        assert_eq!(read(&m), Ok(expected));
    }

    #[test]
    fn entries_are_checked_to_a_depth() {
        let nested = |n: usize| (0..n).fold(tlv(4, b"x"), |inner, _| tlv(0x30, &inner));
        let entry = |n| message(2, 4, &[tlv(4, b"dc=x"), nested(n)].concat());
        assert_eq!(read(&entry(usize::from(MAX_DEPTH))), Ok(Body::Nothing));
        assert!(read(&entry(usize::from(MAX_DEPTH) + 1)).is_err());
        let broken = message(2, 4, &[tlv(4, b"dc=x"), tlv(0x30, b"\x04\x05a")].concat());
        assert!(read(&broken).is_err());
        // Bytes that were not stored cannot be checked.
        assert_eq!(parse(&broken[..22], true).map(|m| m.body), Ok(Body::Nothing));
    }

    #[test]
    fn identifiers() {
        assert_eq!(oid(b"\x2b\x06\x01\x05\x05\x02"), b"1.3.6.1.5.5.2");
        assert_eq!(oid(b"\x2a\x86\x48\x82\xf7\x12\x01\x02\x02"), b"1.2.840.48018.1.2.2");
        assert_eq!(oid(b""), b"");
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(
            data in prop::collection::vec(any::<u8>(), 0..120),
            code in 0u8..32,
            truncated: bool,
        ) {
            let _ = parse(&data, truncated);
            let _ = parse(&message(1, code, &data), truncated);
            let mut filter = search_for(b"", 0, &data);
            let _ = parse(&message(1, 3, &filter), truncated);
            filter.truncate(data.len());
            let _ = parse(&message(1, 3, &filter), truncated);
        }
    }
}
