//! The logged extensions of a certificate: alternative names and basic constraints.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{AlternativeNames, BasicConstraints, Name, Weird, universal};
use crate::der::{Class, DerError, Element, Reader, Result, tag};

/// Contents octets of the object identifier of subject alternative names.
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];

/// Contents octets of the object identifier of basic constraints.
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];

/// Maximum number of alternative names of a kind that are stored: one more than the log shows.
const MAX_NAMES: usize = 501;

/// The extensions that are parsed, in certificate order: identifier and value.
#[derive(Debug, Default)]
pub(crate) struct Extensions<'a> {
    known: Vec<(&'a [u8], Cow<'a, [u8]>)>,
}

/// The facts from extensions.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Those of the last extension of this kind that parses.
    pub(crate) alternative_names: Option<AlternativeNames>,
    /// Those of the last extension of this kind that parses.
    pub(crate) basic_constraints: Option<BasicConstraints>,
    /// The first extension of alternative names, in the form that [`hosts`] parses: empty if the
    /// extension does not parse, `None` if the certificate has no such extension.
    pub(crate) host_names: Option<Vec<u8>>,
}

impl<'a> Extensions<'a> {
    /// Parses a SEQUENCE of extensions (RFC 5280 section 4.1).
    pub(crate) fn read(list: Element<'a>) -> Result<Self> {
        let mut list = universal(list, tag::SEQUENCE)?.items();
        let mut known = Vec::new();
        while !list.is_empty() {
            let mut members = list.sequence()?;
            let identifier = members.universal(tag::OID)?.oid()?;
            if let Some(critical) = members.optional(Class::Universal, tag::BOOLEAN)? {
                critical.boolean()?;
            }
            let value = members.universal(tag::OCTET_STRING)?.octets()?;
            members.finish()?;
            if identifier == ALTERNATIVE_NAMES || identifier == BASIC_CONSTRAINTS {
                known.push((identifier, value));
            }
        }
        Ok(Self { known })
    }

    /// Parses the values, and reports their weirds.
    pub(crate) fn facts(&self, weirds: &mut Vec<Weird>) -> Facts {
        let mut facts = Facts::default();
        for (identifier, value) in &self.known {
            if *identifier == BASIC_CONSTRAINTS {
                match basic_constraints(value) {
                    Ok(constraints) => facts.basic_constraints = Some(constraints),
                    Err(_) => weirds.push(Weird::BasicConstraints),
                }
                continue;
            }
            let names = general_names(value, weirds);
            if facts.host_names.is_none() {
                facts.host_names = Some(names.as_ref().map_or(Vec::new(), |_| value.to_vec()));
            }
            match names {
                Ok(names) => facts.alternative_names = Some(names),
                Err(_) => weirds.push(Weird::AlternativeNames),
            }
        }
        facts
    }
}

/// Parses BasicConstraints (RFC 5280 section 4.2.1.9).
fn basic_constraints(value: &[u8]) -> Result<BasicConstraints> {
    let mut members = Reader::new(value).sequence()?;
    let ca = match members.optional(Class::Universal, tag::BOOLEAN)? {
        Some(ca) => ca.boolean()?,
        None => false,
    };
    let path_len = match members.optional(Class::Universal, tag::INTEGER)? {
        // The column only has values that fit into a signed 32-bit integer.
        Some(path_len) => {
            let value = path_len.integer()?.to_i64().unwrap_or(-1);
            let [a, b, c, d, ..] = value.to_le_bytes();
            Some(i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned())
        }
        None => None,
    };
    members.finish()?;
    Ok(BasicConstraints { ca, path_len })
}

/// The host names in an extension of alternative names. They are parsed each time, because separate
/// strings need many times the memory.
pub(super) fn hosts(value: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let list = Reader::new(value).universal(tag::SEQUENCE);
    let mut list = list.map_or(Reader::new(&[]), |list| list.items());
    std::iter::from_fn(move || list.element().ok())
        .filter(|name| name.class == Class::Context && name.tag == 2)
        .filter_map(|name| name.octets().ok())
}

/// Parses GeneralNames (RFC 5280 section 4.2.1.6).
fn general_names(value: &[u8], weirds: &mut Vec<Weird>) -> Result<AlternativeNames> {
    let mut list = Reader::new(value).universal(tag::SEQUENCE)?.items();
    let mut names = AlternativeNames::default();
    let mut lengths = Vec::new();
    while !list.is_empty() {
        general_name(&list.element()?, &mut names, &mut lengths)?;
    }
    weirds.extend(lengths.into_iter().map(Weird::AddressLength));
    Ok(names)
}

/// Checks a GeneralName.
pub(crate) fn check_general_name(name: &Element<'_>) -> Result<()> {
    general_name(name, &mut AlternativeNames::default(), &mut Vec::new())
}

/// Parses a GeneralName. If an address has neither four nor sixteen bytes, its length is added to
/// `lengths`.
fn general_name(
    name: &Element<'_>,
    names: &mut AlternativeNames,
    lengths: &mut Vec<usize>,
) -> Result<()> {
    if name.class != Class::Context {
        return Err(DerError::UnexpectedTag);
    }
    names.other |= matches!(name.tag, 0 | 3 | 4 | 5 | 8);
    match name.tag {
        0 => other_name(name)?,
        1 => keep(&mut names.email, name.octets()?.into_owned()),
        2 => keep(&mut names.dns, name.octets()?.into_owned()),
        3 => drop(name.members()?),
        4 => drop(Name::from_element(&universal(name.explicit()?, tag::SEQUENCE)?)?),
        5 => party_name(name)?,
        6 => keep(&mut names.uri, name.octets()?.into_owned()),
        7 => {
            let octets = name.octets()?;
            let all = names.ip.get_or_insert_default();
            match address(&octets) {
                Some(address) => keep(all, address),
                None => keep(lengths, octets.len()),
            }
        }
        8 => drop(name.oid()?),
        _ => return Err(DerError::UnexpectedTag),
    }
    Ok(())
}

/// Adds an item to a list that is not full.
fn keep<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MAX_NAMES {
        list.push(item);
    }
}

/// Checks an OtherName: an identifier and an explicitly tagged value.
fn other_name(name: &Element<'_>) -> Result<()> {
    let mut members = name.members()?;
    members.universal(tag::OID)?.oid()?;
    let value = members.element()?;
    if value.class != Class::Context || value.tag != 0 {
        return Err(DerError::UnexpectedTag);
    }
    value.explicit()?;
    members.finish()
}

/// Checks an EDIPartyName: explicitly tagged assigner, which is optional, and party.
fn party_name(name: &Element<'_>) -> Result<()> {
    let mut members = name.members()?;
    if let Some(assigner) = members.optional(Class::Context, 0)? {
        assigner.explicit()?;
    }
    let party = members.element()?;
    if party.class != Class::Context || party.tag != 1 {
        return Err(DerError::UnexpectedTag);
    }
    party.explicit()?;
    members.finish()
}

/// An address of four or sixteen octets; `None` for other lengths.
fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(octets).ok().map(|v6| Ipv6Addr::from(v6).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternative_names_by_kind() {
        let mut weirds = Vec::new();
        let der = [
            0x30, 0x14, 0x82, 0x01, b'd', 0x81, 0x01, b'm', 0x86, 0x01, b'u', 0x87, 0x04, 10, 0, 0,
            1, 0x87, 0x03, 1, 2, 3,
        ];
        let names = general_names(&der, &mut weirds).unwrap();
        assert_eq!(names.dns, [b"d"]);
        assert_eq!(names.email, [b"m"]);
        assert_eq!(names.uri, [b"u"]);
        assert_eq!(names.ip, Some(vec![IpAddr::from([10, 0, 0, 1])]));
        assert_eq!(weirds, [Weird::AddressLength(3)]);
        let ip = |der: &[u8]| general_names(der, &mut Vec::new()).unwrap().ip;
        assert_eq!(ip(&[0x30, 0x03, 0x82, 0x01, b'd']), None);
        assert_eq!(ip(&[0x30, 0x05, 0x87, 0x03, 1, 2, 3]), Some(vec![]));
        assert!(general_names(&[0x30, 0x02, 0x89, 0x00], &mut weirds).is_err());
    }

    #[test]
    fn hosts_beyond_the_stored_names() {
        let mut der = vec![0x30, 0x82, 0x0b, 0xb8];
        for i in 0..600_u32 {
            der.extend([0x82, 3, b'h', (i / 100) as u8, (i % 100) as u8]);
        }
        // A constructed string, and a mail address.
        der[4..14].copy_from_slice(&[0xa2, 5, 4, 3, b'h', b'i', b'.', 0x81, 1, b'h']);
        let names = general_names(&der, &mut Vec::new()).unwrap();
        assert_eq!(names.dns.len(), MAX_NAMES);
        assert_eq!(hosts(&der).count(), 599);
        assert_eq!(hosts(&der).next().unwrap(), &b"hi."[..]);
        assert_eq!(hosts(&der).last().unwrap(), &[b'h', 5, 99][..]);
        assert_eq!(hosts(&[]).count(), 0);
    }

    #[test]
    fn basic_constraints_forms() {
        let read = |der: &[u8]| {
            basic_constraints(der).map(|constraints| (constraints.ca, constraints.path_len))
        };
        assert_eq!(read(&[0x30, 0x00]), Ok((false, None)));
        assert_eq!(read(&[0x30, 0x06, 0x01, 0x01, 0xff, 0x02, 0x01, 0x03]), Ok((true, Some(3))));
        assert_eq!(read(&[0x30, 0x03, 0x02, 0x01, 0xff]), Ok((false, Some(u64::MAX))));
        assert!(read(&[0x30, 0x03, 0x04, 0x01, 0x00]).is_err());
    }
}
