//! DEFLATE data, in pieces of any size, decode as with zlib.
#![no_main]

use flate2::Decompress;
use flate2::FlushDecompress;
use flate2::Status;
use gannet_inflate::gzip::HISTORY;
use gannet_inflate::gzip::Inflate;
use gannet_inflate::gzip::Stop;
use libfuzzer_sys::fuzz_target;

/// Maximum number of compared bytes of output.
const MOST: usize = 1 << 20;

/// Maximum number of bytes of code lengths of one bit each: 286 of literals, 30 of distances.
const MOST_LENGTHS: usize = (286 + 30usize).div_ceil(8);

fuzz_target!(|data: &[u8]| {
    let [pieces, room, packed @ ..] = data else { return };
    let pieces = usize::from(*pieces) * usize::from(*pieces) + 1;
    let room = usize::from(*room) * 8 + 1;

    let mut zlib = Decompress::new(false);
    let mut theirs = vec![0; MOST];
    let theirs_ended = zlib.decompress(packed, &mut theirs, FlushDecompress::None);
    theirs.truncate(zlib.total_out() as usize);
    if theirs.len() == MOST {
        return;
    }

    let mut inflate = Inflate::new();
    let mut buffer = vec![0; HISTORY + room];
    let (mut ours, mut at, mut used) = (Vec::new(), 0, 0);
    let ended = loop {
        if at == buffer.len() {
            buffer.copy_within(at - HISTORY.., 0);
            at = HISTORY;
        }
        let input = &packed[used..(used + pieces).min(packed.len())];
        let (step, damage) = inflate.step_until(input, &mut buffer, at);
        ours.extend_from_slice(&buffer[at..at + step.written]);
        (at, used) = (at + step.written, used + step.used);
        match (step.stop, damage) {
            (_, Some(damage)) => break Err(damage),
            (Stop::End, None) => break Ok(true),
            (Stop::Input, None) if used == packed.len() => break Ok(false),
            (Stop::Input, None) => assert_eq!(step.used, input.len()),
            (Stop::Output, None) => assert_eq!(at, buffer.len()),
            (Stop::Block, None) => unreachable!("no stop was requested"),
        }
    };
    match theirs_ended {
        Ok(Status::StreamEnd) => {
            assert_eq!((ended, used as u64), (Ok(true), zlib.total_in()));
            assert_eq!(ours, theirs);
        }
        // If the code length code is empty, zlib consumes a bit for each length before it reports
        // that the end-of-block code is missing.
        Ok(_) if ended.is_err() => {
            let more = zlib.decompress(&[0; MOST_LENGTHS], &mut [0; 1], FlushDecompress::None);
            assert!(more.is_err(), "{ended:?}");
        }
        Ok(_) => {
            assert_eq!(ended, Ok(false));
            assert_eq!(ours, theirs);
        }
        Err(_) => {
            assert!(ended.is_err());
            // Either may have written more before it detected the damage.
            let n = ours.len().min(theirs.len());
            assert_eq!(ours[..n], theirs[..n]);
        }
    }
});
