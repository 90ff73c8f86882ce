//! The output of packets: one capture, or a sequence of captures.

use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context as _;
use gannet_base::Time;
use gannet_capture::Block;
use gannet_capture::Format;
use gannet_capture::Packet;
use gannet_capture::Precision;
use gannet_capture::Reader;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;

use crate::paths;
use crate::paths::InputFile;

/// The size at which a capture is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Packets(u64),
    /// Bytes before compression.
    Bytes(u64),
    /// Nanoseconds of packet time.
    Time(i64),
}

impl Limit {
    /// Parses a number and its unit: `1000 packets`, `100 MB`, `90 s`, `1 h`.
    pub(super) fn parse(number: &str, unit: &str) -> anyhow::Result<Self> {
        let n: u64 = number.parse().ok().filter(|n| *n > 0).with_context(|| {
            format!("--split expects a number greater than 0 and a unit, not '{number} {unit}'")
        })?;
        let bytes = |scale: u64| n.checked_mul(scale).map(Self::Bytes);
        let time = |seconds: u64| {
            let nanos = n.checked_mul(seconds)?.checked_mul(1_000_000_000)?;
            i64::try_from(nanos).ok().map(Self::Time)
        };
        let limit = match unit {
            "packets" | "packet" | "p" => Some(Self::Packets(n)),
            "bytes" | "byte" | "b" | "B" => bytes(1),
            "kB" => bytes(1_000),
            "MB" => bytes(1_000_000),
            "GB" => bytes(1_000_000_000),
            "KiB" => bytes(1 << 10),
            "MiB" => bytes(1 << 20),
            "GiB" => bytes(1 << 30),
            "time" | "seconds" | "s" => time(1),
            "minutes" | "min" | "m" => time(60),
            "hours" | "h" => time(3600),
            "days" | "d" => time(86_400),
            _ => anyhow::bail!(
                "--split expects the unit packets, bytes (kB, MB, GB) or time (s, min, h, d), not '{unit}'"
            ),
        };
        limit.with_context(|| format!("--split: {number} {unit} is too large"))
    }
}

/// Maximum number of bytes of a section's blocks that are repeated in each capture.
const MAX_SECTION: usize = 16 << 20;

/// One capture, or a sequence of captures.
pub(super) struct Sink {
    path: PathBuf,
    options: WriteOptions,
    limit: Option<Limit>,
    /// Input files, which must not be overwritten.
    inputs: Rc<[InputFile]>,
    writer: Option<Writer>,
    /// Number of captures created.
    count: u64,
    /// End of the current capture, for limits of time.
    until: Time,
    /// Blocks of the input other than packets that are not written yet.
    blocks: VecDeque<Rc<Block>>,
    /// Such blocks of the current section, for later captures.
    section: Vec<Rc<Block>>,
}

impl Sink {
    pub(super) fn new(
        path: &Path,
        limit: Option<Limit>,
        options: WriteOptions,
        inputs: Rc<[InputFile]>,
    ) -> anyhow::Result<Self> {
        let path = path.to_owned();
        anyhow::ensure!(
            limit.is_none() || path != Path::new("-"),
            "standard output cannot be split; use -w FILE"
        );
        let until = Time::from_nanos(0);
        let (blocks, section) = (VecDeque::new(), Vec::new());
        let mut sink =
            Self { path, options, limit, inputs, writer: None, count: 0, until, blocks, section };
        if limit.is_none() {
            sink.writer = Some(sink.create(&sink.path)?);
        }
        Ok(sink)
    }

    fn create(&self, path: &Path) -> anyhow::Result<Writer> {
        InputFile::refuse(&self.inputs, path)?;
        paths::refuse_suffix(path)?;
        Ok(Writer::create(path, self.options.clone())?)
    }

    /// Adds a block of the input other than a packet.
    pub(super) fn keep(&mut self, block: &Rc<Block>) {
        if self.options.as_blocks {
            self.blocks.push_back(Rc::clone(block));
        }
    }

    /// Writes a packet; `block` is its pcapng block if that is to be written unchanged.
    pub(super) fn write(
        &mut self,
        packet: &Packet<'_>,
        block: Option<&[u8]>,
    ) -> anyhow::Result<()> {
        self.write_blocks(packet.number)?;
        if let Some(limit) = self.limit {
            self.start_next_if_full(limit, packet)?;
        }
        if let Some(writer) = &mut self.writer {
            match block.filter(|_| self.options.as_blocks) {
                Some(block) => writer.add_block(block, true)?,
                None => writer.write(packet)?,
            }
        }
        Ok(())
    }

    /// Writes the blocks that precede the packet of this number.
    fn write_blocks(&mut self, number: u64) -> anyhow::Result<()> {
        while let Some(block) = self.blocks.pop_front_if(|b| b.before < number) {
            if let Some(writer) = &mut self.writer {
                writer.add_block(&block.bytes, false)?;
            }
            if self.limit.is_some() {
                if block.is_section() {
                    self.section.clear();
                }
                let had: usize = self.section.iter().map(|b| b.bytes.len()).sum();
                if had + block.bytes.len() <= MAX_SECTION {
                    self.section.push(block);
                }
            }
        }
        Ok(())
    }

    /// Starts the next capture if this packet exceeds the limit of the current one.
    fn start_next_if_full(&mut self, limit: Limit, packet: &Packet<'_>) -> anyhow::Result<()> {
        let full = match (&self.writer, limit) {
            (None, _) => true,
            (Some(w), Limit::Packets(n)) => w.packets() >= n,
            (Some(w), Limit::Bytes(n)) => {
                w.packets() > 0 && w.bytes().saturating_add(packet.data.len() as u64 + 16) > n
            }
            (Some(_), Limit::Time(_)) => packet.time >= self.until,
        };
        if !full {
            return Ok(());
        }
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        if let Limit::Time(span) = limit {
            let now = packet.time.as_nanos();
            // Captures start at multiples of the span after the first packet.
            let begin = if self.count == 0 { now } else { self.until.as_nanos() };
            let spans = now.saturating_sub(begin).div_euclid(span);
            let until = begin.saturating_add(spans.saturating_add(1).saturating_mul(span));
            self.until = Time::from_nanos(until);
        }
        self.count += 1;
        let path = numbered(&self.path, self.count);
        let mut writer = self.create(&path)?;
        for block in &self.section {
            writer.add_block(&block.bytes, false)?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// Discards the output: an existing file of this name stays.
    pub(super) fn discard(self) {
        if let Some(writer) = self.writer {
            writer.discard();
        }
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.write_blocks(u64::MAX)?;
        if let Some(writer) = self.writer {
            writer.finish()?;
        }
        Ok(())
    }
}

/// The path of a capture of a sequence, with the number before the first suffix: `web-0001.pcap.gz`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, suffix) = match name.get(1..).and_then(|n| n.find('.')) {
        Some(at) => name.split_at(at + 1),
        None => (&*name, ""),
    };
    path.with_file_name(format!("{stem}-{number:04}{suffix}"))
}

/// Options for writing packets of these files. The time precision of a single pcap file is kept, so that its packets
/// stay the same bytes.
pub(crate) fn like(files: &[PathBuf]) -> WriteOptions {
    // Output for the input of a pipe may be read while it grows.
    let at_once = !files.iter().all(|f| f.is_file() || f.is_dir());
    let mut options = WriteOptions { encoder_thread: true, at_once, ..WriteOptions::default() };
    if let [file] = files
        && file.is_file()
        && let Ok(reader) = Reader::open(file)
        && reader.format() == Format::Pcap
        && let [interface] = reader.interfaces()
    {
        if interface.digits <= 6 {
            options.precision = Some(Precision::Micros);
        }
        options.snaplen = Some(interface.snaplen).filter(|s| *s > 0);
        options.link_type = Some(interface.link_type);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_words() {
        assert_eq!(Limit::parse("10", "packets").unwrap(), Limit::Packets(10));
        assert_eq!(Limit::parse("2", "MB").unwrap(), Limit::Bytes(2_000_000));
        assert_eq!(Limit::parse("1", "min").unwrap(), Limit::Time(60_000_000_000));
        for (number, unit) in [("0", "s"), ("x", "s"), ("1", "furlongs"), (&"9".repeat(19), "d")] {
            assert!(Limit::parse(number, unit).is_err(), "{number} {unit}");
        }
    }

    #[test]
    fn numbers_precede_suffixes() {
        let of = |name: &str| numbered(Path::new(name), 7).display().to_string();
        assert_eq!(of("a/web.pcap.gz"), "a/web-0007.pcap.gz");
        assert_eq!(of("web"), "web-0007");
        assert_eq!(of(".hidden"), ".hidden-0007");
    }
}
