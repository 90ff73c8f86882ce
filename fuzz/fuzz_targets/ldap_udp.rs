//! LdapUdp: one conversation over UDP.
#![no_main]

gannet_fuzz::protocol!(LdapUdp);
