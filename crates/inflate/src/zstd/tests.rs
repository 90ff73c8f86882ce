//! Hand-written frames, and libzstd as an oracle for all others.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::io::Write;

use super::BLOCK;
use super::MAX_WINDOW;
use super::Unzstd;
use super::frame::Scanner;
use super::job::Content;
use super::job::Job;
use super::job::Literals;

mod properties;

/// Parameters for reading a frame.
#[derive(Clone, Copy, Debug)]
struct ReadMode {
    /// Bytes that the input returns at a time; `None` if the whole input is in memory.
    pieces: Option<usize>,
    /// Bytes requested at a time.
    room: usize,
    threads: usize,
}

const WHOLE: ReadMode = ReadMode { pieces: None, room: 1 << 17, threads: 1 };

/// The whole output, and the final result.
fn drain(mut from: Unzstd<impl BufRead>, room: usize) -> (Vec<u8>, io::Result<()>) {
    let mut all = Vec::new();
    let mut piece = vec![0; room];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return (all, Ok(())),
            Ok(n) => all.extend_from_slice(&piece[..n]),
            Err(e) => {
                assert!(!matches!(from.read(&mut piece), Ok(1..)), "nothing behind an error");
                return (all, Err(e));
            }
        }
    }
}

fn unzstd(packed: &[u8], how: ReadMode) -> (Vec<u8>, io::Result<()>) {
    let input = Cursor::new(packed.to_vec());
    match how.pieces {
        Some(pieces) => {
            let mut unzstd = Unzstd::new(BufReader::with_capacity(pieces, input));
            unzstd.set_threads(how.threads);
            unzstd.start_at(0);
            drain(unzstd, how.room)
        }
        None => {
            let mut unzstd = Unzstd::in_memory(input);
            unzstd.set_threads(how.threads);
            unzstd.start_at(0);
            drain(unzstd, how.room)
        }
    }
}

fn whole(packed: &[u8]) -> (Vec<u8>, io::Result<()>) {
    unzstd(packed, WHOLE)
}

/// The error of damaged data, and the output before it.
fn error_text(packed: &[u8]) -> (Vec<u8>, String) {
    let (all, end) = whole(packed);
    (all, end.unwrap_err().to_string())
}

/// The result of libzstd.
fn oracle(packed: &[u8]) -> (Vec<u8>, io::Result<()>) {
    // With more input at a time, libzstd may lose blocks before the damaged one.
    match zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(1, packed)) {
        Ok(mut decoder) => {
            let mut all = Vec::new();
            let end = decoder.read_to_end(&mut all);
            (all, end.map(|_| ()))
        }
        Err(e) => (Vec::new(), Err(e)),
    }
}

/// Options with which libzstd compresses in a test.
#[derive(Clone, Copy, Debug)]
struct Pack {
    level: i32,
    checksum: bool,
    sized: bool,
    window: u32,
    long: bool,
    /// Bytes between flushes, which end a block.
    flush: usize,
}

const PLAIN: Pack =
    Pack { level: 3, checksum: true, sized: false, window: 0, long: false, flush: usize::MAX };

fn packed(bytes: &[u8], pack: Pack) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), pack.level).unwrap();
    encoder.include_checksum(pack.checksum).unwrap();
    if pack.sized {
        encoder.set_pledged_src_size(Some(bytes.len() as u64)).unwrap();
    }
    if pack.window > 0 {
        encoder.window_log(pack.window).unwrap();
    }
    encoder.long_distance_matching(pack.long).unwrap();
    for piece in bytes.chunks(pack.flush.max(1)) {
        encoder.write_all(piece).unwrap();
        if pack.flush < bytes.len() {
            encoder.flush().unwrap();
        }
    }
    encoder.finish().unwrap()
}

struct Noise(u32);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

/// Text of words from a growing list, with some letters more likely than others: literals and
/// matches of all kinds.
fn text(n: usize, letters: u32, seed: u32) -> Vec<u8> {
    let mut noise = Noise(seed);
    let mut all: Vec<u8> = Vec::with_capacity(n + 300);
    while all.len() < n {
        let kind = noise.next() % 16;
        if kind < 6 || all.len() < 8 {
            for _ in 0..noise.next() % 24 {
                let (a, b) = (noise.next() % letters, noise.next() % letters);
                all.push((a.min(b)) as u8);
            }
        } else {
            let far = if kind == 15 { all.len() } else { all.len().min(3000) };
            let offset = 1 + noise.next() as usize * 31 % far;
            let long = if kind < 14 { 40 } else { 700 };
            for _ in 0..3 + noise.next() % long {
                all.push(all[all.len() - offset]);
            }
        }
    }
    all.truncate(n);
    all
}

/// A frame without a checksum, with a window of 1 KiB and a stated size.
fn frame(size: u32, blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![0x28, 0xb5, 0x2f, 0xfd, 0x80, 0];
    all.extend(size.to_le_bytes());
    for (i, block) in blocks.iter().enumerate() {
        let mut block = block.clone();
        block[0] |= u8::from(i + 1 == blocks.len());
        all.extend(block);
    }
    all
}

fn block(kind: u32, size: usize, content: &[u8]) -> Vec<u8> {
    let head = kind << 1 | (size as u32) << 3;
    [&head.to_le_bytes()[..3], content].concat()
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    block(0, bytes.len(), bytes)
}

fn coded(content: &[u8]) -> Vec<u8> {
    block(2, content.len(), content)
}

#[test]
fn blocks_of_all_kinds() {
    let check = |packed: &[u8], expected: &[u8]| {
        let (theirs, end) = oracle(packed);
        end.unwrap();
        assert_eq!(theirs, expected);
        let (ours, end) = whole(packed);
        end.unwrap();
        assert_eq!(ours, expected);
    };
    check(&frame(0, &[raw(b"")]), b"");
    check(&frame(5, &[raw(b"hello")]), b"hello");
    check(&frame(8, &[raw(b"he"), block(1, 3, b"l"), raw(b"lo!")]), b"hellllo!");
    // Raw literals with lengths of 5, 12 and 20 bits, and no sequences.
    check(&frame(3, &[coded(b"\x18abc\0")]), b"abc");
    check(&frame(3, &[coded(b"\x34\0abc\0")]), b"abc");
    check(&frame(3, &[coded(b"\x3c\0\0abc\0")]), b"abc");
    // Repeated literals.
    check(&frame(200, &[coded(b"\x85\x0cz\0")]), &[b'z'; 200]);
    // One sequence, with tables of one symbol each: two literals, a match of 7 at distance 2 with
    // two extra bits, and one remaining literal.
    let sequences = b"\x01\x54\x02\x02\x04\x05";
    check(&frame(10, &[coded(&[b"\x18abc", &sequences[..]].concat())]), b"ababababac");
    // A second block with repeated tables and new literals.
    let again = b"\x01\xfc\x05";
    let two =
        [coded(&[b"\x18abc", &sequences[..]].concat()), coded(&[b"\x10xy", &again[..]].concat())];
    check(&frame(19, &two), b"ababababacxyxyxyxyx");
}

/// A frame of words whose block describes all of its tables.
const WORDS: &[u8] =
    b"\x28\xb5\x2f\xfd\x64\xcc\x03\x95\x0d\x00\x16\xd8\x30\x0b\xe0\x6d\xf2\xa0\x1c\xb8\xb7\
      \x11\x18\xac\x2c\x2c\x00\x2c\x00\x2d\x00\xbf\x5d\xd0\x9a\x8f\xde\x34\x04\x1e\xc9\x78\
      \x01\x65\xea\x63\x93\xd0\x2d\x41\x14\x5b\x2f\xe5\x3d\x3a\xf0\xd4\xbb\xfa\x79\x2b\xd1\
      \x8e\x51\x90\x39\x65\xf4\x71\xd6\xdb\xa4\x22\x14\x35\x76\x3e\xe9\x9a\x3a\x8e\x61\x0c\
      \x6c\x58\x4a\x93\x7f\x37\x7d\xf9\x54\x53\xef\x5d\xa0\x89\x70\xbc\xf7\x51\xa3\x1d\xa7\
      \x80\xde\x1f\xe0\x9d\xff\x72\x0d\xbb\x61\xc5\xf7\xb1\x01\x4f\x5f\x7a\xb0\x02\x74\x09\
      \xf7\x82\xc9\xa9\x17\xda\xb1\x35\x35\xfd\xbc\x80\x15\x78\x41\xc6\x8d\x41\x23\x9f\x6b\
      \x85\xe0\xb8\x02\xc5\xdf\xa4\x30\xd9\x7c\x38\xd0\x45\x39\x9d\x6c\x09\x22\x84\xf2\x1a\
      \xc1\x70\xe7\x1e\x46\x13\x80\xc9\x7c\xdc\x15\x67\x4b\x47\xbe\x06\xf2\x51\x12\x9b\x08\
      \x09\xe0\x00\x1d\x56\x1a\xad\x61\xe4\x1a\x6f\x8b\xd6\x18\xbe\x92\xea\x23\x3a\x76\xa8\
      \x61\xca\x39\x09\x66\x24\x05\x45\x29\xb4\x19\x20\x42\x62\x10\x74\x7a\x10\x10\x02\x8e\
      \xce\xc6\x01\x1f\x7f\x26\x2e\x3c\x79\x73\xed\xc8\x12\x2a\xfd\x12\xaa\x08\x76\x66\xf9\
      \xce\xbb\xed\x3e\x2d\x80\x88\x2a\x33\x83\x96\xb1\x7c\x4e\x04\x5d\xbb\x13\x31\x6b\x3f\
      \x45\x06\x76\x1c\xa2\x74\x27\xf6\xb1\x62\x2e\xac\x73\x77\x94\x28\x12\x51\xf9\x4e\xa5\
      \xc7\x40\x3f\x19\x5d\xbc\xac\x2f\x97\x6f\x61\x37\x58\x2a\xea\x8d\x0b\x13\x1c\x8a\x85\
      \x0c\x40\x4f\x7b\xe7\x51\xd1\x3d\x46\x3f\xfd\xec\x5e\xbc\x66\x84\xdd\x08\xc7\x5e\xbd\
      \xd1\xd7\x8f\x19\x7c\xce\xb2\x3b\xb6\x5b\x49\xd2\x18\x12\x37\x8b\x6c\xab\x63\xe1\xb2\
      \x32\x19\x54\x6a\xf5\xb0\xa9\x7f\x74\x44\xc3\xb2\xa2\x6d\x0c\xc3\x86\x9b\x62\xb9\x1f\
      \x39\x7b\x24\xf8\xc2\x95\x40\x67\xcb\x7a\x85\x37\x3e\xf0\xfb\xde\x09\x93\x05\x2e\x89\
      \x21\x80\x4b\x8f\xba\x46\x98\xc8\xc5\x1b\x71\x86\xc2\xc2\x4e\x1d\x50\x03\xad\xa8\xa8\
      \xd7\xd8\x43\x47\x98\x1b\x1b\xc4\xef\xe0\x2c\xde\x7a\x63\x02\x53\x55\x75\x63\x86\x7d\
      \x50\x94\x2a\x3c\xf2\xdd\x02";

#[test]
fn frames_with_checksum_and_size_verify_themselves() {
    // Without an oracle, for Miri: the checksum and the size must be right. Blocks of two frames
    // are decoded at once.
    let packed = [WORDS, WORDS, WORDS].concat();
    for threads in [1, 2] {
        let (ours, end) = unzstd(&packed, ReadMode { threads, ..WHOLE });
        end.unwrap();
        assert_eq!(ours.len(), 3 * 1228);
        assert!(ours[..1228] == ours[1228..2456] && ours[..1228] == ours[2456..]);
    }
    let (ours, end) = unzstd(&packed, ReadMode { pieces: Some(50), ..WHOLE });
    end.unwrap();
    assert_eq!(ours.len(), 3 * 1228);
}

#[test]
fn headers_with_all_their_parts() {
    let magic = b"\x28\xb5\x2f\xfd";
    let mut end = block(1, 300, b"z");
    end[0] |= 1;
    for (head, good) in [
        // Windows of 1 KiB and 1.875 KiB.
        (&b"\x00\x00"[..], true),
        (b"\x00\x07", true),
        // Content size fields of 2, 4 and 8 bytes; with a window, and instead of one.
        (b"\x40\x00\x2c\x00", true),
        (b"\x60\x2c\x00", true),
        (b"\xa0\x2c\x01\0\0", true),
        (b"\xe0\x2c\x01\0\0\0\0\0\0", true),
        (b"\xe0\x2d\x01\0\0\0\0\0\0", false),
        // Dictionary id 0, in 1, 2 and 4 bytes; another id.
        (b"\x01\x00\0", true),
        (b"\x02\x00\0\0", true),
        (b"\x03\x00\0\0\0\0", true),
        (b"\x01\x00\x09", false),
        (b"\x03\x00\0\0\0\x01", false),
        // An unused bit, and a reserved bit.
        (b"\x10\x00", true),
        (b"\x08\x00", false),
        // A window of 128 MiB, and a larger one.
        (b"\x00\x88", true),
        (b"\x00\x89", false),
        (b"\x00\xff", false),
    ] {
        let packed = [magic, head, &end].concat();
        let (theirs, ended) = oracle(&packed);
        assert_eq!(ended.is_ok(), good, "{head:x?}");
        let (ours, end) = whole(&packed);
        assert_eq!(end.is_ok(), ended.is_ok(), "{head:x?}: {end:?} {ended:?}");
        assert!(ended.is_err() || ours == theirs, "{head:x?}");
    }
    let error_text = |head: &[u8]| error_text(&[magic, head, &end].concat()).1;
    assert_eq!(
        error_text(b"\x03\x00\x07\0\0\x01"),
        "a frame needs dictionary 16777223; dictionaries are not supported, before byte 10 of the file"
    );
    assert_eq!(
        error_text(b"\x00\x89"),
        format!(
            "a frame needs a window of {} bytes; the maximum is {MAX_WINDOW}, before byte 6 of the file",
            MAX_WINDOW / 8 * 9
        )
    );
    assert!(error_text(b"\x08\x00").starts_with("reserved bits are set in a frame header"));
}

#[test]
fn skippable_frames_between_frames() {
    let hello = packed(b"hello", PLAIN);
    let skipped = b"\x5a\x2a\x4d\x18\x03\0\0\0abc";
    let all = [&skipped[..], &hello, &hello, skipped, skipped, &hello, skipped].concat();
    for pieces in [None, Some(1), Some(7)] {
        let (ours, end) = unzstd(&all, ReadMode { pieces, ..WHOLE });
        end.unwrap();
        assert_eq!(ours, b"hellohellohello");
    }
    let borders = [11, 11 + hello.len(), 11 + 2 * hello.len()];
    for cut in 0..all.len() {
        let (ours, end) = whole(&all[..cut]);
        let (theirs, ended) = oracle(&all[..cut]);
        assert_eq!((&ours, end.is_ok()), (&theirs, ended.is_ok()), "{cut}");
        if let Err(e) = end {
            assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        } else {
            assert!(cut >= borders[0]);
        }
    }
    let (ours, error_text) = error_text(&[&hello[..], b"more"].concat());
    assert_eq!(ours, b"hello");
    assert!(
        error_text.starts_with("no zstd magic number at the start of a frame, before byte 22"),
        "{error_text}"
    );
}

#[test]
fn mismatches_are_reported_after_the_output() {
    let bytes = text(300_000, 60, 3);
    let mut bad = packed(&bytes, PLAIN);
    let n = bad.len();
    bad[n - 1] ^= 0x40;
    for threads in 1..4 {
        let (ours, end) = unzstd(&bad, ReadMode { threads, ..WHOLE });
        assert!(ours == bytes);
        let error_text = end.unwrap_err().to_string();
        assert!(error_text.starts_with("a frame has the checksum "), "{error_text}");
        assert!(error_text.ends_with(&format!(", before byte {n} of the file")), "{error_text}");
    }
    let (ours, error_text) = error_text(&frame(7, &[raw(b"hello")]));
    assert_eq!(
        (&ours[..], &error_text[..]),
        (&b""[..], "a frame decompressed to 5 bytes, but states 7, before byte 18 of the file")
    );
}

#[test]
fn invalid_blocks() {
    let of = |content: &[u8]| error_text(&frame(200, &[raw(b"ab"), coded(content)]));
    for (content, expected) in [
        (&b"\x18ab"[..], "a block is truncated"),
        (b"\x18abc", "a block is truncated"),
        (b"\x18abc\0\0", "extra bytes at the end of a block"),
        (b"\x18abc\x01", "a block is truncated"),
        (b"\x18abc\x01\x01\x05", "reserved FSE table mode"),
        (b"\x18abc\x01\x03\x05", "reserved FSE table mode"),
        (b"\x18abc\x01\xfc\x05", "a repeated table without a previous one"),
        (b"\x18abc\x01\x54\x24\x02\x04\x05", "invalid FSE table"),
        (b"\x18abc\x01\x54\x02\x02\x04\x00", "a bitstream without its end mark"),
        (b"\x18abc\x01\x54\x02\x02\x04\x01", "a bitstream that was not consumed exactly"),
        (b"\x18abc\x01\x54\x02\x02\x04\x09", "a bitstream that was not consumed exactly"),
        (b"\x08a\x01\x54\x02\x02\x04\x05", "sequences use more literals than the block has"),
        (b"\x18abc\x01\x54\x00\x02\x04\x06", "a match offset beyond the window"),
        (b"\x18abc\x60", "a block is truncated"),
        (b"\x18abc\x81\x90", "a block decompresses to more than the maximum block size"),
        (b"\x05\x7dz\0", "a block decompresses to more than the maximum block size"),
        (b"\x03\x40\0\0", "a repeated table without a previous one"),
        (b"\x02\x80\0\0\x01\0", "invalid FSE table"),
        (b"\x02\xc0\0\x80\0\x01\0", "invalid Huffman code lengths of literals"),
    ] {
        let (ours, error_text) = of(content);
        assert!(error_text.starts_with(expected), "{content:x?}: {error_text}");
        assert_eq!(ours, b"ab", "{content:x?}");
        assert!(oracle(&frame(200, &[raw(b"ab"), coded(content)])).1.is_err(), "{content:x?}");
    }
    for block in [block(3, 1, b"a"), block(0, 1025, &[0; 1025]), block(2, 1, b"\0")] {
        let packed = frame(200, &[block]);
        assert!(error_text(&packed).1.starts_with("invalid block type"));
        assert!(oracle(&packed).1.is_err());
    }
}

#[test]
fn a_match_that_begins_before_the_frame_ends_within_it() {
    // 2 bytes and 40 literals, then a match of 34 bytes that begins up to 17 bytes before the
    // frame.
    for offset in 40..60_u16 {
        let bits = 1 << 8 | (offset + 3 - 32) << 3;
        let mut content = b"\x84\x02".to_vec();
        content.extend_from_slice(&[b'a'; 40]);
        content.extend_from_slice(b"\x01\x54\x17\x05\x1f");
        content.extend_from_slice(&bits.to_le_bytes());
        let packed = frame(200, &[raw(b"ab"), coded(&content)]);
        let (ours, error_text) = error_text(&packed);
        // Only the size of the frame limits offsets.
        let far = error_text.starts_with("a match offset beyond the window");
        assert_eq!((&ours[..], far), (&b"ab"[..], offset > 42), "{offset}: {error_text}");
        assert!(oracle(&packed).1.is_err());
    }
}

/// The kinds of blocks, literals and tables of a frame.
fn kinds(packed: &[u8]) -> Vec<&'static str> {
    let mut scanner = Scanner::new(packed, 0);
    let mut job = Job::default();
    let (mut codes, mut tables) = (0, [0; 3]);
    let mut all = Vec::new();
    while scanner.next(&mut job) {
        let packed = match &job.content {
            Content::Nothing => continue,
            Content::Raw => {
                all.push("raw block");
                continue;
            }
            Content::Repeated(..) => {
                all.push("repeated block");
                continue;
            }
            Content::Packed(packed) => packed,
        };
        let again = packed.codes.id > 0 && packed.codes.id == codes;
        all.push(match &packed.literals {
            Literals::Raw(_) => "raw literals",
            Literals::Repeated(_) => "repeated literals",
            Literals::One(_) if again => "one stream, codes again",
            Literals::One(_) => "one stream",
            Literals::Four(_) if again => "four streams, codes again",
            Literals::Four(_) => "four streams",
        });
        codes = codes.max(packed.codes.id);
        if packed.sequences == 0 {
            all.push("no sequences");
            continue;
        }
        for (described, last) in packed.tables.iter().zip(&mut tables) {
            all.push(match &described.kind {
                _ if described.id == 1 => "predefined table",
                _ if described.id == *last => "table again",
                super::job::Kind::Symbol(_) => "table of one symbol",
                super::job::Kind::Counts(_) => "table",
            });
            *last = described.id;
        }
    }
    all
}

#[test]
fn libzstd_frames_cover_every_kind_of_block() {
    let mut seen = Vec::new();
    let mut try_one = |bytes: &[u8], pack: Pack| {
        let packed = packed(bytes, pack);
        seen.extend(kinds(&packed));
        let (ours, end) = whole(&packed);
        end.unwrap();
        assert!(ours == bytes, "{pack:?}");
    };
    for (letters, flush) in [(4, 500), (60, 3000), (200, 9000), (60, usize::MAX), (256, 60_000)] {
        for level in [-5, 1, 3, 9, 19] {
            try_one(&text(100_000, letters, flush as u32), Pack { level, flush, ..PLAIN });
        }
    }
    try_one(&[7; 300_000], PLAIN);
    let noise: Vec<u8> =
        std::iter::repeat_n((), 300_000).scan(Noise(1), |n, ()| Some(n.next() as u8)).collect();
    try_one(&noise, PLAIN);
    // Letters of a few kinds without matches: only literals.
    let letters: Vec<u8> = noise.iter().map(|b| (b & 3) * (b >> 6)).collect();
    try_one(&letters, Pack { level: -5, ..PLAIN });
    try_one(&letters[..900], Pack { level: 1, flush: 150, ..PLAIN });
    let periods: Vec<u8> = (0..200_000).map(|i| noise[i % 20_000 / 10 * 10 + i % 10]).collect();
    try_one(&periods, PLAIN);
    seen.sort_unstable();
    seen.dedup();
    for kind in [
        "raw block",
        "repeated block",
        "raw literals",
        "one stream",
        "four streams",
        "four streams, codes again",
        "table",
        "table again",
        "table of one symbol",
        "predefined table",
        "no sequences",
    ] {
        assert!(seen.contains(&kind), "{kind}: {seen:?}");
    }
}

#[test]
fn windows_that_wrap() {
    // Small windows wrap often; matches cross the end of the previous round.
    let bytes = text(700_000, 60, 11);
    for window in [10, 11, 14, 17, 18] {
        for (level, long) in [(1, false), (9, true)] {
            let packed = packed(&bytes, Pack { level, window, long, ..PLAIN });
            for how in [
                WHOLE,
                ReadMode { threads: 2, room: 777, ..WHOLE },
                ReadMode { pieces: Some(99), ..WHOLE },
            ] {
                let (ours, end) = unzstd(&packed, how);
                end.unwrap();
                assert!(ours == bytes, "{window} {level} {how:?}");
            }
        }
    }
}

#[test]
fn long_windows_and_matches_far_back() {
    let begin = text(3 << 20, 250, 5);
    let bytes = [&begin[..], &vec![0; 9 << 20], &begin[1000..], b"end"].concat();
    for (window, flush) in [(24, usize::MAX), (27, 1 << 18)] {
        let packed = packed(&bytes, Pack { level: 3, window, long: true, flush, ..PLAIN });
        let (ours, end) = unzstd(&packed, ReadMode { threads: 3, ..WHOLE });
        end.unwrap();
        assert!(ours == bytes);
    }
}

/// Input that must not be read beyond some position.
struct Guarded<'a>(&'a [u8]);

impl Read for Guarded<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        assert!(!self.0.is_empty(), "read too far");
        let n = self.0.len().min(to.len());
        to[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn blocking_input_is_not_waited_for() {
    let first = text(5000, 60, 1);
    let packed = packed(&first, Pack { flush: 4999, ..PLAIN });
    // The frame without its last block, which is empty, and without the checksum.
    let begun = Vec::leak(packed[..packed.len() - 7].to_vec());
    let mut unzstd = Unzstd::new(BufReader::with_capacity(64, Guarded(begun)));
    unzstd.set_threads(3);
    unzstd.start_at(0);
    let mut all = Vec::new();
    let mut piece = [0; 700];
    while all.len() < first.len() {
        let n = unzstd.read(&mut piece).unwrap();
        all.extend_from_slice(&piece[..n]);
    }
    assert!(all == first);
}

#[test]
fn a_reader_that_stops_early_does_not_wait() {
    let bytes = text(4 * BLOCK, 60, 2);
    let packed = packed(&bytes, PLAIN);
    for threads in 1..5 {
        for read in [0, 1, BLOCK, 3 * BLOCK] {
            let mut unzstd = Unzstd::in_memory(Cursor::new(packed.clone()));
            unzstd.set_threads(threads);
            unzstd.start_at(0);
            let (mut some, mut at) = (vec![0; read], 0);
            while at < read {
                at += unzstd.read(&mut some[at..]).unwrap();
            }
            assert!(some == bytes[..read]);
        }
    }
}

#[test]
fn cut_at_every_byte() {
    let bytes = text(9_000, 60, 7);
    for pack in [PLAIN, Pack { flush: 1000, ..PLAIN }, Pack { level: 19, sized: true, ..PLAIN }] {
        let packed = packed(&bytes, pack);
        for cut in (0..packed.len()).step_by(7) {
            let (ours, end) = whole(&packed[..cut]);
            let (theirs, _) = oracle(&packed[..cut]);
            assert!(ours == theirs && bytes.starts_with(&ours), "{cut}");
            assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
    // A frame is too short even if its checksum is missing.
    let mut short = frame(9, &[coded(b"\x28hello\0")]);
    short[4] |= 4;
    assert_eq!((whole(&short).0, oracle(&short).0), (vec![], vec![]));
    // Even a raw block is not returned beyond the frame's size.
    let packed = frame(3, &[raw(&bytes[..200])]);
    assert!(oracle(&packed[..40]).0.starts_with(&whole(&packed[..40]).0));
    // Available bytes of raw blocks are returned.
    let packed = frame(200, &[raw(&bytes[..200])]);
    for cut in 10..packed.len() {
        assert_eq!(whole(&packed[..cut]).0, oracle(&packed[..cut]).0);
    }
}

#[test]
fn a_damaged_block_leaves_the_block_before_it_intact() {
    // Blocks in memory are decoded in pairs, others one by one.
    let plain = packed(&text(600_000, 200, 7), Pack { checksum: false, ..PLAIN });
    let one_by_one = ReadMode { pieces: Some(1 << 17), ..WHOLE };
    let step = if cfg!(miri) { 40_001 } else { 101 };
    let mut failed = 0;
    for at in (20..plain.len()).step_by(step) {
        let mut damaged = plain.clone();
        damaged[at] ^= 1 << (at % 8);
        let ((paired, end), (single, expected)) = (whole(&damaged), unzstd(&damaged, one_by_one));
        assert_eq!(paired.len(), single.len(), "byte {at}");
        assert!(paired == single, "byte {at}");
        let text = |end: io::Result<()>| end.err().map(|error| error.to_string());
        let (end, expected) = (text(end), text(expected));
        assert_eq!(end, expected, "byte {at}");
        failed += usize::from(end.is_some());
    }
    assert!(cfg!(miri) || failed > 100, "{failed} of {}", plain.len() / step);
}
