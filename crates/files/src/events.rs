//! Events of files.

/// Number of the module that declares events of files.
pub const MODULE: u16 = 0;
use std::borrow::Cow;

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::FileRef;
use gannet_event::Packer;
use gannet_event::Type;

/// A certificate that listeners cannot look into.
#[derive(Clone, Copy, Debug)]
pub struct X509Opaque;

impl Arg for X509Opaque {
    const TYPE: Type = Type::Opaque("X509Val");
    fn pack(&self, _to: &mut Packer<'_>) {}
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

gannet_event::events! {
    MODULE;

    /// A certificate was read.
    pub struct X509Certificate<'a> = "x509_certificate" {
        /// The certificate as a file.
        f: FileRef = "f",
        /// The certificate for functions that verify it.
        cert_ref: X509Opaque = "cert_ref",
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

    /// The type of a file is known.
    pub struct FileSniff = "file_sniff" {
        /// The file.
        f: FileRef = "f",
        /// Metadata inferred from its content.
        meta: Metadata = "meta",
    }

    /// A part of a file was not captured.
    pub struct FileGap = "file_gap" {
        /// The file.
        f: FileRef = "f",
        /// Position of the first missing byte.
        offset: u64 = "offset",
        /// Number of missing bytes.
        len: u64 = "len",
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
}
