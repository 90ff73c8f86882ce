//! The keywords, and the one nearest to a misspelling.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The kind of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A protocol, by its one name.
    Proto(&'static str),
    /// A direction.
    Dir(&'static str),
    /// The type of an identifier.
    Type(&'static str),
    /// Any other.
    Key(&'static str),
    /// A name for a number.
    Number(u32),
    And,
    Or,
    Not,
}

const PROTOS: &[&str] = &[
    "link", "ip", "arp", "rarp", "sctp", "tcp", "udp", "icmp", "igmp", "igrp", "pim", "vrrp",
    "carp", "radio", "ip6", "icmp6", "ah", "esp", "atalk", "aarp", "decnet", "lat", "sca", "moprc",
    "mopdl", "iso", "esis", "isis", "l1", "l2", "iih", "lsp", "snp", "csnp", "psnp", "clnp", "stp",
    "ipx", "netbeui",
];
const DIRS: &[&str] = &["src", "dst", "addr1", "addr2", "addr3", "addr4", "ra", "ta"];
const TYPES: &[&str] = &["host", "net", "port", "portrange", "proto", "protochain", "gateway"];
const KEYS: &[&str] = &[
    "mask",
    "type",
    "subtype",
    "dir",
    "less",
    "greater",
    "byte",
    "broadcast",
    "multicast",
    "len",
    "inbound",
    "outbound",
    "ifindex",
    "vlan",
    "mpls",
    "pppoed",
    "pppoes",
    "geneve",
    "vxlan",
    "lane",
    "llc",
    "metac",
    "bcc",
    "oam",
    "oamf4",
    "oamf4ec",
    "oamf4sc",
    "sc",
    "ilmic",
    "vpi",
    "vci",
    "connectmsg",
    "metaconnect",
    "ifname",
    "rset",
    "rnr",
    "srnr",
    "reason",
    "action",
    "fisu",
    "lssu",
    "msu",
    "hfisu",
    "hlssu",
    "hmsu",
    "sio",
    "opc",
    "dpc",
    "sls",
    "hsio",
    "hopc",
    "hdpc",
    "hsls",
];
/// Aliases of keywords.
const ALIASES: &[(&str, &str)] = &[
    ("ether", "link"),
    ("ppp", "link"),
    ("slip", "link"),
    ("fddi", "link"),
    ("tr", "link"),
    ("wlan", "link"),
    ("es-is", "esis"),
    ("is-is", "isis"),
    ("direction", "dir"),
    ("address1", "addr1"),
    ("address2", "addr2"),
    ("address3", "addr3"),
    ("address4", "addr4"),
    ("length", "len"),
    ("on", "ifname"),
    ("ruleset", "rset"),
    ("rulenum", "rnr"),
    ("subrulenum", "srnr"),
    ("lsu", "lssu"),
];
const NUMBERS: &[(&str, u32)] = &[
    ("icmptype", 0),
    ("icmpcode", 1),
    ("icmp-echoreply", 0),
    ("icmp-unreach", 3),
    ("icmp-sourcequench", 4),
    ("icmp-redirect", 5),
    ("icmp-echo", 8),
    ("icmp-routeradvert", 9),
    ("icmp-routersolicit", 10),
    ("icmp-timxceed", 11),
    ("icmp-paramprob", 12),
    ("icmp-tstamp", 13),
    ("icmp-tstampreply", 14),
    ("icmp-ireq", 15),
    ("icmp-ireqreply", 16),
    ("icmp-maskreq", 17),
    ("icmp-maskreply", 18),
    ("icmp6type", 0),
    ("icmp6code", 1),
    ("icmp6-destinationunreach", 1),
    ("icmp6-packettoobig", 2),
    ("icmp6-timeexceeded", 3),
    ("icmp6-parameterproblem", 4),
    ("icmp6-echo", 128),
    ("icmp6-echoreply", 129),
    ("icmp6-multicastlistenerquery", 130),
    ("icmp6-multicastlistenerreportv1", 131),
    ("icmp6-multicastlistenerdone", 132),
    ("icmp6-routersolicit", 133),
    ("icmp6-routeradvert", 134),
    ("icmp6-neighborsolicit", 135),
    ("icmp6-neighboradvert", 136),
    ("icmp6-redirect", 137),
    ("icmp6-routerrenum", 138),
    ("icmp6-nodeinformationquery", 139),
    ("icmp6-nodeinformationresponse", 140),
    ("icmp6-ineighbordiscoverysolicit", 141),
    ("icmp6-ineighbordiscoveryadvert", 142),
    ("icmp6-multicastlistenerreportv2", 143),
    ("icmp6-homeagentdiscoveryrequest", 144),
    ("icmp6-homeagentdiscoveryreply", 145),
    ("icmp6-mobileprefixsolicit", 146),
    ("icmp6-mobileprefixadvert", 147),
    ("icmp6-certpathsolicit", 148),
    ("icmp6-certpathadvert", 149),
    ("icmp6-multicastrouteradvert", 151),
    ("icmp6-multicastroutersolicit", 152),
    ("icmp6-multicastrouterterm", 153),
    ("tcpflags", 13),
    ("tcp-fin", 1),
    ("tcp-syn", 2),
    ("tcp-rst", 4),
    ("tcp-push", 8),
    ("tcp-ack", 16),
    ("tcp-urg", 32),
    ("tcp-ece", 64),
    ("tcp-cwr", 128),
];

/// The keyword of this spelling.
pub(crate) fn of(text: &str) -> Option<Word> {
    static ALL: LazyLock<HashMap<&'static str, Word, foldhash::fast::FixedState>> =
        LazyLock::new(|| {
            let protos = PROTOS.iter().map(|w| (*w, Word::Proto(w)));
            let dirs = DIRS.iter().map(|w| (*w, Word::Dir(w)));
            let types = TYPES.iter().map(|w| (*w, Word::Type(w)));
            let keys = KEYS.iter().map(|w| (*w, Word::Key(w)));
            let numbers = NUMBERS.iter().map(|(w, n)| (*w, Word::Number(*n)));
            let joints = [("and", Word::And), ("or", Word::Or), ("not", Word::Not)];
            let mut all: HashMap<_, _, _> =
                protos.chain(dirs).chain(types).chain(keys).chain(numbers).chain(joints).collect();
            for (alias, word) in ALIASES {
                let meant = all.get(word).copied();
                all.extend(meant.map(|m| (*alias, m)));
            }
            all
        });
    ALL.get(text).copied()
}

/// The keyword nearest to a text, with an edit distance of at most two and less than its length.
pub(crate) fn nearest(text: &str) -> Option<&'static str> {
    const LONGEST: usize = 40;
    if text.len() < 2 || text.len() > LONGEST {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let names = NUMBERS.iter().map(|(name, _)| *name).chain(ALIASES.iter().map(|(name, _)| *name));
    let all = [TYPES, PROTOS, DIRS, &["and", "or", "not"], KEYS];
    (all.into_iter().flatten().copied().chain(names))
        .map(|word| (distance(&lower, word), word))
        .filter(|(d, word)| *d <= 2 && *d < text.len() && *word != text)
        .min_by_key(|(d, word)| (*d, letters(word) != letters(&lower)))
        .map(|(_, word)| word)
}

/// The letters of a word, sorted, so that swapped letters do not matter.
fn letters(word: &str) -> Vec<u8> {
    let mut letters = word.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// Edit distance with insertions, deletions, changes and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let first: Vec<usize> = (0..=b.len()).collect();
    let (mut before, mut last) = (first.clone(), first);
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, y) in b.iter().enumerate() {
            row[j + 1] = (last[j] + usize::from(x != y)).min(row[j] + 1).min(last[j + 1] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_the_nearest() {
        assert_eq!(of("ether"), Some(Word::Proto("link")));
        assert_eq!(of("TCP"), None);
        assert_eq!(nearest("TCP"), Some("tcp"));
        assert_eq!(nearest("prot"), Some("port"));
        assert_eq!(nearest("prto"), Some("proto"));
        assert_eq!(nearest("adn"), Some("and"));
        assert_eq!(nearest("scr"), Some("src"));
        assert_eq!(nearest("portrnge"), Some("portrange"));
        assert_eq!(nearest("example.org"), None);
    }
}
