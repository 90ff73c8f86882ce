//! Names of operations and results in the logs.

use super::message::operation as op;

/// Name of an operation; requests and their responses have the same name.
pub(super) fn operation(code: u8) -> &'static str {
    match code {
        op::BIND_REQUEST | op::BIND_RESPONSE => "bind",
        op::UNBIND_REQUEST => "unbind",
        op::SEARCH_REQUEST
        | op::SEARCH_RESULT_ENTRY
        | op::SEARCH_RESULT_DONE
        | op::SEARCH_RESULT_REFERENCE => "search",
        op::MODIFY_REQUEST
        | op::MODIFY_RESPONSE
        | op::MODIFY_DN_REQUEST
        | op::MODIFY_DN_RESPONSE => "modify",
        op::ADD_REQUEST | op::ADD_RESPONSE => "add",
        op::DELETE_REQUEST | op::DELETE_RESPONSE => "delete",
        op::COMPARE_REQUEST | op::COMPARE_RESPONSE => "compare",
        op::ABANDON_REQUEST => "abandon",
        op::EXTENDED_REQUEST | op::EXTENDED_RESPONSE => "extended",
        op::INTERMEDIATE_RESPONSE => "intermediate",
        _ => "unknown",
    }
}

/// Name of a result code (RFC 4511 section 4.1.9 and the IANA registry).
pub(super) fn result(code: u8) -> &'static str {
    match code {
        0 => "success",
        1 => "operations error",
        2 => "protocol error",
        3 => "time limit exceeded",
        4 => "size limit exceeded",
        5 => "compare false",
        6 => "compare true",
        7 => "auth method not supported",
        8 => "stronger auth required",
        9 => "partial results",
        10 => "referral",
        11 => "admin limit exceeded",
        12 => "unavailable critical extension",
        13 => "confidentiality required",
        14 => "SASL bind in progress",
        16 => "no such attribute",
        17 => "undefined attribute type",
        18 => "inappropriate matching",
        19 => "constraint violation",
        20 => "attribute or value exists",
        21 => "invalid attribute syntax",
        32 => "no such object",
        33 => "alias problem",
        34 => "invalid DN syntax",
        36 => "alias dereferencing problem",
        48 => "inappropriate authentication",
        49 => "invalid credentials",
        50 => "insufficient access rights",
        51 => "busy",
        52 => "unavailable",
        53 => "unwilling to perform",
        54 => "loop detect",
        60 => "sort control missing",
        61 => "offset range error",
        64 => "naming violation",
        65 => "object class violation",
        66 => "not allowed on non-leaf",
        67 => "not allowed on RDN",
        68 => "entry already exists",
        69 => "object class mods prohibited",
        70 => "results too large",
        71 => "affects multiple DSAs",
        76 => "control error",
        80 => "other",
        81 => "server down",
        82 => "local error",
        83 => "encoding error",
        84 => "decoding error",
        85 => "timeout",
        86 => "auth unknown",
        87 => "filter error",
        88 => "user canceled",
        89 => "param error",
        90 => "no memory",
        91 => "connect error",
        92 => "not supported",
        93 => "control not found",
        94 => "no results returned",
        95 => "more results to return",
        96 => "client loop",
        97 => "referral limit exceeded",
        100 => "invalid response",
        101 => "ambiguous response",
        112 => "TLS not supported",
        113 => "intermediate response",
        114 => "unknown type",
        115 => "LCUP invalid data",
        116 => "LCUP unsupported scheme",
        117 => "LCUP reload required",
        118 => "canceled",
        119 => "no such operation",
        120 => "too late",
        121 => "cannot cancel",
        122 => "assertion failed",
        123 => "authorization denied",
        _ => "unknown",
    }
}

/// Name of an authentication method other than simple, SASL and NTLM.
pub(super) fn login(kind: u8) -> &'static str {
    match kind {
        9 => "LDAP::BindAuthType_SICILY_PACKAGE_DISCOVERY",
        _ => "<undefined>",
    }
}

/// Name of a search scope.
pub(super) fn scope(scope: u8) -> &'static str {
    match scope {
        0 => "base",
        1 => "single",
        2 => "tree",
        _ => "unknown",
    }
}

/// Name of the alias handling of a search.
pub(super) fn aliases(deref: u8) -> &'static str {
    match deref {
        0 => "never",
        1 => "searching",
        2 => "finding",
        3 => "always",
        _ => "unknown",
    }
}

/// Name of an extended request, by its object identifier.
pub(super) fn extension(oid: &[u8]) -> &'static str {
    match oid {
        super::message::START_TLS => "StartTLS",
        b"1.3.6.1.4.1.4203.1.11.3" => "whoami",
        _ => "unknown",
    }
}
