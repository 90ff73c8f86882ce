//! Distinguished names: RDNs of attributes, and their one-line form (RFC 2253).

use std::borrow::Cow;
use std::fmt::Write;

use crate::der::{Class, DerError, Element, Reader, Result, push_header, push_hex, tag};
use crate::oid;

/// Maximum number of contents octets of a name.
const MAX_NAME: usize = 1024 * 1024;

/// Maximum length of the one-line form in bytes.
const MAX_LINE: usize = 2047;

/// Maximum length of the form with slashes in bytes.
const MAX_SLASHED: usize = 255;

/// Maximum length of a dotted identifier in the one-line form, in bytes.
const MAX_DOTTED: usize = 79;

/// Contents octets of the object identifier of `commonName`.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// An attribute of a name.
#[derive(Debug)]
struct Attribute<'a> {
    /// Contents octets of its type.
    oid: &'a [u8],
    /// Universal tag of its value.
    tag: u32,
    value: Cow<'a, [u8]>,
    /// Index of its RDN.
    rdn: usize,
}

/// A distinguished name whose structure was checked.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    /// In encoding order.
    attributes: Vec<Attribute<'a>>,
}

impl<'a> Name<'a> {
    /// Parses the next element as a name.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self> {
        Self::from_element(&reader.universal(tag::SEQUENCE)?)
    }

    /// Parses a SEQUENCE of SETs of attributes.
    pub(crate) fn from_element(element: &Element<'a>) -> Result<Self> {
        if element.content.len() > MAX_NAME {
            return Err(DerError::BadValue);
        }
        let mut rdns = element.items();
        let mut attributes = Vec::new();
        let mut rdn = 0;
        while !rdns.is_empty() {
            let mut set = rdns.universal(tag::SET)?.items();
            while !set.is_empty() {
                let mut pair = set.sequence()?;
                let oid = pair.universal(tag::OID)?.oid()?;
                let value = pair.element()?;
                pair.finish()?;
                attributes.push(Attribute {
                    oid,
                    tag: value.tag,
                    value: attribute_value(&value)?,
                    rdn,
                });
            }
            rdn += 1;
        }
        Ok(Self { attributes })
    }

    /// The name in one line: last RDN first, known types by their short names, unknown ones as
    /// dotted arcs with hexadecimal values.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        let mut last = None;
        for attribute in self.attributes.iter().rev() {
            if line.len() >= MAX_LINE {
                break;
            }
            match last {
                None => {}
                Some(rdn) if rdn == attribute.rdn => line.push('+'),
                Some(_) => line.push(','),
            }
            last = Some(attribute.rdn);
            if let Some(names) = oid::names(attribute.oid) {
                line.push_str(names.short);
                line.push('=');
                attribute.push_value(&mut line);
            } else {
                let dotted = oid::dotted(attribute.oid);
                line.push_str(&dotted[..dotted.len().min(MAX_DOTTED)]);
                line.push('=');
                attribute.push_hex(&mut line);
            }
        }
        line.truncate(MAX_LINE);
        line
    }

    /// The name in OpenSSL's `oneline` form: in encoding order, with blanks around separators, and
    /// values in quotes instead of escapes.
    pub(crate) fn plain_line(&self) -> String {
        let mut line = String::new();
        let mut last = None;
        for attribute in &self.attributes {
            if line.len() >= MAX_LINE {
                break;
            }
            match last {
                None => {}
                Some(rdn) if rdn == attribute.rdn => line.push_str(" + "),
                Some(_) => line.push_str(", "),
            }
            last = Some(attribute.rdn);
            attribute.push_type(&mut line);
            line.push_str(" = ");
            attribute.push_quoted(&mut line);
        }
        let end = line.floor_char_boundary(MAX_LINE);
        line.truncate(end);
        line
    }

    /// The name as OpenSSL's `X509_NAME_oneline` prints it, such as `/C=US/O=a\/b`: octets that are not printable ASCII
    /// as `\xC3`, and separators within values after a backslash. Ends before an attribute that exceeds
    /// [`MAX_SLASHED`].
    pub(crate) fn slashed(&self) -> String {
        let mut line = String::new();
        let mut last = None;
        for attribute in &self.attributes {
            let begin = line.len();
            line.push(if last == Some(attribute.rdn) { '+' } else { '/' });
            last = Some(attribute.rdn);
            attribute.push_type(&mut line);
            line.push('=');
            for &byte in &*attribute.value {
                match byte {
                    b'/' | b'+' => line.extend(['\\', char::from(byte)]),
                    b' '..=b'~' => line.push(char::from(byte)),
                    _ => {
                        let _ = write!(line, "\\x{byte:02X}");
                    }
                }
            }
            if line.len() > MAX_SLASHED {
                line.truncate(begin);
                break;
            }
        }
        line
    }

    /// The last common name, with unprintable octets replaced by dots, up to a line end.
    pub(crate) fn common_name(&self) -> Option<Vec<u8>> {
        let attribute =
            self.attributes.iter().rev().find(|attribute| attribute.oid == COMMON_NAME)?;
        let mut name: Vec<u8> = attribute
            .value
            .iter()
            .take(MAX_LINE)
            .map(|&byte| if matches!(byte, b' '..=b'~' | b'\n' | b'\r') { byte } else { b'.' })
            .collect();
        if let Some(end) = name.iter().position(|&byte| byte == b'\n') {
            name.truncate(end + 1);
        }
        Some(name)
    }
}

/// Checks the value of an attribute, and joins the segments of a constructed string.
fn attribute_value<'a>(element: &Element<'a>) -> Result<Cow<'a, [u8]>> {
    if element.class != Class::Universal {
        return Err(DerError::UnexpectedTag);
    }
    let value = match element.tag {
        tag::SEQUENCE if element.constructed => return Ok(Cow::Borrowed(element.raw)),
        tag::SEQUENCE => return Err(DerError::BadValue),
        tag::BIT_STRING => {
            let (value, unused) = element.bits()?;
            let mut octets = vec![unused];
            octets.extend_from_slice(&value);
            Cow::Owned(octets)
        }
        7 | 8 | 9 | 11 | 13 | 14 | 15 | 29 => element.octets()?,
        tag::UTF8_STRING
        | tag::NUMERIC_STRING
        | tag::PRINTABLE_STRING
        | tag::T61_STRING
        | tag::IA5_STRING
        | tag::UNIVERSAL_STRING
        | tag::BMP_STRING => element.octets()?,
        _ => return Err(DerError::UnexpectedTag),
    };
    let well_formed = match element.tag {
        tag::UTF8_STRING => std::str::from_utf8(&value).is_ok(),
        tag::BMP_STRING => value.len() % 2 == 0 && units(&value, 2).all(|unit| unit.is_some()),
        tag::UNIVERSAL_STRING => {
            value.len() % 4 == 0 && units(&value, 4).all(|unit| unit.is_some())
        }
        _ => true,
    };
    if well_formed { Ok(value) } else { Err(DerError::BadValue) }
}

/// The characters of a string with a fixed number of octets per character.
fn units(value: &[u8], width: usize) -> impl Iterator<Item = Option<char>> {
    value.chunks(width).map(|unit| {
        char::from_u32(unit.iter().fold(0, |code, &octet| (code << 8) | u32::from(octet)))
    })
}

impl Attribute<'_> {
    /// Appends the short name of the type, or its dotted arcs if it has none.
    fn push_type(&self, line: &mut String) {
        match oid::names(self.oid) {
            Some(names) => line.push_str(names.short),
            None => {
                let dotted = oid::dotted(self.oid);
                line.push_str(&dotted[..dotted.len().min(MAX_DOTTED)]);
            }
        }
    }

    /// Appends the value as text, or as hexadecimal digits of its encoding if it is not text.
    fn push_value(&self, line: &mut String) {
        let Some(utf8) = self.utf8() else { return self.push_hex(line) };
        line.reserve(utf8.len());
        for (n, &byte) in utf8.iter().enumerate() {
            push_escaped(byte, n == 0, n + 1 == utf8.len(), line);
        }
    }

    /// Like [`Self::push_value`], in quotes if the value has characters that RFC 2253 escapes.
    fn push_quoted(&self, line: &mut String) {
        let Some(utf8) = self.utf8() else { return self.push_hex(line) };
        let (mut text, mut is_quoted) = (String::new(), false);
        for (n, &byte) in utf8.iter().enumerate() {
            let (first, last) = (n == 0, n + 1 == utf8.len());
            match byte {
                b',' | b'+' | b'<' | b'>' | b';' => is_quoted = true,
                b' ' if first || last => is_quoted = true,
                b'#' if first && !last => is_quoted = true,
                _ => {
                    push_escaped(byte, first, last, &mut text);
                    continue;
                }
            }
            text.push(char::from(byte));
        }
        let quote = if is_quoted { "\"" } else { "" };
        line.extend([quote, &text, quote]);
    }

    /// The value as UTF-8; `None` if it is not text.
    fn utf8(&self) -> Option<Cow<'_, [u8]>> {
        Some(match self.tag {
            tag::UTF8_STRING => Cow::Borrowed(&*self.value),
            tag::NUMERIC_STRING | tag::PRINTABLE_STRING | tag::T61_STRING | tag::IA5_STRING => {
                if self.value.is_ascii() {
                    Cow::Borrowed(&*self.value)
                } else {
                    Cow::Owned(
                        self.value
                            .iter()
                            .map(|&byte| char::from(byte))
                            .collect::<String>()
                            .into_bytes(),
                    )
                }
            }
            tag::BMP_STRING => {
                Cow::Owned(units(&self.value, 2).flatten().collect::<String>().into_bytes())
            }
            tag::UNIVERSAL_STRING => {
                Cow::Owned(units(&self.value, 4).flatten().collect::<String>().into_bytes())
            }
            _ => return None,
        })
    }

    /// Appends `#` and the hexadecimal digits of the value's encoding.
    fn push_hex(&self, line: &mut String) {
        line.push('#');
        if self.tag != tag::SEQUENCE {
            let mut header = Vec::new();
            push_header(self.tag.to_le_bytes()[0], self.value.len(), &mut header);
            push_hex(&header, line);
        }
        push_hex(&self.value, line);
    }
}

/// Appends an octet of a value, escaped if RFC 2253 section 2.4 requires it or if it is a control
/// character or not ASCII.
fn push_escaped(byte: u8, first: bool, last: bool, line: &mut String) {
    match byte {
        b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => line.push('\\'),
        b' ' if first || last => line.push('\\'),
        // A single character counts as the last one, not as the first one.
        b'#' if first && !last => line.push('\\'),
        0x00..=0x1f | 0x7f..=0xff => {
            line.push('\\');
            return push_hex(&[byte], line);
        }
        _ => {}
    }
    line.push(char::from(byte));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of one RDN with one attribute.
    fn name_of(oid: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let mut out = Vec::new();
            push_header(tag, content.len(), &mut out);
            out.extend_from_slice(content);
            out
        };
        let pair = [wrap(6, oid), wrap(tag, value)].concat();
        wrap(0x30, &wrap(0x31, &wrap(0x30, &pair)))
    }

    fn line_of(oid: &[u8], tag: u8, value: &[u8]) -> Result<String> {
        let der = name_of(oid, tag, value);
        Name::read(&mut Reader::new(&der)).map(|name| name.line())
    }

    /// The names as OpenSSL 3.0 prints them.
    #[test]
    fn forms_of_general_names() {
        // Two attributes in the first RDN, a type without a name, octets that are not ASCII.
        let der = b"\x30\x46\x31\x1a\x30\x0a\x06\x03\x55\x04\x0b\x0c\x03d,e\x30\x0c\x06\x03\x55\x04\x0a\x0c\x05a/b+c\
            \x31\x0b\x30\x09\x06\x02\x53\x04\x0c\x03q r\x31\x0f\x30\x0d\x06\x03\x55\x04\x03\x0c\x06\xc3\x83\xc2\xbc x\
            \x31\x0a\x30\x08\x06\x03\x55\x04\x05\x13\x011";
        let name = Name::read(&mut Reader::new(der)).unwrap();
        let slashed = r"/OU=d,e+O=a\/b\+c/2.3.4=q r/CN=\xC3\x83\xC2\xBC x/serialNumber=1";
        assert_eq!(name.slashed(), slashed.replace(r"\\", r"\"));
        let quoted =
            r#"OU = "d,e" + O = "a/b+c", 2.3.4 = q r, CN = \C3\83\C2\BC x, serialNumber = 1"#;
        assert_eq!(name.plain_line(), quoted);
        // An attribute that exceeds the limit ends the form with slashes.
        let long = name_of(&COMMON_NAME, 0x0c, &[b'x'; 251]);
        let name = Name::read(&mut Reader::new(&long)).unwrap();
        assert_eq!(name.slashed().len(), 255);
        let long = name_of(&COMMON_NAME, 0x0c, &[b'x'; 252]);
        let name = Name::read(&mut Reader::new(&long)).unwrap();
        assert_eq!(name.slashed(), "");
    }

    #[test]
    fn escapes_what_separates() {
        let line = |value: &[u8]| line_of(&COMMON_NAME, 0x0c, value).unwrap();
        assert_eq!(
            line(b"Amazon, Inc. + \"x\" <y>;\\"),
            "CN=Amazon\\, Inc. \\+ \\\"x\\\" \\<y\\>\\;\\\\"
        );
        assert_eq!(line(b" a b "), "CN=\\ a b\\ ");
        assert_eq!(line(b"#1"), "CN=\\#1");
        assert_eq!(line(b"a=b\n\x7f"), "CN=a=b\\0A\\7F");
    }

    #[test]
    fn converts_to_utf8() {
        assert_eq!(line_of(&COMMON_NAME, 0x0c, "é".as_bytes()).unwrap(), "CN=\\C3\\A9");
        assert_eq!(line_of(&COMMON_NAME, 0x14, b"\xe9").unwrap(), "CN=\\C3\\A9");
        assert_eq!(line_of(&COMMON_NAME, 0x1e, b"\x00A\x20\xac").unwrap(), "CN=A\\E2\\82\\AC");
        assert_eq!(
            line_of(&COMMON_NAME, 0x1c, b"\x00\x01\xf6\x00").unwrap(),
            "CN=\\F0\\9F\\98\\80"
        );
    }

    #[test]
    fn unknown_types_and_values_are_dumped() {
        assert_eq!(line_of(&[0x2a, 0x03], 0x13, b"hi").unwrap(), "1.2.3=#13026869");
        assert_eq!(line_of(&COMMON_NAME, 0x03, &[0x04, 0xff]).unwrap(), "CN=#030204F0");
    }

    #[test]
    fn rejects_malformed_strings() {
        assert!(line_of(&COMMON_NAME, 0x0c, b"\xff").is_err());
        assert!(line_of(&COMMON_NAME, 0x1e, b"abc").is_err());
        assert!(line_of(&COMMON_NAME, 0x1e, b"\xd8\x00").is_err());
        assert!(line_of(&COMMON_NAME, 0x04, b"abc").is_err());
    }

    #[test]
    fn rdns_are_reversed_and_joined() {
        // O=o, then CN=a + OU=b.
        let der = [
            0x30, 0x20, 0x31, 0x0a, 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x0a, 0x13, 0x01, b'o',
            0x31, 0x12, 0x30, 0x07, 0x06, 0x03, 0x55, 0x04, 0x03, 0x13, 0x00, 0x30, 0x07, 0x06,
            0x03, 0x55, 0x04, 0x0b, 0x13, 0x00,
        ];
        let name = Name::read(&mut Reader::new(&der)).unwrap();
        assert_eq!(name.line(), "OU=+CN=,O=o");
        assert_eq!(name.common_name().as_deref(), Some(&b""[..]));
        assert_eq!(name.plain_line(), "O = o, CN =  + OU = ");
    }

    #[test]
    fn one_line_quotes_instead_of_escaping() {
        let line = |value: &[u8]| {
            let der = name_of(&COMMON_NAME, 0x0c, value);
            Name::read(&mut Reader::new(&der)).unwrap().plain_line()
        };
        assert_eq!(line(b"GoDaddy Inc."), "CN = GoDaddy Inc.");
        assert_eq!(line(b"Amazon, \"x\""), "CN = \"Amazon, \\\"x\\\"\"");
        assert_eq!(line("é ".as_bytes()), "CN = \"\\C3\\A9 \"");
    }
}
