//! libpcap's table of what each link type and each protocol supports.

use gannet_filter::{NoNames, Options, compile, dlt};

use super::data::cases;

/// Features with expressions: at least one of them compiles if the feature is supported, and none
/// otherwise.
const FEATURES: &[(&str, &[&str])] = &[
    ("link_proto", &["link proto 0x800", "ip", "link proto 6"]),
    ("link_broadcast", &["link broadcast"]),
    ("link_multicast", &["link multicast"]),
    ("link_host_mac48", &["link host 02:00:00:00:00:01"]),
    ("link_host_mac8", &["link host $12"]),
    ("llc", &["llc"]),
    ("mpls", &["mpls 5"]),
    ("vlan", &["vlan 5"]),
    ("inout", &["inbound"]),
    ("ss7", &["dpc 5"]),
    ("wlan", &["type data"]),
    ("ifindex", &["ifindex 3"]),
    ("pflog", &["on en0"]),
    ("atm", &["vpi 5"]),
];

fn compiles(text: &str, link: u16) -> bool {
    let options = Options { optimize: false, ..Options::default() };
    compile(text, link, &options, &NoNames).is_ok()
}

/// The keys of an object and their values, one level deep.
fn entries(json: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut rest = json;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((inner, next)) = behind.split_once('}') else { break };
        let name = before.rsplit('"').nth(1).unwrap_or_default();
        out.push((name.to_owned(), inner.to_owned()));
        rest = next;
    }
    out
}

#[test]
fn link_types_support_the_features_of_libpcap() {
    let Some(table) = cases("features.json") else {
        eprintln!("skipped: no table: set GANNET_SHARED to where filters/features.json lies");
        return;
    };
    let (_, links) = table.split_once("\"dlt\": {").unwrap();
    let (links, rest) = links.split_once("\"dqual\"").unwrap();
    let mut seen = 0;
    for (name, has) in entries(links) {
        seen += 1;
        let link = dlt::by_name(&name).unwrap_or_else(|| panic!("unknown setting {name}"));
        for always in ["", "len > 60", "link[0] = 1", "less 60"] {
            assert!(compiles(always, link), "{name}: {always}");
        }
        for (feature, expressions) in FEATURES {
            let any = expressions.iter().any(|e| compiles(e, link));
            assert_eq!(any, has.contains(&format!("\"{feature}\"")), "{name}: {feature}");
        }
    }
    assert!(seen >= 160, "{seen} link types");
    let (_, protocols) = rest.split_once("\"pqual\": {").unwrap();
    let (protocols, _) = protocols.split_once("\"tqual\"").unwrap();
    let mut seen = 0;
    for (proto, has) in entries(protocols) {
        seen += 1;
        for (feature, behind, link) in [
            ("abbrev", "", "EN10MB"),
            ("host_ipv4", " host 192.0.2.1", "EN10MB"),
            ("host_ipv6", " host 2001:db8::1", "EN10MB"),
            ("host_mac48", " host 02:00:00:00:00:01", "EN10MB"),
            ("host_mac8", " host $12", "ARCNET"),
            ("host_decnet", " host 1.2", "EN10MB"),
            ("net_ipv4", " net 192.0.2.0/24", "EN10MB"),
            ("net_ipv6", " net 2001:db8::/32", "EN10MB"),
            ("port", " port 80", "EN10MB"),
            ("portrange", " portrange 80-90", "EN10MB"),
            ("proto", " proto 6", "EN10MB"),
            ("protochain", " protochain 6", "EN10MB"),
            ("index", "[0] = 1", if proto == "radio" { "IEEE802_11_RADIO" } else { "EN10MB" }),
        ] {
            let link = dlt::by_name(link).unwrap();
            // DECnet addresses are written as two numbers, which other types parse as a network.
            if feature == "host_decnet" && has.contains("\"host_ipv4\"") {
                continue;
            }
            let said = compiles(&format!("{proto}{behind}"), link);
            assert_eq!(said, has.contains(&format!("\"{feature}\"")), "{proto}{behind}");
        }
    }
    assert!(seen >= 39, "{seen} protocols");
}
