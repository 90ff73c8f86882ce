//! Packet processing in Lua with native pipeline stages.
//!
//! ```text
//! script ──require("gannet")──▶ lua/gannet.lua ─┐
//! script ──require("dnsjit.…")─▶ lua/dnsjit/* ──┴─ FFI ──▶ api ──▶ capture, filter, wire, pipeline
//! ```
//!
//! [`run()`] loads a script into LuaJIT. Modules that it requires are Lua sources inside of the
//! program; they call native code through LuaJIT's FFI: a table of C functions ([`mod@api`]) whose
//! address is passed at the start. Such calls compile into the traces of the JIT, never raise Lua
//! errors and never unwind; they return errors, and the Lua side raises them with a trace-back.
//!
//! Calls pass batches, not packets: a call fills an array of records, and a callback receives a
//! view over a record. A view stores its packet's number and raises an error after the packet is
//! replaced by the next.
//!
//! In the sandbox a script has neither `io` nor `os` nor `ffi` and cannot load bytecode or native
//! code; the modules keep their own reference to the FFI.

mod api;
mod manual;
mod memory;
mod script;
mod stop;

pub use gannet_pipeline::worker_pool::Progress;
pub use manual::manual;
pub use script::Error;
pub use script::Options;
pub use script::Report;
pub use script::run;
pub use stop::reads_pipe;
pub use stop::stop_writing;
