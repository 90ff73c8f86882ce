//! Events of RDP.

use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::utf16::Utf16Text;

gannet_event::record! {
    /// What a client can do early on.
    #[derive(Clone, Copy, Debug)]
    pub struct EarlyFlags = "RDP::EarlyCapabilityFlags" {
        /// It reads errors.
        support_err_info_pdu: bool = "support_err_info_pdu",
        /// It wants 32 bits a pixel.
        want_32bpp_session: bool = "want_32bpp_session",
        /// It reads the status.
        support_statusinfo_pdu: bool = "support_statusinfo_pdu",
        /// It knows keys of more than 512 bits.
        strong_asymmetric_keys: bool = "strong_asymmetric_keys",
        /// It reads layouts of monitors.
        support_monitor_layout_pdu: bool = "support_monitor_layout_pdu",
        /// It measures the network.
        support_netchar_autodetect: bool = "support_netchar_autodetect",
        /// It knows the graphics channel.
        support_dynvc_gfx_protocol: bool = "support_dynvc_gfx_protocol",
        /// It knows dynamic time zones.
        support_dynamic_time_zone: bool = "support_dynamic_time_zone",
        /// It reads heartbeats.
        support_heartbeat_pdu: bool = "support_heartbeat_pdu",
    }
}

gannet_event::record! {
    /// What a client is.
    #[derive(Clone, Copy, Debug)]
    pub struct CoreData<'a> = "RDP::ClientCoreData" {
        /// Major version.
        version_major: u16 = "version_major",
        /// Minor version.
        version_minor: u16 = "version_minor",
        /// Width of the desktop in pixels.
        desktop_width: u16 = "desktop_width",
        /// Height of the desktop in pixels.
        desktop_height: u16 = "desktop_height",
        /// Colours.
        color_depth: u16 = "color_depth",
        /// The secure attention sequence.
        sas_sequence: u16 = "sas_sequence",
        /// Layout of the keyboard.
        keyboard_layout: u32 = "keyboard_layout",
        /// The client's build.
        client_build: u32 = "client_build",
        /// Its name.
        client_name: Utf16Text<'a> = "client_name",
        /// Kind of keyboard.
        keyboard_type: u32 = "keyboard_type",
        /// Kind of keyboard, more precisely.
        keyboard_sub: u32 = "keyboard_sub",
        /// Number of function keys.
        keyboard_function_key: u32 = "keyboard_function_key",
        /// The input method.
        ime_file_name: Utf16Text<'a> = "ime_file_name",
        /// Colours.
        post_beta2_color_depth: Option<u16> = "post_beta2_color_depth",
        /// The product.
        client_product_id: Option<u16> = "client_product_id",
        /// Its serial number.
        serial_number: Option<u32> = "serial_number",
        /// Bits a pixel.
        high_color_depth: Option<u16> = "high_color_depth",
        /// Bits a pixel that are possible.
        supported_color_depths: Option<u16> = "supported_color_depths",
        /// What it can do early on.
        ec_flags: Option<EarlyFlags> = "ec_flags",
        /// Identifies the product.
        dig_product_id: Option<Utf16Text<'a>> = "dig_product_id",
    }
}

gannet_event::record! {
    /// How a client can encrypt.
    #[derive(Clone, Copy, Debug)]
    pub struct SecurityData = "RDP::ClientSecurityData" {
        /// Methods.
        encryption_methods: u32 = "encryption_methods",
        /// Methods of French clients.
        ext_encryption_methods: u32 = "ext_encryption_methods",
    }
}

gannet_event::record! {
    /// A channel that a client wants.
    #[derive(Clone, Copy, Debug)]
    pub struct ChannelDef<'a> = "RDP::ClientChannelDef" {
        /// Its name.
        name: &'a [u8] = "name",
        /// Its options.
        options: u32 = "options",
        /// It is initialised.
        initialized: bool = "initialized",
        /// It is encrypted.
        encrypt_rdp: bool = "encrypt_rdp",
        /// What the server sends is encrypted.
        encrypt_sc: bool = "encrypt_sc",
        /// What the client sends is encrypted.
        encrypt_cs: bool = "encrypt_cs",
        /// Its priority is high.
        pri_high: bool = "pri_high",
        /// Its priority is medium.
        pri_med: bool = "pri_med",
        /// Its priority is low.
        pri_low: bool = "pri_low",
        /// It is compressed if the connection is.
        compress_rdp: bool = "compress_rdp",
        /// It is compressed.
        compress: bool = "compress",
        /// It shows its protocol.
        show_protocol: bool = "show_protocol",
        /// It persists over remote control.
        persistent: bool = "persistent",
    }
}

gannet_event::record! {
    /// What a client knows of clusters.
    #[derive(Clone, Copy, Debug)]
    pub struct ClusterData = "RDP::ClientClusterData" {
        /// Flags.
        flags: u32 = "flags",
        /// The session that it was redirected to.
        redir_session_id: u32 = "redir_session_id",
        /// It can be redirected.
        redir_supported: bool = "redir_supported",
        /// Versions of redirection that it knows.
        svr_session_redir_version_mask: u64 = "svr_session_redir_version_mask",
        /// The session is set.
        redir_sessionid_field_valid: bool = "redir_sessionid_field_valid",
        /// It logs in by smart card.
        redir_smartcard: bool = "redir_smartcard",
    }
}

/// Names and options of the channels that a client wants.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a>(pub(super) &'a [(&'a [u8], u32)]);

impl Arg for Channels<'_> {
    const TYPE: Type = Type::Vector(&ChannelDef::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|one| channel(one).pack(to));
    }
}

/// A channel that a client wants.
fn channel<'a>(&(name, options): &(&'a [u8], u32)) -> ChannelDef<'a> {
    let has = |bit: u32| options & bit != 0;
    ChannelDef {
        name,
        options,
        initialized: has(0x8000_0000),
        encrypt_rdp: has(0x4000_0000),
        encrypt_sc: has(0x2000_0000),
        encrypt_cs: has(0x1000_0000),
        pri_high: has(0x0800_0000),
        pri_med: has(0x0400_0000),
        pri_low: has(0x0200_0000),
        compress_rdp: has(0x0080_0000),
        compress: has(0x0040_0000),
        show_protocol: has(0x0020_0000),
        persistent: has(0x0010_0000),
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Rdp);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// Data that RDP itself encrypts.
        pub struct RdpNativeEncryptedData = "rdp_native_encrypted_data", opt_in {
            /// Whether the client sent them.
            orig: bool = "orig",
            /// Bytes.
            len: u64 = "len",
        }

        /// A client connects.
        pub struct RdpConnectRequest<'a> = "rdp_connect_request" {
            /// Its cookie.
            cookie: &'a [u8] = "cookie",
            /// Flags of its request for encryption.
            flags: u64 = "flags",
        }

        /// A server chose how to encrypt.
        pub struct RdpNegotiationResponse = "rdp_negotiation_response" {
            /// The protocol.
            security_protocol: u32 = "security_protocol",
            /// Flags.
            flags: u64 = "flags",
        }

        /// A server refuses.
        pub struct RdpNegotiationFailure = "rdp_negotiation_failure" {
            /// Why.
            failure_code: u32 = "failure_code",
            /// Flags.
            flags: u64 = "flags",
        }

        /// What a client is.
        pub struct RdpClientCoreData<'a> = "rdp_client_core_data" {
            /// What it says.
            data: CoreData<'a> = "data",
        }

        /// How a client can encrypt.
        pub struct RdpClientSecurityData = "rdp_client_security_data", opt_in {
            /// What it says.
            data: SecurityData = "data",
        }

        /// Channels that a client wants.
        pub struct RdpClientNetworkData<'a> = "rdp_client_network_data" {
            /// The channels.
            channels: Channels<'a> = "channels",
        }

        /// What a client knows of clusters.
        pub struct RdpClientClusterData = "rdp_client_cluster_data", opt_in {
            /// What it says.
            data: ClusterData = "data",
        }

        /// A server accepts a conference, or not.
        pub struct RdpGccServerCreateResponse = "rdp_gcc_server_create_response" {
            /// The result.
            result: u64 = "result",
        }

        /// How a server encrypts.
        pub struct RdpServerSecurity = "rdp_server_security" {
            /// The method.
            encryption_method: u32 = "encryption_method",
            /// The level.
            encryption_level: u32 = "encryption_level",
        }

        /// A server's certificate.
        pub struct RdpServerCertificate = "rdp_server_certificate" {
            /// Its kind: 1 is proprietary, 2 X.509.
            cert_type: u32 = "cert_type",
            /// Whether the channel is persistent.
            permanently_issued: bool = "permanently_issued",
        }

        /// Encryption begins.
        pub struct RdpBeginEncryption = "rdp_begin_encryption" {
            /// The protocol, 0 for RDP's own.
            security_protocol: u32 = "security_protocol",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client asks for RDP over UDP.
        pub struct RdpEudpSyn = "rdpeudp_syn", opt_in {}

        /// A server agrees to RDP over UDP.
        pub struct RdpEudpSynAck = "rdpeudp_synack", opt_in {}

        /// The handshake of RDP over UDP is complete.
        pub struct RdpEudpEstablished = "rdpeudp_established", opt_in {
            /// Version of the transport.
            version: u64 = "version",
        }

        /// Data of RDP over UDP.
        pub struct RdpEudpData<'a> = "rdpeudp_data", opt_in {
            /// Whether the originator sent it.
            is_orig: bool = "is_orig",
            /// Version of the transport.
            version: u64 = "version",
            /// What follows the headers.
            data: &'a [u8] = "data",
        }
    }
}
