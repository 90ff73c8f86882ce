//! The state of the connection that a message uses.

use gannet_base::Dir;
use gannet_base::Uid;

use super::events::HttpBeginEntity;
use super::events::HttpEvent;
use super::events::HttpFile;
use super::events::HttpHeader;
use super::feed::Feed;
use super::message::Version;
use super::state::Exchanges;
use crate::Context;
use crate::support::mime::Fault;

/// State that both directions of a connection share.
#[derive(Debug, Default)]
pub(super) struct SessionState {
    /// The connection is persistent: more than one request may follow.
    pub(super) keep_alive: bool,
    /// The responder closes the connection after its response.
    pub(super) connection_close: bool,
    /// The response has `Connection: upgrade`.
    pub(super) upgrade: bool,
    /// Protocol in the `Upgrade` header of the response.
    pub(super) upgrade_to: Vec<u8>,
    /// Code of the current response; 0 between responses.
    pub(super) reply_code: u16,
    /// Version of the last request.
    pub(super) request_version: Version,
    /// Version of the last response.
    pub(super) reply_version: Version,
    /// The current request has not ended yet.
    pub(super) request_ongoing: bool,
}

/// The environment of a message.
pub(super) struct Scope<'s, 'c> {
    pub(super) cx: &'s mut Context<'c>,
    pub(super) exchanges: &'s mut Exchanges,
    pub(super) session: &'s mut SessionState,
    pub(super) feed: &'s mut Feed,
    pub(super) from: Dir,
}

impl Scope<'_, '_> {
    /// Reports the start of a message or of a part of its body.
    pub(super) fn begin_entity(&mut self) {
        self.feed.whole_lines = self.cx.wants::<HttpHeader<'_>>();
        let is_orig = self.from.is_orig();
        self.cx.report(self.exchanges, |c| HttpBeginEntity { c, is_orig });
    }

    /// Raises the event of an error in the message.
    pub(super) fn illegal(&mut self, fault: Fault) {
        if self.cx.wants::<HttpEvent<'_>>() {
            let (event_type, detail) = (fault.event_type(), fault.detail());
            let detail = detail.as_bytes();
            self.cx.raise(|c| HttpEvent { c, event_type, detail });
        }
    }

    /// Reports a weird and the data that caused it, up to a NUL, which ends the string in Zeek.
    pub(super) fn weird(&mut self, name: &'static str, addl: &[u8]) {
        let end = memchr::memchr(0, addl).unwrap_or(addl.len());
        self.cx.weird_bytes(name, &addl[..end], Some("HTTP"));
    }

    /// Reports a file of the current exchange.
    pub(super) fn report_file(&mut self, from: Dir, fuid: Option<Uid>, filename: Option<&[u8]>) {
        let (is_orig, trans_depth) = (from.is_orig(), self.exchanges.current());
        self.cx.report(self.exchanges, |c| HttpFile { c, is_orig, trans_depth, fuid, filename });
    }
}
