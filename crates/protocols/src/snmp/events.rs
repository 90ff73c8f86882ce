//! Events of SNMP.

use gannet_base::Addr;
use gannet_event::Connection;

use super::bindings::Bindings;
use super::bindings::Oid;

gannet_event::record! {
    /// Header of version 1 (RFC 1157).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderV1<'a> = "SNMP::HeaderV1" {
        /// The community, which is the password.
        community: &'a [u8] = "community",
    }
}

gannet_event::record! {
    /// Header of version 2c (RFC 1901).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderV2<'a> = "SNMP::HeaderV2" {
        /// The community, which is the password.
        community: &'a [u8] = "community",
    }
}

gannet_event::record! {
    /// Context of a scoped PDU of version 3 (RFC 3412).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ScopedContext<'a> = "SNMP::ScopedPDU_Context" {
        /// Identifier of the engine.
        engine_id: &'a [u8] = "engine_id",
        /// Name of the context in the engine.
        name: &'a [u8] = "name",
    }
}

gannet_event::record! {
    /// Parameters of the user-based security model (RFC 3414).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UserSecurity<'a> = "SNMP::UserSecurityParameters" {
        /// Identifier of the authoritative engine.
        engine_id: &'a [u8] = "AuthoritativeEngineID",
        /// Number of times that the engine was started.
        engine_boots: i64 = "AuthoritativeEngineBoots",
        /// Seconds since the last start.
        engine_time: i64 = "AuthoritativeEngineTime",
        /// User name.
        user_name: &'a [u8] = "UserName",
        /// Authentication parameters: checksum of the message.
        authentication: &'a [u8] = "AuthenticationParameters",
        /// Privacy parameters: salt of the encryption.
        privacy: &'a [u8] = "PrivacyParameters",
    }
}

gannet_event::record! {
    /// Header of version 3 (RFC 3412).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderV3<'a> = "SNMP::HeaderV3" {
        /// Message identifier, which matches a response to its request.
        id: u64 = "id",
        /// Maximum size of a message that the sender accepts, in bytes.
        max_size: u64 = "max_size",
        /// Flags.
        flags: u64 = "flags",
        /// Whether the message is authenticated.
        auth_flag: bool = "auth_flag",
        /// Whether it is encrypted.
        priv_flag: bool = "priv_flag",
        /// Whether a report may be sent in reply.
        reportable_flag: bool = "reportable_flag",
        /// Security model.
        security_model: u64 = "security_model",
        /// Parameters of the security model.
        security_params: &'a [u8] = "security_params",
        /// Context of the PDU, unless encrypted.
        pdu_context: Option<ScopedContext<'a>> = "pdu_context",
        /// Parameters of the user-based security model.
        user_security_parameters: Option<UserSecurity<'a>> = "user_security_parameters",
    }
}

gannet_event::record! {
    /// Header of any version.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Header<'a> = "SNMP::Header" {
        /// Version number: 0 for version 1, 1 for version 2c, 3 for version 3.
        version: u64 = "version",
        /// Header of version 1.
        v1: Option<HeaderV1<'a>> = "v1",
        /// Header of version 2c.
        v2: Option<HeaderV2<'a>> = "v2",
        /// Header of version 3.
        v3: Option<HeaderV3<'a>> = "v3",
    }
}

impl<'a> Header<'a> {
    /// The community, or the user of version 3 unless the message is encrypted.
    pub fn community(&self) -> Option<&'a [u8]> {
        let user = || self.v3?.user_security_parameters.map(|user| user.user_name);
        let community = self.v1.map(|v1| v1.community).or(self.v2.map(|v2| v2.community));
        community.or_else(|| user().filter(|user| !user.is_empty()))
    }
}

gannet_event::record! {
    /// A PDU of a request, response or report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Pdu<'a> = "SNMP::PDU" {
        /// Request identifier, which matches a response to its request.
        request_id: i64 = "request_id",
        /// Error status.
        error_status: i64 = "error_status",
        /// Index of the variable binding in error.
        error_index: i64 = "error_index",
        /// The variable bindings.
        bindings: Bindings<'a> = "bindings",
    }
}

gannet_event::record! {
    /// A trap of version 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TrapPdu<'a> = "SNMP::TrapPDU" {
        /// Type of the object that generated the trap.
        enterprise: Oid<'a> = "enterprise",
        /// Address of the agent.
        agent: Addr = "agent",
        /// Generic trap type.
        generic_trap: i64 = "generic_trap",
        /// Enterprise-specific trap type.
        specific_trap: i64 = "specific_trap",
        /// Hundredths of a second since the agent started.
        time_stamp: u64 = "time_stamp",
        /// The variable bindings.
        bindings: Bindings<'a> = "bindings",
    }
}

gannet_event::record! {
    /// A PDU of a GetBulkRequest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BulkPdu<'a> = "SNMP::BulkPDU" {
        /// Request identifier, which matches a response to its request.
        request_id: i64 = "request_id",
        /// Number of variables that are requested once.
        non_repeaters: u64 = "non_repeaters",
        /// Number of successors requested of each other variable.
        max_repetitions: u64 = "max_repetitions",
        /// The variable bindings.
        bindings: Bindings<'a> = "bindings",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Snmp);

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Header of the message.
        header: Header<'a> = "header",
        /// The request.
        pdu: Pdu<'a> = "pdu",
    } {
        /// A client requests values of variables.
        pub struct SnmpGetRequest<'a> = "snmp_get_request" {}

        /// A client requests the values of the next variables.
        pub struct SnmpGetNextRequest<'a> = "snmp_get_next_request" {}

        /// Values are to be changed.
        pub struct SnmpSetRequest<'a> = "snmp_set_request" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Header of the message.
        header: Header<'a> = "header",
    } {
        /// A server returns values.
        pub struct SnmpResponse<'a> = "snmp_response" {
            /// The response.
            pdu: Pdu<'a> = "pdu",
        }

        /// An agent of version 1 sends a trap.
        pub struct SnmpTrap<'a> = "snmp_trap" {
            /// The report.
            pdu: TrapPdu<'a> = "pdu",
        }

        /// A client requests many values.
        pub struct SnmpGetBulkRequest<'a> = "snmp_get_bulk_request" {
            /// The request.
            pdu: BulkPdu<'a> = "pdu",
        }

        /// The PDU of a message has an unknown type.
        pub struct SnmpUnknownPdu<'a> = "snmp_unknown_pdu" {
            /// Its tag.
            tag: u64 = "tag",
        }

        /// The scoped PDU of a message of version 3 has an unknown type.
        pub struct SnmpUnknownScopedPdu<'a> = "snmp_unknown_scoped_pdu" {
            /// Its tag.
            tag: u64 = "tag",
        }

        /// A message is encrypted.
        pub struct SnmpEncryptedPdu<'a> = "snmp_encrypted_pdu" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Header of the message.
        header: Header<'a> = "header",
        /// The report.
        pdu: Pdu<'a> = "pdu",
    } {
        /// A manager sends a notification.
        pub struct SnmpInformRequest<'a> = "snmp_inform_request" {}

        /// An agent sends a notification.
        pub struct SnmpTrapV2<'a> = "snmp_trapV2" {}

        /// An engine reports an error in a message.
        pub struct SnmpReport<'a> = "snmp_report" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// The version of a message is not supported.
        pub struct SnmpUnknownHeaderVersion = "snmp_unknown_header_version", opt_in {
            /// The version number in the header.
            version: u64 = "version",
        }
    }
}
