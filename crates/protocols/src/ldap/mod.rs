//! LDAP (RFC 4511) over TCP, and without connection over UDP (CLDAP, MS-ADTS section 6.3.3).
//!
//! Messages are ASN.1 in BER: [`message`] parses one with its operation, [`filter`] converts a search
//! filter to the text of RFC 4515. After a SASL login (RFC 4513 section 5.2) both sides may wrap
//! their messages: `sasl.rs` detects the wrapping, and unwraps Kerberos tokens that are signed,
//! but not sealed (RFC 4121). The analysis ends with StartTLS.
//!
//! Each search is logged in ldap_search.log, and each other operation in ldap.log, with request and response.
//! `rows.rs` stores incomplete operations. Any complete message confirms the
//! protocol.
//!
//! With [`inner_protocols`](crate::Options::inner_protocols), protocols inside LDAP are analyzed:
//! GSSAPI and NTLM authentication, and TLS after StartTLS.

mod analyzer;
mod ber;
mod detect;
pub mod events;
pub mod filter;
pub mod message;
mod names;
mod raise;
mod rows;
mod sasl;

pub use analyzer::Tcp;
pub use analyzer::Udp;
pub use rows::LdapRow;
pub use rows::SearchRow;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Limit;
use crate::descriptor::Log;
use crate::descriptor::Origin;
use crate::descriptor::Ports;

/// Analyzers, events and logs of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry {
            ports: Ports::tcp(&[389, 3268]),
            origin: Origin::Spicy,
            pending: Some(Limit {
                name: "pending-ldap",
                default: 10,
                what: "LDAP operations, and searches, without a result; beyond, all are logged.",
                reported_by: "LDAP_max_pending_messages_exceeded",
            }),
            tcp_rules: detect::TCP,
            ..Entry::new(Tag::LdapTcp, "LDAP_TCP", "ldap_tcp")
        },
        Entry {
            ports: Ports::udp(&[389]),
            origin: Origin::Spicy,
            udp_rules: detect::UDP,
            ..Entry::new(Tag::LdapUdp, "LDAP_UDP", "ldap_udp")
        },
    ],
    events: &[events::EVENTS],
    logs: &[
        Log::of::<LdapRow<'_>>().stream("LDAP::LDAP_LOG"),
        Log::of::<SearchRow<'_>>().stream("LDAP::LDAP_SEARCH_LOG"),
    ],
};
