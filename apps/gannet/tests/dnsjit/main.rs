//! dnsjit's scripts, unmodified: its ten tests and its examples, where its source is next to the
//! project or where `DNSJIT_SOURCE` points, Shotgun's where `SHOTGUN_SOURCE` points, and drool where it is
//! installed; and what dnsjit's modules do here with packets that it stumbles over.
//!
//! Of dnsjit 1.5.0's and drool 2.0.0's defects, these tests hold us to what is right:
//!
//! | what goes wrong there | test |
//! |---|---|
//! | `Channel:put` loses objects when the ring is full | `a_full_channel_says_so_and_loses_nothing`, `threads_get_every_object` |
//! | `drool replay -T` loses queries and hangs | `drool_with_threads_sends_every_query_and_ends` |
//! | nanoseconds of captures are taken for microseconds; captures are written with microseconds | `nanoseconds_are_nanoseconds`, `what_scripts_write_is_what_they_read` |
//! | 802.1ad is not read, VLAN ids have eight bits | `vlans_in_vlans_are_read_and_ids_have_twelve_bits` |
//! | an odd packet ends the stream as if it were over | `a_weird_packet_does_not_end_the_stream` |
//! | an empty payload ends the program | `an_empty_payload_is_no_header_and_no_end` |
//! | `multiply` cuts fractions; delays add up, and those that are late wait all the same | `timing_adds_nothing_up_and_counts_fractions`, `who_is_late_does_not_wait` |
//! | over TCP lengths are doubled, and answers sent as queries | `lengths_are_sent_once_and_answers_not_at_all` |
//! | `torfc1035` writes octal | `escapes_are_decimal` |
//! | IPv6 with extension headers has no payload | `extension_headers_leave_the_payload` |
//! | `nonblocking(false)` does not block | `blocking_again_is_blocking` |
//! | `thread:pop()` waits for ever; what comes with the end of a channel is lost | `threads_get_every_object` |
//! | `packets()` is 0 where packets are pulled | `nanoseconds_are_nanoseconds` |
//! | respdiff's times are all 1 | `respdiff_has_times` |
//!
//! What drool's manual promises and it does not do (loops, `add=`) is `gannet replay`'s, whose tests are in
//! `crates/replay`.

#![allow(clippy::unwrap_used)]
#![cfg(feature = "lua")]

mod defects;
mod material;
mod scripts;
