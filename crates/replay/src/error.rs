//! Errors of a replay.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error that stops a replay.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A capture could not be opened or read.
    #[error(transparent)]
    Capture(#[from] gannet_capture::Error),
    /// A list of queries could not be read.
    #[error("{}: {error}", path.display())]
    List {
        /// The list.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The input has no query to send.
    #[error("{input}: no DNS queries found{}{}", detail(*.is_list, *.packets, *.responses, *.other), after(.first))]
    NoQueries {
        /// The path that was read.
        input: String,
        /// Whether the input is a list and not captures.
        is_list: bool,
        /// Number of packets or lines read.
        packets: u64,
        /// Number of responses among them.
        responses: u64,
        /// Number of lines or messages that are not queries.
        other: u64,
        /// The error of the first bad line, with its line number.
        first: Option<String>,
    },
    /// A client socket could not be created.
    #[error("cannot open a client socket{} to {to}: {error}", from(.local))]
    Socket {
        /// The requested source address.
        local: Option<SocketAddr>,
        /// The server.
        to: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// TLS could not be set up.
    #[error("tls: {0}")]
    Tls(String),
    /// The echo server could not listen.
    #[error("cannot listen on {at}: {error}")]
    Listen {
        /// Address to listen on.
        at: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// A system call failed that should always succeed.
    #[error("{what}: {error}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The cause.
        error: io::Error,
    },
}

fn detail(is_list: bool, items: u64, responses: u64, other: u64) -> String {
    match (is_list, items, other) {
        (_, 0, 0) => String::new(),
        (true, ..) => format!(" ({items} lines, {other} of them not queries)"),
        (false, ..) => {
            format!(" ({items} packets, {responses} responses, {other} of them not queries)")
        }
    }
}

fn after(first: &Option<String>) -> String {
    first.as_ref().map_or_else(String::new, |first| format!("; {first}"))
}

fn from(local: &Option<SocketAddr>) -> String {
    local.map_or_else(String::new, |l| format!(" from {}", l.ip()))
}
