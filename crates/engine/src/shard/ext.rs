//! What the engine keeps of a connection, next to what the flow table does.

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_flow::Conn;
use gannet_flow::Services;
use gannet_flow::Table;
use gannet_protocols::Session;
use gannet_protocols::Stack;
use gannet_protocols::Tag;
use gannet_protocols::packet::events::ConnBytesThresholdCrossed;
use gannet_protocols::packet::events::ConnDurationThresholdCrossed;
use gannet_protocols::packet::events::ConnGenericPacketThresholdCrossed;
use gannet_protocols::packet::events::ConnPacketsThresholdCrossed;

use crate::tunnels::Encapsulation;

/// The engine's data of a connection.
#[derive(Default)]
pub(crate) struct Ext {
    pub(crate) stack: Stack,
    pub(super) rare: Option<Box<RareFacts>>,
}

/// Data that few connections have.
#[derive(Default)]
pub(crate) struct RareFacts {
    /// The encapsulation of its last packet, and how often it changed.
    pub(super) encapsulation: (Encapsulation, u8),
    /// Tunnel protocols that had a violation on it.
    pub(crate) tunnels_failed: Services,
    /// Whether the event of a connection that may carry GTP was raised.
    pub(crate) has_gtp_state: bool,
    /// Bad UDP checksums of each side.
    pub(crate) bad_checksums: [u32; 2],
    /// Whether it is a tunnel from which packets were extracted.
    pub(crate) carries: bool,
    /// Bits of the sides that sent valid Teredo.
    pub(crate) tunnel_sides: u8,
    /// Sizes that listeners want to know of.
    pub(crate) thresholds: Option<Box<Thresholds>>,
    /// No threshold of its sizes is reported: a script removed what counts them.
    pub(crate) uncounted: bool,
    /// Scripts look at it again: each of its packets is reported.
    pub(crate) watched: bool,
    /// Its packets are ignored from now on.
    pub(crate) skip: bool,
}

// There may be millions; most consist of a slot only.
const _: () = assert!(Table::<Ext>::SLOT_BYTES <= 192);

impl Ext {
    /// Whether no rare data is set.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.rare.is_none()
    }

    pub(crate) fn rare(&mut self) -> &mut RareFacts {
        self.rare.get_or_insert_default()
    }

    /// Whether a tunnel protocol had a violation on it.
    pub(crate) fn tunnel_failed(&self, tag: Tag) -> bool {
        self.rare.as_ref().is_some_and(|r| r.tunnels_failed.contains(tag as u8))
    }
}

/// Sizes of a connection that a listener wants to know of, each reported once. 0: none.
#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    pub(super) bytes: [u64; 2],
    pub(super) packets: [u64; 2],
    pub(super) duration: Interval,
    /// Of both sides together, and how many of the thresholds of all connections are behind.
    pub(super) both: (u64, usize),
}

impl Thresholds {
    /// The next of the thresholds of all connections.
    pub(super) fn next_of_both(&mut self, all: &[u64]) {
        let (next, behind) = &mut self.both;
        *next = all.get(*behind).copied().unwrap_or(0);
        *behind += 1;
    }
}

impl Thresholds {
    pub(super) fn check(
        &mut self,
        session: &mut Session<'_>,
        conn: &Conn,
        from: Dir,
        duration: Interval,
        all: &[u64],
    ) {
        let (threshold, _) = self.both;
        let packets = || [Dir::Orig, Dir::Resp].map(|side| u64::from(conn.sent(side).packets));
        if threshold > 0 && packets().iter().sum::<u64>() >= threshold {
            session.raise(conn, |c| ConnGenericPacketThresholdCrossed { c, threshold });
            self.next_of_both(all);
        }
        let (side, is_orig) = (from.index(), from.is_orig());
        let sent = conn.sent(from);
        if self.bytes[side] > 0 && sent.ip_bytes >= self.bytes[side] {
            let threshold = std::mem::take(&mut self.bytes[side]);
            session.raise(conn, |c| ConnBytesThresholdCrossed { c, threshold, is_orig });
        }
        if self.packets[side] > 0 && u64::from(sent.packets) >= self.packets[side] {
            let threshold = std::mem::take(&mut self.packets[side]);
            session.raise(conn, |c| ConnPacketsThresholdCrossed { c, threshold, is_orig });
        }
        if self.duration > Interval::ZERO && duration > self.duration {
            let threshold = std::mem::replace(&mut self.duration, Interval::ZERO);
            session.raise(conn, |c| ConnDurationThresholdCrossed { c, threshold, is_orig });
        }
    }
}
