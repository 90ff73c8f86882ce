use std::sync::Arc;

use gannet_base::Subnet;
use gannet_files::Extract;
use gannet_filter::Filter;
use gannet_protocols::policy::Assets;

use crate::Limits;
use crate::notes::PacketIndex;
use crate::state::Memory;
use crate::state::State;

/// What the analysis is told to do.
#[derive(Clone, Default)]
pub struct Options {
    /// Do not verify checksums (`-C`).
    pub ignore_checksums: bool,
    /// Only packets that match are analysed.
    pub filter: Option<Filter>,
    /// Where and how logs are written.
    pub logs: gannet_log::Options,
    /// Networks that count as local, instead of the private ones.
    pub local_nets: Option<Vec<Subnet>>,
    /// Hosts that logs of what is in a network are about.
    pub assets: Assets,
    /// Seed of Community IDs.
    pub community_seed: u16,
    /// Seed of uids.
    pub seed: u64,
    /// Hash the contents of all files, not only of those whose hashes other logs need.
    pub hash_files: bool,
    /// Takes the contents of files.
    pub extract: Option<Arc<dyn Extract>>,
    /// Follow what LDAP and PostgreSQL carry: logins by Kerberos and NTLM, and TLS.
    pub inner_protocols: bool,
    /// Parts that pairs of hosts are dealt to, each with a thread; none or one analyses in the
    /// caller's thread. The logs are the same.
    pub threads: usize,
    /// How much may be kept.
    pub limits: Limits,
    /// Takes which packets belong to which connections.
    pub index: Option<Arc<dyn PacketIndex>>,
    /// No analyzer starts but those that a listener asks for.
    pub scripted: bool,
    /// Says how many bytes are in use, for the limit of all state. Without it that one is not kept.
    pub memory: Option<Memory>,
}

/// What was done, for the table at the end of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the filter held back.
    pub filtered: u64,
    /// Connections seen.
    pub connections: u64,
    /// What was kept at the most, and what was given up.
    pub state: State,
}
