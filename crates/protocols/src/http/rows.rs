//! http.log: requests joined with their responses.

use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;
use gannet_log::Limits;
use gannet_log::Set;
use gannet_log::Vector;
use gannet_log::write_addr;
use gannet_log::write_count;

use super::header::Field;
use super::header::WEBSOCKET;
use super::message::Version;
use super::message::content_type_name;
use super::message::disposition_filename;
use super::syntax::skip_blanks;
use crate::Context;
use crate::Tag;
use crate::policy::software::Found;
use crate::support::mime::Base64;
use crate::websocket::Handshake;
use crate::websocket::Origin;

gannet_log::row! {
    /// One row for each request and its response.
    pub struct HttpRow<'a> = "http" limits(Limits { string: usize::MAX, elements: 100 }) {
        /// When the request was seen.
        ts: Time = "ts",
        /// The connection.
        uid: Uid = "uid",
        /// Its addresses and ports.
        id: ConnId = "id",
        /// Number of the request within the connection, from 1.
        trans_depth: u64 = "trans_depth",
        /// Method of the request.
        method: Option<&'a [u8]> = "method",
        /// The request's `Host` header.
        host: Option<&'a [u8]> = "host",
        /// Target of the request, escapes decoded.
        uri: Option<&'a [u8]> = "uri",
        /// The request's `Referer` header.
        referrer: Option<&'a [u8]> = "referrer",
        /// HTTP version of the response.
        version: Option<&'a [u8]> = "version",
        /// The request's `User-Agent` header.
        user_agent: Option<&'a [u8]> = "user_agent",
        /// The request's `Origin` header.
        origin: Option<&'a [u8]> = "origin",
        /// Bytes of the request's body, uncompressed.
        request_body_len: u64 = "request_body_len",
        /// Bytes of the response's body, uncompressed.
        response_body_len: u64 = "response_body_len",
        /// Status code of the response.
        status_code: Option<u16> = "status_code",
        /// Reason phrase of the response.
        status_msg: Option<&'a [u8]> = "status_msg",
        /// Last informational (1xx) status code.
        info_code: Option<u16> = "info_code",
        /// Its reason phrase.
        info_msg: Option<&'a [u8]> = "info_msg",
        /// Tags set by scripts; none by default.
        tags: Set<Enum> = "tags",
        /// User of basic authentication.
        username: Option<&'a [u8]> = "username",
        /// Password of basic authentication; not captured.
        password: Option<&'a [u8]> = "password",
        /// Headers that proxies add, as `NAME -> value`.
        proxied: Option<&'a Set<Vec<u8>>> = "proxied",
        /// Files that the originator sent.
        orig_fuids: Option<&'a Vector<Uid>> = "orig_fuids",
        /// Names of these files, if stated.
        orig_filenames: Option<&'a Vector<Vec<u8>>> = "orig_filenames",
        /// Types of these files, where known.
        orig_mime_types: Option<&'a Vector<&'static str>> = "orig_mime_types",
        /// Files that the responder sent.
        resp_fuids: Option<&'a Vector<Uid>> = "resp_fuids",
        /// Names of these files, if stated.
        resp_filenames: Option<&'a Vector<Vec<u8>>> = "resp_filenames",
        /// Types of these files, where known.
        resp_mime_types: Option<&'a Vector<&'static str>> = "resp_mime_types",
    }
}

/// Files of one side that a row names.
const MAX_FILES: usize = 15;

/// Proxy headers that are kept of one request: one more than a row may show.
const MAX_PROXIED: usize = 101;

/// Methods that are no weird: those of HTTP, WebDAV and QUERY (RFC 10008).
const METHODS: &[&[u8]] = &[
    b"GET",
    b"POST",
    b"HEAD",
    b"OPTIONS",
    b"PUT",
    b"DELETE",
    b"TRACE",
    b"CONNECT",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"POLL",
    b"REPORT",
    b"SUBSCRIBE",
    b"BMOVE",
    b"SEARCH",
    b"QUERY",
];

type Text = Option<Box<[u8]>>;

/// The files of one side.
#[derive(Debug)]
struct FileLists {
    fuids: Vector<Uid>,
    names: Vector<Vec<u8>>,
    types: Vector<&'static str>,
}

impl FileLists {
    fn new() -> Self {
        Self { fuids: Vector(Vec::new()), names: Vector(Vec::new()), types: Vector(Vec::new()) }
    }
}

/// A request and its response on the way to becoming a row.
#[derive(Debug)]
struct Exchange {
    /// Place in the order of requests.
    number: u64,
    /// Which one of the connection: also its name here, for no other has the same.
    depth: u64,
    ts: Time,
    method: Text,
    host: Text,
    uri: Text,
    referrer: Text,
    user_agent: Text,
    origin: Text,
    username: Text,
    version: Option<Version>,
    body_len: [u64; 2],
    status: Option<(u16, Box<[u8]>)>,
    info: Option<(u16, Box<[u8]>)>,
    proxied: Set<Vec<u8>>,
    files: [Option<Box<FileLists>>; 2],
    /// Entities begun by each side.
    entities: [u64; 2],
    /// An entity is open, with its file name if stated.
    entity: Option<Text>,
    range_request: bool,
}

impl Exchange {
    fn new(number: u64, depth: u64, ts: Time) -> Self {
        Self {
            number,
            depth,
            ts,
            method: None,
            host: None,
            uri: None,
            referrer: None,
            user_agent: None,
            origin: None,
            username: None,
            version: None,
            body_len: [0; 2],
            status: None,
            info: None,
            proxied: Set::default(),
            files: [None, None],
            entities: [0; 2],
            entity: None,
            range_request: false,
        }
    }

    fn write(&self, cx: &mut Context<'_>) {
        fn list<T>(v: &Vector<T>) -> Option<&Vector<T>> {
            (!v.0.is_empty()).then_some(v)
        }
        let version = self.version.map(Version::text);
        let [orig, resp] = &self.files;
        cx.log(&HttpRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            trans_depth: self.depth,
            method: self.method.as_deref(),
            host: self.host.as_deref(),
            uri: self.uri.as_deref(),
            referrer: self.referrer.as_deref(),
            version: version.as_ref().map(|v| &v[..]),
            user_agent: self.user_agent.as_deref(),
            origin: self.origin.as_deref(),
            request_body_len: self.body_len[0],
            response_body_len: self.body_len[1],
            status_code: self.status.as_ref().map(|s| s.0),
            status_msg: self.status.as_ref().map(|s| &*s.1),
            info_code: self.info.as_ref().map(|s| s.0),
            info_msg: self.info.as_ref().map(|s| &*s.1),
            tags: Set(Vec::new()),
            username: self.username.as_deref(),
            password: None,
            proxied: (!self.proxied.0.is_empty()).then_some(&self.proxied),
            orig_fuids: orig.as_ref().and_then(|f| list(&f.fuids)),
            orig_filenames: orig.as_ref().and_then(|f| list(&f.names)),
            orig_mime_types: orig.as_ref().and_then(|f| list(&f.types)),
            resp_fuids: resp.as_ref().and_then(|f| list(&f.fuids)),
            resp_filenames: resp.as_ref().and_then(|f| list(&f.names)),
            resp_mime_types: resp.as_ref().and_then(|f| list(&f.types)),
        });
    }
}

impl Exchange {
    /// Sets a header field of the request.
    fn request_header(&mut self, cx: &mut Context<'_>, field: Field, name: &[u8], value: &[u8]) {
        match field {
            Field::Host => self.host = Some(value.into()),
            Field::Origin => self.origin = Some(value.into()),
            Field::Referer => self.referrer = Some(value.into()),
            Field::UserAgent => self.user_agent = Some(value.into()),
            Field::Range => self.range_request = true,
            Field::Proxy => {
                let text = [&name.to_ascii_uppercase(), &b" -> "[..], value].concat();
                if !self.proxied.0.contains(&text) && self.proxied.0.len() < MAX_PROXIED {
                    self.proxied.0.push(text);
                }
            }
            Field::Authorization
                if value.get(..6).is_some_and(|v| v.eq_ignore_ascii_case(b"basic ")) =>
            {
                let (user, bad) = basic_user(value);
                self.username = Some(user.into());
                // Where scripts run, their decoder reports it.
                let bad = if cx.env.is_scripted() { Vec::new() } else { bad };
                for complaint in bad {
                    cx.weird("base64_illegal_encoding", &complaint, None);
                }
            }
            _ => {}
        }
    }

    /// Sets a header field of the open entity.
    fn entity_header(&mut self, cx: &mut Context<'_>, field: Field, value: &[u8]) {
        let Some(entity) = &mut self.entity else {
            cx.weird("missing_HTTP_entity", "", Some("HTTP"));
            return;
        };
        let filename = match field {
            Field::ContentDisposition => disposition_filename(value),
            Field::ContentType => content_type_name(value),
            _ => None,
        };
        if let Some(filename) = filename {
            *entity = Some(filename.into());
        }
    }
}

fn informational(code: u16) -> bool {
    (100..200).contains(&code)
}

/// The exchanges of one connection. Each method is one event of the protocol.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pending: Vec<Exchange>,
    /// Number of the current request and response; 1 is the first.
    request: u64,
    response: u64,
    depth: u64,
    /// The exchange that the last event was about; it may be written already.
    current: u64,
    /// Headers of a WebSocket handshake.
    handshake: Option<Box<Handshake>>,
}

impl Exchanges {
    fn index(&self, number: u64) -> Option<usize> {
        self.pending.iter().position(|e| e.number == number)
    }

    /// The exchange of the current request or response; created if there is none.
    fn at(&mut self, cx: &Context<'_>, from: Dir) -> &mut Exchange {
        let number = if from.is_orig() { self.request } else { self.response };
        let i = self.index(number).unwrap_or_else(|| {
            self.depth += 1;
            if self.pending.is_empty() {
                // Mostly one at a time: no room for more than that.
                self.pending.reserve_exact(1);
            }
            self.pending.push(Exchange::new(number, self.depth, cx.now));
            self.pending.len() - 1
        });
        self.current = self.pending[i].depth;
        &mut self.pending[i]
    }

    fn by_depth(&mut self, depth: u64) -> Option<&mut Exchange> {
        self.pending.iter_mut().find(|e| e.depth == depth)
    }

    /// A request line.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, method: &[u8], uri: Vec<u8>) {
        if self.request < self.response {
            cx.weird("HTTP_response_before_request", "", None);
            self.request = self.response;
        }
        if self.pending.len() > cx.env.pending.of(Tag::Http) {
            self.write_all_before_current(cx);
        }
        self.request += 1;
        self.handshake = None;
        let e = self.at(cx, Dir::Orig);
        e.method = Some(method.into());
        e.uri = Some(uri.into());
        cx.conn.note_table(self.pending.len());
        if !METHODS.contains(&method) {
            cx.weird_bytes("unknown_HTTP_method", method, None);
        }
    }

    #[cold]
    fn write_all_before_current(&mut self, cx: &mut Context<'_>) {
        let addl = format!("{} > {}", self.pending.len(), cx.env.pending.of(Tag::Http));
        super::limit_reached(cx, "HTTP_excessive_pipelining", &addl);
        self.response = self.response.max(1);
        let waiting = self.response..self.request;
        self.pending.retain(|e| {
            let due = waiting.contains(&e.number);
            if due {
                e.write(cx);
            }
            !due
        });
        self.response = self.response.max(self.request);
    }

    /// A status line.
    pub(super) fn reply(
        &mut self,
        cx: &mut Context<'_>,
        version: Version,
        code: u16,
        reason: Option<&[u8]>,
    ) {
        // After an informational response the final one belongs to the same request.
        let waits = self
            .index(self.response)
            .is_some_and(|i| self.pending[i].status.as_ref().is_none_or(|s| informational(s.0)));
        if !waits {
            self.response += 1;
        }
        let e = self.at(cx, Dir::Resp);
        let reason: Box<[u8]> = reason.unwrap_or(b"<empty>").into();
        if informational(code) {
            e.info = Some((code, reason.clone()));
        }
        e.status = Some((code, reason));
        e.version = Some(version);
        if code == 200 && e.method.as_deref() == Some(b"CONNECT") {
            cx.register_tunnel("Tunnel::HTTP");
        }
    }

    /// A message, or a part of a multipart one, begins.
    pub(super) fn begin_entity(&mut self, cx: &Context<'_>, from: Dir) {
        let e = self.at(cx, from);
        e.entities[from.index()] += 1;
        e.entity = Some(None);
    }

    /// It ends.
    pub(super) fn end_entity(&mut self) {
        if let Some(e) = self.by_depth(self.current) {
            e.entity = None;
        }
    }

    /// A header field of a message or a part.
    pub(super) fn header(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        field: Field,
        name: &[u8],
        value: &[u8],
    ) {
        software(cx, from, name, value);
        let e = self.at(cx, from);
        if from.is_orig() {
            e.request_header(cx, field, name, value);
        }
        e.entity_header(cx, field, value);
        if field == Field::WebSocket {
            let handshake = self.handshake.get_or_insert_default();
            handshake.header(cx, from.is_orig(), &name[WEBSOCKET.len()..], value);
        }
    }

    /// The connection was upgraded to WebSocket.
    pub(super) fn websocket_established(&mut self, cx: &mut Context<'_>) {
        let handshake = self.handshake.take().unwrap_or_else(|| {
            cx.weird("websocket_established_unexpected", "", Some("WebSocket"));
            Box::default()
        });
        let depth = self.current;
        let origin = match self.by_depth(depth) {
            Some(e) => Origin {
                host: e.host.as_deref(),
                uri: e.uri.as_deref(),
                user_agent: e.user_agent.as_deref(),
            },
            None => Origin::default(),
        };
        handshake.established(cx, origin);
    }

    /// A message with this many bytes of body has ended.
    pub(super) fn message_done(&mut self, cx: &mut Context<'_>, from: Dir, body_len: u64) {
        let number = self.response;
        let e = self.at(cx, from);
        e.body_len[from.index()] = body_len;
        let last = !from.is_orig() && !e.status.as_ref().is_some_and(|s| informational(s.0));
        if last && let Some(i) = self.index(number) {
            self.pending.remove(i).write(cx);
        }
    }

    /// The connection is over: writes what still waits.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        for e in self.pending.drain(..).filter(|e| e.number != 0) {
            e.write(cx);
        }
    }

    /// The file name of the current entity.
    pub(super) fn filename(&mut self) -> Option<Vec<u8>> {
        let e = self.by_depth(self.current)?;
        e.entity.as_ref()?.as_ref().map(|name| name.to_vec())
    }

    /// Whether the current request asks for a range.
    pub(super) fn asks_for_range(&mut self) -> bool {
        let depth = self.current;
        self.by_depth(depth).is_some_and(|e| e.range_request)
    }

    /// Whether responses to the current request may be parts of one file; if so, appends its URL.
    pub(super) fn range_url(&mut self, id: ConnId, url: &mut Vec<u8>) -> bool {
        let depth = self.current;
        let Some(e) = self.by_depth(depth).filter(|e| e.range_request) else { return false };
        let uri = e.uri.as_deref().unwrap_or(b"/<missed_request>");
        if memchr::memmem::find(uri, b"://").is_none() {
            match &e.host {
                Some(host) => url.extend_from_slice(host),
                None => write_addr(url, id.resp_h),
            }
            if id.resp_p != 80 {
                url.push(b':');
                write_count(url, u64::from(id.resp_p));
            }
        }
        url.extend_from_slice(uri);
        true
    }

    /// Identifies the current entity within the connection.
    pub(super) fn entity_name(&mut self, from: Dir) -> [u64; 2] {
        let depth = self.current;
        [depth, self.by_depth(depth).map_or(0, |e| e.entities[from.index()])]
    }

    /// A file begins; returns the handle for its [type](Self::file_type).
    pub(super) fn file(&mut self, from: Dir, fuid: Option<Uid>, name: Option<Vec<u8>>) -> u64 {
        let depth = self.current;
        if let Some(e) = self.by_depth(depth) {
            let lists = e.files[from.index()].get_or_insert_with(|| Box::new(FileLists::new()));
            if lists.fuids.0.len() < MAX_FILES {
                lists.fuids.0.extend(fuid);
                lists.names.0.extend(name);
            }
        }
        depth
    }

    /// The type of a file is known.
    pub(super) fn file_type(&mut self, exchange: u64, from: Dir, mime_type: &'static str) {
        if let Some(e) = self.by_depth(exchange) {
            let types = &mut e.files[from.index()]
                .get_or_insert_with(|| Box::new(FileLists::new()))
                .types
                .0;
            if types.len() < MAX_FILES {
                types.push(mime_type);
            }
        }
    }
}

/// The user of basic authentication (RFC 7617), and weirds of the encoding.
fn basic_user(value: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut decoder, mut text) = (Base64::default(), Vec::new());
    let mut bad = Vec::from_iter(decoder.decode(skip_blanks(&value[5..]), &mut text));
    if decoder.failed() {
        // One wrong character spoils all of it.
        text.clear();
    } else {
        bad = decoder.finish(&mut text);
    }
    let user = match memchr::memchr(b':', &text) {
        Some(n) => text[..n].to_vec(),
        None => [b"<problem-decoding> (", value, b")"].concat(),
    };
    (user, bad)
}

/// Reports the software in a header field, if software.log is enabled.
fn software(cx: &mut Context<'_>, from: Dir, name: &[u8], value: &[u8]) {
    let Some(mut policy) = cx.env.policy() else { return };
    let id = cx.conn.id;
    let is = |what: &str| name.eq_ignore_ascii_case(what.as_bytes());
    let mut text = Cow::Borrowed(value);
    let (host, port, kind) = match from {
        Dir::Orig if is("user-agent") => (id.orig_h, None, "HTTP::BROWSER"),
        Dir::Resp if is("server") => (id.resp_h, Some(id.resp_p), "HTTP::SERVER"),
        Dir::Resp if is("x-powered-by") => (id.resp_h, Some(id.resp_p), "HTTP::APPSERVER"),
        Dir::Resp if is("microsoftsharepointteamservices") => {
            text = [b"SharePoint/", value].concat().into();
            (id.resp_h, Some(id.resp_p), "HTTP::APPSERVER")
        }
        _ => return,
    };
    policy.software(cx.now, &Found { host, port, kind, text: &text });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users() {
        assert_eq!(basic_user(b"Basic dXNlcjpwYXNz").0, b"user");
        assert_eq!(basic_user(b"basic  dTo=").0, b"u");
        assert_eq!(basic_user(b"Basic dXNlcg==").0, b"<problem-decoding> (Basic dXNlcg==)");
        let (user, bad) = basic_user(b"Basic d*==");
        assert_eq!(user, b"<problem-decoding> (Basic d*==)");
        assert_eq!(bad, ["character 42 ignored by Base64 decoding"]);
    }
}
