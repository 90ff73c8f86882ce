//! Networks that count as local.

use gannet_base::Addr;
use gannet_base::Subnet;

/// Networks that count as local, with an index by first byte.
pub(crate) struct LocalNets {
    pub(crate) all: Vec<Subnet>,
    /// By first byte of an IPv4 address, followed by first byte of an IPv6 address.
    by_byte: Vec<Locality>,
}

/// Which of the addresses with the same first byte are local. `Of`: those of these networks.
enum Locality {
    All,
    /// Those of some networks, or none.
    Of(Vec<Subnet>),
}

/// Number of values of a byte.
const BYTES: usize = 256;

impl LocalNets {
    pub(crate) fn new(all: Vec<Subnet>) -> Self {
        let mut by_byte = Vec::new();
        for family in [v4, v6] {
            // Few networks contain addresses of both families.
            let (low, high) = (family([0; 16]), family([u8::MAX; 16]));
            let of_family: Vec<_> = all.iter().filter(|n| n.overlaps(low, high)).collect();
            by_byte.extend((0..=u8::MAX).map(|first| {
                let of = |rest: u8| {
                    let mut bytes = [rest; 16];
                    bytes[0] = first;
                    family(bytes)
                };
                let (low, high) = (of(0), of(u8::MAX));
                let nets = of_family.iter().filter(|n| n.overlaps(low, high));
                let nets: Vec<Subnet> = nets.map(|n| **n).collect();
                match nets.iter().any(|n| n.contains(low) && n.contains(high)) {
                    true => Locality::All,
                    false => Locality::Of(nets),
                }
            }));
        }
        Self { all, by_byte }
    }

    #[inline]
    pub(crate) fn contain(&self, a: Addr) -> bool {
        let at = match a.as_v4() {
            Some(bytes) => usize::from(bytes[0]),
            None => BYTES + usize::from(a.octets()[0]),
        };
        match &self.by_byte[at] {
            Locality::All => true,
            Locality::Of(nets) => nets.iter().any(|n| n.contains(a)),
        }
    }
}

/// The IPv4 address made of the first four bytes.
fn v4([a, b, c, d, ..]: [u8; 16]) -> Addr {
    Addr::v4([a, b, c, d])
}

fn v6(bytes: [u8; 16]) -> Addr {
    Addr::v6(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nets() -> impl Strategy<Value = Vec<Subnet>> {
        let v4 = (any::<[u8; 4]>(), 0_u8..=32).prop_map(|(a, len)| (Addr::v4(a), len));
        let v6 = (any::<[u8; 16]>(), 0_u8..=128).prop_map(|(a, len)| (Addr::v6(a), len));
        let net = prop_oneof![v4, v6].prop_filter_map("a length", |(a, len)| Subnet::new(a, len));
        prop::collection::vec(net, 0..8)
    }

    proptest! {
        /// An address is local if any network contains it, including addresses near the ends of a
        /// network.
        #[test]
        fn as_any_network_says(nets in nets(), bytes: [u8; 16], near: prop::sample::Index, flips: u8) {
            let local = LocalNets::new(nets.clone());
            let mut candidates = vec![v4(bytes), v6(bytes)];
            if !nets.is_empty() {
                let base = near.get(&nets).base();
                candidates.push(base);
                let mut octets = base.octets();
                octets[12 + usize::from(flips % 4)] ^= flips;
                candidates.push(if base.is_v4() {
                    v4([octets[12], octets[13], octets[14], octets[15], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                } else {
                    v6(octets)
                });
            }
            for a in candidates {
                prop_assert_eq!(local.contain(a), nets.iter().any(|n| n.contains(a)), "{}", a);
            }
        }
    }
}
