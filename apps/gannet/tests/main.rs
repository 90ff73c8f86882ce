//! Tests that run the command, in one program: each file is a module, `cargo test --package gannet --test main zeek::` runs
//! one. `live` and `signals` are programs of their own: they wait for events, which take longer while other tests run.

mod architecture;
mod columns;
mod command;
#[path = "dnsjit/main.rs"]
mod dnsjit;
mod events;
mod extract;
mod filter;
mod golden;
mod habits;
mod index;
mod info;
mod left_out;
mod libpcap;
mod limits;
mod packets;
mod replay;
mod run;
mod sandbox;
mod script;
mod sql;
mod support;
mod tshark;
mod zeek;
mod zeek_options;
mod zeek_traffic;
