//! Media types of contents.

use gannet_files::sniff;

use super::strings::bytes;
use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::ids::TypeId;
use crate::value::{Record, Value, Vector};

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
];
