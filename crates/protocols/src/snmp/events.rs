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
    /// What a message of version 3 is about (RFC 3412).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ScopedContext<'a> = "SNMP::ScopedPDU_Context" {
        /// The engine.
        engine_id: &'a [u8] = "engine_id",
        /// The context within it.
        name: &'a [u8] = "name",
    }
}

gannet_event::record! {
    /// Parameters of the user-based security model (RFC 3414).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UserSecurity<'a> = "SNMP::UserSecurityParameters" {
        /// The engine whose clock counts.
        engine_id: &'a [u8] = "AuthoritativeEngineID",
        /// How often it was started.
        engine_boots: i64 = "AuthoritativeEngineBoots",
        /// Seconds since then.
        engine_time: i64 = "AuthoritativeEngineTime",
        /// The user.
        user_name: &'a [u8] = "UserName",
        /// Checksum of the message.
        authentication: &'a [u8] = "AuthenticationParameters",
        /// Salt of the encryption.
        privacy: &'a [u8] = "PrivacyParameters",
    }
}

gannet_event::record! {
    /// Header of version 3 (RFC 3412).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HeaderV3<'a> = "SNMP::HeaderV3" {
        /// Joins a response to its request.
        id: u64 = "id",
        /// Longest message that the sender takes.
        max_size: u64 = "max_size",
        /// Flags.
        flags: u64 = "flags",
        /// Whether the message is authenticated.
        auth_flag: bool = "auth_flag",
        /// Whether it is encrypted.
        priv_flag: bool = "priv_flag",
        /// Whether a report may answer it.
        reportable_flag: bool = "reportable_flag",
        /// Security model.
        security_model: u64 = "security_model",
        /// Its parameters.
        security_params: &'a [u8] = "security_params",
        /// The request or response, unless encrypted.
        pdu_context: Option<ScopedContext<'a>> = "pdu_context",
        /// The parameters of the user-based model.
        user_security_parameters: Option<UserSecurity<'a>> = "user_security_parameters",
    }
}

gannet_event::record! {
    /// Header of any version.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Header<'a> = "SNMP::Header" {
        /// The version: 0 is 1, 1 is 2c, 3 is 3.
        version: u64 = "version",
        /// Of version 1.
        v1: Option<HeaderV1<'a>> = "v1",
        /// Of version 2c.
        v2: Option<HeaderV2<'a>> = "v2",
        /// Of version 3.
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
    /// A request or response.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Pdu<'a> = "SNMP::PDU" {
        /// Joins a response to its request.
        request_id: i64 = "request_id",
        /// What went wrong.
        error_status: i64 = "error_status",
        /// The variable that it went wrong with.
        error_index: i64 = "error_index",
        /// The variables.
        bindings: Bindings<'a> = "bindings",
    }
}

gannet_event::record! {
    /// A trap of version 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TrapPdu<'a> = "SNMP::TrapPDU" {
        /// Kind of the object that reports it.
        enterprise: Oid<'a> = "enterprise",
        /// Its address.
        agent: Addr = "agent",
        /// Kind of the trap.
        generic_trap: i64 = "generic_trap",
        /// The enterprise's own kind.
        specific_trap: i64 = "specific_trap",
        /// Hundredths of a second since the agent started.
        time_stamp: u64 = "time_stamp",
        /// The variables.
        bindings: Bindings<'a> = "bindings",
    }
}

gannet_event::record! {
    /// A request for many variables.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BulkPdu<'a> = "SNMP::BulkPDU" {
        /// Joins a response to its request.
        request_id: i64 = "request_id",
        /// Variables that are wanted once.
        non_repeaters: u64 = "non_repeaters",
        /// How often the others are wanted.
        max_repetitions: u64 = "max_repetitions",
        /// The variables.
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
        /// Values are asked for.
        pub struct SnmpGetRequest<'a> = "snmp_get_request" {}

        /// The values behind some are asked for.
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
        /// Values are given.
        pub struct SnmpResponse<'a> = "snmp_response" {
            /// The response.
            pdu: Pdu<'a> = "pdu",
        }

        /// An agent of version 1 reports something.
        pub struct SnmpTrap<'a> = "snmp_trap" {
            /// The report.
            pdu: TrapPdu<'a> = "pdu",
        }

        /// Many values are asked for.
        pub struct SnmpGetBulkRequest<'a> = "snmp_get_bulk_request" {
            /// The request.
            pdu: BulkPdu<'a> = "pdu",
        }

        /// The body of a message is of no known kind.
        pub struct SnmpUnknownPdu<'a> = "snmp_unknown_pdu" {
            /// Its tag.
            tag: u64 = "tag",
        }

        /// The part of a message of version 3 that holds the body is of no known kind.
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
        /// A manager reports something.
        pub struct SnmpInformRequest<'a> = "snmp_inform_request" {}

        /// An agent reports something.
        pub struct SnmpTrapV2<'a> = "snmp_trapV2" {}

        /// An engine reports something about a request.
        pub struct SnmpReport<'a> = "snmp_report" {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// The version of a message is unknown.
        pub struct SnmpUnknownHeaderVersion = "snmp_unknown_header_version", opt_in {
            /// The version, as the header has it.
            version: u64 = "version",
        }
    }
}
