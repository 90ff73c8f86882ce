//! Ldap: one conversation over TCP, and its parsers of messages.
#![no_main]

use gannet_protocols::ldap::filter;
use gannet_protocols::ldap::message;
use gannet_protocols::support::Bytes;

gannet_fuzz_support::protocol!(
    LdapTcp,
    |data| message::parse(data, false).is_ok(),
    |data| message::parse(data, true).is_ok(),
    |data| filter::write(&mut Bytes(data), &mut Vec::new()).is_ok(),
);
