//! Names in filters: the system's files of hosts, services, networks, protocols and Ethernet
//! addresses, its resolver for hosts that are in none of them, and lists in files.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::sync::Mutex;

use gannet_filter::NoNames;
use gannet_filter::Resolver;

/// Maximum size of a list in bytes, some ten million addresses: larger ones are refused.
const MAX_LIST: u64 = 256 << 20;
/// Number of bytes read of a file of names.
const MAX_NAMES: u64 = 16 << 20;

/// Names that this machine resolves. Each lookup reads the files.
#[derive(Debug)]
pub(crate) struct System {
    folder: PathBuf,
    /// Whether the resolver is used for hosts that no file has.
    uses_resolver: bool,
    /// Resolved hosts. Filters are compiled for each link type of the packets, and resolve each host once.
    hosts: Mutex<HashMap<String, Vec<IpAddr>>>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self { folder: "/etc".into(), uses_resolver: true, hosts: Mutex::default() }
    }

    /// The first result of `parse` for the fields of a line of a file, without comments.
    fn find<T>(&self, file: &str, mut parse: impl FnMut(&[&str]) -> Option<T>) -> Option<T> {
        let mut text = Vec::new();
        let opened = fs::File::open(self.folder.join(file)).ok()?;
        opened.take(MAX_NAMES).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.lines().find_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            parse(&line.split_ascii_whitespace().collect::<Vec<_>>())
        })
    }

    /// The number of a name in a file of lines `NAME NUMBER ALIAS...`.
    fn number(&self, file: &str, name: &str) -> Option<u32> {
        self.find(file, |fields| {
            let (first, rest) = fields.split_first()?;
            let (number, aliases) = rest.split_first()?;
            (*first == name || aliases.contains(&name)).then(|| number.parse().ok())?
        })
    }

    fn look_up(&self, name: &str) -> Vec<IpAddr> {
        let mut all = Vec::new();
        let _: Option<()> = self.find("hosts", |fields| {
            let (address, names) = fields.split_first()?;
            if names.iter().any(|n| n.eq_ignore_ascii_case(name)) {
                all.extend(address.parse::<IpAddr>().ok());
            }
            None
        });
        if all.is_empty() && self.uses_resolver {
            let found = (name, 0).to_socket_addrs().into_iter().flatten();
            all.extend(found.map(|socket| socket.ip()));
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Resolver for System {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let Ok(mut known) = self.hosts.lock() else { return self.look_up(name) };
        known.entry(name.to_owned()).or_insert_with(|| self.look_up(name)).clone()
    }

    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        self.find("ethers", |fields| {
            let [address, host, ..] = fields else { return None };
            if !host.eq_ignore_ascii_case(name) {
                return None;
            }
            let mut bytes = [0; 6];
            let mut groups = address.split(':');
            for byte in &mut bytes {
                *byte = u8::from_str_radix(groups.next()?, 16).ok()?;
            }
            groups.next().is_none().then_some(bytes)
        })
    }

    fn network(&self, name: &str) -> Option<u32> {
        self.find("networks", |fields| {
            let (first, rest) = fields.split_first()?;
            let (number, aliases) = rest.split_first()?;
            if !std::iter::once(first).chain(aliases).any(|n| n.eq_ignore_ascii_case(name)) {
                return None;
            }
            // Fewer than four numbers are the first bytes of an address.
            let mut bytes = [0; 4];
            let mut given = number.split('.');
            for byte in &mut bytes {
                *byte = given.next().map_or(Some(0), |n| n.parse().ok())?;
            }
            given.next().is_none().then(|| u32::from_be_bytes(bytes))
        })
    }

    fn port(&self, name: &str, over: &str) -> Option<u16> {
        let from_file = self.find("services", |fields| {
            let (first, rest) = fields.split_first()?;
            let (number, aliases) = rest.split_first()?;
            let (port, protocol) = number.split_once('/')?;
            let same = protocol == over && (*first == name || aliases.contains(&name));
            same.then(|| port.parse().ok())?
        });
        from_file.or_else(|| NoNames.port(name, over))
    }

    fn list(&self, name: &str) -> Result<String, String> {
        let file = fs::File::open(name).map_err(|e| e.to_string())?;
        let mut text = String::new();
        file.take(MAX_LIST + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
        if text.len() as u64 > MAX_LIST {
            return Err(format!("is longer than {} MiB", MAX_LIST >> 20));
        }
        Ok(text)
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        let from_file = self.number("protocols", name).and_then(|n| u8::try_from(n).ok());
        from_file.or_else(|| NoNames.protocol(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_files_of_the_system() {
        let folder = std::env::temp_dir().join(format!("gannet-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("hosts", "192.0.2.1 web www # both\n2001:db8::1\tweb\n# 192.0.2.9 web\n");
        write("ethers", "02:00:00:00:00:0a web\n");
        write("networks", "office 10.1\nlab 192.0.2.0 bench\n");
        write("services", "http 8080/tcp web-cache\nhttp 8081/udp\n");
        write("protocols", "ours 253 OURS\n");
        let names =
            System { folder: folder.clone(), uses_resolver: false, hosts: Mutex::default() };
        let addresses: Vec<String> = names.host("WEB").iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(names.host("www").len(), 1);
        assert!(names.host("none").is_empty());
        assert_eq!(names.ether("web"), Some([2, 0, 0, 0, 0, 10]));
        assert_eq!(names.ether("Web"), Some([2, 0, 0, 0, 0, 10]), "as the system has it");
        assert_eq!(names.network("Bench"), Some(0xc000_0200));
        assert_eq!(names.network("office"), Some(0x0a01_0000));
        assert_eq!(names.network("bench"), Some(0xc000_0200));
        assert_eq!(names.port("web-cache", "tcp"), Some(8080));
        assert_eq!(names.port("http", "udp"), Some(8081));
        assert_eq!(names.port("domain", "udp"), Some(53));
        assert_eq!(names.protocol("OURS"), Some(253));
        assert_eq!(names.protocol("tcp"), Some(6));
        let list = folder.join("hosts");
        assert!(names.list(list.to_str().unwrap()).unwrap().starts_with("192.0.2.1"));
        assert!(names.list("/nonexistent").unwrap_err().contains("No such file"));
        fs::remove_dir_all(folder).unwrap();
    }
}
