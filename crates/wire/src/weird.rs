use std::fmt;

use gannet_base::Addr;

/// A weird of one packet, with its name in weird.log.
///
/// A failing function returns one; weirds that do not stop the dissection go to the sink of the
/// `_with` functions, in the order of the bytes that show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weird {
    /// The name, without the `_in_tunnel` that [`Scope::suffixed`] asks for.
    pub name: &'static str,
    /// What weird.log adds about this one.
    pub addl: Addl,
    /// The layer that found it, as in weird.log's `source` column; empty for none.
    pub source: &'static str,
    /// What the weird is about.
    pub scope: Scope,
    /// Source and destination, if the layer that found it knows them.
    pub addrs: Option<(Addr, Addr)>,
}

/// What a weird is about. It decides which columns of weird.log are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A packet below IP, or with an invalid IP header: no addresses.
    Packet,
    /// A packet between two addresses (those of [`Weird::addrs`], or of the enclosing IP header).
    Flow,
    /// Like `Flow`, with the same name inside and outside of tunnels.
    Header,
    /// The connection that the packet belongs to.
    Connection,
    /// Nothing in particular: no addresses, and the same name inside and outside of tunnels.
    Global,
}

impl Scope {
    /// Whether the name gets the suffix `_in_tunnel` for a packet that came out of a tunnel.
    pub fn suffixed(self) -> bool {
        matches!(self, Self::Packet | Self::Flow)
    }
}

/// Additional facts of a weird; its `Display` is weird.log's `addl` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addl {
    /// Nothing to add.
    None,
    /// Fixed words.
    Text(&'static str),
    /// A plain number.
    Number(u32),
    /// `key=number`.
    Field(&'static str, u32),
    /// `a != b`.
    Unequal(i64, i64),
    /// `(a > b)`.
    Above(usize, usize),
}

impl fmt::Display for Addl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => Ok(()),
            Self::Text(t) => f.write_str(t),
            Self::Number(n) => write!(f, "{n}"),
            Self::Field(k, n) => write!(f, "{k}={n}"),
            Self::Unequal(a, b) => write!(f, "{a} != {b}"),
            Self::Above(a, b) => write!(f, "({a} > {b})"),
        }
    }
}

impl Weird {
    /// About a packet.
    #[cold]
    pub(crate) fn packet(name: &'static str, source: &'static str) -> Self {
        Self { name, addl: Addl::None, source, scope: Scope::Packet, addrs: None }
    }

    /// About a packet between two hosts.
    #[cold]
    pub(crate) fn flow(
        name: &'static str,
        source: &'static str,
        addrs: Option<(Addr, Addr)>,
    ) -> Self {
        Self { name, addl: Addl::None, source, scope: Scope::Flow, addrs }
    }

    /// About an IP header, with the same name at every depth.
    #[cold]
    pub(crate) fn header(name: &'static str, src: Addr, dst: Addr) -> Self {
        Self { name, addl: Addl::None, source: "", scope: Scope::Header, addrs: Some((src, dst)) }
    }

    /// About a connection.
    #[cold]
    pub(crate) fn connection(name: &'static str, source: &'static str) -> Self {
        Self { name, addl: Addl::None, source, scope: Scope::Connection, addrs: None }
    }

    /// About nothing in particular.
    #[cold]
    pub(crate) fn global(name: &'static str, source: &'static str) -> Self {
        Self { name, addl: Addl::None, source, scope: Scope::Global, addrs: None }
    }

    /// The same, for a packet that is known to be between two `hosts`.
    pub fn of(self, hosts: Option<(Addr, Addr)>) -> Self {
        match (self.scope, hosts) {
            (Scope::Packet, Some(_)) => Self { scope: Scope::Flow, addrs: hosts, ..self },
            _ => self,
        }
    }

    /// The same, with an additional fact.
    pub(crate) fn with(self, addl: Addl) -> Self {
        Self { addl, ..self }
    }
}

impl fmt::Display for Weird {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.addl != Addl::None {
            write!(f, " ({})", self.addl)?;
        }
        Ok(())
    }
}

impl std::error::Error for Weird {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_print_as_weird_log_does() {
        assert_eq!(Addl::Unequal(8, 43).to_string(), "8 != 43");
        assert_eq!(Addl::Field("version", 3).to_string(), "version=3");
        assert_eq!(Addl::Above(12, 8).to_string(), "(12 > 8)");
        assert_eq!(Addl::None.to_string(), "");
    }

    #[test]
    fn only_packets_and_flows_tell_of_tunnels() {
        assert!(Weird::packet("truncated_IP", "IP").scope.suffixed());
        assert!(!Weird::connection("bad_TCP_header_len", "TCP").scope.suffixed());
    }
}
