use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

use super::message::ClientCore;
use super::message::Part;
use super::names;
use crate::Context;
use crate::support::utf16;

gannet_log::row! {
    /// One row a connection.
    pub struct RdpRow<'a> = "rdp" {
        /// When it was recognised.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Cookie of the client's request, often the user's name.
        cookie: Option<&'a [u8]> = "cookie",
        /// How the connection was set up, or why not.
        result: Option<&'a str> = "result",
        /// What secures it.
        security_protocol: Option<&'a str> = "security_protocol",
        /// Channels that the client wants.
        client_channels: Option<Vector<&'a [u8]>> = "client_channels",
        /// The client's keyboard.
        keyboard_layout: Option<&'a str> = "keyboard_layout",
        /// The client's version.
        client_build: Option<&'a str> = "client_build",
        /// The client's name.
        client_name: Option<&'a [u8]> = "client_name",
        /// The client's product number.
        client_dig_product_id: Option<&'a [u8]> = "client_dig_product_id",
        /// Width of the client's desktop.
        desktop_width: Option<u64> = "desktop_width",
        /// Height of the client's desktop.
        desktop_height: Option<u64> = "desktop_height",
        /// Colour depth that the client wants.
        requested_color_depth: Option<&'a str> = "requested_color_depth",
        /// Kind of the server's certificate.
        cert_type: Option<&'a str> = "cert_type",
        /// The server's certificates.
        cert_count: u64 = "cert_count",
        /// Whether the server's certificate is permanent.
        cert_permanent: Option<bool> = "cert_permanent",
        /// Level of encryption.
        encryption_level: Option<&'a str> = "encryption_level",
        /// Method of encryption.
        encryption_method: Option<&'a str> = "encryption_method",
    }
}

/// So long a connection is watched before its row is written.
const WATCH: Interval = Interval::from_secs(10);
/// Channels that a client may ask for.
const MAX_CHANNELS: usize = 31;

type Name = Cow<'static, str>;

#[derive(Debug, Default)]
struct Info {
    ts: Time,
    cookie: Option<Vec<u8>>,
    result: Option<Name>,
    protocol: Option<Name>,
    channels: Option<Vec<Vec<u8>>>,
    layout: Option<Name>,
    build: Option<Name>,
    name: Vec<u8>,
    product: Vec<u8>,
    desktop: Option<(u16, u16)>,
    depth: Option<Name>,
    certificate: Option<Name>,
    certificates: u64,
    permanent: Option<bool>,
    level: Option<Name>,
    method: Option<Name>,
}

/// The row of one connection, in the making.
#[derive(Debug, Default)]
pub(super) struct Session {
    info: Option<Box<Info>>,
    done: bool,
}

impl Session {
    /// Packet time went on: a connection that was watched for long enough gets its row.
    pub(super) fn look(&mut self, cx: &mut Context<'_>) {
        if self.info.as_ref().is_some_and(|i| cx.now - i.ts > WATCH) {
            self.finish(cx);
        }
    }

    pub(super) fn part(&mut self, cx: &mut Context<'_>, part: Part<'_>) {
        if self.done {
            return;
        }
        let now = cx.now;
        let info = self.info.get_or_insert_with(|| Box::new(Info { ts: now, ..Info::default() }));
        match part {
            Part::Connect(cookie) => info.cookie = Some(cookie.to_vec()),
            Part::Protocol(n) => info.protocol = Some(protocol(n)),
            Part::Failure(n) => {
                info.result = Some(names::name(names::FAILURES, "failure_code", n));
            }
            Part::ClientCore(core) => info.client(cx, &core),
            Part::Channels(list) => {
                let all = info.channels.get_or_insert_default();
                let trimmed = list.chunks_exact(12).map(|c| {
                    let end = c[..8].iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
                    c[..end].to_vec()
                });
                let new: Vec<_> = trimmed.collect();
                let count = new.len();
                // A second list replaces the beginning of the first.
                let kept = all.split_off(count.min(all.len()));
                *all = new;
                all.extend(kept);
                if count > MAX_CHANNELS {
                    let count = count.to_string();
                    cx.weird("RDP_channels_requested_exceeds_max", &count, None);
                }
            }
            Part::Created(n) => {
                info.result = Some(names::name(names::RESULTS, "result", n.into()));
            }
            Part::Security(method, level) => {
                info.method = Some(names::name(names::METHODS, "encryption_method", method));
                info.level = Some(names::name(names::LEVELS, "encryption_level", level));
            }
            Part::Certificate(kind, permanent) => {
                info.certificate = Some(names::name(names::CERTIFICATES, "cert_type", kind));
                if kind == 1 {
                    info.certificates += 1;
                }
                info.permanent = Some(permanent);
            }
            Part::X509(_) => info.certificates += 1,
            Part::Encrypted(n) => {
                info.result.get_or_insert("encrypted".into());
                info.protocol = Some(protocol(n));
            }
        }
    }

    /// Writes the row, unless there was one.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(info) = self.info.take() else { return };
        self.done = true;
        if info.cookie.is_none() && info.layout.is_none() && info.result.is_none() {
            return;
        }
        let is_told = info.desktop.is_some();
        cx.log(&RdpRow {
            ts: info.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            cookie: info.cookie.as_deref(),
            result: info.result.as_deref(),
            security_protocol: info.protocol.as_deref(),
            client_channels: (info.channels.as_ref())
                .map(|c| Vector(c.iter().map(Vec::as_slice).collect())),
            keyboard_layout: info.layout.as_deref(),
            client_build: info.build.as_deref(),
            client_name: is_told.then_some(&info.name),
            client_dig_product_id: is_told.then_some(&info.product),
            desktop_width: info.desktop.map(|d| d.0.into()),
            desktop_height: info.desktop.map(|d| d.1.into()),
            requested_color_depth: info.depth.as_deref(),
            cert_type: info.certificate.as_deref(),
            cert_count: info.certificates,
            cert_permanent: info.permanent,
            encryption_level: info.level.as_deref(),
            encryption_method: info.method.as_deref(),
        });
    }
}

impl Info {
    fn client(&mut self, cx: &mut Context<'_>, core: &ClientCore<'_>) {
        self.layout = Some(names::layout(core.layout));
        self.build = Some(names::name(names::BUILDS, "client_build", core.build));
        self.name = utf16::text(cx, core.name);
        self.product = utf16::text(cx, core.product);
        self.desktop = Some((core.width, core.height));
        self.depth = Some(if core.wants_32_bits {
            "32bit".into()
        } else {
            names::name(names::DEPTHS, "high_color_depth", core.depth.into())
        });
    }
}

fn protocol(number: u32) -> Name {
    names::name(names::SECURITY_PROTOCOLS, "security_protocol", number)
}
