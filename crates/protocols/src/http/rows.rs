//! http.log: one row for each exchange, from its events.

use std::borrow::Cow;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Enum;
use gannet_log::Limits;
use gannet_log::Set;
use gannet_log::Vector;

use super::events::HttpExchange;
use super::events::HttpFile;
use super::events::HttpFileType;
use super::events::HttpHeader;
use super::events::HttpMessageDone;
use super::events::HttpReply;
use super::events::HttpRequest;
use super::field::Field;
use super::state::FileLists;
use super::state::Rows;
use super::syntax::skip_blanks;
use crate::Context;
use crate::OnEvent;
use crate::policy::software::DetectedSoftware;
use crate::support::mime::Base64;

gannet_log::row! {
    /// One row for each request and its response.
    pub struct HttpRow<'a> = "http" limits(Limits { string: usize::MAX, elements: 100 }) {
        /// Time of the request.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
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
        /// Length of the uncompressed request body, in bytes.
        request_body_len: u64 = "request_body_len",
        /// Length of the uncompressed response body, in bytes.
        response_body_len: u64 = "response_body_len",
        /// Status code of the response.
        status_code: Option<u16> = "status_code",
        /// Reason phrase of the response.
        status_msg: Option<&'a [u8]> = "status_msg",
        /// Last informational (1xx) status code.
        info_code: Option<u16> = "info_code",
        /// Reason phrase of the last informational response.
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
        /// Names of these files, if known.
        orig_filenames: Option<&'a Vector<Vec<u8>>> = "orig_filenames",
        /// MIME types of these files, if known.
        orig_mime_types: Option<&'a Vector<&'static str>> = "orig_mime_types",
        /// Files that the responder sent.
        resp_fuids: Option<&'a Vector<Uid>> = "resp_fuids",
        /// Names of these files, if known.
        resp_filenames: Option<&'a Vector<Vec<u8>>> = "resp_filenames",
        /// MIME types of these files, if known.
        resp_mime_types: Option<&'a Vector<&'static str>> = "resp_mime_types",
    }
}

/// Maximum number of files of one side in a row.
const MAX_FILES: usize = 15;

/// Maximum number of proxy headers that are stored for a request: one more than a row may have.
const MAX_PROXIED: usize = 101;

/// Methods that are not a weird: those of HTTP, WebDAV and QUERY (RFC 10008).
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

impl FileLists {
    fn new() -> Self {
        Self { fuids: Vector(Vec::new()), names: Vector(Vec::new()), types: Vector(Vec::new()) }
    }
}

impl Rows {
    /// The rows of a new exchange.
    #[inline]
    pub(super) fn new(cx: &Context<'_>) -> Self {
        Self {
            ts: cx.now,
            method: None,
            referrer: None,
            origin: None,
            username: None,
            version: None,
            body_len: [0; 2],
            status: None,
            info: None,
            proxied: Set::default(),
            files: [None, None],
        }
    }

    fn files_of(&mut self, is_orig: bool) -> &mut FileLists {
        self.files[usize::from(!is_orig)].get_or_insert_with(|| Box::new(FileLists::new()))
    }
}

impl OnEvent<HttpRequest<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpRequest<'_>) {
        self.method = Some(event.method.into());
        if !METHODS.contains(&event.method) {
            cx.weird_bytes("unknown_HTTP_method", event.method, None);
        }
    }
}

impl OnEvent<HttpReply<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpReply<'_>) {
        let reason: Box<[u8]> = event.reason.into();
        if (100..200).contains(&event.code) {
            self.info = Some((event.code, reason.clone()));
        }
        self.status = Some((event.code, reason));
        self.version = Some(event.version);
        if event.code == 200 && self.method.as_deref() == Some(b"CONNECT") {
            cx.register_tunnel("Tunnel::HTTP");
        }
    }
}

impl OnEvent<HttpHeader<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpHeader<'_>) {
        let (name, value) = (event.original_name.name, event.value);
        software(cx, event.is_orig, name, value);
        if !event.is_orig {
            return;
        }
        match event.original_name.field {
            Field::Origin => self.origin = Some(value.into()),
            Field::Referer => self.referrer = Some(value.into()),
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
                // If scripts run, their decoder reports the error.
                let bad = if cx.env.is_scripted() { Vec::new() } else { bad };
                for error in bad {
                    cx.weird("base64_illegal_encoding", &error, None);
                }
            }
            _ => {}
        }
    }
}

impl OnEvent<HttpMessageDone> for Rows {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &HttpMessageDone) {
        self.body_len[usize::from(!event.is_orig)] = event.stat.body_length;
    }
}

impl OnEvent<HttpFile<'_>> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &HttpFile<'_>) {
        let lists = self.files_of(event.is_orig);
        if lists.fuids.0.len() < MAX_FILES {
            lists.fuids.0.extend(event.fuid);
            lists.names.0.extend(event.filename.map(<[u8]>::to_vec));
        }
    }
}

impl OnEvent<HttpFileType> for Rows {
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &HttpFileType) {
        let types = &mut self.files_of(event.is_orig).types.0;
        if types.len() < MAX_FILES {
            types.push(event.mime_type);
        }
    }
}

impl OnEvent<HttpExchange<'_>> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpExchange<'_>) {
        fn list<T>(v: &Vector<T>) -> Option<&Vector<T>> {
            (!v.0.is_empty()).then_some(v)
        }
        let [orig, resp] = &self.files;
        cx.log(&HttpRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            trans_depth: event.trans_depth,
            method: self.method.as_deref(),
            host: event.host,
            uri: event.uri,
            referrer: self.referrer.as_deref(),
            version: self.version.as_ref().map(|v| &v[..]),
            user_agent: event.user_agent,
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

/// Returns the user name of basic authentication (RFC 7617), and the weirds of its encoding.
fn basic_user(value: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut decoder, mut text) = (Base64::default(), Vec::new());
    let mut bad = Vec::from_iter(decoder.decode(skip_blanks(&value[5..]), &mut text));
    if decoder.failed() {
        // As in Zeek, one invalid character makes the whole text invalid.
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
#[inline]
fn software(cx: &mut Context<'_>, is_orig: bool, name: &[u8], value: &[u8]) {
    if cx.env.policy.is_some() {
        report_software(cx, is_orig, name, value);
    }
}

#[cold]
fn report_software(cx: &mut Context<'_>, is_orig: bool, name: &[u8], value: &[u8]) {
    let Some(mut policy) = cx.env.policy() else { return };
    let id = cx.conn.id;
    let is = |what: &str| name.eq_ignore_ascii_case(what.as_bytes());
    let mut text = Cow::Borrowed(value);
    let (host, port, kind) = match is_orig {
        true if is("user-agent") => (id.orig_h, None, "HTTP::BROWSER"),
        false if is("server") => (id.resp_h, Some(id.resp_p), "HTTP::SERVER"),
        false if is("x-powered-by") => (id.resp_h, Some(id.resp_p), "HTTP::APPSERVER"),
        false if is("microsoftsharepointteamservices") => {
            text = [b"SharePoint/", value].concat().into();
            (id.resp_h, Some(id.resp_p), "HTTP::APPSERVER")
        }
        _ => return,
    };
    policy.software(cx.now, &DetectedSoftware { host, port, kind, text: &text });
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
