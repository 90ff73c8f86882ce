//! The stages to measure.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Access;
use gannet_capture::BATCH_PACKETS;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_filter::Filter;
use gannet_log::Format;
use gannet_log::JsonEncoder;
use gannet_log::JsonTimes;
use gannet_log::Row;
use gannet_log::Selection;
use gannet_log::TsvEncoder;
use gannet_wire::Datagram;
use gannet_wire::protocol;

use super::measure::Work;
use super::measure::cpu_time;
use super::traffic::Traffic;

/// A stage: work that can be repeated.
pub(super) struct Stage<'a> {
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) run: Box<dyn FnMut() -> anyhow::Result<Work> + 'a>,
}

impl<'a> Stage<'a> {
    fn new(
        group: &'static str,
        name: impl Into<String>,
        run: impl FnMut() -> anyhow::Result<Work> + 'a,
    ) -> Self {
        Self { group, name: name.into(), run: Box::new(run) }
    }

    /// Its full name.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

/// The filters to measure: one of a port, one of a bit, one of networks.
const FILTERS: [&str; 3] = [
    "udp port 53",
    "tcp[tcpflags] & tcp-syn != 0",
    "net 10.0.0.0/12 and not (port 80 or port 443)",
];

/// All stages, in the order in which a packet passes them.
pub(super) fn all<'a>(traffic: &'a Traffic, traces: &'a [PathBuf]) -> Vec<Stage<'a>> {
    let mut all = reading(traffic);
    let logs = traffic.folder().join("logs");
    all.push(Stage::new("dissecting", "dns", move || dissect(&traffic.dns)));
    all.push(Stage::new("dissecting", "mixed", || dissect(&traffic.mixed)));
    for text in FILTERS {
        all.push(Stage::new("filtering", text, move || filter(&traffic.mixed, text)));
    }
    for (kind, path) in &traffic.kinds {
        let connection_kinds = ["scan", "bulk", "ping"];
        let group =
            if connection_kinds.contains(&kind.name()) { "connections" } else { "protocol" };
        let logs = logs.clone();
        all.push(Stage::new(group, kind.name(), move || analyze(path, &logs, Format::Tsv)));
    }
    all.extend(writing());
    for (name, format) in [("tsv", Format::Tsv), ("json", Format::Json(JsonTimes::Epoch))] {
        let logs = logs.clone();
        all.push(Stage::new("analysis", name, move || analyze(&traffic.mixed, &logs, format)));
    }
    all.push(Stage::new("analysis", "no logs", || without_logs(&traffic.mixed)));
    all.extend(on_all_cores(&traffic.mixed, "", &logs));
    traces.iter().for_each(|trace| all.extend(of_trace(trace, &logs)));
    all
}

fn reading(traffic: &Traffic) -> Vec<Stage<'_>> {
    let mapped = |name, path| Stage::new("reading", name, move || read(Reader::open(path)?));
    vec![
        mapped("mapped dns", &traffic.dns),
        mapped("mapped", &traffic.mixed),
        mapped("pcapng", &traffic.pcapng),
        Stage::new("reading", "buffered", || buffered(&traffic.mixed)),
        Stage::new("reading", "streamed", || streamed(&traffic.mixed)),
        mapped("gzip", &traffic.gzip),
        mapped("zstd", &traffic.zstd),
        mapped("lz4", &traffic.lz4),
    ]
}

/// One analysis with a thread for each core, and one analysis for each core at once: the latter is
/// the machine's limit if distribution and merging cost nothing.
fn on_all_cores<'a>(path: &'a Path, of: &str, logs: &Path) -> Vec<Stage<'a>> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    if cores == 1 {
        return Vec::new();
    }
    let (dir, dirs) = (logs.to_owned(), logs.to_owned());
    vec![
        Stage::new("analysis", format!("{of}tsv, {cores} threads"), move || {
            analyze_with(path, written(&dir, Format::Tsv)?, cores)
        }),
        Stage::new("analysis", format!("{of}tsv, {cores} at once"), move || {
            concurrently(path, &dirs, cores)
        }),
    ]
}

/// The stages measured on a trace that the user named.
fn of_trace<'a>(trace: &'a Path, logs: &Path) -> Vec<Stage<'a>> {
    let name = trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (tsv, json) = (logs.to_owned(), logs.to_owned());
    let mut all = vec![
        Stage::new("reading", name.clone(), move || read(Reader::open(trace)?)),
        Stage::new("dissecting", name.clone(), move || dissect(trace)),
        Stage::new("filtering", format!("{name} {}", FILTERS[0]), move || {
            filter(trace, FILTERS[0])
        }),
        Stage::new("analysis", format!("{name} tsv"), move || analyze(trace, &tsv, Format::Tsv)),
        Stage::new("analysis", format!("{name} json"), move || {
            analyze(trace, &json, Format::Json(JsonTimes::Epoch))
        }),
    ];
    all.extend(on_all_cores(trace, &format!("{name} "), logs));
    all
}

/// Passes every packet to `inspect`, whose result is kept from the optimiser.
fn each(reader: &mut Reader, mut inspect: impl FnMut(&Packet<'_>) -> u64) -> anyhow::Result<Work> {
    let (mut work, mut sum) = (Work::default(), 0_u64);
    while let Some(batch) = reader.next_batch()? {
        for packet in batch {
            work.packets += 1;
            work.bytes += packet.data.len() as u64;
            sum = sum.wrapping_add(inspect(&packet));
        }
    }
    black_box(sum);
    Ok(work)
}

/// CPU and wall time of reading or dissecting a trace once, in nanoseconds per packet. The trace is opened before the
/// clock starts and closed after it stopped, as the other programs do.
pub(super) fn opened(
    task: &'static str,
    trace: &Path,
) -> impl FnMut() -> anyhow::Result<(f64, f64)> {
    move || {
        let mut reader = Reader::open(trace)?;
        let (started, clock) = (cpu_time(), Instant::now());
        let work = if task == "dissecting" {
            each(&mut reader, |p| headers(p).unwrap_or_default())?
        } else {
            each(&mut reader, record_digest)?
        };
        let packets = work.packets.max(1) as f64;
        let cpu = cpu_time().saturating_sub(started).as_nanos() as f64 / packets;
        Ok((cpu, clock.elapsed().as_nanos() as f64 / packets))
    }
}

/// The number of packets of a trace.
pub(super) fn count(trace: &Path) -> anyhow::Result<u64> {
    Ok(read(Reader::open(trace)?)?.packets)
}

/// Reads the time and the lengths of every packet: the contents of the record headers.
fn read(mut reader: Reader) -> anyhow::Result<Work> {
    each(&mut reader, record_digest)
}

fn record_digest(packet: &Packet<'_>) -> u64 {
    packet.time.as_nanos() as u64 ^ u64::from(packet.wire_len)
}

fn buffered(path: &Path) -> anyhow::Result<Work> {
    read(Reader::from_read(Box::new(File::open(path)?), path)?)
}

/// Reads through a pipe, as from tcpdump. The cost of writing into it is included.
fn streamed(path: &Path) -> anyhow::Result<Work> {
    let (output, mut input) = std::io::pipe()?;
    let mut file = File::open(path)?;
    let feeder = std::thread::spawn(move || {
        let mut block = vec![0; 64 << 10];
        while let Ok(n @ 1..) = file.read(&mut block) {
            if std::io::Write::write_all(&mut input, block.get(..n).unwrap_or_default()).is_err() {
                break;
            }
        }
    });
    let work = read(Reader::from_read(Box::new(output), "pipe")?);
    // If the feeder failed, the capture is truncated, which is reported already.
    feeder.join().unwrap_or_default();
    work
}

/// Dissects every header from link to transport layer: what filters and flow tables need.
fn dissect(path: &Path) -> anyhow::Result<Work> {
    each(&mut Reader::open(path)?, |p| headers(p).unwrap_or_default())
}

#[inline(always)]
fn headers(packet: &Packet<'_>) -> Option<u64> {
    // Like the engine: the usual layers at once, others layer by layer.
    if packet.link_type == gannet_capture::LinkType::ETHERNET
        && let Some((ip, _)) = gannet_wire::plain_ipv4(packet.data, packet.wire_len, false)
    {
        let ports = match ip.protocol {
            protocol::TCP => gannet_wire::tcp(&ip).map(|t| (t.src_port, t.dst_port, t.payload)),
            protocol::UDP => gannet_wire::udp(&ip).map(|u| (u.src_port, u.dst_port, u.payload)),
            _ => Ok((0, 0, ip.payload)),
        };
        return ports.ok().map(digest);
    }
    layers(packet)
}

#[inline(never)]
fn layers(packet: &Packet<'_>) -> Option<u64> {
    let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len).ok()?;
    let Datagram { ip, transport } = decoded.datagram()?;
    let (src, dst) = transport.ports().unwrap_or_default();
    Some(digest((src, dst, transport.payload().unwrap_or(ip.payload))))
}

#[inline(always)]
fn digest((src, dst, payload): (u16, u16, &[u8])) -> u64 {
    u64::from(src) ^ u64::from(dst) << 16 ^ (payload.len() as u64) << 32
}

fn filter(path: &Path, text: &str) -> anyhow::Result<Work> {
    let filter = Filter::parse(text).map_err(|error| anyhow::anyhow!("{error}"))?;
    each(&mut Reader::open(path)?, |p| u64::from(filter.matches(p.link_type.0, p.data, p.wire_len)))
}

fn analyze(path: &Path, logs: &Path, format: Format) -> anyhow::Result<Work> {
    analyze_with(path, written(logs, format)?, 1)
}

/// Options of logs that are written into a folder.
fn written(dir: &Path, format: Format) -> anyhow::Result<gannet_log::Options> {
    std::fs::create_dir_all(dir)?;
    Ok(gannet_log::Options { dir: Some(dir.to_owned()), format, ..gannet_log::Options::default() })
}

/// Several concurrent analyses of one capture, each with its own logs.
fn concurrently(path: &Path, logs: &Path, copies: usize) -> anyhow::Result<Work> {
    let one = |n: usize| analyze(path, &logs.join(n.to_string()), Format::Tsv);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..copies).map(|n| scope.spawn(move || one(n))).collect();
        let mut all = one(0)?;
        for other in others {
            let work = other.join().unwrap_or_else(|e| resume_unwind(e))?;
            all.packets += work.packets;
            all.bytes += work.bytes;
        }
        Ok(all)
    })
}

/// An analysis without logs.
fn without_logs(path: &Path) -> anyhow::Result<Work> {
    let selection = Selection::of(Vec::<String>::new());
    analyze_with(path, gannet_log::Options { selection, ..gannet_log::Options::default() }, 1)
}

/// Analyses a capture as `gannet analyze` does.
fn analyze_with(path: &Path, logs: gannet_log::Options, threads: usize) -> anyhow::Result<Work> {
    let options = Options { ignore_checksums: true, logs, threads, ..Options::default() };
    let mut engine = Engine::new(options);
    let mut reader = Reader::open_by(path, Access::Read)?;
    if threads > 1 {
        reader.set_batch_packets(BATCH_PACKETS);
    }
    let mut work = Work::default();
    while let Some(batch) = reader.next_batch()? {
        work.packets += batch.len() as u64;
        work.bytes += batch.iter().map(|p| p.data.len() as u64).sum::<u64>();
        engine.batch(&batch)?;
    }
    engine.finish()?;
    Ok(work)
}

gannet_log::row! {
    /// A row with a column of every common type, about as wide as one of conn.log.
    struct Sample<'a> = "sample" {
        /// Time of the event.
        ts: Time = "ts",
        /// Uid of the connection.
        uid: &'a [u8] = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// Name of the service.
        service: Option<&'a [u8]> = "service",
        /// Duration.
        duration: Option<Interval> = "duration",
        /// Number of payload bytes.
        bytes: u64 = "bytes",
        /// Number of bytes on the wire.
        wire_bytes: Option<u64> = "wire_bytes",
        /// Whether the originator is local.
        local: bool = "local",
        /// Text of a message.
        words: Option<&'a [u8]> = "words",
    }
}

/// Size of the line buffer, in bytes: longer than any row written here.
const LINE_BYTES: usize = 512;

/// Number of rows in a run of a writer.
const ROWS: u64 = 50_000;

fn writing() -> Vec<Stage<'static>> {
    let mut tsv = Vec::new();
    let mut json = Vec::new();
    vec![
        Stage::new("writing", "tsv", move || {
            Ok(rows(&mut tsv, |room, row| {
                let mut encoder = TsvEncoder::new(room, Sample::LIMITS);
                row.encode(&mut encoder);
                encoder.finish().map_or(0, |(len, _)| len)
            }))
        }),
        Stage::new("writing", "json", move || {
            Ok(rows(&mut json, |room, row| {
                let mut encoder = JsonEncoder::new(room, Sample::LIMITS, JsonTimes::Epoch);
                row.encode(&mut encoder);
                encoder.finish().map_or(0, |(len, _)| len)
            }))
        }),
    ]
}

/// Writes rows into one buffer. In the figures, packets are rows, and bytes are those of the text.
/// `write` writes a line into the given buffer and returns its length.
fn rows(out: &mut Vec<u8>, write: impl Fn(&mut [u8], &Sample<'_>) -> usize) -> Work {
    let (mut bytes, mut len) = (0, 0);
    out.resize((64 << 10) + LINE_BYTES, 0);
    let host = |bits: u32| Addr::v4(bits.to_be_bytes());
    for n in 0..ROWS {
        let server = host(0xc633_6400 | n as u32 & 0xff);
        let client = host(0x0a00_0000 | n as u32);
        let id =
            ConnId { orig_h: client, orig_p: (n % 60_000) as u16, resp_h: server, resp_p: 443 };
        len += write(
            &mut out[len..],
            &Sample {
                ts: Time::from_nanos(1_700_000_000_000_000_000 + n as i64 * 1_234_567),
                uid: b"CHhAvVGS1DHFjwGM9",
                id,
                service: (n % 3 != 0).then_some(b"ssl"),
                duration: (n % 5 != 0).then(|| Interval::from_micros(n as i64 * 17)),
                bytes: n * 977,
                wire_bytes: Some(n * 1_043),
                local: n & 1 == 0,
                words: (n % 4 == 0).then_some(b"www.example.com"),
            },
        );
        // The size of a log's write buffer.
        if len > 64 << 10 {
            bytes += len as u64;
            black_box(&out);
            len = 0;
        }
    }
    Work { packets: ROWS, bytes: bytes + len as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_runs_and_reads_all_packets() {
        let traffic = Traffic::make(60).unwrap();
        let trace = [traffic.mixed.clone()];
        let mut packets = std::collections::BTreeMap::new();
        for mut stage in all(&traffic, &trace) {
            let work = (stage.run)().unwrap_or_else(|e| panic!("{}: {e:#}", stage.name()));
            assert!(work.packets > 0 && work.bytes > work.packets, "{}: {work:?}", stage.name());
            packets.insert(stage.name(), work.packets);
        }
        for name in [
            "reading/buffered",
            "reading/streamed",
            "reading/gzip",
            "reading/zstd",
            "reading/lz4",
            "reading/pcapng",
            "dissecting/mixed",
            "analysis/json",
            "analysis/mixed.pcap tsv",
        ] {
            assert_eq!(packets.get(name), packets.get("reading/mapped"), "{name}");
        }
        let cores = available_parallelism().map_or(1, NonZero::get);
        if cores > 1 {
            let of = |what: &str| packets[&format!("analysis/tsv, {cores} {what}")];
            let all = packets["reading/mapped"];
            assert_eq!((of("threads"), of("at once")), (all, all * cores as u64));
        }
        let folder = traffic.folder().to_owned();
        drop(traffic);
        assert!(!folder.exists());
    }

    #[test]
    fn headers_are_read_to_transport() {
        let frame = gannet_synth::frame::udp(
            "192.0.2.1:53".parse().unwrap(),
            "192.0.2.2:1024".parse().unwrap(),
            1,
            b"abc",
        );
        let packet = Packet {
            time: Time::ZERO,
            wire_len: frame.len() as u32,
            link_type: gannet_capture::LinkType::ETHERNET,
            interface: 0,
            format: gannet_capture::Format::Pcap,
            number: 1,
            data: &frame,
        };
        assert_eq!(headers(&packet), Some(53 | 1024 << 16 | 3 << 32));
    }
}
