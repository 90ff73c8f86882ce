//! Networks that count as local.

use gannet_base::Addr;
use gannet_base::Subnet;

/// Networks that count as local, and where to look for them.
pub(crate) struct LocalNets {
    pub(crate) all: Vec<Subnet>,
    /// By first byte of an IPv4 address.
    by_byte: Vec<Locality>,
}

/// Which of the addresses with the same first byte are local.
enum Locality {
    All,
    /// Those of some networks, or none.
    Of(Vec<Subnet>),
}

impl LocalNets {
    pub(crate) fn new(all: Vec<Subnet>) -> Self {
        let of = |first: u8| {
            let (low, high) = (Addr::v4([first, 0, 0, 0]), Addr::v4([first, 255, 255, 255]));
            if all.iter().any(|n| n.contains(low) && n.contains(high)) {
                return Locality::All;
            }
            Locality::Of(all.iter().filter(|n| n.overlaps(low, high)).copied().collect())
        };
        let by_byte = (0..=255).map(of).collect();
        Self { all, by_byte }
    }

    #[inline]
    pub(crate) fn contain(&self, a: Addr) -> bool {
        let nets = match a.as_v4() {
            Some(b) => match &self.by_byte[usize::from(b[0])] {
                Locality::All => return true,
                Locality::Of(nets) => nets,
            },
            None => &self.all,
        };
        nets.iter().any(|n| n.contains(a))
    }
}
