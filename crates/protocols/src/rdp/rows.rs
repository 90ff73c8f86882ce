use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;
use gannet_log::Vector;

use super::events::*;
use super::languages::language;
use crate::Context;
use crate::OnEvent;
use crate::stack::events::FileStarts;
use crate::support::utf16;

/// Time after the first message at which the row is written.
const LOG_AFTER: Interval = Interval::from_secs(10);

gannet_log::row! {
    /// One row for each remote desktop connection.
    pub struct RdpRow<'a> = "rdp" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The client's cookie, which is usually the beginning of the user name.
        cookie: Option<&'a [u8]> = "cookie",
        /// Result of the negotiation, or `encrypted`.
        result: Option<Name> = "result",
        /// Security protocol.
        security_protocol: Option<Name> = "security_protocol",
        /// Virtual channels that the client requests.
        client_channels: Option<Vector<&'a [u8]>> = "client_channels",
        /// Language of the keyboard.
        keyboard_layout: Option<Keyboard> = "keyboard_layout",
        /// The client's version.
        client_build: Option<Name> = "client_build",
        /// The client's name.
        client_name: Option<&'a [u8]> = "client_name",
        /// The client's product identifier.
        client_dig_product_id: Option<&'a [u8]> = "client_dig_product_id",
        /// Width of the desktop in pixels.
        desktop_width: Option<u16> = "desktop_width",
        /// Height of the desktop in pixels.
        desktop_height: Option<u16> = "desktop_height",
        /// Color depth that the client requests.
        requested_color_depth: Option<Name> = "requested_color_depth",
        /// Type of the server's certificate.
        cert_type: Option<Name> = "cert_type",
        /// Number of certificates seen.
        cert_count: u64 = "cert_count",
        /// Whether the certificate is permanent.
        cert_permanent: Option<bool> = "cert_permanent",
        /// Level of RDP's own encryption.
        encryption_level: Option<Name> = "encryption_level",
        /// Method of RDP's own encryption.
        encryption_method: Option<Name> = "encryption_method",
    }
}

/// A value, written by name if it is known, otherwise as a number after a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Known.
    Known(&'static str),
    /// Unknown: the kind of value, and the number.
    Unknown(&'static str, u32),
}

impl Value for Name {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match self {
            Self::Known(name) => e.plain(name.as_bytes()),
            Self::Unknown(kind, n) => e.plain(format!("{kind}-{n}").as_bytes()),
        }
    }
}

/// A keyboard layout, written as its language, or as that of its low 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct Keyboard(pub u32);

impl Value for Keyboard {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        let text = match (language(self.0), language(self.0 & 0xffff)) {
            (Some(name), _) => return e.plain(name.as_bytes()),
            (None, Some(name)) => format!("{name} (Best Guess for {})", self.0),
            (None, None) => format!("keyboard-{}", self.0),
        };
        e.plain(text.as_bytes());
    }
}

fn name(kind: &'static str, n: u32, known: Option<&'static str>) -> Name {
    known.map_or(Name::Unknown(kind, n), Name::Known)
}

fn build(n: u32) -> Name {
    let known = match n {
        419 => "RDP 4.0",
        2195 | 2221 => "RDP 5.0",
        2600 => "RDP 5.1",
        3790 => "RDP 5.2",
        6000 => "RDP 6.0",
        6001 => "RDP 6.1",
        6002 => "RDP 6.2",
        7600 => "RDP 7.0",
        7601 => "RDP 7.1",
        9200 => "RDP 8.0",
        9600 => "RDP 8.1",
        25_189 | 25_282 => "RDP 8.0 (Mac)",
        _ => return name("client_build", n, None),
    };
    Name::Known(known)
}

fn security_protocol(n: u32) -> Name {
    let known = match n {
        0 => Some("RDP"),
        1 => Some("SSL"),
        2 => Some("HYBRID"),
        8 => Some("HYBRID_EX"),
        _ => None,
    };
    name("security_protocol", n, known)
}

fn failure(n: u32) -> Name {
    let known = match n {
        1 => Some("SSL_REQUIRED_BY_SERVER"),
        2 => Some("SSL_NOT_ALLOWED_BY_SERVER"),
        3 => Some("SSL_CERT_NOT_ON_SERVER"),
        4 => Some("INCONSISTENT_FLAGS"),
        5 => Some("HYBRID_REQUIRED_BY_SERVER"),
        6 => Some("SSL_WITH_USER_AUTH_REQUIRED_BY_SERVER"),
        _ => None,
    };
    name("failure_code", n, known)
}

fn result(n: u64) -> Name {
    let known = match n {
        0 => Some("Success"),
        1 => Some("User rejected"),
        2 => Some("Resources not available"),
        3 => Some("Rejected for symmetry breaking"),
        4 => Some("Locked conference"),
        _ => None,
    };
    name("result", n as u32, known)
}

fn cert_type(n: u32) -> Name {
    let known = match n {
        1 => Some("RSA"),
        2 => Some("X.509"),
        _ => None,
    };
    name("cert_type", n, known)
}

fn encryption_method(n: u32) -> Name {
    let known = match n {
        0 => Some("None"),
        1 => Some("40bit"),
        2 => Some("128bit"),
        8 => Some("56bit"),
        10 => Some("FIPS"),
        _ => None,
    };
    name("encryption_method", n, known)
}

fn encryption_level(n: u32) -> Name {
    let known = match n {
        0 => Some("None"),
        1 => Some("Low"),
        2 => Some("Client compatible"),
        3 => Some("High"),
        4 => Some("FIPS"),
        _ => None,
    };
    name("encryption_level", n, known)
}

fn depth(core: &CoreData<'_>) -> Name {
    let depth = core.high_color_depth.unwrap_or_default();
    let known = match depth {
        _ if core.ec_flags.is_some_and(|flags| flags.want_32bpp_session) => Some("32bit"),
        4 => Some("4bit"),
        8 => Some("8bit"),
        15 => Some("15bit"),
        16 => Some("16bit"),
        24 => Some("24bit"),
        _ => None,
    };
    name("high_color_depth", u32::from(depth), known)
}

/// The name of a channel without trailing zeros.
fn channel(name: &[u8]) -> Vec<u8> {
    let end = name.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
    name[..end].to_vec()
}

/// The row of a connection, created with its first message.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    fn session(&mut self, cx: &Context<'_>) -> &mut Session {
        self.0.get_or_insert_with(|| Session { ts: cx.now, ..Session::default() })
    }

    /// Writes the row if it is due.
    pub(super) fn write_if_due(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.0
            && session.is_due(cx.now)
        {
            session.write(cx);
        }
    }

    /// Writes the row, unless it was written.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.0 {
            session.write(cx);
        }
    }
}

impl OnEvent<RdpConnectRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpConnectRequest<'_>) {
        self.session(cx).cookie = Some(event.cookie.to_vec());
    }
}

impl OnEvent<RdpNegotiationResponse> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpNegotiationResponse) {
        self.session(cx).security_protocol = Some(security_protocol(event.security_protocol));
    }
}

impl OnEvent<RdpNegotiationFailure> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpNegotiationFailure) {
        self.session(cx).result = Some(failure(event.failure_code));
    }
}

impl OnEvent<RdpGccServerCreateResponse> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpGccServerCreateResponse) {
        self.session(cx).result = Some(result(event.result));
    }
}

impl OnEvent<RdpBeginEncryption> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpBeginEncryption) {
        let session = self.session(cx);
        session.result.get_or_insert(Name::Known("encrypted"));
        session.security_protocol = Some(security_protocol(event.security_protocol));
    }
}

impl OnEvent<RdpClientCoreData<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpClientCoreData<'_>) {
        let core = &event.data;
        self.session(cx).client = Some(Client {
            keyboard: Keyboard(core.keyboard_layout),
            build: build(core.client_build),
            name: utf16::text(cx, core.client_name.0),
            product: {
                // The text is unused, but its weirds are reported.
                utf16::text(cx, core.ime_file_name.0);
                utf16::text(cx, core.dig_product_id.map_or(b"", |id| id.0))
            },
            width: core.desktop_width,
            height: core.desktop_height,
            depth: depth(core),
        });
    }
}

impl OnEvent<RdpClientNetworkData<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpClientNetworkData<'_>) {
        let requested = event.channels.0;
        // Repeated channels overwrite the first ones.
        let channels = self.session(cx).channels.get_or_insert_default();
        let rest = channels.split_off(requested.len().min(channels.len()));
        *channels = requested.iter().map(|(name, _)| channel(name)).chain(rest).collect();
    }
}

impl OnEvent<RdpServerCertificate> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpServerCertificate) {
        let session = self.session(cx);
        session.cert_type = Some(cert_type(event.cert_type));
        session.cert_permanent = Some(event.permanently_issued);
        session.cert_count += u64::from(event.cert_type == 1);
    }
}

/// A certificate of the server.
impl OnEvent<FileStarts> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &FileStarts) {
        self.session(cx).cert_count += 1;
    }
}

impl OnEvent<RdpServerSecurity> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RdpServerSecurity) {
        let session = self.session(cx);
        session.method = Some(encryption_method(event.encryption_method));
        session.level = Some(encryption_level(event.encryption_level));
    }
}

/// The fields of a connection's row.
#[derive(Debug, Default)]
struct Session {
    ts: Time,
    cookie: Option<Vec<u8>>,
    result: Option<Name>,
    security_protocol: Option<Name>,
    channels: Option<Vec<Vec<u8>>>,
    client: Option<Client>,
    cert_type: Option<Name>,
    cert_count: u64,
    cert_permanent: Option<bool>,
    level: Option<Name>,
    method: Option<Name>,
    done: bool,
}

#[derive(Debug)]
struct Client {
    keyboard: Keyboard,
    build: Name,
    name: Vec<u8>,
    product: Vec<u8>,
    width: u16,
    height: u16,
    depth: Name,
}

impl Session {
    /// Whether the row is due.
    fn is_due(&self, now: Time) -> bool {
        !self.done && now - self.ts > LOG_AFTER
    }

    /// Writes the row, unless it was written or there is nothing to log.
    fn write(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let client = self.client.as_ref();
        if self.cookie.is_none() && self.result.is_none() && client.is_none() {
            return;
        }
        let channels = self.channels.as_ref();
        cx.log(&RdpRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            cookie: self.cookie.as_deref(),
            result: self.result,
            security_protocol: self.security_protocol,
            client_channels: channels.map(|c| Vector(c.iter().map(|c| &c[..]).collect())),
            keyboard_layout: client.map(|c| c.keyboard),
            client_build: client.map(|c| c.build),
            client_name: client.map(|c| &c.name[..]),
            client_dig_product_id: client.map(|c| &c.product[..]),
            desktop_width: client.map(|c| c.width),
            desktop_height: client.map(|c| c.height),
            requested_color_depth: client.map(|c| c.depth),
            cert_type: self.cert_type,
            cert_count: self.cert_count,
            cert_permanent: self.cert_permanent,
            encryption_level: self.level,
            encryption_method: self.method,
        });
    }
}
