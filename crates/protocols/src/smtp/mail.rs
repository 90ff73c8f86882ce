//! Passes parsed mails to the row and to file analysis.

use gannet_base::Dir;
use gannet_files::FileId;
use gannet_files::FileStart;

use super::rows::Session;
use super::values::SOURCE;
use crate::Context;
use crate::Tag;
use crate::stack::events::FileStarts;
use crate::support::limit_reached;
use crate::support::mime::Fault;
use crate::support::mime::Field;
use crate::support::mime::Limits;
use crate::support::mime::Report;
use crate::support::mime::Sink;

/// Destination of one mail: the row, file analysis and events.
pub(super) struct Mail<'a, 'b> {
    pub(super) cx: &'a mut Context<'b>,
    pub(super) session: &'a mut Session,
    /// Number of entities that began, over all mails.
    pub(super) entities: &'a mut u64,
    /// Side that sends the mail.
    pub(super) from: Dir,
    /// The file of the current entity.
    pub(super) file: &'a mut Option<FileId>,
    /// Raises the events of the mail's entities.
    pub(super) report: &'a mut Report,
}

impl Mail<'_, '_> {
    #[inline]
    fn open(&mut self) -> FileId {
        match *self.file {
            Some(file) => {
                // A file that timed out starts again, and is listed again in the row.
                if self.cx.env.files.is_over(file) {
                    self.report_file(file);
                }
                file
            }
            None => self.begin_file(),
        }
    }

    #[inline(never)]
    fn begin_file(&mut self) -> FileId {
        let file = self.cx.file_start(FileStart {
            source: "SMTP",
            from: self.from,
            depth: *self.entities,
            filename: self.session.file_name(),
            ..FileStart::default()
        });
        *self.file = Some(file);
        self.report_file(file);
        file
    }

    #[inline(never)]
    fn report_file(&mut self, file: FileId) {
        let (is_orig, fuid) = (self.from.is_orig(), self.cx.env.files.fuid(file));
        self.cx.report(self.session, |c| FileStarts { c, atype: Tag::Smtp, is_orig, fuid });
    }

    /// Ends the mail.
    pub(super) fn finish(&mut self) {
        self.report.finish(self.cx);
        self.cx.raise_file_handles(Tag::Smtp);
    }

    /// Reports that `len` bytes of the mail are missing.
    pub(super) fn gap(&mut self, len: u64) {
        self.line_end();
        let file = self.open();
        self.cx.file_gap(file, len);
    }
}

impl Sink for Mail<'_, '_> {
    fn begin(&mut self, _depth: usize) {
        self.report.begin(self.cx, self.session);
        *self.entities += 1;
    }

    fn headers_end(&mut self, _depth: usize) {
        self.report.headers_end(self.cx);
    }

    fn header(&mut self, _depth: usize, field: Field<'_>) {
        self.report.header(self.cx, self.session, field);
    }

    fn data(&mut self, _depth: usize, data: &[u8]) {
        if self.report.data(self.cx, data) {
            let file = self.open();
            self.cx.file_data(file, data);
        }
    }

    fn line_end(&mut self) {
        self.report.line_end(self.cx);
        let withheld = self.report.take_withheld();
        if !withheld.is_empty() {
            let file = self.open();
            self.cx.file_data(file, &withheld);
        }
    }

    fn illegal(&mut self, fault: Fault) {
        self.report.illegal(self.cx, fault);
    }

    fn limits(&self) -> Limits {
        Limits::from_settings(self.cx.env)
    }

    fn end(&mut self, _depth: usize) {
        self.line_end();
        self.report.end(self.cx, self.session);
        match self.file.take() {
            Some(file) => self.cx.file_end(file),
            None => self.cx.raise_file_handles(Tag::Smtp),
        }
    }

    fn limit(&mut self, name: &'static str, at: usize) {
        limit_reached(self.cx, name, &at.to_string(), SOURCE);
    }

    fn bad_base64(&mut self, complaint: &str) {
        self.cx.weird("base64_illegal_encoding", complaint, None);
    }
}
