//! Properties of network interfaces.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::LinkType;

use crate::Error;
use crate::sys::Socket;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Interface index in this network namespace.
    pub index: u32,
    /// Link type of its frames.
    pub link_type: LinkType,
    /// Whether it is the loopback interface, which delivers each packet twice.
    pub is_loopback: bool,
    /// Maximum size of a packet without link header, in bytes.
    pub mtu: u32,
}

/// Hardware types (`ARPHRD_*` of the kernel).
const ETHER: u16 = 1;
const PPP: u16 = 512;
const LOOPBACK: u16 = 772;
const RADIOTAP: u16 = 803;
const NONE: u16 = 0xfffe;
const RAW_IP: u16 = 519;
const IP_TUNNEL: u16 = 768;
const IP6_TUNNEL: u16 = 769;
const SIT: u16 = 776;

/// Command `ETHTOOL_GGRO`.
const GRO: u32 = 0x2b;
/// Command `ETHTOOL_GFLAGS`.
const FLAGS: u32 = 0x25;
/// The bit of LRO in the flags (`ETH_FLAG_LRO`).
const LRO: u32 = 1 << 15;

impl Interface {
    /// Looks up an interface by name.
    ///
    /// # Errors
    /// If no interface has the name, or its link type is not supported.
    pub fn named(name: &str) -> Result<Self, Error> {
        let missing = || Error::NoInterface(name.to_owned());
        if name.contains('/') || name.starts_with('.') {
            return Err(missing());
        }
        let number = |file: &str| -> Option<u32> {
            fs::read_to_string(folder(name).join(file)).ok()?.trim().parse().ok()
        };
        let index = number("ifindex").ok_or_else(missing)?;
        let hardware_type = number("type")
            .and_then(|hardware_type| u16::try_from(hardware_type).ok())
            .ok_or_else(missing)?;
        let link_type = match hardware_type {
            ETHER | LOOPBACK => LinkType::ETHERNET,
            NONE | RAW_IP | IP_TUNNEL | IP6_TUNNEL | SIT | PPP => LinkType::RAW,
            RADIOTAP => LinkType(127),
            _ => return Err(Error::LinkType { name: name.to_owned(), kind: hardware_type }),
        };
        let mtu = number("mtu").unwrap_or(1500);
        Ok(Self {
            name: name.to_owned(),
            index,
            link_type,
            is_loopback: hardware_type == LOOPBACK,
            mtu,
        })
    }

    /// Names of all interfaces.
    pub fn names() -> Vec<String> {
        let entries = fs::read_dir(CLASS).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Names of enabled offloads that join packets before they are captured, so that captured packets differ from those
    /// on the wire.
    pub fn joining_offloads(&self) -> Vec<&'static str> {
        let Ok(socket) = Socket::new() else { return Vec::new() };
        let is_on =
            |command, bit| socket.ethtool(&self.name, command).is_some_and(|v| v & bit != 0);
        let all = [("gro", is_on(GRO, 1)), ("lro", is_on(FLAGS, LRO))];
        all.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Whether an interface exists and is up.
    pub fn is_up(name: &str) -> bool {
        let flags = fs::read_to_string(folder(name).join("flags")).unwrap_or_default();
        let flags = flags.trim().strip_prefix("0x").and_then(|f| u32::from_str_radix(f, 16).ok());
        flags.is_some_and(|flags| flags & 1 != 0)
    }
}

const CLASS: &str = "/sys/class/net";

/// The folder of an interface in sysfs.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(CLASS).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_paths_are_not_names() {
        let lo = Interface::named("lo").unwrap();
        assert!(lo.is_loopback && lo.link_type == LinkType::ETHERNET);
        assert!(Interface::names().contains(&"lo".to_owned()));
        for name in ["../lo", ".", "", "no-such-interface"] {
            assert!(matches!(Interface::named(name), Err(Error::NoInterface(_))), "{name}");
        }
    }
}
