//! Records of SMB 2 and 3.

use std::borrow::Cow;

use gannet_base::Time;

use super::MacTimes;

gannet_event::record! {
    /// The header of a message of version 2 or 3.
    #[derive(Clone, Copy, Debug)]
    pub struct Header2 = "SMB2::Header" {
        /// Credits that the message consumes.
        credit_charge: u16 = "credit_charge",
        /// Status code.
        status: u32 = "status",
        /// Command code.
        command: u16 = "command",
        /// Number of credits requested or granted.
        credits: u16 = "credits",
        /// Flags.
        flags: u32 = "flags",
        /// Message identifier.
        message_id: u64 = "message_id",
        /// Process identifier.
        process_id: u32 = "process_id",
        /// Tree identifier.
        tree_id: u32 = "tree_id",
        /// Session identifier.
        session_id: u64 = "session_id",
        /// Signature.
        signature: [u8; 16] = "signature",
    }
}

gannet_event::record! {
    /// Identifier of a file or server.
    #[derive(Clone, Copy, Debug)]
    pub struct Guid = "SMB2::GUID" {
        /// Persistent part, which survives reconnects.
        persistent: u64 = "persistent",
        /// Volatile part.
        volatile: u64 = "volatile",
    }
}

gannet_event::record! {
    /// Attributes of a file ([MS-FSCC] §2.6).
    #[derive(Clone, Copy, Debug)]
    pub struct FileAttrs = "SMB2::FileAttrs" {
        /// Read-only.
        read_only: bool = "read_only",
        /// Hidden in directory listings.
        hidden: bool = "hidden",
        /// Part of the operating system.
        system: bool = "system",
        /// Directory.
        directory: bool = "directory",
        /// To be archived.
        archive: bool = "archive",
        /// No other attribute is set.
        normal: bool = "normal",
        /// Temporary.
        temporary: bool = "temporary",
        /// Sparse file.
        sparse_file: bool = "sparse_file",
        /// Reparse point or symbolic link.
        reparse_point: bool = "reparse_point",
        /// Compressed.
        compressed: bool = "compressed",
        /// Data not immediately available.
        offline: bool = "offline",
        /// Not indexed.
        not_content_indexed: bool = "not_content_indexed",
        /// Encrypted.
        encrypted: bool = "encrypted",
        /// Has integrity protection.
        integrity_stream: bool = "integrity_stream",
        /// Excluded from integrity scans.
        no_scrub_data: bool = "no_scrub_data",
    }
}

gannet_event::record! {
    /// Contents of a close response.
    #[derive(Clone, Copy, Debug)]
    pub struct CloseResponse = "SMB2::CloseResponse" {
        /// Allocated size in bytes.
        alloc_size: u64 = "alloc_size",
        /// Size of the file in bytes.
        eof: u64 = "eof",
        /// Times of the file.
        times: MacTimes = "times",
        /// Attributes of the file.
        attrs: FileAttrs = "attrs",
    }
}

gannet_event::record! {
    /// Preauthentication integrity capabilities.
    pub struct PreAuth<'a> = "SMB2::PreAuthIntegrityCapabilities" {
        /// Number of algorithms.
        hash_alg_count: u16 = "hash_alg_count",
        /// Length of the salt, in bytes.
        salt_length: u16 = "salt_length",
        /// Hash algorithms.
        hash_alg: Vec<u16> = "hash_alg",
        /// The salt.
        salt: &'a [u8] = "salt",
    }
}

gannet_event::record! {
    /// Encryption capabilities.
    pub struct Encryption = "SMB2::EncryptionCapabilities" {
        /// Number of ciphers.
        cipher_count: u16 = "cipher_count",
        /// Ciphers.
        ciphers: Vec<u16> = "ciphers",
    }
}

gannet_event::record! {
    /// Compression capabilities.
    pub struct Compression = "SMB2::CompressionCapabilities" {
        /// Number of algorithms.
        alg_count: u16 = "alg_count",
        /// Compression algorithms.
        algs: Vec<u16> = "algs",
    }
}

gannet_event::record! {
    /// A negotiate context: one of its fields is set, depending on the type.
    pub struct NegotiateContext<'a> = "SMB2::NegotiateContextValue" {
        /// Type of the context.
        context_type: u16 = "context_type",
        /// Length of the data, in bytes.
        data_length: u16 = "data_length",
        /// Preauthentication integrity capabilities.
        preauth_info: Option<PreAuth<'a>> = "preauth_info",
        /// Encryption capabilities.
        encryption_info: Option<Encryption> = "encryption_info",
        /// Compression capabilities.
        compression_info: Option<Compression> = "compression_info",
        /// Name of the server.
        netname: Option<&'a [u8]> = "netname",
    }
}

gannet_event::record! {
    /// Contents of a negotiate response.
    pub struct Negotiated2<'a> = "SMB2::NegotiateResponse" {
        /// The dialect.
        dialect_revision: u16 = "dialect_revision",
        /// Security mode: whether messages are signed.
        security_mode: u16 = "security_mode",
        /// Identifier of the server.
        server_guid: Guid = "server_guid",
        /// The server's clock.
        system_time: Time = "system_time",
        /// Start time of the server.
        server_start_time: Time = "server_start_time",
        /// Number of negotiate contexts.
        negotiate_context_count: u16 = "negotiate_context_count",
        /// Negotiate contexts.
        negotiate_context_values: Vec<NegotiateContext<'a>> = "negotiate_context_values",
    }
}

gannet_event::record! {
    /// Contents of a session setup request.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupRequest2 = "SMB2::SessionSetupRequest" {
        /// Security mode: whether messages are signed.
        security_mode: u64 = "security_mode",
    }
}

gannet_event::record! {
    /// Session flags of a server.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupFlags = "SMB2::SessionSetupFlags" {
        /// Guest login.
        guest: bool = "guest",
        /// Anonymous login.
        anonymous: bool = "anonymous",
        /// Messages are encrypted.
        encrypt: bool = "encrypt",
    }
}

gannet_event::record! {
    /// Contents of a session setup response.
    #[derive(Clone, Copy, Debug)]
    pub struct SetupResponse2 = "SMB2::SessionSetupResponse" {
        /// Session flags.
        flags: SetupFlags = "flags",
    }
}

gannet_event::record! {
    /// Contents of a tree connect response.
    #[derive(Clone, Copy, Debug)]
    pub struct TreeResponse = "SMB2::TreeConnectResponse" {
        /// Type of the share.
        share_type: u64 = "share_type",
    }
}

gannet_event::record! {
    /// Contents of a create request.
    pub struct CreateRequest<'a> = "SMB2::CreateRequest" {
        /// Name of the file.
        filename: &'a [u8] = "filename",
        /// Create disposition: what to do if the file exists, or does not.
        disposition: u32 = "disposition",
        /// Create options.
        create_options: u32 = "create_options",
    }
}

gannet_event::record! {
    /// Contents of a create response.
    #[derive(Clone, Copy, Debug)]
    pub struct CreateResponse = "SMB2::CreateResponse" {
        /// Identifier of the file.
        file_id: Guid = "file_id",
        /// Size of the file in bytes.
        size: u64 = "size",
        /// Times of the file.
        times: MacTimes = "times",
        /// Attributes of the file.
        attrs: FileAttrs = "attrs",
        /// Action that was performed.
        create_action: u32 = "create_action",
    }
}

gannet_event::record! {
    /// Quota information of a file system ([MS-FSCC] §2.5.2).
    #[derive(Clone, Copy, Debug)]
    pub struct FsControl = "SMB2::Fscontrol" {
        /// Free space in bytes at which content indexing starts.
        free_space_start_filtering: i64 = "free_space_start_filtering",
        /// Free space in bytes that content indexing needs.
        free_space_threshold: i64 = "free_space_threshold",
        /// Free space in bytes at which content indexing stops.
        free_space_stop_filtering: i64 = "free_space_stop_filtering",
        /// Default quota threshold of a user, in bytes.
        delete_quota_threshold: u64 = "delete_quota_threshold",
        /// Default quota limit of a user, in bytes.
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
        /// Signature.
        signature: [u8; 16] = "signature",
        /// Nonce.
        nonce: [u8; 16] = "nonce",
        /// Length of the original message, in bytes.
        orig_msg_size: u32 = "orig_msg_size",
        /// Flags.
        flags: u16 = "flags",
        /// Session identifier.
        session_id: u64 = "session_id",
    }
}
