//! What contents are: media types, names and certificates (X.509).

use gannet_files::{sniff, x509};

use super::strings::bytes;
use super::{Table, arg};
use crate::bridge::Certificate;
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::opaque::{Algorithm, Digest};
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// Most bytes of a name in one line.
const MAX_NAME: usize = 255;

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("identify_data", |vm, a| {
        if !arg(a, 1).truth() {
            let text = "identify_data() builtin-function only returns MIME types, but verbose file info requested";
            vm.report(Severity::Warning, text);
        }
        Ok(Value::string(sniff::mime_type(bytes(a, 0)).unwrap_or("<unknown>")))
    }),
    ("file_magic", |vm, a| {
        let element = vm.type_named("mime_match").unwrap_or(TypeId::VOID);
        let items = sniff::matches(bytes(a, 0)).into_iter().map(|(strength, mime)| {
            let fields = vec![Value::Int(i64::from(strength)), Value::string(mime)];
            Value::Record(Record::new(element, fields))
        });
        Ok(Value::Vector(Vector::new(vm.result_type(), items.collect())))
    }),
    ("parse_distinguished_name", |_, a| {
        let mut line = x509::name_line(bytes(a, 0)).unwrap_or_default().into_bytes();
        line.truncate(MAX_NAME);
        Ok(Value::string_owned(line))
    }),
    ("x509_parse", |vm, a| {
        let certificate = der(a).and_then(|der| x509::parse(&der).ok());
        let Some(certificate) = certificate else {
            vm.builtin_error("cannot get cert from opaque");
            return Ok(Value::Unset);
        };
        let key = certificate.key.as_ref();
        let text = |text: Option<&str>| text.map_or(Value::Unset, Value::string);
        let common = certificate.common_name();
        let fields = vec![
            Value::Count(certificate.version),
            Value::string(&certificate.serial),
            Value::string(&certificate.subject),
            Value::string(&certificate.issuer),
            common.map_or(Value::Unset, |name| Value::string(&*name)),
            Value::Time(certificate.not_before as f64),
            Value::Time(certificate.not_after as f64),
            Value::string(&certificate.key_algorithm),
            Value::string(&certificate.signature_algorithm),
            text(key.map(|key| key.kind)),
            key.and_then(|key| key.bits).map_or(Value::Unset, Value::Count),
            text(key.and_then(|key| key.exponent.as_deref())),
            text(key.and_then(|key| key.curve)),
            Value::string(&certificate.signature_algorithm),
        ];
        Ok(Value::Record(Record::new(vm.result_type(), fields)))
    }),
    ("x509_subject_name_hash", |vm, a| part_hash(vm, a, Part::Subject)),
    ("x509_issuer_name_hash", |vm, a| part_hash(vm, a, Part::Issuer)),
    ("x509_spki_hash", |vm, a| part_hash(vm, a, Part::Key)),
];

/// The encoded certificate of the first argument.
fn der(args: &[Value]) -> Option<Vec<u8>> {
    arg(args, 0).opaque()?.with(|certificate: &mut Certificate| certificate.0.clone())
}

/// A part of a certificate, by its position behind the serial number.
#[derive(Clone, Copy)]
enum Part {
    Issuer = 1,
    Subject = 3,
    Key = 4,
}

/// The digest of a part of a certificate; the second argument has the algorithm's number in TLS.
fn part_hash(vm: &mut Vm<'_>, args: &[Value], part: Part) -> Result<Value> {
    let Some(der) = der(args) else {
        vm.builtin_error("cannot get cert from opaque");
        return Ok(Value::Unset);
    };
    let algorithm = match arg(args, 1).count() {
        1 => Algorithm::Md5,
        2 => Algorithm::Sha1,
        3 => Algorithm::Sha224,
        4 => Algorithm::Sha256,
        5 => Algorithm::Sha384,
        6 => Algorithm::Sha512,
        _ => {
            vm.builtin_error("Unknown hash algorithm.");
            return Ok(Value::Unset);
        }
    };
    let Some(encoded) = encoded_part(&der, part) else {
        vm.builtin_error("fail to get subject/issuer name from certificate");
        return Ok(Value::Unset);
    };
    let mut digest = Digest::new(algorithm);
    digest.update(encoded);
    Ok(Value::string(digest.finish()))
}

/// The bytes of a part of a certificate, its header included.
fn encoded_part(der: &[u8], part: Part) -> Option<&[u8]> {
    let (_, whole, _) = element(der)?;
    let (_, mut body, _) = element(whole)?;
    // The version may be missing.
    if let Some((_, _, rest)) = element(body).filter(|_| body.first() == Some(&0xa0)) {
        body = rest;
    }
    let (_, _, mut rest) = element(body)?;
    for _ in 0..part as usize {
        (_, _, rest) = element(rest)?;
    }
    Some(element(rest)?.0)
}

/// The element that bytes in DER begin with: all of it, its content, and what follows.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = *bytes.get(1)?;
    let (len, head) = match usize::from(first) {
        short @ 0..=0x7f => (short, 2),
        long @ 0x81..=0x84 => {
            let digits = bytes.get(2..2 + (long - 0x80))?;
            let len = digits.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
            (len, 2 + digits.len())
        }
        _ => return None,
    };
    let end = head.checked_add(len)?;
    Some((bytes.get(..end)?, bytes.get(head..end)?, bytes.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_with_and_without_a_version() {
        let part = |tag: u8, byte: u8| vec![tag, 1, byte];
        let sequence = |parts: &[Vec<u8>]| {
            let content = parts.concat();
            [vec![0x30, content.len() as u8], content].concat()
        };
        // Serial number, algorithm, issuer, validity, subject, key.
        let fields = [(2, 1), (0x30, 2), (0x30, 3), (0x30, 4), (0x30, 5), (0x30, 6)];
        let fields: Vec<Vec<u8>> = fields.map(|(tag, byte)| part(tag, byte)).to_vec();
        let with_version = [vec![part(0xa0, 9)], fields.clone()].concat();
        for body in [fields, with_version] {
            let der = sequence(&[sequence(&body)]);
            for (of, byte) in [(Part::Issuer, 3), (Part::Subject, 5), (Part::Key, 6)] {
                assert_eq!(encoded_part(&der, of), Some([0x30, 1, byte].as_slice()));
            }
        }
        assert_eq!(encoded_part(&[0x30, 5, 0x30], Part::Key), None);
    }
}
