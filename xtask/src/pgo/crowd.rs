//! Captures of a corpus as if one network had seen them all.
//!
//! A capture of a test suite holds one conversation or two: reading a thousand of them is starting and
//! ending, and the little between is not what a network's uplink sees. So they are played at the same
//! time here, each several times between hosts of its own.

use std::path::Path;
use std::path::PathBuf;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;

/// How often each capture is played.
const COPIES: u8 = 8;
/// When the traffic begins: seconds since 1970.
const START: i64 = 1_700_000_000;
/// Captures begin within so many seconds …
const WITHIN: usize = 300;
/// … so many after each other, in turns.
const APART: usize = 37;
/// What is later in its capture is left out.
const LONGEST: Interval = Interval::from_secs(600);

/// Where the ethertype is, and the second bytes of IPv4's addresses.
const ETHERTYPE: usize = 12;
const NETWORKS: [usize; 2] = [27, 31];

/// A packet of one of the captures.
struct Played {
    time: Time,
    wire_len: u32,
    bytes: Vec<u8>,
}

/// Writes what Ethernet packets these captures hold as one; whether there are any. A capture ends where it is
/// damaged.
pub(super) fn write(captures: &[PathBuf], to: &Path) -> anyhow::Result<bool> {
    let mut all = Vec::new();
    for (at, capture) in captures.iter().enumerate() {
        let begin = Time::from_secs(START + (at * APART % WITHIN) as i64);
        if let Ok(reader) = Reader::open(capture) {
            play(reader, begin, &mut all);
        }
    }
    all.sort_by_key(|p: &Played| p.time);
    let mut writer = Writer::create(to, WriteOptions::default())?;
    for played in &mut all {
        let is_v4 = played.bytes.get(ETHERTYPE..=ETHERTYPE + 1) == Some(&[8, 0]);
        let copies = if is_v4 { COPIES } else { 1 };
        for copy in 0..copies {
            // From the copy before to this one: sums of bits that differ.
            let change = if copy == 0 { 0 } else { (copy ^ (copy - 1)) << 4 };
            for at in NETWORKS {
                if let Some(byte) = played.bytes.get_mut(at) {
                    *byte ^= if is_v4 { change } else { 0 };
                }
            }
            writer.write(&Packet {
                time: played.time,
                wire_len: played.wire_len,
                link_type: LinkType::ETHERNET,
                interface: 0,
                number: 0,
                data: &played.bytes,
            })?;
        }
    }
    writer.finish()?;
    Ok(!all.is_empty())
}

fn play(mut reader: Reader, begin: Time, all: &mut Vec<Played>) {
    let mut first = None;
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in batch.iter().filter(|p| p.link_type == LinkType::ETHERNET) {
            let since = packet.time - *first.get_or_insert(packet.time);
            if (Interval::ZERO..LONGEST).contains(&since) {
                let (wire_len, bytes) = (packet.wire_len, packet.data.to_vec());
                all.push(Played { time: begin + since, wire_len, bytes });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::workspace;

    #[test]
    fn captures_are_played_at_once_by_hosts_of_their_own() {
        let sample = workspace::root().join("examples/sample.pcap");
        let to = std::env::temp_dir().join(format!("gannet-crowd-{}.pcap", std::process::id()));
        assert!(write(&[sample.clone(), sample], &to).unwrap());
        let mut reader = Reader::open(&to).unwrap();
        let (mut last, mut networks, mut count) = (Time::ZERO, BTreeSet::new(), 0);
        while let Some(batch) = reader.next_batch().unwrap() {
            for packet in &batch {
                assert!(packet.time >= last);
                last = packet.time;
                count += 1;
                if packet.data[12..14] == [8, 0] {
                    networks.insert(packet.data[27] & 0xf0);
                }
            }
        }
        std::fs::remove_file(to).unwrap();
        assert_eq!((networks.len(), count > 16), (8, true), "{networks:?}");
        assert!(last > Time::from_secs(START + APART as i64));
    }
}
