//! The table of all detection rules, and a prefilter of the TCP rules by the first bytes.
//!
//! The first byte, or the fifth, after a length of four bytes, excludes most rules. A table lists the
//! candidates by byte, and only these are tested.

use super::rule::Class;
use super::rule::Precondition;
use super::rule::TcpRule;
use super::rule::UdpRule;
use super::sides::Sides;
use crate::Tag;
use crate::descriptor::entries;

/// The TCP rules of all descriptors in the order of the protocol list, which is the order in which they are tested.
pub(super) static TCP: [(Tag, TcpRule); count(true)] = {
    let mut all = [(Tag::Detector, TcpRule::any(|_| false)); count(true)];
    let (entries, mut at, mut i) = (entries(), 0, 0);
    while i < entries.len() {
        let (rules, mut j) = (entries[i].tcp_rules, 0);
        while j < rules.len() {
            all[at] = (entries[i].tag, rules[j]);
            (at, j) = (at + 1, j + 1);
        }
        i += 1;
    }
    all
};

/// The UDP rules of all descriptors, in the same order.
pub(super) static UDP: [(Tag, UdpRule); count(false)] = {
    let mut all = [(Tag::Detector, UdpRule::any(|_| false)); count(false)];
    let (entries, mut at, mut i) = (entries(), 0, 0);
    while i < entries.len() {
        let (rules, mut j) = (entries[i].udp_rules, 0);
        while j < rules.len() {
            all[at] = (entries[i].tag, rules[j]);
            (at, j) = (at + 1, j + 1);
        }
        i += 1;
    }
    all
};

/// Number of TCP rules or UDP rules.
const fn count(tcp: bool) -> usize {
    let (entries, mut count, mut i) = (entries(), 0, 0);
    while i < entries.len() {
        let entry = entries[i];
        count += if tcp { entry.tcp_rules.len() } else { entry.udp_rules.len() };
        i += 1;
    }
    count
}

/// Index of a missing byte in [`ByByte`].
const NONE: usize = 256;

/// Bit sets of rules by byte.
type ByByte = [u32; NONE + 1];

/// Bit sets of the rules that the first bytes of a connection do not exclude.
struct CandidateRules {
    /// Candidates by the first byte of the originator and of the responder.
    sides: [ByByte; 2],
    /// Rules that need the IRC commands of a client or of a server.
    needs_log_in: u32,
    needs_server: u32,
    /// Rules that need a first or a fifth byte of at least one side, and these rules by byte.
    needs_first: u32,
    first: ByByte,
    needs_fifth: u32,
    fifth: ByByte,
}

// A bit set has a bit for each rule.
const _: () = assert!(TCP.len() <= u32::BITS as usize);

static CANDIDATES: CandidateRules = {
    let mut table = CandidateRules {
        sides: [[0; NONE + 1]; 2],
        needs_log_in: 0,
        needs_server: 0,
        needs_first: 0,
        first: [0; NONE + 1],
        needs_fifth: 0,
        fifth: [0; NONE + 1],
    };
    let mut i = 0;
    while i < TCP.len() {
        let bit = 1 << i;
        // `None`: any byte or no data.
        let (mut orig, mut resp) = (None, None);
        match TCP[i].1.precondition {
            Precondition::Any => {}
            Precondition::LogIn => table.needs_log_in |= bit,
            Precondition::Server => table.needs_server |= bit,
            Precondition::Sides(first, second) => (orig, resp) = (Some(first), Some(second)),
            Precondition::Orig(class) => orig = Some(class),
            Precondition::Resp(class) => resp = Some(class),
            Precondition::Either(class) => {
                table.needs_first |= bit;
                add_rule(&mut table.first, Some(class), bit);
            }
            Precondition::EitherFifth(class) => {
                table.needs_fifth |= bit;
                add_rule(&mut table.fifth, Some(class), bit);
            }
        }
        let [origs, resps] = &mut table.sides;
        add_rule(origs, orig, bit);
        add_rule(resps, resp, bit);
        i += 1;
    }
    table
};

/// Adds a rule to the bytes of a class; without a class, to all bytes and to [`NONE`].
const fn add_rule(table: &mut ByByte, class: Option<Class>, bit: u32) {
    let mut byte = 0;
    while byte <= NONE {
        let is_candidate = match class {
            Some(class) => byte < NONE && class.contains(byte as u8),
            None => true,
        };
        table[byte] |= if is_candidate { bit } else { 0 };
        byte += 1;
    }
}

/// Returns the bit set of the rules, by index in [`TCP`], that may match. All others do not match.
#[inline]
pub(super) fn candidates(sides: Sides<'_>) -> u32 {
    let table = &CANDIDATES;
    let byte = |d: &[u8], at| d.get(at).map_or(NONE, |b| usize::from(*b));
    let (orig, resp) = (byte(sides.orig, 0), byte(sides.resp, 0));
    let (orig5, resp5) = (byte(sides.orig, 4), byte(sides.resp, 4));
    table.sides[0][orig]
        & table.sides[1][resp]
        & !(if sides.seen.log_in() { 0 } else { table.needs_log_in })
        & !(if sides.seen.server() { 0 } else { table.needs_server })
        & (!table.needs_first | table.first[orig] | table.first[resp])
        & (!table.needs_fifth | table.fifth[orig5] | table.fifth[resp5])
}

#[cfg(test)]
mod tests {
    use super::super::sides::Seen;
    use super::*;
    use gannet_base::Dir;
    use proptest::prelude::*;

    /// Beginnings of protocols, and near misses.
    const PIECES: &[&[u8]] = &[
        b"",
        b" ",
        b"\r\n",
        b"GET / HTTP/1.1\r\n",
        b"http/1.1 200",
        b"220 x\r\n",
        b"331 x\r\n",
        b"USER x\r\n",
        b"NICK x\r\n",
        b"001 x\r\n",
        b"SERVER a 1 :x\r\n",
        b"+OK\r\n",
        b"CAPA\r\n",
        b"EHLO x\r\n",
        b"SSH-2.0",
        b"ssh-1.9",
        b"RFB",
        b"\x05\x64",
        b"\x05\0\x0b",
        b"\x05\x01\0",
        b"\x04\x01\0\x50\x01\x02\x03\x04\0",
        b"\0\x5a",
        b"\x30\x0c\x02\x01\x01\x60\x07",
        b"\x30\x0c",
        b"\x10\x0e\0\x04MQTT",
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        b"S",
        b"\0\0\0\x12\0\x03\0\0user\0bob\0\0",
        b"R\0\0\0\x08",
        b"\0\0\0\x40\xffSMB",
        b"\0\0\0\x40\xfeSMB",
        b"\0\0\0\x40\x6a\x3e\x30\x3c\xa1\x03\x02\x01\x05\xa2\x03\x02\x01",
        b"*1\r\n",
        b"$-1\r\n",
        b"PING\r\n",
        b"\0\0\0\x40\x6b\x3e\x30\x3c\xa0\x03\x02\x01\x05\xa1\x03\x02\x01",
        b"Cookie: mstshash=",
        b"McDn",
        b"\x03\0\0\x0b\x06\xd0",
        b"Duca rdpsnd",
        b"\x16\x03\x01\0\xff\x01\0\0\xfb\x03\x03",
        b"<stream:stream xmlns='jabber:",
        b"\x15\x03\x01\0\x02\x02\x28\x16\x03\x01\0\xff\x02\0\0\xfb\x03\x03",
        b"<?xml?>",
        b"\x05\x02\x09",
    ];

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            8 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
            1 => prop::collection::vec(any::<u8>(), 0..6),
        ];
        prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
    }

    fn found(d: &[u8]) -> Vec<Tag> {
        UDP.iter()
            .filter(|(_, r)| r.request.is_none() && (r.test)(d))
            .map(|(tag, _)| *tag)
            .collect()
    }

    #[test]
    fn datagrams_of_protocols() {
        let mut dhcp = vec![0; 236];
        dhcp.extend_from_slice(b"\x63\x82\x53\x63");
        assert_eq!(found(&dhcp), [Tag::Dhcp]);
        let mut syn = vec![0xff; 1232];
        syn[7] = 1;
        assert_eq!(found(&syn), [Tag::RdpEudp]);
        assert_eq!(found(&syn[..1131]), []);
        assert_eq!(found(b"INVITE sip:a@b SIP/2.0\r\n"), [Tag::Sip]);
        assert_eq!(found(b" SIP/2.0\r\n"), [Tag::Sip, Tag::Sip]);
        assert_eq!(found(b"SIP/2.0 200 OK\r\n"), [Tag::Sip]);
        assert_eq!(found(b"SIP/2.0 OK\r\n"), []);
        let mut hello = b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x40\x01".to_vec();
        hello.extend_from_slice(&[9; 11]);
        assert_eq!(found(&hello), []);
        hello.extend_from_slice(b"\xfe\xfd");
        assert_eq!(found(&hello), [Tag::Dtls]);
        assert_eq!(found(b"\x05\x64\x05"), [Tag::Dnp3Udp]);
        assert_eq!(found(b"\xc3\0\0\0\x01\x08"), [Tag::Quic]);
        assert_eq!(found(b"\xd3\x6b\x33\x43\xcf\x08"), [Tag::Quic]);
        assert_eq!(found(b"\xe3\0\0\0\x01\x08"), []);
        assert_eq!(
            found(b"\x6a\x81\x8d\x30\x81\x8a\xa1\x03\x02\x01\x05\xa2\x03\x02\x01\x0a"),
            [Tag::Krb]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn matching_rules_are_candidates(orig in bytes(), resp in bytes()) {
            let mut seen = Seen::default();
            seen.update(Dir::Orig, &orig, 0);
            seen.update(Dir::Resp, &resp, 0);
            let sides = Sides { orig: &orig, resp: &resp, seen };
            let candidates = candidates(sides);
            for (i, (tag, rule)) in TCP.iter().enumerate() {
                prop_assert!(candidates >> i & 1 != 0 || !(rule.test)(sides), "{}, {}", i, tag.name());
            }
        }
    }
}
