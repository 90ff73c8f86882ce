use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Uid;
use gannet_files::FileId;
use gannet_files::FileStart;

use super::events::FileTransferred;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Number of bytes from which the MIME type in the control connection's row is detected; files.log may
/// use more.
pub(crate) const PREFIX_LEN: usize = 1024;

/// The analyzer of a data connection: the data of each side is a file.
pub struct Data {
    files: [Option<FileId>; 2],
    /// The first bytes of both sides.
    prefix: Vec<u8>,
}

impl Data {
    /// For a data connection that a control connection announced.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if control(cx).is_some() {
            cx.confirm(Tag::FtpData);
        }
        Self { files: [None; 2], prefix: Vec::new() }
    }

    fn file(&mut self, cx: &mut Context<'_>, from: Dir) -> Option<FileId> {
        let file = &mut self.files[from.index()];
        if file.is_none() {
            let control = control(cx)?;
            let start = FileStart { source: "FTP_DATA", from, ..FileStart::default() };
            let new = *file.insert(cx.file_start(start));
            let fuid = cx.env.files.fuid(new);
            if let Some(transfer) = cx.env.ftp.transfer(control) {
                transfer.fuid = fuid;
            }
        }
        *file
    }

    fn identify(&mut self, cx: &mut Context<'_>) {
        let mime = gannet_files::sniff::mime_type(&self.prefix).unwrap_or("<unknown>");
        raise_transferred(cx, &self.prefix, mime);
        set_mime_type(cx, Some(mime));
    }
}

/// Reports the first bytes of a transfer.
pub(crate) fn raise_transferred(cx: &mut Context<'_>, prefix: &[u8], mime_type: &str) {
    cx.raise(|c| FileTransferred { c, prefix, descr: b"<unknown>", mime_type });
}

/// Returns the announced endpoint, which is the responder of the connection.
fn endpoint(cx: &Context<'_>) -> (Addr, u16, bool) {
    (cx.conn.id.resp_h, cx.conn.id.resp_p, cx.conn.is_global())
}

fn control(cx: &mut Context<'_>) -> Option<Uid> {
    let to = endpoint(cx);
    cx.env.ftp.control(to, cx.now)
}

/// Sets the MIME type of the file in the control connection's session.
fn set_mime_type(cx: &mut Context<'_>, mime: Option<&'static str>) {
    if mime.is_some()
        && let Some(control) = control(cx)
        && let Some(transfer) = cx.env.ftp.transfer(control)
    {
        transfer.mime_type = mime;
    }
}

impl Analyze for Data {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let missing = PREFIX_LEN - self.prefix.len();
        if missing > 0 {
            self.prefix.extend_from_slice(&data[..missing.min(data.len())]);
            if self.prefix.len() == PREFIX_LEN {
                self.identify(cx);
            }
        }
        if let Some(file) = self.file(cx, from) {
            let before = cx.env.files.mime_type(file);
            cx.file_data(file, data);
            let after = cx.env.files.mime_type(file);
            if before != after {
                set_mime_type(cx, after);
            }
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if let Some(file) = self.file(cx, from) {
            let before = cx.env.files.mime_type(file);
            cx.file_gap(file, len);
            let after = cx.env.files.mime_type(file);
            if before != after {
                set_mime_type(cx, after);
            }
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.files.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.prefix.is_empty() && self.prefix.len() < PREFIX_LEN {
            self.identify(cx);
        }
        for side in [Dir::Orig, Dir::Resp] {
            let Some(file) = self.files[side.index()].take() else {
                cx.raise_handle_without_file(Tag::FtpData, side);
                continue;
            };
            // The control connection's row may already be written, and the next transfer active.
            let before = cx.env.files.mime_type(file);
            let after = cx.env.files.detect_mime_type(file);
            if before != after {
                set_mime_type(cx, after);
            }
            cx.file_end(file);
        }
        let to = endpoint(cx);
        cx.env.ftp.forget(to);
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::*;
    use crate::testing::Harness;

    /// The MIME type that the end of a data connection sets in the next row of its control connection.
    fn reported_at_the_end(content: &[u8]) -> Option<&'static str> {
        let mut h = Harness::new(Proto::Tcp, 2000);
        let (id, uid) = (h.conn.id, h.conn.uid);
        assert_eq!(
            h.env.ftp.announce((id.resp_h, id.resp_p, h.conn.is_global()), uid, h.now),
            Ok(())
        );
        let mut data = Data::new(&mut h.cx());
        data.stream(&mut h.cx(), Dir::Resp, content);
        // The row is written, and the data connection ends seconds later.
        h.env.ftp.take_transfer(uid);
        data.finish(&mut h.cx());
        h.env.ftp.take_transfer(uid).mime_type
    }

    #[test]
    fn the_end_requests_a_file_handle_for_a_side_without_a_file() {
        let mut h = Harness::new(Proto::Tcp, 2000);
        h.listen("get_file_handle");
        let (id, uid) = (h.conn.id, h.conn.uid);
        let to = (id.resp_h, id.resp_p, h.conn.is_global());
        assert_eq!(h.env.ftp.announce(to, uid, h.now), Ok(()));
        let mut data = Data::new(&mut h.cx());
        data.stream(&mut h.cx(), Dir::Resp, b"text\r\n");
        h.events();
        data.finish(&mut h.cx());
        assert_eq!(h.events(), [r#"get_file_handle "is_orig":true"#]);
    }

    /// A data connection ends some seconds after its FIN, when the next transfer may have begun.
    #[test]
    fn a_transfer_does_not_get_the_type_of_the_previous_one() {
        let mut long = b"%PDF-1.4\n".to_vec();
        long.resize(5000, b' ');
        assert_eq!(reported_at_the_end(&long), None);
        assert_eq!(reported_at_the_end(b"%PDF-1.4\n short"), Some("application/pdf"));
    }
}
