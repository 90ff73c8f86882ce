//! Service bindings (RFC 9460 §2.2), which are not logged. Only their errors are reported.

use super::message::Cursor;
use super::message::MessageContext;
use super::message::MessageNote;
use super::message::Notes;
use super::message::weird;

/// Validates a service binding of `len` bytes. Returns whether the rest of the message can still be parsed.
pub(super) fn check(
    cursor: &mut Cursor<'_>,
    len: usize,
    context: MessageContext,
    names: &mut Vec<u8>,
    notes: &mut Notes,
) -> bool {
    if len < 3 {
        weird(notes, "DNS_SVCB_wrong_length");
        return false;
    }
    let start = cursor.pos();
    let priority = cursor.u16();
    if !cursor.name_as_is(names, context.netbios_server, notes) {
        return false;
    }
    let mut remaining = len.saturating_sub(cursor.pos() - start);
    if remaining > 0 && priority == 0 {
        weird(notes, "DNS_SVCB_aliasmode_with_params");
    }
    while remaining >= 4 {
        let key = cursor.u16();
        let mut size = usize::from(cursor.u16());
        remaining -= 4;
        if size > remaining {
            let detail = format!("{size} capped to {remaining}");
            notes.push(MessageNote::Weird("DNS_SVCB_param_value_toobig", detail));
            size = remaining;
            cursor.skip(size);
        } else if let Some(name) = parameter_weird(key, cursor.take(size)) {
            weird(notes, name);
        }
        remaining -= size;
    }
    true
}

/// Returns the weird of an invalid parameter (RFC 9460 §7, §8).
fn parameter_weird(key: u16, value: &[u8]) -> Option<&'static str> {
    match key {
        0 if value.is_empty() || !value.len().is_multiple_of(2) => {
            Some("DNS_SVCB_mandatory_length_invalid")
        }
        1 if !is_alpn(value) => Some("DNS_SVCB_alpn_length_invalid"),
        2 if !value.is_empty() => Some("DNS_SVCB_nodefaultalpn_value"),
        3 if value.len() != 2 => Some("DNS_SVCB_port_length_invalid"),
        4 if !value.len().is_multiple_of(4) => Some("DNS_SVCB_hint_length_invalid"),
        6 if !value.len().is_multiple_of(16) => Some("DNS_SVCB_hint_length_invalid"),
        0..=6 => None,
        _ => Some("DNS_SVCB_key_reserved_or_invalid"),
    }
}

/// Whether a value is a list of length-prefixed names that are not empty.
fn is_alpn(mut value: &[u8]) -> bool {
    while let Some((len, rest)) = value.split_first() {
        match rest.split_at_checked(usize::from(*len)) {
            Some((name, rest)) if !name.is_empty() => value = rest,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(data: &[u8]) -> (bool, Vec<String>) {
        let (mut names, mut notes) = (Vec::new(), Notes::new());
        let mut cursor = Cursor::new(data, 0);
        let ok = check(&mut cursor, data.len(), MessageContext::default(), &mut names, &mut notes);
        assert!(!ok || data.len() - cursor.pos() < 4);
        let text = notes.into_iter().map(|n| match n {
            MessageNote::Weird(name, addl) => format!("{name} {addl}").trim_end().to_owned(),
            other => format!("{other:?}"),
        });
        (ok, text.collect())
    }

    #[test]
    fn a_valid_binding() {
        let data =
            b"\0\x01\0\0\x01\0\x06\x02h2\x02h3\0\x03\0\x02\x01\xbb\0\x04\0\x04\x01\x02\x03\x04";
        assert_eq!(notes(data), (true, vec![]));
    }

    #[test]
    fn each_invalid_parameter() {
        let one = |data: &[u8]| match notes(data) {
            (true, names) if names.len() == 1 => names[0].clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(one(b"\0\x01\0\0\0\0\x01x"), "DNS_SVCB_mandatory_length_invalid");
        assert_eq!(one(b"\0\x01\0\0\x01\0\x02\x05h"), "DNS_SVCB_alpn_length_invalid");
        assert_eq!(one(b"\0\x01\0\0\x02\0\x01x"), "DNS_SVCB_nodefaultalpn_value");
        assert_eq!(one(b"\0\x01\0\0\x03\0\x01x"), "DNS_SVCB_port_length_invalid");
        assert_eq!(one(b"\0\x01\0\0\x04\0\x01x"), "DNS_SVCB_hint_length_invalid");
        assert_eq!(one(b"\0\x01\0\0\x06\0\x04abcd"), "DNS_SVCB_hint_length_invalid");
        assert_eq!(one(b"\0\x01\0\0\x09\0\x01x"), "DNS_SVCB_key_reserved_or_invalid");
        assert_eq!(one(b"\0\x01\0\0\x03\0\x09x"), "DNS_SVCB_param_value_toobig 9 capped to 1");
        assert_eq!(one(b"\0\0\0\0\x05\0\x01x"), "DNS_SVCB_aliasmode_with_params");
        assert_eq!(notes(b"\0\x01"), (false, vec!["DNS_SVCB_wrong_length".to_owned()]));
    }
}
