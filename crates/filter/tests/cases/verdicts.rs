//! gannet's program compared with libpcap's, on packets of real captures and on generated ones that
//! satisfy many tests of both programs, truncated to every length.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gannet_filter::proof::{Prober, Random};
use gannet_filter::{Program, compile, dlt};

use super::data::{cases, names, options, shared, string, strings};

/// Number of packets of each link type, taken in turn from the captures that have it.
const PACKETS: usize = 600;
/// Maximum number of packets from one capture.
const MAX_PER_CAPTURE: usize = 40;

/// Packets and their lengths on the wire.
type Packets = Vec<(Vec<u8>, u32)>;

fn captures(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            captures(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// Packets of each link type.
fn samples() -> HashMap<u16, Packets> {
    let mut files = Vec::new();
    for folder in ["filters/captures", "conformance/captures"] {
        captures(&shared("").unwrap_or_default().join(folder), &mut files);
    }
    let mut out: HashMap<u16, Packets> = HashMap::new();
    for file in files {
        let Ok(mut reader) = gannet_capture::Reader::open(&file) else { continue };
        let mut taken = 0;
        while let Ok(Some(batch)) = reader.next_batch()
            && taken < MAX_PER_CAPTURE
        {
            for packet in batch.iter().take(MAX_PER_CAPTURE - taken) {
                taken += 1;
                let of = out.entry(dlt::of_file(packet.link_type.0)).or_default();
                if of.len() < PACKETS {
                    of.push((packet.data.to_vec(), packet.wire_len));
                }
            }
        }
    }
    out
}

/// Whether libpcap's program was optimized, which may accept packets that lack bytes.
fn shortened(json: &str) -> bool {
    json.contains("\"optimize\": true")
}

#[test]
fn verdicts_are_those_of_libpcap() {
    let Some(accept) = cases("accept.jsonl") else {
        eprintln!("skipped: no cases: set GANNET_SHARED to where filters/accept.jsonl lies");
        return;
    };
    let names = names(&cases("names.json").unwrap());
    let show = std::env::var_os("GANNET_SHOW").is_some();
    let samples = samples();
    let none = Packets::new();
    let (mut all, mut same, mut same_cut, mut runs) = (0_usize, 0, 0, 0_u64);
    for (seed, json) in accept.lines().enumerate() {
        all += 1;
        let expression = string(json, "expr");
        let link = dlt::by_name(&string(json, "dlt")).unwrap();
        let theirs = Program::from_text(&strings(json, "program").join("\n")).unwrap();
        let Ok(ours) = compile(&expression, link, &options(json), &names) else { continue };
        let ours = ours.program();
        let packets = samples.get(&link).unwrap_or(&none);
        let differs = |data: &[u8], wire: u32| theirs.run(data, wire) != ours.run(data, wire);
        let wrong = packets.iter().find(|(data, wire)| differs(data, *wire));
        runs += packets.len() as u64;
        same += usize::from(wrong.is_none());
        if show && let Some((data, _)) = wrong {
            eprintln!("verdict: {} {expression:?} on {data:02x?}", string(json, "dlt"));
        }
        let (mut prober, mut random) = (Prober::new(seed as u64), Random::new(seed as u64));
        let mut cut = None;
        for round in 0..12 {
            let guide = if round % 2 == 0 { &theirs } else { ours };
            let sample = packets.get(random.below(packets.len())).map(|(data, _)| &data[..]);
            let (data, wire, reach) = prober.packet(guide, sample);
            let from = if shortened(json) { data.len() } else { 0 };
            for length in (from..=reach).chain([data.len()]) {
                runs += 1;
                if differs(&data[..length], wire) {
                    cut.get_or_insert_with(|| data[..length].to_vec());
                }
            }
        }
        same_cut += usize::from(cut.is_none());
        if show && let Some(data) = cut {
            eprintln!("cut: {} {expression:?} on {data:02x?}", string(json, "dlt"));
        }
    }
    eprintln!("{runs} verdicts compared");
    let percent = |part: usize| part as f64 * 100.0 / all as f64;
    super::check_percentages(&[
        ("same verdicts", percent(same)),
        ("same on cut packets", percent(same_cut)),
    ]);
}
