//! The limits of an analysis, by name.

use gannet_flow::FragmentLimits;
use gannet_flow::tcp;
use gannet_protocols::Pending;
use gannet_protocols::descriptor;

/// One limit of [`Limits`].
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Its name, as in `--limit NAME=VALUE`.
    pub name: &'static str,
    /// Whether it counts bytes.
    pub bytes: bool,
    /// The default; [`u64::MAX`] means unlimited.
    pub default: u64,
    /// Minimum accepted value.
    pub min: u64,
    /// Maximum accepted value; [`u64::MAX`] if the limit may be unlimited.
    pub max: u64,
    /// What is limited, and what happens beyond the limit.
    pub description: &'static str,
    /// The weird or the line of the statistics that reports that the limit was reached.
    pub reported_by: &'static str,
}

impl Limit {
    /// Whether the value is in the accepted range.
    pub fn accepts(&self, value: u64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// The accepted range, in words.
    pub fn range(&self) -> String {
        match self.max {
            NONE if self.bytes && self.min > 0 && self.min.is_multiple_of(1 << 20) => {
                format!("{}M or more", self.min >> 20)
            }
            NONE => format!("{} or more", self.min),
            max => format!("{} to {max}", self.min),
        }
    }
}

const NONE: u64 = u64::MAX;

/// Minimum of the state limit, in bytes. An analysis without connections uses a good part of it:
/// with less, each connection would be evicted after its first packet.
const STATE: u64 = 1 << 20;

const TUNNELS: u64 = gannet_wire::MAX_TUNNEL_DEPTH as u64;

macro_rules! limits {
    ($($field:ident: $name:literal, $bytes:literal, $default:expr, $range:expr, $reported_by:literal, $what:literal;)*) => {
        /// The limits of an analysis.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $(#[doc = $what] pub $field: u64,)*
            /// Limits of pending data of one connection, by protocol.
            pub pending: Pending,
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)* pending: Pending::default() }
            }
        }

        /// Limits that apply to all protocols.
        const COMMON: &[Limit] = &[$(Limit {
            name: $name, bytes: $bytes, default: $default, min: *$range.start(), max: *$range.end(),
            description: $what, reported_by: $reported_by,
        }),*];

        impl Limits {
            /// The value for "unlimited".
            pub const NONE: u64 = NONE;

            /// All limits; those declared by protocols come last.
            pub fn all() -> impl Iterator<Item = Limit> {
                let of_protocol = |limit: &'static descriptor::Limit| Limit {
                    name: limit.name,
                    bytes: false,
                    default: limit.default as u64,
                    min: 1,
                    max: NONE,
                    description: limit.what,
                    reported_by: limit.reported_by,
                };
                COMMON.iter().copied().chain(Pending::limits().map(move |(_, l)| of_protocol(l)))
            }

            /// Sets the limit with this name; returns whether it exists and
            /// [accepts](Limit::accepts) the value.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                if !Self::all().any(|limit| limit.name == name && limit.accepts(value)) {
                    return false;
                }
                match name {
                    $($name => self.$field = value,)*
                    _ => match Pending::limits().find(|(_, limit)| limit.name == name) {
                        Some((tag, _)) => self.pending.set(tag, size(value)),
                        None => return false,
                    },
                }
                true
            }
        }
    };
}

limits! {
    state: "state", true, NONE, STATE..=NONE, "state_limit_reached",
        "Memory of the whole analysis; above it, the least valuable connections end early.";
    connections: "connections", false, NONE, 1..=NONE, "connections_limit_reached",
        "Live connections; beyond, the least valuable end early.";
    reassembly: "reassembly", true, 256 << 20, 0..=NONE, "reassembly_limit_reached",
        "Data above missing data, and for `rexmit_inconsistency` unacknowledged data, of all connections between two hosts; beyond, the oldest is given up.";
    reassembly_stream: "reassembly-stream", true, 10 << 20, 0..=NONE, "excessive_data_without_further_acks",
        "Data of one direction that the other side did not acknowledge; beyond, the stream is given up.";
    reassembly_hole: "reassembly-hole", true, 16 << 10, 0..=NONE, "above_hole_data_without_any_acks",
        "Data above a hole while nothing is acknowledged; beyond, the stream is given up.";
    fragments: "fragments", true, 64 << 20, 0..=NONE, "fragments given up",
        "Fragments of incomplete IP datagrams; beyond, the oldest datagram is dropped.";
    datagrams: "datagrams", false, 65_536, 0..=NONE, "fragments given up",
        "Incomplete IP datagrams; beyond, the oldest is dropped.";
    files: "files", false, 1_000_000, 1..=NONE, "files_limit_reached",
        "Open files between two hosts; beyond, the oldest ends like one that timed out.";
    tunnel_depth: "tunnel-depth", false, TUNNELS, 0..=TUNNELS, "exceeded_tunnel_max_depth",
        "Nested tunnels, up to 4; deeper ones are not analysed.";
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

impl Limits {
    pub(crate) fn streams(&self) -> tcp::Limits {
        tcp::Limits {
            above_hole_without_acks: self.reassembly_hole,
            without_further_acks: self.reassembly_stream,
            ..tcp::Limits::default()
        }
    }

    /// Limits of buffered fragments: at most a fraction of the state limit.
    pub(crate) fn fragments(&self) -> FragmentLimits {
        FragmentLimits {
            datagrams: size(self.datagrams),
            bytes: size(self.fragments.min(self.state / 8)),
        }
    }

    /// Maximum number of bytes buffered for reassembly by the connections of one host pair.
    pub(crate) fn reassembly(&self) -> usize {
        size(self.reassembly)
    }

    /// Maximum number of bytes buffered for reassembly by all connections: at most a fraction of
    /// the state limit.
    pub(crate) fn reassembly_of_all(&self) -> usize {
        if self.state == NONE { usize::MAX } else { size(self.state / 4) }
    }

    pub(crate) fn pending(&self) -> Pending {
        self.pending.clone()
    }

    pub(crate) fn files(&self) -> usize {
        size(self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_stages() {
        let limits = Limits::default();
        assert_eq!(limits.fragments(), FragmentLimits::default());
        let (ours, theirs) = (limits.streams(), tcp::Limits::default());
        assert_eq!(ours.above_hole_without_acks, theirs.above_hole_without_acks);
        assert_eq!(ours.without_further_acks, theirs.without_further_acks);
        assert_eq!(limits.files(), gannet_files::FileOptions::default().max_per_pair);
    }

    #[test]
    fn the_manual_lists_all() {
        let manual = include_str!("../../../docs/limits.md");
        for limit in Limits::all() {
            let row = manual.lines().find(|l| l.starts_with(&format!("| `{}` |", limit.name)));
            let row = row.unwrap_or_else(|| panic!("{} is not in the manual", limit.name));
            assert!(row.contains(limit.description) && row.contains(limit.reported_by), "{row}");
        }
    }

    #[test]
    fn each_is_set_by_its_name() {
        let mut limits = Limits::default();
        for limit in Limits::all() {
            let before = limits.clone();
            assert!(
                limits.set(limit.name, limit.default - 1) && limits != before,
                "{}",
                limit.name
            );
        }
        assert!(!limits.set("patience", 1));
    }

    #[test]
    fn values_out_of_range_are_rejected() {
        let mut limits = Limits::default();
        for (name, value) in [
            ("tunnel-depth", TUNNELS + 1),
            ("tunnel-depth", Limits::NONE),
            ("connections", 0),
            ("files", 0),
            ("pending-sip", 0),
        ] {
            assert!(!limits.set(name, value), "{name}={value}");
        }
        assert_eq!(limits, Limits::default());
        assert!(limits.set("tunnel-depth", 0) && limits.set("connections", 1));
        let range =
            |name| Limits::all().find(|limit| limit.name == name).map(|limit| limit.range());
        assert_eq!(range("tunnel-depth").as_deref(), Some("0 to 4"));
        assert_eq!(range("files").as_deref(), Some("1 or more"));
        assert_eq!(range("state").as_deref(), Some("1M or more"));
    }

    #[test]
    fn the_state_limit_bounds_other_limits() {
        let limits = Limits { state: 800, ..Limits::default() };
        assert_eq!((limits.fragments().bytes, limits.reassembly_of_all()), (100, 200));
    }
}
