//! Puts the stages together: packets in, rows out.
//!
//! [`Engine`] takes batches of packets. Its shard walks each packet through the layers (link, IP,
//! fragments, tunnels, transport), finds the connection, drives its TCP state and its analyzers,
//! and writes the rows of connections that end. Time is packet time: timers fire when they are
//! due, before the first packet that is not older, so that the rows do not depend on how packets
//! were batched.

mod community_id;
mod conn_log;
mod glance;
mod options;
mod shard;
#[cfg(test)]
mod tests;
mod tunnels;
mod walk;
mod walk_tunnel;

use std::io;

use gannet_capture::Batch;
use gannet_filter::Filter;
use gannet_log::StreamCount;

pub use gannet_protocols::policy::Assets;
pub use options::Options;
pub use options::Statistics;

use shard::Shard;

/// The schemas of all logs that an analysis can make, by name.
pub fn schemas() -> Vec<gannet_log::Schema> {
    let mut all = vec![gannet_log::Schema::of::<conn_log::ConnRow<'_>>()];
    all.extend(gannet_files::schemas());
    all.extend(gannet_protocols::schemas());
    all.sort_by_key(|s| s.path);
    all
}

/// The analysis of one stream of packets.
pub struct Engine {
    shard: Shard,
    filter: Option<Filter>,
    statistics: Statistics,
}

impl Engine {
    /// A fresh analysis.
    pub fn new(options: Options) -> Self {
        Self {
            filter: options.filter.clone(),
            shard: Shard::new(options),
            statistics: Statistics::default(),
        }
    }

    /// The next packets.
    ///
    /// # Errors
    /// When a log could not be written.
    pub fn batch(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        let mut coming = batch.iter().skip(glance::AHEAD);
        for packet in batch.iter() {
            if let Some(key) = coming.next().and_then(|p| glance::key(&p)) {
                self.shard.expect_soon(&key);
            }
            self.statistics.packets += 1;
            self.statistics.bytes += u64::from(packet.wire_len);
            let passes = |f: &Filter| f.matches(packet.link_type.0, packet.data, packet.wire_len);
            if self.filter.as_ref().is_none_or(passes) {
                self.shard.packet(&packet);
            } else {
                self.statistics.filtered += 1;
            }
        }
        self.shard.check()
    }

    /// The end of input: every connection still open is logged, and the logs are closed. Returns
    /// what was done.
    ///
    /// # Errors
    /// When a log could not be written.
    pub fn finish(mut self) -> io::Result<(Statistics, Vec<StreamCount>)> {
        let counts = self.shard.finish()?;
        self.statistics.connections = self.shard.connections();
        Ok((self.statistics, counts))
    }
}
