//! Handles records, of both streams and datagrams (RFC 8446 section 5, RFC 5246 section 6.2).
//!
//! Records are in clear text until their sender switches to encryption. Up to TLS 1.2 a
//! ChangeCipherSpec announces this; in TLS 1.3 that message has no meaning, and the first
//! application data is encrypted. A session is established when both sides have switched and one
//! encrypted record was seen.

use gannet_base::Dir;
use gannet_base::Proto;

use super::decryption::Randoms;
use super::events::Alert;
use super::events::AlertCode;
use super::events::ChangeCipherSpec;
use super::events::EncryptedData;
use super::events::Established;
use super::events::Heartbeat;
use super::events::PlaintextData;
use super::events::ProbableHandshake;
use super::events::Recognized;
use super::events::Violated;
use super::message::Malformed;
use super::message::Reader;
use super::message::SignatureForm;
use super::names;
use super::role::Role;
use super::role::content;
use super::rows::Session;
use crate::Context;
use crate::Tag;

/// Maximum number of alerts that are parsed in one record; more are skipped, with a weird.
const MAX_ALERTS: usize = 10;

/// State of one session above its framing.
pub(super) struct Core {
    /// SSL or DTLS.
    pub(super) tag: Tag,
    /// The rows of the session.
    pub(super) session: Session,
    /// The handshake protocol.
    pub(super) handshake: Handshake,
    /// Whether a side has switched to encryption, by [`Dir::index`].
    pub(super) encrypted: [bool; 2],
    established: bool,
    confirmed: bool,
    /// The protocol was confirmed without a violation: the analyzer is removed when the session is
    /// established.
    removes_when_established: bool,
    /// Version, type and length of the current record.
    pub(super) record: (u16, u16, usize),
    /// Parsing stopped permanently.
    pub(super) is_stopped: bool,
}

/// State of the handshake protocol of one session.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// Beginning of an incomplete message, by [`Dir::index`].
    pub(super) partial: [Vec<u8>; 2],
    /// Version that the server chose.
    pub(super) version: Option<u16>,
    /// Cipher suite that the server chose.
    pub(super) cipher: Option<u16>,
    /// Whether the client is the responder.
    pub(super) is_flipped: bool,
    /// Whether the unclear direction was reported.
    pub(super) reported_unclear: bool,
    /// The random bytes of the hellos, if scripts may have the secrets of the session.
    pub(super) randoms: Option<Box<Randoms>>,
}

impl Handshake {
    pub(super) fn choose(&mut self, version: u16) {
        // A supported_versions extension is parsed before the version of its hello, and overrides
        // it.
        self.version.get_or_insert(version);
    }

    pub(super) fn signature_form(&self) -> SignatureForm {
        match self.version {
            Some(v) if v > names::TLS11 && v != names::DTLS10 => SignatureForm::WithAlgorithm,
            _ => SignatureForm::Bare,
        }
    }
}

impl Core {
    /// Whether both sides completed the handshake.
    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    pub(super) fn new(tag: Tag) -> Self {
        Self {
            tag,
            session: Session::default(),
            handshake: Handshake::default(),
            encrypted: [false; 2],
            established: false,
            confirmed: false,
            removes_when_established: false,
            record: (0, 0, 0),
            is_stopped: false,
        }
    }

    /// The role of a side.
    pub(super) fn role(&self, from: Dir) -> Role {
        Role::of_sender(from, self.handshake.is_flipped)
    }

    /// Confirms the protocol.
    pub(super) fn confirm(&mut self, cx: &mut Context<'_>) {
        if !self.confirmed {
            self.confirmed = true;
            cx.confirm(self.tag);
            cx.report(&mut self.session, |c| Recognized { c });
            self.removes_when_established = true;
        }
    }

    /// Whether the protocol is confirmed.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Reports a violation of the protocol.
    pub(super) fn violation(&mut self, cx: &mut Context<'_>, reason: &str) {
        cx.violation(self.tag, reason, &[]);
        // After a gap in the stream, an invalid message is not a violation.
        let incomplete = cx.conn.proto == Proto::Tcp && (cx.conn.is_partial() || cx.conn.has_gap());
        if !incomplete {
            cx.report(&mut self.session, |c| Violated { c });
            self.removes_when_established = false;
        }
    }

    /// Like [`violation`](Self::violation), and stops parsing.
    pub(super) fn fail(&mut self, cx: &mut Context<'_>, reason: &str) {
        self.is_stopped = true;
        self.violation(cx, reason);
    }

    /// Whether the server chose TLS 1.3 or a draft of it.
    pub(super) fn is_tls13(&self) -> bool {
        let version = self.handshake.version;
        version == Some(names::TLS13) || version.is_some_and(names::is_draft13)
    }

    /// Handles an encrypted record, whose header is [`record`](Self::record).
    pub(super) fn ciphertext(&mut self, cx: &mut Context<'_>, from: Dir) {
        let (record_version, content_type, length) = self.record;
        let length = length as u64;
        if !self.established && self.is_tls13() {
            let is_client = from.is_orig();
            cx.raise(|c| ProbableHandshake { c, is_client, length });
        }
        if !self.established && self.encrypted == [true; 2] {
            self.establish(cx);
        }
        let is_client = self.role(from) == Role::Client;
        cx.raise(|c| EncryptedData { c, is_client, record_version, content_type, length });
    }

    /// Switches both sides to encryption, although no message announced it.
    pub(super) fn start_encryption(&mut self) {
        self.encrypted = [true; 2];
        self.established = true;
    }

    /// Marks the session as established.
    pub(super) fn establish(&mut self, cx: &mut Context<'_>) {
        self.established = true;
        cx.report(&mut self.session, |c| Established { c });
    }

    /// Whether no more data is needed: the row is written, and the analyzer may be removed.
    ///
    /// In script mode, the scripts decide when to remove it.
    pub(super) fn is_done(&self, cx: &Context<'_>) -> bool {
        self.established && self.removes_when_established && !cx.env.is_scripted()
    }

    /// Handles a record in clear text: `kind` as in [`content`], `data` without its header.
    pub(super) fn plaintext(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        kind: u16,
        data: &[u8],
    ) -> Result<(), Malformed> {
        match kind {
            content::ALERT => self.alerts(cx, from, data)?,
            content::HEARTBEAT => {
                let head = Reader::new(data).take(3, "Heartbeat:payload_length")?;
                let role = self.role(from);
                cx.report(&mut self.session, |c| Heartbeat {
                    c,
                    is_client: role == Role::Client,
                    length: data.len() as u64,
                    heartbeat_type: head[0].into(),
                    payload_length: u16::from_be_bytes([head[1], head[2]]),
                    payload: &data[3..],
                });
            }
            content::APPLICATION_DATA => {}
            _ => {
                let side = match from {
                    Dir::Orig => "originator",
                    Dir::Resp => "responder",
                };
                self.violation(cx, &format!("unknown SSL record type ({kind}) from {side}"));
            }
        }
        self.report_plaintext(cx, from);
        Ok(())
    }

    /// Reports a record in clear text of any type.
    pub(super) fn report_plaintext(&mut self, cx: &mut Context<'_>, from: Dir) {
        let (record_version, content_type, length) = self.record;
        let is_client = self.role(from) == Role::Client;
        cx.report(&mut self.session, |c| PlaintextData {
            c,
            is_client,
            record_version,
            content_type,
            length: length as u64,
        });
    }

    /// Handles a ChangeCipherSpec, of one octet.
    pub(super) fn change_cipher_spec(&mut self, cx: &mut Context<'_>, from: Dir) {
        if !self.is_tls13() {
            self.encrypted[from.index()] = true;
        }
        let role = self.role(from);
        cx.report(&mut self.session, |c| ChangeCipherSpec { c, is_client: role == Role::Client });
        self.report_plaintext(cx, from);
    }

    fn alerts(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), Malformed> {
        // RFC 8446 section 5.1: one alert per record.
        let max_alerts = cx.env.setting("SSL::max_alerts_per_record", MAX_ALERTS as u64);
        let max_alerts = usize::try_from(max_alerts).unwrap_or(usize::MAX / 2);
        let max = if self.is_tls13() { 2 } else { max_alerts.saturating_mul(2) };
        if data.len() > max {
            let count = (data.len() / 2).to_string();
            cx.weird("SSL_excessive_alerts_in_record", &count, Some(self.tag.name()));
        }
        let mut r = Reader::new(&data[..data.len().min(max)]);
        while !r.is_empty() {
            let alert = r.nested(|r| r.take(2, "Alert"))?;
            let (level, description) = (alert[0], alert[1]);
            let role = self.role(from);
            cx.report(&mut self.session, |c| Alert {
                c,
                is_client: role == Role::Client,
                level: level.into(),
                desc: AlertCode(description.into()),
            });
        }
        Ok(())
    }
}
