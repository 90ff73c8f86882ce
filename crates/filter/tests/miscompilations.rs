//! Expressions that libpcap's optimizer miscompiles or once did, each compared with its own
//! unoptimised program, on packets that satisfy many of its tests, truncated to every length. Tests
//! are named after the number of the report.

use gannet_filter::proof::check;
use gannet_filter::{NoNames, Options, compile, dlt};

const EN10MB: u16 = 1;

/// Optimised and unoptimised programs agree; so do those of the expression combined with constants.
fn sound(text: &str) {
    sound_on(EN10MB, text);
}

fn sound_on(link: u16, text: &str) {
    match check(text, link, &NoNames, 60, 9, &[]) {
        Ok(Some(runs)) => assert!(runs > 100, "{text}: {runs} runs"),
        Ok(None) => panic!("{text}: does not compile"),
        Err(disagreement) => panic!("{text}: {disagreement}"),
    }
}

fn verdict(text: &str, packet: &[u8]) -> bool {
    [true, false]
        .map(|optimize| {
            let options = Options { optimize, ..Options::default() };
            match compile(text, EN10MB, &options, &NoNames) {
                Ok(c) => c.program().run(packet, packet.len() as u32) != 0,
                Err(e) => {
                    assert_eq!(e.message(), "expression rejects all packets", "{text}");
                    false
                }
            }
        })
        .into_iter()
        .reduce(|a, b| {
            assert_eq!(a, b, "{text}");
            a
        })
        .unwrap_or_default()
}

#[test]
fn the_optimizer_loop_of_2011() {
    sound(
        "((ether[0:4] & 0xFFFFFF00) = 0x00505600 or (ether[6:4] & 0xFFFFFF00) = 0x00505600) and \
         ((ether[0:4] & 0xFFFFFF00) = 0x001B0D00 or (ether[6:4] & 0xFFFFFF00) = 0x001B0D00)",
    );
}

#[test]
fn report_112_cycle() {
    sound(
        "(ip[12:4]=0x0a0a0a0a or ip[16:4]=0x0a0a0a0a) and \
         (not ((ip[12:4]=0x0a0a0a0b or ip[16:4]=0x0a0a0a0b)))",
    );
}

#[test]
fn report_434_constants_and_ranges() {
    let packet = [0; 60];
    assert!(verdict("len >= 2147483648 & 2147483648 or len < 0 | 2147483648", &packet));
    assert!(!verdict("len <= 4294967295 & 2147483647 and len > 2147483647 + 0", &packet));
}

#[test]
fn reports_436_and_437_folded_constants() {
    let packet = [0; 60];
    assert!(verdict("1 == 1 and 1 << 31 = 0x80000000 and 3 << 31 = 0x80000000", &packet));
    assert!(verdict("(1 = 0) || (2147483648 / 4294967295 = 0) and (0 & 4294967295 = 0)", &packet));
}

#[test]
fn report_1699_quotients_of_constants() {
    // 1/2 = 1/3 holds, and 1 is above 4/5 and 6/7, which are zero.
    assert!(verdict("1/2=1/3&&1>4/5&&1>6/7", &[0; 60]));
}

#[test]
fn report_945_hosts_in_negations() {
    sound(
        "host 192.168.1.1 and not ((host 1.2.3.4 or host 5.6.7.8) and icmp) and \
         not (host 5.6.7.8 or host 192.168.1.1)",
    );
}

#[test]
fn masks_of_all_bits() {
    assert!(verdict("link[0:1] & 0xffffffff != 0", &[7; 60]));
    assert!(verdict("link[0:1] & 0xffffffff == 0", &[0; 60]));
    sound("link[0:1] & 0xffffffff != 0");
}

#[test]
fn report_430_loads_that_fault_are_not_dropped() {
    for text in ["ether[1] > tcp[100] or ip", "ether[1] > tcp[100] or 1 == 1"] {
        sound(text);
    }
    // TCP over IPv4 that ends with its header: byte 100 is missing, so nothing matches.
    let mut packet = vec![0; 54];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[23] = 6;
    assert!(!verdict("ether[1] > tcp[100] or ip", &packet));
}

#[test]
fn offsets_do_not_wrap_into_the_header_before() {
    for text in ["ip[-1] = 0", "ip[0xffffffee:4] == 0", "ether[0xfffffffe:4] = 0"] {
        assert!(!verdict(text, &[8; 60]), "{text}");
        sound(text);
    }
}

#[test]
fn reports_1670_and_1726_inner_frames_of_vxlan() {
    for text in ["vxlan and arp", "vxlan and ip", "vxlan 7 and ip and tcp port 80", "geneve and ip"]
    {
        sound(text);
    }
}

#[test]
fn reports_42_58_and_1076_ranges_of_fields() {
    for text in [
        "tcp[0:2]>=79 and tcp[0:2]<=81",
        "ip[4:2] & 0x0fff >= 2140 and ip[4:2] & 0x0fff <= 2147",
        "tcp[0:2] = tcp[4:2] and tcp[8:4] == 0 and src port 43707",
    ] {
        sound(text);
    }
}

#[test]
fn report_33_two_addresses_of_ipv6() {
    sound(
        "( dst host 1234:5678:9abc:def0:feed:babe:dead:beef or \
         dst host 1111:2222:3333:4444:5555:6666:7777:8888 )",
    );
}

#[test]
fn truncated_packets_do_not_match() {
    for text in [
        "not (tcp and udp)",
        "ip or not ip",
        "link[0:1] & 0 == 0",
        "ip[0]*0 = 0",
        "net ::/0",
        "icmp || (udp && !(port 4500 || (host 10.0.0.1 && port (514||1900||161)))) || !(arp||ip)",
    ] {
        sound(text);
    }
    assert!(!verdict("ip or not ip", &[0; 13]));
    assert!(!verdict("link[0:1] & 0 == 0", &[]));
}

#[test]
fn operands_are_evaluated_before_comparisons_are_folded() {
    // libpcap checks only the first instruction of an operand, and refuses these.
    let mut packet = vec![0; 60];
    packet[12..17].copy_from_slice(&[8, 0, 0x45, 0, 0x45]);
    assert!(verdict("ip[2] / ip[0] = 1", &packet));
    for text in ["ip[2] / (0 + 4) = 17", "1 << ip[40] = 1", "1 << (40 - 39) = 2"] {
        assert!(verdict(text, &packet), "{text}");
    }
}

#[test]
fn metadata_of_tags_is_tested_once() {
    let options = Options { kernel: true, offline: false, ..Options::default() };
    for text in ["vlan and vlan", "ether proto 0x8892 or (vlan and ether proto 0x8892)"] {
        let plain = Options { optimize: false, ..options.clone() };
        for options in [&options, &plain] {
            assert!(compile(text, dlt::by_name("EN10MB").unwrap_or(1), options, &NoNames).is_ok());
        }
    }
}

#[test]
fn report_143_headers_inside_gre() {
    // The IPv4 header inside GRE, whose own length depends on its flags.
    let gre = "(((ip[0] & 0xf) << 2) + 4 + ((ip[(ip[0] & 0xf) << 2] & 0x80) >> 5) \
               + ((ip[(ip[0] & 0xf) << 2] & 0x20) >> 3) + ((ip[(ip[0] & 0xf) << 2] & 0x10) >> 2))";
    sound(&format!("ip proto 47 and ip[{gre}] & 0xf0 = 0x40 and ip[{gre} + 9] = 6"));
    sound(&format!(
        "ip proto 47 and (ip[{gre} + 12:4] = 0x0a000001 or ip[{gre} + 16:4] = 0x0a000001)"
    ));
}

#[test]
fn reports_110_and_1022_known_facts_are_not_tested_again() {
    let length = |text: &str| {
        compile(text, EN10MB, &Options::default(), &NoNames).unwrap().program().insns().len()
    };
    let (one, two) = ("src net 10.0.1.0/24", "src net 10.0.1.0/24 or src net 10.0.2.0/24");
    assert!(length(two) <= length(one) + 2, "one comparison more for each place of the address");
    assert_eq!(length("ip6 and ip6[6] = 6 and tcp"), length("ip6 and ip6[6] = 6"));
    sound(two);
    sound("ip6 and ip6[6] = 6 and tcp");
}

#[test]
fn reports_834_and_1192_headers_of_varying_length() {
    let radio = dlt::by_name("IEEE802_11_RADIO").unwrap();
    sound_on(radio, "(radio[16] & 0x40) == 0 and subtype probe-req");
    sound_on(radio, "subtype probe-req and (radio[16] & 0x40) == 0");
    // Sixteen bytes of radiotap, without the flag, then a probe request.
    let mut packet = vec![0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    packet.extend([0x40; 24]);
    let run = |text: &str| {
        let compiled = compile(text, radio, &Options::default(), &NoNames).unwrap();
        compiled.program().run(&packet, packet.len() as u32) != 0
    };
    assert!(run("(radio[16] & 0x40) == 0 and subtype probe-req"));
    assert!(run("subtype probe-req and (radio[16] & 0x40) == 0"));
}
