//! Events of NTLM.

use gannet_base::Time;
use gannet_event::Connection;

use crate::support::utf16::Utf16Text;

gannet_event::record! {
    /// Version of an operating system.
    #[derive(Clone, Copy, Debug)]
    pub struct Version = "NTLM::Version" {
        /// Major version.
        major: u64 = "major",
        /// Minor version.
        minor: u64 = "minor",
        /// Build number.
        build: u16 = "build",
        /// Revision of NTLMSSP.
        ntlmssp: u64 = "ntlmssp",
    }
}

gannet_event::record! {
    /// Negotiated flags ([MS-NLMP] §2.2.2.5).
    #[derive(Clone, Copy, Debug)]
    pub struct Flags = "NTLM::NegotiateFlags" {
        /// 56-bit encryption.
        negotiate_56: bool = "negotiate_56",
        /// Key exchange.
        negotiate_key_exch: bool = "negotiate_key_exch",
        /// 128-bit encryption.
        negotiate_128: bool = "negotiate_128",
        /// The message contains a version.
        negotiate_version: bool = "negotiate_version",
        /// The challenge contains information on the target.
        negotiate_target_info: bool = "negotiate_target_info",
        /// The LAN Manager session key is requested.
        request_non_nt_session_key: bool = "request_non_nt_session_key",
        /// A token of identify level is requested.
        negotiate_identify: bool = "negotiate_identify",
        /// NTLM version 2 session security.
        negotiate_extended_sessionsecurity: bool = "negotiate_extended_sessionsecurity",
        /// The target is a server.
        target_type_server: bool = "target_type_server",
        /// The target is a domain.
        target_type_domain: bool = "target_type_domain",
        /// All messages are signed.
        negotiate_always_sign: bool = "negotiate_always_sign",
        /// The message contains the workstation name.
        negotiate_oem_workstation_supplied: bool = "negotiate_oem_workstation_supplied",
        /// The message contains the domain name.
        negotiate_oem_domain_supplied: bool = "negotiate_oem_domain_supplied",
        /// The login is anonymous.
        negotiate_anonymous_connection: bool = "negotiate_anonymous_connection",
        /// NTLM version 1 session security.
        negotiate_ntlm: bool = "negotiate_ntlm",
        /// LAN Manager session key.
        negotiate_lm_key: bool = "negotiate_lm_key",
        /// Connectionless authentication.
        negotiate_datagram: bool = "negotiate_datagram",
        /// Messages are encrypted.
        negotiate_seal: bool = "negotiate_seal",
        /// Messages are signed.
        negotiate_sign: bool = "negotiate_sign",
        /// The target's name is requested.
        request_target: bool = "request_target",
        /// Text is in the OEM code page.
        negotiate_oem: bool = "negotiate_oem",
        /// Text is in UTF-16.
        negotiate_unicode: bool = "negotiate_unicode",
    }
}

gannet_event::record! {
    /// Contents of a negotiate message.
    #[derive(Clone, Debug)]
    pub struct NegotiateRecord<'a> = "NTLM::Negotiate" {
        /// Flags that the client offers.
        flags: Flags = "flags",
        /// The client's domain.
        domain_name: Option<Utf16Text<'a>> = "domain_name",
        /// The client's name.
        workstation: Option<Utf16Text<'a>> = "workstation",
        /// The client's operating system.
        version: Option<Version> = "version",
    }
}

gannet_event::record! {
    /// Attributes of a server ([MS-NLMP] §2.2.2.1).
    #[derive(Clone, Debug)]
    pub struct Attributes<'a> = "NTLM::AVs" {
        /// NetBIOS name of the computer.
        nb_computer_name: Option<Utf16Text<'a>> = "nb_computer_name",
        /// NetBIOS name of the domain.
        nb_domain_name: Option<Utf16Text<'a>> = "nb_domain_name",
        /// DNS name of the computer.
        dns_computer_name: Option<Utf16Text<'a>> = "dns_computer_name",
        /// DNS name of the domain.
        dns_domain_name: Option<Utf16Text<'a>> = "dns_domain_name",
        /// DNS name of the forest.
        dns_tree_name: Option<Utf16Text<'a>> = "dns_tree_name",
        /// Whether authentication is constrained.
        constrained_auth: Option<bool> = "constrained_auth",
        /// The server's clock.
        timestamp: Option<Time> = "timestamp",
        /// Machine ID.
        single_host_id: Option<u64> = "single_host_id",
        /// Service principal name of the target.
        target_name: Option<Utf16Text<'a>> = "target_name",
    }
}

gannet_event::record! {
    /// Contents of a challenge message.
    #[derive(Clone, Debug)]
    pub struct ChallengeRecord<'a> = "NTLM::Challenge" {
        /// Flags that the server chose.
        flags: Flags = "flags",
        /// The server's challenge.
        challenge: u64 = "challenge",
        /// The server's name.
        target_name: Option<Utf16Text<'a>> = "target_name",
        /// The server's operating system.
        version: Option<Version> = "version",
        /// Further attributes of the server.
        target_info: Option<Attributes<'a>> = "target_info",
    }
}

gannet_event::record! {
    /// Contents of an authenticate message.
    #[derive(Clone, Debug)]
    pub struct AuthenticateRecord<'a> = "NTLM::Authenticate" {
        /// Negotiated flags.
        flags: Flags = "flags",
        /// The user's domain.
        domain_name: Option<Utf16Text<'a>> = "domain_name",
        /// User name.
        user_name: Option<Utf16Text<'a>> = "user_name",
        /// Name of the client.
        workstation: Option<Utf16Text<'a>> = "workstation",
        /// The encrypted session key.
        session_key: Option<&'a [u8]> = "session_key",
        /// The client's operating system.
        version: Option<Version> = "version",
        /// The response to the challenge.
        response: Option<&'a [u8]> = "response",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ntlm);

    /// A client starts a login.
    pub struct NtlmNegotiate<'a> = "ntlm_negotiate" {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message.
        negotiate: NegotiateRecord<'a> = "negotiate",
    }

    /// A server sends its challenge.
    pub struct NtlmChallenge<'a> = "ntlm_challenge" {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message.
        challenge: ChallengeRecord<'a> = "challenge",
    }

    /// A client sends its response to the challenge.
    pub struct NtlmAuthenticate<'a> = "ntlm_authenticate" {
        /// The connection.
        c: Connection = "c",
        /// Contents of the message.
        request: AuthenticateRecord<'a> = "request",
    }
}
