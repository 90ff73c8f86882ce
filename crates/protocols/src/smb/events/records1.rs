//! Records of SMB 1.

use gannet_base::Time;

gannet_event::record! {
    /// The header of a message of version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct Header1 = "SMB1::Header" {
        /// The command.
        command: u64 = "command",
        /// The status.
        status: u32 = "status",
        /// Flags.
        flags: u64 = "flags",
        /// More flags.
        flags2: u16 = "flags2",
        /// The tree.
        tid: u16 = "tid",
        /// The process.
        pid: u32 = "pid",
        /// The user.
        uid: u16 = "uid",
        /// The message.
        mid: u16 = "mid",
    }
}

gannet_event::record! {
    /// Whether a server knows raw transfers.
    #[derive(Clone, Copy, Debug)]
    pub struct RawMode = "SMB1::NegotiateRawMode" {
        /// Raw reads.
        read_raw: bool = "read_raw",
        /// Raw writes.
        write_raw: bool = "write_raw",
    }
}

gannet_event::record! {
    /// What a server of version 1 is capable of.
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
        /// Commands of NT.
        nt_smbs: bool = "nt_smbs",
        /// Remote procedure calls.
        rpc_remote_apis: bool = "rpc_remote_apis",
        /// Status codes of 32 bits.
        status32: bool = "status32",
        /// Opportunistic locks of level 2.
        level_2_oplocks: bool = "level_2_oplocks",
        /// The command to lock and read.
        lock_and_read: bool = "lock_and_read",
        /// Searches of NT.
        nt_find: bool = "nt_find",
        /// The distributed file system.
        dfs: bool = "dfs",
        /// Information levels that are passed through.
        infolevel_passthru: bool = "infolevel_passthru",
        /// Large reads.
        large_readx: bool = "large_readx",
        /// Large writes.
        large_writex: bool = "large_writex",
        /// Extensions of Unix.
        unix: bool = "unix",
        /// Bulk transfers.
        bulk_transfer: bool = "bulk_transfer",
        /// Compressed transfers.
        compressed_data: bool = "compressed_data",
        /// Logins by security blobs.
        extended_security: bool = "extended_security",
    }
}

gannet_event::record! {
    /// How a server of version 1 protects its shares.
    #[derive(Clone, Copy, Debug)]
    pub struct Security1 = "SMB1::NegotiateResponseSecurity" {
        /// By user, not by share.
        user_level: bool = "user_level",
        /// Passwords are not sent in the clear.
        challenge_response: bool = "challenge_response",
        /// Messages may be signed.
        signatures_enabled: Option<bool> = "signatures_enabled",
        /// Messages have to be signed.
        signatures_required: Option<bool> = "signatures_required",
    }
}

gannet_event::record! {
    /// The answer of the core protocol.
    pub struct NegotiatedCore = "SMB1::NegotiateResponseCore" {
        /// The dialect among those offered.
        dialect_index: u16 = "dialect_index",
    }
}

gannet_event::record! {
    /// The answer of LAN Manager.
    pub struct NegotiatedLanman<'a> = "SMB1::NegotiateResponseLANMAN" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// The dialect among those offered.
        dialect_index: u16 = "dialect_index",
        /// How shares are protected.
        security_mode: Security1 = "security_mode",
        /// Largest message.
        max_buffer_size: u16 = "max_buffer_size",
        /// Requests that may be outstanding.
        max_mpx_count: u16 = "max_mpx_count",
        /// Virtual circuits.
        max_number_vcs: u16 = "max_number_vcs",
        /// Raw transfers.
        raw_mode: RawMode = "raw_mode",
        /// Identifies the session.
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
    /// The answer of NT LAN Manager.
    pub struct NegotiatedNtlm<'a> = "SMB1::NegotiateResponseNTLM" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// The dialect among those offered.
        dialect_index: u16 = "dialect_index",
        /// How shares are protected.
        security_mode: Security1 = "security_mode",
        /// Largest message.
        max_buffer_size: u32 = "max_buffer_size",
        /// Requests that may be outstanding.
        max_mpx_count: u16 = "max_mpx_count",
        /// Virtual circuits.
        max_number_vcs: u16 = "max_number_vcs",
        /// Largest raw transfer.
        max_raw_size: u32 = "max_raw_size",
        /// Identifies the session.
        session_key: u32 = "session_key",
        /// What the server is capable of.
        capabilities: Capabilities1 = "capabilities",
        /// The server's clock.
        server_time: Time = "server_time",
        /// The challenge.
        encryption_key: Option<&'a [u8]> = "encryption_key",
        /// The server's domain.
        domain_name: Option<&'a [u8]> = "domain_name",
        /// Identifies the server.
        guid: Option<&'a [u8]> = "guid",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
    }
}

gannet_event::record! {
    /// An answer to a list of dialects: one of these.
    pub struct Negotiated1<'a> = "SMB1::NegotiateResponse" {
        /// Of the core protocol.
        core: Option<NegotiatedCore> = "core",
        /// Of LAN Manager.
        lanman: Option<NegotiatedLanman<'a>> = "lanman",
        /// Of NT LAN Manager.
        ntlm: Option<NegotiatedNtlm<'a>> = "ntlm",
    }
}

gannet_event::record! {
    /// What a client of version 1 is capable of.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupCapabilities = "SMB1::SessionSetupAndXCapabilities" {
        /// Strings in UTF-16.
        unicode: bool = "unicode",
        /// Offsets of 64 bits.
        large_files: bool = "large_files",
        /// Commands of NT.
        nt_smbs: bool = "nt_smbs",
        /// Status codes of 32 bits.
        status32: bool = "status32",
        /// Opportunistic locks of level 2.
        level_2_oplocks: bool = "level_2_oplocks",
        /// Searches of NT.
        nt_find: bool = "nt_find",
    }
}

gannet_event::record! {
    /// A login of version 1.
    pub struct SetupRequest1<'a> = "SMB1::SessionSetupAndXRequest" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Largest message.
        max_buffer_size: u16 = "max_buffer_size",
        /// Requests that may be outstanding.
        max_mpx_count: u16 = "max_mpx_count",
        /// The virtual circuit.
        vc_number: u16 = "vc_number",
        /// Identifies the session.
        session_key: u32 = "session_key",
        /// The client's system.
        native_os: &'a [u8] = "native_os",
        /// The client's LAN Manager.
        native_lanman: &'a [u8] = "native_lanman",
        /// The user.
        account_name: Option<&'a [u8]> = "account_name",
        /// The password.
        account_password: Option<&'a [u8]> = "account_password",
        /// The client's domain.
        primary_domain: Option<&'a [u8]> = "primary_domain",
        /// The answer to the challenge for passwords in upper case.
        case_insensitive_password: Option<&'a [u8]> = "case_insensitive_password",
        /// The answer to the challenge.
        case_sensitive_password: Option<&'a [u8]> = "case_sensitive_password",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
        /// What the client is capable of.
        capabilities: Option<SetupCapabilities> = "capabilities",
    }
}

gannet_event::record! {
    /// The answer to a login of version 1.
    pub struct SetupResponse1<'a> = "SMB1::SessionSetupAndXResponse" {
        /// Number of parameter words.
        word_count: u64 = "word_count",
        /// Whether the user is a guest.
        is_guest: Option<bool> = "is_guest",
        /// The server's system.
        native_os: Option<&'a [u8]> = "native_os",
        /// The server's LAN Manager.
        native_lanman: Option<&'a [u8]> = "native_lanman",
        /// The server's domain.
        primary_domain: Option<&'a [u8]> = "primary_domain",
        /// Always unset, as in Zeek.
        security_blob: Option<&'a [u8]> = "security_blob",
    }
}

gannet_event::record! {
    /// Parameters of a transaction on the file system.
    #[derive(Clone, Copy, Debug)]
    pub struct Trans2Args = "SMB1::Trans2_Args" {
        /// Bytes of parameters in all.
        total_param_count: u16 = "total_param_count",
        /// Bytes of data in all.
        total_data_count: u16 = "total_data_count",
        /// Most bytes of parameters of an answer.
        max_param_count: u16 = "max_param_count",
        /// Most bytes of data of an answer.
        max_data_count: u16 = "max_data_count",
        /// Most words of setup of an answer.
        max_setup_count: u64 = "max_setup_count",
        /// Flags.
        flags: u16 = "flags",
        /// Milliseconds that the client waits.
        trans_timeout: u32 = "trans_timeout",
        /// Bytes of parameters in this message.
        param_count: u16 = "param_count",
        /// Where they begin.
        param_offset: u16 = "param_offset",
        /// Bytes of data in this message.
        data_count: u16 = "data_count",
        /// Where they begin.
        data_offset: u16 = "data_offset",
        /// Words of setup.
        setup_count: u64 = "setup_count",
    }
}

gannet_event::record! {
    /// Parameters of a transaction's second message.
    #[derive(Clone, Copy, Debug)]
    pub struct TransSecArgs = "SMB1::Trans_Sec_Args" {
        /// Bytes of parameters in all.
        total_param_count: u16 = "total_param_count",
        /// Bytes of data in all.
        total_data_count: u16 = "total_data_count",
        /// Bytes of parameters in this message.
        param_count: u16 = "param_count",
        /// Where they begin.
        param_offset: u16 = "param_offset",
        /// Where they belong among all.
        param_displacement: u16 = "param_displacement",
        /// Bytes of data in this message.
        data_count: u16 = "data_count",
        /// Where they begin.
        data_offset: u16 = "data_offset",
        /// Where they belong among all.
        data_displacement: u16 = "data_displacement",
    }
}

gannet_event::record! {
    /// The same on the file system.
    #[derive(Clone, Copy, Debug)]
    pub struct Trans2SecArgs = "SMB1::Trans2_Sec_Args" {
        /// Bytes of parameters in all.
        total_param_count: u16 = "total_param_count",
        /// Bytes of data in all.
        total_data_count: u16 = "total_data_count",
        /// Bytes of parameters in this message.
        param_count: u16 = "param_count",
        /// Where they begin.
        param_offset: u16 = "param_offset",
        /// Where they belong among all.
        param_displacement: u16 = "param_displacement",
        /// Bytes of data in this message.
        data_count: u16 = "data_count",
        /// Where they begin.
        data_offset: u16 = "data_offset",
        /// Where they belong among all.
        data_displacement: u16 = "data_displacement",
        /// The file.
        fid: u16 = "FID",
    }
}

gannet_event::record! {
    /// A search for files.
    pub struct FindFirst2<'a> = "SMB1::Find_First2_Request_Args" {
        /// Attributes that files may have.
        search_attrs: u16 = "search_attrs",
        /// Most files of an answer.
        search_count: u16 = "search_count",
        /// Flags.
        flags: u16 = "flags",
        /// What the answer is to say.
        info_level: u16 = "info_level",
        /// Directories or other files.
        search_storage_type: u32 = "search_storage_type",
        /// The pattern of names.
        file_name: &'a [u8] = "file_name",
    }
}
