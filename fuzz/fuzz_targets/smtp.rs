//! Smtp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::smtp::Reply;
use gannet_protocols::smtp::Request;
use gannet_protocols::smtp::parse_chunk;

gannet_fuzz_support::protocol!(Smtp, Request::parse, Reply::parse, parse_chunk);
