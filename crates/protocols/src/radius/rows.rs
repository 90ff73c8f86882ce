use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::RadiusMessage;
use super::message;
use super::message::Attributes;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each access request.
    pub struct RadiusRow<'a> = "radius" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// User that requests access.
        username: Option<&'a [u8]> = "username",
        /// Link-layer address of the user.
        mac: Option<&'a [u8]> = "mac",
        /// The address assigned to the user.
        framed_addr: Option<Addr> = "framed_addr",
        /// Client endpoint of the tunnel.
        tunnel_client: Option<&'a [u8]> = "tunnel_client",
        /// Description of the user's connection.
        connect_info: Option<&'a [u8]> = "connect_info",
        /// Message from the server to the user.
        reply_msg: Option<&'a [u8]> = "reply_msg",
        /// `success`, `failed` or `unknown`.
        result: Option<&'static str> = "result",
        /// Time from the first to the last message.
        ttl: Option<Interval> = "ttl",
    }
}

/// Writes a row for each request.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl OnEvent<RadiusMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RadiusMessage<'_>) {
        let message = &event.result;
        let session = self.0.get_or_insert_with(|| Session::new(cx.now));
        if let Some(result) = session.message(message.code, message.attributes) {
            session.write(cx, result, true);
            self.0 = None;
        }
    }
}

impl Rows {
    /// Writes the row of a request without a reply at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = self.0.take() {
            session.write(cx, "unknown", false);
        }
    }
}

/// A request that has not been answered finally.
#[derive(Debug)]
struct Session {
    ts: Time,
    username: Option<Vec<u8>>,
    mac: Option<Vec<u8>>,
    framed_addr: Option<Addr>,
    tunnel_client: Option<Vec<u8>>,
    connect_info: Option<Vec<u8>>,
    reply_msg: Option<Vec<u8>>,
}

impl Session {
    fn new(ts: Time) -> Self {
        Self {
            ts,
            username: None,
            mac: None,
            framed_addr: None,
            tunnel_client: None,
            connect_info: None,
            reply_msg: None,
        }
    }

    /// Adds the values of a message; returns the result if the message ends the exchange.
    fn message(&mut self, code: u64, all: Option<Attributes<'_>>) -> Option<&'static str> {
        let value = |code| all.and_then(|all| all.first(code));
        let first = |slot: &mut Option<Vec<u8>>, code| {
            if slot.is_none() {
                *slot = value(code).map(<[u8]>::to_vec);
            }
        };
        match code {
            message::REQUEST => {
                first(&mut self.username, 1);
                if self.mac.is_none() {
                    self.mac = value(31).map(mac);
                }
                first(&mut self.tunnel_client, 66);
                first(&mut self.connect_info, 77);
            }
            message::CHALLENGE => {
                if self.framed_addr.is_none() {
                    self.framed_addr =
                        value(8).map(|a| Addr::v4(a.first_chunk().copied().unwrap_or_default()));
                }
                first(&mut self.reply_msg, 18);
            }
            message::ACCEPT => return Some("success"),
            message::REJECT => return Some("failed"),
            _ => {}
        }
        None
    }

    fn write(&self, cx: &mut Context<'_>, result: &'static str, ended: bool) {
        let ttl = cx.now.micros_since(self.ts);
        cx.log(&RadiusRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            username: self.username.as_deref(),
            mac: self.mac.as_deref(),
            framed_addr: self.framed_addr,
            tunnel_client: self.tunnel_client.as_deref(),
            connect_info: self.connect_info.as_deref(),
            reply_msg: self.reply_msg.as_deref(),
            result: Some(result),
            ttl: (ended && ttl != Interval::ZERO).then_some(ttl),
        });
    }
}

/// Formats a text with 12 or 16 hexadecimal digits as pairs with colons; empty for other texts.
fn mac(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = text
        .iter()
        .filter(|b| b.is_ascii_hexdigit())
        .map(u8::to_ascii_lowercase)
        .take(17)
        .collect();
    if !matches!(digits.len(), 12 | 16) {
        return Vec::new();
    }
    digits.chunks(2).collect::<Vec<_>>().join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_layer_addresses() {
        assert_eq!(mac(b"00-14-22-E9-54-5E"), b"00:14:22:e9:54:5e");
        assert_eq!(mac(b"0014.22e9.545e.0102"), b"00:14:22:e9:54:5e:01:02");
        assert_eq!(mac(b"00-14-22"), b"");
        assert_eq!(mac(b"00112233445566778899"), b"");
    }
}
