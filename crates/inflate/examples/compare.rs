//! Decompresses files with these decoders, in one thread and in two, and with zlib-rs or libzstd.
//!
//! ```sh
//! cargo run --profile dist -p gannet-inflate --example compare -- mix.pcap.gz mix.pcap.zst
//! ```
//!
//! Prints a line for each decoder: minimum and median of the megabytes per second. The environment
//! variable `ROUNDS` sets the number of runs.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::io::{Cursor, Read};
use std::time::Instant;

use gannet_inflate::gzip::{Gunzip, HISTORY};
use gannet_inflate::zstd::Unzstd;

/// The name of a decoder, and a function that returns the number of decompressed bytes.
type Decoder = (&'static str, fn(&[u8]) -> u64);

/// Bytes decompressed at a time, as readers of captures do.
const PIECE: usize = 256 << 10;

fn main() {
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    for path in std::env::args().skip(1) {
        let packed = std::fs::read(&path).unwrap();
        let decoders: Vec<Decoder> = if packed.starts_with(b"\x1f\x8b") {
            vec![("gunzip", gunzip), ("zlib-rs", zlib)]
        } else {
            vec![
                ("unzstd", unzstd),
                ("unzstd, 2 threads", unzstd_two_threads),
                ("libzstd", libzstd),
            ]
        };
        for (name, decode) in decoders {
            let mut speeds: Vec<f64> = (0..rounds)
                .map(|_| {
                    let begun = Instant::now();
                    decode(&packed) as f64 / begun.elapsed().as_secs_f64() / 1e6
                })
                .collect();
            speeds.sort_by(f64::total_cmp);
            let (least, median) = (speeds[0], speeds[speeds.len() / 2]);
            println!("{path} {name}: {least:.0} {median:.0} MB/s");
        }
    }
}

fn gunzip(packed: &[u8]) -> u64 {
    let mut gunzip = Gunzip::new(packed);
    let mut buffer = vec![0; HISTORY + PIECE];
    let (mut at, mut made) = (0, 0);
    loop {
        if at == buffer.len() {
            buffer.copy_within(at - HISTORY.., 0);
            at = HISTORY;
        }
        match gunzip.read_at(&mut buffer, at).unwrap() {
            0 => return made,
            n => (at, made) = (at + n, made + n as u64),
        }
    }
}

fn zlib(packed: &[u8]) -> u64 {
    let mut decoder = flate2::bufread::MultiGzDecoder::new(packed);
    all(|to| decoder.read(to))
}

fn unzstd(packed: &[u8]) -> u64 {
    unzstd_with(packed, 1)
}

fn unzstd_two_threads(packed: &[u8]) -> u64 {
    unzstd_with(packed, 2)
}

fn unzstd_with(packed: &[u8], threads: usize) -> u64 {
    let mut unzstd = Unzstd::in_memory(Cursor::new(packed.to_vec()));
    unzstd.set_threads(threads);
    all(|to| unzstd.read(to))
}

fn libzstd(packed: &[u8]) -> u64 {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).unwrap();
    all(|to| decoder.read(to))
}

/// Reads to the end; returns the number of decompressed bytes.
fn all(mut read: impl FnMut(&mut [u8]) -> std::io::Result<usize>) -> u64 {
    let (mut buffer, mut made) = (vec![0; PIECE], 0);
    loop {
        match read(&mut buffer).unwrap() {
            0 => return made,
            n => made += n as u64,
        }
    }
}
