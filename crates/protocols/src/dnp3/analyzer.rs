use gannet_base::Dir;

use super::events::*;
use super::frame;
use super::frame::HEADER;
use super::frame::LINK_FIELDS;
use super::frame::Link;
use super::frame::Malformed;
use super::objects;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::OutOfBound;

/// Longest frame: 10 bytes of header, 250 of data in 16 blocks with two bytes each.
const MAX_FRAME: usize = 300;

/// Most bytes of a message. Outstations send no more than 2,048.
const MAX_MESSAGE: usize = 1 << 16;

/// The analyzer of one TCP connection.
pub struct Tcp(Analyzer);

/// The analyzer of one UDP connection.
pub struct Udp(Analyzer);

struct Analyzer {
    tag: Tag,
    side: [Side; 2],
    rows: Rows,
    done: bool,
    /// Whether an exception was the reason.
    thrown: bool,
}

#[derive(Default)]
struct Side {
    buffer: Vec<u8>,
    link: Option<Link>,
    /// What there is of the message.
    application: Vec<u8>,
    first_seen: bool,
    /// Whether a frame of the message was begun.
    is_open: bool,
}

/// The connection is not analysed any further; the reason was reported where necessary.
#[derive(PartialEq, Eq)]
enum Stop {
    /// Further data is passed over.
    Skip,
    /// Zeek throws an exception.
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
        // Zeek hands over the datagrams that came before the protocol was found without regard to what they are, until
        // one throws an exception.
        let takes = !self.done || cx.env.is_replaying && !self.thrown;
        if takes && let Err(stop) = self.frames(cx, from, data) {
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
                    let Some(header) = side.fill(HEADER, &mut data) else { return Ok(()) };
                    let Some(header) = header.first_chunk::<HEADER>() else {
                        return Err(Stop::Skip);
                    };
                    let parsed = Link::parse(header);
                    let link = self.header(cx, from, parsed)?;
                    if link.is_alone() {
                        // What else is in the segment is not looked at, as in Zeek. What there is of
                        // a message stays, though the next frame is to be the first of one.
                        let side = &mut self.side[from.index()];
                        let application = std::mem::take(&mut side.application);
                        *side = Side { application, ..Side::default() };
                        return Ok(());
                    }
                    self.side[from.index()].link = Some(link);
                    link
                }
            };
            let total =
                link.total().filter(|n| *n >= HEADER && *n <= MAX_FRAME).ok_or(Stop::Skip)?;
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
        if !link.is_alone() {
            if from.is_orig() != link.from_master {
                self.weird(cx, "dnp3_unexpected_flow_direction");
            }
            let side = &mut self.side[from.index()];
            let is_first = !std::mem::replace(&mut side.is_open, true);
            if is_first && !side.application.is_empty() {
                // Behind the begin of another message, the header is part of that.
                side.application
                    .extend_from_slice(side.buffer.get(..LINK_FIELDS).unwrap_or_default());
            }
            if is_first && side.application.is_empty() {
                let fields = <[u8; LINK_FIELDS]>::try_from(
                    side.buffer.get(..LINK_FIELDS).unwrap_or_default(),
                );
                if let Ok(fields) = fields {
                    raise::link(cx, from, &fields);
                }
            }
            if is_first && link.length < 5 {
                // The message is taken for one that ends with the header.
                return self.message(cx, from, &[]).and(Err(Stop::Skip));
            }
            if link.length == 0 {
                self.weird(cx, "dnp3_negative_or_zero_length_link_layer");
            }
        }
        Ok(link)
    }

    /// A whole frame.
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

    /// A whole message. Its header counts even where its objects are malformed.
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
            objects::walk(from, message, |part| raise::found(cx, from, &part))
        } else {
            objects::check(from, message)
        };
        match checked {
            Ok(()) => Ok(()),
            Err(e) => Err(self.violation(cx, &e)),
        }
    }

    fn violation(&self, cx: &mut Context<'_>, e: &OutOfBound) -> Stop {
        // What detects the protocol catches the exception while it hands over the datagrams before.
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
    /// Fills the buffer up to `n` bytes; gives it when it is full.
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
    use super::super::found::MessagePart;
    use super::super::frame::tests::frame;
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
        // An analog input below zero, frozen inputs with a time, a binary input, octets without a known form.
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
        // As many objects of no octets as bytes follow, again and again.
        let mut message = b"\xc0\x81\0\0".to_vec();
        for _ in 0..2_000 {
            message.extend_from_slice(b"\x6e\0\x08\x40\0");
        }
        let walked = objects::walk(Dir::Resp, &message, |part| match part {
            MessagePart::End(_) => ends += 1,
            MessagePart::TooMany => over += 1,
            _ => {}
        });
        // Behind the last headers, not as many bytes follow as objects are announced.
        assert!(walked.is_err());
        assert!(ends > 65_536 && ends < 70_000 && over > 0, "{ends} {over}");
    }

    #[test]
    fn a_request_outlives_a_violation() {
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
    fn a_frame_shorter_than_its_header_is_a_message_that_is_cut() {
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
    fn datagrams_before_detection_are_all_read() {
        let mut h = Harness::new(Proto::Udp, 9999);
        let mut a = Udp::new(&mut h.cx());
        h.env.is_replaying = true;
        a.datagram(&mut h.cx(), Dir::Orig, b"0123456789ab", 0);
        a.datagram(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"), 0);
        assert!(h.confirmed(Tag::Dnp3Udp));
        assert_eq!(h.rows("weird")[0]["name"], "dnp3_header_lacks_magic");
        // What is thrown concerns what detects the protocol, and is the end.
        let cut = frame(false, b"\xc0\xc1\x81\0\0\x02\x02\x07\x01");
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        assert_eq!(h.violations().len(), 1);
        assert_eq!(h.violations()[0].0, Tag::Detector);
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        h.env.is_replaying = false;
        a.datagram(&mut h.cx(), Dir::Resp, &cut, 0);
        assert_eq!(h.violations().len(), 1);
    }

    /// A header alone whose length is another, behind it the transport byte.
    fn short(length: u8, transport: u8) -> Vec<u8> {
        let mut d = frame(true, &[transport]);
        d[2] = length;
        let sum = frame::crc(&d[..8]).to_le_bytes();
        d[8..10].copy_from_slice(&sum);
        d.truncate(HEADER);
        d
    }

    #[test]
    fn a_later_frame_that_is_a_byte_too_short_ends_a_message_all_the_same() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, b"\x40\xc1\x01\x3c\x02\x06"));
        a.stream(&mut h.cx(), Dir::Orig, &short(4, 0x80));
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"));
        assert_eq!(h.rows("dnp3")[0]["fc_request"], "READ");
        // Of three bytes less, it cannot be read.
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, b"\x40\xc1\x02\x3c\x02\x06"));
        a.stream(&mut h.cx(), Dir::Orig, &short(2, 0x80));
        a.stream(&mut h.cx(), Dir::Resp, &frame(false, b"\xc0\xc1\x81\0\0"));
        assert_eq!(h.rows("dnp3").len(), 1);
    }

    #[test]
    fn what_a_header_alone_cuts_off_stays_before_the_next_message() {
        let mut h = Harness::new(Proto::Tcp, 20000);
        let mut a = Tcp::new(&mut h.cx());
        let read = b"\x3c\x02\x06\x3c\x03\x06\x3c\x04\x06";
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, &[b"\x40\xc1\x01", &read[..]].concat()));
        a.stream(&mut h.cx(), Dir::Orig, &short(5, 0));
        a.stream(&mut h.cx(), Dir::Orig, &frame(true, &[b"\xc0\xc2\x02", &read[..]].concat()));
        // The link's header is read as objects, and so is the second message.
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
