//! Transports of queries, and the lifetime of connections.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The transport of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// DNS over UDP.
    #[default]
    Udp,
    /// DNS over TCP, with many queries in flight on each connection (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS with HTTP/2, one request per query (RFC 8484).
    Https,
    /// DNS over QUIC, one stream per query (RFC 9250).
    #[cfg(feature = "quic")]
    Quic,
}

impl Transport {
    /// Default port of servers (RFC 1035 §4.2, RFC 7858 §3.1, RFC 9110 §4.2.2, RFC 9250 §4.1.1).
    pub fn port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls => 853,
            Self::Https => 443,
            #[cfg(feature = "quic")]
            Self::Quic => 853,
        }
    }

    /// Whether connections are encrypted.
    pub fn is_secure(self) -> bool {
        !matches!(self, Self::Udp | Self::Tcp)
    }

    /// Whether clients have connections.
    pub fn is_stream(self) -> bool {
        self != Self::Udp
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Https => "https",
            #[cfg(feature = "quic")]
            Self::Quic => "quic",
        })
    }
}

/// Note about transports that are not in this build.
const WITHOUT: &str =
    if cfg!(feature = "quic") { "" } else { " (this build lacks the feature quic)" };

/// The error for a text that is not a transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a transport; use udp, tcp, tls, https or quic{without}", without = WITHOUT)]
pub struct TransportError(String);

impl FromStr for Transport {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        match text {
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            "tls" => Ok(Self::Tls),
            "https" => Ok(Self::Https),
            #[cfg(feature = "quic")]
            "quic" => Ok(Self::Quic),
            _ => Err(TransportError(text.to_owned())),
        }
    }
}

/// When a client closes a connection by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// After this time without a query that waits for its answer.
    pub idle: Duration,
    /// After the answers to this many queries; the next query uses another connection at once.
    pub queries: Option<u32>,
    /// Whether a client resumes its last TLS session when it connects again.
    pub resumption: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { idle: Duration::from_secs(10), queries: None, resumption: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_have_names() {
        for transport in [Transport::Udp, Transport::Tcp, Transport::Tls, Transport::Https] {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        let error = "smoke".parse::<Transport>().unwrap_err();
        assert!(error.to_string().starts_with("'smoke' is not a transport"));
    }
}
