//! Ftp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::ftp::Endpoint;
use gannet_protocols::ftp::Reply;
use gannet_protocols::ftp::Request;

gannet_fuzz_support::protocol!(
    Ftp,
    Request::parse,
    Reply::parse,
    Endpoint::from_port,
    Endpoint::from_pasv,
    Endpoint::from_eprt,
    Endpoint::from_epsv
);
