//! Analysis of bodies as files.

use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_files::FileId;
use gannet_files::FileStart;
use gannet_files::era;

use super::entity::BodyFile;
use super::entity::Chunked;
use super::entity::Entity;
use super::entity::Transfer;
use super::events::HttpEntityData;
use super::events::HttpFileType;
use super::scope::Scope;
use super::shared::RangeFile;
use crate::Env;
use crate::Tag;
use crate::support::mime::decode_quoted_printable;

/// Default maximum length of the data in an `http_entity_data` event, in bytes.
const PIECE: usize = 1500;

/// First byte of a key of [`Shared`](super::shared::Shared) for a client, a URL and a server,
const BY_URL: u8 = 0;
/// or for a connection and one of its entities.
const BY_ENTITY: u8 = 1;

/// Removes files of ranges that have ended.
fn sweep(env: &mut Env, now: Time) {
    if era(env.http.swept) == era(now) {
        return;
    }
    env.http.swept = now;
    let mut ranges = std::mem::take(&mut env.http.ranges);
    ranges.retain(|_, range| {
        let is_ended = env.files.is_forgotten(range.id, now);
        if is_ended {
            env.files.end(&mut env.logs, now, range.id);
        }
        !is_ended
    });
    env.http.ranges = ranges;
}

impl BodyFile {
    /// Starts a file. `fuid` is its identifier if it had one before; `has_offset` is whether its data has
    /// offsets.
    fn start(
        s: &mut Scope<'_, '_>,
        total_bytes: Option<u64>,
        has_offset: bool,
        fuid: &mut Option<Uid>,
    ) -> Self {
        let shared = s.session.reply_code == 206;
        if !s.from.is_orig() && (shared || s.exchanges.requests_range()) {
            // Data without offsets and size continues the file regardless of the connection.
            return Self::join(s, total_bytes, has_offset || total_bytes.is_some(), shared);
        }
        let handle = if fuid.is_none() { Handle::Request } else { Handle::Known };
        let (id, exchange) = new_file(s, total_bytes, *fuid, handle);
        *fuid = s.cx.env.files.fuid(id);
        Self { id, exchange: Some(exchange), type_reported: false, shared: false }
    }

    /// Joins the response to a range request, or a range, to the file of other ranges of the same URL
    /// between the same two hosts, if it was a range request. Files of the same client and URL have the same
    /// fuid. `named` is whether the row of this connection lists the file, too; `shared` is whether the response is a range,
    /// whose end does not end the file.
    fn join(
        s: &mut Scope<'_, '_>,
        mut total_bytes: Option<u64>,
        named: bool,
        shared: bool,
    ) -> Self {
        sweep(s.cx.env, s.cx.now);
        let (conn, uid) = (s.cx.conn.id, s.cx.conn.uid);
        let mut key = url_key(s).unwrap_or_else(|| {
            let [depth, entity] = s.exchanges.entity_name(Dir::Resp);
            let numbers = [uid.bits(), depth, entity].map(u64::to_be_bytes);
            [&[BY_ENTITY], numbers.as_flattened()].concat()
        });
        let name = s.cx.env.uids.named_file(&key);
        key.extend(conn.resp_h.octets());
        let is_open = |env: &Env| {
            env.http.ranges.get(&key[..]).is_some_and(|range| !env.files.is_over(range.id))
        };
        if s.cx.env.logs.events.any() && is_open(s.cx.env) {
            s.cx.raise_file_handle(Tag::Http, Dir::Resp);
        }
        let env = &mut *s.cx.env;
        if let Some(range) = env.http.ranges.get_mut(&key[..]) {
            let id = range.id;
            if !env.files.is_over(id) {
                if let Some(total) = total_bytes {
                    env.files.set_total(id, total);
                }
                let is_new = named && env.files.join(&mut env.logs, s.cx.now, id, uid, conn);
                if is_new && env.logs.events.any() {
                    let c = crate::conn_state::mention(&mut env.logs, s.cx.conn);
                    env.files.raise_joined(&mut env.logs, id, c);
                }
                if is_new {
                    if let Some(filename) = s.exchanges.filename() {
                        env.files.set_filename(id, filename);
                    }
                    range.uid = uid;
                    range.exchange = s.exchanges.current();
                }
                let exchange = (range.uid == uid).then_some(range.exchange);
                if is_new {
                    let filename = env.files.filename(id).map(<[u8]>::to_vec);
                    let fuid = env.files.fuid(id);
                    s.report_file(Dir::Resp, fuid, filename.as_deref());
                }
                let env = &mut *s.cx.env;
                env.files.end_if_complete(&mut env.logs, s.cx.now, id);
                if !env.files.is_over(id) {
                    let type_reported = env.files.mime_type(id).is_some();
                    return Self { id, exchange, type_reported, shared };
                }
                // More bytes have already arrived: this is another file, of unknown size.
                total_bytes = None;
            }
            s.cx.file_end(id);
        }
        let (id, exchange) = new_file(s, total_bytes, Some(name), Handle::Request);
        s.cx.env.http.ranges.insert(key.into_boxed_slice(), RangeFile { id, uid, exchange });
        Self { id, exchange: Some(exchange), type_reported: false, shared }
    }

    /// Continues a file whose row is written with more data. A file that timed out is restarted, and the current
    /// exchange lists it again. Returns whether the file continues: false for a complete file, and for a file of
    /// ranges that was removed meanwhile.
    #[cold]
    fn resume(&mut self, s: &mut Scope<'_, '_>) -> bool {
        if s.cx.env.files.is_complete(self.id) {
            return false;
        }
        let Some(fuid) = s.cx.env.files.fuid(self.id) else { return !self.shared };
        let mime_type = s.cx.env.files.mime_type(self.id);
        self.report_type(s, mime_type);
        self.type_reported = false;
        let filename = s.exchanges.filename().map(|name| name.to_vec());
        s.cx.env.files.renew(self.id, s.cx.conn.uid, s.cx.conn.id, filename.clone());
        self.exchange = Some(s.exchanges.current());
        s.report_file(s.from, Some(fuid), filename.as_deref());
        true
    }

    fn report_type(&mut self, s: &mut Scope<'_, '_>, mime_type: Option<&'static str>) {
        if let Some(mime_type) = mime_type
            && !self.type_reported
        {
            self.type_reported = true;
            if let Some(trans_depth) = self.exchange {
                let is_orig = s.from.is_orig();
                s.cx.report(s.exchanges, |c| HttpFileType { c, is_orig, trans_depth, mime_type });
            }
        }
    }

    /// Handles the end of the entity. Returns whether the file ends, too. `fuid` is the identifier that more data
    /// would have.
    pub(super) fn end(&mut self, s: &mut Scope<'_, '_>, fuid: &mut Option<Uid>) -> bool {
        if self.shared {
            let mime_type = s.cx.env.files.mime_type(self.id);
            self.report_type(s, mime_type);
            return false;
        }
        if s.cx.env.files.is_complete(self.id) {
            // More data would be another file, whose handle is requested.
            *fuid = None;
            let from = s.from;
            s.cx.raise_handle_without_file(Tag::Http, from);
        }
        let mime_type = s.cx.env.files.detect_mime_type(self.id);
        self.report_type(s, mime_type);
        s.cx.file_end(self.id);
        true
    }
}

/// Returns the key of the current response without the server, if the request is a range request.
fn url_key(s: &mut Scope<'_, '_>) -> Option<Vec<u8>> {
    let conn = s.cx.conn.id;
    let mut key = Vec::with_capacity(128);
    key.push(BY_URL);
    key.extend(conn.orig_h.octets());
    s.exchanges.range_url(conn, &mut key).then_some(key)
}

/// Handles the end of an entity without a file. If it is the response to a range request, but not a range, the file of
/// the URL ends.
pub(super) fn end_without_file(s: &mut Scope<'_, '_>) {
    let from = s.from;
    s.cx.raise_handle_without_file(Tag::Http, from);
    let is_range = s.session.reply_code == 206 || !s.exchanges.requests_range();
    if s.from.is_orig() || s.cx.env.http.ranges.is_empty() || is_range {
        return;
    }
    let Some(mut key) = url_key(s) else { return };
    key.extend(s.cx.conn.id.resp_h.octets());
    if let Some(range) = s.cx.env.http.ranges.remove(&key[..]) {
        s.cx.file_end(range.id);
    }
}

/// Whether `get_file_handle` is raised for a new file. More data of an entity belongs to the handle that its first data had.
#[derive(Clone, Copy, PartialEq)]
enum Handle {
    Request,
    Known,
}

fn new_file(
    s: &mut Scope<'_, '_>,
    total_bytes: Option<u64>,
    fuid: Option<Uid>,
    handle: Handle,
) -> (FileId, u64) {
    // Moved out until the file has started.
    let filename = s.exchanges.filename().map(std::mem::take);
    if let Some(fuid) = fuid {
        s.cx.env.files.set_next_fuid(fuid);
    }
    let start = FileStart {
        source: "HTTP",
        from: s.from,
        filename: filename.as_deref().map(<[u8]>::to_vec),
        total_bytes,
        ..FileStart::default()
    };
    let id = match handle {
        Handle::Request => s.cx.file_start(start),
        Handle::Known => s.cx.file_start_without_handle(start),
    };
    let fuid = s.cx.env.files.fuid(id);
    s.report_file(s.from, fuid, filename.as_deref());
    if let Some((slot, filename)) = s.exchanges.filename().zip(filename) {
        *slot = filename;
    }
    (id, s.exchanges.current())
}

impl Entity {
    /// Decodes the transfer encoding of the content of a leaf and passes it to the file.
    pub(super) fn content(
        &mut self,
        s: &mut Scope<'_, '_>,
        data: &[u8],
        line_end: bool,
        in_multipart: bool,
    ) {
        match self.transfer {
            Transfer::Identity => {
                // The line end before a boundary belongs to the boundary.
                let is_deferred = line_end && in_multipart;
                let was_deferred = std::mem::replace(&mut self.line_end_deferred, is_deferred);
                let ends = line_end && !is_deferred;
                if (was_deferred || ends) && s.cx.env.logs.events.any() {
                    // Events contain a line together with its line ends.
                    let end = |has: bool| if has { &b"\r\n"[..] } else { b"" };
                    return self.submit(s, &[end(was_deferred), data, end(ends)].concat());
                }
                if was_deferred {
                    self.submit(s, b"\r\n");
                }
                self.submit(s, data);
                if ends {
                    self.submit(s, b"\r\n");
                }
            }
            Transfer::Base64 => {
                let mut out = Vec::with_capacity(data.len() / 4 * 3 + 3);
                if let Some(base64) = &mut self.base64
                    && let Some(error) = base64.decode(data, &mut out)
                {
                    s.cx.weird("base64_illegal_encoding", &error, None);
                }
                self.submit(s, &out);
            }
            Transfer::QuotedPrintable => {
                let mut out = Vec::with_capacity(data.len() + 2);
                decode_quoted_printable(data, &mut out, |fault| s.illegal(fault));
                self.submit(s, &out);
            }
            Transfer::Skipped => {}
        }
    }

    /// Flushes the decoder at the end of the body.
    pub(super) fn end_of_body(&mut self, s: &mut Scope<'_, '_>) {
        if let Some(mut base64) = self.base64.take() {
            let mut out = Vec::new();
            for error in base64.finish(&mut out) {
                s.cx.weird("base64_illegal_encoding", &error, None);
            }
            self.submit(s, &out);
        }
    }

    /// Ends the file of the entity.
    pub(super) fn end_file(&mut self, s: &mut Scope<'_, '_>) {
        let Some(file) = &mut self.file else { return end_without_file(s) };
        let name = self.fuid.zip(file.exchange);
        if file.end(s, &mut self.fuid) {
            self.file = None;
            self.complete = name.filter(|_| self.fuid.is_none());
        }
    }

    /// As in Zeek, ends the file that belongs to the current exchange at the end of the connection.
    pub(super) fn end_late_file(&mut self, s: &mut Scope<'_, '_>) {
        let current = s.exchanges.current();
        if let Some(file) = self.file.take_if(|file| file.exchange == Some(current)) {
            s.cx.file_end(file.id);
        }
    }

    /// Passes content to the file.
    pub(super) fn submit(&mut self, s: &mut Scope<'_, '_>, data: &[u8]) {
        // With both a length and chunks in the header, the file may end before the body does.
        let ends_early = !self.partial && self.chunked != Chunked::No && self.content_length > 0;
        if !ends_early && !s.cx.env.logs.events.any() {
            return self.submit_piece(s, data);
        }
        let is_orig = s.from.is_orig();
        let piece = s.cx.env.setting("http_entity_data_delivery_size", PIECE as u64).max(1);
        for data in data.chunks(usize::try_from(piece).unwrap_or(usize::MAX)) {
            s.cx.raise(|c| HttpEntityData { c, is_orig, length: data.len() as u64, data });
            self.submit_piece(s, data);
        }
    }

    fn submit_piece(&mut self, s: &mut Scope<'_, '_>, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        self.drop_completed_file(s);
        let declared = if self.partial { self.total } else { self.content_length };
        // A compressed body's length is not the file's size.
        let is_file_size = self.reports_size && !self.compressed;
        self.reports_size = false;
        let total = u64::try_from(declared).ok().filter(|n| *n > 0 && is_file_size);
        let has_offset = self.partial;
        let file =
            self.file.get_or_insert_with(|| BodyFile::start(s, total, has_offset, &mut self.fuid));
        if file.shared && !file.type_reported {
            // Another connection may have detected the type.
            file.type_reported = s.cx.env.files.mime_type(file.id).is_some();
        }
        s.cx.resume_file(file.id);
        if self.partial {
            let (env, now) = (&mut *s.cx.env, s.cx.now);
            env.files.data_at(&mut env.logs, now, file.id, self.offset, data);
            self.offset = self.offset.saturating_add(data.len() as u64);
        } else {
            s.cx.file_data(file.id, data);
        }
        if !file.type_reported {
            let mime_type = s.cx.env.files.mime_type(file.id);
            file.report_type(s, mime_type);
        }
    }

    /// Drops the current file if it is complete: the following data belongs to another file.
    fn drop_completed_file(&mut self, s: &mut Scope<'_, '_>) {
        if let Some(file) = self.file.as_mut().filter(|f| s.cx.env.files.is_over(f.id))
            && !file.resume(s)
        {
            s.cx.file_end(file.id);
            self.file = None;
        }
    }

    /// Reports missing content to the file.
    pub(super) fn file_gap(&mut self, s: &mut Scope<'_, '_>, len: u64) {
        self.drop_completed_file(s);
        if let Some((fuid, _)) = self.complete.take_if(|of| of.1 == s.exchanges.current()) {
            self.fuid = Some(fuid);
            let from = s.from;
            s.cx.raise_handle_without_file(Tag::Http, from);
        }
        let file = self.file.get_or_insert_with(|| BodyFile::start(s, None, true, &mut self.fuid));
        s.cx.resume_file(file.id);
        let env = &mut *s.cx.env;
        env.files.gap(&mut env.logs, s.cx.now, file.id, Some(self.body_len), len);
        self.offset = self.offset.saturating_add(len);
        let mime_type = s.cx.env.files.mime_type(file.id);
        file.report_type(s, mime_type);
    }
}
