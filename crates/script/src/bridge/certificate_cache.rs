//! Certificates that scripts have cached: their events are not raised again.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::Uid;
use gannet_event::{Raised, Value as Head};
use sha2::{Digest as _, Sha256};

use super::state::{States, first_file};
use crate::bif::{Table as Natives, arg};
use crate::evaluate::Stop;
use crate::value::{FuncValue, Table, Value};
use crate::vm::Vm;

/// The functions of this file.
pub(crate) const TABLE: Natives = &[
    ("x509_set_certificate_cache", |vm, a| {
        let Value::Table(table) = arg(a, 0) else { return Ok(Value::Bool(false)) };
        vm.m.state.traffic.certificate_cache.known = Some(Rc::clone(table));
        Ok(Value::Bool(true))
    }),
    ("x509_set_certificate_cache_hit_callback", |vm, a| {
        let Value::Func(func) = arg(a, 0) else { return Ok(Value::Bool(false)) };
        vm.m.state.traffic.certificate_cache.callback = Some(Rc::clone(func));
        Ok(Value::Bool(true))
    }),
];

/// State of the certificate cache.
#[derive(Default)]
pub(crate) struct CertificateCache {
    /// The table of cached certificates, by SHA-256 in hexadecimal.
    known: Option<Rc<Table>>,
    callback: Option<Rc<FuncValue>>,
    /// Files with certificates, and whether the certificate was cached when it arrived.
    files: HashMap<Uid, bool>,
}

impl CertificateCache {
    /// Handles `file_state_remove`.
    pub(super) fn forget(&mut self, event: &Raised<'_>) {
        if let Some(file) = first_file(event) {
            self.files.remove(&file.fuid);
        }
    }
}

/// Whether the certificate of an event is cached. On the first hit, the replay function of the cache is called.
pub(super) fn is_cached(
    vm: &mut Vm<'_>,
    states: &mut States,
    event: &Raised<'_>,
) -> Result<bool, Stop> {
    let Some(known) = vm.m.state.traffic.certificate_cache.known.clone() else { return Ok(false) };
    let Some(file) = first_file(event) else { return Ok(false) };
    if let Some(is_known) = vm.m.state.traffic.certificate_cache.files.get(&file.fuid) {
        return Ok(*is_known);
    }
    let mut reader = event.args();
    let mut args = event.decl.params.iter().map(|param| reader.param(param));
    let der = args.find_map(|arg| match arg {
        Some(Head::Opaque(_, der)) => Some(der),
        _ => None,
    });
    let Some(der) = der else { return Ok(false) };
    let key = Value::string_owned(crate::support::text::to_hex(&Sha256::digest(der)));
    let found = known.get(std::slice::from_ref(&key));
    vm.m.state.traffic.certificate_cache.files.insert(file.fuid, found.is_some());
    if let (Some(value), Some(callback), Some(ty)) =
        (&found, vm.m.state.traffic.certificate_cache.callback.clone(), vm.type_named("fa_file"))
    {
        let file = states.file(vm, ty, file, event)?;
        match vm.call(&callback, &[file, value.clone(), key]) {
            Ok(_) | Err(Stop::Error) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(found.is_some())
}
