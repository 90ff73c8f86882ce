//! Rows of pe.log and ocsp.log.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Date;
use gannet_log::Vector;

use crate::ocsp::CertificateStatus;
use crate::pe::Info;

gannet_log::row! {
    /// One row for each Windows executable.
    pub(crate) struct PeRow<'a> = "pe" {
        /// Time of its first bytes.
        ts: Time = "ts",
        /// The file.
        id: Uid = "id",
        /// The machine it was compiled for.
        machine: Option<&'a str> = "machine",
        /// When it was compiled.
        compile_ts: Option<Time> = "compile_ts",
        /// The system it needs.
        os: Option<&'a str> = "os",
        /// The subsystem it needs.
        subsystem: Option<&'a str> = "subsystem",
        /// Whether it is an executable, not an object file.
        is_exe: bool = "is_exe",
        /// Whether it is for 64 bits.
        is_64bit: bool = "is_64bit",
        /// Whether it supports address space layout randomization.
        uses_aslr: bool = "uses_aslr",
        /// Whether it supports data execution prevention.
        uses_dep: bool = "uses_dep",
        /// Whether code integrity checks are enforced.
        uses_code_integrity: bool = "uses_code_integrity",
        /// Whether it uses structured exception handling.
        uses_seh: bool = "uses_seh",
        /// Whether it has an import table.
        has_import_table: Option<bool> = "has_import_table",
        /// Whether it has an export table.
        has_export_table: Option<bool> = "has_export_table",
        /// Whether it has a table of certificates.
        has_cert_table: Option<bool> = "has_cert_table",
        /// Whether it has data for debuggers.
        has_debug_data: Option<bool> = "has_debug_data",
        /// Names of its sections.
        section_names: Option<Vector<Vec<u8>>> = "section_names",
    }
}

gannet_log::row! {
    /// One row for each certificate that an OCSP response refers to.
    pub(crate) struct OcspRow<'a> = "ocsp" {
        /// When the response's first bytes were seen.
        ts: Time = "ts",
        /// The file.
        id: Uid = "id",
        /// Hash algorithm of the certificate id.
        hash_algorithm: &'a str = "hashAlgorithm",
        /// Hash of the issuer's name.
        issuer_name_hash: &'a str = "issuerNameHash",
        /// Hash of the issuer's key.
        issuer_key_hash: &'a str = "issuerKeyHash",
        /// Serial number.
        serial_number: &'a str = "serialNumber",
        /// `good`, `revoked` or `unknown`.
        cert_status: &'a str = "certStatus",
        /// When it was revoked.
        revoketime: Option<Date> = "revoketime",
        /// Why it was revoked.
        revokereason: Option<&'a str> = "revokereason",
        /// Time at which the status was correct.
        this_update: Date = "thisUpdate",
        /// Time of the next update.
        next_update: Option<Date> = "nextUpdate",
    }
}

/// The row of an executable, if its headers were parsed.
pub(crate) fn pe(ts: Time, id: Uid, info: &Info) -> Option<PeRow<'_>> {
    info.machine.as_ref()?;
    Some(PeRow {
        ts,
        id,
        machine: info.machine.as_deref(),
        compile_ts: info.compiled.map(|s| Time::from_secs(i64::from(s))),
        os: info.os.as_deref(),
        subsystem: info.subsystem.as_deref(),
        is_exe: info.is_exe,
        is_64bit: info.is_64bit,
        uses_aslr: info.uses_aslr,
        uses_dep: info.uses_dep,
        uses_code_integrity: info.uses_code_integrity,
        uses_seh: info.uses_seh,
        has_import_table: info.has_import_table,
        has_export_table: info.has_export_table,
        has_cert_table: info.has_cert_table,
        has_debug_data: info.has_debug_data,
        section_names: info.section_names.clone().map(Vector),
    })
}

/// The row of a certificate's status.
pub(crate) fn ocsp(ts: Time, id: Uid, status: &CertificateStatus) -> OcspRow<'_> {
    OcspRow {
        ts,
        id,
        hash_algorithm: &status.id.hash_algorithm,
        issuer_name_hash: &status.id.issuer_name_hash,
        issuer_key_hash: &status.id.issuer_key_hash,
        serial_number: &status.id.serial,
        cert_status: status.status,
        revoketime: status.revoked_at.map(Date),
        revokereason: status.revoke_reason,
        this_update: Date(status.this_update),
        next_update: status.next_update.map(Date),
    }
}
