//! dnsjit's scripts, unmodified: its ten tests and its examples, where its source is next to the
//! project or where `DNSJIT_SOURCE` points, Shotgun's where `SHOTGUN_SOURCE` points, and drool where it is
//! installed; and dnsjit's modules in cases where dnsjit itself has defects.
//!
//! Tests for the correct behaviour where dnsjit 1.5.0 and drool 2.0.0 have defects:
//!
//! | defect | test |
//! |---|---|
//! | `Channel:put` loses objects when the ring is full | `a_full_channel_is_an_error_and_loses_nothing`, `threads_receive_every_object` |
//! | `drool replay -T` loses queries and hangs | `drool_with_threads_sends_every_query_and_ends` |
//! | nanoseconds of captures are read as microseconds; captures are written with microseconds | `nanoseconds_are_nanoseconds`, `scripts_write_packets_unchanged` |
//! | 802.1ad is not read, VLAN ids have eight bits | `vlans_in_vlans_are_read_and_ids_have_twelve_bits` |
//! | a weird packet ends the stream without an error | `a_weird_packet_does_not_end_the_stream` |
//! | an empty payload ends the program | `an_empty_payload_is_no_header_and_no_end` |
//! | `multiply` truncates fractions; delays accumulate, and late packets wait as well | `timing_accumulates_no_delay_and_multiplies_by_fractions`, `late_packets_do_not_wait` |
//! | over TCP, length fields are sent twice, and answers are sent as queries | `lengths_are_sent_once_and_answers_are_not_sent` |
//! | `torfc1035` writes octal | `escapes_are_decimal` |
//! | IPv6 with extension headers has no payload | `extension_headers_leave_the_payload` |
//! | `nonblocking(false)` does not block | `blocking_can_be_enabled_again` |
//! | `thread:pop()` waits forever; objects at the end of a channel are lost | `threads_receive_every_object` |
//! | `packets()` is 0 where packets are pulled | `nanoseconds_are_nanoseconds` |
//! | respdiff's times are all 1 | `respdiff_has_times` |
//!
//! `gannet replay` has what drool's manual describes and drool does not implement (loops, `add=`); its tests are in
//! `crates/replay`.

#![allow(clippy::unwrap_used)]
#![cfg(feature = "lua")]

mod defects;
mod material;
mod scripts;
