use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;

use super::SOURCE;
use super::events;
use super::message::Malformed;
use super::message::Message;
use super::message::Options;
use super::message::Request;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Interval after a request in which the connection of the contents is expected.
const EXPECTED: Interval = Interval::from_secs(60);

/// The analyzer of one connection, which carries a request, contents, or both.
#[derive(Debug)]
pub struct Analyzer {
    /// Whether a message was parsed.
    confirmed: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { confirmed: false }
    }
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let message = match Message::parse(data) {
            Ok(message) => message,
            // A confirmed connection may have messages of later specifications.
            Err(Malformed::Opcode(code)) if self.confirmed => {
                let (is_orig, number) = (from.is_orig(), u64::from(code));
                cx.raise(|c| events::UnknownOpcode { c, is_orig, code: number });
                cx.weird("unknown_opcode", &code.to_string(), SOURCE);
                return;
            }
            Err(malformed) => {
                cx.violation(Tag::Tftp, &malformed.to_string(), data);
                return;
            }
        };
        if !std::mem::replace(&mut self.confirmed, true) {
            cx.confirm(Tag::Tftp);
        }
        report(cx, from, &message);
        if let Message::Request(_) = message {
            // The server sends the contents from another port.
            let id = cx.conn.id;
            let (client, tftp) = ((id.orig_h, id.orig_p), (Tag::Tftp, Proto::Udp));
            cx.env.schedule(id.resp_h, client, tftp, cx.now + EXPECTED);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let id = cx.conn.id;
        cx.env.unschedule(id.resp_h, (id.orig_h, id.orig_p), Proto::Udp);
        Rows::finish(cx);
    }
}

fn report(cx: &mut Context<'_>, from: Dir, message: &Message<'_>) {
    let is_orig = from.is_orig();
    match message {
        Message::Request(Request { writes, filename, mode, .. }) => {
            if *writes {
                cx.report(&mut Rows, |c| events::WriteRequest { c, is_orig, filename, mode });
            } else {
                cx.report(&mut Rows, |c| events::ReadRequest { c, is_orig, filename, mode });
            }
        }
        Message::Data { block, data } => {
            cx.report(&mut Rows, |c| events::Data { c, is_orig, block_num: *block, data });
        }
        Message::Ack { block } => {
            cx.report(&mut Rows, |c| events::Ack { c, is_orig, block_num: *block });
        }
        Message::Error { code, message } => {
            cx.report(&mut Rows, |c| events::Error { c, is_orig, code: *code, msg: message });
        }
        Message::Options(options) => {
            cx.report(&mut Rows, |c| events::OptionAck { c, is_orig, options: Options(options) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::Transfer;
    use super::*;
    use crate::testing::Harness;
    use gannet_base::ConnId;
    use gannet_base::UidSource;
    use gannet_flow::Conn;
    use gannet_log::Logs;
    use gannet_log::Selection;
    use proptest::prelude::*;

    /// The connection of a client to port 69, with tftp.log enabled.
    fn request() -> Harness {
        let mut h = Harness::new(Proto::Udp, 69);
        let selection = Selection::of(["tftp", "weird"]);
        let logs = Logs::new(gannet_log::Options { selection, ..Default::default() });
        h.env.logs = logs.into();
        h
    }

    /// Replaces the harness's connection by the one of the contents.
    fn contents(h: &mut Harness) {
        let ConnId { orig_h, orig_p, resp_h, .. } = h.conn.id;
        let id = ConnId { orig_h: resp_h, orig_p: 3445, resp_h: orig_h, resp_p: orig_p };
        h.conn = Conn::new(UidSource::new(0).connection(2, 0), id, Proto::Udp, 17, h.now);
    }

    fn send(h: &mut Harness, a: &mut Analyzer, from: Dir, data: &[u8]) {
        a.datagram(&mut h.cx(), from, data, data.len() as u32);
    }

    /// Number of rows of tftp.log.
    fn count_of(h: &Harness) -> u64 {
        let counts = h.env.logs.counts();
        counts.iter().find(|count| count.path == "tftp").map_or(0, |count| count.rows)
    }

    #[test]
    fn a_file_is_read_from_another_port() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"\0\x01boot.img\0octet\0blksize\x004\0");
        assert!(h.confirmed(Tag::Tftp));
        let id = h.conn.id;
        let to = (id.orig_h, id.orig_p);
        let expected = h.env.activation.scheduled((h.conn.uid, id.resp_h), to, Proto::Udp, h.now);
        assert_eq!(expected, Some(Tag::Tftp));
        let first = h.conn.uid;
        contents(&mut h);
        let mut b = Analyzer::new(&mut h.cx());
        for (from, data) in [
            (Dir::Orig, &b"\0\x06blksize\x004\0"[..]),
            (Dir::Resp, b"\0\x04\0\0"),
            (Dir::Orig, b"\0\x03\0\x01abcd"),
            (Dir::Orig, b"\0\x03\0\x01abcd"),
            (Dir::Resp, b"\0\x04\0\x01"),
            (Dir::Orig, b"\0\x03\0\x02e"),
        ] {
            send(&mut h, &mut b, from, data);
        }
        assert!(h.rows("tftp").is_empty());
        send(&mut h, &mut b, Dir::Resp, b"\0\x04\0\x02");
        b.finish(&mut h.cx());
        let rows = h.rows("tftp");
        assert_eq!(rows.len(), 1);
        let columns = ["wrq", "fname", "mode", "size", "block_sent", "block_acked", "options"];
        let row = columns.map(|c| &*rows[0][c]);
        assert_eq!(row, ["F", "boot.img", "octet", "5", "2", "2", "blksize=4"]);
        assert_eq!(rows[0]["uid"], String::from_utf8_lossy(&first.text().0[..first.text().1]));
        assert_eq!(rows[0]["error_code"], "-");
    }

    #[test]
    fn errors_and_unanswered_requests_make_rows() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"\0\x02log\0netascii\0");
        send(&mut h, &mut a, Dir::Resp, b"\0\x05\0\x02access violation\0");
        send(&mut h, &mut a, Dir::Orig, b"\0\x01none\0octet\0");
        a.finish(&mut h.cx());
        let rows = h.rows("tftp");
        let fields = |i: usize| ["wrq", "fname", "error_msg", "uid_data"].map(|c| &*rows[i][c]);
        assert_eq!(fields(0)[..3], ["T", "log", "access violation"]);
        assert_eq!(fields(1), ["F", "none", "-", "-"]);
    }

    #[test]
    fn numbers_of_parts_wrap() {
        let mut h = request();
        let id = h.conn.id;
        let mut transfer = Transfer::new((h.now, h.conn.uid, id), false, b"f", b"octet");
        for block in 1..=65_537_u32 {
            transfer.data(block as u16, &[0; 512]);
        }
        assert!(!transfer.ack(1));
        // Block 65,536 is repeated: it counts once.
        transfer.data(0, &[0; 512]);
        transfer.data(2, b"");
        assert!(!transfer.ack(1) && transfer.ack(2));
        transfer.write(&mut h.cx());
        let row = &h.rows("tftp")[0];
        assert_eq!((&*row["block_sent"], &*row["size"]), ("65538", "33554944"));
    }

    #[test]
    fn another_connection_does_not_take_part() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"\0\x02log\0octet\0");
        contents(&mut h);
        let mut b = Analyzer::new(&mut h.cx());
        send(&mut h, &mut b, Dir::Orig, b"\0\x04\0\0");
        send(&mut h, &mut b, Dir::Resp, b"\0\x03\0\x01abc");
        let (id, ours) = (h.conn.id, h.conn.uid);
        let id = ConnId { orig_p: 4000, ..id };
        h.conn = Conn::new(UidSource::new(0).connection(3, 0), id, Proto::Udp, 17, h.now);
        let mut other = Analyzer::new(&mut h.cx());
        send(&mut h, &mut other, Dir::Orig, b"\0\x05\0\x05unknown transfer\0");
        other.finish(&mut h.cx());
        assert!(h.rows("tftp").is_empty());
        h.conn = Conn::new(ours, ConnId { orig_p: 3445, ..id }, Proto::Udp, 17, h.now);
        send(&mut h, &mut b, Dir::Orig, b"\0\x04\0\x01");
        let rows = h.rows("tftp");
        let row = ["wrq", "fname", "size", "block_acked", "error_code"].map(|c| &*rows[0][c]);
        assert_eq!(row, ["T", "log", "3", "1", "-"]);
    }

    #[test]
    fn limits_are_reported_and_nothing_is_lost() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        let long = [b"\0\x01", &[b'n'; 1025][..], b"\0octet\0"].concat();
        send(&mut h, &mut a, Dir::Orig, &long);
        let options = [b"\0\x06", &b"o\x001\0".repeat(17)[..]].concat();
        send(&mut h, &mut a, Dir::Resp, &options);
        let weirds = h.rows("weird");
        let names: Vec<_> = weirds.iter().map(|row| &*row["name"]).collect();
        assert_eq!(names, ["tftp_long_file_name", "tftp_long_options"]);
        a.finish(&mut h.cx());
        let row = &h.rows("tftp")[0];
        assert_eq!((row["fname"].len(), row["options"].split(',').count()), (1024, 16));
    }

    #[test]
    fn every_transfer_of_a_connection_makes_a_row() {
        for count in [10, 1_000, 10_000] {
            let mut h = request();
            let mut a = Analyzer::new(&mut h.cx());
            for n in 0..count {
                let ask = format!("\0\x01file{n}\0octet\0");
                send(&mut h, &mut a, Dir::Orig, ask.as_bytes());
                // One in three is answered, one is rejected, and one gets no reply.
                match n % 3 {
                    0 => {
                        send(&mut h, &mut a, Dir::Resp, b"\0\x03\0\x01abc");
                        send(&mut h, &mut a, Dir::Orig, b"\0\x04\0\x01");
                    }
                    1 => send(&mut h, &mut a, Dir::Resp, b"\0\x05\0\x01none\0"),
                    _ => {}
                }
            }
            a.finish(&mut h.cx());
            assert_eq!(count_of(&h), count as u64);
            // Of long logs, the buffer contains the last rows, without the header.
            let rows = if count == 10 { h.rows("tftp") } else { Vec::new() };
            for (n, row) in rows.iter().enumerate() {
                let (size, error) = [("3", "-"), ("0", "none"), ("0", "-")][n % 3];
                let columns = ["fname", "size", "error_msg"].map(|c| &*row[c]);
                assert_eq!(columns, [&*format!("file{n}"), size, error]);
            }
        }
    }

    #[test]
    fn many_clients_are_expected_at_once() {
        let mut h = request();
        let first = h.conn.id;
        let mut open = Vec::new();
        for port in 10_000..25_000 {
            let id = ConnId { orig_p: port, ..first };
            let uid = UidSource::new(0).connection(u64::from(port), 0);
            h.conn = Conn::new(uid, id, Proto::Udp, 17, h.now);
            let mut a = Analyzer::new(&mut h.cx());
            send(&mut h, &mut a, Dir::Orig, b"\0\x01f\0octet\0");
            open.push((id, uid, a));
        }
        let expected = |h: &mut Harness, port| {
            let to = (first.orig_h, port);
            h.env.activation.scheduled((h.conn.uid, first.resp_h), to, Proto::Udp, h.now).is_some()
        };
        assert!((10_000..25_000).all(|port| expected(&mut h, port)));
        for (id, uid, mut a) in open {
            h.conn = Conn::new(uid, id, Proto::Udp, 17, h.now);
            a.finish(&mut h.cx());
            assert!(!expected(&mut h, id.orig_p));
        }
        assert_eq!(count_of(&h), 15_000);
    }

    #[test]
    fn missing_parts_are_skipped() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"\0\x01f\0octet\0blksize\x008\0windowsize\x004\0");
        send(&mut h, &mut a, Dir::Resp, b"\0\x06blksize\x008\0windowsize\x004\0");
        for part in [&b"\0\x03\0\x01abcdefgh"[..], b"\0\x03\0\x04abcdefgh", b"\0\x03\0\x02abcdefgh"]
        {
            send(&mut h, &mut a, Dir::Resp, part);
        }
        send(&mut h, &mut a, Dir::Orig, b"\0\x04\0\x04");
        send(&mut h, &mut a, Dir::Resp, b"\0\x03\0\x05");
        send(&mut h, &mut a, Dir::Orig, b"\0\x04\0\x05");
        let row = &h.rows("tftp")[0];
        let columns = ["size", "block_sent", "block_acked", "options"].map(|c| &*row[c]);
        assert_eq!(columns, ["16", "5", "5", "blksize=8,windowsize=4"]);
    }

    #[test]
    fn violations_are_weirds() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"\0\x01f\0octet\0blksize\x007\0");
        send(&mut h, &mut a, Dir::Resp, b"\0\x06blksize\x007\0");
        send(&mut h, &mut a, Dir::Resp, b"\0\x09abc");
        let weirds = h.rows("weird");
        let columns = |i: usize| ["name", "addl", "source"].map(|c| &*weirds[i][c]);
        assert_eq!(columns(0), ["tftp_invalid_block_size", "-", "TFTP"]);
        assert_eq!(columns(1), ["unknown_opcode", "9", "TFTP"]);
        assert!(!h.violated(Tag::Tftp));
    }

    #[test]
    fn nothing_is_analyzed_unasked() {
        assert!(!Tag::Tftp.is_wanted(&Harness::new(Proto::Udp, 69).env.logs));
        assert!(Tag::Tftp.is_wanted(&request().env.logs));
    }

    #[test]
    fn other_bytes_are_violations() {
        let mut h = request();
        let mut a = Analyzer::new(&mut h.cx());
        send(&mut h, &mut a, Dir::Orig, b"GET / HTTP/1.1\r\n");
        assert!(h.violated(Tag::Tftp) && !h.confirmed(Tag::Tftp));
    }

    proptest! {
        #[test]
        fn any_datagrams_are_survived(all: Vec<(bool, Vec<u8>)>) {
            let mut h = request();
            let mut a = Analyzer::new(&mut h.cx());
            for (orig, mut data) in all {
                // Mostly valid opcodes.
                if let Some(first) = data.first_mut() {
                    *first = 0;
                }
                send(&mut h, &mut a, if orig { Dir::Orig } else { Dir::Resp }, &data);
            }
            a.finish(&mut h.cx());
        }
    }
}
