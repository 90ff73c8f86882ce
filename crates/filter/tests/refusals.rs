//! Expressions that no packet can match: refused if libpcap refuses them, otherwise compiled to a
//! program that rejects every packet.
#![allow(clippy::unwrap_used)]

use gannet_filter::{NoNames, Options, compile};

const ETHERNET: u16 = 1;
const RAW: u16 = 12;
const WLAN: u16 = 105;

const REJECTS_ALL: &str = "expression rejects all packets";

#[test]
fn contradictions_are_refused_except_those_of_ranges() {
    let refused = |link: u16, text: &str| match compile(text, link, &Options::default(), &NoNames) {
        Err(error) => {
            assert_eq!(error.message(), REJECTS_ALL, "{text}");
            true
        }
        Ok(compiled) => {
            assert_eq!(compiled.program().insns().len(), 1, "{text}: {}", compiled.program());
            assert_eq!(compiled.program().run(&[0; 200], 200), 0);
            false
        }
    };
    for text in
        ["arp and ip", "ip and ip6", "tcp and udp", "ip and not ip", "tcp port 80 and udp", "1 = 2"]
    {
        assert!(refused(ETHERNET, text), "{text}");
    }
    for text in [
        "ip[2:1] <= 17 and stp",
        "ip and stp",
        "ip proto 154 and len < len",
        "len < 10 and len > 20",
        "atalk[17:1] >= 262143",
        "(tcp[0] + ip6[1]) = 3 and ip",
    ] {
        assert!(!refused(ETHERNET, text), "{text}");
    }
    assert!(refused(RAW, "arp host 1.2.3.4"));
    // libpcap does not optimise filters that test bytes after the header of 802.11 frames.
    assert!(!refused(WLAN, "arp and ip"));
    // libpcap refuses this; contradictions of masked bits are not detected here.
    assert!(!refused(WLAN, "type ctl and type mgt"));
}

#[test]
fn no_mask_is_not_a_mask() {
    let with =
        |netmask| compile("ip broadcast", 1, &Options { netmask, ..Options::default() }, &NoNames);
    assert!(with(Some(0xffff_ff00)).is_ok());
    for netmask in [None, Some(u32::MAX)] {
        let message = with(netmask).unwrap_err().message().to_owned();
        assert_eq!(message, "netmask not known, so 'ip broadcast' not supported");
    }
}
