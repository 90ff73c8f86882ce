use std::sync::Arc;

use gannet_base::Subnet;
use gannet_files::Extract;
use gannet_filter::Filter;
use gannet_protocols::policy::Assets;

use crate::Limits;
use crate::notes::Births;
use crate::notes::PacketIndex;
use crate::state::Memory;
use crate::state::State;

/// Options of an analysis.
#[derive(Clone, Default)]
pub struct Options {
    /// Do not verify checksums (`-C`).
    pub ignore_checksums: bool,
    /// Analyse only packets that match.
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
    /// Hash the contents of all files, not only of those whose hashes other logs need.
    pub hash_files: bool,
    /// Receives the contents of files.
    pub extract: Option<Arc<dyn Extract>>,
    /// Parse the protocols within LDAP and PostgreSQL: logins by Kerberos and NTLM, and TLS.
    pub inner_protocols: bool,
    /// Number of shards, each with a thread; 0 or 1 analyses in the caller's thread. The logs are
    /// the same.
    pub threads: usize,
    /// The limits.
    pub limits: Limits,
    /// Receives the packets of each connection.
    pub index: Option<Arc<dyn PacketIndex>>,
    /// No analyzer starts but those that a listener asks for.
    pub scripted: bool,
    /// At the end of input connections are removed in the order of their ends, lower address first, and not in
    /// the order of their beginnings.
    pub in_key_order: bool,
    /// Learns of connections when they begin.
    pub births: Option<Arc<dyn Births>>,
    /// Returns the bytes in use, for the limit of the whole state. Without it that limit does not
    /// apply.
    pub memory: Option<Memory>,
}

/// Statistics of a run, for the final table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the filter rejected.
    pub filtered: u64,
    /// Connections seen.
    pub connections: u64,
    /// The largest amounts of state, and what was evicted.
    pub state: State,
}

/// One in this many, of packets or of connections.
const MANY_WRONG: u64 = 20;

impl Statistics {
    /// The warning if more than one in twenty packets, or than one for twenty connections, was discarded for its checksum: the
    /// capture was probably made before a network card filled these in.
    #[must_use]
    pub fn checksum_warning(&self) -> Option<String> {
        let (wrong, all) = (self.state.wrong_checksums, self.packets.saturating_sub(self.filtered));
        let are_many = wrong.saturating_mul(MANY_WRONG) > all.min(self.connections);
        (wrong > 0 && are_many).then(|| {
            format!(
                "{wrong} of {all} packets have a wrong checksum and were discarded; where the capturing host sent them, its \
                 network card fills in checksums later: -C analyses them all the same"
            )
        })
    }
}
