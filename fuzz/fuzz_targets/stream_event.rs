//! Streams as events: one conversation.
#![no_main]

gannet_fuzz_support::protocol!(StreamEvent);
