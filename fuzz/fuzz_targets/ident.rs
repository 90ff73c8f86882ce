//! IDENT: one conversation, and its parsers of lines.
#![no_main]

use gannet_protocols::ident::message::Reply;
use gannet_protocols::ident::message::Request;

gannet_fuzz_support::started_protocols!(Ident, Request::parse, Reply::parse);
