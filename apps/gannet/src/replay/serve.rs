//! The echo server of `gannet replay --serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[cfg(feature = "self-signed")]
use anyhow::Context as _;
#[cfg(feature = "self-signed")]
use gannet_capture::NewFile;
use gannet_replay::Identity;
use gannet_replay::Server;
use gannet_replay::ServerBehaviour;

use crate::out;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

use super::seconds;

/// Options of sending, which an echo server does not use.
const SENDING: [&str; 38] = [
    "files",
    "read",
    "list",
    "to",
    "timing",
    "transport",
    "edns_size",
    "dnssec_ok",
    "client_subnet",
    "no_edns",
    "tsig",
    "idle",
    "queries_per_connection",
    "path",
    "ca",
    "no_verify",
    "tls_name",
    "no_resumption",
    "clients",
    "threads",
    "bind",
    "timeout",
    "retries",
    "in_flight",
    "loops",
    "limit",
    "duration",
    "warm_up",
    "no_answers",
    "ports",
    "filter",
    "interval",
    "svg",
    "no_gso",
    "no_realtime",
    "compare",
    "differences",
    "ignore",
];

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Echo server")]
pub(super) struct Args {
    /// Run an echo server: answer every query with a copy of it
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1,
          default_missing_value = "127.0.0.1:5300",
          conflicts_with_all = SENDING)]
    pub(super) serve: Option<SocketAddr>,
    /// Count queries without answering them
    #[arg(long, requires = "serve", conflicts_with = "to")]
    sink: bool,
    /// Share of queries that are not answered, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "serve", conflicts_with = "to",
          value_parser = share)]
    drop: f64,
    /// Share of queries that get bytes that are not a DNS message
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "serve", conflicts_with = "to",
          value_parser = share)]
    garbage: f64,
    /// Share of queries that get an answer to another question
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "serve", conflicts_with = "to",
          value_parser = share)]
    mismatch: f64,
    /// Share of queries that get their answer twice
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "serve", conflicts_with = "to",
          value_parser = share)]
    double: f64,
    /// Delay of answers in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0", requires = "serve", conflicts_with = "to",
          value_parser = seconds)]
    delay: Duration,
    /// TLS over connections, with a self-signed certificate unless --cert names one
    #[arg(long, requires = "serve", conflicts_with = "to")]
    tls: bool,
    /// HTTPS over connections (HTTP/2, POST to any path), with a certificate as for --tls
    #[arg(long, requires = "serve", conflicts_with_all = ["to", "tls", "double"])]
    https: bool,
    /// QUIC only in datagrams, with a certificate as for --tls
    #[cfg(feature = "quic")]
    #[arg(long, requires = "serve", conflicts_with = "to")]
    quic: bool,
    /// Certificates as PEM, the server's first, for --tls, --https and --quic
    #[arg(long, value_name = "FILE", requires_all = ["serve", "key"], conflicts_with = "to")]
    cert: Option<PathBuf>,
    /// The key of --cert, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Write the self-signed certificate, for --ca
    #[arg(long, value_name = "FILE", requires = "serve", conflicts_with_all = ["cert", "to"])]
    save_cert: Option<PathBuf>,
    /// Response code of answers, 0 to 15
    #[arg(long, value_name = "CODE", default_value_t = 0, requires = "serve", conflicts_with = "to",
          value_parser = clap::value_parser!(u8).range(0..=15))]
    rcode: u8,
    /// Stop after this many queries
    #[arg(long, value_name = "N", requires = "serve", conflicts_with = "to",
          value_parser = clap::value_parser!(u64).range(1..))]
    queries: Option<u64>,
}

/// Serves until it is stopped.
pub(super) fn run(
    at: SocketAddr,
    args: &super::Args,
    terminal: &Terminal,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    if !at.ip().is_loopback() && !args.yes_i_may {
        terminal.error(&format_args!(
            "--serve {at} would answer other hosts; use --yes-i-may to allow it"
        ));
        return Ok(Outcome::NoCapture);
    }
    let serve = &args.serve;
    if serve.drop + serve.garbage + serve.mismatch + serve.double > 1.0 {
        terminal.error(&"the sum of --drop, --garbage, --mismatch and --double exceeds 1");
        return Ok(Outcome::NoCapture);
    }
    let behaviour = ServerBehaviour {
        drop: serve.drop,
        garbage: serve.garbage,
        mismatch: serve.mismatch,
        double: serve.double,
        delay: serve.delay,
        rcode: serve.rcode,
        sink: serve.sink,
        queries: serve.queries,
    };
    let server = match Server::bind(at, behaviour) {
        Ok(server) => server,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::Failed);
        }
    };
    let (server, datagrams, streams) = match secure(server, at, serve)? {
        Some(secured) => secured,
        None => {
            terminal
                .error(&"--cert and --save-cert have no effect without --tls, --https or --quic");
            return Ok(Outcome::NoCapture);
        }
    };
    let address = server.address()?;
    terminal.note(&format_args!(
        "echo server on {address} over {datagrams} and {streams}, until Ctrl-C"
    ));
    let s = match server.run(stop) {
        Ok(served) => served,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::Failed);
        }
    };
    let (first, last) = s.span.unwrap_or_default();
    let seconds = (last - first) as f64 / 1e9;
    let text = if args.json {
        format!(
            "{{\"queries\":{},\"answers\":{},\"dropped\":{},\"spoiled\":{},\"other\":{},\
             \"errors\":{},\"bytes\":{},\"connections\":{},\"seconds\":{seconds}}}\n",
            s.queries, s.answers, s.dropped, s.spoiled, s.other, s.errors, s.bytes, s.connections
        )
    } else {
        format!(
            "{} queries in {seconds:.3} s, {} answers, {} dropped, {} spoiled, {} others, {} errors, \
             {} connections\n",
            s.queries, s.answers, s.dropped, s.spoiled, s.other, s.errors, s.connections
        )
    };
    // A signal is the regular end of a server.
    out::write(text.as_bytes())
}

/// The server with the certificates for its options, and the protocols in its datagrams and streams; `None` if a
/// certificate was given without a use for it.
fn secure(
    server: Server,
    at: SocketAddr,
    serve: &Args,
) -> anyhow::Result<Option<(Server, &'static str, &'static str)>> {
    #[cfg(feature = "quic")]
    let quic = serve.quic;
    #[cfg(not(feature = "quic"))]
    let quic = false;
    if !serve.tls && !serve.https && !quic {
        let is_named = serve.cert.is_some() || serve.save_cert.is_some();
        return Ok((!is_named).then_some((server, "udp", "tcp")));
    }
    let identity = identity(at, serve)?;
    #[cfg(feature = "quic")]
    let server = if quic { server.with_quic(identity.clone()) } else { server };
    let datagrams = if quic { "quic" } else { "udp" };
    let (server, streams) = if serve.https {
        (server.with_https(&identity), "https")
    } else if serve.tls {
        (server.with_tls(identity), "tls")
    } else {
        (server, "tcp")
    };
    Ok(Some((server, datagrams, streams)))
}

/// The certificate and key of the echo server for TLS, HTTPS and QUIC.
fn identity(at: SocketAddr, serve: &Args) -> anyhow::Result<Identity> {
    if let Some((certificate, key)) = serve.cert.as_ref().zip(serve.key.as_ref()) {
        return Ok(Identity::from_files(certificate, key)?);
    }
    self_made(at, serve)
}

#[cfg(not(feature = "self-signed"))]
fn self_made(_: SocketAddr, _: &Args) -> anyhow::Result<Identity> {
    anyhow::bail!(
        "a self-signed certificate requires the feature self-signed, which this build lacks; \
         --cert and --key name files"
    )
}

#[cfg(feature = "self-signed")]
fn self_made(at: SocketAddr, serve: &Args) -> anyhow::Result<Identity> {
    let identity = Identity::self_signed(vec![at.ip().to_string(), "localhost".to_owned()])?;
    if let Some(path) = &serve.save_cert {
        NewFile::write(path, identity.pem().as_bytes())
            .with_context(|| path.display().to_string())?;
    }
    Ok(identity)
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().map_err(|e| e.to_string())?;
    (0.0..=1.0)
        .contains(&share)
        .then_some(share)
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
