use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use crate::Context;

gannet_log::row! {
    /// One row for each remote desktop.
    pub struct RfbRow<'a> = "rfb" {
        /// Time of the first version message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
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
        /// The screen's name.
        desktop_name: Option<&'a [u8]> = "desktop_name",
        /// Its width in pixels.
        width: Option<u16> = "width",
        /// Its height in pixels.
        height: Option<u16> = "height",
    }
}

/// The data of a connection's row.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) ts: Time,
    /// Major and minor version of client and server.
    pub(super) version: [Option<(Vec<u8>, Vec<u8>)>; 2],
    pub(super) method: Option<u32>,
    pub(super) auth: Option<bool>,
    pub(super) share: Option<bool>,
    pub(super) screen: Option<(u16, u16, Vec<u8>)>,
    logged: bool,
}

impl Session {
    pub(super) fn new(ts: Time) -> Self {
        Self {
            ts,
            version: [None, None],
            method: None,
            auth: None,
            share: None,
            screen: None,
            logged: false,
        }
    }

    /// Writes the row unless it was.
    pub(super) fn write(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.logged, true) {
            return;
        }
        let [client, server] = &self.version;
        let screen = self.screen.as_ref();
        cx.log(&RfbRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            client_major_version: client.as_ref().map(|v| &v.0[..]),
            client_minor_version: client.as_ref().map(|v| &v.1[..]),
            server_major_version: server.as_ref().map(|v| &v.0[..]),
            server_minor_version: server.as_ref().map(|v| &v.1[..]),
            authentication_method: self.method.map(method),
            auth: self.auth,
            share_flag: self.share,
            desktop_name: screen.map(|s| &s.2[..]),
            width: screen.map(|s| s.0),
            height: screen.map(|s| s.1),
        });
    }
}

/// A way to authenticate, in words (RFC 6143 section 8.1.2 and its registry).
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
