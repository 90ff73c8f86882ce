use gannet_base::Dir;

use super::kept;
use super::kept::Chunk;
use super::kept::KeptChunks;
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

/// In place of a number of chunks: nothing more is looked at.
const DONE: u8 = u8::MAX;

/// Detects the protocols of one connection from the first data of both sides.
#[derive(Default)]
pub struct Detector {
    /// Chunks so far.
    kept: Option<Box<KeptChunks>>,
    /// Rules that were met, by their place in the list: each counts once.
    met: u32,
    /// How many there were, or [`DONE`].
    chunks: u8,
    /// Facts found in the data of both sides, once both sent some.
    seen: Seen,
}

const _: () = assert!(rules::TCP.len() <= 32 && rules::UDP.len() <= SILENT);

/// Where the bits of [`SILENT_RULES`] are among those of rules for datagrams.
const SILENT: usize = 32 - SILENT_RULES.len();

/// Datagrams for which Zeek starts analyzers of streams, which read nothing of them: DCE/RPC and MQTT.
const SILENT_RULES: [fn(&[u8]) -> bool; 2] = [
    |d| matches!(d, [5, 0 | 1, 0..=0x13, ..]),
    |d| (4..=7).any(|n| d.get(n..n + 2) == Some(b"MQ")),
];
const _: () = assert!(size_of::<Detector>() <= 16 && MAX_CHUNKS + 1 < DONE);

// Stored lengths fit.
const _: () = assert!(MAX_BYTES <= kept::MAX_CHUNK);

impl Detector {
    /// Has seen nothing yet.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }

    /// Whether it looks at nothing more.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.chunks == DONE
    }

    fn start(&self, cx: &mut Context<'_>, tag: Tag, from: Dir, data: &[u8]) {
        if !tag.has_analyzer() || !cx.env.activation.may_detect(tag) {
            return;
        }
        let last = (from, Piece::Bytes(data.to_vec()));
        let pieces = match &self.kept {
            Some(kept) => kept.pieces(last),
            None => vec![last],
        };
        cx.start(tag, Replay { pieces, is_inner: false });
    }

    /// A chunk more: whether it is the last one.
    fn is_last(&mut self, limits: DetectionLimits, data: &[u8]) -> bool {
        let bytes = self.kept.as_ref().map_or(0, |kept| kept.len()) + data.len();
        self.chunks += 1;
        limits.exceeded_by_bytes(bytes) || limits.exceeded_by_chunks(self.chunks)
    }

    /// There is enough.
    fn stop(&mut self) {
        self.chunks = DONE;
        self.kept = None;
    }

    /// Whether a side sent such a chunk.
    fn has_chunk(&self, of: Dir, is: fn(&[u8]) -> bool) -> bool {
        let mut chunks = self.kept.iter().flat_map(|kept| kept.chunks());
        chunks.any(|(dir, c)| dir == of && matches!(c, Chunk::Bytes(c) if is(c)))
    }

    /// The rules that the data matches for the first time, a bit each.
    fn meet(&self, sides: Sides<'_>) -> u32 {
        let (mut met, mut left) = (0_u32, rules::left(sides) & !self.met);
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            left &= left - 1;
            if rules::TCP.get(i).is_some_and(|(_, rule)| (rule.test)(sides)) {
                met |= 1 << i;
            }
        }
        met
    }

    /// Whether a rule is met for the first time.
    fn first(&mut self, rule: usize) -> bool {
        let bit = 1 << rule;
        let first = self.met & bit == 0;
        self.met |= bit;
        first
    }
}

impl Analyze for Detector {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.is_done() {
            return;
        }
        let is_last = self.is_last(cx.env.activation.detection, data);
        let mut kept = self.kept.take();
        let before = kept.as_ref().map_or(0, |kept| kept.side(from).len());
        // The last chunk need not be stored, unless it continues others.
        let is_alone = is_last && before == 0;
        if !is_alone {
            kept.get_or_insert_default().append(from, data);
        }
        let side = |dir: Dir| match &kept {
            _ if is_alone && dir == from => data,
            Some(kept) => kept.side(dir),
            None => &[],
        };
        // What another protocol carries has no headers to test.
        let is_inner = cx.env.nesting > 0;
        let matched = |dir: Dir| {
            if is_inner || !cx.conn.is_side_unmatched(dir) { side(dir) } else { &[] }
        };
        let (orig, resp) = (matched(Dir::Orig), matched(Dir::Resp));
        // All rules need data of both sides here: without it there is nothing to check.
        let (own, other) = if from.is_orig() { (orig, resp) } else { (resp, orig) };
        if !own.is_empty() && !other.is_empty() {
            if before == 0 {
                self.seen.look(from.other(), other, 0);
            }
            self.seen.look(from, own, before);
        }
        let mut met = self.meet(Sides { orig, resp, seen: self.seen });
        self.kept = kept;
        self.met |= met;
        while met != 0 {
            if let Some((tag, _)) = rules::TCP.get(met.trailing_zeros() as usize) {
                self.start(cx, *tag, from, data);
            }
            met &= met - 1;
        }
        match &mut self.kept {
            Some(kept) if !is_last => kept.close(from, data.len()),
            _ => self.stop(),
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        if !self.is_done() && self.chunks > 0 {
            self.chunks += 1;
            if cx.env.activation.detection.exceeded_by_chunks(self.chunks) {
                return self.stop();
            }
            self.kept.get_or_insert_default().gap(from, len);
        }
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        if self.is_done() || data.is_empty() {
            return;
        }
        for (i, (tag, rule)) in rules::UDP.iter().enumerate() {
            if (rule.test)(data)
                && rule.asked.is_none_or(|asked| self.has_chunk(from.other(), asked))
                && self.first(i)
            {
                self.start(cx, *tag, from, data);
            }
        }
        if cx.env.logs.events.any() {
            for (i, test) in SILENT_RULES.iter().enumerate() {
                if test(data) && self.first(SILENT + i) {
                    cx.skip_aids(1);
                }
            }
        }
        if self.is_last(cx.env.activation.detection, data) {
            return self.stop();
        }
        let kept = self.kept.get_or_insert_default();
        kept.append(from, data);
        kept.close(from, data.len());
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
    fn each_beginning_counts_once() {
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
        // The chunk that goes beyond is looked at as a whole.
        let mut hello = b"HTTP/1.1 200".to_vec();
        hello.resize(5000, b'x');
        assert_eq!(run(&[(Dir::Resp, &hello)]).len(), 1);
    }

    #[test]
    fn scripts_say_how_much_is_looked_at() {
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
        // The first chunk is looked at in any case.
        let bytes = |most| found("dpd_buffer_size", most, &[get, answer]);
        assert_eq!([0, 15, 16, 1 << 40].map(bytes), [1, 1, 2, 2]);
        let chunks = |most| found("dpd_max_packets", most, &[(Dir::Resp, b"x"), get, answer]);
        assert_eq!([0, 1, 1 << 40].map(chunks), [0, 1, 1]);
    }

    #[test]
    fn datagrams_stand_alone() {
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
        // What begins as a packet of DCE/RPC starts an analyzer in Zeek that has a number, but no events.
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
