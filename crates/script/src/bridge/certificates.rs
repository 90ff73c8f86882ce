//! Built-in functions that verify certificates.

use sha1::Sha1;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};

use super::traffic::Certificate;
use crate::bif::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::support::x509::{self, Part, Timestamp};
use crate::value::{OpaqueValue, Record, Value, Vector};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(crate) const TABLE: Table = &[
    ("x509_verify", verify),
    ("x509_ocsp_verify", verify_response),
    ("sct_verify", verify_timestamp),
    ("x509_parse", parse),
    ("x509_subject_name_hash", |vm, a| hash(vm, a, Part::Subject)),
    ("x509_issuer_name_hash", |vm, a| hash(vm, a, Part::Issuer)),
    ("x509_spki_hash", |vm, a| hash(vm, a, Part::Key)),
    ("parse_distinguished_name", |_, a| {
        // As in Zeek, a name that cannot be parsed is an empty string, without a message.
        Ok(Value::string(x509::name_text(arg(a, 0).str_bytes()).unwrap_or_default()))
    }),
];

/// The DER form of a certificate.
fn der(value: &Value) -> Option<Vec<u8>> {
    value.opaque()?.with(|certificate: &mut Certificate| certificate.0.clone())
}

/// `x509_parse`
fn parse(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let Some(facts) = der(arg(args, 0)).and_then(|der| x509::facts(&der)) else {
        vm.builtin_error("cannot get cert from opaque");
        return Ok(Value::Unset);
    };
    let name = facts.subject.split(',').find_map(|part| part.strip_prefix("CN="));
    let text = |text: Option<&str>| text.map_or(Value::Unset, Value::string);
    let fields = vec![
        ("version", Value::Count(facts.version)),
        ("serial", Value::string(&facts.serial)),
        ("subject", Value::string(&facts.subject)),
        ("issuer", Value::string(&facts.issuer)),
        ("cn", text(name)),
        ("not_valid_before", Value::Time(facts.validity.0 as f64)),
        ("not_valid_after", Value::Time(facts.validity.1 as f64)),
        ("key_alg", Value::string(&facts.key_algorithm)),
        ("sig_alg", Value::string(&facts.signature_algorithm)),
        ("key_type", text(facts.key.map(|(kind, _)| kind))),
        ("key_length", facts.key.map_or(Value::Unset, |(_, bits)| Value::Count(bits))),
        ("exponent", text(facts.exponent.as_deref())),
        ("curve", text(facts.curve)),
        ("tbs_sig_alg", Value::string(&facts.signature_algorithm)),
    ];
    super::natives::record_of(vm, fields)
}

fn verdict(vm: &Vm<'_>, code: i64, text: &str, chain: Value) -> Value {
    Value::Record(Record::new(vm.result_type(), vec![Value::Int(code), Value::string(text), chain]))
}

/// The DER forms of a chain of at least one certificate and of a table of root certificates; reports an error otherwise.
fn chain_and_roots(
    vm: &mut Vm<'_>,
    certificates: &Value,
    roots: &Value,
) -> std::result::Result<(Vec<Vec<u8>>, Vec<Value>), &'static str> {
    let given: Vec<Value> = match certificates {
        Value::Vector(given) => given.items().to_vec(),
        _ => Vec::new(),
    };
    let Some(first) = given.first() else {
        vm.report(Severity::Error, "No certificates given in vector");
        return Err("no certificates");
    };
    if !first.is_set() {
        vm.builtin_error("undefined value in certificate vector");
        return Err("undefined value in certificate vector");
    }
    let roots = roots.table().map(|table| table.entries()).unwrap_or_default();
    Ok((given.iter().filter_map(der).collect(), roots.into_iter().map(|(_, root)| root).collect()))
}

fn verify(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (certificates, roots) = match chain_and_roots(vm, arg(args, 0), arg(args, 1)) {
        Ok(both) => both,
        Err(text) => return Ok(verdict(vm, -1, text, Value::Unset)),
    };
    let roots: Vec<&[u8]> = roots.iter().map(Value::str_bytes).collect();
    let result = x509::verify(&certificates, &roots, arg(args, 2).double() as i64);
    let mut chain = Value::Unset;
    if result.code == 0
        && let Some(ty) = vm.type_named("x509_opaque_vector")
        && let crate::types::Type::Vector(element) = *vm.p.types.get(ty)
    {
        let items = result.chain.into_iter();
        let items = items.map(|der| Value::Opaque(OpaqueValue::new(element, Certificate(der))));
        chain = Value::Vector(Vector::new(ty, items.collect()));
    }
    Ok(verdict(vm, result.code, result.text, chain))
}

fn verify_response(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let (certificates, roots) = match chain_and_roots(vm, arg(args, 0), arg(args, 2)) {
        Ok(both) => both,
        Err(text) => return Ok(verdict(vm, -1, text, Value::Unset)),
    };
    let roots: Vec<&[u8]> = roots.iter().map(Value::str_bytes).collect();
    let time = arg(args, 3).double() as i64;
    let result = x509::verify_response(&certificates, arg(args, 1).str_bytes(), &roots, time);
    Ok(verdict(vm, result.code, result.text, Value::Unset))
}

fn verify_timestamp(vm: &mut Vm<'_>, args: &[Value]) -> Result<Value> {
    let issuer_key = arg(args, 6).str_bytes();
    if !matches!(issuer_key.len(), 0 | 32) {
        vm.report(Severity::Error, "Invalid issuer_key_hash length");
        return Ok(Value::Bool(false));
    }
    let proof = Timestamp {
        time: arg(args, 4).count(),
        hash: arg(args, 5).count(),
        signature: arg(args, 3).str_bytes(),
        issuer_key,
    };
    let Some(certificate) = der(arg(args, 0)) else { return Ok(Value::Bool(false)) };
    let found = x509::verify_timestamp(&certificate, arg(args, 2).str_bytes(), &proof);
    if found.is_none() {
        vm.report(Severity::Error, "NID_ct_precert_scts not found");
    }
    Ok(Value::Bool(found.unwrap_or_default()))
}

/// The hash of a part of a certificate; the hash algorithm has its number in TLS.
fn hash(vm: &mut Vm<'_>, args: &[Value], which: Part) -> Result<Value> {
    let certificate = der(arg(args, 0)).unwrap_or_default();
    let Some(bytes) = x509::part(&certificate, which) else {
        vm.builtin_error("cannot get cert from opaque");
        return Ok(Value::string(""));
    };
    let digest = match arg(args, 1).count() {
        1 => md5::Md5::digest(bytes).to_vec(),
        2 => Sha1::digest(bytes).to_vec(),
        3 => Sha224::digest(bytes).to_vec(),
        4 => Sha256::digest(bytes).to_vec(),
        5 => Sha384::digest(bytes).to_vec(),
        6 => Sha512::digest(bytes).to_vec(),
        _ => {
            vm.builtin_error("Unknown hash algorithm.");
            return Ok(Value::string(""));
        }
    };
    Ok(Value::string_owned(digest))
}
