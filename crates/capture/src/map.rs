//! Files mapped into memory, and advice to the kernel about their pages: one of the modules of this
//! crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::Read;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use gannet_base::prefetch;
use gannet_workers::Workers;
use memmap2::Advice;
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::Bytes;

/// A whole file, mapped for reading from front to back.
#[derive(Debug)]
pub(crate) struct Map {
    pages: Pages,
    /// Set if a thread prepares the pages.
    ahead: Option<PagePreparer>,
    /// Set if the receivers of batches prepare the pages.
    shared_pages: Option<Arc<SharedPages>>,
}

/// The state of a map's pages.
#[derive(Clone, Debug)]
struct Pages {
    bytes: Bytes,
    /// Pages before this offset were requested.
    wanted: usize,
    /// Pages before this offset were released.
    released: usize,
    /// Owners of the bytes that do not read them.
    holders: usize,
}

/// How far ahead of the reader pages are mapped at a time, instead of one fault for every 64 KiB.
const AHEAD: usize = 1 << 20;

/// Bytes behind the reader that are kept mapped.
const BEHIND: usize = 1 << 20;

/// The same where other threads read the batches and may be some batches (a megabyte each) late: a
/// page released before all have read it is faulted in again and stays mapped.
const BEHIND_OTHERS: usize = 12 << 20;

/// The same for the bytes released at a time: each release interrupts all processors that run one
/// of the threads.
const RELEASED_OTHERS: usize = 2 << 20;

/// Advice starts at multiples of this: a multiple of every page size in use, and the kernel's
/// fault-around size.
const PAGE: usize = 64 << 10;

impl Map {
    /// Maps `file` at its current length; bytes appended later are not seen.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is shared and read-only, and nothing here writes to the file. Another
        // process may: bytes that change under the reader give wrong packets but no invalid
        // lengths, because every length is read once and checked against the map before use. If
        // another process truncates the file, accessing the lost pages ends this process with
        // SIGBUS, as in every program that maps its input; reading such files through standard
        // input avoids it.
        let map = unsafe { Mmap::map(file) }?;
        // Advice only: without support for it, only speed is lost.
        let _ = map.advise(Advice::Sequential);
        let pages = Pages { bytes: map.into(), wanted: 0, released: 0, holders: 1 };
        Ok(Self { pages, ahead: None, shared_pages: None })
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.pages.bytes
    }

    /// A reader of all bytes from front to back, for decompression.
    pub(crate) fn into_reader(self) -> MapReader {
        MapReader { map: self, at: 0 }
    }

    /// Starts a thread that prepares the pages, if the file is long enough for that to pay.
    pub(crate) fn read_ahead(&mut self) {
        if self.ahead.is_none() && self.pages.bytes.len() >= LONG {
            // Without a thread the reader continues to prepare them.
            self.ahead = PagePreparer::start(self.pages.clone()).ok();
        }
    }

    /// Lets other threads prepare the pages through the returned handle, unless a dedicated thread
    /// does.
    pub(crate) fn share_pages(&mut self) -> Option<Weak<SharedPages>> {
        if self.ahead.is_some() {
            return None;
        }
        let mut pages = self.pages.clone();
        pages.holders += 1;
        let shared_pages =
            Arc::new(SharedPages { at: AtomicUsize::new(0), pages: Mutex::new(pages) });
        Some(Arc::downgrade(self.shared_pages.insert(shared_pages)))
    }

    /// Records that everything before `at` was read and that what follows is next.
    pub(crate) fn reading_at(&mut self, at: usize) {
        match (&self.ahead, &self.shared_pages) {
            (Some(ahead), _) => ahead.reading_at(at),
            (None, Some(shared_pages)) => shared_pages.at.store(at, Ordering::Release),
            (None, None) => {
                self.pages.want(at, AHEAD / 2);
                self.pages.release(at);
            }
        }
    }
}

impl Pages {
    /// Requests more pages if those requested end less than `near` bytes behind `at`; returns
    /// whether it did.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)
    )]
    fn want(&mut self, at: usize, near: usize) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(map) = self.bytes.map()
            && at + near > self.wanted
            && self.wanted < map.len()
        {
            let from = self.wanted.max(at) & !(PAGE - 1);
            let to = (from + AHEAD).min(map.len());
            // Touching one page maps the cached pages around it (the kernel's fault-around, 64 KiB
            // by default) without further faults. One call for the whole range makes the kernel
            // walk over each page once more, which takes a quarter of the time of reading small
            // packets.
            for page in (from..to).step_by(PAGE) {
                let _ = map.advise_range(Advice::PopulateRead, page, 1);
            }
            self.wanted = to;
            return true;
        }
        let _ = (at, near);
        false
    }

    /// Releases the pages far enough behind `at`.
    fn release(&mut self, at: usize) {
        #[cfg(unix)]
        if let Some(map) = self.bytes.map() {
            let (behind, at_once) = match self.bytes.is_shared_beyond(self.holders) {
                true => (BEHIND_OTHERS, RELEASED_OTHERS),
                false => (BEHIND, BEHIND),
            };
            if at.saturating_sub(self.released) < behind + at_once {
                return;
            }
            let to = at.saturating_sub(behind) & !(PAGE - 1);
            // SAFETY: in a shared mapping of a file, released pages are read from the file again
            // when they are accessed, with the same bytes, so even an outdated view stays valid.
            // This keeps the resident size small for captures of many gigabytes.
            let _ = unsafe {
                map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    self.released,
                    to - self.released,
                )
            };
            self.released = to;
        }
        #[cfg(not(unix))]
        let _ = at;
    }
}

/// How far ahead of the reader the receivers of batches prepare pages: some batches (a megabyte
/// each) for each of a few threads.
const AHEAD_OTHERS: usize = 4 << 20;

/// The pages of a map, prepared by other threads than its reader.
#[derive(Debug)]
pub(crate) struct SharedPages {
    /// The position of the reader.
    at: AtomicUsize,
    pages: Mutex<Pages>,
}

impl SharedPages {
    fn prepare(&self) {
        // If another thread is preparing them, there is nothing to do.
        let Ok(mut pages) = self.pages.try_lock() else { return };
        pages.release(self.at.load(Ordering::Acquire));
        while pages.want(self.at.load(Ordering::Acquire), AHEAD_OTHERS) {}
    }
}

/// The pages of the mapped files of a stream, prepared by the threads that receive its batches, so
/// that the reader, on which all others wait, only reads.
#[derive(Clone, Debug, Default)]
pub struct PageReadahead(Arc<Mutex<Vec<Weak<SharedPages>>>>);

impl PageReadahead {
    /// Adds the pages of one more file.
    pub(crate) fn add(&self, shared_pages: Weak<SharedPages>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(shared_pages);
    }

    /// Prepares the next pages and releases those behind the reader, unless another thread is doing
    /// so. If no thread calls this for some time, pages are faulted in one by one as they are read,
    /// and stay mapped.
    pub fn prepare(&self) {
        let Ok(mut all) = self.0.try_lock() else { return };
        all.retain(|shared_pages| {
            shared_pages.upgrade().is_some_and(|shared_pages| {
                shared_pages.prepare();
                true
            })
        });
    }
}

/// A thread that prepares the pages of a map: reading takes a third longer without it.
#[derive(Debug)]
struct PagePreparer {
    place: Arc<ReadPosition>,
    thread: Workers,
}

/// The position of the reader.
#[derive(Debug, Default)]
struct ReadPosition {
    at: AtomicUsize,
    ended: AtomicBool,
}

/// Shorter files are read before a thread has started.
const LONG: usize = 16 << 20;

/// How far the thread may be ahead of the reader.
const FAR: usize = 8 << 20;

impl PagePreparer {
    fn start(mut pages: Pages) -> io::Result<Self> {
        pages.holders += 1;
        let place = Arc::new(ReadPosition::default());
        let seen = Arc::clone(&place);
        let work = move || {
            while !seen.ended.load(Ordering::Acquire) {
                let at = seen.at.load(Ordering::Acquire);
                pages.release(at);
                if !pages.want(at, FAR) {
                    // If the reader moved meanwhile, this returns at once.
                    std::thread::park();
                }
            }
        };
        let mut thread = Workers::default();
        thread.start("pages", work)?;
        Ok(Self { place, thread })
    }

    fn reading_at(&self, at: usize) {
        self.place.at.store(at, Ordering::Release);
        self.thread.unpark();
    }
}

impl Drop for PagePreparer {
    fn drop(&mut self) {
        self.place.ended.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A reader of a mapped file, without copies.
#[derive(Debug)]
pub(crate) struct MapReader {
    map: Map,
    at: usize,
}

/// Bytes that a [`MapReader`] returns at a time, so that pages are prepared and released in step.
const SHOWN: usize = AHEAD / 2;

impl BufRead for MapReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.map.reading_at(self.at);
        let rest = self.map.bytes().get(self.at..).unwrap_or_default();
        Ok(&rest[..rest.len().min(SHOWN)])
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }
}

impl Read for MapReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let shown = self.fill_buf()?;
        let n = shown.len().min(buf.len());
        buf[..n].copy_from_slice(&shown[..n]);
        self.consume(n);
        Ok(n)
    }
}

/// How far ahead of a record reader cache lines are prefetched: a few dozen small packets.
const FETCH_AHEAD: usize = 4096;

/// The bytes of a record that are worth prefetching: its headers, and those of small packets behind
/// it.
const FETCH_RECORD: usize = 512;

/// Bytes prefetched at a time: about the size of a small record.
const FETCH_SMALL: usize = 128;

/// Prefetches memory a little beyond the record `data[from..to]`.
///
/// The processor cannot prefetch by itself, since the start of a record is known only when the
/// previous one was read. Small packets are walked twice as fast with this.
#[inline(always)]
pub(crate) fn fetch_beyond(data: &[u8], from: usize, to: usize) {
    // Always both lines: the size of a small record is unpredictable.
    let ahead = data.as_ptr().wrapping_add(from + FETCH_AHEAD);
    prefetch(ahead.cast::<[u8; FETCH_SMALL]>());
    if to - from > FETCH_SMALL {
        fetch_beyond_long(data, from, to);
    }
}

/// Large records often have the same length: this prefetches the expected starts of two of the
/// following records.
#[inline(never)]
fn fetch_beyond_long(data: &[u8], from: usize, to: usize) {
    let fetch = |at: usize| prefetch(data.as_ptr().wrapping_add(at).cast::<[u8; FETCH_SMALL]>());
    let len = to - from;
    if len > FETCH_RECORD {
        fetch(to + len);
        fetch(to + 3 * len);
    }
    let first = (from + FETCH_SMALL).max(to.saturating_sub(FETCH_RECORD));
    (first..to).step_by(FETCH_SMALL).for_each(|at| fetch(at + FETCH_AHEAD));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test::Dir;

    #[test]
    fn bytes_are_the_same_with_a_thread_for_the_pages() {
        let dir = Dir::new("pages");
        let path = dir.0.join("long");
        let long: Vec<u8> = (0..LONG + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        for (bytes, threads) in [(&long[..], true), (&long[..LONG - 1], false)] {
            fs::write(&path, bytes).unwrap();
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.reading_at(0);
            map.read_ahead();
            assert_eq!(map.ahead.is_some(), threads);
            // Other owners still read the bytes behind.
            let kept = map.bytes().clone();
            for at in (0..bytes.len()).step_by(300_001) {
                map.reading_at(at);
                assert_eq!(map.bytes()[at], bytes[at]);
            }
            map.reading_at(bytes.len());
            drop(map);
            assert!(*kept == *bytes);
        }
    }

    #[test]
    fn bytes_are_the_same_where_others_see_to_the_pages() {
        let dir = Dir::new("pages-shared_pages");
        let path = dir.0.join("long");
        let long: Vec<u8> = (0..LONG + 3 * PAGE + 5).map(|i| (i % 251) as u8).collect();
        fs::write(&path, &long).unwrap();
        let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
        map.reading_at(0);
        let (readahead, shared_pages) = (PageReadahead::default(), map.share_pages().unwrap());
        readahead.add(shared_pages.clone());
        let asked = || shared_pages.upgrade().map(|t| t.pages.lock().unwrap().wanted);
        let kept = map.bytes().clone();
        for at in (0..long.len()).step_by(300_001) {
            map.reading_at(at);
            readahead.prepare();
            if cfg!(target_os = "linux") {
                assert!(asked() >= Some((at + AHEAD_OTHERS).min(long.len())));
            }
            assert_eq!(map.bytes()[at], long[at]);
        }
        drop(map);
        readahead.prepare();
        assert!(readahead.0.lock().unwrap().is_empty());
        assert!(*kept == *long);
    }

    #[test]
    fn a_reader_that_stops_early_does_not_wait() {
        let dir = Dir::new("pages-early");
        let path = dir.0.join("long");
        fs::write(&path, vec![1; LONG]).unwrap();
        for read in [0, 1, FAR, LONG] {
            let mut map = Map::new(&File::open(&path).unwrap()).unwrap();
            map.read_ahead();
            map.reading_at(read);
            drop(map);
        }
    }
}
