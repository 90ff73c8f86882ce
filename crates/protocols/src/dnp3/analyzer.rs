use gannet_base::Dir;

use super::events::*;
use super::frame;
use super::frame::HEADER_LEN;
use super::frame::LINK_FIELDS_LEN;
use super::frame::Link;
use super::frame::Malformed;
use super::objects;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::OutOfBound;

/// Maximum length of a frame in bytes: a header of 10 bytes, and 250 bytes of data in 16 blocks with checksums of two bytes.
const MAX_FRAME: usize = 300;

/// Maximum length of a message, in bytes. Outstations send at most 2,048.
const MAX_MESSAGE: usize = 1 << 16;

/// The analyzer of one TCP connection.
pub struct Tcp(Analyzer);

/// The analyzer of one UDP connection.
pub struct Udp(Analyzer);

struct Analyzer {
    tag: Tag,
    side: [Side; 2],
    rows: Rows,
    /// The analysis has ended.
    done: bool,
    /// A parse error ended the analysis: an exception in Zeek.
    thrown: bool,
}

#[derive(Default)]
struct Side {
    buffer: Vec<u8>,
    link: Option<Link>,
    /// Data of the message so far, without link and transport headers.
    application: Vec<u8>,
    /// The first frame of the message was seen.
    first_seen: bool,
    /// The header of a frame of the message was seen.
    has_header: bool,
}

/// Why the analysis of the connection ends. The error has already been reported.
#[derive(PartialEq, Eq)]
enum Stop {
    /// Further data is ignored.
    Skip,
    /// A parse error, for which Zeek throws an exception.
    Thrown,
}

impl Tcp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self(Analyzer::new(Tag::Dnp3Tcp))
    }
}

impl Udp {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self(Analyzer::new(Tag::Dnp3Udp))
    }
}

impl Analyzer {
    fn new(tag: Tag) -> Self {
        Self { tag, side: Default::default(), rows: Rows::default(), done: false, thrown: false }
    }

    fn data(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        // As in Zeek, all datagrams from before the detection of the protocol are analyzed, until one has a parse error.
        let is_analyzed = !self.done || cx.env.is_replaying && !self.thrown;
        if is_analyzed && let Err(stop) = self.frames(cx, from, data) {
            self.done = true;
            self.thrown = stop == Stop::Thrown;
        }
    }

    fn frames(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) -> Result<(), Stop> {
        while !data.is_empty() {
            let side = &mut self.side[from.index()];
            let link = match side.link {
                Some(link) => link,
                None => {
                    let Some(header) = side.fill(HEADER_LEN, &mut data) else { return Ok(()) };
                    let Some(header) = header.first_chunk::<HEADER_LEN>() else {
                        return Err(Stop::Skip);
                    };
                    let parsed = Link::parse(header);
                    let link = self.header(cx, from, parsed)?;
                    if link.is_bare() {
                        // As in Zeek, the rest of the segment is ignored. The data of an incomplete
                        // message is kept, although the next frame must be a first one.
                        let side = &mut self.side[from.index()];
                        let application = std::mem::take(&mut side.application);
                        *side = Side { application, ..Side::default() };
                        return Ok(());
                    }
                    self.side[from.index()].link = Some(link);
                    link
                }
            };
            let total = link
                .frame_len()
                .filter(|n| *n >= HEADER_LEN && *n <= MAX_FRAME)
                .ok_or(Stop::Skip)?;
            let side = &mut self.side[from.index()];
            if side.fill(total, &mut data).is_none() {
                return Ok(());
            }
            let frame = std::mem::take(&mut side.buffer);
            side.link = None;
            self.frame(cx, from, link, &frame)?;
        }
        Ok(())
    }

    fn header(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        parsed: Result<Link, Malformed>,
    ) -> Result<Link, Stop> {
        let link = match parsed {
            Ok(link) => link,
            Err(Malformed::Start) => {
                self.weird(cx, "dnp3_header_lacks_magic");
                return Err(Stop::Skip);
            }
            Err(Malformed::Checksum) => {
                self.weird(cx, "dnp3_corrupt_header_checksum");
                cx.violation(self.tag, "broken_checksum", &[]);
                return Err(Stop::Skip);
            }
        };
        cx.confirm(self.tag);
        if !link.is_bare() {
            if from.is_orig() != link.from_master {
                self.weird(cx, "dnp3_unexpected_flow_direction");
            }
            let side = &mut self.side[from.index()];
            let is_first = !std::mem::replace(&mut side.has_header, true);
            if is_first && !side.application.is_empty() {
                // After the start of another message, the header is part of that message, as in Zeek.
                side.application
                    .extend_from_slice(side.buffer.get(..LINK_FIELDS_LEN).unwrap_or_default());
            }
            if is_first && side.application.is_empty() {
                let fields = <[u8; LINK_FIELDS_LEN]>::try_from(
                    side.buffer.get(..LINK_FIELDS_LEN).unwrap_or_default(),
                );
                if let Ok(fields) = fields {
                    raise::link(cx, from, &fields);
                }
            }
            if is_first && link.length < 5 {
                // The message ends with the header.
                return self.message(cx, from, &[]).and(Err(Stop::Skip));
            }
            if link.length == 0 {
                self.weird(cx, "dnp3_negative_or_zero_length_link_layer");
            }
        }
        Ok(link)
    }

    /// Processes a complete frame.
    fn frame(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        link: Link,
        frame: &[u8],
    ) -> Result<(), Stop> {
        let mut transport = 1;
        let with_data = if link.length < 5 { &[] } else { frame };
        for block in frame::blocks(with_data) {
            let Some(block) = block else {
                self.weird(cx, "dnp3_corrupt_app_chunk_checksum");
                return Err(Stop::Skip);
            };
            let side = &mut self.side[from.index()];
            if side.application.len() + block.len() > MAX_MESSAGE {
                self.weird(cx, "dnp3_message_too_long");
                return Err(Stop::Skip);
            }
            side.application.extend_from_slice(block.get(transport..).unwrap_or_default());
            transport = 0;
        }
        let side = &mut self.side[from.index()];
        side.first_seen |= link.first;
        if !side.first_seen {
            self.weird(cx, "dnp3_first_application_layer_chunk_missing");
            return Err(Stop::Skip);
        }
        if link.last {
            let application = std::mem::take(side).application;
            return self.message(cx, from, &application);
        }
        Ok(())
    }

    /// Processes a complete message. Its header is reported even if its objects are malformed.
    fn message(&mut self, cx: &mut Context<'_>, from: Dir, message: &[u8]) -> Result<(), Stop> {
        match (from, message) {
            (Dir::Orig, [control, function, ..]) => {
                cx.report(&mut self.rows, |c| Dnp3ApplicationRequestHeader {
                    c,
                    is_orig: true,
                    application: (*control).into(),
                    fc: (*function).into(),
                });
            }
            (Dir::Resp, [control, function, a, b, ..]) => {
                let iin = u16::from_be_bytes([*a, *b]);
                cx.report(&mut self.rows, |c| Dnp3ApplicationResponseHeader {
                    c,
                    is_orig: false,
                    application: (*control).into(),
                    fc: (*function).into(),
                    iin,
                });
            }
            _ => {}
        }
        let checked = if cx.env.logs.events.any() {
            objects::visit(from, message, |part| raise::part(cx, from, &part))
        } else {
            objects::check(from, message)
        };
        match checked {
            Ok(()) => Ok(()),
            Err(e) => Err(self.violation(cx, &e)),
        }
    }

    fn violation(&self, cx: &mut Context<'_>, e: &OutOfBound) -> Stop {
        // While earlier datagrams are replayed, the detector of the protocol catches the exception.
        let tag = if cx.env.is_replaying { Tag::Detector } else { self.tag };
        cx.violation(tag, &e.to_string(), &[]);
        Stop::Thrown
    }

    fn weird(&self, cx: &mut Context<'_>, name: &'static str) {
        cx.weird(name, "", Some(self.tag.name()));
    }

    /// Drops partially parsed data.
    fn suspend(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        *self = Self { rows, ..Self::new(self.tag) };
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

impl Side {
    /// Fills the buffer up to `n` bytes. Returns it once it is full.
    fn fill(&mut self, n: usize, data: &mut &[u8]) -> Option<&[u8]> {
        let take = n.saturating_sub(self.buffer.len()).min(data.len());
        self.buffer.extend_from_slice(&data[..take]);
        *data = &data[take..];
        (self.buffer.len() >= n).then_some(&self.buffer)
    }
}

impl Analyze for Tcp {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.0.data(cx, from, data);
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.0.suspend();
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.0.finish(cx);
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        self.0.data(cx, from, data);
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.0.suspend();
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.0.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::frame;
    use super::super::part::MessagePart;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn a_row_a_request_and_response() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        let read = frame(true, b"\xc0\xc1\x01\x3c\x02\x06");
        a.stream(&mut h.cx(), Dir::Orig, &read[..7]);
        assert!(!h.confirmed(Tag::Dnp3Tcp));
        a.stream(&mut h.cx(), Dir::Orig, &read[7..]);
        assert!(h.confirmed(Tag::Dnp3Tcp));
        // A response in two frames.
        let mut user = b"\x40\xe1\x81\x90\x00\x0a\x02\0\0\x15".to_vec();
        user.resize(30, 0);
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, &user));
        assert!(h.rows("dnp3").is_empty());
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\x81\0\0"));
        assert!(h.violations().is_empty());
        let rows = h.rows("dnp3");
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0]["fc_request"], &*rows[0]["fc_reply"]), ("READ", "RESPONSE"));
        assert_eq!(rows[0]["iin"], "36864");
        a.stream(&mut h.cx(), Dir::Orig, &read);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("dnp3")[1]["fc_reply"], "-");
    }

    #[test]
    fn objects_are_events() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        h.listen("dnp3_");
        let mut a = Tcp::new(&mut h.cx());
        let select = b"\xc0\xc1\x03\x0c\x01\x28\x01\0\x07\0\x41\x02\x64\0\0\0\xc8\0\0\0\0";
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, select));
        assert_eq!(
            h.events(),
            [
                r#"dnp3_header_block "is_orig":true,"len":26,"ctrl":196,"dest_addr":1,"src_addr":2"#,
                r#"dnp3_application_request_header "is_orig":true,"application":193,"fc":3"#,
                r#"dnp3_object_header "is_orig":true,"obj_type":3073,"qua_field":40,"number":1,"rf_low":256,"rf_high":0"#,
                r#"dnp3_object_prefix "is_orig":true,"prefix_value":7"#,
                r#"dnp3_crob "is_orig":true,"control_code":65,"count8":2,"on_time":100,"off_time":200,"status_code":0"#,
            ]
        );
        // A negative analog input, frozen inputs with a time, a binary input, and octets in an unknown format.
        let read =
            b"\xc0\xc1\x81\0\0\x1e\x02\0\0\0\x01\xfe\xff\x1f\x04\0\0\0\x01\x05\0\x01\0\0\0\0\0\
            \x01\x02\x07\x01\x81\xc8\x03\0\0\0ab";
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, read));
        let all = h.events();
        let some: Vec<_> =
            all.iter().filter(|e| !e.contains("header") && !e.contains("prefix")).collect();
        let low = u64::MAX - 1;
        assert_eq!(
            some,
            [
                &format!(r#"dnp3_analog_input_16wFlag "is_orig":false,"flag":1,"value":{low}"#),
                r#"dnp3_response_data_object "is_orig":false,"data_value":255"#,
                r#"dnp3_frozen_analog_input_16wTime "is_orig":false,"flag":1,"frozen_value":5,"time48":1"#,
                r#"dnp3_response_data_object "is_orig":false,"data_value":255"#,
                r#"dnp3_response_data_object "is_orig":false,"data_value":129"#,
                r#"dnp3_debug_byte "is_orig":false,"debug":"ab""#,
                r#"dnp3_response_data_object "is_orig":false,"data_value":255"#,
            ]
        );
    }

    #[test]
    fn objects_without_bytes_are_reported_up_to_a_limit() {
        let (mut ends, mut over) = (0, 0);
        // Repeated headers, each with as many objects of no octets as bytes follow.
        let mut message = b"\xc0\x81\0\0".to_vec();
        for _ in 0..2_000 {
            message.extend_from_slice(b"\x6e\0\x08\x40\0");
        }
        let walked = objects::visit(Dir::Resp, &message, |part| match part {
            MessagePart::End(_) => ends += 1,
            MessagePart::TooManyEmpty => over += 1,
            _ => {}
        });
        // After the last headers, fewer bytes follow than objects are announced.
        assert!(walked.is_err());
        assert!(ends > 65_536 && ends < 70_000 && over > 0, "{ends} {over}");
    }

    #[test]
    fn a_request_is_logged_after_a_violation() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        let mut read = frame(true, b"\xc0\xc1\x01\x3c\x02\x06");
        a.stream(&mut h.cx(), Dir::Orig, &read);
        read[9] ^= 1;
        a.stream(&mut h.cx(), Dir::Orig, &read);
        assert!(h.violated(Tag::Dnp3Tcp) && a.suspend(&mut h.cx()) && h.rows("dnp3").is_empty());
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"));
        let row = &h.rows("dnp3")[0];
        assert_eq!((&*row["fc_request"], &*row["fc_reply"]), ("READ", "RESPONSE"));
    }

    #[test]
    fn malformed_objects_end_it() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        let answer = frame(false, b"\xc0\xe1\x81\0\0\x1e\x02\0\x03\x04\x01aa\x01b");
        a.stream(&mut h.cx(), Dir::Resp, &answer);
        let reason = "out_of_bound: AnalogInput16wFlag: 3 > 2";
        let reason = format!("Binpac exception: binpac exception: {reason}");
        assert_eq!(h.violations(), [(Tag::Dnp3Tcp, reason)]);
        assert_eq!(h.rows("dnp3")[0]["fc_reply"], "RESPONSE");
        a.stream(&mut h.cx(), Dir::Resp, &answer);
        assert_eq!(h.rows("dnp3").len(), 1);
    }

    #[test]
    fn a_frame_shorter_than_its_header_is_a_truncated_message() {
        let mut h = Harness::new(Proto::Udp, 20000);
        let mut a = Udp::new(&mut h.cx());
        let mut short = frame(true, b"\xc0\xc1\x01\x3c\x02\x06");
        short[2] = 3;
        let sum = frame::crc(&short[..8]).to_le_bytes();
        short[8..10].copy_from_slice(&sum);
        a.datagram(&mut h.cx(), Dir::Orig, &short, 0);
        let reason = "out_of_bound: DNP3_Application_Request_Header: 2 > 0";
        let reason = format!("Binpac exception: binpac exception: {reason}");
        assert_eq!(h.violations(), [(Tag::Dnp3Udp, reason)]);
    }

    #[test]
    fn all_datagrams_before_detection_are_analyzed() {
        let mut h = Harness::new(Proto::Udp, 9999);
        let mut a = Udp::new(&mut h.cx());
        h.env.is_replaying = true;
        a.datagram(&mut h.cx(), Dir::Orig, b"0123456789ab", 0);
        a.datagram(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"), 0);
        assert!(h.confirmed(Tag::Dnp3Udp));
        assert_eq!(h.rows("weird")[0]["name"], "dnp3_header_lacks_magic");
        // The violation is reported for the detector, and the analysis ends.
        let cut = frame(false, b"\xc0\xc1\x81\0\0\x02\x02\x07\x01");
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        assert_eq!(h.violations().len(), 1);
        assert_eq!(h.violations()[0].0, Tag::Detector);
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        h.env.is_replaying = false;
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        assert_eq!(h.violations().len(), 1);
    }

    /// A header with a wrong length, followed by the transport byte.
    fn short(length: u8, transport: u8) -> Vec<u8> {
        let mut d = frame(true, &[transport]);
        d[2] = length;
        let sum = frame::crc(&d[..8]).to_le_bytes();
        d[8..10].copy_from_slice(&sum);
        d.truncate(HEADER_LEN);
        d
    }

    #[test]
    fn a_later_frame_that_is_a_byte_too_short_ends_a_message() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, b"\x40\xc1\x01\x3c\x02\x06"));
        a.stream(&mut h.cx(), Dir::Orig, &short(4, 0x80));
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"));
        assert_eq!(h.rows("dnp3")[0]["fc_request"], "READ");
        // A frame that is three bytes too short ends the analysis.
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, b"\x40\xc1\x02\x3c\x02\x06"));
        a.stream(&mut h.cx(), Dir::Orig, &short(2, 0x80));
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"));
        assert_eq!(h.rows("dnp3").len(), 1);
    }

    #[test]
    fn data_before_a_bare_header_precedes_the_next_message() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        let read = b"\x3c\x02\x06\x3c\x03\x06\x3c\x04\x06";
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, &[b"\x40\xc1\x01", &read[..]].concat()));
        a.stream(&mut h.cx(), Dir::Orig, &short(5, 0));
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, &[b"\xc0\xc2\x02", &read[..]].concat()));
        // The link header and the second message are parsed as objects.
        let reason = "out_of_bound: Object_Header:qualifier_field: 3 > 1";
        let reason = format!("Binpac exception: binpac exception: {reason}");
        assert_eq!(h.violations(), [(Tag::Dnp3Tcp, reason)]);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("dnp3")[0]["fc_request"], "READ");
    }

    #[test]
    fn wrong_checksums_end_it() {
        let mut h = Harness::new(Proto::Udp, 20000);
        let mut a = Udp::new(&mut h.cx());
        let mut read = frame(true, b"\xc0\xc1\x01\x3c\x02\x06");
        read[12] ^= 1;
        a.datagram(&mut h.cx(), Dir::Orig, &read, 0);
        assert!(h.confirmed(Tag::Dnp3Udp));
        assert_eq!(h.rows("weird")[0]["name"], "dnp3_corrupt_app_chunk_checksum");
        assert_eq!(h.rows("weird")[0]["source"], "DNP3_UDP");
        read[12] ^= 1;
        a.datagram(&mut h.cx(), Dir::Orig, &read, 0);
        a.finish(&mut h.cx());
        assert!(h.rows("dnp3").is_empty());
    }
}
