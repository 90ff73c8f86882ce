//! Unpacking in a thread of its own, beside the one that reads records.
//!
//! ```text
//! thread:  input ──▶ │ room │ last 32 KiB │ unpacked │ ──▶ others that are ready
//!                                                              │
//! reader:  │   … packets, and a record that is cut │ ◀── next ──┤
//!                                                              │
//!          buffers that were read ◀────────────────────────────┘
//! ```
//!
//! What matches reach back to stands in front of what is unpacked, and so does the record that the buffer before
//! ended within: the reader goes on there, and copies nothing but what is longer. Buffers go round, so the
//! thread is never further ahead than there are of them.

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::Sender;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use crate::Bytes;
use crate::gzip::Checker;
use crate::gzip::Due;
use crate::gzip::HISTORY;
use crate::held::Spares;
use crate::source::Input;
use crate::source::Source;
use crate::source::Streamed;

/// What is unpacked at a time: what two processors have near, and much more than it takes to wake one of them.
const PIECE: usize = 256 << 10;

/// Where it begins in a buffer: behind what it reaches back to, and behind the beginning of a record.
const FRONT: usize = 96 << 10;

const _: () = assert!(FRONT >= HISTORY, "there is room for what is reached back to");

/// Size of the buffers.
const ALL: usize = FRONT + PIECE;

/// Buffers that go round: one is read, one is written, one waits.
const BUFFERS: usize = 3;

/// Compressed input: unpacked here until a first buffer was full, for short files are read before a thread has
/// begun, and in a thread from then on.
pub(crate) enum Unpacked<R> {
    Here {
        streamed: Streamed<R>,
        /// Whether there may be a thread.
        threads: bool,
    },
    Beside(Beside),
}

impl<R: Input + 'static> Unpacked<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::Here { streamed: Streamed::with_buffer(input, ALL), threads: false }
    }

    /// Has a thread unpack from now on. If none can be had, nothing changes.
    fn part(&mut self) {
        let (hand, taken) = channel::<Worker<R>>();
        let work = move || {
            if let Ok(worker) = taken.recv() {
                worker.run();
            }
        };
        let Ok(thread) = std::thread::Builder::new().name("unpack".into()).spawn(work) else {
            if let Self::Here { threads, .. } = self {
                *threads = false;
            }
            return;
        };
        let here = std::mem::replace(self, Self::Beside(Beside::default()));
        let Self::Here { streamed, .. } = here else { return };
        let (buffer, window, mut input) = streamed.into_parts();
        let history = buffer[window.end.saturating_sub(HISTORY)..window.end].to_vec();
        let (full, ready) = channel();
        let (free, empty) = channel();
        for _ in 0..BUFFERS {
            // It is listening.
            let _ = free.send(Bytes::default());
        }
        let checker = input.leave_checks();
        let _ = hand.send(Worker { input, history, empty, full });
        let ring = Ring { checker, ready: Some(ready), free: Some(free), thread: Some(thread) };
        let (start, end) = (window.start, window.end);
        *self = Self::Beside(Beside { buffer, start, end, ring: Some(ring), ..Beside::default() });
    }
}

impl<R: Input + 'static> Source for Unpacked<R> {
    fn window(&self) -> &[u8] {
        match self {
            Self::Here { streamed, .. } => streamed.window(),
            Self::Beside(beside) => beside.buffer.get(beside.start..beside.end).unwrap_or_default(),
        }
    }

    fn bytes(&self) -> &Bytes {
        match self {
            Self::Here { streamed, .. } => streamed.bytes(),
            Self::Beside(beside) => &beside.buffer,
        }
    }

    fn advance(&mut self, n: usize) {
        match self {
            Self::Here { streamed, .. } => streamed.advance(n),
            Self::Beside(beside) => beside.start = beside.start.saturating_add(n).min(beside.end),
        }
    }

    fn set_threads(&mut self, count: usize) {
        if let Self::Here { threads, .. } = self {
            *threads = count > 1;
        }
    }

    fn fill(&mut self, want: usize) -> io::Result<()> {
        if let Self::Here { streamed, threads: true } = self
            && streamed.window().len() < want
            && streamed.is_full()
        {
            self.part();
        }
        match self {
            Self::Here { streamed, .. } => streamed.fill(want),
            Self::Beside(beside) => beside.fill(want),
        }
    }
}

/// A piece of what was unpacked.
struct Piece {
    /// It stands from [`FRONT`] on.
    buffer: Bytes,
    end: usize,
    /// Checksums that came with it.
    dues: Vec<Due>,
    /// How it went on: the end, an error, or nothing if there is more.
    ended: Option<io::Result<()>>,
}

/// What the thread does.
struct Worker<R> {
    input: R,
    /// The last bytes that were unpacked.
    history: Vec<u8>,
    empty: Receiver<Bytes>,
    full: Sender<Piece>,
}

impl<R: Input> Worker<R> {
    fn run(mut self) {
        // Whoever reads may have gone: then there are no buffers any more, or nobody takes them.
        while let Ok(mut buffer) = self.empty.recv() {
            if buffer.buffer().is_none_or(|buffer| buffer.len() != ALL) {
                buffer = vec![0; ALL].into();
            }
            let Some(bytes) = buffer.buffer() else { return };
            bytes[FRONT - self.history.len()..FRONT].copy_from_slice(&self.history);
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

    /// Fills a buffer; up to where, and how it ended.
    fn piece(&mut self, buffer: &mut [u8]) -> (usize, Option<io::Result<()>>) {
        let mut end = FRONT;
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

/// The reader's side.
#[derive(Default)]
pub(crate) struct Beside {
    /// The piece that is read, with what was left of the one before in front of it.
    buffer: Bytes,
    start: usize,
    end: usize,
    /// Buffers whose packets others still read.
    spares: Spares<Bytes>,
    /// Absent once all was taken.
    ring: Option<Ring>,
    /// Comes after what is in the buffer.
    failed: Option<io::Error>,
}

/// A thread, and the ways to it and back.
struct Ring {
    checker: Option<Checker>,
    ready: Option<Receiver<Piece>>,
    free: Option<Sender<Bytes>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Ring {
    fn drop(&mut self) {
        (self.ready, self.free) = (None, None);
        if let Some(thread) = self.thread.take() {
            // It ends with the piece it is at; if it panicked, that was told or matters to nobody any more.
            let _ = thread.join();
        }
    }
}

impl Beside {
    fn fill(&mut self, want: usize) -> io::Result<()> {
        while self.end - self.start < want {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(ring) = &mut self.ring else { break };
            let Some(Ok(mut piece)) = ring.ready.as_ref().map(Receiver::recv) else {
                self.ring = None;
                return Err(io::Error::other("the thread that unpacks has panicked"));
            };
            if let Some(checker) = &mut ring.checker {
                let bytes = piece.buffer.get(FRONT..piece.end).unwrap_or_default();
                if let Err((before, error)) = checker.see(bytes, &piece.dues) {
                    piece.end = FRONT + before;
                    piece.ended = Some(Err(error));
                }
            }
            let read = self.take(piece.buffer, piece.end);
            match piece.ended {
                None => self.give_back(read),
                Some(ended) => {
                    self.failed = ended.err();
                    self.ring = None;
                }
            }
        }
        Ok(())
    }

    /// Goes on in the buffer of a piece, behind what is left of the one before; which buffer is free now.
    fn take(&mut self, mut piece: Bytes, end: usize) -> Bytes {
        let rest = self.end - self.start;
        let Some(bytes) = piece.buffer() else { return piece };
        if rest > FRONT {
            return self.append(piece, end);
        }
        if rest > 0 {
            // What is no longer than that stands there already.
            let known = rest.min(HISTORY);
            let before = &self.buffer[self.start..self.end - known];
            bytes[FRONT - rest..FRONT - known].copy_from_slice(before);
        }
        (self.start, self.end) = (FRONT - rest, end);
        std::mem::replace(&mut self.buffer, piece)
    }

    /// Copies a piece behind what is left: a record is longer than all the room in front of it.
    fn append(&mut self, piece: Bytes, end: usize) -> Bytes {
        let more = &piece[FRONT..end];
        let window = self.start..self.end;
        match self.buffer.buffer() {
            // One that was made here: it grows with what came.
            Some(buffer) if buffer.len() != ALL => {
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

    /// Lets the thread have a buffer that was read, or another one if somebody still reads it.
    fn give_back(&mut self, mut buffer: Bytes) {
        self.spares.exchange(&mut buffer);
        if let Some(Ring { free: Some(free), .. }) = &self.ring {
            // If it has ended, that is noticed when there is nothing more from it.
            let _ = free.send(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::Compression;
    use crate::test::packed;

    /// Numbers that do not matter.
    struct Any(u64);

    impl Any {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % n.max(1)
        }

        /// Bytes of which many stand somewhere before, near or far.
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

    /// All that comes out, in steps of any length, and the error behind it; and whether there was a thread.
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
            // Now and then more than the room in front of a piece, or than a piece.
            let most = [100, 100, 100, 40_000, 40_000, 300_000][any.below(6)];
            let want = 1 + any.below(most);
            let failed = source.fill(want).err();
            let window = source.window();
            let ended = window.len() < want;
            let n = if ended { window.len() } else { 1 + any.below(window.len()) };
            all.extend_from_slice(&window[..n]);
            // Others may go on reading what was handed out.
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
        let bytes = Any(3).bytes(2 * ALL);
        for (length, threads, beside) in
            [(ALL - 1, 2, false), (2 * ALL, 1, false), (2 * ALL, 2, true)]
        {
            let packed = packed(&bytes[..length], Compression::Gzip);
            let mut source = Unpacked::new(crate::gzip::Gunzip::new(Cursor::new(packed)));
            source.set_threads(threads);
            while source.fill(1).is_ok() && !source.window().is_empty() {
                let n = source.window().len();
                source.advance(n);
            }
            assert_eq!(matches!(source, Unpacked::Beside(_)), beside);
        }
    }

    #[test]
    fn nobody_waits_for_a_thread_that_is_no_longer_needed() {
        let packed = packed(&Any(4).bytes(8 * ALL), Compression::Gzip);
        for pieces in 1..4 {
            let mut source = Unpacked::new(crate::gzip::Gunzip::new(Cursor::new(packed.clone())));
            source.set_threads(2);
            source.fill(pieces * ALL).unwrap();
            assert!(source.window().len() >= pieces * ALL);
        }
    }

    #[test]
    fn members_without_a_byte_are_not_kept() {
        let mut all = packed(&vec![7; 3 * ALL], Compression::Gzip);
        let empty = packed(&[], Compression::Gzip);
        let mut wrong = empty.clone();
        *wrong.last_mut().unwrap() = 1;
        (0..1000).for_each(|_| all.extend_from_slice(&empty));
        all.extend(packed(b"more", Compression::Gzip));
        all.extend(wrong);
        for threads in [1, 2] {
            let (bytes, error) = self::all(&all, Compression::Gzip, threads, 1);
            assert_eq!(bytes.len(), 3 * ALL + 4);
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
            let beside = all(&bytes, compression, 2, seed ^ 1);
            prop_assert!(alone.0 == beside.0, "{} and {} bytes", alone.0.len(), beside.0.len());
            prop_assert_eq!(alone.1, beside.1);
        }
    }
}
