//! Events of files.

/// Number of this module among those that declare events.
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

/// A certificate as an opaque value of scripts: its DER form, for functions that parse it.
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
        /// Strength of the match.
        strength: i64 = "strength",
        /// The type.
        mime: &'static str = "mime",
    }
}

gannet_event::record! {
    /// Metadata of a file.
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
    /// Metadata of a file in an archive.
    #[derive(Clone, Debug)]
    pub struct ZipEntry<'a> = "ZIP::File" {
        /// Whether this is from the central directory, not from the local header before the contents.
        is_in_directory: bool = "global_",
        /// The file uid of the contents.
        fid: Option<Uid> = "fid",
        /// Name of the file.
        filename: &'a [u8] = "filename",
        /// Modification time.
        changed: Time = "time_",
        /// Comment.
        comment: &'a [u8] = "comment",
        /// Compression method.
        method: Method = "compression",
        /// Whether it is encrypted.
        is_encrypted: bool = "encrypted",
    }
}

gannet_event::record! {
    /// Facts about a certificate (RFC 5280).
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
        /// Algorithm of the signature, as stated in the signed part.
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
        /// Whether it is critical.
        critical: bool = "critical",
        /// Its contents as text.
        value: &'a [u8] = "value",
    }
}

gannet_event::record! {
    /// Basic constraints (RFC 5280 section 4.2.1.9).
    #[derive(Clone, Copy, Debug)]
    pub struct Constraints = "X509::BasicConstraints" {
        /// Whether the subject may issue certificates.
        ca: bool = "ca",
        /// Maximum number of intermediate certificates below this one.
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
        /// IP addresses.
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
        /// Number of bytes in the last page.
        used_bytes_in_last_page: u64 = "used_bytes_in_last_page",
        /// Number of pages.
        file_in_pages: u64 = "file_in_pages",
        /// Number of relocations.
        num_reloc_items: u64 = "num_reloc_items",
        /// Length of the header in paragraphs.
        header_in_paragraphs: u64 = "header_in_paragraphs",
        /// Minimum number of additional paragraphs.
        min_extra_paragraphs: u64 = "min_extra_paragraphs",
        /// Maximum number of additional paragraphs.
        max_extra_paragraphs: u64 = "max_extra_paragraphs",
        /// Initial stack segment.
        init_relative_ss: u64 = "init_relative_ss",
        /// Initial stack pointer.
        init_sp: u64 = "init_sp",
        /// The checksum.
        checksum: u64 = "checksum",
        /// Initial instruction pointer.
        init_ip: u64 = "init_ip",
        /// Initial code segment.
        init_relative_cs: u64 = "init_relative_cs",
        /// Offset of the relocation table.
        addr_of_reloc_table: u64 = "addr_of_reloc_table",
        /// Number of the overlay.
        overlay_num: u64 = "overlay_num",
        /// OEM identifier.
        oem_id: u64 = "oem_id",
        /// OEM information.
        oem_info: u64 = "oem_info",
        /// Offset of the PE header.
        addr_of_new_exe_header: u64 = "addr_of_new_exe_header",
    }
}

gannet_event::record! {
    /// The header of a PE file.
    #[derive(Clone, Debug)]
    pub struct FileHeader = "PE::FileHeader" {
        /// Target machine.
        machine: u64 = "machine",
        /// Compile time.
        ts: Time = "ts",
        /// Offset of the symbol table.
        sym_table_ptr: u64 = "sym_table_ptr",
        /// Number of symbols.
        num_syms: u64 = "num_syms",
        /// Size of the optional header in bytes.
        optional_header_size: u64 = "optional_header_size",
        /// Flags.
        characteristics: SetOf<u64> = "characteristics",
    }
}

gannet_event::record! {
    /// The optional header of a PE file.
    #[derive(Clone, Debug)]
    pub struct OptionalHeader = "PE::OptionalHeader" {
        /// Format: 0x10b is PE32, 0x20b is PE32+.
        magic: u64 = "magic",
        /// Major version of the linker.
        major_linker_version: u64 = "major_linker_version",
        /// Minor version of the linker.
        minor_linker_version: u64 = "minor_linker_version",
        /// Size of the code in bytes.
        size_of_code: u64 = "size_of_code",
        /// Size of initialized data in bytes.
        size_of_init_data: u64 = "size_of_init_data",
        /// Size of uninitialized data in bytes.
        size_of_uninit_data: u64 = "size_of_uninit_data",
        /// Address of the entry point.
        addr_of_entry_point: u64 = "addr_of_entry_point",
        /// Address of the code.
        base_of_code: u64 = "base_of_code",
        /// Address of the data.
        base_of_data: Option<u64> = "base_of_data",
        /// Preferred load address.
        image_base: u64 = "image_base",
        /// Alignment of sections in memory.
        section_alignment: u64 = "section_alignment",
        /// Alignment of sections in the file.
        file_alignment: u64 = "file_alignment",
        /// Major version of the required operating system.
        os_version_major: u64 = "os_version_major",
        /// Minor version of the required operating system.
        os_version_minor: u64 = "os_version_minor",
        /// Major version of the image.
        major_image_version: u64 = "major_image_version",
        /// Minor version of the image.
        minor_image_version: u64 = "minor_image_version",
        /// Major version of the required subsystem.
        major_subsys_version: u64 = "major_subsys_version",
        /// Minor version of the required subsystem.
        minor_subsys_version: u64 = "minor_subsys_version",
        /// Size in memory in bytes.
        size_of_image: u64 = "size_of_image",
        /// Size of all headers in bytes.
        size_of_headers: u64 = "size_of_headers",
        /// The checksum.
        checksum: u64 = "checksum",
        /// The required subsystem.
        subsystem: u64 = "subsystem",
        /// Flags.
        dll_characteristics: SetOf<u64> = "dll_characteristics",
        /// Sizes of the data directories in bytes.
        table_sizes: Vec<u64> = "table_sizes",
    }
}

gannet_event::record! {
    /// The header of a section.
    #[derive(Clone, Debug)]
    pub struct SectionHeader<'a> = "PE::SectionHeader" {
        /// Its name.
        name: &'a [u8] = "name",
        /// Size in memory in bytes.
        virtual_size: u64 = "virtual_size",
        /// Load address.
        virtual_addr: u64 = "virtual_addr",
        /// Size in the file in bytes.
        size_of_raw_data: u64 = "size_of_raw_data",
        /// Offset of its data.
        ptr_to_raw_data: u64 = "ptr_to_raw_data",
        /// Offset of its relocations.
        ptr_to_relocs: u64 = "ptr_to_relocs",
        /// Offset of its line numbers.
        ptr_to_line_nums: u64 = "ptr_to_line_nums",
        /// Number of relocations.
        num_of_relocs: u64 = "num_of_relocs",
        /// Number of line numbers.
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
        /// Log id.
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

    /// The next bytes of a file exceed the limit of its extraction. Handlers run immediately and may raise the limit.
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

    /// A file violates the format that an analyzer expects.
    pub struct FileViolation<'a> = "gannet::file_violation", opt_in {
        /// The file.
        f: FileRef = "f",
        /// The analyzer.
        analyzer: &'a str = "analyzer",
        /// The reason.
        reason: &'a str = "reason",
    }

    /// The type of a file was detected.
    pub struct FileSniff = "file_sniff" {
        /// The file.
        f: FileRef = "f",
        /// Metadata inferred from its content.
        meta: Metadata = "meta",
    }

    /// In-order bytes of a file whose contents a listener requested.
    pub struct FileData<'a> = "gannet::file_data", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Offset of the first byte.
        offset: u64 = "offset",
        /// The bytes.
        data: &'a [u8] = "data",
        /// Whether the bytes arrived earlier and are replayed for analyzers that were added later.
        is_replayed: bool = "is_replayed",
    }

    /// A part of a file was not captured.
    pub struct FileGap = "file_gap", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Offset of the first missing byte.
        offset: u64 = "offset",
        /// Number of missing bytes.
        len: u64 = "len",
    }

    /// Too many bytes of a file were buffered above a hole, which was skipped.
    pub struct FileReassemblyOverflow = "file_reassembly_overflow", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Offset of the first byte of the hole.
        offset: u64 = "offset",
        /// Number of bytes of the hole.
        skipped: u64 = "skipped",
    }

    /// An archive has an entry: in a local header before its contents, or in the central directory.
    pub struct ZipFile<'a> = "ZIP::file", opt_in {
        /// The archive.
        f: FileRef = "f",
        /// Metadata of the file in the archive.
        meta: ZipEntry<'a> = "meta",
    }

    /// The central directory of an archive ends.
    pub struct ZipEndOfDirectory<'a> = "ZIP::end_of_directory", opt_in {
        /// The archive.
        f: FileRef = "f",
        /// Comment of the archive.
        comment: &'a [u8] = "comment",
    }

    /// A file timed out: no data arrived for some time.
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
        /// The header.
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
        /// The header.
        h: FileHeader = "h",
    }

    /// The optional header of a PE file.
    pub struct PeOptionalHeader = "pe_optional_header" {
        /// The file.
        f: FileRef = "f",
        /// The header.
        h: OptionalHeader = "h",
    }

    /// The header of a section.
    pub struct PeSectionHeader<'a> = "pe_section_header" {
        /// The file.
        f: FileRef = "f",
        /// The header.
        h: SectionHeader<'a> = "h",
    }

    /// An OCSP request.
    pub struct OcspRequest = "ocsp_request", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Version: 0.
        version: u64 = "version",
    }

    /// The status of a certificate is requested.
    pub struct OcspRequestCertificate<'a> = "ocsp_request_certificate", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Name of the hash algorithm.
        hash_algorithm: &'a str = "hashAlgorithm",
        /// Hash of the issuer's name.
        issuer_name_hash: &'a str = "issuerNameHash",
        /// Hash of the issuer's key.
        issuer_key_hash: &'a str = "issuerKeyHash",
        /// Serial number.
        serial_number: &'a str = "serialNumber",
    }

    /// An OCSP response.
    pub struct OcspResponseStatus<'a> = "ocsp_response_status", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Status of the response: `successful`, or the reason of the failure.
        status: &'a str = "status",
    }

    /// An OCSP response, after the status of its certificates.
    pub struct OcspResponseBytes<'a> = "ocsp_response_bytes", opt_in {
        /// The file.
        f: FileRef = "f",
        /// Status of the response: `successful`, or the reason of the failure.
        status: &'a str = "status",
        /// Version: 0.
        version: u64 = "version",
        /// Name of the responder, or the hash of its key.
        responder_id: &'a str = "responderId",
        /// Time of production.
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
        /// Whether it belongs to the whole response.
        global_resp: bool = "global_resp",
    }

    /// The status of a certificate in an OCSP response.
    pub struct OcspResponseCertificate<'a> = "ocsp_response_certificate" {
        /// The file.
        f: FileRef = "f",
        /// Name of the hash algorithm.
        hash_algorithm: &'a str = "hashAlgorithm",
        /// Hash of the issuer's name.
        issuer_name_hash: &'a str = "issuerNameHash",
        /// Hash of the issuer's key.
        issuer_key_hash: &'a str = "issuerKeyHash",
        /// Serial number.
        serial_number: &'a str = "serialNumber",
        /// `good`, `revoked` or `unknown`.
        cert_status: &'a str = "certStatus",
        /// Time of the revocation.
        revoke_time: Time = "revokeTime",
        /// Reason of the revocation.
        revoke_reason: &'a str = "revokeReason",
        /// Time at which the status was known to be correct.
        this_update: Time = "thisUpdate",
        /// Time at which newer information will be available.
        next_update: Time = "nextUpdate",
    }
}

impl<'a> ExtensionFacts<'a> {
    /// An extension in the form of events.
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
    /// The event of a certificate transparency timestamp of a file.
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
