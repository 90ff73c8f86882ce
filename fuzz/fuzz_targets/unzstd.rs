//! zstd frames, in memory or in pieces, with one thread or several, decode as with libzstd or are
//! an error.
#![no_main]

use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;

use gannet_inflate::zstd::Unzstd;
use libfuzzer_sys::fuzz_target;

/// Maximum number of compared bytes of output.
const MOST: usize = 4 << 20;

fuzz_target!(|data: &[u8]| {
    let [pieces, room, packed @ ..] = data else { return };
    let room = usize::from(*room) * usize::from(*room) * 4 + 1;

    // With more input at a time, libzstd may lose blocks before the one that is damaged.
    let mut theirs = Vec::new();
    let input = BufReader::with_capacity(1, packed);
    let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(input) else { return };
    let theirs_ended = decoder.take(MOST as u64).read_to_end(&mut theirs);
    if theirs.len() == MOST {
        return;
    }

    let input = Cursor::new(packed.to_vec());
    let (ours, ended) = match pieces {
        0 => all(Unzstd::in_memory(input), room),
        _ => all(Unzstd::new(BufReader::with_capacity(usize::from(*pieces), input)), room),
    };
    assert!(theirs.starts_with(&ours), "{} bytes, {} by libzstd", ours.len(), theirs.len());
    if ended {
        assert!(theirs_ended.is_ok(), "{theirs_ended:?}");
        assert_eq!(ours.len(), theirs.len());
    }
});

/// The whole output, and whether it ended without an error.
fn all<R: std::io::BufRead>(mut unzstd: Unzstd<R>, room: usize) -> (Vec<u8>, bool) {
    let (mut all, mut piece) = (Vec::new(), vec![0; room]);
    loop {
        match unzstd.read(&mut piece) {
            Ok(0) => return (all, true),
            Ok(n) => all.extend_from_slice(&piece[..n]),
            Err(_) => return (all, false),
        }
    }
}
