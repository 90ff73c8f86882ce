//! The cases from files, and the names they use.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use gannet_filter::{Options, Resolver};

/// The fixture for the names in the cases.
#[derive(Default)]
pub(crate) struct Names {
    hosts: HashMap<String, Vec<IpAddr>>,
    ethers: HashMap<String, [u8; 6]>,
    networks: HashMap<String, u32>,
}

impl Resolver for Names {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        self.hosts.get(&name.to_ascii_lowercase()).cloned().unwrap_or_default()
    }

    fn ether(&self, name: &str) -> Option<[u8; 6]> {
        self.ethers.get(&name.to_ascii_lowercase()).copied()
    }

    fn network(&self, name: &str) -> Option<u32> {
        self.networks.get(&name.to_ascii_lowercase()).copied()
    }
}

/// The string or list of strings under a key in a line of JSON.
pub(crate) fn strings(json: &str, key: &str) -> Vec<String> {
    let Some(at) = json.find(&format!("\"{key}\":")) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let mut rest = json[at + key.len() + 3..].trim_start();
    let list = rest.starts_with('[');
    rest = rest.trim_start_matches('[').trim_start();
    while let Some(inner) = rest.strip_prefix('"') {
        let mut text = String::new();
        let mut chars = inner.char_indices();
        let mut end = inner.len();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    end = i;
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 'u')) => {
                        let hex: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        text.extend(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32));
                    }
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        out.push(text);
        rest = inner.get(end + 1..).unwrap_or_default().trim_start();
        match rest.strip_prefix(',') {
            Some(more) if list => rest = more.trim_start(),
            _ => break,
        }
    }
    out
}

pub(crate) fn string(json: &str, key: &str) -> String {
    strings(json, key).into_iter().next().unwrap_or_default()
}

/// The path of shared data, if it exists.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let below = std::env::var_os("GANNET_SHARED").map(PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    Some(below.unwrap_or(root).join(name)).filter(|f| f.is_dir())
}

/// The cases of a file.
pub(crate) fn cases(name: &str) -> Option<String> {
    std::fs::read_to_string(shared("filters")?.join(name)).ok()
}

/// The options of a case.
pub(crate) fn options(json: &str) -> Options {
    let number = |key: &str| -> Option<u32> {
        let at = json.find(&format!("\"{key}\":"))? + key.len() + 3;
        let digits: String =
            json[at..].trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Options {
        snaplen: number("snaplen").unwrap_or(262_144),
        netmask: string(json, "netmask").parse::<std::net::Ipv4Addr>().ok().map(u32::from),
        optimize: json.contains("\"optimize\": true"),
        kernel: json.contains("\"linuxext\": 1"),
        offline: string(json, "name").contains("_offline_"),
        ..Options::default()
    }
}

pub(crate) fn names(text: &str) -> Names {
    let mut names = Names::default();
    let pairs = |key| {
        let all = strings(text, key).into_iter();
        all.filter_map(|l| l.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())))
    };
    for (address, name) in pairs("hosts") {
        names.hosts.entry(name).or_default().push(address.parse().unwrap());
    }
    for (address, name) in pairs("ethers") {
        let bytes: Vec<u8> =
            address.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
        names.ethers.insert(name, bytes.try_into().unwrap());
    }
    for (name, address) in pairs("networks") {
        let address: std::net::Ipv4Addr = address.parse().unwrap();
        names.networks.insert(name, address.into());
    }
    names
}
