//! Compressed data round-trips, and damaged data decodes as with libzstd or is an error.

use proptest::prelude::*;

use super::Noise;
use super::Pack;
use super::ReadMode;
use super::oracle;
use super::packed;
use super::text;
use super::unzstd;
use super::whole;

/// Compressible data of several kinds: noise, text, long runs.
#[derive(Clone, Debug)]
enum Sample {
    Noise(usize, u32),
    Text(usize, u32, u32),
    Run(usize, u8),
}

impl Sample {
    fn bytes(&self) -> Vec<u8> {
        match *self {
            Self::Noise(n, seed) => {
                let mut noise = Noise(seed);
                (0..n).map(|_| noise.next() as u8).collect()
            }
            Self::Text(n, letters, seed) => text(n, letters, seed),
            Self::Run(n, byte) => vec![byte; n],
        }
    }
}

fn anything() -> impl Strategy<Value = Sample> {
    prop_oneof![
        (0..200_000_usize, any::<u32>()).prop_map(|(n, seed)| Sample::Noise(n, seed)),
        (0..400_000_usize, 1..256_u32, any::<u32>()).prop_map(|(n, l, s)| Sample::Text(n, l, s)),
        (0..3_000_usize, 1..256_u32, any::<u32>()).prop_map(|(n, l, s)| Sample::Text(n, l, s)),
        (0..300_000_usize, any::<u8>()).prop_map(|(n, byte)| Sample::Run(n, byte)),
    ]
}

fn any_pack() -> impl Strategy<Value = Pack> {
    let window = prop_oneof![Just(0_u32), 10..=22_u32];
    let flush = prop_oneof![Just(usize::MAX), 1..20_000_usize];
    (-5..=19_i32, any::<bool>(), any::<bool>(), window, any::<bool>(), flush).prop_map(
        |(level, checksum, sized, window, long, flush)| Pack {
            level,
            checksum,
            sized,
            window,
            long,
            flush: flush.max(200),
        },
    )
}

fn any_mode() -> impl Strategy<Value = ReadMode> {
    let pieces =
        prop_oneof![Just(None), (1..40_usize).prop_map(Some), (1..200_000_usize).prop_map(Some)];
    let room = prop_oneof![1..40_usize, 200..700_usize, 1..300_000_usize];
    (pieces, room, 1..5_usize).prop_map(|(pieces, room, threads)| ReadMode {
        pieces,
        room,
        threads,
    })
}

fn flipped(mut packed: Vec<u8>, flips: Vec<(prop::sample::Index, u8)>) -> Vec<u8> {
    for (at, flip) in flips {
        let at = at.index(packed.len());
        packed[at] ^= flip;
    }
    packed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    #[test]
    fn compressed_data_round_trips(bytes in anything(), pack in any_pack(), mode in any_mode()) {
        let bytes = bytes.bytes();
        let (ours, end) = unzstd(&packed(&bytes, pack), mode);
        prop_assert!(end.is_ok(), "{:?}", end);
        prop_assert!(ours == bytes);
    }

    #[test]
    fn frames_are_decompressed_in_order(
        parts in prop::collection::vec((anything(), any_pack()), 1..4),
        mode in any_mode(),
    ) {
        let packed: Vec<u8> = parts.iter().flat_map(|(part, pack)| packed(&part.bytes(), *pack)).collect();
        let (ours, end) = unzstd(&packed, mode);
        prop_assert!(end.is_ok(), "{:?}", end);
        prop_assert!(ours == parts.into_iter().flat_map(|(part, _)| part.bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_frames_decode_as_with_libzstd_or_fail(
        bytes in anything(),
        pack in any_pack(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
        mode in any_mode(),
    ) {
        let packed = flipped(packed(&bytes.bytes(), Pack { checksum: false, ..pack }), flips);
        let (theirs, ended) = oracle(&packed);
        let (ours, end) = unzstd(&packed, mode);
        prop_assert!(theirs.starts_with(&ours), "{} {} {:?} {:?}", theirs.len(), ours.len(), ended, end);
        prop_assert!(end.is_err() || (ended.is_ok() && ours == theirs), "{:?} {:?}", end, ended);
    }

    #[test]
    fn short_frames_with_flipped_bits_decode_as_with_libzstd(
        n in 1..400_usize, letters in 1..200_u32, seed in any::<u32>(), pack in any_pack(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..3),
    ) {
        let bytes = text(n, letters, seed);
        let packed = flipped(packed(&bytes, Pack { checksum: false, ..pack }), flips);
        let (theirs, ended) = oracle(&packed);
        let (ours, end) = whole(&packed);
        prop_assert!(theirs.starts_with(&ours), "{} {} {:?} {:?}", theirs.len(), ours.len(), ended, end);
        prop_assert!(end.is_err() || (ended.is_ok() && ours == theirs), "{:?} {:?}", end, ended);
    }
}
