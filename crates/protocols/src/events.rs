//! The catalogue of events: every module that declares some.
//!
//! A protocol declares its events in its own `events.rs`, and its analyzer lists them. Those of older protocols, and of
//! what is no protocol, have one line here, from which come the numbers
//! of its events, the list of all declarations ([`all`]) and so whatever is derived from it: which names
//! `gannet events --only` knows, the manual, and what scripts can handle.

use gannet_event::Decl;

use crate::Tag;

macro_rules! catalogue {
    ($( $module:ident $($path:ident)::+; )*) => {
        /// Numbers of the modules that declare events.
        pub mod module {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers, named as the constants are")]
            #[repr(u16)]
            enum Number { _Files = gannet_files::events::MODULE, $( $module ),* }
            $(
                #[doc = concat!("Events of `", stringify!($($path)::+), "`.")]
                pub const $module: u16 = Number::$module as u16;
            )*
        }

        const MODULES: &[&[&Decl]] = &[ gannet_files::events::EVENTS, $( crate::$($path)::+::EVENTS ),* ];
    };
}

catalogue! {
    LIFECYCLE lifecycle::events;
    CONN conn_state::events;
    WEIRD weird::events;
    PACKET packet::events;
    STACK stack::events;
    TUNNEL tunnel::events;
    MIME support::mime::events;
    DCE_RPC dce_rpc::events;
    DHCP dhcp::events;
    DNP3 dnp3::events;
    DNS dns::events;
    FINGER finger::events;
    FTP ftp::events;
    GSSAPI gssapi::events;
    HTTP http::events;
    IMAP imap::events;
    IRC irc::events;
    KRB krb::events;
    LDAP ldap::events;
    MODBUS modbus::events;
    MQTT mqtt::events;
    MYSQL mysql::events;
    NTLM ntlm::events;
    NTP ntp::events;
    POP3 pop3::events;
    POSTGRESQL postgresql::events;
    QUIC quic::events;
    RADIUS radius::events;
    RDP rdp::events;
    REDIS redis::events;
    RFB rfb::events;
    SIP sip::events;
    SMB smb::events;
    SMB1 smb::events::v1;
    SMB2 smb::events::v2;
    SMTP smtp::events;
    SNMP snmp::events;
    SOCKS socks::events;
    SSH ssh::events;
    SSL ssl::events;
    SYSLOG syslog::events;
    WEBSOCKET websocket::events;
    XMPP xmpp::events;
}

/// The declarations of all events, by module.
pub fn all() -> impl Iterator<Item = &'static Decl> {
    let of_analyzers = Tag::ALL.iter().flat_map(|tag| tag.events());
    MODULES.iter().copied().flatten().chain(of_analyzers).copied()
}

/// The number of the module that declares the events of an analyzer, which lists them as
/// [`EVENTS`](crate::Analyze::EVENTS).
pub const fn module_of(tag: Tag) -> u16 {
    /// The first number behind those of the list above.
    const FIRST: u16 = 64;
    FIRST + tag as u16
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_numbers_are_unique_and_all_is_documented() {
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for decl in all() {
            assert!(names.insert(decl.name), "two events named {}", decl.name);
            assert!(ids.insert(decl.id), "{} has the number of another event", decl.name);
            assert!(!decl.doc.trim().is_empty(), "{} is not documented", decl.name);
            for param in decl.params {
                assert!(!param.doc.trim().is_empty(), "{} of {}", param.name, decl.name);
            }
        }
    }
}
