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
