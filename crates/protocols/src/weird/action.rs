//! The handling of weirds by name.

/// The handling of a weird.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Ignore,
    Log,
    LogPerConn,
    LogPerOrig,
    NoticePerOrig,
}

/// The names that are treated specially; all others are logged.
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

/// Names that are not suppressed within [`WINDOW`].
pub(super) fn repeats(name: &str) -> bool {
    matches!(
        name,
        "bad_IP_checksum" | "bad_TCP_checksum" | "bad_UDP_checksum" | "bad_ICMP_checksum"
    )
}
