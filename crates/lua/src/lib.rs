//! Packet processing in Lua, at the speed of the stages below.
//!
//! ```text
//! script ──require("gannet")──▶ lua/gannet.lua ─┐
//! script ──require("dnsjit.…")─▶ lua/dnsjit/* ──┴─ FFI ──▶ api ──▶ capture, filter, wire, pipeline
//! ```
//!
//! [`run()`] loads a script into LuaJIT. Modules that it requires are Lua sources inside of the
//! program; what they cannot do well in Lua they call through LuaJIT's FFI: a table of C functions
//! ([`mod@api`]) whose address is given to them at the start. Such calls compile into the traces of
//! the JIT, they never raise Lua errors and never unwind; what goes wrong they return, and the Lua
//! side turns it into an error with a trace-back.
//!
//! Batches cross the border, not packets: a call fills an array of records, and a view over a
//! record is all that a callback gets. A view knows its packet's number and refuses to speak when
//! the packet is gone.
//!
//! In the sandbox a script has neither `io` nor `os` nor `ffi` nor a way to load code that is not
//! text; the modules keep their own reference to the FFI.

mod api;
mod manual;
mod script;

pub use gannet_pipeline::worker_pool::Progress;
pub use manual::manual;
pub use script::Error;
pub use script::Options;
pub use script::Report;
pub use script::run;
