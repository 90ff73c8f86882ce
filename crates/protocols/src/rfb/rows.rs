use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::*;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each remote desktop connection.
    pub struct RfbRow<'a> = "rfb" {
        /// Time of the first version message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// The client's major version.
        client_major_version: Option<&'a [u8]> = "client_major_version",
        /// The client's minor version.
        client_minor_version: Option<&'a [u8]> = "client_minor_version",
        /// The server's major version.
        server_major_version: Option<&'a [u8]> = "server_major_version",
        /// The server's minor version.
        server_minor_version: Option<&'a [u8]> = "server_minor_version",
        /// Authentication method.
        authentication_method: Option<&'static str> = "authentication_method",
        /// Whether the authentication succeeded.
        auth: Option<bool> = "auth",
        /// Whether the desktop is shared.
        share_flag: Option<bool> = "share_flag",
        /// Name of the desktop.
        desktop_name: Option<&'a [u8]> = "desktop_name",
        /// Width of the desktop in pixels.
        width: Option<u16> = "width",
        /// Height of the desktop in pixels.
        height: Option<u16> = "height",
    }
}

/// The row of a connection, once it has begun.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    fn session(&mut self, cx: &Context<'_>) -> &mut Session {
        self.0.get_or_insert_with(|| Session::new(cx.now))
    }

    /// Writes the row, unless it was written.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = &mut self.0 {
            session.write(cx);
        }
    }
}

impl OnEvent<RfbClientVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RfbClientVersion<'_>) {
        let version = (event.major_version.to_vec(), event.minor_version.to_vec());
        self.session(cx).client = Some(version);
    }
}

impl OnEvent<RfbServerVersion<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RfbServerVersion<'_>) {
        let version = (event.major_version.to_vec(), event.minor_version.to_vec());
        self.session(cx).server = Some(version);
    }
}

impl OnEvent<RfbAuthenticationType> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RfbAuthenticationType) {
        self.session(cx).method = Some(event.authtype);
    }
}

impl OnEvent<RfbAuthenticationResult> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &RfbAuthenticationResult) {
        if let Some(session) = &mut self.0 {
            session.auth = Some(event.result);
        }
    }
}

impl OnEvent<RfbShareFlag> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &RfbShareFlag) {
        if let Some(session) = &mut self.0 {
            session.share = Some(event.flag);
        }
    }
}

impl OnEvent<RfbServerParameters<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RfbServerParameters<'_>) {
        let session = self.session(cx);
        session.screen = Some((event.width, event.height, event.name.to_vec()));
        session.write(cx);
    }
}

/// The fields of a row.
#[derive(Debug)]
struct Session {
    ts: Time,
    /// Major and minor version of the client.
    client: Option<(Vec<u8>, Vec<u8>)>,
    /// Major and minor version of the server.
    server: Option<(Vec<u8>, Vec<u8>)>,
    method: Option<u32>,
    auth: Option<bool>,
    share: Option<bool>,
    screen: Option<(u16, u16, Vec<u8>)>,
    logged: bool,
}

impl Session {
    fn new(ts: Time) -> Self {
        Self {
            ts,
            client: None,
            server: None,
            method: None,
            auth: None,
            share: None,
            screen: None,
            logged: false,
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.logged, true) {
            return;
        }
        let (client, server) = (self.client.as_ref(), self.server.as_ref());
        let screen = self.screen.as_ref();
        cx.log(&RfbRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            client_major_version: client.map(|v| &v.0[..]),
            client_minor_version: client.map(|v| &v.1[..]),
            server_major_version: server.map(|v| &v.0[..]),
            server_minor_version: server.map(|v| &v.1[..]),
            authentication_method: self.method.map(method),
            auth: self.auth,
            share_flag: self.share,
            desktop_name: screen.map(|s| &s.2[..]),
            width: screen.map(|s| s.0),
            height: screen.map(|s| s.1),
        });
    }
}

/// Name of a security type (RFC 6143 section 8.1.2 and its registry).
fn method(code: u32) -> &'static str {
    match code {
        0 => "Invalid",
        1 => "None",
        2 => "VNC",
        16 => "Tight",
        17 => "Ultra",
        18 => "TLS",
        19 => "VeNCrypt",
        20 => "GTK-VNC SASL",
        21 => "MD5 hash authentication",
        22 => "Colin Dean xvp",
        30 => "Apple Remote Desktop",
        _ => "RealVNC",
    }
}
