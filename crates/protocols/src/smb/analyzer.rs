use gannet_base::Dir;

use super::core::Core;
use super::cursor::Cursor;
use super::cursor::Read;
use super::v1;
use super::v2;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Frames;
use crate::support::OutOfBound;
use crate::support::RecordFault;

/// Number of valid chunks that confirm the protocol.
const CHUNKS: u32 = 3;
/// Maximum length of a session message, in bytes: its length field has 24 bits, but no more than 8
/// MiB are transferred.
const MAX_MESSAGE: usize = 10 << 20;
/// Length of a session message's header, in bytes (RFC 1002 §4.3.1).
const HEADER_LENGTH: usize = 4;

/// The analyzer of a connection.
pub struct Analyzer {
    core: Box<Core>,
    frames: [Frames; 2],
    chunks: u32,
    /// Bytes are skipped up to the next chunk that begins with a message.
    is_out_of_sync: bool,
    /// Sides that had an incomplete message when synchronization was lost, with the fault to
    /// report. Zeek parses their next chunk as the awaited data, fails, and loses synchronization
    /// again.
    awaited_fault: [Option<OutOfBound>; 2],
    /// Sides with an incomplete message: Zeek starts the next one immediately when one is complete.
    is_incomplete: [bool; 2],
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            core: Box::new(Core::new()),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            chunks: 0,
            is_out_of_sync: true,
            awaited_fault: [None; 2],
            is_incomplete: [false; 2],
        }
    }

    /// Parses a chunk.
    fn read(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        if self.is_out_of_sync && !matches!(data, [_, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..]) {
            return;
        }
        self.is_out_of_sync = false;
        if let Some(e) = self.awaited_fault[from.index()].take() {
            return self.fail(cx, from, e.into());
        }
        self.is_incomplete[from.index()] = true;
        while let Some(frame) = self.frames[from.index()].next(&mut data, message_len) {
            if let Err(e) = session_message(cx, &mut self.core, from, frame) {
                return self.fail(cx, from, e);
            }
        }
        self.chunks = self.chunks.saturating_add(1);
        if self.chunks == CHUNKS {
            cx.confirm(Tag::Smb);
        }
    }

    fn desynchronize(&mut self) {
        for ((frames, awaited_fault), is_incomplete) in
            self.frames.iter_mut().zip(&mut self.awaited_fault).zip(self.is_incomplete)
        {
            if is_incomplete && awaited_fault.is_none() {
                *awaited_fault = Some(dropped_fault(frames));
            }
            frames.reset();
        }
        self.is_out_of_sync = true;
    }

    /// Reports that bytes of a side are not a valid message, and loses synchronization.
    fn fail(&mut self, cx: &mut Context<'_>, from: Dir, fault: RecordFault) {
        cx.violation(Tag::Smb, &fault.to_string(), &[]);
        self.is_incomplete[from.index()] = false;
        self.desynchronize();
    }
}

/// The fault that Zeek reports after it dropped the stored beginning of a message.
fn dropped_fault(frames: &Frames) -> OutOfBound {
    if frames.partial().len() < HEADER_LENGTH {
        OutOfBound::short_of("uint24", "", 3, -1)
    } else {
        OutOfBound::new("SMB_TCP", "message_type", 1, 0)
    }
}

/// Length of the session message that `data` begins with, or the number of bytes needed to
/// determine it.
fn message_len(data: &[u8]) -> usize {
    match *data {
        [_, a, b, c, ..] => HEADER_LENGTH + u32::from_be_bytes([0, a, b, c]) as usize,
        _ => HEADER_LENGTH,
    }
}

/// Parses a session message.
fn session_message(cx: &mut Context<'_>, core: &mut Core, from: Dir, frame: &[u8]) -> Read<()> {
    let Some((&[0, ..], mut rest)) = frame.split_first_chunk::<HEADER_LENGTH>() else {
        return Ok(());
    };
    let length = rest.len();
    while !rest.is_empty() {
        let mut c = Cursor::new("SMB_Protocol_Identifier", rest);
        let protocol = c.bytes("protocol", 4)?;
        let message = c.rest();
        match protocol {
            b"\xffSMB" => return v1::message(cx, core, from, message, length),
            b"\xfeSMB" => match v2::message(cx, core, from, message)? {
                0 => return Ok(()),
                next => rest = message.get(next..).unwrap_or_default(),
            },
            b"\xfdSMB" => return v2::transform(cx, message),
            _ => return Ok(()),
        }
    }
    Ok(())
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.core.shares.tick(cx);
        self.read(cx, from, data);
        self.core.shares.report_last_action(cx);
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.desynchronize();
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.core.suspend();
        self.frames.iter_mut().for_each(Frames::reset);
        (self.chunks, self.is_out_of_sync) = (0, true);
        (self.awaited_fault, self.is_incomplete) = ([None; 2], [false; 2]);
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ntlm::message::tests::wide;
    use crate::support::BINPAC;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    /// A session message that contains other messages.
    fn session(messages: &[Vec<u8>]) -> Vec<u8> {
        let all = messages.concat();
        [&(all.len() as u32).to_be_bytes()[..], &all].concat()
    }

    /// A message of version 2; `next` is the offset of a following message.
    fn v2(command: u16, id: u8, tree: u8, next: u8, body: &[u8]) -> Vec<u8> {
        let mut m = b"\xfeSMB\x40\0\0\0\0\0\0\0".to_vec();
        m.extend_from_slice(&command.to_le_bytes());
        m.extend_from_slice(&[0; 6]);
        m.extend_from_slice(&[next, 0, 0, 0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, tree, 0, 0, 0]);
        m.resize(64, 0);
        m.extend_from_slice(body);
        m.resize(m.len().max(usize::from(next)), 0);
        m
    }

    fn create(name: &str) -> Vec<u8> {
        let name = wide(name);
        let mut b = vec![57, 0, 0, 0];
        b.resize(44, 0);
        b.extend_from_slice(&[120, 0, name.len() as u8, 0]);
        b.resize(56, 0);
        b.extend_from_slice(&name);
        b
    }

    fn created(file: u8, size: u8) -> Vec<u8> {
        let mut b = vec![89, 0, 0, 0, 1, 0, 0, 0];
        for _ in 0..4 {
            // 2019-02-08.
            b.extend_from_slice(&131_940_000_000_000_000u64.to_le_bytes());
        }
        b.resize(48, 0);
        b.push(size);
        b.resize(64, 0);
        b.push(file);
        b.resize(88, 0);
        b
    }

    fn connect(h: &mut Harness, a: &mut Analyzer, share: u8) {
        let path = wide("\\\\srv\\s");
        let request = [&[9, 0, 0, 0, 72, 0, path.len() as u8, 0][..], &path].concat();
        let response = [&[16, 0, share][..], &[0; 13]].concat();
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(3, 1, 0, 0, &request)]));
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(3, 1, 7, 0, &response)]));
    }

    #[test]
    fn a_file_is_read() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 1);
        assert!(!h.confirmed(Tag::Smb));
        for b in session(&[v2(5, 2, 7, 0, &create("a.txt"))]).chunks(10) {
            a.is_out_of_sync = false;
            a.stream(&mut h.cx(), Dir::Orig, b);
        }
        assert!(h.confirmed(Tag::Smb));
        let mut read = vec![49, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        read.resize(48, 0);
        let data = [&[17, 0, 80, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], b"hello"].concat();
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 2, 7, 0, &created(3, 5))]));
        // Two requests in one message.
        let mut close = vec![24, 0, 0, 0, 0, 0, 0, 0, 3];
        close.resize(24, 0);
        let both = [v2(8, 3, 7, 112, &read), v2(6, 4, 7, 0, &close)];
        a.stream(&mut h.cx(), Dir::Orig, &session(&both[..1]));
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(8, 3, 7, 0, &data)]));
        a.stream(&mut h.cx(), Dir::Orig, &session(&both));
        a.finish(&mut h.cx());
        assert!(!h.violated(Tag::Smb));
        let rows = h.rows("smb_mapping");
        assert_eq!((&*rows[0]["path"], &*rows[0]["share_type"]), ("\\\\\\\\srv\\\\s", "DISK"));
        let rows = h.rows("smb_files");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["action"], &*r["name"], &*r["size"]), ("SMB::FILE_OPEN", "a.txt", "5"));
        assert_eq!(r["times.modified"], "1549526400.000000");
        let rows = h.rows("files");
        assert_eq!((&*rows[0]["source"], &*rows[0]["seen_bytes"]), ("SMB", "5"));
        assert_eq!((&*rows[0]["filename"], &*rows[0]["timedout"]), ("a.txt", "F"));
    }

    #[test]
    fn files_are_recent_until_it_is_looked_for_others() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 1);
        // The last one is accessed after more than three minutes, but soon after the last check.
        for (id, (at, name)) in
            (2..).zip([(1, "a.txt"), (186, "a.txt"), (360, "b.txt"), (369, "a.txt")])
        {
            h.now = gannet_base::Time::from_secs(at);
            a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, id, 7, 0, &create(name))]));
            let response = created(3 + u8::from(name == "b.txt"), 5);
            a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, id, 7, 0, &response)]));
        }
        a.finish(&mut h.cx());
        let rows = h.rows("smb_files");
        let names: Vec<_> = rows.iter().map(|r| &*r["name"]).collect();
        assert_eq!(names, ["a.txt", "a.txt", "b.txt"]);
    }

    /// Reads five of the hundred bytes of `a.txt`, which stays open.
    fn read_a_part(h: &mut Harness, a: &mut Analyzer) {
        connect(h, a, 1);
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, 2, 7, 0, &create("a.txt"))]));
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 2, 7, 0, &created(3, 100))]));
        let mut read = vec![49, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        read.resize(48, 0);
        let data = [&[17, 0, 80, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], b"hello"].concat();
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(8, 3, 7, 0, &read)]));
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(8, 3, 7, 0, &data)]));
    }

    /// The logged actions on files, and their names.
    fn actions(h: &Harness) -> Vec<String> {
        let rows = h.rows("smb_files");
        rows.iter().map(|r| format!("{} {}", &r["action"][5..], r["name"])).collect()
    }

    #[test]
    fn what_was_done_last_is_reported_again_when_a_file_is_given_up() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        read_a_part(&mut h, &mut a);
        // A file that does not exist.
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, 4, 7, 0, &create("b.txt"))]));
        let mut error = v2(5, 4, 7, 0, &[9, 0, 0, 0, 0, 0, 0, 0, 0]);
        error[8..12].copy_from_slice(&0xc000_0034u32.to_le_bytes());
        a.stream(&mut h.cx(), Dir::Resp, &session(&[error]));
        a.finish(&mut h.cx());
        assert_eq!(actions(&h), ["FILE_OPEN a.txt"]);
        let now = h.now;
        h.env.finish(now);
        assert_eq!(actions(&h), ["FILE_OPEN a.txt", "FILE_OPEN b.txt"]);
    }

    #[test]
    fn a_recent_report_is_not_repeated() {
        // Timed out immediately, or at the second check.
        for (checks, times) in [(&[(121, 121)][..], 1), (&[(121, 120), (240, 240)], 2)] {
            let mut h = Harness::new(Proto::Tcp, 445);
            let mut a = Analyzer::new(&mut h.cx());
            read_a_part(&mut h, &mut a);
            a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, 4, 7, 0, &create("b.txt"))]));
            a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 4, 7, 0, &created(4, 1))]));
            for (due, packet) in checks {
                let at = gannet_base::Time::from_secs;
                h.env.expire(at(*due), at(*packet));
            }
            let reported = actions(&h).iter().filter(|a| *a == "FILE_OPEN b.txt").count();
            assert_eq!((reported, h.rows("files").len()), (times, 1), "{checks:?}");
        }
    }

    #[test]
    fn what_returns_after_a_violation_knows_the_share() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 1);
        a.stream(&mut h.cx(), Dir::Orig, &session(&[b"\xfeSMB\x40\0".to_vec()]));
        assert!(h.violated(Tag::Smb) && a.suspend(&mut h.cx()));
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, 2, 7, 0, &create("a.txt"))]));
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 2, 7, 0, &created(3, 5))]));
        a.finish(&mut h.cx());
        assert_eq!(h.rows("smb_mapping").len(), 1);
        let rows = h.rows("smb_files");
        assert_eq!((&*rows[0]["name"], &*rows[0]["path"]), ("a.txt", r"\\\\srv\\s"));
    }

    #[test]
    fn rows_are_recent_however_many_there_are() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 1);
        for n in (0..5_000).chain([0]) {
            let request = v2(5, 2, 7, 0, &create(&format!("{n}.txt")));
            a.stream(&mut h.cx(), Dir::Orig, &session(&[request]));
            a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 2, 7, 0, &created(3, 5))]));
            let mut close = vec![24, 0, 0, 0, 0, 0, 0, 0, 3];
            close.resize(24, 0);
            a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(6, 4, 7, 0, &close)]));
        }
        // The first file is not logged again.
        let text = String::from_utf8_lossy(h.env.logs.pending("smb_files")).into_owned();
        assert!(text.lines().next_back().unwrap().contains("\t4999.txt\t"));
    }

    #[test]
    fn a_print_is_closed_with_its_contents() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 3);
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(5, 2, 7, 0, &create("job"))]));
        let mut response = created(3, 0);
        response[8..40].fill(0);
        a.stream(&mut h.cx(), Dir::Resp, &session(&[v2(5, 2, 7, 0, &response)]));
        let mut write = vec![49, 0, 112, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        write.resize(48, 0);
        write.extend_from_slice(b"ink");
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(9, 3, 7, 0, &write)]));
        let mut close = vec![24, 0, 0, 0, 0, 0, 0, 0, 3];
        close.resize(24, 0);
        a.stream(&mut h.cx(), Dir::Orig, &session(&[v2(6, 4, 7, 0, &close)]));
        assert_eq!(actions(&h), ["PRINT_OPEN job", "PRINT_CLOSE job", "PRINT_CLOSE job"]);
    }

    #[test]
    fn a_pipe_is_called() {
        use crate::dce_rpc::message::tests as rpc;
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        connect(&mut h, &mut a, 2);
        let control = |data: &[u8], fixed: usize| {
            let mut b = vec![57, 0, 0, 0, 0x17, 0xc0, 0x11, 0, 9];
            b.resize(24, 0);
            let place = 64 + fixed as u8;
            b.extend_from_slice(&[place, 0, 0, 0]);
            let n = [data.len() as u8, 0, 0, 0];
            if fixed == 56 {
                b.extend_from_slice(&n);
            } else {
                b.extend_from_slice(&[0, 0, 0, 0, place, 0, 0, 0]);
                b.extend_from_slice(&n);
            }
            b.resize(fixed, 0);
            b.extend_from_slice(data);
            b
        };
        let calls = [(rpc::bind(), rpc::bind_ack(b"samr")), (rpc::request(5), rpc::response())];
        for (id, (request, response)) in (5..).zip(calls) {
            let request = v2(11, id, 7, 0, &control(&request, 56));
            let response = v2(11, id, 7, 0, &control(&response, 48));
            a.stream(&mut h.cx(), Dir::Orig, &session(&[request]));
            a.stream(&mut h.cx(), Dir::Resp, &session(&[response]));
        }
        assert!(h.confirmed(Tag::DceRpc) && !h.violated(Tag::Smb));
        let rows = h.rows("dce_rpc");
        assert_eq!((&*rows[0]["named_pipe"], &*rows[0]["endpoint"]), ("samr", "samr"));
    }

    #[test]
    fn a_place_that_is_lost() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        let whole = session(&[v2(13, 1, 0, 0, &[4, 0, 0, 0])]);
        a.stream(&mut h.cx(), Dir::Orig, b"no message");
        assert_eq!(a.chunks, 0);
        a.stream(&mut h.cx(), Dir::Orig, &whole);
        a.stream(&mut h.cx(), Dir::Orig, &whole[..40]);
        assert_eq!(a.chunks, 2);
        a.gap(&mut h.cx(), Dir::Orig, 10);
        a.stream(&mut h.cx(), Dir::Orig, &whole[50..]);
        a.stream(&mut h.cx(), Dir::Resp, &whole);
        assert_eq!(a.chunks, 3);
        a.stream(&mut h.cx(), Dir::Orig, &whole);
        assert!(h.violated(Tag::Smb));
        a.stream(&mut h.cx(), Dir::Orig, &whole);
        assert_eq!(a.chunks, 4);
    }

    #[test]
    fn what_comes_after_a_gap_is_not_what_was_waited_for() {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        let whole = session(&[v2(13, 1, 0, 0, &[4, 0, 0, 0])]);
        for from in [Dir::Orig, Dir::Resp] {
            a.stream(&mut h.cx(), from, &whole);
        }
        a.gap(&mut h.cx(), Dir::Orig, 10);
        for from in [Dir::Orig, Dir::Resp, Dir::Orig, Dir::Resp] {
            a.stream(&mut h.cx(), from, &whole);
        }
        assert_eq!(a.chunks, 4);
        a.stream(&mut h.cx(), Dir::Orig, &whole[..4]);
        a.gap(&mut h.cx(), Dir::Orig, 10);
        a.stream(&mut h.cx(), Dir::Orig, &whole);
        let why: Vec<_> = h.violations().into_iter().map(|(_, why)| why).collect();
        let begins = |n: usize, end: &str| why[n] == format!("{BINPAC}out_of_bound: {end}");
        assert!(begins(0, "uint24: 3 > -1") && begins(1, "uint24: 3 > -1"));
        assert!(begins(2, "SMB_TCP:message_type: 1 > 0") && why.len() == 3);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            command in any::<u8>(),
            is_new in any::<bool>(),
            is_orig in any::<bool>(),
            data in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut h = Harness::new(Proto::Tcp, 445);
            let mut a = Analyzer::new(&mut h.cx());
            let m = if is_new {
                v2(u16::from(command % 20), 1, 7, 0, &data)
            } else {
                let mut m = b"\xffSMB".to_vec();
                m.push(command);
                m.resize(32, 0);
                m.extend_from_slice(&data);
                m
            };
            let from = if is_orig { Dir::Orig } else { Dir::Resp };
            a.stream(&mut h.cx(), from, &session(&[m]));
            a.stream(&mut h.cx(), from, &data);
            a.finish(&mut h.cx());
        }
    }
}
