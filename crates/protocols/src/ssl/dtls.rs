//! DTLS 1.0, 1.2 and 1.3 (RFC 4347, 6347, 9147): records in datagrams, and handshake messages whose
//! fragments arrive in any order.

use gannet_base::Dir;

use super::message::Malformed;
use super::message::Reader;
use super::names;
use super::record::Core;
use super::role::content;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Maximum length of a handshake message that is reassembled from fragments, in bytes.
const MAX_MESSAGE: usize = 100_000;
/// Maximum distance between record numbers of fragments of one message.
const WINDOW: u64 = 32;
/// Maximum number of parts that are stored separately; beyond it they are merged.
const MAX_PARTS: usize = 64;
/// Number of records of unknown version after which parsing stops. The count restarts with each
/// record of a known version after a client hello.
const MAX_BAD_VERSIONS: u32 = 10;
/// Number of records of unknown version that are reported as violations.
const MAX_REPORTED_VERSIONS: u32 = 1;

/// A handshake message that is being reassembled.
#[derive(Debug, Default)]
struct Fragments {
    /// Message sequence number; `None` before the first message.
    message: Option<u16>,
    /// Length of the message, in bytes.
    len: usize,
    /// The parts, concatenated in the order of arrival.
    bytes: Vec<u8>,
    /// Offset in the message and length of each part.
    parts: Vec<(usize, usize)>,
    /// Lowest record number of a part.
    first: u64,
    /// Whether the record `first` contained the beginning of the message.
    first_seen: bool,
    /// Number of the record that contained the end; 0 before it was seen.
    last: u64,
    /// Bitmap of the records seen: bit i for number `first + i`.
    seen: u32,
}

/// The header of a handshake message's fragment (RFC 6347 section 4.2.2).
#[derive(Clone, Copy, Debug)]
struct Fragment<'a> {
    kind: u8,
    /// Length of the whole message, in bytes.
    len: usize,
    message: u16,
    offset: usize,
    /// Length of the fragment according to its header, in bytes.
    fragment_len: usize,
    data: &'a [u8],
    /// Number of the record that contains it.
    record: u64,
}

/// The analyzer of one DTLS connection.
pub struct Dtls {
    core: Core,
    fragments: [Fragments; 2],
    bad_versions: u32,
    reported_versions: u32,
    /// Parsing stopped.
    is_stopped: bool,
}

impl Dtls {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            core: Core::new(Tag::Dtls),
            fragments: <[Fragments; 2]>::default(),
            bad_versions: 0,
            reported_versions: 0,
            is_stopped: false,
        }
    }

    /// Parses all records of a datagram.
    fn records(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        let mut r = Reader::new(data);
        while !r.is_empty() {
            let kind = r.u8("SSLRecordSwitch:firstbyte")?;
            r = Reader::new(r.rest());
            if self.core.handshake.version == Some(names::DTLS13) && kind & 0xe0 == 0x20 {
                return self.unified_record(cx, from, kind, r);
            }
            let head = r.take(12, "SSLRecord:length")?;
            let word = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
            if !self.check_version(cx, word(0)) {
                return Ok(());
            }
            let encrypted = word(2) != 0;
            let mut number = [0; 8];
            number[2..].copy_from_slice(&head[4..10]);
            let content = r.take(word(10).into(), "SSLRecord:rec")?;
            self.core.record = (word(0), u16::from(kind), content.len());
            self.record(cx, from, kind, encrypted, u64::from_be_bytes(number), content)?;
        }
        Ok(())
    }

    fn check_version(&mut self, cx: &mut Context<'_>, version: u16) -> bool {
        if matches!(version, names::DTLS10 | names::DTLS12) {
            if self.core.is_confirmed() {
                self.bad_versions = 0;
            }
            return true;
        }
        self.bad_versions += 1;
        if self.core.is_confirmed() {
            self.reported_versions = self.reported_versions.saturating_add(1);
            let max = cx
                .env
                .setting("SSL::dtls_max_reported_version_errors", MAX_REPORTED_VERSIONS.into());
            if u64::from(self.reported_versions) <= max {
                let reason = format!(
                    "Invalid version in DTLS connection. Packet reported version: {version}"
                );
                self.core.violation(cx, &reason);
            }
        }
        let max = cx.env.setting("SSL::dtls_max_version_errors", MAX_BAD_VERSIONS.into());
        if u64::from(self.bad_versions) > max {
            self.core.is_stopped = true;
        }
        false
    }

    /// Parses an encrypted record of DTLS 1.3 (RFC 9147 section 4), which takes the rest of the
    /// datagram.
    fn unified_record(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        flags: u8,
        mut r: Reader<'_>,
    ) -> Result<(), Malformed> {
        let (has_id, long_number, has_length) =
            (flags & 0x10 != 0, flags & 0x08 != 0, flags & 0x04 != 0);
        // The record does not contain the length of a connection id.
        if !has_id {
            r.take(1 + usize::from(long_number), "UnifiedRecord:sequence_number")?;
            if has_length {
                r.u16("UnifiedRecord:length")?;
            }
        }
        self.core.encrypted[from.index()] = true;
        self.core.record = (names::DTLS13, content::APPLICATION_DATA, r.rest().len());
        self.core.ciphertext(cx, from);
        Ok(())
    }

    fn record(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        kind: u8,
        encrypted: bool,
        number: u64,
        mut data: &[u8],
    ) -> Result<(), Malformed> {
        while !data.is_empty() {
            if encrypted {
                self.core.ciphertext(cx, from);
                return Ok(());
            }
            match u16::from(kind) {
                content::CHANGE_CIPHER_SPEC => {
                    self.core.change_cipher_spec(cx, from);
                    data = &data[1..];
                }
                content::HANDSHAKE => {
                    self.handshake(cx, from, number, data)?;
                    self.core.report_plaintext(cx, from);
                    return Ok(());
                }
                kind => return self.core.plaintext(cx, from, kind, data),
            }
        }
        Ok(())
    }

    fn handshake(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        record: u64,
        data: &[u8],
    ) -> Result<(), Malformed> {
        let mut r = Reader::new(data);
        let mut head = Reader::new(r.take(12, "Handshake:fragment_length")?);
        let fragment = Fragment {
            kind: head.u8("msg_type")?,
            len: head.u24("length")? as usize,
            message: head.u16("message_seq")?,
            offset: head.u24("fragment_offset")? as usize,
            fragment_len: head.u24("fragment_length")? as usize,
            data: r.rest(),
            record,
        };
        if fragment.offset == 0 && fragment.len == fragment.fragment_len {
            self.forward(cx, from, fragment.kind, fragment.len, fragment.data);
            return Ok(());
        }
        match self.fragments[from.index()].add(fragment) {
            Ok(false) => {}
            Ok(true) => {
                let message_bytes = self.fragments[from.index()].message_bytes();
                self.forward(cx, from, fragment.kind, fragment.len, &message_bytes);
            }
            Err(reason) => self.core.violation(cx, &reason),
        }
        Ok(())
    }

    /// Passes a message on with a TLS header, which lacks the fragment fields.
    fn forward(&mut self, cx: &mut Context<'_>, from: Dir, kind: u8, len: usize, data: &[u8]) {
        let [_, a, b, c] = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        self.core.handshake_parts(cx, from, [kind, a, b, c], data);
    }
}

impl Fragments {
    /// Adds a part; returns whether the message is complete.
    ///
    /// # Errors
    /// If the part is invalid.
    fn add(&mut self, part: Fragment<'_>) -> Result<bool, String> {
        if part.len > MAX_MESSAGE {
            return Err(format!("DTLS record length {} larger than allowed maximum.", part.len));
        }
        if self.message != Some(part.message) || self.len != part.len {
            let (mut bytes, mut parts) =
                (std::mem::take(&mut self.bytes), std::mem::take(&mut self.parts));
            bytes.clear();
            parts.clear();
            *self = Self {
                message: Some(part.message),
                len: part.len,
                bytes,
                parts,
                first: part.record,
                ..Self::default()
            };
        }
        if self.first.abs_diff(part.record) >= WINDOW {
            return Err("DTLS handshake fragment sequence number outside reassembly window.".into());
        }
        if self.first > part.record {
            if self.first_seen {
                return Err("Saw second and different first message fragment for handshake.".into());
            }
            self.seen <<= self.first - part.record;
            self.first = part.record;
        }
        if part.offset == 0 {
            self.first_seen = true;
        }
        let bit = 1 << (part.record - self.first);
        if self.seen & bit != 0 {
            return Ok(false);
        }
        if part.data.len() != part.fragment_len {
            return Err("DTLS handshake record length does not match packet length".into());
        }
        let end = part.offset + part.fragment_len;
        if end > self.len {
            return Err("DTLS handshake fragment trying to write past end of buffer".into());
        }
        if self.parts.len() >= MAX_PARTS || self.bytes.len() > 2 * MAX_MESSAGE {
            self.bytes = self.message_bytes();
            self.parts.clear();
            self.parts.push((0, self.len));
        }
        self.bytes.extend_from_slice(part.data);
        self.parts.push((part.offset, part.data.len()));
        self.seen |= bit;
        if end == part.len {
            self.last = part.record;
        }
        if self.last == 0 || !self.first_seen {
            return Ok(false);
        }
        let spread = self.last.wrapping_sub(self.first);
        if spread > WINDOW - 2 {
            return Err(
                "DTLS Message fragmented over more than 30 pieces. Cannot reassemble.".into()
            );
        }
        let all = (1_u32 << (spread + 1)) - 1;
        // Memory for the message grows with the received data, not with the length field.
        Ok(self.seen & all == all && self.bytes.len() >= self.len)
    }

    /// The message. Where parts overlap, the later one is used.
    fn message_bytes(&self) -> Vec<u8> {
        let mut message_bytes = vec![0; self.len];
        let mut rest = &self.bytes[..];
        for &(offset, len) in &self.parts {
            let (part, after) = rest.split_at(len);
            message_bytes[offset..offset + len].copy_from_slice(part);
            rest = after;
        }
        message_bytes
    }
}

impl Analyze for Dtls {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        // STUN (RFC 5389), recognized by its magic cookie, shares the port with DTLS in media
        // sessions.
        let stun = data.len() > 20 && data[4..8] == [0x21, 0x12, 0xa4, 0x42];
        if self.is_stopped || stun {
            return;
        }
        if let Err(e) = self.records(cx, from, data) {
            self.core.violation(cx, &e.to_string());
        }
        if self.core.is_stopped || self.core.is_done(cx) {
            self.is_stopped = true;
            self.fragments = <[Fragments; 2]>::default();
            cx.done(Tag::Dtls);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.session.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::super::samples::*;
    use super::*;
    use crate::testing::Harness;

    fn dtls_record(kind: u8, epoch: u16, number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![kind, 0xfe, 0xfd];
        out.extend(epoch.to_be_bytes());
        out.extend([0, 0, 0, 0, 0, number]);
        out.extend((content.len() as u16).to_be_bytes());
        out.extend(content);
        out
    }

    fn part(ty: u8, seq: u16, body: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
        let u24 = |n: usize| (n as u32).to_be_bytes()[1..].to_vec();
        let mut out = vec![ty];
        out.extend(u24(body.len()));
        out.extend(seq.to_be_bytes());
        out.extend(u24(range.start));
        out.extend(u24(range.len()));
        out.extend(&body[range]);
        out
    }

    #[test]
    fn fragments_in_any_order() {
        let client = client_hello(0xfefd, &[], &[server_name(b"example.com")]);
        let server = server_hello(0xfefd, &[], 0xc02f, &[]);
        let key = ecdhe();
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        let n = client.len();
        let parts = [
            dtls_record(22, 0, 2, &part(1, 0, &client, 40..n)),
            dtls_record(22, 0, 0, &part(1, 0, &client, 0..10)),
            dtls_record(22, 0, 0, &part(1, 0, &client, 0..10)),
            dtls_record(22, 0, 1, &part(1, 0, &client, 10..40)),
        ];
        for p in &parts {
            assert!(!h.confirmed(Tag::Dtls));
            a.datagram(&mut h.cx(), Dir::Orig, p, p.len() as u32);
        }
        assert!(h.confirmed(Tag::Dtls));
        let answer = [
            dtls_record(22, 0, 0, &part(2, 0, &server, 0..server.len())),
            dtls_record(22, 0, 1, &part(12, 1, &key, 0..key.len())),
            dtls_record(20, 0, 2, &[1]),
        ]
        .concat();
        a.datagram(&mut h.cx(), Dir::Resp, &answer, 0);
        let finished = [dtls_record(20, 0, 3, &[1]), dtls_record(22, 1, 0, &[0xee; 30])].concat();
        a.datagram(&mut h.cx(), Dir::Orig, &finished, 0);
        let row = &h.rows("ssl")[0];
        assert_eq!(row["version"], "DTLSv12");
        assert_eq!(row["curve"], "secp256r1");
        assert_eq!(row["server_name"], "example.com");
        assert_eq!(row["ssl_history"], "CskiI");
        assert_eq!(row["established"], "T");
        assert!(!h.violated(Tag::Dtls));
    }

    #[test]
    fn a_message_behind_a_broken_one() {
        let hello = client_hello(0xfefd, &[], &[]);
        let mut first = part(1, 0, &hello, 0..hello.len());
        // Two bytes of the extensions' length and the following data arrive with the next message,
        // which makes an unknown extension.
        first[3] += 2;
        first[11] += 2;
        let again = message(1, &hello);
        let ask = part(0, 0, &again, 0..again.len());
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &dtls_record(22, 0, 0, &first), 0);
        a.datagram(&mut h.cx(), Dir::Orig, &dtls_record(22, 0, 1, &ask), 0);
        assert!(h.violated(Tag::Dtls) && !h.confirmed(Tag::Dtls));
    }

    #[test]
    fn parts_take_the_room_of_what_came() {
        let mut f = Fragments::default();
        let far = |message, offset| Fragment {
            kind: 11,
            len: 90_000,
            message,
            offset,
            fragment_len: 1,
            data: b"x",
            record: 7,
        };
        assert_eq!(f.add(far(0, 89_000)), Ok(false));
        assert_eq!(f.add(far(1, 89_999)), Ok(false));
        assert!(f.bytes.capacity() < 100);
        // Both ends have arrived, but not the middle.
        assert_eq!(f.add(Fragment { record: 6, ..far(1, 0) }), Ok(false));
        assert!(f.bytes.capacity() < 100);
        // Records with decreasing numbers are never seen twice.
        for i in 0..10_000 {
            f.add(Fragment { record: 1_000_000 - 31 * i, ..far(2, 5) }).unwrap();
            assert!(f.parts.len() <= MAX_PARTS);
        }
    }

    #[test]
    fn both_sides_ask() {
        let hello = client_hello(0xfefd, &[], &[]);
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        for i in 0..53 {
            let from = if i % 2 == 0 { Dir::Orig } else { Dir::Resp };
            let ask = dtls_record(22, 0, i, &part(1, 0, &hello, 0..hello.len()));
            a.datagram(&mut h.cx(), from, &ask, 0);
        }
        a.finish(&mut h.cx());
        let history = ["C", &"^C".repeat(49), "^", &"^C".repeat(2)].concat();
        assert_eq!(h.rows("ssl")[0]["ssl_history"], history);
    }

    #[test]
    fn a_length_that_no_message_has() {
        let mut huge = part(1, 0, &[0; 20], 0..10);
        huge[1..4].copy_from_slice(&[0xff, 0xff, 0xff]);
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        a.datagram(&mut h.cx(), Dir::Orig, &dtls_record(22, 0, 0, &huge), 0);
        assert!(h.violated(Tag::Dtls));
    }

    #[test]
    fn stun_is_not_looked_at() {
        let mut stun = vec![0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42];
        stun.extend([0; 20]);
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        for _ in 0..20 {
            a.datagram(&mut h.cx(), Dir::Orig, &stun, 28);
        }
        assert_eq!((a.bad_versions, h.requests.len()), (0, 0));
    }

    #[test]
    fn records_of_unknown_version_are_borne_ten_times() {
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Dtls::new(&mut h.cx());
        for i in 0..12 {
            assert_eq!(a.is_stopped, i > 10);
            a.datagram(&mut h.cx(), Dir::Orig, &[0x16; 30], 30);
        }
        assert!(!h.violated(Tag::Dtls));
        assert_eq!(h.requests.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn any_fragments_are_survived(
            parts in proptest::collection::vec(
                (0_u8..40, 0_usize..60, 0_usize..60, 0_usize..60), 0..40),
        ) {
            let mut f = Fragments::default();
            let body = [7; 60];
            for (record, len, offset, n) in parts {
                let message_bytes = f.add(Fragment {
                    kind: 1,
                    len,
                    message: 0,
                    offset,
                    fragment_len: n,
                    data: &body[..n],
                    record: record.into(),
                });
                proptest::prop_assert!(message_bytes != Ok(true) || f.message_bytes().len() == len);
            }
        }
    }
}
