use gannet_base::Dir;

use super::buffer;
use super::buffer::Chunk;
use super::buffer::ChunkBuffer;
use super::rules;
use super::sides::Seen;
use super::sides::Sides;
use crate::Analyze;
use crate::Context;
use crate::Piece;
use crate::Replay;
use crate::Tag;
use crate::activation::DetectionLimits;
use crate::activation::MAX_BYTES;
use crate::activation::MAX_CHUNKS;

/// Value of [`Detector::chunks`] once detection has ended.
const DONE: u8 = u8::MAX;

/// Detects the protocols of one connection from the first data of both sides.
#[derive(Default)]
pub struct Detector {
    /// The chunks so far.
    buffer: Option<Box<ChunkBuffer>>,
    /// Bit set of the rules that have matched, by index in the list: each starts its analyzer once.
    matched: u32,
    /// Number of chunks so far, or [`DONE`].
    chunks: u8,
    /// Results of searches in the data of both sides; empty until both sides have sent data.
    seen: Seen,
}

const _: () = assert!(rules::TCP.len() <= 32 && rules::UDP.len() <= FIRST_SILENT);

/// Index of the first bit of [`SILENT_RULES`] in [`Detector::matched`].
const FIRST_SILENT: usize = 32 - SILENT_RULES.len();

/// Tests of datagrams for which Zeek starts a stream analyzer, which ignores them: DCE/RPC and MQTT. Such an analyzer only
/// takes an analyzer ID.
const SILENT_RULES: [fn(&[u8]) -> bool; 2] = [
    |d| matches!(d, [5, 0 | 1, 0..=0x13, ..]),
    |d| (4..=7).any(|n| d.get(n..n + 2) == Some(b"MQ")),
];
const _: () = assert!(size_of::<Detector>() <= 16 && MAX_CHUNKS + 1 < DONE);

// The length of a chunk fits in an entry of `ChunkBuffer`.
const _: () = assert!(MAX_BYTES <= buffer::MAX_CHUNK);

impl Detector {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }

    /// Whether detection has ended.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.chunks == DONE
    }

    fn start(&self, cx: &mut Context<'_>, tag: Tag, from: Dir, data: &[u8]) {
        if !tag.has_analyzer() || !cx.env.activation.may_detect(tag) {
            return;
        }
        let last = (from, Piece::Bytes(data.to_vec()));
        let pieces = match &self.buffer {
            Some(buffer) => buffer.pieces(last),
            None => vec![last],
        };
        cx.start(tag, Replay { pieces, is_inner: false });
    }

    /// Counts a chunk. Returns whether it reaches a limit, so that it is the last one.
    fn count_chunk(&mut self, limits: DetectionLimits, data: &[u8]) -> bool {
        let bytes = self.buffer.as_ref().map_or(0, |buffer| buffer.len()) + data.len();
        self.chunks += 1;
        limits.exceeded_by_bytes(bytes) || limits.exceeded_by_chunks(self.chunks)
    }

    /// Ends detection.
    fn stop(&mut self) {
        self.chunks = DONE;
        self.buffer = None;
    }

    /// Whether a side sent a chunk that `test` accepts.
    fn has_chunk(&self, from: Dir, test: fn(&[u8]) -> bool) -> bool {
        let mut chunks = self.buffer.iter().flat_map(|buffer| buffer.chunks());
        chunks.any(|(dir, c)| dir == from && matches!(c, Chunk::Bytes(c) if test(c)))
    }

    /// Returns the bit set of the rules that the data matches for the first time.
    fn new_matches(&self, sides: Sides<'_>) -> u32 {
        let (mut matched, mut candidates) = (0_u32, rules::candidates(sides) & !self.matched);
        while candidates != 0 {
            let i = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if rules::TCP.get(i).is_some_and(|(_, rule)| (rule.test)(sides)) {
                matched |= 1 << i;
            }
        }
        matched
    }

    /// Marks a rule as matched. Returns whether this is its first match.
    fn mark_matched(&mut self, rule: usize) -> bool {
        let bit = 1 << rule;
        let first = self.matched & bit == 0;
        self.matched |= bit;
        first
    }
}

impl Analyze for Detector {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.is_done() {
            return;
        }
        let is_last = self.count_chunk(cx.env.activation.detection, data);
        let mut buffer = self.buffer.take();
        let before = buffer.as_ref().map_or(0, |buffer| buffer.side(from).len());
        // The last chunk need not be stored, unless it continues others.
        let is_alone = is_last && before == 0;
        if !is_alone {
            buffer.get_or_insert_default().append(from, data);
        }
        let side = |dir: Dir| match &buffer {
            _ if is_alone && dir == from => data,
            Some(buffer) => buffer.side(dir),
            None => &[],
        };
        // A stream inside another protocol has no packet headers, on which signatures could fail.
        let is_inner = cx.env.nesting > 0;
        let matched = |dir: Dir| {
            if is_inner || !cx.conn.is_side_unmatched(dir) { side(dir) } else { &[] }
        };
        let (orig, resp) = (matched(Dir::Orig), matched(Dir::Resp));
        // All TCP rules need data of both sides: without it, no search is needed.
        let (own, other) = if from.is_orig() { (orig, resp) } else { (resp, orig) };
        if !own.is_empty() && !other.is_empty() {
            if before == 0 {
                self.seen.update(from.other(), other, 0);
            }
            self.seen.update(from, own, before);
        }
        let mut new_matches = self.new_matches(Sides { orig, resp, seen: self.seen });
        self.buffer = buffer;
        self.matched |= new_matches;
        while new_matches != 0 {
            if let Some((tag, _)) = rules::TCP.get(new_matches.trailing_zeros() as usize) {
                self.start(cx, *tag, from, data);
            }
            new_matches &= new_matches - 1;
        }
        match &mut self.buffer {
            Some(buffer) if !is_last => buffer.close(from, data.len()),
            _ => self.stop(),
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if !self.is_done() && self.chunks > 0 {
            self.chunks += 1;
            if cx.env.activation.detection.exceeded_by_chunks(self.chunks) {
                return self.stop();
            }
            self.buffer.get_or_insert_default().gap(from, len);
        }
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if self.is_done() || data.is_empty() {
            return;
        }
        for (i, (tag, rule)) in rules::UDP.iter().enumerate() {
            if (rule.test)(data)
                && rule.request.is_none_or(|request| self.has_chunk(from.other(), request))
                && self.mark_matched(i)
            {
                self.start(cx, *tag, from, data);
            }
        }
        if cx.env.logs.events.any() {
            for (i, test) in SILENT_RULES.iter().enumerate() {
                if test(data) && self.mark_matched(FIRST_SILENT + i) {
                    cx.skip_aids(1);
                }
            }
        }
        if self.count_chunk(cx.env.activation.detection, data) {
            return self.stop();
        }
        let buffer = self.buffer.get_or_insert_default();
        buffer.append(from, data);
        buffer.close(from, data.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::DEFAULT_BYTES;
    use crate::activation::DEFAULT_CHUNKS;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn run(chunks: &[(Dir, &[u8])]) -> Vec<(Tag, Replay)> {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut d = Detector::new(&mut h.cx());
        for (dir, data) in chunks {
            d.stream(&mut h.cx(), *dir, data);
        }
        h.starts
    }

    #[test]
    fn replays_all_of_both_sides() {
        let chunks: &[(Dir, &[u8])] =
            &[(Dir::Resp, b"SSH-2"), (Dir::Orig, b"SSH-2.0-a\r\n"), (Dir::Resp, b".0-b\r\n")];
        let starts = run(chunks);
        assert_eq!(starts.len(), 1);
        assert_eq!(starts[0].0, Tag::Ssh);
        let replay = starts[0].1.pieces.clone();
        let bytes = |(d, c): &(Dir, &[u8])| (*d, Piece::Bytes(c.to_vec()));
        assert_eq!(replay, chunks.iter().map(bytes).collect::<Vec<_>>());
    }

    #[test]
    fn replays_gaps() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut d = Detector::new(&mut h.cx());
        // A gap before the first bytes is not reported.
        d.gap(&mut h.cx(), Dir::Resp, 7);
        d.stream(&mut h.cx(), Dir::Orig, b"SSH-2.0-a\r\n");
        d.gap(&mut h.cx(), Dir::Orig, 1 << 20);
        d.stream(&mut h.cx(), Dir::Resp, b"SSH-2.0-b\r\n");
        let sides: Vec<_> = h.starts[0].1.pieces.iter().map(|(d, _)| *d).collect();
        assert_eq!(sides, [Dir::Orig, Dir::Orig, Dir::Resp]);
        assert_eq!(h.starts[0].1.pieces[1].1, Piece::Gap(1 << 20));
    }

    #[test]
    fn each_rule_matches_once() {
        let get: (Dir, &[u8]) = (Dir::Orig, b"GET / HTTP/1.1\r\n");
        let tags = |chunks: &[_]| run(chunks).iter().map(|s| s.0).collect::<Vec<_>>();
        assert_eq!(tags(&[get, get]), [Tag::Http]);
        assert_eq!(tags(&[get, (Dir::Resp, b"HTTP/1.1 200")]), [Tag::Http, Tag::Http]);
    }

    #[test]
    fn gives_up_after_a_kilobyte_or_a_hundred_chunks() {
        let long = [b' '; DEFAULT_BYTES + 1];
        assert!(run(&[(Dir::Orig, &long), (Dir::Resp, b"HTTP/1.1 200")]).is_empty());
        assert_eq!(run(&[(Dir::Orig, &long[1..]), (Dir::Resp, b"HTTP/1.1 200")]).len(), 1);
        let mut many: Vec<(Dir, &[u8])> = vec![(Dir::Orig, b"x"); usize::from(DEFAULT_CHUNKS)];
        many.push((Dir::Resp, b"HTTP/1.1 200"));
        assert_eq!(run(&many).len(), 1);
        many.insert(0, (Dir::Orig, b"x"));
        assert!(run(&many).is_empty());
        // The chunk that exceeds the limit is examined as a whole.
        let mut hello = b"HTTP/1.1 200".to_vec();
        hello.resize(5000, b'x');
        assert_eq!(run(&[(Dir::Resp, &hello)]).len(), 1);
    }

    #[test]
    fn script_options_limit_the_examined_data() {
        let get: (Dir, &[u8]) = (Dir::Orig, b"GET / HTTP/1.1\r\n");
        let answer: (Dir, &[u8]) = (Dir::Resp, b"HTTP/1.1 200");
        let found = |name, value, chunks: &[(Dir, &[u8])]| {
            let mut h = Harness::new(Proto::Tcp, 9999);
            h.env.apply_command(h.now, gannet_event::Command::Setting { name, value });
            let mut d = Detector::new(&mut h.cx());
            for (dir, data) in chunks {
                d.stream(&mut h.cx(), *dir, data);
            }
            h.starts.len()
        };
        // The first chunk is always examined.
        let bytes = |most| found("dpd_buffer_size", most, &[get, answer]);
        assert_eq!([0, 15, 16, 1 << 40].map(bytes), [1, 1, 2, 2]);
        let chunks = |most| found("dpd_max_packets", most, &[(Dir::Resp, b"x"), get, answer]);
        assert_eq!([0, 1, 1 << 40].map(chunks), [0, 1, 1]);
    }

    #[test]
    fn datagrams_are_matched_one_by_one() {
        let mut h = Harness::new(Proto::Udp, 9999);
        let mut d = Detector::new(&mut h.cx());
        d.datagram(&mut h.cx(), Dir::Orig, b"\x05", 1);
        d.datagram(&mut h.cx(), Dir::Orig, b"\x64", 1);
        assert!(h.starts.is_empty());
        let mut dhcp = vec![0; 240];
        dhcp[236..].copy_from_slice(b"\x63\x82\x53\x63");
        d.datagram(&mut h.cx(), Dir::Resp, &dhcp, 240);
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Dhcp);
        assert_eq!(h.starts[0].1.pieces.len(), 3);
    }

    #[test]
    fn datagrams_that_start_analyzers_of_streams() {
        let mut h = Harness::new(Proto::Udp, 9999);
        h.listen("analyzer_");
        let mut d = Detector::new(&mut h.cx());
        // A datagram that looks like a DCE/RPC packet starts an analyzer in Zeek, which takes an ID but raises no events.
        for from in [Dir::Orig, Dir::Resp] {
            d.datagram(&mut h.cx(), from, b"\x05\x01\x0aecho", 7);
        }
        assert!(h.starts.is_empty());
        assert_eq!(h.env.logs.events.number_analyzers(1), 2);
    }

    #[test]
    fn datagrams_that_answer_others() {
        let mut h = Harness::new(Proto::Udp, 9999);
        let mut d = Detector::new(&mut h.cx());
        let login = b"\x30\x0c\x02\x01\x01\x60\x07";
        d.datagram(&mut h.cx(), Dir::Orig, login, 7);
        d.datagram(&mut h.cx(), Dir::Orig, b"\x30", 1);
        assert!(h.starts.is_empty());
        d.datagram(&mut h.cx(), Dir::Resp, b"\x30", 1);
        d.datagram(&mut h.cx(), Dir::Resp, b"\x30", 1);
        let tags: Vec<_> = h.starts.iter().map(|s| s.0).collect();
        assert_eq!(tags, [Tag::LdapUdp]);
    }
}
