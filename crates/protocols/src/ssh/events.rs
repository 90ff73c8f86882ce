//! Events of SSH.

use gannet_event::Connection;

use super::message::Names;

gannet_event::record! {
    /// The algorithms that one side supports, by direction, in order of preference.
    #[derive(Clone, Copy, Debug)]
    pub struct AlgorithmPrefs<'a> = "SSH::Algorithm_Prefs" {
        /// From client to server.
        client_to_server: Option<Names<'a>> = "client_to_server",
        /// From server to client.
        server_to_client: Option<Names<'a>> = "server_to_client",
    }
}

gannet_event::record! {
    /// The capabilities of one side (RFC 4253 §7.1).
    #[derive(Clone, Copy, Debug)]
    pub struct Capabilities<'a> = "SSH::Capabilities" {
        /// Key exchange.
        kex_algorithms: Names<'a> = "kex_algorithms",
        /// Types of host keys.
        server_host_key_algorithms: Names<'a> = "server_host_key_algorithms",
        /// Encryption.
        encryption_algorithms: AlgorithmPrefs<'a> = "encryption_algorithms",
        /// Message authentication.
        mac_algorithms: AlgorithmPrefs<'a> = "mac_algorithms",
        /// Compression.
        compression_algorithms: AlgorithmPrefs<'a> = "compression_algorithms",
        /// Languages, if either side's list is not empty.
        languages: Option<AlgorithmPrefs<'a>> = "languages",
        /// Whether the server sent it.
        is_server: bool = "is_server",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ssh);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// The server's version line.
        pub struct SshServerVersion<'a> = "ssh_server_version" {
            /// The line: `SSH-2.0-OpenSSH_9.9`.
            version: &'a [u8] = "version",
        }

        /// A line that a server sends before its version.
        pub struct SshServerPreBannerData<'a> = "ssh_server_pre_banner_data", opt_in {
            /// The line.
            data: &'a [u8] = "data",
        }

        /// The client's version line.
        pub struct SshClientVersion<'a> = "ssh_client_version" {
            /// The line: `SSH-2.0-OpenSSH_9.9`.
            version: &'a [u8] = "version",
        }

        /// One side's lists of algorithms.
        pub struct SshCapabilities<'a> = "ssh_capabilities" {
            /// Random bytes that make the message unique.
            cookie: &'a [u8] = "cookie",
            /// The algorithms.
            capabilities: Capabilities<'a> = "capabilities",
        }

        /// The server's host key, in version 2.
        pub struct Ssh2ServerHostKey<'a> = "ssh2_server_host_key", opt_in {
            /// The key.
            key: &'a [u8] = "key",
        }

        /// The server's host key, in version 1.
        pub struct Ssh1ServerHostKey<'a> = "ssh1_server_host_key", opt_in {
            /// Its modulus.
            modulus: &'a [u8] = "modulus",
            /// Its public exponent.
            exponent: &'a [u8] = "exponent",
        }

        /// Checksum of the server's host key.
        pub struct SshServerHostKey<'a> = "ssh_server_host_key", opt_in {
            /// MD5 as pairs of hexadecimal digits.
            hash: &'a str = "hash",
        }

        /// Checksum of the server's host key.
        pub struct SshServerHostKeyFingerprint<'a> = "ssh_server_host_key_fingerprint" {
            /// `SHA256:` and base 64.
            fingerprint: &'a str = "fingerprint",
        }

        /// The group of a Diffie-Hellman key exchange.
        pub struct Ssh2DhServerParams<'a> = "ssh2_dh_server_params", opt_in {
            /// The prime.
            p: &'a [u8] = "p",
            /// The generator.
            q: &'a [u8] = "q",
        }

        /// The server reports a GSS-API error.
        pub struct Ssh2GssError<'a> = "ssh2_gss_error", opt_in {
            /// Major status, of GSS-API.
            major_status: u64 = "major_status",
            /// Minor status, of the mechanism.
            minor_status: u64 = "minor_status",
            /// Error message.
            err_msg: &'a [u8] = "err_msg",
        }

        /// A segment contains encrypted bytes.
        pub struct SshEncryptedPacket = "ssh_encrypted_packet", opt_in {
            /// Whether the originator sent it.
            orig: bool = "orig",
            /// Number of encrypted bytes.
            len: u64 = "len",
        }

        /// A login attempt, inferred from packet sizes.
        pub struct SshAuthAttempted = "ssh_auth_attempted" {
            /// Whether it succeeded.
            authenticated: bool = "authenticated",
        }

        /// A client logged in, inferred from packet sizes.
        pub struct SshAuthSuccessful = "ssh_auth_successful", opt_in {
            /// Whether no authentication was required.
            auth_method_none: bool = "auth_method_none",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// A side starts a Diffie-Hellman key exchange.
        pub struct Ssh2DhGexInit = "ssh2_dh_gex_init", opt_in {}

        /// A side starts a key exchange with GSS-API.
        pub struct Ssh2GssInit = "ssh2_gss_init", opt_in {}

        /// The secret of a key exchange with RSA.
        pub struct Ssh2RsaSecret = "ssh2_rsa_secret", opt_in {}

        /// A side starts an elliptic-curve key exchange.
        pub struct Ssh2EccInit = "ssh2_ecc_init", opt_in {}

        /// A key of an elliptic-curve key exchange.
        pub struct Ssh2EccKey<'a> = "ssh2_ecc_key", opt_in {
            /// The ephemeral public key.
            q: &'a [u8] = "q",
        }
    }
}
