//! The published cases of libpcap: what it accepts and refuses, and with what words, and how long
//! its programs are. The percentages are kept beside; they may rise, never fall.
//!
//! The cases lie in `filters` below `GANNET_SHARED` or `../shared`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use gannet_filter::{Options, Program, Resolver, compile, dlt};

/// The fixture that the cases' names are of.
#[derive(Default)]
struct Names {
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

/// The strings of a line of JSON under a key: one, or those of a list.
fn strings(json: &str, key: &str) -> Vec<String> {
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

fn string(json: &str, key: &str) -> String {
    strings(json, key).into_iter().next().unwrap_or_default()
}

fn folder() -> Option<PathBuf> {
    let below = std::env::var_os("GANNET_SHARED").map(PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    Some(below.unwrap_or(root).join("filters")).filter(|f| f.join("accept.jsonl").is_file())
}

fn names(text: &str) -> Names {
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

fn attempt(json: &str, names: &Names) -> Result<Program, String> {
    let number = |key: &str| -> Option<u32> {
        let at = json.find(&format!("\"{key}\":"))? + key.len() + 3;
        let digits: String =
            json[at..].trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let netmask = string(json, "netmask").parse::<std::net::Ipv4Addr>().ok().map(u32::from);
    let options = Options {
        snaplen: number("snaplen").unwrap_or(262_144),
        netmask,
        optimize: json.contains("\"optimize\": true"),
        kernel: json.contains("\"linuxext\": 1"),
        offline: false,
    };
    let link = dlt::by_name(&string(json, "dlt")).ok_or("link type")?;
    compile(&string(json, "expr"), link, &options, names)
        .map(|c| c.program().clone())
        .map_err(|e| e.message().to_owned())
}

/// The numbers of a list under a key, as whether they are zero.
fn numbers(json: &str, key: &str) -> Vec<bool> {
    let Some((_, rest)) = json.split_once(&format!("\"{key}\": [")) else { return Vec::new() };
    let list = rest.split(']').next().unwrap();
    list.split(',').filter(|n| !n.trim().is_empty()).map(|n| n.trim() != "0").collect()
}

/// What our program says of every packet of a capture.
fn verdicts(json: &str, file: &std::path::Path, names: &Names) -> Vec<bool> {
    let options = Options {
        optimize: json.contains("\"optimize\": true"),
        offline: true,
        netmask: string(json, "netmask").parse::<std::net::Ipv4Addr>().ok().map(u32::from),
        ..Options::default()
    };
    let mut out = Vec::new();
    let mut reader = gannet_capture::Reader::open(file).unwrap();
    let mut program = None;
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in batch.iter() {
            let program = program.get_or_insert_with(|| {
                let link = dlt::of_file(packet.link_type.0);
                compile(&string(json, "expr"), link, &options, names)
                    .ok()
                    .map(|c| c.program().clone())
            });
            let run = |p: &Program| p.run(packet.data, packet.wire_len) != 0;
            out.push(program.as_ref().is_some_and(run));
        }
    }
    out
}

#[test]
fn cases() {
    let Some(folder) = folder() else {
        eprintln!("skipped: no cases: set GANNET_SHARED to where filters/accept.jsonl lies");
        return;
    };
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let names = names(&read("names.json"));
    let show = std::env::var_os("GANNET_SHOW").is_some();
    let (mut accepted, mut all, mut short, mut optimized) = (0, 0, 0, 0);
    for json in read("accept.jsonl").lines() {
        all += 1;
        match attempt(json, &names) {
            Ok(program) => {
                accepted += 1;
                if json.contains("\"optimize\": true") {
                    optimized += 1;
                    let theirs = strings(json, "program").len();
                    short += usize::from(program.insns().len() <= theirs);
                    if show && program.insns().len() > theirs {
                        eprintln!(
                            "long {} {theirs}: {}",
                            program.insns().len(),
                            string(json, "expr")
                        );
                    }
                }
            }
            Err(e) if show => {
                eprintln!("refused: {} {:?} {e}", string(json, "dlt"), string(json, "expr"));
            }
            Err(_) => (),
        }
    }
    let (mut refused, mut told, mut bad) = (0, 0, 0);
    for json in read("reject.jsonl").lines() {
        bad += 1;
        let expected = string(json, "message");
        match attempt(json, &names) {
            Err(message) => {
                refused += 1;
                told += usize::from(message.contains(&expected));
                if show && !message.contains(&expected) {
                    eprintln!("told {message:?}, not {expected:?}: {}", string(json, "expr"));
                }
            }
            Ok(_) if show => {
                eprintln!(
                    "accepted: {} {:?} {expected}",
                    string(json, "dlt"),
                    string(json, "expr")
                );
            }
            Ok(_) => (),
        }
    }
    let (mut same, mut applied) = (0, 0);
    for json in read("apply.jsonl").lines() {
        applied += 1;
        let file = folder.join("captures").join(string(json, "savefile"));
        if verdicts(json, &file, &names) == numbers(json, "verdicts") {
            same += 1;
        } else if show {
            eprintln!("verdicts: {} of {}", string(json, "expr"), string(json, "savefile"));
        }
    }
    let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
    let now = [
        ("accepted", percent(accepted, all)),
        ("refused", percent(refused, bad)),
        ("message", percent(told, bad)),
        ("no longer", percent(short, optimized)),
        ("verdicts", percent(same, applied)),
    ];
    for (name, value) in now {
        eprintln!("{name} {value:.2}");
    }
    for line in include_str!("cases.snapshot").lines() {
        let Some((name, least)) = line.rsplit_once(' ') else { continue };
        let least: f64 = least.parse().unwrap();
        let value = now.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(value + 0.01 >= least, "{name} fell from {least} to {value:.2}");
    }
}
