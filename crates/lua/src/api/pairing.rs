//! The common fields of a query and its response, as a fingerprint.

use gannet_pipeline::extract::Message;
use gannet_pipeline::extract::Transport;
use gannet_pipeline::fingerprint::Fingerprint;
use gannet_pipeline::fingerprint::Fingerprints;
use gannet_pipeline::question::Question;
use gannet_wire::protocol;

use super::dns;
use super::latency::Sent;
use super::record::Record;

/// Computes fingerprints; clones compute the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairing {
    fingerprints: Fingerprints,
    words: Vec<u64>,
}

/// Endpoints and transport of a message.
struct Endpoints {
    from: ([u8; 16], u16),
    to: ([u8; 16], u16),
    proto: u8,
}

impl Pairing {
    /// The time of a message, and its fingerprint.
    #[inline]
    pub(crate) fn sent(&mut self, number: u64, m: &Message<'_>) -> Sent {
        let proto = match m.transport {
            Transport::Udp => protocol::UDP,
            Transport::Tcp => protocol::TCP,
        };
        let (from, to) = (m.source, m.destination);
        let endpoints =
            Endpoints { from: (from.0.octets(), from.1), to: (to.0.octets(), to.1), proto };
        let key = self.key(&endpoints, m.bytes);
        Sent { time: m.time.as_nanos(), number, key, is_response: !m.is_query() }
    }

    /// The fingerprint of a message, equal for a query and its response.
    pub(crate) fn for_record(&mut self, r: &Record, message: &[u8]) -> Fingerprint {
        let endpoints = Endpoints { from: (r.src, r.sport), to: (r.dst, r.dport), proto: r.proto };
        self.key(&endpoints, message)
    }

    #[inline]
    fn key(&mut self, endpoints: &Endpoints, message: &[u8]) -> Fingerprint {
        let header = |at| u64::from(dns::u16_at(message, at).unwrap_or(0));
        let is_response = header(2) & 0x8000 != 0;
        let (client, server) = if is_response {
            (&endpoints.to, &endpoints.from)
        } else {
            (&endpoints.from, &endpoints.to)
        };
        let [a, b] = [client.0, server.0].map(u128::from_be_bytes);
        let asked = Question::of(message);
        let kind = asked.map_or(0, |q| u64::from(q.qtype) << 16 | u64::from(q.qclass));
        let ports = u64::from(client.1) << 16 | u64::from(server.1);
        self.words.clear();
        self.words.extend_from_slice(&[
            (a >> 64) as u64,
            a as u64,
            (b >> 64) as u64,
            b as u64,
            ports << 32 | header(0) << 16 | u64::from(endpoints.proto),
            u64::from(asked.is_some()) << 32 | kind,
        ]);
        if let Some(question) = asked {
            question.push_name(message, &mut self.words);
        }
        self.fingerprints.of(&self.words)
    }
}
