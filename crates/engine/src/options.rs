use std::sync::Arc;

use gannet_base::Subnet;
use gannet_files::Extract;
use gannet_filter::Filter;
use gannet_protocols::policy::Assets;

use crate::Limits;
use crate::index_reporter::ConnectionObserver;
use crate::index_reporter::PacketIndex;
use crate::state::Memory;
use crate::state::State;

/// Options of an analysis.
#[derive(Clone, Default)]
pub struct Options {
    /// Whether to skip the verification of checksums (`-C`).
    pub ignore_checksums: bool,
    /// Analyzes only packets that match.
    pub filter: Option<Filter>,
    /// Where and how logs are written.
    pub logs: gannet_log::Options,
    /// Networks that count as local, instead of the private networks.
    pub local_nets: Option<Vec<Subnet>>,
    /// The hosts that asset logs (`known_hosts` and so on) include.
    pub assets: Assets,
    /// Seed of Community IDs.
    pub community_seed: u16,
    /// Seed of uids.
    pub seed: u64,
    /// Whether to hash the contents of all files, not only of those whose hashes other logs need.
    pub hash_files: bool,
    /// Receives the contents of files.
    pub extract: Option<Arc<dyn Extract>>,
    /// Whether to parse the protocols inside LDAP and PostgreSQL: logins by Kerberos and NTLM, and
    /// TLS.
    pub inner_protocols: bool,
    /// Number of shards, each with a thread; 0 or 1 analyzes in the caller's thread. The logs do
    /// not depend on it.
    pub threads: usize,
    /// Limits of state.
    pub limits: Limits,
    /// Receives the packets of each connection.
    pub index: Option<Arc<dyn PacketIndex>>,
    /// Whether analyzers start only if a listener requests them.
    pub scripted: bool,
    /// Whether connections that are open at the end of input are removed in the order of their
    /// endpoints, lower address first, instead of in the order of creation.
    pub in_key_order: bool,
    /// Receives the start of each connection.
    pub connection_observer: Option<Arc<dyn ConnectionObserver>>,
    /// Returns the number of bytes in use, for the limit of the total state. Without it that limit
    /// does not apply.
    pub memory: Option<Memory>,
}

/// Statistics of an analysis, for the final report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Packets read.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
    /// Packets that the filter rejected.
    pub filtered: u64,
    /// Connections seen.
    pub connections: u64,
    /// Maxima of state, and what was evicted.
    pub state: State,
}

/// A warning is issued if more than one in this number of packets or connections has a wrong
/// checksum.
const WRONG_CHECKSUM_RATIO: u64 = 20;

impl Statistics {
    /// The warning for more than one discarded packet in twenty, or more than one for each twenty
    /// connections, because of wrong checksums: the capture was probably made before a network card
    /// computed them.
    #[must_use]
    pub fn checksum_warning(&self) -> Option<String> {
        let (wrong, all) = (self.state.wrong_checksums, self.packets.saturating_sub(self.filtered));
        let are_many = wrong.saturating_mul(WRONG_CHECKSUM_RATIO) > all.min(self.connections);
        (wrong > 0 && are_many).then(|| {
            format!(
                "{wrong} of {all} packets have a wrong checksum and were discarded; where the capturing host sent them, its \
                 network card fills in checksums later: -C analyses them all the same"
            )
        })
    }
}
