//! Archives, whose entries are files as well.

use std::sync::atomic::Ordering;

use gannet_base::Time;
use gannet_event::Sinks;

use super::FileId;
use super::FileStart;
use super::FileWeirdFacts;
use super::Files;
use super::numbered;
use crate::events::ZipEndOfDirectory;
use crate::events::ZipEntry;
use crate::events::ZipFile;
use crate::file::Archive;
use crate::file::MAX_NESTED_ARCHIVES;
use crate::file::MAX_UNPACKED;
use crate::file::Nesting;
use crate::zip::Entry;
use crate::zip::Item;

/// The name of the analyzer in logs and files.
const ZIP: &str = "ZIP";

impl Files {
    /// Parses the bytes of an archive that have arrived.
    #[cold]
    pub(super) fn unpack(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let listened = self.get_mut(id).and_then(|file| file.listened.as_mut());
        // The archive is moved out of its file while its entries, which may be archives, are
        // processed.
        let Some(mut archive) = listened.and_then(|listened| listened.archive.take()) else {
            return;
        };
        if archive.parser.has_input() {
            self.read_archive(logs, now, id, &mut archive);
        }
        if let Some(file) = self.get_mut(id) {
            if file.stopped {
                archive.parser.stop();
            }
            file.listened.get_or_insert_default().archive = Some(archive);
            if file.has_fault() {
                self.note_fault(logs, id);
            }
        } else if let Some(entry) = archive.entry {
            self.end(logs, now, entry);
        }
    }

    /// Ends an archive: parses the remaining bytes, and ends the last entry.
    #[cold]
    pub(super) fn unpack_rest(&mut self, logs: &mut Sinks, now: Time, id: FileId) {
        let extract = self.options.extract.clone();
        let Some(file) = self.get_mut(id).filter(|file| !file.dormant) else { return };
        file.detect_type_at_end(logs, extract.as_ref());
        if file.archive().is_none() {
            return;
        }
        file.raise_listened(logs);
        self.unpack(logs, now, id);
        let listened = self.get_mut(id).and_then(|file| file.listened.as_mut());
        if let Some(entry) =
            listened.and_then(|listened| listened.archive.take()).and_then(|a| a.entry)
        {
            self.end(logs, now, entry);
        }
    }

    fn read_archive(&mut self, logs: &mut Sinks, now: Time, id: FileId, archive: &mut Archive) {
        loop {
            match archive.parser.next_item() {
                Ok(None) => return,
                Ok(Some(Item::Entry(entry))) => {
                    if !entry.is_in_directory && entry.is_readable() {
                        archive.entry = self.start_entry(logs, now, id, archive.entries, &entry);
                        archive.entries += 1;
                    }
                    self.raise_entry(logs, id, archive.entry, &entry);
                }
                Ok(Some(Item::Data(data))) => {
                    let Some(entry) = archive.entry else { continue };
                    if self.may_unpack(logs, now, id, data.len() as u64) {
                        self.data(logs, now, entry, data);
                    } else {
                        archive.parser.stop();
                    }
                }
                Ok(Some(Item::EntryEnd)) => {
                    if let Some(entry) = archive.entry.take() {
                        self.end(logs, now, entry);
                    }
                }
                Ok(Some(Item::End(comment))) => {
                    let Some(file) = self.get(id) else { continue };
                    if logs.events.wants::<ZipEndOfDirectory<'_>>() {
                        let f = logs.events.file(file.state());
                        logs.events.raise(&ZipEndOfDirectory { f, comment: &comment });
                    }
                }
                Err(error) => {
                    archive.parser.stop();
                    if let Some(entry) = archive.entry.take() {
                        self.end(logs, now, entry);
                    }
                    if let Some(file) = self.get_mut(id) {
                        file.analyzers.failure = Some((ZIP, error.to_string()));
                    }
                    return;
                }
            }
        }
    }

    /// Starts the contents of an entry as a file; `None` if it is nested in too many archives.
    fn start_entry(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        id: FileId,
        n: u64,
        entry: &Entry,
    ) -> Option<FileId> {
        let file = self.get_mut(id)?;
        let nesting = file.nesting.get_or_insert_default();
        if nesting.depth >= MAX_NESTED_ARCHIVES {
            let addl = MAX_NESTED_ARCHIVES.to_string();
            self.weird(logs, now, id, "zip_nested_archives_limit_reached", addl);
            return None;
        }
        let nesting = Nesting { depth: nesting.depth + 1, left: nesting.left.clone() };
        let start = FileStart {
            source: ZIP,
            from: file.start.from,
            filename: Some(entry.filename.clone()),
            total_bytes: entry.size.map(u64::from),
            parent: Some(file.fuid),
            ..FileStart::default()
        };
        let (uid, ends, local_orig) = (file.uid, (file.id, file.proto), file.local_orig);
        let (others, is_global, fuid) = (file.others.clone(), file.is_global, file.fuid);
        let (name, len) = fuid.text();
        let name = [&name[..len], b" ", n.to_string().as_bytes()].concat();
        self.set_next_fuid(self.uids.named_file(&name));
        let its = self.start(now, uid, ends, local_orig, 0, start);
        if let Some(file) = self.get_mut(its) {
            file.others = others;
            file.nesting = Some(Box::new(nesting));
        }
        if self.discard_excess(logs, now, its, is_global) {
            self.weird(logs, now, its, "files_limit_reached", String::new());
        }
        self.raise_new(logs, its, None);
        Some(its)
    }

    fn raise_entry(&self, logs: &mut Sinks, id: FileId, its: Option<FileId>, entry: &Entry) {
        let Some(file) = self.get(id).filter(|_| logs.events.wants::<ZipFile<'_>>()) else {
            return;
        };
        let f = logs.events.file(file.state());
        let meta = ZipEntry {
            is_in_directory: entry.is_in_directory,
            fid: its.and_then(|its| self.fuid(its)),
            filename: &entry.filename,
            changed: Time::from_secs(entry.changed),
            comment: &entry.comment,
            method: entry.method,
            is_encrypted: entry.is_encrypted,
        };
        logs.events.raise(&ZipFile { f, meta });
        logs.events.mark();
        logs.events.drain();
    }

    /// Whether entries of the archive may have `len` more bytes; reports that the limit was
    /// reached.
    fn may_unpack(&mut self, logs: &mut Sinks, now: Time, id: FileId, len: u64) -> bool {
        let Some(nesting) = self.get(id).and_then(|file| file.nesting.as_ref()) else {
            return false;
        };
        let take = |left: u64| left.checked_sub(len);
        let may = nesting.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if !may {
            self.weird(logs, now, id, "zip_contents_limit_reached", MAX_UNPACKED.to_string());
        }
        may
    }

    fn weird(&mut self, logs: &mut Sinks, now: Time, id: FileId, name: &'static str, addl: String) {
        let Some(file) = numbered(&mut self.files, id) else { return };
        let weird = FileWeirdFacts { name, addl, source: Some(ZIP) };
        self.faults.push(file.weird(logs, now, &mut self.options.sampling, weird));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Proto;
    use gannet_base::Uid;
    use gannet_base::UidSource;
    use gannet_event::FileCommand;

    use super::*;
    use crate::manager::ContentFault;
    use crate::manager::FaultKind;
    use crate::manager::testing;
    use crate::zip::tests::deflated;
    use crate::zip::tests::directory;
    use crate::zip::tests::stored;

    const NOW: Time = Time::from_secs(1);

    /// The names of archives, entries and comments, and the sizes of files.
    fn describe(event: &str, json: &str) -> String {
        let text = |name: &str| {
            let (_, rest) = json.split_once(&format!("\"{name}\":\"")).unwrap_or_default();
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        match event {
            "ZIP::file" => text("filename"),
            "ZIP::end_of_directory" => text("comment"),
            "file_state_remove" => testing::seen_bytes(json),
            _ => text("source"),
        }
    }

    struct World {
        files: Files,
        logs: Sinks,
        lines: testing::Lines,
    }

    impl World {
        fn new() -> Self {
            let mut logs: Sinks = gannet_log::Logs::new(gannet_log::Options::default()).into();
            let names = ["file_new", "ZIP::file", "ZIP::end_of_directory", "file_state_remove"];
            let (events, lines) = testing::listening(&names, describe);
            logs.events = events;
            let mut files = Files::new(UidSource::new(0));
            files.report_matches(true);
            Self { files, logs, lines }
        }

        /// Starts a file that is analyzed as an archive.
        fn start(&mut self) -> FileId {
            let a = Addr::v4([10, 0, 0, 1]);
            let id = ConnId { orig_h: a, orig_p: 1, resp_h: a, resp_p: 80 };
            let uid = UidSource::new(0).connection(1, 0);
            let id = self.files.start(NOW, uid, (id, Proto::Tcp), true, 0, testing::start());
            self.analyze(self.files.fuid(id).unwrap());
            id
        }

        fn analyze(&mut self, fuid: Uid) {
            let analyzer = "Files::ANALYZER_ZIP".into();
            let add = FileCommand::Add { analyzer, path: None, limit: 0, counts_gaps: false };
            self.files.apply_command(fuid, add);
        }

        fn data(&mut self, id: FileId, data: &[u8]) {
            self.files.data(&mut self.logs, NOW, id, data);
        }

        fn end(&mut self, id: FileId) -> Vec<String> {
            self.files.end(&mut self.logs, NOW, id);
            self.logs.events.drain();
            std::mem::take(&mut *self.lines.lock().unwrap())
        }

        fn weirds(&mut self) -> Vec<&'static str> {
            let name = |fault: ContentFault| match fault.kind {
                FaultKind::Weird { name, .. } => Some(name),
                _ => None,
            };
            self.files.take_faults().into_iter().filter_map(name).collect()
        }
    }

    #[test]
    fn entries_are_files() {
        let archive =
            [stored("a", b"text"), deflated("b", &[0; 70_000]), directory("a", "note")].concat();
        for size in [1, 10, archive.len()] {
            let mut w = World::new();
            let id = w.start();
            for part in archive.chunks(size) {
                w.data(id, part);
            }
            let events = [
                "file_new ZIP",
                "ZIP::file a",
                "file_state_remove 4",
                "file_new ZIP",
                "ZIP::file b",
                "file_state_remove 70000",
                "ZIP::file a",
                "ZIP::end_of_directory all",
            ];
            let len = archive.len();
            assert_eq!(w.end(id), [&events[..], &[&format!("file_state_remove {len}")]].concat());
            assert!(w.files.is_empty() && w.files.take_faults().is_empty());
        }
    }

    #[test]
    fn the_last_entry_ends_with_its_archive() {
        for size in [2, 5_000] {
            let mut w = World::new();
            let id = w.start();
            let archive = stored("a", &vec![b'x'; size]);
            w.data(id, &archive[..archive.len() - 1]);
            let events = w.end(id);
            assert_eq!(events[2], format!("file_state_remove {}", size - 1));
            assert!(w.files.is_empty());
            // The end of the input.
            let id = w.start();
            w.data(id, &archive[..archive.len() - 1]);
            w.files.finish(&mut w.logs, NOW, |_, _| ());
            w.logs.events.drain();
            let events = std::mem::take(&mut *w.lines.lock().unwrap());
            let ends = events.iter().filter(|line| line.starts_with("file_state_remove"));
            assert_eq!(ends.count(), 2, "{events:?}");
        }
    }

    #[test]
    fn a_gap_ends_the_analysis() {
        let mut w = World::new();
        let id = w.start();
        w.data(id, &stored("a", &[0; 5_000]));
        w.files.gap(&mut w.logs, NOW, id, None, 10);
        w.data(id, &stored("b", b"text"));
        assert_eq!(w.end(id).len(), 4);
    }

    #[test]
    fn a_fault_is_a_violation() {
        let mut w = World::new();
        let id = w.start();
        let mut archive = stored("a", &[0; 5_000]);
        archive[14] ^= 1;
        w.data(id, &archive);
        let kind = FaultKind::Violation { analyzer: "ZIP", reason: "CRC mismatch".into() };
        assert_eq!(w.files.take_faults().into_iter().map(|t| t.kind).next(), Some(kind));
        assert_eq!(w.end(id).len(), 4);
    }

    #[test]
    fn contents_have_a_limit() {
        let mut w = World::new();
        let id = w.start();
        let left = Arc::new(AtomicU64::new(10_000));
        w.files.get_mut(id).unwrap().nesting = Some(Box::new(Nesting { depth: 0, left }));
        w.data(id, &[stored("a", &[0; 9_000]), deflated("b", &[0; 9_000])].concat());
        w.data(id, &stored("c", b"text"));
        assert_eq!(w.weirds(), ["zip_contents_limit_reached"]);
        let events = w.end(id);
        assert!(events.contains(&"file_state_remove 0".to_owned()), "{events:?}");
        assert!(!events.contains(&"ZIP::file c".to_owned()));
    }

    #[test]
    fn nested_archives_have_a_maximum_depth() {
        let mut w = World::new();
        w.files.options.sniff_bytes = 1;
        let id = w.start();
        let left = Arc::new(AtomicU64::new(MAX_UNPACKED));
        let nesting = Nesting { depth: MAX_NESTED_ARCHIVES - 1, left };
        w.files.get_mut(id).unwrap().nesting = Some(Box::new(nesting));
        let inner = stored("b", &[0; 5_000]);
        let archive = stored("a", &inner);
        let (header, contents) = archive.split_at(archive.len() - inner.len());
        w.data(id, header);
        // The entry is an archive as well.
        let its = w.files.files.iter().flatten().find(|file| file.start.parent.is_some());
        let fuid = its.map(|file| file.fuid).unwrap();
        w.analyze(fuid);
        w.data(id, contents);
        assert_eq!(w.weirds(), ["zip_nested_archives_limit_reached"]);
        let events = w.end(id);
        assert!(events.contains(&format!("file_state_remove {}", inner.len())), "{events:?}");
        assert!(w.files.is_empty());
    }
}
