//! Pop3: one conversation.
#![no_main]

gannet_fuzz_support::protocol!(Pop3);
