//! Events of SMB, versions 1 to 3.

use gannet_base::Time;
use gannet_event::Connection;
use std::borrow::Cow;

gannet_event::record! {
    /// Times of a file; the raw ones count 100 ns since 1601.
    #[derive(Clone, Copy, Debug)]
    pub struct MacTimes = "SMB::MACTimes" {
        /// When its contents changed last.
        modified: Time = "modified",
        /// The same, raw.
        modified_raw: u64 = "modified_raw",
        /// When it was read last.
        accessed: Time = "accessed",
        /// The same, raw.
        accessed_raw: u64 = "accessed_raw",
        /// When it was made.
        created: Time = "created",
        /// The same, raw.
        created_raw: u64 = "created_raw",
        /// When its attributes changed last.
        changed: Time = "changed",
        /// The same, raw.
        changed_raw: u64 = "changed_raw",
    }
}

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

gannet_event::record! {
    /// The header of a message of version 2 or 3.
    #[derive(Clone, Copy, Debug)]
    pub struct Header2 = "SMB2::Header" {
        /// Credits that the message consumes.
        credit_charge: u16 = "credit_charge",
        /// The status.
        status: u32 = "status",
        /// The command.
        command: u16 = "command",
        /// Credits asked for or granted.
        credits: u16 = "credits",
        /// Flags.
        flags: u32 = "flags",
        /// The message.
        message_id: u64 = "message_id",
        /// The process.
        process_id: u32 = "process_id",
        /// The tree.
        tree_id: u32 = "tree_id",
        /// The session.
        session_id: u64 = "session_id",
        /// The signature.
        signature: [u8; 16] = "signature",
    }
}

gannet_event::record! {
    /// Identifies a file or server.
    #[derive(Clone, Copy, Debug)]
    pub struct Guid = "SMB2::GUID" {
        /// The part that survives reconnects.
        persistent: u64 = "persistent",
        /// The part that does not.
        volatile: u64 = "volatile",
    }
}

gannet_event::record! {
    /// Attributes of a file.
    #[derive(Clone, Copy, Debug)]
    pub struct FileAttrs = "SMB2::FileAttrs" {
        /// It cannot be written.
        read_only: bool = "read_only",
        /// Listings leave it out.
        hidden: bool = "hidden",
        /// The system uses it.
        system: bool = "system",
        /// It is a directory.
        directory: bool = "directory",
        /// It is to be backed up.
        archive: bool = "archive",
        /// It has no other attribute.
        normal: bool = "normal",
        /// It is temporary.
        temporary: bool = "temporary",
        /// It has holes.
        sparse_file: bool = "sparse_file",
        /// It has a reparse point or is a link.
        reparse_point: bool = "reparse_point",
        /// It is compressed.
        compressed: bool = "compressed",
        /// Its data is not available.
        offline: bool = "offline",
        /// Its contents are not indexed.
        not_content_indexed: bool = "not_content_indexed",
        /// It is encrypted.
        encrypted: bool = "encrypted",
        /// It is protected against changes.
        integrity_stream: bool = "integrity_stream",
        /// Scans for integrity leave it out.
        no_scrub_data: bool = "no_scrub_data",
    }
}

gannet_event::record! {
    /// A file that was closed.
    #[derive(Clone, Copy, Debug)]
    pub struct CloseResponse = "SMB2::CloseResponse" {
        /// Bytes set aside for it.
        alloc_size: u64 = "alloc_size",
        /// Its size.
        eof: u64 = "eof",
        /// Its times.
        times: MacTimes = "times",
        /// Its attributes.
        attrs: FileAttrs = "attrs",
    }
}

gannet_event::record! {
    /// Integrity before the login.
    pub struct PreAuth<'a> = "SMB2::PreAuthIntegrityCapabilities" {
        /// Number of algorithms.
        hash_alg_count: u16 = "hash_alg_count",
        /// Bytes of salt.
        salt_length: u16 = "salt_length",
        /// Algorithms.
        hash_alg: Vec<u16> = "hash_alg",
        /// The salt.
        salt: &'a [u8] = "salt",
    }
}

gannet_event::record! {
    /// Encryption.
    pub struct Encryption = "SMB2::EncryptionCapabilities" {
        /// Number of ciphers.
        cipher_count: u16 = "cipher_count",
        /// Ciphers.
        ciphers: Vec<u16> = "ciphers",
    }
}

gannet_event::record! {
    /// Compression.
    pub struct Compression = "SMB2::CompressionCapabilities" {
        /// Number of algorithms.
        alg_count: u16 = "alg_count",
        /// Algorithms.
        algs: Vec<u16> = "algs",
    }
}

gannet_event::record! {
    /// One capability: one of these.
    pub struct NegotiateContext<'a> = "SMB2::NegotiateContextValue" {
        /// Which one.
        context_type: u16 = "context_type",
        /// Its length.
        data_length: u16 = "data_length",
        /// Integrity before the login.
        preauth_info: Option<PreAuth<'a>> = "preauth_info",
        /// Encryption.
        encryption_info: Option<Encryption> = "encryption_info",
        /// Compression.
        compression_info: Option<Compression> = "compression_info",
        /// Name of the server.
        netname: Option<&'a [u8]> = "netname",
    }
}

gannet_event::record! {
    /// The answer to a list of dialects.
    pub struct Negotiated2<'a> = "SMB2::NegotiateResponse" {
        /// The dialect.
        dialect_revision: u16 = "dialect_revision",
        /// Whether messages are signed.
        security_mode: u16 = "security_mode",
        /// Identifies the server.
        server_guid: Guid = "server_guid",
        /// The server's clock.
        system_time: Time = "system_time",
        /// When the server started.
        server_start_time: Time = "server_start_time",
        /// Number of capabilities.
        negotiate_context_count: u16 = "negotiate_context_count",
        /// Capabilities.
        negotiate_context_values: Vec<NegotiateContext<'a>> = "negotiate_context_values",
    }
}

gannet_event::record! {
    /// A login of version 2.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupRequest2 = "SMB2::SessionSetupRequest" {
        /// Whether messages are signed.
        security_mode: u64 = "security_mode",
    }
}

gannet_event::record! {
    /// What a server says of a login.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupFlags = "SMB2::SessionSetupFlags" {
        /// The user is a guest.
        guest: bool = "guest",
        /// The user is anonymous.
        anonymous: bool = "anonymous",
        /// Messages are encrypted.
        encrypt: bool = "encrypt",
    }
}

gannet_event::record! {
    /// The answer to a login of version 2.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupResponse2 = "SMB2::SessionSetupResponse" {
        /// What the server says of it.
        flags: SetupFlags = "flags",
    }
}

gannet_event::record! {
    /// A tree that is connected.
    #[derive(Clone, Copy, Debug)]
    pub struct TreeResponse = "SMB2::TreeConnectResponse" {
        /// What it gives access to.
        share_type: u64 = "share_type",
    }
}

gannet_event::record! {
    /// A file that is opened or made.
    pub struct CreateRequest<'a> = "SMB2::CreateRequest" {
        /// Its name.
        filename: &'a [u8] = "filename",
        /// What to do if it exists or does not.
        disposition: u32 = "disposition",
        /// Options.
        create_options: u32 = "create_options",
    }
}

gannet_event::record! {
    /// A file that was opened or made.
    #[derive(Clone, Copy, Debug)]
    pub struct CreateResponse = "SMB2::CreateResponse" {
        /// Identifies it.
        file_id: Guid = "file_id",
        /// Its size.
        size: u64 = "size",
        /// Its times.
        times: MacTimes = "times",
        /// Its attributes.
        attrs: FileAttrs = "attrs",
        /// What was done.
        create_action: u32 = "create_action",
    }
}

gannet_event::record! {
    /// Quotas of a file system.
    #[derive(Clone, Copy, Debug)]
    pub struct FsControl = "SMB2::Fscontrol" {
        /// Free bytes at which indexing starts.
        free_space_start_filtering: i64 = "free_space_start_filtering",
        /// Free bytes that indexing needs.
        free_space_threshold: i64 = "free_space_threshold",
        /// Free bytes at which indexing stops.
        free_space_stop_filtering: i64 = "free_space_stop_filtering",
        /// Bytes at which a user is warned.
        delete_quota_threshold: u64 = "delete_quota_threshold",
        /// Bytes of a user.
        default_quota_limit: u64 = "default_quota_limit",
        /// Flags.
        fs_control_flags: u32 = "fs_control_flags",
    }
}

gannet_event::record! {
    /// An extended attribute.
    pub struct FileEa = "SMB2::FileEA" {
        /// Its name.
        ea_name: Cow<'static, [u8]> = "ea_name",
        /// Its value.
        ea_value: Cow<'static, [u8]> = "ea_value",
    }
}

gannet_event::record! {
    /// The header of an encrypted message.
    #[derive(Clone, Copy, Debug)]
    pub struct TransformHeader = "SMB2::Transform_header" {
        /// The signature.
        signature: [u8; 16] = "signature",
        /// The nonce.
        nonce: [u8; 16] = "nonce",
        /// Bytes of the message.
        orig_msg_size: u32 = "orig_msg_size",
        /// Flags.
        flags: u16 = "flags",
        /// The session.
        session_id: u64 = "session_id",
    }
}

gannet_event::events! {
    crate::events::module::SMB;

    /// A tree is taken for one of pipes because of a file's name.
    pub struct SmbPipeConnectHeuristic = "smb_pipe_connect_heuristic" {
        /// The connection.
        c: Connection = "c",
    }

    /// A connection has too many pipes: they are not followed any more.
    pub struct SmbDiscardedDceRpcAnalyzers = "smb_discarded_dce_rpc_analyzers" {
        /// The connection.
        c: Connection = "c",
    }

    /// A message of version 1.
    pub struct Smb1Message = "smb1_message" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A response of version 1 that only reports success.
    pub struct Smb1EmptyResponse = "smb1_empty_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
    }

    /// A response of version 1 that only reports an error.
    pub struct Smb1Error = "smb1_error", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// Whether a directory exists is asked for.
    pub struct Smb1CheckDirectoryRequest = "smb1_check_directory_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its name.
        directory_name: Cow<'static, [u8]> = "directory_name",
    }

    /// The directory asked for exists.
    pub struct Smb1CheckDirectoryResponse = "smb1_check_directory_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
    }

    /// A file is closed.
    pub struct Smb1CloseRequest = "smb1_close_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The file.
        file_id: u16 = "file_id",
    }

    /// The server is asked to answer.
    pub struct Smb1EchoRequest<'a> = "smb1_echo_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// How often.
        echo_count: u16 = "echo_count",
        /// What to answer.
        data: &'a [u8] = "data",
    }

    /// The server answers.
    pub struct Smb1EchoResponse<'a> = "smb1_echo_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Number of the answer.
        seq_num: u16 = "seq_num",
        /// What was asked for.
        data: &'a [u8] = "data",
    }

    /// A user logs off.
    pub struct Smb1LogoffAndx = "smb1_logoff_andx", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A client offers dialects of version 1.
    pub struct Smb1NegotiateRequest<'a> = "smb1_negotiate_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Names of dialects.
        dialects: Vec<&'a [u8]> = "dialects",
    }

    /// A server chose a dialect of version 1.
    pub struct Smb1NegotiateResponse<'a> = "smb1_negotiate_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// What it answers.
        response: Negotiated1<'a> = "response",
    }

    /// A request is withdrawn.
    pub struct Smb1NtCancelRequest = "smb1_nt_cancel_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
    }

    /// A file is opened or made.
    pub struct Smb1NtCreateAndxRequest<'a> = "smb1_nt_create_andx_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its name.
        file_name: &'a [u8] = "file_name",
    }

    /// A file was opened or made.
    pub struct Smb1NtCreateAndxResponse = "smb1_nt_create_andx_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The file.
        file_id: u16 = "file_id",
        /// Its size.
        file_size: u64 = "file_size",
        /// Its times.
        times: MacTimes = "times",
    }

    /// Attributes of a file are asked for.
    pub struct Smb1QueryInformationRequest = "smb1_query_information_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its name.
        filename: Cow<'static, [u8]> = "filename",
    }

    /// A file is read.
    pub struct Smb1ReadAndxRequest = "smb1_read_andx_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The file.
        file_id: u16 = "file_id",
        /// Where reading begins.
        offset: u64 = "offset",
        /// Bytes to read.
        length: u64 = "length",
    }

    /// A file was read.
    pub struct Smb1ReadAndxResponse = "smb1_read_andx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Bytes that were read.
        data_len: u32 = "data_len",
    }

    /// A user logs in.
    pub struct Smb1SessionSetupAndxRequest<'a> = "smb1_session_setup_andx_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The login.
        request: SetupRequest1<'a> = "request",
    }

    /// A user logged in.
    pub struct Smb1SessionSetupAndxResponse<'a> = "smb1_session_setup_andx_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// What the server answers.
        response: SetupResponse1<'a> = "response",
    }

    /// A transaction, as on a pipe.
    pub struct Smb1TransactionRequest<'a> = "smb1_transaction_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its name.
        name: &'a [u8] = "name",
        /// The subcommand.
        sub_cmd: u16 = "sub_cmd",
        /// Parameters.
        parameters: &'a [u8] = "parameters",
        /// Data.
        data: &'a [u8] = "data",
    }

    /// A transaction is answered.
    pub struct Smb1TransactionResponse<'a> = "smb1_transaction_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Parameters.
        parameters: &'a [u8] = "parameters",
        /// Data.
        data: &'a [u8] = "data",
    }

    /// A transaction on the file system.
    pub struct Smb1Transaction2Request = "smb1_transaction2_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its parameters.
        args: Trans2Args = "args",
        /// The subcommand.
        sub_cmd: u16 = "sub_cmd",
    }

    /// A search for files.
    pub struct Smb1Trans2FindFirst2Request<'a> = "smb1_trans2_find_first2_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// What is searched for.
        args: FindFirst2<'a> = "args",
    }

    /// What is known of a path is asked for.
    pub struct Smb1Trans2QueryPathInfoRequest<'a> = "smb1_trans2_query_path_info_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The path.
        file_name: &'a [u8] = "file_name",
    }

    /// The server of a path is asked for.
    pub struct Smb1Trans2GetDfsReferralRequest<'a> = "smb1_trans2_get_dfs_referral_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The path.
        file_name: &'a [u8] = "file_name",
    }

    /// More of a transaction on the file system.
    pub struct Smb1Transaction2SecondaryRequest<'a> = "smb1_transaction2_secondary_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its parameters.
        args: Trans2SecArgs = "args",
        /// Parameters.
        parameters: &'a [u8] = "parameters",
        /// Data.
        data: &'a [u8] = "data",
    }

    /// More of a transaction.
    pub struct Smb1TransactionSecondaryRequest<'a> = "smb1_transaction_secondary_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its parameters.
        args: TransSecArgs = "args",
        /// Parameters.
        parameters: &'a [u8] = "parameters",
        /// Data.
        data: &'a [u8] = "data",
    }

    /// A share is connected to.
    pub struct Smb1TreeConnectAndxRequest<'a> = "smb1_tree_connect_andx_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Its path.
        path: &'a [u8] = "path",
        /// What kind of share the client expects.
        service: &'a [u8] = "service",
    }

    /// A share was connected to.
    pub struct Smb1TreeConnectAndxResponse<'a> = "smb1_tree_connect_andx_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// What kind of share it is.
        service: &'a [u8] = "service",
        /// Its file system.
        native_file_system: &'a [u8] = "native_file_system",
    }

    /// A share is disconnected from.
    pub struct Smb1TreeDisconnect = "smb1_tree_disconnect", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A file is written.
    pub struct Smb1WriteAndxRequest = "smb1_write_andx_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// The file.
        file_id: u16 = "file_id",
        /// Where writing begins.
        offset: u64 = "offset",
        /// Bytes to write.
        data_len: u32 = "data_len",
    }

    /// A file was written.
    pub struct Smb1WriteAndxResponse = "smb1_write_andx_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header1 = "hdr",
        /// Bytes that were written.
        written_bytes: u32 = "written_bytes",
    }

    /// A message of version 2 or 3.
    pub struct Smb2Message = "smb2_message" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// Too many requests wait for answers: they are discarded.
    pub struct Smb2DiscardedMessagesState = "smb2_discarded_messages_state" {
        /// The connection.
        c: Connection = "c",
        /// Which ones.
        state: &'static str = "state",
    }

    /// A file is closed.
    pub struct Smb2CloseRequest = "smb2_close_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
    }

    /// A file was closed.
    pub struct Smb2CloseResponse = "smb2_close_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// What is known of it.
        response: CloseResponse = "response",
    }

    /// A file is opened or made.
    pub struct Smb2CreateRequest<'a> = "smb2_create_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// Which one and how.
        request: CreateRequest<'a> = "request",
    }

    /// A file was opened or made.
    pub struct Smb2CreateResponse = "smb2_create_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// What is known of it.
        response: CreateResponse = "response",
    }

    /// A client offers dialects.
    pub struct Smb2NegotiateRequest = "smb2_negotiate_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// Numbers of dialects.
        dialects: Vec<u16> = "dialects",
    }

    /// A server chose a dialect.
    pub struct Smb2NegotiateResponse<'a> = "smb2_negotiate_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// What it answers.
        response: Negotiated2<'a> = "response",
    }

    /// A file is read.
    pub struct Smb2ReadRequest = "smb2_read_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Where reading begins.
        offset: u64 = "offset",
        /// Bytes to read.
        length: u32 = "length",
    }

    /// A user logs in.
    pub struct Smb2SessionSetupRequest = "smb2_session_setup_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The login.
        request: SetupRequest2 = "request",
    }

    /// A login is answered.
    pub struct Smb2SessionSetupResponse = "smb2_session_setup_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// What the server answers.
        response: SetupResponse2 = "response",
    }

    /// A file is renamed.
    pub struct Smb2FileRename<'a> = "smb2_file_rename" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Its new name.
        dst_filename: &'a [u8] = "dst_filename",
    }

    /// A file is to be deleted when it is closed, or not to be.
    pub struct Smb2FileDelete = "smb2_file_delete" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Whether it is to be deleted.
        delete_pending: bool = "delete_pending",
    }

    /// Times and attributes of a file are set.
    pub struct Smb2FileSattr = "smb2_file_sattr" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Its times.
        times: MacTimes = "times",
        /// Its attributes.
        attrs: FileAttrs = "attrs",
    }

    /// Room for a file is set aside.
    pub struct Smb2FileAllocation = "smb2_file_allocation", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Bytes.
        alloc_size: i64 = "alloc_size",
    }

    /// The size of a file is set.
    pub struct Smb2FileEndoffile = "smb2_file_endoffile", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The size.
        end_of_file: i64 = "end_of_file",
    }

    /// The mode of a file is set.
    pub struct Smb2FileMode = "smb2_file_mode", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The mode.
        mode: u32 = "mode",
    }

    /// The mode of a pipe is set.
    pub struct Smb2FilePipe = "smb2_file_pipe", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Whether it is read by message.
        read_mode: u32 = "read_mode",
        /// Whether reading and writing wait.
        completion_mode: u32 = "completion_mode",
    }

    /// The position in a file is set.
    pub struct Smb2FilePosition = "smb2_file_position", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The position.
        current_byte_offset: i64 = "current_byte_offset",
    }

    /// The short name of a file is set.
    pub struct Smb2FileShortname<'a> = "smb2_file_shortname", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The name.
        file_name: &'a [u8] = "file_name",
    }

    /// The length of a file's valid data is set.
    pub struct Smb2FileValiddatalength = "smb2_file_validdatalength", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The length.
        valid_data_length: i64 = "valid_data_length",
    }

    /// Extended attributes of a file are set.
    pub struct Smb2FileFullea = "smb2_file_fullea", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Names and values.
        file_eas: Vec<FileEa> = "file_eas",
    }

    /// A link to a file is made.
    pub struct Smb2FileLink<'a> = "smb2_file_link", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// The directory of the link.
        root_directory: u64 = "root_directory",
        /// Its name.
        file_name: &'a [u8] = "file_name",
    }

    /// Quotas of a file system are set.
    pub struct Smb2FileFscontrol = "smb2_file_fscontrol", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file system.
        file_id: Guid = "file_id",
        /// Quotas.
        fs_control: FsControl = "fs_control",
    }

    /// The identifier of a file system is set.
    pub struct Smb2FileFsobjectid<'a> = "smb2_file_fsobjectid", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file system.
        file_id: Guid = "file_id",
        /// The identifier.
        object_id: Guid = "object_id",
        /// What more is known.
        extended_info: &'a [u8] = "extended_info",
    }

    /// A message is encrypted.
    pub struct Smb2TransformHeader = "smb2_transform_header", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: TransformHeader = "hdr",
    }

    /// A share is connected to.
    pub struct Smb2TreeConnectRequest<'a> = "smb2_tree_connect_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// Its path.
        path: &'a [u8] = "path",
    }

    /// A share was connected to.
    pub struct Smb2TreeConnectResponse = "smb2_tree_connect_response" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// What it is.
        response: TreeResponse = "response",
    }

    /// A share is disconnected from.
    pub struct Smb2TreeDisconnectRequest = "smb2_tree_disconnect_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
    }

    /// A share was disconnected from.
    pub struct Smb2TreeDisconnectResponse = "smb2_tree_disconnect_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
    }

    /// A file is written.
    pub struct Smb2WriteRequest = "smb2_write_request" {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// The file.
        file_id: Guid = "file_id",
        /// Where writing begins.
        offset: u64 = "offset",
        /// Bytes to write.
        length: u32 = "length",
    }

    /// A file was written.
    pub struct Smb2WriteResponse = "smb2_write_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The header of the message.
        hdr: Header2 = "hdr",
        /// Bytes that were written.
        length: u32 = "length",
    }
}
