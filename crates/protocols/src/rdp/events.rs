//! Events of RDP.

use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;

use crate::support::utf16::Utf16Text;

gannet_event::record! {
    /// Early capability flags of a client (MS-RDPBCGR section 2.2.1.3.2).
    #[derive(Clone, Copy, Debug)]
    pub struct EarlyFlags = "RDP::EarlyCapabilityFlags" {
        /// Supports the Set Error Info PDU.
        support_err_info_pdu: bool = "support_err_info_pdu",
        /// Requests 32 bits per pixel.
        want_32bpp_session: bool = "want_32bpp_session",
        /// Supports the Server Status Info PDU.
        support_statusinfo_pdu: bool = "support_statusinfo_pdu",
        /// Supports asymmetric keys of more than 512 bits.
        strong_asymmetric_keys: bool = "strong_asymmetric_keys",
        /// Supports the Monitor Layout PDU.
        support_monitor_layout_pdu: bool = "support_monitor_layout_pdu",
        /// Supports network characteristics detection.
        support_netchar_autodetect: bool = "support_netchar_autodetect",
        /// Supports the graphics pipeline extension.
        support_dynvc_gfx_protocol: bool = "support_dynvc_gfx_protocol",
        /// Supports dynamic time zones.
        support_dynamic_time_zone: bool = "support_dynamic_time_zone",
        /// Supports the Heartbeat PDU.
        support_heartbeat_pdu: bool = "support_heartbeat_pdu",
    }
}

gannet_event::record! {
    /// Core settings of a client.
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
        /// Color depth code of RDP 4.0.
        color_depth: u16 = "color_depth",
        /// Secure access sequence.
        sas_sequence: u16 = "sas_sequence",
        /// Keyboard layout.
        keyboard_layout: u32 = "keyboard_layout",
        /// The client's build number.
        client_build: u32 = "client_build",
        /// The client's name.
        client_name: Utf16Text<'a> = "client_name",
        /// Keyboard type.
        keyboard_type: u32 = "keyboard_type",
        /// Keyboard subtype.
        keyboard_sub: u32 = "keyboard_sub",
        /// Number of function keys.
        keyboard_function_key: u32 = "keyboard_function_key",
        /// Name of the input method editor.
        ime_file_name: Utf16Text<'a> = "ime_file_name",
        /// Color depth code of RDP 5.
        post_beta2_color_depth: Option<u16> = "post_beta2_color_depth",
        /// Product identifier.
        client_product_id: Option<u16> = "client_product_id",
        /// Serial number of the product.
        serial_number: Option<u32> = "serial_number",
        /// Color depth in bits per pixel.
        high_color_depth: Option<u16> = "high_color_depth",
        /// Flags of the supported color depths.
        supported_color_depths: Option<u16> = "supported_color_depths",
        /// Early capability flags.
        ec_flags: Option<EarlyFlags> = "ec_flags",
        /// Digital product identifier.
        dig_product_id: Option<Utf16Text<'a>> = "dig_product_id",
    }
}

gannet_event::record! {
    /// Encryption methods of a client.
    #[derive(Clone, Copy, Debug)]
    pub struct SecurityData = "RDP::ClientSecurityData" {
        /// Supported methods.
        encryption_methods: u32 = "encryption_methods",
        /// Supported methods of French locale clients.
        ext_encryption_methods: u32 = "ext_encryption_methods",
    }
}

gannet_event::record! {
    /// A virtual channel that a client requests.
    #[derive(Clone, Copy, Debug)]
    pub struct ChannelDef<'a> = "RDP::ClientChannelDef" {
        /// Its name.
        name: &'a [u8] = "name",
        /// Option flags.
        options: u32 = "options",
        /// The channel is initialized.
        initialized: bool = "initialized",
        /// Data is encrypted like other RDP traffic.
        encrypt_rdp: bool = "encrypt_rdp",
        /// Data sent by the server is encrypted.
        encrypt_sc: bool = "encrypt_sc",
        /// Data sent by the client is encrypted.
        encrypt_cs: bool = "encrypt_cs",
        /// High priority.
        pri_high: bool = "pri_high",
        /// Medium priority.
        pri_med: bool = "pri_med",
        /// Low priority.
        pri_low: bool = "pri_low",
        /// Data is compressed if RDP data is compressed.
        compress_rdp: bool = "compress_rdp",
        /// Data is compressed.
        compress: bool = "compress",
        /// The channel's protocol is shown.
        show_protocol: bool = "show_protocol",
        /// The channel persists across remote control.
        persistent: bool = "persistent",
    }
}

gannet_event::record! {
    /// Cluster settings of a client.
    #[derive(Clone, Copy, Debug)]
    pub struct ClusterData = "RDP::ClientClusterData" {
        /// Flags.
        flags: u32 = "flags",
        /// The session to which the client was redirected.
        redir_session_id: u32 = "redir_session_id",
        /// The client supports redirection.
        redir_supported: bool = "redir_supported",
        /// Supported version of redirection.
        svr_session_redir_version_mask: u64 = "svr_session_redir_version_mask",
        /// The session id is valid.
        redir_sessionid_field_valid: bool = "redir_sessionid_field_valid",
        /// The client logs in with a smart card.
        redir_smartcard: bool = "redir_smartcard",
    }
}

/// Names and options of the virtual channels that a client requests.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a>(pub(super) &'a [(&'a [u8], u32)]);

impl Arg for Channels<'_> {
    const TYPE: Type = Type::Vector(&ChannelDef::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|one| channel(one).pack(to));
    }
}

/// The record of a requested virtual channel.
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
        /// Data with RDP's own encryption.
        pub struct RdpNativeEncryptedData = "rdp_native_encrypted_data", opt_in {
            /// Whether the client sent them.
            orig: bool = "orig",
            /// Number of bytes.
            len: u64 = "len",
        }

        /// A client connects.
        pub struct RdpConnectRequest<'a> = "rdp_connect_request" {
            /// The client's cookie.
            cookie: &'a [u8] = "cookie",
            /// Flags of its negotiation request.
            flags: u64 = "flags",
        }

        /// A server selects the security protocol.
        pub struct RdpNegotiationResponse = "rdp_negotiation_response" {
            /// The security protocol.
            security_protocol: u32 = "security_protocol",
            /// Flags.
            flags: u64 = "flags",
        }

        /// A server rejects the negotiation.
        pub struct RdpNegotiationFailure = "rdp_negotiation_failure" {
            /// Failure code.
            failure_code: u32 = "failure_code",
            /// Flags.
            flags: u64 = "flags",
        }

        /// Core settings of a client.
        pub struct RdpClientCoreData<'a> = "rdp_client_core_data" {
            /// The settings.
            data: CoreData<'a> = "data",
        }

        /// Encryption methods of a client.
        pub struct RdpClientSecurityData = "rdp_client_security_data", opt_in {
            /// The settings.
            data: SecurityData = "data",
        }

        /// Virtual channels that a client requests.
        pub struct RdpClientNetworkData<'a> = "rdp_client_network_data" {
            /// The channels.
            channels: Channels<'a> = "channels",
        }

        /// Cluster settings of a client.
        pub struct RdpClientClusterData = "rdp_client_cluster_data", opt_in {
            /// The settings.
            data: ClusterData = "data",
        }

        /// A server accepts or rejects a conference.
        pub struct RdpGccServerCreateResponse = "rdp_gcc_server_create_response" {
            /// The result.
            result: u64 = "result",
        }

        /// Encryption settings of a server.
        pub struct RdpServerSecurity = "rdp_server_security" {
            /// Encryption method.
            encryption_method: u32 = "encryption_method",
            /// Encryption level.
            encryption_level: u32 = "encryption_level",
        }

        /// A server's certificate.
        pub struct RdpServerCertificate = "rdp_server_certificate" {
            /// Type of the certificate: 1 is proprietary, 2 X.509.
            cert_type: u32 = "cert_type",
            /// Whether the certificate is permanent.
            permanently_issued: bool = "permanently_issued",
        }

        /// Encryption starts.
        pub struct RdpBeginEncryption = "rdp_begin_encryption" {
            /// The security protocol; 0 is RDP's own encryption.
            security_protocol: u32 = "security_protocol",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A client requests RDP over UDP.
        pub struct RdpEudpSyn = "rdpeudp_syn", opt_in {}

        /// A server accepts RDP over UDP.
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
            /// Data after the headers.
            data: &'a [u8] = "data",
        }
    }
}
