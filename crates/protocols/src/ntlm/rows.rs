use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::message::Message;
use crate::Context;
use crate::support::utf16;

gannet_log::row! {
    /// One row for each connection: its first login with a known outcome, or the facts seen of one.
    pub struct NtlmRow<'a> = "ntlm" {
        /// When the login began.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// User.
        username: Option<&'a [u8]> = "username",
        /// The client's computer.
        hostname: Option<&'a [u8]> = "hostname",
        /// Domain.
        domainname: Option<&'a [u8]> = "domainname",
        /// NetBIOS name of the server.
        server_nb_computer_name: Option<&'a [u8]> = "server_nb_computer_name",
        /// DNS name of the server.
        server_dns_computer_name: Option<&'a [u8]> = "server_dns_computer_name",
        /// DNS name of the server's forest.
        server_tree_name: Option<&'a [u8]> = "server_tree_name",
        /// Whether the login succeeded.
        success: Option<bool> = "success",
    }
}

type Text = Option<Vec<u8>>;

#[derive(Debug, Default)]
struct Info {
    ts: Time,
    user: Text,
    host: Text,
    domain: Text,
    netbios_computer: Text,
    dns_computer: Text,
    tree: Text,
    success: Option<bool>,
}

/// The row of one connection, in the making.
#[derive(Debug, Default)]
pub struct Session {
    info: Option<Box<Info>>,
    logged: bool,
}

impl Session {
    pub(super) fn message(&mut self, cx: &mut Context<'_>, message: &Message<'_>) {
        if self.logged || *message == Message::Other {
            return;
        }
        let now = cx.now;
        let info = self.info.get_or_insert_with(|| Box::new(Info { ts: now, ..Info::default() }));
        match message {
            Message::Challenge(c) => {
                set(cx, &mut info.netbios_computer, c.netbios_computer);
                set(cx, &mut info.dns_computer, c.dns_computer);
                set(cx, &mut info.tree, c.dns_tree);
            }
            Message::Authenticate(a) => {
                set(cx, &mut info.domain, a.domain);
                set(cx, &mut info.host, a.workstation);
                set(cx, &mut info.user, a.user);
            }
            Message::Negotiate(_) | Message::Other => {}
        }
    }

    /// State of a login from GSSAPI: 0 accepted, 1 not yet over, 2 rejected ([RFC 4178] §4.2.2).
    ///
    /// [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178
    pub fn outcome(&mut self, cx: &mut Context<'_>, state: u64) {
        if let Some(info) = &mut self.info
            && state != 1
        {
            info.success = Some(state == 0);
            self.finish(cx);
        }
    }

    /// Writes the row, unless there was one.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(info) = self.info.take() else { return };
        self.logged = true;
        cx.log(&NtlmRow {
            ts: info.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            username: info.user.as_deref(),
            hostname: info.host.as_deref(),
            domainname: info.domain.as_deref(),
            server_nb_computer_name: info.netbios_computer.as_deref(),
            server_dns_computer_name: info.dns_computer.as_deref(),
            server_tree_name: info.tree.as_deref(),
            success: info.success,
        });
    }
}

/// A present value replaces the known one.
fn set(cx: &mut Context<'_>, to: &mut Text, text: Option<&[u8]>) {
    if let Some(text) = text {
        *to = Some(utf16::text(cx, text));
    }
}
