use std::sync::Mutex;

use super::testing::start;
use super::*;
use crate::file::MAX_BUFFERED;
use crate::pe::tests::program;
use gannet_base::Addr;
use gannet_event::Sinks;

struct World {
    files: Files,
    logs: Sinks,
}

impl World {
    fn new() -> Self {
        let logs = gannet_log::Logs::new(gannet_log::Options::default()).into();
        Self { files: Files::new(UidSource::new(0)), logs }
    }

    /// Like [`Self::new`], with the names of the events, each with the number of bytes that the
    /// file shows.
    fn listening(names: &'static [&'static str]) -> (Self, testing::Lines) {
        let mut world = Self::new();
        let (events, lines) = testing::listening(names, |_, json| testing::seen_bytes(json));
        world.logs.events = events;
        world.files.report_matches(true);
        world.files.keep_programs(true);
        (world, lines)
    }

    fn start(&mut self, start: FileStart) -> FileId {
        let uid = UidSource::new(0).connection(1, 0);
        let a = Addr::v4([10, 0, 0, 1]);
        let id = ConnId { orig_h: a, orig_p: 1, resp_h: a, resp_p: 80 };
        let ordinal = self.files.len() as u64;
        self.files.start(Time::from_secs(1), uid, (id, Proto::Tcp), true, ordinal, start)
    }

    fn expire(&mut self, now: i64, packet: i64) {
        let at = Time::from_secs;
        self.files.expire(&mut self.logs, at(now), at(packet), |_, _| ());
    }

    fn rows(&self) -> Vec<String> {
        let text = String::from_utf8(self.logs.pending("files").to_vec()).unwrap();
        text.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect()
    }
}

#[test]
fn a_file_that_scripts_read_has_a_name_and_no_connection() {
    let (mut w, heard) = World::listening(&["file_new", "file_state_remove"]);
    let f = w.files.start_input(Time::from_secs(1), "./sample");
    w.files.raise_new(&mut w.logs, f, None);
    for _ in 0..1_000 {
        w.files.data(&mut w.logs, Time::from_secs(2), f, b"0123456789");
    }
    let state = w.files.get(f).unwrap().state();
    assert_eq!((&*state.source, state.is_orig, state.conns.len()), ("./sample", None, 0));
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    w.logs.events.drain();
    assert_eq!(*heard.lock().unwrap(), ["file_new 0", "file_state_remove 10000"]);
    // The same name is the same file, another name is another file.
    let [again, other] =
        ["./sample", "./other"].map(|name| w.files.start_input(Time::from_secs(3), name));
    assert_eq!(w.files.fuid(again), Some(state.fuid));
    assert_ne!(w.files.fuid(other), Some(state.fuid));
}

#[test]
fn headers_of_an_executable_show_the_bytes_that_its_type_did() {
    let names =
        &["file_sniff", "pe_dos_header", "pe_dos_code", "pe_file_header", "file_state_remove"];
    let (mut w, heard) = World::listening(names);
    let mut image = program();
    image.resize(5_000, 0);
    let f = w.start(FileStart { total_bytes: Some(5_000), ..start() });
    for piece in [&image[..70], &image[70..4_500], &image[4_500..]] {
        w.files.data(&mut w.logs, Time::from_secs(2), f, piece);
        w.logs.events.drain();
    }
    let all = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(
        all,
        [
            "file_sniff 70",
            "pe_dos_header 70",
            "pe_dos_code 70",
            "pe_file_header 70",
            "file_state_remove 5000"
        ]
    );
    // A file that ends before its type is known otherwise.
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(2), f, &program());
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    w.logs.events.drain();
    let size = program().len();
    let all = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(all, names.map(|name| format!("{name} {size}")));
}

#[test]
fn a_gap_ends_the_detection_of_the_type() {
    let names = &["file_sniff", "file_gap", "file_state_remove"];
    let (mut w, heard) = World::listening(names);
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(2), f, b"<html>");
    w.files.gap(&mut w.logs, Time::from_secs(3), f, None, 10);
    w.logs.events.drain();
    let all = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(all, ["file_sniff 6", "file_gap 6"]);
    w.files.end(&mut w.logs, Time::from_secs(4), f);
    w.logs.events.drain();
    // The type of a file that begins with a gap is unknown.
    let f = w.start(start());
    w.files.gap(&mut w.logs, Time::from_secs(5), f, None, 10);
    w.logs.events.drain();
    w.files.data(&mut w.logs, Time::from_secs(5), f, b"<html>");
    w.files.end(&mut w.logs, Time::from_secs(5), f);
    w.logs.events.drain();
    let all = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(all, ["file_state_remove 6", "file_gap 0", "file_state_remove 6"]);
}

#[test]
fn a_file_from_start_to_end() {
    let mut w = World::new();
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(2), f, b"<html><body>");
    assert_eq!(w.files.mime_type(f), None);
    w.files.data(&mut w.logs, Time::from_secs(3), f, b"</body></html>");
    w.files.end(&mut w.logs, Time::from_secs(3), f);
    let rows = w.rows();
    let columns: Vec<_> = rows[0].split('\t').collect();
    assert_eq!(columns[0], "1.000000");
    assert_eq!(
        &columns[7..17],
        ["HTTP", "0", "(empty)", "text/html", "-", "2.000000", "T", "F", "26", "-"]
    );
    assert_eq!(w.files.len(), 0);
    w.files.data(&mut w.logs, Time::from_secs(3), f, b"late");
    assert_eq!(w.rows().len(), 1);
}

#[test]
fn parts_in_any_order() {
    let mut w = World::new();
    let f = w.start(FileStart { total_bytes: Some(9), ..start() });
    w.files.data_at(&mut w.logs, Time::from_secs(1), f, 6, b"ghi");
    w.files.data_at(&mut w.logs, Time::from_secs(1), f, 3, b"def");
    assert!(w.rows().is_empty());
    w.files.data_at(&mut w.logs, Time::from_secs(1), f, 0, b"abcd");
    assert!(w.rows()[0].contains("\t9\t9\t0\t0\tF\t"), "{}", w.rows()[0]);
}

#[test]
fn a_timeout_at_the_end_shows_a_file_without_out_of_order_data() {
    let (mut w, heard) = World::listening(&["file_timeout", "file_state_remove"]);
    let f = w.start(FileStart { total_bytes: Some(5_000), ..start() });
    w.files.data_at(&mut w.logs, Time::from_secs(2), f, 100, b"early");
    w.files.finish(&mut w.logs, Time::from_secs(3), |_, _| ());
    w.logs.events.drain();
    assert_eq!(*heard.lock().unwrap(), ["file_timeout 0", "file_state_remove 5"]);
}

#[test]
fn the_oldest_file_is_discarded() {
    let mut w = World::new();
    w.files.options.max_per_pair = 2;
    let ids: Vec<_> = (0..3).map(|_| w.start(start())).collect();
    w.files.data(&mut w.logs, Time::from_secs(2), ids[0], b"abc");
    assert!(w.files.discard_excess(&mut w.logs, Time::from_secs(3), ids[2], false));
    assert!(w.rows()[0].contains("\t3\t-\t0\t0\tT\t"), "{}", w.rows()[0]);
    assert_eq!((w.files.len(), w.files.discarded()), (2, 1));
    assert!(w.files.fuid(ids[0]).is_none() && w.files.fuid(ids[1]).is_some());
    // Files that end by themselves are not remembered.
    for _ in 0..5_000 {
        let id = w.start(start());
        w.files.discard_excess(&mut w.logs, Time::from_secs(3), id, false);
        w.files.end(&mut w.logs, Time::from_secs(3), id);
    }
    let pairs = w.files.pairs.as_ref().unwrap();
    assert!(pairs.len() == 1 && pairs.values().all(|p| p.count == 1 && p.oldest.len() < 2_000));
}

#[test]
fn an_idle_file_ends_and_more_data_restarts_it() {
    let mut w = World::new();
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(100), f, b"abc");
    w.expire(121, 121);
    w.expire(240, 240);
    assert!(w.rows().is_empty());
    w.expire(241, 241);
    assert!(w.rows()[0].contains("\t3\t-\t0\t0\tT\t"), "{}", w.rows()[0]);
    assert!(w.files.resume(Time::from_secs(300), f));
    assert_eq!(w.files.get(f).unwrap().state().last_active, Time::from_secs(300));
    w.files.data(&mut w.logs, Time::from_secs(300), f, b"defg");
    // The file may time out again.
    w.expire(419, 419);
    assert_eq!(w.rows().len(), 1);
    w.expire(420, 420);
    assert!(w.rows()[1].starts_with("300.000000"));
    assert!(w.rows()[1].contains("\t4\t-\t0\t0\tT\t"), "{}", w.rows()[1]);
    w.files.data(&mut w.logs, Time::from_secs(500), f, b"h");
    w.files.finish(&mut w.logs, Time::from_secs(501), |_, _| ());
    assert!(w.rows()[2].starts_with("500.000000"));
}

#[test]
fn files_that_are_idle_at_the_end_time_out_before_connections_close() {
    for (end, timed_out) in [(219, 'F'), (220, 'T'), (500, 'T')] {
        let mut w = World::new();
        let f = w.start(start());
        w.files.data(&mut w.logs, Time::from_secs(100), f, b"abc");
        w.expire(121, 121);
        let active = w.start(start());
        let end = Time::from_secs(end);
        w.files.data(&mut w.logs, end, active, b"defg");
        w.files.expire_at_end(&mut w.logs, end, |_, _| ());
        w.files.end(&mut w.logs, end, active);
        w.files.end(&mut w.logs, end, f);
        let mut rows = w.rows();
        rows.sort_by_key(|row| row.contains("\t4\t-"));
        assert!(rows[0].contains(&format!("\t3\t-\t0\t0\t{timed_out}\t")), "{}", rows[0]);
        assert!(rows[1].contains("\t4\t-\t0\t0\tF\t"), "{}", rows[1]);
        assert_eq!(rows.len(), 2);
    }
}

#[test]
fn idle_time_is_computed_from_the_time_of_packets() {
    let mut w = World::new();
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(100), f, b"abc");
    // Due at 121, but active according to the packet at 150: the next check is 120 seconds later.
    w.expire(121, 150);
    assert_eq!(w.files.next_due(), Time::from_secs(270));
    w.files.data(&mut w.logs, Time::from_secs(260), f, b"def");
    w.expire(270, 379);
    assert!(w.rows().is_empty());
    w.files.end(&mut w.logs, Time::from_secs(400), f);
    assert!(w.rows()[0].contains("\t6\t-\t0\t0\tF\t"), "{}", w.rows()[0]);
    // Due at 121, and idle for long enough at the time of the next packet.
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(100), f, b"abc");
    w.expire(121, 220);
    assert!(w.rows()[1].contains("\t3\t-\t0\t0\tT\t"), "{}", w.rows()[1]);
}

#[test]
fn a_hole_is_skipped_if_too_much_is_buffered() {
    let mut w = World::new();
    let f = w.start(start());
    let now = Time::from_secs(2);
    w.files.data_at(&mut w.logs, now, f, 0, b"abc");
    // More than the maximum at once is buffered until the next data.
    let much = vec![0; MAX_BUFFERED + 1];
    w.files.data_at(&mut w.logs, now, f, 10, &much);
    w.files.data_at(&mut w.logs, now, f, 20, b"again");
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing)), Some((3 + much.len() as u64, 7)));
    let end = 10 + much.len() as u64;
    w.files.data_at(&mut w.logs, now, f, end + 1, b"x");
    w.files.end(&mut w.logs, now, f);
    let seen = 3 + much.len() + 1;
    assert!(w.rows()[0].contains(&format!("\t{seen}\t-\t8\t7\tF\t")), "{}", w.rows()[0]);
}

#[test]
fn the_event_of_a_gap_shows_its_offset_in_the_part() {
    let names = &["file_gap"];
    let mut w = World::new();
    let (events, lines) = testing::listening(names, |_, json| json.to_owned());
    w.logs.events = events;
    w.files.report_matches(true);
    let f = w.start(start());
    let now = Time::from_secs(2);
    w.files.gap(&mut w.logs, now, f, Some(46_088), 10);
    w.files.gap(&mut w.logs, now, f, None, 5);
    w.logs.events.drain();
    let shown: Vec<_> = lines
        .lock()
        .unwrap()
        .iter()
        .map(|l| l.split(r#""offset":"#).nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(shown, [r#"46088,"len":10}}"#, r#"10,"len":5}}"#]);
}

#[test]
fn scripts_limit_the_bytes_above_a_hole() {
    let names = &["file_gap", "file_reassembly_overflow"];
    let (mut w, heard) = World::listening(names);
    let f = w.start(start());
    let (fuid, now) = (w.files.fuid(f).unwrap(), Time::from_secs(2));
    w.files.apply_command(fuid, FileCommand::Buffer(4));
    w.files.data_at(&mut w.logs, now, f, 0, b"abc");
    w.files.data_at(&mut w.logs, now, f, 10, b"defg");
    w.files.data_at(&mut w.logs, now, f, 14, b"h");
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing, f.overflow)), Some((3, 0, 0)));
    // More than four bytes are buffered.
    w.files.data_at(&mut w.logs, now, f, 20, b"i");
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing, f.overflow)), Some((8, 7, 7)));
    w.logs.events.drain();
    assert_eq!(*heard.lock().unwrap(), ["file_gap 8", "file_reassembly_overflow 8"]);
    // 0 means no limit.
    let f = w.start(start());
    w.files.apply_command(w.files.fuid(f).unwrap(), FileCommand::Buffer(0));
    for at in [1, 2 + MAX_BUFFERED as u64] {
        w.files.data_at(&mut w.logs, now, f, at, &vec![0; MAX_BUFFERED + 1]);
    }
    w.files.data_at(&mut w.logs, now, f, 0, b"x");
    let seen = 3 + 2 * MAX_BUFFERED as u64;
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing, f.overflow)), Some((seen, 0, 0)));
}

#[test]
fn without_reassembly_out_of_order_parts_are_overflow() {
    let mut w = World::new();
    let now = Time::from_secs(2);
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 4, b"efg");
    w.files.apply_command(w.files.fuid(f).unwrap(), FileCommand::Reassemble(false));
    for (at, part) in [(4, "ef"), (0, "abcd"), (4, "ef")] {
        w.files.data_at(&mut w.logs, now, f, at, part.as_bytes());
    }
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.overflow)), Some((6, 2)));
    // The same for all new files.
    w.files.set_reassembly(false);
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 4, b"ef");
    assert_eq!(w.files.get(f).map(|f| (f.buffered, f.overflow)), Some((0, 2)));
    w.files.apply_command(w.files.fuid(f).unwrap(), FileCommand::Reassemble(true));
    w.files.data_at(&mut w.logs, now, f, 4, b"ef");
    assert_eq!(w.files.get(f).map(|f| (f.buffered, f.overflow)), Some((2, 2)));
}

#[test]
fn parts_that_overlap_count_once() {
    let mut w = World::new();
    let f = w.start(FileStart { total_bytes: Some(12), ..start() });
    let now = Time::from_secs(2);
    for (at, part) in [(4, "efgh"), (4, "efgh"), (6, "ghij"), (2, "cdefghijkl"), (0, "abc")] {
        assert!(w.rows().is_empty());
        w.files.data_at(&mut w.logs, now, f, at, part.as_bytes());
    }
    assert!(w.rows()[0].contains("\t12\t12\t0\t0\tF\t"), "{}", w.rows()[0]);
    // In-order data reaches buffered data.
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 4, b"efgh");
    w.files.data(&mut w.logs, now, f, b"abcdef");
    w.files.data_at(&mut w.logs, now, f, 20, b"x");
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[1].contains("\t9\t-\t12\t0\tF\t"), "{}", w.rows()[1]);
    // A reported gap does not move data that is buffered above its start.
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 4, b"efgh");
    w.files.gap(&mut w.logs, now, f, None, 10);
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[2].contains("\t4\t-\t6\t0\tF\t"), "{}", w.rows()[2]);
}

#[test]
fn a_part_beyond_the_maximum_offset_is_weird() {
    let mut w = World::new();
    let f = w.start(FileStart { source: "SMB", ..start() });
    let (fuid, now) = (w.files.fuid(f).unwrap(), Time::from_secs(2));
    let conn = w.files.get(f).map(|f| (f.uid, f.id));
    w.files.data_at(&mut w.logs, now, f, u64::MAX - 3, b"abc");
    assert!(!w.files.has_faults());
    w.files.data_at(&mut w.logs, now, f, u64::MAX, b"append me.");
    let (name, source) = ("file_offset_overflow", Some("SMB"));
    let addl = "offset=ffffffffffffffff len=a".to_owned();
    let kind = FaultKind::Weird { name, addl, source, is_sampled_out: false };
    assert_eq!(w.files.take_faults(), [ContentFault { fuid, conn, kind }]);
    w.files.data_at(&mut w.logs, now, f, u64::MAX - 5, b"12345six");
    assert_eq!(w.files.take_faults().len(), 1);
    w.files.end(&mut w.logs, now, f);
    let missing = u64::MAX - 5;
    let columns = format!("\t5\t-\t{missing}\t0\tF\t");
    assert!(w.rows()[0].contains(&columns), "{}", w.rows()[0]);
}

#[test]
fn connections_with_equal_endpoints_count_once() {
    let mut w = World::new();
    let f = w.start(start());
    let own = w.files.get(f).unwrap().id;
    let uid = |n| UidSource::new(0).connection(n, 0);
    assert!(!w.files.join(&mut w.logs, Time::from_secs(1), f, uid(2), own));
    let other = ConnId { orig_p: 2, ..own };
    assert!(
        w.files.join(&mut w.logs, Time::from_secs(1), f, uid(3), other)
            && !w.files.join(&mut w.logs, Time::from_secs(1), f, uid(4), other)
    );
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    assert_eq!(w.rows().len(), 2);
}

#[test]
fn gaps_of_a_part_have_offsets_in_the_part() {
    let now = Time::from_secs(2);
    // A part from 2,000 on lacks 10 bytes after the first 50, and ends after 40 more bytes.
    let mut w = World::new();
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 2_000, &[0; 50]);
    w.files.gap(&mut w.logs, now, f, Some(50), 10);
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing)), Some((0, 60)));
    w.files.data_at(&mut w.logs, now, f, 2_060, &[0; 40]);
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[0].contains("\t90\t-\t2010\t0\tF\t"), "{}", w.rows()[0]);
    // The offset is within buffered data: delivery continues after the gap, although later data had
    // arrived.
    let f = w.start(start());
    w.files.data_at(&mut w.logs, now, f, 20, &[0; 50]);
    w.files.gap(&mut w.logs, now, f, Some(50), 10);
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing)), Some((50, 20)));
    w.files.data_at(&mut w.logs, now, f, 65, &[0; 10]);
    w.files.data_at(&mut w.logs, now, f, 80, &[0; 20]);
    w.files.end(&mut w.logs, now, f);
    // From 60 to 70, and from 75 to 80.
    assert!(w.rows()[1].contains("\t75\t-\t35\t0\tF\t"), "{}", w.rows()[1]);
    // A repeated part with a gap also sets the position back.
    let f = w.start(start());
    w.files.data(&mut w.logs, now, f, &[0; 100]);
    w.files.data_at(&mut w.logs, now, f, 0, &[0; 30]);
    w.files.gap(&mut w.logs, now, f, Some(30), 10);
    assert_eq!(w.files.get(f).map(|f| (f.seen, f.missing)), Some((100, 0)));
    w.files.data(&mut w.logs, now, f, &[0; 5]);
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[2].contains("\t105\t-\t60\t0\tF\t"), "{}", w.rows()[2]);
    // Data may arrive at any distance above the position, repeatedly.
    let f = w.start(start());
    for at in [1 << 63, (1 << 63) + (1 << 20), (1 << 63) + (2 << 20)] {
        w.files.data_at(&mut w.logs, now, f, at, &vec![0; MAX_BUFFERED + 1]);
        w.files.data_at(&mut w.logs, now, f, at + MAX_BUFFERED as u64 + 1, &[0; 5]);
        w.files.gap(&mut w.logs, now, f, Some(30), 10);
    }
    let seen = 3 * (MAX_BUFFERED as u64 + 6);
    assert_eq!(w.files.get(f).map(|f| f.missing), Some(u64::MAX));
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[3].contains(&format!("\t{seen}\t-\t")), "{}", w.rows()[3]);
    // Before data arrived out of order, the next bytes are the missing ones.
    let f = w.start(start());
    w.files.data(&mut w.logs, now, f, &[0; 100]);
    w.files.gap(&mut w.logs, now, f, Some(30), 10);
    w.files.data_at(&mut w.logs, now, f, 110, &[0; 5]);
    w.files.end(&mut w.logs, now, f);
    assert!(w.rows()[4].contains("\t105\t-\t10\t0\tF\t"), "{}", w.rows()[4]);
}

#[test]
fn a_truncated_ocsp_response_is_weird() {
    let mut w = World::new();
    let f = w.start(FileStart { mime_type: Some("application/ocsp-response"), ..start() });
    w.files.data(&mut w.logs, Time::from_secs(2), f, b"\x30\x03\x0a\x01\x00");
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    assert!(w.files.take_faults().is_empty());
    let f = w.start(FileStart { mime_type: Some("application/ocsp-response"), ..start() });
    let fuid = w.files.fuid(f).unwrap();
    w.files.data(&mut w.logs, Time::from_secs(2), f, b"\x30\x82\x03\xb6\x0a\x01\x00");
    let mut faults = Vec::new();
    w.files.finish(&mut w.logs, Time::from_secs(3), |_, fault| faults.push(fault.clone()));
    let conn = w.files.get(f).map(|f| (f.uid, f.id));
    let name = crate::ocsp::RESPONSE_ERROR_WEIRD;
    let addl = String::new();
    let kind = FaultKind::Weird { name, addl, source: None, is_sampled_out: false };
    assert_eq!(faults, [ContentFault { fuid, conn, kind }]);
}

#[test]
fn a_weird_is_an_event_before_the_end_of_its_file() {
    for (threshold, expected) in
        [(1, &["file_weird", "file_state_remove"][..]), (0, &["file_state_remove"])]
    {
        let (mut w, heard) = World::listening(&["file_weird", "file_state_remove"]);
        let sampling = &mut w.files.sampling().rate;
        (sampling.threshold, sampling.each) = (threshold, 0);
        let f = w.start(FileStart { mime_type: Some("application/ocsp-response"), ..start() });
        w.files.data(&mut w.logs, Time::from_secs(2), f, b"\x30\x82\x03\xb6\x0a\x01\x00");
        w.files.end(&mut w.logs, Time::from_secs(2), f);
        w.logs.events.drain();
        let heard = heard.lock().unwrap();
        let names: Vec<_> = heard.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, expected);
        let left_out = w.files.take_faults().into_iter().map(|fault| match fault.kind {
            FaultKind::Weird { is_sampled_out, .. } => is_sampled_out,
            other => panic!("{other:?}"),
        });
        assert_eq!(left_out.collect::<Vec<_>>(), [threshold == 0]);
    }
}

/// Checks that each analyzer that stores the whole file reports that the file is too long.
#[test]
fn messages_that_are_too_long_are_weirds() {
    let added = ["Files::ANALYZER_OCSP_REQUEST", "Files::ANALYZER_X509"];
    let invalid = [
        crate::ocsp::RESPONSE_ERROR_WEIRD,
        crate::ocsp::REQUEST_ERROR_WEIRD,
        crate::x509::PARSE_ERROR_WEIRD,
    ]
    .map(|name| (name, ""));
    let too_long =
        ["OCSP_REPLY", "OCSP_REQUEST", "X509"].map(|analyzer| ("file_message_too_long", analyzer));
    let cases = [
        (1, invalid),
        (1023, invalid),
        (1024, invalid),
        (1025, too_long),
        (3000, too_long),
        (100_000, too_long),
    ];
    for (pieces, expected) in cases {
        let mut w = World::new();
        let f = w.start(FileStart { mime_type: Some("application/ocsp-response"), ..start() });
        let fuid = w.files.fuid(f).unwrap();
        for analyzer in added.map(str::to_owned) {
            let add = FileCommand::Add { analyzer, path: None, limit: 0, counts_gaps: false };
            w.files.apply_command(fuid, add);
        }
        for _ in 0..pieces {
            w.files.data(&mut w.logs, Time::from_secs(2), f, &[b'0'; 1024]);
        }
        w.files.end(&mut w.logs, Time::from_secs(2), f);
        let faults = w.files.take_faults();
        let weirds: Vec<_> = faults
            .iter()
            .filter_map(|fault| match &fault.kind {
                FaultKind::Weird { name, addl, .. } => Some((*name, addl.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(weirds, expected, "{pieces} KiB");
        assert!(w.rows()[0].contains(&format!("\t{}\t", pieces * 1024)), "{}", w.rows()[0]);
    }
}

#[test]
fn a_program_with_invalid_headers_is_a_violation() {
    let mut w = World::new();
    let f = w.start(start());
    // A DOS header without space for further headers.
    w.files.data(&mut w.logs, Time::from_secs(2), f, &[b"MZ", &[0; 98][..]].concat());
    assert!(w.files.take_faults().is_empty());
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    let faults = w.files.take_faults();
    let is_pe = |k: &FaultKind| matches!(k, FaultKind::Violation { analyzer: "PE", .. });
    assert!(matches!(&faults[..], [f] if f.conn.is_some() && is_pe(&f.kind)), "{faults:?}");
    assert!(w.rows()[0].contains("\tPE\tapplication/x-dosexec\t"), "{}", w.rows()[0]);
    // It is reported once, when it is detected.
    let f = w.start(start());
    w.files.data(&mut w.logs, Time::from_secs(2), f, &[b"MZ", &[0; 4094][..]].concat());
    assert_eq!(w.files.take_faults().len(), 1);
    w.files.data(&mut w.logs, Time::from_secs(2), f, &[0; 100]);
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    assert_eq!(w.files.take_faults(), []);
}

proptest::proptest! {
    #[test]
    fn every_byte_is_seen_or_missing_once(
        parts in proptest::collection::vec((0u64..200, 0usize..40, 0u8..10), 1..40),
    ) {
        let mut w = World::new();
        let (f, now) = (w.start(start()), Time::from_secs(2));
        let mut came = std::collections::BTreeSet::new();
        // Bytes below this offset were skipped: later data for them is ignored.
        let mut reached = 0;
        for (at, len, how) in parts {
            let end = at + len as u64;
            match how {
                0 => {
                    reached = w.files.get(f).unwrap().offset + len as u64;
                    w.files.gap(&mut w.logs, now, f, None, len as u64);
                }
                1 => {
                    let at = w.files.get(f).unwrap().offset;
                    came.extend((at..at + len as u64).filter(|b| *b >= reached));
                    w.files.data(&mut w.logs, now, f, &vec![0; len]);
                }
                _ => {
                    came.extend((at..end).filter(|b| *b >= reached));
                    w.files.data_at(&mut w.logs, now, f, at, &vec![0; len]);
                }
            }
        }
        let whole = came.last().map_or(0, |last| last + 1).max(reached);
        w.files.end(&mut w.logs, now, f);
        let (seen, missing) = (came.len(), whole - came.len() as u64);
        let columns = format!("\t{seen}\t-\t{missing}\t0\tF\t");
        proptest::prop_assert!(w.rows()[0].contains(&columns), "{} {}", columns, w.rows()[0]);
    }
}

/// Writes extracted data to memory, with `.` for each missing byte.
#[derive(Debug, Default)]
struct Memory(Arc<Mutex<String>>);

#[derive(Debug)]
struct Copy {
    written: Arc<Mutex<String>>,
    limit: u64,
    counts_gaps: bool,
    over: bool,
}

impl Copy {
    fn room(&self) -> u64 {
        self.limit.saturating_sub(self.written.lock().unwrap().len() as u64)
    }
}

impl Extract for Memory {
    fn open(&self, _: &crate::Extractable) -> Option<Box<dyn crate::Contents>> {
        None
    }

    fn create(&self, _: &str, limit: u64, counts_gaps: bool) -> Option<Box<dyn crate::Contents>> {
        Some(Box::new(Copy { written: self.0.clone(), limit, counts_gaps, over: false }))
    }
}

impl crate::Contents for Copy {
    fn data(&mut self, data: &[u8]) {
        if !self.over {
            let room = usize::try_from(self.room()).unwrap();
            self.over = data.len() > room;
            let text = String::from_utf8_lossy(&data[..data.len().min(room)]).into_owned();
            self.written.lock().unwrap().push_str(&text);
        }
    }

    fn gap(&mut self, len: u64) {
        self.over |= self.counts_gaps && len > self.room();
        if !self.over {
            self.written.lock().unwrap().push_str(&".".repeat(usize::try_from(len).unwrap()));
        }
    }

    fn exceeded(&self, len: u64, is_gap: bool) -> Option<u64> {
        let counts = !self.over && (self.counts_gaps || !is_gap);
        (counts && len > self.room()).then_some(self.limit)
    }

    fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn finish(&mut self) -> crate::Extracted {
        crate::Extracted { name: String::new(), size: 0, cutoff: self.over }
    }
}

/// A world that extracts the next new file, with this limit.
fn extracting(limit: u64, counts_gaps: bool) -> (World, testing::Lines, Memory, FileId) {
    let names = &["file_sniff", "gannet::file_extraction_limit", "file_gap"];
    let (mut w, heard) = World::listening(names);
    let memory = Memory::default();
    w.files.options.extract = Some(Arc::new(Memory(memory.0.clone())));
    let f = w.start(start());
    let fuid = w.files.fuid(f).unwrap();
    let (analyzer, path) = ("Files::ANALYZER_EXTRACT".to_owned(), Some("a".to_owned()));
    w.files.apply_command(fuid, FileCommand::Add { analyzer, path, limit, counts_gaps });
    (w, heard, memory, f)
}

#[test]
fn the_extraction_limit_is_reported_once_and_truncates() {
    let (mut w, heard, memory, f) = extracting(6, true);
    for piece in ["x".repeat(5_000), "y".repeat(10)] {
        w.files.data(&mut w.logs, Time::from_secs(2), f, piece.as_bytes());
    }
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    assert_eq!(*memory.0.lock().unwrap(), "xxxxxx");
    assert_eq!(*heard.lock().unwrap(), ["file_sniff 0", "gannet::file_extraction_limit 5000"]);
}

#[test]
fn gaps_count_toward_the_extraction_limit_on_request() {
    for (counts_gaps, expected, limits) in [(true, "ab", 1), (false, "ab.....cd", 0)] {
        let (mut w, heard, memory, f) = extracting(9, counts_gaps);
        if counts_gaps {
            w.files.apply_command(w.files.fuid(f).unwrap(), FileCommand::Limit(6));
        }
        let now = Time::from_secs(2);
        w.files.data(&mut w.logs, now, f, b"ab");
        // The gap ends the detection of the type, and is reported after the data before it.
        w.files.gap(&mut w.logs, now, f, None, 5);
        w.files.data(&mut w.logs, now, f, b"cd");
        w.files.end(&mut w.logs, now, f);
        assert_eq!(*memory.0.lock().unwrap(), expected);
        let heard = heard.lock().unwrap();
        let count = heard.iter().filter(|line| line.contains("limit")).count();
        assert_eq!(count, limits, "{heard:?}");
    }
}

#[test]
fn scripts_set_the_timeout_of_files() {
    for (seconds, expected) in [(120, 0), (10, 1)] {
        let mut w = World::new();
        w.files.set_timeout(Interval::from_secs(seconds));
        let f = w.start(start());
        w.files.data(&mut w.logs, Time::from_secs(2), f, b"x");
        let late = Time::from_secs(60);
        w.files.expire(&mut w.logs, late, late, |_, _| ());
        w.files.expire(&mut w.logs, late, late, |_, _| ());
        assert_eq!(w.rows().len(), expected);
    }
}

#[test]
fn scripts_set_the_number_of_bytes_for_detection() {
    for (first, expected) in [(100, "file_sniff 0"), (200, "file_sniff 150")] {
        let (mut w, heard) = World::listening(&["file_sniff"]);
        w.files.set_sniff_bytes(first);
        let f = w.start(start());
        for _ in 0..2 {
            w.files.data(&mut w.logs, Time::from_secs(2), f, &[b'x'; 150]);
        }
        w.files.end(&mut w.logs, Time::from_secs(2), f);
        assert_eq!(*heard.lock().unwrap(), [expected]);
    }
}

#[test]
fn a_file_that_is_no_program_is_a_violation() {
    let (mut w, heard) = World::listening(&["gannet::file_violation", "file_state_remove"]);
    let f = w.start(FileStart { mime_type: Some("application/x-dosexec"), ..start() });
    w.files.data(&mut w.logs, Time::from_secs(2), f, &[&b"MZ"[..], &[b'0'; 61]].concat());
    w.files.data(&mut w.logs, Time::from_secs(2), f, b"more");
    w.files.end(&mut w.logs, Time::from_secs(2), f);
    w.logs.events.drain();
    let heard = heard.lock().unwrap();
    let names: Vec<_> = heard.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["gannet::file_violation", "file_state_remove"]);
}

#[test]
fn the_beginning_is_reported_in_whole_pieces() {
    let shown = |_: &str, json: &str| {
        let (_, beginning) = json.split_once("\"bof_buffer\":\"").unwrap_or_default();
        beginning.chars().take_while(|c| *c == 'x').count().to_string()
    };
    // Pieces of this length, of which those that fill 4,096 bytes are reported.
    for (piece, expected) in [(1400, 4200), (4096, 4096), (5000, 5000)] {
        let mut w = World::new();
        let (events, heard) = testing::listening(&["file_sniff"], shown);
        w.logs.events = events;
        w.files.report_matches(true);
        let f = w.start(start());
        for _ in 0..4 {
            w.files.data(&mut w.logs, Time::from_secs(2), f, &vec![b'x'; piece]);
        }
        w.files.end(&mut w.logs, Time::from_secs(2), f);
        assert_eq!(*heard.lock().unwrap(), [format!("file_sniff {expected}")]);
    }
}

/// Adds the analyzer of a hash to a file.
fn add_hash(w: &mut World, f: FileId, analyzer: &str) {
    let analyzer = analyzer.to_owned();
    let add = FileCommand::Add { analyzer, path: None, limit: 0, counts_gaps: false };
    w.files.apply_command(w.files.fuid(f).unwrap(), add);
}

#[test]
fn data_before_a_file_was_stopped_counts() {
    let (mut w, heard) = World::listening(&["file_hash", "file_state_remove"]);
    let f = w.start(start());
    add_hash(&mut w, f, "Files::ANALYZER_MD5");
    w.files.data(&mut w.logs, Time::from_secs(2), f, &[b'x'; 5_000]);
    w.files.apply_command(w.files.fuid(f).unwrap(), FileCommand::Stop);
    w.files.data(&mut w.logs, Time::from_secs(3), f, &[b'x'; 10]);
    w.files.gap(&mut w.logs, Time::from_secs(3), f, None, 10);
    w.files.end(&mut w.logs, Time::from_secs(4), f);
    w.logs.events.drain();
    assert_eq!(*heard.lock().unwrap(), ["file_hash 5000", "file_state_remove 5000"]);
}

#[test]
fn a_certificate_has_no_row_and_analyzers_can_be_removed() {
    for (removed, expected) in [(None, 2), (Some("Files::ANALYZER_X509"), 1)] {
        let (mut w, heard) = World::listening(&["file_hash", "file_state_remove"]);
        let f = w.start(FileStart {
            mime_type: Some("application/x-x509-user-cert"),
            part: FilePart::Certificate(0),
            ..start()
        });
        add_hash(&mut w, f, "Files::ANALYZER_X509");
        add_hash(&mut w, f, "Files::ANALYZER_SHA1");
        if let Some(analyzer) = removed {
            let remove = FileCommand::Remove(analyzer.to_owned());
            w.files.apply_command(w.files.fuid(f).unwrap(), remove);
        }
        w.files.data(&mut w.logs, Time::from_secs(2), f, b"no certificate");
        w.files.end(&mut w.logs, Time::from_secs(2), f);
        w.logs.events.drain();
        assert_eq!(*heard.lock().unwrap(), ["file_hash 14", "file_state_remove 14"]);
        assert_eq!(w.rows(), [""; 0]);
        // The bytes are no certificate, which only its analyzer reports.
        assert_eq!(w.files.take_faults().len() + 1, expected);
    }
}
