//! Hand-written streams, and flate2 as an oracle for all others.

use std::io;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;

use flate2::Compression;
use flate2::Decompress;
use flate2::FlushDecompress;
use flate2::Status;
use proptest::prelude::*;

use super::Damage;
use super::Gunzip;
use super::HISTORY;
use super::Inflate;
use super::Stop;
use super::table;

/// Decompresses in pieces of the given sizes, through a buffer with the minimum history. Returns
/// the output, the input consumed, and the error.
fn inflate(packed: &[u8], pieces: usize, room: usize) -> (Vec<u8>, usize, Result<Stop, Damage>) {
    let mut inflate = Inflate::new();
    let (mut all, mut used) = (Vec::new(), 0);
    let mut buffer = vec![0xa5; HISTORY + room];
    let mut at = 0;
    loop {
        if at >= buffer.len() {
            buffer.copy_within(at - HISTORY..at, 0);
            at = HISTORY;
        }
        // A buffer without slack: each step may fill it completely.
        let end = (at + room).min(buffer.len());
        let input = &packed[used..(used + pieces).min(packed.len())];
        let (step, damage) = inflate.step_until(input, &mut buffer[..end], at);
        all.extend_from_slice(&buffer[at..at + step.written]);
        at += step.written;
        used += step.used;
        assert!(step.used <= input.len());
        match (damage, step.stop) {
            (Some(damage), _) => return (all, used, Err(damage)),
            (None, Stop::End) => return (all, used, Ok(Stop::End)),
            (None, Stop::Input) if used == packed.len() => return (all, used, Ok(Stop::Input)),
            (None, Stop::Input) => assert_eq!(step.used, input.len()),
            (None, Stop::Output) => assert!(at == end),
            (None, Stop::Block) => unreachable!("no stop was requested"),
        }
    }
}

fn whole(packed: &[u8]) -> (Vec<u8>, usize, Result<Stop, Damage>) {
    inflate(packed, usize::MAX / 2, 1 << 16)
}

/// The result of zlib: the output, whether the stream ended properly or an error, and the input
/// consumed.
fn oracle(packed: &[u8]) -> (Vec<u8>, Result<bool, ()>, usize) {
    let mut zlib = Decompress::new(false);
    let mut all = Vec::new();
    let mut room = vec![0; 1 << 16];
    loop {
        let (begun, made) = (zlib.total_in() as usize, zlib.total_out());
        let status = zlib.decompress(&packed[begun..], &mut room, FlushDecompress::None);
        let n = (zlib.total_out() - made) as usize;
        all.extend_from_slice(&room[..n]);
        let used = zlib.total_in() as usize;
        match status {
            Ok(Status::StreamEnd) => return (all, Ok(true), used),
            Ok(_) if n == 0 && used == begun => return (all, Ok(false), used),
            Ok(_) => {}
            Err(_) => return (all, Err(()), used),
        }
    }
}

fn deflated(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes fields of bits as DEFLATE packs them.
#[derive(Default)]
struct Bits(Vec<u8>, u32);

impl Bits {
    fn put(mut self, value: u32, n: u32) -> Self {
        for i in 0..n {
            if self.1 == 0 {
                self.0.push(0);
            }
            *self.0.last_mut().unwrap() |= ((u64::from(value) >> i.min(63) & 1) as u8) << self.1;
            self.1 = (self.1 + 1) % 8;
        }
        self
    }

    /// A literal below 144 by its fixed code.
    fn literal(self, byte: u32) -> Self {
        self.code(0x30 + byte, 8)
    }

    /// A match by its fixed codes.
    fn matched(self, length: u32, distance: u32) -> Self {
        let (code, extra, rest) = meaning(&table::LITERAL_MEANINGS[257..286], length);
        let this = if code < 23 { self.code(code + 1, 7) } else { self.code(0xc0 + code - 23, 8) };
        let this = this.put(rest, extra);
        let (code, extra, rest) = meaning(&table::DISTANCE_MEANINGS[..30], distance);
        this.code(code, 5).put(rest, extra)
    }

    /// Codes go from their highest bit down.
    fn code(self, code: u32, n: u32) -> Self {
        self.put(code.reverse_bits() >> (32 - n), n)
    }
}

/// The last code whose range includes `number`, the number of its extra bits, and their value.
fn meaning(codes: &[u32], number: u32) -> (u32, u32, u32) {
    let code = codes.iter().rposition(|&m| table::value(m) <= number).unwrap();
    (code as u32, codes[code] & 63, number - table::value(codes[code]))
}

/// Text of a small alphabet, with repetitions at all distances.
fn text(n: usize, letters: u32, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut all: Vec<u8> = Vec::with_capacity(n + 300);
    while all.len() < n {
        if all.len() > 10 && next() % 3 == 0 {
            let distance = 1 + next() as usize % all.len().min(40_000).min(1 << (next() % 16));
            for _ in 0..3 + next() % 270 {
                all.push(all[all.len() - distance]);
            }
        } else {
            all.push((next() % letters) as u8);
        }
    }
    all.truncate(n);
    all
}

#[test]
fn hand_written_streams() {
    // Stored, empty, and stored with bytes after it.
    assert_eq!(whole(&[1, 0, 0, 0xff, 0xff]), (vec![], 5, Ok(Stop::End)));
    let stored = [1, 3, 0, 0xfc, 0xff, b'a', b'b', b'c', b'x'];
    assert_eq!(whole(&stored), (b"abc".to_vec(), 8, Ok(Stop::End)));
    // Fixed: "a", then a match of 8 at distance 1.
    let fixed = [0x4b, 0x84, 0x01, 0x00];
    assert_eq!(whole(&fixed), (b"aaaaaaaaa".to_vec(), 4, Ok(Stop::End)));
    // A literal with a code of 9 bits, then the longest match at the shortest distance.
    let longest = Bits::default()
        .put(0b011, 3)
        .code(0b1_1001_0000, 9)
        .code(0b1100_0101, 8)
        .code(0, 5)
        .code(0, 7)
        .0;
    assert_eq!(whole(&longest).0, vec![144; 259]);
    // 258 can also be encoded as code 284 with all its extra bits set.
    let other = Bits::default()
        .put(0b011, 3)
        .code(0b1_1001_0000, 9)
        .code(0b1100_0100, 8)
        .put(31, 5)
        .code(0, 5)
        .code(0, 7)
        .0;
    assert_eq!(whole(&other).0, vec![144; 259]);
    // Two blocks, of which the second is aligned.
    let two = Bits::default().put(0b010, 3).code(0x30, 8).code(0, 7).put(1, 3).put(0, 3);
    let mut two = two.0;
    two.extend([1, 0, 0xfe, 0xff, b'z']);
    assert_eq!(whole(&two), (b"\0z".to_vec(), two.len(), Ok(Stop::End)));
}

#[test]
fn each_damage_is_identified() {
    let bits = Bits::default;
    assert_eq!(whole(&bits().put(0b111, 3).0).2, Err(Damage::Block));
    assert_eq!(whole(&[1, 3, 0, 0xfc, 0xfe]).2, Err(Damage::Stored));
    // 287 codes of literals; 31 of distances.
    let many = bits().put(0b101, 3).put(30, 5).put(0, 5).put(0, 4).put(0, 30).0;
    assert_eq!(whole(&many).2, Err(Damage::Codes));
    let many = bits().put(0b101, 3).put(0, 5).put(30, 5).put(0, 4).put(0, 30).0;
    assert_eq!(whole(&many).2, Err(Damage::Codes));
    // No code for lengths at all.
    let none = bits().put(0b101, 3).put(0, 5).put(0, 5).put(0, 4).put(0, 60).0;
    assert_eq!(whole(&none).2, Err(Damage::Codes));
    // Length code 286, distance code 30, a distance before the beginning.
    let code = bits().put(0b011, 3).code(0b1100_0110, 8).put(0, 80).0;
    assert_eq!(whole(&code).2, Err(Damage::Code));
    let code = bits().put(0b011, 3).code(0x30, 8).code(1, 7).code(30, 5).put(0, 80).0;
    assert_eq!((whole(&code).0, whole(&code).2), (vec![0], Err(Damage::Code)));
    let far = bits().put(0b011, 3).code(0x30, 8).code(1, 7).code(1, 5).put(0, 400).0;
    assert_eq!(whole(&far).0, [0]);
    assert_eq!(whole(&far).2, Err(Damage::Distance));
    assert_eq!(inflate(&far, 1, 1).2, Err(Damage::Distance));
}

#[test]
fn cut_at_every_byte_and_in_every_piece() {
    let bytes = text(3_000, 60, 7);
    for level in [0, 1, 6, 9] {
        let packed = deflated(&bytes, level);
        for cut in 0..packed.len() {
            let (all, used, stop) = whole(&packed[..cut]);
            assert_eq!((stop, used), (Ok(Stop::Input), cut));
            assert!(bytes.starts_with(&all));
        }
        for pieces in [1, 2, 7, 31, 33, 100] {
            for room in [1, 2, 100, 300, 400] {
                let (all, used, stop) = inflate(&packed, pieces, room);
                assert!(all == bytes, "level {level}, pieces of {pieces}, room of {room}");
                assert_eq!((used, stop), (packed.len(), Ok(Stop::End)));
            }
        }
    }
}

#[test]
fn matches_of_all_distances_and_lengths() {
    // The longest distance reaches the end of the history and no further.
    for distance in (1..80).chain([255, 256, 257, 4096, HISTORY - 1, HISTORY]) {
        let mut bytes = text(distance, 250, distance as u32);
        for i in 0..600 {
            bytes.push(bytes[i % distance]);
        }
        let packed = deflated(&bytes, 9);
        assert!(whole(&packed).0 == bytes, "{distance}");
    }
}

#[test]
fn a_distance_reaches_over_pieces_but_not_over_streams() {
    let mut inflate = Inflate::new();
    let mut buffer = vec![7; 100];
    let far = Bits::default().put(0b011, 3).code(1, 7).code(0, 5).put(0, 80).0;
    assert_eq!(inflate.step(&far, &mut buffer, 50), Err(Damage::Distance));
    inflate.reset();
    let step = inflate.step(&[0x4b, 0x84, 0x01, 0x00], &mut buffer, 50).unwrap();
    assert_eq!((step.written, step.stop), (9, Stop::End));
    inflate.reset();
    assert_eq!(inflate.step(&far, &mut buffer, 59), Err(Damage::Distance));
}

#[test]
fn copies_stay_within_the_output() {
    // Miri is slow.
    let few = cfg!(miri);
    let distances = if few { vec![1, 3, 15, 16, 17] } else { (1..70).collect() };
    let lengths = if few { vec![3, 17, 258] } else { vec![3, 4, 15, 16, 17, 18, 32, 33, 257, 258] };
    let slacks = if few { 276..278 } else { 0..290 };
    for distance in distances {
        for &length in &lengths {
            let mut bits = Bits::default().put(0b011, 3);
            for byte in 0..distance {
                bits = bits.literal(byte);
            }
            // Enough input follows for the fast loop.
            let packed = bits.matched(length, distance).literal(99).code(0, 7).put(0, 500).0;
            let text = (0..distance + length).map(|i| (i % distance) as u8).chain([99]);
            let text: Vec<u8> = text.collect();
            for slack in slacks.clone().step_by(if few { 1 } else { 13 }) {
                let mut output = vec![0xee; text.len() + slack];
                let step = Inflate::new().step(&packed, &mut output, 0).unwrap();
                assert_eq!((step.written, step.stop), (text.len(), Stop::End));
                assert_eq!(output[..text.len()], text, "{distance} {length} {slack}");
            }
        }
    }
}

/// The whole output, and the final result.
fn gunzip(packed: impl io::BufRead) -> (Vec<u8>, io::Result<()>) {
    let mut gunzip = Gunzip::new(packed);
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        // Buffers with and without slack.
        all.resize(at + [1000, 1, 70_000][at % 3], 0);
        match gunzip.read_at(&mut all, at) {
            Ok(0) => {
                all.truncate(at);
                return (all, Ok(()));
            }
            Ok(n) => at += n,
            Err(e) => {
                all.truncate(at);
                return (all, Err(e));
            }
        }
    }
}

/// A member with all header fields.
fn adorned(bytes: &[u8], flags: u8) -> Vec<u8> {
    let mut all = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 3];
    if flags & 4 != 0 {
        all.extend([3, 0, 9, 9, 9]);
    }
    if flags & 8 != 0 {
        all.extend(b"name\0");
    }
    if flags & 16 != 0 {
        all.extend(b"a comment\0");
    }
    if flags & 2 != 0 {
        let mut crc = flate2::Crc::new();
        crc.update(&all);
        all.extend(&crc.sum().to_le_bytes()[..2]);
    }
    all.extend(deflated(bytes, 6));
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    all.extend(crc.sum().to_le_bytes());
    all.extend((bytes.len() as u32).to_le_bytes());
    all
}

#[test]
fn headers_with_all_their_parts() {
    for flags in (0..32).filter(|flags| flags & 1 == 0) {
        let packed = [adorned(b"first", flags), adorned(b"", 0), adorned(b", second", flags)];
        let packed = packed.concat();
        for pieces in [1, 5, 1000] {
            let (all, end) = gunzip(BufReader::with_capacity(pieces, &packed[..]));
            end.unwrap();
            assert_eq!(all, b"first, second", "{flags:#x}");
        }
        for cut in 0..packed.len() {
            let (all, end) = gunzip(&packed[..cut]);
            assert!(b"first, second".starts_with(&all[..]));
            let borders =
                [adorned(b"first", flags).len(), packed.len() - adorned(b", second", flags).len()];
            match end {
                Ok(()) => assert!(borders.contains(&cut), "{cut}"),
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof, "{cut}: {e}"),
            }
        }
    }
    let mut empty = adorned(b"x", 4);
    empty.splice(10..15, [0, 0]);
    assert_eq!(gunzip(&empty[..]).0, b"x", "extra data of no bytes");
}

#[test]
fn mismatches_are_reported_after_the_output() {
    let said = |packed: &[u8]| {
        let (all, end) = gunzip(packed);
        (all.len(), end.unwrap_err().to_string())
    };
    let good = adorned(b"hello", 2);
    let n = good.len();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let end = format!(", before byte {n} of the file");
    assert_eq!(
        said(&flipped(n - 8)),
        (5, format!("the data have the checksum 3610a686, but the trailer states 3610a6c6{end}"))
    );
    assert_eq!(
        said(&flipped(n - 4)),
        (5, format!("the data have 5 bytes (modulo 4 GiB), but the trailer states 69{end}"))
    );
    let end = ", before byte 12 of the file";
    assert_eq!(said(&flipped(10)), (0, format!("wrong checksum of a gzip header{end}")));
    assert!(said(&flipped(3)).1.starts_with("reserved flags are set in a gzip header"));
    assert!(said(&flipped(2)).1.starts_with("a compression method other than deflate"));
    assert!(
        said(b"text").1.starts_with("no gzip magic number at the start of a member, before byte 1")
    );
    let behind = [&good[..], b"more"].concat();
    assert!(said(&behind).1.starts_with("no gzip magic number at the start of a member"));
}

/// Compressible data of several kinds: noise, text, long runs.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3_000),
        (0..60_000_usize, 1..250_u32, any::<u32>()).prop_map(|(n, l, seed)| text(n, l, seed)),
        (0..100_000_usize, any::<u8>()).prop_map(|(n, byte)| vec![byte; n]),
    ]
}

proptest! {
    #[test]
    fn compressed_data_round_trips(
        bytes in anything(),
        level in 0..=9_u32,
        pieces in prop_oneof![1..40_usize, 1..200_000_usize],
        room in prop_oneof![1..40_usize, 200..700_usize, 1..100_000_usize],
    ) {
        let packed = deflated(&bytes, level);
        let (all, used, stop) = inflate(&packed, pieces, room);
        prop_assert!(all == bytes);
        prop_assert_eq!((used, stop), (packed.len(), Ok(Stop::End)));
    }

    #[test]
    fn members_are_decompressed_in_order(parts in prop::collection::vec(anything(), 1..4)) {
        let packed: Vec<u8> = parts.iter().flat_map(|part| gzipped(part)).collect();
        let (all, end) = gunzip(&packed[..]);
        prop_assert!(end.is_ok() && all == parts.concat());
        let mut zlib = Vec::new();
        flate2::bufread::MultiGzDecoder::new(&packed[..]).read_to_end(&mut zlib).unwrap();
        prop_assert!(all == zlib);
    }

    #[test]
    fn damaged_streams_decode_as_with_zlib(
        bytes in anything(),
        level in 0..=9_u32,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
        pieces in prop_oneof![1..40_usize, Just(1 << 20)],
    ) {
        let mut packed = deflated(&bytes, level);
        for (at, flip) in flips {
            let at = at.index(packed.len());
            packed[at] ^= flip;
        }
        let (theirs, ended, theirs_used) = oracle(&packed);
        let (ours, used, stop) = inflate(&packed, pieces, 1 << 16);
        match ended {
            Ok(true) => prop_assert_eq!((stop, used), (Ok(Stop::End), theirs_used)),
            Ok(false) => prop_assert_eq!(stop, Ok(Stop::Input)),
            Err(()) => prop_assert!(stop.is_err()),
        }
        // For a damaged stream either decoder may have written more before it noticed.
        let n = ours.len().min(theirs.len());
        prop_assert!(ours[..n] == theirs[..n]);
        prop_assert!(ended.is_err() || ours.len() == theirs.len());
    }

    #[test]
    fn noise_decodes_as_with_zlib(packed in prop::collection::vec(any::<u8>(), 0..200)) {
        let (theirs, ended, _) = oracle(&packed);
        let (ours, _, stop) = inflate(&packed, 1 << 20, 1 << 16);
        prop_assert_eq!(ended.is_err(), stop.is_err());
        prop_assert!(ended.is_err() || ours == theirs);
    }
}
