//! Content codings: gzip and deflate (RFC 9110 section 8.4.1).

use flate2::Decompress;
use flate2::FlushDecompress;
use flate2::Status;

/// Size of the output buffer, in bytes.
const OUT_LEN: usize = 4096;

/// Maximum window size of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;

/// The result of [`Inflate::step`].
pub(super) enum Step {
    /// This many bytes are in [`Inflate::out`]; call again.
    More(usize),
    /// This many bytes are in [`Inflate::out`]; the input is used up or the stream has ended.
    Last(usize),
    /// The data is corrupt; decompression has ended.
    Failed,
}

/// Decompresses one body.
///
/// Servers send gzip, zlib and raw deflate under either name, so the format is detected: gzip by
/// its magic bytes, zlib by a valid header; anything else is tried as raw deflate.
pub(super) struct Inflate {
    state: Option<Box<Decompress>>,
    /// The first byte, if the first chunk had only one.
    magic: Option<u8>,
    done: bool,
    buffer: Box<[u8; OUT_LEN]>,
}

impl Inflate {
    pub(super) fn new() -> Self {
        Self { state: None, magic: None, done: false, buffer: Box::new([0; OUT_LEN]) }
    }

    /// The output of the last step.
    pub(super) fn out(&self) -> &[u8] {
        &*self.buffer
    }

    /// Starts a chunk. Returns the input for [`step`](Self::step), or `None` if decompression has ended.
    pub(super) fn begin<'d>(&mut self, data: &'d [u8]) -> Option<Input<'d>> {
        if self.done || data.is_empty() {
            return None;
        }
        Some(Input { data, at: 0, fresh: true })
    }

    /// Decompresses until the input is used up or the output buffer is full.
    pub(super) fn step(&mut self, input: &mut Input<'_>) -> Step {
        if self.state.is_none() && !self.detect_format(input) {
            return Step::Last(0);
        }
        loop {
            let Some(state) = &mut self.state else { return Step::Failed };
            let (had_in, had_out) = (state.total_in(), state.total_out());
            // The first byte may have arrived in an earlier chunk.
            let from: &[u8] = match &self.magic {
                Some(byte) => std::slice::from_ref(byte),
                None => &input.data[input.at..],
            };
            let available = from.len();
            let result = state.decompress(from, &mut self.buffer[..], FlushDecompress::Sync);
            let used = (state.total_in() - had_in) as usize;
            let produced = (state.total_out() - had_out) as usize;
            if self.magic.is_some() && used > 0 {
                self.magic = None;
                if matches!(result, Ok(Status::Ok)) && input.at < input.data.len() {
                    input.fresh = false;
                    continue;
                }
            } else {
                input.at += used;
            }
            match result {
                Ok(Status::Ok) => {
                    input.fresh = false;
                    // As in Zeek, output that did not fit when all input was consumed waits for the
                    // next chunk.
                    return if used == available {
                        Step::Last(produced)
                    } else {
                        Step::More(produced)
                    };
                }
                Ok(Status::BufError) if available == 0 => return Step::Last(produced),
                Ok(Status::StreamEnd) => {
                    self.done = true;
                    return Step::Last(produced);
                }
                Err(e) if input.fresh && e.needs_dictionary().is_none() => {
                    // Not a zlib header: retry the chunk as raw deflate.
                    **state = Decompress::new(false);
                    self.magic = None;
                    input.at = 0;
                    input.fresh = false;
                }
                Ok(Status::BufError) | Err(_) => {
                    self.done = true;
                    return Step::Failed;
                }
            }
        }
    }

    /// Detects the format by the first two bytes; false if only one has arrived.
    fn detect_format(&mut self, input: &Input<'_>) -> bool {
        let (first, second) = match (self.magic, input.data) {
            (Some(first), [second, ..]) => (first, *second),
            (None, [first, second, ..]) => (*first, *second),
            (None, [first]) => {
                self.magic = Some(*first);
                return false;
            }
            _ => return false,
        };
        let state = if (first, second) == (0x1f, 0x8b) {
            Decompress::new_gzip(WINDOW_BITS)
        } else {
            Decompress::new(true)
        };
        self.state = Some(Box::new(state));
        true
    }
}

/// The input of [`Inflate::step`].
pub(super) struct Input<'d> {
    data: &'d [u8],
    /// Offset of the next byte.
    at: usize,
    /// No data of this chunk has been decompressed.
    fresh: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use proptest::prelude::*;
    use std::io::Write;

    fn inflate(chunks: &[&[u8]]) -> Option<Vec<u8>> {
        let mut z = Inflate::new();
        let mut out = Vec::new();
        for chunk in chunks {
            let Some(mut input) = z.begin(chunk) else { continue };
            loop {
                match z.step(&mut input) {
                    Step::More(n) => out.extend_from_slice(&z.out()[..n]),
                    Step::Last(n) => {
                        out.extend_from_slice(&z.out()[..n]);
                        break;
                    }
                    Step::Failed => return None,
                }
            }
        }
        Some(out)
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        e.write_all(data).unwrap();
        e.finish().unwrap()
    }

    fn bare(data: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::DeflateEncoder::new(Vec::new(), Compression::fast());
        e.write_all(data).unwrap();
        e.finish().unwrap()
    }

    #[test]
    fn corrupt_data_is_reported() {
        let mut z = gzip(&[b'a'; 100]);
        let n = z.len();
        z[n - 6] ^= 1;
        assert_eq!(inflate(&[&z]), None);
        assert_eq!(inflate(&[b"\xff\xff\xff\xff"]), None);
    }

    #[test]
    fn an_unknown_dictionary_is_an_error() {
        // As raw deflate, it would be a stored block.
        let z = [&b"\x78\x20\0\xdf\xff"[..], &[b'a'; 32]].concat();
        assert_eq!(inflate(&[&z]), None);
    }

    #[test]
    fn zlib_and_raw_deflate_are_distinguished() {
        let mut e = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        e.write_all(b"hello").unwrap();
        assert_eq!(inflate(&[&e.finish().unwrap()]), Some(b"hello".to_vec()));
        assert_eq!(inflate(&[&bare(b"hello")]), Some(b"hello".to_vec()));
    }

    #[test]
    fn output_that_does_not_fit_waits_for_more_input() {
        let z: &[u8] =
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed\xc5\xc1\x00\x00\x40\x08\x00\xb0\x4c\
            \x32\xc9\xe4\x4c\xce\x24\x93\xe8\x62\xe8\xbf\x7d\x16\x59\xef\xf7\x84\x24\x49\x92\
            \x24\x49\xd2\xbd\x05\x88\x2d\x0f\x70\x5a\x10\x00\x00";
        let data: Vec<u8> = (0..OUT_LEN + 90).map(|i| (i % 7 * 31) as u8).collect();
        let len = |chunks: &[&[u8]]| inflate(chunks).map(|d| d.len());
        assert_eq!((len(&[&z[..42]]), len(&[&z[..43]])), (Some(3620), Some(OUT_LEN)));
        assert_eq!(len(&[&z[..44]]), Some(OUT_LEN + 90));
        assert_eq!(inflate(&[&z[..43], &z[43..]]), Some(data));
    }

    #[test]
    fn a_full_buffer_hides_no_rest() {
        for more in 0..100 {
            let data: Vec<u8> = (0..OUT_LEN + more).map(|i| (i % 7 * 31) as u8).collect();
            for z in [gzip(&data), bare(&data)] {
                for at in 2..z.len() {
                    assert_eq!(inflate(&[&z[..at], &z[at..]]).as_ref(), Some(&data));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn inflating_undoes_deflating(data: Vec<u8>, n in 0usize..64, at in 0usize..3000) {
            let data = data.repeat(n);
            for z in [gzip(&data), bare(&data)] {
                let at = at.min(z.len());
                // Raw deflate is detected by its first two bytes, which must be passed together.
                let at = if at < 2 { 2.min(z.len()) } else { at };
                let got = inflate(&[&z[..at], &z[at..]]).unwrap_or_default();
                // Raw deflate has no trailer that would flush the remaining output.
                let left = z[..2] != [0x1f, 0x8b] && !got.is_empty() && got.len().is_multiple_of(OUT_LEN);
                let whole = if left { &data[..got.len()] } else { &data[..] };
                prop_assert_eq!(&got[..], whole);
            }
        }
    }
}
