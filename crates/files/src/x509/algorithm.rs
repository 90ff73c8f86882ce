//! AlgorithmIdentifier: an object identifier with parameters of any type (RFC 5280 section 4.1.1.2).

use crate::der::{Class, DerError, Element, Reader, Result, push_header, tag};

/// An algorithm whose encoding was checked.
#[derive(Debug)]
pub(crate) struct Algorithm<'a> {
    /// Contents octets of its object identifier.
    pub(crate) identifier: &'a [u8],
    pub(crate) parameters: Option<Element<'a>>,
}

impl<'a> Algorithm<'a> {
    /// Parses the next element.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut members = reader.sequence()?;
        let identifier = members.universal(tag::OID)?.oid()?;
        let parameters = if members.is_empty() { None } else { Some(members.element()?) };
        members.finish()?;
        if let Some(parameters) = &parameters {
            check_value(parameters)?;
        }
        Ok(Self { identifier, parameters })
    }

    /// Appends the DER encoding; the contents of structured parameters are copied unchanged.
    pub(crate) fn encode(&self, into: &mut Vec<u8>) -> Result<()> {
        let mut inner = Vec::new();
        push_header(6, self.identifier.len(), &mut inner);
        inner.extend_from_slice(self.identifier);
        if let Some(parameters) = &self.parameters {
            let structured = parameters.class != Class::Universal
                || matches!(parameters.tag, tag::SEQUENCE | tag::SET);
            if structured {
                inner.extend_from_slice(parameters.raw);
            } else if parameters.tag == tag::BIT_STRING {
                encode_bits(parameters, &mut inner)?;
            } else {
                let octets = parameters.octets()?;
                push_header(parameters.tag.to_le_bytes()[0], octets.len(), &mut inner);
                inner.extend_from_slice(&octets);
            }
        }
        push_header(0x30, inner.len(), into);
        into.extend_from_slice(&inner);
        Ok(())
    }
}

/// Appends the DER encoding of a BIT STRING.
pub(crate) fn encode_bits(element: &Element<'_>, into: &mut Vec<u8>) -> Result<()> {
    let (value, unused) = element.bits()?;
    push_header(3, value.len() + 1, into);
    into.push(unused);
    into.extend_from_slice(&value);
    Ok(())
}

/// Checks that a value is valid for its type.
fn check_value(element: &Element<'_>) -> Result<()> {
    if element.class != Class::Universal {
        return Ok(());
    }
    match element.tag {
        tag::BOOLEAN => element.boolean().map(drop),
        tag::INTEGER | tag::ENUMERATED => element.integer().map(drop),
        tag::BIT_STRING => element.bits().map(drop),
        tag::NULL if element.primitive()?.is_empty() => Ok(()),
        tag::NULL => Err(DerError::BadValue),
        tag::OID => element.oid().map(drop),
        tag::SEQUENCE | tag::SET => element.members().map(drop),
        tag::BMP_STRING if element.octets()?.len() % 2 != 0 => Err(DerError::BadValue),
        tag::UNIVERSAL_STRING if element.octets()?.len() % 4 != 0 => Err(DerError::BadValue),
        _ => element.octets().map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_again() {
        // Indefinite length, and parameters with a long-form length.
        let ber = [0x30, 0x80, 0x06, 0x03, 0x2a, 0x03, 0x04, 0x04, 0x81, 0x01, 0x07, 0x00, 0x00];
        let mut der = Vec::new();
        Algorithm::read(&mut Reader::new(&ber)).unwrap().encode(&mut der).unwrap();
        assert_eq!(der, [0x30, 0x08, 0x06, 0x03, 0x2a, 0x03, 0x04, 0x04, 0x01, 0x07]);
    }

    #[test]
    fn parameters_fit_their_type() {
        let read = |parameters: &[u8]| {
            let mut der =
                vec![0x30, 0x05 + parameters.len().to_le_bytes()[0], 0x06, 0x03, 0x2a, 0x03, 0x04];
            der.extend_from_slice(parameters);
            Algorithm::read(&mut Reader::new(&der)).is_ok()
        };
        assert!(
            read(&[]) && read(&[0x05, 0x00]) && read(&[0x30, 0x00]) && read(&[0x80, 0x01, 0x00])
        );
        assert!(
            !read(&[0x05, 0x01, 0x00])
                && !read(&[0x10, 0x00])
                && !read(&[0x1e, 0x01, 0x41])
                && !read(&[5, 0, 5, 0])
        );
    }
}
