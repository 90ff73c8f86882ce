//! DCE-RPC ([C706], [MS-RPCE]), over TCP and over SMB's named pipes.
//!
//! A client binds numbered contexts to interfaces and then calls their operations by number.
//! [`message`] reads packets; a [`Stream`] puts them together from the bytes of one TCP connection
//! or pipe, and gives logins to GSSAPI and NTLM; [`Calls`] joins requests with responses into rows
//! of dce_rpc.log, for all pipes of a connection. [`Analyzer`] is the analyzer of a TCP connection.
//!
//! [C706]: https://pubs.opengroup.org/onlinepubs/9629399/
//! [MS-RPCE]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-rpce

mod analyzer;
pub mod events;
pub mod message;
mod rows;
mod stream;
mod tables;

pub use analyzer::Analyzer;
pub use rows::Calls;
pub use rows::DceRpcRow;
pub use stream::Stream;
