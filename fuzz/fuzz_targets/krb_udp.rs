//! Krb: one conversation.
#![no_main]

gannet_fuzz::protocol!(Krb);
