//! Events of LDAP.

use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;

use super::ber::Text;
use super::message::Message;
use super::names;

/// Number of an operation (RFC 4511 section 4.2 and following).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolOpcode(pub Option<u8>);

gannet_event::enumeration!(ProtocolOpcode = "LDAP::ProtocolOpcode", |code| match code
    .0
    .unwrap_or(u8::MAX)
{
    0 => "LDAP::ProtocolOpcode_BIND_REQUEST",
    1 => "LDAP::ProtocolOpcode_BIND_RESPONSE",
    2 => "LDAP::ProtocolOpcode_UNBIND_REQUEST",
    3 => "LDAP::ProtocolOpcode_SEARCH_REQUEST",
    4 => "LDAP::ProtocolOpcode_SEARCH_RESULT_ENTRY",
    5 => "LDAP::ProtocolOpcode_SEARCH_RESULT_DONE",
    6 => "LDAP::ProtocolOpcode_MODIFY_REQUEST",
    7 => "LDAP::ProtocolOpcode_MODIFY_RESPONSE",
    8 => "LDAP::ProtocolOpcode_ADD_REQUEST",
    9 => "LDAP::ProtocolOpcode_ADD_RESPONSE",
    10 => "LDAP::ProtocolOpcode_DEL_REQUEST",
    11 => "LDAP::ProtocolOpcode_DEL_RESPONSE",
    12 => "LDAP::ProtocolOpcode_MOD_DN_REQUEST",
    13 => "LDAP::ProtocolOpcode_MOD_DN_RESPONSE",
    14 => "LDAP::ProtocolOpcode_COMPARE_REQUEST",
    15 => "LDAP::ProtocolOpcode_COMPARE_RESPONSE",
    16 => "LDAP::ProtocolOpcode_ABANDON_REQUEST",
    19 => "LDAP::ProtocolOpcode_SEARCH_RESULT_REFERENCE",
    23 => "LDAP::ProtocolOpcode_EXTENDED_REQUEST",
    24 => "LDAP::ProtocolOpcode_EXTENDED_RESPONSE",
    25 => "LDAP::ProtocolOpcode_INTERMEDIATE_RESPONSE",
    _ => "LDAP::ProtocolOpcode_Undef",
});

/// Result of an operation (RFC 4511 section 4.1.9); `None` for a message without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCode(pub Option<u8>);

gannet_event::enumeration!(
    ResultCode = "LDAP::ResultCode",
    |code| match code.0.unwrap_or(u8::MAX) {
        0 => "LDAP::ResultCode_SUCCESS",
        1 => "LDAP::ResultCode_OPERATIONS_ERROR",
        2 => "LDAP::ResultCode_PROTOCOL_ERROR",
        3 => "LDAP::ResultCode_TIME_LIMIT_EXCEEDED",
        4 => "LDAP::ResultCode_SIZE_LIMIT_EXCEEDED",
        5 => "LDAP::ResultCode_COMPARE_FALSE",
        6 => "LDAP::ResultCode_COMPARE_TRUE",
        7 => "LDAP::ResultCode_AUTH_METHOD_NOT_SUPPORTED",
        8 => "LDAP::ResultCode_STRONGER_AUTH_REQUIRED",
        9 => "LDAP::ResultCode_PARTIAL_RESULTS",
        10 => "LDAP::ResultCode_REFERRAL",
        11 => "LDAP::ResultCode_ADMIN_LIMIT_EXCEEDED",
        12 => "LDAP::ResultCode_UNAVAILABLE_CRITICAL_EXTENSION",
        13 => "LDAP::ResultCode_CONFIDENTIALITY_REQUIRED",
        14 => "LDAP::ResultCode_SASL_BIND_IN_PROGRESS",
        16 => "LDAP::ResultCode_NO_SUCH_ATTRIBUTE",
        17 => "LDAP::ResultCode_UNDEFINED_ATTRIBUTE_TYPE",
        18 => "LDAP::ResultCode_INAPPROPRIATE_MATCHING",
        19 => "LDAP::ResultCode_CONSTRAINT_VIOLATION",
        20 => "LDAP::ResultCode_ATTRIBUTE_OR_VALUE_EXISTS",
        21 => "LDAP::ResultCode_INVALID_ATTRIBUTE_SYNTAX",
        32 => "LDAP::ResultCode_NO_SUCH_OBJECT",
        33 => "LDAP::ResultCode_ALIAS_PROBLEM",
        34 => "LDAP::ResultCode_INVALID_DNSYNTAX",
        36 => "LDAP::ResultCode_ALIAS_DEREFERENCING_PROBLEM",
        48 => "LDAP::ResultCode_INAPPROPRIATE_AUTHENTICATION",
        49 => "LDAP::ResultCode_INVALID_CREDENTIALS",
        50 => "LDAP::ResultCode_INSUFFICIENT_ACCESS_RIGHTS",
        51 => "LDAP::ResultCode_BUSY",
        52 => "LDAP::ResultCode_UNAVAILABLE",
        53 => "LDAP::ResultCode_UNWILLING_TO_PERFORM",
        54 => "LDAP::ResultCode_LOOP_DETECT",
        60 => "LDAP::ResultCode_SORT_CONTROL_MISSING",
        61 => "LDAP::ResultCode_OFFSET_RANGE_ERROR",
        64 => "LDAP::ResultCode_NAMING_VIOLATION",
        65 => "LDAP::ResultCode_OBJECT_CLASS_VIOLATION",
        66 => "LDAP::ResultCode_NOT_ALLOWED_ON_NON_LEAF",
        67 => "LDAP::ResultCode_NOT_ALLOWED_ON_RDN",
        68 => "LDAP::ResultCode_ENTRY_ALREADY_EXISTS",
        69 => "LDAP::ResultCode_OBJECT_CLASS_MODS_PROHIBITED",
        70 => "LDAP::ResultCode_RESULTS_TOO_LARGE",
        71 => "LDAP::ResultCode_AFFECTS_MULTIPLE_DSAS",
        76 => "LDAP::ResultCode_CONTROL_ERROR",
        80 => "LDAP::ResultCode_OTHER",
        81 => "LDAP::ResultCode_SERVER_DOWN",
        82 => "LDAP::ResultCode_LOCAL_ERROR",
        83 => "LDAP::ResultCode_ENCODING_ERROR",
        84 => "LDAP::ResultCode_DECODING_ERROR",
        85 => "LDAP::ResultCode_TIMEOUT",
        86 => "LDAP::ResultCode_AUTH_UNKNOWN",
        87 => "LDAP::ResultCode_FILTER_ERROR",
        88 => "LDAP::ResultCode_USER_CANCELED",
        89 => "LDAP::ResultCode_PARAM_ERROR",
        90 => "LDAP::ResultCode_NO_MEMORY",
        91 => "LDAP::ResultCode_CONNECT_ERROR",
        92 => "LDAP::ResultCode_NOT_SUPPORTED",
        93 => "LDAP::ResultCode_CONTROL_NOT_FOUND",
        94 => "LDAP::ResultCode_NO_RESULTS_RETURNED",
        95 => "LDAP::ResultCode_MORE_RESULTS_TO_RETURN",
        96 => "LDAP::ResultCode_CLIENT_LOOP",
        97 => "LDAP::ResultCode_REFERRAL_LIMIT_EXCEEDED",
        100 => "LDAP::ResultCode_INVALID_RESPONSE",
        101 => "LDAP::ResultCode_AMBIGUOUS_RESPONSE",
        112 => "LDAP::ResultCode_TLS_NOT_SUPPORTED",
        113 => "LDAP::ResultCode_INTERMEDIATE_RESPONSE",
        114 => "LDAP::ResultCode_UNKNOWN_TYPE",
        115 => "LDAP::ResultCode_LCUP_INVALID_DATA",
        116 => "LDAP::ResultCode_LCUP_UNSUPPORTED_SCHEME",
        117 => "LDAP::ResultCode_LCUP_RELOAD_REQUIRED",
        118 => "LDAP::ResultCode_CANCELED",
        119 => "LDAP::ResultCode_NO_SUCH_OPERATION",
        120 => "LDAP::ResultCode_TOO_LATE",
        121 => "LDAP::ResultCode_CANNOT_CANCEL",
        122 => "LDAP::ResultCode_ASSERTION_FAILED",
        123 => "LDAP::ResultCode_AUTHORIZATION_DENIED",
        _ => "LDAP::ResultCode_Undef",
    }
);

/// Authentication method of a bind request (RFC 4511 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindAuthType(pub Option<u8>);

gannet_event::enumeration!(BindAuthType = "LDAP::BindAuthType", |code| match code
    .0
    .unwrap_or(u8::MAX)
{
    0 => "LDAP::BindAuthType_BIND_AUTH_SIMPLE",
    3 => "LDAP::BindAuthType_BIND_AUTH_SASL",
    9 => "LDAP::BindAuthType_SICILY_PACKAGE_DISCOVERY",
    10 => "LDAP::BindAuthType_SICILY_NEGOTIATE",
    11 => "LDAP::BindAuthType_SICILY_RESPONSE",
    _ => "LDAP::BindAuthType_Undef",
});

/// Scope of a search (RFC 4511 section 4.5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchScope(pub Option<u8>);

gannet_event::enumeration!(
    SearchScope = "LDAP::SearchScope",
    |code| match code.0.unwrap_or(u8::MAX) {
        0 => "LDAP::SearchScope_SEARCH_BASE",
        1 => "LDAP::SearchScope_SEARCH_SINGLE",
        2 => "LDAP::SearchScope_SEARCH_TREE",
        _ => "LDAP::SearchScope_Undef",
    }
);

/// Alias handling of a search (RFC 4511 section 4.5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchDerefAlias(pub Option<u8>);

gannet_event::enumeration!(SearchDerefAlias = "LDAP::SearchDerefAlias", |code| match code
    .0
    .unwrap_or(u8::MAX)
{
    0 => "LDAP::SearchDerefAlias_DEREF_NEVER",
    1 => "LDAP::SearchDerefAlias_DEREF_IN_SEARCHING",
    2 => "LDAP::SearchDerefAlias_DEREF_FINDING_BASE",
    3 => "LDAP::SearchDerefAlias_DEREF_ALWAYS",
    _ => "LDAP::SearchDerefAlias_Undef",
});

/// A message with its operation, packed as the name of the operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a>(pub(super) &'a Message<'a>);

impl Arg for Operation<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        names::operation(self.0.code).pack(to);
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::LdapTcp);

    with {
        /// The connection.
        c: Connection = "c",
        /// Identifier that a response has in common with its request.
        message_id: i64 = "message_id",
    } {
        /// Any message.
        pub struct MessageSeen<'a> = "LDAP::message" {
            /// Operation.
            opcode: ProtocolOpcode = "opcode",
            /// Result, if it has one.
            result: ResultCode = "result",
            /// The last object that matched on the path to the requested one.
            matched_dn: Text<'a> = "matched_dn",
            /// Diagnostic message of the result.
            diagnostic_message: Text<'a> = "diagnostic_message",
            /// The object of the operation.
            object: Text<'a> = "object",
            /// Argument of the operation: password, mechanism, scope or changes.
            argument: Text<'a> = "argument",
        }

        /// A client authenticates.
        pub struct BindRequest<'a> = "LDAP::bind_request" {
            /// Version of LDAP.
            version: i64 = "version",
            /// Name of the user.
            name: Text<'a> = "name",
            /// Authentication method.
            auth_type: BindAuthType = "auth_type",
            /// Password or mechanism.
            auth_info: Text<'a> = "auth_info",
        }

        /// A client searches.
        pub struct SearchRequest<'a> = "LDAP::search_request" {
            /// Base object of the search.
            base_object: Text<'a> = "base_object",
            /// Scope of the search.
            scope: SearchScope = "scope",
            /// Alias handling.
            deref: SearchDerefAlias = "deref",
            /// Maximum number of entries; 0 for no limit.
            size_limit: i64 = "size_limit",
            /// Maximum duration of the search in seconds; 0 for no limit.
            time_limit: i64 = "time_limit",
            /// Whether only attribute types are requested, without values.
            types_only: bool = "types_only",
            /// Filter, as text.
            filter: &'a [u8] = "filter",
            /// Requested attributes.
            attributes: Vec<Text<'a>> = "attributes",
        }

        /// A search result entry.
        pub struct SearchResultEntry<'a> = "LDAP::search_result_entry" {
            /// Name of the object.
            object_name: Text<'a> = "object_name",
        }

        /// An extended request.
        pub struct ExtendedRequest<'a> = "LDAP::extended_request", opt_in {
            /// Name.
            request_name: Text<'a> = "request_name",
            /// Value; empty if it has none.
            request_value: &'a [u8] = "request_value",
        }

        /// An extended response.
        pub struct ExtendedResponse<'a> = "LDAP::extended_response", opt_in {
            /// Result.
            result: ResultCode = "result",
            /// Name; empty if it has none.
            response_name: Text<'a> = "response_name",
            /// Value; empty if it has none.
            response_value: &'a [u8] = "response_value",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// The connection switches to TLS.
        pub struct Starttls = "LDAP::starttls", opt_in {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Number of the message.
        message_id: i64 = "message_id",
    } {
        /// A message with an operation was parsed.
        pub struct OperationSeen<'a> = "gannet::ldap_operation", opt_in {
            /// Number of the operation.
            opcode: ProtocolOpcode = "opcode",
            /// The operation.
            message: Operation<'a> = "operation",
        }
    }
}
