//! FTP: RFC 959, with EPRT and EPSV (RFC 2428), AUTH TLS (RFC 4217) and ADAT (RFC 2228).
//!
//! The control connection is a Telnet terminal: `Terminal` splits it into lines, [`Request`] and
//! [`Reply`] parse them, and `Session` matches replies with commands and writes a [`FtpRow`] for
//! each command about files. PORT, PASV, EPRT and EPSV announce a data connection: it is stored in
//! [`Shared`] and among the expected connections of [`Env`](crate::Env), and [`Data`] is started on
//! it. Its content is a file, whose name and type reach the control connection's row through
//! [`Shared`].

mod analyzer;
mod commands;
pub(crate) mod data;
pub mod events;
mod message;
mod nvt;
mod paths;
mod rows;
mod security;
mod session;
mod shared;

pub use analyzer::Analyzer;
pub use data::Data;
pub use message::Endpoint;
pub use message::Reply;
pub use message::Request;
pub use rows::FtpRow;
pub use shared::Shared;
pub use shared::Transfer;
