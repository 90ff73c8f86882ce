//! Sip: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::sip::message::Request;
use gannet_protocols::sip::message::Status;
use gannet_protocols::sip::message::body_length;
use gannet_protocols::sip::message::count;
use gannet_protocols::sip::message::header;

gannet_fuzz_support::protocol!(Sip, Request::parse, Status::parse, header, body_length, count);
