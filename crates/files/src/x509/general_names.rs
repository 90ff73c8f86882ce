//! General names in certificate extensions, as text: alternative names, CRL distribution points, information access.

use std::fmt::Write;

use super::constraints::address;
use super::name::Name;
use super::text::{long_name, lossy, or_empty};
use super::universal;
use crate::der::{Class, DerError, Element, Reader, Result, tag};
use crate::oid;

/// The two forms in which OpenSSL prints general names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Printer {
    /// All names on one line: octets unchanged; a zero octet is an error.
    Values,
    /// One name per line: octets that are not printable ASCII become dots.
    Lines,
}

impl Printer {
    fn text(self, octets: &[u8]) -> Result<String> {
        match self {
            Self::Values if octets.contains(&0) => Err(DerError::BadValue),
            Self::Values => Ok(lossy(octets)),
            Self::Lines => Ok(octets.iter().map(|octet| printable(*octet)).collect()),
        }
    }

    fn directory(self, name: &Element<'_>) -> Result<String> {
        let name = Name::from_element(&universal(*name, tag::SEQUENCE)?)?;
        Ok(match self {
            Self::Values => name.slashed(),
            Self::Lines => name.plain_line(),
        })
    }
}

fn printable(octet: u8) -> char {
    match octet {
        b' '..=b'~' | b'\n' | b'\r' => char::from(octet),
        _ => '.',
    }
}

/// The text of each general name in a list (RFC 5280 section 4.2.1.6).
pub(super) fn names_of(list: &mut Reader<'_>, printer: Printer) -> Result<Vec<String>> {
    let mut all = Vec::new();
    while !list.is_empty() {
        all.push(general_name(&list.element()?, printer)?);
    }
    Ok(all)
}

pub(super) fn general_name(name: &Element<'_>, printer: Printer) -> Result<String> {
    Ok(match name.tag {
        0 => other_name(name, printer)?,
        1 => format!("email:{}", printer.text(&name.octets()?)?),
        2 => format!("DNS:{}", printer.text(&name.octets()?)?),
        3 => "X400Name:<unsupported>".to_owned(),
        4 => format!("DirName:{}", printer.directory(&name.explicit()?)?),
        5 => "EdiPartyName:<unsupported>".to_owned(),
        6 => format!("URI:{}", printer.text(&name.octets()?)?),
        7 => format!("IP Address:{}", address(&name.octets()?)),
        _ => format!("Registered ID:{}", long_name(name.oid()?)),
    })
}

fn other_name(name: &Element<'_>, printer: Printer) -> Result<String> {
    let mut members = name.members()?;
    let identifier = members.universal(tag::OID)?.oid()?;
    let value = members.element()?.explicit()?;
    let kind = match &*oid::dotted(identifier) {
        "1.3.6.1.4.1.311.20.2.3" => "UPN".to_owned(),
        "1.3.6.1.5.5.7.8.5" => "XmppAddr".to_owned(),
        "1.3.6.1.5.5.7.8.7" => "SRVName".to_owned(),
        "1.3.6.1.5.5.7.8.8" => "NAIRealm".to_owned(),
        "1.3.6.1.5.5.7.8.9" => "SmtpUTF8Mailbox".to_owned(),
        _ if printer == Printer::Lines => return Ok("othername:<unsupported>".to_owned()),
        _ => long_name(identifier),
    };
    let text = match value.tag {
        tag::IA5_STRING | tag::UTF8_STRING if value.class == Class::Universal => {
            printer.text(&value.octets()?)?
        }
        _ => "<unsupported>".to_owned(),
    };
    let colon = if printer == Printer::Values { "::" } else { ":" };
    Ok(format!("othername: {kind}{colon}{text}"))
}

/// Authority or subject information access (RFC 5280 section 4.2.2).
pub(super) fn access(reader: &mut Reader<'_>) -> Result<String> {
    let mut list = reader.universal(tag::SEQUENCE)?.items();
    let mut lines = Vec::new();
    while !list.is_empty() {
        let mut description = list.sequence()?;
        let method = long_name(description.universal(tag::OID)?.oid()?);
        lines.push(format!(
            "{method} - {}",
            general_name(&description.element()?, Printer::Values)?
        ));
    }
    Ok(lines.join("\n"))
}

/// CRL distribution points (RFC 5280 section 4.2.1.13).
pub(super) fn distribution_points(reader: &mut Reader<'_>) -> Result<String> {
    let mut list = reader.universal(tag::SEQUENCE)?.items();
    let mut points = Vec::new();
    while !list.is_empty() {
        let mut point = list.sequence()?;
        let mut text = String::new();
        if let Some(name) = point.optional(Class::Context, 0)? {
            text.push_str(&point_name(&name)?);
        }
        if let Some(reasons) = point.optional(Class::Context, 1)? {
            text.push_str(&reasons_of("Reasons", &reasons)?);
        }
        if let Some(issuer) = point.optional(Class::Context, 2)? {
            text.push_str("CRL Issuer:\n");
            text.push_str(&indented(&names_of(&mut issuer.items(), Printer::Lines)?));
        }
        points.push(text);
    }
    Ok(points.join("\n"))
}

/// The name of a distribution point.
fn point_name(name: &Element<'_>) -> Result<String> {
    let name = name.explicit()?;
    Ok(match name.tag {
        0 => {
            let names = names_of(&mut name.items(), Printer::Lines)?;
            format!("Full Name:\n{}", indented(&names))
        }
        _ => "Relative Name:\n".to_owned(),
    })
}

/// Reason flags of a CRL, as text.
fn reasons_of(title: &str, reasons: &Element<'_>) -> Result<String> {
    let (bits, _) = reasons.bits()?;
    let is_set = |i: usize| bits.get(i / 8).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0);
    let set: Vec<_> =
        REASONS.iter().enumerate().filter(|(i, _)| is_set(*i)).map(|(_, r)| *r).collect();
    Ok(format!("{title}:\n  {}", set.join(", ")))
}

/// The issuing distribution point of a CRL (RFC 5280 section 5.2.5).
pub(super) fn issuing_point(reader: &mut Reader<'_>) -> Result<String> {
    let mut members = reader.sequence()?;
    let mut text = String::new();
    if let Some(name) = members.optional(Class::Context, 0)? {
        text.push_str(&point_name(&name)?);
    }
    let mut says = |members: &mut Reader<'_>, tag, words: &str| -> Result<()> {
        if let Some(flag) = members.optional(Class::Context, tag)?
            && flag.octets()?.iter().any(|octet| *octet != 0)
        {
            let _ = writeln!(text, "{words}");
        }
        Ok(())
    };
    says(&mut members, 1, "Only User Certificates")?;
    says(&mut members, 2, "Only CA Certificates")?;
    let reasons = members.optional(Class::Context, 3)?;
    says(&mut members, 4, "Indirect CRL")?;
    if let Some(reasons) = reasons {
        text.push_str(&reasons_of("Only Some Reasons", &reasons)?);
        text.push('\n');
    }
    if let Some(flag) = members.optional(Class::Context, 5)?
        && flag.octets()?.iter().any(|octet| *octet != 0)
    {
        text.push_str("Only Attribute Certificates\n");
    }
    Ok(or_empty(text))
}

const REASONS: [&str; 9] = [
    "Unused",
    "Key Compromise",
    "CA Compromise",
    "Affiliation Changed",
    "Superseded",
    "Cessation Of Operation",
    "Certificate Hold",
    "Privilege Withdrawn",
    "AA Compromise",
];

/// Names, each on an indented line.
pub(super) fn indented(names: &[String]) -> String {
    names.iter().map(|name| format!("  {name}")).collect::<Vec<_>>().join("\n")
}
