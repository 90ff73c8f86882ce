//! Mysql: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::mysql::message::Command;
use gannet_protocols::mysql::message::Greeting;
use gannet_protocols::mysql::message::Login;

gannet_fuzz_support::protocol!(
    Mysql,
    Greeting::parse,
    |data| Login::parse(data, 10).is_ok(),
    |data| { Command::parse(data, true, u32::MAX).is_ok() }
);
