//! Joins requests and responses to exchanges, and assigns events to them.
//!
//! [`Exchanges`] receive the events of a connection, store what files need of each exchange, and pass the event on to the
//! [rows](Rows) of its exchange.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_log::write_addr;
use gannet_log::write_count;

use super::events::HttpBeginEntity;
use super::events::HttpConnectionUpgrade;
use super::events::HttpEndEntity;
use super::events::HttpExchange;
use super::events::HttpFile;
use super::events::HttpFileType;
use super::events::HttpHeader;
use super::events::HttpMessageDone;
use super::events::HttpReply;
use super::events::HttpRequest;
use super::field::Field;
use super::message::content_type_name;
use super::message::disposition_filename;
use super::state::Exchange;
use super::state::Exchanges;
use super::state::Rows;
use crate::Context;
use crate::OnEvent;
use crate::Tag;
use crate::websocket::events::WebsocketUpgrade;

impl Exchange {
    fn new(number: u64, depth: u64, rows: Rows) -> Self {
        Self {
            number,
            depth,
            host: None,
            uri: None,
            user_agent: None,
            code: None,
            entities: [0; 2],
            entity: None,
            range_request: false,
            rows,
        }
    }

    /// Stores a header field of the request.
    #[inline]
    fn request_header(&mut self, field: Field, value: &[u8]) {
        match field {
            Field::Host => self.host = Some(value.into()),
            Field::UserAgent => self.user_agent = Some(value.into()),
            Field::Range => self.range_request = true,
            _ => {}
        }
    }

    /// Stores a header field of the current entity.
    #[inline]
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

    /// Reports the completed exchange, which is logged.
    #[inline]
    fn complete(&mut self, cx: &mut Context<'_>) {
        let Self { depth, host, uri, user_agent, rows, .. } = self;
        cx.report(rows, |c| HttpExchange {
            c,
            trans_depth: *depth,
            host: host.as_deref(),
            uri: uri.as_deref(),
            user_agent: user_agent.as_deref(),
        });
    }
}

fn is_informational(code: u16) -> bool {
    (100..200).contains(&code)
}

fn side(is_orig: bool) -> Dir {
    if is_orig { Dir::Orig } else { Dir::Resp }
}

impl Exchanges {
    #[inline]
    fn index(&self, number: u64) -> Option<usize> {
        self.pending.iter().position(|e| e.number == number)
    }

    /// Returns the exchange of the current request or response; creates it if necessary.
    fn exchange(&mut self, cx: &Context<'_>, from: Dir) -> &mut Exchange {
        let number = if from.is_orig() { self.request } else { self.response };
        let i = self.index(number).unwrap_or_else(|| {
            self.depth += 1;
            if self.pending.is_empty() {
                // Usually one at a time: reserve no more capacity.
                self.pending.reserve_exact(1);
            }
            self.pending.push(Exchange::new(number, self.depth, Rows::new(cx)));
            self.pending.len() - 1
        });
        self.current = self.pending[i].depth;
        &mut self.pending[i]
    }

    #[inline]
    fn by_depth(&mut self, depth: u64) -> Option<&mut Exchange> {
        self.pending.iter_mut().find(|e| e.depth == depth)
    }

    #[cold]
    fn complete_all_before_current(&mut self, cx: &mut Context<'_>) {
        let addl = format!("{} > {}", self.pending.len(), cx.env.pending.of(Tag::Http));
        super::limit_reached(cx, "HTTP_excessive_pipelining", &addl);
        self.response = self.response.max(1);
        let waiting = self.response..self.request;
        self.pending.retain_mut(|e| {
            let is_complete = waiting.contains(&e.number);
            if is_complete {
                e.complete(cx);
            }
            !is_complete
        });
        self.response = self.response.max(self.request);
    }

    /// Completes all pending exchanges at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        for mut e in self.pending.drain(..).filter(|e| e.number != 0) {
            e.complete(cx);
        }
    }

    /// Number (`depth`) of the exchange of the last event.
    pub(super) fn current(&self) -> u64 {
        self.current
    }

    /// The file name of the current entity.
    pub(super) fn filename(&mut self) -> Option<&mut Box<[u8]>> {
        self.by_depth(self.current)?.entity.as_mut()?.as_mut()
    }

    /// Whether the current request is a range request.
    pub(super) fn requests_range(&mut self) -> bool {
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
}

impl OnEvent<HttpRequest<'_>> for Exchanges {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpRequest<'_>) {
        if self.request < self.response {
            cx.weird("HTTP_response_before_request", "", None);
            self.request = self.response;
        }
        if self.pending.len() > cx.env.pending.of(Tag::Http) {
            self.complete_all_before_current(cx);
        }
        self.request += 1;
        self.handshake = None;
        self.exchange(cx, Dir::Orig).uri = Some(event.unescaped_uri.into());
        cx.conn.note_table(self.pending.len());
        self.exchange(cx, Dir::Orig).rows.on_event(cx, event);
    }
}

impl OnEvent<HttpReply<'_>> for Exchanges {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpReply<'_>) {
        // After an informational response the final one belongs to the same request.
        let continues = self
            .index(self.response)
            .is_some_and(|i| self.pending[i].code.is_none_or(is_informational));
        if !continues {
            self.response += 1;
        }
        let e = self.exchange(cx, Dir::Resp);
        e.code = Some(event.code);
        e.rows.on_event(cx, event);
    }
}

impl OnEvent<HttpBeginEntity> for Exchanges {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpBeginEntity) {
        let from = side(event.is_orig);
        let e = self.exchange(cx, from);
        e.entities[from.index()] += 1;
        e.entity = Some(None);
    }
}

impl OnEvent<HttpEndEntity> for Exchanges {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &HttpEndEntity) {
        if let Some(e) = self.by_depth(self.current) {
            e.entity = None;
        }
    }
}

impl OnEvent<HttpHeader<'_>> for Exchanges {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpHeader<'_>) {
        let field = event.original_name.field;
        let e = self.exchange(cx, side(event.is_orig));
        e.rows.on_event(cx, event);
        if event.is_orig {
            e.request_header(field, event.value);
        }
        e.entity_header(cx, field, event.value);
        if field == Field::WebSocket {
            self.handshake.get_or_insert_default().on_event(cx, event);
        }
    }
}

impl OnEvent<HttpConnectionUpgrade<'_>> for Exchanges {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpConnectionUpgrade<'_>) {
        if !event.protocol.eq_ignore_ascii_case(b"websocket") {
            return;
        }
        let mut handshake = self.handshake.take().unwrap_or_else(|| {
            cx.weird("websocket_established_unexpected", "", Some("WebSocket"));
            Box::default()
        });
        let e = self.by_depth(self.current);
        let (host, uri, user_agent) = e.map_or((None, None, None), |e| {
            (e.host.as_deref(), e.uri.as_deref(), e.user_agent.as_deref())
        });
        cx.report(&mut *handshake, |c| WebsocketUpgrade { c, host, uri, user_agent });
    }
}

impl OnEvent<HttpMessageDone> for Exchanges {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpMessageDone) {
        let number = self.response;
        let e = self.exchange(cx, side(event.is_orig));
        e.rows.on_event(cx, event);
        let is_final = !event.is_orig && !e.code.is_some_and(is_informational);
        if is_final && let Some(i) = self.index(number) {
            self.pending.remove(i).complete(cx);
        }
    }
}

impl OnEvent<HttpFile<'_>> for Exchanges {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpFile<'_>) {
        if let Some(e) = self.by_depth(event.trans_depth) {
            e.rows.on_event(cx, event);
        }
    }
}

impl OnEvent<HttpFileType> for Exchanges {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &HttpFileType) {
        if let Some(e) = self.by_depth(event.trans_depth) {
            e.rows.on_event(cx, event);
        }
    }
}
