use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_files::hash::hex;

use super::events::*;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each QUIC connection.
    pub struct QuicRow<'a> = "quic" {
        /// Time of the first packet.
        ts: Time = "ts",
        /// The UDP connection that carries it.
        uid: Uid = "uid",
        /// Originator and responder of the UDP connection.
        id: ConnId = "id",
        /// The first packet's version: `1`, `quicv2`, `draft-29`, `mvfst (faceb002)`, `unknown-` and
        /// a hexadecimal number.
        version: &'a str = "version",
        /// The destination connection id of the client's first packet, in hexadecimal digits.
        client_initial_dcid: Option<&'a str> = "client_initial_dcid",
        /// The connection id that the client chose for itself.
        client_scid: Option<&'a str> = "client_scid",
        /// The connection id that the server chose for itself.
        server_scid: Option<&'a str> = "server_scid",
        /// Host name that the client connects to (SNI).
        server_name: Option<&'a [u8]> = "server_name",
        /// First application protocol that the client offered (ALPN).
        client_protocol: Option<&'a [u8]> = "client_protocol",
        /// One letter per packet, in upper case for the client: `I` Initial, `H` Handshake, `Z`
        /// 0-RTT, `R` Retry, `C` the connection was closed, `S` TLS hello, `U` unknown version, `X`
        /// not a packet, `O` short header (the first, second, fourth, eighth and so on).
        history: &'a [u8] = "history",
    }
}

/// Maximum number of letters in a history.
const MAX_HISTORY: usize = 100;

/// Writes a row for each QUIC connection within a UDP connection.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    /// Notes a packet with a long header. Every packet except those that complete a row updates its
    /// ids.
    fn packet(
        &mut self,
        cx: &mut Context<'_>,
        is_orig: bool,
        version: u32,
        ids: [&[u8]; 2],
        letter: u8,
    ) {
        let closes = matches!(letter, b'R' | b'U');
        let fresh = self.0.is_none();
        let session = self.0.get_or_insert_with(|| Session::new(cx.now, version));
        if fresh || !closes {
            session.ids(is_orig, ids);
        }
        session.note(cx, is_orig, letter);
        if closes {
            self.close(cx);
        }
    }

    /// Writes the current row.
    pub(super) fn close(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = self.0.take() {
            session.write(cx);
        }
    }

    /// Adds a letter to the history, or reports a weird if there is no current row.
    fn note_or_weird(
        &mut self,
        cx: &mut Context<'_>,
        is_orig: bool,
        letter: u8,
        weird: &'static str,
        addl: &str,
    ) {
        match &mut self.0 {
            Some(session) => session.note(cx, is_orig, letter),
            None => cx.weird(weird, addl, None),
        }
    }
}

impl OnEvent<InitialPacket<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, e: &InitialPacket<'_>) {
        self.packet(cx, e.is_orig, e.version, [e.dcid, e.scid], b'I');
    }
}

impl OnEvent<HandshakePacket<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, e: &HandshakePacket<'_>) {
        self.packet(cx, e.is_orig, e.version, [e.dcid, e.scid], b'H');
    }
}

impl OnEvent<ZeroRttPacket<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, e: &ZeroRttPacket<'_>) {
        self.packet(cx, e.is_orig, e.version, [e.dcid, e.scid], b'Z');
    }
}

impl OnEvent<RetryPacket<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, e: &RetryPacket<'_>) {
        self.packet(cx, e.is_orig, e.version, [e.dcid, e.scid], b'R');
    }
}

impl OnEvent<UnhandledVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, e: &UnhandledVersion<'_>) {
        self.packet(cx, e.is_orig, e.version, [e.dcid, e.scid], b'U');
    }
}

impl OnEvent<DiscardedPacket> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DiscardedPacket) {
        self.note_or_weird(cx, event.is_orig, b'X', "QUIC_spurious_discarded_packet", "");
    }
}

impl OnEvent<ShortHeaderPacketThresholdCrossed> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ShortHeaderPacketThresholdCrossed) {
        let name = "QUIC_spurious_short_header_packet_threshold_crossed";
        self.note_or_weird(cx, event.is_orig, b'O', name, &event.threshold.to_string());
    }
}

impl OnEvent<ConnectionCloseFrame<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ConnectionCloseFrame<'_>) {
        if let Some(session) = &mut self.0 {
            session.note(cx, event.is_orig, b'C');
            self.close(cx);
        }
    }
}

impl OnEvent<HelloServerName<'_>> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &HelloServerName<'_>) {
        if let Some(session) = &mut self.0 {
            session.server_name = Some(event.name.to_vec());
        }
    }
}

impl OnEvent<HelloProtocols<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HelloProtocols<'_>) {
        let Some(session) = &mut self.0 else { return };
        if let Some(first) = event.protocols.first() {
            session.client_protocol = Some(first.to_vec());
        }
        if event.protocols.len() > 1 {
            let addl = [b"[", &event.protocols.join(&b", "[..])[..], b"]"].concat();
            cx.weird_bytes("QUIC_many_protocols", &addl, None);
        }
    }
}

impl OnEvent<HelloRead> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HelloRead) {
        if let Some(session) = &mut self.0 {
            session.note(cx, event.is_orig, b'S');
        }
    }
}

/// The fields of a row.
#[derive(Debug)]
struct Session {
    ts: Time,
    version: String,
    client_initial_dcid: Option<Id>,
    client_scid: Option<Id>,
    server_scid: Option<Id>,
    server_name: Option<Vec<u8>>,
    client_protocol: Option<Vec<u8>>,
    history: Vec<u8>,
}

impl Session {
    /// Starts a row with the first packet of a connection.
    fn new(now: Time, version: u32) -> Self {
        Self {
            ts: now,
            version: version_name(version),
            client_initial_dcid: None,
            client_scid: None,
            server_scid: None,
            server_name: None,
            client_protocol: None,
            history: Vec::new(),
        }
    }

    /// Notes destination and source id of a packet with a long header.
    fn ids(&mut self, is_orig: bool, [destination, source]: [&[u8]; 2]) {
        if is_orig && self.client_initial_dcid.is_none() && !destination.is_empty() {
            self.client_initial_dcid = Some(Id::new(destination));
        }
        let id = source;
        let source = if is_orig { &mut self.client_scid } else { &mut self.server_scid };
        // Nearly always the same id as in all packets before.
        if source.as_ref().is_none_or(|known| *known.bytes != *id) {
            *source = Some(Id::new(id));
        }
    }

    /// Adds a letter to the history, in the case of its side.
    fn note(&mut self, cx: &mut Context<'_>, is_orig: bool, letter: u8) {
        if self.history.len() == MAX_HISTORY {
            return;
        }
        self.history.push(if is_orig { letter } else { letter.to_ascii_lowercase() });
        if self.history.len() == MAX_HISTORY {
            cx.weird("QUIC_max_history_length_reached", "", None);
        }
    }

    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&QuicRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            version: &self.version,
            client_initial_dcid: self.client_initial_dcid.as_ref().map(Id::text),
            client_scid: self.client_scid.as_ref().map(Id::text),
            server_scid: self.server_scid.as_ref().map(Id::text),
            server_name: self.server_name.as_deref(),
            client_protocol: self.client_protocol.as_deref(),
            history: &self.history,
        });
    }
}

/// A connection id.
#[derive(Debug)]
struct Id {
    bytes: Box<[u8]>,
    text: String,
}

impl Id {
    fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), text: hex(bytes) }
    }

    /// The id in hexadecimal digits.
    fn text(&self) -> &str {
        &self.text
    }
}

fn version_name(version: u32) -> String {
    match version {
        1 => "1".to_owned(),
        super::message::VERSION_2 => "quicv2".to_owned(),
        // Zeek's table lists draft 31 as draft 30.
        0xff00_001f => "draft-30".to_owned(),
        0xff00_0016..=0xff00_0022 => format!("draft-{}", version & 0xff),
        v if super::message::is_known(v) => format!("mvfst ({v:x})"),
        v => format!("unknown-{v:x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let names: Vec<_> = [1, 0x6b33_43cf, 0xff00_001d, 0xff00_001f, 0xface_b013, 0, 0x5130_3433]
            .map(version_name)
            .into();
        assert_eq!(
            names,
            [
                "1",
                "quicv2",
                "draft-29",
                "draft-30",
                "mvfst (faceb013)",
                "unknown-0",
                "unknown-51303433"
            ]
        );
    }
}
