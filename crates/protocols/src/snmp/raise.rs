//! Raises the event of a message: a walk of its own, made only where one has a listener.
//!
//! The message was [parsed](super::message::Message::parse) before, so missing parts are no error
//! here.

use gannet_base::Addr;
use gannet_base::Dir;

use super::events::*;
use crate::Context;
use crate::support::Bytes;
use crate::support::ber;

/// Whether an event of a message has a listener.
#[inline]
pub(super) fn is_wanted(cx: &Context<'_>) -> bool {
    let events = &cx.env.logs.events;
    events.any() && EVENTS.iter().any(|decl| events.wants_id(decl.id))
}

/// Raises the event of a message.
#[cold]
pub(super) fn message(cx: &mut Context<'_>, from: Dir, data: &[u8]) {
    let _ = read(cx, from.is_orig(), data);
}

fn read(cx: &mut Context<'_>, is_orig: bool, data: &[u8]) -> ber::Result<()> {
    let mut b = Bytes(data);
    ber::sequence(&mut b)?;
    let version = ber::integer(&mut b)?;
    let mut header = Header { version, v1: None, v2: None, v3: None };
    match version {
        0 => header.v1 = Some(HeaderV1 { community: ber::tagged(&mut b, ber::OCTET_STRING)? }),
        1 => header.v2 = Some(HeaderV2 { community: ber::tagged(&mut b, ber::OCTET_STRING)? }),
        3 => {
            let (v3, scope) = header_v3(&mut b)?;
            header.v3 = Some(v3);
            match scope {
                ber::SEQUENCE => {}
                ber::OCTET_STRING => {
                    cx.raise(|c| SnmpEncryptedPdu { c, is_orig, header });
                    return Ok(());
                }
                tag => {
                    let tag = tag.into();
                    cx.raise(|c| SnmpUnknownScopedPdu { c, is_orig, header, tag });
                    return Ok(());
                }
            }
        }
        _ => return Ok(()),
    }
    let tag = ber::head(&mut b)?.tag;
    match tag {
        0xa4 => {
            let pdu = TrapPdu {
                enterprise: dotted(ber::tagged(&mut b, ber::OBJECT_IDENTIFIER)?),
                agent: addr(ber::value(&mut b)?.1),
                generic_trap: signed(ber::number(&mut b)?),
                specific_trap: signed(ber::number(&mut b)?),
                time_stamp: signed(ber::value(&mut b)?.1) as u64,
                bindings: bindings(&mut b)?,
            };
            cx.raise(|c| SnmpTrap { c, is_orig, header, pdu });
        }
        0xa5 => {
            let pdu = BulkPdu {
                request_id: signed(ber::number(&mut b)?),
                non_repeaters: signed(ber::number(&mut b)?) as u64,
                max_repetitions: signed(ber::number(&mut b)?) as u64,
                bindings: bindings(&mut b)?,
            };
            cx.raise(|c| SnmpGetBulkRequest { c, is_orig, header, pdu });
        }
        0xa0..=0xa8 => {
            let pdu = Pdu {
                request_id: signed(ber::number(&mut b)?),
                error_status: signed(ber::number(&mut b)?),
                error_index: signed(ber::number(&mut b)?),
                bindings: bindings(&mut b)?,
            };
            match tag {
                0xa0 => cx.raise(|c| SnmpGetRequest { c, is_orig, header, pdu }),
                0xa1 => cx.raise(|c| SnmpGetNextRequest { c, is_orig, header, pdu }),
                0xa2 => cx.raise(|c| SnmpResponse { c, is_orig, header, pdu }),
                0xa3 => cx.raise(|c| SnmpSetRequest { c, is_orig, header, pdu }),
                0xa6 => cx.raise(|c| SnmpInformRequest { c, is_orig, header, pdu }),
                0xa7 => cx.raise(|c| SnmpTrapV2 { c, is_orig, header, pdu }),
                _ => cx.raise(|c| SnmpReport { c, is_orig, header, pdu }),
            }
        }
        _ => cx.raise(|c| SnmpUnknownPdu { c, is_orig, header, tag: tag.into() }),
    }
    Ok(())
}

/// The header of version 3, and the tag of the following element.
fn header_v3<'a>(b: &mut Bytes<'a>) -> ber::Result<(HeaderV3<'a>, u8)> {
    ber::sequence(b)?;
    let [id, max_size] = [ber::number(b)?, ber::number(b)?].map(|n| signed(n) as u64);
    let flags = ber::tagged(b, ber::OCTET_STRING)?.first().copied().unwrap_or_default();
    let security_model = signed(ber::number(b)?) as u64;
    let security_params = ber::tagged(b, ber::OCTET_STRING)?;
    let scope = ber::head(b)?.tag;
    let mut pdu_context = None;
    if scope == ber::SEQUENCE {
        let engine_id = ber::tagged(b, ber::OCTET_STRING)?;
        pdu_context = Some(ScopedContext { engine_id, name: ber::tagged(b, ber::OCTET_STRING)? });
    }
    let user_security_parameters = match security_model {
        // As in Zeek, those of an encrypted message are not reported.
        3 if pdu_context.is_some() => Some(user_security(&mut Bytes(security_params))?),
        _ => None,
    };
    let flag = |bit: u8| flags & bit != 0;
    let header = HeaderV3 {
        id,
        max_size,
        flags: flags.into(),
        auth_flag: flag(1),
        priv_flag: flag(2),
        reportable_flag: flag(4),
        security_model,
        security_params,
        pdu_context,
        user_security_parameters,
    };
    Ok((header, scope))
}

fn user_security<'a>(b: &mut Bytes<'a>) -> ber::Result<UserSecurity<'a>> {
    ber::sequence(b)?;
    Ok(UserSecurity {
        engine_id: ber::tagged(b, ber::OCTET_STRING)?,
        engine_boots: signed(ber::number(b)?),
        engine_time: signed(ber::number(b)?),
        user_name: ber::tagged(b, ber::OCTET_STRING)?,
        authentication: ber::tagged(b, ber::OCTET_STRING)?,
        privacy: ber::tagged(b, ber::OCTET_STRING)?,
    })
}

fn bindings<'a>(b: &mut Bytes<'a>) -> ber::Result<Vec<Binding<'a>>> {
    ber::sequence(b)?;
    let mut bindings = Vec::new();
    while !b.is_empty() {
        ber::sequence(b)?;
        let oid = dotted(ber::tagged(b, ber::OBJECT_IDENTIFIER)?);
        let (tag, content) = ber::value(b)?;
        bindings.push(Binding { oid, value: value(tag, content) });
    }
    Ok(bindings)
}

fn value(tag: u8, content: &[u8]) -> ObjectValue<'_> {
    let mut value = ObjectValue {
        tag: tag.into(),
        oid: None,
        signed: None,
        unsigned: None,
        address: None,
        octets: None,
    };
    match tag {
        5 | 0x80..=0x82 => {}
        ber::OBJECT_IDENTIFIER => value.oid = Some(dotted(content)),
        ber::INTEGER => value.signed = Some(signed(content)),
        0x41..=0x43 | 0x46 => value.unsigned = Some(signed(content) as u64),
        0x40 => value.address = Some(addr(content)),
        _ => value.octets = Some(content),
    }
    value
}

/// A number. As in Zeek it is not negative below eight bytes, and 0 above them.
fn signed(content: &[u8]) -> i64 {
    ber::unsigned(content) as i64
}

/// An address of four bytes; any other counts as none.
fn addr(content: &[u8]) -> Addr {
    <[u8; 4]>::try_from(content).map_or(Addr::v6([0; 16]), Addr::v4)
}

/// Most bytes of a part of a name: 64 bits, seven to a byte.
const MAX_PART: usize = 10;

/// A name in dotted form; empty where it is not whole or has a part that is too long.
fn dotted(name: &[u8]) -> String {
    let mut out = String::new();
    if name.last().is_none_or(|b| b & 0x80 != 0) {
        return out;
    }
    for part in name.split_inclusive(|b| b & 0x80 == 0) {
        if part.len() > MAX_PART {
            return String::new();
        }
        let n = part.iter().fold(0u64, |n, b| n << 7 | u64::from(b & 0x7f));
        let text = if out.is_empty() {
            // The first part holds two numbers, which Zeek divides as signed ones of 32 bits.
            let n = n as i32;
            format!("{}.{}", n / 40, n % 40)
        } else {
            format!(".{n}")
        };
        out.push_str(&text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_dotted_form() {
        assert_eq!(dotted(b"\x2b\x06\x01\x02\x01\x01\x03\x00"), "1.3.6.1.2.1.1.3.0");
        assert_eq!(dotted(b"\x2b\x81\x00"), "1.3.128");
        assert_eq!(dotted(b"\x2b\x81"), "");
        assert_eq!(dotted(&[&[0xff; 10][..], &[1]].concat()), "");
        assert_eq!(dotted(b""), "");
    }
}
