//! Decompression from restart points, which a [`Reader`](crate::Reader) collects while it reads a
//! capture.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;

use gannet_inflate::RestartPoint;
use gannet_inflate::gzip::Gunzip;
use gannet_inflate::zstd::Unzstd;

use crate::Compression;
use crate::compress::INPUT;
use crate::source::Gzip;
use crate::source::Source;
use crate::source::Streamed;
use crate::source::Zstd;

/// The decompressed bytes of a file from a restart point on, or from its beginning. If the point is
/// within a gzip member, the checksum of that member is not verified.
///
/// # Errors
/// If the file cannot be read, or the point is invalid.
pub fn unpacked_from(
    mut file: File,
    compression: Compression,
    point: Option<&RestartPoint>,
) -> io::Result<Box<dyn Read + Send>> {
    let point = point.cloned().unwrap_or_default();
    file.seek(SeekFrom::Start(point.at))?;
    let input = BufReader::with_capacity(INPUT, file);
    let source: Box<dyn Source> = match compression {
        Compression::Gzip if point.offset > 0 => {
            let history = point.history()?;
            let gunzip = Gunzip::resume(input, &point, history.len())?;
            Box::new(Streamed::after(Gzip(gunzip), &history))
        }
        Compression::Zstd => Box::new(Streamed::new(Zstd(Unzstd::resume(input, point.at)))),
        _ if point.at > 0 => {
            let what = "a restart point in a format without any";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        _ => compression.source(Box::new(input), false)?,
    };
    Ok(Box::new(Bytes(source)))
}

/// Reads the bytes of a source.
struct Bytes(Box<dyn Source>);

impl Read for Bytes {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let failed = match self.0.window() {
            [] => self.0.fill(1).err(),
            _ => None,
        };
        let window = self.0.window();
        let n = window.len().min(to.len());
        to[..n].copy_from_slice(&window[..n]);
        self.0.advance(n);
        match failed {
            Some(error) if n == 0 => Err(error),
            _ => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::io::Write;

    use proptest::prelude::*;

    use gannet_inflate::RestartPoints;
    use gannet_inflate::gzip::HISTORY;

    use super::*;
    use crate::test::Dir;

    /// Bytes with repetitions at short and long distances.
    fn bytes(n: usize, mut seed: u64) -> Vec<u8> {
        let mut below = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n.max(1)
        };
        let mut all = Vec::with_capacity(n + 300);
        while all.len() < n {
            let length = 3 + below(250);
            if all.is_empty() || below(3) == 0 {
                all.extend((0..length).map(|_| below(256) as u8));
            } else {
                let from = all.len() - 1 - below(all.len().min(HISTORY));
                (from..from + length).for_each(|at| all.push(all[at]));
            }
        }
        all.truncate(n);
        all
    }

    fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
        let level = flate2::Compression::new(level);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// The restart points of compressed data, read in one or two threads.
    fn points(
        packed: &[u8],
        compression: Compression,
        threads: usize,
        every: u64,
    ) -> Vec<RestartPoint> {
        let mut source = compression.source(Box::new(Cursor::new(packed.to_vec())), true).unwrap();
        source.set_threads(threads);
        let points = RestartPoints::new(every);
        assert!(source.keep_restarts(&points));
        while source.fill(1).is_ok() && !source.window().is_empty() {
            let n = source.window().len();
            source.advance(n);
        }
        points.take()
    }

    /// Compares the bytes read from each point on with the whole data.
    fn check(
        name: &str,
        packed: &[u8],
        compression: Compression,
        whole: &[u8],
        points: &[RestartPoint],
    ) {
        let dir = Dir::new(name);
        let path = dir.file("packed", packed);
        let mut all = vec![None];
        all.extend(points.iter().map(Some));
        for point in all {
            let file = File::open(&path).unwrap();
            let mut read = Vec::new();
            unpacked_from(file, compression, point).unwrap().read_to_end(&mut read).unwrap();
            let from = point.map_or(0, |point| point.offset as usize);
            assert!(read == whole[from..], "from {from}: {} bytes", read.len());
        }
    }

    #[test]
    fn gzip_is_read_from_any_point() {
        let (a, b) = (bytes(1_500_000, 1), bytes(900_000, 2));
        // At level 1, blocks are long: points are at the starts of blocks.
        for (level, least) in [(0, 7), (1, 2), (6, 7), (9, 7)] {
            let packed = [gzip(&a, level), gzip(&[], level), gzip(&b, level)].concat();
            let whole = [&a[..], &b].concat();
            let found = points(&packed, Compression::Gzip, 1, 200_000);
            assert!(found.len() >= least, "level {level}: {} points", found.len());
            assert!(found.windows(2).all(|pair| pair[1].offset >= pair[0].offset + 200_000));
            assert!(found.iter().all(|point| point.skip < 8));
            check("restart-gzip", &packed, Compression::Gzip, &whole, &found);
            let threads = points(&packed, Compression::Gzip, 2, 200_000);
            assert!(found == threads, "threads make no difference");
        }
    }

    #[test]
    fn members_are_points_without_a_window() {
        let parts: Vec<_> = (0..40).map(|n| bytes(65_280, n)).collect();
        let packed: Vec<_> = parts.iter().flat_map(|part| gzip(part, 6)).collect();
        let found = points(&packed, Compression::Gzip, 1, 65_280);
        assert!(found.iter().any(|point| point.window.is_empty()), "{found:?}");
        check("restart-members", &packed, Compression::Gzip, &parts.concat(), &found);
    }

    #[test]
    fn zstd_is_read_from_any_frame() {
        let parts: Vec<_> = (0..20).map(|n| bytes(100_000 + n * 777, n as u64)).collect();
        let frame = |part: &Vec<u8>| zstd::bulk::compress(part, 3).unwrap();
        let mut packed: Vec<_> = parts.iter().flat_map(frame).collect();
        // A skippable frame, as written by parallel tools.
        packed.splice(0..0, [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        for threads in [1, 2] {
            let found = points(&packed, Compression::Zstd, threads, 250_000);
            assert!(found.len() >= 6, "{} points", found.len());
            check("restart-zstd", &packed, Compression::Zstd, &parts.concat(), &found);
        }
    }

    #[test]
    fn a_wrong_checksum_behind_a_point_is_found_in_the_next_member() {
        let (a, b) = (bytes(500_000, 5), bytes(300_000, 6));
        let mut packed = [gzip(&a, 6), gzip(&b, 6)].concat();
        let found = points(&packed, Compression::Gzip, 1, 100_000);
        let within = found.iter().find(|point| point.offset < 400_000).unwrap();
        let at = packed.len() - 6;
        packed[at] ^= 1;
        let dir = Dir::new("restart-sum");
        let file = File::open(dir.file("packed", &packed)).unwrap();
        let mut read = Vec::new();
        let mut from = unpacked_from(file, Compression::Gzip, Some(within)).unwrap();
        let error = from.read_to_end(&mut read).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
        assert!(error.to_string().ends_with(&format!("before byte {} of the file", packed.len())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// An invalid point gives other bytes or an error.
        #[test]
        fn any_point_is_read_without_panic(
            at in 0_u64..70_000,
            skip: u8,
            window in prop::collection::vec(any::<u8>(), 0..40),
            is_gzip: bool,
        ) {
            let text = bytes(100_000, 9);
            let (packed, compression) = match is_gzip {
                true => (gzip(&text, 6), Compression::Gzip),
                false => (zstd::bulk::compress(&text, 3).unwrap(), Compression::Zstd),
            };
            let dir = Dir::new("restart-any");
            let path = dir.file("packed", &packed);
            for window in [zstd::bulk::compress(&window, 1).unwrap(), window] {
                let point = RestartPoint { offset: 1, at, skip, window };
                if let Ok(read) = unpacked_from(File::open(&path).unwrap(), compression, Some(&point)) {
                    let _ = read.take(1 << 20).read_to_end(&mut Vec::new());
                }
            }
        }
    }
}
