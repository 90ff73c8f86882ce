use gannet_base::Dir;
use gannet_files::FileId;
use gannet_files::FileStart;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::ftp::data::PREFIX_LEN;
use crate::ftp::data::raise_transferred;
use crate::ftp::events::FileTransferred;
use crate::irc::events::IrcDccFileType;
use crate::irc::events::IrcDccSendAck;
use crate::irc::rows::Transfer;
use crate::irc::rows::endpoint;
use crate::stack::events::FileStarts;

/// Number of bytes after which the MIME type of a file is final.
const SNIFFED: u64 = 4096;

/// The analyzer of a DCC transfer: the responder sends the file, the originator acknowledges the number of bytes
/// received.
pub struct Data {
    file: Option<FileId>,
    /// Number of bytes of the file so far.
    seen: u64,
    /// The first bytes, if `file_transferred` has a listener.
    prefix: Vec<u8>,
    /// The row of the transfer is written.
    logged: bool,
}

impl Data {
    /// For a connection that an offer announced.
    pub fn new(cx: &mut Context<'_>) -> Self {
        let (to, now) = (endpoint(cx), cx.now);
        if cx.env.irc.announced(to, now).is_some() {
            cx.confirm(Tag::IrcData);
        }
        Self { file: None, seen: 0, prefix: Vec::new(), logged: false }
    }

    fn file(&mut self, cx: &mut Context<'_>) -> FileId {
        if let Some(file) = self.file {
            return file;
        }
        let (to, now) = (endpoint(cx), cx.now);
        let filename = cx.env.irc.file_name(to, now);
        let file = cx.file_start(FileStart {
            source: "IRC_DATA",
            from: Dir::Resp,
            filename,
            ..FileStart::default()
        });
        let fuid = cx.env.files.fuid(file);
        let atype = Tag::IrcData;
        cx.report(&mut Transfer, |c| FileStarts { c, atype, is_orig: false, fuid });
        self.file = Some(file);
        file
    }

    /// Buffers the first bytes of the file for `file_transferred`.
    fn buffer_prefix(&mut self, cx: &mut Context<'_>, data: &[u8]) {
        let missing = PREFIX_LEN - self.prefix.len();
        if missing > 0 && cx.wants::<FileTransferred>() {
            self.prefix.extend_from_slice(&data[..missing.min(data.len())]);
            if self.prefix.len() == PREFIX_LEN {
                self.report(cx);
            }
        }
    }

    fn report(&self, cx: &mut Context<'_>) {
        let mime = gannet_files::sniff::mime_type(&self.prefix).unwrap_or("<unknown>");
        raise_transferred(cx, &self.prefix, mime);
    }

    /// Writes the row of the offer, once the MIME type of the file is final.
    fn log(&mut self, cx: &mut Context<'_>, file: FileId) {
        if std::mem::replace(&mut self.logged, true) {
            return;
        }
        let mime_type = cx.env.files.mime_type(file);
        cx.report(&mut Transfer, |c| IrcDccFileType { c, mime_type });
    }
}

impl Analyze for Data {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if from == Dir::Orig {
            if !data.len().is_multiple_of(4) {
                cx.weird("irc_invalid_dcc_send_ack", "", Some("IRC_DATA"));
            } else if cx.wants::<IrcDccSendAck>() {
                for number in data.as_chunks::<4>().0 {
                    let bytes_received = u32::from_be_bytes(*number).into();
                    cx.raise(|c| IrcDccSendAck { c, bytes_received });
                }
            }
            return;
        }
        self.buffer_prefix(cx, data);
        let file = self.file(cx);
        cx.file_data(file, data);
        self.seen += data.len() as u64;
        if self.seen >= SNIFFED {
            self.log(cx, file);
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if from == Dir::Resp {
            let file = self.file(cx);
            cx.file_gap(file, len);
            // A file without its first bytes has no type and no row.
            self.logged |= self.seen == 0;
            self.log(cx, file);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.prefix.is_empty() && self.prefix.len() < PREFIX_LEN {
            self.report(cx);
        }
        cx.raise_handle_without_file(Tag::IrcData, Dir::Orig);
        if let Some(file) = self.file.take() {
            cx.env.files.detect_mime_type(file);
            self.log(cx, file);
            cx.file_end(file);
        } else {
            cx.raise_handle_without_file(Tag::IrcData, Dir::Resp);
        }
        let to = endpoint(cx);
        cx.env.irc.forget(to);
    }
}
