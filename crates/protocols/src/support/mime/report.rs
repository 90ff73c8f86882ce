//! Raises the events of a mail's entities.

use gannet_event::TableOf;
use md5::Digest;

use super::Fault;
use super::Field;
use super::events::HeaderRec;
use super::events::MimeAllData;
use super::events::MimeAllHeaders;
use super::events::MimeBeginEntity;
use super::events::MimeContentHash;
use super::events::MimeContentHashSha256;
use super::events::MimeEndEntity;
use super::events::MimeEntityData;
use super::events::MimeEvent;
use super::events::MimeOneHeader;
use super::events::MimeSegmentData;
use crate::Context;
use crate::OnEvent;
use crate::support::text::UpperCase;

/// Maximum number of content bytes in one `mime_entity_data` or `mime_all_data`: longer content is
/// split into several events.
const MAX_CONTENT: usize = 16 << 20;

/// Maximum length of `mime_segment_data`, in bytes: Zeek's `mime_segment_length`.
const MAX_SEGMENT: u64 = 1024;

/// Minimum number of new bytes in a segment.
const MIN_NEW: u64 = 32;

/// Data that is collected for the events of one mail. Nothing is stored for events without a
/// listener.
#[derive(Default)]
pub struct Report {
    /// Header fields of the current header.
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Content of the current entity.
    content: Vec<u8>,
    /// Content of all entities.
    all: Vec<u8>,
    /// Content of the current line, after the bytes that it repeats of earlier content.
    segment: Vec<u8>,
    /// Content that is delivered to its file after the event of the line, if that has a listener.
    withheld: Vec<u8>,
    /// Number of repeated bytes in `segment`.
    repeated: usize,
    /// Length of the content of all entities, in bytes.
    len: u64,
    md5: Option<Box<md5::Md5>>,
    sha256: Option<Box<sha2::Sha256>>,
}

impl Report {
    /// Begins an entity.
    #[inline]
    pub fn begin(&mut self, cx: &mut Context<'_>, rows: &mut impl OnEvent<MimeBeginEntity>) {
        if self.len == 0 {
            let (md5, sha256) =
                (cx.wants::<MimeContentHash>(), cx.wants::<MimeContentHashSha256>());
            self.md5 = md5.then(|| self.md5.take().unwrap_or_default());
            self.sha256 = sha256.then(|| self.sha256.take().unwrap_or_default());
        }
        self.fields.clear();
        self.content.clear();
        self.segment.clear();
        self.repeated = 0;
        cx.report(rows, |c| MimeBeginEntity { c });
    }

    /// Reports a header field.
    #[inline]
    pub fn header<'a>(
        &mut self,
        cx: &mut Context<'_>,
        rows: &mut impl OnEvent<MimeOneHeader<'a>>,
        field: Field<'a>,
    ) {
        cx.report(rows, |c| MimeOneHeader { c, h: record(field.name, field.value) });
        if cx.wants::<MimeAllHeaders>() {
            self.fields.push((field.name.to_vec(), field.value.to_vec()));
        }
    }

    /// Ends the header of the entity.
    pub fn headers_end(&mut self, cx: &mut Context<'_>) {
        if cx.wants::<MimeAllHeaders>() {
            let fields = std::mem::take(&mut self.fields);
            let list = fields.iter().map(|(name, value)| record(name, value));
            let hlist = TableOf((1..).zip(list).collect());
            cx.raise(|c| MimeAllHeaders { c, hlist });
        }
    }

    /// Reports a fault of the message.
    pub fn illegal(&mut self, cx: &mut Context<'_>, fault: Fault) {
        if cx.wants::<MimeEvent<'_>>() {
            let (event_type, detail) = (fault.event_type(), &fault.detail()[..]);
            cx.raise(|c| MimeEvent { c, event_type, detail });
        }
    }

    /// Reports decoded content. Returns whether the file gets it immediately; otherwise it is
    /// withheld until the event of its line.
    #[inline]
    pub fn data(&mut self, cx: &mut Context<'_>, data: &[u8]) -> bool {
        self.len += data.len() as u64;
        if !cx.env.logs.events.any() {
            return true;
        }
        self.collect(cx, data);
        let waits = cx.wants::<MimeSegmentData>();
        if waits {
            self.withheld.extend_from_slice(data);
        }
        !waits
    }

    /// Takes the content that was withheld until the event of its line.
    #[inline]
    pub fn take_withheld(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.withheld)
    }

    /// Stores content for the events that have a listener.
    #[cold]
    fn collect(&mut self, cx: &mut Context<'_>, mut data: &[u8]) {
        if cx.wants::<MimeSegmentData>() {
            let min = overlap(cx) as u64 + MIN_NEW;
            let max = cx.env.setting("mime_segment_length", MAX_SEGMENT).clamp(min, 1 << 24);
            let mut rest = data;
            while self.segment.len() + rest.len() > max as usize {
                let room = (max as usize).saturating_sub(self.segment.len());
                let (now, more) = rest.split_at(room.min(rest.len()));
                self.segment.extend_from_slice(now);
                rest = more;
                self.line_end(cx);
            }
            self.segment.extend_from_slice(rest);
        }
        if cx.wants::<MimeAllData>() {
            let mut rest = data;
            while self.all.len() + rest.len() > MAX_CONTENT {
                let (now, more) = rest.split_at(MAX_CONTENT - self.all.len());
                self.all.extend_from_slice(now);
                rest = more;
                self.all(cx);
            }
            self.all.extend_from_slice(rest);
        }
        if let Some(hash) = &mut self.md5 {
            hash.update(data);
        }
        if let Some(hash) = &mut self.sha256 {
            hash.update(data);
        }
        if cx.wants::<MimeEntityData>() {
            while self.content.len() + data.len() > MAX_CONTENT {
                let (now, rest) = data.split_at(MAX_CONTENT - self.content.len());
                self.content.extend_from_slice(now);
                data = rest;
                self.content(cx);
            }
            self.content.extend_from_slice(data);
        }
    }

    /// Ends a line of content.
    #[inline]
    pub fn line_end(&mut self, cx: &mut Context<'_>) {
        if self.segment.len() > self.repeated {
            let data = &self.segment[..];
            cx.raise(|c| MimeSegmentData { c, length: data.len() as u64, data });
            self.segment.drain(..data.len().saturating_sub(overlap(cx)));
            self.repeated = self.segment.len();
        }
    }

    /// Ends the entity.
    #[inline]
    pub fn end(&mut self, cx: &mut Context<'_>, rows: &mut impl OnEvent<MimeEndEntity>) {
        self.line_end(cx);
        self.content(cx);
        cx.report(rows, |c| MimeEndEntity { c });
    }

    /// Raises the event of the stored content.
    fn content(&mut self, cx: &mut Context<'_>) {
        let data = &self.content[..];
        cx.raise(|c| MimeEntityData { c, length: data.len() as u64, data });
        self.content.clear();
    }

    /// Raises the event of the stored content of all entities.
    fn all(&mut self, cx: &mut Context<'_>) {
        let data = &self.all[..];
        cx.raise(|c| MimeAllData { c, length: data.len() as u64, data });
        self.all.clear();
    }

    /// Ends the mail.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        self.all(cx);
        let content_len = self.len;
        if let Some(hash) = self.md5.take() {
            let hash = hash.finalize();
            cx.raise(|c| MimeContentHash { c, content_len, hash_value: &hash });
        }
        if let Some(hash) = self.sha256.take() {
            let hash = hash.finalize();
            cx.raise(|c| MimeContentHashSha256 { c, content_len, hash_value: &hash });
        }
        self.len = 0;
    }
}

/// Number of bytes of earlier content that a segment repeats: Zeek's `mime_segment_overlap_length`.
fn overlap(cx: &Context<'_>) -> usize {
    cx.env.setting("mime_segment_overlap_length", 0).min(1 << 20) as usize
}

fn record<'a>(original_name: &'a [u8], value: &'a [u8]) -> HeaderRec<'a> {
    HeaderRec { original_name, name: UpperCase(original_name), value }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    use gannet_base::Proto;
    use gannet_event::Event;
    use gannet_event::Events;
    use gannet_event::Interest;
    use gannet_event::Listener;
    use gannet_event::Raised;
    use gannet_event::Value;

    use super::*;
    use crate::testing::Harness;

    /// Number of events of content, total number of their bytes, and the maximum.
    #[derive(Default)]
    struct Counts([AtomicU64; 3]);

    struct Counting(Arc<Counts>);

    impl Listener for Counting {
        fn event(&mut self, event: &Raised<'_>) {
            let mut args = event.args();
            let [c, length, ..] = event.decl.params else { return };
            args.skip_param(c);
            let Some(Value::Count(length)) = args.param(length) else { return };
            let [events, bytes, longest] = &self.0.0;
            events.fetch_add(1, Ordering::Relaxed);
            bytes.fetch_add(length, Ordering::Relaxed);
            longest.fetch_max(length, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_content_is_lost_and_no_event_is_too_long() {
        const BYTES: usize = 45 << 20;
        let longest = [MAX_CONTENT, MAX_CONTENT, MAX_SEGMENT as usize];
        let kinds = [MimeEntityData::DECL, MimeAllData::DECL, MimeSegmentData::DECL];
        for (decl, max) in kinds.into_iter().zip(longest) {
            let mut h = Harness::new(Proto::Tcp, 25);
            let counts = Arc::<Counts>::default();
            let interest = Interest::of([decl].into_iter(), |_| true);
            h.env.logs.events = Events::new(interest, Box::new(Counting(counts.clone())));
            let mut report = Report::default();
            report.begin(&mut h.cx(), &mut ());
            let piece = vec![7; BYTES / 9];
            for _ in 0..9 {
                report.data(&mut h.cx(), &piece);
            }
            report.end(&mut h.cx(), &mut ());
            report.finish(&mut h.cx());
            h.env.logs.events.drain();
            let [events, bytes, longest] = &counts.0;
            assert_eq!(events.load(Ordering::Relaxed), BYTES.div_ceil(max) as u64, "{}", decl.name);
            assert_eq!(bytes.load(Ordering::Relaxed), BYTES as u64, "{}", decl.name);
            assert_eq!(longest.load(Ordering::Relaxed), max as u64, "{}", decl.name);
        }
    }

    #[test]
    fn segments_are_lines_and_all_data_is_that_of_the_mail() {
        let mut h = Harness::new(Proto::Tcp, 25);
        h.listen("mime_");
        let mut report = Report::default();
        for (text, end) in [(&b"one"[..], false), (b"\r\n", true), (&[b'x'; 1500], true)] {
            report.data(&mut h.cx(), text);
            if end {
                report.line_end(&mut h.cx());
            }
        }
        let lengths = |events: &[String]| -> Vec<String> {
            events.iter().map(|e| e.split(',').next().unwrap().to_owned()).collect()
        };
        let pieces = lengths(&h.events());
        assert_eq!(pieces, [5, 1024, 476].map(|n| format!("mime_segment_data \"length\":{n}")));
        report.end(&mut h.cx(), &mut ());
        h.events();
        report.finish(&mut h.cx());
        assert_eq!(lengths(&h.events())[0], "mime_all_data \"length\":1505");
    }

    #[test]
    fn segments_repeat_what_scripts_ask_for() {
        let segments = |length: u64, overlap: u64| {
            let mut h = Harness::new(Proto::Tcp, 25);
            h.listen("mime_segment_data");
            for (name, value) in
                [("mime_segment_length", length), ("mime_segment_overlap_length", overlap)]
            {
                h.env.apply_command(h.now, gannet_event::Command::Setting { name, value });
            }
            let mut report = Report::default();
            for text in [&b"abcdef"[..], &[b'x'; 60], b"next"] {
                report.begin(&mut h.cx(), &mut ());
                for part in text.chunks(40) {
                    report.data(&mut h.cx(), part);
                    report.line_end(&mut h.cx());
                }
                report.line_end(&mut h.cx());
                report.end(&mut h.cx(), &mut ());
            }
            let length = |event: &String| {
                let rest = event.split("\"length\":").nth(1).unwrap();
                rest.split(',').next().unwrap().parse::<u64>().unwrap()
            };
            h.events().iter().map(length).collect::<Vec<_>>()
        };
        assert_eq!(segments(1024, 0), [6, 40, 20, 4]);
        // An entity repeats nothing of the previous one.
        assert_eq!(segments(1024, 5), [6, 40, 25, 4]);
        // At least 32 bytes are new.
        assert_eq!(segments(1, 0), [6, 32, 8, 20, 4]);
        assert_eq!(segments(10, 5), [6, 37, 8, 25, 4]);
    }
}
