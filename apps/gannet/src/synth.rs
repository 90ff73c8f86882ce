//! `gannet synth`: generated captures, for trials and tests.

use std::path::PathBuf;

use clap::Subcommand;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::FloodKind;
use gannet_synth::RandomOptions;
use gannet_synth::RandomPackets;

use crate::outcome::Outcome;

/// Generate traffic: the same bytes on every machine.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Traffic,
}

#[derive(Debug, Subcommand)]
enum Traffic {
    /// Some seconds of one host's traffic: DNS, HTTP, mail, NTP, a refused connection, a ping
    Sample {
        /// Output file; the suffix selects the format (.pcap, .pcapng) and compression (.gz, .zst,
        /// .xz, .lz4); - is standard output
        #[arg(value_name = "OUT")]
        file: PathBuf,
    },
    /// Random packets: TCP and UDP over IPv4 and IPv6 with random fields
    Random(RandomArgs),
    /// Unanswered SYNs, each of a separate connection
    SynFlood(Flood),
    /// Established connections without data
    ConnectFlood(Flood),
    /// Datagrams to closed ports, each of a separate connection
    UdpFlood(Flood),
    /// First fragments of incomplete datagrams
    FragmentFlood(Flood),
    /// Connections, each with ten segments above a hole
    SegmentFlood(Flood),
    /// Queries without an answer, sixty ids from each port
    DnsFlood(Flood),
    /// Connections, each with ninety pipelined requests without an answer
    HttpFlood(Flood),
    /// GRE tunnels between new hosts, with new connections inside
    TunnelFlood(Flood),
}

#[derive(Debug, clap::Args)]
struct RandomArgs {
    /// Output file; the suffix selects the format and compression, as above; - is standard output
    #[arg(value_name = "OUT")]
    file: PathBuf,
    /// Number of packets
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100_000)]
    packets: u64,
    /// Generate packets until the file has this many bytes, like 800M or 2G
    #[arg(long, value_name = "BYTES", value_parser = bytes, conflicts_with = "packets")]
    size: Option<u64>,
    /// Seed of the random generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Percentage of IPv6 packets
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    ipv6: u8,
    /// Percentage of UDP packets
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    udp: u8,
    /// Percentage of unusual packets: options, a fragment offset, a tag, a wrong bit, or a truncated
    /// end
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(..=100))]
    odd: u8,
    /// The longest payload
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u16).range(..=65_000))]
    payload: u16,
}

#[derive(Debug, clap::Args)]
struct Flood {
    /// Output file, as for sample
    #[arg(value_name = "OUT")]
    file: PathBuf,
    /// Number of connections, datagrams or ports
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100_000)]
    count: u64,
    /// Frames a second
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Ordinary exchanges in between: HTTP and DNS
    #[arg(long, value_name = "N", default_value_t = 100)]
    ordinary: u64,
    /// Seed of sequence numbers, ports and payloads
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (file, flood) = match &args.what {
        Traffic::Sample { file } => (file, None),
        Traffic::Random(args) => return random(args),
        Traffic::SynFlood(flood) => (&flood.file, Some((FloodKind::Syn, flood))),
        Traffic::ConnectFlood(flood) => (&flood.file, Some((FloodKind::Connections, flood))),
        Traffic::UdpFlood(flood) => (&flood.file, Some((FloodKind::Udp, flood))),
        Traffic::FragmentFlood(flood) => (&flood.file, Some((FloodKind::Fragments, flood))),
        Traffic::SegmentFlood(flood) => (&flood.file, Some((FloodKind::Segments, flood))),
        Traffic::DnsFlood(flood) => (&flood.file, Some((FloodKind::Dns, flood))),
        Traffic::HttpFlood(flood) => (&flood.file, Some((FloodKind::Http, flood))),
        Traffic::TunnelFlood(flood) => (&flood.file, Some((FloodKind::Tunnels, flood))),
    };
    let options = options();
    let mut writer = Writer::create(file, options)?;
    match flood {
        None => gannet_synth::sample().write(&mut writer)?,
        Some((kind, &Flood { count, rate, ordinary, seed, .. })) => {
            gannet_synth::Flood { kind, count, rate, ordinary, seed }.write(&mut writer)?;
        }
    }
    writer.finish()?;
    Ok(Outcome::Done)
}

fn random(args: &RandomArgs) -> anyhow::Result<Outcome> {
    let RandomArgs { seed, ipv6, udp, odd, payload, .. } = *args;
    let random = RandomOptions { seed, ipv6, udp, odd, payload: payload.into() };
    let mut packets = RandomPackets::new(random);
    let options = options();
    let mut writer = Writer::create(&args.file, options)?;
    // Sizes of the headers of a pcap file and of each packet, in bytes.
    let (mut written, header) = (24, 16);
    match args.size {
        Some(size) => {
            while written < size {
                written += header + packets.write_next(&mut writer)? as u64;
            }
        }
        None => {
            for _ in 0..args.packets {
                packets.write_next(&mut writer)?;
            }
        }
    }
    writer.finish()?;
    Ok(Outcome::Done)
}

/// Options of output files: times in microseconds, which every tool reads. There is no input that the file could
/// overwrite, and an interrupted command leaves the packets written so far.
fn options() -> WriteOptions {
    WriteOptions { precision: Some(Precision::Micros), at_once: true, ..WriteOptions::default() }
}

/// Parses a number of bytes, with K, M or G for thousands, millions and billions.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "not a number like 800M or 2G".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("12"), Ok(12));
        assert_eq!(bytes("800M"), Ok(800_000_000));
        assert_eq!(bytes("2g"), Ok(2_000_000_000));
        for wrong in ["", "G", "1T", "-1", "1.5G", "99999999999999999999"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(bytes("99999999999999G"), Err("too large".to_owned()));
    }
}
