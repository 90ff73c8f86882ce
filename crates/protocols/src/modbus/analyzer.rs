use gannet_base::Dir;

use super::message;
use super::message::HEADER;
use super::message::Header;
use super::message::Malformed;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Frames;

/// Maximum length of a message, in bytes: the header up to the length field and the largest value
/// of that.
const MAX_MESSAGE: usize = 6 + 0xffff;

/// The analyzer of one connection.
pub struct Analyzer {
    side: [Side; 2],
    rows: Rows,
}

struct Side {
    frames: Frames,
    /// Header of the current message, which was reported; its body is awaited.
    header: Option<Header>,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        let side = || Side { frames: Frames::new(MAX_MESSAGE), header: None };
        Self { side: [side(), side()], rows: Rows::default() }
    }

    fn body(
        cx: &mut Context<'_>,
        rows: &mut Rows,
        from: Dir,
        header: &Header,
        body: &[u8],
    ) -> bool {
        match message::check(from, header.function, body) {
            Err(Malformed::Short(e)) => {
                cx.violation(Tag::Modbus, &e.to_string(), &[]);
                return false;
            }
            Err(Malformed::Value(field, n)) => {
                // Zeek checks the value of a coil only if the event has a handler.
                if header.function != 5 || raise::wants_single_coil(cx, from) {
                    let reason = format!("invalid value for modbus {field} {n}");
                    cx.violation(Tag::Modbus, &reason, &[]);
                }
            }
            Ok(()) if !from.is_orig() && header.function & 0x80 != 0 => {
                raise::exception(cx, rows, header, body);
            }
            Ok(()) => raise::body(cx, from, header, body),
        }
        cx.confirm(Tag::Modbus);
        true
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let side = &mut self.side[from.index()];
        let mut rest = data;
        // A header is reported as soon as it is complete, even if its body arrives later: Zeek
        // parses them separately.
        loop {
            match side.header {
                None => {
                    let Some(frame) = side.frames.next(&mut rest, |_| HEADER) else { return };
                    let Some(header) = Header::parse(frame) else {
                        // For bytes that are not Modbus, the protocol identifier is checked first,
                        // then the length.
                        let field = if frame.get(2..4) == Some(&[0; 2]) { "len" } else { "pid" };
                        let reason = format!(
                            "Binpac exception: binpac exception: &enforce violation : \
                             ModbusTCP_TransportHeader:{field}"
                        );
                        cx.violation(Tag::Modbus, &reason, &[]);
                        side.frames.reset();
                        return;
                    };
                    raise::header(cx, &mut self.rows, from, &header);
                    side.header = Some(header);
                }
                Some(header) => {
                    let n = usize::from(header.length).saturating_sub(2);
                    let body = if n == 0 {
                        &[]
                    } else {
                        let Some(body) = side.frames.next(&mut rest, |_| n) else { return };
                        body
                    };
                    side.header = None;
                    if !Self::body(cx, &mut self.rows, from, &header, body) {
                        side.frames.reset();
                        return;
                    }
                }
            }
        }
    }

    // As in Zeek, a message continues after a gap: in this simple protocol, the next header is soon
    // found.
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use gannet_base::Time;

    #[test]
    fn requests_replies_and_exceptions() {
        let mut h = Harness::new(Proto::Tcp, 502);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\x00\x01\x00\x00\x00\x06\x11\x03\x00\x6b");
        assert_eq!(h.rows("modbus").len(), 1);
        assert!(!h.confirmed(Tag::Modbus));
        a.stream(&mut h.cx(), Dir::Orig, b"\x00\x03");
        assert!(h.confirmed(Tag::Modbus));
        a.stream(&mut h.cx(), Dir::Resp, b"\x00\x01\x00\x00\x00\x03\x11\x83\x02");
        let rows = h.rows("modbus");
        assert_eq!(rows.len(), 2);
        assert_eq!((&*rows[0]["func"], &*rows[0]["pdu_type"]), ("READ_HOLDING_REGISTERS", "REQ"));
        assert_eq!(rows[1]["func"], "READ_HOLDING_REGISTERS_EXCEPTION");
        assert_eq!(rows[1]["exception"], "ILLEGAL_DATA_ADDRESS");
        a.stream(&mut h.cx(), Dir::Orig, b"GET / HTTP/1.1");
        assert!(h.violated(Tag::Modbus));
    }

    #[test]
    fn exceptions_are_reported_with_the_last_header() {
        let mut h = Harness::new(Proto::Tcp, 502);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Resp, b"\0\x01\0\0\0\x03\x11\x83");
        h.now = Time::from_secs(2);
        a.stream(&mut h.cx(), Dir::Resp, b"\x02\0\x02\0\0\0\x03\x11\x84");
        assert_eq!(h.rows("modbus")[0]["ts"], "1.000000");
        // A header of the other side arrives between the header of an exception and its code.
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x05\0\0\0\x02\x11\x65");
        a.stream(&mut h.cx(), Dir::Resp, b"\x02");
        let row = &h.rows("modbus")[2];
        assert_eq!((&*row["tid"], &*row["func"], &*row["pdu_type"]), ("5", "unknown-101", "REQ"));
        assert_eq!(row["exception"], "ILLEGAL_DATA_ADDRESS");
    }

    #[test]
    fn invalid_values_have_no_events() {
        let events = |listen: &str, from, message: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 502);
            h.listen(listen);
            let mut a = Analyzer::new(&mut h.cx());
            a.stream(&mut h.cx(), from, message);
            assert!(h.confirmed(Tag::Modbus));
            let count = h.events().iter().filter(|e| e.contains("modbus_")).count();
            (count, h.violated(Tag::Modbus))
        };
        let coil = b"\0\x01\0\0\0\x06\x11\x05\0\x01\0\x05";
        assert_eq!(events("modbus_write_single_coil_", Dir::Orig, coil), (0, true));
        assert_eq!(events("modbus_write_single_coil_", Dir::Resp, coil), (0, true));
        // Only the event uses the value.
        assert_eq!(events("modbus_read_", Dir::Orig, coil), (0, false));
        let odd = b"\0\x01\0\0\0\x06\x11\x03\x03\0\x01\0";
        assert_eq!(events("modbus_read_", Dir::Resp, odd), (0, true));
        assert_eq!(events("modbus_message", Dir::Resp, odd), (1, true));
    }

    #[test]
    fn messages_go_on_over_gaps() {
        let mut h = Harness::new(Proto::Tcp, 502);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x01\0\0\0\x08\x11\x64ab");
        a.gap(&mut h.cx(), Dir::Orig, 100);
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x02\0\0");
        assert_eq!(h.rows("modbus").len(), 1);
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x03\0\0\0\x02\x11\x65");
        let rows = h.rows("modbus");
        assert_eq!((rows.len(), &*rows[1]["tid"]), (2, "3"));
    }
}
