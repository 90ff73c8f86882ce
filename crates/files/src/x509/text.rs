//! Certificate extensions as text, in the format of OpenSSL's printer, for Zeek's `x509_extension`.

use std::fmt::Write;

use super::constraints;
use super::general_names::Printer;
use super::general_names::access;
use super::general_names::distribution_points;
use super::general_names::issuing_point;
use super::general_names::names_of;
use super::universal;
use crate::der::Class;
use crate::der::DerError;
use crate::der::Element;
use crate::der::Reader;
use crate::der::Result;
use crate::der::tag;
use crate::oid;

/// An extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its long name; the dotted identifier if it is not registered.
    pub name: String,
    /// Its short name; `UNDEF` if it is not registered.
    pub short_name: &'static str,
    /// The dotted identifier.
    pub oid: String,
    /// Whether the extension is critical.
    pub critical: bool,
    /// Its contents as text; the encoded contents if they have no text form.
    pub value: Vec<u8>,
    /// Timestamps of certificate transparency logs, if the extension contains them.
    pub timestamps: Vec<Timestamp>,
}

/// A signed certificate timestamp (RFC 6962 section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Version: 0.
    pub version: u8,
    /// The log id.
    pub log_id: Vec<u8>,
    /// Milliseconds since 1970.
    pub millis: u64,
    /// Encoded extensions.
    pub extensions: Vec<u8>,
    /// Hash algorithm of the signature.
    pub hash: u8,
    /// Signature algorithm.
    pub algorithm: u8,
    /// The signature.
    pub signature: Vec<u8>,
}

/// Object identifier of the list of timestamps in a certificate.
const TIMESTAMPS: &str = "1.3.6.1.4.1.11129.2.4.2";
/// Object identifier of the list of timestamps in the status of a certificate.
const STATUS_TIMESTAMPS: &str = "1.3.6.1.4.1.11129.2.4.5";

/// Object identifier of the poison extension of precertificates (RFC 6962 section 3.1).
const POISON: &str = "1.3.6.1.4.1.11129.2.4.3";

/// The extensions of the certificate at the start of `data`, in certificate order.
///
/// # Errors
/// If the bytes do not have the structure of a certificate.
pub fn extensions(data: &[u8]) -> Result<Vec<Extension>> {
    let whole = Reader::new(data).universal(tag::SEQUENCE)?;
    let mut body = whole.members()?.universal(tag::SEQUENCE)?.members()?;
    let mut all = Vec::new();
    while !body.is_empty() {
        let element = body.element()?;
        if element.class != Class::Context || element.tag != 3 {
            continue;
        }
        all.append(&mut list_of(element.explicit()?)?);
    }
    Ok(all)
}

/// The extensions of a SEQUENCE of extensions.
pub(crate) fn list_of(list: Element<'_>) -> Result<Vec<Extension>> {
    let mut list = universal(list, tag::SEQUENCE)?.items();
    let mut all = Vec::new();
    while !list.is_empty() {
        all.push(extension(&list.element()?)?);
    }
    Ok(all)
}

fn extension(element: &Element<'_>) -> Result<Extension> {
    let mut members = universal(*element, tag::SEQUENCE)?.members()?;
    let identifier = members.universal(tag::OID)?.oid()?;
    let critical = match members.optional(Class::Universal, tag::BOOLEAN)? {
        Some(critical) => critical.boolean()?,
        None => false,
    };
    let content = members.universal(tag::OCTET_STRING)?;
    let value = content.octets()?;
    let (dotted, names) = (oid::dotted(identifier), oid::names(identifier));
    let has_timestamps = dotted == TIMESTAMPS || dotted == STATUS_TIMESTAMPS;
    let timestamps = if has_timestamps { timestamps(&value).ok() } else { None };
    let words = words(&dotted, &value, timestamps.as_deref());
    Ok(Extension {
        name: names.map_or_else(|| dotted.clone(), |names| names.long.to_owned()),
        short_name: names.map_or("UNDEF", |names| names.short),
        oid: dotted,
        critical,
        value: words.map_or_else(|| content.raw.to_vec(), String::into_bytes),
        timestamps: timestamps.unwrap_or_default(),
    })
}

/// The text of an extension; `None` if the extension is unknown or malformed.
fn words(dotted: &str, value: &[u8], timestamps: Option<&[Timestamp]>) -> Option<String> {
    let mut reader = Reader::new(value);
    match dotted {
        "2.5.29.14" => Some(hex(&reader.universal(tag::OCTET_STRING).ok()?.octets().ok()?)),
        "2.5.29.15" => flags(&mut reader, &KEY_USAGES),
        "2.16.840.1.113730.1.1" => flags(&mut reader, &NETSCAPE_TYPES),
        "2.16.840.1.113730.1.2"
        | "2.16.840.1.113730.1.3"
        | "2.16.840.1.113730.1.4"
        | "2.16.840.1.113730.1.7"
        | "2.16.840.1.113730.1.8"
        | "2.16.840.1.113730.1.12"
        | "2.16.840.1.113730.1.13" => {
            let text = reader.universal(tag::IA5_STRING).ok()?;
            Some(lossy(&text.octets().ok()?))
        }
        "2.5.29.16" => usage_period(&mut reader),
        "2.5.29.17" | "2.5.29.18" => {
            let mut list = reader.universal(tag::SEQUENCE).ok()?.items();
            Some(or_empty(names_of(&mut list, Printer::Values).ok()?.join(", ")))
        }
        "2.5.29.19" => basic_constraints(&mut reader),
        "2.5.29.30" => constraints::names(&mut reader).ok(),
        "2.5.29.31" | "2.5.29.46" => distribution_points(&mut reader).ok(),
        "2.5.29.28" => issuing_point(&mut reader).ok(),
        "2.5.29.33" => policy_mappings(&mut reader).ok(),
        "2.5.29.21" => {
            let reason = reader.universal(tag::ENUMERATED).ok()?.integer().ok()?.to_i64()?;
            let name = usize::try_from(reason).ok().and_then(|at| REVOCATIONS.get(at));
            Some(match name {
                Some(Some(name)) => (*name).to_owned(),
                _ => reason.to_string(),
            })
        }
        "2.5.29.32" => policies(&mut reader).ok(),
        "2.5.29.35" => authority_key(&mut reader).ok(),
        "2.5.29.36" => constraints::policies(&mut reader),
        "2.5.29.20" | "2.5.29.27" | "2.5.29.54" => number(&mut reader),
        "2.5.29.37" | "1.3.6.1.5.5.7.48.1.4" => {
            let mut list = reader.sequence().ok()?;
            let mut all = Vec::new();
            while !list.is_empty() {
                all.push(long_name(list.universal(tag::OID).ok()?.oid().ok()?));
            }
            some_of(&all)
        }
        "1.3.6.1.5.5.7.1.24" => features(&mut reader),
        "1.3.6.1.5.5.7.1.8" => autonomous_systems(&mut reader).ok(),
        "1.2.643.100.111" => Some(lossy(&reader.universal(tag::UTF8_STRING).ok()?.octets().ok()?)),
        // The extension has no contents.
        "1.3.6.1.5.5.7.48.1.5" => reader.universal(tag::NULL).ok().map(|_| String::new()),
        POISON => reader.universal(tag::NULL).ok().map(|_| "NULL".to_owned()),
        "1.3.6.1.5.5.7.1.1" | "1.3.6.1.5.5.7.1.11" => access(&mut reader).ok().map(or_empty),
        "1.3.6.1.5.5.7.1.14" => proxy_information(&mut reader).ok(),
        TIMESTAMPS | STATUS_TIMESTAMPS => {
            let lines: Vec<_> = timestamps?.iter().map(timestamp_words).collect();
            Some(lines.join("\n"))
        }
        _ => None,
    }
}

/// Names of CRL reason codes (RFC 5280 section 5.3.1).
const REVOCATIONS: [Option<&str>; 11] = [
    Some("Unspecified"),
    Some("Key Compromise"),
    Some("CA Compromise"),
    Some("Affiliation Changed"),
    Some("Superseded"),
    Some("Cessation Of Operation"),
    Some("Certificate Hold"),
    None,
    Some("Remove From CRL"),
    Some("Privilege Withdrawn"),
    Some("AA Compromise"),
];

const KEY_USAGES: [&str; 9] = [
    "Digital Signature",
    "Non Repudiation",
    "Key Encipherment",
    "Data Encipherment",
    "Key Agreement",
    "Certificate Sign",
    "CRL Sign",
    "Encipher Only",
    "Decipher Only",
];

const NETSCAPE_TYPES: [&str; 8] = [
    "SSL Client",
    "SSL Server",
    "S/MIME",
    "Object Signing",
    "Unused",
    "SSL CA",
    "S/MIME CA",
    "Object Signing CA",
];

/// The names of the bits that are set.
fn flags(reader: &mut Reader<'_>, names: &[&str]) -> Option<String> {
    let (bits, _) = reader.universal(tag::BIT_STRING).ok()?.bits().ok()?;
    let is_set = |i: usize| bits.get(i / 8).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0);
    let set = names.iter().enumerate().filter(|(i, _)| is_set(*i)).map(|(_, name)| *name);
    let set: Vec<_> = set.collect();
    some_of(&set)
}

/// Joins words with commas; `None` without words.
fn some_of<T: AsRef<str>>(words: &[T]) -> Option<String> {
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The text of a list, or a placeholder for an empty one.
pub(super) fn or_empty(text: String) -> String {
    if text.is_empty() { "<EMPTY>\n".to_owned() } else { text }
}

/// Parses a number and returns its text.
fn number(reader: &mut Reader<'_>) -> Option<String> {
    let octets = reader.universal(tag::INTEGER).ok()?.octets().ok()?;
    (!octets.is_empty()).then(|| integer_text(&octets))
}

/// An integer in decimal, or, from 128 bits on, in hexadecimal.
fn integer_text(octets: &[u8]) -> String {
    let sign = if octets.first().is_some_and(|octet| octet & 0x80 != 0) { "-" } else { "" };
    let magnitude = magnitude(octets);
    if magnitude.len() > 16 || magnitude.len() == 16 && magnitude[0] & 0x80 != 0 {
        return format!("{sign}0x{}", hex(&magnitude).replace(':', ""));
    }
    let value = magnitude.iter().fold(0_u128, |value, octet| value << 8 | u128::from(*octet));
    format!("{sign}{value}")
}

/// TLS features that a server must support (RFC 7633).
fn features(reader: &mut Reader<'_>) -> Option<String> {
    let mut list = reader.sequence().ok()?;
    let mut all = Vec::new();
    while !list.is_empty() {
        all.push(match list.universal(tag::INTEGER).ok()?.integer().ok()?.to_i64()? {
            5 => "status_request".to_owned(),
            17 => "status_request_v2".to_owned(),
            other => other.to_string(),
        });
    }
    some_of(&all)
}

/// Autonomous system numbers and routing domain identifiers (RFC 3779 section 3.2.3).
fn autonomous_systems(reader: &mut Reader<'_>) -> Result<String> {
    let mut members = reader.sequence()?;
    let mut text = String::new();
    for (tag, title) in [(0, "Autonomous System Numbers"), (1, "Routing Domain Identifiers")] {
        let Some(choice) = members.optional(Class::Context, tag)? else { continue };
        let _ = writeln!(text, "{title}:");
        let choice = choice.explicit()?;
        if choice.tag == tag::NULL {
            text.push_str("  inherit\n");
            continue;
        }
        let mut list = universal(choice, tag::SEQUENCE)?.items();
        let of = |element: &Element<'_>| Ok(integer_text(&element.octets()?));
        while !list.is_empty() {
            let element = list.element()?;
            if element.tag == tag::SEQUENCE {
                let mut ends = element.items();
                let (least, most) = (of(&ends.element()?)?, of(&ends.element()?)?);
                let _ = writeln!(text, "  {least}-{most}");
            } else {
                let _ = writeln!(text, "  {}", of(&element)?);
            }
        }
    }
    Ok(text)
}

/// Policy mappings (RFC 5280 section 4.2.1.5).
fn policy_mappings(reader: &mut Reader<'_>) -> Result<String> {
    let mut list = reader.universal(tag::SEQUENCE)?.members()?;
    let mut all = Vec::new();
    while !list.is_empty() {
        let mut pair = list.sequence()?;
        let issuer = long_name(pair.universal(tag::OID)?.oid()?);
        let subject = long_name(pair.universal(tag::OID)?.oid()?);
        all.push(format!("{issuer}:{subject}"));
    }
    some_of(&all).ok_or(DerError::BadValue)
}

/// Octets in hexadecimal, separated by colons.
fn hex(octets: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::with_capacity(3 * octets.len());
    for (index, octet) in octets.iter().enumerate() {
        if index > 0 {
            text.push(':');
        }
        for digit in [octet >> 4, octet & 0xf] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

pub(super) fn lossy(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

pub(super) fn long_name(identifier: &[u8]) -> String {
    oid::names(identifier).map_or_else(|| oid::dotted(identifier), |names| names.long.to_owned())
}

fn basic_constraints(reader: &mut Reader<'_>) -> Option<String> {
    let mut members = reader.sequence().ok()?;
    let ca = match members.optional(Class::Universal, tag::BOOLEAN).ok()? {
        Some(ca) => ca.boolean().ok()?,
        None => false,
    };
    let mut text = format!("CA:{}", if ca { "TRUE" } else { "FALSE" });
    if let Some(len) = members.optional(Class::Universal, tag::INTEGER).ok()? {
        let _ = write!(text, ", pathlen:{}", len.integer().ok()?.to_i64()?);
    }
    Some(text)
}

fn authority_key(reader: &mut Reader<'_>) -> Result<String> {
    let mut members = reader.sequence()?;
    let key = members.optional(Class::Context, 0)?.map(|key| key.octets()).transpose()?;
    let issuer = members.optional(Class::Context, 1)?;
    let serial = members.optional(Class::Context, 2)?;
    let mut lines = Vec::new();
    if let Some(key) = key {
        let prefix = if issuer.is_some() || serial.is_some() { "keyid:" } else { "" };
        lines.push(format!("{prefix}{}", hex(&key)));
    }
    if let Some(issuer) = issuer {
        lines.extend(names_of(&mut issuer.items(), Printer::Values)?);
    }
    if let Some(serial) = serial {
        lines.push(format!("serial:{}", hex(&magnitude(&serial.octets()?))));
    }
    Ok(lines.join("\n"))
}

/// The absolute value of an integer, without leading zeros.
fn magnitude(octets: &[u8]) -> Vec<u8> {
    let is_negative = octets.first().is_some_and(|first| first & 0x80 != 0);
    let mut all = octets.to_vec();
    if is_negative {
        let mut carry = true;
        for octet in all.iter_mut().rev() {
            (*octet, carry) = (!*octet).overflowing_add(u8::from(carry));
        }
    }
    let zeros = all.iter().take_while(|octet| **octet == 0).count();
    all.drain(..zeros.min(all.len().saturating_sub(1)));
    all
}

fn proxy_information(reader: &mut Reader<'_>) -> Result<String> {
    let mut members = reader.sequence()?;
    let length = members.optional(Class::Universal, tag::INTEGER)?;
    let length = match length.map(|length| length.octets()).transpose()? {
        Some(length) => {
            let sign = if length.first().is_some_and(|first| first & 0x80 != 0) { "-" } else { "" };
            format!("{sign}{}", hex(&magnitude(&length)).replace(':', ""))
        }
        None => "infinite".to_owned(),
    };
    let mut policy = members.sequence()?;
    let language = long_name(policy.universal(tag::OID)?.oid()?);
    let mut text = format!("Path Length Constraint: {length}\nPolicy Language: {language}");
    if let Some(policy) = policy.optional(Class::Universal, tag::OCTET_STRING)? {
        let _ = write!(text, "\nPolicy Text: {}", lossy(&policy.octets()?));
    }
    Ok(text)
}

fn policies(reader: &mut Reader<'_>) -> Result<String> {
    let mut list = reader.universal(tag::SEQUENCE)?.items();
    let mut all = Vec::new();
    while !list.is_empty() {
        let mut policy = list.sequence()?;
        let name = long_name(policy.universal(tag::OID)?.oid()?);
        let mut text = format!("Policy: {name}");
        if !policy.is_empty() {
            let mut qualifiers = policy.universal(tag::SEQUENCE)?.items();
            while !qualifiers.is_empty() {
                text.push('\n');
                qualifier(&mut qualifiers.sequence()?, &mut text)?;
            }
        }
        all.push(text);
    }
    Ok(all.join("\n"))
}

fn qualifier(members: &mut Reader<'_>, text: &mut String) -> Result<()> {
    let identifier = members.universal(tag::OID)?.oid()?;
    match &*oid::dotted(identifier) {
        "1.3.6.1.5.5.7.2.1" => {
            let _ = write!(text, "  CPS: {}", lossy(before_nul(&members.element()?.octets()?)));
        }
        "1.3.6.1.5.5.7.2.2" => {
            text.push_str("  User Notice:\n");
            let mut notice = members.universal(tag::SEQUENCE)?.items();
            while !notice.is_empty() {
                let part = notice.element()?;
                if part.tag == tag::SEQUENCE {
                    let mut reference = part.items();
                    let organization = lossy(before_nul(&reference.element()?.octets()?));
                    let mut numbers = Vec::new();
                    let mut list = reference.universal(tag::SEQUENCE)?.items();
                    while !list.is_empty() {
                        numbers.push(list.element()?.integer()?.to_i64().unwrap_or_default());
                    }
                    let plural = if numbers.len() == 1 { "" } else { "s" };
                    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                    let numbers = numbers.join(", ");
                    let _ = write!(
                        text,
                        "    Organization: {organization}\n    Number{plural}: {numbers}"
                    );
                    if !notice.is_empty() {
                        text.push('\n');
                    }
                } else {
                    let octets = part.octets()?;
                    let shown = before_nul(&octets);
                    let explicit = match part.tag {
                        tag::BMP_STRING => wide(shown),
                        _ => lossy(shown),
                    };
                    let _ = write!(text, "    Explicit Text: {explicit}");
                }
            }
        }
        _ => {
            let _ = write!(text, "  Unknown Qualifier: {}", long_name(identifier));
        }
    }
    Ok(())
}

/// As in OpenSSL, policy strings end at the first NUL: so Latin text with two octets per character
/// is empty.
fn before_nul(octets: &[u8]) -> &[u8] {
    octets.split(|octet| *octet == 0).next().unwrap_or_default()
}

/// Text with two octets per character, converted octet by octet like in OpenSSL.
fn wide(octets: &[u8]) -> String {
    octets.iter().map(|octet| char::from(*octet)).collect()
}

fn usage_period(reader: &mut Reader<'_>) -> Option<String> {
    let mut members = reader.sequence().ok()?;
    let time = |element: Element<'_>| {
        let text = lossy(&element.octets().ok()?);
        let part = |from: usize, to: usize| text.get(from..to).map(str::to_owned);
        let month = part(4, 6)?.parse::<usize>().ok()?.checked_sub(1)?;
        let day = part(6, 8)?.parse::<u8>().ok()?;
        let (year, h, m, s) = (part(0, 4)?, part(8, 10)?, part(10, 12)?, part(12, 14)?);
        Some(format!("{} {day:>2} {h}:{m}:{s} {year} GMT", MONTHS.get(month)?))
    };
    let mut text = String::new();
    if let Some(from) = members.optional(Class::Context, 0).ok()? {
        let _ = write!(text, "Not Before: {}", time(from)?);
    }
    if let Some(until) = members.optional(Class::Context, 1).ok()? {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}Not After: {}", time(until)?);
    }
    Some(text)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The timestamps of a list (RFC 6962 section 3.3), which is an OCTET STRING in the extension.
fn timestamps(value: &[u8]) -> Result<Vec<Timestamp>> {
    let list = Reader::new(value).universal(tag::OCTET_STRING)?.octets()?;
    let (len, mut rest) = list.split_first_chunk().ok_or(DerError::BadValue)?;
    if usize::from(u16::from_be_bytes(*len)) != rest.len() {
        return Err(DerError::BadValue);
    }
    let mut all = Vec::new();
    while let Some(sct) = vector(&mut rest) {
        let mut sct = sct;
        let Some(timestamp) = timestamp(&mut sct) else { break };
        all.push(timestamp);
    }
    Ok(all)
}

/// Takes bytes that are preceded by a length of two octets.
fn vector<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, behind) = rest.split_first_chunk()?;
    let (bytes, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    *rest = behind;
    Some(bytes)
}

fn timestamp(sct: &mut &[u8]) -> Option<Timestamp> {
    let (version, rest) = sct.split_first()?;
    let (log_id, rest) = rest.split_at_checked(32)?;
    let (millis, mut rest) = rest.split_first_chunk()?;
    let extensions = vector(&mut rest)?.to_vec();
    let [hash, algorithm, ..] = *rest else { return None };
    let mut rest = &rest[2..];
    Some(Timestamp {
        version: *version,
        log_id: log_id.to_vec(),
        millis: u64::from_be_bytes(*millis),
        extensions,
        hash,
        algorithm,
        signature: vector(&mut rest)?.to_vec(),
    })
}

fn timestamp_words(sct: &Timestamp) -> String {
    let algorithm = match (sct.hash, sct.algorithm) {
        (4, 1) => "sha256WithRSAEncryption",
        (4, 3) => "ecdsa-with-SHA256",
        _ => "UNDEF",
    };
    let extensions =
        if sct.extensions.is_empty() { "none".to_owned() } else { block(&sct.extensions) };
    format!(
        "Signed Certificate Timestamp:\n    Version   : v{} (0x{:x})\n    Log ID    : {}\n    \
         Timestamp : {}\n    Extensions: {extensions}\n    Signature : {algorithm}\n                {}",
        sct.version + 1,
        sct.version,
        block(&sct.log_id),
        date(sct.millis),
        block(&sct.signature),
    )
}

/// Octets in lines of sixteen.
fn block(octets: &[u8]) -> String {
    let lines = octets.chunks(16).map(hex).collect::<Vec<_>>();
    lines.join(":\n                ")
}

/// Formats milliseconds since 1970 as `Dec 17 02:17:28.336 2019 GMT`.
fn date(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days as i64);
    let (seconds, thousandths) = (rest / 1000, rest % 1000);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let month = MONTHS.get(month as usize - 1).unwrap_or(&"");
    format!("{month} {day:>2} {h:02}:{m:02}:{s:02}.{thousandths:03} {year} GMT")
}

/// Year, month and day of a day number counted from 1970-01-01, in the proleptic Gregorian
/// calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dotted: &str, value: &[u8]) -> String {
        words(dotted, value, None).unwrap()
    }

    #[test]
    fn extensions_in_words() {
        assert_eq!(of("2.5.29.15", &[3, 2, 5, 0xa0]), "Digital Signature, Key Encipherment");
        assert_eq!(of("2.5.29.14", &[4, 2, 0xab, 1]), "AB:01");
        assert_eq!(of("2.5.29.35", &[0x30, 4, 0x80, 2, 0xab, 1]), "AB:01");
        assert_eq!(of("2.5.29.19", &[0x30, 6, 1, 1, 0xff, 2, 1, 0]), "CA:TRUE, pathlen:0");
        assert_eq!(
            of("2.5.29.17", &[0x30, 9, 0x82, 1, b'a', 0x87, 4, 10, 0, 0, 1]),
            "DNS:a, IP Address:10.0.0.1"
        );
        let usage = [0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 1];
        assert_eq!(of("2.5.29.37", &usage), "TLS Web Server Authentication");
        assert_eq!(of("2.5.29.54", &[2, 1, 3]), "3");
        assert_eq!(words("1.2.3", b"x", None), None);
        // Empty lists.
        assert_eq!(of("2.5.29.17", &[0x30, 0]), "<EMPTY>\n");
        assert_eq!(of("2.5.29.28", &[0x30, 0]), "<EMPTY>\n");
        assert_eq!(of("1.3.6.1.5.5.7.1.1", &[0x30, 0]), "<EMPTY>\n");
        for (identifier, value) in
            [("2.5.29.15", &[3, 1, 0][..]), ("2.5.29.37", &[0x30, 0]), ("2.5.29.36", &[0x30, 0])]
        {
            assert_eq!(words(identifier, value, None), None, "{identifier}");
        }
        assert_eq!(words(TIMESTAMPS, &[4, 2, 0, 0], Some(&[])).as_deref(), Some(""));
        assert_eq!(words(TIMESTAMPS, &[4, 1, 0], None), None);
        assert_eq!(of("2.5.29.20", &[2, 3, 1, 2, 3]), "66051");
        assert_eq!(of("2.5.29.21", &[10, 1, 9]), "Privilege Withdrawn");
        assert_eq!([of("2.5.29.21", &[10, 1, 7]), of("2.5.29.21", &[10, 1, 99])], ["7", "99"]);
        assert_eq!(
            of("2.5.29.28", &[0x30, 6, 0x81, 1, 0xff, 0x84, 1, 0xff]),
            "Only User Certificates\nIndirect CRL\n"
        );
        assert_eq!(of("2.5.29.33", &[0x30, 8, 0x30, 6, 6, 1, 42, 6, 1, 43]), "ISO Member Body:org");
        assert_eq!(of(POISON, &[5, 0]), "NULL");
        assert_eq!(of("1.3.6.1.5.5.7.48.1.5", &[5, 0]), "");
        assert_eq!(of("1.3.6.1.5.5.7.1.24", &[0x30, 6, 2, 1, 5, 2, 1, 99]), "status_request, 99");
        let systems = [0x30, 15, 0xa0, 13, 0x30, 11, 2, 1, 5, 0x30, 6, 2, 1, 7, 2, 1, 9];
        assert_eq!(of("1.3.6.1.5.5.7.1.8", &systems), "Autonomous System Numbers:\n  5\n  7-9\n");
        let mut wide = vec![0x30, 23, 0xa0, 21, 0x30, 19, 2, 17, 1];
        wide.resize(25, 0);
        assert_eq!(
            of("1.3.6.1.5.5.7.1.8", &wide),
            format!("Autonomous System Numbers:\n  0x01{}\n", "00".repeat(16))
        );
        assert_eq!(date(1_576_549_048_336), "Dec 17 02:17:28.336 2019 GMT");
    }

    #[test]
    fn serial_numbers_of_authorities_have_no_leading_zeros() {
        let serial = |octets: &[u8]| {
            let len = octets.len() as u8;
            let value = [&[0x30, len + 6, 0x80, 2, 0xab, 1, 0x82, len], octets].concat();
            of("2.5.29.35", &value).replace("keyid:AB:01\nserial:", "")
        };
        assert_eq!(serial(&[0, 0x9d, 0x2e]), "9D:2E");
        assert_eq!(serial(&[0x1d, 0]), "1D:00");
        assert_eq!([serial(&[0]), serial(&[0xff, 0]), serial(&[0x80])], ["00", "01:00", "80"]);
    }

    #[test]
    fn proxy_certificates_have_a_length_and_a_language() {
        let language = [6, 8, 0x2b, 6, 1, 5, 5, 7, 0x15, 1];
        let value = [&[0x30, 12, 0x30, 10], &language[..]].concat();
        let text = of("1.3.6.1.5.5.7.1.14", &value);
        assert_eq!(text, "Path Length Constraint: infinite\nPolicy Language: Inherit all");
        let value = [&[0x30, 19, 2, 1, 10, 0x30, 14], &language[..], &[4, 2, b'o', b'k']].concat();
        let text = of("1.3.6.1.5.5.7.1.14", &value);
        let expected = "Path Length Constraint: 0A\nPolicy Language: Inherit all\nPolicy Text: ok";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_text_of_a_policy_ends_at_the_first_nul() {
        let with = |tag: u8, text: [u8; 2]| {
            let mut value =
                vec![0x30, 0x1a, 0x30, 0x18, 6, 2, 0x2a, 3, 0x30, 0x12, 0x30, 0x10, 6, 8];
            value.extend([0x2b, 6, 1, 5, 5, 7, 2, 2, 0x30, 4, tag, 2]);
            value.extend(text);
            of("2.5.29.32", &value)
        };
        let policy = "Policy: 1.2.3\n  User Notice:\n    Explicit Text: ";
        assert_eq!(with(0x1a, *b"no"), format!("{policy}no"));
        assert_eq!(with(0x1a, *b"n\0"), format!("{policy}n"));
        assert_eq!(with(0x1e, *b"\0n"), policy);
        assert_eq!(with(0x1e, *b"no"), format!("{policy}no"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            for dotted in ["2.5.29.14", "2.5.29.15", "2.5.29.16", "2.5.29.17", "2.5.29.19", "2.5.29.30", "2.5.29.31", "2.5.29.32", "2.5.29.35", "2.5.29.36", "2.5.29.37", "2.5.29.54", "1.3.6.1.5.5.7.1.1", "1.3.6.1.5.5.7.1.14"] {
                let _ = words(dotted, &bytes, None);
            }
            let _ = timestamps(&bytes);
            let _ = extensions(&bytes);
        }
    }
}
