//! Events of files.

/// Number of the module that declares events of files.
pub const MODULE: u16 = 0;
use std::borrow::Cow;

use gannet_base::Addr;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::FileRef;
use gannet_event::Packer;
use gannet_event::SetOf;
use gannet_event::Type;

use crate::x509::text::Extension;
use crate::x509::text::Timestamp;
use crate::zip::Method;

/// A certificate that listeners cannot look into: its DER form, for functions that can.
#[derive(Clone, Copy, Debug)]
pub struct X509Opaque<'a>(pub &'a [u8]);

impl Arg for X509Opaque<'_> {
    const TYPE: Type = Type::Opaque("X509Val");
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.pack(to);
    }
}

gannet_event::record! {
    /// A type that the first bytes of a file match.
    #[derive(Clone, Copy, Debug)]
    pub struct MimeMatch = "mime_match" {
        /// How strongly.
        strength: i64 = "strength",
        /// The type.
        mime: &'static str = "mime",
    }
}

gannet_event::record! {
    /// What is known of a file from its content.
    #[derive(Clone, Debug)]
    pub struct Metadata = "fa_metadata" {
        /// The strongest type.
        mime_type: Option<&'static str> = "mime_type",
        /// All types, strongest first.
        mime_types: Option<Vec<MimeMatch>> = "mime_types",
        /// Whether the type comes from content and not from a declaration.
        inferred: Option<bool> = "inferred",
    }
}

gannet_event::enumeration!(Method = "ZIP::CompressionMethod", |method| match method {
    Method::Stored => "ZIP::CompressionMethod_Uncompressed",
    Method::Deflate => "ZIP::CompressionMethod_Deflate",
    Method::Other(_) => "ZIP::CompressionMethod_Undef",
});

gannet_event::record! {
    /// What an archive says of a file.
    #[derive(Clone, Debug)]
    pub struct ZipEntry<'a> = "ZIP::File" {
        /// Whether this is in the directory, and not before the contents.
        is_in_directory: bool = "global_",
        /// The contents as a file.
        fid: Option<Uid> = "fid",
        /// Name of the file.
        filename: &'a [u8] = "filename",
        /// When it was changed.
        changed: Time = "time_",
        /// Comment.
        comment: &'a [u8] = "comment",
        /// How it is compressed.
        method: Method = "compression",
        /// Whether it is encrypted.
        is_encrypted: bool = "encrypted",
    }
}

gannet_event::record! {
    /// What a certificate says (RFC 5280).
    #[derive(Clone, Debug)]
    pub struct CertificateFacts<'a> = "X509::Certificate" {
        /// Version, counted from one.
        version: u64 = "version",
        /// Serial number in hexadecimal digits.
        serial: &'a str = "serial",
        /// Subject.
        subject: &'a str = "subject",
        /// Issuer.
        issuer: &'a str = "issuer",
        /// The most specific common name of the subject.
        cn: Option<Cow<'a, [u8]>> = "cn",
        /// Start of its validity.
        not_valid_before: f64 = "not_valid_before",
        /// End of its validity.
        not_valid_after: f64 = "not_valid_after",
        /// Algorithm of the key.
        key_alg: &'a str = "key_alg",
        /// Algorithm of the signature.
        sig_alg: &'a str = "sig_alg",
        /// Kind of the key.
        key_type: Option<&'a str> = "key_type",
        /// Bits of the key.
        key_length: Option<u64> = "key_length",
        /// Public exponent of an RSA key.
        exponent: Option<&'a str> = "exponent",
        /// Curve of an elliptic-curve key.
        curve: Option<&'a str> = "curve",
        /// Algorithm of the signature, as the signed part names it.
        tbs_sig_alg: &'a str = "tbs_sig_alg",
    }
}

gannet_event::record! {
    /// An extension of a certificate (RFC 5280 section 4.2).
    #[derive(Clone, Debug)]
    pub struct ExtensionFacts<'a> = "X509::Extension" {
        /// Its name.
        name: &'a str = "name",
        /// Its short name.
        short_name: Option<&'a str> = "short_name",
        /// Its identifier.
        oid: &'a str = "oid",
        /// Whether it must be understood.
        critical: bool = "critical",
        /// Its content in words.
        value: &'a [u8] = "value",
    }
}

gannet_event::record! {
    /// Basic constraints (RFC 5280 section 4.2.1.9).
    #[derive(Clone, Copy, Debug)]
    pub struct Constraints = "X509::BasicConstraints" {
        /// Whether the subject may issue certificates.
        ca: bool = "ca",
        /// How many issuers may follow below.
        path_len: Option<u64> = "path_len",
    }
}

gannet_event::record! {
    /// Alternative names of the subject (RFC 5280 section 4.2.1.6).
    #[derive(Clone, Debug)]
    pub struct Names<'a> = "X509::SubjectAlternativeName" {
        /// Host names.
        dns: Option<Vec<&'a [u8]>> = "dns",
        /// URIs.
        uri: Option<Vec<&'a [u8]>> = "uri",
        /// Mail addresses.
        email: Option<Vec<&'a [u8]>> = "email",
        /// Addresses.
        ip: Option<Vec<Addr>> = "ip",
        /// Whether there are names of other kinds.
        other_fields: bool = "other_fields",
    }
}

gannet_event::record! {
    /// The header of a DOS program.
    #[derive(Clone, Copy, Debug)]
    pub struct DosHeader<'a> = "PE::DOSHeader" {
        /// `MZ`.
        signature: &'a [u8] = "signature",
        /// Bytes of the last page.
        used_bytes_in_last_page: u64 = "used_bytes_in_last_page",
        /// Pages.
        file_in_pages: u64 = "file_in_pages",
        /// Relocations.
        num_reloc_items: u64 = "num_reloc_items",
        /// Paragraphs of the header.
        header_in_paragraphs: u64 = "header_in_paragraphs",
        /// Paragraphs that it needs.
        min_extra_paragraphs: u64 = "min_extra_paragraphs",
        /// Paragraphs that it wants.
        max_extra_paragraphs: u64 = "max_extra_paragraphs",
        /// The stack segment.
        init_relative_ss: u64 = "init_relative_ss",
        /// The stack pointer.
        init_sp: u64 = "init_sp",
        /// The checksum.
        checksum: u64 = "checksum",
        /// The instruction pointer.
        init_ip: u64 = "init_ip",
        /// The code segment.
        init_relative_cs: u64 = "init_relative_cs",
        /// Offset of the relocations.
        addr_of_reloc_table: u64 = "addr_of_reloc_table",
        /// Number of the overlay.
        overlay_num: u64 = "overlay_num",
        /// The manufacturer.
        oem_id: u64 = "oem_id",
        /// Information of the manufacturer.
        oem_info: u64 = "oem_info",
        /// Offset of the PE header.
        addr_of_new_exe_header: u64 = "addr_of_new_exe_header",
    }
}

gannet_event::record! {
    /// The header of a PE file.
    #[derive(Clone, Debug)]
    pub struct FileHeader = "PE::FileHeader" {
        /// What it was compiled for.
        machine: u64 = "machine",
        /// When it was compiled.
        ts: Time = "ts",
        /// Offset of the symbols.
        sym_table_ptr: u64 = "sym_table_ptr",
        /// Symbols.
        num_syms: u64 = "num_syms",
        /// Bytes of the optional header.
        optional_header_size: u64 = "optional_header_size",
        /// Flags.
        characteristics: SetOf<u64> = "characteristics",
    }
}

gannet_event::record! {
    /// The header of a program.
    #[derive(Clone, Debug)]
    pub struct OptionalHeader = "PE::OptionalHeader" {
        /// Its kind: 0x10b for 32 bits, 0x20b for 64.
        magic: u64 = "magic",
        /// Version of the linker.
        major_linker_version: u64 = "major_linker_version",
        /// Lower part of that version.
        minor_linker_version: u64 = "minor_linker_version",
        /// Bytes of code.
        size_of_code: u64 = "size_of_code",
        /// Bytes of data with values.
        size_of_init_data: u64 = "size_of_init_data",
        /// Bytes of data without values.
        size_of_uninit_data: u64 = "size_of_uninit_data",
        /// Where it begins.
        addr_of_entry_point: u64 = "addr_of_entry_point",
        /// Where code begins.
        base_of_code: u64 = "base_of_code",
        /// Where data begin.
        base_of_data: Option<u64> = "base_of_data",
        /// Where it is loaded.
        image_base: u64 = "image_base",
        /// Alignment of sections in memory.
        section_alignment: u64 = "section_alignment",
        /// Alignment of sections in the file.
        file_alignment: u64 = "file_alignment",
        /// Version of the system that it needs.
        os_version_major: u64 = "os_version_major",
        /// Lower part of that version.
        os_version_minor: u64 = "os_version_minor",
        /// Its version.
        major_image_version: u64 = "major_image_version",
        /// Lower part of that version.
        minor_image_version: u64 = "minor_image_version",
        /// Version of the subsystem that it needs.
        major_subsys_version: u64 = "major_subsys_version",
        /// Lower part of that version.
        minor_subsys_version: u64 = "minor_subsys_version",
        /// Bytes in memory.
        size_of_image: u64 = "size_of_image",
        /// Bytes of headers.
        size_of_headers: u64 = "size_of_headers",
        /// The checksum.
        checksum: u64 = "checksum",
        /// The subsystem that it needs.
        subsystem: u64 = "subsystem",
        /// Flags.
        dll_characteristics: SetOf<u64> = "dll_characteristics",
        /// Bytes of its tables.
        table_sizes: Vec<u64> = "table_sizes",
    }
}

gannet_event::record! {
    /// The header of a section.
    #[derive(Clone, Debug)]
    pub struct SectionHeader<'a> = "PE::SectionHeader" {
        /// Its name.
        name: &'a [u8] = "name",
        /// Bytes in memory.
        virtual_size: u64 = "virtual_size",
        /// Where it is loaded.
        virtual_addr: u64 = "virtual_addr",
        /// Bytes in the file.
        size_of_raw_data: u64 = "size_of_raw_data",
        /// Offset of its data.
        ptr_to_raw_data: u64 = "ptr_to_raw_data",
        /// Offset of its relocations.
        ptr_to_relocs: u64 = "ptr_to_relocs",
        /// Offset of its line numbers.
        ptr_to_line_nums: u64 = "ptr_to_line_nums",
        /// Relocations.
        num_of_relocs: u64 = "num_of_relocs",
        /// Line numbers.
        num_of_line_nums: u64 = "num_of_line_nums",
        /// Flags.
        characteristics: SetOf<u64> = "characteristics",
    }
}

gannet_event::events! {
    MODULE;

    /// A certificate was read.
    pub struct X509Certificate<'a> = "x509_certificate" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// The certificate for functions that verify it.
        cert_ref: X509Opaque<'a> = "cert_ref",
        /// The contents of the certificate.
        cert: CertificateFacts<'a> = "cert",
    }

    /// A certificate has an extension.
    pub struct X509Extension<'a> = "x509_extension" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// The extension.
        ext: ExtensionFacts<'a> = "ext",
    }

    /// A certificate carries the timestamp of a certificate transparency log (RFC 6962).
    pub struct X509Timestamp<'a> = "x509_ocsp_ext_signed_certificate_timestamp" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// Version: 0.
        version: u64 = "version",
        /// The log's name.
        logid: &'a [u8] = "logid",
        /// Milliseconds since 1970.
        timestamp: u64 = "timestamp",
        /// Hash algorithm of the signature.
        hash_algorithm: u64 = "hash_algorithm",
        /// Signature algorithm.
        signature_algorithm: u64 = "signature_algorithm",
        /// The signature.
        signature: &'a [u8] = "signature",
    }

    /// A certificate has basic constraints.
    pub struct X509BasicConstraints = "x509_ext_basic_constraints" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// The constraints.
        ext: Constraints = "ext",
    }

    /// A certificate has alternative names of its subject.
    pub struct X509AlternativeName<'a> = "x509_ext_subject_alternative_name" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// The names.
        ext: Names<'a> = "ext",
    }


    /// A file began.
    pub struct FileNew = "file_new" {
        /// The file.
        f: FileRef = "f",
    }

    /// A file is carried by a connection that did not carry it before.
    pub struct FileOverNewConnection = "file_over_new_connection" {
        /// The file.
        f: FileRef = "f",
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sends it.
        is_orig: bool = "is_orig",
    }

    /// The next bytes of a file exceed the limit of its extraction. Handlers run at once and may raise it.
    pub struct FileExtractionLimit = "gannet::file_extraction_limit", opt_in {
        /// The file.
        f: FileRef = "f",
        /// The limit.
        limit: u64 = "limit",
        /// The number of bytes.
        len: u64 = "len",
    }

    /// A file is unusual.
    pub struct FileWeird<'a> = "file_weird" {
        /// Name of the behaviour.
        name: &'a str = "name",
        /// The file.
        f: FileRef = "f",
        /// Details.
        addl: &'a str = "addl",
        /// Name of the analyzer that reports it, if any.
        source: &'a str = "source",
    }

    /// A file is not what an analyzer was started for.
    pub struct FileViolation<'a> = "gannet::file_violation", opt_in {
        /// The file.
        f: FileRef = "f",
        /// The analyzer.
        analyzer: &'a str = "analyzer",
        /// What is wrong.
        reason: &'a str = "reason",
    }

    /// The type of a file is known.
    pub struct FileSniff = "file_sniff" {
        /// The file.
        f: FileRef = "f",
        /// Metadata inferred from its content.
        meta: Metadata = "meta",
    }

    /// Bytes of a file whose contents a listener asked for, in order.
    pub struct FileData<'a> = "gannet::file_data", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Position of the first.
        offset: u64 = "offset",
        /// The bytes.
        data: &'a [u8] = "data",
        /// Whether they came earlier, for analyzers that were not yet there.
        is_replayed: bool = "is_replayed",
    }

    /// A part of a file was not captured.
    pub struct FileGap = "file_gap", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Position of the first missing byte.
        offset: u64 = "offset",
        /// Number of missing bytes.
        len: u64 = "len",
    }

    /// Too many bytes of a file waited above a hole, which was given up.
    pub struct FileReassemblyOverflow = "file_reassembly_overflow", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Position in the file at which the hole begins.
        offset: u64 = "offset",
        /// Bytes of the hole.
        skipped: u64 = "skipped",
    }

    /// An archive has a file: before its contents, or in the directory at the end of the archive.
    pub struct ZipFile<'a> = "ZIP::file", opt_in {
        /// The archive.
        f: FileRef = "f",
        /// What the archive says of the file.
        meta: ZipEntry<'a> = "meta",
    }

    /// The directory of an archive ends.
    pub struct ZipEndOfDirectory<'a> = "ZIP::end_of_directory", opt_in {
        /// The archive.
        f: FileRef = "f",
        /// Comment of the archive.
        comment: &'a [u8] = "comment",
    }

    /// Nothing of a file came for a while.
    pub struct FileTimeout = "file_timeout" {
        /// The file.
        f: FileRef = "f",
    }

    /// A file ended.
    pub struct FileStateRemove = "file_state_remove" {
        /// The file.
        f: FileRef = "f",
    }

    /// The hash of a whole file.
    pub struct FileHash<'a> = "file_hash" {
        /// The file.
        f: FileRef = "f",
        /// The hash function.
        kind: &'a str = "kind",
        /// The hash in hexadecimal digits.
        hash: &'a str = "hash",
    }

    /// The header of a DOS program.
    pub struct PeDosHeader<'a> = "pe_dos_header" {
        /// The file.
        f: FileRef = "f",
        /// What it says.
        h: DosHeader<'a> = "h",
    }

    /// The DOS program of a PE file, which is between the headers.
    pub struct PeDosCode<'a> = "pe_dos_code", opt_in {
        /// The file.
        f: FileRef = "f",
        /// The program.
        code: &'a [u8] = "code",
    }

    /// The header of a PE file.
    pub struct PeFileHeader = "pe_file_header" {
        /// The file.
        f: FileRef = "f",
        /// What it says.
        h: FileHeader = "h",
    }

    /// The header of a program.
    pub struct PeOptionalHeader = "pe_optional_header" {
        /// The file.
        f: FileRef = "f",
        /// What it says.
        h: OptionalHeader = "h",
    }

    /// The header of a section.
    pub struct PeSectionHeader<'a> = "pe_section_header" {
        /// The file.
        f: FileRef = "f",
        /// What it says.
        h: SectionHeader<'a> = "h",
    }

    /// A request for the status of certificates.
    pub struct OcspRequest = "ocsp_request", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Version: 0.
        version: u64 = "version",
    }

    /// The status of a certificate is asked for.
    pub struct OcspRequestCertificate<'a> = "ocsp_request_certificate", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Name of the hash.
        hash_algorithm: &'a str = "hashAlgorithm",
        /// Hash of the issuer's name.
        issuer_name_hash: &'a str = "issuerNameHash",
        /// Hash of the issuer's key.
        issuer_key_hash: &'a str = "issuerKeyHash",
        /// Serial number.
        serial_number: &'a str = "serialNumber",
    }

    /// A response about the status of certificates.
    pub struct OcspResponseStatus<'a> = "ocsp_response_status", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Whether the responder answered (`successful`), or why not.
        status: &'a str = "status",
    }

    /// A response, after the status of its certificates.
    pub struct OcspResponseBytes<'a> = "ocsp_response_bytes", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Whether the responder answered (`successful`), or why not.
        status: &'a str = "status",
        /// Version: 0.
        version: u64 = "version",
        /// Name of the responder, or the hash of its key.
        responder_id: &'a str = "responderId",
        /// When it was made.
        produced_at: Time = "producedAt",
        /// Algorithm of its signature.
        signature_algorithm: &'a str = "signatureAlgorithm",
        /// Certificates of the responder, for functions that verify them.
        certs: Vec<X509Opaque<'a>> = "certs",
    }

    /// A response, or the status of one certificate in it, has an extension.
    pub struct OcspExtension<'a> = "ocsp_extension", opt_in {
        /// The file.
        f: FileRef = "f",
        /// The extension.
        ext: ExtensionFacts<'a> = "ext",
        /// Whether it is one of the whole response.
        global_resp: bool = "global_resp",
    }

    /// The status of a certificate.
    pub struct OcspResponseCertificate<'a> = "ocsp_response_certificate" {
        /// The file.
        f: FileRef = "f",
        /// Name of the hash.
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
        revoke_time: Time = "revokeTime",
        /// Why it was revoked.
        revoke_reason: &'a str = "revokeReason",
        /// When the status was known to be right.
        this_update: Time = "thisUpdate",
        /// When there will be news.
        next_update: Time = "nextUpdate",
    }
}

impl<'a> ExtensionFacts<'a> {
    /// An extension as events show it.
    pub fn of(extension: &'a Extension) -> Self {
        Self {
            name: &extension.name,
            short_name: Some(extension.short_name),
            oid: &extension.oid,
            critical: extension.critical,
            value: &extension.value,
        }
    }
}

impl<'a> X509Timestamp<'a> {
    /// The event of a timestamp that a file holds.
    pub fn of(f: FileRef, timestamp: &'a Timestamp) -> Self {
        Self {
            f,
            version: timestamp.version.into(),
            logid: &timestamp.log_id,
            timestamp: timestamp.millis,
            hash_algorithm: timestamp.hash.into(),
            signature_algorithm: timestamp.algorithm.into(),
            signature: &timestamp.signature,
        }
    }
}
