use gannet_base::Dir;
use gannet_files::FileId;
use gannet_files::FileStart;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::ftp::data::BEGINNING as PREFIX;
use crate::ftp::data::raise_transferred;
use crate::ftp::events::FileTransferred;
use crate::irc::events::IrcDccFileType;
use crate::irc::events::IrcDccSendAck;
use crate::irc::rows::Transfer;
use crate::irc::rows::endpoint;
use crate::stack::events::FileStarts;

/// The type of a file is detected after this many bytes, or never.
const BEGINNING: u64 = 4096;

/// The analyzer of a DCC transfer: the responder sends the file, the originator how many bytes
/// it has.
pub struct Data {
    file: Option<FileId>,
    seen: u64,
    /// The first bytes, where an event carries them.
    prefix: Vec<u8>,
    /// The transfer's row is written.
    told: bool,
}

impl Data {
    /// For a connection that an offer announced.
    pub fn new(cx: &mut Context<'_>) -> Self {
        let (to, now) = (endpoint(cx), cx.now);
        if cx.env.irc.announced(to, now).is_some() {
            cx.confirm(Tag::IrcData);
        }
        Self { file: None, seen: 0, prefix: Vec::new(), told: false }
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

    /// The first bytes of the file, for the event that carries them.
    fn keep_prefix(&mut self, cx: &mut Context<'_>, data: &[u8]) {
        let room = PREFIX - self.prefix.len();
        if room > 0 && cx.wants::<FileTransferred>() {
            self.prefix.extend_from_slice(&data[..room.min(data.len())]);
            if self.prefix.len() == PREFIX {
                self.report(cx);
            }
        }
    }

    fn report(&self, cx: &mut Context<'_>) {
        let mime = gannet_files::sniff::mime_type(&self.prefix).unwrap_or("<unknown>");
        raise_transferred(cx, &self.prefix, mime);
    }

    /// The file's type is settled: the row of the offer is complete.
    fn tell(&mut self, cx: &mut Context<'_>, file: FileId) {
        if std::mem::replace(&mut self.told, true) {
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
        self.keep_prefix(cx, data);
        let file = self.file(cx);
        cx.file_data(file, data);
        self.seen += data.len() as u64;
        if self.seen >= BEGINNING {
            self.tell(cx, file);
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if from == Dir::Resp {
            let file = self.file(cx);
            cx.file_gap(file, len);
            // A file without its beginning has no type and no row.
            self.told |= self.seen == 0;
            self.tell(cx, file);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.prefix.is_empty() && self.prefix.len() < PREFIX {
            self.report(cx);
        }
        cx.raise_handle_without_file(Tag::IrcData, Dir::Orig);
        if let Some(file) = self.file.take() {
            cx.env.files.settle_mime_type(file);
            self.tell(cx, file);
            cx.file_end(file);
        } else {
            cx.raise_handle_without_file(Tag::IrcData, Dir::Resp);
        }
        let to = endpoint(cx);
        cx.env.irc.forget(to);
    }
}
