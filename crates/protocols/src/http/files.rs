//! Bodies as files.

use gannet_files::FileId;
use gannet_files::FileStart;

use super::body::Entity;
use super::body::Scope;

/// A body or a part of one on its way into file analysis.
#[derive(Debug)]
pub(super) struct BodyFile {
    id: FileId,
    /// The exchange whose row names it.
    exchange: u64,
    /// Its type is told.
    typed: bool,
}

impl BodyFile {
    fn start(s: &mut Scope<'_, '_>, total_bytes: Option<u64>) -> Self {
        let filename = s.exchanges.filename();
        let id = s.cx.file_start(FileStart {
            source: "HTTP",
            from: s.from,
            depth: 0,
            filename: filename.clone(),
            total_bytes,
            parent: None,
            mime_type: None,
        });
        let fuid = s.cx.env.files.fuid(id);
        let exchange = s.exchanges.file(s.from, fuid, filename);
        Self { id, exchange, typed: false }
    }

    fn tell_type(&mut self, s: &mut Scope<'_, '_>) {
        if !self.typed
            && let Some(mime_type) = s.cx.env.files.mime_type(self.id)
        {
            self.typed = true;
            s.exchanges.file_type(self.exchange, s.from, mime_type);
        }
    }

    /// The file is complete, or what there is of it.
    pub(super) fn end(mut self, s: &mut Scope<'_, '_>) {
        self.tell_type(s);
        s.cx.file_end(self.id);
    }
}

impl Entity {
    /// Content, to its file.
    pub(super) fn submit(&mut self, s: &mut Scope<'_, '_>, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let told = if self.partial { self.total } else { self.content_length };
        // A compressed body's length says nothing of what comes out.
        let total =
            u64::try_from(told).ok().filter(|n| *n > 0 && self.tell_size && !self.compressed);
        self.tell_size = false;
        let file = self.file.get_or_insert_with(|| BodyFile::start(s, total));
        s.cx.file_data(file.id, data);
        file.tell_type(s);
        self.offset += data.len() as u64;
    }

    /// A part of the content is missing.
    pub(super) fn file_gap(&mut self, s: &mut Scope<'_, '_>, len: u64) {
        let file = self.file.get_or_insert_with(|| BodyFile::start(s, None));
        s.cx.file_gap(file.id, len);
        self.offset += len;
    }
}
