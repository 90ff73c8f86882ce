//! A summary of a capture, computed from its record headers alone.

use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use gannet_base::Interval;
use gannet_base::Time;

use crate::Compression;
use crate::Endian;
use crate::Error;
use crate::Format;
use crate::Interface;
use crate::Origin;
use crate::Reader;
use crate::json::Object;

/// A summary of one capture. Its [`Display`](fmt::Display) is a table for readers, [`Info::json`]
/// an object for programs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Info {
    /// The path as given.
    pub file: PathBuf,
    /// Its size on disk in bytes; `None` for pipes and similar inputs.
    pub file_bytes: Option<u64>,
    /// The capture's format.
    pub format: Format,
    /// Its compression.
    pub compression: Option<Compression>,
    /// Byte order; that of the last section if the capture has several.
    pub endian: Endian,
    /// Number of packets before any damage.
    pub packets: u64,
    /// Number of captured bytes of all packets.
    pub kept_bytes: u64,
    /// Number of bytes of all packets on the wire.
    pub wire_bytes: u64,
    /// Number of packets that were truncated by the snap length.
    pub sliced: u64,
    /// The earliest packet time, which need not be that of the first packet.
    pub earliest: Option<Time>,
    /// The latest packet time.
    pub latest: Option<Time>,
    /// Whether no packet is earlier than its predecessor.
    pub ordered: bool,
    /// The interfaces, each with its number of packets.
    pub interfaces: Vec<(Interface, u64)>,
    /// Facts about the origin of the capture, from its headers.
    pub origin: Origin,
    /// The damage at which reading stopped.
    pub damage: Option<Error>,
}

impl Info {
    /// Opens a capture and reads it to its end; `-` is standard input.
    ///
    /// # Errors
    /// Those of [`Reader::open`]. Later damage is not an error: it is stored in [`Info::damage`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self::read(Reader::open(path)?))
    }

    /// Reads the remaining packets of a capture.
    pub fn read(mut reader: Reader) -> Self {
        let (mut packets, mut kept_bytes, mut wire_bytes, mut sliced) = (0, 0, 0, 0);
        let (mut earliest, mut latest, mut before) = (i64::MAX, i64::MIN, i64::MIN);
        let mut ordered = true;
        let mut counts: Vec<u64> = Vec::new();
        let damage = loop {
            match reader.read_batch() {
                Ok(true) => {}
                Ok(false) => break None,
                Err(e) => break Some(e),
            }
            counts.resize(reader.interfaces().len(), 0);
            let no_times = reader.format() == Format::PcapNg;
            for r in reader.refs() {
                packets += 1;
                kept_bytes += u64::from(r.cap_len);
                wire_bytes += u64::from(r.wire_len);
                sliced += u64::from(r.cap_len < r.wire_len);
                if let Some(count) = counts.get_mut(usize::from(r.interface())) {
                    *count += 1;
                }
                // Simple Packet Blocks have no time stamp.
                if r.time != 0 || !no_times {
                    earliest = earliest.min(r.time);
                    latest = latest.max(r.time);
                    ordered &= r.time >= before;
                    before = r.time;
                }
            }
        };
        counts.resize(reader.interfaces().len(), 0);
        let timed = earliest <= latest;
        Self {
            file: reader.file().to_owned(),
            file_bytes: reader.bytes_total(),
            format: reader.format(),
            compression: reader.compression(),
            endian: reader.endian(),
            packets,
            kept_bytes,
            wire_bytes,
            sliced,
            earliest: timed.then_some(Time::from_nanos(earliest)),
            latest: timed.then_some(Time::from_nanos(latest)),
            ordered,
            interfaces: reader.interfaces().iter().cloned().zip(counts).collect(),
            origin: reader.origin().clone(),
            damage,
        }
    }

    /// Time from the earliest packet to the latest one; 0 without times.
    pub fn duration(&self) -> Interval {
        match (self.earliest, self.latest) {
            (Some(a), Some(b)) => b - a,
            _ => Interval::ZERO,
        }
    }

    /// Packets per second; `None` if the duration is 0.
    pub fn packet_rate(&self) -> Option<f64> {
        self.rate(self.packets)
    }

    /// Wire bytes per second; `None` if the duration is 0.
    pub fn byte_rate(&self) -> Option<f64> {
        self.rate(self.wire_bytes)
    }

    fn rate(&self, amount: u64) -> Option<f64> {
        let secs = self.duration().as_secs_f64();
        (secs > 0.0).then(|| amount as f64 / secs)
    }

    /// Mean number of bytes of a packet on the wire; `None` without packets.
    pub fn average_size(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.wire_bytes as f64 / self.packets as f64)
    }

    /// The highest time resolution of the interfaces, in decimal digits of a second: usually 6 or
    /// 9.
    pub fn digits(&self) -> u8 {
        self.interfaces.iter().map(|(i, _)| i.digits).max().unwrap_or(6)
    }

    /// A JSON object, without a line end.
    pub fn json(&self) -> String {
        let mut o = Object::new();
        o.text("file", &self.file.to_string_lossy());
        o.number("file_bytes", self.file_bytes);
        o.text("format", self.format.name());
        o.text("byte_order", self.endian.name());
        o.maybe("compression", self.compression.map(Compression::name));
        o.number("time_digits", Some(self.digits()));
        o.number("packets", Some(self.packets));
        o.number("wire_bytes", Some(self.wire_bytes));
        o.number("kept_bytes", Some(self.kept_bytes));
        o.number("sliced_packets", Some(self.sliced));
        o.maybe("earliest", self.earliest.map(|t| date(t, 9)).as_deref());
        o.maybe("latest", self.latest.map(|t| date(t, 9)).as_deref());
        o.number("earliest_epoch", self.earliest.map(|t| decimal(t.as_nanos())));
        o.number("latest_epoch", self.latest.map(|t| decimal(t.as_nanos())));
        o.number("duration", Some(decimal(self.duration().as_nanos())));
        o.number("packets_per_second", self.packet_rate().map(|r| format!("{r:.3}")));
        o.number("bytes_per_second", self.byte_rate().map(|r| format!("{r:.3}")));
        o.number("average_packet_bytes", self.average_size().map(|s| format!("{s:.3}")));
        o.number("time_ordered", Some(self.ordered));
        o.number("sections", Some(self.origin.sections));
        o.maybe("hardware", self.origin.hardware.as_deref());
        o.maybe("os", self.origin.os.as_deref());
        o.maybe("application", self.origin.application.as_deref());
        o.texts("comments", &self.origin.comments);
        o.objects(
            "interfaces",
            self.interfaces.iter().map(|(i, packets)| {
                let mut o = Object::new();
                o.number("link_type", Some(i.link_type.0));
                o.text("encapsulation", i.link_type.name());
                o.number("snaplen", Some(i.snaplen));
                o.number("time_digits", Some(i.digits));
                o.number("packets", Some(*packets));
                o.number("speed", i.speed);
                o.maybe("name", i.name.as_deref());
                o.maybe("description", i.description.as_deref());
                o.maybe("filter", i.filter.as_deref());
                o.maybe("os", i.os.as_deref());
                o.maybe("hardware", i.hardware.as_deref());
                o.maybe("comment", i.comment.as_deref());
                o
            }),
        );
        o.maybe("damage", self.damage.as_ref().map(Error::to_string).as_deref());
        o.finish()
    }

    /// Link types in the order of the interfaces, without duplicates.
    fn link_types(&self) -> Vec<crate::LinkType> {
        let mut all = Vec::new();
        for (interface, _) in &self.interfaces {
            if !all.contains(&interface.link_type) {
                all.push(interface.link_type);
            }
        }
        all
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &dyn fmt::Display| writeln!(f, "{name:<16}{value}");
        row("file", &self.file.display())?;
        let digits = usize::from(self.digits().min(9));
        let wrapped = self.compression.map(|c| format!(", {} compressed", c.name()));
        let order = self.endian.name();
        row(
            "format",
            &format_args!(
                "{}, {order} endian, times to {digits} digits{}",
                self.format.name(),
                wrapped.unwrap_or_default()
            ),
        )?;
        if let Some(bytes) = self.file_bytes {
            row("size", &format_args!("{bytes} bytes"))?;
        }
        let types: Vec<String> = self.link_types().iter().map(ToString::to_string).collect();
        row("encapsulation", &types.join(", "))?;
        row("packets", &self.packets)?;
        row("data", &format_args!("{} bytes on the wire", self.wire_bytes))?;
        if self.sliced > 0 {
            row("kept", &format_args!("{} bytes; {} packets cut", self.kept_bytes, self.sliced))?;
        }
        if let (Some(first), Some(last)) = (self.earliest, self.latest) {
            row("earliest", &date(first, digits))?;
            row("latest", &date(last, digits))?;
            row("duration", &format_args!("{} s", decimal(self.duration().as_nanos())))?;
        }
        if let (Some(packets), Some(bytes)) = (self.packet_rate(), self.byte_rate()) {
            row("rate", &format_args!("{packets:.1} packets/s, {:.0} bit/s", bytes * 8.0))?;
        }
        if let Some(size) = self.average_size() {
            row("average size", &format_args!("{size:.1} bytes"))?;
        }
        row("time order", &if self.ordered { "strict" } else { "broken" })?;
        for (name, value) in [
            ("hardware", &self.origin.hardware),
            ("system", &self.origin.os),
            ("application", &self.origin.application),
        ] {
            if let Some(value) = value {
                row(name, &Plain(value))?;
            }
        }
        for comment in &self.origin.comments {
            row("comment", &Plain(comment))?;
        }
        for (index, (i, packets)) in self.interfaces.iter().enumerate() {
            let name = i.name.as_deref().or(i.description.as_deref()).unwrap_or("unnamed");
            row(
                &format!("interface {index}"),
                &format_args!(
                    "{}, {}, snaplen {}, {packets} packets",
                    Plain(name),
                    i.link_type,
                    i.snaplen
                ),
            )?;
        }
        if let Some(damage) = &self.damage {
            row("damage", damage)?;
        }
        Ok(())
    }
}

/// Text from a capture; displayed without terminal control characters.
struct Plain<'a>(&'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            use fmt::Write;
            f.write_char(if c.is_control() { ' ' } else { c })
        })
    }
}

/// Formats nanoseconds as seconds with nine digits.
fn decimal(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Formats a UTC time as in RFC 3339, with `digits` fractional digits.
fn date(time: Time, digits: usize) -> String {
    let secs = time.as_nanos().div_euclid(1_000_000_000);
    let nanos = format!("{:09}", time.as_nanos().rem_euclid(1_000_000_000));
    let fraction = nanos.get(..digits.clamp(1, 9)).unwrap_or_default();
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (h, m, s) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{fraction}Z")
}

/// Year, month and day of a day number counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the leap day is the last of its year, and are counted from the
    // start of a cycle of 400 years (146,097 days).
    let from_0000_03_01 = days + 719_468;
    let cycle = from_0000_03_01.div_euclid(146_097);
    let day = from_0000_03_01.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // The months from March on have 31, 30, 31, 30, 31 days, repeated: 153 days in five months.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::Packet;
    use crate::test::written;

    fn packet(secs: i64, nanos: i64, data: &[u8], wire_len: u32) -> Packet<'_> {
        Packet {
            time: Time::from_nanos(secs * 1_000_000_000 + nanos),
            wire_len,
            link_type: LinkType::ETHERNET,
            interface: 0,
            format: Format::Pcap,
            number: 0,
            data,
        }
    }

    #[test]
    fn dates_are_gregorian() {
        let t = |s| date(Time::from_secs(s), 1);
        assert_eq!(t(0), "1970-01-01T00:00:00.0Z");
        assert_eq!(t(951_782_400), "2000-02-29T00:00:00.0Z");
        assert_eq!(t(4_107_542_399), "2100-02-28T23:59:59.0Z");
        assert_eq!(t(4_107_542_400), "2100-03-01T00:00:00.0Z");
        assert_eq!(t(-1), "1969-12-31T23:59:59.0Z");
        assert_eq!(date(Time::from_nanos(-1), 9), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(decimal(-1_500_000_000), "-1.500000000");
    }

    #[test]
    fn counts_times_and_order() {
        let packets =
            [packet(100, 5, b"abc", 1000), packet(102, 5, b"abcd", 4), packet(101, 0, b"", 0)];
        let file = written("info.pcapng", &packets);
        let info = Info::read(Reader::from_read(Box::new(&*file.leak()), "x").unwrap());
        assert_eq!((info.packets, info.kept_bytes, info.wire_bytes), (3, 7, 1004));
        assert_eq!((info.sliced, info.ordered), (1, false));
        assert_eq!(info.duration(), Interval::from_secs(2));
        assert_eq!(info.earliest, Some(Time::from_nanos(100_000_000_005)));
        assert_eq!(info.packet_rate(), Some(1.5));
        assert_eq!(info.interfaces.len(), 1);
        assert_eq!(info.interfaces[0].1, 3);
        let text = info.to_string();
        assert!(text.contains("earliest        1970-01-01T00:01:40.000000005Z\n"), "{text}");
        assert!(text.contains("time order      broken\n"), "{text}");
        let json = info.json();
        assert!(json.starts_with(r#"{"file":"x","file_bytes":null,"format":"pcapng","#), "{json}");
        assert!(json.contains(r#""earliest_epoch":100.000000005,"#), "{json}");
        assert!(json.contains(r#""interfaces":[{"link_type":1,"encapsulation":"ETHERNET","#));
        assert!(json.ends_with(r#""damage":null}"#), "{json}");
    }

    #[test]
    fn an_empty_capture_has_no_times() {
        let file = written("empty.pcap", &[]);
        let info = Info::read(Reader::from_read(Box::new(&*file.leak()), "x").unwrap());
        assert_eq!((info.packets, info.earliest, info.packet_rate()), (0, None, None));
        assert!(info.ordered && info.damage.is_none());
    }

    #[test]
    fn damage_is_reported_and_counted_up_to() {
        let mut file = written("cut.pcap", &[packet(1, 0, b"abc", 3), packet(2, 0, b"abc", 3)]);
        file.pop();
        let info = Info::read(Reader::from_read(Box::new(&*file.leak()), "cut").unwrap());
        assert_eq!(info.packets, 1);
        let text = info.to_string();
        assert!(text.contains("damage          cut: cut short in packet 2, byte 43: "), "{text}");
    }
}
