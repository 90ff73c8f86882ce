//! KrbTcp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::krb::message::Message;

gannet_fuzz::protocol!(KrbTcp, Message::parse);
