use gannet_base::Dir;

use super::message;
use super::message::Auth;
use super::message::Body;
use super::message::Malformed;
use super::message::Message;
use super::message::operation;
use super::rows::Pending;
use super::sasl;
use super::sasl::Mode;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;
use crate::gssapi;
use crate::ntlm;
use crate::support::Frames;

/// Bytes of a message that are kept; of a longer one the rest is skipped, and what its beginning
/// says counts.
const MAX_MESSAGE: usize = 1 << 20;

/// A login's result.
const SUCCESS: u8 = 0;

/// What both transports have in common: the state of one connection.
struct Core {
    tag: Tag,
    pending: Pending,
    mode: Mode,
    /// The mechanism of the last login by SASL.
    mechanism: Vec<u8>,
    tls_requested: bool,
    confirmed: bool,
    /// Logins that are followed, if any.
    logins: Option<Box<Logins>>,
}

/// Tokens of logins, and the rows they make.
#[derive(Default)]
struct Logins {
    rows: gssapi::Logins,
    gssapi: gssapi::Inner,
    ntlm: ntlm::Inner,
}

impl Core {
    fn new(cx: &Context<'_>, tag: Tag) -> Self {
        Self {
            tag,
            pending: Pending::default(),
            mode: Mode::Clear,
            mechanism: Vec::new(),
            tls_requested: false,
            confirmed: false,
            logins: cx.env.options.inner_protocols.then(Box::default),
        }
    }

    /// A message from its first byte; the end of a `cut` one is missing.
    fn message(&mut self, cx: &mut Context<'_>, data: &[u8], cut: bool) -> Result<(), Malformed> {
        let m = message::parse(data, cut)?;
        match &m.body {
            Body::Bind { auth, .. } => self.login(cx, auth)?,
            Body::BindResponse(outcome, credentials) => {
                let success = outcome.code == SUCCESS;
                self.login_response(cx, success, credentials)?;
            }
            Body::Extended(name) if **name == *message::START_TLS => self.tls_requested = true,
            _ => {}
        }
        self.pending.message(cx, &m);
        if !std::mem::replace(&mut self.confirmed, true) {
            cx.confirm(self.tag);
        }
        if self.tls_requested && is_success(&m) {
            self.mode = Mode::Tls;
        }
        Ok(())
    }

    fn login(&mut self, cx: &mut Context<'_>, auth: &Auth<'_>) -> Result<(), Malformed> {
        match auth {
            Auth::Sasl { mechanism, credentials } => {
                self.mechanism = mechanism.to_vec();
                if let Some(credentials) = credentials {
                    self.follow(cx, credentials, true)?;
                }
            }
            Auth::SicilyNegotiate(token) | Auth::SicilyResponse(token) => {
                if let Some(logins) = &mut self.logins {
                    logins.ntlm.deliver(cx, &mut logins.rows.ntlm, token);
                }
            }
            Auth::Simple(_) | Auth::Other(_) => {}
        }
        Ok(())
    }

    fn login_response(
        &mut self,
        cx: &mut Context<'_>,
        success: bool,
        credentials: &[&[u8]],
    ) -> Result<(), Malformed> {
        if success && !self.mechanism.is_empty() {
            self.mode = Mode::Undecided;
        }
        for (i, token) in credentials.iter().enumerate() {
            if i == 0 && self.mechanism == b"GSS-SPNEGO" && sasl::accepts_kerberos(token)? {
                self.mode = Mode::Kerberos;
            }
            self.follow(cx, token, false)?;
        }
        Ok(())
    }

    /// A token of the mechanism at hand.
    fn follow(
        &mut self,
        cx: &mut Context<'_>,
        token: &[u8],
        from_client: bool,
    ) -> Result<(), Malformed> {
        let bare_ntlm = match &self.mechanism[..] {
            b"GSS-SPNEGO" if from_client => sasl::is_bare_ntlm(token)?,
            b"GSS-SPNEGO" => token.starts_with(b"NTLMSSP"),
            mechanism => mechanism == b"NTLM",
        };
        let Some(logins) = &mut self.logins else { return Ok(()) };
        if bare_ntlm {
            logins.ntlm.deliver(cx, &mut logins.rows.ntlm, token);
        } else if matches!(&self.mechanism[..], b"GSS-SPNEGO" | b"GSSAPI") {
            logins.gssapi.deliver(cx, &mut logins.rows, token);
        }
        Ok(())
    }

    /// All messages in a row.
    fn messages(&mut self, cx: &mut Context<'_>, mut data: &[u8]) -> Result<(), Malformed> {
        while !data.is_empty() && self.mode != Mode::Tls {
            let len = message::length(data).min(data.len());
            let (one, rest) = data.split_at(len);
            self.message(cx, one, false)?;
            data = rest;
        }
        Ok(())
    }

    /// One of SASL's buffers.
    fn buffer(&mut self, cx: &mut Context<'_>, buffer: &[u8], cut: bool) -> Result<(), Malformed> {
        if self.mode == Mode::Undecided {
            // Only GSSAPI's mechanisms wrap their buffers' content in tokens.
            let gssapi = self.mechanism.is_empty() || self.mechanism.starts_with(b"GSS");
            self.mode =
                if gssapi && sasl::is_wrap_token(buffer) { Mode::Kerberos } else { Mode::Sealed };
        }
        if self.mode == Mode::Kerberos && !cut {
            let messages = sasl::unwrap(buffer)?;
            self.messages(cx, messages)?;
        }
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.pending.finish(cx);
        if let Some(logins) = &mut self.logins {
            logins.rows.finish(cx);
        }
    }
}

fn is_success(m: &Message<'_>) -> bool {
    m.code == operation::EXTENDED_RESPONSE
        && matches!(&m.body, Body::Outcome(outcome) if outcome.code == SUCCESS)
}

/// The analyzer of one TCP connection.
pub struct Tcp {
    core: Core,
    frames: [Frames; 2],
    /// What the beginning that each side's frames hold was taken for.
    buffered: [bool; 2],
    /// Nothing further can be read.
    blind: bool,
}

impl Tcp {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            core: Core::new(cx, Tag::LdapTcp),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            buffered: [false; 2],
            blind: false,
        }
    }

    /// Reads a chunk; gives what follows the message that ended LDAP, if one did.
    fn chunk<'d>(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        mut data: &'d [u8],
    ) -> Result<Option<&'d [u8]>, Malformed> {
        let (frames, buffered) = (&mut self.frames[from.index()], &mut self.buffered[from.index()]);
        while !data.is_empty() && self.core.mode != Mode::Tls {
            if !frames.has_partial() {
                *buffered = match self.core.mode {
                    Mode::Clear | Mode::Tls => false,
                    Mode::Kerberos | Mode::Sealed => true,
                    Mode::Undecided if data[0] == 0x30 => {
                        self.core.mode = Mode::Clear;
                        false
                    }
                    Mode::Undecided => true,
                };
            }
            if *buffered {
                let Some(buffer) = frames.next(&mut data, sasl::buffer_length) else { break };
                let cut = buffer.len() < sasl::buffer_length(buffer);
                self.core.buffer(cx, buffer, cut)?;
            } else {
                let Some(message) = frames.next(&mut data, message::length) else { break };
                let cut = message.len() < message::length(message);
                self.core.message(cx, message, cut)?;
            }
        }
        Ok((self.core.mode == Mode::Tls).then_some(data))
    }

    fn give_up(&mut self) {
        self.blind = true;
        self.frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
    }
}

impl Analyze for Tcp {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.blind {
            return;
        }
        match self.chunk(cx, from, data) {
            Ok(None) => {}
            Ok(Some(rest)) => {
                self.give_up();
                if cx.env.options.inner_protocols {
                    let chunks = if rest.is_empty() { vec![] } else { vec![(from, rest.to_vec())] };
                    cx.start(Tag::Ssl, Replay { chunks });
                }
            }
            Err(reason) => {
                self.give_up();
                cx.violation(self.core.tag, reason, data);
            }
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, _from: Dir, _len: u64) {
        if !self.blind {
            self.give_up();
            cx.violation(self.core.tag, "part of the stream is missing", &[]);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}

/// The analyzer of one connection of datagrams.
pub struct Udp {
    core: Core,
    blind: bool,
}

impl Udp {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self { core: Core::new(cx, Tag::LdapUdp), blind: false }
    }
}

impl Analyze for Udp {
    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        if !self.blind
            && let Err(reason) = self.core.messages(cx, data)
        {
            self.blind = true;
            cx.violation(self.core.tag, reason, data);
        }
    }

    fn is_idle(&self) -> bool {
        !self.blind
            && self.core.pending.is_empty()
            && self.core.mode == Mode::Clear
            && self.core.mechanism.is_empty()
            && !self.core.tls_requested
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}
