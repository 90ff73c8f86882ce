//! Pop3: one conversation.
#![no_main]

gannet_fuzz::protocol!(Pop3);
