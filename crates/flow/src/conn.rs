use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;

use crate::History;

/// What one side of a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that passed the header and checksum checks.
    pub packets: u64,
    /// Bytes of their IP packets, headers included.
    pub ip_bytes: u64,
    /// Payload bytes: UDP and ICMP by their length fields, TCP by sequence numbers.
    pub payload: u64,
}

/// The facts of a connection that every stage may read: who, when, how much.
///
/// Transport state (sequence numbers, reassembly) lives beside it in the table;
/// protocol state lives with the analyzers.
#[derive(Clone, Debug)]
pub struct Conn {
    /// Its name in the logs.
    pub uid: Uid,
    /// Originator and responder as known now; a flip exchanges them.
    pub id: ConnId,
    /// Transport.
    pub proto: Proto,
    /// IP protocol number.
    pub ip_proto: u8,
    /// Bits for letters that were seen once a side or once a connection.
    pub seen: u32,
    /// Time of the first packet.
    pub start: Time,
    /// Time of the last packet that counted.
    pub last: Time,
    /// Idle time after which it is removed.
    pub timeout: Interval,
    /// What each side sent, by [`Dir::index`].
    pub sent: [Counts; 2],
    /// Bytes that were never seen, from gaps in TCP streams.
    pub missed_bytes: u64,
    /// What happened.
    pub history: History,
    /// Uids of the tunnels that carried it, in the order seen. Mostly empty.
    pub tunnel_parents: Vec<Uid>,
    /// Confirmed protocols, in order of confirmation: indices of `protocols::Tag`.
    pub services: Vec<u8>,
    /// Protocols that were confirmed and failed later.
    pub failed: Vec<u8>,
    /// How often it was flipped.
    pub flips: u32,
}

impl Conn {
    /// A connection that its first packet just started.
    pub fn new(uid: Uid, id: ConnId, proto: Proto, ip_proto: u8, start: Time) -> Self {
        Self {
            uid,
            id,
            proto,
            ip_proto,
            seen: 0,
            start,
            last: start,
            timeout: Interval::from_secs(60),
            sent: [Counts::default(); 2],
            missed_bytes: 0,
            history: History::default(),
            tunnel_parents: Vec::new(),
            services: Vec::new(),
            failed: Vec::new(),
            flips: 0,
        }
    }

    /// Notes a letter of the history in the case of its side.
    #[inline]
    pub fn note(&mut self, from: Dir, letter: u8) {
        self.history.push(match from {
            Dir::Orig => letter,
            Dir::Resp => letter.to_ascii_lowercase(),
        });
    }

    /// Exchanges originator and responder.
    pub fn flip(&mut self) {
        self.id = self.id.flipped();
        self.sent.swap(0, 1);
        // Once-a-side bits live in two halves of sixteen.
        self.seen = self.seen.rotate_left(16);
        self.flips += 1;
        self.history.push(b'^');
    }

    /// Payload bytes of both sides.
    pub fn payload(&self) -> u64 {
        self.sent[0].payload.saturating_add(self.sent[1].payload)
    }
}
