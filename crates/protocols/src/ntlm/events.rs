//! Events of NTLM.

use gannet_base::Time;
use gannet_event::Connection;

use crate::support::utf16::Utf16Text;

gannet_event::record! {
    /// Version of a system.
    #[derive(Clone, Copy, Debug)]
    pub struct Version = "NTLM::Version" {
        /// Major version.
        major: u64 = "major",
        /// Minor version.
        minor: u64 = "minor",
        /// Build.
        build: u16 = "build",
        /// Revision of the protocol.
        ntlmssp: u64 = "ntlmssp",
    }
}

gannet_event::record! {
    /// What is negotiated.
    #[derive(Clone, Copy, Debug)]
    pub struct Flags = "NTLM::NegotiateFlags" {
        /// Encryption with 56 bits.
        negotiate_56: bool = "negotiate_56",
        /// Exchange of keys.
        negotiate_key_exch: bool = "negotiate_key_exch",
        /// Encryption with 128 bits.
        negotiate_128: bool = "negotiate_128",
        /// The version is sent.
        negotiate_version: bool = "negotiate_version",
        /// Information on the target is sent.
        negotiate_target_info: bool = "negotiate_target_info",
        /// The session key of LAN Manager.
        request_non_nt_session_key: bool = "request_non_nt_session_key",
        /// A token that identifies only.
        negotiate_identify: bool = "negotiate_identify",
        /// Security of version 2.
        negotiate_extended_sessionsecurity: bool = "negotiate_extended_sessionsecurity",
        /// The target is a server.
        target_type_server: bool = "target_type_server",
        /// The target is a domain.
        target_type_domain: bool = "target_type_domain",
        /// A signature in all messages.
        negotiate_always_sign: bool = "negotiate_always_sign",
        /// The workstation is sent.
        negotiate_oem_workstation_supplied: bool = "negotiate_oem_workstation_supplied",
        /// The domain is sent.
        negotiate_oem_domain_supplied: bool = "negotiate_oem_domain_supplied",
        /// An anonymous login.
        negotiate_anonymous_connection: bool = "negotiate_anonymous_connection",
        /// Version 1.
        negotiate_ntlm: bool = "negotiate_ntlm",
        /// A key of LAN Manager.
        negotiate_lm_key: bool = "negotiate_lm_key",
        /// Authentication without connections.
        negotiate_datagram: bool = "negotiate_datagram",
        /// Confidential messages.
        negotiate_seal: bool = "negotiate_seal",
        /// Signed messages.
        negotiate_sign: bool = "negotiate_sign",
        /// The target's name is asked for.
        request_target: bool = "request_target",
        /// Text in the code page of the system.
        negotiate_oem: bool = "negotiate_oem",
        /// Text in UTF-16.
        negotiate_unicode: bool = "negotiate_unicode",
    }
}

gannet_event::record! {
    /// A client begins.
    #[derive(Clone, Debug)]
    pub struct NegotiateRecord<'a> = "NTLM::Negotiate" {
        /// What it offers.
        flags: Flags = "flags",
        /// Its domain.
        domain_name: Option<Utf16Text<'a>> = "domain_name",
        /// Its name.
        workstation: Option<Utf16Text<'a>> = "workstation",
        /// Its system.
        version: Option<Version> = "version",
    }
}

gannet_event::record! {
    /// What a server says of itself.
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
        /// Number of the machine.
        single_host_id: Option<u64> = "single_host_id",
        /// Name of the service.
        target_name: Option<Utf16Text<'a>> = "target_name",
    }
}

gannet_event::record! {
    /// A server challenges.
    #[derive(Clone, Debug)]
    pub struct ChallengeRecord<'a> = "NTLM::Challenge" {
        /// What it chose.
        flags: Flags = "flags",
        /// The challenge.
        challenge: u64 = "challenge",
        /// Its name.
        target_name: Option<Utf16Text<'a>> = "target_name",
        /// Its system.
        version: Option<Version> = "version",
        /// What more it says of itself.
        target_info: Option<Attributes<'a>> = "target_info",
    }
}

gannet_event::record! {
    /// A client answers.
    #[derive(Clone, Debug)]
    pub struct AuthenticateRecord<'a> = "NTLM::Authenticate" {
        /// What was chosen.
        flags: Flags = "flags",
        /// The user's domain.
        domain_name: Option<Utf16Text<'a>> = "domain_name",
        /// The user.
        user_name: Option<Utf16Text<'a>> = "user_name",
        /// Name of the client.
        workstation: Option<Utf16Text<'a>> = "workstation",
        /// The encrypted session key.
        session_key: Option<&'a [u8]> = "session_key",
        /// The client's system.
        version: Option<Version> = "version",
        /// The answer to the challenge.
        response: Option<&'a [u8]> = "response",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Ntlm);

    /// A client begins a login.
    pub struct NtlmNegotiate<'a> = "ntlm_negotiate" {
        /// The connection.
        c: Connection = "c",
        /// What it says.
        negotiate: NegotiateRecord<'a> = "negotiate",
    }

    /// A server challenges.
    pub struct NtlmChallenge<'a> = "ntlm_challenge" {
        /// The connection.
        c: Connection = "c",
        /// What it says.
        challenge: ChallengeRecord<'a> = "challenge",
    }

    /// A client answers the challenge.
    pub struct NtlmAuthenticate<'a> = "ntlm_authenticate" {
        /// The connection.
        c: Connection = "c",
        /// What it says.
        request: AuthenticateRecord<'a> = "request",
    }
}
