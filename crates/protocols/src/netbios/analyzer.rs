use gannet_base::Dir;
use gannet_base::Proto;

use super::events::*;
use super::message;
use super::message::Datagram;
use super::message::HEADER;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Frames;

/// Source of weirds.
const SOURCE: Option<&str> = Some("NETBIOSSSN");

/// Source of the weird for a truncated message.
const CONTENTS: Option<&str> = Some("CONTENTS_NETBIOSSSN");

/// Interval in seconds at which a datagram connection is checked for idleness, as in Zeek.
const IDLE_CHECK_INTERVAL: u16 = 15;

/// Maximum length of a message, in bytes: its length has 16 bits.
const MAX_MESSAGE: usize = HEADER + u16::MAX as usize;

/// Signature of an SMB 1 message.
const SMB: &[u8] = b"\xffSMB";

/// The analyzer of one connection.
pub struct Analyzer {
    sides: [Side; 2],
}

struct Side {
    frames: Frames,
    /// The side closed, and the beginning of its last message was reported.
    is_over: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            cx.check_idle_every(
                cx.env.setting("netbios_ssn_session_timeout", IDLE_CHECK_INTERVAL.into()),
            );
        }
        let side = || Side { frames: Frames::new(MAX_MESSAGE), is_over: false };
        Self { sides: [side(), side()] }
    }
}

/// Reports a session message, or a datagram without its header.
fn report(cx: &mut Context<'_>, from: Dir, kind: u8, data: &[u8]) {
    let is_orig = from.is_orig();
    let (msg_type, data_len, msg) = (u64::from(kind), data.len() as u64, data);
    cx.raise(|c| SessionMessage { c, is_orig, msg_type, data_len });
    match kind {
        0x00 if data.starts_with(SMB) => cx.weird("no_smb_session_using_parsesambamsg", "", SOURCE),
        0x00 => {
            cx.weird("netbios_raw_session_msg", "", SOURCE);
            cx.raise(|c| SessionRawMessage { c, is_orig, msg });
        }
        // Datagrams, whose contents are not parsed.
        0x10..=0x16 => {}
        0x81 => {
            if !is_orig {
                cx.weird("netbios_server_session_request", "", SOURCE);
            }
            if let Some(name) = message::decode_name(data) {
                cx.raise(|c| SessionRequest { c, msg: &name });
            }
        }
        0x82..=0x84 => {
            if is_orig {
                cx.weird("netbios_client_session_reply", "", SOURCE);
            }
            match kind {
                0x82 => cx.raise(|c| SessionAccepted { c, msg }),
                0x83 => cx.raise(|c| SessionRejected { c, msg }),
                _ => cx.raise(|c| SessionRetArgResp { c, msg }),
            }
        }
        0x85 => cx.raise(|c| SessionKeepalive { c, msg }),
        _ => cx.weird("unknown_netbios_type", &format!("0x{kind:x}"), SOURCE),
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        let side = &mut self.sides[from.index()];
        if side.is_over {
            return;
        }
        while let Some(message) = side.frames.next(&mut data, message::message_len) {
            if let [kind, _, _, _, contents @ ..] = message {
                report(cx, from, *kind, contents);
            }
        }
    }

    // As in Zeek, an incomplete message continues after a gap.

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        let side = &mut self.sides[from.index()];
        let begin = side.frames.partial();
        if let [kind, _, _, _, contents @ ..] = begin
            && !contents.is_empty()
            && !side.is_over
        {
            let announced = message::message_len(begin) - HEADER;
            let addl = format!("({} < {announced})", contents.len());
            cx.weird("truncated_netbios_message", &addl, CONTENTS);
            report(cx, from, *kind, contents);
        }
        side.is_over = true;
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let Some(datagram) = Datagram::parse(data) else {
            cx.violation(Tag::Netbios, "NetBIOS datagram too short for header", data);
            return;
        };
        let Datagram { kind, length, data } = datagram;
        let (counted, there) = (usize::from(length), data.len());
        let mut contents = data;
        if datagram.is_truncated() {
            cx.weird("excess_netbios_hdr_len", &format!("({counted} > {there})"), SOURCE);
        } else if let Some(begin) = data.get(..counted).filter(|_| counted < there) {
            cx.weird("deficit_netbios_hdr_len", &format!("({counted} < {there})"), SOURCE);
            contents = begin;
        }
        report(cx, from, kind, contents);
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Interval;

    use super::*;
    use crate::testing::Harness;
    use proptest::prelude::*;

    fn weirds(h: &Harness) -> Vec<(String, String)> {
        let weird = |row: &std::collections::BTreeMap<String, String>| {
            (row["name"].clone(), row["addl"].clone())
        };
        h.rows("weird").iter().map(weird).collect()
    }

    fn is(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, addl)| ((*name).to_owned(), (*addl).to_owned())).collect()
    }

    #[test]
    fn a_session_is_requested_and_accepted() {
        for size in [1, 2, 5, 100] {
            let mut h = Harness::new(Proto::Tcp, 139);
            h.listen("netbios_");
            let mut a = Analyzer::new(&mut h.cx());
            for part in b"\x81\0\0\x08\x06EBECED\0\0\0\0\x02ab".chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            for part in b"\x82\0\0\0\x83\0\0\x01\x80\x84\0\0\x02ab\x85\0\0\0".chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            assert_eq!(
                h.events(),
                [
                    r#"netbios_session_message "is_orig":true,"msg_type":129,"data_len":8"#,
                    r#"netbios_session_request "msg":"ABC""#,
                    r#"netbios_session_message "is_orig":true,"msg_type":0,"data_len":2"#,
                    r#"netbios_session_raw_message "is_orig":true,"msg":"ab""#,
                    r#"netbios_session_message "is_orig":false,"msg_type":130,"data_len":0"#,
                    r#"netbios_session_accepted "msg":"""#,
                    r#"netbios_session_message "is_orig":false,"msg_type":131,"data_len":1"#,
                    r#"netbios_session_rejected "msg":"\\x80""#,
                    r#"netbios_session_message "is_orig":false,"msg_type":132,"data_len":2"#,
                    r#"netbios_session_ret_arg_resp "msg":"ab""#,
                    r#"netbios_session_message "is_orig":false,"msg_type":133,"data_len":0"#,
                    r#"netbios_session_keepalive "msg":"""#,
                ]
            );
            assert_eq!(weirds(&h), is(&[("netbios_raw_session_msg", "-")]));
        }
    }

    #[test]
    fn what_is_wrong_is_a_weird() {
        let mut h = Harness::new(Proto::Tcp, 139);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\x82\0\0\0\x86\0\0\0\0\0\0\x04\xffSMB");
        a.stream(&mut h.cx(), Dir::Resp, b"\x81\0\0\0\x85\0\0\x05abc");
        a.end(&mut h.cx(), Dir::Orig);
        a.end(&mut h.cx(), Dir::Resp);
        a.end(&mut h.cx(), Dir::Resp);
        a.stream(&mut h.cx(), Dir::Resp, b"\x86\0\0\0");
        assert_eq!(
            weirds(&h),
            is(&[
                ("netbios_client_session_reply", "-"),
                ("unknown_netbios_type", "0x86"),
                ("no_smb_session_using_parsesambamsg", "-"),
                ("netbios_server_session_request", "-"),
                ("truncated_netbios_message", "(3 < 5)"),
            ])
        );
    }

    #[test]
    fn datagrams_are_counted() {
        let mut h = Harness::new(Proto::Udp, 138);
        h.listen("netbios_");
        let mut a = Analyzer::new(&mut h.cx());
        assert_eq!((h.conn.timeout(), h.conn.check_every), (Interval::from_secs(14), 15));
        let mut data = b"\x10\x0a\x12\x34\x0a\0\0\x01\0\x8a\0\x11\0\0abc".to_vec();
        for (length, contents) in [(17, 3), (18, 3), (0, 3)] {
            data[11] = length;
            a.datagram(&mut h.cx(), Dir::Orig, &data, data.len() as u32);
            let event = format!(
                r#"netbios_session_message "is_orig":true,"msg_type":16,"data_len":{contents}"#
            );
            assert_eq!(h.events(), [event], "{length}");
        }
        assert_eq!(weirds(&h), is(&[("excess_netbios_hdr_len", "(18 > 3)")]));
        data.extend_from_slice(&[0; 20]);
        data[11] = 20;
        a.datagram(&mut h.cx(), Dir::Orig, &data, data.len() as u32);
        assert!(h.events().concat().ends_with(r#""data_len":20"#));
        assert_eq!(weirds(&h)[1..], is(&[("deficit_netbios_hdr_len", "(20 < 23)")]));
        a.datagram(&mut h.cx(), Dir::Orig, &data[..13], 13);
        assert!(h.violated(Tag::Netbios));
    }

    #[test]
    fn a_thousand_messages_are_a_thousand_events() {
        for proto in [Proto::Tcp, Proto::Udp] {
            let mut h = Harness::new(proto, 139);
            h.listen("netbios_session_message");
            let mut a = Analyzer::new(&mut h.cx());
            let mut count = 0;
            for n in 0..1_000u16 {
                h.now += Interval::from_millis(10);
                let from = if n % 2 == 0 { Dir::Orig } else { Dir::Resp };
                match proto {
                    Proto::Tcp => a.stream(&mut h.cx(), from, b"\x85\0\0\x02ab"),
                    _ => {
                        let data = b"\x14\0\0\0\x0a\0\0\x01\0\x8a\0\x10\0\0ab";
                        a.datagram(&mut h.cx(), from, data, data.len() as u32);
                    }
                }
                count += h.events().len();
            }
            assert_eq!(count, 1_000);
            assert!(weirds(&h).is_empty());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(data: Vec<u8>, size in 1usize..40) {
            for proto in [Proto::Tcp, Proto::Udp] {
                let mut h = Harness::new(proto, 139);
                h.listen("");
                let mut a = Analyzer::new(&mut h.cx());
                for part in data.chunks(size) {
                    a.stream(&mut h.cx(), Dir::Orig, part);
                    a.datagram(&mut h.cx(), Dir::Resp, part, part.len() as u32);
                }
                a.end(&mut h.cx(), Dir::Orig);
                a.finish(&mut h.cx());
                h.events();
            }
        }
    }
}
