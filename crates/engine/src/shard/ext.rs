//! The engine's data of a connection, stored in the slot of the flow table.

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
    /// The encapsulation of the last packet, and the number of changes.
    pub(super) encapsulation: (Encapsulation, u8),
    /// Tunnel protocols that had a violation on the connection.
    pub(crate) tunnels_failed: Services,
    /// Whether the event of a connection that may carry GTP was raised.
    pub(crate) has_gtp_state: bool,
    /// Number of bad UDP checksums of each side.
    pub(crate) bad_checksums: [u32; 2],
    /// Whether packets were extracted from the connection, a tunnel.
    pub(crate) carries: bool,
    /// Bit set of the sides that sent valid Teredo packets.
    pub(crate) tunnel_sides: u8,
    /// Thresholds that listeners have set.
    pub(crate) thresholds: Option<Box<Thresholds>>,
    /// Whether no size threshold is reported, because a script removed the analyzer that counts.
    pub(crate) uncounted: bool,
    /// Whether a script looked up the connection: each of its packets is reported.
    pub(crate) watched: bool,
    /// Whether further packets of the connection are ignored.
    pub(crate) skip: bool,
}

// There may be millions of connections, most of which use only their slot.
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

    /// Whether a tunnel protocol had a violation on the connection.
    pub(crate) fn tunnel_failed(&self, tag: Tag) -> bool {
        self.rare.as_ref().is_some_and(|r| r.tunnels_failed.contains(tag as u8))
    }
}

/// Thresholds of a connection that a listener has set; each is reported once. 0 means none.
#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    pub(super) bytes: [u64; 2],
    pub(super) packets: [u64; 2],
    pub(super) duration: Interval,
    /// Packets of both sides together, and the number of common thresholds that were crossed.
    pub(super) both: (u64, usize),
}

impl Thresholds {
    /// Sets the next of the thresholds that apply to all connections.
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
