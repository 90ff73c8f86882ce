use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::NtlmAuthenticate;
use super::events::NtlmChallenge;
use super::events::NtlmNegotiate;
use crate::Context;
use crate::OnEvent;
use crate::gssapi::events::GssapiNegResult;
use crate::support::utf16;
use crate::support::utf16::Utf16Text;

gannet_log::row! {
    /// One row for each connection: its first login with a known outcome, or what was seen of a
    /// login without one.
    pub struct NtlmRow<'a> = "ntlm" {
        /// Time at which the login began.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// User name.
        username: Option<&'a [u8]> = "username",
        /// Name of the client's computer.
        hostname: Option<&'a [u8]> = "hostname",
        /// The user's domain.
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

/// Collects the row of one connection.
#[derive(Debug, Default)]
pub struct Session {
    info: Option<Box<Info>>,
    logged: bool,
}

impl Session {
    /// The current login; `None` after the row was written.
    fn info(&mut self, now: Time) -> Option<&mut Info> {
        if self.logged {
            return None;
        }
        Some(self.info.get_or_insert_with(|| Box::new(Info { ts: now, ..Info::default() })))
    }

    /// Writes the row, unless it was written.
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

impl OnEvent<NtlmNegotiate<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, _event: &NtlmNegotiate<'_>) {
        self.info(cx.now);
    }
}

impl OnEvent<NtlmChallenge<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &NtlmChallenge<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        if let Some(server) = &event.challenge.target_info {
            set(cx, &mut info.netbios_computer, server.nb_computer_name);
            set(cx, &mut info.dns_computer, server.dns_computer_name);
            set(cx, &mut info.tree, server.dns_tree_name);
        }
    }
}

impl OnEvent<NtlmAuthenticate<'_>> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &NtlmAuthenticate<'_>) {
        let Some(info) = self.info(cx.now) else { return };
        let client = &event.request;
        set(cx, &mut info.domain, client.domain_name);
        set(cx, &mut info.host, client.workstation);
        set(cx, &mut info.user, client.user_name);
    }
}

/// Handles the state of a login from GSSAPI: 0 accepted, 1 incomplete, 2 rejected ([RFC 4178]
/// §4.2.2).
///
/// [RFC 4178]: https://www.rfc-editor.org/rfc/rfc4178
impl OnEvent<GssapiNegResult> for Session {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &GssapiNegResult) {
        if let Some(info) = &mut self.info
            && event.state != 1
        {
            info.success = Some(event.state == 0);
            self.finish(cx);
        }
    }
}

/// Replaces a known value, if `text` is present.
fn set(cx: &mut Context<'_>, to: &mut Text, text: Option<Utf16Text<'_>>) {
    if let Some(Utf16Text(text)) = text {
        *to = Some(utf16::text(cx, text));
    }
}
