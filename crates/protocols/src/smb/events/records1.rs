//! Records of SMB 1.

use gannet_base::Time;

gannet_event::record! {
    /// The header of a message of version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Header1 = "SMB1::Header" {
        /// Command code.
        command: u64 = "command",
        /// Status code.
        status: u32 = "status",
        /// Flags.
        flags: u64 = "flags",
        /// More flags.
        flags2: u16 = "flags2",
        /// Tree identifier.
        tid: u16 = "tid",
        /// Process identifier.
        pid: u32 = "pid",
        /// User identifier.
        uid: u16 = "uid",
        /// Multiplex identifier of the message.
        mid: u16 = "mid",
    }
}

gannet_event::record! {
    /// Raw transfers that a server supports.
    #[derive(Clone, Copy, Debug)]
    pub struct RawMode = "SMB1::NegotiateRawMode" {
        /// Raw reads.
        read_raw: bool = "read_raw",
        /// Raw writes.
        write_raw: bool = "write_raw",
    }
}

gannet_event::record! {
    /// Capabilities of a server.
    #[derive(Clone, Copy, Debug)]
    pub struct Capabilities1 = "SMB1::NegotiateCapabilities" {
        /// Raw transfers.
        raw_mode: bool = "raw_mode",
        /// Multiplexed transfers.
        mpx_mode: bool = "mpx_mode",
        /// Strings in UTF-16.
        unicode: bool = "unicode",
        /// Offsets of 64 bits.
        large_files: bool = "large_files",
        /// NT commands.
        nt_smbs: bool = "nt_smbs",
        /// Remote procedure calls.
        rpc_remote_apis: bool = "rpc_remote_apis",
        /// Status codes of 32 bits.
        status32: bool = "status32",
        /// Opportunistic locks of level 2.
        level_2_oplocks: bool = "level_2_oplocks",
        /// The command to lock and read.
        lock_and_read: bool = "lock_and_read",
        /// NT searches.
        nt_find: bool = "nt_find",
        /// The distributed file system.
        dfs: bool = "dfs",
        /// Pass-through information levels.
        infolevel_passthru: bool = "infolevel_passthru",
        /// Large reads.
        large_readx: bool = "large_readx",
        /// Large writes.
        large_writex: bool = "large_writex",
        /// Unix extensions.
        unix: bool = "unix",
        /// Bulk transfers.
        bulk_transfer: bool = "bulk_transfer",
        /// Compressed transfers.
        compressed_data: bool = "compressed_data",
        /// Extended security (security blobs).
        extended_security: bool = "extended_security",
    }
}

gannet_event::record! {
    /// Security mode of a server.
    #[derive(Clone, Copy, Debug)]
    pub struct Security1 = "SMB1::NegotiateResponseSecurity" {
        /// User-level security, not share-level.
        user_level: bool = "user_level",
        /// Passwords are sent as challenge responses.
        challenge_response: bool = "challenge_response",
        /// Messages may be signed.
        signatures_enabled: Option<bool> = "signatures_enabled",
        /// Messages must be signed.
        signatures_required: Option<bool> = "signatures_required",
    }
}

gannet_event::record! {
    /// Contents of a negotiate response in the core protocol.
    pub struct NegotiatedCore = "SMB1::NegotiateResponseCore" {
        /// Index of the selected dialect among the offered ones.
        dialect_index: u16 = "dialect_index",
    }
}

gannet_event::record! {
    /// Contents of a negotiate response of LAN Manager.
    pub struct NegotiatedLanman<'a> = "SMB1::NegotiateResponseLANMAN" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Index of the selected dialect among the offered ones.
        dialect_index: u16 = "dialect_index",
        /// Security mode.
        security_mode: Security1 = "security_mode",
        /// Maximum size of a message, in bytes.
        max_buffer_size: u16 = "max_buffer_size",
        /// Maximum number of outstanding requests.
        max_mpx_count: u16 = "max_mpx_count",
        /// Maximum number of virtual circuits.
        max_number_vcs: u16 = "max_number_vcs",
        /// Raw transfers.
        raw_mode: RawMode = "raw_mode",
        /// Session key.
        session_key: u32 = "session_key",
        /// The server's clock.
        server_time: Time = "server_time",
        /// The challenge.
        encryption_key: &'a [u8] = "encryption_key",
        /// The server's domain.
        primary_domain: &'a [u8] = "primary_domain",
    }
}

gannet_event::record! {
    /// Contents of a negotiate response of NT LAN Manager.
    pub struct NegotiatedNtlm<'a> = "SMB1::NegotiateResponseNTLM" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Index of the selected dialect among the offered ones.
        dialect_index: u16 = "dialect_index",
        /// Security mode.
        security_mode: Security1 = "security_mode",
        /// Maximum size of a message, in bytes.
        max_buffer_size: u32 = "max_buffer_size",
        /// Maximum number of outstanding requests.
        max_mpx_count: u16 = "max_mpx_count",
        /// Maximum number of virtual circuits.
        max_number_vcs: u16 = "max_number_vcs",
        /// Maximum size of a raw transfer, in bytes.
        max_raw_size: u32 = "max_raw_size",
        /// Session key.
        session_key: u32 = "session_key",
        /// Capabilities of the server.
        capabilities: Capabilities1 = "capabilities",
        /// The server's clock.
        server_time: Time = "server_time",
        /// The challenge.
        encryption_key: Option<&'a [u8]> = "encryption_key",
        /// The server's domain.
        domain_name: Option<&'a [u8]> = "domain_name",
        /// Identifier of the server.
        guid: Option<&'a [u8]> = "guid",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
    }
}

gannet_event::record! {
    /// Contents of a negotiate response: one of its fields is set, depending on the dialect.
    pub struct Negotiated1<'a> = "SMB1::NegotiateResponse" {
        /// Core protocol.
        core: Option<NegotiatedCore> = "core",
        /// LAN Manager.
        lanman: Option<NegotiatedLanman<'a>> = "lanman",
        /// NT LAN Manager.
        ntlm: Option<NegotiatedNtlm<'a>> = "ntlm",
    }
}

gannet_event::record! {
    /// Capabilities of a client.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupCapabilities = "SMB1::SessionSetupAndXCapabilities" {
        /// Strings in UTF-16.
        unicode: bool = "unicode",
        /// Offsets of 64 bits.
        large_files: bool = "large_files",
        /// NT commands.
        nt_smbs: bool = "nt_smbs",
        /// Status codes of 32 bits.
        status32: bool = "status32",
        /// Opportunistic locks of level 2.
        level_2_oplocks: bool = "level_2_oplocks",
        /// NT searches.
        nt_find: bool = "nt_find",
    }
}

gannet_event::record! {
    /// Contents of a session setup request.
    pub struct SetupRequest1<'a> = "SMB1::SessionSetupAndXRequest" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Maximum size of a message, in bytes.
        max_buffer_size: u16 = "max_buffer_size",
        /// Maximum number of outstanding requests.
        max_mpx_count: u16 = "max_mpx_count",
        /// Number of the virtual circuit.
        vc_number: u16 = "vc_number",
        /// Session key.
        session_key: u32 = "session_key",
        /// The client's operating system.
        native_os: &'a [u8] = "native_os",
        /// The client's LAN Manager version.
        native_lanman: &'a [u8] = "native_lanman",
        /// User name.
        account_name: Option<&'a [u8]> = "account_name",
        /// The password.
        account_password: Option<&'a [u8]> = "account_password",
        /// The client's domain.
        primary_domain: Option<&'a [u8]> = "primary_domain",
        /// Response to the challenge for the case-insensitive password.
        case_insensitive_password: Option<&'a [u8]> = "case_insensitive_password",
        /// Response to the challenge for the case-sensitive password.
        case_sensitive_password: Option<&'a [u8]> = "case_sensitive_password",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
        /// Capabilities of the client.
        capabilities: Option<SetupCapabilities> = "capabilities",
    }
}

gannet_event::record! {
    /// Contents of a session setup response.
    pub struct SetupResponse1<'a> = "SMB1::SessionSetupAndXResponse" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Whether the user is a guest.
        is_guest: Option<bool> = "is_guest",
        /// The server's operating system.
        native_os: Option<&'a [u8]> = "native_os",
        /// The server's LAN Manager version.
        native_lanman: Option<&'a [u8]> = "native_lanman",
        /// The server's domain.
        primary_domain: Option<&'a [u8]> = "primary_domain",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
    }
}

gannet_event::record! {
    /// Arguments of a TRANSACTION2 request.
    #[derive(Clone, Copy, Debug)]
    pub struct Trans2Args = "SMB1::Trans2_Args" {
        /// Total number of parameter bytes.
        total_param_count: u16 = "total_param_count",
        /// Total number of data bytes.
        total_data_count: u16 = "total_data_count",
        /// Maximum number of parameter bytes in the response.
        max_param_count: u16 = "max_param_count",
        /// Maximum number of data bytes in the response.
        max_data_count: u16 = "max_data_count",
        /// Maximum number of setup words in the response.
        max_setup_count: u64 = "max_setup_count",
        /// Flags.
        flags: u16 = "flags",
        /// Timeout in milliseconds.
        trans_timeout: u32 = "trans_timeout",
        /// Number of parameter bytes in this message.
        param_count: u16 = "param_count",
        /// Offset of the parameters in this message.
        param_offset: u16 = "param_offset",
        /// Number of data bytes in this message.
        data_count: u16 = "data_count",
        /// Offset of the data in this message.
        data_offset: u16 = "data_offset",
        /// Number of setup words.
        setup_count: u64 = "setup_count",
    }
}

gannet_event::record! {
    /// Arguments of a secondary transaction request.
    #[derive(Clone, Copy, Debug)]
    pub struct TransSecArgs = "SMB1::Trans_Sec_Args" {
        /// Total number of parameter bytes.
        total_param_count: u16 = "total_param_count",
        /// Total number of data bytes.
        total_data_count: u16 = "total_data_count",
        /// Number of parameter bytes in this message.
        param_count: u16 = "param_count",
        /// Offset of the parameters in this message.
        param_offset: u16 = "param_offset",
        /// Offset of these parameters among all.
        param_displacement: u16 = "param_displacement",
        /// Number of data bytes in this message.
        data_count: u16 = "data_count",
        /// Offset of the data in this message.
        data_offset: u16 = "data_offset",
        /// Offset of this data among all.
        data_displacement: u16 = "data_displacement",
    }
}

gannet_event::record! {
    /// Arguments of a secondary TRANSACTION2 request.
    #[derive(Clone, Copy, Debug)]
    pub struct Trans2SecArgs = "SMB1::Trans2_Sec_Args" {
        /// Total number of parameter bytes.
        total_param_count: u16 = "total_param_count",
        /// Total number of data bytes.
        total_data_count: u16 = "total_data_count",
        /// Number of parameter bytes in this message.
        param_count: u16 = "param_count",
        /// Offset of the parameters in this message.
        param_offset: u16 = "param_offset",
        /// Offset of these parameters among all.
        param_displacement: u16 = "param_displacement",
        /// Number of data bytes in this message.
        data_count: u16 = "data_count",
        /// Offset of the data in this message.
        data_offset: u16 = "data_offset",
        /// Offset of this data among all.
        data_displacement: u16 = "data_displacement",
        /// File identifier.
        fid: u16 = "FID",
    }
}

gannet_event::record! {
    /// Arguments of a FIND_FIRST2 request.
    pub struct FindFirst2<'a> = "SMB1::Find_First2_Request_Args" {
        /// Attributes of the files to find.
        search_attrs: u16 = "search_attrs",
        /// Maximum number of files in the response.
        search_count: u16 = "search_count",
        /// Flags.
        flags: u16 = "flags",
        /// Information level of the response.
        info_level: u16 = "info_level",
        /// Storage type: directories or other files.
        search_storage_type: u32 = "search_storage_type",
        /// Name pattern.
        file_name: &'a [u8] = "file_name",
    }
}
