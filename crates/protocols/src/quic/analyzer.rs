use gannet_base::Dir;

use super::crypto::Hello;
use super::crypto::Progress;
use super::crypto::TOO_MUCH;
use super::events::*;
use super::message;
use super::message::Frame;
use super::message::Kind;
use super::message::LongHeader;
use super::message::Malformed;
use super::message::Packet;
use super::protection::Keys;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Request;
use crate::Tag;
use crate::ssl;
use crate::ssl::extension;
use crate::ssl::message as tls;
use crate::support::Bytes;
use crate::violations::violation_counts;

/// Maximum number of datagrams without a packet that are added to the history.
const MAX_DISCARDED: u32 = 100;

/// Counter of one side's short headers; powers of two are reported.
#[derive(Clone, Copy, Debug, Default)]
struct ShortHeaders {
    seen: u64,
}

impl ShortHeaders {
    /// Counts one more and returns the count if it is a power of two.
    fn add(&mut self) -> Option<u64> {
        self.seen = self.seen.saturating_add(1);
        self.seen.is_power_of_two().then_some(self.seen)
    }
}

/// The analyzer of one connection of datagrams.
pub struct Analyzer {
    rows: Rows,
    /// A QUIC connection has begun and not ended.
    is_connected: bool,
    /// The TLS analyzer for the hellos of both sides; `None` until it is needed.
    tls: Option<Box<ssl::Analyzer>>,
    /// TLS analysis failed.
    tls_failed: bool,
    /// Destination id of the client's first packet, from which the keys are derived.
    client_id: Option<Vec<u8>>,
    /// Keys of both sides with their version, derived when needed.
    keys: [Option<Box<(u32, Keys)>>; 2],
    hellos: [Hello; 2],
    /// Length of the client's own connection id, which short headers sent to it do not contain.
    client_id_len: usize,
    opened: bool,
    /// Number of packets that were decrypted.
    decrypted: u64,
    discarded: u32,
    shorts: [ShortHeaders; 2],
    /// The traffic is not QUIC.
    skip: bool,
    /// Decrypted content of the current packet; the buffer is reused.
    plaintext: Vec<u8>,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            rows: Rows::default(),
            is_connected: false,
            tls: None,
            tls_failed: false,
            client_id: None,
            keys: [None, None],
            hellos: Default::default(),
            client_id_len: 0,
            opened: false,
            decrypted: 0,
            discarded: 0,
            shorts: [ShortHeaders::default(); 2],
            skip: false,
            plaintext: Vec::new(),
        }
    }

    /// Handles the first packet of a datagram and returns its length in bytes.
    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<usize, Malformed> {
        let (packet, len) = message::packet(data, self.client_id_len)?;
        match packet {
            Packet::NotQuic => {
                self.discarded = self.discarded.saturating_add(1);
                if self.opened && self.discarded <= MAX_DISCARDED {
                    let (is_orig, total_decrypted) = (from.is_orig(), self.decrypted);
                    let rows = &mut self.rows;
                    cx.report(rows, |c| DiscardedPacket { c, is_orig, total_decrypted });
                }
            }
            Packet::Short => {
                if let Some(n) = self.shorts[from.index()].add() {
                    let is_orig = from.is_orig();
                    // Before a packet was decrypted, other traffic on the port would be reported.
                    if self.opened || self.is_connected {
                        let (rows, threshold) = (&mut self.rows, n);
                        cx.report(rows, |c| ShortHeaderPacketThresholdCrossed {
                            c,
                            is_orig,
                            threshold,
                        });
                    }
                }
            }
            Packet::UnknownVersion(header) => {
                let LongHeader { version, destination: dcid, source: scid, .. } = header;
                let is_orig = from.is_orig();
                let rows = &mut self.rows;
                cx.report(rows, |c| UnhandledVersion { c, is_orig, version, dcid, scid });
                self.is_connected = false;
                return Err("unhandled QUIC version");
            }
            Packet::Long(header) => self.long(cx, from, &header, &data[..len])?,
        }
        Ok(len)
    }

    fn long(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        header: &LongHeader<'_>,
        packet: &[u8],
    ) -> Result<(), Malformed> {
        report_long(cx, &mut self.rows, from, header, packet);
        self.is_connected = header.kind != Kind::Retry;
        match header.kind {
            Kind::Handshake | Kind::ZeroRtt => {}
            Kind::Retry => self.restart(),
            Kind::Initial { number_at } => {
                self.initial(cx, from, header, packet, number_at)?;
            }
        }
        Ok(())
    }

    /// Starts over after a Retry: new keys, and a new handshake.
    fn restart(&mut self) {
        self.client_id = None;
        self.keys = [None, None];
        self.hellos = Default::default();
        if let Some(tls) = &mut self.tls {
            tls.restart();
        }
    }

    /// Decrypts an Initial packet, unless the side's hello was complete before.
    fn initial(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        header: &LongHeader<'_>,
        packet: &[u8],
        number_at: usize,
    ) -> Result<(), Malformed> {
        if self.hellos[from.index()].is_finished() {
            return Ok(());
        }
        if from.is_orig() {
            self.client_id.get_or_insert_with(|| header.destination.to_vec());
        }
        let Some(client_id) = &self.client_id else { return Ok(()) };
        self.client_id_len = match from {
            Dir::Orig => header.source.len(),
            Dir::Resp => header.destination.len(),
        };
        let keys = &mut self.keys[from.index()];
        if keys.as_ref().is_none_or(|k| k.0 != header.version) {
            let fresh = Keys::initial(header.version, client_id, from);
            *keys = Some(Box::new((header.version, fresh)));
        }
        let mut plaintext = std::mem::take(&mut self.plaintext);
        let opened = keys.as_ref().and_then(|k| k.1.open(packet, number_at, &mut plaintext));
        if opened.is_none() || plaintext.is_empty() {
            return Err("decryption failed");
        }
        self.opened = true;
        self.decrypted += 1;
        cx.confirm(Tag::Quic);
        let read = self.frames(cx, from, header, &plaintext);
        if !self.hellos.iter().all(Hello::is_finished) {
            self.plaintext = plaintext;
        }
        read
    }

    fn frames(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        header: &LongHeader<'_>,
        data: &[u8],
    ) -> Result<(), Malformed> {
        let mut b = Bytes(data);
        while let Some(frame) = message::frame(&mut b)? {
            match frame {
                Frame::Crypto { offset, data } => {
                    let hello = &mut self.hellos[from.index()];
                    let progress = hello.add(offset, data)?;
                    if progress != Progress::Partial {
                        let message = hello.take();
                        self.keys[from.index()] = None;
                        self.hello(cx, from, &message);
                    }
                    if progress == Progress::CompleteWithExcess {
                        return Err(TOO_MUCH);
                    }
                }
                Frame::Close { error, reason } => {
                    let is_orig = from.is_orig();
                    let LongHeader { version, destination: dcid, source: scid, .. } = *header;
                    cx.report(&mut self.rows, |c| ConnectionCloseFrame {
                        c,
                        is_orig,
                        version,
                        dcid,
                        scid,
                        error_code: error,
                        reason_phrase: reason,
                    });
                    self.is_connected = false;
                }
            }
        }
        Ok(())
    }

    /// Passes a side's hello to the TLS analyzer as one record.
    fn hello(&mut self, cx: &mut Context<'_>, from: Dir, message: &[u8]) {
        if self.tls_failed {
            return;
        }
        if self.is_connected {
            read_hello(cx, &mut self.rows, message);
        }
        let mut record = vec![22, 3, 3];
        // A reassembled message is no longer than a record.
        record.extend_from_slice(&(message.len() as u16).to_be_bytes());
        record.extend_from_slice(message);
        let tls = self.tls.get_or_insert_with(|| Box::new(ssl::Analyzer::new(cx)));
        let before = cx.requests.len();
        tls.stream(cx, from, &record);
        let fails = |r: &Request| matches!(r, Request::Violation { tag: Tag::Ssl, .. });
        if cx.requests[before..].iter().any(fails) && violation_counts(cx.conn) {
            tls.finish(cx);
            self.tls = None;
            self.tls_failed = true;
        }
    }
}

/// Reports a packet with a long header.
fn report_long(
    cx: &mut Context<'_>,
    rows: &mut Rows,
    from: Dir,
    header: &LongHeader<'_>,
    packet: &[u8],
) {
    let is_orig = from.is_orig();
    let LongHeader { version, destination: dcid, source: scid, kind } = *header;
    match kind {
        Kind::Initial { .. } => {
            cx.report(rows, |c| InitialPacket { c, is_orig, version, dcid, scid });
        }
        Kind::Handshake => cx.report(rows, |c| HandshakePacket { c, is_orig, version, dcid, scid }),
        Kind::ZeroRtt => cx.report(rows, |c| ZeroRttPacket { c, is_orig, version, dcid, scid }),
        Kind::Retry => {
            // First byte, version, and both ids with their lengths.
            let rest = packet.get(7 + dcid.len() + scid.len()..).unwrap_or_default();
            let at = rest.len().saturating_sub(message::RETRY_TAG);
            let (retry_token, retry_integrity_tag) = rest.split_at(at);
            cx.report(rows, |c| RetryPacket {
                c,
                is_orig,
                version,
                dcid,
                scid,
                retry_token,
                retry_integrity_tag,
            });
        }
    }
}

/// Raises the events of a hello for quic.log, unless it is malformed.
fn read_hello(cx: &mut Context<'_>, rows: &mut Rows, message: &[u8]) {
    let Some((&[kind, ..], body)) = message.split_first_chunk::<4>() else { return };
    let sender = match kind {
        tls::kind::CLIENT_HELLO => read_client_hello(cx, rows, body),
        tls::kind::SERVER_HELLO => tls::ServerHello::parse(body).map(|_| Dir::Resp),
        _ => return,
    };
    if let Ok(side) = sender {
        cx.report(rows, |c| HelloRead { c, is_orig: side.is_orig() });
    }
}

fn read_client_hello(
    cx: &mut Context<'_>,
    rows: &mut Rows,
    body: &[u8],
) -> Result<Dir, tls::Malformed> {
    let mut hello = tls::ClientHello::parse(body, |_| false)?;
    while !hello.extensions.is_empty() {
        let (ty, data) = extension::next(&mut hello.extensions)?;
        match ty {
            extension::ty::SERVER_NAME if !data.is_empty() => {
                if let Some(name) = extension::ServerNames::parse(data)?.hosts.first() {
                    cx.report(rows, |c| HelloServerName { c, name });
                }
            }
            extension::ty::ALPN if !data.is_empty() => {
                let names = extension::alpn_names(data)?;
                cx.report(rows, |c| HelloProtocols { c, protocols: &names });
            }
            _ => {}
        }
    }
    Ok(Dir::Orig)
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        let mut rest = data;
        while !rest.is_empty() && !self.skip {
            match self.packet(cx, from, rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(reason) => {
                    self.skip = true;
                    cx.violation(Tag::Quic, reason, data);
                    cx.done(Tag::Quic);
                }
            }
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.close(cx);
        if let Some(mut tls) = self.tls.take() {
            tls.finish(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;
    use proptest::prelude::*;

    use super::super::protection::tests::seal;
    use super::*;
    use crate::ssl::samples;
    use crate::testing::Harness;

    const O: Dir = Dir::Orig;
    const R: Dir = Dir::Resp;

    /// The client's first destination id.
    const ID: &[u8] = b"\x83\x94\xc8\xf0\x3e\x51\x57\x08";

    fn header(first: u8, version: u32, to: &[u8], from: &[u8]) -> Vec<u8> {
        let mut h = vec![first];
        h.extend(version.to_be_bytes());
        for id in [to, from] {
            h.push(id.len() as u8);
            h.extend(id);
        }
        h
    }

    fn initial(version: u32, dir: Dir, to: &[u8], from: &[u8], frames: &[u8]) -> Vec<u8> {
        let keys = Keys::initial(version, ID, dir);
        let first = if version == message::VERSION_2 { 0xd0 } else { 0xc0 };
        let mut head = header(first, version, to, from);
        head.push(0);
        seal(&keys, &head, 7, frames)
    }

    fn crypto(at: usize, data: &[u8]) -> Vec<u8> {
        let mut f = vec![0x06];
        f.extend((0x4000 | at as u16).to_be_bytes());
        f.extend((0x4000 | data.len() as u16).to_be_bytes());
        f.extend(data);
        f
    }

    fn client_hello() -> Vec<u8> {
        let alpn = samples::extension(16, b"\x00\x09\x02h3\x05h3-29");
        let versions = samples::extension(43, &[2, 3, 4]);
        let name = samples::server_name(b"example.com");
        samples::message(1, &samples::client_hello(0x0303, &[], &[name, alpn, versions]))
    }

    fn server_hello() -> Vec<u8> {
        let share = samples::extension(51, &[0, 29, 0, 1, 0xaa]);
        let chosen = samples::extension(43, &[3, 4]);
        samples::message(2, &samples::server_hello(0x0303, &[], 0x1301, &[chosen, share]))
    }

    fn run(datagrams: &[(Dir, Vec<u8>)]) -> Harness {
        let mut h = Harness::new(Proto::Udp, 443);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in datagrams {
            a.datagram(&mut h.cx(), *dir, data, data.len() as u32);
        }
        a.finish(&mut h.cx());
        h
    }

    fn handshake(version: u32) -> Vec<(Dir, Vec<u8>)> {
        let hello = client_hello();
        let (front, back) = hello.split_at(20);
        // The hello is split into two parts, the later one first, with padding and a ping between
        // them.
        let frames = [crypto(20, back), vec![0, 0, 1, 0], crypto(0, front)].concat();
        let second = if version == message::VERSION_2 { 0xf0 } else { 0xe0 };
        let rest =
            |to, from| [&header(second, version, to, from)[..], b"\x03\x01\x02\x03"].concat();
        let acknowledged = initial(version, O, b"sv", b"cl", b"\x02\0\0\0\0");
        let answer = initial(version, R, b"cl", b"sv", &crypto(0, &server_hello()));
        vec![
            (O, initial(version, O, ID, b"cl", &frames)),
            (R, [answer, rest(b"cl", b"sv")].concat()),
            (O, [acknowledged, rest(b"sv", b"cl")].concat()),
            (O, b"\x41sv12345".to_vec()),
            (R, b"\x41cl12345".to_vec()),
            (O, b"\x41sv12345".to_vec()),
            (O, b"\x41sv12345".to_vec()),
            (R, b"\x01 no packet".to_vec()),
        ]
    }

    #[test]
    fn a_handshake_makes_rows_in_quic_and_ssl() {
        for (version, name) in [(1, "1"), (message::VERSION_2, "quicv2"), (0xff00_001d, "draft-29")]
        {
            let h = run(&handshake(version));
            let rows = h.rows("quic");
            assert_eq!(rows.len(), 1);
            let row = &rows[0];
            assert_eq!(row["version"], name);
            assert_eq!(row["client_initial_dcid"], "8394c8f03e515708");
            assert_eq!((&*row["client_scid"], &*row["server_scid"]), ("636c", "7376"));
            assert_eq!((&*row["server_name"], &*row["client_protocol"]), ("example.com", "h3"));
            assert_eq!(row["history"], "ISishIHOoOx");
            let ssl = &h.rows("ssl")[0];
            assert_eq!((&*ssl["version"], &*ssl["cipher"]), ("TLSv13", "TLS_AES_128_GCM_SHA256"));
            assert_eq!((&*ssl["server_name"], &*ssl["ssl_history"]), ("example.com", "Cs"));
            assert_eq!(h.rows("weird")[0]["addl"], "[h3, h3-29]");
            assert!(h.confirmed(Tag::Quic) && h.confirmed(Tag::Ssl) && !h.violated(Tag::Quic));
        }
    }

    #[test]
    fn a_retry_closes_the_row_and_begins_again() {
        let mut retry = header(0xf0, 1, b"cl", b"new id");
        retry.extend([9; 20]);
        let mut again = header(0xc0, 1, b"new id", b"cl");
        again.push(0);
        let keys = Keys::initial(1, b"new id", O);
        let hello = crypto(0, &client_hello());
        let h = run(&[
            (O, initial(1, O, ID, b"cl", &hello)),
            (R, retry),
            (O, seal(&keys, &again, 1, &hello)),
        ]);
        let rows = h.rows("quic");
        let reported: Vec<_> =
            rows.iter().map(|r| (&*r["client_initial_dcid"], &*r["history"])).collect();
        assert_eq!(reported, [("8394c8f03e515708", "ISr"), ("6e6577206964", "IS")]);
        assert_eq!(rows[0]["server_scid"], "-");
        let ssl = h.rows("ssl");
        assert_eq!((ssl.len(), &*ssl[0]["ssl_history"]), (1, "CC"));
    }

    #[test]
    fn a_close_ends_the_row() {
        let h = run(&[
            (O, initial(1, O, ID, b"", &crypto(0, &client_hello()))),
            (R, initial(1, R, b"", b"sv", b"\x1c\x01\x06\x03bye")),
            (O, b"\x41 short".to_vec()),
        ]);
        assert_eq!(h.rows("quic")[0]["history"], "ISic");
        let names: Vec<_> = h.rows("weird").iter().map(|r| r["name"].clone()).collect();
        assert_eq!(
            names,
            ["QUIC_many_protocols", "QUIC_spurious_short_header_packet_threshold_crossed"]
        );
    }

    #[test]
    fn unknown_versions_make_a_row_and_end_it() {
        let first = header(0xc3, 0x5130_3433, ID, b"");
        let h = run(&[(O, first.clone()), (O, first)]);
        let rows = h.rows("quic");
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0]["version"], &*rows[0]["history"]), ("unknown-51303433", "U"));
        assert_eq!((&*rows[0]["client_scid"], &*rows[0]["server_scid"]), ("(empty)", "-"));
        assert!(h.violated(Tag::Quic) && !h.confirmed(Tag::Quic));
    }

    #[test]
    fn what_does_not_open_is_a_violation() {
        let mut broken = initial(1, O, ID, b"", &crypto(0, &client_hello()));
        *broken.last_mut().unwrap() ^= 1;
        let h = run(&[(O, broken)]);
        assert!(h.violated(Tag::Quic) && !h.confirmed(Tag::Quic));
        assert_eq!(h.rows("quic")[0]["history"], "I");
        assert!(h.rows("ssl").is_empty());
    }

    #[test]
    fn other_datagrams_say_nothing() {
        let h = run(&[(O, b"hello".to_vec()), (R, vec![0x16, 0xfe, 0xfd]), (O, vec![])]);
        assert!(h.requests.is_empty());
        assert!(h.rows("quic").is_empty() && h.rows("weird").is_empty());
    }

    #[test]
    fn a_history_has_an_end() {
        let mut rest = header(0xe0, 1, b"", b"sv");
        rest.push(0);
        let many = vec![(R, rest.repeat(120))];
        let h = run(&many);
        assert_eq!(h.rows("quic")[0]["history"], "h".repeat(100));
        assert_eq!(h.rows("weird")[0]["name"], "QUIC_max_history_length_reached");
    }

    proptest! {
        #[test]
        fn any_frames_are_survived(
            frames in prop::collection::vec(any::<u8>(), 2..200),
            crypto_first: bool,
            from_client: bool,
            at in 0usize..3000,
        ) {
            let dir = if from_client { O } else { R };
            let frames = if crypto_first { crypto(at, &frames) } else { frames };
            let mut packets = handshake(1);
            packets.truncate(1);
            packets.push((dir, initial(1, dir, ID, b"x", &frames)));
            packets.push((dir, frames));
            let h = run(&packets);
            prop_assert!(h.rows("quic").len() <= 3);
        }
    }
}
