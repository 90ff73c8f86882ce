//! LdapUdp: one conversation over UDP.
#![no_main]

gannet_fuzz_support::protocol!(LdapUdp);
