//! Types that all crates of gannet share.
//!
//! [`Time`] and [`Interval`] in nanoseconds, [`Addr`] (IPv4 and IPv6 in one comparable form), transport [`Proto`],
//! [`Uid`] (the ids of connections and files in logs), and [`NewFile`], a file that gets its name when it is complete.
//! Nothing here depends on packets or protocols.
//!
//! ```
//! use gannet_base::{Addr, Interval, Time};
//! let t = Time::from_secs(1_300_475_167) + Interval::from_micros(96_535);
//! assert_eq!(t.as_nanos(), 1_300_475_167_096_535_000);
//! assert_eq!(Addr::v4([192, 0, 2, 1]).to_string(), "192.0.2.1");
//! ```

mod addr;
mod conn_id;
mod link;
mod new_file;
mod prefetch;
mod time;
mod uid;

pub use addr::Addr;
pub use addr::Subnet;
pub use conn_id::ConnId;
pub use conn_id::Dir;
pub use link::LinkState;
pub use new_file::NewFile;
pub use new_file::Rename;
pub use prefetch::prefetch;
pub use prefetch::prefetch_for_later;
pub use time::Interval;
pub use time::Time;
pub use uid::UID_TEXT_MAX;
pub use uid::Uid;
pub use uid::UidHasher;
pub use uid::UidMap;
pub use uid::UidSource;

/// Transport protocol of a connection, as in the `proto` column of conn.log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Proto {
    /// Transmission Control Protocol (IP protocol 6).
    Tcp,
    /// User Datagram Protocol (IP protocol 17).
    Udp,
    /// ICMP and ICMPv6 (IP protocols 1 and 58).
    Icmp,
    /// Any other IP protocol.
    Unknown,
}

impl Proto {
    /// The name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Unknown => "unknown_transport",
        }
    }
}
