//! Raises the events of messages.

use super::events::Attributes;
use super::events::AuthenticateRecord;
use super::events::ChallengeRecord;
use super::events::Flags;
use super::events::NegotiateRecord;
use super::events::NtlmAuthenticate;
use super::events::NtlmChallenge;
use super::events::NtlmNegotiate;
use super::events::Version;
use super::message;
use super::message::Challenge;
use super::message::Message;
use super::rows::Session;
use crate::Context;
use crate::support::filetime::time;
use crate::support::utf16::Utf16Text;

/// Raises the event of a message.
pub(super) fn message(cx: &mut Context<'_>, rows: &mut Session, message: &Message<'_>) {
    match message {
        Message::Negotiate(m) => cx.report(rows, |c| {
            let negotiate = NegotiateRecord {
                flags: flags(m.flags),
                domain_name: m.domain.map(Utf16Text),
                workstation: m.workstation.map(Utf16Text),
                version: m.version.map(version),
            };
            NtlmNegotiate { c, negotiate }
        }),
        Message::Challenge(m) => cx.report(rows, |c| {
            let challenge = ChallengeRecord {
                flags: flags(m.flags),
                challenge: m.challenge,
                target_name: m.target.map(Utf16Text),
                version: m.version.map(version),
                target_info: m.has_info.then(|| attributes(m)),
            };
            NtlmChallenge { c, challenge }
        }),
        Message::Authenticate(m) => cx.report(rows, |c| {
            let request = AuthenticateRecord {
                flags: flags(m.flags),
                domain_name: m.domain.map(Utf16Text),
                user_name: m.user.map(Utf16Text),
                workstation: m.workstation.map(Utf16Text),
                session_key: m.session_key,
                version: m.version.map(version),
                response: m.response,
            };
            NtlmAuthenticate { c, request }
        }),
        Message::Other => {}
    }
}

fn version(v: message::Version) -> Version {
    let [major, minor] = v.number.map(u64::from);
    Version { major, minor, build: v.build, ntlmssp: v.revision.into() }
}

fn attributes<'a>(m: &Challenge<'a>) -> Attributes<'a> {
    // FILETIME: units of 100 ns since 1601.
    Attributes {
        nb_computer_name: m.netbios_computer.map(Utf16Text),
        nb_domain_name: m.netbios_domain.map(Utf16Text),
        dns_computer_name: m.dns_computer.map(Utf16Text),
        dns_domain_name: m.dns_domain.map(Utf16Text),
        dns_tree_name: m.dns_tree.map(Utf16Text),
        constrained_auth: m.constrained,
        timestamp: m.timestamp.map(time),
        single_host_id: m.machine,
        target_name: m.service.map(Utf16Text),
    }
}

fn flags(flags: u32) -> Flags {
    let has = |bit: u32| flags & bit != 0;
    Flags {
        negotiate_56: has(0x8000_0000),
        negotiate_key_exch: has(0x4000_0000),
        negotiate_128: has(0x2000_0000),
        negotiate_version: has(0x0200_0000),
        negotiate_target_info: has(0x0080_0000),
        request_non_nt_session_key: has(0x0040_0000),
        negotiate_identify: has(0x0010_0000),
        negotiate_extended_sessionsecurity: has(0x0008_0000),
        target_type_server: has(0x0002_0000),
        target_type_domain: has(0x0001_0000),
        negotiate_always_sign: has(0x8000),
        negotiate_oem_workstation_supplied: has(0x2000),
        negotiate_oem_domain_supplied: has(0x1000),
        negotiate_anonymous_connection: has(0x800),
        negotiate_ntlm: has(0x200),
        negotiate_lm_key: has(0x80),
        negotiate_datagram: has(0x40),
        negotiate_seal: has(0x20),
        negotiate_sign: has(0x10),
        request_target: has(0x4),
        negotiate_oem: has(0x2),
        negotiate_unicode: has(0x1),
    }
}
