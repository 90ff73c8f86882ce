//! Certificates in DER (RFC 5280 section 4.1, X.690): the fields that chain verification needs.

/// A reader of consecutive DER elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Der<'a>(pub(super) &'a [u8]);

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// The element with tag and length.
    pub(super) whole: &'a [u8],
}

pub(super) mod tag {
    pub(in super::super) const BOOLEAN: u8 = 0x01;
    pub(in super::super) const INTEGER: u8 = 0x02;
    pub(in super::super) const BIT_STRING: u8 = 0x03;
    pub(in super::super) const OCTET_STRING: u8 = 0x04;
    pub(in super::super) const OID: u8 = 0x06;
    pub(in super::super) const ENUMERATED: u8 = 0x0a;
    pub(in super::super) const UTC_TIME: u8 = 0x17;
    pub(in super::super) const TIME: u8 = 0x18;
    pub(in super::super) const SEQUENCE: u8 = 0x30;
    pub(in super::super) const SET: u8 = 0x31;
    pub(in super::super) const CONTEXT_0: u8 = 0xa0;
    pub(in super::super) const CONTEXT_1: u8 = 0xa1;
    pub(in super::super) const CONTEXT_2: u8 = 0xa2;
    pub(in super::super) const CONTEXT_3: u8 = 0xa3;
}

impl<'a> Der<'a> {
    /// The next element; `None` at the end or if it is incomplete.
    pub(super) fn element(&mut self) -> Option<Element<'a>> {
        let data = self.0;
        let (tag, first) = (*data.first()?, usize::from(*data.get(1)?));
        let (len, head) = match first {
            0..=0x7f => (first, 2),
            0x81..=0x84 => {
                let bytes = data.get(2..2 + (first & 0x7f))?;
                (bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)), 2 + bytes.len())
            }
            _ => return None,
        };
        let end = head.checked_add(len)?;
        let whole = data.get(..end)?;
        self.0 = data.get(end..)?;
        Some(Element { tag, content: whole.get(head..)?, whole })
    }

    /// The next element, if it has this tag.
    pub(super) fn expect_tag(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut rest = *self;
        let found = rest.element().filter(|element| element.tag == tag)?;
        *self = rest;
        Some(found)
    }
}

impl<'a> Element<'a> {
    pub(super) fn inside(&self) -> Der<'a> {
        Der(self.content)
    }

    /// The content of a bit string with a whole number of bytes.
    pub(super) fn bits(&self) -> Option<&'a [u8]> {
        let (unused, bytes) = self.content.split_first()?;
        (*unused == 0).then_some(bytes)
    }
}

/// A certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Certificate<'a> {
    pub(super) whole: &'a [u8],
    /// The signed part (`tbsCertificate`).
    pub(super) signed: &'a [u8],
    pub(super) is_v1: bool,
    /// The encoded version: 2 for version 3.
    pub(super) version: u8,
    pub(super) serial: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
    /// Start and end of the validity period, in seconds since 1970.
    pub(super) validity: (i64, i64),
    /// The public key with its algorithm (`subjectPublicKeyInfo`).
    pub(super) key: &'a [u8],
    /// The signature, then the OID of its algorithm.
    pub(super) signature: &'a [u8],
    pub(super) algorithm: &'a [u8],
    pub(super) extensions: Option<&'a [u8]>,
}

/// OIDs of extensions (RFC 5280 section 4.2, RFC 6962 section 3.3).
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const SUBJECT_KEY: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
pub(super) const SCT_LIST: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 2];

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let whole = Der(der).expect_tag(tag::SEQUENCE)?;
        let mut parts = whole.inside();
        let signed = parts.expect_tag(tag::SEQUENCE)?;
        let algorithm = parts.expect_tag(tag::SEQUENCE)?.inside().expect_tag(tag::OID)?.content;
        let signature = parts.expect_tag(tag::BIT_STRING)?.bits()?;
        let mut fields = signed.inside();
        let version = fields.expect_tag(tag::CONTEXT_0);
        let serial = fields.expect_tag(tag::INTEGER)?.content;
        fields.expect_tag(tag::SEQUENCE)?;
        let issuer = fields.expect_tag(tag::SEQUENCE)?.whole;
        let mut validity = fields.expect_tag(tag::SEQUENCE)?.inside();
        let validity = (time(validity.element()?)?, time(validity.element()?)?);
        let subject = fields.expect_tag(tag::SEQUENCE)?.whole;
        let key = fields.expect_tag(tag::SEQUENCE)?.whole;
        let mut extensions = None;
        while let Some(field) = fields.element() {
            if field.tag == tag::CONTEXT_3 {
                extensions = Some(field.inside().expect_tag(tag::SEQUENCE)?.content);
            }
        }
        Some(Self {
            whole: whole.whole,
            signed: signed.whole,
            is_v1: version.is_none(),
            version: version
                .and_then(|version| version.inside().expect_tag(tag::INTEGER))
                .and_then(|number| number.content.last().copied())
                .unwrap_or(0),
            serial,
            issuer,
            subject,
            validity,
            key,
            signature,
            algorithm,
            extensions,
        })
    }

    /// The value of the extension `oid`.
    fn extension(&self, oid: &[u8]) -> Option<&'a [u8]> {
        let mut all = Der(self.extensions?);
        while let Some(one) = all.expect_tag(tag::SEQUENCE) {
            let mut parts = one.inside();
            if parts.expect_tag(tag::OID)?.content == oid {
                parts.expect_tag(tag::BOOLEAN);
                return Some(parts.expect_tag(tag::OCTET_STRING)?.content);
            }
        }
        None
    }

    /// Whether the certificate may sign others, by its basic constraints and key usage, and its path length
    /// constraint.
    pub(super) fn authority(&self) -> (bool, Option<u64>) {
        let may_sign = self.extension(KEY_USAGE).is_none_or(|usage| {
            let bits = Der(usage).expect_tag(tag::BIT_STRING);
            bits.and_then(|bits| bits.content.get(1)).is_some_and(|bits| bits & 0x04 != 0)
        });
        let Some(constraints) = self.extension(BASIC_CONSTRAINTS) else {
            // Old root certificates have no extensions.
            return (may_sign && self.is_v1 && self.subject == self.issuer, None);
        };
        let Some(constraints) = Der(constraints).expect_tag(tag::SEQUENCE) else {
            return (false, None);
        };
        let mut parts = constraints.inside();
        let is_authority = parts
            .expect_tag(tag::BOOLEAN)
            .is_some_and(|b| b.content.first().is_some_and(|b| *b != 0));
        let length = parts
            .expect_tag(tag::INTEGER)
            .map(|n| n.content.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b)));
        (is_authority && may_sign, length)
    }

    /// The subject key identifier.
    fn subject_key(&self) -> Option<&'a [u8]> {
        Some(Der(self.extension(SUBJECT_KEY)?).expect_tag(tag::OCTET_STRING)?.content)
    }

    /// The authority key identifier.
    fn authority_key(&self) -> Option<&'a [u8]> {
        let mut parts = Der(self.extension(AUTHORITY_KEY)?).expect_tag(tag::SEQUENCE)?.inside();
        Some(parts.expect_tag(0x80)?.content)
    }

    /// Whether `issuer` issued it, by names and key identifiers.
    pub(super) fn is_issued_by(&self, issuer: &Certificate<'_>) -> bool {
        let keys = (self.authority_key(), issuer.subject_key());
        self.issuer == issuer.subject && !matches!(keys, (Some(mine), Some(its)) if mine != its)
    }
}

/// A time element as seconds since 1970.
pub(super) fn time(element: Element<'_>) -> Option<i64> {
    let digits = element.content.strip_suffix(b"Z")?;
    let two = |at: usize| {
        let pair = digits.get(at..at + 2)?;
        let digit = |b: u8| b.is_ascii_digit().then(|| i64::from(b - b'0'));
        Some(digit(pair[0])? * 10 + digit(pair[1])?)
    };
    let (year, at) = match element.tag {
        tag::UTC_TIME => {
            let year = two(0)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        tag::TIME => (two(0)? * 100 + two(2)?, 4),
        _ => return None,
    };
    let (month, day) = (two(at)?, two(at + 2)?);
    let seconds = two(at + 4)? * 3600 + two(at + 6)? * 60 + two(at + 8).unwrap_or(0);
    Some(days(year, month, day) * 86_400 + seconds)
}

/// Days since 1970 of a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last day.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_end_with_their_bytes() {
        let mut der = Der(&[2, 1, 7, 4, 0x81, 2, 8, 9, 4, 5, 0]);
        assert_eq!(der.expect_tag(4), None);
        assert_eq!(der.expect_tag(2).map(|e| e.content), Some(&[7][..]));
        let string = der.element();
        assert_eq!(string.map(|e| (e.content, e.whole.len())), Some((&[8, 9][..], 5)));
        assert_eq!(der.element(), None);
        assert_eq!(Der(&[4, 0x80, 0]).element(), None);
        assert_eq!(Der(&[4, 0x84, 0xff, 0xff, 0xff, 0xff]).element(), None);
    }

    #[test]
    fn times_of_both_kinds() {
        let at = |tag, content: &[u8]| time(Element { tag, content, whole: content });
        assert_eq!(at(tag::UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(at(tag::TIME, b"20000301000000Z"), Some(951_868_800));
        assert_eq!(at(tag::UTC_TIME, b"491231235959Z"), Some(2_524_607_999));
        assert_eq!(at(tag::UTC_TIME, b"7001x1000000Z"), None);
    }
}
