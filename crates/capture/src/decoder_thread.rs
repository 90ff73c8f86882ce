//! Decompression in a decoder thread, concurrently with the thread that parses records.
//!
//! ```text
//! thread:  input ──▶ │ headroom │ history │ data │ ──▶ filled buffers ─┐
//!                                                                      │
//! reader:  │ … packets, and an incomplete record │ ◀── next buffer ─────┤
//!                                                                      │
//!          read buffers, for reuse by the thread ◀─────────────────────┘
//! ```
//!
//! The history that matches refer to precedes the decompressed bytes in the buffer, and so does the
//! incomplete record at the end of the previous buffer: the reader continues there and copies only
//! longer records. The fixed number of buffers limits how far the decoder thread can run ahead.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;

use gannet_inflate::RestartPoints;
use gannet_inflate::gzip::Checker;
use gannet_inflate::gzip::HISTORY;
use gannet_inflate::gzip::Trailer;
use gannet_workers::Partner;

use crate::Bytes;
use crate::shared::Pool;
use crate::source::Input;
use crate::source::Source;
use crate::source::Streamed;

/// Number of bytes decompressed at a time: few enough for a shared cache, and many compared with
/// the cost of waking a thread.
const PIECE: usize = 256 << 10;

/// Offset of decompressed bytes in a buffer: space for the match history and the beginning of a
/// record.
const HEADROOM: usize = 96 << 10;

const _: () = assert!(HEADROOM >= HISTORY, "there is room for what is reached back to");

/// Size of the buffers in bytes.
const BUFFER_LEN: usize = HEADROOM + PIECE;

/// Number of buffers: one is read, one is written, one waits.
const BUFFERS: usize = 3;

/// A compressed input: decompressed in the caller's thread until a first buffer is full, because
/// short files are read before a thread has started, and in a decoder thread afterwards.
pub(crate) enum Unpacked<R> {
    Here {
        streamed: Streamed<R>,
        /// Whether a decoder thread may be started.
        threads: bool,
    },
    DecoderThread(DecoderThread),
}

impl<R: Input + 'static> Unpacked<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::Here { streamed: Streamed::with_buffer(input, BUFFER_LEN), threads: false }
    }

    /// Moves decompression to a decoder thread. If no thread can be started, decompression stays
    /// here.
    fn move_to_thread(&mut self) {
        let (hand, taken) = channel::<(R, Vec<u8>)>();
        let work = move |empty, full| {
            if let Ok((input, history)) = taken.recv() {
                Worker { input, history, empty, full }.run();
            }
        };
        let Ok(partner) = Partner::start("unpack", work) else {
            if let Self::Here { threads, .. } = self {
                *threads = false;
            }
            return;
        };
        let here = std::mem::replace(self, Self::DecoderThread(DecoderThread::default()));
        let Self::Here { streamed, .. } = here else { return };
        let (buffer, window, mut input) = streamed.into_parts();
        let history = buffer[window.end.saturating_sub(HISTORY)..window.end].to_vec();
        for _ in 0..BUFFERS {
            // The thread waits for this buffer.
            let _ = partner.send(Bytes::default());
        }
        let checker = input.leave_checks();
        let _ = hand.send((input, history));
        let ring = Ring { checker, partner };
        let (start, end) = (window.start, window.end);
        *self = Self::DecoderThread(DecoderThread {
            buffer,
            start,
            end,
            ring: Some(ring),
            ..DecoderThread::default()
        });
    }
}

impl<R: Input + 'static> Source for Unpacked<R> {
    fn window(&self) -> &[u8] {
        match self {
            Self::Here { streamed, .. } => streamed.window(),
            Self::DecoderThread(decoder_thread) => decoder_thread
                .buffer
                .get(decoder_thread.start..decoder_thread.end)
                .unwrap_or_default(),
        }
    }

    fn bytes(&self) -> &Bytes {
        match self {
            Self::Here { streamed, .. } => streamed.bytes(),
            Self::DecoderThread(decoder_thread) => &decoder_thread.buffer,
        }
    }

    fn advance(&mut self, n: usize) {
        match self {
            Self::Here { streamed, .. } => streamed.advance(n),
            Self::DecoderThread(decoder_thread) => {
                decoder_thread.start =
                    decoder_thread.start.saturating_add(n).min(decoder_thread.end);
            }
        }
    }

    fn set_threads(&mut self, count: usize) {
        if let Self::Here { threads, .. } = self {
            *threads = count > 1;
        }
    }

    fn keep_restarts(&mut self, points: &RestartPoints) -> bool {
        match self {
            Self::Here { streamed, .. } => streamed.keep_restarts(points),
            Self::DecoderThread(_) => false,
        }
    }

    fn fill(&mut self, want: usize) -> io::Result<()> {
        if let Self::Here { streamed, threads: true } = self
            && streamed.window().len() < want
            && streamed.is_full()
        {
            self.move_to_thread();
        }
        match self {
            Self::Here { streamed, .. } => streamed.fill(want),
            Self::DecoderThread(decoder_thread) => decoder_thread.fill(want),
        }
    }
}

/// A buffer with decompressed data.
struct Piece {
    /// A buffer whose data begins at [`HEADROOM`].
    buffer: Bytes,
    end: usize,
    /// Checksums of gzip members that end in this buffer.
    dues: Vec<Trailer>,
    /// The end of the input, an error, or `None` if more data follows.
    ended: Option<io::Result<()>>,
}

/// The state of the decoder thread.
struct Worker<R> {
    input: R,
    /// The last bytes that were decompressed.
    history: Vec<u8>,
    empty: Receiver<Bytes>,
    full: Sender<Piece>,
}

impl<R: Input> Worker<R> {
    fn run(mut self) {
        // The reader may have been dropped: then no more buffers arrive, or sending one fails.
        while let Ok(mut buffer) = self.empty.recv() {
            if buffer.buffer().is_none_or(|buffer| buffer.len() != BUFFER_LEN) {
                buffer = vec![0; BUFFER_LEN].into();
            }
            let Some(bytes) = buffer.buffer() else { return };
            bytes[HEADROOM - self.history.len()..HEADROOM].copy_from_slice(&self.history);
            let (end, ended) = self.piece(bytes);
            self.history.clear();
            self.history.extend_from_slice(&bytes[end - HISTORY..end]);
            let last = ended.is_some();
            let piece = Piece { buffer, end, dues: self.input.dues(), ended };
            if self.full.send(piece).is_err() || last {
                return;
            }
        }
    }

    /// Fills a buffer; returns the end offset of the data and how the input ended.
    fn piece(&mut self, buffer: &mut [u8]) -> (usize, Option<io::Result<()>>) {
        let mut end = HEADROOM;
        while end < buffer.len() {
            let spare = buffer.len() - end;
            match self.input.read_at(buffer, end) {
                Ok(0) => return (end, Some(Ok(()))),
                Ok(n) => end += n.min(spare),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return (end, Some(Err(e))),
            }
        }
        (end, None)
    }
}

/// The reader's end of the decoder thread.
#[derive(Default)]
pub(crate) struct DecoderThread {
    /// The current piece, preceded by the unread bytes of the previous one.
    buffer: Bytes,
    start: usize,
    end: usize,
    /// Buffers whose packets still have other owners.
    pool: Pool<Bytes>,
    /// The decoder thread; `None` after all data was received.
    ring: Option<Ring>,
    /// The error to return after the bytes of the buffer.
    failed: Option<io::Error>,
}

/// The decoder thread, and the checker of its checksums.
struct Ring {
    checker: Option<Checker>,
    partner: Partner<Bytes, Piece>,
}

impl DecoderThread {
    fn fill(&mut self, want: usize) -> io::Result<()> {
        while self.end - self.start < want {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(ring) = &mut self.ring else { break };
            let Ok(mut piece) = ring.partner.receive() else {
                self.ring = None;
                return Err(io::Error::other("the decompression thread panicked"));
            };
            if let Some(checker) = &mut ring.checker {
                let bytes = piece.buffer.get(HEADROOM..piece.end).unwrap_or_default();
                if let Err((before, error)) = checker.update(bytes, &piece.dues) {
                    piece.end = HEADROOM + before;
                    piece.ended = Some(Err(error));
                }
            }
            let read = self.continue_in(piece.buffer, piece.end);
            match piece.ended {
                None => self.recycle(read),
                Some(ended) => {
                    self.failed = ended.err();
                    self.ring = None;
                }
            }
        }
        Ok(())
    }

    /// Continues in the buffer of a piece, after the unread bytes of the previous one; returns the
    /// previous buffer.
    fn continue_in(&mut self, mut piece: Bytes, end: usize) -> Bytes {
        let rest = self.end - self.start;
        let Some(bytes) = piece.buffer() else { return piece };
        if rest > HEADROOM {
            return self.append(piece, end);
        }
        if rest > 0 {
            // Up to this many bytes are in the buffer already.
            let known = rest.min(HISTORY);
            let before = &self.buffer[self.start..self.end - known];
            bytes[HEADROOM - rest..HEADROOM - known].copy_from_slice(before);
        }
        (self.start, self.end) = (HEADROOM - rest, end);
        std::mem::replace(&mut self.buffer, piece)
    }

    /// Appends a copy of a piece to the unread bytes, because a record is longer than the space
    /// before the piece.
    fn append(&mut self, piece: Bytes, end: usize) -> Bytes {
        let more = &piece[HEADROOM..end];
        let window = self.start..self.end;
        match self.buffer.buffer() {
            // A buffer allocated here grows with the data.
            Some(buffer) if buffer.len() != BUFFER_LEN => {
                buffer.truncate(self.end);
                buffer.extend_from_slice(more);
            }
            _ => {
                let mut joined = Vec::with_capacity(window.len() + 2 * more.len());
                joined.extend_from_slice(&self.buffer[window.clone()]);
                joined.extend_from_slice(more);
                self.buffer = joined.into();
                self.start = 0;
            }
        }
        self.end = self.buffer.len();
        piece
    }

    /// Returns a buffer that was read to the thread, or another one if it still has other owners.
    fn recycle(&mut self, mut buffer: Bytes) {
        self.pool.exchange(&mut buffer);
        if let Some(ring) = &self.ring {
            // If the thread has ended, receiving the next piece reports that.
            let _ = ring.partner.send(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use gannet_inflate::gzip::Gunzip;
    use proptest::prelude::*;

    use super::*;
    use crate::Compression;
    use crate::source::Gzip;
    use crate::test::packed;

    fn gzip(packed: Vec<u8>) -> Gzip<Cursor<Vec<u8>>> {
        Gzip(Gunzip::new(Cursor::new(packed)))
    }

    /// Pseudo-random numbers.
    struct Any(u64);

    impl Any {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % n.max(1)
        }

        /// Bytes with many repetitions at short and long distances.
        fn bytes(&mut self, n: usize) -> Vec<u8> {
            let mut all = Vec::with_capacity(n + 300);
            while all.len() < n {
                let length = 3 + self.below(250);
                if all.is_empty() || self.below(3) == 0 {
                    all.extend((0..length).map(|_| self.below(256) as u8));
                } else {
                    let from = all.len() - 1 - self.below(all.len().min(HISTORY));
                    (from..from + length).for_each(|at| all.push(all[at]));
                }
            }
            all.truncate(n);
            all
        }
    }

    /// Returns all decompressed bytes, read in steps of any length, the error after them, and
    /// whether a thread was used.
    fn all(
        packed: &[u8],
        compression: Compression,
        threads: usize,
        seed: u64,
    ) -> (Vec<u8>, String) {
        let input = Box::new(Cursor::new(packed.to_vec()));
        let mut source = compression.source(input, true).unwrap();
        source.set_threads(threads);
        let (mut any, mut all, mut held) = (Any(seed), Vec::new(), Vec::new());
        let error = loop {
            // Sometimes more than the space before a piece, or than a piece.
            let most = [100, 100, 100, 40_000, 40_000, 300_000][any.below(6)];
            let want = 1 + any.below(most);
            let failed = source.fill(want).err();
            let window = source.window();
            let ended = window.len() < want;
            let n = if ended { window.len() } else { 1 + any.below(window.len()) };
            all.extend_from_slice(&window[..n]);
            // Other owners may keep reading batches.
            if any.below(8) == 0 && held.len() < 6 {
                held.push((source.bytes().clone(), source.bytes().to_vec()));
            } else if any.below(8) == 0 && !held.is_empty() {
                let (bytes, copy) = held.swap_remove(any.below(held.len()));
                assert!(*bytes == copy[..], "it stays what it was");
            }
            source.advance(n);
            if let Some(error) = failed {
                break error.to_string();
            }
            if ended {
                break String::new();
            }
        };
        assert!(source.fill(1).is_ok() && source.window().is_empty(), "an error comes once");
        (all, error)
    }

    #[test]
    fn a_thread_begins_once_a_buffer_is_full() {
        let bytes = Any(3).bytes(2 * BUFFER_LEN);
        for (length, threads, decoder_thread) in
            [(BUFFER_LEN - 1, 2, false), (2 * BUFFER_LEN, 1, false), (2 * BUFFER_LEN, 2, true)]
        {
            let packed = packed(&bytes[..length], Compression::Gzip);
            let mut source = Unpacked::new(gzip(packed));
            source.set_threads(threads);
            while source.fill(1).is_ok() && !source.window().is_empty() {
                let n = source.window().len();
                source.advance(n);
            }
            assert_eq!(matches!(source, Unpacked::DecoderThread(_)), decoder_thread);
        }
    }

    #[test]
    fn no_thread_waits_for_one_that_is_no_longer_needed() {
        let packed = packed(&Any(4).bytes(8 * BUFFER_LEN), Compression::Gzip);
        for pieces in 1..4 {
            let mut source = Unpacked::new(gzip(packed.clone()));
            source.set_threads(2);
            source.fill(pieces * BUFFER_LEN).unwrap();
            assert!(source.window().len() >= pieces * BUFFER_LEN);
        }
    }

    #[test]
    fn members_without_a_byte_are_not_kept() {
        let mut all = packed(&vec![7; 3 * BUFFER_LEN], Compression::Gzip);
        let empty = packed(&[], Compression::Gzip);
        let mut wrong = empty.clone();
        *wrong.last_mut().unwrap() = 1;
        (0..1000).for_each(|_| all.extend_from_slice(&empty));
        all.extend(packed(b"more", Compression::Gzip));
        all.extend(wrong);
        for threads in [1, 2] {
            let (bytes, error) = self::all(&all, Compression::Gzip, threads, 1);
            assert_eq!(bytes.len(), 3 * BUFFER_LEN + 4);
            assert!(error.contains("0 bytes"), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_thread_changes_nothing(
            compression in 0..5_usize,
            seed in any::<u64>(),
            members in 1..6_usize,
            damage in 0..4_usize,
            place in any::<prop::sample::Index>(),
        ) {
            let mut any = Any(seed);
            let compression = [
                Compression::Gzip,
                Compression::Gzip,
                Compression::Zstd,
                Compression::Lz4,
                Compression::Xz,
            ][compression];
            let mut bytes = Vec::new();
            for _ in 0..members {
                let n = [0, 1, 1000, 300_000, 900_000][any.below(5)];
                bytes.extend(packed(&any.bytes(n), compression));
            }
            let at = place.index(bytes.len());
            match damage {
                0 => {}
                1 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << any.below(8),
            }
            let alone = all(&bytes, compression, 1, seed);
            let decoder_thread = all(&bytes, compression, 2, seed ^ 1);
            prop_assert!(alone.0 == decoder_thread.0, "{} and {} bytes", alone.0.len(), decoder_thread.0.len());
            prop_assert_eq!(alone.1, decoder_thread.1);
        }
    }
}
