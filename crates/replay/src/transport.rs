//! What carries queries, and how long a connection is kept.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What carries queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    #[default]
    Udp,
    /// Streams, with many queries in flight on each (RFC 7766).
    Tcp,
}

impl Transport {
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
        })
    }
}

/// Why a text is no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no transport: udp and tcp are")]
pub struct TransportError(String);

impl FromStr for Transport {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        match text {
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            _ => Err(TransportError(text.to_owned())),
        }
    }
}

/// When a client closes a connection by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// After so long without a query that waits on it.
    pub idle: Duration,
    /// After the answers to so many queries; the next query goes over another connection at once.
    pub queries: Option<u32>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { idle: Duration::from_secs(10), queries: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_have_names() {
        for transport in [Transport::Udp, Transport::Tcp] {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        let error = "smoke".parse::<Transport>().unwrap_err();
        assert!(error.to_string().starts_with("'smoke' is no transport"));
    }
}
