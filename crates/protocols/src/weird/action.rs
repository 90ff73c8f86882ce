//! The action for weirds, by name.

/// The action for a weird.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Ignore,
    Log,
    LogPerConn,
    LogPerOrig,
    NoticePerOrig,
}

/// The action for a name: names that are not listed are logged.
pub(super) fn action(name: &str) -> Action {
    match name {
        "unsolicited_SYN_response" | "FIN_after_reset" | "spontaneous_FIN" | "spontaneous_RST" => {
            Action::Ignore
        }
        "FTP_max_command_length_exceeded"
        | "FTP_too_many_pending_commands"
        | "FTP_user_too_long"
        | "FTP_reply_msg_too_long"
        | "FTP_arg_too_long"
        | "FTP_password_too_long"
        | "simultaneous_open"
        | "smtp_mail_transaction_invalid"
        | "smtp_excessive_invalid_mail_transactions"
        | "smb_tree_connect_andx_response_without_tree" => Action::LogPerConn,
        "bad_IP_checksum"
        | "bad_ICMP_checksum"
        | "bad_TCP_checksum"
        | "bad_UDP_checksum"
        | "bad_RPC"
        | "excess_RPC"
        | "originator_RPC_reply"
        | "partial_RPC"
        | "responder_RPC_call"
        | "connection_originator_SYN_ack"
        | "SYN_with_data"
        | "UDP_datagram_length_mismatch"
        | "DNS_label_forward_compress_offset"
        | "DNS_label_len_gt_name_len"
        | "DNS_label_len_gt_pkt"
        | "DNS_label_too_long"
        | "excessively_small_fragment"
        | "fragment_inconsistency"
        | "fragment_overlap"
        | "fragment_size_inconsistency"
        | "SSH_max_packet_length_exceeded"
        | "SSH_max_string_length_exceeded" => Action::LogPerOrig,
        "FIN_storm" | "SYN_after_partial" | "successful_RPC_reply_to_invalid_request" => {
            Action::NoticePerOrig
        }
        _ => Action::Log,
    }
}

/// Whether the name is not suppressed within [`WINDOW`].
pub(super) fn repeats(name: &str) -> bool {
    matches!(
        name,
        "bad_IP_checksum" | "bad_TCP_checksum" | "bad_UDP_checksum" | "bad_ICMP_checksum"
    )
}

/// Whether Zeek's scripts report the weird. If scripts run they report it, and the native rows do
/// not.
pub(super) fn is_reported_by_scripts(name: &str) -> bool {
    BY_SCRIPTS.binary_search(&name).is_ok()
}

/// Names of weirds that Zeek's scripts report, sorted.
const BY_SCRIPTS: &[&str] = &[
    "DHCP_max_tracked_transactions_exceeded",
    "FTP_arg_too_long",
    "FTP_password_too_long",
    "FTP_reply_msg_too_long",
    "FTP_too_many_expected_data_channels",
    "FTP_too_many_pending_commands",
    "FTP_user_too_long",
    "HTTP_excessive_pipelining",
    "HTTP_response_before_request",
    "LDAP_bind_opcode_already_set",
    "LDAP_bind_without_opcode",
    "LDAP_max_pending_messages_exceeded",
    "LDAP_max_pending_searches_exceeded",
    "LDAP_message_argument_change",
    "LDAP_message_diagnostic_message_change",
    "LDAP_message_object_change",
    "LDAP_message_opcode_change",
    "LDAP_message_result_change",
    "LDAP_search_base_object_change",
    "LDAP_search_deref_aliases_change",
    "LDAP_search_diagnostic_message_change",
    "LDAP_search_filter_change",
    "LDAP_search_result_change",
    "LDAP_search_scope_change",
    "LDAP_unknown_auth_type",
    "QUIC_many_protocols",
    "QUIC_max_history_length_reached",
    "QUIC_spurious_discarded_packet",
    "QUIC_spurious_short_header_packet_threshold_crossed",
    "RDP_channels_requested_exceeds_max",
    "Redis_excessive_pipelining",
    "SMB_discarded_dce_rpc_analyzers",
    "SMB_discarded_messages_state",
    "SSH_cannot_determine_version",
    "SSH_version_mismatch",
    "SSL_many_server_names",
    "SSL_max_ssl_history_length_reached",
    "invalid_SIP_request_body_len",
    "invalid_SIP_response_body_len",
    "irc_max_dcc_expected_transfers_exceeded",
    "missing_HTTP_entity",
    "missing_SMTP_entity",
    "sip_max_request_path_length_exceeded",
    "sip_max_response_path_length_exceeded",
    "smtp_excessive_invalid_mail_transactions",
    "smtp_mail_transaction_invalid",
    "smtp_max_path_length_exceeded",
    "smtp_too_many_cc_addresses",
    "smtp_too_many_rcptto_addresses",
    "smtp_too_many_to_addresses",
    "ssl_early_application_data",
    "unknown_HTTP_method",
    "unknown_SIP_method",
    "websocket_established_unexpected",
    "websocket_missing_accept_header",
    "websocket_missing_key_header",
    "websocket_multiple_accept_headers",
    "websocket_multiple_key_headers",
    "websocket_multiple_protocol_headers",
    "websocket_wrong_accept_header",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(BY_SCRIPTS.is_sorted());
        assert!(is_reported_by_scripts("unknown_HTTP_method"));
        assert!(!is_reported_by_scripts("bad_HTTP_request"));
    }
}
