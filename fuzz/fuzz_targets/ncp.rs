//! NCP: one conversation, and its parser of frames.
#![no_main]

use gannet_protocols::ncp::Frame;

gannet_fuzz_support::started_protocols!(Ncp, |data| Frame::parse(true, data), |data| Frame::parse(
    false, data
),);
